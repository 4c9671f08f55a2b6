//! Faults that people reported: calls without their arguments, ends of times, orders of runs, searches, characters that look alike.

use crate::support::{Place, demo};

/// Records lines in a new run.
fn commit(place: &Place, run: &str, lines: &[&str]) {
    let ran = place.run_with(&["commit", "--run", run], lines.join("\n").as_bytes());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_call_with_words_is_listed_with_its_arguments() {
    let place = Place::with_store();
    let call = r#"{"type":"action.request","intent":{"description":"paying 20"},"action":{"tool":"pay","params":{"amount":900}}}"#;
    commit(&place, "r", &[call]);
    let row = r#"pay {"amount":900} "paying 20""#;
    assert!(place.ok(&["log", "r"]).contains(row));
    let summary = place.ok(&["log", "r", "--jsonl"]);
    assert!(summary.contains(r#""summary":"pay {\"amount\":900} \"paying 20\"""#), "{summary}");
}

#[test]
fn numbers_and_names_of_members_are_searched() {
    let place = Place::with_store();
    let call = r#"{"type":"action.request","action":{"tool":"pay","params":{"amount":900}}}"#;
    commit(&place, "r", &[call, r#"{"type":"observation.add","intent":{"description":"x"}}"#]);
    for (pattern, listed) in
        [("^900$", 1), ("amount", 1), ("pay", 1), ("params", 0), ("tool", 0), ("description", 0)]
    {
        let log = place.json(&["log", "r", "--grep", pattern]).1;
        assert_eq!(log.get("items").unwrap().as_array().unwrap().len(), listed, "{pattern}");
    }
}

#[test]
fn the_end_of_a_second_is_included() {
    let shown = |until: &str| {
        let log = demo().json(&["log", "logistics-run-47", "-n", "0", "--until", until]).1;
        log.get("items").unwrap().as_array().unwrap().len()
    };
    let ts = demo().json(&["show", "logistics-run-47@22"]).1.get("ts").unwrap().as_str().unwrap().to_owned();
    let second = format!("{}Z", ts.split('.').next().unwrap());
    assert_ne!(second, ts, "a time with a fraction");
    assert_eq!(shown(&second), shown(&ts));
    assert_eq!(shown(&ts), 22);
}

#[test]
fn runs_are_in_the_order_of_the_time_that_is_shown() {
    let place = Place::with_store();
    commit(&place, "now", &[r#"{"type":"observation.add","intent":{"description":"x"}}"#]);
    let file = place.path().join("old.dnd").display().to_string();
    let exported = demo().run(&["export", "logistics-run-47", "-o", &file]);
    assert_eq!(exported.code, 0, "{}", exported.stderr);
    place.ok(&["import", &file]);
    let names = |args: &[&str]| -> Vec<String> {
        let runs = place.json(args).1;
        let items = runs.get("items").unwrap().as_array().unwrap();
        // The run of a bundle has the store before its name.
        let own = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
        items.iter().map(|run| own(run.get("name").unwrap().as_str().unwrap())).collect()
    };
    assert_eq!(names(&["runs"]), ["now", "logistics-run-47"]);
    for age in ["60m", "2h", "24h", "1d", "2w ago"] {
        assert_eq!(names(&["runs", "--where", &format!("updated > \"{age}\"")]), ["now"], "{age}");
        assert_eq!(
            names(&["runs", "--where", &format!("updated <= \"{age}\"")]),
            ["logistics-run-47"],
            "{age}"
        );
    }
}

#[test]
fn sides_that_look_alike_are_told_apart() {
    let place = Place::with_store();
    let set =
        |value: &str| format!(r#"{{"type":"memory.write","delta":[{{"set":"/v","value":"{value}"}}]}}"#);
    let values = ["a\u{a0}b", "a b", "a\u{202f}b", "a\u{2011}b", "a-b", "\u{410}", "A"];
    commit(&place, "r", &values.map(set).each_ref().map(String::as_str));
    let shown = |tick: u64| place.ok(&["show", &format!("r@{tick}")]);
    assert!(shown(2).contains(r#"~ v  "a\u{a0}b" -> "a b""#), "{}", shown(2));
    assert!(shown(3).contains(r#"~ v  "a b" -> "a\u{202f}b""#), "{}", shown(3));
    assert!(shown(5).contains("-> \"a-b\"  (character 3: U+2011 -> U+002D)"), "{}", shown(5));
    assert!(shown(7).contains("-> \"A\"  (character 2: U+0410 -> U+0041)"), "{}", shown(7));
}

#[test]
fn variables_of_the_environment_are_documented() {
    let help = demo().run(&["help", "environment"]);
    let man = demo().run(&["man"]).stdout;
    for name in ["DENDRER_PAGER", "PAGER", "DENDRER_STORE", "DENDRER_ACCESSIBLE", "CLICOLOR_FORCE"] {
        assert!(help.stdout.contains(&format!("  {name} ")) && man.contains(name), "{name}");
    }
}

#[test]
fn lists_with_a_limit_name_whether_they_are_whole() {
    let complete = |args: &[&str]| demo().json(args).1.get("complete").unwrap().as_bool().unwrap();
    for (args, is_whole) in [
        (&["runs", "-n", "2"][..], false),
        (&["runs", "-n", "0"], true),
        (&["heatmap", "logistics-run-47", "-n", "1"], false),
        (&["heatmap", "logistics-run-47", "-n", "0"], true),
        (&["backtrack", "logistics-run-47", "risk_score", "-n", "1"], false),
        (&["backtrack", "logistics-run-47", "risk_score", "-n", "0"], true),
    ] {
        assert_eq!(complete(args), is_whole, "{args:?}");
    }
}
