//! The tokens that one usage states: its total, or the sum of its parts.
//!
//! Rule: a number of tokens that is in no table, or that is larger than the whole that it is a part of, makes the sum doubtful
//! (design, 14.3). A doubtful sum is not counted: a note has its place.

use dendrer_object::Value;
use dendrer_object::number::Number;
use dendrer_object::value::Object;

/// Tokens in all, under each name.
const TOTALS: [&str; 6] =
    ["total_tokens", "totalTokens", "totalTokenCount", "total_token_count", "tokens_used", "tokens"];

/// Names of parts that belong together.
struct Parts {
    /// The tokens that a model is given, and those that it makes: both are there.
    input: &'static str,
    output: &'static str,
    /// Members that are added to each, if they are there.
    more_input: &'static [&'static str],
    more_output: &'static [&'static str],
}

const fn parts(input: &'static str, output: &'static str) -> Parts {
    Parts { input, output, more_input: &[], more_output: &[] }
}

static PARTS: [Parts; 6] = [
    parts("prompt_tokens", "completion_tokens"),
    Parts {
        more_input: &["cache_creation_input_tokens", "cache_read_input_tokens"],
        ..parts("input_tokens", "output_tokens")
    },
    Parts {
        more_input: &["toolUsePromptTokenCount"],
        more_output: &["thoughtsTokenCount"],
        ..parts("promptTokenCount", "candidatesTokenCount")
    },
    Parts {
        more_input: &["tool_use_prompt_token_count"],
        more_output: &["thoughts_token_count"],
        ..parts("prompt_token_count", "candidates_token_count")
    },
    Parts {
        more_input: &["cacheReadInputTokens", "cacheWriteInputTokens", "cacheCreationInputTokens"],
        ..parts("inputTokens", "outputTokens")
    },
    parts("promptTokens", "completionTokens"),
];

/// Members that have a part of the input, as a number or as an object of numbers.
const OF_INPUT: &[&str] = &[
    "cached_tokens",
    "num_cached_tokens",
    "prompt_cache_hit_tokens",
    "prompt_cache_miss_tokens",
    "cached_input_tokens",
    "cachedInputTokens",
    "cachedPromptTokens",
    "cachedContentTokenCount",
    "cached_content_token_count",
    "prompt_tokens_details",
    "prompt_token_details",
    "input_tokens_details",
    "input_token_details",
    "inputTokenDetails",
    "inputTokensDetails",
    "promptTokensDetails",
    "cacheTokensDetails",
    "toolUsePromptTokensDetails",
];

/// Members that have a part of the output.
const OF_OUTPUT: &[&str] = &[
    "reasoning_tokens",
    "reasoningTokens",
    "reasoning_output_tokens",
    "accepted_prediction_tokens",
    "rejected_prediction_tokens",
    "completion_tokens_details",
    "completion_token_details",
    "output_tokens_details",
    "output_token_details",
    "outputTokenDetails",
    "outputTokensDetails",
    "candidatesTokensDetails",
];

/// The sum of what was written to a cache, and the member that has its parts.
const WRITTEN: (&str, &str) = ("cache_creation_input_tokens", "cache_creation");

/// Usages of the requests of one answer. The usage around them may leave some out.
const ITERATIONS: &str = "iterations";

/// Words in the name of a number that counts no tokens that were used.
const NO_COUNT: &[&str] =
    &["max", "limit", "window", "remaining", "budget", "per_", "per-", "persecond", "cost"];

/// How deep the members of a usage are looked through.
const DEPTH: usize = 3;

/// Why the tokens of a usage are not counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Doubt {
    /// The member.
    pub(crate) name: String,
    pub(crate) text: &'static str,
    /// Whether two statements contradict each other, so that neither is believed.
    pub(crate) is_contradiction: bool,
}

fn doubt<T>(name: &str, text: &'static str) -> Result<T, Doubt> {
    Err(Doubt { name: name.to_owned(), text, is_contradiction: false })
}

/// The sum of parts that belong together.
struct Sum {
    of: &'static Parts,
    input: u64,
    output: u64,
    more_input: u64,
    more_output: u64,
}

