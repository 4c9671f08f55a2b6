//! The projection: what the transitions of a run brought, up to a tick.
//!
//! Parts that grow with the events of a run (atoms, edges, changes) are held in persistent trees, so a copy of the head costs
//! nothing, and an event costs the same after a thousand others as after a million. Parts that grow with the commitments are in
//! [`Core`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use dendrer_object::delta::Delta;
use dendrer_object::record::{Author, Record};
use dendrer_object::value::{Array, Object};
use dendrer_object::{COMMITMENT_LISTS, Pointer, Timestamp, UNATTESTED, Value};

use super::authorize::ToolIndex;
use super::owner::name_in;
use super::ranked::{ADOPTS, Said};
use super::{
    AdoptedCommitment, Atom, ClosedAs, ClosedCommitment, Commitment, CommitmentEdge, CommitmentKind,
    CommitmentOwner, DelegationContract, EdgeKind, EvidenceMode, ParentSaid, Used, form, merge, spent,
};
use crate::expr::{Expr, Scope, Until, until_of};
use crate::step::MARKERS_VERSION;

/// Why something that a transition brings has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithoutEffect {
    /// The tick.
    pub tick: u64,
    /// The id that it is about.
    pub id: Arc<str>,
    /// The fault: `id_used`, `unknown_id` or `rank`.
    pub why: Arc<str>,
    /// Who wrote it, where that is kept.
    pub by: Option<Arc<str>>,
}

/// The commitments of a run at a tick (CCAS paper 6.1: evidence, commitments and their graph).
#[derive(Clone)]
pub struct Commitments {
    /// Atoms by id, each with author, type and tick.
    pub(super) atoms: Object,
    /// Edges in order.
    pub(super) edges: Array,
    /// For each id, the numbers of the edges that begin there.
    pub(super) from: Object,
    /// For each id, the numbers of the edges that end there.
    pub(super) to: Object,
    /// Ids with a user-authored atom in their support.
    backed: Object,
    /// When a watched name was touched or written for the last time.
    changed: Object,
    /// When an atom of an agent touched a watched name for the last time; it makes claims of agents stale, and no others.
    touched_by_agents: Object,
    pub(super) ignored: Array,
    core: Arc<Core>,
    /// The tools whose results ground a claim, where the pack names them.
    pub(super) trust: Option<Arc<BTreeSet<Arc<str>>>>,
    /// In a delegated run, its contract.
    contract: Option<Arc<DelegationContract>>,
    /// The entries of the parents of a delegated run, as far as its records hold them; the nearest first.
    pub(super) parents: Arc<[ParentSaid]>,
    /// The use by a delegated run of its budget.
    pub(super) used: Used,
    /// The first tick whose lists were erased or withheld: what they brought is not known.
    hidden: Option<u64>,
    /// The constants and definitions of the pack.
    names: Option<Value>,
    /// The names that expressions know, by version 2 of the rules.
    scope: Arc<Scope>,
    /// The amounts that committed calls added to the sums of commitments.
    pub(super) spent: spent::Sums,
    /// When the newest transition was recorded, in milliseconds since 1970; while a transition is judged, when it is.
    now: u64,
    /// How many watched names were looked at for changes of the state.
    touched: u64,
    /// The version of the kernel's rules by which the run goes.
    version: u64,
    /// Ticks from which on another version applies, in order: those at which forks begin.
    later: Vec<(u64, u64)>,
}

/// The part that grows with the number of commitments.
#[derive(Clone, Default)]
pub(super) struct Core {
    pub(super) all: Vec<Arc<Commitment>>,
    by_id: BTreeMap<Arc<str>, usize>,
    /// Watched places of the state, each with the names that mean it.
    places: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// For each watched name, who watches it.
    watchers: BTreeMap<Arc<str>, Vec<usize>>,
    /// The hard ones, and those of them that a call of a tool can violate.
    pub(super) hard: Vec<usize>,
    pub(super) for_tool: ToolIndex,
    /// Whether an expression reads the statuses of commitments.
    pub(super) reads_statuses: bool,
}

/// The member of the kept form with the id under which an item is held, where that is not the one that was written.
pub(super) const HELD_AS: &str = "id";

/// Members of the kept form.
pub(super) const ATOMS: &str = "atoms";
pub(super) const EDGES: &str = "edges";
const CHANGED: &str = "changed";
const TOUCHED_BY_AGENTS: &str = "touched_by_agents";
const IGNORED: &str = "without_effect";
pub(super) const ITEMS: &str = "commitments";

/// The member of a `run` record with the commitments that the run begins with.
pub const INITIAL: &str = "commitments";

/// The member of a transition of the kernel with what a child run brought (CCAS paper 6.5).
pub const ACCEPTED: &str = "accepted";

/// The member of the kept form with the tick from which on something is not known.
pub(super) const HIDDEN: &str = "hidden";

/// The member of a pack, and of the kept form, with the tools whose results ground a claim.
pub const TRUST: &str = "trust";

/// The member of a `run` record, and of a snapshot, with the contract of a delegated run.
pub const CONTRACT: &str = "contract";

/// The member of the kept form with constants and definitions.
pub(super) const NAMES: &str = "names";
/// The member of the kept form with the time of the newest transition.
const NOW: &str = "now";

/// The names that expressions know without a pack.
static OWN_SCOPE: LazyLock<Arc<Scope>> = LazyLock::new(|| Arc::new(form::scope(None)));
/// The names that expressions know by version 1 of the rules.
static FIRST_SCOPE: LazyLock<Arc<Scope>> = LazyLock::new(|| Arc::new(form::first_scope()));
/// Members of a snapshot of a delegated run: what it used, and what its parents say.
const USED: &str = "used";
const SAID: &str = "said";

/// The member of an item that a parent added after the child began.
pub(super) const OF_PARENT: &str = "of_parent";

impl Commitments {
    /// None, in a run by the rules of a version.
    pub fn none(version: u64) -> Commitments {
        Commitments {
            atoms: Object::default(),
            edges: Array::default(),
            from: Object::default(),
            to: Object::default(),
            backed: Object::default(),
            changed: Object::default(),
            touched_by_agents: Object::default(),
            ignored: Array::default(),
            core: Arc::default(),
            trust: None,
            contract: None,
            parents: Arc::default(),
            used: Used::default(),
            hidden: None,
            names: None,
            scope: Arc::clone(&OWN_SCOPE),
            spent: spent::Sums::default(),
            now: 0,
            touched: 0,
            version,
            later: Vec::new(),
        }
    }

    /// The commitments with which a run by the rules of a version begins, as its `run` record has them under [`INITIAL`] and
    /// [`CONTRACT`].
    pub fn at_start(version: u64, initial: Option<&Value>, contract: Option<&Value>) -> Commitments {
        Commitments::at_start_with(version, initial, contract, (None, Timestamp::from_ms(0)))
    }

    /// As [`Commitments::at_start`], under a pack whose names expressions know, in a run that begins at a time.
    pub fn at_start_with(
        version: u64,
        initial: Option<&Value>,
        contract: Option<&Value>,
        (pack, began): (Option<&Value>, Timestamp),
    ) -> Commitments {
        let mut made = Commitments::none(version);
        made.know(pack);
        made.pass(began);
        if let Some(initial) = initial {
            made.take_kept(initial);
        }
        made.contract = contract.and_then(DelegationContract::read).map(Arc::new);
        made
    }

