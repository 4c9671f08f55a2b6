//! Places that a step writes to: a declared field, and segments below it.
//!
//! `orders[t.action.params.id].status`: a segment is a name, `[expr]`, or `[first x: cond]`. Only the first segment
//! is fixed, so that the fields which a pack writes are known before anything runs.

use std::sync::Arc;

use crate::expr::Expr;

/// A place in the state, to be found when a step runs.
#[derive(Debug)]
pub(crate) struct Target {
    /// The declared field in which it lies.
    pub(crate) field: Arc<str>,
    pub(crate) segments: Vec<Segment>,
}

/// One step down.
#[derive(Debug)]
pub(crate) enum Segment {
    /// The member of this name.
    Name(Arc<str>),
    /// The member or item that the value of an expression names.
    Index(Expr),
    /// The first item of a list for which a condition holds.
    First { name: Arc<str>, condition: Expr },
}

impl Target {
    /// Whether finding the place looks through a list.
    pub(crate) fn searches(&self) -> bool {
        self.segments.iter().any(|segment| matches!(segment, Segment::First { .. }))
    }

    /// Walks the expressions in it.
    pub(crate) fn for_each_expr<'e>(&'e self, f: &mut dyn FnMut(&'e Expr)) {
        for segment in &self.segments {
            match segment {
                Segment::Name(_) => {}
                Segment::Index(expr) | Segment::First { condition: expr, .. } => f(expr),
            }
        }
    }
}

/// A segment as it was written, with where its text begins, in bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Written<'a> {
    Name(usize, &'a str),
    Index(usize, &'a str),
    First { at: usize, name: &'a str, condition_at: usize, condition: &'a str },
}

/// Takes a text apart into segments, of which the first is a name. Fails with the byte at which it makes no sense.
pub(crate) fn split(text: &str) -> Result<Vec<Written<'_>>, (usize, &'static str)> {
    let mut segments = Vec::new();
    let mut at = skip_blanks(text, 0);
    let end = text.trim_end().len();
    if at >= end {
        return Err((0, "a path begins with the name of a field"));
    }
    loop {
        let name = &text[at..end];
        let length =
            name.bytes().take_while(|c| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'$')).count();
        if length == 0 {
            return Err((at, "a name is expected here; any other name stands as [\"...\"]"));
        }
        segments.push(Written::Name(at, &name[..length]));
        at += length;
        loop {
            match text[at..end].bytes().next() {
                None => return Ok(segments),
                Some(b'[') => {
                    let close = closing(&text[..end], at).ok_or((at, "this bracket is not closed"))?;
                    segments.push(bracket(&text[at + 1..close], at + 1)?);
                    at = close + 1;
                }
                Some(b'.') => {
                    at += 1;
                    break;
                }
                Some(_) => return Err((at, "a path goes on with `.name`, `[expr]` or `[first x: cond]`")),
            }
        }
    }
}

fn skip_blanks(text: &str, from: usize) -> usize {
    from + (text[from..].len() - text[from..].trim_start().len())
}

fn bracket(inside: &str, at: usize) -> Result<Written<'_>, (usize, &'static str)> {
    if inside.trim().is_empty() {
        return Err((at, "there is nothing between these brackets"));
    }
    let start = skip_blanks(inside, 0);
    let first = inside[start..].strip_prefix("first").filter(|rest| rest.starts_with([' ', '\t', '\n']));
    let Some(rest) = first else { return Ok(Written::Index(at, inside)) };
    let rest_at = inside.len() - rest.len();
    let name_at = skip_blanks(inside, rest_at);
    let length = inside[name_at..].bytes().take_while(|c| c.is_ascii_alphanumeric() || *c == b'_').count();
    let colon = skip_blanks(inside, name_at + length);
    if length == 0 || !inside[colon..].starts_with(':') {
        return Err((at, "this reads `[first x: condition on x]`"));
    }
    let name = &inside[name_at..name_at + length];
    let condition = &inside[colon + 1..];
    Ok(Written::First { at: at + name_at, name, condition_at: at + colon + 1, condition })
}

/// Finds the bracket that closes the one at `open`, past brackets and quotes inside.
fn closing(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut quote = None;
    let mut bytes = text.bytes().enumerate().skip(open);
    while let Some((at, c)) = bytes.next() {
        match (quote, c) {
            (Some(_), b'\\') => {
                bytes.next();
            }
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => quote = Some(c),
            (None, b'[' | b'(' | b'{') => depth += 1,
            (None, b']' | b')' | b'}') => {
                depth -= 1;
                if depth == 0 {
                    return (c == b']').then_some(at);
                }
            }
            (None, _) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let found = match split(text) {
            Err((at, why)) => format!("{at}: {why}"),
            Ok(segments) => segments
                .iter()
                .map(|segment| match segment {
                    Written::Name(at, name) => format!("{name}@{at}"),
                    Written::Index(at, text) => format!("[{text}]@{at}"),
                    Written::First { at, name, condition_at, condition } => {
                        format!("[first {name}@{at}: {}@{condition_at}]", condition.trim())
                    }
                })
                .collect::<Vec<_>>()
                .join(" "),
        };
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn paths_are_taken_apart() {
        check("spent", "spent@0");
        check(" a.b-c ", "a@1 b-c@3");
        check("a[x.y[0]].b", "a@0 [x.y[0]]@2 b@10");
        check(r#"a["]"]['\']'].b"#, r#"a@0 ["]"]@2 ['\']']@7 b@14"#);
        check("users[first u: u.id == t.agent].tags", "users@0 [first u@12: u.id == t.agent@14] tags@32");
        check("a[first]", "a@0 [first]@2");
        check("a[firstly: 1]", "a@0 [firstly: 1]@2");
    }

    #[test]
    fn what_is_no_path_is_refused_with_the_place() {
        check("", "0: a path begins with the name of a field");
        check("[0]", "0: a name is expected here; any other name stands as [\"...\"]");
        check("a.", "2: a name is expected here; any other name stands as [\"...\"]");
        check("a[0", "1: this bracket is not closed");
        check("a[0)", "1: this bracket is not closed");
        check("a[ ]", "2: there is nothing between these brackets");
        check("a b", "1: a path goes on with `.name`, `[expr]` or `[first x: cond]`");
        check("a[first x]", "2: this reads `[first x: condition on x]`");
        check("ä", "0: a name is expected here; any other name stands as [\"...\"]");
    }
}
