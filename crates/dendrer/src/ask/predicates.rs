//! The predicates of a store, and the verdicts of one on a run.

use dendrer_kernel::predicate::{Predicate, Verdict};
use dendrer_object::{Digest, RunName};

use crate::ask::bisect::BisectSubject;
use crate::ask::bisect::gather::is_last;
use crate::ask::named::near_field;
use crate::ask::prose::results_read_from_text;
use crate::error::Error;
use crate::registry::{Registered, Registry};
use crate::run::timeline::{self, Timeline};
use crate::run::trace::Trace;
use crate::run::unfinished::Unfinished;

pub mod question;

/// Predicates of a store, and those that the pack of a run declares.
#[derive(Debug, Clone)]
pub struct PredicatesAnswer {
    /// The registrations.
    pub registered: Vec<Registered>,
    /// The predicates of the pack, each under its full name.
    pub declared: Vec<Predicate>,
    /// Registrations that cannot be read any more.
    pub unreadable: Vec<Digest>,
    /// Whether every registration is listed, and not only the newest of each name.
    pub all: bool,
}

impl PredicatesAnswer {
    /// Lists predicates: every registration, or the newest of each name that is not retired.
    pub fn of(registry: Registry, declared: Vec<Predicate>, all: bool) -> PredicatesAnswer {
        let is_newest = |entry: &Registered| {
            registry.newest(entry.predicate.name()).is_some_and(|newest| newest.id == entry.id)
        };
        let listed = |entry: &&Registered| all || (entry.retired.is_none() && is_newest(entry));
        let registered = registry.entries.iter().filter(listed).cloned().collect();
        PredicatesAnswer { registered, declared, unreadable: registry.unreadable, all }
    }

    /// Lists every predicate of a name; `None` if the name is unknown.
    pub fn named(registry: &Registry, mut declared: Vec<Predicate>, name: &str) -> Option<PredicatesAnswer> {
        let registered: Vec<Registered> = registry.versions(name).cloned().collect();
        declared.retain(|one| {
            one.name() == name || one.name().rsplit_once('/').is_some_and(|(_, short)| short == name)
        });
        let unreadable = registry.unreadable.clone();
        let found = !registered.is_empty() || !declared.is_empty();
        found.then_some(PredicatesAnswer { registered, declared, unreadable, all: true })
    }
}

/// The verdicts of a predicate on a run.
#[derive(Debug, Clone)]
pub struct PredicateTested {
    /// The run.
    pub run: RunName,
    /// The predicate.
    pub question: BisectSubject,
    /// The verdicts.
    pub line: Timeline,
    /// The one tick that was asked about.
    pub at: Option<u64>,
    /// Whether the run was closed with the last tick.
    pub ended: bool,
    /// The registration that the name resolved to.
    pub registered: Option<Registered>,
    /// The digest of another predicate of the same name in the pack of the run.
    pub other_in_pack: Option<Digest>,
    /// The field or counter that was probably meant, if no tick could be judged.
    pub near: Option<String>,
    /// How many results the verdicts use whose status was read from prose.
    pub from_text: u64,
    /// The part of the run that is missing, if the verdicts may be others with it.
    pub missing: Option<Unfinished>,
}

impl PredicateTested {
    /// Judges a range of ticks of a run.
    pub fn of(
        trace: &Trace,
        predicate: Predicate,
        from: u64,
        to: u64,
        at: Option<u64>,
    ) -> Result<PredicateTested, Error> {
        let line = timeline::judge(trace, &predicate, from, to)?;
        let judged = line.turns.iter().any(|(_, verdict)| !matches!(verdict, Verdict::Uncertain(_)));
        let near = if judged { None } else { near_field(trace, &predicate) };
        let from_text = results_read_from_text(trace, [&predicate], line.to)?;
        Ok(PredicateTested {
            from_text,
            run: trace.name().clone(),
            ended: is_last(trace, line.to),
            question: BisectSubject::Predicate(predicate),
            line,
            at,
            registered: None,
            other_in_pack: None,
            near,
            missing: trace.missing_to(to)?,
        })
    }
}
