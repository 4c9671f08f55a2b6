//! The stage that a pack and policy rules ask for, and the judge of a state that a run begins with (design, section 14.1).

use std::sync::Arc;

use dendrer_object::{Delta, Intent, Pointer, Value};

use super::outcome::Broken;
use super::terms;
use super::{RunState, Stage, Start};
use crate::commitment;
use crate::predicate::{Predicate, Verdict, Window};

/// Returns the ids of the policy rules and violation predicates with `enforce: true` and of the hard commitments of a pack:
/// what is enforced from stage 2 on. `policy` are the rules in addition to those of the pack.
pub fn enforced_ids(pack: Option<&Value>, policy: &[Value]) -> Vec<Arc<str>> {
    let listed = |member: &str| {
        let list = pack.and_then(|pack| pack.get(member)).and_then(Value::as_array);
        list.into_iter().flat_map(|list| list.iter())
    };
    let is = |rule: &&Value, name: &str| rule.get(name).and_then(Value::as_bool) == Some(true);
    let rules = policy.iter().chain(listed("policy")).chain(listed("violations"));
    let rules = rules.filter(|rule| is(rule, "enforce"));
    let hard = listed(commitment::INITIAL).filter(|one| is(one, "hard"));
    let mut ids: Vec<Arc<str>> = Vec::new();
    for id in rules.chain(hard).filter_map(|rule| rule.get("id")?.as_str()) {
        if !ids.iter().any(|known| **known == *id) {
            ids.push(id.into());
        }
    }
    ids
}

/// Returns the ids of the hard commitments that a line brings.
pub fn brought_hard(intent: &Intent) -> Vec<Arc<str>> {
    let list = intent.member(commitment::INITIAL).and_then(Value::as_array);
    let hard = list.into_iter().flat_map(|list| list.iter());
    let hard = hard.filter(|one| one.get("hard").and_then(Value::as_bool) == Some(true));
    hard.filter_map(|one| Some(one.get("id")?.as_str()?.into())).collect()
}

impl Start {
    /// The stage of the run: the one that was given, else stage 2 where the pack or the policy asks for enforcement, else stage 1.
    pub fn stage(&self) -> Stage {
        let asks = || !enforced_ids(self.pack.as_ref().map(|bound| &bound.value), &self.policy).is_empty();
        let by_pack = || if asks() { Stage::Contracts } else { Stage::Replay };
        self.stage.unwrap_or_else(by_pack)
    }
}

impl RunState {
    /// Returns the ids of rules and hard commitments that ask for enforcement and that the stage of the run does not enforce.
    pub fn not_enforced(&self) -> Vec<Arc<str>> {
        if self.stage() >= Stage::Contracts {
            return Vec::new();
        }
        let states = self.policy.states.iter().filter(|rule| rule.is_enforced());
        let requests = self.policy.requests.iter().filter(|rule| rule.is_enforced);
        let mut ids: Vec<Arc<str>> = states.map(|rule| rule.name().into()).collect();
        ids.extend(requests.map(|rule| Arc::from(rule.id.as_str())));
        for id in enforced_ids(self.in_force().as_ref(), &[]) {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        ids
    }

    /// Whether a rule that the run enforces reads a place.
    pub(super) fn is_read_by_enforced(&self, place: &Pointer) -> bool {
        let states = self.policy.states.iter().filter(|rule| rule.is_enforced());
        let watched = self.terms.watched().filter(|predicate| predicate.is_enforced());
        let requests = self.policy.requests.iter().filter(|rule| rule.is_enforced);
        states.chain(watched).any(|rule| rule.read_set().iter().any(|read| read.overlaps(place)))
            || requests.into_iter().any(|rule| rule.read_set().iter().any(|read| read.overlaps(place)))
    }
}

/// Judges the state that a run begins with: returns each policy rule and violation predicate of the pack in force that is
/// violated there and in the state of no source. A rule that cannot be judged is not among them.
pub fn judge_seeded(head: &RunState, sources: &[&RunState]) -> Vec<Broken> {
    let is_violated = |rule: &Predicate, head: &RunState| {
        rule.verdict(&head.state, Some(&head.served())) == Verdict::Violation
    };
    let is_new =
        |rule: &Predicate| is_violated(rule, head) && !sources.iter().any(|source| is_violated(rule, source));
    seeded_rules(head, is_new)
}

/// Returns each rule that cannot be judged in the state that a run begins with, and can be judged in that of its source: at stage 3
/// all of them, at stage 2 those with `enforce` (design, 14.1: what asks for enforcement fails closed).
pub fn unjudged_seeded(head: &RunState, source: &RunState) -> Vec<Broken> {
    let is_open = |rule: &Predicate, head: &RunState| {
        matches!(rule.verdict(&head.state, Some(&head.served())), Verdict::Uncertain(_))
    };
    let is_asked = |rule: &Predicate| rule.is_enforced() || head.stage() >= Stage::Full;
    seeded_rules(head, |rule| is_asked(rule) && is_open(rule, head) && !is_open(rule, source))
}

/// Returns the policy rules and violation predicates of the pack in force about states for which something holds.
fn seeded_rules(head: &RunState, holds: impl Fn(&Predicate) -> bool) -> Vec<Broken> {
    let pack = head.in_force().and_then(|value| terms::read_pack(&value, head.rules.version).ok());
    let declared = pack.iter().flat_map(|pack| {
        let violations = pack.predicates.iter().filter(|declared| declared.is_violation);
        violations.chain(&pack.progress_contracts).map(|declared| &declared.predicate)
    });
    let rules = head.policy.states.iter().chain(declared);
    let rules = rules.filter(|rule| rule.window() == Window::After && rule.is_for(None) && holds(rule));
    rules.map(|rule| Broken::of(rule, &head.state)).collect()
}

/// Judges the state after a change: returns each rule that is violated there and not at the head.
pub fn judge_change(head: &RunState, change: &Delta) -> Vec<Broken> {
    let Ok(state) = change.apply(&head.state) else { return Vec::new() };
    judge_seeded(&RunState { state, ..head.clone() }, &[head])
}
