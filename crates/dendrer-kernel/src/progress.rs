//! Progress: what an institution says of how good a state is, and how far along a run seems to be (dendrer paper 4.6, 9.5
//! and appendix D).
//!
//! A [`Scored`] predicate is the paper's progress contract: one state gives ok with a score, a violation with a reason, or
//! uncertain. A [`ProgressPlan`] is its composite signal, which is walked over a run by a [`course::Course`]. Scores are made of states and
//! records alone, each step is one IEEE double, and what comes out is rounded to [`DECIMALS`] decimals, so that they are
//! the same on every machine.
//!
//! Rule: no invariant depends on a score. It is a heuristic, and every output labels it so.

use std::fmt;
use std::sync::Arc;

use dendrer_object::number::round_half_even;
use dendrer_object::{Pointer, TypeName, Value};

use crate::expr::{Budget, Env, EvalError, Expr, Truth};
use crate::obligation::unknown_words;
use crate::predicate::truth;

pub mod course;

/// How many decimals a score is kept to: those of a confidence.
pub const DECIMALS: u8 = 3;

/// The longest window of challenges.
pub const LAST_MAX: u64 = 10_000;

/// The reason of a contract whose `uncertain` is true of a state.
pub const CANNOT_TELL: &str = "the contract cannot tell";

/// The end of the reason of a contract whose score is out of range.
pub const NO_SCORE: &str = "which is no number from 0 to 1";

/// The types with which a sub-goal is reached (dendrer paper 9.5).
pub const REACHES: [&str; 2] = ["artifact.write", "goal.complete"];

/// The evaluation of a state by a progress contract (dendrer paper 4.6).
#[derive(Debug, Clone, PartialEq)]
pub enum Evaluation {
    /// All is well, and how well, from 0 to 1.
    Ok(f64),
    /// The contract is broken, and why: a value as the contract makes it, null if it does not say.
    Violation(Value),
    /// It cannot be said; a score where there is one, and why.
    Uncertain(Option<f64>, String),
}

impl fmt::Display for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Evaluation::Ok(score) => write!(f, "ok, score {score:.3}"),
            Evaluation::Violation(Value::Null) => f.write_str("violation"),
            Evaluation::Violation(reason) => write!(f, "violation: {reason}"),
            Evaluation::Uncertain(Some(score), why) => write!(f, "uncertain, score {score:.3}: {why}"),
            Evaluation::Uncertain(None, why) => write!(f, "uncertain: {why}"),
        }
    }
}

/// The part of a progress contract beside its violation.
#[derive(Debug)]
pub struct Scored {
    /// How good a state is, from 0 to 1.
    pub score: Expr,
    /// Why a state is in violation.
    pub reason: Option<Expr>,
    /// Whether the contract itself cannot tell.
    pub uncertain: Option<Expr>,
    reads: Vec<Pointer>,
}

impl Scored {
    /// Builds a score; the contract is broken where `violation` is true.
    pub fn new(violation: &Expr, score: Expr, reason: Option<Expr>, uncertain: Option<Expr>) -> Scored {
        let mut scored = Scored { score, reason, uncertain, reads: Vec::new() };
        let exprs = std::iter::once(violation).chain(scored.exprs());
        scored.reads = Pointer::outermost(exprs.flat_map(|expr| expr.read_set().to_vec()).collect());
        scored
    }

    /// The expressions beside the violation.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        std::iter::once(&self.score).chain(&self.reason).chain(&self.uncertain)
    }

    /// The places of the state that it can look at, sorted, none below another.
    pub fn read_set(&self) -> &[Pointer] {
        &self.reads
    }

    /// Judges a state.
    pub fn evaluate(&self, violation: &Expr, env: &Env<'_>) -> Evaluation {
        let score = score(&self.score, env);
        match truth(violation, env) {
            Truth::True => {
                // A violation is one, whether or not its reason can be told.
                let reason = self.reason.as_ref().and_then(|expr| value(expr, env).ok());
                return Evaluation::Violation(reason.unwrap_or(Value::Null));
            }
            Truth::False => {}
            unknown => {
                return Evaluation::Uncertain(score.ok(), unknown_words(&unknown).unwrap_or_default());
            }
        }
        let doubtful = self.uncertain.as_ref().map_or(Truth::False, |expr| truth(expr, env));
        match (score, doubtful) {
            (Err(why), _) => Evaluation::Uncertain(None, why),
            (Ok(score), Truth::False) => Evaluation::Ok(score),
            (Ok(score), Truth::True) => Evaluation::Uncertain(Some(score), CANNOT_TELL.to_owned()),
            (Ok(score), unknown) => {
                Evaluation::Uncertain(Some(score), unknown_words(&unknown).unwrap_or_default())
            }
        }
    }
}

