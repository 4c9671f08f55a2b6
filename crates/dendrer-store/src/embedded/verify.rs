//! Verifying a whole store: every frame, every record, every chain, the tree, the checkpoint and the index.
//!
//! Trusts no derived data. Never repairs, and continues after the first finding.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::thread;

use dendrer_object::note::VerifierKey;
use dendrer_object::record::{Header, Kind};
use dendrer_object::{Digest, Record, RunName};

use super::Embedded;
use super::sealing::{SEALED_TOGETHER, WAITING_BYTES};
use super::walk::WalkItem;
use crate::error::{Damage, DamageKind, DamagePlace, StoreError};
use crate::fence::check_head;
use crate::frame::At;
use crate::index::{self, IndexDifference};
use crate::layout::{RawRecord, Unsealed};
use crate::meter::Meter;
use crate::ordered::in_order;
use crate::segments::place_name;
use crate::store::{RunSummary, TreeHead};

/// The parts that are verified besides the log itself.
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    /// Keys that may have signed the checkpoint, besides that of the store.
    pub keys: Vec<VerifierKey>,
    /// Whether the index is compared with what follows from the log.
    pub index: bool,
    /// Counts the records that were read, and stops the walk.
    pub meter: Meter,
}

/// The result of a verification.
#[derive(Debug, Clone)]
pub struct LogReport {
    /// The tree that the records have; its root was computed if `root_checked`.
    pub tree: TreeHead,
    /// Whether the root was computed from all records.
    pub root_checked: bool,
    /// How many records were sealed again and compared.
    pub records: u64,
    /// How many of them have values that were erased or withheld.
    pub closed: u64,
    /// The size of the signed checkpoint, if there is one.
    pub checkpoint: Option<u64>,
    /// How many records the compared index covers.
    pub indexed: Option<u64>,
    /// Whether bytes at the end were never committed.
    pub unfinished: bool,
    /// The findings, in order of the log.
    pub findings: Vec<Damage>,
}

/// How many findings are kept: enough to see what happened.
const FINDINGS_MAX: usize = 10_000;

struct Verifier {
    store: dendrer_object::StoreId,
    report: LogReport,
    /// Each run, and how much was hidden when its last record was read.
    runs: HashMap<RunName, (RunSummary, u64)>,
    /// The begin of each id that was seen, and its tick and kind: what later records may name.
    seen: HashMap<u64, (Kind, Option<u64>)>,
    /// The size of the checkpoint, and the root that the log has there.
    signed: Option<(u64, Option<Digest>)>,
    /// How often damage hid records so far. A record that names them, or follows them, is then no finding of its own.
    hidden: u64,
}

impl Embedded {
    /// Verifies everything that this store holds.
    pub fn verify(&self, options: &VerifyOptions) -> Result<LogReport, StoreError> {
        self.verify_handing_over(options, None)
    }

    /// As [`Embedded::verify`], and passes on each record that has the id it was filed under, in the order of the log
    /// and with its position, so that further checks need not read the records again.
    pub fn verify_handing_over(
        &self,
        options: &VerifyOptions,
        f: Option<&mut dyn FnMut(u64, Record)>,
    ) -> Result<LogReport, StoreError> {
        let empty = TreeHead { size: 0, root: dendrer_object::merkle::empty_root() };
        let report = LogReport {
            tree: empty,
            root_checked: true,
            records: 0,
            closed: 0,
            checkpoint: None,
            indexed: None,
            unfinished: false,
            findings: Vec::new(),
        };
        let mut verifier = Verifier {
            store: self.info.id,
            report,
            runs: HashMap::new(),
            seen: HashMap::new(),
            signed: None,
            hidden: 0,
        };
        let mut kept = self.verify_signature(options, &mut verifier)?;
        if kept.is_some_and(|(size, _)| size > self.size()) && self.is_made_anew()? {
            // It is the checkpoint of another backup than this handle reads.
            kept = None;
        }
        verifier.signed = kept.as_ref().map(|(size, _)| (*size, (*size == 0).then_some(empty.root)));
        thread::scope(|scope| {
            // Neither needs the other.
            let index = || self.verify_index();
            let beside = options.index.then(|| {
                thread::Builder::new().name("dendrer-index-check".into()).spawn_scoped(scope, index)
            });
            self.verify_log(&mut verifier, &options.meter, f)?;
            verifier.check_checkpoint(kept);
            verifier.check_handle(self);
            let (indexed, findings) = match beside {
                None => (None, Vec::new()),
                Some(Ok(beside)) => beside.join().unwrap_or_else(|panic| resume_unwind(panic))?,
                // Without a thread, one thing is done after the other.
                Some(Err(_)) => index()?,
            };
            verifier.report.indexed = indexed;
            // Of a log that is not whole the index knows more than follows from it, which is no fault of the index.
            if verifier.report.findings.is_empty() {
                findings.into_iter().for_each(|damage| verifier.find(damage));
            }
            Ok(verifier.report)
        })
    }

