use dendrer_object::Code;
use std::ops::ControlFlow;

use dendrer::ask::replay::{ReplayedTick, replay};
use dendrer::kernel::replay::ReplayError;
use dendrer_view::answer::{End, ItemAnswer as _, Page, plain};
use dendrer_view::replay::ReplayAnswer;

use super::{check, last_text, path, risky, trace};

#[test]
fn a_replay_prints_each_tick_and_what_it_came_to() {
    let store = risky();
    let mut answer = ReplayAnswer::new(false);
    let mut text = String::new();
    let replayed = replay(&trace(&store, "risky"), 2, true, &mut |head| {
        let state = path("/risk").get(head.state()).cloned();
        let item = ReplayedTick { tick: head.tick(), root: head.state().digest(), state };
        text.push_str(&plain(&answer.item_lines(&item, &Page::WIDE)));
        ControlFlow::Continue(())
    });
    answer.replayed = Some(replayed.unwrap());
    check(
        &(text + &last_text(&mut answer, &Page::WIDE)),
        r#"
             1  sha256:248128d657adc8554e8cd4843f54db63cec1f7c70f48757a734fe97d5b959281  0.5
             2  sha256:819b063820a3dac6cd9280d1d4d77a6e6a0f330ed16c02410b6dd7222d82a8a6  0.6
        replayed   OK    2 ticks of 4 of risky, by delta/1, two evaluations each; no model and no tool was called"#,
    );
    assert_eq!(answer.end(), End::Answered);
}

#[test]
fn a_replay_that_ends_early_fails_unless_it_only_detects() {
    let store = risky();
    let mut replayed = replay(&trace(&store, "risky"), 4, false, &mut |_| ControlFlow::Continue(())).unwrap();
    replayed.error = Some(ReplayError::Erased { tick: 2, pointer: Some(path("/delta")) });
    let mut answer = ReplayAnswer::new(false);
    answer.replayed = Some(replayed);
    assert_eq!((last_text(&mut answer, &Page::WIDE).as_str(), answer.end()), ("", End::Problem(Code::E0311)));
    answer.detects = true;
    check(
        &last_text(&mut answer, &Page::WIDE),
        r#"
        replayed   WARN  tick 2 cannot be replayed: its delta was erased or withheld"#,
    );
    assert_eq!(answer.end(), End::Answered);
}
