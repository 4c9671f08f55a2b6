//! Observations of Langfuse: downloads of its pages, exports, and answers of its API.

use dendrer_object::Value;
use dendrer_wire::format;

use crate::spans::{check, damaged, indexed, large, lines, tokens};
use crate::{import, of, shown};

fn observation(id: &str, parent: &str, second: u64, kind: &str, name: &str, more: &str) -> String {
    let parent = if parent.is_empty() { "null".to_owned() } else { format!(r#""{parent}""#) };
    format!(
        r#"{{"id":"{id}","traceId":"t1","type":"{kind}","name":"{name}","parentObservationId":{parent},"startTime":"2025-03-01T10:00:{second:02}.5Z","endTime":null,"level":"DEFAULT","statusMessage":null,"model":null,"metadata":{{}},{more}}}"#
    )
}

fn observations() -> Vec<String> {
    let question = r#"{"role":"user","content":"How warm is it?"}"#;
    let asked = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Oslo\"}"}}]}"#;
    let result = r#"{"role":"tool","tool_call_id":"c1","content":"3 C"}"#;
    vec![
        observation(
            "o4",
            "o1",
            9,
            "GENERATION",
            "answer",
            &format!(
                r#""input":[{question},{asked},{result}],"output":{{"role":"assistant","content":"3 degrees."}},"usageDetails":{{"input":20,"output":7,"total":27}},"costDetails":{{"input":0.1,"output":0.1,"total":0.2}}"#
            ),
        ),
        observation(
            "o2",
            "o1",
            3,
            "GENERATION",
            "ask",
            &format!(
                r#""input":{{"messages":[{question}],"tools":[]}},"output":{asked},"usageDetails":{{"input":10,"output":5,"total":15}},"costDetails":{{"total":0.25}}"#
            ),
        ),
        observation(
            "o3",
            "o1",
            5,
            "TOOL",
            "weather",
            r#""input":{"city":"Oslo"},"output":"3 C","usageDetails":{},"costDetails":{}"#,
        ),
        observation(
            "o1",
            "",
            1,
            "AGENT",
            "Clerk",
            r#""input":"How warm is it?","output":"3 degrees.","totalCost":0.45"#,
        ),
    ]
}

const EXPECTED: [&str; 5] = [
    r#"observation.add Clerk "Clerk""#,
    r#"observation.add user "How warm is it?""#,
    r#"action.request Clerk weather({"city":"Oslo"})#c1 t15 $0.25"#,
    r#"action.result Clerk weather({"city":"Oslo"})#c1 <-3 = "3 C" ok"#,
    r#"plan.update Clerk "3 degrees." t27 $0.2"#,
];

