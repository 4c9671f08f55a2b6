//! Runs: names for new ones, and the states of those that are read.

use dendrer::casebook::Place;
use dendrer::change::findings;
pub(crate) use dendrer::repo::new_run::refuse_unreachable;

use super::desk::CommandDesk;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;

/// Finds the place in the store that an address means.
pub(crate) fn moment(global: &Global, text: &str, out: &mut Out) -> Result<Place> {
    findings::moment(&mut CommandDesk::new(global, out), text)
}
