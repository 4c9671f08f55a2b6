//! The facts of a verification: one line each, and the member `lines` of the document.
//!
//! Rule: a line is printed for each fact, also if it is not known; test `one_line_for_each_fact`.

use dendrer::kernel::replay::ReplayError;
use dendrer::verify::facts::{
    ComparedLog, ComparedWord, Derived, IncompleteRun, MissingRecords, NoteCode, PartialReason, VerifyNote,
    WholeFact, Witness, WitnessKind,
};
use dendrer::verify::judge::VerifiedLog;
use dendrer::verify::{RunReport, VerifyFinding, VerifyReport, VerifyVerdict};
use dendrer_object::record::Kind;
use dendrer_object::{RunName, Timestamp, document};

use crate::answer::{Line, Style};
use crate::certainty::{Places, unknown_words};
use crate::key::{KeySpanObject, spans};
use crate::{count, quote, verdict};

/// The column at which the words of a line begin, and that of the detail.
const COLUMNS: [usize; 2] = [10, 23];

/// The most runs that a line names.
const NAMES_MAX: usize = 3;

/// The checks that `--quick` leaves out.
const STATES: [&str; 2] = ["deltas against roots", "authors"];

document! {
    /// The facts of a verification, one for each line
    pub object VerifyLines(report: &VerifyReport) {
        /// Whether every byte is as it was sealed
        record: RecordLine = RecordLine::of(report),
        /// Whether every record is here
        whole: WholeLine = WholeLine::of(report),
        /// Whether every transition was made again
        replay: ReplayLine = ReplayLine::of(&replay(report)),
        /// Whether every place of the last state is known
        state: StateLine = StateLine::of(&state(report)),
        /// The keys that signed the log
        signer: SignerLine = SignerLine::of(report),
        /// The witnesses that agree
        witness: WitnessLine = WitnessLine::of(report),
        /// Data that follows from the log
        derived: DerivedLine = DerivedLine::of(report),
        /// The comparison with another log of the same key; absent without one
        compared?: ComparedLine = report.compared.as_ref().map(ComparedLine::of),
        /// Remarks that are no faults
        notes: Vec<NoteLine> = report.notes.iter().map(NoteLine::of).collect(),
    }

    /// Whether every byte is as it was sealed
    object RecordLine(report: &VerifyReport) {
        /// The result
        word: ["INTACT" | "INTACT so far" | "TAMPERED" | "MALFORMED" | "UNVERIFIABLE"] = record_word(report),
        /// The number of records of the runs that were opened
        records: u64 = report.asked_records,
        /// The checks that were left out
        left_out: Vec<String> = STATES.iter().filter(|_| report.is_quick).map(ToString::to_string).collect(),
        /// The places that do not hold
        faults: Vec<FaultObject> = report.findings.iter().map(FaultObject::of).collect(),
    }

    /// A place that does not hold
    object FaultObject(finding: &VerifyFinding) {
        /// The code
        code: dendrer_object::Code = finding.code,
        /// The run; null if it concerns none
        run: Option<&RunName> = finding.run.as_ref(),
        /// The tick; null if it concerns none
        tick: Option<u64> = finding.tick,
        /// The position in the log; null if it is not known
        position: Option<u64> = finding.position,
    }

    /// Whether every record is here
    object WholeLine(report: &VerifyReport) {
        /// The result
        word: ["COMPLETE" | "partial"] = whole_word(report),
        /// The size of the signed log; null if nothing is signed
        checkpoint: Option<u64> = report.whole.checkpoint,
        /// The time of the map that counts the records; null if every entry was read, or there is no map
        map_ts: Option<Timestamp> = report.whole.map_ts,
        /// The runs of which records may be missing
        partial: Vec<PartialRun> = report.whole.partial.iter().map(PartialRun::of).collect(),
        /// The records of no run that are missing; absent if none is
        apart?: Vec<MissingApart> = (!report.whole.apart.is_empty()).then(|| report.whole.apart.iter().map(|(kind, count)| MissingApart::of(*kind, *count)).collect()),
    }

    /// Records of no run that are missing
    object MissingApart(missing: Kind, number: u64) {
        /// Their kind
        kind: ["erase" | "key" | "register"] = missing.as_str(),
        /// Their number
        count: u64 = number,
    }

    /// A run of which records may be missing
    object PartialRun(found: &IncompleteRun) {
        /// The run
        run: &RunName = &found.run,
        /// The reason
        why: PartialReason = found.why,
        /// The number of transitions that are missing; null if it is not known
        transitions: Option<u64> = found.missing.map(|missing| missing.transitions),
        /// The number of refusals that are missing; null if it is not known
        refusals: Option<u64> = found.missing.map(|missing| missing.refusals),
        /// The number of ends that are missing; null if it is not known
        ends: Option<u64> = found.missing.map(|missing| missing.ends),
        /// The number of erasures that are missing; null if it is not known
        erasures: Option<u64> = found.missing.map(|missing| missing.erasures),
    }

    /// Whether every transition was made again
    object ReplayLine(found: &Replayed) {
        /// The result
        word: ["OK" | "NOT RUN" | "DIVERGED" | "UNVERIFIABLE"] = found.word,
        /// The tick at which it ended; null if it did not, or has none
        at: Option<u64> = found.at,
        /// The missing part, in words; null if replay was not stopped by one
        missing: Option<String> = found.missing.clone(),
    }

    /// Whether every place of the last state is known
    object StateLine(found: &Known) {
        /// The result
        word: ["KNOWN" | "INCOMPLETE"] = found.word,
        /// The first tick from which on a place is unknown; null if every place is known, or the tick is not
        from: Option<u64> = found.from,
        /// The cause in words; null if every place is known
        cause: Option<String> = found.cause.clone(),
    }

    /// The keys that signed the log
    object SignerLine(report: &VerifyReport) {
        /// The keys, with the sizes that each signed
        keys: Vec<KeySpanObject> = spans(report.keys.as_ref(), report.signed),
        /// Whether this machine, or a key that was given, knows the newest of them
        known: bool = report.is_key_known,
    }

    /// The witnesses that agree
    object WitnessLine(report: &VerifyReport) {
        /// The result
        word: ["WITNESSED" | "UNWITNESSED"] = witness_word(report),
        /// The witnesses
        by: Vec<WitnessObject> = report.witnesses.iter().map(WitnessObject::of).collect(),
    }

    /// Something that agrees
    object WitnessObject(witness: &Witness) {
        /// The kind
        kind: WitnessKind = witness.kind,
        /// The run, of a tip
        run?: &RunName = witness.run.as_ref(),
        /// The tick of a tip, or the size of the log
        to: u64 = witness.to,
        /// The number of ticks or records that follow
        after: u64 = witness.after,
        /// Of a tip: the number of refusals and erasures of the run that it does not cover; absent if it covers all
        uncovered?: u64 = (witness.uncovered > 0).then_some(witness.uncovered),
    }

    /// Data that follows from the log
    object DerivedLine(report: &VerifyReport) {
        /// The result
        word: ["OK" | "damaged" | "none"] = derived_word(report),
        /// The data
        what: Option<&str> = (report.derived != Derived::None).then_some("index"),
    }

    /// The comparison with another log of the same key
    object ComparedLine(compared: &ComparedLog) {
        /// The other log, as it was named
        with: &str = &compared.with,
        /// The result
        word: ComparedWord = compared.word,
        /// The size up to which it holds; null if they were not compared
        at: Option<u64> = compared.at,
        /// In words, that the log ends before the other one, or was rewritten; absent if it is not known to
        older?: &str = compared.older.as_deref(),
    }

    /// A remark
    object NoteLine(note: &VerifyNote) {
        /// Its kind
        code: NoteCode = note.code,
        /// The position in the log; null if the remark is on no record
        position: Option<u64> = note.position,
        /// The run; null if it concerns none
        run: Option<&RunName> = note.run.as_ref(),
        /// The time of a record that is dated back
        ts?: Timestamp = note.times.map(|(ts, _)| ts),
        /// The later time of an earlier record
        after?: Timestamp = note.times.map(|(_, after)| after),
        /// The number of records of a group without a tag, or of those that were adopted
        records?: u64 = note.records,
        /// The place of a value that stays in a bundle, as its header has it, or that was to be erased
        place?: &str = note.place.as_deref(),
    }
}

