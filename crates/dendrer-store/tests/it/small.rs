//! Every workload of at most three steps, with every call failing once in every way, and a crash at every moment.
//!
//! Most faults of file systems and databases show in very short workloads, so these are not drawn but listed. The oracle is
//! a list of records: what was acknowledged is there, in its place; what is there was asked for; a group is there whole or
//! not at all; a store that was left by a crash opens, verifies, and takes another group.
//!
//! By default workloads of two steps get every fault, those of three steps every crash; a crash in the first steps of a
//! longer workload is that of a shorter one. `DENDRER_DEEP=1` gives those of three steps every fault too, and all of them more seeds.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use dendrer_object::record::Kind;
use dendrer_object::{Digest, Pointer, Record, Value};
use dendrer_store::conformance::{Scribe, info, key, name, noise};
use dendrer_store::faulty::{Crash, DiskFault, Faulty};
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, Given, NewSecrets, Options, Slot, StoreError, VerifyOptions};

use crate::{deep, threads};

const DIR: &str = "/work/.dendrer";

/// One step of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Begin,
    Append,
    Commit,
    Large,
    Erase,
    Sign,
    Reopen,
    Snapshot,
    /// Another handle commits.
    Second,
    /// Destroys the values of the vault.
    Destroy,
}

const ACTS: [Act; 9] = [
    Act::Begin,
    Act::Append,
    Act::Commit,
    Act::Large,
    Act::Erase,
    Act::Sign,
    Act::Reopen,
    Act::Snapshot,
    Act::Second,
];

fn workloads(length: u32) -> impl Iterator<Item = Vec<Act>> {
    let of = move |number: usize| -> Vec<Act> {
        (0..length).map(|place| ACTS[number / ACTS.len().pow(place) % ACTS.len()]).collect()
    };
    // Values are destroyed as the last step of what put some, and that as the first or the only one before.
    let destroying = move |number: usize| {
        let mut acts = of(number);
        acts[length as usize - 1] = Act::Destroy;
        (length == 1 || acts[0] == Act::Large).then_some(acts)
    };
    let all = ACTS.len().pow(length);
    (0..all).map(of).chain((0..all / ACTS.len()).filter_map(destroying))
}

const FAULTS: [DiskFault; 5] = [
    DiskFault::Error(std::io::ErrorKind::Other),
    DiskFault::Error(std::io::ErrorKind::StorageFull),
    DiskFault::Error(std::io::ErrorKind::Interrupted),
    DiskFault::Short,
    DiskFault::Torn,
];

/// What is marked in the history beside sizes: an erasure that was acknowledged, and the size of a signed checkpoint.
const ERASED: u64 = 1 << 40;
const SIGNED: u64 = 1 << 41;
const DESTROYED: u64 = ERASED + 1;

/// The record whose value workloads erase.
const SECRET: u64 = 1;

fn options(disk: &Faulty) -> Options {
    // Small enough for the second or third group to begin a segment.
    Options { disk: Arc::new(disk.clone()), index: false, segment_size: 2200, ..Options::untagged() }
}

fn place() -> Pointer {
    "/intent/secret".parse().unwrap()
}

/// The value of the vault that a large record names.
fn vault_value(record: &Record) -> NewSecrets {
    let bytes = noise(700, record.header().tick.unwrap_or(0) + 9).into_bytes();
    NewSecrets { items: vec![(record.id(), bytes)], there: Vec::new() }
}

fn is_large(record: &Record) -> bool {
    record.body().value("/intent/keep").is_some()
}

fn large(scribe: &mut Scribe) -> Record {
    let intent = Value::record([("keep", Value::from("x")), ("secret", Value::from(noise(1500, 3)))]);
    scribe.transition("r", Value::record([("agent_id", Value::from("a")), ("intent", intent)]))
}

/// The store that every workload begins with.
struct Base {
    disk: Faulty,
    records: Vec<Record>,
    scribe: Scribe,
}

