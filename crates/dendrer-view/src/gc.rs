//! What was removed from a store, or would be.

use dendrer::care::spare::{Cleaned, SpareReason};
use dendrer::store::{KeptRow, KeptWhat, Leftover};
use dendrer_object::{Timestamp, Value};

use crate::answer::{Answer, Line, Page, Style};
use crate::{count, document, quote, thousands};

impl Answer for Cleaned {
    fn document(&self) -> Value {
        let items = self.spare.iter().map(row_item).chain(self.leftovers.iter().map(file_item));
        document(
            "gc",
            [
                ("dry_run", Value::from(self.dry_run)),
                ("bytes", Value::from(self.bytes())),
                ("room", Value::from(self.room)),
                ("vault_parts", Value::from(self.vault_parts)),
                ("items", Value::array(items)),
            ],
        )
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

/// A row as an item of the document.
fn row_item((row, why): &(KeptRow, SpareReason)) -> Value {
    let (what, tick) = match row.what {
        KeptWhat::Snapshot(tick) => ("snapshot", Some(tick)),
        KeptWhat::Verdicts(_) => ("verdicts", None),
    };
    Value::record([
        ("what", Value::from(what)),
        ("run", Value::from(row.run.as_str())),
        ("tick", Value::from(tick)),
        ("file", Value::Null),
        ("bytes", Value::from(row.bytes)),
        ("why", Value::from(words(*why))),
    ])
}

fn file_item(file: &Leftover) -> Value {
    Value::record([
        ("what", Value::from("file")),
        ("run", Value::Null),
        ("tick", Value::Null),
        ("file", Value::from(file.file.as_str())),
        ("bytes", Value::from(file.bytes)),
        ("why", Value::from("left by interrupted work")),
    ])
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
