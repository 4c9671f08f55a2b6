//! A store that is written on the public contract alone, as another crate would write it.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range, RangeInclusive};
use std::sync::{Arc, Mutex};

use dendrer_object::merkle::{Peaks, leaf_hash};
use dendrer_object::note::{Checkpoint, SignedNote, SigningKey};
use dendrer_object::record::{Entry, Kind};
use dendrer_object::{Digest, Pointer, Record, RunName};
use dendrer_store::conformance::{self, Subject};
use dendrer_store::fence::{self, Known, Log};
use dendrer_store::prelude::*;
use dendrer_store::{
    Given, GroupEnd, LastRecord, LogWriter, MaySign, RunSummary, SECRET_SIZE_MAX, Shared, Slot, StoreError,
    StoreInfo, Tags, Ticket, TreeHead,
};

/// Kept bytes, by run, question and tick.
type Kept = BTreeMap<(RunName, Option<Digest>, u64), Vec<u8>>;

/// Records in a list, and no lookups: everything is found by reading it.
#[derive(Debug)]
struct Listed {
    info: StoreInfo,
    records: Vec<Record>,
    peaks: Peaks,
    note: Option<SignedNote>,
    writer: LogWriter,
    groups: Vec<GroupEnd>,
    adopted: u64,
    kept: Mutex<Kept>,
    secrets: BTreeMap<Digest, Vec<u8>>,
}

impl Listed {
    fn new(info: StoreInfo) -> Listed {
        Listed {
            info,
            records: Vec::new(),
            peaks: Peaks::new(),
            note: None,
            writer: LogWriter::default(),
            groups: Vec::new(),
            adopted: 0,
            kept: Mutex::default(),
            secrets: BTreeMap::new(),
        }
    }

    /// Whether what was given for a change of the kept bytes holds.
    fn holds(&self, given: Given<'_>) -> Result<bool, StoreError> {
        given.holds(&mut |name| Ok(self.secrets.contains_key(name)), &mut || self.secrets())
    }

    /// What the tags of the groups behind the checkpoint say; `None` without a secret.
    fn tags(&self) -> Option<Tags> {
        let secret = self.writer.secret()?;
        let keys = self.keys().ok()?;
        let signed = self.note.as_ref().and_then(|note| keys.open(note).ok());
        let signed = signed.map_or(0, |signed| signed.size().max(keys.changed_at()));
        let mut tags = Tags::default();
        tags.pass(signed.max(self.adopted));
        self.groups.iter().for_each(|group| tags.look(secret, self.info.id, group));
        Some(tags)
    }

    fn check_writer(&self) -> Result<(), StoreError> {
        match &self.writer {
            LogWriter::Missing => Err(StoreError::NoWriter),
            _ => self.tags().map_or(Ok(()), |tags| tags.check()),
        }
    }

    fn numbered(&self) -> impl Iterator<Item = (u64, &Record)> {
        (0..).zip(&self.records)
    }

    fn of<'s>(&'s self, run: &'s RunName) -> impl Iterator<Item = (u64, &'s Record)> {
        self.numbered().filter(|(_, record)| record.header().run.as_ref() == Some(run))
    }

    fn chain<'s>(&'s self, run: &'s RunName) -> impl Iterator<Item = (u64, u64)> + 's {
        self.of(run).filter_map(|(position, record)| Some((record.header().tick?, position)))
    }
}

impl Log for Listed {
    fn summary(&self, run: &RunName) -> Result<Option<RunSummary>, StoreError> {
        let mut records = self.of(run);
        let Some((position, begin)) = records.next() else { return Ok(None) };
        let header = begin.header();
        let parent = header.prev.map_or(Ok(None), |prev| self.known(&prev))?;
        let parent_tick = parent.and_then(|parent| parent.tick);
        let mut summary = RunSummary::begin(run.clone(), position, begin.id(), header, parent_tick);
        records.for_each(|(position, record)| summary.add(position, record.id(), record.header()));
        Ok(Some(summary))
    }

    fn known(&self, id: &Digest) -> Result<Option<Known>, StoreError> {
        let found = self.records.iter().find(|record| record.id() == *id);
        Ok(found.map(|record| Known { kind: record.header().kind, tick: record.header().tick }))
    }
}

