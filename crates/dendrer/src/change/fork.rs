//! Forks: a run that goes on from an old tick of another (dendrer paper 4.1).
//!
//! The early ticks of a fork *are* its parent's records, so a fork costs the same at every tick. It writes its
//! `run` record and the marker `run.fork`, together. Before that, the state it is to go on from is made again from the
//! nearest snapshot whose root is on record; where replay disagrees with the record, nothing is forked.
//!
//! With [`carry_on`] the parent's later intents go through the door again, by the rules of the fork. No model and no tool
//! is called: the first intent that was decided on something that is now different ends it, and whatever the record does
//! not say about what an intent was decided on is named.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_kernel::pack::{self as kernel_pack, Bound, Pack, extend};
use dendrer_kernel::reduce::Reducer;
use dendrer_kernel::replay;
use dendrer_kernel::step::{
    self, Broken, COUNTERS, KERNEL_PATHS, Outcome, Stage, StartError, VIOLATION, judge_seeded,
    unjudged_seeded,
};
use dendrer_object::delta::{Delta, DeltaError, DeltaErrorKind, Op};
use dendrer_object::intent::{ForkType, Intent};
use dendrer_object::number::{Number, round_half_even};
use dendrer_object::record::{Kind, Record, Rel};
use dendrer_object::text::nearest;
use dendrer_object::value::Object;
use dendrer_object::{Digest, Pointer, RunName, TypeName, Value};
use dendrer_store::Shared;
use dendrer_store::prelude::*;

use super::reapply::{
    Basis, Counterparts, Halt, LeftOutTicks, NotReapplied, PacksInForce, Reapply, SourceStep,
    decides_on_policy, same_at, sealed_ranges, set_member,
};
use super::selection::Selection;
use crate::error::Error;
use crate::pack;
use crate::record::recorder::redactor_over;
use crate::record::recorder::{Environment, Recorder};
use crate::redact::Redactor;
use crate::repo::Repo;
use crate::run::casebook_name;
use crate::run::declared;
use crate::run::pack::rule_errors;
use crate::run::replay::replay_range;
use crate::run::trace::Trace;
use crate::run::unfinished::BRANCH;
use dendrer_kernel::step::KERNEL_VERSION;

pub mod question;

pub use super::reapply::{ReapplyStopped, ReplacedAnswer};

/// The differences of a fork from its parent.
#[derive(Debug, Clone)]
pub struct ForkTerms {
    /// The new run's id.
    pub run: RunName,
    /// Why it is forked.
    pub reason: Option<Arc<str>>,
    /// Words for the agent by name, like `policy` or `note`: recorded and not enforced.
    pub guidance: BTreeMap<&'static str, Arc<str>>,
    /// Values that rules of the run read, by name: a constant of its pack, or a field of the state that a policy rule reads.
    pub enforce: Vec<(String, Value)>,
    /// Places of the state and what stands there from here on.
    pub set: Vec<(Pointer, Value)>,
    /// The pack that is in force from here on.
    pub pack: Option<Bound>,
    /// Another answer of a tool, by the tick of the parent at which it came.
    pub replace: BTreeMap<u64, ReplacedAnswer>,
    /// Ticks of the parent whose answers are given to a program that is run again.
    pub answered: BTreeSet<u64>,
    /// The agent that went wrong, where the fork is its restoration from before that (dendrer paper 7).
    pub restored: Option<Arc<str>>,
    /// Takes secrets out of it and of each later record.
    pub redactor: Option<Arc<Redactor>>,
    /// The reason why it begins although what it sets breaks rules that the parent keeps.
    pub although: Option<Arc<str>>,
    /// Which of the parent's later intents are carried on, where that is asked.
    pub selection: Selection,
    /// The run whose intents are proposed again, as the marker names it; `None` if this is no rebase.
    pub(crate) rebased: Option<Value>,
    /// The stage of the run that is rebased: the fork has it, where it is higher than the parent's.
    pub(crate) stage: Option<Stage>,
    /// Whether what follows the marker has other values than the parent, though the terms set none.
    pub injects: bool,
    /// The branch of an imported source that the fork is, as the marker names it.
    pub branch: Option<Value>,
    /// The ticks that the marker names as left out; `None` without a choice.
    pub(super) left_out: Option<LeftOutTicks>,
}

impl ForkTerms {
    /// The redactor of a fork's own texts and values: it knows those that the parent took, too.
    pub(super) fn redactor_over(
        &self,
        redactor: Arc<Redactor>,
        parent: &Trace,
    ) -> Result<Arc<Redactor>, Error> {
        let words = self.reason.iter().chain(self.although.iter()).chain(self.guidance.values());
        let set = self.set.iter().map(|(_, value)| value);
        let enforced = self.enforce.iter().map(|(_, value)| value);
        let answers = self.replace.values().map(|answer| &answer.output);
        let said = words.map(|text| Value::from(&**text)).chain(set.chain(enforced).chain(answers).cloned());
        redactor_over(redactor, parent, &Value::array(said))
    }

