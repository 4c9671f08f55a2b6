//! The conflicts of a merged run, and the decision of one, as lines and documents.

use dendrer::change::conflicts::{ConflictsAnswer, ResolvedConflict};
use dendrer::kernel::step::latched_by;
use dendrer::merge::{ConflictStanding, SyncItem};
use dendrer_object::document::{As, Either};
use dendrer_object::{Digest, Pointer, RunName, Value, document};

use crate::answer::{Answer, Line, Page, Style};
use crate::merge::{ConflictObject, LeftValue, SourceObject, StandingObject};
use crate::{count, merge, quote};

document! {
    /// The places for which the runs of a merge, or the agents of one run, left different values
    pub object ConflictsDocument: "conflicts" (answer: &ConflictsAnswer) {
        let merged = answer.merged.as_ref();
        let runs = answer.items.iter().map(|(conflict, standing)| {
            Either::Left(ConflictObject::of(conflict, standing))
        });
        let agents = answer.sync.iter().map(|item| Either::Right(SyncObject::of(item)));
        /// The run
        run: &RunName = &answer.run,
        /// The tick that the answer is about
        tick: u64 = answer.tick,
        /// The runs that the run was seeded from
        sources: Vec<SourceObject> = merged.map(merge::sources).unwrap_or_default(),
        /// The strategy of the merge
        strategy: Option<&str> = merged.map(|merged| &*merged.strategy),
        /// The conflicts
        items: Vec<Either<ConflictObject, SyncObject>> = runs.chain(agents).collect(),
        /// The number of conflicts that are open
        open: As<u64> = As::new(answer.open),
    }

    /// A place in conflict between agents
    object SyncObject(item: &SyncItem) {
        let conflict = &item.conflict;
        /// The place, as a JSON pointer
        path: &Pointer = &conflict.path,
        /// The tick of the sync node that kept the values
        at: u64 = conflict.at,
        /// The value of each agent
        values: Vec<SyncValue> = conflict
            .values
            .iter()
            .map(|(tick, agent, value)| SyncValue::of(*tick, agent.as_deref(), value.as_ref()))
            .collect(),
        ..StandingObject = StandingObject::of(&item.standing),
    }

    /// The value of an agent
    object SyncValue(at: u64, agent: Option<&str>, left: Option<&Value>) {
        /// The agent; empty for the beginning of the run
        source: &str = agent.unwrap_or_default(),
        /// The tick of the write
        tick: u64 = at,
        ..LeftValue = LeftValue::of(left),
    }

    /// A conflict that was resolved
    pub object ResolvedDocument: "resolved" (answer: &ResolvedConflict) {
        /// The run
        run: &RunName = &answer.run,
        /// The place, as a JSON pointer
        path: &Pointer = &answer.path,
        /// The source whose value was taken
        take: Option<&str> = answer.take.as_deref(),
        ..LeftValue = LeftValue::of(answer.value.as_ref()),
        /// The reason that was given
        reason: &str = &answer.reason,
        /// Ids of the rules that the value is the first to break
        violations?: Vec<String> = broken(answer),
        /// The tick of the decision; null if nothing was written
        tick: Option<u64> = answer.tick(),
        /// The id of the record; null if nothing was written
        record: Option<Digest> = (!answer.dry_run).then(|| answer.record.id()),
        /// Whether nothing was written
        dry_run: bool = answer.dry_run,
    }
}

impl Answer for ConflictsAnswer {
    fn document(&self) -> Value {
        ConflictsDocument::of(self).into()
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

/// The ids of the rules that a resolution is the first to break; `None` without any.
fn broken(answer: &ResolvedConflict) -> Option<Vec<String>> {
    let ids: Vec<String> = latched_by(&answer.record).iter().map(ToString::to_string).collect();
    (!ids.is_empty()).then_some(ids)
}

impl Answer for ResolvedConflict {
    fn document(&self) -> Value {
        ResolvedDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let taken = self.take.as_deref().map(quote::escape).unwrap_or_default();
        let path = quote::path(&self.path);
        let is = self
            .value
            .as_ref()
            .map_or("is left empty".to_owned(), |value| format!("= {}", quote::value(value)));
        let broken = broken(self).map(|ids| {
            let ids = ids.iter().map(|id| quote::escape(id)).collect::<Vec<_>>().join(", ");
            Line::styled(Style::Warn, format!("WARN       it violates {ids}"))
        });
        let mut lines = match self.tick() {
            Some(tick) => vec![Line::from(format!(
                "resolved   {path} {is}   {taken} taken, as {}@{tick}   hash {}",
                self.run,
                self.record.id().short()
            ))],
            None => vec![
                Line::from(format!("would set  {path} {is}   {taken} taken")),
                Line::note("nothing was written (dry run)"),
            ],
        };
        lines.extend(broken);
        lines
    }
}
