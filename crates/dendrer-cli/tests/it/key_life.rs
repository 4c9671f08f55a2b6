//! The life of a key: rotated, recovered, revoked, stopped anywhere in between, and attacked.

use std::path::PathBuf;

use dendrer::store::TreeHead;
use dendrer::store::embedded::{Embedded, Options};
use dendrer::store::prelude::*;
use dendrer_object::keys::{recovery, revocation, rotation};
use dendrer_object::note::{Checkpoint, SigningKey};
use dendrer_object::record::{Author, Body, Header, Kind, Record, Seed, cut};
use dendrer_object::{Digest, StoreId, Value};

use crate::support::{Place, Ran, copy};

const LINE: &[u8] = b"{\"type\":\"observation.add\",\"agent\":\"ann\",\"intent\":{\"description\":\"x\"}}\n";

fn begun() -> Place {
    let place = Place::with_store();
    commits(&place);
    place
}

fn commits(place: &Place) {
    let ran = place.run_with(&["commit", "--run", "r"], LINE);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

/// Fails to write, with a code and an exit code, and leaves the log as it is.
fn refused(place: &Place, code: &str, exit: i32) {
    let before = log_of(place);
    let ran = place.run_with(&["commit", "--run", "r"], LINE);
    assert_eq!(ran.code, exit, "{}", ran.stderr);
    assert!(ran.stderr.contains(code), "{code}: {}", ran.stderr);
    assert!(log_of(place) == before, "something was written");
}

fn log_of(place: &Place) -> Vec<u8> {
    std::fs::read(place.path().join(".dendrer/segments/00000000.seg")).unwrap()
}

fn store_of(place: &Place) -> PathBuf {
    place.path().join(".dendrer")
}

fn id_of(place: &Place) -> StoreId {
    Embedded::open(&store_of(place), Options::read()).unwrap().info().id
}

fn key_file(place: &Place) -> PathBuf {
    place.config().join("keys").join(format!("{}.key", id_of(place)))
}

fn next_file(place: &Place) -> PathBuf {
    let mut name = key_file(place).into_os_string();
    name.push(".new");
    name.into()
}

fn key_of(place: &Place) -> SigningKey {
    let text = std::fs::read_to_string(key_file(place)).unwrap();
    SigningKey::from_secret_text(text.lines().next().unwrap()).unwrap()
}

fn made_key(place: &Place, seed: u8) -> SigningKey {
    SigningKey::from_seed(&id_of(place).origin(), [seed; 32]).unwrap()
}

/// Puts a copy of a store on another machine, which has no key.
fn on_another(place: &Place) -> Place {
    let other = Place::new();
    copy(&store_of(place), &store_of(&other));
    other
}

fn verdict(ran: &Ran) -> String {
    ran.stdout.lines().last().unwrap_or_default().split_whitespace().next().unwrap_or_default().to_owned()
}

fn signer(ran: &Ran) -> String {
    ran.stdout.lines().find(|line| line.starts_with("signer")).unwrap_or_default().to_owned()
}

/// Whether an answer says that the record is intact, by a signer that is known, or more.
fn trusts(ran: &Ran) -> bool {
    let is_known = signer(ran).contains("this machine knows");
    verdict(ran) == "VERIFIED" || verdict(ran) == "INTACT" && is_known
}

/// Appends a record of a content as a program does that can write the files, and signs nothing.
fn append(place: &Place, content: impl FnOnce(TreeHead) -> Value) {
    let mut store = Embedded::open(&store_of(place), Options::untagged()).unwrap();
    let content = content(store.tree());
    let header = Header {
        store: store.info().id,
        kind: Kind::Key,
        run: None,
        tick: None,
        prev: None,
        head: None,
        type_name: None,
        author: Author::Institution,
        ts: store.get(store.tree().size - 1).unwrap().unwrap().header().ts,
        links: Vec::new(),
        pack: None,
    };
    let body = Body::commit(cut(content.as_object().unwrap()), Seed([7; 16])).unwrap();
    store.commit(&[Record::seal(header, body).unwrap()]).unwrap();
    store.close().unwrap();
}

/// Signs the log of a store with a key, whatever the log says.
fn sign(place: &Place, key: &SigningKey) {
    let store = Embedded::open(&store_of(place), Options::read()).unwrap();
    let TreeHead { size, root } = store.tree();
    let note = Checkpoint::new(&store.info().id.origin(), size, root).unwrap().sign(key).unwrap();
    for file in ["checkpoint", "log/checkpoint"] {
        std::fs::write(store_of(place).join(file), note.to_string()).unwrap();
    }
}

fn tree(tree: TreeHead) -> (u64, Digest) {
    (tree.size, tree.root)
}

fn without_index(place: &Place) {
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(store_of(place).join(format!("index.sqlite{end}")));
    }
}

