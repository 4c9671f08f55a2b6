//! How two runs differ, as rows, lines and documents.

use dendrer::ask::diff::question::{ComparedRuns, DiffQuestion};
use dendrer::ask::predicates::PredicateTested;
use dendrer::casebook;
use dendrer::diff::{
    ComparedThreads, ConstantDifference, DiffAlign, DiffChange, DiffHidden, DiffKind, DiffOutcome,
    DiffReport, DiffSides, DiffTally, DiffTerms, Marker, Pair, PairedSteps, STATE, Shift, States, is_marker,
};
use dendrer::kernel::unknown::Since;
use dendrer::problem::Problem;
use dendrer::source::{Desk, clean_value};
use dendrer::timeline::Interval;
use dendrer_object::delta::Op;
use dendrer_object::document::{Positive, Shape as _};
use dendrer_object::record::Record;
use dendrer_object::text::is_same_but_for_form;
use dendrer_object::{Delta, Digest, Pointer, RunName, Value, document, tag};

use crate::answer::{End, ItemAnswer, Line, Page, Style};
use crate::casebook::{RecordedObject, recorded_lines, recorded_objects};
use crate::certainty::{self, Certainty, ReasonObject, UnknownPlace, reasons, reasons_words, unknown_places};
use crate::change::{self, ShownChange};
use crate::row::TransitionObject;
use crate::table::{Align as Column, Table};
use crate::thread::{message_words, node_words};
use crate::verdict::{AskedObject, Stretch, stretches, sum_up, word};
use crate::{count, quote, row, thousands, why};

/// The words for a side without a transition.
const NONE: &str = "(none)";

/// Writes the ticks of a pair: one number where both are the same.
pub fn ticks(a: Option<u64>, b: Option<u64>) -> String {
    let one = |tick: Option<u64>| tick.map_or_else(|| "-".to_owned(), |tick| tick.to_string());
    if a == b { one(a) } else { format!("{}|{}", one(a), one(b)) }
}

fn tick_of(record: Option<&Record>) -> Option<u64> {
    record.map(|record| record.header().tick.unwrap_or(0))
}

/// Writes the numbers of two steps that were lined up.
fn steps_of(steps: &PairedSteps, pair: &Pair) -> String {
    let one = |step: Option<i64>, is_there: bool| match (step, is_there) {
        (Some(step), _) => step.to_string(),
        (None, true) => "?".to_owned(),
        (None, false) => "-".to_owned(),
    };
    let (a, b) = (one(steps.a, pair.a.is_some()), one(steps.b, pair.b.is_some()));
    if a == b { a } else { format!("{a}|{b}") }
}

/// Writes the ticks, the steps and the nodes of a pair of steps.
fn steps_title(steps: &PairedSteps, pair: &Pair) -> String {
    let node = steps.node.split(", ").map(node_words).collect::<Vec<_>>().join(", ");
    let what = match (&pair.a, &pair.b) {
        (Some(_), Some(_)) => node,
        (a, _) => {
            let side = if a.is_some() { "a" } else { "b" };
            format!("only in {side}: {}", if steps.by_hand { "put by hand".to_owned() } else { node })
        }
    };
    format!("{}  step {}  {what}", ticks_of(pair), steps_of(steps, pair))
}

/// Writes the step at which two threads part: of a step without a counterpart its own.
fn parting_step(steps: &PairedSteps, pair: &Pair) -> String {
    match (&pair.a, &pair.b) {
        (Some(_), Some(_)) => steps_of(steps, pair),
        _ => steps.a.or(steps.b).map_or_else(|| "?".to_owned(), |step| step.to_string()),
    }
}

fn ticks_of(pair: &Pair) -> String {
    ticks(tick_of(pair.a.as_ref()), tick_of(pair.b.as_ref()))
}

/// Writes the type of a pair, or both where they differ.
fn types_of(pair: &Pair) -> String {
    let one =
        |side: &Option<Record>| side.as_ref().map_or_else(|| NONE.to_owned(), |r| row::row(r).type_name);
    match (one(&pair.a), one(&pair.b)) {
        (a, b) if a == b => a,
        (a, b) => format!("{a} | {b}"),
    }
}

/// Writes a value; unreadable bytes, such as a module of a pack, by their digest.
fn words(value: &Value) -> String {
    match tag::as_bytes(value) {
        Some(bytes) if bytes.len() > 32 => {
            format!("{}, {}", count(bytes.len() as u64, "byte", "bytes"), Digest::of(&bytes).short())
        }
        _ => change::side_words(value),
    }
}

/// Writes both sides of a difference; `None` for a side without a value or without a write.
fn sides(change: &DiffChange) -> (Option<String>, Option<String>) {
    let number = |value: &Value| value.as_f64().filter(|_| change.kind == DiffKind::Confidence);
    let words = |value: &Value| message_words(value).unwrap_or_else(|| words(value));
    let value = |value: &Value| number(value).map_or_else(|| words(value), |number| format!("{number:.3}"));
    match &change.sides {
        DiffSides::Values(a, b) => {
            let (mut left, mut right) = (a.as_ref().map(value), b.as_ref().map(value));
            // Texts in two Unicode forms read alike.
            let is_alike = |(a, b): (&String, &String)| a == b || is_same_but_for_form(a, b);
            if a != b && left.as_ref().zip(right.as_ref()).is_some_and(is_alike) {
                (left, right) = (a.as_ref().map(quote::in_its_form), b.as_ref().map(quote::in_its_form));
            }
            (left, right)
        }
        DiffSides::Writes(a, b) => {
            let place = state_place(&change.path);
            let words = |ops: &[_]| (!ops.is_empty()).then(|| why::ops_words(ops, place.as_ref()));
            (words(a), words(b))
        }
    }
}

/// Writes both sides of a difference on one line.
fn sides_words(change: &DiffChange) -> String {
    match sides(change) {
        (Some(a), Some(b)) => format!("{a} -> {b}"),
        (Some(a), None) => format!("{a}, only in a"),
        (None, Some(b)) => format!("{b}, only in b"),
        (None, None) => String::new(),
    }
}

/// Returns the place in the state that a place of a comparison is; `None` for a member of a transition.
fn state_place(path: &Pointer) -> Option<Pointer> {
    path.as_str().strip_prefix(STATE).and_then(|path| path.parse().ok())
}

/// The line on the places that a comparison of steps leaves out.
const STEPS_LEFT_OUT: &str = "left out ids, versions, vault places, branch:to:* and __start__";

/// What is said of two texts that are one moment.
const SAME_MOMENT: &str = "(the same moment)";

