//! The conflicts of a merged run, and the decision of one, as lines and documents.

use dendrer::change::conflicts::{ConflictsAnswer, ResolvedConflict};
use dendrer::merge::{ConflictStanding, SyncItem};
use dendrer_object::Value;

use crate::answer::{Answer, Line, Page, Style};
use crate::{count, document, merge, quote};

/// Returns a conflict that a sync node kept; the sources of its values are agents.
fn sync_json(item: &SyncItem) -> Value {
    let conflict = &item.conflict;
    let values = conflict.values.iter().map(|(tick, agent, value)| {
        Value::record([
            ("source", Value::from(agent.as_deref().unwrap_or_default())),
            ("tick", Value::from(*tick)),
            ("value", value.clone().unwrap_or(Value::Null)),
            ("removed", Value::from(value.is_none())),
        ])
    });
    let (status, tick, taken, reason) = merge::standing_members(&item.standing);
    Value::record([
        ("path", Value::from(conflict.path.written())),
        ("at", Value::from(conflict.at)),
        ("values", Value::array(values)),
        ("status", status),
        ("tick", tick),
        ("taken", taken),
        ("reason", reason),
    ])
}

impl Answer for ConflictsAnswer {
    fn document(&self) -> Value {
        let items = self.items.iter().map(|(conflict, standing)| merge::conflict(conflict, standing));
        let items = items.chain(self.sync.iter().map(sync_json));
        let merged = self.merged.as_ref();
        document(
            "conflicts",
            [
                ("run", Value::from(self.run.as_str())),
                ("tick", Value::from(self.tick)),
                ("sources", merged.map_or_else(|| Value::array([]), merge::sources)),
                ("strategy", Value::from(merged.map(|merged| &*merged.strategy))),
                ("items", Value::array(items)),
                ("open", Value::from(self.open)),
            ],
        )
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let mut lines = Vec::new();
        let head = |path, standing: &ConflictStanding, at: String| {
            let style = if *standing == ConflictStanding::Open { Style::Warn } else { Style::Good };
            Line::styled(style, format!("{}{at}   {}", quote::path(path), merge::standing(standing)))
        };
        for (conflict, standing) in &self.items {
            lines.push(head(&conflict.path, standing, String::new()));
            lines.extend(conflict.values.iter().map(|(from, value)| {
                let source = self.merged.as_ref().map(|merged| merge::source(merged, &from.source));
                let (source, value) = (source.unwrap_or_default(), merge::value(value.as_ref()));
                let record = from.record.short();
                Line::from(format!("  {source}   {value}   written at tick {}, record {record}", from.tick))
            }));
        }
        for SyncItem { conflict, standing } in &self.sync {
            lines.push(head(&conflict.path, standing, format!("   at tick {}", conflict.at)));
            lines.extend(conflict.values.iter().map(|(tick, agent, value)| {
                let agent = agent.as_deref().map_or_else(|| "the beginning".to_owned(), quote::escape);
                Line::from(format!("  {agent}   {}   written at tick {tick}", merge::value(value.as_ref())))
            }));
        }
        let all = count(self.total, "conflict", "conflicts");
        lines.push(format!("{} of {all}, {} open", self.items.len() + self.sync.len(), self.open).into());
        lines
    }
}

impl Answer for ResolvedConflict {
    fn document(&self) -> Value {
        document(
            "resolved",
            [
                ("run", Value::from(self.run.as_str())),
                ("path", Value::from(self.path.written())),
                ("take", Value::from(self.take.as_deref())),
                ("value", self.value.clone().unwrap_or(Value::Null)),
                ("removed", Value::from(self.value.is_none())),
                ("reason", Value::from(&*self.reason)),
                ("tick", Value::from(self.tick())),
                ("record", Value::from((!self.dry_run).then(|| self.record.id()))),
                ("dry_run", Value::from(self.dry_run)),
            ],
        )
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let taken = self.take.as_deref().map(quote::escape).unwrap_or_default();
        let path = quote::path(&self.path);
        let is = self
            .value
            .as_ref()
            .map_or("is left empty".to_owned(), |value| format!("= {}", quote::value(value)));
        match self.tick() {
            Some(tick) => vec![Line::from(format!(
                "resolved   {path} {is}   {taken} taken, as {}@{tick}   hash {}",
                self.run,
                self.record.id().short()
            ))],
            None => vec![
                Line::from(format!("would set  {path} {is}   {taken} taken")),
                Line::note("nothing was written (dry run)"),
            ],
        }
    }
}
