//! The map of all runs that is appended before a log is handed over.
//!
//! Rule: it is computed from the entries of the log, and never from the index; test `a_map_is_made_of_entries_alone`.

use std::ops::ControlFlow;

use dendrer_object::Record;
use dendrer_object::map::LogCount;
use dendrer_object::record::{Author, Kind};
use dendrer_store::{ReadLog, StoreError};

use crate::environment::{Environment, seal_off_chain};

/// Counts the entries after those that were counted before.
pub(super) fn count<S: ReadLog + ?Sized>(store: &S, count: &mut LogCount) -> Result<(), StoreError> {
    store.entries(count.size()..store.tree().size, &mut |_, entry| {
        count.take(&entry);
        ControlFlow::Continue(())
    })
}

/// Makes the map of a log; `None` if its newest record is one, also one that a crash left unsigned.
pub(super) fn record(
    store: &dyn ReadLog,
    counted: &mut LogCount,
    environment: &mut dyn Environment,
) -> Result<Option<Record>, StoreError> {
    let (size, mut newest) = (store.tree().size, None);
    store.entries(size.saturating_sub(1)..size, &mut |_, entry| {
        newest = Some(entry.kind);
        ControlFlow::Break(())
    })?;
    if newest == Some(Kind::Map) {
        return Ok(None);
    }
    count(store, counted)?;
    let content = counted.map().content();
    let sealed = seal_off_chain(Author::Kernel, store.info().id, Kind::Map, None, &content, environment);
    Ok(Some(sealed.expect("a map has the shape of its kind, and five small fields")))
}
