//! Counts lines of production code by crate, long functions, and schemas that are written by hand.
//!
//! A line of production code is below `crates/*/src`, has a token, and is in no test and no comment.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::limits::Count;
use super::source::{Kind, Source, Token, closed};

/// Lines of code that a function fits in.
const FUNCTION_MAX: usize = 60;

/// Counts lines, functions and schemas.
pub(super) fn count(root: &Path, sources: &[Source]) -> Vec<Count> {
    let by_crate = by_crate(sources);
    let lines = Count {
        key: "lines.production".to_owned(),
        meaning: "lines of production code".to_owned(),
        number: by_crate.values().sum(),
        lines: by_crate.iter().map(|(member, lines)| format!("{member}: {lines}")).collect(),
    };
    let functions = production(sources).flat_map(long_functions).collect();
    let meaning = format!("functions of more than {FUNCTION_MAX} lines of code");
    let schemas = Count::of("schemas.files", "schemas that are written by hand", schemas(root));
    vec![lines, Count::of("functions.long", &meaning, functions), schemas]
}

/// Returns lines of production code by crate.
pub(super) fn by_crate(sources: &[Source]) -> BTreeMap<&str, usize> {
    let mut crates = BTreeMap::new();
    for source in production(sources) {
        *crates.entry(source.member.as_str()).or_default() += lines(&source.code).len();
    }
    crates
}

/// Returns how many lines of comments there are in `crates/*/src`.
pub(super) fn comment_lines(sources: &[Source]) -> usize {
    sources.iter().flat_map(|source| &source.comments).map(|(_, text)| text.lines().count()).sum()
}

fn production(sources: &[Source]) -> impl Iterator<Item = &Source> {
    sources.iter().filter(|source| !source.is_test)
}

/// Returns the numbers of the lines that have a token.
fn lines(code: &[Token]) -> BTreeSet<usize> {
    let mut numbers = BTreeSet::new();
    for token in code {
        let last = token.text.matches('\n').count();
        // Only text is longer than a line; its quotes are on the first and the last one.
        let parts = token.text.split('\n').enumerate();
        let filled = parts.filter(|(at, part)| *at == 0 || *at == last || !part.trim().is_empty());
        numbers.extend(filled.map(|(at, _)| token.line + at));
    }
    numbers
}

/// Returns each function that is too long, with its place and length.
fn long_functions(source: &Source) -> Vec<String> {
    let code = &source.code;
    let is_function = |at: &usize| code[*at].is_word("fn") && code.get(at + 1).is_some_and(is_name);
    let functions = (0..code.len()).filter(is_function).filter_map(|at| {
        let length = lines(&code[at..body_end(code, at)?]).len();
        let name = &code[at + 1].text;
        (length > FUNCTION_MAX).then(|| format!("{}:{}: {name}: {length}", source.name, code[at].line))
    });
    functions.collect()
}

fn is_name(token: &Token) -> bool {
    token.kind == Kind::Word
}

/// Place after the body of the function at `from`; `None` if it has none.
fn body_end(code: &[Token], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(token) = code.get(at) {
        match token.text.as_str() {
            _ if token.kind != Kind::Sign => at += 1,
            ";" => return None,
            "{" => return Some(closed(code, at)),
            "(" | "[" => at = closed(code, at),
            _ => at += 1,
        }
    }
    None
}

/// Returns the files below `crates/*/schemas`.
fn schemas(root: &Path) -> Vec<String> {
    let below = |directory: &Path| {
        let entries = fs::read_dir(directory).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.path())).collect::<Vec<_>>()
    };
    let folders = below(&root.join("crates")).into_iter().map(|member| member.join("schemas"));
    let files = folders.flat_map(|folder| below(&folder));
    let mut names: Vec<String> = files
        .map(|file| file.strip_prefix(root).unwrap_or(&file).display().to_string().replace('\\', "/"))
        .collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(name: &str, text: &str) -> Source {
        Source::of(name, text).unwrap()
    }

    #[test]
    fn blank_lines_comments_and_tests_are_not_counted() {
        let text = "//! a\n\nfn f() {\n    // b\n    g(\"c\n\n  d\n\")\n}\n#[cfg(test)]\nmod tests {\n}\n";
        let sources = [
            source("crates/x/src/a.rs", text),
            source("crates/x/src/tests.rs", "fn f() {}"),
            source("crates/y/src/b.rs", "type A = u8;\ntype B = u8;"),
        ];
        assert_eq!(by_crate(&sources), BTreeMap::from([("x", 5), ("y", 2)]));
        assert_eq!(comment_lines(&sources), 2);
    }

    #[test]
    fn a_function_is_measured_to_the_end_of_its_body() {
        let body = "    g();\n".repeat(FUNCTION_MAX - 2);
        let fitting = format!("fn f(a: [u8; 2]) {{\n{body}\n\n// b\n}}\n");
        assert_eq!(long_functions(&source("crates/x/src/a.rs", &fitting)), Vec::<String>::new());
        let long = format!("trait T {{ fn f(); }}\npub fn h() {{\n    let a: fn() = g;\n{body}}}\n");
        assert_eq!(long_functions(&source("crates/x/src/a.rs", &long)), ["crates/x/src/a.rs:2: h: 61"]);
    }
}
