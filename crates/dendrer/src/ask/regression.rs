//! Regression: the first tick at which a score is lower than it was before (dendrer paper 9.5 and appendix D).
//!
//! A score is a heuristic. Where it fell is exact as a statement about the score; that this is where a run went wrong
//! is not. A newcomer would break one rule: nothing that is called exact rests on a score, and where an invariant says
//! otherwise, the invariant is right.

use std::ops::ControlFlow;

use dendrer_kernel::expr::Expr;
use dendrer_kernel::pack::Pack;
use dendrer_kernel::predicate::{Predicate, Verdict};
use dendrer_kernel::progress::course::ProgressCourse;
use dendrer_kernel::progress::{DECIMALS, Evaluation, ProgressPlan, Signal};
use dendrer_object::number::round_half_even;
use dendrer_object::{Digest, Pointer};

use crate::ask::bisect::{BisectSubject, Range};
use crate::ask::prose::results_under;
use crate::error::Error;
use crate::run::timeline::{Timeline, counters_of, fold_at, from_first_name};
use crate::run::trace::Trace;

/// What is scored.
#[derive(Debug, Clone, Copy)]
pub enum Metric<'p> {
    /// A signal of the pack's plan.
    Signal(Signal, &'p ProgressPlan),
    /// A progress contract of the pack.
    Contract(&'p Predicate),
}

impl<'p> Metric<'p> {
    /// Finds what a name means under a pack: a signal, or a progress contract by its name, which may stand behind that of
    /// the pack.
    pub fn find(pack: &'p Pack, name: &str) -> Option<Metric<'p>> {
        let signal = Signal::from_word(name);
        if let Some(signal) = signal {
            let plan = pack.progress.as_ref().filter(|plan| plan.has(signal))?;
            return Some(Metric::Signal(signal, plan));
        }
        pack.predicate(name).filter(|found| found.progress().is_some()).map(Metric::Contract)
    }

    /// Every name that means something under a pack.
    pub fn names(pack: &Pack) -> Vec<String> {
        let signals =
            Signal::ALL.iter().copied().filter(|signal| Metric::find(pack, signal.as_str()).is_some());
        let contracts = pack.progress_contracts.iter().map(|one| one.predicate.name().to_owned());
        signals.map(|signal| signal.as_str().to_owned()).chain(contracts).collect()
    }

    /// The name.
    pub fn name(&self) -> &'p str {
        match self {
            Metric::Signal(signal, _) => signal.as_str(),
            Metric::Contract(contract) => contract.name(),
        }
    }

    /// The places that it reads, and its expressions.
    fn asked(&self) -> (&'p [Pointer], Vec<&'p Expr>) {
        match self {
            Metric::Signal(_, plan) => (plan.read_set(), plan.exprs().collect()),
            Metric::Contract(contract) => (contract.read_set(), contract.exprs().collect()),
        }
    }

    fn version(&self) -> &'p str {
        match self {
            Metric::Signal(..) => "v1",
            Metric::Contract(contract) => contract.version(),
        }
    }

    fn tolerance(&self) -> f64 {
        match self {
            Metric::Signal(Signal::Progress, plan) => plan.tolerance,
            Metric::Signal(..) | Metric::Contract(_) => 0.0,
        }
    }
}

/// What a metric says from a tick on.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricReading {
    /// The first tick.
    pub tick: u64,
    /// What it says there.
    pub said: Evaluation,
}

/// Where a metric first fell below the best it had been in a range.
#[derive(Debug, Clone)]
pub struct Regression {
    /// The name of the metric.
    pub metric: String,
    /// Its version.
    pub version: String,
    /// What identifies the question.
    pub digest: Digest,
    /// How far it may fall before it counts.
    pub tolerance: f64,
    /// The best score before it fell, and the first tick that had it; of the whole range if it did not.
    pub best: Option<(f64, u64)>,
    /// What it says at the first tick of the range.
    pub first: Evaluation,
    /// What it says at the last one.
    pub last: Evaluation,
    /// The tick at which it fell, and what it says there.
    pub fell: Option<MetricReading>,
    /// Where a score is not known before it fell: the verdict at the first such tick, and at each later one where it became
    /// another. Empty where each score is known.
    pub unknown: Vec<(u64, Verdict)>,
    /// How many results up to there have a status that was read from prose, if the metric uses it.
    pub from_text: u64,
}

impl Regression {
    /// Says what the violation is.
    pub fn words(&self) -> String {
        let by =
            if self.tolerance > 0.0 { format!(" by more than {}", self.tolerance) } else { String::new() };
        format!("violated from the first tick at which {} is lower than it was before{by}", self.metric)
    }

