//! The tagged forms of what JSON cannot hold.
//!
//! An object with one member whose name begins with exactly one `$` is a tag. A user's own name that begins
//! with `$` is stored with a second one in front, so no user data is ever mistaken for a tag.
//!
//! | form | is |
//! | --- | --- |
//! | `{"$float":"NaN"}`, `"Infinity"`, `"-Infinity"` | a double that is not a number of JSON |
//! | `{"$bytes":"<base64url>"}` | bytes |
//! | `{"$wtf8":"<base64url>"}` | text with a lone surrogate, as WTF-8 |
//! | `{"$object":[[name,value],...]}` | an object with such text among its names, sorted by UTF-16 |
//! | `{"$gap":{"reason":...}}` | a value that was not accepted, in a recording that went on |
//! | `{"$redacted":{"kind":...}}` | a value that was taken out before it was sealed |
//! | `{"$vault":{"bytes":N,"commitment":...}}` | a value whose exact bytes are in the vault of the store |

use std::sync::Arc;

use crate::digest::{Digest, decode_base64url, encode_base64url};
use crate::number::Number;
use crate::value::{Object, ObjectEntry, Value};

/// Tells whether a stored name is that of a tag: one `$` in front and no second.
pub fn is_tag_name(name: &str) -> bool {
    name.starts_with('$') && !name.starts_with("$$")
}

/// Whether an object is the form of another value: a marker, a time, bytes.
pub fn is_tagged(object: &Object) -> bool {
    object.len() == 1 && object.entries().any(|entry| is_tag_name(&entry.key))
}

/// A double: a number where JSON has one for it, else the tagged form. Every NaN is the same NaN.
pub fn float(value: f64) -> Value {
    if let Some(number) = Number::from_f64(value) {
        return Value::Number(number);
    }
    let text = if value.is_nan() {
        "NaN"
    } else if value > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    };
    tagged("$float", text.into())
}

/// Bytes.
pub fn bytes(bytes: &[u8]) -> Value {
    tagged("$bytes", encode_base64url(bytes).into())
}

/// Text given as UTF-16: a plain string where it is well-formed, else the tagged form.
pub fn wtf8(units: &[u16]) -> Value {
    match String::from_utf16(units) {
        Ok(text) => Value::from(text),
        Err(_) => tagged("$wtf8", encode_base64url(&encode_wtf8(units)).into()),
    }
}

/// The mark a recorder leaves where a value was not accepted.
pub fn gap(reason: &str, path: &str) -> Value {
    tagged("$gap", Value::record([("path", Value::from(path)), ("reason", Value::from(reason))]))
}

/// The form of a value whose exact bytes are in the vault: how many they are, and the salted commitment to them.
pub fn vault(bytes: u64, commitment: &Digest) -> Value {
    tagged("$vault", Value::record([("bytes", Value::from(bytes)), ("commitment", Value::from(*commitment))]))
}

/// Takes the number of bytes and the commitment out of a `$vault` form.
pub fn as_vault(value: &Value) -> Option<(u64, Digest)> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    of_vault(object.get("$vault")?)
}

fn of_vault(value: &Value) -> Option<(u64, Digest)> {
    let object = value.as_object().filter(|object| object.len() == 2)?;
    Some((object.get("bytes")?.as_u64()?, object.get("commitment")?.as_str()?.parse().ok()?))
}

/// Takes the bytes out of a `$bytes` form.
pub fn as_bytes(value: &Value) -> Option<Vec<u8>> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    decode_base64url(object.get("$bytes")?.as_str()?)
}

fn tagged(tag: &str, value: Value) -> Value {
    Value::record([(tag, value)])
}

/// Makes the form of an object some of whose names are not well-formed text. Fails with a name that repeats.
pub(crate) fn broken_object(
    plain: Vec<ObjectEntry>,
    broken: Vec<(Vec<u16>, Value)>,
) -> Result<Value, String> {
    let plain = plain.into_iter().map(|entry| (entry.key.encode_utf16().collect::<Vec<u16>>(), entry.value));
    let mut members: Vec<(Vec<u16>, Value)> = plain.chain(broken).collect();
    members.sort_by(|a, b| a.0.cmp(&b.0));
    if let Some(pair) = members.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        return Err(String::from_utf16_lossy(&pair[0].0));
    }
    let pairs = members.into_iter().map(|(name, value)| Value::array([wtf8(&name), value]));
    Ok(tagged("$object", Value::array(pairs)))
}

