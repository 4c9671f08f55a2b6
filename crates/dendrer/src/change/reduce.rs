//! A recorded run reduced again under a pack, into a new run.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_kernel::commitment::{self, CONTRACT, INITIAL};
use dendrer_kernel::ontology::check_authorship;
use dendrer_kernel::pack::{Pack, extend};
use dendrer_kernel::step::{DENIED, Extension, RaisedDoor, Stage, Start, VIOLATION, given_state};
use dendrer_kernel::unknown::{self, Since, UnknownPlaces};
use dendrer_object::record::{Author, Link, Record};
use dendrer_object::{Code, Digest, Object, Pointer, REDACTION, RunName, TypeName, Value};
use dendrer_store::Shared;
use dendrer_store::prelude::*;

use crate::ask::contract::stage as trace_stage;
use crate::error::Error;
use crate::pack::{Source, with_member};
use crate::record::recorder::{Environment, Recorder};
use crate::repo::Repo;
use crate::run::casebook_name;
use crate::run::pack::rule_errors;
use crate::run::trace::Trace;
use crate::run::unfinished::UNFINISHED;

pub mod question;
mod retold;

use retold::{Plan, is_extension};

/// Number of transitions that are appended together while a run is reduced again.
const GROUP: u64 = 256;

/// The run that reducing another one again made.
#[derive(Debug, Clone, PartialEq)]
pub struct Reduced {
    /// Number of transitions.
    pub ticks: u64,
    /// The id of the last record.
    pub tip: Digest,
    /// The ticks at which a rule met an error, with the error.
    pub errors: Vec<(u64, String)>,
    /// Number of transitions that wrote to the state.
    pub wrote: u64,
    /// The extensions of the contract of the source, judged again.
    pub extensions: Vec<Retold>,
    /// The stage of the new run.
    pub stage: Stage,
    /// The first tick at which contracts and violations are enforced; `None` below stage 2.
    pub enforced_from: Option<u64>,
    /// Transitions that the door of that stage, stage 2 at least, would have refused.
    pub refused: Vec<WouldRefuse>,
    /// The places of the last state that are unknown, each with its cause.
    pub unknown: Vec<(Pointer, Since)>,
}

/// A transition that happened, and that the door would have refused.
#[derive(Debug, Clone, PartialEq)]
pub struct WouldRefuse {
    /// The tick.
    pub tick: u64,
    /// The code of the refusal.
    pub code: Code,
    /// The rules and commitments that refuse it, where it is refused for such.
    pub ids: Vec<Arc<str>>,
    /// The reason.
    pub message: String,
}

impl Reduced {
    /// A run without transitions yet; `tip` is its `run` record.
    fn new(stage: Stage, enforced_from: Option<u64>, tip: Digest) -> Reduced {
        Reduced {
            ticks: 0,
            tip,
            errors: Vec::new(),
            wrote: 0,
            extensions: Vec::new(),
            stage,
            enforced_from,
            refused: Vec::new(),
            unknown: Vec::new(),
        }
    }
}

/// An extension that was judged again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retold {
    /// Its name.
    pub id: Arc<str>,
    /// The tick that puts it on record.
    pub tick: u64,
    /// The first tick under it.
    pub from: u64,
}

impl Repo {
    /// Makes a run with the transitions of another one under another pack.
    pub fn reduce(
        &self,
        source: &Trace,
        pack: &Source,
        name: RunName,
        s0: Option<Value>,
        stage: Option<Stage>,
    ) -> Result<Reduced, Error> {
        reduce(source, self.writer()?, pack, name, s0, stage, self.environment())
    }
}

/// Reduces a recorded run again under a pack, into a new run: the same transitions at the same ticks, with states by the rules
/// of the pack. If contracts are enforced, the violations found here replace each `predicate.violation` of the source. `s0` is
/// the state that the pack's `init` is given; `None` for that of the source. `stage` is that of the new run: what happened is
/// kept, and the stage is enforced from the tick after it on. `None` is the stage of the source.
///
/// Checks everything that can stop it before the first record is written, an extension that the new pack refuses included. Under
/// a module, which a limit may end, nothing is written before all of the run was reduced. A rule that meets an error changes
/// nothing at that tick, and the error is noted there. Links to records of the source lead to the new records of the same ticks.
pub fn reduce(
    source: &Trace,
    store: &Shared,
    pack: &Source,
    name: RunName,
    s0: Option<Value>,
    stage: Option<Stage>,
    surroundings: Box<dyn Environment>,
) -> Result<Reduced, Error> {
    casebook_name::refuse_source(source)?;
    let plan = check_source(source, &pack.pack)?;
    let start = pack.bind(begin_again(source, name, s0, stage)?)?;
    plan.rehearse(source, store.info().id, &start, pack)?;
    let mut recorder = Recorder::begin(store, &start, surroundings)?;
    let mut renamed: BTreeMap<Digest, Digest> = BTreeMap::from([(source.start().id(), recorder.head().id())]);
    let tip = recorder.head().id();
    let enforced_from = Some(start.enforced_from).filter(|from| *from > 0);
    let mut reduced = Reduced::new(start.stage(), enforced_from, tip);
    // Nothing is enforced below stage 2; where the pack asks for it, the answer lists what would be.
    let asks = !recorder.head().not_enforced().is_empty();
    let mut door = RaisedDoor::default();
    let reducer = pack.pack.reducer();
    // A source of another store, like a file that is being imported, is not there to be named.
    let keeps_origin = store.find(&source.start().id())?.is_some();
    source.try_each::<Error>(1, source.tip(), &mut |tick, record| {
        let relink =
            |link: Link| Link { hash: renamed.get(&link.hash).copied().unwrap_or(link.hash), ..link };
        let made = if is_extension(&record) {
            let extension = plan.extension(source, tick, &record, pack, recorder.head())?;
            let made = recorder.extend(&extension)?;
            reduced.extensions.extend(retold_as(&extension, &made));
            vec![made]
        } else {
            if (enforced_from.is_some() || asks)
                && let Some(reason) = door.refusal(recorder.head(), &record, &*reducer)?
            {
                let (tick, code) = (recorder.head().tick() + 1, reason.code());
                let (ids, message) = (reason.ids(), reason.to_string());
                reduced.refused.push(WouldRefuse { tick, code, ids, message });
            }
            let made = recorder.retell(&record, &relink, keeps_origin);
            made.map_err(|error| error.stopped_at(source.name(), tick))?
        };
        if recorder.may_append() && tick % GROUP == 0 {
            recorder.append()?;
        }
        renamed.insert(record.id(), made.first().map_or_else(|| recorder.head().id(), Record::id));
        made.iter().for_each(|made| note(&mut reduced, made.header().tick.unwrap_or(tick), made));
        Ok(ControlFlow::Continue(()))
    })?;
    recorder.commit()?;
    reduced.unknown = unknown::listed(recorder.head().state());
    Ok(reduced)
}

