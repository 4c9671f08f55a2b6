//! Contributors: the smallest set of earlier transitions without which a violation does not come about (design,
//! section 8; dendrer paper 3.3.3).
//!
//! Found by delta debugging: the run is reduced again in memory from its records without some transitions, and judged.
//! No model and no tool is called, so the answer is exact for the intents on record. What an agent would have proposed
//! without them is not known, and whoever shows the answer says so.
//!
//! What a removal means:
//! * The transition at the onset stays, and must still be able to make its change: without it nothing would be asked. What the
//!   kernel wrote by itself stays, too.
//! * What is left keeps its order and its ticks, and goes through the same reducer, policy rules and contracts.
//! * Any other change that does not fit the state any more is not applied, as below stage 2, or refused, as from there on.
//!   Both are told, because a violation that vanishes since something else failed is another answer.
//! * A violation has vanished where the state at the onset is judged ok and none before it is violated. Uncertain is
//!   never taken for ok.
//!
//! A newcomer would break one rule: a set is called smallest only where every smaller one was tried.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use dendrer_kernel::predicate::{Predicate, Verdict, Window};
use dendrer_kernel::reduce::Reducer;
use dendrer_kernel::replay;
use dendrer_kernel::step::Stage;
use dendrer_kernel::step::diversion::{Diversion, RecordedStep};
use dendrer_object::Digest;

use crate::error::Error;
use crate::run::pack;
use crate::run::timeline::{self, first_name};
use crate::run::trace::Trace;

pub use crate::limits::EARLIER_MAX;

/// How many transitions the search goes through before it ends with what it has. One re-reduction goes through those from
/// shortly before the first that is left out up to the onset.
pub const WORK_MAX: u64 = 500_000;

/// A state of the run is kept after so many transitions, to go on from.
const BASE_EVERY: usize = 32;

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Contributors {
    /// The onset.
    pub onset: u64,
    /// How many transitions stand before it.
    pub earlier: u64,
    /// How many of them can matter to the predicate and could be removed.
    pub candidates: u64,
    /// What the removal of which clears the violation.
    pub found: ContributorsFound,
    /// Every set of at most so many candidates was tried.
    pub tried: usize,
    /// How often the run was reduced again.
    pub rereductions: u64,
    /// How many transitions it went through for that.
    pub work: u64,
    /// The run as it is recorded, made again.
    pub with: Proof,
    /// Whether intents bring their changes themselves, so what a change was decided on is not known.
    pub takes_deltas: bool,
}

/// What the search found.
#[derive(Debug, Clone, PartialEq)]
pub enum ContributorsFound {
    /// Without the transitions at these ticks the violation does not come about.
    Set {
        /// The ticks, in order.
        ticks: Vec<u64>,
        /// What is shown of the set.
        shown: Shown,
        /// The run without them.
        without: Proof,
    },
    /// No set of candidates clears the violation: every one was tried.
    Nothing,
    /// None was found, and not every one was tried.
    Unknown,
}

/// What is shown of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// Every smaller set was tried, and none clears the violation.
    Smallest,
    /// None of its members can be left out, and a smaller set of others was not ruled out.
    Minimal,
    /// It clears the violation; the search ended there.
    Clears,
}

/// A run that was reduced again up to the state that is judged at the onset.
#[derive(Debug, Clone, PartialEq)]
pub struct Proof {
    /// The root of that state.
    pub root: Digest,
    /// What the predicate says of it.
    pub verdict: Verdict,
    /// The ticks whose change could not be made, and could when it was recorded; and why.
    pub unapplied: Vec<(u64, String)>,
}

