//! `dendrer fork`: a run that continues from an earlier tick of another.

mod exec;

use std::collections::BTreeMap;

use clap::Args;
use dendrer::address::Address;
use dendrer::address::Position;
use dendrer::address::state_path;
use dendrer::fork::{self, ForkTerms, ReplacedAnswer};
use dendrer::kernel::pack::Bound;
use dendrer::selection::Selection;
use dendrer::{Repo, Trace};
use dendrer_object::Code;
use dendrer_object::{Delta, Pointer, Value, json};
use dendrer_view::fork::{ForkAnswer, ForkExec};

use crate::context;
use crate::context::choice::Choice;
use crate::context::packs::load;
use crate::context::replies;
use crate::context::runs::new_name;
use crate::context::ticks::one_tick;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Format;
use crate::global::Global;
use crate::global::tick_arg;
use crate::out::Out;
use crate::out::files;

/// `fork`
#[derive(Debug, Args)]
pub(crate) struct Fork {
    /// The run, or RUN@TICK
    #[arg(value_name = "RUN", required_unless_present = "run", conflicts_with = "run")]
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
    /// The pack that is in force from here on
    #[arg(long, value_name = "FILE")]
    pub(crate) contract: Option<String>,
    /// The agent that went wrong, where this restores it from before that
    #[arg(long, value_name = "AGENT")]
    pub(crate) restore: Option<String>,
    /// What the new run is called; RUN-fork-1 and so on if not given
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
    /// Say what would be made, but write nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

pub(crate) fn run(global: &Global, args: &Fork, out: &mut Out) -> Result {
    let text = args.run.as_deref().or(args.source.as_deref()).ok_or_else(|| {
        Failure::new(Code::E0106, "say which run is forked: dendrer fork RUN --from tick N")
            .note("nothing was changed")
    })?;
    let rev = Address::parse(text)?;
    if rev.bundle.is_some() {
        return Err(Failure::new(
            Code::E0106,
            "a run of a bundle is read; a fork is made of a run of the store",
        )
        .note("nothing was changed"));
    }
    // The parent is read through a handle of its own; the fork is written through another.
    let source = context::sound(global, &rev, out)?;
    let rev = rev.resolve(&source.store)?;
    let (progress, counted) = context::watched(global, &source, "fork");
    let parent = source.trace_through(&counted, &rev)?;
    let say = "say once where it is forked: --from tick N, or RUN@N";
    let tick = one_tick(args.from.as_ref(), &rev, &parent, say)?;
    let name = new_name(args.new.as_deref(), &format!("{}-fork", parent.name()), &**&source.store)?;
    let mut terms = ForkTerms::new(name);
    terms.reason = args.reason.as_deref().map(Into::into);
    terms.restored = args.restore.as_deref().map(Into::into);
    let mut words: Vec<&str> = Vec::new();
    for text in &args.policy {
        match enforced(text)? {
            Some(pair) => terms.enforce.push(pair),
            None => words.push(text),
        }
    }
    let guidance = [
        ("policy", words.join("\n")),
        ("tool_policy", args.tool_policy.join("\n")),
        ("note", args.note.join("\n")),
    ];
    let guidance = guidance.into_iter().filter(|(_, text)| !text.is_empty());
    terms.guidance.extend(guidance.map(|(name, text)| (name, text.into())));
    terms.set = args.set.iter().map(|text| setting(text)).collect::<Result<_>>()?;
    if let Some(file) = &args.contract {
        let source = load(file)?;
        terms.pack = Some(Bound { value: source.pack.value().clone(), text: source.text });
    }
    terms.replace = replacements(&args.tool_output, &parent)?;
    refuse_two_values(&terms)?;
    if args.exec.as_ref().is_some_and(|command| command.trim().is_empty()) {
        return Err(Failure::new(Code::E0106, "--exec names no command").note("nothing was changed"));
    }
    terms.selection = args.choice.selection();
    if terms.selection != Selection::default() && !args.replay_rest {
        return Err(Failure::new(Code::E0106, "--skip and --only choose what --replay-rest takes")
            .note("nothing was changed"));
    }
    let repo = context::target(global, &source, args.dry_run)?;
    let (mut recorder, forked) = repo.fork(&parent, tick, &terms)?;
    let carried = match args.replay_rest {
        true => Some(fork::carry_on(&mut recorder, &parent, &forked, &terms, !args.dry_run)?),
        false => None,
    };
    let tip = recorder.head().tick();
    let extensions = forked.extensions(&parent.state(forked.tick)?, &terms, recorder.head());
    match args.dry_run {
        true => drop(recorder.discard()),
        false => drop(recorder.commit()?),
    }
    drop((recorder, progress));
    let mut answer = ForkAnswer {
        parent: parent.name(),
        parent_tip: parent.tip(),
        terms: &terms,
        forked: &forked,
        carried: carried.as_ref(),
        extensions: &extensions,
        tip,
        exec: args.exec.as_deref().map(|command| ForkExec::new(command, tip)),
        dry_run: args.dry_run,
        headed: false,
    };
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
    let run = terms.run.as_str();
    let stopped = go_on(global, command, &repo, &mut answer, out).map_err(|failure| stays(failure, run))?;
    context::close(repo)?;
    let complaint = answer.exec.as_ref().and_then(|exec| exec.status?.complaint());
    let failure = match (stopped, complaint) {
        (None, None) => return out.end(&mut answer),
        (Some(failure), None) => failure,
        (Some(failure), Some(how)) => failure.note(format!("the command ended {how}")),
        (None, Some(how)) => Failure::new(Code::E0808, format!("the command ended {how}")),
    };
    let tally = answer.exec.map(|exec| exec.tally).unwrap_or_default();
    Err(stays(replies::precede(failure, &tally, false, out), run))
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
    let mut recorder = repo.recorder(&answer.terms.run)?;
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

/// Reads `PATH=JSON`.
fn setting(text: &str) -> Result<(Pointer, Value)> {
    let (path, value) = pair("--set", "PATH=JSON", text)?;
    let value = json::parse_door(value.as_bytes()).map_err(|error| {
        Failure::new(error.code(), format!("--set {path}: {error}")).note("a text is written as '\"text\"'")
    })?;
    Ok((state_path(path)?, value))
}

/// Reads `TICK=FILE` for each answer of a tool that is replaced.
fn replacements(texts: &[String], parent: &Trace) -> Result<BTreeMap<u64, ReplacedAnswer>> {
    let takes_delta = dendrer::run::pack::reducer_of(parent)?.takes_delta();
    let read = |text: &String| {
        let (tick, file) = pair("--tool-output", "TICK=FILE", text)?;
        let tick = tick_arg(tick)
            .map_err(|why| Failure::new(Code::E0106, format!("--tool-output {text}: {why}")))?;
        Ok((Position::tick(&tick, parent)?, answer(file, takes_delta)?))
    };
    let replace = texts.iter().map(read).collect::<Result<BTreeMap<u64, ReplacedAnswer>>>()?;
    match replace.len() < texts.len() {
        true => {
            Err(Failure::new(Code::E0106, "--tool-output names one tick twice").note("nothing was changed"))
        }
        false => Ok(replace),
    }
}

/// Refuses a place of the state that two flags give a value.
fn refuse_two_values(terms: &ForkTerms) -> Result<()> {
    let enforced =
        |path: &Pointer| terms.enforce.iter().any(|(name, _)| Pointer::of(name.split('.')).overlaps(path));
    match terms.set.iter().find(|(path, _)| enforced(path)) {
        None => Ok(()),
        Some((path, _)) => {
            let what = format!("--set and --policy both say what {} is", path.dotted());
            Err(Failure::new(Code::E0106, what).note("nothing was changed"))
        }
    }
}

fn pair<'t>(flag: &str, form: &str, text: &'t str) -> Result<(&'t str, &'t str)> {
    text.split_once('=')
        .ok_or_else(|| Failure::new(Code::E0106, format!("{flag} takes {form}, and not \"{text}\"")))
}

/// Reads `KEY=VALUE`, which is enforced; anything else is words for the agent.
fn enforced(text: &str) -> Result<Option<(String, Value)>> {
    let Some((key, value)) = text.split_once('=') else { return Ok(None) };
    let (key, value) = (key.trim(), value.trim());
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    if key.is_empty() || !key.chars().all(is_name) {
        return Ok(None);
    }
    match json::parse_door(value.as_bytes()) {
        Ok(value) => Ok(Some((key.strip_prefix("state.").unwrap_or(key).to_owned(), value))),
        Err(_) => Err(Failure::new(Code::E0106, format!("--policy {key}: \"{value}\" is not JSON"))
            .note("KEY=VALUE is enforced, with VALUE in JSON; words for the agent hold no \"name =\"")
            .note("nothing was changed")),
    }
}

/// Reads another answer of a tool: the output, and in a run without rules what it changes.
fn answer(file: &str, takes_delta: bool) -> Result<ReplacedAnswer> {
    let value = files::json(file)?;
    let both = value.as_object().filter(|members| takes_delta && members.len() == 2);
    let Some((output, delta)) =
        both.and_then(|members| Some((members.get("output")?, members.get("delta")?)))
    else {
        return Ok(ReplacedAnswer { output: value, delta: None });
    };
    let delta = Delta::from_value(delta)
        .map_err(|error| Failure::new(Code::E0209, error.to_string()).at("file", file))?;
    Ok(ReplacedAnswer { output: output.clone(), delta: Some(delta) })
}
