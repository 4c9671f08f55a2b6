//! `erase`: what it destroys, what it asks first, and what every other verb says afterwards.

use std::path::Path;

use crate::support::Place;

const SECRET: &str = "sk-live-4f9a77c2";

/// A key that a tool returned, a copy of it in a later intent, and a state that has it for three ticks.
const LINES: &str = r#"{"type":"plan.update","agent":"a","intent":{"description":"look up the customer"}}
{"type":"action.request","agent":"a","intent":{"description":"fetch"},"action":{"tool":"crm","params":{"id":7}}}
{"type":"action.result","author":"runtime","agent":"crm","action":{"tool":"crm","params":{"id":7}},"result":{"status":"ok","output":{"token":"sk-live-4f9a77c2"}},"delta":[{"set":"/token","value":"sk-live-4f9a77c2"}]}
{"type":"plan.update","agent":"a","intent":{"description":"call with sk-live-4f9a77c2"}}
{"type":"memory.write","agent":"a","intent":{"description":"drop it"},"delta":[{"remove":"/token"}]}
{"type":"plan.update","agent":"a","intent":{"description":"done"}}
"#;

const ERASE: [&str; 9] = [
    "erase",
    "r@3",
    "result.output.token",
    "--reason",
    "a live key",
    "--although",
    "intent.description",
    "--although",
    "5:delta",
];

