//! Where a transition comes from: whose it is, what it names, which run and log hold it. Recorded facts only.

use dendrer::store::Store;
use dendrer::{Error, Trace};
use dendrer_object::note::Checkpoint;
use dendrer_object::record::{Record, Rel};
use dendrer_object::{Digest, RunName, Value};

use crate::{quote, thousands};

/// A record that another one names, where it is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The run whose it is.
    pub run: RunName,
    /// Its tick.
    pub tick: u64,
    /// Its type.
    pub type_name: Option<String>,
    /// Its agent, as recorded.
    pub agent: Option<String>,
}

/// Everything that is on record of where a transition comes from.
#[derive(Debug, Clone)]
pub struct Provenance {
    author: String,
    agent: Option<String>,
    seq: Option<u64>,
    run: String,
    stage: Option<u64>,
    reducer: Option<String>,
    pack: Option<Digest>,
    position: Option<u64>,
    log: u64,
    signed: bool,
    links: Vec<(Rel, Digest, Option<Place>)>,
}

/// Finds the chain record with an id; `None` if it is not here, or has no tick.
pub fn place(store: &dyn Store, id: &Digest) -> Result<Option<Place>, Error> {
    let Some(position) = store.find(id)? else { return Ok(None) };
    let Some(record) = store.get(position)? else { return Ok(None) };
    let header = record.header();
    let (Some(run), Some(tick)) = (header.run.clone(), header.tick) else { return Ok(None) };
    let agent = record.body().value("/agent_id");
    Ok(Some(Place {
        run,
        tick,
        type_name: header.type_name.as_ref().map(|name| name.to_string()),
        agent: agent.and_then(|agent| agent.as_str().map(str::to_owned)),
    }))
}

/// Collects what is on record of a transition of a run.
pub fn find(trace: &Trace, record: &Record) -> Result<Provenance, Error> {
    let store = trace.store();
    let header = record.header();
    let content = record.content();
    let start = trace.start().content();
    let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let position = store.find(&record.id())?;
    // A checkpoint that cannot be read signs nothing; `verify` says what is wrong with it.
    let note = store.checkpoint().ok().flatten();
    let signed = note.and_then(|note| Checkpoint::parse(note.text()).ok()).map_or(0, |note| note.size());
    let links = header.links.iter().map(|link| Ok((link.rel, link.hash, place(&**store, &link.hash)?)));
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

impl Provenance {
    /// Writes one fact a line.
    pub fn lines(&self) -> Vec<String> {
        let agent = self.agent.as_deref().map_or_else(|| "-".to_owned(), quote::escape);
        let seq = self.seq.map(|seq| format!(", number {seq} of its branch")).unwrap_or_default();
        let mut lines = vec![format!("author       {}", self.author), format!("agent        {agent}{seq}")];
        for (rel, hash, place) in &self.links {
            let rel = rel.as_str();
            lines.push(match place {
                Some(place) => format!(
                    "{rel:<11}  {}@{}  {}  {}  hash {}",
                    place.run,
                    place.tick,
                    place.type_name.as_deref().unwrap_or("-"),
                    place.agent.as_deref().map_or_else(|| "-".to_owned(), quote::escape),
                    hash.short()
                ),
                None => format!("{rel:<11}  {}, which is not on a chain here", hash.short()),
            });
        }
        let stage = self.stage.map(|stage| format!(", recorded at stage {stage}")).unwrap_or_default();
        let reducer = self.reducer.as_deref().map(|name| format!(", reducer {}", quote::escape(name)));
        lines.push(format!("run          {}{stage}{}", self.run, reducer.unwrap_or_default()));
        if let Some(pack) = self.pack {
            lines.push(format!("pack         {}", pack.short()));
        }
        if let Some(position) = self.position {
            let signed = if self.signed { "signed" } else { "not signed yet" };
            lines.push(format!(
                "log          record {} of {}, {signed}",
                thousands(position + 1),
                thousands(self.log)
            ));
        }
        lines
    }

    /// Returns the facts as a member of `dendrer.show/1`.
    pub fn to_json(&self) -> Value {
        let links = self.links.iter().map(|(rel, hash, place)| {
            let place = place.as_ref();
            Value::record([
                ("rel", Value::from(rel.as_str())),
                ("hash", Value::from(*hash)),
                ("run", Value::from(place.map(|place| place.run.to_string()))),
                ("tick", Value::from(place.map(|place| place.tick))),
                ("type", Value::from(place.and_then(|place| place.type_name.clone()))),
                ("agent", Value::from(place.and_then(|place| place.agent.clone()))),
            ])
        });
        Value::record([
            ("author", Value::from(self.author.as_str())),
            ("agent", Value::from(self.agent.clone())),
            ("seq", Value::from(self.seq)),
            ("run", Value::from(self.run.as_str())),
            ("stage", Value::from(self.stage)),
            ("reducer", Value::from(self.reducer.clone())),
            ("pack", Value::from(self.pack)),
            ("position", Value::from(self.position)),
            ("log", Value::from(self.log)),
            ("signed", Value::from(self.signed)),
            ("links", Value::array(links)),
        ])
    }
}
