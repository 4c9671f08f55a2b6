//! Trace files of the forensic debugger specification: the nodes, their hash (1.2), and the rules of section 2.
//!
//! What the document leaves open is read so: the parts of the hash are joined without separators, the event as RFC 8785 writes it,
//! `seq` in decimal, the parents as their `node_id`s, sorted and joined by commas. A branch is the nodes of one agent in the order of
//! lines; its first `seq` is 0 or 1. `prev_hash` is the hash of the node before it in the branch, and of the first node that of one
//! of its parents, or a text of its own if it has none. Versions are 1.0, 1.1 and 2.0.0, each also with `v`.
//!
//! The hash proves little: it covers neither `timestamp` nor `state_delta` nor `fork_type`, and two texts can have one hash.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use dendrer::evidence::branches::{BranchFault, BranchReport, BranchRule};
use dendrer_object::{Digest, Value, json, tag};

/// The version of the node schema in nodes that are written here.
pub const CFD_VERSION: &str = "2.0.0";

/// Members of a node that the formula does not cover.
pub const UNCOVERED: [&str; 3] = ["timestamp", "state_delta", "fork_type"];

/// The list, beside the keys of a member of `state_delta`, of the keys that are removed.
pub const REMOVE: &str = "__remove";

const VERSIONS: [&str; 3] = ["1.0", "1.1", "2.0.0"];

/// Members that a node has.
const MEMBERS: [&str; 11] = [
    "agent_id",
    "event",
    "fork_type",
    "hash",
    "node_id",
    "parents",
    "prev_hash",
    "schema_version",
    "seq",
    "state_delta",
    "timestamp",
];

/// A line that is no node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct NotANode {
    /// Which line, from 1.
    pub line: usize,
    /// Why not.
    pub why: String,
}

/// A node of a file (1.1).
#[derive(Debug, Clone)]
pub struct CfdNode {
    /// What it is called.
    pub node_id: String,
    /// The agent.
    pub agent: String,
    /// Its place in the branch of the agent.
    pub seq: u64,
    /// The hash of the node before it.
    pub prev_hash: String,
    /// Its own hash.
    pub hash: String,
    /// The version of the schema.
    pub version: String,
    /// The ids of its parents.
    pub parents: Vec<String>,
    /// The whole node, as the door reads it.
    pub value: Value,
}

/// What the document leaves open, as a verification is asked for.
#[derive(Debug, Clone, Default)]
pub struct CfdTerms {
    /// The first `seq` of a branch; 0 or 1 if it is not given.
    pub s0: Option<u64>,
    /// The `prev_hash` of a node without parents.
    pub genesis: String,
}

/// The nodes of a file.
#[derive(Debug, Clone, Default)]
pub struct CfdFile {
    /// The nodes, in the order of lines.
    pub nodes: Vec<CfdNode>,
}

impl CfdNode {
    fn read(value: &Value) -> Result<CfdNode, String> {
        let Some(members) = value.as_object() else {
            return Err(format!("a node is an object, not {}", value.described()));
        };
        if let Some((name, _)) = members.iter().find(|(name, _)| !MEMBERS.contains(&&***name)) {
            return Err(format!("a node has no member {name}"));
        }
        let text = |name: &str| {
            let found = value.get(name).and_then(Value::as_str).map(str::to_owned);
            found.ok_or_else(|| format!("it has no text {name}"))
        };
        let parents = value.get("parents").and_then(Value::as_array);
        let parents = parents.and_then(|list| list.iter().map(|id| Some(id.as_str()?.to_owned())).collect());
        for (name, is_kind) in [
            ("event", value.get("event").is_some_and(|event| event.as_object().is_some())),
            ("state_delta", value.get("state_delta").is_some_and(|delta| delta.as_object().is_some())),
            ("timestamp", value.get("timestamp").is_some_and(|time| time.as_f64().is_some())),
        ] {
            if !is_kind {
                let kind = if name == "timestamp" { "number" } else { "object" };
                return Err(format!("it has no {kind} {name}"));
            }
        }
        match value.get("fork_type") {
            None | Some(Value::Null) => {}
            Some(Value::String(kind)) if ["natural", "observation", "injection"].contains(&&**kind) => {}
            Some(other) => {
                return Err(format!("fork_type is natural, observation, injection or null, not {other}"));
            }
        }
        Ok(CfdNode {
            node_id: text("node_id")?,
            agent: text("agent_id")?,
            seq: value.get("seq").and_then(Value::as_u64).ok_or("it has no whole number seq")?,
            prev_hash: text("prev_hash")?,
            hash: text("hash")?,
            version: text("schema_version")?,
            parents: parents.ok_or("it has no list of texts parents")?,
            value: value.clone(),
        })
    }

