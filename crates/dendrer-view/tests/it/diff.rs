use std::ops::ControlFlow;

use dendrer::diff::{DiffTerms, diff};
use dendrer_view::answer::{End, ItemAnswer as _, Page, plain};
use dendrer_view::diff::{DiffAnswer, DiffForm, DiffFound};

use super::{NARROW, add_run, check, last_text, risky, trace};

fn compared(form: DiffForm, page: &Page) -> (String, End) {
    let store = risky();
    add_run(&store, "other", &[0.5, 0.7, 0.8]);
    let (a, b) = (trace(&store, "risky"), trace(&store, "other"));
    let terms = DiffTerms::new(&a, &b);
    let mut answer = DiffAnswer::new(form);
    let report = diff(&a, &b, &terms, &mut |pair| {
        assert_eq!(plain(&answer.item_lines(pair, page)), "");
        ControlFlow::Continue(())
    });
    let (a, b, report) = (a.name().clone(), b.name().clone(), report.unwrap());
    answer.ends(DiffFound { a, b, terms, report, recorded: None, tested: None });
    (last_text(&mut answer, page), answer.end())
}

#[test]
fn differences_are_listed_below_the_headline() {
    let form = DiffForm { limit: 9, tail_in_one: true, fails: true, ..DiffForm::default() };
    let (text, end) = compared(form, &Page::WIDE);
    check(
        &text,
        r#"
        diverged at tick 2, cause: observation.add, state.risk 0.6 -> 0.7
        runs      a risky, b other
        shared    nothing: the runs begin with different records
        compared  a 0..4 with b 0..3, aligned by tick, floats quantized as declared
        found     structural 1   semantic 1   confidence 0   outcome 1

          tick 2    semantic    observation.add  state.risk  0.6 -> 0.7
          tick 4|-  structural  only in a: 1 transition
          outcome   at 4|3                       notes[3]    "note 4" -> (absent)
                                                 risk        0.9 -> 0.8
        4 pairs compared, 1 differs, 1 only in a"#,
    );
    assert_eq!(end, End::No);
}

#[test]
fn two_columns_stop_at_the_limit() {
    let form = DiffForm { limit: 1, side_by_side: true, ..DiffForm::default() };
    let (text, end) = compared(form, &NARROW);
    check(
        &text,
        r#"
        diverged at tick 2, cause: observation.ad...
        runs      a risky, b other
        shared    nothing: the runs begin with di...
        compared  a 0..4 with b 0..3, aligned by ...
        found     structural 1   semantic 1   confidence 0   outcome 1
        a                           differs   b
        2 observation.add "step 2"  semantic  2 o...
        (lines are cut at the width; a larger --width shows more, --full everything)

          outcome  at 4|3        notes[3]  "note ...
                                 risk      0.9 ->...
        1 of 2 pairs listed (use -n 0 for all)
        4 pairs compared, 1 differs, 1 only in a"#,
    );
    assert_eq!(end, End::Answered);
}

#[test]
fn types_are_counted_instead_of_pairs() {
    let form = DiffForm { stat: true, ..DiffForm::default() };
    check(
        &compared(form, &Page::WIDE).0,
        r#"
        diverged at tick 2, cause: observation.add, state.risk 0.6 -> 0.7
        runs      a risky, b other
        shared    nothing: the runs begin with different records
        compared  a 0..4 with b 0..3, aligned by tick, floats quantized as declared
        found     structural 1   semantic 1   confidence 0   outcome 1
        type                      pairs  equal  structural  semantic  confidence
        observation.add               3      2           0         1           0
        observation.add | (none)      1      0           1         0           0
        run                           1      1           0         0           0
        4 pairs compared, 1 differs, 1 only in a"#,
    );
}
