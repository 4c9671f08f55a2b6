//! Recording: a run that this process writes.

use dendrer::Repo;
use dendrer::address::state_path;
use dendrer::ask::why::gather::{self, BacktrackQuestion};
use dendrer::lines::Reply;
use dendrer::writer::LineWriter;
use dendrer_kernel::step::Anomaly;
use dendrer_object::record::Record;
use dendrer_object::{Code, Value};
use dendrer_view::problem::Problem;
use dendrer_view::{commit, quote};
use pyo3::prelude::*;

use crate::convert::{Fault, Reader};
use crate::gate::Gated;
use crate::problem;

/// A run that is recorded. Its lock is taken without the lock of the interpreter.
#[pyclass(frozen, module = "dendrer._native")]
pub(crate) struct NativeRecording(Gated<Open>);

struct Open {
    writer: LineWriter,
    repo: Repo,
}

/// What became of a line, as plain values: what, tick, id, code, message, and the whole reply as a document.
#[pyclass(frozen, get_all, module = "dendrer._native")]
pub(crate) struct NativeReply {
    what: &'static str,
    tick: Option<u64>,
    id: Option<String>,
    code: Option<String>,
    document: Option<String>,
    /// The place and the word of a value that became a gap.
    gaps: Vec<(String, &'static str, String)>,
}

#[pymethods]
impl NativeRecording {
    /// Opens the run that the arguments of `commit` name.
    #[new]
    #[pyo3(signature = (args, state, sync))]
    fn new(py: Python<'_>, args: Vec<String>, state: Option<&Bound<'_, PyAny>>, sync: u64) -> PyResult<Self> {
        let state = state.map(|state| read(py, state, false).map(|(value, _)| value)).transpose()?;
        let opened = py.detach(|| {
            let recorded = dendrer_cli::record(&args, state)?;
            let writer = LineWriter::new(recorded.recorder, recorded.reading, sync)?;
            Ok::<_, Problem>(Open { writer, repo: recorded.repo })
        });
        Ok(NativeRecording(Gated::new(opened.map_err(|error| problem::of(py, error))?)))
    }

    /// Takes a line. What has no form becomes a gap if `keeps_gaps`.
    fn take(&self, py: Python<'_>, line: &Bound<'_, PyAny>, keeps_gaps: bool) -> PyResult<NativeReply> {
        let (value, gaps) = read(py, line, keeps_gaps)?;
        let taken = py.detach(|| {
            let mut inside = self.0.enter();
            let Some(open) = inside.as_mut() else { return Err(closed()) };
            let mut reply = told(&open.writer.take(&value)?);
            reply.gaps = gaps;
            Ok::<_, Problem>(reply)
        });
        taken.map_err(|error| problem::of(py, error))
    }

    /// Puts a gap on record: lines that could not be recorded.
    fn note_gap(&self, py: Python<'_>, lines: u64, code: &str, reason: &str) -> PyResult<()> {
        let about = Value::record([
            ("code", Value::from(code)),
            ("lines", Value::from(lines)),
            ("text", Value::from(reason)),
        ]);
        let noted = py.detach(|| {
            let anomaly = Anomaly { kind: "recording_gap".into(), about, agent: None };
            let mut inside = self.0.enter();
            let Some(open) = inside.as_mut() else { return Err(closed()) };
            Ok::<_, Problem>(open.writer.note(&anomaly)?)
        });
        noted.map_err(|error| problem::of(py, error))
    }

    /// The id of the transition that wrote a place last; `None` if none did.
    fn last_write(&self, py: Python<'_>, path: &str) -> PyResult<Option<String>> {
        let found = py.detach(|| {
            let path = state_path(path)?;
            let mut inside = self.0.enter();
            let Some(open) = inside.as_mut() else { return Err(closed()) };
            let trace = open.repo.run(open.writer.head().run())?;
            let question = BacktrackQuestion {
                path,
                from: 1,
                to: trace.tip(),
                agent: None,
                along: None,
                limit: 1,
                values: false,
                inputs: false,
            };
            let found = gather::backtrack(&trace, &question)?;
            let tick = found.and_then(|found| Some(found.writes.first()?.tick));
            Ok::<_, Problem>(
                tick.map(|tick| trace.record(tick)).transpose()?.map(|last| last.id().to_string()),
            )
        });
        found.map_err(|error| problem::of(py, error))
    }

