use dendrer::care::verify::question::VerifyOutcome;
use dendrer::store::Shared;
use dendrer::verify::judge::{VerifiedLog, compare_histories};
use dendrer::verify::{self, VerifyTerms, VerifyVerdict};
use dendrer_object::Code;
use dendrer_testkit::{info, key, memory, records_of, store_of};
use dendrer_view::answer::{Answer as _, End, Page};
use dendrer_view::problem::Problem;
use dendrer_view::verify::VerifyAnswer;

use super::{add_run, check, risky, text};

/// Verifies a store as if all of it were signed.
fn verified(name: &str, store: &Shared, options: &VerifyTerms) -> VerifiedLog {
    let mut report = verify::store(store, options).unwrap();
    report.signed = Some(report.log.0);
    let info = info(7);
    let (chains, positions) = Default::default();
    let (name, store, key) = (name.to_owned(), info.id, info.key);
    VerifiedLog { name, report, is_bundle: true, store, key, chains, positions }
}

fn outcome(log: VerifiedLog) -> VerifyOutcome {
    VerifyOutcome::Verified(Box::new(log))
}

fn answer(outcomes: &[VerifyOutcome]) -> VerifyAnswer<'_> {
    VerifyAnswer { outcomes, is_list: false }
}

#[test]
fn intact_log_says_what_it_proves() {
    let mut log = verified("risky.dnd", &risky(), &VerifyTerms { replay: true, ..VerifyTerms::default() });
    log.report.close(true, false);
    let outcomes = [outcome(log)];
    check(
        &text(&answer(&outcomes), &Page::WIDE),
        r#"
        chain      OK    4 of 4 links   genesis e2150843cf33   tip 0a0ad59cc944
        replay     OK    4 of 4 states reproduced by the recorded reducer
        state      KNOWN
        log        OK    5 records   root 6f6097561936   signed
        not checked: a signature: no checkpoint was signed yet
        INTACT   risky.dnd   (proves: unchanged since recording. does not prove: that inputs were true)
        UNWITNESSED (a full rewrite by the key holder would not show)"#,
    );
    assert_eq!(answer(&outcomes).end(), End::Answered);
    let document = answer(&outcomes).document();
    assert_eq!(document.get("schema").and_then(|schema| schema.as_str()), Some("dendrer.verify/1"));
    let listed = VerifyAnswer { outcomes: &outcomes, is_list: true }.document();
    assert_eq!(listed.get("schema").and_then(|schema| schema.as_str()), Some("dendrer.verify-all/1"));
}

#[test]
fn required_witness_that_is_missing_makes_a_log_unverifiable() {
    let mut log = verified("risky.dnd", &risky(), &VerifyTerms::default());
    log.report.close(false, true);
    let outcomes = [outcome(log)];
    check(
        &text(&answer(&outcomes), &Page::WIDE),
        r#"
        chain      OK    4 of 4 links   genesis e2150843cf33   tip 0a0ad59cc944
        state      KNOWN
        log        OK    5 records   root 6f6097561936   signed
        not checked: a signature: no checkpoint was signed yet
        not checked: replay (--replay)
        not checked: a witness, which --require-witness asks for: nothing kept elsewhere is known to agree with all of it (a tip is given with --tip, a key with --verifier)
        UNVERIFIABLE   risky.dnd"#,
    );
    assert_eq!(answer(&outcomes).end(), End::Unknown);
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
        chain      FAIL  at tick 3 of 4   1 finding
        log        OK    4 records   root 9093eda5a8fa   signed
        error[E0302]: risky@3: tick 3 stands where tick 2 must
          | last good tick: 1    ticks 4..4 rest on tick 3 and are not trustworthy
              see: dendrer explain E0302
        not checked: a signature: no checkpoint was signed yet
        TAMPERED   cut.dnd
        (stderr) note: up to tick 1 it is still sound
        (stderr) help: dendrer log cut.dnd#risky --to tick 1"#,
    );
}

