//! Conversations from a small model, written as programs write them in each format: what is imported agrees with the model, or a
//! note names the place. More of them: DENDRER_CONVERSATIONS=20000.

mod additions;
mod ai_sdk;
mod anthropic;
mod chat;
mod claude_code;
mod codex;
mod facts;
mod hostile;
mod langfuse;
mod langsmith;
mod model;
mod otlp;
mod responses;
mod traces;

use std::collections::BTreeSet;
use std::io::Cursor;
use std::ops::ControlFlow;

use dendrer::Trace;
use dendrer::kernel::step::Start;
use dendrer::recorder::{Environment, Fixed};
use dendrer_object::{Record, Value};
use dendrer_testkit::memory;
use dendrer_wire::import::{self, Choice, ImportError, ImportOptions};

use self::facts::Facts;
use self::model::{Can, Dice, Model};
use crate::of;

/// A conversation in a format, and what it is to become.
pub(crate) struct Written {
    format: &'static str,
    pub(crate) text: String,
    choice: Choice,
    main: Facts,
    /// The branches but for the main one, oldest first.
    branches: Vec<Facts>,
    /// Whether it has an item that is refused, and whether it may also be no trace at all.
    may_fail: Option<bool>,
}

impl Written {
    fn new(format: &'static str, text: String) -> Written {
        let (choice, main, branches) = (Choice::default(), Facts::default(), Vec::new());
        Written { format, text, choice, main, branches, may_fail: None }
    }

    pub(crate) fn options(&self) -> ImportOptions {
        ImportOptions { choice: self.choice.clone(), ..of(self.format) }
    }

    /// Imports it and compares run and branches.
    fn check(&self, met: &mut BTreeSet<String>) {
        match imported(self.text.as_bytes(), self.options(), self.branches.len()) {
            Err(error) => {
                let is_other = matches!(error, ImportError::OtherKind { .. });
                assert!(self.may_fail.is_some_and(|is_short| is_other || is_short), "{error}");
            }
            Ok(runs) => {
                assert!(self.may_fail.is_none(), "an item of another kind was passed over");
                assert_eq!(runs.len(), 1 + self.branches.len(), "branches");
                self.main.check(&runs[0], met);
                self.branches.iter().zip(&runs[1..]).for_each(|(facts, records)| facts.check(records, met));
            }
        }
    }
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Imports a source with its branches: the records of each run.
fn imported(source: &[u8], options: ImportOptions, branches: usize) -> Result<Vec<Vec<Record>>, ImportError> {
    if branches == 0 {
        let (plan, records) = crate::import(source, options)?;
        return Ok((0..1 + plan.branches()).map(|_| records.clone()).collect());
    }
    let store = memory(1);
    let start = Start::new("r".parse().unwrap());
    let surroundings = || -> Box<dyn Environment> { Box::new(Fixed::new("import", 0, 1)) };
    let plan = import::plan(&mut Cursor::new(source), options, start)?;
    import::record(&store, &mut Cursor::new(source), &plan, surroundings(), &mut |_| {})?;
    let mut names = vec!["r".parse().unwrap()];
    names.extend(import::record_branches(&store, &mut Cursor::new(source), &plan, &surroundings)?);
    let mut runs = Vec::new();
    for name in names {
        let trace = Trace::open(&store, &name).unwrap();
        let mut records = vec![trace.start().clone()];
        trace
            .for_each(1, trace.tip(), &mut |_, record| {
                // The kernel's own record of a fork is no item.
                if record.header().type_name.as_ref().unwrap().as_str() != "run.fork" {
                    records.push(record.clone());
                }
                ControlFlow::Continue(())
            })
            .unwrap();
        runs.push(records);
    }
    Ok(runs)
}

/// How many conversations of a format are made.
fn many(few: u64) -> u64 {
    std::env::var("DENDRER_CONVERSATIONS").ok().map_or(few, |text| text.parse().unwrap())
}

/// A way to write a conversation.
type Write = fn(&mut Dice, &Model) -> Written;

/// Makes conversations, and compares each with its model. Returns the kinds of notes that were met.
fn run(can: Can, write: Write, few: u64) -> BTreeSet<String> {
    let mut met = BTreeSet::new();
    for seed in 0..many(few) {
        let mut dice = Dice(seed);
        let model = Model::draw(&mut dice, can);
        if model.entries.is_empty() {
            continue;
        }
        let written = write(&mut dice, &model);
        if written.main.list.is_empty() {
            continue;
        }
        let check = || written.check(&mut met);
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(check));
        assert!(found.is_ok(), "conversation {seed}\n{}", written.text);
    }
    met
}

#[test]
fn chats_agree_with_their_model() {
    let met = run(chat::CAN, chat::write, 1000);
    let all = [
        "call_contested",
        "call_id_repeated",
        "call_without_result",
        "message_outside",
        "not_read",
        "repeated",
        "result_ambiguous",
        "status_unknown",
    ];
    assert_eq!(met.iter().map(String::as_str).collect::<Vec<_>>(), all);
}

#[test]
fn trees_of_chats_agree_with_their_model() {
    run(chat::TREES, chat::write, 300);
}

#[test]
fn messages_with_parts_agree_with_their_model() {
    run(anthropic::CAN, anthropic::write, 300);
}

#[test]
fn chat_stores_agree_with_their_model() {
    run(ai_sdk::CAN, ai_sdk::write, 300);
}

#[test]
fn items_of_responses_agree_with_their_model() {
    run(responses::CAN, responses::write, 300);
}

#[test]
fn sessions_of_claude_code_agree_with_their_model() {
    run(claude_code::CAN, claude_code::write, 200);
    run(claude_code::TREES, claude_code::write, 100);
}

#[test]
fn rollouts_agree_with_their_model() {
    run(codex::CAN, codex::write, 300);
}

#[test]
fn spans_of_opentelemetry_agree_with_their_model() {
    run(traces::CAN, |dice, model| traces::write(dice, model, &otlp::DIALECT), 300);
}

#[test]
fn runs_of_langsmith_agree_with_their_model() {
    // The order of runs is that of their tree.
    let can = Can { agents: 1, ..traces::CAN };
    run(can, |dice, model| traces::write(dice, model, &langsmith::DIALECT), 300);
}

#[test]
fn observations_of_langfuse_agree_with_their_model() {
    run(traces::CAN, |dice, model| traces::write(dice, model, &langfuse::DIALECT), 300);
}

/// Each format: its name, what it can state, and how it is written.
fn formats() -> [(&'static str, Can, Write); 9] {
    [
        ("openai-chat", chat::CAN, chat::write),
        ("anthropic", anthropic::CAN, anthropic::write),
        ("ai-sdk", ai_sdk::CAN, ai_sdk::write),
        ("openai-responses", responses::CAN, responses::write),
        ("claude-code", claude_code::CAN, claude_code::write),
        ("codex", codex::CAN, codex::write),
        ("otlp", traces::CAN, |dice, model| traces::write(dice, model, &otlp::DIALECT)),
        ("langsmith", traces::CAN, |dice, model| traces::write(dice, model, &langsmith::DIALECT)),
        ("langfuse", traces::CAN, |dice, model| traces::write(dice, model, &langfuse::DIALECT)),
    ]
}

#[test]
fn members_of_no_table_change_no_exact_answer() {
    let mut failed = Vec::new();
    for (name, can, write) in formats() {
        let all = || additions::run(additions::of(can, write), 30);
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(all)).is_err() {
            failed.push(name);
        }
    }
    assert_eq!(failed, [""; 0]);
}
