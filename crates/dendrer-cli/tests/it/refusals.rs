//! Secrets in refused lines: none is on record or in an answer; one that was recorded with `--redact none` is found and erased.

use std::collections::BTreeMap;
use std::path::Path;

use dendrer_object::Value;

use crate::secrets::{holds, pat};
use crate::support::Place;

/// Lines that are refused, one for each place in which a line may quote what it has. `%` is a canary.
const REFUSED: [&str; 40] = [
    r#"{"type":"observation.add","nonsense":"%"}"#,
    r#"{"type":"observation.add","%":1}"#,
    r#"{"type":"observation.add","reads":["/a/%","%","notes.%"]}"#,
    r#"{"type":"observation.add","reads":"%"}"#,
    r#"{"type":"observation.add","reads":[{"x":"%"}]}"#,
    r#"{"type":"observation.add","agent":"%","agent_id":"%"}"#,
    r#"{"type":"observation.add","agent":{"x":"%"}}"#,
    r#"{"type":"observation.add","author":"%"}"#,
    r#"{"type":"observation.add","author":{"%":"%"}}"#,
    r#"{"type":"observation.add","goal":"%","goal_id":"%"}"#,
    r#"{"type":"observation.add","links":[{"rel":"%","hash":"%"}]}"#,
    r#"{"type":"observation.add","links":{"%":1}}"#,
    r#"{"type":"observation.add","base":"%"}"#,
    r#"{"type":"observation.add","key":["%"]}"#,
    r#"{"type":"%"}"#,
    r#"{"type":"observation.add","confidence":"%"}"#,
    r#"{"type":"observation.add","intent":"%"}"#,
    r#"{"type":"observation.add","intent":{"confidence":"%"}}"#,
    r#"{"type":"observation.add","intent":{"uncertainty_notes":["%"]},"uncertainty_notes":["%"]}"#,
    r#"{"type":"observation.add","action":{"tool":["%"]}}"#,
    r#"{"type":"observation.add","action":"%"}"#,
    r#"{"type":"observation.add","action":{"calls":"%"}}"#,
    r#"{"type":"action.result","result":{"status":["%"]}}"#,
    r#"{"type":"observation.add","result":{"status":"ok","output":"%"}}"#,
    r#"{"type":"policy.decision","policy":{"decision":"%"}}"#,
    r#"{"type":"observation.add","delta":[{"set":"/policy/%","value":"%"}]}"#,
    r#"{"type":"observation.add","delta":[{"%":"/a","value":"%"}]}"#,
    r#"{"type":"observation.add","delta":{"a":"%"}}"#,
    r#"{"type":"observation.add","delta":[{"set":"%[","value":"%"}]}"#,
    r#"{"type":"observation.add","delta":[{"remove":"/x/%"}]}"#,
    r#"{"type":"observation.add","scope":"%"}"#,
    r#"{"type":"observation.add","anomalies":[{"kind":"%"}]}"#,
    r#"{"type":"observation.add","commitments":"%"}"#,
    r#"{"type":"observation.add","metrics":{"tokens_used":"%"}}"#,
    r#"{"type":"observation.add","effect":"%"}"#,
    r#"{"type":"observation.add","run_id":"%"}"#,
    r#"{"type":"kernel.anomaly","intent":{"description":"%"}}"#,
    r#"{"step":{"step_id":"%","action":"%","name":"%","inputs":{"%":"%"},"reads":["%"]}}"#,
    r#"["%",{"a":"%"}]"#,
    r#"{"%":"%"}"#,
];

/// Puts a canary of its own in each place of a line.
fn with_canaries(line: &str, canaries: &mut Vec<String>) -> String {
    line.split('%').enumerate().fold(String::new(), |made, (at, part)| {
        if at == 0 {
            return part.to_owned();
        }
        canaries.push(pat(1000 + canaries.len() as u64));
        made + canaries.last().unwrap() + part
    })
}

