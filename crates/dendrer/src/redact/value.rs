//! Secrets in values of JSON: in texts, in names, and beside a name.

use std::sync::Arc;

use dendrer_object::tag::is_tagged;
use dendrer_object::value::{Array, Object};
use dendrer_object::{Value, tag};

use super::judge::{self, Setting};
use super::names::Strength;
use super::part::has_marker;
use super::rules::{RedactionProfile, Rules};
use super::scan::{self, NAMED};
use super::taken::TakenSecrets;
use super::{command, fields, headers, phrase};

/// Values that may be very deep are walked with a bounded stack: nothing deeper than this is recorded.
pub(super) fn redact(rules: &Rules, value: &Value, taken: &mut TakenSecrets) -> Value {
    Walk { rules, taken }.value(value).unwrap_or_else(|| value.clone())
}

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
            Value::Object(members) => self.object(members, None, ""),
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
        Some(self.spliced(text, &found))
    }

    /// A text with markers in place of its secrets.
    fn spliced(&mut self, text: &str, found: &[scan::SecretSpan]) -> Value {
        let rules = self.rules;
        let marker = |one: &scan::SecretSpan| Some(rules.marker(&one.kind, &text[one.start..one.end]));
        Value::from(scan::spliced(text, found, &marker, self.taken))
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
                Some(strength) => self.beside(value, strength, Setting::Data),
                None => self.value(value),
            };
            Some((place, Value::array([name.clone(), one?])))
        });
        let changed = changed.collect();
        replaced(pairs, changed).map(|pairs| Value::record([("$object", pairs)]))
    }

    /// The form that replaces a value that is a secret as a whole.
    fn whole(&mut self, kind: &Arc<str>, secret: &str) -> Value {
        self.taken.take(kind, secret);
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
        let texts: Vec<&str> = items.iter().map(|item| item.as_str().unwrap_or_default()).collect();
        let arguments = command::in_list(&texts, self.rules);
        let is_phrase = texts.len() >= 12 && texts.iter().all(|text| phrase::is_word(text));
        // `["Authorization", "..."]`: a name and its value.
        let pair = match &texts[..] {
            [name, value] if !value.is_empty() && fields::is_plain_name(name) => self.rules.strength(name),
            _ => None,
        };
        let mut changed: Vec<(usize, Value)> = Vec::new();
        // `["--token", "..."]`: an argument after its option.
        let mut option: Option<Strength> = None;
        for (place, (item, text)) in items.iter().zip(&texts).enumerate() {
            let argument = arguments.iter().find(|(at, ..)| *at == place);
            let one = match (option.take(), argument) {
                (_, Some((_, start, end))) => Some(self.argument(text, *start, *end)),
                _ if is_phrase => Some(self.whole(&"recovery-phrase".into(), text)),
                (Some(strength), None) if !text.is_empty() && !text.starts_with("--") => {
                    self.beside(item, strength, Setting::Data)
                }
                (None, None) if place == 1 && pair.is_some() => self.beside(item, pair?, Setting::Bare),
                _ => self.value(item),
            };
            option = command::option_strength(text, self.rules);
            changed.extend(one.map(|one| (place, one)));
        }
        replaced(items, changed)
    }

    /// An argument without the part that is a secret.
    fn argument(&mut self, text: &str, start: usize, end: usize) -> Value {
        if start == 0 && end == text.len() {
            return self.whole(&NAMED.into(), text);
        }
        self.taken.take(&NAMED.into(), &text[start..end]);
        let marker = self.rules.marker(NAMED, &text[start..end]);
        Value::from(format!("{}{marker}{}", &text[..start], &text[end..]))
    }

    fn object(&mut self, members: &Object, outer: Option<Strength>, label: &str) -> Option<Value> {
        let texts = || members.iter().filter_map(|(name, value)| Some((&**name, value.as_str()?)));
        let is_named = texts().any(|(name, _)| fields::is_name(name));
        let said = if is_named { fields::strength(texts(), self.rules) } else { None };
        let is_other = || members.iter().any(|(name, _)| self.rules.strength(name).is_some());
        let said = said.or(outer.filter(|_| !is_other()));
        let is_manifest = texts().any(|(name, text)| fields::is_manifest(name, text));
        let is_gate = texts().any(|(name, text)| fields::is_gate(name, text));
        let is_web_key = texts().any(|(name, _)| fields::is_web_key(name));
        let is_held = fields::holds_secrets(label);
        let mut changed: Vec<(Option<Arc<str>>, Option<Value>)> = Vec::new();
        for (place, (name, value)) in members.iter().enumerate() {
            let strength = match said {
                Some(said) if fields::is_value(name) => Some(said),
                // `"Jwt": {"Key": ...}`
                _ if name.eq_ignore_ascii_case("key") && !label.is_empty() => {
                    self.rules.strength(&format!("{label} key"))
                }
                _ if is_web_key && fields::is_private_part(name) => Some(Strength::Strong),
                _ => self.rules.strength(name).or_else(|| {
                    let is_drawn = is_held && value.as_str().is_some_and(judge::is_drawn);
                    // `"passwords": {"ann": "..."}`: whose password it is.
                    let is_of_one = fields::is_by_owner(label) && !fields::is_name(name);
                    (is_drawn || is_of_one).then_some(Strength::Password)
                }),
            };
            let one = match (strength, value) {
                (_, Value::Object(inner)) if is_manifest && fields::is_data(name) => self.all(inner, false),
                (_, Value::Object(inner)) if is_gate && fields::is_exchange(name) && !is_tagged(inner) => {
                    self.all(inner, true)
                }
                (_, Value::String(text))
                    if name.to_ascii_lowercase().contains("cookie") && text.contains('=') =>
                {
                    self.cookie(text)
                }
                (Some(strength), Value::Object(inner)) if !is_tagged(inner) => {
                    self.object(inner, Some(strength), name)
                }
                (Some(strength), _) => self.beside(value, strength, Setting::Data),
                (None, Value::Object(inner)) if !is_tagged(inner) => self.object(inner, None, name),
                (None, _) => self.value(value),
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
        Some(changed_members(members, changed))
    }

    /// A name without its secrets. The rest of the name is no secret.
    fn name(&mut self, name: &str) -> Option<Arc<str>> {
        if name.len() < 8
            || (self.rules.profile == RedactionProfile::Default && scan::find(name, self.rules).is_empty())
        {
            return None;
        }
        let (made, taken) = scan::name(self.rules, name);
        if taken.is_empty() {
            return None;
        }
        self.taken.add(&taken);
        Some(made.into())
    }

    /// The object without its values: the data of a Secret, or what a gate asked for, in which names and states stay.
    fn all(&mut self, members: &Object, is_gate: bool) -> Option<Value> {
        let mut is_changed = false;
        let made: Vec<(Arc<str>, Value)> = members
            .iter()
            .map(|(name, value)| {
                let is_name = fields::is_name(name) && !fields::is_value(name);
                let text = value.as_str().filter(|text| {
                    let stays = is_gate && (is_name || fields::is_name_in_gate(text));
                    !stays && !has_marker(text) && !judge::is_placeholder(text)
                });
                let one = match text {
                    Some(text) => Some(self.whole(&NAMED.into(), text)),
                    None => match self.rules.strength(name) {
                        Some(strength) => self.beside(value, strength, Setting::Data),
                        None => self.value(value),
                    },
                };
                is_changed |= one.is_some();
                (Arc::clone(name), one.unwrap_or_else(|| value.clone()))
            })
            .collect();
        is_changed.then(|| Value::record(made))
    }

    /// A header with cookies without their values.
    fn cookie(&mut self, text: &Arc<str>) -> Option<Value> {
        let mut found = Vec::new();
        headers::cookies(text, 0, &mut found);
        if found.is_empty() {
            return self.string(text);
        }
        Some(self.spliced(text, &found))
    }

    /// A value beside a name of this strength.
    fn beside(&mut self, value: &Value, strength: Strength, setting: Setting) -> Option<Value> {
        match value {
            Value::String(text) => {
                let lead = headers::scheme(text);
                let rest = &text[lead..];
                let is_secret = judge::is_secret(rest, strength, setting, true)
                    || (lead > 0 && rest.len() >= 6 && judge::is_after_scheme(rest));
                match is_secret && !has_marker(text) {
                    true => {
                        let found = scan::find(text, self.rules);
                        let is_whole = |one: &&scan::SecretSpan| one.start == 0 && one.end == text.len();
                        let own = found.iter().find(is_whole).filter(|own| *own.kind != *scan::KNOWN);
                        let kind = own.map_or_else(|| NAMED.into(), |own| Arc::clone(&own.kind));
                        Some(self.whole(&kind, text))
                    }
                    false => self.value(value),
                }
            }
            Value::Object(members) if is_tagged(members) => match tagged_text(value) {
                Some(text) if judge::is_secret(&text, strength, setting, true) => {
                    Some(self.whole(&NAMED.into(), &text))
                }
                _ => self.value(value),
            },
            // `{"refresh_token": {"sensitive": true, "value": "..."}}`
            Value::Object(members) => self.object(members, Some(strength), ""),
            // A number is a secret where the name leaves no doubt: `pin`, `password`, and no count.
            Value::Number(number) if strength > Strength::Weak && setting == Setting::Data => {
                let digits = number.to_string();
                let is_code = digits.len() >= 4 && digits.bytes().all(|c| c.is_ascii_digit());
                (is_code && !judge::is_placeholder(&digits)).then(|| self.whole(&NAMED.into(), &digits))
            }
            // Several of them, in a list.
            Value::Array(items) => {
                let made = items.iter().enumerate();
                let made =
                    made.filter_map(|(place, item)| Some((place, self.beside(item, strength, setting)?)));
                let made = made.collect();
                replaced(items, made)
            }
            _ => self.value(value),
        }
    }
}

/// An object with these names and values at their places. Two names that become equal are two members all the same.
fn changed_members(members: &Object, changed: Vec<(Option<Arc<str>>, Option<Value>)>) -> Value {
    let mut changed = changed.into_iter();
    let made = members.iter().map(|(name, value)| {
        let (clean, one) = changed.next().unwrap_or_default();
        (clean.unwrap_or_else(|| Arc::clone(name)), one.unwrap_or_else(|| value.clone()))
    });
    let mut made: Vec<(Arc<str>, Value)> = made.collect();
    let mut taken_names = std::collections::BTreeSet::new();
    for (name, _) in &mut made {
        let mut number = 2;
        let base = Arc::clone(name);
        while !taken_names.insert(Arc::clone(name)) {
            *name = format!("{base}#{number}").into();
            number += 1;
        }
    }
    Value::record(made)
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
