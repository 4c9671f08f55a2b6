//! Recording, reading back and verifying beside the tools that others use for it, in the same run on the same input.
//! Prints; never judges.
//!
//! `just bench-peers` installs the peers and runs it; what each is asked to do stands in `peers/`. `STEPS`, `TURNS` and
//! `ROUNDS` set how much, `BENCH_DIR` where.

#![expect(clippy::print_stdout, reason = "figures are printed, nothing else is done with them")]

use std::collections::BTreeMap;
use std::fs;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dendrer::store::embedded::{Embedded, Options};
use dendrer::store::prelude::*;
use dendrer::verify;
use dendrer_object::delta::{Delta, Op};
use dendrer_object::{Intent, Value, json};

use common::{Words, cpu, intents, key, lines, median, new_store, record_steps, record_synced};

#[path = "../../dendrer/benches/common/mod.rs"]
mod common;

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many steps are asked of a peer whose cost of one grows with those before.
const FEW: usize = 100;

/// What one contender took, in microseconds and bytes a step.
#[derive(Default, Clone, Copy)]
struct Figures {
    wall: f64,
    cpu: f64,
    read: Option<f64>,
    verify: Option<f64>,
    bytes: f64,
    allocated: f64,
}

/// A way to record, and with what it can be compared.
struct Contender {
    name: &'static str,
    durable: Durable,
    run: Box<dyn Fn(&Bench) -> Figures>,
}

/// What is sure once a step counts as recorded.
#[derive(Clone, Copy, PartialEq)]
enum Durable {
    /// It survives the end of the machine.
    EachStep,
    /// So it does, once the group that it is in is acknowledged.
    EachGroup,
    /// It survives the end of the process.
    No,
}

struct Bench {
    dir: PathBuf,
    python: PathBuf,
    steps: usize,
    intents: Vec<Intent>,
}

fn main() {
    let number = |name: &str, default: usize| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (steps, turns, rounds) = (number("STEPS", 10_000), number("TURNS", 400), number("ROUNDS", 5));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let python =
        std::env::var_os("PEERS_PYTHON").map_or_else(|| root.join("target/peers/bin/python"), PathBuf::from);
    if !python.exists() {
        println!("the peers are not installed: scripts/bench-peers.sh does so, and runs this");
        return;
    }
    let dir = tempfile::tempdir_in(
        std::env::var_os("BENCH_DIR").unwrap_or_else(|| env!("CARGO_TARGET_TMPDIR").into()),
    )
    .expect("a directory");
    let bench = Bench { dir: dir.path().to_owned(), python, steps, intents: intents(steps) };
    bench.write("steps", lines(steps));
    bench.write("few-steps", lines(FEW.min(steps)));
    let turns_texts: Vec<String> = messages(turns).into_iter().map(|(text, _)| text).collect();
    bench.write("few-turns", turns_texts.iter().take(FEW).cloned().collect());
    bench.write("turns", turns_texts);
    if rounds > 0 {
        recording(&bench, rounds);
    }
    growing(&bench, turns);
}

impl Bench {
    fn write(&self, name: &str, lines: Vec<String>) {
        fs::write(self.dir.join(name), lines.join("\n") + "\n").expect("written");
    }

    /// An empty directory.
    fn fresh(&self, name: &str) -> PathBuf {
        let dir = self.dir.join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).expect("a directory");
        dir
    }
}

fn contenders() -> Vec<Contender> {
    use Durable::{EachGroup, EachStep, No};
    let of = |name, durable, run: Box<dyn Fn(&Bench) -> Figures>| Contender { name, durable, run };
    vec![
        of("dendrer, a step a sync", EachStep, Box::new(|bench| library(bench, 1, true))),
        of("dendrer commit, each line awaited", EachStep, Box::new(program_awaited)),
        of("agentrr", EachStep, Box::new(|bench| peer(bench, "agentrr", "steps", &[]))),
        of("langgraph", EachStep, Box::new(|bench| peer(bench, "langgraph", "steps", &[]))),
        of("opentine", EachStep, Box::new(|bench| peer(bench, "opentine", "few-steps", &[]))),
        of("dendrer, 100 steps a sync", EachGroup, Box::new(|bench| library(bench, 100, true))),
        of("dendrer commit, from a pipe", EachGroup, Box::new(program_piped)),
        of("dendrer, a step a group, no sync", No, Box::new(|bench| library(bench, 1, false))),
        of("dendrer, 100 steps a group, no sync", No, Box::new(|bench| library(bench, 100, false))),
        of("retrial", No, Box::new(|bench| peer(bench, "retrial", "steps", &[]))),
        of(
            "agentrr, its sync off",
            No,
            Box::new(|bench| peer(bench, "agentrr", "steps", &[("AGENTRR_FSYNC", "0")])),
        ),
    ]
}

