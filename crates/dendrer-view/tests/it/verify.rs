use dendrer::care::verify::question::{VerifyOutcome, malformed};
use dendrer::evidence::shown::ShownTree;
use dendrer::store::Shared;
use dendrer::verify::facts::{ComparedWord, NoteCode, PartialReason};
use dendrer::verify::judge::{KnownKey, VerifiedLog, compare_histories};
use dendrer::verify::{self, VerifyTerms, VerifyVerdict};
use dendrer_object::Code;
use dendrer_object::keys::LogKeys;
use dendrer_object::merkle::leaf_hash;
use dendrer_testkit::{info, key, memory, records_of, store_of};
use dendrer_view::answer::{Answer as _, End, Page};
use dendrer_view::problem::Problem;
use dendrer_view::verify::VerifyAnswer;
use dendrer_view::verify::words::word;

use super::{add_run, check, risky, text};

/// Verifies a store as if all of it were signed.
fn verified(name: &str, store: &Shared, options: &VerifyTerms) -> VerifiedLog {
    let mut report = verify::store(store, options).unwrap();
    report.signed = Some(report.log.0);
    let info = info(7);
    let mut shown = ShownTree::default();
    records_of(store).iter().for_each(|record| shown.push(leaf_hash(&record.entry())));
    let (name, of, chains) = (name.to_owned(), Some((info.id, info.key)), Default::default());
    VerifiedLog { name, report, is_bundle: true, is_whole: true, of, chains, shown }
}

fn outcome(log: VerifiedLog) -> VerifyOutcome {
    VerifyOutcome::Verified(Box::new(log))
}

fn answer(outcomes: &[VerifyOutcome]) -> VerifyAnswer<'_> {
    VerifyAnswer { outcomes, is_list: false }
}

#[test]
fn intact_log_says_what_it_proves() {
    let log = verified("risky.dnd", &risky(), &VerifyTerms { replay: true, ..VerifyTerms::default() });
    let outcomes = [outcome(log)];
    check(
        &text(&answer(&outcomes), &Page::WIDE),
        r#"
        record    INTACT       5 records of risky: bytes, chain, tree, maps, deltas against roots, authors
        whole     partial      nothing that is signed counts the records
        replay    OK           4 of 4 states reproduced by the recorded reducer
        state     KNOWN
        signer    9cd2d6d2     signed 5 of 5 records; unknown here
        witness   UNWITNESSED  a full rewrite by the key holder would not show
        derived   none
        INTACT    risky.dnd    does not prove that inputs were true"#,
    );
    assert_eq!(answer(&outcomes).end(), End::Answered);
    let document = answer(&outcomes).document();
    assert_eq!(document.get("schema").and_then(|schema| schema.as_str()), Some("dendrer.verify/1"));
    let listed = VerifyAnswer { outcomes: &outcomes, is_list: true }.document();
    assert_eq!(listed.get("schema").and_then(|schema| schema.as_str()), Some("dendrer.verify-all/1"));
}

#[test]
fn required_witness_that_is_missing_has_its_own_code() {
    let mut log = verified("risky.dnd", &risky(), &VerifyTerms::default());
    log.report.require(false, true, false);
    let outcomes = [outcome(log)];
    check(
        &text(&answer(&outcomes), &Page::WIDE),
        r#"
        record    INTACT       5 records of risky: bytes, chain, tree, maps, deltas against roots, authors
        whole     partial      nothing that is signed counts the records
        replay    NOT RUN      --replay makes each transition again
        state     KNOWN
        signer    9cd2d6d2     signed 5 of 5 records; unknown here
        witness   UNWITNESSED  a full rewrite by the key holder would not show
        derived   none
        error[E0313]: no witness agrees, and one is required: give --tip or --checkpoint
        INTACT    risky.dnd    does not prove that inputs were true"#,
    );
    assert_eq!(answer(&outcomes).end(), End::Problem(Code::E0313));
}

#[test]
fn missing_record_is_tampered_up_to_the_last_good_tick() {
    let mut records = records_of(&risky());
    records.remove(2);
    let log = verified("cut.dnd", &store_of(info(7), records), &VerifyTerms::default());
    let outcomes = [outcome(log)];
    check(
        &text(&answer(&outcomes), &Page::WIDE),
        r#"
        record    TAMPERED     E0302: risky@3: tick 3 stands where tick 2 must
        whole     partial      nothing that is signed counts the records
        replay    NOT RUN      --replay makes each transition again
        state     INCOMPLETE   from tick 2: the record does not hold
        signer    9cd2d6d2     signed 4 of 4 records; unknown here
        witness   UNWITNESSED  a full rewrite by the key holder would not show
        derived   none
        error[E0302]: risky@3: tick 3 stands where tick 2 must
          | last good tick: 1    ticks 4..4 rest on tick 3 and are not trustworthy
              see: dendrer explain E0302
        TAMPERED  cut.dnd
        (stderr) note: up to tick 1 it is still sound
        (stderr) help: dendrer log cut.dnd#risky --to tick 1"#,
    );
}

