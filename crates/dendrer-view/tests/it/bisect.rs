use dendrer::ask::bisect::gather::{BisectAnswer, BisectDetails, BisectFound};
use dendrer::bisect::{BisectSubject, Range, bisect};
use dendrer::kernel::predicate::Predicate;
use dendrer_testkit::run_name;
use dendrer_view::answer::{Answer as _, End, Page};
use dendrer_view::bisect::{BisectAll, BisectCommand, BisectShown};

use super::{check, store_of, text, trace};

fn found(store: &dendrer::store::Shared, condition: &str) -> (BisectSubject, dendrer::bisect::BisectReport) {
    let question = BisectSubject::Predicate(Predicate::condition("expression", condition).unwrap());
    let report = bisect(&trace(store, "risky"), &question, &Range::new(0, 4)).unwrap();
    (question, report)
}

fn answer(risks: &[f64], condition: &str) -> (String, End) {
    let store = store_of("risky", risks);
    let (question, report) = found(&store, condition);
    let details = BisectDetails { contributors: true, chain_limit: 2, may_fork: true };
    let answer = BisectAnswer::of(&trace(&store, "risky"), question, report, details).unwrap();
    let question = vec!["--predicate".to_owned(), condition.to_owned()];
    let command = BisectCommand { run: "risky".to_owned(), question, records: false };
    let shown = BisectShown { answer: &answer, command: &command, recorded: &[] };
    (text(&shown, &Page::WIDE), shown.end())
}

#[test]
fn an_onset_comes_with_its_causes_and_a_suggestion() {
    let (text, end) = answer(&[0.5, 0.6, 0.8, 0.9], "state.risk > 0.75");
    check(
        &text,
        r#"
        ONSET (exact)  tick 3  observation.add  by writer   f8d1ecde2c06
          "step 3"
          confidence 0.900
          ~ risk      0.6 -> 0.8
          + notes[2]  "note 3"
        LARGEST WRITES  3 of 3 to state.risk
          tick 1  0.25 -> 0.5  +0.25  observation.add  writer
          tick 3   0.6 -> 0.8  +0.2   observation.add  writer
          tick 2   0.5 -> 0.6  +0.1   observation.add  reader
        FIRST SEEN (heuristic)  an equal value, earliest on record
          0.25  tick 0  state.risk
                {"notes":[],"risk":0.25}
          0.2   not before tick 3
          0.1   not before tick 2
        CONTRIBUTORS (exact for the recorded intents, heuristic for what an agent would then have done)
          none: tick 3 is violated without any of them   (every set was tried: 2 of 2 earlier transitions can matter, 3 re-reductions)
          why: intents bring their changes themselves (delta/1), so leaving one out changes no later one; recorded links say what led there
        CAUSAL CHAIN (heuristic)  by recorded links alone: what a delta read is not known
          tick 4  observation.add  "step 4"
              <- 3 built on what stood there (exact)
              ~ risk      0.8 -> 0.9
              + notes[3]  "note 4"
        DIAGNOSIS  looks contingent (state-level): compliant until 2, broken by data that entered at 3
        SUGGESTION  dendrer fork --run risky --from tick 2 --tool-policy 'require source verification before observation.add'
          words for the agent; nothing enforces them
        SEARCH  violated when state.risk > 0.75, in ticks 0..4 of risky
          pure by construction; 4 candidate ticks do not recover; digest 68b0a3fc50e8
          ends tick 0 OK, tick 4 FAIL; at most 2 probes
          1/2  tick 2  compliant  OK      left 3..4
          2/2  tick 3  violation  FAIL    left 3"#,
    );
    assert_eq!(end, End::Answered);
}

#[test]
fn no_violation_is_the_answer_no() {
    let (text, end) = answer(&[0.5, 0.6, 0.7, 0.7], "state.risk > 0.75");
    check(
        &text,
        r#"
        no violation: tick 0 and tick 4 are both compliant, and every tick that wrote what it reads was checked
        SEARCH  violated when state.risk > 0.75, in ticks 0..4 of risky
          pure by construction; 4 candidate ticks do not recover; digest 68b0a3fc50e8
          ends tick 0 OK, tick 4 OK"#,
    );
    assert_eq!(end, End::No);
}

#[test]
fn a_predicate_that_recovers_is_shown_with_its_turns() {
    let (text, end) = answer(&[0.5, 0.8, 0.6, 0.9], "state.risk > 0.75");
    check(
        &text,
        r#"
          tick 2  violation  FAIL
          tick 3  ok         OK     <- recovered: binary search could return a wrong tick
          tick 4  violation  FAIL
        SEARCH  violated when state.risk > 0.75, in ticks 0..4 of risky
          pure by construction; it recovers on this run (4 candidate ticks checked); digest 68b0a3fc50e8
          ends tick 0 OK, tick 4 FAIL"#,
    );
    assert_eq!(end, End::Unknown);
}

#[test]
fn several_questions_have_a_row_each_and_the_worst_end() {
    let store = store_of("risky", &[0.5, 0.6, 0.8, 0.9]);
    let ask = |condition| {
        let (question, report) = found(&store, condition);
        BisectFound::of(&trace(&store, "risky"), question, report).unwrap()
    };
    let found = vec![ask("state.risk > 0.75"), ask("state.risk > 1.0"), ask("state.risk < 0.7")];
    let answer = BisectAll { run: &run_name("risky"), found: &found };
    check(
        &text(&answer, &Page::WIDE),
        r#"
        predicate          digest        onset  probes  answer
        state.risk > 0.75  68b0a3fc50e8      3       2  observation.add by writer
        state.risk > 1.0   aedbfea0b853      -       0  never violated
        state.risk < 0.7   99c07bbedadf      -       0  REFUSED: it recovers (turns at 0, 3)
        1 of 3 violated, 1 never, 1 refused"#,
    );
    assert_eq!(answer.end(), End::Unknown);
}
