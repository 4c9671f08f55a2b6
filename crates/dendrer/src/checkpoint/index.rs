//! The index of a thread: its runs, and the record of each checkpoint and of each write.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_object::delta::{Action, Op};
use dendrer_object::name::NAME_SIZE_MAX;
use dendrer_object::record::Record;
use dendrer_object::{Digest, Intent, RunName, Value, tag};
use dendrer_store::RunSummary;
use dendrer_store::prelude::*;

use super::messages::MessageIndex;
use super::place_of;
use super::{CheckpointError, CheckpointKey, NAMED_BY_DIGEST, TypedBytes};
use crate::error::Error;
use crate::record::recorder::Recorder;
use crate::repo::Repo;
use crate::repo::new_run::made_name;
use crate::run::thread::{CHECKPOINT, CLAIM, PLACES, REMOVED, TASKS, WRITES, is_of_thread, thread_of};
use crate::run::trace::Trace;
use crate::run::trace::read;
use crate::vault::VaultRef;

/// A checkpoint in the record.
#[derive(Debug, Clone)]
pub(super) struct Stored {
    /// Its run, by number.
    pub(super) run: usize,
    pub(super) tick: u64,
    pub(super) record: Digest,
    pub(super) parent: Option<Arc<str>>,
    /// The place of its own bytes: the checkpoint, followed by the metadata.
    pub(super) at: Arc<str>,
    pub(super) exact: VaultRef,
    pub(super) len: usize,
    pub(super) metadata_len: usize,
    pub(super) tags: [Arc<str>; 2],
    pub(super) made_by: Option<Arc<str>>,
    /// The contents of its channels.
    pub(super) channels: Arc<BTreeMap<Arc<str>, ChannelAt>>,
}

/// The content of a channel in the record: a head, followed by the segments. A list that grows has the same segments and more.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ChannelAt {
    pub(super) version: Arc<str>,
    pub(super) tag: Arc<str>,
    pub(super) head: Arc<[u8]>,
    pub(super) segments: Arc<[Segment]>,
    /// The place of the vault of the checkpoint that changed it last.
    pub(super) key: Arc<str>,
}

/// A part of what a channel holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Segment {
    /// The run whose vault has it, by number.
    pub(super) run: usize,
    pub(super) at: Arc<str>,
    pub(super) exact: VaultRef,
    pub(super) from: usize,
    pub(super) len: usize,
    /// How often it was joined with others.
    pub(super) level: u64,
}

/// A write in the record.
#[derive(Debug, Clone)]
pub(super) struct StoredWrite {
    pub(super) run: usize,
    pub(super) tick: u64,
    pub(super) task: Arc<str>,
    pub(super) path: Arc<str>,
    pub(super) index: i64,
    pub(super) channel: Arc<str>,
    pub(super) tag: Arc<str>,
    pub(super) at: Arc<str>,
    pub(super) exact: VaultRef,
    pub(super) from: usize,
    pub(super) len: usize,
}

/// A run of a thread.
#[derive(Debug)]
pub(super) struct ThreadRun {
    pub(super) name: RunName,
    /// The run and the tick that it was forked from, by number.
    pub(super) parent: Option<(usize, u64)>,
    /// Up to which tick it was read.
    pub(super) upto: u64,
    pub(super) recorder: Option<Recorder>,
    /// Whether everything in it was removed: nothing is put into it.
    pub(super) is_removed: bool,
    /// Whether the values of a put or a write can be read; `None` before the first one.
    is_open: Option<bool>,
    /// The places of the vault of a run that was removed, until this process knows that they are all destroyed and that the values
    /// of the record are erased. The process that removed it may have been interrupted.
    pub(super) left: Option<Vec<Arc<str>>>,
    /// The place in the vault of the bytes that each place of the state shows.
    pub(super) shown: BTreeMap<(Arc<str>, Arc<str>), Arc<str>>,
}

/// Which checkpoint of a thread: its namespace and its id.
type Place = (Arc<str>, Arc<str>);

/// A run, by number, up to a tick.
pub(super) type Line = (usize, u64);

/// A place of the vault, and what is there.
type Held = (Arc<str>, TypedBytes);

