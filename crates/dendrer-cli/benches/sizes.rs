//! What grows with the length of a run, and what does not: opening, the first screen of `log`, a state in the middle, a
//! fork, a diff of what is mostly shared, the probes of `bisect`, `verify`. What a bisect takes once its verdicts are kept is in `questions`. Prints; never judges.
//!
//! `cargo bench -p dendrer-cli --bench sizes` runs it. `SIZES` sets the lengths, by commas; 10,000,000 ticks take 9 GB
//! in `BENCH_DIR`.

#![expect(clippy::print_stdout, reason = "figures are printed, nothing else is done with them")]

use std::fs;
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dendrer::Trace;
use dendrer::store::Slot;
use dendrer::store::embedded::{Embedded, Options};
use dendrer::store::prelude::*;
use dendrer_object::{RunName, Value, json};

mod long;

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often a short question is asked.
const ROUNDS: usize = 15;

/// How many ticks are asked for their state.
const STATES: u64 = 200;

/// How many lines of `log` fill a screen.
const SCREEN: usize = 50;

/// What one length took.
struct Size {
    ticks: u64,
    verify_us: f64,
    probes: u64,
    /// First bisect of a predicate that is monotone by construction, as a whole process.
    latched: Duration,
}

fn main() {
    let sizes = std::env::var("SIZES").unwrap_or_else(|_| "1000,10000,100000,1000000".to_owned());
    let sizes: Vec<u64> = sizes.split(',').filter_map(|text| text.trim().parse().ok()).collect();
    let dir = tempfile::tempdir_in(
        std::env::var_os("BENCH_DIR").unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into()),
    )
    .expect("a directory");
    let taken: Vec<Size> = sizes.iter().map(|ticks| measure(dir.path(), *ticks)).collect();
    if let (Some(first), Some(last)) =
        (taken.iter().find(|size| size.ticks >= 100_000), taken.last().filter(|size| size.ticks > 100_000))
    {
        println!(
            "verify of {} ticks against {}, per record (limit: 1.50): {:.2}",
            last.ticks,
            first.ticks,
            last.verify_us / first.verify_us
        );
    }
    if let (Some(first), Some(last)) = (taken.iter().find(|size| size.ticks >= 10_000), taken.last()) {
        println!(
            "first bisect by construction of {} ticks against {} (limit: 5.00): {:.2}",
            last.ticks,
            first.ticks,
            last.latched.as_secs_f64() / first.latched.as_secs_f64()
        );
    }
    for size in &taken {
        let log = u64::from(u64::BITS - (size.ticks - 1).leading_zeros());
        println!("bisect of {} ticks: {} probes (limit: {log})", size.ticks, size.probes);
    }
    let ticks = sizes.last().copied().unwrap_or(1_000_000).min(1_000_000);
    println!("a run of {ticks} ticks with a state of {} KB", long::state().size() / 1000);
    long::record(dir.path(), long::state(), ticks);
    states(&dir.path().join("store"), "long", ticks);
}

/// Asks everything of a generated run of this length, and removes it.
fn measure(dir: &Path, ticks: u64) -> Size {
    let at = dir.join("demo");
    let run = format!("generated-{ticks}");
    let begin = Instant::now();
    let size = ticks.to_string();
    timed(dir, &["demo", "demo", "--size", &size, "--no-tour"]);
    println!("{ticks} ticks, recorded and indexed in {:.1} s", begin.elapsed().as_secs_f64());
    let store = at.join(".dendrer");
    report("open, in the library", || open(&store, &run));
    report("runs", || timed(&at, &["runs"]));
    report("log, first screen", || first_screen(&at, &run));
    states(&store, &run, ticks);
    let middle = format!("{run}@{}", ticks * 7 / 10);
    report("state at a tick", || timed(&at, &["state", &middle]));
    forks(&at, &run, ticks);
    diffs(&at, &run, ticks);
    let violated = format!("state.handled >= {}", ticks * 7 / 10);
    let begin = Instant::now();
    let probes = probes(&at, &run, &violated);
    println!("  {:<24} {:>9.1} ms, every tick judged once", "bisect", begin.elapsed().as_secs_f64() * 1e3);
    let latched = latched(&at, &run, ticks);
    let mut times: Vec<Duration> =
        (0..if ticks > 1_000_000 { 1 } else { 3 }).map(|_| timed(&at, &["verify"])).collect();
    times.sort();
    let verify = times[times.len() / 2];
    let verify_us = verify.as_secs_f64() * 1e6 / ticks as f64;
    println!("  {:<24} {:>9.1} s  {verify_us:.2} us a record", "verify", verify.as_secs_f64());
    fs::remove_dir_all(&at).expect("removed");
    Size { ticks, verify_us, probes, latched }
}

/// Median of first bisects over counters, each with a bound of its own so that no verdicts are known.
fn latched(dir: &Path, run: &str, ticks: u64) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS as u64)
        .map(|round| {
            let holds = format!("state.counters.tool_calls < {}", ticks * 7 / 40 + round);
            let name = format!("acme.calls{round}");
            timed(dir, &["predicate", "register", &name, "--holds", &holds]);
            timed(dir, &["bisect", run, "--predicate", &name])
        })
        .collect();
    times.sort();
    let median = times[times.len() / 2];
    println!("  {:<24} {:>9.1} ms, first time, by construction", "bisect", median.as_secs_f64() * 1e3);
    median
}

