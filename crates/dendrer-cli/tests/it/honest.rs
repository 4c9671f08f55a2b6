//! What an answer rests on, and what it says when that is not there: withheld values, a file that is not the one that was
//! signed, an index that lacks rows, a part for the whole.

use std::path::Path;

use dendrer_object::Value;

use crate::support::{Place, Ran, demo, ran, strip};

/// A place with a bundle of the demo from which something was withheld.
fn without(field: &str) -> (Place, String) {
    let place = Place::new();
    let file = place.path().join("less.dnd").display().to_string();
    let ran = demo().run(&["export", "trip-planner-a", "-o", &file]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    strip(&file, &[field]);
    (place, file)
}

fn bisect(file: &str, question: &[&str]) -> Ran {
    demo().run(&[&["bisect", file], question].concat())
}

#[test]
fn counters_that_would_count_what_was_withheld_are_not_known() {
    for (field, question, place) in [
        (
            "/anomalies",
            &["--anomaly", "hallucination"][..],
            "a counter that the predicate reads cannot be known from tick 5 on: its anomalies",
        ),
        (
            "/result",
            &["--predicate", "state.counters.tool_errors > 0"],
            "a counter that the predicate reads cannot be known from tick 4 on: its result.status",
        ),
        (
            "/metrics",
            &["--predicate", "state.counters.tokens_used > 3000"],
            "cannot be known from tick 1 on: its metrics",
        ),
        ("/policy", &["--predicate", "state.counters.denied_count > 0"], "its policy was"),
        ("/action", &["--predicate", "state.counters.tool_calls > 3"], "its action"),
        ("/agent_id", &["--predicate", "has(state.counters.by_agent.planner)"], "its agent_id"),
    ] {
        let (_place, file) = without(field);
        let ran = bisect(&file, question);
        assert_eq!(ran.code, 6, "{field}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("error[E0311]"), "{field}: {}", ran.stderr);
        assert!(ran.stderr.contains(place), "{field}: {}", ran.stderr);
        assert!(!ran.stderr.contains("replay"), "nothing is replayed here: {}", ran.stderr);
    }
    // What does not count it is as exact as before.
    let (_place, file) = without("/anomalies");
    let ran = bisect(&file, &["--predicate", "state.counters.tool_errors > 0"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("ONSET (exact)  tick 4"), "{}", ran.stdout);
}

/// Without its delta a transition changed something that nobody can say; all else about it is as it was.
#[test]
fn show_prints_what_is_left_where_the_deltas_are_withheld() {
    let (_place, file) = without("/delta");
    let at = |tick: u64| format!("{file}@{tick}");
    let whole = demo().run(&["show", "trip-planner-a@5"]);
    let (told, written) = whole.stdout.split_once("state  ").unwrap();
    assert!(written.starts_with("1 place written") || written.contains(" places written"), "{written}");
    let less = demo().run(&["show", &at(5)]);
    assert_eq!(less.code, 0, "{}", less.stderr);
    for line in told.lines() {
        assert!(less.stdout.contains(line), "{line} is in {}", less.stdout);
    }
    assert!(
        less.stdout.contains("not known  delta (erased or withheld)\n")
            && less.stdout.contains("state  not known: the delta of tick 1 was erased or withheld\n"),
        "{}",
        less.stdout
    );
    let (code, document) = demo().json(&["show", &at(5)]);
    assert_eq!((code, document.get("changes")), (0, Some(&Value::Null)), "not known is not an empty list");
    assert_eq!(demo().run(&["log", &file, "--full", "-n", "0"]).code, 0);

    // Where the state itself is asked for there is no answer, and what is missing is named.
    for asked in
        [&["state", &at(5)][..], &["show", &at(5), "--state", "after"], &["state", &file, "--base", &at(2)]]
    {
        let ran = demo().run(asked);
        assert_eq!((ran.code, ran.stdout.as_str()), (6, ""), "{asked:?}: {}", ran.stderr);
        let said = ran.stderr.contains("error[E0311]: the state of trip-planner-a after tick ")
            && ran.stderr.contains("is not known\n  | why      the delta of tick 1 was erased or withheld\n")
            && ran.stderr.contains(&format!("help: dendrer show {}\n", at(1)));
        assert!(said, "{asked:?}: {}", ran.stderr);
    }
    assert_eq!(
        demo().run(&["state", &at(0)]).code,
        0,
        "the run begins with a state, and no delta is needed for it"
    );
}

/// The changes are there and what they were made to is not: they are shown as they were written.
#[test]
fn show_prints_what_was_written_where_the_beginning_is_withheld() {
    let (_place, file) = without("/state");
    let shown = demo().run(&["show", &format!("{file}@8")]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    let (_, state) = shown.stdout.split_once("\nstate  not known: the state.").unwrap();
    let (why, written) = state.split_once('\n').unwrap();
    assert!(why.ends_with(" of tick 0 was erased or withheld"), "{why}");
    assert!(written.starts_with("  set fares.outward 48\n  add budget_remaining -48\n"), "{written}");
    let one = demo().run(&["show", &format!("{file}@8"), "--path", "fares"]).stdout;
    assert!(one.contains("withheld\n  set fares.outward 48\n") && !one.contains("add budget"), "{one}");
}

#[test]
fn lists_say_what_they_may_lack() {
    let (_place, file) = without("/anomalies");
    let ran = demo().run(&["log", &file, "--anomalies"]);
    assert!(ran.stdout.contains("not known: anomalies of 2 records (erased or withheld)"), "{}", ran.stdout);
    let (_, found) = demo().json(&["log", &file, "--anomalies"]);
    assert_eq!(found.get("closed").unwrap().to_string(), r#"[{"path":"/anomalies","records":2}]"#);
    assert!(demo().run(&["show", &format!("{file}@5")]).stdout.contains("not known  anomalies"));

    let (_place, file) = without("/agent_id");
    assert!(demo().run(&["log", &file, "--agent", "planner"]).stdout.contains("not known: agent_id of"));
    let ran = demo().run(&["backtrack", &file, "beliefs.explorations", "--agent", "planner"]);
    assert_eq!(ran.code, 6, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("not known: whose writes those at ticks"), "{}", ran.stdout);

    let (_place, file) = without("/metrics");
    assert!(!demo().run(&["log", &file]).stdout.contains("not known"), "a log shows no metrics");
    assert!(demo().run(&["log", &file, "--grep", "tokens"]).stdout.contains("not known: metrics of"));
}

#[test]
fn a_file_that_is_not_the_one_that_was_signed_has_no_exact_answers() {
    let file = "corrupt/swap.dnd";
    for verb in [
        &["replay", file][..],
        &["log", file, "--format", "receipt"],
        &["bisect", file, "--anomaly", "x"],
        &["why", file, "risk_score"],
        &["backtrack", file, "risk_score"],
        &["predicate", "test", "kernel.anomaly_free", file],
        &["export", file, "--format", "jsonl"],
    ] {
        let ran = demo().run(verb);
        assert_eq!((ran.code, ran.stdout.as_str()), (4, ""), "{verb:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("TAMPERED corrupt/swap.dnd"), "{verb:?}: {}", ran.stderr);
    }
    for verb in [&["log", file][..], &["show", &format!("{file}@3")], &["state", file], &["runs", file]] {
        let ran = demo().run(verb);
        assert_eq!(ran.code, 0, "{verb:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("warning[E0303]: corrupt/swap.dnd is TAMPERED"),
            "{verb:?}: {}",
            ran.stderr
        );
        let (_, found) = demo().json(verb);
        assert_eq!(found.get("tampered").and_then(|t| t.get("code")?.as_str()), Some("E0303"), "{verb:?}");
    }
}

/// Where the record that a run begins with was changed, what comes next is its first, and has one before it: it is no fork.
#[test]
fn a_run_whose_beginning_was_changed_is_damaged_and_was_not_forked() {
    let place = Place::new();
    let file = place.path().join("begin.dnd").display().to_string();
    assert_eq!(demo().run(&["export", "logistics-run-47", "-o", &file]).code, 0);
    let text = std::fs::read_to_string(&file).unwrap();
    let begin = text.lines().find(|line| line.starts_with("{\"header\"") && line.contains(r#""kind":"run""#));
    let changed = begin.unwrap().replace(r#""author":"kernel""#, r#""author":"agent""#);
    std::fs::write(&file, text.replace(begin.unwrap(), &changed)).unwrap();
    for verb in [&["log", &file][..], &["show", &format!("{file}@3")], &["state", &file], &["verify", &file]]
    {
        let ran = demo().run(verb);
        assert_eq!(ran.code, 4, "{verb:?}: {}", ran.stderr);
        let said = ran.stdout + &ran.stderr;
        assert!(said.contains("E0301") && !said.contains("fork"), "{verb:?}: {said}");
    }
}

#[test]
fn nothing_is_called_sound_that_the_signature_does_not_cover() {
    let ran = demo().run(&["verify", "corrupt/swap.dnd"]);
    assert_eq!(ran.code, 4);
    assert!(ran.stdout.contains("is not the one that was signed"), "{}", ran.stdout);
    assert!(
        !ran.stderr.contains("still sound") && !ran.stdout.contains("last good"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    // Where one value was changed below an honest signature, what stands before it is sound.
    let ran = demo().run(&["verify", "tampered.dnd"]);
    assert!(
        ran.stderr.contains("up to tick 17 it is still sound")
            && ran.stderr.contains("help: dendrer log tampered.dnd#logistics-run-47 --to tick 17\n"),
        "{}",
        ran.stderr
    );
    let sound = demo().run(&["log", "tampered.dnd#logistics-run-47", "--to", "tick", "17"]);
    assert!(sound.code == 4 || sound.code == 0 && sound.stdout.contains("17"), "{}", sound.stderr);
    let log = demo().json(&["log", "logistics-run-47"]).1;
    let tip = log.get("tip").unwrap().as_str().unwrap().to_owned();
    let ran = demo().run(&["verify", "corrupt/rewritten.dnd", "--tip", &tip]);
    assert!(ran.stdout.contains(&format!("given     {tip}        found     sha256:")), "{}", ran.stdout);
    assert!(!ran.stderr.contains("still sound"), "{}", ran.stderr);
}

#[test]
fn a_part_that_is_intact_is_no_word_about_the_whole() {
    let ran = demo().run(&["verify", "tampered.dnd", "--from", "20"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("INTACT    tampered.dnd, ticks 20 to "), "{}", ran.stdout);
    let (_, found) = demo().json(&["verify", "tampered.dnd", "--from", "20"]);
    let part =
        found.get("items").and_then(|items| items.as_array()?.get(0)?.get("part")?.get("from")?.as_u64());
    assert_eq!(part, Some(20));
}

#[test]
fn an_id_shows_the_record_that_has_it() {
    let (_, log) = demo().json(&["log", "hostile-1", "--refusals"]);
    let items = log.get("items").unwrap().as_array().unwrap();
    let refusal = items.iter().find(|item| item.get("kind").unwrap().as_str() == Some("refusal")).unwrap();
    let id = refusal.get("id").unwrap().as_str().unwrap();
    let (code, shown) = demo().json(&["show", id]);
    assert_eq!(code, 0);
    assert_eq!(shown.get("id").unwrap().as_str(), Some(id));
    assert_eq!(shown.get("kind").unwrap().as_str(), Some("refusal"));
    assert!(shown.get("tick").unwrap().as_u64().is_none());
    // A refusal is no place at which there is a state.
    assert_eq!(demo().run(&["state", id]).code, 2);

    let (_, verified) = demo().json(&["verify", "hostile-1"]);
    let genesis =
        verified.get("items").unwrap().as_array().unwrap().get(0).unwrap().get("genesis").unwrap().clone();
    let (_, shown) = demo().json(&["show", genesis.as_str().unwrap()]);
    assert_eq!((shown.get("id"), shown.get("tick").and_then(|t| t.as_u64())), (Some(&genesis), Some(0)));
    let (_, shown) = demo().json(&["show", "logistics-run-47@3"]);
    let (_, state) = demo().json(&["state", &shown.get("id").unwrap().as_str().unwrap()[7..20]]);
    assert_eq!(state.get("tick").and_then(|tick| tick.as_u64()), Some(3));
}

#[test]
fn a_registration_is_shown_by_its_id() {
    let place = Place::with_store();
    let (_, found) = place.json(&["predicate", "register", "acme.p", "--expr", "has(state.x)"]);
    let id = found.get("record").unwrap().as_str().unwrap().to_owned();
    let (code, shown) = place.json(&["show", &id]);
    assert_eq!((code, shown.get("kind").unwrap().as_str()), (0, Some("register")));
    assert!(place.ok(&["show", &id]).contains("has(state.x)"));
}

#[test]
fn show_prints_every_member_of_a_record() {
    let place = Place::with_store();
    let line = r#"{"type":"plan.update","author":"runtime","intent":{"foo":"bar","nested":{"deep":1}},"policy":{"decision":"allow","own":7}}"#;
    let ran = place.run_with(&["commit", "--run", "r", "--as", "runtime"], line.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let shown = place.ok(&["show", "r@1"]);
    for part in ["foo     \"bar\"", "nested  {\"deep\":1}", "own  7"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

/// Two values at some ticks among many, so that the store has an index.
fn indexed() -> Place {
    let place = Place::with_store();
    let lines: String = (1..=3000)
        .map(|tick| {
            let value = match tick {
                1 => Some(0),
                700 => Some(9),
                1000 => Some(0),
                2000 => Some(9),
                _ => None,
            };
            let path = if value.is_some() { "/risk" } else { "/n" };
            let value = value.unwrap_or(tick);
            format!("{{\"type\":\"plan.update\",\"delta\":[{{\"set\":\"{path}\",\"value\":{value}}}]}}\n")
        })
        .collect();
    let ran = place.run_with(&["commit", "--run", "t"], lines.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(place.path().join(".dendrer/index.sqlite").exists(), "the store is large enough for an index");
    place
}

fn damage_index(store: &Path) {
    let db = rusqlite::Connection::open(store.join("index.sqlite")).unwrap();
    let gone = db.execute("DELETE FROM record WHERE tick IN (700, 1000)", []).unwrap();
    assert_eq!(gone, 2, "the rows were there");
}

#[test]
fn rows_that_an_index_lacks_change_no_exact_answer() {
    let place = indexed();
    damage_index(&place.path().join(".dendrer"));
    let risky = "has(state.risk) && state.risk > 5";
    let ran = place.run(&["bisect", "t", "--predicate", risky]);
    assert_eq!(ran.code, 6, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("E0504") && ran.stdout.contains("tick 1000"), "{}{}", ran.stdout, ran.stderr);
    let (_, found) = place.json(&["bisect", "t", "--predicate", risky, "--lift"]);
    assert_eq!(
        found
            .get("onset")
            .and_then(|onset| onset.get("tick")?.as_u64())
            .or(found.get("onset").and_then(|o| o.as_u64())),
        Some(700),
        "{found}"
    );
    let ran = place.run(&["why", "t@1500", "risk"]);
    assert!(ran.stdout.contains("tick 1000"), "{}", ran.stdout);
    // The damage is reported, and is none of the record.
    let ran = place.run(&["verify"]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert!(ran.stdout.contains("derived   damaged: index"), "{}", ran.stdout);
    place.ok(&["doctor", "--fix"]);
    assert!(place.ok(&["verify"]).contains("derived   OK"));
}

#[test]
fn what_was_found_intact_is_forgotten_when_a_file_of_the_log_changes() {
    let place = Place::with_store();
    let line = r#"{"type":"plan.update","intent":{"description":"somewhere in the values"}}"#;
    place.run_with(&["commit", "--run", "t"], line.as_bytes());
    // A look at a part is no look at the whole.
    place.ok(&["verify", "t", "--from", "1"]);
    place.ok(&["verify"]);
    assert!(place.ok(&["log", "t"]).contains("found intact here"));
    let segment = place.path().join(".dendrer/segments/00000000.seg");
    let mut bytes = std::fs::read(&segment).unwrap();
    let at = bytes.windows(9).position(|part| part == b"somewhere").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let ran = place.run(&["runs", "--where", "verified"]);
    assert!(ran.stdout.contains("0 of 1 runs"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn what_no_signature_covers_is_not_exported() {
    let place = Place::with_store();
    let line = br#"{"type":"plan.update"}"#;
    assert_eq!(place.run_with(&["commit", "--run", "a"], line).code, 0);
    let other = tempfile::tempdir().unwrap();
    let elsewhere = |args: &[&str]| {
        let mut command = place.command(args);
        crate::support::at_home(&mut command, other.path());
        command
    };
    place.ok(&["key", "writer", "--out", "w.key"]);
    let mut child = elsewhere(&["commit", "--run", "a", "--key", "w.key"])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), line).unwrap();
    assert!(child.wait_with_output().unwrap().status.success());
    let ran = crate::support::ran(elsewhere(&["export", "a", "-o", "o.dnd"]).output().unwrap());
    assert_eq!(ran.code, 8, "{}", ran.stderr);
    assert!(ran.stderr.contains("error[E0804]: the last 1 record"), "{}", ran.stderr);
    assert!(!place.path().join("o.dnd").exists());
    // With the key it is signed and exported.
    place.ok(&["export", "a", "-o", "o.dnd"]);
    place.ok(&["verify", "o.dnd"]);
}

#[test]
fn a_tick_of_an_address_is_honoured_or_refused() {
    assert!(demo().run(&["log", "logistics-run-47@22"]).stdout.contains("22 of 64 transitions"));
    let ran = demo().run(&["export", "logistics-run-47@22"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("an export is of a whole run"), "{}", ran.stderr);
}

#[test]
fn refusals_are_not_counted_as_transitions() {
    let said = demo().run(&["log", "hostile-1", "--refusals"]).stdout;
    let last = said.lines().find(|line| line.contains("refusal") && line.contains(" of ")).unwrap();
    let shown: u64 = last.split(' ').next().unwrap().parse().unwrap();
    let (_, log) = demo().json(&["log", "hostile-1"]);
    assert_eq!(Some(shown), log.get("total").unwrap().as_u64(), "{last}");
}

#[test]
fn a_place_that_never_was_has_no_history() {
    let place = Place::with_store();
    let lines = [1, 2]
        .map(|n| format!("{{\"type\":\"plan.update\",\"delta\":[{{\"set\":\"/a\",\"value\":{n}}},{{\"append\":\"/log\",\"value\":{n}}}]}}\n"))
        .concat();
    assert_eq!(place.run_with(&["commit", "--run", "t"], lines.as_bytes()).code, 0);
    for args in [&["backtrack", "t", "a.b.c"][..], &["why", "t@2", "log[5]"]] {
        let ran = place.run(args);
        assert_eq!(ran.code, 3, "{args:?}: {}{}", ran.stdout, ran.stderr);
    }
    let ran = place.run(&["backtrack", "t", "a", "--from", "2", "--to", "1"]);
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn small_slips_are_named_for_what_they_are() {
    let place = Place::new();
    std::fs::write(place.path().join("key"), "x").unwrap();
    let ran = place.run(&["init", "--key", "key"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(!ran.stderr.contains("store already"), "{}", ran.stderr);
    place.ok(&["init"]);
    let ran = place.run(&["verify", "--verifier", "xx"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert_eq!(place.run_with(&["commit", "--run", "r"], br#"{"type":"plan.update"}"#).code, 0);
    let ran = place.run(&["runs", "--where", "ticks"]);
    assert_eq!(ran.code, 6, "{}{}", ran.stdout, ran.stderr);
    let file = place.path().join("two.dnd").display().to_string();
    demo().run(&["export", "trip-planner-a", "logistics-run-47", "-o", &file]);
    let ran = demo().run(&["verify", &format!("{file}#trip-planner-a")]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("not checked: the records of logistics-run-47"), "{}", ran.stdout);
    assert!(ran.stdout.contains(" of trip-planner-a: "), "{}", ran.stdout);
}

/// The bundle of a fork holds the beginning of its parent, which is not all of it.
#[test]
fn the_beginning_of_a_parent_is_not_taken_for_all_of_it() {
    let place = Place::new();
    let file = place.path().join("b.dnd").display().to_string();
    assert_eq!(demo().run(&["export", "trip-planner-b", "-o", &file]).code, 0);
    let question = "state.budget_remaining == 42";
    for args in [
        &["bisect", "b.dnd#trip-planner-a", "--predicate", question][..],
        &["log", "b.dnd#trip-planner-a"],
        &["state", "b.dnd#trip-planner-a"],
        &["diff", "b.dnd#trip-planner-a", "b.dnd#trip-planner-b"],
    ] {
        let part = place.run(args);
        assert!(part.stderr.contains("holds trip-planner-a up to tick 30"), "{args:?}: {}", part.stderr);
    }
    let whole = place.run(&["log", "b.dnd#trip-planner-b"]);
    assert!(!whole.stderr.contains("up to tick"), "{}", whole.stderr);
}

/// What to type next asks the store that was asked, wherever it is pasted.
#[test]
fn a_next_step_names_the_store_that_was_named() {
    let place = Place::with_store();
    let elsewhere = tempfile::tempdir().unwrap();
    let store = place.path().join("a b");
    std::fs::create_dir(&store).unwrap();
    std::fs::rename(place.path().join(".dendrer"), store.join(".dendrer")).unwrap();
    let asked = |args: &[&str]| {
        let mut command = place.command(args);
        ran(command.arg("--store").arg(&store).current_dir(elsewhere.path()).output().unwrap())
    };
    let named = format!("--store '{}'", store.display());
    let none = asked(&["show", "nope"]);
    assert!(none.stderr.contains(&format!("help: dendrer runs {named}")), "{}", none.stderr);
    let json = asked(&["show", "nope", "--json"]);
    assert!(json.stdout.contains(r#"["dendrer","runs","--store","#), "{}", json.stdout);
    std::fs::write(store.join(".dendrer/index.sqlite.dendrer-part-1-1"), "x").unwrap();
    std::fs::write(store.join(".dendrer/index.sqlite"), "no database").unwrap();
    let doctor = asked(&["doctor"]);
    assert!(doctor.stdout.contains(&format!("next: dendrer doctor --fix {named}")), "{}", doctor.stdout);
    let made = asked(&["init"]);
    assert!(made.code == 2, "it is there");
    let made = ran(place.command(&["init", "--store", "other one"]).output().unwrap());
    assert!(made.stderr.contains("dendrer commit --run first --store 'other one'"), "{}", made.stderr);
    // A verb that asks none is left as it is.
    let usage = asked(&["frobnicate"]);
    assert!(!usage.stderr.contains("help: dendrer help --store"), "{}", usage.stderr);
}

/// A clock that says a year that no calendar here has is told of, and ends nothing.
#[test]
#[cfg(target_os = "linux")]
fn a_clock_at_the_end_of_time_ends_no_verb() {
    if std::process::Command::new("faketime").arg("--version").output().is_err() {
        eprintln!("SKIPPED: no faketime");
        return;
    }
    let place = Place::with_store();
    place.run_with(&["commit", "--run", "r"], b"{\"type\":\"plan.update\"}\n");
    for verb in
        [&["doctor"][..], &["gc", "-n"], &["gc", "-n", "--keep", "30d"], &["runs", "--time", "relative"]]
    {
        let mut command = std::process::Command::new("faketime");
        command.arg("9999-12-31 23:59:59").arg(env!("CARGO_BIN_EXE_dendrer")).args(verb);
        let ran = ran(crate::support::at_home(&mut command, place.path())
            .current_dir(place.path())
            .output()
            .unwrap());
        assert_eq!(ran.code, 0, "{verb:?}: {}{}", ran.stdout, ran.stderr);
    }
}
