//! The sources of a run that was seeded by a merge, as items.

use dendrer::merge::{Conflict, From, Merged, Standing};
use dendrer_object::Value;

use crate::quote;

/// Says where a value is from: `a trip-planner-b@45`.
pub fn source(merged: &Merged, name: &str) -> String {
    match merged.sources.iter().find(|source| &*source.name == name) {
        Some(source) => format!("{} {}@{}", quote::escape(name), source.run, source.tick),
        None => quote::escape(name),
    }
}

/// Writes the values of a conflict in one line.
pub fn values(conflict: &Conflict) -> String {
    let value =
        |(from, value): &(From, Value)| format!("{} {}", quote::escape(&from.source), quote::value(value));
    conflict.values.iter().map(value).collect::<Vec<_>>().join("   ")
}

/// Writes the standing of a conflict.
pub fn standing(standing: &Standing) -> String {
    match standing {
        Standing::Open => "open: all are kept, and nothing stands there".to_owned(),
        Standing::Taken(source) => format!("{} taken by the strategy", quote::escape(source)),
        Standing::Resolved(tick, take, reason) => {
            format!("{} taken at tick {tick}: {}", quote::escape(take), quote::quoted(reason))
        }
        Standing::Written(tick) => format!("written at tick {tick}"),
    }
}

/// Writes the sources of a merge.
pub fn sources(merged: &Merged) -> Value {
    Value::array(merged.sources.iter().map(|source| {
        Value::record([
            ("name", Value::from(&*source.name)),
            ("run", Value::from(source.run.as_str())),
            ("tick", Value::from(source.tick)),
            ("record", Value::from(source.record)),
            ("state_root", Value::from(source.state_root)),
        ])
    }))
}

fn from(from: &From) -> Vec<(&'static str, Value)> {
    vec![
        ("source", Value::from(&*from.source)),
        ("tick", Value::from(from.tick)),
        ("record", Value::from(from.record)),
    ]
}

/// Writes what the sources agreed on.
pub fn seeded(merged: &Merged) -> Value {
    Value::array(merged.seeded.iter().map(|seeded| {
        Value::record([
            ("path", Value::from(seeded.path.as_str())),
            ("from", Value::array(seeded.from.iter().map(|side| Value::record(from(side))))),
        ])
    }))
}

/// Returns a conflict with its standing.
pub fn conflict(conflict: &Conflict, standing: &Standing) -> Value {
    let (status, tick, taken, reason) = match standing {
        Standing::Open => ("open", None, None, None),
        Standing::Taken(source) => ("taken", None, Some(source), None),
        Standing::Resolved(tick, take, reason) => ("resolved", Some(*tick), Some(take), Some(reason)),
        Standing::Written(tick) => ("written", Some(*tick), None, None),
    };
    let side = |(side, value): &(From, Value)| {
        Value::record(from(side).into_iter().chain([("value", value.clone())]))
    };
    Value::record([
        ("path", Value::from(conflict.path.as_str())),
        ("values", Value::array(conflict.values.iter().map(side))),
        ("status", Value::from(status)),
        ("tick", Value::from(tick)),
        ("taken", Value::from(taken.map(|taken| &**taken))),
        ("reason", Value::from(reason.map(|reason| &**reason))),
    ])
}
