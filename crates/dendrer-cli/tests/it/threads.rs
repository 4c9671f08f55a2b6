//! LangGraph threads: `log` by steps and nodes, `diff` by steps, on a bundle of threads that a saver recorded.
//!
//! The texts are in `tests/data/threads`, one file a width. `DENDRER_UPDATE=1` writes them anew.

use std::path::PathBuf;

use dendrer_object::Value;
use dendrer_view::quote;
use rusqlite::params;

use crate::databases::{put, tables, write};
use crate::support::Place;

/// The commands whose answers are kept.
const COMMANDS: [&[&str]; 20] = [
    &["runs", "threads.dnd"],
    &["log", "threads.dnd#t-a"],
    &["log", "threads.dnd#t-a@26..43"],
    &["log", "threads.dnd#t-a+2", "-n", "8"],
    &["log", "threads.dnd#t-a", "--agent", "quoter/check"],
    &["log", "threads.dnd#t-a", "--type", "observation.add", "--to", "tick", "9"],
    &["log", "threads.dnd#m-1"],
    &["log", "threads.dnd#m-2"],
    &["diff", "threads.dnd#t-a", "threads.dnd#t-a+2"],
    &["diff", "threads.dnd#t-a+2", "threads.dnd#t-a"],
    &["diff", "threads.dnd#m-1", "threads.dnd#m-2"],
    &["diff", "threads.dnd#t-a", "threads.dnd#lg-45a6d3349c426193"],
    &["show", "threads.dnd#t-a@29"],
    &["show", "threads.dnd#t-a@20"],
    &["state", "threads.dnd#t-a", "values"],
    &["bisect", "threads.dnd#t-a", "--holds", "state.values.total <= 340"],
    &["why", "threads.dnd#t-a", "values.total"],
    &["backtrack", "threads.dnd#t-a", "values.total", "--values"],
    &["verify", "threads.dnd#t-a"],
    &["verify", "threads.dnd"],
];

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/threads").join(name)
}

pub(crate) fn place() -> Place {
    let place = Place::new();
    std::fs::copy(data("threads.dnd"), place.path().join("threads.dnd")).unwrap();
    place
}

/// Compares the answers at a width with those that are kept.
fn check(width: usize) {
    let place = place();
    let mut found = String::new();
    for command in COMMANDS {
        let text = place.ok(&[command, &["--width", &width.to_string()]].concat());
        // Every character of the bundle is one column wide.
        let wide = text.lines().find(|line| line.chars().count() > width);
        assert_eq!(wide, None, "{command:?} at {width}");
        let words: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        found.push_str(&format!("$ dendrer {}\n{text}", quote::shell(&words)));
    }
    let file = data(&format!("{width}.txt"));
    if std::env::var_os("DENDRER_UPDATE").is_some() {
        std::fs::write(&file, &found).unwrap();
    }
    assert_eq!(found, std::fs::read_to_string(&file).unwrap());
}

#[test]
fn a_thread_is_listed_and_compared_at_60_columns() {
    check(60);
}

#[test]
fn steps_of_two_threads_are_lined_up_by_nodes() {
    check(80);
}

#[test]
fn a_thread_is_listed_and_compared_at_200_columns() {
    check(200);
}

fn items(place: &Place, args: &[&str]) -> Vec<Value> {
    let (code, answer) = place.json(args);
    assert_eq!(code, 0, "{answer}");
    answer.get("items").unwrap().as_array().unwrap().iter().cloned().collect()
}

#[test]
fn a_place_is_the_same_from_any_tick() {
    let place = place();
    let all = items(&place, &["log", "threads.dnd#t-a"]);
    assert_eq!(all.len(), 50);
    for (item, tick) in all.iter().zip(1u64..) {
        let one = items(&place, &["log", &format!("threads.dnd#t-a@{tick}..{tick}")]);
        assert_eq!(one, [item.clone()]);
    }
    let of = |tick: usize, name: &str| all[tick - 1].get(name).map(ToString::to_string).unwrap_or_default();
    assert_eq!(
        (of(1, "source"), of(1, "step"), of(1, "next")),
        ("\"input\"".into(), "-1".into(), "[\"__start__\"]".into())
    );
    assert_eq!(
        (of(50, "node"), of(50, "step"), of(50, "next")),
        ("\"order\"".into(), "12".into(), "[]".into())
    );
    // A write has the node as its agent.
    assert!(all.iter().all(|item| item.get("source") != Some(&Value::Null)
        || item.get("agent") == item.get("node")
        || item.get("node").and_then(Value::as_str).is_some_and(|node| node.contains('('))));
}

