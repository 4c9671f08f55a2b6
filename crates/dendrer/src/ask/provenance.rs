//! The recorded origin of a transition: its author, the records it names, the run and the log that contain it.

use dendrer_object::note::Checkpoint;
use dendrer_object::record::{Record, Rel};
use dendrer_object::{Digest, Pointer, RunName, TypeName, Value};
use dendrer_store::Store;

use crate::error::Error;
use crate::run::trace::Trace;

/// How many transitions before or after a transition are looked at for the decision about it.
pub const DECISION_REACH: u64 = 1_000;

/// A decision of a policy about a transition (dendrer paper 5.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// The run of the record with the decision.
    pub run: RunName,
    /// The tick of the record with the decision: the transition itself, or a `policy.decision` about it.
    pub tick: u64,
    /// `allow`, `deny` or `escalate`.
    pub decision: String,
    /// The version of the policy, as recorded.
    pub version: Option<String>,
}

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
    /// The contract that the kernel held the transition to, like `acme.financial/v1`.
    pub contract: Option<String>,
    /// The decision about the transition, if one is found within [`DECISION_REACH`].
    pub decided: Option<Decided>,
    /// The names of the policy rules of the run, which the kernel judges.
    pub rules: Vec<String>,
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

/// Finds the decision about a transition: its own, one that it links to, one that names it or its cause as its own cause, or
/// the newest before it about its type.
pub fn decided(trace: &Trace, tick: u64, record: &Record) -> Result<Option<Decided>, Error> {
    if let Some(own) = decision_in(trace.name(), record) {
        return Ok(Some(own));
    }
    let causes =
        record.header().links.iter().filter(|link| matches!(link.rel, Rel::CausedBy | Rel::Evidence));
    let mut subjects = vec![(tick, record.id())];
    for link in causes {
        let Some(position) = trace.store().find(&link.hash)? else { continue };
        let Some(linked) = trace.store().get(position)? else { continue };
        let (Some(run), Some(at)) = (linked.header().run.clone(), linked.header().tick) else { continue };
        if let Some(found) = decision_in(&run, &linked) {
            return Ok(Some(found));
        }
        if link.rel == Rel::CausedBy && at < tick {
            subjects.push((at, link.hash));
        }
    }
    // What a decision is about is what caused it. It counts for what came after it; a request may be decided on later.
    for (from, id) in subjects {
        for after in from + 1..=trace.tip().min(from.saturating_add(DECISION_REACH)) {
            let record = trace.record(after)?;
            let is_about = |link: &dendrer_object::record::Link| link.rel == Rel::CausedBy && link.hash == id;
            if is_decision(&record) && record.header().links.iter().any(is_about) {
                let run = record.header().run.clone().unwrap_or_else(|| trace.name().clone());
                return Ok(decision_in(&run, &record));
            }
        }
    }
    let about = record.header().type_name.as_ref().map(TypeName::as_str);
    for before in (tick.saturating_sub(DECISION_REACH).max(1)..tick).rev() {
        let record = trace.record(before)?;
        if is_decision(&record) && said(&record, "transition_type").as_deref() == about {
            let run = record.header().run.clone().unwrap_or_else(|| trace.name().clone());
            return Ok(decision_in(&run, &record));
        }
    }
    Ok(None)
}

fn decision_in(run: &RunName, record: &Record) -> Option<Decided> {
    Some(Decided {
        run: run.clone(),
        tick: record.header().tick?,
        decision: said(record, "decision")?,
        version: said(record, "policy_version"),
    })
}

fn is_decision(record: &Record) -> bool {
    record.header().type_name.as_ref().is_some_and(|name| name.as_str() == "policy.decision")
}

fn said(record: &Record, name: &str) -> Option<String> {
    let policy = record.body().value("/policy")?;
    policy.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// Returns the names of the policy rules in force at the tip of a run. A fork without rules has its parent's.
fn rules(trace: &Trace) -> Vec<String> {
    let place = Pointer::of(["policy"]);
    let has_rules = |begin: &&Record| begin.body().fields().iter().any(|field| field.pointer == place);
    let rules = trace.begins().iter().rev().find(has_rules).and_then(|begin| begin.body().value("/policy"));
    let rules = rules.as_ref().and_then(Value::as_array).into_iter().flat_map(|rules| rules.iter());
    rules.filter_map(|rule| rule.get("id")?.as_str().map(str::to_owned)).collect()
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
        contract: content.get("context").and_then(|context| {
            Some(format!("{}/{}", text(context, "contract")?, text(context, "version")?))
        }),
        decided: header.tick.map_or(Ok(None), |tick| decided(trace, tick, record))?,
        rules: rules(trace),
        position,
        log: store.tree().size,
        signed: position.is_some_and(|position| position < signed),
        links: links.collect::<Result<_, Error>>()?,
    })
}
