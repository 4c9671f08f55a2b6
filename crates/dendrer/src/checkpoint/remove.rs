//! Removes checkpoints: what is left moves to a new run, and the values of the old runs are erased.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_object::{RunName, Value};
use dendrer_store::prelude::*;

use super::index::{REMOVED, Thread};
use super::{ChannelPut, CheckpointError, CheckpointKey, CheckpointPut, Checkpoints, WritePut, WritesPut};
use crate::care::erase::{ErasePlace, EraseReason, erase_places};
use crate::error::Error;
use crate::trace::Trace;
use crate::vault::VaultError;

/// The fields of a transition with what users wrote, or with a digest over it.
const ERASED: [&str; 5] = ["/delta", "/intent/metadata", "/intent/values", "/state_root", "/redaction"];

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
        let found = self.take(from)?;
        let copies = self.copies(&found, to, true, &mut |_, _| true);
        self.keep(found);
        for copy in copies? {
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
        let mut thread = self.take(id)?;
        let all: Vec<(CheckpointKey, Option<Arc<str>>)> = thread
            .all()
            .map(|((namespace, at), stored)| {
                let key = CheckpointKey {
                    thread: Arc::clone(id),
                    namespace: Arc::clone(namespace),
                    id: Arc::clone(at),
                };
                (key, stored.made_by.clone())
            })
            .collect();
        let kept: BTreeSet<(Arc<str>, Arc<str>)> = all
            .iter()
            .filter(|(key, made)| is_kept(key, made.as_ref()))
            .map(|(key, _)| (Arc::clone(&key.namespace), Arc::clone(&key.id)))
            .collect();
        let has_early = thread
            .all_writes()
            .any(|((namespace, at), writes)| !writes.is_empty() && thread.stored(namespace, at).is_none());
        if all.len() == kept.len() && (keeps_early || !has_early) {
            self.keep(thread);
            return Ok(());
        }
        // Nothing is removed where what is in the vault could not be destroyed.
        if let Err(error) = self.vault.unlock() {
            self.keep(thread);
            return Err(error.into());
        }
        let copies = self.copies(&thread, id, keeps_early, &mut |namespace, at| {
            kept.contains(&(Arc::clone(namespace), Arc::clone(at)))
        });
        let copies = match copies {
            Ok(copies) => copies,
            Err(error) => {
                self.keep(thread);
                return Err(error);
            }
        };
        let old: Vec<usize> = (0..thread.runs.len()).filter(|run| !thread.runs[*run].is_removed).collect();
        for run in &old {
            thread.forget_run(*run);
        }
        self.keep(thread);
        let marked = self.put_and_mark(id, &copies, &old);
        if marked.is_err() {
            // Read again from the record: what is not marked there is not removed.
            self.threads.remove(id);
        }
        marked?;
        self.erase_left(id)
    }

    fn put_and_mark(&mut self, id: &Arc<str>, copies: &[Copy], old: &[usize]) -> Result<(), CheckpointError> {
        // What is kept is there twice before the first is removed: an interruption loses nothing.
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
        let thread = self.take(id)?;
        let left: Vec<_> =
            (0..thread.runs.len()).filter_map(|run| Some((run, thread.runs[run].left.clone()?))).collect();
        self.keep(thread);
        for (run, places) in left {
            self.erase_run(id, run, &places)?;
            let mut thread = self.take(id)?;
            thread.runs[run].left = None;
            self.keep(thread);
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
            let edited = |why: String| CheckpointError::Edited {
                thread: Arc::clone(&thread.id),
                id: Arc::clone(id),
                why,
            };
            let [checkpoint, metadata] = self.own(thread, stored, &edited)?;
            let mut channels = Vec::new();
            let mut opened = super::Opened::default();
            for (name, at) in stored.channels.iter() {
                let value = Some(self.exact(thread, namespace, name, at, &mut opened, &edited)?);
                channels.push(ChannelPut { name: Arc::clone(name), version: Arc::clone(&at.version), value });
            }
            let put = CheckpointPut {
                thread: Arc::clone(to),
                namespace: Arc::clone(namespace),
                parent: stored.parent.clone(),
                id: Arc::clone(id),
                checkpoint,
                metadata,
                made_by: stored.made_by.clone(),
                channels,
                may_fork: true,
                claim: None,
            };
            copies.push(((stored.run, stored.tick), Copy::Checkpoint(Box::new(put))));
        }
        for ((namespace, id), writes) in thread.all_writes() {
            let is_kept = match thread.stored(namespace, id) {
                Some(_) => is_meant(namespace, id),
                None => keeps_early,
            };
            if !is_kept {
                continue;
            }
            for write in writes {
                let edited = |why: String| CheckpointError::Edited {
                    thread: Arc::clone(&thread.id),
                    id: Arc::clone(id),
                    why,
                };
                let value = self.written(thread, write, &edited)?;
                let item = WritePut { index: write.index, channel: Arc::clone(&write.channel), value };
                let put = WritesPut {
                    thread: Arc::clone(to),
                    namespace: Arc::clone(namespace),
                    id: Arc::clone(id),
                    task: Arc::clone(&write.task),
                    path: Arc::clone(&write.path),
                    items: vec![item],
                    replaces: false,
                    claim: None,
                };
                copies.push(((write.run, write.tick), Copy::Writes(put)));
            }
        }
        copies.sort_by_key(|(at, _)| *at);
        Ok(copies.into_iter().map(|(_, copy)| copy).collect())
    }

    fn put_copy(&mut self, copy: &Copy) -> Result<(), CheckpointError> {
        match copy {
            Copy::Checkpoint(put) => self.put(put),
            Copy::Writes(put) => self.put_writes(put),
        }
    }

    fn name_of_run(&mut self, id: &Arc<str>, number: usize) -> Result<RunName, CheckpointError> {
        let thread = self.take(id)?;
        let name = thread.runs[number].name.clone();
        self.keep(thread);
        Ok(name)
    }

    /// Says in a run that everything in it was removed.
    fn mark_removed(&mut self, id: &Arc<str>, number: usize) -> Result<(), CheckpointError> {
        let name = self.name_of_run(id, number)?;
        let mut recorder = self.repo.recorder(&name)?;
        let about = Value::record([("all", Value::Bool(true))]);
        let intent = self.intent("observation.add", Value::object(), None, REMOVED, about);
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
        let mut found: Vec<(u64, dendrer_object::Record)> = Vec::new();
        trace.for_each(first.max(1), trace.tip(), &mut |tick, record| {
            found.push((tick, record.clone()));
            ControlFlow::Continue(())
        })?;
        for (tick, record) in &found {
            let position = store.find(&record.id())?.ok_or_else(|| Error::IndexDiffers {
                what: format!("record {} is in no index", record.id()),
            })?;
            for field in record.body().fields() {
                let is_erased = ERASED.iter().any(|begins| field.pointer.as_str().starts_with(begins));
                if is_erased && record.body().text(field).is_some() {
                    erased.push(ErasePlace {
                        run: Some(name.clone()),
                        tick: Some(*tick),
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

/// A checkpoint or writes that are put once more.
enum Copy {
    Checkpoint(Box<CheckpointPut>),
    Writes(WritesPut),
}
