//! The budget of a delegation: how many steps, calls and how much cost a child run may use, and what was used.
//!
//! Rule: steps are transitions that agents wrote, calls are calls that were proposed, cost is the sum of `metrics.cost_usd`; each is
//! counted over the child, its forks and its children; test `a_budget_is_counted_at_the_door`.

use dendrer_object::record::Author;
use dendrer_object::{Code, Intent, Number, Value};

use super::fault::CommitmentFault;
use crate::calls::calls;

/// The names of what is counted, in the order of [`Used::values`].
const NAMES: [&str; 3] = ["calls", "cost", "steps"];

/// The limits of a contract; `None` for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ContractBudget {
    /// Transitions that agents may write.
    pub steps: Option<u64>,
    /// Calls that may be proposed.
    pub calls: Option<u64>,
    /// The sum of `metrics.cost_usd`.
    pub cost: Option<f64>,
}

/// The part of a budget that was used.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Used {
    /// Transitions that agents wrote.
    pub steps: u64,
    /// Calls that were proposed.
    pub calls: u64,
    /// The sum of `metrics.cost_usd`; `None` if no transition has one.
    pub cost: Option<f64>,
}

impl ContractBudget {
    /// Checks the budget of a scope file.
    pub(super) fn check(budget: &Value) -> Result<(), CommitmentFault> {
        let fault = |path: String, message: &str| {
            Err(CommitmentFault { code: Code::E0209, path, message: message.to_owned() })
        };
        let Some(members) = budget.as_object() else {
            return fault("/budget".to_owned(), "a budget is an object, like {\"steps\": 50}");
        };
        for (name, value) in members.iter() {
            let path = format!("/budget/{name}");
            match &**name {
                "steps" | "calls" if value.as_u64().is_some() => {}
                "steps" | "calls" => return fault(path, "this is a whole number of 0 or more"),
                "cost" if value.as_f64().is_some_and(|cost| cost >= 0.0) => {}
                "cost" => return fault(path, "this is a number of 0 or more"),
                _ => return fault(path, "a budget has steps, calls and cost"),
            }
        }
        Ok(())
    }

    /// Reads the budget of a contract.
    pub(super) fn read(budget: &Value) -> ContractBudget {
        let number = |name: &str| budget.get(name).and_then(Value::as_u64);
        let cost = budget.get("cost").and_then(Value::as_f64);
        ContractBudget { steps: number("steps"), calls: number("calls"), cost }
    }

    /// Whether nothing is limited.
    pub fn is_empty(&self) -> bool {
        *self == ContractBudget::default()
    }

    /// The limits that what was used passes.
    pub fn exceeded(&self, used: &Used) -> Option<Value> {
        let cost = used.cost.filter(|cost| self.cost.is_some_and(|limit| *cost > limit));
        let unstated = self.cost.is_some() && used.cost.is_none() && used.calls > 0;
        let over = [
            self.calls.filter(|limit| used.calls > *limit).map(Value::from),
            self.cost.filter(|_| cost.is_some() || unstated).map(number),
            self.steps.filter(|limit| used.steps > *limit).map(Value::from),
        ];
        pairs(used, over)
    }

    /// The limits that what comes next would pass, each with what is used and the limit: `{"calls":[50,50]}`. A cost of which nothing is
    /// stated is null. `None` if there is room.
    pub(super) fn passed(&self, used: &Used, next: &Used) -> Option<Value> {
        let is_over = |used: u64, next: u64, limit: Option<u64>| {
            limit.is_some_and(|limit| next > 0 && used.saturating_add(next) > limit)
        };
        if next.steps + next.calls == 0 {
            return None;
        }
        let cost = self.cost.filter(|limit| match (used.cost, next.cost) {
            (Some(cost), next) => cost >= *limit || cost + next.unwrap_or(0.0) > *limit,
            (None, Some(next)) => used.calls > 0 || next > *limit,
            (None, None) => used.calls > 0,
        });
        let over = [
            is_over(used.calls, next.calls, self.calls).then_some(self.calls).flatten().map(Value::from),
            cost.map(number),
            is_over(used.steps, next.steps, self.steps).then_some(self.steps).flatten().map(Value::from),
        ];
        pairs(used, over)
    }
}

/// The use and the limit, for each limit that is passed.
fn pairs(used: &Used, over: [Option<Value>; 3]) -> Option<Value> {
    let pairs = NAMES.into_iter().zip(used.values()).zip(over);
    let pairs: Vec<(&str, Value)> =
        pairs.filter_map(|((name, used), limit)| Some((name, Value::array([used, limit?])))).collect();
    (!pairs.is_empty()).then(|| Value::record(pairs))
}

fn number(value: f64) -> Value {
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}

impl Used {
    /// The use by one transition.
    pub fn of(author: Author, type_name: &str, content: &Value) -> Used {
        let proposed = content.get("action").filter(|_| type_name != "action.result");
        let cost = content.get("metrics").and_then(|metrics| metrics.get("cost_usd")?.as_f64());
        Used {
            steps: u64::from(author == Author::Agent),
            calls: proposed.map_or(0, |action| calls(action).len() as u64),
            cost,
        }
    }

    /// The use by an intent, if it is committed.
    pub(super) fn of_intent(intent: &Intent) -> Used {
        let members =
            ["action", "metrics"].into_iter().filter_map(|name| Some((name, intent.member(name)?.clone())));
        Used::of(intent.author, intent.type_name.as_str(), &Value::record(members))
    }

    /// The sum of both.
    pub fn and(self, other: Used) -> Used {
        let cost = match (self.cost, other.cost) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
        Used {
            steps: self.steps.saturating_add(other.steps),
            calls: self.calls.saturating_add(other.calls),
            cost,
        }
    }

    /// The use that is left without the use before a fork.
    pub fn without(self, before: Used) -> Used {
        let cost = match (self.cost, before.cost) {
            (Some(all), Some(before)) => Some((all - before).max(0.0)),
            (all, _) => all,
        };
        Used {
            steps: self.steps.saturating_sub(before.steps),
            calls: self.calls.saturating_sub(before.calls),
            cost,
        }
    }

    fn values(&self) -> [Value; 3] {
        [self.calls.into(), self.cost.map_or(Value::Null, number), self.steps.into()]
    }

    /// Returns it as it is sealed.
    pub fn to_value(&self) -> Value {
        Value::record(NAMES.into_iter().zip(self.values()))
    }

    /// Reads what is sealed.
    pub fn read(value: &Value) -> Used {
        let number = |name: &str| value.get(name).and_then(Value::as_u64).unwrap_or(0);
        let cost = value.get("cost").and_then(Value::as_f64);
        Used { steps: number("steps"), calls: number("calls"), cost }
    }
}
