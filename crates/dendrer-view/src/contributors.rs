//! Contributors and diagnoses, as lines and as documents.

use dendrer::ask::bisect::gather::ALLOWS_SHOWN;
use dendrer::ask::why::gather::Records;
use dendrer::casebook::diagnosis::{DiagnosisClass, Offer};
use dendrer::contributors::{Contributors, ContributorsFound, Proof, Shown};
use dendrer_object::{Digest, document};

use crate::certainty::Certainty;
use crate::row::TransitionObject;
use crate::verdict::{VerdictWord, list, words};
use crate::why::row_of;
use crate::{count, quote};

/// How many ticks are named in a line.
const SHOWN: usize = 12;

/// Writes contributors. What an agent would have done without them is not known, and the heading says so.
pub fn lines(records: &Records, found: &Contributors) -> Vec<String> {
    let mut lines = vec![
        "CONTRIBUTORS (exact for the recorded intents, heuristic for what an agent would then have done)"
            .to_owned(),
    ];
    let onset = found.onset;
    let matter = format!(
        "{} of {} can matter",
        found.candidates,
        count(found.earlier, "earlier transition", "earlier transitions")
    );
    let work = count(found.rereductions, "re-reduction", "re-reductions");
    match &found.found {
        ContributorsFound::Set { ticks, shown, without } => {
            for tick in ticks {
                let row = row_of(records, *tick);
                lines.push(format!("  tick {tick}  {}  {}", row.type_name, row.summary));
            }
            let them = if ticks.len() == 1 { "it" } else { "them" };
            lines.push(format!("  with {them}     {}", proof(onset, &found.with)));
            lines.push(format!("  without {them}  {}", proof(onset, without)));
            lines.extend(unapplied(without));
            let said = match shown {
                Shown::Smallest if ticks.len() == 1 => "smallest".to_owned(),
                Shown::Smallest => "smallest: every smaller set was tried".to_owned(),
                Shown::Minimal => "none of them can be left out; not shown to be smallest".to_owned(),
                Shown::Clears => "not shown to be smallest: the search ended before".to_owned(),
            };
            lines.push(format!("  {said}   ({matter}, {work})"));
        }
        ContributorsFound::Nothing if found.candidates == 0 => {
            lines.push(format!("  none: no earlier transition can matter to tick {onset}   ({matter})"));
        }
        ContributorsFound::Nothing => {
            lines.push(format!(
                "  none: tick {onset} is violated without any of them   (every set was tried: {matter}, {work})"
            ));
        }
        ContributorsFound::Unknown => {
            let tried = match found.tried {
                0 => "the search ended before every single one was tried".to_owned(),
                tried => format!("every set of up to {tried} was tried"),
            };
            lines.push(format!("  none found: {tried}   ({matter}, {work})"));
        }
    }
    if found.takes_deltas && found.found == ContributorsFound::Nothing {
        lines.push(format!("  why: {WITHOUT_RULES}"));
    }
    lines
}

/// Why a run without rules has no contributors.
const WITHOUT_RULES: &str = "intents bring their changes themselves (delta/1), so leaving one out changes no later one; recorded links say what led there";

/// Writes the decisions that a flip depends on.
pub fn flip_lines(records: &Records, about: &str, onset: u64, allows: &[u64]) -> Vec<String> {
    let mut lines = vec!["CONTRIBUTORS (exact for the recorded decisions)".to_owned()];
    for tick in allows.iter().take(ALLOWS_SHOWN) {
        let row = row_of(records, *tick);
        lines.push(format!("  tick {tick}  {}  {}", row.type_name, row.summary));
    }
    if allows.len() > ALLOWS_SHOWN {
        lines.push(format!("  (and {} more)", allows.len() - ALLOWS_SHOWN));
    }
    let them = if allows.len() == 1 { "it" } else { "them" };
    let about = quote::escape(about);
    lines.push(format!(
        "  without {them}  tick {onset} is no flip: {about} was never allowed before   smallest"
    ));
    lines
}

