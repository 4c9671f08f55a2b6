//! `record`: a program as it is. The page is run, and programs that end in every way.

#![cfg(unix)]

use std::path::Path;
use std::process::Command;

use regex::Regex;

use crate::support::Place;
use crate::tutorial::{blocks, shell};

/// Whether there is a Python to run programs with.
pub(crate) fn has_python() -> bool {
    let is_there = Command::new("python3").arg("--version").output().is_ok();
    if !is_there {
        eprintln!("SKIPPED: no python3");
    }
    is_there
}

fn page() -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/programs.md")).unwrap()
}

/// Writes the programs of the page, and starts its API.
pub(crate) fn desk(place: &Place) {
    for block in blocks(&page()).into_iter().filter(|block| block.info.len() > 1) {
        std::fs::write(place.path().join("desk").join(block.info[1]), block.lines.join("\n") + "\n").unwrap();
    }
    shell(place, "python3 api.py > api.url &", &mut 0);
    shell(place, "while ! [ -s api.url ]; do sleep 0.1; done", &mut 0);
}

pub(crate) fn place() -> Place {
    let place = Place::new();
    std::fs::create_dir(place.path().join("desk")).unwrap();
    place
}

#[test]
fn the_page_prints_what_it_shows() {
    if !has_python() {
        return;
    }
    let (place, page) = (place(), page());
    let ids = Regex::new(r"\b[0-9a-f]{12}\b").unwrap();
    // Not every machine lets a namespace be made.
    let network = Regex::new(r"(?m)^(isolated     network namespace|NOT ISOLATED .*)$").unwrap();
    let plain = |text: &str| network.replace_all(&ids.replace_all(text, "ID"), "NETWORK").into_owned();
    let (mut last, mut commands) = (0, 0);
    for block in blocks(&page) {
        match block.info.as_slice() {
            [_, name] => {
                std::fs::write(place.path().join("desk").join(name), block.lines.join("\n") + "\n").unwrap();
            }
            ["console"] => {
                for (line, expected) in block.commands() {
                    let found = shell(&place, line, &mut last);
                    assert_eq!(plain(&found), plain(&expected), "`{line}` prints:\n{found}");
                    commands += 1;
                }
            }
            _ => {}
        }
    }
    assert_eq!((last, commands), (0, 25));
}

