//! Removes checkpoints: what is left moves to a new run, and the values of the old runs are erased.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dendrer_kernel::replay::ReplayError;
use dendrer_object::record::{Author, Record};
use dendrer_object::{Pointer, RunName, Value};
use dendrer_store::prelude::*;
use dendrer_store::{RunSummary, Shared};

use super::index::{ChannelAt, StoredWrite, Thread};
use super::messages::Listed;
use super::{ChannelPut, CheckpointError, CheckpointKey, CheckpointPut, Checkpoints, WritePut, WritesPut};
use crate::address::RecordAt;
use crate::care::erase::{ErasePlace, EraseReason, erase_places, said_in};
use crate::error::Error;
use crate::run::casebook_name;
use crate::run::thread::{REMOVED, thread_of};
use crate::run::trace::{Trace, all_runs, read};
use crate::vault::VaultError;

/// The fields of a transition with what users wrote, or with a digest over it.
const ERASED: [&str; 6] =
    ["/delta", "/intent/metadata", "/intent/values", "/messages", "/state_root", "/redaction"];

impl Checkpoints {
    /// Removes a thread: every value of its runs is erased, and what is in the vault is destroyed. The findings of
    /// analyses in the casebook about those runs go too. Returns the records that link to them and stay: they may have values of the thread.
    pub fn delete_thread(&mut self, thread: &Arc<str>) -> Result<Vec<ErasePlace>, CheckpointError> {
        self.retain(thread, false, &mut |_, _| false)
    }

    /// As [`Checkpoints::delete_thread`], of the checkpoints that some runs of the framework made, from every thread.
    pub fn delete_made_by(&mut self, made_by: &[Arc<str>]) -> Result<Vec<ErasePlace>, CheckpointError> {
        let mut left = Vec::new();
        for thread in self.threads()? {
            let is_kept = &mut |_: &CheckpointKey, made: Option<&Arc<str>>| {
                made.is_none_or(|made| !made_by.contains(made))
            };
            left.extend(self.retain(&thread, true, is_kept)?);
        }
        Ok(left)
    }

    /// As [`Checkpoints::delete_thread`], of every checkpoint but some.
    pub fn keep_only(
        &mut self,
        thread: &Arc<str>,
        keys: &[CheckpointKey],
    ) -> Result<Vec<ErasePlace>, CheckpointError> {
        self.retain(thread, false, &mut |key, _| keys.contains(key))
    }

    /// Copies a thread: every checkpoint, with what it follows and the writes beside it.
    pub fn copy_thread(&mut self, from: &Arc<str>, to: &Arc<str>) -> Result<(), CheckpointError> {
        for copy in self.with(from, |all, thread| all.copies(thread, to, true, &mut |_, _| true))?? {
            self.put_copy(&copy)?;
        }
        Ok(())
    }

    /// Keeps some checkpoints, with the writes beside them; and those of checkpoints that are not there yet if `keeps_early`.
    fn retain(
        &mut self,
        id: &Arc<str>,
        keeps_early: bool,
        is_kept: &mut dyn FnMut(&CheckpointKey, Option<&Arc<str>>) -> bool,
    ) -> Result<Vec<ErasePlace>, CheckpointError> {
        let mut stays = self.erase_left(id)?;
        let Some((copies, old)) =
            self.with(id, |all, thread| all.kept_of(thread, keeps_early, is_kept))??
        else {
            return Ok(stays);
        };
        let marked = self.put_and_mark(id, &copies, &old);
        if marked.is_err() {
            // Read again from the record: what is not marked there is not removed.
            self.threads.remove(id);
        }
        marked?;
        stays.extend(self.erase_left(id)?);
        Ok(stays)
    }

