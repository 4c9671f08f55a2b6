//! Rebase: what one run was asked for is proposed again on the state of another, in order of ticks, into a new linear run
//! (dendrer paper 9.6 and 11.1).
//!
//! The new run is a fork of the base. The intents that the source run owns go through its door one after the other, under
//! the rules that are in force there; neither the base nor the source changes. An intent that was decided on something that
//! is not so on the new base ends it: what was decided elsewhere is not carried to where nobody decided it.
//!
//! No tool that acts is called again: its recorded answer is used. A tool that only looks, or whose writing twice is writing
//! once, may be asked again by an [`Ask`] that the caller brings; without one nothing is called.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_kernel::contract::{
    CONTEXT, Contract, Contracts, FieldCheck, Import, ImportRefused, Side, check_import,
};
use dendrer_kernel::pack::{Effect, Pack, extend};
use dendrer_kernel::predicate::Predicate;
use dendrer_kernel::reduce::ReduceError;
use dendrer_kernel::replay;
use dendrer_kernel::sealed;
use dendrer_kernel::step::{Outcome, Reason, RunState, Stage};
use dendrer_object::record::{LINKS_MAX, Link, Record, Rel};
use dendrer_object::{Code, Digest, Intent, Pointer, RunName, TypeName, Value};
use dendrer_store::Shared;

use crate::change::history::{AlreadyThere, origin_of, origins};
use crate::error::Error;
use crate::fork::{self, Forked, GROUP, ReplacedAnswer, has_rule_error, replace};
use crate::recorder::{Environment, Recorder};
use crate::repo::Repo;
use crate::run::casebook_name;
use crate::run::pack;
use crate::run::replay::replay_range;
use crate::selection::{LeftBehind, Selection, sealed_ranges};
use crate::trace::{Trace, read};

/// Asks a tool again. An error ends the rebase and is told.
pub type Ask<'a> = dyn FnMut(&Call<'_>) -> Result<ReplacedAnswer, String> + 'a;

/// A call that may be made again.
#[derive(Debug, Clone, Copy)]
pub struct Call<'c> {
    /// The tick of the source run at which the recorded answer stands.
    pub tick: u64,
    /// The tool.
    pub tool: &'c str,
    /// What it is given.
    pub params: &'c Value,
    /// What the packs declare it to do: [`Effect::Read`] or [`Effect::IdempotentWrite`], nothing else is asked again.
    pub effect: Effect,
}

/// How a rebase is made.
#[derive(Debug, Clone)]
pub struct RebaseTerms {
    /// The new run's id.
    pub run: RunName,
    /// Why.
    pub reason: Option<Arc<str>>,
    /// Ends before the first answer of a tool that acts, in place of using what was recorded.
    pub stop_on_effectful: bool,
    /// Ends before the first decision of which the record does not say what it was decided on. One that is known not to
    /// hold ends it in any case.
    pub stop_on_context: bool,
    /// Appends groups on the way; otherwise all of it stays gathered.
    pub keep: bool,
    /// Takes in once more what is in the history of the base already.
    pub again: bool,
    /// Which intents are taken.
    pub selection: Selection,
    /// What the marker names as left out, by tick of the source.
    left_out: Option<BTreeMap<u64, RebaseStopped>>,
}

impl RebaseTerms {
    /// A rebase that only stops where it must.
    pub fn new(run: RunName) -> RebaseTerms {
        RebaseTerms {
            run,
            reason: None,
            stop_on_effectful: false,
            stop_on_context: false,
            keep: true,
            again: false,
            selection: Selection::default(),
            left_out: None,
        }
    }
}

/// What became of a run's intents on another base.
#[derive(Debug, Clone)]
pub struct Rebased {
    /// The fork of the base that they went into.
    pub forked: Forked,
    /// The run whose intents they are.
    pub source: RunName,
    /// The first tick that the source owns.
    pub from: u64,
    /// Its last tick.
    pub to: u64,
    /// What became of each, in order, up to where it ended.
    pub steps: Vec<RebaseStep>,
}

