//! Proposes recorded intents of a run again on another head, in order of ticks.
//!
//! One loop serves [`carry_on`](super::fork::carry_on) and [`rebase`](super::rebase::rebase): it leaves out the intents that the
//! selection leaves out, ends at the first other one that is stopped, and appends groups on the way. The verb decides if an intent is
//! proposed. No model and no tool is called here.
//!
//! Rule: each intent goes through the door of the new run; test `intents_go_through_the_door_of_another_run_in_order`.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::Arc;

use dendrer_kernel::contract::{
    CONTEXT, Checked, Contracts, FieldCheck, Import, ImportRefused, Side, check_import,
};
use dendrer_kernel::pack::{Pack, extend};
use dendrer_kernel::replay::{self, ReplayError};
use dendrer_kernel::status;
use dendrer_kernel::step::{Reason, RunState, Stage, VIOLATION};
use dendrer_object::delta::Delta;
use dendrer_object::record::Record;
use dendrer_object::{Code, Digest, Intent, Pointer, REDACTION, TypeName, Value};

use super::selection::{LeftBehind, Selection};
use crate::error::Error;
use crate::record::recorder::Recorder;
use crate::run::pack;
use crate::run::trace::Trace;

/// Number of transitions that are appended together. A shorter run is on record as a whole or not at all.
const GROUP: usize = 20_000;

/// The answer that replaces a recorded one.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplacedAnswer {
    /// The output.
    pub output: Value,
    /// The change of state that the output means, in a run in which agents bring deltas and no rule makes them.
    pub delta: Option<Delta>,
}

impl ReplacedAnswer {
    /// Whether the recorded answer is another one.
    pub(super) fn differs(&self, record: &Record) -> bool {
        let content = record.content();
        let said = |name: &str| ["result", "intent"].iter().find_map(|member| content.get(member)?.get(name));
        let is_failed = said("status").and_then(Value::as_str).is_some_and(status::is_failed);
        let delta = content.get("delta").and_then(|delta| Delta::from_value(delta).ok());
        let is_other_delta = self.delta.is_some() && self.delta != delta;
        is_failed || is_other_delta || said("output") != Some(&self.output)
    }

    /// Puts the answer into an intent in place of the recorded one.
    pub(super) fn put_into(&self, intent: &mut Intent) {
        // An observation is in the agent's own words, and no result of a call.
        let is_result = intent.type_name.as_str() == "action.result";
        let member = if is_result { "result" } else { "intent" };
        let mut answer = intent.member(member).and_then(Value::as_object).cloned().unwrap_or_default();
        answer.set("output", self.output.clone());
        if is_result {
            answer.remove("error");
            answer.set("status", Value::from("ok"));
        }
        set_member(intent, member, Value::Object(answer));
        // The recorded answer was redacted; the other one is not yet.
        intent.members.retain(|(name, _)| &**name != REDACTION);
        if self.delta.is_some() {
            intent.delta.clone_from(&self.delta);
        }
    }
}

/// Sets a member of an intent.
pub(super) fn set_member(intent: &mut Intent, name: &str, value: Value) {
    intent.members.retain(|(known, _)| &**known != name);
    intent.members.push((name.into(), value));
    intent.members.sort_by(|a, b| a.0.cmp(&b.0));
}

/// The basis of an intent that may be proposed again, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The record names it, and it is the same on the new head.
    Holds,
    /// A fact and no decision: the answer of a tool, an observation.
    Fact,
    /// The record does not name it. The decision may be another one here.
    Unsaid,
}

impl Basis {
    /// The basis of an intent of which the record names something, or nothing; all that it names is the same.
    pub(super) fn of(type_name: &TypeName, is_named: bool) -> Basis {
        match type_name.as_str() {
            "action.result" | "observation.add" => Basis::Fact,
            _ if is_named => Basis::Holds,
            _ => Basis::Unsaid,
        }
    }
}