#[test]
fn a_rotated_key_signs_and_the_first_one_is_enough_to_know_it() {
    let place = begun();
    let first = key_of(&place).verifier_key().to_string();
    let secret = std::fs::read(key_file(&place)).unwrap();
    let (code, changed) = place.json(&["key", "rotate"]);
    assert_eq!(code, 0);
    assert_eq!(changed.get("old"), Some(&first.as_str().into()));
    assert_eq!(changed.get("how"), Some(&"rotated".into()));
    commits(&place);
    place.ok(&["key", "rotate"]);
    assert_ne!(std::fs::read(key_file(&place)).unwrap(), secret);
    assert!(!next_file(&place).exists());
    place.ok(&["export", "r", "-o", "r.dnd"]);
    let (_, shown) = place.json(&["key", "show"]);
    let items = shown.get("items").unwrap().as_array().unwrap();
    let how: Vec<_> =
        items.iter().map(|item| item.get("how").unwrap().as_str().unwrap().to_owned()).collect();
    assert_eq!(how, ["first", "rotated", "rotated"]);
    let now = items.iter().last().unwrap().get("key").unwrap().as_str().unwrap().to_owned();
    let other = on_another(&place);
    std::fs::copy(place.path().join("r.dnd"), other.path().join("r.dnd")).unwrap();
    for target in ["--all", "r.dnd"] {
        let ran = other.run(&["verify", target]);
        assert!(signer(&ran).contains("unknown here"), "{}", ran.stdout);
        for known in [&first, &now] {
            let ran = other.run(&["verify", target, "--verifier", known]);
            assert!(ran.code == 0 && trusts(&ran), "{target}: {}{}", ran.stdout, ran.stderr);
        }
        assert!(trusts(&place.run(&["verify", target])));
    }
    let (_, answer) = other.json(&["verify", "r.dnd"]);
    let keys = answer.get("lines").unwrap().get("signer").unwrap().get("keys").unwrap().clone();
    assert_eq!(keys.as_array().unwrap().len(), 3);
}

#[test]
fn what_derives_from_the_key_stays() {
    let place = Place::with_store();
    let line = br#"{"type":"observation.add","agent":"a","intent":{"description":"token ghp_0123456789abcdefABCDEF0123456789abcd"}}"#;
    assert_eq!(place.run_with(&["commit", "--run", "r"], line).code, 0);
    place.ok(&["key", "rotate"]);
    assert_eq!(place.run_with(&["commit", "--run", "r"], line).code, 0);
    place.ok(&["key", "rotate"]);
    assert_eq!(place.run_with(&["commit", "--run", "r"], line).code, 0);
    let shown = place.ok(&["show", "r@1", "--json"]) + &place.ok(&["show", "r@2", "--json"]);
    let shown = shown + &place.ok(&["show", "r@3", "--json"]);
    let found: Vec<&str> = shown.split("github-pat#").skip(1).filter_map(|rest| rest.get(..16)).collect();
    assert!(found.len() >= 3, "{shown}");
    assert!(found.iter().all(|tag| *tag == found[0]), "{found:?}");
}

#[test]
fn a_named_key_goes_to_a_new_file() {
    let place = Place::new();
    place.ok(&["init", "--key", "log.key"]);
    let commit = |key: &str| place.run_with(&["commit", "--run", "r", "--key", key], LINE).code;
    assert_eq!(commit("log.key"), 0);
    assert_eq!(place.run(&["key", "rotate", "--out", "new.key"]).code, 2, "the key is not named");
    place.ok(&["key", "rotate", "--key", "log.key", "--out", "new.key"]);
    assert!(!place.path().join("log.key").exists() && !place.path().join("log.key.new").exists());
    assert_eq!(commit("new.key"), 0);
    place.ok(&["key", "rotate", "--key", "new.key"]);
    assert_eq!(commit("new.key"), 0);
    let ran = place.run(&["key", "rotate", "--key", "new.key", "--out", "new.key"]);
    assert!(ran.code == 2 && ran.stderr.contains("E0112"), "{}", ran.stderr);
    assert_eq!(place.run(&["verify", "--all", "--key", "new.key"]).code, 0);
}