fn recording(bench: &Bench, rounds: usize) {
    println!(
        "recording {} steps of 1 KB ({FEW} for opentine, whose cost of one grows), {rounds} rounds, medians",
        bench.steps
    );
    let contenders = contenders();
    let mut taken: BTreeMap<&str, Vec<Figures>> = BTreeMap::new();
    for round in 1..=rounds {
        println!("  round {round}: load {}", load());
        for contender in &contenders {
            let figures = (contender.run)(bench);
            println!("    {:<36} wall {:>9.1} CPU {:>9.1}", contender.name, figures.wall, figures.cpu);
            taken.entry(contender.name).or_default().push(figures);
        }
    }
    println!(
        "  {:<36} {:>9} {:>9} {:>9} {:>10} {:>10} {:>9} {:>9}",
        "us a step", "wall", "CPU", "read", "verify", "bytes", "allocated", "steps/s"
    );
    let middle = |name: &str, of: &dyn Fn(&Figures) -> f64| median(taken[name].iter().map(of).collect());
    for contender in &contenders {
        let name = contender.name;
        let optional = |of: &dyn Fn(&Figures) -> Option<f64>| {
            taken[name][0].read.and(of(&taken[name][0])).map_or_else(
                || "-".to_owned(),
                |_| format!("{:.1}", middle(name, &|figures| of(figures).unwrap_or(f64::NAN))),
            )
        };
        println!(
            "  {name:<36} {:>9.1} {:>9.1} {:>9} {:>10} {:>10.0} {:>9.0} {:>9.0}",
            middle(name, &|figures| figures.wall),
            middle(name, &|figures| figures.cpu),
            optional(&|figures| figures.read),
            optional(&|figures| figures.verify),
            middle(name, &|figures| figures.bytes),
            middle(name, &|figures| figures.allocated),
            1e6 / middle(name, &|figures| figures.wall),
        );
    }
    ratios(&contenders, &taken);
}

/// How many times as fast dendrer was, of the pairs that promise the same, round by round.
fn ratios(contenders: &[Contender], taken: &BTreeMap<&str, Vec<Figures>>) {
    let is_ours = |contender: &&Contender| contender.name.starts_with("dendrer");
    println!(
        "  dendrer / peer, steps a second (limit: 10 times the fastest of its kind), then CPU, bytes, reading, verifying"
    );
    for peer in contenders.iter().filter(|contender| !is_ours(contender)) {
        for ours in contenders.iter().filter(is_ours) {
            // What is acknowledged by the group promises as much as what is synced each time, a little later.
            let is_alike = ours.durable == peer.durable
                || (ours.durable == Durable::EachGroup && peer.durable == Durable::EachStep);
            if !is_alike {
                continue;
            }
            let pairs = || taken[peer.name].iter().zip(&taken[ours.name]);
            let times = |of: &dyn Fn(&Figures) -> Option<f64>| {
                let all: Option<Vec<f64>> = pairs().map(|(a, b)| Some(of(a)? / of(b)?)).collect();
                all.map_or_else(|| "-".to_owned(), |all| format!("{:.1}", median(all)))
            };
            println!(
                "  {:<36} / {:<22} {:>7} {:>7} {:>7} {:>7} {:>7}",
                ours.name,
                peer.name,
                times(&|figures| Some(figures.wall)),
                times(&|figures| Some(figures.cpu)),
                times(&|figures| Some(figures.bytes)),
                times(&|figures| figures.read),
                times(&|figures| figures.verify),
            );
        }
    }
}

fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split_whitespace().next().unwrap_or_default().to_owned()
}

