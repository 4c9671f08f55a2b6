//! The calls that a saver would have had for a thread of a database, with the bytes of the database.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer::checkpoint::{ChannelPut, CheckpointPut, Decode as _, TypedBytes, WritePut, WritesPut};
use dendrer_object::{Pointer, Value, json, tag};

use super::LangGraph;
use super::database::{Database, ThreadRows};
use super::order::{Call, CheckpointRow, Parent, order};
use super::parts::{self, Parts};
use crate::import::ImportError;
use crate::import::note::{ImportNote, NoteKind};

/// Meanings that bytes may have that cannot be read.
const ALL: &[&str] = &["calls", "failures", "usage"];

/// A call of a saver.
#[derive(Debug)]
pub(crate) enum Put {
    /// A checkpoint.
    Checkpoint(CheckpointPut),
    /// Writes of a task.
    Writes(WritesPut),
}

/// The checkpoint that was read last in each namespace: its id and its parts.
type Last = BTreeMap<Arc<str>, (Arc<str>, Option<Parts>)>;

/// Hands over the calls of a thread in their order, under another name of the thread.
pub(crate) fn each(
    database: &Database,
    thread: &ThreadRows,
    name: &Arc<str>,
    visit: &mut dyn FnMut(Put) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let mut last = Last::default();
    for call in order(&thread.checkpoints, &thread.writes) {
        visit(match call {
            Call::Checkpoint(at, parent) => {
                let row = &thread.checkpoints[at];
                Put::Checkpoint(checkpoint(database, thread, row, parent, name, &mut last)?)
            }
            Call::Writes(group, is_lost) => Put::Writes(writes(database, thread, &group, is_lost, name)?),
        })?;
    }
    Ok(())
}

fn checkpoint(
    database: &Database,
    thread: &ThreadRows,
    row: &CheckpointRow,
    parent: Parent,
    name: &Arc<str>,
    last: &mut Last,
) -> Result<CheckpointPut, ImportError> {
    let [whole, metadata] = database.checkpoint(row.row)?;
    // A parent that follows is not there yet.
    let before = match parent {
        Parent::Known => parts_of(database, thread, row, last)?,
        Parent::Missing | Parent::Cycle => None,
    };
    let cut = parts::cut(&whole);
    let channels = cut.iter().flat_map(|parts| &parts.channels).map(|channel| {
        let known = before.iter().flat_map(|before| &before.channels).find(|one| one.name == channel.name);
        let is_same = known.is_some_and(|known| {
            known.version == channel.version
                && &*known.version != "null"
                && is_equal(&known.value, &channel.value)
        });
        ChannelPut {
            name: Arc::clone(&channel.name),
            version: Arc::clone(&channel.version),
            value: (!is_same).then(|| channel.value.clone()),
        }
    });
    let mut noted = Vec::new();
    let place = || Pointer::of(["checkpoints", &*row.namespace, &*row.id]);
    match parent {
        Parent::Known => {}
        Parent::Missing => noted.push(note(NoteKind::ParentMissing, &place())),
        Parent::Cycle => noted.push(note(NoteKind::ParentCycle, &place())),
    }
    if cut.is_none() {
        let place = match &*row.namespace {
            "" => Pointer::of(["values"]),
            namespace => Pointer::of(["subgraphs", &*tag::stored_name(namespace)]),
        };
        let note = ImportNote::new(NoteKind::MessageUnreadable, place, "");
        noted.push(note.with("may", Value::array(ALL.iter().map(|word| Value::from(*word)))).to_value());
    }
    let put = CheckpointPut {
        thread: Arc::clone(name),
        namespace: Arc::clone(&row.namespace),
        parent: row.parent.clone(),
        id: Arc::clone(&row.id),
        channels: channels.collect(),
        made_by: made_by(&metadata),
        checkpoint: cut.as_ref().map_or(whole, |parts| parts.own.clone()),
        metadata,
        // The saver of the database lets any checkpoint have children.
        may_fork: true,
        claim: None,
        noted,
    };
    last.insert(Arc::clone(&row.namespace), (Arc::clone(&row.id), cut));
    Ok(put)
}

/// The parts of the parent of a checkpoint.
fn parts_of(
    database: &Database,
    thread: &ThreadRows,
    row: &CheckpointRow,
    last: &Last,
) -> Result<Option<Parts>, ImportError> {
    let Some(parent) = &row.parent else { return Ok(None) };
    if let Some((id, parts)) = last.get(&row.namespace)
        && id == parent
    {
        return Ok(parts.clone());
    }
    // The rows of a thread are sorted by namespace and id.
    let at =
        thread.checkpoints.binary_search_by(|one| (&one.namespace, &one.id).cmp(&(&row.namespace, parent)));
    let Ok(at) = at else { return Ok(None) };
    let [whole, _] = database.checkpoint(thread.checkpoints[at].row)?;
    Ok(parts::cut(&whole))
}

/// Whether two values of one version are equal: a set has another order of bytes in each process.
fn is_equal(a: &TypedBytes, b: &TypedBytes) -> bool {
    a == b || LangGraph.whole(a).is_some_and(|a| LangGraph.whole(b) == Some(a))
}

fn note(kind: NoteKind, place: &Pointer) -> Value {
    ImportNote::new(kind, place, "").to_value()
}

/// The run of the framework that made a checkpoint, by its metadata.
fn made_by(metadata: &TypedBytes) -> Option<Arc<str>> {
    let metadata = LangGraph.whole(metadata)?;
    match metadata.get("run_id")? {
        Value::Null => None,
        Value::String(text) => Some(Arc::clone(text)),
        other => Some(json::to_string(other).into()),
    }
}

fn writes(
    database: &Database,
    thread: &ThreadRows,
    group: &[usize],
    is_lost: bool,
    name: &Arc<str>,
) -> Result<WritesPut, ImportError> {
    let first = &thread.writes[group[0]];
    let item = |at: &usize| {
        let row = &thread.writes[*at];
        Ok(WritePut { index: row.index, channel: Arc::clone(&row.channel), value: database.write(row.row)? })
    };
    let place = || Pointer::of(["writes", &*first.namespace, &*first.checkpoint]);
    Ok(WritesPut {
        thread: Arc::clone(name),
        namespace: Arc::clone(&first.namespace),
        id: Arc::clone(&first.checkpoint),
        task: Arc::clone(&first.task),
        path: Arc::clone(&first.path),
        items: group.iter().map(item).collect::<Result<_, ImportError>>()?,
        replaces: group.iter().all(|at| thread.writes[*at].index < 0),
        claim: None,
        noted: if is_lost { vec![note(NoteKind::ParentMissing, &place())] } else { Vec::new() },
    })
}