    /// Makes everything durable, and returns the newest tick.
    fn flush(&self, py: Python<'_>) -> PyResult<u64> {
        let flushed = py.detach(|| {
            let mut inside = self.0.enter();
            let Some(open) = inside.as_mut() else { return Err(closed()) };
            Ok::<_, Problem>(open.writer.flush()?)
        });
        flushed.map_err(|error| problem::of(py, error))
    }

    /// The last tick of the run as this process knows it.
    fn head(&self, py: Python<'_>) -> PyResult<u64> {
        let head = py.detach(|| self.0.enter().as_ref().map(|open| open.writer.head().tick()));
        head.ok_or_else(|| problem::of(py, closed()))
    }

    /// Makes everything durable, signs the log and closes the store. Once more it does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let ended = py.detach(|| {
            let Some(Open { mut writer, repo }) = self.0.enter().take() else { return Ok(()) };
            let flushed = writer.flush();
            drop(writer);
            let closed = repo.close();
            flushed?;
            closed?;
            Ok::<_, Problem>(())
        });
        ended.map_err(|error| problem::of(py, error))
    }

    /// Before a fork: waits until no thread records, and keeps others from it.
    fn hold(&self, py: Python<'_>) {
        py.detach(|| self.0.hold());
    }

    /// Behind a fork, in the parent: lets threads record again.
    fn release(&self) {
        self.0.release();
    }

    /// Behind a fork, in the child: the parent records on, and what it has open is not to be closed here.
    fn abandon(&self) {
        self.0.abandon();
    }
}

fn closed() -> Problem {
    Problem::new(Code::E0106, "the recording is closed").note("nothing was recorded; open the run again")
}

/// A value of Python and the gaps in it.
type Line = (Value, Vec<(String, &'static str, String)>);

fn read(py: Python<'_>, value: &Bound<'_, PyAny>, keeps_gaps: bool) -> PyResult<Line> {
    let mut reader = Reader::new(keeps_gaps);
    match reader.read(value) {
        Ok(value) => {
            let gaps = reader.gaps.into_iter().map(|gap| (gap.path, gap.reason, gap.what));
            Ok((value, gaps.collect()))
        }
        Err(Fault::Value(fault)) => Err(problem::not_recordable(py, &fault)),
        Err(Fault::Python(error)) => Err(error),
    }
}

/// A reply in plain values. The document is made where it says more than what, tick and id.
fn told(reply: &Reply) -> NativeReply {
    let plain = |what, record: &Record| NativeReply {
        what,
        tick: record.header().tick,
        id: Some(record.id().to_string()),
        code: None,
        document: None,
        gaps: Vec::new(),
    };
    match reply {
        Reply::Committed { record, noted, .. } if noted.is_empty() && !says_more(record) => {
            plain("committed", record)
        }
        Reply::Repeated { record, .. } => plain("repeated", record),
        _ => {
            let document = commit::item(reply);
            let text = |name: &str| document.get(name).and_then(Value::as_str).map(str::to_owned);
            let what = match text("what").as_deref() {
                Some("committed") => "committed",
                Some("refused") => "refused",
                Some("stale") => "stale",
                Some("key_used") => "key_used",
                Some("begun") => "begun",
                _ => "failed",
            };
            let code = document.get("reason").and_then(|reason| reason.get("code"));
            NativeReply {
                what,
                tick: document.get("tick").and_then(Value::as_u64),
                id: text("id"),
                code: code.and_then(Value::as_str).map(str::to_owned),
                document: Some(quote::json(&document)),
                gaps: Vec::new(),
            }
        }
    }
}

/// Whether a transition notes something of itself.
fn says_more(record: &Record) -> bool {
    let fields = record.body().fields().iter();
    fields.map(|field| field.pointer.as_str()).any(|place| {
        ["/anomalies", "/violations", "/still_violated", "/step"].iter().any(|name| place.starts_with(name))
    })
}
