//! The checks of an installation and its store: a line for each, and the next command.

use dendrer::care::check::{IndexFact, SignedFact, StoreFact, StoreFigures};
use dendrer::store::{IndexState, RunSummary, StoreError};
use dendrer_object::{Code, Value, document};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::problem::Problem;
use crate::quote::shell;
use crate::version::FormatsObject;
use crate::{count, mark, quote, thousands};

/// Result of one check: good, a warning, a failure, or repaired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CheckLevel {
    /// Fit for work.
    Ok,
    /// Something to look at.
    Warn,
    /// Not fit for work.
    Fail,
}

impl CheckLevel {
    fn word(self) -> &'static str {
        match self {
            CheckLevel::Ok => "ok",
            CheckLevel::Warn => "warn",
            CheckLevel::Fail => "fail",
        }
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoctorCheck {
    /// Its name.
    pub name: &'static str,
    /// Result of the check.
    pub level: CheckLevel,
    /// The code under which `dendrer explain` knows the fault.
    pub code: Option<Code>,
    /// The finding.
    pub what: String,
    /// Whether it was repaired just now.
    pub fixed: bool,
    /// A command to type next.
    pub next: Vec<String>,
}

impl DoctorCheck {
    fn new(name: &'static str, level: CheckLevel, what: impl Into<String>) -> DoctorCheck {
        DoctorCheck { name, level, code: None, what: what.into(), fixed: false, next: Vec::new() }
    }

    /// A thing that is fit for work.
    pub fn ok(name: &'static str, what: impl Into<String>) -> DoctorCheck {
        DoctorCheck::new(name, CheckLevel::Ok, what)
    }

    /// A thing to look at.
    pub fn warn(name: &'static str, what: impl Into<String>) -> DoctorCheck {
        DoctorCheck::new(name, CheckLevel::Warn, what)
    }

    /// A thing that is not fit for work.
    pub fn fail(name: &'static str, code: Code, what: impl Into<String>) -> DoctorCheck {
        DoctorCheck::new(name, CheckLevel::Fail, what).code(code)
    }

    /// A thing that was repaired.
    pub fn fixed(name: &'static str, what: impl Into<String>) -> DoctorCheck {
        DoctorCheck { fixed: true, ..DoctorCheck::ok(name, what) }
    }

    /// Adds a code.
    #[must_use]
    pub fn code(self, code: Code) -> DoctorCheck {
        DoctorCheck { code: Some(code), ..self }
    }

    /// Adds the next command.
    #[must_use]
    pub fn next(self, argv: &[&str]) -> DoctorCheck {
        DoctorCheck { next: argv.iter().map(|word| (*word).to_owned()).collect(), ..self }
    }

    /// Adds the first command that helps with a problem, or the one that explains it.
    #[must_use]
    pub fn next_of(self, problem: Problem) -> DoctorCheck {
        match problem.help.into_iter().next() {
            Some(next) => DoctorCheck { next, ..self },
            None => self.next(&["dendrer", "explain", problem.code.as_str()]),
        }
    }
}

/// Everything that was looked at.
#[derive(Debug, Clone, Copy)]
pub struct DoctorAnswer<'a> {
    /// In the order of the answer.
    pub checks: &'a [DoctorCheck],
    /// The file that the report was written to.
    pub report: Option<&'a str>,
}

impl DoctorAnswer<'_> {
    fn worst(&self) -> CheckLevel {
        self.checks.iter().map(|check| check.level).max().unwrap_or(CheckLevel::Ok)
    }
}

