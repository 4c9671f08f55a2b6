//! The ticks of a run in a page: which are shown, what was said at each, and what each wrote.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use dendrer::ask::log::question::OpenedLog;
use dendrer::ask::log::{LogDetails, LogFilter, LogTerms, LoggedRecord, log};
use dendrer::ask::show::{PlaceChange, ShownWrites};
use dendrer::ask::transcript::{TranscriptItem, TranscriptKind, items};
use dendrer::closed::closed;
use dendrer::problem::Problem;
use dendrer_object::Value;
use dendrer_object::record::Record;

use super::words::{Html, escaped, form, has_form, said, value};
use crate::certainty::left_unknown;
use crate::change::{ShownChange, place_text};
use crate::draw::svg::markup;
use crate::transcript::{call_words, several_calls, speaker};
use crate::{count, quote, thousands};

/// How many ticks are shown without a gap.
const ALL: u64 = 2_000;
/// How many ticks are shown at each end of a longer run.
const AT_END: u64 = 200;
/// How many ticks are shown on each side of a mark.
const AROUND: u64 = 25;

/// Returns the ranges of ticks that are shown, in order.
pub(super) fn shown_ranges((from, to): (u64, u64), marks: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
    if to - from < ALL {
        return vec![(from, to)];
    }
    let mut wanted = vec![(from, from + (AT_END - 1)), (to - (AT_END - 1), to)];
    let marks = marks.filter(|tick| (from..=to).contains(tick));
    wanted.extend(
        marks.map(|tick| (tick.saturating_sub(AROUND).max(from), tick.saturating_add(AROUND).min(to))),
    );
    wanted.sort_unstable();
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for (from, to) in wanted {
        match ranges.last_mut() {
            Some((_, last)) if from <= *last + 1 => *last = (*last).max(to),
            _ => ranges.push((from, to)),
        }
    }
    ranges
}

/// The transcript and the changes of a run, as two lists.
#[derive(Debug, Default)]
pub(super) struct Ticks {
    /// The items of the transcript.
    pub(super) said: Html,
    /// The changes of each tick that wrote any.
    pub(super) wrote: Html,
    /// How many ticks are shown that wrote nothing.
    pub(super) idle: u64,
    /// The ticks that have several calls.
    several: BTreeSet<u64>,
    /// The beginning of each id: `t` for the first run of a page.
    prefix: String,
}

impl Ticks {
    /// Reads the ticks of a run that are shown. `number` is the place of the run in the page, from 0.
    pub(super) fn of(
        opened: &OpenedLog,
        (from, to): (u64, u64),
        ranges: &[(u64, u64)],
        number: usize,
    ) -> Result<Ticks, Problem> {
        let trace = &opened.trace;
        let prefix = if number == 0 { String::new() } else { format!("r{}", number + 1) };
        let mut ticks = Ticks { prefix, ..Ticks::default() };
        let mut next = from;
        for (first, last) in ranges {
            ticks.gap(next, *first);
            let terms = LogTerms {
                from: *first,
                to: *last,
                reverse: false,
                limit: u64::MAX,
                newest: false,
                refusals: true,
                filter: LogFilter::default(),
                details: LogDetails { whole: false, writes: true, links: true },
                lanes: None,
                folds: false,
            };
            let mut tick = first.saturating_sub(1);
            log::<Problem>(trace, terms, &mut |record| {
                // A refusal is of the tick that it was judged against.
                let is_refusal = record.record.header().tick.is_none();
                tick = record.record.header().tick.unwrap_or(tick);
                ticks.add(&record, tick, is_refusal);
                Ok(())
            })?;
            next = last + 1;
        }
        ticks.gap(next, to + 1);
        Ok(ticks)
    }

    /// Names the ticks between two that are shown.
    fn gap(&mut self, from: u64, end: u64) {
        if from >= end {
            return;
        }
        let words = format!(
            "ticks {} to {} are not shown: {}",
            thousands(from),
            thousands(end - 1),
            count(end - from, "transition", "transitions")
        );
        for list in [&mut self.said, &mut self.wrote] {
            list.element("li", "gap", &words);
        }
    }

    /// Adds a record to both lists.
    fn add(&mut self, logged: &LoggedRecord, tick: u64, is_refusal: bool) {
        let all = items(logged, tick);
        self.several.extend(several_calls(&all));
        let time = time_of(&logged.record);
        for (at, item) in all.iter().enumerate() {
            // The first item of a tick is where its number leads.
            let id = (at == 0 && !is_refusal).then(|| format!(" id=\"{}t{tick}\"", self.prefix));
            let link = (!is_refusal).then(|| format!("{}c{tick}", self.prefix));
            let notes = if at == 0 { record_notes(&logged.record) } else { Vec::new() };
            let place = (id.as_deref().unwrap_or_default(), link.as_deref());
            let time = Some(&*time).filter(|_| at == 0);
            self.said.raw(&item_html(item, place, (call_words(item, &self.several), time), &notes));
        }
        if !is_refusal {
            self.changes(logged, tick);
        }
    }

