//! A run that was seeded from others: its sources, the places that were taken, and the conflicts.

use dendrer::kernel::pack::Combine;
use dendrer::kernel::step::Broken;
use dendrer::merge::question::MergeReply;
use dendrer::merge::{
    Conflict, ConflictStanding, MergeSource, Merged, NamedSource, PlannedPlace, Seeded, Strategy,
};
use dendrer_object::{Digest, Pointer, RunName, Value, document};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::layout::pad;
use crate::{count, quote};

impl Answer for MergeReply {
    fn document(&self) -> Value {
        MergeDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let MergeReply { run, merged, begin, .. } = self;
        let source_line = |source: &NamedSource| {
            let (name, run, tick) = (&source.name, &source.run, source.tick);
            let root = source.state_root.short();
            Line::from(format!("source     {name} {run}@{tick}   replayed "))
                .then_styled(Style::Good, "OK")
                .then(format!(", state {root}"))
        };
        let mut lines: Vec<Line> = merged.sources.iter().map(source_line).collect();
        let word = if begin.is_none() { "would make" } else { "created   " };
        let places = count(merged.seeded.len() as u64, "place", "places");
        let sources = merged.sources.len();
        lines.push(
            format!(
                "{word} {run}: a new run, seeded with {places} of {sources} runs. This is not a history merge."
            )
            .into(),
        );
        if merged.seed_only {
            lines.push("terms      none: values alone, without pack, policy rules and goal".into());
        }
        lines.push(match &merged.base[..] {
            [] => "base       none: the runs share no record, so a place that some of them lack is taken from the others".into(),
            moments => {
                let moments = moments.iter().map(|one| format!("{}@{}", one.run, one.tick));
                format!("base       {}, the last record in all histories", moments.collect::<Vec<_>>().join(", ")).into()
            }
        });
        lines.extend(
            self.plan.iter().flat_map(|plan| plan.iter()).flat_map(|place| plan_lines(merged, place)),
        );
        for place in &merged.seeded {
            let Some(combine) = place.combined else { continue };
            let from =
                place.from.iter().map(|from| quote::escape(&from.source)).collect::<Vec<_>>().join(", ");
            let how = combine.as_str();
            lines.push(format!("combined   {}   of {from}, as {how}", quote::path(&place.path)).into());
        }
        for place in &merged.removed {
            let by = place
                .from
                .iter()
                .map(|from| format!("{} at tick {}", quote::escape(&from.source), from.tick));
            let by = by.collect::<Vec<_>>().join(", ");
            lines.push(format!("removed    {}   by {by}", quote::path(&place.path)).into());
        }
        lines.extend(merged.conflicts.iter().map(|conflict| conflict_line(merged, conflict)));
        if begin.is_none() {
            lines.push(Line::note("nothing was written (dry run)"));
        } else if let Some(open) = merged.conflicts.iter().find(|conflict| conflict.taken.is_none()) {
            let (run, path) = (run.as_str(), open.path.dotted());
            let first = open.values.first().map_or("a", |(from, _)| &*from.source);
            let resolve = ["dendrer", "conflicts", "resolve", run, &path, "--take", first, "--reason", "..."];
            lines.push(Line::help(resolve));
        }
        lines.extend(violated_lines(&merged.violations));
        lines.extend(unjudged_notes(&self.unjudged));
        lines
    }

    fn end(&self) -> End {
        let is_open = self.merged.conflicts.iter().any(|conflict| conflict.taken.is_none());
        if is_open && self.begin.is_some() { End::No } else { End::Answered }
    }

    fn notes(&self) -> Vec<String> {
        // The rules count from the first transition on.
        unjudged_notes(&self.unjudged).iter().map(Line::text).collect()
    }
}

/// What a place had at the last common record, what it has in each source, and what the new run begins with.
fn plan_lines(merged: &Merged, place: &PlannedPlace) -> Vec<Line> {
    let shown = |value: &Option<Value>| value.as_ref().map_or_else(|| "(absent)".to_owned(), quote::value);
    let mut lines = vec![format!("place      {}", quote::path(&place.path)).into()];
    for (value, moment) in place.base.iter().zip(&merged.base) {
        lines.push(format!("  base     {}   {}@{}", shown(value), moment.run, moment.tick).into());
    }
    for (value, source) in place.sides.iter().zip(&merged.sources) {
        let name = pad(&quote::escape(&source.name), 8);
        lines.push(format!("  {name} {}   {}@{}", shown(value), source.run, source.tick).into());
    }
    let is_open = |one: &&Conflict| one.path == place.path && one.taken.is_none();
    lines.push(match merged.conflicts.iter().find(is_open) {
        Some(_) => Line::styled(Style::Warn, "  merged   (conflict, open)".to_owned()),
        None => format!("  merged   {}", shown(&place.after)).into(),
    });
    lines
}

