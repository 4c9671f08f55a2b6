use dendrer::merge::question::MergeReply;
use dendrer::merge::{MergeInput, MergeTerms, Strategy};
use dendrer_testkit::run_name;
use dendrer_view::answer::{Answer as _, Page};
use dendrer_view::merge::unjudged_notes;

use super::{add_run, check, path, repo, risky, text, trace};

/// Merges two runs and shows the new one as written, or as a dry run.
fn merged(strategy: Strategy, is_written: bool) -> (String, String) {
    let store = risky();
    add_run(&store, "calm", &[0.1, 0.2]);
    let traces = [trace(&store, "risky"), trace(&store, "calm")];
    let sources = traces.each_ref().map(|trace| MergeInput { trace, tick: 2 });
    let terms = MergeTerms {
        run: run_name("both"),
        artifacts: vec![path("/risk"), path("/notes")],
        strategy,
        seed_only: !is_written,
        although: None,
    };
    let (mut recorder, merged) = repo(&store).merge(&sources, &terms).unwrap();
    let (state_root, id) = (recorder.head().state().digest(), recorder.head().id());
    recorder.discard();
    let begin = is_written.then_some(id);
    let (run, unjudged) = (terms.run, Vec::new());
    let answer = MergeReply { run, merged, state_root, begin, plan: None, unjudged };
    (text(&answer, &Page::WIDE), answer.document().get("open").unwrap().to_string())
}

#[test]
fn a_conflict_keeps_all_values_until_it_is_decided() {
    let (text, open) = merged(Strategy::Manual, true);
    check(
        &text,
        r#"
        source     a risky@2   replayed OK, state 819b063820a3
        source     b calm@2   replayed OK, state 0056aff1774e
        created    both: a new run, seeded with 1 place of 2 runs. This is not a history merge.
        base       none: the runs share no record, so a place that some of them lack is taken from the others
        conflict   risk   a 0.6   b 0.2   strategy manual: all kept, none taken
        (stderr) help: dendrer conflicts resolve both risk --take a --reason ..."#,
    );
    assert_eq!(open, "1");
}

#[test]
fn a_strategy_takes_one_value() {
    let (text, open) = merged(Strategy::Lww, false);
    check(
        &text,
        r#"
        source     a risky@2   replayed OK, state 819b063820a3
        source     b calm@2   replayed OK, state 0056aff1774e
        would make both: a new run, seeded with 1 place of 2 runs. This is not a history merge.
        terms      none: values alone, without pack, policy rules and goal
        base       none: the runs share no record, so a place that some of them lack is taken from the others
        conflict   risk   a 0.6   b 0.2   strategy lww: b taken
        (stderr) nothing was written (dry run)"#,
    );
    assert_eq!(open, "0");
}

#[test]
fn a_rule_that_cannot_be_judged_is_a_note() {
    let notes = unjudged_notes(&[("calm".to_owned(), "state.risk is missing".to_owned())]);
    let text = dendrer_view::answer::plain(&notes);
    check(
        &text,
        r#"
        (stderr) note: the rule calm holds on and counts as violated from tick 1: state.risk is missing"#,
    );
}
