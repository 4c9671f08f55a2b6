//! Recording: a run that this process writes.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::Thread;

use dendrer::Repo;
use dendrer::Trace;
use dendrer::address::state_path;
use dendrer::lines::{LineNotes, Reply};
use dendrer::repo::new_run::Resume;
use dendrer::writer::{LaterReply, LineWriter, TakenLine, after_pause};
use dendrer_kernel::step::{Anomaly, ENDED_BY};
use dendrer_object::delta::Delta;
use dendrer_object::record::Record;
use dendrer_object::{Code, Pointer, Value};
use dendrer_view::problem::Problem;
use dendrer_view::{commit, quote};
use pyo3::prelude::*;

use crate::convert::{Fault, NativeValue, Reader};
use crate::gate::Gated;
use crate::problem;

/// A run that is recorded. Its lock is taken without the lock of the interpreter.
#[pyclass(frozen, module = "dendrer._native")]
pub(crate) struct NativeRecording {
    open: Arc<Gated<Open>>,
    /// The thread that writes lines out a moment after they came, until the recording is closed. Without it, lines are written out
    /// by those that follow and by a flush.
    writes_out: Option<Thread>,
    is_abandoned: AtomicBool,
    /// The name of the run.
    name: String,
}

impl Drop for NativeRecording {
    fn drop(&mut self) {
        // After a fork, what is open is the parent's.
        if !self.is_abandoned.load(Ordering::Relaxed) {
            if let Some(open) = self.open.enter().as_mut() {
                open.write_out();
            }
            self.signal();
        }
    }
}

struct Open {
    writer: LineWriter,
    repo: Repo,
    /// How many lines could not be written out, and why, until the caller is told.
    lost: Option<(u64, Problem)>,
    written: Written,
}

/// The last tick at which each place was written, as far as it was looked for.
#[derive(Default)]
struct Written {
    ticks: BTreeMap<Pointer, u64>,
    upto: u64,
}

impl Written {
    /// The last tick at which something was written at, above or below a place.
    fn last(&mut self, trace: &Trace, place: &Pointer) -> Result<Option<u64>, dendrer::Error> {
        let ticks = &mut self.ticks;
        trace.for_each(self.upto + 1, trace.tip(), &mut |tick, record| {
            let delta = record.delta();
            ticks.extend(delta.iter().flat_map(Delta::paths).map(|path| (path.clone(), tick)));
            ControlFlow::Continue(())
        })?;
        self.upto = trace.tip();
        let met = self.ticks.iter().filter(|(path, _)| path.overlaps(place));
        Ok(met.map(|(_, tick)| *tick).max())
    }
}

impl Open {
    /// Writes out the lines that wait. What could not be written is told with the next line.
    fn write_out(&mut self) {
        let waiting = self.writer.waiting() as u64;
        let written = self.writer.write_out();
        self.count_failed();
        if let Err(error) = written {
            self.lost = Some((waiting, Problem::from(error)));
        }
    }

    /// Counts the lines that failed since, of those that were judged later than they came.
    fn count_failed(&mut self) {
        if let Some((count, error)) = self.writer.take_failed() {
            let before = self.lost.take();
            self.lost = Some(match before {
                Some((lines, problem)) => (lines + count, problem),
                None => (count, Problem::from(error)),
            });
        }
    }

    /// Takes a line, of the user if `is_user`.
    fn take(&mut self, line: &Value, is_user: bool, may_wait: bool) -> Result<TakenLine, Problem> {
        self.tell()?;
        let waiting = self.writer.waiting() as u64;
        if waiting == 0 {
            self.is_there()?;
        }
        let taken = match (may_wait, is_user) {
            (true, _) => self.writer.take_later(line, is_user),
            (false, true) => self.writer.take_of_user(line).map(TakenLine::Judged),
            (false, false) => self.writer.take(line).map(TakenLine::Judged),
        };
        self.count_failed();
        // Lines that waited are lost with the one that was to be written out with them.
        let lost = if self.writer.waiting() == 0 { waiting } else { 0 };
        taken.map_err(|error| match lost {
            0 => Problem::from(error),
            lost => Problem::from(error).at("lines", lost.to_string()),
        })
    }

    /// Fails if the store was removed: what is written then is in no file that is found again.
    fn is_there(&self) -> Result<(), Problem> {
        match self.repo.dir() {
            Some(dir) if !dir.join("store.json").exists() => {
                let what = format!("the store at {} was removed", dir.display());
                Err(Problem::new(Code::E0801, what).note("nothing was recorded"))
            }
            _ => Ok(()),
        }
    }

