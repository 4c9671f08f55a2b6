//! Where two values first differ.

use super::{Value, compare_names};
use crate::pointer::Pointer;

/// The first place, in canonical order, at which two values differ, with both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where.
    pub path: Pointer,
    /// What stands there on the left; `None` if nothing does.
    pub left: Option<Value>,
    /// What stands there on the right.
    pub right: Option<Value>,
}

/// Finds the first place at which two values differ, going as deep as both sides have the same kind.
/// Subtrees that are one in memory are skipped.
pub fn first_difference(left: &Value, right: &Value) -> Option<Difference> {
    let mut steps = Vec::new();
    let (left, right) = search(Some(left), Some(right), &mut steps)?;
    let path = Pointer::of(steps.iter().map(String::as_str));
    Some(Difference { path, left: left.cloned(), right: right.cloned() })
}

type Sides<'a> = (Option<&'a Value>, Option<&'a Value>);

fn search<'a>(
    left: Option<&'a Value>,
    right: Option<&'a Value>,
    steps: &mut Vec<String>,
) -> Option<Sides<'a>> {
    match (left, right) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            if a.same_tree(b) {
                return None;
            }
            let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
            loop {
                let order = match (a.peek(), b.peek()) {
                    (None, None) => return None,
                    (Some(_), None) => std::cmp::Ordering::Less,
                    (None, Some(_)) => std::cmp::Ordering::Greater,
                    (Some(x), Some(y)) => compare_names(x.0, y.0),
                };
                let x = if order.is_le() { a.next() } else { None };
                let y = if order.is_ge() { b.next() } else { None };
                let name = x.or(y).map(|(name, _)| name.to_string()).unwrap_or_default();
                steps.push(name);
                if let Some(found) = search(x.map(|(_, v)| v), y.map(|(_, v)| v), steps) {
                    return Some(found);
                }
                steps.pop();
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            if a.same_tree(b) {
                return None;
            }
            for index in 0..a.len().max(b.len()) {
                steps.push(index.to_string());
                if let Some(found) = search(a.get(index), b.get(index), steps) {
                    return Some(found);
                }
                steps.pop();
            }
            None
        }
        (left, right) if left == right => None,
        sides => Some(sides),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse_door;

    #[test]
    fn the_first_difference_is_named_with_both_sides() {
        let check = |left: &str, right: &str, expected: &str| {
            let (left, right) = (parse_door(left.as_bytes()).unwrap(), parse_door(right.as_bytes()).unwrap());
            let show = |side: Option<Value>| side.map_or("-".to_owned(), |value| value.to_string());
            let found = first_difference(&left, &right)
                .map_or("equal".to_owned(), |d| format!("{} {} {}", d.path, show(d.left), show(d.right)));
            assert_eq!(found, expected);
        };
        check(r#"{"a":{"b":[1,2]}}"#, r#"{"a":{"b":[1,2]}}"#, "equal");
        check(r#"{"a":{"b":[1,2]}}"#, r#"{"a":{"b":[1,3]}}"#, "/a/b/1 2 3");
        check(r#"{"a":1,"c":1}"#, r#"{"a":1,"b":2,"c":1}"#, "/b - 2");
        check(r#"{"a":[1,2]}"#, r#"{"a":[1]}"#, "/a/1 2 -");
        check(r#"{"a":1}"#, r#"{"a":{}}"#, "/a 1 {}");
        check("1", "2", " 1 2");
    }
}
