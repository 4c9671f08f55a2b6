//! What a predicate says at every tick of a range, found by looking only where something was written that it reads.
//!
//! A verdict can change only at a tick that wrote into the predicate's read set (a *candidate*), so one pass over the
//! candidates knows the verdict everywhere. Where the store has an index of writes, only the candidates' records are
//! read, and of each only what touches the read set is applied. Where it has none, where values were erased, or where
//! the predicate asks for counters, one pass over all records does the same for all predicates at once.
//!
//! A newcomer would break one rule: what lies beside the read set can still decide. `has(state.a.b)` is not the same
//! without `a` as with an empty `a`, so a place whose parents may come and go is watched from its first name on.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use dendrer_kernel::predicate::{Predicate, Verdict, Window};
use dendrer_kernel::replay::ReplayError;
use dendrer_object::delta::{Delta, Op};
use dendrer_object::record::Record;
use dendrer_object::{Pointer, Value};

use crate::error::Error;
use crate::trace::{Moment, Trace};

/// The verdicts of a range of ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    /// The first tick.
    pub from: u64,
    /// The last tick.
    pub to: u64,
    /// The verdict at the first tick, and at each tick where it became another.
    pub turns: Vec<(u64, Verdict)>,
    /// How many candidate ticks after the first were judged.
    pub judged: u64,
}

/// A stretch of ticks with one verdict, as long as it can be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    /// The first tick.
    pub from: u64,
    /// The last tick.
    pub to: u64,
    /// What the predicate says there; where it is uncertain for changing reasons, the first of them.
    pub verdict: Verdict,
}

impl Timeline {
    fn new(from: u64, to: u64) -> Timeline {
        Timeline { from, to, turns: Vec::new(), judged: 0 }
    }

    /// Makes the timeline of something that happens once and stays.
    pub fn latched(from: u64, to: u64, at: Option<u64>, judged: u64) -> Timeline {
        let begin = (from, Verdict::Ok);
        let turns = match at {
            Some(at) if at == from => vec![(from, Verdict::Violation)],
            Some(at) => vec![begin, (at, Verdict::Violation)],
            None => vec![begin],
        };
        Timeline { from, to, turns, judged }
    }

    fn push(&mut self, tick: u64, verdict: Verdict) {
        if self.turns.last().is_none_or(|(_, last)| *last != verdict) {
            self.turns.push((tick, verdict));
        }
    }

    /// Returns the verdict at a tick of the range.
    pub fn at(&self, tick: u64) -> &Verdict {
        let after = self.turns.partition_point(|(turn, _)| *turn <= tick);
        &self.turns[after.saturating_sub(1)].1
    }

    /// Returns the first tick with such a verdict.
    pub fn first(&self, wanted: impl Fn(&Verdict) -> bool) -> Option<u64> {
        self.turns.iter().find(|(_, verdict)| wanted(verdict)).map(|(tick, _)| *tick)
    }

    /// Returns the first tick in violation.
    pub fn onset(&self) -> Option<u64> {
        self.first(|verdict| *verdict == Verdict::Violation)
    }

    /// Whether a tick that cannot be judged may hide an earlier violation than the first known one.
    pub fn may_hide_onset(&self) -> bool {
        let uncertain = self.first(|verdict| matches!(verdict, Verdict::Uncertain(_)));
        uncertain.is_some_and(|tick| self.onset().is_none_or(|onset| tick < onset))
    }

    /// Lists the stretches of one verdict, ends included. They cover the range without gaps.
    pub fn intervals(&self) -> Vec<Interval> {
        let same = |a: &Verdict, b: &Verdict| {
            a == b || matches!((a, b), (Verdict::Uncertain(_), Verdict::Uncertain(_)))
        };
        let mut found: Vec<Interval> = Vec::new();
        for (tick, verdict) in &self.turns {
            match found.last_mut() {
                Some(last) if same(&last.verdict, verdict) => {}
                last => {
                    if let Some(last) = last {
                        last.to = tick - 1;
                    }
                    found.push(Interval { from: *tick, to: self.to, verdict: verdict.clone() });
                }
            }
        }
        found
    }

    /// Returns the monotone lift: violated from the first violation on (dendrer paper 3.3.3).
    #[must_use]
    pub fn lifted(&self) -> Timeline {
        let until = self.turns.iter().position(|(_, verdict)| *verdict == Verdict::Violation);
        let kept = until.map_or(self.turns.len(), |at| at + 1);
        Timeline { turns: self.turns[..kept].to_vec(), ..self.clone() }
    }
}

/// Judges a predicate over a range of ticks.
pub fn judge(trace: &Trace<'_>, predicate: &Predicate, from: u64, to: u64) -> Result<Timeline, Error> {
    Ok(judge_each(trace, &[predicate], from, to)?.pop().expect("one for one"))
}

