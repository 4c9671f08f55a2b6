//! Runs: names for new ones, and the states of those that are read.

use dendrer::Trace;
use dendrer::address::Address;
use dendrer::casebook::Place;
use dendrer::change::findings;
pub(crate) use dendrer::change::new_run::{new_name, refuse_unreachable};
use dendrer::kernel::replay::ReplayError;
use dendrer_object::Code;
use dendrer_view::show::missing_words;

use super::desk::CommandDesk;
use crate::failure::{Failure, Result};
use crate::global::Global;
use crate::out::Out;

/// Reports which missing value leaves the state after a tick unknown.
pub(crate) fn unknown_state(error: dendrer::Error, trace: &Trace, rev: &Address, tick: u64) -> Failure {
    match error {
        dendrer::Error::Replay(ReplayError::Erased { tick: first, pointer }) => {
            Failure::new(Code::E0311, format!("the state of {} after tick {tick} is not known", trace.name()))
                .at("why", missing_words(first, pointer.as_ref()))
                .note("show and log print what is left of each transition")
                .help(&["dendrer", "show", &rev.beside(trace.name(), first)])
        }
        error => error.into(),
    }
}

/// Finds the place in the store that an address means.
pub(crate) fn moment(global: &Global, text: &str, out: &mut Out) -> Result<Place> {
    findings::moment(&mut CommandDesk::new(global, out), text)
}
