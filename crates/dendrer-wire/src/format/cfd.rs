//! Trace nodes of the forensic debugger specification (CFD), as `export --format cfd` writes them.
//!
//! The document leaves this open: the parts of the hash (1.2) are joined without separators, the event with its names sorted and
//! without blanks, numbers and escapes as the line has them (as RFC 8785 writes them, if each number is a double), `seq` in decimal, the parents as their `node_id`s, sorted and joined by commas. A branch is the nodes of one agent
//! in the order of lines; its first `seq` is 0 or 1. `prev_hash` is the hash of the node before it in the branch, and of the
//! first node that of one of its parents, or a text of its own if it has none. Versions are 1.0, 1.1 and 2.0.0, each also with `v`.
//!
//! The hash proves little: it covers neither `timestamp` nor `state_delta` nor `fork_type`, and two texts can have one hash.
//!
//! Reading: one node is one tick. The whole node is kept in `intent.cfd`, and its text if that is spelled otherwise than the
//! value, so that an export gives it back. Its `state_delta`
//! becomes a delta; a parent of another agent becomes a link. A file that does not verify is not imported.
//!
//! Writing: an imported node is written as it was. Another one has 12 digits of its id as `node_id`, the parents of the causal
//! graph, and the changes of its units as `state_delta`.

mod raw;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer::Trace;
use dendrer::evidence::branches::{BranchFault, BranchReport, BranchRule};
use dendrer::kernel::causal::{CausalGraph, MergeRules};
use dendrer::kernel::ontology::{self, Class};
use dendrer::kernel::pack::PackEngine;
use dendrer::kernel::step::{COUNTERS, KERNEL_PATHS};
use dendrer::run::causal::{CFD as NODE, Causal, SOURCE_KERNEL};
use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::intent::ForkType;
use dendrer_object::record::{Link, Record, Rel};
use dendrer_object::{Code, Digest, Intent, Object, Pointer, TypeName, Value, json, tag};

use crate::foreign::{
    self, CfdTerms, CheckedFile, EventSpelling, FileFault, Format, Steps, Visit, WriteError, WrittenPart,
};
use crate::import::calls::Calls;
use crate::import::error::ImportError;
use crate::import::items::{self, Around, Item};
use crate::import::layout::{Layout, Top, pointer};
use crate::import::note::{At, ImportNote, NoteKind};
use crate::import::scan::Sizes;
use crate::import::transition::{Step, name_of};
use raw::Raw;

/// The format.
pub(super) static CFD: Format = Format {
    accept: |map, engine| match engine {
        Some(engine) if map.is_none() && engine != PackEngine::Delta => Err(ImportError::Unfit {
            code: Code::E0106,
            message: "nodes bring their changes of state, and the rules of the pack make others".to_owned(),
            note: Some("a pack with `reducer: delta/1` says how its agents are merged"),
        }),
        _ => foreign::without_map(map),
    },
    items: in_order,
    write: Some(write),
    single: Some("a chain of hashes"),
    check: Some(check),
    ..Format::new(
        "cfd",
        "Nodes of the forensic debugger specification, as export --format cfd writes them",
        |_| Box::new(Recorded::default()),
    )
};

/// The version of the node schema in nodes that are written here.
const CFD_VERSION: &str = "2.0.0";

/// Members of a node that the formula does not cover.
const UNCOVERED: [&str; 3] = ["timestamp", "state_delta", "fork_type"];

/// The member of a part of `state_delta` that lists the keys that are removed.
const REMOVE: &str = "__remove";

/// Members of a state that are replaced as a whole (3.2).
const WHOLE: [&str; 2] = ["goals", "context_stack"];

const VERSIONS: [&str; 3] = ["1.0", "1.1", "2.0.0"];

/// The member of an intent with the text of an imported node, if the value does not have its spelling.
const NODE_TEXT: &str = "cfd_text";

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

/// A node of a file (1.1).
#[derive(Debug, Clone)]
struct CfdNode {
    node_id: String,
    agent: String,
    /// Its place in the branch of the agent.
    seq: u64,
    /// The hash of the node before it.
    prev_hash: String,
    hash: String,
    /// The version of the schema.
    version: String,
    /// The ids of its parents.
    parents: Vec<String>,
    /// The whole node, as the door reads it.
    value: Value,
    /// Its event as it is spelled, and whether RFC 8785 has each of its numbers; `None` without the text of the node.
    event: Option<(String, bool)>,
}

