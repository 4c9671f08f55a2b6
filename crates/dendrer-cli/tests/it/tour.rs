//! The first five minutes: what the demo shows, as a person reads it.

use dendrer_object::Value;

use crate::support::{Place, demo};

#[test]
fn a_bisect_reads_as_printed() {
    let ran = demo().run(&["bisect", "logistics-run-47", "--predicate", "kernel.policy_compliant"]);
    assert_eq!(ran.code, 0);
    assert_eq!(
        ran.stdout,
        r#"ONSET (exact)  tick 22  observation.add  by feed-reader   c90eee6f20a7
  "unverified source introduced: a private feed offers barges at half the price"
  confidence 0.310  uncertainty "nobody knows who runs this feed"
  + sources[2]       "unverified_feed_3"
  ~ quality_score    0.84 -> 0.62
  ~ risk_score       0.71 -> 0.83
  + policy.violated  {"rule":"logistics.risk_within_threshold","tick":22}
LARGEST WRITES  3 of 5 to risk_score, which logistics.risk_within_threshold reads
  tick 22  0.71 -> 0.83  +0.12  observation.add  feed-reader
  tick 21  0.64 -> 0.71  +0.07  plan.update      router
  tick 14  0.55 -> 0.61  +0.06  observation.add  feed-reader
FIRST SEEN (heuristic)  0.12, 0.07, 0.06: not before their own ticks
CAUSAL CHAIN (heuristic)  by recorded links alone: what a delta read is not known
  tick 23  policy.decision  deny "risk_score 0.83 exceeds the threshold 0.75"
      <- 22 caused_by (recorded)
      + bookings_open  false
  tick 25  plan.update  "use the half price if any carrier accepts it"
      <- 22 caused_by (recorded)
      + quotes.unverified_feed_3  2740
  tick 27  action.request  deny call_carrier {"offer":"unverified_feed_3","shipments":["S-104","S-105"]} "book the cheap barges by telephone instead"
      <- 25 caused_by (recorded), 23 caused_by (recorded)
  tick 29  observation.add  "the private feed now offers six barges"
      <- 22 evidence (recorded)
      ~ risk_score  0.83 -> 0.86
  tick 30  anomaly.flag  "the offer names barges that no register knows"
      <- 29 caused_by (recorded)
  tick 31  plan.update  "load S-104 on the strength of the offer"
      <- 29 caused_by (recorded)
      ~ shipments.S-104.status  "waiting" -> "loading"
      ~ risk_score              0.86 -> 0.88
  tick 32  kernel.anomaly  invariant_breach "S-104 is being loaded without a booking: bookings were closed at tick 23"
      only comes after
      + kernel_anomalies  [{"agent_id":"dispatcher","kind":"invariant_breach","text":"S-104 is being loaded without a booking: bookings were closed at tick 23","tick":32}]
  tick 34  policy.decision  escalate "a person decides on every booking from here"
      only comes after
  tick 62  policy.decision  deny "risk_score 0.79 exceeds the threshold 0.75, and three came late"
      only comes after
DIAGNOSIS  looks contingent (state-level): compliant until 21, broken by data that entered at 22
SUGGESTION  dendrer fork --run logistics-run-47 --from tick 21 --tool-policy 'require source verification before observation.add'
  words for the agent; nothing enforces them
SEARCH  kernel.policy_compliant v1, in ticks 0..64 of logistics-run-47, .dendrer
  violated when a policy rule or a violation of the pack in force is broken, or a denied request is acted on
  pure by construction; it cannot recover; digest b2da76e14f29
  ends tick 0 OK, tick 64 FAIL; at most 6 probes
  1/6  tick 32  violation  FAIL    left 1..32
  2/6  tick 16  compliant  OK      left 17..32
  3/6  tick 24  violation  FAIL    left 17..24
  4/6  tick 20  compliant  OK      left 21..24
  5/6  tick 22  violation  FAIL    left 21..22
  6/6  tick 21  compliant  OK      left 22
"#
    );
}