impl Base {
    fn new() -> Base {
        let disk = Faulty::new();
        let mut store = Embedded::create(Path::new(DIR), info(), options(&disk)).unwrap();
        let mut scribe = Scribe::default();
        let records = vec![scribe.begin("r"), large(&mut scribe)];
        store.append_with(&records, &[], &vault_value(&records[1])).unwrap();
        store.sync().unwrap();
        drop(store);
        Base { disk, records, scribe }
    }
}

/// A workload under way, and what must hold of it.
struct World {
    disk: Faulty,
    store: Option<Embedded>,
    scribe: Scribe,
    /// What a reader sees now.
    log: Vec<Record>,
    /// Every group that was ever asked for, and where it would begin.
    asked: Vec<(u64, Vec<Record>)>,
    /// Whether an erasure was asked for.
    erasing: bool,
    /// The values of the vault whose destruction was asked for.
    destroying: Vec<Digest>,
    runs: u32,
    /// The moment at which the last step began.
    last_step: usize,
}

impl World {
    fn new(base: &Base) -> World {
        let disk = base.disk.killed(base.disk.moments());
        disk.mark(base.records.len() as u64);
        let (log, scribe) = (base.records.clone(), base.scribe.clone());
        World {
            disk,
            store: None,
            scribe,
            log,
            asked: Vec::new(),
            erasing: false,
            destroying: Vec::new(),
            runs: 0,
            last_step: 0,
        }
    }

    /// Opens the store, past a fault.
    fn open(&mut self) -> &mut Embedded {
        if self.store.is_none() {
            let opened = (0..3).find_map(|_| Embedded::open(Path::new(DIR), options(&self.disk)).ok());
            self.store = Some(opened.expect("one fault does not keep a store closed"));
        }
        self.store.as_mut().expect("it was opened")
    }

    /// Takes the steps; an error is answered as a caller would: look what is there, and go on.
    fn perform(&mut self, acts: &[Act]) {
        self.open();
        for act in acts {
            self.last_step = self.disk.moments();
            let before = self.scribe.clone();
            let group = self.group(*act);
            if !group.is_empty() {
                self.asked.push((self.log.len() as u64, group.clone()));
            }
            let result = self.act(*act, &group);
            match result {
                Ok(acknowledged) => {
                    self.log.extend(group);
                    if acknowledged {
                        self.disk.mark(self.log.len() as u64);
                    }
                    if *act == Act::Erase {
                        self.disk.mark(ERASED);
                    }
                    if *act == Act::Sign {
                        self.disk.mark(SIGNED + self.log.len() as u64);
                    }
                }
                Err(error) => self.look(&error, group, before),
            }
        }
    }

    /// The records that a step appends.
    fn group(&mut self, act: Act) -> Vec<Record> {
        match act {
            Act::Begin => {
                self.runs += 1;
                vec![self.scribe.begin(&format!("run-{}", self.runs))]
            }
            Act::Append | Act::Second => vec![self.scribe.step("r")],
            Act::Commit => vec![self.scribe.step("r"), self.scribe.step("r")],
            Act::Large => vec![large(&mut self.scribe)],
            Act::Erase => {
                self.erasing = true;
                vec![self.scribe.beside(Kind::Erase, "r", Value::record([("at", SECRET.into())]))]
            }
            Act::Destroy => {
                self.destroying = self.log.iter().filter(|record| is_large(record)).map(Record::id).collect();
                vec![]
            }
            Act::Sign | Act::Reopen | Act::Snapshot => vec![],
        }
    }