/// Returns a difference as a change from the left run to the right one.
fn shown_change(place: String, change: &DiffChange, note: &str, more: &[String]) -> ShownChange {
    let (before, after) = sides(change);
    let sign = match (&before, &after) {
        (Some(_), Some(_)) => '~',
        (None, _) => '+',
        _ => '-',
    };
    ShownChange { sign, place, before, after, note: note.to_owned(), more: more.to_vec() }
}

/// Writes the ticks, the kinds of difference and the types of a pair.
pub fn title(pair: &Pair) -> String {
    if let Some(steps) = &pair.steps {
        return steps_title(steps, pair);
    }
    let kinds: Vec<&str> = pair.kinds.iter().map(|kind| kind.as_str()).collect();
    let word = if kinds.is_empty() { "not known".to_owned() } else { kinds.join(", ") };
    format!("{}  {word}  {}", ticks_of(pair), types_of(pair))
}

/// How many places of one pair are listed, unless all are asked for.
const PLACES: usize = 40;

/// Returns the lines of the places at which a pair differs, `indent` columns deep; of more than forty the first
/// forty, and the command that lists the others.
pub fn pair_changes(pair: &Pair, more: Option<&[String]>, indent: usize, page: &Page) -> Vec<Line> {
    let command = more.unwrap_or_default();
    let shown = pair.changes.iter().map(|change| {
        let note = if change.is_same_moment() { SAME_MOMENT } else { "" };
        // All that steps write is state.
        let place = state_place(&change.path).filter(|_| pair.steps.is_some());
        shown_change(quote::path(place.as_ref().unwrap_or(&change.path)), change, note, command)
    });
    let mut lines = place_lines(shown.collect(), command, indent, page);
    lines.extend(summary_lines(pair, command, indent));
    for hidden in &pair.hidden {
        let side = match (hidden.in_a, hidden.in_b) {
            (true, true) => "in both",
            (true, false) => "in a",
            (false, _) => "in b",
        };
        let (lead, place) = (" ".repeat(indent), quote::path(&hidden.path));
        let text = match hidden.redacted {
            true => format!("{lead}? {place}  not comparable (redacted)"),
            false => format!("{lead}? {place}  not comparable (erased or withheld {side})"),
        };
        lines.push(Line::styled(Style::Warn, text));
    }
    lines
}

/// Returns a line for each side of a pair without comparable places: the agent, and the words of the transition.
fn summary_lines(pair: &Pair, more: &[String], indent: usize) -> Vec<Line> {
    if pair.steps.is_some() || !pair.changes.is_empty() || !pair.kinds.contains(&DiffKind::Structural) {
        return Vec::new();
    }
    let lead = " ".repeat(indent);
    let side = |sign: char, style: Style, record: &Record| {
        let row = row::row(record);
        let words = [row.agent, row.summary].into_iter().filter(|part| !part.is_empty());
        let words = words.collect::<Vec<_>>().join("  ");
        Line::value(format!("{lead}{sign} {words}"), more.to_vec()).paint(style)
    };
    let a = pair.a.iter().map(|record| side('-', Style::Removed, record));
    a.chain(pair.b.iter().map(|record| side('+', Style::Added, record))).collect()
}

fn place_lines(mut changes: Vec<ShownChange>, more: &[String], indent: usize, page: &Page) -> Vec<Line> {
    let all = changes.len();
    if page.width.is_some() && !page.full && !more.is_empty() {
        changes.truncate(PLACES);
    }
    let mut lines = page.changes(&changes, indent);
    if changes.len() < all {
        let rest = count((all - changes.len()) as u64, "more place", "more places");
        lines.push(Line::command(format!("{}({rest})  ", " ".repeat(indent)), more));
    }
    lines
}

/// Returns the lines of the states in the end. The places are those of the state itself.
fn outcome_lines(report: &DiffReport, more: &[String], page: &Page) -> Vec<Line> {
    let Some(outcome) = &report.outcome else { return Vec::new() };
    let ticks = ticks(Some(outcome.ticks.0), Some(outcome.ticks.1));
    let head =
        |words: &str| Line::styled(Style::Strong, format!("end {ticks}")).then(format!("  outcome{words}"));
    match &outcome.states {
        States::Equal => Vec::new(),
        States::Unknown { .. } => {
            vec![head(""), Line::styled(Style::Warn, format!("  {}", unknown_words(&outcome.states)))]
        }
        States::Differ(changes) => {
            let one = |change: &DiffChange| {
                let place = state_place(&change.path).filter(|path| !path.as_str().is_empty());
                let place = place.map_or_else(|| "state".to_owned(), |path| quote::path(&path));
                let note = match () {
                    () if report.is_at_unknown(&change.path) => "(unknown)",
                    () if change.is_same_moment() => SAME_MOMENT,
                    () => "",
                };
                shown_change(place, change, note, more)
            };
            let lines = place_lines(changes.iter().map(one).collect(), more, 2, page);
            [head("")].into_iter().chain(lines).collect()
        }
    }
}

fn unknown_words(states: &States) -> String {
    let States::Unknown { in_b, tick, pointer, redacted } = states else { return String::new() };
    if *redacted {
        let place = pointer
            .as_ref()
            .and_then(state_place)
            .map_or_else(|| "state".to_owned(), |path| quote::path(&path));
        return format!("not comparable: {place} is redacted, without a tag to compare");
    }
    let what = pointer.as_ref().map_or_else(|| "a value".to_owned(), quote::path);
    let side = if *in_b { "b" } else { "a" };
    format!("not comparable: the {what} of tick {tick} of {side} was erased or withheld")
}

/// Says what the first difference is, in words.
pub fn cause_words(pair: &Pair) -> String {
    let type_name = types_of(pair);
    match (&pair.a, &pair.b, pair.changes.first()) {
        (Some(record), None, Some(change)) | (None, Some(record), Some(change)) if is_marker(record) => {
            format!("{type_name}, {} {}", quote::path(&change.path), sides_words(change))
        }
        (Some(_), None, _) => {
            format!("b has nothing there, and a goes on with {}", type_name.replace(" | (none)", ""))
        }
        (None, Some(_), _) => {
            format!("a has nothing there, and b goes on with {}", type_name.replace("(none) | ", ""))
        }
        (.., Some(change)) => {
            let more = match pair.changes.len() {
                1 => String::new(),
                all => format!(", and {} more", all - 1),
            };
            format!("{type_name}, {} {}{more}", quote::path(&change.path), sides_words(change))
        }
        (.., None) => type_name,
    }
}

