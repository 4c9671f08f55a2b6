//! The rules of `carl-core` 0.2.0, to the letter (witness-log paper 2.4): values beside six words, and five shapes of which the first
//! six characters are kept. Names are not looked at.

use std::sync::{Arc, LazyLock};

use dendrer_object::Value;
use regex::Regex;

use super::taken::TakenSecrets;

/// The shapes, in the order in which they are tried.
pub(super) const PATTERNS: [&str; 5] = [
    r"\bey[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_-]+)?",
    "sk-ant-[A-Za-z0-9_-]{20,}",
    "sk-[A-Za-z0-9_-]{20,}",
    "hf_[A-Za-z0-9]{20,}",
    r"\b0x[0-9a-fA-F]{40}\b",
];

const KINDS: [&str; 5] = ["jwt", "anthropic-key", "openai-key", "huggingface-token", "evm-address"];

/// Parts of a name, in lower case.
const NAMES: [&str; 6] = ["key", "token", "secret", "password", "authorization", "bearer"];

/// A shorter text is not looked at, counted in characters.
const LENGTH_MIN: usize = 20;

static COMPILED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    PATTERNS.iter().map(|pattern| Regex::new(pattern).expect("a pattern of this file")).collect()
});

/// The text without its secrets; `None` if it has none.
pub(super) fn text(text: &str, taken: &mut TakenSecrets) -> Option<String> {
    if text.chars().take(LENGTH_MIN).count() < LENGTH_MIN {
        return None;
    }
    let mut made: Option<String> = None;
    for (pattern, kind) in COMPILED.iter().zip(KINDS) {
        let before = made.as_deref().unwrap_or(text);
        let count = pattern.find_iter(before).count();
        if count > 0 {
            let after = pattern
                .replace_all(before, |found: &regex::Captures<'_>| format!("{}<redacted>", &found[0][..6]));
            made = Some(after.into_owned());
            (0..count).for_each(|_| taken.count(&Arc::from(kind)));
        }
    }
    made
}

/// A value without its secrets.
pub(super) fn value(value: &Value, taken: &mut TakenSecrets) -> Value {
    match value {
        Value::String(string) => text(string, taken).map_or_else(|| value.clone(), Value::from),
        Value::Array(items) => Value::array(items.iter().map(|item| self::value(item, taken))),
        Value::Object(members) => Value::record(members.iter().map(|(name, member)| {
            let lower = name.to_lowercase();
            let made = match NAMES.iter().any(|part| lower.contains(part)) {
                true => {
                    taken.count(&Arc::from("named"));
                    Value::from("<redacted>")
                }
                false => self::value(member, taken),
            };
            (Arc::<str>::from(&**name), made)
        })),
        other => other.clone(),
    }
}
