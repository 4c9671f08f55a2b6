//! A bisect report, and the verdicts of a run, as lines and as documents.

use dendrer::ask::bisect::gather::{
    BisectAnswer, BisectFound, BisectOrigin, HardFound, RegressionAnswer, violated_at,
};
use dendrer::ask::regression::Regression;
use dendrer::bisect::{BisectOutcome, BisectQuestion, BisectReport, Probe, RunDivergence};
use dendrer::diagnosis::DiagnosisClass;
use dendrer::diff::is_marker;
use dendrer::kernel::obligation::Standing;
use dendrer::kernel::predicate::{Asked, Monotone, Predicate, Verdict, Window};
use dendrer::kernel::progress::Evaluation;
use dendrer::registry::MonotoneEvidence;
use dendrer::timeline::{Interval, Timeline};
use dendrer_object::record::Record;
use dendrer_object::value::Object;
use dendrer_object::{RunName, Value};

use crate::answer::{Answer, End, Line, Page, Style};
use crate::casebook::{recorded_json, recorded_lines};
use crate::certainty::{Certainty, reasons_json, reasons_line, reasons_words};
use crate::change::change_json;
use crate::registration::{other_line, registration_line};
use crate::table::{Align, Table};
use crate::{contributors, count, diff, document, quote, row, thousands, why};

pub use crate::verdict::{intervals_json, list, question_json, sum_up, word, words};