/// W-34: a refused line is redacted whole, with the place of its fault, its type and its `reads`; so is what answers quote of it.
#[test]
fn no_canary_of_a_refused_line_is_in_a_file_or_an_answer() {
    let place = Place::with_store();
    let mut canaries = Vec::new();
    let lines: Vec<String> = REFUSED.iter().map(|line| with_canaries(line, &mut canaries)).collect();
    let text = lines.join("\n") + "\n";
    let mut said = String::new();
    let mut take = |ran: crate::support::Ran| {
        said.push_str(&ran.stdout);
        said.push_str(&ran.stderr);
        ran.code
    };
    for args in [
        &["commit", "--run", "r"][..],
        &["commit", "--run", "r", "--causal", "--jsonl"],
        &["commit", "--run", "r", "--as", "runtime", "--json"],
        &["commit", "--run", "s", "--stage", "0"],
        &["commit", "--run", "t", "--dry-run"],
    ] {
        take(place.run_with(args, text.as_bytes()));
    }
    // What is no JSON is answered, and never recorded.
    let twice = with_canaries(r#"{"type":"plan.update","intent":{"%":1,"#, &mut canaries);
    let name = canaries.last().unwrap().clone();
    let cut = with_canaries(r#"{"type":"plan.update","intent":{"%": nope"#, &mut canaries);
    for line in [format!("{twice}\"{name}\":2}}}}\n"), format!("{cut}\n")] {
        assert_eq!(take(place.run_with(&["commit", "--run", "r"], line.as_bytes())), 2);
        take(place.run_with(&["commit", "--run", "r", "--json"], line.as_bytes()));
    }
    for args in [
        &["log", "r", "--refusals", "-n", "0", "--full"][..],
        &["log", "r", "--refusals", "-n", "0", "--json"],
        &["show", "r@refused:3"],
        &["export", "r", "-o", "r.dnd"],
        &["export", "r", "-o", "r.html"],
        &["verify", "r.dnd"],
        &["secrets", "scan"],
    ] {
        assert_eq!(take(place.run(args)), 0, "{args:?}");
    }
    for (at, canary) in canaries.iter().enumerate() {
        assert_eq!(holds(place.path(), canary), None, "canary {at}");
        assert!(!said.contains(canary.as_str()), "canary {at} in an answer");
    }
    assert!(place.ok(&["verify", "r", "--replay"]).contains("\nINTACT"));
}

/// A type that holds a secret stays out of the header of its refusal, too.
#[test]
fn the_type_of_a_refused_line_is_no_secret() {
    let place = Place::with_store();
    let canary = format!("sk_live{}{}", "_", "4f9a77c2d1e0b3a5968778695a4b3c2d");
    let line = format!("{{\"type\":\"{canary}\"}}\n{{\"type\":\"plan.update\"}}\n");
    let ran = place.run_with(&["commit", "--run", "r"], line.as_bytes());
    assert!(ran.stdout.contains("redacted.") && !ran.stdout.contains(&canary), "{}", ran.stdout);
    assert_eq!(holds(place.path(), &canary), None);
    assert!(place.ok(&["verify", "r", "--replay"]).contains("\nINTACT"));
}

/// Names, people and reasons of verbs that write: on record and in the answer.
#[test]
fn no_canary_of_a_verb_is_in_a_file_or_an_answer() {
    let place = Place::with_store();
    place.run_with(&["commit", "--run", "r"], b"{\"type\":\"plan.update\"}\n");
    let canaries: Vec<String> = (0..12).map(|at| pat(2000 + at)).collect();
    let c = |at: usize| canaries[at].as_str();
    let (named, set) = (format!("v.{}", c(10)), format!("a=\"{}\"", c(6)));
    let mut said = String::new();
    for args in [
        &["label", c(0), "r@1", "--by", c(1)][..],
        &["label", &named, "r@1"],
        &["label"],
        &["note", "r@1", c(2), "--by", c(3)],
        &["fork", "r@1", "--as", "f", "--reason", c(5), "--set", &set],
        &["runs", "drop", "f", "--reason", c(7), "--by", c(8)],
        &[
            "bisect",
            "r",
            "--holds",
            &format!("!has(state.a) || state.a != \"{}\"", c(9)),
            "--lift",
            "--record",
        ],
        &["export", "r", "-o", "r.dnd"],
        &["label", c(0), "--remove"],
    ] {
        let ran = place.run(args);
        assert!(ran.code <= 1, "{args:?}: {}", ran.stderr);
        // The predicate of a question is repeated to the person who asks.
        said.push_str(if args[0] == "bisect" { "" } else { &ran.stdout });
    }
    for (at, canary) in canaries.iter().enumerate() {
        assert_eq!(holds(place.path(), canary), None, "canary {at}");
        assert!(!said.contains(canary.as_str()), "canary {at} in an answer: {said}");
    }
    assert_eq!(place.run(&["label"]).stdout.matches("redacted").count(), 1, "the other one was removed");
}

const TOKEN: u64 = 77;

/// Three transitions; two refusals before the second one, and one behind it, with a copy of the value of the first.
fn refused(redact: &str) -> Place {
    let place = Place::with_store();
    let token = pat(TOKEN);
    let lines = format!(
        r#"{{"type":"plan.update","intent":{{"description":"one"}}}}
{{"type":"observation.add","nonsense":"{token}"}}
{{"type":"observation.add","nonsense":"nothing"}}
{{"type":"plan.update","intent":{{"description":"two"}}}}
{{"type":"observation.add","reads":["/a/{token}"],"delta":[{{"set":"/password","value":"kX9-vq2-Lm"}}]}}
{{"type":"plan.update","intent":{{"description":"three"}}}}
"#
    );
    place.run_with(&["commit", "--run", "r", "--redact", redact], lines.as_bytes());
    place
}

fn refused_numbers(answer: &Value) -> Vec<(u64, String)> {
    let items = answer.get("items").and_then(Value::as_array).unwrap();
    let number = |item: &Value| {
        let path = item.get("path").and_then(Value::as_str).unwrap_or_default();
        Some((item.get("refused")?.as_u64()?, path.to_owned()))
    };
    items.iter().filter_map(number).collect()
}

/// X: `log` numbers refusals in order of commit, `scan` names them by these numbers, with a count by rule.
#[test]
fn scan_finds_secrets_of_refusals_by_the_numbers_of_the_log() {
    let place = refused("none");
    let log = place.ok(&["log", "r", "--refusals"]);
    for line in ["#1  agent   refused refusal", "#2  agent   refused refusal", "#3  agent   refused refusal"]
    {
        assert!(log.contains(line), "{line}\n{log}");
    }
    let (_, listed) = place.json(&["log", "r", "--refusals"]);
    assert_eq!(refused_numbers(&listed).iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1, 2, 3]);
    let (code, found) = place.json(&["secrets", "scan"]);
    assert_eq!(code, 1, "{found}");
    let expected = [
        (1, "/line/nonsense".to_owned()),
        (3, "/line/delta/0/value".to_owned()),
        (3, "/line/reads/0".to_owned()),
    ];
    assert_eq!(refused_numbers(&found), expected, "{found}");
    let rules: BTreeMap<String, u64> = found
        .get("rules")
        .and_then(Value::as_object)
        .unwrap()
        .iter()
        .map(|(kind, count)| (kind.to_string(), count.as_u64().unwrap()))
        .collect();
    assert_eq!(rules, BTreeMap::from([("github-pat".to_owned(), 2), ("named".to_owned(), 1)]));
    assert!(!found.to_string().contains(&pat(TOKEN)) && !found.to_string().contains("kX9-vq2"), "{found}");
    let text = place.run(&["secrets", "scan", "r"]);
    assert!(text.stdout.contains("r@refused:1  /line/nonsense  github-pat, 40 bytes"), "{}", text.stdout);
    assert!(text.stdout.contains("by rule   github-pat 2, named 1"), "{}", text.stdout);
    let all = format!("{}{}", text.stdout, text.stderr);
    assert!(all.contains("dendrer erase r@refused:1 /line/nonsense --reason TEXT"), "{all}");
    // By the rules that recorded them there is nothing left to find.
    assert_eq!(refused("default").run(&["secrets", "scan"]).code, 0);
}

/// A value of a refusal is destroyed with its copies; the refusal stays, and is verified as any erased record is.
#[test]
fn a_value_of_a_refusal_is_erased_and_the_refusal_stays() {
    let place = refused("none");
    let token = pat(TOKEN);
    place.ok(&["export", "r", "-o", "before.dnd"]);
    assert!(holds(&place.path().join(".dendrer"), &token).is_some());
    let dry = place.ok(&["erase", "r@refused:1", "line.nonsense", "--reason", "a live key", "-n"]);
    assert!(dry.contains("would go  r  refusal 1  line  (the place)"), "{dry}");
    assert!(holds(&place.path().join(".dendrer"), &token).is_some());
    let (code, erased) = place.json(&["erase", "r@refused:1", "/line/nonsense", "--reason", "a live key"]);
    assert_eq!(code, 0, "{erased}");
    let text = erased.to_string();
    assert!(text.contains(r#""refused":1"#) && text.contains(r#""refused":3"#), "{text}");
    assert_eq!(erased.get("tick"), Some(&Value::Null));
    assert_eq!(holds(&place.path().join(".dendrer"), &token), None);
    // The other refusals and the transitions are as they were.
    assert!(place.ok(&["show", "r@refused:2"]).contains("nonsense"));
    assert!(place.ok(&["show", "r@refused:1"]).contains("not known  line (erased or withheld)"));
    let log = place.run(&["log", "r", "--refusals"]);
    assert!(
        log.stdout.contains("#1  agent   refused refusal") && log.stdout.contains("line of 2 records"),
        "{}",
        log.stdout
    );
    assert!(place.ok(&["state", "r"]).contains('{'));
    let verify = place.run(&["verify", "r"]);
    assert_eq!(verify.code, 6, "{}", verify.stdout);
    for line in ["not checked: r@refused:1: line (erased", "not checked: r@refused:3: line (erased"] {
        assert!(verify.stdout.contains(line), "{line}\n{}", verify.stdout);
    }
    place.ok(&["export", "r", "-o", "after.dnd"]);
    let bundle = place.run(&["verify", "after.dnd"]);
    assert!(bundle.code == 6 && bundle.stdout.contains("r@refused:1: line"), "{}", bundle.stdout);
    assert!(
        !contains(&place.path().join("after.dnd"), &token)
            && contains(&place.path().join("before.dnd"), &token)
    );
    let again = place.run(&["erase", "r@refused:1", "line.nonsense", "--reason", "a live key"]);
    assert!(again.code == 5 && again.stderr.contains("E0466"), "{}", again.stderr);
    assert_eq!(place.run(&["fsck"]).code, 0);
}

fn contains(path: &Path, text: &str) -> bool {
    let bytes = std::fs::read(path).unwrap();
    bytes.windows(text.len()).any(|part| part == text.as_bytes())
}

/// What is no refusal has no address, and a refusal has no tick.
#[test]
fn refusals_have_addresses_of_their_own() {
    let place = refused("none");
    let code = |args: &[&str]| place.run(args).code;
    let missing = place.run(&["show", "r@refused:4"]);
    assert!(missing.code == 3 && missing.stderr.contains("r has 3 refusals"), "{}", missing.stderr);
    assert_eq!(code(&["show", "r@refused:0"]), 3);
    assert_eq!(code(&["show", "r@refused:x"]), 2);
    assert_eq!(code(&["erase", "r@refused:9", "line", "--reason", "x"]), 3);
    assert_eq!(code(&["erase", "r@refused:1", "line.other", "--reason", "x"]), 3);
    assert_eq!(code(&["erase", "r@refused:1", "state.a", "--reason", "x"]), 3);
    let state = place.run(&["state", "r@refused:1"]);
    assert!(state.code == 2 && state.stderr.contains("refusal 1 of r has no tick"), "{}", state.stderr);
    assert_eq!(code(&["fork", "r@refused:1"]), 2);
    assert_eq!(code(&["show", "r@refused:3", "--state"]), 2);
}

/// Copies of a refused value that an agent wrote later go with it; those before it and in other runs are asked for.
#[test]
fn copies_of_a_refused_value_are_named_by_their_places() {
    let place = Place::with_store();
    let token = pat(TOKEN);
    let said = format!("{{\"type\":\"plan.update\",\"intent\":{{\"description\":\"use {token}\"}}}}\n");
    let refused = format!("{{\"type\":\"plan.update\",\"nonsense\":\"{token}\"}}\n");
    let commit = |run: &str, text: &str| {
        place.run_with(&["commit", "--run", run, "--redact", "none"], text.as_bytes());
    };
    commit("r", &format!("{said}{refused}{said}"));
    commit("other", &refused);
    commit("other", &format!("{{\"type\":\"plan.update\"}}\n{refused}"));
    let args = ["erase", "r@refused:1", "line.nonsense", "--reason", "a live key"];
    let asked = place.run(&args);
    assert_eq!(asked.code, 5, "{}", asked.stdout);
    for line in ["r  tick 1  intent.description  (contains the value)", "other@refused:1:line"] {
        assert!(asked.stderr.contains(line), "{line}\n{}", asked.stderr);
    }
    let also =
        ["--also", "other@refused:1:line", "--although", "r@1:intent.description", "--although", "other"];
    let unread = place.run(&[&args[..], &also].concat());
    assert!(unread.code != 0, "other is no place: {}", unread.stdout);
    let also = ["--also", "other@refused:1:line", "--although", "r@1:intent.description"];
    let rest = place.run(&[&args[..], &also].concat());
    assert!(rest.code == 5 && rest.stderr.contains("other@refused:2:line"), "{}", rest.stderr);
    place.ok(&[&args[..], &["--everywhere"]].concat());
    assert_eq!(holds(&place.path().join(".dendrer"), &token), None);
}
