//! How many durable commits a second a store takes from many writers at once, against one writer in the same run.
//!
//! `cargo bench -p dendrer --bench writers` prints; never judges. Each commit is one step of 1 KB, synced and
//! acknowledged before the next one of its writer is made. `BENCH_DIR` says where the stores are made.

#![expect(clippy::print_stdout, reason = "figures are printed, nothing else is done with them")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use dendrer::Recorder;
use dendrer::recorder::{World, begin_log};
use dendrer::store::embedded::{Embedded, Options};
use dendrer::store::{Shared, Store, StoreInfo};
use dendrer_kernel::step::Start;
use dendrer_object::note::SigningKey;
use dendrer_object::{Intent, StoreId, Value};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const WRITERS: u64 = 64;
const ROUNDS: usize = 5;
const FOR: Duration = Duration::from_secs(2);

/// What tells a process that it is one of the writers: the directory of the store, and a number.
const CHILD: &str = "DENDRER_BENCH_WRITER";

fn main() {
    if let Ok(what) = std::env::var(CHILD) {
        let (number, path) = what.split_once(' ').expect("a number and a path");
        return child(Path::new(path), number.parse().expect("a number"));
    }
    let place = std::env::var_os("BENCH_DIR").unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
    let dir = tempfile::tempdir_in(place).expect("a directory");
    println!("durable commits a second, one step of 1 KB each, each writer on a run of its own");
    // `-- threads` or `-- processes` runs a part.
    let wanted = |part: &str| std::env::args().skip(1).all(|arg| arg.starts_with('-') || arg == part);
    if wanted("threads") {
        let ratio = compare(dir.path(), "threads", &threads);
        println!("  {WRITERS} threads against 1: {ratio:.1} (limit: at least 5)");
    }
    if wanted("processes") {
        let ratio = compare(dir.path(), "processes", &processes);
        println!(
            "  {WRITERS} processes against 1: {ratio:.2} (limit: at least 0.80, and none waits for a second)"
        );
    }
}

/// Runs one writer and many beside each other, some rounds long; returns the median of how much more the many do.
fn compare(dir: &Path, what: &str, run: &dyn Fn(&Path, u64) -> Figures) -> f64 {
    let round = |round: usize| {
        let one = run(&dir.join(format!("{what}-1-{round}")), 1);
        let many = run(&dir.join(format!("{what}-{WRITERS}-{round}")), WRITERS);
        println!(
            "  {what}: 1 writer {:.0}/s, {WRITERS} writers {:.0}/s, longest wait {:.0} ms",
            one.rate,
            many.rate,
            ms(many.longest)
        );
        many.rate / one.rate
    };
    median((0..ROUNDS).map(round).collect())
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What some writers did together.
struct Figures {
    rate: f64,
    /// The longest that one commit took.
    longest: Duration,
}

/// What one writer did.
struct Done {
    commits: u64,
    longest: Duration,
}

impl Figures {
    fn of(done: &[Done], time: Duration) -> Figures {
        Figures {
            rate: done.iter().map(|done| done.commits).sum::<u64>() as f64 / time.as_secs_f64(),
            longest: done.iter().map(|done| done.longest).max().unwrap_or_default(),
        }
    }
}

fn new_store(path: &Path) -> Embedded {
    std::fs::create_dir_all(path).expect("a directory");
    let key = SigningKey::from_seed(&StoreId([7; 16]).origin(), [7; 32]).expect("a name");
    let info = StoreInfo::new(StoreId([7; 16]), key.verifier_key().clone());
    let mut store = Embedded::create(path, info, Options::write()).expect("a store");
    begin_log(&mut store, &mut World::default()).expect("a log");
    store
}

/// Commits steps one by one until the time is over.
fn write(store: &mut dyn Store, number: u64, end: Instant) -> Done {
    let start = Start::new(format!("writer-{number}").parse().expect("a name"));
    let mut recorder = Recorder::begin(store, &start, Box::new(World::default())).expect("a run");
    let mut done = Done { commits: 0, longest: Duration::ZERO };
    let text: String = "alpha route storm hotel price train plan check ".repeat(10);
    while Instant::now() < end {
        let begin = Instant::now();
        let params = Value::record([("n", Value::from(done.commits)), ("prompt", Value::from(&text[..420]))]);
        let result = Value::record([("output", Value::from(&text[20..470])), ("status", Value::from("ok"))]);
        let intent = Intent::new("action.result".parse().expect("a type"), "agent")
            .by_runtime()
            .with("action", Value::record([("params", params), ("tool", Value::from("model.call"))]))
            .with("result", result);
        recorder.propose(&intent).expect("a step");
        recorder.commit().expect("committed");
        done.commits += 1;
        done.longest = done.longest.max(begin.elapsed());
    }
    done
}

fn threads(path: &Path, writers: u64) -> Figures {
    let store = Shared::new(Box::new(new_store(path)));
    let (begin, end) = (Instant::now(), Instant::now() + FOR);
    let done: Vec<Done> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..writers)
            .map(|number| {
                let mut store = store.clone();
                scope.spawn(move || write(&mut store, number, end))
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().expect("a writer ends")).collect()
    });
    let figures = Figures::of(&done, begin.elapsed());
    Store::close(Box::new(store)).expect("closed");
    figures
}

fn processes(path: &Path, writers: u64) -> Figures {
    drop(new_store(path));
    let children: Vec<_> = (0..writers)
        .map(|number| {
            Command::new(std::env::current_exe().expect("this program"))
                .env(CHILD, format!("{number} {}", path.display()))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("a process")
        })
        .collect();
    // They begin together, once all have opened the store.
    let mut readers: Vec<_> = children
        .into_iter()
        .map(|mut child| {
            let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
            assert_eq!(lines.next().expect("a line").expect("read"), "open");
            (child, lines)
        })
        .collect();
    let begin = Instant::now();
    readers.iter_mut().for_each(|(child, _)| drop(child.stdin.take()));
    let mut time = Duration::ZERO;
    let done: Vec<Done> = readers
        .into_iter()
        .map(|(mut child, mut lines)| {
            let line = lines.next().expect("a line").expect("read");
            time = time.max(begin.elapsed());
            child.wait().expect("it ends");
            let (commits, longest) = line.split_once(' ').expect("two numbers");
            let longest = Duration::from_micros(longest.parse().expect("a number"));
            Done { commits: commits.parse().expect("a number"), longest }
        })
        .collect();
    Figures::of(&done, time)
}

fn child(path: &Path, number: u64) {
    let mut store = Embedded::open(path, Options::write()).expect("opened");
    println!("open");
    std::io::stdin().lines().for_each(drop);
    let done = write(&mut store, number, Instant::now() + FOR);
    println!("{} {}", done.commits, done.longest.as_micros());
}
