//! Changes of a state: `set`, `remove`, `append` and `add` on paths (reducer `delta/1`; design, section 5).
//!
//! An operation is an object with one of these names and the pointer it acts on, and `value` where it needs
//! one: `{"set":"/risk_score","value":0.83}`, `{"append":"/sources","value":"feed-3"}`,
//! `{"add":"/spent","value":12.5}`, `{"remove":"/draft"}`. Null is a value; removal is explicit.
//!
//! Never half-applied: an operation that cannot be done leaves the state as it was before the whole delta.

use std::fmt;

use crate::Code;
use crate::json::DEPTH_MAX;
use crate::number::Number;
use crate::pointer::{Pointer, array_index};
use crate::tag::{is_tag_name, is_tagged};
use crate::value::{Object, Value};

/// A list of operations, applied in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Delta(pub Vec<Op>);

/// One change at one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Op {
    /// The action.
    pub action: Action,
    /// Where.
    pub path: Pointer,
    /// With what; `None` exactly for [`Action::Remove`].
    pub value: Option<Value>,
}

crate::words! {
    /// The action of an operation.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Action {
        /// Puts a value there, making missing parent objects. An array index must exist.
        Set = "set",
        /// Takes out what is there.
        Remove = "remove",
        /// Adds an item to the array there, making the array and its parent objects where nothing is.
        Append = "append",
        /// Adds a number to the number there: one IEEE double addition.
        Add = "add",
    }
}

/// Why a value is not a delta, or a delta does not fit a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeltaError {
    /// Which operation, from 0; `None` when the whole is not a list.
    pub index: Option<usize>,
    /// The path of the operation; `None` if the text does not give it.
    pub path: Option<Pointer>,
    /// The fault.
    pub why: DeltaErrorKind,
}

/// A fault of a delta.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeltaErrorKind {
    /// Not a list of operations.
    #[error("a delta is a list of operations like {{\"set\":\"/path\",\"value\":1}}")]
    Shape,
    /// The path is not a JSON pointer or is the whole state.
    #[error("the path is a JSON pointer below the state, like \"/risk_score\"")]
    Path,
    /// The path does not exist.
    #[error("there is nothing at this path")]
    Missing,
    /// The path names a member as only tagged values do.
    #[error("a name with one `$` in front belongs to tagged values; a user's own is stored with two")]
    TagName,
    /// A value on the way is neither an object nor an array.
    #[error("a {0} has no members")]
    NotContainer(&'static str),
    /// `append` to something else than an array.
    #[error("append needs an array, and there is a {0}")]
    NotArray(&'static str),
    /// `add` with or to something else than a number within 2^53-1.
    #[error("add needs two numbers within 2^53-1, and there is a {0}")]
    NotNumber(&'static str),
    /// Something else than a number or null, in a field with decimals.
    #[error("a field with decimals holds a number or null, and not a {0}")]
    NotDecimal(&'static str),
    /// The sum is not a finite double.
    #[error("the sum is not a number")]
    Overflow,
    /// The state would be nested too deep.
    #[error("the state would be nested deeper than {DEPTH_MAX} levels")]
    TooDeep,
}

impl DeltaError {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self.why {
            DeltaErrorKind::Shape | DeltaErrorKind::Path => Code::E0209,
            DeltaErrorKind::TooDeep => Code::E0204,
            _ => Code::E0404,
        }
    }
}

impl fmt::Display for DeltaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.index, &self.path) {
            (Some(index), Some(path)) => {
                write!(f, "delta operation {index} at {}: {}", path.dotted(), self.why)
            }
            (Some(index), None) => write!(f, "delta operation {index}: {}", self.why),
            (None, Some(path)) => write!(f, "{}: {}", path.dotted(), self.why),
            (None, None) => self.why.fmt(f),
        }
    }
}

impl std::error::Error for DeltaError {}

impl Op {
    /// Puts `value` at `path`.
    pub fn set(path: Pointer, value: Value) -> Op {
        Op { action: Action::Set, path, value: Some(value) }
    }

    /// Adds an item to the array at `path`.
    pub fn append(path: Pointer, value: Value) -> Op {
        Op { action: Action::Append, path, value: Some(value) }
    }