#[test]
fn writers_with_the_secret_of_before_are_refused() {
    let place = begun();
    place.ok(&["key", "writer", "--out", "w.key"]);
    let other = on_another(&place);
    std::fs::copy(place.path().join("w.key"), other.path().join("w.key")).unwrap();
    assert_eq!(other.run_with(&["commit", "--run", "r", "--key", "w.key"], LINE).code, 0);
    place.ok(&["key", "rotate"]);
    let store = store_of(&place);
    let args = ["commit", "--run", "r", "--key", "w.key", "--store", store.to_str().unwrap()];
    let before = log_of(&place);
    let ran = other.run_with(&args, LINE);
    assert!(ran.code == 8 && ran.stderr.contains("E0804"), "{}", ran.stderr);
    assert!(log_of(&place) == before);
}

/// Files of a machine and a store before and after a rotation.
struct Around {
    place: Place,
    before: Place,
    old: Vec<u8>,
    new: Vec<u8>,
}

fn around() -> Around {
    let place = begun();
    let before = Place::new();
    copy(place.path(), before.path());
    let old = std::fs::read(key_file(&place)).unwrap();
    place.ok(&["key", "rotate"]);
    let new = std::fs::read(key_file(&place)).unwrap();
    Around { place, before, old, new }
}

#[test]
fn a_change_may_stop_anywhere() {
    let Around { place, before, old, new } = around();
    // The new key is on disk, and nothing on record: taken back.
    std::fs::write(next_file(&before), &new).unwrap();
    let ran = before.run(&["doctor"]);
    assert!(ran.stdout.contains("the next command that writes takes it back"), "{}", ran.stdout);
    assert!(trusts(&before.run(&["verify", "--all"])));
    commits(&before);
    assert!(!next_file(&before).exists());
    assert_eq!(std::fs::read(key_file(&before)).unwrap(), old);
    // On record: finished, whatever of the old key is left, and with the checkpoint of before or of after.
    let zeros = vec![0; old.len()];
    for left in [Some(&old), Some(&zeros), None] {
        for is_signed in [true, false] {
            let stopped = Place::new();
            copy(place.path(), stopped.path());
            std::fs::write(next_file(&stopped), &new).unwrap();
            match left {
                Some(bytes) => std::fs::write(key_file(&stopped), bytes).unwrap(),
                None => std::fs::remove_file(key_file(&stopped)).unwrap(),
            }
            if !is_signed {
                let around = checkpoint_before(&place, &old);
                std::fs::write(store_of(&stopped).join("checkpoint"), around).unwrap();
            }
            let ran = stopped.run(&["doctor"]);
            assert!(ran.stdout.contains("the next command that writes finishes it"), "{}", ran.stdout);
            let ran = stopped.run(&["verify", "--all"]);
            assert_eq!(ran.code, 0, "{}", ran.stdout);
            commits(&stopped);
            assert!(!next_file(&stopped).exists());
            assert_eq!(std::fs::read(key_file(&stopped)).unwrap(), new);
            let ran = stopped.run(&["verify", "--all"]);
            assert!(trusts(&ran), "{}", ran.stdout);
        }
    }
}

/// A checkpoint of the first key of a store over the log before it was changed.
fn checkpoint_before(place: &Place, key: &[u8]) -> String {
    let key = std::str::from_utf8(key).unwrap().trim_end();
    let store = Embedded::open(&store_of(place), Options::read()).unwrap();
    let position = store.keys().unwrap().spans()[1].from - 1;
    let root = store.root_of(position).unwrap().unwrap();
    let note = Checkpoint::new(&store.info().id.origin(), position, root).unwrap();
    note.sign(&SigningKey::from_secret_text(key).unwrap()).unwrap().to_string()
}

#[test]
fn a_killed_rotation_is_whole_or_not_there() {
    for step in 0..12_u64 {
        let place = begun();
        let mut child = place.command(&["key", "rotate"]).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(step * 3));
        let _ = child.kill();
        child.wait().unwrap();
        commits(&place);
        assert!(!next_file(&place).exists(), "{step}");
        let ran = place.run(&["verify", "--all"]);
        assert!(trusts(&ran), "{step}: {}", ran.stdout);
        place.ok(&["key", "rotate"]);
        assert!(trusts(&place.run(&["verify", "--all"])));
    }
}

