//! The questions of `conflicts` as data.

use dendrer_object::{Code, Value, json, question};

use super::{AskedConflicts, ConflictsAnswer, ResolvedConflict, conflicts, decide};
use crate::address::{Address, state_path};
use crate::change::merge::{MergeError, Resolution, Take};
use crate::error::Error;
use crate::problem::Problem;
use crate::record::redacted::beside;
use crate::source::{Asked, Desk, redactor_of_run};

question! {
    /// Asks for the places that the runs of a merge, or the agents of one run, had different values for
    pub struct ConflictsListQuestion: "conflicts-list-question" {
        /// The run, as an address
        pub run: String,
        /// Whether the places are listed that a strategy decided, and not those that were kept
        pub decided: bool,
    }

    /// Asks for one conflict with all its values
    pub struct ConflictsShowQuestion: "conflicts-show-question" {
        /// The run that was made by a merge, or a fork of it, as an address
        pub run: String,
        /// The place
        pub path: String,
    }

    /// Asks for a conflict of a merge to be decided
    pub struct ResolveQuestion: "conflicts-resolve-question" {
        /// The run, as an address
        pub run: String,
        /// The place
        pub path: String,
        /// The name of a side: a letter, its run or its agent; or a value as JSON
        pub take: String,
        /// The reason
        pub reason: String,
        /// The agent that decides, as it is recorded; operator if not given
        pub agent: Option<String>,
        /// Whether nothing is written
        pub dry_run: bool,
    }
}

impl Asked for ConflictsListQuestion {
    type Reply = ConflictsAnswer;

    fn ask(&self, desk: &mut dyn Desk) -> Result<ConflictsAnswer, Problem> {
        let asked = if self.decided { AskedConflicts::Decided } else { AskedConflicts::Kept };
        of_run(&self.run, asked, desk)
    }
}

impl Asked for ConflictsShowQuestion {
    type Reply = ConflictsAnswer;

    fn ask(&self, desk: &mut dyn Desk) -> Result<ConflictsAnswer, Problem> {
        of_run(&self.run, AskedConflicts::At(&state_path(&self.path)?), desk)
    }
}

/// Lists conflicts of a run as it is now.
fn of_run(run: &str, asked: AskedConflicts<'_>, desk: &mut dyn Desk) -> Result<ConflictsAnswer, Problem> {
    let address = Address::parse(run)?;
    if address.pos.is_some() {
        let what = "conflicts are shown as they stand now: name the run without a tick";
        return Err(Problem::new(Code::E0106, what));
    }
    let source = desk.open(&address)?;
    conflicts(&source.trace(&address)?, asked).map_err(|error| {
        let is_missing = matches!(&error, Error::Merge(MergeError::NoConflict { .. }));
        let problem = Problem::from(error);
        if is_missing { problem.help(&["dendrer", "conflicts", "list", run]) } else { problem }
    })
}

/// The agent if none is given.
const OPERATOR: &str = "operator";

impl Asked for ResolveQuestion {
    type Reply = ResolvedConflict;

    fn ask(&self, desk: &mut dyn Desk) -> Result<ResolvedConflict, Problem> {
        let refuse = |what: &str| Err(Problem::new(Code::E0106, what).note("nothing was changed"));
        let address = Address::parse(&self.run)?;
        if address.bundle.is_some() || address.pos.is_some() {
            return refuse("a conflict is resolved at the last tick of a run of the store");
        }
        let agent = self.agent.as_deref().unwrap_or(OPERATOR);
        if agent.is_empty() || self.reason.trim().is_empty() {
            return refuse("a decision has a reason and somebody who took it");
        }
        let path = state_path(&self.path)?;
        let reader = desk.store()?;
        let run = address.run_in(&reader.reader()?, &[])?;
        let said = Value::array([&self.reason, agent, &self.take].map(Value::from));
        let redactor = redactor_of_run(&reader, Some(&run), &said)?;
        let resolution = Resolution {
            take: match take(&self.take) {
                Take::Value(value) => Take::Value(beside(&redactor, &path, value)),
                Take::Either(text, value) => Take::Either(text, beside(&redactor, &path, value)),
                side @ Take::Side(_) => side,
            },
            path,
            reason: redactor.text(&self.reason).0.into(),
            agent: redactor.text(agent).0.into(),
        };
        let repo = if self.dry_run { reader } else { desk.writable()? };
        let store = repo.writer()?;
        let resolved = decide(store, &run, &resolution, repo.environment(), self.dry_run);
        // A refusal is recorded as well, so there is something to sign either way.
        let closed = if self.dry_run { Ok(()) } else { desk.close(repo) };
        let resolved = resolved.map_err(|error| self.not_resolved(error))?;
        closed.map(|()| resolved)
    }
}

impl ResolveQuestion {
    /// Adds to an error the command that shows how the conflict is decided now.
    fn not_resolved(&self, error: Error) -> Problem {
        let (code, problem) = (error.code(), Problem::from(error));
        match code {
            Code::E0445 => {
                problem.note("nothing was changed").help(&["dendrer", "conflicts", "list", &self.run])
            }
            Code::E0446 => problem
                .note("nothing was changed; what is to stand there now is a change like any other")
                .help(&["dendrer", "conflicts", "show", &self.run, &self.path]),
            _ => problem,
        }
    }
}

/// Reads what is taken: JSON is a value or the name of a side, after `value:` a value, and any other text is a side.
fn take(text: &str) -> Take {
    let value = |text: &str| json::parse_door(text.as_bytes()).ok();
    match (text.strip_prefix("value:").and_then(value), value(text)) {
        (Some(value), _) => Take::Value(value),
        (None, Some(value)) => Take::Either(text.to_owned(), value),
        (None, None) => Take::Side(text.to_owned()),
    }
}
