//! The `dendrer` program as a library, for the Python package: arguments in, answers and exit codes out.
//!
//! [`program`] is the program. [`ask`] runs one verb and returns its document instead of printing it. Nothing else may import
//! this crate.

mod complete;
mod context;
mod demo;
mod failure;
mod global;
mod offers;
mod out;
mod progress;
mod verbs;

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use clap::FromArgMatches;
use dendrer::lines::LineOptions;
use dendrer::repo::new_run::Resume;
use dendrer::trust::Trust;
use dendrer::{Recorder, Repo};
use dendrer_object::{Code, Value};
use dendrer_view::problem::ShownProblem as _;
use dendrer_view::quote::shell;

use crate::context::keys;
use crate::failure::Failure;
use crate::global::ColorChoice;
use crate::global::Format;
use crate::global::Global;
use crate::out::Form;
use crate::out::Out;
use crate::out::files;
use crate::out::is_closed_pipe;
use crate::verbs::Cli;
use crate::verbs::Verb;

/// Runs the program. The first argument is its own name. Returns the exit code.
pub fn program(given: &[OsString]) -> u8 {
    if let Some(code) = complete::answer(verbs::command, given) {
        return code;
    }
    let args = global::join_ticks(given.iter().map(|arg| arg.to_string_lossy().into_owned()));
    // What it looks like is another name, of a file that may be there as well.
    if let Some(odd) = given.iter().find(|arg| arg.to_str().is_none()) {
        let what = format!("{} is not UTF-8, and every argument must be", odd.to_string_lossy());
        let failure = Failure::new(Code::E0106, what)
            .note("nothing was done; give the file a name that is, or go where it is");
        return report(&failure, wants_json(&args), ColorChoice::Auto);
    }
    let mut cli = match parse(&args) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, wants_json(&args), &args),
    };
    // As everywhere, `-` is the place where answers go anyway, and what is there behind its other names is not to be replaced.
    cli.global.output = cli.global.output.filter(|file| !files::is_stdout(file));
    let Some(verb) = cli.verb else {
        let nothing = || {
            Failure::new(Code::E0106, "no verb: there is nothing to make a document of")
                .help(&["dendrer", "help"])
        };
        return match wants_json(&args) {
            true => report(&nothing(), true, cli.global.color),
            false => printed(std::io::stdout().write_all(verbs::WELCOME.as_bytes()), cli.global.color),
        };
    };
    let began = Instant::now();
    let code = match form(&cli.global, &verb) {
        Ok(form) => {
            let json = form.format != Format::Text;
            run(&cli.global, &verb, &form, &mut || Out::new(&cli.global, &form))
                .unwrap_or_else(|failure| report(&failure, json, cli.global.color))
        }
        Err(failure) => report(&failure, wants_json(&args), cli.global.color),
    };
    if cli.global.verbose {
        let _ = writeln!(std::io::stderr(), "took {:.3} s", began.elapsed().as_secs_f64());
    }
    code
}

/// What a verb answered.
#[derive(Debug)]
pub struct VerbAnswer {
    /// The exit code.
    pub exit: u8,
    /// What would have been written to stdout: the document under `--json`.
    pub answer: Vec<u8>,
    /// The problem that ended the verb, as `dendrer.error/1`.
    pub problem: Option<Value>,
    /// The problem as lines for people.
    pub problem_lines: Vec<String>,
}

/// Runs one verb, and returns its answer instead of printing it. The first argument is a name of the program. With `as_shown`,
/// notes, warnings and commands to type next are among the lines of the answer, where a terminal shows them.
pub fn ask(args: &[String], as_shown: bool) -> VerbAnswer {
    let args = global::join_ticks(args.iter().cloned());
    files::forget_answers();
    let answer = Rc::new(RefCell::new(Vec::new()));
    let asked = parse(&args).map_err(|error| problem_of(&error, &args)).and_then(|cli| {
        let Some(verb) = &cli.verb else { return Err(Failure::new(Code::E0106, "no verb")) };
        let form = form(&cli.global, verb)?;
        run(&cli.global, verb, &form, &mut || Out::kept_in(&cli.global, &form, &answer, as_shown))
    });
    let answer = answer.take();
    match asked {
        Ok(exit) => VerbAnswer { exit, answer, problem: None, problem_lines: Vec::new() },
        Err(failure) => VerbAnswer {
            exit: failure.exit(),
            answer,
            problem: Some(failure.to_json()),
            problem_lines: failure.lines(&|text| text.to_owned()),
        },
    }
}

