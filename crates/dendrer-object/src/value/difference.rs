//! Compares two values: finds the first place that differs, or every one.

use std::ops::ControlFlow;

use super::{Value, compare_names};
use crate::pointer::Pointer;
use crate::tag::is_tagged;

/// Containers with more members than this, both sides together, are compared by digest before they are walked. States
/// remember theirs; a small container is walked sooner than hashed.
const WALKED_MAX: usize = 32;

/// A place at which two values differ, with both sides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Where.
    pub path: Pointer,
    /// The value on the left; `None` if it is missing.
    pub left: Option<Value>,
    /// The value on the right; `None` if it is missing.
    pub right: Option<Value>,
}

/// Finds the first place, in canonical order, at which two values differ, going as deep as both sides have the same
/// kind. Equal subtrees are skipped where that can be seen without walking them.
pub fn first_difference(left: &Value, right: &Value) -> Option<Difference> {
    let mut first = None;
    let _ = walk(Some(left), Some(right), &mut Vec::new(), &mut |found| {
        first = Some(found);
        ControlFlow::Break(())
    });
    first
}

/// Lists every place at which two values differ, in canonical order, as [`first_difference`] finds the first.
pub fn differences(left: &Value, right: &Value) -> Vec<Difference> {
    let mut all = Vec::new();
    let _ = walk(Some(left), Some(right), &mut Vec::new(), &mut |found| {
        all.push(found);
        ControlFlow::Continue(())
    });
    all
}

fn walk(
    left: Option<&Value>,
    right: Option<&Value>,
    steps: &mut Vec<String>,
    f: &mut dyn FnMut(Difference) -> ControlFlow<()>,
) -> ControlFlow<()> {
    let mut below = |left: Option<&Value>, right: Option<&Value>, name: &str| {
        steps.push(name.to_owned());
        let flow = walk(left, right, steps, f);
        steps.pop();
        flow
    };
    match (left, right) {
        // A tagged value is compared as a whole, whatever its spelling.
        (Some(Value::Object(a)), Some(Value::Object(b))) if !is_tagged(a) && !is_tagged(b) => {
            let many = a.len() + b.len() > WALKED_MAX;
            if a.same_tree(b) || many && a.digest() == b.digest() {
                return ControlFlow::Continue(());
            }
            let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
            loop {
                let order = match (a.peek(), b.peek()) {
                    (None, None) => return ControlFlow::Continue(()),
                    (Some(_), None) => std::cmp::Ordering::Less,
                    (None, Some(_)) => std::cmp::Ordering::Greater,
                    (Some(x), Some(y)) => compare_names(x.0, y.0),
                };
                let x = if order.is_le() { a.next() } else { None };
                let y = if order.is_ge() { b.next() } else { None };
                let name = x.or(y).map_or("", |(name, _)| name);
                below(x.map(|(_, v)| v), y.map(|(_, v)| v), name)?;
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            let many = a.len() + b.len() > WALKED_MAX;
            if a.same_tree(b) || many && a.digest() == b.digest() {
                return ControlFlow::Continue(());
            }
            (0..a.len().max(b.len()))
                .try_for_each(|index| below(a.get(index), b.get(index), &index.to_string()))
        }
        (left, right) if left == right => ControlFlow::Continue(()),
        (left, right) => f(Difference {
            path: Pointer::of(steps.iter().map(String::as_str)),
            left: left.cloned(),
            right: right.cloned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse_door;
    use crate::tag;

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
        let at_a = |bytes: &[u8]| Value::record([("a", tag::bytes(bytes))]);
        let found = first_difference(&at_a(&[0, 0, 0]), &at_a(&[0, 0, 1])).unwrap();
        assert_eq!((found.path.as_str(), found.right), ("/a", Some(tag::bytes(&[0, 0, 1]))));
        check(r#"{"a":1}"#, r#"{"a":{}}"#, "/a 1 {}");
        check("1", "2", " 1 2");
    }

    #[test]
    fn every_difference_is_listed_in_canonical_order() {
        let wide = |n: u64, odd: u64| {
            let member = |at: u64| (format!("m{at:03}"), Value::from(if at == n { odd } else { 0 }));
            let inner = || Value::record((0..40).map(member));
            Value::record([("a", inner()), ("b", Value::array((0..40).map(|_| inner())))])
        };
        let check = |left: &Value, right: &Value, expected: &[&str]| {
            let found = differences(left, right);
            let paths: Vec<&str> = found.iter().map(|found| found.path.as_str()).collect();
            assert_eq!(paths, expected);
            assert_eq!(found.first(), first_difference(left, right).as_ref());
            // The other way round it is the same list with the sides swapped.
            let swap = |found: Difference| Difference { left: found.right, right: found.left, ..found };
            assert_eq!(differences(right, left).into_iter().map(swap).collect::<Vec<_>>(), found);
        };
        let read = |text: &str| parse_door(text.as_bytes()).unwrap();
        check(
            &read(r#"{"a":{"b":1},"c":[1,2]}"#),
            &read(r#"{"a":{"b":2,"d":3},"c":[1]}"#),
            &["/a/b", "/a/d", "/c/1"],
        );
        check(&wide(50, 1), &wide(51, 1), &[]);
        let mut one = wide(50, 0);
        if let Value::Object(members) = &mut one {
            members.set("a", Value::record([("m000", Value::from(0u64))]));
        }
        let gone: Vec<String> = (1..40).map(|at| format!("/a/m{at:03}")).collect();
        check(&one, &wide(50, 0), &gone.iter().map(String::as_str).collect::<Vec<_>>());
    }
}