#[test]
fn another_tip_is_a_run_that_was_rewritten() {
    let tip = dendrer_object::Digest::of(b"another");
    let tip_places = [(tip, ("risky".parse().unwrap(), 4))].into();
    let terms = VerifyTerms { tips: vec![tip], tip_places, ..VerifyTerms::default() };
    let log = verified("risky.dnd", &risky(), &terms);
    check(
        &text(&answer(&[outcome(log)]), &Page::WIDE),
        r#"
        record    TAMPERED     E0304: the record is consistent with itself, but the tip that was given is not on its chain
        whole     partial      nothing that is signed counts the records
        replay    NOT RUN      --replay makes each transition again
        state     KNOWN
        signer    9cd2d6d2     signed 5 of 5 records; unknown here
        witness   UNWITNESSED  a full rewrite by the key holder would not show
        derived   none
        error[E0304]: the record is consistent with itself, but the tip that was given is not on its chain
          | given     sha256:ae448ac86c4e8e4dec645729708ef41873ae79c6dff84eff73360989487f08e5        found     sha256:0a0ad59cc94474c37fefc06f2f2acffa7ad607f5c8ab33be597080565c63d669
              note: this is what a run looks like that was rewritten with its hashes computed anew
              see: dendrer explain E0304
        TAMPERED  risky.dnd"#,
    );
}

#[test]
fn own_key_that_was_replaced_is_tampered_and_a_given_key_unknown() {
    let mut log = verified("risky.dnd", &risky(), &VerifyTerms::default());
    let other = key(8).verifier_key().clone();
    let keys = LogKeys::new(info(7).id, info(7).key);
    log.report.judge_keys(&keys, None, &KnownKey::No, &[other.clone()]);
    assert_eq!(log.report.verdict, VerifyVerdict::Unverifiable);
    log.report.judge_keys(&keys, None, &KnownKey::Another(Box::new(other)), &[]);
    check(
        &text(&answer(&[outcome(log)]), &Page::WIDE),
        r#"
        record    TAMPERED     E0308: the log names another key than the one its store was made with here
        whole     partial      nothing that is signed counts the records
        replay    NOT RUN      --replay makes each transition again
        state     KNOWN
        signer    9cd2d6d2     signed 5 of 5 records; unknown here
        witness   UNWITNESSED  a full rewrite by the key holder would not show
        derived   none
        error[E0308]: the log names another key than the one its store was made with here
          | stored    dendrer/07070707070707070707070707070707+9cd2d6d2+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs        computed  dendrer/08080808080808080808080808080808+d29bc364+AROY9ixtGkV8UbpqS189vS9p/KkyFiGNyJl+QWvRfZPK
              see: dendrer explain E0308
        not checked: a signature under the key that was given: the log is signed by dendrer/07070707070707070707070707070707+9cd2d6d2+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs
        TAMPERED  risky.dnd"#,
    );
}

