//! The check of a call before it is made (CCAS paper 6.6: an agent proposes, the runtime authorizes).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dendrer_object::{Intent, SCOPE, Value};

use super::status::{evaluate, value_of};
use super::{Commitment, CommitmentStatus, Commitments, ScopeFault, Statuses, Used, form, spent};
use crate::expr::{EvalError, Expr, Truth};
use crate::sealed::{self, Met};

/// Which rule a call breaks, the first that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Violated {
    /// A hard commitment that binds.
    Hard,
    /// The contract of a delegation.
    Scope,
    /// It relies on something stale, retracted or superseded.
    Support,
}

/// The outcome for an action.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Authorized {
    /// The commitments that it violates, in order, each with the rule.
    pub violates: Vec<(Violated, Arc<str>)>,
    /// The commitments of which it cannot be told, with what was met.
    pub unjudged: Vec<(Arc<str>, Met)>,
    /// Why it is outside of the contract of a delegation, from version 2 of the rules on.
    pub scope: Option<ScopeFault>,
    /// The amounts that the call adds to the sums of each commitment that judged it; `null` for an unknown amount.
    pub(super) spent: BTreeMap<Arc<str>, Vec<Value>>,
}

impl Authorized {
    /// Whether it may be made.
    pub fn is_admissible(&self) -> bool {
        self.violates.is_empty() && self.unjudged.is_empty()
    }

    /// The ids of what it violates and of what cannot be judged, each once.
    pub fn ids(&self) -> Vec<Arc<str>> {
        let unjudged = self.unjudged.iter().map(|(id, _)| id);
        let mut ids: Vec<Arc<str>> =
            self.violates.iter().map(|(_, id)| id).chain(unjudged).cloned().collect();
        ids.sort();
        ids.dedup();
        ids
    }

    /// Adds what came out for another call of the same action.
    pub fn add(&mut self, other: Authorized) {
        for (id, call) in &other.spent {
            spent::add(self.spent.entry(Arc::clone(id)).or_default(), call);
        }
        other.violates.iter().for_each(|(rule, id)| self.violate(*rule, id));
        self.scope = self.scope.take().or(other.scope);
        for (id, met) in other.unjudged {
            if !self.unjudged.iter().any(|(known, _)| *known == id) {
                self.unjudged.push((id, met));
            }
        }
    }

    /// Notes that it is outside of a contract.
    pub(super) fn leave(&mut self, contract: &Arc<str>, fault: ScopeFault) {
        self.violate(Violated::Scope, fault.delegation().unwrap_or(contract));
        self.scope.get_or_insert(fault);
    }

    fn violate(&mut self, rule: Violated, id: &Arc<str>) {
        if !self.violates.iter().any(|(_, other)| other == id) {
            self.violates.push((rule, Arc::clone(id)));
        }
    }
}

/// The hard commitments that a call of a tool can violate as far as the tool alone tells: one of which the tool says that it does not
/// apply is not looked at.
#[derive(Clone, Default)]
pub(super) struct ToolIndex {
    /// By each tool that an expression names.
    named: BTreeMap<Arc<str>, Vec<usize>>,
    /// For all other tools, each with those that it names.
    others: Vec<(usize, BTreeSet<Arc<str>>)>,
}

/// Takes the place of the commitments that are not known, because their lists were erased or withheld.
pub const UNKNOWN_ID: &str = "(unknown)";

/// A tool that no expression names.
const OTHER_TOOL: &str = "\0";

impl ToolIndex {
    /// Adds a hard commitment under its number.
    pub(super) fn add(&mut self, number: usize, one: &Commitment) {
        let checks = [&one.guard, &one.holds, &one.condition];
        let named: Option<Vec<_>> =
            checks.into_iter().flatten().map(|expr| expr.texts_compared("action", "tool")).collect();
        // A commitment that does more with the tool than compare it is looked at for each.
        let Some(named) = named else { return self.others.push((number, BTreeSet::new())) };
        let named: BTreeSet<Arc<str>> = named.into_iter().flatten().collect();
        for tool in &named {
            if !is_permitted_by_tool(one, tool) {
                self.named.entry(Arc::clone(tool)).or_default().push(number);
            }
        }
        if !is_permitted_by_tool(one, OTHER_TOOL) {
            self.others.push((number, named));
        }
    }

    fn of(&self, tool: &str) -> Vec<usize> {
        let named = self.named.get(tool).into_iter().flatten().copied();
        let others = self.others.iter().filter(|(_, named)| !named.contains(tool));
        named.chain(others.map(|(number, _)| *number)).collect()
    }
}

/// The ids that an intent says it relies on (`intent.relies_on`).
pub(super) fn relied_on(intent: &Intent) -> Vec<Arc<str>> {
    intent.member("intent").map(|said| form::texts(said, "relies_on")).unwrap_or_default()
}

