//! The judgement of a line by version 2 of the kernel's rules (design, 14.1): what refuses a proposal at stages 2 and 3 is noted
//! below them, and what happened already is noted at every stage.
//!
//! Rule: every door makes a transition through [`step`](super::step), so nothing that this module refuses is committed by another
//! way; test `every_door_refuses_what_commit_refuses`.

use std::sync::Arc;

use dendrer_object::delta::{Delta, Op};
use dendrer_object::lookalike::{mixes_scripts, resembles};
use dendrer_object::record::{Author, Record};
use dendrer_object::{Intent, Pointer, SCOPE, Value};

use super::outcome::{Broken, LookAlike};
use super::terms::{self, has_happened, is_near, touches};
use super::{CANNOT_BE_JUDGED, Change, Reason, RunState, Stage, reducer_note};
use crate::calls::{self, ACTION};
use crate::expr::{EvalError, Truth};
use crate::ontology::{DECISION, REQUEST, RESULT};
use crate::policy::asks_of;
use crate::predicate::{Predicate, Verdict, Window};
use crate::reduce::{ReduceError, ReducedDelta, Reducer};
use crate::sealed::Met;
use crate::unknown::{FINER, UnknownPlaces};

/// The member of a transition with what would have refused its line from stage 2 on.
pub const WOULD_REFUSE: &str = "would_refuse";

/// The member of a transition with the values that were rounded to the decimals of their field.
pub const ROUNDED: &str = "rounded";

/// The kind of the anomaly of a result that was made against a decision.
pub const ACTED_AFTER_DENY: &str = "acted_after_deny";

/// The kind of the anomaly of a request that repeats a denied one.
const DENIED_BEFORE: &str = "denied_before";

/// The kind of the anomaly of a denial or an escalation whose request is ambiguous.
const NO_SUBJECT: &str = "decision_without_request";

/// The kind of the anomaly of a number that is finer than the field to which it was added.
pub(super) const FINER_THAN_DECLARED: &str = "finer_than_declared";

/// The kind of the anomaly of a call whose tool the pack does not declare.
const UNDECLARED_TOOL: &str = "undeclared_tool";

/// The kind of the anomaly of a tool that is named together with a list of calls.
const TOOL_BESIDE_CALLS: &str = "tool_beside_calls";

/// The kind of the anomaly of a name that looks like another one.
const LOOK_ALIKE: &str = "look_alike";

/// The kind of the anomaly of a result whose call has other parameters than the request that it answers.
const OTHER_CALL: &str = "result_of_another_call";

/// The kind of the anomaly of a call whose tool is no text.
const UNNAMED_TOOL: &str = "unnamed_tool";

/// The kind of the anomaly of a scope that no commitment has.
const UNKNOWN_SCOPE: &str = "unknown_scope";

/// The kind of the anomaly of what the terms in force refuse and what happened all the same.
pub(super) const OUTSIDE_TERMS: &str = "outside_terms";

/// Whether an intent is a fact, which no door refuses for a rule: the answer of a tool, a decision, or the word of a user.
pub(super) fn is_fact(intent: &Intent) -> bool {
    intent.author == Author::User || [RESULT, DECISION].contains(&intent.type_name.as_str())
}

/// Whether a line proposes a call, or is shown like one.
fn is_call(intent: &Intent) -> bool {
    asks_of(2, intent.type_name.as_str(), intent.member(ACTION).is_some())
}

/// Findings against a line: notes for its transition, and the reasons that would have refused it at a higher stage.
#[derive(Default)]
pub(super) struct Found {
    pub(super) notes: Vec<Value>,
    would_refuse: Vec<Value>,
}

impl Found {
    /// Refuses a proposal at stages 2 and 3. Below them it is noted, and what already happened at every stage.
    pub(super) fn refuse(
        &mut self,
        head: &RunState,
        intent: &Intent,
        reason: Reason,
        kind: &str,
    ) -> Result<(), Reason> {
        let happened = has_happened(intent);
        if head.stage() >= Stage::Contracts && !happened {
            return Err(reason);
        }
        if !happened {
            self.would(&reason);
        }
        self.note(&reason, kind);
        Ok(())
    }

