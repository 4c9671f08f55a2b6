//! `fork RUN@N -- CMD`: a program is run again up to a tick, and then gets other answers. The page has the main job.

#![cfg(unix)]

use dendrer_object::{Value, json};

use crate::record::{desk, has_python, place};
use crate::support::Place;
use crate::tutorial::shell;

/// A place in which the program of the page was recorded as `agent-py`: 1 asks, 2 calls, 3 the result, 4 failed, 5 says.
fn recorded() -> Option<Place> {
    if !has_python() {
        return None;
    }
    let place = place();
    desk(&place);
    let line = "OPENAI_BASE_URL=$(cat api.url) dendrer record -- python3 agent.py";
    assert_eq!(run(&place, line).0, 0);
    Some(place)
}

fn run(place: &Place, line: &str) -> (i32, String) {
    let mut last = 0;
    let text = shell(place, line, &mut last);
    (last, text)
}

#[test]
fn a_tick_without_such_an_answer_is_refused_before_the_program_starts() {
    let Some(place) = recorded() else { return };
    let whole = r#"{"choices":[{"message":{"role":"assistant","content":"no"}}]}"#;
    std::fs::write(place.path().join("desk/whole.json"), whole).unwrap();
    std::fs::write(place.path().join("desk/part.json"), r#"{"content":"no"}"#).unwrap();
    for (at, answer, why) in [
        (5, "5=whole.json", "tick 5 is shared"),
        (4, "5=part.json", "no answer of openai-chat"),
        (4, "6=whole.json", "no answer that a program was given"),
        (0, "1=whole.json", "no answer that a program was given"),
    ] {
        let line =
            format!("dendrer fork agent-py@{at} --answer {answer} --tools run --as no -- touch started");
        let (code, text) = run(&place, &line);
        assert_eq!(code, 2, "{line}: {text}");
        assert!(text.contains(why) && text.contains("the program was not started"), "{line}: {text}");
    }
    let (code, text) =
        run(&place, "dendrer fork agent-py@4 --answer 99=whole.json --tools run -- touch started");
    assert!(code == 3 && text.contains("E0102"), "{code} {text}");
    let (code, text) = run(&place, "dendrer fork agent-py@4 --as no -- touch started");
    assert!(code == 5 && text.contains("E0469") && text.contains("count"), "{code} {text}");
    let (_, text) = run(&place, "ls started 2>&1; dendrer runs");
    assert!(text.contains("No such file") && !text.contains("no "), "{text}");
}

#[test]
fn an_answer_that_the_program_does_not_come_to_is_named() {
    let Some(place) = recorded() else { return };
    let line = "echo '{\"choices\":[{\"message\":{\"content\":\"no\"}}]}' > no.json; dendrer fork agent-py@2 --answer 5=no.json --offline --tools run --as short -- sh -c true";
    let (code, text) = run(&place, line);
    assert!(text.contains("NOT USED   the answer of parent tick 5"), "{text}");
    // A recorded call was not made either, which says more.
    assert_eq!(code, 7, "{text}");
    let line =
        "dendrer fork agent-py@0 --answer 5=no.json --offline --as short-2 --json -- sh -c true 2> /dev/null";
    let (code, text) = run(&place, line);
    let document = json::parse_door(text.as_bytes()).unwrap();
    assert_eq!(code, 1, "{text}");
    assert_eq!(document.get("answers").unwrap().to_string(), r#"[{"tick":5,"used":false}]"#);
    assert_eq!(document.get("served"), Some(&Value::from(0_u64)));
}

#[test]
fn a_program_that_departs_before_the_tick_reaches_no_api() {
    let Some(place) = recorded() else { return };
    let line = "sed 's/You count/You guess/' agent.py > other.py; OPENAI_BASE_URL=http://127.0.0.1:9/v1 dendrer fork agent-py@4 --tools run --as other -- python3 other.py 2>&1 | grep DIVERGED";
    let (_, text) = run(&place, line);
    assert!(text.contains("DIVERGED     call 1 of main: /messages/0/content"), "{text}");
    let (code, text) =
        run(&place, "dendrer fork agent-py@4 --tools run --as again --json -- python3 other.py 2> /dev/null");
    assert_eq!(code, 7, "{text}");
    let document = json::parse_door(text.as_bytes()).unwrap();
    assert_eq!(document.get("live"), Some(&Value::from(0_u64)));
    assert_eq!(document.get("program_exit"), Some(&Value::from(1_u64)));
}

#[test]
fn a_fork_is_replayed_by_its_program_and_verifies() {
    let Some(place) = recorded() else { return };
    let lines = "echo '\"13 trains\"' > more.json
OPENAI_BASE_URL=$(cat api.url) dendrer fork agent-py@2 --answer 3=more.json --tools run --as more -- python3 agent.py
echo '{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"None\"}}]}' > none.json
dendrer fork agent-py@4 --answer 5=none.json --offline --tools run --as none -- python3 agent.py
dendrer fork none@6 --offline --tools run --as third -- python3 agent.py";
    for line in lines.lines() {
        let (code, text) = run(&place, line);
        assert_eq!(code, 0, "{line}: {text}");
    }
    for (name, said, calls) in [("more", "There are 13 trains", 2), ("none", "None", 3), ("third", "None", 3)]
    {
        let (code, text) = run(&place, &format!("dendrer replay {name} --tools run -- python3 agent.py"));
        assert_eq!(code, 0, "{name}: {text}");
        assert!(text.contains(said) && text.contains(&format!("{calls} calls served")), "{name}: {text}");
    }
    let (_, text) =
        run(&place, "dendrer show more@4 --json; dendrer show none@6 --json; dendrer show none@5 --json");
    assert!(text.contains(r#""changed_in_request":true"#) && text.contains(r#""given":true"#), "{text}");
    assert!(text.contains(r#""answered":[5]"#) && text.contains(r#""fork_type":"injection""#), "{text}");
    let (code, text) = run(&place, "dendrer verify --all --replay");
    assert_eq!(code, 0, "{text}");
    // What came before the fork is not recorded again.
    let (_, text) = run(&place, "dendrer log more; dendrer log third");
    assert_eq!(text.matches("How many trains?").count(), 2, "{text}");
    assert_eq!(text.matches("action.request").count(), 2, "{text}");
}

/// Dendrer paper E.1: an answer that is not recorded is an anomaly on record, and no plain error.
#[test]
fn a_replay_without_a_recorded_answer_is_an_anomaly_on_record() {
    let Some(place) = recorded() else { return };
    let line = "sed 's/12 trains/13 trains/' agent.py > changed.py; dendrer replay agent-py --tools run --record -- python3 changed.py";
    let (code, text) = run(&place, line);
    assert_eq!(code, 7, "{text}");
    let (_, text) = run(&place, "dendrer show casebook@1 --json");
    assert!(text.contains("kernel.anomaly") && text.contains("replay_divergence"), "{text}");
    assert!(text.contains("/messages/3/content") && text.contains("13 trains"), "{text}");
}

#[test]
fn a_program_that_departs_from_a_shared_message_reaches_no_api() {
    let Some(place) = recorded() else { return };
    let line = "sed 's/12 trains/13 trains/' agent.py > lie.py; OPENAI_BASE_URL=http://127.0.0.1:9/v1 dendrer fork agent-py@3 --tools run --as lie -- python3 lie.py 2>&1 | grep DIVERGED";
    let (_, text) = run(&place, line);
    assert!(text.contains("DIVERGED     call 2 of main: /messages/3/content"), "{text}");
    let (_, text) =
        run(&place, "dendrer fork agent-py@3 --tools run --as lie-2 --json -- python3 lie.py 2> /dev/null");
    assert!(text.contains(r#""live":0"#), "{text}");
}
