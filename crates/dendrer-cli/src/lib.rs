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
mod typed;
mod usage;
mod verbs;

use std::cell::RefCell;
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use clap::FromArgMatches;
use dendrer::change::graph::Callers;
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
use crate::typed::Typed;
use crate::verbs::Cli;
use crate::verbs::Verb;

/// Runs the program. The first argument is its own name. Returns the exit code.
pub fn program(given: &[OsString]) -> u8 {
    if let Some(code) = complete::answer(verbs::described, given) {
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
    cli.global.is_stdout_named = cli.global.output.as_deref().is_some_and(files::is_stdout);
    cli.global.output = cli.global.output.filter(|_| !cli.global.is_stdout_named);
    if let Some(failure) = usage::of_output(cli.global.output.as_deref(), &args) {
        return report(&failure, wants_json(&args), cli.global.color);
    }
    if let Err(failure) = enter(&mut cli) {
        return report(&failure, wants_json(&args), cli.global.color);
    }
    if !cli.global.quiet {
        dendrer::store::disk::on_wait(note_wait);
    }
    let Some(verb) = cli.verb else { return without_verb(&cli.global, &args) };
    let began = Instant::now();
    let code = match form(&cli.global, &verb) {
        Ok(form) => {
            let json = form.format != Format::Text;
            run(&cli.global, &verb, &form, &mut || Out::new(&cli.global, &form))
                .unwrap_or_else(|failure| report(&usage::of_head(failure, &args), json, cli.global.color))
        }
        Err(failure) => report(&failure, wants_json(&args), cli.global.color),
    };
    if cli.global.verbose {
        let _ = writeln!(std::io::stderr(), "took {:.3} s", began.elapsed().as_secs_f64());
    }
    code
}

/// Notes that another program has a lock of the store.
fn note_wait() {
    let _ = writeln!(std::io::stderr(), "note: {}", dendrer::store::disk::WAITS);
}

/// Answers `dendrer` without a verb.
fn without_verb(global: &Global, args: &[String]) -> u8 {
    if wants_json(args) {
        let failure = Failure::new(Code::E0106, "dendrer needs a verb to make a document of");
        return report(&failure.help(&["dendrer", "help"]), true, global.color);
    }
    let answered = verbs::form_without_verb(global).and_then(|form| {
        let mut out = Out::new(global, &form);
        let answered = verbs::without_verb(global, &mut out).map_err(|failure| out.judge(failure));
        out.finish(answered.is_ok())?;
        answered
    });
    answered.unwrap_or_else(|failure| report(&failure, false, global.color))
}

/// Goes to the directory of `-C`. Its store is named from then on, so that commands that are printed ask it wherever they
/// are pasted.
fn enter(cli: &mut Cli) -> failure::Result<()> {
    let Some(dir) = &cli.directory else { return Ok(()) };
    std::env::set_current_dir(dir).map_err(|error| {
        Failure::new(Code::E0108, format!("directory {dir} cannot be entered")).at("cause", error.to_string())
    })?;
    if cli.global.store.is_none()
        && !matches!(cli.verb, Some(Verb::Init(_) | Verb::Demo(_) | Verb::Restore(_)))
        && let Ok(found) = context::find(&cli.global)
    {
        cli.global.store = match context::server::is_address(&found) {
            true => Some(found.display().to_string()),
            false => found.parent().map(|dir| dir.display().to_string()),
        };
    }
    Ok(())
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
    pub problem_text: String,
}

/// Runs one verb, and returns its answer instead of printing it. The first argument is a name of the program. With `as_shown`,
/// notes, warnings and commands to type next are among the lines of the answer, where a terminal shows them.
///
/// `callers` answers the effects of a graph's run.
pub fn ask(args: &[String], as_shown: bool, callers: Option<Callers>) -> VerbAnswer {
    let args = global::join_ticks(args.iter().cloned());
    files::forget_answers();
    let answer = Rc::new(RefCell::new(Vec::new()));
    let asked =
        parse(&args).map_err(|error| usage::problem(&error, &without_form(&args))).and_then(|mut cli| {
            cli.global.callers = callers;
            let Some(verb) = &cli.verb else { return Err(Failure::new(Code::E0106, "no verb")) };
            if cli.directory.is_some() {
                return Err(Failure::new(
                    Code::E0106,
                    "-C is for the command line: a process has one directory",
                ));
            }
            let form = form(&cli.global, verb)?;
            run(&cli.global, verb, &form, &mut || Out::kept_in(&cli.global, &form, &answer, as_shown))
        });
    let answer = answer.take();
    match asked {
        Ok(exit) => VerbAnswer { exit, answer, problem: None, problem_text: String::new() },
        Err(failure) => VerbAnswer {
            exit: failure.exit(),
            answer,
            problem: Some(failure.to_json()),
            problem_text: failure.text(None),
        },
    }
}

/// Returns the words without those that a calling program adds to read the answer: a command that is printed is for a person.
fn without_form(args: &[String]) -> Vec<String> {
    const FORM: [&str; 5] = ["--json", "--quiet", "--progress=never", "--color=never", "--no-pager"];
    let args = args.strip_suffix(&["--".to_owned()]).unwrap_or(args);
    args.iter().filter(|arg| !FORM.contains(&arg.as_str())).cloned().collect()
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
    let cli = parse(args).map_err(|error| usage::problem(&error, args))?;
    let verb = cli.verb.ok_or_else(|| Failure::new(Code::E0106, "no verb"))?;
    let recorded = verbs::record(&cli.global, verb, state, resume);
    let (repo, recorder, reading) =
        recorded.map_err(|failure| failure.help_of(cli.global.store.as_deref()))?;
    Ok(Recorded { repo, recorder, reading })
}

/// Reads a file of predicates as `all_of` of a question takes it: a list as JSON, or a pack with the modules that it names in it.
///
/// # Errors
///
/// Those of `dendrer bisect --all-of FILE`.
pub fn predicates_of_file(path: &str) -> std::result::Result<String, Failure> {
    context::named::of_file(path)
}

/// Keys and heads of this user as the program knows them: in the user's folder, and the key of the log in a file if one is named.
pub fn trust(key: Option<&str>) -> Arc<dyn Trust> {
    keys::trust_with(key)
}

/// Reads the arguments; the first is the name of the program.
fn parse(args: &[String]) -> std::result::Result<Cli, clap::Error> {
    let mut command = verbs::command();
    let typed = Typed::read(&command, args);
    let words = args.iter().take(1).cloned().chain(Typed::words(&typed.pieces)).collect::<Vec<_>>();
    let names: Vec<String> = typed.names.iter().map(|name| (*name).to_owned()).collect();
    if typed.has_values_like_flags() {
        verbs::take_values_like_flags(&mut command, &names);
    }
    Cli::from_arg_matches(&command.try_get_matches_from(words)?)
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
        let is_terminal = std::io::stderr().is_terminal();
        let colored = out::decide_color(color, is_terminal);
        let mut stderr = std::io::stderr();
        for line in failure.lines(out::page_width(global::asked_width(), is_terminal, out::error_screen)) {
            let _ = writeln!(stderr, "{}", out::painted(&line, colored));
        }
    }
    failure.exit()
}

/// Prints help or a version, which are answers, or what is wrong with the arguments.
fn usage(error: &clap::Error, json: bool, args: &[String]) -> u8 {
    use clap::error::ErrorKind;
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let is_colored = out::decide_color(ColorChoice::Auto, std::io::stdout().is_terminal());
        let text = out::usage::help_text(error, is_colored);
        return printed(std::io::stdout().write_all(text.as_bytes()), ColorChoice::Auto);
    }
    let failure = usage::problem(error, args);
    match usage::help_of_group(error, args).filter(|_| !json) {
        Some(help) => {
            // Ignored: there is no other place to report a closed stderr.
            let _ = std::io::stderr().write_all(help.as_bytes());
            failure.exit()
        }
        None => report(&failure, json, ColorChoice::Auto),
    }
}
