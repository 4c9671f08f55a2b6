//! Registered predicates as words and as documents.

use dendrer::kernel::predicate::{Monotone, Predicate, Window};
use dendrer::registry::{Known, Registered, Sample};
use dendrer_object::{Digest, Value};

use crate::count;

/// Says how it is known that a predicate does not recover, or that it does.
pub fn known_words(known: &Known, monotone: Monotone) -> String {
    let ticks = |samples: &[Sample]| {
        let ticks: u64 = samples.iter().map(|sample| sample.ticks).sum();
        let names: Vec<String> = samples.iter().map(|sample| sample.run.to_string()).collect();
        format!("{} of {}", count(ticks, "tick", "ticks"), crate::bisect::list(&names, 3).unwrap_or_default())
    };
    match known {
        Known::ByConstruction => "by construction".to_owned(),
        Known::Lifted => "lifted".to_owned(),
        Known::Tested(samples) => format!("tested on {}", ticks(samples)),
        Known::Recovers(samples) => {
            let names: Vec<String> = samples
                .iter()
                .filter(|sample| sample.recovers())
                .map(|sample| sample.run.to_string())
                .collect();
            format!("recovers on {}", crate::bisect::list(&names, 3).unwrap_or_default())
        }
        Known::Untested if monotone == Monotone::ByConstruction => "by construction".to_owned(),
        Known::Untested => "not tested".to_owned(),
    }
}

fn members(predicate: &Predicate, known: &str, samples: &[Sample]) -> Vec<(&'static str, Value)> {
    let window = match predicate.window() {
        Window::After => "after",
        Window::Before => "before",
    };
    vec![
        ("name", Value::from(predicate.name())),
        ("version", Value::from(predicate.version())),
        ("words", Value::from(predicate.words())),
        ("digest", Value::from(predicate.digest())),
        ("window", Value::from(window)),
        ("known", Value::from(known)),
        ("on", Value::array(samples.iter().map(Sample::to_value))),
    ]
}

/// Returns a registration as an item of `dendrer.predicates/1`.
pub fn entry_json(entry: &Registered) -> Value {
    let mut members = members(&entry.predicate, entry.known.as_str(), entry.known.samples());
    members.extend([
        ("record", Value::from(entry.id)),
        ("ts", Value::from(entry.ts.to_string())),
        ("retired", Value::from(entry.retired)),
    ]);
    Value::record(members)
}

/// Says how it is known that a predicate which a pack declares does not recover.
pub fn declared_words(monotone: Monotone) -> &'static str {
    match monotone {
        Monotone::ByConstruction => "by construction",
        Monotone::Lifted => "lifted",
        Monotone::Unknown => "not tested",
    }
}

/// As [`entry_json`], for a predicate that a pack declares or that is always there.
pub fn declared_json(predicate: &Predicate) -> Value {
    let mut members = members(predicate, declared_words(predicate.monotone()), &[]);
    members.extend([("record", Value::Null), ("ts", Value::Null), ("retired", Value::Null)]);
    Value::record(members)
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
