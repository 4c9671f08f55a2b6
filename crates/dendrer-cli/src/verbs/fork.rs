//! `dendrer fork`: a run that goes on from an old tick of another.

mod exec;

use std::collections::BTreeMap;

use clap::Args;
use dendrer::fork::{self, Answer, Carried, Changed, Forked, Stopped, Terms, What};
use dendrer::kernel::pack::{Bound, extend};
use dendrer::kernel::step::Head;
use dendrer::recorder::{Recorder, World};
use dendrer::store::Shared;
use dendrer::{Trace, fork::fork};
use dendrer_object::{Delta, Pointer, RunName, Value, json};
use dendrer_view::{count, document, quote};

use self::exec::Ran;
use crate::address::Pos;
use crate::address::Rev;
use crate::address::one_tick;
use crate::address::state_path;
use crate::context;
use crate::context::packs::load;
use crate::context::runs::new_name;
use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Format;
use crate::global::Global;
use crate::global::tick_arg;
use crate::out::Out;
use crate::out::Style;
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
    pub(crate) from: Option<Pos>,
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
    /// Go on with it live: a command whose standard output is intents, a JSON line each, and which reads what became of them
    #[arg(long, value_name = "CMD")]
    pub(crate) exec: Option<String>,
    /// Say what would be made, but write nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
}

/// How many ticks of which nothing is said are named in a note.
const SILENT_SHOWN: usize = 8;

pub(crate) fn run(global: &Global, args: &Fork, out: &mut Out) -> Result {
    let text = args.run.as_deref().or(args.source.as_deref()).ok_or_else(|| {
        Failure::new("E0106", "say which run is forked: dendrer fork RUN --from tick N")
            .note("nothing was changed")
    })?;
    let rev = Rev::parse(text)?;
    if rev.bundle.is_some() {
        return Err(Failure::new("E0106", "a run of a bundle is read; a fork is made of a run of the store")
            .note("nothing was changed"));
    }
    // The parent is read through a handle of its own; the fork is written through another.
    let source = context::sound(global, &rev, out)?;
    let rev = rev.resolve(source.store())?;
    let (progress, counted) = source.watched(global, "fork");
    let parent = source.trace_through(&counted, &rev)?;
    let say = "say once where it is forked: --from tick N, or RUN@N";
    let tick = one_tick(args.from.as_ref(), &rev, &parent, say)?;
    let repo = if args.dry_run { None } else { Some(context::write_store(global)?) };
    let rehearsal = if args.dry_run { Some(context::rehearse(global)?) } else { None };
    let store = match (&repo, &rehearsal) {
        (Some(repo), _) => repo.writer()?,
        (None, Some(store)) => store,
        (None, None) => unreachable!("one of both is opened"),
    };
    let name = new_name(args.new.as_deref(), &format!("{}-fork", parent.name()), store)?;
    let terms = terms(args, name, &parent)?;
    if args.exec.as_ref().is_some_and(|command| command.trim().is_empty()) {
        return Err(Failure::new("E0106", "--exec names no command").note("nothing was changed"));
    }
    if let Some(repo) = &repo {
        repo.signing_key()?;
    }
    let surroundings = Box::new(World::default());
    let (mut recorder, forked) = fork(&parent, store, tick, &terms, surroundings)?;
    let carried = match args.replay_rest {
        true => Some(fork::carry_on(&mut recorder, &parent, &forked, &terms, !args.dry_run)?),
        false => None,
    };
    let tip = recorder.head().tick();
    let extensions = extensions(&parent.state(forked.tick)?, &terms, &forked, recorder.head());
    match args.dry_run {
        true => drop(recorder.discard()),
        false => drop(recorder.commit()?),
    }
    drop((recorder, progress));
    let made = Made {
        args,
        parent: &parent,
        terms: &terms,
        forked: &forked,
        carried: carried.as_ref(),
        extensions,
        tip,
    };
    if out.is_text() {
        made.print(out)?;
    }
    let Some(repo) = repo else { return made.end(Ran { tip, ..Ran::default() }, out) };
    // The fork is made and signed before a command goes on with it.
    context::sign(&repo)?;
    let ran = match &args.exec {
        Some(command) => made.go_on(global, command, repo.writer()?, out)?,
        None => Ran { tip, ..Ran::default() },
    };
    context::close(repo)?;
    made.end(ran, out)
}