/// The nodes of a file, in the order of lines.
struct CfdFile(Vec<CfdNode>);

impl CfdNode {
    /// Reads a node; `version` is that of a node that has none.
    fn read(value: &Value, raw: Option<&Raw<'_>>, version: Option<&str>) -> Result<CfdNode, String> {
        if value.as_object().is_none() {
            return Err(format!("a node is an object, not {}", value.described()));
        }
        let event = raw.and_then(|raw| raw.get("event")).map(|event| (event.sorted(), event.is_of_doubles()));
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
            Some(Value::String(kind)) if ForkType::from_word(kind).is_some() => {}
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
            version: match (value.get("schema_version"), version) {
                (None, Some(version)) => version.to_owned(),
                (None, None) => return Err(format!("it has no text schema_version; {GIVEN_VERSION}")),
                _ => text("schema_version")?,
            },
            event,
            parents: parents.ok_or("it has no list of texts parents")?,
            value: value.clone(),
        })
    }

    /// The hashes that the formula gives for it: of its event as it is written, and as RFC 8785 writes it.
    fn computed(&self) -> (Option<String>, Option<String>) {
        let hash = |event: &str| {
            hash_of(&self.prev_hash, event.as_bytes(), self.seq, &self.agent, &self.version, &self.parents)
        };
        let by_rfc = self.event.as_ref().is_none_or(|(_, is_of_doubles)| *is_of_doubles).then(|| {
            let event = self.value.get("event").cloned().unwrap_or(Value::Null);
            node_hash(&self.prev_hash, &event, self.seq, &self.agent, &self.version, &self.parents)
        });
        (self.event.as_ref().map(|(event, _)| hash(event)), by_rfc)
    }

    /// Members that the formula does not cover.
    fn uncovered(&self) -> impl Iterator<Item = &str> {
        let members = self.value.as_object().into_iter().flat_map(Object::iter);
        members.map(|(name, _)| tag::user_name(name)).filter(|name| !MEMBERS.contains(name))
    }
}

/// The way on where a node has no version.
const GIVEN_VERSION: &str = "--schema-version TEXT gives it";

/// `SHA256(prev_hash || event_str || seq || agent_id || schema_version || bundle(parents))`, in hex (CFD 1.2).
fn node_hash(prev: &str, event: &Value, seq: u64, agent: &str, version: &str, parents: &[String]) -> String {
    hash_of(prev, &json::to_vec(&with_doubles(&tag::undoubled(event))), seq, agent, version, parents)
}

