//! A store in memory: the same contract, no disk.
//!
//! For tests and for records that came from elsewhere: [`Memory::of_parts`] holds some records of a foreign log at
//! the positions they have there. Never persists anything.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{ControlFlow, Range, RangeInclusive};
use std::sync::{Arc, Mutex, PoisonError};

use dendrer_object::merkle::{Peaks, leaf_hash};
use dendrer_object::note::{Checkpoint, SignedNote, SigningKey};
use dendrer_object::record::{Entry, Header, Kind};
use dendrer_object::{Digest, Pointer, Record, RunName};

use crate::error::{Damage, DamageKind, DamagePlace, StoreError};
use crate::fence::{self, Known, Log};
use crate::index::KeptTiles;
use crate::store::secrets::check_sizes;
use crate::store::{
    AppendLog, EraseValues, Given, GroupEnd, KeepDerived, KeepSecrets, LastRecord, LogWriter, MaySign,
    ReadLog, RunSummary, SignLog, Skimmed, Slot, StoreInfo, Tags, Ticket, TreeHead, not_in_tree,
};

/// A record that is made anew each time it is asked for, since it is larger than what it is made from. It is the same each time.
pub trait Packed: fmt::Debug + Send + Sync {
    /// Makes the record.
    fn open(&self) -> Record;
}

/// A record, or what it is made from.
#[derive(Debug)]
enum Held {
    Open(Record),
    Packed { id: Digest, header: Box<Header>, packed: Box<dyn Packed> },
}

impl Held {
    fn id(&self) -> Digest {
        match self {
            Held::Open(record) => record.id(),
            Held::Packed { id, .. } => *id,
        }
    }

    fn header(&self) -> &Header {
        match self {
            Held::Open(record) => record.header(),
            Held::Packed { header, .. } => header,
        }
    }

    fn open(&self) -> Record {
        match self {
            Held::Open(record) => record.clone(),
            Held::Packed { packed, .. } => packed.open(),
        }
    }
}

type Snapshots = BTreeMap<RunName, BTreeMap<u64, Vec<u8>>>;

/// A store in memory.
#[derive(Debug)]
pub struct Memory {
    info: StoreInfo,
    key: Option<Arc<SigningKey>>,
    /// Records by position; a foreign log may have gaps.
    records: BTreeMap<u64, Held>,
    ids: BTreeMap<Digest, u64>,
    runs: BTreeMap<RunName, Run>,
    begins: BTreeMap<u64, RunName>,
    tree: TreeHead,
    /// `None` where positions may have gaps: nothing can be appended there.
    peaks: Option<Peaks>,
    /// Whether every record is known to be a leaf of the tree at its position.
    is_proven: bool,
    checkpoint: Option<SignedNote>,
    writer: LogWriter,
    /// The ends of the groups that were appended.
    groups: Vec<GroupEnd>,
    /// The size up to which groups were adopted by this handle.
    adopted: u64,
    snapshots: Mutex<Snapshots>,
    /// By run and digest of the question.
    verdicts: Mutex<BTreeMap<(RunName, Digest), Vec<u8>>>,
    tiles: Mutex<KeptTiles>,
    secrets: BTreeMap<Digest, Vec<u8>>,
}

#[derive(Debug)]
struct Run {
    summary: RunSummary,
    chain: BTreeMap<u64, u64>,
    beside: BTreeMap<u64, Kind>,
}

impl Memory {
    /// Makes an empty store.
    pub fn new(info: StoreInfo) -> Memory {
        let peaks = Peaks::new();
        let tree = TreeHead { size: 0, root: peaks.root() };
        Memory {
            info,
            key: None,
            records: BTreeMap::new(),
            ids: BTreeMap::new(),
            runs: BTreeMap::new(),
            begins: BTreeMap::new(),
            tree,
            peaks: Some(peaks),
            is_proven: true,
            checkpoint: None,
            writer: LogWriter::default(),
            groups: Vec::new(),
            adopted: 0,
            snapshots: Mutex::default(),
            verdicts: Mutex::default(),
            tiles: Mutex::default(),
            secrets: BTreeMap::new(),
        }
    }

    /// Sets the signing key. A key that is not the one in force is ignored.
    #[must_use]
    pub fn with_key(mut self, key: Option<Arc<SigningKey>>) -> Memory {
        let now = self.keys().map_or_else(|_| self.info.key.clone(), |keys| keys.now().clone());
        self.key = key.filter(|key| *key.verifier_key() == now);
        self.writer = LogWriter::of_key(self.key.as_ref());
        self
    }

