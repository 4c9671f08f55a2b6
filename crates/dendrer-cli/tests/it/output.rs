//! The rules of output: one document, no raw bytes of a trace, quiet pipes, known codes.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use dendrer_object::{Value, json};

use crate::support::{Place, demo};

/// Reading commands over the demo, hostile run included.
const READING: &[&[&str]] = &[
    &["runs"],
    &["log", "hostile-1", "--refusals"],
    &["log", "logistics-run-47"],
    &["show", "hostile-1@3"],
    &["show", "hostile-1@0"],
    &["state", "hostile-1@tip"],
    &["state", "logistics-run-47@22", "--path", "risk_score"],
    &["verify", "hostile-1", "--replay"],
    &["verify", "tampered.dnd"],
    &["replay", "hostile-1", "--print", "state"],
    &["bisect", "hostile-1", "--anomaly", "forged_type"],
    &["bisect", "logistics-run-47", "--predicate", "kernel.policy_compliant"],
    &["backtrack", "hostile-1", "memory"],
    &["backtrack", "logistics-run-47", "risk_score", "--values", "--inputs"],
    &["why", "logistics-run-47@30", "bookings_open", "--cross-agent"],
    &["diff", "hostile-1", "trip-planner-a"],
    &["diff", "logistics-run-47", "hostile-1", "--align", "content", "--type", "structural,outcome"],
    &["diff", "logistics-run-47", "logistics-run-47@20", "-n", "3"],
    &["diff", "hostile-1", "hostile-1@7", "--summary"],
    &["diff", "trip-planner-a", "hostile-1", "--stat"],
    &["predicate", "list"],
    &["predicate", "test", "kernel.anomaly_free", "hostile-1"],
    &["explain"],
    &["explain", "E0301"],
    &["schema"],
    &["version"],
    &["runs", "--tree", "--where", "ticks > 1"],
    &["log", "hostile-1", "--full"],
    &["log", "hostile-1", "--grep", "."],
    &["show", "hostile-1@3", "--provenance"],
    &["show", "hostile-1@4", "--intent", "--result"],
    &["state", "hostile-1@tip", "--base", "hostile-1@0"],
    &["verify", "--suite", "corrupt/suite.json"],
    &["verify", "tampered.dnd", "corrupt/gap.dnd", "--jobs", "2"],
    &["fsck"],
    &["gc", "-n"],
    &["doctor"],
    &["help"],
    &["help", "log"],
    &["help", "exit-codes"],
    &["log", "hostile-1", "--fields", "tick,agent,summary"],
    &["log", "--fields", "list"],
    &["runs", "--fields", "name,redaction"],
    &["diff", "hostile-1", "trip-planner-a", "--fields", "left_out"],
    &["backtrack", "logistics-run-47", "risk_score", "--values", "--fields", "before,after"],
];

#[test]
fn nothing_from_a_trace_reaches_the_terminal_raw() {
    let demo = demo();
    let mut commands: Vec<Vec<String>> =
        READING.iter().map(|args| args.iter().map(|arg| (*arg).to_owned()).collect()).collect();
    commands.extend((0..=20).map(|tick| vec!["show".to_owned(), format!("hostile-1@{tick}")]));
    for (at, args) in commands.into_iter().enumerate() {
        // Each tick of the hostile run need not be cut as well.
        let extras = [&[][..], &["--json"], &["--color", "never", "--width", "100"]];
        for extra in extras.into_iter().take(if at < READING.len() { 3 } else { 2 }) {
            let args: Vec<&str> = args.iter().map(String::as_str).chain(extra.iter().copied()).collect();
            let ran = demo.run(&args);
            for text in [&ran.stdout, &ran.stderr] {
                let raw = text.chars().find(|c| {
                    *c != '\n' && (c.is_control() || "\u{202e}\u{202d}\u{200b}\u{2066}\u{feff}".contains(*c))
                });
                assert_eq!(raw, None, "{args:?}");
                // A model cannot print a line that looks like our verdict.
                let fakes = text.lines().filter(|line| line.starts_with("VERIFIED"));
                assert_eq!(fakes.count(), 0, "{args:?}");
            }
        }
    }
}

