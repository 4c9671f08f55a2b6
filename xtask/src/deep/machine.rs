//! Faults of the machine: a file system that is really full, an address space that is too small, a clock that is wrong.

use std::path::Path;
use std::process::{Command, Stdio};

use super::outside::{Ran, Temp, command, feed, ids, intent, ran, run, settle};
use super::{Found, Here};

/// A file system of its own, mounted from a file.
struct Loop {
    temp: Temp,
}

impl Loop {
    fn new(kib: u64) -> Result<Loop, String> {
        let temp = Temp::new("loop");
        let (image, at) = (temp.path().join("image"), temp.path().join("disk"));
        let file = std::fs::File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(kib << 10).map_err(|error| error.to_string())?;
        std::fs::create_dir(&at).map_err(|error| error.to_string())?;
        let steps: [(&str, &[&str]); 2] =
            [("mkfs.ext4", &["-q", "-m", "0", "-F", "image"]), ("mount", &["-o", "loop", "image", "disk"])];
        for (program, args) in steps {
            let output = Command::new(program).args(args).current_dir(temp.path()).output();
            let output = output.map_err(|error| format!("{program}: {error}"))?;
            if !output.status.success() {
                return Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()));
            }
        }
        Ok(Loop { temp })
    }

    fn disk(&self) -> std::path::PathBuf {
        self.temp.path().join("disk")
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.disk()).stderr(Stdio::null()).status();
    }
}

/// Fills a file until no more fits, then leaves so many bytes.
fn leave(ballast: &Path, bytes: u64) -> std::io::Result<()> {
    use std::io::Write;
    let mut file = std::fs::File::create(ballast)?;
    let block = [0x5a; 1024];
    while file.write_all(&block).is_ok() {}
    let length = file.metadata()?.len();
    file.set_len(length.saturating_sub(bytes))?;
    file.sync_all()
}

/// A real file system of 4 MiB is filled up to another point each time; the program records until it cannot, says so, and
/// goes on once there is room. In every other round one process holds the store all the time.
pub(crate) fn full_loop(here: &Here, asked: u64) -> Found {
    let mut found = Found::default();
    let disk = match Loop::new(4096) {
        Ok(disk) => disk,
        Err(why) => {
            found.notes.push(format!("SKIPPED: no file system can be mounted here: {why}"));
            return found;
        }
    };
    let home = Temp::new("home");
    let ballast = disk.disk().join("ballast");
    for point in 0..asked {
        let name = format!("s{point}");
        let store = disk.disk().join(&name).to_string_lossy().into_owned();
        let dendrer = |args: &[&str]| run(&here.program, home.path(), &[args, &["--store", &store]].concat());
        let init = run(&here.program, home.path(), &["init", &store]);
        if init.code != 0 {
            found.wrong(|| format!("point {point}: init says {}: {}", init.code, init.stderr));
            continue;
        }
        let filled = leave(&ballast, 2_000 + point * 5_003);
        if filled.is_err() {
            found.wrong(|| format!("point {point}: the disk cannot be filled"));
            continue;
        }
        let mut recording = command(&here.program, home.path());
        recording.args(["commit", "--run", "r", "--jsonl", "--store", &store]);
        let lines: Vec<String> = (0..4_000).map(|n| intent(n, ((n * 131) % 1500) as usize)).collect();
        let stopped = feed(recording, &lines);
        let acknowledged = ids(&stopped.stdout);
        // Once more while it is full, then with room.
        let again = dendrer(&["verify", "--all"]);
        let _ = std::fs::remove_file(&ballast);
        let kept = ids(&dendrer(&["log", "r", "-n", "0", "--jsonl"]).stdout);
        let verified = dendrer(&["verify", "--all", "--replay"]);
        std::fs::write(home.path().join("one"), intent(1, 3)).expect("a file is written");
        let further = dendrer(&["commit", "--run", "r", "--jsonl", "--file", "one"]);
        let last = dendrer(&["verify", "--all", "--replay"]);
        if stopped.code != 8 || !stopped.stdout.contains("E0801") {
            found.wrong(|| format!("point {point}: full, and it says {}: {}", stopped.code, stopped.stderr));
        }
        found.lost += acknowledged.iter().filter(|(tick, id)| kept.get(tick) != Some(id)).count() as u64;
        if !kept.keys().copied().eq(1..=kept.len() as u64) {
            found.wrong(|| format!("point {point}: ticks have gaps"));
        }
        for ran in [&verified, &further, &last] {
            if ran.code != 0 {
                found.wrong(|| {
                    format!("point {point}: afterwards {}: {}{}", ran.code, ran.stdout, ran.stderr)
                });
            }
        }
        found.panics +=
            [&stopped, &again, &verified, &further, &last].iter().filter(|ran| ran.is_panic()).count() as u64;
        let _ = std::fs::remove_dir_all(disk.disk().join(&name));
        found.done += 1;
    }
    found.add(one_handle(here, &disk.disk()));
    found
}