    /// Reads what is kept of a thread, and forgets its runs: the copies, and the numbers of the runs; `None` if all is kept.
    fn kept_of(
        &self,
        thread: &mut Thread,
        keeps_early: bool,
        is_kept: &mut dyn FnMut(&CheckpointKey, Option<&Arc<str>>) -> bool,
    ) -> Result<Option<KeptCopies>, CheckpointError> {
        let mut kept: BTreeSet<(Arc<str>, Arc<str>)> = BTreeSet::new();
        for (place, stored) in thread.all() {
            let (namespace, id) = place.clone();
            let key = CheckpointKey { thread: Arc::clone(&thread.id), namespace, id };
            if is_kept(&key, stored.made_by.as_ref()) {
                kept.insert(place.clone());
            }
        }
        let has_early = thread
            .all_writes()
            .any(|((namespace, at), writes)| !writes.is_empty() && thread.stored(namespace, at).is_none());
        if thread.all().count() == kept.len() && (keeps_early || !has_early) {
            return Ok(None);
        }
        // Nothing is removed if what is in the vault could not be destroyed.
        self.vault.unlock()?;
        let copies = self.copies(thread, &Arc::clone(&thread.id), keeps_early, &mut |namespace, at| {
            kept.contains(&(Arc::clone(namespace), Arc::clone(at)))
        })?;
        let old: Vec<usize> = (0..thread.runs.len()).filter(|run| !thread.runs[*run].is_removed).collect();
        old.iter().for_each(|run| thread.forget_run(*run));
        Ok(Some((copies, old)))
    }

    fn put_and_mark(&mut self, id: &Arc<str>, copies: &[Copy], old: &[usize]) -> Result<(), CheckpointError> {
        // A kept file is there twice before the first is removed: an interruption loses nothing.
        for copy in copies {
            self.put_copy(copy)?;
        }
        // A fork can be written only while what it began with is there.
        for run in old {
            self.mark_removed(id, *run)?;
        }
        Ok(())
    }