    /// Learns the constants and definitions of the pack of the run. Those that are known stay.
    pub fn know(&mut self, pack: Option<&Value>) {
        self.learn(pack.and_then(form::names_of));
    }

    /// As [`Commitments::know`], of names alone.
    pub(super) fn learn(&mut self, names: Option<Value>) {
        let Some(names) = names else { return };
        let mut known = self.names.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
        for (list, members) in names.as_object().into_iter().flat_map(Object::iter) {
            let mut held = known.get(list).and_then(Value::as_object).cloned().unwrap_or_default();
            for (name, value) in members.as_object().into_iter().flat_map(Object::iter) {
                if !held.contains_key(name) {
                    held.set(name, value.clone());
                }
            }
            known.set(list, Value::Object(held));
        }
        let known = Value::Object(known);
        if self.names.as_ref() != Some(&known) {
            self.scope = Arc::new(form::scope(Some(&known)));
            self.names = Some(known);
        }
    }

    /// The time of the newest transition.
    pub(super) fn now(&self) -> u64 {
        self.now
    }

    /// Takes the time at which a transition is recorded.
    pub fn pass(&mut self, ts: Timestamp) {
        self.now = ts.ms();
    }

    /// Whether a commitment is over by its `until`.
    pub(super) fn is_past(&self, one: &Commitment) -> bool {
        one.until.is_some_and(|until| self.now >= until)
    }

    /// The names that expressions of new commitments know.
    pub(super) fn scope(&self) -> Arc<Scope> {
        match self.version {
            MARKERS_VERSION.. => Arc::clone(&self.scope),
            2 => Arc::new((*self.scope).clone().by_rules(2)),
            _ => Arc::clone(&FIRST_SCOPE),
        }
    }

    /// Checks the lists of a line.
    pub(super) fn check_lists(
        &self,
        member: impl Fn(&str) -> Option<Value>,
    ) -> Result<(), super::CommitmentFault> {
        let scope = self.scope();
        form::check_lists(member, &form::Form { scope: &scope, is_first: !self.is_since(2), is_open: false })
    }

    /// Goes by the rules of a version from here on.
    pub fn go_by(&mut self, version: u64) {
        self.version = version;
    }

    /// Says from which ticks on other versions of the rules apply: those at which the forks of a lineage begin. In order.
    pub fn go_by_later(&mut self, versions: Vec<(u64, u64)>) {
        self.later = versions;
    }

    /// Takes up the version that applies to a tick.
    fn turn_to(&mut self, tick: u64) {
        while let Some((from, version)) = self.later.first().copied().filter(|(from, _)| *from <= tick) {
            debug_assert!(from <= tick);
            self.version = version;
            self.later.remove(0);
        }
    }

    /// Whether the run goes by the rules of a version of the kernel or a newer one.
    pub(super) fn is_since(&self, version: u64) -> bool {
        self.version >= version
    }

    /// The version of the kernel's rules by which the run goes.
    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Whether nothing here can stand against an action.
    pub fn is_free(&self) -> bool {
        self.core.all.is_empty() && self.contract.is_none() && self.hidden.is_none()
    }

    /// The first tick whose lists were erased or withheld: what they brought, and so what the agent is bound to, is not known.
    pub fn hidden(&self) -> Option<u64> {
        self.hidden
    }

    fn hide(&mut self, tick: u64) {
        self.hidden.get_or_insert(tick);
    }

    /// The contract under which a delegated run works.
    pub fn contract(&self) -> Option<&DelegationContract> {
        self.contract.as_deref()
    }

    /// Whether nothing was brought.
    pub fn is_empty(&self) -> bool {
        let brought = [self.atoms.is_empty(), self.edges.is_empty(), self.ignored.is_empty()];
        self.is_free() && self.trust.is_none() && brought.into_iter().all(|is_empty| is_empty)
    }

    /// Takes a transition as it is on record. A commitment that is closed in it brings nothing.
    pub fn take(&mut self, record: &Record) {
        self.turn_to(record.header().tick.unwrap_or(0));
        self.pass(record.header().ts);
        let body = record.body();
        let hears = self.hears_parents();
        let is_ours = |name: &str| {
            COMMITMENT_LISTS.contains(&name)
                || [ACCEPTED, ADOPTS, spent::SPENT].contains(&name)
                || hears && name == CONTRACT
        };
        let (mut brings, mut is_closed) = (false, false);
        for field in body.fields() {
            if field.pointer.tokens().next().is_some_and(|name| is_ours(&name)) {
                brings = true;
                is_closed |= body.text(field).is_none();
            }
        }
        if !brings && !hears && self.core.watchers.is_empty() {
            return;
        }
        if is_closed {
            self.hide(record.header().tick.unwrap_or(0));
        }
        let Some(type_name) = record.header().type_name.as_ref() else { return };
        let content = record.content();
        let delta = content.get("delta").and_then(|delta| Delta::from_value(delta).ok());
        let tick = record.header().tick.unwrap_or(0);
        self.apply(tick, record.header().author, type_name.as_str(), &content, delta.as_ref());
    }

    /// Takes what a transition brings: its content as it is sealed, and the change of state that it makes.
    pub fn apply(
        &mut self,
        tick: u64,
        author: Author,
        type_name: &str,
        content: &Value,
        delta: Option<&Delta>,
    ) {
        self.turn_to(tick);
        self.hear(tick, author, type_name, content);
        // Lists of a result that the runtime did not write are the word of the agent.
        let author = if content.get(UNATTESTED).is_some() { Author::Agent } else { author };
        if let Some(delta) = delta.filter(|_| !self.core.places.is_empty()) {
            self.write(tick, delta);
        }
        if let Some(accepted) = content.get(ACCEPTED).filter(|_| author == Author::Kernel) {
            self.take_accepted(tick, accepted);
        }
        if self.is_since(2) {
            for (id, call) in spent::sums_of(content.get(spent::SPENT)) {
                spent::add(self.spent.entry(id).or_default(), &call);
            }
            let by = name_in(author, content);
            return self.apply_ranked(&Said { tick, author, by, type_name }, content);
        }
        let list = |name: &str| content.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        // A name in a line means an item of that line before an item that has the id already.
        let clashing = self.clashing(|name| content.get(name).cloned(), author, type_name);
        let tool = content.get("action").and_then(|action| action.get("tool")).and_then(Value::as_str);
        for value in list(form::EVIDENCE).iter() {
            let tool = tool.map(|tool| ("tool", Value::from(tool)));
            let members =
                [("atom", value.clone()), ("author", author.as_str().into()), ("type", type_name.into())];
            let members = members.into_iter().chain([("tick", Value::from(tick))]).chain(tool);
            self.add_atom(Value::record(members));
        }
        for value in list(form::COMMITMENTS).iter() {
            self.add(value, tick, author, type_name, &clashing);
        }
        let names_other = |value: &Value| {
            ["from", "to"].iter().any(|end| form::text(value, end).is_some_and(|id| clashing.contains(&id)))
        };
        for value in list(form::EDGES).iter().filter(|value| !names_other(value)) {
            self.add_edge(value, tick, author);
        }
        for value in list(form::CLOSES).iter() {
            self.close(value, tick, author);
        }
    }

