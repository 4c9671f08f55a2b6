//! `dendrer reduce`: a recorded run once more, under another pack, as a new run.

use clap::Args;
use dendrer::reduce::question::ReduceQuestion;
use dendrer::source::Asked as _;

use crate::context::desk::CommandDesk;
use crate::context::packs;
use crate::failure::Result;
use crate::global::Global;
use crate::out::{Out, files};

/// `reduce`
#[derive(Debug, Args)]
pub(crate) struct Reduce {
    /// The run
    pub(crate) run: String,
    /// The pack whose rules make the states
    #[arg(long, value_name = "FILE")]
    pub(crate) pack: String,
    /// What the new run is called
    #[arg(long = "as", value_name = "NEW")]
    pub(crate) new: String,
    /// A JSON file with the state that the pack's init is given; that of the run if not given
    #[arg(long, value_name = "FILE")]
    pub(crate) state: Option<String>,
    /// The stage of the new run, 0 to 3: what happened is kept, and the stage is enforced from the tick after it on. That of
    /// the run if not given, 1 at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=3))]
    pub(crate) stage: Option<u64>,
}

pub(crate) fn run(global: &Global, args: &Reduce, out: &mut Out) -> Result {
    let question = ReduceQuestion {
        run: args.run.clone(),
        pack: packs::text(&args.pack)?,
        r#as: args.new.clone(),
        state: args.state.as_deref().map(files::json).transpose()?,
        stage: args.stage,
    };
    let mut desk = CommandDesk::new(global, out);
    desk.names("pack", Some(&args.pack));
    let asked = question.ask(&mut desk);
    drop(desk);
    out.answer(&asked?)
}