/// As [`judge`] for several predicates: what cannot be looked up is read once for all of them.
pub fn judge_each(
    trace: &Trace<'_>,
    predicates: &[&Predicate],
    from: u64,
    to: u64,
) -> Result<Vec<Timeline>, Error> {
    let indexed = trace.store().knows_all_writes()?;
    let can_look_up = |predicate: &Predicate| indexed && !predicate.expr().reads_counters();
    let reading: Vec<&Predicate> =
        predicates.iter().copied().filter(|predicate| !can_look_up(predicate)).collect();
    let mut read = read_through(trace, &reading, from, to, Look::AtCandidates)?.into_iter();
    predicates
        .iter()
        .map(|predicate| match can_look_up(predicate) {
            true => look_up(trace, predicate, from, to),
            false => Ok(read.next().expect("one for one")),
        })
        .collect()
}

/// Judges a predicate at one tick, by the state that a trace reads there.
pub fn at(trace: &Trace<'_>, predicate: &Predicate, tick: u64) -> Result<Verdict, Error> {
    let (state_tick, ..) = looked_at(predicate, tick, tick);
    Ok(verdict(predicate, &trace.at(state_tick)?))
}

/// Judges predicates at every single tick, from the records alone: no index, no snapshot. Slow, and what the others
/// must agree with.
pub fn scan(
    trace: &Trace<'_>,
    predicates: &[&Predicate],
    from: u64,
    to: u64,
) -> Result<Vec<Timeline>, Error> {
    let bare = Trace::open(trace.store(), trace.name())?.without_snapshots();
    read_through(&bare, predicates, from, to, Look::Everywhere)
}

/// The ticks of the states that a predicate looks at for a range of ticks, and by how much they lag behind.
fn looked_at(predicate: &Predicate, from: u64, to: u64) -> (u64, u64, u64) {
    let lag = u64::from(predicate.window() == Window::Before);
    (from.saturating_sub(lag), to.saturating_sub(lag), lag)
}

fn verdict(predicate: &Predicate, moment: &Moment) -> Verdict {
    let counters = predicate.expr().reads_counters().then(|| moment.counters.to_value());
    predicate.verdict(&moment.state, counters.as_ref())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    AtCandidates,
    Everywhere,
}

/// Reads all records of the range once.
fn read_through(
    trace: &Trace<'_>,
    predicates: &[&Predicate],
    from: u64,
    to: u64,
    look: Look,
) -> Result<Vec<Timeline>, Error> {
    let mut watchers: Vec<Watcher<'_>> =
        predicates.iter().map(|predicate| Watcher::new(predicate, from, to)).collect();
    let first = watchers.iter().map(|watcher| watcher.first).min();
    let last = watchers.iter().map(|watcher| watcher.last).max();
    let (Some(first), Some(last)) = (first, last) else { return Ok(Vec::new()) };
    let fresh = Trace::open(trace.store(), trace.name())?;
    // A snapshot binds the state, and not the counters beside it.
    let counted = predicates.iter().any(|predicate| predicate.expr().reads_counters());
    let fresh = if counted || !trace.uses_snapshots() { fresh.without_snapshots() } else { fresh };
    fresh.moments(first, last, &mut |moment, record| {
        let written = record.map_or_else(Vec::new, written);
        watchers.iter_mut().for_each(|watcher| watcher.pass(moment, &written, look));
        ControlFlow::Continue(())
    })?;
    Ok(watchers.into_iter().map(|watcher| watcher.line).collect())
}

/// Returns the places that a record wrote. The state could not have been folded past a delta that is none.
fn written(record: &Record) -> Vec<Pointer> {
    let delta = record.body().value("/delta").and_then(|delta| Delta::from_value(&delta).ok());
    delta.unwrap_or_default().paths().cloned().collect()
}

/// One predicate on its way through a run.
struct Watcher<'p> {
    predicate: &'p Predicate,
    line: Timeline,
    first: u64,
    last: u64,
    lag: u64,
    /// For each place that is read: whether everything above it is there.
    standing: Vec<bool>,
}