impl Sum {
    fn of(usage: &Object, of: &'static Parts) -> Option<Sum> {
        let number = |name: &str| usage.get(name)?.as_u64();
        let add =
            |names: &[&str]| names.iter().filter_map(|name| number(name)).try_fold(0u64, u64::checked_add);
        let mut more_input = add(of.more_input)?;
        if of.more_input.contains(&WRITTEN.0) && number(WRITTEN.0).is_none() {
            more_input = more_input.checked_add(written(usage)?)?;
        }
        let sum = Sum {
            of,
            input: number(of.input)?,
            output: number(of.output)?,
            more_input,
            more_output: add(of.more_output)?,
        };
        sum.all().map(|_| sum)
    }

    /// The input and the output without what is added.
    fn least(&self) -> u64 {
        self.input.saturating_add(self.output)
    }

    fn all(&self) -> Option<u64> {
        [self.output, self.more_input, self.more_output].into_iter().try_fold(self.input, u64::checked_add)
    }

    /// The input or the output, of which a member has a part.
    fn whole(&self, member: &str) -> f64 {
        let (one, more) = match OF_INPUT.contains(&member) {
            true => (self.input, self.more_input),
            false => (self.output, self.more_output),
        };
        wide(one.saturating_add(more))
    }

    fn has(&self, name: &str) -> bool {
        name == self.of.input
            || name == self.of.output
            || self.of.more_input.contains(&name)
            || self.of.more_output.contains(&name)
    }
}

/// The parts of what was written to a cache.
fn written(usage: &Object) -> Option<u64> {
    let Some(parts) = usage.get(WRITTEN.1).and_then(Value::as_object) else { return Some(0) };
    parts.iter().filter_map(|(_, value)| value.as_u64()).try_fold(0, u64::checked_add)
}

/// The sums of a usage that are not 0; the first one if each is.
fn sums(usage: &Object) -> Vec<Sum> {
    let mut sums: Vec<Sum> = PARTS.iter().filter_map(|parts| Sum::of(usage, parts)).collect();
    match sums.iter().any(|sum| sum.all() != Some(0)) {
        true => sums.retain(|sum| sum.all() != Some(0)),
        false => sums.truncate(1),
    }
    sums
}

/// The tokens that a model was given.
pub(crate) fn input(usage: &Object) -> Option<u64> {
    PARTS.iter().find_map(|parts| usage.get(parts.input)?.as_u64())
}

/// The tokens of a usage. `is_message`: the members of a message are not looked through for other numbers.
pub(crate) fn of(usage: &Object, is_message: bool) -> Result<Option<Value>, Doubt> {
    let total = TOTALS.iter().find_map(|name| Some((*name, number(usage.get(name)?)?)));
    let sums = sums(usage);
    if let Some((name, total)) = total {
        return against_total(usage, name, &total, &sums).map(|()| Some(total));
    }
    let Some(first) = sums.first() else { return Ok(None) };
    let Some(sum) = first.all() else { return Ok(None) };
    if let Some(other) = sums.iter().find(|other| other.all() != Some(sum)) {
        let text = "two sums of the parts differ";
        return Err(Doubt { name: other.of.input.to_owned(), text, is_contradiction: true });
    }
    let sum = with_iterations(usage, sum)?;
    if !is_message {
        look_at_others(usage, first, &sums)?;
    }
    Ok(Some(Value::from(sum)))
}

