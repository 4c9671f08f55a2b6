//! Lines onto a run: one reply each, after the sync that covers it.

use std::collections::BTreeSet;
use std::io;
use std::io::Write;

use dendrer::lines::{
    Authors, IntentLine, LineOptions, LineRead, LineStream, LinesStopped, Recording, Reply, read,
};
use dendrer::recorder::{Fixed, Recorder};
use dendrer_kernel::step::Start;
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, Options, Shared};
use dendrer_testkit::{info, memory, recorder, run_name};

fn lines(texts: &[&str]) -> LineStream {
    read(io::Cursor::new(texts.join("\n").into_bytes())).expect("a thread begins")
}

/// What each reply is, with its line and the ticks of its records.
fn told(replies: &[Reply]) -> Vec<String> {
    let each = replies.iter().map(|reply| {
        let what = match reply {
            Reply::Begun(_) => "begun".to_owned(),
            Reply::Committed { line, .. } => format!("{line} committed"),
            Reply::Refused { line, .. } => format!("{line} refused"),
            Reply::Repeated { line, .. } => format!("{line} repeated"),
            Reply::Turned { line, .. } => format!("{line} turned"),
            Reply::Failed(failed) => format!("{} failed {}", failed.line, failed.code),
        };
        let ticks = reply.records().filter_map(|record| record.header().tick);
        ticks.fold(what, |what, tick| format!("{what} @{tick}"))
    });
    each.collect()
}

#[test]
fn each_line_has_one_reply_and_the_first_bad_one_is_the_last() {
    let store = memory(1);
    let mut recorder = recorder(&store, &Start::new(run_name("r")));
    let texts = [
        "\u{feff}{\"type\":\"plan.update\"}",
        "",
        r#"{"type":"run.fork"}"#,
        r#"{"type":"plan.update"}"#,
        r#"{"type":7}"#,
        r#"{"type":"plan.update"}"#,
        r#"{"type":"#,
        r#"{"type":"plan.update"}"#,
    ];
    let mut recording = Recording::new(&mut recorder, lines(&texts), LineOptions::default(), false);
    let begun = recording.begin().expect("the run is new");
    assert_eq!(told(&[begun]), ["begun @0"]);
    let replies: Vec<Reply> = recording.by_ref().flatten().collect();
    let first = ["1 committed @1", "3 refused @2", "4 committed @3", "5 refused @4", "6 committed @5"];
    assert_eq!(told(&replies), [&first[..], &["7 failed E0201"]].concat());
    let stopped = recording.end().expect_err("a line is not JSON");
    assert!(matches!(stopped, LinesStopped::Line { ref line, .. } if line.number == 7), "{stopped}");
    assert_eq!(recorder.head().tick(), 5);
}

#[test]
fn a_first_line_that_is_no_intent_leaves_no_run() {
    let store = memory(1);
    let mut recorder = recorder(&store, &Start::new(run_name("r")));
    let mut recording = Recording::new(&mut recorder, lines(&["nope"]), LineOptions::default(), false);
    let replies: Vec<Reply> = recording.by_ref().flatten().collect();
    assert_eq!(told(&replies), ["1 failed E0201"]);
    drop(recording);
    drop(recorder);
    assert!(store.run(&run_name("r")).expect("it is read").is_none());
}

#[test]
fn a_dry_run_replies_at_once_and_writes_nothing() {
    let store = memory(1);
    let mut recorder = recorder(&store, &Start::new(run_name("r")));
    let (input, mut pipe) = io::pipe().expect("a pipe");
    let input = read(input).expect("a thread begins");
    let mut recording = Recording::new(&mut recorder, input, LineOptions::default(), true);
    assert_eq!(told(&recording.begin().into_iter().collect::<Vec<_>>()), ["begun @0"]);
    for number in 1..=3 {
        pipe.write_all(b"{\"type\":\"plan.update\"}\n").expect("it is read");
        let replies = recording.next().expect("a reply is due");
        assert_eq!(told(&replies), [format!("{number} committed @{number}")]);
    }
    drop(pipe);
    assert!(recording.next().is_none());
    recording.end().expect("all lines were taken");
    drop(recorder);
    assert!(store.run(&run_name("r")).expect("it is read").is_none());
}