    /// Walks the log, seals what it holds, and looks at all of it in order.
    fn verify_log(
        &self,
        verifier: &mut Verifier,
        meter: &Meter,
        mut f: Option<&mut dyn FnMut(u64, Record)>,
    ) -> Result<(), StoreError> {
        let is_wanted = f.is_some();
        let mut take = |looked_at: Vec<LookedAt>| {
            for item in looked_at {
                if let Some((position, record)) = verifier.item(item, meter)
                    && let Some(f) = &mut f
                {
                    f(position, record);
                }
            }
        };
        in_order(&|items| look_at(items, is_wanted), |line| {
            let (mut items, mut bytes) = (Vec::with_capacity(SEALED_TOGETHER), 0);
            self.walk(&mut |item| {
                if let WalkItem::Record { raw, .. } = &item {
                    bytes += raw.texts.len();
                }
                items.push(item);
                if items.len() == SEALED_TOGETHER || bytes >= WAITING_BYTES {
                    bytes = 0;
                    line.push(std::mem::take(&mut items));
                    while let Some(looked_at) = line.take() {
                        take(looked_at);
                    }
                }
                if meter.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            meter.check()?;
            line.push(items);
            while let Some(looked_at) = line.take_any() {
                take(looked_at);
            }
            Ok(())
        })
    }

    /// Checks the signature of the checkpoint, and returns what it says.
    fn verify_signature(
        &self,
        options: &VerifyOptions,
        verifier: &mut Verifier,
    ) -> Result<Option<(u64, Digest)>, StoreError> {
        let (note, checkpoint) = match self.read_checkpoint() {
            Ok(Some(kept)) => kept,
            Ok(None) => return Ok(None),
            Err(StoreError::Damaged(damage)) => {
                verifier.find(*damage);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let known = self.log_keys()?;
        let mut keys: Vec<_> = known.at(checkpoint.size()).into_iter().cloned().collect();
        keys.extend(options.keys.iter().cloned());
        if let Err(error) = note.verify(&keys) {
            let place = DamagePlace { file: "checkpoint".into(), ..DamagePlace::default() };
            let (expected, found) = ("one by a known key".into(), error.to_string());
            verifier.find(Damage { kind: DamageKind::Signature, place, what: "signature", expected, found });
        }
        Ok(Some((checkpoint.size(), checkpoint.root())))
    }

    /// Returns where the index says something else than the log, if it does.
    pub fn index_differs(&self) -> Result<Option<Damage>, StoreError> {
        self.check_owner()?;
        match self.index {
            Some(_) => Ok(self.verify_index()?.1.into_iter().next()),
            None => Ok(None),
        }
    }

    /// Returns how many records the index covers, if there is one, and how it differs from what follows from the log.
    fn verify_index(&self) -> Result<(Option<u64>, Vec<Damage>), StoreError> {
        let path = self.index_path();
        let place = || DamagePlace { file: "index.sqlite".into(), ..DamagePlace::default() };
        let broken = |found| {
            let (kind, what, expected) = (DamageKind::Index, "index", "an index of this store".into());
            vec![Damage { kind, place: place(), what, expected, found }]
        };
        let index = match index::Index::open(&path, self.info.id) {
            Ok((index, _)) => index,
            Err(index::NoIndex::Corrupt(found)) => return Ok((None, broken(found))),
            Err(_) => return Ok((None, Vec::new())),
        };
        if let Err(StoreError::IndexDamaged(found)) = index.check() {
            return Ok((None, broken(found)));
        }
        let (covered, differences) = match index::compare(&index, &self.segments, self.info.id) {
            Err(StoreError::IndexDamaged(found)) => return Ok((None, broken(found))),
            compared => compared?,
        };
        let different = |IndexDifference { table, missing, surplus, example }| {
            let (kind, what) = (DamageKind::Index, "rows of the index");
            let expected = format!("table {table} as the log says");
            let found = format!("{missing} rows missing or different, {surplus} too many, such as {example}");
            Damage { kind, place: place(), what, expected, found }
        };
        Ok((Some(covered), differences.into_iter().map(different).collect()))
    }
}

/// The result of a walk.
enum LookedAt {
    /// A record, and whether it is the one that it was filed as: itself, where it is wanted.
    Record(Box<Sealed>),
    Other(WalkItem),
}

struct Sealed {
    position: u64,
    at: At,
    id: Digest,
    header: Header,
    is_closed: bool,
    record: Result<Option<Record>, Unsealed>,
}

/// Seals the records among items.
fn look_at(items: Vec<WalkItem>, is_wanted: bool) -> Vec<LookedAt> {
    let mut raws = Vec::with_capacity(items.len());
    let mut looked_at = Vec::with_capacity(items.len());
    for item in items {
        looked_at.push(match item {
            WalkItem::Record { position, frame, raw } => {
                let (id, header, at) = (raw.id, raw.header.clone(), At::from_u64(frame));
                let is_closed = raw.fields.iter().any(|field| field.text.is_none());
                raws.push(*raw);
                LookedAt::Record(Box::new(Sealed { position, at, id, header, is_closed, record: Ok(None) }))
            }
            item => LookedAt::Other(item),
        });
    }
    let mut all = RawRecord::seal_each(raws).into_iter();
    for item in &mut looked_at {
        if let LookedAt::Record(sealed) = item {
            let record = all.next().expect("one for each record");
            sealed.record = record.map(|record| is_wanted.then_some(record));
        }
    }
    looked_at
}

impl Verifier {
    fn find(&mut self, damage: Damage) {
        if self.report.findings.len() < FINDINGS_MAX && !self.report.findings.contains(&damage) {
            self.report.findings.push(damage);
        }
    }

    /// Takes in what a walk came to; returns a record that is the one that it was filed as.
    fn item(&mut self, item: LookedAt, meter: &Meter) -> Option<(u64, Record)> {
        let item = match item {
            LookedAt::Record(sealed) => {
                // The walk looks whether it was cancelled.
                let _ = meter.add(1);
                return self.record(*sealed);
            }
            LookedAt::Other(item) => item,
        };
        match item {
            WalkItem::Record { .. } => unreachable!("records come sealed"),
            WalkItem::Commit { size, root, root_checked } => {
                self.report.tree = TreeHead { size, root };
                self.report.root_checked &= root_checked;
                if let Some((signed, found)) = &mut self.signed
                    && *signed == size
                {
                    *found = Some(root);
                }
            }
            WalkItem::Damage(damage) => {
                self.hidden += 1;
                self.find(*damage);
            }
            WalkItem::Unreadable { position, id, header, damage } => {
                let place = damage.place.clone();
                self.find(*damage);
                self.references(&header, &place);
                self.chain(position, id, &header, &place);
                self.seen.entry(key(&id)).or_insert((header.kind, header.tick));
            }
            WalkItem::Unfinished { .. } => self.report.unfinished = true,
        }
        None
    }

    fn record(&mut self, sealed: Sealed) -> Option<(u64, Record)> {
        let Sealed { position, at, id, header, is_closed, record } = sealed;
        self.report.closed += u64::from(is_closed);
        let place = DamagePlace {
            file: place_name(at.segment),
            offset: Some(at.offset.into()),
            position: Some(position),
            record: Some(id),
            run: header.run.clone(),
            tick: header.tick,
        };
        let record = record.map_err(|unsealed| {
            let found = match unsealed {
                Unsealed::Invalid(why) => why,
                Unsealed::Differs(found) => found.to_string(),
            };
            let (kind, what) = (DamageKind::Content, "id of the record");
            let expected = id.to_string();
            self.find(Damage { kind, place: place.clone(), what, expected, found });
        });
        self.report.records += u64::from(record.is_ok());
        if header.store != self.store {
            let (expected, found) = (self.store.to_string(), header.store.to_string());
            let (kind, what) = (DamageKind::Content, "store of the record");
            self.find(Damage { kind, place: place.clone(), what, expected, found });
        }
        self.references(&header, &place);
        self.chain(position, id, &header, &place);
        self.seen.entry(key(&id)).or_insert((header.kind, header.tick));
        record.ok().flatten().map(|record| (position, record))
    }

    fn references(&mut self, header: &Header, place: &DamagePlace) {
        let named = header.links.iter().map(|link| link.hash).chain(header.head);
        for id in named.collect::<Vec<_>>() {
            if !self.seen.contains_key(&key(&id)) && self.hidden == 0 {
                let (kind, what, found) = (DamageKind::Chain, "link or head", "none".into());
                let expected = format!("an earlier record {id}");
                self.find(Damage { kind, place: place.clone(), what, expected, found });
            }
        }
    }

    fn chain(&mut self, position: u64, id: Digest, header: &Header, place: &DamagePlace) {
        let Some(name) = &header.run else { return };
        let mut problem = None;
        let hidden = self.hidden;
        match (self.runs.get_mut(name), header.kind) {
            (None, kind) => {
                if kind != Kind::Run && hidden == 0 {
                    problem = Some(("run", "one that began".into(), "one that did not".into()));
                }
                let parent = header.prev.and_then(|prev| self.seen.get(&key(&prev)));
                let parent_tick = parent.and_then(|(_, tick)| *tick);
                let summary = RunSummary::begin(name.clone(), position, id, header, parent_tick);
                self.runs.insert(name.clone(), (summary, hidden));
            }
            (Some(_), Kind::Run) => {
                problem = Some(("begin of the run", "a new name".into(), "a run that exists".into()));
            }
            (Some((summary, before)), _) => {
                if let Err(error) = check_head(summary, header)
                    && *before == hidden
                {
                    let expected = summary.head.to_string();
                    problem = Some(("chain of the run", expected, error.to_string()));
                }
                summary.add(position, id, header);
                *before = hidden;
            }
        }
        if let Some((what, expected, found)) = problem {
            self.find(Damage { kind: DamageKind::Chain, place: place.clone(), what, expected, found });
        }
    }

    fn check_checkpoint(&mut self, kept: Option<(u64, Digest)>) {
        let Some((size, root)) = kept else { return };
        self.report.checkpoint = Some(size);
        let found = self.signed.and_then(|(_, found)| found);
        if found == Some(root) {
            return;
        }
        let place = DamagePlace { file: "checkpoint".into(), ..DamagePlace::default() };
        let expected = format!("{size} records with root {root}, as was signed");
        let found = match found {
            Some(found) => found.to_string(),
            None => format!("{} records", self.report.tree.size),
        };
        self.find(Damage { kind: DamageKind::Loss, place, what: "log", expected, found });
    }

    /// Adds what the handle knows and the walk cannot: loss, and files that are gone.
    fn check_handle(&mut self, store: &Embedded) {
        use crate::store::ReadLog as _;
        if let Some(StoreError::Damaged(damage) | StoreError::Lost(damage)) = store.trouble().as_deref() {
            let same = |known: &Damage| {
                (&known.place.file, known.place.offset) == (&damage.place.file, damage.place.offset)
            };
            if !self.report.findings.iter().any(same) {
                self.find((**damage).clone());
            }
        }
        let (seen, walked) = (store.tree(), self.report.tree);
        if seen.size > walked.size || (seen.size == walked.size && seen.root != walked.root) {
            let place = DamagePlace { file: "segments".into(), ..DamagePlace::default() };
            let expected = format!("{} records with root {}, as this handle knows", seen.size, seen.root);
            let found = format!("{} records with root {}", walked.size, walked.root);
            self.find(Damage { kind: DamageKind::Loss, place, what: "log", expected, found });
        }
    }
}

fn key(id: &Digest) -> u64 {
    u64::from_le_bytes(id.0[..8].try_into().expect("eight of 32 bytes"))
}
