//! The agent loop of the examples, live and in replay (dendrer paper 3.5 and appendix E.1).

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

#[path = "../examples/agent.rs"]
#[expect(dead_code, reason = "the example's own main is not called here")]
mod agent;

use agent::{Model, World, run, store};
use dendrer::tools::{Executor, MissingAnswer};
use dendrer::{Trace, verify};
use dendrer_kernel::predicate::Predicate;
use dendrer_object::{RunName, Value};
use dendrer_store::Shared;

fn name() -> RunName {
    "agent-1".parse().unwrap()
}

/// Runs the loop live in a world and returns the store and what happened.
fn live(world: &mut World) -> (Shared, agent::Told) {
    let recorded = store();
    let mut call = |tool: &str, params: &Value| world.call(tool, params);
    let told =
        run(&recorded, &name(), &mut Model::new("old-readings.csv"), &mut Executor::Live(&mut call)).unwrap();
    (recorded, told)
}

const LIVE: &str = r#"
tick 1  agent    plan.update  "measure twice, then tidy up"
        refused  policy.decision  policy.decision is written by the runtime, not by an agent
tick 2  agent    action.request  "then only measure"
tick 3  runtime  action.result  {"celsius":20.5}
tick 4  runtime  action.result  {"celsius":21}
tick 5  agent    observation.add  "room 3 is at 20.75 degrees"
tick 6  agent    action.request  "the old readings can go"
tick 7  runtime  action.result  {"result":"file deleted, ok"}
tick 8  agent    goal.complete  "measured and tidied up""#;

#[test]
fn replay_gives_the_same_run_and_makes_no_call() {
    let mut world = World::new();
    let (recorded, first) = live(&mut world);
    assert_eq!(format!("\n{}", first.lines.join("\n")), LIVE);
    assert_eq!((world.calls, world.files.contains_key("old-readings.csv")), (3, false));

    // Somebody puts the file back. Replay says it was deleted, as it was, and leaves it where it is.
    world.files.insert("old-readings.csv", "3;19.5");
    let trace = Trace::open(&recorded, &name()).unwrap();
    let mut tools = Executor::replay(&trace).unwrap();
    let again = store();
    let second = run(&again, &name(), &mut Model::new("old-readings.csv"), &mut tools).unwrap();
    assert_eq!(second.lines, first.lines);
    assert_eq!((second.tip, second.finished), (first.tip, true), "equal in every byte");
    assert_eq!((world.calls, world.files.contains_key("old-readings.csv")), (3, true));
    for store in [&recorded, &again] {
        assert_eq!(verify::replay(store, &name()).unwrap(), Ok(8));
    }
}

#[test]
fn two_calls_of_one_tool_in_one_tick_keep_their_own_answers() {
    let (recorded, _) = live(&mut World::new());
    let trace = Trace::open(&recorded, &name()).unwrap();
    let mut tools = Executor::replay(&trace).unwrap();
    let params = dendrer_object::json::parse_door(br#"{"room":3}"#).unwrap();
    let mut ask = |tick, index, tool: &str, params: &Value| match tools.call(tick, index, tool, params) {
        Ok(answer) => answer.to_string(),
        Err(MissingAnswer(key)) => format!("nothing for {} {} {}", key.tick, key.index, key.tool),
    };
    assert_eq!(ask(2, 0, "thermometer", &params), r#"{"celsius":20.5}"#);
    assert_eq!(ask(2, 1, "thermometer", &params), r#"{"celsius":21}"#);
    // Any part of the key that differs is another call.
    assert_eq!(ask(2, 2, "thermometer", &params), "nothing for 2 2 thermometer");
    assert_eq!(ask(3, 0, "thermometer", &params), "nothing for 3 0 thermometer");
    assert_eq!(ask(2, 0, "thermometers", &params), "nothing for 2 0 thermometers");
    assert_eq!(ask(2, 0, "thermometer", &Value::Null), "nothing for 2 0 thermometer");
}

#[test]
fn a_missing_answer_ends_the_replay_with_an_anomaly_on_record() {
    let mut world = World::new();
    let (recorded, _) = live(&mut world);
    let trace = Trace::open(&recorded, &name()).unwrap();
    let again = store();
    let mut tools = Executor::replay(&trace).unwrap();
    let told = run(&again, &name(), &mut Model::new("readings.csv"), &mut tools).unwrap();
    assert_eq!((told.finished, world.calls, world.files.len()), (false, 3, 1));
    let trace = Trace::open(&again, &name()).unwrap();
    let record = trace.record(trace.tip()).unwrap();
    assert_eq!((trace.tip(), record.header().type_name.clone().unwrap().as_str()), (7, "kernel.anomaly"));
    let anomaly = record.content().get("anomalies").unwrap().to_string();
    assert_eq!(
        anomaly,
        r#"[{"call":0,"cause":"no_recorded_answer","kind":"replay_tool_missing","tick":6,"tool":"delete_file"}]"#
    );
    let free = Predicate::built_in("kernel.anomaly_free").unwrap();
    let verdicts = [6, 7].map(|tick| {
        let moment = trace.at(tick).unwrap();
        free.verdict(&moment.state, Some(&moment.counters.to_value())).to_string()
    });
    assert_eq!(verdicts, ["ok", "violation"]);
    assert_eq!(verify::replay(&again, &name()).unwrap(), Ok(7));
}
