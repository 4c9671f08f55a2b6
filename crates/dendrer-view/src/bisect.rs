//! A bisect report, and the verdicts of a run, as lines and as documents.

use dendrer::Error;
use dendrer::ask::bisect::gather::{
    BisectAnswer, BisectFound, BisectOrigin, HardFound, RegressionAnswer, Suggestion, violated_at,
};
use dendrer::ask::bisect::question::{BisectQuestion, BisectReply, BisectReplyKind};
use dendrer::ask::regression::Regression;
use dendrer::bisect::{BisectOutcome, BisectReport, BisectSubject, Probe, RunDivergence};
use dendrer::casebook::diagnosis::DiagnosisClass;
use dendrer::casebook::{self, Bisected};
use dendrer::kernel::obligation::Standing;
use dendrer::kernel::predicate::{Asking, Monotone, Predicate, Verdict, Window};
use dendrer::kernel::progress::Evaluation;
use dendrer::problem::Problem;
use dendrer::registry::MonotoneEvidence;
use dendrer::source::{Desk, clean_value};
use dendrer::timeline::{Interval, Timeline};
use dendrer_object::document::Either;
use dendrer_object::record::Record;
use dendrer_object::{Digest, Pointer, RunName, Value, document};

use self::words::{label, never_words, unjudged_lines};
use crate::answer::{Answer, End, Line, Page, Style};
use crate::casebook::{RecordedObject, recorded_lines, recorded_objects};
use crate::certainty::{Certainty, ReasonObject, reasons, reasons_line};
use crate::change::{ChangeObject, ShownChange};
use crate::contributors::{ContributorsObject, DiagnosisObject, FlipObject};
use crate::diff::{IgnoredPlace, PairObject, ignored_places};
use crate::first_seen::{FirstSeenMembers, moved_lines, seen_lines};
use crate::registration::{other_line, registration_line};
use crate::row::RowObject;
use crate::table::{Align, Table};
use crate::verdict::{AskedObject, Stretch, TickVerdict, list, stretches, word, words};
use crate::why::{ChainObject, SourceObject, UpstreamObject, source_line};
use crate::{change, contributors, count, diff, quote, row, thousands, why};

mod paper;
mod words;