/// What becomes of the extensions of the parent under another pack, or under one with another constant.
fn extensions(parent: &Value, terms: &Terms, forked: &Forked, head: &Head) -> Vec<(Value, bool)> {
    let is_other = |changed: &Changed| matches!(changed.what, What::Constant(_));
    if terms.pack.is_none() && !forked.changed.iter().any(is_other) {
        return Vec::new();
    }
    let pack = head.in_force();
    let goes_on = |one: &Value| pack.as_ref().is_some_and(|pack| extend::is_of(one, pack));
    extend::all(parent).map(|one| (one.clone(), goes_on(one))).collect()
}

fn terms(args: &Fork, name: RunName, parent: &Trace) -> Result<Terms> {
    let mut terms = Terms::new(name);
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
    terms.guidance.extend(
        guidance.into_iter().filter(|(_, text)| !text.is_empty()).map(|(name, text)| (name, text.into())),
    );
    for text in &args.set {
        let (path, value) = pair("--set", "PATH=JSON", text)?;
        let value = json::parse_door(value.as_bytes()).map_err(|error| {
            Failure::new(error.code(), format!("--set {path}: {error}"))
                .note("a text is written as '\"text\"'")
        })?;
        terms.set.push((state_path(path)?, value));
    }
    if let Some(file) = &args.contract {
        let source = load(file)?;
        terms.pack = Some(Bound { value: source.pack.value().clone(), text: source.text });
    }
    let takes_delta = dendrer::run::pack::reducer_of(parent)?.takes_delta();
    terms.replace = args
        .tool_output
        .iter()
        .map(|text| {
            let (tick, file) = pair("--tool-output", "TICK=FILE", text)?;
            let tick = crate::global::tick_arg(tick)
                .map_err(|why| Failure::new("E0106", format!("--tool-output {text}: {why}")))?;
            Ok((Pos::tick(&tick, parent)?, answer(file, takes_delta)?))
        })
        .collect::<Result<BTreeMap<u64, Answer>>>()?;
    if terms.replace.len() < args.tool_output.len() {
        return Err(Failure::new("E0106", "--tool-output names one tick twice").note("nothing was changed"));
    }
    let enforced =
        |path: &Pointer| terms.enforce.iter().any(|(name, _)| Pointer::of(name.split('.')).overlaps(path));
    if let Some((path, _)) = terms.set.iter().find(|(path, _)| enforced(path)) {
        let what = format!("--set and --policy both say what {} is", path.dotted());
        return Err(Failure::new("E0106", what).note("nothing was changed"));
    }
    Ok(terms)
}

fn pair<'t>(flag: &str, form: &str, text: &'t str) -> Result<(&'t str, &'t str)> {
    text.split_once('=')
        .ok_or_else(|| Failure::new("E0106", format!("{flag} takes {form}, and not \"{text}\"")))
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
        Err(_) => Err(Failure::new("E0106", format!("--policy {key}: \"{value}\" is not JSON"))
            .note("KEY=VALUE is enforced, with VALUE in JSON; words for the agent hold no \"name =\"")
            .note("nothing was changed")),
    }
}

/// Reads another answer of a tool: the output, and in a run without rules what it changes.
fn answer(file: &str, takes_delta: bool) -> Result<Answer> {
    let value = files::json(file)?;
    let both = value.as_object().filter(|members| takes_delta && members.len() == 2);
    let Some((output, delta)) =
        both.and_then(|members| Some((members.get("output")?, members.get("delta")?)))
    else {
        return Ok(Answer { output: value, delta: None });
    };
    let delta = Delta::from_value(delta)
        .map_err(|error| Failure::new("E0209", error.to_string()).at("file", file))?;
    Ok(Answer { output: output.clone(), delta: Some(delta) })
}

/// What was made, or would be.
struct Made<'a> {
    args: &'a Fork,
    parent: &'a Trace,
    terms: &'a Terms,
    forked: &'a Forked,
    carried: Option<&'a Carried>,
    /// Where another pack is in force: what extensions there were, and whether they go on.
    extensions: Vec<(Value, bool)>,
    tip: u64,
}

