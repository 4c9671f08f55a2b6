//! The question of `reduce` as data.

use dendrer_kernel::pack::Pack;
use dendrer_kernel::step::{ExtensionFault, Stage};
use dendrer_object::{Code, RunName, Value, question};

use super::Reduced;
use crate::address::Address;
use crate::error::Error;
use crate::problem::Problem;
use crate::repo::new_run::{given_name, read_name, refuse_made, refuse_taken};
use crate::source::{Asked, Desk};

question! {
    /// Asks for a recorded run to be reduced again under another pack, as a new run
    pub struct ReduceQuestion: "reduce-question" {
        /// The run, as an address
        pub run: String,
        /// The text of the pack
        pub pack: String,
        /// The name of the new run
        pub r#as: String,
        /// The state that the init of the pack is given; that of the run if not given
        pub state: Option<Value>,
        /// The stage of the new run, 0 to 3; that of the run if not given, 1 at most
        pub stage: Option<u64>,
    }
}

/// A new run with the transitions of another one under another pack.
#[derive(Debug)]
pub struct ReduceReply {
    /// The new run.
    pub run: RunName,
    /// The run that was reduced again.
    pub source: RunName,
    /// The pack of the new run.
    pub pack: Pack,
    /// Counts, tip, errors and extensions of the new run.
    pub reduced: Reduced,
}

impl Asked for ReduceQuestion {
    type Reply = ReduceReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<ReduceReply, Problem> {
        let stage = read_stage(self.stage)?;
        let address = Address::parse(&self.run)?;
        if address.pos.is_some() {
            return Err(Problem::new(Code::E0105, "a whole run is reduced again; leave out the tick"));
        }
        let run = read_name(&self.r#as)?;
        refuse_made(&run)?;
        let pack = desk.pack("pack", &self.pack)?;
        // The source is read through a handle of its own; the new run is written through another.
        let source = desk.open(&address)?;
        let trace = source.trace_through(&desk.watch("reduce").over(&source.store), &address)?;
        let repo = desk.writable()?;
        refuse_taken(&run, repo.writer()?)?;
        let reduced = repo.reduce(&trace, &pack, run.clone(), self.state.clone(), stage);
        let file = desk.name_of("pack");
        let reduced = reduced.map_err(|error| not_reduced(error, address.bundle.is_some(), &file))?;
        desk.close(repo)?;
        Ok(ReduceReply { run, source: trace.name().clone(), pack: pack.pack, reduced })
    }
}

/// Reads the stage of a new run.
///
/// # Errors
///
/// E0106 if there is no such stage.
pub(crate) fn read_stage(number: Option<u64>) -> Result<Option<Stage>, Problem> {
    let read = |number: u64| {
        let unknown = || Problem::new(Code::E0106, format!("--stage is {number}, and a stage is 0 to 3"));
        Stage::from_number(number).ok_or_else(unknown)
    };
    number.map(read).transpose()
}

/// Adds to an error the commands that help if an extension of the contract does not fit.
fn not_reduced(error: Error, is_bundle: bool, file: &str) -> Problem {
    let Error::NotRetold { run, tick, error: why } = &error else { return error.into() };
    let (run, tick) = (run.to_string(), *tick);
    let step = match why.faults.first().map(ExtensionFault::code) {
        Some(Code::E0414) => {
            "an extension goes with the contract that it names: give the pack that name and version"
        }
        Some(Code::E0423) => {
            "an approval is signed for one run, and this is another; without `approvers` in the pack it is recorded as it is said"
        }
        _ => {
            "what it adds has to fit the pack: take out of the pack what the extension adds, or says otherwise"
        }
    };
    let problem = Problem::from(error).note(step).note("nothing was written");
    // A fork is made of a run of the store.
    if is_bundle {
        return problem;
    }
    let (from, short) = ((tick - 1).to_string(), given_name(&run, &format!("-before-{tick}")));
    let reduced = format!("{short}.reduced");
    problem
        .note("or leave it out: reduce what came before it, in a fork")
        .help(&["dendrer", "fork", "--run", &run, "--from", "tick", &from, "--as", &short])
        .help(&["dendrer", "reduce", &short, "--pack", file, "--as", &reduced])
}
