//! A store and a bundle from before the format was frozen are named as such, and never called tampered (design, section 3).

use std::path::Path;

use crate::support::Place;

#[test]
fn what_was_made_before_the_format_was_frozen_is_named_so() {
    for draft in ["draft-1", "draft-2"] {
        is_named(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(draft));
    }
}

fn is_named(data: &Path) {
    let (store, bundle) =
        (data.join(".dendrer").display().to_string(), data.join("old.dnd").display().to_string());
    let place = Place::new();
    let asked: [&[&str]; 6] = [
        &["verify", "--all", "--store", &store],
        &["runs", "--store", &store],
        &["export", "r", "--store", &store],
        &["commit", "--run", "s", "--store", &store],
        &["verify", &bundle],
        &["log", &bundle],
    ];
    for args in asked {
        let ran = place.run(args);
        assert_eq!(ran.code, 8, "{args:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("error[E0811]"), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("before the format was frozen"), "{args:?}: {}", ran.stderr);
        assert!(!(ran.stdout + &ran.stderr).contains("TAMPERED"), "{args:?}");
    }
}