/// The reason for which an intent is not proposed again, or does not pass.
#[derive(Debug, Clone, PartialEq)]
pub enum ReapplyStopped {
    /// A fork: it names a tick of the parent at which another answer was given here.
    Rests(u64),
    /// A rebase: it names a tick of the source at which another answer was given here.
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
    /// The record does not name its basis, and the terms end the rebase there.
    Unsaid,
    /// It is the answer of a tool that acts, and the terms end the rebase there.
    Effectful,
    /// It was imported into the source; its basis is in the run that it comes from.
    Imported,
    /// It is the answer of a tool that acts, or one that cannot be asked here, and no output is on record.
    NoOutput,
    /// The tool was asked again and did not answer.
    NotAnswered(String),
    /// The tool was asked again and gave another answer, and the change that it means is not known.
    NoChange,
    /// Its change does not fit the state here.
    DoesNotApply(String),
    /// These predicates of the pack would be violated after it, and were not before.
    Violates(Vec<Arc<str>>),
    /// It has as many links as a record may have.
    Links,
    /// The kernel wrote it about the parent. Whether it would do so here is not known before something happens.
    Kernel(TypeName),
    /// The door refused it: the code and the reason.
    Refused(Code, String),
    /// It names a tick of the source that was left out, or answers a request that was.
    LeftOut(u64),
    /// Its type is not one that is taken.
    NotChosen,
}

impl ReapplyStopped {
    /// A word for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            ReapplyStopped::Rests(_) => "rests_on",
            ReapplyStopped::OtherAnswer(_) => "other_answer",
            ReapplyStopped::Absent(_) => "absent",
            ReapplyStopped::ContractsDiffer => "contracts_differ",
            ReapplyStopped::Extension(_) => "extension",
            ReapplyStopped::Context(..) => "context",
            ReapplyStopped::RulesDiffer => "rules_differ",
            ReapplyStopped::DecidedOn(..) => "decided_on",
            ReapplyStopped::Unsaid => "unsaid",
            ReapplyStopped::Effectful => "effectful",
            ReapplyStopped::Imported => "imported",
            ReapplyStopped::NoOutput => "no_output",
            ReapplyStopped::NotAnswered(_) => "not_answered",
            ReapplyStopped::NoChange => "no_change",
            ReapplyStopped::DoesNotApply(_) => "does_not_apply",
            ReapplyStopped::Violates(_) => "violates",
            ReapplyStopped::Links => "links",
            ReapplyStopped::Kernel(_) => "kernel",
            ReapplyStopped::Refused(..) => "refused",
            ReapplyStopped::LeftOut(_) => "left_out",
            ReapplyStopped::NotChosen => "not_chosen",
        }
    }

    /// A refusal of the door.
    pub(super) fn refused(reason: &Reason) -> ReapplyStopped {
        ReapplyStopped::Refused(reason.code(), reason.to_string())
    }

    /// A value at a place that is another here than it was there.
    pub(super) fn decided_on(path: &Pointer, there: &Value, here: &Value) -> ReapplyStopped {
        ReapplyStopped::DecidedOn(path.clone(), path.get(there).cloned(), path.get(here).cloned())
    }
}

/// Whether an intent is decided on by the policy rules of its run.
pub(super) fn decides_on_policy(intent: &Intent) -> bool {
    intent.type_name.as_str() == "policy.decision" || intent.member("policy").is_some()
}

/// Stops at the first place with another value here than there. Returns whether there are places.
pub(super) fn same_at<'p>(
    places: impl Iterator<Item = &'p Pointer>,
    there: &Value,
    here: &Value,
) -> Result<bool, ReapplyStopped> {
    let mut is_any = false;
    for path in places {
        is_any = true;
        if path.get(there) != path.get(here) {
            return Err(ReapplyStopped::decided_on(path, there, here));
        }
    }
    Ok(is_any)
}

/// The ticks that are left out, each with the reason.
pub(super) type LeftOutTicks = BTreeMap<u64, ReapplyStopped>;

/// Whether an intent is left out for this reason; otherwise the first such intent ends all of it.
pub(super) fn leaves_out(selection: &Selection, why: &ReapplyStopped) -> bool {
    match why {
        ReapplyStopped::NotChosen => true,
        // A record of the kernel has no intent.
        ReapplyStopped::Kernel(_) => selection.is_choice(),
        _ => selection.skip,
    }
}

