//! `dendrer doctor`: is this installation fit for work, and this store? One line for each thing that was looked at, with
//! what to do next. `--fix` repairs what follows from the log, and permissions; never the log.

use dendrer_object::Code;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use dendrer::care::check::{check_derived, check_log, figures};
use dendrer::care::tags;
use dendrer::repo::keys::{known_key, log_of};
use dendrer::repo::writer_secret;
use dendrer::source::clean_text;
use dendrer::store::embedded::{Embedded, Leftover, Options};
use dendrer::store::prelude::*;
use dendrer::store::{LogWriter, StoreError};
use dendrer::trust::Trust;
use dendrer::verify::judge::KnownKey;
use dendrer_view::doctor::{DoctorAnswer, DoctorCheck, ReportOrigin, check_of, report};
use dendrer_view::key::SetAsideAnswer;
use dendrer_view::problem::in_store;
use dendrer_view::{count, quote};

use crate::context;
use crate::context::{keys, mark};
use crate::demo::{self, making};
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::global::now_ms;
use crate::out::Out;
use crate::out::files;
use crate::out::files::Whole;

mod disk;

/// `doctor`
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Repair what follows from the log, and permissions of the key; never the log
    #[arg(long)]
    pub(crate) fix: bool,
    /// Write a report for others into a file: versions, sizes, counts and codes; no content, names, paths or keys
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["adopt", "set_aside"])]
    pub(crate) report: Option<String>,
    /// Sign what a writer without the secret of the log appended, and record that
    #[arg(long, requires = "why", conflicts_with_all = ["fix", "set_aside"])]
    pub(crate) adopt: bool,
    /// The size of the log with the last record that was listed (-n): --adopt signs these, or nothing
    #[arg(long, value_name = "SIZE", requires = "adopt")]
    pub(crate) to: Option<u64>,
    /// The reason, which is put on record
    #[arg(long, value_name = "TEXT", group = "why", requires = "adopt")]
    pub(crate) reason: Option<String>,
    /// Copy what a writer without the secret of the log appended into a new directory, and cut it off the log
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "fix")]
    pub(crate) set_aside: Option<PathBuf>,
    /// With --adopt or --set-aside: list the records, and change nothing
    #[arg(short = 'n', long, group = "why", conflicts_with_all = ["fix", "report"])]
    pub(crate) dry_run: bool,
}

/// Lists the groups without a tag, or signs them knowingly.
fn adopt(global: &Global, args: &Doctor, out: &mut Out) -> Result {
    let reason = args.reason.as_deref().filter(|_| !args.dry_run);
    let (Some(reason), Some(to)) = (reason, args.to) else {
        let listed = tags::list(&context::read_repo(global)?.0)?;
        if reason.is_none() || listed.untagged.records == 0 {
            return out.answer(&listed);
        }
        let to = listed.untagged.to.to_string();
        let what = "--adopt signs what was listed, and --to says up to which size that is";
        return Err(Failure::new(Code::E0106, what)
            .note("nothing was signed; look at the records first: dendrer doctor --adopt -n")
            .help(&["dendrer", "doctor", "--adopt", "--to", &to, "--reason", "TEXT"]));
    };
    let path = context::find(global)?;
    let repo = context::write_at(global, &path).map_err(mark::refused)?;
    let reason = clean_text(&repo, None, reason)?;
    let adopted = tags::adopt(&repo, to, &reason)?;
    context::close(repo)?;
    out.answer(&adopted)
}

/// Moves the groups without a tag out of the log.
fn set_aside(global: &Global, dir: &Path, dry_run: bool, out: &mut Out) -> Result {
    if std::fs::symlink_metadata(dir).is_ok() {
        return Err(Failure::new(Code::E0115, format!("{} is there already", dir.display()))
            .note("nothing was changed; name a directory that is not there"));
    }
    files::makes(dir)?;
    let (repo, _) = context::read_repo(global)?;
    if repo.signing_key()?.is_none() {
        return Err(dendrer::Error::from(StoreError::NoWriter).into());
    }
    let moved = tags::set_aside(&repo, (!dry_run).then_some(dir))?;
    out.answer(&SetAsideAnswer { moved, dir, dry_run })
}