/// A run that a program records.
#[derive(Debug)]
pub struct Recorded {
    /// The store.
    pub repo: Repo,
    /// The end of the run.
    pub recorder: Recorder,
    /// How lines are read.
    pub reading: LineOptions,
}

/// Opens the store and the run that the arguments of `dendrer commit` name, and begins the run as `resume` decides.
/// `state` is in place of the file of `--state`. The name of the run is that of the recorder.
///
/// # Errors
///
/// Those of `dendrer commit`.
pub fn record(
    args: &[String],
    state: Option<Value>,
    resume: Resume,
) -> std::result::Result<Recorded, Failure> {
    let cli = parse(args).map_err(|error| problem_of(&error, args))?;
    let verb = cli.verb.ok_or_else(|| Failure::new(Code::E0106, "no verb"))?;
    let recorded = verbs::record(&cli.global, verb, state, resume);
    let (repo, recorder, reading) =
        recorded.map_err(|failure| failure.help_of(cli.global.store.as_deref()))?;
    Ok(Recorded { repo, recorder, reading })
}

/// Keys and heads of this user as the program knows them: in the user's folder, and the key of the log in a file if one is named.
pub fn trust(key: Option<&str>) -> Arc<dyn Trust> {
    keys::trust_with(key)
}

fn parse(args: &[String]) -> std::result::Result<Cli, clap::Error> {
    Cli::from_arg_matches(&verbs::command().try_get_matches_from(args)?)
}

/// Decides how an answer is written; fails where its file may not be.
fn form(global: &Global, verb: &Verb) -> failure::Result<Form> {
    if let Some(file) = &global.output {
        files::answer_to(file, global.key.as_deref(), keys::config_dir())?;
    }
    verbs::form(global, verb)
}

/// Whether a failure goes to stdout as a document, as far as the bare words say.
fn wants_json(args: &[String]) -> bool {
    let is_json = |form: &str| form == "json" || form == "jsonl";
    args.iter().any(|arg| match arg.as_str() {
        "--json" | "--jsonl" => true,
        other => other.strip_prefix("--format=").is_some_and(is_json),
    }) || args.windows(2).any(|pair| pair[0] == "--format" && is_json(&pair[1]))
}

fn run(global: &Global, verb: &Verb, form: &Form, make_out: &mut dyn FnMut() -> Out) -> failure::Result {
    let mut out = make_out();
    let result = verbs::run(global, verb, &mut out);
    if let Err(failure) = &result
        && failure.code == Code::E0809
        && !global.without_index
        && out.is_untouched()
        && form.again
    {
        let fix = shell(&out.to_paste(&["dendrer", "doctor", "--fix"]));
        let message = dendrer_view::quote::escape(&failure.message);
        let _ = writeln!(std::io::stderr(), "warning[E0809]: {message}; it is left out\nhelp: {fix}");
        return run(&Global { without_index: true, ..global.clone() }, verb, form, make_out);
    }
    let result = result.map_err(|failure| out.judge(failure));
    match out.finish(result.is_ok()) {
        Ok(()) => result,
        // What could not be written matters only if nothing worse happened before.
        Err(failure) => result.and(Err(failure)),
    }
}

/// The exit code of what needs no verb and was written to stdout.
fn printed(written: std::io::Result<()>, color: ColorChoice) -> u8 {
    match written.and_then(|()| std::io::stdout().flush()).map_err(out::closed) {
        Ok(()) => 0,
        Err(failure) => report(&failure, false, color),
    }
}

