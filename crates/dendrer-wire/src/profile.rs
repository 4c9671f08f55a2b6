//! The hashes of the source documents, made from our records on request and checked on request.
//!
//! They prove nothing: both leave fields uncovered and put no separators between what they join, so two different
//! texts can have one hash (design, section 3). What protects a record is its id. They are here so that a program that
//! was written from one of those documents can read a run and see for itself.
//!
//! * [`Profile::Paper`]: the events of the dendrer paper, appendix B, with the chain hash of 3.1. The payload is the
//!   canonical JSON of the event without `chain_hash`; the previous hash follows as 64 hex digits.
//! * [`Profile::Cfd`]: the trace nodes of CFD 1.1 with the hash of 1.2. `seq` is written in decimal, `schema_version` is
//!   [`CFD_VERSION`], `bundle` joins the sorted ids of the parents with commas, and a branch begins with an empty
//!   `prev_hash`.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use dendrer::{Error, Trace};
use dendrer_object::record::{Record, Rel};
use dendrer_object::{Digest, Value, json};

use crate::event::Writer;

/// The version of the node schema that CFD hashes name.
pub const CFD_VERSION: &str = "v2.0.0";

/// The member of an event with its hash (dendrer paper 3.1).
pub(crate) const CHAIN_HASH: &str = "chain_hash";

/// Whose hashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// The dendrer paper, 3.1 and appendix B.
    Paper,
    /// CFD 1.1 and 1.2.
    Cfd,
}

/// A line that its profile does not bear out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct ProfileFault {
    /// Which line, from 1.
    pub line: usize,
    /// What does not fit.
    pub why: String,
}

impl Profile {
    /// Hands over the transitions of a run in the spelling of the profile, each with its hash.
    pub fn lines<E: From<Error>>(
        self,
        trace: &Trace,
        f: &mut dyn FnMut(Value) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut chain = None;
        let mut nodes = Nodes::default();
        let mut writer = Writer::of_source(trace);
        each(trace, &mut |record, before, after| {
            f(match self {
                Profile::Paper => {
                    let event = writer.event(record, before, after);
                    let hash = chain_hash(&event, chain);
                    chain = Some(hash);
                    with(&event, CHAIN_HASH, Value::from(hash.hex()))
                }
                Profile::Cfd => nodes.node(record),
            })
        })
    }

    /// Checks lines that [`Profile::lines`] or another program wrote.
    pub fn check(self, lines: &[Value]) -> Result<(), ProfileFault> {
        match self {
            Profile::Paper => check_chain(lines),
            Profile::Cfd => check_nodes(lines),
        }
    }
}

