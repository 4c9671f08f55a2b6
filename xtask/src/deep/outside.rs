//! Faults from outside: `strace` kills the program at a call, or lets the call fail, and the program's own answers say what
//! is left. What was acknowledged is what came through a pipe.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use serde_json::Value;

use super::{Found, Here};

/// A directory of its own that goes away.
pub(crate) struct Temp(PathBuf);

impl Temp {
    pub(crate) fn new(what: &str) -> Temp {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name =
            format!("dendrer-deep-{}-{what}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("the system has a place for temporary files");
        Temp(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a run of the program left.
pub(crate) struct Ran {
    /// The exit code; minus the signal where one ended it.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    /// Whether the program stopped in a way that it never should.
    pub(crate) fn is_panic(&self) -> bool {
        self.code == 101 || self.code < 0 || self.stderr.contains("panicked at")
    }
}

#[cfg(unix)]
fn code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| -status.signal().unwrap_or(0))
}

/// The rows from outside need Linux; the rest of this program does not, and is to be compiled elsewhere.
#[cfg(not(unix))]
fn code(status: std::process::ExitStatus) -> i32 {
    status.code().unwrap_or(-1)
}

/// The program as a user has it, at home in a directory.
pub(crate) fn command(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    settle(&mut command, home);
    command
}

/// Gives a command the surroundings of a user at home in a directory.
pub(crate) fn settle(command: &mut Command, home: &Path) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env_clear().env("HOME", home).env("TZ", "UTC").env("PATH", path).current_dir(home);
}

pub(crate) fn ran(mut command: Command) -> Ran {
    let output = command.stdin(Stdio::null()).output().expect("the program can be started");
    Ran {
        code: code(output.status),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

pub(crate) fn run(program: &Path, home: &Path, args: &[&str]) -> Ran {
    let mut command = command(program, home);
    command.args(args);
    ran(command)
}

/// Gives the program lines, one after the other, each when the one before was acknowledged. Returns what came out.
pub(crate) fn feed(mut command: Command, lines: &[String]) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut stdin = child.stdin.take().expect("it is piped");
    let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut stderr = child.stderr.take().expect("it is piped");
    let errors = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = std::io::Read::read_to_string(&mut stderr, &mut text);
        text
    });
    let mut said = String::new();
    for line in lines {
        if writeln!(stdin, "{line}").is_err() || stdout.read_line(&mut said).map_or(true, |read| read == 0) {
            break;
        }
        // The first line is preceded by that of the run.
        while !said
            .trim_end()
            .lines()
            .last()
            .is_some_and(|last| last.contains("\"tick\"") && !last.contains("\"tick\":0"))
        {
            if stdout.read_line(&mut said).map_or(true, |read| read == 0) {
                break;
            }
        }
    }
    drop(stdin);
    let _ = std::io::Read::read_to_string(&mut stdout, &mut said);
    let status = child.wait().expect("the program ends");
    Ran { code: code(status), stdout: said, stderr: errors.join().unwrap_or_default() }
}

/// Ticks and ids of acknowledgements or of a log: whole lines only.
pub(crate) fn ids(text: &str) -> BTreeMap<u64, String> {
    let item = |line: &str| {
        let item: Value = serde_json::from_str(line).ok()?;
        let is_record = item.get("what").is_none_or(|what| what == "committed");
        let tick = item.get("tick")?.as_u64().filter(|tick| *tick > 0 && is_record)?;
        Some((tick, item.get("id")?.as_str()?.to_owned()))
    };
    text.lines().filter_map(item).collect()
}

pub(crate) fn intent(n: u64, size: usize) -> String {
    format!(
        "{{\"type\":\"plan.update\",\"delta\":[{{\"set\":\"/n\",\"value\":{n}}}],\"intent\":{{\"description\":\"{}\"}}}}",
        "x".repeat(size)
    )
}

/// What the program is doing when it is struck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// Lines from a pipe, one group each.
    Commit,
    /// A chat of three groups.
    Import,
    /// A bundle in a file.
    Export,
    /// A few lines on a store of which much is outside the index.
    Index,
}

const WORKS: [Work; 4] = [Work::Commit, Work::Import, Work::Export, Work::Index];

/// Calls that change something on the disk or on the pipe.
const CALLS: [&str; 8] =
    ["pwrite64", "write", "fdatasync", "fsync", "rename", "unlink", "ftruncate", "fallocate"];

/// Stores that points begin with, made once.
struct Templates {
    temp: Temp,
}

impl Templates {
    fn new(here: &Here) -> Templates {
        let temp = Temp::new("templates");
        for (name, count) in [("small", 5), ("index", 1_000)] {
            let home = temp.path().join(name);
            std::fs::create_dir(&home).expect("a directory is made");
            let lines: String = (0..count).map(|n| intent(n, 40) + "\n").collect();
            std::fs::write(home.join("lines"), lines).expect("a file is written");
            std::fs::write(home.join("chat.json"), chat(MESSAGES)).expect("a file is written");
            assert_eq!(run(&here.program, &home, &["init"]).code, 0, "init works");
            let first = run(&here.program, &home, &["commit", "--run", "base", "--file", "lines"]);
            assert_eq!(first.code, 0, "{}", first.stderr);
            let _ = std::fs::remove_file(home.join(".dendrer/index.sqlite"));
        }
        Templates { temp }
    }

