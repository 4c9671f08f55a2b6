//! Diagnosis: which kind of failure an onset looks like, with what speaks for it (dendrer paper 4.5).
//!
//! Where a failure comes from decides what can be done about it: a fork from before bad data or a wrong policy, or a new
//! run where the goal itself is at fault. Bisect has evidence and no judgement, so a class is offered and a person decides.
//! A newcomer would break one rule: nothing here says what *is* the cause.

use dendrer_kernel::sealed;
use dendrer_object::record::{Author, Record};
use dendrer_object::{TypeName, Value};

use crate::ask::bisect::{BisectReport, BisectSubject};
use crate::ask::provenance::decided;
use crate::ask::why;
use crate::ask::why::sources::SourceWrite;
use crate::casebook::diagnosis::{DiagnosisClass, Offer};
use crate::error::Error;
use crate::run::trace::Trace;

/// How many transitions that an onset follows from are looked at for the data that entered with one.
const LINKS_MAX: usize = 32;

/// Offers a class for the onset of a report; `None` where there is no onset, or where the onset is no failure.
pub fn offer(trace: &Trace, question: &BisectSubject, report: &BisectReport) -> Result<Option<Offer>, Error> {
    let Some(onset) = report.onset().filter(|_| !matches!(question, BisectSubject::Divergence(_))) else {
        return Ok(None);
    };
    let foundational = |evidence: &str, or| Offer {
        class: DiagnosisClass::Foundational,
        evidence: evidence.to_owned(),
        decision: None,
        entered: None,
        gap: None,
        or,
    };
    Ok(Some(match onset {
        0 => foundational("violated in the initial state, before any transition", None),
        // The state before it is compliant, so what came in at tick 1 may be at fault as well.
        1 => {
            let or = Some(Box::new(contingent(trace, onset)?));
            foundational("violated from the first commitment on", or)
        }
        _ => contingent(trace, onset)?,
    }))
}

/// Offers a class for a beginning that is violated by what a source of the merge wrote.
pub fn from_source(write: &SourceWrite) -> Offer {
    let place = write.path.dotted();
    Offer {
        class: DiagnosisClass::ContingentState,
        evidence: format!("the merge took {place} from {}, which wrote it at {}", write.run, write.tick),
        decision: None,
        entered: None,
        gap: None,
        or: None,
    }
}

/// Offers a class for an onset that a compliant state comes before, by what was found: a gap in the record; a decision that
/// lets pass; data that entered at the onset or that it follows from; else what was written.
fn contingent(trace: &Trace, onset: u64) -> Result<Offer, Error> {
    let record = trace.record(onset)?;
    let type_name = record.header().type_name.as_ref().map_or("", TypeName::as_str);
    let before = format!("compliant until {}", onset - 1);
    let state = |evidence: String| Offer {
        class: DiagnosisClass::ContingentState,
        evidence,
        decision: None,
        entered: None,
        gap: None,
        or: None,
    };
    if let Some(gap) = gap(&record) {
        let evidence = format!("{before}, and something is missing in the record of {onset}: {gap}");
        return Ok(Offer { gap: Some(gap), ..state(evidence) });
    }
    let policy = |evidence: String, decision: u64| {
        let class = DiagnosisClass::ContingentPolicy;
        Offer { class, decision: Some(decision), ..state(evidence) }
    };
    let is_decision = type_name == "policy.decision";
    // Data that came from outside is a fact; who allowed the request does not matter.
    if is_data(type_name) {
        let evidence = format!("{before}, broken by data that entered at {onset}");
        return Ok(Offer { entered: Some(onset), ..state(evidence) });
    }
    let lets_pass = allowed_by(trace, onset, &record)?;
    if let (Some(decision), false) = (lets_pass, is_decision) {
        let at = if decision == onset { String::new() } else { format!(" at {decision}") };
        return Ok(policy(format!("{before}, broken at {onset} by what policy allowed{at}"), decision));
    }
    // A decision that lets pass is at fault itself; one that denies follows from the data that it was decided on.
    if lets_pass.is_none()
        && let Some(entered) = entered(trace, onset)?
    {
        let what = if is_decision { "decided on" } else { "that follows from" };
        let evidence =
            format!("{before}, broken at {onset} by a {type_name} {what} data that entered at {entered}");
        return Ok(Offer { entered: Some(entered), ..state(evidence) });
    }
    Ok(match record.header().author {
        _ if is_decision => policy(format!("{before}, turned by the policy decision at {onset}"), onset),
        Author::Kernel => state(format!("{before}; what the kernel wrote at {onset} follows from the state")),
        _ => state(format!("{before}, broken by what was written at {onset}")),
    })
}

fn is_data(type_name: &str) -> bool {
    matches!(type_name, "observation.add" | "action.result")
}

/// Returns what an importer or the kernel noted as missing in a record, in words.
fn gap(record: &Record) -> Option<String> {
    let notes = record.body().value("/anomalies")?;
    let note = notes.as_array()?.iter().find(|note| note.get("gap") == Some(&Value::Bool(true)))?.clone();
    sealed::words(&note).or_else(|| note.get("kind")?.as_str().map(str::to_owned))
}

/// Finds the newest data that a transition follows from by recorded links.
fn entered(trace: &Trace, onset: u64) -> Result<Option<u64>, Error> {
    for cause in why::upstream(trace, onset, LINKS_MAX)? {
        let record = trace.record(cause.tick)?;
        if record.header().type_name.as_ref().is_some_and(|name| is_data(name.as_str())) {
            return Ok(Some(cause.tick));
        }
    }
    Ok(None)
}

/// Finds the decision that allowed a transition.
fn allowed_by(trace: &Trace, tick: u64, record: &Record) -> Result<Option<u64>, Error> {
    let decided = decided(trace, tick, record)?.filter(|decided| decided.decision == "allow");
    Ok(decided.map(|decided| decided.tick))
}
