//! The question of `runs` as data.

use dendrer_object::{Code, question};

use crate::address::Address;
use crate::ask::runs::{self, RunsAnswer, RunsOrder};
use crate::problem::Problem;
use crate::source::{Asked, Desk};

question! {
    /// Asks for the runs of a store
    pub struct RunsQuestion: "runs-question" {
        /// A condition on a run, in the language of predicates, over its own names and the state at the tip
        pub r#where: Option<String>,
        /// The only stage whose runs are listed
        pub stage: Option<u64>,
        /// Whether only runs are listed that were not found intact on this machine as they are now
        pub unverified: bool,
        /// Whether dropped runs are listed as well
        pub all: bool,
        /// Whether forks follow the run that they were forked from
        pub tree: bool,
        /// The order; newest first if not given
        pub sort: Option<RunsOrder>,
        /// The number of runs at most; 0 for all, 50 if not given
        pub limit: Option<u64>,
        /// The run after which the list begins, in its order; the first if not given
        pub after: Option<String>,
    }
}

impl Asked for RunsQuestion {
    type Reply = RunsAnswer;

    fn ask(&self, desk: &mut dyn Desk) -> Result<RunsAnswer, Problem> {
        let source = desk.look(&Address { bundle: None, run: None, pos: None })?;
        let answer = runs::runs(&source.store, self, &source.found_intact())?;
        let answer = RunsAnswer { trust: source.log_trust(), ..answer };
        // A condition that cannot be judged for any run is no condition on runs.
        if let Some((run, why)) = answer.unclear.first().filter(|_| answer.unclear.len() == answer.total) {
            let what = format!("the condition cannot be judged for any run, such as {run}");
            return Err(Problem::new(Code::E0509, what)
                .at("why", why.clone())
                .note("a condition is true or false, like ticks > 100"));
        }
        Ok(answer)
    }
}