document! {
    /// The checks of an installation and its store
    pub object DoctorDocument: "doctor" (answer: &DoctorAnswer<'_>) {
        /// The worst result
        level: ["ok" | "warn" | "fail"] = answer.worst().word(),
        /// The file that the report was written to
        report: Option<&str> = answer.report,
        /// The checks
        items: Vec<CheckObject> = answer.checks.iter().map(CheckObject::of).collect(),
    }

    /// A check of an installation or its store
    object CheckObject(check: &DoctorCheck) {
        ..CheckResult = CheckResult::of(check),
        /// The finding in words
        what: &str = &check.what,
        /// The command to type next, as arguments; empty if it is missing
        next: &[String] = &check.next,
    }

    /// The result of a check, without words that may name a file or a run
    object CheckResult(check: &DoctorCheck) {
        /// The name of the check
        name: &str = check.name,
        /// The result
        level: ["ok" | "warn" | "fail"] = check.level.word(),
        /// The code of the fault
        code: Option<Code> = check.code,
        /// Whether the fault was repaired just now
        fixed: bool = check.fixed,
    }

    /// The report of `dendrer doctor --report`: numbers, words of the program, and digests of names under a
    /// salt that is not kept
    pub object ReportDocument: "report" (
        origin: ReportOrigin, results: &[DoctorCheck], figures: Option<&StoreFigures>,
    ) {
        /// The version of the program
        version: &str = origin.version,
        /// The operating system
        os: &str = origin.os,
        /// The processor
        arch: &str = origin.arch,
        /// The versions of the formats that are written
        formats: FormatsObject = FormatsObject::of(),
        /// The checks
        checks: Vec<CheckResult> = results.iter().map(CheckResult::of).collect(),
        /// The figures of the store; null if none was opened
        store: Option<FiguresObject> = figures.map(FiguresObject::of),
    }

    /// The figures of a store
    object FiguresObject(store: &StoreFigures) {
        let (state, covered) = match store.index {
            IndexState::Ready(covered) => ("ready", Some(covered)),
            IndexState::Absent => ("absent", None),
            IndexState::Corrupt(_) => ("corrupt", None),
            IndexState::Newer(_) => ("newer", None),
            IndexState::Unreadable(_) | IndexState::Locked => ("unreadable", None),
            IndexState::Unused => ("unused", None),
        };
        let sum = |number: fn(&RunSummary) -> u64| store.runs.iter().map(number).sum::<u64>();
        let rows = store.runs.iter().zip(&store.names).map(|(run, name)| RunFigures::of(run, name));
        /// The format of the store
        format: u64 = store.format,
        /// Whether the store is a backup
        backup: bool = store.is_backup,
        /// The number of records
        records: u64 = store.records,
        /// The number of segments of the log
        segments: usize = store.segments.len(),
        /// The number of bytes of the log
        log_bytes: u64 = store.segments.iter().sum(),
        /// The state of the index
        index: ["ready" | "absent" | "corrupt" | "newer" | "unreadable" | "unused"] = state,
        /// The number of records that the index covers
        index_covers: Option<u64> = covered,
        /// The number of bytes of the index
        index_bytes: u64 = store.index_bytes,
        /// The number of snapshots
        snapshots: u64 = store.snapshots,
        /// The number of bytes of the snapshots
        snapshot_bytes: u64 = store.snapshot_bytes,
        /// The number of kept answers of predicates
        verdicts: u64 = store.verdicts,
        /// The code of a fault of the log
        trouble: Option<Code> = store.trouble,
        /// The number of records that were signed on this machine, if it is known
        signed_here: Option<u64> = store.signed_here,
        /// The number of runs
        runs: usize = store.runs.len(),
        /// The number of transitions
        transitions: u64 = sum(|run| run.transitions),
        /// The number of refusals
        refusals: u64 = sum(|run| run.refusals),
        /// The first runs
        items: Vec<RunFigures> = rows.collect(),
    }

    /// The figures of a run
    object RunFigures(summary: &RunSummary, digest: &str) {
        /// The digest of the name, under a salt that is not kept
        run: &str = digest,
        /// The number of transitions
        transitions: u64 = summary.transitions,
        /// The number of refusals
        refusals: u64 = summary.refusals,
        /// Whether the run was closed
        ended: bool = summary.ended,
        /// Whether the run is a fork
        forked: bool = summary.parent.is_some(),
    }
}

impl Answer for DoctorAnswer<'_> {
    fn document(&self) -> Value {
        DoctorDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let mut lines = Vec::new();
        for check in self.checks {
            let (style, word) = match (check.level, check.fixed) {
                (_, true) => (Style::Good, "fixed"),
                (CheckLevel::Ok, _) => (Style::Good, "ok"),
                (CheckLevel::Warn, _) => (Style::Warn, "warn"),
                (CheckLevel::Fail, _) => (Style::Bad, "FAIL"),
            };
            let code = check.code.map(|code| format!(" [{code}]")).unwrap_or_default();
            let what = quote::escape(&check.what);
            lines.push(
                Line::styled(style, format!("{word:<5}")).then(format!("  {:<9}  {what}{code}", check.name)),
            );
            if !check.next.is_empty() {
                lines.push(format!("                  next: {}", shell(&check.next)).into());
            }
        }
        lines.extend(self.report.map(|file| {
            Line::note(format!(
                "note: the report in {} has no content, names, paths or keys; read it before you hand it over",
                quote::escape(file)
            ))
        }));
        lines
    }

    fn end(&self) -> End {
        // One of these codes is of the index, which is derived.
        let is_of_the_log = |code: &Code| code.is_of_record() && *code != Code::E0309;
        let mut failed = self.checks.iter().filter(|check| check.level == CheckLevel::Fail);
        match failed.clone().filter_map(|check| check.code).find(is_of_the_log) {
            Some(code) => End::Problem(code),
            None if failed.next().is_some() => End::No,
            None => End::Answered,
        }
    }
}

