//! Commitments: what an agent is bound to, why, and until when ("CCAS", called the CCAS paper here). A projection of the transitions of
//! a run, outside the state root, as counters are.
//!
//! Mode and attestation of evidence follow from author and type of the transition, never from what it says. A claim is grounded only by
//! an `attests` edge that the user, the runtime or the institution wrote from an atom that is not self-authored; a hard commitment binds
//! only with the user or the institution behind it.
//!
//! Rule: no sequence of self-authored events grounds a claim or makes a hard commitment bind; test
//! `nothing_self_authored_grounds_or_binds`.

mod form;
mod status;

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_object::delta::Delta;
use dendrer_object::record::Author;
use dendrer_object::{Pointer, Value};

pub use form::{CommitmentFault, check};
pub use status::{CommitmentStatus, StatusCause, Statuses};

/// Who says an atom, as the kernel derives it (CCAS paper, evidence modes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EvidenceMode {
    /// A person, in their own words.
    UserAuthored,
    /// A tool, as the runtime says.
    ToolAttested,
    /// A source outside of the agent, without an attestation.
    ExternallyObserved,
    /// The agent itself.
    SelfAuthored,
}

impl EvidenceMode {
    /// The word for it in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            EvidenceMode::UserAuthored => "user-authored",
            EvidenceMode::ToolAttested => "tool-attested",
            EvidenceMode::ExternallyObserved => "externally-observed",
            EvidenceMode::SelfAuthored => "self-authored",
        }
    }

    /// The mode of what a transition says.
    pub fn of(author: Author, type_name: &str) -> EvidenceMode {
        match (author, type_name) {
            (Author::User, _) => EvidenceMode::UserAuthored,
            (Author::Runtime, "action.result") => EvidenceMode::ToolAttested,
            (Author::Agent, "action.result") => EvidenceMode::ExternallyObserved,
            (Author::Agent, _) => EvidenceMode::SelfAuthored,
            (Author::Runtime | Author::Institution | Author::Kernel, _) => EvidenceMode::ExternallyObserved,
        }
    }
}

/// A piece of evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Atom {
    /// Its id in the run.
    pub id: Arc<str>,
    /// What it says.
    pub content: Value,
    /// Where it is from, in a few words.
    pub source: Option<Arc<str>>,
    /// Watched names that it changes.
    pub touches: Vec<Arc<str>>,
    /// Who says it.
    pub mode: EvidenceMode,
    /// Who attests it: `runtime`, `institution` or `kernel`; `None` for words of an agent, and of a person without a key.
    pub attestation: Option<&'static str>,
    /// The tick.
    pub tick: u64,
}

/// What a commitment is (CCAS paper, seven types).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommitmentKind {
    /// Something was observed.
    Observation,
    /// Something is supposed.
    Hypothesis,
    /// Something is to be reached.
    Goal,
    /// Something must be kept.
    Obligation,
    /// Something is preferred.
    Preference,
    /// Something is going to be done.
    Plan,
    /// Something is done by a child run.
    Delegation,
}

impl CommitmentKind {
    const ALL: [(CommitmentKind, &'static str); 7] = [
        (CommitmentKind::Observation, "obs"),
        (CommitmentKind::Hypothesis, "hyp"),
        (CommitmentKind::Goal, "goal"),
        (CommitmentKind::Obligation, "obl"),
        (CommitmentKind::Preference, "pref"),
        (CommitmentKind::Plan, "plan"),
        (CommitmentKind::Delegation, "deleg"),
    ];

    /// The word for it in lines and answers.
    pub fn as_str(self) -> &'static str {
        CommitmentKind::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// Reads the word.
    pub fn parse(name: &str) -> Option<CommitmentKind> {
        CommitmentKind::ALL.iter().find(|(_, each)| *each == name).map(|(kind, _)| *kind)
    }

    /// Whether it is a claim, which can be stale and must be grounded.
    pub fn is_claim(self) -> bool {
        matches!(self, CommitmentKind::Observation | CommitmentKind::Hypothesis | CommitmentKind::Plan)
    }
}

/// On whose behalf a commitment is, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommitmentOwner {
    /// The agent.
    Agent,
    /// The parent of a delegated run.
    Parent,
    /// The institution or the pack.
    Policy,
    /// The user.
    User,
}