    /// Notes a reason on the transition.
    pub(super) fn note(&mut self, reason: &Reason, kind: &str) {
        let mut note = reason.sealed().as_object().cloned().unwrap_or_default();
        note.set("kind", Value::from(kind));
        self.notes.push(Value::Object(note));
    }

    /// Keeps what would have refused the line at a higher stage.
    pub(super) fn would(&mut self, reason: &Reason) {
        let ids = Value::array(reason.ids().into_iter().map(Value::String));
        self.would_refuse.push(Value::record([("code", Value::from(reason.code())), ("ids", ids)]));
    }

    /// The member with what would have refused the line.
    pub(super) fn would_refuse(&mut self) -> Option<Value> {
        let listed = std::mem::take(&mut self.would_refuse);
        (!listed.is_empty()).then(|| Value::array(listed))
    }
}

/// Judges the calls of a line by what is on record: a denied request again, a result that was made against a decision, a decision
/// without a subject, a tool together with a list of calls, a tool that the pack does not declare.
pub(super) fn by_record(head: &RunState, intent: &Intent, found: &mut Found) -> Result<(), Reason> {
    let requests = &head.counters.requests;
    let action = intent.member(ACTION);
    match intent.type_name.as_str() {
        RESULT => {
            let answered = requests.answered_by(intent);
            if let Some(tick) = answered.and_then(|call| call.forbidden_at) {
                found.note(&Reason::Denied { tick }, ACTED_AFTER_DENY);
            }
            if answered.is_some_and(|call| call.is_another) {
                found.notes.push(Value::record([("kind", Value::from(OTHER_CALL))]));
            }
        }
        DECISION if requests.misses_subject(intent) => {
            found.notes.push(Value::record([("kind", Value::from(NO_SUBJECT))]));
        }
        _ => {}
    }
    if let Some(action) = action.filter(|_| is_call(intent)) {
        if let Some(tick) = requests.denied_at(action) {
            found.refuse(head, intent, Reason::Denied { tick }, DENIED_BEFORE)?;
        }
        if !calls::are_named(action) {
            found.refuse(head, intent, Reason::UnnamedTool, UNNAMED_TOOL)?;
        }
        // From stage 3 on the gate of the pack refuses it, and an import has notes of its own.
        let is_noted = head.stage() >= Stage::Contracts;
        for tool in head.terms.undeclared(action).into_iter().filter(|_| is_noted) {
            found.note(&Reason::UndeclaredTool(tool), UNDECLARED_TOOL);
        }
    }
    if let Some(scope) = intent.member(SCOPE).and_then(Value::as_str)
        && !head.commitments.all().iter().any(|one| *one.scope == *scope)
    {
        // A scope of no commitment frees the call of all that have one.
        found.notes.push(Value::record([("kind", Value::from(UNKNOWN_SCOPE)), ("scope", scope.into())]));
    }
    look_alikes(head, intent, found)
}

/// Notes names that look like others, and refuses those of a proposal at stage 3: of the agent, of the tools that it calls, and of
/// the commitments that it brings.
fn look_alikes(head: &RunState, intent: &Intent, found: &mut Found) -> Result<(), Reason> {
    let mut alike: Vec<LookAlike> = Vec::new();
    let mut look = |what: &'static str, name: &str, like: Option<&str>| {
        if like.is_some() || mixes_scripts(name) {
            alike.push(LookAlike { what, name: name.into(), like: like.map(Arc::from) });
        }
    };
    look("agent", &intent.agent, head.terms.agent_like(&intent.agent));
    let action = intent.member(ACTION).filter(|_| is_call(intent));
    for call in action.map(calls::written).unwrap_or_default() {
        let Some(tool) = call.get("tool").and_then(Value::as_str) else { continue };
        look("tool", tool, head.terms.tool_like(tool));
    }
    for list in ["evidence", "commitments"] {
        let items = intent.member(list).and_then(Value::as_array).into_iter().flat_map(|items| items.iter());
        for id in items.filter_map(|item| item.get("id")?.as_str()) {
            let declared = head.commitments.all().iter().filter(|one| one.author == Author::Institution);
            let like = declared.map(|one| &*one.id).find(|declared| resembles(id, declared));
            look("commitment", id, like);
        }
    }
    if alike.is_empty() {
        return Ok(());
    }
    let reason = Reason::LookAlike(alike);
    if head.stage() >= Stage::Full && !is_fact(intent) {
        return Err(reason);
    }
    found.note(&reason, LOOK_ALIKE);
    Ok(())
}

