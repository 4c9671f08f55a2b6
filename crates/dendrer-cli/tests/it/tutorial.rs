//! The tutorial and the page on certainty are what happens: every command of a page is run, in order, and must print what
//! the page shows.
//!
//! Three kinds of blocks count. `console` holds commands behind `$ ` with their output; `json FILE` and `yaml FILE` are
//! files that the reader makes; behind the name `more` adds to the file after an empty line, and `line N` stands for a line.
//! `DENDRER_UPDATE=1` writes into a page what its commands print, where that changed.

#![cfg(unix)]

use std::path::Path;
use std::process::Command;

use regex::Regex;

use crate::schema::{Extent, check_intent, check_output};
use crate::support::Place;

/// A fenced block of the page.
pub(crate) struct Block<'p> {
    pub(crate) info: Vec<&'p str>,
    pub(crate) lines: Vec<&'p str>,
}

impl<'p> Block<'p> {
    /// The commands of a console, each with what it prints.
    pub(crate) fn commands(&self) -> Vec<(&'p str, String)> {
        let mut commands: Vec<(&str, String)> = Vec::new();
        for line in &self.lines {
            match line.strip_prefix("$ ") {
                Some(command) => commands.push((command, String::new())),
                None => {
                    let (_, shown) = commands.last_mut().expect("a command, then its output");
                    shown.push_str(line);
                    shown.push('\n');
                }
            }
        }
        commands
    }
}

pub(crate) fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```") {
            let info = info.split_whitespace().collect();
            blocks.push(Block { info, lines: lines.by_ref().take_while(|line| *line != "```").collect() });
        }
    }
    blocks
}

/// Does with a file what the page tells the reader to.
fn write(file: &Path, how: &[&str], lines: &[&str]) {
    let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let before = || std::fs::read_to_string(file).unwrap();
    let text = match how {
        [] => text,
        ["more"] => format!("{}\n{text}", before()),
        ["line", number] => {
            let number: usize = number.parse().unwrap();
            let before = before();
            let mut all: Vec<&str> = before.lines().collect();
            assert_eq!(lines.len(), 1, "one line stands for one");
            all[number - 1] = lines[0];
            all.iter().map(|line| format!("{line}\n")).collect()
        }
        other => panic!("nothing is known of {other:?}"),
    };
    std::fs::write(file, text).unwrap();
}

/// Runs a line as a shell does, and returns all that a terminal would show.
pub(crate) fn shell(place: &Place, line: &str, last: &mut i32) -> String {
    let desk = place.path().join("desk");
    let shown = desk.join("../shown");
    let file = std::fs::File::create(&shown).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_dendrer")).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(program).chain(std::env::split_paths(&path))).unwrap();
    let status = Command::new("sh")
        .args(["-c", &format!("(exit {last}); {line}")])
        .current_dir(desk)
        .env_clear()
        .env("HOME", place.path())
        .env("PATH", path)
        .env("TZ", "UTC")
        .stdin(std::process::Stdio::null())
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .status()
        .unwrap();
    *last = status.code().unwrap();
    let shown = std::fs::read_to_string(shown).unwrap();
    check_output(&shown, if line.contains("--fields") { Extent::Chosen } else { Extent::Full });
    shown.replace(place.path().to_str().unwrap(), "/home/me")
}

