//! Recording: intents in, through the kernel, onto the end of a run.
//!
//! Intents are gathered into groups: [`Recorder::propose`] judges and seals, [`Recorder::commit`] makes what was
//! gathered durable. Nothing is acknowledged before that. If a group cannot be appended, the recorder is
//! again where the store is, and nothing retries by itself.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use dendrer_kernel::commitment::CONTRACT;
use dendrer_kernel::contract::ImportRefused;
use dendrer_kernel::names::KERNEL_PATHS;
use dendrer_kernel::pack::modules;
use dendrer_kernel::reduce::Reducer;
use dendrer_kernel::replay;
use dendrer_kernel::step::{
    self, Anomaly, Broken, ChildResult, Extension, Finding, Inputs, LineFault, Outcome, Pick, Picked,
    RunState, Seeds, Stage, Start, brought_hard,
};
use dendrer_kernel::unknown::STEP_REPEATED;
use dendrer_object::delta::Action;
use dendrer_object::record::{Author, Body, Header, Kind, Link, Record, cut};
use dendrer_object::{
    ACTION_TYPE, Delta, Digest, Intent, KEY, Pointer, REDACTION, RunName, SCOPE, Timestamp, Value,
};
use dendrer_store::group::UNDER_WAY_MAX;
use dendrer_store::prelude::*;
use dendrer_store::{NewSecrets, Shared, Slot, Store, StoreError, Ticket};

use crate::address::OF_STORE;
use crate::error::Error;
use crate::record::lines::{Overtaken, Reply};
use crate::record::secrets::RunSecrets;
use crate::record::{chain, redacted};
use crate::redact::{RedactionProfile, Redactor};
use crate::run::pack;
use crate::run::parents::Parents;
use crate::run::snapshot::{OUTWEIGH, outweigh, weight};
use crate::run::tile::TileMaker;
use crate::run::trace::{Moment, ReadHandle as _, Trace};
use crate::run::{casebook_name, frontier};

mod parents;

pub use crate::environment::{Environment, Fixed, World};
pub use parents::ParentNote;

/// Writes one run. Owns its handle, so that it can be kept beside others and sent to a thread.
pub struct Recorder {
    store: Shared,
    surroundings: Box<dyn Environment>,
    reducer: Box<dyn Reducer + Send + Sync>,
    head: RunState,
    /// The head of the run before the groups that are on their way.
    settled: RunState,
    /// The groups that were submitted, in their order.
    under_way: VecDeque<Submitted>,
    pending: Vec<Record>,
    snapshots: Snapshots,
    tiles: TileMaker,
    keys: Keys,
    others: Option<WrittenByOthers>,
    /// Takes secrets out of what is proposed.
    secrets: Option<RunSecrets>,
    /// The entries of the parents of a delegated run when they were asked last.
    parents: Parents,
    /// Facts about gathered transitions that their replies state.
    judged: HashMap<Digest, Judged>,
}

/// The places that others than an agent wrote behind a tick.
struct WrittenByOthers {
    base: u64,
    agent: Arc<str>,
    /// The last tick that was read.
    upto: u64,
    places: BTreeSet<Pointer>,
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (run, tick) = (self.head.run(), self.head.tick());
        f.debug_struct("Recorder").field("run", run).field("tick", &tick).finish_non_exhaustive()
    }
}

/// When the next snapshot is due. Folding reads records, so records are what is weighed: once those since the last
/// snapshot outweigh the state [`OUTWEIGH`] times, reading one from there is dearer than reading the state. Snapshots
/// so take a quarter of the room of the records at most; of a state that only grows, none is ever due, because reading
/// the records is as cheap (design, section 5, where deltas are weighed: they say what a state takes to store, and not
/// what it takes to read).
#[derive(Debug, Default)]
struct Snapshots {
    /// The weight of the records since the last one.
    records: usize,
    /// How large a state was when it was last written out.
    last: usize,
    /// Derived bytes that are kept once their group is appended.
    ready: Vec<(u64, Vec<u8>)>,
}

/// After how many intents that are judged together it is looked whether a snapshot is due.
const WEIGHED: usize = 64;

impl Snapshots {
    /// Whether it is time to write the state out.
    fn is_due(&self) -> bool {
        outweigh(self.records, self.last, OUTWEIGH)
    }
}

/// Among how many of the newest records a link is looked for before the log is asked.
const RECENT: usize = 64;

/// A group on its way to the disk.
struct Submitted {
    /// Numbers of the lines that it is of, if it is of lines.
    lines: Vec<u64>,
    records: Vec<Record>,
    ticket: Ticket,
    /// The head of the run after it.
    after: RunState,
}

/// The outcome of an intent that has a `base` or a `key`.
#[derive(Debug, Clone)]
pub enum Guarded {
    /// It was judged; what comes out is gathered.
    Proposed(Box<Outcome>),
    /// It is on record already, as this transition.
    Repeated(Record),
    /// Its key is that of this transition, which says something else.
    KeyUsed(Record),
    /// It was decided on another tick than the last one.
    Stale {
        /// The tick that it was decided on.
        base: u64,
        /// The last tick.
        head: u64,
        /// Places that were written between them.
        changed: Vec<Pointer>,
    },
}

/// How many places a stale line is told, at most.
const CHANGED_MAX: usize = 20;

/// The keys of the transitions of a run.
#[derive(Debug, Default)]
struct Keys {
    ticks: HashMap<Arc<str>, u64>,
    /// The tick of each step by its id.
    steps: HashMap<Arc<str>, u64>,
    /// Up to which tick they were read.
    upto: u64,
}

/// The id of the step of a record.
fn step_id_of(record: &Record) -> Option<Arc<str>> {
    record.body().value(&format!("/{ACTION_TYPE}"))?;
    record.content().get("intent")?.get(chain::STEP)?.get("step_id")?.as_str().map(Arc::from)
}

/// Whether a recorded transition is what an intent proposes: what the kernel added does not count.
fn is_repetition(first: &Record, intent: &Intent, takes_delta: bool) -> Result<bool, Error> {
    let Some(mut recorded) = replay::intent(first, takes_delta)? else { return Ok(false) };
    if let Some(bare) = chain::unstamped(&recorded, intent) {
        recorded = bare;
    }
    // The class of the tool is the pack's, where the line claimed none.
    if intent.member("effect").is_none() {
        recorded.members.retain(|(name, _)| &**name != "effect");
    }
    let bare = |intent: &Intent| {
        // By which rules secrets were taken out is not what a line says.
        let mut intent = intent.clone();
        intent.members.retain(|(name, _)| ![REDACTION, CONTRACT].contains(&&**name));
        let mut bare = Intent { base: None, noted: Vec::new(), reads: Vec::new(), ..intent };
        bare.links.sort();
        bare
    };
    Ok(bare(&recorded) == bare(intent))
}

/// An intent with the scope of the contract under which it is made, if it has a call and no scope.
fn in_scope(intent: &Intent, scope: &Arc<str>) -> Intent {
    let intent = intent.clone();
    match intent.member("action").is_some() && intent.member(SCOPE).is_none() {
        true => intent.carrying(SCOPE, Value::String(Arc::clone(scope))),
        false => intent,
    }
}

/// An intent without what parents said.
fn without_contract(mut intent: Intent) -> Intent {
    intent.members.retain(|(name, _)| &**name != CONTRACT);
    intent
}

