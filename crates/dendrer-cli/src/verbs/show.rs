//! `dendrer show`

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use dendrer::address::Position;
use dendrer::ask::show::question::{ShowQuestion, ShowReply};
use dendrer::kernel::predicate::Window;
use dendrer_view::show::{RawRecordAnswer, ShowAnswer, ShowParts};

use crate::context::desk;
use crate::failure::Result;
use crate::global::{Global, tick_arg, with_tick};
use crate::offers;
use crate::out::Out;

/// `show`
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The transition: RUN@TICK, or RUN and a tick
    #[arg(add = ArgValueCompleter::new(offers::runs))]
    pub(crate) rev: String,
    /// The tick, if the first word names a run alone
    #[arg(value_parser = tick_arg, allow_negative_numbers = true)]
    pub(crate) tick: Option<Position>,
    /// Which state to print beside the rest; the change, where no part is named
    #[arg(long, value_enum)]
    pub(crate) state: Option<StateChoice>,
    /// Only this path of the state
    #[arg(long, value_name = "P", add = ArgValueCompleter::new(offers::paths))]
    pub(crate) path: Option<String>,
    /// Only the intent, unless more is asked for
    #[arg(long)]
    pub(crate) intent: bool,
    /// Only the result, unless more is asked for
    #[arg(long)]
    pub(crate) result: bool,
    /// Where it comes from: author, branch, predecessor, links, run, log
    #[arg(long)]
    pub(crate) provenance: bool,
    /// Print header and content as they are
    #[arg(long, conflicts_with_all = ["intent", "result", "provenance", "path"])]
    pub(crate) raw_json: bool,
}

/// Which state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StateChoice {
    /// What changed.
    Delta,
    /// The state before.
    Before,
    /// The state after.
    After,
    /// None.
    None,
}

pub(crate) fn run(global: &Global, args: &Show, out: &mut Out) -> Result {
    let in_fields = global.fields.iter().any(|field| field == "provenance");
    // Naming a part leaves out the others.
    let all = !(args.intent || args.result || args.provenance);
    let state = args.state.unwrap_or(if all { StateChoice::Delta } else { StateChoice::None });
    let question = ShowQuestion {
        rev: with_tick(&args.rev, args.tick.as_ref()),
        state: match state {
            StateChoice::Before => Some(Window::Before),
            StateChoice::After => Some(Window::After),
            StateChoice::Delta | StateChoice::None => None,
        },
        path: args.path.clone(),
        provenance: args.provenance || in_fields && !args.raw_json,
        raw_json: args.raw_json,
    };
    let shown = match desk::ask(global, &question, out)? {
        ShowReply::Raw(record) => return out.answer_as_json(&RawRecordAnswer(&record)),
        ShowReply::Shown(shown) => shown,
    };
    let parts = ShowParts {
        all,
        intent: all || args.intent,
        result: all || args.result,
        changes: state != StateChoice::None,
        provenance: args.provenance,
        run: all && shown.tick.is_none(),
    };
    out.answer(&ShowAnswer { shown: &shown, parts })
}
