//! The page about recording: its commands are run, its client is run, and each of its lines is committed as it is.

#![cfg(unix)]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use dendrer::kernel::ontology::{Class, TYPES};
use dendrer_object::{Value, json};
use regex::Regex;

use crate::schema::check_intent;
use crate::support::Place;
use crate::tutorial::{blocks, shell};

fn page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recording.md");
    std::fs::read_to_string(page).unwrap()
}

/// The types that a line may have without a pack.
fn types() -> BTreeSet<&'static str> {
    let proposed = TYPES.iter().filter(|(_, class)| matches!(class, Class::Agent | Class::Runtime));
    proposed.map(|(name, _)| *name).collect()
}

fn schema() -> Value {
    dendrer_view::schemas::find("intent").unwrap()
}

/// Commits a line to a new run, and checks that it is its first transition and that the schema allows it.
fn commit(place: &Place, run: &str, line: &str, flags: &[&str]) -> String {
    let value = json::parse_door(line.as_bytes()).unwrap();
    check_intent(line);
    let is_runtimes = line.contains(r#""author":"runtime""#) && !line.contains("action.result");
    let flags = if is_runtimes { &["--as", "runtime"] } else { flags };
    let ran = place.run_with(&[&["commit", "--run", run], flags].concat(), line.as_bytes());
    assert_eq!(ran.code, 0, "{line}: {}{}", ran.stdout, ran.stderr);
    let type_name = value.get("type").unwrap().as_str().unwrap().to_owned();
    let reply = ran.stdout.lines().nth(1).unwrap();
    assert!(reply.starts_with("tick 1  ") && reply.contains(&format!("  {type_name}  line 1")), "{reply}");
    assert!(!reply.contains("reducer_error"), "{reply}");
    type_name
}

#[test]
fn the_page_prints_what_it_shows() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("SKIPPED: no python3");
        return;
    }
    let page = page();
    let place = Place::new();
    let desk = place.path().join("desk");
    std::fs::create_dir(&desk).unwrap();
    let (mut last, mut commands) = (0, 0);
    shell(&place, "dendrer init", &mut last);
    let ids = Regex::new(r"sha256:([0-9a-f]{64}|\.\.\.)").unwrap();
    for block in blocks(&page) {
        if block.info[0] != "console" {
            std::fs::write(desk.join(block.info[1]), block.lines.join("\n") + "\n").unwrap();
            continue;
        }
        for (line, expected) in block.commands() {
            let found = shell(&place, line, &mut last);
            assert_eq!(
                ids.replace_all(&found, "ID"),
                ids.replace_all(&expected, "ID"),
                "`{line}` prints:\n{found}"
            );
            commands += 1;
        }
    }
    assert_eq!((last, commands), (0, 7));
    let client = blocks(&page).into_iter().find(|block| block.info[0] == "python").unwrap();
    assert!(client.lines.len() <= 20, "{} lines of Python", client.lines.len());
}

#[test]
fn each_line_of_the_page_is_accepted_in_a_new_run() {
    let page = page();
    let place = Place::with_store();
    let examples = blocks(&page).into_iter().filter(|block| block.info[0] == "jsonl");
    let lines: Vec<&str> = examples.flat_map(|block| block.lines).collect();
    let mut found = BTreeSet::new();
    for (number, line) in lines.iter().enumerate() {
        found.insert(commit(&place, &format!("r{number}"), line, &[]));
        // The runtime may write all of them, and its own lines without an author.
        let line = line.replace(r#""author":"runtime","#, "");
        commit(&place, &format!("s{number}"), &line, &["--as", "runtime"]);
    }
    assert_eq!(found.iter().map(String::as_str).collect::<BTreeSet<_>>(), types());
    let ran = place.run(&["verify", "--all", "--replay"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn the_schema_lists_all_types_with_an_example_each() {
    let schema = schema();
    let properties = schema.get("properties").unwrap();
    for name in ["type", "transition_type"] {
        let listed = properties.get(name).unwrap().get("anyOf").unwrap().as_array().unwrap();
        let listed = listed.get(0).unwrap().get("enum").unwrap().as_array().unwrap();
        assert_eq!(listed.iter().map(|name| name.as_str().unwrap()).collect::<BTreeSet<_>>(), types());
    }
    let place = Place::with_store();
    let examples = schema.get("examples").unwrap().as_array().unwrap();
    let lines = examples.iter().enumerate();
    let found: BTreeSet<String> =
        lines.map(|(at, line)| commit(&place, &format!("r{at}"), &line.to_string(), &[])).collect();
    assert_eq!(found.iter().map(String::as_str).collect::<BTreeSet<_>>(), types());
}

#[test]
fn the_page_has_each_member_of_the_schema() {
    let page = page();
    let table = page.split("## The members of a line").nth(1).unwrap();
    let table = table.split("### ").next().unwrap();
    for (name, _) in schema().get("properties").unwrap().as_object().unwrap().iter() {
        assert!(
            table.lines().any(|row| row.starts_with("| ") && row.contains(&format!("`{name}`"))),
            "{name}"
        );
    }
}

#[test]
fn the_codes_of_types_list_the_types() {
    let place = Place::new();
    let text = place.ok(&["explain", "E0402"]);
    for name in types() {
        assert!(text.contains(name), "{name}: {text}");
    }
    assert!(text.contains("dendrer schema intent"), "{text}");
}