    fn from_value(value: &Value) -> Result<Op, DeltaErrorKind> {
        let object = value.as_object().ok_or(DeltaErrorKind::Shape)?;
        let mut actions =
            Action::ALL.iter().filter_map(|action| Some((*action, object.get(action.as_str())?)));
        let (Some((action, path)), None) = (actions.next(), actions.next()) else {
            return Err(DeltaErrorKind::Shape);
        };
        let value = object.get("value").cloned();
        if object.len() != 1 + usize::from(value.is_some()) || value.is_none() != (action == Action::Remove) {
            return Err(DeltaErrorKind::Shape);
        }
        let path: Pointer = path.as_str().and_then(|text| text.parse().ok()).ok_or(DeltaErrorKind::Path)?;
        if path.as_str().is_empty() {
            return Err(DeltaErrorKind::Path);
        }
        Ok(Op { action, path, value })
    }

    fn to_value(&self) -> Value {
        let action = (self.action.as_str(), Value::from(self.path.as_str()));
        match &self.value {
            Some(value) => Value::record([action, ("value", value.clone())]),
            None => Value::record([action]),
        }
    }

    fn apply(&self, state: &mut Value) -> Result<(), DeltaErrorKind> {
        let tokens: Vec<_> = self.path.tokens().collect();
        let depth = self.value.as_ref().map_or(0, Value::depth) + usize::from(self.action == Action::Append);
        if tokens.len() + depth > DEPTH_MAX {
            return Err(DeltaErrorKind::TooDeep);
        }
        let mut steps = Vec::with_capacity(tokens.len());
        steps.extend(tokens.iter().map(|token| &**token));
        self.apply_below(state, &steps)
    }

    fn apply_below(&self, parent: &mut Value, steps: &[&str]) -> Result<(), DeltaErrorKind> {
        let [step, rest @ ..] = steps else { return Err(DeltaErrorKind::Path) };
        let makes_parents = matches!(self.action, Action::Set | Action::Append);
        match parent {
            // Inside a tagged value there is nothing to write: it is one value, whatever it is written with.
            Value::Object(object) if is_tagged(object) => Err(DeltaErrorKind::NotContainer("tagged value")),
            Value::Object(_) if is_tag_name(step) => Err(DeltaErrorKind::TagName),
            Value::Object(object) if rest.is_empty() && self.action == Action::Remove => {
                object.remove(step).map(|_| ()).ok_or(DeltaErrorKind::Missing)
            }
            Value::Object(object) => {
                // A personal path stays personal whatever is written there.
                if let Some(value) = object.value_mut(step) {
                    if !rest.is_empty() {
                        return self.apply_below(value, rest);
                    }
                    *value = self.changed(Some(value), rest)?;
                    return Ok(());
                }
                let value = match rest.is_empty() {
                    true => self.changed(None, rest)?,
                    false if makes_parents => self.changed(Some(&Value::Object(Object::default())), rest)?,
                    false => return Err(DeltaErrorKind::Missing),
                };
                object.set(step, value);
                Ok(())
            }
            Value::Array(array) => {
                let index =
                    array_index(step).filter(|index| *index < array.len()).ok_or(DeltaErrorKind::Missing)?;
                if rest.is_empty() && self.action == Action::Remove {
                    array.remove(index);
                    return Ok(());
                }
                let value = self.changed(array.get(index), rest)?;
                array.set(index, value);
                Ok(())
            }
            other => Err(DeltaErrorKind::NotContainer(other.type_name())),
        }
    }

    /// Returns the value after the operation, given the value before it.
    fn changed(&self, before: Option<&Value>, rest: &[&str]) -> Result<Value, DeltaErrorKind> {
        if !rest.is_empty() {
            let mut child = before.cloned().ok_or(DeltaErrorKind::Missing)?;
            self.apply_below(&mut child, rest)?;
            return Ok(child);
        }
        let value = || self.value.clone().ok_or(DeltaErrorKind::Shape);
        match (self.action, before) {
            (Action::Set, _) => value(),
            (Action::Append, None) => Ok(Value::array([value()?])),
            (Action::Append, Some(Value::Array(array))) => {
                let mut array = array.clone();
                array.push(value()?);
                Ok(Value::Array(array))
            }
            (Action::Append, Some(other)) => Err(DeltaErrorKind::NotArray(other.type_name())),
            (Action::Add, None) | (Action::Remove, _) => Err(DeltaErrorKind::Missing),
            (Action::Add, Some(before)) => {
                let number =
                    |value: &Value| value.as_f64().ok_or(DeltaErrorKind::NotNumber(value.type_name()));
                let sum = number(before)? + number(&value()?)?;
                Number::from_f64(sum).map(Value::Number).ok_or(DeltaErrorKind::Overflow)
            }
        }
    }
}

