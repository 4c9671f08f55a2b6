//! Nothing that a bundle or a store has left leads to a value that was withheld or erased.
//!
//! Two tests of each case. A guesser who knows all but the value tries booleans, numbers and words against every digest that is left.
//! And what is left is the same, byte for byte, where the value was another one: then no guesser can tell the two apart.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use dendrer::bundle::{self, Opened};
use dendrer_chain::content_hash_of;
use dendrer_object::note::SignedNote;
use dendrer_object::record::{Kind, Record};
use dendrer_object::{Digest, Pointer, json as canonical};
use regex::Regex;
use serde_json::{Value, json};

use crate::support::Place;

/// What a case leaves: the runs that are handed over, and the place of the value.
struct Told {
    runs: Vec<&'static str>,
    place: String,
    /// The flag with which each open place is named: those that do not depend on the value may stay.
    flag: &'static str,
}

fn told(runs: &[&'static str], place: impl Into<String>) -> Told {
    Told { runs: runs.to_vec(), place: place.into(), flag: "--also" }
}

/// As [`told`], of a case whose later texts are the same with any value.
fn told_and_stays(runs: &[&'static str], place: impl Into<String>) -> Told {
    Told { flag: "--although", ..told(runs, place) }
}

/// A case: its name, and what it records with a value.
type Case = (&'static str, fn(&Place, &Value) -> Told);

const CASES: [Case; 25] = [
    ("delta", delta),
    ("every tick", every_tick),
    ("fold", fold),
    ("forked", forked),
    ("set in a fork", set_in_a_fork),
    ("gone on", gone_on),
    ("replaced", replaced),
    ("merged", merged),
    ("picked", picked),
    ("refused", refused),
    ("line", line),
    ("graph", graph),
    ("chain", chain),
    ("imported", imported),
    ("commitments", commitments),
    ("reduced", reduced),
    ("casebook", casebook),
    ("template", template),
    ("said again", said_again),
    ("removed", removed),
    ("pointers", pointers),
    ("named", named_so),
    ("words", words),
    ("sums", sums),
    ("added up", added_up),
];

/// Two values of each sort, either of which could have been there.
fn values(case: &str) -> Vec<[Value; 2]> {
    let sorts = [[json!(4711), json!(8242)], [json!(true), json!(false)], [json!("amber"), json!("green")]];
    // Rounded, compared or spent: a number.
    let is_number = ["fold", "picked", "refused", "forked", "sums", "added up"].contains(&case);
    sorts.into_iter().take(if is_number { 1 } else { 3 }).collect()
}

/// Commits lines to a run.
fn commit(place: &Place, run: &str, lines: &[Value], args: &[&str]) -> i32 {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    place.run_with(&[&["commit", "--run", run], args].concat(), text.as_bytes()).code
}

fn step(description: &str, members: Value) -> Value {
    let mut line = json!({"type": "plan.update", "agent": "a", "intent": {"description": description}});
    line.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    line
}

fn result(output: &Value, members: Value) -> Value {
    let mut line = json!({
        "type": "action.result", "author": "runtime", "agent": "crm",
        "action": {"tool": "crm", "params": {"id": 7}}, "result": {"status": "ok", "output": output},
    });
    line.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    line
}

fn set(path: &str, value: &Value) -> Value {
    json!({"delta": [{"set": path, "value": value}]})
}

/// A run of three ticks; the second has the value, and puts it into the state.
fn base(place: &Place, value: &Value, args: &[&str]) {
    let lines =
        [step("first", set("/a", &json!(1))), result(value, set("/limit", value)), step("second", json!({}))];
    assert_eq!(commit(place, "r", &lines, &[&["--as", "runtime", "--redact", "none"], args].concat()), 0);
}

const OUTPUT: &str = "r@2:result.output";

fn delta(place: &Place, value: &Value) -> Told {
    base(place, value, &[]);
    told(&["r"], OUTPUT)
}

fn every_tick(place: &Place, value: &Value) -> Told {
    base(place, value, &[]);
    told(&["r"], "result.output")
}

/// Rules compute the state: from the value, which they round, and later from what they wrote.
fn fold(place: &Place, value: &Value) -> Told {
    let pack = r#"name: f
version: v1
state: {limit: {init: 0, decimals: 1}, is_high: {init: "false"}, n: {init: 0}}
rules:
  - when_type: action.result
    steps:
      - {set: limit, value: t.result.output.x}
  - when_type: plan.update
    steps:
      - {set: is_high, value: state.limit > 5000.0}
      - {add: n, value: "1"}
"#;
    std::fs::write(place.path().join("f.yaml"), pack).unwrap();
    let lines = [
        step("first", json!({})),
        result(&json!({"x": value.as_f64().unwrap() + 0.125}), json!({})),
        step("second", json!({})),
    ];
    assert_eq!(commit(place, "r", &lines, &["--as", "runtime", "--pack", "./f.yaml", "--redact", "none"]), 0);
    told(&["r"], OUTPUT)
}

/// The marker of a fork says what a policy rule read before, and what it reads now.
fn forked(place: &Place, value: &Value) -> Told {
    let rule = r#"[{"id":"cap","holds":"!has(state.limit) || state.limit > 1"}]"#;
    std::fs::write(place.path().join("rule.json"), rule).unwrap();
    base(place, value, &["--policy", "rule.json"]);
    place.ok(&["fork", "r@3", "--as", "f", "--policy", "limit=5"]);
    place.ok(&["fork", "r@3", "--as", "g", "--set", "limit=17"]);
    place.ok(&["fork", "f@4", "--as", "h", "--policy", "limit=6"]);
    told(&["f", "g", "h"], OUTPUT)
}

fn set_in_a_fork(place: &Place, value: &Value) -> Told {
    base(place, &json!(7), &[]);
    place.ok(&["fork", "r@3", "--as", "f", "--set", &format!("limit={value}")]);
    place.ok(&["fork", "f@4", "--as", "h", "--set", "limit=1"]);
    told(&["f", "h"], "f@4:state.limit")
}

/// The intents of the parent go on in a fork: what was said there is said again.
fn gone_on(place: &Place, value: &Value) -> Told {
    base(place, value, &[]);
    place.ok(&["fork", "r@1", "--as", "f", "--set", "b=2", "--replay-rest"]);
    told(&["f"], OUTPUT)
}

/// The marker of a fork has the digest of an answer that stands in place of the recorded one.
fn replaced(place: &Place, value: &Value) -> Told {
    let request =
        json!({"type": "action.request", "agent": "a", "action": {"tool": "crm", "params": {"id": 7}}});
    let lines = [request, result(&json!("as it was"), json!({})), step("second", json!({}))];
    assert_eq!(commit(place, "r", &lines, &["--as", "runtime", "--redact", "none"]), 0);
    let other = json!({"output": value, "delta": [{"set": "/limit", "value": value}]});
    std::fs::write(place.path().join("other.json"), other.to_string()).unwrap();
    place.ok(&["fork", "r@1", "--as", "f", "--replay-rest", "--tool-output", "2=other.json"]);
    let (_, log) = place.json(&["log", "f"]);
    let log: Value = serde_json::from_str(&log.to_string()).unwrap();
    let is_result = |item: &&Value| item["type"] == "action.result";
    let tick = &log["items"].as_array().unwrap().iter().find(is_result).unwrap()["tick"];
    told(&["f"], format!("f@{tick}:result.output"))
}

fn merged(place: &Place, value: &Value) -> Told {
    base(place, value, &[]);
    place.ok(&["fork", "r@3", "--as", "i"]);
    place.ok(&["fork", "r@3", "--as", "g"]);
    assert_eq!(commit(place, "i", &[step("x", set("/x", &json!(2)))], &[]), 0);
    assert_eq!(commit(place, "g", &[step("x", set("/limit", &json!(2)))], &[]), 0);
    place.ok(&["merge", "--from", "r", "--from", "i", "--as", "m"]);
    place.ok(&["merge", "--from", "g", "--from", "i", "--as", "n"]);
    assert_eq!(commit(place, "m", &[step("on", json!({}))], &[]), 0);
    // Neither bundle has the record with the value: it came in from there.
    told(&["m", "n"], OUTPUT)
}

/// A step with a contract, picked into a run that has what it needs and into one that has not.
fn picked(place: &Place, value: &Value) -> Told {
    let pack = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/packs/financial.yaml");
    for (run, cash, limit) in [("a", value.clone(), 0.95), ("c", json!(9000), 0.95), ("b", json!(500), 0.2)] {
        let state = json!({
            "cash_balance": cash, "risk_limit": 0.9, "risk_threshold": limit, "risk_score": 0.1,
            "position_size": 100, "market_volatility_index": 17.2,
        });
        std::fs::write(place.path().join("s0.json"), state.to_string()).unwrap();
        let args = ["--stage", "2", "--pack", pack, "--state", "s0.json", "--redact", "none"];
        assert_eq!(commit(place, run, &[step("begin", json!({}))], &args), 0);
    }
    let trade = json!({
        "type": "execute_transaction", "agent": "trader",
        "intent": {"description": "buy", "declared_deps": ["market_volatility_index"]},
        "action": {"tool": "broker.order", "params": {"amount": 1200, "shares": 20}},
    });
    assert_eq!(commit(place, "a", &[trade], &["--redact", "none"]), 0);
    place.ok(&["cherrypick", "a@2", "--into", "c"]);
    assert_eq!(place.run(&["cherrypick", "a@2", "--into", "b"]).code, 5);
    told(&["a", "b", "c"], "a@0:state.cash_balance")
}

/// A refusal says what a rule read.
fn refused(place: &Place, value: &Value) -> Told {
    let pack = "name: r\nversion: v1\nreducer: delta/1\nstate: {limit: {init: 0}, used: {init: 0}, a: {init: 0}}\n\
        violations: [{id: over, condition: state.used > 3 * state.limit, enforce: true}]\n";
    std::fs::write(place.path().join("r.yaml"), pack).unwrap();
    base(place, value, &["--stage", "2", "--pack", "./r.yaml"]);
    assert_eq!(commit(place, "r", &[step("no", set("/used", &json!(900_000)))], &[]), 5);
    assert_eq!(commit(place, "r", &[step("yes", set("/used", &json!(1)))], &[]), 0);
    told(&["r"], OUTPUT)
}

fn line(place: &Place, value: &Value) -> Told {
    base(place, &json!(7), &[]);
    let line = json!({"type": "plan.update", "reads": ["a"], "agent": "a", "intent": {"n": value}});
    assert_eq!(commit(place, "r", &[line], &["--redact", "none"]), 5);
    told(&["r"], "r@refused:1:line")
}

/// The value goes from an edge into the arguments of the next, and into the output.
fn graph(place: &Place, value: &Value) -> Told {
    crate::graphs::write_note(place.path());
    std::fs::write(place.path().join("model.json"), json!({ "day": value }).to_string()).unwrap();
    place.ok(&crate::graphs::RUN);
    told(&["run-84f2"], "run-84f2@2:result.output")
}

/// The file of a chain: every row has a hash over the row before it.
fn chain(place: &Place, value: &Value) -> Told {
    let row = |n: usize, output: Value| {
        json!({"step": {
            "action": "tool_call", "name": "t", "input": {"n": n}, "output": output, "success": true,
            "started_at": "2026-04-20T10:00:00.250000+00:00", "step_id": format!("{n:012x}"), "session_id": "s",
        }})
    };
    let rows = [row(1, json!(0)), row(2, json!({ "pin": value })), row(3, json!(1)), row(4, json!(2))];
    assert_eq!(commit(place, "c", &rows, &["--as", "runtime", "--redact", "none"]), 0);
    place.ok(&["export", "c", "--format", "carl", "-o", "c.jsonl"]);
    place.ok(&["import", "c.jsonl", "--kind", "carl", "--run", "d", "--redact", "none"]);
    told(&["d"], "d@2:result.output")
}

/// The digest of the source file covers every value in it.
fn imported(place: &Place, value: &Value) -> Told {
    let call =
        json!([{"id": "c1", "type": "function", "function": {"name": "crm", "arguments": "{\"id\":7}"}}]);
    let messages = json!({"messages": [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": null, "tool_calls": call},
        {"role": "tool", "tool_call_id": "c1", "content": value.to_string()},
        {"role": "assistant", "content": "done"},
    ]});
    std::fs::write(place.path().join("m.json"), messages.to_string()).unwrap();
    place.ok(&["import", "m.json", "--run", "o", "--redact", "none"]);
    told(&["o"], "o@3:result.output")
}

/// Evidence that a commitment rests on, and a child that is told of it.
fn commitments(place: &Place, value: &Value) -> Told {
    let of = |members: Value| {
        let mut line = json!({"type": "observation.add", "agent": "ann", "intent": {"description": "d"}});
        line.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        line
    };
    let bound = of(json!({
        "evidence": [{"id": "e", "content": value}], "delta": [{"set": "/limit", "value": value}],
        "commitments": [{"id": "c", "type": "obl", "hard": true, "gloss": "g", "support": ["e"], "watch": ["limit"],
            "guard": "action.tool == 'buy'", "condition": "action.params.n == state.limit"}],
    }));
    let goal = of(json!({"commitments": [{"id": "G1", "type": "goal", "gloss": "Tidy."}]}));
    assert_eq!(
        commit(place, "lead", &[goal, bound], &["--stage", "2", "--as", "user", "--redact", "none"]),
        0
    );
    std::fs::write(place.path().join("scope.json"), r#"{"id":"D1","gloss":"parser only","goal":"G1"}"#)
        .unwrap();
    place.ok(&["commitments", "delegate", "lead", "--scope", "scope.json", "--as", "kid"]);
    assert_eq!(commit(place, "kid", &[step("d", json!({}))], &["--redact", "none"]), 0);
    assert_eq!(commit(place, "lead", &[of(set("/x", value))], &["--as", "user"]), 0);
    assert_eq!(commit(place, "kid", &[step("e", json!({}))], &["--redact", "none"]), 0);
    place.run(&["commitments", "accept", "kid"]);
    told(&["lead", "kid"], "lead@2:evidence")
}

fn reduced(place: &Place, value: &Value) -> Told {
    let pack = "name: p\nversion: v1\nreducer: delta/1\nstate: {limit: {init: 0}, a: {init: 0}}\n";
    std::fs::write(place.path().join("p.yaml"), pack).unwrap();
    base(place, value, &[]);
    place.ok(&["reduce", "r", "--pack", "./p.yaml", "--as", "again"]);
    told(&["again"], OUTPUT)
}

fn casebook(place: &Place, value: &Value) -> Told {
    base(place, value, &[]);
    place.ok(&["fork", "r@3", "--as", "g"]);
    assert_eq!(commit(place, "g", &[step("x", set("/limit", &json!(2)))], &[]), 0);
    place.run(&["bisect", "r", "--holds", "!has(state.limit)", "--record", "--lift"]);
    place.run(&["diff", "r", "g", "--record"]);
    told(&["casebook", "r", "g"], OUTPUT)
}

/// One of two texts, as an author chooses by the value.
fn chosen<'t>(value: &Value, texts: [&'t str; 2]) -> &'t str {
    let is_first = [json!(4711), json!(true), json!("amber")].contains(value);
    texts[usize::from(!is_first)]
}

const ORDERS: [&str; 2] = ["start dialysis today", "come again in May"];
const RISKS: [&str; 2] = ["high", "low"];

/// What is done after a value: a text, a change of state and a call.
fn orders(text: &str, risk: &str) -> [Value; 2] {
    let call =
        json!({"type": "action.request", "agent": "a", "action": {"tool": "ward", "params": {"to": text}}});
    [step(text, set("/risk", &json!(risk))), call]
}

/// Two runs of one template: whatever is said in the second was said in the first.
fn template(place: &Place, value: &Value) -> Told {
    let args = ["--as", "runtime", "--redact", "none"];
    let all: Vec<Value> = (0..2).flat_map(|n| orders(ORDERS[n], RISKS[n])).collect();
    assert_eq!(commit(place, "mon", &[vec![result(&json!(5), json!({}))], all].concat(), &args), 0);
    let then = orders(chosen(value, ORDERS), chosen(value, RISKS));
    assert_eq!(commit(place, "tue", &[vec![result(value, json!({}))], then.to_vec()].concat(), &args), 0);
    told(&["tue"], "tue@1:result.output")
}

/// The same in one run, before the value.
fn said_again(place: &Place, value: &Value) -> Told {
    let all = (0..2).flat_map(|n| orders(ORDERS[n], RISKS[n]));
    let then = orders(chosen(value, ORDERS), chosen(value, RISKS));
    let lines: Vec<Value> = all.chain([result(value, json!({}))]).chain(then).collect();
    assert_eq!(commit(place, "r", &lines, &["--as", "runtime", "--redact", "none"]), 0);
    told(&["r"], "r@5:result.output")
}

/// The place that is removed depends on the value.
fn removed(place: &Place, value: &Value) -> Told {
    let gone = chosen(value, ["/eligible", "/waiting"]);
    let begin = json!({"delta": [{"set": "/eligible", "value": 1}, {"set": "/waiting", "value": 1}]});
    let lines = [
        step("first", begin),
        result(value, json!({})),
        step("second", json!({"delta": [{ "remove": gone }]})),
        step("third", json!({})),
    ];
    assert_eq!(commit(place, "r", &lines, &["--as", "runtime", "--redact", "none"]), 0);
    told(&["r"], OUTPUT)
}

/// Refused lines have the value in a pointer and in a name, of which reasons and anomalies have the place.
fn pointers(place: &Place, value: &Value) -> Told {
    base(place, value, &["--stage", "2"]);
    let name = format!("earns_{}", value.to_string().trim_matches('"'));
    let into = |op: &str| json!({"delta": [{ op: format!("/{name}/x"), "value": 1 }]});
    let lines = [
        step("no", json!({"delta": [{"remove": format!("/{name}")}]})),
        step("no", into("add")),
        step("no", json!({ name.as_str(): 1 })),
    ];
    for line in lines {
        assert_eq!(commit(place, "r", &[line], &["--redact", "none"]), 5);
    }
    assert_eq!(commit(place, "r", &[step("yes", json!({}))], &[]), 0);
    told(&["r"], OUTPUT)
}

/// The value is the name of a member in a refused line: its place is in the reason, and in the kernel's note on it.
fn named_so(place: &Place, value: &Value) -> Told {
    base(place, &json!(7), &[]);
    let name = format!("earns_{}", value.to_string().trim_matches('"'));
    assert_eq!(commit(place, "r", &[step("no", json!({ name.as_str(): 1 }))], &["--redact", "none"]), 5);
    assert_eq!(commit(place, "r", &[step("yes", json!({}))], &[]), 0);
    told(&["r"], "r@refused:1:line")
}

/// The words of a person who read the value: in the marker of a fork, and in a delegation.
fn words(place: &Place, value: &Value) -> Told {
    base(place, value, &[]);
    let (why, risk) = (chosen(value, ORDERS), chosen(value, RISKS));
    let fork = ["fork", "r@3", "--as", "f", "--reason", why, "--note", why, "--set"];
    place.ok(&[&fork[..], &[&format!("risk=\"{risk}\"")]].concat());
    let goal = json!({"type": "plan.update", "agent": "a", "commitments": [{"id": "G1", "type": "goal", "gloss": "Tidy."}]});
    assert_eq!(commit(place, "r", &[goal], &["--as", "user"]), 0);
    let scope = json!({"id": "D1", "gloss": why, "goal": "G1"});
    std::fs::write(place.path().join("scope.json"), scope.to_string()).unwrap();
    place.ok(&["commitments", "delegate", "r", "--scope", "scope.json", "--as", "kid"]);
    told(&["r", "f", "kid"], OUTPUT)
}

/// A sum over calls, which a merged run and a child begin with.
fn sums(place: &Place, value: &Value) -> Told {
    let cap = json!({
        "id": "B", "type": "obl", "hard": true, "gloss": "g", "guard": "action.tool == 'pay'",
        "holds": "spent(action.params.amount) + action.params.amount <= 90000",
    });
    let goal = json!({"id": "G1", "type": "goal", "gloss": "Tidy."});
    let pay = |amount: &Value| json!({"type": "action.request", "agent": "a", "action": {"tool": "pay", "params": {"amount": amount}}});
    let lines = [
        json!({"type": "observation.add", "agent": "ann", "commitments": [goal, cap]}),
        pay(value),
        pay(&json!(100)),
    ];
    let args = ["--stage", "2", "--as", "user", "--redact", "none"];
    assert_eq!(commit(place, "lead", &lines, &args), 0);
    place.ok(&["fork", "lead@3", "--as", "f"]);
    assert_eq!(commit(place, "f", &[pay(&json!(30))], &["--as", "user", "--redact", "none"]), 0);
    place.ok(&["merge", "--as", "m", "--from", "lead", "--from", "f"]);
    std::fs::write(place.path().join("scope.json"), r#"{"id":"D1","gloss":"pay","goal":"G1"}"#).unwrap();
    place.ok(&["commitments", "delegate", "lead", "--scope", "scope.json", "--as", "kid"]);
    assert_eq!(commit(place, "kid", &[pay(&json!(7))], &["--redact", "none"]), 0);
    place.run(&["commitments", "accept", "kid"]);
    let shown = |at: &str| place.ok(&["show", at, "--json"]).contains(r#""spent":{"B":"#);
    assert!(shown("m@0") && shown("kid@0"), "the sums are on record");
    told_and_stays(&["lead", "f", "m", "kid"], "lead@2:action.params")
}

/// A sum that rules keep in the state.
fn added_up(place: &Place, value: &Value) -> Told {
    let pack = r#"name: f
version: v1
state: {total: {init: 0}, n: {init: 0}}
rules:
  - when_type: action.result
    steps:
      - {add: total, value: t.result.output.x}
      - {add: n, value: "1"}
"#;
    std::fs::write(place.path().join("f.yaml"), pack).unwrap();
    let lines = [
        step("first", json!({})),
        result(&json!({ "x": value }), json!({})),
        result(&json!({"x": 1}), json!({})),
        step("second", json!({})),
        result(&json!({"x": 2}), json!({})),
    ];
    assert_eq!(commit(place, "r", &lines, &["--as", "runtime", "--pack", "./f.yaml", "--redact", "none"]), 0);
    place.ok(&["fork", "r@5", "--as", "g"]);
    assert_eq!(commit(place, "g", &lines[2..3], &["--as", "runtime", "--redact", "none"]), 0);
    told_and_stays(&["r", "g"], OUTPUT)
}

/// Asks, and names each open place of the answer: then nothing is asked.
fn search(place: &Place, flag: &str, args: &[&str]) {
    let asked = place.run(args);
    let named = named(&asked.stderr);
    let named: Vec<&str> = named.iter().flat_map(|place| [flag, place.as_str()]).collect();
    let ran = if asked.code == 5 { place.run(&[args, &named].concat()) } else { asked };
    assert_eq!(ran.code, 0, "{args:?} {named:?}: {}", ran.stderr);
}

/// The open places of an answer.
fn named(answer: &str) -> Vec<String> {
    let line = answer.lines().find_map(|line| line.strip_prefix("note: the places: "));
    line.into_iter().flat_map(|line| line.split(' ')).map(str::to_owned).collect()
}

fn open(place: &Place, file: &str) -> Opened {
    let path = place.path().join(file);
    let text = std::fs::read(&path).unwrap();
    bundle::open(path, &text[..]).unwrap()
}

fn records(opened: &Opened) -> Vec<Record> {
    let mut records = Vec::new();
    let read = opened.store.scan(0..opened.store.tree().size, &mut |_, record| {
        records.push(record);
        std::ops::ControlFlow::Continue(())
    });
    read.unwrap();
    records
}

fn all_runs(place: &Place) -> Vec<String> {
    let runs: Value = serde_json::from_str(&place.json(&["runs"]).1.to_string()).unwrap();
    let names = runs["items"].as_array().unwrap().iter();
    let mut names: Vec<String> = names.map(|run| run["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

/// A store with a case, and its bundles.
struct World {
    _place: Place,
    /// Of all runs.
    full: Opened,
    /// Of the runs that are handed over, without the value.
    withheld: Opened,
    /// Of all runs, after the value was erased. A value of every tick is not erased at once.
    erased: Option<Opened>,
}

fn world(case: &Case, value: &Value) -> World {
    let place = Place::with_store();
    let told = case.1(&place, value);
    let all = all_runs(&place);
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let export_all = |file: &str| {
        place.ok(&[&["export"], &all[..], &["-o", file]].concat());
        open(&place, file)
    };
    let full = export_all("full.dnd");
    let export = [&["export"], &told.runs[..], &["-o", "less.dnd", "--withhold", &told.place]].concat();
    search(&place, told.flag, &export);
    let verified = place.run(&["verify", "less.dnd"]);
    assert_eq!(verified.code, 6, "{}: {}{}", case.0, verified.stdout, verified.stderr);
    let withheld = open(&place, "less.dnd");
    for named in &withheld.bundle.although {
        assert!(is_left(&withheld, named), "{}: {named} is withheld", case.0);
    }
    let erased = told.place.rsplit_once(':').map(|(at, path)| {
        search(&place, told.flag, &["erase", at, path, "--reason", "x"]);
        export_all("erased.dnd")
    });
    World { full, withheld, erased, _place: place }
}

/// Whether a bundle shows a place that its header lists.
fn is_left(opened: &Opened, named: &str) -> bool {
    let (at, place) = named.rsplit_once(':').unwrap();
    let tick = at.rsplit_once('@').map_or(at, |(_, tick)| tick).parse::<u64>().ok();
    let run = at.rsplit_once('@').map_or(opened.bundle.runs[0].as_str(), |(run, _)| run);
    let place = Pointer::from_place(place).unwrap().unwrap();
    let is_at = |record: &&Record| {
        let header = record.header();
        header.tick == tick && header.run.as_ref().is_some_and(|name| name.as_str() == run)
    };
    records(opened).iter().filter(is_at).any(|record| record.body().value(place.as_str()).is_some())
}

/// The content of records, without what is made by chance: ids, store, and hashes under a salt.
fn left(full: &Opened, less: &Opened) -> Vec<String> {
    let ids: HashSet<String> =
        records(full).iter().chain(&records(less)).map(|record| record.id().to_string()).collect();
    let (id, time) =
        (Regex::new("sha256:[0-9a-f]{64}").unwrap(), Regex::new(r"\d{4}-\d\d-\d\dT[0-9:.]+Z").unwrap());
    let salted = Regex::new(r#""context_hash":"sha256:[0-9a-f]{64}""#).unwrap();
    let (store, chance) =
        (full.bundle.store.to_string(), Regex::new(r#""chain_id":"[0-9a-f]{12}""#).unwrap());
    let mut left = Vec::new();
    for record in records(less).iter().filter(|record| record.header().kind != Kind::Key) {
        let header = record.header();
        let mut content: Value = serde_json::from_str(&record.content().to_string()).unwrap();
        let members = content.as_object_mut().unwrap();
        for name in ["context", "redaction", "again"] {
            members.remove(name);
        }
        let is_of_file = header.tick.is_some_and(|tick| tick < 2)
            && header.run.as_ref().is_some_and(|run| run.as_str() == "d");
        if is_of_file {
            // The header of the file has an id and a time of chance, and the first row a hash over it.
            members.remove("meta");
            members.get_mut("intent").and_then(|intent| intent.as_object_mut()?.remove("row"));
        }
        if header.kind == Kind::Erase {
            // The reasons say how a field was found.
            for list in ["erased", "although"] {
                let listed = members.get_mut(list).and_then(Value::as_array_mut);
                for one in listed.into_iter().flatten() {
                    one.as_object_mut().unwrap().remove("reason");
                }
            }
        }
        if header.run.as_ref().is_some_and(|run| run.as_str() == "casebook") {
            // Ids are in its state.
            members.remove("state_root");
        }
        if header.kind == Kind::Map {
            // A digest over ids.
            members.remove("root");
        }
        let text = content.to_string().replace(&store, "STORE");
        let text = id.replace_all(&text, |found: &regex::Captures<'_>| {
            if ids.contains(&found[0]) { "ID".to_owned() } else { found[0].to_owned() }
        });
        let text = salted.replace_all(&text, "CONTEXT");
        let text = chance.replace_all(&text, "CHAIN");
        let text = time.replace_all(&text, "TIME");
        let fields: Vec<&str> = record.body().fields().iter().map(|field| field.pointer.as_str()).collect();
        left.push(format!(
            "{} {:?} {:?} {:?} {:?} {fields:?} {text}",
            header.kind, header.run, header.tick, header.type_name, header.pack
        ));
    }
    left
}

/// A guesser with a bundle, and with all of a store but one value.
struct Guesser {
    /// What is known: the contents, in order, with the value itself to be replaced by a guess.
    known: Vec<(Record, Value)>,
    value: Value,
    /// Every digest that the bundle shows, and every value with its place.
    digests: HashSet<String>,
    shown: HashMap<(String, String), Value>,
    /// Ticks of runs of which the root is shown.
    roots: BTreeSet<(String, u64)>,
}

fn of_object(value: &Value) -> dendrer_object::Value {
    canonical::parse_door(value.to_string().as_bytes()).unwrap()
}

fn with_guess(known: &Value, value: &Value, guess: &Value) -> Value {
    match known {
        known if known == value => guess.clone(),
        Value::Object(members) => members
            .iter()
            .map(|(name, known)| (name.clone(), with_guess(known, value, guess)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(|known| with_guess(known, value, guess)).collect(),
        Value::String(text) if text.starts_with('{') => {
            // A row as it stood in a file.
            let spelled = [format!(": {value}"), format!(":{value}")];
            let guessed = [format!(": {guess}"), format!(":{guess}")];
            let text = text.replace(&spelled[0], &guessed[0]).replace(&spelled[1], &guessed[1]);
            Value::from(text)
        }
        known => known.clone(),
    }
}

fn digests_in(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_')
        .filter(|part| matches!(part.len(), 43 | 64))
        .map(str::to_owned)
}

impl Guesser {
    fn new(full: &Opened, less: &Opened, value: &Value) -> Guesser {
        let known = records(full).into_iter().map(|record| {
            let content = serde_json::from_str(&record.content().to_string()).unwrap();
            (record, content)
        });
        let known: Vec<(Record, Value)> = known.collect();
        let ids: HashSet<String> = known
            .iter()
            .flat_map(|(record, _)| digests_in(&record.id().to_string()).collect::<Vec<_>>())
            .collect();
        let (mut digests, mut shown, mut roots) = (HashSet::new(), HashMap::new(), BTreeSet::new());
        for record in records(less) {
            let header = record.header();
            digests.extend(digests_in(&record.content().to_string()).filter(|one| !ids.contains(one)));
            for field in record.body().fields() {
                let Some(value) = record.body().value(field.pointer.as_str()) else { continue };
                let value = serde_json::from_str(&value.to_string()).unwrap();
                shown.insert((record.id().to_string(), field.pointer.as_str().to_owned()), value);
            }
            let root = record.body().value("/state_root");
            if let (Some(run), Some(_)) = (&header.run, root) {
                roots.insert((run.to_string(), header.tick.unwrap_or(0)));
            }
        }
        Guesser { known, value: value.clone(), digests, shown, roots }
    }

    /// The digests that the format makes of a store with a guess in the place of the value, without a salt.
    fn made_with(&self, guess: &Value) -> HashSet<String> {
        let mut made: HashSet<String> = HashSet::new();
        let mut take = |digest: Digest| {
            made.extend(digests_in(&digest.to_string()));
            made.insert(digest.base64url());
        };
        take(of_object(guess).digest());
        take(Digest::of(guess.to_string().as_bytes()));
        let mut states: BTreeMap<(String, u64), dendrer_object::Value> = BTreeMap::new();
        let mut rows: Vec<String> = Vec::new();
        for (record, content) in &self.known {
            let header = record.header();
            let Some(run) = header.run.as_ref().map(ToString::to_string) else { continue };
            let content = with_guess(content, &self.value, guess);
            for member in ["action", "delta", "result", "evidence", "line", "state"] {
                let Some(member) = content.get(member) else { continue };
                let parts = member.as_object().into_iter().flat_map(|parts| parts.values());
                for part in parts.chain([member]) {
                    take(of_object(part).digest());
                    take(Digest::of(part.to_string().as_bytes()));
                }
            }
            if let Some(args) = content.get("edge").and(content.get("action")) {
                let call = args["tool"].as_str().unwrap_or_default();
                let args: Vec<dendrer_object::Value> =
                    args["params"].as_array().into_iter().flatten().map(of_object).collect();
                take(dendrer::graph::eval::asked(call, &args));
            }
            rows.extend(content.pointer("/intent/row").and_then(Value::as_str).map(str::to_owned));
            let tick = header.tick.unwrap_or_default();
            let (tick, before) = match (header.kind, header.tick) {
                (Kind::Run, Some(_)) => (0, content.get("state").map(of_object)),
                (Kind::Run, None) => {
                    let tick = content["parent"]["tick"].as_u64().unwrap_or_default();
                    let parent = content["parent"]["run"].as_str().unwrap_or_default().to_owned();
                    (tick, states.get(&(parent, tick)).cloned())
                }
                (Kind::Transition, Some(_)) => (tick, states.get(&(run.clone(), tick - 1)).cloned()),
                _ => continue,
            };
            let mut state = before.unwrap_or_else(dendrer_object::Value::object);
            let ops = content.get("delta").filter(|_| header.kind == Kind::Transition).map(of_object);
            if let Some(ops) = ops.and_then(|ops| dendrer_object::delta::Delta::from_value(&ops).ok()) {
                // A guess of another kind may not fit.
                let _ = ops.apply_to(&mut state);
            }
            // What is hidden cannot be compared; what is shown is tried.
            if self.roots.contains(&(run.clone(), tick)) || self.roots.contains(&(run.clone(), 0)) {
                take(state.digest());
            }
            states.insert((run, tick), state);
        }
        made.extend(hashes_of(&rows));
        made
    }

    /// The guesses that the bundle confirms, and none that it would confirm in any case.
    fn confirmed(&self, guesses: &[Value]) -> Vec<Value> {
        let in_any_case = self.made_with(&json!("no such value"));
        let is_left = |(record, content): &(Record, Value)| {
            let fields = record.body().fields();
            fields.iter().find_map(|field| {
                let shown = self.shown.get(&(record.id().to_string(), field.pointer.as_str().to_owned()))?;
                (has(shown, &self.value) && content.pointer(field.pointer.as_str()).is_some())
                    .then(|| field.pointer.clone())
            })
        };
        let mut confirmed: Vec<Value> = Vec::new();
        // A guess is shown where the value stood; a yes or no stands in many places by itself.
        if !self.value.is_boolean() && self.known.iter().any(|one| is_left(one).is_some()) {
            confirmed.push(self.value.clone());
        }
        for guess in guesses {
            let made = self.made_with(guess);
            if made.difference(&in_any_case).any(|digest| self.digests.contains(digest)) {
                confirmed.push(guess.clone());
            }
        }
        confirmed
    }
}

fn has(value: &Value, leaf: &Value) -> bool {
    match value {
        Value::Object(members) => members.values().any(|value| has(value, leaf)),
        Value::Array(items) => items.iter().any(|value| has(value, leaf)),
        value => value == leaf,
    }
}

/// The hashes of rows as they are, and as they would be behind each other.
fn hashes_of(rows: &[String]) -> HashSet<String> {
    let mut hashes = HashSet::new();
    let mut prev: Option<String> = None;
    for row in rows {
        let Ok(mut row) = dendrer_chain::RowValue::parse(row) else { continue };
        if let Some(prev) = &prev {
            row = dendrer_chain::hashed(row, Some(prev));
        }
        prev = content_hash_of(&row).map(str::to_owned);
        hashes.extend(prev.clone());
    }
    hashes
}

/// Guesses at a value: yes and no, words, and numbers of four digits, each `step`th of these.
fn guesses(value: &Value, step: usize) -> Vec<Value> {
    let numbers = (1000..=9999).step_by(step).map(|number| json!(number));
    let words =
        ["amber", "green", "red", "blue", "yes", "no", "high", "low", "none", "open", "closed", "approve"];
    let words = words.into_iter().map(|word| json!(word));
    let mut guesses: Vec<Value> =
        [json!(true), json!(false)].into_iter().chain(words).chain(numbers).collect();
    if !guesses.contains(value) {
        guesses.push(value.clone());
    }
    guesses
}

/// Looks at every case with one sort of values, withheld and erased.
fn nothing_is_left(sort: usize) {
    for case in &CASES {
        let sorts = values(case.0);
        let Some([value, other]) = sorts.get(sort) else { continue };
        let (one, other) = (world(case, value), world(case, other));
        let erased = one.erased.as_ref().zip(other.erased.as_ref());
        for (less, other_less) in [(&one.withheld, &other.withheld)].into_iter().chain(erased) {
            let what = format!("{} {value} in a bundle of {:?}", case.0, less.bundle.runs);
            let (left, other_left) = (left(&one.full, less), left(&other.full, other_less));
            for (one, other) in left.iter().zip(&other_left) {
                assert_eq!(one, other, "{what}");
            }
            assert_eq!(left.len(), other_left.len(), "{what}");
            let confirmed = Guesser::new(&one.full, less, value).confirmed(&guesses(value, 450));
            assert_eq!(confirmed, Vec::<Value>::new(), "{what}");
        }
    }
}

#[test]
fn nothing_is_left_to_guess_a_number() {
    nothing_is_left(0);
}

#[test]
fn nothing_is_left_to_guess_a_yes_or_no() {
    nothing_is_left(1);
}

#[test]
fn nothing_is_left_to_guess_a_word() {
    nothing_is_left(2);
}

/// The guesser finds the value where the change alone is left out: the root of the state leads to it.
#[test]
fn the_guesser_finds_a_value_whose_digests_were_left() {
    for value in [json!(4711), json!(true), json!("amber")] {
        let World { full, _place, .. } = world(&CASES[0], &value);
        let note = SignedNote::parse(full.bundle.checkpoint.as_bytes()).unwrap();
        let run = ["r".parse().unwrap()];
        let less = bundle::export(&full.store, &run, &note).unwrap();
        let places = ["/delta", "/result/output"].map(|place| place.parse::<Pointer>().unwrap());
        let fields = less.positions().into_iter().map(|position| (position, places.to_vec())).collect();
        let less = less.without_fields(fields, Vec::new());
        let less = bundle::open("less.dnd".into(), &less.to_vec().unwrap()[..]).unwrap();
        let confirmed = Guesser::new(&full, &less, &value).confirmed(&guesses(&value, 1));
        assert_eq!(confirmed, [value]);
    }
}
