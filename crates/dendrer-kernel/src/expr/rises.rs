//! Conditions that cannot turn back: what the text alone shows of how a verdict can change in the course of a run.
//!
//! Only the kernel writes `kernel_anomalies` and `policy.violations`, which it appends to, and `policy.violated`, which it sets once; the
//! counters count what is on record. Every other part of a state can be taken back by its writers, so nothing is
//! known of it: a list that was never shortened is not a list that cannot be.

use dendrer_object::Value;

use super::Expr;
use super::ast::{Base, Comparison, Kind, Node, Path, StepKind};
use super::functions::Function;

/// The counters that no transition lowers. Tokens and costs come from metrics, which may be negative.
const COUNTS: [&str; 4] = ["denied_count", "tool_calls", "tool_errors", "transitions"];

impl Expr {
    /// Tells whether it is known that the condition, once true, stays true for the rest of a run.
    pub fn only_rises(&self) -> bool {
        only(true, &self.0.tree)
    }

    /// Tells whether it is known that the condition, once false, stays false for the rest of a run.
    pub fn only_falls(&self) -> bool {
        only(false, &self.0.tree)
    }
}

/// Whether a condition only rises, or only falls.
fn only(rises: bool, node: &Node) -> bool {
    match &node.kind {
        Kind::Literal(Value::Bool(_)) => true,
        Kind::And(parts) | Kind::Or(parts) => parts.iter().all(|part| only(rises, part)),
        Kind::Not(inner) => only(!rises, inner),
        Kind::Has(path) if rises => is_latched(path),
        Kind::In(pair) if rises => {
            matches!(pair[0].kind, Kind::Literal(Value::String(_))) && is_tally(&pair[1])
        }
        Kind::Compare(comparison, pair) => {
            let (low, high) = match comparison {
                Comparison::Less | Comparison::LessEqual => (&pair[0], &pair[1]),
                Comparison::Greater | Comparison::GreaterEqual => (&pair[1], &pair[0]),
                Comparison::Equal | Comparison::NotEqual => return false,
            };
            let (grown, fixed) = if rises { (high, low) } else { (low, high) };
            grows(grown) && is_number(fixed)
        }
        _ => false,
    }
}

fn is_number(node: &Node) -> bool {
    match &node.kind {
        Kind::Int(_) | Kind::Double(_) => true,
        Kind::Constant(_, value) => matches!(value, Value::Number(_)),
        _ => false,
    }
}

/// A number that is never lowered.
fn grows(node: &Node) -> bool {
    match &node.kind {
        Kind::Path(Path { base: Base::Counters, steps }) => {
            matches!(&steps[..], [step] if key(&step.kind).is_some_and(|name| COUNTS.contains(&name)))
        }
        Kind::Call(Function::Size, arguments) => match arguments.first().map(|argument| &argument.kind) {
            Some(Kind::Path(path)) => names(path).is_some_and(|names| names == ["kernel_anomalies"]),
            _ => false,
        },
        _ => false,
    }
}

/// A map of counters, whose names are never taken out.
fn is_tally(node: &Node) -> bool {
    match &node.kind {
        Kind::Path(Path { base: Base::Counters, steps }) => {
            matches!(&steps[..], [step] if matches!(key(&step.kind), Some("anomalies" | "by_agent")))
        }
        _ => false,
    }
}

/// A place that the kernel fills once and never empties.
fn is_latched(path: &Path) -> bool {
    let Some(names) = names(path) else { return false };
    names == ["kernel_anomalies"]
        || names == ["policy"]
        || matches!(names[..], ["policy", "violated" | "violations"])
}

/// The names of a path of the state that has nothing but names.
fn names(path: &Path) -> Option<Vec<&str>> {
    match path.base {
        Base::State => path.steps.iter().map(|step| key(&step.kind)).collect(),
        _ => None,
    }
}

fn key(step: &StepKind) -> Option<&str> {
    match step {
        StepKind::Key(key) => Some(&key.name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scope;
    use super::*;

    fn check(text: &str, expected: &str) {
        let expr = Expr::parse_condition(text, &Scope::new()).unwrap();
        let found = match (expr.only_rises(), expr.only_falls()) {
            (true, true) => "constant",
            (true, false) => "rises",
            (false, true) => "falls",
            (false, false) => "unknown",
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn only_what_the_kernel_alone_moves_is_known_not_to_turn_back() {
        check("has(state.kernel_anomalies) && size(state.kernel_anomalies) > 2", "rises");
        check("has(state.policy.violated) || state.counters.tool_errors >= 3", "rises");
        check("3 < state.counters.denied_count", "rises");
        check("'loop' in state.counters.anomalies", "rises");
        check("state.counters.tool_calls <= 10 && !has(state.policy.violated)", "falls");
        check("!(state.counters.tool_calls > 10)", "falls");
        check("true", "constant");
    }

    #[test]
    fn of_anything_else_nothing_is_said() {
        for text in [
            "state.risk_score > 0.75",
            "size(state.list) > 3",
            "has(state.memory)",
            "state.counters.cost_usd > 1.0",
            "state.counters.tokens_used > 100",
            "state.counters.last_tool == 'rm'",
            "state.counters.tool_errors == 3",
            "state.counters.tool_errors > state.limit",
            "state.limit < state.counters.tool_errors",
            "has(state.policy.other)",
            "has(state.policy.violated.tick)",
            "state.counters.tool_calls > 3 && state.x > 1",
            "'x' in state.names",
            "state.counters.tool_calls > 3 ? true : false",
            "size(state.kernel_anomalies) == 1",
        ] {
            check(text, "unknown");
        }
    }
}
