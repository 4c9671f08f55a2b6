//! JSON values that are cheap to copy, to change in one place and to hash again after a change.
//!
//! One type serves payloads and states. Objects and arrays begin as plain sorted or ordered slices; the first
//! change turns them into persistent trees whose nodes remember their digests, so that the cost of a commit
//! follows the size of the delta and not the size of the state (design, section 3 "The state root").
//!
//! Rule: the shape of a tree is a function of its content alone. Two values that are equal have equal digests, whatever
//! history made them.

use std::cmp::Ordering;
use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::digest::Digest;
use crate::number::Number;

mod array;
mod difference;
pub(crate) mod object;

pub use array::Array;
pub use difference::{Difference, differences, first_difference};
pub use object::{Object, ObjectEntry};

/// A JSON value. Values that JSON cannot hold are kept in a tagged form, see [`crate::tag`].
#[derive(Clone, PartialEq, Eq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// Any number; there is one kind.
    Number(Number),
    /// Well-formed Unicode text.
    String(Arc<str>),
    /// An ordered list.
    Array(Array),
    /// A map from distinct names to values.
    Object(Object),
}

/// A salt of a personal path: mixed into the leaf of the state tree, so that its digest says nothing about
/// a value that is easy to guess.
pub type LeafSalt = [u8; 16];

const SCALAR_TAG: &[u8] = b"dendrer/state/scalar/v1\n";

impl Value {
    /// The empty object.
    pub fn object() -> Value {
        Value::Object(Object::default())
    }

    /// Makes an object of name and value pairs. Later pairs win over earlier ones of the same name.
    pub fn record<K: Into<Arc<str>>>(pairs: impl IntoIterator<Item = (K, Value)>) -> Value {
        Value::Object(pairs.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }

    /// Makes an array.
    pub fn array(items: impl IntoIterator<Item = Value>) -> Value {
        Value::Array(items.into_iter().collect())
    }

    /// Returns the text of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the number.
    pub fn as_number(&self) -> Option<&Number> {
        match self {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Returns the double of a number that is not beyond 2^53-1 as an integer.
    pub fn as_f64(&self) -> Option<f64> {
        self.as_number()?.as_f64()
    }

    /// Returns a non-negative integer.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_number()?.as_u64()
    }

    /// Returns the truth value.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the array.
    pub fn as_array(&self) -> Option<&Array> {
        match self {
            Value::Array(array) => Some(array),
            _ => None,
        }
    }

    /// Returns the object.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    /// Returns a member of an object; `None` for a missing member and for anything that is not an object.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.as_object()?.get(key)
    }

    /// Names the JSON type: `null`, `boolean`, `number`, `string`, `array` or `object`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        }
    }

    /// Returns the digest that binds the whole value: the state root when the value is a state.
    /// `docs/format.md` section "State root" gives the preimages.
    pub fn digest(&self) -> Digest {
        match self {
            Value::Array(array) => array.digest(),
            Value::Object(object) => object.digest(),
            scalar => Digest::of_parts(&[SCALAR_TAG, &crate::json::to_vec(scalar)]),
        }
    }

    /// Returns how many bytes the canonical text has, or `u64::MAX` for more. Containers remember theirs, so that
    /// after a change the cost follows the size of the change; a part that occurs in many places is counted in each
    /// and walked once.
    pub fn size(&self) -> u64 {
        match self {
            Value::Array(array) => array.size(),
            Value::Object(object) => object.size(),
            scalar => crate::json::to_vec(scalar).len() as u64,
        }
    }

    /// Says what kind of value this is, with its article: for messages like "this is an object".
    pub fn described(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "an array",
            Value::Object(_) => "an object",
        }
    }

    /// Returns how deep arrays and objects are nested: 0 for a scalar, 1 for `[]`.
    pub fn depth(&self) -> usize {
        match self {
            Value::Array(array) => 1 + array.iter().map(Value::depth).max().unwrap_or(0),
            Value::Object(object) => 1 + object.entries().map(|entry| entry.value.depth()).max().unwrap_or(0),
            _ => 0,
        }
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::String(value.into())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::String(value.into())
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Value {
        Value::Number(Number::from_u64(value))
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Number(Number::from_i64(value))
    }
}

impl From<f64> for Value {
    /// Keeps NaN and the infinities in their tagged form.
    fn from(value: f64) -> Value {
        crate::tag::float(value)
    }
}

impl From<crate::code::Code> for Value {
    fn from(code: crate::code::Code) -> Value {
        Value::from(code.as_str())
    }
}

impl From<Digest> for Value {
    fn from(value: Digest) -> Value {
        let mut text = Vec::with_capacity(Digest::TEXT_SIZE);
        value.write_text(&mut text);
        Value::String(std::str::from_utf8(&text).expect("hex is ASCII").into())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::json::to_string(self))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::json::to_string(self))
    }
}

/// Orders names as canonical JSON does: by UTF-16 code units (RFC 8785 3.2.3).
pub fn compare_names(a: &str, b: &str) -> Ordering {
    // UTF-8 and UTF-16 order agree unless a surrogate pair meets a character above the surrogate range, and
    // both of those begin with a byte of 0xEE or more.
    let (left, right) = (a.as_bytes(), b.as_bytes());
    let same = same_words(left, right);
    let first_difference = left[same..].iter().zip(&right[same..]).find(|(x, y)| x != y);
    match first_difference {
        None => a.len().cmp(&b.len()),
        Some((x, y)) if *x < 0xEE || *y < 0xEE => x.cmp(y),
        Some(_) => a.encode_utf16().cmp(b.encode_utf16()),
    }
}

/// How many bytes in front are the same, as far as that is seen by eight at a time. Names that are compared begin alike.
fn same_words(left: &[u8], right: &[u8]) -> usize {
    let words = left.as_chunks::<8>().0.iter().zip(right.as_chunks::<8>().0);
    8 * words.take_while(|(x, y)| x == y).count()
}

/// A digest computed at most once.
#[derive(Clone, Default)]
pub(crate) struct Cached(OnceLock<Digest>);

impl Cached {
    pub(crate) fn get(&self, compute: impl FnOnce() -> Digest) -> Digest {
        *self.0.get_or_init(compute)
    }

    /// Tells whether it was computed.
    pub(crate) fn is_known(&self) -> bool {
        self.0.get().is_some()
    }
}

/// A size computed at most once.
#[derive(Clone, Default)]
pub(crate) struct CachedSize(OnceLock<u64>);

/// Adds sizes, of which a few shared parts can make more than any number holds.
pub(crate) fn add_sizes(sizes: impl Iterator<Item = u64>) -> u64 {
    sizes.fold(0, u64::saturating_add)
}

impl CachedSize {
    pub(crate) fn get(&self, compute: impl FnOnce() -> u64) -> u64 {
        *self.0.get_or_init(compute)
    }
}

#[cfg(test)]
mod tests;