    /// Takes a step, and tells whether everything before is acknowledged after it.
    fn act(&mut self, act: Act, group: &[Record]) -> Result<bool, StoreError> {
        let (disk, destroying) = (self.disk.clone(), self.destroying.clone());
        let store = self.open();
        match act {
            Act::Append => store.append(group).map(|_| false),
            Act::Begin | Act::Commit => store.commit(group).map(|_| true),
            Act::Large => {
                store.append_with(group, &[], &vault_value(&group[0]))?;
                store.sync().map(|_| true)
            }
            Act::Destroy => {
                store.remove_secrets(&destroying, Given::default())?;
                self.disk.mark(DESTROYED);
                Ok(true)
            }
            Act::Erase => store.erase(&group[0], &[(SECRET, vec![place()])]).map(|_| true),
            Act::Sign => store.sign_checkpoint(&key()).map(|_| true),
            Act::Reopen => {
                self.store = None;
                self.store = Some(Embedded::open(Path::new(DIR), options(&disk))?);
                Ok(false)
            }
            Act::Snapshot => {
                store.keep(Slot::Snapshot(&name("r"), 1), b"bytes")?;
                let kept = store.kept(Slot::Snapshot(&name("r"), 5))?;
                assert!(kept.is_none_or(|kept| kept == (1, b"bytes".to_vec())));
                Ok(false)
            }
            // What the first handle appended and did not sync is synced by this one, in the same file or before.
            Act::Second => {
                let mut second = Embedded::open(Path::new(DIR), options(&disk))?;
                second.commit(group).map(|_| true)
            }
        }
    }

    /// After an error a group is there or it is not; nothing in between.
    fn look(&mut self, error: &StoreError, group: Vec<Record>, before: Scribe) {
        if self.store.as_ref().is_some_and(|store| store.trouble().is_some()) {
            self.store = None;
        }
        let expected = self.log.len() as u64;
        let store = self.open();
        let size = (0..3).find_map(|_| store.refresh().ok()).expect("one fault does not last");
        if size == expected + group.len() as u64 {
            self.log.extend(group);
        } else {
            assert_eq!(size, expected, "a group is half there after: {error}");
            self.scribe = before;
        }
    }

    /// What must hold at the end, on the disk as it is.
    fn check(&mut self) {
        self.disk.heal();
        self.store = None;
        let size = self.log.len() as u64;
        let log = self.log.clone();
        let erasing = self.erasing;
        assert_eq!(self.open().tree().size, size);
        let destroying = self.destroying.clone();
        let store = self.open();
        for (position, record) in (0..).zip(&log) {
            check_record(store, position, record, erasing, false);
            check_value(store, record, &destroying, false);
        }
        check_verifies(store);
    }

    /// What must hold on what a crash left.
    fn check_crash(&self, image: &Faulty, moment: usize) {
        let marks = self.disk.marks(moment);
        let sizes = marks.iter().copied().filter(|mark| *mark < ERASED);
        let acknowledged = sizes.max().unwrap_or(0);
        let is_erased = marks.contains(&ERASED);
        let signed = marks.iter().filter_map(|mark| mark.checked_sub(SIGNED)).max();
        let mut store = Embedded::open(Path::new(DIR), options(image)).unwrap();
        let size = store.tree().size;
        assert!(size >= acknowledged, "{size} of {acknowledged} records");
        let is_destroyed = marks.contains(&DESTROYED);
        for (position, record) in (0..acknowledged).zip(&self.log) {
            check_record(&store, position, record, self.erasing, is_erased);
            check_value(&store, record, &self.destroying, is_destroyed);
        }
        // Behind what was acknowledged stands what was asked for, in whole groups.
        let mut next = acknowledged;
        while next < size {
            let whole = |(begin, group): &&(u64, Vec<Record>)| {
                *begin == next
                    && (*begin..).zip(group).all(|(position, record)| {
                        store
                            .get(position)
                            .is_ok_and(|read| read.is_some_and(|read| read.id() == record.id()))
                    })
            };
            let found = self.asked.iter().find(whole).expect("what is there was asked for, and is whole");
            found.1.iter().for_each(|record| check_value(&store, record, &self.destroying, false));
            next += found.1.len() as u64;
        }
        assert_eq!(next, size, "no group is there by half");
        if let Some(signed) = signed {
            let kept = store.checkpoint().unwrap().expect("a signed checkpoint is remembered");
            let kept = dendrer_object::note::Checkpoint::parse(kept.text()).unwrap();
            assert!(kept.size() >= signed);
        }
        check_verifies(&store);
        let mut scribe = self.scribe.clone();
        let more = scribe.begin("after-the-crash");
        store.commit(std::slice::from_ref(&more)).unwrap();
        drop(store);
        let again = image.image(image.moments(), Crash::Everything);
        let store = Embedded::open(Path::new(DIR), options(&again)).unwrap();
        assert_eq!(store.tree().size, size + 1, "it goes on");
        assert_eq!(store.get(size).unwrap(), Some(more));
        check_verifies(&store);
        if is_erased {
            let content = noise(1500, 3);
            let others = self.log.iter().chain(self.asked.iter().flat_map(|(_, group)| group));
            if others.filter(|record| record.body().value("/intent/secret").is_some()).count() == 1 {
                let part = &content.as_bytes()[100..140];
                let left =
                    again.files().into_iter().find(|(_, file)| file.windows(40).any(|here| here == part));
                assert_eq!(left.map(|(path, _)| path), None, "what was erased is still on disk");
            }
        }
    }
}

