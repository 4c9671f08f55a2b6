//! Places in a value: JSON pointers (RFC 6901), the one spelling of a path in everything that is stored.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::json::escape;
use crate::tag::{stored_name, user_name};
use crate::value::{Value, compare_names};

/// A JSON pointer. The empty pointer is the whole value. Ordered as names in canonical JSON are.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Pointer(Arc<str>);

/// The text is not a JSON pointer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a JSON pointer: it is empty or begins with `/`, and `~` stands as `~0` or `~1`")]
pub struct PointerError(String);

impl Pointer {
    /// The whole value.
    pub fn root() -> Pointer {
        Pointer("".into())
    }

    /// Makes the pointer of a path of names, escaping them.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Pointer {
        let mut text = String::new();
        for name in names {
            text.push('/');
            text.push_str(&escape(name));
        }
        Pointer(text.into())
    }

    /// Reads a pointer in the names of the user, in which no `$` is doubled.
    pub fn of_written(text: &str) -> Result<Pointer, PointerError> {
        let read: Pointer = text.parse()?;
        if !text.contains("/$") {
            return Ok(read);
        }
        let names: Vec<Arc<str>> = read.tokens().map(|name| stored_name(&name)).collect();
        Ok(Pointer::of(names.iter().map(|name| &**name)))
    }

    /// Writes the pointer in the names of the user, as answers have it: the opposite of [`Pointer::of_written`].
    pub fn written(&self) -> String {
        if !self.0.contains("/$$") {
            return self.0.to_string();
        }
        self.tokens().fold(String::new(), |text, token| format!("{text}/{}", escape(user_name(&token))))
    }

    /// Returns the text as it is stored.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Walks the reference tokens, unescaped.
    pub fn tokens(&self) -> impl Iterator<Item = Cow<'_, str>> {
        self.0.split('/').skip(1).map(unescape)
    }

    /// Tells whether `other` lies at or below this place.
    pub fn contains(&self, other: &Pointer) -> bool {
        other.0.strip_prefix(&*self.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Tells whether a write at `other` can change what is read here: one lies at or below the other.
    pub fn overlaps(&self, other: &Pointer) -> bool {
        self.contains(other) || other.contains(self)
    }

    /// Sorts places and drops each that lies at or below another one.
    pub fn outermost(mut places: Vec<Pointer>) -> Vec<Pointer> {
        places.sort();
        places.dedup();
        let all = places.clone();
        places.retain(|place| !all.iter().any(|other| other != place && other.contains(place)));
        places
    }

    /// Returns the value at this place.
    pub fn get<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        let mut value = value;
        for token in self.tokens() {
            value = match value {
                Value::Object(object) => object.get(&token)?,
                Value::Array(array) => array.get(array_index(&token)?)?,
                _ => return None,
            };
        }
        Some(value)
    }

    /// Reads a place of the state as people write it: `a.b[2]`, `a["x y"]`, `state.a.b`, or a JSON pointer, which may be malformed;
    /// the whole state is an empty text. `None` for any other text. Names are those of the user: no `$` is doubled.
    pub fn from_place(text: &str) -> Option<Result<Pointer, PointerError>> {
        if text.is_empty() || text == "state" {
            return Some(Ok(Pointer::root()));
        }
        if text.starts_with('/') {
            return Some(Pointer::of_written(text));
        }
        let mut names: Vec<String> = Vec::new();
        let mut rest = text.strip_prefix("state.").unwrap_or(text);
        let mut first = true;
        while !rest.is_empty() {
            if let Some(inner) = rest.strip_prefix('[') {
                let end = if inner.starts_with('"') {
                    closing_quote(inner).filter(|end| inner[*end..].starts_with(']'))
                } else {
                    inner.find(']')
                }?;
                let token = &inner[..end];
                names.push(match token.strip_prefix('"') {
                    Some(_) => crate::json::parse_tagged(token.as_bytes())
                        .ok()
                        .and_then(|v| v.as_str().map(str::to_owned))?,
                    None => token.to_owned(),
                });
                rest = &inner[end + 1..];
            } else {
                let word = if first { rest } else { rest.strip_prefix('.')? };
                let end = word.find(['.', '[']).unwrap_or(word.len());
                if end == 0 {
                    return None;
                }
                names.push(word[..end].to_owned());
                rest = &word[end..];
            }
            first = false;
        }
        let names: Vec<Arc<str>> = names.iter().map(|name| stored_name(name)).collect();
        Some(Ok(Pointer::of(names.iter().map(|name| &**name))))
    }

    /// As [`Pointer::dotted`], for a place of the state: `state.a.b[2]`.
    pub fn in_state(&self) -> String {
        Pointer::of(
            ["state"].into_iter().chain(self.tokens().collect::<Vec<_>>().iter().map(|token| &**token)),
        )
        .dotted()
    }

    /// Writes the place as people do: `a.b[2]`, with names that are not plain words as `a["x y"]`, in the names of the user.
    pub fn dotted(&self) -> String {
        let mut text = String::new();
        for token in self.tokens() {
            let token = user_name(&token);
            let word = token.bytes().enumerate().all(|(at, c)| {
                c == b'_' || c.is_ascii_alphabetic() || (at > 0 && (c.is_ascii_digit() || c == b'-'))
            });
            if array_index(token).is_some() {
                text.push_str(&format!("[{token}]"));
            } else if word && !token.is_empty() {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(token);
            } else {
                let mut quoted = Vec::new();
                crate::json::write_string(token, &mut quoted);
                text.push_str(&format!("[{}]", String::from_utf8_lossy(&quoted)));
            }
        }
        text
    }
}

