//! A backup that was made.

use std::path::Path;

use dendrer::care::backup::BackedUp;
use dendrer_object::{Digest, Value, document};

use crate::answer::{Answer, Line, Page, Style};
use crate::{count, quote, thousands};

document! {
    /// A backup that was made
    pub object BackupDocument: "backup" (backed_up: &BackedUp) {
        let copied = &backed_up.copied;
        /// The path of the backup
        path: &Path = &backed_up.path,
        /// The number of records in the backup
        records: u64 = copied.tree.size,
        /// The root of the log in the backup
        root: Digest = copied.tree.root,
        /// The number of records that an earlier backup had in the same place
        before: u64 = copied.before,
        /// The number of records that are signed; null if none is
        signed: Option<u64> = copied.signed,
        /// The number of bytes of the log that were copied
        bytes: u64 = copied.bytes,
        /// Whether values were erased that had been erased in the store
        erased: bool = copied.voided > 0,
    }
}

impl Answer for BackedUp {
    fn document(&self) -> Value {
        BackupDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let copied = &self.copied;
        let path = self.path.display().to_string();
        let records = count(copied.tree.size, "record", "records");
        let root = copied.tree.root.short();
        let what = match copied.before {
            0 => "all of them".to_owned(),
            before => format!("{} since the last backup", thousands(copied.tree.size.saturating_sub(before))),
        };
        let mut lines = vec![
            Line::styled(Style::Good, "BACKED UP")
                .then(format!("  {records}, root {root}, every one verified in the copy")),
            format!("copied     {what}, {} of the log", count(copied.bytes, "byte", "bytes")).into(),
        ];
        if copied.voided > 0 && copied.before > 0 {
            lines.push("erased     what was erased in the store since then".into());
        }
        let signed = match copied.signed {
            Some(size) => format!("up to {}", count(size, "record", "records")),
            None => "not yet".to_owned(),
        };
        lines.push(format!("signed     {signed}").into());
        let place = quote::escape(&path);
        lines.push(Line::note(format!("note: the key of the log is no part of {place}; keep it elsewhere")));
        lines.push(Line::help(["dendrer", "verify", "--all", "--store", &path]));
        lines.push(Line::help(["dendrer", "restore", &path, "DIR"]));
        lines
    }
}