/// Says what a marker says: why a run branched off, and with which change of state.
pub fn marker_words(marker: &Marker) -> Option<String> {
    let content = marker.record.content();
    let at = |outer: &str, inner: &str| content.get(outer).and_then(|value| value.get(inner)).cloned();
    let reason = content.get("fork_reason").cloned();
    let reason =
        reason.or(at("fork", "fork_reason")).or(at("fork", "reason")).or(at("intent", "description"));
    let said = reason.filter(|reason| *reason != Value::Null).map(|reason| quote::value(&reason));
    let delta = content.get("delta").and_then(|delta| dendrer_object::Delta::from_value(delta).ok());
    let wrote = delta.filter(|delta| !delta.is_empty()).map(|delta| why::ops_words(&delta.0, None));
    let parts: Vec<String> = said.into_iter().chain(wrote).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The difference of the fork markers after the shared ticks, which explains the differences that follow.
fn markers_say(report: &DiffReport) -> Option<String> {
    let next = report.shared? + 1;
    let says =
        [("a", &report.markers.0), ("b", &report.markers.1)].into_iter().filter_map(|(side, markers)| {
            let marker = markers.first().filter(|marker| marker.tick == next)?;
            Some(format!("the fork marker of {side} says {}", marker_words(marker)?))
        });
    let says: Vec<String> = says.collect();
    (!says.is_empty()).then(|| says.join(", "))
}

/// Says why the runs differ from a pair on: as the fork markers say, or else what differs there.
fn cause(report: &DiffReport, pair: &Pair, part: bool) -> String {
    markers_say(report).filter(|_| !part).unwrap_or_else(|| cause_words(pair))
}

/// Writes the answer: where the runs part, and how much of them differs. `part` reports that the question was about a
/// part of them.
pub fn headline(report: &DiffReport, part: bool) -> String {
    if report.threads.is_some() {
        return steps_headline(report, part);
    }
    let differ = format!(
        "{} of {} {}",
        thousands(report.differ),
        count(report.pairs, "pair", "pairs"),
        if report.differ == 1 { "differs" } else { "differ" }
    );
    let unclear = match report.unclear {
        0 => String::new(),
        unclear => format!(", {} not known", thousands(unclear)),
    };
    let end = if report.count(DiffKind::Outcome) > 0 { ", and the end" } else { "" };
    if let Some(pair) = &report.first {
        let word = if part { "the first difference is" } else { "they part" };
        // Of pairs that differ the transitions of one run alone are no part.
        let only = [("a", report.alone.0), ("b", report.alone.1)].into_iter();
        let only = only.filter(|(_, number)| *number > 0 && report.differ == 0);
        let only: String =
            only.map(|(side, number)| format!(", {} only in {side}", thousands(number))).collect();
        return format!("{word} at tick {}; {differ}{only}{unclear}{end}", ticks_of(pair));
    }
    let of = match (report.is_partial(), part) {
        (true, _) => "no difference in what is here of the runs",
        (false, true) => "no difference in what was asked for",
        (false, false) => "no difference",
    };
    let pairs = count(report.pairs, "pair", "pairs");
    match report.hidden {
        _ if !end.is_empty() => format!("{of} in {pairs}, but the states in the end differ{unclear}"),
        0 if !report.constants.is_empty() => {
            format!("{of} in what happened, and {} of the packs differ; {pairs} compared", constants(report))
        }
        0 => format!("{of}; {pairs} compared{unclear}"),
        // What is unknown in a state is one of the values that cannot be compared.
        1 if report.has_unknown() => {
            format!("{of} that can be seen, and the states have unknown places; {pairs} compared")
        }
        hidden => {
            let values = count(hidden, "value", "values");
            format!("{of} that can be seen, and {values} could not be compared; {pairs} compared")
        }
    }
}

/// As [`headline`], of two threads that were compared by their steps.
fn steps_headline(report: &DiffReport, part: bool) -> String {
    let steps = count(report.pairs, "step", "steps");
    let unclear = match report.unclear {
        0 => String::new(),
        unclear => format!(", {} not known", thousands(unclear)),
    };
    let only = [("a", report.alone.0), ("b", report.alone.1)].into_iter().filter(|(_, number)| *number > 0);
    let only: String = only.map(|(side, number)| format!(", {} only in {side}", thousands(number))).collect();
    let end = if report.count(DiffKind::Outcome) > 0 { ", and the end" } else { "" };
    let verb = if report.differ == 1 { "differs" } else { "differ" };
    let differ = format!("{} of {steps} {verb}", thousands(report.differ));
    if let Some(pair) = &report.first {
        let word = if part { "the first difference is" } else { "they part" };
        let place = match &pair.steps {
            Some(steps) => format!("step {}", parting_step(steps, pair)),
            None => format!("tick {}", ticks_of(pair)),
        };
        return format!("{word} at {place}; {differ}{only}{unclear}{end}");
    }
    let of = match (report.is_partial(), part) {
        (true, _) => "no difference in what is here of the runs",
        (false, true) => "no difference in what was asked for",
        (false, false) => "no difference",
    };
    match report.hidden {
        _ if !end.is_empty() => format!("{of} in {steps}, but the states in the end differ{unclear}"),
        0 => match report.shared.filter(|_| report.pairs == 0) {
            Some(last) => format!("{of}; they share ticks 1..{last}"),
            None => format!("{of}; {steps} compared{unclear}"),
        },
        hidden => {
            let values = count(hidden, "value", "values");
            format!("{of} that can be seen, and {values} could not be compared; {steps} compared")
        }
    }
}

/// Names the two threads, and the fork by which one began.
fn thread_lines(threads: &ComparedThreads, found: &DiffFound, page: &Page) -> Vec<Line> {
    let [a, b] = threads.names.each_ref().map(|name| quote::quoted(name));
    let other = if a == b { "the same thread".to_owned() } else { format!("thread {b}") };
    let fork = |in_b: bool| match &threads.fork {
        Some(fork) if fork.in_b == in_b => {
            let step = fork.step.map(|step| format!(" (step {step})")).unwrap_or_default();
            format!(", a fork of {} at tick {}{step}", if in_b { "a" } else { "b" }, fork.tick)
        }
        _ => String::new(),
    };
    let from = if page.is_usual { String::new() } else { page.read_from() };
    vec![
        format!("a  {}, thread {a}{}", found.a, fork(false)).into(),
        format!("b  {}, {other}{}{from}", found.b, fork(true)).into(),
    ]
}

/// Returns "1 constant" or "2 constants".
fn constants(report: &DiffReport) -> String {
    count(report.constants.len() as u64, "constant", "constants")
}

/// Writes the constants of the packs that differ, one a line.
fn constant_lines(report: &DiffReport) -> Vec<String> {
    let side = |value: &Option<Value>| value.as_ref().map_or_else(|| "(absent)".to_owned(), quote::value);
    let line = |one: &ConstantDifference| {
        let name = quote::escape(&one.name);
        format!(
            "constant  {name}  {} -> {}: what was decided under it may differ",
            side(&one.a),
            side(&one.b)
        )
    };
    report.constants.iter().map(line).collect()
}

/// Writes what both runs have in common: the record that they share, and the marker of a fork.
fn shared_lines(report: &DiffReport) -> Vec<Line> {
    let behind = report.shared.map(|last| last + 1);
    let is_fork =
        |marker: &&Marker| Some(marker.tick) == behind && row::row(&marker.record).type_name == "run.fork";
    let mut lines = Vec::new();
    let sides = [("a", "b", &report.markers.0), ("b", "a", &report.markers.1)];
    let forks: Vec<(&str, &str, &Marker)> = sides
        .into_iter()
        .filter_map(|(side, other, markers)| Some((side, other, markers.iter().find(is_fork)?)))
        .collect();
    let last = report.shared.unwrap_or_default();
    for (side, other, marker) in &forks {
        let of = if forks.len() == 1 { (*other).to_owned() } else { "the run that both share".to_owned() };
        let said = marker_words(marker).map(|words| format!(": {words}")).unwrap_or_default();
        lines.push(
            format!("{side} is a fork of {of} at tick {last}; its marker, tick {}{said}", marker.tick).into(),
        );
    }
    if forks.is_empty() {
        lines.push(match report.shared {
            None => "they share nothing: they begin with different records".into(),
            Some(0) => "they share the beginning alone".into(),
            Some(1) => "they share tick 1".into(),
            Some(last) => Line::from(format!("they share ticks 1..{last}")),
        });
    }
    lines
}

/// Writes what was compared where that was not the whole of both runs, one by one, and what was passed over.
fn compared_lines(found: &DiffFound) -> Vec<Line> {
    let DiffFound { report, terms, .. } = found;
    let range = |range: Option<(u64, u64)>| match range {
        None => "nothing".to_owned(),
        Some((from, to)) => format!("{from}..{to}"),
    };
    let mut lines = Vec::new();
    if terms.is_part(report) || terms.align == DiffAlign::Content {
        let by = terms.align.as_str();
        let (a, b) = (range(report.a), range(report.b));
        lines.push(format!("compared a {a} with b {b}, aligned by {by}").into());
    }
    let behind = report.shared.map(|last| last + 1);
    let mut skipped = Vec::new();
    for (side, markers) in [("a", &report.markers.0), ("b", &report.markers.1)] {
        let passed = markers.iter().filter(|marker| !marker.changes_state);
        let passed = passed.map(|marker| (marker.tick, row::row(&marker.record).type_name));
        let passed = passed.filter(|(tick, name)| !(Some(*tick) == behind && name == "run.fork"));
        skipped.extend(passed.map(|(tick, name)| format!("{side} {tick} {name}")));
    }
    if let Some(list) = crate::verdict::list(&skipped, 12) {
        lines.push(format!("skipped {list}, markers of one run alone").into());
    }
    lines
}

/// Says how many places were to be left out, and at which of them nothing was: a place may be misspelt.
pub fn ignored_line(ignored: &[(Pointer, bool)]) -> Option<String> {
    let unmet = ignored.iter().filter(|(_, met)| !met).map(|(place, _)| quote::path(&shown(place)));
    let unmet: Vec<String> = unmet.collect();
    let all = count(ignored.len() as u64, "path", "paths");
    match (ignored.is_empty(), crate::verdict::list(&unmet, 12)) {
        (true, _) => None,
        (false, None) => Some(format!("ignored {all}")),
        (false, Some(unmet)) => Some(format!("ignored {all}; nothing was left out at {unmet}")),
    }
}

/// A place of the state as it is asked for.
fn shown(place: &Pointer) -> Pointer {
    let of_state = place.as_str().strip_prefix(STATE).filter(|rest| rest.starts_with('/'));
    of_state.and_then(|rest| rest.parse().ok()).unwrap_or_else(|| place.clone())
}

/// Writes how many differences of each kind were found; `None` without any.
fn found_line(report: &DiffReport, kinds: &[DiffKind]) -> Option<Line> {
    let asked = DiffKind::ALL.iter().copied().filter(|kind| kinds.contains(kind) && report.count(*kind) > 0);
    let mut parts: Vec<String> =
        asked.map(|kind| format!("{} {}", kind.as_str(), thousands(report.count(kind)))).collect();
    if report.hidden > 0 {
        parts.push(format!("not comparable {}", thousands(report.hidden)));
    }
    (!parts.is_empty()).then(|| format!("found {}", parts.join(", ")).into())
}

/// Says that a structural difference looks like steps which one side alone has.
pub fn shift_words(report: &DiffReport) -> Option<String> {
    let shift = report.shift?;
    let steps = match shift.steps {
        1 => "one inserted step".to_owned(),
        steps => format!("{steps} inserted steps"),
    };
    let side = if shift.in_b { "b" } else { "a" };
    let ticks = ticks(Some(shift.ticks.0), Some(shift.ticks.1));
    Some(format!("{ticks} looks like {steps} in {side}; --align content lines up what follows"))
}

/// Makes the table of types, one row for each.
pub fn type_table(report: &DiffReport) -> Table {
    let right = Column::Right;
    let columns = [("type", Column::Left), ("pairs", right), ("equal", right), ("structural", right)];
    let mut table = Table::new(columns.into_iter().chain([("semantic", right), ("confidence", right)]));
    for (name, tally) in &report.types {
        let numbers = [tally.pairs, tally.equal, tally.structural, tally.semantic, tally.confidence];
        let cells = numbers.into_iter().map(crate::thousands);
        table.row(std::iter::once(name.clone()).chain(cells).collect());
    }
    table
}

/// Returns the cells of a pair side by side: the left transition, how they differ, the right one.
pub fn side_by_side(pair: &Pair) -> Vec<String> {
    let one = |side: &Option<Record>| match side {
        None => NONE.to_owned(),
        Some(record) => {
            let row = row::row(record);
            let tick = tick_of(Some(record)).unwrap_or(0);
            format!("{tick} {} {}", row.type_name, row.summary).trim_end().to_owned()
        }
    };
    let kinds: Vec<&str> = pair.kinds.iter().map(|kind| kind.as_str()).collect();
    let word = if kinds.is_empty() { "not known".to_owned() } else { kinds.join(", ") };
    vec![one(&pair.a), word, one(&pair.b)]
}

/// Returns the places that only name a run or a message.
pub(crate) fn left_out_names(left_out: &[Pointer]) -> Vec<String> {
    left_out.iter().map(|place| quote::path(&shown(place))).collect()
}

/// Says which places are left out of any comparison, as they are asked for.
pub fn left_out_line(left_out: &[Pointer]) -> Option<String> {
    let names = crate::verdict::list(&left_out_names(left_out), 12)?;
    Some(format!("left out {names}: names, ids, times and costs of each run; diff --path compares one"))
}

dendrer_object::words! {
    /// One of the two runs that are compared.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum ComparedSide {
        /// The left run.
        A = "a",
        /// The right run.
        B = "b",
    }
}

