//! Runs whose contract was extended, as the verbs show them that read contracts and that retell runs.

use dendrer_object::Value;

use crate::support::Place;

/// A pack and an extension of it that say as little as the tests below need.
const PACK: &str = r#"{
    "name":"t.p","version":"v1",
    "state":{"x":{"init":0},"y":{"init":0},"kyc":{"init":"'unknown'"}},
    "types":{"act":"acts"},
    "rules":[
        {"when_type":"observation.add","steps":[
            {"set":"x","value":"t.intent.x","if":"has(t.intent.x)"},
            {"set":"kyc","value":"t.intent.kyc","if":"has(t.intent.kyc)"}]},
        {"when_type":["act","policy.contract_extension"],"steps":[{"add":"y","value":1}]},
        {"when_type":"run.fork","steps":[{"set":"y","value":0}]}],
    "contracts":{"act":{"required_state":{"x":{"type":"number"}},"hash_seeds":["x"]}},
    "violations":[{"id":"big","condition":"state.x > 10","bisect_predicate":"monotone_lift"}]
}"#;
const EXTENSION: &str = "words: Nobody acts unseen.\ntarget_contract: t.p/v1\ntypes: [act]\nadds_required: {kyc: {type: string}}\n\
    adds_hash_seeds: [kyc]\neffective_from_tick: 4\napproved_by: jd\nadds_violations:\n  \
    - {id: unver, scope: [act], condition: state.kyc != 'verified', bisect_predicate: monotone_lift}\n";

fn place() -> Place {
    let place = Place::with_store();
    write(&place, "p.json", PACK);
    write(&place, "e.yaml", EXTENSION);
    place
}

fn write(place: &Place, name: &str, text: &str) {
    std::fs::write(place.path().join(name), text).expect("written");
}

