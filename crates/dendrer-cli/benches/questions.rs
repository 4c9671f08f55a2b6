//! How long a question about a long run takes, as a whole process: the program started, the store opened, the answer
//! printed. `cargo bench -p dendrer-cli --bench questions` prints; never judges. `TICKS` sets the length of the run.

#![expect(clippy::print_stdout, reason = "figures are printed, nothing else is done with them")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use dendrer::Recorder;
use dendrer::recorder::{World, begin_log};
use dendrer::store::embedded::{Embedded, Options};
use dendrer::store::{Store, StoreInfo};
use dendrer_kernel::step::Start;
use dendrer_object::delta::{Delta, Op};
use dendrer_object::note::SigningKey;
use dendrer_object::{Intent, StoreId, Value};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often each question is asked once its verdicts are kept.
const ROUNDS: usize = 15;

fn main() {
    let ticks = std::env::var("TICKS").ok().and_then(|text| text.parse().ok()).unwrap_or(1_000_000u64);
    let dir = tempfile::tempdir_in(
        std::env::var_os("BENCH_DIR").unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into()),
    )
    .expect("a directory");
    let state = state();
    println!(
        "bisect over {ticks} ticks, state of {} KB, whole process with kept verdicts (limit: 100 ms)",
        state.size() / 1000
    );
    let made = Instant::now();
    record(dir.path(), state, ticks);
    println!("  recorded in {:.0} s", made.elapsed().as_secs_f64());
    let bound = format!("state.n < {}.0", ticks * 7 / 10);
    let questions: [(&str, &[&str]); 4] = [
        ("may recover", &["bisect", "long", "--holds", &bound]),
        ("lifted", &["bisect", "long", "--holds", &bound, "--lift"]),
        ("by construction, no onset", &["bisect", "long", "--anomaly", "contract.missing"]),
        ("nothing to find in it", &["version"]),
    ];
    for (what, args) in questions {
        let first = timed(dir.path(), args);
        let mut times: Vec<Duration> = (0..ROUNDS).map(|_| timed(dir.path(), args)).collect();
        times.sort();
        println!(
            "  {what:<26} first {:>8.1} ms   then {:>6.1} ms (median of {ROUNDS}, fastest {:.1})",
            milliseconds(first),
            milliseconds(times[ROUNDS / 2]),
            milliseconds(times[0]),
        );
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn timed(dir: &Path, args: &[&str]) -> Duration {
    let start = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_dendrer"))
        .args(args)
        .args(["--store", "store", "--key", "key"])
        .current_dir(dir)
        .output()
        .expect("the program runs");
    let time = start.elapsed();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
    time
}

/// 600 members of about 100 bytes.
fn state() -> Value {
    let members = (0..600).map(|n| (format!("member_{n:03}").into(), Value::from("v".repeat(84))));
    Value::Object(members.chain([("n".into(), Value::from(0.0))]).collect())
}

fn record(dir: &Path, state: Value, ticks: u64) {
    let id = StoreId([7; 16]);
    let key = SigningKey::from_seed(&id.origin(), [7; 32]).expect("a name");
    std::fs::write(dir.join("key"), format!("{}\n", key.secret_text())).expect("written");
    let path = dir.join("store");
    let info = StoreInfo::new(id, key.verifier_key().clone());
    let mut store = Embedded::create(&path, info, Options::write()).expect("a store");
    begin_log(&mut store, &mut World::default()).expect("a log");
    let mut start = Start::new("long".parse().expect("a name"));
    start.state = state;
    let mut recorder = Recorder::begin(&mut store, &start, Box::new(World::default())).expect("a run");
    let mut from = 1;
    while from <= ticks {
        let group: Vec<Intent> = (from..=ticks.min(from + 99)).map(intent).collect();
        recorder.propose_each(&group).expect("steps");
        recorder.append().expect("appended");
        from += 100;
    }
    drop(recorder);
    store.sync().expect("synced");
    store.sign_checkpoint(&key).expect("signed");
    store.close().expect("closed");
}

/// Counts, and writes to one of the other members.
fn intent(tick: u64) -> Intent {
    let at = |path: String| path.parse().expect("a pointer");
    let delta = Delta(vec![
        Op::set(at("/n".to_owned()), Value::from(tick as f64)),
        Op::set(at(format!("/member_{:03}", tick * 7919 % 600)), Value::from(format!("{tick:084}"))),
    ]);
    Intent::new("memory.write".parse().expect("a type"), "agent").with_delta(delta)
}
