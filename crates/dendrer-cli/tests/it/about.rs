//! What an answer is about: the names it was asked with, the run, the place it was read from, and what decides it.

use crate::support::{Place, Ran, demo};

/// Two writes of one place and one of none, in a run without a pack.
const LINES: &str = r#"{"type":"memory.write","agent":"a","delta":[{"set":"/quality_score","value":0.9}]}
{"type":"memory.write","agent":"a","delta":[{"set":"/quality_score","value":0.5}]}
{"type":"plan.update","agent":"a","intent":{"description":"go on"}}
"#;

fn plain() -> Place {
    let place = Place::with_store();
    let ran = place.run_with(&["commit", "--run", "E"], LINES.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    place
}

/// A place with a run of the lines under a pack.
fn under(pack: &str, stage: &str, lines: &str) -> Place {
    let place = Place::with_store();
    std::fs::write(place.path().join("p.yaml"), pack).unwrap();
    let args = ["commit", "--run", "r", "--pack", "p.yaml", "--stage", stage];
    let ran = place.run_with(&args, lines.as_bytes());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    place
}

fn refuses(ran: &Ran, code: &str, exit: i32, near: &str) {
    assert_eq!(ran.code, exit, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains(&format!("error[{code}]")), "{}", ran.stderr);
    assert!(ran.stderr.contains(near), "{near}: {}", ran.stderr);
    assert_eq!(ran.stdout, "", "an error is no answer");
}

#[test]
fn an_undeclared_type_agent_or_anomaly_is_an_error_with_a_suggestion() {
    let demo = demo();
    for (args, near) in [
        (&["bisect", "claims-9", "--anomaly", "forged_typ"][..], "did you mean forged_type?"),
        (
            &["bisect", "claims-9", "--anomaly", "delta_failed"],
            "there are acted_after_deny, arguments_not_json, ",
        ),
        (&["bisect", "claims-9", "--policy-flip", "actoin.request"], "did you mean action.request?"),
        (&["log", "claims-9", "--type", "observation"], "did you mean observation.add?"),
        (&["log", "claims-9", "--type", "plan.update,aprove_payout"], "did you mean approve_payout?"),
        (&["log", "claims-9", "--agent", "adjustr"], "did you mean adjuster?"),
        (&["backtrack", "claims-9", "policy_limit", "--agent", "adjustr"], "did you mean adjuster?"),
        (&["fork", "claims-9@2", "--restore", "adjustr", "--dry-run"], "did you mean adjuster?"),
    ] {
        refuses(&demo.run(args), "E0121", 3, near);
    }
    // A declared name that is not met is an answer.
    assert_eq!(demo.run(&["bisect", "claims-9", "--anomaly", "forged_type"]).code, 1);
    let none = demo.run(&["log", "claims-9", "--type", "goal.complete"]);
    assert!(none.code == 0 && none.stdout.starts_with("0 of 40 transitions"), "{}", none.stdout);
}

#[test]
fn an_undeclared_place_is_an_error_with_a_suggestion() {
    let place = plain();
    let near = "did you mean quality_score?";
    for args in [
        &["log", "E", "--path", "quality_scor"][..],
        &["state", "E", "--path", "quality_scor"],
        &["show", "E@2", "--path", "quality_scor"],
        &["why", "E@2", "quality_scor"],
        &["backtrack", "E", "quality_scor"],
        &["replay", "E", "--print", "state", "--path", "quality_scor"],
        &["diff", "E@2", "E", "--path", "quality_scor"],
        &["diff", "E@2", "E", "--ignore", "quality_scor"],
        &["runs", "--where", "state.quality_scor > 0.1"],
        &["runs", "--where", "has(state.quality_scor)"],
    ] {
        if args[0] == "runs" && args[2].starts_with("state") {
            continue;
        }
        let ran = place.run(args);
        refuses(&ran, "E0104", 3, near);
    }
    refuses(
        &place.run(&["diff", "E@2", "E", "--path", "intent.descripton"]),
        "E0104",
        3,
        "intent.description?",
    );
    // The kernel declares these, so nothing there is an answer.
    for path in ["goals", "memory.x", "counters.tokens_used"] {
        assert_eq!(place.run(&["log", "E", "--path", path]).code, 0, "{path}");
    }
}

#[test]
fn an_undeclared_predicate_is_an_error_with_a_suggestion() {
    let demo = demo();
    for (name, near) in [
        ("policy_compliant", "did you mean kernel.policy_compliant?"),
        ("kernel.anomaly_fre", "did you mean kernel.anomaly_free?"),
        ("nosuch", "there are kernel.anomaly_free, kernel.policy_compliant"),
    ] {
        refuses(&demo.run(&["bisect", "claims-9", "--predicate", name]), "E0511", 3, near);
        refuses(&demo.run(&["predicate", "test", name, "claims-9"]), "E0511", 3, near);
    }
}

#[test]
fn a_signal_that_leaves_no_run_is_named_where_it_is_found() {
    let demo = demo();
    for (kind, verb) in [
        ("sequence_gap", "help: dendrer verify claims-9"),
        ("reducer_divergence", "help: dendrer replay --detect claims-9"),
    ] {
        refuses(&demo.run(&["bisect", "claims-9", "--anomaly", kind]), "E0121", 3, verb);
    }
}

#[test]
fn a_bare_name_is_a_run_and_answers_name_where_it_was_read() {
    let place = plain();
    place.ok(&["fork", "E@1", "--set", "quality_score=0.1", "--replay-rest", "--as", "EF"]);
    place.ok(&["export", "EF", "-o", "f.dnd"]);
    // A bundle of another run, named like the run.
    std::fs::copy(place.path().join("f.dnd"), place.path().join("E")).unwrap();
    for (args, place_read) in [
        (&["bisect", "E", "--holds", "state.quality_score > 0.2", "--from", "1"][..], ".dendrer"),
        (&["diff", "E", "E"], ".dendrer"),
        (&["log", "E"], ".dendrer"),
        (&["show", "E@2"], ".dendrer"),
        (&["state", "E"], ".dendrer"),
        (&["why", "E@2", "quality_score"], ".dendrer"),
        (&["backtrack", "E", "quality_score"], ".dendrer"),
        (&["predicate", "test", "state.quality_score < 0.2", "E"], ".dendrer"),
        (&["log", "./E"], "./E"),
        (&["state", "f.dnd"], "f.dnd"),
    ] {
        let (_, answer) = place.json(args);
        let read = answer.get("read_from").map(ToString::to_string);
        assert_eq!(read, Some(format!("[\"{place_read}\"]")), "{args:?}");
        let run = answer.get("run").or(answer.get("a")).and_then(|run| run.as_str());
        assert_eq!(run, Some(if place_read == ".dendrer" { "E" } else { "EF" }), "{args:?}");
    }
    let said = place.run(&["bisect", "f.dnd", "--predicate", "kernel.anomaly_free"]).stdout;
    assert!(said.contains("\nSEARCH  kernel.anomaly_free v1, in ticks 0..4 of EF, f.dnd\n"), "{said}");
    let said = place.ok(&["diff", "E", "f.dnd"]);
    assert!(said.contains("\na E, b EF, read from .dendrer and f.dnd\n"), "{said}");
    assert!(place.ok(&["log", "f.dnd"]).ends_with("; EF, read from f.dnd\n"));
}

#[test]
fn a_pack_file_that_is_named_like_a_run_is_not_read() {
    let place = under("name: d\nversion: v1\nreducer: delta/1\n", "1", LINES);
    std::fs::write(place.path().join("r"), "name: other\nversion: v1\nreducer: delta/1\n").unwrap();
    assert!(place.ok(&["pack", "show", "r"]).contains("d v1"), "the pack of the run");
    assert!(place.ok(&["pack", "show", "./r"]).contains("other v1"), "the pack in the file");
}

#[test]
fn a_marker_that_changes_the_state_is_a_difference() {
    let place = plain();
    place.ok(&["fork", "E@1", "--set", "quality_score=0.1", "--replay-rest", "--as", "EF"]);
    place.ok(&["fork", "E@1", "--set", "other=0.1", "--replay-rest", "--as", "EF2"]);
    place.ok(&["fork", "E@1", "--replay-rest", "--as", "same"]);
    // The states are equal in the end, and tick 2 of EF is in violation.
    let said = place.ok(&["diff", "E", "EF"]);
    assert!(
        said.starts_with("they part at tick -|2; 0 of 3 pairs differ, 1 only in b\nb is a fork of a at tick 1; its marker, tick 2: set quality_score 0.1\n"),
        "{said}"
    );
    assert!(said.contains("found structural 1\n"), "{said}");
    assert_eq!(place.run(&["diff", "E", "EF", "--exit-code"]).code, 1);
    let content = place.run(&["diff", "E", "EF", "--align", "content", "--exit-code"]);
    assert_eq!(content.code, 1, "{}", content.stdout);
    let two = place.ok(&["diff", "EF", "EF2"]);
    assert!(two.contains("\n2  semantic  run.fork\n") && two.contains(" state.other "), "{two}");
    // What is left out is no difference; neither is a marker that changes nothing.
    assert_eq!(place.run(&["diff", "E", "EF2", "--ignore", "other", "--exit-code"]).code, 0);
    assert_eq!(place.run(&["diff", "E", "same", "--exit-code"]).code, 0);
    for (run, other, onset) in [("E", "EF", 2), ("E", "EF2", 2), ("EF2", "E", 2)] {
        let (code, answer) = place.json(&["bisect", run, "--divergence", other]);
        assert_eq!((code, answer.get("onset").unwrap().as_u64()), (0, Some(onset)), "{run} {other}");
    }
    assert_eq!(place.run(&["bisect", "E", "--divergence", "same"]).code, 1);
}

const DECIMALS: &str = r#"name: acme.d
version: v1
reducer: delta/1
state:
  x: {init: "0.00049", decimals: 3}
predicates:
  low: {holds: "state.x <= 0.123"}
"#;

#[test]
fn decimals_act_under_delta_1() {
    let write = |value: &str| {
        format!(
            r#"{{"type":"memory.write","agent":"a","delta":[{{"set":"/x","value":{value}}}]}}
{{"type":"memory.write","agent":"a","delta":[{{"set":"/x","value":0.12349}}]}}
"#
        )
    };
    let place = under(DECIMALS, "1", &write("0.12300001"));
    place.run_with(&["commit", "--run", "q", "--pack", "p.yaml"], write("0.12299999").as_bytes());
    let root = |run: &str| place.json(&["state", run]).1.get("state_root").unwrap().to_string();
    assert_eq!(root("r"), root("q"));
    assert!(place.ok(&["diff", "r", "q"]).starts_with("no difference; "));
    for run in ["r", "q"] {
        assert_eq!(place.run(&["bisect", run, "--predicate", "low"]).code, 1, "one verdict");
    }
    assert_eq!(place.json(&["state", "r@0"]).1.get("value").unwrap().to_string(), r#"{"x":0}"#);
    // The change that was proposed is on record, and replay takes it.
    let (_, shown) = place.json(&["show", "r@2"]);
    let content = shown.get("content").unwrap();
    assert_eq!(content.get("delta").unwrap().to_string(), r#"[{"set":"/x","value":0.123}]"#);
    assert_eq!(content.get("proposed").unwrap().to_string(), r#"[{"set":"/x","value":0.12349}]"#);
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("4 of 4 states reproduced"));
    place.ok(&["reduce", "r", "--pack", "p.yaml", "--as", "again"]);
    assert_eq!(root("again"), root("r"));
    // What is withheld is not told by the change that was proposed.
    let less = place.naming("--although", &["export", "r", "--withhold", "/delta", "-o", "less.dnd"]);
    assert_eq!(less.code, 0, "{}", less.stderr);
    let less = std::fs::read_to_string(place.path().join("less.dnd")).unwrap();
    assert!(!less.contains("0.00049}") && !less.contains("0.12300001"), "{less}");
    // Something else than a number is no value of the field.
    let text = br#"{"type":"memory.write","agent":"a","delta":[{"set":"/x","value":"t"}]}"#;
    let ran = place.run_with(&["commit", "--run", "zero", "--pack", "p.yaml", "--stage", "0"], text);
    assert!(ran.stdout.contains("UNKNOWN from here on: x (a delta failed at tick 1)"), "{}", ran.stdout);
    assert_eq!(place.run_with(&["commit", "--run", "r"], text).code, 5);
    let ran = place.run_with(&["commit", "--run", "two", "--pack", "p.yaml", "--stage", "2"], text);
    assert_eq!(ran.code, 5, "{}", ran.stdout);
}

#[test]
fn a_note_of_an_anomaly_ends_anomaly_free() {
    let place = Place::with_store();
    let lines = r#"{"type":"memory.write","agent":"a","delta":[{"set":"/n","value":1}]}
{"type":"memory.write","agent":"a","delta":[{"add":"/m","value":1}]}
"#;
    place.run_with(&["commit", "--run", "r", "--stage", "0"], lines.as_bytes());
    let (code, answer) = place.json(&["bisect", "r", "--predicate", "kernel.anomaly_free"]);
    assert_eq!((code, answer.get("onset").unwrap().as_u64()), (0, Some(2)));
}

#[test]
fn each_hard_predicate_of_a_pack_wins_over_a_score() {
    let pack = r#"name: acme.q
version: v1
reducer: delta/1
state:
  q: {init: "1.0"}
  n: {init: "0"}
predicates:
  broke: {holds: "state.n < 5"}
progress_contracts:
  - {id: acme.quality, version: v1, score: state.q, violation: "state.q < 0.1"}
"#;
    let write = |q: f64, n: u64| {
        format!(
            r#"{{"type":"memory.write","agent":"a","delta":[{{"set":"/q","value":{q}}},{{"set":"/n","value":{n}}}]}}"#
        )
    };
    let lines = [write(0.9, 1), write(0.8, 9), write(0.7, 9)].join("\n");
    let place = under(pack, "1", &lines);
    let ask = ["bisect", "r", "--regression", "acme.quality"];
    let ran = place.run(&ask);
    assert!(ran.stdout.contains("HARD       broke v1: first violated at tick 2 (exact)"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("DISAGREE   broke takes precedence: the onset is tick 2 (exact)"),
        "{}",
        ran.stdout
    );
    let (code, answer) = place.json(&ask);
    assert_eq!((ran.code, code), (0, 0));
    let member = |name: &str| answer.get(name).unwrap().to_string();
    assert_eq!(
        (member("onset"), member("certainty"), member("outcome")),
        ("2".into(), "\"exact\"".into(), "\"onset\"".into())
    );
    // A score that cannot be said leaves the answer unknown, in text as in JSON.
    let text = r#"{"type":"memory.write","agent":"a","delta":[{"set":"/q","value":"high"}]}"#;
    place.run_with(&["commit", "--run", "s", "--pack", "p.yaml"], text.as_bytes());
    let ask = ["bisect", "s", "--regression", "acme.quality"];
    assert_eq!((place.run(&ask).code, place.json(&ask).0), (6, 6));
}

#[test]
fn a_predicate_that_was_never_violated_is_not_tested() {
    let place = plain();
    let register = |more: &[&str]| {
        let args = [
            &[
                "predicate",
                "register",
                "q.low",
                "--holds",
                "!has(state.quality_score) || state.quality_score > 0.1",
            ],
            more,
        ];
        place.run(&args.concat())
    };
    let ran = register(&["--verify-monotone", "--sample-trace", "E"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stdout.contains("never violated: whether it recovers was not tested there"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("monotone: not tested"), "{}", ran.stdout);
}

#[test]
fn a_rejection_stays_on_record_for_its_digest() {
    let place = plain();
    let lines = [0.9, 0.2, 0.9].map(|q| {
        format!(r#"{{"type":"memory.write","agent":"a","delta":[{{"set":"/quality_score","value":{q}}}]}}"#)
    });
    place.run_with(&["commit", "--run", "osc"], lines.join("\n").as_bytes());
    let holds = "!has(state.quality_score) || state.quality_score > 0.3";
    let register = |name: &str, more: &[&str]| {
        place.run(&[&["predicate", "register", name, "--holds", holds], more].concat())
    };
    let rejected = register("q.deg", &["--verify-monotone", "--sample-trace", "osc"]);
    assert_eq!(rejected.code, 1, "{}", rejected.stdout);
    assert!(rejected.stdout.contains("REJECTED for bisect"), "{}", rejected.stdout);
    // Registered without a test, under this name and another, it is known to recover.
    for name in ["q.deg", "q.other"] {
        let again = register(name, &[]);
        assert_eq!(again.code, 0, "{}{}", again.stdout, again.stderr);
        assert!(again.stdout.contains("monotone: recovers on osc"), "{}", again.stdout);
    }
    let shown = place.ok(&["predicate", "show", "q.deg"]);
    assert!(shown.contains("recovers on osc"), "{shown}");
}

#[test]
fn cards_of_the_chain_carry_what_they_changed() {
    let ran = demo().run(&["bisect", "planning-run-12", "--predicate", "acme.budget_compliance_v1"]);
    let card = "  tick 2  observation.add  \"the plan asks for EUR 25800, the goal allows 20000\"\n      <- 1 caused_by (recorded)\n      + beliefs.over_by  5800\n";
    assert!(ran.stdout.contains(card), "{}", ran.stdout);
    let (_, answer) = demo().json(&["bisect", "planning-run-12", "--predicate", "acme.budget_compliance_v1"]);
    let items = answer.get("chain").unwrap().get("items").unwrap().as_array().unwrap().clone();
    let changes = items.get(1).unwrap().get("changes").unwrap().to_string();
    assert_eq!(changes, r#"[{"after":5800,"path":"/beliefs/over_by"}]"#);
}

const QUALITY: &str = r#"name: acme.q
version: v1
reducer: delta/1
state:
  q: {init: "1.0"}
progress_contracts:
  - {id: acme.quality, version: v1, score: state.q, violation: "state.q < 0.5", reason: "'low'"}
"#;

fn qualities() -> String {
    let line =
        |q: &f64| format!(r#"{{"type":"memory.write","agent":"a","delta":[{{"set":"/q","value":{q}}}]}}"#);
    [0.9, 0.8, 0.4, 0.3].iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_violation_of_a_progress_contract_is_noted_at_the_door() {
    let place = under(QUALITY, "2", &qualities());
    let log = place.ok(&["log", "r"]);
    assert!(log.contains("    4  kernel  predicate.violation"), "{log}");
    assert_eq!(log.matches("predicate.violation").count(), 1, "each once: {log}");
    let (_, answer) = place.json(&["bisect", "r", "--predicate", "kernel.policy_compliant"]);
    assert_eq!(answer.get("onset").unwrap().as_u64(), Some(3));
    assert!(place.ok(&["verify", "r", "--replay"]).contains("5 of 5 states reproduced"));
}

#[test]
fn probes_show_what_a_progress_contract_says() {
    let place = under(QUALITY, "1", &qualities());
    let said = place.ok(&["bisect", "r", "--predicate", "acme.quality", "--no-chain"]);
    for line in [
        "  1/2  tick 2  compliant  OK      left 3..4    ok, score 0.800\n",
        "  2/2  tick 3  violation  FAIL    left 3    violation: \"low\"\n",
    ] {
        assert!(said.contains(line), "{line}{said}");
    }
}

const PAY: &str = r#"name: acme.pay
version: v1
state:
  kyc: {init: "null"}
  paid: {init: "0"}
types: {pay: a payment, check: a check}
rules:
  - when_type: check
    steps: [{set: kyc, value: "'yes'"}]
  - when_type: pay
    steps: [{add: paid, value: t.intent.n}]
contracts:
  pay:
    required_state: {kyc: {type: string}}
violations:
  - {id: over, condition: "state.paid > 5", bisect_predicate: monotone_lift}
"#;

const PAYMENTS: &str = r#"{"type":"pay","agent":"a","intent":{"n":1}}
{"type":"check","agent":"a"}
{"type":"pay","agent":"a","intent":{"n":9}}
"#;

#[test]
fn a_recorded_run_is_raised_to_a_higher_stage() {
    let place = under(PAY, "0", PAYMENTS);
    let said = place.ok(&["reduce", "r", "--pack", "p.yaml", "--stage", "2", "--as", "up"]);
    for line in [
        "stage      2: contracts and violations are enforced from tick 4 on\n",
        "E0411      tick 1: acme.pay/v1 requires for pay what the state does not have: kyc (it is null)\n",
        "would have refused 1 transition; they happened, and are kept\n",
    ] {
        assert!(said.contains(line), "{line}{said}");
    }
    let (_, answer) = place.json(&["reduce", "r", "--pack", "p.yaml", "--stage", "2", "--as", "up2"]);
    assert_eq!(answer.get("enforced_from").unwrap().as_u64(), Some(4));
    // What happened is the same, tick by tick; what comes next goes through the door of stage 2.
    assert!(place.ok(&["verify", "up", "--replay"]).contains("3 of 3 states reproduced"));
    let more = r#"{"type":"pay","agent":"a","intent":{"n":1}}
{"type":"pay","agent":"a","intent":{"m":1}}
"#;
    let ran = place.run_with(&["commit", "--run", "up"], more.as_bytes());
    assert_eq!(ran.code, 5, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("still violated: over (since tick 3)"), "{}", ran.stdout);
    assert!(ran.stdout.contains("refused  "), "{}", ran.stdout);
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
    // A fork from before that tick did not happen in another run, so it is enforced at once.
    let fork = place.run(&["fork", "up@0", "--replay-rest", "--as", "f"]);
    assert!(
        fork.stdout.contains("stopped    before parent tick 1: it is refused here (E0411)"),
        "{}",
        fork.stdout
    );
    assert!(place.ok(&["verify", "f", "--replay"]).contains("\nINTACT"));
}

#[test]
fn an_answer_about_a_run_of_stage_0_says_what_it_does_not_claim() {
    let place = under(PAY, "0", PAYMENTS);
    let caveat = "stage 0    exact for the imported record: at stage 0 no policy, contract or effect class was enforced\n";
    for args in [
        &["bisect", "r", "--predicate", "over", "--no-chain", "--lift"][..],
        &["diff", "r@1", "r"],
        &["predicate", "test", "over", "r"],
        &["why", "r", "paid"],
    ] {
        let said = place.ok(args);
        assert!(said.ends_with(caveat), "{args:?} {said}");
        let (_, answer) = place.json(args);
        assert!(answer.get("caveat").is_some(), "{args:?}");
    }
    place.ok(&["reduce", "r", "--pack", "p.yaml", "--stage", "1", "--as", "one"]);
    assert!(!place.ok(&["bisect", "one", "--predicate", "over", "--lift"]).contains("stage 0"));
}

#[test]
fn diff_shows_the_verdicts_of_a_predicate_on_both_runs() {
    let place = under(PAY, "1", PAYMENTS);
    place.ok(&["fork", "r@2", "--as", "f"]);
    let said = place.ok(&["diff", "r", "f", "--predicate", "over"]);
    for line in [
        "          a 0..2 ok, 3 violation   first violated at tick 3\n",
        "          b 0..3 ok   never violated\n",
    ] {
        assert!(said.contains(line), "{line}{said}");
    }
    let (_, answer) = place.json(&["diff", "r", "f", "--predicate", "over"]);
    let verdicts = answer.get("verdicts").unwrap();
    assert_eq!(verdicts.get("a").unwrap().get("onset").unwrap().as_u64(), Some(3));
    assert_eq!(verdicts.get("b").unwrap().get("onset").unwrap().as_u64(), None);
}

#[test]
fn an_onset_at_tick_1_is_offered_both_classes() {
    let said = demo()
        .run(&["bisect", "planning-run-12", "--predicate", "acme.budget_compliance_v1", "--no-chain"])
        .stdout;
    for line in [
        "  ends tick 0 OK, tick 48 FAIL; at most 6 probes\n",
        "DIAGNOSIS  looks foundational (prompt-level): violated from the first commitment on\n",
        "  DO NOT fork: the only state from before the problem is the one that the run began with\n",
        "OR         looks contingent (state-level): compliant until 0, broken by what was written at 1\n",
        "  dendrer fork --run planning-run-12 --from tick 0 ",
    ] {
        assert!(said.contains(line), "{line}{said}");
    }
    assert!(!said.contains("no state in this run is from before the problem"), "{said}");
}

#[test]
fn contributors_of_a_flip_and_links_upstream_are_shown() {
    let demo = demo();
    let args = ["bisect", "logistics-run-47", "--policy-flip", "action.request", "--contributors"];
    let said = demo.run(&args).stdout;
    for line in [
        "CONTRIBUTORS (exact for the recorded decisions)\n  tick 3  action.request  ",
        "  without them  tick 23 is no flip: action.request was never allowed before   smallest\n",
        "UPSTREAM (recorded)\n  tick 22  observation.add  ",
    ] {
        assert!(said.contains(line), "{line}{said}");
    }
    demo.json(&args);
    // A run without rules says why a re-reduction finds nothing, and what the record names.
    let args = ["bisect", "logistics-planner-1", "--predicate", "kernel.policy_compliant", "--contributors"];
    let said = demo.run(&args).stdout;
    assert!(said.contains("  why: intents bring their changes themselves (delta/1)"), "{said}");
    assert!(said.contains("  tick 13  observation.add  "), "{said}");
    let (_, answer) = demo.json(&args);
    let upstream = answer.get("upstream").unwrap().as_array().unwrap().clone();
    assert_eq!(upstream.get(0).unwrap().get("tick").unwrap().as_u64(), Some(13));
}
