//! Published transcripts, rebuilt tick by tick by the rules of a pack and compared with published states.
//!
//! The data is not part of the repository; where it is absent the test says so and passes.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "what was skipped and how long it took is for people"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use dendrer::recorder::Fixed;
use dendrer::{Error, Trace, pack, verify};
use dendrer_kernel::step::Start;
use dendrer_object::json::{parse_door, to_vec};
use dendrer_object::note::SigningKey;
use dendrer_object::{Intent, StoreId, Value};
use dendrer_store::{Memory, Shared, StoreInfo};

fn corpus() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("SKIPPED: the corpus is not at {}", path.display());
    None
}

fn read(path: &Path) -> Value {
    let text = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    parse_door(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn sha256(value: &Value) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, &to_vec(value));
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One message as the transition it is (design, section 9).
fn intent(message: &Value, asked: &mut BTreeMap<String, Value>) -> Intent {
    let text = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let described = || Value::record([("description", Value::from(text("content")))]);
    let typed = |name: &str| Intent::new(name.parse().expect("a type"), &text("role"));
    let calls: Vec<&Value> = message
        .get("tool_calls")
        .and_then(Value::as_array)
        .into_iter()
        .flat_map(|calls| calls.iter())
        .collect();
    if text("role") == "tool" {
        let action = asked.remove(&text("tool_call_id")).unwrap_or(Value::Null);
        let result = Value::record([("output", Value::from(text("content")))]);
        return typed("action.result").by_runtime().with("action", action).with("result", result);
    }
    let [call] = calls[..] else { return typed("observation.add").with("intent", described()) };
    let function = call.get("function").expect("a call");
    let arguments = function.get("arguments").and_then(Value::as_str).unwrap_or_default();
    let action = Value::record([
        ("tool", function.get("name").cloned().unwrap_or(Value::Null)),
        ("params", parse_door(arguments.as_bytes()).unwrap_or_else(|_| Value::from(arguments))),
    ]);
    asked.insert(call.get("id").and_then(Value::as_str).unwrap_or_default().to_owned(), action.clone());
    typed("action.request").with("intent", described()).with("action", action)
}

#[test]
fn the_airline_is_rebuilt_from_its_transcripts() -> Result<(), Error> {
    let Some(corpus) = corpus() else { return Ok(()) };
    let pack =
        pack::read(include_bytes!("corpus/airline.yaml")).unwrap_or_else(|problems| panic!("{problems:#?}"));
    let db = corpus.join("tau-airline/data/db");
    let s0 = Value::record(
        ["flights", "reservations", "users"].map(|name| (name, read(&db.join(format!("{name}.json"))))),
    );
    let id = StoreId([7; 16]);
    let key = SigningKey::from_seed(&id.origin(), [1; 32])?;
    let runs = std::fs::read_to_string(corpus.join("runs.jsonl")).expect("the list of runs");
    let mut rebuilt = 0;
    for line in runs.lines() {
        let expected = parse_door(line.as_bytes()).expect("a line of the list");
        if expected.get("dataset").and_then(Value::as_str) != Some("tau-airline") {
            continue;
        }
        assert_eq!(expected.get("env_sha256_s0").and_then(Value::as_str), Some(&*sha256(&s0)));
        let file = expected.get("file").and_then(Value::as_str).expect("a file");
        let transcript = read(&corpus.join(file));
        let store = Shared::new(Box::new(Memory::new(StoreInfo::new(id, key.verifier_key().clone()))));
        let name = "airline".parse().expect("a name");
        let start_of_run = Instant::now();
        let start = Start { state: s0.clone(), ..Start::new(name) };
        let mut recorder = pack.bind(start).and_then(|start| {
            dendrer::Recorder::begin(&store, &start, Box::new(Fixed::new("corpus", 1, 1)))
        })?;
        let mut changes = Vec::new();
        let mut asked = BTreeMap::new();
        let begun = start_of_run.elapsed();
        let mut spent = std::time::Duration::ZERO;
        for (tick, message) in
            transcript.get("traj").and_then(Value::as_array).expect("a list").iter().enumerate().skip(1)
        {
            let before = recorder.head().state().clone();
            let step = Instant::now();
            recorder.propose(&intent(message, &mut asked))?;
            spent += step.elapsed();
            let after = recorder.head().state();
            if before.digest() != after.digest() {
                changes.push(Value::array([Value::from(tick as u64), Value::from(sha256(after))]));
            }
        }
        recorder.commit()?;
        drop(recorder);
        assert_eq!(Some(&Value::array(changes)), expected.get("env_changes"), "{file}");
        let name = "airline".parse().expect("a name");
        let trace = Trace::open(&store, &name)?;
        let noted: Vec<Value> = (1..=trace.tip())
            .filter_map(|tick| trace.record(tick).ok()?.body().value("/anomalies"))
            .collect();
        assert_eq!(noted, [], "{file}");
        assert_eq!(verify::replay(&store, &name)?, Ok(trace.tip()), "{file}");
        println!("{file}: {} ticks, begun in {begun:?}, folded in {spent:?}", trace.tip());
        rebuilt += 1;
    }
    assert_eq!(rebuilt, 15);
    Ok(())
}
