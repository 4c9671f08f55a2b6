//! Several handles that commit at once share a sync: who is covered by which, and what happens where it goes wrong.
//!
//! That a handle did not sync is shown by a disk on which every sync fails.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dendrer_object::{Record, Value};
use dendrer_store::conformance::{Scribe, info, key};
use dendrer_store::disk::{Disk, DiskFile, Open, Real, read_file, write_all};
use dendrer_store::faulty::{Crash, DiskFault, Faulty};
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, Options, StoreError};

use crate::crash::{DIR, check_crash, options, seeds};

/// Two handles that see so much of each other that they share their syncs, and what they wrote in order.
struct Two {
    disk: Faulty,
    all: Vec<Record>,
    a: Embedded,
    b: Embedded,
    scribe: Scribe,
}

fn open(disk: &Faulty, segment_size: u64) -> Embedded {
    Embedded::open(Path::new(DIR), Options { segment_size, ..options(disk) }).unwrap()
}

/// Everything fits in it.
const LARGE: u64 = 1 << 20;

impl Two {
    /// Both have appended by turns, and nothing of what they appended last is synced. Each knows of the other's syncs that
    /// it had the segment open for all that is not on disk.
    fn new() -> Two {
        Two::with(LARGE)
    }

    fn with(segment_size: u64) -> Two {
        let (disk, mut scribe) = (Faulty::new(), Scribe::default());
        let all = vec![scribe.begin("a"), scribe.begin("b")];
        let mut first = Embedded::create(Path::new(DIR), info(), options(&disk)).unwrap();
        first.commit(&all).unwrap();
        disk.mark(2);
        let (a, b) = (open(&disk, segment_size), open(&disk, segment_size));
        let mut two = Two { disk, all, a, b, scribe };
        two.get_to_know();
        two
    }

    fn get_to_know(&mut self) {
        self.crowd();
        self.b.sync().unwrap();
        self.crowd();
        self.a.sync().unwrap();
        self.crowd();
        self.b.sync().unwrap();
        self.crowd();
    }

    /// As many groups of each as there must be for the other to share its next sync.
    fn crowd(&mut self) {
        for _ in 0..7 {
            self.append_a().unwrap();
            self.append_b().unwrap();
        }
    }

    fn append_a(&mut self) -> Result<u64, StoreError> {
        let step = self.scribe.step("a");
        self.all.push(step.clone());
        self.a.append(&[step]).map(|range| range.end)
    }

    fn append_b(&mut self) -> Result<u64, StoreError> {
        let step = self.scribe.step("b");
        self.all.push(step.clone());
        self.b.append(&[step]).map(|range| range.end)
    }

    /// Appends a group of the first handle and one of the second behind it, so that the first one was written for sure
    /// whoever reads it. Returns the size with both.
    fn append_both(&mut self) -> Result<u64, StoreError> {
        self.append_a()?;
        self.append_b()
    }

    fn said(&self) -> Option<Vec<u8>> {
        read_file(&self.disk, &said(), 1000).unwrap().filter(|bytes| !bytes.is_empty())
    }

    fn say(&self, bytes: &[u8]) {
        let file = self.disk.open(&said(), Open::Create).unwrap();
        file.set_len(0).unwrap();
        write_all(&*file, bytes, 0).unwrap();
    }

    /// Whether nobody has the right to sync.
    fn is_right_free(&self) -> bool {
        let right = self.disk.open(&Path::new(DIR).join("sync-lock"), Open::Create).unwrap();
        right.try_lock().unwrap()
    }

    /// Whether the first handle syncs itself.
    fn a_syncs(&mut self) -> bool {
        self.disk.fail_syncs(true);
        let result = self.a.sync();
        self.disk.heal();
        result.is_err()
    }

    /// What a power cut leaves now, if it leaves nothing that was not synced.
    fn left(&self) -> u64 {
        let image = self.disk.image(self.disk.moments(), Crash::Everything);
        let store = open(&image, LARGE);
        assert!(store.trouble().is_none());
        store.tree().size
    }
}

fn said() -> PathBuf {
    Path::new(DIR).join("synced")
}