/// Checks that a tag and its value are one of the forms above, in its one spelling.
pub fn check(tag: &str, value: &Value) -> Result<(), &'static str> {
    match tag {
        "$float" => match value.as_str() {
            Some("NaN" | "Infinity" | "-Infinity") => Ok(()),
            _ => Err("$float is \"NaN\", \"Infinity\" or \"-Infinity\""),
        },
        "$bytes" => match value.as_str().and_then(decode_base64url) {
            Some(_) => Ok(()),
            None => Err("$bytes is unpadded base64url"),
        },
        "$wtf8" => match units_of_broken(value) {
            Some(_) => Ok(()),
            None => Err("$wtf8 is unpadded base64url of WTF-8 with a lone surrogate"),
        },
        "$object" => check_object(value)
            .ok_or("$object is sorted pairs of distinct names and values, one of them broken"),
        "$gap" => match value.get("reason").and_then(Value::as_str) {
            Some(_) => Ok(()),
            None => Err("$gap has a reason"),
        },
        "$redacted" => match value.get("kind").and_then(Value::as_str) {
            Some(_) => Ok(()),
            None => Err("$redacted has a kind"),
        },
        "$vault" => match of_vault(value) {
            Some(_) => Ok(()),
            None => Err("$vault has bytes, a count, and commitment, a digest, and nothing else"),
        },
        _ => Err(
            "the tags are $float, $bytes, $wtf8, $object, $gap, $redacted and $vault; a name of your own that begins with $ has a second one",
        ),
    }
}

fn check_object(value: &Value) -> Option<()> {
    let mut last: Option<Vec<u16>> = None;
    let mut has_broken = false;
    for pair in value.as_array()?.iter() {
        let pair = pair.as_array().filter(|pair| pair.len() == 2)?;
        let name = match pair.get(0)? {
            // A name that looks like a tag could only come from one that was not doubled.
            Value::String(name) if is_tag_name(name) => return None,
            Value::String(name) => name.encode_utf16().collect(),
            other => {
                has_broken = true;
                units_of_broken(other.as_object().filter(|o| o.len() == 1)?.get("$wtf8")?)?
            }
        };
        if last.is_some_and(|last| last >= name) {
            return None;
        }
        last = Some(name);
    }
    has_broken.then_some(())
}

/// Decodes the text of a `$wtf8` form, which must hold a lone surrogate.
fn units_of_broken(value: &Value) -> Option<Vec<u16>> {
    let units = decode_wtf8(&decode_base64url(value.as_str()?)?)?;
    String::from_utf16(&units).is_err().then_some(units)
}

fn encode_wtf8(units: &[u16]) -> Vec<u8> {
    let mut out = Vec::with_capacity(units.len() * 3);
    for unit in char::decode_utf16(units.iter().copied()) {
        match unit {
            Ok(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            // Generalized UTF-8: a surrogate is written as the three bytes its number would have.
            Err(lone) => {
                let n = lone.unpaired_surrogate();
                out.extend_from_slice(&[
                    0xe0 | (n >> 12) as u8,
                    0x80 | (n >> 6 & 0x3f) as u8,
                    0x80 | (n & 0x3f) as u8,
                ]);
            }
        }
    }
    out
}

/// Decodes WTF-8; `None` for anything [`encode_wtf8`] would not give.
fn decode_wtf8(mut bytes: &[u8]) -> Option<Vec<u16>> {
    let whole = bytes;
    let mut units = Vec::new();
    while !bytes.is_empty() {
        match std::str::from_utf8(bytes) {
            Ok(text) => {
                units.extend(text.encode_utf16());
                break;
            }
            Err(error) => {
                let (good, rest) = bytes.split_at(error.valid_up_to());
                units.extend(std::str::from_utf8(good).expect("checked just above").encode_utf16());
                let [0xed, second @ 0xa0..=0xbf, third @ 0x80..=0xbf, ..] = *rest else {
                    return None;
                };
                units.push(0xd000 | u16::from(second & 0x3f) << 6 | u16::from(third & 0x3f));
                bytes = &rest[3..];
            }
        }
    }
    (encode_wtf8(&units) == whole).then_some(units)
}

/// The double of a `$float` form.
pub fn as_float(value: &Value) -> Option<f64> {
    match value.get("$float")?.as_str()? {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

/// The UTF-16 units of a `$wtf8` form.
pub fn as_wtf8(value: &Value) -> Option<Vec<u16>> {
    units_of_broken(value.get("$wtf8")?)
}

/// Doubles the `$` in front of a user's own name.
pub fn stored_name(name: &str) -> Arc<str> {
    if name.starts_with('$') { format!("${name}").into() } else { name.into() }
}

/// The name of a key that is no text, of a language that has such keys: its text, with its kind after it if another key has that
/// name.
pub fn name_of_key(text: &str, kind: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let mut name = text.to_owned();
    while is_taken(&name) {
        name = format!("{name} ({kind})");
    }
    name
}

/// Returns the name as its user wrote it: the opposite of [`stored_name`].
pub fn user_name(stored: &str) -> &str {
    stored.strip_prefix('$').filter(|rest| rest.starts_with('$')).unwrap_or(stored)
}

/// Takes back the `$` that the door put in front of each name that begins with one: the value as it was before the door.
pub fn undoubled(read: &Value) -> Value {
    match read {
        Value::Array(items) => Value::array(items.iter().map(undoubled)),
        Value::Object(members) => {
            let member =
                |(name, member): (&Arc<str>, &Value)| (Arc::<str>::from(user_name(name)), undoubled(member));
            Value::Object(members.iter().map(member).collect())
        }
        other => other.clone(),
    }
}

/// The names of the tags.
pub const TAGS: [&str; 7] = ["$float", "$bytes", "$wtf8", "$object", "$gap", "$redacted", "$vault"];

/// Tells whether a name is that of a tag behind any number of `$`.
fn is_like_a_tag(name: &str) -> bool {
    let word = name.trim_start_matches('$');
    word.len() < name.len() && TAGS.iter().any(|tag| tag[1..] == *word)
}

/// Returns the name of a member as its user wrote it. In one object alone the doubled `$` is kept: that with a single member whose
/// name is that of a tag, however many `$` it has, which could be read as the tagged form.
pub fn shown_name<'n>(object: &Object, stored: &'n str) -> &'n str {
    if object.len() == 1 && is_like_a_tag(stored) { stored } else { user_name(stored) }
}

/// Returns a value with the names that its user wrote, as answers show it ([`shown_name`]).
pub fn with_user_names(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::array(items.iter().map(with_user_names)),
        Value::Object(members) => {
            let member = |(stored, member): (&Arc<str>, &Value)| {
                (Arc::<str>::from(shown_name(members, stored)), with_user_names(member))
            };
            Value::Object(members.iter().map(member).collect())
        }
        other => other.clone(),
    }
}

