use dendrer::ask::packs::{PackShown, PackTested};
use dendrer::kernel::step::Start;
use dendrer::pack::{Source, read};
use dendrer::recorder::{Fixed, Recorder};
use dendrer_testkit::{memory, run_name};
use dendrer_view::answer::{Answer as _, End, Page};
use dendrer_view::pack::PackCheckAnswer;

use super::{check, text, trace};

const DESK: &str = "\
name: example.desk
version: v1
words: orders of one customer
goal: stay within the limit
constants: {limit: 100}
state:
  open: {words: open orders, init: '0'}
  refunded: {words: money paid back, init: '0', decimals: 2}
types:
  desk.refund: money goes back
tools:
  refund: {effect: effectful, words: gives money back}
rules:
  - when_type: desk.refund
    steps: [{set: refunded, value: state.refunded + t.intent.amount}]
  - when_type: goal.complete
    steps: [{set: open, value: '0'}]
predicates:
  within_limit: {holds: state.refunded <= limit}
tests:
  - name: a refund is added
    then:
      - t: {type: desk.refund, intent: {amount: 5}}
        state: {refunded: 5}
  - name: a refund is lost
    then:
      - t: {type: desk.refund, intent: {amount: 5}}
        state: {refunded: 0}
";

fn desk() -> Source {
    read(DESK.as_bytes()).unwrap()
}

#[test]
fn sound_pack_is_named_with_its_digest() {
    let checked = read(DESK.as_bytes());
    let answer = PackCheckAnswer { file: "desk.yaml", checked: &checked, stage: None };
    check(
        &text(&answer, &Page::WIDE),
        r#"
        OK  example.desk v1  sha256:d3d0f5cd529e79d76946b53bb5b5167518bcc06a5f9d8393c22aa6a004835ecb"#,
    );
    assert_eq!(answer.end(), End::Answered);
}

#[test]
fn problems_have_their_place_and_a_hint() {
    let bad = DESK.replace("<= limit", "<= limt").replace("steps: [{set: open", "step: [{set: open");
    let checked = read(bad.as_bytes());
    let answer = PackCheckAnswer { file: "desk.yaml", checked: &checked, stage: None };
    check(
        &text(&answer, &Page::WIDE),
        r#"
        desk.yaml:16:5: error[E0902]: a rule has steps
          | - when_type: goal.complete
          |   ^^^^^^^^^
          | at     rules[1]
          | hint   add `steps:` with a list
        desk.yaml:17:5: error[E0902]: a rule has no member step
          | step: [{set: open, value: '0'}]
          | ^^^^
          | at     rules[1].step
          | hint   did you mean steps?
        desk.yaml:19:43: error[E0505]: there is no `limt` here
          | ..._limit: {holds: state.refunded <= limt}
          |                                      ^^^^
          | at     predicates.within_limit.holds
          | hint   did you mean limit
        (stderr) 3 problems in desk.yaml"#,
    );
    assert_eq!(answer.end(), End::No);
}

#[test]
fn hundred_problems_are_printed_and_the_rest_counted() {
    let rules = "  - whenn: 1\n".repeat(120);
    let checked = read(format!("name: x\nversion: v1\nreducer: fold/1\nrules:\n{rules}").as_bytes());
    let answer = PackCheckAnswer { file: "x.yaml", checked: &checked, stage: None };
    let lines = text(&answer, &Page::WIDE);
    let end: Vec<&str> = lines.lines().rev().take(2).collect();
    assert_eq!(end, ["(stderr) 240 problems in x.yaml", "(140 more)"]);
}

#[test]
fn declarations_have_the_rules_that_write_them() {
    check(
        &text(&PackShown::of_source(desk()), &Page::WIDE),
        r#"
        example.desk v1   orders of one customer
        digest      sha256:d3d0f5cd529e79d76946b53bb5b5167518bcc06a5f9d8393c22aa6a004835ecb
        goal        stay within the limit
        reducer     fold/1, 2 rules
        names       limit
        field       state.open  rule 2   open orders
        field       state.refunded  rule 1  2 decimals   money paid back
        rules read  state.refunded
        type        desk.refund  registered, rule 1   money goes back
        type        goal.complete  rule 2
        tool        refund  effectful   gives money back
        tool        (every other)  counts as effectful, undeclared
        predicate   within_limit  must hold state.refunded <= limit
                    reads state.refunded
        tests       2"#,
    );
}

#[test]
fn pack_of_a_run_agrees_with_its_text() {
    let store = memory(7);
    let start = Start::new(run_name("desk"));
    Recorder::begin(&store, &desk().bind(start).unwrap(), Box::new(Fixed::new("desk", 0, 1)))
        .unwrap()
        .commit()
        .unwrap();
    let shown = PackShown::of_run(&trace(&store, "desk")).unwrap().unwrap();
    assert_eq!(shown.text_agrees, Some(true));
    assert_eq!(text(&shown, &Page::WIDE), text(&PackShown::of_source(desk()), &Page::WIDE));
    let other = PackShown { text_agrees: Some(false), ..shown };
    let found = text(&other, &Page::WIDE);
    check(
        found.lines().nth(2).unwrap(),
        r#"
        text        WARN  the recorded text does not say what the recorded pack says; the pack decides"#,
    );
}

#[test]
fn failed_tests_have_a_line_for_each_difference() {
    let source = desk();
    let tests = source.test().into_iter().map(|test| ("desk.yaml".to_owned(), test)).collect();
    let tested = PackTested::of(&source.pack, tests).unwrap();
    check(
        &text(&tested, &Page::WIDE),
        r#"
        OK    a refund is added
        FAIL  a refund is lost
              desk.yaml:27:9: state.refunded is 5, expected 0
        2 tests, 1 failed; rules exercised 1 of 2
        (stderr) note: in no test does rule 2 write anything"#,
    );
    assert_eq!(tested.end(), End::No);
}

#[test]
fn pack_without_tests_is_noted() {
    let tested = PackTested::of(&desk().pack, Vec::new()).unwrap();
    check(
        &text(&tested, &Page::WIDE),
        r#"
        0 tests, 0 failed; rules exercised 0 of 2
        (stderr) note: the pack carries no tests; add `tests:` or give --cases FILE"#,
    );
    assert_eq!(tested.end(), End::Unknown);
}
