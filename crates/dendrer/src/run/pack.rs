//! The pack in force in a run: which one it is, its text, its reducer, and the predicates that a transition broke.
//!
//! Rule: a pack, and a module of one, is read from the record and from no file, so that replay needs neither file nor YAML.

use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_kernel::pack::Declared;
use dendrer_kernel::pack::{Pack, PackFault, extend};
use dendrer_kernel::predicate::{Predicate, Verdict};
use dendrer_kernel::reduce::{DeltaReducer, Reducer};
use dendrer_kernel::sealed;
use dendrer_kernel::step::{KERNEL_VERSION, RunState, Start, WOULD_REFUSE};
use dendrer_object::record::Record;
use dendrer_object::{Code, Pointer, RunName, TypeName, Value};

use crate::error::Error;
use crate::pack::{Files, check_by, yaml};
use crate::run::trace::{Trace, version_of};

/// Returns the pack in force at the tip of a run; `None` if it has no pack, or if the pack was erased or withheld.
pub fn of_run(trace: &Trace) -> Result<Option<Pack>, Error> {
    of_segment(trace, trace.begins().len() - 1)
}

/// Returns the pack in force in a run of a lineage. A fork without a pack has its parent's.
pub(crate) fn of_segment(trace: &Trace, segment: usize) -> Result<Option<Pack>, Error> {
    let fail = |why: String| Error::PackRecorded { run: trace.name().clone(), why };
    let Some(value) = carrier(trace, segment).body().value("/pack") else { return Ok(None) };
    let bound = trace.begins()[segment].header().pack;
    if bound != Some(dendrer_kernel::pack::digest(&value)) {
        return Err(fail("it is not the one that the header of the run names".to_owned()));
    }
    let first = |faults: Vec<PackFault>| {
        let first = faults.first().map(ToString::to_string).unwrap_or_default();
        fail(format!("it does not check: {first}"))
    };
    check_by(&value, version_of(&trace.begins()[segment])).map(Some).map_err(first)
}

/// Returns the record that carries the pack in force in a run of a lineage.
fn carrier(trace: &Trace, segment: usize) -> &Record {
    let place = Pointer::of(["pack"]);
    let has_pack = |begin: &&Record| begin.body().fields().iter().any(|field| field.pointer == place);
    trace.begins()[..=segment].iter().rev().find(has_pack).unwrap_or(trace.start())
}

/// Returns the text of the pack that a run carries, and whether the text reads as the pack. A text names the files of
/// modules and not their bytes, so the bytes of a module are taken from the pack.
pub fn text_of_run(trace: &Trace) -> Option<(Arc<str>, bool)> {
    let carrier = carrier(trace, trace.begins().len() - 1);
    let text = text_of_segment(trace, trace.begins().len() - 1)?;
    let recorded = carrier.body().value("/pack").unwrap_or(Value::Null);
    let read = yaml::Document::read(text.as_bytes()).ok().map(|document| Files::Of(&recorded).fill(document));
    let says = read.filter(|(_, missing)| missing.is_empty());
    let agrees =
        says.map(|(document, _)| dendrer_kernel::pack::digest(&document.value)) == carrier.header().pack;
    Some((text, agrees))
}

/// Returns the first tick at which a predicate that the pack of a run declares was part of the contract; `None` if it was from
/// the beginning. A fork may have another pack, or another constant in it: then the name meant something else before the fork.
pub fn declared_since(trace: &Trace, declared: &Predicate) -> Result<Option<u64>, Error> {
    for (segment, (_, end)) in trace.lineage().iter().enumerate().rev().skip(1) {
        let before = of_segment(trace, segment)?;
        let before = before.as_ref().and_then(|pack| pack.predicate(declared.name()));
        if !before.is_some_and(|before| before.means_the_same(declared)) {
            return Ok(Some(end + 1));
        }
    }
    Ok(None)
}

/// Returns the predicates that a transition of a type broke: they hold in the state before it and not in the state after. A
/// predicate that cannot be judged does not hold; a module that a limit ended is an error.
pub(crate) fn newly_broken(
    predicates: &[Declared],
    type_name: &TypeName,
    before: &RunState,
    after: &RunState,
) -> Result<Vec<Arc<str>>, Error> {
    let [before, after] = [before, after].map(|head| (head.state(), head.served()));
    let holds = |predicate: &Predicate, (state, counters): &(&Value, Value)| {
        let verdict = predicate.judge(state, Some(counters));
        let verdict = verdict.map_err(|stopped| Error::from(stopped).asked_as(predicate.name()))?;
        Ok::<_, Error>(verdict == Verdict::Ok)
    };
    let mut broken = Vec::new();
    for predicate in predicates.iter().map(|declared| &declared.predicate) {
        if predicate.is_for(Some(type_name)) && !holds(predicate, &after)? && holds(predicate, &before)? {
            broken.push(predicate.name().into());
        }
    }
    Ok(broken)
}

