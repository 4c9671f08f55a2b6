//! Packs as a user meets them: checked, tested, bound to a run, used in questions, reduced again.

use std::path::Path;

use dendrer_object::Value;

use crate::support::{Place, parse};

/// A place with the published pack in it.
fn place() -> Place {
    let place = Place::with_store();
    let pack = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/packs/order-desk.yaml");
    std::fs::copy(pack, place.path().join("desk.yaml")).unwrap();
    place
}

const INTENTS: &str = r#"{"type":"action.result","author":"runtime","action":{"tool":"book","params":{"customer":"ann","items":[{"name":"lamp","price":120,"count":1}]}},"result":{"status":"ok","output":{"id":"o1"}}}
{"type":"desk.handover","intent":{"description":"to a person"}}
{"type":"action.result","author":"runtime","action":{"tool":"refund","params":{"id":"o1","items":["lamp"]}},"result":{"status":"ok"}}
{"type":"action.result","author":"runtime","action":{"tool":"refund","params":{"id":"o2","items":[]}},"result":{"status":"ok"}}
"#;

pub(crate) fn recorded() -> Place {
    let place = place();
    std::fs::write(place.path().join("s0.json"), r#"{"customers":[{"id":"ann","balance":0}]}"#).unwrap();
    let ran = place.run_with(
        &["commit", "--run", "desk", "--pack", "desk.yaml", "--state", "s0.json"],
        INTENTS.as_bytes(),
    );
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("tick 4") && ran.stdout.contains("reducer_error"), "{}", ran.stdout);
    place
}

#[test]
fn a_run_with_a_pack_answers_by_its_names_and_replays_from_the_record_alone() {
    let place = recorded();
    let shown = place.ok(&["pack", "show", "desk"]);
    assert!(shown.contains("example.order-desk v1") && shown.contains("fold/1, 4 rules"), "{}", shown);
    let text = std::fs::read_to_string(place.path().join("desk.yaml")).unwrap();
    assert_eq!(place.ok(&["pack", "show", "desk", "--text"]), text);
    std::fs::remove_file(place.path().join("desk.yaml")).unwrap();

    let found = place.ok(&["bisect", "desk", "--predicate", "refunds_within_limit"]);
    assert!(found.contains("ONSET (exact)  tick 3"), "{}", found);
    assert!(found.contains("must hold state.refunded <= refund_limit"), "{}", found);
    let near = place.run(&["bisect", "desk", "--predicate", "refund.within_limit"]);
    assert_eq!(near.code, 3, "{}", near.stderr);
    // A field that no rule can write is a slip, and not a state that cannot be judged.
    for verb in [&["bisect", "desk"][..], &["predicate", "test", "state.refundd <= 1", "desk"]] {
        let question: &[&str] =
            if verb.len() == 2 { &["--holds", "state.refundd <= 1"] } else { &["--holds"] };
        let slip = place.run(&[verb, question].concat());
        let hinted =
            slip.stderr.contains("error[E0505]") && slip.stderr.contains("did you mean state.refunded");
        assert!(slip.code == 2 && hinted, "{}", slip.stderr);
    }
    assert_eq!(place.run(&["bisect", "desk", "--holds", "state.counters.tool_errors == 0"]).code, 1);
    let replayed = place.ok(&["replay", "desk"]);
    assert!(replayed.contains("4 ticks of 4 of desk, by fold/1;"), "{replayed}");
    assert!(place.ok(&["verify", "desk", "--replay"]).contains("reproduced by the recorded reducer"));
    let again = place.run_with(&["commit", "--run", "desk"], b"{\"type\":\"desk.handover\"}\n");
    assert_eq!(again.code, 0, "a run taken up again knows its types: {}", again.stderr);
}

