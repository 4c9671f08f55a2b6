//! Histories that share are counted once: merges, picks, and lines that are sent again.

use crate::support::Place;

fn commit(place: &Place, run: &str, lines: &str) {
    let ran = place.run_with(&["commit", "--run", run], lines.as_bytes());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

/// Two branches of one run: one took a guest off the list, the other added one.
#[test]
fn a_merge_brings_nothing_back() {
    let place = Place::with_store();
    commit(
        &place,
        "base",
        r#"{"type":"plan.update","delta":[{"set":"/guests/ivy","value":"yes"},{"set":"/guests/max","value":"yes"},{"set":"/room","value":1}]}"#,
    );
    for run in ["left", "right"] {
        place.ok(&["fork", "base@1", "--as", run]);
    }
    commit(
        &place,
        "left",
        r#"{"type":"plan.update","delta":[{"remove":"/guests/max"},{"set":"/room","value":2}]}"#,
    );
    commit(&place, "right", r#"{"type":"plan.update","delta":[{"set":"/guests/uma","value":"yes"}]}"#);
    for strategy in ["manual", "lww", "first"] {
        let run = format!("both-{strategy}");
        let made =
            place.ok(&["merge", "--as", &run, "--from", "right", "--from", "left", "--strategy", strategy]);
        assert!(made.contains("base       base@1, the last record in all histories\nremoved    guests.max   by b at tick 3\n"), "{made}");
        let (_, state) = place.json(&["state", &run]);
        assert_eq!(
            state.get("value").unwrap().to_string(),
            r#"{"guests":{"ivy":"yes","uma":"yes"},"room":2}"#
        );
    }
    // A merge of a merge knows its sources: what is in both is merged over what they share.
    commit(&place, "both-lww", r#"{"type":"plan.update","delta":[{"remove":"/guests/ivy"}]}"#);
    commit(&place, "left", r#"{"type":"plan.update","delta":[{"set":"/guests/zoe","value":"yes"}]}"#);
    let made = place.ok(&["merge", "--as", "again", "--from", "both-lww", "--from", "left"]);
    assert!(made.contains("base       left@3, the last record in all histories\n"), "{made}");
    let (_, state) = place.json(&["state", "again"]);
    assert_eq!(state.get("value").unwrap().to_string(), r#"{"guests":{"uma":"yes","zoe":"yes"},"room":2}"#);
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("VERIFIED"));
}

/// Both changed one place: one removed it. All is kept until somebody decides, also for the removal.
#[test]
fn a_removal_beside_a_change_is_a_conflict() {
    let place = Place::with_store();
    commit(&place, "base", r#"{"type":"plan.update","delta":[{"set":"/room","value":{"name":"hall"}}]}"#);
    for run in ["left", "right"] {
        place.ok(&["fork", "base@1", "--as", run]);
    }
    commit(&place, "left", r#"{"type":"plan.update","delta":[{"remove":"/room"}]}"#);
    commit(&place, "right", r#"{"type":"plan.update","delta":[{"set":"/room/name","value":"attic"}]}"#);
    let made = place.ok(&["merge", "--as", "both", "--from", "left", "--from", "right"]);
    assert!(
        made.contains(
            r#"conflict   room   a removed it   b {"name":"attic"}   strategy manual: all kept, none taken"#
        ),
        "{made}"
    );
    place.ok(&["conflicts", "resolve", "both", "room", "--take", "a", "--reason", "it is let"]);
    let listed = place.ok(&["conflicts", "list", "both"]);
    assert!(listed.contains("a taken at tick 1: \"it is let\"") && listed.contains("0 open"), "{listed}");
    let (_, state) = place.json(&["state", "both"]);
    assert_eq!(state.get("value").unwrap().to_string(), "{}");
    // It is settled, so the run is a source again.
    place.ok(&["merge", "--as", "more", "--from", "both", "--from", "left"]);
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("VERIFIED"));
}

const FUND: &str = "name: club.fund
version: v1
state:
  cash: {init: 500, decimals: 2}
  limit: {init: 50}
  paid: {init: \"[]\"}
types:
  pay_member: money goes to a member
rules:
  - when_type: pay_member
    steps:
      - {add: cash, value: 0 - t.intent.amount}
      - {append: paid, value: t.intent.to}
contracts:
  pay_member: {required_state: {cash: {type: number, precision: 2}, limit: {type: number}}, hash_seeds: [limit]}
violations:
  - {id: overdrawn, condition: state.cash < 0, bisect_predicate: monotone_lift}
";

const PAY: &str = r#"{"type":"pay_member","agent":"ann","intent":{"to":"lee","amount":120}}"#;
const SEEN: &str = r#"{"type":"observation.add","agent":"ann","intent":{"description":"second desk opens"}}"#;

fn desks() -> Place {
    let place = Place::with_store();
    std::fs::write(place.path().join("fund.yaml"), FUND).unwrap();
    for (run, line) in [("desk-a", PAY), ("desk-b", SEEN)] {
        let args = ["commit", "--run", run, "--pack", "fund.yaml", "--stage", "2"];
        assert_eq!(place.run_with(&args, line.as_bytes()).code, 0);
    }
    place
}

fn paid(place: &Place, run: &str) -> String {
    place.json(&["state", run, "--path", "paid"]).1.get("value").unwrap().to_string()
}

/// What is in a history already is not imported once more, by whatever way it came in.
#[test]
fn a_transition_is_picked_once() {
    let place = desks();
    let pick = ["cherrypick", "desk-a@1", "--into", "desk-b"];
    place.ok(&pick);
    for (args, taken) in [
        (&pick[..], "desk-b@3"),
        (&["cherrypick", "desk-a@1", "--into", "desk-b", "-n"], "desk-b@3"),
        (&["cherrypick", "desk-a@1", "--into", "desk-a"], "desk-a@1"),
    ] {
        let ran = place.run(args);
        assert_eq!(ran.code, 1, "{args:?} {}", ran.stderr);
        let already = format!(": {taken}; nothing was imported\n");
        assert!(ran.stdout.contains("ALREADY") && ran.stdout.contains(&already), "{}", ran.stdout);
        let (code, answer) = place.json(args);
        let tick = answer.get("already").and_then(|already| already.get("tick")?.as_u64());
        assert_eq!((code, tick), (1, taken.split_once('@').unwrap().1.parse().ok()), "{answer}");
        assert_eq!(answer.get("allowed").unwrap().as_bool(), Some(false));
    }
    assert_eq!((paid(&place, "desk-a"), paid(&place, "desk-b")), (r#"["lee"]"#.into(), r#"["lee"]"#.into()));
    // A fork of the run has it from its parent, a rebase has it under the id of the record that was first.
    place.ok(&["fork", "desk-b", "--from", "tip", "--as", "branch"]);
    assert_eq!(place.run(&["cherrypick", "desk-a@1", "--into", "branch"]).code, 1);
    place.ok(&["rebase", "desk-a", "--onto", "desk-b@1", "--as", "moved"]);
    assert_eq!(place.run(&["cherrypick", "desk-a@1", "--into", "moved"]).code, 1);
    assert_eq!(paid(&place, "moved"), r#"["lee"]"#);
    // So has a fork into which the rest of its parent was taken.
    place.ok(&["fork", "desk-a", "--from", "0", "--replay-rest", "--as", "taken"]);
    assert_eq!(place.run(&["cherrypick", "desk-a@1", "--into", "taken"]).code, 1);
    // Once more is said in a word.
    place.ok(&["cherrypick", "desk-a@1", "--into", "desk-b", "--again"]);
    assert_eq!(paid(&place, "desk-b"), r#"["lee","lee"]"#);
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("VERIFIED"));
}

#[test]
fn a_rebase_passes_over_what_is_there() {
    let place = desks();
    place.ok(&["cherrypick", "desk-a@1", "--into", "desk-b"]);
    let two = format!("{SEEN}\n");
    assert_eq!(place.run_with(&["commit", "--run", "desk-a"], two.as_bytes()).code, 0);
    let made = place.ok(&["rebase", "desk-a", "--onto", "desk-b", "--as", "both"]);
    assert!(made.contains("passed over: it is there already, as desk-b@3"), "{made}");
    assert!(made.contains("1 intent carries over, 1 there already"), "{made}");
    assert_eq!(paid(&place, "both"), r#"["lee"]"#);
    // There is nothing left to do, and nothing is made.
    let (code, answer) = place.json(&["rebase", "desk-a", "--onto", "both", "--as", "third"]);
    let outcome = answer.get("outcome").and_then(|outcome| outcome.as_str()).map(str::to_owned);
    assert_eq!((code, outcome.as_deref()), (0, Some("already")), "{answer}");
    assert_eq!(place.run(&["log", "third"]).code, 3);
    // A merged run has the histories of its sources.
    place.ok(&["merge", "--as", "merged", "--from", "desk-a", "--from", "both", "--strategy", "first"]);
    assert_eq!(place.run(&["cherrypick", "desk-a@1", "--into", "merged"]).code, 1);
    place.ok(&["rebase", "desk-a", "--onto", "both", "--as", "again", "--again"]);
    assert_eq!(paid(&place, "again"), r#"["lee","lee"]"#);
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("VERIFIED"));
}