#[test]
fn whoever_wrote_before_it_is_covered_by_the_sync_of_another() {
    let mut two = Two::new();
    let (size, before) = (two.append_both().unwrap(), two.said());
    assert_eq!(two.b.sync().unwrap(), size);
    assert!(two.said() != before && two.left() == size);
    assert!(two.is_right_free());
    assert!(!two.a_syncs());
    assert!(two.is_right_free());
    assert_eq!(two.a.tree(), two.b.tree());
    // Of what it reads on before it syncs, the last group may still be being written.
    let mut two = Two::new();
    two.append_both().unwrap();
    two.append_a().unwrap();
    two.b.sync().unwrap();
    assert!(two.a_syncs());
    let mut two = Two::new();
    two.append_both().unwrap();
    two.append_a().unwrap();
    two.b.refresh().unwrap();
    two.b.sync().unwrap();
    assert!(two.a_syncs(), "nor of what it had read before it was asked to");
    // What is written afterwards is not covered.
    let mut two = Two::new();
    two.append_both().unwrap();
    two.b.sync().unwrap();
    two.crowd();
    assert!(two.a_syncs(), "what was said is old");
    assert_eq!(two.a.sync().unwrap_err().code(), "E0805", "and its failure is not forgotten");
    let size = two.b.sync().unwrap();
    assert_eq!(two.left(), size);
}

#[test]
fn one_that_sees_nobody_syncs_for_itself_and_leaves_no_files() {
    let disk = Faulty::new();
    let mut scribe = Scribe::default();
    let mut store = Embedded::create(Path::new(DIR), info(), options(&disk)).unwrap();
    store.commit(&[scribe.begin("a"), scribe.begin("b")]).unwrap();
    let mut other = open(&disk, LARGE);
    for _ in 0..20 {
        store.commit(&[scribe.step("a")]).unwrap();
        other.commit(&[scribe.step("b")]).unwrap();
    }
    // A handle that finds much at its beginning saw nobody at work either.
    open(&disk, LARGE).commit(&[scribe.step("a")]).unwrap();
    assert!(!disk.files().contains_key(&said()), "{:?}", disk.files().keys());
}

#[test]
fn a_sync_covers_what_is_in_the_next_segment() {
    let mut two = Two::with(40_000);
    let segments = |two: &Two| {
        two.disk.files().keys().filter(|path| path.extension().is_some_and(|end| end == "seg")).count()
    };
    two.append_a().unwrap();
    let before = segments(&two);
    while segments(&two) == before {
        two.append_b().unwrap();
    }
    // For all that is known it opened the new segment when something was in it already.
    two.b.sync().unwrap();
    assert_eq!(segments(&two), before + 1);
    assert!(two.a_syncs());
    // Once they know each other in the new one, it covers what stands in the one before, too.
    let mut two = Two::with(40_000);
    let before = segments(&two);
    while segments(&two) == before {
        two.append_b().unwrap();
    }
    two.get_to_know();
    assert_eq!(segments(&two), before + 1);
    two.b.sync().unwrap();
    assert!(!two.a_syncs());
    assert_eq!(two.a.tree(), two.b.tree());
}

/// The file is only believed of the log that the handle has read.
#[test]
fn what_is_said_by_nobody_is_not_believed() {
    let mut honest = Two::new();
    honest.append_both().unwrap();
    honest.b.sync().unwrap();
    let right = honest.said().unwrap();
    // Of a store with as many records, one of which is another.
    let mut foreign = Two::new();
    let another = foreign.scribe.transition("b", Value::record([("agent_id", Value::from("c"))]));
    foreign.append_a().unwrap();
    foreign.b.append(&[another]).unwrap();
    foreign.crowd();
    let size = foreign.b.sync().unwrap();
    let mut torn = right.clone();
    torn[40..].fill(0);
    let other = foreign.said().unwrap();
    for (what, bytes) in
        [("torn", torn.clone()), ("cut", right[..50].to_vec()), ("foreign", other), ("none", Vec::new())]
    {
        let mut two = Two::new();
        two.append_both().unwrap();
        // Both know the file before it is changed.
        two.b.sync().unwrap();
        assert!(!two.a_syncs());
        two.crowd();
        assert_eq!(two.b.tree().size, size);
        two.say(&bytes);
        assert!(two.a_syncs(), "{what}");
    }
}