#[test]
fn a_run_is_reduced_again_and_the_new_one_stands_alone() {
    let place = recorded();
    let other = std::fs::read_to_string(place.path().join("desk.yaml"))
        .unwrap()
        .replace("refund_limit: 100", "refund_limit: 500");
    std::fs::write(place.path().join("other.yaml"), other).unwrap();
    let said =
        place.ok(&["reduce", "desk", "--pack", "other.yaml", "--as", "desk.wide", "--state", "s0.json"]);
    assert!(
        said.contains("reduced    4 ticks of desk again under example.order-desk v1, as desk.wide"),
        "{said}"
    );
    assert!(said.contains("tick 4: rule 4"), "{said}");
    std::fs::remove_file(place.path().join("other.yaml")).unwrap();
    // A rule failed at tick 4: what it would have refunded is not known.
    let found = place.run(&["bisect", "desk.wide", "--predicate", "refunds_within_limit"]);
    assert_eq!((found.code, found.stderr.contains("a rule failed at tick 4")), (6, true), "{}", found.stderr);
    assert!(place.ok(&["verify", "desk.wide", "--replay"]).contains("reproduced by the recorded reducer"));
    let state = |run: &str| place.ok(&["state", &format!("{run}@tip"), "--json"]);
    assert_eq!(
        parse(&state("desk")).get("value").unwrap().to_string(),
        parse(&state("desk.wide")).get("value").unwrap().to_string()
    );
    let twice = place.run(&["reduce", "desk", "--pack", "desk.yaml", "--as", "desk.wide"]);
    assert_eq!((twice.code, twice.stderr.contains("E0111")), (2, true), "{}", twice.stderr);
}

#[test]
fn a_pack_with_faults_is_told_all_of_them_and_begins_nothing() {
    let place = place();
    let text = std::fs::read_to_string(place.path().join("desk.yaml")).unwrap();
    std::fs::write(
        place.path().join("bad.yaml"),
        text.replace("when_type", "when_typ").replace("refund_limit\n", "refund_limt\n"),
    )
    .unwrap();
    let ran = place.run(&["pack", "check", "bad.yaml"]);
    assert_eq!(ran.code, 1);
    assert_eq!(ran.stdout.matches("a rule has no member when_typ").count(), 4, "{}", ran.stdout);
    assert!(
        ran.stdout.contains("bad.yaml:") && ran.stdout.contains("did you mean refund_limit"),
        "{}",
        ran.stdout
    );
    let begun =
        place.run_with(&["commit", "--run", "desk", "--pack", "bad.yaml"], b"{\"type\":\"goal.complete\"}\n");
    assert_eq!((begun.code, begun.stderr.contains("E0900")), (2, true), "{}", begun.stderr);
    assert_eq!(place.run(&["log", "desk"]).code, 3, "nothing was begun");
    let init = text.replace("has(s0.orders) ? s0.orders : {}", "s0.orders");
    std::fs::write(place.path().join("init.yaml"), init).unwrap();
    let ran = place.run_with(&["commit", "--run", "desk", "--pack", "init.yaml"], b"");
    assert_eq!((ran.code, ran.stderr.contains("state.orders cannot begin")), (2, true), "{}", ran.stderr);
}

