//! The map of all runs that is appended before a log is handed over.
//!
//! Rule: it is computed from the entries of the log, and never from the index; test `a_map_is_made_of_entries_alone`.

use std::ops::ControlFlow;

use dendrer_object::Record;
use dendrer_object::map::LogCount;
use dendrer_object::record::{Author, Body, Header, Kind, cut};
use dendrer_store::{ReadLog, StoreError};

use crate::environment::Environment;

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
    let header = Header {
        store: store.info().id,
        kind: Kind::Map,
        run: None,
        tick: None,
        prev: None,
        head: None,
        type_name: None,
        author: Author::Kernel,
        ts: environment.now(),
        links: Vec::new(),
        pack: None,
    };
    let fields = cut(content.as_object().expect("the content of a map is an object"));
    let body = Body::commit(fields, environment.seed()).expect("a map has five small fields");
    Ok(Some(Record::seal(header, body).expect("a map has the shape of its kind")))
}
