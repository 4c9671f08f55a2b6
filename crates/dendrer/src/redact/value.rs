//! Secrets in values of JSON: in texts, in names, and beside a name.

use std::sync::Arc;

use dendrer_object::value::Object;
use dendrer_object::{Value, tag};

use super::names::Strength;
use super::rules::Rules;
use super::scan;
use super::scan::is_secret_beside;
use super::taken::TakenSecrets;

/// Values that may be very deep are walked with a bounded stack: nothing deeper than this is recorded.
pub(super) fn redact(rules: &Rules, value: &Value, taken: &mut TakenSecrets) -> Value {
    Walk { rules, taken }.value(value)
}

struct Walk<'w> {
    rules: &'w Rules,
    taken: &'w mut TakenSecrets,
}

impl Walk<'_> {
    fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.string(text).unwrap_or_else(|| value.clone()),
            Value::Array(items) => self.list(value, items.iter()),
            Value::Object(members) if is_tagged(members) => value.clone(),
            Value::Object(members) => self.object(value, members),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
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

    fn list<'v>(&mut self, whole: &Value, items: impl Iterator<Item = &'v Value>) -> Value {
        let mut made = Vec::new();
        let mut changed = false;
        // `["--token", "..."]`: an argument behind its flag.
        let mut flag: Option<Strength> = None;
        for item in items {
            let one = match (flag.take(), item) {
                (Some(strength), Value::String(_)) => self.beside(item, strength),
                _ => self.value(item),
            };
            if let Some(text) =
                item.as_str().filter(|text| text.starts_with('-') && !text.contains(['=', ' ']))
            {
                flag = self.rules.strength(text.trim_start_matches('-'));
            }
            changed |= one != *item;
            made.push(one);
        }
        if changed { Value::array(made) } else { whole.clone() }
    }

    fn object(&mut self, whole: &Value, members: &Object) -> Value {
        // `{"name": "DB_PASSWORD", "value": "..."}`: a name and a value side by side.
        let said = ["name", "key", "header", "variable", "field"]
            .iter()
            .find_map(|name| members.get(name)?.as_str());
        let said = said.and_then(|name| self.rules.strength(name));
        let mut made: Vec<(Arc<str>, Value)> = Vec::with_capacity(members.len());
        let mut changed = false;
        for (name, value) in members.iter() {
            let strength = match (said, &**name) {
                (Some(strength), "value" | "val" | "secretValue") => Some(strength),
                _ => self.rules.strength(name),
            };
            let one = match strength {
                Some(strength) => self.beside(value, strength),
                None => self.value(value),
            };
            let clean = self.name(name);
            changed |= one != *value || clean.is_some();
            made.push((clean.unwrap_or_else(|| Arc::<str>::from(&**name)), one));
        }
        if !changed {
            return whole.clone();
        }
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
        Value::record(made)
    }

    /// A name without its secrets; `None` if it has none. What it says beside itself is no secret.
    fn name(&mut self, name: &str) -> Option<Arc<str>> {
        if name.len() < 8 {
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
    fn beside(&mut self, value: &Value, strength: Strength) -> Value {
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
                        self.whole(&own.map_or_else(|| "named".into(), |own| Arc::clone(&own.kind)), text)
                    }
                    false => self.value(value),
                }
            }
            // A number is a secret where the name leaves no doubt: `pin`, `password`, and no count.
            Value::Number(number) if strength == Strength::Strong => {
                let digits = number.to_string();
                if digits.len() >= 4 { self.whole(&"named".into(), &digits) } else { value.clone() }
            }
            // Several of them, in a list.
            Value::Array(items) => {
                let made: Vec<Value> = items.iter().map(|item| self.beside(item, strength)).collect();
                let made = Value::array(made);
                if made == *value { value.clone() } else { made }
            }
            _ => self.value(value),
        }
    }
}

/// Whether an object is one of the tagged forms, a marker among them.
fn is_tagged(members: &Object) -> bool {
    members.len() == 1 && members.iter().next().is_some_and(|(name, _)| tag::is_tag_name(name))
}
