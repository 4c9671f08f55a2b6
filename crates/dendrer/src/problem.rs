//! A problem: the code, the sentence and the help of a question or a command that fails.
//!
//! Looks at no file. A caller that knows more of the place adds notes and help. `dendrer-view` shows it as text and as
//! `dendrer.error/1`.

use std::ops::Range;
use std::path::Path;

use dendrer_kernel::expr::{ExprError, Span};
use dendrer_kernel::replay::ReplayError;
use dendrer_kernel::step::Broken;
use dendrer_object::text::{count, list};
use dendrer_object::{Code, RunName, Value};
use dendrer_store::StoreError;

use crate::error::Error;
use crate::error::{AddressError, GraphRefused, Limited, NameKind, NoStore, TrustError, Undeclared};

/// A problem on its way to the user. At most three help lines are shown; each is a command that can be pasted.
#[derive(Debug, Clone)]
pub struct Problem {
    /// The code.
    pub code: Code,
    /// One sentence that names the object and the fact. Escaped when shown.
    pub message: Box<str>,
    /// The place, as names and values.
    pub place: Vec<(String, String)>,
    /// The place in a text that is drawn with a caret.
    pub marked: Option<Box<MarkedText>>,
    /// Notes, such as what was not changed.
    pub notes: Vec<String>,
    /// Commands, as arguments.
    pub help: Vec<Vec<String>>,
    /// Whether the command changed anything before it failed.
    pub changed: bool,
    /// Items that were recorded before the command failed.
    pub items: Option<Box<Value>>,
    /// The rules that the state of a run that was not begun breaks, each with the values that decide.
    pub violations: Option<Box<Value>>,
}

/// A place in one line of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedText {
    /// The line.
    pub line: String,
    /// Bytes of the line.
    pub place: Range<usize>,
}

impl MarkedText {
    /// Returns the line of a text in which a span begins; `None` if the text has no such place.
    pub fn of(text: &str, span: Span) -> Option<MarkedText> {
        let start = (span.start as usize).min(text.len());
        let before = text.get(..start)?;
        let begin = before.rfind('\n').map_or(0, |at| at + 1);
        let line = text[begin..].lines().next().unwrap_or_default();
        let place = start - begin..(span.end as usize).max(start).saturating_sub(begin).min(line.len());
        (!text.is_empty() && line.get(place.clone()).is_some())
            .then(|| MarkedText { line: line.to_owned(), place })
    }

    /// Returns a line with the word at a character, counted from 1; `None` if the line is empty.
    pub fn at(line: &str, column: usize) -> Option<MarkedText> {
        let start = line.char_indices().nth(column.saturating_sub(1)).map_or(line.len(), |(at, _)| at);
        let rest = &line[start..];
        let is_part = |c: char| c == '_' || c == '.' || c.is_alphanumeric();
        let size = match rest.find(|c| !is_part(c)) {
            Some(0) => rest.chars().next().map_or(0, char::len_utf8),
            Some(size) => size,
            None => rest.len(),
        };
        (!line.trim().is_empty()).then(|| MarkedText { line: line.to_owned(), place: start..start + size })
    }
}

/// Note on a store that refuses to be written.
pub const READS_ONLY: &str = "the store is opened for reading only; nothing was changed";

impl Problem {
    /// Returns a problem with a code.
    pub fn new(code: Code, message: impl Into<String>) -> Problem {
        Problem {
            code,
            message: message.into().into(),
            place: Vec::new(),
            marked: None,
            notes: Vec::new(),
            help: Vec::new(),
            changed: false,
            items: None,
            violations: None,
        }
    }

    /// Returns the problem of a store error, with help.
    pub fn of(error: &StoreError) -> Problem {
        store_problem(Problem::new(error.code(), error.to_string()), error)
    }

