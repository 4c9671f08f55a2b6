//! The program knows nothing of these data sets: no name of a tool or a field of theirs is in it, and a run whose tools
//! have other names gets the same answers under a pack that knows the new ones.

use std::collections::BTreeSet;
use std::path::Path;

use dendrer_object::{Value, json};
use regex::Regex;

use super::answers::{self, Answer};
use super::data::{Domain, Run, corpus, text};
use crate::support::Place;

/// Names of the data sets that mean something in the program without them, and what. Each is there: one that is not has
/// no business in this list.
const OURS: &[(&str, &str)] = &[
    ("created_at", "the time of a message, which a comparison of two runs leaves out"),
    ("first_name", "the first name of a path, in a test for places"),
    ("item_id", "the id of an item in the events of the Responses API"),
    ("read_file", "the function that reads the file an argument names"),
];

/// Names of tools, called in a run or declared by a pack, and of fields, with a `_` in them: a single word is a word of
/// everybody.
fn names_of_the_corpus() -> Option<BTreeSet<String>> {
    let corpus = corpus()?;
    let mut names = BTreeSet::new();
    for domain in Domain::ALL {
        names.extend(domain.tools());
        let runs = corpus.runs(domain);
        for run in &runs {
            tools(&source(run), &mut names);
        }
        if let Some(s0) = runs.first().and_then(|run| domain.s0(run)) {
            fields(&json::parse_door(&s0).unwrap(), &mut names);
        }
    }
    names.retain(|name| name.contains('_') && name.bytes().all(|c| c.is_ascii_lowercase() || c == b'_'));
    Some(names)
}

fn source(run: &Run) -> Value {
    json::parse_door(&std::fs::read(run.path()).unwrap()).unwrap()
}

/// The names of called tools: `name` or `function` beside `arguments` or `args`, at any depth.
fn tools(value: &Value, names: &mut BTreeSet<String>) {
    if value.get("arguments").or(value.get("args")).or(value.get("kwargs")).is_some() {
        names.extend([text(value, "name"), text(value, "function")]);
    }
    each_member(value, &mut |_, member| tools(member, names));
}

fn fields(value: &Value, names: &mut BTreeSet<String>) {
    each_member(value, &mut |name, member| {
        names.insert(name.to_owned());
        fields(member, names);
    });
}

fn each_member(value: &Value, f: &mut dyn FnMut(&str, &Value)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| f("", item)),
        Value::Object(members) => members.iter().for_each(|(name, member)| f(name, member)),
        _ => {}
    }
}

#[test]
fn no_name_of_the_corpus_is_in_the_program() {
    let Some(names) = names_of_the_corpus() else { return };
    for known in [
        "cancel_pending_order",
        "modify_user_address",
        "send_channel_message",
        "payment_history",
        "scheduled_transactions",
    ] {
        assert!(names.contains(known), "{known} is among {} names", names.len());
    }
    let ours: BTreeSet<&str> = OURS.iter().map(|(name, _)| *name).collect();
    let mut found = Vec::new();
    let mut excused = BTreeSet::new();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = 0;
    for entry in std::fs::read_dir(crates).unwrap() {
        // The documents that the program carries are part of it.
        let directory = entry.unwrap().path();
        let mut look = |path: &Path, source: &str| {
            files += 1;
            let words = source.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            for word in words.filter(|word| names.contains(*word)) {
                match ours.get(word) {
                    Some(word) => _ = excused.insert(*word),
                    None => found.push(format!("{}: {word}", path.display())),
                }
            }
        };
        sources(&directory.join("src"), &mut look);
        sources(&directory.join("schemas"), &mut look);
    }
    assert!(files > 100, "{files} sources were read");
    assert_eq!(excused, ours, "what is excused is there");
    // The program holds its texts one after the other, so a short name may come about by chance.
    let binary = std::fs::read(env!("CARGO_BIN_EXE_dendrer")).unwrap();
    let long = names.iter().filter(|name| name.len() > 12);
    found.extend(
        long.filter(|name| contains(&binary, name.as_bytes())).map(|name| format!("the program: {name}")),
    );
    assert!(contains(&binary, b"counters.tool_errors"), "texts of the program are found in it");
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn contains(all: &[u8], part: &[u8]) -> bool {
    regex::bytes::Regex::new(&regex::escape(std::str::from_utf8(part).unwrap())).unwrap().is_match(all)
}

fn sources(directory: &Path, f: &mut dyn FnMut(&Path, &str)) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, f);
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "json") {
            f(&path, &std::fs::read_to_string(&path).unwrap());
        }
    }
}

/// Reduces a run under a pack, both given as text, and asks everything.
fn answer(run: &str, pack: &str, s0: &[u8], n: u64) -> Vec<(String, Result<Answer, String>)> {
    let place = Place::with_store();
    for (name, content) in [("run.json", run.as_bytes()), ("pack.yaml", pack.as_bytes()), ("s0.json", s0)] {
        std::fs::write(place.path().join(name), content).unwrap();
    }
    place.ok(&["import", "run.json", "--run", "source", "-q"]);
    place.ok(&["reduce", "source", "--pack", "pack.yaml", "--as", "run", "--state", "s0.json", "-q"]);
    answers::ask_all(&place, "pack.yaml", n).into_iter().collect()
}

#[test]
fn other_names_of_tools_change_no_answer() {
    let Some(corpus) = corpus() else { return };
    for domain in [Domain::Retail, Domain::Slack] {
        // The run with most changes of the environment.
        let runs = corpus.runs(domain);
        let run = runs.iter().max_by_key(|run| run.env_changes.len()).unwrap();
        let original = std::fs::read_to_string(run.path()).unwrap();
        let pack = std::fs::read_to_string(domain.pack()).unwrap();
        let s0 = domain.s0(run).unwrap();
        let mut names = BTreeSet::new();
        tools(&source(run), &mut names);
        names.retain(|name| name.contains('_'));
        assert!(names.len() > 3, "{names:?}");
        let renamed = |source: &str| {
            names.iter().enumerate().fold(source.to_owned(), |source, (at, name)| {
                let word = Regex::new(&format!(r"\b{}\b", regex::escape(name))).unwrap();
                word.replace_all(&source, format!("tool_{at}_of_another_world")).into_owned()
            })
        };
        let (other_run, other_pack) = (renamed(&original), renamed(&pack));
        assert!(original != other_run && pack != other_pack, "something was renamed");
        let answers = answer(&original, &pack, &s0, run.n);
        assert!(answers.iter().any(|(_, answer)| answer.as_ref().is_ok_and(|one| one.onset.is_some())));
        assert_eq!(answers, answer(&other_run, &other_pack, &s0, run.n), "{}", run.file);
        // And a pack that does not know the new names rebuilds nothing: it is the pack that knows.
        assert_ne!(answers, answer(&other_run, &pack, &s0, run.n), "{}", run.file);
    }
}
