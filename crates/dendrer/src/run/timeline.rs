//! The verdicts of a predicate at every tick of a range, found by judging only where something was written that it reads.
//!
//! A verdict can change only at a tick that wrote into the predicate's read set (a *candidate*), so one pass over the
//! records knows the verdict everywhere. Each record is sealed again and compared, and of its change only what touches
//! the read sets is applied. No index is asked: one that lacks a row would hide a candidate, and what is called exact
//! rests on the records alone.
//!
//! A newcomer would break one rule: what lies beside the read set can still decide. `has(state.a.b)` is not the same
//! without `a` as with an empty `a`, so every place is watched from its first name on.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use dendrer_kernel::expr::Expr;
use dendrer_kernel::names::UNKNOWN;
use dendrer_kernel::obligation::{ObligationCourse, ObligationLook as Looked};
use dendrer_kernel::predicate::{Monotone, Predicate, Verdict, Window};
use dendrer_kernel::replay::ReplayError;
use dendrer_kernel::unknown;
use dendrer_object::delta::{Delta, Op};
use dendrer_object::record::Record;
use dendrer_object::{Pointer, TypeName, Value};

use crate::error::Error;
use crate::run::trace::{Moment, Trace};
use crate::run::verdicts::{self, Way};

pub use crate::run::line::{Interval, Timeline};

pub(crate) mod policy;

/// Judges a predicate over a range of ticks.
pub fn judge(trace: &Trace, predicate: &Predicate, from: u64, to: u64) -> Result<Timeline, Error> {
    trace.confirm_tip()?;
    Ok(judge_each(trace, &[predicate], from, to)?.pop().expect("one for one"))
}

/// As [`judge`] for several predicates: what must be read is read once for all of them, and what is known of the
/// beginning of the run from before ([`verdicts`]) is not read again.
pub fn judge_each(
    trace: &Trace,
    predicates: &[&Predicate],
    from: u64,
    to: u64,
) -> Result<Vec<Timeline>, Error> {
    trace.check_range(from, to)?;
    // Kept verdicts do not have the states of its obligations, nor which rules wait for their places.
    let known = |predicate: &&Predicate| match predicate.obligation() {
        None if from == 0 => verdicts::find(trace, predicate, Way::Candidates, to)
            .filter(|line| !predicate.is_policy() || line.known_to == Some(to)),
        _ => None,
    };
    let mut lines: Vec<Timeline> = predicates
        .iter()
        .map(|predicate| known(predicate).unwrap_or_else(|| Timeline::new(from, to)))
        .collect();
    let is_open = |line: &Timeline| line.known_to != Some(to);
    let watchers = predicates.iter().zip(&lines).filter(|(one, line)| is_open(line) && !one.is_policy());
    let watchers = watchers.map(|(predicate, line)| Watcher::new(predicate, line.clone(), to)).collect();
    let mut read = read_through(trace, watchers, Look::AtCandidates)?.into_iter();
    for (predicate, line) in predicates.iter().zip(&mut lines).filter(|(_, line)| is_open(line)) {
        *line = match predicate.is_policy() {
            true => policy::judge(trace, predicate, from, to, Look::AtCandidates)?,
            false => read.next().expect("one for each that was open"),
        };
        if predicate.obligation().is_none() {
            verdicts::keep(trace, predicate, Way::Candidates, line);
        }
    }
    Ok(lines)
}

/// Judges a predicate at one tick and the one before it: by the states that a trace reads there, and an obligation by the
/// records from the beginning of the run.
pub(crate) fn around(trace: &Trace, predicate: &Predicate, tick: u64) -> Result<(Verdict, Verdict), Error> {
    if predicate.is_policy() {
        return policy::around(trace, predicate, tick);
    }
    if predicate.obligation().is_some() || !predicate.scope().is_empty() {
        let watcher = Watcher::new(predicate, Timeline::new(tick - 1, tick), tick);
        let line = read_through(trace, vec![watcher], Look::AtCandidates)?.pop().expect("one for one");
        return Ok((line.at(tick - 1).clone(), line.at(tick).clone()));
    }
    Ok((judge_at(trace, predicate, tick - 1)?, judge_at(trace, predicate, tick)?))
}

/// Judges a predicate without a scope at one tick, by the state that a trace reads there.
pub(crate) fn judge_at(trace: &Trace, predicate: &Predicate, tick: u64) -> Result<Verdict, Error> {
    let (state_tick, ..) = looked_at(predicate, tick, tick);
    let judged = verdict(predicate, &trace.folded(state_tick, predicate.reads_counters())?);
    judged.map_err(|error| error.stopped_at(trace.name(), state_tick))
}