document! {
    /// The difference of two runs
    pub object DiffDocument: "diff" reads (answer: &DiffAnswer, found: &DiffFound) {
        let form = answer.form;
        ..DiffMembers = found.members(),
        /// The records that the command added to the casebook
        recorded?: Vec<RecordedObject> = found.recorded.as_deref().map(recorded_objects),
        /// The verdicts of the predicate on both runs
        verdicts?: DiffVerdicts = found.tested.as_ref().map(DiffVerdicts::of),
        /// Whether every pair is listed
        complete: bool = answer.shown as u64 == answer.total,
        /// Counts by type of transition
        types?: Vec<DiffTypeCounts> = form.stat.then(|| {
            found.report.types.iter().map(|(name, tally)| DiffTypeCounts::of(name, tally)).collect()
        }),
        /// The reason why no pairs are listed
        note?: &str = form.summary.then_some("summary only").or(form.stat.then_some("types only")),
        /// The pairs of transitions that differ, or that cannot be compared
        items: stream PairObject,
    }

    /// The difference of two runs without the pairs
    object DiffMembers(runs: [&RunName; 2], report: &DiffReport, kinds: &[DiffKind], by: DiffAlign, part: bool) {
        let is_known = report.hidden == 0 && !report.has_unknown() && !report.is_partial();
        let (left, right) = &report.markers;
        let mark = |side: ComparedSide| move |marker: &Marker| DiffMarker::of(side, marker);
        /// The left run
        a: &RunName = runs[0],
        /// The right run
        b: &RunName = runs[1],
        /// The last tick that both runs share; null if they share none
        fork_point: Option<u64> = report.shared,
        /// The first and the last tick of the left run that were compared
        a_range: Option<(u64, u64)> = report.a,
        /// The first and the last tick of the right run that were compared
        b_range: Option<(u64, u64)> = report.b,
        /// The way in which transitions were paired
        align: ["tick" | "content" | "step"] = by.as_str(),
        /// The first pair that differs
        first: Option<FirstDifference> =
            report.first.as_ref().map(|pair| FirstDifference::of(pair, cause(report, pair, part))),
        /// The markers of both runs in the ranges
        markers: Vec<DiffMarker> =
            left.iter().map(mark(ComparedSide::A)).chain(right.iter().map(mark(ComparedSide::B))).collect(),
        /// The number of pairs of each kind that was asked for
        counts: DiffCounts = DiffCounts::of(report, kinds),
        /// The number of pairs that were compared
        pairs: u64 = report.pairs,
        /// The number of pairs that differ
        differ: u64 = report.differ,
        /// The number of pairs of which it is not known
        unclear: u64 = report.unclear,
        /// The number of transitions that the left run alone has
        only_a: u64 = report.alone.0,
        /// The number of transitions that the right run alone has
        only_b: u64 = report.alone.1,
        /// The number of places that were erased or withheld
        not_comparable: u64 = report.hidden,
        /// The constants of the packs in force at the ends that differ; absent if there are none
        constants?: Vec<ConstantObject> = (!report.constants.is_empty())
            .then(|| report.constants.iter().map(ConstantObject::of).collect()),
        /// The difference of the last states
        outcome: Option<OutcomeObject> =
            report.outcome.as_ref().map(|outcome| OutcomeObject::of(report, outcome)),
        /// Steps that one run has and the other lacks, so that the rest is shifted
        shift: Option<ShiftObject> = report.shift.as_ref().map(ShiftObject::of),
        /// The places that were left out, and whether anything was left out there
        ignored: Vec<IgnoredPlace> = ignored_places(&report.ignored),
        /// Places that no comparison reads: names, ids, times and costs of each run
        left_out: Vec<String> = left_out_names(&report.left_out),
        /// Whether every place is known
        certainty: ["exact" | "unavailable"] = Certainty::Exact.unless(!is_known).as_str(),
        /// Unknown places of the states that were compared; absent if every place is known
        unknown?: DiffUnknown = report.has_unknown().then(|| DiffUnknown::of(&report.unknown)),
    }

    /// A constant of the packs that differs
    object ConstantObject(constant: &ConstantDifference) {
        /// The name
        name: &str = &constant.name,
        /// The value in the left run; absent if its pack has no such constant
        a?: &Value = constant.a.as_ref(),
        /// The value in the right run; absent if its pack has no such constant
        b?: &Value = constant.b.as_ref(),
    }

    /// The first pair that differs
    object FirstDifference(pair: &Pair, why: String) {
        /// The tick of the left run
        a: Option<u64> = tick_of(pair.a.as_ref()),
        /// The tick of the right run
        b: Option<u64> = tick_of(pair.b.as_ref()),
        /// The cause in words
        cause: Option<String> = Some(why),
    }

    /// A marker, such as that of a fork
    object DiffMarker(of_run: ComparedSide, marker: &Marker) {
        /// The run
        side: ComparedSide = of_run,
        /// The tick
        tick: u64 = marker.tick,
        /// The id
        id: Digest = marker.record.id(),
        /// The type
        type: String = row::row(&marker.record).type_name,
        /// The marker in words
        says: Option<String> = marker_words(marker),
        /// Whether the marker changes the state by itself
        changes_state: bool = marker.changes_state,
    }

    /// The number of pairs of each kind that was asked for
    object DiffCounts(report: &DiffReport, kinds: &[DiffKind]) {
        let count = |kind: DiffKind| kinds.contains(&kind).then(|| report.count(kind));
        /// Pairs with other types, or without one side
        structural?: u64 = count(DiffKind::Structural),
        /// Pairs of one type that differ
        semantic?: u64 = count(DiffKind::Semantic),
        /// Pairs that differ in their confidence
        confidence?: u64 = count(DiffKind::Confidence),
        /// Differences of the last states
        outcome?: u64 = count(DiffKind::Outcome),
    }

    /// The difference of the last states
    object OutcomeObject(report: &DiffReport, outcome: &DiffOutcome) {
        let is_certain = report.count(DiffKind::Outcome) > 0;
        let (word, found) = match &outcome.states {
            States::Equal if report.has_unknown() => ("not known", Vec::new()),
            States::Equal => ("equal", Vec::new()),
            States::Differ(found) => {
                (if is_certain { "differs" } else { "not known" }, found.iter().map(ChangeObject::of).collect())
            }
            States::Unknown { .. } => ("not known", Vec::new()),
        };
        let is_unknown = matches!(outcome.states, States::Unknown { .. });
        /// The last tick of the left run
        a_tick: u64 = outcome.ticks.0,
        /// The last tick of the right run
        b_tick: u64 = outcome.ticks.1,
        /// The answer
        state: ["equal" | "differs" | "not known"] = word,
        /// The places that differ
        changes: Vec<ChangeObject> = found,
        /// The reason why the states cannot be compared
        why: Option<String> = is_unknown.then(|| unknown_words(&outcome.states)),
    }

    /// Steps that one run has and the other lacks
    object ShiftObject(shift: &Shift) {
        /// The tick of the left run at which they begin
        a: u64 = shift.ticks.0,
        /// The tick of the right run at which they begin
        b: u64 = shift.ticks.1,
        /// The number of steps
        steps: Positive = Positive(shift.steps),
        /// The run that has them
        in: ComparedSide = if shift.in_b { ComparedSide::B } else { ComparedSide::A },
    }

    /// A place that was left out
    pub(crate) object IgnoredPlace(place: &Pointer, was_met: bool) {
        /// The place, as a JSON pointer
        path: &Pointer = place,
        /// Whether anything was left out there
        met: bool = was_met,
    }

    /// Unknown places of two states
    object DiffUnknown(unknown: &[Vec<(Pointer, Since)>; 2]) {
        /// Those of the left run
        a: Vec<UnknownPlace> = unknown_places(&unknown[0]).unwrap_or_default(),
        /// Those of the right run
        b: Vec<UnknownPlace> = unknown_places(&unknown[1]).unwrap_or_default(),
    }

    /// Counts of a type of transition
    object DiffTypeCounts(name: &str, tally: &DiffTally) {
        /// The type
        type: &str = name,
        /// The number of pairs
        pairs: u64 = tally.pairs,
        /// Pairs that are equal
        equal: u64 = tally.equal,
        /// Pairs with other types, or without one side
        structural: u64 = tally.structural,
        /// Pairs of one type that differ
        semantic: u64 = tally.semantic,
        /// Pairs that differ in their confidence
        confidence: u64 = tally.confidence,
    }

    /// A pair of transitions that differ, or that cannot be compared
    pub(crate) object PairObject(pair: &Pair) {
        /// The tick of the left run
        a_tick: Option<u64> = tick_of(pair.a.as_ref()),
        /// The tick of the right run
        b_tick: Option<u64> = tick_of(pair.b.as_ref()),
        /// The type, or both
        type: String = types_of(pair),
        /// The transition of the left run
        a: Option<TransitionObject> = pair.a.as_ref().map(TransitionObject::of),
        /// The transition of the right run
        b: Option<TransitionObject> = pair.b.as_ref().map(TransitionObject::of),
        ..?StepsObject = pair.steps.as_ref().map(StepsObject::of),
        /// The kinds of difference
        kinds: &[DiffKind] = &pair.kinds,
        /// The places that differ
        changes: Vec<ChangeObject> = pair.changes.iter().map(ChangeObject::of).collect(),
        /// The places that cannot be compared
        not_comparable: Vec<HiddenPlace> = pair.hidden.iter().map(HiddenPlace::of).collect(),
    }

    /// The steps of two threads that were lined up
    object StepsObject(steps: &PairedSteps) {
        /// The step of the left thread; null if it is missing
        a_step: Option<i64> = steps.a,
        /// The step of the right thread; null if it is missing
        b_step: Option<i64> = steps.b,
        /// The nodes of the step
        node: &str = &steps.node,
        /// The namespace, without the ids of its tasks
        namespace: &str = &steps.namespace,
    }

    /// A place that differs
    object ChangeObject(change: &DiffChange) {
        let (word, left, right) = match &change.sides {
            DiffSides::Values(a, b) => ("value", a.clone(), b.clone()),
            DiffSides::Writes(a, b) => ("ops", Some(written(a)), Some(written(b))),
        };
        /// The place, as a JSON pointer
        path: &Pointer = &change.path,
        /// The kind of difference
        kind: DiffKind = change.kind,
        /// Whether the sides are values or operations
        as: ["value" | "ops"] = word,
        /// The left side; absent if there is none
        a?: Value = left,
        /// The right side; absent if there is none
        b?: Value = right,
    }

    /// A place that cannot be compared
    object HiddenPlace(hidden: &DiffHidden) {
        let sides = [(ComparedSide::A, hidden.in_a), (ComparedSide::B, hidden.in_b)];
        /// The place, as a JSON pointer
        path: &Pointer = &hidden.path,
        /// Whether it is there, and redacted without tags that can be compared
        redacted?: bool = hidden.redacted.then_some(true),
        /// The runs in which it was erased, withheld or redacted
        closed_in: Vec<ComparedSide> =
            sides.into_iter().filter(|(_, is_closed)| *is_closed).map(|(side, _)| side).collect(),
    }

    /// The verdicts of a predicate on both runs
    object DiffVerdicts(tested: &[PredicateTested; 2]) {
        /// Those of the left run
        a: SideVerdicts = SideVerdicts::of(&tested[0]),
        /// Those of the right run
        b: SideVerdicts = SideVerdicts::of(&tested[1]),
    }

    /// The verdicts of a predicate on a run
    object SideVerdicts(tested: &PredicateTested) {
        let (line, is_known) = (&tested.line, !tested.line.may_hide_onset());
        let judged = line.intervals();
        /// The predicate
        predicate: AskedObject = AskedObject::of(&tested.question),
        /// The first tick in violation; null if there is none, or if it is not known
        onset: Option<u64> = line.onset().filter(|_| is_known),
        /// Stretches of ticks with one verdict
        intervals: Vec<Stretch<'_>> = stretches(&judged),
        /// The reasons why ticks cannot be judged
        reasons: Vec<ReasonObject> = reasons(&line.reasons()),
        /// Whether the onset is known
        certainty: ["exact" | "unavailable"] = Certainty::Exact.unless(!is_known).as_str(),
    }
}

