//! Limits over time and over several runs: an end that has passed, sums over merges and children, and a budget of a family.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::Place;

/// The user allows 100 in all.
const LIMIT: &str = r#"{"id":"B","type":"obl","hard":true,"gloss":"100 in all","guard":"action.tool == \"pay\"","holds":"spent(action.params.amount) + action.params.amount <= 100"}"#;

fn user(place: &Place, run: &str, commitments: &str) {
    let line = format!(
        r#"{{"type":"observation.add","agent":"ann","intent":{{"description":"d"}},"commitments":[{commitments}]}}"#
    );
    let ran = place.run_with(&["commit", "--run", run, "--stage", "2", "--as", "user"], line.as_bytes());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

fn request(tool: &str, members: Value) -> String {
    let mut line = json!({"type": "action.request", "agent": "a", "action": {"tool": tool, "params": {}}});
    line.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    format!("{line}\n")
}

/// Proposes a line; returns `ok` or the code of the refusal.
fn propose(place: &Place, run: &str, line: &str) -> String {
    let ran = place.run_with(&["commit", "--run", run, "--json"], line.as_bytes());
    let answer: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr));
    let reason = answer["items"][0].get("reason").map(|reason| reason["code"].as_str().unwrap().to_owned());
    reason.unwrap_or_else(|| "ok".to_owned())
}

fn pay(place: &Place, run: &str, amount: u64) -> String {
    let action = json!({"tool": "pay", "params": {"amount": amount}});
    propose(place, run, &request("pay", json!({"action": action})))
}

fn delegate(place: &Place, parent: &str, id: &str, child: &str, members: Value) {
    let mut scope = json!({"id": id, "gloss": "g"});
    scope.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    std::fs::write(place.path().join("scope.json"), scope.to_string()).unwrap();
    place.ok(&["commitments", "delegate", parent, "--scope", "scope.json", "--as", child]);
}

fn asked(place: &Place, args: &[&str]) -> Value {
    let ran = place.run(args);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.stderr))
}

/// Asks a parent to take what a child brought; returns the codes of the reasons.
fn accept(place: &Place, child: &str) -> Vec<String> {
    let answer = asked(place, &["commitments", "accept", child, "--json"]);
    let reasons = answer["reasons"].as_array().unwrap();
    reasons.iter().map(|reason| reason["code"].as_str().unwrap().to_owned()).collect()
}

fn replays(place: &Place) {
    place.ok(&["verify", "--all", "--replay"]);
}

/// A length counts from the time at which the line was first on record, also where it is proposed again.
#[test]
fn an_end_that_has_passed_stays_passed_in_every_copy() {
    let place = Place::with_store();
    std::fs::write(place.path().join("p.yaml"), "name: p\nversion: v1\nstate: {x: {init: 0}}\n").unwrap();
    let approval = r#"{"id":"OK","type":"goal","gloss":"deploy may go out","until":"1s"}"#;
    let bound = r#"{"id":"N","type":"obl","hard":true,"gloss":"no deploy without OK","holds":"action.tool != \"deploy\" || state.commitments.OK.status == \"active\""}"#;
    user(&place, "r", &format!("{approval},{bound}"));
    let other = r#"{"type":"plan.update","agent":"a"}"#;
    assert_eq!(place.run_with(&["commit", "--run", "o", "--stage", "2"], other.as_bytes()).code, 0);
    std::thread::sleep(Duration::from_millis(1300));
    place.ok(&["reduce", "r", "--pack", "p.yaml", "--as", "reduced"]);
    place.ok(&["reduce", "reduced", "--pack", "p.yaml", "--as", "twice"]);
    place.ok(&["fork", "r@0", "--replay-rest", "--as", "forked"]);
    place.ok(&["rebase", "--run", "r", "--onto", "o@1", "--as", "rebased"]);
    assert_eq!(propose(&place, "r", &request("deploy", json!({}))), "E0451");
    for run in ["reduced", "twice", "forked", "rebased"] {
        assert_eq!(propose(&place, run, &request("deploy", json!({}))), "E0451", "{run}");
        let answer = asked(&place, &["commitments", run, "--json"]);
        let items = answer["items"].as_array().unwrap();
        let approval = items.iter().find(|item| item["id"] == "OK").unwrap();
        assert_eq!(approval["status"], "discharged", "{run}");
    }
    replays(&place);
}