/// A thread.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) id: Arc<str>,
    /// Its text as its runs have it.
    shown: String,
    base: RunName,
    pub(super) runs: Vec<ThreadRun>,
    /// The number that the next run's name ends with; 1 for the first run.
    pub(super) next: u64,
    /// The number of the next run that may be of this thread by the names that forks had before they were made with a `+`.
    old: u64,
    stored: BTreeMap<Place, Stored>,
    /// The checkpoints that follow each one, also those that were removed since.
    followers: BTreeMap<Place, Vec<Arc<str>>>,
    writes: BTreeMap<Place, Vec<StoredWrite>>,
    /// The checkpoints that a deletion took, also those that were never put and of which it took the writes.
    deleted: BTreeSet<Place>,
    pub(super) claim: Option<Arc<str>>,
    /// The size of the log up to which it was read.
    pub(super) seen: u64,
    /// The run that this process used last, by number.
    pub(super) active: Option<usize>,
    /// The newest content of each channel, so that its growth is found and read without the vault.
    held: BTreeMap<Place, Held>,
    /// The messages of its runs.
    pub(super) messages: MessageIndex,
}

impl ThreadRun {
    /// A run that was not read yet.
    pub(super) fn new(name: RunName, parent: Option<(usize, u64)>) -> ThreadRun {
        ThreadRun {
            name,
            parent,
            upto: parent.map_or(0, |(_, tick)| tick),
            recorder: None,
            is_removed: false,
            is_open: None,
            left: None,
            shown: BTreeMap::new(),
        }
    }
}

impl Thread {
    pub(super) fn new(id: Arc<str>, base: RunName, shown: String) -> Thread {
        Thread {
            id,
            shown,
            base,
            runs: Vec::new(),
            next: 1,
            old: 2,
            stored: BTreeMap::new(),
            followers: BTreeMap::new(),
            writes: BTreeMap::new(),
            deleted: BTreeSet::new(),
            claim: None,
            seen: 0,
            active: None,
            held: BTreeMap::new(),
            messages: MessageIndex::default(),
        }
    }

    /// The name of the next run of this thread.
    pub(super) fn next_name(&self) -> RunName {
        match self.next {
            1 => self.base.clone(),
            number => made_name(&self.base_for(number), number).parse().expect("a name with a number"),
        }
    }

    /// The name that is numbered: one that the number would cut is replaced by its digest.
    fn base_for(&self, number: u64) -> String {
        if self.base.as_str().len() + number.to_string().len() < NAME_SIZE_MAX {
            return self.base.to_string();
        }
        format!("{NAMED_BY_DIGEST}{}", &Digest::of(self.base.as_str().as_bytes()).hex()[..16])
    }

    /// The next run that may be one of this thread: its own name, then the names that forks had before they were made with a
    /// `+`, then those.
    fn next_run(&mut self, store: &dendrer_store::Shared) -> Result<Option<(RunName, RunSummary)>, Error> {
        if self.next > 1 {
            let number = self.old;
            let base = match self.base.as_str().len() + number.to_string().len() < NAME_SIZE_MAX {
                true => self.base.to_string(),
                false => self.base_for(number),
            };
            if let Ok(name) = format!("{base}-{number}").parse::<RunName>()
                && let Some(summary) = store.run(&name)?
            {
                self.old += 1;
                return Ok(Some((name, summary)));
            }
        }
        let name = self.next_name();
        let Some(summary) = store.run(&name)? else { return Ok(None) };
        self.next += 1;
        Ok(Some((name, summary)))
    }

    /// Reads on what was committed meanwhile, by this process too. The store is fresh.
    pub(super) fn catch_up(&mut self, repo: &Repo) -> Result<(), Error> {
        let store = repo.writer()?;
        let size = store.tree().size;
        if size == self.seen {
            return Ok(());
        }
        self.read_on(store)?;
        self.seen = size;
        Ok(())
    }

    fn read_on(&mut self, store: &dendrer_store::Shared) -> Result<(), Error> {
        for at in 0..self.runs.len() {
            self.read_run(store, at)?;
        }
        loop {
            let Some((name, summary)) = self.next_run(store)? else { return Ok(()) };
            let begin = read(store, summary.begin)?;
            let parent = match &summary.parent {
                None if thread_of(&begin).as_deref() == Some(&*self.shown) => None,
                // The name is that of a run of another thread, or of no thread.
                None => continue,
                Some(id) => match self.forked_from(store, id)? {
                    Some(parent) => Some(parent),
                    None => continue,
                },
            };
            self.runs.push(ThreadRun::new(name, parent));
            self.read_run(store, self.runs.len() - 1)?;
        }
    }

