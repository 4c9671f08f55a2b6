//! Threads of checkpoints: the step and the node of each put and write, and what it adds to a log.
//!
//! The index reads records on both sides of the one that is asked for, as far as it has to: a checkpoint is of the nodes of
//! the tasks whose writes name its parent, and a framework puts both in any order. Reads no state and no vault.
//!
//! Rule: a place depends on records alone, never on the range that is listed; test
//! `a_place_is_the_same_from_any_tick`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_object::delta::Action;
use dendrer_object::record::Record;
use dendrer_object::{Pointer, Value, tag};

use crate::error::Error;
use crate::run::thread::{
    AGENT, BRANCH, CHECKPOINT, ERROR, INTERRUPT, RESUME, START, TASKS, WRITES, agent_of, is_internal,
    is_of_thread, node_of, node_of_task, thread_of,
};
use crate::run::trace::Trace;

/// How far a framework that puts in the background may leave the order of the graph, in ticks.
const SLACK: u64 = 64;

/// How many records are read at once.
const CHUNK: u64 = 256;

/// A namespace and the id of a checkpoint.
type CheckpointPlace = (Arc<str>, Arc<str>);

/// The part of a thread that a record is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ThreadPart {
    /// A checkpoint.
    Checkpoint,
    /// The interrupts of a task: what each asks.
    Interrupt(Vec<Value>),
    /// The answer to an interrupt.
    Answer(Value),
    /// The failure of a task.
    Error(Value),
    /// Writes of a task whose values the next checkpoint has, each with its channel.
    Writes(Vec<(String, Value)>),
}

/// A put or a write, as its graph has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadPlace {
    /// The part.
    pub part: ThreadPart,
    /// The step that a checkpoint ends, or that a write is of; `None` if the record of the checkpoint is missing.
    pub step: Option<i64>,
    /// The nodes, each after the nodes around it: of a checkpoint those of the step, of a write its own.
    pub nodes: Vec<String>,
    /// The namespace, with the ids of its tasks.
    pub namespace: Arc<str>,
    /// The source that the metadata of a checkpoint states: `input`, `loop`, `update` or `fork`.
    pub source: Option<Arc<str>>,
    /// The nodes that follow a checkpoint; `None` for a write, and if the changes of the checkpoint were erased.
    pub next: Option<Vec<String>>,
}

impl ThreadPlace {
    /// The nodes in one text.
    pub fn node(&self) -> String {
        self.nodes.join(", ")
    }

    /// Whether a log leaves it to the checkpoint that has its values.
    pub fn is_folded(&self) -> bool {
        matches!(self.part, ThreadPart::Writes(_))
    }
}

/// Returns the namespace and the channel of a place of the state; `None` for any other place, and for a channel of the
/// framework, which holds no value of the graph.
pub fn channel_of(path: &Pointer) -> Option<(String, String)> {
    let tokens: Vec<_> = path.tokens().collect();
    let found = match tokens.as_slice() {
        [first, channel] if *first == "values" => (String::new(), tag::user_name(channel).to_owned()),
        [first, namespace, channel] if *first == "subgraphs" => {
            (tag::user_name(namespace).to_owned(), tag::user_name(channel).to_owned())
        }
        _ => return None,
    };
    (!is_internal(&found.1)).then_some(found)
}

/// A checkpoint of a thread.
#[derive(Debug, Clone)]
pub(crate) struct IndexedCheckpoint {
    pub(crate) tick: u64,
    pub(crate) parent: Option<Arc<str>>,
    pub(crate) step: Option<i64>,
    pub(crate) source: Option<Arc<str>>,
    /// The checkpoints of the namespaces around it, outermost first.
    pub(crate) around: Vec<CheckpointPlace>,
    /// The nodes of the tasks that it asks for.
    sends: Vec<Arc<str>>,
}

/// The writes of a task.
#[derive(Debug, Clone)]
struct IndexedTask {
    path: Arc<str>,
    /// The node, if it is on record as the agent.
    agent: Option<Arc<str>>,
    is_answer: bool,
}

/// The checkpoints and tasks of a thread, as far as they were read.
#[derive(Debug)]
pub struct ThreadIndex<'t> {
    trace: &'t Trace,
    name: Arc<str>,
    /// The first and the last tick that were read; nothing was if the first is greater.
    read: (u64, u64),
    checkpoints: BTreeMap<CheckpointPlace, IndexedCheckpoint>,
    tasks: BTreeMap<CheckpointPlace, Vec<IndexedTask>>,
}

