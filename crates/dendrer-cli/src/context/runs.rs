//! Runs: names for new ones, and the states of those that are read.

use dendrer::address::{Address, is_hash, is_reachable};
use dendrer::casebook::Place;
use dendrer::store::Store;
use dendrer_object::{Code, RunName};

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
        let name = parse(text)?;
        refuse_unreachable(&name)?;
        if store.run(&name)?.is_some() {
            return Err(
                Failure::new(Code::E0111, format!("{name} exists already")).note("nothing was changed")
            );
        }
        return Ok(name);
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

/// Refuses a name that no address reaches: it reads as a file, or as the beginning of a hash.
pub(crate) fn refuse_unreachable(name: &RunName) -> Result<()> {
    if !is_reachable(name) {
        let what = if is_hash(name) { "the beginning of a hash" } else { "a bundle" };
        return Err(Failure::new(
            Code::E0106,
            format!("the run could not be addressed: {name} reads as {what}"),
        )
        .note("nothing was committed"));
    }
    Ok(())
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
