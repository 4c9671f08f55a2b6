//! Contracts that an institution extends, and what they forbid, as somebody meets them at the command line.

use crate::support::Place;

/// An extension that adds what `more` says to the contract of the claims.
fn extension(place: &Place, name: &str, more: &str) -> String {
    let text = format!("target_contract: insurance.claims/v1\n{more}\n");
    std::fs::write(place.path().join(name), text).expect("written");
    name.to_owned()
}

#[test]
fn a_contract_check_tells_the_contract_with_its_extension_and_where_it_was_broken() {
    let place = Place::with_demo();
    let ran = place.run(&["contract", "check", "claims-9"]);
    assert_eq!(ran.code, 1);
    assert_eq!(
        ran.stdout,
        "contract  insurance.claims/v1 (in force for ticks 0..40), + extension e1 from tick 28\n\
         required  OK    0 of 5 transitions lacked what they require   enforced when it was recorded, at stage 2\n  \
           FAIL  over_limit_payout         from tick 33   violated when has(state.policy_limit) && state.total_paid_to_date > state.policy_limit  (after)\n  \
           OK    unverified_payout\n  \
           OK    deductible_not_confirmed\n  \
           OK    unverified_payee\n\
         1 of 4 violated\n"
    );
    let ran = place.run(&["bisect", "claims-9", "--predicate", "unverified_payee"]);
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stderr.contains("part of the contract from tick 28 on"), "{}", ran.stderr);
    let ran = place.run(&["bisect", "claims-9", "--predicate", "unverified_payee", "--from", "0", "--lift"]);
    assert!(ran.stdout.contains("ONSET (exact)  tick 12  approve_payout"), "{}", ran.stdout);
    let ran = place.run(&["bisect", "claims-9@20", "--predicate", "unverified_payee"]);
    assert_eq!((ran.code, ran.stderr.contains("E0106")), (2, true), "{}", ran.stderr);
    assert!(place.ok(&["verify", "claims-9", "--replay"]).contains("40 of 40 states reproduced"));
}

