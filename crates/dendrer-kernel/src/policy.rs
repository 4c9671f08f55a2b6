//! Policy rules: what every state of a run must keep, and what every request must keep (dendrer paper 3.2).
//!
//! A rule is `{"id": .., "holds": ..}`. One that reads `t`, the proposed transition, is about requests: it is judged on the
//! state before an `action.request`. Any other rule is about the state after each transition. With `"enforce": true` the door
//! refuses, from stage 2 on, a proposal that would break it; without, the break is put on record.

use std::sync::Arc;

use dendrer_object::{AT, Intent, Pointer, Value};

use crate::asked::{self, AskedOf};
use crate::calls;
use crate::expr::{Env, Expr, ExprError, Scope, Truth};
use crate::fold::{transition_for, transition_members};
use crate::ontology::DECISION;
use crate::predicate::{Predicate, truth};
use crate::step::KERNEL_VERSION;

/// The root under which a rule reads the proposed transition.
const PROPOSED: &str = "t";

/// The policy rules of a run.
#[derive(Debug, Clone, Default)]
pub struct PolicyRules {
    /// Rules about states.
    pub states: Vec<Predicate>,
    /// Rules about requests.
    pub requests: Vec<RequestRule>,
}

/// A policy rule about requests.
#[derive(Debug, Clone)]
pub struct RequestRule {
    /// Its name.
    pub id: String,
    /// Whether a request that breaks it is refused from stage 2 on.
    pub is_enforced: bool,
    /// Types and tools that may write while it is broken (design, 14.1).
    pub(crate) repairs: Vec<Arc<str>>,
    holds: Expr,
}

impl RequestRule {
    /// The places of the state that it can look at.
    pub fn read_set(&self) -> &[Pointer] {
        self.holds.read_set()
    }

    /// Whether another rule has its name and its text.
    pub fn is_same(&self, other: &RequestRule) -> bool {
        self.id == other.id && self.holds.text() == other.holds.text()
    }

    /// Judges a request over the state before it.
    pub fn judge(&self, intent: &Intent, state: &Value) -> Truth {
        let proposed = transition_for(intent, asked::reads_calls(&self.holds));
        truth(&self.holds, &Env { others: &[(PROPOSED, &proposed)], ..Env::of(state) })
    }

    /// As [`RequestRule::judge`] by the rules of version 2 of the kernel: a rule that reads `t.action` is asked for each of several
    /// calls, over the state that `before` gives for its number, and holds if it holds of each.
    pub fn judge_line(&self, intent: &Intent, before: &dyn Fn(usize) -> Value) -> Truth {
        // Most lines have one call.
        let each = calls::each(intent);
        if each.is_empty() || AskedOf::of([&self.holds]) == AskedOf::Line {
            return self.judge(intent, &before(0));
        }
        let mut found = Truth::True;
        for (at, call) in each.iter().enumerate() {
            match self.judge(call, &before(at)) {
                Truth::True => {}
                Truth::False => return Truth::False,
                other => found = other,
            }
        }
        found
    }
}

/// Whether rules about requests are asked of a line: of an `action.request`, and by version 2 of the kernel's rules of any other
/// line with an action, which is shown like a call, but for one that reports what became of a call.
pub fn asks_of(version: u64, type_name: &str, has_action: bool) -> bool {
    const REPORTS: [&str; 2] = ["action.result", DECISION];
    type_name == "action.request" || version >= 2 && has_action && !REPORTS.contains(&type_name)
}

/// Whether an expression reads `t.at`.
pub(crate) fn reads_time(expr: &Expr) -> bool {
    expr.reads_of(PROPOSED).iter().any(|place| place.tokens().next().as_deref() == Some(AT))
}

/// A policy rule.
enum PolicyRule {
    State(Predicate),
    Request(RequestRule),
}