/// Refuses a tool together with a list of calls, once every rule has been asked about both.
pub(super) fn beside(head: &RunState, intent: &Intent, found: &mut Found) -> Result<(), Reason> {
    match intent.member(ACTION).filter(|_| is_call(intent)) {
        Some(action) if calls::has_tool_beside(action) => {
            found.refuse(head, intent, Reason::ToolBesideCalls, TOOL_BESIDE_CALLS)
        }
        _ => Ok(()),
    }
}

/// The change that a line makes although it could not be computed: none, and what it would have written is unknown.
pub(super) fn failed(head: &RunState, intent: &Intent, error: &ReduceError, reducer: &dyn Reducer) -> Change {
    let mut change = Change::none(&head.state, Some(reducer_note(head, error, intent)));
    change.mark(&reducer.unknown_after_error(&head.state, intent, head.tick + 1));
    change
}

/// Refuses a number that is finer than the field to which it is added, or notes it and marks the field as unknown.
pub(super) fn rounding(
    head: &RunState,
    intent: &Intent,
    finer: &[Pointer],
    change: &mut Change,
    found: &mut Found,
) -> Result<(), Reason> {
    if finer.is_empty() {
        return Ok(());
    }
    found.refuse(head, intent, Reason::Finer(finer.to_vec()), FINER_THAN_DECLARED)?;
    let mut unknown = UnknownPlaces::of(&change.state);
    for place in finer {
        unknown.mark(place.clone(), head.tick + 1, FINER);
    }
    change.mark(&unknown);
    Ok(())
}

/// Drops the change of what happened, if it writes places that the pack gives to other writers; refuses that of a proposal.
pub(super) fn writers(
    head: &RunState,
    intent: &Intent,
    change: &mut Change,
    found: &mut Found,
) -> Result<(), Reason> {
    if head.stage() < Stage::Contracts {
        return Ok(());
    }
    let Some(reason) = head.terms.not_writable(intent, &change.delta) else { return Ok(()) };
    if !is_fact(intent) {
        return Err(reason);
    }
    let mut unknown = UnknownPlaces::of(&head.state);
    for path in change.delta.paths().filter(|path| !super::is_kernel_path(path)) {
        unknown.mark(path.clone(), head.tick + 1, crate::unknown::DELTA_FAILED);
    }
    let mut note = reason.sealed().as_object().cloned().unwrap_or_default();
    note.set("kind", Value::from(OUTSIDE_TERMS));
    note.set("delta", Value::from(intent.delta.as_ref().map(Delta::to_value)));
    found.notes.push(Value::Object(note));
    *change = Change { notes: std::mem::take(&mut change.notes), ..Change::none(&head.state, None) };
    change.mark(&unknown);
    Ok(())
}

/// A rule about a line that cannot be judged.
struct Unjudged {
    name: Arc<str>,
    met: Met,
    is_enforced: bool,
}

/// Judges what a line would bring about (design, 4 and 14.1).
///
/// A proposal is refused from stage 2 on if it breaks a rule with `enforce`, if such a rule cannot be judged, or if it writes what
/// such a rule reads while the rule is broken; at stage 3 if any rule that it changes cannot be judged.
pub(super) fn enforce(
    head: &RunState,
    intent: &Intent,
    reducer: &dyn Reducer,
    reduced: &ReducedDelta,
    change: &mut Change,
    found: &mut Found,
) -> Result<(), Reason> {
    let (mut broken, mut unjudged, mut newly) = (Vec::new(), Vec::new(), Vec::new());
    if is_call(intent) {
        newly = judge_requests(head, intent, reduced, &mut broken, &mut unjudged);
    }
    let mut may_write = None;
    for predicate in head.terms.watched().chain(&head.policy.states) {
        if predicate.is_for(Some(&intent.type_name)) {
            let written = || match intent.type_name.as_str() {
                REQUEST => reducer.may_write(&head.state, intent),
                _ => Vec::new(),
            };
            let will_write = |may_write: &mut Option<Vec<Pointer>>| {
                let places = may_write.get_or_insert_with(written);
                places.iter().any(|place| predicate.read_set().iter().any(|read| is_near(read, place)))
            };
            let asked = Asked { head, intent, change };
            match asked.judge(predicate, &mut || will_write(&mut may_write)) {
                Judged::Fine => {}
                Judged::Broken(values) => broken.push(values),
                Judged::Uncertain(met) => unjudged.push(Unjudged {
                    name: predicate.name().into(),
                    met,
                    is_enforced: predicate.is_enforced(),
                }),
            }
        }
    }
    if !broken.is_empty() && !has_happened(intent) {
        let reason = Reason::WouldViolate(broken);
        if head.stage() >= Stage::Contracts {
            return Err(reason);
        }
        found.would(&reason);
    }
    uncertain(head, intent, unjudged, found)?;
    latch_requests(head, &newly, change);
    Ok(())
}

