//! Splits a Rust file into tokens and comments.
//!
//! Tokens carry no comments, and those of `#[cfg(test)]` items can be left out. Never fails: what this lexer does not
//! know becomes a sign of one character.

use std::path::Path;

use super::read;

/// A file below `src` of one crate.
pub(super) struct Source {
    /// Path from the root of the repository, for reports.
    pub(super) name: String,
    /// The crate's directory below `crates`.
    pub(super) member: String,
    /// Path below `src`, without `.rs` and without a last `/mod`.
    pub(super) module: String,
    /// Holds unit tests alone: `tests.rs` or a file below `tests`.
    pub(super) is_test: bool,
    /// Without `#[cfg(test)]` items.
    pub(super) code: Vec<Token>,
    /// Line number and text.
    pub(super) comments: Vec<(usize, String)>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) text: String,
    pub(super) line: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// An identifier, a keyword or a number.
    Word,
    /// `::` or one character.
    Sign,
    /// The content of a string literal, escapes as written.
    Text,
}

impl Token {
    pub(super) fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text == word
    }

    pub(super) fn is_sign(&self, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text == sign
    }
}

impl Source {
    /// Reads `path`, a file below `crates/*/src`; `None` for every other file.
    pub(super) fn read(root: &Path, path: &Path) -> Option<Source> {
        let name = path.strip_prefix(root).ok()?.to_str()?.replace('\\', "/");
        Source::of(&name, &read(path))
    }

    /// Splits `text` as the file `name`.
    pub(super) fn of(name: &str, text: &str) -> Option<Source> {
        let (member, below) = name.strip_prefix("crates/")?.split_once("/src/")?;
        let module = below.strip_suffix(".rs")?;
        let module = module.strip_suffix("/mod").unwrap_or(module);
        let (tokens, comments) = split(text);
        Some(Source {
            name: name.to_owned(),
            member: member.to_owned(),
            module: module.to_owned(),
            is_test: module.split('/').any(|part| part == "tests"),
            code: without_tests(&tokens),
            comments,
        })
    }
}

fn split(text: &str) -> (Vec<Token>, Vec<(usize, String)>) {
    let (mut tokens, mut comments) = (Vec::new(), Vec::new());
    let (mut rest, mut line) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            let length = rest.find('\n').unwrap_or(rest.len());
            comments.push((line, rest[..length].to_owned()));
            length
        } else if rest.starts_with("/*") {
            let length = block(rest);
            comments.push((line, rest[..length].to_owned()));
            length
        } else if let Some((open, close)) = quotes(rest) {
            let inside = &rest[open..];
            let is_raw = rest[..open].contains('r');
            let end = if is_raw { inside.find(&close) } else { unescaped(inside) };
            let end = end.unwrap_or(inside.len());
            tokens.push(Token { kind: Kind::Text, text: inside[..end].to_owned(), line });
            (open + end + close.len()).min(rest.len())
        } else if first == '\'' {
            character(rest)
        } else if first.is_alphanumeric() || first == '_' {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            tokens.push(Token { kind: Kind::Word, text: rest[..length].to_owned(), line });
            length
        } else {
            let length = if rest.starts_with("::") { 2 } else { first.len_utf8() };
            if !first.is_whitespace() {
                tokens.push(Token { kind: Kind::Sign, text: rest[..length].to_owned(), line });
            }
            length
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    (tokens, comments)
}

/// Length of the block comment that `text` begins with; such comments nest.
fn block(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// Length of the opening quote and the closing quote of the string literal that `text` begins with.
fn quotes(text: &str) -> Option<(usize, String)> {
    let prefix = text.find(|c: char| !matches!(c, 'b' | 'c' | 'r'))?;
    let hashes = text[prefix..].len() - text[prefix..].trim_start_matches('#').len();
    let is_raw = text[..prefix].ends_with('r');
    let is_string = prefix <= 2 && (is_raw || hashes == 0) && text[prefix + hashes..].starts_with('"');
    let close = if is_raw { format!("\"{}", "#".repeat(hashes)) } else { "\"".to_owned() };
    is_string.then_some((prefix + hashes + 1, close))
}

/// Place of the first quote that no backslash escapes.
fn unescaped(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.char_indices().find_map(|(at, c)| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end.then_some(at)
    })
}

