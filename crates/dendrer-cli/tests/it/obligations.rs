//! Obligations as a user meets them: asked by name wherever a predicate is, open, met and missed told apart.

use std::path::Path;

use crate::support::Place;

const INTENTS: &str = r#"{"type":"artifact.write","intent":{"keeps":["income_declared"]}}
{"type":"objection.raised","intent":{"about":"rates"}}
{"type":"observation.add","intent":{"signed":true}}
{"type":"artifact.write","intent":{"keeps":["receipts_kept"]}}
{"type":"artifact.write","intent":{"keeps":["rates_of_the_year"]}}
{"type":"artifact.write","intent":{"keeps":["income_declared"]}}
{"type":"objection.answered","intent":{"about":"rates"}}
"#;

pub(crate) fn filing(intents: &str) -> Place {
    let place = Place::with_store();
    let pack = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/packs/tax-filing.yaml");
    std::fs::copy(pack, place.path().join("tax.yaml")).unwrap();
    let ran = place.run_with(&["commit", "--run", "filing", "--pack", "tax.yaml"], intents.as_bytes());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    place
}

#[test]
fn what_was_left_undone_is_found_at_the_tick_at_which_it_was_due() {
    let place = filing(INTENTS);
    let said = place.ok(&["bisect", "filing", "--predicate", "acme.tax/objections_answered", "--no-chain"]);
    assert!(said.contains("\nSEARCH  objections_answered v2, in ticks 0..7 of filing"), "{said}");
    assert!(
        said.contains("\n  must hold within 4 ticks of objection.raised, lost with state.filed: "),
        "{said}"
    );
    assert!(said.contains("\n  pure by construction; it cannot recover; digest "), "{said}");
    assert!(said.contains("\n  ends tick 0 OK, tick 7 FAIL"), "{said}");
    assert!(said.contains("\n  owed missed at tick 6 (at tick 7)\n"), "{said}");
    assert!(said.contains("ONSET (exact)  tick 6  artifact.write"), "{said}");
    let (code, answer) = place.json(&["bisect", "filing", "--predicate", "objections_answered", "--to", "5"]);
    let owed = answer.get("obligation").unwrap();
    assert_eq!((code, owed.get("standing").unwrap().as_str()), (1, Some("open")));
    assert_eq!(owed.get("due").unwrap().as_u64(), Some(6));

    let open = place.run(&["bisect", "filing", "--predicate", "rule_47b_checked"]);
    assert_eq!(open.code, 1, "{}", open.stderr);
    assert!(open.stdout.contains("\n  owed open: due at tick 20 (at tick 7)"), "{}", open.stdout);
    assert!(open.stdout.starts_with("no violation: nothing was missed up to tick 7\n"), "{}", open.stdout);

    let tested = place.ok(&["predicate", "test", "acme.tax/signed_in_time", "filing"]);
    assert!(tested.contains("at tick 7  met at tick 3"), "{tested}");
    let (code, answer) = place.json(&["predicate", "test", "signed_in_time", "filing", "--at", "2"]);
    let owed = answer.get("obligation").unwrap();
    assert_eq!((code, owed.get("standing").unwrap().as_str()), (0, Some("open")));

    let all = place.run(&["bisect", "filing", "--all-of", "tax.yaml"]);
    assert_eq!(all.code, 1, "{}", all.stderr);
    for row in ["met at tick 3", "open: due at tick 20", "artifact.write by agent"] {
        assert!(all.stdout.contains(row), "{row}: {}", all.stdout);
    }
    place.json(&["bisect", "filing", "--all-of", "tax.yaml"]);
}

#[test]
fn a_contract_check_and_the_lists_name_obligations() {
    let place = filing(INTENTS);
    let checked = place.run(&["contract", "check", "filing"]);
    assert_eq!(checked.code, 1, "{}{}", checked.stdout, checked.stderr);
    for line in [
        "OK    signed_in_time          met at tick 3",
        "FAIL  objections_answered     from tick 6",
        "OK    rule_47b_checked        open: due at tick 20",
    ] {
        assert!(checked.stdout.contains(line), "{line}: {}", checked.stdout);
    }
    place.json(&["contract", "check", "filing"]);

    let listed = place.ok(&["predicate", "list", "--run", "filing"]);
    assert!(
        listed.contains("acme.tax/rule_47b_checked") && listed.contains("must hold by tick 20"),
        "{listed}"
    );
    let shown = place.ok(&["predicate", "show", "acme.tax/signed_in_time", "--run", "filing"]);
    assert!(shown.contains("must hold by goal.complete: state.signed"), "{shown}");
    let (_, answer) = place.json(&["predicate", "show", "signed_in_time", "--run", "filing"]);
    assert_eq!(answer.get("items").unwrap().as_array().unwrap().len(), 1);
    assert_eq!(place.run(&["predicate", "show", "signed_on_time", "--run", "filing"]).code, 3);
    let near = place.run(&["bisect", "filing", "--predicate", "acme.tax/signed_on_time"]);
    assert_eq!((near.code, near.stderr.contains("E0511")), (3, true), "{}", near.stderr);
    let shown = place.ok(&["pack", "show", "tax.yaml"]);
    assert!(shown.contains("obligation  signed_in_time  must hold by goal.complete"), "{shown}");
}