/// Facts about a transition that its reply states.
#[derive(Default)]
struct Judged {
    /// Ids of rules and hard commitments that would have refused it, and of hard commitments that it brings, below stage 2.
    not_enforced: Vec<Arc<str>>,
    /// The rules that it is the first to break.
    violations: Vec<Broken>,
    /// Facts about its parents.
    parents: Vec<ParentNote>,
}

impl Judged {
    fn is_empty(&self) -> bool {
        self.not_enforced.is_empty() && self.violations.is_empty() && self.parents.is_empty()
    }
}

/// Returns the ids of what would have refused a transition at stage 2, and of the hard commitments that it brings.
fn not_enforced(intent: &Intent, record: &Record) -> Vec<Arc<str>> {
    let mut ids = brought_hard(intent);
    let refused = record.body().value(&format!("/{}", step::WOULD_REFUSE));
    let listed = refused.as_ref().and_then(Value::as_array).into_iter().flat_map(|all| all.iter());
    for one in listed {
        let named = one.get("ids").and_then(Value::as_array).into_iter().flat_map(|ids| ids.iter());
        for id in named.filter_map(Value::as_str) {
            if !ids.iter().any(|known| **known == *id) {
                ids.push(id.into());
            }
        }
    }
    ids
}

/// The places that a transition sets or removes, but for the kernel's own.
fn overwritten(record: &Record) -> Vec<Pointer> {
    let delta = record.delta();
    let ops = delta.into_iter().flat_map(|Delta(ops)| ops);
    let set = ops.filter(|op| matches!(op.action, Action::Set | Action::Remove)).map(|op| op.path);
    set.filter(|path| path.tokens().next().is_some_and(|top| !KERNEL_PATHS.contains(&&*top))).collect()
}

/// Reads the tags of what the records of a run took.
fn know_newest(secrets: &mut RunSecrets, trace: &Trace, from: u64, to: u64) -> Result<(), Error> {
    secrets.know(trace.start());
    trace.for_each(from, to.min(trace.tip()), &mut |_, record| {
        secrets.know(&record);
        ControlFlow::Continue(())
    })
}

/// A value as a line, to be looked at for words.
fn saying(value: &Value) -> Intent {
    Intent::new("observation.add".parse().expect("a type of the ontology"), "").with("intent", value.clone())
}

/// The redactor of a text about a run: it knows the secrets of its records, too.
pub(crate) fn redactor_over(
    redactor: Arc<Redactor>,
    trace: &Trace,
    said: &Value,
) -> Result<Arc<Redactor>, Error> {
    let mut secrets = RunSecrets::new(redactor, &Value::Null);
    if let Some(from) = secrets.unread(&[saying(said)], trace.tip()) {
        know_newest(&mut secrets, trace, from, trace.tip())?;
    }
    Ok(secrets.redactor_over(said))
}

impl Recorder {
    /// Begins a new run. Its `run` record is part of the first group.
    pub fn begin(
        store: &Shared,
        start: &Start,
        surroundings: Box<dyn Environment>,
    ) -> Result<Recorder, Error> {
        casebook_name::refuse_name(&start.run)?;
        casebook_name::refuse_label(store, &start.run)?;
        Recorder::begin_any(store, start, surroundings)
    }

    /// As [`Recorder::begin`], whatever the run is called.
    pub(crate) fn begin_any(
        store: &Shared,
        start: &Start,
        mut surroundings: Box<dyn Environment>,
    ) -> Result<Recorder, Error> {
        // The commit finds out in any case; the caller learns it before the first intent.
        if store.run(&start.run)?.is_some() {
            return Err(StoreError::RunExists(start.run.clone()).into());
        }
        let inputs = Inputs { clock: surroundings.now(), seeds: Seeds::of_secret(surroundings.seed().0) };
        let reducer = pack::reducer_for(start)?;
        let (record, head) = step::begin(store.info().id, start, inputs)?;
        Ok(Recorder::at(store.clone(), surroundings, reducer, head, vec![record]))
    }

    /// A recorder of a run whose head is known, with what is gathered of it.
    fn at(
        store: Shared,
        surroundings: Box<dyn Environment>,
        reducer: Box<dyn Reducer + Send + Sync>,
        head: RunState,
        pending: Vec<Record>,
    ) -> Recorder {
        Recorder {
            store,
            surroundings,
            reducer,
            settled: head.clone(),
            head,
            under_way: VecDeque::new(),
            pending,
            snapshots: Snapshots::default(),
            tiles: TileMaker::default(),
            keys: Keys::default(),
            others: None,
            secrets: None,
            parents: Parents::default(),
            judged: HashMap::new(),
        }
    }

    /// Takes secrets out of what is proposed from now on. The beginning of a run is not: [`redacted::start`] does that.
    pub fn redacting(mut self, redactor: Option<Arc<Redactor>>) -> Recorder {
        self.secrets = redactor.map(|redactor| RunSecrets::new(redactor, self.head.state()));
        self
    }

