//! Runs as rows.

use dendrer::store::RunSummary;
use dendrer_object::Value;

/// Returns a run as an item of `dendrer.runs/1`.
pub fn to_json(run: &RunSummary, start: &Value, forked_from: Option<(String, u64)>) -> Value {
    let parent = forked_from
        .map(|(run, tick)| Value::record([("run", Value::from(run)), ("tick", Value::from(tick))]));
    Value::record([
        ("ended", Value::from(run.ended)),
        ("forked_from", Value::from(parent)),
        ("goal", start.get("goal").cloned().unwrap_or(Value::Null)),
        ("name", Value::from(run.name.as_str())),
        ("refusals", Value::from(run.refusals)),
        ("stage", start.get("stage").cloned().unwrap_or(Value::Null)),
        (
            "synthetic",
            start.get("meta").and_then(|meta| meta.get("synthetic")).cloned().unwrap_or(false.into()),
        ),
        ("ticks", Value::from(run.head.tick)),
        ("tip", Value::from(run.head.id)),
        ("updated", Value::from(run.last_ts.to_string())),
    ])
}
