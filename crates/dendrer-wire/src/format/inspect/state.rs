//! States of a sample: JSON patches of its events, as changes of the state of a run.
//!
//! A log states a change when a span ends, compared with the value at its begin; a span around it states the change again. So each
//! patch is applied to the value at the begin of its span, and the change of the run is what differs from the value before. Rule: a
//! patch that does not fit changes nothing and makes its place unknown; test `a_patch_that_does_not_fit_makes_its_place_unknown`.

use std::collections::HashMap;
use std::sync::Arc;

use dendrer_object::delta::{Action, Op};
use dendrer_object::pointer::array_index;
use dendrer_object::value::Object;
use dendrer_object::{Delta, Pointer, Value, tag};

use crate::import::error::ImportError;
use crate::inflate;

/// The members of the state of a run.
pub(super) const STORE: &str = "store";
pub(super) const TASK: &str = "task";

/// The store and the state of the task, as far as events stated them.
#[derive(Debug, Clone)]
struct Both {
    store: Value,
    task: Value,
}

impl Both {
    fn member(&mut self, name: &str) -> &mut Value {
        if name == STORE { &mut self.store } else { &mut self.task }
    }
}

/// The state at each place of a sample.
#[derive(Debug)]
pub(super) struct States {
    now: Both,
    /// At the begin of each span, by its id.
    begins: HashMap<Arc<str>, Both>,
    /// At the begin of each step that is open, in logs without spans.
    steps: Vec<Both>,
    /// How many items of lists were moved.
    moved: u64,
}

impl Default for States {
    fn default() -> States {
        let now = Both { store: Value::object(), task: Value::object() };
        States { now, begins: HashMap::new(), steps: Vec::new(), moved: 0 }
    }
}

impl States {
    /// Notes that a span begins.
    pub(super) fn begin(&mut self, span: &str) {
        self.begins.entry(span.into()).or_insert_with(|| self.now.clone());
    }

    /// Notes that a step begins or ends.
    pub(super) fn step(&mut self, begins: bool) {
        match begins {
            true => self.steps.push(self.now.clone()),
            false => drop(self.steps.pop()),
        }
    }

    /// Takes the state with which a sample begins.
    pub(super) fn init(&mut self, state: &Value) -> Delta {
        let task = if state.as_object().is_some() { state.clone() } else { Value::object() };
        let store = task.get("store").filter(|store| store.as_object().is_some());
        let store = store.cloned().unwrap_or_else(Value::object);
        // Both are there from now on, even if they are empty.
        let ops = [(STORE, &store), (TASK, &task)];
        let ops = ops.map(|(name, value)| Op::set(Pointer::of([name]), value.clone())).to_vec();
        self.now = Both { store, task };
        Delta(ops)
    }

    /// Applies the changes of an event to the value at the begin of its span, and returns what changes in the run.
    pub(super) fn patch(&mut self, name: &'static str, span: Option<&str>, changes: &[Value]) -> Delta {
        let begin = span.and_then(|span| self.begins.get(span)).or(self.steps.last());
        let mut after = begin.unwrap_or(&self.now).clone();
        let after = std::mem::replace(after.member(name), Value::Null);
        let mut patched = after;
        let fits = changes.iter().all(|change| apply(&mut patched, change, &mut self.moved).is_some());
        if !fits {
            return Delta(vec![unknown(name)]);
        }
        let now = self.now.member(name);
        let mut ops = Vec::new();
        change(now, &patched, &mut vec![name.to_owned()], &mut ops);
        *now = patched;
        Delta(ops)
    }

    /// Refuses changes that take much more work than their text is long.
    pub(super) fn check(&self, size: usize) -> Result<(), ImportError> {
        match inflate::is_too_large(self.moved, size as u64) {
            true => Err(super::too_large("the changes of its state move too many items of lists")),
            false => Ok(()),
        }
    }
}