fn check_record(store: &Embedded, position: u64, record: &Record, may_be_erased: bool, is_erased: bool) {
    let read = store.get(position).unwrap().unwrap();
    let without = record.without(&[place()]);
    match (position == SECRET, is_erased, may_be_erased) {
        (true, true, _) => assert_eq!(read, without),
        (true, false, true) => assert!(read == *record || read == without),
        _ => assert_eq!(read, *record),
    }
}

/// A large record has its value, unless that is destroyed.
fn check_value(store: &Embedded, record: &Record, destroying: &[Digest], is_destroyed: bool) {
    if is_large(record) {
        let found = store.get_secret(&record.id()).unwrap();
        match destroying.contains(&record.id()) {
            true => assert!(!is_destroyed || found.is_none()),
            false => assert!(found.as_ref() == Some(&vault_value(record).items[0].1)),
        }
    }
}

fn check_verifies(store: &Embedded) {
    assert!(store.trouble().is_none(), "{:?}", store.trouble());
    let report = store.verify(&VerifyOptions::default()).unwrap();
    assert_eq!(report.findings, []);
    assert!(report.root_checked && !report.unfinished);
    assert_eq!((report.tree, report.records), (store.tree(), store.tree().size));
}

/// Says what was being tried, if it fails.
fn trying(what: &str, f: impl FnOnce()) {
    if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)) {
        println!("failed: {what}");
        std::panic::resume_unwind(panic);
    }
}

/// Runs `f` on every workload, on as many threads as there are processors.
fn each(workloads: Vec<Vec<Act>>, f: impl Fn(&Base, &[Act]) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads() {
            scope.spawn(|| {
                let base = Base::new();
                while let Some(acts) = workloads.get(next.fetch_add(1, Ordering::Relaxed)) {
                    f(&base, acts);
                }
            });
        }
    });
}

fn seeds() -> u64 {
    if deep() { 8 } else { 1 }
}

