//! Verifying a store: of records that somebody reads anyway, the same answer, or none where any of them is missing; and what
//! the system does not let one read is never taken for what is wrong with it.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use dendrer::bundle;
use dendrer::verify::{self, VerifyReading, VerifyTerms, VerifyVerdict};
use dendrer_kernel::step::Start;
use dendrer_object::{Intent, Record, Value};
use dendrer_store::embedded::{Embedded, Options as StoreOptions, VerifyOptions};
use dendrer_store::faulty::{Crash, DiskFault, Faulty};
use dendrer_store::prelude::*;
use dendrer_store::{Shared, Store, StoreError};
use dendrer_testkit::{memory, run_name};

const STEPS: u64 = 700;

fn recorded() -> (Shared, Vec<(u64, Record)>) {
    let store = memory(3);
    let intents = (0..STEPS).map(|_| Intent::new("plan.update".parse().expect("a type"), "a"));
    dendrer_testkit::record(&store, &Start::new(run_name("r")), intents);
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
fn read(
    store: &Shared,
    records: impl IntoIterator<Item = (u64, Record)>,
) -> Option<(VerifyVerdict, u64, String)> {
    let options = VerifyTerms { replay: true, ..VerifyTerms::default() };
    let mut reading = VerifyReading::new(store, &options).expect("a checkpoint");
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
    let options = VerifyTerms { replay: true, ..VerifyTerms::default() };
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
    assert_eq!(read(&store, records).map(|(verdict, ..)| verdict), Some(VerifyVerdict::Tampered));
}

/// Whichever call to the system fails, the answer is that it failed, or the one without the failure.
#[test]
fn no_call_that_failed_is_told_as_damage() {
    let dir = Path::new("/store");
    let options = |disk: &Faulty| StoreOptions {
        disk: Arc::new(disk.clone()),
        index: false,
        segment_size: 6000,
        ..StoreOptions::read()
    };
    let disk = Faulty::new();
    let store =
        Embedded::create(dir, dendrer_testkit::info(3), StoreOptions { write: true, ..options(&disk) })
            .expect("a store")
            .with_key(Some(Arc::new(dendrer_testkit::key(3))));
    let mut store = Shared::new(Box::new(store));
    let intents = (0..30).map(|_| Intent::new("plan.update".parse().expect("a type"), "a"));
    dendrer_testkit::record(&store, &Start::new(run_name("r")), intents);
    store.sign_checkpoint(&dendrer_testkit::key(3)).expect("a signature");
    AppendLog::close(Box::new(store)).expect("closed");
    let verified = |disk: &Faulty| -> Result<(VerifyVerdict, usize), String> {
        let told = |error: StoreError| format!("{} {error}", error.code());
        let store = Arc::new(Embedded::open(dir, options(disk)).map_err(told)?);
        if let Some(trouble) = store.trouble() {
            return Err(format!("{} {trouble}", trouble.code()));
        }
        let files = store.verify(&VerifyOptions::default()).map_err(told)?;
        let report = verify::store(&store, &VerifyTerms::default())
            .map_err(|error| format!("{} {error}", error.code()))?;
        Ok((report.verdict, files.findings.len()))
    };
    let sound = disk.image(disk.moments(), Crash::Process);
    let whole = verified(&sound);
    assert!(matches!(whole, Ok((verdict, 0)) if verdict != VerifyVerdict::Tampered), "{whole:?}");
    let calls = sound.calls();
    assert!(calls > 20, "{calls} calls");
    for kind in [std::io::ErrorKind::Other, std::io::ErrorKind::PermissionDenied] {
        for at in 0..calls {
            for lasting in [false, true] {
                let disk = disk.image(disk.moments(), Crash::Process);
                disk.fail(at, DiskFault::Error(kind), lasting);
                match verified(&disk) {
                    Err(said) => assert!(said.starts_with("E0801"), "call {at}, {kind:?}: {said}"),
                    answer => assert_eq!(answer, whole, "call {at}, {kind:?}"),
                }
            }
        }
    }
}

/// Calls that each hold the whole transcript stand once in a bundle, are held as what they are made of, and are read as they were
/// committed.
#[test]
fn what_calls_share_is_read_as_it_was_committed() {
    let mut store = memory(3);
    let mut transcript = Vec::new();
    let intents: Vec<Intent> = (0..60)
        .map(|turn| {
            transcript.push(Value::from(format!("turn {turn}: {}", "so it went on ".repeat(70))));
            let action = Value::record([("messages", Value::array(transcript.iter().cloned()))]);
            Intent::new("action.request".parse().expect("a type"), "a").with("action", action)
        })
        .collect();
    dendrer_testkit::record(&store, &Start::new(run_name("r")), intents);
    let note = store.sign_checkpoint(&dendrer_testkit::key(3)).expect("a signature");
    let text =
        bundle::export(&store, &[run_name("r")], &note).and_then(|export| export.to_vec()).expect("a bundle");
    assert!(text.len() < 60 * 4000, "{} bytes", text.len());
    let opened = bundle::open("r.dnd".into(), &text[..]).expect("it opens");
    assert_eq!((opened.faults.len(), opened.store.tree()), (0, store.tree()));
    for position in 0..store.tree().size {
        let (was, is) = (store.get(position).expect("read"), opened.store.get(position).expect("read"));
        let said = |record: Option<Record>| record.map(|record| (record.id(), record.content()));
        assert_eq!(said(is), said(was), "record {position}");
    }
    let entries = |store: &dyn Store| {
        let mut entries = Vec::new();
        let all = 0..store.tree().size;
        let each = &mut |_, entry| {
            entries.push(entry);
            ControlFlow::Continue(())
        };
        store.entries(all, each).expect("read");
        entries
    };
    assert_eq!(entries(&*opened.store), entries(&store));
    let report =
        verify::bundle(&opened, &VerifyTerms { replay: true, ..VerifyTerms::default() }).expect("a report");
    assert_ne!(report.verdict, VerifyVerdict::Tampered);
}