/// The log is put back as it was earlier and `synced` is not, and the same records are committed again.
#[test]
fn what_was_said_of_another_copy_of_the_store_is_not_believed() {
    let mut two = Two::new();
    let early = two.disk.image(two.disk.moments(), Crash::Process);
    let size = open(&early, LARGE).tree().size;
    let later: Vec<Record> = {
        let from = two.all.len();
        two.crowd();
        two.all[from..].to_vec()
    };
    two.b.sync().unwrap();
    let file = early.open(&said(), Open::Create).unwrap();
    write_all(&*file, &two.said().unwrap(), 0).unwrap();
    let (mut a, mut b) = (open(&early, LARGE), open(&early, LARGE));
    for (n, record) in later.iter().enumerate() {
        let store = if n % 2 == 0 { &mut a } else { &mut b };
        store.append(std::slice::from_ref(record)).unwrap();
    }
    early.fail_syncs(true);
    for store in [&mut a, &mut b] {
        store.sync().unwrap_err();
    }
    assert!(size < two.all.len() as u64);
}

/// As Linux has it: that writing back failed is told once to everybody who had the file open, and to nobody who opens it
/// later.
#[derive(Debug, Clone)]
struct ToldOnce {
    disk: Arc<dyn Disk>,
    fails: Arc<AtomicBool>,
}

impl ToldOnce {
    fn new(disk: impl Disk + 'static) -> ToldOnce {
        ToldOnce { disk: Arc::new(disk), fails: Arc::default() }
    }
}

#[derive(Debug)]
struct ToldOnceFile {
    file: Arc<dyn DiskFile>,
    fails: Arc<AtomicBool>,
    is_told: AtomicBool,
}

impl Disk for ToldOnce {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn DiskFile>> {
        let is_told = AtomicBool::new(self.fails.load(Ordering::SeqCst));
        let (file, fails) = (self.disk.open(path, how)?, Arc::clone(&self.fails));
        Ok(Arc::new(ToldOnceFile { file, fails, is_told }))
    }
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.disk.list(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_dir(path)
    }
}

impl DiskFile for ToldOnceFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }
    fn sync(&self) -> io::Result<()> {
        match self.fails.load(Ordering::SeqCst) {
            false => self.file.sync(),
            // What was to be written back is lost, and counts as written.
            true if self.is_told.swap(true, Ordering::SeqCst) => Ok(()),
            true => Err(ErrorKind::Other.into()),
        }
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }
    fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }
}

#[test]
fn whoever_came_after_writing_back_failed_answers_for_nothing_before() {
    let disk = Faulty::new();
    let told_once = ToldOnce::new(disk.clone());
    let options = || Options { disk: Arc::new(told_once.clone()), segment_size: LARGE, ..options(&disk) };
    let open = || Embedded::open(Path::new(DIR), options()).unwrap();
    let mut scribe = Scribe::default();
    let begins = ["a", "b", "c", "d"].map(|run| scribe.begin(run));
    Embedded::create(Path::new(DIR), info(), options()).unwrap().commit(&begins).unwrap();
    let (mut a, mut c) = (open(), open());
    for is_first in [true, false] {
        for _ in 0..8 {
            a.append(&[scribe.step("a")]).unwrap();
            c.append(&[scribe.step("c")]).unwrap();
        }
        if is_first {
            c.sync().unwrap();
        }
    }
    told_once.fails.store(true, Ordering::SeqCst);
    a.sync().unwrap_err();
    let (mut b, mut d) = (open(), open());
    for round in 0..3 {
        for _ in 0..8 {
            d.append(&[scribe.step("d")]).unwrap();
            b.append(&[scribe.step("b")]).unwrap();
        }
        b.sync().unwrap();
        if round < 2 {
            // What b writes next says that all before is on disk, for all that b knows.
            c.append(&[scribe.step("c")]).unwrap();
        }
    }
    assert!(disk.files().contains_key(&said()), "it said how far it synced");
    assert_eq!(c.sync().unwrap_err().code(), "E0805");
}