    /// Fails if lines could not be written out since. The line that comes with it is not taken.
    fn tell(&mut self) -> Result<(), Problem> {
        match self.lost.take() {
            Some((lines, problem)) => Err(problem.at("lines", lines.to_string()).at("before", "true")),
            None => Ok(()),
        }
    }
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

/// The reply to a line that is judged with those after it.
#[pyclass(frozen, module = "dendrer._native")]
pub(crate) struct NativeLater {
    reply: LaterReply,
    open: Weak<Gated<Open>>,
}

/// The answer of a recording to a line.
#[derive(IntoPyObject)]
pub(crate) enum NativeTaken {
    Told(NativeReply),
    Later(NativeLater),
}

#[pymethods]
impl NativeLater {
    /// The reply, for which the lines that wait are judged, and whether it is final: until the line is written out it may become
    /// another. `None` if the recording ended without it.
    fn told(&self, py: Python<'_>) -> Option<(NativeReply, bool)> {
        py.detach(|| {
            if self.reply.get().is_none()
                && let Some(gated) = self.open.upgrade()
                && let Some(open) = gated.enter().as_mut()
            {
                open.writer.judge_waiting();
                open.count_failed();
            }
            self.reply.get().map(|(reply, is_final)| (told(&reply), is_final))
        })
    }
}

#[pymethods]
impl NativeRecording {
    /// Opens the run that the arguments of `commit` name. `resume` is true to continue it, false to begin a run, which may get
    /// another name, and `None` to continue it or begin it.
    #[new]
    #[pyo3(signature = (args, state, sync, resume))]
    fn new(
        py: Python<'_>,
        args: Vec<String>,
        state: Option<&Bound<'_, PyAny>>,
        sync: u64,
        resume: Option<bool>,
    ) -> PyResult<Self> {
        let resume = match resume {
            None => Resume::Auto,
            Some(true) => Resume::Must,
            Some(false) => Resume::Never,
        };
        let state = state.map(|state| read(py, state, false).map(|(value, _)| value)).transpose()?;
        let opened = py.detach(|| {
            let recorded = dendrer_cli::record(&args, state, resume)?;
            let writer = LineWriter::new(recorded.recorder, recorded.reading, sync)?;
            Ok::<_, Problem>(Open { writer, repo: recorded.repo, lost: None, written: Written::default() })
        });
        let opened = opened.map_err(|error| problem::of(py, error))?;
        let name = opened.writer.head().run().to_string();
        let open = Arc::new(Gated::new(opened));
        let weak = Arc::downgrade(&open);
        let write_out = move || {
            let Some(gated) = weak.upgrade() else { return false };
            gated.enter().as_mut().map(Open::write_out).is_some()
        };
        let writes_out = if sync > 1 { after_pause(write_out) } else { None };
        Ok(NativeRecording { open, writes_out, is_abandoned: AtomicBool::new(false), name })
    }

    /// The name of the run.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Takes a line; of the user if `is_user`. A value without a form becomes a gap if `keeps_gaps`.
    /// A line is judged when it comes, or with those after it if `keeps_gaps` and no other line depends on its outcome.
    #[pyo3(signature = (line, keeps_gaps, is_user=false))]
    fn take(
        &self,
        py: Python<'_>,
        line: &Bound<'_, PyAny>,
        keeps_gaps: bool,
        is_user: bool,
    ) -> PyResult<NativeTaken> {
        let (value, gaps) = read(py, line, keeps_gaps)?;
        self.with(py, |open| {
            let taken = open.take(&value, is_user, keeps_gaps && gaps.is_empty())?;
            if open.writer.is_waiting() {
                self.signal();
            }
            Ok(match taken {
                TakenLine::Judged(reply) => NativeTaken::Told(NativeReply { gaps, ..told(&reply) }),
                TakenLine::Later(reply) => {
                    NativeTaken::Later(NativeLater { reply, open: Arc::downgrade(&self.open) })
                }
            })
        })
    }

    /// Puts a gap on record: lines that could not be recorded.
    fn note_gap(&self, py: Python<'_>, lines: u64, code: &str, reason: &str) -> PyResult<()> {
        let about = Value::record([
            ("code", Value::from(code)),
            ("lines", Value::from(lines)),
            ("text", Value::from(reason)),
        ]);
        self.note(py, "recording_gap", about)
    }

    /// Puts on record that an exception ended the run: its type and its text.
    fn note_end(&self, py: Python<'_>, type_name: &str, message: &str) -> PyResult<()> {
        let about = Value::record([("type", Value::from(type_name)), ("message", Value::from(message))]);
        self.note(py, ENDED_BY, about)
    }