impl Rebased {
    /// How many intents went through.
    pub fn carried(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step.fate, Fate::Carried { .. })).count()
    }

    /// How many are in the history of the base already.
    pub fn already(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step.fate, Fate::Already(_))).count()
    }

    /// How many were left out.
    pub fn left_out(&self) -> usize {
        self.steps.iter().filter(|step| matches!(step.fate, Fate::LeftOut(_))).count()
    }

    /// Where it ended before the last tick, and why.
    pub fn stopped(&self) -> Option<(u64, &RebaseStopped)> {
        let last = self.steps.last()?;
        match &last.fate {
            Fate::Stopped(why) => Some((last.tick, why)),
            _ => None,
        }
    }

    /// How many ticks of the source stand behind where it ended.
    pub fn unseen(&self) -> u64 {
        self.steps.last().map_or(0, |last| self.to - last.tick)
    }
}

/// One transition of the source run, and what became of it.
#[derive(Debug, Clone)]
pub struct RebaseStep {
    /// Its tick there.
    pub tick: u64,
    /// Its type.
    pub type_name: TypeName,
    /// What its tool does to the world, where it is about one.
    pub class: Option<EffectClass>,
    /// Fields that the model said it looked at and that are not there on the new base: told, and no reason to stop.
    pub advisory: Vec<Arc<str>>,
    /// What became of it.
    pub fate: Fate,
}

/// What counts as the effect of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EffectClass {
    /// The effect: the strictest of what both packs and the record say.
    pub effect: Effect,
    /// Whether a pack declares the tool. What none declares counts as effectful, whatever the record says.
    pub is_declared: bool,
}

impl fmt::Display for EffectClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.effect.as_str())?;
        if self.is_declared { Ok(()) } else { f.write_str(" (undeclared)") }
    }
}

/// What became of a transition.
#[derive(Debug, Clone, PartialEq)]
pub enum Fate {
    /// The kernel wrote it about the source run, and it stays there.
    Left,
    /// It is in the history of the base already.
    Already(AlreadyThere),
    /// It went through the door.
    Carried {
        /// Its tick in the new run.
        tick: u64,
        /// What is known of what it was decided on.
        basis: Basis,
        /// Where its answer is from, if it is one.
        answer: Option<AnswerSource>,
    },
    /// It was left out, and what follows went on.
    LeftOut(RebaseStopped),
    /// It ended the rebase.
    Stopped(RebaseStopped),
}

/// What is known of what an intent was decided on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The record says what, and it is so on the new base.
    Holds,
    /// It is a fact and no decision: what a tool answered, what was observed.
    Fact,
    /// The record does not say. It may have been decided otherwise here.
    Unsaid,
}

/// Where an answer is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerSource {
    /// The record.
    Record,
    /// The tool was asked again and answered the same.
    AskedSame,
    /// The tool was asked again and answered something else.
    AskedOther,
}

/// Why an intent is not carried over.
#[derive(Debug, Clone, PartialEq)]
pub enum RebaseStopped {
    /// It names a tick of the source at which another answer was given here.
    OtherAnswer(u64),
    /// It names a transition, by run and tick or by id, that is not in the history of the new run.
    Absent(String),
    /// The contracts of its type are others, or on one side only, in runs that enforce none.
    ContractsDiffer,
    /// This extension of its contract governs it in the source, and not here.
    Extension(Arc<str>),
    /// Its contract does not let it be carried here: why, and the fields that do not fit.
    Context(ImportRefused, Vec<FieldCheck>),
    /// It decides on policy, and the rules are others here.
    RulesDiffer,
    /// It was decided on a value that is another here: the place, the value there, the value here.
    DecidedOn(Pointer, Option<Value>, Option<Value>),
    /// Nothing says what it was decided on, and that was to end it.
    Unsaid,
    /// It is the answer of a tool that acts, and that was to end it.
    Effectful,
    /// It was imported into the source; what it was decided on stands where it comes from.
    Imported,
    /// It is the answer of a tool that acts, or one that cannot be asked here, and no output is on record.
    NoOutput,
    /// The tool was asked again and did not answer.
    NotAnswered(String),
    /// The tool was asked again and said something else, and nothing says what that changes.
    NoChange,
    /// Its change does not fit the state here.
    DoesNotApply(String),
    /// These predicates of the pack would be violated behind it, and were not before.
    Violates(Vec<Arc<str>>),
    /// It has as many links as a record may have.
    Links,
    /// The door turned it down: the code and the reason. The refusal is beside the new run.
    Refused(Code, String),
    /// It names a tick of the source that was left out, or answers what was asked there.
    LeftOut(u64),
    /// Its type is not one that is taken.
    NotChosen,
}

