//! A run that was seeded from others: its sources, the places that were taken, and the conflicts.

use dendrer::kernel::pack::Combine;
use dendrer::merge::{Conflict, ConflictStanding, MergeSource, Merged, PlannedPlace, Seeded, Strategy};
use dendrer_object::{Digest, RunName, Value};

use crate::answer::{Answer, Line, Page, Style};
use crate::{count, document, quote};

/// A new run that begins with what was chosen from several others.
#[derive(Debug, Clone, Copy)]
pub struct MergeAnswer<'m> {
    /// The new run.
    pub run: &'m RunName,
    /// Its sources, places and conflicts.
    pub merged: &'m Merged,
    /// Root of the state that it begins with.
    pub state_root: Digest,
    /// Id of its first record; `None` if nothing was written.
    pub begin: Option<Digest>,
    /// What is decided, place by place; `None` if that was not asked for.
    pub plan: Option<&'m [PlannedPlace]>,
}

impl Answer for MergeAnswer<'_> {
    fn document(&self) -> Value {
        let MergeAnswer { run, merged, state_root, begin, plan } = *self;
        let conflicts = merged.conflicts.iter().map(|one| {
            let standing = one.taken.clone().map_or(ConflictStanding::Open, ConflictStanding::Taken);
            conflict(one, &standing)
        });
        let open = merged.conflicts.iter().filter(|conflict| conflict.taken.is_none()).count();
        let members = [
            ("run", Value::from(run.as_str())),
            ("sources", sources(merged)),
            ("strategy", Value::from(&*merged.strategy)),
            ("seed_only", Value::from(merged.seed_only)),
            ("state_root", Value::from(state_root)),
            ("begin", Value::from(begin)),
            ("base", base(merged)),
            ("seeded", seeded(&merged.seeded)),
            ("removed", seeded(&merged.removed)),
            ("items", Value::array(conflicts)),
            ("open", Value::from(open as u64)),
            ("dry_run", Value::from(begin.is_none())),
            (
                "plan",
                plan.map_or(Value::Null, |plan| {
                    Value::array(plan.iter().map(|place| planned(merged, place)))
                }),
            ),
        ];
        document("merge", members)
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let MergeAnswer { run, merged, begin, .. } = *self;
        let source_line = |source: &dendrer::merge::NamedSource| {
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
        lines
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
        let name = quote::escape(&source.name);
        lines.push(format!("  {name:<8} {}   {}@{}", shown(value), source.run, source.tick).into());
    }
    let is_open = |one: &&Conflict| one.path == place.path && one.taken.is_none();
    lines.push(match merged.conflicts.iter().find(is_open) {
        Some(_) => Line::styled(Style::Warn, "  merged   (conflict, open)".to_owned()),
        None => format!("  merged   {}", shown(&place.after)).into(),
    });
    lines
}

fn planned(merged: &Merged, place: &PlannedPlace) -> Value {
    let side = |value: &Option<Value>| {
        Value::record([
            ("absent", Value::from(value.is_none())),
            ("value", value.clone().unwrap_or(Value::Null)),
        ])
    };
    let is_open = merged.conflicts.iter().any(|one| one.path == place.path && one.taken.is_none());
    Value::record([
        ("path", Value::from(place.path.written())),
        ("base", Value::array(place.base.iter().map(side))),
        ("sides", Value::array(place.sides.iter().map(side))),
        ("merged", side(&place.after)),
        ("open", Value::from(is_open)),
    ])
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

/// Writes the sources of a merge.
pub fn sources(merged: &Merged) -> Value {
    Value::array(merged.sources.iter().map(|source| {
        Value::record([
            ("name", Value::from(&*source.name)),
            ("run", Value::from(source.run.as_str())),
            ("tick", Value::from(source.tick)),
            ("record", Value::from(source.record)),
            ("state_root", Value::from(source.state_root)),
        ])
    }))
}

fn from(from: &MergeSource) -> Vec<(&'static str, Value)> {
    vec![
        ("source", Value::from(&*from.source)),
        ("tick", Value::from(from.tick)),
        ("record", Value::from(from.record)),
    ]
}

/// Writes the last common records.
fn base(merged: &Merged) -> Value {
    Value::array(merged.base.iter().map(|moment| {
        Value::record([
            ("run", Value::from(moment.run.as_str())),
            ("tick", Value::from(moment.tick)),
            ("record", Value::from(moment.record)),
        ])
    }))
}

/// Writes places, each with the sources that they are from.
fn seeded(places: &[Seeded]) -> Value {
    Value::array(places.iter().map(|seeded| {
        Value::record([
            ("path", Value::from(seeded.path.written())),
            ("combined", Value::from(seeded.combined.map(Combine::as_str))),
            ("from", Value::array(seeded.from.iter().map(|side| Value::record(from(side))))),
        ])
    }))
}

/// Returns a conflict with its standing.
pub fn conflict(conflict: &Conflict, standing: &ConflictStanding) -> Value {
    let (status, tick, taken, reason) = standing_members(standing);
    let side = |(side, value): &(MergeSource, Option<Value>)| {
        let shown = value.clone().unwrap_or(Value::Null);
        let members = [("value", shown), ("removed", Value::from(value.is_none()))];
        Value::record(from(side).into_iter().chain(members))
    };
    Value::record([
        ("path", Value::from(conflict.path.written())),
        ("base", conflict.base.clone().unwrap_or(Value::Null)),
        ("values", Value::array(conflict.values.iter().map(side))),
        ("status", status),
        ("tick", tick),
        ("taken", taken),
        ("reason", reason),
    ])
}

/// Returns status, tick, what was taken and why, as values.
pub fn standing_members(standing: &ConflictStanding) -> (Value, Value, Value, Value) {
    let (status, tick, taken, reason) = match standing {
        ConflictStanding::Open => ("open", None, None, None),
        ConflictStanding::Taken(source) => ("taken", None, Some(source), None),
        ConflictStanding::Resolved(tick, take, reason) => ("resolved", Some(*tick), Some(take), Some(reason)),
        ConflictStanding::Written(tick) => ("written", Some(*tick), None, None),
    };
    let text = |text: Option<&std::sync::Arc<str>>| Value::from(text.map(|text| &**text));
    (Value::from(status), Value::from(tick), text(taken), text(reason))
}