/// Whoever begins a segment syncs the one before, but was not told what another handle would be told of it.
#[test]
fn a_handle_syncs_every_segment_that_it_wrote_to() {
    let disk = Faulty::new();
    let told_once = ToldOnce::new(disk.clone());
    let options = || Options { disk: Arc::new(told_once.clone()), ..options(&disk) };
    let open = || Embedded::open(Path::new(DIR), options()).unwrap();
    let mut scribe = Scribe::default();
    let mut first = Embedded::create(Path::new(DIR), info(), options()).unwrap();
    first.commit(&[scribe.begin("a"), scribe.begin("b")]).unwrap();
    first.append(&[scribe.step("a")]).unwrap();
    told_once.fails.store(true, Ordering::SeqCst);
    let mut later = open();
    while disk.files().len() < 4 {
        later.append(&[scribe.step("b")]).unwrap();
    }
    assert!(disk.files().contains_key(&Path::new(DIR).join("segments/00000001.seg")));
    first.append(&[scribe.step("a")]).unwrap();
    assert_eq!(first.sync().unwrap_err().code(), "E0805");
}

/// Nobody asked what became of a sync; the index must not cover what it was for.
#[test]
fn a_sync_that_failed_is_not_forgotten_when_a_handle_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().join("store");
    let told_once = ToldOnce::new(Real);
    let options = || Options { disk: Arc::new(told_once.clone()), ..Options::untagged() };
    for fails in [false, true] {
        let mut scribe = Scribe::default();
        let mut store = Embedded::create(&at, info(), options()).unwrap();
        store.append(&[scribe.begin("a")]).unwrap();
        let group: Vec<Record> = (0..2_000).map(|_| scribe.step("a")).collect();
        store.append(&group).unwrap();
        told_once.fails.store(fails, Ordering::SeqCst);
        drop(store.submit(&[scribe.step("a")]).unwrap());
        store.close().unwrap();
        assert_eq!(at.join("index.sqlite").exists(), !fails);
        std::fs::remove_dir_all(&at).unwrap();
    }
}

#[test]
#[cfg(unix)]
fn nothing_is_written_through_a_link() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let (at, outside) = (dir.path().join("store"), dir.path().join("outside"));
    let options = || Options { index: false, ..Options::untagged() };
    let mut scribe = Scribe::default();
    let mut first = Embedded::create(&at, info(), options()).unwrap();
    first.commit(&[scribe.begin("a"), scribe.begin("b")]).unwrap();
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("empty"), "").unwrap();
    std::fs::write(outside.join("full"), "export PATH=/usr/bin").unwrap();
    let names = ["synced", "sync-lock", "checkpoint.tmp"];
    for target in ["empty", "full", "none", "../store/segments/00000001.seg"] {
        for name in names {
            symlink(outside.join(target), at.join(name)).unwrap();
        }
        let (mut a, mut b) =
            (Embedded::open(&at, options()).unwrap(), Embedded::open(&at, options()).unwrap());
        for _ in 0..8 {
            a.append(&[scribe.step("a")]).unwrap();
            b.append(&[scribe.step("b")]).unwrap();
        }
        assert!(b.sync().unwrap() > a.sync().unwrap());
        b.sign_checkpoint(&key()).unwrap();
        assert!(Embedded::open(&at, options()).unwrap().trouble().is_none(), "{target}");
        for name in names {
            let _ = std::fs::remove_file(at.join(name));
        }
    }
    // Other names of a file that is there already.
    let segment = std::fs::read(at.join("segments/00000000.seg")).unwrap();
    for name in ["synced", "checkpoint.tmp"] {
        std::fs::hard_link(at.join("segments/00000000.seg"), at.join(name)).unwrap();
    }
    let (mut a, mut b) = (Embedded::open(&at, options()).unwrap(), Embedded::open(&at, options()).unwrap());
    for _ in 0..8 {
        a.append(&[scribe.step("a")]).unwrap();
        b.append(&[scribe.step("b")]).unwrap();
    }
    b.sync().unwrap();
    b.sign_checkpoint(&key()).unwrap();
    assert!(std::fs::read(at.join("segments/00000000.seg")).unwrap().starts_with(&segment));
    assert!(Embedded::open(&at, options()).unwrap().trouble().is_none());
    let mut left: Vec<_> =
        std::fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["empty", "full"]);
    assert_eq!(std::fs::read(outside.join("empty")).unwrap(), b"");
    assert_eq!(std::fs::read(outside.join("full")).unwrap(), b"export PATH=/usr/bin");
}

