//! Bisect: the first tick at which a predicate is violated, by reading committed states and nothing else.
//!
//! Ends first, then the interval form: `low` is the last tick known to be ok, `high` one known to be violated, and
//! each probe halves what lies between (dendrer paper 4.7; at most ceil(log2 n) probes). Halving is sound only for
//! a predicate that does not recover: two ends that are ok prove nothing for one that may. Every tick that wrote what such
//! a predicate reads is judged before the first probe ([`timeline`]); for one that is monotone by construction the probes
//! alone are read ([`probe`]), O(log n) of them. The onset and the tick before it are judged once more, from the records.

pub mod gather;
mod probe;
pub mod question;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use dendrer_kernel::names::COUNTERS;
use dendrer_kernel::obligation::Standing;
use dendrer_kernel::predicate::{Monotone, Predicate, Verdict, Window};
use dendrer_kernel::unknown::{self, Since};
use dendrer_object::record::{Record, Rel};
use dendrer_object::{Digest, Pointer, RunName, TypeName};

use crate::ask::diff::{self, DiffKind};
use crate::ask::regression::Regression;
use crate::ask::why;
use crate::error::Error;
use crate::run::declared;
use crate::run::timeline::{self, Interval, Timeline};
use crate::run::trace::Trace;
use crate::run::unfinished::Unfinished;

/// What is asked.
#[derive(Debug, Clone)]
pub enum BisectSubject {
    /// Where a predicate is violated first.
    Predicate(Predicate),
    /// Where a type of transition is first denied or escalated after it was allowed (dendrer paper 4.3).
    PolicyFlip(TypeName),
    /// Where the run first differs from another (dendrer paper 4.3).
    Divergence(Box<RunDivergence>),
    /// Where a score first fell ([`crate::ask::regression::regression`]): a heuristic, on which nothing exact rests.
    Regression(Box<Regression>),
}

/// Where a run first differs from another, found by [`divergence`].
#[derive(Debug, Clone)]
pub struct RunDivergence {
    /// The other run.
    pub from: RunName,
    /// The record with which the other run ends.
    pub tip: Digest,
    /// The first pair of transitions that differ; `None` if the runs are equal.
    pub first: Option<diff::Pair>,
    /// The tick of the run that was asked about; `None` if it has no transition there.
    pub tick: Option<u64>,
    /// The places that were to be left out, and whether anything stood there.
    pub ignored: Vec<(Pointer, bool)>,
    /// The places that only name a run or a message, and are left out of any comparison.
    pub left_out: Vec<Pointer>,
}

/// Finds the first transition that is not what another run has beside it. Whether two that cannot be compared in full
/// are the same is not known, so the answer is not known from the first such pair on.
///
/// `asked` says how both are lined up, from which tick on they are compared, and what is left out.
pub fn divergence(trace: &Trace, other: &Trace, asked: diff::DiffTerms) -> Result<BisectSubject, Error> {
    let kinds = vec![DiffKind::Structural, DiffKind::Semantic, DiffKind::Confidence];
    let question = diff::DiffTerms { kinds, ..asked };
    question.check(trace, other)?;
    let mut first = None;
    let report = diff::diff(trace, other, &question, &mut |pair| {
        first = Some(pair.clone());
        ControlFlow::Break(())
    })?;
    if let Some(pair) = &first
        && pair.kinds.is_empty()
        && let Some(hidden) = pair.hidden.first()
    {
        let tick = pair.a.as_ref().and_then(|record| record.header().tick).unwrap_or(0);
        let what = format!("where it differs from {}", other.name());
        let pointer = hidden.path.clone();
        return Err(match hidden.redacted {
            true => Error::Redacted { what, tick, pointer },
            false => Error::Hidden { what, tick, pointer },
        });
    }
    let (from, tip) = (other.name().clone(), other.summary().head.id);
    let tick = first.as_ref().and_then(|pair| match &pair.a {
        Some(record) => Some(record.header().tick.unwrap_or(0)),
        // The other run has a marker, so the run differs from its next transition on.
        None => next_compared(&report).filter(|tick| *tick <= trace.tip()),
    });
    Ok(BisectSubject::Divergence(Box::new(RunDivergence {
        from,
        tip,
        first,
        tick,
        ignored: report.ignored,
        left_out: report.left_out,
    })))
}