/// Returns a fact about a store in words.
pub fn check_of(fact: &StoreFact) -> DoctorCheck {
    match fact {
        StoreFact::Mended(Ok(size)) => DoctorCheck::fixed(
            "checkpoint",
            format!(
                "taken from log/checkpoint, which is signed and says the first {} of this log",
                records(*size)
            ),
        ),
        StoreFact::Mended(Err(error)) => DoctorCheck::fail(
            "checkpoint",
            error.code(),
            format!("could not be mended: {}", with_cause(error)),
        ),
        StoreFact::Opened { path, tree, is_backup, is_closed } => {
            let shown = path.display().to_string();
            let kind = if *is_backup { " (a backup)" } else { "" };
            let what = format!("{shown}: {}, root {}{kind}", records(tree.size), tree.root.short());
            match is_closed {
                true => DoctorCheck::warn("store", format!("{what}: {}", mark::CLOSED))
                    .code(Code::E0806)
                    .next(&["dendrer", "restore", &shown, "DIR"]),
                false => DoctorCheck::ok("store", what),
            }
        }
        StoreFact::Hidden { path, mark } => {
            DoctorCheck::fail("log", Code::E0307, mark::hides(mark).unwrap_or_default())
                .next(&mark::unmark(path).each_ref().map(String::as_str))
        }
        StoreFact::OtherBackup { made, found } => DoctorCheck::fail(
            "log",
            Code::E0307,
            format!("the backup has {}, and had {} when it was made", records(found.size), made.size),
        )
        .next(&["dendrer", "fsck"]),
        StoreFact::Log { trouble, can_mend } => log_check(trouble.as_deref(), *can_mend),
        StoreFact::UnfinishedBackup(found) => {
            DoctorCheck::warn("backup", mark::unfinished(found).unwrap_or_default())
        }
        StoreFact::Signed(fact) => signed_check(fact),
        StoreFact::Index(fact) => index_check(fact),
        StoreFact::Lock(Ok(true)) => DoctorCheck::ok("lock", "free"),
        StoreFact::Lock(Ok(false)) => DoctorCheck::ok("lock", "held: somebody is writing at this moment"),
        StoreFact::Lock(Err(error)) => DoctorCheck::warn("lock", with_cause(error)).code(error.code()),
        StoreFact::Leftovers { files, removed } => {
            const NAME: &str = "leftovers";
            let bytes = files.iter().map(|file| file.bytes).sum::<u64>();
            let many = count(files.len() as u64, "file", "files");
            let what = format!("{many} of interrupted work, {}", count(bytes, "byte", "bytes"));
            match removed {
                _ if files.is_empty() => DoctorCheck::ok(NAME, "none"),
                None => DoctorCheck::warn(NAME, what).next(&["dendrer", "doctor", "--fix"]),
                Some(Ok(())) => DoctorCheck::fixed(NAME, format!("{what}: removed")),
                Some(Err(error)) => DoctorCheck::fail(
                    NAME,
                    error.code(),
                    format!("{what}, and could not be removed: {}", with_cause(error)),
                ),
            }
        }
        StoreFact::Foreign(files) => {
            let first = files.first().map_or("", |file| &file.file);
            let (more, are) = match files.len().saturating_sub(1) {
                0 => (String::new(), "is"),
                others => (format!(" and {} more", thousands(others as u64)), "are"),
            };
            DoctorCheck::warn("files", format!("{first}{more} {are} no file of a store"))
                .next(&["dendrer", "fsck"])
        }
    }
}

fn records(size: u64) -> String {
    count(size, "record", "records")
}

/// Returns an error and its cause on one line.
fn with_cause(error: &StoreError) -> String {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}

fn log_check(trouble: Option<&StoreError>, can_mend: bool) -> DoctorCheck {
    const NAME: &str = "log";
    let Some(error) = trouble else {
        return DoctorCheck::ok(NAME, "reads to its end and extends what was signed; fsck reads all of it");
    };
    let check = DoctorCheck::fail(NAME, error.code(), error.to_string());
    match error {
        StoreError::Lost(_) => check.next(&["dendrer", "restore", "BACKUP", "--replace"]),
        _ if can_mend => check.next(&["dendrer", "doctor", "--fix"]),
        _ => check.next(&["dendrer", "fsck"]),
    }
}

