use dendrer::care::CareNote;
use dendrer::care::spare::{Cleaned, Rule, SpareReason};
use dendrer::store::{KeptRow, KeptWhat, Leftover, StoreError};
use dendrer_testkit::run_name;
use dendrer_view::answer::{Answer as _, Page, plain};
use dendrer_view::care::note_line;
use dendrer_view::quote;

use super::{check, text};

fn cleaned(dry_run: bool) -> Cleaned {
    let row = |what, bytes| KeptRow { run: run_name("risky"), what, bytes };
    let spare = vec![
        (row(KeptWhat::Snapshot(3), 1_000), SpareReason::TooClose),
        (row(KeptWhat::Snapshot(4), 500), SpareReason::TooClose),
        (row(KeptWhat::Verdicts(super::root()), 1), SpareReason::Old),
    ];
    let leftovers = vec![Leftover { file: "a.tmp".into(), bytes: 2 }];
    Cleaned {
        dry_run,
        rule: Rule { thin: false, since_ms: 86_400_000 },
        spare,
        leftovers,
        room: 4_096,
        vault_parts: 0,
    }
}

#[test]
fn a_dry_run_says_what_would_go() {
    check(
        &text(&cleaned(true), &Page::WIDE),
        r#"
        would go  2 snapshots, 1,500 bytes: too little changed since the one before
        would go  1 kept answer of a predicate, 1 byte: nothing was written to the run for so long
        would go  a.tmp, 2 bytes: left by interrupted work
        would go  4,096 bytes of the index that hold nothing
        5,599 bytes; the log is as it was
        (stderr) note: runs count as old where nothing was written since 1970-01-02T00:00:00.000Z
        (stderr) note: nothing was removed (-n)"#,
    );
}

#[test]
fn each_thing_that_was_removed_is_an_item() {
    check(
        &quote::json(&cleaned(false).document()),
        r#"
        {"bytes":1503,"dry_run":false,"items":[{"bytes":1000,"file":null,"run":"risky","tick":3,"what":"snapshot","why":"too little changed since the one before"},{"bytes":500,"file":null,"run":"risky","tick":4,"what":"snapshot","why":"too little changed since the one before"},{"bytes":1,"file":null,"run":"risky","tick":null,"what":"verdicts","why":"nothing was written to the run for so long"},{"bytes":2,"file":"a.tmp","run":null,"tick":null,"what":"file","why":"left by interrupted work"}],"room":4096,"schema":"dendrer.gc/1","vault_parts":0}"#,
    );
}

#[test]
fn a_clean_store_has_nothing_to_remove() {
    let nothing = Cleaned { spare: Vec::new(), leftovers: Vec::new(), room: 0, ..cleaned(false) };
    check(
        &text(&nothing, &Page::WIDE),
        "
        nothing to remove",
    );
}

#[test]
fn notes_come_before_the_answer() {
    let busy = StoreError::SyncFailed { why: "busy".into() };
    let notes = [CareNote::IndexInUse(busy), CareNote::IndexDoesNotOpen, CareNote::LeftBeside("x".into())];
    check(
        &plain(&notes.iter().map(note_line).collect::<Vec<_>>()),
        r#"
        (stderr) note: the index is in use, so its file stays as large as it is for now (the disk did not confirm what was written: busy)
        (stderr) note: the index does not open; dendrer doctor --fix makes it again
        (stderr) note: x is a store that a restore which was cut off left beside its place"#,
    );
}