/// The tick of the left run after those that were compared; markers without a change of state do not count.
fn next_compared(report: &diff::DiffReport) -> Option<u64> {
    let last = report.a.map(|(_, last)| last).max(report.shared)?;
    let passed = |tick: &u64| report.markers.0.iter().any(|one| one.tick == *tick && !one.changes_state);
    (last + 1..).find(|tick| !passed(tick))
}

impl BisectSubject {
    /// The name.
    pub fn name(&self) -> String {
        match self {
            BisectSubject::Predicate(predicate) => predicate.name().to_owned(),
            BisectSubject::PolicyFlip(about) => format!("policy-flip {about}"),
            BisectSubject::Divergence(found) => format!("divergence {}", found.from),
            BisectSubject::Regression(found) => format!("regression {}", found.metric),
        }
    }

    /// The version.
    pub fn version(&self) -> &str {
        match self {
            BisectSubject::Predicate(predicate) => predicate.version(),
            BisectSubject::PolicyFlip(_) | BisectSubject::Divergence(_) => "v1",
            BisectSubject::Regression(found) => &found.version,
        }
    }

    /// Says what the violation is.
    pub fn words(&self) -> String {
        match self {
            BisectSubject::Predicate(predicate) => predicate.words(),
            BisectSubject::PolicyFlip(about) => {
                format!("violated from the first deny or escalate for {about} after an allow for it")
            }
            BisectSubject::Divergence(found) => {
                format!("violated from the first transition that is not what {} has beside it", found.from)
            }
            BisectSubject::Regression(found) => found.words(),
        }
    }

    /// The digest that identifies what is asked.
    pub fn digest(&self) -> Digest {
        match self {
            BisectSubject::Predicate(predicate) => predicate.digest(),
            BisectSubject::PolicyFlip(about) => {
                Digest::of_parts(&[b"dendrer/policy-flip/v1\n", about.as_str().as_bytes()])
            }
            BisectSubject::Divergence(found) => Digest::of_parts(&[b"dendrer/divergence/v1\n", &found.tip.0]),
            BisectSubject::Regression(found) => found.digest,
        }
    }

    /// How it is known that there is no way back.
    pub fn monotone(&self) -> Monotone {
        match self {
            BisectSubject::Predicate(predicate) => predicate.monotone(),
            BisectSubject::PolicyFlip(_) | BisectSubject::Divergence(_) => Monotone::ByConstruction,
            // A score may rise again; the first fall is what is asked for.
            BisectSubject::Regression(_) => Monotone::Lifted,
        }
    }

    /// Which side of a transition is looked at.
    pub fn window(&self) -> Window {
        match self {
            BisectSubject::Predicate(predicate) => predicate.window(),
            BisectSubject::PolicyFlip(_) | BisectSubject::Divergence(_) | BisectSubject::Regression(_) => {
                Window::After
            }
        }
    }

    /// The predicate, if it is one.
    pub fn predicate(&self) -> Option<&Predicate> {
        match self {
            BisectSubject::Predicate(predicate) => Some(predicate),
            BisectSubject::PolicyFlip(_) | BisectSubject::Divergence(_) | BisectSubject::Regression(_) => {
                None
            }
        }
    }
}

/// Where it is asked, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The first tick, usually 0.
    pub from: u64,
    /// The last tick, usually the tip.
    pub to: u64,
    /// Whether to judge every tick besides, and compare.
    pub scan: bool,
    /// The first tick at which it was asked at all, where an extension brought it in; `from` is the tick before. What does
    /// not hold there did not hold before anybody asked for it, and then the range begins in violation.
    pub since: Option<u64>,
}

impl Range {
    /// Between two ticks, without a scan.
    pub fn new(from: u64, to: u64) -> Range {
        Range { from, to, scan: false, since: None }
    }

    /// Up to a tick, for what an extension brought in at `since`: whatever stood before is nobody's violation of it.
    pub fn since(since: u64, to: u64) -> Range {
        Range { since: Some(since), ..Range::new(since.saturating_sub(1), to) }
    }

