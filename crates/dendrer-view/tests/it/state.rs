use dendrer::ask::state::question::StateReply;
use dendrer::ask::state::{CutLimits, StateAnswer, StateDifference, differences, value_at};
use dendrer::kernel::predicate::Window;
use dendrer_testkit::run_name;
use dendrer_view::answer::Page;

use super::{HEARD, check, path, risky, text, trace};

#[test]
fn a_state_ends_at_the_depth_that_was_asked_for() {
    let store = risky();
    let trace = trace(&store, "risky");
    let state = trace.state(2).unwrap();
    let value = value_at(&trace, 2, &state, &path("")).unwrap().unwrap();
    let reply = StateReply::State(StateAnswer {
        is_bare: false,
        agent: None,
        run: run_name("risky"),
        tick: 2,
        window: Window::After,
        path: path(""),
        root: state.digest(),
        value,
        derived: false,
        unknown: Vec::new(),
        limits: CutLimits { max: None, depth: Some(1) },
    });
    check(
        &text(&reply, &Page::WIDE),
        r#"
        {
          "notes": "2 items",
          "risk": 0.6
        }
        (stderr) state root sha256:819b063820a3dac6cd9280d1d4d77a6e6a0f330ed16c02410b6dd7222d82a8a6"#,
    );
}

#[test]
fn a_difference_names_both_places() {
    let store = risky();
    let trace = trace(&store, "risky");
    let reply = StateReply::Difference(StateDifference {
        place: (run_name("risky"), 3),
        base: (run_name("risky"), 1),
        window: Window::After,
        path: path(""),
        changes: differences(&trace.state(1).unwrap(), &trace.state(3).unwrap()),
        unknown: Vec::new(),
    });
    check(
        &text(&reply, &Page::WIDE),
        r#"
        + notes[1]  "note 2"
        + notes[2]  "note 3"
        ~ risk      0.5 -> 0.8
        3 differences from risky@1 to risky@3"#,
    );
    check(
        &text(&reply, &HEARD),
        r#"
        added notes[1]  "note 2"
        added notes[2]  "note 3"
        changed risk  0.5 -> 0.8
        3 differences from risky@1 to risky@3"#,
    );
}
