//! A value with marks in the place of what is too long or too deep to be shown at once.
//!
//! A mark is `{"$cut":{"kind":..,"bytes":N,"items":N,"head":..}}`: no record can have this name with one `$`
//! ([`dendrer_object::tag`]), so no value of a trace is mistaken for a mark.

use dendrer_object::{Object, Value, tag};

use crate::ask::difference::PlaceChange;

/// How much of a value is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CutLimits {
    /// How many bytes of canonical JSON a text, a list or an object has at most.
    pub max: Option<u64>,
    /// How many levels a value has at most.
    pub depth: Option<u64>,
}

/// How many bytes a mark counts in the list or object that it is in.
const MARK: usize = 64;
/// All heads of a value have at most so many times `max` bytes: later marks have an empty head.
const HEADS: usize = 16;

impl CutLimits {
    /// Returns a value with marks in the place of longer texts, lists and objects, and of deeper ones.
    ///
    /// A list or an object is longer than `max` if its members are, where a member that is longer itself counts 64 bytes. The
    /// heads of all marks have at most 16 times `max` bytes.
    pub fn apply(self, value: &Value) -> Value {
        if self == CutLimits::default() {
            return value.clone();
        }
        let max = self.max.map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(usize::MAX));
        let mut cutting = Cutting { max, depth: self.depth, left: max.saturating_mul(HEADS) };
        cutting.cut(value, 0)
    }
}

impl CutLimits {
    /// Cuts both sides of changes.
    pub(crate) fn apply_to(self, changes: &mut [PlaceChange]) {
        for side in changes.iter_mut().flat_map(|change| [&mut change.before, &mut change.after]) {
            *side = side.as_ref().map(|value| self.apply(value));
        }
    }
}

/// A value as far as it was cut.
struct Cutting {
    max: usize,
    depth: Option<u64>,
    /// How many bytes the heads may still have.
    left: usize,
}

impl Cutting {
    fn cut(&mut self, value: &Value, level: u64) -> Value {
        let is_deep = self.depth.is_some_and(|depth| level >= depth);
        match value {
            Value::String(text) if is_longer(value, self.max) => {
                let head = head_of(text, self.max.min(self.left));
                self.left -= head.len();
                mark("text", value, None, Value::from(head))
            }
            Value::Array(items) if is_deep && !items.is_empty() => {
                mark("list", value, Some(items.len()), Value::array([]))
            }
            Value::Object(members) if is_deep && !members.is_empty() => {
                mark("object", value, Some(members.len()), Value::Object(Object::default()))
            }
            Value::Array(items) => {
                let fit = self.fitting(&mut items.iter().map(|item| (0, item)));
                let head: Vec<Value> = items.iter().take(fit).map(|item| self.cut(item, level + 1)).collect();
                let is_whole = fit == items.len();
                let head = Value::array(head);
                if is_whole { head } else { mark("list", value, Some(items.len()), head) }
            }
            Value::Object(members) if tag::is_tagged(members) => self.cut_tag(value),
            Value::Object(members) => {
                let fit = self.fitting(&mut members.iter().map(|(name, member)| (name.len() + 3, member)));
                let mut head = Object::default();
                for (name, member) in members.iter().take(fit) {
                    head.set(name, self.cut(member, level + 1));
                }
                let head = Value::Object(head);
                if fit == members.len() { head } else { mark("object", value, Some(members.len()), head) }
            }
            other => other.clone(),
        }
    }

    /// Returns a tagged value, which is shown whole or as a mark: a part of it would be another value.
    fn cut_tag(&mut self, value: &Value) -> Value {
        if !is_longer(value, self.max) {
            return value.clone();
        }
        match value.get("$bytes").and_then(Value::as_str) {
            Some(text) => {
                // Four characters are three bytes.
                let head = head_of(text, self.max.min(self.left) / 4 * 4);
                self.left -= head.len();
                mark("bytes", value, None, Value::record([("$bytes", Value::from(head))]))
            }
            None => mark("object", value, None, Value::Object(Object::default())),
        }
    }