    /// Whether the fork has something that its parent has not: a value, a rule, a pack or an answer of a tool.
    fn is_injection(&self, head: &step::RunState, changed: &[Changed]) -> bool {
        let is_other_pack = |bound: &Bound| Some(kernel_pack::digest(&bound.value)) != head.pack();
        let has_words = self.guidance.keys().any(|name| name.contains("policy"));
        self.injects
            || has_words
            || !self.answered.is_empty()
            || changed.iter().any(|changed| changed.before.as_ref() != Some(&changed.after))
            || self.pack.as_ref().is_some_and(is_other_pack)
    }

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
            answered: BTreeSet::new(),
            restored: None,
            redactor: None,
            although: None,
            selection: Selection::default(),
            rebased: None,
            stage: None,
            injects: false,
            branch: None,
            left_out: None,
        }
    }
}

/// A value that a fork begins with in place of another.
#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    /// The place or constant.
    pub what: What,
    /// Its value before the fork.
    pub before: Option<Value>,
    /// Its value in the fork.
    pub after: Value,
}

/// A place or constant that was changed.
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
    /// The values that it begins with in place of others.
    pub changed: Vec<Changed>,
    /// The rules that the state after the marker breaks, and that the parent keeps.
    pub violations: Vec<Broken>,
    /// The marker.
    pub marker: Record,
    /// The ticks of the parent that are not carried on, each with the reason, as the marker names them; `None` where there was no
    /// choice.
    pub(super) left_out: Option<LeftOutTicks>,
}

/// The outcome of the parent's later intents.
#[derive(Debug, Clone, Default)]
pub struct Carried {
    /// The ticks of the parent whose intents went through, and the ticks they have here.
    pub ticks: Vec<(u64, u64)>,
    /// Of those, the ticks of the parent of which nothing says what they were decided on.
    pub silent: Vec<u64>,
    /// Of those, the ticks of the parent at which a rule met an error here, so that nothing changed.
    pub errors: Vec<u64>,
    /// The errors of those rules, each with its tick of the parent.
    pub error_words: Vec<(u64, String)>,
    /// The ticks of the parent whose answer was replaced, and whose change of the state is the same all the same.
    pub unmoved: Vec<u64>,
    /// The ticks of the parent that were left out, and why.
    pub left_out: Vec<(u64, ReapplyStopped)>,
    /// The tick at which it stopped, and why; `None` if all of the parent was carried on.
    pub stopped: Option<(u64, ReapplyStopped)>,
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
        let redactor = terms.redactor.take().map_or_else(|| self.redactor(None), Ok)?;
        terms.redactor = Some(terms.redactor_over(redactor, parent)?);
        fork(parent, self.writer()?, tick, &terms, self.environment())
    }
}

/// Forks a run at a tick. The run is read through one handle and the fork is written through another, of the same store.
/// The caller commits the gathered records, or discards them.
///
/// If intents may be left out, they are carried on once without writing, because the marker, which comes first, names them.
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
    let terms = &ForkTerms { left_out: Some(carried.left_out.into_iter().collect()), ..terms.clone() };
    fork_as_told(parent, store, tick, terms, plan.into_surroundings())
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
    parent.refuse_removed()?;
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
    let has_other_answers = check_replaced(parent, tick, terms, &*reducer)?;

    let in_force = crate::run::pack::of_segment(parent, segment)?;
    // An extension may have declared fields.
    let extended = head
        .in_force()
        .map(|value| crate::run::pack::read_recorded(&terms.run, &value, KERNEL_VERSION))
        .transpose()?;
    let terms = &counted(terms, extended.as_ref())?;
    let (mut kernel_terms, changed) = changes(&head, terms, in_force.as_ref(), has_other_answers)?;
    let reducer = match &kernel_terms.pack {
        None => reducer,
        Some(bound) => {
            let pack = crate::run::pack::read_recorded(&terms.run, &bound.value, KERNEL_VERSION)?;
            // Another pack brings its own policy; without one, the rules of the parent stay in force.
            if terms.pack.is_some() && !pack.policy.is_empty() {
                kernel_terms.policy = Some(pack.policy.clone());
            }
            let other = pack.reducer();
            // The content of recorded intents has another meaning to another engine.
            if other.name() != reducer.name() {
                let (own, other) = (reducer.name().to_owned(), other.name().to_owned());
                return Err(Error::OtherEngine { run: parent.name().clone(), own, other });
            }
            other
        }
    };
    let (recorder, marker) =
        Recorder::fork(store, &head, &kernel_terms, reducer, surroundings, terms.redactor.clone())?;
    let violations = match kernel_terms.set.is_empty() && kernel_terms.pack.is_none() {
        true => Vec::new(),
        false => judge_seeded(recorder.head(), &[&head]),
    };
    let refuses = recorder.head().stage() >= Stage::Contracts && !kernel_terms.set.is_empty();
    if refuses && terms.although.is_none() {
        let unjudged = unjudged_seeded(recorder.head(), &head);
        if !violations.is_empty() || !unjudged.is_empty() {
            return Err(Error::BeginsViolated { run: terms.run.clone(), violations, unjudged });
        }
    }
    let state_root = head.state().digest();
    let left_out = terms.left_out.clone();
    Ok((recorder, Forked { tick, replayed_from, state_root, changed, violations, marker, left_out }))
}

