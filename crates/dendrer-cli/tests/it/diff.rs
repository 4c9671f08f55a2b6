//! `diff`: two runs by meaning, as a person and as a program read it.

use dendrer_object::{Value, json};

use crate::support::{Place, Ran, demo, parse, strip};

fn at<'v>(value: &'v Value, path: &str) -> &'v Value {
    path.split('/').fold(value, |value, name| match name.parse::<usize>() {
        Ok(index) => value.as_array().unwrap().get(index).unwrap(),
        Err(_) => value.get(name).unwrap_or_else(|| panic!("no {name} in {value}")),
    })
}

fn run(args: &[&str]) -> Ran {
    demo().run(args)
}

fn document(args: &[&str], code: i32) -> Value {
    let ran = run(&[args, &["--json"]].concat());
    assert_eq!(ran.code, code, "{args:?}: {}{}", ran.stdout, ran.stderr);
    let answer = parse(&ran.stdout);
    answer
}

const PAIR: [&str; 3] = ["diff", "trip-planner-a", "trip-planner-b"];

/// D-48, D-50: the transcript of the paper's comparison.
#[test]
fn two_runs_are_compared_by_meaning() {
    let ran = run(&[&PAIR[..], &["--from", "tick", "28", "--to", "tick", "36"]].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(
        ran.stdout,
        r#"they part at tick 31|32; 5 of 9 pairs differ, and the end
b is a fork of a at tick 30; its marker, tick 31: "look for a cheaper room"
found structural 1, semantic 3, confidence 1, outcome 1

31|32  semantic  action.request
  ~ action.params.max_price_chf  120 -> 90
32|33  semantic  action.result
  ~ action.params.max_price_chf        120 -> 90
  ~ result.output.hotel                "Hotel Krone" -> "Hostel Basel"
  ~ result.output.price_chf_per_night  118 -> 73.5
  ~ result.output.rating               4 -> 2
33|34  confidence  plan.update
  ~ intent.confidence  0.840 -> 0.790
34|35  structural  policy.decision | observation.add
  - budgeter  allow "the offer fits into what is left"
  + verifier  "a hostel, and the beds are shared"
36|37  semantic  action.result
  ~ state.budget_remaining  add -236 -> add -147
  ~ state.hotel.name        "Hotel Krone" -> "Hostel Basel"
  ~ state.hotel.price_chf   236 -> 147
  ~ state.hotel_rating      4 -> 2
end 36|37  outcome
  ~ budget_remaining  42 -> 131
  ~ hotel.name        "Hotel Krone" -> "Hostel Basel"
  ~ hotel.price_chf   236 -> 147
  ~ hotel_rating      4 -> 2
"#
    );
}

#[test]
fn an_inserted_step_is_pointed_out_and_content_lines_up_what_follows() {
    let ran = run(&["diff", "trip-planner-a", "trip-planner-c", "--to", "36"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (0, "help: 32|33 looks like one inserted step in b; --align content lines up what follows\n")
    );
    assert!(
        ran.stdout.starts_with("they part at tick 32|33; 5 of 36 pairs differ, and the end\n"),
        "{}",
        ran.stdout
    );
    let ran = run(&["diff", "trip-planner-a", "trip-planner-c", "--align", "content"]);
    assert!(
        ran.stdout.starts_with(
            r#"they part at tick -|33; 3 of 42 pairs differ, and the end
b is a fork of a at tick 30; its marker, tick 31: "ask once more"
found structural 6, semantic 3, confidence 1, outcome 1

-|33  structural  (none) | observation.add
  + planner  "is that all?"
38|-  structural  action.request | (none)
  - researcher  allow http_get {"url":"https://rail.example/times?from=lugano&to=bellinzona"} "check the trains from Lugano to Bellinzona"
"#
        ) && ran.stdout.contains("; 3 of 42 pairs differ, and the end\n"),
        "{}",
        ran.stdout
    );
    let json = document(&["diff", "trip-planner-c", "trip-planner-a"], 0);
    assert_eq!(at(&json, "shift").to_string(), r#"{"a":33,"b":32,"in":"a","steps":1}"#);
}

/// D-48: the flags narrow what is compared and what is listed.
#[test]
fn kinds_places_and_forms_are_chosen() {
    let ask = |args: &[&str]| {
        let ran = run(&[&PAIR[..], args, &["--to", "36"]].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{args:?}");
        ran.stdout
    };
    assert_eq!(
        ask(&["--only-changes", "--type", "structural,confidence"]),
        r#"33|34  confidence  plan.update
  ~ intent.confidence  0.840 -> 0.790
34|35  structural  policy.decision | observation.add
  - budgeter  allow "the offer fits into what is left"
  + verifier  "a hostel, and the beds are shared"
"#
    );
    // Both spellings of a place, of the state with or without its name.
    let hotel = "36|37  semantic  action.result
  ~ state.hotel.name       \"Hotel Krone\" -> \"Hostel Basel\"
  ~ state.hotel.price_chf  236 -> 147
";
    for place in ["hotel", "state.hotel", "/state/hotel", "/hotel"] {
        assert_eq!(ask(&["--only-changes", "--type", "semantic", "--path", place]), hotel, "{place}");
    }
    let result = ask(&["--only-changes", "--path", "result.output"]);
    assert!(result.starts_with("32|33  semantic  action.result\n  ~ result.output.hotel  "), "{result}");
    assert_eq!(result.lines().count(), 4, "what stands in the state is not part of it: {result}");
    let ignored =
        ["--ignore", "state", "--ignore", "/action/params", "--ignore", "result", "--ignore", "intent"];
    let left = ask(&[&["--type", "semantic,confidence,outcome"], &ignored[..]].concat());
    assert_eq!(
        left,
        "no difference in what was asked for; 36 pairs compared
b is a fork of a at tick 30; its marker, tick 31: \"look for a cheaper room\"
compared a 1..36 with b 1..37, aligned by tick
ignored 4 paths
"
    );
    assert_eq!(
        ask(&["--stat"]).lines().skip(3).collect::<Vec<_>>(),
        [
            "type                               pairs  equal  structural  semantic  confidence",
            "action.request                         2      1           0         1           0",
            "action.result                          2      0           0         2           0",
            "plan.update                            1      0           0         0           1",
            "policy.decision | observation.add      1      0           1         0           0",
        ]
    );
    let beside = ask(&["--side-by-side", "--type", "structural"]);
    assert!(
        beside.contains(
            "34 policy.decision allow \"the offer fits into what is left\"  structural  35 observation.add \"a hostel, and the beds are shared\"\n"
        ),
        "{beside}"
    );
    assert!(ask(&["-n", "2"]).contains("\n2 of 5 pairs listed (use -n 0 for all)\n"));
    let narrow = ask(&["--width", "70"]);
    assert!(narrow.lines().all(|line| line.chars().count() <= 70) && !narrow.contains("..."), "{narrow}");
    assert_eq!(
        ask(&["--fields", "a_tick,b_tick,kinds", "-n", "1"]),
        "a_tick  b_tick  kinds\n    31      32  [\"semantic\"]\n1 item shown\n"
    );
}

#[test]
fn a_document_and_a_stream_say_the_same() {
    let json = document(&[&PAIR[..], &["--to", "36"]].concat(), 0);
    assert_eq!((at(&json, "fork_point"), at(&json, "pairs")), (&30u64.into(), &36u64.into()));
    assert_eq!(
        at(&json, "counts").to_string(),
        r#"{"confidence":1,"outcome":1,"semantic":3,"structural":1}"#
    );
    assert_eq!(
        at(&json, "items/0/changes").to_string(),
        r#"[{"a":120,"as":"value","b":90,"kind":"semantic","path":"/action/params/max_price_chf"}]"#
    );
    let added = r#"{"a":[{"add":"/budget_remaining","value":-236}],"as":"ops","b":[{"add":"/budget_remaining","value":-147}],"kind":"semantic","path":"/state/budget_remaining"}"#;
    assert_eq!(at(&json, "items/4/changes/0").to_string(), added);
    assert_eq!(at(&json, "outcome/state"), &Value::from("differs"));
    assert_eq!(at(&json, "markers/0/says"), &Value::from("\"look for a cheaper room\""));
    let stream = run(&[&PAIR[..], &["--to", "36", "--jsonl"]].concat());
    let lines: Vec<Value> =
        stream.stdout.lines().map(|line| json::parse_tagged(line.as_bytes()).unwrap()).collect();
    assert_eq!(lines.len(), 6);
    assert_eq!(lines[..5], at(&json, "items").as_array().unwrap().iter().cloned().collect::<Vec<_>>());
    let summary = at(&lines[5], "summary");
    assert_eq!((at(summary, "items"), at(summary, "outcome")), (&5u64.into(), at(&json, "outcome")));
    // As printed in the design, for all that the two did.
    let short = document(&[&PAIR[..], &["--type", "semantic", "--summary", "--exit-code"]].concat(), 1);
    assert_eq!(
        (at(&short, "counts").to_string(), at(&short, "items").to_string(), at(&short, "note")),
        (r#"{"semantic":6}"#.into(), "[]".into(), &Value::from("summary only"))
    );
    assert_eq!(at(&short, "fork_point"), &30u64.into());
    let types = document(&[&PAIR[..], &["--to", "36", "--stat"]].concat(), 0);
    assert_eq!(at(&types, "types/2/type"), &Value::from("plan.update"));
}

#[test]
fn exit_codes_are_those_of_the_answer() {
    let code = |args: &[&str]| run(&[&["diff"], args].concat()).code;
    assert_eq!(code(&["trip-planner-a", "trip-planner-b", "--exit-code"]), 1);
    assert_eq!(code(&["trip-planner-a", "trip-planner-b", "--exit-code", "--to", "30"]), 0);
    assert_eq!(code(&["trip-planner-a", "trip-planner-b"]), 0);
    assert_eq!(code(&["logistics-run-47", "logistics-run-47.dnd", "--exit-code"]), 0);
    assert_eq!(code(&["trip-planner-a@30", "trip-planner-b@30", "--exit-code"]), 0);
    assert_eq!(code(&["trip-planner-a@30", "trip-planner-a@31", "--exit-code"]), 1);
    assert_eq!(code(&["trip-planner-a", "nope"]), 3);
    assert_eq!(code(&["trip-planner-a", "nope.dnd"]), 3);
    assert_eq!(code(&["trip-planner-a", "trip-planner-b", "--from", "tick", "99"]), 3);
    assert_eq!(code(&["trip-planner-a", "trip-planner-b@99"]), 3);
    assert_eq!(code(&["trip-planner-a", "trip-planner-b", "--from", "9", "--to", "8"]), 2);
    assert_eq!(code(&["trip-planner-a@7", "trip-planner-b", "--from", "9"]), 2);
    assert_eq!(code(&["trip-planner-a", "trip-planner-b", "--path", "a..b"]), 3);
    assert_eq!(code(&["trip-planner-a", "trip-planner-b", "--ignore", ""]), 2);
    // Acceptance 23 of the command line: how many places were to be left out, and which were not there.
    let ignored = |paths: &[&str]| {
        let flags = paths.iter().flat_map(|path| ["--ignore", *path]);
        let args: Vec<&str> = ["diff", "trip-planner-a", "trip-planner-b"].into_iter().chain(flags).collect();
        let (_, found) = demo().json(&args);
        let line =
            demo().run(&args).stdout.lines().find(|line| line.starts_with("ignored")).map(str::to_owned);
        (line.unwrap_or_default(), found.get("ignored").unwrap().to_string())
    };
    assert_eq!(ignored(&[]), (String::new(), "[]".to_owned()));
    // A place that is declared and had nothing to leave out is listed; one that is not declared is an error.
    let both = ignored(&["hotel.*", "context_stack"]);
    assert_eq!(both.0, "ignored 2 paths; nothing was left out at context_stack");
    assert_eq!(both.1, r#"[{"met":true,"path":"/state/hotel"},{"met":false,"path":"/state/context_stack"}]"#);
    assert_eq!(code(&["trip-planner-a", "trip-planner-b", "--ignore", "hotle"]), 3);
    assert_eq!(ignored(&["hotel"]).0, "ignored 1 path");
    assert_eq!(code(&["logistics-run-47", "corrupt/payload.dnd"]), 4);
    assert_eq!(code(&["trip-planner-a"]), 2);
    // Nothing to list is a document all the same.
    let none = document(&["diff", "trip-planner-a", "trip-planner-a", "--exit-code"], 0);
    assert_eq!((at(&none, "items").to_string(), at(&none, "first")), ("[]".into(), &Value::Null));
    let stream = run(&["diff", "trip-planner-a", "trip-planner-a", "--jsonl"]);
    assert_eq!((stream.code, stream.stdout.lines().count()), (0, 1));
    let ran = run(&["diff", "trip-planner-a", "trip-planner-a"]);
    assert!(ran.stdout.contains("\nthey share ticks 1..47\n"), "{}", ran.stdout);
}

#[test]
fn forms_that_exclude_each_other_are_refused() {
    for flags in [
        "--stat --jsonl",
        "--summary --jsonl",
        "--stat --summary",
        "--only-changes --json",
        "--only-changes --stat",
        "--only-changes --summary",
        "--side-by-side --json",
        "--side-by-side --jsonl",
        "--side-by-side --stat",
        "--side-by-side --fields a_tick",
    ] {
        let flags: Vec<&str> = flags.split(' ').collect();
        let ran = run(&[&PAIR[..], &flags].concat());
        assert_eq!(ran.code, 2, "{flags:?}: {}", ran.stdout);
        assert!(!ran.stdout.contains("dendrer.diff/1"), "{flags:?}: never half an answer");
    }
}

/// D-51: what was withheld is neither equal nor different.
#[test]
fn what_was_withheld_is_named_and_never_equal() {
    let place = Place::new();
    let file = place.path().join("less.dnd");
    let file = file.to_str().unwrap();
    assert_eq!(run(&["export", "trip-planner-a", "-o", file]).code, 0);
    strip(file, &["/delta", "/intent/confidence"]);
    let range = ["--from", "31", "--to", "34"];
    let ran = run(&[&["diff", file, "trip-planner-b", "--exit-code"], &range[..]].concat());
    let dir = format!("{}/", place.path().display());
    assert_eq!(
        (ran.code, ran.stdout.replace(&dir, "").as_str()),
        (
            6,
            r#"they part at tick 31|32; 3 of 4 pairs differ, 1 not known
a trip-planner-a, b trip-planner-b, read from less.dnd and .dendrer
b is a fork of a at tick 30; its marker, tick 31: "look for a cheaper room"
found structural 1, semantic 2, not comparable 5

31|32  semantic  action.request
  ~ action.params.max_price_chf  120 -> 90
  ? delta  not comparable (erased or withheld in a)
  ? intent.confidence  not comparable (erased or withheld in a)
32|33  semantic  action.result
  ~ action.params.max_price_chf        120 -> 90
  ~ result.output.hotel                "Hotel Krone" -> "Hostel Basel"
  ~ result.output.price_chf_per_night  118 -> 73.5
  ~ result.output.rating               4 -> 2
  ? delta  not comparable (erased or withheld in a)
33|34  not known  plan.update
  ? delta  not comparable (erased or withheld in a)
  ? intent.confidence  not comparable (erased or withheld in a)
34|35  structural  policy.decision | observation.add
  - budgeter  allow "the offer fits into what is left"
  + verifier  "a hostel, and the beds are shared"
"#
        )
    );
    let json = document(&["diff", "trip-planner-b", file, "--type", "confidence"], 6);
    assert_eq!(
        (at(&json, "items/0/kinds").to_string(), at(&json, "items/0/not_comparable").to_string()),
        ("[]".into(), r#"[{"closed_in":["b"],"path":"/intent/confidence"}]"#.into())
    );
    assert_eq!(
        (at(&json, "certainty"), at(&json, "unclear")),
        (&Value::from("unavailable"), at(&json, "not_comparable"))
    );
    // What nobody asks about is not missed, and the same records are the same whatever of them can be read.
    let blind = ["--ignore", "state", "--ignore", "intent.confidence", "--to", "33"];
    assert_eq!(run(&[&["diff", file, "trip-planner-b"], &blind[..]].concat()).code, 0);
    assert_eq!(run(&["diff", file, "trip-planner-a", "--exit-code"]).code, 0);
    // A state that is not known is no state to compare. What both share was read where it can be.
    let ran = run(&["diff", file, "trip-planner-b", "--type", "outcome", "--to", "36"]);
    assert_eq!(ran.code, 6);
    let why = "end 36|37  outcome\n  not comparable: the delta of tick 31 of a was erased or withheld\n";
    assert!(ran.stdout.contains(why), "{}", ran.stdout);
}

/// D-57: the first pair behind the shared ticks that differs is the onset, and exact.
#[test]
fn a_divergence_is_bisected_to_the_first_transition_that_differs() {
    let ask = |args: &[&str]| run(&[&["bisect"], args].concat());
    let ran =
        ask(&["trip-planner-a", "--divergence", "trip-planner-b", "--no-chain", "--expect-onset", "31"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("ONSET (exact)  tick 31  action.request  by planner")
            && ran.stdout.contains(
                "  differs from trip-planner-b:  31|32  semantic  action.request\n    ~ action.params.max_price_chf  120 -> 90\n"
            ),
        "{}",
        ran.stdout
    );
    let json = document(&["bisect", "trip-planner-b", "--divergence", "trip-planner-a"], 0);
    assert_eq!((at(&json, "onset"), at(&json, "certainty")), (&32u64.into(), &Value::from("exact")));
    assert_eq!(at(&json, "divergence/b_tick"), &31u64.into());
    let never = ask(&["logistics-run-47", "--divergence", "logistics-run-47.dnd"]);
    assert_eq!(never.code, 1);
    assert!(
        never.stdout.starts_with(
            "no divergence: each transition up to tick 64 is what logistics-run-47 has beside it\n"
        ),
        "{}",
        never.stdout
    );
    let before = ask(&["trip-planner-a@30", "--divergence", "trip-planner-b"]);
    assert_eq!(before.code, 1, "{}", before.stdout);
    let begun = document(&["bisect", "trip-planner-a", "--divergence", "hostile-1"], 0);
    assert_eq!((at(&begun, "onset"), at(&begun, "outcome")), (&0u64.into(), &Value::from("initial")));
    assert_eq!(ask(&["trip-planner-a", "--divergence", "trip-planner-b@3"]).code, 2);
    assert_eq!(ask(&["trip-planner-a", "--divergence", "nope"]).code, 3);
    assert_eq!(ask(&["trip-planner-a", "--divergence", "trip-planner-b", "--anomaly", "x"]).code, 2);
    // What cannot be compared may be where they part.
    let place = Place::new();
    let file = place.path().join("less.dnd");
    let file = file.to_str().unwrap();
    assert_eq!(run(&["export", "trip-planner-a", "-o", file]).code, 0);
    strip(file, &["/action"]);
    let ran = ask(&[file, "--divergence", "trip-planner-b"]);
    assert_eq!(ran.code, 6);
    assert!(
        ran.stderr
            .contains("error[E0311]: where it differs from trip-planner-b cannot be known from tick 31 on"),
        "{}",
        ran.stderr
    );
}

/// Y-27: two runs with one frontier have no difference, in whatever order the effects answered.
#[cfg(unix)]
#[test]
fn runs_with_one_frontier_have_no_difference() {
    let place = Place::with_store();
    let graph = "graph ask\ne1 tool.left(1) -> rec frontier[1]\ne2 tool.right(2) -> rec frontier[2]\nn3 both(e1, e2) pure\nreplay(graph, frontier) == output required\n";
    let pack = "name: ask\nversion: v1\ndefine:\n  both(a, b): \"[a, b]\"\ntools:\n  tool.left: {effect: read}\n  tool.right: {effect: read}\n";
    std::fs::write(place.path().join("ask.graph"), graph).unwrap();
    std::fs::write(place.path().join("ask.yaml"), pack).unwrap();
    for (name, left, right) in [
        ("a", "echo '[1]'", "sleep 0.4; echo '[2]'"),
        ("b", "sleep 0.4; echo '[1]'", "echo '[2]'"),
        ("c", "sleep 0.4; echo '[1]'", "echo '[3]'"),
    ] {
        let (left, right) = (format!("tool.left={left}"), format!("tool.right={right}"));
        place.ok(&[
            "graph",
            "run",
            "ask.graph",
            "--pack",
            "ask.yaml",
            "--as",
            name,
            "--exec",
            &left,
            "--exec",
            &right,
        ]);
    }
    let found = place.run(&["diff", "a", "b", "--exit-code"]);
    assert!(found.code == 0 && found.stdout.contains("no difference"), "{}", found.stdout);
    assert_eq!(place.run(&["diff", "a", "b", "--exit-code", "--align", "tick"]).code, 1);
    let found = place.run(&["diff", "b", "c", "--exit-code"]);
    assert!(found.code == 1 && found.stdout.contains("result.output[0]"), "{}", found.stdout);
    let refused = place.run(&["diff", "a", "b", "--align", "step"]);
    assert!(refused.code == 2 && refused.stderr.contains("E0106"), "{}", refused.stderr);
    place.run_with(&["commit", "--run", "plain"], b"{\"type\":\"observation.add\"}\n");
    let refused = place.run(&["diff", "a", "plain", "--align", "edge"]);
    assert!(refused.code == 2 && refused.stderr.contains("two runs of graphs"), "{}", refused.stderr);
}
