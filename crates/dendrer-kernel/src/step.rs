//! The one door: every transition is made here, and replay comes through here again.
//!
//! ```text
//! intent -> authorship -> kernel paths -> commitments -> reduce -> policy -> seal
//! ```
//!
//! Nothing here reads a store, a clock or a die: the caller brings the head, the time and the seed. So replaying a
//! record is calling the same function on what the record holds and comparing ids.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use dendrer_object::delta::{Action, Delta, DeltaErrorKind, Op};
use dendrer_object::record::{
    self, Author, Body, Draft, Header, Kind, LINKS_MAX, Link, Record, Rel, SealError, Seed,
};
use dendrer_object::value::Object;
use dendrer_object::{AT, Digest, Intent, Pointer, REDACTION, RunName, StoreId, Timestamp, TypeName, Value};

use crate::commitment::{self, Admission, Admitted, COMMITMENT_VIOLATED, Commitments, Statuses};
use crate::contract::{CONTEXT, Contract};
use crate::counters::Counters;
use crate::fold::add_anomalies;
pub(crate) use crate::names::{CANNOT_BE_JUDGED, is_counters_path, is_kernel_path};
pub use crate::names::{COUNTERS, KERNEL_PATHS, UNKNOWN};
use crate::ontology::{
    self, AuthorshipError, KERNEL, SECOND_KINDS, check_authorship, check_name, kernel_kind,
};
use crate::pack::Bound;
use crate::policy::PolicyRules;
use crate::predicate::{Predicate, Verdict};
use crate::reduce::{DeltaReducer, ReduceError, ReducedDelta, Reducer};
pub use crate::requests::{DENIED, ForbiddenRequest};
use crate::stopped::Stopped;
use crate::unknown::{self, UnknownPlaces};

mod anomaly;
mod cause;
mod change;
pub mod diversion;
mod extension;
mod finding;
mod fork;
mod import;
mod judge;
mod line;
mod members;
mod outcome;
mod reads;
mod rules;
mod seeded;
mod seeds;
mod terms;
mod version;

pub use anomaly::{Anomaly, ENDED_BY, note_anomaly};
use anomaly::{anomaly_change, make_anomaly};
pub(crate) use cause::{Cause, again, cause};
use change::Change;
pub use extension::{Approval, EXTENSION, Extension, ExtensionFault, NotExtended, approval_text, extend};
pub use finding::{Finding, FindingKind};
use fork::Forked;
pub use fork::{Fork, fork, note_finding};
pub use import::{ChildResult, Pick, Picked, accept, cherrypick, delegate, refuse_accept, refuse_import};
pub use judge::{ACTED_AFTER_DENY, ROUNDED, WOULD_REFUSE, broken_by, latched_by};
use judge::{Found, latch_rule};
pub use line::LineFault;
pub use members::MemberFault;
pub use outcome::{Broken, LookAlike, Outcome, Reason, Refused, StartError, StepError, refuse_line};
use outcome::{draft_refusal, refusal_header, refusal_of};
use rules::RuleSet;
pub use seeded::{brought_hard, enforced_ids, judge_change, judge_seeded, unjudged_seeded};
pub use seeds::{Inputs, Seeds};
pub use terms::RaisedDoor;
use terms::Terms;

pub use version::{FIRST_VERSION, KERNEL_VERSION, LEAVES_VERSION, MARKERS_VERSION};

/// Member of a transition with the change that was proposed, if the kernel recorded a rounded one in `delta`.
const PROPOSED: &str = "proposed";

/// The member that names the violations that began earlier and that a transition leaves as they are.
pub const STILL_VIOLATED: &str = "still_violated";

/// Kinds of anomaly that the kernel notes in a transition's `anomalies`, and makes again on replay.
const KERNEL_NOTES: [&str; 5] =
    [CANNOT_BE_JUDGED, CLOCK_WENT_BACK, COMMITMENT_VIOLATED, REDUCER_ERROR, members::NO_OUTPUT];

/// The kind of the anomaly of a record that keeps the time of the one before it.
pub const CLOCK_WENT_BACK: &str = "clock_went_back";

/// The kind of the anomaly of a transition whose change could not be computed.
pub(crate) const REDUCER_ERROR: &str = "reducer_error";

/// How much of the paper's regime a run was recorded under (dendrer paper 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Captured only.
    Observe = 0,
    /// Replay, with divergence diagnostics.
    Replay = 1,
    /// Contracts where they are declared.
    Contracts = 2,
    /// Everything enforced.
    Full = 3,
}

impl Stage {
    /// Reads a stage number.
    pub fn from_number(number: u64) -> Option<Stage> {
        [Stage::Observe, Stage::Replay, Stage::Contracts, Stage::Full]
            .get(usize::try_from(number).ok()?)
            .copied()
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", *self as u8)
    }
}

/// The terms of a new run.
#[derive(Debug, Clone)]
pub struct Start {
    /// The run's id.
    pub run: RunName,
    /// The goal.
    pub goal: Option<Arc<str>>,
    /// How it is recorded. `None`: at stage 2 where pack or policy ask for enforcement, else at stage 1; [`Start::stage`].
    pub stage: Option<Stage>,
    /// The first tick at which that stage is enforced. Before it the run is recorded as at stage 1 at most: its transitions
    /// are those of another run, and happened.
    pub enforced_from: u64,
    /// Name and version of the reducer.
    pub reducer: Arc<str>,
    /// The state before the first transition; an object.
    pub state: Value,
    /// Rules of the form `{"id": ..., "holds": ...}` that every state must keep.
    pub policy: Vec<Value>,
    /// Other data of the run, which belongs to no tick.
    pub meta: Option<Value>,
    /// Digests of inputs, by name.
    pub inputs: Option<Value>,
    /// The pack that is in force.
    pub pack: Option<Bound>,
    /// The graph that the run is of, in its JSON form (Mynd Labs research note R-001).
    pub graph: Option<Value>,
    /// By which rules secrets were taken out of this, and how many of each kind; `None` where nothing looked for them.
    pub redaction: Option<Value>,
    /// Places of the state that are unknown from the beginning: those of the sources of a merge (design, section 7).
    pub unknown: UnknownPlaces,
    /// The commitments that it begins with, in their kept form: those of the runs that it continues.
    pub commitments: Option<Value>,
    /// The contract under which it works, if it is delegated (CCAS paper 6.5).
    pub contract: Option<Value>,
    /// The requests that are forbidden in the runs that it continues, as [`ForbiddenRequest::sealed`] has them.
    pub denied: Option<Value>,
}