/// Writes what is asked: the name, how it is known to be pure and monotone, its polarity and its digest.
pub fn question_lines(question: &BisectQuestion, monotone: &str) -> Vec<String> {
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

/// Writes which run is asked, over which ticks, and where it was read.
pub fn run_line(run: &RunName, (from, to): (u64, u64), page: &Page) -> Line {
    Line::from(format!("run        {run}, ticks {from}..{to}{}", page.read_from()))
}

/// Writes the head of a report: what is asked, and what both ends say.
pub fn head_lines(question: &BisectQuestion, report: &BisectReport) -> Vec<String> {
    let monotone = match (question.monotone(), report.candidates) {
        (Monotone::ByConstruction, _) => "by construction".to_owned(),
        (Monotone::Lifted, _) => "lifted".to_owned(),
        (Monotone::Unknown, Some(candidates)) if matches!(report.outcome, BisectOutcome::Recovers(_)) => {
            format!("no, it recovers on this run ({} checked)", candidate_ticks(candidates))
        }
        (Monotone::Unknown, Some(candidates)) if matches!(report.outcome, BisectOutcome::Uncertain(..)) => {
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
    if let (BisectQuestion::PolicyFlip(about), Some(allowed)) = (question, report.allowed) {
        lines.push(format!("allowed    {about} was last allowed at tick {allowed}"));
    }
    lines
}

/// Writes the standing of an obligation; for an open one also whether the run can still meet it.
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

/// Returns the standing of an obligation, for documents; null for any other predicate.
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

/// How sure an answer is that uses so many results whose status was read from prose.
pub(crate) fn of_texts(from_text: u64) -> Certainty {
    if from_text == 0 { Certainty::Exact } else { Certainty::Heuristic }
}

/// Says what an answer uses that one rule read from prose, and what to do about it.
pub fn from_text_line(from_text: u64) -> Option<String> {
    let results = count(from_text, "result", "results");
    (from_text > 0).then(|| {
        format!(
            "HEURISTIC  the status of {results} was read from prose; a pack says how its tools fail: `tools: {{T: {{failed: EXPR}}}}`"
        )
    })
}

fn stretch(from: u64, to: u64) -> String {
    if from == to { from.to_string() } else { format!("{from}..{to}") }
}

/// Writes the stretches of a timeline, one a line.
pub fn interval_lines(line: &Timeline) -> Vec<String> {
    let width = stretch(line.to, line.to).len() * 2 + 2;
    let mut violated = false;
    let mut lines = Vec::new();
    for Interval { from, to, verdict } in line.reasons() {
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

/// Returns the verdicts of a run as `dendrer.predicate-test/1`.
///
/// `from_text` is how many results it uses whose status was read from prose.
pub fn timeline_json(
    run: &str,
    question: &BisectQuestion,
    line: &Timeline,
    at: Option<u64>,
    from_text: u64,
) -> Value {
    let intervals = line.intervals();
    let judged = !intervals.iter().any(|interval| matches!(interval.verdict, Verdict::Uncertain(_)));
    let reasons = line.reasons();
    let uncertain = reasons_json(&reasons);
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
            ("uncertain", uncertain),
            ("candidates", Value::from(line.judged)),
            ("certainty", Value::from(of_texts(from_text).unless(!judged))),
            ("status_from_text", Value::from(from_text)),
        ],
    )
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
/// `said` is what a progress contract says at each probe.
fn probe_lines(report: &BisectReport, said: &[(u64, Evaluation)]) -> Vec<Line> {
    if report.probes.is_empty() {
        return Vec::new();
    }
    let range = report.high.0 - report.low.0;
    let probes = count(u64::from(report.probes_max), "probe", "probes");
    let mut lines =
        vec![Line::from(format!("search     {}, at most {probes}", count(range, "tick", "ticks")))];
    let width = report.high.0.to_string().len();
    for (at, probe) in report.probes.iter().enumerate() {
        let (word, mark) = words(&probe.verdict);
        let left = match probe.left {
            (a, b) if a == b => format!("left {a}"),
            (a, b) => format!("left {a}..{b}"),
        };
        let (at, max, tick) = (at + 1, report.probes_max, probe.tick);
        let style = if mark == "FAIL" { Style::Bad } else { Style::Good };
        let said = said.iter().find(|(at, _)| *at == tick).map(|(_, said)| evaluation_words(said));
        let said = said.map_or_else(String::new, |said| format!("    {said}"));
        let line = format!("  {at}/{max}  tick {tick:>width$}  {word}  {mark:<4}    {left}{said}");
        lines.push(Line::styled(style, line));
    }
    lines
}

/// Returns what was found as `dendrer.bisect/1`.
fn found_json(found: &BisectFound) -> Object {
    let BisectFound { run, question, report, ended, from_text, origin } = found;
    let (outcome, ticks) = match &report.outcome {
        BisectOutcome::Onset(_) => ("onset", Value::Null),
        BisectOutcome::Never => ("never", Value::Null),
        BisectOutcome::Initial => ("initial", Value::Null),
        BisectOutcome::Recovers(turns) => {
            ("recovers", Value::array(turns.iter().map(|(tick, verdict)| verdict_at(*tick, verdict))))
        }
        BisectOutcome::Uncertain(tick, why) => {
            // The onset lies between the two, if a later tick is known to be violated.
            let first = verdict_at(*tick, &Verdict::Uncertain(why.clone()));
            let certain = report.first_certain.map(|tick| verdict_at(tick, &Verdict::Violation));
            ("uncertain", Value::array([first].into_iter().chain(certain)))
        }
    };
    let probe = |probe: &Probe| {
        let mut object = verdict_at(probe.tick, &probe.verdict).as_object().cloned().unwrap_or_default();
        object.set("left", Value::array([Value::from(probe.left.0), Value::from(probe.left.1)]));
        Value::Object(object)
    };
    let exact =
        matches!(report.outcome, BisectOutcome::Onset(_) | BisectOutcome::Never | BisectOutcome::Initial);
    let ends = [&report.low, &report.high].map(|(tick, verdict)| verdict_at(*tick, verdict));
    let members = document(
        "bisect",
        [
            ("run", Value::from(run.as_str())),
            ("predicate", question_json(question)),
            ("outcome", Value::from(outcome)),
            ("onset", Value::from(report.onset())),
            ("certainty", Value::from(of_texts(*from_text).unless(!exact))),
            ("status_from_text", Value::from(*from_text)),
            ("ends", Value::array(ends)),
            ("items", Value::array(report.probes.iter().map(probe))),
            ("probes_max", Value::from(u64::from(report.probes_max))),
            ("candidates", Value::from(report.candidates)),
            ("recoveries", report.recoveries.as_deref().map_or(Value::Null, intervals_json)),
            ("allowed", Value::from(report.allowed)),
            ("scan_onset", report.scan.map_or(Value::Null, Value::from)),
            ("ticks", ticks),
            ("origin", Value::from(origin.as_ref().map(origin_json))),
            ("obligation", standing_json(report.standing.as_ref(), *ended)),
        ],
    );
    let mut members = members.as_object().cloned().unwrap_or_default();
    if !report.unjudged.is_empty() {
        members.set("reasons", reasons_json(&report.unjudged));
    }
    if let BisectQuestion::Divergence(found) = question {
        members.set("ignored", diff::ignored_json(&found.ignored));
        members.set("left_out", diff::left_out_json(&found.left_out));
    }
    members
}

fn origin_json(origin: &BisectOrigin) -> Value {
    let row = row::row(&origin.record).to_json(&origin.record);
    let mut members = row.as_object().cloned().unwrap_or_default();
    members.set("changes", Value::array(origin.changes.iter().map(change_json)));
    Value::Object(members)
}

/// Writes the transition at an onset: what it said and what it wrote.
fn origin_lines(origin: &BisectOrigin, certainty: &str, page: &Page) -> Vec<Line> {
    let (tick, record) = (origin.tick, &origin.record);
    let content = record.content();
    let row = row::row(record);
    let title = Line::styled(Style::Strong, format!("ORIGIN ({certainty})  tick {tick}  {}", row.type_name))
        .then(format!("  by {}   hash {}", row.agent, record.id().short()));
    let at = |inner: &str| content.get("intent").and_then(|intent| intent.get(inner));
    let description = at("description").map(|said| format!("  intent {}", quote::value(said)));
    let confidence = at("confidence").and_then(Value::as_f64).map(|said| format!("  confidence {said:.3}"));
    let notes = at("uncertainty_notes").filter(|notes| **notes != Value::Null);
    let notes = notes.map(|notes| format!("  uncertainty {}", quote::value(notes)));
    let said = [description, confidence, notes].into_iter().flatten().map(Line::from);
    let changes = origin.changes.iter().map(|change| page.change(change).after("  "));
    [title].into_iter().chain(said).chain(changes).collect()
}

/// The exit code of a report: found, not there, or no answer that can be relied on.
fn end_of(report: &BisectReport) -> End {
    match report.outcome {
        BisectOutcome::Onset(_) | BisectOutcome::Initial => End::Answered,
        BisectOutcome::Never => End::No,
        BisectOutcome::Recovers(_) | BisectOutcome::Uncertain(..) => End::Unknown,
    }
}

/// The command that asked, for commands to type next.
#[derive(Debug, Clone, Default)]
pub struct BisectCommand {
    /// The run as it was written.
    pub run: String,
    /// The flags of the question.
    pub question: Vec<String>,
    /// Whether the answer is recorded.
    pub records: bool,
}

impl BisectCommand {
    /// Returns the command with more flags.
    pub fn with(&self, flags: &[&str]) -> Vec<String> {
        let begin = ["dendrer", "bisect", &self.run].map(str::to_owned);
        let flags = flags.iter().map(|flag| (*flag).to_owned());
        begin.into_iter().chain(self.question.iter().cloned()).chain(flags).collect()
    }
}

/// The answer to a bisect, with the command that asked.
#[derive(Debug, Clone, Copy)]
pub struct BisectShown<'a> {
    /// The answer.
    pub answer: &'a BisectAnswer,
    /// The command.
    pub command: &'a BisectCommand,
    /// The findings in the casebook.
    pub recorded: &'a [Record],
}

impl BisectShown<'_> {
    /// Returns the document as it is written into the casebook.
    pub fn casebook_object(&self) -> Object {
        let BisectAnswer { found, since, chain, contributors, offer, decided, records, .. } = self.answer;
        let mut document = found_json(found);
        document.set("since", Value::from(*since));
        document.set("chain", Value::from(chain.as_ref().map(|chain| why::chain_json(records, chain))));
        let BisectAnswer { upstream, allows, .. } = self.answer;
        let flip = allows.as_ref().zip(found.report.onset());
        let flip = flip.map(|(allows, onset)| contributors::flip_json(records, onset, allows));
        let contributors = contributors.as_ref().map(|found| contributors::to_json(records, found)).or(flip);
        document.set("contributors", Value::from(contributors));
        document.set("upstream", why::upstream_json(records, upstream));
        let offer = offer.as_ref().map(|offer| contributors::diagnosis_json(offer, *decided));
        document.set("diagnosis", Value::from(offer));
        if let Some(said) = &self.answer.evaluations {
            let said = said.iter().map(|(at, said)| evaluation_json(*at, said));
            document.set("evaluations", Value::array(said));
        }
        if let Some(argv) = self.answer.suggestion() {
            let words = argv.iter().map(|word| Value::from(word.as_str()));
            document.set("suggestion", Value::record([("argv", Value::array(words))]));
        }
        if let BisectQuestion::Divergence(found) = &found.question {
            document.set("divergence", Value::from(found.first.as_ref().map(diff::item_json)));
        }
        if let Some(other) = self.answer.other_in_pack {
            document.set("other_in_pack", Value::from(other));
        }
        document
    }

    fn head(&self, page: &Page) -> Vec<Line> {
        let BisectFound { run, question, report, ended, .. } = &self.answer.found;
        let mut head = head_lines(question, report);
        if let Some(other) = self.answer.other_in_pack {
            head.insert(2, other_line(other));
        }
        if let Some(registered) = &self.answer.registered {
            let here = match (&registered.known, &report.outcome) {
                (MonotoneEvidence::Recovers(_), BisectOutcome::Recovers(_)) => "",
                (MonotoneEvidence::Recovers(_), _) if question.monotone() == Monotone::Unknown => {
                    ", and not on this run"
                }
                _ => "",
            };
            head.insert(2, format!("           {}{here}", registration_line(registered)));
        }
        if let Some(standing) = &report.standing {
            head.push(format!("owed       {} (at tick {})", standing_words(standing, *ended), report.high.0));
        }
        let evaluations = self.answer.evaluations.as_deref().unwrap_or_default();
        let probed: Vec<u64> = report.probes.iter().map(|probe| probe.tick).collect();
        let shown = evaluations.iter().filter(|(tick, _)| !probed.contains(tick));
        head.extend(shown.map(|(tick, said)| evaluated_line(*tick, said)));
        let first = run_line(run, (report.low.0, report.high.0), page);
        [first]
            .into_iter()
            .chain(head.into_iter().map(Line::from))
            .chain(probe_lines(report, evaluations))
            .collect()
    }

    fn onset_lines(&self, page: &Page) -> Vec<Line> {
        let BisectAnswer { found, contributors, chain, records, .. } = self.answer;
        let mut lines = Vec::new();
        lines.extend(
            found
                .origin
                .iter()
                .flat_map(|origin| origin_lines(origin, of_texts(found.from_text).as_str(), page)),
        );
        lines.extend(from_text_line(found.from_text).map(Line::from));
        if let BisectQuestion::Divergence(found) = &found.question {
            lines.extend(divergence_lines(found, page));
        }
        let mut contributors: Vec<String> =
            contributors.iter().flat_map(|found| contributors::lines(records, found)).collect();
        let BisectAnswer { upstream, allows, .. } = self.answer;
        if let (BisectQuestion::PolicyFlip(about), Some(onset), Some(allows)) =
            (&found.question, found.report.onset(), allows)
        {
            contributors.extend(contributors::flip_lines(records, about.as_str(), onset, allows));
        }
        lines.extend(contributors.iter().map(|line| page.fit(line)));
        lines.extend(why::upstream_lines(records, upstream).iter().map(|line| page.fit(line)));
        for line in
            chain.iter().flat_map(|chain| why::chain_lines(records, chain, page.width.map(|width| width / 3)))
        {
            lines.push(page.width.map_or(line.clone(), |width| quote::shorten(&line, width)).into());
        }
        lines.extend(self.diagnosis_lines());
        let suggestion = self.answer.suggestion();
        lines.extend(suggestion.map(|argv| Line::from(format!("SUGGESTION  {}", quote::shell(&argv)))));
        lines
    }

    fn diagnosis_lines(&self) -> Vec<Line> {
        let Some(offer) = &self.answer.offer else { return Vec::new() };
        let asked = label(&self.answer.found.question);
        let lines = contributors::diagnosis_lines(offer, self.answer.decided, &asked).into_iter();
        let mut lines: Vec<Line> = lines
            .map(|line| match line.starts_with("DIAGNOSIS") || line.starts_with("DECIDED") {
                true => Line::styled(Style::Strong, line),
                false => Line::from(line),
            })
            .collect();
        if let (Some(or), None) = (&offer.or, self.answer.decided) {
            let evidence = quote::escape(&or.evidence);
            lines.push(Line::styled(Style::Strong, format!("OR         looks {}: {evidence}", or.class)));
            let fork = self.answer.fork_for(or.class);
            lines.extend(fork.map(|argv| Line::from(format!("  {}", quote::shell(&argv)))));
        }
        if self.answer.class() == Some(DiagnosisClass::Foundational) && !self.command.records {
            lines.push(Line::help(self.command.with(&["--diagnosis", "foundational", "--record"])));
        }
        lines
    }
}

impl Answer for BisectShown<'_> {
    fn document(&self) -> Value {
        let mut document = self.casebook_object();
        document.set("recorded", recorded_json(self.recorded));
        Value::Object(document)
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let BisectFound { question, report, .. } = &self.answer.found;
        let mut lines = self.head(page);
        match &report.outcome {
            BisectOutcome::Onset(_) => lines.extend(self.onset_lines(page)),
            BisectOutcome::Initial if report.low.0 == 0 => {
                lines.push("ORIGIN (exact)  tick 0  the initial state of the range is in violation".into());
                lines.push("  no transition brought it about: the run began with it".into());
                lines.extend(self.diagnosis_lines());
            }
            BisectOutcome::Initial => {
                let tick = report.low.0;
                lines.push(match self.answer.since {
                    Some(since) => format!(
                        "IN VIOLATION already at tick {tick}, from tick {since} on part of the contract: no transition under it brought that about"
                    ),
                    None => format!(
                        "IN VIOLATION already at tick {tick}, where the range begins: the origin is there or before"
                    ),
                }.into());
                lines.push(Line::help(self.command.with(&["--from", "0"])));
            }
            BisectOutcome::Never => lines.push(never_words(question, report).into()),
            BisectOutcome::Recovers(turns) => lines.extend(turn_lines(turns)),
            BisectOutcome::Uncertain(..) => lines.extend(unjudged_lines(report)),
        }
        if let BisectQuestion::Divergence(found) = question {
            lines.extend(left_out_lines(found));
        }
        if !matches!(report.outcome, BisectOutcome::Onset(_)) {
            lines.extend(from_text_line(self.answer.found.from_text).map(Line::from));
        }
        if let Some(found) = report.scan {
            let is_known = !matches!(report.outcome, BisectOutcome::Uncertain(..));
            let word = match found {
                Some(tick) if is_known => format!("first violation at tick {tick}"),
                Some(tick) => format!("first violation that is known at tick {tick}"),
                None if is_known => "no violation".to_owned(),
                None => "no tick is known to be violated, and some cannot be judged".to_owned(),
            };
            let ticks = thousands(report.high.0 - report.low.0 + 1);
            lines.push(format!("scan       {ticks} ticks judged: {word}").into());
        }
        if let BisectOutcome::Onset(tick) = &report.outcome {
            let run = self.command.run.split('@').next().unwrap_or(&self.command.run);
            lines.push(Line::help(["dendrer", "show", &format!("{run}@{tick}")]));
        }
        lines.extend(recorded_lines(self.recorded).into_iter().map(Line::from));
        lines
    }

    fn end(&self) -> End {
        end_of(&self.answer.found.report)
    }
}

/// Writes why no answer is known: each reason with its ticks.
fn unjudged_lines(report: &BisectReport) -> Vec<Line> {
    let line = |words: String| Line::styled(Style::Warn, format!("UNKNOWN    {}", quote::escape(&words)));
    reasons_words(&report.unjudged).into_iter().map(line).collect()
}

fn evaluated_line(tick: u64, said: &Evaluation) -> String {
    format!("evaluated  tick {tick}  {}", evaluation_words(said))
}

fn turn_lines(turns: &[(u64, Verdict)]) -> Vec<Line> {
    let line = |(tick, verdict): &(u64, Verdict)| {
        let mark = if *verdict == Verdict::Violation {
            "FAIL"
        } else {
            "OK     <- recovered: binary search could return a wrong tick"
        };
        Line::from(format!("  tick {tick}  {:<9}  {mark}", verdict.to_string()))
    };
    let more = (turns.len() > 12).then(|| Line::from(format!("  ({} more turns)", turns.len() - 12)));
    turns.iter().take(12).map(line).chain(more).collect()
}

fn never_words(question: &BisectQuestion, report: &BisectReport) -> String {
    let high = report.high.0;
    if let BisectQuestion::Divergence(found) = question {
        let other = &found.from;
        return match &found.first {
            Some(pair) if pair.b.as_ref().is_some_and(is_marker) => {
                format!("no divergence up to tick {high}: after it {other} changes the state by a marker")
            }
            Some(pair) if pair.a.is_none() => {
                format!("no divergence: only {other} goes on after tick {high}")
            }
            _ => format!("no divergence: each transition up to tick {high} is what {other} has beside it"),
        };
    }
    if let BisectQuestion::PolicyFlip(about) = question {
        return match report.allowed {
            Some(tick) => format!(
                "no violation: {about} was allowed at tick {tick}, and never denied or escalated after"
            ),
            None => format!("no violation: {about} was never allowed, so nothing flipped"),
        };
    }
    let why = match question.monotone() {
        _ if report.standing.is_some() => {
            return format!("no violation: nothing was missed up to tick {high}");
        }
        Monotone::ByConstruction => "the predicate cannot recover in between",
        Monotone::Lifted | Monotone::Unknown => "every tick that wrote what it reads was checked",
    };
    format!("no violation: tick {} and tick {high} are both compliant, and {why}", report.low.0)
}

/// Writes how the transition at the onset differs from the one of the other run.
fn divergence_lines(found: &RunDivergence, page: &Page) -> Vec<Line> {
    let line = |line: diff::DiffLine| {
        let mut cut = false;
        let what = match &line.sides {
            Some((a, b)) => {
                let sides = diff::fit_sides(a, b, page);
                cut = sides.cut;
                format!("{}  {}", line.place, sides.text())
            }
            None => format!("{} {}{}", line.type_name, line.place, line.note),
        };
        let text = format!("  differs from {} ({})  {}", found.from, line.kind, what.trim_end());
        Line { cut, ..Line::from(text) }
    };
    found.first.iter().flat_map(diff::lines).map(line).collect()
}

/// Says what was left out of the comparison of two runs.
fn left_out_lines(found: &RunDivergence) -> impl Iterator<Item = Line> {
    let ignored = diff::ignored_line(&found.ignored);
    ignored.into_iter().chain(diff::left_out_line(&found.left_out)).map(Line::from)
}

/// Returns the name of a question, or the text of one that has none.
fn label(question: &BisectQuestion) -> String {
    match question.predicate() {
        Some(predicate) if predicate.name() == "expression" => {
            predicate.expr().map_or_else(|| question.name(), |expr| expr.text().to_owned())
        }
        _ => question.name(),
    }
}

/// The onsets of several questions in one run.
#[derive(Debug, Clone)]
pub struct BisectAll {
    /// The run.
    pub run: RunName,
    /// The answer to each question.
    pub found: Vec<BisectFound>,
}

impl BisectAll {
    fn worst(&self) -> u64 {
        self.found.iter().map(|found| code(&found.report)).max().unwrap_or(0)
    }
}

fn code(report: &BisectReport) -> u64 {
    match end_of(report) {
        End::Answered => 0,
        End::No => 1,
        End::Unknown | End::Refused | End::Problem(_) => 6,
    }
}

impl Answer for BisectAll {
    fn document(&self) -> Value {
        let items = self.found.iter().map(|found| Value::Object(found_json(found)));
        let members = [
            ("run", Value::from(self.run.as_str())),
            ("exit", Value::from(self.worst())),
            ("items", Value::array(items)),
        ];
        document("bisect-all", members)
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let left = Align::Left;
        let mut table = Table::new([
            ("predicate", left),
            ("digest", left),
            ("onset", Align::Right),
            ("probes", Align::Right),
            ("answer", left),
        ]);
        for found in &self.found {
            let BisectFound { question, report, .. } = found;
            let recoveries = report.recoveries.as_ref();
            let lifted = recoveries.is_some_and(|recoveries| !recoveries.is_empty());
            let lifted = if lifted { "   (lifted: it recovers)" } else { "" };
            table.row(vec![
                quote::escape(&label(question)),
                question.digest().short(),
                report.onset().map_or_else(|| "-".to_owned(), |tick| tick.to_string()),
                report.probes.len().to_string(),
                format!("{}{lifted}{}", quote::escape(&answer_words(found)), heuristic(found)),
            ]);
        }
        let with = |wanted| self.found.iter().filter(|found| code(&found.report) == wanted).count();
        let all = thousands(self.found.len() as u64);
        let sum = format!("{} of {all} violated, {} never, {} refused", with(0), with(1), with(6));
        let sum = format!("{sum}{}", page.of_run(&self.run));
        table.lines(page.width).0.into_iter().chain([sum]).map(Line::from).collect()
    }

    fn end(&self) -> End {
        match self.worst() {
            0 => End::Answered,
            1 => End::No,
            _ => End::Unknown,
        }
    }
}

/// Marks an answer that uses statuses that were read from prose.
fn heuristic(found: &BisectFound) -> &'static str {
    if found.from_text > 0 { "   (heuristic)" } else { "" }
}

