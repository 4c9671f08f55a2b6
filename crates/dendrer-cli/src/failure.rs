//! What a command that fails says: one shape, one voice.

use dendrer::Error;
use dendrer::error::Limited;
use dendrer::kernel::expr::{ExprError, Span};
use dendrer::store::StoreError;
use dendrer_object::{RunName, Value};
pub(crate) use dendrer_view::quote::shell;
use dendrer_view::{document, quote};

use crate::codes;
use crate::mark;

/// A failure on its way to the user. At most three help lines; each is a command that can be pasted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failure {
    /// The code.
    pub(crate) code: &'static str,
    /// One sentence that names the object and the fact. Escaped when it is shown.
    pub(crate) message: Box<str>,
    /// Where, as name and value.
    pub(crate) place: Vec<(String, String)>,
    /// What was not changed, and the like.
    pub(crate) notes: Vec<String>,
    /// Commands, as arguments.
    pub(crate) help: Vec<Vec<String>>,
    /// Whether anything was changed before it failed.
    pub(crate) changed: bool,
    /// What is on record of what came before it.
    pub(crate) items: Option<Box<Value>>,
}

/// What is said of a store that refuses to be written.
pub(crate) const READS_ONLY: &str = "the store is opened for reading only; nothing was changed";

/// What every verb returns: the exit code, or why it failed.
pub(crate) type Result<T = u8> = std::result::Result<T, Failure>;

impl Failure {
    /// A failure with a code.
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Failure {
        debug_assert!(codes::find(code).is_some(), "{code} is not in the table");
        Failure { code, message: message.into().into(), ..Failure::default() }
    }

    /// What a store says, with what to do about it.
    pub(crate) fn of(error: &StoreError) -> Failure {
        store_failure(Failure::new(error.code(), error.to_string()), error)
    }

    /// Says where.
    pub(crate) fn at(mut self, name: &str, value: impl Into<String>) -> Failure {
        self.place.push((name.to_owned(), value.into()));
        self
    }

    /// Adds a note.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Failure {
        self.notes.push(note.into());
        self
    }

    /// Adds a command that helps.
    pub(crate) fn help(mut self, argv: &[&str]) -> Failure {
        self.help.push(argv.iter().map(|word| (*word).to_owned()).collect());
        self
    }

    /// Has the commands that help ask a bundle file, where they name a run that is in it: pasted as they are, they would
    /// ask the store, which may have another run of that name, or be none.
    pub(crate) fn help_in(mut self, path: &str, runs: &[RunName]) -> Failure {
        for argv in &mut self.help {
            let places: Vec<usize> = (2..argv.len())
                .filter(|at| {
                    runs.iter().any(|run| run.as_str() == argv[*at].split('@').next().unwrap_or_default())
                })
                .collect();
            for at in &places {
                argv[*at] = format!("{path}#{}", argv[*at]);
            }
            if argv.get(1).is_some_and(|verb| verb == "runs") && argv.len() == 2 {
                argv.push(path.to_owned());
            }
        }
        self
    }

    /// Has the commands that help ask the store that was named, as [`in_store`] does.
    pub(crate) fn help_of(mut self, store: Option<&str>) -> Failure {
        self.help = self.help.into_iter().map(|argv| in_store(argv, store)).collect();
        self
    }

    /// What failed and why, in one line.
    pub(crate) fn told(&self) -> String {
        let whys: String = self.place.iter().map(|(name, why)| format!(" ({name}: {why})")).collect();
        format!("{}{whys}", self.message)
    }

    /// The exit code.
    pub(crate) fn exit(&self) -> u8 {
        codes::find(self.code).map_or(8, |code| code.exit)
    }

    /// Writes the failure for people. `strong` wraps what should stand out.
    pub(crate) fn lines(&self, strong: &dyn Fn(&str) -> String) -> Vec<String> {
        let mut lines =
            vec![format!("{} {}", strong(&format!("error[{}]:", self.code)), quote::escape(&self.message))];
        for (name, value) in &self.place {
            lines.extend(value.split('\n').map(|line| format!("  | {name:<8} {}", quote::escape(line))));
        }
        lines.extend(self.notes.iter().map(|note| format!("note: {}", quote::escape(note))));
        lines.extend(self.help.iter().take(3).map(|argv| format!("help: {}", shell(argv))));
        lines.push(format!("      see: dendrer explain {}", self.code));
        lines
    }

    /// Returns the failure as `dendrer.error/1`.
    pub(crate) fn to_json(&self) -> Value {
        let texts = |list: &[String]| Value::array(list.iter().map(|text| Value::from(text.as_str())));
        let place = self.place.iter().map(|(name, value)| (name.as_str(), Value::from(value.as_str())));
        let items = self.items.as_deref().map(|items| ("items", items.clone()));
        document(
            "error",
            [
                ("code", Value::from(self.code)),
                ("kind", Value::from(codes::find(self.code).map_or("unknown", |code| code.kind))),
                ("message", Value::from(&*self.message)),
                (
                    "where",
                    Value::record(place.map(|(name, value)| (dendrer_object::tag::stored_name(name), value))),
                ),
                ("changed", Value::from(self.changed)),
                ("notes", texts(&self.notes)),
                ("help", Value::array(self.help.iter().map(|argv| Value::record([("argv", texts(argv))])))),
            ]
            .into_iter()
            .chain(items),
        )
    }
}