fn record_word(report: &VerifyReport) -> &'static str {
    match report.verdict {
        VerifyVerdict::Malformed => "MALFORMED",
        // Each of two histories is what was signed.
        VerifyVerdict::Equivocation if report.unreadable.is_none() => intact_word(report),
        _ if !report.findings.is_empty() => "TAMPERED",
        _ if report.unreadable.is_some() => "UNVERIFIABLE",
        _ => intact_word(report),
    }
}

fn intact_word(report: &VerifyReport) -> &'static str {
    if report.is_quick { "INTACT so far" } else { "INTACT" }
}

fn whole_word(report: &VerifyReport) -> &'static str {
    if report.whole.is_complete() { "COMPLETE" } else { "partial" }
}

fn witness_word(report: &VerifyReport) -> &'static str {
    if report.witnesses.is_empty() { "UNWITNESSED" } else { "WITNESSED" }
}

fn derived_word(report: &VerifyReport) -> &'static str {
    match report.derived {
        Derived::None => "none",
        Derived::Index(_) => "OK",
        Derived::Damaged(_) => "damaged",
    }
}

struct Replayed {
    word: &'static str,
    at: Option<u64>,
    missing: Option<String>,
    detail: String,
}

/// Returns the worst replay of all runs.
fn replay(report: &VerifyReport) -> Replayed {
    let failed = |is_wanted: fn(&ReplayError) -> bool| {
        report.runs.iter().find_map(|run| match &run.replay {
            Some(Err(error)) if is_wanted(error) => Some((run, error)),
            _ => None,
        })
    };
    if let Some((run, error)) = failed(|error| !error.is_unverifiable()) {
        let at = error.tick().map_or_else(String::new, |tick| format!("at {tick} "));
        let detail = format!("{at}of {}: {}", run.run, quote::escape(&error.to_string()));
        return Replayed { word: "DIVERGED", at: error.tick(), missing: None, detail };
    }
    if let Some((run, error)) = failed(|_| true) {
        let missing = Some(error.to_string());
        let detail = format!("{}: {}", run.run, quote::escape(&error.to_string()));
        return Replayed { word: "UNVERIFIABLE", at: error.tick(), missing, detail };
    }
    let made = report.runs.iter().filter_map(|run| Some((run, *run.replay.as_ref()?.as_ref().ok()?)));
    let made: Vec<(&RunReport, u64)> = made.collect();
    let is_asked = report.runs.iter().any(|run| run.replay.is_some());
    if made.len() < report.runs.len() || !is_asked {
        let detail = match is_asked {
            true => "of a run whose chain does not hold",
            false => "--replay makes each transition again",
        };
        return Replayed { word: "NOT RUN", at: None, missing: None, detail: detail.to_owned() };
    }
    let passed = |(run, ticks): &(&RunReport, u64)| {
        ticks - run.part.map_or(0, |(from, _)| from.saturating_sub(1)).min(*ticks)
    };
    let (again, all): (u64, u64) = (made.iter().map(passed).sum(), made.iter().map(|(_, ticks)| ticks).sum());
    let detail = format!("{again} of {all} states reproduced by the recorded reducer");
    Replayed { word: "OK", at: None, missing: None, detail }
}

