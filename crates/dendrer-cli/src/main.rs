//! The `dendrer` program: arguments in, answers and exit codes out.

mod address;
mod args;
mod codes;
mod demo;
mod failure;
mod keys;
mod open;
mod out;
mod verbs;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Global, Verb};
use crate::failure::{Failure, Result};
use crate::out::{Format, Out, QUIET};

fn main() -> ExitCode {
    let args = args::join_ticks(std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()));
    let wants_json = args.iter().any(|arg| arg == "--json" || arg == "--jsonl");
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, wants_json),
    };
    let Some(verb) = cli.verb else { return ExitCode::from(verbs::welcome()) };
    let code = match run(&cli.global, &verb) {
        Ok(code) => code,
        Err(failure) => report(&failure, wants_json),
    };
    ExitCode::from(code)
}

fn run(global: &Global, verb: &Verb) -> Result {
    let format = if global.json {
        Format::Json
    } else if global.jsonl {
        Format::Jsonl
    } else {
        Format::Text
    };
    // An export is bytes for another program; its verb opens the file itself.
    let file = if matches!(verb, Verb::Export(_)) { None } else { global.output.as_deref() };
    let mut out = Out::new(format, global.color, global.width, global.full, global.quiet, file)?;
    let result = verbs::run(global, verb, &mut out);
    match out.flush() {
        Ok(()) => result,
        // What could not be written matters only if nothing worse happened before.
        Err(failure) => result.and(Err(failure)),
    }
}

/// Prints a failure where it belongs and returns its exit code.
fn report(failure: &Failure, json: bool) -> u8 {
    if failure.code == QUIET {
        return 0;
    }
    if json {
        let mut stdout = std::io::stdout();
        let _ = writeln!(stdout, "{}", dendrer_view::quote::json(&failure.to_json()));
    } else {
        let colored = std::io::stderr().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
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
fn usage(error: &clap::Error, json: bool) -> ExitCode {
    use clap::error::ErrorKind;
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let mut failure = Failure::new("E0106", first);
    for line in lines {
        let line = line.trim();
        if let Some(tip) = line.strip_prefix("tip: ") {
            failure = failure.note(tip);
        } else if let Some(usage) = line.strip_prefix("Usage: ") {
            failure = failure.at("usage", usage);
        } else if !line.starts_with("For more information") {
            failure = failure.at("what", line);
        }
    }
    ExitCode::from(report(&failure.help(&["dendrer", "help"]), json))
}