/// Finds where a JSON text that begins here ends.
fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().skip(1).find_map(|(at, c)| {
        let ends = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        ends.then_some(at + 1)
    })
}

/// Reads an array index: digits without leading zeros (RFC 6901 4).
pub fn array_index(token: &str) -> Option<usize> {
    let canonical = token == "0" || !token.starts_with('0');
    (canonical && !token.is_empty() && token.bytes().all(|c| c.is_ascii_digit()))
        .then(|| token.parse().ok())?
}

fn unescape(token: &str) -> Cow<'_, str> {
    if token.contains('~') {
        Cow::Owned(token.replace("~1", "/").replace("~0", "~"))
    } else {
        Cow::Borrowed(token)
    }
}

impl FromStr for Pointer {
    type Err = PointerError;

    fn from_str(text: &str) -> Result<Pointer, PointerError> {
        let mut after_tilde = text.split('~').skip(1);
        if !(text.is_empty() || text.starts_with('/'))
            || !after_tilde.all(|rest| rest.starts_with(['0', '1']))
        {
            return Err(PointerError(text.chars().take(160).collect()));
        }
        Ok(Pointer(text.into()))
    }
}

impl PartialOrd for Pointer {
    fn partial_cmp(&self, other: &Pointer) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pointer {
    fn cmp(&self, other: &Pointer) -> std::cmp::Ordering {
        compare_names(&self.0, &other.0)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_find_what_rfc_6901_says() {
        let document = br#"{"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"k\"l":6," ":7,"m~n":8}"#;
        let value = crate::json::parse_door(document).unwrap();
        for (pointer, expected) in [
            ("/foo", r#"["bar","baz"]"#),
            ("/foo/0", r#""bar""#),
            ("/", "0"),
            ("/a~1b", "1"),
            ("/c%d", "2"),
            ("/k\"l", "6"),
            ("/ ", "7"),
            ("/m~0n", "8"),
        ] {
            let pointer: Pointer = pointer.parse().unwrap();
            assert_eq!(pointer.get(&value).unwrap().to_string(), expected, "{pointer}");
        }
        for missing in ["/foo/2", "/foo/00", "/foo/-", "/nope", "/foo/bar/x"] {
            assert_eq!(missing.parse::<Pointer>().unwrap().get(&value), None, "{missing}");
        }
        for bad in ["a", "/~", "/a~2"] {
            assert!(bad.parse::<Pointer>().is_err(), "{bad}");
        }
    }

    #[test]
    fn places_overlap_when_one_holds_the_other() {
        let p = |text: &str| text.parse::<Pointer>().unwrap();
        assert!(p("/a").contains(&p("/a/b")) && !p("/a").contains(&p("/ab")) && p("").contains(&p("/x")));
        assert!(p("/a/b").overlaps(&p("/a")) && !p("/a/b").overlaps(&p("/a/c")));
    }

    #[test]
    fn outermost_places_hold_all_others() {
        let places = ["/b/c", "/a", "/b", "/a/x", "/ab", "/b"].map(|text| text.parse().unwrap());
        let texts: Vec<String> = Pointer::outermost(places.to_vec()).iter().map(Pointer::to_string).collect();
        assert_eq!(texts, ["/a", "/ab", "/b"]);
    }

    #[test]
    fn people_read_dots() {
        let dotted = |text: &str| text.parse::<Pointer>().unwrap().dotted();
        assert_eq!(dotted("/a/b/2/c-d"), "a.b[2].c-d");
        assert_eq!(dotted("/a~1b/x y"), "[\"a/b\"][\"x y\"]");
        assert_eq!(dotted("/form/$$ref"), "form[\"$ref\"]");
    }

    #[test]
    fn a_name_has_one_spelling_outside_the_store() {
        for (written, stored) in [
            ("form[\"$ref\"]", "/form/$$ref"),
            ("form.$ref", "/form/$$ref"),
            ("/form/$ref", "/form/$$ref"),
            ("/form/$$ref", "/form/$$$ref"),
            ("/$/a$b/~1", "/$$/a$b/~1"),
            ("m[\"a\\\"b\"][\"c\\\\d\"][\"x\\\"]y\"][\"\\n\"]", "/m/a\"b/c\\d/x\"]y/\n"),
        ] {
            let pointer = Pointer::from_place(written).unwrap().unwrap();
            assert_eq!(pointer.as_str(), stored, "{written}");
            assert_eq!(Pointer::from_place(&pointer.dotted()), Some(Ok(pointer.clone())), "{written}");
            assert_eq!(Pointer::of_written(&pointer.written()), Ok(pointer), "{written}");
        }
    }
}