/// Looks for the contributors of an onset that [`bisect`](crate::ask::bisect) found in a range that begins at `from`.
///
/// Fails for an obligation and for a predicate that is looked for at some types alone, where a value was erased or
/// withheld, where the run was recorded under a reducer that is not here, where replay does not reproduce it, and where
/// more than [`EARLIER_MAX`] transitions stand before the onset.
pub fn contributors(
    trace: &Trace,
    predicate: &Predicate,
    from: u64,
    onset: u64,
    work_max: u64,
) -> Result<Contributors, Error> {
    let judged = match predicate.is_policy() {
        true => Some(timeline::policy::of_one_state(trace, predicate, onset)?),
        false => None,
    };
    let course = Course::read(trace, judged.as_ref().unwrap_or(predicate), from, onset)?;
    let with = course.prove(&[])?;
    let recorded = trace.state(course.at)?.digest();
    if with.root == recorded && with.verdict != Verdict::Violation {
        return Err(Error::Unconfirmed { run: trace.name().clone(), tick: onset });
    }
    if with.root != recorded {
        let reducer = course.reducers.last().map_or("", |reducer| reducer.name()).to_owned();
        return Err(Error::NotReproduced { run: trace.name().clone(), tick: course.at, reducer });
    }
    let candidates = course.candidates();
    let mut search = Search::new(&course, candidates, work_max)?;
    let mut set = search.some_set()?;
    if let Some(found) = set.take() {
        set = Some(search.minimize(found)?);
    }
    let (mut shown, mut tried) = (Shown::Clears, 0);
    let most = set.as_ref().map_or(search.candidates.len(), |set| set.len().saturating_sub(1));
    while tried < most && search.can_try_all(tried + 1) {
        match search.first_of_size(tried + 1)? {
            Some(smaller) => {
                set = Some(smaller);
                break;
            }
            None if search.is_over() => break,
            None => tried += 1,
        }
    }
    if let Some(set) = &set {
        shown = match () {
            () if tried + 1 >= set.len() => Shown::Smallest,
            () if search.is_minimal(set) => Shown::Minimal,
            () => Shown::Clears,
        };
    }
    let found = match set {
        Some(set) => {
            let ticks: Vec<u64> = set.iter().map(|at| search.candidates[*at]).collect();
            let without = course.prove(&ticks)?;
            // What the search skipped cannot matter; the whole run says so once more.
            if without.verdict != Verdict::Ok {
                return Err(Error::Unconfirmed { run: trace.name().clone(), tick: onset });
            }
            ContributorsFound::Set { ticks, shown, without }
        }
        None if tried == search.candidates.len() => ContributorsFound::Nothing,
        None => ContributorsFound::Unknown,
    };
    Ok(Contributors {
        onset,
        earlier: course.at.saturating_sub(1),
        candidates: search.candidates.len() as u64,
        found,
        tried,
        rereductions: search.rereductions,
        work: search.work,
        with,
        takes_deltas: course.reducers.iter().all(|reducer| reducer.takes_delta()),
    })
}

/// The transitions up to the state that is judged at an onset, taken apart.
struct Course<'a> {
    trace: &'a Trace,
    predicate: &'a Predicate,
    /// The first tick whose state is judged.
    first: u64,
    /// The tick whose state is judged at the onset.
    at: u64,
    begin: Diversion,
    told: Vec<RecordedStep>,
    /// For each run of the lineage.
    reducers: Vec<Box<dyn Reducer + Send + Sync>>,
    /// The first names of what the predicate reads; `None` where it reads the whole.
    names: Option<BTreeSet<String>>,
    /// Which transitions can matter to the predicate.
    matters: Vec<bool>,
}

