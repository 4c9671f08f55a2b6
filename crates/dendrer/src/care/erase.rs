//! Erases a value of a committed record, with every place from which it could be read or guessed.
//!
//! With the value go its copies in later records and in forks, and each digest over a whole that contained it. Whether a later
//! text of an agent follows from the value is not on record: such places are returned as open, and nothing is erased until the
//! caller names each of them. [`plan`] only reads; [`ErasePlan::carry_out`] commits the `erase` record and destroys the values.
//!
//! The first walk of a search takes an open field to stay. If there is one, a second takes all of them to go: one answer asks also for what
//! may follow from them (test `all_open_places_are_listed_at_once`).
//!
//! Rule: what is destroyed is what the `erase` record lists; test `an_erased_value_is_in_no_file_and_the_rest_verifies`.

mod holds;
mod lineage;
mod needles;
mod place;
pub mod question;
pub(in crate::care) mod withhold;

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use dendrer_object::record::{Kind, Record};
use dendrer_object::{Code, Digest, Pointer, RunName, Value};
use dendrer_store::prelude::*;

use self::lineage::Lineage;
pub(crate) use self::lineage::said_in;
use self::needles::Needles;
use self::place::{Named, Target, Unmeant};
use super::{CareNote, Follow};
use crate::address::{Address, Position, RecordAt};
use crate::environment::seal_by_institution;
use crate::error::Error;
use crate::record::recorder::redactor_over;
use crate::repo::Repo;
use crate::run::trace::Trace;
use crate::run::witness::{EXACT, exact_of};
use crate::vault::VaultError;

/// The value that is to be erased, and why.
#[derive(Debug, Clone)]
pub struct EraseTerms {
    /// The tick of a run, or a refusal of it.
    pub at: Address,
    /// The place: a pointer, or dotted; of the record, or of the state where the transition wrote it.
    pub path: String,
    /// The reason, which stays on record.
    pub reason: String,
    /// Name of the person who erases it.
    pub by: String,
    /// Open places that are erased as well: `PLACE`, `TICK:PLACE` or `RUN@TICK:PLACE`.
    pub also: Vec<String>,
    /// Open places that stay, in the same spelling.
    pub although: Vec<String>,
    /// Whether copies before the tick and in unrelated runs are erased as well.
    pub everywhere: bool,
}

dendrer_object::words! {
    /// Why a place is erased, or why it may have to be.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum EraseReason {
        /// It is the place that was named.
        Asked = "asked",
        /// It contains the value.
        Copy = "copy",
        /// It is a digest over a whole that contains the value.
        Digest = "digest",
        /// It contains a part of the value.
        Part = "part",
        /// It was written after the value, by an author who may have read it.
        MayFollow = "may_follow",
    }
}

/// A field of a record, and what it has to do with the erased value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasePlace {
    /// The run; `None` for a record of no run.
    pub run: Option<RunName>,
    /// The tick, or the number of a refusal; `None` for another record off the chain.
    pub at: Option<RecordAt>,
    /// The id of the record.
    pub record: Digest,
    /// The position of the record in the log.
    pub position: u64,
    /// The field.
    pub place: Pointer,
    /// Why.
    pub reason: EraseReason,
}

/// What an erasure will destroy.
#[derive(Debug)]
pub struct ErasePlan {
    /// The run that owns the tick: of a fork the parent, for a tick that they share.
    pub run: RunName,
    /// The tick, or the refusal.
    pub at: RecordAt,
    /// The place.
    pub path: Pointer,
    /// The id of the record.
    pub record: Digest,
    /// The reason.
    pub reason: String,
    by: String,
    /// The fields that are erased, in order of the log.
    pub erased: Vec<ErasePlace>,
    /// The fields that stay although they may contain the value, in order of the log.
    pub although: Vec<ErasePlace>,
    /// The runs whose imported file is in the vault: it has the value, and is destroyed as a whole.
    pub vault: Vec<RunName>,
    /// The puts and writes of threads whose exact bytes are destroyed in the vault, by the field that names their place there.
    pub exact: Vec<(ErasePlace, Arc<str>)>,
    /// The size of the log that was searched.
    searched: u64,
}

