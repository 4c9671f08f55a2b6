//! Merges of agents of one run: leaf by leaf, each decision on record, and what the door refuses of them.

use dendrer_object::{Digest, Value, json};

use crate::support::Place;

/// Commits one line, and returns the exit code and its reply.
fn commit(place: &Place, run: &str, line: &str) -> (i32, Value) {
    let ran = place.run_with(&["commit", "--run", run, "--jsonl"], format!("{line}\n").as_bytes());
    let replies: Vec<Value> =
        ran.stdout.lines().map(|line| json::parse_door(line.as_bytes()).unwrap()).collect();
    let reply = replies.into_iter().find(|reply| reply.get("line").and_then(Value::as_u64) == Some(1));
    (ran.code, reply.unwrap_or_else(|| panic!("{}{}", ran.stdout, ran.stderr)))
}

fn id(reply: &Value) -> String {
    reply.get("id").and_then(Value::as_str).unwrap_or_else(|| panic!("{reply}")).to_owned()
}

/// Commits a line of an agent with links, and returns its id.
fn step(place: &Place, run: &str, agent: &str, links: &[(&str, &str)], more: &str) -> String {
    let (code, reply) = commit(place, run, &line(agent, links, more));
    assert_eq!(code, 0, "{reply}");
    id(&reply)
}