/// Holds a total against the parts.
fn against_total(usage: &Object, name: &str, total: &Value, sums: &[Sum]) -> Result<(), Doubt> {
    let Some(total) = total.as_f64() else { return Ok(()) };
    let is_less = |part: u64| total < wide(part);
    for sum in sums {
        if is_less(sum.least()) {
            let text = "the total is less than its parts";
            return Err(Doubt { name: name.to_owned(), text, is_contradiction: true });
        }
        // A total without the parts that are added to others is right if they are parts of those.
        let is_within = sum.more_input <= sum.input && sum.more_output <= sum.output;
        if sum.all().is_none_or(is_less) && !is_within {
            return doubt(name, "the total leaves out a part that is in no other part");
        }
    }
    if iterations(usage).is_some_and(|(all, _)| is_less(all)) {
        return doubt(ITERATIONS, "the requests of this answer have more than its total");
    }
    for member in OF_INPUT.iter().chain(OF_OUTPUT) {
        let Some(part) = usage.get(member).map(|value| largest(value, DEPTH)) else { continue };
        // The total may have the part although no other number has it.
        let is_in = |sum: &Sum| part <= sum.whole(member) + (total - wide(sum.least()));
        if part > total || !(sums.is_empty() || sums.iter().any(is_in)) {
            return doubt(member, "a part is larger than the whole that it is of");
        }
    }
    Ok(())
}

/// A number for a comparison.
#[expect(clippy::cast_precision_loss, reason = "a comparison")]
fn wide(number: u64) -> f64 {
    number as f64
}

/// The sum of all requests of an answer, and that of those that give it its words.
fn iterations(usage: &Object) -> Option<(u64, u64)> {
    let list = usage.get(ITERATIONS)?.as_array()?;
    let (mut all, mut words) = (0u64, 0u64);
    for one in list.iter().filter_map(Value::as_object) {
        let sum = sums(one).first().and_then(Sum::all).unwrap_or_default();
        all = all.saturating_add(sum);
        if one.get("type").and_then(Value::as_str).is_none_or(|kind| kind == "message") {
            words = words.saturating_add(sum);
        }
    }
    Some((all, words))
}

/// The sum of a usage with the requests that it leaves out.
fn with_iterations(usage: &Object, sum: u64) -> Result<u64, Doubt> {
    match iterations(usage) {
        Some((all, words)) if all > sum && words == sum => Ok(all),
        Some((all, _)) if all > sum => {
            doubt(ITERATIONS, "the requests of this answer have more than its sum")
        }
        _ => Ok(sum),
    }
}

/// Looks for numbers of tokens that are no part of a sum.
fn look_at_others(usage: &Object, sum: &Sum, sums: &[Sum]) -> Result<(), Doubt> {
    let larger = "a part is larger than the whole that it is of";
    for (name, value) in usage.iter() {
        let is_known = sums.iter().any(|sum| sum.has(name)) || &**name == ITERATIONS;
        if is_known || TOTALS.contains(&&**name) {
            continue;
        }
        if OF_INPUT.contains(&&**name) || OF_OUTPUT.contains(&&**name) {
            if largest(value, DEPTH) > sum.whole(name) {
                return doubt(name, larger);
            }
        } else if &**name == WRITTEN.1 && sums.iter().any(|sum| sum.has(WRITTEN.0)) {
            let stated = usage.get(WRITTEN.0).and_then(Value::as_u64);
            if stated.is_some_and(|stated| written(usage).is_none_or(|parts| parts > stated)) {
                return doubt(name, larger);
            }
        } else if counts_tokens(name, value, DEPTH) {
            return doubt(name, "whether the sum has this number is not known");
        }
    }
    Ok(())
}

/// A number of 0 or more.
pub(crate) fn number(value: &Value) -> Option<Value> {
    let number: &Number = value.as_number()?;
    number.as_f64().is_some_and(|number| number >= 0.0).then(|| value.clone())
}

/// The largest number in a value.
fn largest(value: &Value, depth: usize) -> f64 {
    match value {
        Value::Number(number) => number.as_f64().unwrap_or_default(),
        Value::Object(members) if depth > 0 => {
            members.iter().map(|(_, value)| largest(value, depth - 1)).fold(0.0, f64::max)
        }
        Value::Array(items) if depth > 0 => {
            items.iter().map(|value| largest(value, depth - 1)).fold(0.0, f64::max)
        }
        _ => 0.0,
    }
}

