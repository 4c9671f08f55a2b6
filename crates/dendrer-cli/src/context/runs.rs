//! Runs: names for new ones, and the states of those that are read.

use dendrer::Trace;
use dendrer::address::Address;
use dendrer::casebook::Place;
use dendrer::kernel::replay::ReplayError;
use dendrer::repo::free_name;
use dendrer::store::Store;
use dendrer_object::{Code, RunName};
use dendrer_view::show::missing_words;

use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;

/// Returns the given name, or the first free one of `STEM-1`, `STEM-2` and so on.
pub(crate) fn new_name(given: Option<&str>, stem: &str, store: &dyn Store) -> Result<RunName> {
    let parse = |text: &str| -> Result<RunName> {
        text.parse()
            .map_err(|error: dendrer_object::name::NameError| Failure::new(error.code(), error.to_string()))
    };
    if let Some(text) = given {
        return free_name(text, store);
    }
    let mut number = 1_u64;
    loop {
        let name = parse(&format!("{stem}-{number}"))?;
        if store.run(&name)?.is_none() {
            return Ok(name);
        }
        number += 1;
    }
}

pub(crate) use dendrer::repo::reachable as refuse_unreachable;

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

/// Finds the place in the store that an address means, for a label or a note.
pub(crate) fn moment(global: &Global, text: &str, out: &mut Out) -> Result<Place> {
    let rev = Address::parse(text)?;
    if rev.bundle.is_some() {
        return Err(Failure::new(Code::E0601, "a bundle has no casebook to write into")
            .note("labels and notes are of runs of the store"));
    }
    let source = super::sound(global, &rev, out)?;
    let rev = rev.resolve(&source.store)?;
    let trace = source.trace(&rev)?;
    let tick = rev.pos.as_ref().map(|pos| pos.tick(&trace)).transpose()?;
    Ok(Place::of(&trace, tick)?)
}
