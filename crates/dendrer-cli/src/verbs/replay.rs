//! `dendrer replay`

use std::collections::BTreeMap;

use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use dendrer::address::Position;
use dendrer::change::replay::{ReplayPrint, ReplayQuestion, ReplayReply};
use dendrer::reread;
use dendrer_object::{Code, Value};
use dendrer_view::graphs::record_divergence;
use dendrer_view::replay::ReplayAnswer;

use crate::context::desk::CommandDesk;
use crate::context::edges::{given_once, pair};
use crate::context::shell;
use crate::failure::{Failure, Result};
use crate::global::{Global, tick_arg, word};
use crate::offers;
use crate::out::{Out, files};
use crate::progress::Progress;

mod by_program;

/// The words of `--print`.
const PRINT: [(&str, &str); 3] = [("none", "Nothing"), ("hash", "The state root"), ("state", "The state")];

/// `replay`
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The run
    #[arg(add = ArgValueCompleter::new(offers::runs))]
    pub(crate) run: String,
    /// The first tick to print
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) from: Option<Position>,
    /// The last tick
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) to: Option<Position>,
    /// A divergence ends with exit code 7 (the default)
    #[arg(long)]
    pub(crate) strict: bool,
    /// A divergence is reported and does not fail
    #[arg(long, conflicts_with = "strict")]
    pub(crate) detect: bool,
    /// Evaluate the reducer twice and compare
    #[arg(long)]
    pub(crate) twice: bool,
    /// What to print for each tick
    #[arg(long, default_value = "none", value_parser = word::<ReplayPrint>(&PRINT))]
    pub(crate) print: ReplayPrint,
    /// With --print state: one path of it
    #[arg(long, value_name = "P", add = ArgValueCompleter::new(offers::paths))]
    pub(crate) path: Option<String>,
    /// Of a graph's run: another value of an edge, by its path and a JSON file; says what follows from it
    #[arg(long, value_name = "ID=FILE", conflicts_with_all = ["from", "to", "twice", "exec_read"])]
    pub(crate) set: Vec<String>,
    /// With --set: make a fork with these values
    #[arg(long = "as", value_name = "NEW", requires = "set")]
    pub(crate) new: Option<String>,
    /// Of a graph's or a program's run: write a divergence into the casebook
    #[arg(long)]
    pub(crate) record: bool,
    /// Call this reading tool again, by a command: JSON parameters in, JSON answer out
    #[arg(long, value_name = "TOOL=CMD")]
    pub(crate) exec_read: Vec<String>,
    /// Of a program's run (`record`): run this command for the shell, and serve its calls from the record
    #[arg(long, value_name = "CMD", conflicts_with_all = BY_KERNEL)]
    pub(crate) exec: Option<String>,
    /// Of a program's run (`record`): run this program, and serve its calls from the record
    #[arg(last = true, value_name = "CMD", conflicts_with = "exec", conflicts_with_all = BY_KERNEL, value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<String>,
    /// With a program: a place of requests that is left out when they are compared: openai-chat:/messages/0/content
    #[arg(long, value_name = "API:POINTER")]
    pub(crate) volatile: Vec<String>,
    /// With a program: serve the answer that is due to any request, and list the places that differ; with --record, later
    /// replays leave them out
    #[arg(long)]
    pub(crate) calibrate: bool,
    /// With a program: its own tools may run again
    #[arg(long, value_name = "run", value_parser = ["run"])]
    pub(crate) tools: Option<String>,
}

/// Flags of a replay that the kernel makes.
const BY_KERNEL: [&str; 8] = ["from", "to", "strict", "detect", "twice", "path", "set", "exec_read"];

pub(crate) fn run(global: &Global, args: &Replay, out: &mut Out) -> Result {
    if args.exec.is_some() || !args.command.is_empty() {
        return by_program::run(global, args, out);
    }
    if args.tools.is_some() {
        return Err(Failure::new(Code::E0106, "--tools is for a replay by a program: -- CMD"));
    }
    let question = question(args)?;
    let reply = question.ask_of(!args.exec_read.is_empty(), &mut CommandDesk::new(global, out))?;
    let ticks = match reply {
        ReplayReply::Ticks(ticks) => ticks,
        ReplayReply::Graph(replayed) => {
            if args.record {
                record_divergence(&replayed, &mut CommandDesk::new(global, out))?;
            }
            return out.answer(&*replayed);
        }
    };
    let commands = args
        .exec_read
        .iter()
        .map(|text| pair("--exec-read", "TOOL=CMD", text))
        .collect::<Result<BTreeMap<_, _>>>()?;
    let mut answer = ReplayAnswer::new(args.detect);
    // Lines that are printed tick by tick show how far the replay has come.
    let progress =
        (args.print == ReplayPrint::None).then(|| Progress::start(global, "replay", "ticks", Some(ticks.to)));
    let replayed = ticks.each(&mut |tick, listed| {
        if let Some(progress) = &progress {
            progress.set(tick);
        }
        listed.map_or(Ok(()), |listed| out.take(&mut answer, &listed))
    })?;
    drop(progress);
    if !commands.is_empty() && replayed.error.is_none() {
        let tools: Vec<&str> = commands.keys().copied().collect();
        let call = &mut |tool: &str, params: &Value| shell::ask(commands[tool], tool, params);
        let made = reread::reread(&ticks.trace, &tools, ticks.to, call).map_err(|error| {
            Failure::new(error.code(), error.to_string()).note("no command was run, and nothing was written")
        })?;
        answer.reread = Some(made);
    }
    answer.replayed = Some(replayed);
    let failure = answer.failure();
    out.end_or(&mut answer, failure)
}

/// Returns the question of the flags.
fn question(args: &Replay) -> Result<ReplayQuestion> {
    let mut set = BTreeMap::new();
    for text in &args.set {
        let (path, file) = pair("--set", "ID=FILE", text)?;
        given_once(&mut set, "--set", path, files::json(file)?)?;
    }
    Ok(ReplayQuestion {
        run: args.run.clone(),
        from: args.from.clone(),
        to: args.to.clone(),
        strict: args.strict,
        detect: args.detect,
        twice: args.twice,
        print: Some(args.print),
        path: args.path.clone(),
        set,
        r#as: args.new.clone(),
        record: args.record,
    })
}