/// A change that no state can take, so that the place is unknown from there on.
fn unknown(name: &str) -> Op {
    Op { action: Action::Add, path: Pointer::of([name]), value: Some(Value::Null) }
}

/// Applies one change; `None` if it does not fit.
fn apply(value: &mut Value, change: &Value, moved: &mut u64) -> Option<()> {
    let at = |name: &str| Some(names(change.get(name)?.as_str()?));
    let path = at("path")??;
    let new = || change.get("value").cloned().unwrap_or(Value::Null);
    match change.get("op")?.as_str()? {
        "add" => put(value, &path, new(), true, moved),
        "replace" => put(value, &path, new(), false, moved),
        "remove" => take(value, &path, moved).map(drop),
        "move" => {
            let taken = take(value, &at("from")??, moved)?;
            put(value, &path, taken, true, moved)
        }
        "copy" => {
            let copied = get(value, &at("from")??)?.clone();
            put(value, &path, copied, true, moved)
        }
        "test" => (*get(value, &path)? == new()).then_some(()),
        _ => None,
    }
}

/// The names of a path, as they are stored; `None` if it is no pointer.
fn names(path: &str) -> Option<Vec<String>> {
    let pointer = Pointer::of_written(path).ok()?;
    Some(pointer.tokens().map(|name| name.into_owned()).collect())
}

fn get<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, name| match value {
        Value::Object(object) => object.get(name),
        Value::Array(array) => array.get(array_index(name)?),
        _ => None,
    })
}

/// Sets a value; in a list it comes in front of the item that is there, if it is to be added.
fn put(value: &mut Value, path: &[String], new: Value, is_add: bool, moved: &mut u64) -> Option<()> {
    let [name, rest @ ..] = path else {
        *value = new;
        return Some(());
    };
    match value {
        Value::Object(object) if rest.is_empty() => {
            (is_add || object.contains_key(name)).then(|| object.set(name, new))
        }
        Value::Object(object) => put(object.value_mut(name)?, rest, new, is_add, moved),
        Value::Array(array) if rest.is_empty() && is_add => {
            let at = if name == "-" { array.len() } else { array_index(name)? };
            if at < array.len() {
                *moved += array.len() as u64;
                let items = array.iter().take(at).cloned().chain([new]).chain(array.iter().skip(at).cloned());
                *value = Value::array(items.collect::<Vec<_>>());
                return Some(());
            }
            (at == array.len()).then(|| array.push(new))
        }
        Value::Array(array) => {
            let at = array_index(name).filter(|at| *at < array.len())?;
            let mut inner = array.get(at)?.clone();
            put(&mut inner, rest, new, is_add, moved)?;
            array.set(at, inner);
            Some(())
        }
        _ => None,
    }
}

/// Takes a value out.
fn take(value: &mut Value, path: &[String], moved: &mut u64) -> Option<Value> {
    let [name, rest @ ..] = path else { return Some(std::mem::replace(value, Value::Null)) };
    match value {
        Value::Object(object) if rest.is_empty() => object.remove(name),
        Value::Object(object) => take(object.value_mut(name)?, rest, moved),
        Value::Array(array) => {
            let at = array_index(name).filter(|at| *at < array.len())?;
            if rest.is_empty() {
                *moved += array.len() as u64;
                return Some(array.remove(at));
            }
            let mut inner = array.get(at)?.clone();
            let taken = take(&mut inner, rest, moved)?;
            array.set(at, inner);
            Some(taken)
        }
        _ => None,
    }
}

fn is_tagged(object: &Object) -> bool {
    object.iter().any(|(name, _)| tag::is_tag_name(name))
}

