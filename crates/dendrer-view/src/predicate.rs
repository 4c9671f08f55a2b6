//! Registered predicates as words and as documents.

use dendrer::Error;
use dendrer::ask::predicates::question::{PredicateShowReply, PredicateTestReply};
use dendrer::ask::predicates::{PredicateTested, PredicatesAnswer};
use dendrer::bisect::BisectSubject;
use dendrer::kernel::predicate::{BUILT_IN, Monotone, Predicate, Verdict, Window};
use dendrer::registry::{MonotoneEvidence, Registered, Sample};
use dendrer::timeline::Timeline;
use dendrer_object::document::As;
use dendrer_object::record::Record;
use dendrer_object::{Digest, RunName, Timestamp, Value, document};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::bisect::{
    ObligationObject, candidate_ticks, from_text_line, interval_lines, of_texts, question_lines, run_line,
    standing_words,
};
use crate::certainty::{ReasonObject, reasons};
use crate::table::{Align, Table};
use crate::verdict::{
    AskedObject, Stretch, TickVerdict, VerdictWord, stretches, sum_up, uncertain, word, words,
};
use crate::{count, quote, row, thousands};

pub use crate::registration::{declared_words, known_words, other_line, registration_line};

/// How many turns of a sample are printed; documents have all.
const TURNS_SHOWN: usize = 40;

