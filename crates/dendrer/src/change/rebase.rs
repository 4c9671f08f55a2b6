//! Rebase: what one run was asked for is proposed again on the state of another, in order of ticks, into a new linear run
//! (dendrer paper 9.6 and 11.1).
//!
//! The new run is a fork of the base. The intents that the source run owns go through its door one after the other, under
//! the rules that are in force there; neither the base nor the source changes. An intent whose basis is
//! another on the new base ends it: a decision is not carried to a state on which it was not made.
//!
//! No tool that acts is called again: its recorded answer is used. A tool that only looks, or whose writing twice is writing
//! once, may be asked again by an [`Ask`] that the caller brings; without one nothing is called.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_kernel::commitment::CONTRACT;
use dendrer_kernel::contract::{CONTEXT, Contract, Contracts};
use dendrer_kernel::pack::{Effect, Pack, extend};
use dendrer_kernel::predicate::Predicate;
use dendrer_kernel::reduce::ReduceError;
use dendrer_kernel::replay;
use dendrer_kernel::status;
use dendrer_kernel::step::{Outcome, Reason, RunState, Stage};
use dendrer_object::record::{LINKS_MAX, Link, Record, Rel};
use dendrer_object::{Digest, Intent, Pointer, RunName, TypeName, Value};
use dendrer_store::Shared;

use crate::change::fork::{self, Forked};
use crate::change::history::{OwnedRecord, origin_of, origins};
use crate::change::reapply::{
    Basis, Counterparts, Halt, LeftOutTicks, PacksInForce, Reapply, ReapplyStopped, ReplacedAnswer,
    SourceStep, check_basis, decides_on_policy, leaves_out, same_at, set_member,
};
use crate::change::selection::Selection;
use crate::error::{Error, MergeError};
use crate::record::recorder::{Environment, Recorder};
use crate::repo::Repo;
use crate::run::casebook_name;
use crate::run::pack;
use crate::run::replay::replay_range;
use crate::run::trace::{Trace, read};

pub mod question;

/// Asks a tool again. An error ends the rebase and is told.
pub type Ask<'a> = dyn FnMut(&Call<'_>) -> Result<ReplacedAnswer, String> + 'a;

/// A call that may be made again.
#[derive(Debug, Clone, Copy)]
pub struct Call<'c> {
    /// The tick of the source run at which the recorded answer stands.
    pub tick: u64,
    /// The tool.
    pub tool: &'c str,
    /// Its parameters.
    pub params: &'c Value,
    /// Its effect, as the packs declare it: [`Effect::Read`] or [`Effect::IdempotentWrite`], no other is asked again.
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
    /// The ticks that the marker names as left out; `None` without a choice.
    left_out: Option<LeftOutTicks>,
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

/// The outcome of a run's intents on another base.
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
    /// The outcome of each, in order, up to the tick at which it ended.
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

    /// The tick at which it ended before the last one, and why.
    pub fn stopped(&self) -> Option<(u64, &ReapplyStopped)> {
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
    /// The effect of its tool; `None` if it is not about one.
    pub class: Option<EffectClass>,
    /// Fields that the model said it looked at and that are not there on the new base: told, and no reason to stop.
    pub advisory: Vec<Arc<str>>,
    /// Its outcome.
    pub fate: Fate,
}

/// The effect that a tool counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EffectClass {
    /// The effect: the strictest of what both packs and the record say.
    pub effect: Effect,
    /// Whether a pack declares the tool. One that no pack declares counts as effectful, whatever the record says.
    pub is_declared: bool,
}

impl fmt::Display for EffectClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.effect.as_str())?;
        if self.is_declared { Ok(()) } else { f.write_str(" (undeclared)") }
    }
}

/// The outcome of a transition.
#[derive(Debug, Clone, PartialEq)]
pub enum Fate {
    /// The kernel wrote it about the source run, and it stays there.
    Left,
    /// It is in the history of the base already.
    Already(OwnedRecord),
    /// It went through the door.
    Carried {
        /// Its tick in the new run.
        tick: u64,
        /// Its basis.
        basis: Basis,
        /// The source of its answer, if it is one.
        answer: Option<AnswerSource>,
    },
    /// It was left out, and what follows went on.
    LeftOut(ReapplyStopped),
    /// It ended the rebase.
    Stopped(ReapplyStopped),
}

