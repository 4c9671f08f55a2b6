//! Files of chains that were rotated, that begin in the middle, or that several writers wrote.

use dendrer_chain::{
    ActionType, InteractionChain, RowValue, Step, StepStamp, content_hash_of, hashed, header_hash,
};
use dendrer_object::{Timestamp, Value};

use crate::support::Place;

fn step(n: u64) -> Step {
    Step::new(ActionType::ToolCall, "get", StepStamp::new(n << 40, Timestamp::from_ms(n)))
}

/// A header and rows with these numbers, each following the one before.
fn lines(id: &str, numbers: &[u64]) -> Vec<String> {
    let mut chain = InteractionChain::new(id, Timestamp::from_ms(0));
    numbers.iter().for_each(|n| drop(chain.record(step(*n)).clone()));
    chain.to_jsonl().lines().map(str::to_owned).collect()
}

/// A row that follows a line.
fn after(line: &str, n: u64) -> String {
    let own = RowValue::parse(line).ok().as_ref().and_then(content_hash_of).map(str::to_owned);
    hashed(step(n).to_row(), Some(&own.unwrap_or_else(|| header_hash(line)))).to_string()
}

fn write(place: &Place, name: &str, lines: &[&str]) {
    std::fs::write(place.path().join(name), lines.join("\n") + "\n").unwrap();
}

/// The exit code of `verify` of files, and its answer.
fn verify(place: &Place, files: &[&str]) -> (i32, Value) {
    place.json(&[&["verify"], files, &["--profile", "carl"]].concat())
}

fn at(answer: &Value, place: &str) -> String {
    let found = place.parse::<dendrer_object::Pointer>().unwrap().get(answer).cloned();
    found.unwrap_or(Value::Null).to_string()
}