/// Puts one word in place of what no two runs have in common.
fn plain(text: &str) -> String {
    let varies = [
        (r"\b(hash|parent|tip|genesis|root) [0-9a-f]{12}\b", "$1 HASH"),
        (r"(?m)^tip        sha256:[0-9a-f]{64}$", "tip HASH"),
        (r"(?m)^(begun|tick \d+)  sha256:[0-9a-f]{64}", "$1 HASH"),
        (r"(?m)^(tick \d+  .*)  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d$", "$1  TIME"),
        (r"(?m)^(ONSET .*)   [0-9a-f]{12}$", "$1   HASH"),
        (r"(?m)^links caused_by [0-9a-f]{12}$", "links HASH"),
        (r"(?m)^id [0-9a-f]{12}(   after [0-9a-f]{12})?$", "id HASH"),
        (r"\b[0-9a-f]{8} (by|beyond|revoked)\b", "KEY $1"),
        (r"\bKEY by [0-9a-f]{8}\b", "KEY by KEY"),
        (r"(?m)^verifier  dendrer/[0-9a-f]{32}\+[0-9a-f]{8}\+\S{44}$", "verifier KEY"),
        (r"/keys/[0-9a-f]{32}\.key\b", "/keys/KEY"),
        (r"(?m)^signer    [0-9a-f]{8}", "signer    KEY"),
        (r"map of \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "map of TIME"),
        (r"\bdendrer/[0-9a-f]{32}\+[0-9a-f]{8}\+[A-Za-z0-9+/]{44}", "KEY"),
        (r"\b\d+ bytes to", "N bytes to"),
        (r"\b\d{2,3},\d{3} bytes", "N bytes"),
    ];
    varies.iter().fold(text.to_owned(), |text, (pattern, word)| {
        Regex::new(pattern).unwrap().replace_all(&text, *word).into_owned()
    })
}

/// Runs the commands of a page in order. Returns where, and how many there are.
pub(crate) fn follow(page: &str) -> (Place, usize) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let page = std::fs::read_to_string(&file).unwrap();
    let mut updated = page.clone();
    let place = Place::new();
    std::fs::create_dir(place.path().join("desk")).unwrap();
    let (mut commands, mut last) = (0, 0);
    for block in blocks(&page) {
        let (kind, how) = block.info.split_first().expect("a block says what it is");
        if *kind != "console" {
            write(&place.path().join("desk").join(how[0]), &how[1..], &block.lines);
            continue;
        }
        for (line, expected) in block.commands() {
            assert!(last == 0 || line == "echo $?", "exit code {last} is shown before `{line}`");
            let found = shell(&place, line, &mut last);
            if std::env::var_os("DENDRER_UPDATE").is_none() {
                assert_eq!(plain(&found), plain(&expected), "`{line}` prints:\n{found}");
            } else if plain(&found) != plain(&expected) {
                updated =
                    updated.replacen(&format!("$ {line}\n{expected}"), &format!("$ {line}\n{found}"), 1);
            }
            commands += 1;
        }
    }
    assert_eq!(last, 0);
    if updated != page {
        std::fs::write(file, updated).unwrap();
    }
    (place, commands)
}

#[test]
fn the_page_on_certainty_prints_what_it_shows() {
    let (_, commands) = follow("certainty.md");
    assert!(commands > 12, "{commands} commands were run");
}

#[test]
fn the_page_on_the_terminal_prints_what_it_shows() {
    let (_, commands) = follow("terminal.md");
    assert!(commands > 9, "{commands} commands were run");
}

#[test]
fn the_page_on_erasing_prints_what_it_shows() {
    let (_, commands) = follow("erasing.md");
    assert!(commands > 9, "{commands} commands were run");
}

#[test]
fn the_page_on_verify_prints_what_it_shows() {
    let (_, commands) = follow("verify.md");
    assert!(commands > 15, "{commands} commands were run");
}

#[test]
fn the_page_on_keys_prints_what_it_shows() {
    let (_, commands) = follow("keys.md");
    assert!(commands > 15, "{commands} commands were run");
}

#[test]
fn the_page_on_commitments_prints_what_it_shows() {
    let (_, commands) = follow("commitments.md");
    assert!(commands > 7, "{commands} commands were run");
}

#[test]
fn the_page_on_chains_prints_what_it_shows() {
    let (_, commands) = follow("chains.md");
    assert!(commands > 15, "{commands} commands were run");
}

#[test]
fn the_page_on_sending_prints_what_it_shows() {
    let (_, commands) = follow("sending.md");
    assert!(commands > 7, "{commands} commands were run");
}