/// Judges a line by the rules about requests; returns the ids of those that it breaks.
fn judge_requests<'h>(
    head: &'h RunState,
    intent: &Intent,
    reduced: &ReducedDelta,
    broken: &mut Vec<Broken>,
    unjudged: &mut Vec<Unjudged>,
) -> Vec<&'h str> {
    let mut newly = Vec::new();
    let before = |at: usize| reduced.before_calls.get(at).cloned().unwrap_or_else(|| head.state.clone());
    for rule in &head.policy.requests {
        let why = match rule.judge_line(intent, &before) {
            Truth::True => continue,
            Truth::False => {
                newly.push(&*rule.id);
                if rule.is_enforced && !is_repair(&rule.repairs, intent) {
                    broken.push(Broken { predicate: rule.id.as_str().into(), values: Vec::new() });
                }
                continue;
            }
            Truth::Uncertain(why) => EvalError::Uncertain(why),
            Truth::Exhausted => EvalError::Exhausted,
        };
        let (name, is_enforced) = (rule.id.as_str().into(), rule.is_enforced);
        unjudged.push(Unjudged { name, met: Met::from(why), is_enforced });
    }
    newly
}

/// Refuses a proposal of which rules cannot tell, from the stage on that asks for it; else notes it.
fn uncertain(
    head: &RunState,
    intent: &Intent,
    unjudged: Vec<Unjudged>,
    found: &mut Found,
) -> Result<(), Reason> {
    if unjudged.is_empty() {
        return Ok(());
    }
    let asks = unjudged.iter().any(|one| one.is_enforced);
    let listed =
        |all: Vec<Unjudged>| Reason::CannotBeJudged(all.into_iter().map(|one| (one.name, one.met)).collect());
    let happened = has_happened(intent);
    if !happened && head.stage() >= Stage::Full {
        return Err(listed(unjudged));
    }
    if asks && !happened {
        let enforced = listed(unjudged.into_iter().filter(|one| one.is_enforced).collect());
        if head.stage() >= Stage::Contracts {
            return Err(enforced);
        }
        found.would(&enforced);
        return Ok(());
    }
    if head.stage() >= Stage::Contracts {
        found.note(&listed(unjudged), CANNOT_BE_JUDGED);
    }
    Ok(())
}

/// The outcome of a rule about states for a line.
enum Judged {
    Fine,
    Broken(Broken),
    Uncertain(Met),
}

/// A line that rules are asked about, with the change that it would make.
struct Asked<'a> {
    head: &'a RunState,
    intent: &'a Intent,
    change: &'a Change,
}

impl Asked<'_> {
    /// Judges a rule about states. `will_write` returns whether the answer of a requested call may write what the rule reads.
    fn judge(&self, predicate: &Predicate, will_write: &mut dyn FnMut() -> bool) -> Judged {
        let (head, change) = (self.head, self.change);
        let is_after = predicate.window() == Window::After;
        let touched = !is_after || touches(predicate, &change.delta);
        let is_asked = touched || predicate.reads_counters();
        let is_held = || {
            // While the rule is broken, its read set is for repairs alone.
            predicate.is_enforced()
                && is_after
                && predicate.scope().is_empty()
                && self.was(predicate) == Verdict::Violation
        };
        if !is_asked {
            return match is_held() && !self.is_repair(predicate) && will_write() {
                true => Judged::Broken(Broken::of(predicate, &head.state)),
                false => Judged::Fine,
            };
        }
        let counters = predicate.reads_counters().then(|| terms::counters_after(head, self.intent, change));
        let state = if is_after { &change.state } else { &head.state };
        match predicate.verdict(state, counters.as_ref()) {
            Verdict::Ok => Judged::Fine,
            Verdict::Violation if !predicate.is_enforced() => Judged::Fine,
            Verdict::Violation => {
                let is_new =
                    !is_after || !predicate.scope().is_empty() || self.was(predicate) != Verdict::Violation;
                match is_new || touched && !self.is_repair(predicate) {
                    true => Judged::Broken(Broken::of(predicate, state)),
                    false => Judged::Fine,
                }
            }
            Verdict::Uncertain(_) => Judged::Uncertain(predicate.met(state, counters.as_ref())),
        }
    }

    fn was(&self, predicate: &Predicate) -> Verdict {
        let counters = predicate.reads_counters().then(|| self.head.served());
        predicate.verdict(&self.head.state, counters.as_ref())
    }

    fn is_repair(&self, predicate: &Predicate) -> bool {
        is_repair(predicate.repairs(), self.intent)
    }
}

