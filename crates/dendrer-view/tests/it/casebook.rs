use dendrer::casebook::{self, CasebookNote, Place};
use dendrer::change::findings::{LabelReply, NoteReply};
use dendrer::recorder::{Environment, Fixed};
use dendrer::store::Shared;
use dendrer_view::answer::Page;

use super::{HEARD, NARROW, check, risky, text, trace};

fn world(now: u64) -> Box<dyn Environment> {
    Box::new(Fixed::new("casebook", now, 1))
}

fn at(store: &Shared, tick: Option<u64>) -> Place {
    Place::of(&trace(store, "risky"), tick).unwrap()
}

#[test]
fn labels_are_listed_by_name() {
    let store = risky();
    let empty = LabelReply { labels: casebook::labels_of(&store).unwrap(), recorded: None };
    check(
        &text(&empty, &Page::WIDE),
        r#"
        0 labels"#,
    );
    casebook::label(&store, "the-whole", &at(&store, None), "ann", false, world(10)).unwrap();
    let record = casebook::label(&store, "before", &at(&store, Some(2)), "ann", false, world(20)).unwrap();
    let mut answer = LabelReply { labels: casebook::labels_of(&store).unwrap(), recorded: None };
    check(
        &text(&answer, &Page::WIDE),
        r#"
        label      at       hash
        before     risky@2  a1cac21dd94c
        the-whole  risky    e2150843cf33
        2 labels"#,
    );
    check(
        &text(&answer, &HEARD),
        r#"
        label: before, at: risky@2, hash: a1cac21dd94c
        label: the-whole, at: risky, hash: e2150843cf33
        2 labels"#,
    );
    check(
        &text(&answer, &Page { width: Some(20), ..NARROW }),
        r#"
        label      at
          hash
        before     risky@2
          a1cac21dd94c
        the-whole  risky
          e2150843cf33
        2 labels"#,
    );
    answer.recorded = Some(record);
    check(
        &text(&answer, &Page::WIDE),
        r#"
        RECORDED   casebook@2  memory.write   hash ddae147eb3e5"#,
    );
}

#[test]
fn notes_of_a_run_are_those_of_all_its_ticks() {
    let store = risky();
    for (tick, text) in [(None, "a long run"), (Some(2), "look\there"), (Some(3), "too much")] {
        let note = CasebookNote { at: at(&store, tick), text: text.to_owned(), by: "ann".to_owned() };
        casebook::note(&store, &note, world(tick.unwrap_or(0))).unwrap();
    }
    let notes = |place: Option<&Place>| {
        let notes = casebook::notes_of(&store, place).unwrap();
        text(&NoteReply { notes, recorded: None }, &Page::WIDE)
    };
    check(
        &notes(None),
        r#"
        risky  ann  "a long run"
        risky@2  ann  "look\there"
        risky@3  ann  "too much"
        3 notes"#,
    );
    assert_eq!(notes(Some(&at(&store, None))), notes(None));
    check(
        &notes(Some(&at(&store, Some(2)))),
        r#"
        risky@2  ann  "look\there"
        1 note"#,
    );
}
