//! Maps: a bundle of one run is seen to be whole, and every record that is left out of it is counted.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer::address::Address;
use dendrer::bundle;
use dendrer::care::export::{ExportError, ExportTerms, plan};
use dendrer::change::fork::ForkTerms;
use dendrer::kernel::step::Start;
use dendrer::object::bundle::{Bundle, LogItem, Sealed};
use dendrer::object::map::LogMap;
use dendrer::object::merkle::{cover, from_leaves, leaf_hash};
use dendrer::object::record::{Body, Kind, Record, Seed, cut};
use dendrer::object::{Code, Intent, Value};
use dendrer::redact::RedactionProfile;
use dendrer::repo::{Mode, Repo};
use dendrer::run::trace::Trace;
use dendrer::store::Memory;
use dendrer::store::prelude::*;
use dendrer::trust::{MemoryTrust, Trust};
use dendrer::verify::facts::{IncompleteRun, MissingRecords, PartialReason};
use dendrer::verify::{self, VerifyReport, VerifyTerms, VerifyVerdict};
use dendrer_testkit::{info, key, records_of, run_name, store_of};

const NONE: MissingRecords = MissingRecords { transitions: 0, refusals: 0, ends: 0, erasures: 0 };

fn repo() -> Repo {
    Repo::in_memory(RedactionProfile::Default).unwrap()
}

/// Records ticks of a run, one intent that is refused, and the end of the run if that is asked for.
fn record(repo: &Repo, run: &str, ticks: u64, refusals: u64, end: bool) {
    let run = run_name(run);
    let mut recorder = match repo.run(&run) {
        Ok(_) => repo.recorder(&run).unwrap(),
        Err(_) => repo.begin(&Start::new(run)).unwrap(),
    };
    for _ in 0..ticks {
        recorder.propose(&Intent::new("plan.update".parse().unwrap(), "agent")).unwrap();
    }
    for _ in 0..refusals {
        recorder.propose(&Intent::new("run.fork".parse().unwrap(), "agent")).unwrap();
    }
    if end {
        recorder.end().unwrap();
    }
    recorder.commit().unwrap();
}

fn exported(repo: &Repo, runs: &[&str]) -> Bundle {
    let runs: Vec<Address> = runs.iter().map(|run| Address::parse(run).unwrap()).collect();
    let mut text = Vec::new();
    let plan = plan(repo, &runs, ExportTerms::default(), &mut ()).unwrap();
    plan.write::<ExportError>(&mut |line| {
        text.extend_from_slice(line);
        Ok(())
    })
    .unwrap();
    Bundle::parse(&text).unwrap()
}

fn report(bundle: &Bundle) -> VerifyReport {
    let text = bundle.write(&|_| vec![0]);
    let opened = bundle::open("x.dnd".into(), &text[..]).unwrap();
    verify::bundle(&opened, &VerifyTerms::default()).unwrap()
}

/// A bundle of the log of a store that has the entries at some positions alone, with all other members as they are.
fn keeping(repo: &Repo, bundle: &Bundle, keep: &BTreeSet<u64>) -> Bundle {
    let records = records_of(&*repo.reader().unwrap());
    let leaves: Vec<_> = records.iter().map(|record| leaf_hash(&record.entry())).collect();
    let (node, mut next) = (from_leaves(&leaves), 0);
    let mut made = Bundle { log: Vec::new(), records: Vec::new(), ..bundle.clone() };
    let omit = |log: &mut Vec<LogItem>, from: u64, to: u64| {
        let hashes = cover(from..to).map(|subtree| node(subtree).unwrap()).collect();
        log.extend((from < to).then_some(LogItem::Omitted { count: to - from, hashes }));
    };
    for position in keep.iter().copied() {
        let record = &records[position as usize];
        omit(&mut made.log, next, position);
        made.log.push(LogItem::Entry(record.log_entry()));
        made.records.push(Sealed::of(record));
        next = position + 1;
    }
    omit(&mut made.log, next, bundle.size);
    made
}

fn kept(bundle: &Bundle) -> BTreeSet<u64> {
    bundle.positions().map(|(position, _)| position).collect()
}

/// The bundle without its last entry of a kind.
fn without(repo: &Repo, bundle: &Bundle, kind: Kind) -> Bundle {
    let mut keep = kept(bundle);
    let last = bundle.positions().filter(|(_, entry)| entry.kind == kind).last().unwrap().0;
    keep.remove(&last);
    keeping(repo, bundle, &keep)
}

