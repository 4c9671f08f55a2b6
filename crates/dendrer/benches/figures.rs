//! The figures of the recorder, the verifier and the state root, each as a ratio against a limit or a peer that is
//! measured in the same run. Prints; never judges.
//!
//! `cargo bench -p dendrer` runs it; `-- record`, `-- sync`, `-- redaction`, `-- verify`, `-- delta`, `-- fold`,
//! `-- contract`, `-- causes`, `-- agents` or `-- lift` runs a part.

#![expect(clippy::print_stdout, reason = "figures are printed, nothing else is done with them")]

use std::fs::{self, File};
use std::hint::black_box;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dendrer::recorder::World;
use dendrer::redact::{PackRules, RedactionProfile, Redactor};
use dendrer::store::Shared;
use dendrer::store::embedded::{Embedded, Options};
use dendrer::store::prelude::*;
use dendrer::{Recorder, verify};
use dendrer_kernel::step::{Inputs, Outcome, Seeds, Start, begin, step};
use dendrer_object::delta::{Delta, Op};
use dendrer_object::merkle::leaf_hash;
use dendrer_object::record::disclosure;
use dendrer_object::{Digest, Intent, StoreId, Timestamp, Value};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

use common::{cpu, intents, key, lines, median, new_store, read, record_steps, record_synced};

mod agents;
mod causes;
mod common;
mod desk;
mod door;
mod lifted;

/// How often recording is measured beside the floor.
const ROUNDS: usize = 9;

fn main() {
    let only: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|part| part == name);
    let dir = tempfile::tempdir_in(
        std::env::var_os("BENCH_DIR").unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into()),
    )
    .expect("a directory");
    if wanted("record") {
        record(dir.path());
    }
    if wanted("sync") {
        synced(dir.path());
    }
    if wanted("redaction") {
        redaction(dir.path());
    }
    if wanted("verify") {
        verification(dir.path());
    }
    if wanted("delta") {
        delta();
    }
    if wanted("fold") {
        desk::fold();
    }
    if wanted("contract") {
        door::contract();
    }
    if wanted("causes") {
        causes::contributors_of_long_runs();
    }
    if wanted("agents") {
        agents::states_and_comparisons(dir.path());
    }
    if wanted("lift") {
        lifted::lift(dir.path());
    }
}

struct Floor {
    cpu_us: f64,
    wall_us: f64,
}

fn floor(dir: &Path, steps: usize, sync_every: usize) -> Floor {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/floor.py");
    let file = dir.join("floor.jsonl");
    let output = Command::new("python3")
        .arg(script)
        .arg(&file)
        .arg(steps.to_string())
        .arg(sync_every.to_string())
        .output();
    let output = output.expect("python3 runs");
    let value = dendrer_object::json::parse_door(&output.stdout).expect("the floor prints JSON");
    let number = |name: &str| value.get(name).and_then(Value::as_f64).unwrap_or(f64::NAN);
    Floor { cpu_us: number("cpu_us"), wall_us: number("wall_us") }
}

/// How many steps are made at a time where they are recorded right after they were made, as in [`record_fresh`].
const MADE_AT_ONCE: usize = 100;

/// Appends steps in groups, and waits for no disk. Each hundred is made right before it is recorded, as the steps of an
/// agent are: what was made long before is fetched from memory first, which is not recording. Returns the CPU time
/// without that of making steps.
fn record_fresh(store: &Shared, run: &str, lines: &[String], group: usize) -> Duration {
    let start = Start::new(run.parse().expect("a name"));
    let mut recorder = Recorder::begin(store, &start, Box::new(World::default())).expect("a run");
    let mut spent = Duration::ZERO;
    for lines in lines.chunks(MADE_AT_ONCE) {
        let steps = read(lines);
        let before = cpu();
        for chunk in steps.chunks(group) {
            recorder.propose_each(chunk).expect("steps");
            recorder.append().expect("appended");
        }
        spent += cpu() - before;
    }
    spent
}

fn record(dir: &Path) {
    println!("CPU per recorded 1 KB step, sync off (limit: 0.50 of the floor)");
    let steps = lines(20_000);
    for group in [100, 1] {
        let (mut ratios, mut fastest) = (Vec::new(), (f64::MAX, f64::MAX));
        let mut line = String::new();
        // Rivals for the processor slow one side of a round or the other.
        for round in 0..ROUNDS {
            let floor = floor(dir, 20_000, 0);
            let name = format!("record-{group}-{round}");
            let store = new_store(dir, &name);
            let recorded = record_fresh(&store, "bench", &steps, group);
            let before = cpu();
            AppendLog::close(Box::new(store)).expect("closed");
            let all = recorded + (cpu() - before);
            remove(dir, &name);
            let us = |time: Duration| time.as_secs_f64() * 1e6 / 20_000.0;
            ratios.push(us(recorded) / floor.cpu_us);
            fastest = (fastest.0.min(us(recorded)), fastest.1.min(floor.cpu_us));
            line = format!(
                "{:.1} us, with the index {:.1} us, floor {:.1} us",
                us(recorded),
                us(all),
                floor.cpu_us
            );
        }
        println!(
            "  groups of {group:>3}: ratio {:.2}, of the fastest rounds {:.2}   (last round: {line})",
            median(ratios),
            fastest.0 / fastest.1
        );
    }
}

