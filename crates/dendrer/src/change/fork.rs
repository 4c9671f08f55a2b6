//! Forks: a run that goes on from an old tick of another (dendrer paper 4.1).
//!
//! The early ticks of a fork *are* its parent's records, so a fork costs the same at every tick. What it writes is its
//! `run` record and the marker `run.fork`, together. Before that, the state it is to go on from is made again from the
//! nearest snapshot whose root is on record; where replay disagrees with the record, nothing is forked.
//!
//! With [`carry_on`] the parent's later intents go through the door again, by the rules of the fork. No model and no tool
//! is called: the first intent that was decided on something that is now different ends it, and whatever the record does
//! not say about what an intent was decided on is named.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_kernel::contract::Contracts;
use dendrer_kernel::pack::{Bound, Pack, extend};
use dendrer_kernel::reduce::Reducer;
use dendrer_kernel::replay;
use dendrer_kernel::step::{self, COUNTERS, KERNEL_PATHS, Outcome, VIOLATION};
use dendrer_object::delta::{Delta, Op};
use dendrer_object::intent::Intent;
use dendrer_object::number::{Number, round_half_even};
use dendrer_object::record::{Kind, Record, Rel};
use dendrer_object::text::nearest;
use dendrer_object::value::Object;
use dendrer_object::{Code, Digest, Pointer, RunName, TypeName, Value};
use dendrer_store::Shared;
use dendrer_store::prelude::*;

use crate::error::Error;
use crate::pack;
use crate::recorder::{Environment, Recorder};
use crate::redact::Redactor;
use crate::repo::Repo;
use crate::run::casebook_name;
use crate::run::declared;
use crate::run::replay::replay_range;
use crate::selection::{LeftBehind, Selection, sealed_ranges};
use crate::trace::Trace;

/// How many transitions are appended together while intents are carried on.
/// Shorter ones are on record as a whole or not at all.
pub(crate) const GROUP: usize = 20_000;

/// What is different in a fork.
#[derive(Debug, Clone)]
pub struct ForkTerms {
    /// The new run's id.
    pub run: RunName,
    /// Why it is forked.
    pub reason: Option<Arc<str>>,
    /// Words for the agent by name, like `policy` or `note`: recorded, and enforced by nobody.
    pub guidance: BTreeMap<&'static str, Arc<str>>,
    /// Values that rules of the run read, by name: a constant of its pack, or a field of the state that a policy rule reads.
    pub enforce: Vec<(String, Value)>,
    /// Places of the state and what stands there from here on.
    pub set: Vec<(Pointer, Value)>,
    /// The pack that is in force from here on.
    pub pack: Option<Bound>,
    /// Another answer of a tool, by the tick of the parent at which it came.
    pub replace: BTreeMap<u64, ReplacedAnswer>,
    /// The agent that went wrong, where the fork is its restoration from before that (dendrer paper 7).
    pub restored: Option<Arc<str>>,
    /// What takes secrets out of it and of what is recorded behind it.
    pub redactor: Option<Arc<Redactor>>,
    /// Which of the parent's later intents are carried on, where that is asked.
    pub selection: Selection,
    /// What the marker says of the run whose intents go on here, where this is a rebase.
    pub(crate) rebased: Option<Value>,
    /// What the marker says was left out, where there was a choice.
    pub(crate) left_out: Option<Value>,
}

impl ForkTerms {
    /// A fork under the same terms.
    pub fn new(run: RunName) -> ForkTerms {
        ForkTerms {
            run,
            reason: None,
            guidance: BTreeMap::new(),
            enforce: Vec::new(),
            set: Vec::new(),
            pack: None,
            replace: BTreeMap::new(),
            restored: None,
            redactor: None,
            selection: Selection::default(),
            rebased: None,
            left_out: None,
        }
    }
}

impl ForkTerms {
    /// Whether an intent is left out for this reason, in place of ending there.
    fn leaves_out(&self, why: &ForkStopped) -> bool {
        match why {
            ForkStopped::NotChosen => true,
            // A record of the kernel has no intent.
            ForkStopped::Kernel(_) => self.selection.is_choice(),
            _ => self.selection.skip,
        }
    }
}