    fn copy(&self, work: Work) -> Temp {
        let temp = Temp::new("point");
        let from = self.temp.path().join(if work == Work::Index { "index" } else { "small" });
        let copied = Command::new("cp").arg("-a").arg(from.join(".")).arg(temp.path()).status();
        assert!(copied.is_ok_and(|status| status.success()), "a store can be copied");
        temp
    }
}

/// How many messages an import has: three groups.
const MESSAGES: usize = 250;

fn chat(messages: usize) -> String {
    let message = |n: usize| match n % 3 {
        0 => format!(r#"{{"role":"user","content":"question {n}"}}"#),
        1 => format!(
            r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"c{n}","type":"function","function":{{"name":"look","arguments":"{{\"n\":{n}}}"}}}}]}}"#
        ),
        _ => format!(r#"{{"role":"tool","tool_call_id":"c{}","content":"answer {n}"}}"#, n - 1),
    };
    format!("[{}]", (0..messages).map(message).collect::<Vec<_>>().join(","))
}

/// One thing that is done to one call.
#[derive(Debug, Clone)]
struct Strike {
    work: Work,
    call: &'static str,
    when: u64,
    /// What strace injects: `signal=KILL`, `error=EIO`, `retval=0`.
    what: &'static str,
    lasting: bool,
    seed: u64,
}

/// What came of a strike.
struct Struck {
    ran: Ran,
    /// Whether the program ever made that call so often.
    was_reached: bool,
    /// The lines of the log of strace that were injected.
    injected: Vec<String>,
}

fn strike(here: &Here, home: &Path, strike: &Strike) -> Struck {
    let log = home.join("strace.log");
    let plus = if strike.lasting { "+" } else { "" };
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-y", "-o"]).arg(&log);
    command.arg("-e").arg(format!("trace={}", strike.call));
    command.arg("-e").arg(format!("inject={}:{}:when={}{plus}", strike.call, strike.what, strike.when));
    command.arg("--").arg(&here.program);
    let lines: Vec<String> =
        (0..8).map(|n| intent(strike.seed * 100 + n, ((strike.seed * 31 + n * 97) % 900) as usize)).collect();
    settle(&mut command, home);
    let ran = match strike.work {
        Work::Commit => {
            command.args(["commit", "--run", "r", "--jsonl"]);
            feed(command, &lines)
        }
        Work::Index => {
            command.args(["commit", "--run", "r", "--jsonl"]);
            feed(command, &lines[..2])
        }
        Work::Import => {
            command.args(["import", "chat.json", "--run", "r", "--jsonl"]);
            ran(command)
        }
        Work::Export => {
            command.args(["export", "base", "-o", "out.dnd"]);
            ran(command)
        }
    };
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    let injected: Vec<String> =
        text.lines().filter(|line| line.contains("(INJECTED)")).map(str::to_owned).collect();
    let was_killed = ran.code == -9 || ran.code == 137;
    Struck { was_reached: was_killed || !injected.is_empty(), ran, injected }
}

/// What must hold afterwards, asked of the program itself.
fn check(here: &Here, home: &Path, strike: &Strike, struck: &Struck, found: &mut Found) {
    let (name, dendrer) = (format!("{strike:?}"), |args: &[&str]| run(&here.program, home, args));
    let acknowledged = ids(&struck.ran.stdout);
    let log = dendrer(&["log", "r", "-n", "0", "--jsonl"]);
    let kept = ids(&log.stdout);
    if strike.work != Work::Export {
        for (tick, id) in &acknowledged {
            if kept.get(tick) != Some(id) {
                found.lost += 1;
                found.notes.push(format!("{name}: tick {tick} was acknowledged and is not there"));
            }
        }
        if !kept.keys().copied().eq(1..=kept.len() as u64) {
            found.wrong(|| format!("{name}: ticks have gaps"));
        }
        if acknowledged.is_empty() && log.code != 0 && log.code != 3 {
            found.wrong(|| format!("{name}: log says {} {}", log.code, log.stderr));
        }
    }
    let verified = dendrer(&["verify", "--all", "--replay"]);
    if verified.code != 0 {
        found.wrong(|| {
            format!("{name}: verify says {}: {}{}", verified.code, verified.stdout, verified.stderr)
        });
    }
    let whole = home.join("out.dnd");
    if whole.exists() && dendrer(&["verify", "out.dnd"]).code != 0 {
        found.wrong(|| format!("{name}: a bundle is half there"));
    }
    // Taken up again, it goes on behind what is there.
    std::fs::write(home.join("one"), intent(1, 3)).expect("a file is written");
    // An imported run takes nothing but its source, and an export makes no run.
    let is_recording = matches!(strike.work, Work::Commit | Work::Index);
    let (run, before) = if is_recording { ("r", kept.len() as u64) } else { ("more", 0) };
    let further = dendrer(&["commit", "--run", run, "--jsonl", "--file", "one"]);
    if further.code != 0 || ids(&further.stdout).keys().copied().ne([before + 1]) {
        found.wrong(|| {
            format!("{name}: afterwards commit says {} {}{}", further.code, further.stdout, further.stderr)
        });
    }
    // Half of an import is not taken for all of it.
    if strike.work == Work::Import && !kept.is_empty() && kept.len() < MESSAGES {
        let twice = dendrer(&["import", "chat.json", "--run", "once-more"]);
        if twice.code == 0 || !twice.stderr.contains("interrupted") {
            found.wrong(|| format!("{name}: imported once more, it says {} {}", twice.code, twice.stderr));
        }
    }
    let again = dendrer(&["verify", "--all", "--replay"]);
    if again.code != 0 {
        found.wrong(|| format!("{name}: verify then says {}: {}{}", again.code, again.stdout, again.stderr));
    }
    for ran in [&log, &verified, &further, &again] {
        found.panics += u64::from(ran.is_panic());
    }
}

