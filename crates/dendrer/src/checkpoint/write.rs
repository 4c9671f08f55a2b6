//! Puts checkpoints and writes into the runs of a thread.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use dendrer_kernel::ontology::check_name;
use dendrer_kernel::step::{Outcome, Start};
use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::record::{Author, Record};
use dendrer_object::{Code, Intent, MESSAGES, RunName, Value, tag};
use dendrer_store::{NewSecrets, ReadLog as _};

use super::index::{ChannelAt, Stored, Thread, ThreadRun};
use super::messages::{self, From, Given, Listed, View};
use super::{
    AGENT, CheckpointError, CheckpointPut, Checkpoints, Opened, THREAD, TypedBytes, WritesPut, place_of,
};
use crate::change::fork::ForkTerms;
use crate::error::Error;
use crate::record::recorder::Recorder;
use crate::record::redacted;
use crate::run::thread::{CHECKPOINT, CLAIM, WRITES};
use crate::vault::VaultRef;

/// How often something is put again because other processes move the thread on.
const ATTEMPTS: usize = 200;

/// The target of a put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    /// At the end of a run, by number.
    Run(usize),
    /// In a new run.
    Root,
    /// In a new run that forks a run behind a tick.
    Fork(usize, u64),
}

/// Bytes for the vault: their place, what the record has of them, and what is put with the record.
struct Sealed {
    at: Arc<str>,
    exact: VaultRef,
    secrets: NewSecrets,
}

/// How many segments of one level are joined.
const JOINED: usize = 16;

/// How what a channel holds is laid into segments.
struct Laid {
    /// The length of the head.
    head: usize,
    /// How many segments of the parent are kept.
    kept: usize,
    /// The place of each new segment in the bytes of the checkpoint, its length and its level.
    added: Vec<(usize, usize, u64)>,
}

impl Laid {
    /// The segments of a channel, as the record names them.
    fn to_value(&self, version: &str, value: &TypedBytes) -> Value {
        let number = |number: usize| Value::from(number as u64);
        let added = self.added.iter();
        let added =
            added.map(|(from, len, level)| Value::array([number(*from), number(*len), Value::from(*level)]));
        Value::record([
            ("add", Value::array(added)),
            ("head", tag::bytes(&value.bytes[..self.head])),
            ("keep", number(self.kept)),
            ("type", Value::from(&*value.tag)),
            ("version", Value::from(version)),
        ])
    }
}

/// A channel with a new value: its name, the version and the value.
type ChangedChannel<'p> = (&'p Arc<str>, &'p Arc<str>, &'p TypedBytes);

/// Lists the channels with a value. Any other has the version that it has in the parent.
fn changed_in<'p>(
    put: &'p CheckpointPut,
    before: &BTreeMap<Arc<str>, ChannelAt>,
) -> Result<Vec<ChangedChannel<'p>>, CheckpointError> {
    let mut changed = Vec::new();
    for channel in &put.channels {
        match &channel.value {
            Some(value) => changed.push((&channel.name, &channel.version, value)),
            None if before.get(&channel.name).is_some_and(|at| at.version == channel.version) => {}
            None => return Err(CheckpointError::NoValue { channel: Arc::clone(&channel.name) }),
        }
    }
    Ok(changed)
}

/// Returns the place in the vault of what the state shows of a channel. Unknown in a new run: a fork does not know what its parent
/// showed there, and a place that is not there cannot be removed.
fn shown<'t>(
    thread: &'t Thread,
    target: Target,
    namespace: &Arc<str>,
    channel: &Arc<str>,
) -> Option<&'t Arc<str>> {
    let Target::Run(run) = target else { return None };
    thread.runs[run].shown.get(&(Arc::clone(namespace), Arc::clone(channel)))
}

/// The channels of a namespace that the state shows since its run began.
fn shown_in<'t>(
    thread: &'t Thread,
    target: Target,
    namespace: &'t Arc<str>,
) -> impl Iterator<Item = &'t Arc<str>> {
    let shown = if let Target::Run(run) = target { Some(&thread.runs[run].shown) } else { None };
    let places = shown.into_iter().flat_map(|shown| shown.keys());
    places.filter(move |(of, _)| of == namespace).map(|(_, name)| name)
}

