//! A bisect report, and the verdicts of a run, as lines and as documents.

use dendrer::bisect::{Outcome, Probe, Question, Report};
use dendrer::kernel::obligation::Standing;
use dendrer::kernel::predicate::{Asked, Monotone, Predicate, Verdict, Window};
use dendrer::kernel::progress::Evaluation;
use dendrer::timeline::{Interval, Timeline};
use dendrer_object::Value;

use crate::{EXACT, count, document, quote};

/// The word for a verdict, and the mark beside it.
pub fn words(verdict: &Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Ok => ("compliant", "OK"),
        Verdict::Violation => ("violation", "FAIL"),
        Verdict::Uncertain(_) => ("uncertain", "SKIP"),
    }
}

/// The word for a verdict in documents.
pub fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Ok => "ok",
        Verdict::Violation => "violation",
        Verdict::Uncertain(_) => "uncertain",
    }
}

/// Writes what is asked: the name, how it is known to be pure and monotone, its polarity and its digest.
pub fn question_lines(question: &Question, monotone: &str) -> Vec<String> {
    let window = match question.window() {
        Window::Before => "before",
        Window::After => "after",
    };
    let mut lines = vec![
        format!(
            "predicate  {} {}   pure: by construction   monotone: {monotone}   window: {window}",
            quote::escape(&question.name()),
            quote::escape(question.version())
        ),
        format!("           {}   digest {}", quote::escape(&question.words()), question.digest().short()),
    ];
    if let Some(Asked::Program(_)) = question.predicate().map(Predicate::asked) {
        lines.push(
            "           reads the whole state: every tick that wrote anything is a candidate".to_owned(),
        );
    }
    lines
}

/// Writes the head of a report: what is asked, and what both ends say.
pub fn head_lines(question: &Question, report: &Report) -> Vec<String> {
    let monotone = match (question.monotone(), report.candidates) {
        (Monotone::ByConstruction, _) => "by construction".to_owned(),
        (Monotone::Lifted, _) => "lifted".to_owned(),
        (Monotone::Unknown, Some(candidates)) if matches!(report.outcome, Outcome::Recovers(_)) => {
            format!("no, it recovers on this run ({} checked)", candidate_ticks(candidates))
        }
        (Monotone::Unknown, Some(candidates)) if matches!(report.outcome, Outcome::Uncertain(..)) => {
            format!("not known on this run ({} checked)", candidate_ticks(candidates))
        }
        (Monotone::Unknown, Some(candidates)) => {
            format!("on this run ({} checked for recovery)", candidate_ticks(candidates))
        }
        (Monotone::Unknown, None) => "not known".to_owned(),
    };
    let mut lines = question_lines(question, &monotone);
    lines.push(format!("ends       {}      {}", end(&report.low), end(&report.high)));
    if let Some(recoveries) = &report.recoveries {
        let stretches: Vec<String> = recoveries.iter().map(|one| stretch(one.from, one.to)).collect();
        lines.push(match list(&stretches, 12) {
            None => "lifted     to the first violation; the predicate does not recover from it".to_owned(),
            Some(stretches) => {
                format!(
                    "lifted     to the first violation; the predicate recovers: not violated at {stretches}"
                )
            }
        });
    }
    if let (Question::PolicyFlip(about), Some(allowed)) = (question, report.allowed) {
        lines.push(format!("allowed    {about} was last allowed at tick {allowed}"));
    }
    lines
}

/// Says how an obligation stands, and of one that is open whether the run can still meet it.
pub fn standing_words(standing: &Standing, ended: bool) -> String {
    let words = quote::escape(&standing.to_string());
    match standing {
        Standing::Open(_) if ended => format!("{words}; the run was closed before"),
        _ => words,
    }
}

/// Says what a progress contract says of a tick.
pub fn evaluation_words(said: &Evaluation) -> String {
    quote::escape(&said.to_string())
}

/// Returns what a progress contract says of a tick, for documents.
pub fn evaluation_json(tick: u64, said: &Evaluation) -> Value {
    let (result, score, reason, why) = match said {
        Evaluation::Ok(score) => ("ok", Some(*score), Value::Null, None),
        Evaluation::Violation(reason) => ("violation", None, reason.clone(), None),
        Evaluation::Uncertain(score, why) => ("uncertain", *score, Value::Null, Some(why.as_str())),
    };
    Value::record([
        ("tick", Value::from(tick)),
        ("result", Value::from(result)),
        ("score", Value::from(score)),
        ("reason", reason),
        ("why", Value::from(why)),
    ])
}