    /// The groups after what is signed or adopted, looked at with the secret; `None` without one.
    fn tags(&self) -> Option<Tags> {
        let keys = self.keys().ok()?;
        let secret = self.writer.secret().filter(|secret| secret.key() == keys.now())?;
        let signed = self.checkpoint.as_ref().and_then(|note| keys.open(note).ok());
        let signed = signed.map_or(0, |signed| signed.size());
        let mut tags = Tags::default();
        tags.pass(self.adopted.max(signed).max(keys.changed_at()));
        let begin = self.groups.partition_point(|group| group.tree.size <= tags.looked_to());
        self.groups[begin..].iter().for_each(|group| tags.look(secret, self.info.id, group));
        Some(tags)
    }

    /// Appends a group, whatever its tags before it.
    fn append_group(&mut self, records: &[Record]) -> Result<Range<u64>, StoreError> {
        let mut peaks = self.writable()?.clone();
        let begin = self.tree.size;
        fence::check(self, self.info.id, begin, records)?;
        for (record, position) in records.iter().zip(begin..) {
            peaks.push(leaf_hash(&record.entry()));
            self.put(position, Held::Open(record.clone()));
        }
        self.tree = TreeHead { size: peaks.size(), root: peaks.root() };
        self.peaks = Some(peaks);
        let tag = self.writer.tag(self.info.id, self.tree);
        self.groups.push(GroupEnd { begin, tree: self.tree, tag });
        Ok(begin..self.tree.size)
    }

    /// Fails where nothing may be written or signed.
    fn check_tags(&self) -> Result<(), StoreError> {
        match &self.writer {
            LogWriter::Missing => Err(StoreError::NoWriter),
            LogWriter::Secret(secret) if secret.key() != self.keys()?.now() => Err(StoreError::NoWriter),
            _ => self.tags().map_or(Ok(()), |tags| tags.check()),
        }
    }

    /// Holds some records of a log, read only. `tree` is the tree that the caller verified them against, or a
    /// substitute; positions need not be complete.
    ///
    /// A run whose `run` record is not among them is shown from the first record that is, with the ticks before it
    /// missing.
    pub fn of_parts(info: StoreInfo, tree: TreeHead, records: Vec<(u64, Record)>) -> Memory {
        let mut store = Memory { peaks: None, is_proven: false, tree, ..Memory::new(info) };
        let records: BTreeMap<u64, Record> = records.into_iter().collect();
        for (position, record) in records {
            store.put(position, Held::Open(record));
        }
        store
    }

    /// Sets the newest signed checkpoint of a log that is held and not appended to. One of more records than are held shows a
    /// loss.
    #[must_use]
    pub fn with_checkpoint(mut self, note: Option<SignedNote>) -> Memory {
        self.checkpoint = note;
        self
    }

    /// Declares that the caller compared the entry of each record, those still to be held included, with the root of the tree at
    /// its position. [`ReadLog::proven`] then returns a record as it is.
    #[must_use]
    pub fn with_proven_entries(mut self) -> Memory {
        self.is_proven = true;
        self
    }

    /// Holds one more record of a foreign log, behind those that it holds; where `packed` is given, what makes the record and
    /// not the record.
    pub fn hold(&mut self, position: u64, record: Record, packed: Option<Box<dyn Packed>>) {
        debug_assert!(self.peaks.is_none() && self.records.range(position..).next().is_none());
        let held = match packed {
            Some(packed) => {
                Held::Packed { id: record.id(), header: Box::new(record.header().clone()), packed }
            }
            None => Held::Open(record),
        };
        self.put(position, held);
    }

    fn put(&mut self, position: u64, held: Held) {
        let (id, header) = (held.id(), held.header());
        if let Some(name) = &header.run {
            let parent_tick = header.prev.and_then(|prev| self.header(&prev)?.tick);
            if header.kind == Kind::Run && !self.runs.contains_key(name) {
                self.begins.insert(position, name.clone());
            }
            let run = self.runs.entry(name.clone()).or_insert_with(|| Run {
                summary: RunSummary::begin(name.clone(), position, id, header, parent_tick),
                chain: BTreeMap::new(),
                beside: BTreeMap::new(),
            });
            if header.kind != Kind::Run {
                run.summary.add(position, id, header);
            }
            match (header.tick, header.kind) {
                (Some(tick), _) => {
                    run.chain.entry(tick).or_insert(position);
                }
                (None, Kind::Run) => {}
                (None, kind) => {
                    run.beside.insert(position, kind);
                }
            }
        }
        self.ids.entry(id).or_insert(position);
        self.records.insert(position, held);
    }