/// What a tool is to have answered.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplacedAnswer {
    /// The output.
    pub output: Value,
    /// The change of state that the output means, in a run in which agents bring deltas and no rule makes them.
    pub delta: Option<Delta>,
}

/// A value that a fork begins with in place of another.
#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    /// What it is.
    pub what: What,
    /// What it was.
    pub before: Option<Value>,
    /// What it is.
    pub after: Value,
}

/// What was changed.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// A place of the state.
    State(Pointer),
    /// A constant of the pack.
    Constant(String),
    /// A place of the state that a rule of this name reads.
    Policy(Pointer, Arc<str>),
}

/// A fork, before it is on record or after.
#[derive(Debug, Clone)]
pub struct Forked {
    /// The tick of the parent that it goes on from.
    pub tick: u64,
    /// The tick of the snapshot from which the state was made again; 0 for the beginning of the run.
    pub replayed_from: u64,
    /// The root of the state it goes on from.
    pub state_root: Digest,
    /// What it begins with in place of something else.
    pub changed: Vec<Changed>,
    /// The marker.
    pub marker: Record,
    /// The ticks of the parent that are not carried on, each with the reason, as the marker names them; `None` where there was no
    /// choice.
    pub(crate) left_out: Option<BTreeMap<u64, ForkStopped>>,
}

/// What became of the parent's later intents.
#[derive(Debug, Clone, Default)]
pub struct Carried {
    /// The ticks of the parent whose intents went through, and the ticks they have here.
    pub ticks: Vec<(u64, u64)>,
    /// Of those, the ticks of the parent of which nothing says what they were decided on.
    pub silent: Vec<u64>,
    /// Of those, the ticks of the parent at which a rule met an error here, so that nothing changed.
    pub errors: Vec<u64>,
    /// The ticks of the parent whose answer was replaced, and whose change of the state is the same all the same.
    pub unmoved: Vec<u64>,
    /// The ticks of the parent that were left out, and why.
    pub left_out: Vec<(u64, ForkStopped)>,
    /// Where it stopped, and why; nothing where all of the parent was carried on.
    pub stopped: Option<(u64, ForkStopped)>,
}

/// Why an intent of the parent was not carried on.
#[derive(Debug, Clone, PartialEq)]
pub enum ForkStopped {
    /// It names a tick of the parent that says something else here.
    Rests(u64),
    /// It was decided on a value that is another here, by its contract or by a policy rule: the place, the value then, and the
    /// value now.
    DecidedOn(Pointer, Option<Value>, Option<Value>),
    /// The kernel wrote it about the parent. Whether it would do so here is not known before something happens.
    Kernel(TypeName),
    /// The door turned it down: the code and the reason.
    Refused(Code, String),
    /// It names a tick of the parent that was left out, or answers what was asked there.
    LeftOut(u64),
    /// Its type is not one that is taken.
    NotChosen,
}

impl ForkStopped {
    /// A word for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            ForkStopped::Rests(_) => "rests_on",
            ForkStopped::DecidedOn(..) => "decided_on",
            ForkStopped::Kernel(_) => "kernel",
            ForkStopped::Refused(..) => "refused",
            ForkStopped::LeftOut(_) => "left_out",
            ForkStopped::NotChosen => "not_chosen",
        }
    }
}

impl Forked {
    /// Returns the extensions of the parent, each with whether it goes on, under another pack or one with another constant.
    /// `before` is the state at the branch point, `head` that of the fork.
    pub fn extensions(&self, before: &Value, terms: &ForkTerms, head: &step::RunState) -> Vec<(Value, bool)> {
        let is_other = |changed: &Changed| matches!(changed.what, What::Constant(_));
        if terms.pack.is_none() && !self.changed.iter().any(is_other) {
            return Vec::new();
        }
        let pack = head.in_force();
        let goes_on = |one: &Value| pack.as_ref().is_some_and(|pack| extend::is_of(one, pack));
        extend::all(before).map(|one| (one.clone(), goes_on(one))).collect()
    }
}

