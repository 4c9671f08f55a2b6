//! Fields that decide and that no contract names, as lines and as a document.

use dendrer::contract::suggest::{Flip, LeftOut, SuggestFound, Suggested, field_name};
use dendrer_object::{Pointer, RunName, TypeName, Value, document};

use crate::answer::{Answer, Line, Page, Style};
use crate::{count, quote};

/// The largest number of fields that are printed for people.
const SHOWN: usize = 20;

/// The fields that were found in some runs.
#[derive(Debug, Clone, Copy)]
pub struct SuggestAnswer<'s> {
    /// The runs, as they were named.
    pub runs: &'s [String],
    /// The fields.
    pub found: &'s SuggestFound,
}

document! {
    /// Fields that decide and that no contract names
    pub object ContractSuggestDocument: "contract-suggest" (answer: &SuggestAnswer<'_>) {
        let found = answer.found;
        /// The runs, as they were named
        runs: &[String] = answer.runs,
        /// The certainty of the answer
        certainty: ["heuristic"] = "heuristic",
        /// The number of transitions that were looked at
        transitions: u64 = found.transitions,
        /// The number of times that a transition was decided again
        tries: u64 = found.tries,
        /// The number of fields that are read and make no difference
        silent: u64 = found.silent,
        /// The number of fields that were not tried
        untried: u64 = found.untried,
        /// The parts of the runs that were left out
        left_out: LeftOutObject = LeftOutObject::of(&found.left_out),
        /// The fields
        items: Vec<SuggestObject> = found.items.iter().map(SuggestObject::of).collect(),
    }

    /// A field that decides and that no contract names
    object SuggestObject(one: &Suggested) {
        /// The type
        type: &TypeName = &one.type_name,
        /// The place in the state, as a JSON pointer
        path: &Pointer = &one.place,
        /// The field, as a contract names it
        field: String = field_name(&one.place),
        /// Whether the type has a contract
        contract: bool = one.has_contract,
        /// The number of transitions after which a verdict differs
        flips: u64 = one.flips,
        /// The number of transitions for which a refusal differs
        refusals: u64 = one.refusals,
        /// The number of transitions that write something else
        changes: u64 = one.changes,
        /// The number of transitions in which the model named it
        named: u64 = one.named,
        /// The number of transitions that were tried
        tried: u64 = one.tried,
        /// Examples
        shown: Vec<FlipObject> = one.shown.iter().map(FlipObject::of).collect(),
        /// The predicates and rules that read it
        readers: &[String] = &one.readers,
    }

    /// An example of a field that decides
    object FlipObject(flip: &Flip) {
        /// The run
        run: &RunName = &flip.run,
        /// The tick
        tick: u64 = flip.tick,
        /// The difference in words
        what: &str = &flip.what,
        /// The value that was tried
        value: &Value = &flip.value,
        /// The run that had this value
        from_run: &RunName = &flip.from.0,
        /// The tick before which it had this value
        from_tick: u64 = flip.from.1,
    }

    /// The parts of runs that were left out
    object LeftOutObject(left: &LeftOut) {
        let lost = left.unreadable.iter().map(|(run, tick, why)| UnreadableTicks::of(run, *tick, why));
        /// The number of transitions of types of which many were looked at
        transitions: u64 = left.transitions,
        /// The number of values beyond the first of a field
        values: u64 = left.values,
        /// The number of combinations beyond the limit
        tries: u64 = left.tries,
        /// The number of fields of types beyond the limit
        pairs: u64 = left.pairs,
        /// The predicates that look at the state before a transition
        before: &[String] = &left.before,
        /// The runs without a pack
        without: &[RunName] = &left.without,
        /// The ticks that cannot be read
        unreadable: Vec<UnreadableTicks> = lost.collect(),
    }

    /// Ticks of a run that cannot be read
    object UnreadableTicks(name: &RunName, from: u64, reason: &str) {
        /// The run
        run: &RunName = name,
        /// The first tick
        tick: u64 = from,
        /// The reason
        why: &str = reason,
    }
}

impl Answer for SuggestAnswer<'_> {
    fn document(&self) -> Value {
        ContractSuggestDocument::of(self).into()
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
