//! How long a question about a long run takes, as a whole process: the program started, the store opened, the answer
//! printed. `cargo bench -p dendrer-cli --bench questions` prints; never judges. `TICKS` sets the length of the run.

#![expect(clippy::print_stdout, reason = "figures are printed, nothing else is done with them")]

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use long::{record, state};

mod long;

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