/// Returns operations as answers show them.
fn written(ops: &[Op]) -> Value {
    Delta(ops.to_vec()).written()
}

/// Returns the places that were left out for a document.
pub(crate) fn ignored_places(ignored: &[(Pointer, bool)]) -> Vec<IgnoredPlace> {
    ignored.iter().map(|(place, met)| IgnoredPlace::of(place, *met)).collect()
}

/// The form of a comparison of two runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiffForm {
    /// Counts by type of transition instead of pairs.
    pub stat: bool,
    /// Counts alone.
    pub summary: bool,
    /// The differences alone.
    pub only_changes: bool,
    /// Both transitions of a pair in two columns.
    pub side_by_side: bool,
    /// Whether transitions after the end of the other run are listed in one line.
    pub tail_in_one: bool,
    /// How many pairs are listed at most.
    pub limit: usize,
    /// Whether a difference is the answer no.
    pub fails: bool,
}

impl DiffForm {
    /// The form of a document, as far as the question has one.
    pub fn of(question: &DiffQuestion, align: DiffAlign) -> DiffForm {
        DiffForm {
            stat: question.stat,
            summary: question.summary,
            tail_in_one: align == DiffAlign::Tick,
            limit: question.listed(),
            ..DiffForm::default()
        }
    }
}