/// Writes what is asked: the name, how it is known to be pure and monotone, its polarity and its digest.
pub fn question_lines(question: &BisectSubject, monotone: &str) -> Vec<String> {
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
    if let Some(Asking::Program(_)) = question.predicate().map(Predicate::asked) {
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

/// Writes how it is known that a predicate stays violated once it is.
fn monotone_words(question: &BisectSubject, report: &BisectReport) -> String {
    match (question.monotone(), report.candidates) {
        (Monotone::ByConstruction, _) => "it cannot recover".to_owned(),
        (Monotone::Lifted, _) => "lifted to the first violation".to_owned(),
        (Monotone::Unknown, Some(candidates)) => {
            let ticks = candidate_ticks(candidates);
            match report.outcome {
                BisectOutcome::Recovers(_) => format!("it recovers on this run ({ticks} checked)"),
                BisectOutcome::Uncertain(..) => format!("whether it recovers is unknown ({ticks} checked)"),
                _ if candidates == 1 => format!("{ticks} does not recover"),
                _ => format!("{ticks} do not recover"),
            }
        }
        (Monotone::Unknown, None) => "whether it recovers is unknown".to_owned(),
    }
}

/// Writes how an answer was found: what was asked of which ticks, what both ends say, and each probe.
fn search_lines(found: &BisectFound, said: &[(u64, Evaluation)], page: &Page) -> Vec<Line> {
    let BisectFound { run, question, report, ended, .. } = found;
    let (name, version) = (quote::escape(&question.name()), quote::escape(question.version()));
    let is_text = question.predicate().is_some_and(|predicate| predicate.name() == "expression");
    let words = quote::escape(&question.words());
    let asked = if is_text { words.clone() } else { format!("{name} {version}").trim_end().to_owned() };
    let from = page.sources.iter().map(|path| format!(", {}", quote::escape(path))).collect::<String>();
    let (low, high) = (report.low.0, report.high.0);
    let mut lines = vec![
        Line::styled(Style::Strong, "SEARCH")
            .then(format!("  {asked}, in ticks {low}..{high} of {run}{from}")),
    ];
    lines.extend((!is_text).then(|| Line::from(format!("  {words}"))));
    if question.window() == Window::Before {
        lines.push("  asked of the state before each tick".into());
    }
    lines.push(
        format!(
            "  pure by construction; {}; digest {}",
            monotone_words(question, report),
            question.digest().short()
        )
        .into(),
    );
    if let Some(Asking::Program(_)) = question.predicate().map(Predicate::asked) {
        lines.push("  reads the whole state: every tick that wrote anything is a candidate".into());
    }
    let probes = match report.probes.is_empty() {
        true => String::new(),
        false => format!("; at most {}", count(u64::from(report.probes_max), "probe", "probes")),
    };
    lines.push(format!("  ends {}, {}{probes}", end(&report.low), end(&report.high)).into());
    if let Some(recoveries) = &report.recoveries {
        let stretches: Vec<String> = recoveries.iter().map(|one| stretch(one.from, one.to)).collect();
        let most = if page.width.is_none() || page.full { stretches.len() } else { TURNS };
        lines.push(match list(&stretches, most) {
            None => "  it does not recover from the first violation".into(),
            Some(stretches) => Line::from(format!("  it recovers: not violated at {stretches}")),
        });
    }
    if let (BisectSubject::PolicyFlip(about), Some(allowed)) = (question, report.allowed) {
        lines.push(format!("  {about} was last allowed at tick {allowed}").into());
    }
    if let Some(standing) = &report.standing {
        lines.push(format!("  owed {} (at tick {})", standing_words(standing, *ended), report.high.0).into());
    }
    let probed: Vec<u64> = report.probes.iter().map(|probe| probe.tick).collect();
    let shown = said.iter().filter(|(tick, _)| !probed.contains(tick));
    lines.extend(shown.map(|(tick, said)| Line::from(evaluated_line(*tick, said))));
    lines.extend(probe_lines(report, said));
    if let Some(found) = report.scan {
        lines.push(format!("  scan: {}", scan_words(found, report)).into());
    }
    lines
}

/// Writes what judging every tick found.
fn scan_words(found: Option<u64>, report: &BisectReport) -> String {
    let is_known = !matches!(report.outcome, BisectOutcome::Uncertain(..));
    let word = match found {
        Some(tick) if is_known => format!("first violation at tick {tick}"),
        Some(tick) => format!("first violation that is known at tick {tick}"),
        None if is_known => "no violation".to_owned(),
        None => "no tick is known to be violated, and some cannot be judged".to_owned(),
    };
    format!("{} ticks judged: {word}", thousands(report.high.0 - report.low.0 + 1))
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

document! {
    /// The verdict of a progress contract at a tick
    pub object EvaluationObject(at: u64, said: &Evaluation) {
        let (word, points, because, unclear) = match said {
            Evaluation::Ok(score) => ("ok", Some(*score), Value::Null, None),
            Evaluation::Violation(reason) => ("violation", None, reason.clone(), None),
            Evaluation::Uncertain(score, why) => ("uncertain", *score, Value::Null, Some(why.as_str())),
        };
        /// The tick
        tick: u64 = at,
        /// The verdict
        result: ["ok" | "violation" | "uncertain"] = word,
        /// The score
        score: Option<f64> = points,
        /// The reason for a violation, as the contract computes it
        reason: Value = because,
        /// The reason why the tick cannot be judged
        why: Option<&str> = unclear,
    }

    /// The standing of an obligation
    pub object ObligationObject(of: &Standing, is_closed: bool) {
        /// The standing
        standing: ["waiting" | "open" | "met" | "missed" | "unknown"] = of.as_str(),
        /// The tick at which the obligation was met or missed, or from which on it is not known
        tick: Option<u64> = of.tick(),
        /// The last tick at which an open obligation can be met
        due: Option<u64> = if let Standing::Open(due) = of { *due } else { None },
        /// The reason why the standing is not known
        why: Option<&str> = if let Standing::Unknown(_, why) = of { Some(why) } else { None },
        /// Whether the run was closed with that tick
        ended: bool = is_closed,
    }

    /// The first tick at which a predicate is violated
    pub object BisectDocument: "bisect" reads (
        members: FoundMembers,
        details: Option<DetailMembers>,
        regression: Option<RegressionMembers>,
        written: Option<&[Record]>,
    ) {
        ..FoundMembers = members,
        ..?DetailMembers = details,
        ..?RegressionMembers = regression,
        /// The records that the command added to the casebook
        recorded?: Vec<RecordedObject> = written.map(recorded_objects),
    }

    /// The first tick at which one of several predicates is violated
    object BisectItem: "bisect" part (found: &BisectFound) {
        ..FoundMembers = FoundMembers::of(found, Head::of(found)),
    }

    /// The first tick at which each of several predicates is violated
    pub object BisectAllDocument: "bisect-all" reads (answer: &BisectAll<'_>) {
        /// The run
        run: &RunName = answer.run,
        /// The worst exit code of all answers
        exit: u64 = answer.worst(),
        /// The answers
        items: Vec<BisectItem> = answer.found.iter().map(BisectItem::of).collect(),
    }

    /// The members that every answer about an onset has
    object FoundMembers(found: &BisectFound, head: Head<'_>) {
        let BisectFound { report, .. } = found;
        let divergence = if let BisectSubject::Divergence(found) = &found.question { Some(found) } else { None };
        /// The run
        run: &RunName = &found.run,
        /// The question
        predicate: AskedObject = AskedObject::of(&found.question),
        /// The outcome of the search
        outcome: ["onset" | "never" | "initial" | "recovers" | "uncertain"] = head.outcome,
        /// The first tick that is violated
        onset: Option<u64> = head.onset,
        /// The certainty of the onset
        certainty: ["exact" | "heuristic" | "unavailable"] = head.certainty.as_str(),
        /// The number of results whose status was read from prose
        status_from_text: u64 = head.from_text,
        /// The verdicts at both ends of the range
        ends: [TickVerdict; 2] = [&report.low, &report.high].map(|(tick, verdict)| TickVerdict::of(*tick, verdict)),
        /// The ticks that the search judged, in its order
        items: Vec<ProbeObject> = report.probes.iter().map(ProbeObject::of).collect(),
        /// The largest number of probes that the search takes
        probes_max: u32 = report.probes_max,
        /// The number of ticks at which a place was written that the predicate reads
        candidates: Option<u64> = report.candidates,
        /// The stretches of ticks with one verdict each, if the predicate was lifted
        recoveries: Option<Vec<Stretch<'_>>> = report.recoveries.as_deref().map(stretches),
        /// The last tick at which the type was allowed, for a policy flip
        allowed: Option<u64> = report.allowed,
        /// The first violation that judging every tick found, with --scan
        scan_onset: Option<u64> = report.scan.flatten(),
        /// The ticks at which a predicate that recovers changes, or that cannot be judged
        ticks: Option<Vec<TickVerdict>> = named_ticks(report),
        /// The transition at the onset
        origin: Option<OriginObject> = head.origin.map(OriginObject::of),
        /// The standing of an obligation at the last tick that was asked about; null for any other predicate
        obligation: Option<ObligationObject> =
            report.standing.as_ref().map(|standing| ObligationObject::of(standing, found.ended)),
        /// The reasons why ticks cannot be judged, for an answer that is not known
        reasons?: Vec<ReasonObject> = (!report.unjudged.is_empty()).then(|| reasons(&report.unjudged)),
        /// The places that --ignore left out, for a divergence
        ignored?: Vec<IgnoredPlace> = divergence.map(|found| ignored_places(&found.ignored)),
        /// The names, ids and times that no comparison looks at, for a divergence
        left_out?: Vec<String> = divergence.map(|found| diff::left_out_names(&found.left_out)),
    }

    /// A tick that the search judged
    object ProbeObject(probe: &Probe) {
        ..TickVerdict = TickVerdict::of(probe.tick, &probe.verdict),
        /// The first and the last tick that may be the onset afterwards
        left: (u64, u64) = probe.left,
    }

    /// The transition at an onset
    object OriginObject(origin: &BisectOrigin) {
        ..RowObject = RowObject::of(&origin.record),
        /// The changes of the transition
        changes: Vec<ChangeObject> = origin.changes.iter().map(ChangeObject::of).collect(),
    }

    /// The members that follow an onset forward and back
    object DetailMembers(answer: &BisectAnswer) {
        let BisectAnswer { found, since: begin, records, allows, .. } = answer;
        let flip = allows.as_ref().zip(found.report.onset());
        let flip = flip.map(|(allows, onset)| Either::Right(FlipObject::of(records, onset, allows)));
        let set = answer.contributors.as_ref().map(|found| Either::Left(ContributorsObject::of(records, found)));
        let divergence = if let BisectSubject::Divergence(found) = &found.question { Some(found) } else { None };
        let suggestions = answer.suggestions();
        /// The tick from which on the question can be asked, if an extension or a fork brought the predicate in, or its places
        /// are written from there on
        since: Option<u64> = *begin,
        /// The transitions that follow from the onset
        chain: Option<ChainObject> = answer.chain.as_ref().map(|chain| ChainObject::of(records, chain)),
        /// The earlier transitions that the onset depends on, if they were searched
        contributors: Option<Either<ContributorsObject, FlipObject>> = set.or(flip),
        /// The records that the links of the onset lead back to, the newest first
        upstream: Vec<UpstreamObject> =
            answer.upstream.iter().map(|found| UpstreamObject::of(records, found)).collect(),
        /// The class of failure that the onset looks like
        diagnosis: Option<DiagnosisObject> =
            answer.offer.as_ref().map(|offer| DiagnosisObject::of(offer, answer.decided)),
        /// The verdicts of a progress contract at the ends, the probes and the onset
        evaluations?: Vec<EvaluationObject> = answer.evaluations.as_ref().map(|said| {
            said.iter().map(|(tick, said)| EvaluationObject::of(*tick, said)).collect()
        }),
        /// The writes in the sources of a merge that a violated beginning comes from; absent if there are none
        sources?: Vec<SourceObject> = (!answer.sources.is_empty())
            .then(|| answer.sources.iter().map(SourceObject::of).collect()),
        /// The command that is worth trying first
        suggestion?: CommandObject = suggestions.first().map(CommandObject::of),
        /// The commands that are worth trying: first what changes the run by itself, then words for the agent; absent if no
        /// command helps
        suggestions?: Vec<CommandObject> =
            (!suggestions.is_empty()).then(|| suggestions.iter().map(CommandObject::of).collect()),
        ..?FirstSeenMembers = answer.first_seen.as_ref().map(FirstSeenMembers::of),
        /// The first pair of transitions that differ, for a divergence
        divergence?: Option<PairObject> = divergence.map(|found| found.first.as_ref().map(PairObject::of)),
        /// The digest of another predicate of this name in the pack of the run
        other_in_pack?: Digest = answer.other_in_pack,
    }

    /// A command
    object CommandObject(suggested: &Suggestion) {
        /// The words of the command; FILE is a file of the reader
        argv: &[String] = &suggested.argv,
        /// A remark for the reader, which is no part of the command
        remark?: &str = suggested.remark.as_deref(),
    }

    /// The members that compare a score with the hard predicates
    object RegressionMembers(answer: &RegressionAnswer, found: &Regression) {
        let report = &answer.found.report;
        let ends = [(report.low.0, &found.first), (report.high.0, &found.last)];
        let fell = found.fell.as_ref().map(|fell| (fell.tick, &fell.said));
        /// The verdicts of the score at the ends, and where it fell first
        evaluations: Vec<EvaluationObject> =
            ends.into_iter().chain(fell).map(|(tick, said)| EvaluationObject::of(tick, said)).collect(),
        /// The score, and the verdict of each hard predicate
        regression: RegressionObject = RegressionObject::of(answer, found),
    }

    /// A score and the hard predicates
    object RegressionObject(answer: &RegressionAnswer, found: &Regression) {
        /// The score
        metric: &str = found.metric.as_str(),
        /// The fall that does not count
        tolerance: f64 = found.tolerance,
        /// The best score before it fell
        best: Option<f64> = found.best.map(|(score, _)| score),
        /// The tick of the best score
        best_tick: Option<u64> = found.best.map(|(_, tick)| tick),
        /// The predicates every store has, and those of the pack that are no scores; the first that is violated wins
        hard: Vec<HardObject> = answer.hard.iter().map(HardObject::of).collect(),
        /// Whether the score and the hard predicates name one tick
        agree: bool = answer.agree(),
        /// The tick at which the score fell first
        score_onset: Option<u64> = answer.found.report.onset(),
        /// The certainty of the score
        score_certainty: ["heuristic"] = Certainty::Heuristic.as_str(),
        /// The predicate that decides
        takes_precedence: &str = answer.decisive().predicate.name(),
    }

    /// The outcome of a hard predicate
    object HardObject(hard: &HardFound) {
        /// The name
        name: &str = hard.predicate.name(),
        /// The version
        version: &str = hard.predicate.version(),
        /// The digest of the predicate
        digest: Digest = hard.predicate.digest(),
        /// The outcome of the search
        outcome: ["onset" | "never" | "initial" | "uncertain"] = outcome_word(false, &hard.report),
        /// The first tick that is violated
        onset: Option<u64> = hard.report.onset(),
    }
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

fn end((tick, verdict): &(u64, Verdict)) -> String {
    format!("tick {tick} {}", words(verdict).1)
}

/// Writes the probes, one a line, each with what is left afterwards.
/// `said` is what a progress contract says at each probe.
fn probe_lines(report: &BisectReport, said: &[(u64, Evaluation)]) -> Vec<Line> {
    let mut lines = Vec::new();
    let width = report.high.0.to_string().len();
    for (at, probe) in report.probes.iter().enumerate() {
        let (word, mark) = words(&probe.verdict);
        let left = match probe.left {
            (a, b) if a == b => format!("left {a}"),
            (a, b) => format!("left {a}..{b}"),
        };
        let (at, max, tick) = (at + 1, report.probes_max, probe.tick);
        let style = (mark == "FAIL").then_some(Style::Bad);
        let said = said.iter().find(|(at, _)| *at == tick).map(|(_, said)| evaluation_words(said));
        let said = said.map_or_else(String::new, |said| format!("    {said}"));
        let line = format!("  {at}/{max}  tick {tick:>width$}  {word}  {mark:<4}    {left}{said}");
        lines.push(Line::of(style, line));
    }
    lines
}

/// The part of an answer in which a regression differs from any other bisect: there the hard predicates decide.
struct Head<'a> {
    outcome: &'static str,
    onset: Option<u64>,
    certainty: Certainty,
    from_text: u64,
    origin: Option<&'a BisectOrigin>,
}

impl Head<'_> {
    fn of(found: &BisectFound) -> Head<'_> {
        let BisectFound { report, from_text, origin, .. } = found;
        let outcome = match &report.outcome {
            BisectOutcome::Onset(_) => "onset",
            BisectOutcome::Never => "never",
            BisectOutcome::Initial => "initial",
            BisectOutcome::Recovers(_) => "recovers",
            BisectOutcome::Uncertain(..) => "uncertain",
        };
        let is_known = !matches!(outcome, "recovers" | "uncertain");
        let certainty = of_texts(*from_text).unless(!is_known);
        Head { outcome, onset: report.onset(), certainty, from_text: *from_text, origin: origin.as_ref() }
    }
}

/// Returns the ticks that an answer without an onset names.
fn named_ticks(report: &BisectReport) -> Option<Vec<TickVerdict>> {
    match &report.outcome {
        BisectOutcome::Recovers(turns) => {
            Some(turns.iter().map(|(tick, verdict)| TickVerdict::of(*tick, verdict)).collect())
        }
        BisectOutcome::Uncertain(tick, why) => {
            // The onset lies between the two, if a later tick is known to be violated.
            let first = TickVerdict::of(*tick, &Verdict::Uncertain(why.clone()));
            let certain = report.first_certain.map(|tick| TickVerdict::of(tick, &Verdict::Violation));
            Some([first].into_iter().chain(certain).collect())
        }
        _ => None,
    }
}

/// Writes the transition at an onset: what it said and what it wrote.
fn origin_lines(run: &RunName, origin: &BisectOrigin, certainty: &str, page: &Page) -> Vec<Line> {
    let (tick, record) = (origin.tick, &origin.record);
    let content = record.content();
    let row = row::row(record);
    let whole = |path: Option<&Pointer>| change::whole_command(run, tick, path);
    let agent = if row.agent.is_empty() { String::new() } else { format!("  by {}", row.agent) };
    let title = Line::styled(Style::Bad, format!("ONSET ({certainty})"))
        .then(format!("  tick {tick}  {}{agent}", row.type_name))
        .then_styled(Style::Dim, format!("   {}", record.id().short()));
    let at = |inner: &str| content.get("intent").and_then(|intent| intent.get(inner));
    let confidence = at("confidence").and_then(Value::as_f64).map(|said| format!("confidence {said:.3}"));
    let notes = at("uncertainty_notes").filter(|notes| **notes != Value::Null);
    let notes = notes.map(|notes| format!("uncertainty {}", quote::value(notes)));
    let said: Vec<String> = confidence.into_iter().chain(notes).collect();
    let said = [row.summary, said.join("  ")].into_iter().filter(|words| !words.is_empty());
    let said = said.map(|words| Line::value(format!("  {words}"), whole(None)));
    let changes =
        origin.changes.iter().map(|change| ShownChange::of_write(change, whole(Some(&change.path))));
    let changes = page.changes(&changes.collect::<Vec<_>>(), 2);
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
    /// Returns the command of a question.
    pub fn of(question: &BisectQuestion) -> BisectCommand {
        let (flag, text) = question.named_text();
        let named = [flag.to_owned(), text.to_owned()];
        let lifted = question.lift.then(|| "--lift".to_owned());
        BisectCommand {
            run: question.run.clone(),
            question: named.into_iter().chain(lifted).collect(),
            records: question.record,
        }
    }

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
    /// Returns the document; without the records that were added, as it is written into the casebook.
    pub fn with_recorded(&self, recorded: Option<&[Record]>) -> Value {
        let found = &self.answer.found;
        let details = Some(DetailMembers::of(self.answer));
        BisectDocument::of(FoundMembers::of(found, Head::of(found)), details, None, recorded).into()
    }

    /// How the answer was found, after what it is.
    fn search_lines(&self, page: &Page) -> Vec<Line> {
        let BisectFound { question, report, .. } = &self.answer.found;
        let evaluations = self.answer.evaluations.as_deref().unwrap_or_default();
        let mut lines = search_lines(&self.answer.found, evaluations, page);
        let since = self.answer.since.filter(|since| *since > 1);
        lines.extend(since.map(|since| {
            Line::from(format!(
                "  from tick {since} on, the first that can be judged; --from 0 asks of those before"
            ))
        }));
        lines.extend(self.answer.other_in_pack.map(|other| Line::from(other_line(other))));
        if let Some(registered) = &self.answer.registered {
            let here = match (&registered.known, &report.outcome) {
                (MonotoneEvidence::Recovers(_), BisectOutcome::Recovers(_)) => "",
                (MonotoneEvidence::Recovers(_), _) if question.monotone() == Monotone::Unknown => {
                    ", and not on this run"
                }
                _ => "",
            };
            lines.push(format!("  {}{here}", registration_line(registered)).into());
        }
        lines
    }

    fn onset_lines(&self, page: &Page) -> Vec<Line> {
        let BisectAnswer { found, contributors, chain, records, .. } = self.answer;
        let mut lines = Vec::new();
        let certainty = of_texts(found.from_text).as_str();
        let origin = found.origin.iter();
        lines.extend(origin.flat_map(|origin| origin_lines(&found.run, origin, certainty, page)));
        lines.extend(from_text_line(found.from_text).map(Line::from));
        if let BisectSubject::Divergence(found) = &found.question {
            lines.extend(divergence_lines(found, page));
        }
        let mut contributors: Vec<String> =
            contributors.iter().flat_map(|found| contributors::lines(records, found)).collect();
        let BisectAnswer { upstream, allows, .. } = self.answer;
        if let (BisectSubject::PolicyFlip(about), Some(onset), Some(allows)) =
            (&found.question, found.report.onset(), allows)
        {
            contributors.extend(contributors::flip_lines(records, about.as_str(), onset, allows));
        }
        if let Some(first_seen) = &self.answer.first_seen {
            lines.extend(moved_lines(first_seen));
            lines.extend(seen_lines(&found.run, first_seen));
        }
        lines.extend(contributors.into_iter().map(Line::from));
        lines.extend(why::upstream_lines(records, upstream));
        lines.extend(chain.iter().flat_map(|chain| why::chain_lines(&found.run, records, chain, page)));
        lines.extend(self.diagnosis_lines());
        lines.extend(self.answer.suggestions().into_iter().take(1).flat_map(suggestion_lines));
        lines
    }

    /// The answer about a range that begins in violation.
    fn initial_lines(&self) -> Vec<Line> {
        let tick = self.answer.found.report.low.0;
        let onset = |words: String| Line::styled(Style::Bad, "ONSET (exact)").then(words);
        if tick == 0 {
            let mut lines =
                vec![onset("  tick 0  the initial state of the range is in violation".to_owned())];
            match &self.answer.sources[..] {
                [] => lines.push("  no transition made it so: the run began with it".into()),
                sources => {
                    lines.push("  the run began with what a merge took:".into());
                    lines.extend(sources.iter().map(|write| Line::from(source_line(write))));
                }
            }
            lines.extend(self.diagnosis_lines());
            if !self.answer.sources.is_empty() {
                lines.extend(self.answer.suggestions().into_iter().take(1).flat_map(suggestion_lines));
            }
            return lines;
        }
        let words = match self.answer.since {
            Some(since) => format!(
                "IN VIOLATION already at tick {tick}, from tick {since} on part of the contract: no transition under it made it so"
            ),
            None => format!(
                "IN VIOLATION already at tick {tick}, where the range begins: the onset is there or before"
            ),
        };
        vec![Line::styled(Style::Bad, words), Line::help(self.command.with(&["--from", "0"]))]
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
            lines.push(Line::styled(
                Style::Strong,
                format!("OR         looks {}: {evidence}", or.class.title()),
            ));
            let fork = self.answer.fork_for(or.class);
            lines.extend(fork.map(|argv| Line::command("  ", argv)));
        }
        if self.answer.class() == Some(DiagnosisClass::Foundational) && !self.command.records {
            lines.push(Line::help(self.command.with(&["--diagnosis", "foundational", "--record"])));
        }
        lines
    }
}

