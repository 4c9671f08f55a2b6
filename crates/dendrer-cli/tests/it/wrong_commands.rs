//! Commands that are wrong, and the commands that are printed for them.

#![cfg(unix)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{Place, copy};

/// The commands with their answers, which a person reads.
const GOLDEN: &str = "tests/it/wrong_commands.txt";

/// Set to write the answers instead of comparing them.
const UPDATE: &str = "DENDRER_UPDATE";

/// A file that commands with `FILE` find; a chat, which every door can look at.
const FILE: &str = r#"[{"role":"user","content":"hello"}]"#;

/// What commands that record find in it.
const LINE: &str = r#"{"type":"observation.add","intent":{"description":"hello"}}"#;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(GOLDEN)
}

fn demo() -> Place {
    let place = Place::with_demo();
    std::fs::write(place.path().join("FILE"), FILE).unwrap();
    place
}

/// Runs a line in a shell; returns the exit code and stderr.
pub(crate) fn sh(place: &Place, line: &str) -> (i32, String) {
    let program = Path::new(env!("CARGO_BIN_EXE_dendrer")).parent().unwrap().display().to_string();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-c", line])
        .current_dir(place.path())
        .env_clear()
        .env("HOME", place.path())
        .env("TZ", "UTC")
        .env("PATH", format!("{program}:{path}"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The lines of the golden file, with the answer of each command below it.
fn answered(place: &Place, golden: &str) -> String {
    let is_kept = |line: &&str| line.starts_with(['$', '#']);
    let mut text = String::new();
    for line in golden.lines().filter(is_kept) {
        let before = if line.starts_with("## ") { "\n" } else { "" };
        text.push_str(&format!("{before}{line}\n"));
        if let Some(command) = line.strip_prefix("$ ") {
            let (code, stderr) = sh(place, command);
            text.push_str(&format!("exit {code}\n{}\n\n", stderr.trim_end()));
        }
    }
    text
}

#[test]
fn wrong_commands_are_answered_by_commands() {
    let place = demo();
    let golden_text = std::fs::read_to_string(golden()).unwrap();
    let text = answered(&place, &golden_text);
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(golden(), &text).unwrap();
    } else {
        assert_eq!(text, golden_text, "write it anew with {UPDATE}=1, and read what changed");
    }
    let answers: Vec<&str> = text.split("$ dendrer ").skip(1).collect();
    assert!(answers.len() >= 120, "{}", answers.len());
    for answer in answers {
        let mut lines = answer.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).skip(1);
        let exit = lines.next().unwrap();
        assert!(matches!(exit, "exit 2" | "exit 3"), "{answer}");
        let lines: Vec<&str> = lines.collect();
        // A group without its second word prints its help.
        if lines.iter().any(|line| line.starts_with("Usage: ")) {
            continue;
        }
        let about_code = lines.iter().filter(|line| line.contains("see: dendrer explain")).count();
        assert!(lines.len() <= 3 + about_code, "{answer}");
        assert!(lines.iter().any(|line| line.starts_with("help: dendrer ")), "{answer}");
    }
}

#[test]
fn every_command_that_is_printed_works() {
    let golden = std::fs::read_to_string(golden()).unwrap();
    let printed: BTreeSet<&str> = golden.lines().filter_map(|line| line.strip_prefix("help: ")).collect();
    let demo = demo();
    // A log that is followed has no end, and a server neither.
    let ends = |command: &&str| !command.contains("--follow") && *command != "dendrer serve";
    let printed = printed.into_iter().filter(ends);
    for command in printed {
        // No command meets what another one wrote.
        let place = Place::new();
        copy(demo.path(), place.path());
        if command.contains(" commit ") {
            std::fs::write(place.path().join("FILE"), LINE).unwrap();
        }
        let (code, stderr) = sh(&place, command);
        assert!(!matches!(code, 2 | 3), "{command}: exit {code}: {stderr}");
    }
}
