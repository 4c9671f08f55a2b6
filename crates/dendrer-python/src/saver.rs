//! Checkpoints of LangGraph: bytes in, bytes out.

use std::sync::Arc;

use dendrer::care::erase::ErasePlace;
use dendrer::checkpoint::{
    ChannelPut, CheckpointError, CheckpointFound, CheckpointKey, CheckpointPut, Checkpoints, TypedBytes,
    WritePut, WritesPut,
};
use dendrer::repo::{Mode, Repo};
use dendrer_object::Code;
use dendrer_view::problem::{Problem, ShownProblem as _};
use dendrer_wire::langgraph::LangGraph;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::gate::Gated;
use crate::problem;
use crate::reading;

/// The threads of a store.
#[pyclass(frozen, module = "dendrer._native")]
pub(crate) struct NativeSaver(Arc<Gated<Checkpoints>>);

/// Bytes with the name of what wrote them, as Python has them.
type Typed<'py> = (String, Bound<'py, PyBytes>);

/// A checkpoint, as Python has it: thread, namespace, id, parent, checkpoint, metadata, channels and writes.
type Found<'py> = (
    String,
    String,
    String,
    Option<String>,
    Typed<'py>,
    Typed<'py>,
    Vec<(String, Typed<'py>)>,
    Vec<(String, String, Typed<'py>)>,
);

fn typed(value: &Typed<'_>) -> TypedBytes {
    TypedBytes { tag: value.0.as_str().into(), bytes: value.1.as_bytes().into() }
}

fn to_python<'py>(py: Python<'py>, value: &TypedBytes) -> Typed<'py> {
    (value.tag.to_string(), PyBytes::new(py, &value.bytes))
}

fn found<'py>(py: Python<'py>, found: &CheckpointFound) -> Found<'py> {
    let text = |text: &Arc<str>| text.to_string();
    (
        text(&found.thread),
        text(&found.namespace),
        text(&found.id),
        found.parent.as_ref().map(text),
        to_python(py, &found.checkpoint),
        to_python(py, &found.metadata),
        found.channels.iter().map(|(name, value)| (text(name), to_python(py, value))).collect(),
        found
            .writes
            .iter()
            .map(|(task, channel, value)| (text(task), text(channel), to_python(py, value)))
            .collect(),
    )
}

fn shared(text: Option<String>) -> Option<Arc<str>> {
    text.map(Arc::from)
}

fn texts(list: Vec<String>) -> Vec<Arc<str>> {
    list.into_iter().map(Arc::from).collect()
}

/// Checkpoints of the namespaces around another one, by namespace and id.
fn pairs(list: Vec<(String, String)>) -> Vec<(Arc<str>, Arc<str>)> {
    list.into_iter().map(|(namespace, id)| (namespace.into(), id.into())).collect()
}

/// A place that a deletion left: its run, its tick and its field.
type Left = (String, u64, String);

fn left(places: Vec<ErasePlace>) -> Vec<Left> {
    let named = |place: ErasePlace| Some((place.run?.to_string(), place.at?.tick()?, place.place.dotted()));
    places.into_iter().filter_map(named).collect()
}

/// What an error is, beyond its code.
enum Failed {
    Problem(Box<Problem>),
    /// Two checkpoints: the one that was to be followed, and the last one; that one alone if it was deleted.
    Stale(Box<Problem>, Vec<String>),
    Superseded(Box<Problem>),
}

impl<E: Into<Problem>> From<E> for Failed {
    fn from(error: E) -> Failed {
        Failed::Problem(Box::new(error.into()))
    }
}

fn of_checkpoint(error: CheckpointError) -> Failed {
    let problem = Problem::new(error.code(), error.to_string());
    match error {
        CheckpointError::Failed(error) => Failed::Problem(Box::new((*error).into())),
        CheckpointError::Stale { parent, head, .. } => {
            let problem = problem
                .note("nothing was put; read the thread again, or ask for the older checkpoint by its id to fork from it");
            Failed::Stale(Box::new(problem), vec![parent.to_string(), head.to_string()])
        }
        CheckpointError::Deleted { id, .. } => {
            let problem =
                problem.note("nothing was put; the thread begins again with a put without a parent");
            Failed::Stale(Box::new(problem), vec![id.to_string()])
        }
        CheckpointError::Superseded { .. } => {
            Failed::Superseded(Box::new(problem.note("nothing was put; claim the thread again to write it")))
        }
        _ => Failed::Problem(Box::new(problem)),
    }
}

