//! The question of `assert` as data.

use dendrer_object::{Code, RunName, question};

use super::{Gate, GateError, JudgedGate, judge};
use crate::problem::Problem;
use crate::source::{Asked, Desk};

question! {
    /// Asks whether the steps of a run pass gates
    pub struct AssertQuestion: "assert-question" {
        /// The run, as an address that may end it
        pub run: String,
        /// Expressions that must be true
        pub holds: Vec<String>,
        /// Expressions that must not be true
        pub predicate: Vec<String>,
        /// Whether a gate passes if the run has no step that it asks for
        pub allow_empty: bool,
    }
}

/// The gates of a run.
#[derive(Debug, Clone)]
pub struct GateAnswer {
    /// The run.
    pub run: RunName,
    /// The gates, in the order in which they were asked.
    pub gates: Vec<JudgedGate>,
}

impl Asked for AssertQuestion {
    type Reply = GateAnswer;

    fn ask(&self, desk: &mut dyn Desk) -> Result<GateAnswer, Problem> {
        let holds = self.holds.iter().map(|text| (text, true));
        let gates = holds.chain(self.predicate.iter().map(|text| (text, false))).map(|(text, holds)| {
            Gate::new(text, holds, self.allow_empty).map_err(|error| match error {
                GateError::Expr(error) => Problem::from(error),
                error => Problem::new(error.code(), error.to_string()).at("expression", text.as_str()),
            })
        });
        let gates = gates.collect::<Result<Vec<Gate>, Problem>>()?;
        if gates.is_empty() {
            return Err(Problem::new(Code::E0106, "assert needs --holds EXPR or --predicate EXPR")
                .help(&["dendrer", "steps", &self.run, "--stats"]));
        }
        let (trace, upto) = desk.judged_up_to(&self.run)?;
        let gates = judge((&trace, upto), &gates, self.allow_empty)?;
        Ok(GateAnswer { run: trace.name().clone(), gates })
    }
}