impl<'a> Course<'a> {
    fn read(trace: &'a Trace, predicate: &'a Predicate, from: u64, onset: u64) -> Result<Course<'a>, Error> {
        if predicate.obligation().is_some() || !predicate.scope().is_empty() {
            return Err(Error::NotOneState { name: predicate.name().to_owned() });
        }
        let lag = u64::from(predicate.window() == Window::Before);
        let (first, at) = (from.saturating_sub(lag), onset.saturating_sub(lag));
        if at > EARLIER_MAX {
            return Err(Error::TooManyEarlier { run: trace.name().clone(), tick: onset });
        }
        let segments = 0..=trace.segment(at);
        let reducers = segments.map(|segment| pack::reducer_of_segment(trace, segment));
        let reducers = reducers.collect::<Result<Vec<_>, Error>>()?;
        let begin = Diversion::new(replay::replay_start(trace.start(), &*reducers[0])?);
        let mut told = Vec::new();
        trace.try_each::<Error>(1, at, &mut |tick, record| {
            told.push(RecordedStep::read(&record, &*reducers[trace.segment(tick)])?);
            Ok(ControlFlow::Continue(()))
        })?;
        let places = predicate.read_set();
        let names = places.iter().map(|place| first_name(place).map(str::to_owned));
        let names: Option<BTreeSet<String>> = names.collect();
        let mut course =
            Course { trace, predicate, first, at, begin, told, reducers, names, matters: Vec::new() };
        course.matters = course.slice();
        Ok(course)
    }

    /// Says which transitions can matter to the predicate. Where transitions bring their changes themselves, it is those that
    /// write what it reads, and those that write where one of these writes and so decide whether it fits. Told by the first
    /// name of a path: what lies beside a place can decide whether it is there.
    fn slice(&self) -> Vec<bool> {
        let is_plain = self.reducers.iter().all(|reducer| reducer.takes_delta())
            && self.begin.stage() < Stage::Contracts;
        let (true, false, Some(mut names)) =
            (is_plain, self.predicate.reads_counters(), self.names_with_rules())
        else {
            return vec![true; self.told.len()];
        };
        let mut matters = vec![false; self.told.len()];
        for (at, told) in self.told.iter().enumerate().rev() {
            let own: BTreeSet<String> = match told.delta() {
                Some(delta) => delta.paths().filter_map(first_name).map(str::to_owned).collect(),
                None if told.is_proposed() => BTreeSet::new(),
                None => BTreeSet::from(["kernel_anomalies", "policy"].map(str::to_owned)),
            };
            if self.is_onset(at) || !own.is_disjoint(&names) {
                matters[at] = true;
                names.extend(own);
            }
        }
        matters
    }

    /// The first names of what the predicate reads, and with `policy` of what decides it; `None` where that is not known.
    fn names_with_rules(&self) -> Option<BTreeSet<String>> {
        let mut names = self.names.clone()?;
        if !names.contains("policy") || self.reducers.len() == 1 && self.begin.policy().is_empty() {
            return Some(names);
        }
        for rule in self.begin.policy() {
            // Whatever comes first makes a rule judged that could not be judged before, whatever it writes.
            if matches!(rule.verdict(self.begin.state(), None), Verdict::Uncertain(_)) {
                return None;
            }
            for place in rule.read_set() {
                names.insert(first_name(place)?.to_owned());
            }
        }
        // A fork may go on under other rules.
        (self.reducers.len() == 1).then_some(names)
    }

    /// The ticks of what can be removed: earlier, proposed, and able to matter.
    fn candidates(&self) -> Vec<u64> {
        let earlier = self.told.len().saturating_sub(1);
        let all = self.told.iter().zip(&self.matters).take(earlier);
        all.filter(|(told, matters)| **matters && told.is_proposed()).map(|(told, _)| told.tick()).collect()
    }

    /// Takes one transition, and the terms of the forks that begin before it.
    fn take(&self, diversion: &mut Diversion, segment: &mut usize, at: usize) -> Result<Step, Error> {
        let told = &self.told[at];
        let own = self.trace.segment(told.tick());
        while *segment < own {
            *segment += 1;
            diversion.fork(&self.trace.begins()[*segment])?;
        }
        let taken = diversion.take(told, &*self.reducers[own]);
        let taken = taken.map_err(|error| Error::from(error).stopped_at(self.trace.name(), told.tick()))?;
        let read = match &self.names {
            Some(names) => taken.delta.paths().filter_map(first_name).any(|name| names.contains(name)),
            None => true,
        };
        Ok(Step { moved: read || self.predicate.reads_counters(), failed: taken.failed })
    }

    /// Whether a transition is the one that stays whatever is left out.
    fn is_onset(&self, at: usize) -> bool {
        at + 1 == self.told.len()
    }

    fn verdict(&self, diversion: &Diversion) -> Result<Verdict, Error> {
        let counters = self.predicate.reads_counters().then(|| diversion.counters().to_value());
        let judged = self.predicate.judge(diversion.state(), counters.as_ref());
        judged.map_err(|stopped| {
            Error::from(stopped).asked_as(self.predicate.name()).stopped_at(self.trace.name(), self.at)
        })
    }

    /// Reduces the whole run again without some ticks.
    fn prove(&self, removed: &[u64]) -> Result<Proof, Error> {
        let (mut diversion, mut segment, mut unapplied) = (self.begin.clone(), 0, Vec::new());
        for (at, told) in self.told.iter().enumerate() {
            if removed.binary_search(&told.tick()).is_ok() {
                continue;
            }
            let step = self.take(&mut diversion, &mut segment, at)?;
            unapplied.extend(step.failed.filter(|_| !told.failed()).map(|why| (told.tick(), why)));
        }
        Ok(Proof { root: diversion.state().digest(), verdict: self.verdict(&diversion)?, unapplied })
    }
}