    /// Returns the problem of an error that its owner keeps: with place and help if it is one of the store, of keys, or of another
    /// log than the one that was signed here.
    pub fn of_error(error: &Error) -> Problem {
        let problem = Problem::new(error.code(), error.to_string());
        match error {
            Error::BeginsViolated { violations, unjudged, .. } => {
                let all = violations.iter().chain(unjudged);
                let listed = Value::array(all.clone().map(Broken::to_value));
                let problem = all.fold(problem, |problem, broken| {
                    let values = broken.values.iter().map(|(path, value)| {
                        format!("{} = {}", path.dotted(), value.as_ref().map_or("-".to_owned(), Value::to_string))
                    });
                    problem.at(&broken.predicate, values.collect::<Vec<_>>().join(", "))
                });
                Problem { violations: Some(Box::new(listed)), ..problem }
                    .note("nothing was begun; --although REASON begins it all the same, and puts the reason on record")
            }
            Error::Graph(GraphRefused::Denied { path, call, .. }) => {
                problem.at("path", path.as_str()).at("call", call.as_str()).at("status", "denied")
            }
            Error::Store(error) => store_problem(problem, error),
            Error::Trust(error) => trust_problem(problem, error),
            Error::KeyChanged { .. } => problem
                .note("nothing was written; if the owner lost the key, bring the new one: --key FILE")
                .help(&["dendrer", "verify", "--all"]),
            Error::KeyIsHere => problem.note("nothing was written").help(&["dendrer", "key", "rotate"]),
            Error::NotRevocable { .. } => problem.note("nothing was written").help(&["dendrer", "key", "show"]),
            Error::NotContained { .. } => problem.note("nothing was written"),
            Error::AnotherLog { why, committed } => problem
                .at("why", why.to_string())
                .note(match committed {
                    false => "nothing was committed: what follows would be a second history",
                    true => "what was committed stands in this copy, and is not signed",
                })
                .note("if an older copy is meant to go on, give it another identity: make a new store and import from it"),
            _ => problem,
        }
    }

    /// The words for a key or a head that cannot be read.
    pub fn from_trust(error: &TrustError) -> Problem {
        trust_problem(Problem::new(error.code(), error.to_string()), error)
    }

    /// Adds a name and a value to the place.
    pub fn at(mut self, name: &str, value: impl Into<String>) -> Problem {
        self.place.push((name.to_owned(), value.into()));
        self
    }

    /// Adds the place in a text.
    pub fn marked(mut self, marked: Option<MarkedText>) -> Problem {
        self.marked = marked.map(Box::new);
        self
    }

    /// Adds a note.
    pub fn note(mut self, note: impl Into<String>) -> Problem {
        self.notes.push(note.into());
        self
    }

    /// Adds a command that helps.
    pub fn help(mut self, argv: &[&str]) -> Problem {
        self.help.push(argv.iter().map(|word| (*word).to_owned()).collect());
        self
    }

    /// Turns the names of runs in the help into addresses in a bundle file, as [`in_bundle`] does.
    pub fn help_in(mut self, path: &str, runs: &[RunName]) -> Problem {
        self.help = self.help.into_iter().map(|argv| in_bundle(argv, path, runs)).collect();
        self
    }

    /// Returns the problem of a log that is damaged, if something is not found in it: it may be in the missing part.
    pub fn of_damaged_log(self, code: Code) -> Problem {
        Problem::new(code, self.message)
            .note("the log is not what it was; what is asked for may be in what is missing")
            .help(&["dendrer", "verify", "--all"])
    }

    /// Adds the named store to the help, as [`in_store`] does.
    pub fn help_of(mut self, store: Option<&str>) -> Problem {
        self.help = self.help.into_iter().map(|argv| in_store(argv, store)).collect();
        self
    }

    /// Returns message and place in one line.
    pub fn told(&self) -> String {
        let whys: String = self.place.iter().map(|(name, why)| format!(" ({name}: {why})")).collect();
        format!("{}{whys}", self.message)
    }
}

/// Turns the names of runs in a command into addresses in a bundle file: pasted as it is, the command would read the
/// store, which may be missing or have another run of that name.
pub fn in_bundle(mut argv: Vec<String>, path: &str, runs: &[RunName]) -> Vec<String> {
    let is_run =
        |word: &str| runs.iter().any(|run| run.as_str() == word.split('@').next().unwrap_or_default());
    for word in argv.iter_mut().skip(2).filter(|word| is_run(word)) {
        *word = format!("{path}#{word}");
    }
    if argv.get(1).is_some_and(|verb| verb == "runs") && argv.len() == 2 {
        argv.push(path.to_owned());
    }
    argv
}

