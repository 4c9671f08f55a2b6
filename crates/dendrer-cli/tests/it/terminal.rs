//! What only happens on a terminal: pager, colour, progress. `script` gives the program one.

use std::io::Write;
#[cfg(unix)]
use std::process::Command;
use std::process::Stdio;
use std::time::Duration;

use dendrer_object::json;

use crate::schema::{Extent, check_output};
use crate::support::{Place, can_strace, demo};

/// Runs a shell line on a terminal of 10 rows and 90 columns; `None` where there is no `script` to make one.
#[cfg(unix)]
fn on_terminal(line: &str, env: &[(&str, &str)]) -> Option<String> {
    let there = Command::new("script").arg("--version").output();
    if !there.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("util-linux")) {
        eprintln!("SKIPPED: there is no script(1) of util-linux here, so no terminal");
        return None;
    }
    let line = line.replace("dendrer ", &format!("{} ", env!("CARGO_BIN_EXE_dendrer")));
    let output = Command::new("script")
        .args(["-qec", &format!("stty rows 10 cols 90; {line}"), "/dev/null"])
        .current_dir(demo().dir())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", demo().dir())
        .env("TERM", "xterm")
        .env("TZ", "UTC")
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Some(String::from_utf8(output.stdout).unwrap().replace('\r', ""))
}

/// A pager that shows that it was there.
#[cfg(unix)]
const PAGER: (&str, &str) = ("DENDRER_PAGER", "sed s/^/P:/");

#[test]
#[cfg(unix)]
fn only_what_is_longer_than_the_screen_is_paged() {
    let paged = |line: &str, env: &[(&str, &str)]| {
        on_terminal(line, &[&[PAGER], env].concat()).map(|text| text.starts_with("P:"))
    };
    let Some(long) = paged("dendrer log trip-planner-a", &[]) else { return };
    assert!(long);
    for (line, env) in [
        ("dendrer version", &[][..]),
        ("dendrer log trip-planner-a -n 4", &[]),
        ("dendrer log trip-planner-a --no-pager", &[]),
        ("dendrer log trip-planner-a --json", &[]),
        ("dendrer log trip-planner-a | cat", &[]),
        ("dendrer log trip-planner-a", &[("TERM", "dumb")]),
        ("dendrer log trip-planner-a", &[("ACCESSIBLE", "1")]),
        ("dendrer log trip-planner-a", &[("DENDRER_PAGER", "")]),
        ("dendrer log trip-planner-a", &[("DENDRER_PAGER", "cat")]),
        ("env -u DENDRER_PAGER PAGER= PATH=$PWD:$PATH dendrer log trip-planner-a", &[]),
        ("env -u DENDRER_PAGER PAGER=cat PATH=$PWD:$PATH dendrer log trip-planner-a", &[]),
        // Somebody else's setting is not ours.
        ("env -u DENDRER_PAGER dendrer log trip-planner-a -n 4", &[("PAGER", "sed s/^/P:/")]),
    ] {
        assert_eq!(paged(line, env), Some(false), "{line} {env:?}");
    }
    // What is said beside the answer is not paged, and stands below it.
    let text =
        on_terminal("dendrer bisect logistics-run-47 --predicate kernel.policy_compliant; dendrer why logistics-run-47@31 risk_score", &[PAGER]).unwrap();
    let last = text.lines().last();
    assert!(
        text.starts_with("P:") && last == Some("note: --cross-agent follows the inputs of other agents"),
        "{text}"
    );
    // What is paged is the answer, whole.
    let text = on_terminal("dendrer log trip-planner-a --width 90 --color never", &[PAGER]).unwrap();
    let plain = demo().run(&["log", "trip-planner-a", "--width", "90"]).stdout;
    assert_eq!(text.replace("P:", ""), plain);
}

#[test]
#[cfg(unix)]
fn a_pager_that_leaves_early_ends_it_quietly_and_none_at_all_shows_screens() {
    let Some(text) = on_terminal("dendrer log trip-planner-a; echo rc $?", &[("DENDRER_PAGER", "head -n 2")])
    else {
        return;
    };
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.ends_with("rc 0\n"), "{text}");
    // No pager to be found, and nobody at the keyboard: everything is shown.
    let gone =
        on_terminal("dendrer log trip-planner-a </dev/null", &[("DENDRER_PAGER", "no-such-pager")]).unwrap();
    assert!(gone.contains("47 of 47 transitions"), "{gone}");
    // With a keyboard the reader is asked after each screen; here it says at once that this is the end.
    let asked = on_terminal("dendrer log trip-planner-a; echo rc $?", &[("DENDRER_PAGER", "no-such-pager")]);
    let asked = asked.unwrap();
    assert!(asked.contains("-- more: Enter; stop: q and Enter --"), "{asked}");
    assert!(!asked.contains("47 of 47") && asked.ends_with("rc 0\n"), "{asked}");
}

#[test]
#[cfg(unix)]
fn a_terminal_is_coloured_and_cut_unless_it_is_told_otherwise() {
    let colored = |env: &[(&str, &str)]| {
        on_terminal("dendrer log trip-planner-a --no-pager", env).map(|text| text.contains('\x1b'))
    };
    let Some(plain) = colored(&[]) else { return };
    assert!(plain);
    assert_eq!(colored(&[("NO_COLOR", "1")]), Some(false));
    assert_eq!(colored(&[("TERM", "dumb")]), Some(false));
    assert_eq!(colored(&[("TERM", "dumb"), ("DENDRER_COLOR", "always")]), Some(true));
    let cut = on_terminal("dendrer log trip-planner-a --no-pager --color never", &[]).unwrap();
    assert!(cut.lines().all(|line| line.chars().count() <= 90), "{cut}");
    assert!(cut.contains("(... at 90 columns; --full)"), "{cut}");
}