/// Judges predicates at every single tick, from the records alone: no index, no snapshot. Slow, and what the others
/// must agree with.
pub fn scan(trace: &Trace, predicates: &[&Predicate], from: u64, to: u64) -> Result<Vec<Timeline>, Error> {
    trace.check_range(from, to)?;
    let bare = Trace::open(trace.store(), trace.name())?.without_snapshots();
    let watched = predicates.iter().filter(|predicate| !predicate.is_policy());
    let watchers = watched.map(|predicate| Watcher::new(predicate, Timeline::new(from, to), to)).collect();
    let mut read = read_through(&bare, watchers, Look::Everywhere)?.into_iter();
    let line = |predicate: &&Predicate| match predicate.is_policy() {
        true => policy::judge(&bare, predicate, from, to, Look::Everywhere),
        false => Ok(read.next().expect("one for each that is no policy")),
    };
    predicates.iter().map(line).collect()
}

/// The ticks of the states that a predicate looks at for a range of ticks, and by how much they lag behind.
fn looked_at(predicate: &Predicate, from: u64, to: u64) -> (u64, u64, u64) {
    let lag = u64::from(predicate.window() == Window::Before);
    (from.saturating_sub(lag), to.saturating_sub(lag), lag)
}

/// Judges a moment.
fn verdict(predicate: &Predicate, moment: &Moment) -> Result<Verdict, Error> {
    let counters = counters(predicate, moment)?;
    let judged = predicate.judge(&moment.state, counters.as_ref());
    judged.map_err(|stopped| Error::from(stopped).asked_as(predicate.name()))
}

/// Returns the counters for a predicate that reads them. One that would have counted what was erased or withheld is not
/// known, whatever it says.
fn counters(predicate: &Predicate, moment: &Moment) -> Result<Option<Value>, Error> {
    counters_of(&predicate.exprs().collect::<Vec<_>>(), moment)
}

/// As [`counters`], for what is not a predicate.
pub(crate) fn counters_of(exprs: &[&Expr], moment: &Moment) -> Result<Option<Value>, Error> {
    if let Some(hidden) = exprs.iter().find_map(|expr| expr.hidden_counter(&moment.counters)) {
        let (what, pointer) = ("a counter that the predicate reads".to_owned(), hidden.pointer.clone());
        return Err(Error::Hidden { what, tick: hidden.tick, pointer });
    }
    Ok(exprs.iter().any(|expr| expr.reads_counters()).then(|| moment.served()))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    AtCandidates,
    Everywhere,
}

/// Reads all records that the watchers have to see, once.
fn read_through(trace: &Trace, mut watchers: Vec<Watcher<'_>>, look: Look) -> Result<Vec<Timeline>, Error> {
    let first = watchers.iter().map(|watcher| watcher.first).min();
    let last = watchers.iter().map(|watcher| watcher.last).max();
    let (Some(first), Some(last)) = (first, last) else { return Ok(Vec::new()) };
    let fresh = Trace::open(trace.store(), trace.name())?;
    // A snapshot binds the state, and not the counters beside it.
    let predicates: Vec<&Predicate> = watchers.iter().map(|watcher| watcher.predicate).collect();
    let counted = predicates.iter().any(|predicate| predicate.reads_counters());
    let fresh = if counted || !trace.uses_snapshots() { fresh.without_snapshots() } else { fresh };
    let mut pass = |moment: &Moment, type_name: Option<&TypeName>, written: &[Pointer]| {
        let passed = watchers.iter_mut().try_for_each(|watcher| match watcher.course {
            Some(_) => watcher.pass_owed(moment, type_name, written, look),
            None if !watcher.predicate.scope().is_empty() => watcher.pass_scoped(moment, type_name),
            None => watcher.pass(moment, written, look),
        });
        passed.map(ControlFlow::Continue).map_err(|error: Error| error.stopped_at(trace.name(), moment.tick))
    };
    if look == Look::Everywhere {
        fresh.moments(first, last, &mut |moment, record| {
            let type_name = record.and_then(|record| record.header().type_name.as_ref());
            pass(moment, type_name, &record.map_or_else(Vec::new, written))
        })?;
    } else {
        let read_sets = predicates.iter().flat_map(|predicate| predicate.read_set());
        // Which places are unknown is part of what a predicate reads.
        let watched = read_sets.map(from_first_name).chain([Pointer::of([UNKNOWN])]).collect::<Vec<_>>();
        fold_at(&fresh, &watched, first, last, counted, &mut |step| {
            let type_name = step.record.and_then(|record| record.header().type_name.as_ref());
            pass(step.moment, type_name, step.written)
        })?;
    }
    Ok(watchers.into_iter().map(Watcher::finish).collect())
}

