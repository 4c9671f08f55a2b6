//! Secrets in values of JSON: in texts, in names, and beside a name.

use std::sync::Arc;

use dendrer_object::value::{Array, Object};
use dendrer_object::{Value, tag};

use super::names::Strength;
use super::rules::{RedactionProfile, Rules};
use super::scan;
use super::scan::is_secret_beside;
use super::taken::TakenSecrets;

/// Values that may be very deep are walked with a bounded stack: nothing deeper than this is recorded.
pub(super) fn redact(rules: &Rules, value: &Value, taken: &mut TakenSecrets) -> Value {
    Walk { rules, taken }.value(value).unwrap_or_else(|| value.clone())
}

/// Members that name the value beside them, the first that is there.
const NAMING: [&str; 5] = ["name", "key", "header", "variable", "field"];

struct Walk<'w> {
    rules: &'w Rules,
    taken: &'w mut TakenSecrets,
}

/// Each method returns the value without its secrets, and `None` if it has none.
impl Walk<'_> {
    fn value(&mut self, value: &Value) -> Option<Value> {
        match value {
            Value::String(text) => self.string(text),
            Value::Array(items) => self.list(items),
            Value::Object(members) if is_tagged(members) => match members.get("$object") {
                Some(pairs) => self.pairs(pairs.as_array()?),
                None => self.encoded(value),
            },
            Value::Object(members) => self.object(members),
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }

    /// A text without its secrets; `None` if it has none.
    fn string(&mut self, text: &Arc<str>) -> Option<Value> {
        let found = scan::find(text, self.rules);
        if let [one] = &found[..]
            && one.start == 0
            && one.end == text.len()
        {
            return Some(self.whole(&one.kind, text));
        }
        if found.is_empty() {
            return None;
        }
        let (made, taken) = scan::text(self.rules, text);
        self.taken.add(&taken);
        Some(Value::from(made))
    }

    /// Bytes, or a text with a lone surrogate. A value that has a secret in it is replaced as a whole.
    fn encoded(&mut self, value: &Value) -> Option<Value> {
        let text = tagged_text(value)?;
        let found = scan::find(&text, self.rules);
        found.first().map(|one| self.whole(&one.kind, &text))
    }

    /// An object with names that are no Unicode, as pairs.
    fn pairs(&mut self, pairs: &Array) -> Option<Value> {
        let changed = pairs.iter().enumerate().filter_map(|(place, pair)| {
            let (name, value) = (pair.as_array()?.get(0)?, pair.as_array()?.get(1)?);
            let one = match name.as_str().and_then(|name| self.rules.strength(name)) {
                Some(strength) => self.beside(value, strength),
                None => self.value(value),
            };
            Some((place, Value::array([name.clone(), one?])))
        });
        let changed = changed.collect();
        replaced(pairs, changed).map(|pairs| Value::record([("$object", pairs)]))
    }

    /// The form that replaces a value that is a secret as a whole.
    fn whole(&mut self, kind: &Arc<str>, secret: &str) -> Value {
        self.taken.count(kind);
        let len = match secret.len() {
            0..=16 => "short",
            17..=64 => "medium",
            _ => "long",
        };
        let tag = self.rules.tag(secret).map(|tag| ("tag", Value::from(tag)));
        let members = [("kind", Value::from(&**kind)), ("len", Value::from(len))].into_iter().chain(tag);
        Value::record([("$redacted", Value::record(members))])
    }

    fn list(&mut self, items: &Array) -> Option<Value> {
        let mut changed: Vec<(usize, Value)> = Vec::new();
        // `["--token", "..."]`: an argument behind its flag.
        let mut flag: Option<Strength> = None;
        for (place, item) in items.iter().enumerate() {
            let one = match (flag.take(), item) {
                (Some(strength), Value::String(_)) => self.beside(item, strength),
                _ => self.value(item),
            };
            if let Some(text) =
                item.as_str().filter(|text| text.starts_with('-') && !text.contains(['=', ' ']))
            {
                flag = self.rules.strength(text.trim_start_matches('-'));
            }
            changed.extend(one.map(|one| (place, one)));
        }
        replaced(items, changed)
    }

    fn object(&mut self, members: &Object) -> Option<Value> {
        // `{"name": "DB_PASSWORD", "value": "..."}`: a name and a value side by side.
        let said = members.iter().filter_map(|(name, value)| {
            Some((NAMING.iter().position(|one| *one == &**name)?, value.as_str()?))
        });
        let said = said.min_by_key(|(place, _)| *place).and_then(|(_, said)| self.rules.strength(said));
        let mut changed: Vec<(Option<Arc<str>>, Option<Value>)> = Vec::new();
        for (place, (name, value)) in members.iter().enumerate() {
            let strength = match (said, &**name) {
                (Some(strength), "value" | "val" | "secretValue") => Some(strength),
                _ => self.rules.strength(name),
            };
            let one = match strength {
                Some(strength) => self.beside(value, strength),
                None => self.value(value),
            };
            let clean = self.name(name);
            if one.is_some() || clean.is_some() {
                changed.resize_with(place, Default::default);
                changed.push((clean, one));
            }
        }
        if changed.is_empty() {
            return None;
        }
        let mut changed = changed.into_iter();
        let made = members.iter().map(|(name, value)| {
            let (clean, one) = changed.next().unwrap_or_default();
            (clean.unwrap_or_else(|| Arc::clone(name)), one.unwrap_or_else(|| value.clone()))
        });
        let mut made: Vec<(Arc<str>, Value)> = made.collect();
        // Two names that become equal are two members all the same.
        let mut taken_names = std::collections::BTreeSet::new();
        for (name, _) in &mut made {
            let mut number = 2;
            let base = Arc::clone(name);
            while !taken_names.insert(Arc::clone(name)) {
                *name = format!("{base}#{number}").into();
                number += 1;
            }
        }
        Some(Value::record(made))
    }

    /// A name without its secrets. The rest of the name is no secret.
    fn name(&mut self, name: &str) -> Option<Arc<str>> {
        if name.len() < 8
            || (self.rules.profile == RedactionProfile::Default && scan::find(name, self.rules).is_empty())
        {
            return None;
        }
        let (made, taken) = scan::text(self.rules, name);
        if taken.is_empty() {
            return None;
        }
        self.taken.add(&taken);
        Some(made.into())
    }

    /// A value beside a name of this strength.
    fn beside(&mut self, value: &Value, strength: Strength) -> Option<Value> {
        match value {
            Value::String(text) => {
                // A scheme, or a sentence with a secret in it, says more than the name.
                let bare = ["Bearer ", "bearer ", "Basic ", "basic ", "Token ", "token "]
                    .iter()
                    .find_map(|scheme| text.strip_prefix(scheme));
                let is_secret = is_secret_beside(bare.unwrap_or(text), strength, true, true)
                    && !text.contains("<redacted");
                match is_secret {
                    true => {
                        let found = scan::find(text, self.rules);
                        let own = found.iter().find(|one| one.start == 0 && one.end == text.len());
                        let kind = own.map_or_else(|| "named".into(), |own| Arc::clone(&own.kind));
                        Some(self.whole(&kind, text))
                    }
                    false => self.value(value),
                }
            }
            Value::Object(members) if is_tagged(members) => match tagged_text(value) {
                Some(text) if is_secret_beside(&text, strength, true, true) => {
                    Some(self.whole(&"named".into(), &text))
                }
                _ => self.value(value),
            },
            // A number is a secret where the name leaves no doubt: `pin`, `password`, and no count.
            Value::Number(number) if strength == Strength::Strong => {
                let digits = number.to_string();
                (digits.len() >= 4).then(|| self.whole(&"named".into(), &digits))
            }
            // Several of them, in a list.
            Value::Array(items) => {
                let made = items.iter().enumerate();
                let made = made.filter_map(|(place, item)| Some((place, self.beside(item, strength)?)));
                let made = made.collect();
                replaced(items, made)
            }
            _ => self.value(value),
        }
    }
}

/// A list with these items at these places; `None` without any.
fn replaced(items: &Array, changed: Vec<(usize, Value)>) -> Option<Value> {
    if changed.is_empty() {
        return None;
    }
    let mut changed = changed.into_iter().peekable();
    let made = items.iter().enumerate().map(|(place, item)| {
        let one = changed.next_if(|(at, _)| *at == place);
        one.map_or_else(|| item.clone(), |(_, one)| one)
    });
    Some(Value::array(made))
}

/// The readable text of bytes, or of a text with a lone surrogate.
fn tagged_text(value: &Value) -> Option<String> {
    match tag::as_bytes(value) {
        Some(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        None => tag::as_wtf8(value).map(|units| String::from_utf16_lossy(&units)),
    }
}

/// Whether an object is one of the tagged forms, a marker among them.
fn is_tagged(members: &Object) -> bool {
    members.len() == 1 && members.iter().next().is_some_and(|(name, _)| tag::is_tag_name(name))
}