#[test]
fn a_reader_makes_no_files() {
    let mut two = Two::new();
    for name in ["synced", "sync-lock"] {
        two.disk.remove(&Path::new(DIR).join(name)).unwrap();
    }
    let mut reader = Embedded::open(Path::new(DIR), Options { write: false, ..options(&two.disk) }).unwrap();
    two.crowd();
    reader.refresh().unwrap();
    reader.sync().unwrap_err();
    assert_eq!(two.said(), None);
    assert!(!two.disk.files().contains_key(&said()));
}

#[test]
fn after_a_sync_that_failed_nothing_is_said() {
    let mut two = Two::new();
    let size = two.append_a().unwrap();
    let before = two.said();
    two.disk.fail_syncs(false);
    assert_eq!(two.b.sync().unwrap_err().code(), "E0805");
    assert_eq!(two.said(), before);
    assert_eq!(two.a.sync().unwrap(), size);
    assert_eq!(two.left(), size, "it synced for itself");
}

/// A process that is stopped while it has the right to sync keeps the others waiting once, and not each time.
#[test]
fn nobody_waits_for_ever_for_one_that_is_stopped() {
    let mut two = Two::new();
    let before = two.said();
    let stopped = two.disk.open(&Path::new(DIR).join("sync-lock"), Open::Create).unwrap();
    assert!(stopped.try_lock().unwrap());
    let mut calls = Vec::new();
    for _ in 0..2 {
        let size = two.append_a().unwrap();
        let before = two.disk.calls();
        assert_eq!(two.a.sync().unwrap(), size);
        calls.push(two.disk.calls() - before);
        assert_eq!(two.left(), size);
        two.crowd();
    }
    assert!(calls[1] < calls[0] / 2, "{calls:?}");
    assert_eq!(two.said(), before, "who has not the right says nothing");
    // Once it goes on, or is gone, they share again.
    stopped.unlock().unwrap();
    two.b.sync().unwrap();
    assert_ne!(two.said(), before);
    assert!(!two.a_syncs());
}

/// Every call that sharing makes fails once: what is acknowledged is on disk all the same, and nobody is stopped by a file
/// that only saves time.
#[test]
fn whatever_call_fails_what_is_acknowledged_is_on_disk() {
    let (mut failed, mut tried) = (0, 0);
    for fault in
        [DiskFault::Error(ErrorKind::Other), DiskFault::Error(ErrorKind::PermissionDenied), DiskFault::Short]
    {
        for covered in [false, true] {
            for call in 0.. {
                let mut two = Two::new();
                let size = two.append_a().unwrap();
                two.append_b().unwrap();
                if covered {
                    two.b.sync().unwrap();
                }
                two.disk.fail(call, fault, false);
                let outcome = two.a.sync();
                let is_over = two.disk.is_pending();
                two.disk.heal();
                let context = format!("{fault:?} at {call}, covered: {covered}");
                match outcome {
                    Ok(synced) => {
                        assert!(synced >= size && two.left() >= size, "{context}");
                        two.append_a().unwrap();
                    }
                    Err(error) => {
                        assert_eq!(error.code(), "E0805", "{context}");
                        failed += 1;
                    }
                }
                // The other goes on in any case.
                assert!(two.is_right_free(), "{context}");
                let size = two.append_b().unwrap();
                assert_eq!(two.b.sync().unwrap(), size, "{context}");
                assert_eq!(two.left(), size, "{context}");
                if is_over {
                    break;
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 30 && failed > 0 && failed < tried / 2, "{failed} of {tried}");
}

#[test]
fn what_was_acknowledged_survives_a_crash_at_every_moment() {
    let mut two = Two::new();
    for turn in 0..2 {
        two.append_both().unwrap();
        let synced = two.b.sync().unwrap();
        two.disk.mark(synced);
        assert!(!two.a_syncs(), "{turn}");
        two.crowd();
        two.append_a().unwrap();
        let synced = two.a.sync().unwrap();
        two.disk.mark(synced);
        let synced = two.b.sync().unwrap();
        two.disk.mark(synced);
        two.crowd();
    }
    let mut states = 0;
    for moment in 0..=two.disk.moments() {
        for seed in 0..seeds() {
            for crash in [Crash::Everything, Crash::Process, Crash::Random(seed)] {
                if seed == 0 || matches!(crash, Crash::Random(_)) {
                    check_crash(&two.disk, moment, crash, &two.all);
                    states += 1;
                }
            }
        }
    }
    println!("deep: power-loss {states} states");
}