    /// Takes over what a child run brought, with its modes and authors, and discharges the delegation.
    fn take_accepted(&mut self, tick: u64, accepted: &Value) {
        if self.is_since(2) {
            for (id, below) in spent::sums_of(accepted.get(spent::SPENT)) {
                spent::add(self.spent.entry(id).or_default(), &below);
            }
            if let Some(initial) = accepted.get(INITIAL) {
                // Of a child, or of the fork whose pack declares them.
                let run = form::text(accepted, "child").or_else(|| form::text(accepted, "run"));
                self.absorb(initial, &run.unwrap_or_default(), tick);
            }
            if let Some(id) = form::text(accepted, "delegation") {
                self.end_by_kernel(tick, &id, ClosedAs::Discharged);
            }
            return;
        }
        if let Some(initial) = accepted.get(INITIAL) {
            let child = form::text(accepted, "child").unwrap_or_default();
            // Items that the child was given are here already.
            let is_taken = |id: &str, value: &Value| {
                let other = self.atoms.get(id).map(|atom| with_tick(atom, 0) != with_tick(value, 0));
                let item = self.get(id).map(|one| Some(&one.written) != value.get("commitment"));
                other.or(item).unwrap_or(false)
            };
            let initial = merge::renamed(initial, &child, is_taken);
            let at_tick = |list: &str| {
                let items = initial.get(list).and_then(Value::as_array).cloned().unwrap_or_default();
                Value::array(items.iter().map(|item| with_tick(item, tick)).collect::<Vec<_>>())
            };
            let atoms = initial.get(ATOMS).and_then(Value::as_object).cloned().unwrap_or_default();
            let atoms = atoms.iter().filter(|(id, _)| !self.has(id));
            let atoms: Vec<_> = atoms.map(|(id, atom)| (Arc::clone(id), with_tick(atom, tick))).collect();
            let known: BTreeSet<String> = self.edges().map(|edge| edge.key()).collect();
            let edges = at_tick(EDGES);
            let edges = edges.as_array().cloned().unwrap_or_default();
            let is_new = |edge: &&Value| read_edge(edge).is_some_and(|edge| !known.contains(&edge.key()));
            let edges: Vec<Value> = edges.iter().filter(is_new).cloned().collect();
            let trust = self.trust.clone();
            self.take_kept(&Value::record([
                (ATOMS, Value::record(atoms)),
                (EDGES, Value::array(edges)),
                (ITEMS, at_tick(ITEMS)),
            ]));
            self.trust = trust;
        }
        if let Some(id) = form::text(accepted, "delegation") {
            self.end(&id, ClosedAs::Discharged, tick, Author::Kernel, None);
        }
    }

    /// The commitments, in the order in which they were written.
    pub fn all(&self) -> &[Arc<Commitment>] {
        &self.core.all
    }

    /// The commitment with an id.
    pub fn get(&self, id: &str) -> Option<&Arc<Commitment>> {
        Some(&self.core.all[*self.core.by_id.get(id)?])
    }

    /// Whether a commitment limits a sum over calls.
    pub fn is_sum(&self, id: &str) -> bool {
        self.get(id).is_some_and(|one| !one.sums.is_empty())
    }

    /// The atom with an id.
    pub fn atom(&self, id: &str) -> Option<Atom> {
        read_atom(self.atoms.get(id)?)
    }

    /// The atoms, by id.
    pub fn atoms(&self) -> impl Iterator<Item = Atom> {
        self.atoms.iter().filter_map(|(_, value)| read_atom(value))
    }

    /// The edges, in the order in which they were written.
    pub fn edges(&self) -> impl Iterator<Item = CommitmentEdge> {
        self.edges.iter().filter_map(read_edge)
    }

    /// The edges that end at an id, in the order in which they were written.
    pub fn edges_to(&self, id: &str) -> impl Iterator<Item = CommitmentEdge> {
        self.numbered(self.to.get(id))
    }

    /// The edges that begin at an id, in the order in which they were written.
    pub fn edges_from(&self, id: &str) -> impl Iterator<Item = CommitmentEdge> {
        self.numbered(self.from.get(id))
    }

    fn numbered(&self, numbers: Option<&Value>) -> impl Iterator<Item = CommitmentEdge> {
        let numbers = numbers.and_then(Value::as_array).into_iter().flat_map(|numbers| numbers.iter());
        let numbers = numbers.filter_map(|number| usize::try_from(number.as_u64()?).ok());
        numbers.filter_map(|number| read_edge(self.edges.get(number)?))
    }

    /// The events without effect.
    pub fn ignored(&self) -> impl Iterator<Item = WithoutEffect> {
        self.ignored.iter().filter_map(|value| {
            let (id, why) = (form::text(value, "id")?, form::text(value, "why")?);
            let by = form::text(value, "by");
            Some(WithoutEffect { tick: value.get("tick")?.as_u64()?, id, why, by })
        })
    }

    /// How often a watched name was met by a change so far: what looking for stale commitments costs (CCAS paper, proposition 2).
    pub fn touched(&self) -> u64 {
        self.touched
    }

