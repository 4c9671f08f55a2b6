//! Counts what some directories should not name at all, and public types whose name another type has.

use std::collections::BTreeMap;

use super::limits::Count;
use super::source::{Kind, Source, Token};

struct Forbidden {
    key: &'static str,
    meaning: &'static str,
    /// Beginning of the paths of the files.
    under: &'static str,
    /// Each is a sequence of tokens.
    any: &'static [&'static [&'static str]],
}

const COUNTED: [Forbidden; 2] = [
    Forbidden {
        key: "verbs.documents",
        meaning: "places where a verb builds a document or a table; `dendrer-view` does that",
        under: "crates/dendrer-cli/src/verbs/",
        any: &[&["Value", "::", "record"], &["Value", "::", "array"], &["document", "("], &["Table"]],
    },
    Forbidden {
        key: "view.stores",
        meaning: "places where the view names Trace or Store; it is given answers",
        under: "crates/dendrer-view/src/",
        any: &[&["Trace"], &["Store"]],
    },
];

/// The one file that may spell codes of errors.
const CODES: &str = "crates/dendrer-object/src/code.rs";

/// Counts every row in code outside tests.
pub(super) fn count(sources: &[Source]) -> Vec<Count> {
    let sources: Vec<&Source> = sources.iter().filter(|source| !source.is_test).collect();
    let mut counts: Vec<Count> = COUNTED.iter().map(|row| forbidden(row, &sources)).collect();
    counts.push(codes(&sources));
    counts.push(program(&sources));
    counts.push(types(&sources));
    counts
}

fn forbidden(row: &Forbidden, sources: &[&Source]) -> Count {
    let mut lines = Vec::new();
    for source in sources.iter().filter(|source| source.name.starts_with(row.under)) {
        for (at, token) in source.code.iter().enumerate() {
            let is_match = |phrase: &&&[&str]| begins_with(&source.code[at..], phrase);
            if let Some(phrase) = row.any.iter().find(is_match) {
                lines.push(format!("{}:{}: {}", source.name, token.line, phrase.concat()));
            }
        }
    }
    Count::of(row.key, row.meaning, lines)
}

fn begins_with(code: &[Token], phrase: &[&str]) -> bool {
    code.len() >= phrase.len()
        && code.iter().zip(phrase).all(|(token, wanted)| token.kind != Kind::Text && token.text == *wanted)
}

fn codes(sources: &[&Source]) -> Count {
    let others = sources.iter().filter(|source| source.name != CODES);
    let texts = others.flat_map(|source| source.code.iter().map(move |token| (source, token)));
    let codes = texts.filter(|(_, token)| token.kind == Kind::Text && token.text.starts_with("E0"));
    let lines = codes.map(|(source, token)| format!("{}:{}: \"{}\"", source.name, token.line, token.text));
    Count::of("codes.literals", "literals that spell a code of an error", lines.collect())
}

/// Counts where another crate uses the library of the program for more than running the program.
fn program(sources: &[&Source]) -> Count {
    let others = sources.iter().filter(|source| source.member != "dendrer-cli");
    let lines = others.flat_map(|source| {
        let uses = source.code.windows(3).filter(|path| path[0].is_word("dendrer_cli"));
        let uses = uses.filter(|path| !(path[1].is_sign("::") && path[2].is_word("program")));
        uses.map(|path| format!("{}:{}: dendrer_cli::{}", source.name, path[0].line, path[2].text))
    });
    let meaning = "uses of the library of the program, beside the command of the wheel";
    Count::of("cli.imports", meaning, lines.collect())
}

/// Counts for each name of a public type the definitions after the first.
fn types(sources: &[&Source]) -> Count {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for source in sources {
        for definition in source.code.windows(3) {
            if definition[0].is_word("pub")
                && definition[2].kind == Kind::Word
                && ["struct", "enum", "trait", "type", "union"].iter().any(|kind| definition[1].is_word(kind))
            {
                let place = format!("{}:{}", source.name, definition[2].line);
                places.entry(&definition[2].text).or_default().push(place);
            }
        }
    }
    places.retain(|_, places| places.len() > 1);
    Count {
        key: "types.twice".to_owned(),
        meaning: "public types have the name of another one".to_owned(),
        number: places.values().map(|places| places.len() - 1).sum(),
        lines: places.iter().map(|(name, places)| format!("{name}: {}", places.join(", "))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], expected: [usize; 5]) {
        let source = |(name, text): &(&str, &str)| Source::of(&format!("crates/{name}.rs"), text).unwrap();
        let sources: Vec<Source> = files.iter().map(source).collect();
        let numbers: Vec<usize> = count(&sources).iter().map(|count| count.number).collect();
        assert_eq!(numbers, expected);
    }

    #[test]
    fn verbs_and_views_are_counted() {
        let text = "fn document(t: &Table) { Value::record([]); Value::text(\"Value::array\") } // Table";
        check(&[("dendrer-cli/src/verbs/log", text), ("dendrer-cli/src/out", text)], [3, 0, 0, 0, 0]);
        check(&[("dendrer-view/src/log", "fn f(t: &Trace, s: &dyn Store, x: Traced) {}")], [0, 2, 0, 0, 0]);
    }

    #[test]
    fn codes_are_counted_outside_their_file_and_tests() {
        let text = "f(\"E0101\"); g(\"x E0101\"); // \"E0102\"\n#[cfg(test)] mod tests { const A: &str = \"E0103\"; }";
        check(
            &[("a/src/b", text), ("a/src/tests", text), ("dendrer-object/src/code", text)],
            [0, 0, 1, 0, 0],
        );
    }

    #[test]
    fn the_library_of_the_program_is_for_the_program() {
        let text = "fn f() { dendrer_cli::program(a); dendrer_cli::ask(a) } use dendrer_cli::record;";
        check(&[("dendrer-python/src/lib", text), ("dendrer-cli/src/main", text)], [0, 0, 0, 2, 0]);
    }

    #[test]
    fn names_of_public_types_are_counted_after_the_first() {
        let text = "pub struct A; pub(crate) struct B; pub fn c() {} pub enum D {}";
        check(&[("a/src/a", text), ("b/src/b", text), ("b/src/c", "pub trait D {}")], [0, 0, 0, 0, 3]);
    }
}