impl Answer for BisectShown<'_> {
    fn document(&self) -> Value {
        self.with_recorded(Some(self.recorded))
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let BisectFound { question, report, .. } = &self.answer.found;
        let mut lines = match &report.outcome {
            BisectOutcome::Onset(_) => self.onset_lines(page),
            BisectOutcome::Initial => self.initial_lines(),
            BisectOutcome::Never => vec![never_words(question, report).into()],
            BisectOutcome::Recovers(turns) => turn_lines(turns, self.command.with(&["--full"]), page),
            BisectOutcome::Uncertain(..) => unjudged_lines(report),
        };
        if let BisectSubject::Divergence(found) = question {
            lines.extend(left_out_lines(found));
        }
        if !matches!(report.outcome, BisectOutcome::Onset(_)) {
            lines.extend(from_text_line(self.answer.found.from_text).map(Line::from));
        }
        lines.extend(self.search_lines(page));
        lines.extend(recorded_lines(self.recorded).into_iter().map(Line::from));
        lines
    }

    fn end(&self) -> End {
        end_of(&self.answer.found.report)
    }
}

/// Writes the command that is worth trying first, and the remark on it.
fn suggestion_lines(suggested: Suggestion) -> Vec<Line> {
    let command = Line::styled(Style::Strong, "SUGGESTION").then("  ");
    let command = Line { command: Some(suggested.argv), ..command };
    [command].into_iter().chain(suggested.remark.map(|remark| Line::from(format!("  {remark}")))).collect()
}

