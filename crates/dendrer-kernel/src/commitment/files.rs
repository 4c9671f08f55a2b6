//! Files that a call names: the places where a limit of files looks (design, section 14.2).
//!
//! A pack or a scope file may list the places of a tool. Without a list, a file is a text under a member whose last word means a
//! file, or a text that begins as a path, at any depth, also inside a text that is JSON.
//!
//! Rule: a text that could lead outside of a limit is found, or the call shows no file and is refused; tests
//! `files_are_found_under_every_spelling` and `a_path_that_is_not_plain_is_outside`.

use std::sync::Arc;

use dendrer_object::{Value, json};

/// Last words of members whose value is a file.
const FILES: [&str; 11] = [
    "path",
    "file",
    "filename",
    "filepath",
    "dir",
    "folder",
    "directory",
    "pathname",
    "dirname",
    "cwd",
    "workdir",
];

/// Last words of members whose value is a file if it has a slash and is no web address.
const PLACES: [&str; 5] = ["target", "source", "destination", "uri", "url"];

/// How deep texts of JSON inside texts of JSON are read: each level doubles the escapes, so none that fits into a line is deeper. A
/// deeper one is a file that no limit contains.
const NESTED_MAX: usize = 64;

/// Characters that look like a slash, a backslash or a dot, and are other characters.
const LOOK_ALIKES: [char; 12] = [
    '\u{2044}', '\u{2215}', '\u{29f8}', '\u{ff0f}', '\u{29f9}', '\u{fe68}', '\u{ff3c}', '\u{2024}',
    '\u{2025}', '\u{2026}', '\u{ff0e}', '\u{fe52}',
];

/// A file that a call names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedFile {
    /// Its place in the call, as a JSON pointer.
    pub(super) at: String,
    /// The path; `None` for a value that is no text.
    pub(super) path: Option<Arc<str>>,
}

/// The files of a call at listed places (`/params/edits/*/path`).
pub(super) fn listed<'p>(call: &Value, places: impl IntoIterator<Item = &'p Arc<str>>) -> Vec<NamedFile> {
    let mut found = Found::default();
    for place in places {
        let tokens: Vec<String> =
            place.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~")).collect();
        found.at_place(call, &tokens, &mut String::new(), 0);
    }
    found.files
}

/// The files of a call of a tool without listed places.
pub(super) fn searched(call: &Value) -> Vec<NamedFile> {
    let mut found = Found::default();
    if let Some(params) = call.get("params") {
        found.search(params, Member::Other, &mut "/params".to_owned(), 0);
    }
    found.files
}

/// Whether a path is plain text: what it names is what its characters say.
pub(super) fn is_plain(path: &str) -> bool {
    let bytes = path.as_bytes();
    let is_encoded = |three: &[u8]| three[0] == b'%' && three[1..].iter().all(u8::is_ascii_hexdigit);
    let is_odd = |c: char| c == '\\' || c.is_control() || is_invisible(c) || LOOK_ALIKES.contains(&c);
    !path.chars().any(is_odd) && !bytes.windows(3).any(is_encoded)
}

/// A path as patterns are compared with: without `file:`.
pub(super) fn bare(path: &str) -> &str {
    match strip_file(path) {
        Some(rest) => rest.strip_prefix("//").unwrap_or(rest),
        None => path,
    }
}

fn strip_file(path: &str) -> Option<&str> {
    let (scheme, rest) = path.split_at_checked(5)?;
    scheme.eq_ignore_ascii_case("file:").then_some(rest)
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// The meaning of a member's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    File,
    Place,
    Other,
}

impl Member {
    fn of(name: &str) -> Member {
        let (last, rest) = last_word(name);
        if matches!(&*last, "name" | "names") {
            // The name of a file: `fileName`, `dir_name`.
            return match Member::of(&rest) {
                Member::File => Member::File,
                Member::Place | Member::Other => Member::Other,
            };
        }
        let is_one = |known: &&&str| {
            let plural = match known.strip_suffix('y') {
                Some(stem) => last.strip_suffix("ies") == Some(stem),
                None => last.strip_suffix('s') == Some(**known),
            };
            last == ***known || plural
        };
        match (FILES.iter().find(is_one), PLACES.iter().find(is_one)) {
            (Some(_), _) => Member::File,
            (None, Some(_)) => Member::Place,
            (None, None) => Member::Other,
        }
    }
}

