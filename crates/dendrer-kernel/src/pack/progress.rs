//! Reading progress contracts, and what the composite signal of a pack is made of (dendrer paper 4.6 and 9.5).

use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_object::{Code, Digest, Value};

use super::Declared;
use super::obligations::Known;
use super::read::{At, Faults, check_name, has_type, read_entry, read_lift, read_listed};
use crate::fold::kind;
use crate::predicate::{Polarity, Predicate, Window};
use crate::progress::{Challenges, Constraint, Goal, LAST_MAX, ProgressPlan, REACHES, Scored, Signal};

const CONTRACT: [&str; 8] =
    ["id", "version", "words", "score", "violation", "reason", "uncertain", "bisect_predicate"];
const PLAN: [&str; 5] = ["goals", "constraints", "challenges", "weights", "tolerance"];
const WEIGHTS: [&str; 3] = ["structural_completion", "constraint_satisfaction", "skeptic_survival_rate"];

/// The most that a constraint weighs.
const WEIGHT_MAX: f64 = 1_000_000.0;

/// Reads the progress contracts, each of which is a predicate as well, and reports all that is wrong with them.
pub(super) fn read_contracts(
    faults: &mut Faults,
    root: &At<'_>,
    known: &Known<'_>,
    pack: Digest,
) -> Vec<Declared> {
    let mut taken: BTreeSet<&str> = known.taken.iter().copied().collect();
    let mut read = Vec::new();
    for at in read_listed(faults, root, "progress_contracts") {
        let entry = read_entry(faults, &at, "a progress contract", &CONTRACT, "acme.tax_compliance");
        let Some((id, name)) = entry else { continue };
        if !check_name(faults, &id, name) {
            // It was reported.
        } else if Signal::from_word(name).is_some() {
            id.fault_of(faults, Code::E0903, format!("{name} is a signal of every plan"), "");
        } else if !taken.insert(name) {
            id.fault_of(faults, Code::E0903, format!("there is another predicate named {name}"), "");
        }
        let version = at.text(faults, "version");
        let message = format!("{name} does not say its version");
        at.needed(faults, "version", message, "add a line like `version: v1`");
        let words = at.shared(faults, "words");
        for (member, example) in [("score", "1.0 - state.risk"), ("violation", "state.risk > state.limit")] {
            let hint = format!("add a line like `{member}: {example}`");
            at.needed(faults, member, format!("{name} has no {member}"), &hint);
        }
        let violation = at.condition(faults, "violation", known.place);
        let mut value = |member: &str| {
            let text = at.text(faults, member)?;
            let place = at.member(member)?;
            place.parse(faults, 0, text, known.place, false)
        };
        let (score, reason) = (value("score"), value("reason"));
        let uncertain = at.condition(faults, "uncertain", known.place);
        let lifts = read_lift(faults, &at);
        // A part that is missing was reported as a fault, and a pack with faults is refused.
        let (Some(violation), Some(score), Some(version)) = (violation, score, version) else { continue };
        let scored = Scored::new(&violation, score, reason, uncertain);
        let (polarity, window) = (Polarity::Condition, Window::After);
        let predicate =
            Predicate::registered(name, version, polarity, window, violation, pack).scored(scored);
        let predicate = if lifts { predicate.lifted() } else { predicate };
        read.push(Declared { predicate, words, is_violation: false });
    }
    read
}

