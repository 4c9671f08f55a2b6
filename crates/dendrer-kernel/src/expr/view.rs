//! Values on the way, and what the operations see of them.
//!
//! A time that goes into a list or map has a tagged form there ([`TIMES`]), which never leaves an evaluation: what is handed out
//! has its text.

use std::sync::Arc;

use dendrer_object::number::SAFE_INTEGER_MAX;
use dendrer_object::{Array, Object, Value, tag};

use super::number::Num;
use super::time::Time;

/// A value on the way.
#[derive(Clone)]
pub(super) enum Val<'a> {
    Ref(&'a Value),
    /// A value made on the way, and how many levels of lists and maps were made around data at most.
    Made(Value, u8),
    Bool(bool),
    Num(Num),
    Time(Time),
    /// A text that the pack declares a `datetime`: a moment to what orders and calculates, and a text to everything else.
    Dated(&'a Value),
}

/// A value as the operations see it.
pub(super) enum View<'v> {
    Null,
    Bool(bool),
    Num(Num),
    Text(&'v str),
    List(&'v Array),
    Map(&'v Object),
    Time(Time),
    /// A tagged form: bytes, text that is not well-formed, a double that is not finite, what was withheld.
    Tagged(&'v Object, &'static str),
}

impl<'a> Val<'a> {
    pub(super) fn into_value(self) -> Value {
        match self {
            Val::Ref(value) => value.clone(),
            Val::Made(value, _) => value,
            Val::Bool(value) => Value::Bool(value),
            Val::Num(Num::Int(value)) => Value::from(value),
            Val::Num(Num::Double(value)) => Value::from(value),
            Val::Num(Num::Data(number)) => Value::Number(number),
            Val::Time(time) => time_value(time),
            Val::Dated(value) => dated_value(value),
        }
    }

    /// A text or a number made on the way.
    pub(super) fn scalar(value: impl Into<Value>) -> Val<'a> {
        Val::Made(value.into(), 0)
    }

    /// Returns how many levels were made around data at most.
    pub(super) fn levels(&self) -> u8 {
        match self {
            Val::Made(_, levels) => *levels,
            _ => 0,
        }
    }

    /// A part of this value, nested no deeper than it.
    pub(super) fn part(&self, value: &Value) -> Val<'a> {
        Val::Made(value.clone(), self.levels())
    }

    pub(super) fn view(&self) -> View<'_> {
        match self {
            Val::Ref(value) => View::of(value),
            Val::Made(value, _) => View::of(value),
            Val::Bool(value) => View::Bool(*value),
            Val::Num(num) => View::Num(num.clone()),
            Val::Time(time) => View::Time(*time),
            Val::Dated(value) => View::of(value),
        }
    }

    /// Tells whether it is a text that the pack declares a `datetime`.
    pub(super) fn is_dated(&self) -> bool {
        match self {
            Val::Dated(_) => true,
            Val::Made(value, _) => is_dated(value),
            Val::Ref(value) => is_dated(value),
            _ => false,
        }
    }

    /// Returns the double that is exactly a number, if there is one. Comparing these is comparing the numbers.
    pub(super) fn as_double(&self) -> Option<f64> {
        match self {
            Val::Ref(Value::Number(number)) | Val::Num(Num::Data(number)) => number.as_f64(),
            Val::Num(Num::Double(value)) => Some(*value),
            Val::Num(Num::Int(value)) if value.unsigned_abs() <= SAFE_INTEGER_MAX => Some(*value as f64),
            _ => None,
        }
    }

    pub(super) fn as_bool(&self) -> Option<bool> {
        match self {
            Val::Bool(value) | Val::Ref(Value::Bool(value)) | Val::Made(Value::Bool(value), _) => {
                Some(*value)
            }
            _ => None,
        }
    }
}

