//! Bisect: the first tick at which a predicate is violated, by reading committed states and nothing else.
//!
//! Ends first, then the interval form: `low` is the last tick known to be ok, `high` one known to be violated, and
//! each probe halves what lies between (dendrer paper 4.7; at most ceil(log2 n) probes). Halving is sound only for
//! a predicate that cannot recover. A newcomer would break that first: two ends that are ok prove nothing for a
//! predicate that may recover, so such a predicate is judged at every tick that wrote what it reads.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use dendrer_kernel::predicate::{Monotone, Predicate, Verdict, Window};
use dendrer_object::delta::Delta;
use dendrer_object::{Pointer, Value};

use crate::error::Error;
use crate::trace::{Moment, Trace};

/// What is asked.
#[derive(Debug, Clone)]
pub struct Query {
    /// The predicate.
    pub predicate: Predicate,
    /// The first tick of the range, usually 0.
    pub from: u64,
    /// The last tick of the range, usually the tip.
    pub to: u64,
    /// Whether to judge every tick besides, and compare.
    pub scan: bool,
}

/// One judged tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The tick.
    pub tick: u64,
    /// What the predicate said there.
    pub verdict: Verdict,
    /// What is left to search afterwards, as first and last tick.
    pub left: (u64, u64),
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Ok at the tick before, violated at this one and from here on.
    Onset(u64),
    /// Never violated in the range.
    Never,
    /// Violated at the first tick of the range already.
    Initial,
    /// The predicate recovers on this run, so there is no onset to bisect for. The ticks at which it turned.
    Recovers(Vec<(u64, Verdict)>),
    /// The predicate could not judge this tick.
    Uncertain(u64, String),
}

/// Everything that was found on the way.
#[derive(Debug, Clone)]
pub struct Report {
    /// The first tick of the range and its verdict.
    pub low: (u64, Verdict),
    /// The last tick of the range and its verdict.
    pub high: (u64, Verdict),
    /// The probes in order.
    pub probes: Vec<Probe>,
    /// How many probes the range can need at most.
    pub probes_max: u32,
    /// How many ticks were judged to see whether the predicate recovers; `None` if it cannot.
    pub candidates: Option<u64>,
    /// What came out.
    pub outcome: Outcome,
    /// With a scan: the first violated tick that judging every tick finds.
    pub scan: Option<Option<u64>>,
}

/// Runs the query.
pub fn bisect(trace: &Trace<'_>, query: &Query) -> Result<Report, Error> {
    let judge = Judge { trace: &fresh(trace, &query.predicate)?, predicate: &query.predicate };
    let (from, to) = (query.from, query.to);
    let low = (from, judge.at(from)?);
    let high = (to, judge.at(to)?);
    let mut report = Report {
        low,
        high,
        probes: Vec::new(),
        probes_max: probes_max(to.saturating_sub(from)),
        candidates: None,
        outcome: Outcome::Never,
        scan: None,
    };
    if query.scan {
        let verdicts = judge.turns(from, to, Candidates::Every)?.turns;
        report.scan =
            Some(verdicts.iter().find(|(_, verdict)| *verdict == Verdict::Violation).map(|(tick, _)| *tick));
    }
    if let Some((tick, why)) = uncertain(&[&report.low, &report.high]) {
        report.outcome = Outcome::Uncertain(tick, why);
        return Ok(report);
    }
    if query.predicate.monotone() == Monotone::Unknown {
        let turns = judge.turns(from, to, Candidates::Written)?;
        report.candidates = Some(turns.judged);
        if let Some((tick, why)) = uncertain(&turns.turns.iter().collect::<Vec<_>>()) {
            report.outcome = Outcome::Uncertain(tick, why);
            return Ok(report);
        }
        let first_violation = turns.turns.iter().position(|(_, verdict)| *verdict == Verdict::Violation);
        if first_violation.is_some_and(|at| at + 1 < turns.turns.len()) {
            report.outcome = Outcome::Recovers(turns.turns[first_violation.unwrap_or(0)..].to_vec());
            return Ok(report);
        }
    }
    report.outcome = match (&report.low.1, &report.high.1) {
        (Verdict::Violation, _) => Outcome::Initial,
        (_, Verdict::Violation) => search(from, to, &mut |tick| judge.at(tick), &mut report.probes)?,
        _ => Outcome::Never,
    };
    if let Outcome::Onset(tick) = report.outcome {
        confirm(&judge, tick)?;
    }
    Ok(report)
}

/// Halves the range between a tick that is ok and one that is violated.
pub fn search<E>(
    low: u64,
    high: u64,
    judge: &mut dyn FnMut(u64) -> Result<Verdict, E>,
    probes: &mut Vec<Probe>,
) -> Result<Outcome, E> {
    let (mut low, mut high) = (low, high);
    while high - low > 1 {
        let tick = low + (high - low) / 2;
        let verdict = judge(tick)?;
        match &verdict {
            Verdict::Violation => high = tick,
            Verdict::Ok => low = tick,
            Verdict::Uncertain(why) => {
                let outcome = Outcome::Uncertain(tick, why.clone());
                probes.push(Probe { tick, verdict, left: (low + 1, high) });
                return Ok(outcome);
            }
        }
        probes.push(Probe { tick, verdict, left: (low + 1, high) });
    }
    Ok(Outcome::Onset(high))
}

