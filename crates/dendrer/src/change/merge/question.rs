//! The question of `merge` as data.

use std::sync::Arc;

use dendrer_object::{Code, Digest, RunName, question};

use super::{MergeError, MergeInput, MergeTerms, Merged, PlannedPlace, Strategy, plan, unjudged};
use crate::address::{Address, state_path};
use crate::error::Error;
use crate::problem::Problem;
use crate::repo::new_run::new_name;
use crate::source::{Asked, Desk, clean_text, exclude};

question! {
    /// Asks for a new run that begins with values of several others
    pub struct MergeQuestion: "merge-question" {
        /// The name of the new run
        pub r#as: String,
        /// The runs, as addresses; at least two
        pub from: Vec<String>,
        /// The places of the state that are taken; all if not given
        pub artifact: Vec<String>,
        /// The strategy that decides conflicts; manual if not given
        pub strategy: Option<Strategy>,
        /// Whether values alone are taken, without pack, policy rules and goal
        pub seed_only: bool,
        /// The reason why the run begins although its state breaks rules that no source breaks
        pub although: Option<String>,
        /// Whether the decision on each place is listed, and nothing is written
        pub plan: bool,
        /// Whether nothing is written
        pub dry_run: bool,
    }
}

/// A new run that begins with values of several others.
#[derive(Debug, Clone)]
pub struct MergeReply {
    /// The new run.
    pub run: RunName,
    /// Its sources, places and conflicts.
    pub merged: Merged,
    /// Root of the state that it begins with.
    pub state_root: Digest,
    /// Id of its first record; `None` if nothing was written.
    pub begin: Option<Digest>,
    /// The decision on each place; `None` if that was not asked for.
    pub plan: Option<Vec<PlannedPlace>>,
    /// The rules that cannot be judged of the new run, each with the reason.
    pub unjudged: Vec<(String, String)>,
}

impl Asked for MergeQuestion {
    type Reply = MergeReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<MergeReply, Problem> {
        exclude(("--plan", self.plan), &[("--dry-run", self.dry_run)])?;
        let addresses =
            self.from.iter().map(|text| Address::parse(text)).collect::<Result<Vec<Address>, _>>()?;
        if addresses.iter().any(|address| address.bundle.is_some()) {
            let what = "a run of a bundle is read; a merge is made of runs of the store";
            return Err(Problem::new(Code::E0106, what).note("nothing was changed"));
        }
        // The sources are read through a handle of their own; the new run is written through another.
        let source = desk.open(&Address { bundle: None, run: None, pos: None })?;
        let counted = desk.watch("merge").over(&source.store);
        let mut traces = Vec::with_capacity(addresses.len());
        for address in addresses {
            let address = address.resolve(&source.store)?;
            let trace = source.trace_through(&counted, &address)?;
            let tick = address.pos.as_ref().map_or(Ok(trace.tip()), |pos| pos.tick(&trace))?;
            traces.push((trace, tick));
        }
        let inputs: Vec<MergeInput<'_>> =
            traces.iter().map(|(trace, tick)| MergeInput { trace, tick: *tick }).collect();
        let terms = MergeTerms {
            run: new_name(Some(&self.r#as), "", &*source.store)?,
            artifacts: self.artifact.iter().map(|path| state_path(path)).collect::<Result<_, _>>()?,
            strategy: self.strategy.unwrap_or(Strategy::Manual),
            seed_only: self.seed_only,
            although: None,
        };
        let is_dry = self.dry_run || self.plan;
        let repo = desk.target(&source, is_dry)?;
        let clean = self.although.clone().map(|reason| {
            let runs = inputs.iter().map(|input| input.trace.name());
            runs.fold(Ok(reason), |reason, run| clean_text(&repo, Some(run), &reason?))
        });
        let terms = MergeTerms { although: clean.transpose()?.map(Arc::from), ..terms };
        let (mut recorder, merged) = repo.merge(&inputs, &terms).map_err(|error| self.not_merged(error))?;
        let head = recorder.head();
        let (unjudged, state_root) = (unjudged(head, &merged), head.state().digest());
        let begin = (!is_dry).then(|| head.id());
        let plan = self.plan.then(|| plan(&inputs, &merged, head.state())).transpose()?;
        match is_dry {
            true => drop(recorder.discard()),
            false => drop(recorder.commit()?),
        }
        drop(recorder);
        desk.close(repo)?;
        Ok(MergeReply { run: terms.run, merged, state_root, begin, plan, unjudged })
    }
}

impl MergeQuestion {
    /// Adds to an error the commands that help.
    fn not_merged(&self, error: Error) -> Problem {
        let (is_nothing, is_open) = match &error {
            Error::Merge(MergeError::Nothing(_)) => (true, false),
            Error::Merge(MergeError::OpenUnderRules(_)) => (false, true),
            _ => (false, false),
        };
        let problem = Problem::from(error);
        match (is_nothing, is_open) {
            (true, _) => self.from.iter().fold(
                problem.note("nothing was changed; a place to take is one of the state of a run"),
                |problem, run| problem.help(&["dendrer", "state", run]),
            ),
            (_, true) => {
                let mut argv = vec!["dendrer", "merge", "--as", &self.r#as];
                argv.extend(self.from.iter().flat_map(|run| ["--from", run.as_str()]));
                argv.extend(self.artifact.iter().flat_map(|path| ["--artifact", path.as_str()]));
                let with = |more: &[&'static str]| [argv.as_slice(), more].concat();
                problem
                    .note("nothing was changed; let the value committed last win, or take values alone and decide later")
                    .help(&with(&["--strategy", "lww"]))
                    .help(&with(&["--seed-only"]))
            }
            _ => problem,
        }
    }
}