/// F-54: a strategy is for a unit by the name that `conflicts list` prints.
#[test]
fn a_pack_names_units_as_they_are_listed() {
    let place = place();
    for (unit, fault) in [
        ("memory.x", ""),
        ("goals", ""),
        ("memory", "its units are its members, like memory.x"),
        ("memory/x", "did you mean \"memory.x\"?"),
        ("/memory/x", "did you mean \"memory.x\"?"),
        ("memory.x.y", "a member of the state or a member of one"),
        ("memory..x", "a unit is written like memory.x"),
        ("\"\"", "and \"\" is neither"),
    ] {
        let pack = format!(
            "name: team\nversion: v1\nreducer: delta/1\nstate: {{memory: {{}}}}\nmerge: {{keys: {{{unit}: lww}}}}\n"
        );
        std::fs::write(place.path().join("team.yaml"), pack).unwrap();
        let ran = place.run(&["pack", "check", "team.yaml"]);
        assert_eq!(ran.code, i32::from(!fault.is_empty()), "{unit}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains(fault), "{unit}: {}", ran.stdout);
    }
}

#[test]
fn tests_of_a_pack_fail_with_their_place() {
    let place = place();
    assert_eq!(place.run(&["pack", "test", "desk.yaml"]).code, 0);
    std::fs::write(place.path().join("more.yaml"), "- name: wrong\n  then:\n    - state: {refunded: 1}\n")
        .unwrap();
    let ran = place.run(&["pack", "test", "desk.yaml", "--cases", "more.yaml"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stdout.contains("FAIL  wrong\n      more.yaml:3:7: state.refunded is 0, expected 1"),
        "{}",
        ran.stdout
    );
}

#[test]
fn tests_of_a_pack_count_the_rules_that_wrote() {
    let place = place();
    let all = place.run(&["pack", "test", "desk.yaml"]);
    assert!(all.stdout.ends_with("3 tests, 0 failed; rules exercised 4 of 4\n"), "{}", all.stdout);
    assert_eq!(all.stderr, "");
    // A rule whose steps meet an error, or whose condition is never true, was not exercised.
    let text = std::fs::read_to_string(place.path().join("desk.yaml")).unwrap();
    let (rules, _) = text.split_once("tests:\n").unwrap();
    let cases = text.split_once("  - name: a refused call").unwrap().1;
    std::fs::write(place.path().join("few.yaml"), format!("{rules}tests:\n  - name: a refused call{cases}"))
        .unwrap();
    // A gate never passes on nothing: neither tests nor a contract.
    std::fs::write(place.path().join("none.yaml"), "name: none\nversion: v1\nstate:\n  n: {init: 0}\n")
        .unwrap();
    let none = place.run(&["pack", "test", "none.yaml"]);
    assert!(none.code == 6 && none.stderr.contains("carries no tests"), "{} {}", none.code, none.stderr);
    place.run_with(&["commit", "--run", "empty", "--pack", "none.yaml"], b"{\"type\":\"observation.add\"}\n");
    let checked = place.run(&["contract", "check", "empty"]);
    assert!(checked.code == 2 && checked.stderr.contains("error[E0512]"), "{}", checked.stderr);
    let few = place.run(&["pack", "test", "few.yaml"]);
    assert_eq!(few.code, 0);
    assert!(few.stdout.ends_with("2 tests, 0 failed; rules exercised 1 of 4\n"), "{}", few.stdout);
    assert_eq!(
        few.stderr,
        "note: in no test does rule 2 \"a booking makes the order that the answer names\" write anything
note: in no test does rule 3 \"a cancellation closes the order\" write anything
note: in no test does rule 4 \"a refund goes to the customer, item by item\" write anything
"
    );
    let (_, json) = place.json(&["pack", "test", "desk.yaml"]);
    assert_eq!(json.get("rules_exercised"), Some(&Value::from(4_u64)));
    assert_eq!(
        json.get("items").unwrap().as_array().unwrap().get(1).unwrap().get("rules").unwrap().to_string(),
        "[1]"
    );
}

/// Importing with a pack is importing and reducing: the same transitions, the same states, the same answers.
#[test]
fn a_trace_is_imported_under_a_pack_in_one_go() {
    let place = Place::with_store();
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
    write(
        "pack.yaml",
        "name: example.notes
version: v1
state: {limit: {init: meta.limit}, said: {init: s0.said}, length: {init: 0}}
rules:
  - when: t.intent.role == 'user'
    steps:
      - append: said
        value: t.intent.content
      - add: length
        value: size(t.intent.content)
predicates:
  short: {holds: state.length <= state.limit}
",
    );
    write("s0.json", r#"{"said":["before"]}"#);
    write(
        "chat.json",
        r#"{"limit":4,"messages":[{"role":"user","content":"one"},{"role":"user","content":null},{"role":"user","content":"two"}]}"#,
    );
    let dry =
        place.run(&["import", "chat.json", "--pack", "pack.yaml", "--state", "s0.json", "-n", "--json"]);
    let dry = parse(&dry.stdout);
    assert!(dry.get("errors").unwrap().to_string().contains("rule 1, step 2: "), "{dry}");
    assert_eq!(place.run(&["log", "chat"]).code, 3, "a dry run writes nothing");
    let together = ["import", "chat.json", "--pack", "pack.yaml", "--state", "s0.json", "--run", "together"];
    let ran = place.run(&together);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(
        ran.stdout.contains("WARN       tick 2: rule 1, step 2: ")
            && ran.stderr.contains("at 1 tick a rule met an error"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    place.ok(&["import", "chat.json", "--run", "apart", "--again", "-q"]);
    place.ok(&["reduce", "apart", "--pack", "pack.yaml", "--as", "apart.notes", "--state", "s0.json", "-q"]);
    for tick in 0..=3 {
        let state =
            |run: &str| place.json(&["state", &format!("{run}@{tick}")]).1.get("value").unwrap().to_string();
        assert_eq!(state("together"), state("apart.notes"), "tick {tick}");
    }
    assert!(place.ok(&["state", "together@3"]).contains("\"kernel_unknown\""));
    let found = place.json(&["bisect", "together", "--predicate", "short"]);
    assert_eq!((found.0, found.1.get("onset")), (6, Some(&Value::Null)), "{}", found.1);
    assert!(found.1.to_string().contains("a rule failed at tick 2"), "{}", found.1);
    assert!(place.ok(&["verify", "together", "--replay"]).contains("3 of 3 states reproduced"));
    let (_, json) = place.json(&[&together[..6], &["--run", "third", "--again"]].concat());
    assert_eq!(json.get("errors").unwrap().as_array().unwrap().len(), 1, "{json}");
    // What cannot begin is said before anything is written.
    write(
        "needs.yaml",
        &std::fs::read_to_string(place.path().join("pack.yaml"))
            .unwrap()
            .replace("meta.limit", "meta.nothing"),
    );
    let needs = place.run(&["import", "chat.json", "--pack", "needs.yaml", "--run", "needs", "--again"]);
    assert!(needs.code == 2 && needs.stderr.contains("state.limit cannot begin"), "{}", needs.stderr);
    assert_eq!(place.run(&["log", "needs"]).code, 3);
    write("map.json", r#"{"type":{"const":"observation.add"},"delta":"/d"}"#);
    let delta =
        place.run(&["import", "chat.json", "--map", "map.json", "--pack", "pack.yaml", "--run", "delta"]);
    assert!(delta.code == 2 && delta.stderr.contains("leave `delta` out"), "{}", delta.stderr);
}

/// Whoever changes a rule of a published pack breaks a test, and whoever adds one without a test does, too.
#[test]
fn every_rule_of_the_published_packs_has_a_test() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/packs");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let packs: Vec<_> = files.filter(|path| path.extension().is_some_and(|it| it == "yaml")).collect();
    assert_eq!(packs.len(), 11, "{packs:?}");
    let place = Place::new();
    for pack in packs {
        let ran = place.run(&["pack", "test", pack.to_str().unwrap()]);
        assert_eq!((ran.code, &*ran.stderr), (0, ""), "{}: {}", pack.display(), ran.stdout);
    }
}

#[test]
fn documents_about_packs_fit_their_schemas() {
    let place = recorded();
    std::fs::write(place.path().join("bad.yaml"), "name: \u{202e}x\nwords: \"\\e[31m\"\n\"\\e]0;x\\a\": 1\n")
        .unwrap();
    for args in [
        &["pack", "check", "desk.yaml"][..],
        &["pack", "check", "bad.yaml"],
        &["pack", "show", "desk.yaml"],
        &["pack", "show", "desk"],
        &["pack", "test", "desk.yaml"],
        &["reduce", "desk", "--pack", "desk.yaml", "--as", "desk.again"],
    ] {
        place.json(args);
    }
    let shown = place.run(&["pack", "check", "bad.yaml"]).stdout;
    let raw = shown.chars().find(|c| *c != '\n' && (c.is_control() || *c == '\u{202e}'));
    assert_eq!(raw, None, "{shown}");
}

/// D-86: every transition type that the pack governs, whoever registered it, with the rules that are for it.
#[test]
fn a_pack_says_which_types_it_governs() {
    let place = Place::new();
    let pack = "name: acme.desk\nversion: v1\nstate: {n: {init: 0}, done: {init: 0}}
types:
  desk.closed: a ticket is done
  desk.idle:
rules:
  - when_type: [desk.closed, action.result]
    steps: [{add: n, value: 1}]
  - when_type: desk.closed
    steps: [{add: done, value: 1}]
";
    std::fs::write(place.path().join("desk.yaml"), pack).unwrap();
    let types = |shown: &str| {
        let lines = shown.lines().filter(|line| line.starts_with("type "));
        lines.map(|line| line.trim_start_matches("type").trim_start()).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(
        types(&place.ok(&["pack", "show", "desk.yaml"])),
        "action.result  rule 1
desk.closed  registered, rules 1, 2   a ticket is done
desk.idle  registered, no rule"
    );
    let args = ["pack", "show", "desk.yaml"];
    let (_, shown) = place.json(&args);
    assert_eq!(
        shown.get("governs").unwrap().to_string(),
        r#"[{"registered":false,"rules":[1],"type":"action.result","words":null},{"registered":true,"rules":[1,2],"type":"desk.closed","words":"a ticket is done"},{"registered":true,"rules":[],"type":"desk.idle","words":null}]"#
    );
    // A rule that names no type is for every type, and the map has them all.
    let open = pack.replace("  - when_type: desk.closed\n    steps", "  - steps");
    std::fs::write(place.path().join("desk.yaml"), open).unwrap();
    assert_eq!(
        types(&place.ok(&args)),
        "action.result  rules 1, 2
desk.closed  registered, rules 1, 2   a ticket is done
desk.idle  registered, rule 2
(every other)  rule 2"
    );
    let (_, shown) = place.json(&args);
    let governs = shown.get("governs").and_then(Value::as_array).unwrap();
    let of = |name: &str| {
        let said = format!(r#"{{"registered":false,"rules":[2],"type":"{name}","words":null}}"#);
        governs.iter().any(|one| one.to_string() == said)
    };
    assert!(of("memory.write") && !of("run.fork"), "of what the kernel writes, no rule is asked");
}

/// The example of `docs/packs.md`: a contract in the form of the paper, what came of it, and the pack that it makes.
#[test]
fn a_contract_of_the_paper_is_converted_as_the_page_shows() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/packs.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let begin = text.find("## A contract of the paper").unwrap();
    let (head, section) = text.split_at(begin);
    let end = section.find("## YAML").unwrap();
    let mut blocks = section[..end].split("```").skip(1).step_by(2);
    let mut block = |name: &str| blocks.next().and_then(|block| block.strip_prefix(name)).unwrap().to_owned();
    let (contract, shown, pack) = (block("yaml\n"), block("console\n"), block("yaml\n"));
    let place = Place::new();
    std::fs::write(place.path().join("loans.yaml"), &contract).unwrap();
    let converted = place.run(&["pack", "convert", "loans.yaml", "-o", "bank.yaml"]);
    assert_eq!(converted.code, 0, "{}", converted.stderr);
    let printed = format!("$ dendrer pack convert loans.yaml -o bank.yaml\n{}", converted.stdout);
    let written = std::fs::read_to_string(place.path().join("bank.yaml")).unwrap();
    if std::env::var_os("DENDRER_UPDATE").is_some() {
        let section = section.replace(&shown, &printed).replacen(
            &format!("```yaml\n{pack}```\n\nWhat"),
            &format!("```yaml\n{written}```\n\nWhat"),
            1,
        );
        std::fs::write(&page, format!("{head}{section}")).unwrap();
        return;
    }
    assert_eq!((printed, &written), (shown, &pack));
    place.ok(&["pack", "check", "bank.yaml"]);
    place.ok(&["contract", "lint", "bank.yaml"]);

    let again = place.run(&["pack", "convert", "loans.yaml", "-o", "bank.yaml"]);
    assert!(again.code == 2 && again.stderr.contains("is there already"), "{}", again.stderr);
    assert_eq!(std::fs::read_to_string(place.path().join("bank.yaml")).unwrap(), written);
    let none = place.run(&["pack", "convert", "loans.yaml"]);
    assert!(none.code == 2 && none.stderr.contains("-o NEW.yaml"), "{}", none.stderr);
    std::fs::write(place.path().join("bad.yaml"), contract.replace("namespace:", "owner: x\nnamespace:"))
        .unwrap();
    let bad = place.run(&["pack", "convert", "bad.yaml", "-o", "new.yaml"]);
    assert!(bad.code == 2 && bad.stderr.contains("bad.yaml:2:1 owner has no counterpart"), "{}", bad.stderr);
    std::fs::write(place.path().join("bad.yaml"), [contract.as_bytes(), b"# Z\xfcrich\n"].concat()).unwrap();
    let bad = place.run(&["pack", "convert", "bad.yaml", "-o", "new.yaml"]);
    assert!(bad.code == 2 && bad.stderr.contains("error[E0206]"), "{}", bad.stderr);
    let line = contract.lines().count() + 1;
    assert!(bad.stderr.contains(&format!("bad.yaml:{line}:4 ")), "{}", bad.stderr);
    assert!(!place.path().join("new.yaml").exists());
    let items = parse(&place.ok(&["pack", "convert", "loans.yaml", "-o", "other.yaml", "--json"]));
    let first = items.get("items").and_then(|items| items.as_array()?.iter().next()?.get("line")?.as_u64());
    assert_eq!(first, Some(1), "{items}");
}