    /// The first tick that is judged.
    fn first(&self) -> u64 {
        self.since.unwrap_or(self.from)
    }
}

/// One judged tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// The tick.
    pub tick: u64,
    /// What the predicate said there.
    pub verdict: Verdict,
    /// What is left to search afterwards, as first and last tick.
    pub left: (u64, u64),
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BisectOutcome {
    /// Ok at the tick before, violated at this one, and without a lift from here on.
    Onset(u64),
    /// Never violated in the range.
    Never,
    /// Violated at the first tick of the range already.
    Initial,
    /// The predicate recovers on this run, so there is no onset to bisect for. The ticks at which it turned.
    Recovers(Vec<(u64, Verdict)>),
    /// The predicate could not judge this tick.
    Uncertain(u64, String),
}

/// Everything that was found on the way.
#[derive(Debug, Clone)]
pub struct BisectReport {
    /// The first tick of the range and its verdict.
    pub low: (u64, Verdict),
    /// The last tick of the range and its verdict; with a lift, the lifted one.
    pub high: (u64, Verdict),
    /// The probes in order.
    pub probes: Vec<Probe>,
    /// How many probes the range can need at most.
    pub probes_max: u32,
    /// How many ticks were judged to see whether the predicate recovers; `None` if it cannot.
    pub candidates: Option<u64>,
    /// What came out.
    pub outcome: BisectOutcome,
    /// With a lift: the stretches behind the first violation at which the predicate itself is not in violation.
    pub recoveries: Option<Vec<Interval>>,
    /// For a policy flip: the last allow before it, or in the range if none came before.
    pub allowed: Option<u64>,
    /// The last tick whose verdict was worked out before, and only read here.
    pub known_to: Option<u64>,
    /// For an obligation: how it stands at the last tick.
    pub standing: Option<Standing>,
    /// For an answer that is not known: the first tick that is known to be violated. The onset is there or before it, at the
    /// earliest at the tick of the outcome.
    pub first_certain: Option<u64>,
    /// For an answer that is not known: the ticks that cannot be judged, up to the first that is known to be violated, each
    /// reason with its ticks.
    pub unjudged: Vec<Interval>,
    /// With a scan: the first violated tick that judging every tick finds.
    pub scan: Option<Option<u64>>,
}

impl BisectReport {
    /// The first violated tick, where there is an answer.
    pub fn onset(&self) -> Option<u64> {
        match self.outcome {
            BisectOutcome::Onset(tick) => Some(tick),
            // A range that begins in violation says nothing of where it came from, unless it begins with the run.
            BisectOutcome::Initial => (self.low.0 == 0).then_some(0),
            _ => None,
        }
    }
}

impl Trace {
    /// Finds the first tick of the run at which the question is violated (dendrer paper 4.7). If the run begins without a place
    /// that the predicate reads, the range begins where every one is there, as the program asks.
    pub fn bisect(&self, question: &BisectSubject) -> Result<BisectReport, Error> {
        let range = Range::new(0, self.tip());
        let report = bisect(self, question, &range)?;
        Ok(once_there(self, question, &report, &range)?.map_or(report, |(_, again)| again))
    }
}

/// Finds the onset for one question.
pub fn bisect(trace: &Trace, question: &BisectSubject, range: &Range) -> Result<BisectReport, Error> {
    let questions = std::slice::from_ref(question);
    Ok(bisect_each(trace, questions, range)?.pop().expect("one for one"))
}

