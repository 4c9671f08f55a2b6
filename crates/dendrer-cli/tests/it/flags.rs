//! Flags of the reading verbs, as transcripts.

use std::path::Path;

use dendrer_object::record::{Author, Body, Header, Kind, Link, Record, Rel, Seed, cut};
use dendrer_object::{Value, json};
use dendrer_store::embedded::{Embedded, Options};
use dendrer_store::prelude::*;

use crate::support::{Place, demo, ran_with};

/// Runs over the demo with exit code 0 and compares what a person reads.
fn check(command: &str, expected: &str) {
    let args: Vec<&str> = command.split(' ').collect();
    let ran = demo().run(&args);
    assert_eq!(ran.code, 0, "{command}: {}", ran.stderr);
    assert_eq!(ran.stdout, expected, "{command}");
}

#[test]
fn a_log_is_searched_by_a_regular_expression() {
    check(
        "log logistics-run-47 --grep (?i)PRIVATE.feed.offers",
        " tick  agent        type             conf  summary
   22  feed-reader  observation.add  0.31  \"unverified source introduced: a private feed offers barges at half the price\"
1 of 64 transitions, 1 agent, 0 anomalies
854 of 854 records signed, verified here to 0
",
    );
    // The type counts as text, and so does what a result holds.
    let count = |pattern: &str| {
        let log = demo().json(&["log", "trip-planner-a", "--grep", pattern]).1;
        log.get("items").unwrap().as_array().unwrap().len()
    };
    assert_eq!((count("^policy\\.decision$"), count("plan\\.md"), count("no such thing")), (5, 4, 0));
    let bad = demo().run(&["log", "--grep", "("]);
    assert_eq!(bad.code, 2);
    assert!(bad.stderr.contains("unclosed group"), "{}", bad.stderr);
    // What makes a backtracking matcher run for ever.
    assert_eq!(demo().run(&["log", "hostile-1", "--grep", "(a*)*b(x+x+)+y"]).code, 0);
}