/// The intents that were left out, as a marker names them: ranges of ticks of the source, each with the reason.
pub(super) fn sealed_ranges(left_out: &LeftOutTicks) -> Value {
    let mut ranges: Vec<(u64, u64, &str)> = Vec::new();
    for (tick, why) in left_out.iter().map(|(tick, why)| (*tick, why.kind())) {
        match ranges.last_mut() {
            Some((_, to, last)) if *to + 1 == tick && *last == why => *to = tick,
            _ => ranges.push((tick, tick, why)),
        }
    }
    Value::array(ranges.into_iter().map(|(from, to, why)| {
        let ticks = [("from_tick", Value::from(from)), ("to_tick", Value::from(to))];
        Value::record([("why", Value::from(why))].into_iter().chain(ticks))
    }))
}

/// The reason why the loop does not go on with an intent: it is stopped, or an error ended all of it.
pub(super) enum Halt {
    Stopped(ReapplyStopped),
    Failed(Error),
}

impl From<ReapplyStopped> for Halt {
    fn from(why: ReapplyStopped) -> Halt {
        Halt::Stopped(why)
    }
}

impl From<Error> for Halt {
    fn from(error: Error) -> Halt {
        Halt::Failed(error)
    }
}

impl From<ReplayError> for Halt {
    fn from(error: ReplayError) -> Halt {
        Halt::Failed(error.into())
    }
}

/// The transitions of a run that are proposed again.
pub(super) struct Reapply<'r> {
    pub(super) source: &'r Trace,
    pub(super) ticks: RangeInclusive<u64>,
    pub(super) selection: &'r Selection,
    /// The ticks that the marker of the new run names as left out.
    pub(super) planned: Option<&'r LeftOutTicks>,
    /// Appends groups on the way; otherwise all of it stays gathered.
    pub(super) keep: bool,
}

/// One transition of the source.
pub(super) struct SourceStep<'s> {
    pub(super) tick: u64,
    pub(super) record: &'s Record,
    pub(super) type_name: &'s TypeName,
    /// The state of the source before it.
    pub(super) there: &'s Value,
    /// The reason that the marker of the new run gives for leaving it out.
    pub(super) planned: Option<&'s ReapplyStopped>,
    /// The tick that was left out and that it names.
    pub(super) named: Option<u64>,
    /// Whether its type is one that is taken.
    pub(super) is_chosen: bool,
}

impl SourceStep<'_> {
    /// Stops at a transition that the marker names as left out, or that depends on one that was left out.
    pub(super) fn check_left_out(&self) -> Result<(), ReapplyStopped> {
        match (self.planned, self.named) {
            (Some(why), _) => Err(why.clone()),
            // A type that is not taken is left out for that reason first.
            (None, Some(named)) => self.check_chosen().and(Err(ReapplyStopped::LeftOut(named))),
            (None, None) => Ok(()),
        }
    }

    /// Stops at a type that is not taken.
    pub(super) fn check_chosen(&self) -> Result<(), ReapplyStopped> {
        if self.is_chosen { Ok(()) } else { Err(ReapplyStopped::NotChosen) }
    }
}

/// The intents that were not proposed again.
#[derive(Debug, Default)]
pub(super) struct NotReapplied {
    pub(super) left_out: Vec<(u64, ReapplyStopped)>,
    /// The tick at which it ended, and why; `None` if it reached the last tick.
    pub(super) stopped: Option<(u64, ReapplyStopped)>,
}