impl<'v> View<'v> {
    pub(super) fn of(value: &'v Value) -> View<'v> {
        match value {
            Value::Null => View::Null,
            Value::Bool(value) => View::Bool(*value),
            Value::Number(number) => View::Num(Num::Data(number.clone())),
            Value::String(text) => View::Text(text),
            Value::Array(array) => View::List(array),
            Value::Object(object) => match tag_of(object) {
                None => View::Map(object),
                Some(name) => match (time_of(object), dated_text(object)) {
                    (Some(time), _) => View::Time(time),
                    (None, Some(text)) => View::Text(text),
                    (None, None) => View::Tagged(object, name),
                },
            },
        }
    }

    /// Returns the text that it is, if it is one.
    pub(super) fn text(&self) -> Option<&'v str> {
        match self {
            View::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn describe(&self) -> &'static str {
        match self {
            View::Null => "null",
            View::Bool(_) => "a boolean",
            View::Num(_) => "a number",
            View::Text(_) => "a string",
            View::List(_) => "a list",
            View::Map(_) => "a map",
            View::Time(Time::Timestamp { .. }) => "a timestamp",
            View::Time(Time::Duration { .. }) => "a duration",
            View::Tagged(_, "$float") => "a number that is not finite",
            View::Tagged(_, "$bytes") => "bytes",
            View::Tagged(_, "$wtf8") => "text that is not well-formed",
            View::Tagged(_, "$object") => "a map with a name that is not well-formed",
            View::Tagged(_, "$gap") => "a gap in the record",
            View::Tagged(_, "$vault") => "in the vault",
            View::Tagged(_, "$timestamp") => "a timestamp",
            View::Tagged(_, "$duration") => "a duration",
            View::Tagged(_, DATED) => "a string",
            View::Tagged(..) => "redacted",
        }
    }
}

/// Names the tagged form an object is, if it is one.
pub(super) fn tag_of(object: &Object) -> Option<&'static str> {
    if object.len() != 1 {
        return None;
    }
    let entry = object.entries().next()?;
    if !tag::is_tag_name(&entry.key) {
        return None;
    }
    let known = ["$float", "$bytes", "$wtf8", "$object", "$gap", "$vault", TIMES[0], TIMES[1], DATED];
    Some(known.into_iter().find(|name| **name == *entry.key).unwrap_or("$redacted"))
}

/// The names of the tags that a time has inside a list or map that is made on the way. No data has them: a record with one is
/// refused, and a name of the user that begins with `$` is stored with another.
const TIMES: [&str; 2] = ["$timestamp", "$duration"];

/// The name of the tag that a text which is declared a `datetime` has inside a list or map that is made on the way.
const DATED: &str = "$datetime";

/// Makes the form that a text which is declared a `datetime` has inside a value.
pub(super) fn dated_value(text: &Value) -> Value {
    Value::record([(DATED, text.clone())])
}

/// Reads that form.
pub(super) fn dated_text(object: &Object) -> Option<&str> {
    object.get(DATED)?.as_str()
}

/// Tells whether a member of a list or map is a text that the pack declares a `datetime`.
pub(super) fn is_dated(value: &Value) -> bool {
    value.as_object().is_some_and(|object| dated_text(object).is_some())
}

/// Makes the form that a time has inside a value.
fn time_value(time: Time) -> Value {
    let name = TIMES[usize::from(!time.is_timestamp())];
    Value::record([(name, Value::from(&*time.text()))])
}

/// Reads the form that a time has inside a value.
pub(super) fn time_of(object: &Object) -> Option<Time> {
    let entry = object.entries().next()?;
    let text = entry.value.as_str()?;
    match TIMES.iter().position(|name| **name == *entry.key)? {
        0 => Time::timestamp(text).ok(),
        _ => Time::duration(text).ok(),
    }
}

/// Writes the times of a value as texts, in which form they leave an evaluation.
pub(super) fn with_texts(value: Value) -> Value {
    match &value {
        Value::Array(list) => Value::array(list.iter().cloned().map(with_texts)),
        Value::Object(map) => match tag_of(map).map(|_| (time_of(map), dated_text(map))) {
            Some((Some(time), _)) => Value::from(&*time.text()),
            Some((None, Some(text))) => Value::from(text),
            _ => Value::Object(
                map.iter().map(|(name, member)| (Arc::clone(name), with_texts(member.clone()))).collect(),
            ),
        },
        _ => value,
    }
}

/// Tells whether the value was not recorded, so that nothing can be said of it.
pub(super) fn is_withheld(tag: &str) -> bool {
    matches!(tag, "$gap" | "$redacted" | "$vault")
}