impl Start {
    /// A run with an empty state, of the stage that its pack and policy ask for.
    pub fn new(run: RunName) -> Start {
        Start {
            run,
            goal: None,
            stage: None,
            enforced_from: 0,
            reducer: "delta/1".into(),
            state: Value::object(),
            policy: Vec::new(),
            meta: None,
            inputs: None,
            pack: None,
            graph: None,
            redaction: None,
            unknown: UnknownPlaces::default(),
            commitments: None,
            contract: None,
            denied: None,
        }
    }
}

/// The newest place of a run: all that the next step depends on.
#[derive(Clone)]
pub struct RunState {
    /// The rules by which it was begun.
    rules: &'static RuleSet,
    store: StoreId,
    run: RunName,
    /// For a fork, where it branched off.
    forked: Option<Forked>,
    stage: Stage,
    enforced_from: u64,
    policy: Arc<PolicyRules>,
    /// Whether the state is known to keep every policy rule, or to say which it broke.
    is_judged: bool,
    terms: Arc<Terms>,
    /// The tick at which the pack came into force.
    pack_from: u64,
    tick: u64,
    id: Digest,
    ts: Timestamp,
    state: Value,
    counters: Counters,
    commitments: Commitments,
    agents: BTreeMap<Arc<str>, AgentHead>,
}

/// The newest record of one agent's branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentHead {
    /// Its place in the branch, from 1.
    pub seq: u64,
    /// Its id.
    pub id: Digest,
}

/// Returns the state that a run record says the run was given: without what the kernel wrote into it.
pub fn given_state(content: &Value) -> Value {
    let mut state = content.get("state").cloned().unwrap_or_else(Value::object);
    if let Value::Object(members) = &mut state {
        members.remove("policy");
        members.remove(UNKNOWN);
    }
    state
}

/// Begins a run: its `run` record and the head of the first step.
pub fn begin(store: StoreId, start: &Start, inputs: Inputs) -> Result<(Record, RunState), StartError> {
    begin_by(rules::CURRENT, store, start, inputs)
}

/// As [`begin`], by the rules of a version.
fn begin_by(
    rules: &'static RuleSet,
    store: StoreId,
    start: &Start,
    inputs: Inputs,
) -> Result<(Record, RunState), StartError> {
    let Some(state) = start.state.as_object() else {
        return Err(StartError::StateKind(start.state.described()));
    };
    if let Some(name) = KERNEL_PATHS.into_iter().find(|name| state.contains_key(name)) {
        return Err(StartError::KernelPath(name));
    }
    if state.contains_key(COUNTERS) {
        return Err(StartError::Counters);
    }
    let policy = read_policy(&start.policy, rules.version)?;
    let marks = start.unknown.change_of(&start.state);
    let given = marks.apply(&start.state).expect("a member that only the kernel writes");
    let latch = first_violated(&policy.states, &given);
    let latch = latch.filter(|_| rules.version < 2);
    let state = match latch.map(|rule| latch_violated(rule.name(), 0).apply(&given)) {
        Some(latched) => latched.expect("policy is an object that only the kernel writes"),
        None => given,
    };
    let stage = start.stage();
    let bound = start.pack.as_ref();
    let value = bound.map(|bound| &bound.value);
    let mut terms = Terms::of(value, &state, 0, 0, (rules.version, stage))?;
    if start.enforced_from > 0 {
        terms = Terms::of(value, &state, 0, 0, (rules.version, stage.min(Stage::Replay)))?;
    }
    let mut change = Change::of(state, Delta::default());
    if rules.version >= 2 {
        let is_broken = |rule: &&Predicate| rule.verdict(&change.state, None) == Verdict::Violation;
        let broken: Vec<&str> = policy.states.iter().filter(is_broken).map(Predicate::name).collect();
        broken.into_iter().for_each(|rule| latch_rule(rule, 0, &mut change));
    }
    terms::watch_start(&terms, &mut change);
    let state = change.state;
    let initial = commitment::initial(rules.version, start.commitments.as_ref(), value, inputs.clock);
    let contract = start.contract.as_ref();
    let with = (value, inputs.clock);
    let commitments = Commitments::at_start_with(rules.version, initial.as_ref(), contract, with);
    let mut content: Vec<(&str, Value)> = vec![
        ("kernel", Value::from(rules.version)),
        ("reducer", Value::from(&*start.reducer)),
        ("stage", Value::from(stage as u64)),
        ("state", state.clone()),
        ("state_root", Value::from(state.digest())),
    ];
    let optional = [
        ("goal", start.goal.as_deref().map(Value::from)),
        ("enforced_from", Some(Value::from(start.enforced_from)).filter(|_| start.enforced_from > 0)),
        ("meta", start.meta.clone()),
        ("inputs", start.inputs.clone()),
        ("graph", start.graph.clone()),
        (commitment::INITIAL, initial),
        (commitment::CONTRACT, start.contract.clone()),
        (DENIED, start.denied.clone()),
        (REDACTION, start.redaction.clone()),
    ];
    content.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value?))));
    if let Some(bound) = bound {
        content.push(("pack", bound.value.clone()));
        content.push(("pack_text", Value::String(Arc::clone(&bound.text))));
    }
    if !start.policy.is_empty() {
        content.push(("policy", Value::array(start.policy.iter().cloned())));
    }
    let header = Header {
        store,
        kind: Kind::Run,
        run: Some(start.run.clone()),
        tick: Some(0),
        prev: None,
        head: None,
        type_name: None,
        author: Author::Kernel,
        ts: inputs.clock,
        links: Vec::new(),
        pack: terms.digest,
    };
    let record = seal(header, content, inputs.seeds.nth(0))?;
    let head = RunState {
        rules,
        store,
        run: start.run.clone(),
        forked: None,
        stage,
        enforced_from: start.enforced_from,
        policy: policy.into(),
        is_judged: false,
        terms: Arc::new(terms),
        pack_from: 0,
        tick: 0,
        id: record.id(),
        ts: inputs.clock,
        state,
        counters: Counters::at_start(start.denied.as_ref()).by_rules(rules.version),
        commitments,
        agents: BTreeMap::new(),
    };
    Ok((record, head))
}