    /// The run of this thread that a fork began in, by the record that it began behind.
    fn forked_from(&self, store: &dendrer_store::Shared, id: &Digest) -> Result<Option<(usize, u64)>, Error> {
        let Some(position) = store.find(id)? else { return Ok(None) };
        let record = read(store, position)?;
        let header = record.header();
        let at = self.runs.iter().position(|run| Some(&run.name) == header.run.as_ref());
        Ok(at.zip(header.tick))
    }

    fn read_run(&mut self, store: &dendrer_store::Shared, at: usize) -> Result<(), Error> {
        let tip = store.run(&self.runs[at].name)?.and_then(|summary| summary.head.tick).unwrap_or(0);
        let from = self.runs[at].upto + 1;
        if tip < from {
            return Ok(());
        }
        let trace = Trace::open(store, &self.runs[at].name)?;
        trace.for_each(from, tip, &mut |tick, record| {
            self.apply(at, tick, &record);
            ControlFlow::Continue(())
        })?;
        self.runs[at].upto = tip;
        // Without its state a run takes no mark that it was removed: it is removed once no value of it is left.
        if self.runs[at].is_open == Some(false) && !self.runs[at].is_removed {
            self.forget_run(at);
        }
        Ok(())
    }

    /// Takes in a record of a run of this thread. Records of others, and erased ones, are passed over.
    pub(super) fn apply(&mut self, run: usize, tick: u64, record: &Record) {
        self.runs[run].upto = self.runs[run].upto.max(tick);
        let body = record.body();
        let values = ["/intent/metadata", "/intent/values"];
        if is_of_thread(record) {
            let mut shown = body.fields().iter().filter(|field| values.contains(&field.pointer.as_str()));
            let is_open = shown.next().map(|field| body.text(field).is_some());
            self.runs[run].is_open = is_open.max(self.runs[run].is_open);
            self.apply_members(run, tick, record, &|place| body.value(place));
        }
    }

    /// Takes in a record that this process made of an intent, of which the saver's own members are on record as they are.
    pub(super) fn apply_own(&mut self, run: usize, tick: u64, record: &Record, intent: &Intent) {
        self.runs[run].upto = self.runs[run].upto.max(tick);
        self.runs[run].is_open = Some(true);
        let shown = intent.member("intent");
        let value = |place: &str| shown?.get(place.strip_prefix("/intent/")?).cloned();
        let is_kept = |name: &&str| {
            let place = format!("/intent/{name}");
            value(&place) == record.body().value(&place)
        };
        debug_assert!(PLACES.iter().all(is_kept), "tick {tick}");
        self.apply_members(run, tick, record, &value);
    }

    fn apply_members(
        &mut self,
        run: usize,
        tick: u64,
        record: &Record,
        value: &dyn Fn(&str) -> Option<Value>,
    ) {
        let member = |name: &str| value(&format!("/intent/{name}"));
        if let Some(about) = member(CHECKPOINT) {
            let _ = self.apply_checkpoint(run, tick, record.id(), &about);
            let _ = self.apply_messages(run, tick, record, &about);
        } else if let Some(about) = member(WRITES) {
            let _ = self.apply_writes(run, tick, &about);
            let _ = self.apply_messages(run, tick, record, &about);
        } else if let Some(about) = member(REMOVED) {
            self.apply_removed(run, &about);
        } else if let Some(claim) = member(CLAIM) {
            self.claim = claim.as_str().map(Arc::from);
        }
    }

