//! What the contracts of a run's pack say of its record: what would have been refused, and what must never have happened.
//!
//! From stage 2 on the door refuses what a contract does not allow, so only violations can be found there. At stages 0 and
//! 1 nothing was enforced, and this says what would have been (dendrer paper 4.4 and 6).

use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_kernel::contract::{Contracts, Lack};
use dendrer_kernel::obligation::Standing;
use dendrer_kernel::pack::{Pack, extend};
use dendrer_kernel::predicate::{Predicate, Verdict};
use dendrer_kernel::replay::{self, ReplayError};
use dendrer_object::record::Author;
use dendrer_object::{Pointer, RunName, TypeName, Value};

use crate::ask::bisect::gather::is_last;
use crate::ask::prose::results_read_from_text;
use crate::error::Error;
use crate::run::pack;
use crate::run::timeline::{self, Interval};
use crate::run::trace::Trace;
use crate::run::unfinished::Unfinished;

pub mod compare;
pub mod find;
pub mod lint;
pub mod question;
pub mod suggest;
pub mod terms;

/// What a check of a run found.
#[derive(Debug)]
pub struct CheckedContract {
    /// The run.
    pub run: RunName,
    /// The first tick that was checked.
    pub from: u64,
    /// The last tick that was checked.
    pub to: u64,
    /// The stage of the run; `None` if it cannot be read.
    pub stage: Option<u64>,
    /// Whether a given contract was checked, and not the ones in force.
    pub is_given: bool,
    /// The packs in force, in order of ticks.
    pub in_force: Vec<ContractPeriod>,
    /// How many transitions of types with a contract were looked at.
    pub governed: u64,
    /// The transitions that lacked what they require, in order.
    pub lacking: Vec<Lacking>,
    /// How many results have a status that was read from prose, if a verdict uses it.
    pub from_text: u64,
    /// The part of the run that is missing, if what was checked may be otherwise with it.
    pub missing: Option<Unfinished>,
}

/// What was in force for some ticks, and what happened in them.
#[derive(Debug)]
pub struct ContractPeriod {
    /// The contracts; those of no pack have no name.
    pub contracts: Contracts,
    /// What was added to them on the way, in the order in which it came into force.
    pub extensions: Vec<ContractExtension>,
    /// The first tick of the range under them.
    pub from: u64,
    /// The last.
    pub to: u64,
    /// What must never happen, and then what must have been done, in the order of the pack, with where it was not so.
    pub violations: Vec<Judged>,
}

/// An extension of a contract, and what is required from it on.
#[derive(Debug)]
pub struct ContractExtension {
    /// What it is called.
    pub id: Arc<str>,
    /// The first tick under it.
    pub from: u64,
    /// Who approved it.
    pub approved_by: Arc<str>,
    /// The contracts with what it adds.
    pub contracts: Contracts,
}

