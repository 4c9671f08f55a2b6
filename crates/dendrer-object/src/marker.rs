//! Compares values of which secrets were taken out (design, 14.4).
//!
//! A redacted value is not a value: two of them are equal or different by their tags. A tag has 16 hex digits: 4 of the key it
//! was made with, and 12 of the secret under that key. Tags of two keys, and markers without one, leave the comparison open,
//! unless something else of the two values differs.

use crate::number::Number;
use crate::pointer::Pointer;
use crate::tag::is_tagged;
use crate::value::{Array, Difference, Object, Value, differences};

/// How many of the digits of a tag name its key.
pub const KEY_DIGITS: usize = 4;

/// How many digits a tag has.
pub const TAG_DIGITS: usize = 16;

const BEGIN: &str = "<redacted";

/// The longest kind of a marker.
const KIND_MAX: usize = 64;

/// A marker in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextMarker<'t> {
    /// Its first byte.
    pub start: usize,
    /// The byte after its last.
    pub end: usize,
    /// The kind of the secret; none in a marker of `carl-core`.
    pub kind: Option<&'t str>,
    /// The tag, if it has one.
    pub tag: Option<&'t str>,
}

/// Lists the markers of a text: `<redacted:KIND#TAG>`, `<redacted:KIND>`, and `<redacted>` of `carl-core`.
pub fn markers(text: &str) -> impl Iterator<Item = TextMarker<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + text.get(at..)?.find(BEGIN)?;
            at = start + BEGIN.len();
            if let Some(found) = marker_at(text, start) {
                at = found.end;
                return Some(found);
            }
        }
    })
}

/// Whether a text has a marker.
pub fn has_marker(text: &str) -> bool {
    text.as_bytes().contains(&b'<') && markers(text).next().is_some()
}

/// Whether a tag was made with the key of an id.
pub fn is_of_key(tag: &str, id: &str) -> bool {
    tag.len() == TAG_DIGITS && id.starts_with(&tag[..KEY_DIGITS])
}

/// Whether a text has a marker whose tag is one of those.
pub fn has_tag(text: &str, is: &dyn Fn(&str) -> bool) -> bool {
    text.as_bytes().contains(&b'<') && markers(text).any(|one| one.tag.is_some_and(is))
}

/// A value in whose texts and names markers with those tags have none.
pub fn without_tags(value: &Value, is: &dyn Fn(&str) -> bool) -> Value {
    match value {
        Value::String(text) if has_tag(text, is) => Value::from(text_without_tags(text, is)),
        Value::Array(items) => Value::array(items.iter().map(|item| without_tags(item, is))),
        Value::Object(members) if of_marker(members).is_none() => {
            Value::record(members.iter().map(|(name, value)| {
                let name = match has_tag(name, is) {
                    true => std::sync::Arc::from(text_without_tags(name, is)),
                    false => std::sync::Arc::clone(name),
                };
                (name, without_tags(value, is))
            }))
        }
        other => other.clone(),
    }
}

fn text_without_tags(text: &str, is: &dyn Fn(&str) -> bool) -> String {
    let (mut made, mut upto) = (String::with_capacity(text.len()), 0);
    for one in markers(text) {
        if let Some(tag) = one.tag.filter(|tag| is(tag)) {
            let end = one.end - 1 - tag.len() - 1;
            made.push_str(&text[upto..end]);
            upto = one.end - 1;
        }
    }
    made.push_str(&text[upto..]);
    made
}

fn marker_at(text: &str, start: usize) -> Option<TextMarker<'_>> {
    let from = start + BEGIN.len();
    // Every byte of a marker is ASCII.
    let close =
        from + text.as_bytes()[from..].iter().take(KIND_MAX + TAG_DIGITS + 3).position(|c| *c == b'>')?;
    let inside = &text[from..close];
    let end = close + 1;
    let Some(inside) = inside.strip_prefix(':') else {
        return inside.is_empty().then_some(TextMarker { start, end, kind: None, tag: None });
    };
    let (kind, tag) = match inside.split_once('#') {
        Some((kind, tag)) => (kind, Some(tag)),
        None => (inside, None),
    };
    let is_kind = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_');
    let is_sound = !kind.is_empty() && kind.len() <= KIND_MAX && kind.bytes().all(is_kind);
    let is_tag = tag
        .is_none_or(|tag| matches!(tag.len(), 8 | TAG_DIGITS) && tag.bytes().all(|c| c.is_ascii_hexdigit()));
    (is_sound && is_tag).then_some(TextMarker { start, end, kind: Some(kind), tag })
}

/// Whether something in a value was redacted: a marker in a text or a name, or in the place of a value.
pub fn is_marked(value: &Value) -> bool {
    any_marker(value, &|_| true)
}