    /// Whose word an atom is, and where it is from: what a label of it says.
    pub fn said_by(&self, id: &str) -> Option<(EvidenceMode, Option<&str>)> {
        let value = self.atoms.get(id)?;
        let author = value.get("author")?.as_str()?.parse::<Author>().ok()?;
        let mode = EvidenceMode::of(author, value.get("type")?.as_str()?);
        Some((mode, value.get("atom")?.get("source").and_then(Value::as_str)))
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// Whether an id means the same in both: the same atom by the same author, or the same commitment.
    pub(super) fn has_same(&self, other: &Commitments, id: &str) -> bool {
        let atom = |all: &Commitments| {
            let held = all.atoms.get(id)?;
            Some(["atom", "author", "type"].map(|name| held.get(name).cloned()))
        };
        match (self.get(id), other.named(id)) {
            (Some(here), Some(there)) => here.written == there.written && here.author == there.author,
            (None, None) => atom(self) == atom(other),
            _ => false,
        }
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.atoms.contains_key(id) || self.core.by_id.contains_key(id)
    }

    fn ignore(&mut self, tick: u64, id: &str, why: &str) {
        self.ignored.push(Value::record([("tick", tick.into()), ("id", id.into()), ("why", why.into())]));
    }

    /// Notes which watched places a change of state meets: those above and those below each of its paths.
    fn write(&mut self, tick: u64, delta: &Delta) {
        let mut met: BTreeSet<Arc<str>> = BTreeSet::new();
        for path in delta.paths() {
            met.extend(self.core.met(path).cloned());
        }
        for name in met {
            self.change(&name, tick);
        }
    }

    fn change(&mut self, name: &str, tick: u64) {
        self.touched += self.core.watchers.get(name).map_or(0, |watchers| watchers.len() as u64);
        self.changed.set(name, Value::from(tick));
    }

    fn add_atom(&mut self, value: Value) {
        let Some(atom) = read_atom(&value) else { return };
        if self.has(&atom.id) {
            return self.ignore(atom.tick, &atom.id, "id_used");
        }
        self.hold_touching(&atom, value);
        if atom.mode == EvidenceMode::UserAuthored {
            self.back(&atom.id);
        }
        if atom.mode != EvidenceMode::SelfAuthored && self.from.contains_key(&atom.id) {
            let attested: Vec<CommitmentEdge> = self.edges_from(&atom.id).collect();
            attested.iter().for_each(|edge| self.ground(edge));
        }
    }

    /// Holds a new atom under an id.
    pub(super) fn hold_atom(&mut self, id: &Arc<str>, mut value: Value) {
        if let Value::Object(members) = &mut value
            && members.get("atom").and_then(|atom| form::text(atom, "id")).as_ref() != Some(id)
        {
            members.set(HELD_AS, Value::String(Arc::clone(id)));
        }
        if let Some(atom) = read_atom(&value) {
            self.hold_touching(&atom, value);
        }
    }

    fn hold_touching(&mut self, atom: &Atom, value: Value) {
        for name in &atom.touches {
            match self.is_since(2) && atom.writer.is_agent() {
                true => self.touch_by_agent(name, atom.tick),
                false => self.change(name, atom.tick),
            }
        }
        self.atoms.set(&atom.id, value);
    }

    fn touch_by_agent(&mut self, name: &str, tick: u64) {
        let all = &self.core.all;
        let watchers = self.core.watchers.get(name).into_iter().flatten();
        self.touched += watchers.filter(|number| self.owner(&all[**number]).is_agent()).count() as u64;
        self.touched_by_agents.set(name, Value::from(tick));
    }

    /// The ids that lists bring for something else than what has the id already.
    pub(super) fn clashing(
        &self,
        member: impl Fn(&str) -> Option<Value>,
        author: Author,
        type_name: &str,
    ) -> BTreeSet<Arc<str>> {
        let list = |name: &str| member(name).and_then(|list| list.as_array().cloned()).unwrap_or_default();
        let mut found = BTreeSet::new();
        for value in list(form::EVIDENCE).iter() {
            let Some(id) = form::text(value, "id") else { continue };
            let is_same = |held: &Value| {
                let text = |name: &str| held.get(name).and_then(Value::as_str);
                held.get("atom") == Some(value)
                    && (text("author"), text("type")) == (Some(author.as_str()), Some(type_name))
            };
            if self.get(&id).is_some() || self.atoms.get(&id).is_some_and(|held| !is_same(held)) {
                found.insert(id);
            }
        }
        for value in list(form::COMMITMENTS).iter() {
            let Some(id) = form::text(value, "id") else { continue };
            let is_other = |one: &Arc<Commitment>| one.written != *value || one.author != author;
            if self.atoms.contains_key(&id) || self.get(&id).is_some_and(is_other) {
                found.insert(id);
            }
        }
        found
    }

    fn add(
        &mut self,
        value: &Value,
        tick: u64,
        author: Author,
        type_name: &str,
        clashing: &BTreeSet<Arc<str>>,
    ) {
        let Some(made) = read_commitment(value, tick, author, type_name, (&self.scope(), self.now)) else {
            return;
        };
        if self.has(&made.id) {
            return self.ignore(tick, &made.id, "id_used");
        }
        let (id, superseded) = (Arc::clone(&made.id), made.supersedes.clone());
        self.insert(made);
        for (member, kind) in [
            ("support", EdgeKind::Supports),
            ("depends_on", EdgeKind::DependsOn),
            ("conflicts", EdgeKind::ConflictsWith),
            ("refines", EdgeKind::Refines),
        ] {
            for other in form::texts(value, member).into_iter().filter(|other| !clashing.contains(other)) {
                // The support of a commitment is the source of the edge.
                let (from, to) = if kind == EdgeKind::Supports {
                    (other, Arc::clone(&id))
                } else {
                    (Arc::clone(&id), other)
                };
                self.push_edge(CommitmentEdge { kind, from, to, author, by: None, tick });
            }
        }
        if let Some(old) = superseded {
            self.end(&old, ClosedAs::Superseded, tick, author, None);
        }
    }

    pub(super) fn insert(&mut self, mut made: Commitment) {
        let id = Arc::clone(&made.id);
        made.is_backed = self.backed.contains_key(&id);
        let mut edges = self.edges_from(&id).chain(self.edges_to(&id));
        made.has_conflicts = edges.any(|edge| edge.kind == EdgeKind::ConflictsWith);
        drop(edges);
        let is_ranked = self.is_since(2);
        let core = Arc::make_mut(&mut self.core);
        let number = core.all.len();
        for name in &made.watch {
            core.watchers.entry(Arc::clone(name)).or_default().push(number);
            if let Some(Ok(place)) = Pointer::from_place(name) {
                core.places.entry(place.as_str().into()).or_default().insert(Arc::clone(name));
            }
        }
        let reads = |expr: &Expr| expr.reads_counters() && expr.text().contains("commitments");
        core.reads_statuses |= is_ranked && made.exprs().any(reads);
        if made.is_hard {
            core.hard.push(number);
            core.for_tool.add(number, &made);
        }
        let attests = self.to.get(&id).is_some();
        core.by_id.insert(Arc::clone(&id), number);
        core.all.push(Arc::new(made));
        if attests {
            let edges: Vec<CommitmentEdge> = self.edges_to(&id).collect();
            edges.iter().for_each(|edge| self.ground(edge));
        }
    }

    pub(super) fn change_one(&mut self, id: &str, with: impl FnOnce(&mut Commitment)) {
        if let Some(number) = self.core.by_id.get(id).copied() {
            with(Arc::make_mut(&mut Arc::make_mut(&mut self.core).all[number]));
        }
    }

    /// Holds a commitment under another id.
    pub(super) fn rename_commitment(&mut self, old: &str, new: &Arc<str>) {
        let core = Arc::make_mut(&mut self.core);
        if let Some(number) = core.by_id.remove(old) {
            Arc::make_mut(&mut core.all[number]).id = Arc::clone(new);
            core.by_id.insert(Arc::clone(new), number);
        }
        if let Some(sums) = self.spent.remove(old) {
            self.spent.insert(Arc::clone(new), sums);
        }
    }

    fn add_edge(&mut self, value: &Value, tick: u64, author: Author) {
        let kind = form::text(value, "edge").and_then(|name| EdgeKind::from_word(&name));
        let (Some(kind), Some(from), Some(to)) = (kind, form::text(value, "from"), form::text(value, "to"))
        else {
            return;
        };
        if kind == EdgeKind::Discharges {
            self.end(&to, ClosedAs::Discharged, tick, author, None);
        }
        self.push_edge(CommitmentEdge { kind, from, to, author, by: None, tick });
    }

    pub(super) fn push_edge(&mut self, edge: CommitmentEdge) {
        let number = Value::from(self.edges.len() as u64);
        for (index, id) in [(&mut self.from, &edge.from), (&mut self.to, &edge.to)] {
            match index.value_mut(id) {
                Some(Value::Array(numbers)) => numbers.push(number.clone()),
                _ => index.set(id, Value::array([number.clone()])),
            }
        }
        let members = [
            ("author", Value::from(edge.author.as_str())),
            ("edge", edge.kind.as_str().into()),
            ("from", Value::String(Arc::clone(&edge.from))),
            ("tick", edge.tick.into()),
            ("to", Value::String(Arc::clone(&edge.to))),
        ];
        let by = edge.by.clone().map(|by| ("by", Value::String(by)));
        self.edges.push(Value::record(members.into_iter().chain(by)));
        let may_renew = !self.is_since(2) || self.renews(&edge);
        if matches!(edge.kind, EdgeKind::Supports | EdgeKind::Attests) && may_renew {
            // An atom that was attested from outside is not renewed by a note of the agent.
            let is_note = self.is_own_note(&edge);
            self.change_one(&edge.to, |one| {
                if is_note && one.grounded_by.is_some() {
                    return;
                }
                one.supported_at = one.supported_at.max(edge.tick);
                if edge.tick > 0 {
                    one.stale_by = None;
                }
            });
        }
        if edge.kind == EdgeKind::ConflictsWith {
            self.change_one(&edge.from, |one| one.has_conflicts = true);
            self.change_one(&edge.to, |one| one.has_conflicts = true);
        }
        if edge.kind == EdgeKind::Supports && self.backed.contains_key(&edge.from) {
            self.back(&edge.to);
        }
        self.ground(&edge);
    }

    /// Grounds a commitment, if this edge does.
    fn ground(&mut self, edge: &CommitmentEdge) {
        let is_authority = matches!(edge.author, Author::User | Author::Runtime | Author::Institution);
        if edge.kind != EdgeKind::Attests || !is_authority || self.get(&edge.to).is_none() {
            return;
        }
        let is_trusted = |atom: &Atom| match (&self.trust, atom.mode) {
            (_, EvidenceMode::SelfAuthored) => false,
            (None, _) | (_, EvidenceMode::UserAuthored) => true,
            (Some(trust), _) => atom.tool.as_ref().is_some_and(|tool| trust.contains(tool)),
        };
        if self.atom(&edge.from).is_some_and(|atom| is_trusted(&atom)) {
            let from = Arc::clone(&edge.from);
            self.change_one(&edge.to, |one| {
                one.grounded_by.get_or_insert(from);
            });
        }
    }

    /// Marks an id, and all that it supports, as having the user behind it.
    fn back(&mut self, id: &str) {
        let mut open: Vec<Arc<str>> = vec![id.into()];
        while let Some(id) = open.pop() {
            if !self.backed.contains_key(&id) {
                self.backed.set(&id, Value::Bool(true));
                self.change_one(&id, |one| one.is_backed = true);
                let supported = self.edges_from(&id).filter(|edge| edge.kind == EdgeKind::Supports);
                open.extend(supported.map(|edge| edge.to));
            }
        }
    }

    fn close(&mut self, value: &Value, tick: u64, author: Author) {
        let Some(id) = form::text(value, "id") else { return };
        let Some(how) = form::text(value, "as").as_deref().and_then(ClosedAs::from_word) else { return };
        self.end(&id, how, tick, author, form::text(value, "reason"));
    }

    /// Closes a commitment, if the author has the rank of its owner.
    fn end(&mut self, id: &str, how: ClosedAs, tick: u64, author: Author, reason: Option<Arc<str>>) {
        match self.may_close(id, author) {
            None => self.ignore(tick, id, "unknown_id"),
            // The door refuses it; what was recorded before it did is not judged again.
            Some(false) => self.ignore(tick, id, "rank"),
            Some(true) => self.change_one(id, |one| {
                one.closed.get_or_insert(ClosedCommitment { how, tick, reason });
            }),
        }
    }

    /// Whether an author has the rank that closing a commitment takes by version 1 of the rules; `None` for an unknown id.
    fn may_close(&self, id: &str, author: Author) -> Option<bool> {
        let one = self.get(id)?;
        let rank = match author {
            // The kernel closes what it was told to by those who may.
            Author::Kernel => CommitmentOwner::User(None).first_rank(),
            author => CommitmentOwner::of_first(author).first_rank(),
        };
        Some(rank >= self.owner(one).first_rank())
    }

    /// The commitments that the lists of an intent close without the rank to, by version 1 of the rules.
    pub(super) fn closed_without_rank(
        &self,
        member: impl Fn(&str) -> Option<Value>,
        author: Author,
    ) -> Vec<Arc<str>> {
        let each = |name: &str| member(name).and_then(|list| list.as_array().cloned()).unwrap_or_default();
        let closes = each(form::CLOSES);
        let closed = closes.iter().filter_map(|value| form::text(value, "id"));
        let edges = each(form::EDGES);
        let discharges =
            |value: &&Value| form::text(value, "edge").as_deref() == Some(EdgeKind::Discharges.as_str());
        let discharged = edges.iter().filter(discharges).filter_map(|value| form::text(value, "to"));
        let made = each(form::COMMITMENTS);
        let superseded = made.iter().filter_map(|value| form::text(value, "supersedes"));
        let mut found: Vec<Arc<str>> = closed
            .chain(discharged)
            .chain(superseded)
            .filter(|id| self.may_close(id, author) == Some(false))
            .collect();
        found.sort();
        found.dedup();
        found
    }

    /// The owner of a commitment: who wrote or adopted it, or the parent. By version 1 of the rules support raises it.
    pub fn owner(&self, one: &Commitment) -> CommitmentOwner {
        match &one.adopted {
            _ if one.is_imported => CommitmentOwner::Parent,
            Some(adopted) => adopted.owner.clone(),
            None if self.is_since(2) => one.writer(),
            None => match CommitmentOwner::of_first(one.author) {
                CommitmentOwner::Agent(_) if one.is_backed => CommitmentOwner::User(None),
                owner => owner,
            },
        }
    }

    /// The support of a commitment: the edges that lead there, in the order in which they were written.
    pub fn closure(&self, id: &str) -> Vec<CommitmentEdge> {
        let mut found: Vec<CommitmentEdge> = Vec::new();
        let mut open: Vec<Arc<str>> = vec![id.into()];
        let mut seen: BTreeSet<Arc<str>> = open.iter().cloned().collect();
        while let Some(id) = open.pop() {
            for edge in self.edges_to(&id).filter(|edge| edge.kind == EdgeKind::Supports) {
                if seen.insert(Arc::clone(&edge.from)) {
                    open.push(Arc::clone(&edge.from));
                }
                found.push(edge);
            }
        }
        found.sort_by_key(|edge| edge.tick);
        found
    }

    /// The atom that grounds a commitment: an attestation by the user, the runtime or the institution, from an atom that is not
    /// self-authored.
    pub fn grounded_by(&self, id: &str) -> Option<&Arc<str>> {
        self.get(id)?.grounded_by.as_ref()
    }

    /// Whether a commitment is hard and binds: user or institution wrote or adopted it, or a contract imported it. By version 1 of
    /// the rules an atom of the user in its support is enough.
    pub fn binds(&self, one: &Commitment) -> bool {
        let is_backed = match self.is_since(2) {
            true => one.adopted.is_some(),
            false => one.is_backed,
        };
        one.is_hard
            && (one.is_imported || matches!(one.author, Author::User | Author::Institution) || is_backed)
    }

    /// The watched name that changed after the last support of a commitment, and when.
    pub(super) fn changed_since<'c>(&self, one: &'c Commitment) -> Option<(&'c Arc<str>, u64)> {
        if let Some(name) = &one.stale_by {
            return Some((name, 0));
        }
        let since = one.supported_at;
        let by_agents = self.owner(one).is_agent().then_some(&self.touched_by_agents);
        let tick = |name: &Arc<str>| {
            let ticks = [Some(&self.changed), by_agents].into_iter().flatten();
            ticks.filter_map(|changed| changed.get(name)?.as_u64()).max()
        };
        let changes = one.watch.iter().filter_map(|name| Some((name, tick(name)?)));
        changes.filter(|(_, tick)| *tick > since).max_by_key(|(_, tick)| *tick)
    }

