//! Threads of a database as runs, recorded by the saver of this crate.
//!
//! [`plan_thread`] gives a thread to a saver over a store in memory, so that whatever the kernel refuses is found before anything is
//! recorded; [`record_thread`] gives it to one over a store. Both get the same calls. Rule: a transition is made by
//! [`Checkpoints`] alone, as when a graph runs with it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer::checkpoint::{CheckpointError, Checkpoints, Decode as _};
use dendrer::kernel::step::{Stage, Start};
use dendrer::redact::RedactionProfile;
use dendrer::run::trace::all_runs;
use dendrer::run::unfinished;
use dendrer::store::prelude::*;
use dendrer::store::{RunSummary, Store};
use dendrer::{Repo, Trace};
use dendrer_object::record::{Kind, Record};
use dendrer_object::{Code, Digest, MESSAGES, RunName, Value};

use super::found::Accounted;
use super::note::{ImportNote, NoteKind};
use super::{FIRST, ImportError, ImportTally, OnGap};
use crate::langgraph::LangGraph;
use crate::langgraph::database::{Database, ThreadRows};
use crate::langgraph::puts::{self, Put};

/// The name and version under which a run remembers that it is a thread of a database.
const KIND: &str = "langgraph/1";

/// Words of `may` in a note.
const MAY: [&[&str]; 8] = [
    &["calls"],
    &["failures"],
    &["usage"],
    &["calls", "failures"],
    &["calls", "usage"],
    &["failures", "usage"],
    &["calls", "failures", "usage"],
    &[],
];

/// How a thread is to be recorded.
#[derive(Debug, Clone)]
pub struct ThreadOptions {
    /// The name of its run; made from the thread if not given. The thread has this name, too, in the store.
    pub run: Option<RunName>,
    /// The name of the file.
    pub name: String,
    /// The goal of the run.
    pub goal: Option<Arc<str>>,
    /// The handling of gaps.
    pub on_gap: OnGap,
    /// The profile by which the store takes secrets out.
    pub profile: RedactionProfile,
}

/// The run that an import of a thread would record.
#[derive(Debug)]
pub struct ThreadPlan {
    /// The run.
    pub run: RunName,
    /// The counts.
    pub tally: ImportTally,
    /// SHA-256 over the rows of the thread.
    pub sha256: Digest,
    /// The size of the values of its rows.
    pub bytes: u64,
    /// Its other runs: forks, and second first checkpoints.
    pub others: Vec<RunName>,
    /// The thread under which the saver knows it.
    thread: Arc<str>,
    start: Start,
}

/// The runs of a thread that was recorded.
#[derive(Debug)]
pub struct RecordedThread {
    /// The last record of its first run.
    pub tip: Digest,
    /// Its other runs.
    pub others: Vec<RunName>,
}

/// The number of calls of a saver that are on record in the runs of a thread. The marker of a fork is not counted.
fn own_ticks(repo: &Repo, run: &RunName, others: &[RunName]) -> Result<u64, ImportError> {
    let store = repo.writer()?;
    let mut ticks = 0;
    for name in std::iter::once(run).chain(others) {
        let summary = store.run(name).map_err(dendrer::Error::from)?;
        let marker = |found: &RunSummary| u64::from(found.parent.is_some());
        ticks += summary.map_or(0, |found| found.transitions.saturating_sub(marker(&found)));
    }
    Ok(ticks)
}

/// Reads a thread and returns the run that would be recorded.
pub fn plan_thread(
    database: &Database,
    thread: &ThreadRows,
    options: &ThreadOptions,
) -> Result<ThreadPlan, ImportError> {
    let (sha256, bytes) = database.digest(thread)?;
    let repo = Repo::in_memory(options.profile)?;
    let redactor = repo.redactor(None)?;
    let name: Arc<str> =
        options.run.as_ref().map_or_else(|| Arc::clone(&thread.id), |run| run.as_str().into());
    let (checkpoints, writes) = thread.counts();
    let source = Value::record([
        ("bytes", Value::from(bytes)),
        ("checkpoints", Value::from(checkpoints)),
        ("kind", Value::from(KIND)),
        ("name", Value::from(redactor.text(&options.name).0)),
        ("sha256", Value::from(sha256)),
        ("thread", Value::from(redactor.text(&thread.id).0)),
        ("writes", Value::from(writes)),
    ]);
    let start = Start {
        stage: Some(Stage::Observe),
        goal: options.goal.clone(),
        inputs: Some(Value::record([("source", source)])),
        ..Start::new("thread".parse().expect("a run id"))
    };
    let mut saver = Checkpoints::open(repo.clone(), Box::new(LangGraph))?.starting(start.clone());
    let mut places = BTreeMap::new();
    puts::each(database, thread, &name, &mut |put| {
        count_places(&put, &mut places);
        give(&mut saver, &put).map_err(|error| of_saver(error, &put))
    })?;
    database.confirm()?;
    for (column, count) in database.others() {
        places.insert(column.clone(), Accounted { not_read: *count, ..Accounted::default() });
    }
    let mut runs = saver.runs_of(&name).map_err(failed)?.into_iter();
    let run = runs.next().ok_or_else(|| ImportError::unfit("the thread has no rows"))?;
    let others: Vec<RunName> = runs.collect();
    let mut tally = ImportTally { places, ..ImportTally::default() };
    count_run(&repo, &run, true, &mut tally)?;
    for other in &others {
        count_run(&repo, other, false, &mut tally)?;
    }
    if options.on_gap == OnGap::Stop
        && let Some((_, note)) = tally.first_notes.iter().find(|(_, note)| note.kind.is_gap())
    {
        return Err(ImportError::Gap(note.clone()));
    }
    // Known after the thread was given to a saver once.
    let (mut start, ticks) = (start, own_ticks(&repo, &run, &others)?);
    if let Some(Value::Object(inputs)) = &mut start.inputs
        && let Some(Value::Object(mut source)) = inputs.get("source").cloned()
    {
        source.set(unfinished::TICKS, Value::from(ticks));
        inputs.set("source", Value::Object(source));
    }
    Ok(ThreadPlan { run, tally, sha256, bytes, others, thread: name, start })
}