/// The last word of a name, in small letters, and what is before it. Words are split at case and at what is no letter or digit.
fn last_word(name: &str) -> (String, String) {
    let chars: Vec<char> = name.chars().collect();
    // A number at the end counts several of one kind (`path2`).
    let end = chars.iter().rposition(|c| c.is_alphabetic()).map_or(0, |at| at + 1);
    let mut begin = end;
    while begin > 0 && chars[begin - 1].is_alphanumeric() {
        let (before, here) = (chars[begin - 1], chars.get(begin));
        // A capital begins a word (`filePath`); the last of several does where small letters follow (`HTTPFile`).
        if here.is_some_and(|here| begin < end && here.is_uppercase() && !before.is_uppercase()) {
            break;
        }
        if begin < end && before.is_uppercase() && here.is_some_and(|here| here.is_lowercase()) {
            begin -= 1;
            break;
        }
        begin -= 1;
    }
    let last = chars[begin..end].iter().flat_map(|c| c.to_lowercase()).collect();
    (last, chars[..begin].iter().collect())
}

fn is_slash(c: char) -> bool {
    matches!(c, '/' | '\\') || LOOK_ALIKES[..7].contains(&c)
}

/// Whether a text begins as a path.
fn begins_as_path(text: &str) -> bool {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || is_invisible(c));
    // A comment of a program is not a path.
    let is_comment = ["//", "/*"].iter().any(|begin| text.starts_with(begin)) && text.contains('\n');
    let mut chars = text.chars();
    let (first, second, third) = (chars.next(), chars.next(), chars.next());
    let is_sep = |c: Option<char>| c.is_some_and(is_slash);
    let is_drive = first.is_some_and(|c| c.is_ascii_alphabetic()) && second == Some(':') && is_sep(third);
    let is_dotted =
        first == Some('.') && (is_sep(second) || second == Some('.') && (third.is_none() || is_sep(third)));
    !is_comment
        && (is_sep(first) || first == Some('~') || is_drive || is_dotted || strip_file(text).is_some())
}

/// Whether a text is an address with a scheme that is no file.
fn is_address(text: &str) -> bool {
    let Some((scheme, _)) = text.split_once("://") else { return false };
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    scheme.len() > 1 && scheme.chars().all(is_part) && !scheme.eq_ignore_ascii_case("file")
}

/// Reads a text that is JSON of an object, a list or a text, or has one of these on each line.
fn nested(text: &str) -> Option<Value> {
    let read = |text: &str| {
        let text = text.trim_matches(|c: char| c.is_whitespace() || is_invisible(c));
        let is_one = text.starts_with(['{', '[', '"']) && text.ends_with(['}', ']', '"']);
        is_one.then(|| json::parse_door(text.as_bytes()).ok()).flatten()
    };
    read(text).or_else(|| {
        let mut lines = text.lines().filter(|line| !line.trim().is_empty()).map(read);
        let first = lines.next()??;
        let rest = lines.collect::<Option<Vec<_>>>()?;
        Some(Value::array([first].into_iter().chain(rest)))
    })
}

#[derive(Default)]
struct Found {
    files: Vec<NamedFile>,
}

impl Found {
    fn add(&mut self, at: &str, value: &Value) {
        let path = value.as_str().map(Arc::from);
        self.files.push(NamedFile { at: at.to_owned(), path });
    }