/// Finds the onsets for several questions over one range; what must be read is read once for all of them.
pub fn bisect_each(
    trace: &Trace,
    questions: &[BisectSubject],
    range: &Range,
) -> Result<Vec<BisectReport>, Error> {
    trace.check_range(range.from, range.to)?;
    trace.check_range(range.first(), range.to)?;
    trace.confirm_tip()?;
    let predicates: Vec<&Predicate> = questions.iter().filter_map(BisectSubject::predicate).collect();
    let begins = predicates.iter().map(|predicate| begins(trace, predicate, range));
    let begins = begins.collect::<Result<Vec<_>, Error>>()?;
    let whole = |(line, begin): (Timeline, &u64)| line.reaching_back_to(*begin);
    let probed = match range.scan || range.since.is_some() {
        false => probe::probe_each(trace, &predicates, range.from, range.to)?,
        true => None,
    };
    let are_probed = probed.is_some();
    let lines = match probed {
        Some(lines) => lines,
        None => timeline::judge_each(trace, &predicates, range.first(), range.to)?,
    };
    let mut lines = lines.into_iter().zip(&begins).map(whole);
    let scans = match range.scan {
        true => timeline::scan(trace, &predicates, range.first(), range.to)?,
        false => Vec::new(),
    };
    let mut scans = scans.into_iter().zip(&begins).map(whole);
    let mut reports = Vec::with_capacity(questions.len());
    let unfinished = trace.missing_to(range.to)?;
    for question in questions {
        let report = match question {
            BisectSubject::Predicate(_) => {
                let line = lines.next().expect("one for each predicate");
                let mut report = report(&line, question.monotone() == Monotone::Lifted);
                report.candidates = (question.monotone() == Monotone::Unknown).then_some(line.judged);
                report.scan = scans.next().map(|line| line.onset());
                report
            }
            BisectSubject::PolicyFlip(about) => policy_flip(trace, about, range)?,
            BisectSubject::Divergence(found) => {
                let at = found.tick.filter(|at| *at <= range.to).map(|at| at.max(range.from));
                let line = Timeline::latched(range.from, range.to, at, 0);
                BisectReport { scan: range.scan.then(|| line.onset()), ..report(&line, false) }
            }
            BisectSubject::Regression(found) => {
                // Every tick was looked at in the first place, so there is nothing to compare a scan with.
                report(&found.timeline(range.from, range.to), false)
            }
        };
        reports.push(within(report, range.to, unfinished));
    }
    confirm(trace, questions, &reports, range.since, are_probed)?;
    Ok(reports)
}

/// A report of no violation is not known beyond the last tick of an import that was stopped.
fn within(report: BisectReport, to: u64, unfinished: Option<Unfinished>) -> BisectReport {
    match (&report.outcome, unfinished) {
        (BisectOutcome::Never, Some(found)) => {
            let unjudged = vec![found.behind(to)];
            BisectReport { outcome: BisectOutcome::Uncertain(to + 1, found.words()), unjudged, ..report }
        }
        _ => report,
    }
}

/// Asks again from the tick at which the places that a predicate reads are there, if the run begins without one: of the ticks before,
/// nothing can be said. `None` if that gives no answer either.
pub fn once_there(
    trace: &Trace,
    question: &BisectSubject,
    report: &BisectReport,
    range: &Range,
) -> Result<Option<(u64, BisectReport)>, Error> {
    let (BisectOutcome::Uncertain(..), BisectSubject::Predicate(predicate)) = (&report.outcome, question)
    else {
        return Ok(None);
    };
    // Each of its rules counts from where it has its places already.
    if predicate.is_policy() {
        return Ok(None);
    }
    let Some(since) = there_since(trace, predicate, range.to)? else { return Ok(None) };
    let again = bisect(trace, question, &Range { scan: range.scan, ..Range::since(since, range.to) })?;
    // A place that is violated, or cannot be judged, as soon as it is there has no tick before it that is known to be well.
    Ok((again.low.1 == Verdict::Ok).then_some((since, again)))
}

/// The first tick at which every place that a predicate reads is there, where the run begins without one of them. `None` if all are
/// there at the beginning, if one is there at no tick, or if an erased change may have written one.
fn there_since(trace: &Trace, predicate: &Predicate, to: u64) -> Result<Option<u64>, Error> {
    let genesis = trace.state(0)?;
    let mut since = None;
    for place in predicate.read_set() {
        if place.get(&genesis).is_some() || place.tokens().next().as_deref() == Some(COUNTERS) {
            continue;
        }
        let found = why::writes(trace, place, 1, to)?;
        let mut first = None;
        for write in found.writes {
            if place.get(&trace.state(write.tick)?).is_some() {
                first = Some(write.tick);
                break;
            }
        }
        match first {
            // A place that is unknown before was written, so the ticks before count.
            Some(tick)
                if found.hidden.is_empty() && unknown::meets(&trace.state(tick - 1)?, place).is_none() =>
            {
                since = since.max(Some(tick));
            }
            _ => return Ok(None),
        }
    }
    Ok(since)
}