/// Runs the harness of a peer.
fn peer(bench: &Bench, name: &str, what: &str, env: &[(&str, &str)]) -> Figures {
    let dir = bench.fresh(name);
    let kind = what.strip_prefix("few-").unwrap_or(what);
    let file = bench.dir.join(what.strip_suffix("-delta").unwrap_or(what));
    let output = Command::new(&bench.python)
        .args(["-m", &format!("with_{name}"), kind])
        .arg(file)
        .arg(&dir)
        .env("PYTHONPATH", Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/peers"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .envs(env.iter().copied())
        .current_dir(&dir)
        .output()
        .expect("python runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name} ended with {}: {said}", output.status);
    let value = json::parse_door(&output.stdout).expect("the harness prints JSON");
    let number = |name: &str| value.get(name).and_then(Value::as_f64);
    let steps = number("steps").unwrap_or(f64::NAN);
    let figures = Figures {
        wall: number("wall_us").unwrap_or(f64::NAN),
        cpu: number("cpu_us").unwrap_or(f64::NAN),
        read: number("read_wall_us"),
        verify: number("verify_wall_us"),
        bytes: number("bytes").unwrap_or(f64::NAN) / steps,
        allocated: number("allocated").unwrap_or(f64::NAN) / steps,
    };
    fs::remove_dir_all(&dir).expect("removed");
    figures
}

fn update_index(path: &Path) {
    let mut store = Embedded::open(path, Options::untagged()).expect("opened");
    store.update_index().expect("an index");
}

fn library(bench: &Bench, group: usize, is_synced: bool) -> Figures {
    bench.fresh("dendrer");
    let mut store = new_store(&bench.dir, "dendrer");
    let (start, cpu_before) = (Instant::now(), cpu());
    if is_synced {
        record_synced(&store, "bench", bench.intents.chunks(group), true);
    } else {
        record_steps(&store, "bench", &bench.intents, group);
    }
    let wall = start.elapsed();
    // The index that follows behind is part of what recording costs, and nobody waits for it. It covers what is synced.
    let ticket = store.submit(&[]).expect("a sync");
    store.wait(ticket).expect("synced");
    update_index(&bench.dir.join("dendrer"));
    let cpu_taken = cpu() - cpu_before;
    store.sign_checkpoint(&key()).expect("signed");
    AppendLog::close(Box::new(store)).expect("closed");
    figures(bench, wall, cpu_taken)
}

/// Reads and verifies what was recorded, and weighs it.
fn figures(bench: &Bench, wall: Duration, cpu_taken: Duration) -> Figures {
    let us = |time: Duration| time.as_secs_f64() * 1e6 / bench.steps as f64;
    let dir = bench.dir.join("dendrer");
    let store = Arc::new(Embedded::open(&dir, Options::read()).expect("opened"));
    let start = Instant::now();
    let mut read = 0;
    store
        .scan(0..store.tree().size, &mut |_, record| {
            black_box(record.content());
            read += 1;
            ControlFlow::Continue(())
        })
        .expect("read");
    let reading = start.elapsed();
    assert_eq!(read, bench.steps + 2, "the steps, the run and the log");
    let start = Instant::now();
    let report = verify::store(&store, &verify::VerifyTerms::default()).expect("verified");
    let verifying = start.elapsed();
    assert_eq!(report.verdict, verify::VerifyVerdict::Intact, "{:?}", report.findings);
    drop(store);
    let (bytes, allocated) = on_disk(&dir);
    Figures {
        wall: us(wall),
        cpu: us(cpu_taken),
        read: Some(us(reading)),
        verify: Some(us(verifying)),
        bytes: bytes as f64 / bench.steps as f64,
        allocated: allocated as f64 / bench.steps as f64,
    }
}

/// Bytes in files, and bytes that the file system took for them.
fn on_disk(dir: &Path) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    let entries = fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry"));
    let sizes = entries.map(|entry| {
        let meta = entry.metadata().expect("a file");
        if meta.is_dir() { on_disk(&entry.path()) } else { (meta.len(), meta.blocks() * 512) }
    });
    sizes.fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1))
}

/// The program on a store that is there, its answers as JSON lines.
fn program(bench: &Bench) -> Command {
    bench.fresh("dendrer");
    AppendLog::close(Box::new(new_store(&bench.dir, "dendrer"))).expect("closed");
    let key_file = bench.dir.join("key");
    fs::write(&key_file, format!("{}\n", key().secret_text())).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_dendrer"));
    command
        .args(["commit", "--run", "bench", "--jsonl", "--quiet", "--store", "dendrer", "--key"])
        .arg(key_file)
        // What this machine saw of a log is remembered there, and each round begins the same log again.
        .env("XDG_CONFIG_HOME", bench.fresh("config"))
        .current_dir(&bench.dir)
        .stdout(Stdio::piped());
    command
}

/// CPU time of the programs that were run so far and have ended.
fn cpu_of_children() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").expect("a Linux machine");
    // Behind the name of the program (proc(5)): what ended and was waited for.
    let all: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: u64 = [13, 14].iter().map(|at| all[*at].parse::<u64>().unwrap_or(0)).sum();
    Duration::from_millis(ticks * 10)
}

