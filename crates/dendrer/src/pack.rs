//! Packs in files and in runs: reading one, beginning a run with it, reducing a recorded run again under it.
//!
//! A run carries its pack: the value that decides, bound by the digest in every header, and the text that people
//! wrote. A module that a pack names is a file beside its text and bytes in its value. So replay needs no file and no
//! YAML, and a newcomer would break one rule: nothing here reads a pack, or a module of one, from anywhere but the record
//! once the run has begun.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_kernel::cases::Failed;
use dendrer_kernel::ontology::check_authorship;
use dendrer_kernel::pack::cases::Case;
use dendrer_kernel::pack::{Bound, Declared, Fault, Origin, Pack, extend};
use dendrer_kernel::predicate::{Predicate, Verdict};
use dendrer_kernel::reduce::{DeltaReducer, Reducer};
use dendrer_kernel::step::{Extension, Head, Stage, Start, given_state};
use dendrer_object::record::{Author, Link, Record};
use dendrer_object::{Digest, Pointer, RunName, TypeName, Value};
use dendrer_store::Shared;
use dendrer_store::prelude::*;

use crate::error::Error;
use crate::recorder::{Recorder, Surroundings};
use crate::repo::Repo;
use crate::run::casebook_name;
use crate::trace::Trace;

mod files;
mod retold;
pub mod yaml;

pub use files::{Files, text_of};
use retold::{Plan, is_extension};
pub use yaml::{Mark, Problem};

/// How many transitions are appended together while a run is reduced again.
const GROUP: u64 = 256;

/// A pack as it was read from a text.
#[derive(Debug)]
pub struct Source {
    /// The pack.
    pub pack: Pack,
    /// The text, as it was written.
    pub text: Arc<str>,
    document: yaml::Document,
}

/// What came out of reducing a run again.
#[derive(Debug, Clone, PartialEq)]
pub struct Reduced {
    /// How many transitions there are.
    pub ticks: u64,
    /// The id of the last record.
    pub tip: Digest,
    /// The ticks at which a rule met an error, with what it met.
    pub errors: Vec<(u64, String)>,
    /// How many transitions wrote something.
    pub wrote: u64,
    /// The extensions of its contract, which govern it as they did the source.
    pub extensions: Vec<Retold>,
}

/// An extension that was retold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retold {
    /// What it is called.
    pub id: Arc<str>,
    /// The tick that puts it on record.
    pub tick: u64,
    /// The first tick under it.
    pub from: u64,
}

/// Reads a pack from YAML or JSON and checks it as a whole. Problems come in the order of the text. A text that names
/// files is read with [`read_with`].
pub fn read(text: &[u8]) -> Result<Source, Vec<Problem>> {
    read_with(text, Files::Nowhere)
}

/// As [`read`], with the files that the text names.
pub fn read_with(text: &[u8], files: Files<'_>) -> Result<Source, Vec<Problem>> {
    let document = yaml::Document::read(text)?;
    let (document, mut missing) = files.fill(document);
    match check(&document.value) {
        Ok(pack) if missing.is_empty() => {
            let text = String::from_utf8_lossy(text).into();
            Ok(Source { pack, text, document })
        }
        Ok(_) => Err(missing),
        Err(faults) => {
            // What could not be read is told once.
            let is_told = |fault: &Fault| missing.iter().any(|told| told.place == fault.path.dotted());
            let faults = faults.into_iter().filter(|fault| !is_told(fault)).collect();
            missing.extend(problems(&document, faults));
            missing.sort_by_key(|problem| problem.mark);
            Err(missing)
        }
    }
}

/// Checks a pack, with the engine that runs the modules that it names. Whatever reduces or judges with a pack reads it here.
pub(crate) fn check(value: &Value) -> Result<Pack, Vec<Fault>> {
    Pack::read_with(value, &dendrer_wasm::Engine::default())
}

fn problems(document: &yaml::Document, faults: Vec<Fault>) -> Vec<Problem> {
    let mut problems: Vec<Problem> = faults
        .into_iter()
        .map(|fault| Problem {
            code: fault.code,
            mark: document.mark(&fault.path, fault.at_name, fault.span),
            place: fault.path.dotted(),
            message: fault.message,
            hint: fault.hint,
        })
        .collect();
    problems.sort_by_key(|problem| problem.mark);
    problems
}

/// What became of one test of a pack.
#[derive(Debug)]
pub struct Tested {
    /// The test.
    pub name: Arc<str>,
    /// Where it stands.
    pub mark: Mark,
    /// What came out otherwise, with its place; nothing where all is well.
    pub failed: Vec<(Mark, String)>,
    /// The rules that wrote to the state in it, by number from 1.
    pub rules: BTreeSet<usize>,
    /// Where a limit ended a module, and what it was asked: then it is not known whether the test has failed.
    pub stopped: Option<(Mark, Error)>,
}