#[test]
fn the_accessible_mode_lists_and_spells_out() {
    let mut command = demo().command(&["runs", "--sort", "name", "--time", "none"]);
    command.env("DENDRER_ACCESSIBLE", "1");
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(text.is_ascii());
    assert!(
        text.lines()
            .nth(8)
            .unwrap()
            .starts_with("name: logistics-planner-1, ticks: 64, goal: Keep the northern"),
        "{text}"
    );
    let mut command = demo().command(&["state", "trip-planner-a@13", "--base", "trip-planner-a@11"]);
    command.env("DENDRER_ACCESSIBLE", "1");
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(text.contains("\nadded fares.verified  true\nchanged risk_score  0.22 -> 0.82\n"), "{text}");
    // A graph is drawn with strokes that no voice can read; who acted stands in each line anyway.
    let mut command = demo().command(&["log", "trip-planner-a", "--graph", "-n", "3"]);
    command.env("DENDRER_ACCESSIBLE", "1");
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(!text.contains("lanes") && text.contains("evidence 44"), "{text}");
}

/// Keeps a pipe open for so long, and returns what was said of the progress.
fn recorded_slowly(flags: &[&str], ms: u64) -> Vec<String> {
    let place = Place::with_store();
    let mut child = place
        .command(&[&["commit", "--run", "r", "--jsonl"], flags].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"type\":\"plan.update\"}\n{\"type\":\"plan.update\"}\n").unwrap();
    std::thread::sleep(Duration::from_millis(ms));
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stderr).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn progress_is_said_after_half_a_second_and_once_a_second() {
    let lines = recorded_slowly(&["--progress", "json"], 2300);
    assert!((2..=4).contains(&lines.len()), "{lines:?}");
    for line in &lines {
        let object = json::parse_door(line.as_bytes()).unwrap();
        assert_eq!(object.get("schema").unwrap().as_str(), Some("dendrer.progress/1"));
        check_output(line, Extent::Full);
        // The run, and two transitions.
        assert_eq!(object.get("done").unwrap().as_u64(), Some(3), "{line}");
    }
    let plain = recorded_slowly(&["--progress", "plain"], 1200);
    assert!(plain.len() == 1 && plain[0].starts_with("commit: 3 intents, "), "{plain:?}");
    assert_eq!(recorded_slowly(&["--progress", "never"], 900), Vec::<String>::new());
    assert_eq!(recorded_slowly(&[], 900), Vec::<String>::new(), "nobody watches a pipe");
    // What is quick is not spoken of.
    let quick = demo().run(&["log", "trip-planner-a", "--progress", "plain"]);
    assert_eq!(quick.stderr, "");
}

/// Whatever may read all of a run, or a file of any size, says how far it has come.
#[test]
#[cfg(target_os = "linux")]
fn long_reading_is_spoken_of() {
    if !can_strace() {
        return;
    }
    let place = Place::with_store();
    let line = "{\"type\":\"plan.update\",\"delta\":[{\"set\":\"/a\",\"value\":1}]}\n";
    assert_eq!(place.run_with(&["commit", "--run", "r"], line.repeat(300).as_bytes()).code, 0);
    place.ok(&["export", "r", "-o", "r.dnd"]);
    let message = "{\"role\":\"user\",\"content\":\"a\"}";
    std::fs::write(place.path().join("chat"), format!("[{}]", vec![message; 9000].join(","))).unwrap();
    // The calls that read in the middle take long.
    let (store, file) = ("pread64:delay_enter=250000:when=8..15", "read:delay_enter=200000:when=10..30");
    let source = "read:delay_enter=200000:when=6..60";
    let cases: [(&str, &str, &[&str]); 12] = [
        (store, "why: ", &["why", "r", "a"]),
        (store, "backtrack: ", &["backtrack", "r", "a"]),
        (store, "predicate: ", &["predicate", "test", "state.a > 3", "r"]),
        (store, "fork: ", &["fork", "r", "--from", "100", "-n"]),
        (store, "rebase: ", &["rebase", "r", "--onto", "r@3", "-n"]),
        (store, "state: ", &["state", "r@200"]),
        (store, "cherrypick: ", &["cherrypick", "r@7", "--into", "r", "-n"]),
        (file, "reading: ", &["verify", "r.dnd"]),
        (file, "reading: ", &["log", "r.dnd"]),
        (source, "import: ", &["import", "chat", "-n"]),
        (source, "import: ", &["import", "chat", "--run", "chat"]),
        (store, "bisect: ", &["bisect", "r", "--predicate", "state.a < 3"]),
    ];
    std::thread::scope(|scope| {
        for (slow, begins, args) in cases {
            let place = &place;
            scope.spawn(move || {
                let mut command = Command::new("strace");
                command.args(["-f", "-o", "/dev/null", "-e", &format!("inject={slow}")]);
                command.arg(env!("CARGO_BIN_EXE_dendrer")).args(args).args(["--progress", "plain"]);
                command.current_dir(place.path()).env("HOME", place.path()).stdin(Stdio::null());
                let output = command.output().unwrap();
                let told = String::from_utf8(output.stderr).unwrap();
                assert!(told.lines().any(|line| line.starts_with(begins)), "{args:?}: {told}");
            });
        }
    });
}