/// A checkpoint as the record names it.
fn about_checkpoint(
    put: &CheckpointPut,
    channels: Value,
    gone: &[&Arc<str>],
    at: &str,
    exact: &VaultRef,
) -> Value {
    let own = Value::record([
        ("at", Value::from(at)),
        ("exact", exact.to_value()),
        ("len", Value::from(put.checkpoint.bytes.len() as u64)),
        ("metadata_len", Value::from(put.metadata.bytes.len() as u64)),
        ("metadata_type", Value::from(&*put.metadata.tag)),
        ("type", Value::from(&*put.checkpoint.tag)),
    ]);
    let about = [
        ("channels", channels),
        ("exact", own),
        ("id", Value::from(&*put.id)),
        ("ns", Value::from(&*put.namespace)),
        ("parent", Value::from(put.parent.as_deref())),
    ];
    let gone = (!gone.is_empty()).then(|| Value::array(gone.iter().map(|name| Value::from(&***name))));
    let made_by = put.made_by.as_deref().map(Value::from);
    let more = [gone.map(|gone| ("gone", gone)), made_by.map(|run| ("run_id", run))];
    Value::record(about.into_iter().chain(more.into_iter().flatten()))
}

impl Checkpoints {
    /// Puts a checkpoint: it is durable when this returns.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Stale`] if its parent is not the last of its namespace and was not asked for by its id,
    /// [`CheckpointError::NoValue`] if a channel without a value is not in the parent.
    pub fn put(&mut self, put: &CheckpointPut) -> Result<(), CheckpointError> {
        self.put_below(put, &[], None)
    }

    /// As [`Checkpoints::put`], of a namespace below others: `around` names the checkpoint of each that it was made in, by namespace
    /// and id. It goes where the checkpoint of the root is, or will be: `addressed` is the one that the caller asked for by its id
    /// last, so that a root which is put later is known to fork.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Deleted`] if a deletion took the checkpoint, its parent or one around it.
    pub fn put_below(
        &mut self,
        put: &CheckpointPut,
        around: &[(Arc<str>, Arc<str>)],
        addressed: Option<&str>,
    ) -> Result<(), CheckpointError> {
        let root = around.iter().find(|(namespace, _)| namespace.is_empty()).map(|(_, id)| &**id);
        self.until_done(&put.thread, &mut |all, thread| {
            let ids = put.parent.iter().chain([&put.id]);
            check_deleted(thread, &put.namespace, ids, around)?;
            all.try_put(thread, put, root, addressed)
        })
    }

    /// Puts a checkpoint of a thread once more, in a new run of it or in another thread.
    pub(super) fn put_again(
        &mut self,
        put: &CheckpointPut,
        root: Option<&str>,
    ) -> Result<(), CheckpointError> {
        self.until_done(&put.thread, &mut |all, thread| all.try_put(thread, put, root, None))
    }

    /// Puts writes of a thread once more.
    pub(super) fn put_writes_again(&mut self, put: &WritesPut) -> Result<(), CheckpointError> {
        self.until_done(&put.thread, &mut |all, thread| all.try_put_writes(thread, put))
    }

    /// Tries something on a thread, again where another process went ahead.
    fn until_done(
        &mut self,
        id: &Arc<str>,
        attempt: &mut dyn FnMut(&Checkpoints, &mut Thread) -> Result<bool, CheckpointError>,
    ) -> Result<(), CheckpointError> {
        for _ in 0..ATTEMPTS {
            if self.with(id, &mut *attempt)?? {
                return Ok(());
            }
        }
        Err(Error::Moved { run: self.name_of(id), tick: 0 }.into())
    }