impl Source {
    /// Runs the tests that the pack carries.
    pub fn test(&self) -> Vec<Tested> {
        self.run(&self.pack.cases, &self.document)
    }

    /// Runs the tests of another file.
    pub fn test_with(&self, cases: &[u8]) -> Result<Vec<Tested>, Vec<Problem>> {
        let document = yaml::Document::read(cases)?;
        let cases = self.pack.read_cases(&document.value).map_err(|faults| problems(&document, faults))?;
        Ok(self.run(&cases, &document))
    }

    fn run(&self, cases: &[Case], document: &yaml::Document) -> Vec<Tested> {
        let place = |failed: Failed| (document.mark(&failed.path, false, None), failed.message);
        let run = |case: &Case| {
            let ran = dendrer_kernel::cases::run(&self.pack, case);
            let stopped = ran.stopped.map(|(path, predicate, stopped)| {
                let error = predicate.iter().fold(Error::from(stopped), |error, name| error.asked_as(name));
                (document.mark(&path, false, None), error)
            });
            Tested {
                stopped,
                name: Arc::clone(&case.name),
                mark: document.mark(&case.path, false, None),
                failed: ran.failed.into_iter().map(place).collect(),
                rules: ran.rules,
            }
        };
        cases.iter().map(run).collect()
    }

    /// Binds the pack to a run that is to begin. What `start` has as state is `s0`; the pack says which state the run
    /// begins with. A given s0 is recorded by its digest, among the inputs.
    pub fn bind(&self, start: Start) -> Result<Start, Error> {
        let s0 = start.state;
        let given = s0.as_object().is_none_or(|members| !members.is_empty()).then(|| s0.digest());
        let origin = Origin { s0: Some(s0), meta: start.meta.clone(), inputs: start.inputs.clone() };
        let state = self.pack.init(&origin)?;
        let inputs = match given {
            None => start.inputs,
            Some(digest) => Some(with_member(start.inputs, "s0", Value::from(digest))),
        };
        Ok(Start {
            state,
            inputs,
            goal: start.goal.or_else(|| self.pack.goal.clone()),
            reducer: self.pack.engine.as_str().into(),
            pack: Some(Bound { value: self.pack.value().clone(), text: Arc::clone(&self.text) }),
            ..start
        })
    }
}

fn with_member(value: Option<Value>, name: &str, member: Value) -> Value {
    let mut members = value.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
    members.set(name, member);
    Value::Object(members)
}

/// Begins a run with a pack. What `start` has as state is the `s0` of the pack's `init`.
pub fn begin(
    store: &Shared,
    source: &Source,
    start: Start,
    surroundings: Box<dyn Surroundings>,
) -> Result<Recorder, Error> {
    Recorder::begin(store, &source.bind(start)?, surroundings)
}

/// Returns the pack that is in force at the tip of a run; `None` where it has none, or where it was erased or withheld.
pub fn of_run(trace: &Trace) -> Result<Option<Pack>, Error> {
    of_segment(trace, trace.begins().len() - 1)
}

/// The pack in force in a run of a lineage. A fork that carries none goes on under its parent's.
pub(crate) fn of_segment(trace: &Trace, segment: usize) -> Result<Option<Pack>, Error> {
    let fail = |why: String| Error::PackRecorded { run: trace.name().clone(), why };
    let Some(value) = carrier(trace, segment).body().value("/pack") else { return Ok(None) };
    let bound = trace.begins()[segment].header().pack;
    if bound != Some(dendrer_kernel::pack::digest(&value)) {
        return Err(fail("it is not the one that the header of the run names".to_owned()));
    }
    let first = |faults: Vec<Fault>| {
        let first = faults.first().map(ToString::to_string).unwrap_or_default();
        fail(format!("it does not check: {first}"))
    };
    check(&value).map(Some).map_err(first)
}

/// The record that carries the pack in force in a run of a lineage.
fn carrier(trace: &Trace, segment: usize) -> &Record {
    let place = Pointer::of(["pack"]);
    let has_pack = |begin: &&Record| begin.body().fields().iter().any(|field| field.pointer == place);
    trace.begins()[..=segment].iter().rev().find(has_pack).unwrap_or(trace.start())
}

/// Returns the text of the pack that a run carries, and whether it says what the pack says. A text names the files of
/// modules and not their bytes, so of a module it says no more than that there is one, and where: the bytes are those of
/// the pack.
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

