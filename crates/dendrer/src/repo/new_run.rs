//! Names for new runs.

use dendrer_object::name::NameError;
use dendrer_object::{Code, RunName};
use dendrer_store::Store;

use crate::address::{is_hash, is_reachable};
use crate::problem::Problem;

/// Reads the name of a run.
///
/// # Errors
///
/// A [`Problem`] with the code of the name.
pub fn read_name(text: &str) -> Result<RunName, Problem> {
    text.parse().map_err(|error: NameError| Problem::new(error.code(), error.to_string()))
}

/// Returns the given name, or the first free one of `STEM-1`, `STEM-2` and so on.
///
/// # Errors
///
/// A [`Problem`] if the name is taken, or no address reaches it.
pub fn new_name(given: Option<&str>, stem: &str, store: &dyn Store) -> Result<RunName, Problem> {
    if let Some(text) = given {
        let name = read_name(text)?;
        refuse_unreachable(&name)?;
        refuse_taken(&name, store)?;
        return Ok(name);
    }
    let mut number = 1_u64;
    loop {
        let name = read_name(&format!("{stem}-{number}"))?;
        if store.run(&name)?.is_none() {
            return Ok(name);
        }
        number += 1;
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

/// Refuses a name that no address reaches: it reads as a file, or as the beginning of a hash.
///
/// # Errors
///
/// E0106 names what the name reads as.
pub fn refuse_unreachable(name: &RunName) -> Result<(), Problem> {
    if !is_reachable(name) {
        let what = if is_hash(name) { "the beginning of a hash" } else { "a bundle" };
        let message = format!("the run could not be addressed: {name} reads as {what}");
        return Err(Problem::new(Code::E0106, message).note("nothing was committed"));
    }
    Ok(())
}
