//! The recorded origin of a transition: its author, the records it names, the run and the log that contain it.

use dendrer_object::note::Checkpoint;
use dendrer_object::record::{Record, Rel};
use dendrer_object::{Digest, RunName, Value};
use dendrer_store::Store;

use crate::{Error, Trace};

/// A record that another record links to, with its run and tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedRecord {
    /// The run that contains it.
    pub run: RunName,
    /// Its tick.
    pub tick: u64,
    /// Its type.
    pub type_name: Option<String>,
    /// Its agent, as recorded.
    pub agent: Option<String>,
}

/// Everything on record about the origin of a transition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provenance {
    /// The author.
    pub author: String,
    /// The agent, as recorded.
    pub agent: Option<String>,
    /// The number in the branch of the agent.
    pub seq: Option<u64>,
    /// The run.
    pub run: String,
    /// The stage that the run was recorded at.
    pub stage: Option<u64>,
    /// The reducer of the run.
    pub reducer: Option<String>,
    /// The digest of the pack.
    pub pack: Option<Digest>,
    /// The position in the log, from zero; `None` if the log does not contain the record.
    pub position: Option<u64>,
    /// How many records the log has.
    pub log: u64,
    /// Whether the newest checkpoint covers the record.
    pub signed: bool,
    /// The links of the record: relation, id, and the record if it is on a chain here.
    pub links: Vec<(Rel, Digest, Option<LinkedRecord>)>,
}

/// Finds the chain record with an id; `None` if the store does not have it, or it has no tick.
pub fn linked_record(store: &dyn Store, id: &Digest) -> Result<Option<LinkedRecord>, Error> {
    let Some(position) = store.find(id)? else { return Ok(None) };
    let Some(record) = store.get(position)? else { return Ok(None) };
    let header = record.header();
    let (Some(run), Some(tick)) = (header.run.clone(), header.tick) else { return Ok(None) };
    let agent = record.body().value("/agent_id");
    Ok(Some(LinkedRecord {
        run,
        tick,
        type_name: header.type_name.as_ref().map(|name| name.to_string()),
        agent: agent.and_then(|agent| agent.as_str().map(str::to_owned)),
    }))
}

/// Collects what is on record about the origin of a transition of a run.
pub fn provenance(trace: &Trace, record: &Record) -> Result<Provenance, Error> {
    let store = trace.store();
    let header = record.header();
    let content = record.content();
    let start = trace.start().content();
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let position = store.find(&record.id())?;
    // A checkpoint that cannot be read signs nothing; `verify` reports what is wrong with it.
    let note = store.checkpoint().ok().flatten();
    let signed = note.and_then(|note| Checkpoint::parse(note.text()).ok()).map_or(0, |note| note.size());
    let links =
        header.links.iter().map(|link| Ok((link.rel, link.hash, linked_record(&**store, &link.hash)?)));
    Ok(Provenance {
        author: header.author.to_string(),
        agent: text(&content, "agent_id"),
        seq: content.get("seq").and_then(Value::as_u64),
        run: header.run.as_ref().map_or_else(|| trace.name().to_string(), RunName::to_string),
        stage: start.get("stage").and_then(Value::as_u64),
        reducer: text(&start, "reducer"),
        pack: header.pack,
        position,
        log: store.tree().size,
        signed: position.is_some_and(|position| position < signed),
        links: links.collect::<Result<_, Error>>()?,
    })
}
