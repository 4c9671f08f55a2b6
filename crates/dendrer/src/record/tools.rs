//! Tool calls with a live and a replay mode (dendrer paper, appendix E.1).
//!
//! Live, a call is made once and its answer is what gets recorded. In replay nothing is called: the recorded
//! answer comes back, and a call that was not recorded is an error that belongs on record as a `kernel.anomaly`.
//! Answers are keyed by tick, place among the calls of that tick, tool and parameters, so two calls in one tick
//! never stand in for each other.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use dendrer_kernel::sealed::fact;
use dendrer_kernel::step::Anomaly;
use dendrer_object::{Code, Digest, Value};

use crate::error::Error;
use crate::run::calls::{answered, calls, params_digest};
use crate::run::trace::Trace;

pub use crate::run::calls::CallKey;

/// The recorded answer that a call needs is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no recorded answer for call {} of tick {} to {}", .0.index, .0.tick, .0.tool)]
pub struct MissingAnswer(pub CallKey);

impl MissingAnswer {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        Code::E0702
    }

    /// The anomaly that a runtime puts on record for it (dendrer paper 3.3.2).
    pub fn anomaly(&self) -> Anomaly {
        let CallKey { tick, index, tool, .. } = &self.0;
        let values =
            [("call", Value::from(*index)), ("tick", Value::from(*tick)), ("tool", Value::from(&**tool))];
        Anomaly { kind: "replay_tool_missing".into(), about: fact("no_recorded_answer", values), agent: None }
    }
}

/// Makes tool calls, or answers them from a record.
pub enum Executor<'t> {
    /// Calls are made.
    Live(&'t mut dyn FnMut(&str, &Value) -> Value),
    /// The world is frozen: calls are answered from the record alone.
    Replay(BTreeMap<CallKey, Value>),
}

impl<'t> Executor<'t> {
    /// Takes the answers out of a recorded run.
    ///
    /// An `action.request` asks; an `action.result` answers the request that it was caused by, and without such a
    /// link any that is open, the oldest call of the same tool and parameters first. The output is kept whole,
    /// whatever the tool did to the world: nothing is undone and nothing is done again.
    pub fn replay(trace: &Trace) -> Result<Executor<'t>, Error> {
        let mut answers = BTreeMap::new();
        let mut open: Vec<(Digest, CallKey)> = Vec::new();
        trace.for_each(1, trace.tip(), &mut |tick, record| {
            let content = record.content();
            match record.header().type_name.as_ref().map(|name| name.as_str()) {
                Some("action.request") => {
                    open.extend(calls(tick, &content).into_iter().map(|key| (record.id(), key)));
                }
                Some("action.result") => {
                    if let Some(at) = answered(&open, &record.header().links, &content) {
                        let output = content.get("result").and_then(|result| result.get("output"));
                        answers.insert(open.remove(at).1, output.cloned().unwrap_or(Value::Null));
                    }
                }
                _ => {}
            }
            ControlFlow::Continue(())
        })?;
        Ok(Executor::Replay(answers))
    }

    /// Makes a call for the request that is about to be, or was, committed at `tick`.
    pub fn call(
        &mut self,
        tick: u64,
        index: u64,
        tool: &str,
        params: &Value,
    ) -> Result<Value, MissingAnswer> {
        match self {
            Executor::Live(call) => Ok(call(tool, params)),
            Executor::Replay(answers) => {
                let key = CallKey { tick, index, tool: tool.to_owned(), params: params_digest(params) };
                answers.get(&key).cloned().ok_or(MissingAnswer(key))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::recorder::{Fixed, Recorder};
    use dendrer_kernel::step::{Outcome, Start};
    use dendrer_object::note::SigningKey;
    use dendrer_object::record::{Link, Rel};
    use dendrer_object::{Intent, RunName, StoreId, json};
    use dendrer_store::{Memory, Shared, StoreInfo};

    /// Records intents, each with the tick it is caused by, and lists the answers that replay takes from them.
    fn check(intents: &[(&str, Option<usize>)], expected: &[(u64, u64, &str)]) {
        let id = StoreId([1; 16]);
        let key = SigningKey::from_seed(&id.origin(), [1; 32]).unwrap();
        let store = Shared::new(Box::new(Memory::new(StoreInfo::new(id, key.verifier_key().clone()))));
        let run: RunName = "r".parse().unwrap();
        let start = Start::new(run.clone());
        let mut recorder = Recorder::begin(&store, &start, Box::new(Fixed::new("tools", 0, 1))).unwrap();
        let mut ids = vec![recorder.head().id()];
        for (text, caused_by) in intents {
            let mut intent = Intent::from_value(&json::parse_door(text.as_bytes()).unwrap(), None).unwrap();
            intent.links.extend(caused_by.map(|tick| Link { rel: Rel::CausedBy, hash: ids[tick] }));
            let Outcome::Committed(record) = recorder.propose(&intent).unwrap() else { panic!("{text}") };
            ids.push(record.id());
        }
        recorder.commit().unwrap();
        drop(recorder);
        let trace = Trace::open(&store, &run).unwrap();
        let Executor::Replay(answers) = Executor::replay(&trace).unwrap() else { panic!() };
        let found: Vec<_> =
            answers.iter().map(|(key, value)| (key.tick, key.index, value.to_string())).collect();
        let found: Vec<_> =
            found.iter().map(|(tick, index, value)| (*tick, *index, value.as_str())).collect();
        assert_eq!(found, expected);
    }

    const ASK: &str = r#"{"type":"action.request","action":{"tool":"t","params":{"n":1}}}"#;
    const ASK_TWICE: &str = r#"{"type":"action.request","action":{"calls":[{"tool":"t"},{"tool":"t"}]}}"#;

    fn answer(action: &str, output: u64) -> String {
        format!(
            r#"{{"type":"action.result","author":"runtime",{action}"result":{{"output":{output},"status":"ok"}}}}"#
        )
    }

    #[test]
    fn an_answer_belongs_to_the_request_it_was_caused_by() {
        let named = r#""action":{"tool":"t","params":{"n":1}},"#;
        // The first request was denied and never answered; the second is the same call once more.
        check(&[(ASK, None), (ASK, None), (&answer(named, 7), Some(2))], &[(2, 0, "7")]);
        // Answers may come in any order.
        check(
            &[(ASK, None), (ASK, None), (&answer(named, 2), Some(2)), (&answer(named, 1), Some(1))],
            &[(1, 0, "1"), (2, 0, "2")],
        );
        check(
            &[(ASK_TWICE, None), (&answer("", 1), Some(1)), (&answer("", 2), Some(1))],
            &[(1, 0, "1"), (1, 1, "2")],
        );
    }

    #[test]
    fn without_a_link_tool_and_parameters_decide_and_then_the_order() {
        let named = r#""action":{"tool":"t","params":{"n":1}},"#;
        let other = r#"{"type":"action.request","action":{"tool":"u"}}"#;
        check(&[(other, None), (ASK, None), (&answer(named, 7), None)], &[(2, 0, "7")]);
        check(
            &[(ASK_TWICE, None), (&answer("", 1), None), (&answer("", 2), None)],
            &[(1, 0, "1"), (1, 1, "2")],
        );
    }

    #[test]
    fn a_result_of_another_call_answers_none() {
        check(&[(ASK, None), (&answer(r#""action":{"tool":"u","params":{"n":1}},"#, 7), None)], &[]);
        check(&[(ASK, None), (&answer(r#""action":{"tool":"t","params":{"n":2}},"#, 7), None)], &[]);
        check(&[(&answer("", 7), None)], &[]);
    }
}