/// Adds the operations that make one value of another.
fn change(before: &Value, after: &Value, path: &mut Vec<String>, ops: &mut Vec<Op>) {
    let set = |path: &[String]| Op::set(Pointer::of(path.iter().map(String::as_str)), after.clone());
    match (before, after) {
        (Value::Object(old), Value::Object(new)) if !is_tagged(old) && !is_tagged(new) => {
            if old.same_tree(new) {
                return;
            }
            for (name, _) in old.iter().filter(|(name, _)| !new.contains_key(name)) {
                path.push((**name).to_owned());
                let path_of = Pointer::of(path.iter().map(String::as_str));
                ops.push(Op { action: Action::Remove, path: path_of, value: None });
                path.pop();
            }
            for (name, value) in new.iter() {
                path.push((**name).to_owned());
                match old.get(name) {
                    Some(old) => change(old, value, path, ops),
                    None => ops.push(Op::set(Pointer::of(path.iter().map(String::as_str)), value.clone())),
                }
                path.pop();
            }
        }
        (Value::Array(old), Value::Array(new)) if new.len() >= old.len() => {
            if old.same_tree(new) {
                return;
            }
            for (index, (old, new)) in old.iter().zip(new.iter()).enumerate() {
                path.push(index.to_string());
                change(old, new, path, ops);
                path.pop();
            }
            let at = Pointer::of(path.iter().map(String::as_str));
            ops.extend(new.iter().skip(old.len()).map(|item| Op::append(at.clone(), item.clone())));
        }
        (old, new) if old == new => {}
        _ => ops.push(set(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dendrer_object::json::parse_door;

    fn of(text: &str) -> Value {
        parse_door(text.as_bytes()).unwrap()
    }

    fn changes(text: &str) -> Vec<Value> {
        of(text).as_array().unwrap().iter().cloned().collect()
    }

    #[test]
    fn a_change_that_an_outer_span_states_again_happens_once() {
        let mut states = States::default();
        let mut state = of(r#"{"counters":{}}"#);
        let mut run = |delta: Delta| {
            state = delta.apply(&state).unwrap();
            state.to_string()
        };
        run(states.init(&of(r#"{"messages":[],"store":{"list":[1]}}"#)));
        states.begin("outer");
        states.begin("inner");
        let inner =
            changes(r#"[{"op":"add","path":"/list/0","value":0},{"op":"add","path":"/a~1b","value":null}]"#);
        let after = r#"{"counters":{},"store":{"a/b":null,"list":[0,1]},"task":{"messages":[],"store":{"list":[1]}}}"#;
        assert_eq!(run(states.patch(STORE, Some("inner"), &inner)), after);
        assert_eq!(states.patch(STORE, Some("outer"), &inner).0, []);
        let more =
            changes(r#"[{"op":"move","from":"/list/1","path":"/one"},{"op":"remove","path":"/list"}]"#);
        states.begin("next");
        let after =
            r#"{"counters":{},"store":{"a/b":null,"one":1},"task":{"messages":[],"store":{"list":[1]}}}"#;
        assert_eq!(run(states.patch(STORE, Some("next"), &more)), after);
    }

    #[test]
    fn a_patch_that_does_not_fit_is_no_change() {
        for fault in [
            r#"[{"op":"remove","path":"/none"}]"#,
            r#"[{"op":"add","path":"/a/9","value":1}]"#,
            r#"[{"op":"add","path":"/none/x","value":1}]"#,
            r#"[{"op":"replace","path":"/none","value":1}]"#,
            r#"[{"op":"test","path":"/a","value":1}]"#,
            r#"[{"op":"turn","path":"/a"}]"#,
            r#"[{"op":"add","path":"a","value":1}]"#,
            r#"[{"op":"add"}]"#,
            "[1]",
        ] {
            let mut states = States::default();
            states.init(&of(r#"{"store":{"a":[]}}"#));
            let delta = states.patch(STORE, None, &changes(fault));
            assert!(delta.apply(&of(r#"{"store":{"a":[]}}"#)).is_err(), "{fault}");
            assert_eq!(states.now.store, of(r#"{"a":[]}"#), "{fault}");
        }
    }
}