document! {
    /// A predicate that a name resolves to
    pub object PredicateObject(predicate: &Predicate, evidence: &str, samples: &[Sample], entry: Option<&Registered>) {
        /// The name
        name: &str = predicate.name(),
        /// The version
        version: &str = predicate.version(),
        /// The predicate in words
        words: String = predicate.words(),
        /// The digest of the predicate
        digest: Digest = predicate.digest(),
        /// The state of a transition that the predicate looks at
        window: ["after" | "before"] = match predicate.window() {
            Window::After => "after",
            Window::Before => "before",
        },
        /// The evidence that the predicate stays violated once it is
        known: ["by construction" | "lifted" | "tested" | "recovers" | "not tested"] = evidence,
        /// The runs that the evidence is from
        on: Vec<SampleObject> = samples.iter().map(SampleObject::of).collect(),
        /// The id of the registration; null for a predicate of a pack, or one that every store has
        record: Option<Digest> = entry.map(|entry| entry.id),
        /// The time of the registration
        ts: Option<Timestamp> = entry.map(|entry| entry.ts),
        /// The id of the record that retired the name
        retired: Option<Digest> = entry.and_then(|entry| entry.retired),
    }

    /// A run that a predicate was judged on
    object SampleObject(sample: &Sample) {
        /// The run
        run: &RunName = &sample.run,
        /// The number of ticks
        ticks: u64 = sample.ticks,
        /// The id of the last record
        tip: Digest = sample.tip,
        /// The ticks at which the verdict changed
        turns: As<Vec<(u64, VerdictWord<'_>)>> = As::new(sample.to_value().get("turns").cloned()),
    }

    /// Registered predicates
    pub object PredicatesDocument: "predicates" (listed: Vec<PredicateObject>, closed: &[Digest]) {
        /// The predicates
        items: Vec<PredicateObject> = listed,
        /// The ids of registrations that cannot be read any more
        unreadable: &[Digest] = closed,
    }

    /// A registered predicate
    pub object RegistrationDocument: "predicate" (entry: &Registered, is_new: bool) {
        ..PredicateObject = registered(entry),
        /// Whether a record was added
        changed: bool = is_new,
    }

    /// The verdicts of a predicate on a run
    pub object PredicateTestDocument: "predicate-test" reads (tested: &PredicateTested, rows: Option<&[TickRow]>) {
        let line = &tested.line;
        let intervals = line.intervals();
        let judged = !intervals.iter().any(|interval| uncertain(&interval.verdict).is_some());
        /// The run
        run: &RunName = &tested.run,
        /// The question
        predicate: AskedObject = AskedObject::of(&tested.question),
        /// The first tick
        from: u64 = line.from,
        /// The last tick
        to: u64 = line.to,
        /// The verdict at the tick that was asked about
        at: Option<TickVerdict> = tested.at.map(|tick| TickVerdict::of(tick, line.at(tick))),
        /// The first tick that is violated; null if it is missing, or an earlier one may be
        onset: Option<u64> = line.onset().filter(|_| !line.may_hide_onset()),
        /// Whether a tick after the first violation is not violated
        recovers: bool = intervals
            .iter()
            .skip_while(|interval| interval.verdict != Verdict::Violation)
            .any(|interval| interval.verdict == Verdict::Ok),
        /// The stretches of ticks with one verdict each, as first tick, last tick and verdict
        intervals: Vec<Stretch<'_>> = stretches(&intervals),
        /// The ticks that cannot be judged
        uncertain: Vec<ReasonObject> = reasons(&line.reasons()),
        /// The number of ticks at which a place was written that the predicate reads
        candidates: u64 = line.judged,
        /// The certainty of the answer
        certainty: ["exact" | "heuristic" | "unavailable"] = of_texts(tested.from_text).unless(!judged).as_str(),
        /// The number of results whose status was read from prose
        status_from_text: u64 = tested.from_text,
        /// The standing of an obligation at the last tick that was asked about; null for any other predicate
        obligation: Option<ObligationObject> =
            line.standing.as_ref().map(|standing| ObligationObject::of(standing, tested.ended)),
        /// A row for every tick, with --ticks
        items?: Vec<RowObject> = rows.map(|rows| rows.iter().map(RowObject::of).collect()),
        /// The digest of another predicate of this name in the pack of the run
        other_in_pack?: Digest = tested.other_in_pack,
    }

    /// A row of the table of the dendrer paper, 4.8
    object RowObject(row: &TickRow) {
        /// The tick
        tick: u64 = row.tick,
        /// The type of the transition
        transition_type: &str = &row.type_name,
        /// The verdict
        predicate: VerdictWord<'_> = VerdictWord(&row.verdict),
        /// The record in one line
        notes: &str = &row.notes,
        /// The reason why the tick cannot be judged
        why?: &str = uncertain(&row.verdict),
    }
}

/// Returns a registration as an item of `dendrer.predicates/1`.
fn registered(entry: &Registered) -> PredicateObject {
    PredicateObject::of(&entry.predicate, entry.known.as_str(), entry.known.samples(), Some(entry))
}

/// As [`registered`], for a predicate that a pack declares or that every store has.
fn declared(predicate: &Predicate) -> PredicateObject {
    PredicateObject::of(predicate, declared_words(predicate.monotone()), &[], None)
}

impl Answer for PredicatesAnswer {
    fn document(&self) -> Value {
        let listed = self.registered.iter().map(registered).chain(self.declared.iter().map(declared));
        PredicatesDocument::of(listed.collect(), &self.unreadable).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let left = Align::Left;
        let columns = ["name", "version", "digest", "monotone", "predicate"];
        let mut table = Table::new(columns.map(|name| (name, left)));
        for entry in &self.registered {
            let retired = if entry.retired.is_some() { "   (retired)" } else { "" };
            table.row(vec![
                quote::escape(entry.predicate.name()),
                quote::escape(entry.predicate.version()),
                entry.predicate.digest().short(),
                known_words(&entry.known, entry.predicate.monotone()),
                format!("{}{retired}", quote::escape(&entry.predicate.words())),
            ]);
        }
        for predicate in &self.declared {
            table.row(vec![
                quote::escape(predicate.name()),
                quote::escape(predicate.version()),
                predicate.digest().short(),
                declared_words(predicate.monotone()).to_owned(),
                quote::escape(&predicate.words()),
            ]);
        }
        let mut lines = Vec::new();
        if !self.registered.is_empty() || !self.declared.is_empty() {
            lines.extend(table.whole());
        }
        let (one, many) = if self.all { ("registration", "registrations") } else { ("name", "names") };
        let names = count(self.registered.len() as u64, one, many);
        let by_pack = match self.declared.len() as u64 {
            0 => String::new(),
            n => format!(", {} by the pack", thousands(n)),
        };
        lines.push(format!("{names}{by_pack}, and built in: {}", BUILT_IN.join(", ")));
        if !self.unreadable.is_empty() {
            let n = count(self.unreadable.len() as u64, "registration", "registrations");
            lines.push(format!("{n} cannot be read any more"));
        }
        lines.into_iter().map(Line::from).collect()
    }
}

impl Answer for PredicateShowReply {
    fn document(&self) -> Value {
        match self {
            PredicateShowReply::Named(answer) => answer.document(),
            PredicateShowReply::BuiltIn(built_in) => {
                PredicatesDocument::of(vec![declared(built_in)], &[]).into()
            }
        }
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let built_in = match self {
            PredicateShowReply::Named(answer) => return answer.lines(page),
            PredicateShowReply::BuiltIn(built_in) => built_in.clone(),
        };
        let head = question_lines(&BisectSubject::Predicate(built_in), "by construction");
        let last = "built in: it is in every store, and no record says so".to_owned();
        head.into_iter().chain([last]).map(Line::from).collect()
    }
}

/// A row of the table of the dendrer paper, 4.8: `tick | transition_type | predicate | notes`.
#[derive(Debug, Clone)]
pub struct TickRow {
    tick: u64,
    type_name: String,
    verdict: Verdict,
    notes: String,
}

impl TickRow {
    /// Reads the row of each tick that was judged; `None` if none is to be listed.
    ///
    /// # Errors
    ///
    /// An error if a record cannot be read.
    pub fn listed(reply: &PredicateTestReply) -> Result<Option<Vec<TickRow>>, Error> {
        let line = &reply.tested.line;
        let row = |tick| Ok(TickRow::of(tick, &reply.trace.record(tick)?, line.at(tick)));
        reply.ticks.then(|| (line.from..=line.to).map(row).collect()).transpose()
    }

    /// Reads a row off a record.
    pub fn of(tick: u64, record: &Record, verdict: &Verdict) -> TickRow {
        let row = row::row(record);
        let notes = match verdict {
            // The reason comes first, because long rows are cut.
            Verdict::Uncertain(why) => {
                format!("{}   {}", quote::escape(why), row.summary).trim_end().to_owned()
            }
            _ => row.summary,
        };
        TickRow { tick, type_name: row.type_name, verdict: verdict.clone(), notes }
    }
}

/// The verdicts of a predicate on a run, with a row for each tick if they were asked for.
#[derive(Debug, Clone, Copy)]
pub struct PredicateTestAnswer<'a> {
    /// The verdicts.
    pub tested: &'a PredicateTested,
    /// The rows.
    pub rows: Option<&'a [TickRow]>,
}