/// Strikes at every call in turn, with new lines each time round, until there were enough points.
fn campaign(
    here: &Here,
    asked: u64,
    harms: &[(&'static str, bool)],
    judge: fn(&Strike, &Struck, &mut Found),
) -> Found {
    if !Command::new("strace").arg("--version").stdout(Stdio::null()).status().is_ok_and(|s| s.success()) {
        let notes = vec!["SKIPPED: strace is not installed".to_owned()];
        return Found { notes, ..Found::default() };
    }
    let templates = Templates::new(here);
    let found = Mutex::new(Found::default());
    let done = AtomicU64::new(0);
    let series: Vec<(Work, &'static str, &'static str, bool)> = WORKS
        .iter()
        .flat_map(|work| CALLS.iter().map(move |call| (*work, *call)))
        .flat_map(|(work, call)| harms.iter().map(move |(what, lasting)| (work, call, *what, *lasting)))
        // A write that claims to have written nothing is one; other calls that claim 0 claim success.
        .filter(|(_, call, what, _)| *what != "retval=0" || call.contains("write"))
        .collect();
    let first = std::env::var("DENDRER_DEEP_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1u64);
    for seed in first.. {
        let next = AtomicUsize::new(0);
        let before = done.load(Ordering::Relaxed);
        std::thread::scope(|scope| {
            for _ in 0..here.threads {
                scope.spawn(|| {
                    while let Some(&(work, call, what, lasting)) =
                        series.get(next.fetch_add(1, Ordering::Relaxed))
                    {
                        for when in 1.. {
                            if done.load(Ordering::Relaxed) >= asked {
                                return;
                            }
                            let point = Strike { work, call, when, what, lasting, seed };
                            let home = templates.copy(work);
                            let struck = strike(here, home.path(), &point);
                            if !struck.was_reached {
                                break;
                            }
                            let mut here_found = Found { done: 1, ..Found::default() };
                            judge(&point, &struck, &mut here_found);
                            check(here, home.path(), &point, &struck, &mut here_found);
                            done.fetch_add(1, Ordering::Relaxed);
                            found.lock().expect("nobody panics with it").add(here_found);
                        }
                    }
                });
            }
        });
        let now = done.load(Ordering::Relaxed);
        if now >= asked || now == before {
            break;
        }
    }
    found.into_inner().expect("nobody panics with it")
}

/// The program is killed at a call.
pub(crate) fn kill(here: &Here, asked: u64) -> Found {
    campaign(here, asked, &[("signal=KILL", false)], |_, struck, found| {
        found.panics += u64::from(struck.ran.stderr.contains("panicked at"));
    })
}

/// A call fails, is interrupted, or does nothing.
pub(crate) fn io_errors(here: &Here, asked: u64) -> Found {
    let harms = [("error=EIO", false), ("error=EINTR", false), ("retval=0", false), ("error=EIO", true)];
    campaign(here, asked, &harms, judge_error)
}

/// The disk is full, once or from then on.
pub(crate) fn disk_full(here: &Here, asked: u64) -> Found {
    campaign(here, asked, &[("error=ENOSPC", false), ("error=ENOSPC", true)], judge_error)
}

fn judge_error(strike: &Strike, struck: &Struck, found: &mut Found) {
    let ran = &struck.ran;
    if ran.is_panic() {
        found.panics += 1;
        found.notes.push(format!("{strike:?}: ended with {}: {}", ran.code, ran.stderr));
    } else if ![0, 8].contains(&ran.code) {
        found.wrong(|| format!("{strike:?}: exit code {}: {}{}", ran.code, ran.stdout, ran.stderr));
    }
    // Nobody may be told that it is durable if the sync of the log failed.
    let log_sync = struck
        .injected
        .iter()
        .any(|line| line.contains("fdatasync(") && line.contains("/segments/") && !line.contains("EINTR"));
    // An export hands over what was signed before where nothing can be written.
    if log_sync && ran.code == 0 && strike.work != Work::Export {
        found.wrong(|| format!("{strike:?}: a sync of the log failed and the program did not say so"));
    }
}
