//! The branches of the agents of a run, checked by the three invariants of the forensic debugger specification (2) and by what these
//! leave open: links across forks, existence, order, and one place in a branch that is taken twice.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_object::record::{Record, Rel};
use dendrer_object::{Digest, RunName};

use crate::error::Error;
use crate::run::trace::ReadHandle;
use crate::run::trace::Trace;

dendrer_object::words! {
    /// A rule that a node breaks.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum BranchRule {
        /// The node's hash is that of its text.
        Hash = "hash",
        /// Places in a branch follow each other without a gap.
        Monotonicity = "monotonicity",
        /// A node names the hash of the node before it in its branch.
        Lineage = "lineage",
        /// The node before it in its branch is one of its parents.
        Containment = "containment",
        /// The first node of a branch is linked to one of its parents.
        ForkLink = "fork_link",
        /// Each parent is there.
        Exists = "exists",
        /// No node is its own ancestor.
        Acyclic = "acyclic",
        /// An agent has one node at a place, and an id names one node.
        Equivocation = "equivocation",
        /// The version of the schema is known.
        Version = "version",
    }
}

/// What is wrong with a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchFault {
    /// The tick, or the line of a file from 1.
    pub tick: u64,
    /// What the node is called.
    pub node: String,
    /// The rule that it breaks.
    pub rule: BranchRule,
    /// What the rule asks for.
    pub expected: String,
    /// What is there.
    pub got: String,
}

/// The branch of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BranchReport {
    /// The agent.
    pub agent: String,
    /// How many nodes it has.
    pub nodes: u64,
    /// What is wrong with them, in order.
    pub faults: Vec<BranchFault>,
    /// Records of other runs that caused the first node: the agent begins with the run.
    pub begins: Vec<Digest>,
}

/// The branches of a run.
#[derive(Debug, Clone)]
pub struct BranchesAnswer {
    /// The run.
    pub run: RunName,
    /// The branches, in the order of their first nodes.
    pub branches: Vec<BranchReport>,
    /// Ticks whose agent or place was erased or withheld: they are in no branch.
    pub hidden: Vec<u64>,
}

impl BranchesAnswer {
    /// Whether no rule is broken.
    pub fn is_valid(&self) -> bool {
        self.branches.iter().all(|branch| branch.faults.is_empty())
    }
}

/// What the rules do not show, each with a word for programs.
pub const OPEN: [(&str, &str); 3] = [
    ("links", "that an agent saw what it links to: it names its parents itself"),
    ("unlinked", "that an agent saw nothing else: what it read without a link is not on record"),
    ("names", "who an agent is: its name is what the recorder says"),
];

/// Where the newest node of a branch is.
struct Newest {
    id: Digest,
    seq: u64,
}

/// Checks the branches of the agents of a run.
pub fn branches(trace: &Trace) -> Result<BranchesAnswer, Error> {
    let store = trace.store().to_handle();
    let mut ticks: HashMap<Digest, u64> = HashMap::from([(trace.start().id(), 0)]);
    let mut newest: BTreeMap<Arc<str>, Newest> = BTreeMap::new();
    let mut places: BTreeMap<Arc<str>, usize> = BTreeMap::new();
    let mut answer = BranchesAnswer { run: trace.name().clone(), branches: Vec::new(), hidden: Vec::new() };
    trace.try_each::<Error>(1, trace.tip(), &mut |tick, record| {
        let body = record.body();
        let agent = body.value("/agent_id").and_then(|agent| agent.as_str().map(Arc::<str>::from));
        let seq = body.value("/seq").and_then(|seq| seq.as_u64());
        let (Some(agent), Some(seq)) = (agent, seq) else {
            answer.hidden.push(tick);
            ticks.insert(record.id(), tick);
            return Ok(ControlFlow::Continue(()));
        };
        let at = *places.entry(Arc::clone(&agent)).or_insert_with(|| {
            answer.branches.push(BranchReport { agent: agent.to_string(), ..BranchReport::default() });
            answer.branches.len() - 1
        });
        let branch = &mut answer.branches[at];
        branch.nodes += 1;
        let mut fault = |rule, expected: String, got: String| {
            let node = record.id().short();
            branch.faults.push(BranchFault { tick, node, rule, expected, got });
        };
        let mut begins = Vec::new();
        let to =
            |rel: Rel| record.header().links.iter().filter(move |link| link.rel == rel).map(|link| link.hash);
        let own = own_predecessor(&record, newest.get(&agent).map(|newest| newest.id));
        if let Some((rule, expected)) = wrong_number(newest.get(&agent), seq) {
            fault(rule, expected.to_string(), seq.to_string());
        }
        if let Some(last) = newest.get(&agent)
            && own != Some(last.id)
        {
            let got = own.map_or_else(|| "no link".to_owned(), |id| id.short());
            fault(BranchRule::Lineage, last.id.short(), got.clone());
            fault(BranchRule::Containment, last.id.short(), got);
        }
        let is_first = !newest.contains_key(&agent);
        let linked = to(Rel::Merges).map(|id| (id, true)).chain(to(Rel::CausedBy).map(|id| (id, false)));
        for (target, is_merged) in linked.filter(|(target, _)| !ticks.contains_key(target)) {
            if store.find(&target)?.is_none() {
                fault(BranchRule::Exists, target.short(), "no such record".to_owned());
            } else if is_first && is_merged {
                fault(BranchRule::ForkLink, "a record of this run".to_owned(), target.short());
            } else if is_first {
                begins.push(target);
            }
        }
        answer.branches[at].begins.extend(begins);
        newest.insert(agent, Newest { id: record.id(), seq });
        ticks.insert(record.id(), tick);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(answer)
}

/// The rule that the number of a node breaks, and the number that is due.
fn wrong_number(last: Option<&Newest>, seq: u64) -> Option<(BranchRule, u64)> {
    let due = last.map_or(1, |last| last.seq + 1);
    match last {
        _ if seq == due => None,
        Some(last) if seq == last.seq => Some((BranchRule::Equivocation, due)),
        _ => Some((BranchRule::Monotonicity, due)),
    }
}

/// The record that a transition names as its agent's own before it: by a link, or as the record before it in the run.
fn own_predecessor(record: &Record, newest: Option<Digest>) -> Option<Digest> {
    let linked = record.header().links.iter().find(|link| link.rel == Rel::Predecessor).map(|link| link.hash);
    linked.or_else(|| record.header().prev.filter(|prev| Some(*prev) == newest))
}
