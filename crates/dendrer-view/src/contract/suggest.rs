//! Fields that decide and that no contract names, as lines and as a document.

use dendrer::contract::suggest::{LeftOut, SuggestFound, Suggested, field_name};
use dendrer_object::Value;

use crate::answer::{Answer, Line, Page, Style};
use crate::certainty::Certainty;
use crate::{count, document, quote};

/// How many fields are printed for people.
const SHOWN: usize = 20;

/// The fields that were found in some runs.
#[derive(Debug, Clone, Copy)]
pub struct SuggestAnswer<'s> {
    /// The runs, as they were named.
    pub runs: &'s [String],
    /// The fields.
    pub found: &'s SuggestFound,
}

impl Answer for SuggestAnswer<'_> {
    fn document(&self) -> Value {
        let found = self.found;
        let item = |one: &Suggested| {
            let shown = one.shown.iter().map(|flip| {
                Value::record([
                    ("run", Value::from(flip.run.as_str())),
                    ("tick", Value::from(flip.tick)),
                    ("what", Value::from(flip.what.as_str())),
                    ("value", flip.value.clone()),
                    ("from_run", Value::from(flip.from.0.as_str())),
                    ("from_tick", Value::from(flip.from.1)),
                ])
            });
            Value::record([
                ("type", Value::from(one.type_name.as_str())),
                ("path", Value::from(one.place.written())),
                ("field", Value::from(field_name(&one.place))),
                ("contract", Value::from(one.has_contract)),
                ("flips", Value::from(one.flips)),
                ("refusals", Value::from(one.refusals)),
                ("changes", Value::from(one.changes)),
                ("named", Value::from(one.named)),
                ("tried", Value::from(one.tried)),
                ("shown", Value::array(shown)),
                ("readers", Value::array(one.readers.iter().map(|reader| Value::from(reader.as_str())))),
            ])
        };
        let left = &found.left_out;
        let unreadable = left.unreadable.iter().map(|(run, tick, why)| {
            Value::record([
                ("run", Value::from(run.as_str())),
                ("tick", Value::from(*tick)),
                ("why", Value::from(why.as_str())),
            ])
        });
        let left_out = Value::record([
            ("transitions", Value::from(left.transitions)),
            ("values", Value::from(left.values)),
            ("tries", Value::from(left.tries)),
            ("pairs", Value::from(left.pairs)),
            ("before", Value::array(left.before.iter().map(|name| Value::from(name.as_str())))),
            ("without", Value::array(left.without.iter().map(|run| Value::from(run.as_str())))),
            ("unreadable", Value::array(unreadable)),
        ]);
        document(
            "contract-suggest",
            [
                ("runs", Value::array(self.runs.iter().map(|run| Value::from(run.as_str())))),
                ("certainty", Value::from(Certainty::Heuristic)),
                ("transitions", Value::from(found.transitions)),
                ("tries", Value::from(found.tries)),
                ("silent", Value::from(found.silent)),
                ("untried", Value::from(found.untried)),
                ("left_out", left_out),
                ("items", Value::array(found.items.iter().map(item))),
            ],
        )
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let found = self.found;
        let mut lines = vec![Line::from(
            "HEURISTIC  each field was tried with the values it had elsewhere; what nothing reads and nobody names is not found",
        )];
        lines.extend(found.items.iter().take(SHOWN).flat_map(field_lines));
        if let Some(more) = found.items.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            lines.push(format!("({more} more; --json has all)").into());
        }
        let decide = if found.items.len() == 1 { "decides and is" } else { "decide and are" };
        let untried = match found.untried {
            0 => String::new(),
            untried => format!("; {untried} were not tried (no other value, or no try left)"),
        };
        let fields = count(found.items.len() as u64, "field", "fields");
        lines.push(Line::from(format!(
            "{fields} {decide} not required; {} that are read made no difference{untried}",
            found.silent
        )));
        lines.push(Line::from(format!(
            "{} looked at, decided again {}",
            count(found.transitions, "transition", "transitions"),
            count(found.tries, "time", "times")
        )));
        let left_out = left_out_lines(&found.left_out).into_iter();
        lines.extend(left_out.map(|line| Line::from(format!("left out   {line}"))));
        lines
    }
}

fn field_lines(one: &Suggested) -> Vec<Line> {
    let contract = if one.has_contract { "" } else { "   (the type has no contract)" };
    let mut lines = vec![
        Line::styled(Style::Strong, quote::escape(&field_name(&one.place)))
            .then(format!("   for {}{contract}", one.type_name)),
        Line::from(format!("  decides   {}", weight(one))),
    ];
    lines.extend(one.shown.iter().map(|flip| {
        let (run, tick) = &flip.from;
        Line::from(format!(
            "  at        {}@{}: with {} (as before {run}@{tick}) {}",
            flip.run,
            flip.tick,
            quote::value(&flip.value),
            quote::escape(&flip.what)
        ))
    }));
    if !one.readers.is_empty() {
        lines.push(format!("  read by   {}", quote::escape(&one.readers.join(", "))).into());
    }
    lines
}

fn weight(one: &Suggested) -> String {
    let of = |n: u64| format!("{n} of {}", one.tried);
    let mut parts = Vec::new();
    if one.flips > 0 {
        parts.push(format!("verdicts after {} transitions", of(one.flips)));
    }
    if one.refusals > 0 {
        parts.push(format!("whether the rules refuse, {}", of(one.refusals)));
    }
    if one.changes > 0 {
        parts.push(format!("what is written, {}", of(one.changes)));
    }
    if one.named > 0 {
        parts.push(format!("named by the model in {}", count(one.named, "transition", "transitions")));
    }
    parts.join("; ")
}

fn left_out_lines(left: &LeftOut) -> Vec<String> {
    let mut lines = Vec::new();
    let counted = [
        (left.transitions, "transitions of types of which many were looked at"),
        (left.values, "values beyond the first of a field"),
        (left.tries, "combinations; --tries N allows more"),
        (left.pairs, "fields of types beyond the limit"),
    ];
    lines.extend(counted.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")));
    for name in &left.before {
        lines.push(format!("{name}, which looks at the state before: no transition decides it"));
    }
    for run in &left.without {
        lines.push(format!("{run}: it has no pack"));
    }
    for (run, tick, why) in &left.unreadable {
        lines.push(format!("{run} from tick {tick} on: {}", quote::escape(why)));
    }
    lines
}