/// Returns the place of the state's member that a place lies in.
pub(crate) fn from_first_name(place: &Pointer) -> Pointer {
    Pointer::of(place.tokens().next().as_deref())
}

/// A run after a transition, folded only where somebody looks.
pub(crate) struct Folded<'a> {
    /// The value before.
    before: &'a Value,
    pub(crate) moment: &'a Moment,
    /// The transition; `None` where the fold begins.
    pub(crate) record: Option<&'a Record>,
    /// Everything the transition wrote.
    pub(crate) written: &'a [Pointer],
}

/// Hands over a run at and after a tick with what was written, folded at the watched places and nowhere else: these are
/// no states that were ever committed.
pub(crate) fn fold_at(
    trace: &Trace,
    watched: &[Pointer],
    first: u64,
    last: u64,
    counted: bool,
    f: &mut dyn FnMut(Folded<'_>) -> Result<ControlFlow<()>, Error>,
) -> Result<(), Error> {
    let mut moment = trace.folded(first, counted)?;
    if f(Folded { before: &moment.state, moment: &moment, record: None, written: &[] })?.is_break() {
        return Ok(());
    }
    trace.try_each(first + 1, last, &mut |tick, record| {
        let (delta, after) = apply_watched(&record, tick, watched, &moment.state)?;
        let before = std::mem::replace(&mut moment.state, after);
        moment.tick = tick;
        if counted {
            moment.counters.take(&record);
            moment.commitments.take(&record);
        }
        let written: Vec<Pointer> = delta.paths().cloned().collect();
        f(Folded { before: &before, moment: &moment, record: Some(&record), written: &written })
    })
}

/// Returns the places that a record wrote. The state could not have been folded past a malformed delta.
fn written(record: &Record) -> Vec<Pointer> {
    let delta = record.delta();
    delta.unwrap_or_default().paths().cloned().collect()
}

/// One predicate on its way through a run.
struct Watcher<'p> {
    predicate: &'p Predicate,
    line: Timeline,
    /// The tick at which the line begins, or from which on it is not known yet.
    begin: u64,
    first: u64,
    last: u64,
    lag: u64,
    /// For each place that is read: whether everything above it is there.
    standing: Vec<bool>,
    /// Of an obligation: how it went so far, and what its conditions said where they were looked at last.
    course: Option<(ObligationCourse, Option<Looked>)>,
    /// Of a predicate that is looked for at some types: its verdict of the state before, where that is what counts.
    before: Option<Verdict>,
}