/// Prints a failure where it belongs and returns its exit code.
fn report(failure: &Failure, json: bool, color: ColorChoice) -> u8 {
    if is_closed_pipe(failure) {
        return 0;
    }
    if json {
        let mut stdout = std::io::stdout();
        let _ = writeln!(stdout, "{}", dendrer_view::quote::json(&failure.to_json()));
    } else {
        let colored = out::decide_color(color, std::io::stderr().is_terminal());
        let strong =
            |text: &str| if colored { format!("\x1b[1;38;5;208m{text}\x1b[0m") } else { text.to_owned() };
        let mut stderr = std::io::stderr();
        for line in failure.lines(&strong) {
            let _ = writeln!(stderr, "{line}");
        }
    }
    failure.exit()
}

/// Prints help or a version, which are answers, or what is wrong with the arguments.
fn usage(error: &clap::Error, json: bool, args: &[String]) -> u8 {
    use clap::error::ErrorKind;
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return printed(error.print(), ColorChoice::Auto);
    }
    report(&problem_of(error, args), json, ColorChoice::Auto)
}

/// Turns what the argument parser says into our voice.
fn problem_of(error: &clap::Error, args: &[String]) -> Failure {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let mut failure = Failure::new(Code::E0106, first);
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand)
    {
        failure = unknown_verb(word);
    }
    for line in lines {
        let line = line.trim();
        if let Some(tip) = line.strip_prefix("tip: ") {
            failure = if failure.notes.is_empty() { failure.note(tip) } else { failure };
        } else if let Some(usage) = line.strip_prefix("Usage: ") {
            failure = failure.at("usage", usage);
        } else if !line.starts_with("For more information") {
            failure = failure.at("what", line);
        }
    }
    let known = verbs::command();
    let verb = args.iter().skip(1).find(|word| known.find_subcommand(word).is_some());
    match verb {
        Some(verb) => failure.help(&["dendrer", "help", verb]),
        None => failure.help(&["dendrer", "help"]),
    }
}

/// Names the verb that may have been meant: one slip away, or two letters the other way round.
fn unknown_verb(word: &str) -> Failure {
    let failure = Failure::new(Code::E0106, format!("there is no verb \"{word}\""));
    let known = verbs::command();
    let names: Vec<&str> =
        known.get_subcommands().flat_map(clap::Command::get_name_and_visible_aliases).collect();
    let sorted = |text: &str| {
        let mut letters: Vec<char> = text.chars().collect();
        letters.sort_unstable();
        letters
    };
    let turned = names.iter().copied().find(|name| sorted(name) == sorted(word));
    let begun = || names.iter().copied().find(|name| word.len() >= 2 && name.starts_with(word));
    // Verbs of other version control.
    let instead: Option<(&str, &[&str])> = match word {
        "undo" => Some((
            "nothing on record is taken back; go on from an earlier tick, or leave a run out of lists",
            &["fork", "runs"],
        )),
        "reset" | "checkout" | "switch" => {
            Some(("a run is not set back; go on from an earlier tick beside it", &["fork", "state"]))
        }
        "amend" => Some((
            "a record is not changed; go on from the tick before it with something else in its place",
            &["fork"],
        )),
        "revert" => Some((
            "a record is not undone; commit what makes up for it, or go on without it",
            &["commit", "fork"],
        )),
        "rm" | "delete" | "drop" => Some(("a run is not removed; it is left out of lists", &["runs"])),
        "tag" | "branch" => {
            Some(("a name for a moment is a label; a run beside another is a fork", &["label", "fork"]))
        }
        "status" => Some((
            "what is on record is listed by `runs`, and what is sound by `verify`",
            &["runs", "verify"],
        )),
        _ => None,
    };
    if let Some((why, verbs)) = instead {
        return verbs
            .iter()
            .fold(failure.note(why), |failure, verb| failure.help(&["dendrer", verb, "--help"]));
    }
    match turned.or_else(|| dendrer_object::text::nearest(word, names.iter().copied())).or_else(begun) {
        Some(near) => failure.note(format!("did you mean {near}?")).help(&["dendrer", near, "--help"]),
        None => failure,
    }
}
