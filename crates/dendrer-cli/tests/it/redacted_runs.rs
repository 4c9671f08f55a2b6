//! Questions to runs of which secrets were taken out (design, 14.4).

use dendrer_object::Value;

use crate::erase::files_with;
use crate::support::Place;

fn commit(place: &Place, run: &str, lines: &[&str], more: &[&str]) {
    let args: Vec<&str> =
        ["commit", "--run", run, "--as", "runtime"].into_iter().chain(more.iter().copied()).collect();
    let ran = place.run_with(&args, format!("{}\n", lines.join("\n")).as_bytes());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

/// Runs of one script that logged in with two keys: with tags they part at the login, without tags it is not known.
#[test]
fn two_keys_are_two_keys() {
    let place = Place::new();
    place.ok(&["init"]);
    let plan = r#"{"type":"plan.update","intent":{"description":"sync the invoices"}}"#;
    let login = |key: &str| {
        format!(
            r#"{{"type":"action.request","action":{{"tool":"login","params":{{"account":"shop","api_key":"{key}"}}}}}}"#
        )
    };
    let keys = ["live-71Qm2xPz9", "test-55Rn8kWq1"];
    for (run, key, profile) in [
        ("mon", keys[0], "default"),
        ("tue", keys[1], "default"),
        ("wed", keys[0], "default"),
        ("c1", keys[0], "carl/1"),
        ("c2", keys[1], "carl/1"),
    ] {
        commit(&place, run, &[plan, &login(key)], &["--redact", profile]);
    }
    let found = place.run(&["diff", "mon", "tue", "--exit-code"]);
    assert!(found.code == 1 && found.stdout.contains("they part at tick 2"), "{}", found.stdout);
    let found = place.run(&["bisect", "mon", "--divergence", "tue"]);
    assert!(found.code == 0 && found.stdout.contains("ONSET (exact)  tick 2"), "{}", found.stdout);
    let found = place.run(&["diff", "mon", "wed", "--exit-code"]);
    assert!(found.code == 0 && found.stdout.contains("no difference;"), "{}", found.stdout);
    let found = place.run(&["diff", "c1", "c2", "--exit-code"]);
    assert!(
        found.code == 6 && found.stdout.contains("action.params.api_key  not comparable (redacted)"),
        "{}",
        found.stdout
    );
    assert_eq!(place.run(&["bisect", "c1", "--divergence", "c2"]).code, 6);
    // A predicate asks for one of them.
    let asked = |run: &str, text: &str| place.run(&["bisect", run, "--predicate", text]).code;
    commit(
        &place,
        "s",
        &[r#"{"type":"plan.update","delta":[{"set":"/pin","value":"4711"},{"set":"/n","value":1}]}"#],
        &[],
    );
    assert_eq!(asked("s", "state.pin == '4711'"), 6);
}

/// Ids that redaction changes still tell steps apart, and a parent is found.
#[test]
fn names_of_things_stay_names() {
    let place = Place::new();
    place.ok(&["init"]);
    let id = |n: u8| format!("SK{n}123456789abcdef0123456789abcdef");
    let step = |name: &str, id: &str, parent: Option<String>| {
        let parent = parent.map_or_else(String::new, |parent| format!(r#","parent_id":"{parent}""#));
        format!(
            r#"{{"step":{{"action":"tool_call","name":"{name}","input":{{}},"output":{{}},"step_id":"{id}","trace_id":"t"{parent}}}}}"#
        )
    };
    let lines =
        [step("rotate", &id(0), None), step("check", &id(1), Some(id(0))), step("report", "s3", Some(id(1)))];
    commit(&place, "r", &lines.each_ref().map(String::as_str), &[]);
    let found = place.run(&["steps", "r", "--compose", "parent"]);
    let told = format!("{}{}", found.stdout, found.stderr);
    assert!(found.code == 0 && told.contains("1 group, 2 edges, 0 orphans"), "{told}");
    assert!(!told.contains(&id(0)));
}

/// What a run took is taken out of whatever is said of it later, by every verb and every process.
#[test]
fn what_is_said_of_a_run_has_none_of_its_secrets() {
    let place = Place::new();
    place.ok(&["init"]);
    let secret = "Wq7zLm3vXk9T";
    let output = Value::from(format!("DB_PASSWORD={secret}"));
    commit(
        &place,
        "dd",
        &[
            &format!(r#"{{"type":"action.result","result":{{"status":"ok","output":{output}}}}}"#),
            r#"{"type":"memory.write","delta":[{"set":"/x","value":1}]}"#,
        ],
        &[],
    );
    // Another process, another line, a line that is refused.
    let said = format!(r#"{{"type":"observation.add","intent":{{"description":"x {secret}"}}}}"#);
    commit(&place, "dd", &[&said], &[]);
    let refused = format!(r#"{{"type":"observation.add","nothing":"x {secret}"}}"#);
    place.run_with(&["commit", "--run", "dd"], format!("{refused}\n").as_bytes());
    let text = |before: &str| format!("{before} {secret}");
    place.ok(&["note", "dd@1", &text("it is"), "--by", secret]);
    place.ok(&["label", &format!("lbl-{secret}"), "dd@1"]);
    let set = format!("x=\"{secret}\"");
    place.ok(&["fork", "dd@2", "--as", "df", "--reason", &text("why"), "--note", &text("n"), "--set", &set]);
    place.ok(&["runs", "drop", "df", "--reason", &text("d"), "--by", secret]);
    place.ok(&[
        "erase",
        "dd@2",
        "/delta/0/value",
        "--reason",
        &text("no"),
        "--although",
        "intent.description",
        "--although",
        "action.params",
        "--although",
        "delta",
        "--although",
        "line",
        "--although",
        "fork",
    ]);
    place.ok(&["export", "dd", "-o", "dd.dnd"]);
    let clear = files_with(place.path(), secret);
    assert!(clear.is_empty(), "{clear:?}");
    // A marker that is typed claims nothing.
    let shown = place.ok(&["show", "dd@1", "--json"]);
    let marker =
        shown.split("<redacted:named#").nth(1).map(|rest| format!("<redacted:named#{}>", &rest[..16]));
    let marker = marker.unwrap_or_else(|| panic!("{shown}"));
    let output = |text: &str| {
        let text = Value::from(format!("DB_PASSWORD={text}"));
        format!(r#"{{"type":"action.result","result":{{"status":"ok","output":{text}}}}}"#)
    };
    commit(&place, "forged", &[&output(&marker)], &[]);
    commit(&place, "again", &[&output(secret)], &[]);
    assert_eq!(place.run(&["diff", "dd@1", "again", "--exit-code", "--align", "tick"]).code, 0);
    assert_eq!(place.run(&["diff", "again", "forged", "--exit-code"]).code, 6);
}