    fn try_put(
        &self,
        thread: &mut Thread,
        put: &CheckpointPut,
        root: Option<&str>,
        addressed: Option<&str>,
    ) -> Result<bool, CheckpointError> {
        check_claim(thread, put.claim.as_ref())?;
        let target = target_of(thread, put, root, addressed)?;
        let parent = put.parent.as_deref().and_then(|id| Some((id, thread.stored(&put.namespace, id)?)));
        // The state of the target is not the one after the parent: it is given every channel, and the record too.
        let whole = match parent {
            Some(parent) if !is_next(thread, target, put, parent) => Some(self.whole(thread, put, parent.1)?),
            _ => None,
        };
        let of_parent = parent.map(|(_, stored)| Arc::clone(&stored.channels)).unwrap_or_default();
        let before = if whole.is_some() { Arc::default() } else { Arc::clone(&of_parent) };
        let put = whole.as_ref().unwrap_or(put);
        let changed = changed_in(put, &before)?;
        let is_put = |name: &Arc<str>| put.channels.iter().any(|channel| channel.name == *name);
        let gone: Vec<&Arc<str>> = of_parent.keys().filter(|name| !is_put(name)).collect();
        let mut own = [&put.checkpoint.bytes[..], &put.metadata.bytes[..]].concat();
        let laid: Vec<Laid> = changed
            .iter()
            .map(|(name, _, value)| {
                let base = before.get(&**name).zip(thread.last(&put.namespace, name));
                let base = base.filter(|(at, (key, _))| at.key == *key);
                self.lay(value, base.map(|(at, (_, held))| (at, held)), &mut own)
            })
            .collect();
        let Some(begun) = self.recorder_at(thread, target)? else { return Ok(false) };
        let Sealed { at, exact, secrets } = self.seal(&begun.1, &own)?;

        let (mut ops, given) = self.changes(thread, target, &put.namespace, &changed, &exact);
        let removed = shown_in(thread, target, &put.namespace).filter(|name| !is_put(name));
        let remove = |path| Op { action: Action::Remove, path, value: None };
        ops.extend(removed.map(|name| remove(place_of(&put.namespace, name))));
        let channels = changed
            .iter()
            .zip(&laid)
            .map(|((name, version, value), laid)| (tag::stored_name(name), laid.to_value(version, value)));
        let about = about_checkpoint(put, Value::Object(channels.collect()), &gone, &at, &exact);
        let delta = (!ops.is_empty()).then_some(Delta(ops));
        let shown = Value::record([("metadata", self.readable(&put.metadata, &exact))]);
        let mut listed = self.messages_of(thread, target, &put.namespace, &From::Put, &given);
        listed.noted.extend(put.noted.iter().cloned());
        let intent = self.intent("memory.write", shown, delta, CHECKPOINT, about, &listed);
        let Some(number) = self.commit(thread, target, begun, &intent, secrets)? else { return Ok(false) };
        for (name, _, value) in &changed {
            thread.hold(&put.namespace, name, Arc::clone(&at), (*value).clone());
        }
        thread.messages.hold(&put.namespace, listed);
        thread.active = Some(number);
        Ok(true)
    }

    /// The same put with the value of every channel: those that it does not bring are read from its parent.
    fn whole(
        &self,
        thread: &Thread,
        put: &CheckpointPut,
        parent: &Stored,
    ) -> Result<CheckpointPut, CheckpointError> {
        let (edited, mut opened, mut whole) = (thread.edited(&put.id), Opened::default(), put.clone());
        for channel in whole.channels.iter_mut().filter(|channel| channel.value.is_none()) {
            let at = parent.channels.get(&channel.name).filter(|at| at.version == channel.version);
            channel.value = at
                .map(|at| self.exact(thread, &put.namespace, &channel.name, at, &mut opened, &edited))
                .transpose()?;
        }
        Ok(whole)
    }

    /// Puts the writes of a task: they are durable when this returns. Those that are there already stay, unless they are replaced.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Deleted`] if a deletion took the checkpoint.
    pub fn put_writes(&mut self, put: &WritesPut) -> Result<(), CheckpointError> {
        self.put_writes_below(put, &[])
    }