    /// Erases what is left of the runs that were removed, also by a process that was interrupted. Returns what stays elsewhere.
    fn erase_left(&mut self, id: &Arc<str>) -> Result<Vec<ErasePlace>, CheckpointError> {
        let left = self.with(id, |_, thread| {
            let left = thread.runs.iter().enumerate().filter_map(|(at, run)| Some((at, run.left.clone()?)));
            left.collect::<Vec<_>>()
        })?;
        let store = self.repo.writer()?.clone();
        let mut found = Vec::new();
        for (run, places) in left {
            let name = self.name_of_run(id, run)?;
            found.push((run, places, fields_of(&store, &name)?, name));
        }
        let removed: Vec<RunName> =
            found.iter().filter(|(_, _, fields, _)| !fields.is_empty()).map(|one| one.3.clone()).collect();
        // Findings about the runs go before their values: an interrupted deletion finds them again.
        let (goes, stays) =
            if removed.is_empty() { Default::default() } else { made_from(&store, &removed)? };
        if !goes.is_empty() {
            erase_places(&self.repo, &removed[0], &goes, WHY, AGENT_WORDS)?;
        }
        for (run, places, fields, name) in found {
            match self.vault.destroy_each(&name, &places) {
                Ok(()) | Err(VaultError::Nothing { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            if !fields.is_empty() {
                erase_places(&self.repo, &name, &fields, WHY, AGENT_WORDS)?;
            }
            self.with(id, |_, thread| thread.runs[run].left = None)?;
        }
        Ok(stays)
    }

    /// Reads checkpoints and the writes beside them, in the order in which they were put.
    fn copies(
        &self,
        thread: &Thread,
        to: &Arc<str>,
        keeps_early: bool,
        is_meant: &mut dyn FnMut(&Arc<str>, &Arc<str>) -> bool,
    ) -> Result<Vec<Copy>, CheckpointError> {
        let mut copies: Vec<((usize, u64), Copy)> = Vec::new();
        for ((namespace, id), stored) in thread.all().filter(|((namespace, id), _)| is_meant(namespace, id)) {
            let edited = thread.edited(id);
            let [checkpoint, metadata] = self.own(thread, stored, &edited)?;
            let channels = self.channels(thread, namespace, stored, &edited)?.into_iter();
            let of = |(name, at, value): (&Arc<str>, &ChannelAt, _)| ChannelPut {
                name: Arc::clone(name),
                version: Arc::clone(&at.version),
                value: Some(value),
            };
            let put = CheckpointPut {
                thread: Arc::clone(to),
                namespace: Arc::clone(namespace),
                parent: stored.parent.clone(),
                id: Arc::clone(id),
                checkpoint,
                metadata,
                made_by: stored.made_by.clone(),
                channels: channels.map(of).collect(),
                may_fork: true,
                claim: None,
                noted: Vec::new(),
            };
            copies.push(((stored.run, stored.tick), Copy::Checkpoint(Box::new(put), None)));
        }
        for (place, writes) in thread.all_writes() {
            let is_kept = match thread.stored(&place.0, &place.1) {
                Some(_) => is_meant(&place.0, &place.1),
                None => keeps_early,
            };
            for write in writes.iter().filter(|_| is_kept) {
                let put = self.copy_of_write(thread, to, place, write)?;
                copies.push(((write.run, write.tick), Copy::Writes(put)));
            }
        }
        copies.sort_by_key(|(at, _)| *at);
        // Checkpoints of subgraphs go into the run of the root's.
        let mut roots: BTreeMap<usize, Arc<str>> = BTreeMap::new();
        for ((run, _), copy) in &mut copies {
            match copy {
                Copy::Checkpoint(put, _) if put.namespace.is_empty() => {
                    roots.insert(*run, Arc::clone(&put.id));
                }
                Copy::Checkpoint(_, root) => *root = roots.get(run).cloned(),
                Copy::Writes(_) => {}
            }
        }
        Ok(copies.into_iter().map(|(_, copy)| copy).collect())
    }

    fn copy_of_write(
        &self,
        thread: &Thread,
        to: &Arc<str>,
        (namespace, id): &(Arc<str>, Arc<str>),
        write: &StoredWrite,
    ) -> Result<WritesPut, CheckpointError> {
        let value = self.written(thread, write, &thread.edited(id))?;
        Ok(WritesPut {
            thread: Arc::clone(to),
            namespace: Arc::clone(namespace),
            id: Arc::clone(id),
            task: Arc::clone(&write.task),
            path: Arc::clone(&write.path),
            items: vec![WritePut { index: write.index, channel: Arc::clone(&write.channel), value }],
            replaces: false,
            claim: None,
            noted: Vec::new(),
        })
    }

    fn put_copy(&mut self, copy: &Copy) -> Result<(), CheckpointError> {
        match copy {
            Copy::Checkpoint(put, root) => self.put_again(put, root.as_deref()),
            Copy::Writes(put) => self.put_writes_again(put),
        }
    }

    fn name_of_run(&mut self, id: &Arc<str>, number: usize) -> Result<RunName, CheckpointError> {
        self.with(id, |_, thread| thread.runs[number].name.clone())
    }

    /// Says in a run that everything in it was removed.
    fn mark_removed(&mut self, id: &Arc<str>, number: usize) -> Result<(), CheckpointError> {
        let name = self.name_of_run(id, number)?;
        let mut recorder = match self.repo.recorder(&name) {
            // A value of it was erased: nothing can be added to the run.
            Err(Error::Replay(ReplayError::Erased { .. })) => return Ok(()),
            recorder => recorder?,
        };
        let about = Value::record([("all", Value::Bool(true))]);
        let intent =
            self.intent("observation.add", Value::object(), None, REMOVED, about, &Listed::default());
        recorder.propose(&intent)?;
        recorder.commit()?;
        Ok(())
    }
}

/// Lists the values that a run has.
fn fields_of(store: &Shared, name: &RunName) -> Result<Vec<ErasePlace>, Error> {
    let Some(summary) = store.run(name)? else { return Ok(Vec::new()) };
    let mut erased = Vec::new();
    each_own(store, &summary, &mut |record| {
        for field in record.body().fields() {
            let is_erased = ERASED.iter().any(|begins| field.pointer.as_str().starts_with(begins));
            if is_erased && record.body().text(field).is_some() {
                erased.push(place_in(store, name, &record, &field.pointer)?);
            }
        }
        Ok(())
    })?;
    Ok(erased)
}

/// Finds the records outside of some runs that were made from theirs, by their links: the findings of analyses in the casebook,
/// which go, and what others wrote, which stays.
fn made_from(store: &Shared, removed: &[RunName]) -> Result<(Vec<ErasePlace>, Vec<ErasePlace>), Error> {
    let mut ids = BTreeSet::new();
    let (of_thread, others): (Vec<_>, Vec<_>) =
        all_runs(store)?.into_iter().partition(|run| removed.contains(&run.name));
    for run in of_thread {
        ids.insert(read(store, run.begin)?.id());
        each_own(store, &run, &mut |record| {
            ids.insert(record.id());
            Ok(())
        })?;
    }
    // A run that began earlier may have taken something over from one that began later.
    let (mut goes, stays) = loop {
        let known = ids.len();
        let (mut goes, mut stays) = (Vec::new(), Vec::new());
        for run in &others {
            let begin = read(store, run.begin)?;
            let is_fork = run.parent.is_some_and(|parent| ids.contains(&parent));
            // A thread has links to nothing but itself.
            if thread_of(&begin).is_some() && !is_fork {
                continue;
            }
            let is_casebook = casebook_name::is_marked(&begin) && run.name.as_str() == casebook_name::NAME;
            each_own(store, run, &mut |record| {
                let origin = record.body().value("/origin").and_then(|origin| origin.as_str()?.parse().ok());
                let linked = record.header().links.iter().map(|link| link.hash);
                if !is_fork && !linked.chain(origin).any(|id| ids.contains(&id)) {
                    return Ok(());
                }
                ids.insert(record.id());
                let is_found = is_casebook && record.header().author == Author::Kernel;
                // The state of the casebook has names and places of findings, and no values.
                let said = said_in(&record).filter(|field| !(is_casebook && field.as_str() == "/delta"));
                for place in said {
                    let found = place_in(store, &run.name, &record, place)?;
                    if is_found { goes.push(found) } else { stays.push(found) }
                }
                Ok(())
            })?;
        }
        if ids.len() == known {
            break (goes, stays);
        }
    };
    goes.sort_by_key(|place| place.position);
    Ok((goes, stays))
}

/// Reads the records that a run owns, but for its beginning.
fn each_own(
    store: &Shared,
    run: &RunSummary,
    f: &mut dyn FnMut(Record) -> Result<(), Error>,
) -> Result<(), Error> {
    let trace = Trace::open(store, &run.name)?;
    trace.each_record(run.first_own_tick.unwrap_or(0).max(1), trace.tip(), f)
}

fn place_in(store: &Shared, run: &RunName, record: &Record, place: &Pointer) -> Result<ErasePlace, Error> {
    let what = || format!("record {} is in no index", record.id());
    Ok(ErasePlace {
        run: Some(run.clone()),
        at: record.header().tick.map(RecordAt::Tick),
        record: record.id(),
        position: store.find(&record.id())?.ok_or_else(|| Error::IndexDiffers { what: what() })?,
        place: place.clone(),
        reason: EraseReason::Asked,
    })
}

/// The reason of an erasure by a framework.
const WHY: &str = "the thread or checkpoint was deleted";

/// Who erases what a framework deletes.
const AGENT_WORDS: &str = "langgraph";

/// Copies of what is kept, and the numbers of the runs that they replace.
type KeptCopies = (Vec<Copy>, Vec<usize>);

/// A checkpoint or writes that are put once more.
enum Copy {
    /// With the last checkpoint of the root before it in its run, if it is of a subgraph.
    Checkpoint(Box<CheckpointPut>, Option<Arc<str>>),
    Writes(WritesPut),
}