/// What an erasure destroyed.
#[derive(Debug)]
pub struct Erased {
    /// The plan.
    pub plan: ErasePlan,
    /// The `erase` record; `None` for a dry run.
    pub record: Option<Record>,
    /// Number of records that other processes committed meanwhile, which were not searched for copies.
    pub not_searched: u64,
}

/// Why nothing was erased.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EraseError {
    /// The vault has the value as well, and it could not be destroyed there.
    #[error("the vault has the value as well, and it cannot be destroyed there: {0}")]
    Vault(#[source] VaultError),
    /// The address names a bundle.
    #[error("a bundle is not changed: values are erased in the store")]
    OfBundle,
    /// The address names no tick.
    #[error("a value is erased at a tick or in a refusal: write RUN@TICK or RUN@refused:N")]
    NoTick,
    /// A text does not name a place of a record.
    #[error("{text:?} does not name a place of a record")]
    NotAPlace {
        /// The text.
        text: String,
    },
    /// The record has no value at the place.
    #[error("{} of {run} has no value at {path}", .at.words())]
    Nothing {
        /// The run.
        run: RunName,
        /// The tick, or the refusal.
        at: RecordAt,
        /// The place.
        path: String,
        /// The fields of the record that can be read.
        fields: Vec<Pointer>,
    },
    /// The values at the place were erased before.
    #[error("the value at {path} of {} of {run} was erased before", .at.words())]
    Already {
        /// The run.
        run: RunName,
        /// The tick, or the refusal.
        at: RecordAt,
        /// The place.
        path: String,
    },
    /// The reason, which stays on record, contains the value.
    #[error("the reason contains the value that is to be erased")]
    InReason,
    /// A place that is to be erased as well, or to stay, is not among the open ones.
    #[error("{text} names no place that is open")]
    Idle {
        /// The text.
        text: String,
    },
    /// Places may contain the value, or follow from it, and were not named.
    #[error("fields that may contain the value or follow from it were not named: {}", .open.len())]
    Open {
        /// The places, in order of the log.
        open: Vec<ErasePlace>,
    },
    /// The store cannot be read or written.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl EraseError {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            EraseError::OfBundle => Code::E0601,
            EraseError::NoTick | EraseError::NotAPlace { .. } => Code::E0105,
            EraseError::Nothing { .. } => Code::E0104,
            EraseError::Already { .. } => Code::E0466,
            EraseError::InReason | EraseError::Idle { .. } => Code::E0106,
            EraseError::Open { .. } => Code::E0467,
            EraseError::Vault(error) => error.code(),
            EraseError::Failed(error) => error.code(),
        }
    }
}

/// Finds what has to be destroyed with a value. Reads the whole log, and changes nothing.
///
/// # Errors
///
/// [`EraseError::Open`] if there are places of which it is not known whether they follow from the value, and which the terms
/// do not name.
pub fn plan(repo: &Repo, terms: &EraseTerms, follow: &mut dyn Follow) -> Result<ErasePlan, EraseError> {
    if terms.at.bundle.is_some() {
        return Err(EraseError::OfBundle);
    }
    let store = repo.reader()?;
    let address = terms.at.clone().resolve(&store)?;
    let trace = address.trace_in(&store, &[])?;
    let (at, record) = record_at(&trace, address.pos.as_ref().ok_or(EraseError::NoTick)?)?;
    let run = record.header().run.clone().unwrap_or_else(|| trace.name().clone());
    let path = terms.path.clone();
    let target = place::resolve(&record, &path).map_err(|why| match why {
        Unmeant::Text => EraseError::NotAPlace { text: path.clone() },
        Unmeant::Erased => EraseError::Already { run: run.clone(), at, path: path.clone() },
        Unmeant::Nothing => {
            let fields = record.body().fields().iter().filter(|field| record.body().text(field).is_some());
            let fields = fields.map(|field| field.pointer.clone()).collect();
            EraseError::Nothing { run: run.clone(), at, path: path.clone(), fields }
        }
    })?;
    let (also, although) = (named(&terms.also)?, named(&terms.although)?);
    let (position, searched) = (position_of(&trace, &record)?, store.tree().size);
    let (place, id) = (target.place.clone(), record.id());
    let begins: Vec<Record> = trace.begins().to_vec();
    let goals = vec![Goal { record, position, target }];
    let search = Search { goals, begins, also, although, everywhere: terms.everywhere, scope: None };
    if search.is_in(&terms.reason) || search.is_in(&terms.by) {
        return Err(EraseError::InReason);
    }
    let counted = follow.stage("records", Some(searched)).over(&store);
    let found = search.find(&*counted, searched)?;
    found.anyway.into_iter().for_each(|place| follow.note(&CareNote::GoesAnyway(place)));
    let mut vault: Vec<RunName> = found.erased.iter().filter_map(|place| place.run.clone()).collect();
    vault.sort();
    vault.dedup();
    let mut kept = Vec::new();
    for run in vault {
        if exact_of(&Trace::open(&store, &run)?).is_some() {
            kept.push(run);
        }
    }
    // The reason stays on record: a secret in it would outlive the one that is erased.
    let said = Value::array([Value::from(terms.reason.as_str()), Value::from(terms.by.as_str())]);
    let redactor = redactor_over(repo.redactor(None)?, &trace, &said)?;
    Ok(ErasePlan {
        vault: kept,
        run,
        at,
        path: place,
        record: id,
        reason: redactor.text(&terms.reason).0,
        by: redactor.text(&terms.by).0,
        erased: found.erased,
        although: found.although,
        exact: found.exact,
        searched,
    })
}