impl Delta {
    /// Reads a delta from its stored form.
    pub fn from_value(value: &Value) -> Result<Delta, DeltaError> {
        let shape = DeltaError { index: None, path: None, why: DeltaErrorKind::Shape };
        let items = value.as_array().ok_or(shape)?;
        let read = |(index, item): (usize, &Value)| {
            Op::from_value(item).map_err(|why| DeltaError { index: Some(index), path: None, why })
        };
        Ok(Delta(items.iter().enumerate().map(read).collect::<Result<_, _>>()?))
    }

    /// Returns the stored form.
    pub fn to_value(&self) -> Value {
        Value::array(self.0.iter().map(Op::to_value))
    }

    /// Returns the delta as answers show it: paths and values have the names of the user.
    pub fn written(&self) -> Value {
        Value::array(self.0.iter().map(|op| {
            let action = (op.action.as_str(), Value::from(op.path.written()));
            let value = op.value.as_ref().map(|value| ("value", value.clone()));
            Value::record([action].into_iter().chain(value))
        }))
    }

    /// Doubles the `$` in front of names in paths, as the door does with names in values: what a user wrote becomes
    /// what is stored.
    #[must_use]
    pub fn through_the_door(mut self) -> Delta {
        for op in &mut self.0 {
            op.path = Pointer::of_written(op.path.as_str()).expect("the text of a pointer is one");
        }
        self
    }

    /// Tells whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the state after the delta. `state` itself is untouched.
    pub fn apply(&self, state: &Value) -> Result<Value, DeltaError> {
        let mut after = state.clone();
        self.apply_to(&mut after)?;
        Ok(after)
    }

    /// As [`Delta::apply`], in the state itself, which is of no use where this fails: what was changed before stays changed.
    /// Faster if the state is not shared.
    pub fn apply_to(&self, state: &mut Value) -> Result<(), DeltaError> {
        self.0.iter().enumerate().try_for_each(|(index, op)| {
            op.apply(state).map_err(|why| DeltaError { index: Some(index), path: Some(op.path.clone()), why })
        })
    }

