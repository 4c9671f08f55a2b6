//! What is not known is never called clean: answers over a state that a failed change left behind (design, section 7).

use crate::support::{Place, strip};

const PACK: &str = r#"name: acme.orders
version: v1
state:
  approved: {init: "false"}
  total: {init: "0"}
types: {order.approve: an approval, order.add: an order}
rules:
  - when_type: order.approve
    steps:
      - {set: approved, value: t.intent.approved}
  - when_type: order.add
    steps:
      - {add: total, value: t.intent.amount}
"#;

/// Five orders; the approval misspells the member that its rule reads.
const LINES: &str = r#"{"type":"order.add","agent":"a","intent":{"amount":5}}
{"type":"order.approve","agent":"a","intent":{"aproved":true}}
{"type":"order.add","agent":"a","intent":{"amount":7}}
"#;

fn place() -> Place {
    let place = Place::with_store();
    std::fs::write(place.path().join("p.yaml"), PACK).unwrap();
    let ran = place.run_with(&["commit", "--run", "r", "--pack", "p.yaml"], LINES.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let said = "UNKNOWN from here on: approved (a rule failed at tick 2)";
    assert!(ran.stdout.contains(said), "{}", ran.stdout);
    place
}

#[test]
fn bisect_over_a_place_that_a_failed_rule_left_unknown_says_so() {
    let place = place();
    for text in ["!has(state.approved) || !state.approved", "!state.approved"] {
        for more in [&[][..], &["--scan"], &["--lift"]] {
            let ran = place.run(&[&["bisect", "r", "--holds", text][..], more].concat());
            assert_eq!(ran.code, 6, "{more:?}: {}{}", ran.stdout, ran.stderr);
            assert!(
                ran.stderr.contains("state.approved is unknown: a rule failed at tick 2"),
                "{}",
                ran.stderr
            );
            assert!(!ran.stdout.contains("exact") && !ran.stdout.contains("no violation"), "{}", ran.stdout);
        }
        let (code, answer) = place.json(&["bisect", "r", "--holds", text]);
        let outcome = answer.get("outcome").and_then(|outcome| outcome.as_str());
        assert_eq!((code, outcome), (6, Some("uncertain")), "{answer}");
    }
    // What the failed rule does not write is known.
    let ran = place.run(&["bisect", "r", "--holds", "state.total < 10"]);
    assert!(ran.code == 0 && ran.stdout.contains("ONSET (exact)  tick 3"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn an_onset_before_the_first_unknown_read_is_exact() {
    let place = place();
    place.run_with(
        &["commit", "--run", "r"],
        br#"{"type":"order.approve","agent":"a","intent":{"approved":true}}"#,
    );
    let ran = place.run(&["bisect", "r", "--holds", "state.total < 5"]);
    assert!(ran.stdout.contains("ONSET (exact)  tick 1"), "{}", ran.stdout);
    // Known again at tick 4: the onset is somewhere from tick 2 on.
    let ran = place.run(&["bisect", "r", "--holds", "!state.approved"]);
    assert_eq!(ran.code, 6);
    assert!(ran.stderr.contains("the onset is between tick 2 and tick 4"), "{}", ran.stderr);
    assert!(place.ok(&["verify", "r", "--replay"]).contains("reproduced"));
}

#[test]
fn a_dropped_delta_leaves_its_places_unknown_in_forks_as_well() {
    let place = Place::with_store();
    let lines = r#"{"type":"memory.write","agent":"a","delta":[{"set":"/m","value":1},{"add":"/n","value":1}]}
{"type":"memory.write","agent":"a","delta":[{"set":"/m","value":2}]}
"#;
    place.run_with(&["commit", "--run", "r", "--stage", "0"], lines.as_bytes());
    place.ok(&["fork", "r@2", "--as", "f"]);
    for run in ["r", "f"] {
        let test = place.run(&["predicate", "test", "has(state.n) && state.n > 0", run]);
        assert!(test.stdout.contains("state.n is unknown: a delta failed at tick 1"), "{}", test.stdout);
        // The whole delta was dropped, and the next one sets the other place.
        let set = place.run(&["bisect", run, "--holds", "!has(state.m) || state.m < 2"]);
        assert_eq!(set.code, 6, "{}", set.stdout);
        assert!(set.stderr.contains("the onset is between tick 1 and tick 2"), "{}", set.stderr);
    }
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
}

#[test]
fn a_run_whose_contract_was_violated_is_not_compliant() {
    let place = Place::with_demo();
    let ran = place.run(&["bisect", "claims-9", "--predicate", "kernel.policy_compliant", "--no-chain"]);
    assert!(ran.code == 0 && ran.stdout.contains("ONSET (exact)  tick 33"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn every_answer_that_reads_an_unknown_place_passes_it_on() {
    let place = place();
    let cause = "approved (a rule failed at tick 2)";
    // What reads the place ends with 6, and says which and since when.
    let asked: [&[&str]; 4] = [
        &["state", "r", "--path", "approved"],
        &["why", "r", "approved"],
        &["backtrack", "r", "approved"],
        &["state", "r", "--path", "approved", "--base", "r@1"],
    ];
    for args in asked {
        let ran = place.run(args);
        assert_eq!(
            (ran.code, ran.stdout.contains(cause) || ran.stderr.contains(cause)),
            (6, true),
            "{args:?}: {}{}",
            ran.stdout,
            ran.stderr
        );
        let (code, answer) = place.json(args);
        let unknown = answer.get("unknown").map(ToString::to_string);
        let expected = r#"[{"code":"rule_failed","place":"/approved","tick":2}]"#;
        assert_eq!((code, unknown.as_deref()), (6, Some(expected)), "{args:?}: {answer}");
        assert_ne!(answer.get("certainty").and_then(|word| word.as_str()), Some("exact"), "{answer}");
    }
    // What does not read it is as sure as ever.
    for args in [&["state", "r", "--path", "total"][..], &["why", "r", "total"], &["state", "r@1"]] {
        let ran = place.run(args);
        assert_eq!((ran.code, ran.stdout.contains("UNKNOWN")), (0, false), "{args:?}: {}", ran.stdout);
    }
    // Lists say it in words.
    for args in [&["log", "r"][..], &["show", "r@2"], &["runs"], &["verify", "r"], &["state", "r"]] {
        let ran = place.run(args);
        assert_eq!(
            (ran.code, ran.stdout.contains(cause) || ran.stderr.contains(cause)),
            (0, true),
            "{args:?}: {}",
            ran.stdout
        );
    }
    assert!(place.ok(&["verify", "r"]).contains("INCOMPLETE   from tick 2"));
    let list = place.ok(&["log", "r", "--json"]);
    assert!(list.contains(r#""unknown":[{"code":"rule_failed","place":"/approved","tick":2}]"#), "{list}");
    // A run that is reduced again has the same rules.
    let again = place.run(&["reduce", "r", "--pack", "./p.yaml", "--as", "again"]);
    assert_eq!((again.code, again.stdout.contains(cause)), (0, true), "{}{}", again.stdout, again.stderr);
    // Two runs of the same lines may differ where nothing is known.
    let diff = place.run(&["diff", "r", "again"]);
    assert_eq!(diff.code, 6, "{}{}", diff.stdout, diff.stderr);
    assert!(
        diff.stdout.contains("no difference that can be seen, and the states have unknown places"),
        "{}",
        diff.stdout
    );
    let total = place.run(&["diff", "r", "again", "--path", "total"]);
    assert_eq!(total.code, 0, "{}{}", total.stdout, total.stderr);
}

#[test]
fn an_import_whose_rules_fail_says_which_places_are_unknown() {
    let place = Place::with_store();
    std::fs::write(
        place.path().join("p.yaml"),
        PACK.replace("order.approve: an approval, order.add: an order", "x: x")
            .replace("order.approve", "plan.update")
            .replace("order.add", "memory.write")
            .replace("t.intent.approved", "t.intent.misspelt"),
    )
    .unwrap();
    std::fs::write(place.path().join("c.json"), r#"[{"role":"assistant","content":"I approve"}]"#).unwrap();
    let ran = place.run(&["import", "c.json", "--run", "i", "--pack", "./p.yaml"]);
    assert!(
        ran.stdout.contains("UNKNOWN    approved (a rule failed at tick 1)"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}

#[test]
fn a_difference_at_an_unknown_place_is_not_certain() {
    let place = place();
    let known = LINES.replace("aproved", "approved");
    place.run_with(&["commit", "--run", "known", "--pack", "p.yaml"], known.as_bytes());
    place.run(&["reduce", "r", "--pack", "./p.yaml", "--as", "again"]);
    let word = |answer: &dendrer_object::Value, name: &str| {
        answer.get(name).and_then(|word| word.as_str()).unwrap_or_default().to_owned()
    };
    let outcome = |answer: &dendrer_object::Value| word(answer.get("outcome").unwrap(), "state");
    let mark = r#"[{"code":"rule_failed","place":"/approved","tick":2}]"#;
    // Each state has the same value there, and neither is known.
    let (code, answer) = place.json(&["diff", "r", "again", "--path", "approved"]);
    assert_eq!(
        (code, word(&answer, "certainty"), outcome(&answer)),
        (6, "unavailable".into(), "not known".into())
    );
    let both = format!(r#"{{"a":{mark},"b":{mark}}}"#);
    assert_eq!(answer.get("unknown").map(ToString::to_string), Some(both), "{answer}");
    // One value is known, and the other is not: the transitions differ, and whether the states do is not known.
    let (code, answer) = place.json(&["diff", "r", "known", "--path", "approved", "--type", "outcome"]);
    assert_eq!(
        (code, word(&answer, "certainty"), outcome(&answer)),
        (6, "unavailable".into(), "not known".into())
    );
    let (code, answer) = place.json(&["diff", "r", "known"]);
    assert_eq!((code, word(&answer, "certainty")), (0, "unavailable".to_owned()), "{answer}");
    let text = place.run(&["diff", "r", "known"]).stdout;
    assert!(text.contains("UNKNOWN in a: approved (a rule failed at tick 2)\n"), "{text}");
    assert!(text.contains("false -> true  (unknown)\n"), "{text}");
    // The answer does not depend on a place that is left out or not asked for.
    for more in [["--path", "total"], ["--ignore", "state.approved"]] {
        let (code, answer) = place.json(&[&["diff", "r", "again"][..], &more].concat());
        assert_eq!((code, word(&answer, "certainty")), (0, "exact".to_owned()), "{more:?}: {answer}");
    }
}

#[test]
fn a_replay_and_a_state_that_is_shown_name_unknown_places() {
    let place = place();
    let line = "UNKNOWN    approved (a rule failed at tick 2)\n";
    for args in [&["replay", "r"][..], &["show", "r@3", "--state", "after"]] {
        let ran = place.run(args);
        assert_eq!((ran.code, ran.stdout.ends_with(line)), (0, true), "{args:?}: {}", ran.stdout);
    }
    for args in [&["replay", "r", "--to", "1"][..], &["show", "r@2", "--state", "before"], &["show", "r@3"]] {
        assert!(!place.ok(args).contains("UNKNOWN    "), "{args:?}");
    }
    let (_, replayed) = place.json(&["replay", "r"]);
    let (_, shown) = place.json(&["show", "r@3", "--state", "after"]);
    let mark = r#"[{"code":"rule_failed","place":"/approved","tick":2}]"#;
    for found in [replayed.get("unknown"), shown.get("state_unknown")] {
        assert_eq!(found.map(ToString::to_string).as_deref(), Some(mark));
    }
}

#[test]
fn verify_says_of_each_run_whether_its_state_is_known() {
    let place = place();
    place.run_with(
        &["commit", "--run", "s"],
        br#"{"type":"memory.write","agent":"a","delta":[{"set":"/m","value":2}]}"#,
    );
    place.ok(&["fork", "r@1", "--as", "before"]);
    place.ok(&["fork", "r@2", "--as", "after"]);
    place.ok(&["export", "r", "-o", "r.dnd"]);
    let state = |target: &str| {
        let ran = place.run(&["verify", target]);
        let lines = ran
            .stdout
            .lines()
            .filter_map(|line| line.strip_prefix("state "))
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        (ran.code, lines.collect::<Vec<_>>())
    };
    let incomplete = vec!["INCOMPLETE from tick 2: approved (a rule failed at tick 2)".to_owned()];
    let known = vec!["KNOWN".to_owned()];
    for (target, lines) in [
        ("r", &incomplete),
        ("./r.dnd", &incomplete),
        ("after", &incomplete),
        ("before", &known),
        ("s", &known),
    ] {
        assert_eq!(state(target), (0, lines.clone()), "{target}");
    }
    let (_, answer) = place.json(&["verify", "r"]);
    let item = answer.get("items").and_then(|items| items.as_array()).and_then(|items| items.get(0)).unwrap();
    let word = |name: &str| item.get(name).map(ToString::to_string).unwrap_or_default();
    assert_eq!(
        (word("state"), word("incomplete_from")),
        ("\"incomplete\"".to_owned(), "2".to_owned()),
        "{answer}"
    );
    // A change that cannot be read may have left anything unknown.
    place.ok(&["export", "s", "-o", "s.dnd"]);
    strip(place.path().join("s.dnd"), &["/delta"]);
    let (_, lines) = state("./s.dnd");
    assert_eq!(lines, ["INCOMPLETE from tick 1: a change is missing, erased or withheld"]);
}

/// A string, a null, a missing member: three reasons at three ticks, and none stands for another.
#[test]
fn each_tick_that_cannot_be_judged_has_its_own_reason() {
    let place = Place::with_store();
    let lines = r#"{"type":"plan.update","agent":"ann","delta":[{"set":"/a","value":{"x":"12"}}]}
{"type":"plan.update","agent":"ann","delta":[{"set":"/a","value":{"x":null}}]}
{"type":"plan.update","agent":"ann","delta":[{"set":"/a","value":{"y":1}}]}
{"type":"plan.update","agent":"ann","delta":[{"set":"/a","value":{"x":12}}]}
"#;
    place.run_with(&["commit", "--run", "r"], lines.as_bytes());
    let reasons = [
        (0, "state.a is missing"),
        (1, "state.a.x is a string"),
        (2, "state.a.x is null"),
        (3, "state.a.x is missing"),
    ];
    let text = place.run(&["predicate", "test", "state.a.x > 10", "r"]).stdout;
    let ticks = place.run(&["predicate", "test", "state.a.x > 10", "r", "--ticks"]).stdout;
    let (_, answer) = place.json(&["predicate", "test", "state.a.x > 10", "r"]);
    let listed = answer.get("uncertain").and_then(|list| list.as_array()).unwrap();
    assert_eq!(listed.len(), reasons.len(), "{answer}");
    for ((tick, reason), one) in reasons.iter().zip(listed.iter()) {
        let line = |text: &str| {
            text.lines().any(|line| line.trim_start().starts_with(&tick.to_string()) && line.contains(reason))
        };
        assert!(line(&text) && line(&ticks), "{tick} {reason}:\n{text}\n{ticks}");
        let why = one.get("why").and_then(|why| why.as_str()).unwrap();
        assert!(
            why.starts_with(reason) && one.get("tick").and_then(|tick| tick.as_u64()) == Some(*tick),
            "{one}"
        );
    }
}

/// A run whose delta failed at tick 1, so that `n` and `deep.k`, which nobody wrote before, are unknown.
fn dropped() -> Place {
    let place = Place::with_store();
    let lines = r#"{"type":"memory.write","agent":"a","delta":[{"set":"/deep/k","value":1},{"add":"/n","value":1}]}
{"type":"memory.write","agent":"a","delta":[{"set":"/m","value":2},{"set":"/deep/other","value":2}]}
"#;
    place.run_with(&["commit", "--run", "r", "--stage", "0"], lines.as_bytes());
    place.run_with(
        &["commit", "--run", "s", "--stage", "0"],
        br#"{"type":"memory.write","agent":"a","delta":[{"set":"/m","value":2}]}"#,
    );
    place
}

fn verdict_at_the_tip(place: &Place, run: &str, text: &str) -> String {
    let (_, tested) = place.json(&["predicate", "test", text, run]);
    let intervals = tested.get("intervals").and_then(|all| all.as_array()).unwrap();
    let last = intervals.get(intervals.len() - 1).and_then(|last| last.as_array()).unwrap();
    last.get(2).and_then(|verdict| verdict.as_str()).unwrap().to_owned()
}

#[test]
fn a_merge_copies_unknown_places_that_no_source_has() {
    let place = dropped();
    place.ok(&["merge", "--from", "r@2", "--from", "s@1", "--as", "m"]);
    for text in ["has(state.n)", "has(state.deep.k)"] {
        assert_eq!(verdict_at_the_tip(&place, "m", text), "uncertain", "{text}");
    }
    assert_eq!(verdict_at_the_tip(&place, "m", "state.m == 3"), "ok");
    std::fs::write(
        place.path().join("p.yaml"),
        "name: p\nversion: v1\nstate: {n: {init: \"has(s0.n) ? s0.n : 0\"}, m: {init: s0.m}}\n",
    )
    .unwrap();
    place.ok(&["reduce", "m", "--pack", "./p.yaml", "--as", "again"]);
    assert_eq!(verdict_at_the_tip(&place, "again", "state.n > 1"), "uncertain");
    assert_eq!(verdict_at_the_tip(&place, "again", "state.m == 3"), "ok");
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
}

#[test]
fn nothing_at_an_unknown_place_is_no_answer() {
    let place = dropped();
    for path in ["n", "deep.k"] {
        let ran = place.run(&["state", "r", "--path", path]);
        let line = format!("UNKNOWN    {path} (a delta failed at tick 1)\n");
        assert_eq!((ran.code, ran.stdout), (6, line), "{}", ran.stderr);
        let (code, answer) = place.json(&["state", "r", "--path", path]);
        let word = |name: &str| answer.get(name).map(ToString::to_string).unwrap_or_default();
        assert_eq!((code, word("value"), word("certainty")), (6, "null".into(), "\"unavailable\"".into()));
    }
}

#[test]
fn a_place_that_a_fork_sets_is_known() {
    let place = dropped();
    place.ok(&["fork", "r@2", "--as", "f", "--set", "n=7"]);
    assert_eq!(verdict_at_the_tip(&place, "f", "state.n == 7"), "violation");
    assert_eq!(verdict_at_the_tip(&place, "f", "has(state.deep.k)"), "uncertain");
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
}

#[test]
fn a_delta_that_failed_is_no_error_of_the_rules_it_is_reduced_under() {
    let place = dropped();
    std::fs::write(
        place.path().join("p.yaml"),
        "name: p\nversion: v1\nstate: {count: {init: 0}}\nrules: [{when_type: memory.write, steps: [{add: count, value: 1}]}]\n",
    )
    .unwrap();
    place.ok(&["reduce", "r", "--pack", "p.yaml", "--as", "again"]);
    assert_eq!(verdict_at_the_tip(&place, "again", "state.count == 2"), "violation");
}

/// The result of an unanswered call would have come when the state was another one than now.
#[test]
fn an_unanswered_call_may_have_met_any_later_state() {
    let place = Place::with_store();
    std::fs::write(
        place.path().join("p.yaml"),
        r#"name: p
version: v1
state: {open: {init: "false"}, paid: {init: 0}, asked: {init: 0}}
rules:
  - when_type: action.result
    when: state.open && t.action.tool == 'pay'
    steps: [{add: paid, value: 1}]
  - when_type: action.result
    when: t.action.tool == 'ask'
    steps: [{add: asked, value: 1}]
  - when_type: message.user
    steps: [{set: open, value: "true"}]
types: {message.user: a message}
"#,
    )
    .unwrap();
    let messages = r#"[{"role":"user","content":"pay"},
{"role":"assistant","content":null,"tool_calls":[{"id":"c1","function":{"name":"pay","arguments":"{}"}}]},
{"role":"user","content":"and?"}]"#;
    std::fs::write(place.path().join("chat.json"), messages).unwrap();
    place.run(&["import", "chat.json", "--run", "r", "--pack", "p.yaml"]);
    assert_eq!(verdict_at_the_tip(&place, "r", "state.paid > 0"), "uncertain");
    assert_eq!(verdict_at_the_tip(&place, "r", "state.asked > 0"), "ok");
}
/// An item that could not be read may have been an anomaly or a decision, so their absence after it is not known.
#[test]
fn anomalies_and_flips_after_an_unread_item_are_uncertain() {
    let place = Place::with_store();
    let items = r#"[{"role":"user","content":"a"},5,{"role":"assistant","content":"b"}]"#;
    std::fs::write(place.path().join("c.json"), items).unwrap();
    place.run(&["import", "c.json", "--run", "i"]);
    let (_, own) = place.json(&["bisect", "i", "--anomaly", "message_unreadable"]);
    let gap = own.get("onset").and_then(|tick| tick.as_u64()).unwrap_or_else(|| panic!("{own}"));
    assert_eq!(own.get("certainty").and_then(|word| word.as_str()), Some("exact"), "{own}");
    for question in [["--anomaly", "forged_type"], ["--policy-flip", "plan.update"]] {
        let args = ["bisect", "i", question[0], question[1]];
        let ran = place.run(&args);
        let reason = format!("a part of the source was not read at tick {gap}");
        assert_eq!((ran.code, ran.stderr.contains(&reason)), (6, true), "{}{}", ran.stdout, ran.stderr);
        let (code, answer) = place.json(&args);
        assert_eq!(code, 6, "{answer}");
        assert_ne!(answer.get("certainty").and_then(|word| word.as_str()), Some("exact"), "{answer}");
        // A range that ends before the item is as sure as ever.
        let before = place.run(&[&args[..], &["--to", &(gap - 1).to_string()]].concat());
        assert_eq!(before.code, 1, "{}{}", before.stdout, before.stderr);
    }
}
