use dendrer::ask::predicates::{PredicateTested, PredicatesAnswer};
use dendrer::kernel::predicate::Predicate;
use dendrer::registry::Registry;
use dendrer_view::answer::{Answer as _, End, Page};
use dendrer_view::predicate::{PredicateTestAnswer, TickRow};

use super::{check, store_of, text, trace};

fn tested(condition: &str, at: Option<u64>) -> PredicateTested {
    let store = store_of("risky", &[0.5, 0.8, 0.6, 0.9]);
    let predicate = Predicate::condition("expression", condition).unwrap();
    let (from, to) = at.map_or((0, 4), |at| (at, at));
    PredicateTested::of(&trace(&store, "risky"), predicate, from, to, at).unwrap()
}

#[test]
fn verdicts_are_stretches_of_ticks() {
    let tested = tested("state.risk > 0.75", None);
    let answer = PredicateTestAnswer { tested: &tested, rows: None };
    check(
        &text(&answer, &Page::WIDE),
        r#"
        run        risky, ticks 0..4
        predicate  expression v1   pure: by construction   monotone: seen below   window: after
                   violated when state.risk > 0.75   digest 68b0a3fc50e8
          0..1  ok         OK
          2     violation  FAIL
          3     ok         OK     <- recovered
          4     violation  FAIL
        first violated at tick 2   (5 candidate ticks of 5 ticks judged)"#,
    );
    assert_eq!(answer.end(), End::Answered);
}

#[test]
fn rows_have_the_type_and_the_words_of_each_tick() {
    let tested = tested("state.risk > 0.75", Some(2));
    let store = store_of("risky", &[0.5, 0.8]);
    let row = TickRow::of(2, &trace(&store, "risky").record(2).unwrap(), tested.line.at(2));
    let answer = PredicateTestAnswer { tested: &tested, rows: Some(&[row]) };
    check(
        &text(&answer, &Page::WIDE),
        r#"
        run        risky, ticks 2..2
        predicate  expression v1   pure: by construction   monotone: seen below   window: after
                   violated when state.risk > 0.75   digest 68b0a3fc50e8
        tick  transition_type  predicate        notes
           2  observation.add  violation  FAIL  "step 2""#,
    );
    assert_eq!(answer.end(), End::No);
}

#[test]
fn a_misspelt_field_is_noted() {
    let tested = tested("state.rsk > 0.75", None);
    check(
        &text(&PredicateTestAnswer { tested: &tested, rows: None }, &Page::WIDE),
        r#"
        run        risky, ticks 0..4
        predicate  expression v1   pure: by construction   monotone: seen below   window: after
                   violated when state.rsk > 0.75   digest 05858d3fa3e7
          0..4  uncertain  SKIP   state.rsk is missing
        not violated where it can be judged; uncertain at ticks 0 to 4   (1 candidate tick of 5 ticks judged)
        (stderr) note: did you mean state.risk?"#,
    );
}

#[test]
fn predicates_of_a_pack_are_counted_apart() {
    let declared = vec![Predicate::condition("pack/risky", "state.risk > 0.75").unwrap()];
    let registry = Registry::read(&store_of("risky", &[])).unwrap();
    let answer = PredicatesAnswer::of(registry, declared, false);
    check(
        &text(&answer, &Page::WIDE),
        r#"
        name        version  digest        monotone    predicate
        pack/risky  v1       68b0a3fc50e8  not tested  violated when state.risk > 0.75
        0 names, 1 by the pack, and built in: kernel.anomaly_free, kernel.policy_compliant"#,
    );
}