/// Verbs that ask no store, or are told which in other ways.
const WITHOUT_STORE: [&str; 8] =
    ["completions", "demo", "explain", "help", "init", "man", "restore", "schema"];

/// Adds to a command the store that was named: pasted without it, it would ask the one of the directory it is pasted in.
pub(crate) fn in_store(mut argv: Vec<String>, store: Option<&str>) -> Vec<String> {
    let asks = argv.first().is_some_and(|program| program == "dendrer")
        && argv.get(1).is_some_and(|verb| !WITHOUT_STORE.contains(&verb.as_str()))
        && !argv.iter().any(|word| word == "--store" || word == "--help");
    // What was named may be a bundle, which stands in another place.
    if let Some(store) = store.filter(|store| asks && !argv.iter().any(|word| word == store)) {
        argv.extend(["--store".to_owned(), store.to_owned()]);
    }
    argv
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let message = match &error {
            Error::Extension(error) => error.faults.first().map(ToString::to_string).unwrap_or_default(),
            error => error.to_string(),
        };
        let failure = Failure::new(error.code(), message);
        match error {
            Error::NoRun { near: Some(near), .. } => {
                failure.note(format!("did you mean {near}?")).help(&["dendrer", "log", near.as_str()])
            }
            Error::NoRun { .. } => failure.help(&["dendrer", "runs"]),
            Error::NoTick { run, tip, .. } => failure.help(&["dendrer", "show", &format!("{run}@{tip}")]),
            Error::Extension(error) => {
                let others = error.faults.iter().skip(1);
                let failure =
                    others.fold(failure, |failure, fault| failure.note(format!("{}: {fault}", fault.code())));
                // What is refused for anything else is not for anybody to sign.
                match error.faults.iter().all(|fault| fault.code() == "E0423") {
                    true => failure.at("to sign", error.text).note(
                        "an approver signs with --approver-key FILE, or hands over a signed note for --signature FILE",
                    ),
                    false => failure,
                }
                .note("nothing was changed")
            }
            Error::IndexDiffers { .. } => failure
                .note("nothing of the log is lost: the index is derived from it")
                .help(&["dendrer", "doctor", "--fix"]),
            Error::Imported { run } => failure
                .note("nothing was committed; go on in a fork of it, or in a run that is reduced from it")
                .help(&["dendrer", "fork", run.as_str(), "--from", "tip"])
                .help(&["dendrer", "reduce", run.as_str(), "--pack", "FILE", "--as", "NEW"]),
            Error::Stopped(limited) => stopped(failure, &limited),
            Error::Start(error) if error.code() == "E0604" => {
                failure.note("stages 0 to 2 need less; nothing was committed")
            }
            Error::OfCasebook { run } => {
                failure.note("nothing was changed").help(&["dendrer", "log", run.as_str()])
            }
            Error::NoAnswer { run, tick, .. } => failure
                .note("nothing was changed; an answer that can be replaced stands behind the fork")
                .help(&["dendrer", "log", run.as_str(), "--type", "action.result,observation.add"])
                .help(&["dendrer", "show", &format!("{run}@{tick}")]),
            Error::OtherEngine { run, .. } | Error::EnginesDiffer { run, .. } => failure
                .note("nothing was changed; reduce the run again under the other pack, and go on from what comes of it")
                .help(&["dendrer", "reduce", run.as_str(), "--pack", "FILE", "--as", "NEW"]),
            Error::NoContracts { run } => no_pack(failure, run.as_str()),
            Error::NotImportable { run, .. } => failure
                .note("nothing was changed; choose a tick that an agent or its runtime wrote")
                .help(&["dendrer", "log", run.as_str()]),
            Error::Store(error) => store_failure(failure, &error),
            Error::Expr(error) => expr_failure(&error),
            _ => failure,
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        Failure::of(&error)
    }
}

