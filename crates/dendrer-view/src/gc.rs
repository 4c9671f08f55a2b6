//! Derived data that was removed from a store, or would be.

use dendrer::care::spare::{Cleaned, SpareReason};
use dendrer::store::{KeptRow, KeptWhat};
use dendrer_object::{RunName, Timestamp, Value, document};

use crate::answer::{Answer, Line, Page, Style};
use crate::{count, quote, thousands};

document! {
    /// Derived data that was removed from a store, or would be
    pub object GcDocument: "gc" (cleaned: &Cleaned) {
        let rows = cleaned.spare.iter().map(|(row, why)| {
            let (what, tick) = match row.what {
                KeptWhat::Snapshot(tick) => ("snapshot", Some(tick)),
                KeptWhat::Verdicts(_) => ("verdicts", None),
            };
            SpareObject::of(what, Some(&row.run), tick, None, row.bytes, words(*why))
        });
        let files = cleaned.leftovers.iter().map(|file| {
            SpareObject::of("file", None, None, Some(&file.file), file.bytes, "left by interrupted work")
        });
        /// Whether nothing was removed because only a list was asked for
        dry_run: bool = cleaned.dry_run,
        /// The number of bytes of the items
        bytes: u64 = cleaned.bytes(),
        /// The number of bytes of the index that are unused
        room: u64 = cleaned.room,
        /// The number of parts of the vault that belong to no value
        vault_parts: u64 = cleaned.vault_parts,
        /// The snapshots, kept answers and files
        items: Vec<SpareObject> = rows.chain(files).collect(),
    }

    /// A piece of derived data that is not needed
    object SpareObject(
        kind: &str, of_run: Option<&RunName>, at: Option<u64>, path: Option<&str>, size: u64, reason: &str,
    ) {
        /// The kind
        what: ["snapshot" | "verdicts" | "file"] = kind,
        /// The run; null for a file
        run: Option<&RunName> = of_run,
        /// The tick of a snapshot
        tick: Option<u64> = at,
        /// The file, below the store
        file: Option<&str> = path,
        /// The number of bytes
        bytes: u64 = size,
        /// The reason
        why: &str = reason,
    }
}

impl Answer for Cleaned {
    fn document(&self) -> Value {
        GcDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let verb = if self.dry_run { "would go" } else { "removed" };
        let mut lines: Vec<Line> = Vec::new();
        for why in [
            SpareReason::NoSuchTick,
            SpareReason::DoesNotFit,
            SpareReason::NotSigned,
            SpareReason::TooClose,
            SpareReason::Old,
        ] {
            for (one, many, is) in [
                ("snapshot", "snapshots", true),
                ("kept answer of a predicate", "kept answers of predicates", false),
            ] {
                let of = |(row, found): &&(KeptRow, SpareReason)| {
                    *found == why && matches!(row.what, KeptWhat::Snapshot(_)) == is
                };
                let rows: Vec<_> = self.spare.iter().filter(of).collect();
                if !rows.is_empty() {
                    let size = rows.iter().map(|(row, _)| row.bytes).sum::<u64>();
                    let rows = count(rows.len() as u64, one, many);
                    let size = count(size, "byte", "bytes");
                    lines.push(format!("{verb}  {rows}, {size}: {}", words(why)).into());
                }
            }
        }
        lines.extend(self.leftovers.iter().map(|file| {
            let (name, size) = (quote::escape(&file.file), count(file.bytes, "byte", "bytes"));
            Line::from(format!("{verb}  {name}, {size}: left by interrupted work"))
        }));
        if self.room > 0 {
            let room = count(self.room, "byte", "bytes");
            lines.push(format!("{verb}  {room} of the index that hold nothing").into());
        }
        if self.vault_parts > 0 {
            let parts = count(self.vault_parts, "part", "parts");
            lines.push(format!("{verb}  {parts} of the vault that belong to no value").into());
        }
        if lines.is_empty() {
            return vec![Line::styled(Style::Good, "nothing to remove")];
        }
        let bytes = self.bytes().saturating_add(self.room);
        lines.push(format!("{} bytes; the log is as it was", thousands(bytes)).into());
        if self.rule.since_ms > 0 {
            let since = Timestamp::from_ms(self.rule.since_ms);
            lines
                .push(Line::note(format!("note: runs count as old where nothing was written since {since}")));
        }
        if self.dry_run {
            lines.push(Line::note("note: nothing was removed (-n)"));
        }
        lines
    }
}

fn words(why: SpareReason) -> &'static str {
    match why {
        SpareReason::NoSuchTick => "the log has no such run or tick",
        SpareReason::DoesNotFit => "not the state on record, so nobody uses it",
        SpareReason::NotSigned => "not what the key of the store signed",
        SpareReason::TooClose => "too little changed since the one before",
        SpareReason::Old => "nothing was written to the run for so long",
    }
}
