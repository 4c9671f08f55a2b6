//! Redaction before the seal: no secret reaches a file, an answer or an error (witness-log paper 2.4).

use std::path::Path;

use dendrer_object::Value;

use crate::support::Place;

const PAGE: &str = include_str!("../../../../docs/redaction.md");

/// A token that is put together here, so that no scanner takes this file for a leak.
pub(crate) fn pat(seed: u64) -> String {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let mut number = seed + 1;
    let body = (0..36).map(|_| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(alphabet[(number >> 33) as usize % alphabet.len()])
    });
    format!("ghp{}{}", "_", body.collect::<String>())
}

/// Whether some file below a directory holds a text, also in base64 and hex.
pub(crate) fn holds(dir: &Path, canary: &str) -> Option<String> {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            if let Some(found) = holds(&path, canary) {
                return Some(found);
            }
            continue;
        }
        let bytes = std::fs::read(&path).unwrap_or_default();
        if bytes.windows(canary.len()).any(|window| window == canary.as_bytes()) {
            return Some(path.display().to_string());
        }
    }
    None
}

/// The page shows what the program prints.
#[test]
fn the_page_of_redaction_shows_what_is_printed() {
    let place = Place::new();
    let log = format!(
        "cloning the repository\ntoken used {}\nDB_PASSWORD: Tr0ub4dor-x9\ntokens_used: 1042\n",
        pat(1)
    );
    std::fs::write(place.path().join("tool.log"), log).unwrap();
    let block = PAGE.split("```").find_map(|block| block.strip_prefix("console\n")).unwrap();
    for shown in block.split("$ dendrer ").skip(1) {
        let (command, expected) = shown.split_once('\n').unwrap();
        let ran = place.run(&command.split_whitespace().collect::<Vec<_>>());
        assert_eq!((ran.stdout.as_str(), ran.code), (expected, 1), "{command}: {}", ran.stderr);
    }
    std::fs::write(place.path().join("clean.log"), "tokens_used: 3\n").unwrap();
    assert_eq!(place.run(&["secrets", "test", "clean.log"]).code, 0);
}

