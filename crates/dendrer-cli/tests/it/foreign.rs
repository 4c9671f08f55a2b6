//! Bundles of other stores: their runs are read, compared, forked, labelled and exported here, and nothing is added to them.

use dendrer_object::Value;

use crate::support::{Place, Ran, strip};

/// A store with a run `r`, a fork `q` of it, a label, and their bundle.
fn sender() -> Place {
    let place = Place::with_store();
    let line = |n: u32| {
        format!(
            r#"{{"type":"plan.update","agent":"desk","intent":{{"n":{n}}},"delta":[{{"set":"/n","value":{n}}}]}}"#
        )
    };
    let commit = |run: &str, text: &str| {
        let ran = place.run_with(&["commit", "--run", run], text.as_bytes());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
    };
    commit("r", &[line(1), line(2), line(3)].join("\n"));
    place.ok(&["fork", "r@2", "--as", "q"]);
    commit("q", &line(7));
    place.ok(&["label", "good", "r@2"]);
    place.ok(&["export", "r", "q", "-o", "x.dnd"]);
    place
}

fn receive(place: &Place, from: &Place, file: &str, more: &[&str]) -> Ran {
    let path = from.path().join(file);
    place.run(&[&["import", path.to_str().unwrap()], more].concat())
}

fn sound(place: &Place) {
    place.ok(&["verify", "--all", "--replay"]);
}

fn total(place: &Place) -> Option<u64> {
    place.json(&["runs"]).1.get("total")?.as_u64()
}

#[test]
fn runs_of_a_bundle_are_foreign_runs() {
    let (there, here) = (sender(), Place::with_store());
    let dry = receive(&here, &there, "x.dnd", &["--from", "ann", "-n"]);
    assert_eq!(dry.code, 0, "{}", dry.stderr);
    assert_eq!(total(&here), Some(0));
    let ran = receive(&here, &there, "x.dnd", &["--from", "ann", "--json"]);
    let answer = crate::support::parse(&ran.stdout);
    let runs = answer.get("items").and_then(Value::as_array).unwrap();
    let names: Vec<&str> = runs.iter().filter_map(|run| run.get("run")?.as_str()).collect();
    assert_eq!(names, ["ann/q", "ann/r"]);
    sound(&here);
    // What was recorded there is what is read here.
    let bundle = there.path().join("x.dnd");
    for run in ["r", "q"] {
        let original = format!("{}#{run}", bundle.display());
        let diff = here.run(&["diff", &format!("ann/{run}"), &original]);
        assert!(diff.stdout.starts_with("no difference; "), "{}{}", diff.stdout, diff.stderr);
    }
    // Nothing is added to it, and a fork of it is a run of this store.
    let refused = here.run_with(&["commit", "--run", "ann/r"], b"{\"type\":\"plan.update\"}");
    assert!(refused.code != 0 && refused.stderr.contains("E0409"), "{}", refused.stderr);
    here.ok(&["fork", "ann/r@2", "--as", "mine"]);
    here.ok(&["fork", "ann/q@tip"]);
    let line = br#"{"type":"plan.update","agent":"desk","delta":[{"set":"/n","value":9}]}"#;
    assert_eq!(here.run_with(&["commit", "--run", "mine"], line).code, 0);
    assert_eq!(here.run_with(&["commit", "--run", "q+2"], line).code, 0);
    assert!(here.ok(&["log", "mine"]).contains("from ann/r@2"));
    here.ok(&["label", "odd", "ann/r@2"]);
    here.ok(&["note", "odd", "look here"]);
    assert_eq!(here.ok(&["state", "odd", "--path", "n"]).trim(), "2");
    here.ok(&["export", "mine", "-o", "mine.dnd"]);
    here.ok(&["verify", "./mine.dnd", "--replay"]);
    here.ok(&["export", "ann/r", "-o", "again.dnd"]);
    sound(&here);
    // It comes back as a run of the other store.
    assert_eq!(receive(&there, &here, "mine.dnd", &["--from", "bob"]).code, 0);
    assert!(there.ok(&["log", "bob/mine"]).contains("4 of 4"));
    sound(&there);
}

