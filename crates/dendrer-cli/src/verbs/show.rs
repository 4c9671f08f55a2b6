//! `dendrer show`

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use std::sync::Arc;

use dendrer::address::{Address, Position, state_path};
use dendrer::ask::show::{self, ShowQuestion, ShownRecord, has_tick};
use dendrer::kernel::predicate::Window;
use dendrer::run::declared;
use dendrer::store::Store;
use dendrer_object::Code;
use dendrer_object::record::Record;
use dendrer_view::show::{RawRecordAnswer, ShowAnswer, ShowParts};

use crate::context;
use crate::context::runs::unknown_state;
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::offers;
use crate::out::Out;

/// `show`
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// What: RUN@TICK
    #[arg(add = ArgValueCompleter::new(offers::runs))]
    pub(crate) rev: String,
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
    let rev = Address::parse(&args.rev)?;
    let source = context::source(global, &rev, out)?;
    let in_fields = global.fields.iter().any(|field| field == "provenance");
    let provenance = args.provenance || in_fields;
    // Naming a part leaves out the others.
    let all = !(args.intent || args.result || args.provenance);
    let state = args.state.unwrap_or(if all { StateChoice::Delta } else { StateChoice::None });
    let parts = ShowParts {
        all,
        intent: all || args.intent,
        result: all || args.result,
        changes: state != StateChoice::None,
        provenance: args.provenance,
        run: false,
    };
    let window = match state {
        StateChoice::Before => Some(Window::Before),
        StateChoice::After => Some(Window::After),
        StateChoice::Delta | StateChoice::None => None,
    };
    // An id names one record, at a tick or off the chain.
    let named = rev.named_record(&source.store)?.filter(|_| rev.pos.is_none());
    if let Some(record) = named.filter(|record| !has_tick(record)) {
        if args.raw_json {
            return out.answer_as_json(&RawRecordAnswer(&record));
        }
        let asks_for_state = args.path.is_some() || window.is_some();
        let shown = off_chain(record, asks_for_state, &source.store, provenance)?;
        return out.answer(&ShowAnswer { shown: &shown, parts: ShowParts { run: all, ..parts } });
    }
    let rev = rev.resolve(&source.store)?;
    let trace = source.trace(&rev)?;
    let tick = rev.pos.as_ref().unwrap_or(&Position::Tip).tick(&trace)?;
    if args.raw_json {
        return out.answer_as_json(&RawRecordAnswer(&trace.record(tick)?));
    }
    let path = args.path.as_deref().map(state_path).transpose()?;
    path.iter().try_for_each(|path| declared::place(&[&trace], path))?;
    let question = ShowQuestion { path, state: window, provenance };
    let shown = show::show(&trace, tick, &question).map_err(|error| {
        let looked_at = if window == Some(Window::Before) { tick.saturating_sub(1) } else { tick };
        unknown_state(error, &trace, &rev, looked_at)
    })?;
    if let (Some(path), Some((_, None))) = (&question.path, &shown.state) {
        let what = format!("there is nothing at {} in {}@{tick}", path.dotted(), trace.name());
        return Err(Failure::new(Code::E0104, what));
    }
    out.answer(&ShowAnswer { shown: &shown, parts })
}

/// Reads a record that is at no tick, so it has no state to ask for.
fn off_chain(
    record: Record,
    asks_for_state: bool,
    store: &Arc<dyn Store>,
    provenance: bool,
) -> Result<ShownRecord> {
    if asks_for_state {
        let kind = record.header().kind;
        let what = format!("a {kind} record stands at no tick, so there is no state to show");
        return Err(Failure::new(Code::E0106, what));
    }
    Ok(show::show_off_chain(store, record, provenance)?)
}