#[test]
fn each_command_of_the_tour_ends_as_it_says() {
    let place = Place::new();
    let tour = place.ok(&["demo"]);
    let lines: Vec<&str> = tour.lines().collect();
    let commands: Vec<(usize, &str)> = lines
        .iter()
        .enumerate()
        .filter_map(|(at, line)| Some((at, line.strip_prefix("  dendrer ")?)))
        .collect();
    assert_eq!(commands.len(), 5);
    assert_eq!(commands[4].0 + 2, lines.len(), "the tour is the end");
    assert!(commands[..2].iter().all(|(_, command)| command.contains("workshop-300")));
    for (at, command) in commands {
        let expected = if lines[at + 1].contains("exit code 4") { 4 } else { 0 };
        let words = crate::printed::words(command);
        let args: Vec<&str> = words.iter().map(String::as_str).collect();
        let ran = place.command(&args).current_dir(place.path().join("dendrer-demo")).output().unwrap();
        assert_eq!(ran.status.code(), Some(expected), "{command}");
    }
}

/// The rules of the pack make the sum: another answer at tick 182 makes another one, and the limit holds.
#[test]
fn the_price_in_eur_is_found_and_another_answer_keeps_the_limit() {
    let question = ["--holds", "state.total_chf <= 860"];
    let (code, found) = demo().json(&[&["bisect", "workshop-300"], &question[..]].concat());
    let number = |value: &Value, member: &str| value.get(member).and_then(Value::as_u64);
    assert_eq!((code, number(&found, "onset")), (0, Some(290)));
    let seen = found.get("first_seen").unwrap().as_array().unwrap().get(0).unwrap().clone();
    assert_eq!((number(&seen, "value"), number(&seen, "tick")), (Some(310), Some(182)));
    assert_eq!(
        demo().json(&["state", "workshop-300", "mail"]).1.get("value").unwrap().to_string(),
        r#"{"sent":false}"#
    );
    let place = Place::with_demo();
    let answer = r#"{"currency":"CHF","item":"torque wrench","price":291.5}"#;
    std::fs::write(place.path().join("chf.json"), answer).unwrap();
    place.ok(&[
        "fork",
        "workshop-300@181",
        "--tool-output",
        "182=chf.json",
        "--replay-rest",
        "--as",
        "in-chf",
    ]);
    let never = place.run(&[&["bisect", "in-chf"], &question[..]].concat());
    assert_eq!(never.code, 1, "{}", never.stdout);
    let total = place.json(&["state", "in-chf", "total_chf"]).1.get("value").unwrap().to_string();
    assert_eq!(total, "855.25");
}

/// The story of `code-repair-1`: appendix C of the CCAS paper, three writes of one belief, a kept conflict and its decision, and a
/// call that C1 refuses.
#[test]
fn three_agents_repair_a_serializer_within_what_binds_them() {
    let demo = demo();
    let statuses = demo.json(&["commitments", "code-repair-1@57"]).1;
    let status = |item: &Value| {
        let text = |name: &str| item.get(name).unwrap().as_str().unwrap().to_owned();
        format!("{} {}", text("id"), text("status"))
    };
    let listed: Vec<String> = statuses.get("items").unwrap().as_array().unwrap().iter().map(status).collect();
    let paper =
        ["C1 active", "C2 active", "C3 active", "S1 active", "H4 tentative", "D3 active", "P7 blocked"];
    assert_eq!(listed, paper);
    let patch = demo.dir().join("patch.json");
    let call =
        r#"{"tool":"apply_patch","params":{"path":"src/auth/check.py","removes":[],"adds":["return True"]}}"#;
    std::fs::write(&patch, call).unwrap();
    let ran = demo.run(&["commitments", "code-repair-1", "--admissible", patch.to_str().unwrap()]);
    assert!(ran.code == 1 && ran.stdout.contains("C2"), "{} {}", ran.code, ran.stdout);
    let writes = demo.run(&["backtrack", "code-repair-1", "beliefs.failing_test"]).stdout;
    for line in ["tick 44  planner", "tick 31  child-1", "tick 12  researcher", "3 writes in 57 ticks"] {
        assert!(writes.contains(line), "{writes}");
    }
    assert!(
        demo.run(&["why", "code-repair-1", "beliefs.failing_test"]).stdout.starts_with("null since tick 44")
    );
    let conflicts = demo.run(&["conflicts", "list", "code-repair-1"]).stdout;
    assert!(conflicts.contains("beliefs.cause   at tick 34   child-1 taken at tick 35"), "{conflicts}");
    let log = demo.run(&["log", "code-repair-1", "--refusals", "-n", "0"]).stdout;
    assert!(log.contains("refused action.request  0.80  it violates C1 apply_patch"), "{log}");
}

