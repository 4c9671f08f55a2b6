//! The deep run: every fault of `docs/testing.md`, many times, from inside and from outside, and one table at the end.
//!
//! Rows from inside are the tests that run at every push, scaled by `DENDRER_DEEP` and its like: each prints lines
//! `deep: ROW COUNT`. Rows from outside run the program as a user would and let `strace`, the file system and `ulimit` do
//! the harm; they share no code with the tests inside, so that two testers must agree.
//!
//! A newcomer would break one rule: a row that could not do what was asked is short, and a short row fails the run.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

mod machine;
mod outside;
mod reading;

/// What a row found.
#[derive(Debug, Default, Clone)]
pub(crate) struct Found {
    /// How many points were tried.
    pub(crate) done: u64,
    /// Acknowledged records that are not there.
    pub(crate) lost: u64,
    /// Answers that are wrong.
    pub(crate) wrong: u64,
    /// Panics and aborts.
    pub(crate) panics: u64,
    /// What to say of it below the table.
    pub(crate) notes: Vec<String>,
}

impl Found {
    /// Adds what another part of the row found.
    pub(crate) fn add(&mut self, other: Found) {
        self.done += other.done;
        self.lost += other.lost;
        self.wrong += other.wrong;
        self.panics += other.panics;
        self.notes.extend(other.notes);
    }

    /// Notes something wrong; the first few in words.
    pub(crate) fn wrong(&mut self, what: impl FnOnce() -> String) {
        self.wrong += 1;
        if self.notes.len() < 20 {
            self.notes.push(what());
        }
    }
}

/// Where things are.
pub(crate) struct Here {
    pub(crate) root: PathBuf,
    /// The program, built with optimizations.
    pub(crate) program: PathBuf,
    /// The program as developers build it.
    pub(crate) debug_program: PathBuf,
    pub(crate) threads: usize,
}

struct Row {
    name: &'static str,
    asked: u64,
    run: fn(&Here, u64) -> Found,
}

/// Every row, with how many points are asked for.
const ROWS: &[Row] = &[
    Row { name: "kill", asked: 2_000, run: outside::kill },
    Row { name: "io-errors", asked: 1_000, run: outside::io_errors },
    Row { name: "disk-full", asked: 500, run: outside::disk_full },
    Row { name: "full-loop", asked: 50, run: machine::full_loop },
    Row { name: "memory", asked: 50, run: machine::memory },
    Row { name: "merge", asked: 10_500, run: merge },
    Row { name: "causal", asked: 100_000, run: causal },
    Row { name: "graphs", asked: 20_000, run: graphs },
    Row { name: "graph-runs", asked: 1_000, run: graph_runs },
    Row { name: "graph-kills", asked: 1_000, run: graph_kills },
    Row { name: "door", asked: 100_000, run: door },
    Row { name: "power-loss", asked: 200_000, run: power_loss },
    Row { name: "bit-flips", asked: 100_000, run: bit_flips },
    Row { name: "flips-two-readers", asked: 200, run: reading::flips_two_readers },
    Row { name: "writers", asked: 256_000, run: writers },
    Row { name: "clock", asked: 1_000, run: clock },
    Row { name: "faketime", asked: 50, run: machine::faketime },
    Row { name: "replay", asked: 50, run: reading::replay },
    Row { name: "differential", asked: 10_000, run: differential },
    Row { name: "forger", asked: 20_000, run: forger },
    Row { name: "model", asked: 10_000, run: model },
    Row { name: "unknown", asked: 10_000, run: unknown },
];

