//! The verification of logs as lines and as a document: a line for each fact, and the verdict last.

use dendrer::care::verify::question::VerifyOutcome;
use dendrer::kernel::replay::ReplayError;
use dendrer::verify::facts::{ComparedWord, Derived, Witness};
use dendrer::verify::judge::{ANOTHER_LOG, VerifiedLog};
use dendrer::verify::{RunReport, VerifyFinding, VerifyReport, VerifyVerdict};
use dendrer_object::document::As;
use dendrer_object::{Code, Digest, Object, RunName, Value, document};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::certainty::{UnknownPlace, unknown_places};
use crate::problem::{Problem, ShownProblem as _};
use crate::{count, quote};
use facts::{VerifyLines, place, since};

mod facts;
pub mod words;

fn end_of(verdict: VerifyVerdict) -> End {
    match verdict {
        VerifyVerdict::Verified | VerifyVerdict::Intact => End::Answered,
        VerifyVerdict::Unverifiable => End::Unknown,
        VerifyVerdict::Diverged => End::Problem(Code::E0701),
        VerifyVerdict::Tampered | VerifyVerdict::Equivocation => End::Problem(ANOTHER_LOG),
        VerifyVerdict::Malformed => End::Problem(Code::E0306),
    }
}

/// The limit of every verdict.
const MEANING: &str = "does not prove that inputs were true";

/// The verification of one log or of several.
#[derive(Debug, Clone, Copy)]
pub struct VerifyAnswer<'v> {
    /// The logs, in the order in which they were named.
    pub outcomes: &'v [VerifyOutcome],
    /// Whether the document is a list even of one log.
    pub is_list: bool,
}

fn end_of_log(outcome: &VerifyOutcome) -> End {
    match outcome {
        VerifyOutcome::Verified(log) => match (end_of(log.report.verdict), log.report.unmet.first()) {
            (End::Answered, Some(code)) => End::Problem(*code),
            (end, _) => end,
        },
        VerifyOutcome::Unreadable(_, problem) => End::Problem(problem.code),
    }
}

/// Returns how bad an outcome is. The order is that of the verdicts and not of the exit codes: 4 is worse than 7, 7 than a log
/// that could not be read, that than 6.
fn rank(outcome: &VerifyOutcome) -> usize {
    let code = end_of_log(outcome).exit();
    [0, 6, 8, 3, 2, 7, 4].iter().position(|known| *known == code).unwrap_or(7)
}