/// Returns how an obligation stands, for documents; null for any other predicate.
pub fn standing_json(standing: Option<&Standing>, ended: bool) -> Value {
    let Some(standing) = standing else { return Value::Null };
    let (due, why) = match standing {
        Standing::Open(due) => (*due, None),
        Standing::Unknown(_, why) => (None, Some(why.as_str())),
        _ => (None, None),
    };
    Value::record([
        ("standing", Value::from(standing.as_str())),
        ("tick", Value::from(standing.tick())),
        ("due", Value::from(due)),
        ("why", Value::from(why)),
        ("ended", Value::from(ended)),
    ])
}

/// Returns "41 candidate ticks".
pub fn candidate_ticks(n: u64) -> String {
    count(n, "candidate tick", "candidate ticks")
}

/// Writes the first so many of a list, and how many more there are.
pub fn list(items: &[String], most: usize) -> Option<String> {
    let more = items.len().saturating_sub(most);
    let shown = items[..items.len() - more].join(", ");
    match (items.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(shown),
        (false, more) => Some(format!("{shown} and {more} more")),
    }
}

fn stretch(from: u64, to: u64) -> String {
    if from == to { from.to_string() } else { format!("{from}..{to}") }
}

/// Writes the stretches of a timeline, one a line.
pub fn interval_lines(line: &Timeline) -> Vec<String> {
    let width = stretch(line.to, line.to).len() * 2 + 2;
    let mut violated = false;
    let mut lines = Vec::new();
    for Interval { from, to, verdict } in line.intervals() {
        let (_, mark) = words(&verdict);
        let note = match &verdict {
            Verdict::Ok if violated => "     <- recovered".to_owned(),
            Verdict::Uncertain(why) => format!("   {}", quote::escape(why)),
            _ => String::new(),
        };
        violated |= verdict == Verdict::Violation;
        lines.push(format!("  {:<width$}  {:<9}  {mark}{note}", stretch(from, to), word(&verdict)));
    }
    lines
}

/// Sums the verdicts of a range up: the first violation, and what cannot be judged.
pub fn sum_up(line: &Timeline) -> String {
    let intervals = line.intervals();
    let unknown = intervals.iter().filter(|interval| matches!(interval.verdict, Verdict::Uncertain(_)));
    let unknown: Vec<String> = unknown
        .map(
            |&Interval { from, to, .. }| {
                if from == to { from.to_string() } else { format!("{from} to {to}") }
            },
        )
        .collect();
    let word = if unknown.len() == 1 && !unknown[0].contains(' ') { "tick" } else { "ticks" };
    let unknown = list(&unknown, 8).map(|ticks| format!("uncertain at {word} {ticks}"));
    match (line.onset(), unknown) {
        (Some(0), None) => "first violated at tick 0 (the initial state)".to_owned(),
        (Some(tick), None) => format!("first violated at tick {tick}"),
        (Some(tick), Some(unknown)) if line.may_hide_onset() => {
            format!("violated at tick {tick}, and perhaps before; {unknown}")
        }
        (Some(tick), Some(unknown)) => format!("first violated at tick {tick}; {unknown}"),
        (None, None) => "never violated".to_owned(),
        (None, Some(unknown)) => format!("not violated where it can be judged; {unknown}"),
    }
}

/// Returns the stretches as `[from, to, word]`.
pub fn intervals_json(intervals: &[Interval]) -> Value {
    Value::array(intervals.iter().map(|Interval { from, to, verdict }| {
        Value::array([Value::from(*from), Value::from(*to), Value::from(word(verdict))])
    }))
}

/// Returns the verdicts of a run as `dendrer.predicate-test/1`.
pub fn timeline_json(run: &str, question: &Question, line: &Timeline, at: Option<u64>) -> Value {
    let intervals = line.intervals();
    let judged = !intervals.iter().any(|interval| matches!(interval.verdict, Verdict::Uncertain(_)));
    let uncertain = intervals.iter().filter_map(|interval| match &interval.verdict {
        Verdict::Uncertain(why) => {
            Some(Value::record([("tick", Value::from(interval.from)), ("why", Value::from(why.as_str()))]))
        }
        _ => None,
    });
    let recovers = intervals
        .iter()
        .skip_while(|interval| interval.verdict != Verdict::Violation)
        .any(|interval| interval.verdict == Verdict::Ok);
    document(
        "predicate-test",
        [
            ("run", Value::from(run)),
            ("predicate", question_json(question)),
            ("from", Value::from(line.from)),
            ("to", Value::from(line.to)),
            ("at", at.map_or(Value::Null, |tick| verdict_at(tick, line.at(tick)))),
            ("onset", Value::from(line.onset().filter(|_| !line.may_hide_onset()))),
            ("recovers", Value::from(recovers)),
            ("intervals", intervals_json(&intervals)),
            ("uncertain", Value::array(uncertain)),
            ("candidates", Value::from(line.judged)),
            ("certainty", Value::from(if judged { EXACT } else { "unavailable" })),
        ],
    )
}

