//! Names for new runs.

use dendrer_object::name::{NAME_SIZE_MAX, NameError};
use dendrer_object::{Code, RunName};
use dendrer_store::Store;

use crate::address::{OF_STORE, is_hash, is_reachable};
use crate::error::ForeignError;
use crate::problem::Problem;

pub use crate::address::{MADE, made_name};

/// Reads the name of a run.
///
/// # Errors
///
/// A [`Problem`] with the code of the name.
pub fn read_name(text: &str) -> Result<RunName, Problem> {
    text.parse().map_err(|error: NameError| Problem::new(error.code(), error.to_string()))
}

/// Returns the given name, or the first free one of `RUN+2`, `RUN+3` and so on for a run that is made of `of`.
///
/// # Errors
///
/// A [`Problem`] if the name is taken, has a `+`, or no address reaches it.
pub fn new_name(given: Option<&str>, of: &str, store: &dyn Store) -> Result<RunName, Problem> {
    if let Some(text) = given {
        let name = read_name(text)?;
        refuse_unreachable(&name)?;
        refuse_taken(&name, store)?;
        return Ok(name);
    }
    let mut number = 2_u64;
    loop {
        let name = read_name(&made_name(of, number))?;
        if store.run(&name)?.is_none() {
            return Ok(name);
        }
        number += 1;
    }
}

/// Returns a name that a person may give a run that is made of another: the name of that one with an end.
pub fn given_name(of: &str, end: &str) -> String {
    let of = of.rsplit_once(OF_STORE).map_or(of, |(_, own)| own);
    let stem = of.replace(MADE, "-");
    format!("{}{end}", &stem[..stem.len().min(NAME_SIZE_MAX.saturating_sub(end.len()))])
}

/// Refuses a name with a `+` for a run that a person begins: names that the program makes have one.
///
/// # Errors
///
/// E0210.
pub fn refuse_made(name: &RunName) -> Result<(), Problem> {
    if name.as_str().contains(OF_STORE) {
        let error = ForeignError::Marked(name.clone());
        return Err(Problem::new(error.code(), error.to_string()).note("nothing was changed"));
    }
    match name.as_str().contains(MADE) {
        true => Err(Problem::new(
            Code::E0210,
            format!("{name} cannot be the name of a new run: a + marks a name that the program makes"),
        )
        .note("nothing was changed")),
        false => Ok(()),
    }
}

/// Refuses the name of a run that exists.
///
/// # Errors
///
/// E0111, or a [`Problem`] if the store cannot be read.
pub fn refuse_taken(name: &RunName, store: &dyn Store) -> Result<(), Problem> {
    if store.run(name)?.is_some() {
        return Err(Problem::new(Code::E0111, format!("{name} exists already")).note("nothing was changed"));
    }
    Ok(())
}

/// Refuses a name with a `+`, and one that no address reaches: it reads as a file, or as the beginning of a hash.
///
/// # Errors
///
/// E0210, or E0106, which names what the name reads as.
pub fn refuse_unreachable(name: &RunName) -> Result<(), Problem> {
    refuse_made(name)?;
    if !is_reachable(name) {
        let what = if is_hash(name) { "the beginning of a hash" } else { "a bundle" };
        let message = format!("the run could not be addressed: {name} reads as {what}");
        return Err(Problem::new(Code::E0106, message).note("nothing was committed"));
    }
    Ok(())
}
