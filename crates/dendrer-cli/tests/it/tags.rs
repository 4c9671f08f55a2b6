//! Writers: with the key, with a writer's secret, and a program with neither that writes into the files.

use std::path::Path;

use dendrer::Recorder;
use dendrer::recorder::Fixed;
use dendrer::store::embedded::{Embedded, Options};
use dendrer::store::prelude::*;
use dendrer::store::{Shared, VerifyOptions};
use dendrer_object::{Intent, Value};

use crate::support::{Place, Ran};

const LINE: &[u8] = b"{\"type\":\"observation.add\",\"agent\":\"ann\",\"intent\":{\"description\":\"x\"}}\n";

/// A machine without the key, beside a place.
fn elsewhere(place: &Place, args: &[&str], input: &[u8]) -> Ran {
    let other = Place::new();
    let store = place.path().join(".dendrer");
    let args = [args, &["--store", store.to_str().unwrap()]].concat();
    other.run_with(&args, input)
}

/// Appends a well-formed record as another agent: a program that can write the files can do that.
fn append_as(place: &Place, agent: &str) {
    let store = Embedded::open(&place.path().join(".dendrer"), Options::untagged()).unwrap();
    let shared = Shared::new(Box::new(store));
    let mut recorder =
        Recorder::resume(&shared, &"r".parse().unwrap(), Box::new(Fixed::new(agent, 1 << 41, 1))).unwrap();
    let intent = Intent::new("observation.add".parse().unwrap(), agent);
    recorder.propose(&intent).unwrap();
    recorder.commit().unwrap();
}

fn begun() -> Place {
    let place = Place::with_store();
    assert_eq!(place.run_with(&["commit", "--run", "r"], LINE).code, 0);
    place
}

fn log_of(place: &Place) -> Vec<u8> {
    std::fs::read(place.path().join(".dendrer/segments/00000000.seg")).unwrap()
}

fn signed_of(place: &Place) -> String {
    std::fs::read_to_string(place.path().join(".dendrer/checkpoint")).unwrap()
}

fn number(value: &Value, path: &[&str]) -> Option<u64> {
    path.iter().try_fold(value.clone(), |value, name| value.get(name).cloned())?.as_u64()
}