#[test]
fn a_graph_draws_each_agents_lane_and_the_recorded_links() {
    check(
        "log trip-planner-a --graph --to 9",
        "lanes   coordinator, kernel, planner, researcher
 tick           agent        type             conf  summary
    1        *  researcher   observation.add  0.91  \"goal received: three days, one traveller, from Basel to Ticino, at most CHF 600\"
    2      * |  planner      plan.update      0.84  \"two nights in Lugano, the castles of Bellinzona on day 2, the lake on day 3\"  <- caused_by 1
    3        *  researcher   action.request   0.61  allow http_get {\"url\":\"https://travel.example/search?from=basel&to=lugano\"} \"find the fare and a bed for each night\"  <- caused_by 2
    4        *  researcher   action.result       -  FAIL error http_get null  <- caused_by 3
    5    *   |  kernel       kernel.anomaly      -  hallucination \"a fare that no answer holds; process killed, restored from tick 03\"
    6  *     |  coordinator  memory.write     0.88  \"the claimed fare is struck out; the researcher goes on from tick 3\"  <- caused_by 5
    7        *  researcher   action.request   0.64  allow http_get {\"url\":\"https://rail.example/fares?from=basel&to=lugano\"} \"call search tool for pricing data\"  <- caused_by 6
    8        *  researcher   action.result       -  ok http_get {\"class\":2,\"duration_min\":172,\"price_chf\":48}  <- caused_by 7
    9        *  researcher   observation.add  0.89  \"outward fare CHF 48 with a half-fare card, 2 h 52 min\"  <- evidence 8
9 of 47 transitions, 4 agents, 1 anomaly
854 of 854 records signed, verified here to 0
",
    );
}

#[test]
fn a_full_log_shows_each_transition_as_show_does() {
    let full = demo().run(&["log", "trip-planner-a", "--full", "--from", "3", "--to", "4"]).stdout;
    let show = |tick: u64| demo().run(&["show", &format!("trip-planner-a@{tick}")]).stdout;
    let tail = "2 of 47 transitions, 1 agent, 0 anomalies\n854 of 854 records signed, verified here to 0\n";
    assert_eq!(full, format!("{}\n{}\n{tail}", show(3), show(4)));
    let log = demo().json(&["log", "trip-planner-a", "--full", "-n", "1"]).1;
    let item = log.get("items").unwrap().as_array().unwrap().get(0).unwrap();
    assert!(item.get("content").unwrap().get("delta").is_some());
    assert_eq!(demo().run(&["log", "--full", "--oneline"]).code, 2);
}

#[test]
fn the_parts_of_a_transition() {
    check(
        "show trip-planner-a@9 --provenance --time none",
        "provenance
  author       agent
  agent        researcher, number 6 of its branch
  evidence     trip-planner-a@8  action.result  researcher  hash 86599cc50619
  run          trip-planner-a, recorded at stage 1, reducer delta/1
  pack         c2e51b7c637e
  policy       trip.within_budget, judged by the kernel
  decided      no decision about it within 1,000 ticks
  log          record 11 of 854, signed
",
    );
    check(
        "show trip-planner-a@3 --intent --time none",
        "  \"find the fare and a bed for each night\"
  outcome      \"uncertainty high -> exploration spawned\"
  confidence   0.610
  uncertainty  \"source reliability unknown\"
",
    );
    check(
        "show trip-planner-a@8 --result --state delta --time utc",
        "ok  output
  {\"class\":2,\"duration_min\":172,\"price_chf\":48}
state  2 places written
  + fares.outward     48
  ~ budget_remaining  600 -> 552
",
    );
    let json = demo().json(&["show", "trip-planner-a@9", "--provenance"]).1;
    let link =
        json.get("provenance").unwrap().get("links").unwrap().as_array().unwrap().get(0).unwrap().clone();
    assert_eq!(
        (link.get("tick"), link.get("rel")),
        (Some(&Value::from(8u64)), Some(&Value::from("evidence")))
    );
    let relative = demo().run(&["show", "trip-planner-a@9", "--time", "relative"]).stdout;
    assert!(relative.lines().next().unwrap().ends_with(" ago"), "{relative}");
    assert!(!relative.contains("2026-02-23"), "{relative}");
}

#[test]
fn a_state_is_compared_with_another() {
    check(
        "state trip-planner-a@13 --base trip-planner-a@11",
        "+ beliefs.hotel_price  {\"chf_per_night\":61,\"source\":\"hotel_mirror_3\",\"verified\":false}
+ fares.verified       true
~ risk_score           0.22 -> 0.82
3 differences from trip-planner-a@11 to trip-planner-a@13
",
    );
    check(
        "state trip-planner-a@13 --window before --base trip-planner-a@11 --path fares",
        "+ fares.verified  true\n1 difference from trip-planner-a@11 to trip-planner-a@13\n",
    );
    check(
        "state trip-planner-a@13 --base logistics-run-47.dnd@0 --path risk_threshold",
        "0 differences from logistics-run-47@0 to trip-planner-a@13, read from .dendrer and logistics-run-47.dnd\n",
    );
    check("state trip-planner-a@1 --path beliefs", "{\n  \"days\": 3,\n  \"travellers\": 1\n}\n");
}

#[test]
fn runs_are_chosen_by_an_expression() {
    check(
        "runs --where ticks>50&&state.risk_threshold==0.75 --fields name,ticks",
        "name                 ticks
logistics-planner-1     64
logistics-run-47        64
2 items shown
",
    );
    let text = demo().run(&["runs", "--where", "state.hotel.city == \"Lugano\"", "--time", "none"]).stdout;
    let lines: Vec<&str> = text.lines().collect();
    let begins = |at: usize, run: &str| lines[at].starts_with(run);
    assert!(begins(1, "trip-planner-c     44  from trip-planner-a@30: "), "{text}");
    assert!(begins(2, "trip-planner-b     45 ") && begins(3, "trip-planner-a     47 "), "{text}");
    assert_eq!(lines[4], "3 of 19 runs, 3 match; stage 1");
    // All but one of the others have no hotel, and nobody is left out without a word.
    assert!(begins(5, "15 runs could not be judged; the first is "), "{text}");
    let json = demo().json(&["runs", "--where", "state.hotel.city == \"Lugano\""]).1;
    assert_eq!(json.get("unclear").unwrap().as_array().unwrap().len(), 15);
    // A fork has its parent's goal, and is as made up as that.
    check(
        "runs --where synthetic&&forked&&goal.startsWith('Deliver') --fields name,goal",
        "name             goal
logistics-fix-1  Deliver six consignments to Basel by Thursday
1 item shown
",
    );
    assert_eq!(demo().json(&["runs", "--where", "synthetic"]).1.get("matching"), Some(&Value::from(18u64)));
    let slip = demo().run(&["runs", "--where", "tics > 5"]);
    assert_eq!(slip.code, 2);
    assert!(slip.stderr.contains("ticks"), "{}", slip.stderr);
    check("runs --stage 0", "0 of 19 runs, 0 match\n854 of 854 records signed, verified here to 0\n");
    assert_eq!(demo().json(&["runs", "--stage", "1"]).1.get("matching"), Some(&Value::from(13u64)));
}

#[test]
fn fields_are_chosen_for_people_and_programs() {
    check(
        "log trip-planner-a --fields tick,type --to 2",
        "tick  type
   1  observation.add
   2  plan.update
2 items shown
",
    );
    check("version --fields version,kernel", "version  0.1.0\nkernel   3\n");
    check(
        "runs --fields name -n 1 --json",
        "{\"complete\":false,\"hidden\":0,\"items\":[{\"name\":\"run-84f2\"}],\"matching\":19,\"next\":\"run-84f2\",\"schema\":\"dendrer.runs/1\",\"total\":19,\"trust\":{\"signed\":854,\"size\":854,\"tagged\":854,\"verified\":0},\"unclear\":[]}\n",
    );
    check(
        "log trip-planner-a --fields tick --to 2 --jsonl",
        &format!(
            "{{\"tick\":1}}\n{{\"tick\":2}}\n{{\"summary\":{{\"certainty\":\"recorded\",\"closed\":[],\"complete\":true,\"items\":2,\"next\":null,\"read_from\":[\".dendrer\"],\"refusals\":0,\"run\":\"trip-planner-a\",\"schema\":\"dendrer.log/1\",\"tip\":\"{}\",\"total\":2,\"trust\":{{\"signed\":854,\"size\":854,\"tagged\":854,\"verified\":0}}}}}}\n",
            demo().json(&["show", "trip-planner-a@tip"]).1.get("id").unwrap().as_str().unwrap()
        ),
    );
    check(
        "runs --fields list",
        "casebook
dropped
ended
forked_from
goal
hypothetical
name
redaction
refusals
stage
state_read
synthetic
thread
ticks
tip
unfinished
unknown
updated
verified_here
complete
hidden
incomplete
matching
next
tampered
total
trust
unclear
unfinished
",
    );
    let slip = demo().run(&["runs", "--fields", "nam"]);
    assert_eq!(slip.code, 2);
    assert!(slip.stderr.contains("note: did you mean name?"), "{}", slip.stderr);
}

/// Every pair that excludes the other is refused as a whole, before anything is printed.
#[test]
fn forbidden_pairs_end_with_exit_code_2() {
    let demo = demo();
    for command in [
        "log --json --jsonl",
        "--json log --jsonl",
        "--json log --format text",
        "log --format xml",
        "log --graph --json",
        "log --graph --reverse",
        "log --follow --json",
        "log --follow -n 5",
        "log --until-complete --reverse",
        "log --oneline --full",
        "log --format receipt --from 3",
        "log --format receipt --fields tick",
        "show trip-planner-a@3 --raw-json --intent",
        "state trip-planner-a@3 --base trip-planner-a@1 --depth 2",
        "verify --all logistics-run-47",
        "verify --suite corrupt/suite.json tampered.dnd",
        "verify --suite corrupt/suite.json --tip sha256:00",
        "replay logistics-run-47 --strict --detect",
        "export logistics-run-47 --json",
        "export logistics-run-47 --jsonl",
        "export logistics-run-47 --format jsonl --withhold /result",
        "man --json",
        "completions bash --json",
        "man --fields x",
    ] {
        let args: Vec<&str> = command.split(' ').collect();
        let ran = demo.run(&args);
        assert_eq!(ran.code, 2, "{command}: {}{}", ran.stdout, ran.stderr);
        let json = args.iter().any(|arg| arg.starts_with("--json"));
        assert_eq!(ran.stdout.lines().count(), usize::from(json), "{command}: {}", ran.stdout);
    }
}

#[test]
fn answers_can_be_ascii_alone_and_go_to_a_file() {
    let place = Place::with_store();
    let line = "{\"type\":\"plan.update\",\"agent\":\"Zo\u{eb}\",\"intent\":{\"description\":\"Z\u{fc}rich \u{1f682}\"}}";
    place.run_with(&["commit", "--run", "r"], line.as_bytes());
    let log = place.ok(&["log", "r", "--ascii"]);
    assert!(log.is_ascii() && log.contains("Zo\\u00eb") && log.contains("\\ud83d\\ude82"), "{log}");
    assert!(place.ok(&["log", "r"]).contains("Z\u{fc}rich \u{1f682}"));
    let json = place.ok(&["log", "r", "--ascii", "--json"]);
    assert!(json.is_ascii() && json.contains("Z\\u00fcrich \\ud83d\\ude82"), "{json}");
    assert_eq!(
        json::parse_door(json.trim_end().as_bytes()).unwrap(),
        json::parse_door(place.ok(&["log", "r", "--json"]).trim_end().as_bytes()).unwrap()
    );
    assert_eq!(place.ok(&["log", "r", "-o", "log.txt"]), "");
    let file = place.path().join("log.txt");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), place.ok(&["log", "r"]));
    assert_eq!(place.run(&["log", "nope", "-o", "log.txt"]).code, 3);
    assert!(!std::fs::read_to_string(&file).unwrap().is_empty(), "a failure leaves the older answer");
}

#[test]
fn what_was_opened_is_said_when_asked_for() {
    let ran = demo().run(&["log", "trip-planner-a", "-v", "-n", "1"]);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert!(lines[0].starts_with("store ") && lines[0].contains(": 854 records, root "), "{}", ran.stderr);
    assert!(lines[1].starts_with("took 0."), "{}", ran.stderr);
    assert_eq!(demo().run(&["log", "trip-planner-a", "-n", "1"]).stderr, "");
}

#[test]
fn a_run_is_unverified_until_it_was_looked_at_and_again_when_it_grows() {
    let place = Place::with_store();
    let commit = |run: &str| place.run_with(&["commit", "--run", run], b"{\"type\":\"plan.update\"}");
    let unverified = || place.ok(&["runs", "--unverified", "--fields", "name"]);
    commit("a");
    commit("b");
    assert_eq!(unverified(), "name\nb\na\n2 items shown\n");
    place.ok(&["verify", "a"]);
    assert_eq!(unverified(), "name\nb\n1 item shown\n");
    assert_eq!(place.ok(&["runs", "--where", "verified", "--fields", "name"]), "name\na\n1 item shown\n");
    assert!(place.ok(&["log", "a"]).contains("found intact here\n"));
    commit("a");
    assert_eq!(unverified(), "name\na\nb\n2 items shown\n");
    assert!(place.ok(&["log", "a"]).contains("0 anomalies\n"));
    place.ok(&["verify", "--all"]);
    assert_eq!(unverified(), "0 items shown\n");
}

#[test]
fn a_log_is_followed_until_the_goal_is_complete() {
    let place = Place::with_store();
    let commit =
        |kind: &str| place.run_with(&["commit", "--run", "r"], format!("{{\"type\":\"{kind}\"}}").as_bytes());
    commit("plan.update");
    let follower = place
        .command(&["log", "r", "--until-complete", "--fields", "tick", "--jsonl"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    commit("plan.update");
    commit("goal.complete");
    let ran = ran_with(&["--fields"], follower.wait_with_output().unwrap());
    assert_eq!(ran.code, 0);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines[..3], ["{\"tick\":1}", "{\"tick\":2}", "{\"tick\":3}"]);
    assert!(lines[3].starts_with("{\"summary\":"), "{}", ran.stdout);
}

#[test]
fn one_file_that_is_missing_need_not_keep_the_others_from_being_verified() {
    let demo = demo();
    std::fs::write(demo.dir().join("broken.dnd"), "not a bundle\n").unwrap();
    let files = ["gone.dnd", "broken.dnd", "logistics-run-47.dnd", "corrupt/gap.dnd"];
    let all = |extra: &[&str]| demo.run(&[&["verify"], &files[..], extra].concat());
    let stopped = all(&[]);
    assert_eq!((stopped.code, stopped.stdout.as_str()), (3, ""));
    assert!(
        stopped.stderr.contains("note: --keep-going verifies the others all the same"),
        "{}",
        stopped.stderr
    );
    let words = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_uppercase()));
        let lines = lines.filter(|line| line.ends_with(".dnd") || line.contains(".dnd "));
        lines
            .map(|line| {
                line.split("  ")
                    .map(str::trim)
                    .filter(|word| !word.is_empty())
                    .take(2)
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect()
    };
    let going = all(&["--keep-going"]);
    assert_eq!(going.code, 4);
    assert_eq!(
        words(&going.stdout),
        [
            "NOT READ gone.dnd",
            "MALFORMED broken.dnd",
            "INTACT logistics-run-47.dnd",
            "TAMPERED corrupt/gap.dnd"
        ]
    );
    assert_eq!(all(&["--keep-going", "--jobs", "3"]).stdout, going.stdout, "in the order they were named");
    let json = demo.json(&[&["verify", "--keep-going"], &files[..]].concat()).1;
    let names = json.get("items").unwrap().as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|item| item.get("name").unwrap().as_str().unwrap()).collect();
    assert_eq!(names, files);
}

fn store_of(place: &Place) -> Embedded {
    Embedded::open(Path::new(&place.path().join(".dendrer")), Options::untagged()).unwrap()
}

/// A fork of a record, as the kernel would write it: the `run` record and the marker that follows it.
fn fork(store: &mut Embedded, of: &str, tick: u64, name: &str) {
    let position = store.at(&of.parse().unwrap(), tick).unwrap().unwrap();
    let parent = store.get(position).unwrap().unwrap();
    let seal = |header: Header, content: &str| {
        let content = json::parse_canonical(content.as_bytes()).unwrap();
        let fields = cut(content.as_object().unwrap());
        Record::seal(header, Body::commit(fields, Seed([7; 16])).unwrap()).unwrap()
    };
    let header = |kind| Header { kind, run: Some(name.parse().unwrap()), ..parent.header().clone() };
    let begin = Header {
        tick: None,
        prev: Some(parent.id()),
        type_name: None,
        links: vec![],
        author: Author::Kernel,
        ..header(Kind::Run)
    };
    let begin = seal(begin, r#"{"goal":"another way","kernel":1,"stage":1}"#);
    let marker = Header {
        tick: Some(tick + 1),
        prev: Some(begin.id()),
        type_name: Some("run.fork".parse().unwrap()),
        links: vec![Link { rel: Rel::ForkOf, hash: parent.id() }],
        author: Author::Kernel,
        ..header(Kind::Transition)
    };
    let marker = seal(marker, r#"{"agent_id":"kernel","delta":[]}"#);
    store.commit(&[begin, marker]).unwrap();
}

#[test]
fn forks_stand_below_what_they_were_forked_from() {
    let place = Place::with_store();
    let lines = "{\"type\":\"plan.update\"}\n".repeat(4);
    for run in ["main", "other"] {
        place.run_with(&["commit", "--run", run], lines.as_bytes());
    }
    let mut store = store_of(&place);
    fork(&mut store, "main", 2, "try-1");
    fork(&mut store, "try-1", 3, "try-1-again");
    fork(&mut store, "main", 4, "try-2");
    drop(store);
    let tree = place.ok(&["runs", "--tree", "--sort", "name", "--time", "none"]);
    let names: Vec<&str> = tree.lines().map(|line| line.get(..38).unwrap_or(line).trim_end()).collect();
    assert_eq!(
        names,
        [
            "name             ticks  goal",
            "main                 4",
            "  try-1              3  from main@2: a",
            "    try-1-again      4  from try-1@3:",
            "  try-2              5  from main@4: a",
            "other                4",
            "5 of 5 runs; stage 1",
            "11 of 17 records signed, verified here"
        ],
        "{tree}"
    );
    assert_eq!(
        place.ok(&["runs", "--where", "forked", "--fields", "name", "--sort", "name"]).lines().count(),
        5
    );
}
