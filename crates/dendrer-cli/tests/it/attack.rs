//! What somebody tries who wants a wrong answer: each found once, and held here.

use std::process::Stdio;

use crate::support::{Place, demo, strip};

const PLAIN: &[u8] = b"{\"type\":\"plan.update\"}\n";

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            std::fs::copy(&from, &to).unwrap();
        }
    }
}

/// A store that was rolled back would sign a second root for a size that it signed before.
#[test]
fn a_log_that_was_longer_when_it_was_signed_here_takes_no_more_records() {
    let place = Place::with_store();
    assert_eq!(place.run_with(&["commit", "--run", "r"], PLAIN).code, 0);
    copy(&place.path().join(".dendrer"), &place.path().join("older"));
    assert_eq!(place.run_with(&["commit", "--run", "r"], PLAIN).code, 0);
    let ran = place.run_with(&["commit", "--run", "r", "--store", "older"], PLAIN);
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("error[E0307]") && ran.stderr.contains("nothing was committed"),
        "{}",
        ran.stderr
    );
    assert_eq!(place.run_with(&["commit", "--run", "r"], PLAIN).code, 0, "the newer one goes on");
}

/// The first record of a log names its key, so store.json cannot be given another one.
#[test]
fn a_key_that_was_exchanged_is_found_by_whoever_never_saw_the_first() {
    let (one, other) = (Place::with_store(), Place::with_store());
    assert_eq!(one.run_with(&["commit", "--run", "r"], PLAIN).code, 0);
    let key_of = |place: &Place| {
        let text = std::fs::read_to_string(place.path().join(".dendrer/store.json")).unwrap();
        let at = text.find("\"key\":\"").unwrap() + 7;
        text[at..at + text[at..].find('"').unwrap()].to_owned()
    };
    let text = std::fs::read_to_string(one.path().join(".dendrer/store.json")).unwrap();
    let text = text.replace(&key_of(&one), &key_of(&other));
    std::fs::write(one.path().join(".dendrer/store.json"), text).unwrap();
    let stranger = Place::new();
    let store = one.path().join(".dendrer");
    let ran = stranger.run(&["verify", "--all", "--store", store.to_str().unwrap()]);
    assert_eq!(ran.code, 4, "{}", ran.stdout);
    assert!(
        ran.stdout.contains("begun under another key") || ran.stderr.contains("E0308"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}

#[test]
fn a_tip_vouches_for_one_run() {
    let both = ["verify", "trip-planner-a", "logistics-run-47", "--tip"];
    assert_eq!(demo().run(&[&both[..], &[&"0".repeat(64)]].concat()).code, 6);
    let tip = |run: &str| {
        let shown = demo().json(&["show", &format!("{run}@tip")]).1;
        shown.get("id").and_then(|id| id.as_str().map(str::to_owned)).unwrap()
    };
    let (one, other) = (tip("trip-planner-a"), tip("logistics-run-47"));
    assert!(demo().run(&[&both[..], &[&one]].concat()).stdout.contains("\nINTACT"));
    assert!(demo().run(&[&both[..], &[&one, "--tip", &other]].concat()).stdout.contains("\nVERIFIED"));
    let files = ["verify", "logistics-run-47.dnd", "tampered.dnd", "--tip", &other];
    assert_eq!(demo().run(&files).code, 2);
}

/// An initial state that is withheld is unknown, and not empty.
#[test]
fn a_withheld_initial_state_is_no_answer() {
    let place = Place::with_store();
    std::fs::write(place.path().join("s0.json"), "{\"risk\":1}").unwrap();
    assert_eq!(place.run_with(&["commit", "--run", "r", "--state", "s0.json"], PLAIN).code, 0);
    place.ok(&["export", "r", "-o", "less.dnd"]);
    strip(place.path().join("less.dnd"), &["/state/risk"]);
    for args in [
        &["state", "less.dnd@0"][..],
        &["state", "less.dnd"],
        &["bisect", "less.dnd", "--holds", "!has(state.risk)"],
    ] {
        let ran = place.run(args);
        assert_eq!(ran.code, 6, "{args:?}: {}{}", ran.stdout, ran.stderr);
    }
}

/// One unknown link turns down its own line, and the lines before it count.
#[test]
fn an_unknown_link_takes_nobody_with_it() {
    let place = Place::with_store();
    let bad = format!(
        "{{\"type\":\"plan.update\",\"links\":[{{\"rel\":\"evidence\",\"hash\":\"sha256:{}\"}}]}}\n",
        "0".repeat(64)
    );
    let lines = [PLAIN, PLAIN, bad.as_bytes(), PLAIN].concat();
    let ran = place.run_with(&["commit", "--run", "r"], &lines);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_eq!(place.json(&["log", "r"]).1.get("items").unwrap().as_array().unwrap().len(), 2);
    assert!(ran.stderr.contains("line"), "{}", ran.stderr);
}

#[test]
fn a_range_that_begins_in_violation_has_no_origin_in_it() {
    let (code, answer) = demo().json(&[
        "bisect",
        "logistics-run-47",
        "--holds",
        "state.risk_score <= 0.75",
        "--from",
        "tick",
        "40",
    ]);
    assert_eq!((code, answer.get("outcome").and_then(|word| word.as_str())), (0, Some("initial")));
    assert_eq!(answer.get("onset"), Some(&dendrer_object::Value::Null));
}

/// The exit code is the answer for scripts, whether or not somebody reads the text.
#[test]
fn an_exit_code_outlives_the_reader_of_the_text() {
    let demo = demo();
    let mut child = demo
        .command(&["verify", "tampered.dnd"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(4));
}

/// Nothing that is asked to be committed is lost because nobody reads the acknowledgements.
#[test]
fn a_commit_outlives_the_reader_of_its_acknowledgements() {
    let place = Place::with_store();
    std::fs::write(place.path().join("many.jsonl"), PLAIN.repeat(1000)).unwrap();
    let mut child = place
        .command(&["commit", "--run", "r", "--file", "many.jsonl"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(place.json(&["state", "r"]).1.get("tick"), Some(&1000u64.into()));
}

#[test]
fn names_that_no_address_reaches_and_keys_in_the_store_are_refused() {
    let place = Place::with_store();
    for name in ["x.dnd", "0123456789ab"] {
        assert_eq!(place.run_with(&["commit", "--run", name], PLAIN).code, 2, "{name}");
    }
    let other = Place::new();
    let ran = other.run(&["init", "sub", "--key", "sub/.dendrer/key"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
}

#[test]
fn a_range_that_ends_before_it_begins_is_no_empty_answer() {
    for verb in [
        &["log", "trip-planner-a"][..],
        &["bisect", "trip-planner-a", "--holds", "true"],
        &["backtrack", "trip-planner-a", "phase"],
    ] {
        let ran = demo().run(&[verb, &["--from", "5", "--to", "3"]].concat());
        assert_eq!(ran.code, 2, "{verb:?}");
        assert!(ran.stderr.contains("--from tick 5 lies behind --to tick 3"), "{}", ran.stderr);
    }
}

#[test]
fn a_dash_is_no_file() {
    let bundle = demo().run(&["export", "trip-planner-a", "-o", "-"]);
    assert_eq!(bundle.code, 0);
    assert!(bundle.stdout.starts_with('{') && bundle.stdout.len() > 10_000);
    assert_eq!(demo().run(&["runs", "-o", "-"]).stdout, demo().run(&["runs"]).stdout);
    assert!(!demo().dir().join("-").exists());
}
