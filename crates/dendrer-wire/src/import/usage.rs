//! The usage that a message of a model states: tokens, and cost in US dollars.

use dendrer::kernel::unknown::USAGE;
use dendrer_object::Value;
use dendrer_object::number::Number;
use dendrer_object::value::Object;

use super::items::Item;
use super::note::ImportNote;
use super::once::{Again, Stated};
use super::tokens::{self, Doubt, number};
use super::transition::Step;

/// Places in which a message states its usage; the first counts.
const PLACES: [&[&str]; 9] = [
    &["usage"],
    &["usage_metadata"],
    &["token_usage"],
    &["response_metadata", "token_usage"],
    &["response_metadata", "usage"],
    &["metrics"],
    // The usage of all steps, and that of the last one.
    &["metadata", "totalUsage"],
    &["metadata", "usage"],
    &["usageMetadata"],
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
    /// Statements of the items of an id.
    stated: Stated,
}

impl Usage {
    /// Adds what a message states to the metrics of its step. A further statement of an item's id is in place of the one before.
    pub(crate) fn of_message(&mut self, step: &mut Step<'_>, item: &Item<'_>) {
        let Some(message) = item.value.as_object() else { return self.of_step(step) };
        if !is_of_model(step) || item.is_counted_elsewhere {
            return;
        }
        let mut stated = of_message(message, item.usage.as_ref());
        if stated[0].is_none()
            && let Some(Err(doubt)) =
                item.usage.as_ref().and_then(Value::as_object).map(|usage| tokens::of(usage, false))
        {
            step.notes.push(ImportNote::not_read(item.at, &[USAGE], doubt.text));
        }
        if let Some(id) = item.id.filter(|_| stated.iter().any(Option::is_some)) {
            let changed = input_of(message).is_some_and(|input| self.stated.changes_input(id, input));
            match self.stated.add(id, &stated).filter(|_| !changed) {
                Some(more) if item.again == Again::Piece => {
                    stated = more.map(|more| more.and_then(Number::from_f64).map(Value::Number));
                }
                Some(_) => {}
                None => {
                    let text = "two statements of one answer differ in what they count";
                    step.notes.push(ImportNote::not_read(item.at, &[USAGE], text));
                    stated = [None, None];
                }
            }
        }
        let is_elsewhere = item.again == Again::Piece || item.is_counted_elsewhere;
        if is_elsewhere && stated == [None, None] {
            return;
        }
        self.add(step, |_| stated);
    }

    /// Adds what a step states itself to its metrics.
    pub(crate) fn of_step(&mut self, step: &mut Step<'_>) {
        self.add(step, |step| METRICS.map(|name| step.metric(name)));
    }

    fn add(&mut self, step: &mut Step<'_>, stated: impl FnOnce(&Step<'_>) -> [Option<Value>; 2]) {
        if !is_of_model(step) {
            return;
        }
        for ((name, lacks), value) in METRICS.into_iter().zip(&mut self.lacks).zip(stated(step)) {
            if value.is_some() || !std::mem::replace(lacks, true) {
                step.metrics.push((name, value.unwrap_or(Value::Null)));
            }
        }
    }
}

/// The numbers of a usage: tokens, and cost.
pub(crate) fn numbers(usage: &Object) -> [Option<f64>; 2] {
    let mut message = Object::default();
    message.set("usage", Value::Object(usage.clone()));
    of_message(&message, None).map(|value| value?.as_f64())
}

fn is_of_model(step: &Step<'_>) -> bool {
    matches!(step.type_name(), "plan.update" | "action.request")
}

/// Whether a path ends in a place in which a message states its usage.
pub(crate) fn is_place(path: &str) -> bool {
    PLACES.iter().any(|place| {
        let mut rest = path;
        place.iter().rev().all(|name| {
            let Some(before) = rest.strip_suffix(name).and_then(|rest| rest.strip_suffix('/')) else {
                return false;
            };
            rest = before;
            true
        })
    })
}

/// The objects of a message that may state a usage.
fn usages(message: &Object) -> impl Iterator<Item = (String, &Object)> {
    let within = PLACES.iter().filter_map(|place| {
        let mut value = message.get(place[0])?;
        for name in &place[1..] {
            value = value.get(name)?;
        }
        Some((place.join("/"), value.as_object()?))
    });
    within.chain([(String::new(), message)])
}

/// Returns why the tokens of a message are not counted, with the place in it.
pub(crate) fn doubt_of(message: &Object) -> Option<Doubt> {
    if !message
        .iter()
        .any(|(name, _)| PLACES.iter().any(|place| place[0] == &**name) || name.contains("oken"))
    {
        return None;
    }
    let mut counted: Option<(String, Option<f64>)> = None;
    for (place, usage) in usages(message) {
        let found = tokens::of(usage, place.is_empty());
        match found {
            Err(doubt) if counted.is_none() || doubt.is_contradiction => {
                let name = if place.is_empty() { doubt.name } else { format!("{place}/{}", doubt.name) };
                return Some(Doubt { name, ..doubt });
            }
            Ok(Some(tokens)) => {
                let tokens = tokens.as_f64();
                // The last step has no more than all steps.
                if place == "metadata/usage"
                    && counted.as_ref().is_some_and(|(of, all)| of == "metadata/totalUsage" && *all < tokens)
                {
                    let text = "the usage of the last step is more than that of all steps";
                    return Some(Doubt { name: place, text, is_contradiction: true });
                }
                counted.get_or_insert((place, tokens));
            }
            _ => {}
        }
    }
    None
}

/// The tokens that a model was given.
fn input_of(message: &Object) -> Option<u64> {
    usages(message).find_map(|(_, usage)| tokens::input(usage))
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
    // A sum in doubt is left out; a note has the place.
    if doubt_of(message).is_some() {
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
        let is_message = std::ptr::eq(usage, message);
        *tokens = tokens.take().or_else(|| tokens::of(usage, is_message).ok().flatten());
        *cost = cost.take().or_else(|| COST.iter().find_map(|name| number(usage.get(name)?)));
    }
    found
}

/// Whether an object may have one of the members.
fn may_state(usage: &Object) -> bool {
    usage.iter().any(|(name, _)| name.contains("oken") || name.contains("cost"))
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
