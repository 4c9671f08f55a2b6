//! Verifying a store of records that somebody reads anyway: the same answer, or none where any of them is missing.

use std::ops::ControlFlow;

use dendrer::verify::{self, Options, Reading, Verdict};
use dendrer_kernel::step::Start;
use dendrer_object::{Intent, Record};
use dendrer_store::{Memory, Store};
use dendrer_testkit::{memory, run_name};

const STEPS: u64 = 700;

fn recorded() -> (Memory, Vec<(u64, Record)>) {
    let mut store = memory(3);
    let intents = (0..STEPS).map(|_| Intent::new("plan.update".parse().expect("a type"), "a"));
    dendrer_testkit::record(&mut store, &Start::new(run_name("r")), intents);
    let mut records = Vec::new();
    let all = 0..store.tree().size;
    store
        .scan(all, &mut |position, record| {
            records.push((position, record));
            ControlFlow::Continue(())
        })
        .expect("read");
    (store, records)
}

/// What a reading of these records says: the verdict and how many were opened.
fn read(store: &Memory, records: impl IntoIterator<Item = (u64, Record)>) -> Option<(Verdict, u64, String)> {
    let options = Options { replay: true, ..Options::default() };
    let mut reading = Reading::new(store, &options);
    records.into_iter().for_each(|(position, record)| reading.take(position, record));
    let report = reading.finish().expect("a report")?;
    Some((
        report.verdict,
        report.records,
        format!("{:?}{:?}{:?}", report.runs, report.log, report.not_checked),
    ))
}

#[test]
fn a_reading_of_all_records_is_a_verification_of_the_store() {
    let (store, records) = recorded();
    let options = Options { replay: true, ..Options::default() };
    let report = verify::store(&store, &options).expect("a report");
    let said = format!("{:?}{:?}{:?}", report.runs, report.log, report.not_checked);
    assert_eq!(read(&store, records.clone()), Some((report.verdict, report.records, said)));
    // What others committed meanwhile is behind what the handle sees.
    let more = records.iter().cloned().chain([(records.len() as u64, records[5].1.clone())]);
    assert_eq!(read(&store, more), read(&store, records));
}

#[test]
fn a_reading_that_lacks_a_record_says_nothing() {
    let (store, records) = recorded();
    for at in [0, 1, 255, 256, 500, records.len() - 1] {
        let mut some = records.clone();
        some.remove(at);
        assert_eq!(read(&store, some), None, "without {at}");
        let mut some = records.clone();
        some.insert(at, records[at].clone());
        assert_eq!(read(&store, some), None, "{at} twice");
    }
    let mut some = records;
    some.swap(300, 301);
    assert_eq!(read(&store, some), None);
}

/// A record that is not the one at its place shows, as it does wherever a store is verified.
#[test]
fn a_reading_of_another_record_is_tampered() {
    let (store, mut records) = recorded();
    records[300].1 = records[299].1.clone();
    assert_eq!(read(&store, records).map(|(verdict, ..)| verdict), Some(Verdict::Tampered));
}
