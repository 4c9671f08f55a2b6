//! Several handles that commit at once share a sync: who is covered by which, and what happens where it goes wrong.
//!
//! That a handle did not sync is shown by a disk on which every sync fails.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use dendrer_object::{Record, Value};
use dendrer_store::conformance::{Scribe, info};
use dendrer_store::disk::{Disk, Open, read_file, write_all};
use dendrer_store::faulty::{Crash, Fault, Faulty};
use dendrer_store::{Embedded, Store, StoreError};

use crate::crash::{DIR, check_crash, options, seeds};

/// Two handles that see so much of each other that they share their syncs, and what they wrote in order.
struct Two {
    disk: Faulty,
    all: Vec<Record>,
    a: Embedded,
    b: Embedded,
    scribe: Scribe,
}

fn open(disk: &Faulty) -> Embedded {
    Embedded::open(Path::new(DIR), options(disk)).unwrap()
}

impl Two {
    /// Both have appended by turns, and nothing of it is synced.
    fn new() -> Two {
        let (disk, mut scribe) = (Faulty::new(), Scribe::default());
        let all = vec![scribe.begin("a"), scribe.begin("b")];
        let mut first = Embedded::create(Path::new(DIR), info(), options(&disk)).unwrap();
        first.commit(&all).unwrap();
        disk.mark(2);
        let (a, b) = (open(&disk), open(&disk));
        let mut two = Two { disk, all, a, b, scribe };
        two.crowd();
        two
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
        let store = open(&image);
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
    let size = two.append_a().unwrap();
    assert_eq!(two.said(), None);
    assert_eq!(two.b.sync().unwrap(), size, "it reads on before it syncs");
    assert!(two.said().is_some() && two.left() == size);
    assert!(two.is_right_free());
    assert!(!two.a_syncs());
    assert!(two.is_right_free());
    assert_eq!(two.a.tree(), two.b.tree());
    // What is written afterwards is not.
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
    let mut other = open(&disk);
    for _ in 0..20 {
        store.commit(&[scribe.step("a")]).unwrap();
        other.commit(&[scribe.step("b")]).unwrap();
    }
    // A handle that finds much at its beginning saw nobody at work either.
    open(&disk).commit(&[scribe.step("a")]).unwrap();
    assert!(!disk.files().contains_key(&said()), "{:?}", disk.files().keys());
}

#[test]
fn a_sync_covers_what_is_in_the_next_segment() {
    let mut two = Two::new();
    two.append_a().unwrap();
    let segments = |disk: &Faulty| {
        disk.files().keys().filter(|path| path.extension().is_some_and(|end| end == "seg")).count()
    };
    let before = segments(&two.disk);
    while segments(&two.disk) == before {
        two.append_b().unwrap();
    }
    two.b.sync().unwrap();
    assert!(two.said().is_some());
    assert!(!two.a_syncs());
    assert_eq!(two.a.tree(), two.b.tree());
}

/// The file is only believed of the log that the handle has read.
#[test]
fn what_is_said_by_nobody_is_not_believed() {
    let mut honest = Two::new();
    honest.append_a().unwrap();
    honest.b.sync().unwrap();
    let right = honest.said().unwrap();
    // Of a store with as many records, one of which is another.
    let mut foreign = Two::new();
    let another = foreign.scribe.transition("b", Value::record([("agent_id", Value::from("c"))]));
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
        two.append_a().unwrap();
        // Both know the file before it is changed.
        two.b.sync().unwrap();
        assert!(!two.a_syncs());
        two.crowd();
        assert_eq!(two.b.tree().size, size);
        two.say(&bytes);
        assert!(two.a_syncs(), "{what}");
    }
    // Where it holds something else from the beginning it is not written either.
    for bytes in [&b"export PATH=/usr/bin"[..], &torn, &[0; 78], &[right.as_slice(), b"x"].concat()] {
        let mut two = Two::new();
        two.say(bytes);
        let size = two.append_a().unwrap();
        two.b.sync().unwrap();
        assert_eq!(two.said().as_deref(), Some(bytes), "it is left alone");
        assert!(two.a_syncs());
        assert_eq!(two.left(), size);
    }
    // Zeros are what a crash leaves of it.
    let mut two = Two::new();
    two.say(&[0; 77]);
    two.b.sync().unwrap();
    assert_ne!(two.said().unwrap(), [0; 77]);
}

#[test]
fn after_a_sync_that_failed_nothing_is_said() {
    let mut two = Two::new();
    let size = two.append_a().unwrap();
    two.disk.fail_syncs(false);
    assert_eq!(two.b.sync().unwrap_err().code(), "E0805");
    assert_eq!(two.said(), None);
    assert_eq!(two.a.sync().unwrap(), size);
    assert_eq!(two.left(), size, "it synced for itself");
}

/// A process that is stopped while it has the right to sync keeps the others waiting once, and not each time.
#[test]
fn nobody_waits_for_ever_for_one_that_is_stopped() {
    let mut two = Two::new();
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
    assert_eq!(two.said(), None, "who has not the right says nothing");
    // Once it goes on, or is gone, they share again.
    stopped.unlock().unwrap();
    two.b.sync().unwrap();
    assert!(two.said().is_some());
    assert!(!two.a_syncs());
}

/// Every call that sharing makes fails once: what is acknowledged is on disk all the same, and nobody is stopped by a file
/// that only saves time.
#[test]
fn whatever_call_fails_what_is_acknowledged_is_on_disk() {
    let (mut failed, mut tried) = (0, 0);
    for fault in [Fault::Error(ErrorKind::Other), Fault::Error(ErrorKind::PermissionDenied), Fault::Short] {
        for covered in [false, true] {
            for call in 0.. {
                let mut two = Two::new();
                let size = two.append_a().unwrap();
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
    for turn in 0..3 {
        let size = two.append_a().unwrap();
        assert!(two.b.sync().unwrap() >= size);
        two.disk.mark(size);
        assert!(!two.a_syncs(), "{turn}");
        two.crowd();
        let size = two.append_b().unwrap();
        two.a.sync().unwrap();
        two.disk.mark(size);
        two.b.sync().unwrap();
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
    println!("deep: shared-syncs {states} states");
}
