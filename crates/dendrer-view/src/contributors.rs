//! Contributors and diagnoses, as lines and as documents.

use dendrer::ask::bisect::gather::ALLOWS_SHOWN;
use dendrer::ask::why::gather::Records;
use dendrer::contributors::{Contributors, ContributorsFound, Proof, Shown};
use dendrer::diagnosis::{DiagnosisClass, Offer};
use dendrer_object::Value;

use crate::certainty::Certainty;
use crate::verdict::{list, word, words};
use crate::why::{row_of, transition_json};
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

/// Returns the decisions that a flip depends on, as a member of `dendrer.bisect/1`.
pub fn flip_json(records: &Records, onset: u64, allows: &[u64]) -> Value {
    let items = allows.iter().take(ALLOWS_SHOWN);
    Value::record([
        ("certainty", Value::from(Certainty::Exact)),
        ("of", Value::from("the recorded decisions")),
        ("counterfactual", Value::from(Certainty::Heuristic)),
        ("outcome", Value::from("set")),
        ("shown", Value::from("smallest")),
        ("items", Value::array(items.map(|tick| Value::record(transition_json(records, *tick))))),
        ("ticks", Value::array(allows.iter().map(|tick| Value::from(*tick)))),
        ("earlier", Value::from(onset.saturating_sub(1))),
    ])
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

/// Returns contributors as a member of `dendrer.bisect/1`.
pub fn to_json(records: &Records, found: &Contributors) -> Value {
    let (outcome, ticks, shown, without) = match &found.found {
        ContributorsFound::Set { ticks, shown, without } => ("set", &ticks[..], Some(*shown), Some(without)),
        ContributorsFound::Nothing => ("nothing", &[][..], None, None),
        ContributorsFound::Unknown => ("unknown", &[][..], None, None),
    };
    let shown = shown.map(|shown| match shown {
        Shown::Smallest => "smallest",
        Shown::Minimal => "minimal",
        Shown::Clears => "clears",
    });
    let items = ticks.iter().map(|tick| Value::record(transition_json(records, *tick)));
    Value::record([
        ("certainty", Value::from(Certainty::Exact)),
        ("of", Value::from("the recorded intents")),
        ("counterfactual", Value::from(Certainty::Heuristic)),
        ("outcome", Value::from(outcome)),
        ("shown", Value::from(shown)),
        ("items", Value::array(items)),
        ("earlier", Value::from(found.earlier)),
        ("candidates", Value::from(found.candidates)),
        ("tried", Value::from(found.tried as u64)),
        ("rereductions", Value::from(found.rereductions)),
        ("with", proof_json(&found.with)),
        ("without", without.map_or(Value::Null, proof_json)),
        ("why", Value::from((found.takes_deltas && outcome == "nothing").then_some(WITHOUT_RULES))),
    ])
}

fn proof_json(proof: &Proof) -> Value {
    let unapplied = proof
        .unapplied
        .iter()
        .map(|(tick, why)| Value::record([("tick", Value::from(*tick)), ("why", Value::from(why.as_str()))]));
    Value::record([
        ("state_root", Value::from(proof.root)),
        ("verdict", Value::from(word(&proof.verdict))),
        ("unapplied", Value::array(unapplied)),
    ])
}

/// Writes a diagnosis that is offered, and what follows from one that was made. `asked` is what was bisected for.
pub fn diagnosis_lines(offer: &Offer, decided: Option<DiagnosisClass>, asked: &str) -> Vec<String> {
    let mut lines = vec![format!("DIAGNOSIS  looks {}: {}", offer.class, quote::escape(&offer.evidence))];
    lines.extend(decided.map(|class| format!("DECIDED    {class}   by a person; {}", class.role())));
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

/// Returns a diagnosis as a member of `dendrer.bisect/1`.
pub fn diagnosis_json(offer: &Offer, decided: Option<DiagnosisClass>) -> Value {
    let class = decided.unwrap_or(offer.class);
    let or = |or: &Offer| {
        Value::record([
            ("offered", Value::from(or.class.word())),
            ("words", Value::from(or.class.to_string())),
            ("evidence", Value::from(or.evidence.as_str())),
        ])
    };
    Value::record([
        ("offered", Value::from(offer.class.word())),
        ("words", Value::from(offer.class.to_string())),
        ("evidence", Value::from(offer.evidence.as_str())),
        ("decision", Value::from(offer.decision)),
        ("decided", Value::from(decided.map(DiagnosisClass::word))),
        ("may_fork", Value::from(class != DiagnosisClass::Foundational)),
        ("role", Value::from(class.role())),
        ("certainty", Value::from(Certainty::Heuristic)),
        ("or", Value::from(offer.or.as_deref().map(or))),
    ])
}