/// Whether something in a value was redacted and has no tag, so that the value is not known to be equal to itself elsewhere.
pub fn has_untagged(value: &Value) -> bool {
    any_marker(value, &|tag| tag.is_none())
}

fn any_marker(value: &Value, is: &dyn Fn(Option<&str>) -> bool) -> bool {
    let in_text = |text: &str| text.as_bytes().contains(&b'<') && markers(text).any(|one| is(one.tag));
    match value {
        Value::String(text) => in_text(text),
        Value::Array(items) => items.iter().any(|item| any_marker(item, is)),
        Value::Object(members) => match of_marker(members) {
            Some(marker) => is(marker.get("tag").and_then(Value::as_str)),
            None => members.iter().any(|(name, member)| in_text(name) || any_marker(member, is)),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Calls `f` with each tag of a value.
pub fn for_each_tag(value: &Value, f: &mut dyn FnMut(&str)) {
    match value {
        Value::String(text) if text.as_bytes().contains(&b'<') => {
            markers(text).filter_map(|one| one.tag).for_each(f);
        }
        Value::Array(items) => items.iter().for_each(|item| for_each_tag(item, f)),
        Value::Object(members) => match of_marker(members) {
            Some(marker) => marker.get("tag").and_then(Value::as_str).into_iter().for_each(f),
            None => members.iter().for_each(|(_, member)| for_each_tag(member, f)),
        },
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The content of the form that replaces a value that is a secret as a whole.
pub fn of_marker(members: &Object) -> Option<&Value> {
    if members.len() == 1 { members.get("$redacted") } else { None }
}

/// Tells whether two values are equal. `None` where redacted parts leave it open.
pub fn same(a: &Value, b: &Value) -> Option<bool> {
    match (a, b) {
        (Value::String(a), Value::String(b)) => same_text(a, b),
        (Value::Array(a), Value::Array(b)) => same_items(a, b),
        (Value::Object(x), Value::Object(y)) => match (of_marker(x), of_marker(y)) {
            (None, None) => same_members(x, y),
            (Some(x), Some(y)) => same_tags(tag_of(x), tag_of(y)),
            (Some(marker), None) => may_be(marker, b),
            (None, Some(marker)) => may_be(marker, a),
        },
        (Value::Object(members), other) | (other, Value::Object(members)) => match of_marker(members) {
            Some(marker) => may_be(marker, other),
            None => Some(false),
        },
        _ => Some(a == b),
    }
}

/// Differences of two values, place by place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ComparedValues {
    /// The places at which they differ.
    pub differences: Vec<Difference>,
    /// The places that redacted parts leave open, of both sides.
    pub open: Vec<Pointer>,
}

/// Compares two values as [`differences`] does, and names what redacted parts leave open.
pub fn compare(a: &Value, b: &Value) -> ComparedValues {
    let mut found = ComparedValues { differences: differences(a, b), open: Vec::new() };
    if !is_marked(a) && !is_marked(b) {
        return found;
    }
    found.differences.retain(|one| match (&one.left, &one.right) {
        (Some(left), Some(right)) => same(left, right) == Some(false),
        // A name that was redacted may be any other.
        _ => !one.path.tokens().last().is_some_and(|name| markers(&name).any(|one| one.tag.is_none())),
    });
    open_places(a, b, &mut Vec::new(), &mut found.open);
    found
}

fn open_places(a: &Value, b: &Value, steps: &mut Vec<String>, open: &mut Vec<Pointer>) {
    let mut below = |a: &Value, b: &Value, name: &str| {
        steps.push(name.to_owned());
        open_places(a, b, steps, open);
        steps.pop();
    };
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            for (index, (a, b)) in a.iter().zip(b.iter()).enumerate() {
                below(a, b, &index.to_string());
            }
        }
        (Value::Object(x), Value::Object(y)) if of_marker(x).is_none() && of_marker(y).is_none() => {
            for (name, a) in x.iter() {
                if let Some(b) = y.get(name) {
                    below(a, b, name);
                }
            }
            let is_open =
                |(name, _): (&std::sync::Arc<str>, &Value)| markers(name).any(|one| one.tag.is_none());
            if x.iter().any(is_open) || y.iter().any(is_open) {
                open.push(Pointer::of(steps.iter().map(String::as_str)));
            }
        }
        _ if same(a, b).is_none() => open.push(Pointer::of(steps.iter().map(String::as_str))),
        _ => {}
    }
}

/// Whether two values, which may both be missing, are known to be equal.
pub fn agree(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => same(a, b) == Some(true),
        (a, b) => a.is_none() && b.is_none(),
    }
}

fn tag_of(marker: &Value) -> Option<&str> {
    marker.get("tag")?.as_str()
}

fn same_items(a: &Array, b: &Array) -> Option<bool> {
    if a.len() != b.len() {
        return Some(false);
    }
    all(a.iter().zip(b.iter()).map(|(a, b)| same(a, b)))
}

fn same_members(a: &Object, b: &Object) -> Option<bool> {
    if a.len() != b.len() {
        return Some(false);
    }
    let pairs = || a.iter().zip(b.iter());
    if pairs().all(|((a, _), (b, _))| a == b) {
        return all(pairs().map(|((name, a), (_, b))| all([same_text(name, name), same(a, b)].into_iter())));
    }
    // A name with a marker may be any name, unless all of them have tags.
    let names = |object: &Object| object.iter().any(|(name, _)| markers(name).any(|one| one.tag.is_none()));
    let is_open = names(a) || names(b) || pairs().any(|((a, _), (b, _))| same_text(a, b).is_none());
    if is_open { None } else { Some(false) }
}

/// A conjunction: one false part decides, whatever the others are, as CEL says of `&&`; else one that is not known leaves it
/// open.
pub fn all(parts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut is_known = true;
    for part in parts {
        match part {
            Some(false) => return Some(false),
            Some(true) => {}
            None => is_known = false,
        }
    }
    is_known.then_some(true)
}

/// Compares two tags. Those of two keys, and the shorter ones of before, which have none in them, say nothing if they differ.
fn same_tags(a: Option<&str>, b: Option<&str>) -> Option<bool> {
    let (a, b) = (a?, b?);
    let is_one_key = a.len() == TAG_DIGITS && b.len() == TAG_DIGITS && a[..KEY_DIGITS] == b[..KEY_DIGITS];
    if a == b {
        return Some(true);
    }
    is_one_key.then_some(false)
}

/// Whether a value that is in clear, or a text with a marker, is the one that a marker replaces: open, or no.
fn may_be(marker: &Value, other: &Value) -> Option<bool> {
    let is_of_length = |length: usize| match marker.get("len").and_then(Value::as_str) {
        Some("short") => length <= 16,
        Some("medium") => (17..=64).contains(&length),
        Some("long") => length > 64,
        _ => true,
    };
    let open = |is_possible: bool| if is_possible { None } else { Some(false) };
    match other {
        Value::String(text) => match markers(text).next() {
            Some(one) if one.start == 0 && one.end == text.len() => same_tags(tag_of(marker), one.tag),
            Some(_) => None,
            None => open(!text.is_empty() && is_of_length(text.len())),
        },
        Value::Number(number) => open(is_of_length(Number::to_string(number).len())),
        // Bytes, and text that is not well-formed, are objects.
        Value::Object(members) => open(is_tagged(members)),
        Value::Null | Value::Bool(_) | Value::Array(_) => Some(false),
    }
}

/// As [`same`], of texts.
pub fn same_text(a: &str, b: &str) -> Option<bool> {
    let has_any = |text: &str| text.as_bytes().contains(&b'<');
    if !has_any(a) && !has_any(b) {
        return Some(a == b);
    }
    let (x, y) = (Parts::of(a), Parts::of(b));
    match (x.tags.is_empty(), y.tags.is_empty()) {
        (true, true) => Some(a == b),
        (false, false) => x.same(&y),
        (false, true) => x.may_be(b),
        (true, false) => y.may_be(a),
    }
}

/// A text around its markers.
struct Parts<'t> {
    literals: Vec<&'t str>,
    tags: Vec<Option<&'t str>>,
}

