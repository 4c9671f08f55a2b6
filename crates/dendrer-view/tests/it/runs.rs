use std::collections::BTreeMap;

use dendrer::ask::runs::question::RunsQuestion;
use dendrer::ask::runs::{RunsAnswer, RunsOrder, runs};
use dendrer::store::Shared;
use dendrer_view::answer::{Answer as _, Page};

use super::{HEARD, add_run, check, risky, text};

fn question() -> RunsQuestion {
    RunsQuestion { sort: Some(RunsOrder::Name), ..RunsQuestion::default() }
}

/// Lists runs of which none was verified.
fn listed(store: &Shared, question: &RunsQuestion) -> Result<RunsAnswer, dendrer::problem::Problem> {
    runs(store, question, &BTreeMap::new())
}

#[test]
fn runs_are_a_table_and_a_list_for_a_screen_reader() {
    let store = risky();
    add_run(&store, "calm", &[0.3]);
    let answer = listed(&store, &question()).unwrap();
    check(
        &text(&answer, &Page::WIDE),
        r#"
        name   ticks  updated
        calm       1  1970-01-01T00:00:00.002Z
        risky      4  1970-01-01T00:00:00.005Z
        2 of 2 runs; goal stay calm; stage 1"#,
    );
    check(
        &text(&answer, &HEARD),
        r#"
        name: calm, ticks: 1
        name: risky, ticks: 4
        2 of 2 runs; goal stay calm; stage 1"#,
    );
}

#[test]
fn a_condition_leaves_runs_out_and_says_which_it_cannot_judge() {
    let store = risky();
    add_run(&store, "calm", &[0.3]);
    let asks = |filter: &str| RunsQuestion { r#where: Some(filter.to_owned()), ..question() };
    check(
        &text(&listed(&store, &asks("state.risk > 0.75")).unwrap(), &HEARD),
        r#"
        name: risky, ticks: 4, goal: stay calm
        1 of 2 runs, 1 match; stage 1"#,
    );
    check(
        &text(&listed(&store, &asks("state.memory > 1")).unwrap(), &HEARD),
        r#"
        0 of 2 runs, 0 match
        2 runs could not be judged; the first is risky: state.memory is missing"#,
    );
    let note = "2 runs could not be judged; the first is risky: state.memory is missing";
    assert_eq!(listed(&store, &asks("state.memory > 1")).unwrap().notes(), [note]);
    // A place that no run ever had is no condition on runs.
    let error = listed(&store, &asks("state.nothing > 1")).unwrap_err();
    assert_eq!(error.code, dendrer_object::Code::E0104);
}
