//! A verification report as lines and as a document.

use dendrer::verify::{Finding, Report, RunReport, Verdict};
use dendrer_object::Value;

use crate::{count, document};

/// The word for a verdict, and the exit code that goes with it (design, section 3 "Verdicts").
pub fn word(verdict: Verdict) -> (&'static str, u8) {
    match verdict {
        Verdict::Verified => ("VERIFIED", 0),
        Verdict::Intact => ("INTACT", 0),
        Verdict::Unverifiable => ("UNVERIFIABLE", 6),
        Verdict::Diverged => ("DIVERGED", 7),
        Verdict::Tampered => ("TAMPERED", 4),
        Verdict::Equivocation => ("EQUIVOCATION", 4),
    }
}

/// The words after the verdict if nothing outside this machine confirmed the log.
pub const UNWITNESSED: &str = "UNWITNESSED (a full rewrite by the key holder would not show)";

/// The claims that an intact record proves, and those that it does not.
pub const MEANING: &str = "proves: unchanged since recording. does not prove: that inputs were true";

/// Writes the lines for one run.
pub fn run_lines(report: &Report, run: &RunReport) -> Vec<String> {
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
        Some(Err(error)) => {
            lines.push(format!("replay     FAIL  {}", crate::quote::escape(&error.to_string())))
        }
    }
    lines
}

/// Writes the lines for the log as a whole.
pub fn log_lines(report: &Report) -> Vec<String> {
    let root = report.log.1.map_or_else(|| "-".to_owned(), |root| root.short());
    let bad = report.findings.iter().any(|finding| matches!(finding.code, "E0303" | "E0307" | "E0308"));
    let signed = match report.signed {
        Some(size) if size == report.log.0 => "signed".to_owned(),
        Some(size) => format!("signed up to {size}"),
        None if bad => "not the log that was signed".to_owned(),
        None => "not signed".to_owned(),
    };
    let word = if bad { "FAIL" } else { "OK  " };
    vec![format!("log        {word}  {}   root {root}   {signed}", count(report.log.0, "record", "records"))]
}

/// Returns the report as `dendrer.verify/1`.
pub fn to_json(report: &Report) -> Value {
    let (word, _) = word(report.verdict);
    let texts = |list: &[String]| Value::array(list.iter().map(|text| Value::from(text.as_str())));
    document(
        "verify",
        [
            ("verdict", Value::from(word)),
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
    Value::record([
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
    ])
}

/// Says which part was looked at, where that is not the whole: `, ticks 20 to 47 alone`.
pub fn part_words(report: &Report) -> String {
    let parts = report.runs.iter().filter_map(|run| run.part);
    parts.map(|(from, to)| format!(", ticks {from} to {to} alone")).next().unwrap_or_default()
}

fn finding_json(finding: &Finding) -> Value {
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