impl<'t> Parts<'t> {
    fn of(text: &'t str) -> Parts<'t> {
        let (mut literals, mut tags, mut upto) = (Vec::new(), Vec::new(), 0);
        for one in markers(text) {
            literals.push(&text[upto..one.start]);
            tags.push(one.tag);
            upto = one.end;
        }
        literals.push(&text[upto..]);
        Parts { literals, tags }
    }

    fn first(&self) -> &'t str {
        self.literals[0]
    }

    fn last(&self) -> &'t str {
        self.literals[self.literals.len() - 1]
    }

    fn same(&self, other: &Parts<'_>) -> Option<bool> {
        if self.literals == other.literals {
            let tags = self.tags.iter().zip(&other.tags);
            return all(tags.map(|(a, b)| same_tags(*a, *b)));
        }
        let are_tagged =
            |tags: &[Option<&str>]| tags.iter().all(|tag| tag.is_some_and(|tag| tag.len() == TAG_DIGITS));
        let begin = |a: &str, b: &str| a.starts_with(b) || b.starts_with(a);
        let end = |a: &str, b: &str| a.ends_with(b) || b.ends_with(a);
        let may = begin(self.first(), other.first()) && end(self.last(), other.last());
        match may && !(are_tagged(&self.tags) && are_tagged(&other.tags)) {
            true => None,
            false => Some(false),
        }
    }

    /// Whether a text in clear is this one before something was taken out: open, or no.
    fn may_be(&self, clear: &str) -> Option<bool> {
        // Of each secret there is a character at least.
        let least = self.literals.iter().map(|part| part.len()).sum::<usize>() + self.tags.len();
        let may = clear.len() >= least && clear.starts_with(self.first()) && clear.ends_with(self.last());
        if may { None } else { Some(false) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "ab12000000000001";
    const B: &str = "ab12000000000002";
    const OTHER_KEY: &str = "cd34000000000001";

    fn text(tag: &str) -> String {
        format!("using <redacted:openai-key#{tag}> now")
    }

    fn whole(len: &str, tag: Option<&str>) -> Value {
        let tag = tag.map(|tag| ("tag", Value::from(tag)));
        let members = [("kind", Value::from("named")), ("len", Value::from(len))].into_iter().chain(tag);
        Value::record([("$redacted", Value::record(members))])
    }

    #[test]
    fn texts_are_compared_by_tags() {
        assert_eq!(same_text(&text(A), &text(A)), Some(true));
        assert_eq!(same_text(&text(A), &text(B)), Some(false));
        assert_eq!(same_text(&text(A), &text(OTHER_KEY)), None);
        assert_eq!(same_text(&text(A), &format!("{}!", text(A))), Some(false));
        assert_eq!(same_text("a <redacted:named>", "a <redacted:named>"), None);
        assert_eq!(same_text("a <redacted:named>", "b <redacted:named>"), Some(false));
        assert_eq!(same_text("a <redacted>", "a <redacted>"), None);
        // A kind is how a secret was found, and not what it is.
        assert_eq!(same_text(&format!("<redacted:named#{A}>"), &format!("<redacted:known#{A}>")), Some(true));
    }

    #[test]
    fn a_text_in_clear_differs_where_the_rest_of_the_text_does() {
        assert_eq!(same_text(&text(A), "using x now"), None);
        assert_eq!(same_text(&text(A), "using  now"), Some(false));
        assert_eq!(same_text(&text(A), "done"), Some(false));
        assert_eq!(same_text("<redacted:named>", "bob"), None);
        assert_eq!(same_text("<redacted:named>", ""), Some(false));
        // A text that only looks like a marker has none.
        for text in ["<redacted:>", "<redacted", "<redacted:a b>", "<redacted:named#zz>", "a < b"] {
            assert_eq!((has_marker(text), same_text(text, text)), (false, Some(true)), "{text}");
        }
    }

    #[test]
    fn values_are_compared_by_tags() {
        assert_eq!(same(&whole("short", Some(A)), &whole("short", Some(A))), Some(true));
        assert_eq!(same(&whole("short", Some(A)), &whole("short", Some(B))), Some(false));
        assert_eq!(same(&whole("short", None), &whole("short", None)), None);
        assert_eq!(same(&whole("short", None), &Value::from("x")), None);
        assert_eq!(same(&whole("medium", None), &Value::from("x")), Some(false));
        assert_eq!(same(&whole("short", None), &Value::from(1234u64)), None);
        for other in [Value::Null, Value::from(true), Value::array([]), Value::from("")] {
            assert_eq!(same(&other, &whole("short", None)), Some(false), "{other}");
        }
        let marker = Value::from(format!("<redacted:known#{A}>"));
        assert_eq!(same(&whole("short", Some(A)), &marker), Some(true));
    }

    #[test]
    fn what_differs_decides_whatever_is_open() {
        let pair = |n: u64| Value::array([whole("short", None), Value::from(n)]);
        assert_eq!(same(&pair(1), &pair(2)), Some(false));
        assert_eq!(same(&pair(1), &pair(1)), None);
        let named = |name: &str| Value::record([(name.to_owned(), Value::from(1u64))]);
        assert_eq!(same(&named("<redacted:jwt>"), &named("<redacted:jwt>")), None);
        assert_eq!(same(&named("<redacted:jwt>"), &named("x")), None);
        let tagged = |tag: &str| named(&format!("<redacted:jwt#{tag}>"));
        assert_eq!(same(&tagged(A), &tagged(A)), Some(true));
        assert_eq!(same(&tagged(A), &tagged(B)), Some(false));
        assert_eq!((has_untagged(&named("<redacted:jwt>")), has_untagged(&tagged(A))), (true, false));
    }
}
