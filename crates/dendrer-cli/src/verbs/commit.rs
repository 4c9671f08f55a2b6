//! `dendrer commit`: intents as JSON lines, through the kernel, onto a run.

use std::io::{IsTerminal, Read};

use dendrer::kernel::step::{Stage, Start};
use dendrer::recorder::{Recorder, World};
use dendrer::store::prelude::*;
use dendrer_object::{RunName, Value};
use dendrer_view::document;

use super::intents::{self, Reading, Tally};
use crate::args::{AuthorChoice, Commit, Global};
use crate::failure::{Failure, Result};
use crate::files;
use crate::out::{Format, Out};
use crate::progress::Progress;
use crate::{keys, open};

pub(crate) fn run(global: &Global, args: &Commit, out: &mut Out) -> Result {
    if args.author == AuthorChoice::System {
        return Err(Failure::new("E0408", "system transitions are made by the kernel alone")
            .note("nothing was committed"));
    }
    let name: RunName = args
        .run
        .parse()
        .map_err(|error: dendrer_object::name::NameError| Failure::new(error.code(), error.to_string()))?;
    let lines = intents::read(input(&args.file)?)?;
    let mut store = open::write_store(global)?;
    open::refuse_trouble(&mut store)?;
    let exists = store.run(&name)?.is_some();
    if !exists {
        refuse_unreachable(&name)?;
    }
    if exists && args.new {
        return Err(Failure::new("E0111", format!("{name} exists already")).note("nothing was changed"));
    }
    let for_new = [&args.goal, &args.state, &args.policy, &args.pack];
    if exists && for_new.iter().any(|given| given.is_some()) {
        return Err(Failure::new(
            "E0106",
            format!("{name} exists already; --goal, --state, --policy and --pack are for a new run"),
        ));
    }
    let key = keys::of(global.key.as_deref(), &store)?;
    if key.is_none() {
        out.say(
            "note: the key of the log is not here; records are written, and no checkpoint is signed (E0804)",
        );
    }
    let mut recorder = match exists {
        true => Recorder::resume(&mut store, &name, Box::new(World::default()))?,
        false => {
            let begun = Recorder::begin(&mut store, &start(args, name)?, Box::new(World::default()));
            begun.map_err(|error| begun_meanwhile(args, not_begun(args, error)))?
        }
    };
    let mut tally = Tally::default();
    // Acknowledgements on the same terminal say the same, and better.
    let progress = (!std::io::stdout().is_terminal() || global.output.is_some())
        .then(|| Progress::start(global, "commit", "intents", None));
    tally.progress = progress.as_ref().map(Progress::counter);
    let reading = Reading {
        agent: args.agent.as_deref(),
        author: args.author,
        tagged: args.tagged,
        dry_run: args.dry_run,
        is_new: !exists,
        shows_text: false,
    };
    let result = intents::take(&reading, &lines, &mut recorder, &mut tally, out);
    drop(recorder);
    drop(progress);
    let closed = if args.dry_run { Ok(()) } else { keys::close(store, key.as_deref()) };
    // Whatever kept lines from being taken may keep them from being signed, too.
    result.map_err(|failure| tally.told_in(begun_meanwhile(args, failure), args.dry_run))?;
    closed?;
    let members = [
        ("run", Value::from(args.run.as_str())),
        ("committed", Value::from(tally.committed)),
        ("refused", Value::from(tally.refused)),
        ("dry_run", Value::from(args.dry_run)),
    ];
    match out.format() {
        Format::Json => {
            let items = ("items", Value::array(std::mem::take(&mut tally.items)));
            out.document(&document("commit", members.into_iter().chain([items])))?;
        }
        Format::Jsonl => out.summary("commit", members)?,
        Format::Text => {
            let dry = if args.dry_run { "nothing was written (dry run): " } else { "" };
            out.say(format!("{dry}{}", tally.words()));
        }
    }
    Ok(if tally.refused > 0 { 5 } else { 0 })
}

/// Says why a run does not begin, and with which stage it would.
/// What nobody asked to be new, and somebody else began meanwhile, was moved on.
fn begun_meanwhile(args: &Commit, failure: Failure) -> Failure {
    if failure.code != "E0111" || args.new {
        return failure;
    }
    Failure::new("E0407", format!("{} was begun by another process meanwhile", args.run))
        .note("nothing was committed; the same command goes on with it")
}

fn not_begun(args: &Commit, error: dendrer::Error) -> Failure {
    let is_stage = error.code() == "E0604";
    let failure = Failure::from(error);
    if !is_stage {
        return failure;
    }
    let mut argv = vec!["dendrer", "commit", "--run", args.run.as_str(), "--stage", "2"];
    let given = [
        ("--pack", args.pack.as_deref()),
        ("--goal", args.goal.as_deref()),
        ("--state", args.state.as_deref()),
        ("--policy", args.policy.as_deref()),
        ("--file", Some(args.file.as_str()).filter(|file| *file != "-")),
    ];
    argv.extend(given.iter().filter_map(|(flag, value)| Some([*flag, (*value)?])).flatten());
    failure.help(&argv)
}

/// Refuses a name that no address reaches: it reads as a file, or as the beginning of a hash.
pub(super) fn refuse_unreachable(name: &RunName) -> Result<()> {
    let text = name.as_str();
    let is_hash = text.len() >= 12 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if text.ends_with(".dnd") || is_hash {
        let what = if is_hash { "the beginning of a hash" } else { "a bundle" };
        return Err(Failure::new("E0106", format!("the run could not be addressed: {name} reads as {what}"))
            .note("nothing was committed"));
    }
    Ok(())
}

fn start(args: &Commit, name: RunName) -> Result<Start> {
    let policy = match &args.policy {
        None => Vec::new(),
        Some(path) => match files::json(path)? {
            Value::Array(rules) => rules.iter().cloned().collect(),
            other => {
                return Err(Failure::new(
                    "E0209",
                    format!("a policy is a list of rules, not {}", other.described()),
                )
                .at("file", path.as_str()));
            }
        },
    };
    let start = Start {
        goal: args.goal.as_deref().map(Into::into),
        stage: Stage::from_number(args.stage).unwrap_or(Stage::Replay),
        state: args.state.as_deref().map(files::json).transpose()?.unwrap_or_else(Value::object),
        policy,
        ..Start::new(name)
    };
    match &args.pack {
        Some(path) => Ok(super::pack::load(path)?.bind(start)?),
        None => Ok(start),
    }
}

/// Where the intents are.
fn input(path: &str) -> Result<Box<dyn Read + Send>> {
    match path {
        "-" => Ok(Box::new(std::io::stdin())),
        path => Ok(Box::new(files::open(path)?)),
    }
}