/// The page on CI, and its workflow: every step that is a command of dendrer is run, in order, as GitHub runs a step with
/// `shell: bash`. The agents are a good one, one that spends too much, and one that fails after its last line.
#[test]
fn the_page_on_ci_prints_what_it_shows_and_its_workflow_is_a_gate() {
    let (place, commands) = follow("ci.md");
    assert!(commands > 8, "{commands} commands were run");
    let desk = place.path().join("desk");
    let workflow = std::fs::read_to_string(desk.join("agents.yml")).unwrap();
    let steps: Vec<&str> =
        workflow.lines().filter_map(|line| line.trim_start().strip_prefix("- run: ")).collect();
    assert!(steps.len() > 5, "{steps:?}");
    assert!(workflow.contains("run: {shell: bash}"), "without it a pipe hides the exit code of the agent");
    let gate = "::error title=";
    for (price, end, stop) in
        [("291.5", "", None), ("2291.5", "", Some(gate)), ("291.5", "exit 7\n", Some("sh agent.sh | "))]
    {
        let agent = std::fs::read_to_string(desk.join("agent.sh")).unwrap().replace("291.5", price) + end;
        let fresh = Place::new();
        std::fs::create_dir(fresh.path().join("desk")).unwrap();
        for name in ["rules.yaml", "known.sh"] {
            std::fs::copy(desk.join(name), fresh.path().join("desk").join(name)).unwrap();
        }
        std::fs::write(fresh.path().join("desk/agent.sh"), agent).unwrap();
        let mut last = 0;
        let mut failed = Vec::new();
        // The first step installs the program.
        for step in &steps[1..] {
            std::fs::write(fresh.path().join("desk/step.sh"), step).unwrap();
            let shown = shell(&fresh, "bash --noprofile --norc -eo pipefail step.sh", &mut last);
            if last != 0 {
                failed.push(format!("{step}: {shown}"));
                break;
            }
        }
        assert_eq!(failed.is_empty(), stop.is_none(), "{failed:?}");
        assert!(stop.is_none_or(|stop| failed[0].contains(stop)), "{failed:?}");
    }
}

/// The three lines of the README for an agent that already ran.
#[test]
fn the_lines_of_the_readme_find_a_step_of_a_transcript() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let [readme, tutorial] =
        ["README.md", "docs/tutorial.md"].map(|page| std::fs::read_to_string(root.join(page)).unwrap());
    let place = Place::new();
    std::fs::create_dir(place.path().join("desk")).unwrap();
    let chat = blocks(&tutorial).into_iter().find(|block| block.info == ["json", "chat.json"]).unwrap();
    write(&place.path().join("desk/chat.json"), &[], &chat.lines);
    let block =
        blocks(&readme).into_iter().find(|block| block.lines.concat().contains("dendrer import")).unwrap();
    assert_eq!(block.lines.len(), 3);
    let mut last = 0;
    let shown: Vec<String> = block.lines.iter().map(|line| shell(&place, line, &mut last)).collect();
    assert_eq!(last, 0, "{shown:?}");
    assert!(shown[2].starts_with("ONSET (heuristic)  tick 7"), "{}", shown[2]);
}

#[test]
fn the_tutorial_prints_what_it_shows() {
    let (place, commands) = follow("tutorial.md");
    assert!(commands > 15, "{commands} commands were run");
    let rules = std::fs::read_to_string(place.path().join("desk/desk.yaml")).unwrap();
    assert_eq!(rules.matches("when_type:").count(), 5, "a pack of five rules");
}

/// Returns the line that a page gives to `dendrer commit`: by itself, or in the `echo` of a command.
fn intent_line(line: &str) -> Option<&str> {
    let echoed = line.strip_prefix("$ echo '").and_then(|rest| rest.split_once("' | dendrer commit"));
    let line = echoed.map_or(line, |(line, _)| line);
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    let is_step = value.get("step").is_some_and(serde_json::Value::is_object);
    let is_typed = value.get("type").is_some() && value.get("what").is_none();
    (is_step || is_typed).then_some(line)
}

#[test]
fn every_line_of_the_pages_fits_its_schema() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let mut intents = 0;
    for page in pages.chain([root.join("README.md")]) {
        // Pages shorten ids.
        let id = format!("sha256:{}", "0".repeat(64));
        let text = std::fs::read_to_string(&page).unwrap().replace("sha256:...", &id);
        for block in blocks(&text) {
            // `text` marks a file with lines that are refused; the others are lines of foreign formats.
            let kind = block.info.first().copied().unwrap_or_default();
            if kind == "text" || kind.starts_with("import-") {
                continue;
            }
            check_output(&block.lines.join("\n"), Extent::Full);
            for line in block.lines.iter().filter_map(|line| intent_line(line)) {
                check_intent(line);
                intents += 1;
            }
        }
    }
    assert!(intents >= 32, "{intents} lines");
}
