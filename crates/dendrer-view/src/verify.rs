//! The verification of logs as lines and as a document.

use dendrer::verify::judge::{ANOTHER_LOG, VerifiedLog};
use dendrer::verify::{RunReport, VerifyFinding, VerifyReport, VerifyVerdict};
use dendrer_object::{Code, Value};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::certainty::{Places, unknown_member, unknown_words};
use crate::problem::{Problem, ShownProblem as _};
use crate::{count, document, quote};

/// The word for a verdict (design, section 3 "Verdicts").
pub fn word(verdict: VerifyVerdict) -> &'static str {
    match verdict {
        VerifyVerdict::Verified => "VERIFIED",
        VerifyVerdict::Intact => "INTACT",
        VerifyVerdict::Unverifiable => "UNVERIFIABLE",
        VerifyVerdict::Diverged => "DIVERGED",
        VerifyVerdict::Tampered => "TAMPERED",
        VerifyVerdict::Equivocation => "EQUIVOCATION",
    }
}

fn end_of(verdict: VerifyVerdict) -> End {
    match verdict {
        VerifyVerdict::Verified | VerifyVerdict::Intact => End::Answered,
        VerifyVerdict::Unverifiable => End::Unknown,
        VerifyVerdict::Diverged => End::Problem(Code::E0701),
        VerifyVerdict::Tampered | VerifyVerdict::Equivocation => End::Problem(ANOTHER_LOG),
    }
}

/// The note on an intact log without a witness.
const UNWITNESSED: &str = "UNWITNESSED (a full rewrite by the key holder would not show)";

/// What an intact record proves and what it does not.
const MEANING: &str = "proves: unchanged since recording. does not prove: that inputs were true";

/// A log that was to be verified.
#[derive(Debug, Clone)]
pub enum VerifyOutcome {
    /// It was verified.
    Verified(Box<VerifiedLog>),
    /// It could not be read, and the others were verified all the same.
    Unreadable(String, Problem),
}

/// The verification of one log or of several.
#[derive(Debug, Clone, Copy)]
pub struct VerifyAnswer<'v> {
    /// The logs, in the order in which they were named.
    pub outcomes: &'v [VerifyOutcome],
    /// Whether the document is a list even of one log.
    pub is_list: bool,
}

impl VerifyOutcome {
    fn end(&self) -> End {
        match self {
            VerifyOutcome::Verified(log) => end_of(log.report.verdict),
            VerifyOutcome::Unreadable(_, problem) => End::Problem(problem.code),
        }
    }

    /// Returns how bad the outcome is. The order is that of the verdicts and not of the exit codes: 4 is worse than 7, 7 than
    /// a log that could not be read, that than 6.
    fn rank(&self) -> usize {
        let code = self.end().exit();
        [0, 6, 8, 3, 2, 7, 4].iter().position(|known| *known == code).unwrap_or(7)
    }
}

impl Answer for VerifyAnswer<'_> {
    fn document(&self) -> Value {
        let item = |outcome: &VerifyOutcome| match outcome {
            VerifyOutcome::Verified(log) => named(&to_json(&log.report), &log.name),
            VerifyOutcome::Unreadable(name, problem) => named(&problem.to_json(), name),
        };
        match self.outcomes {
            [one @ VerifyOutcome::Verified(_)] if !self.is_list => item(one),
            all => document("verify-all", [("items", Value::array(all.iter().map(item)))]),
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
        let worst = self.outcomes.iter().rev().max_by_key(|outcome| outcome.rank());
        worst.map_or(End::Answered, VerifyOutcome::end)
    }
}

fn named(document: &Value, name: &str) -> Value {
    let mut members = document.as_object().cloned().unwrap_or_default();
    members.set("name", Value::from(name));
    Value::Object(members)
}

fn unreadable_lines(name: &str, problem: &Problem) -> Vec<Line> {
    let text = format!("error[{}]: {}", problem.code, quote::escape(&problem.message));
    let mut lines = vec![Line::styled(Style::Bad, text)];
    let place = problem.place.iter();
    lines.extend(place.map(|(what, value)| Line::from(format!("  | {what:<8} {}", quote::escape(value)))));
    lines.push(format!("NOT READ   {}", quote::escape(name)).into());
    lines
}

