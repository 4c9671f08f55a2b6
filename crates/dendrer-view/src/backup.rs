//! A backup that was made, or was not.

use dendrer::care::backup::{BackedUp, BackupError};
use dendrer_object::{Code, Value};

use crate::answer::{Answer, Line, Page, Style};
use crate::care::path_json;
use crate::problem::Problem;
use crate::{count, document, mark, quote, thousands};

impl Answer for BackedUp {
    fn document(&self) -> Value {
        let copied = &self.copied;
        document(
            "backup",
            [
                ("path", path_json(&self.path)),
                ("records", Value::from(copied.tree.size)),
                ("root", Value::from(copied.tree.root)),
                ("before", Value::from(copied.before)),
                ("signed", Value::from(copied.signed)),
                ("bytes", Value::from(copied.bytes)),
                ("erased", Value::from(copied.voided > 0)),
            ],
        )
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

impl From<BackupError> for Problem {
    fn from(error: BackupError) -> Problem {
        let fsck = ["dendrer", "fsck"];
        let plain = |error: &BackupError| Problem::new(error.code(), error.to_string());
        match error {
            BackupError::StoreName { .. } => plain(&error).note("nothing was made; name another directory"),
            BackupError::Overlaps => {
                plain(&error).note("name a directory beside the store, better one on another disk")
            }
            BackupError::IsLink { .. } => {
                plain(&error).note("nothing was changed; a backup has files and directories of its own")
            }
            BackupError::Hidden(ref hidden) => mark::problem(error.code(), hidden, "nothing was copied"),
            BackupError::Damaged(error) => Problem::from(error).help(&fsck),
            BackupError::NotBegun(error) => {
                let problem = Problem::of(&error);
                match problem.code {
                    // The place, and not the store, is refused.
                    Code::E0113 | Code::E0110 | Code::E0115 => {
                        problem.note("nothing was changed; name a directory that is new or empty")
                    }
                    _ => problem,
                }
            }
            BackupError::Incomplete(error) => {
                let problem = Problem::of(&error)
                    .note("what is there does not count as a backup of the store as it is now");
                if problem.code == Code::E0801 { problem } else { problem.help(&fsck) }
            }
            BackupError::Unreadable(error) => error.into(),
            error => plain(&error),
        }
    }
}