/// Runs the rows that are named, or all. `kill=100` asks for another number of points.
pub(crate) fn run(root: &Path, words: &[String]) -> ExitCode {
    let parts = |word: &String| match word.split_once('=') {
        Some((name, count)) => (name.to_owned(), count.parse().ok()),
        None => (word.clone(), None),
    };
    let (names, counts): (Vec<String>, Vec<Option<u64>>) = words.iter().map(parts).unzip();
    let unknown = names.iter().find(|name| ROWS.iter().all(|row| row.name != name.as_str()));
    if let Some(unknown) = unknown {
        let known: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
        eprintln!("there is no row {unknown}; there are {}", known.join(", "));
        return ExitCode::from(2);
    }
    let Some(here) = build(root) else { return ExitCode::FAILURE };
    let mut lines = Vec::new();
    let mut failed = false;
    for row in ROWS {
        let at = names.iter().position(|name| name == row.name);
        if !names.is_empty() && at.is_none() {
            continue;
        }
        let asked = at.and_then(|at| counts[at]).unwrap_or(row.asked);
        eprintln!("== {} ({asked} asked)", row.name);
        let began = Instant::now();
        let found = (row.run)(&here, asked);
        let bad = found.lost + found.wrong + found.panics > 0 || found.done < asked;
        failed |= bad;
        for note in &found.notes {
            eprintln!("   {}: {note}", row.name);
        }
        let line = format!(
            "| {} | {} | {} | {} | {} | {} | {:.0} | {} |",
            row.name,
            asked,
            found.done,
            found.lost,
            found.wrong,
            found.panics,
            began.elapsed().as_secs_f64(),
            if bad { "FAILED" } else { "ok" }
        );
        eprintln!("{line}");
        lines.push(line);
    }
    println!("| row | asked | done | acknowledged lost | wrong answers | panics | seconds | |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for line in &lines {
        println!("{line}");
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Builds the program twice, and says where it is.
fn build(root: &Path) -> Option<Here> {
    let profile = profile();
    for profile in [&*profile, "dev"] {
        let mut command = cargo(root);
        command.args(["build", "--quiet", "-p", "dendrer-cli", "--profile", profile]);
        if !command.status().is_ok_and(|status| status.success()) {
            eprintln!("the program could not be built ({profile})");
            return None;
        }
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let dir = |profile: &str| if profile == "dev" { "debug".to_owned() } else { profile.to_owned() };
    let program = |profile: &str| target.join(dir(profile)).join("dendrer");
    let (program, debug_program) = (program(&profile), program("dev"));
    Some(Here { root: root.to_owned(), program, debug_program, threads })
}

/// The profile of the program and of the tests: optimized, unless `DENDRER_PROFILE` says otherwise.
fn profile() -> String {
    std::env::var("DENDRER_PROFILE").unwrap_or_else(|_| "release".to_owned())
}

fn cargo(root: &Path) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(root);
    command
}

/// Runs tests of a crate and adds up what they say of a row.
fn tests(here: &Here, row: &str, krate: &str, program: &str, names: &[&str], env: &[(&str, &str)]) -> Found {
    let mut command = cargo(&here.root);
    let target: &[&str] = if program.is_empty() { &["--lib"] } else { &["--test", program] };
    command.args(["test", "--quiet", "--profile", &profile(), "-p", krate]).args(target);
    command.args(["--", "--nocapture"]).args(names);
    command.envs(env.iter().copied()).stdout(Stdio::piped());
    let mut found = Found::default();
    let Ok(output) = command.stderr(Stdio::inherit()).output() else {
        found.wrong(|| format!("cargo could not run the tests of {krate}"));
        return found;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    for line in text.lines() {
        // The harness writes its dots in front of what a test prints.
        let Some(at) = line.find("deep: ") else { continue };
        let mut words = line[at + 6..].split_whitespace();
        if words.next() == Some(row) {
            found.done += words.next().and_then(|count| count.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    if !output.status.success() {
        let tail: Vec<&str> = text.lines().rev().take(12).collect();
        let tail: Vec<&str> = tail.into_iter().rev().collect();
        found.wrong(|| format!("a test of {krate} failed:\n{}", tail.join("\n")));
    }
    found
}

/// Random histories, merged by git and by the slow definition as well.
fn merge(here: &Here, _: u64) -> Found {
    tests(here, "merge", "dendrer", "merge_git", &[], &[("DENDRER_DEEP", "1")])
}

/// Random causal graphs, beside sets of ancestors.
fn causal(here: &Here, _: u64) -> Found {
    tests(here, "causal", "dendrer", "causal_model", &[], &[("DENDRER_DEEP", "1")])
}

/// Random execution graphs beside a slow interpreter, and changes of their frontiers.
fn graphs(here: &Here, _: u64) -> Found {
    tests(here, "graphs", "dendrer-graph", "graphs_prop", &[], &[("DENDRER_DEEP", "1")])
}

/// Runs of a graph, whose effects answer in every order.
fn graph_runs(here: &Here, _: u64) -> Found {
    tests(here, "graph-runs", "dendrer", "graph_runs", &[], &[("DENDRER_DEEP", "1")])
}

/// Runs of a graph whose program or executors are killed.
fn graph_kills(here: &Here, _: u64) -> Found {
    tests(here, "graph-kills", "dendrer-cli", "it", &["graph_kills::"], &[("DENDRER_DEEP", "1")])
}

/// Lines of an adversary, over a pipe.
fn door(here: &Here, _: u64) -> Found {
    tests(here, "door", "dendrer-cli", "it", &["door::no_line_over"], &[("DENDRER_DEEP", "1")])
}

fn power_loss(here: &Here, _: u64) -> Found {
    let env = [("DENDRER_DEEP", "1"), ("DENDRER_CRASH_SEEDS", "200")];
    tests(here, "power-loss", "dendrer-store", "it", &["crash::", "small::", "one_sync::"], &env)
}

fn bit_flips(here: &Here, _: u64) -> Found {
    tests(here, "bit-flips", "dendrer-store", "it", &["damage::"], &[("DENDRER_DEEP", "1")])
}

/// Sixty-four threads of one process, then sixty-four processes, of two thousand commits each.
fn writers(here: &Here, _: u64) -> Found {
    tests(here, "writers", "dendrer-store", "it", &["writers::"], &[("DENDRER_DEEP", "1")])
}

fn clock(here: &Here, asked: u64) -> Found {
    tests(here, "clock", "dendrer", "clock", &[], &[("DENDRER_CLOCK_JUMPS", &asked.to_string())])
}

fn differential(here: &Here, asked: u64) -> Found {
    tests(here, "differential", "dendrer", "second_reader", &[], &[("DENDRER_EDITS", &asked.to_string())])
}

fn forger(here: &Here, asked: u64) -> Found {
    tests(here, "forger", "dendrer", "forger", &[], &[("DENDRER_FORGERIES", &asked.to_string())])
}

fn model(here: &Here, asked: u64) -> Found {
    let cases = [("PROPTEST_CASES", &*asked.to_string()), ("DENDRER_DEEP", "1")];
    tests(here, "model", "dendrer-store", "it", &["model::"], &cases)
}

fn unknown(here: &Here, asked: u64) -> Found {
    let histories = [("DENDRER_DEEP", "1"), ("DENDRER_HISTORIES", &*asked.to_string())];
    tests(here, "unknown", "dendrer", "unknown_model", &[], &histories)
}
