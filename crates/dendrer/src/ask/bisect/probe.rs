//! Judges both ends of a range and the probes of the search between them, and no other tick.
//!
//! This is sound for predicates that are monotone by construction, and for no others (dendrer paper 3.3.3 and 4.7). Each
//! state is the one that the record of its tick binds, and that record is shown to be in the log by its path in the tree.
//! Counters are bound by no record: they count only from snapshots under the key of the store.

use dendrer_kernel::predicate::{Monotone, Predicate, Verdict};

use super::{BisectOutcome, search};
use crate::error::Error;
use crate::run::timeline::{Timeline, judge_at};
use crate::run::trace::Trace;
use crate::run::verdicts::{self, Way};

/// Judges predicates by probes. `None` if one of them needs more ticks than that, if states are folded from the beginning
/// of the run in any case, or if a predicate cannot judge a probe: then every candidate is to be judged.
pub(super) fn probe_each(
    trace: &Trace,
    predicates: &[&Predicate],
    from: u64,
    to: u64,
) -> Result<Option<Vec<Timeline>>, Error> {
    let has_key = trace.store().key().is_some();
    let is_latched = |predicate: &&Predicate| {
        predicate.monotone() == Monotone::ByConstruction
            && predicate.obligation().is_none()
            && !predicate.is_policy()
            && predicate.scope().is_empty()
            && (has_key || !predicate.reads_counters())
    };
    if predicates.is_empty() || !trace.is_cheaper_by_ticks(to) || !predicates.iter().all(is_latched) {
        return Ok(None);
    }
    let fresh = Trace::open(trace.store(), trace.name())?.by_path()?;
    predicates.iter().map(|predicate| probe(&fresh, predicate, from, to)).collect()
}

/// Judges one predicate, or returns what is known of it from before.
fn probe(trace: &Trace, predicate: &Predicate, from: u64, to: u64) -> Result<Option<Timeline>, Error> {
    let known = [Way::Candidates, Way::Probes].into_iter().filter(|_| from == 0);
    let known = known.filter_map(|way| verdicts::find(trace, predicate, way, to));
    let known = known.max_by_key(|line| line.known_to);
    let is_violated = |line: &Timeline| line.onset().is_some();
    if let Some(line) = known.as_ref().filter(|line| line.known_to == Some(to) || is_violated(line)) {
        return Ok(Some(Timeline { to, ..line.clone() }));
    }
    // Uncertain ticks that are known stay on the line.
    if known.as_ref().is_some_and(|line| line.turns.len() > 1) {
        return Ok(None);
    }
    let low = known.as_ref().and_then(|line| line.known_to).unwrap_or(from);
    let at = match judge_at(trace, predicate, low)? {
        Verdict::Violation => Some(low),
        Verdict::Uncertain(_) => return Ok(None),
        Verdict::Ok => match judge_at(trace, predicate, to)? {
            Verdict::Ok => None,
            Verdict::Uncertain(_) => return Ok(None),
            Verdict::Violation => {
                let judge = &mut |tick| judge_at(trace, predicate, tick);
                match search(low, to, judge, &mut Vec::new())? {
                    BisectOutcome::Onset(tick) => Some(tick),
                    _ => return Ok(None),
                }
            }
        },
    };
    let line = Timeline::latched(from, to, at, 0);
    verdicts::keep(trace, predicate, Way::Probes, &line);
    Ok(Some(Timeline { known_to: known.and_then(|line| line.known_to), ..line }))
}
