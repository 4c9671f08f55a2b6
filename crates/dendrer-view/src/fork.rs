//! A fork: the branch point, the changes, the intents that were applied again, and the command that continues it.

use std::sync::Arc;

use dendrer::change::reapply::ReapplyStopped;
use dendrer::fork::{Carried, Changed, ForkTerms, Forked, What};
use dendrer::lines::{LinesTally, Reply};
use dendrer_object::{RunName, Value};

use crate::answer::{ItemAnswer, Line, Page, Style};
use crate::rebase::{side, stop_members, stopped};
use crate::{commit, count, document, quote};

/// How many ticks are named in a line.
const TICKS_SHOWN: usize = 8;

/// The word for a tick of the run that was forked.
const SOURCE: &str = "parent tick";

/// A fork that was made, or would be. Its items are the replies to the command that continues it.
#[derive(Debug, Clone)]
pub struct ForkAnswer<'f> {
    /// The run that was forked.
    pub parent: &'f RunName,
    /// The last tick of that run.
    pub parent_tip: u64,
    /// The changes that were asked for.
    pub terms: &'f ForkTerms,
    /// The branch point.
    pub forked: &'f Forked,
    /// The later intents of the parent that were applied again; `None` if that was not asked for.
    pub carried: Option<&'f Carried>,
    /// The extensions of the parent under another pack, each with whether it stays in force.
    pub extensions: &'f [(Value, bool)],
    /// The last tick of the fork.
    pub tip: u64,
    /// The command that continues it.
    pub exec: Option<ForkExec<'f>>,
    /// Whether nothing was to be written.
    pub dry_run: bool,
    /// Whether the lines of the fork were printed.
    pub headed: bool,
}