#[test]
fn onsets_are_those_of_the_paper() {
    for (run, onset, probes) in [
        ("logistics-run-47", 22, &[32, 16, 24, 20, 22, 21][..]),
        ("logistics-planner-1", 14, &[32, 16, 8, 12, 14, 13]),
        ("planning-run-12", 1, &[24, 12, 6, 3, 1]),
    ] {
        let (code, answer) =
            demo().json(&["bisect", run, "--predicate", "kernel.policy_compliant", "--scan"]);
        assert_eq!((code, answer.get("onset").unwrap().as_u64()), (0, Some(onset)), "{run}");
        assert_eq!(answer.get("scan_onset"), answer.get("onset"), "{run}");
        let found: Vec<u64> = answer
            .get("items")
            .unwrap()
            .as_array()
            .unwrap()
            .iter()
            .map(|p| p.get("tick").unwrap().as_u64().unwrap())
            .collect();
        assert_eq!(found, probes, "{run}");
    }
}

#[test]
fn a_predicate_that_recovers_is_refused_with_the_turning_ticks() {
    let ran = demo().run(&["bisect", "logistics-run-47", "--predicate", "state.quality_score < 0.75"]);
    assert_eq!(ran.code, 6);
    for part in ["tick 14  violation", "tick 17  ok", "tick 22  violation"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    assert!(
        ran.stderr.contains("error[E0504]: refusing to bisect with a predicate that can recover"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("note: a wrong tick would look exactly like a right one"));
}

#[test]
fn a_field_that_no_state_has_may_be_another_misspelt() {
    let test = |text: &str| demo().run(&["predicate", "test", text, "logistics-run-47", "--holds"]);
    let misspelt = test("has(state.risk_score) && state.qualty_score > 0.5");
    assert_eq!(misspelt.code, 6);
    assert!(misspelt.stdout.contains("state.qualty_score is missing"), "{}", misspelt.stdout);
    assert_eq!(misspelt.stderr, "note: did you mean state.quality_score?\n");
    assert_eq!(test("state.tool_errors == 0").stderr, "note: did you mean state.counters.tool_errors?\n");
    // Nothing is near, or the field is there at some tick.
    assert_eq!(test("state.nope == 1").stderr, "");
    assert_eq!(test("state.quality_score > 0.5").stderr, "");
}

#[test]
fn other_outcomes_have_their_own_words_and_codes() {
    let demo = demo();
    let never = demo.run(&["bisect", "logistics-run-47", "--predicate", "state.risk_score > 5"]);
    assert_eq!(never.code, 1);
    assert!(never.stdout.contains("no violation: tick 0 and tick 64 are both compliant"), "{}", never.stdout);
    let initial = demo.run(&["bisect", "logistics-run-47", "--holds", "state.risk_score > 5"]);
    assert_eq!(initial.code, 0);
    assert!(initial.stdout.contains("the initial state of the range is in violation"), "{}", initial.stdout);
    let uncertain = demo.run(&["bisect", "logistics-run-47", "--holds", "state.nope == 1"]);
    assert_eq!(uncertain.code, 6);
    assert!(
        uncertain.stderr.contains("error[E0509]") && uncertain.stderr.contains("has(state.nope)"),
        "{}",
        uncertain.stderr
    );
    let misspelt = demo.run(&["bisect", "logistics-run-47", "--holds", "state.risk_scor < 0.75"]);
    assert_eq!(misspelt.code, 6);
    assert_eq!(
        misspelt.stderr,
        "error[E0509]: the predicate cannot be judged at tick 0 of logistics-run-47
  | why      state.risk_scor is missing
note: uncertain is never taken for ok
note: the onset is not known from tick 0 on
note: did you mean state.risk_score?
      see: dendrer explain E0509
"
    );
    let expected = demo.run(&[
        "bisect",
        "logistics-run-47",
        "--predicate",
        "kernel.policy_compliant",
        "--expect-onset",
        "21",
    ]);
    assert_eq!(expected.code, 1);
    let expected = demo.run(&[
        "bisect",
        "logistics-run-47",
        "--predicate",
        "kernel.policy_compliant",
        "--expect-onset",
        "22",
    ]);
    assert_eq!(expected.code, 0);
    let anomaly = demo.json(&["bisect", "logistics-run-47", "--anomaly", "kernel.anomaly"]).1;
    assert_eq!(anomaly.get("onset"), Some(&Value::from(32u64)));
    let part = demo
        .json(&[
            "bisect",
            "logistics-run-47",
            "--predicate",
            "kernel.policy_compliant",
            "--from",
            "tick",
            "10",
            "--to",
            "tick",
            "30",
        ])
        .1;
    assert_eq!(part.get("onset"), Some(&Value::from(22u64)));
}

#[test]
fn verification_says_intact_and_what_that_does_not_prove() {
    let ran = demo().run(&["verify", "logistics-run-47", "--replay"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("replay    OK           64 of 64 states reproduced"));
    let verdict = ran.stdout.lines().find(|line| line.starts_with("INTACT   ")).expect("the verdict");
    assert!(verdict.ends_with("  does not prove that inputs were true"), "{verdict}");
    assert!(ran.stdout.contains("UNWITNESSED  a full rewrite by the key holder would not show"));
    let all = demo().run(&["verify", "--all", "--replay"]);
    assert_eq!(all.code, 0, "{}", all.stdout);
    assert_eq!(demo().run(&["verify", "logistics-run-47", "--require-witness"]).code, 6);
}

/// F-35 to F-40: a valid trace verifies, and each kind of corruption is rejected by name.
#[test]
fn the_corruption_suite() {
    let demo = demo();
    let bundle = demo.dir().join("suite.dnd");
    let bundle = bundle.to_str().unwrap();
    assert_eq!(demo.run(&["export", "logistics-run-47", "-o", bundle]).code, 0);
    assert_eq!(demo.run(&["verify", bundle, "--replay"]).code, 0, "the valid trace");
    for (file, code, tick) in [
        ("tampered.dnd", "E0301", Some(18)),
        ("corrupt/payload.dnd", "E0301", None),
        ("corrupt/gap.dnd", "E0302", None),
        ("corrupt/swap.dnd", "E0302", None),
        ("corrupt/metadata.dnd", "E0301", None),
    ] {
        let (exit, answer) = demo.json(&["verify", file]);
        let findings = answer.get("findings").unwrap().as_array().unwrap();
        let first = findings.get(0).unwrap();
        assert_eq!((exit, answer.get("verdict").unwrap().as_str()), (4, Some("TAMPERED")), "{file}");
        assert_eq!(first.get("code").unwrap().as_str(), Some(code), "{file}: {answer}");
        if let Some(tick) = tick {
            assert_eq!(first.get("tick").unwrap().as_u64(), Some(tick), "{file}");
            let run = answer.get("items").unwrap().as_array().unwrap().get(0).unwrap();
            assert_eq!(run.get("last_good").unwrap().as_u64(), Some(tick - 1));
        }
    }
    let (exit, good) = demo.json(&["verify", bundle]);
    let tip = good
        .get("items")
        .unwrap()
        .as_array()
        .unwrap()
        .get(0)
        .unwrap()
        .get("tip")
        .unwrap()
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(exit, 0);
    assert_eq!(
        demo.json(&["verify", "logistics-run-47", "--tip", &tip]).1.get("verdict").unwrap().as_str(),
        Some("VERIFIED")
    );
    let rewritten = "corrupt/rewritten.dnd";
    assert_eq!(demo.run(&["verify", rewritten]).code, 0, "a full rewrite with the key is consistent");
    let (exit, answer) = demo.json(&["verify", rewritten, "--tip", &tip]);
    assert_eq!(exit, 4);
    let first = answer.get("findings").unwrap().as_array().unwrap().get(0).unwrap().clone();
    assert_eq!(first.get("code").unwrap().as_str(), Some("E0304"));
}

/// F-40: the lines of the suite, as the forensic debugger prints them.
#[test]
fn the_suite_prints_the_lines_of_the_debugger() {
    let ran = demo().run(&["verify", "--suite", "corrupt/suite.json"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (
            0,
            "--- RUNNING Valid Trace ---
[PASS] Replay CLI successfully verified the trace (Valid Trace).
--- RUNNING Payload Corruption ---
[PASS] Replay CLI correctly rejected the corrupted trace (Payload Corruption).
--- RUNNING Sequence Gap ---
[PASS] Replay CLI correctly rejected the corrupted trace (Sequence Gap).
--- RUNNING Event Swap ---
[PASS] Replay CLI correctly rejected the corrupted trace (Event Swap).
--- RUNNING Metadata Corruption ---
[PASS] Replay CLI correctly rejected the corrupted trace (Metadata Corruption).
--- ALL TESTS PASSED ---
"
        )
    );
}

/// A suite that passes whatever it is given would prove nothing.
#[test]
fn a_suite_fails_where_a_case_comes_out_otherwise() {
    let place = Place::new();
    let dir = demo().dir();
    let suite = place.path().join("suite.json");
    std::fs::write(place.path().join("no.dnd"), "{}\n").unwrap();
    // In JSON a backslash begins an escape.
    let file = |name: &str| dir.join(name).display().to_string().replace('\\', "/");
    let text = format!(
        r#"{{"cases":[
            {{"case":"good","file":"{0}","expect":"rejected"}},
            {{"case":"bad","file":"{1}","expect":"verified"}},
            {{"case":"for another reason","file":"{1}","expect":"rejected","code":"E0301"}},
            {{"case":"no bundle","file":"no.dnd","expect":"rejected","code":"E0306"}}]}}"#,
        file("logistics-run-47.dnd"),
        file("corrupt/gap.dnd"),
    );
    std::fs::write(&suite, text).unwrap();
    let ran = place.run(&["verify", "--suite", "suite.json"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (
            1,
            "--- RUNNING good ---
[FAIL] Replay CLI said INTACT (good), expected: rejected.
--- RUNNING bad ---
[FAIL] Replay CLI said TAMPERED E0302 E0303 (bad), expected: verified.
--- RUNNING for another reason ---
[FAIL] Replay CLI said TAMPERED E0302 E0303 (for another reason), expected: rejected with E0301.
--- RUNNING no bundle ---
[PASS] Replay CLI correctly rejected the corrupted trace (no bundle).
--- 3 OF 4 TESTS FAILED ---
"
        )
    );
    std::fs::write(&suite, r#"{"cases":[{"case":"gone","file":"gone.dnd","expect":"rejected"}]}"#).unwrap();
    assert_eq!(
        place.run(&["verify", "--suite", "suite.json"]).code,
        3,
        "a missing file is no rejected trace"
    );
    std::fs::write(&suite, r#"{"cases":[{"case":"x","file":"y","expect":"maybe"}]}"#).unwrap();
    assert_eq!(place.run(&["verify", "--suite", "suite.json"]).code, 2);
}

/// D-138: the receipt of any run.
#[test]
fn the_receipt_of_a_run() {
    let demo = demo();
    let receipt = demo.run(&["log", "trip-planner-a", "--format", "receipt"]);
    assert_eq!(receipt.code, 0);
    let lines: Vec<&str> = receipt.stdout.lines().collect();
    assert_eq!(
        lines[..4],
        [
            "BOOT: goal=\"Plan 3-day Basel-Ticino trip under CHF 600\"",
            "SPAWN: 6 agents (researcher, planner, budgeter, skeptic, verifier, coordinator)",
            "",
            "TICK 01: observation.add  | confidence=0.91  | progress=+0.08",
        ]
    );
    assert_eq!(
        lines[lines.len() - 1],
        "DONE: artifact=plan.md | replay_trace=47_transitions | replay_verified=true"
    );
    assert!(Place::new().ok(&["demo"]).starts_with("made dendrer-demo with 19 runs"), "the demo prints none");
    let place = Place::with_store();
    place.run_with(&["commit", "--run", "mine", "--goal", "say hello"], br#"{"type":"goal.complete"}"#);
    assert_eq!(
        place.ok(&["log", "mine", "--format", "receipt"]),
        "BOOT: goal=\"say hello\"\nSPAWN: 1 agent (agent)\n\nTICK 01: goal.complete\n\nDONE: artifact=none | replay_trace=1_transitions | replay_verified=true\n"
    );
    // Progress is computed by the pack of the run; a number that a recorder brings is none.
    let place = Place::with_store();
    let pack = "name: p\nversion: v1\nreducer: delta/1\nstate: {n: {init: 0}}\nprogress:\n  goals: {done: t.type == 'goal.complete'}\n  constraints: {begun: {holds: state.n > 0, weight: 1}, far: {holds: state.n > 5, weight: 3}}\n  weights: {structural_completion: 0.6, constraint_satisfaction: 0.4, skeptic_survival_rate: 0}\n";
    std::fs::write(place.path().join("p.yaml"), pack).unwrap();
    let lines = br#"{"type":"plan.update","agent":"a","metrics":{"progress_delta":0.5},"intent":{"description":"look"}}
{"type":"plan.update","agent":"a","delta":[{"set":"/n","value":1}]}
{"type":"plan.update","agent":"a","delta":[{"set":"/n","value":7}]}
{"type":"plan.update","agent":"a","delta":[{"set":"/n","value":3}]}
{"type":"goal.complete","agent":"a","intent":{"artifact":"plan.md"}}
"#;
    for (run, pack) in [("with", &["--pack", "./p.yaml"][..]), ("without", &[])] {
        place.run_with(&[&["commit", "--run", run][..], pack].concat(), lines);
    }
    let receipt = |run: &str| {
        let receipt = place.ok(&["log", run, "--format", "receipt"]);
        receipt.lines().filter(|line| line.starts_with("TICK")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        receipt("with"),
        [
            "TICK 01: plan.update      | look",
            "TICK 02: plan.update      | progress=+0.10",
            "TICK 03: plan.update      | progress=+0.30",
            "TICK 04: plan.update      | progress=-0.30",
            "TICK 05: goal.complete    | progress=+0.60",
        ]
    );
    assert_eq!(receipt("without")[..2], ["TICK 01: plan.update      | look", "TICK 02: plan.update"]);
    // Markers say where what follows comes from.
    let place = Place::with_demo();
    place.ok(&["fork", "logistics-run-47@21", "--as", "fix", "--reason", "use the feed"]);
    let forked = place.ok(&["log", "fix", "--format", "receipt"]);
    let line = "TICK 22: run.fork         | from logistics-run-47@21 \"use the feed\"";
    assert!(forked.lines().any(|found| found == line), "{forked}");
    place.ok(&["cherrypick", "financial-agent-A@23", "--into", "financial-agent-C"]);
    let picked = place.ok(&["log", "financial-agent-C", "--format", "receipt"]);
    assert!(
        picked.lines().any(|line| line.ends_with(": run.cherrypick   | from financial-agent-A@23")),
        "{picked}"
    );
    let part = demo.run(&["log", "trip-planner-a", "--format", "receipt", "--type", "plan.update"]);
    assert_eq!(part.code, 2, "a part of it would pass for the whole");
}

#[test]
fn reading_verbs_take_a_bundle_and_a_damaged_one_up_to_the_damage() {
    let demo = demo();
    let bundle = demo.dir().join("reading.dnd");
    let bundle = bundle.to_str().unwrap();
    assert_eq!(demo.run(&["export", "logistics-run-47", "-o", bundle]).code, 0);
    let at = |tick: &str| format!("{bundle}@{tick}");
    for (from_bundle, from_store) in [
        (vec!["log".to_owned(), bundle.to_owned()], vec!["log", "logistics-run-47"]),
        (vec!["show".to_owned(), at("22")], vec!["show", "logistics-run-47@22"]),
        (vec!["state".to_owned(), at("tip")], vec!["state", "logistics-run-47@tip"]),
        (vec!["replay".to_owned(), bundle.to_owned()], vec!["replay", "logistics-run-47"]),
    ] {
        let args: Vec<&str> = from_bundle.iter().map(String::as_str).collect();
        let (a, b) = (demo.run(&args), demo.run(&from_store));
        // Only the place where they were read differs.
        let place =
            ["; logistics-run-47, read from reading.dnd", "run  logistics-run-47, read from reading.dnd\n"];
        let found = place.iter().fold(a.stdout, |found, place| found.replace(place, ""));
        let is_about_run = |line: &&str| !line.contains(" records signed, ");
        let of_store: String = b.stdout.split_inclusive('\n').filter(is_about_run).collect();
        assert_eq!((a.code, found), (0, of_store), "{args:?}");
    }
    let runs = demo.json(&["runs", bundle]).1;
    assert_eq!(runs.get("total").unwrap().as_u64(), Some(1));
    assert_eq!(demo.run(&["log", "tampered.dnd", "--to", "tick", "17"]).code, 0);
    let beyond = demo.run(&["log", "tampered.dnd"]);
    assert_eq!(beyond.code, 4);
    assert!(
        beyond.stderr.contains("error[E0301]: tick 18 of logistics-run-47 is damaged"),
        "{}",
        beyond.stderr
    );
}

#[test]
fn the_demo_is_the_same_bytes_on_every_machine() {
    let segment = |place: &Place| {
        place.ok(&["demo", "--no-tour"]);
        std::fs::read(place.path().join("dendrer-demo/.dendrer/segments/00000000.seg")).unwrap()
    };
    assert_eq!(segment(&Place::new()), segment(&Place::new()));
}