/// Reads places as a caller names them.
fn named(texts: &[String]) -> Result<Vec<Named>, EraseError> {
    let read = |text: &String| Named::parse(text).ok_or(EraseError::NotAPlace { text: text.clone() });
    texts.iter().map(read).collect()
}

/// Reads the record that an address means: one at a tick, or a refusal.
fn record_at(trace: &Trace, pos: &Position) -> Result<(RecordAt, Record), Error> {
    if let Position::Refused(number) = pos {
        return Ok((RecordAt::Refusal(*number), trace.refusal(*number)?));
    }
    let tick = pos.tick(trace)?;
    Ok((RecordAt::Tick(tick), trace.record(tick)?))
}

fn position_of(trace: &Trace, record: &Record) -> Result<u64, EraseError> {
    let found = trace.store().find(&record.id()).map_err(Error::from)?;
    found.ok_or_else(|| {
        let what = format!("record {} is in no index", record.id());
        EraseError::Failed(Error::IndexDiffers { what })
    })
}

impl ErasePlan {
    /// Returns the plan as the answer to a dry run.
    pub fn dry(self) -> Erased {
        Erased { plan: self, record: None, not_searched: 0 }
    }

    /// Commits the `erase` record, by the institution, and destroys the values. Does not sign the log.
    pub fn carry_out(self, repo: &Repo) -> Result<Erased, EraseError> {
        let record = sealed(repo, Some(&self.run), &self.content())?;
        let targets = targets_of(&self.erased);
        // Without the key nothing of the vault can be destroyed, and then nothing else is.
        let exact = self.exact.iter().map(|(place, at)| (place.run.as_ref().unwrap_or(&self.run), at));
        destroy_exact(repo, &self.vault, exact)?.map_err(EraseError::Vault)?;
        let position = repo.writer()?.clone().erase(&record, &targets).map_err(Error::from)?;
        let not_searched = position.saturating_sub(self.searched);
        Ok(Erased { plan: self, record: Some(record), not_searched })
    }

    /// Returns the content of the `erase` record.
    fn content(&self) -> Value {
        let about = [("record", Value::from(self.record)), ("run", Value::from(self.run.as_str()))];
        let about = Value::record(about.into_iter().chain(place_members(Some(self.at))));
        let exact = self.exact.iter().map(|(place, at)| {
            let run = place.run.as_ref().map(RunName::as_str);
            Value::record([("at", Value::from(&**at)), ("run", Value::from(run))])
        });
        let exact = (!self.exact.is_empty()).then(|| ("exact", Value::array(exact)));
        let members = [
            ("about", about),
            ("although", Value::array(self.although.iter().map(ErasePlace::to_value))),
            ("by", Value::from(self.by.as_str())),
            ("erased", Value::array(self.erased.iter().map(ErasePlace::to_value))),
            ("place", Value::from(self.path.as_str())),
            ("reason", Value::from(self.reason.as_str())),
            ("vault", Value::array(self.vault.iter().map(|run| Value::from(run.as_str())))),
        ];
        Value::record(members.into_iter().chain(exact))
    }
}

