//! Exports that were killed, cut, doubled, exchanged or made up.

use std::fs;
use std::path::Path;

use dendrer::ask::fleet::{FleetQuestion, NotExported};
use dendrer_fleet::{FleetError, FleetTerms, MANIFEST, Manifest, ask, check, export};
use dendrer_kernel::predicate::Polarity;
use dendrer_object::{Code, Digest};
use dendrer_testkit::Dice;
use tempfile::TempDir;

use crate::made::{exported, generated, opened, small, store};

fn question(text: &str) -> FleetQuestion {
    FleetQuestion { polarity: Polarity::Holds, text: text.to_owned(), from: None, to: None }
}

/// Every file of a directory with its bytes.
fn bytes_of(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for part in ["", "ticks", "runs", "entries"] {
        for entry in fs::read_dir(dir.join(part)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                found.push((path.strip_prefix(dir).unwrap().display().to_string(), fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn export_killed_at_any_file_gives_the_same_bytes() {
    let (repo, dir) = (generated(7), TempDir::new().unwrap());
    let whole = dir.path().join("whole");
    let files = exported(&repo, &whole, &small()).unwrap().manifest.files.len();
    assert!(files > 4, "{files}");
    for killed in 1..=files {
        let cut = dir.path().join(format!("cut-{killed}"));
        let mut left = killed;
        let stopped = export(&store(&repo), &[], &cut, &small(), &mut |file| {
            left -= 1;
            match left {
                0 => Err(FleetError::Unfinished { dir: file.file.clone().into() }),
                _ => Ok(()),
            }
        });
        assert!(stopped.is_err());
        // A file that was being written is left behind as well.
        fs::write(cut.join("ticks/00009.parquet.part"), b"PAR1").unwrap();
        let error = dendrer_fleet::FleetReader::open(&cut).unwrap_err();
        assert_eq!(error.code(), Code::E0821, "{error}");
        assert!(!cut.join(MANIFEST).exists());
        let report = exported(&repo, &cut, &small()).unwrap();
        assert_eq!(report.kept, killed as u64);
        assert_eq!(bytes_of(&cut), bytes_of(&whole), "killed at file {killed}");
    }
}

#[test]
fn an_export_of_a_log_that_went_on_keeps_no_file_of_the_old_one() {
    let (repo, dir) = (generated(8), TempDir::new().unwrap());
    let (again, fresh) = (dir.path().join("again"), dir.path().join("fresh"));
    exported(&repo, &again, &small()).unwrap();
    let start = dendrer_kernel::step::Start::new(dendrer_testkit::run_name("later"));
    repo.begin(&start).unwrap().commit().unwrap();
    assert_eq!(exported(&repo, &again, &small()).unwrap().kept, 0);
    exported(&repo, &fresh, &small()).unwrap();
    assert_eq!(bytes_of(&again), bytes_of(&fresh));
}

#[test]
fn a_directory_of_something_else_is_not_written_into() {
    let (repo, dir) = (generated(8), TempDir::new().unwrap());
    fs::write(dir.path().join("notes.txt"), b"mine").unwrap();
    let error = exported(&repo, dir.path(), &small()).unwrap_err();
    assert!(matches!(error, FleetError::NotOurs { .. }), "{error}");
    let other = dir.path().join("other");
    exported(&generated(9), &other, &small()).unwrap();
    let before = bytes_of(&other);
    assert!(matches!(exported(&repo, &other, &small()).unwrap_err(), FleetError::NotOurs { .. }));
    assert_eq!(bytes_of(&other), before);
}

/// Asks, and returns the error, which must name a file.
fn refused(dir: &Path) -> String {
    let asked =
        dendrer_fleet::FleetReader::open(dir).and_then(|export| ask(&export, &question("state.n <= 4")));
    match asked {
        Err(error @ FleetError::Damaged { .. }) => error.to_string(),
        other => panic!("answered: {other:?}"),
    }
}

#[test]
fn damaged_files_are_named_and_never_answered_from() {
    let (repo, dir) = (generated(7), TempDir::new().unwrap());
    let whole = dir.path().join("e");
    exported(&repo, &whole, &small()).unwrap();
    let manifest = opened(&whole).manifest;
    let files: Vec<String> = manifest
        .files
        .iter()
        .map(|file| file.file.clone())
        .filter(|file| !file.starts_with("entries"))
        .collect();
    let mut dice = Dice(1);
    for file in &files {
        let path = whole.join(file);
        let bytes = fs::read(&path).unwrap();
        for way in 0..12 {
            let mut altered = bytes.clone();
            match way {
                0 => altered.truncate(bytes.len() / 2),
                1 => altered.clear(),
                2 => altered.extend_from_slice(&bytes),
                3 => {
                    altered =
                        fs::read(whole.join(files.iter().find(|other| *other != file).unwrap())).unwrap()
                }
                _ => {
                    let at = dice.below(bytes.len() as u64) as usize;
                    altered[at] ^= 1 << dice.below(8);
                }
            }
            fs::write(&path, &altered).unwrap();
            assert!(refused(&whole).starts_with(file), "{file}, way {way}");
            let checked = check(&whole, None).unwrap();
            assert!(checked.files.iter().any(|one| one.file == *file && one.why.is_some()), "{file}");
        }
        fs::remove_file(&path).unwrap();
        assert!(refused(&whole).contains("missing"));
        fs::write(&path, &bytes).unwrap();
    }
    assert!(check(&whole, None).unwrap().is_rooted);
    ask(&opened(&whole), &question("state.n <= 4")).unwrap();
    fs::copy(whole.join(&files[1]), whole.join("ticks/99999.parquet")).unwrap();
    assert!(!check(&whole, None).unwrap().is_whole(), "a foreign file is named");
    ask(&opened(&whole), &question("state.n <= 4"))
        .expect("a file that the manifest does not name is not read");
}

/// Whoever can write the files can write the manifest as well: then rows must still fit the runs, and nothing panics.
#[test]
fn made_up_files_under_a_manifest_that_fits_are_refused_or_decoded() {
    let (repo, dir) = (generated(7), TempDir::new().unwrap());
    let whole = dir.path().join("e");
    exported(&repo, &whole, &small()).unwrap();
    let manifest = opened(&whole).manifest;
    let honest = ask(&opened(&whole), &question("state.n <= 4")).unwrap();
    let mut dice = Dice(2);
    let mut refused = 0;
    for round in 0..400 {
        let mut made: Manifest = manifest.clone();
        let number = dice.below(made.files.len() as u64) as usize;
        let path = whole.join(&made.files[number].file);
        let bytes = fs::read(&path).unwrap();
        let mut altered = bytes.clone();
        match round % 4 {
            0 => altered.truncate(dice.below(bytes.len() as u64) as usize),
            _ => {
                for _ in 0..1 + dice.below(6) {
                    let at = dice.below(bytes.len() as u64) as usize;
                    altered[at] = dice.next() as u8;
                }
            }
        }
        fs::write(&path, &altered).unwrap();
        (made.files[number].bytes, made.files[number].sha256) = (altered.len() as u64, Digest::of(&altered));
        fs::write(whole.join(MANIFEST), made.to_bytes()).unwrap();
        match ask(&opened(&whole), &question("state.n <= 4")) {
            Err(FleetError::Damaged { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
            Ok(reply) => assert_eq!(reply.runs.len(), honest.runs.len()),
        }
        fs::write(&path, &bytes).unwrap();
    }
    assert!(refused > 100, "{refused}");
    // Rows of the right form in the wrong place.
    let ticks: Vec<usize> =
        (0..manifest.files.len()).filter(|at| manifest.files[*at].file.starts_with("ticks")).collect();
    let mut swapped = manifest.clone();
    swapped.files.swap(ticks[0], ticks[1]);
    let mut doubled = manifest.clone();
    doubled.files.insert(ticks[1], manifest.files[ticks[0]].clone());
    let mut missing = manifest.clone();
    missing.files.remove(ticks[0]);
    for made in [swapped, doubled, missing] {
        fs::write(whole.join(MANIFEST), made.to_bytes()).unwrap();
        let error = ask(&opened(&whole), &question("state.n <= 4")).unwrap_err();
        assert!(matches!(error, FleetError::Damaged { .. }), "{error}");
    }
}

#[test]
fn questions_that_an_export_cannot_answer_are_refused() {
    let (repo, dir) = (generated(7), TempDir::new().unwrap());
    let narrow = dir.path().join("e");
    let terms = FleetTerms { columns: vec!["n".to_owned()], ..small() };
    exported(&repo, &narrow, &terms).unwrap();
    let export = opened(&narrow);
    assert_eq!(export.manifest.columns.len(), 1);
    for text in [
        "t.type != \"plan.update\"",
        "state.commitments.C1.status == \"active\"",
        "state.counters.tool_calls < 2",
    ] {
        let error = ask(&export, &question(text)).unwrap_err();
        let is_refused =
            matches!(&error, FleetError::NotExported(error) if !matches!(error, NotExported::Expr(_)));
        assert!(is_refused, "{text}: {error}");
        assert_eq!(error.code(), Code::E0822);
    }
    assert!(matches!(
        ask(&export, &question("state.n <")).unwrap_err(),
        FleetError::NotExported(NotExported::Expr(_))
    ));
    let named = FleetQuestion {
        polarity: Polarity::Condition,
        text: "kernel.anomaly_free".to_owned(),
        from: None,
        to: None,
    };
    assert_eq!(ask(&export, &named).unwrap_err().code(), Code::E0822);
}
