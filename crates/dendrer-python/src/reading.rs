//! Reading: stores, bundles and runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dendrer::Trace;
use dendrer::address::{Address, state_path};
use dendrer::ask::state::unknown_at;
use dendrer::repo::{Repo, locate};
use dendrer::source::{QuestionPlace, StoreDesk};
use dendrer::store::Store;
use dendrer::trust::Trust;
use dendrer_object::record::Record;
use dendrer_object::{Code, Value, json};
use dendrer_view::ask::ask;
use dendrer_view::problem::{Problem, ShownProblem};
use dendrer_view::quote;
use dendrer_view::show::content_json;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::convert::to_python;
use crate::problem;

/// A store or a bundle that is read.
#[pyclass(frozen, module = "dendrer._native")]
pub(crate) struct NativeStore {
    place: QuestionPlace,
    trust: Arc<dyn Trust>,
}

/// Exit code, document, and the problem as a document and as text.
type Answered<'py> = (u8, Bound<'py, PyBytes>, Option<(String, String)>);

/// A run as it was when it was opened.
#[pyclass(frozen, module = "dendrer._native")]
pub(crate) struct NativeTrace(Trace);

#[pymethods]
impl NativeStore {
    /// Opens a store by its directory, or by one below it, or a bundle.
    #[new]
    #[pyo3(signature = (path, key=None))]
    fn new(py: Python<'_>, path: PathBuf, key: Option<String>) -> PyResult<Self> {
        let trust = dendrer_cli::trust(key.as_deref());
        let opened = py.detach(|| {
            let path = if path.is_file() { path } else { directory(&path)? };
            // Questions open the files again, also after the program went to another directory.
            QuestionPlace::open(&std::path::absolute(&path).unwrap_or(path), &trust)
        });
        let place = opened.map_err(|error| problem::of(py, error))?;
        Ok(NativeStore { place, trust })
    }

    /// The directory of the store; `None` of a bundle.
    #[getter]
    fn dir(&self) -> Option<String> {
        match &self.place {
            QuestionPlace::Store(repo) => repo.dir().map(|dir| dir.display().to_string()),
            QuestionPlace::Bundle(_) => None,
        }
    }

    /// The names of all runs, in the order in which they began.
    fn names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let names = py.detach(|| {
            let runs = dendrer::trace::all_runs(&*self.reader()?)?;
            Ok::<_, Problem>(runs.into_iter().map(|run| run.name.to_string()).collect())
        });
        names.map_err(|error| problem::of(py, error))
    }

    /// Asks a question that is given as its document. Returns the exit code of the command that asks the same, the
    /// document of the answer, and the problem with which it ends, as a document and as text.
    fn ask<'py>(&self, py: Python<'py>, question: &str) -> PyResult<Answered<'py>> {
        let asked = py.detach(|| {
            let question = json::parse_door(question.as_bytes()).map_err(|error| {
                Problem::new(Code::E0106, format!("the question is no JSON: {}", error.kind))
            })?;
            ask(&question, &mut StoreDesk::new(&self.place, &self.trust))
        });
        let asked = asked.map_err(|error| {
            let error = match &self.place {
                QuestionPlace::Bundle(opened) => {
                    error.help_in(&opened.path.display().to_string(), &opened.runs)
                }
                QuestionPlace::Store(_) => error,
            };
            problem::of(py, error.help_of(self.dir().as_deref()))
        })?;
        let exit = asked.problem.as_ref().map_or(asked.exit, ShownProblem::exit);
        let problem = asked.problem.map(|problem| {
            let problem = problem.help_of(self.dir().as_deref());
            (quote::json(&problem.to_json()), problem.text(None))
        });
        Ok((exit, PyBytes::new(py, quote::json(&asked.document).as_bytes()), problem))
    }

    /// Opens a run as it is now.
    fn run(&self, py: Python<'_>, name: &str) -> PyResult<NativeTrace> {
        let trace = py.detach(|| {
            let address = Address::parse(name)?;
            let reader = self.reader()?;
            let address = address.resolve(&reader)?;
            let named: &[_] = match &self.place {
                QuestionPlace::Store(_) => &[],
                QuestionPlace::Bundle(opened) => &opened.runs,
            };
            Ok::<_, Problem>(address.trace_in(&reader, named)?)
        });
        trace.map(NativeTrace).map_err(|error| problem::of(py, error.help_of(self.dir().as_deref())))
    }
}

