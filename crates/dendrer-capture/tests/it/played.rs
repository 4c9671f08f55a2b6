//! Programs that are served from their record.

use dendrer_capture::player::{DepartureKind, tools_inside};
use dendrer_capture::{Base, Ended, PlayedCalls, Player, Proxy};

use crate::passing::{POST, asks};
use crate::taped::{ASKS, BRINGS, CALLS, CHAT, Desk, SAYS};

/// Plays the record to requests with these bodies, and returns the answers: status and body.
fn play(desk: &Desk, bodies: &[String]) -> (Vec<(String, String)>, PlayedCalls) {
    let player = Player::open(&desk.trace(), desk.repo.vault().unwrap(), Vec::new()).unwrap();
    let proxy = Proxy::play(vec![Base::new("A", "http://nowhere.invalid/v1").unwrap()], player).unwrap();
    let mut answers = Vec::new();
    for body in bodies {
        let came = String::from_utf8(asks(&proxy, POST, body.as_bytes())).unwrap();
        let status = came.get(9..12).unwrap_or_default().to_owned();
        answers.push((status, came.split("\r\n\r\n").nth(1).unwrap_or_default().to_owned()));
    }
    (answers, proxy.end_play())
}

fn body(messages: &str) -> String {
    format!(r#"{{"model":"m","messages":[{messages}]}}"#)
}

/// A run of two calls, the second of which was refused once.
fn desk() -> Desk {
    let mut desk = Desk::new();
    desk.chat(ASKS, CALLS);
    let second = body(&format!("{ASKS},{CALLS},{BRINGS}"));
    let busy = desk.ask(CHAT, &second);
    desk.answer(busy, 429, "application/json", r#"{"error":{"message":"busy"}}"#, Ended::Whole);
    desk.chat(&format!("{ASKS},{CALLS},{BRINGS}"), SAYS);
    desk
}

#[test]
fn each_answer_comes_in_its_turn_as_it_was() {
    let desk = desk();
    let second = body(&format!("{ASKS},{CALLS},{BRINGS}"));
    let (answers, played) = play(&desk, &[body(ASKS), second.clone(), second.clone(), second]);
    let first = format!(r#"{{"id":"x0","choices":[{{"message":{CALLS}}}]}}"#);
    assert_eq!(answers[0], ("200".to_owned(), first));
    assert_eq!(answers[1], ("429".to_owned(), r#"{"error":{"message":"busy"}}"#.to_owned()));
    assert!(answers[2].0 == "200" && answers[2].1.contains("twelve"), "{answers:?}");
    // The record has three calls, and the program makes a fourth.
    assert_eq!(answers[3].0, "400");
    assert_eq!((played.recorded, played.served), (3, 3));
    assert_eq!(played.divergences[0].kind, DepartureKind::Surplus);
}

#[test]
fn a_changed_request_is_named_by_its_place_and_ends_its_conversation() {
    let desk = desk();
    let changed = body(&format!("{ASKS},{CALLS},{}", BRINGS.replace("12", "13")));
    let after = body(&format!(
        r#"{ASKS},{CALLS},{},{{"role":"user","content":"go on"}}"#,
        BRINGS.replace("12", "13")
    ));
    let (answers, played) = play(&desk, &[body(ASKS), changed, after]);
    let statuses: Vec<&str> = answers.iter().map(|(status, _)| status.as_str()).collect();
    assert_eq!(statuses, ["200", "400", "400"]);
    assert!(answers[1].1.contains("call 2 differs at"), "{answers:?}");
    assert!(answers[2].1.contains("departed from the record before"), "{answers:?}");
    let found = &played.divergences[0];
    assert_eq!((found.call, found.path.as_deref()), (Some(2), Some("/messages/2/content")));
    let sides = [&found.expected, &found.got].map(|side| side.as_ref().unwrap().to_string());
    assert_eq!(sides, [r#""12""#, r#""13""#]);
    assert_eq!(played.divergences.len(), 1, "a conversation departs once");
}

#[test]
fn blanks_and_the_order_of_members_are_no_change() {
    let desk = desk();
    let (answers, _) = play(&desk, &[format!(r#"{{ "messages" : [ {ASKS} ], "model": "m" }}"#)]);
    assert_eq!(answers[0].0, "200");
}

#[test]
fn a_call_that_is_not_made_is_missing() {
    let desk = desk();
    let (_, played) = play(&desk, &[body(ASKS)]);
    assert_eq!(played.divergences[0].kind, DepartureKind::Missing);
    assert_eq!((played.divergences[0].call, played.served), (Some(2), 1));
}

#[test]
fn a_connection_that_was_cut_is_cut_again() {
    let mut desk = Desk::new();
    let call = desk.ask(CHAT, &body(ASKS));
    desk.answer(call, 200, "text/event-stream", "data: {}\n\n", Ended::Upstream);
    let (answers, _) = play(&desk, &[body(ASKS)]);
    assert_eq!(answers[0].0, "200");
    assert!(answers[0].1.contains("data: {}") && !answers[0].1.ends_with("0\r\n"), "{answers:?}");
}

#[test]
fn tools_whose_results_the_program_brings_are_inside_it() {
    let trace = desk().trace();
    let tools: Vec<String> = tools_inside(&trace, trace.tip()).unwrap().into_iter().collect();
    assert_eq!(tools, ["count"]);
}

#[test]
fn a_run_without_exact_answers_is_not_played() {
    let desk = Desk::new();
    let error = Player::open(&desk.trace(), desk.repo.vault().unwrap(), Vec::new()).unwrap_err();
    assert_eq!(error.code.as_str(), "E0117");
}

#[test]
fn another_query_or_another_api_is_another_request() {
    let mut desk = Desk::new();
    let call = desk.ask("/v1/order?id=1&key=secret", "{}");
    desk.answer(call, 200, "application/json", r#"{"order":1}"#, Ended::Whole);
    let ask = |variable: &str, query: &str| {
        let player = Player::open(&desk.trace(), desk.repo.vault().unwrap(), Vec::new()).unwrap();
        let proxy =
            Proxy::play(vec![Base::new(variable, "http://nowhere.invalid/v1").unwrap()], player).unwrap();
        let head = POST.replace("BASE/chat/completions", &format!("BASE/order{query}"));
        String::from_utf8(asks(&proxy, &head, b"{}")).unwrap()
    };
    for (variable, query) in [("A", "?id=2"), ("B", "?id=1"), ("A", "")] {
        let came = ask(variable, query);
        assert!(came.starts_with("HTTP/1.1 400 "), "{variable} {query}: {came}");
    }
    // A key is no part of it.
    let came = ask("A", "?id=1&key=another");
    assert!(came.starts_with("HTTP/1.1 200 ") && came.ends_with(r#"{"order":1}"#), "{came}");
}