struct Step {
    /// Whether the verdict may be another.
    moved: bool,
    failed: Option<String>,
}

/// A search among the candidates, named by their place among them.
struct Search<'c> {
    course: &'c Course<'c>,
    /// The ticks that can be removed.
    candidates: Vec<u64>,
    /// The places of the transitions that have to be reduced again.
    steps: Vec<usize>,
    /// For each candidate, its place among the steps.
    places: Vec<usize>,
    /// The recorded run before some of the steps, to go on from, with the run of the lineage it stands in.
    bases: Vec<(usize, Diversion, usize)>,
    /// What was tried, and whether it clears the violation.
    known: BTreeMap<Vec<usize>, bool>,
    rereductions: u64,
    work: u64,
    work_max: u64,
}

impl<'c> Search<'c> {
    fn new(course: &'c Course<'c>, candidates: Vec<u64>, work_max: u64) -> Result<Search<'c>, Error> {
        let steps: Vec<usize> = (0..course.told.len()).filter(|at| course.matters[*at]).collect();
        let place = |tick: &u64| steps.partition_point(|at| course.told[*at].tick() < *tick);
        let places = candidates.iter().map(place).collect();
        let (mut diversion, mut segment, mut bases) = (course.begin.clone(), 0, Vec::new());
        for (at, step) in steps.iter().enumerate() {
            if at % BASE_EVERY == 0 {
                bases.push((at, diversion.clone(), segment));
            }
            course.take(&mut diversion, &mut segment, *step)?;
        }
        let known = BTreeMap::new();
        let (rereductions, work) = (0, 0);
        Ok(Search { course, candidates, steps, places, bases, known, rereductions, work, work_max })
    }

    fn is_over(&self) -> bool {
        self.work >= self.work_max
    }

    /// Tells whether the violation vanishes without some candidates, given in order. Once the search is over, what was not
    /// tried before clears nothing. Fails where a limit ended a module: then nothing is known of the run without them.
    fn clears(&mut self, removed: &[usize]) -> Result<bool, Error> {
        if let Some(known) = self.known.get(removed) {
            return Ok(*known);
        }
        let Some(first) = removed.first().filter(|_| !self.is_over()) else { return Ok(false) };
        let begin = self.bases.partition_point(|(at, ..)| *at <= self.places[*first]) - 1;
        let (begin, mut diversion, mut segment) = self.bases[begin].clone();
        self.rereductions += 1;
        let mut gone = removed.iter().map(|at| self.places[*at]).peekable();
        let course = self.course;
        // What the state before the first removal says is known: nothing was violated there.
        let mut last = None;
        for at in begin..self.steps.len() {
            self.work += 1;
            if gone.next_if_eq(&at).is_some() {
                continue;
            }
            let step = self.steps[at];
            // The first state of the range stands until something behind it is written.
            if last.is_none() && course.told[step].tick() > course.first {
                last = Some(course.verdict(&diversion)?);
            }
            let taken = course.take(&mut diversion, &mut segment, step)?;
            if taken.failed.is_some() && course.is_onset(step) && !course.told[step].failed() {
                // What cannot happen any more brings nothing about, which answers nothing.
                last = Some(Verdict::Violation);
            } else if taken.moved && course.told[step].tick() >= course.first {
                last = Some(course.verdict(&diversion)?);
            }
            if last == Some(Verdict::Violation) {
                break;
            }
        }
        let last = last.map_or_else(|| course.verdict(&diversion), Ok)?;
        let clears = last == Verdict::Ok;
        self.known.insert(removed.to_vec(), clears);
        Ok(clears)
    }

    /// Finds some set that clears the violation: all candidates, or a part of them, later ones first.
    fn some_set(&mut self) -> Result<Option<Vec<usize>>, Error> {
        let all: Vec<usize> = (0..self.candidates.len()).collect();
        if all.is_empty() || self.clears(&all)? {
            return Ok(Some(all).filter(|all| !all.is_empty()));
        }
        let mut parts = 2;
        loop {
            for part in all.chunks(all.len().div_ceil(parts)).rev() {
                if self.clears(part)? {
                    return Ok(Some(part.to_vec()));
                }
                let rest: Vec<usize> = all.iter().copied().filter(|at| !part.contains(at)).collect();
                if self.clears(&rest)? {
                    return Ok(Some(rest));
                }
            }
            if parts >= all.len() || self.is_over() {
                return Ok(None);
            }
            parts = (parts * 2).min(all.len());
        }
    }

    /// Makes a clearing set smaller until no member can be left out (Zeller and Hildebrandt's ddmin, on what is removed;
    /// later candidates are kept where there is a choice).
    fn minimize(&mut self, mut set: Vec<usize>) -> Result<Vec<usize>, Error> {
        let mut parts = 2;
        while set.len() > 1 && !self.is_over() {
            let size = set.len().div_ceil(parts);
            let parts_of_it: Vec<Vec<usize>> = set.chunks(size).rev().map(<[usize]>::to_vec).collect();
            if let Some(part) = self.first_that_clears(parts_of_it)? {
                (set, parts) = (part, 2);
                continue;
            }
            let without = |part: &[usize]| -> Vec<usize> {
                set.iter().copied().filter(|at| part.binary_search(at).is_err()).collect()
            };
            let rests: Vec<Vec<usize>> = set.chunks(size).map(without).collect();
            match self.first_that_clears(rests)? {
                Some(rest) => (set, parts) = (rest, (parts - 1).max(2)),
                None if parts >= set.len() => break,
                None => parts = (parts * 2).min(set.len()),
            }
        }
        // Chunks of an uneven list leave some members that were not tried by themselves.
        let mut at = 0;
        while at < set.len() && set.len() > 1 {
            let mut rest = set.clone();
            rest.remove(at);
            match self.clears(&rest)? {
                true => (set, at) = (rest, 0),
                false => at += 1,
            }
        }
        Ok(set)
    }

    /// Finds the first of some sets that clears the violation.
    fn first_that_clears(&mut self, sets: Vec<Vec<usize>>) -> Result<Option<Vec<usize>>, Error> {
        for set in sets {
            if !set.is_empty() && self.clears(&set)? {
                return Ok(Some(set));
            }
        }
        Ok(None)
    }

    /// Whether it is known that no member can be left out.
    fn is_minimal(&self, set: &[usize]) -> bool {
        (0..set.len()).all(|at| {
            let rest: Vec<usize> = set.iter().copied().filter(|one| *one != set[at]).collect();
            rest.is_empty() || self.known.get(&rest) == Some(&false)
        })
    }

    /// Whether there is room to try every set of a size.
    fn can_try_all(&self, size: usize) -> bool {
        let mut sets: u64 = 1;
        for at in 0..size.min(self.candidates.len() - size) as u64 {
            // Exact, because the product of so many successive numbers is divisible.
            sets = sets.saturating_mul(self.candidates.len() as u64 - at) / (at + 1);
        }
        let left = self.work_max.saturating_sub(self.work);
        sets.saturating_mul(self.steps.len() as u64) <= left
    }

    /// Finds the first set of a size that clears the violation.
    fn first_of_size(&mut self, size: usize) -> Result<Option<Vec<usize>>, Error> {
        let last = self.candidates.len();
        let mut set: Vec<usize> = (0..size).collect();
        loop {
            if self.clears(&set)? {
                return Ok(Some(set));
            }
            let Some(at) = (0..size).rev().find(|at| set[*at] < last - size + *at) else { return Ok(None) };
            set[at] += 1;
            for next in at + 1..size {
                set[next] = set[next - 1] + 1;
            }
        }
    }
}
