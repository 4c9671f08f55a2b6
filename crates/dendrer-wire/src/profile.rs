//! The hashes of the source documents, made from our records on request and checked on request.
//!
//! They prove nothing: both leave fields uncovered and put no separators between what they join, so two different
//! texts can have one hash (design, section 3). What protects a record is its id. They are here so that a program that
//! was written from one of those documents can read a run and see for itself.
//!
//! * [`Profile::Paper`]: the events of the dendrer paper, appendix B, with the chain hash of 3.1. The payload is the
//!   canonical JSON of the event without `chain_hash`; the previous hash follows as 64 hex digits.
//! * [`Profile::Cfd`]: the trace nodes of CFD 1.1 with the hash of 1.2 ([`crate::cfd`]). An imported node is written as it was.
//!   Another one has 12 digits of its id as `node_id`, the parents of the causal graph, and the changes of its units as `state_delta`.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use dendrer::kernel::causal::CausalGraph;
use dendrer::run::causal::{CFD, Causal};
use dendrer::{Error, Trace};
use dendrer_object::record::Record;
use dendrer_object::{Digest, Object, Value, json, tag};

use crate::cfd::{CFD_VERSION, CfdFile, CfdTerms, REMOVE, node_hash};
use crate::event::Writer;

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
        let mut nodes = match self {
            Profile::Paper => None,
            Profile::Cfd => Some(Nodes::of(trace)?),
        };
        let mut writer = Writer::of_source(trace);
        each(trace, &mut |record, before, after| {
            f(match &mut nodes {
                None => {
                    let event = tag::with_user_names(&writer.event(record, before, after));
                    let hash = chain_hash(&event, chain);
                    chain = Some(hash);
                    with(&event, CHAIN_HASH, Value::from(hash.hex()))
                }
                Some(nodes) => nodes.node(record),
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
    trace.moments(0, trace.tip(), &mut |moment, record| {
        if let Some(record) = record {
            f(record, &before, &moment.state)?;
        }
        before = moment.state.clone();
        Ok(ControlFlow::Continue(()))
    })
}

/// Hands over the events of a run as the paper spells them (appendix B), without the hash of 3.1.
pub fn events<E: From<Error>>(trace: &Trace, f: &mut dyn FnMut(Value) -> Result<(), E>) -> Result<(), E> {
    let mut writer = Writer::new(trace);
    each(trace, &mut |record, before, after| f(tag::with_user_names(&writer.event(record, before, after))))
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

/// The nodes so far.
struct Nodes {
    causal: Causal,
    /// Name and hash of each node, by tick; empty for the beginning of the run.
    written: Vec<(String, String)>,
    /// The place of the newest node of each agent.
    newest: BTreeMap<String, u64>,
}

impl Nodes {
    fn of(trace: &Trace) -> Result<Nodes, Error> {
        let causal = Causal::of(trace, trace.tip())?;
        Ok(Nodes { causal, written: vec![(String::new(), String::new())], newest: BTreeMap::new() })
    }

    fn node(&mut self, record: &Record) -> Value {
        let tick = self.written.len() as u64;
        if let Some(imported) = record.body().value(&format!("/intent/{CFD}"))
            && let Ok(file) = CfdFile::read([&imported])
            && let [node] = &file.nodes[..]
        {
            self.newest.insert(node.agent.clone(), node.seq);
            self.written.push((node.node_id.clone(), node.hash.clone()));
            return tag::undoubled(&imported);
        }
        let content = record.content();
        let agent = content.get("agent_id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let named = ["intent", "action", "result", "policy", "anomalies", "goal_id"];
        let members = named.iter().filter_map(|name| Some((*name, tag::undoubled(content.get(name)?))));
        let type_name = record.header().type_name.as_ref().map_or("", |name| name.as_str());
        let event = Value::record(members.chain([("transition_type", Value::from(type_name))]));
        let graph = &self.causal.graph;
        let at = |tick: u64| usize::try_from(tick).expect("a tick in memory");
        let ticks: Vec<u64> = graph.parents(tick).iter().copied().filter(|parent| *parent > 0).collect();
        let own = ticks.iter().rev().find(|parent| graph.agent(**parent) == graph.agent(tick));
        let linked = own.or(ticks.last()).map(|parent| self.written[at(*parent)].1.clone());
        let prev = linked.unwrap_or_default();
        let mut parents: Vec<String> =
            ticks.iter().map(|parent| self.written[at(*parent)].0.clone()).collect();
        parents.sort();
        // A branch that an imported node begins goes on from its number.
        let seq = self.newest.get(&agent).map_or(1, |seq| seq.saturating_add(1));
        let node_id = self.causal.name(tick).to_string();
        let hash = node_hash(&prev, &event, seq, &agent, CFD_VERSION, &parents);
        self.newest.insert(agent.clone(), seq);
        self.written.push((node_id.clone(), hash.clone()));
        Value::record([
            ("node_id", Value::from(node_id)),
            ("agent_id", Value::from(agent)),
            ("seq", Value::from(seq)),
            ("timestamp", seconds(record.header().ts.ms())),
            ("event", event),
            ("state_delta", state_delta(graph, tick)),
            ("prev_hash", Value::from(prev)),
            ("hash", Value::from(hash)),
            ("parents", Value::array(parents.into_iter().map(Value::from))),
            ("fork_type", content.get("fork_type").cloned().unwrap_or(Value::Null)),
            ("schema_version", Value::from(CFD_VERSION)),
        ])
    }
}

/// The changes of a node in the form of the document: values by unit, and what is removed in a list `__remove`.
fn state_delta(graph: &CausalGraph, tick: u64) -> Value {
    let mut delta = Object::default();
    let remove = |object: &mut Object, name: &str| {
        let mut removed: Vec<Value> = object
            .get(REMOVE)
            .and_then(Value::as_array)
            .map(|list| list.iter().cloned().collect())
            .unwrap_or_default();
        removed.push(Value::from(name));
        object.set(REMOVE, Value::array(removed));
    };
    for (path, value) in graph.writes(tick) {
        let tokens: Vec<String> = path.tokens().map(|token| token.into_owned()).collect();
        match (&tokens[..], value) {
            ([top], None) => remove(&mut delta, tag::user_name(top)),
            ([top], Some(value)) if delta.get(top).is_none() || value.as_object().is_none() => {
                delta.set(top, value);
            }
            ([top, key], value) => {
                let mut members = delta.get(top).and_then(Value::as_object).cloned().unwrap_or_default();
                match value {
                    Some(value) => members.set(key, value),
                    None => remove(&mut members, tag::user_name(key)),
                }
                delta.set(top, Value::Object(members));
            }
            _ => {}
        }
    }
    tag::with_user_names(&Value::Object(delta))
}

/// Milliseconds as the seconds of a float epoch (CFD 1.1).
fn seconds(ms: u64) -> Value {
    Value::from(ms as f64 / 1000.0)
}

/// The rules of CFD 2 for each branch.
fn check_nodes(lines: &[Value]) -> Result<(), ProfileFault> {
    let file = CfdFile::read(lines).map_err(|error| ProfileFault { line: error.line, why: error.why })?;
    let reports = file.verify(&CfdTerms::default());
    let first = reports.iter().flat_map(|report| &report.faults).min_by_key(|fault| fault.tick);
    first.map_or(Ok(()), |fault| {
        let why = format!("{}: expected {}, got {}", fault.rule.as_str(), fault.expected, fault.got);
        Err(ProfileFault { line: usize::try_from(fault.tick).unwrap_or(usize::MAX), why })
    })
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
                edited[2] = with(&edited[2], uncovered, Value::object());
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
    }
}
