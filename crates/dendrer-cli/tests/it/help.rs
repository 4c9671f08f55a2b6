//! Help, manual pages and completions: what a person meets before anything else.

#[cfg(unix)]
use std::process::{Command, Stdio};

#[cfg(unix)]
use crate::graphs;
use crate::support::{Place, demo, ran};

/// The verbs that the help lists, as a user reads them off.
fn verbs(place: &Place) -> Vec<String> {
    let help = place.ok(&["help"]);
    let lines = help.lines().take_while(|line| *line != "Everywhere:");
    // Two blanks, the verb, and more of them; the text of a verb goes on further in.
    let lines = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    lines.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

/// The examples at the end of a help text.
#[cfg(unix)]
fn examples(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    lines.take_while(|line| line.starts_with("  ")).map(str::trim).collect()
}

/// The examples in every `--help` are commands that work: in a place where the demo is, or in an empty one.
/// The examples are written for a shell.
#[test]
#[cfg(unix)]
fn the_examples_of_the_help_work() {
    let place = Place::new();
    place.ok(&["demo", "--no-tour"]);
    let dir = place.path().join("dendrer-demo");
    let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).unwrap();
    write("intents.jsonl", "{\"type\":\"plan.update\"}\n");
    write("chat.json", r#"[{"role":"user","content":"hello"}]"#);
    write("steps.jsonl", r#"{"kind":"plan.update"}"#);
    write("map.json", r#"{"type":"/kind"}"#);
    write("orders.yaml", include_str!("../../../../examples/packs/order-desk.yaml"));
    write(
        "day.graph",
        "graph day\ne1 clock.now() -> rec frontier[1]\nn0 day(e1) pure\nreplay(graph, frontier) == output required\n",
    );
    write(
        "day.yaml",
        "name: day\nversion: v1\ndefine:\n  day(at): at\ntools:\n  clock.now: {effect: read}\n",
    );
    graphs::write_note(&dir);
    write("agent.py", "print('nothing to ask')\n");
    write("depot.py", "import sys\nsys.stdin.read()\n");
    // The demo has a run of this graph.
    write("note.yaml", include_str!("../../src/demo/note.yaml"));
    let verbs = verbs(&place);
    assert!(verbs.len() >= 17, "{verbs:?}");
    let graph = ["check", "show", "run", "frontier", "test"].map(|verb| place.ok(&["graph", verb, "--help"]));
    let helps = verbs.iter().map(|verb| place.ok(&[verb, "--help"])).chain(graph);
    for help in std::iter::once(place.ok(&["--help"])).chain(helps) {
        let examples = examples(&help);
        assert!(examples.len() >= 2, "{help}");
        assert_eq!(
            help.trim_end().lines().last().map(str::trim),
            examples.last().copied(),
            "examples end it"
        );
        // A server runs until it is ended: tests of its own begin it.
        let ends = |example: &&str| !example.starts_with("dendrer serve") || example.contains("--get");
        for example in examples.into_iter().filter(ends) {
            let empty = Place::new();
            let makes = example.contains("dendrer init") || example.contains("dendrer demo");
            let program = env!("CARGO_BIN_EXE_dendrer");
            // The size of a load test is for those who want one.
            let script = example.replace("dendrer ", &format!("{program} ")).replace("100000", "1000");
            let output = Command::new("sh")
                .args(["-c", &script])
                .current_dir(if makes { empty.path() } else { &dir })
                .env("HOME", place.path())
                .stdin(Stdio::null())
                .output()
                .unwrap();
            // As in git, a merge with an open conflict ends with 1.
            let stderr = String::from_utf8_lossy(&output.stderr);
            // Exports as Parquet are built in where they are asked for.
            if stderr.contains("E0818") && !cfg!(feature = "fleet") {
                continue;
            }
            let is_open = example.contains("dendrer merge") && stderr.contains("dendrer conflicts resolve");
            assert_eq!(output.status.code(), Some(i32::from(is_open)), "{example}: {stderr}");
        }
    }
}

#[test]
fn the_exit_codes_are_a_table() {
    let place = Place::new();
    assert_eq!(
        place.ok(&["help", "exit-codes"]),
        "code  meaning                     for example
   0  done, or the answer is yes  onset found; intact
   1  done, the answer is no      bisect found no violation; another onset than expected; diff --exit-code differs; a case of a suite failed
   2  usage                       unknown flag, two that exclude each other, a text that is not JSON
   3  not found                   store, run, tick, path, file, predicate
   4  integrity                   content, chain, root, tip or signature is not what was committed
   5  refused for safety          an agent tried a type that is not its own; the run has ended or moved on
   6  unsound or unverifiable     bisect with a predicate that recovers; erased values, a missing prefix, an unknown key
   7  replay divergence           replay does not reproduce a recorded state
   8  environment                 disk full, store locked, newer format, no key, a command of fork --exec that failed
 130  interrupted                 safe at any time; nothing is left half-written
of several answers the worst one counts: 4, then 7, then 6; each error's own code is in dendrer explain
"
    );
    let help = place.ok(&["--help"]);
    for line in ["    0  done, or the answer is yes", "  130  interrupted"] {
        assert!(help.lines().any(|found| found == line), "{line}: {help}");
    }
    assert_eq!(place.ok(&["help", "log"]), place.ok(&["log", "--help"]));
    // Flags of every verb are printed once, and on their own.
    assert!(!place.ok(&["log", "--help"]).contains("--no-pager"));
    assert!(place.ok(&["help", "globals"]).contains("--no-pager"));
    assert_eq!(place.run(&["help", "lgo"]).code, 2);
}

#[test]
fn the_first_screen_names_few_commands_and_the_demo_first() {
    let place = Place::new();
    let screen = place.ok(&[]);
    assert!(screen.lines().count() <= 12, "{screen}");
    let commands: Vec<&str> =
        screen.lines().filter_map(|line| line.strip_prefix("  dendrer ")?.split(' ').next()).collect();
    assert_eq!(commands, ["demo", "init", "commit", "import", "help"]);
    let ran = place.run(&["log"]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.starts_with("error[E0103]: no store in "), "{}", ran.stderr);
    assert!(ran.stderr.contains("help: dendrer init\nhelp: dendrer demo\n"), "{}", ran.stderr);
}

#[test]
fn a_slip_in_a_word_is_met_with_the_word() {
    let place = Place::new();
    for (args, expected) in [
        (
            &["lgo"][..],
            "error[E0106]: verb \"lgo\" does not exist
note: did you mean log?
help: dendrer log
",
        ),
        (
            &["log", "--limt", "3"],
            "error[E0106]: log has no flag --limt
note: did you mean --limit?
help: dendrer log --limit 3
",
        ),
        (
            &["show"],
            "error[E0106]: show needs REV
help: dendrer show --help
",
        ),
        (
            &["log", "--format", "receit"],
            "error[E0106]: log has no form \"receit\"
note: did you mean receipt?
help: dendrer log --help
",
        ),
    ] {
        let ran = place.run(args);
        assert_eq!((ran.code, ran.stderr.as_str()), (2, expected), "{args:?}");
    }
    for (slip, meant) in [("verfy", "verify"), ("bisec", "bisect"), ("exprot", "export"), ("comm", "commit")]
    {
        let ran = place.run(&[slip]);
        assert!(ran.stderr.contains(&format!("did you mean {meant}?")), "{slip}: {}", ran.stderr);
    }
}

#[test]
fn every_verb_has_a_manual_page() {
    let place = Place::new();
    let page = place.ok(&["man"]);
    assert!(page.contains(".TH dendrer 1") && page.contains("dendrer\\-log(1)"), "{page}");
    for verb in verbs(&place) {
        let page = place.ok(&["man", &verb]);
        assert!(page.contains(&format!(".TH dendrer-{verb} 1")), "{page}");
        assert!(page.contains("Examples:"), "{verb}");
    }
    assert_eq!(place.run(&["man", "nothing"]).code, 2);
    let log = place.ok(&["man", "log"]);
    assert!(log.contains("\\-\\-grep"), "{log}");
}

/// What a shell is offered, asked as each shell asks.
fn offered(shell: &str, words: &[&str]) -> Vec<String> {
    let index = (words.len() - 1).to_string();
    let mut command = demo().command(&[&["--"], words].concat());
    command.env("COMPLETE", shell).env("_CLAP_COMPLETE_INDEX", index).env("_CLAP_IFS", "\n");
    let ran = ran(command.output().unwrap());
    assert_eq!(ran.code, 0, "{shell} {words:?}: {}", ran.stderr);
    ran.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn shells_complete_runs_paths_and_names() {
    let runs = ["logistics-fix-1", "logistics-planner-1", "logistics-run-47", "logistics-run-47.dnd"];
    for verb in ["log", "show", "state", "diff", "verify", "replay", "bisect", "export"] {
        assert_eq!(offered("bash", &["dendrer", verb, "logi"]), runs, "{verb}");
    }
    for shell in ["zsh", "fish", "powershell", "elvish"] {
        let found = offered(shell, &["dendrer", "log", "logi"]);
        let words: Vec<&str> = found.iter().filter_map(|line| line.split(['\t', ':']).next()).collect();
        assert_eq!(words, runs, "{shell}");
    }
    assert_eq!(
        offered("nushell", &["dendrer", "log", "planning"]),
        [r#"[{"description":"","value":"planning-run-12"}]"#]
    );
    assert_eq!(
        offered("bash", &["dendrer", "state", "trip-planner-a@1", "--path", "b"]),
        ["beliefs", "budget_remaining", "budget_total"]
    );
    assert_eq!(
        offered("bash", &["dendrer", "log", "trip-planner-a", "--path", "beliefs.half"]),
        ["beliefs.half_fare_card"]
    );
    assert_eq!(
        offered("bash", &["dendrer", "bisect", "r", "--predicate", "kernel.p"]),
        ["kernel.policy_compliant"]
    );
    assert_eq!(offered("bash", &["dendrer", "help", "exi"]), ["exit-codes"]);
    // Names in a trace may be anything; what a shell could take for more than a word is not offered.
    let hostile = offered("bash", &["dendrer", "state", "hostile-1", "--path", ""]);
    assert!(
        hostile.iter().all(|name| name.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-.".contains(&c)))
    );
}

#[test]
fn nothing_is_offered_where_there_is_no_store_and_nothing_breaks() {
    let place = Place::new();
    let mut command = place.command(&["--", "dendrer", "log", "x"]);
    command.env("COMPLETE", "fish");
    let ran = ran(command.output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""));
}

#[test]
fn each_shell_gets_a_script_that_asks_the_program() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "powershell", "nushell", "elvish"] {
        let script = place.ok(&["completions", shell]);
        assert!(script.contains("COMPLETE") && script.contains("dendrer"), "{shell}: {script}");
    }
    let ran = place.run(&["completions", "bsh"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("help: dendrer completions bash"), "{}", ran.stderr);
}

/// The script as bash itself runs it.
#[test]
#[cfg(unix)]
fn bash_completes_a_run() {
    let bash = Command::new("bash").arg("--version").output();
    if !bash.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: there is no bash here");
        return;
    }
    let demo = demo();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_dendrer"));
    let path = std::env::var("PATH").unwrap_or_default();
    let script = "source <(dendrer completions bash)
        COMP_WORDS=(dendrer log logistics-r) COMP_CWORD=2 COMP_TYPE=9
        _clap_complete_dendrer dendrer logistics-r log
        printf '%s\\n' \"${COMPREPLY[@]}\"";
    let output = Command::new("bash")
        .args(["-c", script])
        .current_dir(demo.dir())
        .env("PATH", format!("{}:{path}", program.parent().unwrap().display()))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        text,
        "logistics-run-47\nlogistics-run-47.dnd\n",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
