//! How many durable commits a second a store takes from many writers at once, against one writer in the same run.
//!
//! `cargo bench -p dendrer --bench writers` prints; never judges. Each commit is one step of 1 KB, synced and
//! acknowledged before the next one of its writer is made. `BENCH_DIR` says where the stores are made.

#![expect(clippy::print_stdout, reason = "figures are printed, nothing else is done with them")]

#[allow(dead_code, reason = "shared with the figures, which use the rest")]
mod common;
mod slow;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use common::{intents, median, new_store};
use dendrer::Recorder;
use dendrer::recorder::World;
use dendrer::store::Shared;
use dendrer::store::embedded::{Embedded, Options};
use dendrer::store::prelude::*;
use dendrer_kernel::step::Start;
use dendrer_object::Intent;
use slow::Slow;

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const WRITERS: u64 = 64;
const ROUNDS: usize = 3;
/// How many different steps a writer has.
const STEPS: usize = 50;
/// How many of them it commits before the clock starts.
const WARM_UP: usize = 10;
const FOR: Duration = Duration::from_secs(2);

/// What a sync takes on a disk that waits for its medium.
const SLOW: Duration = Duration::from_millis(3);

/// What tells a process that it is one of the writers: how long a sync takes at least, a number, the directory of the store.
const CHILD: &str = "DENDRER_BENCH_WRITER";

fn main() {
    if let Ok(what) = std::env::var(CHILD) {
        let mut parts = what.splitn(3, ' ');
        let mut number = || parts.next().and_then(|text| text.parse().ok()).expect("a number");
        let (least, writer) = (Duration::from_micros(number()), number());
        return child(Path::new(parts.next().expect("a path")), writer, least);
    }
    let place = std::env::var_os("BENCH_DIR").unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into());
    let dir = tempfile::tempdir_in(place).expect("a directory");
    // `-- threads` or `-- processes` runs a part.
    let wanted = |part: &str| std::env::args().skip(1).all(|arg| arg.starts_with('-') || arg == part);
    println!("durable commits a second, one step of 1 KB each, each writer on a run of its own");
    for (disk, least) in [("this disk", Duration::ZERO), ("syncs of 3 ms", SLOW)] {
        if wanted("threads") {
            let ratio = compare(dir.path(), &format!("threads, {disk}"), least, &threads);
            println!("  {disk}: {WRITERS} threads against 1: {ratio:.1} (limit: at least 5)");
        }
        if wanted("processes") {
            let ratio = compare(dir.path(), &format!("processes, {disk}"), least, &processes);
            println!(
                "  {disk}: {WRITERS} processes against 1: {ratio:.2} (limit: at least 0.80, and none waits for a second)"
            );
        }
    }
}

/// Runs one writer and many beside each other, some rounds long; returns the median of how much more the many do.
fn compare(dir: &Path, what: &str, least: Duration, run: &dyn Fn(&Path, u64, Duration) -> Figures) -> f64 {
    let round = |round: usize| {
        let store = |writers: u64| {
            let name = format!("{what} {writers} {round}");
            drop(new_store(dir, &name));
            dir.join(name)
        };
        let one = run(&store(1), 1, least);
        let many = run(&store(WRITERS), WRITERS, least);
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

fn open(path: &Path, least: Duration) -> Embedded {
    let options = match least.is_zero() {
        true => Options::untagged(),
        false => Options { disk: Arc::new(Slow(least)), ..Options::untagged() },
    };
    Embedded::open(path, options).expect("opened")
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
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

/// Commits steps one by one for a while, once `ready` returns.
fn write(store: &Shared, number: u64, intents: &[Intent], ready: impl FnOnce()) -> Done {
    let start = Start::new(format!("writer-{number}").parse().expect("a name"));
    let mut recorder = Recorder::begin(store, &start, Box::new(World::default())).expect("a run");
    let mut commit = |intent: &Intent| {
        let begin = Instant::now();
        recorder.propose(intent).expect("a step");
        recorder.commit().expect("committed");
        begin.elapsed()
    };
    // The first ones fetch memory from the system, which whoever records for long does once.
    for intent in &intents[..WARM_UP] {
        commit(intent);
    }
    ready();
    let end = Instant::now() + FOR;
    let mut done = Done { commits: 0, longest: Duration::ZERO };
    // Made beforehand: what an agent does between two steps is not of the store.
    for intent in intents.iter().cycle() {
        if Instant::now() >= end {
            break;
        }
        done.longest = done.longest.max(commit(intent));
        done.commits += 1;
    }
    done
}

fn threads(path: &Path, writers: u64, least: Duration) -> Figures {
    let store = Shared::new(Box::new(open(path, least)));
    let (intents, together) = (intents(STEPS), Barrier::new(writers as usize + 1));
    let (begin, done) = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..writers)
            .map(|number| {
                let (store, intents, together) = (store.clone(), &intents, &together);
                scope.spawn(move || {
                    write(&store, number, intents, || {
                        together.wait();
                    })
                })
            })
            .collect();
        together.wait();
        let begin = Instant::now();
        let done: Vec<Done> =
            writers.into_iter().map(|writer| writer.join().expect("a writer ends")).collect();
        (begin, done)
    });
    let figures = Figures::of(&done, begin.elapsed());
    AppendLog::close(Box::new(store)).expect("closed");
    figures
}

fn processes(path: &Path, writers: u64, least: Duration) -> Figures {
    let children: Vec<_> = (0..writers)
        .map(|number| {
            Command::new(std::env::current_exe().expect("this program"))
                .env(CHILD, format!("{} {number} {}", least.as_micros(), path.display()))
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("a process")
        })
        .collect();
    // They begin together, once all have opened the store and committed something.
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

fn child(path: &Path, number: u64, least: Duration) {
    let store = Shared::new(Box::new(open(path, least)));
    let ready = || {
        println!("open");
        std::io::stdin().lines().for_each(drop);
    };
    let done = write(&store, number, &intents(STEPS), ready);
    println!("{} {}", done.commits, done.longest.as_micros());
}
