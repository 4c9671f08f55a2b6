//! The `dendrer` program: arguments in, answers and exit codes out.

mod complete;
mod context;
mod demo;
mod failure;
mod global;
mod offers;
mod out;
mod progress;
mod verbs;

use dendrer_object::Code;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::time::Instant;

use clap::FromArgMatches;
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

/// Recording and reading make and drop many small values; this allocator takes half the time of the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if let Some(code) = complete::answer(verbs::command) {
        return ExitCode::from(code);
    }
    let given: Vec<_> = std::env::args_os().collect();
    let args = global::join_ticks(given.iter().map(|arg| arg.to_string_lossy().into_owned()));
    // What it looks like is another name, of a file that may be there as well.
    if let Some(odd) = given.iter().find(|arg| arg.to_str().is_none()) {
        let what = format!("{} is not UTF-8, and every argument must be", odd.to_string_lossy());
        let failure = Failure::new(Code::E0106, what)
            .note("nothing was done; give the file a name that is, or go where it is");
        return ExitCode::from(report(&failure, wants_json(&args), ColorChoice::Auto));
    }
    let parsed = verbs::command().try_get_matches_from(&args);
    let mut cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
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
        return ExitCode::from(match wants_json(&args) {
            true => report(&nothing(), true, cli.global.color),
            false => printed(std::io::stdout().write_all(verbs::WELCOME.as_bytes()), cli.global.color),
        });
    };
    let began = Instant::now();
    let output = cli.global.output.as_deref();
    if let Some(Err(failure)) =
        output.map(|file| files::answer_to(file, cli.global.key.as_deref(), keys::config_dir()))
    {
        return ExitCode::from(report(&failure, wants_json(&args), cli.global.color));
    }
    let code = match verbs::form(&cli.global, &verb) {
        Ok(form) => run(&cli.global, &verb, &form),
        Err(failure) => report(&failure, wants_json(&args), cli.global.color),
    };
    if cli.global.verbose {
        let _ = writeln!(std::io::stderr(), "took {:.3} s", began.elapsed().as_secs_f64());
    }
    ExitCode::from(code)
}

/// Whether a failure goes to stdout as a document, as far as the bare words say.
fn wants_json(args: &[String]) -> bool {
    let is_json = |form: &str| form == "json" || form == "jsonl";
    args.iter().any(|arg| match arg.as_str() {
        "--json" | "--jsonl" => true,
        other => other.strip_prefix("--format=").is_some_and(is_json),
    }) || args.windows(2).any(|pair| pair[0] == "--format" && is_json(&pair[1]))
}

fn run(global: &Global, verb: &Verb, form: &Form) -> u8 {
    let json = form.format != Format::Text;
    let mut out = Out::new(global, form);
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
        return run(&Global { without_index: true, ..global.clone() }, verb, form);
    }
    let result = result.map_err(|failure| out.judge(failure));
    let result = match out.finish(result.is_ok()) {
        Ok(()) => result,
        // What could not be written matters only if nothing worse happened before.
        Err(failure) => result.and(Err(failure)),
    };
    result.unwrap_or_else(|failure| report(&failure, json, global.color))
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

/// Turns what the argument parser says into our voice; help and version are answers.
fn usage(error: &clap::Error, json: bool, args: &[String]) -> ExitCode {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return ExitCode::from(printed(error.print(), ColorChoice::Auto));
    }
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
    let failure = match verb {
        Some(verb) => failure.help(&["dendrer", "help", verb]),
        None => failure.help(&["dendrer", "help"]),
    };
    ExitCode::from(report(&failure, json, ColorChoice::Auto))
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
