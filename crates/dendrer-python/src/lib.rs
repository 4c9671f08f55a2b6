//! The compiled part of the Python package. What is recorded goes through `Repo`, and every document comes from `view`; no rule is
//! made here.

mod convert;
mod gate;
mod graphs;
mod problem;
mod reading;
mod recording;
mod saver;

use std::ffi::OsString;

use dendrer::change::graph::Callers;
use dendrer::kernel::unknown::Since;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs the program, and returns its exit code.
#[pyfunction]
fn program(py: Python<'_>, args: Vec<OsString>) -> u8 {
    py.detach(|| dendrer_cli::program(&args))
}

/// Runs one verb, and returns its exit code, what it would have printed, and its problem as a document and as text. With
/// `as_shown`, notes are among what it would have printed, where a terminal shows them.
#[pyfunction]
#[pyo3(signature = (args, as_shown=false))]
fn ask<'py>(
    py: Python<'py>,
    args: Vec<String>,
    as_shown: bool,
) -> (u8, Bound<'py, PyBytes>, Option<(String, String)>) {
    answered(py, &args, as_shown, None)
}

/// Runs one verb with answers to the effects of a graph.
fn answered<'py>(
    py: Python<'py>,
    args: &[String],
    as_shown: bool,
    callers: Option<Callers>,
) -> (u8, Bound<'py, PyBytes>, Option<(String, String)>) {
    let asked = py.detach(|| dendrer_cli::ask(args, as_shown, callers));
    let problem = asked.problem.map(|problem| (dendrer_view::quote::json(&problem), asked.problem_text));
    (asked.exit, PyBytes::new(py, &asked.answer), problem)
}

/// Turns a path of the state, as people write it, into a JSON pointer.
#[pyfunction]
fn pointer(py: Python<'_>, path: &str) -> PyResult<String> {
    let place = dendrer::address::state_path(path).map_err(|error| problem::of(py, error))?;
    Ok(place.written())
}

/// Reads a file of predicates as `all_of` of a question takes it.
#[pyfunction]
fn predicates_of_file(py: Python<'_>, path: &str) -> PyResult<String> {
    dendrer_cli::predicates_of_file(path).map_err(|error| problem::of(py, error))
}

/// Names an unknown place and its cause: `total (a rule failed at tick 2)`.
#[pyfunction]
fn unknown_words(place: &str, code: &str, tick: u64) -> Option<String> {
    let since = Since { tick, code: code.into() };
    dendrer_view::certainty::unknown_words(&[(place.parse().ok()?, since)])
}

/// Reads a value of a document as plain values of Python.
#[pyfunction]
fn plain<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    let value = dendrer_object::json::parse_door(text.as_bytes());
    let value = value.map_err(|error| pyo3::exceptions::PyValueError::new_err(error.kind.to_string()))?;
    convert::to_python(py, &dendrer_object::tag::from_user_names(&value))
}

/// Warns under the logger of the package that another program has a lock of the store.
fn warn_of_wait() {
    // Ignored: a logger that fails stops no program that records.
    let _ = Python::try_attach(|py| {
        py.import("dendrer._made")
            .and_then(|module| module.call_method1("warn", (dendrer::store::disk::WAITS,)))
            .is_ok()
    });
}

#[pymodule]
mod _native {
    use super::*;

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        dendrer::store::disk::on_wait(warn_of_wait);
        Ok(())
    }

    #[pymodule_export]
    use super::convert::NativeValue;
    #[pymodule_export]
    use super::graphs::graph_run;
    #[pymodule_export]
    use super::reading::{NativeStore, NativeTrace};
    #[pymodule_export]
    use super::recording::{NativeLater, NativeRecording, NativeReply, as_it_is};
    #[pymodule_export]
    use super::saver::NativeSaver;
    #[pymodule_export]
    use super::{ask, plain, pointer, predicates_of_file, program, unknown_words};

    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