#[test]
fn the_onset_of_a_thread_has_the_answer_in_another_currency() {
    let question = ["bisect", "threads.dnd#t-a", "--holds", "state.values.total <= 340"];
    let (code, found) = place().json(&question);
    let first = found.get("first_seen").unwrap().as_array().unwrap().get(0).unwrap().clone();
    let of = |value: &Value, name: &str| value.get(name).map(ToString::to_string).unwrap_or_default();
    assert_eq!((code, of(&found, "onset"), of(&first, "tick")), (0, "39".into(), "20".into()));
    assert_eq!(of(&first, "within"), r#"{"currency":"EUR","item":"wrench","price":310}"#);
}

#[test]
fn steps_are_in_the_document_of_a_comparison() {
    let place = place();
    let (code, answer) = place.json(&["diff", "threads.dnd#t-a", "threads.dnd#t-a+2"]);
    assert_eq!(code, 0);
    let text = |name: &str| answer.get(name).map(ToString::to_string).unwrap_or_default();
    assert_eq!(
        (text("align"), text("pairs"), text("differ"), text("only_b")),
        ("\"step\"".into(), "9".into(), "2".into(), "1".into())
    );
    let items = answer.get("items").unwrap().as_array().unwrap();
    let of =
        |at: usize, name: &str| items.get(at).unwrap().get(name).map(ToString::to_string).unwrap_or_default();
    assert_eq!(
        (of(0, "a_step"), of(0, "b_step"), of(0, "node")),
        ("null".into(), "8".into(), "\"(update)\"".into())
    );
    assert_eq!(
        (of(1, "a_step"), of(1, "b_step"), of(1, "node")),
        ("8".into(), "9".into(), "\"order\"".into())
    );
    // Transitions are compared where that is asked for.
    let (_, by_tick) = place.json(&["diff", "threads.dnd#t-a", "threads.dnd#t-a+2", "--align", "tick"]);
    assert_eq!(by_tick.get("align"), Some(&"tick".into()));
    // One range is compared, by the ticks of a.
    let one = place.ok(&["diff", "threads.dnd#t-a", "threads.dnd#t-a+2", "--from", "tick", "50"]);
    assert!(one.contains("50|52  step 12|13  order"), "{one}");
    let none = place.ok(&["diff", "threads.dnd#t-a", "threads.dnd#t-a+2", "--path", "state.values.approved"]);
    assert!(none.starts_with("no difference in what was asked for"), "{none}");
}

/// A database with the writes of a node and of a task that an `approve` pushes, in a thread whose name no run can have.
#[test]
fn a_thread_of_a_database_is_found_by_its_name() {
    let place = Place::with_store();
    let db = tables(&place);
    put(&db, "thread b/ü", "1", None, "[]");
    db.execute("UPDATE writes SET thread_id = ?1", params!["thread b/ü"]).unwrap();
    put(&db, "thread b/ü", "2", Some("1"), "[]");
    drop(db);
    place.ok(&["import", "c.sqlite"]);
    for (condition, found) in [("thread == \"thread b/ü\"", 1), ("thread == \"t\"", 0)] {
        let runs = items(&place, &["runs", "--where", condition]);
        assert_eq!(runs.len(), found, "{condition}");
    }
    let text = place.ok(&["runs", "--where", "thread == \"thread b/ü\"", "--width", "80"]);
    assert!(text.contains("thread \"thread b/ü\""), "{text}");
}

#[test]
fn a_node_is_the_agent_of_its_writes() {
    let place = Place::with_store();
    let db = tables(&place);
    put(&db, "t", "1", None, "[]");
    write(&db, "1", "x", 0, br#"[{"type":"ai","id":"a1","content":"hi"}]"#);
    put(&db, "t", "2", Some("1"), r#"[{"type":"ai","id":"a1","content":"hi"}]"#);
    // A name that the kernel keeps for itself is no agent.
    let sql =
        "INSERT INTO writes VALUES ('t', '', '2', 'y', '~__pregel_pull, kernel', 0, 'messages', 'json', ?1)";
    db.execute(sql, params![b"[]".as_slice()]).unwrap();
    drop(db);
    place.ok(&["import", "c.sqlite"]);
    let agents: Vec<String> = items(&place, &["log", "t"])
        .iter()
        .map(|item| format!("{} {}", item.get("agent").unwrap(), item.get("node").unwrap()))
        .collect();
    assert_eq!(
        agents,
        [r#""langgraph" """#, r#""model" "model""#, r#""langgraph" "model""#, r#""langgraph" "kernel""#,]
    );
    let (_, counters) = place.json(&["state", "t", "--path", "counters.by_agent"]);
    assert_eq!(
        counters.get("value").map(ToString::to_string).as_deref(),
        Some(r#"{"kernel":1,"langgraph":3,"model":1}"#)
    );
    assert_eq!(place.run(&["verify", "t", "--replay"]).code, 0);
}