    /// The ids whose status a transition can change: what it brings and names, what watches a name that it touches or a place that
    /// it writes, and what depends on these or conflicts with them (CCAS paper, algorithm 1: `Affected`). Guards and discharges
    /// that read the state are the caller's to look at.
    pub fn affected(&self, content: &Value, delta: Option<&Delta>) -> BTreeSet<Arc<str>> {
        let core = &*self.core;
        let mut open: Vec<Arc<str>> = Vec::new();
        let mut watched = |name: &str| {
            for number in core.watchers.get(name).into_iter().flatten() {
                open.push(Arc::clone(&core.all[*number].id));
            }
        };
        for path in delta.into_iter().flat_map(Delta::paths) {
            core.met(path).for_each(|name| watched(name));
        }
        let list = |name: &str| content.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
        for value in list(form::EVIDENCE).iter() {
            form::texts(value, "touches").iter().for_each(|name| watched(name));
        }
        let mut named = form::texts(content, ADOPTS);
        for name in COMMITMENT_LISTS {
            let members = ["id", "from", "to", "supersedes"];
            let items = list(name);
            let each = items.iter().flat_map(|item| members.iter().filter_map(|name| form::text(item, name)));
            named.extend(each);
        }
        // A name may mean an item that is held under its address.
        open.extend(named.iter().flat_map(|name| core.under(name)));
        open.extend(named);
        if content.get(ACCEPTED).is_some() {
            open.extend(core.all.iter().map(|one| Arc::clone(&one.id)));
        }
        let mut found = BTreeSet::new();
        while let Some(id) = open.pop() {
            if !self.has(&id) || !found.insert(Arc::clone(&id)) {
                continue;
            }
            let rests = self
                .edges_to(&id)
                .filter(|edge| matches!(edge.kind, EdgeKind::DependsOn | EdgeKind::ConflictsWith));
            open.extend(rests.map(|edge| edge.from));
            let others = self.edges_from(&id);
            let others =
                others.filter(|edge| matches!(edge.kind, EdgeKind::ConflictsWith | EdgeKind::Supports));
            open.extend(others.map(|edge| edge.to));
        }
        found.retain(|id| self.core.by_id.contains_key(id));
        found
    }

