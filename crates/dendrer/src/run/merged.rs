//! Reads from a run what it was merged from: the member `merge` of its `meta`, and the form in which it is sealed.

use std::sync::Arc;

use dendrer_kernel::pack::Combine;
use dendrer_kernel::step::Broken;
use dendrer_object::{Digest, Pointer, RunName, Value};

use crate::error::{Error, MergeError};
use crate::run::trace::Trace;

/// The member of a run's `meta` that says what it was seeded from.
pub(crate) const MEMBER: &str = "merge";

/// A record in the history of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedRecord {
    /// The run that owns it.
    pub run: RunName,
    /// Its tick.
    pub tick: u64,
    /// Its id.
    pub record: Digest,
}

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeSource {
    /// The name of the source: `a` is the first, `b` the second.
    pub source: Arc<str>,
    /// The tick that wrote it last; 0 where it was there from the beginning.
    pub tick: u64,
    /// The record of that tick.
    pub record: Digest,
}

/// A place whose value was taken, with the sources that have it so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seeded {
    /// The place.
    pub path: Pointer,
    /// Every source that has it, in order.
    pub from: Vec<MergeSource>,
    /// How the pack combined the lists of these sources, where none has the value as it was taken.
    pub combined: Option<Combine>,
}

/// A place that several sources changed in different ways; without a common record, a place with different values.
#[derive(Debug, Clone, PartialEq)]
pub struct Conflict {
    /// The place.
    pub path: Pointer,
    /// The value at the last common record, where there is one and only one.
    pub base: Option<Value>,
    /// The values, in the order of the sources; `None` where a source removed it.
    pub values: Vec<(MergeSource, Option<Value>)>,
    /// The source whose value the strategy took.
    pub taken: Option<Arc<str>>,
}

/// A source, as the record names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedSource {
    /// Its name in the merge: `a`, `b`, ...
    pub name: Arc<str>,
    /// The run.
    pub run: RunName,
    /// The tick whose state was read.
    pub tick: u64,
    /// The record of that tick.
    pub record: Digest,
    /// The root of that state.
    pub state_root: Digest,
}

/// The sources of a merged run, and each value that was taken from them.
#[derive(Debug, Clone, PartialEq)]
pub struct Merged {
    /// The sources, in the order in which they were named.
    pub sources: Vec<NamedSource>,
    /// The strategy's word.
    pub strategy: Arc<str>,
    /// Whether values alone were taken.
    pub seed_only: bool,
    /// Whether the states were taken whole, so that the history of the run includes those of its sources.
    pub is_whole: bool,
    /// The last common records of the sources; none where they share no record, and the merge is two-way.
    pub base: Vec<OwnedRecord>,
    /// The places on which they agreed, and those that one of them alone changed.
    pub seeded: Vec<Seeded>,
    /// The places that had a value at the last common record, and that a source removed.
    pub removed: Vec<Seeded>,
    /// The places on which they did not agree.
    pub conflicts: Vec<Conflict>,
    /// The reason why it begins although its state breaks rules that no source breaks.
    pub although: Option<Arc<str>>,
    /// Those rules, as far as they were judged when it began; not on record.
    pub violations: Vec<Broken>,
}

/// Returns what a run was merged from, if its lineage begins with a merge.
pub(crate) fn merge_of(trace: &Trace) -> Option<Merged> {
    trace.start().body().value("/meta").and_then(|meta| Merged::of(meta.get(MEMBER)?))
}

impl MergeSource {
    fn to_value(&self) -> Vec<(&'static str, Value)> {
        vec![
            ("record", Value::from(self.record)),
            ("source", Value::String(Arc::clone(&self.source))),
            ("tick", Value::from(self.tick)),
        ]
    }

    fn of(value: &Value) -> Option<MergeSource> {
        Some(MergeSource {
            source: value.get("source")?.as_str()?.into(),
            tick: value.get("tick")?.as_u64()?,
            record: value.get("record")?.as_str()?.parse().ok()?,
        })
    }
}