/// Length of the character literal, or of the quote of a lifetime, that `text` begins with.
fn character(text: &str) -> usize {
    let mut inside = text[1..].chars();
    match (inside.next(), inside.next()) {
        (Some('\\'), Some(escaped)) => {
            let from = 2 + escaped.len_utf8();
            text[from..].find('\'').map_or(text.len(), |at| from + at + 1)
        }
        (Some(only), Some('\'')) => 2 + only.len_utf8(),
        _ => 1,
    }
}

/// Leaves out each item that follows `#[cfg(test)]` or `#[cfg(all(test, ..))]`.
fn without_tests(tokens: &[Token]) -> Vec<Token> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let is_attribute =
            tokens[at].is_sign("#") && tokens.get(at + 1).is_some_and(|next| next.is_sign("["));
        if !is_attribute {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        let end = closed(tokens, at + 1);
        let words: Vec<&str> = tokens[at + 2..end].iter().map(|token| token.text.as_str()).collect();
        if words.starts_with(&["cfg", "(", "test", ")"])
            || words.starts_with(&["cfg", "(", "all", "(", "test", ","])
        {
            at = item_end(tokens, end);
        } else {
            kept.extend_from_slice(&tokens[at..end]);
            at = end;
        }
    }
    kept
}

/// Place after the bracket that closes the one at `open`.
pub(super) fn closed(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open).filter(|(_, token)| token.kind == Kind::Sign) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// Place after the item that begins at `from`, behind its first attribute.
fn item_end(tokens: &[Token], from: usize) -> usize {
    let mut at = from;
    while let Some(token) = tokens.get(at) {
        match token.text.as_str() {
            _ if token.kind != Kind::Sign => at += 1,
            ";" | "," => return at + 1,
            "{" => return closed(tokens, at),
            "(" | "[" => at = closed(tokens, at),
            _ => at += 1,
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let source = Source::of("crates/x/src/a.rs", text).unwrap();
        let found: Vec<&str> = source.code.iter().map(|token| token.text.as_str()).collect();
        assert_eq!(found.join(" "), expected);
    }

    #[test]
    fn comments_are_no_tokens() {
        check("a // b \"c\n/* d /* e */ f */ g::h", "a g :: h");
        let source = Source::of("crates/x/src/a.rs", "a\n/// b\n\n// c").unwrap();
        assert_eq!(source.comments, [(2, "/// b".to_owned()), (4, "// c".to_owned())]);
    }

    #[test]
    fn strings_characters_and_lifetimes_are_told_apart() {
        check(r##"f("a\"//b", r#"c"d"#, b"e", '"', '\'', '\u{41}', &'a x, break_b)"##, {
            r##"f ( a\"//b , c"d , e , , , , & a x , break_b )"##
        });
    }

    #[test]
    fn items_of_tests_are_left_out() {
        check("a #[cfg(test)] mod tests { b { c } } d", "a d");
        check("a #[cfg(test)] #[expect(x)] fn b(c: [u8; 2]) -> D { e } f", "a f");
        check("#[cfg(all(test, unix))] mod tests; b #[cfg(unix)] c", "b # [ cfg ( unix ) ] c");
    }

    #[test]
    fn files_know_their_module() {
        let module = |name| Source::of(name, "").map(|source| (source.module, source.is_test));
        assert_eq!(module("crates/x/src/demo/mod.rs"), Some(("demo".to_owned(), false)));
        assert_eq!(module("crates/x/src/a/tests/b.rs"), Some(("a/tests/b".to_owned(), true)));
        assert_eq!(module("crates/x/tests/b.rs"), None);
    }
}