    /// Returns it in the form in which a snapshot keeps it.
    pub fn to_kept(&self) -> Value {
        let items = self.core.all.iter().map(|one| {
            let mut members = vec![
                ("author", Value::from(one.author.as_str())),
                ("commitment", one.written.clone()),
                ("tick", one.tick.into()),
                ("type", Value::String(Arc::clone(&one.type_name))),
            ];
            members.extend(one.until.map(|until| ("until", Value::from(until))));
            members.extend(one.is_imported.then_some(("imported", Value::Bool(true))));
            members.extend(one.by.clone().map(|by| ("by", Value::String(by))));
            members.extend(one.adopted.as_ref().map(|adopted| ("adopted", adopted.to_value())));
            let is_moved = one.written_id() != &*one.id;
            members.extend(is_moved.then(|| (HELD_AS, Value::String(Arc::clone(&one.id)))));
            members.extend(one.is_of_parent.then_some((OF_PARENT, Value::Bool(true))));
            members.extend(one.stale_by.clone().map(|name| ("stale_by", Value::String(name))));
            members.extend(one.closed.as_ref().map(|closed| ("closed", closed.to_value(&one.id))));
            Value::record(members)
        });
        let members = [
            (ATOMS, Value::Object(self.atoms.clone())),
            (CHANGED, Value::Object(self.changed.clone())),
            (EDGES, Value::Array(self.edges.clone())),
            (IGNORED, Value::Array(self.ignored.clone())),
            (ITEMS, Value::array(items)),
        ];
        let contract = self.contract.as_ref().map(|contract| (CONTRACT, contract.written.clone()));
        let hidden = self.hidden.map(|tick| (HIDDEN, Value::from(tick)));
        let touched = &self.touched_by_agents;
        let touched = (!touched.is_empty()).then(|| (TOUCHED_BY_AGENTS, Value::Object(touched.clone())));
        let used = self.hears_parents().then(|| (USED, self.used.to_value()));
        let said = self.kept_parents().map(|said| (SAID, said));
        let now = self.is_since(2).then(|| (NOW, Value::from(self.now)));
        let spent = spent::sealed(&self.spent).map(|spent| (spent::SPENT, spent));
        let others =
            [touched, self.kept_names(), now, spent, contract, used, said, self.kept_trust(), hidden];
        Value::record(members.into_iter().chain(others.into_iter().flatten()))
    }

    /// Reads the kept form of a run that goes by the rules of a version; parts that do not belong there are left out.
    pub fn from_kept(version: u64, value: &Value) -> Commitments {
        let mut made = Commitments::none(version);
        made.take_kept(value);
        made.now = value.get(NOW).and_then(Value::as_u64).unwrap_or(0);
        let object = |name: &str| value.get(name).and_then(Value::as_object).cloned().unwrap_or_default();
        made.changed = object(CHANGED);
        made.touched_by_agents = object(TOUCHED_BY_AGENTS);
        made.ignored = value.get(IGNORED).and_then(Value::as_array).cloned().unwrap_or_default();
        made.contract = value.get(CONTRACT).and_then(DelegationContract::read).map(Arc::new);
        made.used = value.get(USED).map(Used::read).unwrap_or_default();
        value.get(SAID).into_iter().for_each(|said| made.take_said(said));
        made.touched = 0;
        made
    }

    /// Returns why an `attests` edge grounds nothing; `None` for one that does, and for an edge of another kind.
    pub fn grounds_nothing(&self, edge: &CommitmentEdge) -> Option<String> {
        let is_authority = matches!(edge.author, Author::User | Author::Runtime | Author::Institution);
        let atom = match self.atom(&edge.from) {
            _ if edge.kind != EdgeKind::Attests => return None,
            _ if !is_authority => return Some(format!("{} cannot attest", edge.author.as_str())),
            None => return Some(format!("{} is no evidence", edge.from)),
            Some(atom) => atom,
        };
        match (&self.trust, atom.mode, &atom.tool) {
            (_, EvidenceMode::SelfAuthored, _) => Some(format!("{} is self-authored", edge.from)),
            (None, ..) | (_, EvidenceMode::UserAuthored, _) => None,
            (Some(trust), _, Some(tool)) if trust.contains(tool) => None,
            (Some(_), _, Some(tool)) => Some(format!("{tool} is not in trust")),
            (Some(_), _, None) => Some(format!("{} names no tool, so it is not in trust", edge.from)),
        }
    }

