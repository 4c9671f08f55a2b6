//! 64 writers record one run at once: half of them threads of one handle, half with a handle of their own, as processes have.
//!
//! No line is lost or doubled, and none is acknowledged before it is synced: what a power cut leaves has each line that was. 20
//! recordings of random lines; 1,000 with `DENDRER_DEEP=1`.

#![expect(clippy::print_stdout, reason = "the deep run adds it up")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dendrer::Trace;
use dendrer::lines::{LineOptions, Recording, Reply, read};
use dendrer::recorder::{Fixed, Recorder};
use dendrer_kernel::step::Start;
use dendrer_object::Digest;
use dendrer_store::faulty::{Crash, Faulty};
use dendrer_store::{Embedded, Options, Shared};
use dendrer_testkit::{Dice, info, run_name};

const WRITERS: u64 = 64;

/// The digits of an id that a mark has.
fn mark(id: Digest) -> u64 {
    u64::from_be_bytes(id.0[..8].try_into().unwrap())
}

fn open(disk: &Faulty) -> Shared {
    let wait = Duration::from_secs(120);
    let options =
        Options { index: false, lock_wait: wait, disk: Arc::new(disk.clone()), ..Options::untagged() };
    Shared::new(Box::new(Embedded::open(Path::new("/s"), options).unwrap()))
}

/// Records the lines of a writer, and marks each that is acknowledged.
fn write(disk: &Faulty, store: &Shared, name: &str, lines: u64, causal: bool) -> Vec<Digest> {
    let fixed = Box::new(Fixed::new(name, 0, 1));
    let mut recorder = Recorder::resume(store, &run_name("r"), fixed).unwrap();
    let line = |number| {
        format!(
            r#"{{"type":"plan.update","agent":"{name}","delta":[{{"set":"/memory/{name}","value":{number}}}]}}"#
        )
    };
    let texts: Vec<String> = (1..=lines).map(line).collect();
    let lines = read(Cursor::new(texts.join("\n").into_bytes())).unwrap();
    let reading = LineOptions { causal, ..LineOptions::default() };
    let mut recording = Recording::new(&mut recorder, lines, reading, false);
    let mut acknowledged = Vec::new();
    for reply in recording.by_ref().flatten() {
        let Reply::Committed { record, .. } = reply else { panic!("{name}: {reply:?}") };
        disk.mark(mark(record.id()));
        acknowledged.push(record.id());
    }
    recording.end().unwrap();
    acknowledged
}

/// The ids of the run by tick, and the number of each line that an agent recorded, in order.
fn on_record(store: &Shared) -> (Vec<Digest>, BTreeMap<String, Vec<u64>>) {
    let trace = Trace::open(store, &run_name("r")).unwrap();
    let (mut ids, mut lines) = (Vec::new(), BTreeMap::<String, Vec<u64>>::new());
    for tick in 1..=trace.tip() {
        let record = trace.record(tick).unwrap();
        let agent = record.body().value("/agent_id").unwrap().as_str().unwrap().to_owned();
        let value = record.delta().unwrap().0[0].value.as_ref().and_then(|value| value.as_u64());
        lines.entry(agent).or_default().push(value.unwrap());
        ids.push(record.id());
    }
    (ids, lines)
}

fn recording(seed: u64) {
    let (mut dice, disk) = (Dice(seed), Faulty::new());
    let options = Options { index: false, disk: Arc::new(disk.clone()), ..Options::untagged() };
    drop(Embedded::create(Path::new("/s"), info(1), options).unwrap());
    let shared = open(&disk);
    let fixed = Box::new(Fixed::new("begin", 0, 1));
    Recorder::begin(&shared, &Start::new(run_name("r")), fixed).unwrap().commit().unwrap();
    let writers: Vec<(String, u64, bool, bool)> = (0..WRITERS)
        .map(|writer| (format!("w{writer}"), 1 + dice.below(3), dice.below(2) == 0, dice.below(2) == 0))
        .collect();
    let acknowledged: Vec<Digest> = std::thread::scope(|scope| {
        let threads: Vec<_> = writers
            .iter()
            .map(|(name, lines, causal, own)| {
                let (disk, shared) = (&disk, &shared);
                scope.spawn(move || {
                    let store = if *own { open(disk) } else { shared.clone() };
                    write(disk, &store, name, *lines, *causal)
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let (ids, lines) = on_record(&open(&disk));
    let expected: BTreeMap<String, Vec<u64>> =
        writers.iter().map(|(name, lines, ..)| (name.clone(), (1..=*lines).collect())).collect();
    assert_eq!(lines, expected, "recording {seed}");
    assert_eq!(ids.iter().collect::<BTreeSet<_>>(), acknowledged.iter().collect(), "recording {seed}");
    for crash in [Crash::Everything, Crash::Random(seed), Crash::Everything] {
        let moment = dice.below(disk.moments() as u64) as usize;
        let marks = disk.marks(moment);
        if !marks.is_empty() {
            let left: BTreeSet<u64> =
                on_record(&open(&disk.image(moment, crash))).0.into_iter().map(mark).collect();
            assert!(marks.iter().all(|mark| left.contains(mark)), "recording {seed}, moment {moment}");
        }
    }
}

#[test]
fn no_line_is_lost_or_doubled_or_acknowledged_before_its_sync() {
    let count = if std::env::var_os("DENDRER_DEEP").is_some() { 1_000 } else { 20 };
    (0..count).for_each(recording);
    println!("deep: recordings {count}");
}