/// Reads the plan of the composite signal, if there is one.
pub(super) fn read_plan(faults: &mut Faults, root: &At<'_>, known: &Known<'_>) -> Option<ProgressPlan> {
    let at = root.member("progress")?;
    at.object(faults, "progress", &PLAN)?;
    let place = known.place.with_transition();
    let goals = at.named(faults, "goals", "which transition reaches them");
    let goals: Vec<Goal> = goals
        .into_iter()
        .map(|(name, goal)| {
            let when = match goal.value {
                Value::Null => None,
                Value::String(text) => goal.parse(faults, 0, text, &place, true),
                other => {
                    let message =
                        format!("a sub-goal is a condition on t, written as text, not {}", kind(other));
                    goal.refuse(faults, message, "leave it empty where t.goal names it")
                }
            };
            Goal { name: Arc::from(name), when }
        })
        .collect();
    let reachable = REACHES.iter().any(|name| name.parse().is_ok_and(|name| has_type(known.types, &name)));
    if !reachable && !goals.is_empty() {
        let message = format!("no transition can reach a sub-goal: none of {} is known", REACHES.join(", "));
        at.fault_of(faults, Code::E0903, message, "register one under `types`");
    }
    let listed = at.named(faults, "constraints", "what must hold");
    let constraints: Vec<Constraint> = listed
        .into_iter()
        .filter_map(|(name, one)| {
            one.object(faults, "a constraint", &["holds", "weight"])?;
            let message = format!("{name} does not say what must hold");
            one.needed(faults, "holds", message, "add a line like `holds: state.spent <= budget`");
            let weight = read_weight(faults, &one, "weight").unwrap_or(1.0);
            let holds = one.condition(faults, "holds", known.place)?;
            Some(Constraint { name: Arc::from(name), holds, weight })
        })
        .collect();
    let challenges = at.member("challenges").and_then(|told| {
        told.object(faults, "challenges", &["type", "survived", "last"])?;
        for member in ["type", "survived", "last"] {
            let hint = "like `{type: skeptic.challenge, survived: t.intent.stood, last: 20}`";
            told.needed(faults, member, format!("challenges have no {member}"), hint);
        }
        let type_name = known.read_type(faults, &told, "type");
        let survived = told.condition(faults, "survived", &place);
        let last = told.member("last").and_then(|last| {
            let count = last.value.as_u64().filter(|count| (1..=LAST_MAX).contains(count));
            if count.is_none() {
                last.fault(faults, format!("last is a number from 1 to {LAST_MAX}"), "");
            }
            usize::try_from(count?).ok()
        });
        Some(Challenges { type_name: type_name?, survived: survived?, last: last? })
    });
    let weights = read_weights(faults, &at);
    let there = [!goals.is_empty(), !constraints.is_empty(), at.member("challenges").is_some()];
    for ((weight, name), there) in weights.iter().zip(WEIGHTS).zip(there) {
        if *weight > 0.0 && !there {
            let message = format!("{name} weighs {weight}, and nothing is declared that it could be made of");
            at.fault(faults, message, "declare goals, constraints or challenges, or let it weigh 0");
        }
    }
    let tolerance = read_weight(faults, &at, "tolerance").unwrap_or(0.0);
    Some(ProgressPlan::new(goals, constraints, challenges, weights, tolerance))
}

fn read_weights(faults: &mut Faults, plan: &At<'_>) -> [f64; 3] {
    let Some(at) = plan.member("weights") else {
        let hint = format!("add `weights:` with {}", WEIGHTS.join(", "));
        plan.fault(faults, "progress does not say what its signals weigh", &hint);
        return [0.0; 3];
    };
    if at.object(faults, "weights", &WEIGHTS).is_none() {
        return [0.0; 3];
    }
    let weights = WEIGHTS.map(|name| {
        at.needed(faults, name, format!("there is no weight of {name}"), "0 is one, too");
        read_number(faults, &at, name, 1.0).unwrap_or(0.0)
    });
    // Decimal fractions that make 1 on paper may make a little more as doubles.
    let most = weights[0] + weights[1];
    if most > 1.0 + f64::EPSILON {
        let message = format!(
            "{} and {} weigh {most} together: a score is a number from 0 to 1",
            WEIGHTS[0], WEIGHTS[1]
        );
        at.fault(faults, message, "let both together weigh 1 or less");
    }
    weights
}

fn read_weight(faults: &mut Faults, parent: &At<'_>, name: &str) -> Option<f64> {
    read_number(faults, parent, name, WEIGHT_MAX)
}

fn read_number(faults: &mut Faults, parent: &At<'_>, name: &str, most: f64) -> Option<f64> {
    let at = parent.member(name)?;
    let weight = at.value.as_f64().filter(|weight| (0.0..=most).contains(weight));
    if weight.is_none() {
        at.fault(faults, format!("{name} is a number from 0 to {most}, not {}", at.value), "");
    }
    weight
}