fn raised(py: Python<'_>, failed: Failed) -> PyErr {
    let (problem, name, heads) = match failed {
        Failed::Problem(problem) => return problem::of(py, *problem),
        Failed::Stale(problem, heads) => (problem, "stale_checkpoint", heads),
        Failed::Superseded(problem) => (problem, "superseded", Vec::new()),
    };
    let document = dendrer_view::quote::json(&problem.to_json());
    let lines = problem.text(None);
    let made =
        py.import("dendrer._errors").and_then(|module| module.call_method1(name, (document, lines, heads)));
    made.map_or_else(|error| error, PyErr::from_value)
}

impl NativeSaver {
    fn call<T: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut Checkpoints) -> Result<T, CheckpointError> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| {
            let mut inside = self.0.enter();
            let Some(checkpoints) = inside.as_mut() else {
                return Err(Problem::new(Code::E0106, "the saver is closed").into());
            };
            f(checkpoints).map_err(of_checkpoint)
        });
        done.map_err(|failed| raised(py, failed))
    }
}

#[pymethods]
impl NativeSaver {
    /// Opens the store at a place.
    #[new]
    #[pyo3(signature = (path, key=None))]
    fn new(py: Python<'_>, path: std::path::PathBuf, key: Option<String>) -> PyResult<Self> {
        let opened = py.detach(|| {
            let dir = reading::directory(&path)?;
            let repo = Repo::open(&dir, dendrer_cli::trust(key.as_deref()), Mode::Write)?;
            repo.check_writer()?;
            Ok::<_, Problem>(Checkpoints::open(repo, Box::new(LangGraph))?)
        });
        Ok(NativeSaver(Arc::new(Gated::new(opened.map_err(|error| problem::of(py, error))?))))
    }

    /// Names the channels of which a checkpoint has to bring the value.
    fn missing(
        &self,
        py: Python<'_>,
        thread: String,
        namespace: String,
        parent: Option<String>,
        versions: Vec<(String, String)>,
    ) -> PyResult<Vec<String>> {
        let versions: Vec<_> =
            versions.into_iter().map(|(name, version)| (name.into(), version.into())).collect();
        let thread = thread.into();
        let missing = self.call(py, |all| all.missing(&thread, &namespace, parent.as_deref(), &versions))?;
        Ok(missing.iter().map(ToString::to_string).collect())
    }

    /// Puts a checkpoint.
    #[expect(clippy::too_many_arguments, reason = "one call for each checkpoint, from one place")]
    fn put(
        &self,
        py: Python<'_>,
        thread: String,
        namespace: String,
        parent: Option<String>,
        id: String,
        checkpoint: Typed<'_>,
        metadata: Typed<'_>,
        made_by: Option<String>,
        channels: Vec<(String, String, Option<Typed<'_>>)>,
        may_fork: bool,
        claim: Option<String>,
        around: Vec<(String, String)>,
        addressed: Option<String>,
    ) -> PyResult<()> {
        let channels = channels.iter().map(|(name, version, value)| ChannelPut {
            name: name.as_str().into(),
            version: version.as_str().into(),
            value: value.as_ref().map(typed),
        });
        let put = CheckpointPut {
            thread: thread.into(),
            namespace: namespace.into(),
            parent: shared(parent),
            id: id.into(),
            checkpoint: typed(&checkpoint),
            metadata: typed(&metadata),
            made_by: shared(made_by),
            channels: channels.collect(),
            may_fork,
            claim: shared(claim),
            noted: Vec::new(),
        };
        let around = pairs(around);
        self.call(py, |all| all.put_below(&put, &around, addressed.as_deref()))
    }

    /// Puts writes of a task.
    #[expect(clippy::too_many_arguments, reason = "one call for each task, from one place")]
    fn put_writes(
        &self,
        py: Python<'_>,
        thread: String,
        namespace: String,
        id: String,
        task: String,
        path: String,
        items: Vec<(i64, String, Typed<'_>)>,
        replaces: bool,
        claim: Option<String>,
        around: Vec<(String, String)>,
    ) -> PyResult<()> {
        let items = items.iter().map(|(index, channel, value)| WritePut {
            index: *index,
            channel: channel.as_str().into(),
            value: typed(value),
        });
        let put = WritesPut {
            thread: thread.into(),
            namespace: namespace.into(),
            id: id.into(),
            task: task.into(),
            path: path.into(),
            items: items.collect(),
            replaces,
            claim: shared(claim),
            noted: Vec::new(),
        };
        let around = pairs(around);
        self.call(py, |all| all.put_writes_below(&put, &around))
    }

    /// Reads a checkpoint, or the newest.
    fn get<'py>(
        &self,
        py: Python<'py>,
        thread: String,
        namespace: String,
        id: Option<String>,
    ) -> PyResult<Option<Found<'py>>> {
        let thread = thread.into();
        let read = self.call(py, |all| all.get(&thread, &namespace, id.as_deref()))?;
        Ok(read.map(|read| found(py, &read)))
    }