impl RebaseStopped {
    /// A word for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            RebaseStopped::OtherAnswer(_) => "other_answer",
            RebaseStopped::Absent(_) => "absent",
            RebaseStopped::ContractsDiffer => "contracts_differ",
            RebaseStopped::Extension(_) => "extension",
            RebaseStopped::Context(..) => "context",
            RebaseStopped::RulesDiffer => "rules_differ",
            RebaseStopped::DecidedOn(..) => "decided_on",
            RebaseStopped::Unsaid => "unsaid",
            RebaseStopped::Effectful => "effectful",
            RebaseStopped::Imported => "imported",
            RebaseStopped::NoOutput => "no_output",
            RebaseStopped::NotAnswered(_) => "not_answered",
            RebaseStopped::NoChange => "no_change",
            RebaseStopped::DoesNotApply(_) => "does_not_apply",
            RebaseStopped::Violates(_) => "violates",
            RebaseStopped::Links => "links",
            RebaseStopped::Refused(..) => "refused",
            RebaseStopped::LeftOut(_) => "left_out",
            RebaseStopped::NotChosen => "not_chosen",
        }
    }
}

impl Repo {
    /// Proposes the own intents of a run again on another run, at a tick. The caller commits what was gathered, or discards it.
    pub fn rebase(
        &self,
        source: &Trace,
        onto: &Trace,
        tick: u64,
        terms: &RebaseTerms,
        ask: Option<&mut Ask<'_>>,
    ) -> Result<(Recorder, Rebased), Error> {
        rebase(source, onto, tick, self.writer()?, terms, ask, self.environment())
    }
}

