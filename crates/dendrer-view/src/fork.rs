//! A fork: the branch point, the changes, the intents that were applied again, and the command that continues it.

use std::collections::BTreeMap;

use dendrer::change::reapply::ReapplyStopped;
use dendrer::fork::question::ForkReply;
use dendrer::fork::{Carried, Changed, What};
use dendrer::lines::{LinesTally, Reply};
use dendrer_object::document::{As, Positive};
use dendrer_object::{Code, Digest, RunName, Value, document};

use crate::answer::{Answer, End, ItemAnswer, Line, LinePlace, Page, Style};
use crate::certainty::{UnknownPlace, unknown_line, unknown_places};
use crate::merge::{BegunViolated, violated_lines};
use crate::rebase::{StopObject, side, stopped};
use crate::replay::{DepartureObject, ProgramDeparture};
use crate::{commit, count, quote};

/// How many ticks are named in a line.
const TICKS_SHOWN: usize = 8;

/// The word for a tick of the run that was forked.
const SOURCE: &str = "parent tick";

/// A fork that was made, or would be. Its items are the replies to the command that continues it.
#[derive(Debug, Clone)]
pub struct ForkAnswer<'f> {
    /// The fork.
    pub reply: &'f ForkReply,
    /// The command that continues it.
    pub exec: Option<ForkExec<'f>>,
    /// The program that is run again in it.
    pub program: Option<ForkProgram<'f>>,
    /// Whether the lines of the fork were printed.
    pub headed: bool,
}

/// A program that a fork runs again: served from the record up to the tick of the fork, and then by its APIs.
#[derive(Debug, Clone)]
pub struct ForkProgram<'f> {
    /// The program and its arguments.
    pub argv: &'f [String],
    /// The ticks of the parent for which another answer is given, each with its file.
    pub given: &'f [(u64, String)],
    /// Whether no API is asked.
    pub offline: bool,
    /// The end of the program; `None` if it was not run.
    pub ended: Option<ForkProgramEnd>,
}

/// The end of a program that a fork ran again.
#[derive(Debug, Clone)]
pub struct ForkProgramEnd {
    /// Its exit code; 128 and the signal if one ended it.
    pub exit: u8,
    /// Calls that were served from the record.
    pub served: u64,
    /// Calls that reached an API.
    pub live: u64,
    /// The ticks for which an answer was given, each with whether the program got it.
    pub answers: Vec<(u64, bool)>,
    /// The first place at which the program departs from the record before the tick of the fork.
    pub departure: Option<ProgramDeparture>,
    /// The last tick of the fork.
    pub tip: u64,
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
}

impl<'f> ForkAnswer<'f> {
    /// A fork that no command continues.
    pub fn of(reply: &'f ForkReply) -> ForkAnswer<'f> {
        ForkAnswer { reply, exec: None, program: None, headed: false }
    }
}

impl Answer for ForkReply {
    fn document(&self) -> Value {
        ForkAnswer::of(self).whole(Vec::new())
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let mut answer = ForkAnswer::of(self);
        [answer.kept_lines(page), answer.last_lines(page)].concat()
    }

    fn end(&self) -> End {
        ItemAnswer::end(&ForkAnswer::of(self))
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
        let exec = self.exec.as_ref().map(|exec| ExecObject::of(exec, Value::from(exec.replies)));
        ForkSummary::of(&self.reply.terms.run, exec).into()
    }

    fn whole(&self, items: Vec<Value>) -> Value {
        let exec = self.exec.as_ref().map(|exec| ExecObject::of(exec, Value::array(items)));
        ForkDocument::of(self, Some(exec)).into()
    }

    fn kept_lines(&mut self, _: &Page) -> Vec<Line> {
        if std::mem::replace(&mut self.headed, true) {
            return Vec::new();
        }
        let mut lines = self.made_lines();
        lines.extend(self.program.iter().flat_map(|program| program.head(self.reply)));
        self.placed(lines)
    }

    fn end(&self) -> End {
        match () {
            _ if self.departure().is_some() => End::Problem(Code::E0701),
            _ if !self.reply.unknown.is_empty() => End::Unknown,
            _ if self.is_unreached() => End::No,
            _ if self.printed_no_intent() => End::No,
            _ => End::Answered,
        }
    }