/// Whether every call of the tools is permitted by a commitment as far as the tool alone tells; of all tools, where none are named.
pub(super) fn is_permitted_by_tools(one: &Commitment, tools: Option<&[Arc<str>]>) -> bool {
    if let Some(tools) = tools {
        return tools.iter().all(|tool| is_permitted_by_tool(one, tool));
    }
    let mut index = ToolIndex::default();
    index.add(0, one);
    index.named.is_empty() && index.others.is_empty()
}

/// Whether the tool alone tells that a commitment permits each of its calls: the guard is false, or what must be true is.
fn is_permitted_by_tool(one: &Commitment, tool: &str) -> bool {
    let action = Value::record([("tool", Value::from(tool))]);
    let decided =
        |expr: &Option<Expr>| expr.as_ref().and_then(|expr| expr.decided("action", "tool", &action));
    if decided(&one.guard) == Some(false) {
        return true;
    }
    match (&one.holds, &one.condition) {
        (None, None) => true,
        _ => decided(&one.holds) == Some(true) || decided(&one.condition) == Some(false),
    }
}

impl Commitments {
    /// Judges one call over the state before it: every hard commitment that binds, is neither over nor blocked, and has a true
    /// guard. `action` has `tool` and `params`; `relies_on` are the ids that the intent relies on.
    pub fn authorize(
        &self,
        action: &Value,
        relies_on: &[Arc<str>],
        state: &Value,
        counters: &dyn Fn() -> Value,
    ) -> Authorized {
        let mut found = Authorized::default();
        let core = self.core();
        // An expression reads the statuses as they are before the line.
        let served = || Statuses::served_with(self, state, counters());
        let counters: &dyn Fn() -> Value = if core.reads_statuses { &served } else { counters };
        let mut statuses = None;
        let candidates = match action.get("tool").and_then(Value::as_str) {
            Some(tool) => core.for_tool.of(tool),
            None => core.hard.clone(),
        };
        // A call with a scope is judged by the commitments of that scope and the global ones.
        let scope = action.get(SCOPE).and_then(Value::as_str);
        let is_asked = |one: &Commitment| scope.is_none_or(|scope| ["global", scope].contains(&&*one.scope));
        for one in candidates.into_iter().map(|number| &*core.all[number]) {
            if one.closed.is_none()
                && is_asked(one)
                && !one.is_of_parent
                && self.binds(one)
                && !self.is_past(one)
            {
                self.judge(one, action, (state, counters), &mut statuses, &mut found);
            }
        }
        if let Some(tick) = self.hidden() {
            let message = format!("the lists of tick {tick} were erased or withheld");
            found.unjudged.push((UNKNOWN_ID.into(), Met { word: sealed::WITHHELD, at: None, message }));
        }
        if !relies_on.is_empty() {
            let statuses = statuses.get_or_insert_with(|| Statuses::of(self, state, counters, Some(action)));
            self.judge_support(relies_on, statuses, &mut found);
        }
        match self.contract() {
            Some(contract) if self.hears_parents() => {
                let one = Used { steps: 1, calls: 1, cost: None };
                let fault =
                    self.ended().or_else(|| contract.fault(action)).or_else(|| self.over_budget(&one));
                fault.into_iter().for_each(|fault| found.leave(&contract.id, fault));
                self.judge_by_parents(action, state, counters, &mut found);
            }
            Some(contract) if !contract.permits(action) => found.violate(Violated::Scope, &contract.id),
            _ => {}
        }
        found
    }

    /// Judges what a line without a call relies on: the same as of a call.
    pub(super) fn supported(
        &self,
        relies_on: &[Arc<str>],
        state: &Value,
        counters: &dyn Fn() -> Value,
    ) -> Authorized {
        let mut found = Authorized::default();
        if !relies_on.is_empty() {
            let statuses = Statuses::of(self, state, counters, None);
            self.judge_support(relies_on, &statuses, &mut found);
        }
        found
    }

    fn judge_support(&self, relies_on: &[Arc<str>], statuses: &Statuses, found: &mut Authorized) {
        for name in relies_on {
            let id = self.find(name);
            let fell = |id: &Arc<str>| statuses.get(id).is_some_and(|(status, _)| status.fells());
            // By version 1 of the rules an unknown id is no fault.
            if id.as_ref().map_or(self.is_since(2), fell) {
                found.violate(Violated::Support, id.as_ref().unwrap_or(name));
            }
        }
    }