document! {
    /// The earlier transitions that an onset depends on
    pub object ContributorsObject(records: &Records, found: &Contributors) {
        let (kind, listed, least, left) = match &found.found {
            ContributorsFound::Set { ticks, shown, without } => ("set", &ticks[..], Some(*shown), Some(without)),
            ContributorsFound::Nothing => ("nothing", &[][..], None, None),
            ContributorsFound::Unknown => ("unknown", &[][..], None, None),
        };
        /// The certainty for the recorded intents
        certainty: ["exact"] = Certainty::Exact.as_str(),
        /// The part of the record that the answer is exact for
        of: ["the recorded intents"] = "the recorded intents",
        /// The certainty of what an agent would then have done
        counterfactual: ["heuristic"] = Certainty::Heuristic.as_str(),
        /// The outcome of the search
        outcome: ["set" | "nothing" | "unknown"] = kind,
        /// The claim about the size of the set
        shown: ["smallest" | "minimal" | "clears" | null] = least.map(|shown| match shown {
            Shown::Smallest => "smallest",
            Shown::Minimal => "minimal",
            Shown::Clears => "clears",
        }),
        /// The transitions of the set
        items: Vec<TransitionObject> = transitions(records, listed),
        /// The number of earlier transitions
        earlier: u64 = found.earlier,
        /// The number of earlier transitions that can matter
        candidates: u64 = found.candidates,
        /// The largest size of which every set was tried
        tried: usize = found.tried,
        /// The number of times that the run was reduced again
        rereductions: u64 = found.rereductions,
        /// The verdict with the set
        with: ProofObject = ProofObject::of(&found.with),
        /// The verdict without the set
        without: Option<ProofObject> = left.map(ProofObject::of),
        /// The reason why there are none, if intents bring their changes themselves
        why: Option<&str> = (found.takes_deltas && kind == "nothing").then_some(WITHOUT_RULES),
    }

    /// The decisions that a policy flip depends on
    pub object FlipObject(records: &Records, onset: u64, allows: &[u64]) {
        /// The certainty for the recorded decisions
        certainty: ["exact"] = Certainty::Exact.as_str(),
        /// The part of the record that the answer is exact for
        of: ["the recorded decisions"] = "the recorded decisions",
        /// The certainty of what an agent would then have done
        counterfactual: ["heuristic"] = Certainty::Heuristic.as_str(),
        /// The outcome of the search
        outcome: ["set"] = "set",
        /// The claim about the size of the set
        shown: ["smallest"] = "smallest",
        /// The first decisions
        items: Vec<TransitionObject> = transitions(records, &allows[..allows.len().min(ALLOWS_SHOWN)]),
        /// The ticks of all decisions
        ticks: &[u64] = allows,
        /// The number of earlier transitions
        earlier: u64 = onset.saturating_sub(1),
    }

    /// The verdict at the onset after a reduction without some transitions
    object ProofObject(proof: &Proof) {
        /// The root of the state
        state_root: Digest = proof.root,
        /// The verdict
        verdict: VerdictWord<'_> = VerdictWord(&proof.verdict),
        /// The transitions that do not fit any more
        unapplied: Vec<UnappliedObject> =
            proof.unapplied.iter().map(|(tick, why)| UnappliedObject::of(*tick, why)).collect(),
    }

    /// A transition that does not fit any more
    object UnappliedObject(at: u64, reason: &str) {
        /// The tick
        tick: u64 = at,
        /// The reason
        why: &str = reason,
    }

    /// The class of failure that an onset looks like
    pub object DiagnosisObject(offer: &Offer, decision: Option<DiagnosisClass>) {
        let class = decision.unwrap_or(offer.class);
        ..ClassObject = ClassObject::of(offer),
        /// The tick of the decision that let it pass
        decision: Option<u64> = offer.decision,
        /// The class that a person decided on
        decided: ["contingent-state" | "contingent-policy" | "foundational" | null] =
            decision.map(DiagnosisClass::as_str),
        /// Whether a fork can help
        may_fork: bool = class != DiagnosisClass::Foundational,
        /// The use of the run
        role: ["fork seed" | "post-mortem artifact"] = class.role(),
        /// The certainty of the offer
        certainty: ["heuristic"] = Certainty::Heuristic.as_str(),
        /// The other class that the evidence allows
        or: Option<ClassObject> = offer.or.as_deref().map(ClassObject::of),
    }

    /// A class of failure and its evidence
    object ClassObject(offer: &Offer) {
        /// The class
        offered: DiagnosisClass = offer.class,
        /// The class in words
        words: String = offer.class.title().to_owned(),
        /// The evidence
        evidence: &str = &offer.evidence,
    }
}

/// Returns what identifies each of some transitions.
fn transitions(records: &Records, ticks: &[u64]) -> Vec<TransitionObject> {
    ticks.iter().map(|tick| TransitionObject::of(&records[tick])).collect()
}

fn proof(onset: u64, proof: &Proof) -> String {
    let (word, mark) = words(&proof.verdict);
    format!("tick {onset} {word} {mark}   state root {}", proof.root.short())
}

/// Says what no longer fits once the contributors are gone.
fn unapplied(proof: &Proof) -> Option<String> {
    let ticks: Vec<String> = proof.unapplied.iter().map(|(tick, _)| tick.to_string()).collect();
    let (_, why) = proof.unapplied.first()?;
    let first = format!("at tick {}: {}", ticks[0], quote::escape(why));
    let noun = if ticks.len() == 1 { "tick" } else { "ticks" };
    Some(format!("  not applied then: {noun} {}   ({first})", list(&ticks, SHOWN)?))
}

/// Writes a diagnosis that is offered, and what follows from one that was made. `asked` is what was bisected for.
pub fn diagnosis_lines(offer: &Offer, decided: Option<DiagnosisClass>, asked: &str) -> Vec<String> {
    let mut lines =
        vec![format!("DIAGNOSIS  looks {}: {}", offer.class.title(), quote::escape(&offer.evidence))];
    lines
        .extend(decided.map(|class| format!("DECIDED    {}   by a person; {}", class.title(), class.role())));
    if decided.unwrap_or(offer.class) == DiagnosisClass::Foundational {
        lines.extend([
            match offer.class {
                DiagnosisClass::Foundational if offer.or.is_none() => {
                    "  DO NOT fork: no state in this run is from before the problem"
                }
                DiagnosisClass::Foundational => {
                    "  DO NOT fork: the only state from before the problem is the one that the run began with"
                }
                _ => "  DO NOT fork: the problem was there before the run",
            }
            .to_owned(),
            format!("  (a) compare the goal text with what {} requires", quote::escape(asked)),
            "  (b) correct the goal or the task pack, then run again".to_owned(),
            "  (c) keep this run as a post-mortem artifact".to_owned(),
            "  (d) use it as a reference for what to avoid".to_owned(),
        ]);
    }
    lines
}
