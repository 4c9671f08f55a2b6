//! Rebase and merge from the command line: what is printed, what is written, and what is refused.

use dendrer_object::Value;

use crate::support::{Place, demo};

const PLAN: [&str; 6] = ["rebase", "--run", "logistics-run-47", "--onto", "logistics-planner-1@13", "--plan"];

#[test]
fn a_plan_says_what_would_become_of_each_intent() {
    let ran = demo().run(&PLAN);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (
            0,
            "  tick 1  observation.add  -     as 15: a fact
  tick 2  plan.update      -     as 16: what it says it was decided on holds here
  tick 3  action.request   STOP  it was decided on risk_score 0.52, here it is 0.58
plan: 2 intents carry over, 1 needs a decision, 61 behind it not looked at; nothing was written
"
        )
    );
    assert!(ran.stderr.starts_with("note: no model and no tool was called"), "{}", ran.stderr);
    let place = Place::with_demo();
    let size = || place.json(&["fsck"]).1.get("records").cloned();
    let before = (size(), place.json(&["runs"]).1);
    place.ok(&PLAN);
    assert_eq!((size(), place.json(&["runs"]).1), before, "a plan writes nothing");
    // Made, it ends there; the exit code says so.
    let made =
        ["rebase", "logistics-run-47", "--onto", "logistics-planner-1@13", "--as", "n", "--reason", "why"];
    let ran = place.run(&made);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(
        ran.stdout.starts_with(
            "replayed   logistics-planner-1@13 and logistics-run-47 from tick 1 on OK
rebased    n: logistics-run-47 onto logistics-planner-1@13   its tick 14 is run.fork
reason     \"why\"
"
        ),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.ends_with("result: 2 intents carry over, 1 needs a decision, 61 behind it not looked at; n ends at tick 16\n"),
        "{}",
        ran.stdout
    );
    assert!(place.ok(&["verify", "n", "--replay"]).contains("16 of 16 states reproduced"));
    let (code, again) = place.json(&[&made[..4], &["-n"]].concat());
    assert_eq!((code, again.get("written")), (0, Some(&Value::from(false))));
    assert_eq!(again.get("run").unwrap().as_str(), Some("logistics-run-47+2"));
    let items = again.get("items").unwrap().as_array().unwrap();
    assert_eq!(
        items.get(2).unwrap().to_string(),
        r#"{"advisory_missing":[],"already_in":null,"answer":null,"basis":null,"declared":false,"effect":"effectful","fate":"stopped","source_tick":3,"stopped":{"fields":[],"kind":"decided_on","now":0.58,"path":"/risk_score","then":0.52,"why":"it was decided on risk_score 0.52, here it is 0.58"},"tick":null,"type":"action.request"}"#
    );
}