    fn header(&self, id: &Digest) -> Option<&Header> {
        Some(self.records.get(self.ids.get(id)?)?.header())
    }

    /// Whether what was given for a change of the kept bytes holds.
    fn holds(&self, given: Given<'_>) -> Result<bool, StoreError> {
        given.holds(&mut |name| Ok(self.secrets.contains_key(name)), &mut || self.secrets())
    }

    fn writable(&self) -> Result<&Peaks, StoreError> {
        self.peaks
            .as_ref()
            .ok_or_else(|| StoreError::ReadOnly { why: "it holds a part of a foreign log".into() })
    }
}

impl Log for Memory {
    fn summary(&self, run: &RunName) -> Result<Option<RunSummary>, StoreError> {
        Ok(self.runs.get(run).map(|run| run.summary.clone()))
    }

    fn known(&self, id: &Digest) -> Result<Option<Known>, StoreError> {
        Ok(self.header(id).map(|header| Known { kind: header.kind, tick: header.tick }))
    }
}

impl ReadLog for Memory {
    fn info(&self) -> &StoreInfo {
        &self.info
    }

    fn tree(&self) -> TreeHead {
        self.tree
    }

    fn trouble(&self) -> Option<Arc<StoreError>> {
        let signed = Checkpoint::parse(self.checkpoint.as_ref()?.text()).ok()?.size();
        let size = self.tree.size;
        let damage = Damage {
            kind: DamageKind::Loss,
            place: DamagePlace::default(),
            what: "size of the log",
            expected: format!("{signed} records, as was signed"),
            found: format!("{size} records"),
        };
        (signed > size).then(|| Arc::new(damage.into()))
    }

    fn refresh(&mut self) -> Result<u64, StoreError> {
        Ok(self.tree.size)
    }

    fn get(&self, position: u64) -> Result<Option<Record>, StoreError> {
        Ok(self.records.get(&position).map(Held::open))
    }