/// The result of a comparison of two runs, besides the pairs.
#[derive(Debug, Clone)]
pub struct DiffFound {
    /// The left run.
    pub a: RunName,
    /// The right run.
    pub b: RunName,
    /// The terms.
    pub terms: DiffTerms,
    /// The report.
    pub report: DiffReport,
    /// The verdicts of a predicate on both runs, if they were asked for.
    pub tested: Option<[PredicateTested; 2]>,
    /// The records in the casebook; `None` if nothing was to be recorded.
    pub recorded: Option<Vec<Record>>,
}

impl DiffFound {
    /// The result for two runs that were compared.
    pub fn of(compared: &ComparedRuns, report: DiffReport) -> DiffFound {
        let [a, b] = compared.runs.each_ref().map(|run| run.name().clone());
        let (terms, tested) = (compared.terms.clone(), compared.tested.clone());
        DiffFound { a, b, terms, report, tested, recorded: None }
    }

    /// Writes the result into the casebook, without the pairs.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the store cannot be written.
    pub fn record(&mut self, compared: &ComparedRuns, desk: &mut dyn Desk) -> Result<(), Problem> {
        let runs = compared.places()?;
        let value = self.casebook_value(runs.each_ref().map(|run| run.id));
        let value = clean_value(&desk.store()?, &value)?;
        let [a, b] = &runs;
        let write = |store: &_, environment| casebook::record_diff(store, [a, b], &value, environment);
        self.recorded = Some(desk.write_down(write)?);
        Ok(())
    }