impl Repo {
    /// Forks a run at a tick. The caller commits what was gathered, or discards it.
    pub fn fork(&self, parent: &Trace, tick: u64, terms: &ForkTerms) -> Result<(Recorder, Forked), Error> {
        let mut terms = terms.clone();
        if terms.redactor.is_none() {
            terms.redactor = Some(self.redactor(None)?);
        }
        fork(parent, self.writer()?, tick, &terms, self.environment())
    }
}

/// Forks a run at a tick. The run is read through one handle and the fork is written through another, of the same store.
/// What is gathered is the caller's to commit, or to discard.
///
/// Where intents may be left out, they are carried on once without writing, because the marker, which comes first, names them.
pub fn fork(
    parent: &Trace,
    store: &Shared,
    tick: u64,
    terms: &ForkTerms,
    surroundings: Box<dyn Environment>,
) -> Result<(Recorder, Forked), Error> {
    if !terms.selection.is_choice() {
        return fork_as_told(parent, store, tick, terms, surroundings);
    }
    terms.selection.check(parent)?;
    let (mut plan, forked) = fork_as_told(parent, store, tick, terms, surroundings)?;
    let carried = carry_on(&mut plan, parent, &forked, terms, false)?;
    let ranges = sealed_ranges(carried.left_out.iter().map(|(tick, why)| (*tick, why.kind())));
    let terms = &ForkTerms { left_out: Some(ranges), ..terms.clone() };
    let (recorder, mut forked) = fork_as_told(parent, store, tick, terms, plan.into_surroundings())?;
    forked.left_out = Some(carried.left_out.into_iter().collect());
    Ok((recorder, forked))
}

/// Makes a fork whose marker says what the terms say.
pub(super) fn fork_as_told(
    parent: &Trace,
    store: &Shared,
    tick: u64,
    terms: &ForkTerms,
    surroundings: Box<dyn Environment>,
) -> Result<(Recorder, Forked), Error> {
    casebook_name::refuse_source(parent)?;
    declared::agents(parent, terms.restored.as_deref())?;
    let head = parent.head(tick)?;
    if store.find(&head.id())?.is_none() {
        return Err(Error::MissingPrefix { run: parent.name().clone(), parent: head.id() });
    }
    let segment = parent.segment(tick);
    let replayed_from = parent.snapshot_before(tick)?;
    let reducer = crate::run::pack::reducer_of_segment(parent, segment)?;
    let go_on = &mut |_: &step::RunState, _: &Record| ControlFlow::Continue(());
    replay_range(parent, replayed_from, tick, &*reducer, false, go_on)??;
    check_replaced(parent, tick, terms, &*reducer)?;

    let in_force = crate::run::pack::of_segment(parent, segment)?;
    let terms = &counted(terms, in_force.as_ref())?;
    let mut changed = Vec::new();
    let mut kernel_terms = step::Fork::new(terms.run.clone());
    kernel_terms.pack = terms.pack.clone();
    let mut set = terms.set.clone();
    for (name, value) in &terms.enforce {
        let bound = kernel_terms.pack.as_ref().map(|bound| &bound.value);
        match enforced(&head, bound.or(in_force.as_ref().map(Pack::value)), name, value)? {
            Enforced::Pack(bound, before) => {
                let what = What::Constant(name.clone());
                changed.push(Changed { what, before: Some(before), after: value.clone() });
                kernel_terms.pack = Some(bound);
            }
            Enforced::State(path, rule) => {
                let before = path.get(head.state()).cloned();
                changed.push(Changed {
                    what: What::Policy(path.clone(), rule),
                    before,
                    after: value.clone(),
                });
                set.push((path, value.clone()));
            }
        }
    }
    changed.extend(terms.set.iter().map(|(path, after)| Changed {
        what: What::State(path.clone()),
        before: path.get(head.state()).cloned(),
        after: after.clone(),
    }));
    kernel_terms.set = Delta(set.into_iter().map(|(path, value)| Op::set(path, value)).collect());
    kernel_terms.about = about(terms, &changed);
    let reducer = match &kernel_terms.pack {
        None => reducer,
        Some(bound) => {
            let pack = crate::run::pack::read_recorded(&terms.run, &bound.value)?;
            // Another pack brings its own policy; without one, the rules of the parent stay in force.
            if terms.pack.is_some() && !pack.policy.is_empty() {
                kernel_terms.policy = Some(pack.policy.clone());
            }
            let other = pack.reducer();
            // What recorded intents bring means something else to another engine.
            if other.name() != reducer.name() {
                let (own, other) = (reducer.name().to_owned(), other.name().to_owned());
                return Err(Error::OtherEngine { run: parent.name().clone(), own, other });
            }
            other
        }
    };
    let (recorder, marker) =
        Recorder::fork(store, &head, &kernel_terms, reducer, surroundings, terms.redactor.clone())?;
    let state_root = head.state().digest();
    Ok((recorder, Forked { tick, replayed_from, state_root, changed, marker, left_out: None }))
}