    fn apply_checkpoint(&mut self, run: usize, tick: u64, record: Digest, about: &Value) -> Option<()> {
        let (namespace, id) = (text(about.get("ns"))?, text(about.get("id"))?);
        let parent = text(about.get("parent"));
        let exact = about.get("exact")?;
        let (place, whole) = (text(exact.get("at"))?, VaultRef::from_value(exact.get("exact")?)?);
        let known = parent.as_ref().and_then(|parent| self.stored(&namespace, parent));
        let mut channels = known.map(|stored| Arc::clone(&stored.channels)).unwrap_or_default();
        let changed = about.get("channels").and_then(Value::as_object);
        let gone = about.get("gone").and_then(Value::as_array);
        if changed.is_some_and(|changed| !changed.is_empty()) || gone.is_some() {
            let channels = Arc::make_mut(&mut channels);
            for (name, at) in changed.into_iter().flat_map(|changed| changed.iter()) {
                let name: Arc<str> = tag::user_name(name).into();
                let segment =
                    Segment { run, at: Arc::clone(&place), exact: whole, from: 0, len: 0, level: 0 };
                let found = channel_at(at, channels.get(&name), segment)?;
                self.runs[run].shown.insert((Arc::clone(&namespace), Arc::clone(&name)), Arc::clone(&place));
                channels.insert(name, found);
            }
            for name in gone.into_iter().flat_map(|gone| gone.iter()) {
                let name: Arc<str> = name.as_str()?.into();
                channels.remove(&name);
                self.runs[run].shown.remove(&(Arc::clone(&namespace), name));
            }
        }
        let stored = Stored {
            run,
            tick,
            record,
            parent,
            at: Arc::clone(&place),
            exact: whole,
            len: usize::try_from(exact.get("len")?.as_u64()?).ok()?,
            metadata_len: usize::try_from(exact.get("metadata_len")?.as_u64()?).ok()?,
            tags: [text(exact.get("type"))?, text(exact.get("metadata_type"))?],
            made_by: text(about.get("run_id")),
            channels,
        };
        if let Some(parent) = &stored.parent {
            let followers = self.followers.entry((Arc::clone(&namespace), Arc::clone(parent))).or_default();
            if !followers.contains(&id) {
                followers.push(Arc::clone(&id));
            }
        }
        let place = (namespace, id);
        // A checkpoint that a deletion kept is put once more.
        self.deleted.remove(&place);
        self.stored.insert(place, stored);
        Some(())
    }

    fn apply_messages(&mut self, run: usize, tick: u64, record: &Record, about: &Value) -> Option<()> {
        let namespace = text(about.get("ns"))?;
        self.messages.apply((run, tick), &namespace, record);
        if let (Some(path), Some(values)) = (text(about.get("path")), record.body().value("/intent/values")) {
            self.messages.keep_asked(&namespace, &text(about.get("checkpoint"))?, path, &values);
        }
        about.get("channels")?.get(TASKS)?;
        let place = place_of(&namespace, TASKS);
        let delta = record.delta()?;
        let ops: Vec<Op> = delta.0.into_iter().filter(|op| op.path == place).collect();
        let is_whole = ops.iter().any(|op| op.action == Action::Set);
        let tasks = ops.into_iter().filter_map(|op| op.value).flat_map(|value| match value {
            Value::Array(tasks) if is_whole => tasks.iter().cloned().collect(),
            task => vec![task],
        });
        let before = text(about.get("parent")).filter(|_| !is_whole);
        let id = text(about.get("id"))?;
        self.messages.keep_sends(&namespace, &id, before.as_ref(), &Value::array(tasks));
        Some(())
    }

    fn apply_writes(&mut self, run: usize, tick: u64, about: &Value) -> Option<()> {
        let place = (text(about.get("ns"))?, text(about.get("checkpoint"))?);
        let (task, path) = (text(about.get("task"))?, text(about.get("path"))?);
        let (at, exact) = (text(about.get("at"))?, VaultRef::from_value(about.get("exact")?)?);
        let replaces = about.get("replaces")?.as_bool()?;
        self.deleted.remove(&place);
        let writes = self.writes.entry(place).or_default();
        let mut from = 0;
        for item in about.get("items")?.as_array()?.iter() {
            let len = usize::try_from(item.get("len")?.as_u64()?).ok()?;
            let index = item.get("index")?.as_number()?.as_i64()?;
            let write = StoredWrite {
                run,
                tick,
                task: Arc::clone(&task),
                path: Arc::clone(&path),
                index,
                channel: text(item.get("channel"))?,
                tag: text(item.get("type"))?,
                at: Arc::clone(&at),
                exact,
                from,
                len,
            };
            from += len;
            match writes.iter_mut().find(|known| known.task == task && known.index == index) {
                // A special write, whose index is below 0, replaces the one before it.
                Some(known) if replaces || index < 0 => *known = write,
                Some(_) => {}
                None => writes.push(write),
            }
        }
        writes.sort_by(|a, b| (&a.path, &a.task, a.index).cmp(&(&b.path, &b.task, b.index)));
        Some(())
    }