#[test]
fn who_knows_the_key_before_writes_nothing() {
    let place = begun();
    // The same store on two machines; the key is lost on one of them.
    let other = Place::new();
    copy(place.path(), other.path());
    let ran = place.run(&["key", "recover", "--reason", "to be sure"]);
    assert!(ran.code == 5 && ran.stderr.contains("E0812"), "{}", ran.stderr);
    std::fs::remove_file(key_file(&place)).unwrap();
    refused(&place, "E0804", 8);
    assert!(place.run(&["doctor"]).stdout.contains("key recover"));
    let (code, changed) = place.json(&["key", "recover", "--reason", "the disk is gone"]);
    assert_eq!((code, changed.get("how")), (0, Some(&"recovered".into())));
    commits(&place);
    place.ok(&["export", "r", "-o", "r.dnd"]);
    let ran = place.run(&["verify", "--all"]);
    assert!(signer(&ran).contains("changed without the old key at record"), "{}", ran.stdout);
    assert!(trusts(&ran), "the machine that recovered knows the new key");
    // The other machine meets the store, and a bundle of it: with the key, and with the head alone.
    std::fs::remove_dir_all(store_of(&other)).unwrap();
    copy(&store_of(&place), &store_of(&other));
    std::fs::copy(place.path().join("r.dnd"), other.path().join("r.dnd")).unwrap();
    let first = key_of(&other).verifier_key().to_string();
    for _ in 0..2 {
        for target in ["--all", "r.dnd"] {
            let ran = other.run(&["verify", target]);
            assert_eq!((ran.code, &*verdict(&ran)), (6, "UNVERIFIABLE"), "{}", ran.stdout);
            assert!(!signer(&ran).contains("this machine knows"), "{}", ran.stdout);
        }
        refused(&other, "E0812", 5);
        for args in [&["export", "r", "-o", "x.dnd"][..], &["label", "l", "r@1"], &["key", "rotate"]] {
            let ran = other.run(args);
            assert!(ran.code == 5 && ran.stderr.contains("E0812"), "{args:?}: {}", ran.stderr);
        }
        let _ = std::fs::remove_file(key_file(&other));
    }
    // A machine that knows nothing is told, and one that is given the first key is not convinced.
    let stranger = on_another(&place);
    std::fs::copy(place.path().join("r.dnd"), stranger.path().join("r.dnd")).unwrap();
    for target in ["--all", "r.dnd"] {
        let ran = stranger.run(&["verify", target]);
        assert!(ran.code == 0 && !trusts(&ran) && signer(&ran).contains("changed without"), "{}", ran.stdout);
        let ran = stranger.run(&["verify", target, "--verifier", &first]);
        assert_eq!(ran.code, 6, "{}", ran.stdout);
    }
    // The owner brings the new key.
    std::fs::copy(key_file(&place), key_file(&other)).unwrap();
    commits(&other);
    assert!(trusts(&other.run(&["verify", "--all"])));
}

#[test]
fn a_checkpoint_that_the_log_does_not_contain_recovers_nothing() {
    let place = begun();
    place.ok(&["export", "--format", "checkpoint", "-o", "kept"]);
    let elsewhere = begun();
    elsewhere.ok(&["export", "--format", "checkpoint", "-o", "kept"]);
    let foreign = elsewhere.path().join("kept");
    let key = key_of(&place);
    let false_note =
        Checkpoint::new(&id_of(&place).origin(), 2, Digest([3; 32])).unwrap().sign(&key).unwrap();
    std::fs::write(place.path().join("false"), false_note.to_string()).unwrap();
    std::fs::remove_file(key_file(&place)).unwrap();
    let before = log_of(&place);
    for file in [foreign.to_str().unwrap(), "false"] {
        let ran = place.run(&["key", "recover", "--reason", "lost", "--checkpoint", file]);
        assert_eq!(ran.code, 4, "{}", ran.stderr);
        assert!(log_of(&place) == before && !next_file(&place).exists());
    }
    place.ok(&["key", "recover", "--reason", "lost", "--checkpoint", "kept"]);
    assert_eq!(place.run(&["verify", "--all"]).code, 0);
}

