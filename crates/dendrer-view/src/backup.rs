//! A backup that was made, or was not.

use dendrer::care::backup::BackedUp;
use dendrer_object::Value;

use crate::answer::{Answer, Line, Page, Style};
use crate::care::path_json;
use crate::{count, document, quote, thousands};

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