/// Hands over the transitions with the states before and after.
fn each<E: From<Error>>(
    trace: &Trace,
    f: &mut dyn FnMut(&Record, &Value, &Value) -> Result<(), E>,
) -> Result<(), E> {
    let mut before = trace.state(0)?;
    let mut told = Ok(());
    trace.moments(0, trace.tip(), &mut |moment, record| {
        if let Some(record) = record {
            told = f(record, &before, &moment.state);
        }
        before = moment.state.clone();
        if told.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    told
}

/// Hands over the events of a run as the paper spells them (appendix B), without the hash of 3.1.
pub fn events<E: From<Error>>(trace: &Trace, f: &mut dyn FnMut(Value) -> Result<(), E>) -> Result<(), E> {
    let mut writer = Writer::new(trace);
    each(trace, &mut |record, before, after| f(writer.event(record, before, after)))
}

fn chain_hash(payload: &Value, previous: Option<Digest>) -> Digest {
    let previous = previous.map_or_else(String::new, |digest| digest.hex());
    Digest::of_parts(&[&json::to_vec(payload), previous.as_bytes()])
}

fn check_chain(lines: &[Value]) -> Result<(), ProfileFault> {
    let mut chain = Chain::default();
    lines.iter().try_for_each(|event| chain.check(event))
}

/// The hash of the events so far (dendrer paper 3.1).
#[derive(Debug, Default)]
pub(crate) struct Chain {
    line: usize,
    previous: Option<Digest>,
}

impl Chain {
    /// Checks the `chain_hash` of the next event.
    pub(crate) fn check(&mut self, event: &Value) -> Result<(), ProfileFault> {
        self.line += 1;
        let fault = |why: String| ProfileFault { line: self.line, why };
        let Some(said) = event.get(CHAIN_HASH).and_then(Value::as_str) else {
            return Err(fault("it has no chain_hash".to_owned()));
        };
        let hash = chain_hash(&without(event, CHAIN_HASH), self.previous);
        if hash.hex() != said {
            return Err(fault(format!("its chain_hash is {said}, and its payload gives {}", hash.hex())));
        }
        self.previous = Some(hash);
        Ok(())
    }
}

/// The nodes so far: each record's hash in this profile, and the newest of each agent.
#[derive(Default)]
struct Nodes {
    hashes: BTreeMap<Digest, String>,
    newest: BTreeMap<String, String>,
}

impl Nodes {
    fn node(&mut self, record: &Record) -> Value {
        let header = record.header();
        let content = record.content();
        let text = |name: &str| content.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let agent = text("agent_id");
        let named = ["intent", "action", "result", "policy", "anomalies", "goal_id"];
        let members = named.iter().filter_map(|name| Some((*name, content.get(name)?.clone())));
        let type_name = header.type_name.as_ref().map_or("", |name| name.as_str());
        let event = Value::record(members.chain([("transition_type", Value::from(type_name))]));
        let prev = self.newest.get(&agent).cloned().unwrap_or_default();
        let causal = [Rel::Merges, Rel::ForkOf, Rel::PickedFrom];
        let linked = header.links.iter().filter(|link| causal.contains(&link.rel)).map(|link| link.hash);
        let mut parents: Vec<String> =
            linked.chain(header.prev).filter_map(|id| self.hashes.get(&id).cloned()).collect();
        parents.extend((!prev.is_empty()).then(|| prev.clone()));
        parents.sort();
        parents.dedup();
        let seq = content.get("seq").and_then(Value::as_u64).unwrap_or_default();
        let hash = node_hash(&prev, &event, seq, &agent, CFD_VERSION, &parents);
        self.hashes.insert(record.id(), hash.clone());
        self.newest.insert(agent.clone(), hash.clone());
        Value::record([
            ("node_id", Value::from(hash.clone())),
            ("agent_id", Value::from(agent)),
            ("seq", Value::from(seq)),
            ("timestamp", seconds(header.ts.ms())),
            ("event", event),
            ("state_delta", content.get("delta").cloned().unwrap_or(Value::Null)),
            ("prev_hash", Value::from(prev)),
            ("hash", Value::from(hash)),
            ("parents", Value::array(parents.into_iter().map(Value::from))),
            ("fork_type", content.get("fork_type").cloned().unwrap_or(Value::Null)),
            ("schema_version", Value::from(CFD_VERSION)),
        ])
    }
}

/// `SHA256(prev_hash || event_str || seq || agent_id || schema_version || bundle(parents))`, in hex (CFD 1.2).
pub fn node_hash(
    prev: &str,
    event: &Value,
    seq: u64,
    agent: &str,
    version: &str,
    parents: &[String],
) -> String {
    let (event, seq, bundle) = (json::to_vec(event), seq.to_string(), parents.join(","));
    let parts =
        [prev.as_bytes(), &event, seq.as_bytes(), agent.as_bytes(), version.as_bytes(), bundle.as_bytes()];
    Digest::of_parts(&parts).hex()
}

/// Milliseconds as the seconds of a float epoch (CFD 1.1).
fn seconds(ms: u64) -> Value {
    Value::from(ms as f64 / 1000.0)
}

/// The hashes, and the three rules of CFD 2 for each branch.
fn check_nodes(lines: &[Value]) -> Result<(), ProfileFault> {
    let mut newest: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    for (line, node) in (1..).zip(lines) {
        let fault = |why: String| ProfileFault { line, why };
        let text = |name: &str| {
            let found = node.get(name).and_then(Value::as_str);
            found.ok_or_else(|| fault(format!("it has no text {name}")))
        };
        let (agent, prev, hash, version) =
            (text("agent_id")?, text("prev_hash")?, text("hash")?, text("schema_version")?);
        let Some(seq) = node.get("seq").and_then(Value::as_u64) else {
            return Err(fault("it has no seq".to_owned()));
        };
        let parents = node.get("parents").and_then(Value::as_array);
        let parents: Option<Vec<String>> =
            parents.and_then(|list| list.iter().map(|id| id.as_str().map(str::to_owned)).collect());
        let Some(mut parents) = parents else { return Err(fault("it has no list of parents".to_owned())) };
        parents.sort();
        let event = node.get("event").cloned().unwrap_or(Value::Null);
        let computed = node_hash(prev, &event, seq, agent, version, &parents);
        if computed != hash {
            return Err(fault(format!("its hash is {hash}, and it gives {computed}")));
        }
        if let Some((before, id)) = newest.insert(agent, (seq, hash)) {
            if seq != before + 1 {
                return Err(fault(format!(
                    "seq {seq} stands where {} must in the branch of {agent}",
                    before + 1
                )));
            }
            if prev != id {
                return Err(fault(format!(
                    "it names another node than the one before it in the branch of {agent}"
                )));
            }
            if !parents.iter().any(|parent| parent == id) {
                return Err(fault(format!(
                    "the node before it in the branch of {agent} is none of its parents"
                )));
            }
        }
    }
    Ok(())
}

fn with(value: &Value, name: &str, member: Value) -> Value {
    let mut object = value.as_object().cloned().unwrap_or_default();
    object.set(name, member);
    Value::Object(object)
}

fn without(value: &Value, name: &str) -> Value {
    let members = value.as_object().into_iter().flat_map(|object| object.iter());
    Value::record(members.filter(|(key, _)| ***key != *name).map(|(key, value)| (&**key, value.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dendrer::kernel::step::Start;
    use dendrer::recorder::{Fixed, Recorder};
    use dendrer_object::delta::Delta;
    use dendrer_object::note::SigningKey;
    use dendrer_object::{Intent, StoreId};
    use dendrer_store::{Memory, Shared, StoreInfo};

    fn run() -> (Shared, dendrer_object::RunName) {
        let id = StoreId([4; 16]);
        let key = SigningKey::from_seed(&id.origin(), [1; 32]).unwrap();
        let store = Shared::new(Box::new(Memory::new(StoreInfo::new(id, key.verifier_key().clone()))));
        let name: dendrer_object::RunName = "profiled".parse().unwrap();
        let start = Start::new(name.clone());
        let mut recorder = Recorder::begin(&store, &start, Box::new(Fixed::new("p", 1_000, 500))).unwrap();
        for (n, agent) in ["a", "b", "a", "a", "b"].into_iter().enumerate() {
            let path = format!("/memory/{agent}").parse().unwrap();
            let delta = Delta(vec![dendrer_object::delta::Op::set(path, Value::from(n as u64))]);
            let intent = Intent::new("memory.write".parse().unwrap(), agent).with_delta(delta);
            recorder.propose(&intent).unwrap();
        }
        recorder.commit().unwrap();
        drop(recorder);
        (store, name)
    }

    fn lines(profile: Profile) -> Vec<Value> {
        let (store, name) = run();
        let mut lines = Vec::new();
        profile
            .lines(&Trace::open(&store, &name).unwrap(), &mut |line| {
                lines.push(line);
                Ok::<_, Error>(())
            })
            .unwrap();
        lines
    }

    #[test]
    fn what_a_profile_writes_it_bears_out_and_an_edit_shows_at_its_line() {
        for (profile, covered, uncovered) in
            [(Profile::Paper, "state_after", None), (Profile::Cfd, "event", Some("state_delta"))]
        {
            let lines = lines(profile);
            assert_eq!((lines.len(), profile.check(&lines)), (5, Ok(())));
            let mut edited = lines.clone();
            edited[2] = with(&edited[2], covered, Value::from("harmless"));
            assert_eq!(profile.check(&edited).unwrap_err().line, 3, "{profile:?}");
            let mut swapped = lines.clone();
            swapped.swap(2, 3);
            assert_eq!(profile.check(&swapped).unwrap_err().line, 3, "{profile:?}");
            let mut gap = lines.clone();
            gap.remove(2);
            assert_eq!(profile.check(&gap).unwrap_err().line, 3, "{profile:?}");
            // F-44: what the formula leaves out can be changed unseen, which is why it proves nothing.
            if let Some(uncovered) = uncovered {
                let mut edited = lines;
                edited[2] = with(&edited[2], uncovered, Value::from("anything"));
                assert_eq!(profile.check(&edited), Ok(()));
            }
        }
    }

    #[test]
    fn the_formulas_are_those_of_the_documents() {
        let lines = lines(Profile::Paper);
        let payload = |at: usize| without(&lines[at], "chain_hash").to_string();
        let first = Digest::of(payload(0).as_bytes()).hex();
        assert_eq!(lines[0].get("chain_hash"), Some(&Value::from(first.clone())));
        let second = Digest::of(format!("{}{first}", payload(1)).as_bytes()).hex();
        assert_eq!(lines[1].get("chain_hash"), Some(&Value::from(second)));

        let event = Value::record([("b", Value::from(1u64)), ("a", Value::from("x"))]);
        let parents = ["n0".to_owned(), "n1".to_owned()];
        assert_eq!(
            node_hash("n1", &event, 7, "agent_a", "v1.1", &parents),
            Digest::of(br#"n1{"a":"x","b":1}7agent_av1.1n0,n1"#).hex()
        );
    }
}