fn maps(repo: &Repo) -> Vec<Record> {
    let records = records_of(&*repo.reader().unwrap());
    records.into_iter().filter(|record| record.header().kind == Kind::Map).collect()
}

fn partial(report: &VerifyReport) -> Vec<(&str, PartialReason, Option<MissingRecords>)> {
    let of = |run: &'_ IncompleteRun| (run.why, run.missing);
    report.whole.partial.iter().map(|run| (run.run.as_str(), of(run).0, of(run).1)).collect()
}

fn codes(report: &VerifyReport) -> Vec<Code> {
    report.findings.iter().map(|finding| finding.code).collect()
}

/// Two runs, `w` with four ticks, two refusals (each with a tick of the kernel) and an end.
fn two_runs() -> Repo {
    let repo = repo();
    record(&repo, "w", 4, 2, true);
    record(&repo, "v", 3, 0, false);
    repo
}

#[test]
fn a_bundle_of_one_run_is_whole_by_its_map() {
    let repo = two_runs();
    let bundle = exported(&repo, &["w"]);
    let report = report(&bundle);
    assert_eq!(
        (report.verdict, report.whole.is_complete()),
        (VerifyVerdict::Intact, true),
        "{:?}",
        report.findings
    );
    let map = &maps(&repo)[0];
    assert_eq!(report.whole.map_ts, Some(map.header().ts));
    assert_eq!(report.whole.checkpoint, Some(bundle.size));
    let leaf = &bundle.map.as_ref().unwrap().paths[&run_name("w")].leaf;
    assert_eq!((leaf.transitions, leaf.refusals, leaf.ends, leaf.erasures), (6, 2, 1, 0));
    assert_eq!(LogMap::read(&map.content()).unwrap().size, bundle.size);
    // A store, and a bundle that leaves nothing out, are whole by every entry.
    let all = crate::report(&exported(&repo, &["w", "v"]));
    assert_eq!((all.whole.is_complete(), all.whole.map_ts), (true, None));
}

#[test]
fn what_is_cut_out_is_counted() {
    let repo = two_runs();
    let whole = exported(&repo, &["w"]);
    let cases = [
        (Kind::Refusal, MissingRecords { refusals: 1, ..NONE }),
        (Kind::End, MissingRecords { ends: 1, ..NONE }),
    ];
    for (kind, missing) in cases {
        let mut report = report(&without(&repo, &whole, kind));
        assert!(codes(&report).is_empty(), "{kind}");
        assert_eq!(partial(&report), [("w", PartialReason::Missing, Some(missing))]);
        report.require(true, false, false);
        assert_eq!(report.unmet, [Code::E0312]);
    }
    // The last transition stands before the end, which names it.
    let repo = crate::repo();
    record(&repo, "w", 4, 0, false);
    record(&repo, "v", 3, 0, false);
    let report = report(&without(&repo, &exported(&repo, &["w"]), Kind::Transition));
    let missing = MissingRecords { transitions: 1, ..NONE };
    assert_eq!(
        (codes(&report), partial(&report)),
        (vec![], vec![("w", PartialReason::Missing, Some(missing))])
    );
    assert_eq!((report.verdict, report.runs[0].line.tick), (VerifyVerdict::Intact, 3));
}

#[test]
fn a_record_of_the_log_that_is_cut_out_makes_every_run_partial() {
    let repo = two_runs();
    let report = report(&without(&repo, &exported(&repo, &["w"]), Kind::Key));
    assert_eq!(partial(&report), [("w", PartialReason::Missing, Some(NONE))]);
    assert_eq!((codes(&report), report.whole.apart), (vec![], vec![(Kind::Key, 1)]));
}