/// Reads what [`with_user_names`] gives, with every `$` in front of a name doubled as the door does: the value as it is stored.
pub fn from_user_names(read: &Value) -> Value {
    match read {
        Value::Array(items) => Value::array(items.iter().map(from_user_names)),
        Value::Object(members) => {
            let tagged = members.entries().next().filter(|_| members.len() == 1).and_then(|entry| {
                // A tag, or an object that could be read as one and kept its doubled `$`.
                is_like_a_tag(&entry.key)
                    .then(|| (Arc::<str>::from(user_name(&entry.key)), from_user_names(&entry.value)))
                    .filter(|(name, value)| !is_tag_name(name) || check(name, value).is_ok())
            });
            match tagged {
                Some(member) => Value::record([member]),
                None => Value::Object(
                    members
                        .iter()
                        .map(|(name, member)| (Arc::clone(name), from_user_names(member)))
                        .collect(),
                ),
            }
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json;

    /// Objects as users have them, with names that look like tags, and tagged forms among them; as they are stored.
    fn stored() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            Just(Value::from("NaN")),
            Just(float(f64::NAN)),
            Just(bytes(b"ab")),
            Just(gap("large", "/x")),
        ];
        let name = prop_oneof![
            Just("$ref"),
            Just("$"),
            Just("$$"),
            Just("$float"),
            Just("$$float"),
            Just("$$$gap"),
            Just("$redacted"),
            Just("a"),
            Just("reason"),
        ];
        leaf.prop_recursive(4, 24, 3, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::array),
                proptest::collection::btree_map(name.clone(), inner, 1..3).prop_map(|members| {
                    Value::record(members.into_iter().map(|(name, member)| (stored_name(name), member)))
                }),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back_as_what_is_stored(value in stored()) {
            let shown = with_user_names(&value).to_string();
            let read = json::parse_door(shown.as_bytes()).expect("JSON");
            prop_assert_eq!(from_user_names(&read), value, "{}", shown);
        }
    }

    #[test]
    fn names_are_shown_as_they_were_written() {
        let shown =
            |text: &str| with_user_names(&json::parse_door(text.as_bytes()).expect("JSON")).to_string();
        for text in [r#"{"$ref":1}"#, r#"{"$":{"$$b":[{"$id":2}]},"a":1}"#, r#"{"$float":"NaN","a":1}"#] {
            assert_eq!(shown(text), text);
        }
        assert_eq!(shown(r#"{"$float":"NaN"}"#), r#"{"$$float":"NaN"}"#);
    }
}
