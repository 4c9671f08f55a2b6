//! Runs of graphs whose effects and functions are functions of Python.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use dendrer::change::graph::{Callers, EdgeEnd, EdgeFailure};
use dendrer::graph::eval::EdgeRequest;
use dendrer_object::Value;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::answered;
use crate::convert::{Fault, Reader, to_python};

/// How a call of Python ended that brought no value, or `None`; its value, or the reason; and where it was raised.
type Answered<'py> = (Option<String>, Bound<'py, PyAny>, Option<String>);

/// Runs `dendrer graph run` with the effects and the functions that `answer` answers. It is called with the name, the arguments, whether a
/// function is called again, and the seconds that it may take.
#[pyfunction]
pub(crate) fn graph_run<'py>(
    py: Python<'py>,
    args: Vec<String>,
    effects: BTreeSet<String>,
    functions: BTreeSet<String>,
    answer: Py<PyAny>,
) -> (u8, Bound<'py, PyBytes>, Option<(String, String)>) {
    let answer = Arc::new(move |asked: &EdgeRequest, timeout: Option<Duration>| {
        Python::attach(|py| call(py, &answer, asked, timeout))
    });
    answered(py, &args, false, Some(Callers { effects, functions, answer }))
}

fn call(
    py: Python<'_>,
    answer: &Py<PyAny>,
    asked: &EdgeRequest,
    timeout: Option<Duration>,
) -> Result<Value, EdgeFailure> {
    let failed = |error: PyErr| EdgeFailure::new(EdgeEnd::Killed, error.to_string());
    let args = asked.args.iter().map(|value| to_python(py, value)).collect::<PyResult<Vec<_>>>();
    let args = args.and_then(|args| PyList::new(py, args)).map_err(failed)?;
    let seconds = timeout.map(|timeout| timeout.as_secs_f64());
    let made = answer.bind(py).call1((&asked.call, args, asked.again, seconds)).map_err(failed)?;
    let (ended, value, stderr): Answered<'_> = made.extract().map_err(failed)?;
    if let Some(ended) = ended {
        let ended = EdgeEnd::from_word(&ended).unwrap_or(EdgeEnd::Killed);
        return Err(EdgeFailure { stderr, ..EdgeFailure::new(ended, value.to_string()) });
    }
    Reader::new(false).read(&value).map_err(|fault| match fault {
        Fault::Python(error) => failed(error),
        Fault::Value(fault) => {
            let place = if fault.path.is_empty() { "its result" } else { &fault.path };
            EdgeFailure::new(EdgeEnd::Unread, format!("{place}: {} cannot be recorded", fault.what))
        }
    })
}