/// No name that a pack does not know becomes harmless because a record calls it so.
#[test]
fn all_of_a_run_goes_over_and_no_tool_is_called() {
    let place = Place::with_demo();
    let ran = place.run(&["rebase", "logistics-planner-1", "--onto", "logistics-run-47@13", "--as", "n"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for line in [
        "  tick 4   action.result    effectful (undeclared)  as 18: recorded output only, never asked again\n",
        "  tick 9   memory.write     -                       as 23: nothing says what it was decided on\n",
        "  tick 20  kernel.anomaly   -                       stays: the kernel wrote it about logistics-planner-1\n",
        "result: 63 intents carry over; n ends at tick 77\n",
    ] {
        assert!(ran.stdout.contains(line), "{line}{}", ran.stdout);
    }
    assert!(place.ok(&["verify", "n", "--replay"]).contains("77 of 77 states reproduced"));
    place.ok(&["export", "n", "-o", "n.dnd"]);
    assert!(place.ok(&["verify", "n.dnd", "--replay"]).contains("INTACT"));
    let stop = |what: &str| {
        let answer = place.json(&[
            "rebase",
            "logistics-planner-1",
            "--onto",
            "logistics-run-47@13",
            "-n",
            "--stop-on",
            what,
        ]);
        let items = answer.1.get("items").unwrap().as_array().unwrap().clone();
        let last = items.get(items.len() - 1).unwrap();
        let kind = last.get("stopped").unwrap().get("kind").unwrap().as_str().unwrap().to_owned();
        (last.get("source_tick").unwrap().as_u64().unwrap(), kind)
    };
    assert_eq!(stop("effectful"), (4, "effectful".to_owned()));
    assert_eq!(stop("context"), (9, "unsaid".to_owned()));
}

#[test]
fn a_merge_keeps_what_differs_until_somebody_decides() {
    let place = Place::with_demo();
    let merge = [
        "merge",
        "--as",
        "both",
        "--from",
        "logistics-run-47",
        "--from",
        "logistics-planner-1@9",
        "--artifact",
        "risk_score",
        "--artifact",
        "risk_threshold",
        "--seed-only",
    ];
    let ran = place.run(&merge);
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
        (
            1,
            "source     a logistics-run-47@64   replayed OK, state 3cb075127011
source     b logistics-planner-1@9   replayed OK, state b0574011c7c4
created    both: a new run, seeded with 1 place of 2 runs. This is not a history merge.
terms      none: values alone, without pack, policy rules and goal
base       none: the runs share no record, so a place that some of them lack is taken from the others
conflict   risk_score   a 0.79   b 0.58   strategy manual: all kept, none taken
",
            "help: dendrer conflicts resolve both risk_score --take a --reason ...\n"
        )
    );
    assert_eq!(place.ok(&["state", "both", "--path", "risk_threshold"]).trim(), "0.75");
    // What made-up runs give is made up.
    let named = |filter: &str| place.ok(&["runs", "--where", filter, "--fields", "name"]);
    assert!(named("synthetic").contains("both"), "{}", named("synthetic"));
    let mine = b"{\"type\":\"plan.update\",\"delta\":[{\"set\":\"/mine\",\"value\":1}]}";
    for run in ["mine", "too"] {
        assert_eq!(place.run_with(&["commit", "--run", run], mine).code, 0);
    }
    place.ok(&["merge", "--as", "ours", "--from", "mine", "--from", "too"]);
    place.run(&["merge", "--as", "mixed", "--from", "mine", "--from", "logistics-run-47", "--seed-only"]);
    assert!(!named("synthetic").contains("ours") && named("synthetic").contains("mixed"));
    assert_eq!(place.run(&["state", "both", "--path", "risk_score"]).code, 6, "it is unknown");
    let listed = place.ok(&["conflicts", "list", "both"]);
    assert!(listed.starts_with("risk_score   open: all are kept, and nothing stands there\n  a logistics-run-47@64   0.79   written at tick 61, record "), "{listed}");
    assert!(listed.ends_with("1 of 1 conflict, 1 open\n"), "{listed}");
    let resolve = |more: &[&str]| {
        place.run(&[&["conflicts", "resolve", "both", "risk_score", "--reason", "newer"], more].concat())
    };
    assert!(resolve(&["--take", "b", "-n"]).stdout.starts_with("would set  risk_score = 0.58   b taken\n"));
    let ran = resolve(&["--take", "b"]);
    assert!(
        ran.stdout.starts_with("resolved   risk_score = 0.58   b taken, as both@1   hash "),
        "{}",
        ran.stdout
    );
    let ran = resolve(&["--take", "a"]);
    assert_eq!((ran.code, ran.stderr.contains("E0446")), (5, true), "{}", ran.stderr);
    let (code, shown) = place.json(&["conflicts", "show", "both", "risk_score"]);
    let item = shown.get("items").unwrap().as_array().unwrap().get(0).unwrap().clone();
    assert_eq!(
        (code, item.get("status").unwrap().as_str(), item.get("taken").unwrap().as_str()),
        (0, Some("resolved"), Some("b"))
    );
    assert!(place.ok(&["verify", "both", "--replay"]).contains("1 of 1 states reproduced"));
}

/// The fork of the demo that stopped: what it took over from its parent is its own, and its marker is nobody's.
#[test]
fn what_a_fork_re_applied_is_rebased_with_it() {
    let plan = ["rebase", "--run", "logistics-fix-1", "--onto", "logistics-planner-1@13", "--plan"];
    let ran = demo().run(&plan);
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
        (
            0,
            "  tick 22  run.fork         -  stays: the kernel wrote it about logistics-fix-1
  tick 23  observation.add  -  as 15: a fact
plan: 1 intent carries over; nothing was written
",
            "note: no model and no tool was called; a program that can ask tools brings its own executor\n"
        )
    );
}