document! {
    /// The result of the verification of several logs
    pub object VerifyAllDocument: "verify-all" (outcomes: Value) {
        /// The result of each log, and an error for one that could not be read
        items: As<Vec<Object>> = As::new(outcomes),
    }

    /// The result of a verification
    pub object VerifyDocument: "verify" (named: &str, report: &VerifyReport) {
        /// The log, as it was named
        name: &str = named,
        /// The worst of the findings in one word
        verdict: VerifyVerdict = report.verdict,
        /// The facts, one for each line of the text
        lines: VerifyLines = VerifyLines::of(report),
        /// The witnesses that agree
        witnesses: Vec<String> = report.witnesses.iter().map(Witness::words).collect(),
        /// The parts that were not checked, each in words
        not_checked: Vec<String> = not_checked(report),
        /// The number of records that were opened and compared
        records: u64 = report.records,
        /// The log as a whole
        log: LogSize = LogSize::of(report),
        /// The runs
        items: Vec<VerifiedRun> = report.runs.iter().map(VerifiedRun::of).collect(),
        /// The findings, in the order of the log
        findings: Vec<FindingObject> = report.findings.iter().map(FindingObject::of).collect(),
        /// The number of findings that are left out
        findings_left_out: usize = report.findings_left_out,
    }

    /// The size of a log
    object LogSize(report: &VerifyReport) {
        /// The number of records
        size: u64 = report.log.0,
        /// The root; null if it cannot be computed
        root: Option<Digest> = report.log.1,
        /// The number of records that the newest checkpoint covers; null if nothing is signed
        signed: Option<u64> = report.signed,
    }

    /// A run that was verified
    object VerifiedRun(report: &RunReport) {
        let (line, unknown) = (&report.line, report.unknown.as_deref());
        /// The run
        run: &RunName = &report.run,
        /// The id of the first record
        genesis: Option<Digest> = line.genesis,
        /// The id of the newest record of the chain
        tip: Option<Digest> = line.tip,
        /// The last tick
        ticks: u64 = line.tick,
        /// The number of transitions
        transitions: u64 = line.transitions,
        /// The number of refusals
        refusals: u64 = line.refusals,
        /// Whether the run was closed
        ended: bool = line.ended,
        /// The last tick before the first finding; null if it is missing
        last_good: Option<u64> = line.last_good,
        /// The ticks whose records were opened; null for all
        part: Option<VerifiedPart> = report.part.map(|(from, to)| VerifiedPart::of(from, to)),
        /// The replay; null if it was not asked for
        replay: Option<ReplayResult> = report.replay.as_ref().map(ReplayResult::of),
        /// Whether every place of the last state is known; unavailable if a change is missing, erased or withheld
        state: ["known" | "incomplete" | "unavailable"] = match unknown {
            None => "unavailable",
            Some([]) => "known",
            Some(_) => "incomplete",
        },
        /// The first tick from which on a place is unknown; null if every place is known
        incomplete_from: Option<u64> = unknown.and_then(since),
        /// The unknown places of the last state; absent if every place is known
        unknown?: Vec<UnknownPlace> = unknown.and_then(unknown_places),
        /// The part of an import that is on record; absent if it was not stopped before its end
        import_unfinished?: ImportedPart = report.unfinished.filter(|found| found.lost.is_none()).map(|found| ImportedPart::of(found.ticks, found.of)),
    }

    /// The part of an import that is on record
    object ImportedPart(ticks: u64, all: u64) {
        /// The number of ticks that are on record
        items: u64 = ticks,
        /// The number of ticks that the source makes
        of: u64 = all,
    }

    /// A part of a run
    object VerifiedPart(first: u64, last: u64) {
        /// The first tick
        from: u64 = first,
        /// The last tick
        to: u64 = last,
    }

    /// The replay of a run
    object ReplayResult(result: &Result<u64, ReplayError>) {
        /// Whether each state was reproduced
        ok: bool = result.is_ok(),
        /// The number of ticks that were replayed
        ticks?: u64 = result.as_ref().ok().copied(),
        /// The code of the fault
        code?: Code = result.as_ref().err().map(ReplayError::code),
        /// The fault in words
        message?: String = result.as_ref().err().map(ToString::to_string),
    }

    /// A finding of a verification
    object FindingObject(finding: &VerifyFinding) {
        let is_given = finding.sides().0 == "given";
        let (one, other) = (finding.stored.as_deref(), finding.computed.as_deref());
        /// The code
        code: Code = finding.code,
        /// The run; null if it concerns none
        run: Option<&RunName> = finding.run.as_ref(),
        /// The tick; null if it concerns none
        tick: Option<u64> = finding.tick,
        /// The position in the log; null if it is not known
        position: Option<u64> = finding.position,
        /// The finding in one sentence
        message: &str = &finding.message,
        /// The value on record
        stored?: Option<&str> = (!is_given).then_some(one),
        /// The value that was computed from the record
        computed?: Option<&str> = (!is_given).then_some(other),
        /// The value that was given with the question
        given?: Option<&str> = is_given.then_some(one),
        /// The value on record in place of the one that was given
        found?: Option<&str> = is_given.then_some(other),
    }
}

impl Answer for VerifyAnswer<'_> {
    fn document(&self) -> Value {
        let item = |outcome: &VerifyOutcome| match outcome {
            VerifyOutcome::Verified(log) => VerifyDocument::of(&log.name, &log.report).into(),
            VerifyOutcome::Unreadable(name, problem) => {
                let mut members = problem.to_json().as_object().cloned().unwrap_or_default();
                members.set("name", Value::from(name.as_str()));
                Value::Object(members)
            }
        };
        match self.outcomes {
            [one @ VerifyOutcome::Verified(_)] if !self.is_list => item(one),
            all => VerifyAllDocument::of(Value::array(all.iter().map(item))).into(),
        }
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let outcome = |outcome: &VerifyOutcome| match outcome {
            VerifyOutcome::Verified(log) => verified_lines(log),
            VerifyOutcome::Unreadable(name, problem) => unreadable_lines(name, problem),
        };
        self.outcomes.iter().flat_map(outcome).collect()
    }

    fn end(&self) -> End {
        // The first of those that are equally bad.
        let worst = self.outcomes.iter().rev().max_by_key(|outcome| rank(outcome));
        worst.map_or(End::Answered, end_of_log)
    }
}