fn evaluated_line(tick: u64, said: &Evaluation) -> String {
    format!("  evaluated tick {tick}  {}", evaluation_words(said))
}

/// How many turns of a predicate are listed, unless all are asked for.
const TURNS: usize = 12;

/// Writes the ticks at which a predicate turns; `more` prints all of them.
fn turn_lines(turns: &[(u64, Verdict)], more: Vec<String>, page: &Page) -> Vec<Line> {
    let line = |(tick, verdict): &(u64, Verdict)| {
        let mark = if *verdict == Verdict::Violation {
            "FAIL"
        } else {
            "OK     <- recovered: binary search could return a wrong tick"
        };
        Line::from(format!("  tick {tick}  {:<9}  {mark}", verdict.to_string()))
    };
    let shown = if page.width.is_none() || page.full { turns.len() } else { TURNS };
    let rest = turns.len().saturating_sub(shown);
    let rest = (rest > 0)
        .then(|| Line::command(format!("  ({})  ", count(rest as u64, "more turn", "more turns")), more));
    turns.iter().take(shown).map(line).chain(rest).collect()
}

/// Writes how the transition at the onset differs from the one of the other run.
fn divergence_lines(found: &RunDivergence, page: &Page) -> Vec<Line> {
    let Some(pair) = &found.first else { return Vec::new() };
    let head = Line::from(format!("  differs from {}:  {}", found.from, diff::title(pair)));
    [head].into_iter().chain(diff::pair_changes(pair, None, 4, page)).collect()
}