fn conflict_line(merged: &Merged, conflict: &Conflict) -> Line {
    let strategy = &merged.strategy;
    let how = match &conflict.taken {
        Some(name) => format!("{} taken", quote::escape(name)),
        None if **strategy == *Strategy::Manual.as_str() => "all kept, none taken".to_owned(),
        None => "it does not tell them apart: all kept, none taken".to_owned(),
    };
    let (path, values) = (quote::path(&conflict.path), values(conflict));
    Line::styled(Style::Warn, format!("conflict   {path}   {values}   strategy {strategy}: {how}"))
}

/// Names the rules that the state which a run begins with breaks.
pub(crate) fn violated_lines(violations: &[Broken]) -> Vec<Line> {
    let line = |broken: &Broken| {
        let values = broken.values.iter().map(|(path, value)| {
            format!("{} {}", quote::path(path), value.as_ref().map_or_else(|| "-".to_owned(), quote::value))
        });
        let values = values.collect::<Vec<_>>().join(", ");
        Line::styled(Style::Warn, format!("violated   {}   {values}", quote::escape(&broken.predicate)))
    };
    violations.iter().map(line).collect()
}

/// Returns a note for each rule that cannot be judged of the new run, with the reason.
pub fn unjudged_notes(rules: &[(String, String)]) -> Vec<Line> {
    let note = |(rule, why): &(String, String)| {
        let (rule, why) = (quote::escape(rule), quote::escape(why));
        Line::note(format!("note: the rule {rule} holds on and counts as violated from tick 1: {why}"))
    };
    rules.iter().map(note).collect()
}

/// Says where a value is from: `a trip-planner-b@45`.
pub fn source(merged: &Merged, name: &str) -> String {
    match merged.sources.iter().find(|source| &*source.name == name) {
        Some(source) => format!("{} {}@{}", quote::escape(name), source.run, source.tick),
        None => quote::escape(name),
    }
}

/// Writes a value of a conflict; a source may have removed it.
pub fn value(value: Option<&Value>) -> String {
    value.map_or_else(|| "removed it".to_owned(), quote::value)
}

/// Writes the values of a conflict in one line.
pub fn values(conflict: &Conflict) -> String {
    let value = |(from, value): &(MergeSource, Option<Value>)| {
        format!("{} {}", quote::escape(&from.source), self::value(value.as_ref()))
    };
    conflict.values.iter().map(value).collect::<Vec<_>>().join("   ")
}

/// Writes the standing of a conflict.
pub fn standing(standing: &ConflictStanding) -> String {
    match standing {
        ConflictStanding::Open => "open: all are kept, and nothing stands there".to_owned(),
        ConflictStanding::Taken(source) => format!("{} taken by the strategy", quote::escape(source)),
        ConflictStanding::Resolved(tick, take, reason) => {
            format!("{} taken at tick {tick}: {}", quote::escape(take), quote::quoted(reason))
        }
        ConflictStanding::Written(tick) => format!("written at tick {tick}"),
    }
}