impl Made<'_> {
    fn print(&self, out: &mut Out) -> Result<()> {
        let (tick, from, name) = (self.forked.tick, self.forked.replayed_from, &self.terms.run);
        let root = self.forked.state_root.short();
        let ok = out.paint(Style::Good, "OK");
        let replayed = match (from, tick) {
            (_, 0) => "nothing: it goes on from the beginning".to_owned(),
            (0, _) => format!("ticks 1..{tick} {ok}"),
            _ => format!("ticks {}..{tick} {ok}, from the snapshot at tick {from}", from + 1),
        };
        out.line(format!("replayed   {replayed}, state {root} equals the record"))?;
        let word = if self.args.dry_run { "would fork" } else { "forked    " };
        let parent = self.parent.name();
        out.line(format!("{word} {name} from {parent}@{tick}   its tick {} is run.fork", tick + 1))?;
        if let Some(reason) = &self.terms.reason {
            out.line(format!("reason     {}", quote::quoted(reason)))?;
        }
        for (name, text) in &self.terms.guidance {
            let name = name.replace('_', "-");
            out.line(format!(
                "guidance   {name} {}   recorded for the agent, enforced by nobody",
                quote::quoted(text)
            ))?;
        }
        for changed in &self.forked.changed {
            out.line(change_line(changed))?;
        }
        if self.terms.pack.is_some() {
            out.line("enforced   another pack from here on")?;
        }
        for (extension, goes_on) in &self.extensions {
            let text = |name: &str| extension.get(name).and_then(Value::as_str).unwrap_or_default();
            let (id, of) = (quote::escape(text("id")), quote::escape(text("target_contract")));
            out.line(match goes_on {
                true => format!("extension  {id} of {of} goes on"),
                false => format!("extension  {id} of {of} ends: the fork goes on under another contract"),
            })?;
        }
        for tick in self.terms.replace.keys() {
            out.line(format!("changed    tool output of parent tick {tick}"))?;
        }
        if let Some(agent) = &self.terms.restored {
            out.line(format!("restored   {} from before it went wrong", quote::escape(agent)))?;
        }
        if let Some(carried) = self.carried {
            print_carried(carried, self.parent.tip(), out)?;
        }
        if let Some(command) = &self.args.exec {
            let word = if self.args.dry_run { "would run" } else { "running  " };
            out.line(format!("{word}  {}", quote::escape(command)))?;
        }
        out.flush()
    }

    /// Goes on with the fork by a command.
    fn go_on(&self, global: &Global, command: &str, store: &Shared, out: &mut Out) -> Result<Ran> {
        let fork = self.document(None);
        if out.format() == Format::Jsonl {
            out.item(&fork)?;
            out.flush()?;
        }
        let place = std::path::absolute(context::find(global)?).map_err(|error| {
            Failure::new("E0801", "there is no current directory").at("cause", error.to_string())
        })?;
        let resumed = Recorder::resume(store, &self.terms.run, Box::new(World::default()));
        let mut recorder = resumed.map_err(|error| self.stays(error.into()))?;
        exec::go_on(command, &place, &fork, &mut recorder, out).map_err(|failure| self.stays(failure))
    }

    /// Says in a failure that the fork is there.
    fn stays(&self, mut failure: Failure) -> Failure {
        let run = self.terms.run.as_str();
        failure.changed = true;
        failure.at("run", run).note(format!("{run} was made and stays")).help(&["dendrer", "log", run])
    }

    /// Says what came of it, and returns the exit code.
    fn end(&self, mut ran: Ran, out: &mut Out) -> Result {
        let run = self.terms.run.as_str();
        let complaint = ran.complaint();
        let failure = match (ran.stopped.take(), &complaint) {
            (Some(failure), None) => Some(failure),
            (Some(failure), Some(how)) => Some(failure.note(format!("the command ended {how}"))),
            (None, Some(how)) => Some(Failure::new("E0808", format!("the command ended {how}"))),
            (None, None) => None,
        };
        if let Some(failure) = failure {
            return Err(self.stays(ran.replies.precede(failure, false)));
        }
        match (out.format(), &self.args.exec) {
            (Format::Text, _) => self.next(&ran, out),
            (Format::Jsonl, Some(command)) if !self.args.dry_run => {
                let ran = ran.to_value(command, Value::from(ran.replies.printed));
                out.summary("fork", [("run", Value::from(run)), ("exec", ran)])?;
            }
            (_, command) => {
                let items = Value::array(std::mem::take(&mut ran.replies.items));
                let ran = command.as_deref().map(|command| ran.to_value(command, items));
                out.document(&self.document(Some(ran.unwrap_or(Value::Null))))?;
            }
        }
        Ok(0)
    }

    /// Says what can be done next.
    fn next(&self, ran: &Ran, out: &mut Out) {
        let (run, parent) = (self.terms.run.as_str(), self.parent.name().as_str());
        if self.args.dry_run {
            out.say("nothing was written (dry run)");
            return;
        }
        if self.args.exec.is_some() {
            out.say(dendrer_view::commit::words(&ran.replies.tally));
        } else {
            if self.carried.is_none() {
                out.say("note: this is the branch point alone; nothing goes on by itself");
            }
            let tip = ran.tip.to_string();
            let live = ["--from", "tick", &tip, "--exec", "python agent.py"];
            out.help(&[&["dendrer", "fork", "--run", run], &live[..]].concat());
            out.help(&["dendrer", "commit", "--run", run]);
        }
        let from = self.forked.tick.to_string();
        out.help(&["dendrer", "diff", parent, run, "--from", "tick", &from]);
    }

    /// The fork as a document; with what came of a command, if that is told.
    fn document(&self, exec: Option<Value>) -> Value {
        let terms = self.terms;
        let text = |text: &Option<std::sync::Arc<str>>| Value::from(text.as_deref());
        let guidance = terms.guidance.iter().map(|(name, words)| (*name, Value::from(&**words)));
        let changed = self.forked.changed.iter().map(|changed| {
            let (what, name, rule) = match &changed.what {
                What::State(path) => ("state", path.to_string(), None),
                What::Constant(name) => ("constant", name.clone(), None),
                What::Policy(path, rule) => ("state", path.to_string(), Some(&**rule)),
            };
            Value::record([
                ("what", Value::from(what)),
                ("name", Value::from(name)),
                ("enforced_by", Value::from(rule)),
                ("before", changed.before.clone().unwrap_or(Value::Null)),
                ("was_absent", Value::from(changed.before.is_none())),
                ("after", changed.after.clone()),
            ])
        });
        document(
            "fork",
            [
                ("run", Value::from(terms.run.as_str())),
                ("parent", Value::from(self.parent.name().as_str())),
                ("parent_tick", Value::from(self.forked.tick)),
                ("marker_tick", Value::from(self.forked.tick + 1)),
                ("marker", Value::from(self.forked.marker.id())),
                ("replayed_from", Value::from(self.forked.replayed_from)),
                ("state_root", Value::from(self.forked.state_root)),
                ("reason", text(&terms.reason)),
                ("restored", text(&terms.restored)),
                ("guidance", Value::record(guidance)),
                ("changed", Value::array(changed)),
                (
                    "extensions",
                    Value::array(self.extensions.iter().map(|(one, goes_on)| {
                        Value::record([
                            ("goes_on", Value::from(*goes_on)),
                            ("id", one.get("id").cloned().unwrap_or(Value::Null)),
                        ])
                    })),
                ),
                ("replaced", Value::array(terms.replace.keys().map(|tick| Value::from(*tick)))),
                ("carried", self.carried.map_or(Value::Null, carried_json)),
                ("tip", Value::from(self.tip)),
                ("dry_run", Value::from(self.args.dry_run)),
            ]
            .into_iter()
            .chain(exec.map(|exec| ("exec", exec))),
        )
    }
}

