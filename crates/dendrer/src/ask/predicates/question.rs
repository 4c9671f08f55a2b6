//! The questions of `predicate list`, `predicate show` and `predicate test` as data.

use std::sync::Arc;

use dendrer_kernel::predicate::{Polarity, Predicate, Window};
use dendrer_object::{Code, question};
use dendrer_store::Store;

use super::{PredicateTested, PredicatesAnswer};
use crate::address::{Address, Position};
use crate::ask::named::{NamedPredicate, expression, resolve, unknown, unknown_predicate};
use crate::problem::Problem;
use crate::registry::Registry;
use crate::run::pack;
use crate::run::trace::Trace;
use crate::source::{Asked, Desk, exclude, in_order};

question! {
    /// Asks for the verdicts of a predicate on a run
    pub struct PredicateTestQuestion: "predicate-test-question" {
        /// A registered predicate, or an expression that names the violation
        pub predicate: String,
        /// The run, as an address
        pub run: String,
        /// Whether the expression is what must be true
        pub holds: bool,
        /// The state of a transition that an expression looks at
        pub window: Option<Window>,
        /// The only tick that is judged
        pub at: Option<Position>,
        /// Whether every tick is listed
        pub ticks: bool,
        /// The first tick
        pub from: Option<Position>,
        /// The last tick
        pub to: Option<Position>,
    }

    /// Asks for the names that predicates have
    pub struct PredicateListQuestion: "predicate-list-question" {
        /// The bundle, as an address; the store if none is given
        pub file: Option<String>,
        /// Whether retired names and older versions are listed
        pub all: bool,
        /// The run whose declared predicates are listed
        pub run: Option<String>,
    }

    /// Asks for every version of a predicate
    pub struct PredicateShowQuestion: "predicate-show-question" {
        /// The name
        pub name: String,
        /// The bundle, as an address; the store if none is given
        pub file: Option<String>,
        /// The run whose declared predicates of this name are listed
        pub run: Option<String>,
    }
}

/// The verdicts of a predicate on a run, and the run.
#[derive(Debug, Clone)]
pub struct PredicateTestReply {
    /// The run.
    pub trace: Trace,
    /// The verdicts.
    pub tested: PredicateTested,
    /// Whether every tick is listed.
    pub ticks: bool,
}

/// The predicates of a name.
#[derive(Debug, Clone)]
pub enum PredicateShowReply {
    /// Predicates that are registered, or that a pack declares.
    Named(PredicatesAnswer),
    /// A predicate that every store has.
    BuiltIn(Predicate),
}

impl Asked for PredicateTestQuestion {
    type Reply = PredicateTestReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<PredicateTestReply, Problem> {
        exclude(
            ("--at", self.at.is_some()),
            &[("--from", self.from.is_some()), ("--to", self.to.is_some())],
        )?;
        let asked = desk.judged_run(&Address::parse(&self.run)?, "predicate")?;
        let (address, trace) = (asked.address, asked.trace);
        let named = match self.holds {
            true => NamedPredicate::plain(expression(&trace, Polarity::Holds, &self.predicate)?),
            false => resolve(&trace, &self.predicate)?,
        };
        let named = named.at_window(self.window)?;
        let tip = self.to.as_ref().or(address.pos.as_ref());
        let tip = tip.map_or(Ok(trace.tip()), |position| position.tick(&trace))?;
        let at = self.at.as_ref().map(|position| position.tick(&trace)).transpose()?;
        let from = self.from.as_ref().map_or(Ok(0), |position| position.tick(&trace))?;
        let (from, to) = at.map_or((from, tip), |at| (at, at));
        in_order(from, to)?;
        let mut tested = PredicateTested::of(&trace, named.predicate, from, to, at)?;
        (tested.registered, tested.other_in_pack) = (named.registered, named.other_in_pack);
        Ok(PredicateTestReply { trace, tested, ticks: self.ticks })
    }
}

impl Asked for PredicateListQuestion {
    type Reply = PredicatesAnswer;

    fn ask(&self, desk: &mut dyn Desk) -> Result<PredicatesAnswer, Problem> {
        let (registry, declared) = known(self.file.as_deref(), self.run.as_deref(), desk)?;
        Ok(PredicatesAnswer::of(registry, declared, self.all))
    }
}

impl Asked for PredicateShowQuestion {
    type Reply = PredicateShowReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<PredicateShowReply, Problem> {
        let (registry, declared) = known(self.file.as_deref(), self.run.as_deref(), desk)?;
        match PredicatesAnswer::named(&registry, declared, &self.name) {
            Some(answer) => Ok(PredicateShowReply::Named(answer)),
            None => match Predicate::built_in(&self.name) {
                Some(built_in) => Ok(PredicateShowReply::BuiltIn(built_in)),
                None => Err(unknown_predicate(&unknown(&self.name, &registry, None))),
            },
        }
    }
}

/// Reads the registrations of a bundle, or else of the store, and what the pack of a run declares.
fn known(
    bundle: Option<&str>,
    run: Option<&str>,
    desk: &mut dyn Desk,
) -> Result<(Registry, Vec<Predicate>), Problem> {
    let store: Arc<dyn Store> = match bundle {
        Some(path) => desk.bundle(path)?.store,
        None => desk.reader()?,
    };
    Ok((Registry::read(&store)?, declared_by(bundle, run, desk)?))
}

/// Returns what the pack of a run declares, each under its full name.
fn declared_by(
    bundle: Option<&str>,
    run: Option<&str>,
    desk: &mut dyn Desk,
) -> Result<Vec<Predicate>, Problem> {
    let Some(run) = run else { return Ok(Vec::new()) };
    let named = bundle.map_or_else(|| run.to_owned(), |bundle| format!("{bundle}#{run}"));
    let address = Address::parse(&named)?;
    let source = desk.open(&address)?;
    let trace = source.trace(&address.resolve(&source.store)?)?;
    // With what extensions have added up to the end.
    let tip = trace.tip();
    let Some(in_force) = pack::in_force(&trace, tip + 1, &trace.state(tip)?)? else {
        return Err(Problem::new(Code::E0511, format!("{} carries no pack", trace.name()))
            .note("what a pack declares is known of the runs that were begun with it"));
    };
    // A predicate that the pack itself declares keeps the digest that it has there.
    let own = pack::of_run(&trace)?;
    let full = |one: &Predicate| {
        let one = own.as_ref().and_then(|own| own.predicate(one.name())).unwrap_or(one);
        one.clone().named(&format!("{}/{}", in_force.name, one.name()), one.version())
    };
    Ok(in_force.declared().map(|one| full(&one.predicate)).collect())
}