/// A line that is imported on the word of a contract keeps its end, too.
#[test]
fn an_end_that_has_passed_stays_passed_in_an_import() {
    let place = Place::with_store();
    let pack = json!({"name": "t.t", "version": "v1", "reducer": "delta/1", "state": {"x": {"init": "0"}},
        "violations": [{"id": "never", "condition": "state.x > 5", "bisect_predicate": "monotone_lift"}],
        "contracts": {"observation.add": {"required_state": {"x": {"type": "number"}}}}});
    std::fs::write(place.path().join("pack.json"), pack.to_string()).unwrap();
    let lines = [
        r#"{"type":"observation.add","agent":"ann","commitments":[{"id":"OK","type":"goal","gloss":"g","until":"1s"}]}"#,
        r#"{"type":"observation.add","agent":"ann"}"#,
    ];
    for (run, line) in ["r", "o"].into_iter().zip(lines) {
        let args = ["commit", "--run", run, "--stage", "2", "--pack", "pack.json", "--as", "user"];
        let ran = place.run_with(&args, line.as_bytes());
        assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    }
    std::thread::sleep(Duration::from_millis(1300));
    place.ok(&["cherrypick", "--into", "o", "r@1"]);
    let answer = asked(&place, &["commitments", "o", "--json"]);
    assert_eq!(answer["items"][0]["status"], "discharged", "{answer}");
    replays(&place);
}

/// An approval whose time has not passed is still there in a copy.
#[test]
fn an_end_to_come_is_the_same_in_a_copy() {
    let place = Place::with_store();
    let approval = r#"{"id":"OK","type":"goal","gloss":"deploy may go out","until":"1h"}"#;
    user(&place, "r", approval);
    place.ok(&["fork", "r@0", "--replay-rest", "--as", "forked"]);
    let answer = asked(&place, &["commitments", "forked", "--json"]);
    assert_eq!(answer["items"][0]["status"], "active", "{answer}");
}

/// A line that would pass a limit is refused, also for the cost that it states itself.
#[test]
fn a_cost_that_would_pass_the_limit_is_refused() {
    let place = Place::with_store();
    user(&place, "lead", LIMIT);
    delegate(&place, "lead", "D", "kid", json!({"budget": {"cost": 1}}));
    let cost = |cost: f64| request("look", json!({"metrics": {"cost_usd": cost}}));
    let found: Vec<String> =
        [50.0, 0.75, 0.5, 0.25, 0.1].into_iter().map(|one| propose(&place, "kid", &cost(one))).collect();
    assert_eq!(found, ["E0452", "ok", "E0452", "ok", "E0452"]);
    let plan = r#"{"type":"plan.update","agent":"a","metrics":{"cost_usd":0.1}}"#;
    assert_eq!(propose(&place, "kid", plan), "E0452");
    replays(&place);
}

/// A merged run has spent what the common past spent, and what each source spent since: shared records count once.
#[test]
fn a_merged_run_has_spent_what_its_sources_spent() {
    let place = Place::with_store();
    user(&place, "base", LIMIT);
    assert_eq!(pay(&place, "base", 10), "ok");
    for run in ["l", "r"] {
        place.ok(&["fork", "base@2", "--as", run]);
    }
    assert_eq!((pay(&place, "l", 20), pay(&place, "r", 30)), ("ok".into(), "ok".into()));
    let tip = |run: &str| {
        let answer = asked(&place, &["log", run, "--json"]);
        answer["items"].as_array().unwrap().iter().filter_map(|item| item["tick"].as_u64()).max().unwrap()
    };
    place.ok(&["fork", &format!("l@{}", tip("l")), "--as", "s"]);
    assert_eq!(pay(&place, "s", 5), "ok");
    let merge = |name: &str, sources: &[&str]| {
        let from = sources.iter().flat_map(|source| ["--from", source]);
        place.ok(&["merge", "--as", name].into_iter().chain(from).collect::<Vec<_>>());
    };
    merge("lr", &["l", "r"]);
    merge("rl", &["r", "l"]);
    merge("lsr", &["l", "s", "r"]);
    merge("rsl", &["r", "s", "l"]);
    merge("again", &["lr", "l"]);
    merge("crossed", &["lr", "rl"]);
    for (run, spent) in [("lr", 60), ("rl", 60), ("lsr", 65), ("rsl", 65), ("again", 60), ("crossed", 60)] {
        assert_eq!(pay(&place, run, 101 - spent), "E0451", "{run}");
        assert_eq!(pay(&place, run, 100 - spent), "ok", "{run}");
    }
    replays(&place);
}

/// Without a common record the sums are added.
#[test]
fn runs_without_a_common_record_have_spent_the_sum() {
    let place = Place::with_store();
    for (run, amount) in [("one", 40), ("two", 25)] {
        user(&place, run, LIMIT);
        assert_eq!(pay(&place, run, amount), "ok");
    }
    place.ok(&["merge", "--as", "m", "--from", "two", "--from", "one"]);
    assert_eq!((pay(&place, "m", 36), pay(&place, "m", 35)), ("E0451".into(), "ok".into()));
}

