//! `dendrer pack`: check a pack, show what it declares, run its tests.

use dendrer::address::Address;
use dendrer_object::Code;

use clap::{Args, Subcommand};
use dendrer::ask::packs::{PackShown, PackTested};
use dendrer::pack;
use dendrer::pack::{place_words, unsound};
use dendrer_view::pack::PackCheckAnswer;
use dendrer_view::problem;

use crate::context;
use crate::context::packs::{beside, is_file, load, read_file};
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::out::Out;

/// `pack`
#[derive(Debug, Subcommand)]
pub(crate) enum PackVerb {
    /// Say everything that is wrong with a pack
    Check(PackCheck),
    /// Show what a pack declares: fields, rules, types, tools, predicates, digest
    Show(PackShow),
    /// Run the tests of a pack
    Test(PackTest),
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
    }
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