    /// The id of the transition that wrote a place last; `None` if none did.
    fn last_write(&self, py: Python<'_>, path: &str) -> PyResult<Option<String>> {
        let path = state_path(path).map_err(|error| problem::of(py, error))?;
        self.with(py, |open| {
            open.writer.write_out()?;
            let trace = open.repo.run(open.writer.head().run())?;
            let tick = open.written.last(&trace, &path)?;
            Ok(tick.map(|tick| trace.record(tick)).transpose()?.map(|last| last.id().to_string()))
        })
    }

    /// The stage at which the contract of the run is enforced.
    fn stage(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |open| Ok(open.writer.head().stage() as u64))
    }

    /// Writes out the lines that wait. The next line fails if some are lost.
    fn write_out(&self, py: Python<'_>) {
        py.detach(|| self.open.enter().as_mut().map(Open::write_out));
    }

    /// Makes everything durable, and returns the newest tick.
    fn flush(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |open| {
            open.write_out();
            open.tell()?;
            Ok(open.writer.flush()?)
        })
    }

    /// The last tick of the run as this process knows it.
    fn head(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |open| {
            open.writer.judge_waiting();
            open.count_failed();
            Ok(open.writer.head().tick())
        })
    }

    /// Makes everything durable, signs the log and closes the store. Once more it does nothing.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let ended = py.detach(|| {
            let Some(mut open) = self.open.enter().take() else { return Ok(()) };
            self.signal();
            open.write_out();
            let Open { mut writer, repo, lost, .. } = open;
            let flushed = writer.flush();
            drop(writer);
            let closed = repo.close();
            flushed?;
            closed?;
            lost.map_or(Ok(()), |(lines, problem)| Err(problem.at("lines", lines.to_string())))
        });
        ended.map_err(|error| problem::of(py, error))
    }

    /// Before a fork: waits until no thread records, and keeps others from it. What was recorded before is in the log before what the
    /// child records.
    fn hold(&self, py: Python<'_>) {
        py.detach(|| {
            self.open.hold();
            self.open.held(|open| open.write_out());
        });
    }

    /// Behind a fork, in the parent: lets threads record again.
    fn release(&self) {
        self.open.release();
    }

    /// Behind a fork, in the child: the parent records on, and what it has open is not to be closed here.
    /// No lock is touched: another thread of the parent may have held it when the process forked.
    fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Relaxed);
        std::mem::forget(Arc::clone(&self.open));
    }
}

impl NativeRecording {
    /// Puts an anomaly on record that the recording program saw.
    fn note(&self, py: Python<'_>, kind: &str, about: Value) -> PyResult<()> {
        let anomaly = Anomaly { kind: kind.into(), about, agent: None };
        self.with(py, |open| Ok(open.writer.note(&anomaly)?))
    }

    /// Runs `f` on the open recording, without the lock of the interpreter.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        f: impl FnOnce(&mut Open) -> Result<T, Problem> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| self.open.enter().as_mut().ok_or_else(closed).and_then(f));
        done.map_err(|error| problem::of(py, error))
    }

    /// Signals that lines wait, or that the recording is closed.
    fn signal(&self) {
        if let Some(thread) = &self.writes_out {
            thread.unpark();
        }
    }
}

fn closed() -> Problem {
    Problem::new(Code::E0106, "the recording is closed").note("nothing was recorded; open the run again")
}

/// Reads a value now that is recorded later. What has no form becomes a gap if `keeps_gaps`.
#[pyfunction]
pub(crate) fn as_it_is(py: Python<'_>, value: &Bound<'_, PyAny>, keeps_gaps: bool) -> PyResult<NativeValue> {
    let mut reader = Reader::new(keeps_gaps);
    match reader.read(value) {
        Ok(value) => Ok(NativeValue { value, gaps: reader.gaps }),
        Err(Fault::Value(fault)) => Err(problem::not_recordable(py, &fault)),
        Err(Fault::Python(error)) => Err(error),
    }
}

/// A value of Python and the gaps in it.
type Line = (Value, Vec<(String, &'static str, String)>);

fn read(py: Python<'_>, value: &Bound<'_, PyAny>, keeps_gaps: bool) -> PyResult<Line> {
    let NativeValue { value, gaps } = as_it_is(py, value, keeps_gaps)?;
    Ok((value, gaps.into_iter().map(|gap| (gap.path, gap.reason, gap.what)).collect()))
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
        Reply::Committed { record, noted, notes, .. }
            if noted.is_empty() && *notes == LineNotes::default() && !says_more(record) =>
        {
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
