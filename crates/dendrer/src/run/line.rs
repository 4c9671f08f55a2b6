//! The verdicts of a predicate along a range of ticks.

use dendrer_kernel::obligation::Standing;
use dendrer_kernel::predicate::Verdict;

/// The verdicts of a range of ticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    /// The first tick.
    pub from: u64,
    /// The last tick.
    pub to: u64,
    /// The verdict at the first tick, and at each tick where it became another.
    pub turns: Vec<(u64, Verdict)>,
    /// Number of candidate ticks after the first that were judged.
    pub judged: u64,
    /// The last tick whose verdict was read from a kept statement; `None` if all were judged.
    pub known_to: Option<u64>,
    /// State of an obligation at the last tick; `None` for any other predicate.
    pub standing: Option<Standing>,
}

/// A longest range of ticks with one verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interval {
    /// The first tick.
    pub from: u64,
    /// The last tick.
    pub to: u64,
    /// The verdict; if it is uncertain for several reasons, the first of them.
    pub verdict: Verdict,
}

impl Timeline {
    pub(super) fn new(from: u64, to: u64) -> Timeline {
        Timeline { from, to, turns: Vec::new(), judged: 0, known_to: None, standing: None }
    }

    /// The part of a line from a tick to another; `None` if the turns begin later.
    pub(crate) fn of_turns(from: u64, to: u64, turns: &[(u64, Verdict)]) -> Option<Timeline> {
        let after = turns.partition_point(|(turn, _)| *turn <= from);
        let (_, first) = turns.get(after.checked_sub(1)?)?;
        let later = turns[after..].iter().filter(|(turn, _)| *turn <= to).cloned();
        let turns = [(from, first.clone())].into_iter().chain(later).collect();
        Some(Timeline { turns, ..Timeline::new(from, to) })
    }

    /// Extends the range to an earlier tick; the ticks before the old beginning are not violated.
    pub(crate) fn reaching_back_to(mut self, from: u64) -> Timeline {
        if from < self.from {
            match self.turns.first_mut() {
                Some((tick, Verdict::Ok)) => *tick = from,
                _ => self.turns.insert(0, (from, Verdict::Ok)),
            }
            self.from = from;
        }
        self
    }

    /// Makes the timeline of a violation that begins at `at` and stays.
    pub fn latched(from: u64, to: u64, at: Option<u64>, judged: u64) -> Timeline {
        let begin = (from, Verdict::Ok);
        let turns = match at {
            Some(at) if at == from => vec![(from, Verdict::Violation)],
            Some(at) => vec![begin, (at, Verdict::Violation)],
            None => vec![begin],
        };
        Timeline { turns, judged, ..Timeline::new(from, to) }
    }

    /// Returns the line as it is if nothing is known from a tick on but the violation.
    pub(crate) fn unknown_from(self, tick: u64, why: String) -> Timeline {
        let (tick, onset) = (tick.max(self.from), self.onset());
        let mut turns: Vec<(u64, Verdict)> =
            self.turns.into_iter().filter(|(turn, _)| *turn < tick).collect();
        if onset != Some(tick) {
            turns.push((tick, Verdict::Uncertain(why)));
        }
        turns.extend(onset.filter(|onset| *onset >= tick).map(|onset| (onset, Verdict::Violation)));
        Timeline { turns, ..self }
    }

    pub(super) fn push(&mut self, tick: u64, verdict: Verdict) {
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

    /// Lists the stretches of one verdict, ends included; what cannot be judged is one stretch whatever the reasons. They cover
    /// the range without gaps.
    pub fn intervals(&self) -> Vec<Interval> {
        self.stretches(|a, b| a == b || matches!((a, b), (Verdict::Uncertain(_), Verdict::Uncertain(_))))
    }

    /// Lists the stretches that cannot be judged and come before the first known violation, each with its reason: one of them
    /// may hide an earlier onset.
    pub fn unjudged(&self) -> Vec<Interval> {
        let known = self.onset().unwrap_or(u64::MAX);
        let hides = |one: &Interval| matches!(one.verdict, Verdict::Uncertain(_)) && one.from < known;
        self.reasons().into_iter().filter(hides).collect()
    }

    /// As [`Timeline::intervals`], where each reason for which a tick cannot be judged is a stretch of its own.
    pub fn reasons(&self) -> Vec<Interval> {
        self.stretches(|a, b| a == b)
    }

    fn stretches(&self, same: impl Fn(&Verdict, &Verdict) -> bool) -> Vec<Interval> {
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