fn text(value: &Value, name: &str) -> Option<Arc<str>> {
    value.get(name)?.as_str().map(Arc::from)
}

/// Returns the name of the thread that a run is of; `None` for any other run, also for one whose `meta` names a thread and that
/// no saver wrote.
pub fn thread_name(trace: &Trace) -> Option<Arc<str>> {
    // A saver begins every run of a thread, so the first transition decides. One that cannot be read is an error of the question.
    let is_of_saver = |record: Record| is_of_thread(&record);
    thread_of(trace.start()).filter(|_| trace.record(1).is_ok_and(is_of_saver))
}

impl<'t> ThreadIndex<'t> {
    /// Begins the index of a run; `None` if it is no thread.
    pub fn of(trace: &'t Trace) -> Option<ThreadIndex<'t>> {
        let name = thread_name(trace)?;
        let (checkpoints, tasks) = (BTreeMap::new(), BTreeMap::new());
        Some(ThreadIndex { trace, name, read: (1, 0), checkpoints, tasks })
    }

    /// The name of the thread.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// The run.
    pub(crate) fn trace(&self) -> &'t Trace {
        self.trace
    }

    /// Returns the place of a record of the run; `None` if it is no put and no write.
    ///
    /// # Errors
    ///
    /// An error if the records around it cannot be read.
    pub fn place(&mut self, record: &Record) -> Result<Option<ThreadPlace>, Error> {
        if !is_of_thread(record) {
            return Ok(None);
        }
        let tick = record.header().tick.unwrap_or(0);
        let body = record.body();
        if let Some(about) = body.value(&format!("/intent/{CHECKPOINT}")) {
            let Some((namespace, found)) = checkpoint(record, &about) else { return Ok(None) };
            let before = found.parent.clone().or_else(|| text(&about, "id")).unwrap_or_default();
            self.reach(tick, &(Arc::clone(&namespace), before))?;
            let nodes = self.nodes(&namespace, &found);
            let (step, source) = (found.step, found.source);
            let next = next(record);
            return Ok(Some(ThreadPlace {
                part: ThreadPart::Checkpoint,
                step,
                nodes,
                namespace,
                source,
                next,
            }));
        }
        let Some(about) = body.value(&format!("/intent/{WRITES}")) else { return Ok(None) };
        let Some((place, task)) = task(record, &about) else { return Ok(None) };
        self.reach(tick, &place)?;
        let values = values(record);
        let part = self.part(&place, &task, &values);
        let nodes = match &part {
            ThreadPart::Answer(_) => vec![agent_of(&place.0, "(answer)")],
            _ => vec![self.node(&place, &task).unwrap_or_else(|| agent_of(&place.0, "(input)"))],
        };
        let step =
            self.checkpoints.get(&place).and_then(|found| found.step).map(|step| step.saturating_add(1));
        Ok(Some(ThreadPlace { part, step, nodes, namespace: place.0, source: None, next: None }))
    }

    /// Lists every node of the run, as places name it.
    ///
    /// # Errors
    ///
    /// An error if the run cannot be read.
    pub fn all_nodes(&mut self) -> Result<BTreeSet<String>, Error> {
        let mut found = BTreeSet::new();
        for tick in 1..=self.trace.tip() {
            let record = self.trace.record(tick)?;
            found.extend(self.place(&record)?.into_iter().flat_map(|place| place.nodes));
        }
        Ok(found)
    }

    /// The checkpoints that were read.
    pub(crate) fn checkpoints(&self) -> &BTreeMap<CheckpointPlace, IndexedCheckpoint> {
        &self.checkpoints
    }

    /// Reads a range of ticks.
    fn read(&mut self, from: u64, to: u64) -> Result<(), Error> {
        let (from, to) = (from.max(1), to.min(self.trace.tip()));
        let (first, last) = self.read;
        if first > last {
            self.take(from, to)?;
            self.read = (from, to);
            return Ok(());
        }
        if from < first {
            self.take(from, first - 1)?;
        }
        if to > last {
            self.take(last + 1, to)?;
        }
        self.read = (first.min(from), last.max(to));
        Ok(())
    }

