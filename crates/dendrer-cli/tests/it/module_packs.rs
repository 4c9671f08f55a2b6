//! Packs that name modules: recorded, replayed, handed over, asked, and stopped.

use dendrer_object::Digest;

use crate::support::Place;

const TALLY: &[u8] = include_bytes!("../../../../examples/modules/tally.wasm");
const PACK: &str = include_str!("../../../../examples/modules/tally.yaml");
const RISK: &str = include_str!("../../../../examples/modules/risk.wat");

/// A module whose `reduce` is this body. It adds one to `n` with the answer at 0, which is 24 bytes.
fn small(body: &str) -> Vec<u8> {
    let text = format!(
        r#"(module (memory (export "memory") 1) (data (i32.const 0) "[{{\22add\22:\22/n\22,\22value\22:1}}]")
        (func (export "alloc") (param i32) (result i32) (i32.const 1024))
        (func (export "reduce") (param i32 i32) (result i64) {body}))"#
    );
    wat::parse_str(text).unwrap()
}

/// Never ends on a transition of more than some 300 bytes, and adds one otherwise.
const LONG: &str = "(if (i32.gt_u (local.get 1) (i32.const 400)) (then (loop $l (br $l)))) (i64.const 24)";

/// Never ends on a long transition where `n` begins with 1.
const FIRST: &str = "(if (i32.and (i32.gt_u (local.get 1) (i32.const 400)) (i32.eq (i32.load8_u offset=14 (local.get 0)) (i32.const 49)))
    (then (loop $l (br $l)))) (i64.const 24)";

const COUNT: &str = "name: example.count\nversion: v1\nreducer: wasm/1\nmodule: mods/count.wasm\nstate:\n  n: {init: 0}\npredicates:\n  few: {holds: state.n <= 2}\n";