impl ReadLog for Listed {
    fn info(&self) -> &StoreInfo {
        &self.info
    }

    fn tree(&self) -> TreeHead {
        TreeHead { size: self.peaks.size(), root: self.peaks.root() }
    }

    fn trouble(&self) -> Option<Arc<StoreError>> {
        None
    }

    fn refresh(&mut self) -> Result<u64, StoreError> {
        Ok(self.tree().size)
    }

    fn get(&self, position: u64) -> Result<Option<Record>, StoreError> {
        Ok(usize::try_from(position).ok().and_then(|position| self.records.get(position)).cloned())
    }

    fn scan(
        &self,
        range: Range<u64>,
        f: &mut dyn FnMut(u64, Record) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let mut wanted = self.numbered().filter(|(position, _)| range.contains(position));
        let _ = wanted.try_for_each(|(position, record)| f(position, record.clone()));
        Ok(())
    }

    fn entries(
        &self,
        range: Range<u64>,
        f: &mut dyn FnMut(u64, Entry) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.scan(range, &mut |position, record| f(position, record.log_entry()))
    }

    fn find(&self, id: &Digest) -> Result<Option<u64>, StoreError> {
        Ok(self.numbered().find(|(_, record)| record.id() == *id).map(|(position, _)| position))
    }

    fn find_prefix(&self, hex: &str, limit: usize) -> Result<Vec<(Digest, u64)>, StoreError> {
        let found = self.numbered().filter(|(_, record)| record.id().hex().starts_with(hex));
        let mut found: Vec<_> = found.map(|(position, record)| (record.id(), position)).collect();
        found.sort_unstable();
        found.truncate(limit);
        Ok(found)
    }

    fn at(&self, run: &RunName, tick: u64) -> Result<Option<u64>, StoreError> {
        Ok(self.chain(run).find(|(at, _)| *at == tick).map(|(_, position)| position))
    }

    fn run(&self, run: &RunName) -> Result<Option<RunSummary>, StoreError> {
        self.summary(run)
    }

    fn runs(&self, from: u64, limit: usize) -> Result<Vec<RunSummary>, StoreError> {
        let begins = self.numbered().filter(|(at, record)| *at >= from && record.header().kind == Kind::Run);
        let names = begins.take(limit).filter_map(|(_, record)| record.header().run.as_ref());
        names.filter_map(|name| self.summary(name).transpose()).collect()
    }

    fn positions(
        &self,
        run: &RunName,
        ticks: RangeInclusive<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, u64)>, StoreError> {
        Ok(self.chain(run).filter(|(tick, _)| ticks.contains(tick)).take(limit).collect())
    }

    fn beside(&self, run: &RunName, from: u64, limit: usize) -> Result<Vec<(u64, Kind)>, StoreError> {
        let found = self.of(run).map(|(position, record)| (position, record.header()));
        let found =
            found.filter(|(at, header)| *at >= from && header.tick.is_none() && header.kind != Kind::Run);
        Ok(found.map(|(position, header)| (position, header.kind)).take(limit).collect())
    }

    fn covers_log(&self) -> bool {
        true
    }
}

impl AppendLog for Listed {
    fn append(&mut self, records: &[Record]) -> Result<Range<u64>, StoreError> {
        self.check_writer()?;
        let begin = self.tree().size;
        fence::check(self, self.info.id, begin, records)?;
        for record in records {
            self.peaks.push(leaf_hash(&record.entry()));
            self.records.push(record.clone());
        }
        let tree = self.tree();
        self.groups.push(GroupEnd { begin, tree, tag: self.writer.tag(self.info.id, tree) });
        Ok(begin..self.tree().size)
    }

    fn submit(&mut self, records: &[Record]) -> Result<Ticket, StoreError> {
        let size = self.append(records)?.end;
        Ok(Ticket { number: 0, size })
    }

    fn wait(&mut self, _: Ticket) -> Result<(), StoreError> {
        Ok(())
    }

    fn set_writer(&mut self, writer: LogWriter) {
        self.writer = self.keys().map_or(LogWriter::Missing, |keys| writer.under(keys.now()));
    }

    fn untagged(&self) -> Result<Option<Vec<Range<u64>>>, StoreError> {
        Ok(self.tags().map(|tags| tags.untagged().to_vec()))
    }