/// All lines at once, through a pipe: from the start of the program to its end.
fn program_piped(bench: &Bench) -> Figures {
    let mut command = program(bench);
    let (start, cpu_before) = (Instant::now(), cpu_of_children());
    let mut cat =
        Command::new("cat").arg(bench.dir.join("steps")).stdout(Stdio::piped()).spawn().expect("cat runs");
    let output = command.stdin(cat.stdout.take().expect("a pipe")).output().expect("the program runs");
    let wall = start.elapsed();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(cat.wait().expect("cat ends").success());
    figures(bench, wall, cpu_of_children() - cpu_before)
}

/// As an agent would that does nothing before the step is on record: a line, its acknowledgement, the next line.
fn program_awaited(bench: &Bench) -> Figures {
    let steps = lines(bench.steps);
    let mut command = program(bench);
    let (start, cpu_before) = (Instant::now(), cpu_of_children());
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the program runs");
    let mut input = child.stdin.take().expect("a pipe");
    let mut answers = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    for step in steps {
        writeln!(input, "{step}").expect("taken");
        while !answers.next().expect("an answer").expect("text").contains("\"committed\"") {}
    }
    let wall = start.elapsed();
    drop(input);
    assert!(child.wait().expect("the program ends").success());
    figures(bench, wall, cpu_of_children() - cpu_before)
}

/// Messages of 1 KB.
fn messages(turns: usize) -> Vec<(String, Value)> {
    let mut words = Words::new();
    (0..turns)
        .map(|_| {
            let text = format!(r#"{{"content":"{}","role":"assistant"}}"#, words.text(993));
            let value = json::parse_door(text.as_bytes()).expect("JSON");
            (text, value)
        })
        .collect()
}

/// Makes the step of a turn out of the messages so far.
type MakeTurn = fn(&[Value], usize) -> Intent;

/// A run whose transcript grows by 1 KB a turn, the whole of it in each step.
fn growing(bench: &Bench, turns: usize) {
    println!(
        "a transcript that grows by 1 KB a turn, {turns} turns, bytes a turn (limit: 2048 in the segments)"
    );
    let messages: Vec<Value> = messages(turns).into_iter().map(|(_, message)| message).collect();
    let ours: [(&str, MakeTurn); 2] =
        [("dendrer, in each request", asked), ("dendrer, in the state", remembered)];
    for (name, intent) in ours {
        bench.fresh("dendrer");
        let store = new_store(&bench.dir, "dendrer");
        let start = Instant::now();
        let intents: Vec<Intent> = (0..turns).map(|turn| intent(&messages, turn)).collect();
        record_synced(&store, "bench", intents.chunks(1), true);
        let wall = start.elapsed().as_secs_f64() * 1e6 / turns as f64;
        update_index(&bench.dir.join("dendrer"));
        AppendLog::close(Box::new(store)).expect("closed");
        let dir = bench.dir.join("dendrer");
        let (all, segments) = (on_disk(&dir).0, on_disk(&dir.join("segments")).0);
        println!(
            "  {name:<36} {:>9.0}, of that the segments {:.0}; {wall:.0} us a turn",
            all as f64 / turns as f64,
            segments as f64 / turns as f64
        );
    }
    for (name, what) in [
        ("retrial", "turns"),
        ("agentrr", "turns"),
        ("langgraph", "turns"),
        ("langgraph", "turns-delta"),
        ("opentine", "few-turns"),
    ] {
        let figures = peer(bench, name, what, &[]);
        println!("  {:<36} {:>9.0}; {:.0} us a turn", format!("{name}, {what}"), figures.bytes, figures.wall);
    }
}

/// A call of a model that is handed the whole transcript.
fn asked(messages: &[Value], turn: usize) -> Intent {
    let params = Value::record([("messages", Value::array(messages[..=turn].iter().cloned()))]);
    Intent::new("action.result".parse().expect("a type"), "agent")
        .by_runtime()
        .with("action", Value::record([("params", params), ("tool", Value::from("model.call"))]))
        .with("result", Value::record([("status", Value::from("ok"))]))
}

/// A message that is appended to the transcript in the state.
fn remembered(messages: &[Value], turn: usize) -> Intent {
    let list = "/messages".parse().expect("a pointer");
    let op = match turn {
        0 => Op::set(list, Value::array([messages[0].clone()])),
        _ => Op::append(list, messages[turn].clone()),
    };
    Intent::new("memory.write".parse().expect("a type"), "agent").with_delta(Delta(vec![op]))
}