fn hash_of(prev: &str, event: &[u8], seq: u64, agent: &str, version: &str, parents: &[String]) -> String {
    let mut parents = parents.to_vec();
    parents.sort();
    let (seq, bundle) = (seq.to_string(), parents.join(","));
    let parts =
        [prev.as_bytes(), event, seq.as_bytes(), agent.as_bytes(), version.as_bytes(), bundle.as_bytes()];
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
    /// Reads the nodes; fails with the place of a value that is no node, from 0, and why.
    fn read(values: &[Value], raws: &[Raw<'_>], terms: &CfdTerms) -> Result<CfdFile, (u64, String)> {
        let node = |(at, value): (usize, &Value)| {
            let node = CfdNode::read(value, raws.get(at), terms.schema_version.as_deref());
            node.map_err(|why| (at as u64, why))
        };
        Ok(CfdFile(values.iter().enumerate().map(node).collect::<Result<_, _>>()?))
    }

    /// The spelling of events by which the hashes fit, of the nodes whose hash does.
    fn spelling(&self) -> Option<EventSpelling> {
        let fits = self.0.iter().map(|node| {
            let (as_written, by_rfc) = node.computed();
            (as_written.as_ref() == Some(&node.hash), by_rfc.as_ref() == Some(&node.hash))
        });
        let fits: Vec<(bool, bool)> = fits.filter(|(written, rfc)| *written || *rfc).collect();
        let (written, rfc) = (fits.iter().all(|(is, _)| *is), fits.iter().all(|(_, is)| *is));
        (!fits.is_empty()).then_some(match (written, rfc) {
            (true, true) => EventSpelling::Either,
            (true, false) => EventSpelling::AsWritten,
            (false, true) => EventSpelling::Rfc8785,
            (false, false) => EventSpelling::Mixed,
        })
    }

    /// Members of the nodes that the formula does not cover.
    fn uncovered(&self) -> Vec<String> {
        let mut names: Vec<String> = UNCOVERED.iter().map(|name| (*name).to_owned()).collect();
        let others: BTreeSet<&str> = self.0.iter().flat_map(CfdNode::uncovered).collect();
        names.extend(others.into_iter().map(str::to_owned));
        names
    }

    /// Checks every branch (2), its hashes, and what the three invariants leave open.
    fn verify(&self, terms: &CfdTerms) -> Vec<BranchReport> {
        let first = self.places();
        let in_circle = self.in_circle();
        // The report and the newest node of each agent.
        let mut branches: HashMap<&str, (usize, &CfdNode)> = HashMap::new();
        let mut taken: BTreeSet<(&str, u64)> = BTreeSet::new();
        let mut reports: Vec<BranchReport> = Vec::new();
        for (at, node) in self.0.iter().enumerate() {
            let own = branches.get(&*node.agent).copied();
            let place = own.map_or(reports.len(), |(place, _)| place);
            if own.is_none() {
                reports.push(BranchReport { agent: node.agent.clone(), ..BranchReport::default() });
            }
            let report = &mut reports[place];
            report.nodes += 1;
            let mut fault = |rule, expected: String, got: String| {
                let (tick, node) = (at as u64 + 1, node.node_id.clone());
                report.faults.push(BranchFault { tick, node, rule, expected, got });
            };
            let (as_written, by_rfc) = node.computed();
            if ![&as_written, &by_rfc].iter().any(|computed| computed.as_ref() == Some(&node.hash)) {
                fault(BranchRule::Hash, as_written.or(by_rfc).unwrap_or_default(), node.hash.clone());
            }
            match own {
                Some((_, CfdNode { seq, .. }))
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
            self.verify_links(node, own.map(|(_, before)| before), &first, terms, &mut fault);
            if in_circle.contains(&at) {
                fault(BranchRule::Acyclic, "ancestors that are others".into(), "its own ancestor".into());
            }
            if !taken.insert((&node.agent, node.seq)) {
                let got = format!("{} of {} twice", node.seq, node.agent);
                fault(BranchRule::Equivocation, "one node at a place".to_owned(), got);
            }
            if first[&*node.node_id] != at {
                let got = format!("{} twice", quoted(&node.node_id));
                fault(BranchRule::Equivocation, "one node of an id".to_owned(), got);
            }
            if !VERSIONS.contains(&node.version.strip_prefix('v').unwrap_or(&node.version)) {
                fault(BranchRule::Version, VERSIONS.join(", "), quoted(&node.version));
            }
            branches.insert(&node.agent, (place, node));
        }
        reports
    }

    /// Compares a node with the node before it in its branch and with its parents.
    fn verify_links(
        &self,
        node: &CfdNode,
        before: Option<&CfdNode>,
        first: &HashMap<&str, usize>,
        terms: &CfdTerms,
        fault: &mut dyn FnMut(BranchRule, String, String),
    ) {
        if let Some(before) = before {
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
            let mut known = node.parents.iter().filter_map(|id| first.get(&**id));
            if !known.any(|at| self.0[*at].hash == node.prev_hash) {
                let expected = format!("the hash of one of {}", node.parents.join(", "));
                fault(BranchRule::ForkLink, expected, quoted(&node.prev_hash));
            }
        }
        for parent in node.parents.iter().filter(|id| !first.contains_key(&***id)) {
            fault(BranchRule::Exists, quoted(parent), "no such node".to_owned());
        }
    }

    /// The first place of each id among the lines.
    fn places(&self) -> HashMap<&str, usize> {
        let mut places = HashMap::new();
        for (at, node) in self.0.iter().enumerate() {
            places.entry(&*node.node_id).or_insert(at);
        }
        places
    }

    /// The places of each node's parents among the lines; of several nodes with one id, the first.
    fn parents(&self) -> Vec<Vec<usize>> {
        let places = self.places();
        let of = |node: &CfdNode| node.parents.iter().filter_map(|id| places.get(&**id).copied()).collect();
        self.0.iter().map(of).collect()
    }

    /// The nodes that are their own ancestors, and their descendants: no order of theirs has parents before children.
    fn in_circle(&self) -> BTreeSet<usize> {
        let ordered: BTreeSet<usize> = self.sorted().into_iter().collect();
        (0..self.0.len()).filter(|at| !ordered.contains(at)).collect()
    }

    /// The places of nodes in an order in which parents come before children: that of the lines where it is one, else a topological
    /// one, ties by `seq`, `agent_id` and `node_id`. Nodes that are their own ancestors are left out.
    fn order(&self) -> Vec<usize> {
        let parents = self.parents();
        match parents.iter().enumerate().all(|(at, parents)| parents.iter().all(|parent| *parent < at)) {
            true => (0..self.0.len()).collect(),
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
            let node = &self.0[at];
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

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// The first fault of all branches: its line, from 1, and why.
fn first_fault(reports: &[BranchReport]) -> Option<(u64, String)> {
    let first = reports.iter().flat_map(|report| &report.faults).min_by_key(|fault| fault.tick)?;
    let (rule, expected, got) = (first.rule.as_str(), &first.expected, &first.got);
    Some((first.tick, format!("{}: {rule}: expected {expected}, got {got}", first.node)))
}

/// Checks the branches of a file.
fn check(bytes: &[u8], terms: &CfdTerms) -> Result<CheckedFile, FileFault> {
    let lines = foreign::lines(bytes, json::parse_door)?;
    let texts = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
    let raws: Vec<Raw<'_>> = texts.map_while(|line| Raw::parse(std::str::from_utf8(line).ok()?)).collect();
    let file = CfdFile::read(&lines, &raws, terms).map_err(|(at, why)| FileFault {
        code: Code::E0209,
        why,
        line: Some(at as usize + 1),
    })?;
    let branches = file.verify(terms);
    let fault = first_fault(&branches);
    let branches = Some((branches, file.uncovered()));
    Ok(CheckedFile { fault, branches, spelling: file.spelling(), ..CheckedFile::of(lines.len()) })
}

/// Reads all nodes, checks them, and hands them over with parents before children.
fn in_order(
    source: &mut dyn std::io::Read,
    layout: &Layout,
    hints: Sizes,
    visit: Visit<'_>,
) -> Result<Around, ImportError> {
    let (mut values, mut sizes, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    source.read_to_end(&mut bytes).map_err(ImportError::Io)?;
    let around = items::read(&bytes[..], layout, hints, &mut |item| {
        if let Some(note) = item.notes.into_iter().next() {
            return Err(ImportError::Gap(note));
        }
        values.push(item.value);
        sizes.push(item.size);
        Ok(())
    })?;
    let list = &pointer(&layout.path);
    let place = |at| At::item(list, at);
    let raws = raws(&bytes, layout).filter(|raws| raws.len() == values.len()).unwrap_or_default();
    let terms = &layout.cfd;
    let file = CfdFile::read(&values, &raws, terms)
        .map_err(|(at, why)| ImportError::refused(Code::E0209, why, place(at)))?;
    if let Some((line, why)) = first_fault(&file.verify(terms)) {
        return Err(ImportError::refused(Code::E0303, why, place(line - 1)));
    }
    file.order().into_iter().try_for_each(|at| {
        let text =
            raws.get(at).filter(|raw| !is_spelled_as(raw, &values[at])).map(|raw| Value::from(raw.text));
        let item = Value::array([values[at].clone()].into_iter().chain(text));
        visit(Item::new(item, place(at as u64), sizes[at]))
    })?;
    Ok(around)
}

/// The nodes of a source as they are spelled.
fn raws<'b>(bytes: &'b [u8], layout: &Layout) -> Option<Vec<Raw<'b>>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if layout.top == Top::Lines && layout.index.is_none() {
        let lines = text.split('\n').filter(|line| !line.trim_ascii().is_empty());
        return lines.map(Raw::parse).collect();
    }
    let top = Raw::parse(text)?;
    let run = match layout.index {
        None => top,
        Some(index) => top.into_list()?.into_iter().nth(usize::try_from(index).ok()?)?,
    };
    layout.path.iter().try_fold(run, |value, name| value.into_member(name))?.into_list()
}

/// Whether a value is written with the numbers and escapes of a text.
fn is_spelled_as(raw: &Raw<'_>, value: &Value) -> bool {
    let text = json::to_string(&tag::undoubled(value));
    Raw::parse(&text).is_some_and(|own| own.sorted() == raw.sorted())
}

/// The nodes that were recorded.
#[derive(Debug, Default)]
struct Recorded {
    /// Id and agent of each, by `node_id`.
    nodes: HashMap<String, (Digest, String)>,
    /// The node that is being recorded.
    current: Option<(String, String)>,
}

impl Steps for Recorded {
    fn recorded(&mut self, id: Digest) {
        if let Some((node, agent)) = self.current.take() {
            self.nodes.insert(node, (id, agent));
        }
    }

    fn step<'i>(&mut self, item: &'i Item<'_>, _: &mut Calls) -> Result<Step<'i>, ImportError> {
        let at = item.at;
        let (value, text) = (of_item(&item.value, 0), of_item(&item.value, 1));
        let value = value.expect("made by in_order");
        let refused = |why| ImportError::refused(Code::E0209, why, at);
        let node = CfdNode::read(value, None, Some("")).map_err(refused)?;
        let event = value.get("event").cloned().unwrap_or_else(Value::object);
        let named = event.get("transition_type").and_then(Value::as_str);
        let own: Option<TypeName> = named.and_then(|name| name.parse().ok());
        let class = own.as_ref().and_then(|name| ontology::class(name, &Default::default()));
        // The kernel of the source is no kernel here: its transitions are those of an agent with another name.
        let agent = match node.agent == ontology::KERNEL && class == Some(Class::System) {
            true => SOURCE_KERNEL,
            false => &node.agent,
        };
        ontology::check_name(agent).map_err(|error| ImportError::authorship(&error, at))?;
        let own = own.filter(|name| ontology::class(name, &Default::default()) == Some(Class::Agent));
        let mut intent = Intent::new(own.unwrap_or_else(|| name_of("observation.add")), agent);
        let description =
            event.get("description").or(event.get("action")).filter(|text| text.as_str().is_some());
        let is_confidence = |value: &&Value| value.as_f64().is_some_and(|value| (0.0..=1.0).contains(&value));
        let members = [
            (NODE, Some(value)),
            (NODE_TEXT, text),
            ("confidence", event.get("confidence").filter(is_confidence)),
            ("description", description),
            ("merge", event.get("merge")),
        ];
        let members = members.into_iter().filter_map(|(name, value)| Some((name, value?.clone())));
        intent = intent.with("intent", Value::record(members));
        if let Some(kind) = value.get("fork_type").filter(|kind| kind.as_str().is_some()) {
            intent = intent.with("fork_type", kind.clone());
        }
        intent = intent.with_delta(delta(value).map_err(refused)?);
        intent.links = self.links(&node);
        self.current = Some((node.node_id, node.agent));
        let mut step = Step::new(intent);
        let holds = |name: &str| event.get(name).is_some_and(|part| part.as_object().is_some());
        if holds("action") || holds("result") {
            let text = "what this node says of a call is kept and not read";
            step.notes.push(ImportNote::new(NoteKind::PartsNotRead, format!("{at}/event"), text));
        }
        if let Some(Err(fault)) = event.get("merge").map(MergeRules::check) {
            let place = format!("{at}/event/merge{}", fault.path);
            step.notes.push(ImportNote::new(NoteKind::MergeNotRead, place, fault.message));
        }
        Ok(step)
    }
}

/// The node of an item, and its text.
fn of_item(item: &Value, at: usize) -> Option<&Value> {
    item.as_array()?.get(at)
}

impl Recorded {
    /// Parents of other agents: `merges` if there are several parents, else `caused_by`.
    fn links(&self, node: &CfdNode) -> Vec<Link> {
        let rel = if node.parents.len() > 1 { Rel::Merges } else { Rel::CausedBy };
        let parents = node.parents.iter().filter_map(|id| self.nodes.get(id));
        let mut links: Vec<Link> = parents
            .filter(|(_, agent)| *agent != node.agent)
            .map(|(hash, _)| Link { rel, hash: *hash })
            .collect();
        links.sort_unstable();
        links.dedup();
        links
    }
}

/// A `state_delta` as a delta: one `set` for each key of an object, one for a list or another value. A removed value is set first,
/// so that it is gone whether or not it was there.
fn delta(node: &Value) -> Result<Delta, String> {
    let mut ops = Vec::new();
    let gone = |ops: &mut Vec<Op>, path: Pointer| {
        ops.push(Op::set(path.clone(), Value::Null));
        ops.push(Op { action: Action::Remove, path, value: None });
    };
    let members = node.get("state_delta").and_then(Value::as_object);
    for (top, value) in members.into_iter().flat_map(Object::iter) {
        if KERNEL_PATHS.contains(&&**top) || &**top == COUNTERS {
            return Err(format!("{top} in the state is the kernel's"));
        }
        if &**top == REMOVE {
            names(value)?
                .into_iter()
                .for_each(|name| gone(&mut ops, Pointer::of([&*tag::stored_name(name)])));
            continue;
        }
        let path = Pointer::of([&**top]);
        let value = tag::from_user_names(value);
        let is_tagged = |members: &&Object| members.iter().any(|(name, _)| tag::is_tag_name(name));
        match value.as_object().filter(|_| !WHOLE.contains(&&**top)).filter(|members| !is_tagged(members)) {
            Some(members) => {
                if members.is_empty() {
                    continue;
                }
                for (key, value) in members.iter() {
                    if &**key == REMOVE {
                        names(value)?
                            .into_iter()
                            .for_each(|name| gone(&mut ops, Pointer::of([&**top, &tag::stored_name(name)])));
                    } else {
                        ops.push(Op::set(Pointer::of([&**top, key]), value.clone()));
                    }
                }
            }
            None if matches!(&**top, "memory" | "beliefs") => {
                return Err(format!("state_delta.{top} is an object, not {}", value.described()));
            }
            None => ops.push(Op::set(path, value)),
        }
    }
    Ok(Delta(ops))
}

fn names(list: &Value) -> Result<Vec<&str>, String> {
    let names = list.as_array().and_then(|list| list.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
    names.ok_or_else(|| format!("{REMOVE} is a list of keys, not {list}"))
}

/// Writes a run: an imported node as it was, another transition as a node of its own.
fn write(
    trace: &Trace,
    _: bool,
    line: &mut dyn FnMut(WrittenPart<'_>) -> ControlFlow<()>,
) -> Result<(), WriteError> {
    let causal = Causal::of(trace, trace.tip())?;
    let written = vec![(String::new(), String::new())];
    let mut writer = NodeWriter { causal, written, newest: BTreeMap::new() };
    trace.moments(0, trace.tip(), &mut |_, record| {
        let Some(record) = record else { return Ok(ControlFlow::Continue(())) };
        let node = writer.node(record);
        let text = record.body().value(&format!("/intent/{NODE_TEXT}"));
        Ok(match text.as_ref().and_then(Value::as_str) {
            Some(text) => line(WrittenPart::Text(&format!("{text}\n"))),
            None => line(WrittenPart::Value(&node)),
        })
    })
}

/// Writes the nodes of one run.
struct NodeWriter {
    causal: Causal,
    /// Name and hash of each node, by tick; empty for the beginning of the run.
    written: Vec<(String, String)>,
    /// The place of the newest node of each agent.
    newest: BTreeMap<String, u64>,
}

impl NodeWriter {
    fn node(&mut self, record: &Record) -> Value {
        let tick = self.written.len() as u64;
        if let Some(imported) = record.body().value(&format!("/intent/{NODE}"))
            && let Ok(node) = CfdNode::read(&imported, None, Some(""))
        {
            self.newest.insert(node.agent, node.seq);
            self.written.push((node.node_id, node.hash));
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
        // A branch that an imported node begins continues with its number.
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