/// Records what was planned. `settled` hears of each transition that is durable.
pub fn record_thread(
    repo: &Repo,
    database: &Database,
    thread: &ThreadRows,
    plan: &ThreadPlan,
    settled: &mut dyn FnMut(u64),
) -> Result<RecordedThread, ImportError> {
    let mut saver = Checkpoints::open(repo.clone(), Box::new(LangGraph))?.starting(plan.start.clone());
    // Calls of an import of the same rows that was stopped are on record; any other run of the thread is another one.
    let mut known = saver.runs_of(&plan.thread).map_err(failed)?.into_iter();
    let mut there = match known.next() {
        None => 0,
        Some(run) if plan.is_stopped(&*repo.reader()?, &run)? => {
            own_ticks(repo, &run, &known.collect::<Vec<_>>())?
        }
        Some(run) => return Err(ImportError::Exists(run)),
    };
    puts::each(database, thread, &plan.thread, &mut |put| {
        if there > 0 {
            there -= 1;
            return Ok(());
        }
        give(&mut saver, &put).map_err(|error| of_saver(error, &put))?;
        settled(1);
        Ok(())
    })?;
    database.confirm()?;
    let others = saver.runs_of(&plan.thread).map_err(failed)?.into_iter().skip(1).collect();
    let trace = Trace::open(repo.writer()?, &plan.run)?;
    Ok(RecordedThread { tip: trace.record(trace.tip())?.id(), others })
}

impl ThreadPlan {
    /// Whether a run is that of an import of the same rows which was stopped.
    fn is_stopped(&self, store: &dyn Store, run: &RunName) -> Result<bool, ImportError> {
        let Some(summary) = store.run(run).map_err(dendrer::Error::from)? else { return Ok(false) };
        let begin = store.get(summary.begin).map_err(dendrer::Error::from)?;
        let is_same = begin.is_some_and(|begin| begin.body().value("/inputs") == self.start.inputs);
        Ok(is_same && unfinished::of_run(store, &summary)?.is_some())
    }

    /// Refuses a thread that is in the store already, unless it is imported `again`: with the same rows, or as it was before it
    /// went on. A run that has its name is never written to.
    pub fn check_new(&self, store: &dyn Store, again: bool) -> Result<(), ImportError> {
        let own = source_of(self.start.inputs.as_ref());
        let mut before = None;
        for run in all_runs(store)? {
            if run.parent.is_some() || again {
                continue;
            }
            let Some(begin) = store.get(run.begin).map_err(dendrer::Error::from)? else { continue };
            let source = source_of(begin.body().value("/inputs").as_ref());
            if source[0] != own[0] || source[0].is_none() {
                continue;
            }
            if source[1] == own[1] {
                if run.name == self.run && self.is_stopped(store, &run.name)? {
                    return Ok(());
                }
                let there = run.transitions;
                return Err(ImportError::Twin {
                    run: run.name,
                    there,
                    all: self.tally.ticks,
                    sha256: self.sha256,
                });
            }
            if source[2..] == own[2..] {
                before = Some(run.name);
            }
        }
        if let Some(run) = before {
            return Err(ImportError::WentOn { run, thread: self.thread.to_string() });
        }
        for name in std::iter::once(&self.run).chain(&self.others) {
            if store.run(name).map_err(dendrer::Error::from)?.is_some() {
                return Err(ImportError::Exists(name.clone()));
            }
        }
        Ok(())
    }
}

/// Kind, digest, name and thread of the source of a run.
fn source_of(inputs: Option<&Value>) -> [Option<Value>; 4] {
    let source = inputs.and_then(|inputs| inputs.get("source"));
    ["kind", "sha256", "name", "thread"].map(|name| source.and_then(|source| source.get(name).cloned()))
}

fn give(saver: &mut Checkpoints, put: &Put) -> Result<(), CheckpointError> {
    match put {
        Put::Checkpoint(put) => saver.put(put),
        Put::Writes(put) => saver.put_writes(put),
    }
}

