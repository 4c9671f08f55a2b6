//! Finding: the lift, policy flips, several predicates at once, names for predicates, and where a value came from.

use dendrer_object::Value;

use crate::support::{Demo, Place, demo, parse};

/// The paths of a document, as text.
fn at<'v>(value: &'v Value, path: &str) -> &'v Value {
    path.split('/').fold(value, |value, name| match name.parse::<usize>() {
        Ok(index) => value.as_array().unwrap().get(index).unwrap(),
        Err(_) => value.get(name).unwrap_or_else(|| panic!("no {name} in {value}")),
    })
}

fn answer(demo: &Demo, args: &[&str], code: i32) -> Value {
    let (found, answer) = demo.json(args);
    assert_eq!(found, code, "{args:?}: {answer}");
    answer
}

/// D-30, D-31, D-35: refused without a lift, found with one, and the answer says that it was lifted.
#[test]
fn a_predicate_that_recovers_is_refused_and_lifted_it_is_found() {
    let demo = demo();
    let ask = ["bisect", "logistics-run-47", "--predicate", "state.quality_score < 0.75"];
    let refused = demo.run(&ask);
    assert_eq!(refused.code, 6);
    assert!(
        refused.stderr.contains(
            "help: dendrer bisect logistics-run-47 --predicate 'state.quality_score < 0.75' --lift\n"
        ) && refused
            .stderr
            .contains("help: dendrer predicate test 'state.quality_score < 0.75' logistics-run-47\n"),
        "{}",
        refused.stderr
    );
    let lifted = demo.run(&[&ask[..], &["--lift"]].concat());
    assert_eq!(lifted.code, 0);
    assert!(
        lifted.stdout.contains("; lifted to the first violation; digest ")
            && lifted.stdout.contains("  it recovers: not violated at 17..21\n")
            && lifted.stdout.contains("ONSET (exact)  tick 14"),
        "{}",
        lifted.stdout
    );
    let json = answer(&demo, &[&ask[..], &["--lift", "--scan"]].concat(), 0);
    assert_eq!(at(&json, "recoveries").to_string(), r#"[[17,21,"ok"]]"#);
    assert_eq!((at(&json, "onset"), at(&json, "scan_onset")), (&14u64.into(), &14u64.into()));
    let plain = answer(&demo, &ask, 6);
    assert_eq!(at(&plain, "outcome"), &Value::from("recovers"));
    assert_ne!(at(&plain, "predicate/digest"), at(&json, "predicate/digest"), "a lift is another predicate");
}

/// D-54.
#[test]
fn a_policy_flip_is_the_first_deny_after_an_allow() {
    let demo = demo();
    let json = answer(&demo, &["bisect", "logistics-run-47", "--policy-flip", "action.request"], 0);
    assert_eq!((at(&json, "onset"), at(&json, "allowed")), (&23u64.into(), &20u64.into()));
    let never = demo.run(&["bisect", "logistics-run-47", "--policy-flip", "memory.write"]);
    assert_eq!(never.code, 1);
    assert!(never.stdout.contains("memory.write was never allowed, so nothing flipped"), "{}", never.stdout);
    let allowed = demo.run(&["bisect", "logistics-run-47@20", "--policy-flip", "action.request"]);
    assert_eq!(allowed.code, 1);
    assert!(allowed.stdout.contains("allowed at tick 20, and never denied"), "{}", allowed.stdout);
    assert_eq!(demo.run(&["bisect", "logistics-run-47", "--policy-flip", "Not A Type"]).code, 2);
}

#[test]
fn the_stretches_of_a_run_are_printed_as_they_are() {
    let demo = demo();
    let ran = demo.run(&["predicate", "test", "state.quality_score < 0.75", "logistics-run-47"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        ran.stdout,
        r#"run        logistics-run-47, ticks 0..64, read from .dendrer
predicate  expression v1   pure: by construction   monotone: seen below   window: after
           violated when state.quality_score < 0.75   digest 242a72b87ae5
  0..13   ok         OK
  14..16  violation  FAIL
  17..21  ok         OK     <- recovered
  22..64  violation  FAIL
first violated at tick 14   (4 candidate ticks of 65 ticks judged)
"#
    );
    let json = answer(
        &demo,
        &["predicate", "test", "state.quality_score >= 0.75", "logistics-run-47", "--holds"],
        0,
    );
    assert_eq!(
        at(&json, "intervals").to_string(),
        r#"[[0,13,"ok"],[14,16,"violation"],[17,21,"ok"],[22,64,"violation"]]"#
    );
    let test = |args: &[&str]| demo.run(&[&["predicate", "test"], args].concat());
    let risk = "state.risk_score > 0.75";
    assert_eq!(test(&[risk, "logistics-run-47", "--at", "tick", "21"]).code, 0);
    assert_eq!(test(&[risk, "logistics-run-47", "--at", "22"]).code, 1);
    assert_eq!(test(&[risk, "logistics-run-47", "--at", "22", "--window", "before"]).code, 0);
    let uncertain =
        answer(&demo, &["predicate", "test", "state.nope > 1", "logistics-run-47", "--at", "3"], 6);
    assert!(at(&uncertain, "at/why").as_str().unwrap().contains("nope"), "{uncertain}");
    assert_eq!(test(&["state.risk_score >", "logistics-run-47"]).code, 2);
    assert_eq!(test(&["acme.nothing", "logistics-run-47"]).code, 3);
}

const SEVERAL: &str = r#"{"predicates":[
 {"name":"risk","holds":"state.risk_score <= 0.75","words":"The risk stays within its bound."},
 {"name":"spent","condition":"state.budget_eur < 0"},
 {"name":"quality","condition":"state.quality_score < 0.75"},
 {"name":"first.quality","condition":"state.quality_score < 0.75","lift":"monotone"},
 {"name":"late","holds":"state.risk_score <= 0.75","window":"before"}
]}"#;