    fn apply_removed(&mut self, run: usize, about: &Value) {
        if about.get("all").and_then(Value::as_bool) == Some(true) {
            self.forget_run(run);
            return;
        }
        for place in
            about.get("checkpoints").and_then(Value::as_array).into_iter().flat_map(|list| list.iter())
        {
            let text = |name: &str| place.get(name).and_then(Value::as_str).map(Arc::<str>::from);
            if let Some(place) = text("ns").zip(text("id")) {
                self.stored.remove(&place);
                self.writes.remove(&place);
                self.deleted.insert(place);
            }
        }
    }

    /// Takes a run for removed. Its bytes are still to be erased.
    pub(super) fn forget_run(&mut self, run: usize) {
        if !self.runs[run].is_removed {
            self.runs[run].left = Some(self.places_of(run));
        }
        self.runs[run].is_removed = true;
        self.runs[run].recorder = None;
        let stored = self.stored.iter().filter(|(_, stored)| stored.run == run).map(|(place, _)| place);
        let written = self.writes.iter().filter(|(_, writes)| writes.iter().any(|write| write.run == run));
        self.deleted.extend(stored.chain(written.map(|(place, _)| place)).cloned());
        self.stored.retain(|_, stored| stored.run != run);
        for writes in self.writes.values_mut() {
            writes.retain(|write| write.run != run);
        }
        // A checkpoint stays if another run has it; so does one with writes of another run.
        let (stored, writes) = (&self.stored, &self.writes);
        let is_left = |place: &Place| {
            stored.contains_key(place) || writes.get(place).is_some_and(|writes| !writes.is_empty())
        };
        self.deleted.retain(|place| !is_left(place));
        self.held.clear();
        if self.active == Some(run) {
            self.active = None;
        }
    }

    /// The places of the vault that a run has.
    fn places_of(&self, run: usize) -> Vec<Arc<str>> {
        let mut places = BTreeSet::new();
        for stored in self.stored.values() {
            places.extend((stored.run == run).then(|| Arc::clone(&stored.at)));
            let segments = stored.channels.values().flat_map(|at| at.segments.iter());
            places.extend(segments.filter(|one| one.run == run).map(|one| Arc::clone(&one.at)));
        }
        let writes = self.writes.values().flatten().filter(|write| write.run == run);
        places.extend(writes.map(|write| Arc::clone(&write.at)));
        places.into_iter().collect()
    }

    pub(super) fn stored(&self, namespace: &str, id: &str) -> Option<&Stored> {
        self.stored.get(&(namespace.into(), id.into()))
    }

    /// Whether a deletion took a checkpoint.
    pub(super) fn is_deleted(&self, place: &(Arc<str>, Arc<str>)) -> bool {
        self.deleted.contains(place)
    }

    /// The newest checkpoint of a namespace, by its id.
    pub(super) fn newest(&self, namespace: &str) -> Option<Arc<str>> {
        self.of_namespace(namespace).next_back().map(|((_, id), _)| Arc::clone(id))
    }

    /// Returns the error for a checkpoint that is not what was put.
    pub(super) fn edited(&self, id: &Arc<str>) -> impl Fn(String) -> CheckpointError + use<> {
        let (thread, id) = (Arc::clone(&self.id), Arc::clone(id));
        move |why| CheckpointError::Edited { thread: Arc::clone(&thread), id: Arc::clone(&id), why }
    }

    /// The checkpoints of a namespace, by id.
    pub(super) fn of_namespace(
        &self,
        namespace: &str,
    ) -> impl DoubleEndedIterator<Item = (&(Arc<str>, Arc<str>), &Stored)> {
        // No text is between a namespace and the same one with a NUL behind it.
        let end = format!("{namespace}\0");
        let (begin, end): (Place, Place) = ((namespace.into(), "".into()), (end.into(), "".into()));
        self.stored.range(begin..end)
    }

    /// The checkpoints of a namespace, or of all.
    pub(super) fn keys(&self, namespace: Option<&str>) -> impl Iterator<Item = CheckpointKey> {
        let is_meant = move |place: &&Place| namespace.is_none_or(|namespace| *place.0 == *namespace);
        self.stored.keys().filter(is_meant).map(|(namespace, id)| CheckpointKey {
            thread: Arc::clone(&self.id),
            namespace: Arc::clone(namespace),
            id: Arc::clone(id),
        })
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&Place, &Stored)> {
        self.stored.iter()
    }

    pub(super) fn writes_of(&self, namespace: &str, id: &str) -> &[StoredWrite] {
        self.writes.get(&(namespace.into(), id.into())).map_or(&[], |writes| &**writes)
    }

