//! Predicates that are WebAssembly modules: registered, asked, refused, stopped.

use std::path::PathBuf;

use dendrer_object::Value;

use crate::support::Place;

const RISK: &str = include_str!("../../../../examples/modules/risk.wat");

fn put(place: &Place, name: &str, wat: &str) -> PathBuf {
    let path = place.path().join(name);
    std::fs::write(&path, wat::parse_str(wat).unwrap()).unwrap();
    path
}

/// The smallest module there is, with this body.
fn small(body: &str) -> String {
    format!(
        r#"(module (memory (export "memory") 1) (data (i32.const 0) "\"ok\"\"violation\"")
        (func (export "alloc") (param i32) (result i32) (i32.const 1024))
        (func (export "evaluate") (param i32 i32) (result i64) {body}))"#
    )
}

/// D-123, D-128: a module under a name answers as the expression does that asks the same.
#[test]
fn a_module_is_registered_and_bisects_as_the_same_expression_does() {
    let place = Place::with_demo();
    put(&place, "acme.risk.wasm", RISK);
    let said = place.ok(&["predicate", "register", "acme.risk.wasm"]);
    assert!(said.contains("registered acme.risk v1\n  violated when module "), "{said}");
    assert!(said.contains("  pure: by construction   monotone: not tested\n"), "{said}");
    let again = place.ok(&["predicate", "register", "acme.risk", "--module", "acme.risk.wasm"]);
    assert!(again.starts_with("was registered already: acme.risk v1\n"), "{again}");

    let found = place.ok(&["bisect", "logistics-run-47", "--predicate", "acme.risk", "--scan"]);
    assert!(
        found.contains("  pure by construction; ")
            && found.contains("reads the whole state: every tick that wrote"),
        "{found}"
    );
    let (code, module) = place.json(&["bisect", "logistics-run-47", "--predicate", "acme.risk", "--scan"]);
    let text = "has(state.risk_score) && state.risk_score > 0.75";
    let (same, expression) = place.json(&["bisect", "logistics-run-47", "--predicate", text, "--scan"]);
    assert_eq!((code, same), (0, 0));
    assert_eq!(module.get("onset"), expression.get("onset"));
    assert_eq!(module.get("onset"), module.get("scan_onset"));
    let (_, module) = place.json(&["predicate", "test", "acme.risk", "logistics-run-47"]);
    let (_, expression) = place.json(&["predicate", "test", text, "logistics-run-47"]);
    assert_eq!(module.get("intervals"), expression.get("intervals"));
    assert!(module.get("intervals").is_some_and(|intervals| *intervals != Value::Null));

    let listed = place.ok(&["predicate", "list"]);
    assert!(listed.contains("acme.risk") && listed.contains("violated when module "), "{listed}");
    place.json(&["predicate", "show", "acme.risk"]);
    // The module is in the store: the file is not asked again, and a bundle has it, too.
    std::fs::remove_file(place.path().join("acme.risk.wasm")).unwrap();
    place.ok(&["export", "logistics-run-47", "-o", "run.dnd"]);
    let there = place.ok(&["predicate", "list", "run.dnd"]);
    assert!(there.contains("acme.risk"), "{there}");
    place.ok(&["bisect", "run.dnd", "--predicate", "acme.risk"]);
    place.ok(&["verify"]);
}

/// D-123: nothing about a module alone shows that it cannot recover; runs are asked, or it is lifted.
#[test]
fn a_module_is_tested_for_recovery_or_lifted() {
    let place = Place::with_demo();
    put(&place, "acme.risk.wasm", RISK);
    let blind = place.run(&["predicate", "register", "acme.risk.wasm", "--verify-monotone"]);
    assert_eq!(blind.code, 2);
    assert!(blind.stderr.contains("E0106"), "{}", blind.stderr);
    let sample = ["--verify-monotone", "--sample-trace", "logistics-run-47"];
    let tested = place.run(&[&["predicate", "register", "acme.risk.wasm"], &sample[..]].concat());
    assert!(tested.stdout.contains("monotone: tested on ") || tested.code == 1, "{}", tested.stderr);
    let lifted = place.ok(&[
        "predicate",
        "register",
        "acme.risk_ever",
        "--module",
        "acme.risk.wasm",
        "--lift",
        "monotone",
    ]);
    assert!(lifted.contains("monotone: lifted"), "{lifted}");
    let found = place.ok(&["bisect", "logistics-run-47", "--predicate", "acme.risk_ever"]);
    assert!(found.contains("; lifted to the first violation; "), "{found}");
}