/// Crashes at every moment from `from` on: of the machine, of the process, and of the process and then of the machine.
fn crash_everywhere(world: &World, from: usize, what: &str, tried: &AtomicU64) {
    for moment in from..=world.disk.moments() {
        let mut crashes = vec![Crash::Process, Crash::Everything];
        crashes.extend((0..seeds()).map(|seed| Crash::Random(seed * 1_000_003 + moment as u64)));
        for crash in crashes {
            trying(&format!("{what}, then {crash:?} at {moment}"), || {
                world.check_crash(&world.disk.image(moment, crash), moment);
            });
            tried.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn every_short_workload_survives_a_crash_at_every_moment() {
    let tried = AtomicU64::new(0);
    let all: Vec<_> = (1..=3).flat_map(workloads).collect();
    let count = all.len();
    each(all, |base, acts| {
        let mut world = World::new(base);
        trying(&format!("{acts:?}"), || {
            world.perform(acts);
            world.check();
        });
        let from = world.last_step;
        crash_everywhere(&world, from, &format!("{acts:?}"), &tried);
    });
    println!("deep: power-loss {} states of {count} workloads", tried.into_inner());
}

#[test]
fn every_short_workload_goes_on_after_any_call_failed() {
    let (points, states) = (AtomicU64::new(0), AtomicU64::new(0));
    let longest = if deep() { 3 } else { 2 };
    let all: Vec<_> = (1..=longest).flat_map(workloads).collect();
    let count = all.len();
    each(all, |base, acts| {
        for fault in FAULTS {
            for call in 0.. {
                let mut world = World::new(base);
                let from = world.disk.moments();
                world.disk.fail(call, fault, false);
                let what = format!("{acts:?} with {fault:?} at call {call}");
                trying(&what, || world.perform(acts));
                let was_reached = !world.disk.is_pending();
                trying(&what, || world.check());
                points.fetch_add(1, Ordering::Relaxed);
                // The shortest ones get every moment, the others the end of what the fault led to.
                if acts.len() == 1 {
                    crash_everywhere(&world, from, &what, &states);
                } else {
                    let last = world.disk.moments();
                    trying(&format!("{what}, then everything unsynced is lost"), || {
                        world.check_crash(&world.disk.image(last, Crash::Everything), last);
                    });
                    states.fetch_add(1, Ordering::Relaxed);
                }
                if !was_reached {
                    break;
                }
            }
        }
    });
    println!("deep: failing-calls {} of {count} workloads", points.into_inner());
    println!("deep: power-loss {} states after them", states.into_inner());
}

/// A process is killed, another one goes on, and then the power fails: what the second one acknowledged rests on what the
/// first one wrote and never synced.
#[test]
fn what_is_acknowledged_after_a_kill_survives_a_power_cut() {
    let tried = AtomicU64::new(0);
    let all: Vec<_> = (1..=if deep() { 3 } else { 2 }).flat_map(workloads).collect();
    each(all, |base, acts| {
        let mut first = World::new(base);
        first.perform(acts);
        for moment in first.last_step..=first.disk.moments() {
            let disk = first.disk.killed(moment);
            let mut store = Embedded::open(Path::new(DIR), options(&disk)).unwrap();
            let mut scribe = first.scribe.clone();
            let more = scribe.begin("after-the-kill");
            store.commit(std::slice::from_ref(&more)).unwrap();
            let size = store.tree().size;
            let seen: Vec<_> = (0..size).map(|position| store.get(position).unwrap().unwrap()).collect();
            let voided = disk.files();
            drop(store);
            let mut crashes = vec![Crash::Everything];
            crashes.extend((0..seeds()).map(|seed| Crash::Random(seed * 7_919 + moment as u64)));
            for crash in crashes {
                trying(&format!("{acts:?}, killed at {moment}, then {crash:?}"), || {
                    let image = disk.image(disk.moments(), crash);
                    let store = Embedded::open(Path::new(DIR), Options { write: false, ..options(&image) });
                    let store = store.unwrap();
                    assert_eq!(store.tree().size, size, "what was acknowledged is there");
                    for (position, record) in (0..).zip(&seen) {
                        assert_eq!(store.get(position).unwrap().as_ref(), Some(record));
                    }
                    let report = store.verify(&VerifyOptions::default()).unwrap();
                    assert_eq!(report.findings, []);
                    // The second process took an erasure for complete, so nobody will finish it.
                    for (path, file) in image.files() {
                        if path.starts_with("/work/.dendrer/segments") {
                            let has_bytes = |file: &[u8]| {
                                first.destroying.iter().any(|id| {
                                    let record = first.log.iter().find(|record| record.id() == *id);
                                    let bytes = &vault_value(record.unwrap()).items[0].1;
                                    file.windows(40)
                                        .any(|here| bytes.chunks_exact(40).any(|part| here == part))
                                })
                            };
                            // The head of a destroyed value may be an old one, and none of its bytes.
                            let is_gone = !first.destroying.is_empty() && !has_bytes(&voided[&path]);
                            let is_same = if is_gone { !has_bytes(&file) } else { file == voided[&path] };
                            assert!(is_same, "{} has old bytes", path.display());
                        }
                    }
                });
                tried.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    println!("deep: power-loss {} states after a kill", tried.into_inner());
}