/// Verbs that read no store, or name it in another way, and `key`: its help is for the machine that has the key.
const WITHOUT_STORE: [&str; 9] =
    ["completions", "demo", "explain", "help", "init", "key", "man", "restore", "schema"];

/// Adds `--store` to a command: pasted without it, the command would read the store of the current directory.
pub fn in_store(mut argv: Vec<String>, store: Option<&str>) -> Vec<String> {
    let asks = argv.first().is_some_and(|program| program == "dendrer")
        && argv.get(1).is_some_and(|verb| !WITHOUT_STORE.contains(&verb.as_str()))
        && !argv.iter().any(|word| word == "--store" || word == "--help");
    // A command that names a bundle has it as an argument already.
    if let Some(store) = store.filter(|store| asks && !argv.iter().any(|word| word == store)) {
        argv.extend(["--store".to_owned(), store.to_owned()]);
    }
    argv
}

/// Returns the tick of a name that is a run, a mark and a tick, such as `shop/22`.
fn tick_of<'n>(name: &'n str, run: &str) -> Option<&'n str> {
    let tick = name.strip_prefix(run)?.strip_prefix(['/', ':', '#', '.'])?;
    (!tick.is_empty() && tick.bytes().all(|c| c.is_ascii_digit())).then_some(tick)
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        let message = match &error {
            Error::Extension(error) => error.faults.first().map(ToString::to_string).unwrap_or_default(),
            error => error.to_string(),
        };
        let problem = Problem::new(error.code(), message);
        match error {
            Error::NoRun { run, near: Some(near) } if tick_of(&run, near.as_str()).is_some() => {
                let address = format!("{near}@{}", tick_of(&run, near.as_str()).unwrap_or_default());
                problem.note(format!("did you mean {address}?")).help(&["dendrer", "show", &address])
            }
            Error::NoRun { near: Some(near), .. } => {
                problem.note(format!("did you mean {near}?")).help(&["dendrer", "log", near.as_str()])
            }
            Error::NoRun { .. } => problem.help(&["dendrer", "runs"]),
            Error::Graph(GraphRefused::NotGraph(run)) => problem
                .note("dendrer graph frontier lists the requests and answers of any run")
                .help(&["dendrer", "graph", "frontier", run.as_str()]),
            Error::Undeclared(name) => undeclared(problem, &name),
            Error::NoTick { run, tip, .. } => problem.help(&["dendrer", "show", &format!("{run}@{tip}")]),
            Error::Extension(error) => {
                let others = error.faults.iter().skip(1);
                let problem =
                    others.fold(problem, |problem, fault| problem.note(format!("{}: {fault}", fault.code())));
                // A signature mends E0423 alone.
                match error.faults.iter().all(|fault| fault.code() == Code::E0423) {
                    true => problem.at("to sign", error.text).note(
                        "an approver signs with --approver-key FILE, or hands over a signed note for --signature FILE",
                    ),
                    false => problem,
                }
                .note("nothing was changed")
            }
            Error::IndexDiffers { .. } => problem
                .note("nothing of the log is lost: the index is derived from it")
                .help(&["dendrer", "doctor", "--fix"]),
            Error::Imported { run } => problem
                .note("nothing was committed; go on in a fork of it, or in a run that is reduced from it")
                .help(&["dendrer", "fork", run.as_str(), "--from", "tip"])
                .help(&["dendrer", "reduce", run.as_str(), "--pack", "FILE", "--as", "NEW"]),
            Error::Stopped(limited) => stopped(problem, &limited),
            Error::Start(error) if error.code() == Code::E0604 => {
                problem.note("stages 0 to 2 need less; nothing was committed")
            }
            Error::OfCasebook { run } => {
                problem.note("nothing was changed").help(&["dendrer", "log", run.as_str()])
            }
            Error::NoAnswer { run, tick, .. } => problem
                .note("nothing was changed; an answer that can be replaced stands behind the fork")
                .help(&["dendrer", "log", run.as_str(), "--type", "action.result,observation.add"])
                .help(&["dendrer", "show", &format!("{run}@{tick}")]),
            Error::OtherEngine { run, .. } | Error::EnginesDiffer { run, .. } => problem
                .note("nothing was changed; reduce the run again under the other pack, and go on from what comes of it")
                .help(&["dendrer", "reduce", run.as_str(), "--pack", "FILE", "--as", "NEW"]),
            Error::NoContracts { run } => no_pack(problem, run.as_str()),
            Error::NotImportable { run, .. } => problem
                .note("nothing was changed; choose a tick that an agent or its runtime wrote")
                .help(&["dendrer", "log", run.as_str()]),
            Error::Address(error) => address_problem(problem, &error),
            Error::IdWithoutTick { id, .. } => problem.help(&["dendrer", "show", &id.short()]),
            Error::Removed { .. } => problem.note("nothing was recorded"),
            Error::SeveralRuns { runs } => {
                let names: Vec<&str> = runs.iter().map(RunName::as_str).collect();
                problem.at("runs", names.join(", "))
            }
            Error::SeveralRecords { ids, .. } => {
                let ids: Vec<String> = ids.iter().map(|id| id.short()).collect();
                problem.at("ids", ids.join(", "))
            }
            Error::EmptyStore => problem.help(&["dendrer", "demo"]),
            Error::NoOnset { run, is_recorded: false } => problem.help(&[
                "dendrer",
                "bisect",
                run.as_str(),
                "--predicate",
                "kernel.policy_compliant",
                "--record",
            ]),
            Error::NoLabel { .. } => problem.help(&["dendrer", "label"]),
            Error::LabelElsewhere { label, .. } => problem.help(&["dendrer", "show", &label]),
            Error::NoStore(error) => no_store(problem, *error),
            Error::NotSigned(error) => trust_problem(problem, &error)
                .note("what was committed stands in the log, and is not signed; the next commit signs it"),
            Error::Unwritable(error) => match &*error {
                StoreError::ReadOnly { why } => {
                    Problem::new(Code::E0805, "the store is open for reading only").at("cause", why.clone())
                }
                error @ (StoreError::Damaged(_) | StoreError::Lost(_)) => Problem::of(error),
                error => Problem::of(error).note(READS_ONLY),
            },
            Error::Expr(error) => expr_problem(&error),
            error => Problem::of_error(&error),
        }
    }
}