    fn at_place(&mut self, value: &Value, tokens: &[String], at: &mut String, depth: usize) {
        let read = value.as_str().filter(|_| !tokens.is_empty() && depth < NESTED_MAX).and_then(nested);
        if let Some(read) = read {
            return self.at_place(&read, tokens, at, depth + 1);
        }
        let Some((first, rest)) = tokens.split_first() else {
            return match value {
                Value::Null => {}
                Value::Array(items) => {
                    let each = items.iter().enumerate();
                    each.for_each(|(number, item)| below(at, &number.to_string(), |at| self.add(at, item)));
                }
                value => self.add(at, value),
            };
        };
        match value {
            Value::Array(items) => {
                for (number, item) in items.iter().enumerate() {
                    let name = number.to_string();
                    if first == "*" || *first == name {
                        below(at, &name, |at| self.at_place(item, rest, at, depth));
                    }
                }
            }
            Value::Object(members) => {
                for (name, value) in members.iter().filter(|(name, _)| first == "*" || ***name == **first) {
                    below(at, name, |at| self.at_place(value, rest, at, depth));
                }
            }
            _ => {}
        }
    }

    fn search(&mut self, value: &Value, member: Member, at: &mut String, depth: usize) {
        match value {
            Value::Null => {}
            Value::Object(members) => {
                let before = self.files.len();
                for (name, value) in members.iter() {
                    below(at, name, |at| {
                        if begins_as_path(name) {
                            self.add(at, &Value::String(Arc::clone(name)));
                        }
                        self.search(value, Member::of(name), at, depth);
                    });
                }
                if member == Member::File && self.files.len() == before {
                    self.add(at, value);
                }
            }
            Value::Array(items) => {
                for (number, item) in items.iter().enumerate() {
                    below(at, &number.to_string(), |at| self.search(item, member, at, depth));
                }
            }
            Value::String(text) => self.search_text(text, member, at, depth),
            value if member == Member::File => self.add(at, value),
            _ => {}
        }
    }

    fn search_text(&mut self, text: &Arc<str>, member: Member, at: &mut String, depth: usize) {
        if let Some(read) = nested(text) {
            // A tool may take the quotes for a part of the name.
            if member == Member::File && matches!(read, Value::String(_)) {
                self.add(at, &Value::String(Arc::clone(text)));
            }
            // A text of JSON that is nested too deep to be read is no path that a limit contains.
            return match depth < NESTED_MAX {
                true => self.search(&read, member, at, depth + 1),
                false => self.add(at, &read),
            };
        }
        let is_file = match member {
            Member::File => true,
            Member::Place => text.contains(is_slash) && !is_address(text),
            Member::Other => false,
        };
        if is_file || begins_as_path(text) {
            self.add(at, &Value::String(Arc::clone(text)));
        }
    }
}