#[test]
fn every_verb_prints_exactly_one_document_that_fits_its_schema() {
    let demo = demo();
    for args in READING {
        let (_, answer) = demo.json(args);
        assert!(answer.get("schema").is_some(), "{args:?}: {answer}");
    }
    for args in [
        &["show", "nope@1"][..],
        &["log", "logistics-run-47", "--from", "tick", "99"],
        &["explain", "E9999"],
        &["bisect", "logistics-run-47"],
        &["show"],
        &["nonsense"],
    ] {
        let (code, answer) = demo.json(args);
        assert!(code == 2 || code == 3, "{args:?}: {code}");
        assert_eq!(answer.get("schema").unwrap().as_str(), Some("dendrer.error/1"), "{args:?}");
    }
    let ran = demo.run(&["export", "logistics-run-47", "--format", "jsonl"]);
    assert_eq!(ran.stdout.lines().count(), 64);
}

#[test]
fn the_hashes_of_the_source_documents_are_made_and_checked() {
    let demo = demo();
    let dir = tempfile::tempdir().unwrap();
    for form in ["paper", "cfd"] {
        let ran = demo.run(&["export", "trip-planner-a", "--format", form]);
        let good = dir.path().join(format!("{form}.jsonl"));
        std::fs::write(&good, &ran.stdout).unwrap();
        let ran_again = demo.run(&["verify", "--profile", form, good.to_str().unwrap()]);
        assert_eq!(ran_again.code, 0, "{}", ran_again.stdout);
        let bad = dir.path().join(format!("{form}-edited.jsonl"));
        let edited = ran.stdout.replacen("\"confidence\":0.", "\"confidence\":1.", 1);
        assert_ne!(edited, ran.stdout);
        std::fs::write(&bad, edited).unwrap();
        let (code, _) = demo.json(&["verify", "--profile", form, bad.to_str().unwrap()]);
        assert_eq!(code, 4);
    }
    let ran = demo.run(&["export", "trip-planner-a", "logistics-run-47", "--format", "paper"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
}

#[test]
fn a_verification_from_a_tick_says_what_it_did_not_open() {
    let demo = demo();
    let ran = demo.run(&["verify", "logistics-run-47", "--from", "tick", "40", "--replay"]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert!(ran.stdout.contains("what ticks 1 to 39 hold: they were taken as they are"), "{}", ran.stdout);
    assert_eq!(demo.run(&["verify", "logistics-run-47", "--from", "tick", "99"]).code, 3);
    assert_eq!(demo.run(&["verify", "trip-planner-a", "logistics-run-47", "--from", "1"]).code, 2);
    // What is broken before the tick is not looked at; what is broken after it is found.
    let from = |tick: &str| demo.run(&["verify", "corrupt/payload.dnd", "--from", tick]).code;
    assert_eq!((from("1"), from("tip")), (4, 0));
}

#[test]
fn writing_verbs_answer_with_a_document_too() {
    let place = crate::support::Place::new();
    let check = |args: &[&str]| {
        let (code, answer) = place.json(args);
        assert_eq!(code, 0, "{args:?}: {answer}");
    };
    check(&["init"]);
    std::fs::write(place.path().join("one.jsonl"), "{\"type\":\"plan.update\"}\n").unwrap();
    check(&["commit", "--run", "r", "--file", "one.jsonl"]);
    check(&["export", "r", "-o", "r.dnd"]);
    check(&["export", "r", "--withhold", "/agent_id", "-o", "less.dnd"]);
    // What cannot be withheld must not be found in a bundle either.
    assert_eq!(place.run(&["export", "r", "--withhold", "/agent_id/x", "-o", "none.dnd"]).code, 2);
    assert!(!place.path().join("none.dnd").exists());
    check(&["demo", "--size", "20"]);
    check(&["demo", "other"]);
}

/// An answer that breaks off in the middle leaves what was in its file, and a whole one takes its place as it was: behind a
/// link, and not readable for more people.
#[test]
fn a_file_that_is_named_holds_a_whole_answer_or_what_it_held() {
    let place = Place::with_demo();
    let file = place.path().join("answer");
    std::fs::write(&file, "older").unwrap();
    // Tick 18 does not open, and those before it are answered already.
    let broken = place.run(&["log", "tampered.dnd", "--jsonl"]);
    assert!(broken.code == 4 && broken.stdout.lines().count() > 10, "{}", broken.stdout);
    for format in ["--jsonl", "--full"] {
        assert_eq!(place.run(&["log", "tampered.dnd", format, "-o", "answer"]).code, 4);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "older");
    }
    // What is wrong is an answer too, where that was the question.
    assert_eq!(place.run(&["verify", "tampered.dnd", "-o", "answer"]).code, 4);
    assert!(std::fs::read_to_string(&file).unwrap().contains("TAMPERED"));
    let cannot = place.run(&["runs", "-o", "no-such-place/answer"]);
    assert!(cannot.code == 8 && cannot.stderr.contains("E0801"), "{}", cannot.stderr);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink("answer", place.path().join("link")).unwrap();
        place.ok(&["log", "logistics-run-47", "--oneline", "-o", "link"]);
        assert!(place.path().join("link").is_symlink());
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            place.ok(&["log", "logistics-run-47", "--oneline"])
        );
        assert_eq!(place.ok(&["runs", "-o", "/dev/stdout"]), place.ok(&["runs"]));
    }
    let left: Vec<_> =
        std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("partial")), "{left:?}");
}