/// The terms of a fork for the kernel, with each value that it begins with in place of another.
fn changes(
    head: &step::RunState,
    terms: &ForkTerms,
    in_force: Option<&Pack>,
    has_other_answers: bool,
) -> Result<(step::Fork, Vec<Changed>), Error> {
    let mut made = step::Fork::new(terms.run.clone());
    (made.pack, made.stage) = (terms.pack.clone(), terms.stage);
    let (mut set, mut changed) = (terms.set.clone(), Vec::new());
    let before = |path: &Pointer| path.get(head.state()).cloned();
    for (name, value) in &terms.enforce {
        let bound = made.pack.as_ref().map(|bound| &bound.value);
        let (what, before) = match enforced(head, bound.or(in_force.map(Pack::value)), name, value)? {
            Enforced::Pack(bound, before) => {
                made.pack = Some(bound);
                (What::Constant(name.clone()), Some(before))
            }
            Enforced::State(path, rule) => {
                set.push((path.clone(), value.clone()));
                let before = before(&path);
                (What::Policy(path, rule), before)
            }
        };
        changed.push(Changed { what, before, after: value.clone() });
    }
    changed.extend(terms.set.iter().map(|(path, after)| Changed {
        what: What::State(path.clone()),
        before: before(path),
        after: after.clone(),
    }));
    made.set = Delta(set.into_iter().map(|(path, value)| Op::set(path, value)).collect());
    made.about = about(terms, &changed);
    made.fork_type = match has_other_answers || terms.is_injection(head, &changed) {
        true => ForkType::Injection,
        false => ForkType::Natural,
    };
    Ok((made, changed))
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
        let is_field = path.tokens().count() == 1;
        if is_field && field.decimals.is_some() && !matches!(value, Value::Number(_) | Value::Null) {
            let found = if value.as_str().is_some() { "text" } else { value.type_name() };
            let why = DeltaErrorKind::NotDecimal(found);
            let error = DeltaError { index: None, path: Some(path.clone()), why };
            return Err(StartError::Change(step::Reason::Reduce(error.into())).into());
        }
        let number = value.as_number().and_then(Number::as_f64).filter(|_| path.tokens().count() == 1);
        if let (Some(decimals), Some(number)) = (field.decimals, number)
            && let Some(rounded) = Number::from_f64(round_half_even(number, decimals))
        {
            *value = Value::Number(rounded);
        }
    }
    Ok(terms)
}

/// Looks whether each answer that is to be replaced is one. Returns whether one is not the recorded one.
fn check_replaced(
    parent: &Trace,
    from: u64,
    terms: &ForkTerms,
    reducer: &dyn Reducer,
) -> Result<bool, Error> {
    let mut is_other = false;
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
            _ => is_other |= answer.differs(&record),
        }
    }
    Ok(is_other)
}

