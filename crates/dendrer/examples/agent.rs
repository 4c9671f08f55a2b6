//! A small agent loop: a model proposes, is refused, proposes again, and has tools called; then the same loop once
//! more with the world frozen, answered from the record.
//!
//! The model is a script of JSON texts, so that the example needs no network. All else is what a real loop does:
//! read the model's text as an intent, propose it, tell the model what came of it, make the calls it was granted,
//! and put every answer on record before anybody acts on it. In replay no call is made; a call that is not on record
//! ends the run with a `kernel.anomaly`.
//!
//! ```text
//! cargo run -p dendrer --example agent
//! ```

use std::collections::BTreeMap;

use dendrer::recorder::{Fixed, Recorder};
use dendrer::tools::Executor;
use dendrer::{Error, Trace};
use dendrer_kernel::step::{Outcome, Start};
use dendrer_object::note::SigningKey;
use dendrer_object::record::{Link, Record, Rel};
use dendrer_object::{Digest, Intent, RunName, StoreId, Value, json};
use dendrer_store::{Memory, Shared, StoreInfo};

/// What the model is told before it speaks again.
pub(crate) enum Heard {
    /// The run has begun, or the last proposal is on record.
    GoOn,
    /// The last proposal was turned down, and why.
    Refused(String),
    /// What the tools answered, call by call.
    Answers(Vec<Value>),
}

/// The stand-in for a model. It says the same things in the same order, and takes numbers from what it is told.
pub(crate) struct Model {
    turn: usize,
    /// The file it wants deleted.
    pub(crate) deletes: &'static str,
}

impl Model {
    /// A model before its first word.
    pub(crate) fn new(deletes: &'static str) -> Model {
        Model { turn: 0, deletes }
    }

    /// Returns its next proposal as JSON text; `None` once it is done.
    pub(crate) fn says(&mut self, heard: &Heard) -> Option<String> {
        self.turn += 1;
        Some(match (self.turn, heard) {
            (1, _) => r#"{"type":"plan.update","confidence":0.8,"intent":{"description":"measure twice, then tidy up"}}"#.to_owned(),
            // It would like to allow itself the deletion. That is not for a model to decide.
            (2, _) => r#"{"type":"policy.decision","policy":{"decision":"allow"},"intent":{"description":"deletions are fine"}}"#.to_owned(),
            (3, Heard::Refused(why)) => {
                let why = Value::from(why.as_str());
                format!(
                    r#"{{"type":"action.request","confidence":0.9,"effect":"read",
                        "intent":{{"description":"then only measure","after":{why}}},
                        "action":{{"calls":[{{"tool":"thermometer","params":{{"room":3}}}},{{"tool":"thermometer","params":{{"room":3}}}}]}}}}"#
                )
            }
            (4, Heard::Answers(answers)) => {
                let celsius = |at: usize| answers.get(at).and_then(|answer| answer.get("celsius")?.as_f64()).unwrap_or(f64::NAN);
                let mean = Value::from((celsius(0) + celsius(1)) / 2.0);
                format!(
                    r#"{{"type":"observation.add","confidence":0.95,"intent":{{"description":"room 3 is at {mean} degrees"}},
                        "delta":[{{"set":"/rooms/3/celsius","value":{mean}}}]}}"#
                )
            }
            (5, _) => format!(
                r#"{{"type":"action.request","confidence":0.7,"effect":"effectful","intent":{{"description":"the old readings can go"}},
                    "action":{{"tool":"delete_file","params":{{"path":"{}"}}}}}}"#,
                self.deletes
            ),
            (6, Heard::Answers(_)) => r#"{"type":"goal.complete","confidence":0.9,"intent":{"description":"measured and tidied up"}}"#.to_owned(),
            _ => return None,
        })
    }
}

/// The world that the tools act on.
#[derive(Debug)]
pub(crate) struct World {
    /// The files that exist.
    pub(crate) files: BTreeMap<&'static str, &'static str>,
    /// How many calls were made.
    pub(crate) calls: u64,
}