/// Where the range of a predicate begins. For one that an extension brought in with the tick before it, if it held there: then
/// what is violated behind it came about behind it. Where it did not hold or cannot be judged, with the extension. One
/// with a scope is asked of each transition by itself, so the state before makes no difference to it.
fn begins(trace: &Trace, predicate: &Predicate, range: &Range) -> Result<u64, Error> {
    let Some(since) = range.since.filter(|since| *since > 0) else { return Ok(range.from) };
    let holds = !predicate.scope().is_empty() || timeline::around(trace, predicate, since)?.0 == Verdict::Ok;
    Ok(if holds { range.from } else { since })
}

/// Answers from the verdicts of a range that were worked out elsewhere ([`crate::ask::fleet`]).
pub(crate) fn of_line(line: &Timeline, lift: bool) -> BisectReport {
    report(line, lift)
}

/// Answers from the verdicts of a range: looks whether the predicate recovers, then halves.
fn report(line: &Timeline, lift: bool) -> BisectReport {
    let searched = if lift { line.lifted() } else { line.clone() };
    let (from, to) = (line.from, line.to);
    let mut report = BisectReport {
        low: (from, searched.at(from).clone()),
        high: (to, searched.at(to).clone()),
        probes: Vec::new(),
        probes_max: probes_max(to - from),
        candidates: None,
        outcome: BisectOutcome::Never,
        recoveries: None,
        allowed: None,
        known_to: line.known_to,
        standing: line.standing.clone(),
        first_certain: None,
        unjudged: Vec::new(),
        scan: None,
    };
    let unknown = searched.turns.iter().position(|(_, verdict)| matches!(verdict, Verdict::Uncertain(_)));
    let known = &searched.turns[..unknown.unwrap_or(searched.turns.len())];
    let first = known.iter().position(|(_, verdict)| *verdict == Verdict::Violation);
    if let Some(first) = first.filter(|first| first + 1 < known.len()) {
        report.outcome = BisectOutcome::Recovers(known[first..].to_vec());
        return report;
    }
    // A violation before the first tick that cannot be judged is exact; after that tick it may not be the first.
    if let (Some(at), None) = (unknown, first) {
        let Some((tick, Verdict::Uncertain(why))) = searched.turns.get(at) else {
            unreachable!("found above")
        };
        report.outcome = BisectOutcome::Uncertain(*tick, why.clone());
        let later = searched.turns[at..].iter().find(|(_, verdict)| *verdict == Verdict::Violation);
        report.first_certain = later.map(|(tick, _)| *tick);
        report.unjudged = searched.unjudged();
        return report;
    }
    let known_to = unknown.map_or(to, |at| searched.turns[at].0 - 1);
    report.outcome = match (&report.low.1, first) {
        (Verdict::Violation, _) => BisectOutcome::Initial,
        (_, Some(_)) => {
            let judge = &mut |tick| Ok::<_, std::convert::Infallible>(searched.at(tick).clone());
            search(from, known_to, judge, &mut report.probes).unwrap_or_else(|never| match never {})
        }
        (_, None) => BisectOutcome::Never,
    };
    if let (true, Some(onset)) = (lift, report.onset()) {
        let behind = line.intervals().into_iter().filter(|interval| interval.from > onset);
        report.recoveries = Some(behind.filter(|interval| interval.verdict != Verdict::Violation).collect());
    }
    report
}

