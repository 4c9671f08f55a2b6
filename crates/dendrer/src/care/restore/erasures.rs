//! Erasures of a store that is replaced, done again in the copy of an older backup.
//!
//! [`NewErasures::of`] reads the `erase` records that the backup does not have, and finds what they destroyed in the records that it
//! does have. [`NewErasures::carry_out`] commits new `erase` records to the copy and destroys the values there, with those of the
//! vault. Never signs, and never writes to the store or the backup.
//!
//! Rule: what one of these records destroyed in a record of the backup is destroyed in the copy before it is in its place; test
//! `erased_values_do_not_come_back_with_an_older_backup`.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use dendrer_kernel::replay::ReplayError;
use dendrer_object::record::{Field, Kind, Record};
use dendrer_object::text::escape;
use dendrer_object::{Code, Digest, Intent, Pointer, RunName, Timestamp, Value};
use dendrer_store::embedded::{Embedded, Options};
use dendrer_store::prelude::*;
use dendrer_store::{LogWriter, StoreError, TreeHead, WriterSecret};

use crate::address::RecordAt;
use crate::care::erase::{ErasePlace, EraseReason, destroy_exact, sealed};
use crate::error::Error;
use crate::repo::Repo;
use crate::repo::keys::log_of;
use crate::run::thread::{AGENT, REMOVED, exact_places, is_removal};
use crate::trust::{MemoryTrust, Trust};
use crate::vault::VaultError;

/// A value that was erased in the store that is replaced, and is erased again in the restored one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasedAgain {
    /// The run; `None` for a record of no run.
    pub run: Option<RunName>,
    /// The tick, or the refusal; `None` for all of a run, and for another record off the chain.
    pub at: Option<RecordAt>,
    /// The place; `None` for every value of a deleted thread of checkpoints.
    pub place: Option<Pointer>,
}

impl ErasedAgain {
    /// Names the value in a line: `r@1 state.card`.
    pub fn words(&self) -> String {
        let run = self.run.as_ref().map_or("(no run)", |run| run.as_str());
        match (self.at, &self.place) {
            (_, None) => format!("{run} (every checkpoint)"),
            (Some(at), Some(place)) => format!("{run}@{at} {}", escape(&place.dotted())),
            (None, Some(place)) => format!("{run} {}", escape(&place.dotted())),
        }
    }
}

/// Why a value was not erased again. Nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum ErasedAgainError {
    /// The vault of the backup has the value as well, and it could not be destroyed in the copy.
    #[error("the vault has an erased value as well, and it cannot be destroyed there: {0}")]
    Vault(#[source] VaultError),
    /// The copy cannot be read or written.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl ErasedAgainError {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            ErasedAgainError::Vault(error) => error.code(),
            ErasedAgainError::Failed(error) => error.code(),
        }
    }
}

impl From<StoreError> for ErasedAgainError {
    fn from(error: StoreError) -> ErasedAgainError {
        ErasedAgainError::Failed(error.into())
    }
}

/// The erasures that a store has and a backup does not, as far as they concern records of the backup.
#[derive(Debug, Default)]
pub(super) struct NewErasures {
    list: Vec<NewErasure>,
    /// The runs of deleted threads that are no deleted ones in the backup.
    removed: Vec<RunName>,
    /// Whether every record of the store was read.
    pub(super) is_whole: bool,
}

/// One of them.
#[derive(Debug)]
struct NewErasure {
    /// The id of the `erase` record, and its content.
    id: Digest,
    content: Value,
    run: Option<RunName>,
    /// The fields that the backup still has, in order of the log.
    fields: Vec<ReturningField>,
}

/// A field of a record of the backup that was erased since.
#[derive(Debug)]
struct ReturningField {
    position: u64,
    place: Pointer,
    /// The entry of the `erase` record.
    listed: Value,
    /// The places of the vault that the record names.
    vault: Vec<Arc<str>>,
}

impl NewErasures {
    /// Reads the erasures of a store that a backup does not have.
    pub(super) fn of(store: &Embedded, backup: &Embedded) -> Result<NewErasures, Error> {
        let mut positions = Vec::new();
        let read = store.entries(0..store.tree().size, &mut |position, entry| {
            positions.extend((entry.kind == Kind::Erase).then_some((position, entry.hash)));
            ControlFlow::Continue(())
        });
        let mut found =
            NewErasures { is_whole: read.is_ok() && store.trouble().is_none(), ..Self::default() };
        for (position, id) in positions {
            if backup.find(&id)?.is_some() {
                continue;
            }
            let record = store.get(position).ok().flatten();
            let Some(record) = record.filter(|record| record.body().value("/erased").is_some()) else {
                found.is_whole = false;
                continue;
            };
            found.add(store, backup, &record)?;
        }
        Ok(found)
    }

