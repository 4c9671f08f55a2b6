//! Names for new runs.

use std::sync::Arc;

use dendrer_kernel::step::Start;
use dendrer_object::name::{NAME_SIZE_MAX, NameError};
use dendrer_object::{Code, RunName};
use dendrer_store::{Store, StoreError};

use crate::address::{OF_STORE, is_hash, is_reachable};
use crate::error::{Error, ForeignError};
use crate::problem::Problem;
use crate::record::recorder::Recorder;
use crate::redact::Redactor;
use crate::repo::Repo;

pub use crate::address::{MADE, made_name};

/// Whether a program continues a run that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resume {
    /// It begins a run: under the given name, or where that is taken under `RUN+2`, `RUN+3` and so on.
    Never,
    /// It continues the run; a missing run is an error.
    Must,
    /// It continues the run, or begins it.
    Auto,
}

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

/// Makes a run under the first free name of `NAME`, `NAME+2`, `NAME+3` and so on, beginning with `number` (1 for `NAME`
/// itself). `make` commits a run of the name that it is given. A commit looks under the lock of the log whether the name is
/// taken, so of processes that make a run at the same time each has its own.
///
/// # Errors
///
/// Those of `make` for which `is_taken` is false.
pub fn first_free<T, E>(
    name: &RunName,
    mut number: u64,
    is_taken: impl Fn(&E) -> bool,
    mut make: impl FnMut(RunName) -> Result<T, E>,
) -> Result<T, E> {
    loop {
        let free = match number {
            1 => name.clone(),
            number => made_name(name.as_str(), number).parse().expect("a name with a number is a name"),
        };
        match make(free) {
            Err(error) if is_taken(&error) => number += 1,
            made => return made,
        }
    }
}

/// Whether an error is that of a name which a run or a label has already.
pub fn is_name_taken(error: &Error) -> bool {
    matches!(error, Error::Store(StoreError::RunExists(_)) | Error::NameOfLabel { .. })
}

impl Repo {
    /// Begins a run under the first free name of `NAME`, `NAME+2`, `NAME+3` and so on, where `NAME` is `start.run`. Its `run`
    /// record is durable when this returns, and the head of the [`Recorder`] has the name. Processes that begin the same name
    /// at the same time get a run each.
    ///
    /// # Errors
    ///
    /// As [`Repo::begin`] and [`Recorder::commit`], but for a name that is taken. A name with a `+` is taken as it is: what
    /// takes a name from a person refuses it before ([`refuse_made`]).
    pub fn begin_free(&self, start: &Start) -> Result<Recorder, Error> {
        let redactor = self.redactor(start.pack.as_ref().map(|bound| &bound.value))?;
        self.begin_free_redacted(start, redactor)
    }

    /// As [`Repo::begin_free`], with other rules for secrets.
    ///
    /// # Errors
    ///
    /// Those of [`Repo::begin_free`].
    pub fn begin_free_redacted(&self, start: &Start, redactor: Arc<Redactor>) -> Result<Recorder, Error> {
        first_free(&start.run, 1, is_name_taken, |run| {
            let mut recorder = self.begin_redacted(&Start { run, ..start.clone() }, Arc::clone(&redactor))?;
            recorder.commit()?;
            Ok(recorder)
        })
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