impl World {
    /// A world with some readings in it.
    pub(crate) fn new() -> World {
        World {
            files: BTreeMap::from([("old-readings.csv", "3;19.5"), ("readings.csv", "3;20.5")]),
            calls: 0,
        }
    }

    /// Makes a call. A thermometer never gives the same twice; a deleted file is gone.
    pub(crate) fn call(&mut self, tool: &str, params: &Value) -> Value {
        self.calls += 1;
        match (tool, params.get("path").and_then(Value::as_str)) {
            ("thermometer", _) => Value::record([("celsius", Value::from(20.0 + 0.5 * self.calls as f64))]),
            ("delete_file", Some(path)) if self.files.remove(path).is_some() => {
                Value::record([("result", Value::from("file deleted, ok"))])
            }
            _ => Value::record([("error", Value::from("no such tool, or no such file"))]),
        }
    }
}

impl Default for World {
    fn default() -> World {
        World::new()
    }
}

/// What a run of the loop came to.
#[derive(Debug)]
pub(crate) struct Told {
    /// What happened, a line for each step.
    pub(crate) lines: Vec<String>,
    /// The tip of the run.
    pub(crate) tip: Digest,
    /// Whether the model came to the end of what it had to say.
    pub(crate) finished: bool,
}

/// Runs the loop: the same code live and in replay. Only the executor differs.
pub(crate) fn run(
    store: &Shared,
    name: &RunName,
    model: &mut Model,
    tools: &mut Executor<'_>,
) -> Result<Told, Error> {
    let mut start = Start::new(name.clone());
    start.goal = Some("Measure room 3 and tidy up".into());
    // Fixed times and seeds, so that a replay can be compared by its tip. A real loop takes `World` from the library.
    let mut recorder =
        Recorder::begin(store, &start, Box::new(Fixed::new(name.as_str(), 1_771_833_600_000, 1_000)))?;
    let mut heard = Heard::GoOn;
    let mut lines = Vec::new();
    let mut finished = true;
    while let Some(text) = model.says(&heard) {
        let value = json::parse_door(text.as_bytes()).expect("the script is JSON");
        let intent = Intent::from_value(&value, Some("assistant")).expect("the script holds intents");
        heard = match recorder.propose(&intent)? {
            Outcome::Refused(refused) => {
                lines.push(format!("        refused  {}  {}", intent.type_name, refused.reason));
                Heard::Refused(refused.reason.to_string())
            }
            Outcome::Committed(record) | Outcome::Violated { record, .. } => {
                lines.push(committed(&record));
                match make_calls(&mut recorder, tools, &record, &mut lines)? {
                    Some(heard) => heard,
                    None => {
                        finished = false;
                        break;
                    }
                }
            }
        };
        // Nothing is told to the model before it is durable.
        recorder.commit()?;
    }
    recorder.commit()?;
    Ok(Told { lines, tip: recorder.head().id(), finished })
}

fn committed(record: &Record) -> String {
    let header = record.header();
    let type_name = header.type_name.as_ref().map_or("", |name| name.as_str());
    let content = record.content();
    let says = content.get("intent").and_then(|intent| intent.get("description")).cloned();
    let output = content.get("result").and_then(|result| result.get("output")).cloned();
    let anomaly = content.get("anomalies").and_then(Value::as_array).and_then(|list| list.get(0)).cloned();
    let shown = says.or(output).or(anomaly).unwrap_or(Value::Null);
    format!("tick {:<2} {:<7}  {type_name}  {shown}", header.tick.unwrap_or(0), header.author.as_str())
}

