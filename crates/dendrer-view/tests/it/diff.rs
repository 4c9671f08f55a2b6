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
        they part at tick 2; 1 of 4 pairs differs, and the end
        they share nothing: they begin with different records
        found structural 1, semantic 1, outcome 1

        2  semantic  observation.add
          ~ state.risk  0.6 -> 0.7
        4|-  structural  only in a: 1 transition
          observation.add
        end 4|3  outcome
          - notes[3]  "note 4"
          ~ risk      0.9 -> 0.8"#,
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
        they part at tick 2; 1 of 4 pairs differs,
          and the end
        they share nothing: they begin with
          different records
        found structural 1, semantic 1, outcome 1

        a                           differs   b
        2 observation.add "step 2"  semantic  2
          observation.add "step 2"
        end 4|3  outcome
          - notes[3]  "note 4"
          ~ risk      0.9 -> 0.8
        1 of 2 pairs listed (use -n 0 for all)"#,
    );
    assert_eq!(end, End::Answered);
}

#[test]
fn types_are_counted_instead_of_pairs() {
    let form = DiffForm { stat: true, ..DiffForm::default() };
    check(
        &compared(form, &Page::WIDE).0,
        r#"
        they part at tick 2; 1 of 4 pairs differs, and the end
        they share nothing: they begin with different records
        found structural 1, semantic 1, outcome 1
        type                      pairs  equal  structural  semantic  confidence
        observation.add               3      2           0         1           0
        observation.add | (none)      1      0           1         0           0
        run                           1      1           0         0           0"#,
    );
}
