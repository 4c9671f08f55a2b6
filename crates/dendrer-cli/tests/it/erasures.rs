//! An erasure outlives a restore: an older backup does not bring back what was erased since.

use dendrer_object::Value;

use crate::secrets::holds;
use crate::support::{Place, at_home, ran};

const CARD: &str = "4111-2222-3333-9999";
const IBAN: &str = "CH93-0076-2011-6238";
const NAME: &str = "Ruth-Muster-Bern";

fn commit(place: &Place, run: &str, lines: &str) {
    let ran = place.run_with(&["commit", "--run", run, "--redact", "none"], lines.as_bytes());
    assert!(ran.code == 0 || ran.code == 5, "{}", ran.stderr);
}

/// A run with three values, a fork of it, a refusal with one of them, and a note with another.
fn filled() -> Place {
    let place = Place::with_store();
    let line = |text: &str, path: &str, value: &str| {
        format!(
            "{{\"type\":\"observation.add\",\"intent\":{{\"description\":\"{text} {value}\"}},\"delta\":[{{\"set\":\"{path}\",\"value\":\"{value}\"}}]}}\n"
        )
    };
    commit(&place, "r", &(line("card", "/card", CARD) + &line("iban", "/iban", IBAN)));
    commit(&place, "r", &format!("{{\"type\":\"observation.add\",\"nonsense\":\"{NAME}\"}}\n"));
    place.ok(&["fork", "r@2", "--as", "f"]);
    commit(&place, "f", &line("name", "/name", NAME));
    place
}

fn is_anywhere(place: &Place, text: &str) -> Option<String> {
    holds(&place.path().join(".dendrer"), text)
}

fn again(answer: &Value) -> Vec<String> {
    let items = answer.get("erased_again").and_then(Value::as_array).unwrap();
    let text = |item: &Value, name: &str| item.get(name).map(ToString::to_string).unwrap_or_default();
    items
        .iter()
        .map(|item| {
            let [run, tick, refused, place] =
                ["run", "tick", "refused", "place"].map(|name| text(item, name));
            format!("{run} {tick} {refused} {place}").replace('"', "")
        })
        .collect()
}

/// Erases the number of the card, and the texts that have it as well.
fn erase_card(place: &Place) {
    let places = ["--although", "intent", "--although", "delta", "--although", "line"];
    let args = ["erase", "r@1", "state.card", "--reason", "asked"].into_iter().chain(places);
    place.ok(&args.collect::<Vec<_>>());
}

/// G20: what was erased since the backup is erased in the copy as well, and the log goes on.
#[test]
fn erased_values_do_not_come_back_with_an_older_backup() {
    let place = filled();
    place.ok(&["backup", "bak"]);
    place.ok(&[
        "erase",
        "r@1",
        "state.card",
        "--reason",
        "asked to be forgotten",
        "--although",
        "intent",
        "--although",
        "delta",
        "--although",
        "line",
    ]);
    assert_eq!(is_anywhere(&place, CARD), None);
    let refused = place.run(&["restore", "bak", "--replace"]);
    assert_eq!(refused.code, 5, "{}", refused.stdout);
    for line in ["E0114", "among them 1 erasure, which a restore does again: r@1 state.card"] {
        assert!(refused.stderr.contains(line), "{line}\n{}", refused.stderr);
    }
    let restored = place.run(&["restore", "bak", "--replace", "--discard-newer"]);
    assert!(restored.code == 0, "{}", restored.stderr);
    assert!(restored.stdout.contains("erased again  r@1 state.card"), "{}", restored.stdout);
    assert!(!restored.stdout.contains("older"), "{}", restored.stdout);
    assert_eq!(is_anywhere(&place, CARD), None);
    assert!(is_anywhere(&place, IBAN).is_some(), "only what was erased goes");
    assert_eq!(place.run(&["state", "r"]).code, 6);
    assert_eq!(place.run(&["state", "f"]).code, 6);
    let once_more = place.run(&["erase", "r@1", "state.card", "--reason", "asked to be forgotten"]);
    assert!(once_more.code == 5 && once_more.stderr.contains("E0466"), "{}", once_more.stderr);
    let verify = place.run(&["verify", "--all"]);
    assert!(verify.code == 6 && verify.stdout.contains("UNVERIFIABLE"), "{}", verify.stdout);
    assert!(
        verify.stdout.contains("not checked: r@1: delta, intent.description, state_root"),
        "{}",
        verify.stdout
    );
    // The log goes on, is signed, and is backed up.
    commit(&place, "q", "{\"type\":\"plan.update\"}\n");
    assert_eq!(place.run(&["fsck"]).code, 0);
    assert_eq!(place.run(&["verify", "q"]).code, 0);
    place.ok(&["backup", "bak"]);
    assert_eq!(holds(&place.path().join("bak"), CARD), None);
    // The store that was put aside is no longer the one that goes on: there are never two.
    let line = place.path().join("one.jsonl");
    std::fs::write(&line, "{\"type\":\"plan.update\"}\n").unwrap();
    std::fs::create_dir(place.path().join("old")).unwrap();
    std::fs::rename(place.path().join(".dendrer.replaced"), place.path().join("old/.dendrer")).unwrap();
    let aside = place.run(&["commit", "--run", "z", "--file", "one.jsonl", "--store", "old"]);
    assert!(aside.code != 0 && aside.stderr.contains("E0307"), "{}", aside.stderr);
}