fn read_policy(rules: &[Value], version: u64) -> Result<PolicyRules, StartError> {
    PolicyRules::read_by(rules, version).map_err(|(index, why)| StartError::Policy { index, why })
}

impl RunState {
    /// Takes the head up again at a `run` record, as replay does.
    pub fn at_start(record: &Record) -> Result<RunState, StartError> {
        Ok(RunState::made_at_start(record)?.1)
    }

    /// As [`RunState::at_start`], with the record that beginning the run again makes.
    pub(crate) fn made_at_start(record: &Record) -> Result<(Record, RunState), StartError> {
        let content = record.content();
        let rules = rules::of(&content)?;
        let text = |name: &str| content.get(name).and_then(Value::as_str).map(Arc::<str>::from);
        let start = Start {
            run: record.header().run.clone().expect("a run record has a run"),
            goal: text("goal"),
            stage: content
                .get("stage")
                .and_then(Value::as_u64)
                .and_then(Stage::from_number)
                .or(Some(Stage::Observe)),
            enforced_from: content.get("enforced_from").and_then(Value::as_u64).unwrap_or(0),
            reducer: text("reducer").unwrap_or_else(|| "delta/1".into()),
            state: given_state(&content),
            policy: content
                .get("policy")
                .and_then(Value::as_array)
                .map(|rules| rules.iter().cloned().collect())
                .unwrap_or_default(),
            meta: content.get("meta").cloned(),
            inputs: content.get("inputs").cloned(),
            graph: content.get("graph").cloned(),
            redaction: content.get(REDACTION).cloned(),
            unknown: content.get("state").map(UnknownPlaces::of).unwrap_or_default(),
            commitments: content.get(commitment::INITIAL).cloned(),
            contract: content.get(commitment::CONTRACT).cloned(),
            denied: content.get(DENIED).cloned(),
            pack: content
                .get("pack")
                .map(|value| Bound { value: value.clone(), text: text("pack_text").unwrap_or_default() }),
        };
        let seed = record.body().seed().unwrap_or(Seed([0; 16]));
        let (again, mut head) = begin_by(
            rules,
            record.header().store,
            &start,
            Inputs { clock: record.header().ts, seeds: Seeds::recorded(seed) },
        )?;
        // A record with a closed field cannot be made again, but its id is known.
        head.id = record.id();
        Ok((again, head))
    }

    /// Takes the head up again at a later place, given what reading the run to there found. `begins` are the `run`
    /// records of the lineage: that of the first run, and then those of the forks up to here.
    pub fn at_moment(
        begins: &[&Record],
        tick: u64,
        id: Digest,
        ts: Timestamp,
        state: Value,
        (counters, commitments): (Counters, Commitments),
        agents: BTreeMap<Arc<str>, AgentHead>,
    ) -> Result<RunState, StartError> {
        let (first, forks) = begins.split_first().expect("a lineage begins with a run");
        let mut head = RunState::at_start(first)?;
        forks.iter().try_for_each(|fork| head.go_on(fork))?;
        let mut head = RunState { tick, id, ts, state, counters, commitments, agents, ..head };
        head.read_terms();
        Ok(head)
    }

    /// Takes a state in which policy was enforced.
    fn take_state(&mut self, state: Value) {
        self.state = state;
        self.is_judged = true;
    }

    /// Returns the contract of a type in the pack in force; `None` before stage 2, where contracts are not enforced.
    fn contract(&self, type_name: &TypeName) -> Option<&Contract> {
        self.terms.contracts.types.get(type_name).filter(|_| self.stage() >= Stage::Contracts)
    }

    /// Whether the run goes by the rules of a version of the kernel or a newer one.
    pub(crate) fn is_since(&self, version: u64) -> bool {
        self.rules.version >= version
    }

    /// The version of the kernel's rules that the run goes by.
    pub fn rules_version(&self) -> u64 {
        self.rules.version
    }

    /// The pack that the run carries.
    pub fn pack(&self) -> Option<Digest> {
        self.terms.digest
    }

    /// The policy rules that every state must keep.
    pub fn policy(&self) -> &[Predicate] {
        &self.policy.states
    }

    /// The store.
    pub fn store(&self) -> StoreId {
        self.store
    }

    /// The run.
    pub fn run(&self) -> &RunName {
        &self.run
    }

    /// The tick of the newest transition; 0 before the first.
    pub fn tick(&self) -> u64 {
        self.tick
    }

    /// The id of the newest chain record.
    pub fn id(&self) -> Digest {
        self.id
    }

    /// The stage at which the next transition is recorded.
    pub fn stage(&self) -> Stage {
        self.stage_at(self.tick + 1)
    }

    /// The stage at which the transition with this tick is recorded.
    fn stage_at(&self, tick: u64) -> Stage {
        if tick < self.enforced_from { self.stage.min(Stage::Replay) } else { self.stage }
    }

    /// The state after the newest transition.
    pub fn state(&self) -> &Value {
        &self.state
    }

    /// The counters after the newest transition.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The counters after the newest transition, with the statuses of commitments: what expressions are given beside the state.
    pub fn served(&self) -> Value {
        Statuses::served_with(&self.commitments, &self.state, self.counters.to_value())
    }

    /// The commitments after the newest transition.
    pub fn commitments(&self) -> &Commitments {
        &self.commitments
    }