/// Whether a member, or one in it, has a number of tokens by its name.
fn counts_tokens(name: &str, value: &Value, depth: usize) -> bool {
    match value {
        Value::Number(number) => {
            let name = name.to_ascii_lowercase();
            number.as_f64() != Some(0.0)
                && name.contains("token")
                && !NO_COUNT.iter().any(|word| name.contains(word))
        }
        Value::Object(members) if depth > 0 => {
            members.iter().any(|(name, value)| counts_tokens(name, value, depth - 1))
        }
        Value::Array(items) if depth > 0 => items
            .iter()
            .filter(|item| item.as_number().is_none())
            .any(|item| counts_tokens("", item, depth - 1)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dendrer_object::json::parse_door;

    #[test]
    fn parts_are_added_or_are_in_doubt() {
        for (usage, expected) in [
            (
                r#"{"inputTokens":10,"outputTokens":5,"cacheReadInputTokens":100,"cacheWriteInputTokens":7}"#,
                "122",
            ),
            (r#"{"inputTokens":10,"outputTokens":5,"cacheReadInputTokens":100,"totalTokens":115}"#, "115"),
            (r#"{"promptTokenCount":10,"candidatesTokenCount":5,"thoughtsTokenCount":20}"#, "35"),
            (r#"{"promptTokenCount":10,"candidatesTokenCount":5,"toolUsePromptTokenCount":20}"#, "35"),
            (
                r#"{"prompt_token_count":10,"candidates_token_count":5,"thoughts_token_count":20,"total_token_count":35}"#,
                "35",
            ),
            (
                r#"{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":7}}"#,
                "122",
            ),
            (
                r#"{"input_tokens":10,"output_tokens":5,"cache_creation_input_tokens":7,"cache_creation":{"ephemeral_5m_input_tokens":7}}"#,
                "22",
            ),
            (
                r#"{"input_tokens":10,"output_tokens":5,"iterations":[{"type":"message","input_tokens":10,"output_tokens":5},{"type":"compaction","input_tokens":1000,"output_tokens":50}]}"#,
                "1065",
            ),
            (
                r#"{"input_tokens":10,"output_tokens":5,"iterations":[{"type":"message","input_tokens":10,"output_tokens":6}]}"#,
                "?iterations",
            ),
            (
                r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":8}}"#,
                "15",
            ),
            (
                r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":100}}"#,
                "?prompt_tokens_details",
            ),
            (
                r#"{"input_tokens":10,"output_tokens":5,"input_token_details":{"cache_read":100}}"#,
                "?input_token_details",
            ),
            (
                r#"{"input_tokens":110,"output_tokens":5,"total_tokens":115,"input_token_details":{"cache_read":100}}"#,
                "115",
            ),
            (
                r#"{"input_tokens":10,"output_tokens":5,"total_tokens":15,"cache_read_input_tokens":100}"#,
                "?total_tokens",
            ),
            (
                r#"{"input_tokens":10,"output_tokens":5,"total_tokens":15,"output_tokens_details":{"r":6}}"#,
                "?output_tokens_details",
            ),
            (r#"{"inputTokens":10,"outputTokens":5,"reasoningTokens":20}"#, "?reasoningTokens"),
            (
                r#"{"input_tokens":10,"output_tokens":5,"input_tokens_cache_read":100}"#,
                "?input_tokens_cache_read",
            ),
            (r#"{"input_tokens":10,"output_tokens":5,"input_tokens_cache_read":0,"max_tokens":99}"#, "15"),
            (r#"{"input_tokens":10,"output_tokens":5,"server":{"new_tokens":1}}"#, "?server"),
            (r#"{"prompt_tokens":10,"completion_tokens":5,"input_tokens":0,"output_tokens":0}"#, "15"),
            (
                r#"{"prompt_tokens":10,"completion_tokens":5,"input_tokens":9,"output_tokens":5}"#,
                "?input_tokens",
            ),
            (r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":0}"#, "?total_tokens"),
        ] {
            let parsed = parse_door(usage.as_bytes()).unwrap();
            let found = match of(parsed.as_object().unwrap(), false) {
                Ok(tokens) => tokens.unwrap_or(Value::Null).to_string(),
                Err(doubt) => format!("?{}", doubt.name),
            };
            assert_eq!(found, expected, "{usage}");
        }
    }
}