/// Suggests the name that was meant, or lists those that exist.
fn undeclared(problem: Problem, name: &Undeclared) -> Problem {
    let run = name.runs.first().map_or("@", String::as_str);
    let problem = match (&name.near, signal(&name.name).filter(|_| name.kind == NameKind::Anomaly)) {
        (_, Some((said, verb))) => problem.note(said).help(&[&["dendrer"], verb, &[run]].concat()),
        (Some(near), None) => problem.note(format!("did you mean {near}?")),
        (None, None) => match list(&name.known, NAMES_SHOWN) {
            Some(known) => problem.note(format!("there are {known}")),
            None => problem,
        },
    };
    match name.kind {
        NameKind::Place => problem.help(&["dendrer", "state", run, "--depth", "1"]),
        NameKind::Type | NameKind::Agent => problem.help(&["dendrer", "log", run]),
        NameKind::Anomaly => problem.help(&["dendrer", "log", run, "--anomalies"]),
    }
}

/// Names that a message lists at most.
const NAMES_SHOWN: usize = 12;

/// The signals of the dendrer paper (4.3) that no transition carries, each with the verb that finds them.
fn signal(kind: &str) -> Option<(&'static str, &'static [&'static str])> {
    Some(match kind {
        "sequence_gap" => ("a gap in the sequence makes no run: verify names the tick", &["verify"]),
        "replay_divergence" | "reducer_divergence" | "reducer_nondeterminism" => (
            "a reducer that diverges is found by replaying, and noted in no transition",
            &["replay", "--detect"],
        ),
        _ => return None,
    })
}

fn address_problem(problem: Problem, error: &AddressError) -> Problem {
    match error {
        AddressError::NotAnAddress(_) => {
            problem.note("write RUN, RUN@TICK, RUN~3, RUN@tip, RUN@fork, RUN@LABEL, file.dnd or file.html")
        }
        AddressError::Several(text) => problem.help(&["dendrer", "log", text]),
        AddressError::NotARange(_) => problem.note("write RUN@FROM..TO, like run@10..12 or run@10..tip"),
        AddressError::NotAPath(_) => problem.note("write a.b[2] or /a/b/2"),
        AddressError::NoRefusal { run, .. } => problem.help(&["dendrer", "log", run.as_str(), "--refusals"]),
        AddressError::RefusalWithoutTick { run, number } => {
            problem.help(&["dendrer", "show", &format!("{run}@refused:{number}")])
        }
        _ => problem,
    }
}

impl From<AddressError> for Problem {
    fn from(error: AddressError) -> Problem {
        Error::from(error).into()
    }
}

fn no_store(problem: Problem, error: NoStore) -> Problem {
    let shown = |path: &Path| path.display().to_string();
    match error {
        NoStore::Nowhere { .. } => problem.help(&["dendrer", "init"]).help(&["dendrer", "demo"]),
        NoStore::Interrupted { dir, place, restored, replaced, searched } => {
            let problem = restored.iter().fold(problem, |problem, path| problem.at("restored", shown(path)));
            let problem = replaced.iter().fold(problem, |problem, path| problem.at("replaced", shown(path)));
            let problem = problem.note("run the restore again, or put the store back that was there").help(&[
                "dendrer",
                "restore",
                "BACKUP",
                &shown(&dir),
                "--replace",
            ]);
            let problem = replaced
                .iter()
                .fold(problem, |problem, path| problem.help(&["mv", &shown(path), &shown(&place)]));
            if searched { problem.note("no store further up was looked for") } else { problem }
        }
        NoStore::Hidden { why, .. } => {
            problem.at("cause", why).note("no store further up was looked for; --store names one")
        }
        NoStore::IsFile { name } if name.ends_with(".dnd") || name.ends_with(".html") => problem
            .note("a bundle stands in place of a run and needs no store: FILE.dnd, FILE.dnd@TICK or FILE.dnd#RUN@TICK")
            .help(&["dendrer", "log", &name]),
        NoStore::IsFile { .. } => problem
            .note("name the directory that holds .dendrer, or leave --store out to look for it from here on up"),
        NoStore::NoDirectory { source } => problem.at("cause", source.to_string()),
        _ => problem,
    }
}

/// Adds to a problem of keys and heads the file's own error, and what to do.
fn trust_problem(problem: Problem, error: &TrustError) -> Problem {
    let unknown = "so it is not known how long the log was when it was last signed here";
    match error {
        TrustError::NoHome => problem.help(&["dendrer", "init", "--key", "FILE"]),
        TrustError::KeyName(_) => {
            problem.note("the name of a key has at least one character, no blank and no +, like j.doe")
        }
        TrustError::KeyNotWritten { source, .. }
        | TrustError::KeyNotRead { source, .. }
        | TrustError::NoLock { source, .. } => problem.at("cause", source.to_string()),
        TrustError::KeyUnusable { why, .. } => problem.at("cause", why.as_str()),
        TrustError::NotTheSecret { .. } => {
            problem.note("nothing was written").help(&["dendrer", "key", "writer", "--out", "FILE"])
        }
        TrustError::Busy { lock } => {
            problem.at("lock", lock.display().to_string()).help(&["dendrer", "doctor"])
        }
        TrustError::HeadNotRead { source, .. } => problem
            .at("cause", source.to_string())
            .note(unknown)
            .note("see that the file can be read, and try again"),
        TrustError::NotAHead { path, size } => {
            let shown = path.display().to_string();
            problem
                .at("found", count(*size as u64, "byte", "bytes"))
                .note(unknown)
                .note("where a backup, or a checkpoint kept elsewhere, shows that the log is whole, move the file away; the next signature makes it anew")
                .help(&["mv", &shown, &format!("{shown}.aside")])
        }
        _ => problem,
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        Problem::of(&error)
    }
}

impl From<ExprError> for Problem {
    fn from(error: ExprError) -> Problem {
        expr_problem(&error)
    }
}

/// Adds the place where a limit ended a module, and the command that shows it.
fn stopped(problem: Problem, limited: &Limited) -> Problem {
    let asked =
        limited.predicate.iter().fold(problem, |problem, name| problem.at("predicate", name.as_str()));
    let (verb, note) = match limited.predicate {
        Some(_) => (
            "state",
            "no verdict was given, and none is kept; make the module do less, or ask of fewer ticks",
        ),
        None => ("show", "nothing of it is kept; make the module do less, or give it less"),
    };
    match &limited.place {
        Some((run, tick)) => asked.at("run", run.as_str()).at("tick", tick.to_string()).note(note).help(&[
            "dendrer",
            verb,
            &format!("{run}@{tick}"),
        ]),
        None => asked.note(note),
    }
}

/// Adds how a run gets a pack.
pub fn no_pack(problem: Problem, run: &str) -> Problem {
    problem
        .note("a run is given a pack when it begins: commit --pack FILE, or as another run that is reduced from it")
        .help(&["dendrer", "reduce", run, "--pack", "FILE", "--as", "NEW"])
}

/// Returns the problem that ended a replay.
pub fn replay(error: &ReplayError) -> Problem {
    let problem = Problem::new(error.code(), error.to_string());
    match error {
        ReplayError::Divergence(divergence) => {
            let side = |value: &Option<Value>| {
                value.as_ref().map_or_else(|| "nothing".to_owned(), |value| value.to_string())
            };
            problem
                .at("tick", divergence.tick.to_string())
                .at("path", divergence.path.dotted())
                .at("recorded", side(&divergence.expected))
                .at("computed", side(&divergence.found))
                .note(format!("usual causes: {}", divergence.usual_causes()))
        }
        _ => problem,
    }
}

fn store_problem(problem: Problem, error: &StoreError) -> Problem {
    let mut source = std::error::Error::source(error);
    let mut problem = problem;
    while let Some(inner) = source {
        problem = problem.at("cause", inner.to_string());
        source = inner.source();
    }
    match error {
        StoreError::NotAStore { .. } => problem.help(&["dendrer", "init"]).help(&["dendrer", "demo"]),
        StoreError::Damaged(damage) | StoreError::Lost(damage) => problem
            .at("where", damage.place.to_string())
            .at("expected", damage.expected.clone())
            .at("found", damage.found.clone())
            .note(READS_ONLY)
            .help(match &*damage.place.file {
                // A second copy of the checkpoint is kept.
                "checkpoint" => &["dendrer", "doctor", "--fix"],
                _ => &["dendrer", "verify", "--all"],
            }),
        StoreError::Stale { run, .. } => problem.note("nothing of this group was committed").help(&[
            "dendrer",
            "log",
            run.as_str(),
            "-n",
            "5",
        ]),
        StoreError::NoWriter => problem
            .note("nothing was written")
            .help(&["dendrer", "key", "writer", "--out", "FILE"])
            .help(&["dendrer", "key", "recover", "--reason", "TEXT"]),
        StoreError::Untagged { .. } => {
            problem.note("nothing was written or signed").help(&["dendrer", "doctor", "--adopt", "-n"])
        }
        StoreError::NotSetAside(_) => {
            problem.note("nothing was changed").help(&["dendrer", "doctor", "--adopt", "-n"])
        }
        StoreError::IsBackup { path } => {
            problem.help(&["dendrer", "restore", &path.display().to_string(), "DIR"])
        }
        StoreError::Locked { path } => problem
            .at("lock", path.display().to_string())
            .note("nothing of this was recorded; try again when the other program has ended")
            .help(&["dendrer", "doctor"]),
        StoreError::IndexDamaged(_) => problem
            .note("nothing of the log is lost: the index is derived from it")
            .help(&["dendrer", "doctor", "--fix"]),
        StoreError::DiskFull { .. } => {
            problem.note("what was not acknowledged was not recorded; the store is as it was")
        }
        _ => problem,
    }
}

fn expr_problem(error: &ExprError) -> Problem {
    let mut problem = Problem::new(error.code, error.message.clone());
    // A name that was given outside an expression has no place in one.
    if error.span != Span::default() {
        problem = problem.at("expression", format!("byte {}", error.span.start));
    }
    problem = problem.marked(MarkedText::of(&error.text, error.span));
    match &error.hint {
        Some(hint) => problem.note(hint.to_string()),
        None => problem,
    }
}