/// Says what was left out of the comparison of two runs.
fn left_out_lines(found: &RunDivergence) -> impl Iterator<Item = Line> {
    let ignored = diff::ignored_line(&found.ignored);
    ignored.into_iter().chain(diff::left_out_line(&found.left_out)).map(Line::from)
}

/// The onsets of several questions in one run.
#[derive(Debug, Clone, Copy)]
pub struct BisectAll<'a> {
    /// The run.
    pub run: &'a RunName,
    /// The answer to each question.
    pub found: &'a [BisectFound],
}

impl BisectAll<'_> {
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

impl Answer for BisectAll<'_> {
    fn document(&self) -> Value {
        BisectAllDocument::of(self).into()
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
        for found in self.found {
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
        let sum = format!("{sum}{}", page.of_run(self.run));
        page.rows(&table).into_iter().chain([Line::from(sum)]).collect()
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
            [row.type_name, row.agent]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect::<Vec<_>>()
                .join(" by ")
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
            BisectSubject::Regression(found) => Some(found),
            _ => None,
        }
    }
}

impl Answer for RegressionShown<'_> {
    fn document(&self) -> Value {
        let HardFound { report, from_text, .. } = self.answer.decisive();
        let is_unknown = self.answer.unknown().is_some();
        // The certainty is that of the predicate that won, and not that of the score.
        let head = Head {
            outcome: outcome_word(is_unknown, report),
            onset: report.onset(),
            certainty: of_texts(*from_text).unless(is_unknown),
            from_text: *from_text,
            origin: self.answer.origin.as_ref(),
        };
        let members = self.regression().map(|found| RegressionMembers::of(self.answer, found));
        BisectDocument::of(FoundMembers::of(&self.answer.found, head), None, members, None).into()
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        let BisectFound { run, report, origin, .. } = &self.answer.found;
        let Some(found) = self.regression() else { return Vec::new() };
        let mut lines = vec![Line::styled(Style::Warn, HEURISTIC)];
        let metric = &found.metric;
        match (&found.fell, &report.outcome) {
            (_, BisectOutcome::Uncertain(..)) => lines.extend(unjudged_lines(report)),
            (Some(fell), _) => {
                let origin = origin.iter().filter(|origin| origin.tick > 0);
                lines.extend(origin.flat_map(|origin| origin_lines(run, origin, "heuristic", page)));
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
        let ends = [(report.low.0, found.first.clone()), (report.high.0, found.last.clone())];
        lines.extend(search_lines(&self.answer.found, &ends, page));
        if hard.onset().is_some() {
            lines.push(Line::help(["dendrer", "bisect", self.run, "--predicate", winner.name()]));
        }
        lines
    }

    fn end(&self) -> End {
        if self.answer.unknown().is_some() { End::Unknown } else { end_of(&self.answer.decisive().report) }
    }
}

/// The answer to a bisect, whatever was asked, with its question.
#[derive(Debug, Clone, Copy)]
pub struct BisectReplyShown<'a> {
    /// The answer.
    pub reply: &'a BisectReply,
    /// The question.
    pub question: &'a BisectQuestion,
    /// The findings in the casebook.
    pub recorded: &'a [Record],
    /// Whether the lines are those of the dendrer paper (4.3 and appendix C).
    pub is_paper: bool,
}