#[test]
fn an_older_map_counts_no_newer_records() {
    let repo = two_runs();
    let older = exported(&repo, &["w"]);
    record(&repo, "v", 2, 0, false);
    let newer = exported(&repo, &["w"]);
    let at = |bundle: &Bundle| {
        bundle.positions().find(|(_, entry)| entry.kind == Kind::Map).map(|(position, _)| position).unwrap()
    };
    // The line alone names a map that is not there.
    let line = Bundle { map: older.map.clone(), ..newer.clone() };
    assert_eq!((report(&line).verdict, codes(&report(&line))), (VerifyVerdict::Tampered, vec![Code::E0316]));
    // With its record it is honest, and what follows is not counted.
    let mut keep = kept(&newer);
    keep.insert(at(&older));
    keep.remove(&at(&newer));
    let spliced = report(&keeping(&repo, &line, &keep));
    assert_eq!((codes(&spliced), partial(&spliced)), (vec![], vec![("w", PartialReason::AfterMap, None)]));
    // Paths of the older map do not lead to the newer one.
    let mut paths = newer.clone();
    let old = older.map.unwrap().paths[&run_name("w")].clone();
    paths.map.as_mut().unwrap().paths.insert(run_name("w"), old);
    let report = report(&paths);
    let place = (report.findings[0].code, report.findings[0].run.clone(), report.findings[0].position);
    assert_eq!(place, (Code::E0316, Some(run_name("w")), Some(at(&newer))));
    assert_eq!(report.verdict, VerifyVerdict::Tampered);
}

#[test]
fn a_map_of_another_log_is_tampered() {
    let (bundle, other) = (exported(&two_runs(), &["w"]), exported(&two_runs(), &["w"]));
    let spliced = Bundle { map: other.map, ..bundle };
    let report = report(&spliced);
    assert_eq!((report.verdict, codes(&report)), (VerifyVerdict::Tampered, vec![Code::E0316]));
}

#[test]
fn a_leaf_that_was_changed_is_tampered() {
    let bundle = exported(&two_runs(), &["w"]);
    let with = |change: &dyn Fn(&mut dendrer::object::map::RunPath)| {
        let mut changed = bundle.clone();
        change(changed.map.as_mut().unwrap().paths.get_mut(&run_name("w")).unwrap());
        codes(&report(&changed))
    };
    assert!(with(&|_| ()).is_empty());
    assert_eq!(with(&|path| path.leaf.transitions -= 1), [Code::E0316]);
    assert_eq!(with(&|path| path.leaf.head = path.leaf.begin), [Code::E0316]);
    assert_eq!(with(&|path| path.nodes.clear()), [Code::E0316]);
    assert_eq!(with(&|path| path.nodes[0].bitmap ^= 0xffff), [Code::E0316]);
    assert_eq!(with(&|path| path.nodes[0].hashes.reverse()), [Code::E0316]);
}

#[test]
fn without_the_key_nothing_is_appended_and_records_after_the_map_are_not_counted() {
    let dir = tempfile::tempdir().unwrap();
    let (place, trust) = (dir.path().join(".dendrer"), Arc::new(MemoryTrust::new()) as Arc<dyn Trust>);
    let stranger = || Repo::open(&place, Arc::new(MemoryTrust::new()), Mode::Read).unwrap();
    let export = |repo: &Repo| report(&exported(repo, &["w"]));
    let repo = Repo::init(&place, Arc::clone(&trust)).unwrap();
    record(&repo, "w", 2, 0, false);
    record(&repo, "v", 2, 0, false);
    repo.sign().unwrap();
    let reason = |report: &VerifyReport| partial(report).first().map(|found| found.1);
    assert_eq!(reason(&export(&stranger())), Some(PartialReason::NoMap));
    assert_eq!(reason(&export(&repo)), None);
    // What was counted before is whole for a reader without the key too.
    assert_eq!(reason(&export(&stranger())), None);
    for run in ["v", "w"] {
        record(&repo, run, 1, 0, false);
        repo.sign().unwrap();
        let found = export(&stranger());
        assert_eq!((codes(&found), reason(&found)), (vec![], Some(PartialReason::AfterMap)), "{run}");
    }
    assert_eq!(maps(&repo).len(), 1);
    assert_eq!(reason(&export(&repo)), None);
    assert_eq!(maps(&repo).len(), 2);
}

#[test]
fn refusals_beside_the_prefix_of_a_fork_are_told() {
    let repo = two_runs();
    let trace = Trace::open(&repo.reader().unwrap(), &run_name("w")).unwrap();
    let (mut recorder, _) = repo.fork(&trace, 2, &ForkTerms::new(run_name("f"))).unwrap();
    recorder.commit().unwrap();
    drop((recorder, trace));
    record(&repo, "f", 1, 0, false);
    let fork = report(&exported(&repo, &["f"]));
    let missing = MissingRecords { refusals: 2, ..NONE };
    assert_eq!(
        (codes(&fork), partial(&fork)),
        (vec![], vec![("f", PartialReason::ParentRefusals, Some(missing))])
    );
    let both = report(&exported(&repo, &["f", "w"]));
    assert_eq!((codes(&both), partial(&both)), (vec![], vec![]));
    // A parent that refused nothing hides nothing.
    let trace = Trace::open(&repo.reader().unwrap(), &run_name("v")).unwrap();
    let (mut recorder, _) = repo.fork(&trace, 2, &ForkTerms::new(run_name("g"))).unwrap();
    recorder.commit().unwrap();
    let fork = report(&exported(&repo, &["g"]));
    assert_eq!((codes(&fork), partial(&fork)), (vec![], vec![]));
    assert!(fork.whole.map_ts.is_some(), "{:?}", fork.whole);
}