fn write(place: &Place, name: &str, bytes: impl AsRef<[u8]>) {
    let path = place.path().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// The tally of the examples, with a predicate that is a module, too.
fn tally(place: &Place) {
    let pack = PACK.replace(
        "predicates:\n",
        "predicates:\n  calm:\n    module: ../risk.wasm\n    bisect_predicate: monotone_lift\n",
    );
    assert_ne!(pack, PACK);
    write(place, "packs/tally.yaml", pack);
    write(place, "packs/tally.wasm", TALLY);
    write(place, "risk.wasm", wat::parse_str(RISK).unwrap());
}

fn spent(amounts: &[(&str, i64)]) -> Vec<u8> {
    let line = |(category, amount): &(&str, i64)| {
        format!(
            r#"{{"type":"action.result","agent":"a","author":"runtime","result":{{"output":{{"amount":{amount},"category":"{category}"}},"status":"ok"}}}}"#
        )
    };
    amounts.iter().map(line).collect::<Vec<_>>().join("\n").into_bytes()
}

fn record(place: &Place) {
    tally(place);
    let lines = spent(&[("food", 1250), ("travel", 4000), ("pets", 1), ("food", 9900)]);
    let ran = place.run_with(&["commit", "--run", "trip", "--pack", "packs/tally.yaml"], &lines);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

fn remove(place: &Place) {
    for name in ["packs", "risk.wasm"] {
        let path = place.path().join(name);
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap()
        } else {
            std::fs::remove_file(path).unwrap()
        }
    }
}

/// D-123: what is recorded under a module is a run like any other; nobody needs the file again.
#[test]
fn a_run_under_a_module_is_recorded_replayed_and_handed_over() {
    let place = Place::with_store();
    record(&place);
    remove(&place);
    let ran = place.run(&["state", "trip"]);
    assert!(ran.stderr.contains("UNKNOWN    the whole state"), "{}", ran.stderr);
    let state = ran.stdout;
    assert!(state.contains(r#""food":{"count":2,"sum":11150}"#) || state.contains("11150"), "{state}");
    // A category that the state does not have: below stage 2 it is kept, and noted.
    let log = place.ok(&["log", "trip"]);
    assert!(
        log.contains("reducer_error") || place.ok(&["show", "trip@3"]).contains("reducer_error"),
        "{log}"
    );
    place.ok(&["verify", "trip", "--replay"]);
    place.ok(&["replay", "trip", "--twice"]);
    place.ok(&["export", "trip", "-o", "trip.dnd"]);
    let there = Place::new();
    std::fs::copy(place.path().join("trip.dnd"), there.path().join("trip.dnd")).unwrap();
    let verified = there.ok(&["verify", "trip.dnd", "--replay"]);
    assert!(verified.contains("INTACT"), "{verified}");
    // The module failed at tick 3, so from there on nothing is known.
    let found = there.run(&["bisect", "trip.dnd", "--predicate", "in_budget"]);
    assert_eq!(
        (found.code, found.stderr.contains("the reducer failed at tick 3")),
        (6, true),
        "{}",
        found.stderr
    );
    let text = there.ok(&["pack", "show", "trip.dnd", "--text"]);
    assert!(text.contains("module: tally.wasm"), "{text}");
    // The run goes on, and so does a fork of it.
    let more = place.run_with(&["commit", "--run", "trip"], &spent(&[("food", 1)]));
    assert_eq!(more.code, 0, "{}", more.stderr);
    place.ok(&["fork", "trip", "--from", "2", "--as", "other", "--replay-rest"]);
    place.ok(&["verify", "other", "--replay"]);
    assert!(place.ok(&["state", "other"]).contains("11151"));
    // With another constant a pack has a text that nobody wrote; without one it has no constant.
    let constant = place.run(&["fork", "trip", "--from", "2", "--policy", "nothing=1"]);
    assert!(constant.stderr.contains("E0116"), "{}", constant.stderr);
}

#[test]
fn a_pack_says_which_modules_it_has_and_never_their_bytes() {
    let place = Place::with_store();
    record(&place);
    let digest = Digest::of(TALLY).to_string();
    let of_file = place.ok(&["pack", "show", "packs/tally.yaml"]);
    place.ok(&["pack", "check", "packs/tally.yaml"]);
    let tested = place.ok(&["pack", "test", "packs/tally.yaml"]);
    assert!(tested.contains("3 tests, 0 failed"), "{tested}");
    place.ok(&["contract", "lint", "packs/tally.yaml"]);
    remove(&place);
    let of_run = place.ok(&["pack", "show", "trip"]);
    assert_eq!(of_file, of_run);
    for said in
        [&digest, "1,110 bytes   tally.wasm", "../risk.wasm   predicate calm", "the module may write it"]
    {
        assert!(of_run.contains(said), "{said}\n{of_run}");
    }
    let (_, shown) = place.json(&["pack", "show", "trip"]);
    let record = place.ok(&["show", "trip@0"]);
    for text in [of_run, shown.to_string(), place.ok(&["contract", "show", "trip"]), record] {
        assert!(!text.contains("AGFzbQ"), "{text}");
    }
    place.json(&["contract", "show", "trip"]);
    place.ok(&["contract", "lint", "trip"]);
    place.ok(&["contract", "list"]);
    // A declared predicate has one digest, whoever asks.
    let listed = place.json(&["predicate", "list", "--run", "trip"]).1;
    let of = |name: &str| {
        let all = listed.get("items").unwrap().as_array().unwrap();
        all.iter().find(|one| one.get("name").unwrap().as_str() == Some(name)).unwrap().get("digest").cloned()
    };
    for name in ["in_budget", "calm"] {
        let full = format!("{}/{name}", PACK.lines().find_map(|line| line.strip_prefix("name: ")).unwrap());
        for asked in [name, &full] {
            let found = place.json(&["bisect", "trip", "--predicate", asked]).1;
            assert_eq!(found.get("predicate").unwrap().get("digest").cloned(), of(&full), "{asked}");
        }
    }
    // Two packs with other modules differ by that.
    tally(&place);
    write(&place, "packs/other.wasm", small("(i64.const 24)"));
    let other = std::fs::read_to_string(place.path().join("packs/tally.yaml")).unwrap();
    write(&place, "packs/other.yaml", other.replace("module: tally.wasm", "module: other.wasm"));
    let changed = place.ok(&["contract", "diff", "trip", "packs/other.yaml"]);
    assert!(
        changed.contains("the module that reduces is ") && changed.contains("0 stricter, 0 looser, 1"),
        "{changed}"
    );
    assert!(place.ok(&["contract", "diff", "trip", "packs/tally.yaml"]).contains("0 stricter, 0 looser, 0"));
    let ran =
        place.run_with(&["commit", "--run", "second", "--pack", "packs/other.yaml"], &spent(&[("food", 1)]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let differ = place.ok(&["diff", "trip", "second"]);
    assert!(differ.contains(&format!("1,110 bytes, {}", Digest::of(TALLY).short())), "{differ}");
    assert!(differ.lines().all(|line| line.len() < 400), "{differ}");
}

/// D-123: a predicate that is a module is asked by the name that the pack gives it.
#[test]
fn a_predicate_of_a_pack_may_be_a_module() {
    let place = Place::with_store();
    write(&place, "risk.wasm", wat::parse_str(RISK).unwrap());
    write(
        &place,
        "risk.yaml",
        "name: acme.risk\nversion: v1\nreducer: delta/1\nstate: {}\npredicates:\n  calm:\n    words: the risk stays low\n    module: risk.wasm\n",
    );
    let line = |risk: &str| {
        format!(r#"{{"type":"plan.update","agent":"a","delta":[{{"set":"/risk_score","value":{risk}}}]}}"#)
    };
    let lines = ["0.1", "0.7", "0.9", "0.95"].map(line).join("\n");
    let ran = place.run_with(&["commit", "--run", "r", "--pack", "risk.yaml"], lines.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    std::fs::remove_file(place.path().join("risk.wasm")).unwrap();
    for name in ["calm", "acme.risk/calm"] {
        let (code, found) = place.json(&["bisect", "r", "--predicate", name]);
        assert_eq!((code, found.get("onset").and_then(|onset| onset.as_u64())), (0, Some(3)), "{found}");
        place.ok(&["predicate", "test", name, "r"]);
    }
    let listed = place.ok(&["predicate", "list", "--run", "r"]);
    assert!(listed.contains("acme.risk/calm") && listed.contains("violated when module "), "{listed}");
    // The same expression finds the same, and all of them are asked together.
    let (_, found) =
        place.json(&["bisect", "r", "--predicate", "has(state.risk_score) && state.risk_score > 0.75"]);
    assert_eq!(found.get("onset").and_then(|onset| onset.as_u64()), Some(3));
    let why = place.ok(&["bisect", "r", "--predicate", "calm", "--contributors"]);
    assert!(why.contains("CONTRIBUTORS"), "{why}");
    // One that never ends gives no verdict.
    let endless = r#"(module (memory (export "memory") 1) (func (export "alloc") (param i32) (result i32) (i32.const 0))
        (func (export "evaluate") (param i32 i32) (result i64) (loop $l (br $l)) (i64.const 4)))"#;
    write(&place, "risk.wasm", wat::parse_str(endless).unwrap());
    let ran = place.run_with(&["commit", "--run", "e", "--pack", "risk.yaml"], lines.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let asked = place.run(&["bisect", "e", "--predicate", "calm"]);
    assert!(asked.code == 6 && asked.stderr.contains("E0521"), "{}", asked.stderr);
    for args in [&["bisect", "e", "--predicate", "calm"][..], &["contract", "check", "e"]] {
        let asked = place.run(args);
        assert!(asked.code == 6 && asked.stderr.contains("| predicate calm"), "{args:?}: {}", asked.stderr);
        says_where(&place, args, &asked.stderr);
    }
}

/// Modules are read beside the pack, and what is wrong with one has its place in the text.
#[test]
fn a_module_that_is_missing_or_refused_has_its_place_in_the_pack() {
    let place = Place::with_store();
    write(&place, "in/count.yaml", COUNT);
    let check = |code: &str, said: &str| {
        let ran = place.run(&["pack", "check", "in/count.yaml"]);
        assert_eq!(ran.code, 1, "{}", ran.stdout);
        assert!(ran.stdout.contains(&format!("in/count.yaml:4:9: error[{code}]: ")), "{}", ran.stdout);
        assert!(
            ran.stdout.contains(said) && ran.stderr.contains("1 problem"),
            "{}{}",
            ran.stdout,
            ran.stderr
        );
        let used = place.run_with(&["commit", "--run", "c", "--pack", "in/count.yaml"], b"{}");
        assert_eq!(used.code, 2, "{}", used.stderr);
        assert!(used.stderr.contains("in/count.yaml:4:9"), "{}", used.stderr);
        let linted = place.run(&["contract", "lint", "in/count.yaml"]);
        assert!(linted.code == 1 && linted.stdout.contains(code), "{}", linted.stdout);
    };
    check("E0108", "cannot read in/mods/count.wasm");
    #[cfg(unix)]
    {
        // Nobody ever writes into it.
        let pipe = place.path().join("in/mods/count.wasm");
        std::fs::create_dir_all(pipe.parent().unwrap()).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        check("E0108", "it is not a regular file");
        std::fs::remove_file(&pipe).unwrap();
    }
    write(&place, "in/mods/count.wasm", b"\0asm");
    check("E0520", "at byte 4");
    write(&place, "in/mods/count.wasm", vec![0; (1 << 20) + 1]);
    check("E0520", "more than 1048576 bytes");
    write(&place, "in/mods/count.wasm", wat::parse_str(RISK).unwrap());
    check("E0520", "does not export \"reduce\"");
    let importing = r#"(module (import "env" "now" (func (result i64))) (memory (export "memory") 1)
        (func (export "alloc") (param i32) (result i32) (i32.const 0))
        (func (export "reduce") (param i32 i32) (result i64) (call 0)))"#;
    write(&place, "in/mods/count.wasm", wat::parse_str(importing).unwrap());
    check("E0520", "imports the function");
    write(&place, "in/mods/count.wasm", small("(i64.const 24)"));
    place.ok(&["pack", "check", "in/count.yaml"]);
    assert!(!place.ok(&["runs"]).contains("count"));
}

fn plan(long: bool) -> String {
    let text = "x".repeat(if long { 500 } else { 1 });
    format!(r#"{{"type":"plan.update","agent":"a","intent":{{"text":"{text}"}}}}"#)
}

fn lines(all: &[bool]) -> Vec<u8> {
    all.iter().map(|long| plan(*long)).collect::<Vec<_>>().join("\n").into_bytes()
}

fn count(place: &Place) {
    write(place, "count.yaml", COUNT);
    write(place, "mods/count.wasm", small(LONG));
}

/// D-128: running out of fuel is an error and never on record; what was acknowledged before stays.
#[test]
fn what_a_limit_ends_while_reducing_is_not_on_record() {
    for stage in ["1", "2"] {
        let place = Place::with_store();
        count(&place);
        let commit = ["commit", "--run", "c", "--pack", "count.yaml", "--stage", stage];
        let first = place.run_with(&commit, &lines(&[true, false]));
        assert!(
            first.code == 6 && first.stderr.contains("E0521") && first.stderr.contains("fuel"),
            "{}",
            first.stderr
        );
        assert!(!place.ok(&["runs"]).contains("count"), "a run that holds nothing is not left behind");
        let ran = place.run_with(&commit, &lines(&[false, false, true, false]));
        assert!(
            ran.code == 6 && ran.stderr.contains("2 transitions before it are committed"),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains("line     3"), "{}", ran.stderr);
        let before = place.ok(&["log", "c"]);
        let again = place.run_with(&["commit", "--run", "c"], &lines(&[true]));
        assert!(again.code == 6 && again.stderr.contains("E0521"), "{}", again.stderr);
        assert_eq!(before, place.ok(&["log", "c"]));
        let goes_on = place.run_with(&["commit", "--run", "c"], &lines(&[false]));
        assert_eq!(goes_on.code, 0, "{}", goes_on.stderr);
        place.ok(&["verify", "c", "--replay"]);
        place.ok(&["fsck"]);
    }
}

/// A run and a tick are named, and a command that shows what is there.
fn says_where(place: &Place, args: &[&str], stderr: &str) {
    for name in ["| run      ", "| tick     ", "note: "] {
        assert!(stderr.contains(name), "{args:?}: {name}: {stderr}");
    }
    let help = stderr.lines().find_map(|line| line.strip_prefix("help: dendrer ")).unwrap();
    place.ok(&help.split(' ').collect::<Vec<_>>());
}

/// A dry run says what would be, and not that anything was.
#[test]
fn a_dry_run_that_fails_commits_nothing_and_says_so() {
    let place = Place::with_store();
    count(&place);
    let commit = ["commit", "--run", "c", "--pack", "count.yaml", "-n"];
    let no_json = [lines(&[false]), b"\n{".to_vec()].concat();
    for (input, code, before) in [(lines(&[false, false, true]), "E0521", 2), (no_json, "E0201", 1)] {
        let ran = place.run_with(&commit, &input);
        let s = if before == 1 { "" } else { "s" };
        let note =
            format!("{before} transition{s} before it would be committed; nothing was written (dry run)");
        assert!(ran.stderr.contains(code) && ran.stderr.contains(&note), "{}", ran.stderr);
        let ran = place.run_with(&[&commit[..], &["--json"]].concat(), &input);
        let failed = crate::support::parse(&ran.stdout);
        assert_eq!(failed.get("changed"), Some(&false.into()), "{failed}");
        assert!(!place.ok(&["runs"]).contains("count"));
    }
}

fn chat(place: &Place, messages: usize, long: usize) -> String {
    let message = |at: usize| {
        let text = if at == long { "x".repeat(500) } else { at.to_string() };
        format!(r#"{{"role":"user","content":"{text}"}}"#)
    };
    let all: Vec<String> = (1..=messages).map(message).collect();
    let name = format!("chat-{messages}-{long}.json");
    write(place, &name, format!("[{}]", all.join(",")));
    name
}

/// An import keeps the messages before the one that a limit ends, as `commit` does, and says how many they are.
#[test]
fn an_import_that_a_limit_ends_says_what_is_on_record() {
    let place = Place::with_store();
    count(&place);
    for stop in [1, 2, 100, 101, 150, 250] {
        let (file, run) = (chat(&place, 260, stop), format!("r{stop}"));
        let import = ["import", &file, "--pack", "count.yaml", "--run", &run];
        // A dry run asks the pack, too.
        let dry = place.run(&[&import[..], &["-n"]].concat());
        assert!(dry.code == 6 && dry.stderr.contains("note: nothing was imported"), "{}", dry.stderr);
        let path = format!("| path     /{}", stop - 1);
        assert!(dry.stderr.contains(&path), "{}", dry.stderr);
        let (code, failed) = place.json(&import);
        assert_eq!((code, failed.get("code").and_then(|code| code.as_str())), (6, Some("E0521")), "{failed}");
        assert_eq!(failed.get("changed"), Some(&(stop > 1).into()), "{failed}");
        let said = match stop {
            1 => "nothing was imported".to_owned(),
            2 => "1 transition of it is recorded".to_owned(),
            _ => format!("{} transitions of it are recorded", stop - 1),
        };
        assert!(failed.to_string().contains(&said), "{failed}");
        let (code, log) = place.json(&["log", &run]);
        match stop {
            1 => assert_eq!(code, 3, "a run that holds nothing is not left behind: {log}"),
            _ => assert_eq!(log.get("total").and_then(|total| total.as_u64()), Some(stop as u64 - 1)),
        }
        let help = failed.get("help").and_then(|help| help.as_array()).map_or(0, |help| help.len());
        assert_eq!(help, usize::from(stop > 1), "{failed}");
    }
    place.ok(&["verify", "--all", "--replay"]);
}

/// What a rule would meet is told before anything is written, and is what it then meets.
#[test]
fn a_dry_run_of_an_import_asks_the_pack() {
    let place = Place::with_store();
    count(&place);
    write(&place, "mods/count.wasm", small("unreachable"));
    let file = chat(&place, 3, 0);
    let import = ["import", &file, "--pack", "count.yaml"];
    let (code, dry) = place.json(&[&import[..], &["-n"]].concat());
    let (_, done) = place.json(&import);
    assert_eq!((code, dry.get("errors")), (0, done.get("errors")));
    assert_eq!(dry.get("errors").and_then(|errors| errors.as_array()).map(|errors| errors.len()), Some(3));
}

/// What a limit ends in a test of a pack has neither passed nor failed.
#[test]
fn a_test_of_a_pack_that_a_limit_ends_has_not_failed() {
    let place = Place::with_store();
    count(&place);
    let tests = format!(
        "tests:\n  - name: it counts\n    then:\n      - t: {}\n        holds: state.n == 1\n",
        plan(true)
    );
    write(&place, "count.yaml", format!("{COUNT}{tests}"));
    let (code, failed) = place.json(&["pack", "test", "count.yaml"]);
    assert_eq!((code, failed.get("code").and_then(|code| code.as_str())), (6, Some("E0521")), "{failed}");
    assert_eq!(failed.get("where").and_then(|place| place.get("test")), Some(&"it counts".into()));
    // So with a predicate that is asked in one.
    let endless = r#"(module (memory (export "memory") 1) (func (export "alloc") (param i32) (result i32) (i32.const 0))
        (func (export "evaluate") (param i32 i32) (result i64) (loop $l (br $l)) (i64.const 4)))"#;
    write(&place, "endless.wasm", wat::parse_str(endless).unwrap());
    let asked = COUNT.replace("{holds: state.n <= 2}", "{module: endless.wasm}");
    let tests = format!(
        "tests:\n  - name: it is few\n    then:\n      - t: {}\n        predicates: {{few: ok}}\n",
        plan(false)
    );
    write(&place, "count.yaml", format!("{asked}{tests}"));
    let ran = place.run(&["pack", "test", "count.yaml"]);
    assert_eq!(ran.code, 6, "{}", ran.stdout);
    assert!(ran.stderr.contains("E0521") && ran.stderr.contains("| predicate few"), "{}", ran.stderr);
}

/// Nor does anything that reduces again take it for an answer.
#[test]
fn whatever_reduces_again_is_stopped_and_writes_nothing() {
    let place = Place::with_store();
    count(&place);
    let ran = place.run_with(&["commit", "--run", "d"], &lines(&[false, true, false]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let stopped = |args: &[&str]| {
        let before = place.ok(&["runs"]);
        let ran = place.run(args);
        assert!(ran.code == 6 && ran.stderr.contains("E0521"), "{args:?}: {} {}", ran.code, ran.stderr);
        assert_eq!(before, place.ok(&["runs"]), "{args:?}");
        says_where(&place, args, &ran.stderr);
    };
    stopped(&["reduce", "d", "--pack", "count.yaml", "--as", "d.counted"]);
    write(&place, "mods/count.wasm", small(FIRST));
    let ran = place
        .run_with(&["commit", "--run", "c", "--pack", "count.yaml"], &lines(&[false, false, true, false]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    place.ok(&["verify", "c", "--replay"]);
    // Without one of those before it the third would never end: nothing is known of that.
    stopped(&["bisect", "c", "--predicate", "few", "--contributors"]);
    stopped(&["fork", "c", "--from", "1", "--set", "n=0", "--replay-rest"]);
    place.ok(&["fork", "c", "--from", "1", "--set", "n=5", "--replay-rest", "--as", "five"]);
    place.ok(&["verify", "five", "--replay"]);
}

/// Nor does a transition come into another run whose state a limit ends it on.
#[test]
fn what_is_brought_into_another_run_is_stopped_and_leaves_nothing() {
    let place = Place::with_store();
    write(&place, "mods/count.wasm", small(FIRST));
    let contract = "contracts:\n  plan.update:\n    required_state: {n: {type: number, precision: 0}}\n    hash_seeds: [n]\n    match: {n: present}\nviolations:\n  - {id: much, condition: state.n > 1000, bisect_predicate: monotone_lift}\n";
    write(&place, "count.yaml", format!("{}{contract}", COUNT.replace("init: 0", "init: s0.n")));
    let begin = |run: &str, n: i64, all: &[bool]| {
        write(&place, "s.json", format!(r#"{{"n":{n}}}"#));
        let args = ["commit", "--run", run, "--pack", "count.yaml", "--stage", "2", "--state", "s.json"];
        let ran = place.run_with(&args, &lines(all));
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    };
    begin("from", 4, &[false, true, false]);
    begin("into", 0, &[false]);
    begin("under", -1, &[false]);
    let records = || place.json(&["fsck"]).1.get("records").cloned();
    let stopped = |args: &[&str], state: &str| {
        let before = (records(), place.ok(&["runs"]));
        let ran = place.run(args);
        assert!(ran.code == 6 && ran.stderr.contains("E0521"), "{args:?}: {} {}", ran.code, ran.stderr);
        assert!(ran.stderr.contains(state), "{args:?}: {}", ran.stderr);
        says_where(&place, args, &ran.stderr);
        assert_eq!((records(), place.ok(&["runs"])), before, "{args:?}");
    };
    for dry in [&["-n"][..], &[]] {
        stopped(&[&["cherrypick", "from@2", "--into", "into"], dry].concat(), "fuel");
        stopped(&[&["rebase", "from", "--onto", "under", "--as", "new"], dry].concat(), "fuel");
    }
    stopped(&["rebase", "from", "--onto", "under", "--plan"], "fuel");
    // On states where it ends, both are done.
    place.ok(&["cherrypick", "from@2", "--into", "under"]);
    begin("far", 20, &[false]);
    place.ok(&["rebase", "from", "--onto", "far", "--as", "new"]);
    place.ok(&["verify", "--all", "--replay"]);
    // What would have come out of another value is not known where a limit ends it.
    write(&place, "count.yaml", COUNT.replace("init: 0", "init: s0.n"));
    begin("free", 0, &[false]);
    begin("other", 1, &[false, true, false]);
    stopped(&["contract", "suggest", "free", "other"], "fuel");
}

/// D-157: a run of proposed changes is reduced again under a module, as under rules.
#[test]
fn a_run_is_reduced_again_under_a_module() {
    let place = Place::with_store();
    tally(&place);
    let ran =
        place.run_with(&["commit", "--run", "plain"], &spent(&[("food", 5), ("travel", 7), ("food", 8)]));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    place.ok(&["reduce", "plain", "--pack", "packs/tally.yaml", "--as", "tallied"]);
    let rules = PACK
        .replace("reducer: wasm/1\nmodule: tally.wasm\n", "rules:\n  - when_type: action.result\n    when: has(t.result.output.amount)\n    steps:\n      - {add: 'tally[t.result.output.category].count', value: 1}\n      - {add: 'tally[t.result.output.category].sum', value: t.result.output.amount}\n");
    write(&place, "rules.yaml", rules);
    place.ok(&["reduce", "plain", "--pack", "rules.yaml", "--as", "ruled"]);
    remove(&place);
    for tick in ["0", "1", "2", "3"] {
        let state = |run: &str| place.ok(&["state", &format!("{run}@{tick}"), "--json"]);
        let of = |text: String| crate::support::parse(&text).get("state").cloned();
        assert_eq!(of(state("tallied")), of(state("ruled")), "{tick}");
    }
    place.ok(&["verify", "tallied", "--replay"]);
}

/// Bytes of a module are bound like any value: whoever changes one changes the record.
#[test]
fn another_module_in_a_record_is_seen() {
    let place = Place::with_store();
    record(&place);
    place.ok(&["export", "trip", "-o", "trip.dnd"]);
    let text = std::fs::read_to_string(place.path().join("trip.dnd")).unwrap();
    // The pack is the longest value of the record, and the module is in it.
    let line = text.lines().max_by_key(|line| line.len()).unwrap();
    let longest = line.split('"').max_by_key(|word| word.len()).unwrap();
    let at = text.find(longest).unwrap() + longest.len() / 2;
    let other = if &text[at..=at] == "A" { "B" } else { "A" };
    let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
    write(&place, "changed.dnd", changed);
    let ran = place.run(&["verify", "changed.dnd"]);
    assert_eq!(ran.code, 4, "{}{}", ran.stdout, ran.stderr);
}
