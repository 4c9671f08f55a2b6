//! The name and the mark of the casebook, and the refusal to use it as a run of an agent.

use dendrer_object::{Record, RunName};

use crate::address::OF_STORE;
use crate::error::{Error, ForeignError};
use crate::handle::ReadHandle;
use crate::run::trace::Trace;

/// Name of the casebook's run.
pub const NAME: &str = "casebook";

/// Refuses the name of the casebook for any other run, and that of a foreign run for one that begins here.
pub(crate) fn refuse_name(run: &RunName) -> Result<(), Error> {
    match run.as_str() {
        NAME => Err(Error::Casebook { run: run.clone() }),
        name if name.contains(OF_STORE) => Err(ForeignError::Marked(run.clone()).into()),
        _ => Ok(()),
    }
}

/// Refuses the name of a label for a new run: an address with it would mean another moment from then on.
pub(crate) fn refuse_label(store: &impl ReadHandle, run: &RunName) -> Result<(), Error> {
    let casebook: RunName = NAME.parse().expect("the name of a run");
    let store = store.to_handle();
    if *run == casebook || store.run(&casebook)?.is_none() {
        return Ok(());
    }
    let trace = Trace::open(&store, &casebook)?;
    if !is_casebook(&trace) {
        return Ok(());
    }
    let state = trace.state(trace.tip())?;
    match state.get("labels").and_then(|labels| labels.get(run.as_str())).is_some() {
        true => Err(Error::NameOfLabel { run: run.clone() }),
        false => Ok(()),
    }
}

/// Whether a run is the casebook of its store. A run of this name without the mark is an ordinary run.
pub fn is_casebook(trace: &Trace) -> bool {
    trace.name().as_str() == NAME && is_marked(trace.start())
}

/// Whether a run of a store is its casebook.
pub fn is_of(store: &impl ReadHandle, run: &RunName) -> Result<bool, Error> {
    Ok(run.as_str() == NAME && is_casebook(&Trace::open(store, run)?))
}

/// Refuses to make another run of the casebook, or of a part of it.
pub(crate) fn refuse_source(trace: &Trace) -> Result<(), Error> {
    match is_casebook(trace) {
        true => Err(Error::OfCasebook { run: trace.name().clone() }),
        false => Ok(()),
    }
}

/// Whether a `run` record begins a casebook.
pub fn is_marked(start: &Record) -> bool {
    let meta = start.body().value("/meta").or_else(|| start.content().get("meta").cloned());
    meta.and_then(|meta| meta.get(NAME)?.as_u64()).is_some()
}