    fn scan(
        &self,
        range: Range<u64>,
        f: &mut dyn FnMut(u64, Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        if range.start < range.end {
            let mut records = self.records.range(range).map(|(position, held)| (*position, held.open()));
            let _ = records.try_for_each(|(position, record)| f(position, record));
        }
        Ok(())
    }

    fn skim(
        &self,
        range: Range<u64>,
        wanted: &dyn Fn(&Header, &str) -> bool,
        f: &mut dyn FnMut(u64, Skimmed<'_>) -> ControlFlow<()>,
    ) -> Result<bool, StoreError> {
        let mut is_readable = true;
        self.scan(range, &mut |position, record| {
            let (header, body) = (record.header(), record.body());
            is_readable = body.fields().iter().all(|field| body.text(field).is_some());
            if !is_readable {
                return ControlFlow::Break(());
            }
            let fields = body.fields().iter().filter(|field| wanted(header, field.pointer.as_str()));
            let fields = fields
                .filter_map(|field| Some((field.pointer.as_str(), Cow::Borrowed(body.text(field)?))))
                .collect();
            f(position, Skimmed { id: record.id(), header, fields })
        })?;
        Ok(is_readable)
    }

    fn entries(
        &self,
        range: Range<u64>,
        f: &mut dyn FnMut(u64, Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        if range.start < range.end {
            let mut held = self.records.range(range);
            let _ = held.try_for_each(|(position, held)| {
                let header = held.header();
                let (kind, run, tick) = (header.kind, header.run.clone(), header.tick);
                f(*position, Entry { hash: held.id(), kind, run, tick })
            });
        }
        Ok(())
    }

    fn find(&self, id: &Digest) -> Result<Option<u64>, StoreError> {
        Ok(self.ids.get(id).copied())
    }

    fn find_prefix(&self, hex: &str, limit: usize) -> Result<Vec<(Digest, u64)>, StoreError> {
        let Some(first) = prefix_start(hex) else { return Ok(Vec::new()) };
        let from = self.ids.range(first..).map(|(id, position)| (*id, *position));
        Ok(from.take_while(|(id, _)| id.hex().starts_with(hex)).take(limit).collect())
    }

    fn at(&self, run: &RunName, tick: u64) -> Result<Option<u64>, StoreError> {
        Ok(self.runs.get(run).and_then(|run| run.chain.get(&tick).copied()))
    }

    fn run(&self, run: &RunName) -> Result<Option<RunSummary>, StoreError> {
        self.summary(run)
    }

    fn runs(&self, from: u64, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        let names = self.begins.range(from..).map(|(_, name)| name);
        Ok(names.filter_map(|name| self.runs.get(name)).map(|run| run.summary.clone()).take(limit).collect())
    }

    fn positions(
        &self,
        run: &RunName,
        ticks: RangeInclusive<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, u64)>, StoreError> {
        let run = self.runs.get(run).filter(|_| ticks.start() <= ticks.end());
        let chain = run.into_iter().flat_map(|run| run.chain.range(ticks.clone()));
        Ok(chain.map(|(tick, position)| (*tick, *position)).take(limit).collect())
    }

    fn beside(&self, run: &RunName, from: u64, limit: usize) -> Result<Vec<(u64, Kind)>, StoreError> {
        let beside = self.runs.get(run).into_iter().flat_map(|run| run.beside.range(from..));
        Ok(beside.map(|(position, kind)| (*position, *kind)).take(limit).collect())
    }

    fn covers_log(&self) -> bool {
        self.records.len() as u64 == self.tree.size
    }

    fn proven(&self, position: u64) -> Result<Option<Record>, StoreError> {
        let Some(record) = self.get(position)? else { return Ok(None) };
        if self.is_proven {
            return Ok(Some(record));
        }
        // Without gaps the records themselves have a root.
        let mut peaks = Peaks::new();
        self.entries(0..self.tree.size, &mut |at, entry| {
            if at != peaks.size() {
                return ControlFlow::Break(());
            }
            peaks.push(leaf_hash(&entry.text()));
            ControlFlow::Continue(())
        })?;
        match (peaks.size(), peaks.root()) == (self.tree.size, self.tree.root) {
            true => Ok(Some(record)),
            false => Err(not_in_tree(position, &record)),
        }
    }
}

impl KeepDerived for Memory {
    fn key(&self) -> Option<&Arc<SigningKey>> {
        self.key.as_ref()
    }

    fn keep(&self, slot: Slot<'_>, bytes: &[u8]) -> Result<(), StoreError> {
        match slot {
            Slot::Snapshot(run, tick) => {
                let mut snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
                snapshots.entry(run.clone()).or_default().insert(tick, bytes.to_vec());
            }
            Slot::Verdicts(run, question) => {
                let mut verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
                verdicts.insert((run.clone(), *question), bytes.to_vec());
            }
            Slot::Tile { run, place, seen } => {
                let mut tiles = self.tiles.lock().unwrap_or_else(PoisonError::into_inner);
                tiles.put(run, place, seen.unwrap_or(self.tree.size), bytes);
            }
        }
        Ok(())
    }

    fn kept(&self, slot: Slot<'_>) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        match slot {
            Slot::Snapshot(run, tick) => {
                let snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
                let newest = snapshots.get(run).and_then(|of_run| of_run.range(..=tick).next_back());
                Ok(newest.map(|(tick, bytes)| (*tick, bytes.clone())))
            }
            Slot::Verdicts(run, question) => {
                let verdicts = self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(verdicts.get(&(run.clone(), *question)).map(|bytes| (0, bytes.clone())))
            }
            Slot::Tile { run, place, .. } => {
                let tiles = self.tiles.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(tiles.get(run, place).map(|bytes| (0, bytes.to_vec())))
            }
        }
    }
}

impl AppendLog for Memory {
    fn append(&mut self, records: &[Record]) -> Result<Range<u64>, StoreError> {
        self.check_tags()?;
        self.append_group(records)
    }

    fn submit(&mut self, records: &[Record]) -> Result<Ticket, StoreError> {
        self.append(records)?;
        Ok(Ticket { number: 0, size: self.tree.size })
    }

    fn wait(&mut self, _: Ticket) -> Result<(), StoreError> {
        Ok(())
    }

    fn set_writer(&mut self, writer: LogWriter) {
        self.writer = self.keys().map_or(LogWriter::Missing, |keys| writer.under(keys.now()));
    }

    fn group_of(&self, position: u64) -> Result<Option<GroupEnd>, StoreError> {
        let at = self.groups.partition_point(|group| group.tree.size <= position);
        Ok(self.groups.get(at).filter(|group| group.begin <= position).copied())
    }

    fn untagged(&self) -> Result<Option<Vec<Range<u64>>>, StoreError> {
        Ok(self.tags().map(|tags| tags.untagged().to_vec()))
    }

    fn adopt(&mut self, to: TreeHead) -> Result<(), StoreError> {
        check_adopted(
            self.groups.iter().rev().find(|group| group.tree.size == to.size).map(|group| group.tree),
            to,
        )?;
        self.adopted = self.adopted.max(to.size);
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        Ok(())
    }
}

impl EraseValues for Memory {
    fn erase(&mut self, record: &Record, targets: &[(u64, Vec<Pointer>)]) -> Result<u64, StoreError> {
        check_erase(record)?;
        if let Some((position, _)) = targets.iter().find(|(position, _)| !self.records.contains_key(position))
        {
            return Err(StoreError::NoPosition(*position));
        }
        let at = self.append(std::slice::from_ref(record))?.start;
        for (position, places) in targets {
            let target = self.records.get_mut(position).expect("checked above");
            *target = Held::Open(target.open().without(places));
        }
        let mut snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        snapshots.clear();
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.tiles.lock().unwrap_or_else(PoisonError::into_inner).forget(self.tree.size);
        Ok(at)
    }
}

impl SignLog for Memory {
    fn sign_after(
        &mut self,
        key: &SigningKey,
        last: &mut LastRecord<'_>,
        may: &mut MaySign<'_>,
    ) -> Result<Option<SignedNote>, StoreError> {
        self.writable()?;
        self.check_tags()?;
        let is_another = self.keys()?.now() != key.verifier_key();
        if let Some(record) = last(self)? {
            // A new key tags the group of the record that brings it.
            let writer = if is_another { LogWriter::of(key) } else { self.writer.clone() };
            let before = std::mem::replace(&mut self.writer, writer);
            if let Err(error) = self.append_group(std::slice::from_ref(&record)) {
                self.writer = before;
                return Err(error);
            }
        }
        if is_another && self.keys()?.now() != key.verifier_key() {
            return Err(StoreError::NoWriter);
        }
        let checkpoint = Checkpoint::new(&self.info.id.origin(), self.tree.size, self.tree.root)?;
        let note = checkpoint.sign(key)?;
        if !may(self, &checkpoint)? {
            return Ok(None);
        }
        self.checkpoint = Some(note.clone());
        Ok(Some(note))
    }

    fn checkpoint(&self) -> Result<Option<SignedNote>, StoreError> {
        Ok(self.checkpoint.clone())
    }
}

impl KeepSecrets for Memory {
    fn put_secrets(&mut self, secrets: &[(Digest, Vec<u8>)], given: Given<'_>) -> Result<bool, StoreError> {
        check_sizes(secrets)?;
        self.writable()?;
        self.check_tags()?;
        let holds = self.holds(given)?;
        if holds {
            self.secrets.extend(secrets.iter().cloned());
        }
        Ok(holds)
    }

    fn get_secret(&self, name: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.secrets.get(name).cloned())
    }

    fn remove_secrets(&mut self, names: &[Digest], given: Given<'_>) -> Result<bool, StoreError> {
        self.writable()?;
        self.check_tags()?;
        let holds = self.holds(given)?;
        if holds {
            self.secrets.retain(|name, _| !names.contains(name));
        }
        Ok(holds)
    }

    fn secrets(&self) -> Result<Vec<Digest>, StoreError> {
        Ok(self.secrets.keys().copied().collect())
    }
}

/// Refuses to adopt up to a tree that the log does not have.
pub fn check_adopted(found: Option<TreeHead>, to: TreeHead) -> Result<(), StoreError> {
    if found == Some(to) || to.size == 0 {
        return Ok(());
    }
    let (expected, found) = (format!("the root {} at size {}", to.root, to.size), "another".to_owned());
    let (kind, place, what) = (DamageKind::Loss, DamagePlace::default(), "root of the log");
    Err(Damage { kind, place, what, expected, found }.into())
}

/// Refuses anything but an `erase` record to announce an erasure.
pub fn check_erase(record: &Record) -> Result<(), StoreError> {
    if record.header().kind == Kind::Erase {
        return Ok(());
    }
    Err(StoreError::Unsupported("values are erased by a record of kind erase"))
}

/// Returns the lowest digest that begins with these lower-case hex digits; `None` for any other text.
pub fn prefix_start(hex: &str) -> Option<Digest> {
    let digits = hex.bytes().all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c));
    if !digits || hex.len() > 64 {
        return None;
    }
    let padded = format!("{hex:0<64}");
    Some(Digest(dendrer_object::digest::unhex(&padded)?.try_into().ok()?))
}
