//! Effects of a line, by version 2 of the rules: a word has an effect on what it lowers by its rank (design, section 14.2).
//!
//! First the items of the line, then what it adopts, its edges and its closings: a name may mean an item of the same line. A member
//! that names a missing item has no effect, also not later.

use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_object::Value;
use dendrer_object::record::Author;

use super::owner::split_address;
use super::projection::read_commitment;
use super::{
    AdoptedCommitment, ClosedAs, ClosedCommitment, Commitment, CommitmentEdge, CommitmentOwner, Commitments,
    EdgeKind, EvidenceMode, form,
};

/// The member of a line with the ids of the commitments that its author makes their own.
pub const ADOPTS: &str = "adopts";

/// Members of a commitment that name others, each with the kind of edge.
const NAMING: [(&str, EdgeKind); 4] = [
    ("support", EdgeKind::Supports),
    ("depends_on", EdgeKind::DependsOn),
    ("conflicts", EdgeKind::ConflictsWith),
    ("refines", EdgeKind::Refines),
];

/// The transition that brings something.
pub(super) struct Said<'a> {
    pub(super) tick: u64,
    pub(super) author: Author,
    /// The agent or the user.
    pub(super) by: Option<Arc<str>>,
    pub(super) type_name: &'a str,
}

impl Said<'_> {
    /// Whose items these are.
    fn writer(&self) -> CommitmentOwner {
        CommitmentOwner::of(self.author, self.by.clone())
    }

    /// With whose rank it closes: the kernel does what those who may have decided.
    fn actor(&self) -> CommitmentOwner {
        match self.author {
            Author::Kernel => CommitmentOwner::Parent,
            _ => self.writer(),
        }
    }
}

fn list<'v>(content: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    content.get(name).and_then(Value::as_array).into_iter().flat_map(|list| list.iter())
}

impl Commitments {
    /// Takes the lists of a transition.
    pub(super) fn apply_ranked(&mut self, said: &Said<'_>, content: &Value) {
        let tool = content.get("action").and_then(|action| action.get("tool")).and_then(Value::as_str);
        for value in list(content, form::EVIDENCE) {
            let members = [
                Some(("atom", value.clone())),
                Some(("author", said.author.as_str().into())),
                Some(("type", said.type_name.into())),
                Some(("tick", said.tick.into())),
                tool.map(|tool| ("tool", Value::from(tool))),
                said.by.clone().map(|by| ("by", Value::String(by))),
            ];
            self.add_ranked_atom(said, Value::record(members.into_iter().flatten()));
        }
        let began = form::first_said(content).map_or(self.now(), |first| first.min(self.now()));
        let brought: Vec<(Arc<str>, &Value)> = list(content, form::COMMITMENTS)
            .filter_map(|value| Some((self.add_ranked(said, value, began)?, value)))
            .collect();
        for name in form::texts(content, ADOPTS) {
            self.adopt(said, &name);
        }
        for (written, value) in &brought {
            // An item of this line may have given its plain id to another one of it.
            let Some(id) = self.held_by(written, &said.writer()) else { continue };
            for (member, kind) in NAMING {
                for other in form::texts(value, member) {
                    self.push_named(said, kind, &id, &other);
                }
            }
            if let Some(old) = form::text(value, "supersedes") {
                self.end_named(said, &old, ClosedAs::Superseded, None);
            }
        }
        for value in list(content, form::EDGES) {
            self.add_ranked_edge(said, value);
        }
        for value in list(content, form::CLOSES) {
            let how = form::text(value, "as").as_deref().and_then(ClosedAs::from_word);
            if let (Some(id), Some(how)) = (form::text(value, "id"), how) {
                self.end_named(said, &id, how, form::text(value, "reason"));
            }
        }
    }

    fn add_ranked_atom(&mut self, said: &Said<'_>, value: Value) {
        let Some(id) = value.get("atom").and_then(|atom| form::text(atom, "id")) else { return };
        match self.new_place(said, &id) {
            Some(held) => self.hold_atom(&held, value),
            None => self.ignore_by(said, &id, "id_used"),
        }
    }

    /// Adds a commitment, whose length counts from a time. Returns the id as it was written.
    fn add_ranked(&mut self, said: &Said<'_>, value: &Value, began: u64) -> Option<Arc<str>> {
        let mut made =
            read_commitment(value, said.tick, said.author, said.type_name, (&self.scope(), began))?;
        made.by = said.by.clone();
        let written = Arc::clone(&made.id);
        let Some(held) = self.new_place(said, &written) else {
            self.ignore_by(said, &written, "id_used");
            return None;
        };
        made.id = held;
        self.insert(made);
        Some(written)
    }