    fn kept_trust(&self) -> Option<(&'static str, Value)> {
        let trust = self.trust.as_ref()?;
        Some((TRUST, Value::record([("tools", Value::array(trust.iter().cloned().map(Value::String)))])))
    }

    fn kept_names(&self) -> Option<(&'static str, Value)> {
        // A run by version 1 of the rules begins with what it began with.
        let names = self.names.clone().filter(|_| self.is_since(2) && !self.core.all.is_empty())?;
        Some((NAMES, names))
    }

    pub(super) fn take_kept(&mut self, value: &Value) {
        self.learn(value.get(NAMES).cloned());
        self.spent.extend(spent::sums_of(value.get(spent::SPENT)));
        self.hidden = self.hidden.or_else(|| value.get(HIDDEN).and_then(Value::as_u64));
        self.trust =
            value.get(TRUST).map(|trust| Arc::new(form::texts(trust, "tools").into_iter().collect()));
        let atoms = value.get(ATOMS).and_then(Value::as_object).cloned().unwrap_or_default();
        atoms.iter().for_each(|(_, atom)| self.add_atom(atom.clone()));
        for item in value.get(ITEMS).and_then(Value::as_array).into_iter().flat_map(|items| items.iter()) {
            let one = read_item(item, (&self.scope(), self.now)).filter(|one| !self.has(&one.id));
            let Some(one) = one else { continue };
            self.insert(one);
        }
        for edge in value.get(EDGES).and_then(Value::as_array).into_iter().flat_map(|edges| edges.iter()) {
            if let Some(edge) = read_edge(edge) {
                self.push_edge(edge);
            }
        }
    }

    /// Returns what a new run begins with, for its `run` record: all of it at tick 0. `None` if there is nothing.
    pub fn to_initial(&self) -> Option<Value> {
        self.to_initial_of(&|_| true, &|_| false)
    }

    /// Returns what a delegated run brings its parent: all but what was imported.
    pub fn to_brought(&self) -> Option<Value> {
        let mut members = self.to_initial()?.as_object()?.clone();
        let items = members.get(ITEMS).and_then(Value::as_array).cloned().unwrap_or_default();
        let own =
            items.iter().filter(|item| item.get("imported").is_none() && !initial_of_pack(item)).cloned();
        members.set(ITEMS, Value::array(own.collect::<Vec<_>>()));
        Some(Value::Object(members))
    }

    /// As [`Commitments::to_initial`], of the atoms and commitments that are wanted; those of the second kind as imported.
    pub(super) fn to_initial_of(
        &self,
        is_wanted: &dyn Fn(&str) -> bool,
        is_imported: &dyn Fn(&str) -> bool,
    ) -> Option<Value> {
        if self.is_empty() {
            return None;
        }
        let first = |value: &Value| with_tick(value, 0);
        let atoms = self.atoms.iter().filter(|(id, _)| is_wanted(id));
        let atoms = atoms.map(|(id, atom)| (Arc::clone(id), first(atom)));
        let items = self.to_kept();
        let items = items.get(ITEMS).and_then(Value::as_array).cloned().unwrap_or_default();
        let items = items.iter().zip(&self.core.all).filter(|(_, one)| is_wanted(&one.id));
        let items = items.map(|(item, one)| {
            let mut members = with_tick(item, 0).as_object().cloned().unwrap_or_default();
            if is_imported(&one.id) {
                members.set("imported", Value::Bool(true));
            }
            if let Some((name, _)) = self.changed_since(one).filter(|_| one.kind.is_claim()) {
                members.set("stale_by", Value::String(Arc::clone(name)));
            }
            if let Some(closed) = &one.closed {
                members.set("closed", ClosedCommitment { tick: 0, ..closed.clone() }.to_value(&one.id));
            }
            if let Some(adopted) = &one.adopted {
                members.set("adopted", AdoptedCommitment { tick: 0, ..adopted.clone() }.to_value());
            }
            Value::Object(members)
        });
        let is_inside = |edge: &&Value| {
            ["from", "to"].iter().all(|end| form::text(edge, end).is_some_and(|id| is_wanted(&id)))
        };
        let members = [
            (ATOMS, Value::record(atoms)),
            (EDGES, Value::array(self.edges.iter().filter(is_inside).map(first))),
            (ITEMS, Value::array(items)),
        ];
        let hidden = self.hidden.map(|_| (HIDDEN, Value::from(0u64)));
        let names = self.kept_names();
        let spent = self.spent.iter().filter(|(id, _)| is_wanted(id));
        let spent: spent::Sums = spent.map(|(id, sums)| (Arc::clone(id), sums.clone())).collect();
        let names = names.into_iter().chain(spent::sealed(&spent).map(|spent| (spent::SPENT, spent)));
        Some(Value::record(members.into_iter().chain(names).chain(self.kept_trust()).chain(hidden)))
    }
}

/// Returns what a run begins with: what it continues, and what its pack says.
pub fn initial(
    version: u64,
    continued: Option<&Value>,
    pack: Option<&Value>,
    began: Timestamp,
) -> Option<Value> {
    let declared = pack.and_then(|pack| pack.get(form::COMMITMENTS)).and_then(Value::as_array);
    let trust = pack.and_then(|pack| pack.get(TRUST));
    let mut made = Commitments::at_start_with(version, continued, None, (pack, began));
    let is_new = |one: &&Value| match version {
        1 => form::text(one, "id").is_some_and(|id| !made.has(&id)),
        // The same of the pack before, or of a contract that the parent's pack is in.
        _ => !made.all().iter().any(|held| held.author == Author::Institution && held.written == **one),
    };
    let new: Vec<&Value> = declared.into_iter().flat_map(|all| all.iter()).filter(is_new).collect();
    if new.is_empty() && (trust.is_none() || made.trust.is_some()) {
        return continued.cloned();
    }
    made.trust = trust.map(|trust| Arc::new(form::texts(trust, "tools").into_iter().collect()));
    if version > 1 {
        let all = Value::record([(form::COMMITMENTS, Value::array(new.into_iter().cloned()))]);
        made.apply_ranked(&Said { tick: 0, author: Author::Institution, by: None, type_name: "" }, &all);
        return made.to_initial();
    }
    for one in new {
        made.add(one, 0, Author::Institution, "", &BTreeSet::new());
    }
    made.to_initial()
}

/// Whether an item of a kept form is of a pack, and no transition brought it.
pub(super) fn initial_of_pack(item: &Value) -> bool {
    item.get("type").and_then(Value::as_str) == Some("") && item.get("imported").is_none()
}

impl PartialEq for Commitments {
    fn eq(&self, other: &Commitments) -> bool {
        self.to_kept() == other.to_kept()
    }
}

impl std::fmt::Debug for Commitments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Commitments({})", self.to_kept())
    }
}