/// Finds the first deny or escalate for a type after an allow for it, by reading every decision.
fn policy_flip(trace: &Trace, about: &TypeName, range: &Range) -> Result<BisectReport, Error> {
    declared::types(trace, [about.as_str()])?;
    let (mut allowed, mut flip, mut erased, mut unread) = (None, None, None, None);
    trace.for_each(1, range.to, &mut |tick, record| {
        let noted = record.body().value("/anomalies").filter(|_| unread.is_none());
        if noted.is_some_and(|noted| unknown::has_unread(&noted)) {
            unread = Some(tick);
        }
        match decision(trace, &record, about) {
            Decision::Word(word) if word == "allow" => allowed = Some(tick),
            Decision::Word(_) if allowed.is_some() => flip = Some(tick),
            Decision::Word(_) | Decision::None => {}
            Decision::Erased => erased = Some(tick),
        }
        if flip.or(erased).is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    if let Some(tick) = erased {
        let (what, pointer) = (format!("what was decided about {about}"), Pointer::of(["policy"]));
        return Err(Error::Hidden { what, tick, pointer });
    }
    let line = Timeline::latched(range.from, range.to, flip.map(|flip| flip.max(range.from)), 0);
    // A message that could not be read may have been a decision: before it, a flip is exact.
    let line = match unread.filter(|unread| flip.is_none_or(|flip| *unread < flip)) {
        Some(tick) => {
            let cause = Since { tick, code: unknown::NOT_READ.into() };
            line.unknown_from(tick, format!("a decision may be missing: {}", cause.words()))
        }
        None => line,
    };
    let mut report = report(&line, false);
    report.allowed = allowed;
    report.scan = range.scan.then(|| line.onset());
    Ok(report)
}

/// Returns the ticks before a flip at which a type was allowed: without them it is no flip.
pub fn allows(trace: &Trace, about: &TypeName, flip: u64) -> Result<Vec<u64>, Error> {
    let mut found = Vec::new();
    trace.for_each(1, flip.saturating_sub(1), &mut |tick, record| {
        if matches!(decision(trace, &record, about), Decision::Word(word) if word == "allow") {
            found.push(tick);
        }
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

enum Decision {
    None,
    /// `allow`, `deny` or `escalate`.
    Word(String),
    /// It cannot be read any more.
    Erased,
}

/// Returns what a transition decides about a type: a `policy.decision` that names it, or else that was caused by a transition of it,
/// or a transition of that type with the decision about itself. No agent can write a decision.
fn decision(trace: &Trace, record: &Record, about: &TypeName) -> Decision {
    let Some(own) = &record.header().type_name else { return Decision::None };
    let decides = own.as_str() == "policy.decision";
    if !decides && own != about {
        return Decision::None;
    }
    let body = record.body();
    let policy = Pointer::of(["policy"]);
    if body.fields().iter().any(|field| field.pointer.overlaps(&policy) && body.text(field).is_none()) {
        return Decision::Erased;
    }
    let content = record.content();
    let said = |name: &str| content.get("policy")?.get(name)?.as_str();
    match said("decision") {
        Some(word) if !decides || is_about(trace, record, said("transition_type"), about) => {
            Decision::Word(word.to_owned())
        }
        _ => Decision::None,
    }
}

/// Whether a decision is about a type: by the type that it names, else by that of the transition that caused it.
fn is_about(trace: &Trace, record: &Record, named: Option<&str>, about: &TypeName) -> bool {
    if let Some(named) = named {
        return named == about.as_str();
    }
    let causes = record.header().links.iter().filter(|link| link.rel == Rel::CausedBy);
    causes.into_iter().any(|link| {
        let position = trace.store().find(&link.hash).ok().flatten();
        let cause = position.and_then(|position| trace.store().get(position).ok().flatten());
        cause.is_some_and(|cause| cause.header().type_name.as_ref() == Some(about))
    })
}

/// Halves the range between a tick that is ok and one that is violated.
pub fn search<E>(
    low: u64,
    high: u64,
    judge: &mut dyn FnMut(u64) -> Result<Verdict, E>,
    probes: &mut Vec<Probe>,
) -> Result<BisectOutcome, E> {
    let (mut low, mut high) = (low, high);
    while high - low > 1 {
        let tick = low + (high - low) / 2;
        let verdict = judge(tick)?;
        match &verdict {
            Verdict::Violation => high = tick,
            Verdict::Ok => low = tick,
            Verdict::Uncertain(why) => {
                let outcome = BisectOutcome::Uncertain(tick, why.clone());
                probes.push(Probe { tick, verdict, left: (low + 1, high) });
                return Ok(outcome);
            }
        }
        probes.push(Probe { tick, verdict, left: (low + 1, high) });
    }
    Ok(BisectOutcome::Onset(high))
}

/// Returns ceil(log2 n): how many probes a range of n ticks after the first can need.
pub fn probes_max(n: u64) -> u32 {
    if n <= 1 { 0 } else { 64 - (n - 1).leading_zeros() }
}

/// Judges each onset and the tick before it once more: from the records, without the index and without anything that
/// was remembered. Decisions were read from the records in the first place. Counters come from the beginning of a run
/// alone: where the verdicts were worked out before, they were judged then.
fn confirm(
    trace: &Trace,
    questions: &[BisectSubject],
    reports: &[BisectReport],
    since: Option<u64>,
    are_probed: bool,
) -> Result<(), Error> {
    let mut onsets: BTreeMap<u64, Vec<&Predicate>> = BTreeMap::new();
    for (question, report) in questions.iter().zip(reports) {
        if let (Some(predicate), BisectOutcome::Onset(tick)) = (question.predicate(), &report.outcome) {
            let is_known = are_probed || report.known_to.is_some_and(|known| known >= *tick);
            if predicate.reads_counters() && is_known {
                continue;
            }
            onsets.entry(*tick).or_default().push(predicate);
        }
    }
    let counted = onsets.values().flatten().any(|predicate| predicate.reads_counters());
    let fresh = Trace::open(trace.store(), trace.name())?.by_path()?;
    let fresh = if counted { fresh.without_snapshots() } else { fresh };
    // In order of tick, so that the fold goes on from where it stands.
    for (tick, predicates) in onsets {
        for predicate in predicates {
            let (before, at) = timeline::around(&fresh, predicate, tick)?;
            // One with a scope that an extension brought in may have been violated by transitions that it was not asked of.
            let holds_before =
                before == Verdict::Ok || (!predicate.scope().is_empty() && since == Some(tick));
            if !holds_before || at != Verdict::Violation {
                return Err(Error::Unconfirmed { run: trace.name().clone(), tick });
            }
        }
    }
    // The state at the onset is the next question of most callers.
    trace.learn_from(fresh);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(n: u64, onset: u64) -> (Vec<u64>, BisectOutcome) {
        let mut probes = Vec::new();
        let mut judge = |tick: u64| {
            Ok::<_, std::convert::Infallible>(if tick >= onset { Verdict::Violation } else { Verdict::Ok })
        };
        let outcome = search(0, n, &mut judge, &mut probes).unwrap_or(BisectOutcome::Never);
        (probes.iter().map(|probe| probe.tick).collect(), outcome)
    }

    #[test]
    fn probes_come_in_the_orders_of_the_paper() {
        for (n, onset, expected) in [
            (64, 22, &[32, 16, 24, 20, 22, 21][..]),
            (64, 14, &[32, 16, 8, 12, 14, 13]),
            (48, 1, &[24, 12, 6, 3, 1]),
            (40, 12, &[20, 10, 15, 12, 11]),
            (40, 14, &[20, 10, 15, 12, 13, 14]),
            (8, 4, &[4, 2, 3]),
            (8, 2, &[4, 2, 1]),
            (64, 64, &[32, 48, 56, 60, 62, 63]),
        ] {
            assert_eq!(order(n, onset), (expected.to_vec(), BisectOutcome::Onset(onset)), "({n}, {onset})");
        }
    }

    #[test]
    fn every_onset_of_every_length_is_found_within_the_bound() {
        for n in 1..300 {
            for onset in 1..=n {
                let (probes, outcome) = order(n, onset);
                assert_eq!(outcome, BisectOutcome::Onset(onset));
                assert!(probes.len() as u32 <= probes_max(n), "({n}, {onset}): {probes:?}");
            }
        }
        assert_eq!([1, 2, 3, 4, 5, 40, 48, 64, 65].map(probes_max), [0, 1, 2, 2, 3, 6, 6, 6, 7]);
    }
}
