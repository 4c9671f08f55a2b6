//! The questions of `conflicts` as data.

use dendrer_object::{Code, Pointer, question};

use crate::address::{Address, state_path};
use crate::change::conflicts::{ConflictsAnswer, conflicts};
use crate::change::merge::MergeError;
use crate::error::Error;
use crate::problem::Problem;
use crate::source::{Asked, Desk};

question! {
    /// Asks for the places that the runs of a merge had different values for, and how each is decided now
    pub struct ConflictsListQuestion: "conflicts-list-question" {
        /// The run that was made by a merge, or a fork of it, as an address
        pub run: String,
    }

    /// Asks for one conflict with all its values
    pub struct ConflictsShowQuestion: "conflicts-show-question" {
        /// The run that was made by a merge, or a fork of it, as an address
        pub run: String,
        /// The place
        pub path: String,
    }
}

impl Asked for ConflictsListQuestion {
    type Reply = ConflictsAnswer;

    fn ask(&self, desk: &mut dyn Desk) -> Result<ConflictsAnswer, Problem> {
        of_run(&self.run, None, desk)
    }
}

impl Asked for ConflictsShowQuestion {
    type Reply = ConflictsAnswer;

    fn ask(&self, desk: &mut dyn Desk) -> Result<ConflictsAnswer, Problem> {
        of_run(&self.run, Some(&state_path(&self.path)?), desk)
    }
}

/// Lists the conflicts of a run as it is now, or those at a place.
fn of_run(run: &str, only: Option<&Pointer>, desk: &mut dyn Desk) -> Result<ConflictsAnswer, Problem> {
    let address = Address::parse(run)?;
    if address.pos.is_some() {
        let what = "conflicts are shown as they stand now: name the run without a tick";
        return Err(Problem::new(Code::E0106, what));
    }
    let source = desk.open(&address)?;
    conflicts(&source.trace(&address)?, only).map_err(|error| {
        let is_missing = matches!(&error, Error::Merge(MergeError::NoConflict { .. }));
        let problem = Problem::from(error);
        if is_missing { problem.help(&["dendrer", "conflicts", "list", run]) } else { problem }
    })
}