    /// The newest record of each agent's branch.
    pub fn agents(&self) -> &BTreeMap<Arc<str>, AgentHead> {
        &self.agents
    }

    /// When the newest record was committed.
    pub fn ts(&self) -> Timestamp {
        self.ts
    }
}

/// Judges an intent and makes the transition, or the refusal. The head moves on with what is committed.
pub fn step(head: &mut RunState, intent: &Intent, inputs: Inputs) -> Result<Outcome, StepError> {
    step_with(head, intent, inputs, &DeltaReducer)
}

/// As [`step`], with the run's own reducer.
pub fn step_with(
    head: &mut RunState,
    intent: &Intent,
    inputs: Inputs,
    reducer: &dyn Reducer,
) -> Result<Outcome, StepError> {
    let mut outcomes = Vec::with_capacity(1);
    step_each(head, &[(intent, inputs)], reducer, &mut outcomes)?;
    Ok(outcomes.pop().expect("one for one"))
}

/// As [`step_with`] for several intents in order: the same records, at less cost. The outcomes before an intent that became
/// nothing are in `outcomes`, and the head is the one after them.
pub fn step_each(
    head: &mut RunState,
    intents: &[(&Intent, Inputs)],
    reducer: &dyn Reducer,
    outcomes: &mut Vec<Outcome>,
) -> Result<(), StepError> {
    let mut prepared = Vec::with_capacity(intents.len());
    let mut failed = Ok(());
    for (intent, inputs) in intents {
        match (head.rules.prepare)(head, intent, *inputs, reducer) {
            Ok(next) => {
                let (is_forged, is_transition) = (next.is_forged(), next.reason.is_none());
                prepared.push(next);
                // The refusal names the record, so every record up to it needs its id now.
                if is_forged {
                    seal_each(head, &mut prepared, outcomes);
                    failed = add_forgery(head, intent, *inputs, outcomes).map_err(StepError::Seal);
                } else if is_transition && head.owes() {
                    seal_each(head, &mut prepared, outcomes);
                    failed = add_violations(head, *inputs, outcomes).map_err(StepError::Seal);
                }
            }
            Err(error) => failed = Err(error),
        }
        if failed.is_err() {
            break;
        }
    }
    seal_each(head, &mut prepared, outcomes);
    failed
}

/// Makes the one record that an intent becomes, without what it brings about.
fn step_alone(
    head: &mut RunState,
    intent: &Intent,
    inputs: Inputs,
    reducer: &dyn Reducer,
) -> Result<Record, StepError> {
    let mut outcomes = Vec::with_capacity(1);
    let mut prepared = vec![(head.rules.prepare)(head, intent, inputs, reducer)?];
    seal_each(head, &mut prepared, &mut outcomes);
    match outcomes.pop().expect("one for one") {
        Outcome::Committed(record) | Outcome::Violated { record, .. } => Ok(record),
        Outcome::Refused(refused) => Ok(refused.refusal),
    }
}

/// Judges and reduces one intent. Whatever needs no id is done here; the head has moved but for ids.
fn prepare(
    head: &mut RunState,
    intent: &Intent,
    inputs: Inputs,
    reducer: &dyn Reducer,
) -> Result<Prepared, StepError> {
    head.turn_to_next();
    let is_timed = head.is_since(2);
    let untimed = head
        .terms
        .with_time(intent, inputs.clock, head)
        .filter(|other| is_timed && other.member(AT).is_none());
    let intent = untimed.as_ref().unwrap_or(intent);
    let proposed = intent;
    let with_effect = head.terms.with_effect(intent);
    let intent = with_effect.as_ref().unwrap_or(intent);
    let with_status = head.terms.with_status(intent);
    let intent = with_status.as_ref().unwrap_or(intent);
    // Ends of commitments are judged at the time of this record.
    head.commitments.pass(inputs.clock.max(head.ts));
    // The time of the line is in its header: it is judged with it, and sealed without.
    let timed = head.terms.with_time(intent, inputs.clock, head).filter(|_| is_timed);
    let change = match reduce(head, timed.as_ref().unwrap_or(intent), reducer)? {
        Ok(change) => change,
        // A refusal keeps what was proposed.
        Err(reason) => {
            head.commitments.pass(head.ts);
            // A refusal has no note of a clock that went back: it keeps that its line had no time.
            let refused = timed.as_ref().filter(|_| inputs.clock < head.ts).unwrap_or(proposed);
            return Ok(draft_refusal(head, refused, reason, inputs)?);
        }
    };
    let mut transition = Transition::of(intent);
    if let Some(contract) = head.contract(&intent.type_name) {
        let context = contract.context(&head.terms.contracts, intent, &head.state, inputs.seeds.nth(0));
        transition.members.push((CONTEXT.into(), context.to_value(&head.terms.contracts)));
    }
    Ok(draft_transition(head, transition, change, inputs)?)
}