    /// The hash that the formula gives for it.
    pub fn computed(&self) -> String {
        let event = self.value.get("event").cloned().unwrap_or(Value::Null);
        node_hash(&self.prev_hash, &event, self.seq, &self.agent, &self.version, &self.parents)
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
    let mut parents = parents.to_vec();
    parents.sort();
    let (event, seq, bundle) =
        (json::to_vec(&with_doubles(&tag::undoubled(event))), seq.to_string(), parents.join(","));
    let parts =
        [prev.as_bytes(), &event, seq.as_bytes(), agent.as_bytes(), version.as_bytes(), bundle.as_bytes()];
    Digest::of_parts(&parts).hex()
}

/// The largest whole number that every double holds.
const DOUBLE_MAX: f64 = 9_007_199_254_740_991.0;

/// A value with the numbers that RFC 8785 has: doubles.
fn with_doubles(value: &Value) -> Value {
    match value {
        Value::Array(items) => Value::array(items.iter().map(with_doubles)),
        Value::Object(members) => {
            Value::record(members.iter().map(|(name, value)| (Arc::clone(name), with_doubles(value))))
        }
        // A number that no double holds exactly is kept as its digits.
        Value::Number(number) if number.as_f64().is_none_or(|double| double.abs() > DOUBLE_MAX) => {
            number.to_string().parse().map_or_else(|_| value.clone(), tag::float)
        }
        other => other.clone(),
    }
}

impl CfdFile {
    /// Reads the lines of a file.
    pub fn read<'v>(lines: impl IntoIterator<Item = &'v Value>) -> Result<CfdFile, NotANode> {
        let node = |(line, value)| CfdNode::read(value).map_err(|why| NotANode { line, why });
        Ok(CfdFile { nodes: (1..).zip(lines).map(node).collect::<Result<_, _>>()? })
    }

    /// Checks every branch (2), its hashes, and what the three invariants leave open.
    pub fn verify(&self, terms: &CfdTerms) -> Vec<BranchReport> {
        let mut first: HashMap<&str, &CfdNode> = HashMap::new();
        let mut repeated = BTreeSet::new();
        for (at, node) in self.nodes.iter().enumerate() {
            if first.contains_key(&*node.node_id) {
                repeated.insert(at);
            } else {
                first.insert(&node.node_id, node);
            }
        }
        let in_circle = self.in_circle();
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        let mut newest: BTreeMap<&str, (u64, &CfdNode)> = BTreeMap::new();
        let mut taken: BTreeSet<(&str, u64)> = BTreeSet::new();
        let mut reports: Vec<BranchReport> = Vec::new();
        for (at, node) in self.nodes.iter().enumerate() {
            let place = *places.entry(&node.agent).or_insert_with(|| {
                reports.push(BranchReport { agent: node.agent.clone(), nodes: 0, faults: Vec::new() });
                reports.len() - 1
            });
            let report = &mut reports[place];
            report.nodes += 1;
            let mut fault = |rule, expected: String, got: String| {
                let (tick, node) = (at as u64 + 1, node.node_id.clone());
                report.faults.push(BranchFault { tick, node, rule, expected, got });
            };
            let quoted = |text: &str| Value::from(text).to_string();
            let computed = node.computed();
            if computed != node.hash {
                fault(BranchRule::Hash, computed, node.hash.clone());
            }
            let own = newest.get(&*node.agent).copied();
            match own {
                Some((seq, _))
                    if !taken.contains(&(&*node.agent, node.seq)) && Some(node.seq) != seq.checked_add(1) =>
                {
                    fault(BranchRule::Monotonicity, seq.saturating_add(1).to_string(), node.seq.to_string());
                }
                None if terms.s0.map_or(node.seq > 1, |s0| node.seq != s0) => {
                    let expected = terms.s0.map_or_else(|| "0 or 1".to_owned(), |s0| s0.to_string());
                    fault(BranchRule::Monotonicity, expected, node.seq.to_string());
                }
                _ => {}
            }
            if let Some((_, before)) = own {
                if node.prev_hash != before.hash {
                    fault(BranchRule::Lineage, quoted(&before.hash), quoted(&node.prev_hash));
                }
                if !node.parents.contains(&before.node_id) {
                    let got = Value::array(node.parents.iter().map(|id| Value::from(id.as_str())));
                    fault(BranchRule::Containment, quoted(&before.node_id), got.to_string());
                }
            } else if node.parents.is_empty() {
                if node.prev_hash != terms.genesis {
                    fault(BranchRule::ForkLink, quoted(&terms.genesis), quoted(&node.prev_hash));
                }
            } else {
                let hashes: Vec<&str> =
                    node.parents.iter().filter_map(|id| Some(&*first.get(&**id)?.hash)).collect();
                if !hashes.contains(&&*node.prev_hash) {
                    fault(
                        BranchRule::ForkLink,
                        format!("the hash of one of {}", node.parents.join(", ")),
                        quoted(&node.prev_hash),
                    );
                }
            }
            for parent in node.parents.iter().filter(|id| !first.contains_key(&***id)) {
                fault(BranchRule::Exists, quoted(parent), "no such node".to_owned());
            }
            if in_circle.contains(&at) {
                fault(
                    BranchRule::Acyclic,
                    "ancestors that are others".to_owned(),
                    "its own ancestor".to_owned(),
                );
            }
            if !taken.insert((&node.agent, node.seq)) {
                let got = format!("{} of {} twice", node.seq, node.agent);
                fault(BranchRule::Equivocation, "one node at a place".to_owned(), got);
            }
            if repeated.contains(&at) {
                let got = format!("{} twice", quoted(&node.node_id));
                fault(BranchRule::Equivocation, "one node of an id".to_owned(), got);
            }
            if !VERSIONS.contains(&node.version.strip_prefix('v').unwrap_or(&node.version)) {
                fault(BranchRule::Version, VERSIONS.join(", "), quoted(&node.version));
            }
            newest.insert(&node.agent, (node.seq, node));
        }
        reports
    }