#[test]
fn two_histories_of_one_log_are_an_equivocation() {
    let (other, longer) = (memory(7), memory(7));
    add_run(&other, "risky", &[0.5, 0.6, 0.7, 0.9]);
    add_run(&longer, "risky", &[0.5, 0.6, 0.8, 0.9, 0.95]);
    let stores = [("a.dnd", risky()), ("b.dnd", other), ("c.dnd", longer)];
    let mut logs = stores.map(|(name, store)| verified(name, &store, &VerifyTerms::default()));
    compare_histories(&mut logs.iter_mut().collect::<Vec<_>>());
    let outcomes = logs.map(outcome);
    check(
        &text(&answer(&outcomes), &Page::WIDE),
        r#"
        record    INTACT       5 records of risky: bytes, chain, tree, maps, deltas against roots, authors
        whole     partial      nothing that is signed counts the records
        replay    NOT RUN      --replay makes each transition again
        state     KNOWN
        signer    9cd2d6d2     signed 5 of 5 records; unknown here
        witness   UNWITNESSED  a full rewrite by the key holder would not show
        derived   none
        compared  EQUIVOCATION at 4 with b.dnd
        error[E0307]: the same key signed b.dnd, which has another record at position 3 of the log: there are two histories
          | stored    6f6097561936        computed  46f97c756402
              see: dendrer explain E0307
        EQUIVOCATION  a.dnd
        record    INTACT       5 records of risky: bytes, chain, tree, maps, deltas against roots, authors
        whole     partial      nothing that is signed counts the records
        replay    NOT RUN      --replay makes each transition again
        state     KNOWN
        signer    9cd2d6d2     signed 5 of 5 records; unknown here
        witness   UNWITNESSED  a full rewrite by the key holder would not show
        derived   none
        compared  EQUIVOCATION at 4 with a.dnd
        error[E0307]: the same key signed a.dnd, which has another record at position 3 of the log: there are two histories
          | stored    46f97c756402        computed  6f6097561936
              see: dendrer explain E0307
        error[E0307]: the same key signed c.dnd, which has another record at position 3 of the log: there are two histories
          | stored    46f97c756402        computed  ae192d8dfa0d
              see: dendrer explain E0307
        EQUIVOCATION  b.dnd
        record    INTACT       6 records of risky: bytes, chain, tree, maps, deltas against roots, authors
        whole     partial      nothing that is signed counts the records
        replay    NOT RUN      --replay makes each transition again
        state     KNOWN
        signer    9cd2d6d2     signed 6 of 6 records; unknown here
        witness   UNWITNESSED  a full rewrite by the key holder would not show
        derived   none
        compared  EQUIVOCATION at 4 with b.dnd
        error[E0307]: the same key signed b.dnd, which has another record at position 3 of the log: there are two histories
          | stored    ae192d8dfa0d        computed  46f97c756402
              see: dendrer explain E0307
        EQUIVOCATION  c.dnd"#,
    );
    assert!(matches!(answer(&outcomes).end(), End::Problem(_)));
}

#[test]
fn log_that_cannot_be_read_is_worse_than_an_unverifiable_one() {
    let mut log = verified("risky.dnd", &risky(), &VerifyTerms::default());
    log.report.require(true, false, false);
    let problem = Problem::new(Code::E0108, "x.dnd is missing").at("cause", "no such file");
    let outcomes = [outcome(log), VerifyOutcome::Unreadable("x.dnd".to_owned(), problem)];
    check(
        &text(&answer(&outcomes[1..]), &Page::WIDE),
        r#"
        error[E0108]: x.dnd is missing
          | cause    no such file
        NOT READ   x.dnd"#,
    );
    assert_eq!(answer(&outcomes).end(), End::Problem(Code::E0108));
}

#[test]
fn one_line_for_each_fact() {
    let labels = |outcome: VerifyOutcome| -> Vec<String> {
        let lines = text(&answer(&[outcome]), &Page::WIDE);
        lines.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    };
    let facts = ["record", "whole", "replay", "state", "signer", "witness", "derived"];
    let intact = labels(outcome(verified("risky.dnd", &risky(), &VerifyTerms::default())));
    assert_eq!(intact, [&facts[..], &["INTACT"]].concat());
    let problem = Problem::new(Code::E0306, "line 1 of the bundle: not JSON");
    let log = malformed("x.dnd", problem).unwrap();
    assert_eq!(answer(&[outcome(log.clone())]).end(), End::Problem(Code::E0306));
    assert_eq!(labels(outcome(log)), [&facts[..], &["MALFORMED"]].concat());
    // A file that is missing is no malformed one.
    assert_eq!(
        malformed("x.dnd", Problem::new(Code::E0108, "x.dnd is missing")).unwrap_err().code,
        Code::E0108
    );
}

#[test]
fn every_word_is_explained() {
    let of_types = [VerifyVerdict::WORDS, PartialReason::WORDS, NoteCode::WORDS, ComparedWord::WORDS];
    let of_lines =
        ["INTACT so far", "COMPLETE", "partial", "OK", "NOT RUN", "KNOWN", "INCOMPLETE", "unknown here"];
    let more = ["WITNESSED", "UNWITNESSED", "damaged", "none", "first", "apart"];
    let lines = ["record", "whole", "replay", "state", "signer", "witness", "derived", "compared", "notes"];
    for known in of_types.concat().iter().chain(&of_lines).chain(&more).chain(&lines) {
        assert!(word(known).is_some_and(|entry| entry.text.ends_with('.')), "{known}");
        assert!(word(&known.to_lowercase()).is_some(), "{known}");
    }
}