/// Has the calls of a request made, or answered, and puts each answer on record. `None` if one is missing.
fn make_calls(
    recorder: &mut Recorder,
    tools: &mut Executor<'_>,
    request: &Record,
    lines: &mut Vec<String>,
) -> Result<Option<Heard>, Error> {
    let calls = calls(request);
    let tick = request.header().tick.unwrap_or(0);
    let mut answers = Vec::new();
    for (index, (tool, params)) in calls.iter().enumerate() {
        match tools.call(tick, index as u64, tool, params) {
            Ok(answer) => {
                let record = put_answer(recorder, request, tool, params, &answer)?;
                lines.push(committed(&record));
                answers.push(answer);
            }
            Err(missing) => {
                let record = recorder.note_anomaly(&missing.anomaly())?;
                lines.push(committed(&record));
                return Ok(None);
            }
        }
    }
    Ok(Some(if calls.is_empty() { Heard::GoOn } else { Heard::Answers(answers) }))
}

/// Lists the calls that a record asks for: tool and parameters.
fn calls(record: &Record) -> Vec<(String, Value)> {
    let content = record.content();
    if record.header().type_name.as_ref().is_none_or(|name| name.as_str() != "action.request") {
        return Vec::new();
    }
    let Some(action) = content.get("action") else { return Vec::new() };
    let call = |value: &Value| {
        let tool = value.get("tool").and_then(Value::as_str).unwrap_or_default().to_owned();
        (tool, value.get("params").cloned().unwrap_or(Value::Null))
    };
    match action.get("calls").and_then(Value::as_array) {
        Some(calls) => calls.iter().map(call).collect(),
        None => vec![call(action)],
    }
}

/// Puts an answer on record: written by the runtime, linked to the request it answers.
fn put_answer(
    recorder: &mut Recorder,
    request: &Record,
    tool: &str,
    params: &Value,
    answer: &Value,
) -> Result<Record, Error> {
    let action = Value::record([("params", params.clone()), ("tool", Value::from(tool))]);
    let result = Value::record([("output", answer.clone()), ("status", Value::from("ok"))]);
    let mut intent = Intent::new("action.result".parse().expect("a type of the ontology"), "assistant")
        .by_runtime()
        .with("action", action)
        .with("result", result);
    intent.links.push(Link { rel: Rel::CausedBy, hash: request.id() });
    match recorder.propose(&intent)? {
        Outcome::Committed(record) | Outcome::Violated { record, .. } => Ok(record),
        Outcome::Refused(refused) => panic!("an answer was refused: {}", refused.reason),
    }
}

/// Makes a store in memory for the example.
pub(crate) fn store() -> Shared {
    let id = StoreId(*b"dendrer examples");
    let key = SigningKey::from_seed(&id.origin(), [7; 32]).expect("an origin is a name for a key");
    Shared::new(Box::new(Memory::new(StoreInfo::new(id, key.verifier_key().clone()))))
}

#[expect(clippy::print_stdout, reason = "an example prints what happens")]
fn main() -> Result<(), Error> {
    let name: RunName = "agent-1".parse().expect("a run id");
    let mut world = World::new();

    println!("live");
    let recorded = store();
    let mut call = |tool: &str, params: &Value| world.call(tool, params);
    let live = run(&recorded, &name, &mut Model::new("old-readings.csv"), &mut Executor::Live(&mut call))?;
    println!("{}\n{} calls were made\n", live.lines.join("\n"), world.calls);

    println!("replay, from the record alone");
    let trace = Trace::open(&recorded, &name)?;
    let again = run(&store(), &name, &mut Model::new("old-readings.csv"), &mut Executor::replay(&trace)?)?;
    println!("{}\n{} calls were made in all\n", again.lines.join("\n"), world.calls);
    println!("the tips are {}\n", if live.tip == again.tip { "equal" } else { "different" });

    println!("replay of a model that asks for something else");
    let other = run(&store(), &name, &mut Model::new("readings.csv"), &mut Executor::replay(&trace)?)?;
    println!(
        "{}\nthe model {}",
        other.lines.join("\n"),
        if other.finished { "finished" } else { "was stopped" }
    );
    Ok(())
}