/// Counts what is read of a call, by place.
fn count_places(put: &Put, places: &mut BTreeMap<String, Accounted>) {
    let mut count = |place: String, is_read: bool, may: &'static [&'static str]| {
        let one = places.entry(place).or_default();
        match is_read {
            true => one.read += 1,
            false => (one.not_read, one.may) = (one.not_read + 1, may),
        }
    };
    match put {
        Put::Checkpoint(put) => {
            count("checkpoints/metadata".into(), LangGraph.whole(&put.metadata).is_some(), &[]);
            count("checkpoints/checkpoint".into(), LangGraph.whole(&put.checkpoint).is_some(), MAY[6]);
            for channel in &put.channels {
                let is_read = channel.value.as_ref().is_none_or(|value| LangGraph.whole(value).is_some());
                count(format!("checkpoints/checkpoint/channel_values/{}", channel.name), is_read, MAY[6]);
            }
        }
        Put::Writes(put) => {
            for item in &put.items {
                count(format!("writes/{}", item.channel), LangGraph.whole(&item.value).is_some(), MAY[6]);
            }
        }
    }
}

/// Counts a run as the saver recorded it.
fn count_run(repo: &Repo, run: &RunName, is_first: bool, tally: &mut ImportTally) -> Result<(), ImportError> {
    let trace = Trace::open(repo.writer()?, run)?;
    let from = trace.begins().last().and_then(|begin| begin.header().tick).unwrap_or(0) + 1;
    trace.for_each(from, trace.tip(), &mut |tick, record| {
        if record.header().kind == Kind::Transition {
            count_record(tick, &record, is_first, tally);
        }
        ControlFlow::Continue(())
    })?;
    Ok(())
}

fn count_record(tick: u64, record: &Record, is_first: bool, tally: &mut ImportTally) {
    let (header, body) = (record.header(), record.body());
    let notes = body.value("/anomalies");
    for note in notes.as_ref().and_then(Value::as_array).into_iter().flat_map(|list| list.iter()) {
        if let Some(note) = read_note(note) {
            tally.note(tick, &note);
        }
    }
    if !is_first {
        return;
    }
    tally.ticks += 1;
    if let Some(name) = &header.type_name {
        *tally.types.entry(name.as_str().to_owned()).or_default() += 1;
    }
    if let Some(agent) = body.value("/agent_id").as_ref().and_then(Value::as_str) {
        *tally.agents.entry(agent.into()).or_default() += 1;
    }
    let messages = body.value(&format!("/{MESSAGES}"));
    for message in messages.as_ref().and_then(Value::as_array).into_iter().flat_map(|list| list.iter()) {
        tally.calls += message.get("calls").and_then(Value::as_array).map_or(0, |calls| calls.len() as u64);
        if let Some(result) = message.get("result") {
            tally.paired += 1;
            tally.errors += u64::from(result.get("status").and_then(Value::as_str) == Some("error"));
        }
    }
    if tick <= FIRST {
        tally.first.push((tick, record.clone()));
    }
}

/// A note of the saver, as one of an import.
fn read_note(note: &Value) -> Option<ImportNote> {
    let kind = note.get("kind").and_then(Value::as_str)?;
    let path = note.get("path").and_then(Value::as_str).unwrap_or_default();
    let (kind, text) = match kind {
        "parent_missing" => {
            (NoteKind::ParentMissing, "the parent, or the checkpoint of a write, is not in the database")
        }
        "parent_cycle" => (NoteKind::ParentCycle, "the parents of this checkpoint make a circle"),
        "message_unreadable" => (NoteKind::MessageUnreadable, "the bytes here cannot be read"),
        "not_read" => {
            let words = note.get("may").and_then(Value::as_array);
            let words: Vec<&str> =
                words.into_iter().flat_map(|words| words.iter()).filter_map(Value::as_str).collect();
            let may = MAY.into_iter().find(|may| *may == words).unwrap_or(MAY[6]);
            return Some(ImportNote::not_read(path, may, "a value that is no message may state this"));
        }
        _ => return None,
    };
    Some(ImportNote::new(kind, path, text))
}

/// An error of the saver at a call.
fn of_saver(error: CheckpointError, put: &Put) -> ImportError {
    let at = match put {
        Put::Checkpoint(put) => format!("/checkpoints/{}/{}", put.namespace, put.id),
        Put::Writes(put) => format!("/writes/{}/{}/{}", put.namespace, put.id, put.task),
    };
    match error {
        CheckpointError::Refused { .. }
        | CheckpointError::Edited { .. }
        | CheckpointError::NoValue { .. } => ImportError::refused(error.code(), error.to_string(), at),
        other => failed(other),
    }
}

fn failed(error: CheckpointError) -> ImportError {
    match error {
        CheckpointError::Vault(error) => ImportError::Vault(error),
        CheckpointError::Failed(error) => ImportError::Repository(*error),
        other => ImportError::refused(Code::E0407, other.to_string(), ""),
    }
}
