//! The question of `cherrypick` as data.

use dendrer_kernel::step::Pick;
use dendrer_object::{Code, RunName, question};

use super::{Candidate, Imported, PickTerms};
use crate::address::{Address, Position};
use crate::problem::Problem;
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
    /// Whether nothing was to be written.
    pub dry_run: bool,
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
        let source = desk.open(&address)?;
        let asked = desk.run_in(source, &address, "cherrypick")?;
        let (source, what) = (&asked.source, "say once which tick is imported: --tick N, or RUN@N");
        let candidate = Candidate::read(&asked.trace, asked.one_tick(self.tick.as_ref(), what)?)?;
        let target = source.trace_through(&asked.watch.over(&source.store), &into)?;
        let (into, tip) = (target.name().clone(), target.tip());
        let mut pick = candidate.check(&target, tip)?;
        pick.reason = self.reason.as_deref().map(|text| source.clean(text)).transpose()?.map(Into::into);
        // A dry run asks the door as well, and nothing is written.
        let repo = desk.target(source, self.dry_run)?;
        let terms = PickTerms { dry: self.dry_run, again: self.again };
        let imported = repo.cherrypick(&into, &mut pick, tip, terms)?;
        desk.close(repo)?;
        Ok(CherrypickReply { pick, into, tip, imported, dry_run: self.dry_run })
    }
}