    fn members(&self) -> DiffMembers {
        let DiffTerms { kinds, align, .. } = &self.terms;
        DiffMembers::of([&self.a, &self.b], &self.report, kinds, *align, self.terms.is_part(&self.report))
    }

    /// Returns the answer as it is written into the casebook: without the pairs, with the terms.
    fn casebook_value(&self, tips: [Digest; 2]) -> Value {
        let path = |path: &Pointer| Value::from(path.written());
        let mut members = self.members().to_value().as_object().cloned().unwrap_or_default();
        for (name, value) in [
            ("a_tip", Value::from(tips[0])),
            ("b_tip", Value::from(tips[1])),
            ("ignore", Value::array(self.terms.ignore.iter().map(path))),
            ("path", Value::from(self.terms.path.as_ref().map(path))),
        ] {
            members.set(name, value);
        }
        Value::Object(members)
    }
}

/// A comparison of two runs, one pair after the other.
#[derive(Debug, Clone)]
pub struct DiffAnswer {
    form: DiffForm,
    pairs: Vec<Pair>,
    cells: Vec<Vec<String>>,
    shown: usize,
    total: u64,
    tail: Option<Tail>,
    found: Option<DiffFound>,
}

/// The transitions that one run has after the end of the other.
#[derive(Debug, Clone)]
struct Tail {
    in_b: bool,
    from: u64,
    to: u64,
    count: u64,
    /// How many transitions have each type, in the order of the first.
    types: Vec<(String, u64)>,
}

impl DiffAnswer {
    /// Begins a comparison.
    pub fn new(form: DiffForm) -> DiffAnswer {
        DiffAnswer { form, pairs: Vec::new(), cells: Vec::new(), shown: 0, total: 0, tail: None, found: None }
    }

    /// Ends the comparison.
    pub fn ends(&mut self, found: DiffFound) {
        self.found = Some(found);
    }

    /// Whether an onset of the predicate that was asked for is not known.
    fn is_unjudged(&self) -> bool {
        let tested = self.found.iter().flat_map(|found| &found.tested).flatten();
        tested.into_iter().any(|tested| tested.line.may_hide_onset())
    }

    /// Counts a pair, and returns whether it is listed.
    fn lists(&mut self) -> bool {
        if self.form.stat || self.form.summary {
            return false;
        }
        self.total += 1;
        let lists = self.shown < self.form.limit;
        self.shown += usize::from(lists);
        lists
    }

    /// Counts a transition that one run has after the end of the other; returns whether the pair is one.
    fn take_tail(&mut self, pair: &Pair) -> bool {
        let (record, in_b) = match (&pair.a, &pair.b) {
            (Some(record), None) => (record, false),
            (None, Some(record)) => (record, true),
            _ => return false,
        };
        // A marker that changes the state is no end of a run, and of a step more is known than its tick.
        if is_marker(record)
            || pair.steps.is_some()
            || self.tail.as_ref().is_some_and(|tail| tail.in_b != in_b)
        {
            return false;
        }
        if !pair.kinds.is_empty() {
            let tick = record.header().tick.unwrap_or(0);
            let tail =
                self.tail.get_or_insert(Tail { in_b, from: tick, to: tick, count: 0, types: Vec::new() });
            (tail.to, tail.count) = (tick, tail.count + 1);
            let type_name = row::row(record).type_name;
            match tail.types.iter_mut().find(|(known, _)| *known == type_name) {
                Some((_, number)) => *number += 1,
                None => tail.types.push((type_name, 1)),
            }
        }
        true
    }

    fn list_lines(&mut self, found: &DiffFound, page: &Page) -> Vec<Line> {
        let mut lines = Vec::new();
        if self.form.side_by_side {
            let left = Column::Left;
            let mut table = Table::new([("a", left), ("differs", left), ("b", left)]);
            self.cells.drain(..).for_each(|cells| table.row(cells));
            lines.extend(page.rows(&table));
        }
        let more = |flags: &[String]| {
            let begin = ["dendrer", "diff", found.a.as_str(), found.b.as_str()].map(str::to_owned);
            begin.into_iter().chain(flags.iter().cloned()).chain(["--full".to_owned()]).collect::<Vec<_>>()
        };
        for pair in std::mem::take(&mut self.pairs) {
            lines.push(Line::styled(Style::Strong, title(&pair)));
            let tick = tick_of(pair.a.as_ref()).or(tick_of(pair.b.as_ref())).unwrap_or(0).to_string();
            let only = ["--from", &tick, "--to", &tick].map(str::to_owned);
            // Ticks are those of a: they do not name a step that b alone has.
            let only = if pair.steps.is_some() && pair.a.is_none() { &[][..] } else { &only };
            lines.extend(pair_changes(&pair, Some(&more(only)), 2, page));
        }
        lines.extend(self.tail.iter().flat_map(Tail::lines));
        lines.extend(outcome_lines(&found.report, &more(&["--type".to_owned(), "outcome".to_owned()]), page));
        if !self.form.only_changes && !lines.is_empty() {
            lines.insert(0, "".into());
        }
        lines
    }
}