fn answer_words(found: &BisectFound) -> String {
    let report = &found.report;
    match &report.outcome {
        BisectOutcome::Onset(_) => {
            let row = found.origin.as_ref().map(|origin| row::row(&origin.record)).unwrap_or_default();
            format!("{} by {}", row.type_name, row.agent)
        }
        BisectOutcome::Initial => "the initial state of the range is in violation".to_owned(),
        BisectOutcome::Never => match &report.standing {
            Some(standing) => standing_words(standing, found.ended),
            None => "never violated".to_owned(),
        },
        BisectOutcome::Recovers(turns) => {
            let ticks: Vec<String> = turns.iter().map(|(tick, _)| tick.to_string()).collect();
            format!("REFUSED: it recovers (turns at {})", list(&ticks, 8).unwrap_or_default())
        }
        BisectOutcome::Uncertain(..) => {
            format!("REFUSED: uncertain at {}", reasons_line(&report.unjudged))
        }
    }
}

const HEURISTIC: &str =
    "HEURISTIC  a score says how far along a run seems to be; nothing that is called exact rests on it";

/// Returns the word for an outcome in documents.
fn outcome_word(is_unknown: bool, report: &BisectReport) -> &'static str {
    match report.outcome {
        _ if is_unknown => "uncertain",
        BisectOutcome::Onset(_) => "onset",
        BisectOutcome::Never => "never",
        BisectOutcome::Initial => "initial",
        BisectOutcome::Recovers(_) | BisectOutcome::Uncertain(..) => "uncertain",
    }
}