#[test]
fn a_log_that_did_not_change_keeps_its_map() {
    let repo = two_runs();
    let (first, second) = (exported(&repo, &["w"]), exported(&repo, &["w"]));
    assert_eq!(first.write(&|_| vec![0]), second.write(&|_| vec![0]));
    assert_eq!((maps(&repo).len(), first.size), (1, repo.reader().unwrap().tree().size));
    // Of older maps a bundle has none, unless it would leave out nothing else.
    record(&repo, "v", 0, 1, false);
    let count = |bundle: &Bundle| bundle.positions().filter(|(_, entry)| entry.kind == Kind::Map).count();
    let (one, all) = (exported(&repo, &["w"]), exported(&repo, &["v", "w"]));
    assert_eq!((count(&one), count(&all), maps(&repo).len()), (1, 2, 2));
    assert!(report(&all).whole.is_complete() && report(&all).whole.map_ts.is_none());
}

#[test]
fn a_map_that_a_crash_left_unsigned_is_signed_next() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join(".dendrer");
    let trust: Arc<dyn Trust> = Arc::new(MemoryTrust::new());
    let repo = Repo::init(&place, Arc::clone(&trust)).unwrap();
    record(&repo, "w", 2, 0, false);
    record(&repo, "v", 2, 0, false);
    repo.sign().unwrap();
    let before = std::fs::read(place.join("checkpoint")).unwrap();
    let first = exported(&repo, &["w"]);
    drop(repo);
    std::fs::write(place.join("checkpoint"), before).unwrap();
    let repo = Repo::open(&place, trust, Mode::Write).unwrap();
    let size = |repo: &Repo| repo.reader().unwrap().tree().size;
    assert_eq!((size(&repo), repo.log_trust().unwrap().signed), (first.size, first.size - 1));
    let again = exported(&repo, &["w"]);
    assert_eq!((again.size, maps(&repo).len()), (first.size, 1));
    assert!(report(&again).whole.is_complete());
}

/// A log whose map has another root, as the holder of the key could sign it.
#[test]
fn a_false_map_is_tampered() {
    let honest = two_runs();
    exported(&honest, &["w"]);
    let mut records = records_of(&*honest.reader().unwrap());
    let map = records.pop().unwrap();
    let mut value = map.content();
    if let Value::Object(object) = &mut value {
        object.set("root", Value::from(records[0].id()));
    }
    let body = Body::commit(cut(value.as_object().unwrap()), Seed([3; 16])).unwrap();
    records.push(Record::seal(map.header().clone(), body).unwrap());
    let store = store_of(honest.info().clone(), records);
    for runs in [None, Some(vec![run_name("v")])] {
        let terms = VerifyTerms { runs, quick: true, ..VerifyTerms::default() };
        let report = verify::store(&store, &terms).unwrap();
        assert_eq!((report.verdict, codes(&report)), (VerifyVerdict::Tampered, vec![Code::E0316]));
        assert_eq!(report.findings[0].position, Some(store.tree().size - 1));
    }
}

#[test]
fn a_map_is_made_of_entries_alone() {
    let mut store = Memory::new(info(7)).with_key(Some(Arc::new(key(7))));
    dendrer::record::recorder::begin_log(&mut store, &mut dendrer::environment::World::default()).unwrap();
    let trust: Arc<dyn Trust> = Arc::new(MemoryTrust::new());
    trust.keep_key(info(7).id, &Arc::new(key(7))).unwrap();
    let repo = Repo::over(Box::new(store), trust).unwrap();
    record(&repo, "w", 2, 1, true);
    repo.sign_with_map().unwrap();
    let mut slow = dendrer::object::map::LogCount::default();
    let records = records_of(&*repo.reader().unwrap());
    let (map, before) = records.split_last().unwrap();
    before.iter().for_each(|record| slow.take(&record.log_entry()));
    assert_eq!(LogMap::read(&map.content()), Some(slow.map()));
}