fn signed_check(fact: &SignedFact) -> DoctorCheck {
    const NAME: &str = "signed";
    match fact {
        SignedFact::Unknown(error) => {
            let problem = Problem::from_trust(error);
            DoctorCheck::fail(NAME, problem.code, problem.told()).next_of(problem)
        }
        SignedFact::SinceBackup(signed) => {
            DoctorCheck::ok(NAME, format!("{} here since this backup was made", records(*signed)))
        }
        SignedFact::Nothing => DoctorCheck::ok(NAME, "nothing was signed here yet"),
        SignedFact::UpTo(signed) => DoctorCheck::ok(NAME, format!("up to {}", records(*signed))),
        SignedFact::Differs { signed, shorter } => {
            let what = match shorter {
                Some(size) => format!("{} were signed here, and the log has {size}", records(*signed)),
                None => format!("the first {signed} records are not those that were signed here"),
            };
            DoctorCheck::fail(NAME, Code::E0307, what).next(&["dendrer", "verify", "--all"])
        }
    }
}

/// The check of an index that another program has locked.
fn locked_check(fact: &IndexFact) -> DoctorCheck {
    let size = thousands(fact.size);
    let what = match fact.state {
        IndexState::Ready(covered) => format!(
            "covers {} of {size}, and another program has it locked: {} are read from the log until it lets go",
            thousands(covered),
            thousands(fact.size.saturating_sub(covered))
        ),
        _ => format!("locked by another program: not used, and {size} are read from the log"),
    };
    DoctorCheck::warn("index", what).code(Code::E0802)
}

fn index_check(fact: &IndexFact) -> DoctorCheck {
    const NAME: &str = "index";
    let size = thousands(fact.size);
    let (code, what) = match &fact.state {
        IndexState::Locked => return locked_check(fact),
        IndexState::Ready(_) if fact.is_locked => return locked_check(fact),
        IndexState::Ready(covered) if !fact.is_wanting => {
            return DoctorCheck::ok(NAME, format!("covers {} of {size}", thousands(*covered)));
        }
        IndexState::Absent if fact.is_backup => {
            return DoctorCheck::ok(NAME, "none: a backup has none");
        }
        IndexState::Absent if !fact.is_wanting => {
            return DoctorCheck::ok(NAME, "none yet; a small store needs none");
        }
        IndexState::Newer(version) => {
            let what = format!("of a newer version ({version}), not used and not touched");
            return DoctorCheck::warn(NAME, what).code(Code::E0803);
        }
        IndexState::Unreadable(why) => {
            return DoctorCheck::warn(NAME, format!("cannot be opened here ({why})")).code(Code::E0801);
        }
        IndexState::Unused => {
            return DoctorCheck::ok(NAME, "not used as long as the log is in trouble");
        }
        IndexState::Ready(covered) => {
            (Code::E0309, format!("covers {} of {size}: the rest is read from the log", thousands(*covered)))
        }
        IndexState::Absent => (Code::E0309, format!("none, so {size} are read from the log each time")),
        IndexState::Corrupt(why) if fact.is_damaged => (Code::E0809, format!("damaged ({why})")),
        IndexState::Corrupt(why) => (Code::E0309, format!("does not open ({why})")),
    };
    match &fact.rebuilt {
        None => DoctorCheck::warn(NAME, what).code(code).next(&["dendrer", "doctor", "--fix"]),
        Some(Ok((covered, size))) if covered < size => DoctorCheck::warn(
            NAME,
            format!(
                "made again as far as {} of {}: what follows in the log has no place in an index",
                thousands(*covered),
                thousands(*size)
            ),
        )
        .code(Code::E0309)
        .next(&["dendrer", "verify", "--all"]),
        Some(Ok((covered, _))) => {
            DoctorCheck::fixed(NAME, format!("made again from the log, covers {}", thousands(*covered)))
        }
        Some(Err(error)) => DoctorCheck::fail(
            NAME,
            Code::E0309,
            format!("{what}, and could not be made again: {}", with_cause(error)),
        ),
    }
}

/// The program and the machine that a report is of.
#[derive(Debug, Clone, Copy)]
pub struct ReportOrigin {
    /// Version of the program.
    pub version: &'static str,
    /// Operating system.
    pub os: &'static str,
    /// Processor.
    pub arch: &'static str,
}

/// Returns the report that is handed to others: numbers, words of this program, and digests of names under a salt that is not kept.
/// Messages stay out of it, because they have names and paths.
pub fn report(origin: ReportOrigin, checks: &[DoctorCheck], store: Option<&StoreFigures>) -> Value {
    ReportDocument::of(origin, checks, store).into()
}