    fn last_lines(&mut self, _: &Page) -> Vec<Line> {
        let reply = self.reply;
        let (run, parent) = (reply.terms.run.as_str(), reply.parent.as_str());
        if reply.dry_run {
            return vec![Line::note("nothing was written (dry run)")];
        }
        let mut lines = Vec::new();
        match &self.exec {
            None if self.program.is_some() => {
                lines.extend(self.program.iter().flat_map(ForkProgram::end_lines));
            }
            Some(_) if self.printed_no_intent() => {
                lines.push(Line::styled(Style::Bad, "ended      the command printed no intent"));
            }
            Some(exec) => lines.push(Line::note(commit::words(&exec.tally))),
            None => {
                if reply.carried.is_none() {
                    let note = "note: this is the branch point alone; nothing goes on by itself";
                    lines.push(Line::note(note));
                }
                let (tip, agent) = (reply.tip.to_string(), "python agent.py");
                let live = ["dendrer", "fork", "--run", run, "--from", "tick", &tip, "--exec", agent];
                lines.push(Line::help(live));
                lines.push(Line::help(["dendrer", "commit", "--run", run]));
            }
        }
        let from = reply.forked.tick.to_string();
        lines.push(Line::help(["dendrer", "diff", parent, run, "--from", "tick", &from]));
        self.placed(lines)
    }
}

impl ForkProgram<'_> {
    /// The lines before the program starts.
    fn head(&self, reply: &ForkReply) -> Vec<Line> {
        let given = self.given.iter().map(|(tick, file)| {
            Line::from(format!("answer     of parent tick {tick} from {}", quote::escape(file)))
        });
        let mut lines: Vec<Line> = given.collect();
        let word = if reply.dry_run { "would run" } else { "running  " };
        lines.push(Line::from(format!("{word}  {}", quote::shell(self.argv))));
        if !reply.forked.changed.is_empty() || reply.terms.pack.is_some() {
            lines.push(Line::note(
                "note: what is set or enforced is on the record alone; the program does not see it",
            ));
        }
        if !self.offline {
            lines.push(Line::note("note: not isolated: after the tick of the fork its APIs are asked"));
        }
        lines
    }

    /// The lines once the program has ended.
    fn end_lines(&self) -> Vec<Line> {
        let Some(end) = &self.ended else { return Vec::new() };
        let mut lines = Vec::new();
        for (tick, _) in end.answers.iter().filter(|(_, is_used)| !is_used) {
            let text = format!("NOT USED   the answer of parent tick {tick}");
            lines.push(Line::styled(Style::Bad, text));
        }
        let given = end.answers.iter().filter(|(_, is_used)| *is_used).count() as u64;
        let served = count(end.served, "call", "calls");
        lines.push(Line::from(format!(
            "ended      exit code {}; {served} served from the record, {given} given, {} asked",
            end.exit, end.live
        )));
        lines.extend(end.departure.iter().map(|departure| Line::styled(Style::Bad, departure.line())));
        lines
    }
}