struct Known {
    word: &'static str,
    from: Option<u64>,
    cause: Option<String>,
    runs: Vec<RunName>,
}

/// Returns what is unknown of the last states, of the run with the earliest tick first.
fn state(report: &VerifyReport) -> Known {
    let mut open: Vec<(u64, String, RunName)> = Vec::new();
    for run in &report.runs {
        let is_found = report.findings.iter().any(|one| one.run.as_ref() == Some(&run.run));
        let is_broken = run.line.broken || is_found && report.verdict != VerifyVerdict::Equivocation;
        let found = match &run.unknown {
            _ if is_broken => {
                Some((run.line.last_good.map_or(0, |tick| tick + 1), "the record does not hold".to_owned()))
            }
            None => {
                let cause = "a change is missing, erased or withheld";
                Some((run.closed_from.unwrap_or(0), cause.to_owned()))
            }
            Some(places) => since(places).zip(unknown_words(places)),
        };
        open.extend(found.map(|(from, cause)| (from, cause, run.run.clone())));
    }
    open.sort_by_key(|(from, ..)| *from);
    let runs = open.iter().map(|(.., run)| run.clone()).collect();
    match open.into_iter().next() {
        None if report.verdict == VerifyVerdict::Malformed => {
            let cause = Some("no record could be read".to_owned());
            Known { word: "INCOMPLETE", from: None, cause, runs }
        }
        None => Known { word: "KNOWN", from: None, cause: None, runs },
        Some((from, cause, _)) => Known { word: "INCOMPLETE", from: Some(from), cause: Some(cause), runs },
    }
}

