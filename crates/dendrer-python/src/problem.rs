//! Problems as the exceptions of the package.

use dendrer_view::problem::{Problem, ShownProblem as _};
use dendrer_view::quote;
use pyo3::prelude::*;

use crate::convert::NotRecordable;

/// Makes the exception of a document `dendrer.error/1` and its text for people.
pub(crate) fn exception(py: Python<'_>, document: &str, text: &str) -> PyErr {
    let made = py.import("dendrer._errors").and_then(|module| module.call_method1("of", (document, text)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// Makes the exception of a problem.
pub(crate) fn of(py: Python<'_>, problem: impl Into<Problem>) -> PyErr {
    let problem = problem.into();
    exception(py, &quote::json(&problem.to_json()), &problem.text(None))
}

/// Makes the exception of a value that is not recordable.
pub(crate) fn not_recordable(py: Python<'_>, fault: &NotRecordable) -> PyErr {
    let made = py
        .import("dendrer._errors")
        .and_then(|module| module.call_method1("not_recordable", (&fault.path, fault.reason, &fault.what)));
    made.map_or_else(|error| error, PyErr::from_value)
}