/// D-128: what is refused is refused with a code, and nothing is put on record.
#[test]
fn what_is_no_module_for_here_is_refused_by_name() {
    let place = Place::with_demo();
    let before = place.ok(&["predicate", "list", "--all"]);
    let clock = small("(i64.const 4)")
        .replace("(module", r#"(module (import "env" "no\1b[31mw" (func (result i64)))"#);
    put(&place, "a.clock.wasm", &clock);
    put(&place, "a.start.wasm", &small("(i64.const 4)").replace("(module", "(module (func $s) (start $s)"));
    std::fs::write(place.path().join("a.text.wasm"), small("(i64.const 4)")).unwrap();
    std::fs::write(place.path().join("a.long.wasm"), vec![0; (1 << 20) + 1]).unwrap();
    for (file, why) in [
        ("a.clock.wasm", "imports the function"),
        ("a.start.wasm", "start function"),
        ("a.text.wasm", "expected=[0x0, 0x61, 0x73, 0x6d] actual=["),
        ("a.long.wasm", "it has more than 1048576 bytes"),
    ] {
        let ran = place.run(&["predicate", "register", file]);
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains("E0520") && ran.stderr.contains(why), "{}", ran.stderr);
        assert!(!ran.stderr.contains('\u{1b}'), "{:?}", ran.stderr);
        // In one line, and escaped once.
        assert_eq!(ran.stderr.matches("| why ").count(), 1, "{}", ran.stderr);
        assert!(!ran.stderr.contains("\\\\"), "{}", ran.stderr);
    }
    let gone = place.run(&["predicate", "register", "a.gone.wasm"]);
    assert_eq!(gone.code, 3, "{}", gone.stderr);
    assert!(gone.stderr.contains("E0108"), "{}", gone.stderr);
    let unnamed = place.run(&["predicate", "register", "gone.wasm"]);
    assert!(unnamed.stderr.contains("E0513"), "{}", unnamed.stderr);
    let reserved = place.run(&["predicate", "register", "kernel.mine", "--module", "a.clock.wasm"]);
    assert!(reserved.stderr.contains("names that begin with `kernel.` are reserved"), "{}", reserved.stderr);
    assert_eq!(before, place.ok(&["predicate", "list", "--all"]));
}

/// D-128: what a limit ends is no verdict: not ok, not a violation, and not uncertain either.
#[test]
fn a_module_that_never_ends_is_stopped_and_gives_no_verdict() {
    let place = Place::with_demo();
    put(&place, "a.loop.wasm", &small("(loop $l (br $l)) (i64.const 4)"));
    place.ok(&["predicate", "register", "a.loop.wasm"]);
    for verb in [
        &["bisect", "logistics-run-47", "--predicate", "a.loop"][..],
        &["predicate", "test", "a.loop", "logistics-run-47"],
        &["predicate", "register", "a.loop", "--verify-monotone", "--sample-trace", "logistics-run-47"],
    ] {
        let ran = place.run(verb);
        assert_eq!(ran.code, 6, "{}", ran.stdout);
        assert!(ran.stderr.contains("E0521") && ran.stderr.contains("fuel"), "{}", ran.stderr);
        assert!(!ran.stdout.contains("uncertain"), "{}", ran.stdout);
        for said in [
            "| predicate a.loop",
            "| run      logistics-run-47",
            "| tick     0",
            "help: dendrer state logistics-run-47@0",
        ] {
            assert!(ran.stderr.contains(said), "{verb:?}: {said}: {}", ran.stderr);
        }
    }
    // A trap is the same everywhere, so it is an answer: it cannot be said.
    put(&place, "a.trap.wasm", &small("unreachable"));
    place.ok(&["predicate", "register", "a.trap.wasm"]);
    let ran = place.run(&["bisect", "logistics-run-47", "--predicate", "a.trap"]);
    assert_eq!(ran.code, 6);
    assert!(ran.stderr.contains("E0509") && ran.stderr.contains("unreachable"), "{}", ran.stderr);
}