    /// An intent as it is judged. One that was redacted before it came here is taken as it is.
    fn redacted<'i>(&mut self, intents: &'i [Intent]) -> Result<Cow<'i, [Intent]>, Error> {
        self.know(intents)?;
        Ok(match &mut self.secrets {
            Some(secrets) => Cow::Owned(secrets.redact_each(intents)),
            None => Cow::Borrowed(intents),
        })
    }

    /// Reads the tags of earlier records, if lines have words that may be secrets of them.
    fn know(&mut self, intents: &[Intent]) -> Result<(), Error> {
        let head = self.head.tick();
        let Some(secrets) = &mut self.secrets else { return Ok(()) };
        if let Some(from) = secrets.unread(intents, head)
            && self.store.run(self.head.run())?.is_some()
        {
            let trace = Trace::open(&self.store, self.head.run())?;
            know_newest(secrets, &trace, from, head)?;
        }
        Ok(())
    }

    /// Begins a fork. Its `run` record and its marker are the beginning of the first group; returns the marker, too.
    pub(crate) fn fork(
        store: &Shared,
        parent: &RunState,
        fork: &step::Fork,
        reducer: Box<dyn Reducer + Send + Sync>,
        mut surroundings: Box<dyn Environment>,
        redactor: Option<Arc<Redactor>>,
    ) -> Result<(Recorder, Record), Error> {
        casebook_name::refuse_name(&fork.run)?;
        casebook_name::refuse_label(store, &fork.run)?;
        let inputs = Inputs { clock: surroundings.now(), seeds: Seeds::of_secret(surroundings.seed().0) };
        let clean = redactor.as_ref().map(|redactor| {
            let (about, set, redaction) = redacted::fork(redactor, &fork.about, &fork.set);
            step::Fork { about, set, redaction: Some(redaction), ..fork.clone() }
        });
        let (begin, marker, head) = step::fork(parent, clean.as_ref().unwrap_or(fork), inputs)?;
        let group = vec![begin, marker.clone()];
        let recorder = Recorder::at(store.clone(), surroundings, reducer, head, group);
        let mut recorder = recorder.redacting(redactor);
        recorder.parents = Parents::of_fork(parent);
        recorder.follow(inputs.behind(1))?;
        Ok((recorder, marker))
    }

    /// Goes on with a run from where it stands.
    pub fn resume(
        store: &Shared,
        run: &RunName,
        surroundings: Box<dyn Environment>,
    ) -> Result<Recorder, Error> {
        Recorder::resume_if(store, run, surroundings, |trace| match casebook_name::is_casebook(trace) {
            true => Err(Error::Casebook { run: run.clone() }),
            // Only `graph run` writes it. A fork of it is a run like any other.
            false if trace.lineage().len() == 1 && frontier::is_graph(trace) => {
                Err(Error::RunOfGraph { run: run.clone() })
            }
            false => Ok(()),
        })
    }

    /// As [`Recorder::resume`], for a run that is to end at a tick: what follows was decided on what is there.
    pub(crate) fn resume_at(
        store: &Shared,
        run: &RunName,
        tip: u64,
        surroundings: Box<dyn Environment>,
    ) -> Result<Recorder, Error> {
        let recorder = Recorder::resume(store, run, surroundings)?;
        match recorder.head().tick() {
            tick if tick == tip => Ok(recorder),
            tick => Err(Error::Moved { run: run.clone(), tick }),
        }
    }

    /// As [`Recorder::resume`], for a run that `check` lets be gone on with.
    pub(crate) fn resume_if(
        store: &Shared,
        run: &RunName,
        surroundings: Box<dyn Environment>,
        check: impl FnOnce(&Trace) -> Result<(), Error>,
    ) -> Result<Recorder, Error> {
        Recorder::resume_any(store, run, surroundings, |trace| {
            check(trace)?;
            match is_imported(trace) {
                true => Err(Error::Imported { run: run.clone() }),
                false => Ok(()),
            }
        })
    }

    /// Continues an import that was stopped before its end ([`Trace::unfinished`]). Another imported run takes no line.
    ///
    /// # Errors
    ///
    /// E0409 if the import of the run has ended.
    pub fn resume_import(
        store: &Shared,
        run: &RunName,
        surroundings: Box<dyn Environment>,
    ) -> Result<Recorder, Error> {
        Recorder::resume_any(store, run, surroundings, |trace| match trace.unfinished()? {
            Some(_) => Ok(()),
            None => Err(Error::Imported { run: run.clone() }),
        })
    }

    fn resume_any(
        store: &Shared,
        run: &RunName,
        surroundings: Box<dyn Environment>,
        check: impl FnOnce(&Trace) -> Result<(), Error>,
    ) -> Result<Recorder, Error> {
        let mut store = store.clone();
        store.refresh()?;
        let trace = Trace::open(&store, run)?;
        check(&trace)?;
        trace.refuse_removed()?;
        trace.confirm_end()?;
        let (head, records) = trace.fold_head(trace.tip())?;
        let reducer = pack::reducer_of(&trace)?;
        drop(trace);
        let mut recorder = Recorder::at(store, surroundings, reducer, head, Vec::new());
        // How large the state is shows when it is written out.
        recorder.snapshots.records = records;
        Ok(recorder)
    }

    /// The head of the run, with the gathered records.
    pub fn head(&self) -> &RunState {
        &self.head
    }

    /// Whether intents bring the change of state, and no rule makes it.
    pub fn takes_delta(&self) -> bool {
        self.reducer.takes_delta()
    }

    /// Whether a group may be appended while more is to come that has to be there as a whole. Not under a module: a limit
    /// may end it at any transition, and what came before would be left.
    pub(crate) fn may_append(&self) -> bool {
        self.reducer.name() != modules::NAME
    }

    /// How many records are gathered and not yet handed to the store.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// The records that are gathered, from an index on.
    pub(crate) fn gathered(&self, from: usize) -> &[Record] {
        self.pending.get(from..).unwrap_or_default()
    }

    /// The time of the clock.
    pub(crate) fn now(&mut self) -> Timestamp {
        self.surroundings.now()
    }

    /// Judges an intent. The outcome is gathered; it is on record once the group is committed.
    pub fn propose(&mut self, intent: &Intent) -> Result<Outcome, Error> {
        let outcomes = self.propose_each(std::slice::from_ref(intent));
        Ok(outcomes.map_err(|(_, error)| error)?.pop().expect("one for one"))
    }

    /// Judges an intent that has a `base` or a `key` (design, section 4), alone: nothing may be gathered or on its way. First the
    /// run is read on to its end in the store, unless the recording is a dry run. The key is looked at before the base.
    ///
    /// With `causal`, it is stale only if another agent wrote behind its base at, above or below a place that it writes or read;
    /// `causal` is the base of an intent that has none.
    pub fn propose_guarded(
        &mut self,
        intent: &Intent,
        dry: bool,
        causal: Option<u64>,
    ) -> Result<Guarded, Error> {
        let made = self.redacted(std::slice::from_ref(intent))?;
        let intent = &made[0];
        if !dry {
            self.catch_up()?;
        }
        if let Some(key) = intent.member(KEY).and_then(Value::as_str)
            && let Some(tick) = self.tick_of_key(key)?
        {
            let trace = Trace::open(&self.store, self.head.run())?;
            let first = trace.record(tick)?;
            let is_same = is_repetition(&first, intent, self.takes_delta())?;
            return Ok(if is_same { Guarded::Repeated(first) } else { Guarded::KeyUsed(first) });
        }
        let head = self.head.tick();
        if let Some(known) = causal {
            return self.propose_causal(intent, intent.base.unwrap_or(known), head);
        }
        if let Some(base) = intent.base.filter(|base| *base != head) {
            return Ok(Guarded::Stale { base, head, changed: self.changed_since(base)? });
        }
        Ok(Guarded::Proposed(Box::new(self.propose(intent)?)))
    }

    /// Judges an intent whose agent does not wait for agents that write elsewhere.
    fn propose_causal(&mut self, intent: &Intent, base: u64, head: u64) -> Result<Guarded, Error> {
        let others = match base < head {
            true => self.changed_by_others(base, &intent.agent)?,
            false => Vec::new(),
        };
        let changed = |places: &[&Pointer]| -> Vec<Pointer> {
            let is_met = |other: &&Pointer| places.iter().any(|place| place.overlaps(other));
            others.iter().filter(is_met).take(CHANGED_MAX).cloned().collect()
        };
        let own = intent.delta.iter().flat_map(Delta::paths).chain(&intent.reads);
        let met = changed(&own.collect::<Vec<_>>());
        if !met.is_empty() || base > head {
            return Ok(Guarded::Stale { base, head, changed: met });
        }
        let outcome = self.propose(intent)?;
        // The changes that rules wrote for it are known now.
        let delta = outcome.records().into_iter().filter_map(|record| record.body().value("/delta"));
        let deltas: Vec<Delta> = delta.filter_map(|delta| Delta::from_value(&delta).ok()).collect();
        let met = changed(&deltas.iter().flat_map(Delta::paths).collect::<Vec<_>>());
        if !met.is_empty() {
            self.discard();
            return Ok(Guarded::Stale { base, head, changed: met });
        }
        Ok(Guarded::Proposed(Box::new(outcome)))
    }

    /// Reads the run on to its end in the store.
    pub(crate) fn catch_up(&mut self) -> Result<(), Error> {
        self.store.refresh()?;
        self.read_on()
    }

    /// Reads the run on to its end in the store as this process knows it.
    pub(crate) fn read_on(&mut self) -> Result<(), Error> {
        let known = Some(self.head.tick());
        // A run that only begins is not in the store yet.
        if !self.pending.is_empty()
            || self.store.run(self.head.run())?.is_none_or(|run| run.head.tick == known)
        {
            return Ok(());
        }
        let trace = Trace::open(&self.store, self.head.run())?;
        if trace.tip() != self.head.tick() {
            // Only what others wrote is folded.
            trace.remember(&Moment::of(&self.head));
            let (head, records) = trace.fold_head(trace.tip())?;
            self.snapshots = Snapshots { records, ..Snapshots::default() };
            self.settled = head.clone();
            self.head = head;
        }
        Ok(())
    }

    /// The tick of the transition with a key. The keys of a run are read once, and those of later ticks when they are asked for.
    fn tick_of_key(&mut self, key: &str) -> Result<Option<u64>, Error> {
        self.read_keys()?;
        Ok(self.keys.ticks.get(key).copied())
    }

    fn read_keys(&mut self) -> Result<(), Error> {
        if self.store.run(self.head.run())?.is_some() {
            let trace = Trace::open(&self.store, self.head.run())?;
            let (from, to) = (self.keys.upto + 1, trace.tip().min(self.head.tick()));
            let known = &mut self.keys;
            trace.for_each(from, to, &mut |tick, record| {
                let place = format!("/{KEY}");
                let key = record.body().value(&place).and_then(|key| key.as_str().map(Arc::<str>::from));
                known.ticks.extend(key.map(|key| (key, tick)));
                if let Some(id) = step_id_of(&record) {
                    known.steps.entry(id).or_insert(tick);
                }
                ControlFlow::Continue(())
            })?;
            self.keys.upto = to.max(self.keys.upto);
        }
        Ok(())
    }

    /// The intents, each noted as repeated whose line gives the id of a step of the run.
    fn noting_repeated_steps<'i>(&mut self, intents: &'i [Intent]) -> Result<Cow<'i, [Intent]>, Error> {
        if intents.iter().all(|intent| chain::given_id(intent).is_none()) {
            return Ok(Cow::Borrowed(intents));
        }
        self.read_keys()?;
        let groups = self.under_way.iter().map(|submitted| &submitted.records).chain([&self.pending]);
        let gathered = groups.flat_map(|records| records.iter()).filter_map(step_id_of);
        let mut seen: HashSet<Arc<str>> = gathered.collect();
        let mut made = Vec::with_capacity(intents.len());
        for intent in intents {
            let mut intent = intent.clone();
            if let Some(id) = chain::given_id(&intent).map(Arc::<str>::from) {
                let tick = self.keys.steps.get(&id).copied();
                if tick.is_some() || !seen.insert(id) {
                    let first = tick.map(|tick| ("first", Value::from(tick)));
                    let kind = ("kind", Value::from(STEP_REPEATED));
                    intent.noted.push(Value::record([kind].into_iter().chain(first)));
                }
            }
            made.push(intent);
        }
        Ok(Cow::Owned(made))
    }

    /// The places that were written behind a tick, at most [`CHANGED_MAX`] of them.
    fn changed_since(&self, base: u64) -> Result<Vec<Pointer>, Error> {
        let trace = Trace::open(&self.store, self.head.run())?;
        let mut changed = BTreeSet::new();
        trace.for_each(base.saturating_add(1), trace.tip(), &mut |_, record| {
            let delta = record.delta();
            changed.extend(delta.iter().flat_map(Delta::paths).cloned());
            if changed.len() < CHANGED_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(changed.into_iter().take(CHANGED_MAX).collect())
    }

    /// The places that others than an agent wrote behind a tick, but for what the kernel writes. A line that is judged again reads
    /// only what came since.
    fn changed_by_others(&mut self, base: u64, agent: &str) -> Result<Vec<Pointer>, Error> {
        let trace = Trace::open(&self.store, self.head.run())?;
        let known = self.others.take().filter(|known| known.base == base && &*known.agent == agent);
        let mut known = known.unwrap_or_else(|| WrittenByOthers {
            base,
            agent: agent.into(),
            upto: base,
            places: BTreeSet::new(),
        });
        let is_kernels =
            |path: &&Pointer| path.tokens().next().is_some_and(|top| KERNEL_PATHS.contains(&&*top));
        trace.for_each(known.upto.saturating_add(1), trace.tip(), &mut |_, record| {
            let writer = record.body().value("/agent_id");
            if writer.as_ref().and_then(Value::as_str) != Some(agent) {
                let delta = record.delta();
                let written = delta.iter().flat_map(Delta::paths).filter(|path| !is_kernels(path)).cloned();
                known.places.extend(written);
            }
            ControlFlow::Continue(())
        })?;
        known.upto = trace.tip().max(known.upto);
        let places = known.places.iter().cloned().collect();
        self.others = Some(known);
        Ok(places)
    }

    /// Notes in replies to committed lines which rules they are the first to break, and what the stage of the run does not enforce.
    pub(crate) fn note_judged(&mut self, replies: &mut [Reply]) {
        for reply in replies {
            if let Reply::Committed { record, notes, .. } = reply
                && let Some(judged) = self.judged.remove(&record.id())
            {
                notes.not_enforced = judged.not_enforced;
                notes.violations = judged.violations;
                notes.parents = judged.parents;
            }
        }
    }

    /// Keeps what replies state of the parents of the newest outcomes.
    fn keep_parents(&mut self, intents: &[(&Intent, Inputs)], outcomes: &[Outcome]) -> Result<(), Error> {
        for ((intent, _), outcome) in intents.iter().zip(outcomes) {
            let Some(record) = outcome.committed().filter(|_| !intent.links.is_empty()) else { continue };
            let parents = self.parent_notes(intent, record)?;
            if !parents.is_empty() {
                self.judged.entry(record.id()).or_default().parents = parents;
            }
        }
        Ok(())
    }

    /// Keeps what replies state of the newest outcomes, given the state before them. `is_latched` is true if a rule was broken.
    fn keep_judged(
        &mut self,
        intents: &[(&Intent, Inputs)],
        outcomes: &[Outcome],
        before: &Value,
        is_latched: bool,
    ) {
        let is_below = self.head.stage() < Stage::Contracts;
        if !is_below && !is_latched {
            return;
        }
        let mut state = before.clone();
        for ((intent, _), outcome) in intents.iter().zip(outcomes) {
            let mut judged = Judged::default();
            if let (true, Some(record)) = (is_below, outcome.committed()) {
                judged.not_enforced = not_enforced(intent, record);
            }
            for record in
                outcome.records().into_iter().filter(|record| record.header().kind == Kind::Transition)
            {
                if is_latched && let Ok(after) = replay::recorded_state(&state, record) {
                    state = after;
                    judged.violations.extend(step::broken_by(&self.head, record, &state));
                }
            }
            if let (Some(record), false) = (outcome.committed(), judged.is_empty()) {
                self.judged.insert(record.id(), judged);
            }
        }
    }

    /// Notes in replies to committed lines the places that they set and that another writer set after tick `read`, up to `upto`.
    pub(crate) fn note_overtaken(&self, read: u64, upto: u64, replies: &mut [Reply]) -> Result<(), Error> {
        let lines = replies.iter().filter_map(|reply| match reply {
            Reply::Committed { record, .. } => Some(record),
            _ => None,
        });
        let own: BTreeSet<Pointer> = lines.flat_map(overwritten).collect();
        if read >= upto || own.is_empty() {
            return Ok(());
        }
        let mut written: BTreeMap<Pointer, (u64, Arc<str>)> = BTreeMap::new();
        let trace = Trace::open(&self.store, self.head.run())?;
        trace.for_each(read + 1, upto, &mut |tick, record| {
            let agent = record.body().value("/agent_id");
            let agent: Arc<str> = agent.as_ref().and_then(Value::as_str).unwrap_or_default().into();
            let delta = record.delta();
            let met =
                delta.iter().flat_map(Delta::paths).filter(|path| own.iter().any(|own| own.overlaps(path)));
            written.extend(met.map(|path| (path.clone(), (tick, agent.clone()))));
            ControlFlow::Continue(())
        })?;
        for reply in replies {
            let Reply::Committed { record, notes, .. } = reply else { continue };
            let own = overwritten(record);
            let before = record.header().tick.unwrap_or_default();
            let written = written.iter().filter(|(_, (tick, _))| *tick < before);
            let met = written.filter(|(path, _)| own.iter().any(|own| own.overlaps(path)));
            let met = met.map(|(path, (tick, agent))| Overtaken {
                path: path.clone(),
                tick: *tick,
                agent: agent.clone(),
            });
            notes.overtaken = met.take(CHANGED_MAX).collect();
        }
        Ok(())
    }

    /// As [`Recorder::propose`], but what comes out is taken back where `keep`, which is given the head before and after, does
    /// not want it: then it is as if nothing had been proposed.
    pub(crate) fn propose_if(
        &mut self,
        intent: &Intent,
        keep: impl FnOnce(&Outcome, &RunState, &RunState) -> bool,
    ) -> Result<Outcome, Error> {
        let (before, gathered) = (self.head.clone(), self.pending.len());
        let outcome = self.propose(intent)?;
        if !keep(&outcome, &before, &self.head) {
            self.snapshots.ready.retain(|(tick, _)| *tick <= before.tick());
            self.pending.truncate(gathered);
            self.head = before;
        }
        Ok(outcome)
    }

    /// As [`Recorder::propose`] for several intents in order: the same records, at less cost. Fails with the index
    /// of an intent that cannot be sealed, or whose module a limit ended; what comes out before it is gathered, what follows is not looked at.
    pub fn propose_each(&mut self, intents: &[Intent]) -> Result<Vec<Outcome>, (usize, Error)> {
        self.propose_each_at(intents, &[])
    }

    /// As [`Recorder::propose_each`] for intents that came one by one before: `came` has the time of each, or is empty.
    pub(crate) fn propose_each_at(
        &mut self,
        intents: &[Intent],
        came: &[Timestamp],
    ) -> Result<Vec<Outcome>, (usize, Error)> {
        let intents = &*self.noting_repeated_steps(intents).map_err(|error| (0, error))?;
        let intents = &*chain::stamped(intents, &mut *self.surroundings);
        let intents = &*self.redacted(intents).map_err(|error| (0, error))?;
        match self.unknown_link(intents) {
            None => {
                let outcomes = self.step_each(intents, came)?;
                if let Some(secrets) = &mut self.secrets {
                    secrets.sealed(outcomes.iter().map(Outcome::committed));
                }
                Ok(outcomes)
            }
            // The store would turn the whole group down; what stands before the intent is not its fault.
            Some((at, error)) => self.step_each(&intents[..at], came).and(Err((at, error))),
        }
    }

    /// The entries of the parents of a delegated run that no record of it holds yet. The store is read on to its end first.
    fn news(&mut self) -> Result<Option<Value>, Error> {
        if !self.head.commitments().hears_parents() {
            return Ok(None);
        }
        self.store.refresh()?;
        let (store, surroundings) = (self.store.to_handle(), &mut self.surroundings);
        self.parents.news(&store, &self.head, &mut || surroundings.now())
    }

    /// Judges intents with what the parents of a delegated run say: it is sealed with the first that becomes a transition, and with
    /// each refusal before that.
    fn step_each(&mut self, intents: &[Intent], came: &[Timestamp]) -> Result<Vec<Outcome>, (usize, Error)> {
        let brings = |intent: &Intent| intent.member(CONTRACT).is_some();
        let without: Vec<Intent>;
        let intents = match intents.iter().any(brings) {
            // A line that was proposed elsewhere has what was true there.
            true => {
                without = intents.iter().map(|intent| without_contract(intent.clone())).collect();
                &without
            }
            false => intents,
        };
        let scoped: Vec<Intent>;
        let intents = match self.head.commitments().contract().and_then(|contract| contract.scope()) {
            Some(scope) => {
                scoped = intents.iter().map(|intent| in_scope(intent, &scope)).collect();
                &scoped
            }
            None => intents,
        };
        let news = self.news().map_err(|error| (0, error))?;
        let Some(news) = news else { return self.step_all(intents, came) };
        let mut outcomes = Vec::with_capacity(intents.len());
        for (at, intent) in intents.iter().enumerate() {
            let mut intent = intent.clone();
            intent.members.push((CONTRACT.into(), news.clone()));
            intent.members.sort_by(|(one, _), (other, _)| one.cmp(other));
            let time = came.get(at..=at).unwrap_or_default();
            let made =
                self.step_all(std::slice::from_ref(&intent), time).map_err(|(_, error)| (at, error))?;
            let is_sealed = made.iter().any(|outcome| outcome.committed().is_some());
            outcomes.extend(made);
            if is_sealed {
                let rest = self.step_all(&intents[at + 1..], came.get(at + 1..).unwrap_or_default());
                outcomes.extend(rest.map_err(|(more, error)| (at + 1 + more, error))?);
                break;
            }
        }
        Ok(outcomes)
    }

    /// Finds the first intent with a link to a record that is neither in the log, nor on its way there, nor gathered, or that
    /// merges a record of another run.
    fn unknown_link(&mut self, intents: &[Intent]) -> Option<(usize, Error)> {
        let links = intents
            .iter()
            .enumerate()
            .flat_map(|(at, intent)| intent.links.iter().map(move |link| (at, link)));
        let gathered = || {
            let groups = self.under_way.iter().map(|submitted| &submitted.records).chain([&self.pending]);
            groups.rev().flat_map(|records| records.iter().rev())
        };
        for (at, link) in links {
            let is_it = |record: &Record| record.id() == link.hash;
            // Most links are to what was made just before. The gathered records may be many, and the log is quick to ask.
            if gathered().take(RECENT).any(is_it) {
                continue;
            }
            match self.store.find(&link.hash) {
                Ok(Some(_)) => {}
                Ok(None) if gathered().skip(RECENT).any(is_it) => {}
                // Another handle may have written it since this one last read on.
                Ok(None) => match self.store.refresh().and_then(|_| self.store.find(&link.hash)) {
                    Ok(Some(_)) => {}
                    Ok(None) => return Some((at, StoreError::NoRecord(link.hash).into())),
                    Err(error) => return Some((at, error.into())),
                },
                Err(error) => return Some((at, error.into())),
            }
        }
        self.check_parents(intents).err()
    }

    fn step_all(&mut self, intents: &[Intent], came: &[Timestamp]) -> Result<Vec<Outcome>, (usize, Error)> {
        // Records that came together are committed together, so they have one time.
        let clock = if came.len() < intents.len() { self.surroundings.now() } else { self.head.ts() };
        let surroundings = &mut self.surroundings;
        let items: Vec<(&Intent, Inputs)> = intents
            .iter()
            .enumerate()
            .map(|(at, intent)| {
                let clock = came.get(at).copied().unwrap_or(clock);
                (intent, Inputs { clock, seeds: Seeds::of_secret(surroundings.seed().0) })
            })
            .collect();
        let mut outcomes = Vec::with_capacity(intents.len());
        for items in items.chunks(WEIGHED) {
            let (before, state) = (outcomes.len(), self.head.state().clone());
            let result = step::step_each(&mut self.head, items, &*self.reducer, &mut outcomes);
            let is_latched = self.head.state().get("policy") != state.get("policy");
            self.keep_judged(items, &outcomes[before..], &state, is_latched);
            for outcome in &outcomes[before..] {
                match outcome {
                    Outcome::Committed(record) => self.gather(record.clone()),
                    other => other.records().into_iter().for_each(|record| self.gather(record.clone())),
                }
            }
            self.weigh();
            if let Err(error) = result {
                return Err((outcomes.len(), error.into()));
            }
            self.keep_parents(items, &outcomes[before..]).map_err(|error| (before, error))?;
        }
        Ok(outcomes)
    }

    /// Puts a record into the group.
    fn gather(&mut self, record: Record) {
        if record.header().kind == Kind::Transition {
            self.snapshots.records += weight(&record);
        }
        self.pending.push(record);
    }

    /// Writes the state out where folding to it has become dear.
    fn weigh(&mut self) {
        if !self.snapshots.is_due() {
            return;
        }
        let bytes = Moment::of(&self.head).to_snapshot(self.store.key().map(|key| &**key));
        self.snapshots.last = bytes.len();
        // A part that has grown since it was last written out may not be worth its room after all.
        if self.snapshots.is_due() {
            self.snapshots.records = 0;
            self.snapshots.ready.push((self.head.tick(), bytes));
        }
    }

    /// Takes what a transition of another run says as the next one of this run, under the reducer of this run.
    /// `relink` says where a link of the record leads here. Returns what was made: nothing, where that run's contract spoke.
    pub fn retell(
        &mut self,
        record: &Record,
        relink: &dyn Fn(Link) -> Link,
        keeps_origin: bool,
    ) -> Result<Vec<Record>, Error> {
        let inputs = self.inputs();
        let made = replay::retell(&mut self.head, record, relink, keeps_origin, inputs, &*self.reducer)?;
        made.iter().for_each(|record| self.gather(record.clone()));
        self.weigh();
        Ok(made)
    }

    /// Puts the refusal of a line on record that is no intent, or that speaks for an author who did not write it.
    pub fn refuse_line(&mut self, line: &Value, fault: LineFault) -> Result<Outcome, Error> {
        let inputs = self.inputs();
        self.know(&[saying(line)])?;
        let (line, fault) = match &mut self.secrets {
            Some(secrets) => redacted::refused(&secrets.redactor_over(line), line, fault),
            None => (line.clone(), fault),
        };
        let outcome = step::refuse_line(&mut self.head, &line, fault, inputs)?;
        outcome.records().into_iter().for_each(|record| self.gather(record.clone()));
        self.follow(inputs)?;
        Ok(outcome)
    }

    /// The rules by which secrets are taken out of what is proposed; `None` if nothing is.
    pub(crate) fn redactor(&self) -> Option<&Redactor> {
        self.secrets.as_ref().map(|secrets| &**secrets.redactor())
    }

    /// Puts an anomaly that the runtime saw on record, without its secrets.
    pub fn note_anomaly(&mut self, anomaly: &Anomaly) -> Result<Record, Error> {
        self.know(&[saying(&anomaly.about)])?;
        let mut anomaly = anomaly.clone();
        if let Some(secrets) = &mut self.secrets {
            anomaly.about = redacted::value(&secrets.redactor_over(&anomaly.about), &anomaly.about);
        }
        self.write(|head, inputs| step::note_anomaly(head, &anomaly, inputs))
    }

    /// Puts an extension of the contract on record.
    pub fn extend(&mut self, extension: &Extension) -> Result<Record, Error> {
        let inputs = self.inputs();
        let record = step::extend(&mut self.head, extension, inputs)?;
        self.wrote(record, inputs)
    }

    /// Ends the run: what is gathered so far is the last of it.
    pub fn end(&mut self) -> Result<Record, Error> {
        let inputs = self.inputs();
        let record = step::end(&self.head, inputs)?;
        self.gather(record.clone());
        Ok(record)
    }

    /// Gathers what was written past the agents, with what it brought about.
    fn wrote(&mut self, record: Record, inputs: Inputs) -> Result<Record, Error> {
        self.gather(record.clone());
        self.follow(inputs)?;
        Ok(record)
    }

    /// Gathers what the newest record of the kernel brought about that must never happen.
    fn follow(&mut self, inputs: Inputs) -> Result<(), Error> {
        let found = step::settle(&mut self.head, inputs)?;
        found.into_iter().for_each(|record| self.gather(record));
        Ok(())
    }

    /// Puts what an analysis found on record.
    pub(crate) fn note_finding(&mut self, finding: &Finding) -> Result<Record, Error> {
        let inputs = self.inputs();
        let record = step::note_finding(&mut self.head, finding, inputs)?;
        self.gather(record.clone());
        self.weigh();
        Ok(record)
    }

    /// Puts on record what the kernel makes.
    pub(crate) fn write(
        &mut self,
        make: impl FnOnce(&mut RunState, Inputs) -> Result<Record, dendrer_object::record::SealError>,
    ) -> Result<Record, Error> {
        let inputs = self.inputs();
        let record = make(&mut self.head, inputs)?;
        self.wrote(record, inputs)
    }

    /// Puts the refusal of what a child run brought on record.
    pub(crate) fn refuse_accept(&mut self, result: &ChildResult, ids: &[Arc<str>]) -> Result<Record, Error> {
        let inputs = self.inputs();
        let refusal = step::refuse_accept(&self.head, result, ids, inputs)?;
        self.gather(refusal.clone());
        Ok(refusal)
    }

    /// Imports a transition that was checked: the marker and what the door makes of it are gathered, or its refusal.
    pub(crate) fn pick(&mut self, pick: &Pick) -> Result<Picked, Error> {
        let mut pick = pick.clone();
        pick.intent = without_contract(pick.intent);
        if let Some(news) = self.news()? {
            pick.intent.members.push((CONTRACT.into(), news));
            pick.intent.members.sort_by(|(one, _), (other, _)| one.cmp(other));
        }
        let inputs = self.inputs();
        let picked = step::cherrypick(&mut self.head, &pick, inputs, &*self.reducer)?;
        if let Picked::Imported { marker, record } = &picked {
            self.gather(marker.clone());
            self.gather(record.clone());
        }
        self.weigh();
        Ok(picked)
    }

    /// Puts the refusal of an import on record.
    pub(crate) fn refuse_import(&mut self, pick: &Pick, refused: &ImportRefused) -> Result<Record, Error> {
        let inputs = self.inputs();
        let refusal = step::refuse_import(&self.head, pick, refused, inputs)?;
        self.gather(refusal.clone());
        Ok(refusal)
    }

    fn inputs(&mut self) -> Inputs {
        Inputs { clock: self.surroundings.now(), seeds: Seeds::of_secret(self.surroundings.seed().0) }
    }

    /// Takes the gathered group back: what would have been committed. The head stands where the store does, or will once what
    /// is on its way has arrived.
    pub fn discard(&mut self) -> Vec<Record> {
        self.head = self.submitted().clone();
        self.judged.clear();
        self.snapshots.ready.clear();
        std::mem::take(&mut self.pending)
    }

    /// Takes back what was gathered, and returns where times and seeds come from.
    pub(crate) fn into_surroundings(self) -> Box<dyn Environment> {
        self.surroundings
    }

    /// The head of the run after everything that was handed to the store.
    fn submitted(&mut self) -> &mut RunState {
        self.under_way.back_mut().map_or(&mut self.settled, |last| &mut last.after)
    }

    /// Hands the group to the store and starts to make it durable; the next one can be gathered meanwhile. With more than
    /// [`UNDER_WAY_MAX`] groups on their way, waits for the oldest and returns its records.
    pub fn submit(&mut self) -> Result<Option<Vec<Record>>, Error> {
        self.submit_lines(Vec::new());
        if self.under_way.len() > UNDER_WAY_MAX { self.wait() } else { Ok(None) }
    }

    /// Hands a group of lines to the store.
    pub(crate) fn submit_lines(&mut self, lines: Vec<u64>) {
        let records = std::mem::take(&mut self.pending);
        let ticket = self.store.submit_group_after(&records, self.parents.heads());
        self.keep_snapshots();
        self.keep_tiles(&records);
        self.under_way.push_back(Submitted { lines, records, ticket, after: self.head.clone() });
    }

    /// Waits until the oldest group on its way is durable and returns its records: now they may be acknowledged. `None` if none
    /// is on its way.
    ///
    /// If the group came too late after all, what was gathered since is discarded. Those after it are still to be waited for, one
    /// by one: they came too late, too, unless the group was refusals only, which no other group follows. Then the run is where
    /// the log has it.
    pub fn wait(&mut self) -> Result<Option<Vec<Record>>, Error> {
        self.wait_lines().map(|(_, records)| records).transpose()
    }

    /// As [`Recorder::wait`], with the numbers of the lines.
    pub(crate) fn wait_lines(&mut self) -> Option<(Vec<u64>, Result<Vec<Record>, Error>)> {
        let Submitted { lines, records, ticket, after } = self.under_way.pop_front()?;
        let result = self.store.wait(ticket);
        match &result {
            Err(error) if !is_on_record(error) => {
                self.tiles.leave();
                drop(self.discard());
            }
            _ => self.settled = after,
        }
        Some((lines, result.map(|()| records).map_err(Error::from)))
    }

    /// Tells whether a group is on its way.
    pub fn is_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }

    /// Whether the oldest group is to be waited for before the next one is handed to the store.
    pub(crate) fn is_full(&self) -> bool {
        self.under_way.len() >= UNDER_WAY_MAX
    }

    /// Appends the group without waiting for the disk. Survives the end of the process, not of the machine.
    pub fn append(&mut self) -> Result<Vec<Record>, Error> {
        let heads = self.parents.heads();
        self.put(|store, records| store.append_after(records, &heads))
    }

    /// Makes the group durable and returns its records.
    pub fn commit(&mut self) -> Result<Vec<Record>, Error> {
        self.commit_with(NewSecrets::default())
    }

    /// As [`Recorder::commit`], with bytes of the vault that the records name.
    pub(crate) fn commit_with(&mut self, secrets: NewSecrets) -> Result<Vec<Record>, Error> {
        let heads = self.parents.heads();
        self.put(|store, records| store.commit_after(records, heads, secrets))
    }

    fn put(
        &mut self,
        put: impl FnOnce(&mut Shared, &[Record]) -> Result<Range<u64>, StoreError>,
    ) -> Result<Vec<Record>, Error> {
        let records = std::mem::take(&mut self.pending);
        let result = put(&mut self.store, &records);
        if result.as_ref().map_or_else(is_on_record, |_| true) {
            *self.submitted() = self.head.clone();
        }
        match result {
            Ok(_) => {
                self.keep_snapshots();
                self.keep_tiles(&records);
                Ok(records)
            }
            Err(error) => {
                // Nothing of the group may be built upon, unless it is on record.
                self.discard();
                Err(error.into())
            }
        }
    }

    /// Sums a group that was handed to the store, and keeps the tiles that it completes. A tile names its last record, so one of a
    /// group that is not on record after all is of no use.
    fn keep_tiles(&mut self, records: &[Record]) {
        let transitions = records.iter().filter(|record| record.header().kind == Kind::Transition);
        for (tick, record) in transitions.filter_map(|record| Some((record.header().tick?, record))) {
            self.tiles.add(tick, record);
        }
        for tile in self.tiles.ready.drain(..) {
            tile.keep(&self.store, self.head.run(), None);
        }
    }

    /// Keeps the snapshots of a group that was handed to the store. One that could not be kept costs only time.
    fn keep_snapshots(&mut self) {
        for (tick, bytes) in std::mem::take(&mut self.snapshots.ready) {
            let _ = self.store.keep(Slot::Snapshot(self.head.run(), tick), &bytes);
        }
    }
}