fn retold_as(extension: &Extension, made: &Record) -> Option<Retold> {
    let (tick, id) = (made.header().tick?, extension.id().into());
    let from = extend::effective_from(extension.value())?.max(tick + 1);
    Some(Retold { id, tick, from })
}

/// Looks at every record for what could stop a reduction half-way.
fn check_source(source: &Trace, pack: &Pack) -> Result<Plan, Error> {
    let registered: BTreeSet<TypeName> = pack.types.keys().cloned().collect();
    let mut plan = Plan::default();
    source.try_each::<Error>(1, source.tip(), &mut |tick, record| {
        plan.note(tick, &record);
        check_record(source, tick, &record, &registered).map(ControlFlow::Continue)
    })?;
    Ok(plan)
}

fn check_record(
    source: &Trace,
    tick: u64,
    record: &Record,
    registered: &BTreeSet<TypeName>,
) -> Result<(), Error> {
    let closed = record.body().fields().iter().find(|field| record.body().text(field).is_none());
    if let Some(field) = closed {
        let pointer = Some(field.pointer.clone());
        return Err(dendrer_kernel::replay::ReplayError::Erased { tick, pointer }.into());
    }
    let header = record.header();
    match &header.type_name {
        // The door judges an extension by itself.
        Some(_) if header.author == Author::Institution && is_extension(record) => Ok(()),
        Some(type_name) if header.author != Author::Kernel => {
            check_authorship(type_name, header.author, registered).map_err(|error| Error::NotUnderPack {
                run: source.name().clone(),
                tick,
                error,
            })
        }
        _ => Ok(()),
    }
}

/// The start of a run that is reduced again: that of its source, with the place of the source.
fn begin_again(
    source: &Trace,
    name: RunName,
    s0: Option<Value>,
    wanted: Option<Stage>,
) -> Result<Start, Error> {
    let content = source.start().content();
    let stage = trace_stage(source).and_then(Stage::from_number);
    let wanted = wanted.or(stage);
    let mut from = Object::default();
    from.set("run", Value::from(source.name().as_str()));
    from.set("store", Value::from(source.start().header().store.to_string()));
    from.set("ticks", Value::from(source.tip()));
    from.set("tip", Value::from(source.record(source.tip())?.id()));
    if let Some(found) = source.unfinished()? {
        from.set(UNFINISHED, Value::Object(found.to_object()));
    }
    let mut enforced_from = 0;
    if wanted.is_some_and(|stage| stage >= Stage::Contracts) {
        // The violations that the kernel named are not told again.
        let mut named = 0;
        source.for_each(1, source.tip(), &mut |_, record| {
            let type_name = record.header().type_name.as_ref().map(TypeName::as_str);
            named += u64::from(record.header().author == Author::Kernel && type_name == Some(VIOLATION));
            ControlFlow::Continue(())
        })?;
        enforced_from = source.tip() - named + 1;
    }
    Ok(Start {
        goal: content.get("goal").and_then(Value::as_str).map(Arc::from),
        // Nothing is enforced while a record is reduced again: what happened has happened.
        stage: Some(wanted.unwrap_or(Stage::Observe)),
        enforced_from,
        // The run of a merge may begin with unknown places.
        unknown: match &s0 {
            None => content.get("state").map(UnknownPlaces::of).unwrap_or_default(),
            Some(_) => UnknownPlaces::default(),
        },
        state: s0.unwrap_or_else(|| given_state(&content)),
        meta: content.get("meta").cloned(),
        redaction: content.get(REDACTION).cloned(),
        commitments: content.get(INITIAL).and_then(commitment::without_pack),
        contract: content.get(CONTRACT).cloned(),
        denied: content.get(DENIED).cloned(),
        inputs: Some(with_member(content.get("inputs").cloned(), "reduced_from", Value::Object(from))),
        ..Start::new(name)
    })
}

fn note(reduced: &mut Reduced, tick: u64, made: &Record) {
    reduced.ticks = tick;
    reduced.tip = made.id();
    let delta = made.body().value("/delta");
    let wrote = delta.as_ref().and_then(Value::as_array).is_some_and(|delta| !delta.is_empty());
    reduced.wrote += u64::from(wrote);
    reduced.errors.extend(rule_errors(made).into_iter().map(|error| (tick, error)));
}
