//! Logs of Inspect AI: what its files become, what events share, and archives and logs that are not sound.
//!
//! `fixtures/sums.eval` was written by Inspect AI 0.3.285 with its model `mockllm/model`; the other logs are made here.

use std::fmt::Write as _;
use std::io::Cursor;
use std::time::{Duration, Instant};

use dendrer_object::json::parse_door;
use dendrer_object::{Record, Value};
use dendrer_wire::format;
use dendrer_wire::import::{ImportError, NoteKind};

use crate::spans::{indexed, line, tokens};
use crate::{import, of};

const SUMS: &[u8] = include_bytes!("../fixtures/sums.eval");

/// The words of a result that shows what came of a call, and nothing of the logs' long prompt.
fn short(lines: &[String]) -> Vec<String> {
    lines.iter().map(|line| line.chars().take(70).collect()).collect()
}

fn lines(records: &[Record]) -> Vec<String> {
    (1..records.len()).map(|tick| line(records, tick)).collect()
}

/// The state after all records.
fn state(records: &[Record]) -> Value {
    let mut state = Value::object();
    for record in &records[1..] {
        state = record.delta().unwrap_or_default().apply(&state).unwrap();
    }
    state
}

fn at(value: &Value, path: &[&str]) -> Value {
    path.iter().try_fold(value, |value, name| value.get(name)).cloned().unwrap_or(Value::Null)
}

