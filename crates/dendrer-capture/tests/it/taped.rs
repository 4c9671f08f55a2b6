//! Calls as transitions: without a socket, copy by copy.

use dendrer::kernel::step::{Stage, Start};
use dendrer::redact::RedactionProfile;
use dendrer::{Repo, Trace};
use dendrer_capture::exchange::CopiedBody;
use dendrer_capture::proxy::PassedCopy;
use dendrer_capture::{AnsweredCall, AskedCall, Ended, Tape};
use dendrer_object::{RunName, Value, json};
use dendrer_testkit::run_name;

pub(crate) const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";

pub(crate) struct Desk {
    pub(crate) repo: Repo,
    pub(crate) tape: Tape,
    pub(crate) calls: u64,
}

impl Desk {
    pub(crate) fn new() -> Desk {
        let repo = Repo::in_memory(RedactionProfile::Default).unwrap();
        let start = Start { stage: Some(Stage::Observe), ..Start::new(run_name("r")) };
        let mut recorder = repo.begin(&start).unwrap();
        recorder.commit().unwrap();
        let tape = Tape::new(recorder, Some(repo.vault().unwrap()));
        Desk { repo, tape, calls: 0 }
    }

    pub(crate) fn ask(&mut self, path: &str, body: &str) -> u64 {
        self.calls += 1;
        let body =
            CopiedBody { bytes: body.as_bytes().to_vec(), pieces: vec![body.len() as u32], left_out: 0 };
        let (method, path) = ("POST".to_owned(), path.to_owned());
        self.tape
            .take(PassedCopy::Asked(AskedCall {
                call: self.calls,
                base: "A".to_owned(),
                method,
                path,
                encoding: None,
                body,
                changed: Vec::new(),
                is_given: false,
            }))
            .unwrap();
        self.calls
    }

    pub(crate) fn answer(&mut self, call: u64, status: u16, kind: &str, body: &str, ended: Ended) {
        let headers = [("Content-Type", kind), ("Set-Cookie", "session=a-secret"), ("X-Api-Key", "another")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
        let head = Some((status, headers.to_vec()));
        let body =
            CopiedBody { bytes: body.as_bytes().to_vec(), pieces: vec![body.len() as u32], left_out: 0 };
        if status >= 400 {
            self.tape.take(PassedCopy::Failing(call)).unwrap();
        }
        self.tape.take(PassedCopy::Answered(AnsweredCall { call, at: 0, head, body, ended })).unwrap();
    }

    fn call(&mut self, path: &str, body: &str, answer: &str) {
        let call = self.ask(path, body);
        self.answer(call, 200, "application/json", answer, Ended::Whole);
    }

    pub(crate) fn chat(&mut self, messages: &str, answer: &str) {
        let body = format!(r#"{{"model":"m","messages":[{messages}]}}"#);
        self.call(CHAT, &body, &format!(r#"{{"id":"x{}","choices":[{{"message":{answer}}}]}}"#, self.calls));
    }

    pub(crate) fn trace(&self) -> Trace {
        self.repo.run(&"r".parse::<RunName>().unwrap()).unwrap()
    }

    /// Each tick: agent, type, and the words or the call.
    pub(crate) fn shown(&self) -> Vec<String> {
        let trace = self.trace();
        let show = |tick| {
            let content = trace.record(tick).unwrap().content().clone();
            let at = |path: &[&str]| path.iter().try_fold(&content, |value, name| value.get(name)).cloned();
            let record = trace.record(tick).unwrap();
            let kind = record.header().type_name.as_ref().unwrap().to_string();
            let what = [&["action", "tool"][..], &["result", "output"], &["intent", "content"]].map(at);
            let what = what.into_iter().flatten().find(|value| *value != Value::Null);
            let what = what.map_or_else(|| "-".to_owned(), |value| value.to_string());
            let branch =
                at(&["intent", "capture", "branch"]).map_or(String::new(), |branch| branch.to_string());
            format!("{}/{branch} {kind} {what}", at(&["agent_id"]).unwrap().as_str().unwrap())
        };
        (1..=trace.tip()).map(show).collect()
    }

    pub(crate) fn content(&self, tick: u64) -> Value {
        self.trace().record(tick).unwrap().content().clone()
    }
}

pub(crate) const ASKS: &str = r#"{"role":"user","content":"how many?"}"#;
pub(crate) const CALLS: &str = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"count","arguments":"{\"of\": 1}"}}]}"#;
pub(crate) const BRINGS: &str = r#"{"role":"tool","tool_call_id":"c1","content":"12"}"#;
pub(crate) const SAYS: &str = r#"{"role":"assistant","content":"twelve"}"#;