/// What two forks agree on, the plan they do not agree on, and the decision.
#[test]
fn two_journeys_become_one_with_a_conflict_that_somebody_decides() {
    let place = Place::with_demo();
    let merge = [
        "merge",
        "--as",
        "trip-merged",
        "--from",
        "trip-planner-b",
        "--from",
        "trip-planner-c",
        "--artifact",
        "budget_remaining",
        "--artifact",
        "fares",
        "--artifact",
        "itinerary",
    ];
    let ran = place.run(&merge);
    assert_eq!(
        (ran.code, ran.stdout.as_str(), ran.stderr.as_str()),
        (
            1,
            r#"source     a trip-planner-b@45   replayed OK, state aff242ff1f1f
source     b trip-planner-c@44   replayed OK, state 30b1e3986942
created    trip-merged: a new run, seeded with 1 place of 2 runs. This is not a history merge.
base       trip-planner-a@30, the last record in all histories
conflict   budget_remaining   a 62   b 62   strategy manual: all kept, none taken
conflict   itinerary   a [{"day":1,"place":"Lugano"},{"day":2,"evening":"grotto","place":"Bellinzona"},{"day":3,"place":"Lake Lugano"}]   b [{"day":1,"place":"Lugano"},{"day":2,"place":"Bellinzona"},{"day":3,"place":"museum in Lugano"}]   strategy manual: all kept, none taken
"#,
            "help: dendrer conflicts resolve trip-merged budget_remaining --take a --reason ...\n"
        )
    );
    // Each run paid for itself, so equal rests are no agreement.
    let paid =
        ["conflicts", "resolve", "trip-merged", "budget_remaining", "--take", "a", "--reason", "one trip"];
    assert_eq!(place.run(&paid).code, 0);
    let why = "the forecast says showers";
    let ran =
        place.run(&["conflicts", "resolve", "trip-merged", "itinerary", "--take", "b", "--reason", why]);
    assert!(
        ran.stdout.starts_with(
            r#"resolved   itinerary = [{"day":1,"place":"Lugano"},{"day":2,"place":"Bellinzona"},{"day":3,"place":"museum in Lugano"}]   b taken, as trip-merged@2   hash "#
        ),
        "{}",
        ran.stdout
    );
    let listed = place.ok(&["conflicts", "list", "trip-merged"]);
    assert!(
        listed.ends_with(
        r#"itinerary   b taken at tick 2: "the forecast says showers"
  a trip-planner-b@45   [{"day":1,"place":"Lugano"},{"day":2,"evening":"grotto","place":"Bellinzona"},{"day":3,"place":"Lake Lugano"}]   written at tick 41, record 3a4a5d78290f
  b trip-planner-c@44   [{"day":1,"place":"Lugano"},{"day":2,"place":"Bellinzona"},{"day":3,"place":"museum in Lugano"}]   written at tick 40, record 02c3a1947a0f
2 of 2 conflicts, 0 open
"#
        ),
        "{listed}"
    );
    // The rule of both holds on, over the value that was decided.
    assert_eq!(place.ok(&["state", "trip-merged", "--path", "budget_remaining"]).trim(), "62");
    assert_eq!(place.run(&["state", "trip-merged", "--path", "policy"]).code, 3, "nothing is violated");
    assert!(place.ok(&["verify", "trip-merged", "--replay"]).contains("2 of 2 states reproduced"));
    // Had it not been chosen, it would begin as the pack says.
    let less = [&merge[..7], &merge[9..], &["-n"]].concat();
    assert_eq!(
        place.run(&[&["merge", "--as", "less"], &less[3..]].concat()).stderr,
        "nothing was written (dry run)\n"
    );
}