/// What a child spent is added to the sums of its parent, from where the next child begins.
#[test]
fn what_a_child_spent_reaches_the_limit_of_its_parent() {
    let place = Place::with_store();
    user(&place, "base", LIMIT);
    assert_eq!(pay(&place, "base", 70), "ok");
    delegate(&place, "base", "D1", "k1", json!({}));
    assert_eq!(pay(&place, "k1", 15), "ok");
    assert_eq!(accept(&place, "k1"), [""; 0]);
    delegate(&place, "base", "D2", "k2", json!({}));
    assert_eq!((pay(&place, "k2", 16), pay(&place, "k2", 10)), ("E0451".into(), "ok".into()));
    assert_eq!(accept(&place, "k2"), [""; 0]);
    assert_eq!((pay(&place, "base", 6), pay(&place, "base", 5)), ("E0451".into(), "ok".into()));
    replays(&place);
}

/// Of two children that each are within the limit the parent takes one, and refuses the one with which the limit is passed.
#[test]
fn children_that_pass_the_limit_together_are_not_both_taken() {
    let place = Place::with_store();
    user(&place, "base", LIMIT);
    assert_eq!(pay(&place, "base", 80), "ok");
    delegate(&place, "base", "D1", "k1", json!({}));
    delegate(&place, "base", "D2", "k2", json!({}));
    delegate(&place, "k2", "D3", "inner", json!({}));
    assert_eq!((pay(&place, "k1", 15), pay(&place, "inner", 15)), ("ok".into(), "ok".into()));
    let result = r#"{"type":"action.result","agent":"a","action":{"tool":"pay","params":{"amount":15}},"result":{"status":"ok","output":1}}"#;
    assert_eq!(place.run_with(&["commit", "--run", "k1", "--as", "runtime"], result.as_bytes()).code, 0);
    assert_eq!(accept(&place, "inner"), [""; 0]);
    assert_eq!(accept(&place, "k1"), [""; 0]);
    assert_eq!(accept(&place, "k2"), ["E0451"]);
    assert_eq!((pay(&place, "base", 6), pay(&place, "base", 5)), ("E0451".into(), "ok".into()));
    replays(&place);
}

/// A family that is over its budget is not taken, whichever of its runs used it.
#[test]
fn a_family_that_is_over_its_budget_is_not_taken() {
    let place = Place::with_store();
    let plan = r#"{"type":"plan.update","agent":"a"}"#;
    assert_eq!(place.run_with(&["commit", "--run", "lead", "--stage", "1"], plan.as_bytes()).code, 0);
    delegate(&place, "lead", "D", "kid", json!({"budget": {"calls": 2}}));
    for _ in 0..2 {
        assert_eq!(propose(&place, "kid", &request("look", json!({}))), "ok");
    }
    place.ok(&["fork", "kid@1", "--as", "twin"]);
    // Below stage 2 a call beyond the budget is noted and committed.
    assert_eq!(propose(&place, "twin", &request("look", json!({}))), "ok");
    assert_eq!(accept(&place, "kid"), ["E0452"]);
}

/// What is reduced from a fork of a child uses the budget of the child; the transitions that it repeats are counted once.
#[test]
fn a_run_that_was_reduced_from_a_child_uses_its_budget() {
    let place = Place::with_store();
    std::fs::write(place.path().join("p.yaml"), "name: p\nversion: v1\nstate: {x: {init: 0}}\n").unwrap();
    user(&place, "lead", LIMIT);
    delegate(&place, "lead", "D", "kid", json!({"budget": {"calls": 4}}));
    let look = request("look", json!({}));
    assert_eq!([propose(&place, "kid", &look), propose(&place, "kid", &look)], ["ok", "ok"]);
    place.ok(&["fork", "kid@2", "--as", "twin"]);
    assert_eq!(propose(&place, "twin", &look), "ok");
    place.ok(&["reduce", "twin", "--pack", "p.yaml", "--as", "reduced"]);
    assert_eq!(propose(&place, "reduced", &look), "ok");
    for run in ["reduced", "twin", "kid"] {
        assert_eq!(propose(&place, run, &look), "E0452", "{run}");
    }
    assert_eq!(accept(&place, "kid"), [""; 0]);
}

/// Writers at the same time do not pass a budget together.
#[test]
fn writers_at_the_same_time_stay_within_one_budget() {
    let place = Place::with_store();
    user(&place, "lead", LIMIT);
    delegate(&place, "lead", "D", "mid", json!({"budget": {"calls": 10}}));
    for child in ["a", "b"] {
        delegate(&place, "mid", &format!("E{child}"), child, json!({}));
    }
    let many: String =
        (0..8).map(|n| request("look", json!({"action": {"tool": "look", "params": {"n": n}}}))).collect();
    let count = |run: &str| {
        let ran = place.run_with(&["commit", "--run", run], many.as_bytes());
        ran.stdout.lines().filter(|line| line.starts_with("tick")).count()
    };
    let (a, b) = std::thread::scope(|scope| {
        let other = scope.spawn(|| count("b"));
        (count("a"), other.join().unwrap())
    });
    assert_eq!(a + b, 10, "{a} and {b}");
    assert_eq!(accept(&place, "mid"), [""; 0]);
}