/// Records steps by the hundred with the rules and with none, by turns.
fn redaction(dir: &Path) {
    println!("recording by the hundred, with redaction, of what it takes with none (limit: 1.2)");
    let lines = lines(20_000);
    let redactor = |profile| {
        let made = Redactor::new(profile, &PackRules::default(), &[], Some([7; 32]));
        Arc::new(made.expect("no pattern of a pack"))
    };
    let sides = [redactor(RedactionProfile::Default), redactor(RedactionProfile::None)];
    for syncs in [false, true] {
        let mut ratios = Vec::new();
        let mut last = [0.0; 2];
        for round in 0..ROUNDS {
            for (side, redactor) in sides.iter().enumerate() {
                let name = format!("redaction-{round}-{side}");
                let store = new_store(dir, &name);
                let start = Start::new("bench".parse().expect("a name"));
                let recorder = Recorder::begin(&store, &start, Box::new(World::default())).expect("a run");
                let mut recorder = recorder.redacting(Some(Arc::clone(redactor)));
                let mut spent = Duration::ZERO;
                for lines in lines.chunks(MADE_AT_ONCE) {
                    let steps = read(lines);
                    let (before, begin) = (cpu(), Instant::now());
                    recorder.propose_each(&steps).expect("steps");
                    let records = if syncs { recorder.commit() } else { recorder.append() };
                    black_box(records.expect("recorded"));
                    spent += if syncs { begin.elapsed() } else { cpu() - before };
                }
                last[side] = spent.as_secs_f64() * 1e6 / lines.len() as f64;
                AppendLog::close(Box::new(store)).expect("closed");
                remove(dir, &name);
            }
            ratios.push(last[0] / last[1]);
        }
        let how = if syncs { "time with a sync each" } else { "processor time, no sync" };
        println!("  {how}: ratio {:.2} (last round {:.1} and {:.1} us)", median(ratios), last[0], last[1]);
    }
}

fn synced(dir: &Path) {
    println!("steps a second, synced every 100 (limit: 0.90 of min(2x the floor, the disk's own ceiling))");
    // Few enough to stay near the processor, as steps are that were made just now: the floor's are made beside its clock,
    // and here that would give the disk time for nothing.
    let steps = intents(200);
    let mut ratios = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        let floor = floor(dir, 20_000, 0);
        let (mut ours, mut bytes) = ([0.0; 2], 0);
        for (shares, ours) in [false, true].into_iter().zip(&mut ours) {
            let name = format!("sync-{round}");
            let store = new_store(dir, &name);
            let begin = Instant::now();
            record_synced(&store, "bench", steps.chunks(100).cycle().take(200), shares);
            *ours = 20_000.0 / begin.elapsed().as_secs_f64();
            bytes = segment_bytes(dir, &name);
            AppendLog::close(Box::new(store)).expect("closed");
            remove(dir, &name);
        }
        let ceiling = disk_ceiling(dir, bytes / 200);
        let twice = 2.0 * 1e6 / floor.wall_us;
        for (ratios, ours) in ratios.iter_mut().zip(ours) {
            ratios.push(ours / twice.min(ceiling));
        }
        let [each, shared] = ours;
        println!(
            "  each hundred with a sync of its own {each:.0}/s, sharing syncs {shared:.0}/s; 2x the floor {twice:.0}/s; the disk \
             writing as many bytes {ceiling:.0}/s"
        );
    }
    let [each, shared] = ratios.map(median);
    println!("  each hundred with a sync of its own: ratio {each:.2}");
    println!(
        "  up to four of them under way, as a recorder has them, those that wait share a sync: ratio {shared:.2}"
    );
}

/// Removes the store of a round. The floor writes over the file of its last round, so the system gives it memory that was in
/// use already; where every round keeps its store, ours would be memory that nobody touched before, which takes a virtual
/// machine several times as long to write to.
fn remove(dir: &Path, store: &str) {
    fs::remove_dir_all(dir.join(store)).expect("removed");
}

fn segment_bytes(dir: &Path, store: &str) -> usize {
    let segments = fs::read_dir(dir.join(store).join("segments")).expect("segments");
    segments.map(|entry| entry.and_then(|entry| entry.metadata()).map_or(0, |meta| meta.len() as usize)).sum()
}

