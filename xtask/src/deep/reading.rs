//! Two readers and two builds: what one accepts the other must, and what one computes the other does.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::outside::{Ran, Temp, ran, run, settle};
use super::{Found, Here};

/// The names of runs in a store.
fn runs(program: &Path, place: &Path) -> Vec<String> {
    let listed = run(program, place, &["runs", "--jsonl"]);
    let item = |line: &str| serde_json::from_str::<serde_json::Value>(line).ok();
    listed
        .stdout
        .lines()
        .filter_map(item)
        .filter_map(|item| Some(item.get("name")?.as_str()?.to_owned()))
        .collect()
}

/// Bits of a store are flipped; then either the program calls it damaged, or the bundle that it exports is the one of the
/// untouched store, and the reader in Python says so too.
pub(crate) fn flips_two_readers(here: &Here, asked: u64) -> Found {
    let mut found = Found::default();
    let Some(python) = python(here) else {
        found.notes.push(
            "SKIPPED: no python3 with the package cryptography; scripts/test.sh installs it".to_owned(),
        );
        return found;
    };
    let home = Temp::new("flips");
    std::fs::write(home.path().join("lines"), LINES).expect("a file is written");
    for args in
        [&["init"][..], &["commit", "--run", "r", "--file", "lines"], &["export", "r", "-o", "whole.dnd"]]
    {
        let ran = run(&here.program, home.path(), args);
        if ran.code != 0 {
            found.wrong(|| format!("{args:?}: {}", ran.stderr));
            return found;
        }
    }
    let _ = std::fs::remove_dir_all(home.path().join(".config/dendrer/heads"));
    let read = |name: &str| std::fs::read(home.path().join(name)).unwrap_or_default();
    let whole = read("whole.dnd");
    let names = [".dendrer/segments/00000000.seg", ".dendrer/store.json", ".dendrer/checkpoint"];
    let total: u64 = names.iter().map(|name| read(name).len() as u64 * 8).sum();
    let (mut refused, mut seen) = (0, 0);
    for point in 0..asked {
        let mut bit = point * total / asked + point % 8;
        let Some(name) = names.iter().find(|name| {
            let here = read(name).len() as u64 * 8;
            let is_here = bit < here;
            bit -= if is_here { 0 } else { here };
            is_here
        }) else {
            continue;
        };
        let honest = read(name);
        let mut edited = honest.clone();
        edited[(bit / 8) as usize] ^= 1 << (bit % 8);
        std::fs::write(home.path().join(name), &edited).expect("a file is written");
        let verified = run(&here.program, home.path(), &["verify", "--all"]);
        let _ = std::fs::remove_file(home.path().join("out.dnd"));
        let exported = run(&here.program, home.path(), &["export", "r", "-o", "out.dnd"]);
        std::fs::write(home.path().join(name), &honest).expect("a file is written");
        found.done += 1;
        found.panics += u64::from(verified.is_panic()) + u64::from(exported.is_panic());
        seen += u64::from(verified.code != 0);
        if exported.code != 0 {
            refused += 1;
            continue;
        }
        let second = second_reader(here, &python, home.path());
        let is_same = records_of(&read("out.dnd")) == records_of(&whole);
        if second.code == 0 && !is_same {
            found.wrong(|| {
                format!("bit {bit} of {name}: the bundle holds something else, and both call it intact")
            });
        }
        if verified.code == 0 && second.code != 0 {
            found.wrong(|| {
                format!("bit {bit} of {name}: intact here, {} there: {}", second.code, second.stdout)
            });
        }
    }
    found.notes.push(format!("verify saw {seen} of {}; export refused {refused}", found.done));
    found
}

const LINES: &str = concat!(
    r#"{"type":"observation.add","agent":"a","confidence":0.5,"delta":[{"set":"/n","value":1}]}"#,
    "\n",
    r#"{"type":"action.request","agent":"b","action":{"tool":"t","params":{"q":"x"}}}"#,
    "\n",
    r#"{"type":"plan.update","agent":"a","delta":[{"set":"/m","value":[1,2,{"a":null}]}]}"#,
    "\n",
);

/// What a bundle says, without the line of its signature.
fn records_of(bundle: &[u8]) -> Vec<Vec<u8>> {
    bundle
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.starts_with(b"{\"checkpoint\""))
        .map(<[u8]>::to_vec)
        .collect()
}

fn python(here: &Here) -> Option<String> {
    let named = std::env::var("DENDRER_PYTHON").ok();
    let local = here.root.join("target/python/bin/python").to_string_lossy().into_owned();
    let works = |python: &String| {
        let command = Command::new(python).args(["-c", "import cryptography"]).output();
        command.is_ok_and(|output| output.status.success())
    };
    named.into_iter().chain([local, "python3".to_owned()]).find(works)
}

fn second_reader(here: &Here, python: &str, home: &Path) -> Ran {
    let mut command = Command::new(python);
    settle(&mut command, home);
    command.arg(here.root.join("docs/verify.py")).arg("out.dnd");
    ran(command)
}

/// Every run of the demo, and imported ones, replayed three times by each of two builds: the same root at every tick.
pub(crate) fn replay(here: &Here, _: u64) -> Found {
    let mut found = Found::default();
    let home = Temp::new("replay");
    let demo = run(&here.program, home.path(), &["demo", "--no-tour"]);
    if demo.code != 0 {
        found.wrong(|| demo.stderr.clone());
        return found;
    }
    let place = home.path().join("dendrer-demo");
    let mut imported = 0;
    for source in sources(&here.root.join("../shared/corpus")) {
        let path = source.to_string_lossy().into_owned();
        imported += u64::from(run(&here.program, &place, &["import", &path, "--again"]).code == 0);
    }
    if imported == 0 {
        found
            .notes
            .push("SKIPPED: no published runs beside this workspace; only the demo is replayed".to_owned());
    }
    for name in runs(&here.program, &place) {
        let mut answers: Vec<String> = Vec::new();
        for program in [&here.program, &here.debug_program] {
            for _ in 0..3 {
                let ran = run(program, &place, &["replay", &name, "--print", "hash", "--json"]);
                found.panics += u64::from(ran.is_panic());
                answers.push(format!("{} {}", ran.code, ran.stdout));
            }
        }
        found.done += answers.len() as u64;
        if answers.windows(2).any(|pair| pair[0] != pair[1]) {
            found.wrong(|| format!("{name}: another root in another replay"));
        }
        let is_replayed = answers[0].starts_with("0 ") || answers[0].contains("\"code\":\"E0");
        if !is_replayed {
            found.wrong(|| format!("{name}: {}", answers[0].chars().take(300).collect::<String>()));
        }
    }
    found.notes.push(format!("{imported} imported runs"));
    found
}

/// The JSON files below a directory, in order.
fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "json") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