/// Siblings: several erasures, in a refusal, a fork and a note; each has its place in the answer.
#[test]
fn every_erasure_since_the_backup_is_done_again() {
    let place = filled();
    place.ok(&["note", "r@1", &format!("the card {CARD} was stolen")]);
    place.ok(&["backup", "bak"]);
    let erase = |rev: &str, path: &str, more: &[&str]| {
        place.ok(&[
            &["erase", rev, path, "--reason", "asked", "--although", "intent", "--although", "line"][..],
            more,
        ]
        .concat());
    };
    erase("r@2", "state.iban", &["--although", "delta"]);
    erase("r@1", "intent.description", &["--although", "delta"]);
    let args = ["erase", "r@refused:1", "line.nonsense", "--reason", "asked", "--everywhere"];
    place.ok(&args);
    commit(&place, "q", "{\"type\":\"plan.update\"}\n");
    let (code, restored) = place.json(&["restore", "bak", "--replace", "--discard-newer"]);
    assert_eq!(code, 0, "{restored}");
    let expected = ["r 2  /state/iban", "r 1  /intent/description", "r null 1 /line/nonsense"];
    assert_eq!(again(&restored), expected, "{restored}");
    for value in [IBAN, NAME] {
        assert_eq!(is_anywhere(&place, value), None, "{value}");
    }
    let verify = place.run(&["verify", "--all"]);
    assert!(verify.code == 6 && verify.stdout.contains("r@refused:1: line"), "{}", verify.stdout);
    assert_eq!(place.run(&["fsck"]).code, 0);
}

/// A second restore of the same backup does it again; so does one of a backup of the backup.
#[test]
fn an_erasure_outlives_every_restore() {
    let place = filled();
    place.ok(&["backup", "bak"]);
    place.ok(&["backup", "second", "--store", "bak"]);
    place.ok(&[
        "erase",
        "r@2",
        "state.iban",
        "--reason",
        "asked",
        "--although",
        "delta",
        "--although",
        "intent",
        "--although",
        "line",
    ]);
    for backup in ["bak", "bak", "second"] {
        let (code, restored) = place.json(&["restore", backup, "--replace", "--discard-newer"]);
        assert_eq!((code, again(&restored)), (0, vec!["r 2  /state/iban".to_owned()]), "{restored}");
        assert_eq!(restored.get("writable"), Some(&Value::from(true)));
        assert_eq!(is_anywhere(&place, IBAN), None);
        commit(&place, "q", "{\"type\":\"plan.update\"}\n");
    }
    // A backup that has the erasure brings nothing back.
    place.ok(&["backup", "third"]);
    commit(&place, "q", "{\"type\":\"plan.update\"}\n");
    let (_, restored) = place.json(&["restore", "third", "--replace", "--discard-newer"]);
    assert_eq!((again(&restored), restored.get("erasures_unknown")), (Vec::new(), None), "{restored}");
    assert_eq!(is_anywhere(&place, IBAN), None);
}