#[test]
fn several_predicates_are_asked_at_once_and_the_worst_exit_counts() {
    let place = Place::new();
    place.ok(&["demo", "--no-tour"]);
    let write = |text: &str| std::fs::write(place.path().join("several.json"), text).unwrap();
    let ask = |more: &[&str]| {
        place.run(
            &[&["bisect", "logistics-run-47", "--store", "dendrer-demo", "--all-of", "several.json"], more]
                .concat(),
        )
    };
    write(SEVERAL);
    let ran = ask(&[]);
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert_eq!(
        ran.stdout,
        r#"predicate      digest        onset  probes  answer
risk           edde2127823a     22       6  observation.add by feed-reader
spent          5f3de2eef96e      -       0  never violated
quality        242a72b87ae5      -       0  REFUSED: it recovers (turns at 14, 17, 22)
first.quality  be70bbd361fb     14       6  observation.add by feed-reader   (lifted: it recovers)
late           ad7ff7c4f79c     23       6  policy.decision by compliance
3 of 5 violated, 1 never, 1 refused; logistics-run-47, read from dendrer-demo/.dendrer
"#
    );
    let lifted = ask(&["--lift"]);
    assert_eq!(lifted.code, 1, "{}", lifted.stdout);
    let json = parse(&ask(&["--json"]).stdout);
    let onsets: Vec<String> =
        at(&json, "items").as_array().unwrap().iter().map(|item| at(item, "onset").to_string()).collect();
    assert_eq!(
        (onsets, at(&json, "exit")),
        (vec!["22".into(), "null".into(), "null".into(), "14".into(), "23".into()], &6u64.into())
    );
    let lines = ask(&["--jsonl"]).stdout;
    assert_eq!(lines.lines().count(), 6);
    for (text, code) in [
        (r#"{"predicates":[{"name":"a","holds":"state.x","condition":"state.x"}]}"#, "E0512"),
        (r#"{"predicates":[{"name":"a","hold":"state.x"}]}"#, "E0512"),
        (r#"{"predicates":[{"holds":"state.x > 1"}]}"#, "E0512"),
        (r#"{"predicates":[{"name":"a","holds":"state.x >"}]}"#, "E0501"),
        (r#"{"predicates":[{"name":"a","holds":"true"},{"name":"a","holds":"true"}]}"#, "E0512"),
        (r#"{"predicates":[]}"#, "E0512"),
        (r#"{"predicates":[],"more":1}"#, "E0512"),
    ] {
        write(text);
        let ran = ask(&[]);
        assert!(ran.stderr.contains(&format!("error[{code}]")), "{text}: {}", ran.stderr);
    }
}

/// Dendrer paper 4.4: an extension holds from its tick on, so what it forbids is asked from there.
#[test]
fn the_standard_questions_ask_an_extension_from_its_tick_on() {
    let demo = demo();
    let rows = |run: &str| {
        let json = demo.json(&["bisect", run, "--all-of", "standard"]).1;
        let items = json.get("items").and_then(Value::as_array).unwrap().clone();
        let row = |item: &Value| {
            Some((item.get("predicate")?.get("name")?.as_str()?.to_owned(), item.get("onset").cloned()))
        };
        items.iter().filter_map(row).collect::<Vec<_>>()
    };
    let found = |run: &str| {
        rows(run).into_iter().find(|(name, _)| name == "unverified_payee").map(|(_, onset)| onset)
    };
    assert_eq!(found("claims-9"), Some(Some(Value::Null)));
    assert_eq!(found("claims-9@27"), None, "the extension holds from tick 28 on");
    let one = demo.json(&["bisect", "claims-9", "--predicate", "unverified_payee"]).1;
    assert_eq!(one.get("onset"), Some(&Value::Null));
}

/// A status in no list is no failure, and a good one has many words; each question reads it the same.
#[test]
fn the_words_of_a_status_mean_the_same_in_every_question() {
    let place = crate::support::Place::with_store();
    let words = ["ok", "success", "OK", "failed", "pending"];
    let lines = words.map(|word| {
        format!("{{\"type\":\"action.result\",\"author\":\"runtime\",\"action\":{{\"tool\":\"buy\"}},\"result\":{{\"status\":\"{word}\",\"output\":1}}}}\n")
    });
    place.run_with(&["commit", "--run", "r", "--as", "runtime"], lines.concat().as_bytes());
    let log = place.ok(&["log", "r"]);
    let shown: Vec<&str> =
        log.lines().skip(1).take(5).filter_map(|line| line.split("action.result  ").nth(1)).collect();
    assert_eq!(
        shown,
        ["ok buy 1", "success buy 1", "ok buy 1", "FAIL failed buy 1", "status pending buy 1"],
        "{log}"
    );
    for (tick, word) in [(1, "ok"), (2, "success"), (4, "FAIL failed"), (5, "status pending")] {
        let show = place.ok(&["show", &format!("r@{tick}")]);
        assert!(show.lines().any(|line| line.starts_with(&format!("{word}  output"))), "{show}");
    }
}

#[test]
fn several_expressions_are_asked_at_once() {
    let demo = demo();
    let several = ["bisect", "logistics-run-47", "--holds", "state.risk_score <= 0.75", "--holds"];
    let ran = demo
        .run(&[&several[..], &["state.quality_score >= 0.75", "--holds", "state.budget_eur >= 0"]].concat());
    assert_eq!(ran.code, 6, "{}", ran.stderr);
    assert_eq!(
        ran.stdout,
        r#"predicate                    digest        onset  probes  answer
state.risk_score <= 0.75     edde2127823a     22       6  observation.add by feed-reader
state.quality_score >= 0.75  97697d026f06      -       0  REFUSED: it recovers (turns at 14, 17, 22)
state.budget_eur >= 0        a21308709e2f      -       0  never violated
1 of 3 violated, 1 never, 1 refused
"#
    );
    let json = answer(&demo, &[&several[..], &["state.quality_score >= 0.75", "--lift"]].concat(), 0);
    assert_eq!((at(&json, "items/0/onset"), at(&json, "items/1/onset")), (&22u64.into(), &14u64.into()));
    let alone = answer(&demo, &[&several[..4], &["--lift", "--no-chain"]].concat(), 0);
    for member in ["predicate", "onset", "origin", "items", "ends"] {
        assert_eq!(at(&json, &format!("items/0/{member}")), at(&alone, member), "{member}");
    }
    let before = answer(&demo, &[&several[..], &["true", "--window", "before"]].concat(), 1);
    assert_eq!(at(&before, "items/0/onset"), &23u64.into());
    let wrong = demo.run(&[&several[..], &["state.x >"]].concat());
    assert!(wrong.code == 2 && wrong.stderr.contains("state.x >"), "{}", wrong.stderr);
    let expected = demo.run(&[&several[..], &["true", "--expect-onset", "22"]].concat());
    assert!(expected.code == 2 && expected.stderr.contains("E0106"), "{}", expected.stderr);
    assert_eq!(demo.run(&[&several[..], &["true", "--predicate", "state.x"]].concat()).code, 2);
}

/// D-60, D-63, D-65, D-123, D-124: names, their versions, what is known of them, and their end.
#[test]
fn a_predicate_is_registered_rejected_lifted_and_retired() {
    let place = Place::new();
    place.ok(&["demo", "--no-tour"]);
    let store = |args: &[&str]| place.run(&[args, &["--store", "dendrer-demo"]].concat());
    let register = |args: &[&str]| store(&[&["predicate", "register"], args].concat());
    let name = "acme.quality_oscillator";
    let rejected = register(&[
        name,
        "--condition",
        "state.quality_score < 0.75",
        "--verify-monotone",
        "--sample-trace",
        "logistics-run-47",
    ]);
    assert_eq!(rejected.code, 1);
    let lines: Vec<&str> = rejected.stdout.lines().collect();
    assert_eq!(
        lines[..4],
        [
            "testing acme.quality_oscillator on logistics-run-47 (64 ticks, 4 candidate ticks)",
            "  tick 14  violation  FAIL",
            "  tick 17  ok         OK     <- recovered: binary search could return a wrong tick",
            "  tick 22  violation  FAIL",
        ]
    );
    assert!(lines[4].starts_with("REJECTED for bisect   (kept for monitoring and diff)"), "{}", lines[4]);
    assert!(
        rejected.stderr.contains("error[E0503]: acme.quality_oscillator is not prefix-monotone")
            && rejected
                .stderr
                .contains("help: dendrer predicate register acme.quality_oscillator --lift monotone"),
        "{}",
        rejected.stderr
    );
    let refused = store(&["bisect", "logistics-run-47", "--predicate", name]);
    assert_eq!(refused.code, 6);
    // Where it does not recover it answers, and says that it recovers elsewhere.
    let elsewhere = store(&["bisect", "logistics-run-47@16", "--predicate", name]);
    assert_eq!(elsewhere.code, 0);
    assert!(
        elsewhere.stdout.contains("recovers on logistics-run-47, and not on this run"),
        "{}",
        elsewhere.stdout
    );

    let lifted = register(&[name, "--lift", "monotone"]);
    assert_eq!(lifted.code, 0, "{}", lifted.stderr);
    assert!(lifted.stdout.starts_with("registered acme.quality_oscillator v2\n"), "{}", lifted.stdout);
    let found = store(&["bisect", "logistics-run-47", "--predicate", name, "--json"]);
    assert_eq!(found.code, 0);
    let found = parse(&found.stdout);
    assert_eq!(
        (at(&found, "onset"), at(&found, "predicate/name"), at(&found, "predicate/version")),
        (&14u64.into(), &name.into(), &"v2".into())
    );

    // The same again changes nothing; a version that means something else is refused; the next one is given.
    let again = parse(&register(&[name, "--lift", "monotone", "--json"]).stdout);
    assert_eq!(at(&again, "changed"), &Value::from(false));
    let taken = register(&[name, "--condition", "state.quality_score < 0.5", "--version", "v1"]);
    assert!(taken.code == 2 && taken.stderr.contains("error[E0514]"), "{}", taken.stderr);
    let third = parse(&register(&[name, "--condition", "state.quality_score < 0.5", "--json"]).stdout);
    assert_eq!((at(&third, "version"), at(&third, "known")), (&"v3".into(), &"not tested".into()));

    let listed = parse(&store(&["predicate", "list", "--json"]).stdout);
    assert_eq!(at(&listed, "items").as_array().unwrap().len(), 1 + 3, "three names of the demo never change");
    let shown = parse(&store(&["predicate", "show", name, "--json"]).stdout);
    assert_eq!(at(&shown, "items").as_array().unwrap().len(), 3);
    parse(&store(&["predicate", "show", "kernel.anomaly_free", "--json"]).stdout);

    // A bundle carries what names mean.
    store(&["export", "logistics-run-47", "-o", "run.dnd"]);
    let bundled = place.run(&["predicate", "list", "run.dnd", "--all", "--json"]);
    assert_eq!(at(&parse(&bundled.stdout), "items").as_array().unwrap().len(), 3 + 3);
    let bundled = place.run(&["predicate", "show", name, "run.dnd"]);
    assert_eq!(
        (bundled.code, bundled.stdout.as_str()),
        (0, store(&["predicate", "show", name]).stdout.as_str()),
        "{}",
        bundled.stderr
    );
    assert_eq!(place.run(&["predicate", "show", "acme.nothing", "run.dnd"]).code, 3);

    assert_eq!(store(&["predicate", "retire", name]).code, 0);
    let gone = store(&["bisect", "logistics-run-47", "--predicate", name]);
    assert!(gone.code == 3 && gone.stderr.contains("was retired"), "{}", gone.stderr);
    assert_eq!(store(&["predicate", "retire", "acme.nothing"]).code, 3);
    let verified = store(&["verify", "--all", "--replay"]);
    assert!(
        verified.code == 0 && !verified.stdout.contains("not checked: a signature"),
        "{}",
        verified.stdout
    );
}

/// A store is a directory; whoever names a bundle as one hears where a bundle stands.
#[test]
fn a_bundle_in_place_of_a_store_is_sent_to_its_place() {
    let demo = crate::support::demo();
    for verb in [&["predicate", "list"][..], &["log"], &["runs"], &["predicate", "retire", "acme.x"]] {
        let ran = demo.run(&[verb, &["--store", "logistics-run-47.dnd"]].concat());
        assert_eq!(
            (ran.code, ran.stderr.as_str()),
            (
                3,
                "error[E0103]: logistics-run-47.dnd is a file, and a store is a directory
note: a bundle stands in place of a run and needs no store: FILE.dnd, FILE.dnd@TICK or FILE.dnd#RUN@TICK
help: dendrer log logistics-run-47.dnd
      see: dendrer explain E0103
"
            ),
            "{verb:?}"
        );
    }
    let other = demo.run(&["runs", "--store", "corrupt/suite.json"]);
    assert!(
        other.code == 3 && other.stderr.contains("note: name the directory that holds .dendrer"),
        "{}",
        other.stderr
    );
}

/// D-14, D-60: what can be known from the text alone is known, and nothing more.
#[test]
fn registration_says_how_it_knows_and_refuses_what_cannot_be_judged() {
    let place = Place::new();
    place.ok(&["demo", "--no-tour"]);
    let register =
        |args: &[&str]| place.run(&[&["predicate", "register"], args, &["--store", "dendrer-demo"]].concat());
    let proven = register(&[
        "acme.tool_error_budget",
        "--holds",
        "state.counters.tool_errors <= 3",
        "--verify-monotone",
    ]);
    assert!(
        proven.code == 0 && proven.stdout.contains("monotone: by construction"),
        "{}{}",
        proven.stdout,
        proven.stderr
    );
    let unproven = register(&["acme.risk", "--holds", "state.risk_score <= 0.75", "--verify-monotone"]);
    assert_eq!((unproven.code, unproven.stderr.contains("--sample-trace")), (2, true), "{}", unproven.stderr);
    let tested = register(&[
        "acme.risk",
        "--holds",
        "state.risk_score <= 0.75",
        "--verify-monotone",
        "--sample-trace",
        "logistics-run-47",
    ]);
    assert!(
        tested.code == 0 && tested.stdout.contains("monotone: tested on 64 ticks of logistics-run-47"),
        "{}",
        tested.stdout
    );
    let uncertain = register(&[
        "acme.other",
        "--holds",
        "state.nope <= 0.75",
        "--verify-monotone",
        "--sample-trace",
        "logistics-run-47",
    ]);
    assert!(
        uncertain.code == 6
            && uncertain.stderr.contains("has(state.nope)")
            && uncertain.stderr.contains("nothing was registered"),
        "{}",
        uncertain.stderr
    );
    for (args, code, exit) in [
        (&["kernel.mine", "--holds", "true"][..], "E0513", 2),
        (&["plain", "--holds", "true"], "E0513", 2),
        (&["acme.unknown"], "E0511", 3),
        (&["acme.io", "--holds", "http_get('x') == 1"], "E0505", 2),
        (&["acme.clock", "--condition", "state.x > now()"], "E0505", 2),
        (&["acme.file", "--file", "nowhere.json"], "E0108", 3),
    ] {
        let ran = register(args);
        assert!(ran.code == exit && ran.stderr.contains(code), "{args:?}: {}", ran.stderr);
    }
    std::fs::write(
        place.path().join("p.json"),
        r#"{"condition":"state.risk_score > 0.9","window":"before","version":"2.1"}"#,
    )
    .unwrap();
    let from_file = parse(&register(&["acme.file", "--file", "p.json", "--json"]).stdout);
    assert_eq!((at(&from_file, "version"), at(&from_file, "window")), (&"2.1".into(), &"before".into()));
}

#[test]
fn every_write_of_a_place_is_listed_with_what_stood_there() {
    let demo = demo();
    let ran = demo.run(&["backtrack", "logistics-run-47", "risk_score", "--values", "--to", "tick", "29"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(
        ran.stdout,
        "~ tick 29  feed-reader  observation.add  0.83 -> 0.86
~ tick 22  feed-reader  observation.add  0.71 -> 0.83
~ tick 21  router       plan.update      0.64 -> 0.71
~ tick 18  feed-reader  observation.add  0.61 -> 0.64
~ tick 14  feed-reader  observation.add  0.55 -> 0.61
~ tick  8  feed-reader  observation.add  0.52 -> 0.55
6 writes in 29 ticks
"
    );
    let one = demo.run(&["backtrack", "logistics-run-47", "risk_score", "--agent", "router", "--last"]);
    assert!(one.stdout.starts_with("  tick 21  router  plan.update  set 0.71\n"), "{}", one.stdout);
    let inputs = demo.run(&["backtrack", "logistics-run-47", "budget_eur", "--inputs"]);
    assert!(
        inputs.stdout.contains("<- tick 13  action.result  dispatcher  built on what stood there (exact)\n"),
        "{}",
        inputs.stdout
    );
    let list = demo.run(&["backtrack", "logistics-run-47", "sources[2]"]);
    assert!(list.stdout.contains("every write of sources is listed"), "{}", list.stdout);
    assert_eq!(demo.run(&["backtrack", "logistics-run-47", "nothing.here"]).code, 3);
    // A bundle has no index and gives the same answer.
    let bundle = demo.dir().join("backtrack.dnd");
    let bundle = bundle.to_str().unwrap();
    assert_eq!(demo.run(&["export", "logistics-run-47", "-o", bundle]).code, 0);
    for args in [
        &["backtrack", "RUN", "risk_score", "--values", "--inputs"][..],
        &["why", "RUN", "bookings_open", "--cross-agent"],
    ] {
        let of = |run: &str| {
            let args: Vec<&str> = args.iter().map(|arg| if *arg == "RUN" { run } else { arg }).collect();
            demo.run(&args).stdout
        };
        let place = format!("; logistics-run-47, read from {}", "backtrack.dnd");
        let found = of(bundle).replace(&place, "").replace(", read from backtrack.dnd", "");
        assert_eq!(found, of("logistics-run-47"));
    }
}

#[test]
fn why_shows_what_is_known_and_says_where_it_ends() {
    let demo = demo();
    let ran = demo.run(&["why", "logistics-run-47@60", "budget_eur", "--cross-agent", "--depth", "2"]);
    assert_eq!(
        ran.stdout,
        r#"38560 since tick 26  budget_eur of logistics-run-47
tick 26  action.result  dispatcher  ok reserve {"price_eur":3960,"slot":"BA-209"}
  ~ budget_eur  42520 -> 38560
  <- tick 13  action.result  dispatcher  built on what stood there (exact)
     ok book {"booking":"RK-7731","price_eur":5480}
     budget_eur: add -5480
    <- tick 12  action.request  dispatcher  caused_by (recorded)
       allow book {"carrier":"Rheinkraft","shipments":["S-101","S-102"]} "book Rheinkraft for S-101 and S-102"
  <- tick 20  action.request  dispatcher  caused_by (recorded)
     allow reserve {"carrier":"Basilea","shipment":"S-103"} "reserve a slot for S-103"
    <- tick 19  plan.update  pricing  caused_by (recorded)
       "reserve S-103 today, before the surcharge"
FIRST SEEN (heuristic)  an equal value, earliest on record
  3960  tick 26  result.output.price_eur of reserve
        {"price_eur":3960,"slot":"BA-209"}
"#
    );
    let ends = demo.run(&["why", "logistics-run-47@22", "risk_score"]);
    assert!(
        ends.stdout.contains("inputs unknown: a delta says what it wrote, not what it read"),
        "{}",
        ends.stdout
    );
    let other = demo.run(&["why", "logistics-run-47@30", "bookings_open"]);
    assert!(other.stderr.contains("--cross-agent follows the inputs of other agents"), "{}", other.stderr);
    let first = demo.run(&["why", "logistics-run-47@30", "risk_threshold"]);
    assert!(first.stdout.contains("no transition wrote it: the run began with it"), "{}", first.stdout);
    assert_eq!(demo.run(&["why", "logistics-run-47", "nothing.here"]).code, 3);
    let json = answer(&demo, &["why", "logistics-run-47@30", "bookings_open", "--cross-agent"], 0);
    assert_eq!(at(&json, "root/inputs/0/because/how"), &Value::from("caused_by"));
}

/// Where rules make the states, they say what they may read.
#[test]
fn under_a_pack_the_rules_say_what_they_may_read() {
    let place = crate::packs::recorded();
    let why = place.ok(&["why", "desk@3", "refunded"]);
    assert!(why.contains("a rule may read orders.o1 (heuristic)"), "{why}");
    let json = parse(&place.ok(&["why", "desk@3", "refunded", "--json"]));
    assert_eq!((at(&json, "reads"), at(&json, "certainty")), (&"rules".into(), &"heuristic".into()));
    let chain = parse(&place.ok(&["bisect", "desk", "--predicate", "size(state.orders) > 0", "--json"]));
    let reads: Vec<String> = at(&chain, "chain/items")
        .as_array()
        .unwrap()
        .iter()
        .map(|item| {
            let because = at(item, "because").as_array().unwrap();
            let because: Vec<String> =
                because.iter().map(|one| format!(" {} {}", at(one, "tick"), at(one, "certainty"))).collect();
            format!("{}:{}", at(item, "tick"), because.concat())
        })
        .collect();
    // The handover at tick 2 reads nothing that the booking wrote, and tick 4 asks for another order than it made.
    assert_eq!(reads, ["1:", "3: 1 \"exact\"", "4: 3 \"heuristic\""]);
}

/// D-36, D-62: what followed is labelled, and what only comes after is marked.
#[test]
fn the_chain_behind_an_onset_is_labelled_and_can_be_left_out() {
    let demo = demo();
    let ask = ["bisect", "logistics-run-47", "--predicate", "kernel.policy_compliant"];
    let json = answer(&demo, &ask, 0);
    assert_eq!(
        (at(&json, "certainty"), at(&json, "chain/certainty")),
        (&"exact".into(), &"heuristic".into())
    );
    let temporal: Vec<u64> = at(&json, "chain/items")
        .as_array()
        .unwrap()
        .iter()
        .filter(|item| at(item, "temporal") == &Value::from(true))
        .map(|item| at(item, "tick").as_u64().unwrap())
        .collect();
    assert_eq!(temporal, [32, 34, 62]);
    assert_eq!(at(&answer(&demo, &[&ask[..], &["--no-chain"]].concat(), 0), "chain"), &Value::Null);
    let short = demo.run(&[&ask[..], &["--chain-limit", "2"]].concat()).stdout;
    assert!(
        short.contains("  (more follow; --chain-limit shows more)\nDIAGNOSIS  looks contingent "),
        "{short}"
    );
}

/// Uncertain is never summed up as compliant.
#[test]
fn what_cannot_be_judged_is_not_called_never_violated() {
    let demo = demo();
    let ran = demo.run(&["predicate", "test", "state.nope > 1", "logistics-run-47"]);
    assert_eq!(ran.code, 6, "{}", ran.stdout);
    assert!(
        ran.stdout.contains("not violated where it can be judged; uncertain at ticks 0 to 64"),
        "{}",
        ran.stdout
    );
    let json = answer(&demo, &["predicate", "test", "state.nope > 1", "logistics-run-47"], 6);
    assert_eq!(at(&json, "certainty"), &"unavailable".into());
    let ran = demo.run(&[
        "predicate",
        "register",
        "a.nope",
        "--condition",
        "state.nope > 1",
        "--verify-monotone",
        "--sample-trace",
        "logistics-run-47",
    ]);
    assert_eq!(ran.code, 6, "{}", ran.stdout);
    assert!(!ran.stdout.contains("never violated"), "{}", ran.stdout);
}

#[test]
fn a_name_has_its_window_and_a_built_in_name_stays() {
    let demo = demo();
    let ran =
        demo.run(&["bisect", "logistics-run-47", "--predicate", "kernel.anomaly_free", "--window", "before"]);
    assert_eq!(ran.code, 2, "{}", ran.stdout);
    assert!(ran.stderr.contains("--window is for expressions"), "{}", ran.stderr);
    let ran = demo.run(&["predicate", "retire", "kernel.anomaly_free"]);
    assert!(ran.stderr.contains("kernel.anomaly_free is built in and cannot be retired"), "{}", ran.stderr);
}

/// A predicate that recovers is not announced as one that does not.
#[test]
fn the_head_of_a_refused_bisect_says_that_it_recovers() {
    let ran = demo().run(&["bisect", "logistics-run-47", "--predicate", "state.quality_score < 0.75"]);
    assert!(ran.stdout.contains("; it recovers on this run ("), "{}", ran.stdout);
}

/// A name means what was registered, and the answer says that the pack of the run means something else by it.
#[test]
fn a_registered_name_that_the_pack_uses_too_is_told() {
    let place = Place::with_store();
    let pack = "name: acme.small\nversion: v1\nreducer: delta/1\nstate:\n  n: {init: 0}\npredicates:\n  acme.p: {holds: state.n < 5}\n";
    std::fs::write(place.path().join("small.yaml"), pack).unwrap();
    let line = br#"{"type":"plan.update","delta":[{"set":"/n","value":7}]}"#;
    assert_eq!(place.run_with(&["commit", "--run", "r", "--pack", "small.yaml"], line).code, 0);
    let (_, own) = place.json(&["bisect", "r", "--predicate", "acme.p"]);
    assert_eq!(own.get("other_in_pack"), None);
    place.ok(&["predicate", "register", "acme.p", "--condition", "state.n > 100"]);
    let said = place.ok(&["predicate", "test", "acme.p", "r"]);
    assert!(said.contains("the pack of this run has another predicate of this name, digest"), "{said}");
    let (_, registered) = place.json(&["bisect", "r", "--predicate", "acme.p"]);
    assert_eq!(registered.get("other_in_pack"), own.get("predicate").unwrap().get("digest"));
    // What says the same under the same name is no other.
    place.ok(&["predicate", "register", "acme.p", "--holds", "state.n < 5"]);
    assert_eq!(place.json(&["bisect", "r", "--predicate", "acme.p"]).1.get("other_in_pack"), None);
}

const READS: &str = r#"name: test.reads
version: v1
constants: {eighth: 0.125}
state:
  m: {init: "{}"}
  y: {init: 0, decimals: 2}
  x: {init: 0}
  z: {init: 0}
rules:
  - words: put
    when_type: observation.add
    steps:
      - set: m[t.intent.key]
        value: t.intent.value
  - words: take one
    when_type: plan.update
    steps:
      - set: y
        value: state.m[t.intent.key] + 1
  - words: look at all
    when_type: memory.write
    steps:
      - set: z
        value: size(state.m)
  - words: for another type
    when: t.type == 'goal.complete' && state.m.b > 0
    steps:
      - set: x
        value: state.y
"#;

/// Ticks 1 and 2 put `a` and `b` into a map, tick 3 takes `a` alone, tick 4 looks at all of it, tick 5 puts `c`.
fn with_reads() -> Place {
    let place = Place::with_store();
    std::fs::write(place.path().join("reads.yaml"), READS).unwrap();
    let lines = r#"{"type":"observation.add","intent":{"key":"a","value":1}}
{"type":"observation.add","intent":{"key":"b","value":2}}
{"type":"plan.update","intent":{"key":"a"}}
{"type":"memory.write"}
{"type":"observation.add","intent":{"key":"c","value":3}}
"#;
    let ran = place.run_with(&["commit", "--run", "r", "--pack", "reads.yaml"], lines.as_bytes());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    place
}

/// What a rule looked at is known by running it again: one element of a map is not the map.
#[test]
fn why_follows_the_element_that_was_read() {
    let place = with_reads();
    let why = place.ok(&["why", "r@3", "y", "--depth", "9"]);
    assert!(why.contains("<- tick 1  ") && why.contains("a rule may read m.a (heuristic)"), "{why}");
    assert!(!why.contains("<- tick 2  "), "{why}");
    let why = place.ok(&["why", "r@4", "z"]);
    assert!(
        why.contains("<- tick 2  ")
            && why.contains("may read m as a whole, and this is the newest write in it"),
        "{why}"
    );
    let (_, json) = place.json(&["why", "r@4", "z"]);
    assert_eq!(at(&json, "root/inputs/0/because/whole"), &Value::from(true));
}

/// A rule that did not apply was not read, and what reads another element does not follow.
#[test]
fn the_chain_goes_by_the_rules_that_applied() {
    let place = with_reads();
    let (_, found) = place.json(&["bisect", "r", "--predicate", "has(state.m.b)"]);
    let ticks: Vec<u64> = at(&found, "chain/items")
        .as_array()
        .unwrap()
        .iter()
        .map(|item| at(item, "tick").as_u64().unwrap())
        .collect();
    assert_eq!(ticks, [2, 4]);
}

/// What a slip or a number that no field can have makes of a question is told, and not judged.
#[test]
fn a_question_is_held_against_the_fields_of_the_pack() {
    let place = with_reads();
    let slip = place.run(&["bisect", "r", "--holds", "state.yy == 1"]);
    assert_eq!(slip.code, 2, "{}", slip.stdout);
    assert!(slip.stderr.contains("E0505") && slip.stderr.contains("did you mean state.y"), "{}", slip.stderr);
    let test = place.run(&["predicate", "test", "state.y > 4.555", "r"]);
    assert!(test.code == 2 && test.stderr.contains("the field has 2 decimals"), "{}", test.stderr);
    let constant = place.run(&["bisect", "r", "--holds", "state.y <= eighth"]);
    assert!(constant.code == 2 && constant.stderr.contains("eighth, 0.125, has more"), "{}", constant.stderr);
    let register = [
        "predicate",
        "register",
        "a.b",
        "--condition",
        "state.yy > 1",
        "--verify-monotone",
        "--sample-trace",
        "r",
    ];
    let ran = place.run(&register);
    assert!(ran.code == 2 && ran.stderr.contains("E0505"), "{}", ran.stderr);
    // What stands for itself stays the same predicate, with or without a pack.
    let (_, asked) = place.json(&["bisect", "r", "--holds", "state.y < 100"]);
    let own = dendrer::kernel::predicate::Predicate::holds("expression", "state.y < 100").unwrap();
    assert_eq!(at(&asked, "predicate/digest").as_str(), Some(&*own.digest().to_string()));
}

#[test]
fn a_file_of_predicates_may_use_the_names_of_the_pack() {
    let place = with_reads();
    let file = r#"{"predicates":[{"name":"a","holds":"state.z < 8 * eighth"},{"name":"b","holds":"state.z < 100"}]}"#;
    std::fs::write(place.path().join("all.json"), file).unwrap();
    let (code, all) = place.json(&["bisect", "r", "--all-of", "all.json"]);
    assert_eq!(code, 1, "{all}");
    assert_eq!(at(&all, "items/0/onset"), &Value::from(4u64));
}

/// An item of a list is what stands at its index; what is put behind it does not write it.
#[test]
fn why_names_the_transition_that_wrote_the_item() {
    let place = Place::with_store();
    let lines = r#"{"type":"plan.update","delta":[{"append":"/log","value":1}]}
{"type":"plan.update","delta":[{"append":"/log","value":2}]}
{"type":"plan.update","delta":[{"remove":"/log/0"}]}
"#;
    assert_eq!(place.run_with(&["commit", "--run", "r"], lines.as_bytes()).code, 0);
    for (rev, path, tick) in
        [("r@2", "log[0]", 1), ("r@2", "log[1]", 2), ("r@2", "log", 2), ("r@3", "log[0]", 3)]
    {
        let (_, why) = place.json(&["why", rev, path]);
        assert_eq!(at(&why, "root/tick"), &Value::from(tick as u64), "{rev} {path}");
    }
}

/// The second time, and for all but the new ticks, the verdicts are read back; without the key, or without what was
/// kept, they come from the records, and the answer is the same.
#[test]
fn verdicts_are_worked_out_once() {
    let place = Place::with_store();
    let commit = |from: u64, to: u64| {
        let intents = (from..to)
            .map(|n| format!("{{\"type\":\"memory.write\",\"delta\":[{{\"set\":\"/x\",\"value\":{n}}}]}}\n"));
        let input: String = intents.collect();
        assert_eq!(place.run_with(&["commit", "--run", "r", "--quiet"], input.as_bytes()).code, 0);
    };
    commit(1, 4001);
    let ask = |flags: &[&str]| {
        let ran = place
            .run(&[&["bisect", "r", "--holds", "!has(state.x) || state.x < 3000", "-v"], flags].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        assert!(ran.stdout.contains("ONSET (exact)  tick 3000"), "{}", ran.stdout);
        (ran.stdout, ran.stderr.lines().find(|line| line.starts_with("verdicts")).map(str::to_owned))
    };
    let before = |tick: &str| {
        Some(format!("verdicts up to tick {tick} were worked out before, and signed by the key of the store"))
    };
    let (first, known) = ask(&[]);
    assert_eq!(known, None);
    assert_eq!(ask(&[]), (first.clone(), before("4,000")));
    let other = Place::new();
    let stranger = other.path().join("keys");
    std::fs::create_dir(&stranger).unwrap();
    let mut command = place.command(&["bisect", "r", "--holds", "!has(state.x) || state.x < 3000", "-v"]);
    let ran = crate::support::ran(crate::support::at_home(&mut command, &stranger).output().unwrap());
    assert!(ran.stdout == first && !ran.stderr.contains("verdicts"), "{}{}", ran.stdout, ran.stderr);
    commit(4001, 4011);
    let (longer, known) = ask(&[]);
    assert_eq!(known, before("4,000"));
    assert!(longer.contains("tick 4010"), "{longer}");
    assert_eq!(ask(&[]), (longer.clone(), before("4,010")));
    std::fs::remove_file(place.path().join(".dendrer/index.sqlite")).unwrap();
    assert_eq!(ask(&[]), (longer, None));
}

/// What `has` cannot mend gets no such advice, and a user's own `$` is written as expressions write it.
#[test]
fn advice_on_what_is_uncertain_can_be_pasted_and_fits_the_reason() {
    let place = crate::support::Place::with_store();
    let line =
        r#"{"type":"observation.add","delta":[{"set":"/d","value":{"$k":1}},{"set":"/a","value":NaN}]}"#;
    place.run_with(&["commit", "--run", "r"], line.as_bytes());
    let said = |expression: &str| place.run(&["bisect", "r", "--predicate", expression]).stderr;
    let missing = said(r#"state.d["$k"] == 1"#);
    let advice = r#"has(state.d) && has(state.d["$k"]) && ..."#;
    assert!(missing.contains(advice), "{missing}");
    let asked = advice.replace("...", r#"state.d["$k"] == 1"#);
    assert!(
        place.ok(&["bisect", "r", "--predicate", &asked, "--scan"]).contains("tick 1"),
        "{}",
        said(&asked)
    );
    let not_finite = said("has(state.a) && state.a > 1.0");
    assert!(not_finite.contains("not finite") && !not_finite.contains("missing field"), "{not_finite}");
}
