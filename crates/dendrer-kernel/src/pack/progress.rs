//! Reading progress contracts, and what the composite signal of a pack is made of (dendrer paper 4.6 and 9.5).

use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_object::{Code, Digest, Value};

use super::Declared;
use super::obligations::Known;
use super::read::{At, Reader, check_name, has_type, read_id, read_lift};
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
    reader: &mut Reader,
    root: &At<'_>,
    known: &Known<'_>,
    pack: Digest,
) -> Vec<Declared> {
    let listed = reader.list(root, "progress_contracts");
    if let Some(at) = root.member("progress_contracts") {
        reader.count(&at, listed.len());
    }
    let mut taken: BTreeSet<&str> = known.taken.iter().copied().collect();
    let mut read = Vec::new();
    for at in listed {
        if reader.object(&at, "a progress contract", &CONTRACT).is_none() {
            continue;
        }
        let Some((id, name)) = read_id(reader, &at, "a progress contract", "acme.tax_compliance") else {
            continue;
        };
        if let Err((message, hint)) = check_name(name) {
            reader.fault(Code::E0903, &id, message, hint);
        } else if Signal::from_word(name).is_some() {
            reader.fault(Code::E0903, &id, format!("{name} is a signal of every plan"), "");
        } else if !taken.insert(name) {
            reader.fault(Code::E0903, &id, format!("there is another predicate named {name}"), "");
        }
        let version = reader.text(&at, "version");
        if at.member("version").is_none() {
            let message = format!("{name} does not say its version");
            reader.missing(&at, message, "add a line like `version: v1`");
        }
        let words = reader.shared(&at, "words");
        for (member, example) in [("score", "1.0 - state.risk"), ("violation", "state.risk > state.limit")] {
            if at.member(member).is_none() {
                let message = format!("{name} has no {member}");
                reader.missing(&at, message, &format!("add a line like `{member}: {example}`"));
            }
        }
        let violation = reader.condition(&at, "violation", known.place);
        let mut value = |member: &str| {
            let text = reader.text(&at, member)?;
            let place = at.member(member)?;
            reader.parse(&place, 0, text, known.place, false)
        };
        let (score, reason) = (value("score"), value("reason"));
        let uncertain = reader.condition(&at, "uncertain", known.place);
        let lifts = read_lift(reader, &at);
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
pub(super) fn read_plan(reader: &mut Reader, root: &At<'_>, known: &Known<'_>) -> Option<ProgressPlan> {
    let at = root.member("progress")?;
    reader.object(&at, "progress", &PLAN)?;
    let place = known.place.with_transition();
    let goals = reader.named(&at, "goals", "which transition reaches them");
    let goals: Vec<Goal> = goals
        .into_iter()
        .map(|(name, goal)| {
            let when = match goal.value {
                Value::Null => None,
                Value::String(text) => reader.parse(&goal, 0, text, &place, true),
                other => {
                    let message =
                        format!("a sub-goal is a condition on t, written as text, not {}", kind(other));
                    reader.fault(Code::E0902, &goal, message, "leave it empty where t.goal names it");
                    None
                }
            };
            Goal { name: Arc::from(name), when }
        })
        .collect();
    let reachable = REACHES.iter().any(|name| name.parse().is_ok_and(|name| has_type(known.types, &name)));
    if !reachable && !goals.is_empty() {
        let message = format!("no transition can reach a sub-goal: none of {} is known", REACHES.join(", "));
        reader.fault(Code::E0903, &at, message, "register one under `types`");
    }
    let listed = reader.named(&at, "constraints", "what must hold");
    let constraints: Vec<Constraint> = listed
        .into_iter()
        .filter_map(|(name, one)| {
            reader.object(&one, "a constraint", &["holds", "weight"])?;
            if one.member("holds").is_none() {
                let message = format!("{name} does not say what must hold");
                reader.missing(&one, message, "add a line like `holds: state.spent <= budget`");
            }
            let weight = read_weight(reader, &one, "weight").unwrap_or(1.0);
            let holds = reader.condition(&one, "holds", known.place)?;
            Some(Constraint { name: Arc::from(name), holds, weight })
        })
        .collect();
    let challenges = at.member("challenges").and_then(|told| {
        reader.object(&told, "challenges", &["type", "survived", "last"])?;
        for member in ["type", "survived", "last"] {
            if told.member(member).is_none() {
                let hint = "like `{type: skeptic.challenge, survived: t.intent.stood, last: 20}`";
                reader.missing(&told, format!("challenges have no {member}"), hint);
            }
        }
        let type_name = known.read_type(reader, &told, "type");
        let survived = reader.condition(&told, "survived", &place);
        let last = told.member("last").and_then(|last| {
            let count = last.value.as_u64().filter(|count| (1..=LAST_MAX).contains(count));
            if count.is_none() {
                reader.fault(Code::E0902, &last, format!("last is a number from 1 to {LAST_MAX}"), "");
            }
            usize::try_from(count?).ok()
        });
        Some(Challenges { type_name: type_name?, survived: survived?, last: last? })
    });
    let weights = read_weights(reader, &at);
    let there = [!goals.is_empty(), !constraints.is_empty(), at.member("challenges").is_some()];
    for ((weight, name), there) in weights.iter().zip(WEIGHTS).zip(there) {
        if *weight > 0.0 && !there {
            let message = format!("{name} weighs {weight}, and nothing is declared that it could be made of");
            reader.fault(
                Code::E0902,
                &at,
                message,
                "declare goals, constraints or challenges, or let it weigh 0",
            );
        }
    }
    let tolerance = read_weight(reader, &at, "tolerance").unwrap_or(0.0);
    Some(ProgressPlan::new(goals, constraints, challenges, weights, tolerance))
}

fn read_weights(reader: &mut Reader, plan: &At<'_>) -> [f64; 3] {
    let Some(at) = plan.member("weights") else {
        let hint = format!("add `weights:` with {}", WEIGHTS.join(", "));
        reader.missing(plan, "progress does not say what its signals weigh".to_owned(), &hint);
        return [0.0; 3];
    };
    if reader.object(&at, "weights", &WEIGHTS).is_none() {
        return [0.0; 3];
    }
    let weights = WEIGHTS.map(|name| {
        if at.member(name).is_none() {
            reader.missing(&at, format!("there is no weight of {name}"), "0 is one, too");
        }
        read_number(reader, &at, name, 1.0).unwrap_or(0.0)
    });
    // Decimal fractions that make 1 on paper may make a little more as doubles.
    let most = weights[0] + weights[1];
    if most > 1.0 + f64::EPSILON {
        let message = format!(
            "{} and {} weigh {most} together: a score is a number from 0 to 1",
            WEIGHTS[0], WEIGHTS[1]
        );
        reader.fault(Code::E0902, &at, message, "let both together weigh 1 or less");
    }
    weights
}

fn read_weight(reader: &mut Reader, parent: &At<'_>, name: &str) -> Option<f64> {
    read_number(reader, parent, name, WEIGHT_MAX)
}

fn read_number(reader: &mut Reader, parent: &At<'_>, name: &str, most: f64) -> Option<f64> {
    let at = parent.member(name)?;
    let weight = at.value.as_f64().filter(|weight| (0.0..=most).contains(weight));
    if weight.is_none() {
        let message = format!("{name} is a number from 0 to {most}, not {}", at.value);
        reader.fault(Code::E0902, &at, message, "");
    }
    weight
}
