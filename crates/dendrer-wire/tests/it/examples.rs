//! The examples of docs/import.md are what it does.

use std::path::Path;

use dendrer_object::json::parse_door;
use dendrer_wire::format::FORMATS;
use dendrer_wire::import::{ImportOptions, Map};

use crate::{chat, import, mapped, of, shown};

fn page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/import.md");
    std::fs::read_to_string(page).unwrap()
}

/// The blocks of one kind: pairs of a line and what becomes of it, with the line in front that a mapping has.
pub(crate) fn blocks(kind: &str) -> Vec<Vec<String>> {
    let text = page();
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == format!("```{kind}") {
            found.push(lines.by_ref().take_while(|line| *line != "```").map(str::to_owned).collect());
        }
    }
    found
}

fn check(block: &[String], options: ImportOptions) {
    let source: Vec<&str> =
        block.iter().filter(|line| !line.starts_with("=> ")).map(String::as_str).collect();
    let expected: Vec<&str> = block.iter().filter_map(|line| line.strip_prefix("=> ")).collect();
    let (_, records) = import(source.join("\n").as_bytes(), options).unwrap();
    assert_eq!(records.len() - 1, expected.len());
    for (tick, expected) in expected.iter().enumerate() {
        let expected = parse_door(expected.as_bytes()).unwrap();
        assert_eq!(shown(&records, tick + 1).to_string(), expected.to_string(), "{}", source[tick]);
    }
}

#[test]
fn the_examples_of_chats_hold() {
    let blocks = blocks("import-example");
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        check(&block, chat());
    }
}

#[test]
fn the_examples_of_sessions_hold() {
    for kind in ["claude-code", "codex"] {
        let blocks = blocks(&format!("import-{kind}"));
        assert_eq!(blocks.len(), 1);
        check(&blocks[0], of(kind));
    }
}

#[test]
fn the_examples_of_mappings_hold() {
    let blocks = blocks("import-map");
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        let map = Map::from_value(&parse_door(block[0].as_bytes()).unwrap()).unwrap();
        check(&block[1..], mapped(map));
    }
}

#[test]
fn a_mapping_that_is_none_says_where() {
    for (map, expected) in [
        ("[]", ": a mapping is an object, not an array"),
        ("{}", "/type: a mapping says where the transition type comes from"),
        (r#"{"type":"/t","agnt":"/a"}"#, "/agnt: an intent has no member \"agnt\"; did you mean \"agent\"?"),
        (r#"{"type":"t"}"#, "/type: \"t\" is not a JSON pointer"),
        (r#"{"type":{"const":1,"from":"/a"}}"#, "/type: a constant is"),
        (r#"{"type":{"from":"/a"}}"#, "/type: a table is"),
        (r#"{"type":"/t","intent":{"content":7}}"#, "/intent/content: this is a pointer"),
    ] {
        let error = Map::from_value(&parse_door(map.as_bytes()).unwrap()).unwrap_err();
        let text = format!("{}: {error}", error.place()[0].1);
        assert!(text.starts_with(expected), "{map}: {text}");
        assert_eq!(error.code(), "E0215");
    }
}

#[test]
fn a_line_that_gives_no_intent_ends_the_import() {
    for (map, line, code) in [
        (r#"{"type":"/t"}"#, r#"{"t":"plan.updte"}"#, "E0402"),
        (r#"{"type":"/t"}"#, r#"{"t":"kernel.anomaly"}"#, "E0401"),
        (r#"{"type":"/t"}"#, r#"{"t":5}"#, "E0209"),
        (r#"{"type":"/t"}"#, r#"{"u":5}"#, "E0209"),
        (r#"{"type":"/t","confidence":"/c"}"#, r#"{"t":"plan.update","c":2}"#, "E0209"),
        (
            r#"{"type":"/t","delta":"/d"}"#,
            r#"{"t":"plan.update","d":[{"set":"/policy","value":1}]}"#,
            "E0405",
        ),
    ] {
        let map = Map::from_value(&parse_door(map.as_bytes()).unwrap()).unwrap();
        let fine = "{\"t\":\"plan.update\"}\n";
        let source = format!("{fine}{line}");
        let error = import(source.as_bytes(), mapped(map)).unwrap_err();
        assert_eq!(
            (error.code().as_str(), error.place()[0].clone()),
            (code, ("path", "/1".to_owned())),
            "{line}"
        );
    }
}

#[test]
fn the_page_lists_the_formats() {
    let names: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    let kinds = format!("`--kind auto\\|{}`", names.join("\\|"));
    assert!(page().contains(&kinds), "{kinds}");
}

/// The page with the tables is the tables. `DENDRER_WRITE_PAGES=1` writes it.
#[test]
fn the_page_of_tables_is_made_of_them() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/import-tables.md");
    let made = dendrer_wire::format::tables_page();
    if std::env::var_os("DENDRER_WRITE_PAGES").is_some() {
        std::fs::write(path, &made).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).unwrap() == made,
        "DENDRER_WRITE_PAGES=1 writes docs/import-tables.md"
    );
}