/// Tells whether the group that an error is about stands in the log, though maybe not on the disk.
fn is_on_record(error: &StoreError) -> bool {
    matches!(error, StoreError::SyncFailed { .. })
}

/// Tells whether the ticks of a run are the messages of a source: not of a fork of it, which has ticks of its own, and not
/// of a run that was reduced from it. A thread of checkpoints has ticks of the saver that continues it.
fn is_imported(trace: &Trace) -> bool {
    if trace.name().as_str().contains(OF_STORE) {
        return true;
    }
    let inputs = trace.start().body().value("/inputs");
    let has = |name: &str| inputs.as_ref().is_some_and(|inputs| inputs.get(name).is_some());
    let is_thread = || {
        inputs.as_ref().is_some_and(|inputs| inputs.get("source").and_then(|one| one.get("thread")).is_some())
    };
    trace.lineage().len() == 1 && has("source") && !has("reduced_from") && !is_thread()
}

/// The member of the first record of a log with the profile by which its runs are redacted; none for the default.
pub const REDACT: &str = "redact";

/// Writes the first record of a store's log: the key under which its checkpoints are signed. Binds key and log, so
/// that neither can be exchanged alone.
pub fn begin_log(store: &mut dyn Store, surroundings: &mut dyn Environment) -> Result<Record, Error> {
    begin_log_with(store, surroundings, RedactionProfile::Default)
}