/// Without the store that has them, erasures are not known, and the answer has the date of the backup.
#[test]
fn a_restore_without_the_store_notes_that_erasures_are_unknown() {
    let place = filled();
    place.ok(&["backup", "bak"]);
    let (_, known) = place.json(&["restore", "bak", "same"]);
    assert_eq!(known.get("erasures_unknown"), None, "nothing was signed since: {known}");
    erase_card(&place);
    let newest = place.json(&["show", "f@tip", "--store", "bak"]).1.get("ts").unwrap().clone();
    let check = |answer: &Value| {
        let backup = answer.get("erasures_unknown").and_then(|unknown| unknown.get("backup"));
        assert_eq!((backup, again(answer)), (Some(&newest), Vec::new()), "{answer}");
    };
    check(&place.json(&["restore", "bak", "here"]).1);
    std::fs::remove_dir_all(place.path().join(".dendrer")).unwrap();
    let restored = place.run(&["restore", "bak"]);
    let said = format!("{}{}", restored.stdout, restored.stderr);
    assert!(restored.code == 0 && said.contains("erasures_unknown"), "{said}");
    // Another machine remembers nothing.
    let elsewhere = tempfile::tempdir().unwrap();
    let answer = ran(at_home(&mut place.command(&["restore", "bak", "there", "--json"]), elsewhere.path())
        .output()
        .unwrap());
    check(&crate::support::parse(&answer.stdout));
}

/// An older store that is damaged has no erasures that could be read: what can be is done again, and the rest is noted.
#[test]
fn erasures_of_a_damaged_store_are_unknown() {
    let place = filled();
    place.ok(&["backup", "bak"]);
    erase_card(&place);
    let path = place.path().join(".dendrer/segments/00000000.seg");
    let mut bytes = std::fs::read(&path).unwrap();
    let end = bytes.len();
    bytes[end - 400..].fill(7);
    std::fs::write(&path, bytes).unwrap();
    let (code, restored) = place.json(&["restore", "bak", "--replace", "--discard-newer"]);
    assert_eq!(code, 0, "{restored}");
    assert!(restored.get("erasures_unknown").is_some(), "{restored}");
}

/// Without the key of the log the value is destroyed as well; then it is an older log, which nobody writes.
#[test]
fn without_the_key_of_the_log_values_are_erased_and_nothing_is_signed() {
    let place = filled();
    place.ok(&["backup", "bak"]);
    erase_card(&place);
    let keys = place.config().join("keys");
    for entry in std::fs::read_dir(keys).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    let (code, restored) = place.json(&["restore", "bak", "--replace", "--discard-newer"]);
    assert_eq!((code, again(&restored)), (0, vec!["r 1  /state/card".to_owned()]), "{restored}");
    assert_eq!(restored.get("writable"), Some(&Value::from(false)));
    assert_eq!(restored.get("erasures_unknown"), None, "all of them were read");
    assert_eq!(is_anywhere(&place, CARD), None);
}

/// A restore that discards no erasure is as before: the older log is read, and never written.
#[test]
fn a_restore_without_erasures_stays_an_older_log() {
    let place = filled();
    place.ok(&["backup", "bak"]);
    commit(&place, "q", "{\"type\":\"plan.update\"}\n");
    let (code, restored) = place.json(&["restore", "bak", "--replace", "--discard-newer"]);
    assert_eq!((code, again(&restored)), (0, Vec::new()), "{restored}");
    assert_eq!(restored.get("writable"), Some(&Value::from(false)));
    let line = place.run_with(&["commit", "--run", "q"], b"{\"type\":\"plan.update\"}\n");
    assert!(line.code != 0 && line.stderr.contains("E0307"), "{}", line.stderr);
}
