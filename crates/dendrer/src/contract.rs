//! What the contracts of a run's pack say of its record: what would have been refused, and what must never have happened.
//!
//! From stage 2 on the door refuses what a contract does not allow, so only violations can be found there. At stages 0 and
//! 1 nothing was enforced, and this says what would have been (dendrer paper 4.4 and 6).

use std::ops::ControlFlow;

use dendrer_kernel::contract::{Contracts, Lack};
use dendrer_kernel::pack::Pack;
use dendrer_kernel::predicate::{Predicate, Verdict};
use dendrer_kernel::replay::ReplayError;
use dendrer_object::record::Author;
use dendrer_object::{Pointer, TypeName};

use crate::error::Error;
use crate::pack;
use crate::timeline::{self, Interval};
use crate::trace::Trace;

pub mod compare;
pub mod find;
pub mod lint;
pub mod suggest;
pub mod terms;

/// What a check of a run found.
#[derive(Debug)]
pub struct Checked {
    /// The packs in force, in order of ticks.
    pub in_force: Vec<InForce>,
    /// How many transitions of types with a contract were looked at.
    pub governed: u64,
    /// The transitions that lacked what they require, in order.
    pub lacking: Vec<Lacking>,
}

/// What was in force for some ticks, and what happened in them.
#[derive(Debug)]
pub struct InForce {
    /// The contracts; those of no pack have no name.
    pub contracts: Contracts,
    /// The first tick of the range under them.
    pub from: u64,
    /// The last.
    pub to: u64,
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
    /// Every violation predicate that was judged.
    pub fn violations(&self) -> impl Iterator<Item = &Judged> {
        self.in_force.iter().flat_map(|terms| &terms.violations)
    }

    /// Whether anything is not as the contracts ask.
    pub fn is_broken(&self) -> bool {
        !self.lacking.is_empty() || self.violations().any(|judged| judged.onset().is_some())
    }

    /// Whether something could not be judged, so that nothing broken does not mean all is well.
    pub fn is_uncertain(&self) -> bool {
        self.violations().any(|judged| judged.uncertain().is_some())
    }
}

/// Checks a run between two ticks, each by the pack that was in force at it. Only transitions of a type, if one is named;
/// violations are of states and have no type.
pub fn check(trace: &Trace<'_>, from: u64, to: u64, only: Option<&TypeName>) -> Result<Checked, Error> {
    let mut checked = Checked { in_force: Vec::new(), governed: 0, lacking: Vec::new() };
    let (mut begin, mut bound) = (0, None);
    let mut packs: Vec<Option<Pack>> = Vec::new();
    for (segment, (_, end)) in trace.lineage().iter().enumerate() {
        let named = trace.begins()[segment].header().pack;
        let pack = pack::of_segment(trace, segment)?;
        if pack.is_none() && named.is_some() {
            let pointer = Some(Pointer::of(["pack"]));
            return Err(ReplayError::Erased { tick: begin, pointer }.into());
        }
        // A fork that goes on under the same pack is told as one with its parent.
        match checked.in_force.last_mut().filter(|_| bound == Some(named)) {
            Some(last) => last.to = *end,
            None => {
                let contracts = pack.as_ref().map(|pack| pack.contracts.clone()).unwrap_or_default();
                checked.in_force.push(InForce { contracts, from: begin, to: *end, violations: Vec::new() });
                packs.push(pack);
            }
        }
        (begin, bound) = (end + 1, Some(named));
    }
    if packs.iter().all(Option::is_none) {
        return Err(Error::NoContracts { run: trace.name().clone() });
    }
    let mut in_force: Vec<(InForce, Option<Pack>)> = checked.in_force.drain(..).zip(packs).collect();
    in_force.retain(|(terms, _)| terms.from <= to && terms.to >= from);
    for (mut terms, pack) in in_force {
        (terms.from, terms.to) = (terms.from.max(from), terms.to.min(to));
        let declared = pack.as_ref().map(|pack| &pack.predicates[..]).unwrap_or_default();
        let predicates: Vec<&Predicate> = declared.iter().map(|declared| &declared.predicate).collect();
        let lines = timeline::judge_each(trace, &predicates, terms.from, terms.to)?;
        let judged = predicates
            .into_iter()
            .zip(lines)
            .map(|(predicate, line)| Judged { predicate: predicate.clone(), intervals: line.intervals() });
        terms.violations = judged.collect();
        checked.in_force.push(terms);
    }
    if checked.in_force.iter().any(|terms| !terms.contracts.types.is_empty()) {
        look_at_each(trace, from, to, only, &mut checked)?;
    }
    Ok(checked)
}

fn look_at_each(
    trace: &Trace<'_>,
    from: u64,
    to: u64,
    only: Option<&TypeName>,
    checked: &mut Checked,
) -> Result<(), Error> {
    let first = from.max(1);
    let mut state = trace.at(first - 1)?;
    let mut failed = Ok(());
    trace.for_each(first, to, &mut |tick, record| {
        let header = record.header();
        let terms = checked.in_force.iter().find(|terms| tick <= terms.to);
        let type_name = header.type_name.as_ref().filter(|name| only.is_none_or(|only| only == *name));
        let proposed = matches!(header.author, Author::Agent | Author::Runtime);
        let contract = type_name.filter(|_| proposed).and_then(|name| terms?.contracts.types.get(name));
        if let Some((type_name, lacks)) =
            contract.map(|found| (found.type_name.clone(), found.check(&state.state)))
        {
            checked.governed += 1;
            if !lacks.is_empty() {
                checked.lacking.push(Lacking { tick, type_name, lacks });
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
