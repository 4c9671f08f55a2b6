//! Words for registrations of predicates.

use dendrer::kernel::predicate::Monotone;
use dendrer::registry::{MonotoneEvidence, Registered, Sample};
use dendrer_object::Digest;

use crate::count;

/// Says how it is known that a predicate does not recover, or that it does.
pub fn known_words(known: &MonotoneEvidence, monotone: Monotone) -> String {
    let ticks = |samples: &[Sample]| {
        let ticks: u64 = samples.iter().map(|sample| sample.ticks).sum();
        let names: Vec<String> = samples.iter().map(|sample| sample.run.to_string()).collect();
        format!(
            "{} of {}",
            count(ticks, "tick", "ticks"),
            crate::verdict::list(&names, 3).unwrap_or_default()
        )
    };
    match known {
        MonotoneEvidence::ByConstruction => "by construction".to_owned(),
        MonotoneEvidence::Lifted => "lifted".to_owned(),
        MonotoneEvidence::Tested(samples) => format!("tested on {}", ticks(samples)),
        MonotoneEvidence::Recovers(samples) => {
            let names: Vec<String> = samples
                .iter()
                .filter(|sample| sample.recovers())
                .map(|sample| sample.run.to_string())
                .collect();
            format!("recovers on {}", crate::verdict::list(&names, 3).unwrap_or_default())
        }
        MonotoneEvidence::Untested if monotone == Monotone::ByConstruction => "by construction".to_owned(),
        MonotoneEvidence::Untested => "not tested".to_owned(),
    }
}

/// Says how it is known that a predicate which a pack declares does not recover.
pub fn declared_words(monotone: Monotone) -> &'static str {
    match monotone {
        Monotone::ByConstruction => "by construction",
        Monotone::Lifted => "lifted",
        Monotone::Unknown => "not tested",
    }
}

/// Writes what is known of a predicate that a name resolved to.
pub fn registration_line(registered: &Registered) -> String {
    let known = known_words(&registered.known, registered.predicate.monotone());
    format!("registered in record {}: {known}", registered.id.short())
}

/// Notes that the name means something else in the pack of the run.
pub fn other_line(other: Digest) -> String {
    format!("           the pack of this run has another predicate of this name, digest {}", other.short())
}