impl Answer for PredicateTestAnswer<'_> {
    fn document(&self) -> Value {
        PredicateTestDocument::of(self.tested, self.rows).into()
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let PredicateTested { question, line, at, ended, .. } = self.tested;
        let monotone = match question.monotone() {
            Monotone::ByConstruction => "by construction",
            Monotone::Lifted => "lifted; shown as it is",
            Monotone::Unknown => "seen below",
        };
        let mut head = question_lines(question, monotone);
        let registered = self.tested.registered.as_ref();
        head.extend(registered.map(|entry| format!("           {}", registration_line(entry))));
        head.extend(self.tested.other_in_pack.map(other_line));
        let mut lines = vec![run_line(&self.tested.run, (line.from, line.to), page)];
        lines.extend(head.into_iter().map(Line::from));
        match self.rows {
            Some(rows) => lines.extend(page.rows(&tick_table(rows))),
            None => {
                let intervals = interval_lines(line).into_iter().zip(line.reasons());
                lines.extend(intervals.map(|(text, at)| Line::styled(style(&at.verdict), text)));
            }
        }
        if at.is_none() {
            let judged = candidate_ticks(line.judged + 1);
            let ticks = count(line.to - line.from + 1, "tick", "ticks");
            lines.push(format!("{}   ({judged} of {ticks} judged)", sum_up(line)).into());
        }
        let missing =
            self.tested.missing.map(|found| format!("UNKNOWN    {}", quote::escape(&found.words())));
        lines.extend(missing.map(|words| Line::styled(Style::Warn, words)));
        lines.extend(from_text_line(self.tested.from_text).map(Line::from));
        if let Some(standing) = &line.standing {
            lines.push(format!("at tick {}  {}", line.to, standing_words(standing, *ended)).into());
        }
        let near =
            self.tested.near.as_ref().map(|near| format!("note: did you mean {}?", quote::escape(near)));
        lines.extend(near.map(Line::note));
        lines
    }

    fn end(&self) -> End {
        let line = &self.tested.line;
        match self.tested.at.map(|at| line.at(at)) {
            None if line.may_hide_onset() => End::Unknown,
            None | Some(Verdict::Ok) if self.tested.missing.is_some() => End::Unknown,
            None | Some(Verdict::Ok) => End::Answered,
            Some(Verdict::Violation) => End::No,
            Some(Verdict::Uncertain(_)) => End::Unknown,
        }
    }
}