#[test]
fn without_key_and_secret_nothing_is_written() {
    let place = begun();
    let before = log_of(&place);
    std::fs::write(place.path().join("chat.json"), r#"[{"role":"user","content":"hi"}]"#).unwrap();
    let chat = place.path().join("chat.json");
    let asked: [&[&str]; 9] = [
        &["commit", "--run", "r"],
        &["commit", "--run", "new"],
        &["import", chat.to_str().unwrap(), "--run", "c"],
        &["erase", "r@1", "intent.description", "--reason", "x"],
        &["predicate", "register", "acme.p", "--holds", "state.n == 1"],
        &["fork", "r@1", "--as", "f"],
        &["label", "l", "r@1"],
        &["doctor", "--adopt", "--reason", "x"],
        &["key", "writer", "--out", "w.key"],
    ];
    for args in asked {
        let ran = elsewhere(&place, args, LINE);
        assert_eq!(ran.code, 8, "{args:?}: {}{}", ran.stdout, ran.stderr);
        assert!(
            ran.stderr.starts_with("error[E0804]: the key of this log is not here, and no writer's secret\n"),
            "{args:?}: {}",
            ran.stderr
        );
        assert_eq!(log_of(&place), before, "{args:?}");
    }
    let ran = elsewhere(&place, &["commit", "--run", "r"], LINE);
    let text = "error[E0804]: the key of this log is not here, and no writer's secret\nnote: nothing was written\nhelp: on the machine with the key: dendrer key writer --out FILE; if it is lost: dendrer key recover --reason TEXT\n";
    assert!(ran.stderr.starts_with(text), "{}", ran.stderr);
    assert_eq!(elsewhere(&place, &["verify", "r"], b"").code, 0, "reading needs no key");
}

#[test]
fn a_file_of_a_writer_appends_and_signs_nothing() {
    let place = begun();
    let (code, made) = place.json(&["key", "writer", "--out", "w.key"]);
    assert_eq!((code, made.get("vault").unwrap().clone()), (0, false.into()));
    let file = place.path().join("w.key");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let again = place.run(&["key", "writer", "--out", "w.key"]);
    assert!(again.code == 2 && again.stderr.contains("error[E0112]"), "{}", again.stderr);
    let file = file.to_str().unwrap();
    let signed = signed_of(&place);
    let ran = elsewhere(&place, &["commit", "--run", "r", "--key", file], LINE);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(signed_of(&place), signed, "nothing is signed");
    let exported = elsewhere(&place, &["export", "r", "--key", file], b"");
    assert!(exported.code == 8 && exported.stderr.contains("error[E0804]"), "{}", exported.stderr);
    let (_, shown) = place.json(&["runs"]);
    assert_eq!(number(&shown, &["trust", "tagged"]), number(&shown, &["trust", "size"]));
    assert!(number(&shown, &["trust", "signed"]) < number(&shown, &["trust", "size"]));
    // The owner goes on, and signs all of it.
    assert_eq!(place.run_with(&["commit", "--run", "r"], LINE).code, 0);
    let (_, shown) = place.json(&["runs"]);
    assert_eq!(number(&shown, &["trust", "signed"]), number(&shown, &["trust", "size"]));
    assert_eq!(elsewhere(&place, &["export", "r", "--key", file], b"").code, 0, "all of it is signed");
    // Of another log.
    let other = begun();
    let ran = elsewhere(&other, &["commit", "--run", "r", "--key", file], LINE);
    assert!(ran.code == 8 && ran.stderr.contains("error[E0804]"), "{}", ran.stderr);
    let ran = elsewhere(&place, &["key", "show", "--json", "--key", file], b"");
    assert!(ran.stdout.contains(r#""here":{"signing":false,"vault":false,"writer":true}"#), "{}", ran.stdout);
}

/// The public half of the key is public, so a file that only names it is no secret.
#[test]
fn a_secret_that_is_not_that_of_the_log_writes_nothing() {
    let place = begun();
    place.ok(&["key", "writer", "--out", "w.key"]);
    let true_file = place.path().join("w.key");
    let text = std::fs::read_to_string(&true_file).unwrap();
    let (head, secret) = text.trim_end().rsplit_once(' ').unwrap();
    let mistyped = if secret.starts_with('A') { "B" } else { "A" }.to_owned() + &secret[1..];
    std::fs::write(place.path().join("chat.json"), r#"[{"role":"user","content":"hi"}]"#).unwrap();
    let chat = place.path().join("chat.json");
    let file = place.path().join("made-up.key");
    let before = log_of(&place);
    for secret in ["A".repeat(43), mistyped] {
        std::fs::write(&file, format!("{head} {secret}\n")).unwrap();
        let key = file.to_str().unwrap();
        let asked: [&[&str]; 8] = [
            &["commit", "--run", "r"],
            &["commit", "--run", "new"],
            &["import", chat.to_str().unwrap(), "--run", "c"],
            &["erase", "r@1", "intent.description", "--reason", "x"],
            &["predicate", "register", "acme.p", "--holds", "state.n == 1"],
            &["fork", "r@1", "--as", "f"],
            &["label", "l", "r@1"],
            &["key", "show"],
        ];
        for args in asked {
            let ran = elsewhere(&place, &[args, &["--key", key]].concat(), LINE);
            let told = format!("error[E0804]: the secret in {key} is not that of this log\n");
            assert!(ran.code == 8 && ran.stderr.contains(&told), "{args:?}: {}{}", ran.stdout, ran.stderr);
            assert_eq!(log_of(&place), before, "{args:?}");
        }
        let doctor = elsewhere(&place, &["doctor", "--key", key], b"");
        assert!(doctor.stdout.contains("is not that of this log"), "{}", doctor.stdout);
        // A reader needs none, and blames no writer for what it cannot check.
        let ran = elsewhere(&place, &["verify", "r", "--key", key], b"");
        assert!(ran.code == 0 && !ran.stdout.contains("untagged"), "{}{}", ran.stdout, ran.stderr);
    }
    let key = true_file.to_str().unwrap();
    let ran = elsewhere(&place, &["verify", "r", "--key", key], b"");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(elsewhere(&place, &["commit", "--run", "r", "--key", key], LINE).code, 0);
    // The owner goes on.
    assert_eq!(place.run_with(&["commit", "--run", "r"], LINE).code, 0);
}

#[cfg(unix)]
#[test]
fn a_key_file_that_others_can_read_is_told() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = begun();
    place.ok(&["key", "writer", "--out", "w.key"]);
    let file = place.path().join("w.key");
    let key = file.to_str().unwrap();
    for (mode, is_told) in [(0o600, false), (0o644, true)] {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let ran = elsewhere(&place, &["commit", "--run", "r", "--key", key], LINE);
        assert_eq!(
            (ran.code, ran.stderr.contains("has mode 644: others can read it")),
            (0, is_told),
            "{}",
            ran.stderr
        );
        let doctor = elsewhere(&place, &["doctor", "--key", key], b"");
        assert_eq!(
            doctor.stdout.contains("others can read it, and write in your name"),
            is_told,
            "{}",
            doctor.stdout
        );
    }
}

#[test]
fn the_file_of_a_writer_may_have_the_key_of_the_vault() {
    let place = begun();
    place.ok(&["key", "writer", "--out", "w.key", "--vault"]);
    let text = std::fs::read_to_string(place.path().join("w.key")).unwrap();
    assert!(text.contains("dendrer-vault-key/1 "), "{}", text.lines().count());
    let file = place.path().join("w.key");
    let shown = elsewhere(&place, &["key", "show", "--json", "--key", file.to_str().unwrap()], b"");
    assert!(
        shown.stdout.contains(r#""here":{"signing":false,"vault":true,"writer":true}"#),
        "{}",
        shown.stdout
    );
}

#[test]
fn nothing_goes_behind_a_group_without_a_tag() {
    let place = begun();
    append_as(&place, "mallory");
    let (before, signed) = (log_of(&place), signed_of(&place));
    std::fs::write(place.path().join("chat.json"), r#"[{"role":"user","content":"hi"}]"#).unwrap();
    let asked: [&[&str]; 8] = [
        &["commit", "--run", "r"],
        &["commit", "--run", "new"],
        &["import", "chat.json", "--run", "c"],
        &["erase", "r@1", "intent.description", "--reason", "x"],
        &["predicate", "register", "acme.p", "--holds", "state.n == 1"],
        &["fork", "r@1", "--as", "f"],
        &["export", "r", "-o", "r.dnd"],
        &["export", "--format", "checkpoint"],
    ];
    for args in asked {
        let ran = place.run_with(args, LINE);
        assert_eq!(ran.code, 5, "{args:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("error[E0814]"), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("help: dendrer doctor --adopt -n"), "{args:?}: {}", ran.stderr);
        assert_eq!((log_of(&place), signed_of(&place)), (before.clone(), signed.clone()), "{args:?}");
    }
    assert!(!place.path().join("r.dnd").exists());
    // Readers go on, and note it.
    let verified = place.run(&["verify", "r"]);
    assert!(
        verified.code == 0 && verified.stdout.contains("notes     untagged     1 record"),
        "{}",
        verified.stdout
    );
    let (_, shown) = place.json(&["log", "r"]);
    assert_eq!(number(&shown, &["trust", "tagged"]), number(&shown, &["trust", "size"]).map(|size| size - 1));
    let doctor = place.run(&["doctor"]);
    assert!(doctor.stdout.contains("E0814"), "{}", doctor.stdout);
}

#[test]
fn what_is_adopted_is_what_was_listed() {
    let place = begun();
    append_as(&place, "mallory");
    append_as(&place, "trent");
    let before = log_of(&place);
    let (code, listed) = place.json(&["doctor", "--adopt", "-n"]);
    assert_eq!((code, number(&listed, &["records"])), (0, Some(2)));
    let runs = listed.get("runs").unwrap().to_string();
    assert!(runs.contains(r#""run":"r""#) && runs.contains("mallory") && runs.contains("trent"), "{runs}");
    assert_eq!(log_of(&place), before, "a list changes nothing");
    assert_eq!(place.run(&["doctor", "--adopt"]).code, 2, "a reason is asked for");
    let to = number(&listed, &["to"]).unwrap().to_string();
    let help = format!("help: dendrer doctor --adopt --to {to} --reason TEXT");
    assert!(place.run(&["doctor", "--adopt", "-n"]).stderr.contains(&help));
    let unsaid = place.run(&["doctor", "--adopt", "--reason", "x"]);
    assert!(unsaid.code == 2 && unsaid.stderr.contains(&help), "{}", unsaid.stderr);
    // Another one came in between.
    append_as(&place, "oscar");
    let more = log_of(&place);
    let ran = place.run(&["doctor", "--adopt", "--to", &to, "--reason", "x"]);
    assert!(ran.code == 5 && ran.stderr.contains("error[E0814]: 3 records"), "{}", ran.stderr);
    assert_eq!(log_of(&place), more, "nothing was signed");
    let (_, listed) = place.json(&["doctor", "--adopt", "-n"]);
    let to = number(&listed, &["to"]).unwrap().to_string();
    let (code, adopted) = place.json(&["doctor", "--adopt", "--to", &to, "--reason", "it was a test"]);
    assert_eq!(
        (code, number(&adopted, &["from"]), number(&adopted, &["to"])),
        (0, number(&listed, &["from"]), number(&listed, &["to"]))
    );
    assert_eq!(place.run_with(&["commit", "--run", "r"], LINE).code, 0);
    assert_eq!(place.run(&["verify", "--all"]).code, 0);
    assert_eq!(place.run(&["export", "r", "-o", "r.dnd"]).code, 0);
    assert_eq!(place.run(&["verify", "./r.dnd"]).code, 0);
    let store = Embedded::open(&place.path().join(".dendrer"), Options::read()).unwrap();
    let at = number(&adopted, &["record"]).unwrap();
    let content = store.get(at).unwrap().unwrap().content().to_string();
    assert!(content.contains(r#""purpose":"adopt""#) && content.contains("it was a test"), "{content}");
    assert!(store.verify(&VerifyOptions::default()).is_ok());
    // There is nothing any more.
    let (code, none) = place.json(&["doctor", "--adopt", "--to", &to, "--reason", "again"]);
    assert_eq!((code, number(&none, &["records"])), (0, Some(0)));
}

#[test]
fn groups_are_set_aside_or_stay() {
    let place = begun();
    let before = log_of(&place);
    append_as(&place, "mallory");
    let forged = log_of(&place);
    let (code, would) = place.json(&["doctor", "--set-aside", "aside", "-n"]);
    assert_eq!((code, number(&would, &["records"])), (0, Some(1)));
    assert!(!place.path().join("aside").exists());
    std::fs::create_dir(place.path().join("there")).unwrap();
    assert_eq!(place.run(&["doctor", "--set-aside", "there"]).code, 2, "it is there already");
    assert_eq!(elsewhere(&place, &["doctor", "--set-aside", "x"], b"").code, 8);
    assert_eq!(log_of(&place), forged);
    let (code, done) = place.json(&["doctor", "--set-aside", "aside"]);
    assert_eq!((code, number(&done, &["records"])), (0, Some(1)));
    assert_eq!(log_of(&place), before, "the log is as the owner left it");
    let aside = std::fs::read(place.path().join("aside/00000000.seg")).unwrap();
    assert_eq!([before.clone(), aside].concat(), forged, "and the rest is whole");
    assert_eq!(place.run_with(&["commit", "--run", "r"], LINE).code, 0);
    assert_eq!(place.run(&["verify", "--all"]).code, 0);
    let none = place.json(&["doctor", "--set-aside", "other"]).1;
    assert_eq!(number(&none, &["records"]), Some(0));
    // What was signed here follows them: the checkpoint was put back to an older one.
    let older = signed_of(&place);
    append_as(&place, "mallory");
    let to = number(&place.json(&["doctor", "--adopt", "-n"]).1, &["to"]).unwrap().to_string();
    place.ok(&["doctor", "--adopt", "--to", &to, "--reason", "x"]);
    std::fs::write(place.path().join(".dendrer/checkpoint"), older).unwrap();
    let ran = place.run(&["doctor", "--set-aside", "more"]);
    assert!(ran.code == 5 && ran.stderr.contains("error[E0815]"), "{}{}", ran.stdout, ran.stderr);
    assert!(!Path::new(&place.path().join("more")).exists());
}

/// A tag counts only behind the newest checkpoint, so a backup needs nothing.
#[test]
fn a_restored_backup_goes_on() {
    let place = begun();
    place.ok(&["key", "writer", "--out", "w.key"]);
    let file = place.path().join("w.key");
    let key = ["commit", "--run", "r", "--key", file.to_str().unwrap()];
    assert_eq!(elsewhere(&place, &key, LINE).code, 0);
    place.ok(&["backup", "b"]);
    std::fs::remove_dir_all(place.path().join(".dendrer")).unwrap();
    place.ok(&["restore", "b"]);
    assert_eq!(place.run_with(&["commit", "--run", "r"], LINE).code, 0);
    assert_eq!(place.run(&["verify", "--all"]).code, 0);
}