/// Proposes the intents that `source` owns on the state of `onto` at a tick. Both are read through one handle and the new run
/// is written through another, of the same store. What is gathered is the caller's to commit, or to discard.
///
/// Both are replayed first, the base up to the tick and the source where it owns its ticks; where replay disagrees with the
/// record, nothing is made.
///
/// Where intents may be left out, they are proposed once without writing, because the marker, which comes first, names them. A tool
/// that is asked again is asked once all the same.
pub fn rebase(
    source: &Trace,
    onto: &Trace,
    tick: u64,
    store: &Shared,
    terms: &RebaseTerms,
    ask: Option<&mut Ask<'_>>,
    surroundings: Box<dyn Environment>,
) -> Result<(Recorder, Rebased), Error> {
    if !terms.selection.is_choice() {
        return rebase_as_told(source, onto, tick, store, terms, ask, surroundings);
    }
    terms.selection.check(source)?;
    let mut answers: BTreeMap<u64, Result<ReplacedAnswer, String>> = BTreeMap::new();
    let mut once =
        ask.map(|ask| move |call: &Call<'_>| answers.entry(call.tick).or_insert_with(|| ask(call)).clone());
    let plan = RebaseTerms { keep: false, ..terms.clone() };
    let asked = once.as_mut().map(|once| once as &mut Ask<'_>);
    let (planned, rebased) = rebase_as_told(source, onto, tick, store, &plan, asked, surroundings)?;
    let left_out = rebased.steps.into_iter().filter_map(|step| match step.fate {
        Fate::LeftOut(why) => Some((step.tick, why)),
        _ => None,
    });
    let terms = RebaseTerms { left_out: Some(left_out.collect()), ..terms.clone() };
    let asked = once.as_mut().map(|once| once as &mut Ask<'_>);
    rebase_as_told(source, onto, tick, store, &terms, asked, planned.into_surroundings())
}

/// Makes a rebase whose marker says what the terms say.
fn rebase_as_told(
    source: &Trace,
    onto: &Trace,
    tick: u64,
    store: &Shared,
    terms: &RebaseTerms,
    ask: Option<&mut Ask<'_>>,
    surroundings: Box<dyn Environment>,
) -> Result<(Recorder, Rebased), Error> {
    casebook_name::refuse_source(source)?;
    casebook_name::refuse_source(onto)?;
    let before = match source.lineage() {
        [.., (_, shared), _] => *shared,
        _ => 0,
    };
    let (from, to) = (before + 1, source.tip());
    // The marker of a fork is no intent.
    let is_fork = source.lineage().len() > 1;
    if to < from + u64::from(is_fork) {
        return Err(Error::NothingOfItsOwn { run: source.name().clone() });
    }
    if tick > onto.tip() {
        return Err(Error::NoTick { run: onto.name().clone(), tick, tip: onto.tip() });
    }
    let reducer = pack::reducer_of(source)?;
    let other = pack::reducer_of_segment(onto, onto.segment(tick))?;
    if reducer.name() != other.name() {
        return Err(Error::EnginesDiffer {
            run: source.name().clone(),
            own: reducer.name().to_owned(),
            onto: onto.name().clone(),
            other: other.name().to_owned(),
        });
    }
    let go_on = &mut |_: &RunState, _: &Record| ControlFlow::Continue(());
    replay_range(source, before, to, &*reducer, false, go_on)??;

    let mut fork_terms = fork::ForkTerms::new(terms.run.clone());
    fork_terms.reason.clone_from(&terms.reason);
    fork_terms.rebased = Some(Value::record([
        ("answers", Value::from(if ask.is_some() { "asked_again" } else { "recorded" })),
        ("from_tick", Value::from(from)),
        ("run", Value::from(source.name().as_str())),
        ("tip", Value::from(source.record(to)?.id())),
        ("to_tick", Value::from(to)),
    ]));
    let ranges = |left: &BTreeMap<u64, RebaseStopped>| {
        sealed_ranges(left.iter().map(|(tick, why)| (*tick, why.kind())))
    };
    fork_terms.left_out = terms.left_out.as_ref().map(ranges);
    fork_terms.selection = terms.selection.clone();
    let (mut recorder, forked) = fork::fork_as_told(onto, store, tick, &fork_terms, surroundings)?;
    let ours = pack::of_segment(onto, onto.segment(tick))?;
    let theirs = pack::of_run(source)?;
    let rules = source.head(if is_fork { from } else { 0 })?.policy().to_vec();
    let none = Contracts::default();
    let mut run = Run {
        source,
        onto,
        tick,
        terms,
        takes_delta: recorder.takes_delta(),
        are_same_rules: same_rules(&rules, recorder.head().policy()),
        decides: places_read(rules.iter().chain(recorder.head().policy())),
        none: &none,
        ours,
        theirs,
        extended: [0, 0],
        lacks: None,
        here: BTreeMap::new(),
        left: BTreeSet::new(),
        behind: LeftBehind::default(),
        there_already: match terms.again {
            true => BTreeMap::new(),
            false => origins(onto, tick, None)?,
        },
        ask,
    };
    let mut steps = Vec::new();
    let mut there = source.state(before)?;
    let mut result = Ok(());
    source.for_each(from, to, &mut |tick, record| {
        let step = run.take(tick, &record, &there, &mut recorder);
        let step = step.map_err(|error| error.stopped_at(source.name(), tick)).and_then(|step| {
            there = replay::recorded_state(&there, &record)?;
            if terms.keep && recorder.may_append() && recorder.pending() >= GROUP {
                recorder.append()?;
            }
            Ok(step)
        });
        match step {
            Ok(step) => {
                let is_end = matches!(step.fate, Fate::Stopped(_));
                steps.push(step);
                if is_end { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }
            Err(error) => {
                result = Err(error);
                ControlFlow::Break(())
            }
        }
    })?;
    result?;
    Ok((recorder, Rebased { forked, source: source.name().clone(), from, to, steps }))
}

/// What the policy rules of two runs say, whatever they are called.
fn same_rules(a: &[Predicate], b: &[Predicate]) -> bool {
    let texts = |rules: &[Predicate]| rules.iter().map(Predicate::words).collect::<BTreeSet<String>>();
    texts(a) == texts(b)
}

fn places_read<'p>(rules: impl Iterator<Item = &'p Predicate>) -> BTreeSet<Pointer> {
    rules.flat_map(|rule| rule.read_set().iter().cloned()).collect()
}

/// A rebase on its way.
struct Run<'r, 'a> {
    source: &'r Trace,
    onto: &'r Trace,
    /// The tick of the base.
    tick: u64,
    terms: &'r RebaseTerms,
    takes_delta: bool,
    are_same_rules: bool,
    /// What decisions on policy look at.
    decides: BTreeSet<Pointer>,
    /// The contracts of no pack.
    none: &'r Contracts,
    /// The pack in force here, with its extensions.
    ours: Option<Pack>,
    /// The pack in force in the source, with its extensions.
    theirs: Option<Pack>,
    /// How many extensions hold in the source, and here.
    extended: [usize; 2],
    /// The first that holds in the source and not here.
    lacks: Option<Arc<str>>,
    /// What the ids of the source's records are here, from which tick they come, and whether another answer was given.
    here: BTreeMap<Digest, (Digest, u64, bool)>,
    /// The ids of what stays in the source.
    left: BTreeSet<Digest>,
    /// What was left out.
    behind: LeftBehind,
    /// What the history of the base has, by the record that was first.
    there_already: BTreeMap<Digest, AlreadyThere>,
    ask: Option<&'r mut Ask<'a>>,
}

impl<'r> Run<'r, '_> {
    fn take(
        &mut self,
        tick: u64,
        record: &Record,
        there: &Value,
        recorder: &mut Recorder,
    ) -> Result<RebaseStep, Error> {
        let mut step = self.judge(tick, record, there, recorder)?;
        if let Fate::Stopped(why) = &step.fate
            && (self.terms.selection.skip || *why == RebaseStopped::NotChosen)
        {
            self.behind.leave(tick, record);
            step.fate = Fate::LeftOut(why.clone());
        }
        Ok(step)
    }

    fn judge(
        &mut self,
        tick: u64,
        record: &Record,
        there: &Value,
        recorder: &mut Recorder,
    ) -> Result<RebaseStep, Error> {
        let type_name = record.header().type_name.clone().expect("a transition has a type");
        let named = self.terms.selection.is_choice().then(|| self.behind.named_by(tick, record)).flatten();
        let Some(mut intent) = replay::intent(record, self.takes_delta)? else {
            self.left.insert(record.id());
            let fate = match type_name.as_str() {
                "run.cherrypick" | "plan.update" => Fate::Stopped(RebaseStopped::Imported),
                _ => Fate::Left,
            };
            return Ok(RebaseStep { tick, type_name, class: None, advisory: Vec::new(), fate });
        };
        let class = self.class(&intent);
        self.extend(tick, there, recorder.head())?;
        if let Some(taken) = self.there_already.get(&origin_of(record)).cloned() {
            self.here.insert(record.id(), (taken.record, tick, false));
            let fate = Fate::Already(taken);
            return Ok(RebaseStep { tick, type_name, class, advisory: Vec::new(), fate });
        }
        let mut advisory = Vec::new();
        let not_taken = match (self.terms.left_out.as_ref().and_then(|left| left.get(&tick)), named) {
            (Some(why), _) => Some(why.clone()),
            (None, _) if !self.terms.selection.takes(&type_name) => Some(RebaseStopped::NotChosen),
            (None, named) => named.map(RebaseStopped::LeftOut),
        };
        if let Some(why) = not_taken {
            return Ok(RebaseStep { tick, type_name, class, advisory, fate: Fate::Stopped(why) });
        }
        let fate = match self.basis(record, &intent, there, recorder.head(), &mut advisory)? {
            Err(why) => Fate::Stopped(why),
            Ok(Basis::Unsaid) if self.terms.stop_on_context => Fate::Stopped(RebaseStopped::Unsaid),
            Ok(basis) => match self.answer(tick, &mut intent, class) {
                Err(why) => Fate::Stopped(why),
                Ok(answer) => self.propose(tick, record, intent, recorder, basis, answer)?,
            },
        };
        Ok(RebaseStep { tick, type_name, class, advisory, fate })
    }

    /// Takes into force what extensions add to the contracts from here on.
    fn extend(&mut self, tick: u64, there: &Value, head: &RunState) -> Result<(), Error> {
        let here = head.tick() + 1;
        let holding =
            |state: &Value, at: u64| extend::effective_ticks(state).filter(|from| *from <= at).count();
        let extended = [holding(there, tick), holding(head.state(), here)];
        if extended == self.extended {
            return Ok(());
        }
        self.extended = extended;
        self.theirs = pack::in_force(self.source, tick, there)?;
        let ours = pack::of_segment(self.onto, self.onto.segment(self.tick))?;
        self.ours = ours.map(|pack| pack::extended(head.run(), pack, here, head.state())).transpose()?;
        let of = |pack: &'_ Option<Pack>, state, at| -> Vec<Value> {
            let pack = pack.as_ref().map(Pack::value);
            pack.into_iter().flat_map(|pack| extend::holding(pack, state, at)).cloned().collect()
        };
        let held: Vec<Value> = of(&self.ours, head.state(), here).iter().map(extend::added_by).collect();
        let lacking = of(&self.theirs, there, tick);
        let lacking = lacking.iter().find(|one| !held.contains(&extend::added_by(one)));
        self.lacks = lacking.and_then(|one| one.get("id")?.as_str()).map(Arc::from);
        Ok(())
    }

    /// What counts as the effect of what an intent is about.
    fn class(&self, intent: &Intent) -> Option<EffectClass> {
        if !matches!(intent.type_name.as_str(), "action.request" | "action.result") {
            return None;
        }
        let recorded = intent.member("effect").and_then(Value::as_str).and_then(Effect::from_word);
        let mut class = EffectClass { effect: recorded.unwrap_or(Effect::Read), is_declared: true };
        let tools = tools(intent);
        for tool in &tools {
            let declared =
                [&self.theirs, &self.ours].into_iter().flatten().filter_map(|pack| pack.effect_of(tool));
            match declared.max() {
                Some(effect) => class.effect = class.effect.max(effect),
                None => class = EffectClass { effect: Effect::Effectful, is_declared: false },
            }
        }
        if tools.is_empty() {
            class = EffectClass { effect: Effect::Effectful, is_declared: false };
        }
        Some(class)
    }

    /// Compares what an intent was decided on with what is so here.
    fn basis(
        &self,
        record: &Record,
        intent: &Intent,
        there: &Value,
        head: &RunState,
        advisory: &mut Vec<Arc<str>>,
    ) -> Result<Result<Basis, RebaseStopped>, Error> {
        let type_name = intent.type_name.as_str();
        // What the institution added there would be dropped in silence.
        if let Some(id) = &self.lacks {
            return Ok(Err(RebaseStopped::Extension(Arc::clone(id))));
        }
        let mut said = false;
        for link in intent.links.iter().filter(|link| link.rel != Rel::PickedFrom) {
            said |= matches!(link.rel, Rel::CausedBy | Rel::Evidence);
            match self.here.get(&link.hash) {
                Some((_, tick, true)) => return Ok(Err(RebaseStopped::OtherAnswer(*tick))),
                Some(_) => {}
                // What was seen in the world was seen, whatever made somebody look.
                None if type_name == "observation.add" => {}
                None => {
                    if let Some(what) = self.absent(link)? {
                        return Ok(Err(RebaseStopped::Absent(what)));
                    }
                }
            }
        }
        let differs = |path: Pointer| {
            let (then, now) = (path.get(there).cloned(), path.get(head.state()).cloned());
            Ok(Err(RebaseStopped::DecidedOn(path, then, now)))
        };
        match self.context(record, intent, there, head) {
            Ok(None) => {}
            Ok(Some(missing)) => {
                said = true;
                // An import only tells what is not here of what the model named; here it is what it decided on.
                let contracts = [&self.theirs, &self.ours].into_iter().flatten();
                let of = contracts.filter_map(|pack| pack.contracts.types.get(&intent.type_name));
                let named = |contract: &Contract| contract.named_differing(intent, there, head.state());
                let found = of.filter_map(named).find(|path| path.get(head.state()).is_some());
                if let Some(path) = found {
                    return differs(path);
                }
                *advisory = missing;
            }
            Err(why) => return Ok(Err(why)),
        }
        if type_name == "policy.decision" || intent.member("policy").is_some() {
            if !self.are_same_rules {
                return Ok(Err(RebaseStopped::RulesDiffer));
            }
            for path in &self.decides {
                said = true;
                if path.get(there) != path.get(head.state()) {
                    return differs(path.clone());
                }
            }
        }
        Ok(Ok(match type_name {
            "action.result" | "observation.add" => Basis::Fact,
            _ if said => Basis::Holds,
            _ => Basis::Unsaid,
        }))
    }

    /// Checks the contract of an intent: nothing where there is none, else the advisory fields that are not here. Where
    /// contracts are enforced, by the rules for imports; where they are only on record, every field counts.
    fn context<'c>(
        &'c self,
        record: &Record,
        intent: &Intent,
        there: &Value,
        head: &RunState,
    ) -> Result<Option<Vec<Arc<str>>>, RebaseStopped> {
        let contracts = |pack: &'c Option<Pack>| pack.as_ref().map_or(self.none, |pack| &pack.contracts);
        let (theirs, ours) = (contracts(&self.theirs), contracts(&self.ours));
        let of = |contracts: &'c Contracts| contracts.types.get(&intent.type_name);
        let context = record.body().value(&format!("/{CONTEXT}"));
        let (contract, is_enforced) = (of(ours), head.stage() >= Stage::Contracts);
        if context.is_some() || is_enforced && contract.is_some() {
            let import = Import { intent, context: context.as_ref(), seed: record.body().seed() };
            let digest = |pack: &Option<Pack>| pack.as_ref().map(Pack::digest);
            let pack = digest(&self.theirs);
            let source = Side { state: there, contracts: theirs, pack, enforced: context.is_some() };
            let target = Side {
                state: head.state(),
                contracts: ours,
                pack: digest(&self.ours),
                enforced: is_enforced,
            };
            let checked = check_import(&import, source, target);
            return match checked.refused {
                None => Ok(Some(checked.advisory)),
                Some(why) => {
                    let wrong = checked.fields.into_iter().filter(|field| field.wrong.is_some()).collect();
                    Err(RebaseStopped::Context(why, wrong))
                }
            };
        }
        let named = |contracts: &'c Contracts| {
            let (name, version) = (Arc::clone(&contracts.name), Arc::clone(&contracts.version));
            of(contracts).map(|contract| (name, version, contract.digest))
        };
        if named(theirs) != named(ours) {
            return Err(RebaseStopped::ContractsDiffer);
        }
        let Some(contract) = contract else { return Ok(None) };
        match contract.differing(intent, there, head.state()) {
            None => Ok(Some(Vec::new())),
            Some(path) => {
                let (then, now) = (path.get(there).cloned(), path.get(head.state()).cloned());
                Err(RebaseStopped::DecidedOn(path, then, now))
            }
        }
    }

    /// Names the target of a link that is not in the history of the new run.
    fn absent(&self, link: &Link) -> Result<Option<String>, Error> {
        if self.left.contains(&link.hash) {
            return Ok(Some(format!("{} of {}, which stays there", link.hash.short(), self.source.name())));
        }
        let store = self.onto.store();
        let Some(position) = store.find(&link.hash)? else { return Ok(Some(link.hash.short())) };
        let record = read(&**store, position)?;
        let header = record.header();
        let (Some(run), Some(tick)) = (&header.run, header.tick) else {
            return Ok(Some(format!("the {} record {}", header.kind, link.hash.short())));
        };
        let ends = self.onto.lineage().iter();
        let is_here = tick <= self.tick
            && ends.clone().any(|(owner, end)| owner == run && tick <= *end)
            && self.onto.record(tick)?.id() == link.hash;
        Ok((!is_here).then(|| format!("{run}@{tick}")))
    }

    /// Says where the answer in an intent is from, once the tool was asked again if it may be.
    fn answer(
        &mut self,
        tick: u64,
        intent: &mut Intent,
        class: Option<EffectClass>,
    ) -> Result<Option<AnswerSource>, RebaseStopped> {
        let (Some(class), "action.result") = (class, intent.type_name.as_str()) else { return Ok(None) };
        let acts = class.effect == Effect::Effectful;
        if acts && self.terms.stop_on_effectful {
            return Err(RebaseStopped::Effectful);
        }
        // What a record says that nobody else does; it is what the answer counts as from here on.
        if intent.member("effect").is_none() {
            set_member(intent, "effect", Value::from(class.effect.as_str()));
        }
        let call = intent
            .member("action")
            .and_then(|action| Some((action.get("tool")?.as_str()?, action.get("params"))));
        let again = match (&mut self.ask, call) {
            (Some(ask), Some((tool, params))) if !acts => {
                let params = params.unwrap_or(&Value::Null);
                Some(
                    ask(&Call { tick, tool, params, effect: class.effect })
                        .map_err(RebaseStopped::NotAnswered)?,
                )
            }
            _ => None,
        };
        let result = intent.member("result");
        let output = result.and_then(|result| result.get("output"));
        let failed = result
            .and_then(|result| result.get("status"))
            .and_then(Value::as_str)
            .is_some_and(|status| status != "ok");
        let Some(answer) = again else {
            return if output.is_some() || failed {
                Ok(Some(AnswerSource::Record))
            } else {
                Err(RebaseStopped::NoOutput)
            };
        };
        let is_same = !failed && output == Some(&answer.output);
        set_member(intent, "fork_type", Value::from("observation"));
        if is_same {
            return Ok(Some(AnswerSource::AskedSame));
        }
        if answer.delta.is_some() != self.takes_delta {
            return Err(RebaseStopped::NoChange);
        }
        replace(intent, &answer);
        Ok(Some(AnswerSource::AskedOther))
    }

    /// Lets an intent through the door.
    fn propose(
        &mut self,
        tick: u64,
        record: &Record,
        mut intent: Intent,
        recorder: &mut Recorder,
        basis: Basis,
        answer: Option<AnswerSource>,
    ) -> Result<Fate, Error> {
        intent.links.retain(|link| link.rel != Rel::PickedFrom);
        for link in &mut intent.links {
            if let Some((id, ..)) = self.here.get(&link.hash) {
                link.hash = *id;
            }
        }
        intent.links.push(Link { rel: Rel::PickedFrom, hash: record.id() });
        let intent = intent.of_origin(record.id());
        // The kernel may add the link of the agent's own branch.
        if intent.links.len() >= LINKS_MAX {
            return Ok(Fate::Stopped(RebaseStopped::Links));
        }
        let predicates = self.ours.as_ref().map_or(&[][..], |pack| &pack.predicates);
        let mut broken = Vec::new();
        // A module that a limit ended says nothing: what was proposed is taken back, and the rebase ends there.
        let mut unknown = None;
        let outcome = recorder.propose_if(&intent, |outcome, before, after| match outcome {
            Outcome::Committed(record) => {
                match pack::newly_broken(predicates, &intent.type_name, before, after) {
                    Ok(found) => broken = found,
                    Err(error) => unknown = Some(error),
                }
                unknown.is_none() && broken.is_empty() && !has_rule_error(record)
            }
            violated @ Outcome::Violated { .. } => {
                broken = violated.violated();
                false
            }
            Outcome::Refused(refused) => !does_not_fit(&refused.reason),
        })?;
        if let Some(error) = unknown {
            return Err(error);
        }
        Ok(match outcome {
            Outcome::Refused(refused) if does_not_fit(&refused.reason) => {
                Fate::Stopped(RebaseStopped::DoesNotApply(refused.reason.to_string()))
            }
            Outcome::Refused(refused) => {
                Fate::Stopped(RebaseStopped::Refused(refused.reason.code(), refused.reason.to_string()))
            }
            Outcome::Committed(made) if has_rule_error(&made) => {
                Fate::Stopped(RebaseStopped::DoesNotApply(rule_error(&made)))
            }
            Outcome::Violated { .. } => Fate::Stopped(RebaseStopped::Violates(broken)),
            Outcome::Committed(_) if !broken.is_empty() => Fate::Stopped(RebaseStopped::Violates(broken)),
            Outcome::Committed(made) => {
                let is_other = answer == Some(AnswerSource::AskedOther);
                self.here.insert(record.id(), (made.id(), tick, is_other));
                let tick = made.header().tick.expect("a transition has a tick");
                Fate::Carried { tick, basis, answer }
            }
        })
    }
}

