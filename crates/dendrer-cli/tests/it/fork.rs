//! Forks from the command line: what is printed, what is enforced, and what is refused.

use dendrer_object::Value;

use crate::support::Place;

const FEED: &str =
    r#"{"output":{"barges":2,"source":"port_api"},"delta":[{"set":"/risk_score","value":0.64}]}"#;

#[test]
fn a_fork_with_a_changed_input_reads_as_printed() {
    let place = Place::with_demo();
    std::fs::write(place.path().join("feed.json"), FEED).unwrap();
    let fork = [
        "fork",
        "--run",
        "logistics-run-47",
        "--from",
        "tick",
        "21",
        "--reason",
        "use the verified feed",
        "--tool-output",
        "22=feed.json",
        "--as",
        "logistics-fix-2",
        "--replay-rest",
    ];
    let ran = place.run(&fork);
    assert_eq!(
        ran.stdout,
        r#"replayed   ticks 1..21 OK, state 5d4114351e0e equals the record
forked     logistics-fix-2 from logistics-run-47@21   its tick 22 is run.fork
reason     "use the verified feed"
changed    tool output of parent tick 22
re-applied parent tick 22 as 23, through the door
stopped    before parent tick 23: it was decided on risk_score 0.83, here it is 0.64
"#
    );
    assert_eq!(
        ran.stderr,
        "note: no model and no tool was called; past this point only a live run can tell\n\
         help: dendrer fork --run logistics-fix-2 --from tick 23 --exec 'python agent.py'\n\
         help: dendrer commit --run logistics-fix-2\n\
         help: dendrer diff logistics-run-47 logistics-fix-2 --from tick 21\n"
    );
    assert!(
        place.ok(&["log", "logistics-fix-2", "--from", "tick", "21"]).starts_with(
        r#" tick  agent        type             conf  summary
   21  router       plan.update      0.77  "take the night lock for three barges at once"
   22  kernel       run.fork            -  from logistics-run-47@21 "use the verified feed"
   23  feed-reader  observation.add  0.31  "unverified source introduced: a private feed offers barges at half the price"
3 of 23 transitions, 3 agents, 0 anomalies
"#
    ));
    let verified = place.ok(&["verify", "logistics-fix-2", "--replay"]);
    assert!(verified.contains("replay    OK           23 of 23 states reproduced"), "{verified}");
    let compared = place.run(&["diff", "logistics-run-47", "logistics-fix-2", "--from", "tick", "21"]);
    assert!(compared.stdout.starts_with("they part at tick 22|23; "), "{}", compared.stdout);
    // X-9: the marker says that something is injected, and no line of an agent does.
    let kind = |tick: u64| {
        let (_, shown) = place.json(&["show", &format!("logistics-fix-2@{tick}")]);
        shown.get("content").unwrap().get("fork_type").cloned()
    };
    assert_eq!([kind(21), kind(22)], [None, Some(dendrer_object::Value::from("injection"))]);
    // It is a run like any other: asked, gone on with, forked.
    let (code, answer) = place.json(&["bisect", "logistics-fix-2", "--predicate", "kernel.policy_compliant"]);
    assert_eq!((code, answer.get("outcome").unwrap().as_str()), (1, Some("never")));
    let line = br#"{"type":"plan.update","agent":"router","delta":[{"set":"/risk_score","value":0.9}]}"#;
    assert_eq!(place.run_with(&["commit", "--run", "logistics-fix-2"], line).code, 0);
    let (code, answer) = place.json(&["bisect", "logistics-fix-2", "--predicate", "kernel.policy_compliant"]);
    assert_eq!((code, answer.get("onset").unwrap().as_u64()), (0, Some(24)));
    let argv: Vec<String> = answer
        .get("suggestion")
        .unwrap()
        .get("argv")
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .map(|word| word.as_str().unwrap().to_owned())
        .collect();
    let pasted: Vec<&str> = argv[1..].iter().map(String::as_str).collect();
    place.ok(&pasted);
    let runs = place.json(&["runs", "--tree"]).1;
    let forks: Vec<(&str, u64)> = runs
        .get("items")
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|run| {
            let from = run.get("forked_from")?;
            Some((from.get("run")?.as_str()?, from.get("tick")?.as_u64()?))
        })
        .collect();
    let own = [("logistics-run-47", 21), ("logistics-fix-2", 23)];
    let there =
        [("logistics-run-47", 21), ("trip-planner-a", 12), ("trip-planner-a", 30), ("trip-planner-a", 30)];
    assert_eq!(forks, [&own[..], &there].concat());
    let ran = place.run(&fork);
    assert_eq!((ran.code, ran.stderr.contains("E0111")), (2, true), "a name is used once");
    // Both travel in a bundle, which another reader verifies without the store.
    place.ok(&["export", "logistics-fix-2+2", "-o", "fix.dnd"]);
    assert!(place.ok(&["verify", "fix.dnd", "--replay"]).contains("INTACT"));
}