impl CommitmentOwner {
    /// The word for it in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            CommitmentOwner::Agent => "agent",
            CommitmentOwner::Parent => "parent",
            CommitmentOwner::Policy => "policy",
            CommitmentOwner::User => "user",
        }
    }

    /// Its rank: user and policy are alike.
    pub fn rank(self) -> u8 {
        match self {
            CommitmentOwner::Agent => 0,
            CommitmentOwner::Parent => 1,
            CommitmentOwner::Policy | CommitmentOwner::User => 2,
        }
    }

    fn of_author(author: Author) -> CommitmentOwner {
        match author {
            Author::User => CommitmentOwner::User,
            Author::Institution => CommitmentOwner::Policy,
            Author::Agent | Author::Runtime | Author::Kernel => CommitmentOwner::Agent,
        }
    }
}

/// A commitment as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Commitment {
    /// Its id in the run.
    pub id: Arc<str>,
    /// What it is.
    pub kind: CommitmentKind,
    /// Whether an action that violates it is not admissible.
    pub is_hard: bool,
    /// What it says to people.
    pub gloss: Arc<str>,
    /// When it applies.
    pub guard: Option<Arc<str>>,
    /// When it is done.
    pub discharge: Option<Arc<str>>,
    /// What must be true of an action.
    pub holds: Option<Arc<str>>,
    /// What must not be true of an action.
    pub condition: Option<Arc<str>>,
    /// Names and places whose change makes it stale.
    pub watch: Vec<Arc<str>>,
    /// A higher one wins.
    pub priority: f64,
    /// Where it applies.
    pub scope: Arc<str>,
    /// The commitment that it takes the place of.
    pub supersedes: Option<Arc<str>>,
    /// Who wrote it.
    pub author: Author,
    /// The type of the transition that brought it.
    pub mode: EvidenceMode,
    /// The tick.
    pub tick: u64,
}

/// What one commitment or atom has to do with another (CCAS paper, six edge kinds).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeKind {
    /// It is a reason for it.
    Supports,
    /// It falls with it.
    DependsOn,
    /// Both cannot be kept.
    ConflictsWith,
    /// It says it more exactly.
    Refines,
    /// It ends it.
    Discharges,
    /// It grounds it.
    Attests,
}

impl EdgeKind {
    const ALL: [(EdgeKind, &'static str); 6] = [
        (EdgeKind::Supports, "supports"),
        (EdgeKind::DependsOn, "depends-on"),
        (EdgeKind::ConflictsWith, "conflicts-with"),
        (EdgeKind::Refines, "refines"),
        (EdgeKind::Discharges, "discharges"),
        (EdgeKind::Attests, "attests"),
    ];

    /// The word for it in lines and answers.
    pub fn as_str(self) -> &'static str {
        EdgeKind::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// Reads the word.
    pub fn parse(name: &str) -> Option<EdgeKind> {
        EdgeKind::ALL.iter().find(|(_, each)| *each == name).map(|(kind, _)| *kind)
    }
}

/// An edge as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitmentEdge {
    /// Its kind.
    pub kind: EdgeKind,
    /// The id of an atom or a commitment.
    pub from: Arc<str>,
    /// The id of an atom or a commitment.
    pub to: Arc<str>,
    /// Who wrote it.
    pub author: Author,
    /// The tick.
    pub tick: u64,
}

/// How a commitment was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClosedAs {
    /// It is done.
    Discharged,
    /// It is taken back.
    Retracted,
    /// Another took its place.
    Superseded,
}

/// A commitment that was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedCommitment {
    /// How.
    pub how: ClosedAs,
    /// The tick.
    pub tick: u64,
    /// Why, in words.
    pub reason: Option<Arc<str>>,
}

/// Why something that a transition brings has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithoutEffect {
    /// The tick.
    pub tick: u64,
    /// The id that it is about.
    pub id: Arc<str>,
    /// What is wrong: `id_used`, `unknown_id` or `rank`.
    pub why: &'static str,
}

/// The commitments of a run: what its transitions brought, up to a tick.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Commitments {
    /// Evidence, by id.
    pub atoms: BTreeMap<Arc<str>, Atom>,
    /// Commitments, in the order in which they were written.
    pub all: Vec<Commitment>,
    /// Edges, in the order in which they were written.
    pub edges: Vec<CommitmentEdge>,
    /// What was closed, by id.
    pub closed: BTreeMap<Arc<str>, ClosedCommitment>,
    /// What has no effect.
    pub ignored: Vec<WithoutEffect>,
    /// When a watched name was touched or written for the last time.
    changed: BTreeMap<Arc<str>, u64>,
    /// The places that commitments watch, each with its name.
    watched: BTreeMap<Arc<str>, Option<Pointer>>,
}

