//! An export after an erasure: nothing from which the erased value can be guessed.

use std::fs;
use std::path::Path;

use dendrer::ask::fleet::{FleetOutcome, FleetQuestion};
use dendrer_fleet::{FleetTerms, ask, check};
use dendrer_kernel::predicate::Polarity;
use dendrer_kernel::step::Start;
use dendrer_object::{Digest, Intent, Value, json};
use dendrer_testkit::run_name;
use tempfile::TempDir;

use crate::made::{erase, exported, opened, small, store, v};

/// Everything that an export says of rows, decompressed, as text and as bytes of ids.
fn said(dir: &Path) -> Vec<u8> {
    let mut all = fs::read(dir.join("dendrer-export.json")).unwrap();
    for part in ["ticks", "runs", "entries"] {
        for entry in fs::read_dir(dir.join(part)).unwrap() {
            let file = fs::File::open(entry.unwrap().path()).unwrap();
            let reader =
                parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
            for batch in reader.build().unwrap() {
                for column in batch.unwrap().columns() {
                    all.extend(format!("{column:?}").into_bytes());
                    for buffer in column.to_data().buffers() {
                        all.extend_from_slice(buffer.as_slice());
                    }
                }
            }
        }
    }
    all
}

fn has(all: &[u8], part: &[u8]) -> bool {
    all.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_guesser_finds_nothing_of_an_erased_value() {
    let repo = dendrer::Repo::in_memory(dendrer::redact::RedactionProfile::None).unwrap();
    let mut start = Start::new(run_name("r"));
    start.state = v(r#"{"n":0}"#);
    let mut recorder = repo.begin(&start).unwrap();
    for line in [
        r#"{"type":"observation.add","delta":[{"set":"/n","value":1}]}"#,
        r#"{"type":"observation.add","delta":[{"set":"/pin","value":73951}]}"#,
        r#"{"type":"observation.add","delta":[{"add":"/n","value":1}]}"#,
    ] {
        recorder.propose(&Intent::from_value(&v(line), Some("a")).unwrap()).unwrap();
    }
    recorder.commit().unwrap();
    let dir = TempDir::new().unwrap();
    let (before, after) = (dir.path().join("before"), dir.path().join("after"));
    let terms = FleetTerms { states: true, ..small() };
    exported(&repo, &before, &terms).unwrap();
    erase(&repo, "r@2", "state.pin").unwrap();
    exported(&repo, &after, &terms).unwrap();
    let (old, new) = (said(&before), said(&after));
    // Each guess is tried as text, as a number, and as the digest of the state that it would make.
    let tries = |guess: i64| {
        let states = [1, 2].map(|n| v(&format!(r#"{{"n":{n},"pin":{guess}}}"#)));
        let mut tries = vec![guess.to_string().into_bytes(), guess.to_le_bytes().to_vec()];
        tries.extend(states.iter().map(|state| state.digest().0.to_vec()));
        tries.extend(states.iter().map(|state| Digest::of(&json::to_vec(state)).0.to_vec()));
        tries.push(Value::from(guess).digest().0.to_vec());
        tries
    };
    assert!(tries(73951).iter().filter(|part| has(&old, part)).count() >= 4, "the guesser can find");
    for part in tries(73951) {
        assert!(!has(&new, &part), "{}", String::from_utf8_lossy(&part));
    }
    let question =
        FleetQuestion { polarity: Polarity::Holds, text: "state.n < 2".to_owned(), from: None, to: None };
    let reply = ask(&opened(&after), &question).unwrap();
    assert_eq!((reply.runs[0].outcome, reply.runs[0].first_unknown), (FleetOutcome::Uncertain, Some(2)));
    assert_eq!(reply.unjudged(), 1);
    let store = store(&repo);
    assert!(
        !check(&before, Some(&store)).unwrap().rewrite.is_empty(),
        "the older export is to be written again"
    );
    assert!(check(&after, Some(&store)).unwrap().rewrite.is_empty());
    assert!(check(&after, Some(&store)).unwrap().is_whole());
}