impl<'p> Watcher<'p> {
    fn new(predicate: &'p Predicate, from: u64, to: u64) -> Watcher<'p> {
        let (first, last, lag) = looked_at(predicate, from, to);
        Watcher { predicate, line: Timeline::new(from, to), first, last, lag, standing: Vec::new() }
    }

    fn pass(&mut self, moment: &Moment, written: &[Pointer], look: Look) {
        let counters = self.predicate.expr().reads_counters();
        if moment.tick == self.first {
            self.standing = standing(self.predicate.expr().read_set(), &moment.state);
            self.line.push(self.line.from, verdict(self.predicate, moment));
        } else if moment.tick > self.first && moment.tick <= self.last {
            let moved = self.may_differ(&moment.state, written);
            if moved || counters || look == Look::Everywhere {
                self.line.judged += 1;
                self.line.push(moment.tick + self.lag, verdict(self.predicate, moment));
            }
        }
    }

    /// Tells whether a transition that wrote these places can have changed the verdict.
    fn may_differ(&mut self, state: &Value, written: &[Pointer]) -> bool {
        let read_set = self.predicate.expr().read_set();
        let touched = written.iter().any(|path| read_set.iter().any(|place| place.overlaps(path)));
        // Writing `a.x` makes an `a` for whoever asks `has(state.a.b)`.
        let near =
            written.iter().any(|path| read_set.iter().any(|place| first_name(place) == first_name(path)));
        if !near {
            return touched;
        }
        let before = std::mem::replace(&mut self.standing, standing(read_set, state));
        touched || before != self.standing
    }
}

fn first_name(place: &Pointer) -> Option<&str> {
    place.as_str().split('/').nth(1)
}

/// Tells for each place whether everything above it is there and holds members.
fn standing(read_set: &[Pointer], state: &Value) -> Vec<bool> {
    read_set.iter().map(|place| stands(place, state)).collect()
}

/// Reads the records of the candidates alone, as the store's index of writes lists them.
fn look_up(trace: &Trace<'_>, predicate: &Predicate, from: u64, to: u64) -> Result<Timeline, Error> {
    let mut watcher = Watcher::new(predicate, from, to);
    let mut moment = trace.at(watcher.first)?;
    let (watched, ticks) =
        candidates(trace, predicate.expr().read_set(), &moment.state, watcher.first, watcher.last)?;
    if ticks.len() as u64 > (watcher.last - watcher.first) / 2 {
        // To look up almost every record one by one is slower than to read them in order.
        let read = read_through(trace, &[predicate], from, to, Look::AtCandidates)?;
        return Ok(read.into_iter().next().expect("one for one"));
    }
    watcher.pass(&moment, &[], Look::AtCandidates);
    for tick in ticks {
        let record = trace.record(tick)?;
        // Right at the watched places, and nowhere else: this is no state that was ever committed.
        moment.state = apply_watched(&record, tick, &watched, &moment.state)?;
        moment.tick = tick;
        watcher.pass(&moment, &written(&record), Look::AtCandidates);
    }
    Ok(watcher.line)
}

/// Returns what stood at a place before and after each transition of a range that wrote at, above or below `followed`,
/// which contains it.
pub(crate) fn values(
    trace: &Trace<'_>,
    place: &Pointer,
    followed: &Pointer,
    from: u64,
    to: u64,
) -> Result<BTreeMap<u64, Sides>, Error> {
    let mut found = BTreeMap::new();
    let first = from.saturating_sub(1);
    if !trace.store().knows_all_writes()? {
        let mut before = None;
        trace.moments(first, to, &mut |moment, record| {
            let after = place.get(&moment.state).cloned();
            let wrote = record.map_or_else(Vec::new, written);
            if moment.tick > first && wrote.iter().any(|path| path.overlaps(followed)) {
                found.insert(moment.tick, (before.take(), after.clone()));
            }
            before = after;
            ControlFlow::Continue(())
        })?;
        return Ok(found);
    }
    let mut state = trace.at(first)?.state;
    let (watched, ticks) = candidates(trace, std::slice::from_ref(followed), &state, first, to)?;
    for tick in ticks {
        let record = trace.record(tick)?;
        let before = place.get(&state).cloned();
        state = apply_watched(&record, tick, &watched, &state)?;
        if written(&record).iter().any(|path| path.overlaps(followed)) {
            found.insert(tick, (before, place.get(&state).cloned()));
        }
    }
    Ok(found)
}

/// What stood somewhere before a transition, and after it.
pub type Sides = (Option<Value>, Option<Value>);

/// Applies what a record changed at the watched places, and nothing else.
fn apply_watched(record: &Record, tick: u64, watched: &[Pointer], state: &Value) -> Result<Value, Error> {
    let Some(delta) = record.body().value("/delta") else {
        return Err(ReplayError::Erased { tick, pointer: Some(Pointer::of(["delta"])) }.into());
    };
    let broken = |error| Error::from(ReplayError::Delta { tick, error });
    let delta = Delta::from_value(&delta).map_err(broken)?;
    let touches = |op: &Op| watched.iter().any(|place| place.overlaps(&op.path));
    Delta(delta.0.into_iter().filter(touches).collect()).apply(state).map_err(broken)
}

/// Finds the places to watch so that the read set is known at every tick, and the ticks after `first` that wrote
/// there.
fn candidates(
    trace: &Trace<'_>,
    read_set: &[Pointer],
    state: &Value,
    first: u64,
    last: u64,
) -> Result<(Vec<Pointer>, BTreeSet<u64>), Error> {
    let mut watched: Vec<Pointer> = Vec::new();
    let mut ticks = BTreeSet::new();
    for place in read_set {
        let mut writes = trace.writes(first + 1, last, place)?;
        let parents_stand =
            stands(place, state) && writes.iter().all(|(_, path)| path == place || !path.contains(place));
        let mut place = place.clone();
        if !parents_stand {
            place = Pointer::of(place.clone().tokens().next().as_deref());
            writes = trace.writes(first + 1, last, &place)?;
        }
        ticks.extend(writes.into_iter().map(|(tick, _)| tick));
        watched.push(place);
    }
    Ok((watched, ticks))
}

fn stands(place: &Pointer, state: &Value) -> bool {
    let tokens: Vec<_> = place.tokens().collect();
    let above = (1..tokens.len()).map(|n| Pointer::of(tokens[..n].iter().map(|token| &**token)));
    above.into_iter().all(|parent| matches!(parent.get(state), Some(Value::Object(_) | Value::Array(_))))
}
