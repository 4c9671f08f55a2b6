//! Answers of `init`, `demo` and `import`: a store or a run that was made.

use dendrer::run::pack::RuleNotes;
use dendrer_object::{Digest, Value};
use dendrer_view::answer::{Answer as _, Page};
use dendrer_view::demo::{DemoAnswer, DemoRunShown, TourStop};
use dendrer_view::import::{ImportAnswer, ImportNoteShown};
use dendrer_view::init::InitAnswer;

use super::text;

fn check(found: &str, expected: &str) {
    assert_eq!(found.trim_end(), expected);
}

#[test]
fn init_names_the_store_and_the_file_of_its_key() {
    let answer = InitAnswer {
        path: "/tmp/\u{1b}[1m/.dendrer".into(),
        server: None,
        id: "0102".into(),
        verifier: "dendrer/0102+ab+cd".into(),
        key: "/home/me/.config/dendrer/keys/0102".into(),
        commit: "dendrer commit --run first".into(),
    };
    check(
        &text(&answer, &Page::WIDE),
        r#"created a store in /tmp/\x1b[1m/.dendrer
verifier  dendrer/0102+ab+cd
(stderr) note: the key of its log is in /home/me/.config/dendrer/keys/0102, readable by you alone; it is not part of the store
(stderr) note: a run is recorded at stage 1; at stage 2 if its pack or policy ask for enforcement
(stderr) help: echo '{"type":"observation.add","intent":{"description":"hello"}}' | dendrer commit --run first"#,
    );
}

#[test]
fn demo_lists_its_runs_and_a_tour() {
    let shows = "a broken rule".to_owned();
    let answer = DemoAnswer {
        path: "d".into(),
        runs: vec![DemoRunShown { name: "claims-9".parse().unwrap(), ticks: 1200, shows }],
        files: vec!["x.dnd"],
        damaged: 4,
        tour: vec![TourStop { command: "dendrer runs", exit: 1, shows: "all runs" }],
        shows_tour: true,
    };
    check(
        &text(&answer, &Page::WIDE),
        "made d with 1 run and 4 damaged bundles; all of it is synthetic, and its key is public
  claims-9                 1,200 ticks   a broken rule

a tour (first: cd d):
  dendrer runs
      all runs; exit code 1",
    );
    assert_eq!(answer.document().get("tour").and_then(Value::as_array).map(|tour| tour.len()), Some(1));
}

#[test]
fn import_counts_gaps_and_names_each_once() {
    let note = ImportNoteShown {
        tick: 3,
        kind: "unanswered_call",
        is_gap: true,
        message: "no result".into(),
        path: "/messages/2".into(),
        may: &[],
    };
    let mut answer = ImportAnswer {
        run: "r".parse().unwrap(),
        dry_run: false,
        kind: "openai-chat",
        why: "detected: the file is one list".into(),
        ticks: 4,
        gaps: 2,
        calls: (2, 1, 1),
        types: vec![("action.request".into(), 2)],
        agents: vec![("a".into(), 4)],
        noted: vec![("unanswered_call", 2)],
        notes: vec![note],
        meta: Some(vec!["model".into()]),
        sha256: Digest([1; 32]),
        bytes: 10,
        tip: Some(Digest([2; 32])),
        pack: None,
        rules: RuleNotes::default(),
        unknown: Vec::new(),
        first: Vec::new(),
        rows: None,
        gathered: Vec::new(),
        branches: 0,
        forks: Vec::new(),
        places: Vec::new(),
    };
    check(
        &text(&answer, &Page::WIDE),
        "imported r: 4 ticks, 2 gaps, tip 020202020202
(stderr) note: stage 0: the record is what the source says; nothing was enforced when it was made
(stderr) help: dendrer bisect r --holds state.counters.tool_errors == 0
(stderr) WARN tick 3: unanswered_call (a gap): no result at /messages/2
(stderr) WARN and 1 more; --json counts them by kind",
    );
    (answer.tip, answer.dry_run) = (None, true);
    answer.notes.clear();
    answer.noted.clear();
    check(
        &text(&answer, &Page::WIDE),
        "kind       openai-chat (detected: the file is one list)
would make run  r   stage 0, 4 ticks, 1 agent
types      action.request 2
calls      2 asked for, 1 answered, 1 failed
meta       model
nothing was written (dry run)",
    );
}