pub(crate) fn run(global: &Global, args: &Doctor, out: &mut Out) -> Result {
    if args.adopt {
        return adopt(global, args, out);
    }
    if let Some(dir) = &args.set_aside {
        return set_aside(global, dir, args.dry_run, out);
    }
    if args.dry_run {
        return Err(Failure::new(
            Code::E0106,
            "-n is for --adopt and --set-aside: doctor alone changes nothing",
        ));
    }
    let mut checks = vec![
        DoctorCheck::ok(
            "version",
            format!("dendrer {} on {}", env!("CARGO_PKG_VERSION"), std::env::consts::OS),
        ),
        config(),
    ];
    if let Some(file) = args.report.as_deref() {
        if files::is_stdout(file) {
            return Err(Failure::new(
                Code::E0106,
                "the report is a file of its own: the answer goes to stdout",
            )
            .note("nothing was done; name a file"));
        }
        files::makes(Path::new(file))?;
        files::answer_to(file, global.key.as_deref(), keys::config_dir())?;
    }
    let trust = keys::trust(global);
    let mut found = find_store(global, &mut checks);
    if let Some(store) = &mut found {
        checks.extend(check_log(store, args.fix, &*trust)?.iter().map(check_of));
        checks.push(key(global.key.as_deref(), args.fix, store));
        checks.extend([key_change(store, &*trust), vault_key(store, &*trust)].into_iter().flatten());
        checks.push(tagged(store, &*trust));
        checks.extend(check_derived(store, args.fix)?.iter().map(check_of));
    }
    checks.extend(making::left(found.as_ref().map(Embedded::dir)).iter().map(interrupted_demo));
    checks.push(clock(found.as_ref()));
    checks.extend(disk::checks(found.as_ref().map_or(Path::new("."), Embedded::dir)));
    if let Some(file) = &args.report {
        let (version, os, arch) = (env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);
        let figures = found.as_ref().map(|store| figures(store, &*trust)).transpose()?;
        let report = report(ReportOrigin { version, os, arch }, &checks, figures.as_ref());
        let text = quote::json(&report) + "\n";
        let file = Path::new(file);
        let written = Whole::create(file).and_then(|mut whole| {
            whole.write_all(text.as_bytes())?;
            whole.finish()
        });
        written.map_err(|error| files::cannot_write(file, &error))?;
    }
    for check in &mut checks {
        check.next = in_store(std::mem::take(&mut check.next), global.store.as_deref());
    }
    out.answer(&DoctorAnswer { checks: &checks, report: args.report.as_deref() })
}

/// The folder where keys and what was seen of logs is kept.
fn config() -> DoctorCheck {
    const NAME: &str = "config";
    let Some(dir) = keys::config_dir() else {
        return DoctorCheck::warn(NAME, "no home directory, so keys and what was signed are kept nowhere")
            .code(Code::E0807)
            .next(&["dendrer", "init", "--key", "FILE"]);
    };
    let shown = dir.display();
    match std::fs::metadata(&dir) {
        Ok(about) if about.is_dir() => DoctorCheck::ok(NAME, format!("{shown}")),
        Ok(_) => DoctorCheck::fail(NAME, Code::E0801, format!("{shown} is no directory")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            DoctorCheck::ok(NAME, format!("{shown}, not there yet; the first store makes it"))
        }
        Err(error) => DoctorCheck::fail(NAME, Code::E0801, format!("{shown}: {error}")),
    }
}

