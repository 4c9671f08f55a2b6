use dendrer::care::backup::{BackedUp, BackupError};
use dendrer::store::{Copied, StoreError, TreeHead};
use dendrer_view::answer::{Answer as _, Page};
use dendrer_view::quote;

use super::{check, error_text, text};

fn made(before: u64, voided: u64, signed: Option<u64>) -> BackedUp {
    let tree = TreeHead { size: 1_502, root: super::root() };
    let copied = Copied { tree, before, signed, bytes: 4_096, voided, tiles: true };
    BackedUp { path: "../bk".into(), copied }
}

#[test]
fn a_first_backup_has_all_of_the_log() {
    let made = made(0, 0, Some(1_502));
    check(
        &text(&made, &Page::WIDE),
        r#"
        BACKED UP  1,502 records, root 070707070707, every one verified in the copy
        copied     all of them, 4,096 bytes of the log
        signed     up to 1,502 records
        (stderr) note: the key of the log is no part of ../bk; keep it elsewhere
        (stderr) help: dendrer verify --all --store ../bk
        (stderr) help: dendrer restore ../bk DIR"#,
    );
    check(
        &quote::json(&made.document()),
        r#"
        {"before":0,"bytes":4096,"erased":false,"path":"../bk","records":1502,"root":"sha256:0707070707070707070707070707070707070707070707070707070707070707","schema":"dendrer.backup/1","signed":1502}"#,
    );
}

#[test]
fn a_later_backup_says_what_is_new_and_what_was_erased() {
    check(
        &text(&made(1_500, 1, None), &Page::WIDE),
        r#"
        BACKED UP  1,502 records, root 070707070707, every one verified in the copy
        copied     2 since the last backup, 4,096 bytes of the log
        erased     what was erased in the store since then
        signed     not yet
        (stderr) note: the key of the log is no part of ../bk; keep it elsewhere
        (stderr) help: dendrer verify --all --store ../bk
        (stderr) help: dendrer restore ../bk DIR"#,
    );
}

#[test]
fn a_refused_backup_says_what_was_not_changed() {
    check(
        &error_text(BackupError::IsLink { path: "bk/segments".into() }),
        r#"
        error[E0113]: bk/segments is a link
        note: nothing was changed; a backup has files and directories of its own
              see: dendrer explain E0113"#,
    );
    let incomplete = StoreError::SyncFailed { why: "no reason".into() };
    check(
        &error_text(BackupError::Incomplete(incomplete)),
        r#"
        error[E0805]: the disk did not confirm what was written: no reason
        note: what is there does not count as a backup of the store as it is now
        help: dendrer fsck
              see: dendrer explain E0805"#,
    );
}
