//! A gate never passes over what is not what was signed, nor over a part of a run; what only shows goes on and says it.

use std::path::PathBuf;

use dendrer::object::bundle::{Bundle, LogItem};
use dendrer::object::merkle::{cover, from_leaves, leaf_hash};
use dendrer::object::record::{Entry, Kind};
use dendrer_object::Value;

use crate::support::{Place, Ran, parse};

const PACK: &str = "name: my.shop\nversion: v1\nstate:\n  total: {init: 0}\nrules:\n  - when_type: order.add\n    steps: \
                    [{add: total, value: t.intent.amount}]\ntypes:\n  order.add: an order came in\npredicates:\n  small:\n    \
                    holds: state.total <= 100\n";

/// A store with one run of five ticks: two orders, one line that is refused, two orders.
fn recorded() -> Place {
    let place = Place::with_store();
    std::fs::write(place.path().join("shop.yaml"), PACK).unwrap();
    let order = "{\"type\":\"order.add\",\"agent\":\"desk\",\"intent\":{\"amount\":5}}\n";
    commit(&place, &order.repeat(2));
    let refused =
        place.run_with(&["commit", "--run", "pay"], b"{\"type\":\"run.fork\",\"agent\":\"desk\"}\n");
    assert_ne!(refused.code, 0, "{}", refused.stdout);
    commit(&place, &order.repeat(2));
    place.ok(&["export", "pay", "-o", "pay.dnd"]);
    place
}