fn verified_lines(log: &VerifiedLog) -> Vec<Line> {
    let report = &log.report;
    let mut lines = Vec::new();
    for run in &report.runs {
        if report.runs.len() > 1 {
            lines.push(Line::styled(Style::Strong, run.run.as_str()));
        }
        lines.extend(run_lines(report, run).into_iter().map(|text| match text.contains("  FAIL  ") {
            true => Line::styled(Style::Bad, text),
            false => Line::from(text),
        }));
        lines.extend(state_line(report, run));
    }
    lines.push(log_line(report).into());
    lines.extend(report.findings.iter().flat_map(|finding| finding_lines(report, finding)));
    if report.findings_left_out > 0 {
        lines.push(format!("({} more findings)", report.findings_left_out).into());
    }
    let not_checked = report.not_checked.iter();
    lines.extend(not_checked.map(|item| Line::from(format!("not checked: {}", quote::escape(item)))));
    let is_good = end_of(report.verdict) == End::Answered;
    let style = if is_good { Style::Good } else { Style::Bad };
    let meaning = if is_good { format!("   ({MEANING})") } else { String::new() };
    // A part that is sound says nothing of the whole.
    let (name, part) = (quote::escape(&log.name), part_words(report));
    lines.push(Line::styled(style, word(report.verdict)).then(format!("   {name}{part}{meaning}")));
    if is_good {
        lines.push(match report.witnesses.as_slice() {
            [] => Line::from(UNWITNESSED),
            witnesses => Line::from(format!("witnessed by {}", quote::escape(&witnesses.join(", ")))),
        });
    }
    let sound = report.runs.iter().find_map(|run| Some((&run.run, run.line.last_good?)));
    let is_broken = matches!(report.verdict, VerifyVerdict::Tampered | VerifyVerdict::Equivocation);
    if let Some((run, good)) = sound.filter(|_| log.is_bundle && is_broken) {
        lines.push(Line::note(format!("note: up to tick {good} it is still sound")));
        let (address, tick) = (format!("{}#{run}", log.name), good.to_string());
        lines.push(Line::help(["dendrer", "log", &address, "--to", "tick", &tick]));
    }
    lines
}

