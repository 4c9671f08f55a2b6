use dendrer::verify::suite::{SuiteCase, SuiteResult};
use dendrer::verify::{self, VerifyTerms};
use dendrer_object::{Code, Value};
use dendrer_view::answer::{End, ItemAnswer, Page, plain};
use dendrer_view::profile::{ProfileAnswer, ProfileFile};
use dendrer_view::suite::SuiteAnswer;

use super::{check, last_text, risky, value};

/// Hands over all items and returns the whole text.
fn all_text<A: ItemAnswer>(answer: &mut A, items: &[A::Item]) -> String {
    let lines: Vec<_> = items.iter().flat_map(|item| answer.item_lines(item, &Page::WIDE)).collect();
    plain(&lines) + &last_text(answer, &Page::WIDE)
}

fn results() -> Vec<SuiteResult> {
    let suite = value(
        r#"{"cases":[{"case":"good","expect":"verified","file":"a.dnd"},
            {"case":"bad","expect":"rejected","file":"b.dnd"},
            {"case":"wrong","code":"E0302","expect":"rejected","file":"c.dnd"}]}"#,
    );
    let report = verify::store(&risky(), &VerifyTerms::default()).unwrap();
    let cases = SuiteCase::read(&suite).unwrap();
    let judge = |case: SuiteCase| if case.good { case.judge(&report) } else { case.reject(Code::E0301) };
    cases.into_iter().map(judge).collect()
}

#[test]
fn suite_prints_each_case_and_how_many_failed() {
    let mut answer = SuiteAnswer::default();
    check(
        &all_text(&mut answer, &results()),
        r#"
        --- RUNNING good ---
        [PASS] Replay CLI successfully verified the trace (good).
        --- RUNNING bad ---
        [PASS] Replay CLI correctly rejected the corrupted trace (bad).
        --- RUNNING wrong ---
        [FAIL] Replay CLI said NOT READ E0301 (wrong), expected: rejected with E0302.
        --- 1 OF 3 TESTS FAILED ---"#,
    );
    assert_eq!(answer.end(), End::No);
    let mut answer = SuiteAnswer::default();
    let items: Vec<Value> = results().iter().filter_map(|result| answer.item(result)).collect();
    assert_eq!(items.len(), 3);
    assert_eq!(answer.summary().get("failed").and_then(Value::as_u64), Some(1));
}

#[test]
fn suite_that_is_none_is_refused_with_its_case() {
    let read = |text: &str| SuiteCase::read(&value(text)).unwrap_err();
    assert_eq!(read("{}"), "a suite is an object with a list \"cases\"");
    assert_eq!(read(r#"{"cases":[{"case":"a"}]}"#), "case 1 has no text \"expect\"");
}

#[test]
fn profile_names_the_first_line_that_does_not_fit() {
    let file = |name: &str, fault| ProfileFile::new(name, 3, fault);
    let files = [file("a.jsonl", None), file("b.jsonl", Some((2, "its hash is x".to_owned())))];
    let mut answer = ProfileAnswer::new("paper");
    check(
        &all_text(&mut answer, &files),
        r#"
        OK    a.jsonl: 3 lines bear out their paper hashes
        FAIL  b.jsonl: error[E0303]: line 2: its hash is x
        not checked: whether lines are missing at the end: a file that was cut there has the same hashes"#,
    );
    assert!(matches!(answer.end(), End::Problem(_)));
}