fn place() -> Place {
    let place = Place::with_store();
    let ran =
        place.run_with(&["commit", "--run", "r", "--as", "runtime", "--redact", "none"], LINES.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    place.ok(&["fork", "r@4", "--as", "f"]);
    place
}

/// Lists the files below a directory that contain a text.
pub(crate) fn files_with(dir: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if std::fs::read(&path).unwrap().windows(text.len()).any(|part| part == text.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn an_erased_value_is_in_no_file_and_the_rest_verifies() {
    let place = place();
    let store = place.path().join(".dendrer");
    assert!(!files_with(&store, SECRET).is_empty());
    // Answers that are kept: snapshots, verdicts, an index.
    place.run(&["bisect", "r", "--holds", "!has(state.token)", "--lift"]);
    place.run(&["doctor", "--fix"]);
    let answer = place.ok(&ERASE);
    for line in [
        "erased  r  tick 3  result.output  (the place)",
        "erased  r  tick 3  delta  (contains the value)",
        "erased  r  tick 4  intent.description  (contains the value)",
        "erased  r  ticks 3..4  state_root  (digest over the value)",
        "erased  f  no tick  state_root  (digest over the value)",
        "erased  f  tick 5  state_root  (digest over the value)",
        "stays   r  ticks 5..6  intent.description  (written after the value)",
        "stays   r  tick 5  delta  (written after the value)",
    ] {
        assert!(answer.contains(line), "{line}\n{answer}");
    }
    assert_eq!(files_with(&store, SECRET), [""; 0]);
    place.ok(&["gc"]);
    assert_eq!(files_with(&store, SECRET), [""; 0]);
    assert_eq!(place.run(&["fsck"]).code, 0);

    let verify = place.run(&["verify", "--all"]);
    assert_eq!(verify.code, 6, "{}", verify.stdout);
    let closed = "not checked: r@3: delta, result.output, state_root (erased)";
    assert!(verify.stdout.contains(closed) && verify.stdout.contains("UNVERIFIABLE"), "{}", verify.stdout);
    place.ok(&["export", "r", "-o", "r.dnd"]);
    let bundle = place.run(&["verify", "r.dnd"]);
    assert!(bundle.code == 6 && bundle.stdout.contains(closed), "{}", bundle.stdout);
    place.ok(&["backup", "copy"]);
    assert_eq!(files_with(&place.path().join("copy"), SECRET), [""; 0]);
}

#[test]
fn every_verb_says_what_was_erased_and_none_guesses() {
    let place = place();
    place.ok(&ERASE);
    assert!(place.ok(&["show", "r@3"]).contains("not known  delta, result.output, state_root"));
    let log = place.run(&["log", "r"]);
    assert!(log.code == 0 && !log.stdout.contains(SECRET), "{}", log.stdout);
    assert!(
        log.stdout.contains("intent.description of 1 record")
            || log.stderr.contains("intent.description of 1 record")
    );
    // Before the tick the states are known.
    place.ok(&["state", "r@2"]);
    place.ok(&["replay", "r", "--to", "tick", "2"]);
    for args in [
        &["state", "r"][..],
        &["state", "f"],
        &["replay", "r"],
        &["why", "r", "token"],
        &["bisect", "r", "--holds", "!has(state.token)", "--lift"],
    ] {
        let ran = place.run(args);
        assert_eq!(ran.code, 6, "{args:?}: {}{}", ran.stdout, ran.stderr);
        assert!(
            format!("{}{}", ran.stdout, ran.stderr).contains("erased"),
            "{args:?}: {}{}",
            ran.stdout,
            ran.stderr
        );
    }
}

#[test]
fn places_of_unknown_lineage_are_named_before_anything_goes() {
    let place = place();
    let store = place.path().join(".dendrer");
    let before = files_with(&store, SECRET);
    let ran = place.run(&ERASE[..5]);
    assert_eq!(ran.code, 5, "{}", ran.stdout);
    assert!(
        ran.stderr.contains("r  ticks 5..6  intent.description  (written after the value)"),
        "{}",
        ran.stderr
    );
    assert_eq!(files_with(&store, SECRET), before);
    // A dry run changes nothing either.
    let dry = place.ok(&[&ERASE[..], &["-n"]].concat());
    assert!(dry.contains("would go  r  tick 3  result.output"), "{dry}");
    assert_eq!(files_with(&store, SECRET), before);
    // What is erased as well is destroyed with the value.
    let also =
        [&ERASE[..5], &["--also", "5:intent.description", "--although", "6:intent", "--although", "delta"]]
            .concat();
    let (code, answer) = place.json(&also);
    assert_eq!(code, 0, "{answer}");
    let text = answer.to_string();
    assert!(
        text.contains(r#""schema":"dendrer.erase/1""#) && text.contains(r#""reason":"a live key""#),
        "{text}"
    );
    assert!(!place.ok(&["show", "r@5"]).contains("drop it"));
    assert!(place.ok(&["show", "r@6"]).contains("done"));
}

#[test]
fn copies_of_other_runs_go_only_when_asked() {
    let place = place();
    let line = br#"{"type":"plan.update","agent":"b","intent":{"description":"again sk-live-4f9a77c2"}}"#;
    place.run_with(&["commit", "--run", "other", "--redact", "none"], line);
    let ran = place.run(&ERASE);
    assert_eq!(ran.code, 5);
    assert!(ran.stderr.contains("other@1:intent.description"), "{}", ran.stderr);
    place.ok(&[&ERASE[..], &["--everywhere"]].concat());
    assert_eq!(files_with(&place.path().join(".dendrer"), SECRET), [""; 0]);
}

#[test]
fn roots_of_a_run_that_has_a_copy_go_as_well() {
    let place = place();
    let lines = r#"{"type":"memory.write","agent":"b","delta":[{"set":"/t","value":"sk-live-4f9a77c2"}]}
{"type":"plan.update","agent":"b","intent":{"description":"wait"}}
{"type":"memory.write","agent":"b","delta":[{"set":"/t","value":"gone"}]}
"#;
    place.run_with(&["commit", "--run", "other"], lines.as_bytes());
    let answer = place.ok(&[&ERASE[..], &["--everywhere", "--although", "delta"]].concat());
    for line in [
        "erased  other  tick 1  delta  (contains the value)",
        "erased  other  ticks 1..2  state_root  (digest over the value)",
        "stays   other  tick 2  intent.description  (written after the value)",
        "stays   other  tick 3  delta  (written after the value)",
    ] {
        assert!(answer.contains(line), "{line}\n{answer}");
    }
    assert_eq!(files_with(&place.path().join(".dendrer"), SECRET), [""; 0]);
}

#[test]
fn a_place_of_the_state_is_erased_where_it_was_written() {
    let place = place();
    let args = ["erase", "r@3", "state.token", "--reason", "a live key", "--although", "intent"];
    place.ok(&[&args[..], &["--although", "5:delta"]].concat());
    assert_eq!(files_with(&place.path().join(".dendrer"), SECRET), [""; 0]);
}

#[test]
fn what_is_not_there_is_3_and_what_is_gone_is_5() {
    let place = place();
    let code = |args: &[&str]| place.run(&[args, &["--reason", "x"]].concat()).code;
    assert_eq!(code(&["erase", "r@9", "result.output"]), 3);
    assert_eq!(code(&["erase", "r@1", "result.output"]), 3);
    assert_eq!(code(&["erase", "r@3", "result.output.nothing"]), 3);
    assert_eq!(code(&["erase", "r@3", "state.nothing"]), 3);
    assert_eq!(code(&["erase", "r", "result.output"]), 2);
    let said =
        place.run(&["erase", "r@3", "result.output.token", "--reason", SECRET, "--although", "intent"]);
    assert_eq!(said.code, 2, "{}", said.stderr);
    place.ok(&ERASE);
    let again = place.run(&ERASE);
    assert_eq!(again.code, 5);
    assert!(again.stderr.contains("E0466"), "{}", again.stderr);
}

const WAGE: &str = r#"{"type":"action.result","author":"runtime","agent":"hr","action":{"tool":"hr"},"result":{"status":"ok","output":"CHF 73419"}}
{"type":"plan.update","agent":"n","intent":{"description":"she earns seventy-three thousand"},"delta":[{"set":"/risk","value":"high"}]}
{"type":"plan.update","agent":"n","delta":[{"remove":"/risk"}]}
"#;

/// A text follows from the value in its own run, whatever another run said before.
#[test]
fn a_text_that_another_run_has_is_asked_for_all_the_same() {
    let place = Place::with_store();
    for run in ["mon", "tue"] {
        let args = ["commit", "--run", run, "--as", "runtime", "--redact", "none"];
        assert_eq!(place.run_with(&args, WAGE.as_bytes()).code, 0);
    }
    for args in [
        &["export", "tue", "--withhold", "1:result.output", "-o", "t.dnd"][..],
        &["erase", "tue@1", "result.output", "--reason", "x"],
    ] {
        // The copy of the other run is one as before.
        let ran = place.run(args);
        assert_eq!(ran.code, 5, "{}", ran.stdout);
        for line in ["tue  tick 2  intent.description", "tue  ticks 2..3  delta"] {
            assert!(ran.stderr.contains(line), "{line}\n{}", ran.stderr);
        }
    }
    assert!(!place.path().join("t.dnd").exists());
}

/// A result repeats the call that was made before the value: that is not asked for.
#[test]
fn a_call_that_is_older_than_its_result_is_not_asked_for() {
    let place = Place::with_store();
    let call = r#""agent":"a","action":{"tool":"crm","params":{"id":7}}"#;
    let request = format!(r#"{{"type":"action.request",{call}}}"#);
    let result = format!(
        r#"{{"type":"action.result","author":"runtime",{call},"result":{{"status":"ok","output":"CHF 73419"}}}}"#
    );
    let lines = [&*request, &result, &request, &result].join("\n");
    let args = ["commit", "--run", "r", "--as", "runtime", "--redact", "none"];
    assert_eq!(place.run_with(&args, lines.as_bytes()).code, 0);
    let ran = place.run(&["erase", "r@2", "result.output", "--reason", "x"]);
    // The second call may have been made because of the first answer.
    assert!(ran.stderr.contains("r  ticks 3..4  action.params"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("tick 2"), "{}", ran.stderr);
}

/// A copy in another run leads to what follows there: one answer lists it, and both sorts of answers to it are taken.
#[test]
fn all_open_places_are_listed_at_once() {
    let place = place();
    let lines = r#"{"type":"plan.update","agent":"b","intent":{"description":"again sk-live-4f9a77c2"}}
{"type":"plan.update","agent":"b","intent":{"description":"so be it"},"delta":[{"set":"/x","value":"on"}]}
"#;
    assert_eq!(place.run_with(&["commit", "--run", "other", "--redact", "none"], lines.as_bytes()).code, 0);
    place.ok(&["fork", "other@2", "--as", "later"]);
    let line = br#"{"type":"plan.update","agent":"b","intent":{"description":"and on"}}"#;
    assert_eq!(place.run_with(&["commit", "--run", "later"], line).code, 0);
    let args = [&ERASE[..5], &["-n"]].concat();
    let asked = place.run(&args);
    assert_eq!(asked.code, 5);
    for line in
        ["other  tick 1  intent", "other  tick 2  delta", "other  tick 2  intent", "later  tick 4  intent"]
    {
        assert!(asked.stderr.contains(line), "{line}\n{}", asked.stderr);
    }
    let places = asked.stderr.lines().find_map(|line| line.strip_prefix("note: the places: ")).unwrap();
    for flag in ["--also", "--although"] {
        let named: Vec<&str> = places.split(' ').flat_map(|place| [flag, place]).collect();
        let ran = place.run(&[&args[..], &named].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    }
}

/// A place that goes with the value may be named to stay: it goes, and the answer says so. It is not listed as one that stays.
#[test]
fn a_place_that_goes_anyway_may_be_named() {
    let place = place();
    let ran = place.run(&[&ERASE[..], &["--although", "3:delta", "--although", "intent", "-n"]].concat());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("note: --although 3:delta: it goes anyway, with the value"),
        "{}",
        ran.stderr
    );
    assert!(!ran.stderr.contains("--although intent"), "{}", ran.stderr);
    assert!(!ran.stdout.contains("stays   r  tick 3"), "{}", ran.stdout);
    let idle = place.run(&[&ERASE[..], &["--although", "1:intent", "-n"]].concat());
    assert!(idle.code == 2 && idle.stderr.contains("E0106"), "{}", idle.stderr);
}

/// A value of an older bundle fits the digest that the newer one has.
#[test]
fn a_value_that_is_put_back_is_told_by_every_reader() {
    use dendrer::object::bundle::Bundle;
    let place = Place::with_store();
    let line = br#"{"type":"observation.add","agent":"ann","intent":{"description":"12 Elm Street"}}"#;
    place.run_with(&["commit", "--run", "r"], line);
    place.ok(&["export", "r", "-o", "before.dnd"]);
    place.ok(&["erase", "r@1", "intent.description", "--reason", "x"]);
    place.ok(&["export", "r", "-o", "after.dnd"]);
    let read = |name: &str| Bundle::parse(&std::fs::read(place.path().join(name)).unwrap()).unwrap();
    let (before, mut after) = (read("before.dnd"), read("after.dnd"));
    let at = |bundle: &Bundle| bundle.positions().position(|(_, entry)| entry.tick == Some(1)).unwrap();
    let (from, to) = (at(&before), at(&after));
    after.records[to] = before.records[from].clone();
    std::fs::write(place.path().join("faked.dnd"), after.write(&dendrer::store::split)).unwrap();
    let ran = place.run(&["verify", "faked.dnd"]);
    assert!(ran.code == 4 && ran.stdout.contains("error[E0317]: r@1: "), "{}", ran.stdout);
    let ran = place.run(&["log", "faked.dnd#r"]);
    assert!(ran.stderr.contains("E0317"), "{}{}", ran.stdout, ran.stderr);
    let other = Place::with_store();
    let faked = place.path().join("faked.dnd");
    let ran = other.run(&["import", faked.to_str().unwrap()]);
    assert!(ran.code != 0 && ran.stderr.contains("error[E0317]"), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(other.json(&["runs"]).1.get("items").unwrap().to_string(), "[]", "nothing was taken");
}