fn style(verdict: &Verdict) -> Style {
    if *verdict == Verdict::Ok { Style::Good } else { Style::Bad }
}

fn tick_table(rows: &[TickRow]) -> Table {
    let left = Align::Left;
    let columns = [("tick", Align::Right), ("transition_type", left), ("predicate", left), ("notes", left)];
    let mut table = Table::new(columns);
    for TickRow { tick, type_name, verdict, notes } in rows {
        let verdict = format!("{:<9}  {}", word(verdict), words(verdict).1);
        table.row(vec![tick.to_string(), quote::escape(type_name), verdict, notes.clone()]);
    }
    table
}

/// Writes what a predicate says of a run that it is verified on.
pub fn sample_lines(predicate: &Predicate, sample: &Sample, line: &Timeline) -> Vec<Line> {
    let mut lines = vec![Line::from(format!(
        "testing {} on {} ({}, {})",
        quote::escape(predicate.name()),
        sample.run,
        count(sample.ticks, "tick", "ticks"),
        candidate_ticks(line.judged + 1)
    ))];
    let mut violated = false;
    for (tick, verdict) in sample.turns.iter().take(TURNS_SHOWN) {
        let (_, mark) = words(verdict);
        let recovered = violated && *verdict == Verdict::Ok;
        violated |= *verdict == Verdict::Violation;
        let note = match verdict {
            _ if recovered => "     <- recovered: binary search could return a wrong tick".to_owned(),
            Verdict::Uncertain(why) => format!("   {}", quote::escape(why)),
            _ => String::new(),
        };
        let text = format!("  tick {tick}  {:<9}  {mark}{note}", word(verdict));
        lines.push(Line::styled(style(verdict), text));
    }
    let more = sample.turns.len().saturating_sub(TURNS_SHOWN);
    if more > 0 {
        lines.push(format!("  ({} more turns)", thousands(more as u64)).into());
    }
    match sample.turns.len() {
        0 => lines.push(format!("  {}: whether it recovers was not tested there", sum_up(line)).into()),
        1 => lines.push("  does not recover".into()),
        _ => {}
    }
    lines
}

/// A predicate that was registered, or was already.
#[derive(Debug, Clone)]
pub struct RegistrationAnswer {
    /// The registration.
    pub entry: Registered,
    /// Whether a record was added.
    pub changed: bool,
    /// Whether it was asked that the predicate cannot recover.
    pub is_verified: bool,
}

impl RegistrationAnswer {
    /// Whether it was asked that the predicate cannot recover, and it does.
    pub fn is_rejected(&self) -> bool {
        self.is_verified && matches!(self.entry.known, MonotoneEvidence::Recovers(_))
    }
}

impl Answer for RegistrationAnswer {
    fn document(&self) -> Value {
        RegistrationDocument::of(&self.entry, self.changed).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let Registered { predicate, known, id, .. } = &self.entry;
        if self.is_rejected() {
            let note = format!("   (kept for monitoring and diff)   record {}", id.short());
            return vec![Line::styled(Style::Bad, "REJECTED for bisect").then(note)];
        }
        let word = if self.changed { "registered" } else { "was registered already:" };
        let name = format!(" {} {}", quote::escape(predicate.name()), quote::escape(predicate.version()));
        let monotone = known_words(known, predicate.monotone());
        vec![
            Line::styled(Style::Good, word).then(name),
            format!("  {}", quote::escape(&predicate.words())).into(),
            format!("  pure: by construction   monotone: {monotone}").into(),
            format!("  digest {}   record {}", predicate.digest().short(), id.short()).into(),
        ]
    }

    fn end(&self) -> End {
        if self.is_rejected() { End::No } else { End::Answered }
    }
}

/// A predicate whose name was retired, or was already.
#[derive(Debug, Clone)]
pub struct RetirementAnswer {
    /// The registration.
    pub entry: Registered,
    /// Whether a record was added.
    pub changed: bool,
}

impl Answer for RetirementAnswer {
    fn document(&self) -> Value {
        RegistrationDocument::of(&self.entry, self.changed).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let word = if self.changed { "retired" } else { "was retired already:" };
        let name = quote::escape(self.entry.predicate.name());
        vec![format!("{word} {name}   what was registered stays on record").into()]
    }
}