impl Commitments {
    /// Takes what a transition brings: its content as it is sealed, and the change of state that it makes.
    pub fn apply(
        &mut self,
        tick: u64,
        author: Author,
        type_name: &str,
        content: &Value,
        delta: Option<&Delta>,
    ) {
        if let Some(delta) = delta {
            self.write(tick, delta);
        }
        let mode = EvidenceMode::of(author, type_name);
        let list = |name: &str| content.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        for value in list(form::EVIDENCE).iter() {
            self.add_atom(value, tick, author, mode);
        }
        for value in list(form::COMMITMENTS).iter() {
            self.add(value, tick, author, mode);
        }
        for value in list(form::EDGES).iter() {
            self.add_edge(value, tick, author);
        }
        for value in list(form::CLOSES).iter() {
            self.close(value, tick, author);
        }
    }

    /// The commitment with an id.
    pub fn get(&self, id: &str) -> Option<&Commitment> {
        self.all.iter().find(|one| &*one.id == id)
    }

    fn has(&self, id: &str) -> bool {
        self.atoms.contains_key(id) || self.get(id).is_some()
    }

    fn ignore(&mut self, tick: u64, id: &str, why: &'static str) {
        self.ignored.push(WithoutEffect { tick, id: id.into(), why });
    }

    fn write(&mut self, tick: u64, delta: &Delta) {
        for (name, place) in &self.watched {
            let is_met = |path: &Pointer| place.as_ref().is_some_and(|place| place.overlaps(path));
            if delta.paths().any(is_met) {
                self.changed.insert(Arc::clone(name), tick);
            }
        }
    }

    fn add_atom(&mut self, value: &Value, tick: u64, author: Author, mode: EvidenceMode) {
        let Some(id) = form::text(value, "id") else { return };
        if self.has(&id) {
            return self.ignore(tick, &id, "id_used");
        }
        let attestation = match (author, mode) {
            (_, EvidenceMode::ToolAttested) => Some("runtime"),
            (Author::Runtime, _) => Some("runtime"),
            (Author::Institution, _) => Some("institution"),
            (Author::Kernel, _) => Some("kernel"),
            (Author::Agent | Author::User, _) => None,
        };
        let touches = form::texts(value, "touches");
        for name in &touches {
            self.changed.insert(Arc::clone(name), tick);
        }
        let content = value.get("content").cloned().unwrap_or(Value::Null);
        let source = form::text(value, "source");
        self.atoms.insert(Arc::clone(&id), Atom { id, content, source, touches, mode, attestation, tick });
    }

    fn add(&mut self, value: &Value, tick: u64, author: Author, mode: EvidenceMode) {
        let (Some(id), Some(gloss)) = (form::text(value, "id"), form::text(value, "gloss")) else { return };
        let Some(kind) = form::text(value, "type").and_then(|name| CommitmentKind::parse(&name)) else {
            return;
        };
        if self.has(&id) {
            return self.ignore(tick, &id, "id_used");
        }
        let made = Commitment {
            id: Arc::clone(&id),
            kind,
            is_hard: value.get("hard").and_then(Value::as_bool).unwrap_or(false),
            gloss,
            guard: form::text(value, "guard"),
            discharge: form::text(value, "discharge"),
            holds: form::text(value, "holds"),
            condition: form::text(value, "condition"),
            watch: form::texts(value, "watch"),
            priority: value.get("priority").and_then(Value::as_f64).unwrap_or(0.0),
            scope: form::text(value, "scope").unwrap_or_else(|| "global".into()),
            supersedes: form::text(value, "supersedes"),
            author,
            mode,
            tick,
        };
        for name in &made.watch {
            let place = Pointer::from_place(name).and_then(Result::ok);
            self.watched.insert(Arc::clone(name), place);
        }
        let superseded = made.supersedes.clone();
        self.all.push(made);
        for (member, kind) in [
            ("support", EdgeKind::Supports),
            ("depends_on", EdgeKind::DependsOn),
            ("conflicts", EdgeKind::ConflictsWith),
            ("refines", EdgeKind::Refines),
        ] {
            for other in form::texts(value, member) {
                // What supports a commitment is where the edge is from.
                let (from, to) = if kind == EdgeKind::Supports {
                    (other, Arc::clone(&id))
                } else {
                    (Arc::clone(&id), other)
                };
                self.edges.push(CommitmentEdge { kind, from, to, author, tick });
            }
        }
        if let Some(old) = superseded {
            self.end(&old, ClosedAs::Superseded, tick, author, None);
        }
    }