#[test]
fn an_extension_in_the_past_or_of_nobody_is_refused_with_both_reasons() {
    let place = Place::with_demo();
    let file = extension(&place, "kyc2.yaml", "adds_hash_seeds: [deductible_confirmed_at]");
    let before = place.ok(&["log", "claims-9"]);
    let ran =
        place.run(&["contract", "extend", "claims-9", "--file", &file, "--effective-from", "tick", "20"]);
    assert_eq!(ran.code, 5);
    for said in [
        "error[E0421]: an extension cannot take effect in the past (claims-9 is at tick 40)",
        "E0422: an extension needs an approver",
        "nothing was changed",
        " --effective-from tick 41 --approved-by j.doe\n",
    ] {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
    let help = ran.stderr.lines().find_map(|line| line.strip_prefix("help: dendrer ")).expect("a command");
    place.ok(&[&help.split(' ').collect::<Vec<_>>()[..], &["-n"]].concat());
    assert_eq!(place.ok(&["log", "claims-9"]), before);
    let empty = extension(&place, "empty.yaml", "approved_by: j.doe\neffective_from_tick: 41");
    let ran = place.run(&["contract", "extend", "claims-9", "--file", &empty]);
    assert!(ran.stderr.contains("error[E0420]"), "{}", ran.stderr);
    assert!(ran.stderr.contains("help: dendrer contract show claims-9\n"), "{}", ran.stderr);
    // What is refused stays out of the record, and what is tried with -n, too.
    let good = [
        "contract",
        "extend",
        "claims-9",
        "--file",
        &file,
        "--effective-from",
        "tick",
        "41",
        "--approved-by",
        "j.doe",
    ];
    let tried = place.ok(&[&good[..], &["-n"]].concat());
    assert!(tried.contains("would extend  insurance.claims/v1 with e2, from tick 42 on"), "{tried}");
    assert_eq!(place.ok(&["log", "claims-9"]), before);
    let (_, done) = place.json(&good);
    assert_eq!(done.get("tick").unwrap().as_u64(), Some(41));
    assert!(place.ok(&["contract", "check", "claims-10"]).contains("in force for ticks 0..22)\n"));
    // Its own transition is not governed by it.
    let plan = br#"{"type":"plan.update","agent":"adjuster"}"#;
    assert_eq!(place.run_with(&["commit", "--run", "claims-9"], plan).code, 0);
    let ran = place.run(&["contract", "check", "claims-9"]);
    assert!(
        ran.stdout.contains(", + extension e1 from tick 28, + extension e2 from tick 42\n"),
        "{}",
        ran.stdout
    );
    assert!(place.ok(&["verify", "claims-9", "--replay"]).contains("42 of 42 states reproduced"));
}

/// Whoever is refused is told what to do, by a command that can be pasted where one exists.
#[test]
fn refusals_say_what_to_do() {
    let place = Place::with_demo();
    std::fs::write(place.path().join("feed.json"), r#"{"output":1}"#).expect("written");
    std::fs::write(place.path().join("delta.yaml"), "name: d\nversion: v1\nreducer: delta/1\n")
        .expect("written");
    let two = ["--from", "logistics-run-47", "--from", "logistics-planner-1@9", "--seed-only"];
    let risk = ["--artifact", "risk_score"];
    let ran = place.run(&[&["merge", "--as", "both"], &two[..], &risk].concat());
    assert_eq!(ran.code, 1, "the conflict is open: {}", ran.stdout);
    place.ok(&["conflicts", "resolve", "both", "risk_score", "--take", "a", "--reason", "newer"]);
    // What the pasted command is missing, as it stands there; nothing where it works as it is.
    let cases: &[(&[&str], &str, &str)] = &[
        (&[&["merge", "--as", "m"], &two[..], &["--artifact", "nothing"]].concat(), "E0104", ""),
        (&["fork", "logistics-run-47@20", "--tool-output", "21=feed.json", "--replay-rest"], "E0117", ""),
        (&["fork", "claims-9", "--from", "tip", "--contract", "delta.yaml"], "E0118", "FILE"),
        (&["rebase", "financial-agent-A", "--onto", "planning-run-12"], "E0118", "FILE"),
        (&["contract", "check", "claims-9", "--type", "aprove_payout"], "E0415", ""),
        (&["contract", "show", "claims-9", "--type", "aprove_payout"], "E0415", ""),
        (&["cherrypick", "financial-agent-A@0", "--into", "financial-agent-C"], "E0418", ""),
        (&["merge", "--as", "m", "--from", "financial-agent-A", "--from", "financial-agent-B"], "E0443", ""),
        (&["conflicts", "resolve", "both", "nothing", "--take", "a", "--reason", "r"], "E0445", ""),
        (&["conflicts", "resolve", "both", "risk_score", "--take", "b", "--reason", "r"], "E0446", ""),
        (&["commit", "--run", "three", "--stage", "3", "--goal", "g"], "E0604", ""),
        (&["contract", "check", "hostile-1"], "E0909", "FILE"),
        (&["contract", "show", "hostile-1"], "E0909", "FILE"),
        (&["pack", "show", "hostile-1"], "E0909", "FILE"),
    ];
    for (args, code, missing) in cases {
        let ran = place.run(args);
        assert!(ran.stderr.contains(&format!("error[{code}]")), "{args:?}: {}", ran.stderr);
        let help: Vec<&str> =
            ran.stderr.lines().filter_map(|line| line.strip_prefix("help: dendrer ")).collect();
        assert!(!help.is_empty(), "{args:?}: {}", ran.stderr);
        for line in help {
            match missing.is_empty() {
                true => drop(
                    place.ok(&line.split(' ').chain((*code == "E0443").then_some("-n")).collect::<Vec<_>>()),
                ),
                false => assert!(line.contains(missing), "{line}"),
            }
        }
    }
}

#[test]
fn from_its_tick_on_an_extension_is_enforced_and_imports_know_it() {
    let place = Place::with_demo();
    let file = extension(
        &place,
        "late.yaml",
        "types: [request_info]\nadds_required: {payout_amount: {type: string}}\neffective_from_tick: 42\napproved_by: j.doe",
    );
    place.ok(&["contract", "extend", "claims-9", "--file", &file]);
    let ask = r#"{"type":"request_info","agent":"adjuster","intent":{"field":"x"}}"#;
    let ran = place.run_with(&["commit", "--run", "claims-9"], ask.as_bytes());
    assert!(
        ran.stdout.contains("E0411")
            && ran.stdout.contains("payout_amount (it is a number, and must be string)"),
        "{}",
        ran.stdout
    );
    // An import between a run with an extension and one without is one between two contracts.
    place.ok(&["fork", "claims-9", "--from", "tick", "20", "--as", "before"]);
    let ran = place.run(&["cherrypick", "claims-9@33", "--into", "before"]);
    assert_eq!((ran.code, ran.stderr.contains("E0414")), (5, true), "{}", ran.stderr);
}

#[test]
fn where_the_pack_names_approvers_only_their_signature_counts() {
    let place = Place::new();
    place.ok(&["init"]);
    let made = place.ok(&["contract", "keygen", "j.doe", "j.doe.key"]);
    place.ok(&["contract", "keygen", "m.roe", "m.roe.key"]);
    let line = made.lines().last().expect("the line for the pack").to_owned();
    let pack = include_str!("../../../../examples/packs/insurance-claims.yaml");
    std::fs::write(place.path().join("pack.yaml"), format!("{pack}approvers:\n{line}\n")).expect("written");
    std::fs::write(place.path().join("bad.yaml"), format!("{pack}approvers:\n  j.doe: secret\n"))
        .expect("written");
    let checked = place.run(&["pack", "check", "bad.yaml"]);
    assert!(checked.stdout.contains("name+id+key, as `contract keygen` prints it"), "{}", checked.stdout);
    std::fs::write(place.path().join("s0.json"), r#"{"claim_id":"c","policy_limit":100}"#).expect("written");
    let plan = br#"{"type":"plan.update","agent":"a"}"#;
    let begun = ["commit", "--run", "r", "--pack", "pack.yaml", "--state", "s0.json", "--stage", "2"];
    assert_eq!(place.run_with(&begun, plan).code, 0);
    let file = extension(
        &place,
        "e.yaml",
        "adds_hash_seeds: [deductible_confirmed_at]\neffective_from_tick: 2\napproved_by: j.doe",
    );
    let extend = ["contract", "extend", "r", "--file", &file];
    let ran = place.run(&extend);
    assert_eq!((ran.code, ran.stderr.contains("E0423")), (5, true), "{}", ran.stderr);
    assert!(ran.stderr.contains("dendrer contract extension"), "the text to sign: {}", ran.stderr);
    let help = format!("help: dendrer contract extend r --file {file} --approver-key KEY\n");
    assert!(ran.stderr.contains(&help), "{}", ran.stderr);
    // What is refused for its tick is not for anybody to sign.
    let late = place.run(&[&extend[..], &["--effective-from", "tick", "1"]].concat());
    assert!(late.stderr.contains("error[E0421]") && !late.stderr.contains("to sign"), "{}", late.stderr);
    let help =
        format!("help: dendrer contract extend r --file {file} --effective-from tick 2 --approver-key KEY\n");
    assert!(late.stderr.contains(&help), "{}", late.stderr);
    let other = place.run(&[&extend[..], &["--approved-by", "a.poe"]].concat());
    let help =
        format!("help: dendrer contract extend r --file {file} --approved-by j.doe --approver-key KEY\n");
    assert!(other.stderr.contains("error[E0423]") && other.stderr.contains(&help), "{}", other.stderr);
    let ran = place.run(&[&extend[..], &["--approver-key", "m.roe.key"]].concat());
    assert_eq!((ran.code, ran.stderr.contains("E0423")), (5, true), "{}", ran.stderr);
    let done = place.ok(&[&extend[..], &["--approver-key", "j.doe.key"]].concat());
    assert!(done.contains("approved  by j.doe   signed with their key"), "{done}");
    assert!(place.ok(&["verify", "r", "--replay"]).contains("2 of 2 states reproduced"));
}

/// A pack and an extension of it that say as little as the tests below need.
const PACK: &str = r#"{
    "name":"t.p","version":"v1","constants":{"lim":10},
    "state":{"x":{"init":0},"y":{"init":0},"kyc":{"init":"'unknown'"}},
    "types":{"act":"acts"},
    "rules":[
        {"when_type":"observation.add","steps":[
            {"set":"x","value":"t.intent.x","if":"has(t.intent.x)"},
            {"set":"kyc","value":"t.intent.kyc","if":"has(t.intent.kyc)"}]},
        {"when_type":"act","steps":[{"add":"y","value":1}]}],
    "contracts":{"act":{"required_state":{"x":{"type":"number"}},"hash_seeds":["x"]}},
    "violations":[{"id":"big","condition":"state.x > lim","bisect_predicate":"monotone_lift"}]
}"#;
const SEES_KYC: &str = "target_contract: t.p/v1\ntypes: [act]\nadds_required: {kyc: {type: string}}\nadds_hash_seeds: [kyc]\n\
    effective_from_tick: 4\napproved_by: jd\n";
const FORBIDS: &str = "adds_violations:\n  - {id: unver, scope: [act], condition: state.kyc != 'verified', bisect_predicate: monotone_lift}\n";

fn small() -> Place {
    let place = Place::with_store();
    std::fs::write(place.path().join("p.json"), PACK).expect("written");
    std::fs::write(place.path().join("ext.yaml"), SEES_KYC).expect("written");
    std::fs::write(place.path().join("forbid.yaml"), format!("{SEES_KYC}{FORBIDS}")).expect("written");
    place
}

/// Commits an observation with these words, then as many acts as are asked for.
fn acts(place: &Place, run: &str, begin: bool, words: &str, count: usize) {
    let mut lines = if words.is_empty() {
        String::new()
    } else {
        format!("{{\"type\":\"observation.add\",\"intent\":{{{words}}}}}\n")
    };
    lines += &"{\"type\":\"act\"}\n".repeat(count);
    let mut args = vec!["commit", "--run", run];
    args.extend(begin.then_some(["--pack", "p.json", "--stage", "2"]).into_iter().flatten());
    let ran = place.run_with(&args, lines.as_bytes());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn an_extension_goes_on_in_a_fork_with_another_constant_and_ends_under_another_contract() {
    let place = small();
    acts(&place, "r", true, "\"x\":1", 0);
    place.ok(&["contract", "extend", "r", "--file", "forbid.yaml"]);
    let forked = place.ok(&["fork", "--run", "r", "--from", "tick", "2", "--as", "f", "--policy", "lim=20"]);
    assert!(forked.contains("extension  e1 of t.p/v1 goes on"), "{forked}");
    acts(&place, "f", false, "", 2);
    let checked = place.run(&["contract", "check", "f"]);
    assert!(checked.stdout.contains("FAIL  unver  from tick 4"), "{}", checked.stdout);
    assert_eq!(place.run(&["verify", "f", "--replay"]).code, 0);
    let other = PACK.replace("\"t.p\"", "\"t.q\"");
    std::fs::write(place.path().join("q.json"), other).expect("written");
    let forked =
        place.ok(&["fork", "--run", "r", "--from", "tick", "2", "--as", "g", "--contract", "q.json"]);
    assert!(forked.contains("extension  e1 of t.p/v1 ends"), "{forked}");
    // A pack of the same name that the extension does not fit is not taken.
    let clash = PACK.replace("\"id\":\"big\"", "\"id\":\"unver\"");
    std::fs::write(place.path().join("c.json"), clash).expect("written");
    let ran = place.run(&["fork", "--run", "r", "--from", "tick", "2", "--as", "h", "--contract", "c.json"]);
    assert_ne!(ran.code, 0, "{}", ran.stdout);
    assert!(!place.ok(&["runs"]).contains(" h "), "nothing was written");
}

#[test]
fn what_an_extension_forbids_has_its_onset_where_the_record_has_it() {
    let place = small();
    acts(&place, "r", true, "\"x\":1", 0);
    place.ok(&["contract", "extend", "r", "--file", "forbid.yaml"]);
    acts(&place, "r", false, "", 2);
    for scan in [&[][..], &["--scan"]] {
        let ran =
            place.run(&[&["bisect", "r", "--predicate", "unver", "--expect-onset", "4"], scan].concat());
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("ONSET (exact)  tick 4  act"), "{}", ran.stdout);
    }
    let listed = place.ok(&["predicate", "list", "--run", "r"]);
    assert!(listed.contains("t.p/unver"), "{listed}");
    // Whoever asks from the middle is told how to ask for all of it.
    let ran = place.run(&["bisect", "r", "--predicate", "unver", "--from", "tick", "4"]);
    assert!(ran.stderr.contains("dendrer bisect r --predicate unver --from 0"), "{}", ran.stderr);
}

#[test]
fn an_import_is_judged_by_the_contract_of_the_tick_at_which_it_lands() {
    let place = small();
    acts(&place, "free", true, "\"x\":1", 1);
    acts(&place, "bound", true, "\"x\":1,\"kyc\":\"BAD\"", 0);
    place.ok(&["contract", "extend", "bound", "--file", "ext.yaml"]);
    // Its marker would stand at tick 3, and the act itself at tick 4.
    let ran = place.run(&["cherrypick", "free@2", "--into", "bound"]);
    assert_eq!((ran.code, ran.stderr.contains("E0414")), (5, true), "{}{}", ran.stdout, ran.stderr);
    for run in ["w1", "w2"] {
        acts(&place, run, true, "\"x\":1,\"kyc\":\"K\"", 0);
        place.ok(&["contract", "extend", run, "--file", "ext.yaml"]);
    }
    acts(&place, "w1", false, "\"x\":1", 1);
    place.ok(&["cherrypick", "w1@4", "--into", "w2"]);
}

#[test]
fn what_is_carried_on_is_held_against_the_contract_in_force_in_the_fork() {
    let place = small();
    acts(&place, "z", true, "\"x\":1,\"kyc\":\"K\"", 0);
    place.ok(&["contract", "extend", "z", "--file", "ext.yaml", "--effective-from", "5"]);
    acts(&place, "z", false, "\"x\":1", 2);
    let set = "kyc=\"Q\"";
    let ran =
        place.ok(&["fork", "--run", "z", "--from", "tick", "2", "--as", "zf", "--set", set, "--replay-rest"]);
    // The act of tick 4 was decided without the extension and would stand at tick 5, under it.
    assert!(ran.contains("stopped    before parent tick 4: it was decided on kyc"), "{ran}");
}

#[test]
fn an_extension_that_would_change_nothing_or_weaken_stage_3_is_refused() {
    let place = small();
    acts(&place, "r", true, "\"x\":1", 0);
    let stricter = SEES_KYC.replace("{kyc: {type: string}}", "{kyc: {type: string}, x: {type: integer}}");
    std::fs::write(place.path().join("x.yaml"), stricter).expect("written");
    let ran = place.run(&["contract", "extend", "r", "--file", "x.yaml"]);
    assert_eq!((ran.code, ran.stderr.contains("x is required of act already")), (5, true), "{}", ran.stderr);
    let full = place.run_with(
        &["commit", "--run", "full", "--pack", "p.json", "--stage", "3"],
        b"{\"type\":\"observation.add\",\"intent\":{\"x\":1}}\n",
    );
    assert_eq!(full.code, 0, "{}", full.stderr);
    let may_recover = "target_contract: t.p/v1\nadds_violations: [{id: rec, condition: state.y > 100}]\n\
        effective_from_tick: 20\napproved_by: jd\n";
    std::fs::write(place.path().join("rec.yaml"), may_recover).expect("written");
    let ran = place.run(&["contract", "extend", "full", "--file", "rec.yaml"]);
    assert_eq!((ran.code, ran.stderr.contains("rec cannot recover")), (5, true), "{}", ran.stderr);
}

#[test]
fn at_stage_3_a_call_names_its_tool_and_nobody_goes_by_the_name_of_the_kernel() {
    let place = small();
    let pack = PACK
        .replace("\"types\":", "\"tools\":{\"quote\":{\"effect\":\"read\"}},\"types\":")
        .replace("\"when_type\":\"act\"", "\"when_type\":[\"act\",\"action.request\"]");
    std::fs::write(place.path().join("s.json"), pack).expect("written");
    let call = |action: &str| format!("{{\"type\":\"action.request\",\"action\":{action}}}\n");
    let lines = [
        call(r#"{"tool":"quote"}"#),
        call(r#"{"calls":[{"tool":"quote"},{"tool":"quote"}]}"#),
        call(r#"{"calls":[{"name":"evil"}]}"#),
        call(r#"{"Tool":"evil","params":{}}"#),
        call(r#"{"calls":[["evil"]]}"#),
        call(r#"{"calls":[]}"#),
        "{\"type\":\"action.request\"}\n".to_owned(),
    ];
    let ran = place
        .run_with(&["commit", "--run", "s", "--pack", "s.json", "--stage", "3"], lines.concat().as_bytes());
    assert_eq!(ran.stdout.matches("E0426").count(), 5, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(ran.stdout.matches("tick ").count(), 2, "{}", ran.stdout);
    let forged = "{\"type\":\"act\",\"agent\":\"institution\"}\n{\"type\":\"act\",\"agent\":\"kernel\"}\n";
    let ran = place.run_with(&["commit", "--run", "n", "--pack", "p.json"], forged.as_bytes());
    assert_eq!(ran.stdout.matches("E0408").count(), 2, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_rebase_ends_where_an_extension_governs_there_and_not_here() {
    let place = small();
    acts(&place, "r", true, "\"x\":1", 0);
    place.ok(&["contract", "extend", "r", "--file", "forbid.yaml"]);
    acts(&place, "r", false, "\"x\":2", 1);
    acts(&place, "n", true, "\"x\":1", 0);
    let ran = place.run(&["rebase", "--run", "r", "--onto", "n", "-n"]);
    assert!(ran.stdout.contains("stays: the institution wrote it for r"), "{}", ran.stdout);
    assert!(ran.stdout.contains("the extension e1 governs it there and not here"), "{}", ran.stdout);
}

#[test]
fn a_fork_with_another_constant_is_asked_from_where_it_came_into_force() {
    let place = small();
    acts(&place, "k", true, "\"x\":5", 1);
    place.ok(&["fork", "--run", "k", "--from", "tick", "2", "--as", "kf", "--policy", "lim=3"]);
    acts(&place, "kf", false, "", 1);
    let checked = place.run(&["contract", "check", "kf"]).stdout;
    assert!(checked.contains("FAIL  big  from tick 3"), "{checked}");
    // The fork began with a state that violates what it was forked under: no transition of it did.
    let ran = place.run(&["bisect", "kf", "--predicate", "big"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("IN VIOLATION already at tick 3"), "{}", ran.stdout);
    assert!(ran.stderr.contains("part of the contract from tick 3 on"), "{}", ran.stderr);
    // What does not look at that constant means the same before the fork.
    let two = PACK.replace(
        "\"violations\":[",
        "\"violations\":[{\"id\":\"many\",\"condition\":\"state.y >= 1\",\"bisect_predicate\":\"monotone_lift\"},",
    );
    std::fs::write(place.path().join("p.json"), two).expect("written");
    acts(&place, "m", true, "\"x\":5", 1);
    place.ok(&["fork", "--run", "m", "--from", "tick", "3", "--as", "mf", "--policy", "lim=3"]);
    let ran = place.run(&["bisect", "mf", "--predicate", "many", "--expect-onset", "2"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn lint_finds_a_violation_that_can_never_be_and_rules_that_are_never_asked() {
    let place = small();
    for dead in ["1 > 2", "state.x > 5 && state.x < 3", "state.x > 5 && false"] {
        std::fs::write(place.path().join("d.json"), PACK.replace("state.x > lim", dead)).expect("written");
        let ran = place.run(&["contract", "lint", "d.json"]);
        assert!(ran.stdout.contains("big can never be violated"), "{dead}: {}", ran.stdout);
    }
    let rules =
        "\"rules\":[{\"when_type\":\"policy.contract_extension\",\"steps\":[{\"add\":\"x\",\"value\":1}]},";
    std::fs::write(place.path().join("e.json"), PACK.replace("\"rules\":[", rules)).expect("written");
    let ran = place.run(&["contract", "lint", "e.json"]);
    assert!(ran.stdout.contains("no rule is asked then"), "{}", ran.stdout);
    let shown = place.ok(&["contract", "show", "e.json"]);
    assert!(!shown.contains("type      policy.contract_extension"), "{shown}");
    let asked = PACK.replace("\"violations\":[", "\"violations\":[{\"id\":\"v\",\"condition\":\"state.y > 9\",\"bisect_predicate\":\"monotone_lift\"},");
    std::fs::write(place.path().join("v.json"), asked).expect("written");
    let only = PACK.replace("\"violations\":[", "\"predicates\":{\"v\":{\"condition\":\"state.y > 9\",\"bisect_predicate\":\"monotone_lift\"}},\"violations\":[");
    std::fs::write(place.path().join("only.json"), only).expect("written");
    let ran = place.run(&["contract", "diff", "v.json", "only.json", "--exit-code"]);
    assert_eq!(
        (ran.code, ran.stdout.contains("v is only asked about")),
        (1, true),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}

#[test]
fn what_was_mistyped_is_a_matter_of_usage_and_the_next_step_works() {
    let place = small();
    for name in ["a b", "", "a+b"] {
        let ran = place.run(&["contract", "keygen", name, "k.key"]);
        assert_eq!((ran.code, ran.stderr.contains("E0106")), (2, true), "{name}: {}", ran.stderr);
    }
    let ran = place.run(&["contract", "keygen", "jd", "no/such/folder/k"]);
    assert!(ran.code != 0 && !place.path().join("no").exists(), "{}", ran.stderr);
    let ran = place.run(&["label", "nobody"]);
    assert_eq!((ran.code, ran.stderr.contains("--remove")), (2, false), "{}", ran.stderr);
    acts(&place, "r", true, "\"x\":1", 0);
    let ran = place.run(&["bisect", "r", "--predicate", "has(state.policy.violations)"]);
    assert!(
        ran.stderr.contains("has(state.policy) && has(state.policy.violations) && ..."),
        "{}",
        ran.stderr
    );
    // One violation, and one that cannot be judged: the worse answer counts.
    let unjudged = PACK.replace(
        "\"violations\":[",
        "\"violations\":[{\"id\":\"odd\",\"condition\":\"state.kyc > 3\",\"bisect_predicate\":\"monotone_lift\"},",
    );
    std::fs::write(place.path().join("p.json"), unjudged).expect("written");
    acts(&place, "u", true, "\"x\":11", 0);
    let ran = place.run(&["contract", "check", "u"]);
    assert_eq!(ran.code, 6, "{}", ran.stdout);
}