/// Names runs: all of a few, the first and the number of many.
pub(super) fn names<'r>(runs: impl IntoIterator<Item = &'r RunName>) -> String {
    named(runs.into_iter().map(|run| quote::escape(run.as_str())).collect())
}

/// Lists texts: all of a few, the first and the number of many.
pub(super) fn named(texts: Vec<String>) -> String {
    verdict::list(&texts, NAMES_MAX).unwrap_or_default()
}

/// Returns a line: a label, the word, and the detail in a column of its own.
pub(super) fn line(style: Option<Style>, label: &str, word: &str, detail: &str) -> Line {
    let [first, second] = COLUMNS;
    let word = format!("{word:<0$}", if detail.is_empty() { 0 } else { second - first });
    let gap = if detail.is_empty() || word.ends_with(' ') { "" } else { "  " };
    let styled = Line::of(style, word).after(format!("{label:<first$}"));
    styled.then(format!("{gap}{detail}")).hang(second)
}

/// Writes a line for each fact.
pub(super) fn lines(log: &VerifiedLog) -> Vec<Line> {
    let report = &log.report;
    let mut lines = vec![record_line(report), whole_line(report)];
    let found = replay(report);
    let style = match found.word {
        "OK" => Some(Style::Good),
        "NOT RUN" => None,
        _ => Some(Style::Bad),
    };
    lines.push(line(style, "replay", found.word, &found.detail));
    lines.push(state_line(report));
    lines.push(signer_line(report));
    lines.push(witness_line(report));
    let word = derived_word(report);
    lines.push(match &report.derived {
        Derived::None => line(None, "derived", word, ""),
        Derived::Index(covered) => {
            line(Some(Style::Good), "derived", word, &format!("index to record {covered}"))
        }
        Derived::Damaged(how) => line(Some(Style::Warn), "derived", "damaged: index", &quote::escape(how)),
    });
    lines.extend(report.compared.as_ref().map(compared_line));
    lines.extend(note_lines(report));
    if matches!(report.derived, Derived::Damaged(_)) {
        lines.push(Line::help(["dendrer", "doctor", "--fix"]));
    }
    lines
}

