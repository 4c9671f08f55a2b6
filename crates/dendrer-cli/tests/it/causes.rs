//! What led to an onset, what it looks like, and the casebook.

use dendrer_object::Value;

use crate::support::{Place, demo};

fn text<'v>(value: &'v Value, path: &str) -> Option<&'v str> {
    at(value, path).and_then(Value::as_str)
}

fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, name| match name.parse::<usize>() {
        Ok(index) => value.as_array()?.get(index),
        Err(_) => value.get(name),
    })
}

fn ticks(value: Option<&Value>) -> Vec<u64> {
    let items = value.and_then(Value::as_array).into_iter().flat_map(|items| items.iter());
    items.filter_map(|item| item.get("tick")?.as_u64()).collect()
}

/// A run whose budget is passed at tick 6, and would not be without tick 2 and 4.
const SPENDING: &str = r#"{"type":"plan.update","agent":"a","intent":{"description":"two trips"},"delta":[{"set":"/spent","value":0},{"set":"/limit","value":10}]}
{"type":"memory.write","agent":"a","intent":{"description":"a first trip"},"delta":[{"add":"/spent","value":4}]}
{"type":"memory.write","agent":"a","intent":{"description":"a note"},"delta":[{"set":"/note","value":"x"}]}
{"type":"memory.write","agent":"a","intent":{"description":"a second trip"},"delta":[{"add":"/spent","value":4},{"append":"/trips","value":2}]}
{"type":"memory.write","agent":"a","intent":{"description":"coffee"},"delta":[{"add":"/spent","value":1}]}
{"type":"action.request","agent":"a","author":"runtime","action":{"tool":"book"},"policy":{"decision":"allow"},"intent":{"description":"a hotel"},"delta":[{"add":"/spent","value":8}]}
"#;