/// Judges an intent and says what it does. Nothing is returned if the reducer was ended by a limit of its engine.
fn reduce(
    head: &RunState,
    intent: &Intent,
    reducer: &dyn Reducer,
) -> Result<Result<Change, Reason>, Stopped> {
    let mut found = Found::default();
    let authorized = match judge(head, intent, &mut found).and_then(|()| authorize(head, intent, &mut found))
    {
        Ok(notes) => notes,
        Err(reason) => return Ok(Err(reason)),
    };
    let reducer = head.terms.reducer(reducer);
    let reduced =
        propose(reducer, head, intent).and_then(|reduced| Ok((reduced.delta.apply(&head.state)?, reduced)));
    let (change, reduced) = match reduced {
        Ok((state, mut reduced)) => {
            let delta = std::mem::take(&mut reduced.delta);
            let proposed =
                intent.delta.clone().filter(|proposed| reducer.info().quantizes && *proposed != delta);
            let mut change = Change { proposed, ..Change::of(state, delta) };
            if unknown::is_incomplete(&head.state) || unknown::is_ambiguous(intent) {
                let unknown = std::mem::take(&mut reduced.unknown);
                change.mark(&conflicts_left(head, intent, unknown));
            }
            (Ok(change), reduced)
        }
        // Before anything is made of an error: this one is of the engine and not of the intent.
        Err(ReduceError::Stopped(stopped)) => return Err(stopped),
        Err(error) => {
            let judged = match can_fail(head, intent, &error, reducer) {
                true => Ok(judge::failed(head, intent, &error, reducer)),
                false => Err(Reason::Reduce(error)),
            };
            (judged, ReducedDelta::default())
        }
    };
    Ok(change.and_then(|mut change| {
        mark_gap(head, intent, reducer, &mut change);
        if head.is_since(2) {
            judge::rounding(head, intent, &reduced.finer, &mut change, &mut found)?;
            judge::writers(head, intent, &mut change, &mut found)?;
            judge::enforce(head, intent, reducer, &reduced, &mut change, &mut found)?;
            judge::beside(head, intent, &mut found)?;
            change.would_refuse = found.would_refuse();
            change.notes.append(&mut found.notes);
        } else {
            terms::enforce(head, intent, &mut change)?;
        }
        // An import, at stage 0, has notes of its own.
        if head.stage() >= Stage::Replay {
            note_result(head, intent, &mut change);
        }
        change.notes.extend(authorized.notes);
        change.spent = authorized.spent;
        change.rounded = reduced.rounded;
        Ok(change)
    }))
}

/// Marks the places that are unknown after a gap in what was recorded.
fn mark_gap(head: &RunState, intent: &Intent, reducer: &dyn Reducer, change: &mut Change) {
    if let Some(code) = unknown::gap(intent) {
        let mut unknown = UnknownPlaces::of(&change.state);
        for place in reducer.unknown_by_gap(&change.state, intent) {
            unknown.mark(place, head.tick + 1, code);
        }
        change.mark(&unknown);
    }
}

/// Notes what is odd about the result of a call, before the other notes.
fn note_result(head: &RunState, intent: &Intent, change: &mut Change) {
    let (terms, counters) = (&head.terms, &head.counters);
    let is_open = |tool: &str| counters.is_open(tool);
    let looks = members::Looks {
        of_read: head.is_since(2),
        of_any: head.is_since(2) && head.stage() >= Stage::Contracts,
    };
    let notes = members::notes_of_result(intent, looks, |tool| terms.effect_of(tool), is_open);
    change.notes.splice(0..0, notes);
}

/// Whether a line is committed although its change could not be computed (design, 4 and 14.1). The state does not follow then, so
/// what it would have written is unknown from there on.
fn can_fail(head: &RunState, intent: &Intent, error: &ReduceError, reducer: &dyn Reducer) -> bool {
    // Nothing happened yet that a change of an agent's own would be the record of.
    let is_delta = matches!(error, ReduceError::Delta(_)) && reducer.takes_delta();
    let is_below = match is_delta {
        true => head.stage() < Stage::Replay,
        false => head.stage() < Stage::Contracts,
    };
    let happened = if is_delta { judge::is_fact(intent) } else { terms::has_happened(intent) };
    is_below
        || head.is_since(2)
            && happened
            && !matches!(error, ReduceError::Reserved(_))
            && (judge::is_fact(intent) || !matches!(error, ReduceError::ProposedDelta(_)))
}

/// The unknown places after an intent. An open conflict is decided by a write of user or runtime and by its resolution; a
/// write of an agent decides it only where no enforced rule reads the place (design, section 14.1).
fn conflicts_left(head: &RunState, intent: &Intent, mut unknown: UnknownPlaces) -> UnknownPlaces {
    if !head.is_since(2) {
        return unknown;
    }
    let before = UnknownPlaces::of(&head.state);
    let open = before.iter().filter(|(_, since)| *since.code == *unknown::CONFLICT);
    let resolved = unknown::resolved(intent);
    let removed = intent.delta.iter().flat_map(|delta| &delta.0).filter(|op| op.action == Action::Remove);
    let removed: Vec<&Pointer> = removed.map(|op| &op.path).collect();
    for (place, since) in open {
        if intent.author == Author::Agent {
            if head.is_read_by_enforced(place) {
                unknown.mark_as(place.clone(), since);
            }
        } else if resolved.as_ref() == Some(place) || removed.iter().any(|path| path.contains(place)) {
            unknown.clear(place);
        }
    }
    unknown
}

/// Reduces, unless the intent brings a change that is not its to bring.
fn propose(reducer: &dyn Reducer, head: &RunState, intent: &Intent) -> Result<ReducedDelta, ReduceError> {
    let reduced = match &intent.delta {
        Some(delta) if !delta.is_empty() && !reducer.takes_delta() => {
            return Err(ReduceError::ProposedDelta(reducer.name().to_owned()));
        }
        _ if head.is_since(2) => reducer.reduce_calls(&head.state, intent, head.tick + 1)?,
        _ if unknown::is_incomplete(&head.state) || unknown::is_ambiguous(intent) => {
            reducer.reduce_incomplete(&head.state, intent, head.tick + 1)?
        }
        _ => ReducedDelta { delta: reducer.reduce(&head.state, intent)?, ..ReducedDelta::default() },
    };
    // The proposal of an intent was judged before; the result of a function of the host was not.
    let is_reserved = |path: &&Pointer| is_kernel_path(path) || is_counters_path(path);
    let reserved = reduced.delta.paths().find(is_reserved).cloned();
    reserved.map_or(Ok(reduced), |path| Err(ReduceError::Reserved(path)))
}

/// A record that lacks only what comes before it.
struct Prepared {
    draft: Draft,
    agent: Arc<str>,
    seq: u64,
    /// Why it is a refusal and not a transition.
    reason: Option<Reason>,
}

impl Prepared {
    fn is_forged(&self) -> bool {
        match &self.reason {
            Some(Reason::Authorship(AuthorshipError::Forged(..))) => true,
            Some(Reason::Member(fault)) => fault.is_forged(),
            _ => false,
        }
    }
}