    fn add_edge(&mut self, value: &Value, tick: u64, author: Author) {
        let kind = form::text(value, "edge").and_then(|name| EdgeKind::parse(&name));
        let (Some(kind), Some(from), Some(to)) = (kind, form::text(value, "from"), form::text(value, "to"))
        else {
            return;
        };
        if kind == EdgeKind::Discharges {
            self.end(&to, ClosedAs::Discharged, tick, author, None);
        }
        self.edges.push(CommitmentEdge { kind, from, to, author, tick });
    }

    fn close(&mut self, value: &Value, tick: u64, author: Author) {
        let Some(id) = form::text(value, "id") else { return };
        let how = match form::text(value, "as").as_deref() {
            Some("discharged") => ClosedAs::Discharged,
            Some("retracted") => ClosedAs::Retracted,
            Some("superseded") => ClosedAs::Superseded,
            _ => return,
        };
        self.end(&id, how, tick, author, form::text(value, "reason"));
    }

    /// Closes a commitment, if the author has the rank of its owner.
    fn end(&mut self, id: &str, how: ClosedAs, tick: u64, author: Author, reason: Option<Arc<str>>) {
        let Some(one) = self.get(id) else { return self.ignore(tick, id, "unknown_id") };
        if CommitmentOwner::of_author(author).rank() < self.owner(one).rank() {
            return self.ignore(tick, id, "rank");
        }
        self.closed.entry(id.into()).or_insert(ClosedCommitment { how, tick, reason });
    }

    /// On whose behalf a commitment is.
    pub fn owner(&self, one: &Commitment) -> CommitmentOwner {
        match CommitmentOwner::of_author(one.author) {
            CommitmentOwner::Agent if self.has_user_behind(one) => CommitmentOwner::User,
            owner => owner,
        }
    }

    /// What supports a commitment, in the order in which it was found: ids with the edge that leads there.
    pub fn closure<'c>(&'c self, id: &str) -> Vec<&'c CommitmentEdge> {
        let mut found: Vec<&CommitmentEdge> = Vec::new();
        let mut open: Vec<Arc<str>> = vec![id.into()];
        let mut seen: std::collections::BTreeSet<Arc<str>> = open.iter().cloned().collect();
        while let Some(id) = open.pop() {
            for edge in self.edges.iter().filter(|edge| edge.kind == EdgeKind::Supports && edge.to == id) {
                if seen.insert(Arc::clone(&edge.from)) {
                    open.push(Arc::clone(&edge.from));
                }
                found.push(edge);
            }
        }
        found.sort_by_key(|edge| edge.tick);
        found
    }

    fn has_user_behind(&self, one: &Commitment) -> bool {
        let is_user =
            |id: &str| self.atoms.get(id).is_some_and(|atom| atom.mode == EvidenceMode::UserAuthored);
        self.closure(&one.id).iter().any(|edge| is_user(&edge.from))
    }

    /// The edge that grounds a commitment: an attestation by the user, the runtime or the institution, from an atom that is not
    /// self-authored.
    pub fn grounded_by(&self, id: &str) -> Option<&CommitmentEdge> {
        self.edges.iter().find(|edge| {
            let is_authority = matches!(edge.author, Author::User | Author::Runtime | Author::Institution);
            let from = self.atoms.get(&edge.from);
            edge.kind == EdgeKind::Attests
                && *edge.to == *id
                && is_authority
                && from.is_some_and(|atom| atom.mode != EvidenceMode::SelfAuthored)
        })
    }

    /// Whether a commitment is hard and binds.
    pub fn binds(&self, one: &Commitment) -> bool {
        one.is_hard && (matches!(one.author, Author::User | Author::Institution) || self.has_user_behind(one))
    }

    /// The tick at which the support of a commitment was given for the last time.
    fn supported_at(&self, one: &Commitment) -> u64 {
        let edges = self
            .edges
            .iter()
            .filter(|edge| matches!(edge.kind, EdgeKind::Supports | EdgeKind::Attests) && edge.to == one.id);
        edges.map(|edge| edge.tick).chain([one.tick]).max().unwrap_or(one.tick)
    }

    /// The watched name that changed after the last support of a commitment, and when.
    fn changed_since<'c>(&self, one: &'c Commitment) -> Option<(&'c Arc<str>, u64)> {
        let since = self.supported_at(one);
        let changes = one.watch.iter().filter_map(|name| Some((name, *self.changed.get(name)?)));
        changes.filter(|(_, tick)| *tick > since).max_by_key(|(_, tick)| *tick)
    }
}