    fn add(&mut self, store: &Embedded, backup: &Embedded, record: &Record) -> Result<(), Error> {
        let content = record.content();
        let listed = content.get("erased").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut fields = Vec::new();
        for listed in listed.iter() {
            let text = |name: &str| listed.get(name).and_then(Value::as_str);
            let id = text("record").and_then(|id| id.parse::<Digest>().ok());
            let place = text("place").and_then(|place| place.parse::<Pointer>().ok());
            let (Some(id), Some(place)) = (id, place) else {
                self.is_whole = false;
                continue;
            };
            let Some(position) = backup.find(&id)? else { continue };
            let Some(target) = backup.get(position)? else { continue };
            let body = target.body();
            let has_value = |field: &&Field| place.contains(&field.pointer) && body.text(field).is_some();
            if body.fields().iter().any(|field| has_value(&field)) {
                let vault = exact_places(&target).map(|(_, at)| at).collect();
                fields.push(ReturningField { position, place, listed: listed.clone(), vault });
            }
        }
        if fields.is_empty() {
            return Ok(());
        }
        let run = record.header().run.clone();
        if content.get("place").is_none()
            && let Some(run) = &run
            && is_removed_since(store, backup, run)?
            && !self.removed.contains(run)
        {
            self.removed.push(run.clone());
        }
        fields.sort_by_key(|field| field.position);
        self.list.push(NewErasure { id: record.id(), content, run, fields });
        Ok(())
    }

    /// Whether the list is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Lists what is erased again: the place of each erasure, and each of its fields where the place is in no record of the backup.
    pub(super) fn places(&self) -> Vec<ErasedAgain> {
        let mut places: Vec<ErasedAgain> = Vec::new();
        for place in self.list.iter().flat_map(NewErasure::places) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }

    /// Erases the values again in a copy that was made of the backup, and returns its log. `replaced` is the log that has the
    /// erasures: the new records name it.
    pub(super) fn carry_out(
        &self,
        copy: &Path,
        replaced: TreeHead,
        trust: &dyn Trust,
    ) -> Result<TreeHead, ErasedAgainError> {
        let store = Embedded::open(copy, Options { index: false, ..Options::write() })?;
        // Without a key nothing is signed: that is done once the store is in its place.
        let keys = MemoryTrust::new();
        if let Some(key) = trust.vault_key(store.info().id).map_err(Error::from)? {
            keys.keep_vault_key(store.info().id, &key).map_err(Error::from)?;
        }
        let secret = trust.writer(&log_of(&store)?).map_err(Error::from)?;
        if let Some(secret) = &secret {
            keys.keep_writer(store.info().id, WriterSecret::clone(secret));
        }
        let repo = Repo::over(Box::new(store), Arc::new(keys))?;
        if secret.is_none() {
            // The copy is an older log then, which is not written to, and the values are gone.
            repo.writer()?.clone().set_writer(LogWriter::Unchecked);
        }
        let mut marks = BTreeMap::new();
        for run in &self.removed {
            marks.extend(mark_removed(&repo, run)?.map(|fields| (run.clone(), fields)));
        }
        for erasure in &self.list {
            let mark =
                erasure.run.as_ref().filter(|_| erasure.is_deletion()).and_then(|run| marks.remove(run));
            erasure.carry_out(&repo, replaced, mark.unwrap_or_default())?;
        }
        let tree = repo.writer()?.tree();
        repo.close()?;
        Ok(tree)
    }
}

impl NewErasure {
    fn places(&self) -> Vec<ErasedAgain> {
        let about = self.content.get("about");
        let member = |name: &str| about.and_then(|about| about.get(name)).cloned().unwrap_or(Value::Null);
        let run = member("run").as_str().and_then(|run| run.parse().ok());
        let place = self.content.get("place").and_then(Value::as_str).and_then(|place| place.parse().ok());
        let Some(place) = place else { return vec![ErasedAgain { run, at: None, place: None }] };
        let of_record = |field: &&ReturningField| field.listed.get("record") == Some(&member("record"));
        if self.fields.iter().any(|field| of_record(&field)) {
            let at = at_of(&member("tick"), &member("refused"));
            return vec![ErasedAgain { run, at, place: Some(place) }];
        }
        let of_field = |field: &ReturningField| {
            let member = |name: &str| field.listed.get(name).cloned().unwrap_or(Value::Null);
            let run = member("run").as_str().and_then(|run| run.parse().ok());
            let at = at_of(&member("tick"), &member("refused"));
            ErasedAgain { run, at, place: Some(field.place.clone()) }
        };
        self.fields.iter().map(of_field).collect()
    }

    /// Whether a thread of checkpoints was deleted: then every value of a run was erased, and none was named.
    fn is_deletion(&self) -> bool {
        self.content.get("place").is_none()
    }

