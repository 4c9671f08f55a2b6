//! Policy rules: what every state of a run must keep, and what every request must keep (dendrer paper 3.2).
//!
//! A rule is `{"id": .., "holds": ..}`. One that reads `t`, the proposed transition, is about requests: it is judged on the
//! state before an `action.request`. Any other rule is about the state after each transition. With `"enforce": true` the door
//! refuses, from stage 2 on, a proposal that would break it; without, the break is put on record.

use dendrer_object::{Intent, Pointer, Value};

use crate::expr::{Env, Expr, Scope, Truth};
use crate::fold::{transition, transition_members};
use crate::predicate::{Predicate, truth};

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
        let proposed = transition(intent);
        truth(&self.holds, &Env { others: &[(PROPOSED, &proposed)], ..Env::of(state) })
    }
}

/// A policy rule.
enum PolicyRule {
    State(Predicate),
    Request(RequestRule),
}

impl PolicyRules {
    /// Reads the rules as a run record holds them. Fails with the number of the rule, from 0, and what is wrong.
    pub fn read(rules: &[Value]) -> Result<PolicyRules, (usize, String)> {
        let mut read = PolicyRules::default();
        for (index, rule) in rules.iter().enumerate() {
            match read_rule(rule, &rules[..index]).map_err(|why| (index, why))? {
                PolicyRule::State(rule) => read.states.push(rule),
                PolicyRule::Request(rule) => read.requests.push(rule),
            }
        }
        Ok(read)
    }
}

/// Reads one rule, given those before it.
fn read_rule(rule: &Value, before: &[Value]) -> Result<PolicyRule, String> {
    let id_of = |rule: &'_ Value| rule.get("id").and_then(Value::as_str).map(str::to_owned);
    let (Some(id), Some(holds)) = (id_of(rule), rule.get("holds").and_then(Value::as_str)) else {
        return Err("a rule has a text `id` and a text `holds`".to_owned());
    };
    let mut names = rule.as_object().into_iter().flat_map(|rule| rule.iter()).map(|(name, _)| &**name);
    if let Some(other) = names.find(|name| !matches!(*name, "enforce" | "id" | "holds")) {
        return Err(format!("a rule has `id`, `holds` and perhaps `enforce`, and no \"{other}\""));
    }
    let is_enforced = match rule.get("enforce").map(Value::as_bool) {
        None => false,
        Some(Some(enforce)) => enforce,
        Some(None) => return Err("`enforce` is true or false".to_owned()),
    };
    if let Some(same) = before.iter().position(|rule| id_of(rule).as_deref() == Some(&*id)) {
        return Err(format!("rule {same} has the id \"{id}\" already"));
    }
    let scope = Scope::new().root_of(PROPOSED, transition_members());
    let expr = Expr::parse_condition(holds, &scope).map_err(|error| error.to_string())?;
    if expr.reads_counters() {
        return Err(
            "a policy rule reads the state and `t`, and state.counters is beside the state".to_owned()
        );
    }
    if expr.roots().any(|root| root == PROPOSED) {
        return Ok(PolicyRule::Request(RequestRule { id, is_enforced, holds: expr }));
    }
    let rule = Predicate::holds(&id, holds).map_err(|error| error.to_string())?;
    Ok(PolicyRule::State(rule.enforced(is_enforced)))
}