/// Returns what identifies a question.
pub fn question_json(question: &Question) -> Value {
    Value::record([
        ("name", Value::from(question.name())),
        ("version", Value::from(question.version())),
        ("words", Value::from(question.words())),
        ("digest", Value::from(question.digest())),
        (
            "monotone",
            Value::from(match question.monotone() {
                Monotone::ByConstruction => "by construction",
                Monotone::Lifted => "lifted",
                Monotone::Unknown => "checked on this run",
            }),
        ),
    ])
}

fn verdict_at(tick: u64, verdict: &Verdict) -> Value {
    let why = match verdict {
        Verdict::Uncertain(why) => Some(("why", Value::from(why.as_str()))),
        _ => None,
    };
    Value::record(
        [("tick", Value::from(tick)), ("verdict", Value::from(word(verdict)))].into_iter().chain(why),
    )
}

fn end((tick, verdict): &(u64, Verdict)) -> String {
    let (word, mark) = words(verdict);
    format!("tick {tick} {word} {mark}")
}

/// Writes the probes, one a line, each with what is left afterwards.
pub fn probe_lines(report: &Report) -> Vec<String> {
    if report.probes.is_empty() {
        return Vec::new();
    }
    let range = report.high.0 - report.low.0;
    let mut lines = vec![format!(
        "search     {}, at most {}",
        count(range, "tick", "ticks"),
        count(u64::from(report.probes_max), "probe", "probes")
    )];
    let width = report.high.0.to_string().len();
    for (at, probe) in report.probes.iter().enumerate() {
        let (word, mark) = words(&probe.verdict);
        let left = match probe.left {
            (a, b) if a == b => format!("left {a}"),
            (a, b) => format!("left {a}..{b}"),
        };
        lines.push(format!(
            "  {}/{}  tick {:>width$}  {word}  {mark:<4}    {left}",
            at + 1,
            report.probes_max,
            probe.tick
        ));
    }
    lines
}

/// Returns the report as `dendrer.bisect/1`. `origin` is the transition at the onset, where there is one.
pub fn to_json(run: &str, question: &Question, report: &Report, origin: Option<Value>) -> Value {
    let (outcome, ticks) = match &report.outcome {
        Outcome::Onset(_) => ("onset", Value::Null),
        Outcome::Never => ("never", Value::Null),
        Outcome::Initial => ("initial", Value::Null),
        Outcome::Recovers(turns) => {
            ("recovers", Value::array(turns.iter().map(|(tick, verdict)| verdict_at(*tick, verdict))))
        }
        Outcome::Uncertain(tick, why) => {
            ("uncertain", Value::array([verdict_at(*tick, &Verdict::Uncertain(why.clone()))]))
        }
    };
    let probe = |probe: &Probe| {
        let mut object = verdict_at(probe.tick, &probe.verdict).as_object().cloned().unwrap_or_default();
        object.set("left", Value::array([Value::from(probe.left.0), Value::from(probe.left.1)]));
        Value::Object(object)
    };
    let exact = matches!(report.outcome, Outcome::Onset(_) | Outcome::Never | Outcome::Initial);
    let ends = [&report.low, &report.high].map(|(tick, verdict)| verdict_at(*tick, verdict));
    document(
        "bisect",
        [
            ("run", Value::from(run)),
            ("predicate", question_json(question)),
            ("outcome", Value::from(outcome)),
            ("onset", Value::from(report.onset())),
            ("certainty", Value::from(if exact { EXACT } else { "unavailable" })),
            ("ends", Value::array(ends)),
            ("items", Value::array(report.probes.iter().map(probe))),
            ("probes_max", Value::from(u64::from(report.probes_max))),
            ("candidates", Value::from(report.candidates)),
            ("recoveries", report.recoveries.as_deref().map_or(Value::Null, intervals_json)),
            ("allowed", Value::from(report.allowed)),
            ("scan_onset", report.scan.map_or(Value::Null, Value::from)),
            ("ticks", ticks),
            ("origin", Value::from(origin)),
        ],
    )
}
