//! `dendrer pack`: check a pack, show what it declares, run its tests, make one of a contract of the paper.

use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use dendrer::address::Address;
use dendrer_object::Code;
use dendrer_object::text::count;

use clap::{Args, Subcommand};
use dendrer::ask::packs::{PackShown, PackTested};
use dendrer::pack;
use dendrer::pack::{PackProblem, place_words, unsound};
use dendrer_view::pack::{PackCheckAnswer, PackConvertAnswer};
use dendrer_view::problem;

use crate::context;
use crate::context::packs::{beside, is_file, load, read_file};
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::out::{Out, files};

/// `pack`
#[derive(Debug, Subcommand)]
pub(crate) enum PackVerb {
    /// Say everything that is wrong with a pack
    Check(PackCheck),
    /// Show what a pack declares: fields, rules, types, tools, predicates, digest
    Show(PackShow),
    /// Run the tests of a pack
    Test(PackTest),
    /// Make a pack of a contract, or an extension of a payload, as the dendrer paper prints them
    Convert(PackConvert),
}

/// `pack check`
#[derive(Debug, Args)]
pub(crate) struct PackCheck {
    /// The pack: YAML or JSON
    pub(crate) file: String,
    /// Report also what a run at this stage does not enforce of it
    #[arg(long, value_parser = clap::value_parser!(u64).range(0..=3))]
    pub(crate) stage: Option<u64>,
}

/// `pack show`
#[derive(Debug, Args)]
pub(crate) struct PackShow {
    /// A pack, or a run that carries one
    #[arg(value_name = "FILE|RUN")]
    pub(crate) target: String,
    /// Of a run: print the text of its pack as it was written
    #[arg(long)]
    pub(crate) text: bool,
}

/// `pack test`
#[derive(Debug, Args)]
pub(crate) struct PackTest {
    /// The pack: YAML or JSON
    pub(crate) file: String,
    /// A file with more tests
    #[arg(long, value_name = "FILE")]
    pub(crate) cases: Option<String>,
}

/// `pack convert`
#[derive(Debug, Args)]
pub(crate) struct PackConvert {
    /// The contract (appendix G of the paper) or the payload of an extension (4.4): YAML or JSON. -o names the new file
    pub(crate) file: String,
}

pub(crate) fn run(global: &Global, verb: &PackVerb, out: &mut Out) -> Result {
    match verb {
        PackVerb::Check(PackCheck { file, stage }) => {
            let checked = pack::read_with(&read_file(file)?, beside(file));
            out.answer(&PackCheckAnswer { file, checked: &checked, stage: *stage })
        }
        PackVerb::Show(PackShow { target, .. }) if is_file(target) => {
            out.answer(&PackShown::of_source(load(target)?))
        }
        PackVerb::Show(PackShow { target, text }) => of_run(global, target, *text, out),
        PackVerb::Test(PackTest { file, cases }) => test(file, cases.as_deref(), out),
        PackVerb::Convert(PackConvert { file }) => convert(global, file, out),
    }
}

/// Converts a text of the paper to a pack or an extension, in a new file.
fn convert(global: &Global, file: &str, out: &mut Out) -> Result {
    let Some(new) = &global.output else {
        return Err(Failure::new(Code::E0106, "pack convert writes a file")
            .note("nothing was done")
            .help(&["dendrer", "pack", "convert", file, "-o", "NEW.yaml"]));
    };
    let converted =
        pack::convert::convert(&read_file(file)?).map_err(|problems| not_converted(file, &problems))?;
    let path = Path::new(new);
    let mut written = File::create_new(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::new(Code::E0106, format!("{new} is there already"))
            .note("nothing was done; name a new file"),
        _ => files::cannot_write(path, &error),
    })?;
    let written = written.write_all(converted.text.as_bytes()).and_then(|()| written.sync_all());
    written.map_err(|error| {
        // Ignored: the failure to write is reported.
        let _ = std::fs::remove_file(path);
        files::cannot_write(path, &error)
    })?;
    out.answer(&PackConvertAnswer { file, new, converted: &converted })
}

fn not_converted(file: &str, problems: &[PackProblem]) -> Failure {
    let many = count(problems.len() as u64, "place", "places");
    let code = problems.iter().map(|problem| problem.code).find(|code| *code == Code::E0206);
    let mut failure = Failure::new(code.unwrap_or(Code::E0902), format!("{file} is not converted: {many}"))
        .note("nothing was written");
    for problem in problems {
        failure = failure.at("problem", format!("{} {}", place_words(file, problem.mark), problem.message));
    }
    let first = problems.first().and_then(|problem| problem.hint.clone());
    first.into_iter().fold(failure, Failure::note)
}

/// Shows the pack of a run, or prints its text.
fn of_run(global: &Global, target: &str, text: bool, out: &mut Out) -> Result {
    let rev = Address::parse(target)?;
    let source = context::source(global, &rev, out)?;
    let trace = source.trace(&rev)?;
    let run = trace.name().as_str();
    let no_pack = || problem::no_pack(Failure::new(Code::E0909, format!("{run} has no pack")), run);
    if !text {
        return out.answer(&PackShown::of_run(&trace)?.ok_or_else(no_pack)?);
    }
    let (text, agrees) = dendrer::run::pack::text_of_run(&trace).ok_or_else(no_pack)?;
    out.bytes(text.as_bytes())?;
    if !agrees {
        out.say("warning: this text does not say what the pack of the run says, and the pack is in force");
        out.help(&["dendrer", "pack", "show", target]);
    }
    Ok(if agrees { 0 } else { 4 })
}

fn test(file: &str, cases: Option<&str>, out: &mut Out) -> Result {
    let source = load(file)?;
    let mut tests: Vec<_> = source.test().into_iter().map(|test| (file.to_owned(), test)).collect();
    if let Some(cases) = cases {
        let more = source.test_with(&read_file(cases)?).map_err(|problems| unsound(cases, &problems))?;
        tests.extend(more.into_iter().map(|test| (cases.to_owned(), test)));
    }
    let tested = PackTested::of(&source.pack, tests).map_err(|stopped| {
        let at = place_words(&stopped.file, stopped.mark);
        Failure::from(stopped.error).at("test", &*stopped.name).at("place", at)
    })?;
    out.answer(&tested)
}
