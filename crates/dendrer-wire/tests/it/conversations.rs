//! Conversations from a small model, written as people's programs write them and in each layout of `docs/import.md`: what is imported
//! agrees with the model, or a note names the place. 100,000 of them: DENDRER_CONVERSATIONS=100000.

use std::collections::BTreeSet;

use dendrer_object::{Record, Value};
use dendrer_wire::import::{Choice, ImportError, ImportOptions};

use crate::{chat, import, shown};

/// Numbers by chance, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, many: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % many
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// How calls are numbered.
#[derive(Clone, Copy, PartialEq)]
enum Ids {
    Unique,
    /// Each agent begins anew with each turn of the user.
    Anew,
    None,
}

struct Call {
    id: Option<String>,
    tool: &'static str,
    params: u64,
    agent: &'static str,
    tick: usize,
    /// Whether its result came.
    is_done: bool,
    /// Whether a result came that may be that of it or of another one.
    is_contested: bool,
}

/// What a tick is to be.
#[derive(Default)]
struct Expected {
    type_name: &'static str,
    agent: Option<&'static str>,
    /// The call that it answers: `Err` if it is to be marked with this kind.
    answers: Option<Result<usize, &'static str>>,
    /// Whether the result says that the call failed; `None` inside if its status is not known.
    failed: Option<Option<bool>>,
    /// Of a message of a model: what it used, as far as it says so.
    tokens: Option<Option<u64>>,
}

/// A conversation: its messages, and what they are to become.
struct Told {
    messages: Vec<String>,
    expected: Vec<Expected>,
    calls: Vec<Call>,
    has_other_kind: bool,
}

const TOOLS: [&str; 3] = ["search", "pay", "wipe"];
const AGENTS: [&str; 3] = ["ann", "bob", "assistant"];