#[test]
fn a_program_ends_as_it_ends_without_dendrer() {
    let place = place();
    let run = |line: &str| {
        let mut last = 0;
        let text = shell(&place, line, &mut last);
        (last, text)
    };
    let (code, text) =
        run("echo in | dendrer record --as seven -- sh -c 'cat; echo out; echo err >&2; exit 7'");
    assert_eq!(code, 7, "{text}");
    assert!(text.contains("in\nout\n"), "{text}");
    assert!(text.contains("err\n") && text.contains("recorded seven: 1 tick, 0 agents, 0 calls"), "{text}");
    assert!(text.contains("W0468"), "{text}");
    let (code, text) = run("dendrer show seven@1 --json");
    assert_eq!(code, 0, "{text}");
    assert!(text.contains(r#""exit":7"#), "{text}");
    let (code, text) = run("dendrer record --as killed -- sh -c 'kill -TERM $$'");
    assert_eq!(code, 128 + 15, "{text}");
    assert!(run("dendrer show killed@1 --json").1.contains(r#""signal":15"#));
    let (code, text) = run("dendrer record --as none -- no-such-program-at-all");
    assert_eq!(code, 127, "{text}");
    let (code, text) = run("touch plain; dendrer record --as plain -- ./plain");
    assert_eq!(code, 126, "{text}");
    let (code, text) = run("dendrer record --as seven -- touch started; ls started 2>&1");
    assert!(text.contains("E0111") && text.contains("No such file"), "{code} {text}");
    let (code, text) = run("dendrer record --as json --json -- true");
    assert_eq!(code, 2, "{text}");
    let (_, text) = run("dendrer record -- sh -c true; dendrer record -- sh -c true; dendrer runs");
    let names: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"sh") && names.contains(&"sh+2"), "{text}");
    let (code, text) = run("dendrer verify --all --replay");
    assert_eq!(code, 0, "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn addresses_that_a_program_asks_by_itself_are_named() {
    if !has_python() {
        return;
    }
    let (place, mut last) = (place(), 0);
    let other = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let peer = other.local_addr().unwrap();
    let asks = format!(
        "import socket, time; time.sleep(2); s = [socket.create_connection(('127.0.0.1', {})) for _ in range(2)]; time.sleep(1.5)",
        peer.port()
    );
    // A child whose parent has ended is looked at as well, and what it serves itself is not.
    let serves = "import socket, time; a = socket.create_server(('127.0.0.1', 0)); b = socket.create_connection(a.getsockname()); c = a.accept(); time.sleep(0.5)";
    let line = format!(
        "dendrer record --as a --json -o answer -- sh -c \"(python3 -c \\\"{asks}\\\" & sleep 1); python3 -c \\\"{serves}\\\"; sleep 4\""
    );
    let text = shell(&place, &line, &mut last);
    assert_eq!(last, 0, "{text}");
    let answer = std::fs::read_to_string(place.path().join("desk/answer")).unwrap();
    let around = format!(r#""around":[{{"connections":2,"peer":"{peer}"}}]"#);
    assert!(answer.contains(&around), "{answer}");
    assert!(shell(&place, "dendrer show a@1 --json", &mut last).contains(&around));
    let text = shell(&place, &line.replace("--as a --json -o answer", "--as b"), &mut last);
    assert!(text.contains(&format!("note: went around: {peer}, 2 connections\n")), "{text}");
    let text = shell(&place, "dendrer record --as c -- true", &mut last);
    assert!(!text.contains("went around"), "{text}");
    assert!(shell(&place, "dendrer show c@1 --json", &mut last).contains(r#""around":[]"#));
}

#[test]
fn a_signal_to_dendrer_is_the_programs() {
    let place = place();
    let mut last = 0;
    let program = "trap 'echo caught; exit 3' TERM; echo ready > ready; while :; do sleep 0.1; done";
    let line = format!(
        "dendrer record --as s -- sh -c \"{program}\" & d=$!; while ! [ -s ready ]; do sleep 0.1; done; kill -TERM $d; wait $d; echo code $?"
    );
    let text = shell(&place, &line, &mut last);
    assert!(text.contains("caught\n") && text.contains("code 3\n"), "{text}");
    assert!(shell(&place, "dendrer show s@1 --json", &mut last).contains(r#""exit":3"#));
}

#[test]
fn secrets_of_a_call_are_in_no_file() {
    if !has_python() {
        return;
    }
    let place = place();
    desk(&place);
    let mut last = 0;
    let line = "OPENAI_API_KEY=canary-of-the-environment OPENAI_BASE_URL=$(cat api.url) dendrer record --jsonl -o acks -- python3 agent.py";
    let text = shell(&place, line, &mut last);
    assert_eq!(last, 0, "{text}");
    let acks = std::fs::read_to_string(place.path().join("desk/acks")).unwrap();
    assert_eq!(acks.lines().count(), 8, "6 ticks, the end, and the summary: {acks}");
    let canaries = ["sk-not-a-real-key-1234567890", "canary-of-the-environment"];
    let mut files = vec![place.path().join("desk/.dendrer"), place.path().to_path_buf()];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.file_name().is_some_and(|name| name != "agent.py") {
            let bytes = std::fs::read(&path).unwrap_or_default();
            for canary in canaries {
                let found = bytes.windows(canary.len()).any(|part| part == canary.as_bytes());
                assert!(!found, "{canary} is in {}", path.display());
            }
        }
    }
}
