//! Secrets are taken out of what is recorded, before it is judged and sealed (witness-log paper 2.4; `docs/redaction.md`).
//!
//! A [`Redactor`] has the rules of a [`RedactionProfile`], those that a pack adds, and values that are known to be secret. It
//! finds secrets by shape, beside a name, in addresses, by value, and in what a part of a text decodes to. Text that it takes
//! out becomes `<redacted:KIND>`; a value that is a secret as a whole becomes `{"$redacted":{"kind":KIND,"len":"short"}}`. No
//! character of the secret is kept.
//!
//! Pure: no clock, chance, environment or I/O; equal rules take the same out of equal values. Taking twice takes nothing more.

mod carl;
mod command;
mod encoded;
mod fields;
mod frame;
mod headers;
mod json;
mod judge;
mod markup;
mod named;
mod names;
mod part;
mod phrase;
mod prefilter;
mod prose;
mod quoted;
mod rules;
mod scan;
mod snapshot;
mod stream;
mod table;
mod taken;
mod value;
mod vendor;
mod views;
mod wrapped;
mod yaml;

use std::ops::Range;
use std::sync::Arc;

use dendrer_object::{Value, marker};

pub use names::is_secret_name;
pub use rules::{NotKnown, PackRules, RedactionProfile, RuleError, RulesVersion};
pub use stream::RedactedStream;
pub use taken::TakenSecrets;
pub use vendor::SecretSpan;

pub(crate) use judge::is_drawn_part;
use rules::Rules;
pub(crate) use scan::{KNOWN, NAMED, has_hint};
pub(crate) use vendor::{has_length, is_cut};

/// How many characters a secret has that is looked for, at least and at most.
const LEARNED: Range<usize> = 8..4_097;

/// How many characters a secret of several words has at most.
const SPOKEN_MAX: usize = 100;

/// Whether a value is looked for in other places: long enough, of letters and digits, and no path or address.
pub(crate) fn is_learnable(value: &str) -> bool {
    LEARNED.contains(&value.chars().count())
        && value.bytes().any(|c| c.is_ascii_digit())
        && value.chars().any(char::is_alphabetic)
        && !value.contains(['\n', '\r', '\t'])
        && (!value.contains(' ') || value.chars().count() <= SPOKEN_MAX)
        && !value.contains("://")
        && !value.starts_with(['/', '.', '~'])
        && !marker::has_marker(value)
}

/// Takes secrets out. Clones share the rules.
#[derive(Debug, Clone)]
pub struct Redactor(Arc<Rules>);

impl Redactor {
    /// Makes one of a profile, with the rules of a pack and values that are known to be secret. With a key, markers have a keyed tag,
    /// so that equal secrets stay visibly equal.
    ///
    /// # Errors
    ///
    /// A pattern of the pack that cannot be compiled.
    pub fn new(
        profile: RedactionProfile,
        pack: &PackRules,
        known: &[String],
        tag_key: Option<[u8; 32]>,
    ) -> Result<Redactor, RuleError> {
        Ok(Redactor(Arc::new(Rules::new(profile, pack, known, tag_key)?)))
    }

    /// Name, version and digest of the rules.
    pub fn rules(&self) -> &RulesVersion {
        &self.0.version
    }

    /// The value that records have of these rules where nothing was taken: made once.
    pub(crate) fn of_nothing(&self, make: impl FnOnce() -> Value) -> Value {
        self.0.of_nothing.get_or_init(make).clone()
    }

    /// Kinds that the pack switches off.
    pub fn off(&self) -> &[Arc<str>] {
        &self.0.off
    }

    /// Finds the secrets of a text, in order, none overlapping another. Lists nothing under `carl/1` and `none`.
    pub fn find(&self, text: &str) -> Vec<SecretSpan> {
        match self.0.profile {
            RedactionProfile::Default => scan::find(text, &self.0),
            RedactionProfile::Carl1 | RedactionProfile::None => Vec::new(),
        }
    }

    /// A text without its secrets.
    pub fn text(&self, text: &str) -> (String, TakenSecrets) {
        scan::text(&self.0, text)
    }

    /// The name of a thing without its secrets: of an agent, a thread, a tool, a step, an id. Two names stay two; values that
    /// are known to be secret are taken elsewhere alone.
    pub fn name(&self, text: &str) -> (String, TakenSecrets) {
        scan::name(&self.0, text)
    }

    /// The id of the key that makes the tags of markers; `None` without tags. Tags under two ids are not compared.
    pub fn tag_id(&self) -> Option<&str> {
        self.0.tags.as_ref().map(|key| &*key.id)
    }

    /// The tag of a whole text, whatever its length; `None` without tags.
    pub fn tag_of(&self, text: &str) -> Option<String> {
        self.0.tag_of_name(text)
    }

    /// A value without its secrets: those in texts and names, and values beside the name of one.
    pub fn value(&self, value: &Value) -> (Value, TakenSecrets) {
        let mut taken = TakenSecrets::default();
        let made = match self.0.profile {
            RedactionProfile::None => value.clone(),
            RedactionProfile::Carl1 => carl::value(value, &mut taken),
            RedactionProfile::Default => value::redact(&self.0, value, &mut taken),
        };
        (made, taken)
    }

    /// A secret as it was written, and in other writings: without its scheme or name, without escapes, decoded.
    pub(crate) fn spellings(&self, secret: &str) -> Vec<String> {
        let mut found = vec![secret.to_owned()];
        let behind = |sign: &[char]| secret.rfind(sign).map(|at| (&secret[..at], &secret[at + 1..]));
        if let Some((name, rest)) = behind(&['=', ':'])
            && self.0.strength(name.trim().rsplit([' ', '/', ',']).next().unwrap_or_default()).is_some()
        {
            found.push(rest.trim().to_owned());
        }
        let lead = headers::scheme(secret);
        if lead > 0 {
            found.push(secret[lead..].to_owned());
        }
        if secret.contains('\\')
            && let Ok(text) = dendrer_object::json::parse_door(format!("\"{secret}\"").as_bytes())
        {
            found.extend(text.as_str().map(str::to_owned));
        }
        found.extend(encoded::text_of(secret));
        found
    }

    /// As this one, with more values that are known to be secret.
    pub fn knowing(&self, values: &[String]) -> Redactor {
        Redactor(Arc::new(self.0.knowing(values)))
    }

    /// The marker of a secret of a kind.
    pub fn marker(&self, kind: &str, secret: &str) -> String {
        self.0.marker(kind, secret)
    }

    /// The metrics of a step without their secrets. Numbers stay: the kernel counts with them, and no name makes a secret of one.
    pub fn metrics(&self, value: &Value) -> (Value, TakenSecrets) {
        let Some(members) = value.as_object() else { return self.value(value) };
        let mut taken = TakenSecrets::default();
        let made = members.iter().map(|(name, member)| {
            let is_number = matches!(member, Value::Number(_) | Value::Null);
            if is_number {
                return (Arc::<str>::from(&**name), member.clone());
            }
            let (own, more) = self.value(&Value::record([(name.to_string(), member.clone())]));
            taken.add(&more);
            let own = own.as_object().and_then(|own| own.iter().next());
            own.map_or_else(
                || (Arc::<str>::from(&**name), Value::Null),
                |(name, value)| (Arc::<str>::from(&**name), value.clone()),
            )
        });
        let made = Value::record(made.collect::<Vec<_>>());
        (made, taken)
    }

    /// Takes secrets out of a text that comes in parts.
    pub fn stream(&self) -> RedactedStream {
        RedactedStream::new(Arc::clone(&self.0))
    }
}

#[cfg(test)]
mod tests;