fn spending() -> Place {
    let place = Place::with_store();
    let ran = place.run_with(&["commit", "--run", "spending", "--as", "runtime"], SPENDING.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    place
}

const OVER: &str = "has(state.spent) && state.spent > 10";

#[test]
fn contributors_are_shown_with_the_run_made_again_without_them() {
    let place = spending();
    let ran = place.run(&["bisect", "spending", "--predicate", OVER, "--contributors", "--no-chain"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let at = ran.stdout.find("CONTRIBUTORS").unwrap_or_else(|| panic!("{}", ran.stdout));
    let lines: Vec<&str> = ran.stdout[at..].lines().collect();
    assert_eq!(
        lines[0],
        "CONTRIBUTORS (exact for the recorded intents, heuristic for what an agent would then have done)"
    );
    assert_eq!(lines[1], "  tick 2  memory.write  \"a first trip\"");
    assert_eq!(lines[2], "  tick 4  memory.write  \"a second trip\"");
    assert!(lines[3].starts_with("  with them     tick 6 violation FAIL   state root "), "{}", lines[3]);
    assert!(lines[4].starts_with("  without them  tick 6 compliant OK   state root "), "{}", lines[4]);
    assert!(
        lines[5].starts_with(
            "  smallest: every smaller set was tried   (4 of 5 earlier transitions can matter, "
        )
    );
    assert_eq!(
        lines[6],
        "DIAGNOSIS  looks contingent (policy-level): compliant until 5, broken at 6 by what policy allowed"
    );

    let (_, answer) = place.json(&["bisect", "spending", "--predicate", OVER, "--contributors"]);
    assert_eq!(ticks(crate::causes::at(&answer, "contributors.items")), [2, 4]);
    assert_eq!(text(&answer, "contributors.shown"), Some("smallest"));
    assert_eq!(text(&answer, "contributors.counterfactual"), Some("heuristic"));
    let (_, state) = place.json(&["state", "spending@6"]);
    let recorded = state.get("state_root").and_then(Value::as_str);
    assert_eq!(text(&answer, "contributors.with.state_root"), recorded);
    assert_ne!(text(&answer, "contributors.without.state_root"), recorded);
}

#[test]
fn an_onset_that_comes_about_by_itself_has_no_contributors() {
    let ran = demo().run(&[
        "bisect",
        "logistics-run-47",
        "--predicate",
        "kernel.policy_compliant",
        "--contributors",
        "--no-chain",
    ]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("  none: tick 22 is violated without any of them   (every set was tried: "),
        "{}",
        ran.stdout
    );
}

#[test]
fn what_no_longer_fits_without_a_contributor_is_told() {
    let place = Place::with_store();
    let lines = r#"{"type":"plan.update","agent":"a","delta":[{"set":"/x","value":5},{"set":"/y","value":1}]}
{"type":"memory.write","agent":"a","delta":[{"add":"/y","value":1}]}
{"type":"memory.write","agent":"a","delta":[{"set":"/done","value":true}]}
{"type":"memory.write","agent":"a","delta":[{"add":"/x","value":9}]}
"#;
    assert_eq!(place.run_with(&["commit", "--run", "r"], lines.as_bytes()).code, 0);
    let done = "has(state.done) && has(state.x) && state.x > 4";
    let ran = place.run(&["bisect", "r", "--predicate", done, "--contributors"]);
    assert!(ran.stdout.contains("  tick 1  plan.update"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("  not applied then: tick 2   (at tick 2: delta operation 0 at y"),
        "{}",
        ran.stdout
    );
    let (_, answer) = place.json(&["bisect", "r", "--predicate", done, "--contributors"]);
    assert_eq!(ticks(at(&answer, "contributors.without.unapplied")), [2]);
    // Without tick 1 the onset could not happen, which is no answer.
    let over = "has(state.x) && state.x > 13 && has(state.y) && state.y > 1";
    let (_, answer) = place.json(&["bisect", "r", "--predicate", over, "--contributors"]);
    assert_eq!(ticks(at(&answer, "contributors.items")), [2]);
    let within = "has(state.x) && state.x > 9 && state.x < 16";
    let (_, answer) = place.json(&["bisect", "r", "--predicate", within, "--contributors"]);
    assert_eq!(text(&answer, "contributors.outcome"), Some("nothing"));
}

#[test]
fn a_foundational_onset_offers_no_fork() {
    let ran =
        demo().run(&["bisect", "planning-run-12", "--predicate", "kernel.policy_compliant", "--no-chain"]);
    assert_eq!(ran.code, 0);
    let at = ran.stdout.find("DIAGNOSIS").unwrap_or_else(|| panic!("{}", ran.stdout));
    let end = ran.stdout.find("SEARCH").unwrap_or_else(|| panic!("{}", ran.stdout));
    assert_eq!(
        &ran.stdout[at..end],
        "DIAGNOSIS  looks foundational (prompt-level): violated from the first commitment on
  DO NOT fork: the only state from before the problem is the one that the run began with
  (a) compare the goal text with what kernel.policy_compliant requires
  (b) correct the goal or the task pack, then run again
  (c) keep this run as a post-mortem artifact
  (d) use it as a reference for what to avoid
OR         looks contingent (state-level): compliant until 0, broken by what was written at 1
  dendrer fork --run planning-run-12 --from tick 0 --policy 'review each plan.update before it is committed'
"
    );
    let help = "help: dendrer bisect planning-run-12 --predicate kernel.policy_compliant --diagnosis foundational --record";
    assert!(ran.stderr.contains(help), "{}", ran.stderr);
    let (_, answer) = demo().json(&["bisect", "planning-run-12", "--predicate", "kernel.policy_compliant"]);
    assert_eq!(answer.get("suggestion"), None);
    assert_eq!(text(&answer, "diagnosis.offered"), Some("foundational"));
    assert_eq!(text(&answer, "diagnosis.decided"), None);
    // A run that begins in violation has no state from before it, either.
    let place = Place::with_store();
    let line = r#"{"type":"plan.update","agent":"a"}"#;
    assert_eq!(place.run_with(&["commit", "--run", "r"], line.as_bytes()).code, 0);
    let ran = place.run(&["bisect", "r", "--predicate", "!has(state.done)"]);
    assert!(
        ran.stdout.contains("foundational (prompt-level): violated in the initial state"),
        "{}",
        ran.stdout
    );
    assert!(
        ran.stdout.contains("DO NOT fork: no state in this run is from before the problem"),
        "{}",
        ran.stdout
    );
}

/// Pasted into a shell, that is.
#[test]
#[cfg(unix)]
fn the_suggestion_is_a_command_that_works_when_pasted() {
    let cases: [(&str, &[&str], &str); 3] = [
        ("logistics-run-47", &["--predicate", "kernel.policy_compliant"], "--tool-policy"),
        ("logistics-planner-1", &["--predicate", "kernel.policy_compliant"], ""),
        ("spending", &["--predicate", OVER], "--policy"),
    ];
    for (run, flags, flag) in cases {
        let place = Place::with_demo();
        assert_eq!(
            place.run_with(&["commit", "--run", "spending", "--as", "runtime"], SPENDING.as_bytes()).code,
            0
        );
        let out = place.ok(&[&["bisect", run], flags].concat());
        let line = out.lines().find_map(|line| line.strip_prefix("SUGGESTION  "));
        let line = line.unwrap_or_else(|| panic!("{out}"));
        assert!(line.contains(flag), "{line}");
        let binary = env!("CARGO_BIN_EXE_dendrer");
        let script = line.replacen("dendrer", binary, 1);
        let shell = std::process::Command::new("sh")
            .args(["-c", &script])
            .current_dir(place.path())
            .env("HOME", place.path())
            .output()
            .unwrap();
        assert!(shell.status.success(), "{script}: {}", String::from_utf8_lossy(&shell.stderr));
        let forks = place.ok(&["runs"]);
        assert!(forks.contains(&format!("{run}+2")), "{forks}");
    }
}

#[test]
fn a_person_decides_and_it_is_written_down() {
    let place = spending();
    let before = place.json(&["runs"]).1;
    let tip = |runs: &Value, name: &str| {
        let items = runs.get("items").and_then(Value::as_array).unwrap();
        items
            .iter()
            .find(|run| text(run, "name") == Some(name))
            .map(|run| text(run, "tip").unwrap().to_owned())
    };
    let asked = [
        "bisect",
        "spending",
        "--predicate",
        OVER,
        "--contributors",
        "--diagnosis",
        "foundational",
        "--record",
    ];
    let ran = place.run(&asked);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for part in [
        "DIAGNOSIS  looks contingent (policy-level): ",
        "DECIDED    foundational (prompt-level)   by a person; post-mortem artifact\n",
        "  DO NOT fork: the problem was there before the run\n",
        "RECORDED   casebook@1  bisect.result   hash ",
        "RECORDED   casebook@2  causal.chain   hash ",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("SUGGESTION"), "{}", ran.stdout);
    let after = place.json(&["runs"]).1;
    assert_eq!(tip(&before, "spending"), tip(&after, "spending"), "looking at a run does not change it");
    assert!(tip(&after, "casebook").is_some());

    let (_, shown) = place.json(&["show", "casebook@1", "--raw-json"]);
    let shown = shown.to_string();
    for part in [
        "\"bisect\":{",
        "\"decided\":\"foundational\"",
        "\"onset\":6",
        "\"contributors\":{",
        "dendrer.bisect/1",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // No sentence is on record: they follow from the rest.
    for part in ["\"words\":", "\"evidence\":", "\"summary\":", "\"why\":"] {
        assert!(!shown.contains(part), "{part}: {shown}");
    }
    // The onset it was about is bound by a link.
    let (_, onset) = place.json(&["log", "spending"]);
    let id = text(&onset, "items.5.id").unwrap().to_owned();
    assert!(shown.contains(&id), "{shown}");

    let (_, at_onset) = place.json(&["show", "spending@onset"]);
    assert_eq!(at_onset.get("tick").and_then(Value::as_u64), Some(6));
    // The casebook is verified and replayed like any run.
    let verified = place.ok(&["verify", "--all", "--replay"]);
    assert!(verified.contains("casebook"), "{verified}");
    // Without --record nothing is written.
    let size = place.json(&["runs"]).1.get("items").unwrap().to_string();
    place.ok(&["bisect", "spending", "--predicate", OVER, "--diagnosis", "contingent-state"]);
    assert_eq!(place.json(&["runs"]).1.get("items").unwrap().to_string(), size);
    // A later bisect without an onset is the last one.
    assert_eq!(place.run(&["bisect", "spending", "--predicate", "has(state.nothing)", "--record"]).code, 1);
    let ran = place.run(&["show", "spending@onset"]);
    assert_eq!(ran.code, 3);
    assert!(
        ran.stderr.contains("error[E0120]: the last bisect of spending that is recorded found no onset"),
        "{}",
        ran.stderr
    );
}

#[test]
fn nobody_is_asked_where_there_is_no_terminal() {
    let ran = demo().run(&[
        "bisect",
        "logistics-run-47",
        "--predicate",
        "kernel.policy_compliant",
        "--diagnosis",
        "ask",
    ]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("error[E0106]: --diagnosis ask asks on a terminal"), "{}", ran.stderr);
    assert!(ran.stderr.contains("--diagnosis contingent-state --record"), "{}", ran.stderr);
    let refused: [(&[&str], i32, &str); 4] = [
        (&["--predicate", "has(state.nothing)", "--diagnosis", "foundational"], 2, "E0106"),
        (&["--holds", "true", "--holds", "true", "--record"], 2, "E0106"),
        (&["--divergence", "planning-run-12", "--contributors"], 2, "error"),
        (&["--divergence", "planning-run-12", "--diagnosis", "ask"], 2, "error"),
    ];
    for (flags, code, word) in refused {
        let ran = demo().run(&[&["bisect", "logistics-run-47"], flags].concat());
        assert_eq!(ran.code, code, "{flags:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(word), "{flags:?}: {}", ran.stderr);
    }
}

#[test]
fn a_diff_is_written_down_and_changes_neither_run() {
    let place = Place::with_demo();
    let tips = || {
        let runs = place.json(&["runs"]).1;
        let items = runs.get("items").and_then(Value::as_array).unwrap();
        let tips = items.iter().filter(|run| text(run, "name") != Some("casebook"));
        let mut tips: Vec<String> =
            tips.map(|run| format!("{:?}{:?}", text(run, "name"), text(run, "tip"))).collect();
        tips.sort();
        tips
    };
    let before = tips();
    let out = place.ok(&["diff", "logistics-run-47", "logistics-planner-1", "--summary", "--record"]);
    assert!(out.contains("RECORDED   casebook@1  diff.summary   hash "), "{out}");
    let (_, answer) = place.json(&["diff", "logistics-run-47", "logistics-planner-1", "--record"]);
    assert_eq!(at(&answer, "recorded.0.tick").and_then(Value::as_u64), Some(2));
    assert_eq!(tips(), before);
    let (_, shown) = place.json(&["show", "casebook@2", "--raw-json"]);
    let shown = shown.to_string();
    assert!(shown.contains("\"counts\":{") && !shown.contains("\"items\":[{"), "{shown}");
    place.ok(&["verify", "casebook", "--replay"]);
}

#[test]
fn labels_name_moments_wherever_a_run_or_a_place_is_taken() {
    let place = spending();
    let out = place.ok(&["label", "before-the-hotel", "spending@5"]);
    assert!(out.starts_with("RECORDED   casebook@1  memory.write   hash "), "{out}");
    place.ok(&["label", "trips", "spending", "--by", "ann"]);
    for (rev, tick) in
        [("before-the-hotel", 5), ("spending@before-the-hotel", 5), ("trips@3", 3), ("trips", 6)]
    {
        let (code, shown) = place.json(&["show", rev]);
        assert_eq!((code, shown.get("tick").and_then(Value::as_u64)), (0, Some(tick)), "{rev}");
    }
    let (_, log) = place.json(&["log", "trips", "--from", "before-the-hotel"]);
    assert_eq!(ticks(log.get("items")), [5, 6]);
    // Verbs that take a run and no place.
    place.ok(&["verify", "trips"]);
    place.ok(&["fork", "--run", "trips", "--from", "before-the-hotel", "--as", "cheaper"]);
    // The ticks that a fork shares are its own, too.
    assert_eq!(
        place.json(&["show", "cheaper@before-the-hotel"]).1.get("tick").and_then(Value::as_u64),
        Some(5)
    );
    let list = place.ok(&["label"]);
    assert!(list.contains("before-the-hotel  spending@5") && list.ends_with("2 labels\n"), "{list}");

    let refused: [(&[&str], i32, &str); 8] = [
        (&["label", "trips", "spending@2"], 2, "there is such a label already"),
        (&["label", "spending", "spending@2"], 2, "a run is called that"),
        (&["label", "onset", "spending@2"], 2, "it means a place in every run"),
        (&["label", "12", "spending@2"], 2, "it means a place in every run"),
        (&["label", "a b", "spending@2"], 2, "it is made of letters"),
        (&["label", "late", "spending@99"], 3, "there is no tick 99"),
        (&["label", "trip", "--remove"], 3, "did you mean trips?"),
        (&["show", "spending@before-the-hotle"], 3, "did you mean before-the-hotel?"),
    ];
    for (args, code, part) in refused {
        let ran = place.run(args);
        assert_eq!(ran.code, code, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(part), "{args:?}: {}", ran.stderr);
    }
    place.ok(&["label", "trips", "--remove"]);
    assert_eq!(place.run(&["show", "trips"]).code, 3);
    // What was said stays on record.
    let log = place.ok(&["log", "casebook"]);
    assert!(
        log.contains(r#" label {"at":"spending","label":"trips"}"#) && log.contains(" unlabel {"),
        "{log}"
    );
}

#[test]
fn notes_are_kept_about_moments_and_shown_as_quoted_matter() {
    let place = spending();
    place.ok(&["note", "spending@4", "who booked this?\u{1b}[31m", "--by", "ann"]);
    place.ok(&["note", "spending", "looked at again"]);
    let all = place.ok(&["note"]);
    assert_eq!(
        all,
        "spending@4  ann  \"who booked this?\\x1b[31m\"\nspending  person  \"looked at again\"\n2 notes\n"
    );
    assert!(place.ok(&["note", "spending@4"]).ends_with("1 note\n"));
    assert!(place.ok(&["note", "spending"]).ends_with("2 notes\n"));
    let (_, notes) = place.json(&["note", "spending@4"]);
    assert_eq!(text(&notes, "items.0.text"), Some("who booked this?\u{1b}[31m"));
    assert_eq!(place.run(&["note", "spending@4", " "]).code, 2);
    place.ok(&["verify", "--all", "--replay"]);
}

#[test]
fn the_casebook_is_no_run_of_an_agent() {
    let place = spending();
    let line = br#"{"type":"plan.update","agent":"a"}"#;
    for args in [
        &["commit", "--run", "casebook"][..],
        &["fork", "--run", "spending", "--from", "2", "--as", "casebook"],
    ] {
        let ran = place.run_with(args, line);
        assert_eq!(ran.code, 5, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("error[E0424]"), "{args:?}: {}", ran.stderr);
    }
    place.ok(&["note", "spending", "one"]);
    // The latest run is that of the agent.
    assert_eq!(place.json(&["show", "@"]).1.get("run").and_then(Value::as_str), Some("spending"));
    assert!(place.ok(&["runs"]).contains("; casebook: casebook"));
    let ran = place.run_with(&["commit", "--run", "casebook"], line);
    assert_eq!((ran.code, ran.stderr.contains("error[E0424]")), (5, true), "{}", ran.stderr);
    // Nor does any run go on from it.
    let pack = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/packs/insurance-claims.yaml");
    for args in [
        &["fork", "casebook@1", "--as", "cf"][..],
        &["reduce", "casebook", "--pack", pack, "--as", "cr"],
        &["rebase", "casebook", "--onto", "spending", "--as", "cb"],
        &["rebase", "spending", "--onto", "casebook@1", "--as", "cb"],
        &["cherrypick", "casebook@1", "--into", "spending"],
        &["cherrypick", "spending@1", "--into", "casebook"],
        &["merge", "--from", "casebook", "--from", "spending", "--seed-only", "--as", "cm"],
    ] {
        let ran = place.run(args);
        assert_eq!((ran.code, ran.stderr.contains("error[E0424]")), (5, true), "{args:?}: {}", ran.stderr);
    }
    assert!(place.ok(&["runs"]).contains("2 runs"), "{}", place.ok(&["runs"]));
    // An agent cannot author what analyses find.
    let forged = br#"{"type":"bisect.result","agent":"a"}"#;
    let ran = place.run_with(&["commit", "--run", "spending"], forged);
    assert!(ran.stdout.contains("E0401") || ran.stderr.contains("E0401"), "{}{}", ran.stdout, ran.stderr);
    // A bundle takes no notes.
    place.ok(&["export", "spending", "-o", "s.dnd"]);
    let ran = place.run(&["note", "s.dnd", "one"]);
    assert_eq!((ran.code, ran.stderr.contains("E0601")), (6, true), "{}", ran.stderr);
    let ran = place.run(&["bisect", "s.dnd", "--predicate", OVER, "--record"]);
    assert_eq!((ran.code, ran.stderr.contains("E0601")), (6, true), "{}", ran.stderr);
}

/// The four questions of an operator (dendrer paper 2), each by one command.
#[test]
fn four_questions_have_answers_that_need_no_model() {
    let place = spending();
    let why = place.ok(&["why", "spending@6", "spent"]);
    assert_eq!(
        why,
        r#"17 since tick 6  spent of spending
tick 6  action.request  a  allow book "a hotel"
  ~ spent  9 -> 17
  <- tick 5  memory.write  a  built on what stood there (exact)
     "coffee"
     spent: add 1
    <- tick 4  memory.write  a  built on what stood there (exact)
       "a second trip"
       spent: add 4
      <- tick 2  memory.write  a  built on what stood there (exact)
         "a first trip"
         spent: add 4
FIRST SEEN (heuristic)  8: not before tick 6
"#,
        "why it did that at step 6"
    );
    let bisect = place.ok(&["bisect", "spending", "--predicate", OVER, "--contributors"]);
    for part in [
        "ONSET (exact)  tick 6  action.request  by a",
        "  ~ spent  9 -> 17",
        "  tick 2  memory.write  \"a first trip\"\n  tick 4  memory.write  \"a second trip\"\n",
        "broken at 6 by what policy allowed",
    ] {
        assert!(bisect.contains(part), "where it went wrong: {part}: {bisect}");
    }
    let replay = place.ok(&["verify", "spending", "--replay"]);
    assert!(replay.contains("6 of 6 states reproduced"), "whether it can be reproduced: {replay}");
    place.ok(&["fork", "--run", "spending", "--from", "5", "--as", "again", "--replay-rest"]);
    let diff = place.run(&["diff", "spending", "again", "--exit-code"]);
    assert_eq!(diff.code, 0, "whether two runs did the same: {}", diff.stdout);
    place.ok(&[
        "fork",
        "--run",
        "spending",
        "--from",
        "1",
        "--as",
        "other",
        "--set",
        "limit=99",
        "--replay-rest",
    ]);
    place.run_with(
        &["commit", "--run", "other"],
        br#"{"type":"memory.write","agent":"a","delta":[{"set":"/spent","value":3}]}"#,
    );
    let diff = place.run(&["diff", "spending", "other", "--exit-code"]);
    assert_eq!(diff.code, 1, "{}", diff.stdout);
    for part in [
        "they part at tick -|2; 0 of 6 pairs differ, 2 only in b",
        "~ limit  10 -> 99",
        "-|8  structural  only in b: 1 transition",
        "~ spent  17 -> 3",
        "its marker, tick 2: set limit 99",
    ] {
        assert!(diff.stdout.contains(part), "whether two runs did the same: {part}: {}", diff.stdout);
    }
}

/// What is said of an onset, and the fork that is suggested.
fn diagnosis(place: &Place, run: &str, predicate: &str) -> (String, String) {
    let found = place.ok(&["bisect", run, "--predicate", predicate, "--no-chain"]);
    let line = |begin: &str| {
        let line = found.lines().find_map(|line| line.strip_prefix(begin));
        line.unwrap_or_else(|| panic!("{begin}: {found}")).to_owned()
    };
    (line("DIAGNOSIS  looks "), line("SUGGESTION  dendrer fork "))
}

/// D-61, D-69: the diagnosis and the suggestion follow from what was found.
#[test]
fn a_suggestion_follows_from_what_was_found() {
    let place = Place::with_store();
    let lines = r#"{"type":"observation.add","author":"agent","delta":[{"set":"/seen","value":1}]}
{"type":"policy.decision","author":"runtime","policy":{"decision":"allow","transition_type":"plan.update"}}
{"type":"memory.write","author":"agent","delta":[{"set":"/kept","value":9}]}
{"type":"plan.update","author":"agent","delta":[{"set":"/plan","value":9}]}
{"type":"plan.update","author":"runtime","anomalies":[{"gap":true,"kind":"arguments_not_json"}],"delta":[{"set":"/cut","value":9}]}
{"type":"action.request","author":"agent","action":{"tool":"pay","params":{}}}
{"type":"action.result","author":"runtime","action":{"tool":"pay","params":{}},"result":{"status":"ok","output":1},"delta":[{"set":"/paid","value":9}]}
"#;
    let ran = place.run_with(&["commit", "--run", "r", "--as", "runtime"], lines.as_bytes());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    for (name, evidence, fork) in [
        (
            "kept",
            "contingent (state-level): compliant until 2, broken by what was written at 3",
            "--run r --from tick 2 --policy 'review what memory.write writes to kept'",
        ),
        (
            "plan",
            "contingent (policy-level): compliant until 3, broken at 4 by what policy allowed at 2",
            "--run r --from tick 3 --policy 'review what the decision at tick 2 allows for plan.update'",
        ),
        // What an importer could not read is no fault of the policy.
        (
            "cut",
            "contingent (state-level): compliant until 4, and something is missing in the record of 5: the arguments are not JSON; they stay text",
            "--run r --from tick 4 --reason 'something is missing at tick 5: the arguments are not JSON; they stay text'",
        ),
        (
            "paid",
            "contingent (state-level): compliant until 6, broken by data that entered at 7",
            "--run r --from tick 6 --tool-policy 'review each call of pay before it is made'",
        ),
    ] {
        let predicate = format!("has(state.{name}) && state.{name} > 5");
        assert_eq!(diagnosis(&place, "r", &predicate), (evidence.to_owned(), fork.to_owned()), "{name}");
    }
    // The run of the paper: a denial at tick 14 that was decided on what entered at 13.
    let place = Place::with_demo();
    assert_eq!(
        diagnosis(&place, "logistics-planner-1", "ws.risk_threshold"),
        (
            "contingent (state-level): compliant until 13, broken at 14 by a policy.decision decided on data that entered at 13".to_owned(),
            "--run logistics-planner-1 --from tick 12 --tool-policy 'require source verification before observation.add'".to_owned()
        )
    );
}