impl ItemAnswer for DiffAnswer {
    type Item = Pair;

    fn item(&mut self, pair: &Pair) -> Option<Value> {
        self.lists().then(|| PairObject::of(pair).into())
    }

    fn item_lines(&mut self, pair: &Pair, _: &Page) -> Vec<Line> {
        let in_tail = !(self.form.stat || self.form.summary) && self.form.tail_in_one && self.take_tail(pair);
        if in_tail || !self.lists() {
            return Vec::new();
        }
        // The headline comes first, and is known when every pair was compared.
        match self.form.side_by_side {
            true => self.cells.push(side_by_side(pair)),
            false => self.pairs.push(pair.clone()),
        }
        Vec::new()
    }

    fn summary(&self) -> Value {
        let found = self.found.as_ref();
        found.map_or_else(Value::object, |found| DiffDocument::of(self, found).into())
    }

    fn kept_lines(&mut self, _: &Page) -> Vec<Line> {
        Vec::new()
    }

    fn last_lines(&mut self, page: &Page) -> Vec<Line> {
        let Some(found) = self.found.clone() else { return Vec::new() };
        let DiffFound { terms, report, .. } = &found;
        let mut lines = Vec::new();
        if !self.form.only_changes {
            lines.push(Line::styled(Style::Strong, headline(report, terms.is_part(report))));
            match &report.threads {
                Some(threads) => lines.extend(thread_lines(threads, &found, page)),
                None => {
                    if !page.is_usual {
                        lines.push(format!("a {}, b {}{}", found.a, found.b, page.read_from()).into());
                    }
                    lines.extend(shared_lines(report));
                    lines.extend(found_line(report, &terms.kinds));
                }
            }
            lines.extend(constant_lines(report).into_iter().map(Line::from));
        }
        lines.extend(found.tested.iter().flat_map(verdict_lines));
        if self.form.stat {
            lines.extend(page.rows(&type_table(report)));
        }
        if !self.form.stat && !self.form.summary {
            lines.extend(self.list_lines(&found, page));
        }
        if !self.form.only_changes {
            if self.shown as u64 != self.total {
                let (shown, pairs) = (thousands(self.shown as u64), count(self.total, "pair", "pairs"));
                lines.push(format!("{shown} of {pairs} listed (use -n 0 for all)").into());
            }
            lines.extend(unknown_lines(report));
            lines.extend(compared_lines(&found));
            lines.extend(ignored_line(&report.ignored).map(Line::from));
            match &report.threads {
                Some(_) => lines.push(STEPS_LEFT_OUT.into()),
                None => lines.extend(left_out_line(&report.left_out).map(Line::from)),
            }
            lines.extend(shift_words(report).map(|words| Line::note(format!("help: {words}"))));
        }
        let recorded = found.recorded.iter().flat_map(|recorded| recorded_lines(recorded));
        lines.extend(recorded.map(Line::from));
        lines
    }

    fn end(&self) -> End {
        match self.found.as_ref().map(|found| &found.report) {
            Some(report) if report.hidden > 0 || report.is_partial() || self.is_unjudged() => End::Unknown,
            Some(report) if self.form.fails && report.differs() => End::No,
            _ => End::Answered,
        }
    }
}

/// Names the unknown places of each state.
fn unknown_lines(report: &DiffReport) -> Vec<Line> {
    let sides = [("a", &report.unknown[0]), ("b", &report.unknown[1])].into_iter();
    let words = sides.filter_map(|(side, places)| Some((side, certainty::unknown_words(places)?)));
    let missing = ["a", "b"].into_iter().zip(&report.missing);
    let missing = missing.filter_map(|(side, found)| Some((side, quote::escape(&found.as_ref()?.words()))));
    let line = |(side, words)| Line::styled(Style::Warn, format!("UNKNOWN in {side}: {words}"));
    words.chain(missing).map(line).collect()
}

/// Writes the verdicts of a predicate on both runs.
fn verdict_lines(tested: &[PredicateTested; 2]) -> Vec<Line> {
    let [a, b] = tested;
    let mut lines = vec![Line::from(format!(
        "predicate {}   {}   digest {}",
        quote::escape(&a.question.name()),
        quote::escape(&a.question.words()),
        a.question.digest().short()
    ))];
    if a.question.digest() != b.question.digest() {
        let digest = b.question.digest().short();
        lines.push(Line::note(format!("note: b has another predicate of this name, digest {digest}")));
    }
    for (side, tested) in [("a", a), ("b", b)] {
        let stretch = |one: &Interval| match one.from == one.to {
            true => format!("{} {}", one.from, word(&one.verdict)),
            false => format!("{}..{} {}", one.from, one.to, word(&one.verdict)),
        };
        let stretches: Vec<String> = tested.line.intervals().iter().map(stretch).collect();
        let stretches = crate::verdict::list(&stretches, 8).unwrap_or_default();
        lines.push(format!("          {side} {stretches}   {}", sum_up(&tested.line)).into());
        let reasons = reasons_words(&tested.line.reasons()).into_iter();
        lines.extend(reasons.map(|words| Line::from(format!("            {}", quote::escape(&words)))));
    }
    lines
}

impl Tail {
    fn lines(&self) -> [Line; 2] {
        let span = match self.count {
            1 => self.from.to_string(),
            _ => format!("{}..{}", self.from, self.to),
        };
        let (side, ticks) = match self.in_b {
            true => ("b", format!("-|{span}")),
            false => ("a", format!("{span}|-")),
        };
        let transitions = count(self.count, "transition", "transitions");
        let kind = DiffKind::Structural.as_str();
        let head = Line::styled(Style::Strong, format!("{ticks}  {kind}  only in {side}: {transitions}"));
        let types = self.types.iter().map(|(name, number)| match number {
            1 => name.clone(),
            number => format!("{name} {}", thousands(*number)),
        });
        [head, format!("  {}", types.collect::<Vec<_>>().join(", ")).into()]
    }
}