/// Rotated files are joined; one that begins behind a row that is not there is a part; a changed row stays a fault (W-62).
#[test]
fn rotated_files_are_joined_and_a_part_is_neither_whole_nor_changed() {
    let place = Place::with_store();
    let all = lines("c", &[1, 2, 3, 4, 5]);
    let row = |n: usize| all[n].as_str();
    write(&place, "1.jsonl", &[row(0), row(1), row(2)]);
    write(&place, "2.jsonl", &[row(3), row(4)]);
    write(&place, "2h.jsonl", &[row(0), row(3), row(4)]);
    write(&place, "3.jsonl", &[row(5)]);
    let changed = row(4).replace("\"get\"", "\"got\"");
    write(&place, "changed.jsonl", &[row(3), &changed]);
    for (files, code) in [
        (&["1.jsonl", "2.jsonl", "3.jsonl"][..], 0),
        (&["3.jsonl", "1.jsonl", "2h.jsonl"], 0),
        (&["1.jsonl"], 0),
        (&["2.jsonl"], 6),
        (&["2h.jsonl"], 6),
        (&["1.jsonl", "3.jsonl"], 6),
        (&["2.jsonl", "3.jsonl"], 6),
        (&["changed.jsonl"], 4),
        (&["1.jsonl", "changed.jsonl"], 4),
        (&["1.jsonl", "2.jsonl", "2.jsonl"], 4),
    ] {
        let (exit, answer) = verify(&place, files);
        assert_eq!(exit, code, "{files:?}: {answer}");
    }
    let (_, answer) = verify(&place, &["1.jsonl", "2.jsonl"]);
    assert_eq!(at(&answer, "/items/1/joins"), r#"[{"file":"1.jsonl","line":1,"there":3}]"#);
    let (_, answer) = verify(&place, &["1.jsonl", "3.jsonl"]);
    assert_eq!((at(&answer, "/items/1/line"), at(&answer, "/items/1/partial")), ("1".into(), "true".into()));
    let ran = place.run(&["verify", "1.jsonl", "3.jsonl", "--profile", "carl"]);
    assert!(ran.stdout.contains("PART  3.jsonl") && ran.stdout.contains("E0468"), "{}", ran.stdout);
}

/// A part is imported with its gap, comes back byte for byte, and decides nothing that rows before it could.
#[test]
fn a_part_of_a_chain_is_imported_with_its_gap() {
    let place = Place::with_store();
    let all = lines("c", &[1, 2, 3]);
    for (name, rows) in [("bare", &[2, 3][..]), ("headed", &[0, 2, 3])] {
        let file = format!("{name}.jsonl");
        let rows: Vec<&str> = rows.iter().map(|n| all[*n].as_str()).collect();
        write(&place, &file, &rows);
        assert_eq!(place.run(&["import", "--kind", "carl", &file, "--on-gap", "stop"]).code, 6);
        let (code, answer) = place.json(&["import", "--kind", "carl", &file]);
        assert_eq!((code, at(&answer, "/ticks"), at(&answer, "/gaps")), (0, "2".into(), "1".into()));
        assert_eq!(at(&answer, "/notes/0/kind"), r#""rows_before_missing""#);
        assert_eq!(place.ok(&["export", name, "--format", "carl"]), rows.join("\n") + "\n");
        for (gate, code) in [
            ("by_action('tool_call').exists(s, s.success)", 0),
            ("by_action('tool_call').all(s, s.success)", 6),
            ("size(by_action('payment')) == 0", 6),
        ] {
            assert_eq!(place.run(&["assert", name, "--holds", gate]).code, code, "{gate}");
        }
        assert_eq!(place.run(&["bisect", name, "--holds", "state.counters.tool_errors == 0"]).code, 6);
    }
}

/// Each chain of a file, and each side of a fork, is checked against its own rows.
#[test]
fn chains_of_several_writers_are_checked_each_by_itself() {
    let place = Place::with_store();
    let (a, b) = (lines("a", &[1, 2, 3]), lines("b", &[11, 12]));
    let side = after(&a[1], 4);
    let (later, forged) = (after(&side, 5), side.replace("\"get\"", "\"got\""));
    for (name, rows, code, chains, forks) in [
        ("two", vec![&a[0], &b[0], &a[1], &b[1], &a[2], &b[2], &a[3]], 0, "2", "[]"),
        ("fork", vec![&a[0], &a[1], &a[2], &side, &a[3], &later], 0, "1", "[4]"),
        ("removed", vec![&a[0], &b[0], &a[1], &b[1], &a[3], &b[2]], 4, "2", "[]"),
        ("forged", vec![&a[0], &a[1], &a[2], &forged, &a[3]], 4, "1", "[4]"),
        ("twice", vec![&a[0], &a[1], &a[1], &a[2]], 4, "1", "[]"),
        ("moved", vec![&a[0], &a[2], &a[1]], 4, "1", "[]"),
    ] {
        let file = format!("{name}.jsonl");
        write(&place, &file, &rows.iter().map(|row| row.as_str()).collect::<Vec<_>>());
        let (exit, answer) = verify(&place, &[&file]);
        let found = (exit, at(&answer, "/items/0/chains"), at(&answer, "/items/0/forks"));
        assert_eq!(found, (code, chains.to_owned(), forks.to_owned()), "{name}: {answer}");
        place.ok(&["import", "--kind", "carl", &file]);
        let text = std::fs::read_to_string(place.path().join(&file)).unwrap();
        assert_eq!(place.ok(&["export", name, "--format", "carl"]), text, "{name}");
    }
    // Rows of the other chain, and a repeated one, are never counted as sound; the sides of a fork are.
    let gate = |run: &str, gate: &str| place.run(&["assert", run, "--holds", gate]).code;
    assert_eq!(gate("two", "size(by_action('tool_call')) == 5"), 6);
    assert_eq!(gate("two", "size(by_action('tool_call')) >= 3"), 0);
    assert_eq!(gate("twice", "size(by_action('tool_call')) == 3"), 6);
    assert_eq!(gate("fork", "size(by_action('tool_call')) == 5"), 0);
}

/// Rows that lost a secret keep the line that they follow, on each side of a fork.
#[test]
fn redacted_rows_of_a_fork_follow_the_same_lines() {
    let place = Place::with_store();
    let all = lines("a", &[1, 2, 3]);
    let mut secret = step(1);
    let token = format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
    secret.output = RowValue::from(&*token);
    let first = hashed(secret.to_row_as_is(), Some(&header_hash(&all[0]))).to_string();
    let (left, right) = (after(&first, 2), after(&first, 3));
    let end = after(&left, 4);
    write(&place, "fork.jsonl", &[&all[0], &first, &left, &right, &end]);
    place.ok(&["import", "--kind", "carl", "fork.jsonl"]);
    let text = place.ok(&["export", "fork", "--format", "carl"]);
    assert!(!text.contains(&token));
    write(&place, "clean.jsonl", &[text.trim_end()]);
    let (code, answer) = verify(&place, &["clean.jsonl"]);
    assert_eq!((code, at(&answer, "/items/0/forks")), (0, "[4]".into()), "{answer}");
}