    /// Returns how many of the members fit into the limit: all of them, or the first ones of a value that is cut.
    fn fitting(&mut self, members: &mut dyn Iterator<Item = (usize, &Value)>) -> usize {
        let (mut taken, mut all, mut fit) = (2_usize, 0, 0);
        let most = self.max.min(self.left);
        for (name, member) in members {
            let own = if is_longer(member, self.max) { MARK } else { length(member) };
            taken = taken.saturating_add(name).saturating_add(own).saturating_add(1);
            all += 1;
            fit = if taken <= most { all } else { fit };
        }
        if taken <= self.max {
            return all;
        }
        self.left -= most;
        fit
    }
}

fn mark(kind: &str, value: &Value, items: Option<usize>, head: Value) -> Value {
    let mut found = Object::default();
    found.set("kind", Value::from(kind));
    found.set("bytes", Value::from(length(value) as u64));
    found.set("items", items.map_or(Value::Null, |items| Value::from(items as u64)));
    found.set("head", head);
    Value::record([("$cut", Value::Object(found))])
}

/// Returns the first bytes of a text, up to the end of a character.
fn head_of(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn is_longer(value: &Value, max: usize) -> bool {
    length(value) > max
}

/// Returns the length of a value: of a text its bytes, of any other its canonical JSON.
fn length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        other => usize::try_from(other.size()).unwrap_or(usize::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dendrer_object::json::parse_door;

    fn value(text: &str) -> Value {
        parse_door(text.as_bytes()).unwrap()
    }

    fn cut(text: &str, max: Option<u64>, depth: Option<u64>) -> Value {
        CutLimits { max, depth }.apply(&value(text))
    }

    #[test]
    fn what_fits_is_the_value_itself() {
        let text = r#"{"a":[1,{"b":"two"}],"c":{"$bytes":"AAEC"}}"#;
        for limits in [(None, None), (Some(4096), None), (None, Some(9))] {
            assert_eq!(cut(text, limits.0, limits.1), value(text));
        }
    }

    #[test]
    fn a_longer_text_has_its_first_bytes_up_to_a_character() {
        let found = cut(r#"{"a":"x","b":"aaaa\u00e9\u00e9\u00e9\u00e9"}"#, Some(7), None);
        // The object is longer than 7 bytes as well; `a` takes 8 of them with its name.
        assert_eq!(found.get("$cut").unwrap().get("items"), Some(&Value::from(2_u64)));
        let found = cut(r#""aaaa\u00e9\u00e9\u00e9\u00e9""#, Some(7), None);
        assert_eq!(found.to_string(), r#"{"$cut":{"bytes":12,"head":"aaaaé","items":null,"kind":"text"}}"#);
    }

    #[test]
    fn a_long_member_leaves_the_others() {
        let long = "x".repeat(10_000);
        let found = cut(&format!(r#"{{"a":1,"big":"{long}","z":[1,2]}}"#), Some(1_000), None);
        assert_eq!(found.get("a"), Some(&Value::from(1_u64)));
        assert_eq!(found.get("z"), Some(&value("[1,2]")));
        let head = found.get("big").unwrap().get("$cut").unwrap().get("head").unwrap();
        assert_eq!(head.as_str().unwrap().len(), 1_000);
    }

    #[test]
    fn what_is_deeper_is_counted() {
        let found = cut(r#"{"a":{"b":{"c":1}},"d":[],"e":[1]}"#, None, Some(1));
        let expected = r#"{"a":{"$cut":{"bytes":13,"head":{},"items":1,"kind":"object"}},"d":[],"e":{"$cut":{"bytes":3,"head":[],"items":1,"kind":"list"}}}"#;
        assert_eq!(found.to_string(), expected);
    }

    #[test]
    fn all_heads_together_are_bounded() {
        let long = "x".repeat(5_000);
        let inner: Vec<String> = (0..60).map(|_| format!("\"{long}\"")).collect();
        let list = format!("[{}]", inner.join(","));
        let outer: Vec<&str> = (0..60).map(|_| &*list).collect();
        let found = cut(&format!("[{}]", outer.join(",")), Some(4_096), None);
        assert!(found.size() < 20 * 4_096 + 60 * 60 * 100, "{}", found.size());
    }
}