    /// Lists checkpoints, newest first, as thread, namespace and id.
    fn list(
        &self,
        py: Python<'_>,
        thread: Option<String>,
        namespace: Option<String>,
        id: Option<String>,
        before: Option<String>,
    ) -> PyResult<Vec<(String, String, String)>> {
        let thread = shared(thread);
        let keys = self.call(py, |all| {
            all.list(thread.as_ref(), namespace.as_deref(), id.as_deref(), before.as_deref())
        })?;
        let plain =
            |key: CheckpointKey| (key.thread.to_string(), key.namespace.to_string(), key.id.to_string());
        Ok(keys.into_iter().map(plain).collect())
    }

    /// The runs of a thread, oldest first.
    fn runs_of(&self, py: Python<'_>, thread: String) -> PyResult<Vec<String>> {
        let thread = thread.into();
        let runs = self.call(py, |all| all.runs_of(&thread))?;
        Ok(runs.iter().map(ToString::to_string).collect())
    }

    /// The threads of the store.
    fn threads(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let threads = self.call(py, Checkpoints::threads)?;
        Ok(threads.iter().map(ToString::to_string).collect())
    }

    fn delete_thread(&self, py: Python<'_>, thread: String) -> PyResult<Vec<Left>> {
        let thread = thread.into();
        self.call(py, |all| all.delete_thread(&thread)).map(left)
    }

    fn delete_made_by(&self, py: Python<'_>, made_by: Vec<String>) -> PyResult<Vec<Left>> {
        let made_by = texts(made_by);
        self.call(py, |all| all.delete_made_by(&made_by)).map(left)
    }

    fn copy_thread(&self, py: Python<'_>, from: String, to: String) -> PyResult<()> {
        let (from, to) = (from.into(), to.into());
        self.call(py, |all| all.copy_thread(&from, &to))
    }

    /// Removes every checkpoint of a thread but some, by namespace and id.
    fn keep_only(&self, py: Python<'_>, thread: String, kept: Vec<(String, String)>) -> PyResult<Vec<Left>> {
        let thread: Arc<str> = thread.into();
        let kept: Vec<CheckpointKey> = kept
            .into_iter()
            .map(|(namespace, id)| CheckpointKey {
                thread: Arc::clone(&thread),
                namespace: namespace.into(),
                id: id.into(),
            })
            .collect();
        self.call(py, |all| all.keep_only(&thread, &kept)).map(left)
    }

    /// Claims a thread, and returns the claim.
    fn claim(&self, py: Python<'_>, thread: String) -> PyResult<String> {
        let thread = thread.into();
        Ok(self.call(py, |all| all.claim(&thread))?.to_string())
    }

    fn has_claim(&self, py: Python<'_>, thread: String, claim: String) -> PyResult<bool> {
        let thread = thread.into();
        self.call(py, |all| all.has_claim(&thread, &claim))
    }

    /// Signs the log and closes the store. Once more it does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let closed = py.detach(|| match self.0.enter().take() {
            Some(checkpoints) => checkpoints.close(),
            None => Ok(()),
        });
        closed.map_err(|error| problem::of(py, error))
    }

    fn hold(&self, py: Python<'_>) {
        py.detach(|| self.0.hold());
    }

    fn release(&self) {
        self.0.release();
    }

    fn abandon(&self) {
        std::mem::forget(Arc::clone(&self.0));
    }
}
