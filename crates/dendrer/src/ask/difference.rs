//! The places at which two states differ, as deep as both sides have the same kind.

use dendrer_object::{Pointer, Value};

/// One place of the state with its value before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlaceChange {
    /// The place.
    pub path: Pointer,
    /// The value before; `None` if there was none.
    pub before: Option<Value>,
    /// The value after; `None` if the place is missing after it.
    pub after: Option<Value>,
}

/// Lists the places at which two values differ: in each object those of the base first, in canonical order, then
/// what is new. `base` is the side before.
pub fn differences(base: &Value, value: &Value) -> Vec<PlaceChange> {
    let mut found = Vec::new();
    walk(Some(base), Some(value), &mut Vec::new(), &mut found);
    found
}

fn walk(
    before: Option<&Value>,
    after: Option<&Value>,
    steps: &mut Vec<String>,
    found: &mut Vec<PlaceChange>,
) {
    match (before, after) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            if a.same_tree(b) {
                return;
            }
            for (name, left) in a.iter() {
                below(Some(left), b.get(name), name, steps, found);
            }
            for (name, right) in b.iter().filter(|(name, _)| a.get(name).is_none()) {
                below(None, Some(right), name, steps, found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            if a.same_tree(b) {
                return;
            }
            for index in 0..a.len().max(b.len()) {
                below(a.get(index), b.get(index), &index.to_string(), steps, found);
            }
        }
        (before, after) if before == after => {}
        (before, after) => found.push(PlaceChange {
            path: Pointer::of(steps.iter().map(String::as_str)),
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
}

fn below(
    before: Option<&Value>,
    after: Option<&Value>,
    name: &str,
    steps: &mut Vec<String>,
    found: &mut Vec<PlaceChange>,
) {
    steps.push(name.to_owned());
    walk(before, after, steps, found);
    steps.pop();
}

#[cfg(test)]
mod tests {
    use super::*;
    use dendrer_object::json::parse_door;

    #[test]
    fn every_difference_is_listed_with_both_sides() {
        let check = |base: &str, value: &str, expected: &[&str]| {
            let read = |text: &str| parse_door(text.as_bytes()).unwrap();
            let found = differences(&read(base), &read(value));
            let side = |side: &Option<Value>| side.as_ref().map_or_else(|| "-".to_owned(), Value::to_string);
            let one = |change: &PlaceChange| {
                format!("{} {} {}", change.path.dotted(), side(&change.before), side(&change.after))
            };
            let found: Vec<String> = found.iter().map(one).collect();
            assert_eq!(found, expected, "{base} {value}");
        };
        check(r#"{"a":1}"#, r#"{"a":1}"#, &[]);
        check(
            r#"{"a":{"b":1},"c":[1,2]}"#,
            r#"{"a":{"b":2,"d":3},"c":[1]}"#,
            &["a.b 1 2", "a.d - 3", "c[1] 2 -"],
        );
        check(r#"{"a":{}}"#, r#"{"a":[]}"#, &["a {} []"]);
        check("1", "2", &[" 1 2"]);
    }
}