/// A command that continues a fork.
#[derive(Debug, Clone)]
pub struct ForkExec<'f> {
    /// The command.
    pub command: &'f str,
    /// Exit code and signal of the command; `None` if it was not run.
    pub status: Option<ExecStatus>,
    /// The last tick of the run.
    pub tip: u64,
    /// The counts of the replies.
    pub tally: LinesTally,
    /// How many replies there were.
    pub replies: u64,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExecStatus {
    /// Its exit code.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

/// A shell adds this to the number of the signal that ended what it ran.
const SHELL_SIGNALLED: i32 = 128;

impl ExecStatus {
    /// Returns how the command failed, in words; `None` if it did not.
    pub fn complaint(&self) -> Option<String> {
        match (self.signal, self.code) {
            (Some(signal), _) => Some(format!("by signal {signal}")),
            (None, Some(0)) => None,
            (None, Some(code)) if code > SHELL_SIGNALLED => {
                let signal = code - SHELL_SIGNALLED;
                Some(format!("with code {code}, which a shell says where signal {signal} ended what it ran"))
            }
            (None, Some(code)) => Some(format!("with code {code}")),
            (None, None) => Some("in a way that the system has no word for".to_owned()),
        }
    }
}

impl<'f> ForkExec<'f> {
    /// A command that was not run yet on a fork that ends at a tick.
    pub fn new(command: &'f str, tip: u64) -> ForkExec<'f> {
        ForkExec { command, status: None, tip, tally: LinesTally::default(), replies: 0 }
    }

    fn to_json(&self, items: Value) -> Value {
        Value::record([
            ("command", Value::from(self.command)),
            ("ran", Value::from(self.status.is_some())),
            ("code", Value::from(self.status.and_then(|status| status.code).map(i64::from))),
            ("signal", Value::from(self.status.and_then(|status| status.signal).map(i64::from))),
            ("committed", Value::from(self.tally.committed)),
            ("refused", Value::from(self.tally.refused)),
            ("tip", Value::from(self.tip)),
            ("items", items),
        ])
    }
}

impl ItemAnswer for ForkAnswer<'_> {
    type Item = Reply;

    fn item(&mut self, reply: &Reply) -> Option<Value> {
        self.count(reply);
        Some(commit::item(reply))
    }

    fn item_lines(&mut self, reply: &Reply, _: &Page) -> Vec<Line> {
        self.count(reply);
        vec![commit::styled_line(reply, false)]
    }

    fn summary(&self) -> Value {
        let exec = self.exec.as_ref().map(|exec| exec.to_json(Value::from(exec.replies)));
        let run = ("run", Value::from(self.terms.run.as_str()));
        document("fork", [run, ("exec", exec.unwrap_or(Value::Null))])
    }

    fn whole(&self, items: Vec<Value>) -> Value {
        let exec = self.exec.as_ref().map(|exec| exec.to_json(Value::array(items)));
        let mut whole = self.made().as_object().cloned().unwrap_or_default();
        whole.set("exec", exec.unwrap_or(Value::Null));
        Value::Object(whole)
    }

    fn kept_lines(&mut self, _: &Page) -> Vec<Line> {
        if std::mem::replace(&mut self.headed, true) { Vec::new() } else { self.made_lines() }
    }

    fn last_lines(&mut self, _: &Page) -> Vec<Line> {
        let (run, parent) = (self.terms.run.as_str(), self.parent.as_str());
        if self.dry_run {
            return vec![Line::note("nothing was written (dry run)")];
        }
        let mut lines = Vec::new();
        match &self.exec {
            Some(exec) => lines.push(Line::note(commit::words(&exec.tally))),
            None => {
                if self.carried.is_none() {
                    let note = "note: this is the branch point alone; nothing goes on by itself";
                    lines.push(Line::note(note));
                }
                let (tip, agent) = (self.tip.to_string(), "python agent.py");
                let live = ["dendrer", "fork", "--run", run, "--from", "tick", &tip, "--exec", agent];
                lines.push(Line::help(live));
                lines.push(Line::help(["dendrer", "commit", "--run", run]));
            }
        }
        let from = self.forked.tick.to_string();
        lines.push(Line::help(["dendrer", "diff", parent, run, "--from", "tick", &from]));
        lines
    }
}

impl ForkAnswer<'_> {
    fn count(&mut self, reply: &Reply) {
        if let Some(exec) = &mut self.exec {
            exec.tally.count(reply);
            exec.replies += 1;
        }
    }

    fn made_lines(&self) -> Vec<Line> {
        let ForkAnswer { parent, terms, forked, carried, extensions, dry_run, .. } = self;
        let (tick, from, name) = (forked.tick, forked.replayed_from, &terms.run);
        let line = match (from, tick) {
            (_, 0) => Line::from("replayed   nothing: it goes on from the beginning"),
            _ => Line::from(format!("replayed   ticks {}..{tick} ", from + 1)).then_styled(Style::Good, "OK"),
        };
        let line = if from == 0 { line } else { line.then(format!(", from the snapshot at tick {from}")) };
        let mut lines = vec![line.then(format!(", state {} equals the record", forked.state_root.short()))];
        let word = if *dry_run { "would fork" } else { "forked    " };
        let next = tick + 1;
        lines.push(format!("{word} {name} from {parent}@{tick}   its tick {next} is run.fork").into());
        let reason = terms.reason.iter().map(|reason| format!("reason     {}", quote::quoted(reason)));
        let guidance = terms.guidance.iter().map(|(name, text)| {
            let (name, text) = (name.replace('_', "-"), quote::quoted(text));
            format!("guidance   {name} {text}   recorded for the agent, enforced by nobody")
        });
        let changed = forked.changed.iter().map(change_line);
        let pack = terms.pack.iter().map(|_| "enforced   another pack from here on".to_owned());
        let replaced =
            terms.replace.keys().map(|tick| format!("changed    tool output of parent tick {tick}"));
        let restored = terms
            .restored
            .iter()
            .map(|agent| format!("restored   {} from before it went wrong", quote::escape(agent)));
        let facts = reason.chain(guidance).chain(changed).chain(pack);
        let facts = facts.chain(extensions.iter().map(extension_line)).chain(replaced).chain(restored);
        lines.extend(facts.map(Line::from));
        lines.extend(carried.iter().flat_map(|carried| carried_lines(carried, self.parent_tip)));
        lines.extend(self.exec.iter().map(|exec| {
            let word = if *dry_run { "would run" } else { "running  " };
            Line::from(format!("{word}  {}", quote::escape(exec.command)))
        }));
        lines
    }

    /// Returns the fork as a document without the command that continues it.
    pub fn made(&self) -> Value {
        let terms = self.terms;
        let text = |text: &Option<Arc<str>>| Value::from(text.as_deref());
        let guidance = terms.guidance.iter().map(|(name, words)| (*name, Value::from(&**words)));
        let changed = self.forked.changed.iter().map(|changed| {
            let (what, name, rule) = match &changed.what {
                What::State(path) => ("state", path.written(), None),
                What::Constant(name) => ("constant", name.clone(), None),
                What::Policy(path, rule) => ("state", path.written(), Some(&**rule)),
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
                ("parent", Value::from(self.parent.as_str())),
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
                ("dry_run", Value::from(self.dry_run)),
            ],
        )
    }
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

fn extension_line((extension, goes_on): &(Value, bool)) -> String {
    let text = |name: &str| extension.get(name).and_then(Value::as_str).unwrap_or_default();
    let (id, of) = (quote::escape(text("id")), quote::escape(text("target_contract")));
    match goes_on {
        true => format!("extension  {id} of {of} goes on"),
        false => format!("extension  {id} of {of} ends: the fork goes on under another contract"),
    }
}

/// Writes ticks of the parent with the ticks they have here: `22..26 as 23..27`.
fn carried_lines(carried: &Carried, tip: u64) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    lines.push(match (carried.ticks.first(), carried.ticks.last()) {
        (Some((first, here)), Some((last, there))) if first != last => {
            format!("re-applied parent ticks {first}..{last} as {here}..{there}, through the door").into()
        }
        (Some((first, here)), _) => {
            format!("re-applied parent tick {first} as {here}, through the door").into()
        }
        _ => "re-applied nothing of the parent".into(),
    });
    lines.push(match &carried.stopped {
        None => format!("reached    the parent's last tick, {tip}").into(),
        Some((tick, why)) => format!("stopped    before parent tick {tick}: {}", stopped(why, SOURCE)).into(),
    });
    let left_out = carried.left_out.iter().take(TICKS_SHOWN).map(|(tick, why)| {
        Line::styled(Style::Warn, format!("left out   parent tick {tick}: {}", stopped(why, SOURCE)))
    });
    lines.extend(left_out);
    if carried.left_out.len() > TICKS_SHOWN {
        let more = carried.left_out.len() - TICKS_SHOWN;
        lines.push(Line::note(format!("note: {more} more were left out; --format json lists all of them")));
    }
    for (ticks, what) in [
        (&carried.errors, "a rule met an error here, and the state does not follow, at parent"),
        (&carried.unmoved, "another answer changed nothing in the state at parent"),
    ] {
        if !ticks.is_empty() {
            let line = format!("WARN       {what} tick {}", first_of(ticks));
            lines.push(Line::styled(Style::Warn, line));
        }
    }
    if !carried.silent.is_empty() {
        let ticks = count(carried.silent.len() as u64, "parent tick says", "parent ticks say");
        let what = "nothing of what was decided on, and may have been decided otherwise here";
        lines.push(Line::note(format!("note: {ticks} {what}: {}", first_of(&carried.silent))));
    }
    let note = "note: no model and no tool was called; past this point only a live run can tell";
    lines.push(Line::note(note));
    lines
}

fn first_of(ticks: &[u64]) -> String {
    let named: Vec<String> = ticks.iter().take(TICKS_SHOWN).map(u64::to_string).collect();
    let more = if ticks.len() > TICKS_SHOWN { ", ..." } else { "" };
    format!("{}{more}", named.join(", "))
}

fn carried_json(carried: &Carried) -> Value {
    let ticks = carried.ticks.iter().map(|(parent, here)| {
        Value::record([("parent", Value::from(*parent)), ("tick", Value::from(*here))])
    });
    let stop = carried.stopped.as_ref().map(|(tick, why)| not_carried(*tick, why));
    let left_out = carried.left_out.iter().map(|(tick, why)| not_carried(*tick, why));
    Value::record([
        ("ticks", Value::array(ticks)),
        ("unsaid", Value::array(carried.silent.iter().map(|tick| Value::from(*tick)))),
        ("errors", Value::array(carried.errors.iter().map(|tick| Value::from(*tick)))),
        ("unmoved", Value::array(carried.unmoved.iter().map(|tick| Value::from(*tick)))),
        ("left_out", Value::array(left_out)),
        ("stopped", stop.unwrap_or(Value::Null)),
    ])
}

/// An intent of the parent that was not carried on, and the reason.
fn not_carried(tick: u64, why: &ReapplyStopped) -> Value {
    Value::record([("parent", Value::from(tick))].into_iter().chain(stop_members(why, SOURCE)))
}