/// An answer goes over no file that is read for it, and into no store.
#[test]
fn an_answer_destroys_nothing_that_it_is_made_of() {
    let place = Place::with_demo();
    let line = "{\"type\":\"plan.update\"}\n".repeat(50);
    std::fs::write(place.path().join("in.jsonl"), &line).unwrap();
    std::fs::create_dir(place.path().join("sub")).unwrap();
    let bundle = std::fs::read(place.path().join("logistics-run-47.dnd")).unwrap();
    let store = std::fs::read(place.path().join(".dendrer/store.json")).unwrap();
    for args in [
        &["commit", "--run", "n", "--file", "in.jsonl", "-o", "in.jsonl"][..],
        &["commit", "--run", "n", "--file", "in.jsonl", "-o", "sub/../in.jsonl"],
        &["import", "in.jsonl", "--kind", "jsonl", "--run", "n", "-o", "in.jsonl"],
        &["verify", "logistics-run-47.dnd", "--json", "-o", "./logistics-run-47.dnd"],
        &["log", "logistics-run-47.dnd", "-o", "logistics-run-47.dnd"],
        &["log", "logistics-run-47", "-o", ".dendrer/store.json"],
        &["export", "logistics-run-47", "-o", ".dendrer/segments/new.dnd"],
    ] {
        let ran = place.run(args);
        assert_eq!(ran.code, 2, "{args:?}: {}{}", ran.stdout, ran.stderr);
    }
    assert_eq!(std::fs::read_to_string(place.path().join("in.jsonl")).unwrap(), line);
    assert_eq!(std::fs::read(place.path().join("logistics-run-47.dnd")).unwrap(), bundle);
    assert_eq!(std::fs::read(place.path().join(".dendrer/store.json")).unwrap(), store);
    assert!(!place.path().join(".dendrer/segments/new.dnd").exists());
    assert!(place.run(&["log", "n"]).code == 3, "nothing was committed");
    place.ok(&["commit", "--run", "n", "--file", "in.jsonl", "-o", "out.jsonl"]);
}

/// A program that is killed while it writes a long answer leaves the older one, and nothing beside it.
#[cfg(target_os = "linux")]
#[test]
fn a_killed_program_leaves_no_half_answer() {
    let place = Place::with_store();
    let line = format!("{{\"type\":\"plan.update\",\"result\":{{\"text\":\"{}\"}}}}\n", "long ".repeat(100));
    place.run_with(&["commit", "--run", "r"], line.repeat(3000).as_bytes());
    std::fs::write(place.path().join("r.dnd"), "older").unwrap();
    let names = || {
        let mut names: Vec<_> =
            std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    for wait in [20, 60, 100, 140] {
        let mut export = place.command(&["export", "r", "-o", "r.dnd"]).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(wait));
        export.kill().unwrap();
        export.wait().unwrap();
        assert_eq!(names(), before, "after {wait} ms");
        let text = std::fs::read_to_string(place.path().join("r.dnd")).unwrap();
        assert!(text == "older" || text.ends_with("}\n"), "after {wait} ms: {} bytes", text.len());
    }
    place.ok(&["export", "r", "-o", "r.dnd"]);
    place.ok(&["verify", "r.dnd"]);
}