/// One process that keeps its handle while the disk is full and after it: a test of the store, on this file system.
fn one_handle(here: &Here, disk: &Path) -> Found {
    let at = disk.to_string_lossy().into_owned();
    let found =
        super::tests(here, "full-handle", "dendrer-store", "it", &["full::"], &[("DENDRER_FULL_DIR", &at)]);
    let notes = vec![format!("{} more points with one handle all the time", found.done)];
    let short = u64::from(found.done < 50);
    Found { done: 0, wrong: found.wrong + short, notes: [notes, found.notes].concat(), ..found }
}

/// The address space of a run, in KiB.
const SPACE: u64 = 256 << 10;

/// Every reading verb, on a store, on bundles and on hostile files, in a small address space: the answer is the one that is
/// given with room, or an error.
pub(crate) fn memory(here: &Here, _: u64) -> Found {
    let mut found = Found::default();
    let home = Temp::new("memory");
    let demo = run(&here.program, home.path(), &["demo", "--no-tour"]);
    let place = home.path().join("dendrer-demo");
    if demo.code != 0 {
        found.wrong(|| format!("the demo cannot be made: {}", demo.stderr));
        return found;
    }
    hostile(&place);
    let runs = run(&here.program, &place, &["runs", "--jsonl"]);
    let names: Vec<String> = runs
        .stdout
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|item| Some(item.get("name")?.as_str()?.to_owned()))
        .collect();
    let mut commands: Vec<Vec<String>> = Vec::new();
    let mut add = |words: &[&str]| commands.push(words.iter().map(|word| (*word).to_owned()).collect());
    for words in [
        &["runs"][..],
        &["verify", "--all"],
        &["verify", "--all", "--replay"],
        &["version"],
        &["schema"],
        &["explain", "E0801"],
        &["man"],
        &["help"],
        &["completions", "bash"],
    ] {
        add(words);
    }
    for name in &names {
        for words in [
            &["log", name][..],
            &["log", name, "--full", "--jsonl", "-n", "0"],
            &["show", name],
            &["state", name],
            &["replay", name],
            &["verify", name],
            &["export", name, "--format", "jsonl"],
            &["bisect", name, "--predicate", "state.counters.transitions > 3"],
            &["predicate", "test", name, "--predicate", "state.counters.transitions > 3"],
            &["backtrack", name, "/policy"],
            &["why", name, "/policy"],
        ] {
            add(words);
        }
    }
    for file in ["deep.json", "wide.json", "long.json", "bad.dnd", "zeros.dnd", "big.json"] {
        for words in [
            &["verify", file][..],
            &["import", file, "--dry-run"],
            &["log", file],
            &["pack", "check", file],
            &["show", file],
        ] {
            add(words);
        }
    }
    for words in &commands {
        let free = in_space(here, &place, words, None);
        let tight = in_space(here, &place, words, Some(SPACE));
        found.done += 1;
        let what = words.join(" ");
        if tight.is_panic() {
            found.panics += 1;
            let why = tight.stderr.lines().last().unwrap_or_default().to_owned();
            found.notes.push(format!("{what}: ended with {} ({why}); with room {}", tight.code, free.code));
        } else if tight.code != free.code && tight.code != 8 {
            found.wrong(|| format!("{what}: exit code {} with room, {} without", free.code, tight.code));
        } else if tight.code == free.code && tight.stdout != free.stdout && !what.starts_with("verify --all")
        {
            found.wrong(|| format!("{what}: another answer without room"));
        }
    }
    found.notes.push(format!("address space {} MiB", SPACE >> 10));
    found.notes.extend(least(here, &place));
    found
}

fn in_space(here: &Here, place: &Path, words: &[String], kib: Option<u64>) -> Ran {
    let limit = kib.map_or(String::new(), |kib| format!("ulimit -v {kib}; "));
    let mut command = Command::new("sh");
    settle(&mut command, place);
    command.env("HOME", place.parent().unwrap_or(place));
    command.args(["-c", &format!("{limit}exec \"$0\" \"$@\"")]).arg(&here.program).args(words);
    ran(command)
}