/// Returns ceil(log2 n): how many probes a range of n ticks after the first can need.
pub fn probes_max(n: u64) -> u32 {
    if n <= 1 { 0 } else { 64 - (n - 1).leading_zeros() }
}

fn uncertain(verdicts: &[&(u64, Verdict)]) -> Option<(u64, String)> {
    verdicts.iter().find_map(|(tick, verdict)| match verdict {
        Verdict::Uncertain(why) => Some((*tick, why.clone())),
        _ => None,
    })
}

/// Judges the onset and the tick before it once more, on a trace that remembers nothing.
fn confirm(judge: &Judge<'_, '_>, onset: u64) -> Result<(), Error> {
    let again = Judge { trace: &fresh(judge.trace, judge.predicate)?, predicate: judge.predicate };
    let both = (again.at(onset - 1)?, again.at(onset)?);
    assert!(
        both == (Verdict::Ok, Verdict::Violation),
        "a predicate gave two verdicts for one state: a predicate must be a function of the state"
    );
    Ok(())
}

/// Opens the run again, remembering nothing, and without what no record binds.
fn fresh<'s>(trace: &Trace<'s>, predicate: &Predicate) -> Result<Trace<'s>, Error> {
    let fresh = Trace::open(trace.store(), trace.name())?;
    Ok(if predicate.expr().reads_counters() { fresh.without_snapshots() } else { fresh })
}

struct Judge<'a, 's> {
    trace: &'a Trace<'s>,
    predicate: &'a Predicate,
}

enum Candidates {
    /// Every tick.
    Every,
    /// The ticks that wrote where the predicate reads.
    Written,
}

struct Turns {
    /// The verdict at the first tick, and each tick at which it became another.
    turns: Vec<(u64, Verdict)>,
    judged: u64,
}

impl Judge<'_, '_> {
    fn at(&self, tick: u64) -> Result<Verdict, Error> {
        let looked_at = match self.predicate.window() {
            Window::After => tick,
            Window::Before => tick.saturating_sub(1),
        };
        Ok(self.verdict(&self.trace.at(looked_at)?))
    }

    fn verdict(&self, moment: &Moment) -> Verdict {
        let counters = self.predicate.expr().reads_counters().then(|| moment.counters.to_value());
        self.predicate.verdict(&moment.state, counters.as_ref())
    }

    fn turns(&self, from: u64, to: u64, candidates: Candidates) -> Result<Turns, Error> {
        let shift = u64::from(self.predicate.window() == Window::Before);
        let (first, last) = (from.saturating_sub(shift), to.saturating_sub(shift));
        let mut found: BTreeMap<u64, Verdict> = BTreeMap::new();
        let mut judged = 0;
        let all = matches!(candidates, Candidates::Every) || self.predicate.expr().reads_counters();
        self.trace.moments(first, last, &mut |moment, record| {
            let delta = record.and_then(|record| record.body().value("/delta"));
            let is_first = moment.tick == first;
            if is_first || all || delta.is_some_and(|delta| touches(&delta, self.predicate.expr().read_set()))
            {
                judged += u64::from(!is_first);
                let verdict = self.verdict(moment);
                if found.last_key_value().is_none_or(|(_, last)| *last != verdict) {
                    found.insert(moment.tick + shift, verdict);
                }
            }
            ControlFlow::Continue(())
        })?;
        Ok(Turns { turns: found.into_iter().collect(), judged })
    }
}

fn touches(delta: &Value, read_set: &[Pointer]) -> bool {
    let Ok(delta) = Delta::from_value(delta) else { return true };
    delta.paths().any(|path| read_set.iter().any(|read| read.overlaps(path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(n: u64, onset: u64) -> (Vec<u64>, Outcome) {
        let mut probes = Vec::new();
        let mut judge = |tick: u64| {
            Ok::<_, std::convert::Infallible>(if tick >= onset { Verdict::Violation } else { Verdict::Ok })
        };
        let outcome = search(0, n, &mut judge, &mut probes).unwrap_or(Outcome::Never);
        (probes.iter().map(|probe| probe.tick).collect(), outcome)
    }

    #[test]
    fn probes_come_in_the_orders_of_the_paper() {
        for (n, onset, expected) in [
            (64, 22, &[32, 16, 24, 20, 22, 21][..]),
            (64, 14, &[32, 16, 8, 12, 14, 13]),
            (48, 1, &[24, 12, 6, 3, 1]),
            (40, 12, &[20, 10, 15, 12, 11]),
            (40, 14, &[20, 10, 15, 12, 13, 14]),
            (8, 4, &[4, 2, 3]),
            (8, 2, &[4, 2, 1]),
            (64, 64, &[32, 48, 56, 60, 62, 63]),
        ] {
            assert_eq!(order(n, onset), (expected.to_vec(), Outcome::Onset(onset)), "({n}, {onset})");
        }
    }

    #[test]
    fn every_onset_of_every_length_is_found_within_the_bound() {
        for n in 1..300 {
            for onset in 1..=n {
                let (probes, outcome) = order(n, onset);
                assert_eq!(outcome, Outcome::Onset(onset));
                assert!(probes.len() as u32 <= probes_max(n), "({n}, {onset}): {probes:?}");
            }
        }
        assert_eq!([1, 2, 3, 4, 5, 40, 48, 64, 65].map(probes_max), [0, 1, 2, 2, 3, 6, 6, 6, 7]);
    }
}
