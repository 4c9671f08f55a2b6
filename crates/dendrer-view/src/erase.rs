//! What was erased, or would be, and why nothing was.

use std::collections::BTreeMap;

use dendrer::care::erase::{EraseError, ErasePlace, EraseReason, Erased};
use dendrer_object::record::Record;
use dendrer_object::{Pointer, RunName, Value};

use crate::answer::{Answer, Line, Page, Style};
use crate::problem::Problem;
use crate::{count, document, quote};

/// Open places that a message lists at most.
const SHOWN: usize = 12;

impl Answer for Erased {
    fn document(&self) -> Value {
        let plan = &self.plan;
        let places = |places: &[ErasePlace]| Value::array(places.iter().map(ErasePlace::to_value));
        document(
            "erase",
            [
                ("run", Value::from(plan.run.as_str())),
                ("tick", Value::from(plan.tick)),
                ("path", Value::from(plan.path.written())),
                ("reason", Value::from(plan.reason.as_str())),
                ("dry_run", Value::from(self.record.is_none())),
                ("record", Value::from(self.record.as_ref().map(Record::id))),
                ("erased", places(&plan.erased)),
                ("although", places(&plan.although)),
                ("vault", Value::array(plan.vault.iter().map(|run| Value::from(run.as_str())))),
                ("not_searched", Value::from(self.not_searched)),
            ],
        )
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let plan = &self.plan;
        let verb = if self.record.is_some() { "erased" } else { "would go" };
        let mut lines: Vec<Line> =
            grouped(&plan.erased).iter().map(|line| format!("{verb}  {line}").into()).collect();
        let of_vault = plan
            .vault
            .iter()
            .map(|run| format!("{verb}  {run}  the exact file in the vault  (contains the value)"));
        lines.extend(of_vault.map(Line::from));
        let stays = grouped(&plan.although);
        lines.extend(stays.iter().map(|line| Line::styled(Style::Warn, format!("stays   {line}"))));
        match &self.record {
            Some(record) => {
                let fields = count(plan.erased.len() as u64, "field", "fields");
                let (run, id) = (&plan.run, record.id().short());
                lines.push(
                    format!("ERASED     {fields}; {run}@{} {}   hash {id}", plan.tick, plan.path.dotted())
                        .into(),
                );
                lines.push(Line::note(
                    "copies outside the store are not reached: make backups and bundles again",
                ));
                lines.push(Line::help(["dendrer", "verify", run.as_str()]));
            }
            None => lines.push(Line::note("nothing was changed")),
        }
        if self.not_searched > 0 {
            let records = count(self.not_searched, "record", "records");
            lines.push(Line::styled(
                Style::Warn,
                format!("{records} committed meanwhile, not searched for copies"),
            ));
        }
        lines
    }
}

/// Why a field is listed.
fn words(reason: EraseReason) -> &'static str {
    match reason {
        EraseReason::Asked => "the place",
        EraseReason::Copy => "contains the value",
        EraseReason::Digest => "digest over the value",
        EraseReason::Part => "contains a part of the value",
        EraseReason::MayFollow => "written after the value",
    }
}

/// Writes places as lines, one for each run, field and reason.
fn grouped(places: &[ErasePlace]) -> Vec<String> {
    // A record without a tick, as the beginning of a fork, has a line of its own.
    type Group<'p> = (EraseReason, Option<&'p RunName>, bool, &'p Pointer);
    let mut groups: BTreeMap<Group<'_>, Vec<Option<u64>>> = BTreeMap::new();
    for place in places {
        let group = (place.reason, place.run.as_ref(), place.tick.is_some(), &place.place);
        groups.entry(group).or_default().push(place.tick);
    }
    let line = |((reason, run, _, place), ticks): (&Group<'_>, &Vec<Option<u64>>)| {
        let run = run.map_or("(no run)", |run| run.as_str());
        let ticks = ticks_words(ticks);
        format!("{run}  {ticks}  {}  ({})", quote::escape(&place.dotted()), words(*reason))
    };
    groups.iter().map(line).collect()
}

fn ticks_words(ticks: &[Option<u64>]) -> String {
    let numbers: Vec<u64> = ticks.iter().flatten().copied().collect();
    match numbers.as_slice() {
        [] => "no tick".to_owned(),
        [only] => format!("tick {only}"),
        [first, .., last] if last - first + 1 == numbers.len() as u64 => format!("ticks {first}..{last}"),
        [first, .., last] => format!("{} ticks of {first}..{last}", numbers.len()),
    }
}

impl From<EraseError> for Problem {
    fn from(error: EraseError) -> Problem {
        let plain = Problem::new(error.code(), error.to_string());
        match error {
            EraseError::Failed(error) => error.into(),
            EraseError::OfBundle => plain.note("nothing was changed; export the run again after the erasure"),
            EraseError::NoTick => plain.note("nothing was changed"),
            EraseError::NotAPlace { .. } => {
                plain.note("nothing was changed; write result.output, /action/params/token or state.a.b; elsewhere also TICK:PLACE or RUN@TICK:PLACE")
            }
            EraseError::Nothing { run, tick, fields, .. } => {
                let fields: Vec<String> = fields.iter().map(Pointer::dotted).collect();
                plain
                    .at("fields", fields.join(", "))
                    .note("nothing was changed")
                    .help(&["dendrer", "show", &format!("{run}@{tick}")])
            }
            EraseError::Already { run, tick, .. } => {
                plain.note("nothing was changed").help(&["dendrer", "show", &format!("{run}@{tick}")])
            }
            EraseError::InReason => plain.note("nothing was changed; the reason stays on record"),
            EraseError::Idle { .. } => plain.note("nothing was changed"),
            EraseError::Open { open } => {
                let lines = grouped(&open);
                let more = lines.len().saturating_sub(SHOWN);
                let mut shown: Vec<String> = lines.into_iter().take(SHOWN).collect();
                if more > 0 {
                    shown.push(format!("and {}", count(more as u64, "line more", "lines more")));
                }
                plain
                    .at("open", shown.join("\n"))
                    .note("nothing was erased; --also PLACE erases a place as well, --although PLACE lets it stay")
                    .note(format!("the places: {}", named(&open).join(" ")))
            }
            _ => plain,
        }
    }
}

/// Returns each open field once, as `--also` and `--although` take it.
fn named(open: &[ErasePlace]) -> Vec<String> {
    let mut named: Vec<String> = Vec::new();
    for place in open {
        // A copy may be in a run that a place without a run does not name.
        let text = match place.reason {
            EraseReason::MayFollow | EraseReason::Part => place.place.dotted(),
            _ => place.address(),
        };
        if !named.contains(&text) {
            named.push(text);
        }
    }
    named
}