/// Many groups on their way at once, and each reply is of a record that another handle finds in the log.
#[test]
fn every_reply_is_of_a_record_that_another_handle_reads() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Embedded::create(dir.path(), info(1), Options::untagged()).expect("a store");
    let store = Shared::new(Box::new(store));
    let mut other = Embedded::open(dir.path(), Options::read()).expect("a store");
    let start = Start::new(run_name("r"));
    let mut recorder =
        Recorder::begin(&store, &start, Box::new(Fixed::new("r", 0, 1))).expect("a run begins");
    let texts = vec![r#"{"type":"plan.update"}"#; 2000];
    let mut recording = Recording::new(&mut recorder, lines(&texts), LineOptions::default(), false);
    let mut numbers = Vec::new();
    for replies in recording.by_ref() {
        other.refresh().expect("it is read");
        for reply in &replies {
            numbers.extend(reply.line());
            for record in reply.records() {
                assert!(other.find(&record.id()).expect("it is read").is_some(), "{reply:?}");
            }
        }
    }
    recording.end().expect("all lines were taken");
    assert_eq!(numbers, (1..=2000).collect::<Vec<u64>>());
}

/// The run moved on meanwhile: every line of the groups that came too late has a reply, and none is called committed.
#[test]
fn lines_that_came_too_late_are_judged_again_and_committed() {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Embedded::create(dir.path(), info(1), Options::untagged()).expect("a store");
    let store = Shared::new(Box::new(store));
    let run = run_name("r");
    let begun = Recorder::begin(&store, &Start::new(run.clone()), Box::new(Fixed::new("r", 0, 1)));
    begun.expect("a run begins").commit().expect("it is committed");
    let late = Shared::new(Box::new(Embedded::open(dir.path(), Options::untagged()).expect("a store")));
    let mut late = Recorder::resume(&late, &run, Box::new(Fixed::new("b", 9, 1))).expect("it exists");
    let mut first = Recorder::resume(&store, &run, Box::new(Fixed::new("a", 5, 1))).expect("it exists");
    let line = lines(&[r#"{"type":"plan.update"}"#]);
    assert_eq!(Recording::new(&mut first, line, LineOptions::default(), false).flatten().count(), 1);
    let texts = vec![r#"{"type":"plan.update"}"#; 5];
    let mut recording = Recording::new(&mut late, lines(&texts), LineOptions::default(), false);
    let replies: Vec<Reply> = recording.by_ref().flatten().collect();
    let told: BTreeSet<String> = told(&replies).into_iter().map(|told| told[2..].to_owned()).collect();
    let expected: BTreeSet<String> = (2..=6).map(|tick| format!("committed @{tick}")).collect();
    assert_eq!(told, expected);
    let numbers: Vec<u64> = replies.iter().filter_map(Reply::line).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    assert!(recording.end().is_ok());
}

#[test]
fn who_may_write_decides_the_author_of_a_line() {
    let author = |authors: Authors, text: &str| {
        let reading = LineOptions { authors, ..LineOptions::default() };
        let line = IntentLine { number: 1, text: text.as_bytes().to_vec() };
        match reading.read(&line).unwrap().expect("it is not blank") {
            LineRead::Intent(intent) => intent.author.as_str().to_owned(),
            LineRead::Fault(_, fault) => fault.code().to_string(),
        }
    };
    let (result, plan) = (r#"{"type":"action.result"}"#, r#"{"type":"plan.update"}"#);
    let named = r#"{"type":"plan.update","author":"runtime"}"#;
    for (authors, expected) in [
        (Authors::Pipe, ["runtime", "agent", "E0408"]),
        (Authors::Agent, ["agent", "agent", "E0408"]),
        (Authors::Runtime, ["runtime", "agent", "runtime"]),
        (Authors::User, ["user", "user", "E0408"]),
    ] {
        assert_eq!([result, plan, named].map(|text| author(authors, text)), expected, "{authors:?}");
    }
}