/// The first tick at which a predicate that the pack of a run declares was part of the contract; `None` where that is the
/// whole run. A fork may go on under another pack, or under one with another constant: then the name meant something else.
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

/// The predicates that a transition of a type broke: they hold no more in the state after it, and did before. What cannot be
/// judged does not hold; where a limit ended a module, nothing is known.
pub(crate) fn newly_broken(
    predicates: &[Declared],
    type_name: &TypeName,
    before: &Head,
    after: &Head,
) -> Result<Vec<Arc<str>>, Error> {
    let [before, after] = [before, after].map(|head| (head.state(), head.counters().to_value()));
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

/// The text of the pack in force in a run of a lineage.
pub(crate) fn text_of_segment(trace: &Trace, segment: usize) -> Option<Arc<str>> {
    Some(carrier(trace, segment).body().value("/pack_text")?.as_str()?.into())
}

/// Returns the reducer of a run: that of its pack, else `delta/1`.
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
/// `None` where the run has none, or where it was erased or withheld.
pub fn in_force(trace: &Trace, tick: u64, before: &Value) -> Result<Option<Pack>, Error> {
    let pack = of_segment(trace, trace.segment(tick))?;
    pack.map(|pack| extended(trace.name(), pack, tick, before)).transpose()
}

/// A pack with what the extensions in a state add to it from this tick on.
pub(crate) fn extended(run: &RunName, pack: Pack, tick: u64, before: &Value) -> Result<Pack, Error> {
    if extend::listed(pack.value(), before).next().is_none() {
        return Ok(pack);
    }
    let value = extend::in_force(pack.value(), before, tick);
    read_recorded(run, &value)
}

/// Reads a pack that a run carries, or that follows from what it carries.
pub(crate) fn read_recorded(run: &RunName, value: &Value) -> Result<Pack, Error> {
    check(value).map_err(|faults| Error::PackRecorded {
        run: run.clone(),
        why: faults.first().map(ToString::to_string).unwrap_or_default(),
    })
}

/// Returns the reducer of a run that is to begin.
pub(crate) fn reducer_for(start: &Start) -> Result<Box<dyn Reducer + Send + Sync>, Error> {
    let Some(bound) = &start.pack else { return Ok(Box::new(DeltaReducer)) };
    Ok(read_recorded(&start.run, &bound.value)?.reducer())
}

impl Repo {
    /// Makes a run with the transitions of another one under another pack.
    pub fn reduce(
        &self,
        source: &Trace,
        pack: &Source,
        name: RunName,
        s0: Option<Value>,
    ) -> Result<Reduced, Error> {
        reduce(source, self.writer()?, pack, name, s0, self.environment())
    }
}

/// Reduces a recorded run again under a pack, into a new run: the same transitions at the same ticks, with states by
/// the rules of the pack; where contracts are enforced, a `predicate.violation` of the source gives way to those found here. `s0` is the state that the pack's `init` is given; where there is none, that of the source.
///
/// Everything that can stop it is looked at before anything is written, an extension that the new pack does not take among it;
/// under a module, which a limit may end, nothing is written before all of it was reduced. A rule that meets an error changes nothing at
/// that tick and is noted there. Links to records of the source lead to the new records of the same ticks.
pub fn reduce(
    source: &Trace,
    store: &Shared,
    pack: &Source,
    name: RunName,
    s0: Option<Value>,
    surroundings: Box<dyn Surroundings>,
) -> Result<Reduced, Error> {
    casebook_name::refuse_source(source)?;
    let plan = check_source(source, &pack.pack)?;
    let start = pack.bind(begin_again(source, name, s0)?)?;
    plan.rehearse(source, store.info().id, &start, pack)?;
    let mut recorder = Recorder::begin(store, &start, surroundings)?;
    let mut renamed: BTreeMap<Digest, Digest> = BTreeMap::from([(source.start().id(), recorder.head().id())]);
    let tip = recorder.head().id();
    let mut reduced = Reduced { ticks: 0, tip, errors: Vec::new(), wrote: 0, extensions: Vec::new() };
    let mut result = Ok(());
    source.for_each(1, source.tip(), &mut |tick, record| {
        let relink =
            |link: Link| Link { hash: renamed.get(&link.hash).copied().unwrap_or(link.hash), ..link };
        let mut tell = || -> Result<Vec<Record>, Error> {
            let made = match is_extension(&record) {
                true => {
                    let extension = plan.extension(source, tick, &record, pack, recorder.head())?;
                    let made = recorder.extend(&extension)?;
                    reduced.extensions.extend(retold_as(&extension, &made));
                    vec![made]
                }
                false => recorder
                    .retell(&record, &relink)
                    .map_err(|error| error.stopped_at(source.name(), tick))?,
            };
            if recorder.may_append() && tick % GROUP == 0 {
                recorder.append()?;
            }
            Ok(made)
        };
        match tell() {
            Ok(made) => {
                let first = made.first().map_or_else(|| recorder.head().id(), Record::id);
                renamed.insert(record.id(), first);
                made.iter().for_each(|made| note(&mut reduced, made.header().tick.unwrap_or(tick), made));
                ControlFlow::Continue(())
            }
            Err(error) => {
                result = Err(error);
                ControlFlow::Break(())
            }
        }
    })?;
    result?;
    recorder.commit()?;
    Ok(reduced)
}

fn retold_as(extension: &Extension, made: &Record) -> Option<Retold> {
    let (tick, id) = (made.header().tick?, extension.id().into());
    let from = extend::effective_from(extension.value())?.max(tick + 1);
    Some(Retold { id, tick, from })
}

/// Looks at every record for what could stop a reduction half-way.
fn check_source(source: &Trace, pack: &Pack) -> Result<Plan, Error> {
    let registered: BTreeSet<TypeName> = pack.types.keys().cloned().collect();
    let (mut plan, mut result) = (Plan::default(), Ok(()));
    source.for_each(1, source.tip(), &mut |tick, record| {
        plan.note(tick, &record);
        result = check_record(source, tick, &record, &registered);
        if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    result.map(|()| plan)
}

fn check_record(
    source: &Trace,
    tick: u64,
    record: &Record,
    registered: &BTreeSet<TypeName>,
) -> Result<(), Error> {
    let closed = record.body().fields().iter().find(|field| record.body().text(field).is_none());
    if let Some(field) = closed {
        let pointer = Some(field.pointer.clone());
        return Err(dendrer_kernel::replay::ReplayError::Erased { tick, pointer }.into());
    }
    let header = record.header();
    match &header.type_name {
        // The door judges an extension by itself.
        Some(_) if header.author == Author::Institution && is_extension(record) => Ok(()),
        Some(type_name) if header.author != Author::Kernel => {
            check_authorship(type_name, header.author, registered).map_err(|error| Error::NotUnderPack {
                run: source.name().clone(),
                tick,
                error,
            })
        }
        _ => Ok(()),
    }
}

/// What a run that is reduced again begins with: what its source began with, and where that is.
fn begin_again(source: &Trace, name: RunName, s0: Option<Value>) -> Result<Start, Error> {
    let content = source.start().content();
    let stage = content.get("stage").and_then(Value::as_u64).and_then(Stage::from_number);
    let from = Value::record([
        ("run", Value::from(source.name().as_str())),
        ("store", Value::from(source.start().header().store.to_string())),
        ("ticks", Value::from(source.tip())),
        ("tip", Value::from(source.record(source.tip())?.id())),
    ]);
    Ok(Start {
        goal: content.get("goal").and_then(Value::as_str).map(Arc::from),
        // Nothing is enforced while a record is reduced again: what happened has happened.
        stage: stage.unwrap_or(Stage::Observe).min(Stage::Replay),
        state: s0.unwrap_or_else(|| given_state(&content)),
        meta: content.get("meta").cloned(),
        inputs: Some(with_member(content.get("inputs").cloned(), "reduced_from", from)),
        ..Start::new(name)
    })
}

/// Returns where a rule met an error when a run was recorded, and which.
pub fn errors_of_rules(trace: &Trace) -> Result<Vec<(u64, String)>, Error> {
    let mut errors = Vec::new();
    trace.for_each(1, trace.tip(), &mut |tick, record| {
        note_errors(&mut errors, tick, &record);
        ControlFlow::Continue(())
    })?;
    Ok(errors)
}

fn note(reduced: &mut Reduced, tick: u64, made: &Record) {
    reduced.ticks = tick;
    reduced.tip = made.id();
    let delta = made.body().value("/delta");
    let wrote = delta.as_ref().and_then(Value::as_array).is_some_and(|delta| !delta.is_empty());
    reduced.wrote += u64::from(wrote);
    note_errors(&mut reduced.errors, tick, made);
}

/// Notes where a rule met an error when a record was made, and which.
pub fn note_errors(errors: &mut Vec<(u64, String)>, tick: u64, made: &Record) {
    let Some(Value::Array(anomalies)) = made.body().value("/anomalies") else { return };
    for anomaly in anomalies.iter() {
        if anomaly.get("kind").and_then(Value::as_str) == Some("reducer_error") {
            let why = anomaly.get("message").and_then(Value::as_str).unwrap_or_default();
            errors.push((tick, why.to_owned()));
        }
    }
}
