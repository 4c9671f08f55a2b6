//! A store that was restored.

use std::path::Path;

use dendrer::address::RecordAt;
use dendrer::care::restore::Restored;
use dendrer::care::restore::erasures::ErasedAgain;
use dendrer_object::{Digest, Pointer, RunName, Timestamp, Value, document};

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
        /// The values that were erased in that store since the backup was made, and are erased in this one again
        erased_again: Vec<ErasedAgainObject> = restored.erased_again.iter().map(ErasedAgainObject::of).collect(),
        /// Values may have been erased since the backup was made that this store has; absent if every erasure is known
        erasures_unknown?: ErasuresUnknown = restored.erasures_unknown.map(ErasuresUnknown::of),
    }

    /// A value that is erased again
    object ErasedAgainObject(erased: &ErasedAgain) {
        /// The run; null for a record of no run
        run: Option<&RunName> = erased.run.as_ref(),
        /// The tick; null for a refusal, and for all of a run
        tick: Option<u64> = erased.at.and_then(RecordAt::tick),
        /// The number of a refusal, from 1, as RUN@refused:N names it; absent for any other record
        refused?: u64 = erased.at.and_then(RecordAt::refused),
        /// The place, as a JSON pointer; null for every value of a deleted thread of checkpoints
        place: Option<&Pointer> = erased.place.as_ref(),
    }

    /// A backup after which erasures are not known
    object ErasuresUnknown(backup: Timestamp) {
        /// The time of the newest record of the backup
        backup: Timestamp = backup,
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
        let again = self.erased_again.iter().map(|erased| format!("erased again  {}", erased.words()).into());
        lines.extend(again);
        if let Some(backup) = self.erasures_unknown {
            lines.push(Line::note(format!(
                "note: erasures_unknown: values that were erased after {backup}, the date of the backup, are in this store; erase them again"
            )));
        }
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
                "note: the key of the log is not here; nothing is written without it or a writer's secret (E0804)",
            )),
            None => {}
        }
        let path = self.path.display().to_string();
        lines.push(Line::help(["dendrer", "verify", "--all", "--store", &path]));
        lines
    }
}