fn commit(place: &Place, run: &str, more: &[&str], lines: &[&str]) {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let ran = place.run_with(&[&["commit", "--run", run], more].concat(), text.as_bytes());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

const BEGIN: [&str; 4] = ["--pack", "p.json", "--stage", "2"];
const SEES: &str = r#"{"type":"observation.add","intent":{"x":1,"kyc":"verified"}}"#;
const ACT: &str = r#"{"type":"act"}"#;

/// Tick 1 observes, tick 2 extends from tick 4 on, ticks 3 to 5 act.
fn extended() -> Place {
    let place = place();
    commit(&place, "r", &BEGIN, &[SEES]);
    place.ok(&["contract", "extend", "r", "--file", "e.yaml"]);
    commit(&place, "r", &[], &[ACT, ACT, ACT]);
    place
}

/// An extension governs what comes behind it, and is said to.
#[test]
fn an_extension_is_told_to_hold_from_where_it_does() {
    let place = place();
    commit(&place, "r", &BEGIN, &[SEES, SEES, SEES]);
    let extend = |more: &[&str]| {
        let args = [&["contract", "extend", "r", "--file", "e.yaml", "--effective-from", "tick", "4"], more]
            .concat();
        let (_, found) = place.json(&[&args[..], &["-n"]].concat());
        assert_eq!(found.get("holds_from").and_then(Value::as_u64), Some(5));
        place.ok(&args)
    };
    assert!(extend(&[]).starts_with("extended  t.p/v1 with e1, from tick 5 on\n"));
    assert!(place.ok(&["contract", "show", "r"]).contains("holds from tick 5 on"));
}

fn says(text: &str, line: &str) -> bool {
    text.lines().any(|found| found == line)
}

/// What was so before anybody asked for it was brought about by no transition that was asked for it.
#[test]
fn what_an_extension_finds_violated_has_no_onset_under_it() {
    let place = place();
    let violation = |condition: &str| {
        let text = format!(
            "words: w\ntarget_contract: t.p/v1\ntypes: []\neffective_from_tick: 4\napproved_by: jd\nadds_violations:\n  - {{id: new, condition: {condition}, bisect_predicate: monotone_lift}}\n"
        );
        write(&place, "e.yaml", &text);
    };
    let see = |x: u64| format!(r#"{{"type":"observation.add","intent":{{"x":{x},"kyc":"verified"}}}}"#);
    // Tick 1 sees 1, tick 2 extends, ticks 3 to 6 see 1, 5, 5, 5: in force from tick 4 on.
    let make = |run: &str, condition: &str| {
        violation(condition);
        commit(&place, run, &BEGIN, &[&see(1)]);
        place.ok(&["contract", "extend", run, "--file", "e.yaml"]);
        commit(&place, run, &[], &[&see(1), &see(5), &see(5), &see(5)]);
    };
    make("before", "state.x > 0");
    make("there", "state.x > 4");
    make("unknown", "state.kyc.since > 4");
    let ask = |run: &str, more: &[&str]| {
        let (code, found) = place.json(&[&["bisect", run, "--predicate", "new"], more].concat());
        let member = |name: &str| found.get(name).cloned().unwrap_or(Value::Null).to_string();
        let names = ["outcome", "onset", "since", "diagnosis", "suggestion"];
        (code, names.map(member), member("ends"))
    };
    for scan in [&[][..], &["--scan"]] {
        let (code, found, ends) = ask("before", scan);
        assert_eq!((code, found), (0, ["\"initial\"", "null", "4", "null", "null"].map(str::to_owned)));
        assert!(ends.starts_with(r#"[{"tick":4,"verdict":"violation"}"#), "{ends}");
        let (code, found, ends) = ask("there", scan);
        assert_eq!((code, &found[..3]), (0, &["\"onset\"", "4", "4"].map(str::to_owned)[..]));
        assert!(ends.starts_with(r#"[{"tick":3,"verdict":"ok"}"#), "{ends}");
    }
    assert_eq!(ask("before", &["--from", "0"]).1[..3], ["\"onset\"", "1", "null"].map(str::to_owned)[..]);
    assert_eq!(ask("unknown", &[]).1[0], "\"uncertain\"");
    let text = place.ok(&["bisect", "before", "--predicate", "new"]);
    for line in [
        "  ends tick 4 FAIL, tick 7 FAIL",
        "IN VIOLATION already at tick 4, from tick 4 on part of the contract: no transition under it made it so",
    ] {
        assert!(says(&text, line), "{text}");
    }
    assert!(!text.contains("DIAGNOSIS") && !text.contains("SUGGESTION"), "{text}");
}

#[test]
fn show_tells_what_holds_at_a_tick_and_what_is_to_come() {
    let place = extended();
    let show = |address: &str| place.ok(&["contract", "show", address]);
    let now = show("r");
    for line in [
        "extension e1   written at tick 2, holds from tick 4 on   approved by jd, not signed   Nobody acts unseen.",
        "  needs     kyc  string, seeds the hash, an import finds it equal, since extension e1",
        "            x    number, seeds the hash, an import finds it equal",
        "never     unver   at act: violated when state.kyc != 'verified'   (after each transition, since extension e1)",
        // Rules that no transition is put to are no way to write a field.
        "field     state.y   begins as 0; written by add of act (rule 2)",
    ] {
        assert!(says(&now, line), "{line}\n{now}");
    }
    assert_eq!(show("r@4").replace("tick 4", "tick 5"), now.replace("tick 4", "tick 5"), "from its tick on");
    // The transition that put it on record is not under it, and neither is the next.
    for tick in ["r@2", "r@3"] {
        let before = show(tick);
        assert!(
            says(
                &before,
                "coming    e1   written at tick 2, holds from tick 4 on   approved by jd, not signed   Nobody acts unseen."
            ),
            "{before}"
        );
        assert!(says(&before, "          act needs kyc (string)"), "{before}");
        assert!(!before.contains("since extension") && !before.contains("never     unver"), "{before}");
    }
    // What nobody had put on record yet, and the pack by itself, know nothing of it.
    for address in ["r@1", "t.p/v1", "p.json"] {
        let without = show(address);
        assert!(!without.contains("e1") && !without.contains("unver"), "{address}: {without}");
    }
    let (code, json) = place.json(&["contract", "show", "r@3"]);
    let one = json.get("extensions").unwrap().as_array().unwrap().get(0).unwrap();
    let said = |name: &str| one.get(name).unwrap().to_string();
    assert_eq!(
        (code, ["id", "tick", "from", "holds", "signed"].map(said)),
        (0, ["\"e1\"", "2", "4", "false", "false"].map(str::to_owned))
    );
    assert_eq!(one.get("adds").unwrap().as_array().unwrap().len(), 3);
    let (_, holding) = place.json(&["contract", "show", "r"]);
    assert_eq!(holding.get("digest"), json.get("digest"), "the digest is that of the pack on record");
    // A fork from before it does not have it; one from behind it does.
    place.ok(&["fork", "r@1", "--as", "without"]);
    place.ok(&["fork", "r@4", "--as", "with"]);
    assert!(!show("without").contains("e1") && show("with").contains("since extension e1"));
    // It travels in a bundle.
    place.ok(&["export", "r", "-o", "r.dnd"]);
    assert!(show("r.dnd").contains("since extension e1"));
}

#[test]
fn what_an_extension_declares_for_itself_is_marked_as_well() {
    let place = place();
    write(
        &place,
        "d.json",
        r#"{"name":"t.d","version":"v1","reducer":"delta/1","state":{"x":{"init":0}},"types":{"act":"acts"},
        "contracts":{"act":{"required_state":{"x":{"type":"number"}},"hash_seeds":["x"]}},
        "violations":[{"id":"big","condition":"state.x > 10","bisect_predicate":"monotone_lift"}]}"#,
    );
    commit(&place, "d", &["--pack", "d.json", "--stage", "2"], &[r#"{"type":"plan.update"}"#]);
    write(
        &place,
        "f.yaml",
        "id: seen\ntarget_contract: t.d/v1\nadds_required: [kyc]\neffective_from_tick: 2\napproved_by: jd\n",
    );
    // It binds in a second one what a first one requires.
    write(
        &place,
        "g.yaml",
        "id: bound\ntarget_contract: t.d/v1\nadds_hash_seeds: [kyc]\neffective_from_tick: 3\napproved_by: jd\n",
    );
    place.ok(&["contract", "extend", "d", "--file", "f.yaml"]);
    place.ok(&["contract", "extend", "d", "--file", "g.yaml"]);
    commit(&place, "d", &[], &[r#"{"type":"plan.update"}"#]);
    let shown = place.ok(&["contract", "show", "d"]);
    assert!(shown.contains("seeds the hash since extension bound"), "{shown}");
    assert!(shown.contains(", since extension seen\n"), "{shown}");
    assert!(
        shown.contains(
            "field     state.kyc   begins as null; intents may write it; declared since extension seen"
        ),
        "{shown}"
    );
}

#[test]
fn a_signed_extension_is_shown_as_signed() {
    let place = signed();
    let shown = place.ok(&["contract", "show", "s@3"]);
    assert!(shown.contains("approved by jd, signed with their key"), "{shown}");
}

/// As [`extended`], under a pack that names an approver, who signed.
fn signed() -> Place {
    let place = place();
    let made = place.ok(&["contract", "keygen", "jd", "jd.key"]);
    let key =
        made.lines().last().unwrap().trim().strip_prefix("jd: ").expect("the line for the pack").to_owned();
    let pack = PACK.replace("\"violations\"", &format!("\"approvers\":{{\"jd\":\"{key}\"}},\"violations\""));
    write(&place, "s.json", &pack);
    commit(&place, "s", &["--pack", "s.json", "--stage", "2"], &[SEES]);
    place.ok(&["contract", "extend", "s", "--file", "e.yaml", "--approver-key", "jd.key"]);
    commit(&place, "s", &[], &[ACT, ACT]);
    place
}

#[test]
fn diff_compares_what_is_in_force() {
    let place = extended();
    for (a, b, code) in [
        ("p.json", "r", 1),
        ("r@3", "r", 1),
        ("t.p/v1", "r@4", 1),
        ("r@4", "r@5", 0),
        ("p.json", "r@3", 0),
        ("r", "r@3", 1),
    ] {
        let ran = place.run(&["contract", "diff", a, b, "--exit-code"]);
        assert_eq!(ran.code, code, "{a} {b}: {}", ran.stdout);
        let word = if a == "r" { "LOOSER  " } else { "STRICTER" };
        let told = ran.stdout.lines().filter(|line| line.starts_with(word)).count();
        assert_eq!(told, 2 * usize::try_from(code).unwrap(), "{a} {b}: {}", ran.stdout);
    }
    let ran = place.ok(&["contract", "diff", "p.json", "r"]);
    assert!(ran.lines().next().unwrap().ends_with(" + extension e1"), "{ran}");
    assert!(says(&ran, "STRICTER  contracts.act.required_state.kyc   act needs kyc (string)"), "{ran}");
    let (_, json) = place.json(&["contract", "diff", "p.json", "r"]);
    let of = |side: &str, name: &str| json.get(side).unwrap().get(name).unwrap().to_string();
    assert_eq!((of("a", "extensions"), of("b", "extensions")), ("[]".to_owned(), "[\"e1\"]".to_owned()));
    assert_eq!(of("a", "digest"), of("b", "digest"));
    // Two runs under one pack, of which one was extended.
    commit(&place, "plain", &BEGIN, &[SEES]);
    assert_eq!(place.run(&["contract", "diff", "plain", "r", "--exit-code"]).code, 1);
}

#[test]
fn suggest_names_no_field_that_an_extension_requires_there() {
    let place = place();
    let named = r#"{"type":"act","intent":{"declared_deps":["kyc"]}}"#;
    commit(&place, "r", &BEGIN, &[SEES, named]);
    let counted = || {
        let (code, json) = place.json(&["contract", "suggest", "r", "--type", "act"]);
        assert_eq!(code, 0, "{json}");
        let items = json.get("items").unwrap().as_array().unwrap().clone();
        let kyc = items.iter().find(|item| item.get("field").and_then(Value::as_str) == Some("kyc")).cloned();
        kyc.map(|item| item.get("named").unwrap().as_u64().unwrap())
    };
    assert_eq!(counted(), Some(1));
    place.ok(&["contract", "extend", "r", "--file", "e.yaml", "--effective-from", "5"]);
    commit(&place, "r", &[], &[named, named, named]);
    // Tick 4 is not under it yet, ticks 5 and 6 are.
    assert_eq!(counted(), Some(2));
    place.ok(&["fork", "r@3", "--as", "later"]);
    commit(&place, "later", &[], &[named, named]);
    let ran = place.ok(&["contract", "suggest", "later", "--type", "act"]);
    assert!(ran.contains("3 transitions looked at"), "{ran}");
}

#[test]
fn a_run_whose_contract_was_extended_is_reduced_with_its_extension() {
    let place = extended();
    let reduced = place.ok(&["reduce", "r", "--pack", "p.json", "--as", "again"]);
    assert!(says(&reduced, "extension  e1 at tick 2, holds from tick 4 on"), "{reduced}");
    assert!(place.ok(&["verify", "again", "--replay"]).contains("5 of 5 states reproduced"));
    for run in ["r", "again"] {
        let checked = place.ok(&["contract", "check", run]);
        assert!(checked.contains("+ extension e1 from tick 4"), "{run}: {checked}");
    }
    assert_eq!(place.run(&["contract", "diff", "r", "again", "--exit-code"]).code, 0);
    let (_, json) = place.json(&["reduce", "r", "--pack", "p.json", "--as", "json"]);
    let one = json.get("extensions").unwrap().as_array().unwrap().get(0).unwrap().to_string();
    assert_eq!(one, r#"{"from":4,"id":"e1","tick":2}"#);
    // It is of whoever is reduced again, too, and of a bundle.
    place.ok(&["export", "again", "-o", "again.dnd"]);
    place.ok(&["reduce", "again.dnd", "--pack", "p.json", "--as", "thrice"]);
    assert!(place.ok(&["contract", "check", "thrice"]).contains("+ extension e1 from tick 4"));
}

#[test]
fn an_extension_governs_the_same_transitions_where_ticks_move_up() {
    let place = place();
    let too_big = r#"{"type":"observation.add","intent":{"x":11,"kyc":"no"}}"#;
    // The door finds the violation at tick 2, and the extension stands at tick 3.
    commit(&place, "r", &BEGIN, &[too_big]);
    place.ok(&["contract", "extend", "r", "--file", "e.yaml", "--effective-from", "5"]);
    commit(&place, "r", &[], &[ACT, ACT]);
    let onset = |run: &str| {
        let (_, json) = place.json(&["bisect", run, "--predicate", "unver"]);
        json.get("onset").unwrap().as_u64()
    };
    assert_eq!(onset("r"), Some(5));
    let reduced = place.ok(&["reduce", "r", "--pack", "p.json", "--as", "again"]);
    assert!(says(&reduced, "extension  e1 at tick 2, holds from tick 4 on"), "{reduced}");
    // Without the kernel's transitions, what was tick 5 is tick 4.
    assert_eq!(onset("again"), Some(4));
    assert_eq!(place.run(&["verify", "again", "--replay"]).code, 0);
}

#[test]
fn an_extension_that_the_new_pack_does_not_take_is_told_before_anything_is_written() {
    let place = extended();
    let runs = || place.ok(&["runs"]);
    let refused = |run: &str, pack: &str, code: &str, words: &[&str]| {
        let before = runs();
        let ran = place.run(&["reduce", run, "--pack", pack, "--as", "new"]);
        assert_eq!(ran.code, 5, "{pack}: {}{}", ran.stdout, ran.stderr);
        for words in [&[code, &*format!("tick 2 of {run}"), "nothing was written"], words].concat() {
            assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
        }
        assert_eq!(runs(), before);
        ran.stderr
    };
    write(&place, "v2.json", &PACK.replace("\"v1\"", "\"v2\""));
    let told = refused(
        "r",
        "v2.json",
        "E0414",
        &["it extends t.p/v1, and t.p/v2 is in force", "goes with the contract"],
    );
    // What it says to do instead can be done.
    for line in told.lines().filter_map(|line| line.strip_prefix("help: dendrer ")) {
        place.ok(&line.split(' ').collect::<Vec<_>>());
    }
    assert!(place.ok(&["log", "r-before-2.reduced"]).contains("observation.add"));
    let clash = PACK.replace(
        "{\"x\":{\"type\":\"number\"}}",
        "{\"x\":{\"type\":\"number\"},\"kyc\":{\"type\":\"bool\"}}",
    );
    write(&place, "clash.json", &clash);
    refused("r", "clash.json", "E0420", &["kyc is required of act already"]);
    write(&place, "twice.json", &PACK.replace("\"id\":\"big\"", "\"id\":\"unver\""));
    refused("r", "twice.json", "E0420", &["unver"]);
}

#[test]
fn an_approval_is_signed_for_one_run_and_no_other() {
    let place = signed();
    let ran = place.run(&["reduce", "s", "--pack", "s.json", "--as", "again"]);
    assert_eq!(ran.code, 5, "{}", ran.stdout);
    for words in
        ["E0423", "tick 2 of s", "another text was signed", "signed for one run", "nothing was written"]
    {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    assert_eq!(place.run(&["log", "again"]).code, 3);
    // A pack that names no keys records it as it is said, and says so.
    place.ok(&["reduce", "s", "--pack", "p.json", "--as", "again"]);
    let shown = place.ok(&["contract", "show", "again"]);
    assert!(shown.contains("approved by jd, not signed"), "{shown}");
    assert_eq!(place.run(&["verify", "again", "--replay"]).code, 0);
}

#[test]
fn the_claim_of_the_demo_is_reduced_with_its_extension() {
    let place = Place::with_demo();
    write(&place, "claims.yaml", include_str!("../../../../examples/packs/insurance-claims.yaml"));
    write(&place, "s0.json", r#"{"claim_id":"c-9","policy_limit":10000}"#);
    let reduced =
        place.ok(&["reduce", "claims-9", "--pack", "claims.yaml", "--as", "again", "--state", "s0.json"]);
    assert!(says(&reduced, "extension  e1 at tick 27, holds from tick 28 on"), "{reduced}");
    let ran = place.run(&["contract", "check", "again"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stdout.contains("(in force for ticks 0..39), + extension e1 from tick 28"), "{}", ran.stdout);
    assert!(ran.stdout.contains("FAIL  over_limit_payout         from tick 33"), "{}", ran.stdout);
    // Of the demo itself, before and at the tick.
    let show = |tick: &str| place.ok(&["contract", "show", tick]);
    assert!(show("claims-9@27").contains(
        "coming    e1   written at tick 27, holds from tick 28 on   approved by j.doe, not signed"
    ));
    assert!(show("claims-9").contains("never     unverified_payee   at approve_payout: violated when !has(state.payee_kyc_status) || state.payee_kyc_status != 'verified'   (after each transition, since extension e1)"));
}