/// W-38, W-39, W-76, X-2: canaries in every field of a recording.
#[test]
fn no_canary_is_in_any_file() {
    let place = Place::with_store();
    let canary: Vec<String> = (0..12).map(pat).collect();
    let c = |at: usize| canary[at].as_str();
    let lines = [
        format!(
            r#"{{"type":"observation.add","agent":"{}","goal":"{}","intent":{{"description":"see {}"}}}}"#,
            c(0),
            c(1),
            c(2)
        ),
        format!(
            r#"{{"type":"action.request","action":{{"tool":"get","params":{{"{}":1,"headers":{{"Authorization":"Bearer {}"}}}}}}}}"#,
            c(3),
            c(4)
        ),
        format!(
            r#"{{"type":"action.result","action":{{"tool":"get"}},"result":{{"status":"error","error":"{}","output":"{{\"k\":\"{}\"}}"}}}}"#,
            c(5),
            c(6)
        ),
        format!(
            r#"{{"type":"memory.write","key":"{}","delta":[{{"set":"/notes/{}","value":["{}"]}}]}}"#,
            c(7),
            c(8),
            c(9)
        ),
        // Refused lines are kept, too.
        format!(r#"{{"type":"observation.add","nonsense":"{}"}}"#, c(10)),
    ];
    let state = format!(r#"{{"seen":"{}"}}"#, c(11));
    std::fs::write(place.path().join("s0.json"), state).unwrap();
    let args = ["commit", "--run", "r", "--goal", c(1), "--state", "s0.json"];
    let ran = place.run_with(&args, (lines.join("\n") + "\n").as_bytes());
    std::fs::remove_file(place.path().join("s0.json")).unwrap();
    let shown = format!("{}{}", ran.stdout, ran.stderr);
    place.ok(&["export", "r", "-o", "r.dnd"]);
    place.ok(&["runs", "--json"]);
    for (at, canary) in canary.iter().enumerate() {
        assert_eq!(holds(place.path(), canary), None, "canary {at}");
        assert!(!shown.contains(canary.as_str()), "canary {at}: {shown}");
    }
    assert_eq!(place.run(&["secrets", "scan"]).code, 0);
    assert!(place.ok(&["verify", "r", "--replay"]).contains("\nINTACT"));
    // Each record says what took it.
    let (_, shown) = place.json(&["show", "r@3"]);
    let text = shown.to_string();
    assert!(text.contains(r#""redaction":{"rules":{"#) && text.contains(r#""github-pat":2"#), "{text}");
    // What is asked for is recorded, sealed as such, and found.
    let line = format!("{{\"type\":\"observation.add\",\"intent\":{{\"description\":\"{}\"}}}}\n", c(2));
    place.run_with(&["commit", "--run", "open", "--redact", "none"], line.as_bytes());
    assert!(holds(place.path(), c(2)).is_some());
    let (code, found) = place.json(&["secrets", "scan"]);
    let item = found.get("items").unwrap().as_array().unwrap().get(0).unwrap().clone();
    assert_eq!((code, item.get("run").and_then(Value::as_str)), (1, Some("open")), "{found}");
    assert!(!found.to_string().contains(c(2)));
    assert!(place.ok(&["runs"]).contains("not redacted: open"));
}

/// The profile of a store, that of a pack, tags, and an import.
#[test]
fn profiles_packs_and_tags() {
    let place = Place::new();
    place.ok(&["init", "--redact", "carl/1"]);
    let line = "{\"type\":\"observation.add\",\"intent\":{\"monkey\":\"Bonzo\",\"badge\":\"abcd-1234\"}}\n";
    place.run_with(&["commit", "--run", "a"], line.as_bytes());
    let (_, shown) = place.json(&["show", "a@1"]);
    assert!(shown.to_string().contains(r#""monkey":"<redacted>""#), "{shown}");
    std::fs::write(
        place.path().join("p.yaml"),
        "name: p\nversion: v1\nreducer: delta/1\nredact: {names: [badge]}\n",
    )
    .unwrap();
    let args = ["commit", "--run", "b", "--pack", "p.yaml", "--redact", "default"];
    place.run_with(&args, line.repeat(2).as_bytes());
    let tags = ["b@1", "b@2"].map(|at| {
        let (_, shown) = place.json(&["show", at]);
        let text = shown.to_string();
        assert!(text.contains(r#""monkey":"Bonzo""#), "{text}");
        text.split(r#""tag":""#).nth(1).unwrap()[..16].to_owned()
    });
    assert_eq!(tags[0], tags[1]);
    std::fs::write(place.path().join("bad.yaml"), "name: p\nversion: v1\nredact: {shapes: {x: \"(\"}}\n")
        .unwrap();
    let bad = place.run(&["pack", "check", "bad.yaml"]);
    assert!(
        bad.code != 0 && format!("{}{}", bad.stdout, bad.stderr).contains("is no pattern"),
        "{}",
        bad.stdout
    );
    let chat = format!(
        r#"[{{"role":"user","content":"use {0}"}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"1","function":{{"name":"login","arguments":"{{\"password\":\"hunter2!\"}}"}}}}]}}]"#,
        pat(3)
    );
    std::fs::write(place.path().join("chat.json"), &chat).unwrap();
    place.ok(&["import", "chat.json", "--run", "c", "--redact", "default"]);
    std::fs::remove_file(place.path().join("chat.json")).unwrap();
    assert_eq!(holds(place.path(), &pat(3)), None);
    assert_eq!(holds(place.path(), "hunter2!"), None);
    let (_, call) = place.json(&["show", "c@2"]);
    assert!(
        without_tags(&call.to_string())
            .contains(r#""password":{"$redacted":{"kind":"named","len":"short"}}"#),
        "{call}"
    );
    assert_eq!(place.run(&["commit", "--run", "d", "--redact", "some"]).code, 2);
}

/// Notes and reasons of the command line are recorded without their secrets.
#[test]
fn notes_and_reasons_pass_redaction() {
    let place = Place::with_store();
    for run in ["a", "b"] {
        let line = b"{\"type\":\"plan.update\",\"agent\":\"x\",\"intent\":{\"description\":\"d\"}}\n";
        assert_eq!(place.run_with(&["commit", "--run", run], line).code, 0);
    }
    let secret = pat(7);
    place.ok(&["note", "a@1", &format!("the key was {secret}")]);
    place.ok(&["runs", "drop", "a", "--reason", &format!("it has {secret}")]);
    for args in [vec!["note"], vec!["runs", "--all", "--json"]] {
        assert!(!place.ok(&args).contains(&secret), "{args:?}");
    }
}

/// Runs a command with variables of the environment, and lines on its input.
fn with_env(place: &Place, args: &[&str], env: &[(&str, &str)], input: &str) -> crate::support::Ran {
    let path = place.path().join("input.jsonl");
    std::fs::write(&path, input).unwrap();
    let mut command = place.command(args);
    command.envs(env.iter().copied()).stdin(std::fs::File::open(&path).unwrap());
    let done = crate::support::ran(command.output().unwrap());
    std::fs::remove_file(path).unwrap();
    done
}

/// E13: a value of the environment that is a word of one case takes no name of a tool, and `secrets test --env` says why.
#[test]
fn values_of_the_environment_are_taken_only_if_they_are_no_words() {
    let place = Place::with_store();
    let env = [
        ("POSTGRES_PASSWORD", "postgres"),
        ("LOUD_PASSWORD", "POSTGRES"),
        ("SHORT_TOKEN", "aB3-x9q"),
        ("PG_SECRET", "Postgres-11"),
        ("PAY_TOKEN", "pay.Orders2"),
        ("FILE_TOKEN", "/run/secrets/pg"),
        ("DUMMY_TOKEN", "changeme"),
        ("HOME_PAGE", "Postgres-12"),
    ];
    std::fs::write(
        place.path().join("p.yaml"),
        "name: p\nversion: v1\nreducer: delta/1\ntools: {pay.Orders2: {effect: effectful}}\n",
    )
    .unwrap();
    let listed = with_env(&place, &["secrets", "test", "--env", "--pack", "p.yaml", "--json"], &env, "");
    let answer = crate::support::parse(&listed.stdout);
    let items = answer.get("items").and_then(Value::as_array).unwrap();
    let text = |item: &Value, name: &str| item.get(name).unwrap().to_string().replace('"', "");
    let shown: Vec<String> = items
        .iter()
        .map(|item| ["name", "taken", "why"].map(|name| text(item, name)).join(" "))
        .filter(|line| !line.starts_with("PWD"))
        .collect();
    let expected = [
        "DUMMY_TOKEN false one_case",
        "FILE_TOKEN false path",
        "LOUD_PASSWORD false one_case",
        "PAY_TOKEN false name_of_tool",
        "PG_SECRET true null",
        "POSTGRES_PASSWORD false one_case",
        "SHORT_TOKEN false short",
    ];
    assert_eq!(shown, expected, "{}", listed.stdout);
    let people = with_env(&place, &["secrets", "test", "--env"], &env, "");
    assert!(people.code == 0 && people.stdout.contains("PAY_TOKEN  taken"), "{}", people.stdout);
    assert!(
        people.stdout.contains("(one_case)") && !people.stdout.contains("Postgres-11"),
        "{}",
        people.stdout
    );

    let lines = "{\"type\":\"action.request\",\"action\":{\"tool\":\"postgres.query\",\"params\":{\"as\":\"Postgres-11\"}}}\n\
                 {\"type\":\"action.request\",\"action\":{\"tool\":\"Postgres-11.drop\",\"params\":{\"sql\":\"postgres\"}}}\n\
                 {\"type\":\"action.request\",\"action\":{\"calls\":[{\"tool\":\"Postgres-11\",\"params\":{\"a\":\"Postgres-11\"}}]}}\n";
    let ran = with_env(&place, &["commit", "--run", "r", "--as", "runtime"], &env, lines);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let content =
        |rev: &str| place.json(&["show", rev]).1.get("content").unwrap().get("action").unwrap().to_string();
    assert_eq!(
        without_tags(&content("r@1")),
        r#"{"params":{"as":{"$redacted":{"kind":"known","len":"short"}}},"tool":"postgres.query"}"#
    );
    assert_eq!(content("r@2"), r#"{"params":{"sql":"postgres"},"tool":"Postgres-11.drop"}"#);
    let calls =
        r#"{"calls":[{"params":{"a":{"$redacted":{"kind":"known","len":"short"}}},"tool":"Postgres-11"}]}"#;
    assert_eq!(without_tags(&content("r@3")), calls);
    let predicate = "state.counters.last_tool == \"Postgres-11.drop\"";
    let onset = place.run(&["bisect", "r", "--to", "tick", "2", "--predicate", predicate]);
    assert!(onset.code == 0 && onset.stdout.contains("ONSET (exact)  tick 2"), "{}", onset.stdout);
    assert!(place.ok(&["log", "r", "--grep", "postgres"]).contains("postgres.query"));
    // The pack's own name is not taken in a run of that pack.
    let line = "{\"type\":\"plan.update\",\"intent\":{\"description\":\"call pay.Orders2 now\"}}\n";
    with_env(&place, &["commit", "--run", "p", "--pack", "p.yaml"], &env, line);
    assert!(place.ok(&["show", "p@1"]).contains("call pay.Orders2 now"));
    with_env(&place, &["commit", "--run", "q"], &env, line);
    assert!(!place.ok(&["show", "q@1"]).contains("pay.Orders2"));
    let both = place.run(&["secrets", "test", "x.log", "--env"]);
    assert_eq!(both.code, 2, "{}", both.stderr);
}

/// A text without the tags of its markers, which are those of the key of a store.
fn without_tags(text: &str) -> String {
    let mut parts = text.split(r#","tag":""#);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |made, part| made + part.get(17..).unwrap_or_default())
}
