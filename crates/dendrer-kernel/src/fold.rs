//! `fold/1`: the rules of a pack as a reducer (design, section 5).
//!
//! A rule is data: when it applies, and ordered steps that write at paths of the state. [`FoldReducer`] runs the
//! rules on a state and a transition and gives the delta of what the steps wrote, path by path. There is no clock,
//! no I/O and no loop without a list that was fixed before it began, so a pack is pure and ends by construction.
//!
//! Rule: a rule of a pack sees the content of a transition and never its time, its metrics or its digests, so that
//! replay, a fork and a record of another store give the same state.

use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_object::intent::line;
use dendrer_object::number::{Number, round_half_even};
use dendrer_object::record::Rel;
use dendrer_object::{Delta, Intent, MESSAGES, OBSERVED_AT, Pointer, TypeName, Value};

use crate::asked::{self, AskedOf};
use crate::calls;
use crate::expr::Expr;
use crate::reduce::{ReduceError, ReducedDelta, Reducer, ReducerInfo};
use crate::unknown::{self, UnknownPlaces};

mod run;
pub(crate) mod target;
/// Names the kind of a value, with its article, as rules of packs call it.
///
/// Other words than [`Value::described`]: errors of rules are in sealed refusals, and replay makes those again.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

#[cfg(test)]
mod tests;

pub(crate) use run::{compute, reads, say};
use target::Target;

/// The name of this reducer.
pub const NAME: &str = "fold/1";

/// How many evaluation steps the rules may take for one transition.
pub const EVALUATION_STEPS_MAX: u64 = 10_000_000;

/// How many items the list of an `each` may have.
pub const EACH_ITEMS_MAX: usize = 100_000;

/// How many writes the rules may make for one transition.
pub const WRITES_MAX: usize = 100_000;

/// How many bytes of values the rules may write for one transition, in canonical form.
pub const WRITTEN_SIZE_MAX: u64 = 32 << 20;

/// How many bytes the canonical text of the state may have after a transition.
pub const STATE_SIZE_MAX: u64 = 64 << 20;

/// The rules of a pack, checked.
#[derive(Debug, Default)]
pub(crate) struct Fold {
    pub(crate) rules: Vec<Rule>,
    /// The decimals of each declared field that has a rule for them.
    pub(crate) decimals: Vec<(Arc<str>, u8)>,
}

/// When something is done, and what.
#[derive(Debug)]
pub(crate) struct Rule {
    /// The name of the rule in messages: `rule 2 "a booking"`.
    pub(crate) place: String,
    /// The types it is for; `None` for all.
    pub(crate) types: Option<BTreeSet<TypeName>>,
    pub(crate) when: Option<Expr>,
    pub(crate) steps: Vec<Step>,
    /// Whether it runs once for a line with several calls, or once for each of them.
    pub(crate) asked_of: AskedOf,
    /// Whether it reads `t.calls`.
    reads_calls: bool,
}

/// One thing that is done.
#[derive(Debug)]
pub(crate) struct Step {
    /// The number of the step, like `2.1`.
    pub(crate) number: String,
    pub(crate) condition: Option<Expr>,
    pub(crate) act: Act,
}

/// The action of a step.
#[derive(Debug)]
pub(crate) enum Act {
    /// Names values for the steps that follow.
    Let(Vec<(Arc<str>, Template)>),
    /// Does steps once for each item of a list.
    Each { name: Arc<str>, list: Expr, steps: Vec<Step> },
    /// Writes at a place of the state.
    Write { kind: Write, target: Target, optional: bool },
}

/// How a step writes.
#[derive(Debug)]
pub(crate) enum Write {
    Set(Template),
    Remove,
    Append(Template),
    Add(Template),
}

/// A value that is to be computed: an expression, a literal, or a list or map of them.
#[derive(Debug)]
pub(crate) enum Template {
    Literal(Value),
    Expr(Expr),
    List(Vec<Template>),
    Map(Vec<(Arc<str>, Template)>),
}

impl Template {
    /// Walks the expressions in it.
    pub(crate) fn for_each_expr<'e>(&'e self, f: &mut dyn FnMut(&'e Expr)) {
        match self {
            Template::Literal(_) => {}
            Template::Expr(expr) => f(expr),
            Template::List(items) => items.iter().for_each(|item| item.for_each_expr(f)),
            Template::Map(members) => members.iter().for_each(|(_, member)| member.for_each_expr(f)),
        }
    }
}

