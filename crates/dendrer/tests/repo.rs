//! A Rust program that uses [`Repo`] alone has every protection that the `dendrer` program has.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that cannot go on stops; a child prints what it was told"
)]

use std::io::{BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use dendrer::address::Address;
use dendrer::bisect::{BisectOutcome, BisectSubject, Range, bisect};
use dendrer::error::Error;
use dendrer::kernel::predicate::Predicate;
use dendrer::kernel::step::{Outcome, Start};
use dendrer::registry::{MonotoneEvidence, Registry};
use dendrer::repo::{Mode, Repo, Signed, Warning};
use dendrer::store::prelude::*;
use dendrer::store::{Memory, StoreError, WriterSecret};
use dendrer::trust::{MemoryTrust, Trust, UserTrust};
use dendrer::verify::{VerifyTerms, VerifyVerdict};
use dendrer::watch::Watch;
use dendrer_object::delta::Op;
use dendrer_object::record::Entry;
use dendrer_object::{Code, Delta, Intent, Pointer, RunName, Value};
use dendrer_testkit::history::{Attempt, Told, check};

fn step() -> Intent {
    Intent::new("plan.update".parse().unwrap(), "agent")
}

fn name(text: &str) -> RunName {
    text.parse().unwrap()
}

/// Both kinds of trust, each with a directory for the store.
fn trusts() -> [(Arc<dyn Trust>, tempfile::TempDir); 2] {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let user: Arc<dyn Trust> = Arc::new(UserTrust::at(dirs[1].path().join("config")));
    let [first, second] = dirs;
    [(Arc::new(MemoryTrust::new()), first), (user, second)]
}

/// Makes a store with a run of so many ticks, signed.
fn made(dir: &Path, trust: &Arc<dyn Trust>, ticks: u64) -> PathBuf {
    let path = dir.join(".dendrer");
    let repo = Repo::init(&path, Arc::clone(trust)).unwrap();
    record(&repo, "r", ticks);
    assert!(matches!(repo.close().unwrap(), Signed::UpTo { not_remembered: None, .. }));
    path
}

fn record(repo: &Repo, run: &str, ticks: u64) {
    let mut recorder = match repo.run(&name(run)) {
        Ok(_) => repo.recorder(&name(run)).unwrap(),
        Err(_) => repo.begin(&Start::new(name(run))).unwrap(),
    };
    for _ in 0..ticks {
        assert!(matches!(recorder.propose(&step()).unwrap(), Outcome::Committed(_)));
    }
    recorder.commit().unwrap();
}

fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_dir(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[test]
fn what_is_recorded_is_read_by_address() {
    for (trust, dir) in trusts() {
        let path = made(dir.path(), &trust, 3);
        assert_eq!(Repo::find(dir.path()).unwrap(), path);
        let repo = Repo::open(&path, trust, Mode::Read).unwrap();
        assert!(repo.warnings().is_empty());
        assert_eq!(repo.runs().unwrap().len(), 1);
        let (trace, tick) = repo.at(&Address::parse("r@-1").unwrap()).unwrap();
        assert_eq!((trace.name().as_str(), trace.tip(), tick), ("r", 3, Some(2)));
        let short = trace.record(2).unwrap().id().short();
        assert_eq!(repo.at(&Address::parse(&short).unwrap()).unwrap().1, Some(2));
        let error = repo.at(&Address::parse("q@2").unwrap()).unwrap_err();
        assert_eq!(error.code(), "E0101");
        // A dry run: proposals are judged, and cannot be committed.
        let mut recorder = repo.recorder(&name("r")).unwrap();
        assert!(matches!(recorder.propose(&step()).unwrap(), Outcome::Committed(_)));
        assert_eq!(recorder.commit().unwrap_err().code(), "E0805");
    }
}

#[test]
fn an_older_store_is_read_and_never_written_or_signed() {
    for (trust, dir) in trusts() {
        let path = made(dir.path(), &trust, 3);
        let old = dir.path().join("old");
        copy_dir(&path, &old);
        let repo = Repo::open(&path, Arc::clone(&trust), Mode::Write).unwrap();
        record(&repo, "r", 2);
        repo.close().unwrap();

        let error = Repo::open(&old, Arc::clone(&trust), Mode::Write).unwrap_err();
        assert!(matches!(error, Error::AnotherLog { committed: false, .. }), "{error}");
        assert_eq!(error.code(), "E0307");
        let repo = Repo::open(&old, Arc::clone(&trust), Mode::Read).unwrap();
        assert!(matches!(repo.warnings(), [Warning::AnotherLog(why)] if why.had == why.has + 2));
        assert_eq!(repo.run(&name("r")).unwrap().tip(), 3);
        assert_eq!(repo.sign().unwrap_err().code(), "E0805");
    }
}

#[test]
fn a_store_that_was_rolled_back_while_it_was_open_is_not_signed() {
    for (trust, dir) in trusts() {
        let path = made(dir.path(), &trust, 1);
        let copy = dir.path().join("copy");
        copy_dir(&path, &copy);
        // Both are the log that was signed when they are opened. The second one is signed first.
        let first = Repo::open(&path, Arc::clone(&trust), Mode::Write).unwrap();
        let second = Repo::open(&copy, Arc::clone(&trust), Mode::Write).unwrap();
        record(&second, "b", 3);
        second.close().unwrap();
        record(&first, "a", 1);
        let error = first.close().unwrap_err();
        assert!(matches!(error, Error::AnotherLog { .. }), "{error}");
    }
}

/// Puts an older copy in the place of a store: other files, or the same files with other bytes.
fn roll_back(path: &Path, old: &Path, same_files: bool) {
    if !same_files {
        std::fs::remove_dir_all(path).unwrap();
    }
    copy_dir(old, path);
}

/// Verifies all of a store as a caller of the library does.
fn verdict(repo: &Repo) -> (VerifyVerdict, Vec<Code>) {
    let report = repo.verify(&VerifyTerms::default(), &mut ()).unwrap();
    (report.verdict, report.findings.iter().map(|finding| finding.code).collect())
}

#[test]
fn a_rolled_back_store_is_never_intact() {
    for (trust, dir) in trusts() {
        let path = made(dir.path(), &trust, 3);
        let old = dir.path().join("old");
        copy_dir(&path, &old);
        let repo = Repo::open(&path, Arc::clone(&trust), Mode::Write).unwrap();
        // The head that this machine signed lies with the key: it is no witness.
        assert_eq!(verdict(&repo), (VerifyVerdict::Intact, Vec::new()));
        record(&repo, "r", 2);
        repo.close().unwrap();
        roll_back(&path, &old, false);
        let repo = Repo::open(&path, Arc::clone(&trust), Mode::Read).unwrap();
        assert_eq!(verdict(&repo), (VerifyVerdict::Tampered, vec![Code::E0307]));
        // A caller without the head knows nothing else.
        let stranger = Repo::open(&path, Arc::new(MemoryTrust::new()), Mode::Read).unwrap();
        assert_eq!(verdict(&stranger).0, VerifyVerdict::Intact);
        // A head that the caller keeps is held against it as well.
        let head = trust.head(repo.info().id).unwrap().unwrap();
        let pinned = vec![(head.size, head.root)];
        let question = VerifyTerms { pinned, ..VerifyTerms::default() };
        assert_eq!(stranger.verify(&question, &mut ()).unwrap().verdict, VerifyVerdict::Tampered);
        // A store of any kind is held to what was signed.
        let store: Box<dyn dendrer::store::Store> = Box::new(
            dendrer::store::Embedded::open(&path, dendrer::store::embedded::Options::untagged()).unwrap(),
        );
        assert!(matches!(Repo::over(store, Arc::clone(&trust)), Err(Error::AnotherLog { .. })));
    }
}

#[test]
fn a_reader_notices_a_rollback_under_it() {
    for ((trust, dir), same_files) in trusts().into_iter().zip([true, false]) {
        let path = made(dir.path(), &trust, 3);
        let old = dir.path().join("old");
        copy_dir(&path, &old);
        let reader = Repo::open(&path, Arc::clone(&trust), Mode::Read).unwrap();
        let repo = Repo::open(&path, Arc::clone(&trust), Mode::Write).unwrap();
        record(&repo, "r", 2);
        repo.close().unwrap();
        // By its own size.
        let own = Repo::open(&path, Arc::new(MemoryTrust::new()), Mode::Read).unwrap();
        let trace = own.run(&name("r")).unwrap();
        assert_eq!(trace.tip(), 5);
        roll_back(&path, &old, same_files);
        let error = own.run(&name("r")).unwrap_err();
        assert!(matches!(error, Error::AnotherLog { why, .. } if why.had == why.has + 2), "{error}");
        // By what was signed since it was opened.
        let error = reader.run(&name("r")).unwrap_err();
        assert!(matches!(error, Error::AnotherLog { why, .. } if why.had == why.has + 2), "{error}");
        // One that was opened after the rollback says so once, and reads.
        let late = Repo::open(&path, Arc::clone(&trust), Mode::Read).unwrap();
        assert!(matches!(late.warnings(), [Warning::AnotherLog(_)]));
        assert_eq!(late.run(&name("r")).unwrap().tip(), 3);
    }
}

#[test]
fn a_range_that_is_not_in_the_run_is_refused() {
    let (trust, dir) = trusts().into_iter().next().unwrap();
    let repo = Repo::open(&made(dir.path(), &trust, 3), trust, Mode::Read).unwrap();
    let trace = repo.run(&name("r")).unwrap();
    let questions = [
        BisectSubject::Predicate(Predicate::holds("p", "state.risk <= 1.0").unwrap().lifted()),
        BisectSubject::Predicate(Predicate::built_in("kernel.anomaly_free").unwrap()),
        BisectSubject::PolicyFlip("plan.update".parse().unwrap()),
    ];
    for question in questions {
        let code =
            |from, to| bisect(&trace, &question, &Range::new(from, to)).err().map(|error| error.code());
        assert_eq!(code(0, 3), None);
        assert_eq!(code(3, 3), None);
        assert_eq!(code(2, 1), Some(Code::E0106));
        assert_eq!(code(u64::MAX, 1), Some(Code::E0106));
        assert_eq!(code(0, 4), Some(Code::E0102));
        assert_eq!(code(5, 4), Some(Code::E0102));
        assert_eq!(code(0, u64::MAX), Some(Code::E0102));
    }
}

#[test]
fn a_run_that_exists_is_refused_when_it_begins() {
    let (trust, dir) = trusts().into_iter().next().unwrap();
    let repo = Repo::open(&made(dir.path(), &trust, 1), trust, Mode::Write).unwrap();
    assert_eq!(repo.begin(&Start::new(name("r"))).unwrap_err().code(), "E0111");
    // One that another handle begins meanwhile is found by the commit.
    let mut first = repo.begin(&Start::new(name("s"))).unwrap();
    record(&repo, "s", 1);
    assert_eq!(first.propose(&step()).map(drop).and_then(|()| first.commit()).unwrap_err().code(), "E0111");
}

#[test]
fn what_a_caller_says_of_a_predicate_is_not_believed() {
    let (trust, dir) = trusts().into_iter().next().unwrap();
    let path = made(dir.path(), &trust, 0);
    let repo = Repo::open(&path, trust, Mode::Write).unwrap();
    let mut recorder = repo.recorder(&name("r")).unwrap();
    for wave in [0.9, 0.1, 0.9, 0.1, 0.9, 0.9, 0.9, 0.9] {
        let delta = Delta(vec![Op::set(Pointer::of(["wave"]), Value::from(wave))]);
        recorder.propose(&step().with_delta(delta)).unwrap();
    }
    recorder.commit().unwrap();
    let wave = Predicate::condition("acme.wave", "state.wave > 0.5").unwrap().monotone_by_text();
    let done = repo.register(&wave, Vec::new()).unwrap();
    assert!(done.changed && done.entry.known == MonotoneEvidence::Untested);
    let registry = Registry::read(&repo.reader().unwrap()).unwrap();
    let read = registry.newest("acme.wave").unwrap();
    for predicate in [&wave, &read.predicate] {
        let question = BisectSubject::Predicate(predicate.clone().named("acme.wave", "v1"));
        let outcome = repo.run(&name("r")).unwrap().bisect(&question).unwrap().outcome;
        assert!(matches!(outcome, BisectOutcome::Recovers(_) | BisectOutcome::Uncertain(..)), "{outcome:?}");
    }
    // One whose text shows it is known without samples.
    let rising = Predicate::condition("acme.long", "state.counters.transitions > 5").unwrap();
    assert_eq!(repo.register(&rising, Vec::new()).unwrap().entry.known, MonotoneEvidence::ByConstruction);
    assert!(!repo.register(&rising, Vec::new()).unwrap().changed);
    // Names and versions.
    for bad in ["", "plain", "kernel.policy_compliant", "state.risk"] {
        let error = repo.register(&wave.clone().named(bad, "v1"), Vec::new()).unwrap_err();
        assert_eq!(error.code(), "E0513", "{bad}");
    }
    let other = Predicate::condition("acme.wave", "state.wave > 0.6").unwrap();
    assert_eq!(repo.register(&other, Vec::new()).unwrap_err().code(), "E0514");
    assert_eq!(
        repo.register(&other.named("acme.wave", ""), Vec::new()).unwrap().entry.predicate.version(),
        "v2"
    );
    assert!(repo.retire("acme.wave").unwrap().is_some());
    assert!(repo.retire("acme.wave").unwrap().is_none());
    assert!(repo.retire("acme.none").unwrap().is_none());
}

#[test]
fn with_the_secret_of_a_writer_a_log_is_written_and_not_signed() {
    for (trust, dir) in trusts() {
        let path = made(dir.path(), &trust, 1);
        let stranger: Arc<dyn Trust> = Arc::new(MemoryTrust::new());
        let repo = Repo::open(&path, stranger, Mode::Write).unwrap();
        let before = repo.reader().unwrap().tree();
        let start = Start::new("r".parse().unwrap());
        assert_eq!(repo.begin(&start).unwrap_err().code(), "E0804", "neither key nor secret");
        assert_eq!(repo.reader().unwrap().tree(), before);
        let key = trust.key(repo.info()).unwrap().unwrap();
        let writer = MemoryTrust::new();
        writer.keep_writer(repo.info().id, WriterSecret::of(&key));
        let repo = Repo::open(&path, Arc::new(writer), Mode::Write).unwrap();
        record(&repo, "r", 1);
        assert!(matches!(repo.close().unwrap(), Signed::NoKey));
        // Its owner signs what followed.
        let repo = Repo::open(&path, trust, Mode::Write).unwrap();
        let Signed::UpTo { note, .. } = repo.sign().unwrap() else { panic!("the key is here") };
        assert!(note.text().contains("\n4\n"), "{}", note.text());
    }
}

#[test]
fn init_keeps_no_key_if_no_store_was_made() {
    let dir = tempfile::tempdir().unwrap();
    let trust: Arc<dyn Trust> = Arc::new(UserTrust::at(dir.path().join("config")));
    let file = dir.path().join("file");
    std::fs::write(&file, b"in the way").unwrap();
    assert_eq!(Repo::init(&file, Arc::clone(&trust)).unwrap_err().code(), "E0801");
    assert_eq!(std::fs::read_dir(dir.path().join("config/keys")).unwrap().count(), 0);
    let path = made(dir.path(), &trust, 0);
    assert_eq!(Repo::init(&path, trust).unwrap_err().code(), "E0110");
}

#[test]
fn a_repo_is_over_any_store_and_is_held_to_what_was_signed() {
    let trust: Arc<dyn Trust> = Arc::new(MemoryTrust::new());
    let info = dendrer_testkit::info(1);
    trust.keep_key(info.id, &Arc::new(dendrer_testkit::key(1))).unwrap();
    let repo = Repo::over(Box::new(Memory::new(info.clone())), Arc::clone(&trust)).unwrap();
    record(&repo, "r", 2);
    assert!(matches!(repo.sign().unwrap(), Signed::UpTo { .. }));
    assert_eq!(repo.run(&name("r")).unwrap().tip(), 2);
    // An empty store of the same id has lost what was signed.
    let error = Repo::over(Box::new(Memory::new(info)), trust).unwrap_err();
    assert!(matches!(error, Error::AnotherLog { .. }), "{error}");
}

#[test]
fn a_cancelled_read_is_an_error_and_no_shorter_answer() {
    let dir = tempfile::tempdir().unwrap();
    let trust: Arc<dyn Trust> = Arc::new(MemoryTrust::new());
    let path = made(dir.path(), &trust, 50);
    let repo = Repo::open(&path, trust, Mode::Read).unwrap();
    let watch = Watch::new();
    let trace = repo.watched(watch.clone()).run(&name("r")).unwrap().without_snapshots();
    assert!(trace.state(50).is_ok());
    assert!(watch.done() >= 50, "{}", watch.done());
    watch.cancel();
    let trace = trace.without_snapshots();
    for error in [trace.state(50).unwrap_err(), trace.record(7).unwrap_err()] {
        assert!(matches!(error, Error::Store(StoreError::Cancelled)), "{error}");
    }
    // Another handle of the same store reads on.
    assert_eq!(repo.run(&name("r")).unwrap().record(7).unwrap().header().tick, Some(7));
}

#[test]
fn a_trace_stays_as_it_was_while_the_run_goes_on() {
    for (trust, dir) in trusts() {
        let path = made(dir.path(), &trust, 3);
        let repo = Repo::open(&path, Arc::clone(&trust), Mode::Write).unwrap();
        let reader = Repo::open(&path, trust, Mode::Read).unwrap();
        let (own, other) = (repo.run(&name("r")).unwrap(), reader.run(&name("r")).unwrap());
        let worker = std::thread::spawn({
            let trace = other.clone();
            move || (trace.tip(), trace.state(3).unwrap())
        });
        record(&repo, "r", 2);
        assert_eq!((own.tip(), other.tip()), (3, 3));
        assert_eq!(worker.join().unwrap(), (3, own.state(3).unwrap()));
        assert_eq!(repo.run(&name("r")).unwrap().tip(), 5);
        assert_eq!(reader.run(&name("r")).unwrap().tip(), 5);
    }
}

/// Nanoseconds on the one clock that all processes of the machine read.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64
}

/// Commits steps to a shared run and to one of its own, and returns what it was told.
fn write(repo: &Repo, writer: u64, commits: u64) -> Vec<Attempt> {
    let own = name(&format!("own-{writer}"));
    let mut attempts = Vec::new();
    let mut recorder = repo.begin(&Start::new(own)).unwrap();
    attempts.push(attempt(|| recorder.commit()));
    for _ in 0..commits {
        recorder.propose(&step()).unwrap();
        attempts.push(attempt(|| recorder.commit()));
        let mut shared = repo.recorder(&name("shared")).unwrap();
        shared.propose(&step()).unwrap();
        shared.propose(&step()).unwrap();
        // Another writer may come first: this one is told so and begins again.
        let begin = now();
        match shared.commit() {
            Ok(records) => attempts.push(Attempt {
                time: begin..now(),
                group: records.iter().map(|record| record.id()).collect(),
                told: Told::Committed(positions(repo, &records)),
            }),
            Err(Error::Store(StoreError::Stale { .. })) => {}
            Err(error) => panic!("{error}"),
        }
    }
    // What was recorded here is placed in the log afterwards.
    attempts
        .into_iter()
        .map(|mut attempt| {
            if let Told::Committed(at) = &mut attempt.told
                && at.is_empty()
            {
                let first = repo.writer().unwrap().find(&attempt.group[0]).unwrap().unwrap();
                *at = first..first + attempt.group.len() as u64;
            }
            attempt
        })
        .collect()
}

fn positions(repo: &Repo, records: &[dendrer_object::Record]) -> std::ops::Range<u64> {
    let first = repo.writer().unwrap().find(&records[0].id()).unwrap().unwrap();
    first..first + records.len() as u64
}

fn attempt(commit: impl FnOnce() -> Result<Vec<dendrer_object::Record>, Error>) -> Attempt {
    let begin = now();
    let records = commit().unwrap();
    // Where they are in the log is filled in later, so that looking does not belong to the call.
    Attempt {
        time: begin..now(),
        group: records.iter().map(|record| record.id()).collect(),
        told: Told::Committed(0..0),
    }
}

const CHILD: &str = "DENDRER_TEST_REPO_WRITER";

fn open(place: &Path) -> Repo {
    let trust = Arc::new(UserTrust::at(place.join("config")));
    Repo::open(&place.join(".dendrer"), trust, Mode::Write).unwrap()
}

/// Writes as the environment says, and prints what it was told; does nothing as a test of its own.
#[test]
fn child_that_writes_through_a_repo() {
    let Ok(place) = std::env::var(CHILD) else { return };
    let repo = open(Path::new(&place));
    std::thread::scope(|scope| {
        for writer in [2, 3] {
            let repo = repo.clone();
            scope.spawn(move || {
                let lines: String =
                    write(&repo, writer, 20).iter().map(|attempt| format!("attempt {attempt}\n")).collect();
                print!("{lines}");
            });
        }
    });
    assert!(matches!(repo.close().unwrap(), Signed::UpTo { .. }));
}

#[test]
fn two_threads_in_each_of_two_processes_pass_the_checker_of_histories() {
    let dir = tempfile::tempdir().unwrap();
    let trust: Arc<dyn Trust> = Arc::new(UserTrust::at(dir.path().join("config")));
    let repo = Repo::init(&dir.path().join(".dendrer"), trust).unwrap();
    record(&repo, "shared", 1);
    let before = repo.writer().unwrap().tree().size;
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_writes_through_a_repo", "--nocapture"])
        .env(CHILD, dir.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut attempts: Vec<Attempt> = std::thread::scope(|scope| {
        let writers: Vec<_> = [0, 1]
            .map(|writer| {
                let repo = repo.clone();
                scope.spawn(move || write(&repo, writer, 20))
            })
            .into_iter()
            .collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    attempts.extend(lines.filter_map(|line| {
        let at = line.find("attempt ")?;
        Some(line[at + "attempt ".len()..].parse::<Attempt>().unwrap())
    }));
    assert!(child.wait().unwrap().success());
    assert!(matches!(repo.sign().unwrap(), Signed::UpTo { .. }));
    let mut log: Vec<Entry> = Vec::new();
    let reader = repo.reader().unwrap();
    let size = reader.tree().size;
    let read = reader.entries(0..size, &mut |_, entry| {
        log.push(entry);
        ControlFlow::Continue(())
    });
    read.unwrap();
    let found = check(&log, before, &attempts, &[]);
    assert!(found.is_empty(), "{} findings, such as {:#?}", found.len(), &found[..found.len().min(5)]);
    let report = dendrer::verify::store(&reader, &dendrer::verify::VerifyTerms::default()).unwrap();
    assert_eq!(report.findings.len(), 0, "{:?}", report.findings);
}

#[test]
fn runs_that_begin_at_once_have_a_name_each() {
    for (trust, dir) in trusts() {
        let path = made(dir.path(), &trust, 1);
        let begin = |trust: &Arc<dyn Trust>| {
            let repo = Repo::open(&path, Arc::clone(trust), Mode::Write).unwrap();
            (0..3)
                .map(|_| {
                    let mut recorder = repo.begin_free(&Start::new(name("shop"))).unwrap();
                    recorder.propose(&step()).unwrap();
                    recorder.commit().unwrap();
                    recorder.head().run().to_string()
                })
                .collect::<Vec<_>>()
        };
        let mut names: Vec<String> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| begin(&trust))).collect();
            all.into_iter().flat_map(|one| one.join().unwrap()).collect()
        });
        let mut expected: Vec<String> = (2..=24).map(|number| format!("shop+{number}")).collect();
        expected.push("shop".to_owned());
        names.sort();
        expected.sort();
        assert_eq!(names, expected);
        let repo = Repo::open(&path, Arc::clone(&trust), Mode::Read).unwrap();
        for run in &names {
            assert_eq!(repo.run(&name(run)).unwrap().tip(), 1, "{run}");
        }
    }
}

#[test]
fn a_run_does_not_take_the_name_of_the_casebook() {
    for (trust, dir) in trusts() {
        let path = made(dir.path(), &trust, 1);
        let repo = Repo::open(&path, Arc::clone(&trust), Mode::Write).unwrap();
        let error = repo.begin_free(&Start::new(name("casebook"))).unwrap_err();
        assert_eq!(error.code(), Code::E0424, "{error}");
        assert_eq!(repo.runs().unwrap().len(), 1);
    }
}