/// Says what a hard predicate says of a range.
fn hard_words(report: &BisectReport, sure: &str) -> String {
    match &report.outcome {
        BisectOutcome::Onset(tick) => format!("first violated at tick {tick} ({sure})"),
        BisectOutcome::Initial => format!("in violation already at tick {} ({sure})", report.low.0),
        BisectOutcome::Uncertain(..) => {
            format!("cannot be judged at {}", quote::escape(&reasons_line(&report.unjudged)))
        }
        BisectOutcome::Never | BisectOutcome::Recovers(_) => format!("not violated ({sure})"),
    }
}

/// A regression, with the run as it was written.
#[derive(Debug, Clone, Copy)]
pub struct RegressionShown<'a> {
    /// The answer.
    pub answer: &'a RegressionAnswer,
    /// The run as it was written.
    pub run: &'a str,
}

impl RegressionShown<'_> {
    fn regression(&self) -> Option<&Regression> {
        match &self.answer.found.question {
            BisectQuestion::Regression(found) => Some(found),
            _ => None,
        }
    }
}

impl Answer for RegressionShown<'_> {
    fn document(&self) -> Value {
        let report = &self.answer.found.report;
        let mut document = found_json(&self.answer.found);
        let Some(found) = self.regression() else { return Value::Object(document) };
        let HardFound { predicate: winner, report: hard, from_text } = self.answer.decisive();
        // The certainty is that of the predicate that won, and not that of the score.
        let certainty = of_texts(*from_text).unless(self.answer.unknown().is_some());
        document.set("certainty", Value::from(certainty));
        document.set("status_from_text", Value::from(*from_text));
        document.set("outcome", Value::from(outcome_word(self.answer.unknown().is_some(), hard)));
        document.set("onset", Value::from(hard.onset()));
        document.set("origin", Value::from(self.answer.origin.as_ref().map(origin_json)));
        let ends = [(report.low.0, &found.first), (report.high.0, &found.last)];
        let fell = found.fell.as_ref().map(|fell| (fell.tick, &fell.said));
        let said = ends.into_iter().chain(fell).map(|(tick, said)| evaluation_json(tick, said));
        document.set("evaluations", Value::array(said));
        let asked = self.answer.hard.iter().map(|HardFound { predicate, report, .. }| {
            Value::record([
                ("name", Value::from(predicate.name())),
                ("version", Value::from(predicate.version())),
                ("digest", Value::from(predicate.digest())),
                ("outcome", Value::from(outcome_word(false, report))),
                ("onset", Value::from(report.onset())),
            ])
        });
        let regression = Value::record([
            ("metric", Value::from(found.metric.as_str())),
            ("tolerance", Value::from(found.tolerance)),
            ("best", Value::from(found.best.map(|(score, _)| score))),
            ("best_tick", Value::from(found.best.map(|(_, tick)| tick))),
            ("hard", Value::array(asked)),
            ("agree", Value::from(self.answer.agree())),
            ("score_onset", Value::from(report.onset())),
            ("score_certainty", Value::from(Certainty::Heuristic)),
            ("takes_precedence", Value::from(winner.name())),
        ]);
        document.set("regression", regression);
        Value::Object(document)
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let BisectFound { run, question, report, origin, .. } = &self.answer.found;
        let Some(found) = self.regression() else { return Vec::new() };
        let mut lines = vec![Line::styled(Style::Warn, HEURISTIC)];
        lines.push(run_line(run, (report.low.0, report.high.0), page));
        lines.extend(head_lines(question, report).into_iter().map(Line::from));
        let ends = [(report.low.0, &found.first), (report.high.0, &found.last)];
        lines.extend(ends.map(|(tick, said)| Line::from(evaluated_line(tick, said))));
        lines.extend(probe_lines(report, &[]));
        let metric = &found.metric;
        match (&found.fell, &report.outcome) {
            (_, BisectOutcome::Uncertain(..)) => lines.extend(unjudged_lines(report)),
            (Some(fell), _) => {
                let origin = origin.iter().filter(|origin| origin.tick > 0);
                lines.extend(origin.flat_map(|origin| origin_lines(origin, "heuristic", page)));
                let best = found
                    .best
                    .map_or_else(String::new, |(score, tick)| format!("{score:.3} at tick {tick}, then "));
                lines.push(format!("  {metric}  {best}{}", evaluation_words(&fell.said)).into());
            }
            (None, _) => {
                let high = report.high.0;
                lines.push(format!("no regression: {metric} never fell up to tick {high}").into());
            }
        }
        for HardFound { predicate, report, from_text } in &self.answer.hard {
            let (name, version) = (quote::escape(predicate.name()), quote::escape(predicate.version()));
            lines.push(
                format!("HARD       {name} {version}: {}", hard_words(report, of_texts(*from_text).as_str()))
                    .into(),
            );
        }
        let HardFound { predicate: winner, report: hard, from_text } = self.answer.decisive();
        let sure = of_texts(*from_text).as_str();
        let name = quote::escape(winner.name());
        lines.push(match (self.answer.agree(), violated_at(hard)) {
            (true, Some(tick)) => {
                format!("AGREE      the score and {name} name tick {tick} ({sure}, by {name})").into()
            }
            (true, None) => format!("AGREE      the score never fell, and no hard predicate is violated ({sure})").into(),
            (false, Some(tick)) => Line::styled(
                Style::Warn,
                format!("DISAGREE   {name} takes precedence: the onset is tick {tick} ({sure})"),
            ),
            (false, None) if self.answer.unknown().is_some() => {
                Line::styled(Style::Warn, "DISAGREE   nothing is known to be violated, and not all can be judged")
            }
            (false, None) => Line::styled(
                Style::Warn,
                format!("DISAGREE   the hard predicates take precedence: no onset ({sure}); a score that fell is a hint"),
            ),
        });
        let most =
            self.answer.hard.iter().map(|hard| hard.from_text).chain([self.answer.found.from_text]).max();
        lines.extend(from_text_line(most.unwrap_or(0)).map(Line::from));
        if hard.onset().is_some() {
            lines.push(Line::help(["dendrer", "bisect", self.run, "--predicate", winner.name()]));
        }
        lines
    }

    fn end(&self) -> End {
        if self.answer.unknown().is_some() { End::Unknown } else { end_of(&self.answer.decisive().report) }
    }
}