    /// As [`Checkpoints::put_writes`], of a namespace below others, as in [`Checkpoints::put_below`].
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Deleted`] if a deletion took the checkpoint, or one around it.
    pub fn put_writes_below(
        &mut self,
        put: &WritesPut,
        around: &[(Arc<str>, Arc<str>)],
    ) -> Result<(), CheckpointError> {
        self.until_done(&put.thread, &mut |all, thread| {
            check_deleted(thread, &put.namespace, [&put.id], around)?;
            all.try_put_writes(thread, put)
        })
    }

    fn try_put_writes(&self, thread: &mut Thread, put: &WritesPut) -> Result<bool, CheckpointError> {
        check_claim(thread, put.claim.as_ref())?;
        let known = thread.writes_of(&put.namespace, &put.id).iter();
        let known: Vec<i64> = known.filter(|write| write.task == put.task).map(|write| write.index).collect();
        // A special write has an index of its own below 0, and replaces the one before it.
        let is_known = |index: i64| !put.replaces && index >= 0 && known.contains(&index);
        if put.items.iter().all(|item| is_known(item.index)) {
            return Ok(true);
        }
        let target = target_of_writes(thread, put);
        let Some((recorder, name)) = self.recorder_at(thread, target)? else { return Ok(false) };
        let bytes: Vec<u8> = put.items.iter().flat_map(|item| item.value.bytes.iter().copied()).collect();
        let Sealed { at, exact, secrets } = self.seal(&name, &bytes)?;
        let items = put.items.iter().map(|item| {
            Value::record([
                ("channel", Value::from(&*item.channel)),
                ("index", Value::Number(dendrer_object::number::Number::from_i64(item.index))),
                ("len", Value::from(item.value.bytes.len() as u64)),
                ("type", Value::from(&*item.value.tag)),
            ])
        });
        let about = Value::record([
            ("at", Value::from(&*at)),
            ("checkpoint", Value::from(&*put.id)),
            ("exact", exact.to_value()),
            ("items", Value::array(items)),
            ("ns", Value::from(&*put.namespace)),
            ("path", Value::from(&*put.path)),
            ("replaces", Value::Bool(put.replaces)),
            ("task", Value::from(&*put.task)),
        ]);
        let decoded: Vec<Option<Value>> =
            put.items.iter().map(|item| self.decode.whole(&item.value)).collect();
        let values = put.items.iter().zip(&decoded).map(|(item, value)| {
            Value::record([
                ("channel", Value::from(&*item.channel)),
                ("value", value.clone().unwrap_or_else(|| exact.to_value())),
            ])
        });
        let shown = Value::record([("values", Value::array(values))]);
        // A write that is there already stays as it is, also in its messages.
        let new = put.items.iter().zip(decoded).filter(|(item, _)| !is_known(item.index));
        let given =
            new.map(|(item, value)| Given { channel: Arc::clone(&item.channel), value, is_grown: false });
        let from = From::Task { path: &put.path, checkpoint: &put.id };
        let given: Vec<Given> = given.collect();
        let mut listed = self.messages_of(thread, target, &put.namespace, &from, &given);
        listed.noted.extend(put.noted.iter().cloned());
        let intent = self.intent("observation.add", shown, None, WRITES, about, &listed);
        let begun = (recorder, name);
        let Some(number) = self.commit(thread, target, begun, &intent, secrets)? else { return Ok(false) };
        thread.active = Some(number);
        Ok(true)
    }

    /// Claims a thread: from now on, what is put under an earlier claim is refused. Returns the claim.
    pub fn claim(&mut self, thread: &Arc<str>) -> Result<Arc<str>, CheckpointError> {
        let claim: Arc<str> = self.nonce().into();
        self.until_done(thread, &mut |all, thread| {
            let target = thread.live().map_or(Target::Root, Target::Run);
            let Some(begun) = all.recorder_at(thread, target)? else { return Ok(false) };
            let intent = all.intent(
                "observation.add",
                Value::object(),
                None,
                CLAIM,
                Value::from(&*claim),
                &Listed::default(),
            );
            Ok(all.commit(thread, target, begun, &intent, NewSecrets::default())?.is_some())
        })?;
        Ok(claim)
    }

    /// Whether a claim is the newest one of its thread.
    pub fn has_claim(&mut self, thread: &Arc<str>, claim: &str) -> Result<bool, CheckpointError> {
        self.with(thread, |_, found| found.claim.as_deref() == Some(claim))
    }

    /// The recorder of a target, and the name of its run; `None` if another process went ahead. The begin of the run is
    /// gathered and not yet committed.
    fn recorder_at(
        &self,
        thread: &mut Thread,
        target: Target,
    ) -> Result<Option<(Recorder, String)>, CheckpointError> {
        match target {
            Target::Run(number) => {
                let run = &mut thread.runs[number];
                let recorder = match run.recorder.take() {
                    Some(mut recorder) => {
                        // The thread was read from a fresh store.
                        recorder.read_on()?;
                        recorder
                    }
                    None => match self.repo.recorder(&run.name) {
                        // Another process deleted the thread meanwhile.
                        Err(Error::Removed { .. }) => return Ok(None),
                        recorder => recorder?,
                    },
                };
                // A put depends on the records that were read: records of others are read first.
                let is_read = recorder.head().tick() == run.upto;
                let name = run.name.to_string();
                if !is_read {
                    run.recorder = Some(recorder);
                    return Ok(None);
                }
                Ok(Some((recorder, name)))
            }
            Target::Root => {
                let name = thread.next_name();
                let meta = Value::record([(THREAD, Value::from(&*thread.id))]);
                let start = Start { meta: Some(meta), run: name.clone(), ..self.start.clone() };
                unless_begun(self.repo.begin(&start), &name)
            }
            Target::Fork(number, tick) => {
                let name = thread.next_name();
                let parent = self.repo.run(&thread.runs[number].name)?;
                let terms = ForkTerms::new(name.clone());
                unless_begun(self.repo.fork(&parent, tick, &terms).map(|(recorder, _)| recorder), &name)
            }
        }
    }

    /// Lays what a channel holds behind the bytes of a checkpoint: of a list that grew only what is new, and now and then what
    /// was laid before once more, so that few segments make a long list.
    fn lay(&self, value: &TypedBytes, base: Option<(&ChannelAt, &TypedBytes)>, own: &mut Vec<u8>) -> Laid {
        let head = self.decode.head(value).unwrap_or(0);
        let items = &value.bytes[head..];
        let mut add = |bytes: &[u8], level: u64| {
            own.extend_from_slice(bytes);
            (own.len() - bytes.len(), bytes.len(), level)
        };
        let base = base.filter(|(at, held)| {
            head > 0 && !at.head.is_empty() && items.starts_with(&held.bytes[at.head.len()..])
        });
        let Some((at, held)) = base else {
            // A list that comes whole is joined with nothing.
            return Laid { head, kept: 0, added: vec![add(items, u64::from(u8::MAX))] };
        };
        let known = held.bytes.len() - at.head.len();
        if known == items.len() {
            return Laid { head, kept: at.segments.len(), added: Vec::new() };
        }
        let (mut kept, mut from, mut level) = (at.segments.len(), known, 0);
        while let Some(first) = kept.checked_sub(JOINED - 1)
            && at.segments[first..kept].iter().all(|segment| segment.level == level)
        {
            from -= at.segments[first..kept].iter().map(|segment| segment.len).sum::<usize>();
            (kept, level) = (first, level + 1);
        }
        Laid { head, kept, added: vec![add(&items[from..], level)] }
    }

    /// The operations on the state for channels with a new value, and what is given to each channel: the whole of it, or what a list
    /// grew by.
    fn changes(
        &self,
        thread: &Thread,
        target: Target,
        namespace: &Arc<str>,
        changed: &[ChangedChannel<'_>],
        exact: &VaultRef,
    ) -> (Vec<Op>, Vec<Given>) {
        let mut ops = Vec::new();
        let mut given = Vec::new();
        for (name, _, value) in changed {
            let grown = thread
                .last(namespace, name)
                .filter(|(key, _)| shown(thread, target, namespace, name) == Some(key))
                .and_then(|(_, last)| self.decode.grown(last, value));
            let path = place_of(namespace, name);
            match grown {
                Some(items) => {
                    let items_given = Value::array(items.iter().cloned());
                    given.push(Given { channel: Arc::clone(name), value: Some(items_given), is_grown: true });
                    let append = |item| Op { action: Action::Append, path: path.clone(), value: Some(item) };
                    ops.extend(items.into_iter().map(append));
                }
                None => {
                    let whole = self.decode.whole(value);
                    let channel = Arc::clone(name);
                    given.push(Given { channel, value: whole.clone(), is_grown: false });
                    ops.push(Op::set(path, whole.unwrap_or_else(|| exact.to_value())));
                }
            }
        }
        (ops, given)
    }

    /// Lists the messages that are new to the line of transitions that a target ends.
    fn messages_of(
        &self,
        thread: &Thread,
        target: Target,
        namespace: &Arc<str>,
        from: &From<'_>,
        given: &[Given],
    ) -> Listed {
        let view = match target {
            Target::Run(run) => View::Run(run),
            Target::Fork(run, tick) => View::Upto(run, tick),
            Target::Root => View::Nothing,
        };
        messages::list(thread, view, namespace, from, given, (&*self.decode, &self.redactor))
    }

    /// Decodes typed bytes; what cannot be decoded is shown as its place in the vault.
    fn readable(&self, value: &TypedBytes, exact: &VaultRef) -> Value {
        self.decode.whole(value).unwrap_or_else(|| exact.to_value())
    }

    /// Encrypts bytes for the record that names them.
    fn seal(&self, name: &str, bytes: &[u8]) -> Result<Sealed, CheckpointError> {
        let at: Arc<str> = self.nonce().into();
        let run = name.parse().expect("a run has a name");
        let (exact, secrets) = self.vault.clone().seal(&run, &at, bytes)?;
        Ok(Sealed { at, exact, secrets })
    }

    /// A text that nothing else has.
    fn nonce(&self) -> String {
        let seed = self.chance.lock().unwrap_or_else(PoisonError::into_inner).seed();
        seed.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Makes an intent. Values of users are redacted; `about` is the saver's own, and is not.
    pub(super) fn intent(
        &self,
        type_name: &str,
        shown: Value,
        delta: Option<Delta>,
        name: &'static str,
        about: Value,
        listed: &Listed,
    ) -> Intent {
        // A node may have any name; one that the kernel keeps for itself would be refused, and the graph would stop.
        let node = listed.agent.as_deref().filter(|node| !node.is_empty() && check_name(node).is_ok());
        let agent = node.unwrap_or(AGENT);
        let mut intent = Intent::new(type_name.parse().expect("a type of the ontology"), agent);
        intent.author = Author::Runtime;
        intent.delta = delta;
        intent.noted.clone_from(&listed.noted);
        let mut intent = intent.with("intent", shown);
        if !listed.messages.is_empty() {
            intent = intent.carrying(MESSAGES, Value::array(listed.messages.iter().cloned()));
        }
        let mut intent = redacted::intent(&self.redactor, &intent);
        for (member, value) in &mut intent.members {
            if let ("intent", Value::Object(members)) = (&**member, value) {
                members.set(name, about.clone());
            }
        }
        intent
    }

    /// Judges an intent and makes it durable. Returns the number of its run; `None` if another process went ahead.
    fn commit(
        &self,
        thread: &mut Thread,
        target: Target,
        (recorder, name): (Recorder, String),
        intent: &Intent,
        secrets: NewSecrets,
    ) -> Result<Option<usize>, CheckpointError> {
        let parent = match target {
            Target::Run(number) => return self.commit_to(thread, number, recorder, intent, secrets),
            Target::Root => None,
            Target::Fork(number, tick) => Some((number, tick)),
        };
        thread.runs.push(ThreadRun::new(name.parse().expect("a run has a name"), parent));
        thread.next += 1;
        let done = self.commit_to(thread, thread.runs.len() - 1, recorder, intent, secrets);
        if !matches!(done, Ok(Some(_))) {
            thread.runs.pop();
            thread.next -= 1;
        }
        done
    }

    fn commit_to(
        &self,
        thread: &mut Thread,
        number: usize,
        mut recorder: Recorder,
        intent: &Intent,
        secrets: NewSecrets,
    ) -> Result<Option<usize>, CheckpointError> {
        let outcome = recorder.propose(intent)?;
        if let Outcome::Refused(refused) = outcome {
            return Err(CheckpointError::Refused { reason: refused.reason.to_string() });
        }
        let own = outcome.committed().map(Record::id);
        let records = match recorder.commit_with(secrets) {
            Err(error) if matches!(error.code(), Code::E0407 | Code::E0111) => return Ok(None),
            records => records?,
        };
        // If no other process wrote in between, all was read.
        let size = self.repo.writer()?.tree().size;
        if thread.seen + records.len() as u64 == size {
            thread.seen = size;
        }
        for record in &records {
            match record.header().tick {
                // The record that begins a run or a fork is in the same group.
                Some(tick) if own == Some(record.id()) => thread.apply_own(number, tick, record, intent),
                Some(tick) => thread.apply(number, tick, record),
                None => {}
            }
        }
        thread.runs[number].recorder = Some(recorder);
        Ok(Some(number))
    }
}

/// A run that begins, unless another process began it meanwhile.
fn unless_begun(
    begun: Result<Recorder, Error>,
    name: &RunName,
) -> Result<Option<(Recorder, String)>, CheckpointError> {
    match begun {
        Ok(recorder) => Ok(Some((recorder, name.to_string()))),
        Err(error) if error.code() == Code::E0111 => Ok(None),
        Err(error) => Err(error.into()),
    }
}

impl Thread {
    /// The run that something without a place of its own goes to: the one that was used last, else the newest.
    fn live(&self) -> Option<usize> {
        let is_live = |number: &usize| !self.runs[*number].is_removed;
        self.active.filter(is_live).or_else(|| (0..self.runs.len()).rev().find(is_live))
    }
}

fn check_claim(thread: &Thread, claim: Option<&Arc<str>>) -> Result<(), CheckpointError> {
    match claim {
        Some(claim) if thread.claim.as_ref() != Some(claim) => {
            Err(CheckpointError::Superseded { thread: Arc::clone(&thread.id) })
        }
        _ => Ok(()),
    }
}

/// Refuses a put that follows a deleted checkpoint: of its own namespace, or of one around it.
fn check_deleted<'p>(
    thread: &Thread,
    namespace: &Arc<str>,
    ids: impl IntoIterator<Item = &'p Arc<str>>,
    around: &[(Arc<str>, Arc<str>)],
) -> Result<(), CheckpointError> {
    let own = ids.into_iter().map(|id| (Arc::clone(namespace), Arc::clone(id)));
    match own.chain(around.iter().cloned()).find(|place| thread.is_deleted(place)) {
        Some((_, id)) => Err(CheckpointError::Deleted { thread: Arc::clone(&thread.id), id }),
        None => Ok(()),
    }
}

/// Whether a put follows its parent in the run of its target: that has the parent, and nothing after it.
fn is_next(thread: &Thread, target: Target, put: &CheckpointPut, parent: (&str, &Stored)) -> bool {
    let line = match target {
        Target::Run(run) => (run, u64::MAX),
        Target::Fork(run, tick) => (run, tick),
        Target::Root => return false,
    };
    thread.is_last_but(line, &put.namespace, parent, &put.id)
}

/// The target of a checkpoint of a subgraph: the run that has the checkpoint of the root that it was made in, or will have it.
/// `None` if its own parent decides.
fn target_below(thread: &Thread, put: &CheckpointPut, root: &str, addressed: Option<&str>) -> Option<Target> {
    let followed = |run: usize, namespace: &str, id: &str, after: u64| {
        thread.followers_in((run, u64::MAX), namespace, id).any(|(_, follower)| follower.tick >= after)
    };
    let is_followed = |run: usize, after: u64| {
        put.parent.as_deref().is_some_and(|parent| followed(run, &put.namespace, parent, after))
    };
    if let Some(stored) = thread.stored("", root) {
        let sees = |run: &usize| !thread.runs[*run].is_removed && thread.sees(*run, stored.run, stored.tick);
        let runs = || [thread.active, Some(stored.run)].into_iter().flatten().filter(sees);
        let run = runs().find(|run| !followed(*run, "", root, 0)).or_else(|| runs().next())?;
        // Within one checkpoint of the root a subgraph goes one way; what an earlier one put is in the past.
        return (!is_followed(run, stored.tick)).then_some(Target::Run(run));
    }
    let live = thread.live()?;
    match addressed.and_then(|id| Some((id, thread.stored("", id)?))) {
        Some((id, stored)) if thread.sees(live, stored.run, stored.tick) && followed(live, "", id, 0) => {
            Some(Target::Fork(stored.run, stored.tick))
        }
        Some(_) => Some(Target::Run(live)),
        None => (!is_followed(live, 0)).then_some(Target::Run(live)),
    }
}

fn target_of(
    thread: &Thread,
    put: &CheckpointPut,
    root: Option<&str>,
    addressed: Option<&str>,
) -> Result<Target, CheckpointError> {
    let namespace = &*put.namespace;
    let live = || thread.live().map_or(Target::Root, Target::Run);
    // A checkpoint that is put again takes the place of the old one.
    if let Some(stored) = thread.stored(namespace, &put.id)
        && stored.parent == put.parent
        && !thread.runs[stored.run].is_removed
    {
        return Ok(Target::Run(stored.run));
    }
    if let Some(root) = root.filter(|_| !namespace.is_empty())
        && let Some(target) = target_below(thread, put, root, addressed)
    {
        return Ok(target);
    }
    let Some(parent) = &put.parent else {
        if !namespace.is_empty() {
            return Ok(live());
        }
        let has_root = |number: usize| thread.of_namespace("").any(|(_, stored)| stored.run == number);
        let open = (0..thread.runs.len()).find(|number| {
            let run = &thread.runs[*number];
            run.parent.is_none() && !run.is_removed && !has_root(*number)
        });
        return Ok(open.map_or(Target::Root, Target::Run));
    };
    let Some(stored) = thread.stored(namespace, parent) else { return Ok(live()) };
    let candidates = [thread.active, Some(stored.run)].into_iter().flatten();
    let is_last = |number: &usize| {
        !thread.runs[*number].is_removed
            && thread.sees(*number, stored.run, stored.tick)
            && thread.follower(*number, namespace, parent).is_none()
    };
    if let Some(number) = candidates.into_iter().find(is_last) {
        return Ok(Target::Run(number));
    }
    if put.may_fork {
        return Ok(Target::Fork(stored.run, stored.tick));
    }
    let head = thread.newest(namespace).unwrap_or_else(|| Arc::clone(parent));
    Err(CheckpointError::Stale { thread: Arc::clone(&thread.id), parent: Arc::clone(parent), head })
}

fn target_of_writes(thread: &Thread, put: &WritesPut) -> Target {
    let stored = thread.stored(&put.namespace, &put.id);
    let sees = |number: usize| {
        !thread.runs[number].is_removed
            && stored.is_none_or(|stored| thread.sees(number, stored.run, stored.tick))
    };
    let active = thread.active.filter(|number| sees(*number));
    let owner = stored.map(|stored| stored.run).filter(|number| !thread.runs[*number].is_removed);
    active.or(owner).or_else(|| thread.live()).map_or(Target::Root, Target::Run)
}