/// As [`begin_log`], for a store whose runs are redacted by another profile where nothing else is asked for.
pub fn begin_log_with(
    store: &mut dyn Store,
    surroundings: &mut dyn Environment,
    profile: RedactionProfile,
) -> Result<Record, Error> {
    let info = store.info();
    let mut content = vec![
        ("format", Value::from(info.format)),
        ("purpose", Value::from("log")),
        ("verifier", Value::from(info.key.to_string())),
    ];
    if profile != RedactionProfile::Default {
        content.push((REDACT, Value::from(profile.as_str())));
    }
    let content = Value::record(content);
    let header = Header {
        store: info.id,
        kind: Kind::Key,
        run: None,
        tick: None,
        prev: None,
        head: None,
        type_name: None,
        author: Author::Kernel,
        ts: surroundings.now(),
        links: Vec::new(),
        pack: None,
    };
    let fields = cut(content.as_object().expect("content is an object"));
    let record = Record::seal(header, Body::commit(fields, surroundings.seed())?)?;
    store.commit(std::slice::from_ref(&record))?;
    Ok(record)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::path::Path;
    use std::sync::Arc;

    use dendrer_object::record::Rel;
    use dendrer_object::{Delta, Digest};
    use dendrer_store::faulty::{DiskFault, Faulty};
    use dendrer_store::prelude::*;
    use dendrer_store::{Embedded, Options, Shared, StoreInfo};

    use super::*;

    fn store(disk: &Faulty) -> Shared {
        let key = dendrer_testkit::key(1);
        let info = StoreInfo::new(dendrer_testkit::store_id(1), key.verifier_key().clone());
        let options = Options { disk: Arc::new(disk.clone()), index: false, ..Options::untagged() };
        Shared::new(Box::new(Embedded::create(Path::new("/store"), info, options).unwrap()))
    }

    fn step() -> Intent {
        Intent::new("plan.update".parse().unwrap(), "agent")
    }

    #[test]
    fn after_a_failed_sync_a_run_stands_where_the_log_has_it() {
        {
            let disk = Faulty::new();
            let store = store(&disk);
            let start = Start::new("r".parse().unwrap());
            let mut recorder = Recorder::begin(&store, &start, Box::new(World::default())).unwrap();
            recorder.commit().unwrap();
            recorder.propose(&step()).unwrap();
            disk.fail_syncs(true);
            let error = recorder.commit().unwrap_err();
            assert!(matches!(error, Error::Store(StoreError::SyncFailed { .. })), "{error}");
            let head = recorder.head().clone();
            drop(recorder);
            assert_eq!(store.run(&start.run).unwrap().unwrap().head.tick, Some(head.tick()));
            assert_eq!(head.tick(), 1);
        }
    }

    #[test]
    fn whoever_learns_at_the_end_that_a_group_came_too_late_stands_before_it() {
        let first = store(&Faulty::new());
        let second = first.clone();
        let start = Start::new("r".parse().unwrap());
        let mut winner = Recorder::begin(&first, &start, Box::new(World::default())).unwrap();
        winner.commit().unwrap();
        let mut loser = Recorder::resume(&second, &start.run, Box::new(World::default())).unwrap();
        winner.propose(&step()).unwrap();
        winner.commit().unwrap();
        loser.propose(&step()).unwrap();
        assert!(loser.submit().unwrap().is_none());
        loser.propose(&step()).unwrap();
        let error = loser.wait().unwrap_err();
        assert!(matches!(error, Error::Store(StoreError::Stale { .. })), "{error}");
        assert_eq!((loser.head().tick(), loser.pending()), (0, 0));
    }

    #[test]
    fn groups_on_their_way_are_settled_in_their_order_and_none_behind_one_that_came_too_late() {
        let first = store(&Faulty::new());
        let second = first.clone();
        let start = Start::new("r".parse().unwrap());
        let mut winner = Recorder::begin(&first, &start, Box::new(World::default())).unwrap();
        winner.commit().unwrap();
        let ticks = |records: Vec<Record>| records.iter().filter_map(|r| r.header().tick).collect::<Vec<_>>();
        let mut settled = Vec::new();
        for tick in 1..=6 {
            winner.propose(&step()).unwrap();
            settled.extend(winner.submit().unwrap().map(ticks));
            assert_eq!(winner.under_way.len(), usize::min(tick, UNDER_WAY_MAX));
        }
        assert_eq!(settled, [[1], [2]]);
        while let Some(records) = winner.wait().unwrap() {
            settled.push(ticks(records));
        }
        assert!(!winner.is_under_way());
        assert_eq!(settled, [[1], [2], [3], [4], [5], [6]]);

        let mut loser = Recorder::resume(&second, &start.run, Box::new(World::default())).unwrap();
        winner.propose(&step()).unwrap();
        winner.commit().unwrap();
        for _ in 0..3 {
            loser.propose(&step()).unwrap();
            assert!(loser.submit().unwrap().is_none());
        }
        loser.propose(&step()).unwrap();
        for _ in 0..3 {
            let error = loser.wait().unwrap_err();
            assert!(matches!(error, Error::Store(StoreError::Stale { .. })), "{error}");
            assert_eq!(loser.pending(), 0);
        }
        assert!(loser.wait().unwrap().is_none());
        assert_eq!(loser.head().tick(), 6, "they stood on what was turned down");
        drop(loser);
        Recorder::resume(&second, &start.run, Box::new(World::default())).unwrap();
    }

    #[test]
    fn a_link_may_name_what_is_still_on_its_way() {
        let disk = Faulty::new();
        let store = store(&disk);
        let start = Start::new("r".parse().unwrap());
        let mut recorder = Recorder::begin(&store, &start, Box::new(World::default())).unwrap();
        recorder.commit().unwrap();
        disk.hold_syncs(true);
        let mut ids = Vec::new();
        for _ in 0..UNDER_WAY_MAX {
            let links = ids.iter().map(|hash| Link { rel: Rel::CausedBy, hash: *hash }).collect();
            ids.push(recorder.propose(&Intent { links, ..step() }).unwrap().committed().unwrap().id());
            assert!(recorder.submit().unwrap().is_none());
        }
        let unknown = Link { rel: Rel::CausedBy, hash: Digest::of_parts(&[b"unknown"]) };
        let error = recorder.propose(&Intent { links: vec![unknown], ..step() }).unwrap_err();
        assert_eq!(error.code(), "E0102");
        disk.hold_syncs(false);
        while recorder.wait().unwrap().is_some() {}
    }

    #[test]
    fn a_group_behind_one_of_refusals_that_failed_is_on_record() {
        let disk = Faulty::new();
        let store = store(&disk);
        let start = Start::new("r".parse().unwrap());
        let mut recorder = Recorder::begin(&store, &start, Box::new(World::default())).unwrap();
        recorder.commit().unwrap();
        let op = Value::record([("set", "/policy".into()), ("value", Value::Null)]);
        let delta = Some(Delta::from_value(&Value::array([op])).unwrap());
        let refused = recorder.propose(&Intent { delta, ..step() }).unwrap();
        assert!(matches!(refused, Outcome::Refused(_)), "{refused:?}");
        disk.fail(0, DiskFault::Error(ErrorKind::Other), false);
        recorder.submit().unwrap();
        while disk.is_pending() {
            std::thread::yield_now();
        }
        for tick in 1..=2 {
            recorder.propose(&step()).unwrap();
            recorder.submit().unwrap();
            assert_eq!(recorder.head().tick(), tick);
        }
        // The gathered group follows those that are on their way.
        recorder.propose(&step()).unwrap();
        assert_eq!(recorder.wait().unwrap_err().code(), "E0801");
        assert_eq!((recorder.wait().unwrap().unwrap().len(), recorder.pending()), (1, 0));
        assert_eq!(recorder.wait().unwrap().unwrap().len(), 1);
        assert!(recorder.wait().unwrap().is_none());
        let head = recorder.head().id();
        recorder.propose(&step()).unwrap();
        recorder.commit().unwrap();
        assert_eq!(recorder.head().tick(), 3);
        assert_eq!(store.get(store.at(&start.run, 2).unwrap().unwrap()).unwrap().unwrap().id(), head);
    }
}