fn side(value: Option<&Value>) -> String {
    value.map_or_else(|| "(absent)".to_owned(), quote::value)
}

fn change_line(changed: &Changed) -> String {
    let (before, after) = (side(changed.before.as_ref()), side(Some(&changed.after)));
    match &changed.what {
        What::State(path) => format!("set        {}  {before} -> {after}", quote::path(path)),
        What::Constant(name) => {
            format!("enforced   {}  {before} -> {after}   a constant of the pack", quote::escape(name))
        }
        What::Policy(path, rule) => format!(
            "enforced   {}  {before} -> {after}   read by the policy rule {}",
            quote::path(path),
            quote::escape(rule)
        ),
    }
}

/// Writes ticks of the parent with the ticks they have here: `22..26 as 23..27`.
fn print_carried(carried: &Carried, tip: u64, out: &mut Out) -> Result<()> {
    match (carried.ticks.first(), carried.ticks.last()) {
        (Some((first, here)), Some((last, there))) if first != last => {
            out.line(format!(
                "re-applied parent ticks {first}..{last} as {here}..{there}, through the door"
            ))?;
        }
        (Some((first, here)), _) => {
            out.line(format!("re-applied parent tick {first} as {here}, through the door"))?;
        }
        _ => out.line("re-applied nothing of the parent")?,
    }
    match &carried.stopped {
        None => out.line(format!("reached    the parent's last tick, {tip}"))?,
        Some((tick, why)) => {
            out.line(format!("stopped    before parent tick {tick}: {}", stopped(why)))?;
        }
    }
    for (ticks, what) in [
        (&carried.errors, "a rule met an error here, and the state does not follow, at parent"),
        (&carried.unmoved, "another answer changed nothing in the state at parent"),
    ] {
        if !ticks.is_empty() {
            let named: Vec<String> = ticks.iter().take(SILENT_SHOWN).map(u64::to_string).collect();
            let more = if ticks.len() > SILENT_SHOWN { ", ..." } else { "" };
            let line = out.paint(Style::Warn, &format!("WARN       {what} tick {}{more}", named.join(", ")));
            out.line(line)?;
        }
    }
    if !carried.silent.is_empty() {
        let named: Vec<String> = carried.silent.iter().take(SILENT_SHOWN).map(u64::to_string).collect();
        let more = if carried.silent.len() > SILENT_SHOWN { ", ..." } else { "" };
        let ticks = count(carried.silent.len() as u64, "parent tick says", "parent ticks say");
        out.say(format!(
            "note: {ticks} nothing of what was decided on, and may have been decided otherwise here: {}{more}",
            named.join(", ")
        ));
    }
    out.say("note: no model and no tool was called; past this point only a live run can tell");
    Ok(())
}

