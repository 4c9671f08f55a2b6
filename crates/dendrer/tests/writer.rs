//! A program that records itself, line by line.

use dendrer::lines::{LineOptions, Reply, TurnedLine};
use dendrer::recorder::{Fixed, Recorder};
use dendrer::writer::{LineWriter, TakenLine};
use dendrer_kernel::step::{Anomaly, Start};
use dendrer_object::record::Author;
use dendrer_object::{Value, json};
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, Options, Shared};
use dendrer_testkit::{info, run_name};

fn line(text: &str) -> Value {
    json::parse_door(text.as_bytes()).expect("a line is JSON")
}

fn line_of(type_name: &str) -> Value {
    line(&format!(r#"{{"type":"{type_name}"}}"#))
}

fn place() -> (tempfile::TempDir, Shared) {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Embedded::create(dir.path(), info(1), Options::untagged()).expect("a store");
    (dir, Shared::new(Box::new(store)))
}

fn writer(store: &Shared, sync_every: u64) -> LineWriter {
    let surroundings = || Box::new(Fixed::new(&format!("writer {sync_every}"), 1_700_000_000_000, 1000));
    let recorder = match store.run(&run_name("r")).expect("the log is read") {
        Some(_) => Recorder::resume(store, &run_name("r"), surroundings()),
        None => Recorder::begin(store, &Start::new(run_name("r")), surroundings()),
    };
    let recorder = recorder.expect("a recorder");
    LineWriter::new(recorder, LineOptions::default(), sync_every).expect("the run begins")
}

fn tick(reply: &Reply) -> Option<u64> {
    match reply {
        Reply::Committed { record, .. } | Reply::Repeated { record, .. } => record.header().tick,
        _ => None,
    }
}

/// Another handle sees a line once it was written out, before it is synced: a kill of the process does not take it.
#[test]
fn what_was_written_out_is_read_by_another_handle() {
    let (dir, store) = place();
    let mut writer = writer(&store, 1000);
    for number in 1..=250 {
        let reply = writer.take(&line(r#"{"type":"plan.update"}"#)).expect("the line is taken");
        assert_eq!(tick(&reply), Some(number));
        if number % 50 == 3 {
            writer.write_out().expect("the lines are written");
            assert!(!writer.is_waiting());
            let other = Embedded::open(dir.path(), Options::read()).expect("the store opens");
            let found = other.run(&run_name("r")).expect("the log is read").expect("the run is there");
            assert_eq!(found.head.tick, Some(number));
        }
    }
    assert_eq!(writer.flush().expect("the log is synced"), 250);
}

/// A link among lines that wait leads to what the line is once both are judged again.
#[test]
fn lines_that_wait_are_judged_again_where_another_writer_moved_the_run_on() {
    let (dir, store) = place();
    let mut first = writer(&store, 100);
    let request = r#"{"type":"action.request","action":{"tool":"t"}}"#;
    let asked = first.take(&line(request)).expect("the line is taken");
    let Reply::Committed { record, .. } = &asked else { panic!("{asked:?}") };
    let result = format!(
        r#"{{"type":"action.result","result":{{"status":"ok"}},"links":[{{"rel":"caused_by","hash":"{}"}}]}}"#,
        record.id()
    );
    first.take(&line(&result)).expect("the line is taken");
    let other = Shared::new(Box::new(Embedded::open(dir.path(), Options::untagged()).expect("a store")));
    writer(&other, 1).take(&line(r#"{"type":"plan.update"}"#)).expect("the line is taken");
    assert_eq!(first.flush().expect("the lines are written"), 3);
    let trace = dendrer::Trace::open(&store, &run_name("r")).expect("the run opens");
    let types =
        (1..=3).map(|tick| trace.record(tick).expect("a record").header().type_name.clone().expect("a type"));
    assert_eq!(
        types.map(|name| name.to_string()).collect::<Vec<_>>(),
        ["plan.update", "action.request", "action.result"]
    );
    let asked = trace.record(2).expect("a record").id();
    assert!(trace.record(3).expect("a record").header().links.iter().any(|link| link.hash == asked));
}

/// Two writers of one run take turns without a base: neither is stale, and no tick is given twice.
#[test]
fn a_line_without_a_base_is_judged_again_where_another_writer_moved_the_run_on() {
    let (dir, store) = place();
    let mut first = writer(&store, 1);
    let other = Shared::new(Box::new(Embedded::open(dir.path(), Options::untagged()).expect("a store")));
    let mut second = writer(&other, 1);
    let mut ticks = Vec::new();
    for _ in 0..20 {
        let text = r#"{"type":"memory.write","delta":[{"append":"/list","value":1}]}"#;
        ticks.extend(tick(&first.take(&line(text)).expect("the line is taken")));
        ticks.extend(tick(&second.take(&line(text)).expect("the line is taken")));
        ticks.extend(tick(&second.take(&line(text)).expect("the line is taken")));
    }
    assert_eq!(ticks, (1..=60).collect::<Vec<_>>());
    let stale = first.take(&line(r#"{"type":"plan.update","base":3}"#)).expect("the line is answered");
    assert!(matches!(stale, Reply::Turned { why: TurnedLine::Stale { head: 60, .. }, .. }), "{stale:?}");
}

#[test]
fn a_line_that_is_no_intent_is_refused_and_kept_and_a_key_repeats() {
    let (_dir, store) = place();
    let mut writer = writer(&store, 1);
    let refused = writer.take(&line(r#"{"type":"tool.call"}"#)).expect("the line is answered");
    assert!(matches!(refused, Reply::Refused { .. }), "{refused:?}");
    let forged = writer.take(&line(r#"{"type":"kernel.anomaly"}"#)).expect("the line is answered");
    let Reply::Refused { noted, .. } = &forged else { panic!("{forged:?}") };
    assert_eq!(noted.len(), 1);
    let keyed = r#"{"type":"plan.update","key":"k"}"#;
    assert_eq!(tick(&writer.take(&line(keyed)).expect("taken")), Some(2));
    assert!(matches!(writer.take(&line(keyed)).expect("answered"), Reply::Repeated { .. }));
    writer.note(&Anomaly::told("recording_gap", "a step is missing")).expect("the gap is on record");
    assert_eq!(writer.head().tick(), 3);
}

/// A line of the user has the user as its author, whatever authors write otherwise; one that names another is refused.
#[test]
fn a_line_of_the_user_is_by_the_user_alone() {
    let (_dir, store) = place();
    let mut writer = writer(&store, 1);
    let author = |reply: Reply| match reply {
        Reply::Committed { record, .. } => Some(record.header().author),
        _ => None,
    };
    let mut take = |is_user: bool, text: &str| {
        let line = line(text);
        author(if is_user { writer.take_of_user(&line) } else { writer.take(&line) }.expect("a reply"))
    };
    assert_eq!(take(true, r#"{"type":"observation.add"}"#), Some(Author::User));
    assert_eq!(take(true, r#"{"type":"plan.update","author":"user"}"#), Some(Author::User));
    assert_eq!(take(true, r#"{"type":"plan.update","author":"agent"}"#), None);
    assert_eq!(take(false, r#"{"type":"plan.update"}"#), Some(Author::Agent));
    assert_eq!(take(false, r#"{"type":"plan.update","author":"user"}"#), None);
}

/// Lines of many kinds, in an order that is drawn; every seventh is one that is judged at once.
fn drawn(number: u64) -> Value {
    line(&match number % 14 {
        3 => format!(r#"{{"type":"action.request","action":{{"tool":"t","params":{{"n":{number}}}}}}}"#),
        5 => r#"{"type":"observation.add","delta":[{"remove":"/none"}]}"#.to_owned(),
        6 => r#"{"type":"kernel.anomaly","intent":{"description":"forged"}}"#.to_owned(),
        7 => format!(r#"{{"type":"memory.write","key":"k{}"}}"#, number % 28),
        9 => r#"{"type":"observation.add","intent":7}"#.to_owned(),
        11 => {
            format!(r#"{{"type":"plan.update","agent":"b","confidence":0.123456789,"base":{}}}"#, number / 2)
        }
        _ => format!(
            r#"{{"type":"observation.add","intent":{{"description":"a {number}"}},"delta":[{{"set":"/n{}","value":{number}}}]}}"#,
            number % 5
        ),
    })
}

/// The records of lines that are judged together are those of lines that are judged one by one, and so are the replies, whenever
/// they are asked for.
#[test]
fn lines_that_are_judged_later_become_the_same_records() {
    let (_one, at_once) = place();
    let (_other, later) = place();
    let (mut one, mut other) = (writer(&at_once, 50), writer(&later, 50));
    let (mut expected, mut taken) = (Vec::new(), Vec::new());
    for number in 0..700 {
        let (line, is_user) = (drawn(number), number % 13 == 4);
        let reply = if is_user { one.take_of_user(&line) } else { one.take(&line) };
        expected.push(format!("{:?}", reply.expect("the line is taken")));
        taken.push(other.take_later(&line, is_user).expect("the line is taken"));
        if number % 31 == 0 {
            let Some(TakenLine::Later(reply)) = taken.last() else { continue };
            other.judge_waiting();
            assert_eq!(expected.last(), reply.get().map(|(reply, _)| format!("{reply:?}")).as_ref());
        }
    }
    assert_eq!(one.flush().expect("the lines are written"), other.flush().expect("the lines are written"));
    let waited = taken.iter().filter(|taken| matches!(taken, TakenLine::Later(_))).count();
    assert!(waited > 350, "{waited} of 700 lines waited");
    let finals = taken.iter().filter_map(|taken| match taken {
        TakenLine::Later(reply) => reply.get(),
        TakenLine::Judged(_) => None,
    });
    assert!(finals.map(|(_, is_final)| is_final).all(|is_final| is_final));
    for (expected, taken) in expected.iter().zip(&taken) {
        let reply = match taken {
            TakenLine::Judged(reply) => reply.clone(),
            TakenLine::Later(reply) => reply.get().expect("each line is judged").0,
        };
        assert_eq!(expected, &format!("{reply:?}"));
    }
}

/// A line that fails after others takes none of them with it; it is counted, and its reply says why.
#[test]
fn a_line_that_fails_later_is_counted_and_takes_no_other_with_it() {
    let (_dir, store) = place();
    let mut writer = writer(&store, 100);
    let plain = line(r#"{"type":"plan.update"}"#);
    let unknown = format!(
        r#"{{"type":"plan.update","links":[{{"rel":"evidence","hash":"sha256:{}"}}]}}"#,
        "a".repeat(64)
    );
    let unknown = line(&unknown);
    let mut replies = Vec::new();
    for line in [&plain, &unknown, &plain, &unknown, &plain] {
        let TakenLine::Later(reply) = writer.take_later(line, false).expect("the line is taken") else {
            panic!("a plain line waits")
        };
        assert!(reply.get().is_none());
        replies.push(reply);
    }
    assert_eq!(writer.waiting(), 5);
    writer.judge_waiting();
    let (count, error) = writer.take_failed().expect("lines failed");
    assert_eq!((count, error.code().to_string().as_str()), (2, "E0102"));
    assert!(writer.take_failed().is_none());
    assert_eq!(writer.flush().expect("the lines are written"), 3);
    let ticks: Vec<Option<u64>> =
        replies.iter().map(|reply| tick(&reply.get().expect("a reply").0)).collect();
    assert_eq!(ticks, [Some(1), None, Some(2), None, Some(3)]);
}

/// A reply that is asked for early is of the record that was written in the end, also where another writer was first.
#[test]
fn a_reply_is_of_the_record_that_was_written() {
    let (dir, store) = place();
    let other = || Shared::new(Box::new(Embedded::open(dir.path(), Options::untagged()).expect("a store")));
    let mut first = writer(&store, 100);
    let asks = line(r#"{"type":"action.request","action":{"tool":"pay","params":{}}}"#);
    for line in [&line_of("plan.update"), &asks] {
        let TakenLine::Later(reply) = first.take_later(line, false).expect("the line is taken") else {
            panic!("the line waits to be written out")
        };
        first.judge_waiting();
        let (before, is_final) = reply.get().expect("the line is judged");
        assert!(!is_final);
        writer(&other(), 1).take(&line_of("observation.add")).expect("the line is taken");
        first.write_out().expect("the line is written");
        let (after, is_final) = reply.get().expect("the line is judged");
        assert!(is_final);
        assert_eq!(tick(&after), tick(&before).map(|tick| tick + 1));
        let id = after.records().next().expect("a record").id();
        assert!(store.find(&id).expect("the store is read").is_some());
    }
}