/// What a result says of its call: the members of the message, and whether that is a failure.
fn outcome(dice: &mut Dice, number: u64) -> (String, Option<bool>) {
    let prose = |text: &str| format!(r#""content":{}"#, Value::from(text));
    let (said, failed) = match dice.below(16) {
        0 => (prose("ValueError: no"), Some(true)),
        1 => (format!(r#"{},"status":"error""#, prose("no")), Some(true)),
        2 => (format!(r#"{},"status":"success""#, prose("Error: all is well")), Some(false)),
        3 => (format!(r#"{},"is_error":true"#, prose("no")), Some(true)),
        4 => (format!(r#"{},"isError":false"#, prose("Error: old")), Some(false)),
        5 => (format!(r#"{},"success":false"#, prose("no")), Some(true)),
        6 => (format!(r#"{},"exit_code":2"#, prose("no")), Some(true)),
        7 => (prose(r#"{"status":"error","items":[{"error":"x"}]}"#), Some(false)),
        8 => (prose(r#"{"error":"no such item"}"#), Some(true)),
        9 => (format!(r#"{},"status":"on hold""#, prose("x")), None),
        10 => (format!(r#"{},"error":"no""#, prose("")), Some(true)),
        11 => (prose("Error budget left: 98 %"), Some(false)),
        12 => (
            r#""content":[{"type":"text","text":"Traceback (most recent call last): x"}]"#.to_owned(),
            Some(true),
        ),
        13 => (r#""content":null"#.to_owned(), Some(false)),
        _ => (prose(&format!("done {number}")), Some(false)),
    };
    (said, failed)
}

/// What a message of a model used, in one of the places in which it may say so.
fn usage(dice: &mut Dice) -> (String, u64) {
    let n = 1 + dice.below(500);
    let text = match dice.below(6) {
        0 => format!(r#","usage":{{"total_tokens":{n}}}"#),
        1 => format!(r#","usage":{{"prompt_tokens":{},"completion_tokens":1}}"#, n - 1),
        2 => format!(r#","usage_metadata":{{"input_tokens":{},"output_tokens":1}}"#, n - 1),
        3 => format!(r#","response_metadata":{{"token_usage":{{"total_tokens":{n}}}}}"#),
        4 => format!(r#","token_usage":{{"total_tokens":{n}}}"#),
        _ => format!(r#","total_tokens":{n}"#),
    };
    (text, n)
}

impl Told {
    fn draw(dice: &mut Dice) -> Told {
        let mut told =
            Told { messages: Vec::new(), expected: Vec::new(), calls: Vec::new(), has_other_kind: false };
        let ids = dice.one(&[Ids::Unique, Ids::Unique, Ids::Anew, Ids::Anew, Ids::None]);
        let agents = &AGENTS[..1 + dice.below(3) as usize];
        // How often a message of a model says what it used: never, mostly, always.
        let usage_of_ten = dice.one(&[0, 8, 10]);
        let mut next = [0u64; 3];
        for _ in 0..2 + dice.below(14) {
            match dice.below(10) {
                0 | 1 => {
                    told.push(
                        r#"{"role":"user","content":"go on"}"#.to_owned(),
                        Expected { type_name: "observation.add", agent: Some("user"), ..Expected::default() },
                    );
                    if ids == Ids::Anew {
                        next = [0; 3];
                    }
                }
                2 => {
                    let (agent, used, tokens) = told.speaker(dice, agents, usage_of_ten);
                    let text = format!(r#"{{"role":"assistant","name":"{agent}","content":"well"{used}}}"#);
                    told.push(
                        text,
                        Expected {
                            type_name: "plan.update",
                            agent: Some(agent),
                            tokens: Some(tokens),
                            ..Expected::default()
                        },
                    );
                }
                3..=5 => told.ask(dice, agents, ids, &mut next, usage_of_ten),
                _ => told.answer(dice, ids),
            }
        }
        if dice.below(40) == 0 {
            let at = dice.below(told.messages.len() as u64 + 1) as usize;
            let item = dice.one(&[
                r#"{"type":"function_call","call_id":"x","name":"pay","arguments":"{}"}"#,
                r#"{"type":"reasoning","summary":[]}"#,
                r#"{"span_id":"7","name":"tool"}"#,
            ]);
            told.messages.insert(at, item.to_owned());
            told.has_other_kind = true;
        }
        told
    }

    fn push(&mut self, message: String, expected: Expected) {
        self.messages.push(message);
        self.expected.push(expected);
    }

    fn speaker(
        &self,
        dice: &mut Dice,
        agents: &[&'static str],
        usage_of_ten: u64,
    ) -> (&'static str, String, Option<u64>) {
        let agent = dice.one(agents);
        match dice.below(10) < usage_of_ten {
            true => {
                let (text, tokens) = usage(dice);
                (agent, text, Some(tokens))
            }
            false => (agent, String::new(), None),
        }
    }

    fn ask(
        &mut self,
        dice: &mut Dice,
        agents: &[&'static str],
        ids: Ids,
        next: &mut [u64; 3],
        usage_of_ten: u64,
    ) {
        let (agent, used, tokens) = self.speaker(dice, agents, usage_of_ten);
        let tick = self.messages.len() + 1;
        let at = AGENTS.iter().position(|known| *known == agent).unwrap();
        let mut calls = Vec::new();
        for _ in 0..1 + dice.below(3) {
            let (tool, params) = (dice.one(&TOOLS), dice.below(1000));
            let id = match ids {
                Ids::Unique => Some(format!("c{}", self.calls.len())),
                Ids::Anew => Some(format!("call_{}", next[at])),
                Ids::None => None,
            };
            next[at] += 1;
            let shown = id.as_ref().map(|id| format!(r#""id":"{id}","#)).unwrap_or_default();
            calls.push(match dice.below(3) {
                0 => format!(r#"{{{shown}"function":"{tool}","args":{{"n":{params}}}}}"#),
                _ => format!(r#"{{{shown}"type":"function","function":{{"name":"{tool}","arguments":"{{\"n\":{params}}}"}}}}"#),
            });
            self.calls.push(Call { id, tool, params, agent, tick, is_done: false, is_contested: false });
        }
        let text = format!(
            r#"{{"role":"assistant","name":"{agent}","content":null,"tool_calls":[{}]{used}}}"#,
            calls.join(",")
        );
        self.push(
            text,
            Expected {
                type_name: "action.request",
                agent: Some(agent),
                tokens: Some(tokens),
                ..Expected::default()
            },
        );
    }

    /// A result: of an open call, in any order where ids say which, or once more of one that was answered.
    fn answer(&mut self, dice: &mut Dice, ids: Ids) {
        let open: Vec<usize> = (0..self.calls.len())
            .filter(|at| !self.calls[*at].is_done && !self.calls[*at].is_contested)
            .collect();
        let done: Vec<usize> = (0..self.calls.len()).filter(|at| self.calls[*at].is_done).collect();
        if ids == Ids::Unique && !done.is_empty() && dice.below(8) == 0 {
            let call = &self.calls[dice.one(&done)];
            let text = format!(
                r#"{{"role":"tool","tool_call_id":"{}","content":"once more"}}"#,
                call.id.as_deref().unwrap()
            );
            let expected = Expected {
                type_name: "action.result",
                answers: Some(Err("result_without_call")),
                ..Expected::default()
            };
            return self.push(text, expected);
        }
        if open.is_empty() {
            return;
        }
        let mut at = dice.one(&open);
        let (mut names_tool, mut names_agent) = (dice.below(2) == 0, dice.below(3) == 0);
        if ids == Ids::None {
            // The order says which: the oldest of a tool.
            names_tool = names_tool || open.len() > 1;
            names_agent &= names_tool;
            let call = &self.calls[at];
            let same = |other: &&usize| {
                let other = &self.calls[**other];
                other.tool == call.tool && (!names_agent || other.agent == call.agent)
            };
            at = *open.iter().find(same).unwrap();
        }
        let (said, failed) = outcome(dice, self.calls.len() as u64);
        let call = &self.calls[at];
        let id = call.id.as_ref().map(|id| format!(r#""tool_call_id":"{id}","#)).unwrap_or_default();
        let tool = if names_tool { format!(r#""name":"{}","#, call.tool) } else { String::new() };
        let agent = if names_agent { format!(r#""agent":"{}","#, call.agent) } else { String::new() };
        let text = format!(r#"{{"role":"tool",{id}{tool}{agent}{said}}}"#);
        // Whom it may answer, by what it says.
        let fits = |other: &Call, by_agent: bool, by_tool: bool| {
            other.id == call.id
                && (!by_agent || other.agent == call.agent)
                && (!by_tool || other.tool == call.tool)
        };
        let candidates: Vec<usize> = open
            .iter()
            .copied()
            .filter(|other| call.id.is_none() || fits(&self.calls[*other], names_agent, names_tool))
            .collect();
        let answers =
            if call.id.is_none() || candidates.len() == 1 { Ok(at) } else { Err("result_ambiguous") };
        let agent = answers.is_ok().then_some(call.agent);
        match answers {
            Ok(at) => self.calls[at].is_done = true,
            Err(_) => candidates.iter().for_each(|other| self.calls[*other].is_contested = true),
        }
        self.push(
            text,
            Expected {
                type_name: "action.result",
                agent,
                answers: Some(answers),
                failed: Some(failed),
                tokens: None,
            },
        );
    }
}

/// What lies beside the list.
#[derive(Clone, Copy, PartialEq)]
enum Beside {
    Nothing,
    Answer,
    Copy,
    Several,
}

/// Writes a conversation in one of the layouts; where the list is a member, with something beside it.
fn written(dice: &mut Dice, told: &Told) -> (String, Choice, Beside) {
    let mut messages = told.messages.clone();
    if dice.below(3) == 0 {
        messages.insert(0, r#"{"role":"system","content":"be brief"}"#.to_owned());
    }
    let list = format!("[{}]", messages.join(","));
    let mut choice = Choice::default();
    let mut beside = Beside::Nothing;
    let answer = r#"{"role":"assistant","content":"last words"}"#;
    let text = match dice.below(5) {
        0 => list,
        1 => messages.join("\n"),
        layout => {
            beside =
                dice.one(&[Beside::Nothing, Beside::Nothing, Beside::Answer, Beside::Copy, Beside::Several]);
            let more = match beside {
                Beside::Nothing => r#""model":"small""#.to_owned(),
                Beside::Answer => format!(r#""response":{{"choices":[{{"index":0,"message":{answer}}}]}}"#),
                Beside::Copy => format!(r#""last":{}"#, messages.last().unwrap()),
                Beside::Several => {
                    format!(r#""response":{{"choices":[{{"message":{answer}}},{{"message":{answer}}}]}}"#)
                }
            };
            let run = dice.one(&["messages", "history", "a b"]);
            let run = match dice.below(2) {
                0 => format!(r#"{{"{run}":{list},{more}}}"#),
                _ => format!(r#"{{"request":{{"{run}":{list}}},{more}}}"#),
            };
            match layout {
                2 => run,
                3 => {
                    choice.index = Some(1);
                    format!(r#"[{{"messages":[{answer}]}},{run}]"#)
                }
                _ => {
                    choice.index = Some(0);
                    format!("{run}\n{{\"messages\":[{answer}]}}")
                }
            }
        }
    };
    (text, choice, beside)
}

fn kinds(shown: &Value) -> Vec<String> {
    let notes = shown.get("anomalies").and_then(Value::as_array);
    notes
        .into_iter()
        .flat_map(|notes| notes.iter())
        .map(|note| note.get("kind").unwrap().as_str().unwrap().to_owned())
        .collect()
}

fn check(told: &Told, records: &[Record], beside: Beside, met: &mut BTreeSet<String>) {
    let mut lacks = false;
    let answer = Expected {
        type_name: "plan.update",
        agent: Some("assistant"),
        tokens: Some(None),
        ..Expected::default()
    };
    let more = (beside == Beside::Answer).then_some(&answer);
    let expected: Vec<&Expected> = told.expected.iter().chain(more).collect();
    assert_eq!(records.len() - 1, expected.len(), "one message is one tick");
    for (tick, expected) in (1..).zip(&expected) {
        let shown = shown(records, tick);
        let (kinds, get) = (kinds(&shown), |name: &str| shown.get(name));
        let context = format!("tick {tick}: {shown}");
        met.extend(kinds.iter().cloned());
        assert_eq!(get("type").unwrap().as_str(), Some(expected.type_name), "{context}");
        if let Some(agent) = expected.agent {
            assert_eq!(get("agent_id").unwrap().as_str(), Some(agent), "{context}");
        }
        match expected.answers {
            Some(Ok(at)) => {
                let call = &told.calls[at];
                assert_eq!(get("caused_by").and_then(Value::as_u64), Some(call.tick as u64), "{context}");
                let action = get("action").unwrap();
                assert_eq!(
                    action.get("params").unwrap().to_string(),
                    format!(r#"{{"n":{}}}"#, call.params),
                    "{context}"
                );
                assert_eq!(action.get("tool").and_then(Value::as_str), Some(call.tool), "{context}");
            }
            Some(Err(kind)) => {
                assert!(kinds.iter().any(|found| found == kind), "{kind} {context}");
                assert_eq!(get("caused_by"), None, "{context}");
                assert_eq!(get("action").and_then(|action| action.get("params")), None, "{context}");
            }
            None => {}
        }
        if let Some(failed) = expected.failed {
            let status = get("result").unwrap().get("status").and_then(Value::as_str);
            assert_eq!(status, failed.map(|failed| if failed { "error" } else { "ok" }), "{context}");
            assert_eq!(kinds.iter().any(|kind| kind == "status_unknown"), failed.is_none(), "{context}");
        }
        if let Some(tokens) = expected.tokens {
            let found = get("metrics").and_then(|metrics| metrics.get("tokens_used"));
            match tokens {
                Some(tokens) => assert_eq!(found.and_then(Value::as_u64), Some(tokens), "{context}"),
                None => assert_eq!(found, (!lacks).then_some(&Value::Null), "{context}"),
            }
            lacks |= tokens.is_none();
        }
        let of_tick = || told.calls.iter().filter(|call| call.tick == tick);
        let open = of_tick().filter(|call| !call.is_done && !call.is_contested).count();
        assert_eq!(kinds.iter().filter(|kind| *kind == "call_without_result").count(), open, "{context}");
        let contested = of_tick().filter(|call| call.is_contested).count();
        assert_eq!(kinds.iter().filter(|kind| *kind == "call_contested").count(), contested, "{context}");
        let is_left_out = beside == Beside::Several && tick == expected_len(told, beside);
        assert_eq!(kinds.iter().any(|kind| kind == "message_outside"), is_left_out, "{context}");
    }
}

fn expected_len(told: &Told, beside: Beside) -> usize {
    told.expected.len() + usize::from(beside == Beside::Answer)
}

#[test]
fn what_is_imported_is_what_was_said_or_a_note_names_the_place() {
    let many: u64 = std::env::var("DENDRER_CONVERSATIONS").ok().map_or(3000, |text| text.parse().unwrap());
    let mut met = BTreeSet::new();
    for seed in 0..many {
        let mut dice = Dice(seed);
        let told = Told::draw(&mut dice);
        if told.expected.is_empty() {
            continue;
        }
        let (text, choice, beside) = written(&mut dice, &told);
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            match import(text.as_bytes(), ImportOptions { choice: choice.clone(), ..chat() }) {
                Err(ImportError::OtherKind { .. }) => assert!(told.has_other_kind),
                // A list of which too little is a message is none.
                Err(error) => assert!(told.has_other_kind && told.messages.len() < 3, "{error}"),
                Ok((_, records)) => {
                    assert!(!told.has_other_kind, "an item of another kind was passed over");
                    check(&told, &records, beside, &mut met);
                }
            }
        }));
        assert!(found.is_ok(), "conversation {seed}\n{text}");
    }
    let all = [
        "call_contested",
        "call_id_repeated",
        "call_without_result",
        "message_outside",
        "result_ambiguous",
        "result_without_call",
        "status_unknown",
    ];
    assert!(many < 1000 || met.iter().eq(all.iter()), "{met:?}");
}