#[test]
fn a_later_bundle_adds_what_is_new() {
    let (there, here) = (sender(), Place::with_store());
    assert_eq!(receive(&here, &there, "x.dnd", &["--from", "ann"]).code, 0);
    let line = br#"{"type":"plan.update","agent":"desk","delta":[{"set":"/n","value":8}]}"#;
    assert_eq!(there.run_with(&["commit", "--run", "q"], line).code, 0);
    there.ok(&["export", "r", "q", "-o", "y.dnd"]);
    let added = |file: &str| {
        let ran = receive(&here, &there, file, &["--from", "ann", "--json"]);
        let answer = crate::support::parse(&ran.stdout);
        let runs = answer.get("items").and_then(Value::as_array).unwrap();
        runs.iter().filter_map(|run| run.get("added")?.as_u64()).collect::<Vec<_>>()
    };
    assert_eq!(added("y.dnd"), [1, 0]);
    assert_eq!(added("y.dnd"), [0, 0]);
    assert_eq!(added("x.dnd"), [0, 0]);
    assert_eq!(here.ok(&["state", "ann/q", "--path", "n"]).trim(), "8");
    sound(&here);
    // A store has one name, and a name is of one store.
    let second = receive(&here, &there, "x.dnd", &["--from", "bob"]);
    assert!(second.code == 2 && second.stderr.contains("E0214"), "{}", second.stderr);
    assert!(receive(&here, &there, "x.dnd", &[]).stdout.contains("ann/q"));
    let other = sender();
    let refused = receive(&here, &other, "x.dnd", &["--from", "ann"]);
    assert!(refused.code == 2 && refused.stderr.contains("E0111"), "{}", refused.stderr);
    let own = receive(&there, &there, "x.dnd", &[]);
    assert!(own.code == 2 && own.stderr.contains("E0214"), "{}", own.stderr);
}

#[test]
fn a_bundle_that_was_altered_is_not_taken_in() {
    let (there, here) = (sender(), Place::with_store());
    let path = there.path().join("x.dnd");
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"value\":3"));
    std::fs::write(&path, text.replacen("\"value\":3", "\"value\":4", 1)).unwrap();
    let refused = receive(&here, &there, "x.dnd", &[]);
    assert_eq!(refused.code, 4, "{}", refused.stderr);
    let lines: Vec<&str> = text.lines().collect();
    for cut in (1..lines.len()).step_by(3) {
        std::fs::write(&path, lines[..cut].join("\n")).unwrap();
        assert_ne!(receive(&here, &there, "x.dnd", &[]).code, 0, "{cut}");
    }
    assert_eq!(total(&here), Some(0));
    // What is withheld is no fault: it is withheld here as well.
    there.ok(&["export", "r", "-o", "w.dnd"]);
    strip(there.path().join("w.dnd"), &["/intent"]);
    let ran = receive(&here, &there, "w.dnd", &["--from", "w"]);
    assert!(ran.code == 0 && ran.stdout.contains("UNVERIFIABLE"), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(here.ok(&["state", "w/r", "--path", "n"]).trim(), "3");
    assert_eq!(here.run(&["verify", "w/r", "--replay"]).code, 6);
}

#[test]
fn a_name_with_a_mark_is_of_another_store() {
    let (there, here) = (sender(), Place::with_store());
    assert_eq!(receive(&here, &there, "x.dnd", &["--from", "ann"]).code, 0);
    std::fs::write(here.path().join("t.json"), r#"[{"role":"user","content":"q"}]"#).unwrap();
    for args in [
        &["commit", "--run", "ann/new"][..],
        &["fork", "ann/r@1", "--as", "ann/new"],
        &["label", "ann/new", "ann/r@1"],
        &["import", "t.json", "--run", "ann/new"],
    ] {
        let ran = here.run_with(args, b"{\"type\":\"plan.update\"}");
        assert!(ran.code == 2 && ran.stderr.contains("E0210"), "{args:?} {}", ran.stderr);
    }
    for (flag, value) in [("--run", "x"), ("--goal", "x"), ("--kind", "jsonl")] {
        let ran = receive(&here, &there, "x.dnd", &[flag, value]);
        assert!(ran.code == 2 && ran.stderr.contains("E0106"), "{flag} {}", ran.stderr);
    }
    assert!(receive(&Place::with_store(), &there, "x.dnd", &["--from", "a/b"]).stderr.contains("E0210"));
    assert!(here.run(&["import", "t.json", "--from", "ann"]).stderr.contains("E0106"));
}

/// Merges, commitments, refusals and a contract come with their runs: the example of the program in another store.
#[test]
fn runs_of_every_kind_come_in() {
    let (there, here) = (Place::with_demo(), Place::with_store());
    let runs = there.json(&["runs", "-n", "0"]).1;
    let items = runs.get("items").and_then(Value::as_array).unwrap();
    let is_run = |run: &&Value| run.get("casebook") == Some(&Value::from(false));
    let name = |run: &Value| Some(run.get("name")?.as_str()?.to_owned());
    let names: Vec<String> = items.iter().filter(is_run).filter_map(name).collect();
    assert!(names.len() > 1);
    let mut args = vec!["export"];
    args.extend(names.iter().map(String::as_str));
    args.extend(["-o", "all.dnd"]);
    there.ok(&args);
    let ran = receive(&here, &there, "all.dnd", &["--from", "d"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    sound(&here);
    for name in names {
        let state = |place: &Place, run: &str| place.ok(&["state", run]);
        assert_eq!(state(&here, &format!("d/{name}")), state(&there, &name), "{name}");
    }
}