#[test]
fn streams_are_one_item_a_line_and_a_summary() {
    let ran = demo().run(&["log", "logistics-run-47", "--jsonl"]);
    let lines: Vec<Value> =
        ran.stdout.lines().map(|line| json::parse_tagged(line.as_bytes()).unwrap()).collect();
    assert_eq!(lines.len(), 65);
    let summary = lines[64].get("summary").unwrap();
    assert_eq!((summary.get("items"), summary.get("total")), (Some(&64u64.into()), Some(&64u64.into())));
    // A document without a list is the one item of its stream.
    let ran = demo().run(&["show", "logistics-run-47@22", "--jsonl"]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines[0].contains("\"schema\":\"dendrer.show/1\"") && lines.len() == 2, "{}", ran.stdout);
    assert_eq!(lines[1], r#"{"summary":{"items":1,"schema":"dendrer.show/1"}}"#);
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let mut child = demo()
        .command(&["log", "logistics-run-47", "-n", "0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    drop(lines);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
}

#[test]
fn the_same_question_has_the_same_bytes_at_any_width() {
    let demo = demo();
    // What `doctor` tells of the machine, such as how long a sync took, is of the moment.
    for args in READING.iter().filter(|args| args[0] != "doctor") {
        assert_eq!(demo.run(args).stdout, demo.run(args).stdout, "{args:?}");
    }
    let narrow = demo.run(&["log", "logistics-run-47", "--width", "60"]).stdout;
    assert!(
        narrow.lines().any(|line| line.ends_with("..."))
            && narrow.lines().all(|line| line.chars().count() <= 80)
    );
    assert!(
        !demo.run(&["log", "logistics-run-47"]).stdout.contains("...\n"),
        "nothing is cut where nobody asked"
    );
}

#[test]
fn colour_follows_the_switches_in_order() {
    let bisect = ["bisect", "logistics-run-47", "--predicate", "kernel.policy_compliant"];
    let colored = |args: &[&str], env: &[(&str, &str)]| {
        let mut command = demo().command(&[&bisect[..], args].concat());
        command.envs(env.iter().copied());
        command.output().unwrap().stdout.contains(&0x1b)
    };
    assert!(!colored(&[], &[]), "a pipe has no colour");
    assert!(colored(&["--color", "always"], &[("NO_COLOR", "1")]));
    assert!(colored(&[], &[("DENDRER_COLOR", "always"), ("NO_COLOR", "1")]));
    assert!(!colored(&[], &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]));
    assert!(colored(&[], &[("CLICOLOR_FORCE", "1")]));
    assert!(!colored(&[], &[("CLICOLOR_FORCE", "0")]), "0 is not set");
    assert!(!colored(&["--color", "never"], &[("DENDRER_COLOR", "always")]));
}

#[test]
fn a_slip_is_met_with_what_was_meant() {
    let demo = demo();
    for (args, code, parts) in [
        (
            &["show", "logistics-run-4@22"][..],
            3,
            &["error[E0101]: no run named \"logistics-run-4\"", "did you mean logistics-run-47?"][..],
        ),
        (&["show", "logistics-run-47@99"], 3, &["logistics-run-47 has ticks 1..64, there is no tick 99"]),
        (&["state", "logistics-run-47@1", "--path", "risk_scor"], 3, &["did you mean risk_score?"]),
        (
            &["bisect", "logistics-run-47", "--predicate", "kernel.policy_complaint"],
            3,
            &["did you mean kernel.policy_compliant?"],
        ),
        (
            &["bisect", "logistics-run-47", "--predicate", "state.risk_score >"],
            2,
            &["error[E0501]", "  | state.risk_score >\n  |                   ^\n"],
        ),
        (&["bisect", "logistics-run-47", "--predicate", "risk_score > 1"], 2, &["error[E0505]"]),
        (&["explain", "E0310x"], 3, &["error[E0109]"]),
        (&["verfy"], 2, &["error[E0106]", "verify"]),
        (&["log", "nowhere.dnd"], 3, &["error[E0108]: cannot read nowhere.dnd"]),
        (&["verify", "logistics-run-47", "--tip", "sha256:0000"], 2, &["error[E0106]"]),
    ] {
        let ran = demo.run(args);
        assert_eq!(ran.code, code, "{args:?}: {}{}", ran.stdout, ran.stderr);
        for part in parts {
            assert!(ran.stderr.contains(part), "{args:?} lacks {part}: {}", ran.stderr);
        }
        // A usage error has nothing to explain.
        let is_usage = ran.stderr.starts_with("error[E0106]");
        assert_eq!(ran.stderr.contains("see: dendrer explain E0"), !is_usage, "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn what_is_said_beside_an_answer_stands_below_it() {
    let place = Place::new();
    let shown = place.path().join("shown");
    let file = std::fs::File::create(&shown).unwrap();
    let status = demo()
        .command(&["why", "logistics-run-47@31", "risk_score"])
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .status()
        .unwrap();
    assert!(status.success());
    let shown = std::fs::read_to_string(shown).unwrap();
    assert!(shown.starts_with("0.88 since tick 31  risk_score of logistics-run-47\n"), "{shown}");
    assert!(shown.ends_with("\nnote: --cross-agent follows the inputs of other agents\n"), "{shown}");
}