/// Gives prepared records their place in the chain, in order, and with it their ids.
fn seal_each(head: &mut RunState, prepared: &mut Vec<Prepared>, outcomes: &mut Vec<Outcome>) {
    let (drafts, rest): (Vec<_>, Vec<_>) =
        prepared.drain(..).map(|next| (next.draft, (next.agent, next.seq, next.reason))).unzip();
    for ((header, body), (agent, seq, reason)) in Draft::commit_each(drafts).into_iter().zip(rest) {
        let record = seal_onto(head, header, body, agent, seq);
        outcomes.push(match reason {
            None => Outcome::Committed(record),
            Some(reason) => Outcome::Refused(Refused { reason, refusal: record, anomaly: None }),
        });
    }
}

/// Seals one record onto the head. The only place where a transition comes into being.
fn seal_onto(head: &mut RunState, mut header: Header, body: Body, agent: Arc<str>, seq: u64) -> Record {
    const CHECKED: &str = "everything but its place was checked when it was drafted";
    if header.kind == Kind::Refusal {
        header.head = Some(head.id);
        return Record::seal(header, body).expect(CHECKED);
    }
    // The agent's own branch: a link to its last record where that is not `prev` anyway.
    let last = head.agents.get(&agent).filter(|last| seq > 1 && last.id != head.id).map(|last| last.id);
    header.links.extend(last.map(|hash| Link { rel: Rel::Predecessor, hash }));
    header.links.sort_unstable();
    header.links.dedup();
    header.prev = Some(head.id);
    let record = Record::seal(header, body).expect(CHECKED);
    head.id = record.id();
    head.agents.insert(agent, AgentHead { seq, id: record.id() });
    if let Some(tick) = record.header().tick {
        head.counters.requests.seal(tick, record.id());
    }
    record
}

/// As [`seal_onto`], for one transition that was drafted by itself.
fn seal_one(head: &mut RunState, prepared: Prepared) -> Record {
    let (header, body) = Draft::commit_each(vec![prepared.draft]).pop().expect("one for one");
    seal_onto(head, header, body, prepared.agent, prepared.seq)
}

/// Puts the `kernel.anomaly` on record that a forged type brings about.
fn add_forgery(
    head: &mut RunState,
    intent: &Intent,
    inputs: Inputs,
    outcomes: &mut [Outcome],
) -> Result<(), SealError> {
    let Some(Outcome::Refused(refused)) = outcomes.last_mut() else { return Ok(()) };
    let mut entry = refused.reason.sealed().as_object().cloned().unwrap_or_default();
    entry.set("agent_id", Value::String(Arc::clone(&intent.agent)));
    let is_member = matches!(refused.reason, Reason::Member(_));
    entry.set("kind", Value::from(if is_member { "forged_member" } else { "forged_type" }));
    entry.set("refusal", Value::from(refused.refusal.id()));
    let entry = Value::Object(entry);
    refused.anomaly = Some(make_anomaly(head, entry, inputs.behind(1))?);
    Ok(())
}

/// The type with which the kernel names the violation of a predicate of the contract.
pub const VIOLATION: &str = "predicate.violation";

/// Puts the `predicate.violation` on record that a transition brings about. It may bring about another one.
fn add_violations(head: &mut RunState, inputs: Inputs, outcomes: &mut [Outcome]) -> Result<(), SealError> {
    let Some(last) = outcomes.last_mut() else { return Ok(()) };
    let Outcome::Committed(record) = last else { return Ok(()) };
    let record = record.clone();
    let violations = settle(head, inputs)?;
    *last = Outcome::Violated { record, violations };
    Ok(())
}

/// Appends a `predicate.violation` for the newest transition, if it caused one. No other record may
/// follow it. For what the kernel itself wrote, with the inputs of that; [`step`] does so by itself.
pub fn settle(head: &mut RunState, inputs: Inputs) -> Result<Vec<Record>, SealError> {
    let mut violations = Vec::new();
    while head.owes() {
        violations.push(make_violation(head, inputs.behind(1 + violations.len() as u64))?);
    }
    Ok(violations)
}

/// Names the violations that the newest transition caused; the state lists them.
fn make_violation(head: &mut RunState, inputs: Inputs) -> Result<Record, SealError> {
    let violations = Value::array(head.owed().into_iter().cloned());
    let transition = Transition {
        type_name: VIOLATION.parse().expect("a type of the ontology"),
        author: Author::Kernel,
        agent: KERNEL.into(),
        goal: None,
        members: vec![("violations".into(), violations)],
        links: vec![Link { rel: Rel::CausedBy, hash: head.id }],
    };
    let change = Change::none(&head.state, None);
    let prepared = draft_transition(head, transition, change, inputs)?;
    Ok(seal_one(head, prepared))
}

fn reducer_note(head: &RunState, error: &ReduceError, intent: &Intent) -> Value {
    let delta = intent.delta.as_ref().map(Delta::to_value);
    let mut note = error.sealed().as_object().cloned().unwrap_or_default();
    // Version 1 has no cause of its own for a value that is no number.
    if let ReduceError::Delta(error) = error
        && matches!(error.why, DeltaErrorKind::NotDecimal(_))
        && !head.is_since(2)
    {
        note.set("cause", Value::from("delta_deep"));
        note.remove("found");
    }
    note.set("delta", Value::from(delta));
    note.set("kind", Value::from(REDUCER_ERROR));
    Value::Object(note)
}