    /// Walks the places written to.
    pub fn paths(&self) -> impl Iterator<Item = &Pointer> {
        self.0.iter().map(|op| &op.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse_door;

    fn check(state: &str, delta: &str, expected: &str) {
        let state = parse_door(state.as_bytes()).unwrap();
        let delta = parse_door(delta.as_bytes()).unwrap();
        let found = match Delta::from_value(&delta).and_then(|delta| delta.apply(&state)) {
            Ok(after) => after.to_string(),
            Err(error) => format!("{} {error}", error.code()),
        };
        assert_eq!(found, expected, "{delta} on {state}");
    }

    #[test]
    fn each_operation_does_what_its_name_says() {
        check("{}", r#"[{"set":"/a/b","value":1}]"#, r#"{"a":{"b":1}}"#);
        check(r#"{"a":1}"#, r#"[{"set":"/a","value":null}]"#, r#"{"a":null}"#);
        check(r#"{"a":1,"b":2}"#, r#"[{"remove":"/a"}]"#, r#"{"b":2}"#);
        check(
            "{}",
            r#"[{"append":"/x/list","value":1},{"append":"/x/list","value":2}]"#,
            r#"{"x":{"list":[1,2]}}"#,
        );
        check(r#"{"n":0.1}"#, r#"[{"add":"/n","value":0.2}]"#, r#"{"n":0.30000000000000004}"#);
        check(r#"{"l":[1,2,3]}"#, r#"[{"set":"/l/1","value":9},{"remove":"/l/0"}]"#, r#"{"l":[9,3]}"#);
        check(r#"{"l":[{"a":1}]}"#, r#"[{"add":"/l/0/a","value":-1}]"#, r#"{"l":[{"a":0}]}"#);
        check(r#"{"0":1}"#, r#"[{"set":"/0","value":2}]"#, r#"{"0":2}"#);
        check(r#"{"a~b":{"c/d":1}}"#, r#"[{"remove":"/a~0b/c~1d"}]"#, r#"{"a~b":{}}"#);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_the_place() {
        check("{}", r#"[{"remove":"/a"}]"#, "E0404 delta operation 0 at a: there is nothing at this path");
        check(
            "{}",
            r#"[{"add":"/a","value":1}]"#,
            "E0404 delta operation 0 at a: there is nothing at this path",
        );
        check(
            "{}",
            r#"[{"add":"/a/b","value":1}]"#,
            "E0404 delta operation 0 at a.b: there is nothing at this path",
        );
        check(
            r#"{"a":1}"#,
            r#"[{"set":"/a/b","value":1}]"#,
            "E0404 delta operation 0 at a.b: a number has no members",
        );
        check(
            r#"{"a":1}"#,
            r#"[{"append":"/a","value":1}]"#,
            "E0404 delta operation 0 at a: append needs an array, and there is a number",
        );
        check(
            r#"{"a":"x"}"#,
            r#"[{"add":"/a","value":1}]"#,
            "E0404 delta operation 0 at a: add needs two numbers within 2^53-1, and there is a string",
        );
        check(
            r#"{"a":9007199254740993}"#,
            r#"[{"add":"/a","value":1}]"#,
            "E0404 delta operation 0 at a: add needs two numbers within 2^53-1, and there is a number",
        );
        check(
            r#"{"a":1e308}"#,
            r#"[{"add":"/a","value":1e308}]"#,
            "E0404 delta operation 0 at a: the sum is not a number",
        );
        // A path can make no tagged value, and none can be written into.
        check(
            "{}",
            r#"[{"set":"/$float","value":"NaN"}]"#,
            "E0404 delta operation 0 at [\"$float\"]: a name with one `$` in front belongs to tagged values; a user's own is stored with two",
        );
        check(
            r#"{"x":NaN}"#,
            r#"[{"set":"/x/a","value":1}]"#,
            "E0404 delta operation 0 at x.a: a tagged value has no members",
        );
        check(
            r#"{"l":[]}"#,
            r#"[{"set":"/l/0","value":1}]"#,
            "E0404 delta operation 0 at l[0]: there is nothing at this path",
        );
        for bad in [
            "{}",
            r#"[1]"#,
            r#"[{"set":"/a"}]"#,
            r#"[{"remove":"/a","value":1}]"#,
            r#"[{"set":"/a","add":"/a","value":1}]"#,
            r#"[{"put":"/a","value":1}]"#,
        ] {
            let delta = parse_door(bad.as_bytes()).unwrap();
            assert_eq!(Delta::from_value(&delta).unwrap_err().code(), "E0209", "{bad}");
        }
        for bad in [r#"[{"set":"","value":1}]"#, r#"[{"set":"a","value":1}]"#, r#"[{"set":3,"value":1}]"#] {
            let delta = parse_door(bad.as_bytes()).unwrap();
            assert_eq!(Delta::from_value(&delta).unwrap_err().why, DeltaErrorKind::Path, "{bad}");
        }
    }

    #[test]
    fn a_state_cannot_grow_too_deep() {
        let deep = format!("[{{\"set\":\"{}\",\"value\":[]}}]", "/a".repeat(128));
        check(
            "{}",
            &deep,
            &format!(
                "E0204 delta operation 0 at {}: the state would be nested deeper than 128 levels",
                ["a"; 128].join(".")
            ),
        );
    }

    #[test]
    fn a_delta_reads_back_from_its_stored_form() {
        let text = r#"[{"set":"/a","value":null},{"remove":"/b"},{"append":"/c","value":[1]},{"add":"/d","value":1}]"#;
        let delta = Delta::from_value(&parse_door(text.as_bytes()).unwrap()).unwrap();
        assert_eq!(Delta::from_value(&delta.to_value()), Ok(delta));
    }
}