    /// The places of each node's parents among the lines; of several nodes with one id, the first.
    fn parents(&self) -> Vec<Vec<usize>> {
        let mut places: HashMap<&str, usize> = HashMap::new();
        for (at, node) in self.nodes.iter().enumerate() {
            places.entry(&node.node_id).or_insert(at);
        }
        let of = |node: &CfdNode| node.parents.iter().filter_map(|id| places.get(&**id).copied()).collect();
        self.nodes.iter().map(of).collect()
    }

    /// The nodes that are their own ancestors, and those behind them: no order of theirs has parents before children.
    fn in_circle(&self) -> BTreeSet<usize> {
        let ordered: BTreeSet<usize> = self.sorted().into_iter().collect();
        (0..self.nodes.len()).filter(|at| !ordered.contains(at)).collect()
    }

    /// The places of nodes in an order in which parents come before children: that of the lines where it is one, else a topological
    /// one, ties by `seq`, `agent_id` and `node_id`. Nodes that are their own ancestors are left out.
    pub fn order(&self) -> Vec<usize> {
        let parents = self.parents();
        match parents.iter().enumerate().all(|(at, parents)| parents.iter().all(|parent| *parent < at)) {
            true => (0..self.nodes.len()).collect(),
            false => self.sorted(),
        }
    }

    fn sorted(&self) -> Vec<usize> {
        let parents = self.parents();
        let mut waits: Vec<usize> = Vec::with_capacity(parents.len());
        let mut children = vec![Vec::new(); parents.len()];
        for (at, parents) in parents.iter().enumerate() {
            let parents: BTreeSet<usize> = parents.iter().copied().collect();
            parents.iter().for_each(|parent| children[*parent].push(at));
            waits.push(parents.len());
        }
        let key = |at: usize| {
            let node = &self.nodes[at];
            (node.seq, node.agent.as_str(), node.node_id.as_str(), at)
        };
        let mut ready: BTreeSet<_> = (0..waits.len()).filter(|at| waits[*at] == 0).map(key).collect();
        let mut sorted = Vec::with_capacity(waits.len());
        while let Some((.., at)) = ready.pop_first() {
            sorted.push(at);
            for child in &children[at] {
                waits[*child] -= 1;
                if waits[*child] == 0 {
                    ready.insert(key(*child));
                }
            }
        }
        sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formula_is_that_of_the_document() {
        let event = Value::record([("b", Value::from(1u64)), ("a", Value::from("x"))]);
        let parents = ["n1".to_owned(), "n0".to_owned()];
        assert_eq!(
            node_hash("n1", &event, 7, "agent_a", "v1.1", &parents),
            Digest::of(br#"n1{"a":"x","b":1}7agent_av1.1n0,n1"#).hex()
        );
        // Names as they were written, whole numbers as doubles.
        let event = json::parse_door(br#"{"$ref":12345678901234567890,"n":-0.0}"#).unwrap();
        let written = json::to_string(&with_doubles(&tag::undoubled(&event)));
        assert_eq!(written, r#"{"$ref":12345678901234567000,"n":0}"#);
    }
}
