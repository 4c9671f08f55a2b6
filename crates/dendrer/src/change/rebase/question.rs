//! The question of `rebase` as data.

use dendrer_object::{Code, RunName, question, words};

use super::{RebaseTerms, Rebased};
use crate::address::Address;
use crate::change::selection::Selection;
use crate::problem::Problem;
use crate::repo::new_run::new_name;
use crate::source::{Asked, Desk, exclude};

question! {
    /// Asks for the intents of a run to be proposed again on the state of another
    pub struct RebaseQuestion: "rebase-question" {
        /// The run, as an address
        pub run: String,
        /// The base, as an address; its last tick if none is named
        pub onto: String,
        /// The name of the new run; RUN-rebase-1 and so on if not given
        pub r#as: Option<String>,
        /// The reason
        pub reason: Option<String>,
        /// Whether only the outcome of each intent is asked for, and nothing is written
        pub plan: bool,
        /// Kinds of intents before which the rebase ends
        pub stop_on: Vec<StopOn>,
        /// Whether intents that are in the history of the base are taken once more
        pub again: bool,
        /// Whether an intent that does not fit is left out
        pub skip: bool,
        /// The types of the intents that are taken; all if not given
        pub only: Vec<String>,
        /// Whether nothing is written
        pub dry_run: bool,
    }
}

words! {
    /// What ends a rebase besides an intent that does not fit.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum StopOn {
        /// The answer of a tool that acts.
        Effectful = "effectful",
        /// A decision of which nothing says what it was made on.
        Context = "context",
    }
}

/// The outcome of a rebase.
#[derive(Debug, Clone)]
pub struct RebaseReply {
    /// The outcome of each intent.
    pub rebased: Rebased,
    /// The new run.
    pub run: RunName,
    /// The base.
    pub onto: RunName,
    /// The tick of the base.
    pub tick: u64,
    /// The reason that was given.
    pub reason: Option<String>,
    /// The last tick of the new run; `None` if nothing was written.
    pub tip: Option<u64>,
    /// Whether only the outcome was asked for.
    pub plan: bool,
    /// Whether nothing was to be written.
    pub dry_run: bool,
}

impl Asked for RebaseQuestion {
    type Reply = RebaseReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<RebaseReply, Problem> {
        exclude(("--plan", self.plan), &[("--as", self.r#as.is_some()), ("--dry-run", self.dry_run)])?;
        let selection = Selection::of(self.skip, &self.only)?;
        let refuse = |what: &str| Err(Problem::new(Code::E0106, what).note("nothing was changed"));
        let (address, onto) = (Address::parse(&self.run)?, Address::parse(&self.onto)?);
        if address.bundle.is_some() || onto.bundle.is_some() {
            return refuse("a run of a bundle is read; a rebase is made of runs of the store");
        }
        if address.pos.is_some() {
            return refuse("all that a run has of its own is rebased: name it without a tick");
        }
        // Both are read through a handle of their own; the new run is written through another.
        let reader = desk.open(&address)?;
        let onto = onto.resolve(&reader.store)?;
        let counted = desk.watch("rebase").over(&reader.store);
        let (source, base) =
            (reader.trace_through(&counted, &address)?, reader.trace_through(&counted, &onto)?);
        let tick = onto.pos.as_ref().map_or(Ok(base.tip()), |pos| pos.tick(&base))?;
        let is_dry = self.plan || self.dry_run;
        let name = new_name(self.r#as.as_deref(), source.name().as_str(), &*reader.store)?;
        let mut terms = RebaseTerms::new(name);
        terms.reason =
            self.reason.as_deref().map(|text| reader.clean(source.name(), text)).transpose()?.map(Into::into);
        terms.stop_on_effectful = self.stop_on.contains(&StopOn::Effectful);
        terms.stop_on_context = self.stop_on.contains(&StopOn::Context);
        terms.keep = !is_dry;
        terms.again = self.again;
        terms.selection = selection;
        let repo = desk.target(&reader, is_dry)?;
        let (mut recorder, rebased) = repo.rebase(&source, &base, tick, &terms, None)?;
        // A run that has nothing but its origin is of no use.
        let tip = if is_dry || rebased.carried() == 0 { None } else { Some(recorder.head().tick()) };
        match tip {
            Some(_) => drop(recorder.commit()?),
            None => drop(recorder.discard()),
        }
        drop(recorder);
        desk.close(repo)?;
        let reason = terms.reason.as_deref().map(str::to_owned);
        Ok(RebaseReply {
            rebased,
            run: terms.run,
            onto: base.name().clone(),
            tick,
            reason,
            tip,
            plan: self.plan,
            dry_run: self.dry_run,
        })
    }
}