#[test]
fn what_cannot_be_rebased_or_merged_is_refused_with_a_code() {
    let place = Place::with_demo();
    let runs = || place.json(&["runs"]).1.get("items").unwrap().as_array().unwrap().len();
    let before = runs();
    let cases: &[(&[&str], i32, &str)] = &[
        (&["rebase", "logistics-run-47"], 2, "--onto"),
        (&["rebase", "logistics-run-47@3", "--onto", "planning-run-12"], 2, "without a tick"),
        (&["rebase", "logistics-run-47", "--onto", "planning-run-12@99"], 3, "E0102"),
        (&["rebase", "nobody", "--onto", "planning-run-12"], 3, "E0101"),
        (&["rebase", "financial-agent-A", "--onto", "planning-run-12"], 2, "E0118"),
        (&["rebase", "logistics-run-47", "--onto", "planning-run-12", "--as", "trip-planner-a"], 2, "E0111"),
        (&["rebase", "tampered.dnd", "--onto", "planning-run-12"], 2, "E0106"),
        (&["merge", "--as", "m", "--from", "planning-run-12"], 2, "E0441"),
        (
            &["merge", "--as", "m", "--from", "planning-run-12", "--from", "planning-run-12"],
            2,
            "planning-run-12@48 is named twice",
        ),
        (&["merge", "--as", "m", "--from", "planning-run-12", "--from", "trip-planner-a"], 5, "E0442"),
        (
            &[
                "merge",
                "--as",
                "m",
                "--from",
                "planning-run-12",
                "--from",
                "trip-planner-a",
                "--artifact",
                "nothing",
                "--seed-only",
            ],
            3,
            "E0104",
        ),
        (
            &["merge", "--as", "trip-planner-a", "--from", "planning-run-12", "--from", "hostile-1"],
            2,
            "E0111",
        ),
        (&["conflicts", "show", "trip-planner-a", "memory.x"], 3, "E0444"),
        (&["conflicts", "resolve", "trip-planner-a", "x", "--take", "a", "--reason", " "], 2, "E0106"),
    ];
    for (args, code, words) in cases {
        let ran = place.run(args);
        assert_eq!(ran.code, *code, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
    }
    assert_eq!(runs(), before);
    // Hostile text is quoted, in what stops a rebase and in what a merge keeps.
    let hostile = ["merge", "--as", "h", "--from", "hostile-1", "--from", "trip-planner-a", "--seed-only"];
    for args in [
        &hostile[..],
        &["conflicts", "list", "h"],
        &["rebase", "hostile-1", "--onto", "planning-run-12", "--plan"],
    ] {
        let ran = place.run(args);
        assert!(ran.code < 2, "{args:?}: {}", ran.stderr);
        let acts = |c: char| c.is_control() && c != '\n' || matches!(c, '\u{202e}' | '\u{2066}');
        assert!(!ran.stdout.contains(acts), "{args:?}: {}", ran.stdout);
    }
}

#[test]
fn a_pack_says_what_its_tools_do_and_what_counts_for_others() {
    let shown = demo().run(&["pack", "show", "financial-agent-A"]).stdout;
    assert!(shown.contains("tool        broker.quote  read"), "{shown}");
    assert!(shown.contains("tool        (every other)  counts as effectful, undeclared\n"), "{shown}");
    let (_, answer) = demo().json(&["pack", "show", "financial-agent-A"]);
    assert_eq!(
        answer.get("tools").unwrap().as_array().unwrap().get(0).unwrap().to_string(),
        r#"{"effect":"effectful","failed":null,"name":"broker.order","words":"buys or sells"}"#
    );
}

const ADVISED: &str = r#"{
    "name":"t.p","version":"v1","state":{"x":{"init":0},"y":{"init":0},"adv":{"init":0}},"types":{"act":"acts"},
    "rules":[
        {"when_type":"observation.add","steps":[
            {"set":"x","value":"t.intent.x","if":"has(t.intent.x)"},
            {"set":"y","value":"t.intent.y","if":"has(t.intent.y)"},
            {"set":"adv","value":"t.intent.adv","if":"has(t.intent.adv)"}]}],
    "contracts":{"act":{"required_state":{"x":{"type":"number"}},"hash_seeds":["x"],"advisory":["adv"]}},
    "violations":[{"id":"big","condition":"state.x > 10","bisect_predicate":"monotone_lift"}]
}"#;