fn commit(place: &Place, lines: &str) {
    let ran = place.run_with(&["commit", "--run", "pay", "--pack", "./shop.yaml"], lines.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

/// Writes the bundle without some entries, which takes no key: their hashes stay.
fn cut(place: &Place, to: &str, mut is_cut: impl FnMut(&Entry) -> bool) {
    let bundle = Bundle::parse(&std::fs::read(place.path().join("pay.dnd")).unwrap()).unwrap();
    let entries: Vec<Entry> = bundle.positions().map(|(_, entry)| entry.clone()).collect();
    assert_eq!(entries.len() as u64, bundle.size, "a bundle of all runs shows every entry");
    let leaves: Vec<_> = entries.iter().map(|entry| leaf_hash(&entry.text())).collect();
    let (node, mut next) = (from_leaves(&leaves), 0);
    let mut made = Bundle { log: Vec::new(), records: Vec::new(), ..bundle.clone() };
    let omit = |log: &mut Vec<LogItem>, from: u64, to: u64| {
        let hashes = cover(from..to).map(|subtree| node(subtree).unwrap()).collect();
        log.extend((from < to).then_some(LogItem::Omitted { count: to - from, hashes }));
    };
    for ((position, entry), record) in (0..).zip(&entries).zip(&bundle.records) {
        if is_cut(entry) {
            continue;
        }
        omit(&mut made.log, next, position);
        made.log.push(LogItem::Entry(entry.clone()));
        made.records.push(record.clone());
        next = position + 1;
    }
    omit(&mut made.log, next, bundle.size);
    if made.positions().all(|(_, entry)| entry.run.is_none()) {
        made.runs.clear();
    }
    std::fs::write(place.path().join(to), made.write(&|_| vec![0])).unwrap();
}

/// The last tick of the run, as its bundle has it.
fn tip(place: &Place) -> u64 {
    place
        .json(&["runs"])
        .1
        .get("items")
        .unwrap()
        .as_array()
        .unwrap()
        .get(0)
        .unwrap()
        .get("ticks")
        .unwrap()
        .as_u64()
        .unwrap()
}

/// Every gate over a source; each would pass over the whole of it.
fn gates(source: &str) -> Vec<Vec<&str>> {
    let asked = [
        &["assert", source, "--holds", "state.total <= 100"][..],
        &["assert", source, "--holds", "state.total <= 100", "--format", "junit"],
        &["assert", source, "--holds", "state.total <= 100", "--format", "github"],
        &["contract", "check", source],
        &["contract", "check", source, "--format", "junit"],
        &["contract", "check", source, "--format", "github"],
        &["contract", "check", source, "--json"],
        &["bisect", source, "--holds", "state.total <= 100"],
        &["predicate", "test", "small", source],
        &["diff", source, source, "--exit-code"],
    ];
    asked.into_iter().map(<[&str]>::to_vec).collect()
}

fn says_no_good(ran: &Ran, args: &[&str]) {
    for good in ["PASS", "no difference;", "\"exact\"", "failures=\"0\" errors=\"0\"", "never violated in"] {
        assert!(!ran.stdout.contains(good), "{args:?}: {good} in {}", ran.stdout);
    }
}

#[test]
fn a_gate_passes_over_the_whole_run() {
    let place = recorded();
    let bundle = "pay.dnd";
    for source in [bundle, "pay"] {
        for args in gates(source).into_iter().filter(|args| args[0] != "bisect") {
            let ran = place.run(&args);
            assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}: {}", ran.stdout);
        }
    }
}

#[test]
fn a_gate_over_a_part_of_a_run_is_open() {
    let place = recorded();
    let last = tip(&place);
    cut(&place, "cut.dnd", |entry| entry.tick == Some(last) && entry.kind == Kind::Transition);
    cut(&place, "unrefused.dnd", |entry| entry.kind == Kind::Refusal);
    for file in ["cut.dnd", "unrefused.dnd"] {
        for args in gates(file) {
            let ran = place.run(&args);
            assert_eq!(ran.code, 6, "{args:?}: {}{}", ran.stdout, ran.stderr);
            says_no_good(&ran, &args);
            assert!(ran.stderr.contains("warning[E0312]"), "{args:?}: {}", ran.stderr);
        }
        let (code, answer) = place.json(&["assert", file, "--holds", "state.total <= 100"]);
        let gate = answer.get("items").unwrap().as_array().unwrap().get(0).unwrap();
        assert_eq!(
            (code, answer.get("passed"), gate.get("ok")),
            (6, Some(&false.into()), Some(&Value::Null))
        );
        let why = gate.get("why").unwrap().as_str().unwrap();
        assert!(why.contains("missing"), "{why}");
        assert!(answer.get("incomplete").is_some(), "{answer}");
        let (_, checked) = place.json(&["contract", "check", file]);
        assert_eq!(checked.get("certainty").unwrap().as_str(), Some("unavailable"));
        // What only shows goes on, and says it.
        for args in
            [&["log", file][..], &["state", file], &["show", &format!("{file}@1")], &["why", file, "total"]]
        {
            let ran = place.run(args);
            assert_eq!(ran.code, 0, "{args:?}: {}", ran.stderr);
            assert!(ran.stderr.contains("warning[E0312]"), "{args:?}: {}", ran.stderr);
            assert!(place.json(args).1.get("incomplete").is_some(), "{args:?}");
        }
    }
    // Before the missing end the chain has no gap, but a refusal may have stood anywhere.
    let before =
        |file: &str| place.run(&["assert", &format!("{file}@2"), "--holds", "state.total == 10"]).code;
    assert_eq!((before("cut.dnd"), before("unrefused.dnd")), (0, 6));
    // A violation that is here is one.
    assert_eq!(place.run(&["assert", "cut.dnd@2", "--holds", "state.total == 0"]).code, 1);
    let found = place.run(&["bisect", "cut.dnd", "--holds", "state.total < 10", "--expect-onset", "2"]);
    assert_eq!(found.code, 0, "{}{}", found.stdout, found.stderr);
}

#[test]
fn a_gate_over_a_bundle_that_does_not_hold_has_no_answer() {
    let place = recorded();
    cut(&place, "cut.dnd", |entry| entry.tick == Some(2));
    assert_eq!(place.run(&["verify", "cut.dnd"]).code, 4);
    for args in gates("cut.dnd") {
        let ran = place.run(&args);
        assert_eq!(
            (ran.code, ran.stdout.contains("TAMPERED") || ran.stdout.is_empty()),
            (4, true),
            "{args:?}: {}",
            ran.stdout
        );
        assert!(
            ran.stderr.contains("TAMPERED cut.dnd") || ran.stdout.contains("TAMPERED cut.dnd"),
            "{args:?}"
        );
    }
    assert_eq!(place.run(&["diff", "pay", "cut.dnd#pay", "--exit-code"]).code, 4);
    assert_eq!(Place::with_store().run(&["import", place.path().join("cut.dnd").to_str().unwrap()]).code, 4);
    let ran = place.run(&["show", "cut.dnd@1"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("cut.dnd is TAMPERED"), "{}", ran.stderr);
}

fn file_of(place: &Place, folder: &str) -> PathBuf {
    let found = std::fs::read_dir(place.config().join(folder)).unwrap();
    found
        .map(|file| file.unwrap().path())
        .find(|path| path.extension().is_some_and(|end| end == "key"))
        .unwrap()
}

#[test]
fn a_key_that_is_not_the_one_known_here_speaks_against_the_log() {
    let (place, other) = (recorded(), Place::with_store());
    // The key of the log lies elsewhere, and another one is remembered to have signed here.
    std::fs::remove_file(file_of(&place, "keys")).unwrap();
    let shown = other.json(&["key", "show"]).1;
    let key = shown.get("items").unwrap().as_array().unwrap().get(0).unwrap().get("key").unwrap();
    let mut known = std::fs::read_dir(place.config().join("heads")).unwrap().map(|file| file.unwrap().path());
    let known = known.find(|path| path.extension().is_some_and(|end| end == "known")).unwrap();
    std::fs::write(known, format!("{}\n", key.as_str().unwrap())).unwrap();
    assert_eq!(place.run(&["verify", "pay.dnd"]).code, 4);
    for args in gates("pay.dnd") {
        let ran = place.run(&args);
        assert_eq!(ran.code, 4, "{args:?}: {}{}", ran.stdout, ran.stderr);
    }
    let ran = place.run(&["log", "pay.dnd"]);
    assert!(ran.code == 0 && ran.stderr.contains("pay.dnd is TAMPERED"), "{}", ran.stderr);
}

#[test]
fn a_gate_over_a_store_that_lost_records_has_no_answer() {
    let place = recorded();
    let segment = place.path().join(".dendrer/segments/00000000.seg");
    let long = std::fs::read(&segment).unwrap();
    std::fs::write(&segment, &long[..long.len() - 40]).unwrap();
    for args in gates("pay") {
        let ran = place.run(&args);
        assert_eq!(ran.code, 4, "{args:?}: {}{}", ran.stdout, ran.stderr);
        says_no_good(&ran, &args);
    }
    let ran = place.run(&["log", "pay"]);
    assert!(ran.code == 0 && ran.stderr.contains("is TAMPERED"), "{}", ran.stderr);
    // A store that was put back, so that its log is not the newest that was signed here.
    std::fs::write(&segment, &long).unwrap();
    let old = place.path().join("old");
    crate::support::copy(&place.path().join(".dendrer"), &old);
    commit(&place, "{\"type\":\"order.add\",\"agent\":\"desk\",\"intent\":{\"amount\":5}}\n");
    std::fs::remove_dir_all(place.path().join(".dendrer")).unwrap();
    std::fs::rename(&old, place.path().join(".dendrer")).unwrap();
    for args in gates("pay") {
        let ran = place.run(&args);
        assert_eq!(ran.code, 4, "{args:?}: {}{}", ran.stdout, ran.stderr);
    }
}

fn import(here: &Place, there: &Place, file: &str) -> Ran {
    here.run(&["import", there.path().join(file).to_str().unwrap(), "--from", "ann", "--json"])
}

#[test]
fn what_a_bundle_lacks_stays_missing_where_it_is_imported() {
    let there = recorded();
    let last = tip(&there);
    cut(&there, "cut.dnd", |entry| entry.tick == Some(last) && entry.kind == Kind::Transition);
    let here = Place::with_store();
    let ran = import(&here, &there, "cut.dnd");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let item = parse(&ran.stdout).get("items").unwrap().as_array().unwrap().get(0).unwrap().clone();
    assert!(item.get("incomplete").is_some(), "{item}");
    here.ok(&["export", "ann/pay", "-o", "again.dnd"]);
    for target in ["ann/pay", "again.dnd"] {
        let (code, answer) = here.json(&["verify", target, "--require-complete"]);
        let whole = answer.get("lines").unwrap().get("whole").unwrap();
        assert_eq!((code, whole.get("word").unwrap().as_str()), (6, Some("partial")), "{target}: {whole}");
        let partial = whole.get("partial").unwrap().as_array().unwrap().get(0).unwrap();
        assert_eq!(partial.get("why").unwrap().as_str(), Some("missing"));
        assert_eq!(partial.get("transitions").unwrap().as_u64(), Some(1));
        assert_eq!(here.run(&["assert", target, "--holds", "state.total <= 100"]).code, 6, "{target}");
    }
    // The whole of it makes it whole.
    assert_eq!(import(&here, &there, "pay.dnd").code, 0);
    assert_eq!(here.run(&["verify", "ann/pay", "--require-complete"]).code, 0);
    assert_eq!(here.run(&["assert", "ann/pay", "--holds", "state.total <= 100"]).code, 0);
}

#[test]
fn what_cannot_be_completed_is_said() {
    let there = recorded();
    cut(&there, "unrefused.dnd", |entry| entry.kind == Kind::Refusal);
    let here = Place::with_store();
    assert_eq!(import(&here, &there, "unrefused.dnd").code, 0);
    let ran = import(&here, &there, "pay.dnd");
    assert!(
        ran.code == 6 && ran.stdout.contains("E0312") && ran.stdout.contains("new store"),
        "{}",
        ran.stdout
    );
    assert_eq!(here.run(&["verify", "ann/pay", "--require-complete"]).code, 6);
    // A part adds nothing to a run that is here as a whole: its beginning could not say so.
    let first = Place::with_store();
    assert_eq!(import(&first, &there, "pay.dnd").code, 0);
    commit(&there, &"{\"type\":\"order.add\",\"agent\":\"desk\",\"intent\":{\"amount\":5}}\n".repeat(2));
    there.ok(&["export", "pay", "-o", "pay.dnd"]);
    let last = tip(&there);
    cut(&there, "cut.dnd", |entry| entry.tick == Some(last) && entry.kind == Kind::Transition);
    let ran = import(&first, &there, "cut.dnd");
    assert!(ran.code == 6 && ran.stdout.contains("E0312"), "{}", ran.stdout);
    assert_eq!(first.run(&["verify", "ann/pay", "--require-complete"]).code, 0);
}

#[test]
fn what_was_withheld_although_it_stays_elsewhere_is_said_in_each_bundle() {
    let there = recorded();
    there.naming("--although", &["export", "pay", "--withhold", "1:intent.amount", "-o", "less.dnd"]);
    let header = |place: &Place, file: &str| {
        let text = std::fs::read_to_string(place.path().join(file)).unwrap();
        parse(text.lines().next().unwrap()).get("although").cloned()
    };
    let said = header(&there, "less.dnd");
    assert!(said.is_some());
    let here = Place::with_store();
    assert_eq!(import(&here, &there, "less.dnd").code, 0);
    here.ok(&["export", "ann/pay", "-o", "again.dnd"]);
    assert_eq!(header(&here, "again.dnd"), said);
}

fn verdict(place: &Place, args: &[&str]) -> (i32, String, Value) {
    let (code, answer) = place.json(&[&["verify"], args].concat());
    (code, answer.get("verdict").unwrap().as_str().unwrap().to_owned(), answer)
}

#[test]
fn a_tip_covers_no_refusal_and_a_checkpoint_covers_all() {
    let place = recorded();
    let tip = place.json(&["log", "pay"]).1.get("tip").unwrap().as_str().unwrap().to_owned();
    place.ok(&["export", "--format", "checkpoint", "-o", "kept"]);
    for target in ["pay", "pay.dnd"] {
        let (code, word, answer) = verdict(&place, &[target, "--tip", &tip]);
        assert_eq!((code, word.as_str()), (0, "INTACT"), "{target}");
        let witness = answer.get("lines").unwrap().get("witness").unwrap();
        assert_eq!(witness.get("word").unwrap().as_str(), Some("WITNESSED"));
        let by = witness.get("by").unwrap().as_array().unwrap().get(0).unwrap().clone();
        assert_eq!(by.get("uncovered").unwrap().as_u64(), Some(1), "{by}");
        assert_eq!(place.run(&["verify", target, "--tip", &tip, "--require-witness"]).code, 6);
        let (code, word, _) = verdict(&place, &[target, "--checkpoint", "kept", "--require-witness"]);
        assert_eq!((code, word.as_str()), (0, "VERIFIED"), "{target}");
    }
    // What the chain says of a refusal is there, also where the refusal is not.
    cut(&place, "unrefused.dnd", |entry| entry.kind == Kind::Refusal);
    let (_, word, answer) = verdict(&place, &["unrefused.dnd", "--tip", &tip]);
    let witness = answer.get("lines").unwrap().get("witness").unwrap().to_string();
    assert!(word == "INTACT" && witness.contains("\"uncovered\":1"), "{witness}");
    // Up to a tick before it the tip covers all that is asked about.
    let log = place.json(&["log", "pay"]).1;
    let first = log.get("items").unwrap().as_array().unwrap().get(0).unwrap().get("id").unwrap().clone();
    let (code, word, _) = verdict(&place, &["pay@1", "--tip", first.as_str().unwrap()]);
    assert_eq!((code, word.as_str()), (0, "VERIFIED"));
}

#[test]
fn a_log_that_ends_before_what_is_given_has_one_verdict() {
    let place = recorded();
    let old = place.path().join("old");
    crate::support::copy(&place.path().join(".dendrer"), &old);
    commit(&place, "{\"type\":\"order.add\",\"agent\":\"desk\",\"intent\":{\"amount\":5}}\n");
    let tip = place.json(&["log", "pay"]).1.get("tip").unwrap().as_str().unwrap().to_owned();
    place.ok(&["export", "--format", "checkpoint", "-o", "kept"]);
    // Another machine has the older log, as a bundle and as a copy of the store.
    let other = Place::new();
    for file in ["pay.dnd", "kept"] {
        std::fs::copy(place.path().join(file), other.path().join(file)).unwrap();
    }
    crate::support::copy(&old, &other.path().join(".dendrer"));
    for target in ["pay", "pay.dnd"] {
        for given in [["--checkpoint", "kept"], ["--tip", &tip]] {
            let (code, word, answer) = verdict(&other, &[target, given[0], given[1]]);
            assert_eq!((code, word.as_str()), (6, "UNVERIFIABLE"), "{target} {given:?}: {answer}");
            let compared = answer.get("lines").unwrap().get("compared").unwrap();
            assert_eq!(compared.get("word").unwrap().as_str(), Some("NOT COMPARED"));
            let older = compared.get("older").unwrap().as_str().unwrap();
            assert!(older.contains("older than the") && older.contains("or rewritten"), "{older}");
        }
    }
    // The store that is here knows the tick of the tip: the bundle is older, and one that has another record there is not.
    assert_eq!(verdict(&place, &["pay.dnd", "--tip", &tip]).1, "UNVERIFIABLE");
    // A run that is closed has no later tick.
    let demo = Place::with_demo();
    let unknown = format!("sha256:{}", "ab".repeat(32));
    assert_eq!(verdict(&demo, &["run-84f2", "--tip", &unknown]).1, "TAMPERED");
    assert_eq!(verdict(&demo, &["logistics-run-47", "--tip", &unknown]).1, "UNVERIFIABLE");
    let tip = demo.json(&["log", "logistics-run-47"]).1.get("tip").unwrap().as_str().unwrap().to_owned();
    assert_eq!(verdict(&demo, &["corrupt/rewritten.dnd", "--tip", &tip]).1, "TAMPERED");
}

#[test]
fn nothing_that_was_checked_is_nothing_that_holds() {
    let place = recorded();
    std::fs::write(place.path().join("none"), "").unwrap();
    std::fs::write(place.path().join("blank"), "\n \n").unwrap();
    for profile in ["paper", "cfd", "carl"] {
        for file in ["none", "blank"] {
            let ran = place.run(&["verify", file, "--profile", profile]);
            assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{profile} {file}: {}", ran.stderr);
        }
    }
    cut(&place, "runless.dnd", |entry| entry.run.is_some());
    let (code, _, answer) = verdict(&place, &["runless.dnd", "--require-complete"]);
    assert_eq!(code, 6, "{answer}");
    assert_eq!(
        answer.get("lines").unwrap().get("whole").unwrap().get("word").unwrap().as_str(),
        Some("partial")
    );
}

#[test]
fn the_records_of_a_run_are_counted_and_what_was_verified_is_remembered() {
    let place = recorded();
    let (_, runs) = place.json(&["runs"]);
    let size = runs.get("trust").unwrap().get("size").unwrap().as_u64().unwrap();
    // The record of the key and the map are of no run.
    for args in [&["verify"][..], &["verify", "pay"]] {
        let answer = place.json(args).1;
        let record = answer.get("lines").unwrap().get("record").unwrap();
        assert_eq!(record.get("records").unwrap().as_u64(), Some(size - 2), "{args:?}: {record}");
    }
    let fresh = recorded();
    fresh.ok(&["verify", "pay"]);
    let trust = fresh.json(&["log", "pay"]).1.get("trust").cloned();
    let trust = trust.unwrap_or_else(|| fresh.json(&["runs"]).1.get("trust").unwrap().clone());
    assert_eq!(trust.get("verified"), trust.get("size"), "{trust}");
}
