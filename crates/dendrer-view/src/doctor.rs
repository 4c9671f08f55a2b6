//! Whether an installation and its store are fit for work: a line for each thing that was looked at, and the next command.

use dendrer::care::check::{IndexFact, SignedFact, StoreFact, StoreFigures};
use dendrer::kernel::step::KERNEL_VERSION;
use dendrer::store::{FORMAT, IndexState, RunSummary, StoreError};
use dendrer_object::record::FORMAT_VERSION;
use dendrer_object::{Code, Value};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::problem::Problem;
use crate::quote::shell;
use crate::{count, document, mark, quote, thousands};

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
    /// What was found.
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

impl Answer for DoctorAnswer<'_> {
    fn document(&self) -> Value {
        let item = |check: &DoctorCheck| {
            Value::record([
                ("name", Value::from(check.name)),
                ("level", Value::from(check.level.word())),
                ("code", check.code.map_or(Value::Null, Value::from)),
                ("what", Value::from(check.what.as_str())),
                ("fixed", Value::from(check.fixed)),
                ("next", Value::array(check.next.iter().map(|word| Value::from(word.as_str())))),
            ])
        };
        document(
            "doctor",
            [
                ("level", Value::from(self.worst().word())),
                ("report", self.report.map_or(Value::Null, Value::from)),
                ("items", Value::array(self.checks.iter().map(item))),
            ],
        )
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

fn index_check(fact: &IndexFact) -> DoctorCheck {
    const NAME: &str = "index";
    let size = thousands(fact.size);
    let (code, what) = match &fact.state {
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
    let check = |check: &DoctorCheck| {
        Value::record([
            ("name", Value::from(check.name)),
            ("level", Value::from(check.level.word())),
            ("code", check.code.map_or(Value::Null, Value::from)),
            ("fixed", Value::from(check.fixed)),
        ])
    };
    let formats = [
        ("record", Value::from(FORMAT_VERSION)),
        ("bundle", Value::from(1u64)),
        ("store", Value::from(FORMAT)),
        ("kernel", Value::from(KERNEL_VERSION)),
    ];
    document(
        "report",
        [
            ("version", Value::from(origin.version)),
            ("os", Value::from(origin.os)),
            ("arch", Value::from(origin.arch)),
            ("formats", Value::record(formats)),
            ("checks", Value::array(checks.iter().map(check))),
            ("store", store.map_or(Value::Null, figures_json)),
        ],
    )
}

fn figures_json(store: &StoreFigures) -> Value {
    let (index, covered) = match store.index {
        IndexState::Ready(covered) => ("ready", Some(covered)),
        IndexState::Absent => ("absent", None),
        IndexState::Corrupt(_) => ("corrupt", None),
        IndexState::Newer(_) => ("newer", None),
        IndexState::Unreadable(_) => ("unreadable", None),
        IndexState::Unused => ("unused", None),
    };
    let sum = |number: fn(&RunSummary) -> u64| store.runs.iter().map(number).sum::<u64>();
    let items = store.runs.iter().zip(&store.names).map(|(run, name)| run_json(run, name));
    Value::record([
        ("format", Value::from(store.format)),
        ("backup", Value::from(store.is_backup)),
        ("records", Value::from(store.records)),
        ("segments", Value::from(store.segments.len() as u64)),
        ("log_bytes", Value::from(store.segments.iter().sum::<u64>())),
        ("index", Value::from(index)),
        ("index_covers", Value::from(covered)),
        ("index_bytes", Value::from(store.index_bytes)),
        ("snapshots", Value::from(store.snapshots)),
        ("snapshot_bytes", Value::from(store.snapshot_bytes)),
        ("verdicts", Value::from(store.verdicts)),
        ("trouble", store.trouble.map_or(Value::Null, Value::from)),
        ("signed_here", Value::from(store.signed_here)),
        ("runs", Value::from(store.runs.len() as u64)),
        ("transitions", Value::from(sum(|run| run.transitions))),
        ("refusals", Value::from(sum(|run| run.refusals))),
        ("items", Value::array(items)),
    ])
}

fn run_json(run: &RunSummary, name: &str) -> Value {
    Value::record([
        ("run", Value::from(name)),
        ("transitions", Value::from(run.transitions)),
        ("refusals", Value::from(run.refusals)),
        ("ended", Value::from(run.ended)),
        ("forked", Value::from(run.parent.is_some())),
    ])
}
