//! Seeded merge: a new run that begins with what was chosen from several others (dendrer paper 9.6 and 11.1).
//!
//! Not a merge of histories: tool calls do not commute, and what was done is done. The new run has a beginning of its own,
//! and its `run` record says of every value which run, tick and record it is from. If the runs have different values in
//! one place, all of them are kept in that record. A strategy may take one; otherwise the place stays empty until a person
//! decides, and that is a transition like any other ([`resolve`]).
//!
//! Each source is replayed from its beginning before anything of it is used.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_kernel::commitment::{self, CONTRACT, SpentTogether};
use dendrer_kernel::pack::{Bound, Combine, Origin, Pack, PackEngine, extend};
use dendrer_kernel::predicate::Verdict;
use dendrer_kernel::step::{RunState, Stage, Start, judge_seeded};
use dendrer_kernel::unknown::{CONFLICT, UnknownPlaces};
use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::record::Record;
use dendrer_object::{Array, Digest, Object, Pointer, RunName, Value, marker, tag};
use dendrer_store::Shared;

use crate::change::denied::forbidden;
use crate::change::history::{History, add_history};
use crate::error::Error;
use crate::record::recorder::{Environment, Recorder};
use crate::repo::Repo;
use crate::run::casebook_name;
use crate::run::copied::{is_reserved, put_at};
use crate::run::merged::{MEMBER, OwnedRecord, merge_of};
use crate::run::pack;
use crate::run::replay::replay_range;
use crate::run::trace::Trace;

pub mod question;
mod resolve;
mod sync;

pub use resolve::{ConflictStanding, Resolution, Take, resolve, standings};

pub use sync::{SyncItem, sync_conflicts};

use dendrer_kernel::step::KERNEL_VERSION;
use resolve::standings_at;

pub use crate::error::MergeError;
pub use crate::limits::{PLACES_MAX, SOURCES_MAX};
pub use crate::run::merged::{Conflict, MergeSource, Merged, NamedSource, Seeded, merged};

/// A run, and the tick up to which it counts.
#[derive(Clone, Copy)]
pub struct MergeInput<'t> {
    /// The run.
    pub trace: &'t Trace,
    /// The tick whose state is read.
    pub tick: u64,
}

dendrer_object::words! {
    /// Who decides where the sources have different values (forensic debugger specification, 3.3).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Strategy {
        /// Somebody, later: all values are kept and none is taken.
        Manual = "manual",
        /// The value that was committed last is taken.
        Lww = "lww",
        /// The value whose author was surest is taken.
        Confidence = "confidence",
        /// The value of the run that is named first is taken.
        First = "first",
    }
}

/// How a merge is made.
#[derive(Debug, Clone)]
pub struct MergeTerms {
    /// The new run's id.
    pub run: RunName,
    /// The places that are seeded; none stands for all members of the states.
    pub artifacts: Vec<Pointer>,
    /// Who decides where values differ.
    pub strategy: Strategy,
    /// Takes values alone: no pack, no policy rules, no goal. Otherwise those of the sources hold on, and must be the same.
    pub seed_only: bool,
    /// The reason why the run begins although its state breaks rules that no source breaks.
    pub although: Option<Arc<str>>,
}

/// A place of a merge where a source differs from another one, or from what they began with.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedPlace {
    /// The place.
    pub path: Pointer,
    /// The value at each last common record; `None` where it had none.
    pub base: Vec<Option<Value>>,
    /// The value in each source, in order.
    pub sides: Vec<Option<Value>>,
    /// The value that the new run begins with.
    pub after: Option<Value>,
}

