//! Walks the composite progress signal of a run.
//!
//! [`ProgressCourse`] takes records apart with the kernel's step, and a plan knows nothing of records: so the plan can be part of
//! a pack, which `step` depends on.

use std::collections::VecDeque;

use dendrer_object::number::round_half_even;
use dendrer_object::record::Record;
use dendrer_object::{Intent, Value};

use super::{DECIMALS, ProgressPlan, REACHES, Signal};
use crate::expr::{Env, Expr, Truth};
use crate::obligation::unknown_words;
use crate::predicate::truth;
use crate::step::{self, Cause};

/// A score, or the reason that there is no score.
pub type Reading = Result<f64, String>;

/// A run as far as its progress goes, tick by tick from 0.
#[derive(Debug)]
pub struct ProgressCourse<'p> {
    plan: &'p ProgressPlan,
    /// For each sub-goal: whether it is reached, or why that is unknown.
    reached: Vec<Result<bool, String>>,
    /// The newest challenges: whether what was challenged stood.
    survived: VecDeque<Result<bool, String>>,
    /// For each constraint: whether it holds.
    holds: Vec<Result<bool, String>>,
}

impl<'p> ProgressCourse<'p> {
    /// A run that has not begun.
    pub fn new(plan: &'p ProgressPlan) -> ProgressCourse<'p> {
        let holds = plan.constraints.iter().map(|_| Ok(true)).collect();
        ProgressCourse { plan, reached: vec![Ok(false); plan.goals.len()], survived: VecDeque::new(), holds }
    }

    /// Takes the next tick: its record, and the state after it. `looked` says whether the state may be another one than
    /// before, as far as the plan looks at it.
    pub fn pass(&mut self, record: Option<&Record>, state: &Value, counters: Option<&Value>, looked: bool) {
        let env = Env { counters, ..Env::of(state) };
        if looked {
            let constraints = self.plan.constraints.iter();
            self.holds = constraints.map(|one| decided(truth(&one.holds, &env))).collect();
        }
        let Some(type_name) = record.and_then(|record| record.header().type_name.as_ref()) else { return };
        let reaches = REACHES.contains(&type_name.as_str());
        let challenges = self.plan.challenges.as_ref().filter(|told| told.type_name == *type_name);
        if !reaches && challenges.is_none() {
            return;
        }
        let intent = record.and_then(intent_of).ok_or_else(|| "a transition cannot be read whole".to_owned());
        let t = intent.as_ref().map(|intent| crate::fold::transition(intent));
        let judge = |expr: &Expr| {
            let t = t.as_ref().map_err(|why| (*why).clone())?;
            decided(truth(expr, &Env { others: &[("t", t)], ..env }))
        };
        if reaches {
            for (goal, reached) in self.plan.goals.iter().zip(&mut self.reached) {
                if *reached == Ok(true) {
                    continue;
                }
                let now = match (&goal.when, &intent) {
                    (Some(when), _) => judge(when),
                    (None, Ok(intent)) => Ok(intent.goal.as_deref() == Some(&*goal.name)),
                    (None, Err(why)) => Err(why.clone()),
                };
                // A goal that may have been reached before stays uncertain until it is reached for sure.
                if now != Ok(false) && (reached.is_ok() || now == Ok(true)) {
                    *reached = now;
                }
            }
        }
        if let Some(told) = challenges {
            self.survived.push_back(judge(&told.survived));
            while self.survived.len() > told.last {
                self.survived.pop_front();
            }
        }
    }

    /// Reads a signal on the run so far.
    pub fn reading(&self, signal: Signal) -> Reading {
        match signal {
            Signal::ConstraintSatisfaction => self.constraint_satisfaction(),
            Signal::SkepticSurvivalRate => self.skeptic_survival_rate(),
            Signal::Progress => {
                let [w1, w2, w3] = self.plan.weights;
                // A signal of weight 0 need not be known.
                let part = |weight: f64, reading: Reading| if weight == 0.0 { Ok(0.0) } else { reading };
                let structural = part(w1, self.structural_completion())?;
                let satisfied = part(w2, self.constraint_satisfaction())?;
                let survived = if w3 == 0.0 { 1.0 } else { self.skeptic_survival_rate()? };
                // A score is a number from 0 to 1 (dendrer paper 4.6); lost challenges alone could push it below 0.
                Ok(rounded(w1 * structural + w2 * satisfied - w3 * (1.0 - survived)).clamp(0.0, 1.0))
            }
        }
    }

    /// Signal 1: the share of sub-goals that were reached.
    pub fn structural_completion(&self) -> Reading {
        share(self.reached.iter().map(|reached| (reached, 1.0)))
    }

    /// Signal 2: the share of constraints that hold, by weight.
    pub fn constraint_satisfaction(&self) -> Reading {
        share(self.holds.iter().zip(self.plan.constraints.iter().map(|one| one.weight)))
    }

    /// Signal 3: the share of the newest challenges that changed nothing; 1 where nothing was challenged.
    pub fn skeptic_survival_rate(&self) -> Reading {
        if self.survived.is_empty() { Ok(1.0) } else { share(self.survived.iter().map(|one| (one, 1.0))) }
    }
}

/// The share by weight of the parts that are true, or the first reason why one is unknown.
fn share<'r>(parts: impl Iterator<Item = (&'r Result<bool, String>, f64)>) -> Reading {
    let (mut so, mut all) = (0.0, 0.0);
    for (part, weight) in parts {
        all += weight;
        so += if part.clone()? { weight } else { 0.0 };
    }
    Ok(if all == 0.0 { 0.0 } else { rounded(so / all) })
}

fn rounded(score: f64) -> f64 {
    // There is one zero.
    round_half_even(score, DECIMALS) + 0.0
}

fn decided(truth: Truth) -> Result<bool, String> {
    match unknown_words(&truth) {
        None => Ok(truth == Truth::True),
        Some(why) => Err(why),
    }
}

/// Returns the intent of a record; `None` if a part of it was erased, or if it was the kernel's own.
fn intent_of(record: &Record) -> Option<Box<Intent>> {
    match step::cause(record, false)?.0 {
        Cause::Proposed(intent) => Some(intent),
        _ => None,
    }
}