    /// What is searched: ok before it fell, violated from then on.
    pub(crate) fn timeline(&self, from: u64, to: u64) -> Timeline {
        let fell = self.fell.as_ref().map(|reading| reading.tick);
        let line = Timeline::latched(from, to, fell, 0);
        match self.unknown.first() {
            None => line,
            Some((tick, _)) => {
                let begin = Some((from, Verdict::Ok)).filter(|_| *tick > from);
                Timeline { turns: begin.into_iter().chain(self.unknown.iter().cloned()).collect(), ..line }
            }
        }
    }
}

/// The reason at a tick whose own score is known, where an earlier one is not.
const MAY_HAVE_FALLEN: &str = "the score is known again, and may have been lower before";

/// Finds where a metric first fell. The run is read once.
pub fn regression(
    trace: &Trace,
    pack: &Pack,
    metric: &Metric<'_>,
    range: &Range,
) -> Result<BisectSubject, Error> {
    let readings = readings(trace, metric, range.from, range.to)?;
    let tolerance = metric.tolerance();
    let mut best: Option<(f64, u64)> = None;
    let (mut fell, mut unknown) = (None, Vec::new());
    for reading in &readings {
        let mut has_fallen = false;
        match &reading.said {
            Evaluation::Ok(score) => match best {
                Some((most, _)) if *score < round_half_even(most - tolerance, DECIMALS) => has_fallen = true,
                Some((most, _)) if *score <= most => {}
                _ => best = Some((*score, reading.tick)),
            },
            // A violation is worse than any score.
            Evaluation::Violation(_) => has_fallen = true,
            Evaluation::Uncertain(_, why) => unknown.push((reading.tick, Verdict::Uncertain(why.clone()))),
        }
        match (has_fallen, unknown.last()) {
            (true, None) => fell = Some(reading.clone()),
            (true, Some(_)) => unknown.push((reading.tick, Verdict::Violation)),
            // A score that is known again may have fallen while it was not, and come back.
            (false, Some((tick, Verdict::Uncertain(why))))
                if *tick != reading.tick && why != MAY_HAVE_FALLEN =>
            {
                unknown.push((reading.tick, Verdict::Uncertain(MAY_HAVE_FALLEN.to_owned())));
            }
            (false, _) => {}
        }
        if has_fallen {
            break;
        }
    }
    let ends = [readings.first(), readings.last()].map(|reading| {
        reading.map_or_else(|| Evaluation::Uncertain(None, String::new()), |reading| reading.said.clone())
    });
    let [first, last] = ends;
    let (reads, exprs) = metric.asked();
    let from_text = results_under(trace, exprs, reads, fell.as_ref().map_or(range.to, |fell| fell.tick))?;
    let parts = [b"dendrer/regression/v1\n", &pack.digest().0[..], metric.name().as_bytes()];
    Ok(BisectSubject::Regression(Box::new(Regression {
        metric: metric.name().to_owned(),
        version: metric.version().to_owned(),
        digest: Digest::of_parts(&parts),
        tolerance,
        best,
        first,
        last,
        fell,
        unknown,
        from_text,
    })))
}

/// Returns what a metric says in a range of ticks: at its beginning, and wherever it says something else.
pub fn readings(trace: &Trace, metric: &Metric<'_>, from: u64, to: u64) -> Result<Vec<MetricReading>, Error> {
    trace.confirm_tip()?;
    let (reads, exprs) = metric.asked();
    let counted = exprs.iter().any(|expr| expr.reads_counters());
    let watched: Vec<Pointer> = reads.iter().map(from_first_name).collect();
    let fresh = Trace::open(trace.store(), trace.name())?;
    let fresh = if counted { fresh.without_snapshots() } else { fresh };
    let mut course = match metric {
        Metric::Signal(_, plan) => Some(ProgressCourse::new(plan)),
        Metric::Contract(_) => None,
    };
    let mut readings: Vec<MetricReading> = Vec::new();
    // What was reached, and what was challenged, is known from the beginning of the run only.
    let first = if matches!(metric, Metric::Signal(..)) { 0 } else { from };
    fold_at(&fresh, &watched, first, to, counted, &mut |step| {
        let tick = step.moment.tick;
        // A place is watched from its first name on, so whatever can decide is written below one.
        let looked = counted
            || tick == first
            || step.written.iter().any(|path| watched.iter().any(|place| place.overlaps(path)));
        let counters = counters_of(&exprs, step.moment)?;
        let state = &step.moment.state;
        let said = match (metric, &mut course) {
            (Metric::Signal(signal, _), Some(course)) => {
                course.pass(step.record, state, counters.as_ref(), looked);
                match course.reading(*signal) {
                    Ok(score) => Evaluation::Ok(score),
                    Err(why) => Evaluation::Uncertain(None, why),
                }
            }
            (Metric::Contract(contract), _) if looked => contract.evaluate(state, counters.as_ref()),
            _ => return Ok(ControlFlow::Continue(())),
        };
        if tick <= from {
            readings.clear();
            readings.push(MetricReading { tick: from, said });
        } else if readings.last().is_none_or(|last| last.said != said) {
            readings.push(MetricReading { tick, said });
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(readings)
}
