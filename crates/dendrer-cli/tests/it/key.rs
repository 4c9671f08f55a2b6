//! Keys: one that somebody gives and nobody knows is not tampering; one that was put in place of another is.

use std::sync::Arc;

use dendrer::kernel::step::Start;
use dendrer::repo::Repo;
use dendrer::trust::{MemoryTrust, Trust};

use crate::support::{Place, demo};

/// A verifier key of another store.
fn stranger() -> String {
    let (_, made) = Place::new().json(&["init"]);
    made.get("verifier").unwrap().as_str().unwrap().to_owned()
}

#[test]
fn a_key_that_does_not_fit_says_unverifiable() {
    let stranger = stranger();
    for target in ["logistics-run-47", "logistics-run-47.dnd"] {
        let ran = demo().run(&["verify", target, "--verifier", &stranger]);
        assert_eq!(ran.code, 6, "{target}: {}", ran.stdout);
        assert!(ran.stdout.contains("UNVERIFIABLE"), "{}", ran.stdout);
        assert!(
            ran.stdout
                .contains("not checked: a signature under the key that was given: the log is signed by "),
            "{}",
            ran.stdout
        );
    }
    let damaged = demo().run(&["verify", "tampered.dnd", "--verifier", &stranger]);
    assert_eq!(damaged.code, 4, "the worse of two verdicts counts");
    assert_eq!(demo().run(&["verify", "logistics-run-47", "--verifier", "nonsense"]).code, 2);
}

#[test]
fn the_key_of_the_log_fits_in_every_form() {
    let place = Place::new();
    let (_, made) = place.json(&["init", "--key", "log.key"]);
    let verifier = made.get("verifier").unwrap().as_str().unwrap();
    let lines = b"{\"type\":\"plan.update\"}\n";
    place.run_with(&["commit", "--run", "r", "--key", "log.key"], lines);
    assert_eq!(place.run(&["verify", "--all", "--verifier", verifier]).code, 0);
    assert_eq!(place.run(&["verify", "--all", "--key", "log.key"]).code, 0);
    let other = Place::new();
    other.ok(&["init", "--key", "other.key"]);
    let other = other.path().join("other.key");
    assert_eq!(place.run(&["verify", "--all", "--key", other.to_str().unwrap()]).code, 6);
    assert_eq!(place.run(&["verify", "--all", "--key", "gone.key"]).code, 8);
}

/// The id of a store is chance and its key never changes: another key under the same id was put there.
#[test]
fn another_key_under_the_same_store_is_tampering() {
    let place = Place::with_store();
    place.run_with(&["commit", "--run", "r"], b"{\"type\":\"plan.update\"}\n");
    assert_eq!(place.run(&["verify", "--all"]).code, 0);
    let keys = place.config().join("keys");
    let file = std::fs::read_dir(&keys).unwrap().next().unwrap().unwrap().path();
    let id = file.file_stem().unwrap().to_str().unwrap().to_owned();
    // The same name with another secret, as if the log had been made again by somebody else.
    let secret = dendrer_object::note::SigningKey::from_seed(
        &id.parse::<dendrer_object::StoreId>().unwrap().origin(),
        [9; 32],
    );
    std::fs::write(&file, format!("{}\n", secret.unwrap().secret_text())).unwrap();
    let ran = place.run(&["verify", "--all"]);
    assert_eq!(ran.code, 4, "{}", ran.stdout);
    assert!(
        ran.stdout
            .contains("error[E0308]: the log names another key than the one its store was made with here"),
        "{}",
        ran.stdout
    );
}

/// A log of the same store id under a key of its own, with one run.
fn twin(place: &Place, dir: &std::path::Path) -> dendrer_object::note::SigningKey {
    let (_, shown) = place.json(&["key", "show"]);
    let text = shown.to_string();
    let id = text.split("dendrer/").nth(1).unwrap()[..32].parse::<dendrer_object::StoreId>().unwrap();
    let seed = || dendrer_object::note::SigningKey::from_seed(&id.origin(), [9; 32]).unwrap();
    let trust: Arc<dyn Trust> = Arc::new(MemoryTrust::new());
    let key = Arc::new(seed());
    trust.keep_key(id, &key).unwrap();
    let repo = Repo::create(dir, id, &key, &trust).unwrap();
    repo.begin(&Start::new("r".parse().unwrap())).unwrap().commit().unwrap();
    repo.sign().unwrap();
    seed()
}

/// The signer of a log is known by its key, not by the name of the log.
#[test]
fn a_remembered_head_does_not_make_every_key_known() {
    let place = Place::with_store();
    place.run_with(&["commit", "--run", "r"], b"{\"type\":\"plan.update\"}\n");
    let other = Place::new();
    let dir = other.path().join(".dendrer");
    twin(&place, &dir);
    other.ok(&["export", "r", "-o", "r.dnd"]);
    let bundle = other.path().join("r.dnd");
    let bundle = bundle.to_str().unwrap();
    let keys = place.config().join("keys");
    for file in std::fs::read_dir(&keys).unwrap().map(|file| file.unwrap().path()) {
        if file.extension().is_some_and(|end| end == "key") {
            std::fs::rename(&file, place.path().join("moved.key")).unwrap();
        }
    }
    let own = place.run(&["verify", "r"]);
    assert!(own.code == 0 && own.stdout.contains("the signer this machine knows"), "{}", own.stdout);
    let ran = place.run(&["verify", bundle]);
    assert!(ran.code == 4 && ran.stdout.contains("error[E0308]"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("the signer this machine knows"), "{}", ran.stdout);
    // Where nothing of this log is known, it is intact and its signer unknown.
    let ran = Place::new().run(&["verify", bundle]);
    assert!(ran.code == 0 && ran.stdout.contains("unknown here"), "{}", ran.stdout);
}

/// The file is wrong, and not the log.
#[test]
fn the_key_file_of_another_store_is_named() {
    let (place, other) = (Place::with_store(), Place::with_store());
    place.run_with(&["commit", "--run", "r"], b"{\"type\":\"plan.update\"}\n");
    let file = |place: &Place| {
        let files = std::fs::read_dir(place.config().join("keys")).unwrap();
        let mut files = files.map(|file| file.unwrap().path());
        files.find(|file| file.extension().is_some_and(|end| end == "key")).unwrap()
    };
    std::fs::copy(file(&other), file(&place)).unwrap();
    let ran = place.run(&["verify", "r"]);
    assert_eq!(ran.code, 6, "{}", ran.stdout);
    let name = file(&place).display().to_string();
    assert!(
        ran.stdout.contains(&name) && ran.stdout.contains("it is that of another store"),
        "{}",
        ran.stdout
    );
}