impl From<ExprError> for Failure {
    fn from(error: ExprError) -> Failure {
        expr_failure(&error)
    }
}

/// Says of a module that a limit ended where that was, and what there is to look at.
fn stopped(failure: Failure, limited: &Limited) -> Failure {
    let asked =
        limited.predicate.iter().fold(failure, |failure, name| failure.at("predicate", name.as_str()));
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

/// Says how a run comes to have a pack.
pub(crate) fn no_pack(failure: Failure, run: &str) -> Failure {
    failure
        .note("a run is given a pack when it begins: commit --pack FILE, or as another run that is reduced from it")
        .help(&["dendrer", "reduce", run, "--pack", "FILE", "--as", "NEW"])
}

fn store_failure(failure: Failure, error: &StoreError) -> Failure {
    let mut source = std::error::Error::source(error);
    let mut failure = failure;
    while let Some(inner) = source {
        failure = failure.at("cause", inner.to_string());
        source = inner.source();
    }
    match error {
        StoreError::NotAStore { .. } => failure.help(&["dendrer", "init"]).help(&["dendrer", "demo"]),
        StoreError::Damaged(damage) | StoreError::Lost(damage) => failure
            .at("where", damage.place.to_string())
            .at("expected", damage.expected.clone())
            .at("found", damage.found.clone())
            .note(READS_ONLY)
            .help(match &*damage.place.file {
                // What was signed is written down twice.
                "checkpoint" => &["dendrer", "doctor", "--fix"],
                _ => &["dendrer", "verify", "--all"],
            }),
        StoreError::Stale { run, .. } => failure.note("nothing of this group was committed").help(&[
            "dendrer",
            "log",
            run.as_str(),
            "-n",
            "5",
        ]),
        StoreError::IsBackup { path } => match mark::at(path).ok().flatten().and_then(|mark| mark.hides()) {
            // What is restored from it would lack what it hides.
            Some(why) => mark::explain(failure.note(why), path),
            None => failure.help(&["dendrer", "restore", &path.display().to_string(), "DIR"]),
        },
        StoreError::IndexDamaged(_) => failure
            .note("nothing of the log is lost: the index is derived from it")
            .help(&["dendrer", "doctor", "--fix"]),
        StoreError::DiskFull { .. } => {
            failure.note("what was not acknowledged was not recorded; the store is as it was")
        }
        _ => failure,
    }
}

fn expr_failure(error: &ExprError) -> Failure {
    let mut failure = Failure::new(error.code, error.message.clone());
    // Names that are given and not written in an expression stand nowhere.
    if error.span != Span::default() {
        failure = failure.at("expression", format!("byte {}", error.span.start));
    }
    match &error.hint {
        Some(hint) => failure.note(hint.to_string()),
        None => failure,
    }
}

// The shell that takes lines apart is bash.
#[cfg(all(test, unix))]
mod tests {
    use super::shell;

    #[test]
    fn a_shell_takes_a_help_line_apart_as_it_was_put_together() {
        let words = [
            "plain-1_2./a@b:#c=d,e+%",
            "",
            "a b.dnd",
            "$(touch pwned).dnd",
            "it's",
            "back\\slash",
            "\\n",
            "ä\u{202e}b",
            "\u{e0041}",
            "line\nnext\ttab\x1b[31m'\"`$x\\",
            "~/a*?",
        ];
        let argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let line = shell(&argv);
        assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'), "{line:?}");
        let script = format!("printf '%s\\0' {line}");
        let output =
            std::process::Command::new("bash").env("LC_ALL", "C.UTF-8").arg("-c").arg(&script).output();
        let output = output.expect("bash is at hand, as it is for the completions");
        let back: Vec<&str> =
            std::str::from_utf8(&output.stdout).expect("UTF-8").split_terminator('\0').collect();
        assert_eq!(back, words, "{script}");
    }
}