#[test]
fn what_is_enforced_and_what_is_said_are_told_apart() {
    let place = Place::with_demo();
    let base = ["fork", "logistics-run-47", "--from", "tick", "21", "-n", "--replay-rest"];
    let with = |more: &[&str]| place.json(&base.iter().chain(more).copied().collect::<Vec<_>>());
    let (code, said) = with(&["--policy", "require source verification", "--note", "a", "--note", "b"]);
    assert_eq!(code, 0);
    assert_eq!(
        said.get("guidance").unwrap().to_string(),
        r#"{"note":"a\nb","policy":"require source verification"}"#
    );
    assert_eq!(said.get("changed").unwrap().as_array().unwrap().len(), 0);
    let carried = said.get("carried").unwrap();
    // Nothing is different, so all goes on until the kernel itself spoke.
    assert_eq!(carried.get("stopped").unwrap().get("kind").unwrap().as_str(), Some("kernel"));
    assert_eq!(carried.get("stopped").unwrap().get("parent").unwrap().as_u64(), Some(32));
    let (code, enforced) = with(&["--policy", "risk_threshold = 0.65"]);
    assert_eq!(code, 0);
    let changed = enforced.get("changed").unwrap().as_array().unwrap();
    assert_eq!(
        changed.get(0).unwrap().to_string(),
        r#"{"after":0.65,"before":0.75,"enforced_by":"logistics.risk_within_threshold","name":"/risk_threshold","was_absent":false,"what":"state"}"#
    );
    let stopped = enforced.get("carried").unwrap().get("stopped").unwrap();
    assert_eq!(
        (stopped.get("parent").unwrap().as_u64(), stopped.get("kind").unwrap().as_str()),
        (Some(23), Some("decided_on"))
    );
    assert_eq!(stopped.get("now"), Some(&Value::from(0.65)));
    // A dry run writes nothing, so its name is free.
    assert_eq!(enforced.get("run").unwrap().as_str(), Some("logistics-run-47+2"));
    let (code, _) = place.json(&["log", "logistics-run-47+2"]);
    assert_eq!(code, 3);
    // An agent that was killed and restored is the same fork, marked.
    let (code, restored) = with(&["--restore", "feed-reader", "--reason", "hallucination"]);
    assert_eq!((code, restored.get("restored").unwrap().as_str()), (0, Some("feed-reader")));
}

#[test]
fn what_cannot_be_forked_is_refused_with_a_code() {
    let place = Place::with_demo();
    std::fs::write(place.path().join("feed.json"), FEED).unwrap();
    let size = || place.json(&["runs"]).1.get("items").unwrap().as_array().unwrap().len();
    let before = size();
    let cases: &[(&[&str], u8, &str)] = &[
        (
            &["planning-run-12", "--from", "tick", "60"],
            3,
            "planning-run-12 has ticks 1..48, there is no tick 60",
        ),
        (&["nobody", "--from", "3"], 3, "E0101"),
        (&["logistics-run-47"], 2, "--from tick N, or RUN@N"),
        (&["logistics-run-47@3", "--from", "3"], 2, "fork needs one tick"),
        (&["logistics-run-47@3", "--policy", "risk_threshold = high"], 2, "is not JSON"),
        (&["logistics-run-47@3", "--policy", "risk=0.1"], 2, "E0116"),
        (&["logistics-run-47@3", "--set", "risk_score"], 2, "PATH=JSON"),
        (&["logistics-run-47@3", "--set", "policy.violated=1"], 5, "E0405"),
        (&["logistics-run-47@3", "--set", "risk_score=low"], 2, "E0201"),
        (&["logistics-run-47@3", "--tool-output", "22=feed.json"], 2, "--replay-rest"),
        (&["logistics-run-47@22", "--tool-output", "22=feed.json", "--replay-rest"], 2, "before the fork"),
        (&["logistics-run-47@20", "--tool-output", "21=feed.json", "--replay-rest"], 2, "no tool answered"),
        (&["logistics-run-47@20", "--tool-output", "22=none.json", "--replay-rest"], 3, "E0108"),
        (&["logistics-run-47@3", "--as", "planning-run-12"], 2, "E0111"),
        (&["logistics-run-47@3", "--as", "no good"], 2, "E0210"),
        (&["tampered.dnd"], 2, "E0106"),
    ];
    for (args, code, words) in cases {
        let ran = place.run(&[&["fork"], *args].concat());
        assert_eq!(ran.code, i32::from(*code), "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
    }
    assert_eq!(size(), before);
}