    fn adopt(&mut self, to: TreeHead) -> Result<(), StoreError> {
        if !self.groups.iter().any(|group| group.tree == to) {
            return Err(StoreError::Unsupported("a tree that the log does not have"));
        }
        self.adopted = to.size;
        Ok(())
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        Ok(())
    }
}

impl KeepDerived for Listed {
    fn key(&self) -> Option<&Arc<SigningKey>> {
        None
    }

    fn keep(&self, slot: Slot<'_>, bytes: &[u8]) -> Result<(), StoreError> {
        let key = match slot {
            Slot::Snapshot(run, tick) => (run.clone(), None, tick),
            Slot::Verdicts(run, question) => (run.clone(), Some(*question), 0),
            Slot::Tile { .. } => return Ok(()),
        };
        self.kept.lock().unwrap().insert(key, bytes.to_vec());
        Ok(())
    }

    fn kept(&self, slot: Slot<'_>) -> Result<Option<(u64, Vec<u8>)>, StoreError> {
        let kept = self.kept.lock().unwrap();
        let mut found = kept.iter().rev().filter(|((run, ..), _)| run == slot.run());
        let found = found.find(|((_, question, at), _)| match slot {
            Slot::Snapshot(_, tick) => question.is_none() && *at <= tick,
            Slot::Verdicts(_, asked) => question.as_ref() == Some(asked),
            Slot::Tile { .. } => false,
        });
        Ok(found.map(|((.., tick), bytes)| (*tick, bytes.clone())))
    }
}

impl SignLog for Listed {
    fn sign_after(
        &mut self,
        key: &SigningKey,
        last: &mut LastRecord<'_>,
        may: &mut MaySign<'_>,
    ) -> Result<Option<SignedNote>, StoreError> {
        self.check_writer()?;
        if let Some(record) = last(self)? {
            self.append(std::slice::from_ref(&record))?;
        }
        let TreeHead { size, root } = self.tree();
        let checkpoint = Checkpoint::new(&self.info.id.origin(), size, root)?;
        let note = checkpoint.sign(key)?;
        if !may(self, &checkpoint)? {
            return Ok(None);
        }
        self.note = Some(note.clone());
        Ok(Some(note))
    }

    fn checkpoint(&self) -> Result<Option<SignedNote>, StoreError> {
        Ok(self.note.clone())
    }
}

impl KeepSecrets for Listed {
    fn put_secrets(&mut self, secrets: &[(Digest, Vec<u8>)], given: Given<'_>) -> Result<bool, StoreError> {
        if secrets.iter().any(|(_, bytes)| bytes.len() > SECRET_SIZE_MAX) {
            return Err(StoreError::Unsupported("so many bytes under one name"));
        }
        self.check_writer()?;
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
        self.check_writer()?;
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

impl EraseValues for Listed {
    fn erase(&mut self, record: &Record, targets: &[(u64, Vec<Pointer>)]) -> Result<u64, StoreError> {
        if record.header().kind != Kind::Erase {
            return Err(StoreError::Unsupported("values are erased by a record of kind erase"));
        }
        let size = self.tree().size;
        if let Some((position, _)) = targets.iter().find(|(position, _)| *position >= size) {
            return Err(StoreError::NoPosition(*position));
        }
        let at = self.append(std::slice::from_ref(record))?.start;
        for (position, places) in targets {
            let target = &mut self.records[*position as usize];
            *target = target.without(places);
        }
        self.kept.lock().unwrap().clear();
        Ok(at)
    }
}

struct Outside;

impl Subject for Outside {
    fn create(&self, info: StoreInfo) -> Box<dyn Store> {
        Box::new(Listed::new(info))
    }

    fn reopen(&self) -> Option<Box<dyn Store>> {
        None
    }
}

#[test]
fn a_store_on_the_public_contract_conforms() {
    conformance::run(&Outside);
}

struct SharedOutside;

impl Subject for SharedOutside {
    fn create(&self, info: StoreInfo) -> Box<dyn Store> {
        Box::new(Shared::new(Box::new(Listed::new(info))))
    }

    fn reopen(&self) -> Option<Box<dyn Store>> {
        None
    }
}

#[test]
fn a_store_on_the_public_contract_conforms_when_it_is_shared() {
    conformance::run(&SharedOutside);
}