fn record_line(report: &VerifyReport) -> Line {
    let word = record_word(report);
    let detail = match (word, report.findings.first(), &report.unreadable) {
        ("MALFORMED", Some(finding), _) => {
            format!("{}: {}{}", finding.code, place(finding), quote::escape(&finding.message))
        }
        ("TAMPERED", Some(finding), _) => {
            let more = (report.findings.len() + report.findings_left_out) as u64 - 1;
            let more = if more == 0 { String::new() } else { format!(", and {more} more") };
            format!("{}: {}{}{more}", finding.code, place(finding), quote::escape(&finding.message))
        }
        ("UNVERIFIABLE", _, Some(first)) => quote::escape(first),
        _ => {
            let of = names(report.runs.iter().map(|run| &run.run));
            let of = if of.is_empty() { of } else { format!(" of {of}") };
            let states = if report.is_quick { "" } else { ", deltas against roots, authors" };
            format!(
                "{}{of}: bytes, chain, tree, maps{states}",
                count(report.asked_records, "record", "records")
            )
        }
    };
    let style = if word.starts_with("INTACT") { Style::Good } else { Style::Bad };
    line(Some(style), "record", word, &detail)
}

fn whole_line(report: &VerifyReport) -> Line {
    let whole = &report.whole;
    if let (true, Some(size)) = (whole.is_complete(), whole.checkpoint) {
        let by = whole.map_ts.map_or_else(|| "every entry read".to_owned(), |ts| format!("map of {ts}"));
        return line(Some(Style::Good), "whole", "COMPLETE", &format!("to checkpoint {size}, {by}"));
    }
    let whys = [
        PartialReason::Missing,
        PartialReason::NoMap,
        PartialReason::AfterMap,
        PartialReason::ParentRefusals,
    ];
    let mut parts: Vec<String> = whys.into_iter().filter_map(|why| partial_words(whole, why)).collect();
    let imported = whole.partial.iter().filter(|found| found.is_on_record);
    parts.extend(
        imported.map(|found| format!("{}: {}", quote::escape(found.run.as_str()), found.lost().words())),
    );
    let detail = match parts.is_empty() {
        true if report.runs.is_empty() && report.keys.is_some() && report.findings.is_empty() => {
            "no run is in it".to_owned()
        }
        true => "nothing that is signed counts the records".to_owned(),
        false => parts.join("; "),
    };
    line(Some(Style::Warn), "whole", "partial", &detail)
}

/// Returns the runs that are partial for a reason, and the reason in words.
fn partial_words(whole: &WholeFact, why: PartialReason) -> Option<String> {
    let runs: Vec<&IncompleteRun> =
        whole.partial.iter().filter(|run| run.why == why && !run.is_on_record).collect();
    if runs.is_empty() {
        return None;
    }
    let of = names(runs.iter().map(|run| &run.run));
    let missing = missing_words(&runs, whole);
    Some(match (why, whole.map_ts, whole.checkpoint) {
        (PartialReason::Missing, Some(ts), _) => format!("{of}: {missing} missing by the map of {ts}"),
        (PartialReason::Missing, None, _) => format!("{of}: {missing} missing"),
        (PartialReason::ParentRefusals, ..) => {
            format!("{of}: without {missing} beside what it branched off from")
        }
        (PartialReason::AfterMap, Some(ts), _) => {
            format!("{of}: records after the map of {ts} are not counted")
        }
        (PartialReason::AfterMap, None, Some(size)) => {
            format!("{of}: records after checkpoint {size} are not counted by it")
        }
        (_, None, None) if whole.left_out == 0 => "nothing that is signed counts the records".to_owned(),
        (_, Some(ts), _) => format!("{of}: no path from the map of {ts}"),
        (_, None, _) if whole.left_out == 0 => format!("{of}: entries of the log are missing"),
        (_, None, _) => {
            let left_out = count(whole.left_out, "other record", "other records");
            format!("{of}: no map in the bundle, which leaves out {left_out} of the log")
        }
    })
}