fn tool(call: &Value) -> Option<&str> {
    call.get("tool")?.as_str()
}

/// The tools that an intent asks for or that answered in it.
fn tools(intent: &Intent) -> Vec<&str> {
    let Some(action) = intent.member("action") else { return Vec::new() };
    match action.get("calls").and_then(Value::as_array) {
        // A call without a tool is one that nobody declares.
        Some(calls) => calls.iter().map(|call| tool(call).unwrap_or_default()).collect(),
        None => tool(action).into_iter().collect(),
    }
}

fn set_member(intent: &mut Intent, name: &str, value: Value) {
    intent.members.retain(|(known, _)| &**known != name);
    intent.members.push((name.into(), value));
    intent.members.sort_by(|a, b| a.0.cmp(&b.0));
}

/// What a rule, or the change itself, met.
fn rule_error(record: &Record) -> String {
    let anomalies = record.body().value("/anomalies");
    let notes = anomalies.as_ref().and_then(Value::as_array);
    let note = notes.and_then(|notes| {
        notes.iter().find(|note| note.get("kind").and_then(Value::as_str) == Some("reducer_error"))
    });
    note.and_then(sealed::words).unwrap_or_default()
}

/// Whether an intent was refused because its change does not fit the state.
fn does_not_fit(reason: &Reason) -> bool {
    matches!(reason, Reason::Reduce(ReduceError::Delta(_)))
}
