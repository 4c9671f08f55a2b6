//! The conflicts of a merged run, and the decision of one, as lines and documents.

use dendrer::change::conflicts::{ConflictsAnswer, ResolvedConflict};
use dendrer::kernel::causal::{SyncConflict, SyncSide, SyncStrategy};
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
        /// The number of places that a strategy decided; --decided lists them
        decided: u64 = answer.decided,
    }

    /// A place in conflict between agents
    object SyncObject(item: &SyncItem) {
        ..DecisionObject = DecisionObject::of(&item.conflict),
        ..StandingObject = StandingObject::of(&item.standing),
    }

    /// The decision of a sync node at a place in conflict between agents
    pub(crate) object DecisionObject(conflict: &SyncConflict) {
        /// The place, as a JSON pointer
        path: &Pointer = &conflict.path,
        /// The tick of the sync node
        at: u64 = conflict.at,
        /// The value of each agent
        values: Vec<SyncValue> = conflict.values.iter().map(SyncValue::of).collect(),
        /// The strategy
        rule: SyncStrategy = conflict.strategy,
        /// The side that the strategy took; null if all were kept
        winner: Option<SyncValue> = conflict.winner().map(SyncValue::of),
    }

    /// The value of an agent
    object SyncValue(side: &SyncSide) {
        /// The agent; empty for the beginning of the run
        source: &str = side.agent.as_deref().unwrap_or_default(),
        /// The tick of the write
        tick: u64 = side.tick,
        /// Whether its confidence is no number from 0 to 1, and counts as 0
        misread?: bool = side.is_misread.then_some(true),
        ..LeftValue = LeftValue::of(side.value.as_ref()),
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
            let line = match (standing, conflict.winner()) {
                (ConflictStanding::Taken(_), Some(winner)) => {
                    let (path, agent) = (quote::path(&conflict.path), agent(winner));
                    let (at, rule) = (conflict.at, conflict.strategy);
                    Line::styled(Style::Good, format!("{path}   at tick {at}   {agent} taken by {rule}"))
                }
                (_, Some(winner)) => {
                    let rule = format!(
                        "   at tick {}   {} by {}, then",
                        conflict.at,
                        agent(winner),
                        conflict.strategy
                    );
                    head(&conflict.path, standing, rule)
                }
                _ => head(&conflict.path, standing, format!("   at tick {}", conflict.at)),
            };
            lines.push(line);
            lines.extend(conflict.values.iter().map(|side| {
                let value = merge::value(side.value.as_ref());
                let misread = match side.is_misread {
                    true => "   its confidence is no number from 0 to 1, and counts as 0",
                    false => "",
                };
                Line::from(format!("  {}   {value}   written at tick {}{misread}", agent(side), side.tick))
            }));
        }
        let shown = self.items.len() + self.sync.len();
        let decided = count(self.decided, "place", "places");
        lines.push(match self.of_strategies {
            true => format!("{shown} of {decided} decided by a strategy").into(),
            false => {
                let all = count(self.total, "conflict", "conflicts");
                format!("{shown} of {all}, {} open", self.open).into()
            }
        });
        if !self.of_strategies && self.decided > 0 && self.sync.iter().all(|item| !item.is_decided()) {
            lines.push(format!("{decided} decided by a strategy (--decided lists them)").into());
        }
        lines
    }
}

fn agent(side: &SyncSide) -> String {
    side.agent.as_deref().map_or_else(|| "the beginning".to_owned(), quote::escape)
}

/// Writes what a sync node made of a place: the strategy, the side that it took, and the sides that lost.
pub(crate) fn decision(conflict: &SyncConflict) -> String {
    let side = |side: &SyncSide| {
        format!("{} {} (tick {})", agent(side), merge::value(side.value.as_ref()), side.tick)
    };
    let list = |sides: Vec<String>| sides.join(", ");
    let (path, rule) = (quote::path(&conflict.path), conflict.strategy);
    match conflict.winner() {
        None => format!("{path}   {rule}: kept {}", list(conflict.values.iter().map(side).collect())),
        Some(winner) => {
            let lost = conflict.values.iter().filter(|one| *one != winner).map(side).collect();
            format!("{path}   {rule}: took {} over {}", side(winner), list(lost))
        }
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