fn stopped(why: &Stopped) -> String {
    match why {
        Stopped::Rests(tick) => format!("it rests on parent tick {tick}, which says something else here"),
        Stopped::DecidedOn(path, then, now) => format!(
            "it was decided on {} {}, here it is {}",
            quote::path(path),
            side(then.as_ref()),
            side(now.as_ref())
        ),
        Stopped::Kernel(type_name) => {
            format!("the kernel wrote {type_name} about the parent; here it writes what happens here")
        }
        Stopped::Refused(code, reason) => format!("it is refused here ({code}): {}", quote::escape(reason)),
    }
}

fn carried_json(carried: &Carried) -> Value {
    let ticks = carried.ticks.iter().map(|(parent, here)| {
        Value::record([("parent", Value::from(*parent)), ("tick", Value::from(*here))])
    });
    let stop = carried.stopped.as_ref().map(|(tick, why)| {
        let (kind, path, then, now) = match why {
            Stopped::Rests(_) => ("rests_on", None, None, None),
            Stopped::DecidedOn(path, then, now) => ("decided_on", Some(path), then.as_ref(), now.as_ref()),
            Stopped::Kernel(_) => ("kernel", None, None, None),
            Stopped::Refused(..) => ("refused", None, None, None),
        };
        let value = |value: Option<&Value>| value.cloned().unwrap_or(Value::Null);
        Value::record([
            ("parent", Value::from(*tick)),
            ("kind", Value::from(kind)),
            ("why", Value::from(stopped(why))),
            ("path", Value::from(path.map(|path| path.as_str()))),
            ("then", value(then)),
            ("now", value(now)),
        ])
    });
    Value::record([
        ("ticks", Value::array(ticks)),
        ("unsaid", Value::array(carried.silent.iter().map(|tick| Value::from(*tick)))),
        ("errors", Value::array(carried.errors.iter().map(|tick| Value::from(*tick)))),
        ("unmoved", Value::array(carried.unmoved.iter().map(|tick| Value::from(*tick)))),
        ("stopped", stop.unwrap_or(Value::Null)),
    ])
}
