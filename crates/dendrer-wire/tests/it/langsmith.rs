//! Runs of LangSmith, as its library and its exports write them.

use dendrer_wire::format;

use crate::spans::{check, damaged, indexed, large, lines, tokens};
use crate::{import, of};

const TRACE: &str = "018f0000-0000-7000-8000-000000000001";

/// A run: number, numbers of the runs above it, type, name, and members.
fn run(id: u64, above: &[u64], kind: &str, name: &str, more: &str) -> String {
    let uuid = |id: u64| format!("018f0000-0000-7000-8000-{id:012}");
    let order = |id: u64| format!("20240429T0049{id:02}000000Z{}", uuid(id));
    let dotted: Vec<String> = above.iter().chain([&id]).map(|id| order(*id)).collect();
    let parent = above.last().map_or("null".to_owned(), |id| format!(r#""{}""#, uuid(*id)));
    format!(
        r#"{{"id":"{}","trace_id":"{TRACE}","parent_run_id":{parent},"dotted_order":"{}","run_type":"{kind}","name":"{name}","start_time":"2024-04-29T00:49:{id:02}.000000","extra":{{"metadata":{{"ls_provider":"openai"}}}},"tags":[],{more}}}"#,
        uuid(id),
        dotted.join(".")
    )
}

const HUMAN: &str = r#"{"lc":1,"type":"constructor","id":["langchain","schema","messages","HumanMessage"],"kwargs":{"content":"How warm is it?","type":"human"}}"#;
const CALL: &str = r#"{"name":"weather","args":{"city":"Oslo"},"id":"c1","type":"tool_call"}"#;

fn ai(content: &str, calls: &str, usage: &str) -> String {
    format!(
        r#"{{"lc":1,"type":"constructor","id":["langchain","schema","messages","AIMessage"],"kwargs":{{"content":"{content}","type":"ai","id":"run-{}","tool_calls":[{calls}],"invalid_tool_calls":[],"response_metadata":{{"model_name":"m"}}{usage}}}}}"#,
        content.len()
    )
}

fn generation(message: &str) -> String {
    format!(
        r#"{{"generations":[[{{"text":"","type":"ChatGeneration","message":{message}}}]],"llm_output":{{"token_usage":{{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}},"model_name":"m"}}}}"#
    )
}

fn agent() -> Vec<String> {
    let asked = ai("", CALL, r#","usage_metadata":{"input_tokens":10,"output_tokens":5,"total_tokens":15}"#);
    let result = r#"{"lc":1,"type":"constructor","id":["langchain","schema","messages","ToolMessage"],"kwargs":{"content":"3 C","type":"tool","name":"weather","tool_call_id":"c1","status":"success"}}"#;
    vec![
        run(
            4,
            &[1],
            "llm",
            "ChatOpenAI",
            &format!(
                r#""inputs":{{"messages":[[{HUMAN},{},{result}]]}},"outputs":{},"error":null"#,
                ai("", CALL, ""),
                generation(&ai("3 degrees.", "", ""))
            ),
        ),
        run(
            1,
            &[],
            "chain",
            "agent",
            r#""inputs":{"messages":[{"role":"user","content":"How warm is it?"}]},"outputs":{},"total_tokens":30,"total_cost":0.5"#,
        ),
        run(
            2,
            &[1],
            "llm",
            "ChatOpenAI",
            &format!(
                r#""inputs":{{"messages":[[{HUMAN}]]}},"outputs":{},"total_tokens":15,"total_cost":"0.25""#,
                generation(&asked)
            ),
        ),
        run(
            3,
            &[1],
            "tool",
            "weather",
            &format!(r#""inputs":{{"input":"{{'city': 'Oslo'}}"}},"outputs":{{"output":{result}}}"#),
        ),
    ]
}

const AGENT: [&str; 5] = [
    r#"observation.add environment "agent""#,
    r#"observation.add user "How warm is it?""#,
    r#"action.request assistant "" weather({"city":"Oslo"})#c1 t15 $0.25"#,
    r#"action.result assistant weather({"city":"Oslo"})#c1 <-3 = "3 C" ok"#,
    r#"plan.update assistant "3 degrees." t15"#,
];

#[test]
fn runs_are_one_conversation_in_their_dotted_order() {
    let list = format!("[{}]", agent().join(","));
    let plan = check("langsmith", &list, &AGENT);
    assert_eq!((plan.tally.calls, plan.tally.paired, plan.tally.gaps()), (1, 1, 0));
    check("langsmith", &agent().join("\n"), &AGENT);
    check("langsmith", &format!(r#"{{"runs":{list},"cursors":{{"next":null}}}}"#), &AGENT);
    for source in [list, agent().join("\n")] {
        let found = format::of_source(&mut std::io::Cursor::new(source.as_bytes()), false).unwrap();
        assert_eq!(found.name, "langsmith");
    }
}

#[test]
fn plain_messages_and_parts_as_text_are_read() {
    // An export may have inputs and outputs as text.
    let inputs = r#"{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"hi"}],"model":"m"}"#;
    let outputs = r#"{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"x\": 1}"}}]}}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}"#;
    let text = |json: &str| dendrer_object::Value::from(json).to_string();
    let runs = [
        run(
            1,
            &[],
            "llm",
            "ChatOpenAI",
            &format!(r#""inputs":{},"outputs":{}"#, text(inputs), text(outputs)),
        ),
        run(
            2,
            &[],
            "tool",
            "look",
            r#""inputs":{"x":1},"outputs":null,"error":"ToolException('late')","status":"error""#,
        ),
        run(
            3,
            &[],
            "tool",
            "look",
            r#""inputs":{"x":2},"outputs":{"output":"{\"success\":false}"},"error":null"#,
        ),
        run(4, &[], "retriever", "find", r#""inputs":{"query":"q"},"outputs":{"documents":[]}"#),
    ];
    let plan = check(
        "langsmith",
        &runs.join("\n"),
        &[
            r#"observation.add user "hi""#,
            r#"action.request assistant look({"x":1})#c1 t7"#,
            r#"action.result assistant look({"x":1})#c1 <-2 =  error "ToolException('late')""#,
            r#"action.request assistant look({"x":2})#018f0000-0000-7000-8000-000000000003"#,
            r#"action.result assistant look({"x":2})#018f0000-0000-7000-8000-000000000003 <-4 = "{\"success\":false}" error"#,
            r#"observation.add environment "find""#,
        ],
    );
    assert_eq!((plan.tally.errors, plan.tally.preamble), (2, 1));
}

#[test]
fn usage_is_that_of_models_and_unknown_members_are_noted() {
    let (plan, records) = import(agent().join("\n").as_bytes(), of("langsmith")).unwrap();
    assert_eq!((tokens(&records), plan.tally.gaps()), (Some(30), 0));
    let silent = run(1, &[], "llm", "m", r#""inputs":{"messages":[]},"outputs":{"generations":[]}"#);
    let (_, records) = import(silent.as_bytes(), of("langsmith")).unwrap();
    assert_eq!(tokens(&records), None);
    let lone =
        run(1, &[], "chain", "c", r#""inputs":{},"outputs":{},"acme_usage":{"tokens":4},"acme_label":"x""#);
    let (_, records) = import(lone.as_bytes(), of("langsmith")).unwrap();
    assert_eq!(lines(&records), [r#"observation.add environment "c" !not_read[usage]"#]);
}

#[test]
fn traces_are_chosen_from_and_repeated_runs_count_once() {
    let other = agent()[1].replace(TRACE, "018f0000-0000-7000-8000-000000000009");
    let two = format!("{}\n{other}", agent().join("\n"));
    assert_eq!(import(two.as_bytes(), of("langsmith")).unwrap_err().code(), dendrer_object::Code::E0212);
    assert_eq!(import(two.as_bytes(), indexed("langsmith", 1)).unwrap().1.len(), 2);
    let twice = format!("{}\n{}", agent().join("\n"), agent()[2]);
    let (plan, records) = import(twice.as_bytes(), of("langsmith")).unwrap();
    assert_eq!((tokens(&records), plan.tally.gaps(), records.len()), (Some(30), 0, 6));
}

#[test]
fn damaged_files_are_refused_or_have_gaps() {
    damaged("langsmith", &agent().join("\n"), 200);
    damaged("langsmith", &format!("[{}]", agent().join(",")), 200);
}

#[test]
fn a_hundred_thousand_runs_take_bounded_time() {
    let one = |at: u64| {
        format!(
            r#"{{"id":"r{at}","trace_id":"t","parent_run_id":"r{}","dotted_order":"{at:08}","run_type":"tool","name":"t","inputs":{{"n":{at}}}}}"#,
            at + 1
        )
    };
    let runs: Vec<String> = (1..=100_000).map(one).collect();
    assert!(large("langsmith", &runs.join("\n")).tally.calls > 0);
}

#[test]
fn a_long_file_is_recognised_by_its_beginning() {
    let long = format!("[{}]", agent().join(",")).replacen(
        r#""tags":[]"#,
        &r#""tags":["LONG"]"#.replace("LONG", &"x".repeat(70_000)),
        4,
    );
    let found = format::of_source(&mut std::io::Cursor::new(long.as_bytes()), false).unwrap();
    assert_eq!(found.name, "langsmith");
}