/// The source of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerSource {
    /// The record.
    Record,
    /// The tool was asked again and answered the same.
    AskedSame,
    /// The tool was asked again and answered something else.
    AskedOther,
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
/// is written through another, of the same store. The caller commits the gathered records, or discards them.
///
/// Both are replayed first, the base up to the tick and the source where it owns its ticks; if replay disagrees with the
/// record, nothing is made.
///
/// If intents may be left out, they are proposed once without writing, because the marker, which comes first, names them. A tool
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
    let mut answers: BTreeMap<u64, Result<ReplacedAnswer, String>> = BTreeMap::new();
    let mut once =
        ask.map(|ask| move |call: &Call<'_>| answers.entry(call.tick).or_insert_with(|| ask(call)).clone());
    let mut make = |terms: &RebaseTerms, surroundings| {
        let asked = once.as_mut().map(|once| once as &mut Ask<'_>);
        rebase_as_told(source, onto, tick, store, terms, asked, surroundings)
    };
    if !terms.selection.is_choice() {
        return make(terms, surroundings);
    }
    terms.selection.check(source)?;
    let (planned, rebased) = make(&RebaseTerms { keep: false, ..terms.clone() }, surroundings)?;
    let left_out = rebased.steps.into_iter().filter_map(|step| match step.fate {
        Fate::LeftOut(why) => Some((step.tick, why)),
        _ => None,
    });
    let terms = RebaseTerms { left_out: Some(left_out.collect()), ..terms.clone() };
    make(&terms, planned.into_surroundings())
}

/// Makes a rebase whose marker names the ticks of the terms as left out.
fn rebase_as_told(
    source: &Trace,
    onto: &Trace,
    tick: u64,
    store: &Shared,
    terms: &RebaseTerms,
    ask: Option<&mut Ask<'_>>,
    surroundings: Box<dyn Environment>,
) -> Result<(Recorder, Rebased), Error> {
    let (from, to) = check(source, onto, tick)?;
    let mut fork_terms = fork::ForkTerms::new(terms.run.clone());
    fork_terms.reason.clone_from(&terms.reason);
    fork_terms.rebased = Some(Value::record([
        ("answers", Value::from(if ask.is_some() { "asked_again" } else { "recorded" })),
        ("from_tick", Value::from(from)),
        ("run", Value::from(source.name().as_str())),
        ("tip", Value::from(source.record(to)?.id())),
        ("to_tick", Value::from(to)),
    ]));
    fork_terms.stage = Some(source.head(to)?.stage());
    fork_terms.left_out.clone_from(&terms.left_out);
    fork_terms.selection = terms.selection.clone();
    let (mut recorder, forked) = fork::fork_as_told(onto, store, tick, &fork_terms, surroundings)?;
    let rules = source.head(if is_fork(source) { from } else { 0 })?.policy().to_vec();
    let mut run = Run {
        source,
        onto,
        tick,
        terms,
        takes_delta: recorder.takes_delta(),
        are_same_rules: same_rules(&rules, recorder.head().policy()),
        decides: places_read(rules.iter().chain(recorder.head().policy())),
        packs: PacksInForce::default(),
        lacks: None,
        here: Counterparts::default(),
        left: BTreeSet::new(),
        there_already: match terms.again {
            true => BTreeMap::new(),
            false => origins(onto, tick, None)?,
        },
        ask,
        steps: Vec::new(),
    };
    let own = Reapply {
        source,
        ticks: from..=to,
        selection: &terms.selection,
        planned: forked.left_out.as_ref(),
        keep: terms.keep,
    };
    own.each(&mut recorder, &mut |step, recorder| run.take(step, recorder))?;
    let steps = run.steps;
    Ok((recorder, Rebased { forked, source: source.name().clone(), from, to, steps }))
}

/// The marker of a fork is no intent.
fn is_fork(source: &Trace) -> bool {
    source.lineage().len() > 1
}

/// Refuses a rebase that cannot be made, and replays what the source owns. Returns the first tick that it owns, and its last one.
fn check(source: &Trace, onto: &Trace, tick: u64) -> Result<(u64, u64), Error> {
    casebook_name::refuse_source(source)?;
    casebook_name::refuse_source(onto)?;
    let before = match source.lineage() {
        [.., (_, shared), _] => *shared,
        _ => 0,
    };
    let (from, to) = (before + 1, source.tip());
    if to < from + u64::from(is_fork(source)) {
        return Err(Error::NothingOfItsOwn { run: source.name().clone() });
    }
    if tick > onto.tip() {
        return Err(Error::NoTick { run: onto.name().clone(), tick, tip: onto.tip() });
    }
    // A delegated run stays as bound as it is: its steps go to its parent by `accept`.
    let contract = |trace: &Trace| trace.start().content().get(CONTRACT).cloned();
    let bound = contract(source);
    if bound.is_some() && bound != contract(onto) {
        let (a, b) = (source.name().clone(), onto.name().clone());
        return Err(MergeError::Terms { a, b, what: "contracts of a delegation" }.into());
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
    Ok((from, to))
}

/// Compares the policy rules of two runs, whatever their names.
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
    /// The places that decisions on policy read.
    decides: BTreeSet<Pointer>,
    packs: PacksInForce,
    /// The first extension that holds in the source and not here.
    lacks: Option<Arc<str>>,
    here: Counterparts,
    /// The ids of what stays in the source.
    left: BTreeSet<Digest>,
    /// The records in the history of the base, by the record that was first.
    there_already: BTreeMap<Digest, OwnedRecord>,
    ask: Option<&'r mut Ask<'a>>,
    steps: Vec<RebaseStep>,
}

impl Run<'_, '_> {
    /// Takes in a transition of the source, and keeps what became of it.
    fn take(&mut self, step: &SourceStep<'_>, recorder: &mut Recorder) -> Result<(), Halt> {
        let mut made = RebaseStep {
            tick: step.tick,
            type_name: step.type_name.clone(),
            class: None,
            advisory: Vec::new(),
            fate: Fate::Left,
        };
        let result = self.judge(step, recorder, &mut made);
        if let Err(Halt::Stopped(why)) = &result {
            let is_left_out = leaves_out(&self.terms.selection, why);
            made.fate = if is_left_out { Fate::LeftOut(why.clone()) } else { Fate::Stopped(why.clone()) };
        }
        self.steps.push(made);
        result
    }

    fn judge(
        &mut self,
        step: &SourceStep<'_>,
        recorder: &mut Recorder,
        made: &mut RebaseStep,
    ) -> Result<(), Halt> {
        let Some(mut intent) = replay::intent(step.record, self.takes_delta)? else {
            self.left.insert(step.record.id());
            return match step.type_name.as_str() {
                "run.cherrypick" | "plan.update" => Err(ReapplyStopped::Imported.into()),
                _ => Ok(()),
            };
        };
        if self.packs.follow(self.source, step, step.there, recorder.head())? {
            self.lacks = self.lacking(step, recorder.head());
        }
        made.class = self.class(&intent);
        if let Some(taken) = self.there_already.get(&origin_of(step.record)) {
            self.here.note(step, taken.record, false);
            made.fate = Fate::Already(taken.clone());
            return Ok(());
        }
        step.check_left_out()?;
        step.check_chosen()?;
        let basis = self.basis(step, &intent, recorder.head(), &mut made.advisory)?;
        if basis == Basis::Unsaid && self.terms.stop_on_context {
            return Err(ReapplyStopped::Unsaid.into());
        }
        let answer = self.answer(step.tick, &mut intent, made.class)?;
        let record = self.propose(step, intent, recorder)?;
        self.here.note(step, record.id(), answer == Some(AnswerSource::AskedOther));
        let tick = record.header().tick.expect("a transition has a tick");
        made.fate = Fate::Carried { tick, basis, answer };
        Ok(())
    }

    /// The first extension that holds in the source and not here.
    fn lacking(&self, step: &SourceStep<'_>, head: &RunState) -> Option<Arc<str>> {
        let of = |pack: &Option<Pack>, state, at| -> Vec<Value> {
            let pack = pack.as_ref().map(Pack::value);
            pack.into_iter().flat_map(|pack| extend::holding(pack, state, at)).cloned().collect()
        };
        let held = of(&self.packs.ours, head.state(), head.tick() + 1);
        let held: Vec<Value> = held.iter().map(extend::added_by).collect();
        let theirs = of(&self.packs.theirs, step.there, step.tick);
        let lacking = theirs.iter().find(|one| !held.contains(&extend::added_by(one)));
        lacking.and_then(|one| one.get("id")?.as_str()).map(Arc::from)
    }

    /// The effect that the tools of an intent count as.
    fn class(&self, intent: &Intent) -> Option<EffectClass> {
        if !matches!(intent.type_name.as_str(), "action.request" | "action.result") {
            return None;
        }
        let recorded = intent.member("effect").and_then(Value::as_str).and_then(Effect::from_word);
        let mut class = EffectClass { effect: recorded.unwrap_or(Effect::Read), is_declared: true };
        let tools = tools(intent);
        for tool in &tools {
            match self.packs.both().filter_map(|pack| pack.effect_of(tool)).max() {
                Some(effect) => class.effect = class.effect.max(effect),
                None => class = EffectClass { effect: Effect::Effectful, is_declared: false },
            }
        }
        if tools.is_empty() {
            class = EffectClass { effect: Effect::Effectful, is_declared: false };
        }
        Some(class)
    }

    /// Compares the basis of an intent, as far as the record names it, with what is so here.
    fn basis(
        &self,
        step: &SourceStep<'_>,
        intent: &Intent,
        head: &RunState,
        advisory: &mut Vec<Arc<str>>,
    ) -> Result<Basis, Halt> {
        // An extension of the institution would be dropped in silence.
        if let Some(id) = &self.lacks {
            return Err(ReapplyStopped::Extension(Arc::clone(id)).into());
        }
        let mut is_named = false;
        for link in intent.links.iter().filter(|link| link.rel != Rel::PickedFrom) {
            is_named |= matches!(link.rel, Rel::CausedBy | Rel::Evidence);
            match self.here.get(&link.hash) {
                Some(here) if here.is_other => return Err(ReapplyStopped::OtherAnswer(here.tick).into()),
                Some(_) => {}
                // An observation was made, whatever caused it.
                None if step.type_name.as_str() == "observation.add" => {}
                None => self.absent(link)?.map_or(Ok(()), |what| Err(ReapplyStopped::Absent(what)))?,
            }
        }
        let (there, here) = (step.there, head.state());
        if let Some(missing) = self.context(step, intent, head)? {
            is_named = true;
            // An import only reports what is not here of the fields that the model named; here they are the basis.
            let of = self.packs.both().filter_map(|pack| pack.contracts.types.get(step.type_name));
            let named = |contract: &Contract| contract.named_differing(intent, there, here);
            if let Some(path) = of.filter_map(named).find(|path| path.get(here).is_some()) {
                return Err(ReapplyStopped::decided_on(&path, there, here).into());
            }
            *advisory = missing;
        }
        if decides_on_policy(intent) {
            if !self.are_same_rules {
                return Err(ReapplyStopped::RulesDiffer.into());
            }
            is_named |= same_at(self.decides.iter(), there, here)?;
        }
        Ok(Basis::of(step.type_name, is_named))
    }

    /// Checks the contract of an intent: `None` without a contract, else the advisory fields that are not here. If contracts are
    /// enforced, by the rules for imports; if they are only on record, every field counts.
    fn context(
        &self,
        step: &SourceStep<'_>,
        intent: &Intent,
        head: &RunState,
    ) -> Result<Option<Vec<Arc<str>>>, ReapplyStopped> {
        let [theirs, ours] = [&self.packs.theirs, &self.packs.ours].map(Option::as_ref);
        let (there, here) = (step.there, head.state());
        let contract = ours.and_then(|pack| pack.contracts.types.get(step.type_name));
        let is_bound = step.record.body().value(&format!("/{CONTEXT}")).is_some();
        if is_bound || head.stage() >= Stage::Contracts && contract.is_some() {
            let checked = check_basis(step.record, intent, (there, theirs), (head, ours));
            let Some(why) = checked.refused else { return Ok(Some(checked.advisory)) };
            let wrong = checked.fields.into_iter().filter(|field| field.wrong.is_some());
            return Err(ReapplyStopped::Context(why, wrong.collect()));
        }
        let named = |pack: &Pack| {
            let Contracts { name, version, types } = &pack.contracts;
            types.get(step.type_name).map(|contract| (name.clone(), version.clone(), contract.digest))
        };
        if theirs.and_then(named) != ours.and_then(named) {
            return Err(ReapplyStopped::ContractsDiffer);
        }
        let Some(contract) = contract else { return Ok(None) };
        match contract.differing(intent, there, here) {
            None => Ok(Some(Vec::new())),
            Some(path) => Err(ReapplyStopped::decided_on(&path, there, here)),
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
    ) -> Result<Option<AnswerSource>, ReapplyStopped> {
        let (Some(class), "action.result") = (class, intent.type_name.as_str()) else { return Ok(None) };
        let acts = class.effect == Effect::Effectful;
        if acts && self.terms.stop_on_effectful {
            return Err(ReapplyStopped::Effectful);
        }
        // The answer counts as this effect from here on, so the record names it.
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
                        .map_err(ReapplyStopped::NotAnswered)?,
                )
            }
            _ => None,
        };
        let result = intent.member("result");
        let output = result.and_then(|result| result.get("output"));
        let failed = result
            .and_then(|result| result.get("status"))
            .and_then(Value::as_str)
            .is_some_and(status::is_failed);
        let Some(answer) = again else {
            return if output.is_some() || failed {
                Ok(Some(AnswerSource::Record))
            } else {
                Err(ReapplyStopped::NoOutput)
            };
        };
        let is_same = !failed && output == Some(&answer.output);
        set_member(intent, "fork_type", Value::from("observation"));
        if is_same {
            return Ok(Some(AnswerSource::AskedSame));
        }
        if answer.delta.is_some() != self.takes_delta {
            return Err(ReapplyStopped::NoChange);
        }
        answer.put_into(intent);
        Ok(Some(AnswerSource::AskedOther))
    }

    /// Proposes an intent to the door; what breaks a predicate or does not fit is taken back.
    fn propose(
        &mut self,
        step: &SourceStep<'_>,
        mut intent: Intent,
        recorder: &mut Recorder,
    ) -> Result<Record, Halt> {
        intent.links.retain(|link| link.rel != Rel::PickedFrom);
        self.here.relink(&mut intent);
        intent.links.push(Link { rel: Rel::PickedFrom, hash: step.record.id() });
        let intent = intent.of_origin(step.record.id()).of_time(step.record.header().ts);
        // The kernel may add the link of the agent's own branch.
        if intent.links.len() >= LINKS_MAX {
            return Err(ReapplyStopped::Links.into());
        }
        let predicates = self.packs.ours.as_ref().map_or(&[][..], |pack| &pack.predicates);
        // A module that a limit ended gives no verdict: the proposal is taken back, and the rebase ends there.
        let mut broken = Ok(Vec::new());
        let outcome = recorder.propose_if(&intent, |outcome, before, after| match outcome {
            Outcome::Committed(made) => {
                broken = pack::newly_broken(predicates, &intent.type_name, before, after);
                broken.as_ref().is_ok_and(Vec::is_empty) && pack::rule_errors(made).is_empty()
            }
            violated @ Outcome::Violated { .. } => {
                broken = Ok(violated.violated());
                false
            }
            Outcome::Refused(refused) => !does_not_fit(&refused.reason),
        })?;
        let broken = broken?;
        Err(Halt::Stopped(match outcome {
            Outcome::Refused(refused) if does_not_fit(&refused.reason) => {
                ReapplyStopped::DoesNotApply(refused.reason.to_string())
            }
            Outcome::Refused(refused) => ReapplyStopped::refused(&refused.reason),
            Outcome::Violated { .. } => ReapplyStopped::Violates(broken),
            Outcome::Committed(made) => match pack::rule_errors(&made).into_iter().next() {
                Some(error) => ReapplyStopped::DoesNotApply(error),
                None if broken.is_empty() => return Ok(made),
                None => ReapplyStopped::Violates(broken),
            },
        }))
    }
}

fn tool(call: &Value) -> Option<&str> {
    call.get("tool")?.as_str()
}

/// The tools that an intent asks for or that answered in it.
fn tools(intent: &Intent) -> Vec<&str> {
    let Some(action) = intent.member("action") else { return Vec::new() };
    match action.get("calls").and_then(Value::as_array) {
        // A call without a tool is one that no pack declares.
        Some(calls) => calls.iter().map(|call| tool(call).unwrap_or_default()).collect(),
        None => tool(action).into_iter().collect(),
    }
}

/// Whether an intent was refused because its change does not fit the state.
fn does_not_fit(reason: &Reason) -> bool {
    matches!(reason, Reason::Reduce(ReduceError::Delta(_)))
}