    /// Adds what a tick wrote.
    fn changes(&mut self, logged: &LoggedRecord, tick: u64) {
        let writes = match &logged.writes {
            Some(ShownWrites::Known(changes)) if changes.is_empty() => {
                self.idle += 1;
                return;
            }
            Some(ShownWrites::Known(changes)) => changes.iter().map(change_html).collect(),
            Some(ShownWrites::Unknown { tick, .. }) => {
                form(&format!("not known: a value of tick {} was erased or withheld", thousands(*tick)))
            }
            None => return,
        };
        let type_name =
            logged.record.header().type_name.as_ref().map(|name| name.as_str()).unwrap_or_default();
        let prefix = &self.prefix;
        let mut item = String::new();
        let _ = writeln!(
            item,
            "<li id=\"{prefix}c{tick}\"><a href=\"#{prefix}t{tick}\">tick {}</a> {}{writes}</li>",
            thousands(tick),
            markup(&quote::escape(type_name))
        );
        self.wrote.raw(&item);
    }
}

/// Names unknown values of a record, and those that were taken out of it.
fn record_notes(record: &Record) -> Vec<String> {
    let mut notes: Vec<String> = closed(record)
        .iter()
        .map(|pointer| format!("erased or withheld: {}", quote::path(pointer)))
        .collect();
    notes.extend(left_unknown(record));
    let content = record.content();
    let taken = content.get("redaction").and_then(|redaction| redaction.get("taken"));
    if let Some(Value::Object(taken)) =
        taken.filter(|taken| taken.as_object().is_some_and(|taken| !taken.is_empty()))
    {
        let each =
            taken.iter().map(|(kind, number)| format!("{} {}", quote::value(number), quote::escape(kind)));
        notes.push(format!("taken out: {}", each.collect::<Vec<_>>().join(", ")));
    }
    notes
}

/// Writes words that are not of the trace.
fn form_of(words: &str) -> String {
    format!("<span class=\"dim\">{}</span>", markup(words))
}

/// Returns the time of a record: the one that its source states, or the one of its commit, in UTC.
fn time_of(record: &Record) -> String {
    let observed = record.body().value("/observed_at");
    let observed = observed.as_ref().and_then(Value::as_str).map(|text| quote::escape(text));
    observed.unwrap_or_else(|| record.header().ts.to_string())
}

/// Writes an item of the transcript: with its place in the page, the link to its changes, its call and its time.
fn item_html(
    item: &TranscriptItem,
    (id, link): (&str, Option<&str>),
    (call, time): (Option<String>, Option<&str>),
    notes: &[String],
) -> String {
    let is_bad = matches!(item.kind, TranscriptKind::Refusal | TranscriptKind::Gap)
        || matches!(item.status.as_deref(), Some("deny" | "error" | "interrupted"));
    let class = if is_bad { " class=\"bad\"" } else { "" };
    let tick = thousands(item.tick);
    let number = match link {
        Some(link) if item.changes > 0 => format!("<a href=\"#{link}\">{tick}</a>"),
        _ => tick,
    };
    let word = |text: &str| markup(&quote::escape(text));
    let mut words = vec![
        format!("<b>{number}</b>"),
        "&#8227; ".repeat(usize::try_from(item.depth.min(9)).unwrap_or(0))
            + &format!("<i>{}</i>", markup(&speaker(item))),
        format!("<span class=\"dim\">{}</span>", item.kind.as_str()),
    ];
    words.extend(item.step.map(|step| format!("step {step}")));
    words.extend(item.status.as_deref().map(|status| format!("<b>{}</b>", word(status))));
    words.extend(
        item.name
            .as_deref()
            .filter(|_| item.kind != TranscriptKind::Message)
            .map(quote::name)
            .map(|name| markup(&name)),
    );
    words.extend(item.params.as_ref().filter(|params| **params != Value::Null).map(value));
    words.extend(match (&item.json, &item.text, &item.output) {
        (Some(json), ..) => Some(value(json)),
        (None, Some(text), _) => Some(said(text)),
        (None, None, Some(output)) if *output != Value::Null => Some(value(output)),
        _ => None,
    });
    words.extend(call.map(|words| form_of(&words)));
    words.extend(time.map(form_of));
    words.extend(
        (item.anomalies > 0)
            .then(|| format!("<b class=\"bad\">! {}</b>", count(item.anomalies, "anomaly", "anomalies"))),
    );
    words.extend(notes.iter().map(|note| form(note)));
    format!("<li{id}{class}>{}</li>\n", words.join(" "))
}

/// Writes a change of one place.
fn change_html(change: &PlaceChange) -> String {
    let shown = ShownChange::of_write(change, Vec::new());
    let class = match shown.sign {
        '+' => "added",
        '-' => "removed",
        '~' => "warn",
        _ => "dim",
    };
    let has_form = [&change.before, &change.after].into_iter().flatten().any(has_form);
    let side = |words: Option<&String>, exact: Option<&Value>| match (words, exact) {
        (Some(_), Some(exact)) if has_form => Some(value(exact)),
        (words, _) => words.map(|words| escaped(words)),
    };
    // With a form in it a list is shown whole: the item that it gained may be the form.
    let place = if has_form { place_text(&change.path) } else { shown.place.clone() };
    let before = side(shown.before.as_ref(), change.before.as_ref());
    let after = side(shown.after.as_ref(), change.after.as_ref());
    let sides: Vec<String> = before.into_iter().chain(after).collect();
    format!(
        "<div class=\"{class}\">{} {}  {}  {}</div>",
        shown.sign,
        markup(&place),
        sides.join(" -&gt; "),
        markup(&shown.note)
    )
}