/// Whether a rule lists the type of a line, or every tool that it calls, among its repairs.
fn is_repair(repairs: &[Arc<str>], intent: &Intent) -> bool {
    if repairs.is_empty() {
        return false;
    }
    let is_listed = |word: &str| repairs.iter().any(|repair| **repair == *word);
    let written = intent.member(ACTION).map(calls::written).unwrap_or_default();
    let is_tool = |call: &&Value| call.get("tool").and_then(Value::as_str).is_some_and(is_listed);
    is_listed(intent.type_name.as_str()) || !written.is_empty() && written.iter().all(is_tool)
}

/// Latches the rules about requests that a line is the first to break.
fn latch_requests(head: &RunState, broken: &[&str], change: &mut Change) {
    for rule in broken {
        latch_rule(rule, head.tick + 1, change);
    }
}

/// Latches a policy rule in the state, once: the first broken one in `violated`, the others in the list.
pub(super) fn latch_rule(rule: &str, tick: u64, change: &mut Change) {
    let first = change.state.get("policy").and_then(|policy| policy.get("violated")?.get("rule")?.as_str());
    let delta = match first {
        None => super::latch_violated(rule, tick),
        Some(first) if first == rule || terms::is_latched(&change.state, None, rule) => return,
        Some(_) => {
            let entry = Value::record([("id", Value::from(rule)), ("tick", Value::from(tick))]);
            Delta(vec![Op::append(Pointer::of(["policy", terms::VIOLATIONS]), entry)])
        }
    };
    change.state = delta.apply(&change.state).expect("policy is an object that only the kernel writes");
    change.delta.0.extend(delta.0);
}

/// Returns the rules that a transition is the first to break, by the latches that it writes, each with the values that decide in
/// the state after it. `head` is the run under whose rules it was judged.
pub fn broken_by(head: &RunState, record: &Record, state: &Value) -> Vec<Broken> {
    let find = |id: &str| {
        let mut known = head.policy.states.iter().chain(head.terms.watched());
        known.find(|predicate| predicate.name() == id).map(|predicate| Broken::of(predicate, state))
    };
    // A rule about requests is broken by the line, and not by values of the state.
    let latched = latched_by(record).into_iter();
    latched.map(|id| find(&id).unwrap_or(Broken { predicate: id, values: Vec::new() })).collect()
}

/// Returns the ids of the rules that a transition is the first to break, by the latches that it writes.
pub fn latched_by(record: &Record) -> Vec<Arc<str>> {
    let delta = record.delta();
    let first = Pointer::of(["policy", "violated"]);
    let listed = Pointer::of(["policy", terms::VIOLATIONS]);
    let latched = delta.iter().flat_map(|delta| &delta.0).filter_map(|op| {
        let member = match () {
            () if op.path == first => "rule",
            () if op.path == listed => "id",
            () => return None,
        };
        op.value.as_ref()?.get(member)?.as_str().map(Arc::<str>::from)
    });
    latched.collect()
}

/// Whether the terms in force let what happened through: what they lack is noted, and refuses only a proposal.
pub(super) fn terms_of(
    intent: &Intent,
    refused: Result<(), Reason>,
    found: &mut Found,
) -> Result<(), Reason> {
    match refused {
        Err(reason) if is_fact(intent) => {
            found.note(&reason, OUTSIDE_TERMS);
            Ok(())
        }
        judged => judged,
    }
}
