//! The flags of the verbs that keep a store healthy: `backup`, `restore`, `gc`, `doctor`.

use clap::{Args, ValueEnum, ValueHint};

/// `backup`
#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// A directory that is new or empty, or an earlier backup of the same store
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: String,
}

/// `restore`
#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// The backup
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) backup: String,
    /// Where; here if not given
    #[arg(value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<String>,
    /// Put it in the place of the store that is there, which is moved aside
    #[arg(long)]
    pub(crate) replace: bool,
    /// Do so although the store that is there has records that the backup does not have
    #[arg(long, requires = "replace")]
    pub(crate) discard_newer: bool,
}

/// `gc`
#[derive(Debug, Args)]
pub(crate) struct Gc {
    /// Say what would go, and remove nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Keep what is derived only of runs that were written to within this time, like 30d, 12h or 2w
    #[arg(long, value_name = "TIME", value_parser = age_arg)]
    pub(crate) keep: Option<u64>,
    /// Keep fewer snapshots of states: it takes up to eight times as long to read one
    #[arg(long, value_enum)]
    pub(crate) snapshots: Option<SnapshotsChoice>,
}

/// How many snapshots are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SnapshotsChoice {
    /// Where the records since the last one outweigh the state four times.
    All,
    /// Where they outweigh it 32 times.
    Thin,
}

/// Reads a time like `30d` as milliseconds.
fn age_arg(text: &str) -> Result<u64, String> {
    let units = [('h', 3_600_000), ('d', 86_400_000), ('w', 604_800_000u64)];
    let parsed = units.iter().find_map(|(unit, ms)| {
        let number: u64 = text.strip_suffix(*unit)?.parse().ok()?;
        number.checked_mul(*ms)
    });
    parsed.ok_or_else(|| "a number of hours, days or weeks, like 12h, 30d or 2w".to_owned())
}

/// `doctor`
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Repair what follows from the log, and permissions of the key; never the log
    #[arg(long)]
    pub(crate) fix: bool,
    /// Write a report for others into a file: versions, sizes, counts and codes; no content, names, paths or keys
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) report: Option<String>,
}