/// Returns the text of the pack in force in a run of a lineage.
pub(crate) fn text_of_segment(trace: &Trace, segment: usize) -> Option<Arc<str>> {
    Some(carrier(trace, segment).body().value("/pack_text")?.as_str()?.into())
}

/// Returns the reducer of a run: that of its pack, or `delta/1` without a pack.
pub fn reducer_of(trace: &Trace) -> Result<Box<dyn Reducer + Send + Sync>, Error> {
    reducer_of_segment(trace, trace.begins().len() - 1)
}

/// As [`reducer_of`], for one run of a lineage.
pub(crate) fn reducer_of_segment(
    trace: &Trace,
    segment: usize,
) -> Result<Box<dyn Reducer + Send + Sync>, Error> {
    Ok(of_segment(trace, segment)?.map_or_else(|| Box::new(DeltaReducer) as _, |pack| pack.reducer()))
}

/// Returns the pack in force for the transition with this tick, with what extensions add to it (dendrer paper 4.4);
/// `None` if the run has no pack, or if the pack was erased or withheld.
pub fn in_force(trace: &Trace, tick: u64, before: &Value) -> Result<Option<Pack>, Error> {
    let pack = of_segment(trace, trace.segment(tick))?;
    let version = trace.rules_version(tick);
    pack.map(|pack| extended(trace.name(), pack, (tick, version), before)).transpose()
}

/// Returns a pack with what the extensions in a state add to it from this tick on, by the rules of a version of the kernel.
pub(crate) fn extended(
    run: &RunName,
    pack: Pack,
    (tick, version): (u64, u64),
    before: &Value,
) -> Result<Pack, Error> {
    if extend::listed(pack.value(), before).next().is_none() {
        return Ok(pack);
    }
    let value = extend::in_force(pack.value(), before, tick);
    read_recorded(run, &value, version)
}

/// Reads a pack that a run carries, or that follows from what it carries, by the version of the rules that the run goes by.
pub(crate) fn read_recorded(run: &RunName, value: &Value, version: u64) -> Result<Pack, Error> {
    check_by(value, version).map_err(|faults| Error::PackRecorded {
        run: run.clone(),
        why: faults.first().map(ToString::to_string).unwrap_or_default(),
    })
}

/// Returns the reducer of a run that is to begin.
pub(crate) fn reducer_for(start: &Start) -> Result<Box<dyn Reducer + Send + Sync>, Error> {
    let Some(bound) = &start.pack else { return Ok(Box::new(DeltaReducer)) };
    Ok(read_recorded(&start.run, &bound.value, KERNEL_VERSION)?.reducer())
}

/// Findings of rules on the transitions of a run that refuses nothing, each with its tick.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RuleNotes {
    /// Errors that reducers met.
    pub errors: Vec<(u64, String)>,
    /// Transitions that stage 2 would have refused.
    pub would_refuse: Vec<NotedRefusal>,
}

/// A transition that is kept, and that stage 2 would have refused.
#[derive(Debug, Clone, PartialEq)]
pub struct NotedRefusal {
    /// The tick.
    pub tick: u64,
    /// The code of each reason, with the ids of the rules and commitments that it names.
    pub reasons: Vec<(Code, Vec<Arc<str>>)>,
}

impl RuleNotes {
    /// Returns what is on record in a run.
    pub fn of(trace: &Trace) -> Result<RuleNotes, Error> {
        let mut notes = RuleNotes::default();
        trace.for_each(1, trace.tip(), &mut |tick, record| {
            notes.add(tick, &record);
            ControlFlow::Continue(())
        })?;
        Ok(notes)
    }

    /// Adds what a record notes.
    pub fn add(&mut self, tick: u64, made: &Record) {
        self.errors.extend(rule_errors(made).into_iter().map(|error| (tick, error)));
        let sealed = made.body().value(&format!("/{WOULD_REFUSE}"));
        let reasons: Vec<_> = sealed
            .iter()
            .flat_map(Value::as_array)
            .flat_map(|all| all.iter())
            .filter_map(|one| {
                let ids = one.get("ids").and_then(Value::as_array).into_iter().flat_map(|ids| ids.iter());
                let ids = ids.filter_map(Value::as_str).map(Arc::from).collect();
                Some((one.get("code")?.as_str()?.parse().ok()?, ids))
            })
            .collect();
        if !reasons.is_empty() {
            self.would_refuse.push(NotedRefusal { tick, reasons });
        }
    }
}

/// Returns the errors that rules met when a record was made; the state did not follow.
pub(crate) fn rule_errors(made: &Record) -> Vec<String> {
    let Some(Value::Array(anomalies)) = made.body().value("/anomalies") else { return Vec::new() };
    let is_error = |note: &&Value| note.get("kind").and_then(Value::as_str) == Some("reducer_error");
    anomalies.iter().filter(is_error).map(|note| sealed::words(note).unwrap_or_default()).collect()
}