/// The members with which an `erase` record names a record of a run: its tick, and the number of a refusal.
fn place_members(at: Option<RecordAt>) -> impl Iterator<Item = (&'static str, Value)> {
    let refused = at.and_then(RecordAt::refused).map(|number| ("refused", Value::from(number)));
    [("tick", Value::from(at.and_then(RecordAt::tick)))].into_iter().chain(refused)
}

/// Destroys exact bytes in the vault: the files that runs were imported from, and values at places of runs.
pub(in crate::care) fn destroy_exact<'p>(
    repo: &Repo,
    files: &[RunName],
    places: impl IntoIterator<Item = (&'p RunName, &'p Arc<str>)>,
) -> Result<Result<(), VaultError>, Error> {
    let mut vault = repo.vault()?;
    let destroy = || {
        for run in files {
            match vault.destroy(run, EXACT) {
                Ok(()) | Err(VaultError::Nothing { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        places.into_iter().try_for_each(|(run, at)| vault.destroy_each(run, std::slice::from_ref(at)))
    };
    Ok(destroy())
}

/// Makes an `erase` record.
pub(in crate::care) fn sealed(repo: &Repo, run: Option<&RunName>, content: &Value) -> Result<Record, Error> {
    let mut environment = repo.environment();
    seal_by_institution(repo.info().id, Kind::Erase, run.cloned(), content, &mut *environment)
}

/// The fields of each record that are erased.
fn targets_of(places: &[ErasePlace]) -> Vec<(u64, Vec<Pointer>)> {
    let mut targets: Vec<(u64, Vec<Pointer>)> = Vec::new();
    for place in places {
        match targets.last_mut().filter(|(position, _)| *position == place.position) {
            Some((_, places)) => places.push(place.place.clone()),
            None => targets.push((place.position, vec![place.place.clone()])),
        }
    }
    targets
}

/// Erases fields of a run that the caller names all, in order of the log; nothing is looked for.
pub(crate) fn erase_places(
    repo: &Repo,
    run: &RunName,
    places: &[ErasePlace],
    reason: &str,
    by: &str,
) -> Result<(), Error> {
    let content = Value::record([
        ("about", Value::record([("run", Value::from(run.as_str()))])),
        ("by", Value::from(by)),
        ("erased", Value::array(places.iter().map(ErasePlace::to_value))),
        ("reason", Value::from(reason)),
    ]);
    let record = sealed(repo, Some(run), &content)?;
    repo.writer()?.clone().erase(&record, &targets_of(places))?;
    Ok(())
}

impl ErasePlace {
    /// Writes the place as it is put on record, and as documents have it.
    pub fn to_value(&self) -> Value {
        let members = [
            ("place", Value::from(self.place.as_str())),
            ("reason", Value::from(self.reason.as_str())),
            ("record", Value::from(self.record)),
            ("run", Value::from(self.run.as_ref().map(RunName::as_str))),
        ];
        Value::record(members.into_iter().chain(place_members(self.at)))
    }

    /// Writes the place as `--also` and `--although` take it.
    pub fn address(&self) -> String {
        let field = self.place.dotted();
        match (&self.run, self.at) {
            (Some(run), Some(at)) => format!("{run}@{at}:{field}"),
            _ => field,
        }
    }
}

/// A value that is looked for: the record that has it, and what it is there.
#[derive(Debug)]
struct Goal {
    record: Record,
    position: u64,
    target: Target,
}

/// The terms of a search.
#[derive(Debug, Default)]
struct Search {
    /// The values.
    goals: Vec<Goal>,
    /// The `run` records of the runs that have them.
    begins: Vec<Record>,
    /// Places that are erased as well.
    also: Vec<Named>,
    /// Places that stay.
    although: Vec<Named>,
    /// Whether copies are erased wherever they are.
    everywhere: bool,
    /// The positions of the records that are looked at; the whole log if it is missing.
    scope: Option<BTreeSet<u64>>,
}

/// The open fields that a walk takes to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Assumed {
    /// None of them.
    Nothing,
    /// Those that the caller did not name.
    Open,
    /// Those that the caller lets stay, too.
    All,
}

/// The fields that a walk found.
#[derive(Debug, Default)]
struct Fields {
    /// They are erased.
    erased: Vec<ErasePlace>,
    /// They stay, each under the names that the caller gave.
    although: Vec<(ErasePlace, Vec<String>)>,
    /// The caller named none of them.
    open: Vec<ErasePlace>,
    /// The places of the vault with the exact bytes of an erased field, and the field that names each.
    exact: Vec<(ErasePlace, Arc<str>)>,
    /// The names of fields outside of the bundle that stay.
    apart: BTreeSet<String>,
    /// The names that name a field.
    used: BTreeSet<String>,
    /// Those of them that name one that is erased.
    gone: BTreeSet<String>,
}

/// The fields of a search.
#[derive(Debug)]
struct Found {
    erased: Vec<ErasePlace>,
    although: Vec<ErasePlace>,
    exact: Vec<(ErasePlace, Arc<str>)>,
    /// The names with which the caller lets fields stay that all go with the value.
    anyway: Vec<String>,
}

impl Fields {
    /// Sorts the fields that are erased, and leaves them out of those that stay.
    fn in_order(mut self) -> Fields {
        // Fields at the beginning of a run were found after it.
        self.erased.sort_by(|a, b| key(a).cmp(&key(b)));
        self.erased.dedup_by(|a, b| key(a) == key(b));
        let gone: HashSet<_> = self.erased.iter().map(key).collect();
        self.although.retain(|(place, _)| !gone.contains(&key(place)));
        self
    }

    /// The open fields of this walk and of another, in order of the log, without those that go in any case.
    fn left_open(&self, others: &[ErasePlace]) -> Vec<ErasePlace> {
        let gone: HashSet<_> = self.erased.iter().map(key).collect();
        let open = self.open.iter().chain(others).filter(|place| !gone.contains(&key(place)));
        let mut open: Vec<ErasePlace> = open.cloned().collect();
        open.sort_by(|a, b| key(a).cmp(&key(b)));
        open.dedup_by(|a, b| key(a) == key(b));
        open
    }
}

fn key(place: &ErasePlace) -> (u64, &str) {
    (place.position, place.place.as_str())
}

impl Search {
    /// Whether a text contains one of the values, or a part of it.
    fn is_in(&self, text: &str) -> bool {
        let text = dendrer_object::json::to_string(&Value::from(text));
        Needles::of(self.goals.iter().flat_map(|goal| &goal.target.values)).find(&text).is_some()
    }

    /// Returns the fields of a log up to a size, or those that the caller has to name first.
    fn find(&self, store: &dyn dendrer_store::Store, size: u64) -> Result<Found, EraseError> {
        let walk = |assumed: Assumed| Lineage::new(self, assumed).read(store, size);
        let fields = walk(Assumed::Nothing)?;
        if !fields.left_open(&[]).is_empty() {
            return Err(EraseError::Open { open: fields.left_open(&walk(Assumed::Open)?.open) });
        }
        let is_idle = |named: &&Named| !fields.used.contains(&named.text);
        let idle: Vec<&Named> = self.also.iter().chain(&self.although).filter(is_idle).collect();
        if !idle.is_empty() {
            // An answer to what would be asked if another place went.
            let used = walk(Assumed::All)?.used;
            if let Some(named) = idle.iter().find(|named| !used.contains(&named.text)) {
                return Err(EraseError::Idle { text: named.text.clone() });
            }
        }
        let stay = fields.although.iter().flat_map(|(_, names)| names);
        let stay: BTreeSet<&String> = stay.chain(&fields.apart).collect();
        let is_gone = |named: &&Named| fields.gone.contains(&named.text) && !stay.contains(&named.text);
        let anyway = self.although.iter().filter(is_gone).map(|named| named.text.clone()).collect();
        let although = fields.although.into_iter().map(|(place, _)| place).collect();
        Ok(Found { erased: fields.erased, although, exact: fields.exact, anyway })
    }
}