/// Lists how many records are missing, by kind.
fn missing_words(runs: &[&IncompleteRun], whole: &WholeFact) -> String {
    let sum =
        |of: fn(&MissingRecords) -> u64| runs.iter().filter_map(|run| run.missing.as_ref()).map(of).sum();
    let mut counts: Vec<(u64, String)> = vec![
        (sum(|missing| missing.transitions), "transition".to_owned()),
        (sum(|missing| missing.refusals), "refusal".to_owned()),
        (sum(|missing| missing.ends), "end".to_owned()),
        (sum(|missing| missing.erasures), "erasure".to_owned()),
    ];
    let is_missing = runs.iter().any(|run| run.why == PartialReason::Missing);
    let apart = whole.apart.iter().filter(|_| is_missing);
    counts.extend(apart.map(|(kind, count)| (*count, format!("{kind} record of the log"))));
    let some = counts.iter().filter(|(number, _)| *number > 0);
    let words: Vec<String> = some.map(|(number, what)| count(*number, what, &plural(what))).collect();
    words.join(", ")
}

/// The plural of a kind of record: `erase records of the log`.
fn plural(what: &str) -> String {
    match what.split_once(" record") {
        Some((kind, rest)) => format!("{kind} records{rest}"),
        None => format!("{what}s"),
    }
}

fn state_line(report: &VerifyReport) -> Line {
    let found = state(report);
    let Some(cause) = found.cause else { return line(Some(Style::Good), "state", found.word, "") };
    let of = if report.runs.len() > 1 { format!(" of {}", names(&found.runs)) } else { String::new() };
    let from = found.from.map_or_else(String::new, |tick| format!("from tick {tick}{of}: "));
    line(Some(Style::Warn), "state", found.word, &format!("{from}{cause}"))
}

fn signer_line(report: &VerifyReport) -> Line {
    let Some(keys) = &report.keys else { return line(None, "signer", "none", "") };
    let (signed, all) = (report.signed.unwrap_or(0), count(report.log.0, "record", "records"));
    let mut facts = vec![format!("signed {signed} of {all}")];
    facts.extend(
        keys.recovered_at().map(|position| format!("changed without the old key at record {position}")),
    );
    let revoked = keys.spans().iter().filter_map(|span| Some((span.key.id(), span.revoked?)));
    facts.extend(revoked.map(|(id, size)| format!("{id} revoked from size {size}")));
    facts.push(if report.is_key_known { "the signer this machine knows" } else { "unknown here" }.to_owned());
    line(None, "signer", &keys.now().id().to_string(), &facts.join("; "))
}

fn witness_line(report: &VerifyReport) -> Line {
    if report.witnesses.is_empty() {
        let detail = "a full rewrite by the key holder would not show";
        return line(None, "witness", witness_word(report), detail);
    }
    let one = |witness: &Witness| {
        let Witness { kind, run, to, after, runs, uncovered } = witness;
        let of = match (run, report.runs.len()) {
            (_, 0 | 1) => String::new(),
            (Some(run), _) => format!(" of {run}"),
            // Runs are named if it does not reach the end of each.
            (None, all) if runs.len() == all => String::new(),
            (None, _) if runs.is_empty() => ", of no run to its end,".to_owned(),
            (None, _) => format!(", of {} to the end,", names(runs)),
        };
        let (place, unit) = match kind {
            WitnessKind::Tip => (format!("tick {to}{of}"), ["tick follows", "ticks follow"]),
            _ => (format!("{to}{of}"), ["record follows", "records follow"]),
        };
        let after =
            if *after == 0 { String::new() } else { format!(" ({})", count(*after, unit[0], unit[1])) };
        let uncovered = match *uncovered {
            0 => String::new(),
            number => {
                format!("; does not cover {}", count(number, "refusal or erasure", "refusals or erasures"))
            }
        };
        format!("to {place} by the {kind} given{after}{uncovered}")
    };
    let by: Vec<String> = report.witnesses.iter().map(one).collect();
    line(Some(Style::Good), "witness", witness_word(report), &by.join("; "))
}