    /// Erases again, with fields of the record that was made in the copy for it.
    fn carry_out(
        &self,
        repo: &Repo,
        replaced: TreeHead,
        made: Vec<ReturningField>,
    ) -> Result<(), ErasedAgainError> {
        self.destroy_in_vault(repo)?;
        let mut members = self.content.as_object().cloned().unwrap_or_default();
        members.remove("although");
        let fields = || self.fields.iter().chain(&made);
        members.set("erased", Value::array(fields().map(|field| field.listed.clone())));
        let log = [("root", Value::from(replaced.root)), ("size", Value::from(replaced.size))];
        let again = [("log", Value::record(log)), ("record", Value::from(self.id))];
        members.set("again", Value::record(again));
        let run = self.run.as_ref();
        let record = sealed(repo, run, &Value::Object(members))?;
        let mut targets: Vec<(u64, Vec<Pointer>)> = Vec::new();
        for field in fields() {
            match targets.last_mut().filter(|(position, _)| *position == field.position) {
                Some((_, places)) => places.push(field.place.clone()),
                None => targets.push((field.position, vec![field.place.clone()])),
            }
        }
        repo.writer()?.clone().erase(&record, &targets)?;
        Ok(())
    }

    /// Destroys what the vault has: files of imported runs, exact bytes of puts and writes, and the values of a deleted thread.
    fn destroy_in_vault(&self, repo: &Repo) -> Result<(), ErasedAgainError> {
        let listed = self.content.get("vault").and_then(Value::as_array).cloned().unwrap_or_default();
        let files: Vec<RunName> = listed.iter().filter_map(|run| run.as_str()?.parse().ok()).collect();
        let exact = self.content.get("exact").and_then(Value::as_array);
        let exact = exact.into_iter().flat_map(|list| list.iter());
        let mut places: Vec<(RunName, Arc<str>)> = exact
            .filter_map(|one| {
                let text = |name: &str| one.get(name).and_then(Value::as_str);
                Some((text("run")?.parse().ok()?, text("at")?.into()))
            })
            .collect();
        if let Some(run) = self.run.as_ref().filter(|_| self.is_deletion()) {
            let of_run = self.fields.iter().flat_map(|field| &field.vault);
            places.extend(of_run.map(|at| (run.clone(), Arc::clone(at))));
        }
        places.sort();
        places.dedup();
        let places = places.iter().map(|(run, at)| (run, at));
        destroy_exact(repo, &files, places)?.map_err(ErasedAgainError::Vault)
    }
}

/// Reads the place of a record in its run.
fn at_of(tick: &Value, refused: &Value) -> Option<RecordAt> {
    tick.as_u64().map(RecordAt::Tick).or_else(|| refused.as_u64().map(RecordAt::Refusal))
}

/// Whether a run is one of a deleted thread in a store, and not in a backup that has it.
fn is_removed_since(store: &Embedded, backup: &Embedded, run: &RunName) -> Result<bool, Error> {
    let Some(summary) = store.run(run)? else { return Ok(false) };
    let removal = store.get(summary.head_position)?.filter(is_removal);
    let is_new = |removal: Record| Ok(backup.run(run)?.is_some() && backup.find(&removal.id())?.is_none());
    removal.map_or(Ok(false), is_new)
}

/// Records in a run of the copy that everything in it was removed. Returns the fields of the new record that are digests over its
/// values; `None` if its state is not known any more, so that nothing can be added to it.
fn mark_removed(repo: &Repo, run: &RunName) -> Result<Option<Vec<ReturningField>>, Error> {
    let mut recorder = match repo.recorder(run) {
        Err(Error::Replay(ReplayError::Erased { .. })) => return Ok(None),
        recorder => recorder?,
    };
    let about = Value::record([("all", Value::Bool(true))]);
    let intent = Intent::new("observation.add".parse().expect("a type of the ontology"), AGENT)
        .by_runtime()
        .with("intent", Value::record([(REMOVED, about)]));
    recorder.propose(&intent)?;
    let mut fields = Vec::new();
    for record in recorder.commit()? {
        let position = repo.writer()?.find(&record.id())?;
        let place = Pointer::of(["state_root"]);
        let at = record.header().tick.map(RecordAt::Tick);
        let (run, reason) = (Some(run.clone()), EraseReason::Digest);
        let Some(position) = position.filter(|_| record.body().value(place.as_str()).is_some()) else {
            continue;
        };
        let listed = ErasePlace { run, at, record: record.id(), position, place: place.clone(), reason };
        fields.push(ReturningField { position, place, listed: listed.to_value(), vault: Vec::new() });
    }
    Ok(Some(fields))
}

/// The date of a backup: the time of its newest record.
pub(super) fn date_of(backup: &Embedded) -> Result<Timestamp, Error> {
    let last = backup.tree().size.checked_sub(1).map(|last| backup.get(last)).transpose()?.flatten();
    Ok(last.map_or(Timestamp::from_ms(0), |record| record.header().ts))
}