#[test]
fn what_the_model_named_is_what_it_decided_on() {
    let place = Place::with_store();
    std::fs::write(place.path().join("p.json"), ADVISED).expect("written");
    let begun = place.run_with(
        &["commit", "--run", "A", "--pack", "p.json", "--stage", "2"],
        b"{\"type\":\"observation.add\",\"intent\":{\"x\":1,\"adv\":9}}\n",
    );
    assert_eq!(begun.code, 0, "{}", begun.stderr);
    place.ok(&["fork", "--run", "A", "--from", "tick", "1", "--as", "F", "--set", "adv=1"]);
    let lines = "{\"type\":\"observation.add\",\"intent\":{\"y\":5}}\n\
                 {\"type\":\"act\",\"intent\":{\"declared_deps\":[\"adv\"]}}\n";
    let ran = place.run_with(&["commit", "--run", "F"], lines.as_bytes());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let ran = place.run(&["rebase", "F", "--onto", "A", "-n"]);
    assert!(ran.stdout.contains("it was decided on adv 1, here it is 9"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_run_with_an_open_conflict_is_merged_no_further() {
    let place = Place::with_store();
    for (run, value) in [("a", 1), ("b", 50)] {
        let line =
            format!("{{\"type\":\"memory.write\",\"delta\":[{{\"set\":\"/x\",\"value\":{value}}}]}}\n");
        assert_eq!(place.run_with(&["commit", "--run", run], line.as_bytes()).code, 0);
    }
    assert_eq!(place.run(&["merge", "--as", "m", "--from", "a", "--from", "b"]).code, 1);
    let again = ["merge", "--as", "m2", "--from", "a", "--from", "m"];
    let ran = place.run(&again);
    assert_eq!((ran.code, ran.stderr.contains("error[E0447]")), (5, true), "{}", ran.stderr);
    // A decision that names no side decides nothing.
    let odd = "{\"type\":\"policy.decision\",\"author\":\"runtime\",\"policy\":{\"decision\":\"allow\"},\"intent\":{\"conflict\":{\"path\":\"/x\",\
               \"take\":\"zz\",\"reason\":\"r\"}},\"delta\":[{\"set\":\"/x\",\"value\":3}]}\n";
    assert_eq!(place.run(&["merge", "--as", "odd", "--from", "a", "--from", "b"]).code, 1);
    assert_eq!(place.run_with(&["commit", "--run", "odd", "--as", "runtime"], odd.as_bytes()).code, 0);
    let listed = place.ok(&["conflicts", "list", "odd"]);
    assert!(listed.contains("written at tick 1") && !listed.contains("zz"), "{listed}");
    place.ok(&["conflicts", "resolve", "m", "x", "--take", "-5", "--reason", "neither is right"]);
    place.ok(&again);
}

#[test]
fn the_last_writer_is_known_within_a_millisecond() {
    let place = Place::with_store();
    // What is judged together has one time, and still one order.
    let lines = "{\"type\":\"memory.write\",\"delta\":[{\"set\":\"/x\",\"value\":5}]}\n\
                 {\"type\":\"memory.write\",\"delta\":[{\"set\":\"/x\",\"value\":6}]}\n";
    assert_eq!(place.run_with(&["commit", "--run", "lw"], lines.as_bytes()).code, 0);
    for (run, first, second) in [("up", "lw@1", "lw@2"), ("down", "lw@2", "lw@1")] {
        place.ok(&["merge", "--as", run, "--from", first, "--from", second, "--strategy", "lww"]);
        let state = place.json(&["state", run]).1;
        let x = state.get("value").and_then(|value| value.get("x")).and_then(Value::as_u64);
        assert_eq!(x, Some(6), "{run}: {state}");
    }
}