fn compared_line(compared: &ComparedLog) -> Line {
    let with = quote::escape(&compared.with);
    let (style, detail) = match (compared.word, compared.at) {
        (ComparedWord::Same, at) => (Style::Good, format!("to {} with {with}", at.unwrap_or(0))),
        (ComparedWord::Equivocation, at) => (Style::Bad, format!("at {} with {with}", at.unwrap_or(0))),
        (ComparedWord::NotCompared, _) if let Some(older) = &compared.older => {
            (Style::Warn, quote::escape(older))
        }
        (ComparedWord::NotCompared, _) => {
            (Style::Warn, format!("with {with}: what both show does not decide it"))
        }
    };
    line(Some(style), "compared", compared.word.as_str(), &detail)
}

/// Names the record that a remark is on.
fn place_of(note: &VerifyNote) -> String {
    note.position.map_or_else(|| "the header".to_owned(), |position| format!("record {position}"))
}

fn note_lines(report: &VerifyReport) -> Vec<Line> {
    let of = |code: NoteCode| report.notes.iter().filter(move |note| note.code == code);
    let stage_0 = names(of(NoteCode::Stage0).filter_map(|note| note.run.as_ref()));
    let mut lines = Vec::new();
    if !stage_0.is_empty() {
        let detail = format!("{stage_0}: nothing was enforced when it was made");
        lines.push(line(Some(Style::Warn), "notes", NoteCode::Stage0.as_str(), &detail));
    }
    for note in of(NoteCode::DatedBack).take(NAMES_MAX) {
        let run = note.run.as_ref().map_or_else(String::new, |run| format!("{run}, "));
        let times = note
            .times
            .map_or_else(String::new, |(ts, after)| format!(" is dated {ts}, after one of {after}"));
        let detail = format!("{run}{}{times}", place_of(note));
        lines.push(line(Some(Style::Warn), "notes", note.code.as_str(), &detail));
    }
    for note in of(NoteCode::Adopted).take(NAMES_MAX) {
        let records = count(note.records.unwrap_or(0), "record", "records");
        let detail = format!("{}: {records} without tag signed knowingly", place_of(note));
        lines.push(line(Some(Style::Warn), "notes", note.code.as_str(), &detail));
    }
    let untagged: Vec<_> = of(NoteCode::Untagged).collect();
    if let Some(first) = untagged.first() {
        let records = untagged.iter().filter_map(|note| note.records).sum();
        let (records, groups) =
            (count(records, "record", "records"), count(untagged.len() as u64, "group", "groups"));
        let detail = format!(
            "{records} from position {} on, in {groups} without tag (dendrer doctor --adopt -n)",
            first.position.unwrap_or_default()
        );
        lines.push(line(Some(Style::Warn), "notes", NoteCode::Untagged.as_str(), &detail));
    }
    for note in of(NoteCode::NotErased).take(NAMES_MAX) {
        let run = note.run.as_ref().map_or_else(String::new, |run| format!("{run}, "));
        let place = quote::escape(note.place.as_deref().unwrap_or_default());
        let detail = format!("{run}{}: {place} is here, and a record says it was erased", place_of(note));
        lines.push(line(Some(Style::Warn), "notes", note.code.as_str(), &detail));
    }
    let places: Vec<String> =
        of(NoteCode::Although).filter_map(|note| note.place.as_deref().map(quote::escape)).collect();
    if let Some(places) = verdict::list(&places, NAMES_MAX) {
        let detail = format!("{places}: here, though a withheld value may follow from it");
        lines.push(line(Some(Style::Warn), "notes", NoteCode::Although.as_str(), &detail));
    }
    lines
}

/// Returns the place of a finding, with what separates it from the sentence.
pub(super) fn place(finding: &VerifyFinding) -> String {
    match (&finding.run, finding.tick) {
        (Some(run), Some(tick)) => format!("{run}@{tick}: "),
        (Some(run), None) => format!("{run}: "),
        _ => String::new(),
    }
}

/// The first tick from which on a place is unknown.
pub(super) fn since(unknown: &Places) -> Option<u64> {
    unknown.iter().map(|(_, since)| since.tick).min()
}
