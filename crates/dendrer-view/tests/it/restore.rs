use dendrer::Error;
use dendrer::care::restore::{NewerRecords, OldPlace, PlacedStore, RestoreError, Restored, UnsoundBackup};
use dendrer::error::LogDiffers;
use dendrer::store::{Copied, Mark, StoreError, TreeHead};
use dendrer_view::answer::{Answer as _, Page};
use dendrer_view::quote;

use super::{check, error_text, text};

const TREE: TreeHead = TreeHead { size: 12, root: super::root() };

fn restored() -> Restored {
    let copied = Copied { tree: TREE, before: 0, signed: Some(12), bytes: 99, voided: 0, tiles: true };
    let path = "new/.dendrer".into();
    Restored {
        path,
        copied,
        last_signed_here: Some(12),
        refused: None,
        has_key: true,
        aside: None,
        erased_again: Vec::new(),
        erasures_unknown: None,
    }
}

#[test]
fn a_store_that_was_restored_can_be_written() {
    check(
        &text(&restored(), &Page::WIDE),
        r#"
        RESTORED  new/.dendrer: 12 records, root 070707070707, every one verified
        (stderr) help: dendrer verify --all --store new/.dendrer"#,
    );
    check(
        &quote::json(&restored().document()),
        r#"
        {"aside":null,"erased_again":[],"last_signed_here":12,"path":"new/.dendrer","records":12,"root":"sha256:0707070707070707070707070707070707070707070707070707070707070707","schema":"dendrer.restore/1","signed":12,"writable":true}"#,
    );
    check(
        &text(&Restored { has_key: false, ..restored() }, &Page::WIDE),
        r#"
        RESTORED  new/.dendrer: 12 records, root 070707070707, every one verified
        (stderr) note: the key of the log is not here; nothing is written without it or a writer's secret (E0804)
        (stderr) help: dendrer verify --all --store new/.dendrer"#,
    );
}

#[test]
fn an_older_store_is_read_alone() {
    let refused = Some(Error::AnotherLog { why: LogDiffers { has: 12, had: 20 }, committed: false });
    let aside = Some("new/.dendrer.replaced".into());
    check(
        &text(&Restored { refused, aside, last_signed_here: Some(20), ..restored() }, &Page::WIDE),
        r#"
        RESTORED  new/.dendrer: 12 records, root 070707070707, every one verified
        aside     new/.dendrer.replaced is the store that was there
        older     it has 12 records, and had 20 when it was last signed here: it is read, and not written to
        (stderr) note: what is written behind an older log would be a second history under one key, so no verb does it
        (stderr) help: dendrer verify --all --store new/.dendrer"#,
    );
}

#[test]
fn a_store_with_more_than_the_backup_is_not_replaced() {
    let newer = |why| RestoreError::Newer {
        path: ".dendrer".into(),
        backup: "bk".into(),
        why: Box::new(why),
        erased: Vec::new(),
    };
    check(
        &error_text(newer(NewerRecords::More(3))),
        r#"
        error[E0114]: .dendrer has 3 records that the backup does not have
        note: nothing was changed
        help: dendrer backup DIR --store .dendrer
        help: dendrer restore bk DIR
              see: dendrer explain E0114"#,
    );
    let mark = Mark { size: 12, behind: 1_000, in_store: true };
    check(
        &error_text(newer(NewerRecords::Hidden(mark))),
        r#"
        error[E0114]: .dendrer may have more than the backup: the mark of a backup (backup.json) ends the log at 12 records, and 1,000 bytes of it stand behind that
        note: nothing was changed
        help: dendrer backup DIR --store .dendrer
        help: dendrer restore bk DIR
              see: dendrer explain E0114"#,
    );
    let place = OldPlace { path: ".dendrer".into(), aside: ".dendrer.replaced".into() };
    check(
        &error_text(RestoreError::NotEmpty(place)),
        r#"
        error[E0115]: .dendrer is not empty, and no store
        note: nothing was changed
        help: mv .dendrer .dendrer.replaced
              see: dendrer explain E0115"#,
    );
}

#[test]
fn a_backup_that_is_another_one_is_not_restored() {
    let made = TreeHead { size: 14, ..TREE };
    let why = UnsoundBackup::OtherLog { path: "bk".into(), made, found: TREE };
    check(
        &error_text(RestoreError::Unsound { backup: "bk".into(), why: Box::new(why) }),
        r#"
        error[E0307]: bk is not the backup that was made
          | made     14 records, root sha256:0707070707070707070707070707070707070707070707070707070707070707
          | found    12 records, root sha256:0707070707070707070707070707070707070707070707070707070707070707
        note: nothing was restored
        help: dendrer fsck --store bk
              see: dendrer explain E0307"#,
    );
}

#[test]
fn a_failure_after_the_restore_says_where_both_stores_are() {
    let source = std::io::Error::other("no reason");
    let error = Box::new(StoreError::Io { action: "sync", path: ".".into(), source }.into());
    let placed = PlacedStore { path: ".dendrer".into(), aside: Some(".dendrer.replaced".into()) };
    check(
        &error_text(RestoreError::NotSynced { error, placed }),
        r#"
        error[E0801]: cannot sync .
          | cause    no reason
        note: whether its name outlasts a power cut is not known
        note: .dendrer is the restored store
        note: the store that was there is in .dendrer.replaced
        help: dendrer verify --all --store .dendrer
              see: dendrer explain E0801"#,
    );
}
