//! A store that was restored.

use std::path::Path;

use dendrer::care::restore::Restored;
use dendrer_object::{Digest, Value, document};

use crate::answer::{Answer, Line, Page, Style};
use crate::problem::Problem;
use crate::{count, quote};

document! {
    /// A store that was restored
    pub object RestoreDocument: "restore" (restored: &Restored) {
        /// The path of the store
        path: &Path = &restored.path,
        /// The number of records
        records: u64 = restored.copied.tree.size,
        /// The root of the log
        root: Digest = restored.copied.tree.root,
        /// The number of records that are signed; null if none is
        signed: Option<u64> = restored.copied.signed,
        /// The number of records that were signed on this machine last; null if it is not known
        last_signed_here: Option<u64> = restored.last_signed_here,
        /// Whether records can be added
        writable: bool = restored.refused.is_none(),
        /// The path to which the store that was there was moved
        aside: Option<&Path> = restored.aside.as_deref(),
    }
}

impl Answer for Restored {
    fn document(&self) -> Value {
        RestoreDocument::of(self).into()
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