/// How many steps a second the disk could take if nothing but writing and syncing were done.
fn disk_ceiling(dir: &Path, group_bytes: usize) -> f64 {
    let mut file = File::create(dir.join("ceiling")).expect("a file");
    let group = vec![b'x'; group_bytes];
    let begin = Instant::now();
    for _ in 0..200 {
        file.write_all(&group).expect("written");
        file.sync_data().expect("synced");
    }
    20_000.0 / begin.elapsed().as_secs_f64()
}

fn verification(dir: &Path) {
    println!("verify against hashing exactly the preimages it needs (limit: 2.00)");
    let mut store = new_store(dir, "verify");
    record_steps(&store, "bench", &intents(20_000), 100);
    let ticket = store.submit(&[]).expect("a sync");
    store.wait(ticket).expect("synced");
    store.sign_checkpoint(&key()).expect("signed");
    AppendLog::close(Box::new(store)).expect("closed");
    let store = Arc::new(Embedded::open(&dir.join("verify"), Options::read()).expect("opened"));
    let mut preimages: Vec<Vec<u8>> = Vec::new();
    store
        .scan(0..store.tree().size, &mut |_, record| {
            let body = record.body();
            let seed = body.seed().expect("nothing was erased");
            for pair in 0..body.fields().len().div_ceil(2) as u32 {
                preimages.push([b"dendrer/salt/v1\n", &seed.0[..], &pair.to_be_bytes()].concat());
            }
            for (index, field) in body.fields().iter().enumerate() {
                let salt = body.salt(index).expect("a seed gives salts");
                preimages
                    .push(disclosure(&salt, &field.pointer, body.text(field).expect("open")).into_bytes());
            }
            preimages.push([b"dendrer/record/v1\n", record.header_text()].concat());
            preimages.push([b"\0", &record.entry()[..]].concat());
            preimages.push(vec![1; 65]);
            ControlFlow::Continue(())
        })
        .expect("read");
    let (mut ratios, mut of_cpu) = (Vec::new(), Vec::new());
    let us = |time: Duration| time.as_secs_f64() * 1e6 / 20_001.0;
    for _ in 0..ROUNDS {
        let (begin, before) = (Instant::now(), cpu());
        preimages.iter().for_each(|preimage| {
            black_box(Digest::of(preimage));
        });
        let (hashing, hashing_cpu) = (begin.elapsed(), cpu() - before);
        let (begin, before) = (Instant::now(), cpu());
        let report = verify::store(&store, &verify::VerifyTerms::default()).expect("verified");
        let (verifying, verifying_cpu) = (begin.elapsed(), cpu() - before);
        assert_eq!(report.verdict, verify::VerifyVerdict::Intact, "{:?}", report.findings);
        ratios.push(verifying.as_secs_f64() / hashing.as_secs_f64());
        of_cpu.push(verifying_cpu.as_secs_f64() / hashing_cpu.as_secs_f64());
        println!(
            "  {:.1} us a record, {:.1} us of CPU; hashing in one thread {:.1} us",
            us(verifying),
            us(verifying_cpu),
            us(hashing)
        );
    }
    println!("  ratio {:.2}; of CPU in all threads {:.2}", median(ratios), median(of_cpu));
    black_box(leaf_hash(b""));
}

fn delta() {
    println!(
        "committing a 200-byte delta on a 10 MB object of 100,000 keys against a 10 KB one (limit: 3.00)"
    );
    let measure = |keys: u64| {
        let state = Value::record([(
            "big",
            Value::Object(
                (0..keys).map(|n| (format!("key-{n:06}").into(), Value::from("v".repeat(88)))).collect(),
            ),
        )]);
        let start = Start { state, ..Start::new("bench".parse().expect("a name")) };
        let inputs = |n: u64| Inputs { clock: Timestamp::from_ms(n), seeds: Seeds::of_secret([n as u8; 16]) };
        let (_, mut head) = begin(StoreId([7; 16]), &start, inputs(0)).expect("a run");
        let mut times = Vec::new();
        for n in 0..2_000u64 {
            let at = n.wrapping_mul(7919) % keys;
            let path = format!("/big/key-{at:06}").parse().expect("a pointer");
            let delta = Delta(vec![Op::set(path, Value::from("w".repeat(140)))]);
            let intent = Intent::new("memory.write".parse().expect("a type"), "agent").with_delta(delta);
            let begin = Instant::now();
            let outcome = step(&mut head, &intent, inputs(n + 1)).expect("a step");
            times.push(begin.elapsed().as_secs_f64() * 1e6);
            assert!(matches!(outcome, Outcome::Committed(_)));
        }
        // The first commits turn the object into a tree once; what is asked is the cost of those that follow.
        median(times.split_off(200))
    };
    let ratios: Vec<f64> = (0..3)
        .map(|_| {
            let (small, large) = (measure(100), measure(100_000));
            println!("  10 KB {small:.1} us, 10 MB {large:.1} us");
            large / small
        })
        .collect();
    println!("  ratio {:.2}", median(ratios));
}
