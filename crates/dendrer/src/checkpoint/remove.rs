//! Removes checkpoints: what is left moves to a new run, and the values of the old runs are erased.

use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_object::{RunName, Value};
use dendrer_store::prelude::*;

use super::index::{ChannelAt, StoredWrite, Thread};
use super::messages::Listed;
use super::{ChannelPut, CheckpointError, CheckpointKey, CheckpointPut, Checkpoints, WritePut, WritesPut};
use crate::address::RecordAt;
use crate::care::erase::{ErasePlace, EraseReason, erase_places};
use crate::error::Error;
use crate::run::thread::REMOVED;
use crate::run::trace::Trace;
use crate::vault::VaultError;

/// The fields of a transition with what users wrote, or with a digest over it.
const ERASED: [&str; 6] =
    ["/delta", "/intent/metadata", "/intent/values", "/messages", "/state_root", "/redaction"];

impl Checkpoints {
    /// Removes a thread: every value of its runs is erased, and what is in the vault is destroyed.
    pub fn delete_thread(&mut self, thread: &Arc<str>) -> Result<(), CheckpointError> {
        self.retain(thread, false, &mut |_, _| false)
    }

    /// Removes the checkpoints that some runs of the framework made, from every thread.
    pub fn delete_made_by(&mut self, made_by: &[Arc<str>]) -> Result<(), CheckpointError> {
        for thread in self.threads()? {
            self.retain(&thread, true, &mut |_, made| made.is_none_or(|made| !made_by.contains(made)))?;
        }
        Ok(())
    }

    /// Removes every checkpoint of a thread but some.
    pub fn keep_only(&mut self, thread: &Arc<str>, keys: &[CheckpointKey]) -> Result<(), CheckpointError> {
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
    ) -> Result<(), CheckpointError> {
        self.erase_left(id)?;
        let Some((copies, old)) =
            self.with(id, |all, thread| all.kept_of(thread, keeps_early, is_kept))??
        else {
            return Ok(());
        };
        let marked = self.put_and_mark(id, &copies, &old);
        if marked.is_err() {
            // Read again from the record: what is not marked there is not removed.
            self.threads.remove(id);
        }
        marked?;
        self.erase_left(id)
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

    /// Erases what is left of the runs that were removed, also by a process that was interrupted.
    fn erase_left(&mut self, id: &Arc<str>) -> Result<(), CheckpointError> {
        let left = self.with(id, |_, thread| {
            let left = thread.runs.iter().enumerate().filter_map(|(at, run)| Some((at, run.left.clone()?)));
            left.collect::<Vec<_>>()
        })?;
        for (run, places) in left {
            self.erase_run(id, run, &places)?;
            self.with(id, |_, thread| thread.runs[run].left = None)?;
        }
        Ok(())
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
            copies.push(((stored.run, stored.tick), Copy::Checkpoint(Box::new(put))));
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
            Copy::Checkpoint(put) => self.put_again(put),
            Copy::Writes(put) => self.put_writes_again(put),
        }
    }

    fn name_of_run(&mut self, id: &Arc<str>, number: usize) -> Result<RunName, CheckpointError> {
        self.with(id, |_, thread| thread.runs[number].name.clone())
    }

    /// Says in a run that everything in it was removed.
    fn mark_removed(&mut self, id: &Arc<str>, number: usize) -> Result<(), CheckpointError> {
        let name = self.name_of_run(id, number)?;
        let mut recorder = self.repo.recorder(&name)?;
        let about = Value::record([("all", Value::Bool(true))]);
        let intent =
            self.intent("observation.add", Value::object(), None, REMOVED, about, &Listed::default());
        recorder.propose(&intent)?;
        recorder.commit()?;
        Ok(())
    }

    /// Erases the values of a run, and destroys what the vault has of it.
    fn erase_run(
        &mut self,
        id: &Arc<str>,
        number: usize,
        places: &[Arc<str>],
    ) -> Result<(), CheckpointError> {
        let name = self.name_of_run(id, number)?;
        let store = self.repo.writer()?.clone();
        let trace = Trace::open(&store, &name)?;
        let first = store.run(&name)?.and_then(|summary| summary.first_own_tick).unwrap_or(0);
        let mut erased = Vec::new();
        let mut found = Vec::new();
        trace.each_record(first.max(1), trace.tip(), &mut |record| {
            found.push(record);
            Ok(())
        })?;
        for record in &found {
            let position = store.find(&record.id())?.ok_or_else(|| Error::IndexDiffers {
                what: format!("record {} is in no index", record.id()),
            })?;
            for field in record.body().fields() {
                let is_erased = ERASED.iter().any(|begins| field.pointer.as_str().starts_with(begins));
                if is_erased && record.body().text(field).is_some() {
                    erased.push(ErasePlace {
                        run: Some(name.clone()),
                        at: record.header().tick.map(RecordAt::Tick),
                        record: record.id(),
                        position,
                        place: field.pointer.clone(),
                        reason: EraseReason::Asked,
                    });
                }
            }
        }
        match self.vault.destroy_each(&name, places) {
            Ok(()) | Err(VaultError::Nothing { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        if erased.is_empty() {
            return Ok(());
        }
        erase_places(&self.repo, &name, &erased, "the thread or checkpoint was deleted", AGENT_WORDS)?;
        Ok(())
    }
}

/// Who erases what a framework deletes.
const AGENT_WORDS: &str = "langgraph";

/// Copies of what is kept, and the numbers of the runs that they replace.
type KeptCopies = (Vec<Copy>, Vec<usize>);

/// A checkpoint or writes that are put once more.
enum Copy {
    Checkpoint(Box<CheckpointPut>),
    Writes(WritesPut),
}