/// Opens the store, or adds the reason why it cannot be opened.
fn find_store(global: &Global, checks: &mut Vec<DoctorCheck>) -> Option<Embedded> {
    const NAME: &str = "store";
    let path = match context::find(global) {
        Ok(path) => path,
        Err(failure) => {
            checks.push(DoctorCheck::warn(NAME, failure.told()).code(failure.code).next_of(failure));
            return None;
        }
    };
    if context::server::is_address(&path) {
        checks.extend(context::server::checks(global, &path));
        return None;
    }
    match Embedded::open(&path, Options::read()) {
        Ok(store) => {
            context::speak(global, &store, &path);
            Some(store)
        }
        Err(error) => {
            let code = error.code();
            let failure = Failure::from(error);
            let why = failure.place.first().map(|(_, why)| format!(": {why}")).unwrap_or_default();
            checks.push(DoctorCheck::fail(NAME, code, format!("{}{why}", failure.message)).next(&[
                "dendrer",
                "explain",
                code.as_str(),
            ]));
            None
        }
    }
}

/// Names what an interrupted demo left.
fn interrupted_demo(left: &Leftover) -> DoctorCheck {
    let Leftover { file, bytes } = left;
    let what = format!("{}: of a demo that was interrupted, {bytes} bytes", quote::escape(file));
    DoctorCheck::warn("leftovers", what).code(Code::E0801).next(&["dendrer", "gc"])
}

/// Whether the key of the log is here, and can be used.
fn key(given: Option<&str>, fix: bool, store: &Embedded) -> DoctorCheck {
    const NAME: &str = "key";
    let info = store.info();
    let Some(file) = keys::path_of(given, info.id) else {
        return DoctorCheck::warn(NAME, "no place for it: there is no home directory").code(Code::E0807);
    };
    let shown = file.display().to_string();
    let log = match log_of(store) {
        Ok(log) => log,
        Err(error) => return DoctorCheck::fail(NAME, error.code(), error.to_string()),
    };
    match keys::find(given, &log) {
        Ok(Some(_)) if !file.exists() && info.id == demo::STORE_ID => {
            DoctorCheck::ok(NAME, "that of the demo, which is public")
        }
        Ok(Some(_)) if !file.exists() => DoctorCheck::ok(NAME, "beside its place, as a change left it"),
        Ok(Some(_)) => private(fix, &file, "sign"),
        Ok(None) if file.exists() => private(fix, &file, "write"),
        Ok(None) => DoctorCheck::warn(
            NAME,
            "not here: without it, or a writer's secret, nothing is written; if it is lost, put another in its place",
        )
        .code(Code::E0804)
        .next(&["dendrer", "key", "recover", "--reason", "TEXT"]),
        Err(failure) => {
            let why = failure.place.first().map(|(_, why)| why.as_str()).unwrap_or_default();
            DoctorCheck::fail(NAME, failure.code, format!("{shown}: {why}")).next(&[
                "dendrer",
                "explain",
                failure.code.as_str(),
            ])
        }
    }
}

/// Whether a change of the key was stopped, or was made without the key that is known here.
fn key_change(store: &Embedded, trust: &dyn Trust) -> Option<DoctorCheck> {
    const NAME: &str = "key change";
    let found = || -> std::result::Result<Option<DoctorCheck>, dendrer::Error> {
        let (keys, id) = (store.keys()?, store.info().id);
        if let KnownKey::Without(position) = known_key(&keys, id, trust)? {
            let error = dendrer::Error::KeyChanged { position };
            let check = DoctorCheck::fail(NAME, error.code(), error.to_string());
            return Ok(Some(check.next(&["dendrer", "verify", "--all"])));
        }
        let Some(next) = trust.next_key(id)? else { return Ok(None) };
        let what = match next == *keys.now() {
            true => "was stopped after it was put on record: the next command that writes finishes it",
            false => "was stopped before it was put on record: the next command that writes takes it back",
        };
        Ok(Some(DoctorCheck::warn(NAME, what).code(Code::E0804)))
    };
    found().unwrap_or_else(|error| Some(DoctorCheck::fail(NAME, error.code(), error.to_string())))
}