fn unreadable_lines(name: &str, problem: &Problem) -> Vec<Line> {
    let text = format!("error[{}]: {}", problem.code, quote::escape(&problem.message));
    let mut lines = vec![Line::styled(Style::Bad, text)];
    let place = problem.place.iter();
    lines.extend(place.map(|(what, value)| Line::from(format!("  | {what:<8} {}", quote::escape(value)))));
    lines.push(format!("NOT READ   {}", quote::escape(name)).into());
    lines
}

/// Lists the parts that were not checked, with those that have a line of their own.
fn not_checked(report: &VerifyReport) -> Vec<String> {
    let unsigned = report.log.0 - report.signed.unwrap_or(0).min(report.log.0);
    let left_out = report.whole.left_out;
    let of_lines = [
        (report.signed.is_none() && report.keys.is_some())
            .then(|| "a signature: no checkpoint was signed yet".to_owned()),
        (report.signed.is_some() && unsigned > 0)
            .then(|| format!("a signature over the last {}", count(unsigned, "record", "records"))),
        (left_out > 0).then(|| {
            let left_out = count(left_out, "other record", "other records");
            format!("{left_out} of the same log, which the bundle leaves out")
        }),
        report.runs.iter().all(|run| run.replay.is_none()).then(|| "replay (--replay)".to_owned()),
        match &report.derived {
            Derived::Damaged(how) => Some(format!("the index, which is damaged ({how})")),
            _ => None,
        },
    ];
    report.not_checked.iter().cloned().chain(of_lines.into_iter().flatten()).collect()
}

fn verified_lines(log: &VerifiedLog) -> Vec<Line> {
    let report = &log.report;
    let mut lines = facts::lines(log);
    lines.extend(report.runs.iter().filter_map(|run| {
        let (ticks, of) =
            run.unfinished.filter(|found| found.lost.is_none()).map(|found| (found.ticks, found.of))?;
        let detail = format!("{}: {ticks} of {of} ticks; the same import goes on with it", run.run);
        Some(facts::line(Some(Style::Warn), "import", "UNFINISHED", &detail))
    }));
    // The first line has all there is to know of bytes that are no record.
    if report.verdict != VerifyVerdict::Malformed || !report.runs.is_empty() {
        lines.extend(report.findings.iter().flat_map(|finding| finding_lines(report, finding)));
    }
    if report.findings_left_out > 0 {
        lines.push(format!("({} more findings)", report.findings_left_out).into());
    }
    lines.extend(
        report.not_checked.iter().map(|item| Line::from(format!("not checked: {}", quote::escape(item)))),
    );
    let unmet = report.unmet.iter().flat_map(|code| unmet_lines(log, *code));
    lines.extend(unmet.collect::<Vec<_>>());
    let is_good = end_of(report.verdict) == End::Answered;
    let style = if is_good { Style::Good } else { Style::Bad };
    // A part that is sound says nothing of the whole.
    let name = asked_words(log);
    lines.push(verdict_line(style, report.verdict, &name, if is_good { MEANING } else { "" }));
    let is_found = |run: &&RunReport| report.findings.iter().any(|one| one.run.as_ref() == Some(&run.run));
    // The parent of a fork may not be among the runs that were asked about.
    let is_cut = |run: &&RunReport| run.line.last_good < Some(run.line.tick);
    let found = report.runs.iter().find(is_found).or_else(|| report.runs.iter().find(is_cut));
    let sound = found.and_then(|run| Some((&run.run, run.line.last_good?)));
    let is_broken = report.verdict >= VerifyVerdict::Tampered;
    if let Some((run, good)) = sound.filter(|_| log.is_bundle && is_broken) {
        lines.push(Line::note(format!("note: up to tick {good} it is still sound")));
        let (address, tick) = (format!("{}#{run}", log.name), good.to_string());
        lines.push(Line::help(["dendrer", "log", &address, "--to", "tick", &tick]));
    }
    lines
}

/// Returns the last line: the verdict in the place of a label.
fn verdict_line(style: Style, verdict: VerifyVerdict, name: &str, detail: &str) -> Line {
    let verdict = format!("{:<8}  ", verdict.as_str());
    let name = if detail.is_empty() { name.to_owned() } else { format!("{name:<11}  ") };
    Line::styled(style, verdict).then(format!("{name}{detail}"))
}

