//! The redaction of `carl-core` 0.2.0, to the letter (witness-log paper 2.4): values beside six words, and five shapes of which the
//! first six characters are kept. Names are not looked at.

use std::sync::LazyLock;

use regex::Regex;

use crate::row::{RowText, RowValue};

/// The shapes, in the order in which they are tried, each with its kind.
pub const PATTERNS: [(&str, &str); 5] = [
    ("jwt", r"\bey[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_-]+)?"),
    ("anthropic-key", "sk-ant-[A-Za-z0-9_-]{20,}"),
    ("openai-key", "sk-[A-Za-z0-9_-]{20,}"),
    ("huggingface-token", "hf_[A-Za-z0-9]{20,}"),
    ("evm-address", r"\b0x[0-9a-fA-F]{40}\b"),
];

/// The text that replaces a value that is taken.
pub const REDACTED: &str = "<redacted>";

/// Parts of a name, in lower case.
const NAMES: [&str; 6] = ["key", "token", "secret", "password", "authorization", "bearer"];

/// A shorter text is not looked at, counted in characters.
const LENGTH_MIN: usize = 20;

static COMPILED: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    PATTERNS.iter().map(|(_, pattern)| Regex::new(pattern).expect("a pattern of this file")).collect()
});

/// Whether the value beside a name is taken.
pub fn is_secret_name(name: &str) -> bool {
    let lower = name.to_lowercase();
    NAMES.iter().any(|part| lower.contains(part))
}

/// The text without its secrets; `None` if it has none. `taken` is told the kind of each.
pub fn scrub_text(text: &str, taken: &mut dyn FnMut(&'static str)) -> Option<String> {
    if text.chars().take(LENGTH_MIN).count() < LENGTH_MIN {
        return None;
    }
    let mut made: Option<String> = None;
    for (pattern, (kind, _)) in COMPILED.iter().zip(PATTERNS) {
        let before = made.as_deref().unwrap_or(text);
        let count = pattern.find_iter(before).count();
        if count > 0 {
            let after = pattern
                .replace_all(before, |found: &regex::Captures<'_>| format!("{}{REDACTED}", &found[0][..6]));
            made = Some(after.into_owned());
            (0..count).for_each(|_| taken(kind));
        }
    }
    made
}

/// A value of a row without its secrets. A text with a lone surrogate stays as it is: it is no text of a credential.
pub fn scrub(value: &RowValue) -> RowValue {
    match value {
        RowValue::Text(text) => {
            let made = text.as_str().and_then(|text| scrub_text(text, &mut |_| ()));
            made.map_or_else(|| value.clone(), |made| RowValue::Text(RowText::from(&*made)))
        }
        RowValue::List(items) => RowValue::List(items.iter().map(scrub).collect()),
        RowValue::Object(members) => RowValue::Object(
            members
                .iter()
                .map(|(name, member)| {
                    let is_secret = name.as_str().is_some_and(is_secret_name);
                    let made = if is_secret { RowValue::from(REDACTED) } else { scrub(member) };
                    (name.clone(), made)
                })
                .collect(),
        ),
        other => other.clone(),
    }
}
