//! `dendrer fork`: a run that continues from an earlier tick of another.

mod by_program;
mod exec;

use clap::{Args, ValueHint};
use dendrer::Repo;
use dendrer::address::Position;
use dendrer::fork::question::{ForkPairs, ForkQuestion};
use dendrer_object::Code;
use dendrer_view::fork::{ForkAnswer, ForkExec};
use dendrer_view::quote;

use crate::context::choice::Choice;
use crate::context::desk::CommandDesk;
use crate::context::{self, packs, replies};
use crate::failure::{Failure, Result};
use crate::global::{Format, Global, tick_arg};
use crate::out::Out;
use crate::out::files;

/// `fork`
#[derive(Debug, Args)]
pub(crate) struct Fork {
    /// The run, or RUN@TICK; the newest run if not given
    #[arg(value_name = "RUN", conflicts_with = "run")]
    pub(crate) source: Option<String>,
    /// The run
    #[arg(long)]
    pub(crate) run: Option<String>,
    /// The last tick that both share
    #[arg(long, value_parser = tick_arg, value_name = "TICK", allow_hyphen_values = true)]
    pub(crate) from: Option<Position>,
    /// Why
    #[arg(long)]
    pub(crate) reason: Option<String>,
    /// KEY=VALUE: a constant of the pack or a value that a policy rule reads, enforced; other words are for the agent
    #[arg(long, value_name = "TEXT|KEY=VALUE")]
    pub(crate) policy: Vec<String>,
    /// Words for the agent on its tools
    #[arg(long, value_name = "TEXT")]
    pub(crate) tool_policy: Vec<String>,
    /// Words for whoever reads it
    #[arg(long, value_name = "TEXT")]
    pub(crate) note: Vec<String>,
    /// Another answer of a tool, for --replay-rest: the parent's tick and a JSON file with the output; in a run without
    /// rules, with "output" and "delta"
    #[arg(long, value_name = "TICK=FILE", requires = "replay_rest")]
    pub(crate) tool_output: Vec<String>,
    /// A place of the state and what stands there from here on
    #[arg(long, value_name = "PATH=JSON")]
    pub(crate) set: Vec<String>,
    /// Begin it although what it sets breaks a rule that the parent keeps; the reason is put on record
    #[arg(long, value_name = "REASON")]
    pub(crate) although: Option<String>,
    /// The pack that is in force from here on
    #[arg(long, value_name = "FILE")]
    pub(crate) contract: Option<String>,
    /// The agent that went wrong, where this restores it from before that
    #[arg(long, value_name = "AGENT")]
    pub(crate) restore: Option<String>,
    /// What the new run is called; RUN+2 and so on if not given
    #[arg(long = "as", value_name = "NEW")]
    pub(crate) new: Option<String>,
    /// Let the parent's later intents go through the door again, until one was decided on something else
    #[arg(long)]
    pub(crate) replay_rest: bool,
    #[command(flatten)]
    pub(crate) choice: Choice,
    /// Go on with it live: a command whose standard output is intents, a JSON line each, and which reads what became of them
    #[arg(long, value_name = "CMD")]
    pub(crate) exec: Option<String>,
    /// Another answer for a program: the parent's tick and a JSON file
    #[arg(long, value_name = "TICK=FILE", requires = "command")]
    pub(crate) answer: Vec<String>,
    /// With a program: no API is asked
    #[arg(long, requires = "command")]
    pub(crate) offline: bool,
    /// With a program: its own tools may run again
    #[arg(long, value_name = "run", value_parser = ["run"], requires = "command")]
    pub(crate) tools: Option<String>,
    /// Of a program's run (record): run this program, from the record up to the tick and then live
    #[arg(last = true, value_name = "CMD", conflicts_with_all = ["exec", "replay_rest"], value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<String>,
    /// Say what would be made, but write nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

pub(crate) fn run(global: &Global, args: &Fork, out: &mut Out) -> Result {
    if args.exec.as_ref().is_some_and(|command| command.trim().is_empty()) {
        return Err(Failure::new(Code::E0106, "--exec names no command").note("nothing was changed"));
    }
    if !args.command.is_empty() {
        return by_program::run(global, args, out);
    }
    let answers = answers("--tool-output", &args.tool_output)?;
    let question = question(args, &answers)?;
    let mut desk = CommandDesk::new(global, out);
    desk.names("contract", args.contract.as_deref());
    answers.iter().for_each(|(tick, file)| desk.names(format!("tool_output.{tick}"), Some(file)));
    let made = question.make(&mut desk);
    drop(desk);
    let (reply, repo) = made?;
    let exec = args.exec.as_deref().map(|command| ForkExec::new(command, reply.tip));
    let mut answer = ForkAnswer { exec, ..ForkAnswer::of(&reply) };
    out.pause(&mut answer)?;
    out.flush()?;
    if args.dry_run {
        return out.end_whole(&mut answer);
    }
    // The fork is made and signed before a command continues it.
    context::sign(&repo)?;
    let Some(command) = &args.exec else {
        context::close(repo)?;
        return out.end_whole(&mut answer);
    };
    let run = reply.terms.run.as_str();
    let stopped = go_on(global, command, &repo, &mut answer, out).map_err(|failure| stays(failure, run))?;
    context::close(repo)?;
    let complaint = answer.exec.as_ref().and_then(|exec| exec.status?.complaint());
    let failure = match (stopped, complaint) {
        (None, None) => return out.end(&mut answer),
        // Words of a program are no intent that failed: the command speaks to a reader.
        (Some(failure), None) if failure.code == Code::E0201 && answer.printed_no_intent() => {
            let said = failure.place.iter().find(|(name, _)| name == "text");
            let said = said.map(|(_, text)| quote::quoted(text)).unwrap_or_default();
            out.say(format!("note: its first line is {said}; each line is an intent, a JSON object"));
            return out.end(&mut answer);
        }
        (Some(failure), None) => failure,
        (Some(failure), Some(how)) => failure.note(format!("the command ended {how}")),
        (None, Some(how)) => Failure::new(Code::E0808, format!("the command ended {how}")),
    };
    let tally = answer.exec.map(|exec| exec.tally).unwrap_or_default();
    Err(stays(replies::precede(failure, &tally, false, out), run))
}

/// Returns the question of the flags.
fn question(args: &Fork, answers: &[(Position, &str)]) -> Result<ForkQuestion> {
    let texts = |texts: &[String]| ForkPairs(texts.iter().map(|text| (text.clone(), None)).collect());
    let answer = |(tick, file): &(Position, &str)| Ok((tick.to_string(), Some(files::json(file)?)));
    Ok(ForkQuestion {
        run: args.run.as_ref().or(args.source.as_ref()).map_or_else(|| "@".to_owned(), Clone::clone),
        from: args.from.clone(),
        reason: args.reason.clone(),
        policy: texts(&args.policy),
        tool_policy: args.tool_policy.clone(),
        note: args.note.clone(),
        tool_output: ForkPairs(answers.iter().map(answer).collect::<Result<_>>()?),
        set: texts(&args.set),
        although: args.although.clone(),
        contract: args.contract.as_deref().map(packs::text).transpose()?,
        restore: args.restore.clone(),
        r#as: args.new.clone(),
        replay_rest: args.replay_rest,
        skip: args.choice.skip,
        only: args.choice.types(),
        dry_run: args.dry_run,
    })
}

/// Reads each `TICK=FILE` of a flag.
fn answers<'a>(flag: &str, texts: &'a [String]) -> Result<Vec<(Position, &'a str)>> {
    let refused = |what: String| Failure::new(Code::E0106, what);
    let read = |text: &'a String| {
        let pair = text.split_once('=');
        let (tick, file) =
            pair.ok_or_else(|| refused(format!("{flag} takes TICK=FILE, and not \"{text}\"")))?;
        Ok((tick_arg(tick).map_err(|why| refused(format!("{flag} {text}: {why}")))?, file))
    };
    texts.iter().map(read).collect()
}

/// Goes on with the fork by a command, and returns the failure that stopped its intents before they ended.
fn go_on(
    global: &Global,
    command: &str,
    repo: &Repo,
    answer: &mut ForkAnswer<'_>,
    out: &mut Out,
) -> Result<Option<Failure>> {
    let made = answer.made();
    if out.format() == Format::Jsonl {
        out.item(&made)?;
        out.flush()?;
    }
    let place = std::path::absolute(context::find(global)?).map_err(|error| {
        Failure::new(Code::E0801, "there is no current directory").at("cause", error.to_string())
    })?;
    let mut recorder = repo.recorder(&answer.reply.terms.run)?;
    let (status, stopped) = exec::go_on(command, &place, &made, &mut recorder, answer, out)?;
    if let Some(exec) = &mut answer.exec {
        (exec.status, exec.tip) = (Some(status), recorder.head().tick());
    }
    Ok(stopped)
}

/// Says in a failure that the fork is there.
fn stays(mut failure: Failure, run: &str) -> Failure {
    failure.changed = true;
    failure.at("run", run).note(format!("{run} was made and stays")).help(&["dendrer", "log", run])
}