    /// Reads the records around a tick, back to a checkpoint.
    pub(crate) fn reach(&mut self, tick: u64, place: &CheckpointPlace) -> Result<(), Error> {
        let (first, last) = self.read;
        let is_known = first <= last && first <= tick && tick <= last;
        let from = if is_known { first } else { tick.saturating_sub(SLACK) };
        if !is_known || last < (tick + SLACK).min(self.trace.tip()) {
            self.read(from, tick + CHUNK)?;
        }
        while !self.checkpoints.contains_key(place) && self.read.0 > 1 {
            self.read(self.read.0.saturating_sub(CHUNK), self.read.1)?;
        }
        // Writes may be on record before their checkpoint.
        if let Some(found) = self.checkpoints.get(place) {
            let from = found.tick.saturating_sub(SLACK);
            if from.max(1) < self.read.0 {
                self.read(from, self.read.1)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, from: u64, to: u64) -> Result<(), Error> {
        let (checkpoints, tasks) = (&mut self.checkpoints, &mut self.tasks);
        self.trace.for_each(from, to, &mut |_, record| {
            if !is_of_thread(&record) {
                return ControlFlow::Continue(());
            }
            let about = |name: &str| record.body().value(&format!("/intent/{name}"));
            if let Some(about) = about(CHECKPOINT) {
                if let (Some((namespace, found)), Some(id)) =
                    (checkpoint(&record, &about), text(&about, "id"))
                {
                    checkpoints.insert((namespace, id), found);
                }
            } else if let Some(about) = about(WRITES)
                && let Some((place, task)) = task(&record, &about)
            {
                tasks.entry(place).or_default().push(task);
            }
            ControlFlow::Continue(())
        })
    }

    /// The nodes of a checkpoint: of its source, or of the tasks that wrote to its parent.
    fn nodes(&self, namespace: &Arc<str>, found: &IndexedCheckpoint) -> Vec<String> {
        match found.source.as_deref() {
            Some(source @ ("input" | "update" | "fork")) => {
                return vec![agent_of(namespace, &format!("({source})"))];
            }
            _ => {}
        }
        let place = found.parent.as_ref().map(|parent| (Arc::clone(namespace), Arc::clone(parent)));
        let tasks = place.as_ref().and_then(|place| self.tasks.get(place)).into_iter().flatten();
        let nodes: BTreeSet<String> = tasks.filter_map(|task| self.node(place.as_ref()?, task)).collect();
        nodes.into_iter().collect()
    }

    /// The node of a task; `None` for what is written from outside of the graph.
    fn node(&self, place: &CheckpointPlace, task: &IndexedTask) -> Option<String> {
        if task.path.is_empty() {
            return None;
        }
        if task.path.split_once(", ").is_some_and(|(_, name)| name.starts_with(START)) {
            return Some(agent_of(&place.0, "(start)"));
        }
        if let Some(agent) = &task.agent {
            return Some(named(agent.to_string()));
        }
        let sends = self.checkpoints.get(place).map_or(&[][..], |found| &found.sends);
        Some(match node_of(&task.path, sends) {
            Some(node) => named(agent_of(&place.0, &node)),
            None => agent_of(&place.0, "(task)"),
        })
    }

    fn part(&self, place: &CheckpointPlace, task: &IndexedTask, values: &[(String, Value)]) -> ThreadPart {
        let of = |channel: &str| values.iter().find(|(name, _)| name == channel).map(|(_, value)| value);
        if let Some(error) = of(ERROR) {
            return ThreadPart::Error(error.clone());
        }
        if let Some(asked) = of(INTERRUPT) {
            let each = |one: &Value| one.get("value").unwrap_or(one).clone();
            return ThreadPart::Interrupt(match asked.as_array() {
                Some(list) => list.iter().map(each).collect(),
                None => vec![each(asked)],
            });
        }
        match of(RESUME) {
            Some(answer) if task.path.is_empty() => ThreadPart::Answer(answer.clone()),
            // An answer by the id of its interrupt is on record in the writes of the task alone.
            Some(answers) if !self.is_answered(place) => {
                let last = answers.as_array().and_then(|list| list.get(list.len().checked_sub(1)?));
                ThreadPart::Answer(last.unwrap_or(answers).clone())
            }
            _ => ThreadPart::Writes(values.to_vec()),
        }
    }

    /// Whether an answer for a checkpoint, or for one around it, is on record by itself.
    fn is_answered(&self, place: &CheckpointPlace) -> bool {
        let around = self.checkpoints.get(place).map_or(&[][..], |found| &found.around);
        let mut tasks =
            std::iter::once(place).chain(around).filter_map(|place| self.tasks.get(place)).flatten();
        tasks.any(|task| task.is_answer)
    }
}

/// Quotes the name of a node that would pass for a word of ours, such as `(answer)`.
fn named(node: String) -> String {
    let is_in_brackets =
        node.rsplit('/').next().is_some_and(|last| last.starts_with('(') && last.ends_with(')'));
    if is_in_brackets { format!("\"{node}\"") } else { node }
}

/// Reads a put: its namespace, and the checkpoint.
fn checkpoint(record: &Record, about: &Value) -> Option<(Arc<str>, IndexedCheckpoint)> {
    let metadata = record.body().value("/intent/metadata").unwrap_or(Value::Null);
    let step = metadata.get("step").and_then(|step| step.as_number()?.as_i64());
    let parents = metadata.get("parents").and_then(Value::as_object);
    let around = parents.into_iter().flat_map(|parents| parents.iter());
    let around = around.filter_map(|(name, id)| Some((tag::user_name(name).into(), id.as_str()?.into())));
    let found = IndexedCheckpoint {
        tick: record.header().tick.unwrap_or(0),
        parent: text(about, "parent"),
        step,
        source: text(&metadata, "source"),
        around: around.collect(),
        sends: sends(record),
    };
    Some((text(about, "ns")?, found))
}

/// Lists the nodes of the tasks that a put asks for.
fn sends(record: &Record) -> Vec<Arc<str>> {
    let delta = record.delta().unwrap_or_default();
    let of_tasks = |path: &Pointer| path.tokens().last().is_some_and(|last| tag::user_name(&last) == TASKS);
    let values =
        delta.0.into_iter().filter(|op| of_tasks(&op.path)).filter_map(|op| Some((op.action, op.value?)));
    let tasks = values.flat_map(|(action, value)| match (action, value) {
        (Action::Set, Value::Array(list)) => list.iter().cloned().collect(),
        (_, value) => vec![value],
    });
    tasks.map(|task| node_of_task(&task).unwrap_or_default()).collect()
}

/// Reads the writes of a task: the checkpoint that they name, and the task.
fn task(record: &Record, about: &Value) -> Option<(CheckpointPlace, IndexedTask)> {
    let agent = record.body().value("/agent_id").and_then(|agent| agent.as_str().map(Arc::from));
    let path = text(about, "path")?;
    let items = about.get("items").and_then(Value::as_array);
    let mut items = items.into_iter().flat_map(|items| items.iter());
    let has_answer = items.any(|item| item.get("channel").and_then(Value::as_str) == Some(RESUME));
    let task = IndexedTask {
        is_answer: has_answer && path.is_empty(),
        path,
        agent: agent.filter(|agent: &Arc<str>| **agent != *AGENT),
    };
    Some(((text(about, "ns")?, text(about, "checkpoint")?), task))
}

/// Lists what a task wrote, each with its channel; nothing if it was erased.
fn values(record: &Record) -> Vec<(String, Value)> {
    let values = record.body().value("/intent/values");
    let list = values.as_ref().and_then(Value::as_array).into_iter().flat_map(|list| list.iter());
    let one = |one: &Value| Some((one.get("channel")?.as_str()?.to_owned(), one.get("value")?.clone()));
    list.filter_map(one).collect()
}

/// Lists the nodes that follow a put, by the channels that lead to them.
fn next(record: &Record) -> Option<Vec<String>> {
    let delta = record.delta()?;
    let mut nodes = BTreeSet::new();
    for op in delta.0.iter().filter(|op| op.action == Action::Set) {
        let Some(last) = op.path.tokens().last().map(|last| tag::user_name(&last).to_owned()) else {
            continue;
        };
        match last.strip_prefix(BRANCH).and_then(|rest| rest.strip_prefix("to:")) {
            Some(node) => _ = nodes.insert(node.to_owned()),
            None if last == START => _ = nodes.insert(START.to_owned()),
            None => nodes.extend(joined(&last, op.value.as_ref())),
        }
    }
    nodes.extend(sends(record).iter().filter(|node| !node.is_empty()).map(ToString::to_string));
    Some(nodes.into_iter().collect())
}

/// The node that a channel leads to which waits for several nodes, if all of them are there.
fn joined(channel: &str, value: Option<&Value>) -> Option<String> {
    let (from, to) = channel.strip_prefix("join:")?.rsplit_once(':')?;
    let there: Vec<&str> = value?.as_array()?.iter().filter_map(Value::as_str).collect();
    from.split('+').all(|node| there.contains(&node)).then(|| to.to_owned())
}