/// The least space in which the store can be read at all, for the closing note.
fn least(here: &Here, place: &Path) -> Option<String> {
    let words: Vec<String> = ["verify", "--all"].map(str::to_owned).to_vec();
    let works = |mib: u64| in_space(here, place, &words, Some(mib << 10)).code == 0;
    let least = (1..=64).map(|step| step * 4).find(|mib| works(*mib))?;
    let below = in_space(here, place, &words, Some((least - 4) << 10));
    let why = below.stderr.lines().last().unwrap_or_default().to_owned();
    Some(format!("verify --all works in {least} MiB; with 4 less it ends with {} ({why})", below.code))
}

/// Files that ask for more memory than they are worth.
fn hostile(place: &Path) {
    let write =
        |name: &str, bytes: &[u8]| std::fs::write(place.join(name), bytes).expect("a file is written");
    write("deep.json", "[".repeat(2_000_000).as_bytes());
    write("wide.json", format!("[{}0]", "0,".repeat(4_000_000)).as_bytes());
    write("long.json", format!("\"{}\"", "a".repeat(70 << 20)).as_bytes());
    write("bad.dnd", format!("{{\"bundle\":1,\"x\":\"{}\"}}\n", "b".repeat(30 << 20)).as_bytes());
    write("zeros.dnd", &vec![0; 60 << 20]);
    let message = format!("{{\"role\":\"user\",\"content\":\"{}\"}}", "c".repeat(20 << 20));
    write("big.json", format!("[{message},{message},{message}]").as_bytes());
}

/// The clock of the machine stands somewhere else each time a line is recorded.
pub(crate) fn faketime(here: &Here, asked: u64) -> Found {
    let mut found = Found::default();
    let home = Temp::new("clock");
    let there =
        Command::new("faketime").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if there.is_err() {
        found.notes.push("SKIPPED: faketime is not installed".to_owned());
        return found;
    }
    let init = run(&here.program, home.path(), &["init"]);
    if init.code != 0 {
        found.wrong(|| init.stderr.clone());
        return found;
    }
    let moments = [
        "1969-12-31 23:59:59",
        "1970-01-01 00:00:00",
        "2016-12-31 23:59:60",
        "2024-02-29 12:00:00",
        "2026-11-22 12:00:00",
        "2038-01-19 03:14:08",
        "2106-02-07 06:28:16",
        "1901-12-13 20:45:52",
        "9999-12-31 23:59:59",
        "2000-01-01 00:00:00",
    ];
    std::fs::write(home.path().join("one"), intent(1, 3)).expect("a file is written");
    let mut before = String::new();
    for point in 0..asked {
        // The end of the year 9999 comes late: no later time can be written down.
        let moment = moments[(point as usize * 7) % (if point < asked / 2 { 8 } else { 10 })];
        let mut command = Command::new("faketime");
        settle(&mut command, home.path());
        command
            .args(["-f", moment])
            .arg(&here.program)
            .args(["commit", "--run", "r", "--jsonl", "--file", "one"]);
        let ran = ran(command);
        found.done += 1;
        found.panics += u64::from(ran.is_panic());
        let shown = run(&here.program, home.path(), &["show", &format!("r@{}", point + 1), "--json"]);
        let document: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap_or_default();
        let ts = find_ts(&document).unwrap_or_default();
        if ran.code != 0 || ts.is_empty() || ts < before {
            found.wrong(|| {
                format!("{moment}: {} {}{} at {ts:?} after {before:?}", ran.code, ran.stdout, ran.stderr)
            });
        }
        before = ts;
    }
    let verified = run(&here.program, home.path(), &["verify", "--all", "--replay"]);
    if verified.code != 0 {
        found.wrong(|| format!("verify says {}: {}{}", verified.code, verified.stdout, verified.stderr));
    }
    found.notes.push(format!("the last time on record is {before}"));
    found
}

fn find_ts(value: &serde_json::Value) -> Option<String> {
    match value {
        serde_json::Value::Object(members) => members.iter().find_map(|(name, value)| {
            (name == "ts" || name == "timestamp")
                .then(|| value.as_str().map(str::to_owned))
                .flatten()
                .or_else(|| find_ts(value))
        }),
        serde_json::Value::Array(items) => items.iter().find_map(find_ts),
        _ => None,
    }
}