impl Fold {
    /// Returns which rules write something for this transition on this state, by index; none where one meets an error.
    pub(crate) fn writers(&self, before: &Value, intent: &Intent) -> Vec<usize> {
        let mut writers = Vec::new();
        match run::reduce(self, before, intent, 0, &mut |rule| writers.push(rule)) {
            Ok(_) => writers,
            Err(_) => Vec::new(),
        }
    }

    /// Walks the rules for the type of a transition, with their indices.
    fn rules_for(&self, intent: &Intent) -> impl Iterator<Item = (usize, &Rule)> {
        let fits = |rule: &Rule| rule.types.as_ref().is_none_or(|types| types.contains(&intent.type_name));
        self.rules.iter().enumerate().filter(move |(_, rule)| fits(rule))
    }

    /// Whether a rule reads `t.calls`.
    fn reads_calls(&self) -> bool {
        self.rules.iter().any(|rule| rule.reads_calls)
    }

    /// Walks every expression of the rules.
    pub(crate) fn for_each_expr<'e>(&'e self, f: &mut dyn FnMut(&'e Expr)) {
        self.rules.iter().for_each(|rule| rule.for_each_expr(f));
    }
}

impl Rule {
    /// Builds a rule, and finds out how often it runs for a line with several calls.
    pub(crate) fn new(
        place: String,
        types: Option<BTreeSet<TypeName>>,
        when: Option<Expr>,
        steps: Vec<Step>,
    ) -> Rule {
        let mut rule = Rule { place, types, when, steps, asked_of: AskedOf::Line, reads_calls: false };
        let mut exprs = Vec::new();
        rule.for_each_expr(&mut |expr| exprs.push(expr));
        let reads_calls = exprs.iter().any(|expr| asked::reads_calls(expr));
        (rule.asked_of, rule.reads_calls) = (AskedOf::of(exprs), reads_calls);
        rule
    }

    /// Walks every expression of the rule.
    pub(crate) fn for_each_expr<'e>(&'e self, f: &mut dyn FnMut(&'e Expr)) {
        self.when.iter().for_each(&mut *f);
        steps_exprs(&self.steps, f);
    }

    /// Walks every place that the rule may write to.
    pub(crate) fn for_each_target<'e>(&'e self, f: &mut dyn FnMut(&'e Target)) {
        steps_targets(&self.steps, f);
    }
}

pub(crate) fn steps_exprs<'e>(steps: &'e [Step], f: &mut dyn FnMut(&'e Expr)) {
    for step in steps {
        step.condition.iter().for_each(&mut *f);
        match &step.act {
            Act::Let(values) => values.iter().for_each(|(_, value)| value.for_each_expr(f)),
            Act::Each { list, steps, .. } => {
                f(list);
                steps_exprs(steps, f);
            }
            Act::Write { kind, target, .. } => {
                target.for_each_expr(f);
                match kind {
                    Write::Set(value) | Write::Append(value) | Write::Add(value) => value.for_each_expr(f),
                    Write::Remove => {}
                }
            }
        }
    }
}

fn steps_targets<'e>(steps: &'e [Step], f: &mut dyn FnMut(&'e Target)) {
    for step in steps {
        match &step.act {
            Act::Let(_) => {}
            Act::Each { steps, .. } => steps_targets(steps, f),
            Act::Write { target, .. } => f(target),
        }
    }
}

/// Rounds a number by the rule of its field. Null stays; anything else has no decimals.
pub(crate) fn quantize(value: Value, decimals: u8) -> Result<Value, String> {
    match &value {
        Value::Null => Ok(value),
        Value::Number(number) => match number.as_f64() {
            Some(exact) => {
                let rounded = Number::from_f64(round_half_even(exact, decimals));
                Ok(Value::Number(rounded.expect("a rounded number is finite")))
            }
            // An integer that no double holds has no decimals to lose.
            None => Ok(value),
        },
        other => Err(format!("a field with decimals holds a number or null, not {}", kind(other))),
    }
}

/// Whether a number is finer than a field with decimals: rounding to these and to six more differ. The noise of doubles is not
/// finer (design, 14.1).
pub(crate) fn is_finer(value: &Value, decimals: u8) -> bool {
    let Some(exact) = value.as_number().and_then(|number| number.as_f64()) else { return false };
    round_half_even(exact, decimals) != round_half_even(exact, decimals.saturating_add(FINER_DECIMALS))
}