/// Names what was asked about: a bundle as it was named, or runs of the store, or the store; each with the part of it, if that is
/// not the whole.
fn asked_words(log: &VerifiedLog) -> String {
    let runs = &log.report.runs;
    let part = |run: &RunReport| match run.part {
        Some((0, _)) => format!("@{}", run.asked),
        Some((from, _)) => format!(", ticks {from} to {} alone", run.asked),
        None => String::new(),
    };
    if log.is_whole {
        return quote::escape(&log.name)
            + &runs.iter().map(part).find(|part| !part.is_empty()).unwrap_or_default();
    }
    let named = |run: &RunReport| quote::escape(run.run.as_str()) + &part(run);
    facts::named(runs.iter().map(named).collect())
}

/// Writes what was required and does not hold, and the next step.
fn unmet_lines(log: &VerifiedLog, code: Code) -> Vec<Line> {
    let report = &log.report;
    let (text, note) = match code {
        Code::E0312 => ("records may be missing, and all are required", None),
        Code::E0313 if report.witnesses.iter().any(|witness| witness.uncovered > 0) => {
            ("no tip covers refusals and erasures, and a witness of all is required: give --checkpoint", None)
        }
        Code::E0313 => match reached(report) {
            None => ("no witness agrees, and one is required: give --tip or --checkpoint", None),
            found => {
                ("no witness agrees up to the last tick that was asked about, and one is required", found)
            }
        },
        _ => ("no other log of the same key could be compared, and that is required", None),
    };
    let mut lines = vec![Line::styled(Style::Bad, format!("error[{code}]: {text}"))];
    lines.extend(note.map(|note| Line::note(format!("note: {note}"))));
    lines
}

/// Returns how far a witness that was given reaches, and the runs with later records; `None` if none was given.
fn reached(report: &VerifyReport) -> Option<String> {
    let is_open = |run: &&RunReport| !report.witnesses.iter().any(|witness| witness.runs.contains(&run.run));
    let open = facts::names(report.runs.iter().filter(is_open).map(|run| &run.run));
    let behind = match open.is_empty() {
        true => "records of no run follow".to_owned(),
        false => format!("records of {open} follow, or are not in it"),
    };
    let best = report.witnesses.iter().max_by_key(|witness| witness.run.is_some());
    match best {
        Some(Witness { run: Some(run), to, .. }) => {
            Some(format!("the tip that was given witnesses {run}@{to}"))
        }
        Some(Witness { kind, to, .. }) => {
            let to = count(*to, "record", "records");
            Some(format!("the {kind} that was given covers the first {to} of the log; {behind}"))
        }
        None if report.compared.as_ref().is_some_and(|log| log.word == ComparedWord::NotCompared) => {
            Some("what was given cannot be compared: the bundle shows no node of its size".to_owned())
        }
        None => None,
    }
}

fn finding_lines(report: &VerifyReport, finding: &VerifyFinding) -> Vec<Line> {
    let text = format!("error[{}]: {}{}", finding.code, place(finding), quote::escape(&finding.message));
    let mut lines = vec![Line::styled(Style::Bad, text)];
    if let (Some(stored), Some(computed)) = (&finding.stored, &finding.computed) {
        let (one, other) = finding.sides();
        let (stored, computed) = (quote::escape(stored), quote::escape(computed));
        lines.push(format!("  | {one:<8}  {stored}        {other:<8}  {computed}").into());
    }
    let run = report.runs.iter().find(|run| Some(&run.run) == finding.run.as_ref());
    if let (Some(tick), Some(line)) = (finding.tick, run.map(|run| &run.line))
        && let Some(good) = line.last_good
    {
        let rest = match tick < line.tick {
            true => {
                format!("    ticks {}..{} rest on tick {tick} and are not trustworthy", tick + 1, line.tick)
            }
            false => String::new(),
        };
        lines.push(format!("  | last good tick: {good}{rest}").into());
    }
    if finding.code == Code::E0304 {
        let note =
            "      note: this is what a run looks like that was rewritten with its hashes computed anew";
        lines.push(note.into());
    }
    lines.push(format!("      see: dendrer explain {}", finding.code).into());
    lines
}