/// Whether the key of the vault is here, where the store has encrypted values.
fn vault_key(store: &Embedded, trust: &dyn Trust) -> Option<DoctorCheck> {
    const NAME: &str = "vault";
    if store.secrets().is_ok_and(|names| names.is_empty()) {
        return None;
    }
    Some(match trust.vault_key(store.info().id) {
        Ok(Some(_)) => DoctorCheck::ok(NAME, "its key is here"),
        Ok(None) => DoctorCheck::warn(NAME, "its key is not here: no exact value can be read")
            .code(Code::E0465)
            .next(&["dendrer", "explain", Code::E0465.as_str()]),
        Err(error) => DoctorCheck::fail(NAME, error.code(), error.to_string()),
    })
}

/// Whether a writer without the secret of the log has appended to it.
fn tagged(store: &mut Embedded, trust: &dyn Trust) -> DoctorCheck {
    const NAME: &str = "tags";
    match writer_secret(trust, store) {
        Ok(Some(secret)) => store.set_writer(LogWriter::Secret(secret)),
        Ok(None) => {}
        Err(error) => return DoctorCheck::fail(NAME, error.code(), error.to_string()),
    }
    match store.untagged() {
        Ok(None) => DoctorCheck::ok(NAME, "not known: only the key, or a writer's secret, can tell"),
        Ok(Some(groups)) if groups.is_empty() => {
            DoctorCheck::ok(NAME, "each group behind the newest checkpoint is of a writer with the secret")
        }
        Ok(Some(groups)) => {
            let records: u64 = groups.iter().map(|group| group.end - group.start).sum();
            let (records, groups) =
                (count(records, "record", "records"), count(groups.len() as u64, "group", "groups"));
            let what =
                format!("{records} in {groups} of a writer without the secret; nothing goes behind them");
            DoctorCheck::fail(NAME, Code::E0814, what).next(&["dendrer", "doctor", "--adopt", "-n"])
        }
        Err(error) => DoctorCheck::fail(NAME, error.code(), error.to_string()),
    }
}

/// Whether no other user can read the key.
#[cfg(unix)]
fn private(fix: bool, file: &Path, what: &str) -> DoctorCheck {
    use std::os::unix::fs::PermissionsExt as _;
    const NAME: &str = "key";
    let shown = file.display().to_string();
    let mode = match std::fs::metadata(file) {
        Ok(about) => about.permissions().mode() & 0o777,
        Err(error) => return DoctorCheck::fail(NAME, Code::E0804, format!("{shown}: {error}")),
    };
    if mode & 0o077 == 0 {
        return DoctorCheck::ok(NAME, format!("{shown}, readable by you alone"));
    }
    if fix {
        return match std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)) {
            Ok(()) => DoctorCheck::fixed(
                NAME,
                format!("{shown}: mode {mode:o} is now 600; others could read it before"),
            ),
            Err(error) => DoctorCheck::fail(NAME, Code::E0801, format!("{shown}: {error}")),
        };
    }
    DoctorCheck::fail(
        NAME,
        Code::E0804,
        format!("{shown} has mode {mode:o}: others can read it, and {what} in your name"),
    )
    .next(&["chmod", "600", &shown])
}

#[cfg(not(unix))]
fn private(_: bool, file: &Path, _: &str) -> DoctorCheck {
    DoctorCheck::ok("key", file.display().to_string())
}

/// A clock that is behind the log stamps what is committed with the time of the newest record.
fn clock(store: Option<&Embedded>) -> DoctorCheck {
    const NAME: &str = "clock";
    let now = now_ms();
    let newest = store.and_then(|store| {
        let last = store.tree().size.checked_sub(1)?;
        Some(store.get(last).ok()??.header().ts)
    });
    let ahead = newest.map_or(0, |ts| i64::try_from(ts.ms()).unwrap_or(i64::MAX).saturating_sub(now));
    if ahead <= 1000 {
        return DoctorCheck::ok(NAME, "not behind the newest record");
    }
    let seconds = count(ahead.unsigned_abs() / 1000, "second", "seconds");
    DoctorCheck::warn(
        NAME,
        format!("{seconds} behind the newest record; what is committed now gets the time of that one"),
    )
}