fn judge(head: &RunState, intent: &Intent, found: &mut Found) -> Result<(), Reason> {
    check_authorship(&intent.type_name, intent.author, &head.terms.registered)?;
    check_name(&intent.agent)?;
    members::check(intent)?;
    head.terms.check_effect(intent)?;
    let (admitted, contracted) = (head.terms.admit(intent, head.rules.version), check_contract(head, intent));
    if head.is_since(2) {
        judge::terms_of(intent, admitted, found)?;
        judge::terms_of(intent, contracted, found)?;
        judge::by_record(head, intent, found)?;
    } else {
        admitted?;
        contracted?;
    }
    intent.delta.iter().try_for_each(check_paths)?;
    for anomaly in
        intent.member("anomalies").and_then(Value::as_array).into_iter().flat_map(|list| list.iter())
    {
        if let Some(kind) =
            kernel_kind(anomaly).filter(|kind| head.is_since(2) || !SECOND_KINDS.contains(kind))
        {
            return Err(Reason::KernelNote(kind.to_owned()));
        }
    }
    Ok(())
}

/// Checks that the state has what a contract of the pack requires for a type.
fn check_contract(head: &RunState, intent: &Intent) -> Result<(), Reason> {
    let Some(contract) = head.contract(&intent.type_name) else { return Ok(()) };
    let lacks = contract.check(&head.state);
    if lacks.is_empty() {
        return Ok(());
    }
    let contracts = &head.terms.contracts;
    let contract = format!("{}/{}", contracts.name, contracts.version);
    Err(Reason::Contract { contract, type_name: intent.type_name.clone(), lacks })
}

/// Judges an intent by what the agent is bound to (CCAS paper 6.6). Returns the notes for its transition.
///
/// Rule: stages 0 and 1 commit what a commitment forbids, and note it; stages 2 and 3 refuse it; what cannot be judged is
/// refused at stage 3. An action that has happened already is never refused; test
/// `it::commitments::a_call_is_authorized_at_each_stage`.
fn authorize(head: &RunState, intent: &Intent, found: &mut Found) -> Result<Admitted, Reason> {
    let has_happened = terms::has_happened(intent);
    // Since version 2 a line of any type that has an action is judged as a call: it is shown like one.
    let is_proposal = intent.type_name.as_str() == ontology::REQUEST
        || head.terms.registered.contains(&intent.type_name)
        || head.is_since(2) && !terms::is_report(&intent.type_name);
    let can_refuse = !has_happened;
    // A call that was made without a request is judged as well, and noted.
    let is_unasked = head.is_since(2)
        && intent.type_name.as_str() == ontology::RESULT
        && head.counters.requests.answered_by(intent).is_none_or(|call| call.is_another);
    let admission = Admission {
        action: intent.member("action").filter(|_| is_proposal || is_unasked),
        refuses: can_refuse && head.stage() >= Stage::Contracts,
        // Enforcement that was asked for fails closed (design, 14.1).
        refuses_unjudged: can_refuse
            && head.stage() >= if head.is_since(2) { Stage::Contracts } else { Stage::Full },
        state: &head.state,
        counters: &|| head.counters.to_value(),
    };
    let admitted = head.commitments.admit(intent, &admission).map_err(Reason::Commitments)?;
    if head.is_since(2) && can_refuse && head.stage() < Stage::Contracts && !admitted.notes.is_empty() {
        let enforced = Admission { refuses: true, refuses_unjudged: true, ..admission };
        if let Err(refused) = head.commitments.admit(intent, &enforced) {
            found.would(&Reason::Commitments(refused));
        }
    }
    Ok(admitted)
}

/// Refuses a change that writes where only the kernel does.
fn check_paths(delta: &Delta) -> Result<(), Reason> {
    for path in delta.paths() {
        if is_kernel_path(path) {
            return Err(Reason::KernelPath(path.clone()));
        }
        if is_counters_path(path) {
            return Err(Reason::Counters(path.clone()));
        }
    }
    Ok(())
}

fn kernel_note(anomaly: &Value) -> Option<&str> {
    let is_known = |kind: &&str| KERNEL_NOTES.contains(kind) || SECOND_KINDS.contains(kind);
    anomaly.get("kind").and_then(Value::as_str).filter(is_known)
}

/// A transition before the kernel adds its part.
struct Transition {
    type_name: TypeName,
    author: Author,
    agent: Arc<str>,
    goal: Option<Arc<str>>,
    members: Vec<(Arc<str>, Value)>,
    links: Vec<Link>,
}

impl Transition {
    fn of(intent: &Intent) -> Transition {
        // With room for what the kernel adds.
        let mut members = Vec::with_capacity(intent.members.len() + NAMES.len() + 2);
        members.extend_from_slice(&intent.members);
        add_anomalies(&mut members, intent.noted.iter().cloned());
        Transition {
            type_name: intent.type_name.clone(),
            author: intent.author,
            agent: Arc::clone(&intent.agent),
            goal: intent.goal.clone(),
            members,
            links: intent.links.clone(),
        }
    }
}

/// The names that every transition has, made once.
static NAMES: LazyLock<[Arc<str>; 4]> =
    LazyLock::new(|| ["agent_id", "delta", "seq", "state_root"].map(Arc::from));