document! {
    /// A run that was seeded from others
    pub object MergeDocument: "merge" (answer: &MergeReply) {
        let merged = &answer.merged;
        /// The new run
        run: &RunName = &answer.run,
        /// The runs that it was seeded from
        sources: Vec<SourceObject> = sources(merged),
        /// The strategy that decides conflicts
        strategy: &str = &merged.strategy,
        /// Whether values alone were taken, without pack, rules and goal
        seed_only: bool = merged.seed_only,
        /// The root of the state that the new run begins with
        state_root: Digest = answer.state_root,
        /// The id of the first record; null if nothing was written
        begin: Option<Digest> = answer.begin,
        /// The last common records of the sources; empty if the merge is two-way
        base: Vec<BaseObject> =
            merged.base.iter().map(|one| BaseObject::of(one.run.as_str(), one.tick, one.record)).collect(),
        /// The places that were taken
        seeded: Vec<SeededObject> = merged.seeded.iter().map(SeededObject::of).collect(),
        /// The places that were removed
        removed: Vec<SeededObject> = merged.removed.iter().map(SeededObject::of).collect(),
        /// The places in conflict
        items: Vec<ConflictObject> = merged.conflicts.iter().map(ConflictObject::begun).collect(),
        /// The number of conflicts that are open
        open: usize = merged.conflicts.iter().filter(|conflict| conflict.taken.is_none()).count(),
        /// The rules that the state which it begins with breaks, and that no source breaks
        violations?: Vec<BegunViolated> = (!merged.violations.is_empty())
            .then(|| merged.violations.iter().map(BegunViolated::of).collect()),
        /// The reason why it begins although its state breaks them
        although?: &str = merged.although.as_deref(),
        /// Whether nothing was written
        dry_run: bool = answer.begin.is_none(),
        /// The places on which the runs differ from each other or from what they began with, with --plan
        plan: Option<Vec<PlannedObject>> =
            answer.plan.as_ref().map(|plan| plan.iter().map(|place| PlannedObject::of(merged, place)).collect()),
    }

    /// A run that another one was seeded from
    pub(crate) object SourceObject(source: &NamedSource) {
        /// The name of the source
        name: &str = &source.name,
        /// The run
        run: &RunName = &source.run,
        /// The tick up to which it is read
        tick: u64 = source.tick,
        /// The id of the record there
        record: Digest = source.record,
        /// The root of the state there
        state_root: Digest = source.state_root,
    }

    /// A rule that the state which a run begins with breaks
    pub(crate) object BegunViolated(broken: &Broken) {
        /// The id
        id: &str = &broken.predicate,
        /// The values that decide
        values: Vec<BegunValue> = broken.values.iter().map(|(path, value)| BegunValue::of(path, value)).collect(),
    }

    /// A value that decides of a rule
    object BegunValue(place: &Pointer, found: &Option<Value>) {
        /// The place, as a JSON pointer
        path: &Pointer = place,
        /// The value there; missing if there is none, or if it is large
        value?: Value = found.clone(),
    }

    /// A common record
    object BaseObject(name: &str, at: u64, id: Digest) {
        /// The run
        run: &str = name,
        /// The tick
        tick: u64 = at,
        /// The id of the record
        record: Digest = id,
    }

    /// The write that a value is from
    object WriteObject(from: &MergeSource) {
        /// The name of the source
        source: &str = &from.source,
        /// The tick of the write
        tick: u64 = from.tick,
        /// The id of the record
        record: Digest = from.record,
    }

    /// A place that was taken or removed
    object SeededObject(seeded: &Seeded) {
        /// The place, as a JSON pointer
        path: &Pointer = &seeded.path,
        /// The way in which the pack combined the lists of the sources
        combined: Option<Combine> = seeded.combined,
        /// The sources
        from: Vec<WriteObject> = seeded.from.iter().map(WriteObject::of).collect(),
    }

    /// A place in conflict between runs
    pub(crate) object ConflictObject(conflict: &Conflict, standing: &ConflictStanding) {
        /// The place, as a JSON pointer
        path: &Pointer = &conflict.path,
        /// The value at the last common record; null if it is missing
        base: Option<Value> = conflict.base.clone(),
        /// The value of each source
        values: Vec<ConflictValue> =
            conflict.values.iter().map(|(from, value)| ConflictValue::of(from, value.as_ref())).collect(),
        ..StandingObject = StandingObject::of(standing),
    }

    /// The value of a source
    object ConflictValue(from: &MergeSource, left: Option<&Value>) {
        ..WriteObject = WriteObject::of(from),
        ..LeftValue = LeftValue::of(left),
    }

    /// A value that a source has at a place
    pub(crate) object LeftValue(left: Option<&Value>) {
        /// The value; null if the source removed it
        value: Option<Value> = left.cloned(),
        /// Whether the source removed it
        removed: bool = left.is_none(),
    }

    /// The standing of a conflict
    pub(crate) object StandingObject(standing: &ConflictStanding) {
        let (word, at, by, why) = match standing {
            ConflictStanding::Open => ("open", None, None, None),
            ConflictStanding::Taken(source) => ("taken", None, Some(source), None),
            ConflictStanding::Resolved(tick, take, reason) => {
                ("resolved", Some(*tick), Some(take), Some(reason))
            }
            ConflictStanding::Written(tick) => ("written", Some(*tick), None, None),
        };
        /// The standing
        status: ["open" | "taken" | "resolved" | "written"] = word,
        /// The tick of the decision
        tick: Option<u64> = at,
        /// The source whose value was taken
        taken: Option<&str> = by.map(|by| &**by),
        /// The reason that was given
        reason: Option<&str> = why.map(|why| &**why),
    }

    /// A place on which the runs differ
    object PlannedObject(merged: &Merged, place: &PlannedPlace) {
        let is_open = merged.conflicts.iter().any(|one| one.path == place.path && one.taken.is_none());
        /// The place, as a JSON pointer
        path: &Pointer = &place.path,
        /// The value at each last common record
        base: Vec<SideObject> = place.base.iter().map(SideObject::of).collect(),
        /// The value of each source
        sides: Vec<SideObject> = place.sides.iter().map(SideObject::of).collect(),
        /// The value that the new run begins with
        merged: SideObject = SideObject::of(&place.after),
        /// Whether the place is an open conflict
        open: bool = is_open,
    }

    /// A value, or its absence
    object SideObject(side: &Option<Value>) {
        /// Whether there is no value
        absent: bool = side.is_none(),
        /// The value; null if it is missing
        value: Option<Value> = side.clone(),
    }
}

impl ConflictObject {
    /// A conflict with the standing that its strategy gave it.
    fn begun(conflict: &Conflict) -> ConflictObject {
        let standing = conflict.taken.clone().map_or(ConflictStanding::Open, ConflictStanding::Taken);
        ConflictObject::of(conflict, &standing)
    }
}

/// Returns the sources of a merge for a document.
pub(crate) fn sources(merged: &Merged) -> Vec<SourceObject> {
    merged.sources.iter().map(SourceObject::of).collect()
}