/// Decimals beyond those of a field that tell a finer number from noise.
const FINER_DECIMALS: u8 = 6;

/// Runs the rules of a pack.
#[derive(Debug, Clone)]
pub struct FoldReducer(pub(crate) Arc<Fold>);

impl Reducer for FoldReducer {
    fn info(&self) -> ReducerInfo<'_> {
        ReducerInfo::program(NAME)
    }

    fn reduce(&self, before: &Value, intent: &Intent) -> Result<Delta, ReduceError> {
        Ok(run::reduce(&self.0, before, intent, 0, &mut |_| {})?.delta)
    }

    fn reduce_incomplete(
        &self,
        before: &Value,
        intent: &Intent,
        tick: u64,
    ) -> Result<ReducedDelta, ReduceError> {
        run::reduce(&self.0, before, intent, tick, &mut |_| {})
    }

    fn reduce_calls(&self, before: &Value, intent: &Intent, tick: u64) -> Result<ReducedDelta, ReduceError> {
        let mut made = run::reduce_each(&self.0, before, intent, tick, &mut |_| {})?;
        if !unknown::is_incomplete(before) && !unknown::is_ambiguous(intent) {
            made.unknown = UnknownPlaces::default();
        }
        Ok(made)
    }

    fn may_write(&self, state: &Value, intent: &Intent) -> Vec<Pointer> {
        run::may_write(&self.0, state, intent)
    }

    fn unknown_by_gap(&self, state: &Value, intent: &Intent) -> Vec<Pointer> {
        run::unknown_by_gap(&self.0, state, intent)
    }

    fn unknown_after_error(&self, before: &Value, intent: &Intent, tick: u64) -> UnknownPlaces {
        run::unknown_after_error(&self.0, before, intent, tick)
    }
}

/// Returns the names of the members that `t` can have, in order.
pub fn transition_members() -> Vec<&'static str> {
    let made = ["agent", "author", "calls", "goal", "links", MESSAGES, OBSERVED_AT, "type"];
    let mut names: Vec<&str> = line::kept_without_metrics().chain(made).collect();
    names.sort_unstable();
    names
}

/// Returns what a rule sees as `t`: the transition without its time, its metrics and its digests.
pub fn transition(intent: &Intent) -> Value {
    let mut members: Vec<(Arc<str>, Value)> = vec![
        ("agent".into(), Value::String(Arc::clone(&intent.agent))),
        ("author".into(), Value::from(intent.author.as_str())),
        ("type".into(), Value::from(intent.type_name.as_str())),
    ];
    members.extend(intent.goal.clone().map(|goal| ("goal".into(), Value::String(goal))));
    members.extend(intent.members.iter().filter(|(name, value)| is_visible(name, value)).cloned());
    add_anomalies(&mut members, intent.noted.iter().cloned());
    // In the one order that the record has, so that replay sees what the first evaluation saw.
    let mut links: Vec<_> =
        intent.links.iter().filter(|link| link.rel != Rel::Predecessor).copied().collect();
    links.sort_unstable();
    links.dedup();
    if !links.is_empty() {
        members.push(("links".into(), Value::array(links.iter().map(|link| Value::from(link.rel.as_str())))));
    }
    Value::record(members)
}

/// As [`transition`], with the list of calls for expressions that read it (design, 14.1).
pub(crate) fn transition_for(intent: &Intent, reads_calls: bool) -> Value {
    let mut t = transition(intent);
    if let (true, Value::Object(members)) = (reads_calls, &mut t) {
        members.set("calls", calls::to_value(intent));
    }
    t
}

/// Puts anomalies behind those that are among members.
pub(crate) fn add_anomalies(members: &mut Vec<(Arc<str>, Value)>, more: impl IntoIterator<Item = Value>) {
    let mut more = more.into_iter().peekable();
    if more.peek().is_none() {
        return;
    }
    let listed = members.iter().position(|(name, _)| &**name == "anomalies").map(|at| members.remove(at).1);
    let listed: Vec<Value> =
        listed.iter().filter_map(Value::as_array).flat_map(|list| list.iter().cloned()).collect();
    members.push(("anomalies".into(), Value::array(listed.into_iter().chain(more))));
}

fn is_visible(name: &str, value: &Value) -> bool {
    match name {
        "metrics" => false,
        // A record keeps no empty list of anomalies.
        "anomalies" => value.as_array().is_none_or(|list| !list.is_empty()),
        _ => true,
    }
}