#[test]
fn another_tip_is_a_run_that_was_rewritten() {
    let tip = Some(dendrer_object::Digest::of(b"another"));
    let log = verified("risky.dnd", &risky(), &VerifyTerms { tip, ..VerifyTerms::default() });
    check(
        &text(&answer(&[outcome(log)]), &Page::WIDE),
        r#"
        chain      OK    4 of 4 links   genesis e2150843cf33   tip 0a0ad59cc944
        state      KNOWN
        log        OK    5 records   root 6f6097561936   signed
        error[E0304]: the record is consistent with itself, but its tip is not the one that was given
          | given     sha256:ae448ac86c4e8e4dec645729708ef41873ae79c6dff84eff73360989487f08e5        found     sha256:0a0ad59cc94474c37fefc06f2f2acffa7ad607f5c8ab33be597080565c63d669
              note: this is what a run looks like that was rewritten with its hashes computed anew
              see: dendrer explain E0304
        not checked: a signature: no checkpoint was signed yet
        TAMPERED   risky.dnd"#,
    );
}

#[test]
fn own_key_that_was_replaced_is_tampered_and_a_given_key_unknown() {
    let mut log = verified("risky.dnd", &risky(), &VerifyTerms::default());
    let other = key(8).verifier_key().clone();
    log.report.judge_keys(&info(7), None, None, Some(&other));
    assert_eq!(log.report.verdict, VerifyVerdict::Unverifiable);
    log.report.judge_keys(&info(7), None, Some(&other), None);
    check(
        &text(&answer(&[outcome(log)]), &Page::WIDE),
        r#"
        chain      OK    4 of 4 links   genesis e2150843cf33   tip 0a0ad59cc944
        state      KNOWN
        log        FAIL  5 records   root 6f6097561936   signed
        error[E0308]: the log names another key than the one its store was made with here
          | stored    dendrer/07070707070707070707070707070707+9cd2d6d2+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs        computed  dendrer/08080808080808080808080808080808+d29bc364+AROY9ixtGkV8UbpqS189vS9p/KkyFiGNyJl+QWvRfZPK
              see: dendrer explain E0308
        not checked: a signature: no checkpoint was signed yet
        not checked: a signature under the key that was given: the log is signed by dendrer/07070707070707070707070707070707+9cd2d6d2+AepKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs
        TAMPERED   risky.dnd
        (stderr) note: up to tick 4 it is still sound
        (stderr) help: dendrer log risky.dnd#risky --to tick 4"#,
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
        chain      OK    4 of 4 links   genesis e2150843cf33   tip 0a0ad59cc944
        state      KNOWN
        log        FAIL  5 records   root 6f6097561936   signed
        error[E0307]: the same key signed b.dnd, another log of as many records: there are two histories
          | stored    6f6097561936        computed  46f97c756402
              see: dendrer explain E0307
        not checked: a signature: no checkpoint was signed yet
        not checked: whether a.dnd and c.dnd are of one history: their logs end at 5 and 6 records
        EQUIVOCATION   a.dnd
        chain      OK    4 of 4 links   genesis e2150843cf33   tip 0c92af39f38a
        state      KNOWN
        log        FAIL  5 records   root 46f97c756402   signed
        error[E0307]: the same key signed a.dnd, another log of as many records: there are two histories
          | stored    46f97c756402        computed  6f6097561936
              see: dendrer explain E0307
        not checked: a signature: no checkpoint was signed yet
        not checked: whether b.dnd and c.dnd are of one history: their logs end at 5 and 6 records
        EQUIVOCATION   b.dnd
        chain      OK    5 of 5 links   genesis e2150843cf33   tip 205f0c03f26b
        state      KNOWN
        log        OK    6 records   root ae192d8dfa0d   signed
        not checked: a signature: no checkpoint was signed yet
        not checked: whether c.dnd and 2 others of the same log are of one history: their logs end elsewhere
        INTACT   c.dnd   (proves: unchanged since recording. does not prove: that inputs were true)
        UNWITNESSED (a full rewrite by the key holder would not show)"#,
    );
    assert!(matches!(answer(&outcomes).end(), End::Problem(_)));
}

#[test]
fn log_that_cannot_be_read_is_worse_than_an_unverifiable_one() {
    let mut log = verified("risky.dnd", &risky(), &VerifyTerms::default());
    log.report.close(true, true);
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