    /// The id under which a new item is held; `None` for one that its author has already, or that reads as an address.
    fn new_place(&mut self, said: &Said<'_>, id: &str) -> Option<Arc<str>> {
        if split_address(id).is_some() {
            return None;
        }
        self.place_for(id, &said.writer())
    }

    fn adopt(&mut self, said: &Said<'_>, name: &str) {
        let owner = said.writer();
        let Some(id) = self.find_for(name, Some(&owner)).filter(|id| self.get(id).is_some()) else {
            return self.ignore_by(said, name, "unknown_id");
        };
        let is_authority = matches!(said.author, Author::User | Author::Institution);
        let is_above = self.get(&id).is_some_and(|one| owner.may_lower(&self.owner(one)));
        if !is_authority || !is_above {
            return self.ignore_by(said, &id, "rank");
        }
        let tick = said.tick;
        self.change_one(&id, |one| one.adopted = Some(AdoptedCommitment { owner, tick }));
    }

    fn push_named(&mut self, said: &Said<'_>, kind: EdgeKind, id: &Arc<str>, other: &str) {
        let Some(other) = self.find_for(other, Some(&said.writer())) else {
            return self.ignore_by(said, other, "unknown_id");
        };
        // The support of a commitment is the source of the edge.
        let (from, to) = match kind {
            EdgeKind::Supports => (other, Arc::clone(id)),
            _ => (Arc::clone(id), other),
        };
        let (author, by, tick) = (said.author, said.by.clone(), said.tick);
        self.push_edge(CommitmentEdge { kind, from, to, author, by, tick });
    }

    fn add_ranked_edge(&mut self, said: &Said<'_>, value: &Value) {
        let kind = form::text(value, "edge").and_then(|name| EdgeKind::from_word(&name));
        let (Some(kind), Some(from), Some(to)) = (kind, form::text(value, "from"), form::text(value, "to"))
        else {
            return;
        };
        let writer = said.writer();
        let found = [&from, &to].map(|name| self.find_for(name, Some(&writer)));
        let [Some(from), Some(to)] = found else {
            let missing = if found[0].is_none() { from } else { to };
            return self.ignore_by(said, &missing, "unknown_id");
        };
        if kind == EdgeKind::Discharges {
            self.end_ranked(said, &to, ClosedAs::Discharged, None);
        }
        let (author, by, tick) = (said.author, said.by.clone(), said.tick);
        self.push_edge(CommitmentEdge { kind, from, to, author, by, tick });
    }

    fn end_named(&mut self, said: &Said<'_>, name: &str, how: ClosedAs, reason: Option<Arc<str>>) {
        match self.find_for(name, Some(&said.writer())) {
            Some(id) => self.end_ranked(said, &id, how, reason),
            None => self.ignore_by(said, name, "unknown_id"),
        }
    }

    fn end_ranked(&mut self, said: &Said<'_>, id: &str, how: ClosedAs, reason: Option<Arc<str>>) {
        match self.get(id).map(|one| said.actor().may_lower(&self.owner(one))) {
            None => self.ignore_by(said, id, "unknown_id"),
            Some(false) => self.ignore_by(said, id, "rank"),
            Some(true) => self.change_one(id, |one| {
                one.closed.get_or_insert(ClosedCommitment { how, tick: said.tick, reason });
            }),
        }
    }

    /// Keeps that something has no effect, and who wrote it.
    fn ignore_by(&mut self, said: &Said<'_>, id: &str, why: &str) {
        self.ignored.push(Value::record([
            ("by", Value::from(said.writer().to_string().as_str())),
            ("id", id.into()),
            ("tick", said.tick.into()),
            ("why", why.into()),
        ]));
    }

    /// Ends the commitment of a name, with the kernel as the author.
    pub(super) fn end_by_kernel(&mut self, tick: u64, name: &str, how: ClosedAs) {
        let said = Said { tick, author: Author::Kernel, by: None, type_name: "" };
        self.end_named(&said, name, how, None);
    }