fn value(expr: &Expr, env: &Env<'_>) -> Result<Value, String> {
    expr.evaluate(env, &mut Budget::default()).map_err(|error| match error {
        EvalError::Uncertain(why) => why.to_string(),
        EvalError::Exhausted => format!("it takes more than {} steps", crate::expr::STEPS_MAX),
    })
}

fn score(expr: &Expr, env: &Env<'_>) -> Result<f64, String> {
    let value = value(expr, env)?;
    match value.as_f64() {
        Some(score) if (0.0..=1.0).contains(&score) => Ok(round_half_even(score, DECIMALS)),
        _ => Err(format!("the score is {value}, {NO_SCORE}")),
    }
}

/// The parts of the composite signal of a pack (dendrer paper 9.5).
#[derive(Debug)]
pub struct ProgressPlan {
    /// The sub-goals; at least one, unless their share weighs nothing.
    pub goals: Vec<Goal>,
    /// The constraints, each with its weight.
    pub constraints: Vec<Constraint>,
    /// How challenges are told.
    pub challenges: Option<Challenges>,
    /// The weights of the three signals, in their order.
    pub weights: [f64; 3],
    /// How far a score may fall below the best there was before it counts.
    pub tolerance: f64,
    reads: Vec<Pointer>,
}

/// A sub-goal.
#[derive(Debug)]
pub struct Goal {
    /// Its name.
    pub name: Arc<str>,
    /// Which transition of one of [`REACHES`] reaches it; one that names it as its goal, if nothing is said.
    pub when: Option<Expr>,
}

/// A declared constraint.
#[derive(Debug)]
pub struct Constraint {
    /// Its name.
    pub name: Arc<str>,
    /// The condition that must hold.
    pub holds: Expr,
    /// How much it counts.
    pub weight: f64,
}

/// The places of a run that record challenges.
#[derive(Debug)]
pub struct Challenges {
    /// The type of the transition that tells of a challenge.
    pub type_name: TypeName,
    /// Whether what was challenged stood as it was.
    pub survived: Expr,
    /// How many of the newest count.
    pub last: usize,
}

dendrer_object::words! {
    /// A signal of a plan.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Signal {
        /// All three together.
        Progress = "progress",
        /// How much of the declared constraints holds.
        ConstraintSatisfaction = "constraint_satisfaction",
        /// Which share of the newest challenges changed nothing.
        SkepticSurvivalRate = "skeptic_survival_rate",
    }
}

impl ProgressPlan {
    /// Puts a plan together.
    pub fn new(
        goals: Vec<Goal>,
        constraints: Vec<Constraint>,
        challenges: Option<Challenges>,
        weights: [f64; 3],
        tolerance: f64,
    ) -> ProgressPlan {
        let mut plan = ProgressPlan { goals, constraints, challenges, weights, tolerance, reads: Vec::new() };
        plan.reads = Pointer::outermost(plan.exprs().flat_map(|expr| expr.read_set().to_vec()).collect());
        plan
    }

    /// Every expression in it.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let goals = self.goals.iter().filter_map(|goal| goal.when.as_ref());
        let constraints = self.constraints.iter().map(|constraint| &constraint.holds);
        goals.chain(constraints).chain(self.challenges.iter().map(|challenges| &challenges.survived))
    }

    /// The places of the state that it can look at, sorted, none below another.
    pub fn read_set(&self) -> &[Pointer] {
        &self.reads
    }

    /// Whether a run under this plan has a signal.
    pub fn has(&self, signal: Signal) -> bool {
        match signal {
            Signal::Progress => true,
            Signal::ConstraintSatisfaction => !self.constraints.is_empty(),
            Signal::SkepticSurvivalRate => self.challenges.is_some(),
        }
    }
}

#[cfg(test)]
mod tests;
