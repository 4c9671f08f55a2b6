//! The usage that a message of a model states: tokens, and cost in US dollars.

use dendrer_object::Value;
use dendrer_object::number::Number;
use dendrer_object::value::Object;

use super::transition::Step;

/// Places in which a message states its usage; the first counts.
const PLACES: [&[&str]; 6] = [
    &["usage"],
    &["usage_metadata"],
    &["token_usage"],
    &["response_metadata", "token_usage"],
    &["response_metadata", "usage"],
    &["metrics"],
];

/// Tokens in all, under each name.
const TOKENS: [&str; 4] = ["total_tokens", "totalTokenCount", "tokens_used", "tokens"];

/// Tokens in parts: those of the same line belong together.
const PARTS: [&[&str]; 3] = [
    &["prompt_tokens", "completion_tokens"],
    &["input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"],
    &["promptTokenCount", "candidatesTokenCount"],
];

/// Cost in US dollars, under each name.
const COST: [&str; 3] = ["cost_usd", "total_cost", "cost"];

/// The metrics that a usage gives, by name.
const METRICS: [&str; 2] = ["tokens_used", "cost_usd"];

/// The usage that the steps of a run state. The first step of a model that states none is marked: a count is a lower bound
/// from there on.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    /// Whether a step was met that does not state each of the metrics.
    lacks: [bool; 2],
}

impl Usage {
    /// Adds what a message states to the metrics of its step. `beside` is a usage that is stated around the message.
    pub(crate) fn of_message(&mut self, step: &mut Step<'_>, message: &Value, beside: Option<&Value>) {
        match message.as_object() {
            Some(message) => self.add(step, |_| of_message(message, beside)),
            None => self.of_step(step),
        }
    }

    /// Adds what a step states itself to its metrics.
    pub(crate) fn of_step(&mut self, step: &mut Step<'_>) {
        self.add(step, |step| METRICS.map(|name| step.metric(name)));
    }

    fn add(&mut self, step: &mut Step<'_>, stated: impl FnOnce(&Step<'_>) -> [Option<Value>; 2]) {
        if !matches!(step.type_name(), "plan.update" | "action.request") {
            return;
        }
        for ((name, lacks), value) in METRICS.into_iter().zip(&mut self.lacks).zip(stated(step)) {
            if value.is_some() || !std::mem::replace(lacks, true) {
                step.metrics.push((name, value.unwrap_or(Value::Null)));
            }
        }
    }
}

/// Reads the metrics of a message, in the order of [`METRICS`]. `beside` is a usage that is stated around the message.
pub(crate) fn of_message(message: &Object, beside: Option<&Value>) -> [Option<Value>; 2] {
    let mut found = [None, None];
    // Most messages state none, and each is asked: one walk over the names is less than a lookup for each name that is known.
    let is_place = |name: &str| PLACES.iter().any(|place| place[0] == name);
    let has_place = message.iter().any(|(name, _)| is_place(name));
    if beside.is_none() && !has_place && !may_state(message) {
        return found;
    }
    let within = PLACES.iter().filter(|_| has_place).filter_map(|place| {
        let mut value = message.get(place[0])?;
        for name in &place[1..] {
            value = value.get(name)?;
        }
        value.as_object()
    });
    for usage in within.chain(beside.and_then(Value::as_object)).chain([message]) {
        let [tokens, cost] = &mut found;
        *tokens = tokens.take().or_else(|| tokens_of(usage));
        *cost = cost.take().or_else(|| COST.iter().find_map(|name| number(usage.get(name)?)));
    }
    found
}

/// Whether an object may have one of the members.
fn may_state(usage: &Object) -> bool {
    usage.iter().any(|(name, _)| name.contains("oken") || name.contains("cost"))
}

fn tokens_of(usage: &Object) -> Option<Value> {
    if let Some(total) = TOKENS.iter().find_map(|name| number(usage.get(name)?)) {
        return Some(total);
    }
    PARTS.iter().find_map(|names| {
        // The first two are what a model is given and what it makes; the rest may be missing.
        let parts: Vec<Option<u64>> = names.iter().map(|name| usage.get(name)?.as_u64()).collect();
        let stated = parts[0].is_some() && parts[1].is_some();
        let sum = parts.into_iter().flatten().try_fold(0u64, u64::checked_add)?;
        stated.then(|| Value::from(sum))
    })
}

/// A number of 0 or more.
fn number(value: &Value) -> Option<Value> {
    let number: &Number = value.as_number()?;
    number.as_f64().is_some_and(|number| number >= 0.0).then(|| value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dendrer_object::json::parse_door;

    #[test]
    fn usage_is_read_wherever_a_message_states_it() {
        for (message, metrics) in [
            (r#"{"usage":{"total_tokens":7,"cost":0.5}}"#, [Some("7"), Some("0.5")]),
            (r#"{"usage":{"prompt_tokens":7,"completion_tokens":3}}"#, [Some("10"), None]),
            (
                r#"{"usage":{"input_tokens":7,"output_tokens":3,"cache_read_input_tokens":90}}"#,
                [Some("100"), None],
            ),
            (
                r#"{"usage_metadata":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}"#,
                [Some("3"), None],
            ),
            (
                r#"{"response_metadata":{"token_usage":{"total_tokens":4}},"cost_usd":2}"#,
                [Some("4"), Some("2")],
            ),
            (r#"{"usage":null,"tokens":5}"#, [Some("5"), None]),
            (r#"{"usage":{"prompt_tokens":7}}"#, [None, None]),
            (r#"{"usage":{"total_tokens":-7}}"#, [None, None]),
            (r#"{"usage":{"total_tokens":"7"},"content":"x"}"#, [None, None]),
        ] {
            let message = parse_door(message.as_bytes()).unwrap();
            let found = of_message(message.as_object().unwrap(), None);
            assert_eq!(
                found.map(|value| value.map(|value| value.to_string())),
                metrics.map(|text| text.map(str::to_owned)),
                "{message}"
            );
        }
        let beside = parse_door(br#"{"total_tokens":9}"#).unwrap();
        let message = parse_door(br#"{"content":"x"}"#).unwrap();
        assert_eq!(of_message(message.as_object().unwrap(), Some(&beside))[0], Some(Value::from(9u64)));
    }
}