fn about(terms: &ForkTerms, changed: &[Changed]) -> Object {
    let mut about = Object::default();
    if let Some(reason) = &terms.reason {
        about.set("fork_reason", Value::String(Arc::clone(reason)));
    }
    if let Some(reason) = &terms.although {
        about.set("although", Value::String(Arc::clone(reason)));
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
    if !terms.answered.is_empty() {
        about.set("answered", Value::array(terms.answered.iter().map(|tick| Value::from(*tick))));
    }
    if let Some(agent) = &terms.restored {
        about.set("restored", Value::String(Arc::clone(agent)));
    }
    if let Some(branch) = &terms.branch {
        about.set(BRANCH, branch.clone());
    }
    if let Some(rebased) = &terms.rebased {
        about.set("rebased", rebased.clone());
    }
    if let Some(left_out) = &terms.left_out {
        about.set("left_out", sealed_ranges(left_out));
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
        crate::run::pack::read_recorded(head.run(), &value, KERNEL_VERSION)?;
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
    let mut carrying = Carrying {
        parent,
        began: parent.state(forked.tick)?,
        terms,
        takes_delta: recorder.takes_delta(),
        packs: PacksInForce::default(),
        here: Counterparts::default(),
        carried: Carried::default(),
    };
    let later = Reapply {
        source: parent,
        ticks: forked.tick + 1..=parent.tip(),
        selection: &terms.selection,
        planned: forked.left_out.as_ref(),
        keep,
    };
    let NotReapplied { left_out, stopped } =
        later.each(recorder, &mut |step, recorder| carrying.propose(step, recorder))?;
    Ok(Carried { left_out, stopped, ..carrying.carried })
}

/// Intents of a parent that are carried on.
struct Carrying<'c> {
    parent: &'c Trace,
    /// The state at the branch point. An extension that the parent got later is left out with its record.
    began: Value,
    terms: &'c ForkTerms,
    takes_delta: bool,
    /// Their contracts name, for a type, the basis of its transitions.
    packs: PacksInForce,
    here: Counterparts,
    carried: Carried,
}

impl Carrying<'_> {
    /// Proposes the intent of a transition to the door of the fork.
    fn propose(&mut self, step: &SourceStep<'_>, recorder: &mut Recorder) -> Result<(), Halt> {
        self.packs.follow(self.parent, step, &self.began, recorder.head())?;
        if step.type_name.as_str() == VIOLATION {
            self.here.note(step, recorder.head().id(), false);
            return Ok(());
        }
        step.check_left_out()?;
        let Some(mut intent) = replay::intent(step.record, self.takes_delta)? else {
            return Err(ReapplyStopped::Kernel(step.type_name.clone()).into());
        };
        step.check_chosen()?;
        let replaced = self.terms.replace.get(&step.tick);
        let basis = match (self.basis(step, &intent, recorder.head()), replaced) {
            (Ok(basis), _) => basis,
            // Another answer was asked for, whatever this one followed from.
            (Err(_), Some(_)) => Basis::Fact,
            (Err(why), None) => return Err(why.into()),
        };
        if let Some(answer) = replaced {
            answer.put_into(&mut intent);
            if answer.differs(step.record) {
                set_member(&mut intent, "fork_type", Value::from(ForkType::Injection.as_str()));
            }
        }
        self.here.relink(&mut intent);
        let intent = intent.of_origin(step.record.id()).of_time(step.record.header().ts);
        let tick = recorder.head().tick() + 1;
        let made = match recorder.propose(&intent)? {
            Outcome::Committed(made) | Outcome::Violated { record: made, .. } => made,
            Outcome::Refused(refused) => return Err(ReapplyStopped::refused(&refused.reason).into()),
        };
        let delta = |record: &Record| record.body().value("/delta");
        if replaced.is_some() && delta(&made) == delta(step.record) {
            self.carried.unmoved.push(step.tick);
        }
        let errors = rule_errors(&made);
        if !errors.is_empty() {
            self.carried.errors.push(step.tick);
        }
        self.carried.error_words.extend(errors.into_iter().map(|error| (step.tick, error)));
        if basis == Basis::Unsaid {
            self.carried.silent.push(step.tick);
        }
        self.carried.ticks.push((step.tick, tick));
        self.here.note(step, made.id(), replaced.is_some());
        Ok(())
    }

    /// Compares the basis of an intent, as far as the record names it, with the state here.
    fn basis(
        &self,
        step: &SourceStep<'_>,
        intent: &Intent,
        head: &step::RunState,
    ) -> Result<Basis, ReapplyStopped> {
        let (there, here) = (step.there, head.state());
        let mut is_named = false;
        for contract in self.packs.both().filter_map(|pack| pack.contracts.types.get(step.type_name)) {
            is_named = true;
            if let Some(path) = contract.differing(intent, there, here) {
                return Err(ReapplyStopped::decided_on(&path, there, here));
            }
        }
        if decides_on_policy(intent) {
            let places = head.policy().iter().flat_map(|rule| rule.read_set());
            is_named |= same_at(places, there, here)?;
        }
        for link in intent.links.iter().filter(|link| matches!(link.rel, Rel::CausedBy | Rel::Evidence)) {
            is_named = true;
            if let Some(here) = self.here.get(&link.hash).filter(|here| here.is_other) {
                return Err(ReapplyStopped::Rests(here.tick));
            }
        }
        Ok(Basis::of(step.type_name, is_named))
    }
}

/// The origin of a fork, as its marker names it.
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
