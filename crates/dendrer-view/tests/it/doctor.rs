use dendrer::care::check::{IndexFact, SignedFact, StoreFact, StoreFigures};
use dendrer::store::{IndexState, Leftover, StoreError, TreeHead};
use dendrer_object::Code;
use dendrer_view::answer::{Answer as _, End, Page};
use dendrer_view::doctor::{DoctorAnswer, DoctorCheck, ReportOrigin, check_of, report};
use dendrer_view::quote;

use super::{check, text};

fn index(state: IndexState) -> IndexFact {
    let (is_damaged, is_backup, is_locked, is_wanting) = (false, false, false, false);
    IndexFact { state, is_damaged, size: 12, is_backup, is_locked, is_wanting, rebuilt: None }
}

fn checks(facts: &[StoreFact]) -> Vec<DoctorCheck> {
    facts.iter().map(check_of).collect()
}

#[test]
fn a_store_that_is_fit_for_work_has_a_line_for_each_thing() {
    let tree = TreeHead { size: 12, root: super::root() };
    let checks = checks(&[
        StoreFact::Opened { path: ".dendrer".into(), tree, is_backup: false, is_closed: false },
        StoreFact::Log { trouble: None, can_mend: false },
        StoreFact::Signed(SignedFact::UpTo(12)),
        StoreFact::Index(index(IndexState::Ready(12))),
        StoreFact::Lock(Ok(true)),
        StoreFact::Leftovers { files: Vec::new(), removed: None },
    ]);
    let answer = DoctorAnswer { checks: &checks, report: None };
    assert_eq!(answer.end(), End::Answered);
    check(
        &text(&answer, &Page::WIDE),
        r#"
        ok     store      .dendrer: 12 records, root 070707070707
        ok     log        reads to its end and extends what was signed; fsck reads all of it
        ok     signed     up to 12 records
        ok     index      covers 12 of 12
        ok     lock       free
        ok     leftovers  none"#,
    );
}

#[test]
fn a_fault_has_a_code_and_the_next_command() {
    let wanting = IndexFact { is_damaged: true, is_wanting: true, ..index(IndexState::Corrupt("x".into())) };
    let file = |name: &str| Leftover { file: name.into(), bytes: 1 };
    let checks = checks(&[
        StoreFact::Signed(SignedFact::Differs { signed: 20, shorter: Some(12) }),
        StoreFact::Index(wanting),
        StoreFact::Lock(Ok(false)),
        StoreFact::Leftovers { files: vec![file("a.tmp")], removed: None },
        StoreFact::Foreign(vec![file("notes"), file("more")]),
    ]);
    let answer = DoctorAnswer { checks: &checks, report: None };
    assert_eq!(answer.end(), End::Problem(Code::E0307));
    check(
        &text(&answer, &Page::WIDE),
        r#"
        FAIL   signed     20 records were signed here, and the log has 12 [E0307]
                          next: dendrer verify --all
        warn   index      damaged (x) [E0809]
                          next: dendrer doctor --fix
        ok     lock       held: somebody is writing at this moment
        warn   leftovers  1 file of interrupted work, 1 byte
                          next: dendrer doctor --fix
        warn   files      notes and 1 more are no file of a store
                          next: dendrer fsck"#,
    );
    check(
        &quote::json(&DoctorAnswer { checks: &checks[1..2], report: Some("r.json") }.document()),
        r#"
        {"items":[{"code":"E0809","fixed":false,"level":"warn","name":"index","next":["dendrer","doctor","--fix"],"what":"damaged (x)"}],"level":"warn","report":"r.json","schema":"dendrer.doctor/1"}"#,
    );
}

#[test]
fn a_repair_is_told_from_one_that_failed() {
    let wanting = || IndexFact { is_wanting: true, ..index(IndexState::Absent) };
    let failed = || StoreError::ReadOnly { why: "no reason".into() };
    let files = || vec![Leftover { file: "a.tmp".into(), bytes: 1 }];
    let checks = checks(&[
        StoreFact::Mended(Ok(12)),
        StoreFact::Index(IndexFact { rebuilt: Some(Ok((12, 12))), ..wanting() }),
        StoreFact::Index(IndexFact { rebuilt: Some(Ok((9, 12))), ..wanting() }),
        StoreFact::Index(IndexFact { rebuilt: Some(Err(failed())), ..wanting() }),
        StoreFact::Leftovers { files: files(), removed: Some(Ok(())) },
        StoreFact::Leftovers { files: files(), removed: Some(Err(failed())) },
    ]);
    let answer = DoctorAnswer { checks: &checks, report: Some("r.json") };
    assert_eq!(answer.end(), End::No);
    check(
        &text(&answer, &Page::WIDE),
        r#"
        fixed  checkpoint  taken from log/checkpoint, which is signed and says the first 12 records of this log
        fixed  index      made again from the log, covers 12
        warn   index      made again as far as 9 of 12: what follows in the log has no place in an index [E0309]
                          next: dendrer verify --all
        FAIL   index      none, so 12 are read from the log each time, and could not be made again: this handle only reads: no reason [E0309]
        fixed  leftovers  1 file of interrupted work, 1 byte: removed
        FAIL   leftovers  1 file of interrupted work, 1 byte, and could not be removed: this handle only reads: no reason [E0805]
        (stderr) note: the report in r.json has no content, names, paths or keys; read it before you hand it over"#,
    );
}

#[test]
fn a_report_has_no_message_and_no_name() {
    let checks = [DoctorCheck::ok("store", "/home/somebody/secret")];
    let store = StoreFigures {
        format: 1,
        is_backup: false,
        records: 12,
        segments: vec![4_096],
        index: IndexState::Absent,
        index_bytes: 0,
        snapshots: 0,
        snapshot_bytes: 0,
        verdicts: 0,
        trouble: None,
        signed_here: Some(12),
        runs: Vec::new(),
        names: Vec::new(),
    };
    let origin = ReportOrigin { version: "0.1.0", os: "linux", arch: "x86_64" };
    let text = quote::json(&report(origin, &checks, Some(&store)));
    check(
        &text[..text.find("\"formats\"").unwrap()],
        r#"
        {"arch":"x86_64","checks":[{"code":null,"fixed":false,"level":"ok","name":"store"}],"#,
    );
    check(
        &text[text.find("\"os\"").unwrap()..],
        r#"
        "os":"linux","schema":"dendrer.report/1","store":{"backup":false,"format":1,"index":"absent","index_bytes":0,"index_covers":null,"items":[],"log_bytes":4096,"records":12,"refusals":0,"runs":0,"segments":1,"signed_here":12,"snapshot_bytes":0,"snapshots":0,"transitions":0,"trouble":null,"verdicts":0},"version":"0.1.0"}"#,
    );
}