    /// Whether an edge has an effect on a commitment that it lowers: its writer is the owner, or of a higher rank.
    pub fn has_effect(&self, edge: &CommitmentEdge, on: &Commitment) -> bool {
        !self.is_since(2) || edge.writer().may_lower(&self.owner(on))
    }

    /// Whether an edge is a claim alone: it has no effect on any commitment that it is about.
    pub fn is_claimed(&self, edge: &CommitmentEdge) -> bool {
        if !self.is_since(2) {
            return false;
        }
        let lowered: &[&Arc<str>] = match edge.kind {
            EdgeKind::Attests => return !is_authority(edge.author),
            EdgeKind::Supports | EdgeKind::Discharges => &[&edge.to],
            EdgeKind::DependsOn | EdgeKind::Refines => &[&edge.from],
            EdgeKind::ConflictsWith => &[&edge.from, &edge.to],
        };
        let mut ends = lowered.iter().filter_map(|id| self.get(id)).peekable();
        ends.peek().is_some() && !ends.any(|one| self.has_effect(edge, one))
    }

    /// Whether an edge renews what it supports: it is the word of the owner or of a higher rank, or an attestation.
    pub(super) fn renews(&self, edge: &CommitmentEdge) -> bool {
        let Some(one) = self.get(&edge.to) else { return false };
        if edge.kind == EdgeKind::Attests && is_authority(edge.author) {
            return true;
        }
        // The owner at that time: an adoption changes nothing that was before it.
        let adopted = one.adopted.as_ref().filter(|adopted| adopted.tick <= edge.tick);
        let owner = match adopted {
            _ if one.is_imported => CommitmentOwner::Parent,
            Some(adopted) => adopted.owner.clone(),
            None => one.writer(),
        };
        edge.writer().may_lower(&owner)
    }

    /// The pairs of binding hard commitments in conflict that are both in force: neither blocks the other. Each with its edge.
    pub fn ties(&self, is_open: impl Fn(&Commitment) -> bool) -> Vec<CommitmentEdge> {
        if !self.is_since(2) {
            return Vec::new();
        }
        let binds = |id: &str| self.get(id).is_some_and(|one| self.binds(one) && is_open(one));
        let is_tie = |edge: &CommitmentEdge| {
            edge.kind == EdgeKind::ConflictsWith
                && edge.from != edge.to
                && binds(&edge.from)
                && binds(&edge.to)
        };
        let mut seen = BTreeSet::new();
        let pair = |edge: &CommitmentEdge| {
            let (from, to) = (Arc::clone(&edge.from), Arc::clone(&edge.to));
            if from <= to { (from, to) } else { (to, from) }
        };
        self.edges().filter(is_tie).filter(|edge| seen.insert(pair(edge))).collect()
    }

    /// The ids of a line that its author has used for something else before, each with the tick.
    pub(super) fn used_before(
        &self,
        member: impl Fn(&str) -> Option<Value>,
        writer: &CommitmentOwner,
    ) -> Option<(Arc<str>, u64)> {
        let items = |name: &str| member(name).and_then(|list| list.as_array().cloned()).unwrap_or_default();
        let used = |id: &Arc<str>, is_same: &dyn Fn(&str) -> bool| {
            let held = self.held_by(id, writer)?;
            (!is_same(&held)).then(|| (Arc::clone(id), self.tick_of(&held)))
        };
        let atoms = items(form::EVIDENCE);
        let mut atoms = atoms.iter().filter_map(|value| Some((form::text(value, "id")?, value)));
        let of_atom = atoms.find_map(|(id, value)| {
            used(&id, &|held| self.atoms.get(held).is_some_and(|held| held.get("atom") == Some(value)))
        });
        let made = items(form::COMMITMENTS);
        let mut made = made.iter().filter_map(|value| Some((form::text(value, "id")?, value)));
        of_atom.or_else(|| {
            made.find_map(|(id, value)| {
                used(&id, &|held| self.get(held).is_some_and(|one| one.written == *value))
            })
        })
    }

    /// The mode of the evidence at the begin of an edge.
    pub(super) fn is_own_note(&self, edge: &CommitmentEdge) -> bool {
        let said = self.said_by(&edge.from).map(|(mode, _)| mode);
        matches!(said, None | Some(EvidenceMode::SelfAuthored)) && edge.author == Author::Agent
    }
}

/// Whether an author attests.
pub(super) fn is_authority(author: Author) -> bool {
    matches!(author, Author::User | Author::Runtime | Author::Institution)
}