impl NativeStore {
    fn reader(&self) -> Result<Arc<dyn Store>, Problem> {
        match &self.place {
            QuestionPlace::Store(repo) => Ok(repo.reader()?),
            QuestionPlace::Bundle(opened) => Ok(Arc::clone(&opened.store)),
        }
    }
}

/// Finds the store of a path: the directory itself, or the nearest one above it.
pub(crate) fn directory(path: &Path) -> Result<PathBuf, Problem> {
    let Some(text) = path.to_str() else {
        return Err(Problem::new(Code::E0106, format!("the path {} is not UTF-8", path.display())));
    };
    let named = if text.is_empty() || text == "." { Err(()) } else { Ok(locate::named(text)?) };
    let here = std::env::current_dir()
        .map_err(|error| Problem::new(Code::E0801, format!("there is no current directory: {error}")));
    // What is opened stays where it is when the program goes to another directory.
    match named {
        Ok(dir) if dir.is_absolute() => Ok(dir),
        Ok(dir) => Ok(here?.join(dir)),
        Err(()) => Ok(Repo::find(&here?)?),
    }
}

#[pymethods]
impl NativeTrace {
    /// The name of the run.
    #[getter]
    fn name(&self) -> String {
        self.0.name().to_string()
    }

    /// The last tick.
    #[getter]
    fn tip(&self) -> u64 {
        self.0.tip()
    }

    /// The parent and the tick of the fork; `None` of a run that was not forked.
    #[getter]
    fn parent(&self) -> Option<(String, u64)> {
        let lineage = self.0.lineage();
        let (name, tick) = lineage.len().checked_sub(2).and_then(|at| lineage.get(at))?;
        Some((name.to_string(), *tick))
    }

    /// A transition as plain values.
    fn transition<'py>(&self, py: Python<'py>, tick: u64) -> PyResult<Bound<'py, PyDict>> {
        let record = py.detach(|| self.0.record(tick)).map_err(|error| problem::of(py, error))?;
        plain(py, &record)
    }

    /// Transitions from a tick on, at most so many.
    fn transitions<'py>(
        &self,
        py: Python<'py>,
        from: u64,
        count: usize,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let mut records = Vec::new();
        let read = py.detach(|| {
            let to = self.0.tip().min(from.saturating_add(count as u64).saturating_sub(1));
            self.0.for_each(from, to, &mut |_, record| {
                records.push(record.clone());
                std::ops::ControlFlow::Continue(())
            })
        });
        read.map_err(|error| problem::of(py, error))?;
        records.iter().map(|record| plain(py, record)).collect()
    }

    /// The state after a tick, or one place of it. The second value is false if nothing is at the place of the state, or if it is
    /// unknown.
    fn state<'py>(
        &self,
        py: Python<'py>,
        tick: u64,
        path: Option<&str>,
    ) -> PyResult<(Bound<'py, PyAny>, bool)> {
        let found = py.detach(|| {
            let state = self.0.state(tick)?;
            let Some(path) = path else { return Ok(Some(state)) };
            let place = state_path(path)?;
            if !unknown_at(&self.0, tick, &state, &place)?.is_empty() {
                return Ok(None);
            }
            Ok::<_, Problem>(place.get(&state).cloned())
        });
        match found.map_err(|error| problem::of(py, error))? {
            Some(value) => Ok((to_python(py, &value)?, true)),
            None => Ok((py.None().into_bound(py), false)),
        }
    }
}

fn plain<'py>(py: Python<'py>, record: &Record) -> PyResult<Bound<'py, PyDict>> {
    let header = record.header();
    let dict = PyDict::new(py);
    dict.set_item("tick", header.tick)?;
    dict.set_item("type", header.type_name.as_ref().map(ToString::to_string))?;
    dict.set_item("author", header.author.to_string())?;
    dict.set_item("ts", header.ts.to_string())?;
    dict.set_item("id", record.id().to_string())?;
    let content = content_json(record);
    if let Value::Object(members) = &content {
        for (name, member) in members.iter() {
            dict.set_item(&**name, to_python(py, member)?)?;
        }
    }
    Ok(dict)
}
