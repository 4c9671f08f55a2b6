use dendrer::ask::show::{ShowTerms, ShownRecord, ShownWrites, show};
use dendrer::kernel::predicate::Window;
use dendrer_view::answer::{Answer as _, Page};
use dendrer_view::show::{ShowAnswer, ShowParts};

use super::{HEARD, check, path, risky, text, trace};

const ALL: ShowParts =
    ShowParts { all: true, intent: true, result: true, changes: true, provenance: false, run: false };

fn shown(terms: &ShowTerms) -> ShownRecord {
    let store = risky();
    show(&trace(&store, "risky"), 3, terms).unwrap()
}

#[test]
fn a_transition_is_shown_with_its_changes() {
    let shown = shown(&ShowTerms::default());
    check(
        &text(&ShowAnswer { shown: &shown, parts: ALL }, &Page::WIDE),
        r#"
        tick 3  observation.add  by writer  1970-01-01T00:00:00.004Z
          "step 3"
          confidence  0.900
        state  2 places written
          ~ risk      0.6 -> 0.8
          + notes[2]  "note 3"
        author agent
        id f8d1ecde2c06   after a1cac21dd94c"#,
    );
}

#[test]
fn a_screen_reader_hears_words_for_marks() {
    let shown = shown(&ShowTerms { path: Some(path("/risk")), ..ShowTerms::default() });
    let parts = ShowParts { all: false, intent: false, result: false, ..ALL };
    check(
        &text(&ShowAnswer { shown: &shown, parts }, &HEARD),
        r#"
        state  1 place written
          changed risk  0.6 -> 0.8"#,
    );
}

#[test]
fn a_state_comes_after_the_record_and_a_narrow_page_wraps() {
    let shown = shown(&ShowTerms { state: Some(Window::Before), ..ShowTerms::default() });
    let parts = ShowParts { all: false, intent: true, result: false, ..ALL };
    let answer = ShowAnswer { shown: &shown, parts };
    let narrow = Page { width: Some(40), ..Page::WIDE };
    check(
        &text(&answer, &narrow),
        r#"
          "step 3"
          confidence  0.900
        state  2 places written
          ~ risk      0.6 -> 0.8
          + notes[2]  "note 3"
        state before
          {
            "notes": [
              "note 1",
              "note 2"
            ],
            "risk": 0.6
          }"#,
    );
}

#[test]
fn unknown_changes_name_the_missing_value() {
    let mut shown = shown(&ShowTerms::default());
    shown.writes = ShownWrites::Unknown { tick: 2, pointer: Some(path("/delta")), ops: None };
    let parts = ShowParts { all: false, intent: false, result: false, ..ALL };
    let answer = ShowAnswer { shown: &shown, parts };
    check(
        &text(&answer, &HEARD),
        r#"
        state  not known: the delta of tick 2 was erased or withheld"#,
    );
    assert_eq!(answer.document().get("changes"), Some(&dendrer_object::Value::Null));
}