impl ForkAnswer<'_> {
    /// Standard output is the program's own, if one runs.
    fn placed(&self, mut lines: Vec<Line>) -> Vec<Line> {
        let is_plain = |line: &&mut Line| line.place == LinePlace::default();
        if self.program.is_some() {
            lines.iter_mut().filter(is_plain).for_each(|line| line.place = LinePlace::Note);
        }
        lines
    }

    fn ended(&self) -> Option<&ForkProgramEnd> {
        self.program.as_ref().and_then(|program| program.ended.as_ref())
    }

    fn departure(&self) -> Option<&ProgramDeparture> {
        self.ended().and_then(|end| end.departure.as_ref())
    }

    /// Whether the program did not come to an answer that is given.
    fn is_unreached(&self) -> bool {
        self.ended().is_some_and(|end| end.answers.iter().any(|(_, is_used)| !is_used))
    }

    /// Whether a command that continues the fork has ended without an intent: without a line, or with a first one that is no JSON.
    pub fn printed_no_intent(&self) -> bool {
        self.exec.as_ref().is_some_and(|exec| exec.status.is_some() && exec.tally == LinesTally::default())
    }

    fn count(&mut self, reply: &Reply) {
        if let Some(exec) = &mut self.exec {
            exec.tally.count(reply);
            exec.replies += 1;
        }
    }

    fn made_lines(&self) -> Vec<Line> {
        let ForkReply { parent, parent_tip, terms, forked, carried, extensions, dry_run, .. } = self.reply;
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
        let replaced = terms.replace.keys().map(|tick| match self.reply.as_text.contains(tick) {
            true => format!("changed    tool output of parent tick {tick}, as a text that holds JSON"),
            false => format!("changed    tool output of parent tick {tick}"),
        });
        let restored = terms
            .restored
            .iter()
            .map(|agent| format!("restored   {} from before it went wrong", quote::escape(agent)));
        let facts = reason.chain(guidance).chain(changed).chain(pack);
        let facts = facts.chain(extensions.iter().map(extension_line)).chain(replaced).chain(restored);
        lines.extend(facts.map(Line::from));
        lines.extend(violated_lines(&forked.violations));
        lines.extend(carried.iter().flat_map(|carried| carried_lines(carried, *parent_tip)));
        lines.extend(unknown_line(&self.reply.unknown));
        lines.extend(self.exec.iter().map(|exec| {
            let word = if *dry_run { "would run" } else { "running  " };
            Line::from(format!("{word}  {}", quote::escape(exec.command)))
        }));
        lines
    }

    /// Returns the fork as a document without the command that continues it.
    pub fn made(&self) -> Value {
        ForkDocument::of(self, None).into()
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
    for (tick, error) in carried.error_words.iter().take(TICKS_SHOWN) {
        lines.push(Line::styled(Style::Warn, format!("           {tick}: {}", quote::escape(error))));
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

document! {
    /// A fork of a run
    pub object ForkDocument: "fork" (answer: &ForkAnswer<'_>, command: Option<Option<ExecObject>>) {
        let reply = answer.reply;
        let ForkReply { terms, forked, .. } = reply;
        /// The new run
        run: &RunName = &terms.run,
        /// The run that was forked
        parent: &RunName = &reply.parent,
        /// The last tick of the parent that is shared
        parent_tick: u64 = forked.tick,
        /// The tick of the marker
        marker_tick: Positive = Positive(forked.tick + 1),
        /// The id of the marker
        marker: Digest = forked.marker.id(),
        /// The tick of the snapshot from which the state was replayed
        replayed_from: u64 = forked.replayed_from,
        /// The root of the state at the branch point
        state_root: Digest = forked.state_root,
        /// The reason that was given
        reason: Option<&str> = terms.reason.as_deref(),
        /// The agent whose state was restored
        restored: Option<&str> = terms.restored.as_deref(),
        /// The guidance for the agent, by its kind
        guidance: BTreeMap<&str, &str> = terms.guidance.iter().map(|(name, words)| (*name, &**words)).collect(),
        /// The places and constants that were changed
        changed: Vec<ForkChange> = forked.changed.iter().map(ForkChange::of).collect(),
        /// The rules that the state which it begins with breaks, and that the parent keeps
        violations?: Vec<BegunViolated> = (!forked.violations.is_empty())
            .then(|| forked.violations.iter().map(BegunViolated::of).collect()),
        /// The reason why it begins although its state breaks them
        although?: &str = terms.although.as_deref(),
        /// The extensions of the parent, if another pack is in force from here on
        extensions: Vec<ForkExtension> =
            reply.extensions.iter().map(|(one, stays)| ForkExtension::of(one, *stays)).collect(),
        /// The ticks of the parent whose answers were replaced
        replaced: Vec<u64> = terms.replace.keys().copied().collect(),
        /// Those of them whose answer was put in as a text, as the record holds it
        as_text?: &[u64] = Some(&reply.as_text[..]).filter(|ticks| !ticks.is_empty()),
        /// The places that are unknown at the end of the fork, and known in the parent; absent if every place is known
        unknown?: Vec<UnknownPlace> = unknown_places(&reply.unknown),
        /// The later intents of the parent that were applied again; null if that was not asked for
        carried: Option<CarriedObject> = reply.carried.as_ref().map(CarriedObject::of),
        /// The last tick of the fork
        tip: u64 = answer.ended().map_or(reply.tip, |end| end.tip),
        /// The calls that a program which is run again got from the record
        served?: u64 = answer.ended().map(|end| end.served),
        /// The answers that were given to it
        answers?: Vec<ForkAnswered> =
            answer.ended().map(|end| end.answers.iter().map(|(tick, is_used)| ForkAnswered::of(*tick, *is_used)).collect()),
        /// The calls of it that reached an API
        live?: u64 = answer.ended().map(|end| end.live),
        /// Its exit code; 128 and the signal if one ended it
        program_exit?: u64 = answer.ended().map(|end| u64::from(end.exit)),
        /// The first place at which it departs from the record before the tick of the fork
        divergence?: DepartureObject = answer.departure().map(DepartureObject::of),
        /// Whether nothing was to be written
        dry_run: bool = reply.dry_run,
        /// The command that continues the fork; absent from the line that the command itself is given
        exec?: Option<ExecObject> = command,
    }

    /// An answer that was given to a program
    object ForkAnswered(at: u64, is_used: bool) {
        /// The tick of the parent
        tick: Positive = Positive(at),
        /// Whether the program got it
        used: bool = is_used,
    }

    /// The last line of a stream about a fork
    object ForkSummary: "fork" part (name: &RunName, command: Option<ExecObject>) {
        /// The new run
        run: &RunName = name,
        /// The command that continues the fork
        exec: Option<ExecObject> = command,
    }

    /// A place or a constant that was changed
    object ForkChange(changed: &Changed) {
        let (kind, place, rule) = match &changed.what {
            What::State(path) => ("state", path.written(), None),
            What::Constant(name) => ("constant", name.clone(), None),
            What::Policy(path, rule) => ("state", path.written(), Some(&**rule)),
        };
        /// The kind of change
        what: ["state" | "constant"] = kind,
        /// The place, as a JSON pointer, or the name of the constant
        name: String = place,
        /// The policy rule that reads the place
        enforced_by: Option<&str> = rule,
        /// The value before the fork; null if there was none
        before: Option<Value> = changed.before.clone(),
        /// Whether there was no value before
        was_absent: bool = changed.before.is_none(),
        /// The value in the fork
        after: Value = changed.after.clone(),
    }

    /// An extension of the parent
    object ForkExtension(extension: &Value, stays: bool) {
        /// Whether it stays in force
        goes_on: bool = stays,
        /// The id
        id: As<str> = As::new(extension.get("id").cloned().unwrap_or(Value::Null)),
    }

    /// The intents of the parent that were applied again
    object CarriedObject(carried: &Carried) {
        /// The ticks that were carried over
        ticks: Vec<CarriedTick> = carried.ticks.iter().map(|(from, to)| CarriedTick::of(*from, *to)).collect(),
        /// The ticks of the parent that do not name what they were decided on
        unsaid: &[u64] = &carried.silent[..],
        /// The ticks of the parent at which a rule failed here
        errors: &[u64] = &carried.errors[..],
        /// The ticks of the parent whose other answer changed nothing in the state
        unmoved: &[u64] = &carried.unmoved[..],
        /// The intents that were left out, each with the reason
        left_out: Vec<NotCarried> = carried.left_out.iter().map(|(tick, why)| NotCarried::of(*tick, why)).collect(),
        /// The intent at which the fork stopped
        stopped: Option<NotCarried> = carried.stopped.as_ref().map(|(tick, why)| NotCarried::of(*tick, why)),
    }

    /// A tick that was carried over
    object CarriedTick(from: u64, to: u64) {
        /// The tick of the parent
        parent: Positive = Positive(from),
        /// The tick of the fork
        tick: Positive = Positive(to),
    }

    /// An intent of the parent that was not carried over
    object NotCarried(at: u64, why: &ReapplyStopped) {
        /// The tick of the parent
        parent: Positive = Positive(at),
        ..StopObject = StopObject::of(why, SOURCE),
    }

    /// The command that continues a fork
    object ExecObject(exec: &ForkExec<'_>, replies: Value) {
        /// The command
        command: &str = exec.command,
        /// Whether it was run
        ran: bool = exec.status.is_some(),
        /// The exit code
        code: Option<i32> = exec.status.and_then(|status| status.code),
        /// The signal that ended it
        signal: Option<i32> = exec.status.and_then(|status| status.signal),
        /// The number of lines that were committed
        committed: u64 = exec.tally.committed,
        /// The number of lines that were refused
        refused: u64 = exec.tally.refused,
        /// The last tick of the run
        tip: u64 = exec.tip,
        /// The reply to each line, as in dendrer.commit/1; their number in the last line of a stream
        items: Value = replies,
    }
}
