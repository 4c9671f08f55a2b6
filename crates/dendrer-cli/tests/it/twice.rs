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
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
}

/// Both changed one place: one removed it. The conflict keeps all sides until it is decided, the removal too.
#[test]
fn a_removal_beside_a_change_is_a_conflict() {
    let place = Place::with_store();
    commit(&place, "base", r#"{"type":"plan.update","delta":[{"set":"/room","value":{"name":"hall"}}]}"#);
    for run in ["left", "right"] {
        place.ok(&["fork", "base@1", "--as", run]);
    }
    commit(&place, "left", r#"{"type":"plan.update","delta":[{"remove":"/room"}]}"#);
    commit(&place, "right", r#"{"type":"plan.update","delta":[{"set":"/room/name","value":"attic"}]}"#);
    let made = place.run(&["merge", "--as", "both", "--from", "left", "--from", "right"]);
    assert_eq!(made.code, 1, "a conflict is open");
    let made = made.stdout;
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
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
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
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
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
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
}

/// Two agents decide on the same free seat; the answer to the first is lost, and it sends its line again.
#[test]
fn a_line_says_what_it_was_decided_on() {
    let place = Place::with_store();
    commit(
        &place,
        "hall",
        r#"{"type":"plan.update","agent":"seed","delta":[{"set":"/seats_left","value":1}]}"#,
    );
    let take = |agent: &str, key: &str| {
        format!(
            r#"{{"type":"plan.update","agent":"{agent}","base":1,"key":"{key}","delta":[{{"add":"/seats_left","value":-1}}]}}"#
        )
    };
    let send = |line: &str| {
        let ran = place.run_with(&["commit", "--run", "hall", "--json"], line.as_bytes());
        let answer = crate::support::parse(&ran.stdout);
        let item = answer.get("items").and_then(|items| items.as_array()?.get(0).cloned()).unwrap();
        let what = item.get("what").and_then(|what| what.as_str()).unwrap().to_owned();
        (ran.code, what, item)
    };
    let (code, what, item) = send(&take("ann", "r-17"));
    assert_eq!((code, what.as_str(), item.get("head").unwrap().as_u64()), (0, "committed", Some(2)));
    let (code, what, item) = send(&take("bob", "r-18"));
    assert_eq!((code, what.as_str()), (5, "stale"));
    let reason = item.get("reason").unwrap();
    let told = ["base", "changed", "code", "head"].map(|name| reason.get(name).unwrap().to_string());
    assert_eq!(told, ["1", r#"["/seats_left"]"#, r#""E0407""#, "2"]);
    // The same line again, whatever the run is at; also in a fork, which has it from its parent.
    for _ in 0..2 {
        let (code, what, item) = send(&take("ann", "r-17"));
        assert_eq!((code, what.as_str(), item.get("tick").unwrap().as_u64()), (0, "repeated", Some(2)));
    }
    place.ok(&["fork", "hall", "--from", "tip", "--as", "branch"]);
    let ran = place.run_with(&["commit", "--run", "branch"], take("ann", "r-17").as_bytes());
    assert!(ran.code == 0 && ran.stdout.starts_with("repeated  tick 2  "), "{}", ran.stdout);
    // Another line with the key is not taken. A line that was not taken has not used its key.
    let (code, what, item) = send(&take("cid", "r-17"));
    assert_eq!((code, what.as_str()), (5, "key_used"));
    assert_eq!(item.get("reason").and_then(|reason| reason.get("tick")?.as_u64()), Some(2));
    let (code, what, _) = send(&take("bob", "r-18").replace(r#""base":1"#, r#""base":2"#));
    assert_eq!((code, what.as_str()), (0, "committed"));
    assert_eq!(
        place.json(&["state", "hall", "--path", "seats_left"]).1.get("value").unwrap().as_f64(),
        Some(-1.0)
    );
    // In one stream, with lines that say neither; a line behind one that is not taken is read.
    let lines = [
        r#"{"type":"plan.update","agent":"a"}"#,
        r#"{"type":"plan.update","agent":"a","base":9}"#,
        r#"{"type":"plan.update","agent":"a","base":4,"key":"k"}"#,
        r#"{"type":"plan.update","agent":"a","key":"k"}"#,
        r#"{"type":"plan.update","agent":"a"}"#,
    ];
    let ran = place.run_with(&["commit", "--run", "hall"], lines.join("\n").as_bytes());
    let words: Vec<&str> = ran.stdout.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!((ran.code, words), (5, vec!["tick", "stale", "tick", "repeated", "tick"]), "{}", ran.stdout);
    for bad in [r#"{"type":"plan.update","base":-1}"#, r#"{"type":"plan.update","key":""}"#] {
        let ran = place.run_with(&["commit", "--run", "hall"], bad.as_bytes());
        assert!(ran.code == 5 && ran.stdout.contains("E0209"), "{}", ran.stdout);
    }
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
}

/// Eight writers send the same lines, each of them twice: each key is on record once.
#[test]
fn each_key_is_on_record_once() {
    let place = Place::with_store();
    commit(&place, "hall", r#"{"type":"plan.update","agent":"seed","delta":[{"set":"/n","value":0}]}"#);
    let line = |key: usize| {
        format!(r#"{{"type":"plan.update","agent":"a","key":"k{key}","delta":[{{"add":"/n","value":1}}]}}"#)
    };
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let (place, line) = (&place, &line);
            scope.spawn(move || {
                let lines: Vec<String> =
                    (0..20).flat_map(|at| [line((at + writer) % 20), line((at + writer) % 20)]).collect();
                let ran = place.run_with(&["commit", "--run", "hall"], lines.join("\n").as_bytes());
                assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
                assert_eq!(ran.stdout.lines().count(), 40, "{}", ran.stdout);
            });
        }
    });
    assert_eq!(place.json(&["state", "hall", "--path", "n"]).1.get("value").unwrap().as_u64(), Some(20));
    assert_eq!(place.json(&["log", "hall"]).1.get("total").unwrap().as_u64(), Some(21));
    assert!(place.ok(&["verify", "hall", "--replay"]).contains("reproduced"));
}

/// Runs and labels share one space of names, from both sides.
#[test]
fn a_name_keeps_its_meaning() {
    let place = Place::with_store();
    commit(&place, "job", "{\"type\":\"plan.update\"}\n{\"type\":\"plan.update\"}\n");
    place.ok(&["label", "good", "job@1"]);
    for args in [
        &["commit", "--run", "good"][..],
        &["fork", "job@1", "--as", "good"],
        &["merge", "--as", "good", "--from", "job@1", "--from", "job@2"],
        &["rebase", "job", "--onto", "job@1", "--as", "good"],
    ] {
        let ran = place.run_with(args, br#"{"type":"plan.update"}"#);
        assert!(
            ran.code != 0 && ran.stderr.contains("good is the name of a label"),
            "{args:?} {}",
            ran.stderr
        );
    }
    let refused = place.run(&["label", "job", "job@1"]);
    assert!(refused.code != 0 && refused.stderr.contains("a run is called that"), "{}", refused.stderr);
    // A label is moved as a recorded act.
    assert_ne!(place.run(&["label", "good", "job@2"]).code, 0);
    place.ok(&["label", "good", "job@2", "--move"]);
    assert!(place.ok(&["show", "good"]).starts_with("tick 2 "));
    assert_eq!(place.run(&["label", "better", "job@2", "--move"]).code, 3);
    place.ok(&["label", "good", "--remove"]);
    commit(&place, "good", r#"{"type":"plan.update"}"#);
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
}

/// What does not fit is left out, and the facts behind it go on (case B22).
#[test]
fn an_intent_that_does_not_fit_is_left_out() {
    let place = Place::with_store();
    std::fs::write(
        place.path().join("fund.yaml"),
        FUND.replace("state:\n", "state:\n  limit: {init: 50}\n").replacen(
            "  limit: {init: 50}\n  paid",
            "  paid",
            1,
        ),
    )
    .unwrap();
    let moved = r#"{"type":"observation.add","agent":"desk","intent":{"description":"kim moved"}}"#;
    let lines = format!("{SEEN}\n{PAY}\n{moved}\n");
    let args = ["commit", "--run", "main", "--pack", "fund.yaml", "--stage", "2"];
    assert_eq!(place.run_with(&args, lines.as_bytes()).code, 0);
    for (n, choice) in [&["--skip"][..], &["--only", "observation.add"]].into_iter().enumerate() {
        let run = format!("retry-{n}");
        let fork = ["fork", "main@1", "--set", "limit=40", "--replay-rest", "--as", &run];
        let (code, made) = place.json(&[&fork[..], choice].concat());
        assert_eq!(code, 0, "{made}");
        let carried = made.get("carried").unwrap();
        assert_eq!(carried.get("ticks").unwrap().to_string(), r#"[{"parent":3,"tick":3}]"#);
        let left = carried.get("left_out").unwrap().as_array().unwrap().get(0).unwrap();
        let kind = left.get("kind").unwrap().as_str().unwrap();
        assert_eq!((left.get("parent").unwrap().as_u64(), kind), (Some(2), ["decided_on", "not_chosen"][n]));
        // The marker names it, too.
        let (_, marker) = place.json(&["show", &format!("{run}@2")]);
        let sealed = marker.get("content").unwrap().get("fork").unwrap().get("left_out").unwrap().to_string();
        assert_eq!(sealed, format!(r#"[{{"from_tick":2,"to_tick":2,"why":"{kind}"}}]"#));
    }
    // The same in a rebase, which is refused here by the contract.
    let rebase = ["rebase", "main", "--onto", "retry-0@2", "--again", "--skip", "--as", "moved"];
    let (code, made) = place.json(&rebase);
    assert_eq!((code, made.get("left_out").unwrap().as_u64()), (0, Some(1)), "{made}");
    assert_eq!(place.run(&["fork", "main@1", "--skip"]).code, 2);
    assert_eq!(place.run(&["rebase", "main", "--onto", "retry-0", "--only", "observaton.add"]).code, 3);
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
}

/// What is left out takes its results along, by link, by call id and by what was asked, and what names any of it.
#[test]
fn what_is_left_out_takes_along_what_came_of_it() {
    let place = Place::with_store();
    let lines = [
        r#"{"type":"plan.update","agent":"a","intent":{"description":"one"}}"#,
        r#"{"type":"action.request","agent":"a","action":{"tool":"pay","call_id":"c1","params":{"n":1}}}"#,
        r#"{"type":"action.request","agent":"b","action":{"tool":"pay","call_id":"c1","params":{"n":2}}}"#,
        r#"{"type":"action.result","agent":"a","action":{"call_id":"c1","tool":"pay"},"result":{"output":1,"status":"ok"}}"#,
        r#"{"type":"action.result","agent":"b","action":{"call_id":"c1","tool":"pay"},"result":{"output":2,"status":"ok"}}"#,
        r#"{"type":"observation.add","agent":"c","links":[{"rel":"evidence","tick":4}],"intent":{"description":"it says 1"}}"#,
        r#"{"type":"observation.add","agent":"c","links":[{"rel":"evidence","tick":6}],"intent":{"description":"I heard so"}}"#,
        r#"{"type":"observation.add","agent":"c","links":[{"rel":"evidence","tick":5}],"intent":{"description":"it says 2"}}"#,
        r#"{"type":"action.request","agent":"a","action":{"tool":"look","params":{}}}"#,
        r#"{"type":"action.result","agent":"a","action":{"tool":"look","params":{}},"result":{"output":3,"status":"ok"}}"#,
    ];
    for line in lines {
        // A link names a record by its id.
        let linked = line.split_once(r#""tick":"#).map(|(before, after)| {
            let (tick, after) = after.split_at(1);
            let (_, named) = place.json(&["show", &format!("main@{tick}")]);
            format!(r#"{before}"hash":{}{after}"#, named.get("id").unwrap())
        });
        commit(&place, "main", linked.as_deref().unwrap_or(line));
    }
    let left = |made: &dendrer_object::Value, name: &str| -> String {
        let left = made.get("carried").unwrap().get("left_out").unwrap().as_array().unwrap();
        left.iter().map(|one| format!("{}:{} ", one.get("parent").unwrap(), one.get(name).unwrap())).collect()
    };
    // Facts alone: each that came of a request goes with it.
    let facts = ["fork", "main@1", "--replay-rest", "--only", "action.result,observation.add", "--as"];
    let (_, made) = place.json(&[&facts[..], &["facts", "--skip"]].concat());
    assert_eq!(
        left(&made, "kind"),
        "2:\"not_chosen\" 3:\"not_chosen\" 4:\"left_out\" 5:\"left_out\" 6:\"left_out\" 7:\"left_out\" 8:\"left_out\" 9:\"not_chosen\" 10:\"left_out\" "
    );
    // Without --skip it ends at the first that names something left out.
    let (_, made) = place.json(&[&facts[..], &["ends"]].concat());
    let stopped = made.get("carried").unwrap().get("stopped").unwrap();
    assert_eq!(stopped.get("why").unwrap().as_str(), Some("it rests on parent tick 2, which is left out"));
    // One request alone: an id is one agent's own.
    place.ok(&["fork", "main@1", "--as", "base"]);
    let only = ["rebase", "main", "--onto", "base@0", "--again", "--only"];
    let (_, made) = place.json(&[&only[..], &["plan.update,observation.add", "--skip", "--plan"]].concat());
    let fates: String = made
        .get("items")
        .unwrap()
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item.get("fate").unwrap().as_str().unwrap().chars().next().unwrap())
        .collect();
    assert_eq!(fates, "clllllllll");
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
}

/// Lists that a pack combines: as a set, and as a journal behind the last common record.
#[test]
fn a_pack_says_how_lists_are_merged() {
    let place = Place::with_store();
    let pack = "name: club
version: v1
reducer: delta/1
state:
  guests: {init: \"['ivy', 'max']\", combine: set}
  journal: {init: \"['opened']\", combine: append}
  order: {init: \"[1]\"}
";
    std::fs::write(place.path().join("club.yaml"), pack).unwrap();
    let begun = r#"{"type":"observation.add","intent":{"description":"opened"}}"#;
    assert_eq!(place.run_with(&["commit", "--run", "base", "--pack", "club.yaml"], begun.as_bytes()).code, 0);
    for (run, delta) in [
        (
            "left",
            r#"[{"set":"/guests","value":["ivy","uma"]},{"append":"/journal","value":"max left"},{"append":"/order","value":2}]"#,
        ),
        (
            "right",
            r#"[{"set":"/guests","value":["max","ivy","zoe","uma"]},{"append":"/journal","value":"zoe came"}]"#,
        ),
    ] {
        place.ok(&["fork", "base@1", "--as", run]);
        commit(&place, run, &format!(r#"{{"type":"plan.update","delta":{delta}}}"#));
    }
    for (n, pair) in [["left", "right"], ["right", "left"]].into_iter().enumerate() {
        let run = format!("both-{n}");
        let made = place.ok(&["merge", "--as", &run, "--from", pair[0], "--from", pair[1]]);
        assert!(
            made.contains("combined   guests   of a, b, as set\ncombined   journal   of a, b, as append\n"),
            "{made}"
        );
        let (_, state) = place.json(&["state", &run]);
        assert_eq!(
            state.get("value").unwrap().to_string(),
            r#"{"guests":["ivy","uma","zoe"],"journal":["opened","max left","zoe came"],"order":[1,2]}"#
        );
    }
    // The plan has all sides of what they differ on, and nothing is written.
    let plan = ["merge", "--as", "planned", "--from", "left", "--from", "right", "--plan"];
    let shown = place.ok(&plan);
    let rows = r#"place      order
  base     [1]   base@1
  a        [1,2]   left@3
  b        [1]   right@3
  merged   [1,2]
"#;
    assert!(shown.contains(rows), "{shown}");
    assert_eq!(place.run(&["log", "planned"]).code, 3);
    // A journal that one side rewrote is a conflict.
    commit(&place, "right", r#"{"type":"plan.update","delta":[{"set":"/journal","value":[]}]}"#);
    let shown = place.ok(&["merge", "--as", "planned", "--from", "left", "--from", "right", "--plan"]);
    assert!(shown.contains("  merged   (conflict, open)\n"), "{shown}");
    assert!(place.ok(&["pack", "show", "./club.yaml"]).contains("merged as append"));
    std::fs::write(place.path().join("bad.yaml"), pack.replace("append", "first")).unwrap();
    assert!(
        place.run(&["pack", "check", "bad.yaml"]).stdout.contains("combine is set or append, not \"first\"")
    );
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
}

/// A run that was made by mistake is left out of lists by a recorded act, and nothing else happens to it.
#[test]
fn a_run_is_dropped_from_lists_and_taken_back() {
    let place = desks();
    place.ok(&["runs", "drop", "desk-b", "--reason", "made by mistake"]);
    let listed = place.ok(&["runs"]);
    assert!(!listed.contains("desk-b") && listed.contains("1 dropped (--all shows them)"), "{listed}");
    assert!(place.ok(&["runs", "--all"]).contains("dropped: desk-b"));
    let (_, runs) = place.json(&["runs"]);
    assert_eq!(runs.get("hidden").unwrap().as_u64(), Some(1));
    place.ok(&["log", "desk-b"]);
    assert!(place.ok(&["verify", "--all"]).contains("desk-b"));
    assert_eq!(place.run(&["runs", "drop", "desk-b"]).code, 2);
    assert_eq!(place.run(&["runs", "drop", "desk-c"]).code, 3);
    place.ok(&["runs", "drop", "desk-b", "--undo"]);
    assert!(place.ok(&["runs"]).contains("desk-b"));
    assert_eq!(place.run(&["runs", "drop", "desk-b", "--undo"]).code, 2);
    assert!(place.ok(&["log", "casebook"]).contains("drop"));
}

/// The words of other version control answer with the verb to use.
#[test]
fn undo_reset_amend_and_revert_name_the_verb_to_use() {
    let place = Place::with_store();
    for (word, help) in [("undo", "fork"), ("reset", "fork"), ("amend", "fork"), ("revert", "")] {
        let ran = place.run(&[word]);
        assert_eq!(ran.code, 2);
        assert!(ran.stderr.contains(&format!("help: dendrer {help}")), "{}", ran.stderr);
    }
}

/// What a source that did not change a place has unknown there is known where another one wrote it.
#[test]
fn a_place_is_unknown_where_the_side_is_that_it_is_taken_from() {
    let place = Place::with_store();
    let pack = "name: orders
version: v1
state: {approved: {init: 'false'}}
types: {order.approve: an approval}
rules:
  - {when_type: order.approve, steps: [{set: approved, value: t.intent.approved}]}
";
    std::fs::write(place.path().join("p.yaml"), pack).unwrap();
    let begun = r#"{"type":"observation.add","intent":{"description":"opened"}}"#;
    assert_eq!(place.run_with(&["commit", "--run", "base", "--pack", "p.yaml"], begun.as_bytes()).code, 0);
    for (run, said) in [("left", r#"{"approved":true}"#), ("right", r#"{"aproved":true}"#), ("idle", "{}")] {
        place.ok(&["fork", "base@1", "--as", run]);
        if run != "idle" {
            commit(&place, run, &format!(r#"{{"type":"order.approve","intent":{said}}}"#));
        }
    }
    for (run, sources, known) in [("a", ["left", "right"], true), ("b", ["idle", "right"], false)] {
        place.ok(&["merge", "--as", run, "--from", sources[0], "--from", sources[1]]);
        let (_, state) = place.json(&["state", run]);
        assert_eq!(state.get("unknown").is_none(), known, "{state}");
    }
}

/// Eight writers that are killed at random and repeat all their lines: each key is on record exactly once.
#[test]
fn a_key_is_on_record_once_whatever_is_killed_and_repeated() {
    const KILLS: u64 = 13;
    const LINES: usize = 40;
    let place = Place::with_store();
    commit(&place, "shared", r#"{"type":"observation.add","intent":{"description":"begun"}}"#);
    std::thread::scope(|scope| {
        for writer in 0..8u64 {
            let place = &place;
            scope.spawn(move || {
                let lines: String = (0..LINES)
                    .map(|n| format!("{{\"type\":\"observation.add\",\"agent\":\"w{writer}\",\"key\":\"{writer}-{n}\",\"intent\":{{\"n\":{n}}}}}\n"))
                    .collect();
                let file = format!("lines-{writer}.jsonl");
                std::fs::write(place.path().join(&file), lines).unwrap();
                let spawn = || {
                    let mut command = place.command(&["commit", "--run", "shared", "--file", &file]);
                    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null()).spawn().unwrap()
                };
                for kill in 0..KILLS {
                    let mut child = spawn();
                    // Some are killed before they open the store, some while they write, some behind their last line.
                    std::thread::sleep(std::time::Duration::from_millis((writer * 7 + kill * 11) % 60));
                    let _ = child.kill();
                    child.wait().unwrap();
                }
                assert!(spawn().wait().unwrap().success(), "writer {writer}");
            });
        }
    });
    let (_, log) = place.json(&["log", "shared", "-n", "0"]);
    assert_eq!(log.get("items").unwrap().as_array().unwrap().len(), 1 + 8 * LINES);
    let exported = place.ok(&["export", "shared", "--format", "jsonl", "-o", "-"]);
    let keys: Vec<&str> =
        exported.lines().filter_map(|line| line.split("\"key\":\"").nth(1)?.split('"').next()).collect();
    let once: std::collections::BTreeSet<&str> = keys.iter().copied().collect();
    assert_eq!((keys.len(), once.len()), (8 * LINES, 8 * LINES));
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
}