#[test]
fn a_key_that_is_in_force_or_unknown_is_not_revoked() {
    let place = begun();
    let first = key_of(&place).verifier_key().clone();
    let revoke = |key: &str, at: &str| place.run(&["key", "revoke", key, "--at", at, "--reason", "stolen"]);
    for key in [first.to_string(), first.id().to_string(), "0badc0de".to_owned()] {
        let ran = revoke(&key, "1");
        assert!(ran.code == 2 && ran.stderr.contains("E0813"), "{}", ran.stderr);
    }
    place.ok(&["key", "rotate"]);
    let ran = revoke(&first.id().to_string(), "99");
    assert!(ran.code == 2 && ran.stderr.contains("E0813"), "{}", ran.stderr);
    let ran = revoke(&first.id().to_string(), "2");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = place.run(&["verify", "--all"]);
    assert!(trusts(&ran) && signer(&ran).contains("revoked from size 2"), "{}", ran.stdout);
    commits(&place);
}

#[test]
fn a_revoked_key_signs_nothing_beyond() {
    let place = begun();
    let first = key_of(&place);
    commits(&place);
    place.ok(&["key", "rotate"]);
    place.ok(&["key", "revoke", &first.verifier_key().to_string(), "--at", "2", "--reason", "stolen"]);
    let other = on_another(&place);
    sign(&other, &first);
    let ran = other.run(&["verify", "--all", "--verifier", &first.verifier_key().to_string()]);
    assert!(ran.code == 4 && ran.stdout.contains("TAMPERED"), "{}", ran.stdout);
    // A machine that knows this key alone does not take the change that it signed beyond the size.
    place.ok(&["export", "r", "-o", "r.dnd"]);
    for target in ["--all", "r.dnd"] {
        let ran = place.run(&["verify", target, "--verifier", &first.verifier_key().to_string()]);
        assert_eq!(ran.code, 6, "{}", ran.stdout);
    }
    // A checkpoint of it that was kept counts up to the size.
    let store = Embedded::open(&store_of(&place), Options::read()).unwrap();
    for (size, code) in [(2, 0), (3, 4)] {
        let root = store.root_of(size).unwrap().unwrap();
        let note = Checkpoint::new(&store.info().id.origin(), size, root).unwrap().sign(&first).unwrap();
        std::fs::write(place.path().join("kept"), note.to_string()).unwrap();
        let ran = place.run(&["verify", "--all", "--checkpoint", "kept"]);
        assert_eq!(ran.code, code, "{size}: {}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn a_forged_change_is_tampered_and_nothing_goes_behind_it() {
    let place = begun();
    let (id, own) = (id_of(&place), key_of(&place));
    let elsewhere = begun();
    let foreign = key_of(&elsewhere);
    let thief = made_key(&place, 9);
    let tag = |key: &SigningKey| key.verifier_key().clone();
    let kept = Checkpoint::new(&id.origin(), 1, Digest([0; 32])).unwrap();
    let forged: [&dyn Fn(TreeHead) -> Value; 7] = [
        // Without the old key; by the key of another store; for another store; at another place.
        &|head| rotation(id, tree(head), &thief, (&thief, Digest([9; 32]))),
        &|head| rotation(id, tree(head), &foreign, (&thief, Digest([9; 32]))),
        &|head| rotation(id_of(&elsewhere), tree(head), &own, (&thief, Digest([9; 32]))),
        &|head| rotation(id, (head.size - 1, head.root), &own, (&thief, Digest([9; 32]))),
        // Over another log of the same size, as a change that was moved from a copy.
        &|head| rotation(id, (head.size, Digest([1; 32])), &own, (&thief, Digest([9; 32]))),
        // A checkpoint that the old key never signed.
        &|head| {
            recovery(
                id,
                tree(head),
                (&tag(&own), &kept.sign(&thief).unwrap()),
                (&thief, Digest([9; 32])),
                "mine",
            )
        },
        &|head| revocation(id, tree(head), (&tag(&own), 0), &thief, "mine"),
    ];
    for (at, forge) in forged.iter().enumerate() {
        let attacked = Place::new();
        copy(place.path(), attacked.path());
        append(&attacked, forge);
        refused(&attacked, "E0814", 5);
        let ran = attacked.run(&["verify", "--all"]);
        assert!(ran.code == 4 && ran.stdout.contains("TAMPERED"), "{at}: {}", ran.stdout);
        // The thief signs it, and the index is gone.
        sign(&attacked, &thief);
        without_index(&attacked);
        let ran = attacked.run(&["verify", "--all"]);
        assert_eq!(ran.code, 4, "{at}: {}", ran.stdout);
        assert!(!trusts(&on_another(&attacked).run(&["verify", "--all"])), "{at}");
    }
}

#[test]
fn a_stranger_who_recovers_convinces_nobody() {
    let place = begun();
    let thief = on_another(&place);
    thief.ok(&["key", "recover", "--reason", "mine now"]);
    commits(&thief);
    thief.ok(&["export", "r", "-o", "r.dnd"]);
    // The store comes back with the record, and the owner's machine writes nothing.
    std::fs::remove_dir_all(store_of(&place)).unwrap();
    copy(&store_of(&thief), &store_of(&place));
    std::fs::copy(thief.path().join("r.dnd"), place.path().join("r.dnd")).unwrap();
    refused(&place, "E0812", 5);
    for target in ["--all", "r.dnd"] {
        let ran = place.run(&["verify", target]);
        assert_eq!((ran.code, &*verdict(&ran)), (6, "UNVERIFIABLE"), "{}", ran.stdout);
        let (code, answer) = place.json(&["verify", target]);
        assert_eq!(code, 6);
        let known = answer.get("lines").unwrap().get("signer").unwrap().get("known").unwrap().clone();
        assert_eq!(known, false.into());
    }
}

#[test]
fn a_rotation_that_was_cut_off_is_another_log_where_it_was_made() {
    let Around { place, before, .. } = around();
    let first = place.json(&["key", "show"]).1;
    let first = first.get("items").unwrap().as_array().unwrap().iter().next().unwrap().clone();
    let first = first.get("key").unwrap().as_str().unwrap().to_owned();
    before.ok(&["export", "r", "-o", "r.dnd"]);
    before.ok(&["backup", "b"]);
    std::fs::remove_dir_all(store_of(&place)).unwrap();
    copy(&store_of(&before), &store_of(&place));
    refused(&place, "E0307", 4);
    let ran = place.run(&["verify", "--all"]);
    assert!(ran.code == 4 && !trusts(&ran), "{}", ran.stdout);
    // Restored, or without the head that is remembered: an older log, whose key was changed here.
    copy(&before.path().join("b"), &place.path().join("b"));
    place.run(&["restore", "b", "again"]);
    for target in [&["verify", "--all", "--store", "again"][..], &["verify", "--all", "--store", "b"]] {
        let ran = place.run(target);
        assert!(ran.code != 0 && !trusts(&ran), "{target:?}: {}{}", ran.stdout, ran.stderr);
    }
    // The keys that were known lie beside it, and stay.
    let heads = std::fs::read_dir(place.config().join("heads")).unwrap().map(|file| file.unwrap().path());
    heads.filter(|file| file.extension().is_none_or(|end| end != "known")).for_each(|file| {
        std::fs::remove_file(file).unwrap();
    });
    let ran = place.run(&["verify", "--all"]);
    assert!(ran.code == 6 && !trusts(&ran), "{}", ran.stdout);
    assert_ne!(place.run_with(&["commit", "--run", "r"], LINE).code, 0);
    std::fs::copy(before.path().join("r.dnd"), place.path().join("r.dnd")).unwrap();
    let ran = place.run(&["verify", "r.dnd"]);
    assert!(!trusts(&ran), "{}", ran.stdout);
    assert!(!first.is_empty());
}

#[test]
fn a_bundle_without_its_change_of_keys_does_not_verify() {
    let place = begun();
    let first = key_of(&place).verifier_key().to_string();
    place.ok(&["key", "rotate"]);
    let second = key_of(&place).verifier_key().to_string();
    place.ok(&["export", "r", "-o", "r.dnd"]);
    let text = std::fs::read_to_string(place.path().join("r.dnd")).unwrap();
    let other = Place::new();
    let check = |text: &str, what: &str| {
        std::fs::write(other.path().join("x.dnd"), text).unwrap();
        for known in [&first, &second] {
            let ran = other.run(&["verify", "x.dnd", "--verifier", known]);
            assert!(ran.code != 0 && !trusts(&ran), "{what}: {}", ran.stdout);
        }
    };
    // Its key is named in place of the first one; a signature of the change is another's; the first key signs all of it.
    check(&text.replacen(&first, &second, 1), "another first key");
    let at = text.find("\"/signatures\":[\"").unwrap() + 16;
    let flipped = if &text[at..=at] == "A" { "B" } else { "A" };
    check(&format!("{}{flipped}{}", &text[..at], &text[at + 1..]), "a signature that is wrong");
}