/// Lists what a merge decides, place by place, in the order of places: what was there at the last common record, what each source has,
/// and what the new run begins with. A value that is the same everywhere is left out.
pub fn plan(sources: &[MergeInput<'_>], merged: &Merged, after: &Value) -> Result<Vec<PlannedPlace>, Error> {
    let store = sources[0].trace.store();
    let bases = merged.base.iter().map(|moment| Trace::open(store, &moment.run)?.state(moment.tick));
    let bases = bases.collect::<Result<Vec<Value>, Error>>()?;
    let sides = sources.iter().map(|source| source.trace.state(source.tick));
    let sides = sides.collect::<Result<Vec<Value>, Error>>()?;
    let taken = merged.seeded.iter().chain(&merged.removed).map(|place| &place.path);
    let mut places: Vec<&Pointer> = taken.chain(merged.conflicts.iter().map(|one| &one.path)).collect();
    places.sort();
    let at = |path: &Pointer, states: &[Value]| -> Vec<Option<Value>> {
        states.iter().map(|state| path.get(state).cloned()).collect()
    };
    let place = |path: &Pointer| PlannedPlace {
        path: path.clone(),
        base: at(path, &bases),
        sides: at(path, &sides),
        after: path.get(after).cloned(),
    };
    let differs =
        |place: &PlannedPlace| place.base.iter().chain(&place.sides).any(|one| *one != place.sides[0]);
    Ok(places.into_iter().map(place).filter(differs).collect())
}

/// Returns the rules that cannot be judged because no value was taken for what they read, with the reason. A rule that reads an
/// open conflict is left out: the conflict is decided first.
pub fn unjudged(head: &RunState, merged: &Merged) -> Vec<(String, String)> {
    let waits = |path| {
        merged.conflicts.iter().any(|conflict| conflict.taken.is_none() && conflict.path.overlaps(path))
    };
    let rules = head.policy().iter().filter(|rule| !rule.reads_counters());
    let rules = rules.filter(|rule| !rule.read_set().iter().any(waits));
    let unjudged = rules.filter_map(|rule| match rule.verdict(head.state(), None) {
        Verdict::Uncertain(why) => Some((rule.name().to_owned(), why)),
        _ => None,
    });
    unjudged.collect()
}

impl Repo {
    /// Makes the beginning of a run that is seeded from others. The caller commits what was gathered, or discards it.
    pub fn merge(&self, sources: &[MergeInput<'_>], terms: &MergeTerms) -> Result<(Recorder, Merged), Error> {
        merge(sources, self.writer()?, terms, self.environment())
    }
}

/// Makes the beginning of a run that is seeded from others. The caller commits the gathered records, or discards them.
/// The sources are read through one handle and the new run is written through another, of the same store.
pub fn merge(
    sources: &[MergeInput<'_>],
    store: &Shared,
    terms: &MergeTerms,
    surroundings: Box<dyn Environment>,
) -> Result<(Recorder, Merged), Error> {
    check_sources(sources)?;
    let places = chosen(&terms.artifacts)?;
    let sides: Vec<Side<'_>> = sources
        .iter()
        .zip('a'..)
        .map(|(source, letter)| Side::read(*source, &letter.to_string()))
        .collect::<Result<_, _>>()?;
    let mut start = match terms.seed_only {
        true => begin_seeded(sources, &terms.run)?,
        false => begin_with(sources, &terms.run)?,
    };
    let bases = last_common(sources)?;
    let states: Vec<Value> = bases.iter().map(|(_, state)| state.clone()).collect();
    let pack = start
        .pack
        .as_ref()
        .map(|bound| pack::read_recorded(&terms.run, &bound.value, KERNEL_VERSION))
        .transpose()?;
    let mut merging = Merging {
        sides: &sides,
        bases: &states,
        strategy: terms.strategy,
        pack: pack.as_ref(),
        seeded: Vec::new(),
        removed: Vec::new(),
        conflicts: Vec::new(),
        state: Object::default(),
    };
    merging.places(&places)?;
    let Merging { seeded, removed, conflicts, state, .. } = merging;
    start.state = Value::Object(state);
    start.unknown = unknown_of(&sides, &places, [&seeded, &removed], &conflicts);
    for conflict in conflicts.iter().filter(|conflict| conflict.taken.is_none()) {
        start.unknown.clear(&conflict.path);
        start.unknown.mark(conflict.path.clone(), 0, CONFLICT);
    }
    if let Some(pack) = &pack {
        begin_under(&mut start, pack, &conflicts)?;
    }
    let named = sides.iter().map(|side| side.named.clone()).collect();
    let strategy = terms.strategy.as_str().into();
    let merged = Merged {
        although: None,
        violations: Vec::new(),
        sources: named,
        strategy,
        seed_only: terms.seed_only,
        is_whole: places.is_empty() && !terms.seed_only,
        base: bases.into_iter().map(|(moment, _)| moment).collect(),
        seeded,
        removed,
        conflicts,
    };
    bind(&mut start, sources)?;
    begin_judged(sources, store, terms, (start, merged), surroundings)
}

/// The terms of a run that takes values alone: the stage of its sources.
fn begin_seeded(sources: &[MergeInput<'_>], run: &RunName) -> Result<Start, Error> {
    // Stage 3 asks for a pack, which is not carried over.
    let stages = sources.iter().map(|source| Ok(source.trace.head(source.tick)?.stage()));
    let highest = stages.collect::<Result<Vec<_>, Error>>()?.into_iter().max();
    let stage = highest.map(|stage| stage.min(Stage::Contracts));
    Ok(Start { stage, ..Start::new(run.clone()) })
}

/// Binds the new run as its sources are bound: by their commitments, their contract and what is forbidden there.
fn bind(start: &mut Start, sources: &[MergeInput<'_>]) -> Result<(), Error> {
    let held = sources.iter().map(|source| Ok(source.trace.at(source.tick)?.commitments));
    let held = held.collect::<Result<Vec<_>, Error>>()?;
    let names = sources.iter().map(|source| source.trace.name().as_str());
    let spent = spent_together(sources)?;
    start.commitments = commitment::merged(&names.zip(&held).collect::<Vec<_>>(), &spent);
    start.contract = contract_of(sources)?;
    start.denied = forbidden(sources.iter().map(|source| (source.trace, source.tick)))?;
    Ok(())
}

/// Begins the merged run, and judges its state by the rules of its sources.
fn begin_judged(
    sources: &[MergeInput<'_>],
    store: &Shared,
    terms: &MergeTerms,
    (mut start, mut merged): (Start, Merged),
    surroundings: Box<dyn Environment>,
) -> Result<(Recorder, Merged), Error> {
    // A run that was seeded from made-up runs is made up, too.
    let synthetic = sources.iter().find_map(|source| is_synthetic(source.trace));
    let meta = |merged: &Merged| {
        Some(Value::record([(MEMBER, merged.to_value())].into_iter().chain(synthetic.clone())))
    };
    start.meta = meta(&merged);
    let recorder = Recorder::begin(store, &start, surroundings)?;
    let heads = sources.iter().map(|source| source.trace.head(source.tick)).collect::<Result<Vec<_>, _>>()?;
    merged.violations = judge_seeded(recorder.head(), &heads.iter().collect::<Vec<_>>());
    if merged.violations.is_empty() {
        return Ok((recorder, merged));
    }
    let violations = merged.violations.clone();
    match &terms.although {
        Some(_) => merged.although = terms.although.clone(),
        None if recorder.head().stage() < Stage::Contracts => return Ok((recorder, merged)),
        None => {
            let unjudged = Vec::new();
            return Err(Error::BeginsViolated { run: terms.run.clone(), violations, unjudged });
        }
    }
    // The record names the reason, so it is made once more.
    start.meta = meta(&merged);
    Ok((Recorder::begin(store, &start, recorder.into_surroundings())?, merged))
}

/// Refuses fewer sources than two, too many, and one that is named twice.
fn check_sources(sources: &[MergeInput<'_>]) -> Result<(), MergeError> {
    if !(2..=SOURCES_MAX).contains(&sources.len()) {
        return Err(MergeError::Sources(sources.len()));
    }
    let mut moments = BTreeSet::new();
    for MergeInput { trace, tick } in sources {
        if !moments.insert((trace.name(), tick)) {
            return Err(MergeError::Twice { run: trace.name().clone(), tick: *tick });
        }
    }
    Ok(())
}

/// Makes a seeded state one of a pack. A place with an open conflict stays empty.
fn begin_under(start: &mut Start, pack: &Pack, conflicts: &[Conflict]) -> Result<(), Error> {
    let open = conflicts.iter().filter(|conflict| conflict.taken.is_none()).map(|conflict| &conflict.path);
    let open: Vec<Pointer> = open.cloned().collect();
    // If intents bring no change of their own, a conflict cannot be decided later.
    if let (PackEngine::Fold | PackEngine::Wasm, Some(path)) = (pack.engine, open.first()) {
        return Err(MergeError::OpenUnderRules(path.clone()).into());
    }
    let seeded = std::mem::replace(&mut start.state, Value::Null);
    start.state = filled(pack, &seeded, &open)?;
    for (place, since) in pack.begins_unknown(&start.unknown).iter() {
        if place.get(&seeded).is_none() {
            start.unknown.mark_as(place.clone(), since);
        }
    }
    start.reducer = pack.engine.as_str().into();
    Ok(())
}

/// The places of a merged state that are unknown: those of its sources, as far as they lie in `places`, which is empty for all, and
/// in what was taken from them. They are unknown from the beginning of the merged run, also if no source has a value there.
fn unknown_of(
    sides: &[Side<'_>],
    places: &[Pointer],
    taken: [&Vec<Seeded>; 2],
    conflicts: &[Conflict],
) -> UnknownPlaces {
    let mut unknown = UnknownPlaces::default();
    let is_kernels = |place: &Pointer| place.tokens().next().is_some_and(|top| is_reserved(&top));
    for side in sides {
        let name = &side.named.name;
        let is_from_others = |place: &Pointer| {
            let mut seeded = taken.into_iter().flatten().filter(|seeded| seeded.path.contains(place));
            let mut decided = conflicts.iter().filter(|conflict| conflict.path.contains(place));
            seeded.any(|seeded| !seeded.from.iter().any(|from| from.source == *name))
                || decided.any(|conflict| conflict.taken.as_ref().is_some_and(|taken| taken != name))
        };
        let marks = UnknownPlaces::of(&side.state);
        for (place, since) in marks.iter().filter(|(place, _)| !is_kernels(place) && !is_from_others(place)) {
            if places.is_empty() {
                unknown.mark(place.clone(), 0, &since.code);
            }
            for path in places.iter().filter(|path| path.overlaps(place)) {
                let inner = if place.contains(path) { path } else { place };
                unknown.mark(inner.clone(), 0, &since.code);
            }
        }
    }
    unknown
}

/// The places that were asked for, none below another.
fn chosen(artifacts: &[Pointer]) -> Result<Vec<Pointer>, MergeError> {
    let mut places: Vec<Pointer> = artifacts.to_vec();
    places.sort();
    places.dedup();
    for path in &places {
        match path.tokens().next() {
            None => {
                return Err(MergeError::Place(
                    path.clone(),
                    "it is the whole state; leave the artifacts out for that",
                ));
            }
            Some(top) if is_reserved(&top) => {
                return Err(MergeError::Place(
                    path.clone(),
                    "the kernel writes it, about the run it belongs to",
                ));
            }
            Some(_) => {}
        }
    }
    let all = places.clone();
    places.retain(|path| !all.iter().any(|other| other != path && other.contains(path)));
    Ok(places)
}

/// One source, once it was replayed: its state, and who wrote what last.
struct Side<'t> {
    named: NamedSource,
    trace: &'t Trace,
    state: Value,
    /// The newest write of each place that was ever written, by the text of its pointer.
    writes: BTreeMap<String, u64>,
    /// The places whose newest write added to what was there.
    added: BTreeSet<String>,
}

impl<'t> Side<'t> {
    fn read(source: MergeInput<'t>, name: &str) -> Result<Side<'t>, Error> {
        let MergeInput { trace, tick } = source;
        casebook_name::refuse_source(trace)?;
        let state = trace.state(tick)?;
        let reducer = pack::reducer_of_segment(trace, trace.segment(tick))?;
        let (mut writes, mut added) = (BTreeMap::new(), BTreeSet::new());
        let note = &mut |head: &RunState, record: &Record| {
            note_writes(&mut writes, head.tick(), record);
            for op in record.delta().iter().flat_map(|delta| &delta.0) {
                match adds(op) {
                    true => added.insert(op.path.as_str().to_owned()),
                    false => added.remove(op.path.as_str()),
                };
            }
            ControlFlow::Continue(())
        };
        replay_range(trace, 0, tick, &*reducer, false, note)??;
        let named = NamedSource {
            name: name.into(),
            run: trace.name().clone(),
            tick,
            record: trace.record(tick)?.id(),
            state_root: state.digest(),
        };
        Ok(Side { named, trace, state, writes, added })
    }

    /// Says which transition wrote a place last, with that record.
    fn origin(&self, path: &Pointer) -> Result<(MergeSource, Record), Error> {
        let tick = last_write(&self.writes, path);
        let record = self.trace.record(tick)?;
        Ok((MergeSource { source: Arc::clone(&self.named.name), tick, record: record.id() }, record))
    }

    /// The records that the value at a place is from: that of its newest write, or if the run was merged those of its sources.
    fn written_by(&self, path: &Pointer) -> Result<Vec<Record>, Error> {
        match last_write(&self.writes, path) {
            0 => begun_by(self.trace, path),
            tick => Ok(vec![self.trace.record(tick)?]),
        }
    }
}

/// The records that the value at a place of the beginning of a run is from.
fn begun_by(trace: &Trace, path: &Pointer) -> Result<Vec<Record>, Error> {
    let mut records: Vec<Record> = Vec::new();
    if let Some(merged) = merge_of(trace) {
        let places = merged.seeded.iter().chain(&merged.removed).filter(|place| place.path.overlaps(path));
        let mut from: Vec<&MergeSource> = places.flat_map(|place| &place.from).collect();
        for conflict in merged.conflicts.iter().filter(|conflict| conflict.path.overlaps(path)) {
            let taken = |from: &&MergeSource| Some(&from.source) == conflict.taken.as_ref();
            from.extend(conflict.values.iter().map(|(from, _)| from).filter(taken));
        }
        for MergeSource { source, tick, .. } in from {
            let Some(named) = merged.sources.iter().find(|named| named.name == *source) else { continue };
            let source = Trace::open(trace.store(), &named.run)?;
            match tick {
                0 => records.extend(begun_by(&source, path)?),
                tick => records.push(source.record(*tick)?),
            }
        }
    }
    if records.is_empty() {
        records.push(trace.record(0)?);
    }
    Ok(records)
}

/// Whether a change adds to what was there.
fn adds(op: &Op) -> bool {
    matches!(op.action, Action::Add | Action::Append)
}

fn note_writes(writes: &mut BTreeMap<String, u64>, tick: u64, record: &Record) {
    let delta = record.delta();
    for path in delta.iter().flat_map(Delta::paths) {
        writes.insert(path.as_str().to_owned(), tick);
    }
}

/// The newest write at, above or below a place; 0 if it was never written.
fn last_write(writes: &BTreeMap<String, u64>, path: &Pointer) -> u64 {
    let text = path.as_str();
    let above = text.match_indices('/').map(|(at, _)| &text[..at]).chain([text]);
    let above = above.filter_map(|place| writes.get(place).copied());
    // All that begins with the place and a slash; the character behind a slash is 0.
    let below = writes.range(format!("{text}/")..format!("{text}0")).map(|(_, tick)| *tick);
    above.chain(below).max().unwrap_or(0)
}

/// A merge on its way.
struct Merging<'m, 't> {
    sides: &'m [Side<'t>],
    /// The states at the last common records.
    bases: &'m [Value],
    strategy: Strategy,
    seeded: Vec<Seeded>,
    removed: Vec<Seeded>,
    conflicts: Vec<Conflict>,
    state: Object,
    /// The pack that holds on.
    pack: Option<&'m Pack>,
}

/// The value from which all sources began at a place.
enum BaseValue<'m> {
    /// They share no record.
    Nothing,
    /// The value, or that there was none.
    Agreed(Option<&'m Value>),
    /// Several last common records differ.
    Differ,
}

impl<'m> Merging<'m, '_> {
    fn base(&self, path: &Pointer) -> BaseValue<'m> {
        let mut values = self.bases.iter().map(|state| path.get(state));
        match values.next() {
            None => BaseValue::Nothing,
            Some(first) if values.all(|value| value == first) => BaseValue::Agreed(first),
            Some(_) => BaseValue::Differ,
        }
    }

    /// Merges the places that were chosen, or all members of the states if none was.
    fn places(&mut self, chosen: &[Pointer]) -> Result<(), Error> {
        if chosen.is_empty() {
            let states = self.sides.iter().map(|side| &side.state).chain(self.bases);
            let members = states.filter_map(Value::as_object).flat_map(Object::iter);
            let names: BTreeSet<&str> = members.map(|(name, _)| &**name).collect();
            for name in names.into_iter().filter(|name| !is_reserved(name)) {
                self.place(&Pointer::of([name]))?;
            }
        }
        for path in chosen {
            if self.sides.iter().all(|side| path.get(&side.state).is_none()) {
                return Err(MergeError::Nothing(path.clone()).into());
            }
            self.place(path)?;
        }
        Ok(())
    }

    /// Merges a place (design, section 4): maps leaf by leaf, anything else as a whole. A value that one source alone changed is
    /// taken from it; one that several changed in the same way, from them. Without a common record a place that some sources lack is
    /// taken from those that have it.
    fn place(&mut self, path: &Pointer) -> Result<(), Error> {
        let sides = self.sides;
        if sides.iter().any(|side| is_in_list(path, &side.state)) {
            return Err(MergeError::Place(path.clone(), "it stands in a list; name the list").into());
        }
        let values: Vec<Option<&Value>> = sides.iter().map(|side| path.get(&side.state)).collect();
        let base = self.base(path);
        // The sources whose value counts: those that have one, or those that changed it.
        let counts: Vec<usize> = match &base {
            BaseValue::Nothing => (0..sides.len()).filter(|at| values[*at].is_some()).collect(),
            BaseValue::Agreed(base) => (0..sides.len()).filter(|at| values[*at] != *base).collect(),
            BaseValue::Differ => (0..sides.len()).collect(),
        };
        let first = counts.first().map_or(values[0], |at| values[*at]);
        // Two sides that redacted parts leave open may have two values.
        let is_same = counts.len() < 2 || counts.iter().all(|at| marker::agree(values[*at], first));
        if is_same && !self.is_twofold(path, &base, &counts)? {
            self.take(path, first)?;
        } else if let Some((combine, list)) = self.combined(path, &base, &counts) {
            put(&mut self.state, path, list);
            let from = counts.iter().map(|at| Ok(sides[*at].origin(path)?.0));
            let from = from.collect::<Result<_, Error>>()?;
            self.seeded.push(Seeded { path: path.clone(), from, combined: Some(combine) });
        } else if self.goes_into(path, &base, &values) {
            put(&mut self.state, path, Value::object());
            let states = sides.iter().map(|side| &side.state).chain(self.bases);
            let members = states.filter_map(|state| path.get(state)?.as_object()).flat_map(Object::iter);
            let names: BTreeSet<&str> = members.map(|(name, _)| &**name).collect();
            for name in names {
                let tokens: Vec<_> = path.tokens().collect();
                self.place(&Pointer::of(tokens.iter().map(|token| &**token).chain([name])))?;
            }
        } else {
            let base = match base {
                BaseValue::Agreed(base) => base.cloned(),
                _ => None,
            };
            self.conflict(path, base, &counts)?;
        }
        match self.seeded.len() + self.removed.len() + self.conflicts.len() > PLACES_MAX {
            true => Err(MergeError::TooMany.into()),
            false => Ok(()),
        }
    }

    /// Whether equal values are two changes: each side wrote by records of its own, and one of them added to what was there, or
    /// the pack appends lists.
    fn is_twofold(&self, path: &Pointer, base: &BaseValue<'_>, counts: &[usize]) -> Result<bool, Error> {
        let is_appended = self.combine(path) == Some(Combine::Append);
        if counts.len() < 2 || matches!(base, BaseValue::Nothing) && !is_appended {
            return Ok(false);
        }
        let sides = || counts.iter().map(|at| &self.sides[*at]);
        let mut places = BTreeSet::from([path.clone()]);
        for added in sides().flat_map(|side| &side.added) {
            places.extend(added.parse().ok().filter(|added| path.contains(added)));
        }
        for place in places {
            let written = sides().map(|side| side.written_by(&place));
            let written = written.collect::<Result<Vec<Vec<Record>>, Error>>()?;
            let ids: Vec<BTreeSet<Digest>> =
                written.iter().map(|records| records.iter().map(Record::id).collect()).collect();
            let is_more = |record: &Record| {
                let delta = record.delta().unwrap_or_default();
                delta.0.iter().any(|op| adds(op) && op.path.overlaps(&place))
            };
            let is_own = |a: usize, b: usize| ids[a].difference(&ids[b]).next().is_some();
            let are_two = (0..ids.len()).any(|a| (0..a).any(|b| is_own(a, b) && is_own(b, a)));
            if are_two && (is_appended || written.iter().flatten().any(is_more)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// How the pack combines the lists of a place.
    fn combine(&self, path: &Pointer) -> Option<Combine> {
        let top = path.tokens().next()?;
        self.pack?.fields.iter().find(|field| *field.stored() == *top)?.combine
    }

    /// Makes one list of those that the sources in `counts` have at a place, as the pack says for its field.
    fn combined(&self, path: &Pointer, base: &BaseValue<'_>, counts: &[usize]) -> Option<(Combine, Value)> {
        let combine = self.combine(path)?;
        let (empty, begun) = (Array::default(), self.begun(path));
        let base = match base {
            // Runs without a common record may have begun with the same list.
            BaseValue::Nothing => begun.as_ref().and_then(Value::as_array).unwrap_or(&empty),
            BaseValue::Agreed(None) => &empty,
            BaseValue::Agreed(Some(base)) => base.as_array()?,
            BaseValue::Differ => return None,
        };
        let mut sides = Vec::with_capacity(counts.len());
        for side in counts.iter().map(|at| &self.sides[*at]) {
            let list = path.get(&side.state)?.as_array()?;
            // The log has one order for all runs, whatever the sources are called.
            let found = side.written_by(path).ok()?.into_iter();
            let positions = found.map(|record| side.trace.store().find(&record.id()).ok());
            sides.push((positions.collect::<Option<Vec<_>>>()?.into_iter().max()?, list));
        }
        sides.sort_by_key(|(position, _)| *position);
        let mut list: Vec<Value> = Vec::new();
        match combine {
            Combine::Set => {
                let ids = |list: &Array| list.iter().map(Value::digest).collect::<BTreeSet<Digest>>();
                let (began, having): (_, Vec<_>) =
                    (ids(base), sides.iter().map(|(_, side)| ids(side)).collect());
                let stays = |id: &Digest| !began.contains(id) || having.iter().all(|side| side.contains(id));
                let mut there = BTreeSet::new();
                for value in sides.iter().fold(base.iter().collect::<Vec<_>>(), |mut all, (_, side)| {
                    all.extend(side.iter());
                    all
                }) {
                    let id = value.digest();
                    if stays(&id) && there.insert(id) {
                        list.push(value.clone());
                    }
                }
            }
            Combine::Append => {
                list.extend(base.iter().cloned());
                for (_, side) in &sides {
                    let is_longer =
                        side.len() >= base.len() && side.iter().zip(base.iter()).all(|(a, b)| a == b);
                    if !is_longer {
                        return None;
                    }
                    list.extend(side.iter().skip(base.len()).cloned());
                }
            }
        }
        Some((combine, Value::array(list)))
    }

    /// The value with which all sources began at a place.
    fn begun(&self, path: &Pointer) -> Option<Value> {
        let mut begun = self.sides.iter().map(|side| Some(path.get(&side.trace.state(0).ok()?)?.clone()));
        let first = begun.next()??;
        begun.all(|value| value.as_ref() == Some(&first)).then_some(first)
    }

    /// Whether a place is merged member by member: all that is there is a map, and no source removed it.
    fn goes_into(&self, path: &Pointer, base: &BaseValue<'_>, values: &[Option<&Value>]) -> bool {
        // A marker, a time or bytes are one value, whatever their form is.
        let is_map = |value: &Value| value.as_object().is_some_and(|members| !tag::is_tagged(members));
        let are_maps = values.iter().flatten().all(|value| is_map(value));
        let bases = || self.bases.iter().filter_map(|state| path.get(state));
        let was_map = bases().all(is_map);
        let is_removed = values.iter().any(Option::is_none) && bases().next().is_some();
        are_maps && was_map && (matches!(base, BaseValue::Nothing) || !is_removed)
    }

    /// Takes a value into the new state, or leaves the place out.
    fn take(&mut self, path: &Pointer, value: Option<&Value>) -> Result<(), Error> {
        let have = self.sides.iter().filter(|side| path.get(&side.state) == value);
        let from = have.map(|side| Ok(side.origin(path)?.0)).collect::<Result<_, Error>>()?;
        let place = Seeded { path: path.clone(), from, combined: None };
        match value {
            Some(value) => {
                put(&mut self.state, path, value.clone());
                self.seeded.push(place);
            }
            None => self.removed.push(place),
        }
        Ok(())
    }

    fn conflict(&mut self, path: &Pointer, base: Option<Value>, counts: &[usize]) -> Result<(), Error> {
        let mut values = Vec::with_capacity(counts.len());
        let mut ranks = Vec::with_capacity(counts.len());
        for side in counts.iter().map(|at| &self.sides[*at]) {
            // A value that came by another merge counts with the record that wrote it.
            let written = side.written_by(path)?;
            // The log has one order for all runs, also within a millisecond.
            let positions = written.iter().map(|record| side.trace.store().find(&record.id()));
            let position = positions.collect::<Result<Vec<_>, _>>()?.into_iter().max().flatten();
            ranks.push((position, written.iter().filter_map(confidence).max()));
            values.push((side.origin(path)?.0, path.get(&side.state).cloned()));
        }
        let taken = self.taken(&ranks).map(|at| Arc::clone(&values[at].0.source));
        let value = values.iter().find(|(from, _)| Some(&from.source) == taken.as_ref());
        if let Some((_, Some(value))) = value {
            put(&mut self.state, path, value.clone());
        }
        self.conflicts.push(Conflict { path: path.clone(), base, values, taken });
        Ok(())
    }

    /// Which of several values the strategy takes; none where it does not tell them apart.
    fn taken(&self, ranks: &[(Option<u64>, Option<u64>)]) -> Option<usize> {
        let best = |key: &dyn Fn(usize) -> Option<u64>| {
            let most = (0..ranks.len()).filter_map(key).max()?;
            let mut best = (0..ranks.len()).filter(|at| key(*at) == Some(most));
            best.next().filter(|_| best.next().is_none())
        };
        match self.strategy {
            Strategy::Manual => None,
            Strategy::First => Some(0),
            Strategy::Lww => best(&|at| ranks[at].0),
            Strategy::Confidence => best(&|at| ranks[at].1),
        }
    }
}

/// How sure the author of a record said to be, in thousandths: that is how it is kept.
fn confidence(record: &Record) -> Option<u64> {
    let intent = record.body().value("/intent/confidence")?;
    let value = intent.as_f64().filter(|value| (0.0..=1.0).contains(value))?;
    Some((value * 1000.0).round() as u64)
}

fn is_in_list(path: &Pointer, state: &Value) -> bool {
    let tokens: Vec<_> = path.tokens().collect();
    let above = |n: usize| Pointer::of(tokens[..n].iter().map(|token| &**token));
    (1..tokens.len()).any(|n| matches!(above(n).get(state), Some(Value::Array(_))))
}

/// Puts a value into a place, and makes the maps above it.
fn put(state: &mut Object, path: &Pointer, value: Value) {
    let tokens: Vec<_> = path.tokens().map(|token| token.into_owned()).collect();
    put_at(state, &tokens, value);
}

/// The amounts by which the sums of commitments grew in the histories of all sources: each record counts once.
fn spent_together(sources: &[MergeInput<'_>]) -> Result<SpentTogether, Error> {
    let mut history = History::new();
    for source in sources {
        add_history(&mut history, source.trace, source.tick)?;
    }
    let mut spent = SpentTogether::default();
    for (run, upto) in &history {
        let trace = Trace::open(sources[0].trace.store(), run)?;
        let begin = match trace.lineage() {
            [.., (_, shared), _] => Some(trace.at(*shared)?),
            // The sums that a merged run begins with are counted in the runs that it was merged from, if they are here.
            _ => match merge_of(&trace).filter(|merged| merged.is_whole) {
                Some(merged) if merged.sources.iter().all(|source| history.contains_key(&source.run)) => {
                    Some(trace.genesis()?)
                }
                _ => None,
            },
        };
        spent.add(&trace.at(*upto)?.commitments, begin.as_ref().map(|begin| &begin.commitments));
    }
    Ok(spent)
}

/// Finds the last records that are in the histories of all sources, each with its state: those that no other one follows.
fn last_common(sources: &[MergeInput<'_>]) -> Result<Vec<(OwnedRecord, Value)>, Error> {
    let mut histories = Vec::with_capacity(sources.len());
    for source in sources {
        let mut history = History::new();
        add_history(&mut history, source.trace, source.tick)?;
        histories.push(history);
    }
    let store = sources[0].trace.store();
    let (first, others) = histories.split_first().expect("two sources at least");
    let mut common: Vec<(RunName, u64, Option<Trace>)> = Vec::new();
    for (run, upto) in first {
        let upto = others.iter().map(|other| other.get(run).copied()).chain([Some(*upto)]).min().flatten();
        let Some(upto) = upto else { continue };
        let is_source = sources.iter().any(|source| source.trace.name() == run);
        let opened = (!is_source).then(|| Trace::open(store, run)).transpose()?;
        common.push((run.clone(), upto, opened));
    }
    let mut moments = Vec::with_capacity(common.len());
    for (run, tick, opened) in &common {
        let source = sources.iter().map(|source| source.trace).find(|trace| trace.name() == run);
        let trace = opened.as_ref().or(source).expect("it was opened, or is a source");
        let mut history = History::new();
        add_history(&mut history, trace, *tick)?;
        moments.push((run, *tick, trace, history));
    }
    let is_followed = |run: &RunName, tick: u64| {
        let others = moments.iter().filter(|(other, ..)| *other != run);
        others.map(|(.., history)| history).any(|history| history.get(run).is_some_and(|upto| *upto >= tick))
    };
    let last = moments.iter().filter(|(run, tick, ..)| !is_followed(run, *tick));
    last.map(|(run, tick, trace, _)| {
        let moment = OwnedRecord { run: (*run).clone(), tick: *tick, record: trace.record(*tick)?.id() };
        Ok((moment, trace.state(*tick)?))
    })
    .collect()
}

/// The first conflict of a source that another merge left open, and that is not decided up to there.
fn open_conflict(source: &MergeInput<'_>) -> Result<Option<Pointer>, Error> {
    let MergeInput { trace, tick } = source;
    let Some(merged) = merge_of(trace) else { return Ok(None) };
    let standings = standings_at(trace, &merged, *tick)?;
    let open = merged.conflicts.into_iter().zip(standings).find(|(_, how)| *how == ConflictStanding::Open);
    Ok(open.map(|(conflict, _)| conflict.path))
}

/// The mark of a run that was made up, where it has one.
fn is_synthetic(trace: &Trace) -> Option<(&'static str, Value)> {
    let mark = trace.start().body().value("/meta")?.get("synthetic")?.clone();
    (mark == Value::from(true)).then_some(("synthetic", mark))
}

/// The terms of the new run, without its state: those of all sources.
fn begin_with(sources: &[MergeInput<'_>], run: &RunName) -> Result<Start, Error> {
    let mut start = Start::new(run.clone());
    for source in sources {
        if let Some(path) = open_conflict(source)? {
            return Err(MergeError::OpenSource { run: source.trace.name().clone(), path }.into());
        }
    }
    let differ = |at: usize, what| MergeError::Terms {
        a: sources[0].trace.name().clone(),
        b: sources[at].trace.name().clone(),
        what,
    };
    for (at, MergeInput { trace, tick }) in sources.iter().enumerate() {
        let (Start { pack, policy, goal, stage, .. }, found) = under(trace, *tick, run)?;
        let state = trace.state(*tick)?;
        if found.is_some_and(|pack| extend::listed(pack.value(), &state).next().is_some()) {
            return Err(MergeError::Extended(trace.name().clone()).into());
        }
        if at == 0 {
            (start.pack, start.policy, start.goal, start.stage) = (pack, policy, goal, stage);
            continue;
        }
        if start.pack.as_ref().map(|bound| &bound.value) != pack.as_ref().map(|bound| &bound.value) {
            return Err(differ(at, "packs").into());
        }
        if start.policy != policy {
            return Err(differ(at, "policy rules").into());
        }
        start.goal = start.goal.filter(|known| Some(known) == goal.as_ref());
        // The highest stage of the sources stays in force.
        start.stage = start.stage.max(stage);
    }
    Ok(start)
}

/// The contract of the sources that are delegated: a run that continues a child is as bound as the child.
fn contract_of(sources: &[MergeInput<'_>]) -> Result<Option<Value>, MergeError> {
    let mut found: Option<(&Trace, Value)> = None;
    for MergeInput { trace, .. } in sources {
        let Some(contract) = trace.start().content().get(CONTRACT).cloned() else { continue };
        match &found {
            Some((first, known)) if *known != contract => {
                let (a, b) = (first.name().clone(), trace.name().clone());
                return Err(MergeError::Terms { a, b, what: "contracts of a delegation" });
            }
            Some(_) => {}
            None => found = Some((trace, contract)),
        }
    }
    Ok(found.map(|(_, contract)| contract))
}

/// The terms under which a run is at a tick, for a run of another name: its pack, its policy rules, its goal and its stage.
pub(super) fn under(trace: &Trace, tick: u64, name: &RunName) -> Result<(Start, Option<Pack>), Error> {
    let segment = trace.segment(tick);
    let pack = pack::of_segment(trace, segment)?;
    let text = pack::text_of_segment(trace, segment);
    let bound = |pack: &Pack| Bound { value: pack.value().clone(), text: text.unwrap_or_default() };
    let begins = trace.begins()[..=segment].iter().rev();
    let policy = begins.filter_map(|begin| begin.content().get("policy").cloned()).next();
    let policy = policy.iter().filter_map(Value::as_array).flat_map(|rules| rules.iter().cloned()).collect();
    let goal = trace.start().content().get("goal").and_then(Value::as_str).map(Arc::<str>::from);
    let stage = Some(trace.head(tick)?.stage());
    let start = Start { pack: pack.as_ref().map(bound), policy, goal, stage, ..Start::new(name.clone()) };
    Ok((start, pack))
}

/// The state that the pack begins with, with the seeded values in it. A place with an open conflict is empty.
pub(super) fn filled(pack: &Pack, seeded: &Value, open: &[Pointer]) -> Result<Value, Error> {
    let origin = Origin { s0: Some(seeded.clone()), meta: None, inputs: None };
    let mut state = pack.init(&origin)?.as_object().cloned().unwrap_or_default();
    for (name, value) in seeded.as_object().into_iter().flat_map(Object::iter) {
        state.set(name, value.clone());
    }
    let mut state = Value::Object(state);
    for path in open.iter().filter(|path| path.tokens().count() == 1) {
        if let Some(members) = state.as_object() {
            let mut members = members.clone();
            members.remove(&path.tokens().next().unwrap_or_default());
            state = Value::Object(members);
        }
    }
    Ok(state)
}
