//! A store that was restored, or was not.

use std::path::Path;

use dendrer::care::restore::Restored;
use dendrer_object::Value;

use crate::answer::{Answer, Line, Page, Style};
use crate::care::path_json;
use crate::problem::Problem;
use crate::{count, document, quote};

impl Answer for Restored {
    fn document(&self) -> Value {
        document(
            "restore",
            [
                ("path", path_json(&self.path)),
                ("records", Value::from(self.copied.tree.size)),
                ("root", Value::from(self.copied.tree.root)),
                ("signed", Value::from(self.copied.signed)),
                ("last_signed_here", Value::from(self.last_signed_here)),
                ("writable", Value::from(self.refused.is_none())),
                ("aside", self.aside.as_deref().map_or(Value::Null, path_json)),
            ],
        )
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let shown = |path: &Path| quote::escape(&path.display().to_string());
        let place = shown(&self.path);
        let records = count(self.copied.tree.size, "record", "records");
        let root = self.copied.tree.root.short();
        let mut lines = vec![
            Line::styled(Style::Good, "RESTORED")
                .then(format!("  {place}: {records}, root {root}, every one verified")),
        ];
        lines.extend(
            self.aside
                .iter()
                .map(|aside| Line::from(format!("aside     {} is the store that was there", shown(aside)))),
        );
        match &self.refused {
            Some(error) => {
                let problem = Problem::of_error(error);
                let why = problem.place.first().map_or("", |(_, why)| why);
                let why = quote::escape(why);
                lines.push(format!("older     {why}: it is read, and not written to").into());
                lines.push(Line::note(
                    "note: what is written behind an older log would be a second history under one key, so no verb does it",
                ));
            }
            None if !self.has_key => lines.push(Line::note(
                "note: the key of the log is not here; records can be written, and no checkpoint is signed (E0804)",
            )),
            None => {}
        }
        let path = self.path.display().to_string();
        lines.push(Line::help(["dendrer", "verify", "--all", "--store", &path]));
        lines
    }
}