    pub(super) fn all_writes(&self) -> impl Iterator<Item = (&Place, &Vec<StoredWrite>)> {
        self.writes.iter()
    }

    /// Whether a run has a record at a tick of another run: its own, or inherited.
    pub(super) fn sees(&self, run: usize, other: usize, tick: u64) -> bool {
        self.sees_from((run, u64::MAX), other, tick)
    }

    /// As [`Thread::sees`], of a run up to a tick.
    fn sees_from(&self, (mut run, mut upto): Line, other: usize, tick: u64) -> bool {
        loop {
            if run == other {
                return tick <= upto;
            }
            match self.runs[run].parent {
                Some((parent, at)) => (run, upto) = (parent, upto.min(at)),
                None => return false,
            }
        }
    }

    /// A checkpoint that follows another one, in the view of a run.
    pub(super) fn follower(&self, run: usize, namespace: &str, id: &str) -> Option<&Arc<str>> {
        self.followers_in((run, u64::MAX), namespace, id).next().map(|(follower, _)| follower)
    }

    /// The checkpoints that follow another one, in the view of a run up to a tick.
    pub(super) fn followers_in(
        &self,
        line: Line,
        namespace: &str,
        id: &str,
    ) -> impl Iterator<Item = (&Arc<str>, &Stored)> {
        let followers = self.followers.get(&(namespace.into(), id.into())).into_iter().flatten();
        let stored =
            followers.filter_map(move |id| self.stored.get_key_value(&(namespace.into(), Arc::clone(id))));
        let seen = stored.filter(move |(_, stored)| self.sees_from(line, stored.run, stored.tick));
        seen.map(|((_, id), stored)| (id, stored))
    }

    /// Whether a checkpoint is the last of its namespace in the view of a run up to a tick, but for the checkpoint `id` after it.
    pub(super) fn is_last_but(
        &self,
        line: Line,
        namespace: &str,
        (at, stored): (&str, &Stored),
        id: &str,
    ) -> bool {
        self.sees_from(line, stored.run, stored.tick)
            && self.followers_in(line, namespace, at).all(|(follower, _)| **follower == *id)
    }

    /// Keeps what a channel holds, for the next checkpoint.
    pub(super) fn hold(&mut self, namespace: &Arc<str>, channel: &Arc<str>, at: Arc<str>, value: TypedBytes) {
        self.held.insert((Arc::clone(namespace), Arc::clone(channel)), (at, value));
    }

    /// Forgets what channels hold: it is read from the vault again.
    pub(super) fn forget_held(&mut self) {
        self.held.clear();
    }

    /// The content of a channel of a namespace that this process put last, and its place.
    pub(super) fn last(&self, namespace: &Arc<str>, channel: &Arc<str>) -> Option<&Held> {
        self.held.get(&(Arc::clone(namespace), Arc::clone(channel)))
    }

    /// The content of a channel, if this process put it last.
    pub(super) fn held(&self, namespace: &str, channel: &Arc<str>, at: &ChannelAt) -> Option<TypedBytes> {
        let held = self.held.get(&(namespace.into(), Arc::clone(channel)));
        held.filter(|(key, _)| *key == at.key).map(|(_, value)| value.clone())
    }
}

fn text(value: Option<&Value>) -> Option<Arc<str>> {
    Some(Arc::from(value?.as_str()?))
}

/// Reads where a channel is now. `before` is where it was; `segment` is one of the checkpoint, without its place in it.
fn channel_at(at: &Value, before: Option<&ChannelAt>, segment: Segment) -> Option<ChannelAt> {
    let kept = usize::try_from(at.get("keep")?.as_u64()?).ok()?;
    let mut segments = before.map_or(&[][..], |before| &before.segments).get(..kept)?.to_vec();
    for added in at.get("add")?.as_array()?.iter() {
        let number = |index: usize| added.as_array()?.get(index)?.as_u64();
        let (from, len) = (usize::try_from(number(0)?).ok()?, usize::try_from(number(1)?).ok()?);
        segments.push(Segment { from, len, level: number(2)?, ..segment.clone() });
    }
    Some(ChannelAt {
        version: text(at.get("version"))?,
        tag: text(at.get("type"))?,
        head: tag::as_bytes(at.get("head")?)?.into(),
        segments: segments.into(),
        key: segment.at,
    })
}