fn report(what: &str, mut f: impl FnMut() -> Duration) {
    let mut times: Vec<Duration> = (0..ROUNDS).map(|_| f()).collect();
    times.sort();
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    println!(
        "  {what:<24} {:>9.1} ms (median of {ROUNDS}, slowest {:.1})",
        ms(times[ROUNDS / 2]),
        ms(times[ROUNDS - 1])
    );
}

fn program(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dendrer"));
    command.args(args).current_dir(dir).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn timed(dir: &Path, args: &[&str]) -> Duration {
    let start = Instant::now();
    let output = program(dir, args).output().expect("the program runs");
    let time = start.elapsed();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
    time
}

/// Forks from the end of the run beside forks from its tick 10, in turns.
fn forks(dir: &Path, run: &str, ticks: u64) {
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        for (times, tick) in times.iter_mut().zip([10, ticks]) {
            let (from, name) = (tick.to_string(), format!("fork-{tick}-{round}"));
            let args = ["fork", "--run", run, "--from", "tick", &from, "--as", &name, "--reason", "a figure"];
            times.push(timed(dir, &args).as_secs_f64() * 1e3);
        }
    }
    let [early, late] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 2]
    });
    println!(
        "  {:<24} {late:>9.1} ms at the last tick, {early:.1} ms at tick 10: {:.2} (limit: as fast)",
        "fork",
        late / early
    );
}

/// Compares runs that share all but their last ticks, a thousand where there are as many: two that end alike, and two that
/// do not.
fn diffs(dir: &Path, run: &str, ticks: u64) {
    let own = 1000.min(ticks / 2);
    let from = (ticks - own).to_string();
    for (name, value) in [("diff-a", 1), ("diff-b", 1), ("diff-c", 2)] {
        timed(dir, &["fork", "--run", run, "--from", "tick", &from, "--as", name, "--reason", "a figure"]);
        let line = |n| {
            format!(
                r#"{{"type":"observation.add","agent":"a","intent":{{"n":{n}}},"delta":[{{"set":"/figure","value":{value}}}]}}"#
            )
        };
        let lines: Vec<String> = (1..own).map(line).collect();
        fs::write(dir.join("own.jsonl"), lines.join("\n")).expect("written");
        timed(dir, &["commit", "--run", name, "--file", "own.jsonl"]);
    }
    report("diff, equal in the end", || timed(dir, &["diff", "diff-a", "diff-b", "--summary"]));
    report("diff, not equal", || timed(dir, &["diff", "diff-a", "diff-c", "--summary"]));
}

fn open(store: &Path, run: &str) -> Duration {
    let start = Instant::now();
    let store = Embedded::open(store, Options::read()).expect("opened");
    black_box(store.run(&name(run)).expect("read"));
    start.elapsed()
}

fn name(run: &str) -> RunName {
    run.parse().expect("a name")
}

/// From the start of the program to the last line that a person sees before scrolling.
fn first_screen(dir: &Path, run: &str) -> Duration {
    let start = Instant::now();
    let mut child = program(dir, &["log", run]).spawn().expect("the program runs");
    let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert_eq!(lines.take(SCREEN).filter(Result::is_ok).count(), SCREEN);
    let time = start.elapsed();
    let _ = child.kill();
    child.wait().expect("the program ends");
    time
}

fn probes(dir: &Path, run: &str, violated: &str) -> u64 {
    let output = program(dir, &["bisect", run, "--predicate", violated, "--json"]).output();
    let answer = json::parse_door(&output.expect("the program runs").stdout).expect("a document");
    answer.get("items").and_then(Value::as_array).expect("the probes").len() as u64
}

/// States of ticks all over the run, each read by a trace that knows none yet, against parsing the snapshot before it, and
/// against reading the state of that snapshot's own tick, which is to look it up, to parse it and to hold it against the
/// root on record.
fn states(dir: &Path, run: &str, ticks: u64) {
    let store = Arc::new(Embedded::open(dir, Options::read()).expect("opened"));
    let run = name(run);
    let (mut ratios, mut to_own, mut reading, mut folded) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for n in 0..STATES {
        let tick = 1 + n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % ticks;
        let trace = Trace::open(&store, &run).expect("a run");
        let start = Instant::now();
        black_box(trace.state(tick).expect("a state"));
        let read = start.elapsed().as_secs_f64();
        let nearest = store.kept(Slot::Snapshot(&run, tick)).expect("read");
        let (from, bytes) =
            nearest.unwrap_or_else(|| (0, trace.genesis().expect("a state").to_snapshot(None)));
        let (_tag, text) = bytes.split_at(32);
        let start = Instant::now();
        black_box(json::parse_canonical(text).expect("JSON"));
        let parsed = start.elapsed().as_secs_f64();
        let trace = Trace::open(&store, &run).expect("a run");
        let start = Instant::now();
        black_box(trace.state(from).expect("a state"));
        to_own.push(read / start.elapsed().as_secs_f64());
        ratios.push(read / parsed);
        reading.push(read * 1e3);
        folded.push((tick - from) as f64);
    }
    let spread = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        (values[values.len() / 2], values[values.len() - 1])
    };
    let (ratio, worst) = spread(&mut ratios);
    let (own, own_worst) = spread(&mut to_own);
    let (median, slowest) = spread(&mut reading);
    let (fold, fold_most) = spread(&mut folded);
    println!(
        "  {:<24} {median:>9.2} ms (median of {STATES}, slowest {slowest:.2}); {ratio:.1} of parsing the nearest \
         snapshot, worst {worst:.1} (limit: 5); {own:.1} of reading the state there, worst {own_worst:.1}; {fold:.0} \
         ticks folded, most {fold_most:.0}",
        "state, in the library"
    );
}
