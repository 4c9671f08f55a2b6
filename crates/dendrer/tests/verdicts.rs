//! The facts of `verify`: records that a holder of the key forged, older tips, checkpoints, and dates against the order of the log.

use dendrer::bundle;
use dendrer::kernel::step::Start;
use dendrer::object::bundle::{Bundle, LogItem};
use dendrer::object::json::parse_door;
use dendrer::object::merkle::{cover, from_leaves, leaf_hash};
use dendrer::object::record::{Author, Body, Header, Record, Seed, cut};
use dendrer::object::{Code, Digest, Intent, Pointer, Timestamp};
use dendrer::store::Shared;
use dendrer::store::prelude::*;
use dendrer::verify::facts::{ComparedWord, NoteCode, PartialReason, WitnessKind};
use dendrer::verify::{self, VerifyReport, VerifyTerms, VerifyVerdict};
use dendrer_testkit::{info, key, memory, record, records_of, run_name, store_of};

/// A run `r` of four transitions that count up, and a run `s` of two, signed.
fn recorded() -> Shared {
    let store = memory(7);
    for (run, ticks) in [("r", 4), ("s", 2)] {
        let intents = (1..=ticks).map(|n| {
            let delta = format!(r#"{{"type":"memory.write","delta":[{{"set":"/n","value":{n}}}]}}"#);
            Intent::from_value(&parse_door(delta.as_bytes()).unwrap(), Some("a")).unwrap()
        });
        record(&store, &Start::new(run_name(run)), intents);
    }
    store
}

/// A store with one record changed and those after it in its run linked anew: what a holder of the key could sign.
fn forged(store: &Shared, at: usize, change: &dyn Fn(&Record) -> Record) -> Shared {
    let mut records = records_of(store);
    let mut ids = vec![(records[at].id(), change(&records[at]))];
    for record in &mut records[at..] {
        let Some((_, changed)) =
            ids.iter().find(|(id, _)| *id == record.id() || record.header().prev == Some(*id))
        else {
            continue;
        };
        let is_it = ids[0].0 == record.id();
        let linked = match is_it {
            true => changed.clone(),
            false => {
                let header = Header { prev: Some(changed.id()), ..record.header().clone() };
                Record::seal(header, record.body().clone()).unwrap()
            }
        };
        ids.push((record.id(), linked.clone()));
        *record = linked;
    }
    store_of(info(7), records)
}

fn signed(mut store: Shared) -> Shared {
    store.sign_checkpoint(&key(7)).unwrap();
    store
}

fn verified(store: &Shared, terms: &VerifyTerms) -> VerifyReport {
    verify::store(store, terms).unwrap()
}

fn codes(report: &VerifyReport) -> Vec<(Code, Option<u64>)> {
    report.findings.iter().map(|finding| (finding.code, finding.tick)).collect()
}

fn quick() -> VerifyTerms {
    VerifyTerms { quick: true, ..VerifyTerms::default() }
}

/// The position of tick 2 of `r`.
const SECOND: usize = 2;

#[test]
fn a_delta_that_does_not_make_its_root_is_tampered() {
    let with_other_delta = |record: &Record| {
        let content = record.content().to_string().replace(r#""value":2"#, r#""value":9"#);
        let content = parse_door(content.as_bytes()).unwrap();
        let body = Body::commit(cut(content.as_object().unwrap()), Seed([3; 16])).unwrap();
        Record::seal(record.header().clone(), body).unwrap()
    };
    let store = forged(&recorded(), SECOND, &with_other_delta);
    let report = verified(&store, &VerifyTerms::default());
    assert_eq!((report.verdict, codes(&report)), (VerifyVerdict::Tampered, vec![(Code::E0301, Some(2))]));
    let report = verified(&store, &quick());
    assert_eq!((report.verdict, report.is_quick), (VerifyVerdict::Intact, true), "{:?}", report.findings);
}

#[test]
fn an_author_that_cannot_write_a_type_is_tampered() {
    for author in [Author::Kernel, Author::Institution] {
        let by = |record: &Record| {
            let header = Header { author, ..record.header().clone() };
            Record::seal(header, record.body().clone()).unwrap()
        };
        let store = forged(&recorded(), SECOND, &by);
        let report = verified(&store, &VerifyTerms::default());
        assert_eq!((report.verdict, codes(&report)), (VerifyVerdict::Tampered, vec![(Code::E0408, Some(2))]));
        assert_eq!(verified(&store, &quick()).verdict, VerifyVerdict::Intact);
    }
    let of_kernel = |record: &Record| {
        let header = Header { type_name: Some("kernel.anomaly".parse().unwrap()), ..record.header().clone() };
        Record::seal(header, record.body().clone()).unwrap()
    };
    let report = verified(&forged(&recorded(), SECOND, &of_kernel), &VerifyTerms::default());
    assert_eq!(codes(&report), [(Code::E0401, Some(2))]);
}

#[test]
fn a_state_behind_an_erased_delta_is_not_followed() {
    let places: [Pointer; 1] = ["/delta".parse().unwrap()];
    let mut records = records_of(&recorded());
    records[SECOND] = records[SECOND].without(&places);
    let report = verified(&store_of(info(7), records), &VerifyTerms::default());
    assert_eq!((report.verdict, codes(&report)), (VerifyVerdict::Unverifiable, vec![]));
    assert_eq!(report.runs[0].closed_from, Some(2));
}

#[test]
fn verified_takes_all_three_facts() {
    let store = signed(recorded());
    let tips = verified(&store, &VerifyTerms::default());
    let tips: Vec<Digest> = tips.runs.iter().filter_map(|run| run.line.tip).collect();
    let verdict = |terms: &VerifyTerms| verified(&store, terms).verdict;
    let both = VerifyTerms { tips: tips.clone(), ..VerifyTerms::default() };
    assert_eq!(verdict(&both), VerifyVerdict::Verified);
    assert_eq!(verdict(&VerifyTerms { quick: true, ..both.clone() }), VerifyVerdict::Intact);
    assert_eq!(verdict(&VerifyTerms { tips: vec![tips[0]], ..both.clone() }), VerifyVerdict::Intact);
    let checkpoints = vec![(store.tree().size, store.tree().root)];
    assert_eq!(verdict(&VerifyTerms { checkpoints, ..VerifyTerms::default() }), VerifyVerdict::Verified);
    // What this machine signed is no witness, and an unsigned log is not whole.
    let pinned = vec![(store.tree().size, store.tree().root)];
    assert_eq!(verdict(&VerifyTerms { pinned, ..VerifyTerms::default() }), VerifyVerdict::Intact);
    let report = verified(&recorded(), &both);
    let why: Vec<PartialReason> = report.whole.partial.iter().map(|run| run.why).collect();
    assert_eq!((report.verdict, why), (VerifyVerdict::Intact, vec![PartialReason::NoMap; 2]));
}

#[test]
fn an_older_tip_is_good_up_to_its_tick() {
    let store = signed(recorded());
    let tip = records_of(&store)[SECOND].id();
    let runs = Some(vec![run_name("r")]);
    let terms = VerifyTerms { runs: runs.clone(), tips: vec![tip], ..VerifyTerms::default() };
    let report = verified(&store, &terms);
    assert_eq!(report.verdict, VerifyVerdict::Intact);
    let [witness] = &report.witnesses[..] else { panic!("{:?}", report.witnesses) };
    assert_eq!((witness.kind, witness.to, witness.after), (WitnessKind::Tip, 2, 2));
    let to = [(run_name("r"), 2)].into();
    let report = verified(&store, &VerifyTerms { to, ..terms.clone() });
    assert_eq!((report.verdict, report.asked_records), (VerifyVerdict::Verified, 3));
    // The tip of a later tick leads to the one that is asked about.
    let tips = vec![records_of(&store)[4].id()];
    let to = [(run_name("r"), 2)].into();
    assert_eq!(verified(&store, &VerifyTerms { to, tips, ..terms.clone() }).verdict, VerifyVerdict::Verified);
    let tips = vec![records_of(&store)[6].id()];
    let report = verified(&store, &VerifyTerms { tips, ..terms });
    assert_eq!((report.verdict, codes(&report)), (VerifyVerdict::Tampered, vec![(Code::E0304, None)]));
}

#[test]
fn a_checkpoint_with_another_root_is_an_equivocation() {
    let store = signed(recorded());
    let checkpoints = |size, root| VerifyTerms { checkpoints: vec![(size, root)], ..VerifyTerms::default() };
    let older = store.root_of(4).unwrap().unwrap();
    let report = verified(&store, &checkpoints(4, older));
    assert_eq!((report.verdict, report.witnesses[0].after), (VerifyVerdict::Intact, 4));
    let report = verified(&store, &checkpoints(4, Digest([1; 32])));
    assert_eq!((report.verdict, codes(&report)), (VerifyVerdict::Equivocation, vec![(Code::E0304, None)]));
    assert_eq!(report.compared.unwrap().word, ComparedWord::Equivocation);
    // A checkpoint of more records than the log has: it is older, or was rewritten, and nothing here tells which.
    let report = verified(&store, &checkpoints(9, Digest([1; 32])));
    assert_eq!((report.verdict, codes(&report)), (VerifyVerdict::Unverifiable, vec![]));
    let compared = report.compared.unwrap();
    assert_eq!(compared.word, ComparedWord::NotCompared);
    assert!(compared.older.unwrap().ends_with("1 record more was signed"));
    // What this machine signed itself, and the log has not, is lost.
    let pinned = VerifyTerms { pinned: vec![(9, Digest([1; 32]))], ..VerifyTerms::default() };
    let report = verified(&store, &pinned);
    assert_eq!((report.verdict, codes(&report)), (VerifyVerdict::Tampered, vec![(Code::E0307, None)]));
}

/// One rule for a store and for a bundle: a tip that is on no chain is a later one, unless something here says its tick.
#[test]
fn a_tip_contradicts_only_where_its_tick_is_known() {
    let store = signed(recorded());
    let of_r =
        |tips: Vec<Digest>| VerifyTerms { runs: Some(vec![run_name("r")]), tips, ..VerifyTerms::default() };
    let unknown = Digest([9; 32]);
    let report = verified(&store, &of_r(vec![unknown]));
    assert_eq!((report.verdict, codes(&report)), (VerifyVerdict::Unverifiable, vec![]));
    assert_eq!(report.compared.unwrap().older.as_deref(), Some("older than the tip given, or rewritten"));
    for (tick, verdict) in [(2, VerifyVerdict::Tampered), (99, VerifyVerdict::Unverifiable)] {
        let tip_places = [(unknown, (run_name("r"), tick))].into();
        let report = verified(&store, &VerifyTerms { tip_places, ..of_r(vec![unknown]) });
        assert_eq!(report.verdict, verdict, "{tick}");
    }
}

/// A bundle of `r`, as it is and without the last transition: the entry is left out as bundles leave out others, and nothing in the
/// bundle counts the records.
#[test]
fn a_bundle_without_its_last_transition_is_never_complete() {
    let mut store = recorded();
    let note = store.sign_checkpoint(&key(7)).unwrap();
    let export = |runs: &[&str]| {
        let runs: Vec<_> = runs.iter().map(|run| run_name(run)).collect();
        Bundle::parse(&bundle::export(&store, &runs, &note).unwrap().to_vec().unwrap()).unwrap()
    };
    let whole = export(&["r", "s"]);
    let report = |bundle: &Bundle, terms: &VerifyTerms| {
        let text = bundle.write(&|_| vec![0]);
        let opened = bundle::open("x.dnd".into(), &text[..]).unwrap();
        verify::bundle(&opened, terms).unwrap()
    };
    let all = report(&whole, &VerifyTerms::default());
    assert!(all.whole.is_complete() && all.verdict == VerifyVerdict::Intact, "{:?}", all.whole);
    let mut cut = export(&["r"]);
    let last = cut.log.iter().rposition(|item| matches!(item, LogItem::Entry(_))).unwrap();
    let LogItem::Entry(entry) = cut.log[last].clone() else { panic!("it is an entry") };
    // Entries that are left out side by side are one stretch.
    let LogItem::Omitted { count, .. } = cut.log.remove(last + 1) else { panic!("{:?}", cut.log) };
    let records = records_of(&store);
    let leaves: Vec<Digest> = records.iter().map(|record| leaf_hash(&record.entry())).collect();
    let node = from_leaves(&leaves);
    let (from, to) = (last as u64, last as u64 + 1 + count);
    let hashes = cover(from..to).map(|subtree| node(subtree).unwrap()).collect();
    cut.log[last] = LogItem::Omitted { count: to - from, hashes };
    cut.records.pop();
    let found = report(&cut, &VerifyTerms::default());
    assert_eq!((found.verdict, found.findings.len(), found.runs[0].line.tick), (VerifyVerdict::Intact, 0, 3));
    let why: Vec<_> = found.whole.partial.iter().map(|run| (run.run.clone(), run.why)).collect();
    assert_eq!(why, [(run_name("r"), PartialReason::NoMap)]);
    let mut required = found.clone();
    required.require(true, false, false);
    assert_eq!(required.unmet, [Code::E0312]);
    let tips = vec![entry.hash];
    assert_eq!(
        report(&cut, &VerifyTerms { tips, ..VerifyTerms::default() }).verdict,
        VerifyVerdict::Unverifiable
    );
}

#[test]
fn a_run_that_is_dated_back_is_noted_once() {
    let store = recorded();
    let mut records = records_of(&store);
    let later = Timestamp::from_ms(records[0].header().ts.ms() + 400_000);
    let mut prev = None;
    for record in &mut records[..5] {
        let header = Header { ts: later, prev, ..record.header().clone() };
        *record = Record::seal(header, record.body().clone()).unwrap();
        prev = Some(record.id());
    }
    let report = verified(&store_of(info(7), records), &VerifyTerms::default());
    let noted: Vec<_> = report.notes.iter().map(|note| (note.code, note.position)).collect();
    assert_eq!((report.verdict, noted), (VerifyVerdict::Intact, vec![(NoteCode::DatedBack, Some(5))]));
}