impl BisectReplyShown<'_> {
    /// Writes the finding into the casebook, if the question asks for that.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if the records at the ends of the answer cannot be read, or the store cannot be written.
    pub fn record(&self, desk: &mut dyn Desk) -> Result<Vec<Record>, Problem> {
        let Some(mut found) = self.finding()? else { return Ok(Vec::new()) };
        let store = desk.store()?;
        found.answer = clean_value(&store, &found.answer)?;
        found.chain = found.chain.map(|chain| clean_value(&store, &chain)).transpose()?;
        desk.write_down(|store, environment| casebook::record_bisect(store, &found, environment))
    }

    fn finding(&self) -> Result<Option<Bisected>, Error> {
        match (&self.reply.answer, self.question.record) {
            (BisectReplyKind::One(answer), true) => {
                let command = BisectCommand::of(self.question);
                let shown = BisectShown { answer, command: &command, recorded: &[] };
                self.reply.finding(&shown.with_recorded(None))
            }
            _ => Ok(None),
        }
    }

    fn of_kind<T>(&self, take: impl FnOnce(&dyn Answer) -> T) -> T {
        match &self.reply.answer {
            BisectReplyKind::Several(run, found) => take(&BisectAll { run, found }),
            BisectReplyKind::Regression(answer) => take(&RegressionShown { answer, run: &self.question.run }),
            BisectReplyKind::One(answer) => {
                let command = BisectCommand::of(self.question);
                take(&BisectShown { answer, command: &command, recorded: self.recorded })
            }
        }
    }
}

impl Answer for BisectReplyShown<'_> {
    fn document(&self) -> Value {
        self.of_kind(|answer| answer.document())
    }

    fn lines(&self, page: &Page) -> Vec<Line> {
        match &self.reply.answer {
            BisectReplyKind::One(answer) if self.is_paper => paper::lines(answer),
            _ => self.of_kind(|answer| answer.lines(page)),
        }
    }

    fn end(&self) -> End {
        let is_expected = self.question.expect_onset.is_some() && self.reply.problem.is_none();
        match &self.reply.answer {
            // An onset that was expected is the answer, whatever the score says.
            BisectReplyKind::Regression(_) if is_expected => End::Answered,
            _ => self.of_kind(|answer| answer.end()),
        }
    }
}