#[test]
fn each_message_of_a_growing_transcript_is_one_transition() {
    let mut desk = Desk::new();
    let system = r#"{"role":"system","content":"count"}"#;
    desk.chat(&format!("{system},{ASKS}"), CALLS);
    // As a client sends it back: other blanks, members in another order, empty members left out.
    let again = r#"{"tool_calls":[{"type":"function","id":"c1","function":{"arguments":"{\"of\":1}","name":"count"}}],"role":"assistant"}"#;
    desk.chat(&format!("{system},{ASKS},{again},{BRINGS}"), SAYS);
    assert_eq!(
        desk.shown(),
        [
            r#"user/0 observation.add "how many?""#,
            r#"main/0 action.request "count""#,
            r#"main/0 action.result "count""#,
            r#"main/0 plan.update "twelve""#,
        ]
    );
    let result = desk.content(3);
    assert_eq!(result.get("unattested"), Some(&Value::from(true)));
    assert_eq!(result.get("action").unwrap().get("params").unwrap().to_string(), r#"{"of":1}"#);
    assert_eq!(desk.trace().record(3).unwrap().header().links.len(), 1, "the call that it answers");
    let request = desk.content(1).get("intent").unwrap().get("request").unwrap().clone();
    assert_eq!(request.to_string(), r#"{"model":"m","system":[{"content":"count","role":"system"}]}"#);
    assert!(desk.content(3).get("intent").unwrap().get("request").is_none(), "nothing of it changed");
}

#[test]
fn messages_are_recorded_as_an_import_of_the_conversation_records_them() {
    let mut desk = Desk::new();
    desk.chat(ASKS, CALLS);
    desk.chat(&format!("{ASKS},{CALLS},{BRINGS}"), SAYS);
    let file = format!("[{ASKS},{CALLS},{BRINGS},{SAYS}]");
    let source = &mut std::io::Cursor::new(file.into_bytes());
    let options = dendrer_wire::import::ImportOptions {
        format: dendrer_wire::format::named("openai-chat").unwrap(),
        map: None,
        choice: Default::default(),
        on_gap: dendrer_wire::import::OnGap::Mark,
        name: None,
        kept: Vec::new(),
    };
    let start = Start::new(run_name("imported"));
    let plan = dendrer_wire::import::plan(source, options, start).unwrap();
    let store = desk.repo.writer().unwrap().clone();
    dendrer_wire::import::record(&store, source, &plan, desk.repo.environment(), &mut |_| {}).unwrap();
    let imported = desk.repo.run(&run_name("imported")).unwrap();
    for tick in 1..=4 {
        let mut of_capture = desk.content(tick);
        let mut of_import = imported.record(tick).unwrap().content().clone();
        for content in [&mut of_capture, &mut of_import] {
            let Value::Object(members) = content else { panic!("an object") };
            for name in ["redaction", "unattested", "state_root", "agent_id"] {
                members.remove(name);
            }
            let mut words = members.get("intent").unwrap().as_object().unwrap().clone();
            for name in ["capture", "request"] {
                words.remove(name);
            }
            members.set("intent", Value::Object(words));
        }
        assert_eq!(of_capture, of_import, "tick {tick}");
    }
}

#[test]
fn an_agent_of_its_own_has_another_system_text_or_other_tools() {
    let mut desk = Desk::new();
    desk.chat(&format!(r#"{{"role":"system","content":"lead"}},{ASKS}"#), SAYS);
    desk.chat(&format!(r#"{{"role":"system","content":"check"}},{ASKS}"#), SAYS);
    // A rewind: the same beginning, another continuation.
    let other = r#"{"role":"user","content":"and cars?"}"#;
    desk.chat(&format!(r#"{{"role":"system","content":"lead"}},{ASKS},{SAYS},{other}"#), SAYS);
    desk.chat(&format!(r#"{{"role":"system","content":"lead"}},{ASKS},{SAYS},{ASKS}"#), SAYS);
    // A compaction: nothing of it was there, and it is the agent's.
    desk.chat(&format!(r#"{{"role":"system","content":"lead"}},{other}"#), SAYS);
    assert_eq!(
        desk.shown(),
        [
            r#"user/0 observation.add "how many?""#,
            r#"main/0 plan.update "twelve""#,
            r#"user/0 observation.add "how many?""#,
            r#"sub-1/0 plan.update "twelve""#,
            r#"user/0 observation.add "and cars?""#,
            r#"main/0 plan.update "twelve""#,
            r#"user/1 observation.add "how many?""#,
            r#"main/1 plan.update "twelve""#,
            r#"user/2 observation.add "and cars?""#,
            r#"main/2 plan.update "twelve""#,
        ]
    );
    assert_eq!(desk.tape.tally().agents, 2);
}

#[test]
fn two_answers_to_the_same_messages_are_two_branches() {
    let mut desk = Desk::new();
    let body = format!(r#"{{"model":"m","messages":[{ASKS}]}}"#);
    let (one, two) = (desk.ask(CHAT, &body), desk.ask(CHAT, &body));
    let said =
        |text: &str| format!(r#"{{"choices":[{{"message":{{"role":"assistant","content":"{text}"}}}}]}}"#);
    desk.answer(two, 200, "application/json", &said("b"), Ended::Whole);
    desk.answer(one, 200, "application/json", &said("a"), Ended::Whole);
    assert_eq!(
        desk.shown(),
        [r#"user/0 observation.add "how many?""#, r#"main/0 plan.update "b""#, r#"main/1 plan.update "a""#,]
    );
}

#[test]
fn a_call_that_failed_is_named_by_the_one_that_asks_it_again() {
    let mut desk = Desk::new();
    let body = format!(r#"{{"model":"m","messages":[{ASKS}]}}"#);
    for (status, ended) in [(429, Ended::Whole), (500, Ended::Whole), (200, Ended::Upstream)] {
        let call = desk.ask(CHAT, &body);
        desk.answer(call, status, "application/json", r#"{"error":{"message":"later"}}"#, ended);
    }
    desk.chat(ASKS, SAYS);
    let shown = desk.shown();
    assert_eq!(shown.len(), 5, "{shown:?}");
    let anomaly =
        |tick| desk.content(tick).get("anomalies").unwrap().as_array().unwrap().get(0).unwrap().to_string();
    assert_eq!(anomaly(2), r#"{"ended":"whole","kind":"model_call_failed","retry_of":null,"status":429}"#);
    assert_eq!(anomaly(3), r#"{"ended":"whole","kind":"model_call_failed","retry_of":1,"status":500}"#);
    assert_eq!(anomaly(4), r#"{"ended":"upstream","kind":"model_call_failed","retry_of":2,"status":200}"#);
    assert_eq!(shown[4], r#"main/0 plan.update "twelve""#);
    assert_eq!(desk.tape.tally().failed, 3);
}

/// A stream of events.
fn stream(events: &[&str]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

#[test]
fn streams_are_put_together() {
    let mut desk = Desk::new();
    let chat = stream(&[
        r#"{"id":"s1","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
        r#"{"id":"s1","choices":[{"index":0,"delta":{"content":"let me "}}]}"#,
        r#"{"id":"s1","choices":[{"index":0,"delta":{"content":"see"}}]}"#,
        r#"{"id":"s1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"count","arguments":""}}]}}]}"#,
        r#"{"id":"s1","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"count","arguments":"{\"of\":"}}]}}]}"#,
        r#"{"id":"s1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"of\":1}"}}]}}]}"#,
        r#"{"id":"s1","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"2}"}}]},"finish_reason":"tool_calls"}]}"#,
        r#"{"id":"s1","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}"#,
        "[DONE]",
    ]);
    let call = desk.ask(CHAT, &format!(r#"{{"model":"m","stream":true,"messages":[{ASKS}]}}"#));
    desk.answer(call, 200, "text/event-stream; charset=utf-8", &chat, Ended::Whole);
    let answer = desk.content(2);
    assert_eq!(answer.get("intent").unwrap().get("content"), Some(&Value::from("let me see")));
    let calls = answer.get("action").unwrap().get("calls").unwrap().to_string();
    assert_eq!(
        calls,
        r#"[{"call_id":"a","params":{"of":1},"tool":"count"},{"call_id":"b","params":{"of":2},"tool":"count"}]"#
    );
    assert_eq!(answer.get("metrics").unwrap().get("tokens_used"), Some(&Value::from(10_u64)));

    let messages = stream(&[
        r#"{"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","content":[],"usage":{"input_tokens":10,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"ping"}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"I "}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"count"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t1","name":"count","input":{}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"of\""}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":":3}"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}"#,
        r#"{"type":"message_stop"}"#,
    ]);
    let call =
        desk.ask(MESSAGES, &format!(r#"{{"model":"c","system":"count","stream":true,"messages":[{ASKS}]}}"#));
    desk.answer(call, 200, "text/event-stream", &messages, Ended::Whole);
    let said = desk.content(4);
    assert_eq!(said.get("action").unwrap().get("params").unwrap().to_string(), r#"{"of":3}"#);
    assert_eq!(said.get("metrics").unwrap().get("tokens_used"), Some(&Value::from(15_u64)));

    let responses = stream(&[
        r#"{"type":"response.created","response":{"id":"r1","status":"in_progress","output":[]}}"#,
        r#"{"type":"response.output_text.delta","delta":"tw"}"#,
        r#"{"type":"response.completed","response":{"id":"r1","status":"completed","output":[{"id":"i1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"twelve","annotations":[]}]}],"usage":{"input_tokens":4,"output_tokens":2,"total_tokens":6}}}"#,
    ]);
    let call = desk.ask(RESPONSES, r#"{"model":"m","instructions":"i","stream":true,"input":"how many?"}"#);
    desk.answer(call, 200, "text/event-stream", &responses, Ended::Whole);
    assert_eq!(desk.shown()[5], r#"sub-2/0 plan.update "twelve""#);
}

#[test]
fn thoughts_and_members_that_a_client_leaves_out_or_adds_make_no_branch() {
    let mut desk = Desk::new();
    let thought =
        r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"eA"}"#;
    let said = r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"twelve"}]}"#;
    let asks = r#"{"role":"user","content":"how many?"}"#;
    let answer =
        |id: &str| format!(r#"{{"id":"{id}","output":[{thought},{said}],"usage":{{"total_tokens":6}}}}"#);
    desk.call(RESPONSES, &format!(r#"{{"model":"m","input":[{asks}]}}"#), &answer("r1"));
    // Once without its text, once left out.
    let empty = r#"{"type":"reasoning","summary":[],"encrypted_content":"eA"}"#;
    for (number, list) in
        [format!("{asks},{empty},{said}"), format!("{asks},{said},{asks},{said}")].iter().enumerate()
    {
        let id = format!("r{}", number + 2);
        desk.call(RESPONSES, &format!(r#"{{"model":"m","input":[{list},{asks}]}}"#), &answer(&id));
    }
    let said = [r#"main/0 plan.update -"#, r#"main/0 plan.update "twelve""#];
    let turn = [r#"user/0 observation.add "how many?""#, said[0], said[1]];
    assert_eq!(desk.shown(), [turn, turn, turn].concat());

    let mut desk = Desk::new();
    let calls = r#"{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"count","arguments":"{}"}}]}"#;
    desk.chat(ASKS, calls);
    let parsed = calls.replace(r#""arguments":"{}""#, r#""arguments":"{}","parsed_arguments":{}"#);
    desk.chat(&format!("{ASKS},{parsed},{BRINGS}"), SAYS);
    assert_eq!(desk.shown().len(), 4, "{:?}", desk.shown());
}

#[test]
fn what_a_tool_gets_and_gives_counts_whole() {
    let mut desk = Desk::new();
    let asks = r#"{"role":"user","content":"go"}"#;
    let uses = r#"{"type":"tool_use","id":"t","name":"set","input":{"status":"on"}}"#;
    let answer = format!(r#"{{"id":"m1","role":"assistant","content":[{uses}]}}"#);
    desk.call(MESSAGES, &format!(r#"{{"model":"c","messages":[{asks}]}}"#), &answer);
    let edited = uses.replace("on", "off");
    let other = format!(r#"{{"role":"assistant","content":[{edited}]}}"#);
    let says = r#"{"id":"m2","role":"assistant","content":[{"type":"text","text":"done"}]}"#;
    desk.call(MESSAGES, &format!(r#"{{"model":"c","messages":[{asks},{other}]}}"#), says);
    // It is another call: the request goes on from an edited conversation.
    assert_eq!(
        desk.shown()[2..],
        [r#"main/1 action.request "set""#, r#"main/1 plan.update [{"text":"done","type":"text"}]"#]
    );
}

#[test]
fn a_stream_that_was_cut_off_is_no_answer() {
    let mut desk = Desk::new();
    let chat =
        stream(&[r#"{"id":"s1","choices":[{"index":0,"delta":{"role":"assistant","content":"tw"}}]}"#]);
    for ended in [Ended::Upstream, Ended::Program, Ended::Whole] {
        let call = desk.ask(CHAT, &format!(r#"{{"model":"m","stream":true,"messages":[{ASKS}]}}"#));
        desk.answer(call, 200, "text/event-stream", &chat, ended);
    }
    assert_eq!(desk.tape.tally().failed, 3);
    assert!(desk.shown().iter().all(|line| !line.contains("plan.update")), "{:?}", desk.shown());
}

#[test]
fn items_go_on_from_the_response_that_they_name() {
    let mut desk = Desk::new();
    let response = |id: &str, output: &str| {
        format!(
            r#"{{"id":"{id}","object":"response","status":"completed","output":[{output}],"usage":{{"input_tokens":4,"output_tokens":2,"total_tokens":6}}}}"#
        )
    };
    let asks = r#"{"type":"function_call","id":"fc1","call_id":"c1","name":"count","arguments":"{\"of\":1}","status":"completed"}"#;
    let says = r#"{"type":"message","id":"m1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"twelve","annotations":[]}]}"#;
    desk.call(RESPONSES, r#"{"model":"m","input":"how many?"}"#, &response("r1", asks));
    let output = r#"{"type":"function_call_output","call_id":"c1","output":"12"}"#;
    desk.call(
        RESPONSES,
        &format!(r#"{{"model":"m","previous_response_id":"r1","input":[{output}]}}"#),
        &response("r2", says),
    );
    // The whole list in place of the id, as another client sends it: without ids and statuses.
    let repeated = r#"{"role":"user","content":"how many?"},{"type":"function_call","call_id":"c1","name":"count","arguments":"{\"of\":1}"}"#;
    let said = r#"{"role":"assistant","content":"twelve"},{"role":"user","content":"sure?"}"#;
    desk.call(
        RESPONSES,
        &format!(r#"{{"model":"m","input":[{repeated},{output},{said}]}}"#),
        &response("r3", says.replace("m1", "m2").as_str()),
    );
    assert_eq!(
        desk.shown(),
        [
            r#"user/0 observation.add "how many?""#,
            r#"main/0 action.request "count""#,
            r#"main/0 action.result "count""#,
            r#"main/0 plan.update "twelve""#,
            r#"user/0 observation.add "sure?""#,
            r#"main/0 plan.update "twelve""#,
        ]
    );
}

#[test]
fn exact_bytes_lie_in_the_vault_and_headers_with_keys_nowhere() {
    let mut desk = Desk::new();
    desk.chat(ASKS, SAYS);
    let capture = desk.content(2).get("intent").unwrap().get("capture").unwrap().clone();
    assert!(capture.get("exact").unwrap().get("answer").unwrap().get("$vault").is_some(), "{capture}");
    assert!(capture.get("asked").is_some());
    let exact = desk.repo.vault().unwrap().get(&run_name("r"), "call/1/answer").unwrap();
    let (head, body) = exact.split_at(exact.iter().position(|byte| *byte == b'\n').unwrap());
    assert_eq!(
        String::from_utf8_lossy(head),
        r#"{"ended":"whole","headers":[["Content-Type","application/json"]],"pieces":[75],"status":200}"#
    );
    assert!(body.ends_with(b"}}]}"));
}

#[test]
fn what_no_api_reads_is_an_observation() {
    let mut desk = Desk::new();
    desk.call("/v1/embeddings?key=sk-1234567890abcdef1234", r#"{"input":"x"}"#, r#"{"data":[1,2]}"#);
    assert_eq!(desk.shown(), ["dendrer/0 observation.add -"]);
    let http = desk.content(1).get("intent").unwrap().get("http").unwrap().to_string();
    assert_eq!(
        http,
        r#"{"answer":{"data":[1,2]},"method":"POST","path":"/v1/embeddings","request":{"input":"x"},"status":200}"#
    );
}

#[test]
fn an_answer_is_recorded_if_its_request_cannot_be_read() {
    let mut desk = Desk::new();
    let answer = format!(r#"{{"choices":[{{"message":{SAYS}}}],"usage":{{"total_tokens":9}}}}"#);
    desk.call(CHAT, "no json", &answer);
    assert_eq!(desk.shown(), ["dendrer/ observation.add -", "dendrer/0 observation.add -"]);
    let noted = desk.content(1).get("anomalies").unwrap().to_string();
    assert_eq!(noted, r#"[{"calls":[1],"gap":true,"kind":"capture_gap","why":"no_json"}]"#);
    let words = desk.content(2).get("intent").unwrap().clone();
    let said = r#"{"content":"twelve","role":"assistant","usage":{"total_tokens":9}}"#;
    assert_eq!(words.get("answer").unwrap().to_string(), said);
    // The exact bytes are served again.
    assert!(words.get("capture").unwrap().get("exact").unwrap().get("answer").is_some());
    assert_eq!(desk.tape.tally().gaps, 1);
}

const GEMINI: &str = "/v1beta/models/flash:generateContent";
const GEMINI_STREAM: &str = "/v1beta/models/flash:streamGenerateContent?alt=sse";

/// An answer of Gemini with these parts.
fn content(parts: &str, more: &str) -> String {
    format!(
        r#"{{"candidates":[{{"content":{{"role":"model","parts":[{parts}]}}{more}}}],"usageMetadata":{{"promptTokenCount":4,"candidatesTokenCount":2,"totalTokenCount":6}}}}"#
    )
}

#[test]
fn contents_of_gemini_are_messages_and_calls_without_ids_find_their_results() {
    let mut desk = Desk::new();
    let asks = r#"{"role":"user","parts":[{"text":"how many?"}]}"#;
    let terms = r#""systemInstruction":{"parts":[{"text":"count"}]},"tools":[{"functionDeclarations":[{"name":"count"}]}]"#;
    let calls = r#"{"functionCall":{"name":"count","args":{"of":1}},"thoughtSignature":"a+b/"},{"functionCall":{"name":"count","args":{"of":2}}}"#;
    desk.call(
        GEMINI,
        &format!(r#"{{"contents":[{asks}],{terms}}}"#),
        &content(calls, r#","finishReason":"STOP""#),
    );
    // As a library sends it back: the signature in another alphabet.
    let again = format!(r#"{{"role":"model","parts":[{}]}}"#, calls.replace("a+b/", "a-b_"));
    let brings = r#"{"role":"user","parts":[{"functionResponse":{"name":"count","response":{"result":"12"}}},{"functionResponse":{"name":"count","response":{"result":"13"}}}]}"#;
    desk.call(
        GEMINI,
        &format!(r#"{{"contents":[{asks},{again},{brings}],{terms}}}"#),
        &content(r#"{"text":"25"}"#, r#","finishReason":"STOP""#),
    );
    assert_eq!(
        desk.shown(),
        [
            r#"user/0 observation.add "how many?""#,
            r#"main/0 action.request -"#,
            r#"main/0 action.result "count""#,
            r#"main/0 action.result "count""#,
            r#"main/0 plan.update "25""#,
        ]
    );
    let params =
        [3, 4].map(|tick| desk.content(tick).get("action").unwrap().get("params").unwrap().to_string());
    assert_eq!(params, [r#"{"of":1}"#, r#"{"of":2}"#]);
    let outputs =
        [3, 4].map(|tick| desk.content(tick).get("result").unwrap().get("output").unwrap().to_string());
    assert_eq!(outputs, [r#"{"result":"12"}"#, r#"{"result":"13"}"#]);
    for tick in [3, 4] {
        assert_eq!(desk.content(tick).get("unattested"), Some(&Value::from(true)));
        assert_eq!(desk.trace().record(tick).unwrap().header().links.len(), 1, "the call that it answers");
    }
    assert_eq!(desk.content(5).get("metrics").unwrap().get("tokens_used"), Some(&Value::from(6_u64)));
    let request = desk.content(1).get("intent").unwrap().get("request").unwrap().clone();
    assert_eq!(request.get("model"), Some(&Value::from("flash")), "the path names the model");
    assert_eq!(desk.tape.tally().agents, 1);
}

#[test]
fn a_stream_of_gemini_is_known_again_as_it_was_cut() {
    let mut desk = Desk::new();
    let asks = r#"{"role":"user","parts":[{"text":"how many?"}]}"#;
    let pieces = [
        content(r#"{"text":"let me ","thought":true}"#, ""),
        content(r#"{"text":"see","thought":true}"#, ""),
        content(r#"{"text":"twe"}"#, ""),
        content(r#"{"text":"lve"}"#, r#","finishReason":"STOP""#),
    ];
    let shown: Vec<&str> = pieces.iter().map(String::as_str).collect();
    let call = desk.ask(GEMINI_STREAM, &format!(r#"{{"contents":[{asks}]}}"#));
    desk.answer(call, 200, "text/event-stream", &stream(&shown), Ended::Whole);
    let said = desk.content(2).get("intent").unwrap().get("content").unwrap().to_string();
    assert_eq!(said, r#"[{"text":"let me see","thought":true},{"text":"twelve"}]"#);
    // A chat of the library keeps each piece as a content of its own.
    let cut = [
        r#"{"text":"let me ","thought":true}"#,
        r#"{"text":"see","thought":true}"#,
        r#"{"text":"twe"}"#,
        r#"{"text":"lve"}"#,
    ];
    let each = cut.map(|part| format!(r#"{{"role":"model","parts":[{part}]}}"#)).join(",");
    let sure = r#"{"role":"user","parts":[{"text":"sure?"}]}"#;
    let listed = format!(
        "[{},{}]",
        content(r#"{"text":"qui"}"#, ""),
        content(r#"{"text":"te"}"#, r#","finishReason":"STOP""#)
    );
    desk.call(GEMINI_STREAM, &format!(r#"{{"contents":[{asks},{each},{sure}]}}"#), &listed);
    assert_eq!(desk.shown()[2..], [r#"user/0 observation.add "sure?""#, r#"main/0 plan.update "quite""#]);
    // One that was cut is no answer, and one that was blocked has none.
    let call = desk.ask(GEMINI_STREAM, &format!(r#"{{"contents":[{asks}]}}"#));
    desk.answer(call, 200, "text/event-stream", &stream(&shown[..3]), Ended::Upstream);
    desk.call(
        GEMINI,
        &format!(r#"{{"contents":[{asks}]}}"#),
        r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#,
    );
    assert_eq!(desk.tape.tally().failed, 2);
}

#[test]
fn hostile_bodies_stop_nothing() {
    let mut desk = Desk::new();
    let deep =
        format!(r#"{{"messages":[{{"role":"user","content":{}1{}}}]}}"#, "[".repeat(200), "]".repeat(200));
    for body in [
        "",
        "no json",
        "[]",
        "{\"contents\":[7,{\"parts\":[7,{\"text\":1},{\"text\":\"a\"}]}]}",
        "{\"messages\":7}",
        "{\"messages\":[7,null,{}]}",
        &deep,
        "{\"a\":1,\"a\":2}",
    ] {
        for path in [CHAT, RESPONSES, MESSAGES, GEMINI, GEMINI_STREAM] {
            let call = desk.ask(path, body);
            desk.answer(call, 200, "application/json", body, Ended::Whole);
            let call = desk.ask(path, body);
            desk.answer(
                call,
                200,
                "text/event-stream",
                "data: {\"choices\":[{\"delta\":7}]}\n\ndata: [DONE]\n\n",
                Ended::Whole,
            );
        }
    }
    desk.chat(ASKS, SAYS);
    assert!(desk.shown().last().unwrap().ends_with(r#"plan.update "twelve""#));
    let tally = desk.tape.tally();
    assert!(tally.gaps > 0 && tally.failed > 0, "{tally:?}");
    assert!(json::parse_door(tally.calls.to_string().as_bytes()).is_ok());
}

#[test]
fn a_failure_is_recorded_before_the_answer_to_the_request_that_repeats_it() {
    let mut desk = Desk::new();
    let body = format!(r#"{{"messages":[{ASKS}]}}"#);
    let failing = desk.ask(CHAT, &body);
    // The program asks again at the status, before the body of the failure has come.
    desk.tape.take(PassedCopy::Failing(failing)).unwrap();
    let again = desk.ask(CHAT, &body);
    let said = format!(r#"{{"choices":[{{"message":{SAYS}}}]}}"#);
    desk.answer(again, 200, "application/json", &said, Ended::Whole);
    desk.answer(failing, 429, "application/json", "{}", Ended::Whole);
    let shown = desk.shown();
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert!(shown[1].contains("observation.add -") && shown[2].contains("plan.update"), "{shown:?}");
}

/// Words of a model as a list of parts, names that are repeated, and an id of its own under a known index.
#[test]
fn streams_of_other_makers_are_put_together() {
    let mut desk = Desk::new();
    let event = |delta: &str| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n");
    let streams = [
        [r#"{"role":"assistant","content":[{"type":"text","text":"It is NOT "}]}"#, r#"{"content":"5 CHF"}"#],
        [
            r#"{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"read","arguments":"{\"p\":"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"read","arguments":"\"a\"}"}}]}"#,
        ],
        [
            r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"get_time","arguments":"{}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"b","type":"function","function":{"name":"wipe","arguments":"{}"}}]}"#,
        ],
    ];
    for (at, pieces) in streams.iter().enumerate() {
        let call =
            desk.ask(CHAT, &format!(r#"{{"messages":[{{"role":"user","content":"q{at}"}}],"n":{at}}}"#));
        let body: String = pieces.iter().map(|piece| event(piece)).collect::<String>() + "data: [DONE]\n\n";
        desk.answer(call, 200, "text/event-stream", &body, Ended::Whole);
    }
    let shown = desk.shown().join("\n");
    assert!(shown.contains("It is NOT ") && shown.contains("5 CHF"), "{shown}");
    assert!(shown.contains("\"read\"") && !shown.contains("readread"), "{shown}");
    let calls = desk.content(6).get("action").unwrap().to_string();
    assert!(calls.contains("get_time") && calls.contains("wipe"), "{calls}");
}

#[test]
fn items_that_the_last_event_leaves_out_are_those_that_came_before() {
    let mut desk = Desk::new();
    let ask = |desk: &mut Desk, n: u64| desk.ask(RESPONSES, &format!(r#"{{"input":"q{n}"}}"#));
    let call = ask(&mut desk, 1);
    let item = r#"{"type":"function_call","id":"f","call_id":"c1","name":"delete","arguments":"{\"path\":\"/srv\"}"}"#;
    let last = |status: &str| {
        format!(
            "data: {{\"type\":\"response.{status}\",\"response\":{{\"id\":\"r\",\"status\":\"{status}\",\"output\":[]}}}}\n\n"
        )
    };
    let done =
        format!("data: {{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{item}}}\n\n");
    desk.answer(call, 200, "text/event-stream", &(done + &last("completed")), Ended::Whole);
    let call = ask(&mut desk, 2);
    desk.answer(call, 200, "text/event-stream", &last("failed"), Ended::Whole);
    let shown = desk.shown();
    assert!(shown[1].contains("action.request") && shown[1].contains("delete"), "{shown:?}");
    assert!(shown[3].contains("observation.add -"), "a failed response is a failure: {shown:?}");
}

#[test]
fn a_request_that_comes_before_the_end_of_an_answer_has_it_once() {
    let mut desk = Desk::new();
    let call = desk.ask(CHAT, &format!(r#"{{"messages":[{ASKS}]}}"#));
    // The program has what it needs, and goes on before the API closes the connection.
    let next = desk.ask(CHAT, &format!(r#"{{"messages":[{ASKS},{CALLS},{BRINGS}]}}"#));
    desk.answer(
        call,
        200,
        "application/json",
        &format!(r#"{{"choices":[{{"message":{CALLS}}}]}}"#),
        Ended::Whole,
    );
    desk.answer(
        next,
        200,
        "application/json",
        &format!(r#"{{"choices":[{{"message":{SAYS}}}]}}"#),
        Ended::Whole,
    );
    let shown = desk.shown();
    let types: Vec<&str> = shown.iter().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(types, ["observation.add", "action.request", "action.result", "plan.update"], "{shown:?}");
}

#[test]
fn a_call_that_is_not_answered_when_the_program_ends_has_failed() {
    use dendrer_capture::tape::ProgramEnd;
    let mut desk = Desk::new();
    desk.ask(CHAT, &format!(r#"{{"messages":[{ASKS}]}}"#));
    let end = ProgramEnd { exit: Some(0), signal: None, refused: 0, around: None };
    desk.tape.end(&end).unwrap();
    assert!(desk.content(2).to_string().contains("model_call_failed"), "{:?}", desk.shown());
    assert_eq!(desk.tape.tally().failed, 1);
}