fn line(agent: &str, links: &[(&str, &str)], more: &str) -> String {
    let links: Vec<String> =
        links.iter().map(|(rel, hash)| format!(r#"{{"rel":"{rel}","hash":"{hash}"}}"#)).collect();
    let links = links.join(",");
    format!(r#"{{"type":"plan.update","agent":"{agent}","links":[{links}]{more}}}"#)
}

fn state(place: &Place, of: &str) -> String {
    place.json(&["state", of]).1.get("value").unwrap_or_else(|| panic!("{of}")).to_string()
}

fn team(place: &Place, merge: &str) {
    let pack = format!("name: team\nversion: v1\nreducer: delta/1\nmerge: {merge}\n");
    std::fs::write(place.path().join("team.yaml"), pack).unwrap();
    let lead = r#"{"type":"observation.add","agent":"lead","delta":[{"set":"/memory/booking","value":{"hotel":"none","flight":"none"}}]}"#;
    let begun = place.run_with(&["commit", "--run", "team", "--pack", "./team.yaml"], lead.as_bytes());
    assert_eq!(begun.code, 0, "{}", begun.stderr);
}

fn lead(place: &Place) -> String {
    place.json(&["show", "team@1"]).1.get("id").unwrap().as_str().unwrap().to_owned()
}

/// G22: two agents fill in one booking, one the hotel and one the flight: nothing is lost by any strategy.
#[test]
fn two_writers_of_two_places_lose_nothing() {
    for merge in ["{strategy: lww}", "{strategy: confidence}", "{strategy: policy, roles: {ann: 1, bob: 2}}"]
    {
        let place = Place::with_store();
        team(&place, merge);
        let first = lead(&place);
        let caused = [("caused_by", first.as_str())];
        step(&place, "team", "ann", &caused, r#","delta":[{"set":"/memory/booking/hotel","value":"Rose"}]"#);
        let bob = step(
            &place,
            "team",
            "bob",
            &caused,
            r#","delta":[{"set":"/memory/booking/flight","value":"X1"}]"#,
        );
        step(&place, "team", "ann", &[("merges", &bob)], "");
        assert_eq!(
            state(&place, "team:ann"),
            r#"{"memory":{"booking":{"flight":"X1","hotel":"Rose"}}}"#,
            "{merge}"
        );
        let (code, listed) = place.json(&["conflicts", "list", "team", "--decided"]);
        assert_eq!((code, listed.get("decided").unwrap().as_u64()), (0, Some(0)));
        let shown = place.ok(&["show", "team@4"]);
        assert!(shown.contains("merged     memory.booking   no place in conflict"), "{shown}");
        // The flight came with the merge; the hotel was there.
        let writes = |path: &str| {
            let (_, found) = place.json(&["backtrack", "team:ann", path]);
            let items = found.get("items").unwrap().as_array().unwrap().clone();
            items.iter().map(|item| item.get("tick").unwrap().as_u64().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(writes("memory.booking.flight"), [4, 3, 1]);
        assert_eq!(writes("memory.booking.hotel"), [2, 1]);
        assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
    }
}

/// F-25 to F-27: each decision has place, sides, winner and rule in `conflicts list --decided`, `show` and `backtrack`, and
/// `conflicts resolve` undoes it.
#[test]
fn each_decision_is_on_record_and_can_be_undone() {
    let place = Place::with_store();
    team(&place, "{strategy: lww}");
    let first = lead(&place);
    let caused = [("caused_by", first.as_str())];
    let ann =
        r#","delta":[{"set":"/memory/booking/hotel","value":"Rose"},{"set":"/memory/seats","value":2}]"#;
    step(&place, "team", "ann", &caused, ann);
    let bob = r#","delta":[{"set":"/memory/booking","value":{"hotel":"Ritz","flight":"X1"}}]"#;
    let bob = step(&place, "team", "bob", &caused, bob);
    step(&place, "team", "ann", &[("merges", &bob)], "");
    assert_eq!(
        state(&place, "team:ann"),
        r#"{"memory":{"booking":{"flight":"X1","hotel":"Ritz"},"seats":2}}"#
    );
    assert_eq!(
        place.ok(&["conflicts", "list", "team"]),
        "0 of 0 conflicts, 0 open\n1 place decided by a strategy (--decided lists them)\n"
    );
    assert_eq!(
        place.ok(&["conflicts", "list", "team", "--decided"]),
        "memory.booking.hotel   at tick 4   bob taken by lww
  ann   \"Rose\"   written at tick 2
  bob   \"Ritz\"   written at tick 3
1 of 1 place decided by a strategy
"
    );
    let (_, listed) = place.json(&["conflicts", "list", "team", "--decided"]);
    let item = listed.get("items").unwrap().as_array().unwrap().get(0).unwrap().clone();
    assert_eq!(item.get("rule").unwrap().as_str(), Some("lww"));
    assert_eq!(item.get("status").unwrap().as_str(), Some("taken"));
    let winner = item.get("winner").unwrap();
    assert_eq!(
        (winner.get("source").unwrap().as_str(), winner.get("tick").unwrap().as_u64()),
        (Some("bob"), Some(3))
    );
    let said = "memory.booking.hotel   lww: took bob \"Ritz\" (tick 3) over ann \"Rose\" (tick 2)";
    let shown = place.ok(&["show", "team@4"]);
    assert!(shown.contains(&format!("merged     {said}\n")), "{shown}");
    let walked = place.ok(&["backtrack", "team:ann", "memory.booking.hotel"]);
    assert!(walked.contains(said), "{walked}");
    place.ok(&[
        "conflicts",
        "resolve",
        "team",
        "memory.booking.hotel",
        "--take",
        "ann",
        "--reason",
        "ann paid",
    ]);
    assert_eq!(
        state(&place, "team:operator"),
        r#"{"memory":{"booking":{"flight":"X1","hotel":"Rose"},"seats":2}}"#
    );
    let listed = place.ok(&["conflicts", "list", "team", "--decided"]);
    assert!(listed.contains(r#"bob by lww, then   ann taken at tick 5: "ann paid""#), "{listed}");
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
}

/// F-24, F-54: what is no way to merge is refused at the door, at stage 0 too.
#[test]
fn a_merge_that_is_none_is_refused_at_the_door() {
    let place = Place::with_store();
    for (merge, at) in [
        (r#"{"strategy":"majority"}"#, "/intent/merge/strategy"),
        (r#"{"stratgy":"lww"}"#, "/intent/merge/stratgy"),
        (r#""lww""#, "/intent/merge"),
        (r#"{"keys":{"memory/x":"lww"}}"#, "/intent/merge/keys/memory~1x"),
        (r#"{"keys":{"/memory/x":"lww"}}"#, "/intent/merge/keys/~1memory~1x"),
        (r#"{"keys":{"memory.x.y":"lww"}}"#, "/intent/merge/keys/memory.x.y"),
        (r#"{"keys":{"memory.x":"newest"}}"#, "/intent/merge/keys/memory.x"),
        (r#"{"keys":["memory.x"]}"#, "/intent/merge/keys"),
        (r#"{"roles":{"ann":1}}"#, "/intent/merge/roles"),
    ] {
        let (code, reply) =
            commit(&place, "r", &line("ann", &[], &format!(r#","intent":{{"merge":{merge}}}"#)));
        let reason = reply.get("reason").unwrap_or_else(|| panic!("{merge}: {reply}"));
        assert_eq!(code, 5, "{merge}");
        assert_eq!(reason.get("code").unwrap().as_str(), Some("E0209"), "{reply}");
        assert_eq!(reason.get("path").unwrap().as_str(), Some(at), "{reply}");
        let message = reason.get("message").unwrap().as_str().unwrap();
        assert!(message.contains("manual, lww, confidence or policy"), "{reply}");
    }
    for merge in [r#"{"strategy":"lww"}"#, r#"{"keys":{"memory.x":"manual","goals":"policy"}}"#, "{}"] {
        let (code, reply) =
            commit(&place, "r", &line("ann", &[], &format!(r#","intent":{{"merge":{merge}}}"#)));
        assert_eq!(code, 0, "{merge}: {reply}");
    }
}

/// F-27: where `policy` decides and an agent has no role, the reply says so.
#[test]
fn policy_without_a_role_is_noted() {
    let place = Place::with_store();
    team(&place, "{strategy: policy, roles: {bob: 2}}");
    let first = lead(&place);
    let caused = [("caused_by", first.as_str())];
    let bob = step(&place, "team", "bob", &caused, r#","delta":[{"set":"/memory/x","value":1}]"#);
    let (_, reply) = commit(&place, "team", &line("ann", &[("merges", &bob)], ""));
    let notes = reply.get("parents").unwrap().to_string();
    assert_eq!(notes, r#"[{"agent":"ann","note":"no_role"}]"#);
}

/// F-8: a link that `verify --branches` would call invalid is refused; an agent's first `caused_by` of another run is its
/// beginning; a parent that is named twice counts once. The replies say so.
#[test]
fn links_to_other_runs_are_refused_or_said() {
    let place = Place::with_store();
    let other = step(&place, "other", "ann", &[], r#","delta":[{"set":"/memory/x","value":1}]"#);
    let own = step(&place, "r", "ann", &[], r#","delta":[{"set":"/memory/y","value":1}]"#);
    for agent in ["ann", "bob"] {
        let (code, reply) = commit(&place, "r", &line(agent, &[("merges", &other)], ""));
        let reason = reply.get("reason").unwrap_or_else(|| panic!("{reply}"));
        assert_eq!((code, reason.get("code").unwrap().as_str()), (5, Some("E0209")), "{reply}");
        assert_eq!(reason.get("path").unwrap().as_str(), Some("/links/0/hash"));
        assert!(reason.get("message").unwrap().as_str().unwrap().contains("its own run alone"), "{reply}");
    }
    let (code, reply) = commit(&place, "r", &line("bob", &[("caused_by", &other)], ""));
    assert_eq!(code, 0);
    assert_eq!(
        reply.get("parents").unwrap().to_string(),
        format!(r#"[{{"hash":"{other}","note":"begins"}}]"#)
    );
    assert_eq!(state(&place, "r:bob"), "{}");
    let twice = [("merges", own.as_str()), ("merges", own.as_str())];
    let (code, reply) = commit(&place, "r", &line("bob", &twice, ""));
    assert_eq!(code, 0);
    assert_eq!(reply.get("parents").unwrap().to_string(), format!(r#"[{{"hash":"{own}","note":"twice"}}]"#));
    assert_eq!(state(&place, "r:bob"), r#"{"memory":{"y":1}}"#);
    let branches = place.ok(&["verify", "r", "--branches"]);
    assert!(branches.contains("  Branch 'bob': VALID\n"), "{branches}");
    assert!(branches.contains("begins     bob with this run: it names "), "{branches}");
    // Records before a fork are those of the fork too, and what came after it in the parent is not.
    place.ok(&["fork", "r", "--from", "1", "--as", "f"]);
    assert_eq!(commit(&place, "f", &line("carol", &[("merges", &own)], "")).0, 0);
    let later = step(&place, "r", "ann", &[], "");
    let (code, reply) = commit(&place, "f", &line("carol", &[("merges", &later)], ""));
    assert_eq!(code, 5, "{reply}");
    assert!(place.ok(&["verify", "f", "--branches"]).contains("[SUCCESS]"));
}

/// X-9: the marker of a fork says whether something was set.
#[test]
fn the_marker_of_a_fork_says_natural_or_injection() {
    let place = Place::with_store();
    step(&place, "r", "ann", &[], r#","delta":[{"set":"/memory/x","value":1}]"#);
    step(&place, "r", "ann", &[], "");
    std::fs::write(place.path().join("p.yaml"), "name: p\nversion: v1\nreducer: delta/1\n").unwrap();
    for (name, more, kind) in [
        ("same", &[][..], "natural"),
        ("said", &["--reason", "to see"][..], "natural"),
        ("kept", &["--set", "memory.x=1"][..], "natural"),
        ("set", &["--set", "memory.x=5"][..], "injection"),
        ("told", &["--policy", "be careful"][..], "injection"),
        ("pack", &["--contract", "./p.yaml"][..], "injection"),
    ] {
        let fork = [&["fork", "r", "--from", "1", "--as", name][..], more].concat();
        place.ok(&fork);
        let (_, shown) = place.json(&["show", &format!("{name}@2")]);
        assert_eq!(shown.get("type").unwrap().as_str(), Some("run.fork"));
        let content = shown.get("content").unwrap();
        assert_eq!(content.get("fork_type").unwrap().as_str(), Some(kind), "{name}");
        let out = place.ok(&["export", name, "--format", "cfd"]);
        let marker = json::parse_door(out.lines().nth(1).unwrap().as_bytes()).unwrap();
        assert_eq!(marker.get("fork_type").unwrap().as_str(), Some(kind), "{name}");
    }
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
}

/// X-9: another answer of a tool is marked in its own record, also after a rebase; the recorded one is none.
#[test]
fn an_injected_answer_is_marked_wherever_it_goes() {
    let place = Place::with_store();
    let request = r#"{"type":"action.request","agent":"a","action":{"tool":"s","call_id":"c1","params":1}}"#;
    let result = r#"{"type":"action.result","agent":"a","author":"runtime","action":{"tool":"s","call_id":"c1"},"result":{"status":"ok","output":3},"delta":[{"set":"/memory/n","value":3}]}"#;
    place.run_with(&["commit", "--run", "src", "--new"], format!("{request}\n{result}\n").as_bytes());
    place.run_with(&["commit", "--run", "base", "--new"], format!("{request}\n").as_bytes());
    for (number, kind) in [(9, Some("injection")), (3, None)] {
        let answer = format!(r#"{{"output":{number},"delta":[{{"set":"/memory/n","value":{number}}}]}}"#);
        std::fs::write(place.path().join("o.json"), answer).unwrap();
        let (fork, rebased) = (format!("fork{number}"), format!("rebased{number}"));
        place.ok(&["fork", "src@1", "--tool-output", "2=o.json", "--replay-rest", "--as", &fork]);
        place.ok(&["rebase", "--run", &fork, "--onto", "base@1", "--as", &rebased]);
        for (address, expected) in [
            (format!("{fork}@2"), kind.or(Some("natural"))),
            (format!("{fork}@3"), kind),
            (format!("{rebased}@3"), kind),
        ] {
            let (_, shown) = place.json(&["show", &address]);
            let found = shown
                .get("content")
                .unwrap()
                .get("fork_type")
                .and_then(|kind| kind.as_str().map(str::to_owned));
            assert_eq!(found.as_deref(), expected, "{address}");
        }
    }
}

/// A line of a file keeps its spelling through a fork that sets something, its export and the import of that.
#[test]
fn a_number_keeps_its_spelling_through_a_fork() {
    let place = Place::with_store();
    let event = r#"{"action":"x","n":1.0,"m":1e2,"k":0.50}"#;
    let hashed = r#"{"action":"x","k":0.50,"m":1e2,"n":1.0}"#;
    let hash = Digest::of(format!("{hashed}0a2.0.0").as_bytes()).hex();
    let node = format!(
        r#"{{"agent_id":"a","event":{event},"fork_type":null,"hash":"{hash}","node_id":"n0","parents":[],"prev_hash":"","schema_version":"2.0.0","seq":0,"state_delta":{{"memory":{{"x":1.50}}}},"timestamp":1.0}}"#
    );
    std::fs::write(place.path().join("t.jsonl"), format!("{node}\n")).unwrap();
    place.ok(&["import", "t.jsonl", "--kind", "cfd", "--run", "r"]);
    place.ok(&["fork", "r", "--from", "tip", "--as", "f", "--set", "memory.y=2"]);
    let out = place.ok(&["export", "f", "--format", "cfd"]);
    assert_eq!(out.lines().next(), Some(&*node));
    std::fs::write(place.path().join("f.jsonl"), &out).unwrap();
    place.ok(&["import", "f.jsonl", "--kind", "cfd", "--run", "again"]);
    assert_eq!(place.ok(&["export", "again", "--format", "cfd"]), out);
    assert_eq!(state(&place, "again:a"), r#"{"memory":{"x":1.5,"y":2}}"#);
}

/// `fork --set` reaches every agent, whether or not it went on, and no agent learns of another by it. Its export is imported
/// again, with the same states and the numbers as they are spelt.
#[test]
fn what_a_fork_sets_reaches_every_agent() {
    let place = Place::with_store();
    let first =
        step(&place, "r", "lead", &[], r#","delta":[{"set":"/memory","value":{"x":0,"b":{"p":1,"q":1}}}]"#);
    let caused = [("caused_by", first.as_str())];
    step(
        &place,
        "r",
        "ann",
        &caused,
        r#","delta":[{"set":"/memory/x","value":1},{"set":"/memory/b/p","value":2}]"#,
    );
    step(&place, "r", "bob", &caused, r#","delta":[{"set":"/memory/mine","value":"b"}]"#);
    place.ok(&[
        "fork",
        "r",
        "--from",
        "tip",
        "--as",
        "f",
        "--set",
        "memory.x=12345678901234567890",
        "--set",
        "memory.b.q=7",
    ]);
    let set = "12345678901234567890";
    let ann = format!(r#"{{"memory":{{"b":{{"p":2,"q":7}},"x":{set}}}}}"#);
    assert_eq!(state(&place, "f:ann"), ann);
    let bob = step(&place, "f", "bob", &[], r#","intent":{"confidence":0.5}"#);
    let of_bob = format!(r#"{{"memory":{{"b":{{"p":1,"q":7}},"mine":"b","x":{set}}}}}"#);
    assert_eq!(state(&place, "f:bob"), of_bob);
    // A new agent begins behind the marker.
    step(&place, "f", "new", &[], "");
    assert!(state(&place, "f:new").contains(set));
    // What the fork set is in conflict with nobody.
    step(&place, "f", "ann", &[("merges", &bob)], r#","intent":{"merge":{"strategy":"lww"}}"#);
    let merged = format!(r#"{{"memory":{{"b":{{"p":2,"q":7}},"mine":"b","x":{set}}}}}"#);
    assert_eq!(state(&place, "f:ann"), merged);
    assert!(place.ok(&["conflicts", "list", "f", "--decided"]).starts_with("0 of 0 places"));
    let (_, walked) = place.json(&["backtrack", "f:ann", "memory.x"]);
    let ticks = walked.get("items").unwrap().as_array().unwrap().clone();
    assert_eq!(ticks.get(0).unwrap().get("type").unwrap().as_str(), Some("run.fork"), "{walked}");
    let (_, compared) = place.json(&["compare", "f:ann", "f:bob", "--check"]);
    assert_eq!(compared.get("congruent").unwrap().as_f64(), Some(100.0), "{compared}");

    let out = place.ok(&["export", "f", "--format", "cfd"]);
    std::fs::write(place.path().join("f.jsonl"), &out).unwrap();
    place.ok(&["verify", "f.jsonl", "--profile", "cfd"]);
    place.ok(&["import", "f.jsonl", "--kind", "cfd", "--run", "again"]);
    for (agent, expected) in [("ann", &merged), ("bob", &of_bob)] {
        assert_eq!(state(&place, &format!("again:{agent}")), *expected);
    }
    assert_eq!(place.ok(&["export", "again", "--format", "cfd"]), out);
    // A fork of that sets another value for all of them once more.
    place.ok(&["fork", "again", "--from", "tip", "--as", "third", "--set", "memory.x=3"]);
    for agent in ["ann", "bob", "new"] {
        assert!(state(&place, &format!("third:{agent}")).contains(r#""x":3"#), "{agent}");
    }
    assert!(place.ok(&["verify", "--all", "--replay"]).contains("\nINTACT"));
}

fn resolve(place: &Place, run: &str, take: &str) -> (i32, String) {
    let ran = place.run(&["conflicts", "resolve", run, "memory.k", "--take", take, "--reason", "measured"]);
    (ran.code, ran.stderr)
}

/// A name that means two different values is refused, with a way to name each.
#[test]
fn a_name_of_two_values_is_refused() {
    let place = Place::with_store();
    team(&place, "{strategy: manual}");
    let first = lead(&place);
    let caused = [("caused_by", first.as_str())];
    step(&place, "team", "1", &caused, r#","delta":[{"set":"/memory/k","value":5}]"#);
    let b = step(&place, "team", "b", &caused, r#","delta":[{"set":"/memory/k","value":6}]"#);
    step(&place, "team", "1", &[("merges", &b)], "");
    let (code, said) = resolve(&place, "team", "1");
    assert!(code != 0 && said.contains("1 means several values; say agent:1 or value:1"), "{code} {said}");
    assert_eq!(resolve(&place, "team", "agent:1").0, 0);
    assert_eq!(
        state(&place, "team:operator"),
        r#"{"memory":{"booking":{"flight":"none","hotel":"none"},"k":5}}"#
    );
    for (run, value) in [("a", 1), ("b", 2)] {
        let line = format!(r#"{{"type":"plan.update","delta":[{{"set":"/memory/k","value":{value}}}]}}"#);
        commit(&place, run, &line);
    }
    assert_eq!(place.run(&["merge", "--as", "ba", "--from", "b", "--from", "a"]).code, 1);
    let (code, said) = resolve(&place, "ba", "a");
    assert!(code != 0 && said.contains("a means several values; say side:a or run:a"), "{code} {said}");
    assert_eq!(resolve(&place, "ba", "run:a").0, 0);
    assert_eq!(state(&place, "ba"), r#"{"memory":{"k":1}}"#);
}

/// A conflict that two sync nodes met is one conflict, and decided once.
#[test]
fn a_conflict_that_two_agents_met_is_decided_once() {
    let place = Place::with_store();
    team(&place, "{strategy: manual}");
    let first = lead(&place);
    let caused = [("caused_by", first.as_str())];
    let a = step(&place, "team", "a", &caused, r#","delta":[{"set":"/memory/k","value":5}]"#);
    let b = step(&place, "team", "b", &caused, r#","delta":[{"set":"/memory/k","value":6}]"#);
    step(&place, "team", "a", &[("merges", &b)], "");
    step(&place, "team", "b", &[("merges", &a)], "");
    let listed = place.ok(&["conflicts", "list", "team"]);
    assert!(listed.ends_with("1 of 1 conflict, 1 open\n"), "{listed}");
    assert_eq!(resolve(&place, "team", "a").0, 0);
    let (code, said) = resolve(&place, "team", "b");
    assert!(code != 0 && said.contains("settled: tick 6 took a"), "{code} {said}");
    let shown = place.ok(&["conflicts", "show", "team", "memory.k"]);
    assert!(shown.ends_with("1 of 1 conflict, 0 open\n"), "{shown}");
}

/// A member of the state that is an object is no unit, and an agent with the name of a tick of another one is ambiguous.
#[test]
fn names_that_mean_nothing_or_two_things_are_refused() {
    let place = Place::with_store();
    let more = r#","intent":{"merge":{"keys":{"memory":"lww"}}}"#;
    let (code, reply) = commit(&place, "r", &line("ann", &[], more));
    assert_eq!(code, 5);
    let reason = reply.get("reason").unwrap();
    assert_eq!(reason.get("path").unwrap().as_str(), Some("/intent/merge/keys/memory"));
    for agent in ["a", "a", "a@2"] {
        step(&place, "two", agent, &[], "");
    }
    let ran = place.run(&["state", "two:a@2"]);
    assert!(ran.code != 0 && ran.stderr.contains("say a@2@TICK for the first"), "{}", ran.stderr);
    place.ok(&["state", "two:a@2@3"]);
}

/// A place that a strategy decided counts in what is shown of it, and a confidence that is no number from 0 to 1 is named.
#[test]
fn a_decision_is_shown_with_what_it_was_decided_on() {
    let place = Place::with_store();
    team(&place, "{strategy: confidence}");
    let first = lead(&place);
    let caused = [("caused_by", first.as_str())];
    let a = r#","intent":{"confidence":0.4},"delta":[{"set":"/memory/k","value":5}]"#;
    step(&place, "team", "a", &caused, a);
    let b = r#","delta":[{"set":"/memory/k","value":{"v":6,"confidence":7}}]"#;
    let b = step(&place, "team", "b", &caused, b);
    step(&place, "team", "a", &[("merges", &b)], "");
    let shown = place.ok(&["conflicts", "show", "team", "memory.k"]);
    assert!(shown.contains("memory.k   at tick 4   a taken by confidence\n"), "{shown}");
    assert!(
        shown.contains("written at tick 3   its confidence is no number from 0 to 1, and counts as 0\n"),
        "{shown}"
    );
    assert!(shown.contains("1 of 1 conflict"), "{shown}");
}