impl PolicyRules {
    /// The rules that ask for the time of a line.
    pub(crate) fn timed(&self) -> impl Iterator<Item = &str> {
        self.requests.iter().filter(|rule| reads_time(&rule.holds)).map(|rule| &*rule.id)
    }

    /// Reads the rules as a run record holds them. Fails with the number of the rule, from 0, and what is wrong.
    pub fn read(rules: &[Value]) -> Result<PolicyRules, (usize, String)> {
        PolicyRules::read_by(rules, KERNEL_VERSION)
    }

    /// As [`PolicyRules::read`], by the rules of a version of the kernel: those of the run whose rules they are.
    pub fn read_by(rules: &[Value], version: u64) -> Result<PolicyRules, (usize, String)> {
        let mut read = PolicyRules::default();
        for (index, rule) in rules.iter().enumerate() {
            match read_rule(rule, &rules[..index], version).map_err(|why| (index, why))? {
                PolicyRule::State(rule) => read.states.push(rule),
                PolicyRule::Request(rule) => read.requests.push(rule),
            }
        }
        Ok(read)
    }
}

/// Returns what is wrong with the expression of a rule; `None` if that is sound, or the rule has no text of one.
pub fn expression_fault(rule: &Value) -> Option<ExprError> {
    Expr::parse_condition(rule.get("holds")?.as_str()?, &scope()).err()
}

/// Returns the expression of a rule; `None` for one that is no rule.
pub(crate) fn expression(rule: &Value) -> Option<Expr> {
    Expr::parse_condition(rule.get("holds")?.as_str()?, &scope()).ok()
}

fn scope() -> Scope {
    Scope::new().root_of(PROPOSED, transition_members()).moment_of(PROPOSED, AT)
}

/// Reads one rule, given those before it.
fn read_rule(rule: &Value, before: &[Value], version: u64) -> Result<PolicyRule, String> {
    let id_of = |rule: &'_ Value| rule.get("id").and_then(Value::as_str).map(str::to_owned);
    let (Some(id), Some(holds)) = (id_of(rule), rule.get("holds").and_then(Value::as_str)) else {
        return Err("a rule has a text `id` and a text `holds`".to_owned());
    };
    let mut names = rule.as_object().into_iter().flat_map(|rule| rule.iter()).map(|(name, _)| &**name);
    if let Some(other) = names.find(|name| !matches!(*name, "enforce" | "id" | "holds" | "repairs")) {
        return Err(format!(
            "a rule has `id`, `holds` and perhaps `enforce` and `repairs`, and no \"{other}\""
        ));
    }
    let is_enforced = match rule.get("enforce").map(Value::as_bool) {
        None => false,
        Some(Some(enforce)) => enforce,
        Some(None) => return Err("`enforce` is true or false".to_owned()),
    };
    let repairs = match rule.get("repairs") {
        None => Vec::new(),
        Some(list) => {
            let texts = list.as_array().into_iter().flat_map(|list| list.iter());
            let texts: Option<Vec<Arc<str>>> = texts.map(|text| text.as_str().map(Arc::from)).collect();
            texts.filter(|_| list.as_array().is_some()).ok_or("`repairs` is a list of types and tools")?
        }
    };
    if let Some(same) = before.iter().position(|rule| id_of(rule).as_deref() == Some(&*id)) {
        return Err(format!("rule {same} has the id \"{id}\" already"));
    }
    let expr = Expr::parse_condition(holds, &scope().by_rules(version)).map_err(|error| error.to_string())?;
    if expr.reads_counters() {
        return Err(
            "a policy rule reads the state and `t`, and state.counters is beside the state".to_owned()
        );
    }
    if expr.roots().any(|root| root == PROPOSED) {
        return Ok(PolicyRule::Request(RequestRule { id, is_enforced, repairs, holds: expr }));
    }
    let rule = Predicate::holds_by(&id, holds, version).map_err(|error| error.to_string())?;
    Ok(PolicyRule::State(rule.enforced(is_enforced).repaired_by(repairs)))
}