impl<'p> Watcher<'p> {
    /// Goes on with a line, from its beginning or from where it is known, up to a tick.
    fn new(predicate: &'p Predicate, line: Timeline, to: u64) -> Watcher<'p> {
        let begin = line.known_to.unwrap_or(line.from);
        let (first, last, lag) = looked_at(predicate, begin, to);
        let course = predicate.obligation().map(|_| (ObligationCourse::default(), None));
        // An obligation begins with the run, or before the range.
        let first = if course.is_some() { 0 } else { first };
        // At which transitions it is looked for shows at the transitions, and what stood before in the state before.
        let (first, last) = match predicate.scope().is_empty() {
            true => (first, last),
            false => (begin.saturating_sub(1), to),
        };
        let (line, standing) = (Timeline { to, ..line }, Vec::new());
        Watcher { predicate, line, begin, first, last, lag, standing, course, before: None }
    }

    /// Takes a predicate that is looked for at some types through a tick: at any other it is ok.
    fn pass_scoped(&mut self, moment: &Moment, type_name: Option<&TypeName>) -> Result<(), Error> {
        let is_before = self.lag > 0;
        if (self.begin..=self.last).contains(&moment.tick) {
            let found = match self.predicate.is_for(type_name) {
                false => Verdict::Ok,
                true if is_before => self.before.take().unwrap_or(Verdict::Ok),
                true => verdict(self.predicate, moment)?,
            };
            self.line.judged += u64::from(self.predicate.is_for(type_name));
            self.line.push(moment.tick, found);
        }
        if is_before {
            self.before = Some(verdict(self.predicate, moment)?);
        }
        Ok(())
    }

    fn finish(self) -> Timeline {
        Timeline { standing: self.course.map(|(course, _)| course.standing()), ..self.line }
    }

    /// Takes an obligation through a tick. Its conditions are looked at where something was written that they read.
    fn pass_owed(
        &mut self,
        moment: &Moment,
        type_name: Option<&TypeName>,
        written: &[Pointer],
        look: Look,
    ) -> Result<(), Error> {
        let (Some(owed), Some((mut course, known))) = (self.predicate.obligation(), self.course.take())
        else {
            return Ok(());
        };
        let tick = moment.tick;
        // A missed obligation stays missed, whatever of the rest cannot be read.
        let settled = course.verdict() == Verdict::Violation;
        let mut looked = known;
        if tick <= self.last && !settled {
            let moved = self.may_differ(&moment.state, written);
            let wanted = look == Look::Everywhere || self.predicate.reads_counters();
            if moved || wanted || looked.is_none() {
                self.line.judged += u64::from(tick > 0);
                let counters = counters(self.predicate, moment)?;
                looked = self.predicate.look(&moment.state, counters.as_ref());
            }
            if let Some(looked) = &looked {
                course.pass(owed, tick, type_name, looked);
            }
        }
        if (self.begin..=self.last).contains(&tick) {
            self.line.push(tick, course.verdict());
        }
        self.course = Some((course, looked));
        Ok(())
    }

    fn pass(&mut self, moment: &Moment, written: &[Pointer], look: Look) -> Result<(), Error> {
        let counters = self.predicate.reads_counters();
        // A predicate that cannot recover stays violated, whatever of the rest cannot be read.
        let settled = self.predicate.monotone() == Monotone::ByConstruction
            && self.line.turns.last().is_some_and(|(_, verdict)| *verdict == Verdict::Violation);
        if moment.tick == self.first {
            self.standing = standing(self.predicate.read_set(), &moment.state);
            self.line.push(self.begin, verdict(self.predicate, moment)?);
        } else if moment.tick > self.first && moment.tick <= self.last && !settled {
            let moved = self.may_differ(&moment.state, written);
            if moved || counters || look == Look::Everywhere {
                self.line.judged += 1;
                self.line.push(moment.tick + self.lag, verdict(self.predicate, moment)?);
            }
        }
        Ok(())
    }

    /// Tells whether a transition that wrote these places can have changed the verdict.
    fn may_differ(&mut self, state: &Value, written: &[Pointer]) -> bool {
        let read_set = self.predicate.read_set();
        let touched = written.iter().any(|path| match unknown::marks(path) {
            None => read_set.iter().any(|place| place.overlaps(path)),
            Some(marked) => marked.is_none_or(|marked| read_set.iter().any(|place| place.overlaps(&marked))),
        });
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

/// The first name of a place, as it is written there; `None` for the whole.
pub(crate) fn first_name(place: &Pointer) -> Option<&str> {
    place.as_str().split('/').nth(1)
}

/// Tells for each place whether everything above it is there and holds members.
fn standing(read_set: &[Pointer], state: &Value) -> Vec<bool> {
    read_set.iter().map(|place| stands(place, state)).collect()
}

/// Returns what stood at a place before and after each transition of a range that wrote at, above or below `followed`,
/// which contains it.
pub fn values(
    trace: &Trace,
    place: &Pointer,
    followed: &Pointer,
    from: u64,
    to: u64,
) -> Result<BTreeMap<u64, ValueSides>, Error> {
    let mut found = BTreeMap::new();
    let first = from.saturating_sub(1);
    let watched = [from_first_name(followed)];
    fold_at(trace, &watched, first, to, false, &mut |step| {
        let tick = step.moment.tick;
        if tick > first && step.written.iter().any(|path| path.overlaps(followed)) {
            found.insert(tick, (place.get(step.before).cloned(), place.get(&step.moment.state).cloned()));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}

/// The values of a place before a transition, and after it.
pub type ValueSides = (Option<Value>, Option<Value>);

/// Applies what a record changed at the watched places, and nothing else; returns the whole change as well.
fn apply_watched(
    record: &Record,
    tick: u64,
    watched: &[Pointer],
    state: &Value,
) -> Result<(Delta, Value), Error> {
    let Some(delta) = record.body().value("/delta") else {
        return Err(ReplayError::Erased { tick, pointer: Some(Pointer::of(["delta"])) }.into());
    };
    let broken = |error| Error::from(ReplayError::Delta { tick, error });
    let delta = Delta::from_value(&delta).map_err(broken)?;
    let touches = |op: &&Op| watched.iter().any(|place| place.overlaps(&op.path));
    let part = Delta(delta.0.iter().filter(touches).cloned().collect());
    let after = if part.0.is_empty() { state.clone() } else { part.apply(state).map_err(broken)? };
    Ok((delta, after))
}

fn stands(place: &Pointer, state: &Value) -> bool {
    let tokens: Vec<_> = place.tokens().collect();
    let above = (1..tokens.len()).map(|n| Pointer::of(tokens[..n].iter().map(|token| &**token)));
    above.into_iter().all(|parent| matches!(parent.get(state), Some(Value::Object(_) | Value::Array(_))))
}