#[test]
fn a_log_of_the_program_is_a_run_for_each_epoch() {
    assert_eq!(format::of_source(&mut Cursor::new(SUMS), false).unwrap().name, "inspect");
    let error = import(SUMS, of("inspect")).unwrap_err();
    assert_eq!((error.code().as_str(), error.to_string().as_str()), ("E0212", "2 samples are in it"));
    assert_eq!(error.place(), [("run", "0  one_epoch_1\n1  one_epoch_2".to_owned())]);
    for epoch in 0..2 {
        let (plan, records) = import(SUMS, indexed("inspect", epoch)).unwrap();
        let found = lines(&records);
        let expected = [
            r#"observation.add environment "init""#,
            r#"observation.add environment "sample_init""#,
            r#"observation.add environment "solvers""#,
            r#"observation.add environment "react""#,
            r#"observation.add adder "adder""#,
            r#"observation.add system "You add.\n\n\nYou are a helpful assistant a"#,
            r#"observation.add user "What is 1+2? word word word word word wor"#,
            r#"action.request adder "tool call for tool add" add({"x":1,"y":2}"#,
            r#"observation.add adder "store""#,
            r#"action.result adder add({"x":1,"y":2})#for_tool_call_"#,
            r#"action.request adder "tool call for tool fail" fail({"why":"lat"#,
            r#"action.result adder fail({"why":"later"})#for_tool_call_"#,
            r#"plan.update adder "thinking" t23"#,
            r#"observation.add user "\nPlease proceed to the next step using y"#,
            r#"action.request adder "tool call for tool submit"#,
            r#"action.result adder submit({"answer":"3"})#for_tool_call_"#,
            r#"observation.add adder "store""#,
            r#"observation.add environment "state""#,
            r#"observation.add environment "store""#,
            r#"observation.add environment "store""#,
            r#"observation.add environment "scorers""#,
            r#"observation.add environment "includes""#,
            r#"observation.add environment "score""#,
        ];
        let all = short(&found);
        assert!(all.iter().zip(expected).all(|(found, wanted)| found.starts_with(wanted)), "{all:#?}");
        assert_eq!(found.len(), expected.len());
        assert!(found[9].ends_with(r#" <-8 = "3" ok"#), "{}", found[9]);
        assert!(
            found[11].ends_with(r#" = "" error {"message":"no: later","type":"unknown"}"#),
            "{}",
            found[11]
        );
        assert_eq!((plan.tally.gaps(), plan.tally.calls, plan.tally.paired, plan.tally.errors), (0, 3, 3, 1));
        assert_eq!(tokens(&records), Some(15 + 15 + 23 + 15));
        // What the program itself says at the end is what its events come to.
        let meta = records[0].content().get("meta").unwrap().clone();
        let state = state(&records);
        assert_eq!(at(&state, &["store"]), at(&meta, &["store"]));
        let said = |value: &Value| {
            let messages = value.as_array().unwrap().clone();
            messages.iter().map(|one| at(one, &["content"])).collect::<Vec<_>>()
        };
        assert_eq!(said(&at(&state, &["task", "messages"])), said(&at(&meta, &["messages"])));
        assert_eq!(at(&meta, &["epoch"]), Value::from(epoch + 1));
        assert_eq!(at(&meta, &["log", "eval", "task"]), Value::from("sums"));
        assert!(records[1..].iter().all(|record| !record.content().to_string().contains("\"attachment://")));
    }
}

/// A log in JSON with one sample.
fn log(sample: &str) -> String {
    format!(
        r#"{{"version":2,"status":"success","eval":{{"task":"t","created":"2026-01-01","model":"m"}},"samples":[{sample}]}}"#
    )
}

fn sample(events: &[&str], more: &str) -> String {
    let events: Vec<String> = (0..)
        .zip(events)
        .map(|(at, event)| {
            event.replacen('{', &format!(r#"{{"uuid":"e{at}","timestamp":"2026-01-01T00:00:00Z","#), 1)
        })
        .collect();
    format!(r#"{{"id":1,"epoch":1,"input":"q","target":"a","events":[{}]{more}}}"#, events.join(","))
}

fn check(events: &[&str], more: &str, expected: &[&str]) -> Vec<Record> {
    let source = log(&sample(events, more));
    assert_eq!(format::of_source(&mut Cursor::new(source.as_bytes()), false).unwrap().name, "inspect");
    let (_, records) = import(source.as_bytes(), of("inspect")).unwrap();
    let found = lines(&records);
    assert_eq!(found, expected, "{}", found.join("\n"));
    records
}

const ASK: &str = r#"{"event":"model","model":"m","input":[],"input_refs":[[0,1]],"output":{"choices":[{"message":{"role":"assistant","id":"a1","content":"attachment://x1","tool_calls":[{"id":"c1","function":"pay","arguments":{"n":1},"type":"function"}]},"stop_reason":"tool_calls"}],"usage":{"input_tokens":4,"output_tokens":1,"total_tokens":9,"input_tokens_cache_read":4,"total_cost":0.5}}}"#;
const POOL: &str = r#","attachments":{"x1":"I pay.","x2":"Buy."},"events_data":{"messages":[{"role":"user","content":"tc://x2"}],"calls":[]}"#;

#[test]
fn shared_texts_and_messages_are_resolved() {
    let records = check(
        &[ASK],
        POOL,
        &[
            r#"observation.add user "Buy.""#,
            r#"action.request assistant "I pay." pay({"n":1})#c1 t9 $0.5 !call_without_result"#,
        ],
    );
    let meta = records[0].content().get("meta").unwrap().clone();
    assert!(meta.get("attachments").is_none() && meta.get("events_data").is_none(), "{meta}");
    // What the sample does not have is named.
    let without = POOL.replace("\"x1\"", "\"x9\"").replace(r#"[{"role":"user","content":"tc://x2"}]"#, "[]");
    let records = check(
        &[ASK],
        &without,
        &[
            r#"action.request assistant "attachment://x1" pay({"n":1})#c1 t9 $0.5 !not_read[calls,failures] !not_read[calls,failures] !call_without_result"#,
        ],
    );
    let meta = records[0].content().get("meta").unwrap().clone();
    assert_eq!(at(&meta, &["attachments", "x9"]), Value::from("I pay."));
}

#[test]
fn calls_agents_and_failures_are_those_of_the_events() {
    let tool = |more: &str| {
        format!(
            r#"{{"event":"tool","span_id":"s1","id":"c1","function":"pay","arguments":{{"n":1}},{more}}}"#
        )
    };
    let begin = r#"{"event":"span_begin","span_id":"s1","id":"s1","type":"agent","name":"Clerk"}"#;
    let ask = ASK.replacen("\"event\"", "\"span_id\":\"s1\",\"event\"", 1);
    let common = [
        r#"observation.add Clerk "Clerk""#,
        r#"observation.add user "Buy.""#,
        r#"action.request Clerk "I pay." pay({"n":1})#c1 t9 $0.5"#,
    ];
    for (more, expected) in [
        (r#""result":"ok""#, r#"action.result Clerk pay({"n":1})#c1 <-3 = "ok" ok"#),
        (
            r#""result":"Error: no","failed":null"#,
            r#"action.result Clerk pay({"n":1})#c1 <-3 = "Error: no" ok"#,
        ),
        (r#""result":7,"failed":true"#, r#"action.result Clerk pay({"n":1})#c1 <-3 = 7 error"#),
        (
            r#""result":"","error":{"type":"timeout","message":"late"}"#,
            r#"action.result Clerk pay({"n":1})#c1 <-3 = "" error {"message":"late","type":"timeout"}"#,
        ),
    ] {
        check(&[begin, &ask, &tool(more)], POOL, &[&common[..], &[expected]].concat());
    }
    // A call that had not ended has no result; without a model that asked for it, it may be a call.
    let pending = tool(r#""result":"","pending":true"#);
    let open = r#"action.request Clerk "I pay." pay({"n":1})#c1 t9 $0.5 !call_without_result"#;
    check(
        &[begin, &ask, &pending],
        POOL,
        &[&common[..2], &[open, r#"observation.add Clerk "tool""#]].concat(),
    );
    let named = r#"observation.add Clerk "tool" !not_read[calls,failures]"#;
    check(&[begin, &pending], "", &[common[0], named]);
}

#[test]
fn an_answer_of_a_cache_costs_nothing_and_a_role_speaks() {
    let cached =
        ASK.replacen("\"event\"", "\"cache\":\"read\",\"role\":\"grader\",\"event\"", 1).replace("c1", "c2");
    let without = |event: &str| {
        let (before, rest) = event.split_once(",\"tool_calls\":").unwrap();
        format!("{before}{}", rest.split_once("\"function\"}]").unwrap().1)
            .replace(r#""tool_calls""#, r#""stop""#)
    };
    let (one, two) = (without(ASK), without(&cached.replace("c2", "c1")));
    let records = check(
        &[&one, &two],
        POOL,
        &[
            r#"observation.add user "Buy.""#,
            r#"plan.update assistant "I pay." t9 $0.5"#,
            r#"plan.update grader "I pay." t0"#,
        ],
    );
    assert_eq!(tokens(&records), Some(9));
}

#[test]
fn a_call_that_a_server_answered_is_a_call_and_its_result() {
    let event = r#"{"event":"model","input":[{"role":"user","content":"q"}],"output":{"choices":[{"message":{"role":"assistant","content":[{"type":"text","text":"So."},{"type":"tool_use","tool_type":"web_search","id":"w1","name":"search","arguments":"{\"q\":1}","result":"","error":"down"}]}}],"usage":{"total_tokens":3}}}"#;
    check(
        &[event],
        "",
        &[
            r#"observation.add user "q""#,
            r#"action.request assistant "So." search({"q":1})#w1 t3"#,
            r#"action.result assistant search({"q":1})#w1 <-2 = "" error "down""#,
        ],
    );
}

#[test]
fn a_patch_that_does_not_fit_makes_its_place_unknown() {
    let events = [
        r#"{"event":"sample_init","sample":{},"state":{"messages":[],"store":{"n":1}}}"#,
        r#"{"event":"store","changes":[{"op":"replace","path":"/n","value":2,"replaced":1}]}"#,
        r#"{"event":"store","changes":[{"op":"remove","path":"/none"}]}"#,
    ];
    let source = log(&sample(&events, ""));
    let (_, records) = import(source.as_bytes(), of("inspect")).unwrap();
    assert_eq!(at(&state(&records[..3]), &["store", "n"]), Value::from(2u64));
    let last = records[3].content().to_string();
    assert!(last.contains("reducer_error") && last.contains("delta_no_number"), "{last}");
    let unknown = state(&records).to_string();
    assert!(unknown.contains("/store"), "{unknown}");
}

#[test]
fn a_branch_is_a_fork_at_its_anchor() {
    let say = |span: &str, id: &str, said: &[&str]| {
        let given: Vec<String> = said[..said.len() - 1]
            .iter()
            .map(|text| format!(r#"{{"role":"user","content":"{text}"}}"#))
            .collect();
        format!(
            r#"{{"event":"model","span_id":"{span}","input":[{}],"output":{{"choices":[{{"message":{{"role":"assistant","id":"{id}","content":"{}"}}}}],"usage":{{"total_tokens":1}}}}}}"#,
            given.join(","),
            said[said.len() - 1]
        )
    };
    let (one, two, three) =
        (say("s", "m1", &["q", "a"]), say("s", "m2", &["q", "p", "b"]), say("b", "m3", &["q", "r", "c"]));
    let events = [
        r#"{"event":"span_begin","span_id":"s","id":"s","type":"agent","name":"A"}"#,
        &one,
        r#"{"event":"anchor","span_id":"s","anchor_id":"x"}"#,
        &two,
        r#"{"event":"span_begin","span_id":"b","id":"b","parent_id":"s","type":"branch","name":"other"}"#,
        r#"{"event":"branch","span_id":"b","from_anchor":"x"}"#,
        &three,
        r#"{"event":"span_end","span_id":"b","id":"b"}"#,
        r#"{"event":"info","span_id":"s","data":"after"}"#,
    ];
    let source = log(&sample(&events, ""));
    let (plan, records) = import(source.as_bytes(), of("inspect")).unwrap();
    assert_eq!(plan.branches(), 1);
    assert_eq!(
        lines(&records),
        [
            r#"observation.add A "A""#,
            r#"observation.add user "q""#,
            r#"plan.update A "a" t1"#,
            r#"observation.add A "anchor""#,
            r#"observation.add user "p""#,
            r#"plan.update A "b" t1"#,
            r#"observation.add A "info""#,
        ]
    );
    // The newest branch is the run.
    let lost = log(&sample(&events[..8], "")).replace(r#""from_anchor":"x""#, r#""from_anchor":"y""#);
    let (plan, _) = import(lost.as_bytes(), of("inspect")).unwrap();
    assert_eq!(plan.tally.notes.get(&NoteKind::ParentMissing), Some(&1), "{:?}", plan.tally.notes);
}

#[test]
fn a_member_in_no_table_that_tells_is_named() {
    let score = r#"{"event":"score","score":{"value":1},"model_usage":{"m":{"total_tokens":3}},"invoked_tools":[{"name":"f","arguments":{}}]}"#;
    let more = r#","error_retries":[{"message":"m","events":[{"event":"model"}]}]"#;
    check(
        &[score],
        more,
        &[r#"observation.add environment "score" !not_read[calls] !not_read[calls,failures,usage]"#],
    );
    let event = ASK.replace("\"usage\"", "\"hidden_tokens\":7,\"usage\"");
    let source = log(&sample(&[&event], POOL));
    let (plan, _) = import(source.as_bytes(), of("inspect")).unwrap();
    let place = &plan.tally.places["output/hidden_tokens"];
    assert_eq!((place.not_read, place.may), (1, &["usage"][..]));
}

#[test]
fn a_sample_without_events_is_its_messages() {
    let source = log(
        r#"{"id":1,"epoch":1,"input":"q","target":"a","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"","tool_calls":[{"id":"c","function":"f","arguments":{},"type":"function"}]},{"role":"tool","content":"attachment://x","tool_call_id":"c","function":"f","error":{"type":"unknown","message":"no"}}],"events":[],"attachments":{"x":"late"}}"#,
    );
    let (_, records) = import(source.as_bytes(), of("inspect")).unwrap();
    assert_eq!(
        lines(&records),
        [
            r#"observation.add user "q""#,
            r#"action.request assistant "" f({})#c"#,
            r#"action.result assistant f({})#c <-2 = "late" error {"message":"no","type":"unknown"}"#,
        ]
    );
}

/// Writes archives as programs do, and as they should not.
#[derive(Default)]
struct Zip {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    count: u16,
}

impl Zip {
    /// Adds a member: its name, the method, the flags, the bytes that are stored, and those that they stand for.
    fn add(&mut self, name: &str, method: u16, flags: u16, stored: &[u8], plain: &[u8]) {
        let mut crc = u32::MAX;
        for byte in plain {
            crc ^= u32::from(*byte);
            for _ in 0..8 {
                crc = (crc >> 1) ^ (0xedb8_8320 & 0u32.wrapping_sub(crc & 1));
            }
        }
        let at = self.bytes.len() as u32;
        let mut about = Vec::new();
        for part in [20, flags, method, 0, 0] {
            about.extend_from_slice(&u16::to_le_bytes(part));
        }
        for part in [!crc, stored.len() as u32, plain.len() as u32] {
            about.extend_from_slice(&u32::to_le_bytes(part));
        }
        about.extend_from_slice(&u16::to_le_bytes(name.len() as u16));
        about.extend_from_slice(&u16::to_le_bytes(0));
        self.bytes.extend_from_slice(b"PK\x03\x04");
        self.bytes.extend_from_slice(&about);
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.extend_from_slice(stored);
        self.directory.extend_from_slice(b"PK\x01\x02\x14\x00");
        self.directory.extend_from_slice(&about);
        self.directory.extend_from_slice(&[0; 10]);
        self.directory.extend_from_slice(&at.to_le_bytes());
        self.directory.extend_from_slice(name.as_bytes());
        self.count += 1;
    }

    fn stored(&mut self, name: &str, text: &str) {
        self.add(name, 0, 0, text.as_bytes(), text.as_bytes());
    }

    fn end(self) -> Vec<u8> {
        let (mut bytes, at) = (self.bytes, 0);
        let begin = bytes.len() as u32;
        bytes.extend_from_slice(&self.directory);
        bytes.extend_from_slice(b"PK\x05\x06");
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&self.count.to_le_bytes());
        bytes.extend_from_slice(&self.count.to_le_bytes());
        bytes.extend_from_slice(&(self.directory.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&begin.to_le_bytes());
        bytes.extend_from_slice(&u16::to_le_bytes(at));
        bytes
    }
}

const HEADER: &str = r#"{"version":2,"status":"success","eval":{"task":"t","created":"x"}}"#;

/// An archive with one sample, and what else is added to it.
fn archive(sample: &str, more: impl FnOnce(&mut Zip)) -> Vec<u8> {
    let mut zip = Zip::default();
    zip.stored("header.json", HEADER);
    zip.stored("samples/1_epoch_1.json", sample);
    more(&mut zip);
    zip.end()
}

/// A Zstandard frame of blocks that are not compressed, or that repeat one byte.
fn frame(blocks: &[(&[u8], u32)]) -> Vec<u8> {
    let mut bytes = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58];
    for (index, (block, times)) in blocks.iter().enumerate() {
        let is_last = u32::from(index + 1 == blocks.len());
        let header = if *times == 1 { (block.len() as u32) << 3 } else { (*times << 3) | 2 };
        bytes.extend_from_slice(&(header | is_last).to_le_bytes()[..3]);
        bytes.extend_from_slice(block);
    }
    bytes
}

#[test]
fn members_are_stored_deflated_or_several_frames() {
    let text = sample(&[r#"{"event":"info","data":1}"#], "");
    let bytes = text.as_bytes();
    let frames = [frame(&[(&bytes[..9], 1), (&bytes[9..20], 1)]), frame(&[(&bytes[20..], 1)])].concat();
    // One block that is stored: a header, its length twice, and the bytes.
    let size = bytes.len() as u16;
    let deflated = [&[1][..], &size.to_le_bytes(), &(!size).to_le_bytes(), bytes].concat();
    for (method, stored) in [(0, bytes.to_vec()), (8, deflated), (93, frames)] {
        let mut zip = Zip::default();
        zip.stored("_journal/start.json", HEADER);
        zip.add("samples/1_epoch_1.json", method, 0, &stored, bytes);
        let source = zip.end();
        let (_, records) = import(&source, of("inspect")).unwrap();
        assert_eq!(lines(&records), [r#"observation.add environment "info""#], "{method}");
    }
}

#[test]
fn archives_that_are_not_sound_are_refused() {
    let text = sample(&[r#"{"event":"info","data":1}"#], "");
    let sound = archive(&text, |zip| zip.stored("../../etc/passwd", "x"));
    let (_, records) = import(&sound, of("inspect")).unwrap();
    let meta = records[0].content().get("meta").unwrap().clone();
    assert_eq!(at(&meta, &["log", "other_files"]).to_string(), r#"["../../etc/passwd"]"#);
    let refused = |bytes: &[u8], code: &str| {
        let error = import(bytes, of("inspect")).unwrap_err();
        assert_eq!(error.code().as_str(), code, "{error}");
    };
    refused(&archive(&text, |zip| zip.stored("samples/1_epoch_1.json", &text)), "E0202");
    refused(&archive(&text, |zip| zip.add("x", 0, 1, b"x", b"x")), "E0203");
    refused(&archive(&text, |zip| zip.add("samples/2_epoch_1.json", 14, 0, b"x", b"x")), "E0212");
    refused(&archive("{}", |_| ()).replace_method(14), "E0203");
    refused(&archive(&text, |zip| zip.directory[42..46].copy_from_slice(&[46, 0, 0, 0])), "E0201");
    // Another text than the one of its checksum, or of another length.
    let mut wrong = archive(&text, |_| ());
    let place = wrong.windows(4).position(|window| window == b"info").unwrap();
    wrong[place] = b'x';
    refused(&wrong, "E0201");
    for end in (4..sound.len()).step_by(7) {
        let error = import(&sound[..end], of("inspect")).unwrap_err();
        assert_eq!(error.code().as_str(), "E0201", "{end}: {error}");
    }
    // A byte changed anywhere is an error or another name, and never a panic.
    for place in 0..sound.len() {
        let mut changed = sound.clone();
        changed[place] ^= 0x41;
        let _ = import(&changed, of("inspect"));
    }
}

trait Changed {
    fn replace_method(self, method: u8) -> Vec<u8>;
}

impl Changed for Vec<u8> {
    /// Changes the method of the second member in the directory.
    fn replace_method(mut self, method: u8) -> Vec<u8> {
        let heads: Vec<usize> =
            (0..self.len() - 4).filter(|at| self[*at..].starts_with(b"PK\x01\x02")).collect();
        self[heads[1] + 10] = method;
        self
    }
}

#[test]
fn a_bomb_is_refused_before_it_is_held() {
    // 128 KiB of blanks from four bytes.
    let blocks = vec![(&b" "[..], 128u32 << 10); 1 << 10];
    let bomb = frame(&blocks);
    let mut zip = Zip::default();
    zip.stored("header.json", HEADER);
    zip.add("samples/1_epoch_1.json", 93, 0, &bomb, b"");
    // The directory says so, too.
    let at = 46 + "header.json".len() + 24;
    zip.directory[at..at + 4].copy_from_slice(&(128u32 << 20).to_le_bytes());
    let error = import(&zip.end(), of("inspect")).unwrap_err();
    assert_eq!(error.code().as_str(), "E0205", "{error}");
}

#[test]
fn references_that_grow_without_bound_are_refused() {
    let start = Instant::now();
    let refused = |events: String, more: &str| {
        let source = log(&format!(r#"{{"id":1,"epoch":1,"events":[{events}]{more}}}"#));
        let error = import(source.as_bytes(), of("inspect")).unwrap_err();
        assert_eq!(error.code().as_str(), "E0205", "{error}");
    };
    // Attachments, messages, and lists that grow at their front.
    let long = format!(r#","attachments":{{"x":"{}"}}"#, "y".repeat(100_000));
    let event = r#"{"event":"info","data":"attachment://x"}"#;
    refused(vec![event; 20_000].join(","), &long);
    let pool: Vec<String> = (0..1000).map(|n| format!(r#"{{"role":"user","content":"{n}"}}"#)).collect();
    let more = format!(r#","events_data":{{"messages":[{}],"calls":[]}}"#, pool.join(","));
    let refs = vec!["[0,1000]"; 10_000].join(",");
    refused(format!(r#"{{"event":"model","input":[],"input_refs":[{refs}],"output":{{}}}}"#), &more);
    let items = vec!["0"; 100_000].join(",");
    let mut changes = format!(r#"{{"op":"add","path":"/l","value":[{items}]}}"#);
    for _ in 0..3000 {
        changes.push_str(r#",{"op":"add","path":"/l/0","value":1}"#);
    }
    refused(format!(r#"{{"event":"store","changes":[{changes}]}}"#), "");
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

#[test]
fn a_damaged_log_is_an_error_or_a_run() {
    let events = [
        r#"{"event":"span_begin","span_id":"s","id":"s","type":"agent","name":"A"}"#,
        ASK,
        r#"{"event":"span_begin","span_id":"t","id":"t","parent_id":"s","type":"tool","name":"pay"}"#,
        r#"{"event":"tool","span_id":"s","id":"c1","function":"pay","arguments":{"n":1},"result":"ok"}"#,
        r#"{"event":"store","span_id":"t","changes":[{"op":"add","path":"/n","value":1}]}"#,
        r#"{"event":"span_end","span_id":"t","id":"t"}"#,
        r#"{"event":"branch","span_id":"s","from_anchor":"x"}"#,
    ];
    let source = log(&sample(&events, POOL));
    for end in (1..source.len()).step_by(17) {
        let error = import(&source.as_bytes()[..end], of("inspect")).unwrap_err();
        assert_eq!(error.code().as_str(), "E0201", "{end}: {error}");
    }
    let value = parse_door(source.as_bytes()).unwrap();
    let mut count = 0;
    for other in ["null", "7", "\"x\"", "[[1]]", "{\"a\":[null]}"] {
        let other = parse_door(other.as_bytes()).unwrap();
        for at in 0..220 {
            let Some(changed) = crate::spans::changed(&value, &mut at.clone(), &other) else { break };
            count += 1;
            if let Err(error) = import(changed.to_string().as_bytes(), of("inspect")) {
                assert!(!matches!(error, ImportError::Repository(_)), "{changed}: {error}");
            }
        }
    }
    assert!(count > 500, "{count}");
}

#[test]
fn a_long_conversation_takes_time_in_proportion() {
    let turns = 1_500;
    let (mut events, mut pool) = (String::new(), String::new());
    for turn in 0..turns {
        write!(pool, r#"{{"role":"user","content":"question {turn}"}},{{"role":"assistant","content":"answer {turn}"}},"#).unwrap();
        write!(
            events,
            r#"{{"uuid":"u{turn}","event":"model","input":[],"input_refs":[[0,{}]],"output":{{"choices":[{{"message":{{"role":"assistant","id":"m{turn}","content":"answer {turn}"}}}}],"usage":{{"total_tokens":1}}}}}},"#,
            2 * turn + 1
        )
        .unwrap();
    }
    let source = log(&format!(
        r#"{{"id":1,"epoch":1,"events":[{}],"events_data":{{"messages":[{}]}}}}"#,
        events.trim_end_matches(','),
        pool.trim_end_matches(',')
    ));
    let plan = crate::spans::large("inspect", &source);
    assert_eq!(plan.tally.ticks, 2 * turns);
}
