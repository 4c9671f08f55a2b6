//! How two states differ: every place, as deep as both sides have the same kind.

use dendrer_object::{Pointer, Value};

use crate::show::Changed;

/// Lists the places at which two values differ: in each object those of the base first, in canonical order, then
/// what is new. `base` is the side before.
pub fn differences(base: &Value, value: &Value) -> Vec<Changed> {
    let mut found = Vec::new();
    walk(Some(base), Some(value), &mut Vec::new(), &mut found);
    found
}

fn walk(before: Option<&Value>, after: Option<&Value>, steps: &mut Vec<String>, found: &mut Vec<Changed>) {
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
        (before, after) => found.push(Changed {
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
    found: &mut Vec<Changed>,
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
            let lines: Vec<String> = found.iter().map(|changed| changed.line(None)).collect();
            assert_eq!(lines, expected, "{base} {value}");
        };
        check(r#"{"a":1}"#, r#"{"a":1}"#, &[]);
        check(
            r#"{"a":{"b":1},"c":[1,2]}"#,
            r#"{"a":{"b":2,"d":3},"c":[1]}"#,
            &["~ a.b  1 -> 2", "+ a.d  3", "- c[1]  2"],
        );
        check(r#"{"a":{}}"#, r#"{"a":[]}"#, &["~ a  {} -> []"]);
        check("1", "2", &["~ state  1 -> 2"]);
    }
}