impl Merged {
    pub(crate) fn to_value(&self) -> Value {
        let source = |source: &NamedSource| {
            Value::record([
                ("name", Value::String(Arc::clone(&source.name))),
                ("record", Value::from(source.record)),
                ("run", Value::from(source.run.as_str())),
                ("state_root", Value::from(source.state_root)),
                ("tick", Value::from(source.tick)),
            ])
        };
        let seeded = |seeded: &Seeded| {
            let members = [
                ("from", Value::array(seeded.from.iter().map(|from| Value::record(from.to_value())))),
                ("path", Value::from(seeded.path.as_str())),
            ];
            let combined = seeded.combined.map(|combine| ("combined", Value::from(combine.as_str())));
            Value::record(members.into_iter().chain(combined))
        };
        let conflict = |conflict: &Conflict| {
            let side = |(from, value): &(MergeSource, Option<Value>)| {
                let value = value.iter().map(|value| ("value", value.clone()));
                Value::record(from.to_value().into_iter().chain(value))
            };
            let base = conflict.base.iter().map(|base| ("base", base.clone()));
            let members = [
                ("path", Value::from(conflict.path.as_str())),
                ("taken", Value::from(conflict.taken.as_deref())),
                ("values", Value::array(conflict.values.iter().map(side))),
            ];
            Value::record(members.into_iter().chain(base))
        };
        let base = |moment: &OwnedRecord| {
            Value::record([
                ("record", Value::from(moment.record)),
                ("run", Value::from(moment.run.as_str())),
                ("tick", Value::from(moment.tick)),
            ])
        };
        Value::record(
            [
                ("base", Value::array(self.base.iter().map(base))),
                ("removed", Value::array(self.removed.iter().map(seeded))),
                ("whole", Value::from(self.is_whole)),
                ("conflicts", Value::array(self.conflicts.iter().map(conflict))),
                ("seed_only", Value::from(self.seed_only)),
                ("seeded", Value::array(self.seeded.iter().map(seeded))),
                ("sources", Value::array(self.sources.iter().map(source))),
                ("strategy", Value::String(Arc::clone(&self.strategy))),
            ]
            .into_iter()
            .chain(self.although.clone().map(|reason| ("although", Value::String(reason)))),
        )
    }

    fn of(value: &Value) -> Option<Merged> {
        let list = |value: &Value, name: &str| -> Option<Vec<Value>> {
            Some(value.get(name)?.as_array()?.iter().cloned().collect())
        };
        let path = |value: &Value| -> Option<Pointer> { value.get("path")?.as_str()?.parse().ok() };
        let source = |value: &Value| {
            Some(NamedSource {
                name: value.get("name")?.as_str()?.into(),
                run: value.get("run")?.as_str()?.parse().ok()?,
                tick: value.get("tick")?.as_u64()?,
                record: value.get("record")?.as_str()?.parse().ok()?,
                state_root: value.get("state_root")?.as_str()?.parse().ok()?,
            })
        };
        let seeded = |value: &Value| {
            let from = list(value, "from")?.iter().map(MergeSource::of).collect::<Option<_>>()?;
            let combined = match value.get("combined") {
                Some(word) => Some(Combine::from_word(word.as_str()?)?),
                None => None,
            };
            Some(Seeded { path: path(value)?, from, combined })
        };
        let conflict = |value: &Value| {
            let side = |value: &Value| Some((MergeSource::of(value)?, value.get("value").cloned()));
            let taken = match value.get("taken")? {
                Value::Null => None,
                taken => Some(taken.as_str()?.into()),
            };
            let values = list(value, "values")?.iter().map(side).collect::<Option<_>>()?;
            Some(Conflict { path: path(value)?, base: value.get("base").cloned(), values, taken })
        };
        let base = |value: &Value| {
            Some(OwnedRecord {
                run: value.get("run")?.as_str()?.parse().ok()?,
                tick: value.get("tick")?.as_u64()?,
                record: value.get("record")?.as_str()?.parse().ok()?,
            })
        };
        Some(Merged {
            although: value.get("although").and_then(Value::as_str).map(Arc::from),
            violations: Vec::new(),
            is_whole: value.get("whole")?.as_bool()?,
            base: list(value, "base")?.iter().map(base).collect::<Option<_>>()?,
            removed: list(value, "removed")?.iter().map(seeded).collect::<Option<_>>()?,
            sources: list(value, "sources")?.iter().map(source).collect::<Option<_>>()?,
            strategy: value.get("strategy")?.as_str()?.into(),
            seed_only: value.get("seed_only")?.as_bool()?,
            seeded: list(value, "seeded")?.iter().map(seeded).collect::<Option<_>>()?,
            conflicts: list(value, "conflicts")?.iter().map(conflict).collect::<Option<_>>()?,
        })
    }
}

/// Reads from a run, or from one that was forked from it, what it was seeded from.
pub fn merged(trace: &Trace) -> Result<Merged, Error> {
    let not = || MergeError::NotMerged(trace.name().clone());
    let meta = trace.start().body().value("/meta").ok_or_else(not)?;
    let value = meta.get(MEMBER).ok_or_else(not)?;
    Ok(Merged::of(value).ok_or_else(|| MergeError::Malformed(trace.name().clone()))?)
}