    /// Returns the support that an intent relies on and that is not there, or is stale, retracted or superseded: the support of
    /// the commitments that it brings, their dependencies, and the ids that it names itself.
    ///
    /// `source` is where the intent comes from: what has the same id there has to be the same here.
    pub fn dead_support(
        &self,
        intent: &Intent,
        source: &Commitments,
        state: &Value,
        counters: &dyn Fn() -> Value,
    ) -> Vec<Arc<str>> {
        let list = |name: &str| intent.member(name).and_then(Value::as_array).cloned().unwrap_or_default();
        let (atoms, made) = (list(form::EVIDENCE), list(form::COMMITMENTS));
        let own: BTreeSet<Arc<str>> =
            atoms.iter().chain(made.iter()).filter_map(|item| form::text(item, "id")).collect();
        let mut named: BTreeSet<Arc<str>> = relied_on(intent).into_iter().collect();
        for one in made.iter() {
            named.extend(form::texts(one, "support"));
            named.extend(form::texts(one, "depends_on"));
        }
        let edges = list(form::EDGES);
        named.extend(edges.iter().filter_map(|edge| form::text(edge, "from")));
        named.retain(|id| !own.contains(id));
        let named: BTreeSet<Arc<str>> = named.into_iter().map(|id| self.find(&id).unwrap_or(id)).collect();
        if named.is_empty() {
            return Vec::new();
        }
        let statuses = Statuses::of(self, state, counters, None);
        let is_dead = |id: &Arc<str>| {
            let fell = match statuses.get(id) {
                Some((status, _)) => status.fells(),
                None => self.atom(id).is_none(),
            };
            fell || !self.has_same(source, id)
        };
        named.into_iter().filter(is_dead).collect()
    }

    /// A call with the sums of a commitment; `None` for one that sums nothing.
    fn with_sums(&self, one: &Commitment, action: &Value) -> Option<Value> {
        if one.sums.is_empty() {
            return None;
        }
        let running = action.get(spent::SPENT).and_then(|running| running.get(&one.id)).map(spent::list_of);
        let sums = running.or_else(|| self.spent.get(&one.id).cloned()).unwrap_or_default();
        let mut made = action.as_object().cloned().unwrap_or_default();
        made.set(spent::SPENT, spent::places(one.sums.len(), &sums));
        Some(Value::Object(made))
    }

    fn judge(
        &self,
        one: &Commitment,
        action: &Value,
        (state, counters): (&Value, &dyn Fn() -> Value),
        statuses: &mut Option<Statuses>,
        found: &mut Authorized,
    ) {
        if let Some(name) = one.unread {
            let message = format!("{name} uses a name that no pack here declares");
            return found.unjudged.push((
                Arc::clone(&one.id),
                Met { word: sealed::MISSING, at: Some(format!("a name in {name}")), message },
            ));
        }
        let with_sums = self.with_sums(one, action);
        let action = with_sums.as_ref().unwrap_or(action);
        let is = |expr: &Expr| evaluate(expr, (state, counters), Some(action));
        let unjudged = |truth: Truth| match truth {
            Truth::Uncertain(why) => Some(Met::from(EvalError::Uncertain(why))),
            Truth::Exhausted => Some(Met::from(EvalError::Exhausted)),
            Truth::True | Truth::False => None,
        };
        if one.discharge.as_ref().is_some_and(|expr| is(expr) == Truth::True) {
            return;
        }
        let checked = one.holds.as_ref().map(|expr| (expr, Truth::True));
        let checked = checked.or(one.condition.as_ref().map(|expr| (expr, Truth::False)));
        let Some((checked, wanted)) = checked else { return };
        let guard = one.guard.as_ref().map_or(Truth::True, is);
        if guard == Truth::False {
            return;
        }
        let result = is(checked);
        if !one.sums.is_empty() {
            // A sum that the condition did not need, such as that of a call of another tool, grows by nothing.
            let missing = if result == wanted { Value::from(0u64) } else { Value::Null };
            let each = one.sums.iter().map(|sum| {
                let value = value_of(sum, (state, counters), action);
                value.filter(|value| value.as_number().is_some()).unwrap_or_else(|| missing.clone())
            });
            found.spent.insert(Arc::clone(&one.id), each.collect());
        }
        if result == wanted {
            return;
        }
        // A commitment that is blocked by another does not bind now, nor does a stale claim.
        if one.kind.is_claim() || one.has_conflicts {
            let statuses = statuses.get_or_insert_with(|| Statuses::of(self, state, counters, Some(action)));
            use CommitmentStatus as S;
            if let Some((S::Stale | S::Blocked | S::Discharged, _)) = statuses.get(&one.id) {
                return;
            }
        }
        match unjudged(guard).or_else(|| unjudged(result)) {
            Some(met) => found.unjudged.push((Arc::clone(&one.id), met)),
            None => found.violate(Violated::Hard, &one.id),
        }
    }
}