impl Reapply<'_> {
    /// Calls `propose` for each transition, until one is stopped that is not left out.
    pub(super) fn each(
        &self,
        recorder: &mut Recorder,
        propose: &mut dyn FnMut(&SourceStep<'_>, &mut Recorder) -> Result<(), Halt>,
    ) -> Result<NotReapplied, Error> {
        let (source, first) = (self.source, *self.ticks.start());
        let mut left = LeftBehind::default();
        let mut ended = NotReapplied::default();
        let mut there = source.state(first - 1)?;
        source.try_each(first, *self.ticks.end(), &mut |tick, record| {
            let type_name = record.header().type_name.as_ref().expect("a transition has a type");
            // A violation that the contract of the source found is found again here, or is not.
            let is_followed = self.selection.is_choice() && type_name.as_str() != VIOLATION;
            let step = SourceStep {
                tick,
                record: &record,
                type_name,
                there: &there,
                planned: self.planned.and_then(|planned| planned.get(&tick)),
                named: if is_followed { left.named_by(tick, &record) } else { None },
                is_chosen: self.selection.takes(type_name),
            };
            match propose(&step, recorder) {
                Ok(()) => {}
                Err(Halt::Failed(error)) => return Err(error.stopped_at(source.name(), tick)),
                Err(Halt::Stopped(why)) if leaves_out(self.selection, &why) => {
                    left.leave(tick, &record);
                    ended.left_out.push((tick, why));
                }
                Err(Halt::Stopped(why)) => {
                    ended.stopped = Some((tick, why));
                    return Ok(ControlFlow::Break(()));
                }
            }
            there = replay::recorded_state(&there, &record)?;
            if self.keep && recorder.may_append() && recorder.pending() >= GROUP {
                recorder.append()?;
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(ended)
    }
}

/// The records of the new run that take the place of records of the source.
#[derive(Debug, Default)]
pub(super) struct Counterparts(BTreeMap<Digest, Counterpart>);

/// A record of the new run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counterpart {
    id: Digest,
    /// The tick of the source.
    pub(super) tick: u64,
    /// Whether it has another answer than the record of the source.
    pub(super) is_other: bool,
}

impl Counterparts {
    /// Notes the record of the new run for a transition of the source.
    pub(super) fn note(&mut self, step: &SourceStep<'_>, id: Digest, is_other: bool) {
        self.0.insert(step.record.id(), Counterpart { id, tick: step.tick, is_other });
    }

    pub(super) fn get(&self, id: &Digest) -> Option<&Counterpart> {
        self.0.get(id)
    }

    /// Makes the links of an intent lead to records of the new run.
    pub(super) fn relink(&self, intent: &mut Intent) {
        for link in &mut intent.links {
            if let Some(here) = self.0.get(&link.hash) {
                link.hash = here.id;
            }
        }
    }
}

/// The packs in force for a transition: in the source, and in the new run.
#[derive(Debug, Default)]
pub(super) struct PacksInForce {
    pub(super) theirs: Option<Pack>,
    pub(super) ours: Option<Pack>,
    /// How many extensions hold in the source, and here; `None` before the first transition.
    extended: Option<[usize; 2]>,
}

impl PacksInForce {
    /// Takes into force the extensions that hold from this transition on; `began` has those of the source. Returns whether anything
    /// changed.
    pub(super) fn follow(
        &mut self,
        source: &Trace,
        step: &SourceStep<'_>,
        began: &Value,
        head: &RunState,
    ) -> Result<bool, Error> {
        let holding = |state, at| extend::effective_ticks(state).filter(|from| *from <= at).count();
        let extended = Some([holding(began, step.tick), holding(head.state(), head.tick() + 1)]);
        if extended == self.extended {
            return Ok(false);
        }
        self.extended = extended;
        self.theirs = pack::in_force(source, step.tick, step.there)?;
        let ours = head.in_force();
        self.ours =
            ours.map(|value| pack::read_recorded(head.run(), &value, head.rules_version())).transpose()?;
        Ok(true)
    }

    /// The packs, that of the source first.
    pub(super) fn both(&self) -> impl Iterator<Item = &Pack> {
        [&self.theirs, &self.ours].into_iter().flatten()
    }
}

/// Checks by the rules for imports if the basis of a transition of another run, in a state and under a pack, is the same at a head.
pub(super) fn check_basis(
    record: &Record,
    intent: &Intent,
    (there, theirs): (&Value, Option<&Pack>),
    (head, ours): (&RunState, Option<&Pack>),
) -> Checked {
    fn side<'s>(state: &'s Value, pack: Option<&'s Pack>, none: &'s Contracts, enforced: bool) -> Side<'s> {
        let contracts = pack.map_or(none, |pack| &pack.contracts);
        Side { state, contracts, pack: pack.map(Pack::digest), enforced }
    }
    let none = Contracts::default();
    let context = record.body().value(&format!("/{CONTEXT}"));
    let import = Import { intent, context: context.as_ref(), seed: record.body().seed() };
    let source = side(there, theirs, &none, context.is_some());
    check_import(&import, source, side(head.state(), ours, &none, head.stage() >= Stage::Contracts))
}