fn trace(id: &str) -> String {
    format!(
        r#"{{"id":"{id}","name":"shop","timestamp":"2025-03-01T10:00:01Z","sessionId":"s1","scores":[{{"name":"good","value":1}}],"totalCost":0.45,"observations":[{}]}}"#,
        observations().join(",").replace(r#""t1""#, &format!(r#""{id}""#))
    )
}

#[test]
fn a_trace_is_one_conversation_in_each_of_its_files() {
    let plan = check("langfuse", &trace("t1"), &EXPECTED);
    assert_eq!((plan.tally.calls, plan.tally.paired, plan.tally.gaps()), (1, 1, 0));
    let (_, records) = import(trace("t1").as_bytes(), of("langfuse")).unwrap();
    let meta = records[0].content().get("meta").unwrap().clone();
    assert_eq!(meta.get("scores").unwrap().to_string(), r#"[{"name":"good","value":1}]"#);
    let list = format!("[{}]", observations().join(","));
    let whole = r#"{"trace":{"id":"t1","scores":[]},"observations":LIST}"#.replace("LIST", &list);
    let page = format!(r#"{{"data":{list},"meta":{{"cursor":null}}}}"#);
    let snake = [
        "traceId trace_id",
        "parentObservationId parent_observation_id",
        "startTime start_time",
        "usageDetails usage_details",
        "costDetails cost_details",
    ];
    let lines = observations().join("\n");
    let snake = snake.iter().fold(lines.clone(), |text, pair| {
        let (one, other) = pair.split_once(' ').unwrap();
        text.replace(one, other)
    });
    for source in [list, whole, page, lines, snake, trace("t1")] {
        check("langfuse", &source, &EXPECTED);
        let found = format::of_source(&mut std::io::Cursor::new(source.as_bytes()), false).unwrap();
        assert_eq!(found.name, "langfuse", "{source}");
    }
}

#[test]
fn a_session_is_one_run_and_several_traces_are_chosen_from() {
    let other = trace("t2").replace("2025-03-01", "2025-03-02");
    let session = format!(r#"{{"id":"s1","createdAt":"2025-03-01","traces":[{},{other}]}}"#, trace("t1"));
    let (plan, records) = import(session.as_bytes(), of("langfuse")).unwrap();
    assert_eq!((plan.layout.index, plan.tally.gaps(), tokens(&records)), (None, 0, Some(84)));
    let both = format!("{}\n{other}", trace("t1"));
    assert_eq!(import(both.as_bytes(), of("langfuse")).unwrap_err().code(), dendrer_object::Code::E0212);
    let (_, records) = import(both.as_bytes(), indexed("langfuse", 1)).unwrap();
    assert_eq!(lines(&records), EXPECTED);
}

#[test]
fn failures_and_usage_are_read_where_they_are_stated() {
    let all = [
        observation("a", "", 1, "TOOL", "pay", r#""input":{"n":2},"output":null"#)
            .replace(r#""DEFAULT","statusMessage":null"#, r#""ERROR","statusMessage":"no answer""#),
        observation(
            "b",
            "",
            2,
            "GENERATION",
            "g",
            r#""input":"hi","output":"hello","usage":{"input":3,"output":4,"total":7,"unit":"TOKENS"}"#,
        ),
        observation("c", "", 3, "SPAN", "s", r#""input":{},"acme_tool_calls":[{"a":1}]"#),
        observation("d", "", 4, "EMBEDDING", "e", r#""usageDetails":{"input":5,"total":5}"#),
    ];
    let plan = check(
        "langfuse",
        &all.join("\n"),
        &[
            r#"action.request assistant pay({"n":2})#a"#,
            r#"action.result assistant pay({"n":2})#a <-1 =  error "no answer""#,
            r#"observation.add user "hi""#,
            r#"plan.update assistant "hello" t7"#,
            r#"observation.add environment "s" !not_read[calls]"#,
            r#"observation.add environment "e" !not_read[usage]"#,
        ],
    );
    assert_eq!(plan.tally.errors, 1);
}

#[test]
fn observations_that_stand_twice_count_once() {
    let twice = format!("{}\n{}", observations().join("\n"), observations()[1]);
    let (plan, records) = import(twice.as_bytes(), of("langfuse")).unwrap();
    assert_eq!((tokens(&records), plan.tally.gaps(), records.len()), (Some(42), 0, 6));
    let notes = shown(&records, 3).get("anomalies").unwrap().to_string();
    assert_eq!(notes, r#"[{"first":"/1","kind":"repeated","path":"/4"}]"#);
    let other = twice.replacen(r#""total":15"#, r#""total":16"#, 1);
    let (plan, _) = import(other.as_bytes(), of("langfuse")).unwrap();
    assert_eq!(plan.tally.gaps(), 1);
    assert_ne!(Value::Null, shown(&records, 1));
}

#[test]
fn damaged_files_are_refused_or_have_gaps() {
    damaged("langfuse", &trace("t1"), 200);
    damaged("langfuse", &observations().join("\n"), 200);
}

#[test]
fn observations_that_name_the_next_one_take_bounded_time() {
    let count =
        if std::env::var_os("DENDRER_DEEP").is_some_and(|value| value == "1") { 100_000 } else { 20_000 };
    let one = |at: u64| {
        format!(
            r#"{{"id":"o{at}","traceId":"t","type":"GENERATION","startTime":"2025-03-01T10:00:00Z","input":"again","output":"x","parentObservationId":"o{}"}}"#,
            at + 1
        )
    };
    let all: Vec<String> = (1..=count).map(one).collect();
    assert!(large("langfuse", &all.join("\n")).tally.ticks > 0);
}

#[test]
fn a_long_file_is_recognised_by_its_beginning() {
    let long = format!("[{}]", observations().join(",")).replacen(
        r#""metadata":{}"#,
        &r#""metadata":{"x":"LONG"}"#.replace("LONG", &"x".repeat(70_000)),
        4,
    );
    let found = format::of_source(&mut std::io::Cursor::new(long.as_bytes()), false).unwrap();
    assert_eq!(found.name, "langfuse");
}
