//! The question of `show` as data.

use std::sync::Arc;

use dendrer_kernel::predicate::Window;
use dendrer_object::record::Record;
use dendrer_object::{Code, question};
use dendrer_store::Store;

use crate::address::{Address, Position, state_path};
use crate::ask::show::{self, ShowTerms, ShownRecord, has_tick};
use crate::ask::state::unknown_state;
use crate::problem::Problem;
use crate::run::declared;
use crate::source::{Asked, Desk, exclude};

question! {
    /// Asks for one record in full, with the changes of the state
    pub struct ShowQuestion: "show-question" {
        /// The record, as an address or by the first digits of its id
        pub rev: String,
        /// The state that the answer has as well
        pub state: Option<Window>,
        /// The only place of the state
        pub path: Option<String>,
        /// Whether the origin of the record is looked up
        pub provenance: bool,
        /// Whether header and content are wanted as they are, and nothing else
        pub raw_json: bool,
    }
}

/// The answer to a show.
#[derive(Debug, Clone)]
pub enum ShowReply {
    /// The record with its changes.
    Shown(Box<ShownRecord>),
    /// The record as it is.
    Raw(Record),
}

impl Asked for ShowQuestion {
    type Reply = ShowReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<ShowReply, Problem> {
        if self.raw_json {
            exclude(
                ("--raw-json", true),
                &[("--provenance", self.provenance), ("--path", self.path.is_some())],
            )?;
        }
        let address = Address::parse(&self.rev)?;
        let source = desk.look(&address)?;
        // An id names one record, at a tick or off the chain.
        let named = address.named_record(&source.store)?.filter(|_| address.pos.is_none());
        if let Some(record) = named.filter(|record| !has_tick(record)) {
            return self.off_chain(record, &source.store);
        }
        let address = address.resolve(&source.store)?;
        let trace = source.trace(&address)?;
        desk.reads_run(&trace);
        if let Some(Position::Refused(number)) = address.pos {
            return self.off_chain(trace.refusal(number)?, &source.store);
        }
        let tick = address.pos.as_ref().unwrap_or(&Position::Tip).tick(&trace)?;
        if self.raw_json {
            return Ok(ShowReply::Raw(trace.record(tick)?));
        }
        let path = self.path.as_deref().map(state_path).transpose()?;
        path.iter().try_for_each(|path| declared::place(&[&trace], path))?;
        let terms = ShowTerms { path, state: self.state, provenance: self.provenance };
        let shown = show::show(&trace, tick, &terms).map_err(|error| {
            let is_before = self.state == Some(Window::Before);
            unknown_state(error, &trace, &address, if is_before { tick.saturating_sub(1) } else { tick })
        })?;
        if let (Some(path), Some((_, None))) = (&terms.path, &shown.state) {
            let what = format!("there is nothing at {} in {}@{tick}", path.dotted(), trace.name());
            return Err(Problem::new(Code::E0104, what));
        }
        Ok(ShowReply::Shown(Box::new(shown)))
    }
}

impl ShowQuestion {
    /// Reads a record that is at no tick, so it has no state to ask for.
    fn off_chain(&self, record: Record, store: &Arc<dyn Store>) -> Result<ShowReply, Problem> {
        if self.raw_json {
            return Ok(ShowReply::Raw(record));
        }
        if self.path.is_some() || self.state.is_some() {
            let kind = record.header().kind;
            let what = format!("a {kind} record stands at no tick, so there is no state to show");
            return Err(Problem::new(Code::E0106, what));
        }
        Ok(ShowReply::Shown(Box::new(show::show_off_chain(store, record, self.provenance)?)))
    }
}