fn finding_lines(report: &VerifyReport, finding: &VerifyFinding) -> Vec<Line> {
    let place = match (&finding.run, finding.tick) {
        (Some(run), Some(tick)) => format!("{run}@{tick}: "),
        (Some(run), None) => format!("{run}: "),
        _ => String::new(),
    };
    let text = format!("error[{}]: {place}{}", finding.code, quote::escape(&finding.message));
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

/// Writes the lines for one run.
fn run_lines(report: &VerifyReport, run: &RunReport) -> Vec<String> {
    let line = &run.line;
    let findings = report.findings.iter().filter(|finding| finding.run.as_ref() == Some(&run.run)).count();
    let short = |id: Option<dendrer_object::Digest>| id.map_or_else(|| "-".to_owned(), |id| id.short());
    let mut lines = Vec::new();
    match report.findings.iter().find(|finding| finding.run.as_ref() == Some(&run.run)) {
        None => lines.push(format!(
            "chain      OK    {} of {} links   genesis {}   tip {}",
            line.transitions - run.passed,
            line.transitions,
            short(line.genesis),
            short(line.tip)
        )),
        Some(first) => {
            let at =
                first.tick.map_or_else(|| "beside the chain".to_owned(), |tick| format!("at tick {tick}"));
            lines.push(format!(
                "chain      FAIL  {at} of {}   {}",
                line.tick,
                count(findings as u64, "finding", "findings")
            ));
        }
    }
    match &run.replay {
        None => {}
        Some(Ok(ticks)) => {
            let made = ticks - run.part.map_or(0, |(from, _)| from - 1).min(*ticks);
            lines.push(format!(
                "replay     OK    {made} of {ticks} states reproduced by the recorded reducer"
            ));
        }
        Some(Err(error)) => lines.push(format!("replay     FAIL  {}", quote::escape(&error.to_string()))),
    }
    lines
}

/// Says whether every place of the last state is known; `None` if the chain does not hold, and nothing follows from it.
fn state_line(report: &VerifyReport, run: &RunReport) -> Option<Line> {
    if report.findings.iter().any(|finding| finding.run.as_ref() == Some(&run.run)) {
        return None;
    }
    let Some(unknown) = &run.unknown else {
        let text = "state      UNAVAILABLE: a change is missing, erased or withheld";
        return Some(Line::styled(Style::Warn, text));
    };
    Some(match (unknown_words(unknown), since(unknown)) {
        (Some(words), Some(tick)) => {
            Line::styled(Style::Warn, format!("state      INCOMPLETE from tick {tick}: {words}"))
        }
        _ => "state      KNOWN".into(),
    })
}

/// The first tick from which on a place is unknown.
fn since(unknown: &Places) -> Option<u64> {
    unknown.iter().map(|(_, since)| since.tick).min()
}

/// Writes the line for the log as a whole.
fn log_line(report: &VerifyReport) -> String {
    let root = report.log.1.map_or_else(|| "-".to_owned(), |root| root.short());
    let bad =
        report.findings.iter().any(|finding| matches!(finding.code, Code::E0303 | Code::E0307 | Code::E0308));
    let signed = match report.signed {
        Some(size) if size == report.log.0 => "signed".to_owned(),
        Some(size) => format!("signed up to {size}"),
        None if bad => "not the log that was signed".to_owned(),
        None => "not signed".to_owned(),
    };
    let word = if bad { "FAIL" } else { "OK  " };
    format!("log        {word}  {}   root {root}   {signed}", count(report.log.0, "record", "records"))
}

/// Returns the report as `dendrer.verify/1`.
fn to_json(report: &VerifyReport) -> Value {
    let texts = |list: &[String]| Value::array(list.iter().map(|text| Value::from(text.as_str())));
    document(
        "verify",
        [
            ("verdict", Value::from(word(report.verdict))),
            ("witnesses", texts(&report.witnesses)),
            ("not_checked", texts(&report.not_checked)),
            ("records", Value::from(report.records)),
            (
                "log",
                Value::record([
                    ("size", Value::from(report.log.0)),
                    ("root", Value::from(report.log.1)),
                    ("signed", Value::from(report.signed)),
                ]),
            ),
            ("items", Value::array(report.runs.iter().map(run_json))),
            ("findings", Value::array(report.findings.iter().map(finding_json))),
            ("findings_left_out", Value::from(report.findings_left_out as u64)),
        ],
    )
}

fn run_json(run: &RunReport) -> Value {
    let line = &run.line;
    let replay = run.replay.as_ref().map(|replay| match replay {
        Ok(ticks) => Value::record([("ok", Value::from(true)), ("ticks", Value::from(*ticks))]),
        Err(error) => Value::record([
            ("ok", Value::from(false)),
            ("code", Value::from(error.code())),
            ("message", Value::from(error.to_string())),
        ]),
    });
    let state = match run.unknown.as_deref() {
        None => "unavailable",
        Some([]) => "known",
        Some(_) => "incomplete",
    };
    let members = [
        ("run", Value::from(run.run.as_str())),
        ("genesis", Value::from(line.genesis)),
        ("tip", Value::from(line.tip)),
        ("ticks", Value::from(line.tick)),
        ("transitions", Value::from(line.transitions)),
        ("refusals", Value::from(line.refusals)),
        ("ended", Value::from(line.ended)),
        ("last_good", Value::from(line.last_good)),
        (
            "part",
            Value::from(
                run.part
                    .map(|(from, to)| Value::record([("from", Value::from(from)), ("to", Value::from(to))])),
            ),
        ),
        ("replay", Value::from(replay)),
        ("state", Value::from(state)),
        ("incomplete_from", Value::from(run.unknown.as_deref().and_then(since))),
    ];
    Value::record(members.into_iter().chain(run.unknown.as_deref().and_then(unknown_member)))
}

/// Names the part that was verified, if it is not the whole: `, ticks 20 to 47 alone`.
fn part_words(report: &VerifyReport) -> String {
    let parts = report.runs.iter().filter_map(|run| run.part);
    parts.map(|(from, to)| format!(", ticks {from} to {to} alone")).next().unwrap_or_default()
}

fn finding_json(finding: &VerifyFinding) -> Value {
    let (stored, computed) = finding.sides();
    Value::record([
        ("code", Value::from(finding.code)),
        ("run", Value::from(finding.run.as_ref().map(|run| run.to_string()))),
        ("tick", Value::from(finding.tick)),
        ("position", Value::from(finding.position)),
        ("message", Value::from(finding.message.as_str())),
        (stored, Value::from(finding.stored.clone())),
        (computed, Value::from(finding.computed.clone())),
    ])
}
