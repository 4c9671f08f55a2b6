//! The conflicts of a merged run, and the decision of one, as lines and documents.

use dendrer::change::conflicts::{ConflictsAnswer, ResolvedConflict};
use dendrer::merge::ConflictStanding;
use dendrer_object::Value;

use crate::answer::{Answer, Line, Page, Style};
use crate::{count, document, merge, quote};

impl Answer for ConflictsAnswer {
    fn document(&self) -> Value {
        let items = self.items.iter().map(|(conflict, standing)| merge::conflict(conflict, standing));
        document(
            "conflicts",
            [
                ("run", Value::from(self.run.as_str())),
                ("tick", Value::from(self.tick)),
                ("sources", merge::sources(&self.merged)),
                ("strategy", Value::from(&*self.merged.strategy)),
                ("items", Value::array(items)),
                ("open", Value::from(self.open)),
            ],
        )
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let mut lines = Vec::new();
        for (conflict, standing) in &self.items {
            let style = if *standing == ConflictStanding::Open { Style::Warn } else { Style::Good };
            let text = format!("{}   {}", quote::path(&conflict.path), merge::standing(standing));
            lines.push(Line::styled(style, text));
            lines.extend(conflict.values.iter().map(|(from, value)| {
                let (source, value) =
                    (merge::source(&self.merged, &from.source), merge::value(value.as_ref()));
                let record = from.record.short();
                Line::from(format!("  {source}   {value}   written at tick {}, record {record}", from.tick))
            }));
        }
        let all = count(self.merged.conflicts.len() as u64, "conflict", "conflicts");
        lines.push(format!("{} of {all}, {} open", self.items.len(), self.open).into());
        lines
    }
}

impl Answer for ResolvedConflict {
    fn document(&self) -> Value {
        document(
            "resolved",
            [
                ("run", Value::from(self.run.as_str())),
                ("path", Value::from(self.path.as_str())),
                ("take", Value::from(self.take.as_deref())),
                ("value", self.value.clone()),
                ("reason", Value::from(&*self.reason)),
                ("tick", Value::from(self.tick())),
                ("record", Value::from((!self.dry_run).then(|| self.record.id()))),
                ("dry_run", Value::from(self.dry_run)),
            ],
        )
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let taken = self.take.as_deref().map(quote::escape).unwrap_or_default();
        let (path, value) = (quote::path(&self.path), quote::value(&self.value));
        match self.tick() {
            Some(tick) => vec![Line::from(format!(
                "resolved   {path} = {value}   {taken} taken, as {}@{tick}   hash {}",
                self.run,
                self.record.id().short()
            ))],
            None => vec![
                Line::from(format!("would set  {path} = {value}   {taken} taken")),
                Line::note("nothing was written (dry run)"),
            ],
        }
    }
}
