//! What the contracts of a run's pack say of its record: what would have been refused, and what must never have happened.
//!
//! From stage 2 on the door refuses what a contract does not allow, so only violations can be found there. At stages 0 and
//! 1 nothing was enforced, and this says what would have been (dendrer paper 4.4 and 6).

use std::ops::ControlFlow;

use dendrer_kernel::contract::{Contracts, Lack};
use dendrer_kernel::predicate::{Predicate, Verdict};
use dendrer_object::TypeName;
use dendrer_object::record::Author;

use crate::error::Error;
use crate::pack;
use crate::timeline::{self, Interval};
use crate::trace::Trace;

/// What a check of a run found.
#[derive(Debug)]
pub struct Checked {
    /// The contracts in force, each with the last tick it is in force at: one for each run of the lineage with a pack of its own.
    pub in_force: Vec<(Contracts, u64)>,
    /// How many transitions of types with a contract were looked at.
    pub governed: u64,
    /// The transitions that lacked what they require, in order.
    pub lacking: Vec<Lacking>,
    /// What must never happen, in the order of the pack, with where it did.
    pub violations: Vec<Judged>,
}

/// A transition that lacked what its contract requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lacking {
    /// Its tick.
    pub tick: u64,
    /// Its type.
    pub type_name: TypeName,
    /// What was lacking in the state before it.
    pub lacks: Vec<Lack>,
}

/// A violation predicate of the pack, judged at every tick of the range.
#[derive(Debug)]
pub struct Judged {
    /// The predicate.
    pub predicate: Predicate,
    /// Where it was what, without gaps.
    pub intervals: Vec<Interval>,
}

impl Judged {
    /// The first tick of the range in violation.
    pub fn onset(&self) -> Option<u64> {
        self.first(|verdict| *verdict == Verdict::Violation)
    }

    /// The first tick of the range that cannot be judged.
    pub fn uncertain(&self) -> Option<(u64, &str)> {
        self.intervals.iter().find_map(|interval| match &interval.verdict {
            Verdict::Uncertain(why) => Some((interval.from, &**why)),
            _ => None,
        })
    }

    fn first(&self, wanted: impl Fn(&Verdict) -> bool) -> Option<u64> {
        self.intervals.iter().find(|interval| wanted(&interval.verdict)).map(|interval| interval.from)
    }
}

impl Checked {
    /// Whether anything is not as the contracts ask.
    pub fn is_broken(&self) -> bool {
        !self.lacking.is_empty() || self.violations.iter().any(|judged| judged.onset().is_some())
    }

    /// Whether something could not be judged, so that nothing broken does not mean all is well.
    pub fn is_uncertain(&self) -> bool {
        self.violations.iter().any(|judged| judged.uncertain().is_some())
    }
}

/// Checks a run between two ticks. Only transitions of a type, if one is named; violations are of states and have no type.
pub fn check(trace: &Trace<'_>, from: u64, to: u64, only: Option<&TypeName>) -> Result<Checked, Error> {
    let Some(newest) = pack::of_run(trace)? else {
        return Err(Error::NoContracts { run: trace.name().clone() });
    };
    let mut in_force = Vec::new();
    for (segment, (_, end)) in trace.lineage().iter().enumerate() {
        let contracts = pack::of_segment(trace, segment)?.map(|pack| pack.contracts).unwrap_or_default();
        in_force.push((contracts, *end));
    }
    let mut checked =
        Checked { in_force: Vec::new(), governed: 0, lacking: Vec::new(), violations: Vec::new() };
    if in_force.iter().any(|(contracts, _)| !contracts.types.is_empty()) {
        look_at_each(trace, from, to, only, &in_force, &mut checked)?;
    }
    let predicates: Vec<&Predicate> = newest.predicates.iter().map(|declared| &declared.predicate).collect();
    let lines = timeline::judge_each(trace, &predicates, from, to)?;
    checked.violations = predicates
        .into_iter()
        .zip(lines)
        .map(|(predicate, line)| Judged { predicate: predicate.clone(), intervals: line.intervals() })
        .collect();
    // Runs of one lineage that go on under the same contracts are told as one.
    for (contracts, end) in in_force {
        match checked.in_force.last_mut() {
            Some((last, until)) if (&last.name, &last.version) == (&contracts.name, &contracts.version) => {
                *until = end;
            }
            _ => checked.in_force.push((contracts, end)),
        }
    }
    Ok(checked)
}

fn look_at_each(
    trace: &Trace<'_>,
    from: u64,
    to: u64,
    only: Option<&TypeName>,
    in_force: &[(Contracts, u64)],
    checked: &mut Checked,
) -> Result<(), Error> {
    let first = from.max(1);
    let mut state = trace.at(first - 1)?;
    let mut failed = Ok(());
    trace.for_each(first, to, &mut |tick, record| {
        let header = record.header();
        let contracts = in_force.iter().find(|(_, end)| tick <= *end).map(|(contracts, _)| contracts);
        let type_name = header.type_name.as_ref().filter(|name| only.is_none_or(|only| only == *name));
        let proposed = matches!(header.author, Author::Agent | Author::Runtime);
        let contract = type_name.filter(|_| proposed).and_then(|name| contracts?.types.get(name));
        if let Some(contract) = contract {
            checked.governed += 1;
            let lacks = contract.check(&state.state);
            if !lacks.is_empty() {
                checked.lacking.push(Lacking { tick, type_name: contract.type_name.clone(), lacks });
            }
        }
        match state.advance(&record) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Err(error);
                ControlFlow::Break(())
            }
        }
    })?;
    failed
}