impl Core {
    /// The place of a commitment in the list.
    pub(super) fn number(&self, id: &str) -> Option<usize> {
        self.by_id.get(id).copied()
    }

    /// The ids under which items are held that are written with one id.
    fn under(&self, id: &str) -> Vec<Arc<str>> {
        let begin = format!("{id}@");
        let from: Arc<str> = begin.as_str().into();
        let held = self.by_id.range(from..).map(|(id, _)| id);
        let mut held: Vec<Arc<str>> = held.take_while(|id| id.starts_with(&begin)).cloned().collect();
        held.extend(super::owner::split_address(id).map(|(id, _)| Arc::from(id)));
        held
    }

    /// The watched names that a write at a path meets.
    fn met<'c>(&'c self, path: &Pointer) -> impl Iterator<Item = &'c Arc<str>> {
        let path = path.as_str();
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        let above: Vec<&str> = ends.map(|end| &path[..end]).collect();
        let below = format!("{path}/");
        let above = above.into_iter().filter_map(|place| self.places.get(place)).flatten();
        let start: Arc<str> = below.as_str().into();
        let below = self.places.range(start..).take_while(move |(place, _)| place.starts_with(&below));
        above.chain(below.flat_map(|(_, names)| names))
    }
}

impl AdoptedCommitment {
    fn to_value(&self) -> Value {
        Value::record([("by", Value::from(self.owner.to_string().as_str())), ("tick", self.tick.into())])
    }

    fn read(value: &Value) -> Option<AdoptedCommitment> {
        let owner = CommitmentOwner::read(value.get("by")?.as_str()?)?;
        Some(AdoptedCommitment { owner, tick: value.get("tick")?.as_u64()? })
    }
}

impl ClosedCommitment {
    fn to_value(&self, id: &str) -> Value {
        let reason = self.reason.clone().map(|reason| ("reason", Value::String(reason)));
        let members = [("as", self.how.as_str().into()), ("id", id.into()), ("tick", self.tick.into())];
        Value::record(members.into_iter().chain(reason))
    }

    fn read(value: &Value) -> Option<ClosedCommitment> {
        let how = ClosedAs::from_word(&form::text(value, "as")?)?;
        Some(ClosedCommitment {
            how,
            tick: value.get("tick")?.as_u64()?,
            reason: form::text(value, "reason"),
        })
    }
}

/// Reads an atom as it is held: with author, type and tick of the transition that brought it.
fn read_atom(value: &Value) -> Option<Atom> {
    let (atom, author) = (value.get("atom")?, value.get("author")?.as_str()?.parse::<Author>().ok()?);
    let mode = EvidenceMode::of(author, value.get("type")?.as_str()?);
    let attestation = match (author, mode) {
        (_, EvidenceMode::ToolAttested) | (Author::Runtime, _) => Some("runtime"),
        (Author::Institution, _) => Some("institution"),
        (Author::Kernel, _) => Some("kernel"),
        (Author::Agent | Author::User, _) => None,
    };
    Some(Atom {
        id: form::text(value, HELD_AS).or_else(|| form::text(atom, "id"))?,
        content: atom.get("content").cloned().unwrap_or(Value::Null),
        source: form::text(atom, "source"),
        touches: form::texts(atom, "touches"),
        mode,
        writer: CommitmentOwner::of(author, form::text(value, "by")),
        attestation,
        tick: value.get("tick")?.as_u64()?,
        tool: form::text(value, "tool"),
    })
}

pub(super) fn with_tick(value: &Value, tick: u64) -> Value {
    let mut members = value.as_object().cloned().unwrap_or_default();
    members.set("tick", Value::from(tick));
    Value::Object(members)
}

impl CommitmentEdge {
    /// The key of an edge: all its members but the tick.
    pub(super) fn key(&self) -> String {
        let by = self.by.as_deref().map(|by| format!(" {by:?}")).unwrap_or_default();
        format!("{} {:?} {:?} {}{by}", self.kind.as_str(), self.from, self.to, self.author)
    }
}

pub(super) fn read_edge(value: &Value) -> Option<CommitmentEdge> {
    Some(CommitmentEdge {
        kind: EdgeKind::from_word(value.get("edge")?.as_str()?)?,
        from: form::text(value, "from")?,
        to: form::text(value, "to")?,
        author: value.get("author")?.as_str()?.parse().ok()?,
        by: form::text(value, "by"),
        tick: value.get("tick")?.as_u64()?,
    })
}

/// Reads a commitment of a kept form.
pub(super) fn read_item(item: &Value, known: (&Scope, u64)) -> Option<Commitment> {
    let author = form::text(item, "author").and_then(|name| name.parse::<Author>().ok())?;
    let tick = item.get("tick").and_then(Value::as_u64).unwrap_or(0);
    let type_name = form::text(item, "type").unwrap_or_default();
    let mut one = read_commitment(item.get("commitment")?, tick, author, &type_name, known)?;
    one.until = item.get("until").and_then(Value::as_u64).or(one.until);
    one.id = form::text(item, HELD_AS).unwrap_or(one.id);
    one.is_imported = item.get("imported").is_some();
    one.is_of_parent = item.get(OF_PARENT).is_some();
    one.by = form::text(item, "by");
    one.adopted = item.get("adopted").and_then(AdoptedCommitment::read);
    one.stale_by = form::text(item, "stale_by");
    one.closed = item.get("closed").and_then(ClosedCommitment::read);
    Some(one)
}

/// Reads a commitment as it was written, with the names that expressions know and the time, from which a length counts.
pub(super) fn read_commitment(
    value: &Value,
    tick: u64,
    author: Author,
    type_name: &str,
    (scope, now): (&Scope, u64),
) -> Option<Commitment> {
    let (mut unread, mut sums) = (None, Vec::new());
    let mut expr = |name: &'static str| {
        let read = spent::read(&form::text(value, name)?, scope, sums.len()).ok();
        if read.is_none() {
            unread.get_or_insert(name);
        }
        let read = read?;
        sums.extend(read.sums);
        Some(read.expr)
    };
    let [guard, discharge, holds, condition] = form::EXPRESSIONS.map(&mut expr);
    let until = form::text(value, "until").and_then(|text| until_of(&text)).map(|until| match until {
        Until::At(ms) => ms,
        Until::For(ms) => now.saturating_add(ms),
    });
    Some(Commitment {
        id: form::text(value, "id")?,
        kind: CommitmentKind::from_word(&form::text(value, "type")?)?,
        is_hard: value.get("hard").and_then(Value::as_bool).unwrap_or(false),
        gloss: form::text(value, "gloss")?,
        guard,
        discharge,
        holds,
        condition,
        until,
        unread,
        sums,
        watch: form::texts(value, "watch"),
        priority: value.get("priority").and_then(Value::as_f64).unwrap_or(0.0),
        scope: form::text(value, "scope").unwrap_or_else(|| "global".into()),
        supersedes: form::text(value, "supersedes"),
        author,
        by: None,
        adopted: None,
        is_imported: false,
        is_of_parent: false,
        tick,
        written: value.clone(),
        closed: None,
        supported_at: tick,
        grounded_by: None,
        is_backed: false,
        has_conflicts: false,
        type_name: type_name.into(),
        stale_by: None,
    })
}
