use dendrer::care::check::{FileFact, FilesReport};
use dendrer::store::{Damage, DamageKind, DamagePlace, IndexState, Leftover, Mark, TilesState};
use dendrer_object::Code;
use dendrer_testkit::{run_name, store_id};
use dendrer_view::answer::{Answer as _, End, Page};
use dendrer_view::quote;

use super::{check, text};

fn report(facts: Vec<FileFact>) -> FilesReport {
    FilesReport { path: ".dendrer".into(), size: 12, lost: Some(0), is_hidden: false, facts }
}

fn damage(kind: DamageKind) -> Damage {
    let place =
        DamagePlace { file: "segments/00000000.seg".into(), offset: Some(48), ..DamagePlace::default() };
    Damage { kind, place, what: "checksum", expected: "1".into(), found: "2".into() }
}

#[test]
fn a_store_is_intact_file_by_file() {
    let report = report(vec![
        FileFact::Log { size: 12, root: Some(super::root()) },
        FileFact::Checkpoint(Some(12)),
        FileFact::Descriptor(store_id(7)),
        FileFact::Index(IndexState::Ready(12)),
        FileFact::Snapshots(1),
        FileFact::Tiles(TilesState::Ready(12)),
        FileFact::Lock(true),
    ]);
    assert_eq!(report.end(), End::Answered);
    check(
        &text(&report, &Page::WIDE),
        r#"
        ok         segments/     12 records, root 070707070707
        ok         checkpoint    signed up to 12 records
        ok         store.json    store 07070707070707070707070707070707
        ok         index.sqlite  12 records as the log says
        ok         index.sqlite  1 snapshot, each the state on record
        ok         log/          tiles of 12 records
        ok         lock          free
        INTACT   .dendrer"#,
    );
}

#[test]
fn damage_says_how_many_records_it_costs() {
    let facts = vec![
        FileFact::Damage(damage(DamageKind::Frame)),
        FileFact::Unfinished,
        FileFact::Checkpoint(None),
        FileFact::Index(IndexState::Corrupt("no database".into())),
        FileFact::Snapshot { run: run_name("risky"), tick: 3, is_state: false },
        FileFact::Tiles(TilesState::Wrong),
        FileFact::Lock(false),
        FileFact::Leftover(Leftover { file: "a.tmp".into(), bytes: 1 }),
        FileFact::Foreign(Leftover { file: "notes".into(), bytes: 1 }),
    ];
    let report = FilesReport { lost: Some(3), ..report(facts) };
    assert_eq!(report.end(), End::Problem(Code::E0305));
    check(
        &text(&report, &Page::WIDE),
        r#"
        damaged    segments/00000000.seg  error[E0305]: segments/00000000.seg at byte 48: checksum: expected 1, found 2
        note       segments/              bytes behind the last group, never acknowledged; the next writer cuts them
        ok         checkpoint             nothing was signed yet
        derived    index.sqlite           damaged (no database), so nobody believes it; dendrer doctor --fix makes it anew
        derived    index.sqlite           a snapshot that is not the state of risky@3; nobody uses it
        derived    log/                   tiles that are not those of the log; laid out again when it is signed
        ok         lock                   held: somebody is writing
        left over  a.tmp                  1 byte, of interrupted work
        foreign    notes                  no file of a store
        lost       3 records; every other one opens as it was committed
        DAMAGED   .dendrer
        (stderr) help: dendrer doctor --fix
        (stderr) help: dendrer restore BACKUP --replace"#,
    );
    check(
        &quote::json(&FilesReport { facts: vec![FileFact::Unfinished], ..report }.document()),
        r#"
        {"intact":true,"items":[{"code":null,"file":"segments/","state":"note","what":"bytes behind the last group, never acknowledged; the next writer cuts them"}],"lost":3,"name":".dendrer","records":12,"schema":"dendrer.fsck/1"}"#,
    );
}

#[test]
fn a_mark_that_hides_records_is_taken_out_by_a_command() {
    let mark = Mark { size: 12, behind: 1_000, in_store: true };
    let hidden = FilesReport { lost: None, is_hidden: true, ..report(vec![FileFact::Mark(mark)]) };
    assert_eq!(hidden.end(), End::Problem(Code::E0307));
    check(
        &text(&hidden, &Page::WIDE),
        r#"
        damaged    backup.json  error[E0307]: the mark of a backup (backup.json) ends the log at 12 records, and 1,000 bytes of it stand behind that
        lost       not known: nothing behind the mark was looked at
        DAMAGED   .dendrer
        (stderr) note: without the mark it is a store again, with all of its records
        (stderr) help: mv .dendrer/backup.json .dendrer.backup.json"#,
    );
}