/// Runs `f` with the place of a member.
fn below(at: &mut String, name: &str, f: impl FnOnce(&mut String)) {
    let length = at.len();
    at.push('/');
    at.push_str(&name.replace('~', "~0").replace('/', "~1"));
    f(at);
    at.truncate(length);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Value {
        json::parse_door(text.as_bytes()).unwrap()
    }

    fn found(params: &str) -> String {
        let call = Value::record([("tool", "t".into()), ("params", value(params))]);
        let each = searched(&call).into_iter().map(|file| {
            let path = file.path.as_deref().unwrap_or("(no text)").to_owned();
            format!("{}={path}", file.at.strip_prefix("/params").unwrap())
        });
        each.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn files_are_found_under_every_spelling() {
        for (params, expected) in [
            (r#"{"path":"a"}"#, "/path=a"),
            (
                r#"{"file_path":"a","filePath":"b","FilePath":"c","FILE_PATH":"d"}"#,
                "/FILE_PATH=d /FilePath=c /filePath=b /file_path=a",
            ),
            (r#"{"paths":["a","b"]}"#, "/paths/0=a /paths/1=b"),
            (
                r#"{"newFile":"a","out-dir":"b","HTTPFile":"c","filename2":"d"}"#,
                "/HTTPFile=c /filename2=d /newFile=a /out-dir=b",
            ),
            (r#"{"directories":["a"]}"#, "/directories/0=a"),
            (r#"{"profile":"a","pathology":"b","content":"c"}"#, ""),
            (
                r#"{"edits":[{"path":"a","text":"x"},{"deep":{"file":"b"}}]}"#,
                "/edits/0/path=a /edits/1/deep/file=b",
            ),
            (
                r#"{"target":"main","source":"a/b","url":"https://x/y","uri":"file:///etc/x"}"#,
                "/source=a/b /uri=file:///etc/x",
            ),
            (
                r#"{"x":"/etc/passwd","y":"~/.ssh","z":["../a"],"w":"./b","v":"C:\\a","u":"c:/a","t":"file:a","s":".."}"#,
                "/s=.. /t=file:a /u=c:/a /v=C:\\a /w=./b /x=/etc/passwd /y=~/.ssh /z/0=../a",
            ),
            (r#"{"x":" /etc/passwd","y":"\uff0fetc"}"#, "/x= /etc/passwd /y=\u{ff0f}etc"),
            (r#"{"x":"// a comment\nlet a;","y":"/* b */\n"}"#, ""),
            (r#"{"args":"{\"path\":\"a\",\"n\":[\"/b\"]}"}"#, "/args/n/0=/b /args/path=a"),
            (r#"{"files":"[\"a\",\"b\"]"}"#, "/files/0=a /files/1=b"),
            (r#"{"path":7,"file":{"mode":1},"dir":null}"#, "/file=(no text) /path=(no text)"),
            (r#"{"changes":{"/etc/passwd":"x"}}"#, "/changes/~1etc~1passwd=/etc/passwd"),
            ("{}", ""),
            (r#""{\"file\":\"a\"}""#, "/file=a"),
            (
                r#"{"FileName":"a","file_name":"b","dirName":"c","FILE_NAMES":["d"],"pathName":"e"}"#,
                "/FILE_NAMES/0=d /FileName=a /dirName=c /file_name=b /pathName=e",
            ),
            (r#"{"name":"a","profileName":"b","toolName":"c","target_name":"d","fileNameLength":3}"#, ""),
            // A text of JSON that is written as JSON again, and lines of JSON.
            (r#"{"args":"\"{\\\"path\\\":\\\"a\\\"}\""}"#, "/args/path=a"),
            (r#"{"args":"{\"path\":\"a\"}\n{\"path\":\"b\"}\n"}"#, "/args/0/path=a /args/1/path=b"),
            (r#"{"x":"\"/etc/passwd\"","path":"\"a\""}"#, "/path=\"a\" /path=a /x=/etc/passwd"),
        ] {
            assert_eq!(found(params), expected, "{params}");
        }
    }

    #[test]
    fn json_in_json_is_read_at_any_depth() {
        let mut text = r#"{"path":"/etc/passwd"}"#.to_owned();
        for _ in 0..14 {
            text = Value::record([("a", Value::from(text.as_str()))]).to_string();
        }
        assert!(found(&text).ends_with("/a/path=/etc/passwd"), "{}", found(&text));
    }

    #[test]
    fn listed_places_are_the_files_alone() {
        let call = value(
            r#"{"params":{"edits":[{"path":"a"},{"path":["b","c"]}],"to":"/etc/x","raw":"{\"p\":\"d\"}","n":null}}"#,
        );
        let at = |places: &[&str]| {
            let places: Vec<Arc<str>> = places.iter().map(|place| Arc::from(*place)).collect();
            let all =
                listed(&call, &places).into_iter().map(|file| file.path.as_deref().unwrap_or("-").to_owned());
            all.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(at(&["/params/edits/*/path"]), "a b c");
        assert_eq!(at(&["/params/edits/1/path/0", "/params/raw/p"]), "b d");
        assert_eq!(at(&["/params/n", "/params/other", "/params/to/x"]), "");
        assert_eq!(at(&["/params/edits/0"]), "-");
    }

    #[test]
    fn a_path_that_is_not_plain_is_outside() {
        for path in ["a%2e%2e", "a\\b", "a\0b", "a\u{ff0f}b", "a\u{2024}", "a\u{200b}b", "a%2Fb", "a\nb"] {
            assert!(!is_plain(path), "{path:?}");
        }
        assert!(is_plain("src/parser/a b-ü.py") && is_plain("100%"));
        assert_eq!((bare("file:///etc/x"), bare("FILE:a"), bare("a")), ("/etc/x", "a", "a"));
    }
}