/// The values that are to be set, as the fields that the pack declares hold them.
fn counted(terms: &ForkTerms, pack: Option<&Pack>) -> Result<ForkTerms, Error> {
    let mut terms = terms.clone();
    let Some(pack) = pack else { return Ok(terms) };
    for (path, value) in &mut terms.set {
        let top = path.tokens().next().map(|name| name.into_owned()).unwrap_or_default();
        if KERNEL_PATHS.contains(&&*top) || top == COUNTERS {
            continue;
        }
        let Some(field) = pack.fields.iter().find(|field| *field.stored() == *top) else {
            let near = nearest(&top, pack.fields.iter().map(|field| &*field.name)).map(str::to_owned);
            return Err(Error::UndeclaredField { name: path.dotted(), near });
        };
        let number = value.as_number().and_then(Number::as_f64).filter(|_| path.tokens().count() == 1);
        if let (Some(decimals), Some(number)) = (field.decimals, number)
            && let Some(rounded) = Number::from_f64(round_half_even(number, decimals))
        {
            *value = Value::Number(rounded);
        }
    }
    Ok(terms)
}

/// Looks whether each answer that is to be replaced is one.
fn check_replaced(parent: &Trace, from: u64, terms: &ForkTerms, reducer: &dyn Reducer) -> Result<(), Error> {
    for (tick, answer) in &terms.replace {
        let fail =
            |why: &str| Error::NoAnswer { run: parent.name().clone(), tick: *tick, why: why.to_owned() };
        if *tick <= from {
            return Err(fail("it lies before the fork, and what was recorded there stays"));
        }
        let record = parent.record(*tick)?;
        let type_name = record.header().type_name.as_ref().map_or("", TypeName::as_str);
        if !matches!(type_name, "action.result" | "observation.add") {
            return Err(fail(&format!("it is {type_name}, and no tool answered there")));
        }
        match (&answer.delta, reducer.takes_delta()) {
            (None, true) => {
                return Err(fail(
                    "no rule says what the answer changes, so its file holds \"output\" and \"delta\"",
                ));
            }
            (Some(_), false) => {
                return Err(fail("the pack says what an answer changes; give no delta"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn about(terms: &ForkTerms, changed: &[Changed]) -> Object {
    let mut about = Object::default();
    if let Some(reason) = &terms.reason {
        about.set("fork_reason", Value::String(Arc::clone(reason)));
    }
    if !terms.guidance.is_empty() {
        let words = terms.guidance.iter().map(|(name, text)| (*name, Value::String(Arc::clone(text))));
        about.set("guidance", Value::record(words));
    }
    let enforced = changed.iter().filter_map(|changed| {
        let (kind, name) = match &changed.what {
            What::State(_) => return None,
            What::Constant(name) => ("constant", name.clone()),
            What::Policy(path, _) => ("state", path.to_string()),
        };
        let before = changed.before.clone().unwrap_or(Value::Null);
        Some(Value::record([(kind, Value::from(name)), ("before", before), ("after", changed.after.clone())]))
    });
    let enforced: Vec<Value> = enforced.collect();
    if !enforced.is_empty() {
        about.set("enforced", Value::array(enforced));
    }
    if !terms.replace.is_empty() {
        let replaced = terms.replace.iter().map(|(tick, answer)| {
            Value::record([("output", Value::from(answer.output.digest())), ("tick", Value::from(*tick))])
        });
        about.set("replaced", Value::array(replaced));
    }
    if let Some(agent) = &terms.restored {
        about.set("restored", Value::String(Arc::clone(agent)));
    }
    if let Some(rebased) = &terms.rebased {
        about.set("rebased", rebased.clone());
    }
    if let Some(left_out) = &terms.left_out {
        about.set("left_out", left_out.clone());
        about.set("selection", terms.selection.sealed());
    }
    about
}

enum Enforced {
    /// A pack with another constant, and what it was.
    Pack(Bound, Value),
    /// A place of the state, and the rule that reads it.
    State(Pointer, Arc<str>),
}

/// Finds what a name means to the rules of a run.
fn enforced(
    head: &step::RunState,
    pack: Option<&Value>,
    name: &str,
    value: &Value,
) -> Result<Enforced, Error> {
    if let Some(pack) = pack
        && let Some(before) = pack.get("constants").and_then(|constants| constants.get(name))
    {
        let (mut members, before) = (pack.as_object().cloned().unwrap_or_default(), before.clone());
        let mut constants = pack.get("constants").and_then(Value::as_object).cloned().unwrap_or_default();
        constants.set(name, value.clone());
        members.set("constants", Value::Object(constants));
        let value = Value::Object(members);
        crate::run::pack::read_recorded(head.run(), &value)?;
        // The text that people wrote says another constant.
        let text = pack::text_of(&value);
        return Ok(Enforced::Pack(Bound { value, text }, before));
    }
    let path = Pointer::of(name.split('.'));
    let reads = |rule: &&dendrer_kernel::predicate::Predicate| {
        rule.read_set().iter().any(|read| read.overlaps(&path))
    };
    if let Some(rule) = head.policy().iter().find(reads) {
        return Ok(Enforced::State(path, rule.name().into()));
    }
    let mut known: Vec<String> = pack
        .and_then(|pack| pack.get("constants")?.as_object())
        .into_iter()
        .flat_map(|constants| constants.iter().map(|(name, _)| name.to_string()))
        .chain(head.policy().iter().flat_map(|rule| rule.read_set().iter().map(Pointer::dotted)))
        .collect();
    known.sort();
    known.dedup();
    Err(Error::NothingEnforces { name: name.to_owned(), known })
}

/// Lets the parent's intents after the fork go through the door of the fork, in order, until one was decided on something
/// that is different here, or leaves out what the fork's terms say. With `keep`, groups are appended on the way; otherwise all of
/// it stays gathered.
pub fn carry_on(
    recorder: &mut Recorder,
    parent: &Trace,
    forked: &Forked,
    terms: &ForkTerms,
    keep: bool,
) -> Result<Carried, Error> {
    let takes_delta = recorder.takes_delta();
    let mut carried = Carried::default();
    let mut behind = LeftBehind::default();
    // What the ids of the parent's later records are here, and whether they say the same.
    let mut here: BTreeMap<Digest, (Digest, u64)> = BTreeMap::new();
    let mut there = parent.state(forked.tick)?;
    let mut result = Ok(());
    let (mut theirs, mut ours) = (Contracts::default(), Contracts::default());
    let turns = |state: &Value, first: u64| -> BTreeSet<u64> {
        extend::effective_ticks(state).chain([first]).collect()
    };
    let turns_there = turns(&there, forked.tick + 1);
    let turns_here = turns(recorder.head().state(), recorder.head().tick() + 1);
    parent.for_each(forked.tick + 1, parent.tip(), &mut |tick, record| {
        let mut take = || {
            let of = |pack: Option<Pack>| pack.map(|pack| pack.contracts).unwrap_or_default();
            if turns_there.contains(&tick) {
                theirs = of(crate::run::pack::in_force(parent, tick, &there)?);
            }
            let head = recorder.head();
            if turns_here.contains(&(head.tick() + 1)) {
                let value = head.in_force();
                ours =
                    of(value.map(|value| crate::run::pack::read_recorded(head.run(), &value)).transpose()?);
            }
            // What the parent's contract found there; what it finds here is found again.
            if record.header().type_name.as_ref().is_some_and(|name| name.as_str() == VIOLATION) {
                return Ok(Ok(recorder.head().id()));
            }
            let named = terms.selection.is_choice().then(|| behind.named_by(tick, &record)).flatten();
            if let Some(why) = forked.left_out.as_ref().and_then(|left_out| left_out.get(&tick)) {
                return Ok(Err(why.clone()));
            }
            if let Some(named) = named {
                // What was not chosen is left out for that reason first.
                let is_chosen =
                    record.header().type_name.as_ref().is_none_or(|name| terms.selection.takes(name));
                return Ok(Err(if is_chosen { ForkStopped::LeftOut(named) } else { ForkStopped::NotChosen }));
            }
            let (record, there, here, contracts) = (&record, &there, &here, [&theirs, &ours]);
            Next { tick, record, there, here, terms, contracts, takes_delta }.take(recorder, &mut carried)
        };
        let made = take().map_err(|error| error.stopped_at(parent.name(), tick));
        let step = made.and_then(|made| {
            match made {
                Ok(id) => drop(here.insert(record.id(), (id, tick))),
                Err(why) if terms.leaves_out(&why) => {
                    behind.leave(tick, &record);
                    carried.left_out.push((tick, why));
                }
                Err(why) => {
                    carried.stopped = Some((tick, why));
                    return Ok(ControlFlow::Break(()));
                }
            }
            there = replay::recorded_state(&there, &record)?;
            if keep && recorder.may_append() && recorder.pending() >= GROUP {
                recorder.append()?;
            }
            Ok(ControlFlow::Continue(()))
        });
        step.unwrap_or_else(|error| {
            result = Err(error);
            ControlFlow::Break(())
        })
    })?;
    result.map(|()| carried)
}

/// One transition of the parent that may be carried on.
struct Next<'a> {
    tick: u64,
    record: &'a Record,
    /// Where the parent stood before it.
    there: &'a Value,
    here: &'a BTreeMap<Digest, (Digest, u64)>,
    terms: &'a ForkTerms,
    /// What says, for a type, what its transitions are decided on: of the parent, and what is in force here.
    contracts: [&'a Contracts; 2],
    takes_delta: bool,
}

impl Next<'_> {
    /// Takes it through the door, and returns its id here, or why it is not taken.
    fn take(
        &self,
        recorder: &mut Recorder,
        carried: &mut Carried,
    ) -> Result<Result<Digest, ForkStopped>, Error> {
        let type_name = self.record.header().type_name.clone().expect("a transition has a type");
        let Some(mut intent) = replay::intent(self.record, self.takes_delta)? else {
            return Ok(Err(ForkStopped::Kernel(type_name)));
        };
        if !self.terms.selection.takes(&type_name) {
            return Ok(Err(ForkStopped::NotChosen));
        }
        let replaced = self.terms.replace.get(&self.tick);
        let basis = self.decided_on(&intent, recorder);
        let is_unsaid = matches!(basis, Basis::Unsaid);
        // Another answer was asked for, whatever this one came of.
        if let Basis::Differs(why) = basis
            && replaced.is_none()
        {
            return Ok(Err(why));
        }
        if let Some(answer) = replaced {
            replace(&mut intent, answer);
        }
        for link in &mut intent.links {
            if let Some((id, _)) = self.here.get(&link.hash) {
                link.hash = *id;
            }
        }
        let intent = intent.of_origin(self.record.id());
        let tick = recorder.head().tick() + 1;
        match recorder.propose(&intent)? {
            Outcome::Committed(record) | Outcome::Violated { record, .. } => {
                let delta = |record: &Record| record.body().value("/delta");
                if replaced.is_some() && delta(&record) == delta(self.record) {
                    carried.unmoved.push(self.tick);
                }
                if has_rule_error(&record) {
                    carried.errors.push(self.tick);
                }
                if is_unsaid {
                    carried.silent.push(self.tick);
                }
                carried.ticks.push((self.tick, tick));
                Ok(Ok(record.id()))
            }
            Outcome::Refused(refused) => {
                Ok(Err(ForkStopped::Refused(refused.reason.code(), refused.reason.to_string())))
            }
        }
    }

    /// What an intent was decided on, as far as the record says, and whether that is the same here.
    fn decided_on(&self, intent: &Intent, recorder: &Recorder) -> Basis {
        let mut said = false;
        let head = recorder.head();
        for contract in self.contracts.iter().filter_map(|of| of.types.get(&intent.type_name)) {
            said = true;
            if let Some(path) = contract.differing(intent, self.there, head.state()) {
                let (then, now) = (path.get(self.there).cloned(), path.get(head.state()).cloned());
                return Basis::Differs(ForkStopped::DecidedOn(path, then, now));
            }
        }
        if intent.type_name.as_str() == "policy.decision" || intent.member("policy").is_some() {
            for path in head.policy().iter().flat_map(|rule| rule.read_set()) {
                said = true;
                let (then, now) = (path.get(self.there), path.get(head.state()));
                if then != now {
                    let why = ForkStopped::DecidedOn(path.clone(), then.cloned(), now.cloned());
                    return Basis::Differs(why);
                }
            }
        }
        for link in intent.links.iter().filter(|link| matches!(link.rel, Rel::CausedBy | Rel::Evidence)) {
            said = true;
            if let Some((_, tick)) = self.here.get(&link.hash)
                && self.terms.replace.contains_key(tick)
            {
                return Basis::Differs(ForkStopped::Rests(*tick));
            }
        }
        // What a tool answered and what was seen is a fact, however it came about.
        let is_fact = matches!(intent.type_name.as_str(), "action.result" | "observation.add");
        if said || is_fact { Basis::Same } else { Basis::Unsaid }
    }
}

/// Tells whether a rule met an error when a transition was made, so that the state did not follow.
pub(crate) fn has_rule_error(record: &Record) -> bool {
    let Some(Value::Array(anomalies)) = record.body().value("/anomalies") else { return false };
    anomalies.iter().any(|note| note.get("kind").and_then(Value::as_str) == Some("reducer_error"))
}

/// What the record says about what an intent was decided on.
enum Basis {
    /// It is the same here.
    Same,
    /// It is different here.
    Differs(ForkStopped),
    /// Nothing.
    Unsaid,
}

/// Puts another answer in the place of the recorded one.
pub(crate) fn replace(intent: &mut Intent, answer: &ReplacedAnswer) {
    // What an agent says that it saw is in its own words, and no result of a call.
    let is_result = intent.type_name.as_str() == "action.result";
    let member = if is_result { "result" } else { "intent" };
    let mut said = intent.member(member).and_then(Value::as_object).cloned().unwrap_or_default();
    said.set("output", answer.output.clone());
    if is_result {
        said.remove("error");
        said.set("status", Value::from("ok"));
    }
    intent.members.retain(|(name, _)| &**name != member);
    intent.members.push((member.into(), Value::Object(said)));
    intent.members.sort_by(|a, b| a.0.cmp(&b.0));
    if answer.delta.is_some() {
        intent.delta.clone_from(&answer.delta);
    }
}

/// Where a run was forked and why, as its marker says.
#[derive(Debug, Clone, PartialEq)]
pub struct ForkOrigin {
    /// The parent.
    pub run: RunName,
    /// The tick of the parent that it goes on from.
    pub tick: u64,
    /// Why.
    pub reason: Option<Arc<str>>,
}

/// Returns where the run of a trace was forked; `None` for a run that begins by itself.
pub fn origin(trace: &Trace) -> Result<Option<ForkOrigin>, Error> {
    let [.., (run, tick), (_, end)] = trace.lineage() else { return Ok(None) };
    let reason = match tick < end {
        true => trace.record(tick + 1)?,
        false => return Ok(Some(ForkOrigin { run: run.clone(), tick: *tick, reason: None })),
    };
    debug_assert_eq!(reason.header().kind, Kind::Transition, "a tick is a transition");
    let about = reason.body().value("/fork");
    let reason = about.as_ref().and_then(|about| about.get("fork_reason")?.as_str().map(Arc::from));
    Ok(Some(ForkOrigin { run: run.clone(), tick: *tick, reason }))
}