/// Drafts a transition and moves the head on, but for its id.
fn draft_transition(
    head: &mut RunState,
    what: Transition,
    mut change: Change,
    inputs: Inputs,
) -> Result<Prepared, SealError> {
    head.turn_to_next();
    enforce_policy(head, &mut change);
    let ts = clamp_clock(head, inputs.clock, &mut change.notes);
    head.commitments.pass(ts);
    terms::watch(head, &what.type_name, &mut change, |change| counted(head, &what, change));
    terms::mark_policy(head, &what.type_name, &mut change, |change| counted(head, &what, change));
    let still = terms::still_violated(head, &what.type_name, &change);
    let seq = head.agents.get(&what.agent).map_or(1, |last| last.seq + 1);
    let mut content = what.members;
    content.extend(still.map(|still| (STILL_VIOLATED.into(), still)));
    content.extend(change.would_refuse.take().map(|would| (WOULD_REFUSE.into(), would)));
    content.extend(change.rounded_member().map(|rounded| (ROUNDED.into(), rounded)));
    add_anomalies(&mut content, change.notes);
    let [agent_id, delta, seq_name, state_root] = &*NAMES;
    content.push((Arc::clone(agent_id), Value::String(Arc::clone(&what.agent))));
    content.push((Arc::clone(delta), change.delta.to_value()));
    content.push((Arc::clone(seq_name), Value::from(seq)));
    content.push((Arc::clone(state_root), Value::from(change.state.digest())));
    content.extend(what.goal.map(|goal| ("goal_id".into(), Value::String(goal))));
    content.extend(change.proposed.map(|delta| (PROPOSED.into(), delta.to_value())));
    content.extend(change.spent.map(|spent| (commitment::SPENT.into(), spent)));
    let header = Header {
        store: head.store,
        kind: Kind::Transition,
        run: Some(head.run.clone()),
        tick: Some(head.tick + 1),
        prev: None,
        head: None,
        type_name: Some(what.type_name.clone()),
        author: what.author,
        ts,
        links: what.links,
        pack: head.terms.digest,
    };
    let content: Object = content.into_iter().collect();
    let links = header.links.clone();
    let draft = draft(header, &content, inputs.seeds.nth(0))?;
    let content = Value::Object(content);
    head.counters.add(what.type_name.as_str(), &content);
    let place = (head.tick + 1, what.author, None);
    head.counters.requests.take(place, what.type_name.as_str(), &content, &links);
    head.commitments.apply(
        head.tick + 1,
        what.author,
        what.type_name.as_str(),
        &content,
        Some(&change.delta),
    );
    // The id follows when the record is sealed; until then it is not read.
    head.agents.entry(Arc::clone(&what.agent)).or_insert(AgentHead { seq, id: head.id }).seq = seq;
    head.tick += 1;
    head.ts = ts;
    head.take_state(change.state);
    Ok(Prepared { draft, agent: what.agent, seq, reason: None })
}

/// The counters as they will be behind a transition, with the statuses of commitments.
fn counted(head: &RunState, what: &Transition, change: &Change) -> Value {
    let mut content = what.members.clone();
    add_anomalies(&mut content, change.notes.clone());
    content.push(("agent_id".into(), Value::String(Arc::clone(&what.agent))));
    let content = Value::record(content);
    let (mut counters, mut commitments) = (head.counters.clone(), head.commitments.clone());
    counters.add(what.type_name.as_str(), &content);
    commitments.apply(head.tick + 1, what.author, what.type_name.as_str(), &content, Some(&change.delta));
    Statuses::served_with(&commitments, &change.state, counters.to_value())
}

/// Drafts a record, leaving room for the one link that sealing may add.
fn draft(header: Header, content: &Object, seed: Seed) -> Result<Draft, SealError> {
    if header.links.len() >= LINKS_MAX {
        return Err(SealError::Shape { kind: header.kind, rule: "has at most 255 links of its own" });
    }
    Draft::new(header, content, seed)
}

/// Latches the first policy rule that does not hold in the state after (design, section 7). A rule that cannot be judged,
/// because a place it reads is unknown or not written yet, is not latched and is judged again after each transition that
/// touches what it reads (design, section 4).
fn enforce_policy(head: &RunState, change: &mut Change) {
    let latched = |state: &Value| state.get("policy").is_some_and(|policy| policy.get("violated").is_some());
    if head.policy.states.is_empty() || !head.is_since(2) && latched(&change.state) {
        return;
    }
    // A rule that reads nothing of the change is not judged again: its last verdict stays true.
    let asked =
        head.policy.states.iter().filter(|rule| !head.is_judged || terms::touches(rule, &change.delta));
    let judged = asked.map(|rule| (rule, rule.verdict(&change.state, None)));
    if head.is_since(2) {
        let broken =
            judged.filter(|(_, verdict)| *verdict == Verdict::Violation).map(|(rule, _)| rule.name());
        let broken: Vec<&str> = broken.collect();
        return broken.into_iter().for_each(|rule| latch_rule(rule, head.tick + 1, change));
    }
    let Some((rule, _)) = judged.into_iter().find(|(_, verdict)| *verdict == Verdict::Violation) else {
        return;
    };
    let delta = latch_violated(rule.name(), head.tick + 1);
    change.state = delta.apply(&change.state).expect("policy is an object that only the kernel writes");
    change.delta.0.extend(delta.0);
}

/// Finds the first policy rule that the state a run begins with breaks. A rule that cannot be judged yet is judged after the
/// first transition: a run may begin with nothing.
fn first_violated<'p>(policy: &'p [Predicate], state: &Value) -> Option<&'p Predicate> {
    policy.iter().find(|rule| rule.verdict(state, None) == Verdict::Violation)
}

/// The change that says for good which rule was broken first, and when.
fn latch_violated(rule: &str, tick: u64) -> Delta {
    let violated = [("rule", Value::from(rule)), ("tick", Value::from(tick))];
    Delta(vec![Op::set(Pointer::of(["policy", "violated"]), Value::record(violated))])
}

/// Never lets time run backwards in a run, and says so where it would have.
fn clamp_clock(head: &RunState, clock: Timestamp, notes: &mut Vec<Value>) -> Timestamp {
    if clock >= head.ts {
        return clock;
    }
    let by_ms = head.ts.ms() - clock.ms();
    notes.push(Value::record([("by_ms", Value::from(by_ms)), ("kind", Value::from(CLOCK_WENT_BACK))]));
    head.ts
}

/// Ends a run: no transition and no second end may follow it (design, section 2).
pub fn end(head: &RunState, inputs: Inputs) -> Result<Record, SealError> {
    let header = Header {
        kind: Kind::End,
        head: Some(head.id),
        author: Author::Runtime,
        ..refusal_header(head, inputs)
    };
    seal(header, Vec::new(), inputs.seeds.nth(0))
}

fn seal(header: Header, content: Vec<(&str, Value)>, seed: Seed) -> Result<Record, SealError> {
    seal_value(header, &Value::record(content), seed)
}

fn seal_value(header: Header, content: &Value, seed: Seed) -> Result<Record, SealError> {
    let fields = record::cut(content.as_object().expect("content is an object"));
    Record::seal(header, Body::commit(fields, seed)?)
}

#[cfg(test)]
mod tests;
