//! The question of `cherrypick` as data.

use dendrer_kernel::step::{Pick, Stage, judge_change};
use dendrer_object::delta::Op;
use dendrer_object::{Code, Delta, RunName, Value, question};

use super::{Candidate, Imported, PickTerms};
use crate::address::{Address, Position, state_path};
use crate::problem::Problem;
use crate::run::trace::Trace;
use crate::source::{Asked, Desk};

question! {
    /// Asks for a transition of one run to be imported into another
    pub struct CherrypickQuestion: "cherrypick-question" {
        /// The run that the transition is of, as an address
        pub run: String,
        /// The tick of the transition
        pub tick: Option<Position>,
        /// The run that takes it in at its last tick, as an address
        pub into: String,
        /// The reason
        pub reason: Option<String>,
        /// Whether a transition that is in the history of the target is taken in once more
        pub again: bool,
        /// Whether nothing is written, no refusal either
        pub dry_run: bool,
    }
}

/// The outcome of an import, or of its check.
#[derive(Debug, Clone)]
pub struct CherrypickReply {
    /// The transition, and the check against the target.
    pub pick: Pick,
    /// The target.
    pub into: RunName,
    /// The last tick of the target before the import.
    pub tip: u64,
    /// The outcome.
    pub imported: Imported,
    /// Whether a fork of the source, before the transition, with the values of the target breaks a rule.
    pub decided_breaks: bool,
    /// Whether a fork of the target with the values of the source breaks a rule.
    pub given_breaks: bool,
    /// Whether nothing was to be written.
    pub dry_run: bool,
}

/// Whether a fork that sets these fields is refused without a reason: its state breaks a rule, at a stage that enforces.
fn breaks<'f>(
    trace: &Trace,
    tick: u64,
    fields: impl Iterator<Item = (&'f str, Value)>,
) -> Result<bool, Problem> {
    let set = fields.map(|(name, value)| Ok(Op::set(state_path(name)?, value)));
    let set = Delta(set.collect::<Result<_, Problem>>()?);
    let head = trace.head(tick)?;
    Ok(!set.0.is_empty() && head.stage() >= Stage::Contracts && !judge_change(&head, &set).is_empty())
}

impl Asked for CherrypickQuestion {
    type Reply = CherrypickReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<CherrypickReply, Problem> {
        let refuse = |what: &str| Err(Problem::new(Code::E0106, what).note("nothing was changed"));
        let address = Address::parse(&self.run)?;
        if address.bundle.is_some() {
            return refuse("a run of a bundle is read; what is imported is of a run of the store");
        }
        let into = Address::parse(&self.into)?;
        if into.bundle.is_some() || into.pos.is_some() {
            return refuse("a target is a run of the store; it takes in at its last tick");
        }
        let source = desk.judged(&address)?;
        let asked = desk.run_in(source, &address, "cherrypick")?;
        let (source, what) = (&asked.source, "say once which tick is imported: --tick N, or RUN@N");
        let candidate = Candidate::read(&asked.trace, asked.one_tick(self.tick.as_ref(), what)?)?;
        let target = source.trace_through(&asked.watch.over(&source.store), &into)?;
        let (into, tip) = (target.name().clone(), target.tip());
        let mut pick = candidate.check(&target, tip)?;
        pick.reason =
            self.reason.as_deref().map(|text| source.clean(&into, text)).transpose()?.map(Into::into);
        // A dry run asks the door as well, and nothing is written.
        let repo = desk.target(source, self.dry_run)?;
        let terms = PickTerms { dry: self.dry_run, again: self.again };
        let imported = repo.cherrypick(&into, &mut pick, tip, terms)?;
        desk.close(repo)?;
        let wrong = || pick.checked.fields.iter().filter(|field| field.wrong.is_some());
        let of_target = wrong().filter_map(|field| Some((&*field.name, field.target.clone()?)));
        let of_source = wrong().filter_map(|field| Some((&*field.name, field.source.clone()?)));
        let decided_breaks = breaks(&asked.trace, pick.tick - 1, of_target)?;
        let given_breaks = breaks(&target, tip, of_source)?;
        let dry_run = self.dry_run;
        Ok(CherrypickReply { pick, into, tip, imported, decided_breaks, given_breaks, dry_run })
    }
}