impl ContractPeriod {
    /// The contracts in force for the transition with this tick.
    fn at(&self, tick: u64) -> &Contracts {
        let last = self.extensions.iter().rev().find(|extension| extension.from <= tick);
        last.map_or(&self.contracts, |extension| &extension.contracts)
    }
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

/// A violation predicate or an obligation of the pack, judged at every tick of the range.
#[derive(Debug)]
pub struct Judged {
    /// The predicate.
    pub predicate: Predicate,
    /// Where it was what, without gaps.
    pub intervals: Vec<Interval>,
    /// The same, where each reason for which a tick cannot be judged is a stretch of its own.
    pub reasons: Vec<Interval>,
    /// How an obligation stands at the end of the range.
    pub standing: Option<Standing>,
    /// Whether the run was closed with the last tick.
    pub ended: bool,
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

impl CheckedContract {
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
        self.missing.is_some() || self.violations().any(|judged| judged.uncertain().is_some())
    }
}

/// Returns the stage that a run was recorded at; `None` if it cannot be read.
pub fn stage(trace: &Trace) -> Option<u64> {
    // A fork has the stage of its parent or a higher one, and its record states it.
    let stages = trace.begins().iter().rev();
    stages.filter_map(|begin| begin.body().value("/stage")).find_map(|stage| stage.as_u64())
}

/// Checks a run between two ticks, each by the pack that was in force at it, or all by one that is given. Only transitions of a type, if one is named;
/// violations are of states and have no type.
pub fn check(
    trace: &Trace,
    under: Option<&Pack>,
    from: u64,
    to: u64,
    only: Option<&TypeName>,
) -> Result<CheckedContract, Error> {
    let mut in_force = periods(trace, under)?;
    if under.is_none() && in_force.iter().all(|(_, pack)| pack.is_none()) {
        return Err(Error::NoContracts { run: trace.name().clone() });
    }
    in_force.retain(|(terms, _)| terms.from <= to && terms.to >= from);
    let mut checked = CheckedContract {
        run: trace.name().clone(),
        from,
        to,
        stage: stage(trace),
        is_given: under.is_some(),
        in_force: Vec::with_capacity(in_force.len()),
        governed: 0,
        lacking: Vec::new(),
        from_text: 0,
        missing: trace.missing_to(to)?,
    };
    for (mut terms, pack) in in_force {
        (terms.from, terms.to) = (terms.from.max(from), terms.to.min(to));
        let predicates = match (&pack, under) {
            (Some(pack), None) => extend(trace, pack, &mut terms)?,
            // An extension of the contracts of the run is no part of another contract.
            (_, Some(pack)) => {
                pack.declared().map(|declared| (declared.predicate.clone(), terms.from)).collect()
            }
            (None, None) => Vec::new(),
        };
        let missing = checked.missing.filter(|_| terms.to == to);
        judge_violations(trace, &predicates, &mut terms, missing)?;
        checked.in_force.push(terms);
    }
    checked.from_text =
        results_read_from_text(trace, checked.violations().map(|judged| &judged.predicate), to)?;
    let governs = |terms: &ContractPeriod| !terms.contracts.types.is_empty() || !terms.extensions.is_empty();
    if checked.in_force.iter().any(governs) {
        look_at_each(trace, from, to, only, &mut checked)?;
    }
    Ok(checked)
}

/// Lists the periods of a run, each with the pack in force; one for all of it under a contract that is given.
fn periods(trace: &Trace, under: Option<&Pack>) -> Result<Vec<(ContractPeriod, Option<Pack>)>, Error> {
    let period = |pack: Option<&Pack>, from, to| ContractPeriod {
        contracts: pack.map(|pack| pack.contracts.clone()).unwrap_or_default(),
        extensions: Vec::new(),
        from,
        to,
        violations: Vec::new(),
    };
    if under.is_some() {
        return Ok(vec![(period(under, 0, trace.tip()), None)]);
    }
    let mut periods: Vec<(ContractPeriod, Option<Pack>)> = Vec::new();
    let (mut begin, mut bound) = (0, None);
    for (segment, (_, end)) in trace.lineage().iter().enumerate() {
        let named = trace.begins()[segment].header().pack;
        let pack = pack::of_segment(trace, segment)?;
        if pack.is_none() && named.is_some() {
            let pointer = Some(Pointer::of(["pack"]));
            return Err(ReplayError::Erased { tick: begin, pointer }.into());
        }
        // A fork under the same pack is one period with its parent.
        match periods.last_mut().filter(|_| bound == Some(named)) {
            Some((last, _)) => last.to = *end,
            None => periods.push((period(pack.as_ref(), begin, *end), pack)),
        }
        (begin, bound) = (end + 1, Some(named));
    }
    Ok(periods)
}

/// Judges predicates, each from a tick on. Those that begin together are read together.
fn judge_violations(
    trace: &Trace,
    predicates: &[(Predicate, u64)],
    terms: &mut ContractPeriod,
    missing: Option<Unfinished>,
) -> Result<(), Error> {
    for group in predicates.chunk_by(|a, b| a.1 == b.1) {
        let asked: Vec<&Predicate> = group.iter().map(|(predicate, _)| predicate).collect();
        let lines = timeline::judge_each(trace, &asked, group[0].1, terms.to)?;
        terms.violations.extend(asked.into_iter().zip(lines).map(|(predicate, line)| {
            let (mut intervals, mut reasons, standing) = (line.intervals(), line.reasons(), line.standing);
            // Nothing is known of the ticks that are missing.
            let behind = missing.map(|found| found.behind(terms.to));
            intervals.extend(behind.clone());
            reasons.extend(behind);
            let ended = is_last(trace, line.to);
            Judged { predicate: predicate.clone(), intervals, reasons, standing, ended }
        }));
    }
    Ok(())
}

/// Finds what extensions added to a pack up to the end of the range, and returns what must never happen, with the tick from
/// which on it is asked.
fn extend(trace: &Trace, pack: &Pack, terms: &mut ContractPeriod) -> Result<Vec<(Predicate, u64)>, Error> {
    let state = trace.state(terms.to)?;
    let mut ticks: Vec<(u64, Arc<str>, Arc<str>)> = Vec::new();
    for extension in extend::listed(pack.value(), &state) {
        let text = |name: &str| extension.get(name).and_then(Value::as_str).unwrap_or_default().into();
        if let Some(from) = extend::governs_from(extension).filter(|from| *from <= terms.to) {
            ticks.push((from, text("id"), text("approved_by")));
        }
    }
    ticks.sort();
    let mut last = None;
    for (from, id, approved_by) in ticks {
        let read = pack::read_recorded(
            trace.name(),
            &extend::in_force(pack.value(), &state, from),
            trace.rules_version(from),
        )?;
        terms.extensions.push(ContractExtension { id, from, approved_by, contracts: read.contracts.clone() });
        last = Some(read);
    }
    let declared = last.as_ref().unwrap_or(pack).declared();
    let since = |predicate: &Predicate| extend::added(pack.value(), &state, terms.to, predicate.name());
    let asked = declared.map(|declared| {
        let from = since(&declared.predicate).unwrap_or(terms.from).max(terms.from);
        (declared.predicate.clone(), from)
    });
    Ok(asked.collect())
}

fn look_at_each(
    trace: &Trace,
    from: u64,
    to: u64,
    only: Option<&TypeName>,
    checked: &mut CheckedContract,
) -> Result<(), Error> {
    let first = from.max(1);
    let mut state = trace.state(first - 1)?;
    trace.try_each(first, to, &mut |tick, record| {
        let header = record.header();
        let terms = checked.in_force.iter().find(|terms| tick <= terms.to);
        let type_name = header.type_name.as_ref().filter(|name| only.is_none_or(|only| only == *name));
        let proposed = matches!(header.author, Author::Agent | Author::Runtime | Author::User);
        let contract = type_name.filter(|_| proposed).and_then(|name| terms?.at(tick).types.get(name));
        if let Some((type_name, lacks)) = contract.map(|found| (found.type_name.clone(), found.check(&state)))
        {
            checked.governed += 1;
            if !lacks.is_empty() {
                checked.lacking.push(Lacking { tick, type_name, lacks });
            }
        }
        state = replay::recorded_state(&state, &record)?;
        Ok(ControlFlow::Continue(()))
    })
}
