//! A bisect with everything that is said beside its onset: the transition, its causes and what followed.

use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_kernel::names::KERNEL_PATHS;
use dendrer_kernel::pack::Pack;
use dendrer_kernel::predicate::{BUILT_IN, Predicate};
use dendrer_kernel::progress::Evaluation;
use dendrer_object::record::Record;
use dendrer_object::{Digest, Pointer, RunName, TypeName};

use crate::ask::bisect;
use crate::ask::bisect::{BisectOutcome, BisectReport, BisectSubject, Range, bisect_each};
use crate::ask::contributors::{Contributors, ContributorsFound, WORK_MAX, contributors};
use crate::ask::diagnosis;
use crate::ask::first_seen::{FirstSeen, SeenValue};
use crate::ask::prose::results_read_from_text;
use crate::ask::regression::{Metric, regression};
use crate::ask::show::{PlaceChange, changes};
use crate::ask::why::gather::{Records, add_records};
use crate::ask::why::sources::{self, SourceWrite};
use crate::ask::why::{self, Chain, UpstreamRecord};
use crate::casebook::diagnosis::{DiagnosisClass, Offer};
use crate::error::Error;
use crate::registry::Registered;
use crate::run::pack;
use crate::run::timeline::Interval;
use crate::run::trace::Trace;

/// How many decisions of a flip are shown.
pub const ALLOWS_SHOWN: usize = 12;

/// The remark on a fork with words for the agent.
const WORDS_ALONE: &str = "words for the agent; nothing enforces them";

/// The remark on a fork before the answer of a call in a run whose agents bring the changes.
const BEFORE_THE_ANSWER: &str = "before the answer came in; no rules, so the agent itself goes on from there";

/// The type of the answer of a call.
fn result_type() -> TypeName {
    "action.result".parse().expect("a type of the ontology")
}

/// A command that is worth trying next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestion {
    /// The words of the command; FILE is a file of the reader.
    pub argv: Vec<String>,
    /// A remark for the reader, which is no part of the command.
    pub remark: Option<String>,
}

/// The onset of one question in a run.
#[derive(Debug, Clone)]
pub struct BisectFound {
    /// The run.
    pub run: RunName,
    /// The question.
    pub question: BisectSubject,
    /// The answer.
    pub report: BisectReport,
    /// Whether the run was closed with the last tick of the range.
    pub ended: bool,
    /// How many results with a status that was read from prose the answer uses.
    pub from_text: u64,
    /// The transition at the onset; `None` if there is no onset.
    pub origin: Option<BisectOrigin>,
}

/// A transition at an onset.
#[derive(Debug, Clone)]
pub struct BisectOrigin {
    /// The tick.
    pub tick: u64,
    /// The record.
    pub record: Record,
    /// The changes that it made.
    pub changes: Vec<PlaceChange>,
}

/// What is looked up beside an onset.
#[derive(Debug, Clone, Copy)]
pub struct BisectDetails {
    /// Whether the smallest set of earlier transitions that it depends on is searched.
    pub contributors: bool,
    /// How many transitions of the causal chain are followed; 0 for none.
    pub chain_limit: usize,
    /// Whether a fork of the run can be suggested; a run of a bundle cannot be forked.
    pub may_fork: bool,
}

/// The answer to one bisect.
#[derive(Debug, Clone)]
pub struct BisectAnswer {
    /// The onset.
    pub found: BisectFound,
    /// The registration of the predicate, if its name is registered.
    pub registered: Option<Registered>,
    /// The digest of another predicate of the same name in the pack of the run.
    pub other_in_pack: Option<Digest>,
    /// The tick from which on the predicate is part of the contract, if the range begins with it.
    pub since: Option<u64>,
    /// What a progress contract says at both ends, at each probe and at the onset.
    pub evaluations: Option<Vec<(u64, Evaluation)>>,
    /// The contributors, if they were searched.
    pub contributors: Option<Contributors>,
    /// The class of failure that the onset looks like.
    pub offer: Option<Offer>,
    /// The record that brought the data which the offer names.
    pub source: Option<Record>,
    /// The class that a person decided on.
    pub decided: Option<DiagnosisClass>,
    /// What followed from the onset.
    pub chain: Option<Chain>,
    /// The writes in the sources of a merge that a violated beginning comes from.
    pub sources: Vec<SourceWrite>,
    /// What the recorded links of the onset lead back to.
    pub upstream: Vec<UpstreamRecord>,
    /// For a policy flip: the ticks of the decisions without which it is no flip, if they were asked for.
    pub allows: Option<Vec<u64>>,
    /// The largest writes up to the onset, and where their values were seen first; `None` if nothing is written that the
    /// question reads.
    pub first_seen: Option<FirstSeen>,
    /// Whether rules of a pack compute the state at the onset, so that a fork that changes something has an effect.
    pub has_rules: bool,
    /// The top members of the state that rules for answers of calls write from the answer itself.
    pub from_answers: BTreeSet<Arc<str>>,
    /// The records of chain, contributors and links.
    pub records: Records,
    /// Whether a fork of the run can be suggested.
    pub may_fork: bool,
}

impl BisectFound {
    /// Reads the transition at the onset of a report.
    pub fn of(trace: &Trace, question: BisectSubject, report: BisectReport) -> Result<BisectFound, Error> {
        let origin = report.onset().map(|tick| BisectOrigin::read(trace, tick)).transpose()?;
        let ended = is_last(trace, report.high.0);
        let upto = report.onset().unwrap_or(report.high.0);
        let from_text = match &question {
            BisectSubject::Regression(regression) => regression.from_text,
            question => results_read_from_text(trace, question.predicate(), upto)?,
        };
        Ok(BisectFound { run: trace.name().clone(), question, report, ended, from_text, origin })
    }
}

impl BisectOrigin {
    /// Reads the transition at a tick; the record that begins the run wrote nothing.
    pub fn read(trace: &Trace, tick: u64) -> Result<BisectOrigin, Error> {
        let record = trace.record(tick)?;
        let changes = match tick {
            0 => Vec::new(),
            _ => changes(&record, &trace.state(tick - 1)?, &trace.state(tick)?),
        };
        Ok(BisectOrigin { tick, record, changes })
    }
}

/// Whether a run was closed with this tick, so nothing comes after it.
pub fn is_last(trace: &Trace, tick: u64) -> bool {
    tick == trace.tip() && trace.summary().ended
}

/// Looks up the transitions that contributed to an onset, if they are asked for, with their records.
fn contributors_of(
    trace: &Trace,
    found: &BisectFound,
    details: BisectDetails,
    records: &mut Records,
) -> Result<Option<Contributors>, Error> {
    let (true, Some(onset), Some(predicate)) =
        (details.contributors, found.report.onset(), found.question.predicate())
    else {
        return Ok(None);
    };
    let contributors = contributors(trace, predicate, found.report.low.0, onset, WORK_MAX)?;
    if let ContributorsFound::Set { ticks, .. } = &contributors.found {
        add_records(trace, ticks.iter().copied(), records)?;
    }
    Ok(Some(contributors))
}

/// Looks up the decisions that allowed what a flip denies, if they are asked for, with the records of those that are shown.
fn allows_of(
    trace: &Trace,
    found: &BisectFound,
    details: BisectDetails,
    records: &mut Records,
) -> Result<Option<Vec<u64>>, Error> {
    let (true, BisectSubject::PolicyFlip(about), Some(onset)) =
        (details.contributors, &found.question, found.report.onset())
    else {
        return Ok(None);
    };
    let allows = bisect::allows(trace, about, onset)?;
    add_records(trace, allows.iter().copied().take(ALLOWS_SHOWN), records)?;
    Ok(Some(allows))
}

/// Where values were seen first, whether rules compute the state, and the top members that they write from answers of calls.
type SeenWithRules = (Option<FirstSeen>, bool, BTreeSet<Arc<str>>);

/// Looks for where the values up to an onset were seen first, and whether rules compute the state there.
fn seen_of(trace: &Trace, question: &BisectSubject, report: &BisectReport) -> Result<SeenWithRules, Error> {
    let (BisectOutcome::Onset(tick), Some(predicate)) = (&report.outcome, question.predicate()) else {
        return Ok((None, false, BTreeSet::new()));
    };
    // A pack that cannot be read reduces nothing in a fork either.
    let reducer = pack::reducer_of_segment(trace, trace.segment(*tick));
    let has_rules = reducer.is_ok_and(|reducer| !reducer.takes_delta());
    let of_pack = match has_rules {
        true => pack::of_segment(trace, trace.segment(*tick))?,
        false => None,
    };
    let from_answers = of_pack.map(|pack| pack.written_from_output(&result_type())).unwrap_or_default();
    Ok((FirstSeen::of_onset(trace, predicate, *tick)?, has_rules, from_answers))
}

impl BisectAnswer {
    /// Looks up the causes of the onset of a report.
    pub fn of(
        trace: &Trace,
        question: BisectSubject,
        report: BisectReport,
        details: BisectDetails,
    ) -> Result<BisectAnswer, Error> {
        let found = BisectFound::of(trace, question, report)?;
        let BisectFound { question, report, .. } = &found;
        let mut records = Records::new();
        let contributors = contributors_of(trace, &found, details, &mut records)?;
        let sources = match (&report.outcome, question.predicate()) {
            (BisectOutcome::Initial, Some(predicate)) if report.low.0 == 0 => {
                sources::of_violation(trace, predicate)?
            }
            _ => Vec::new(),
        };
        let offer = match sources.first() {
            Some(write) => Some(diagnosis::from_source(write)),
            None => diagnosis::offer(trace, question, report)?,
        };
        let entered = |offer: &Offer| offer.entered.or_else(|| offer.or.as_ref()?.entered);
        let source = offer.as_ref().and_then(entered).map(|tick| trace.record(tick)).transpose()?;
        let chain = match report.outcome {
            BisectOutcome::Onset(tick) if details.chain_limit > 0 => {
                Some(why::chain(trace, tick, report.high.0, details.chain_limit)?)
            }
            _ => None,
        };
        let members = chain.iter().flat_map(|chain| chain.members.iter().map(|member| member.tick));
        add_records(trace, members, &mut records)?;
        let upstream = match report.outcome {
            BisectOutcome::Onset(tick) => why::upstream(trace, tick, details.chain_limit)?,
            _ => Vec::new(),
        };
        add_records(trace, upstream.iter().map(|one| one.tick), &mut records)?;
        let allows = allows_of(trace, &found, details, &mut records)?;
        let evaluations = evaluations(trace, question, report)?;
        let (first_seen, has_rules, from_answers) = seen_of(trace, question, report)?;
        Ok(BisectAnswer {
            first_seen,
            has_rules,
            from_answers,
            sources,
            upstream,
            allows,
            found,
            registered: None,
            other_in_pack: None,
            since: None,
            evaluations,
            contributors,
            offer,
            source,
            decided: None,
            chain,
            records,
            may_fork: details.may_fork,
        })
    }

    /// Whether no onset can be relied on.
    pub fn is_refused(&self) -> bool {
        matches!(self.found.report.outcome, BisectOutcome::Recovers(_) | BisectOutcome::Uncertain(..))
    }

    /// The class that counts: a person's, or else the one that is offered.
    pub fn class(&self) -> Option<DiagnosisClass> {
        self.decided.or(self.offer.as_ref().map(|offer| offer.class))
    }

    /// Returns the command that is worth trying first; `None` without one ([`BisectAnswer::suggestions`]).
    pub fn suggestion(&self) -> Option<Vec<String>> {
        Some(self.suggestions().into_iter().next()?.argv)
    }

    /// Returns the commands that are worth trying next: first what changes the run by itself, then words for the agent.
    ///
    /// None if the run began with the problem, because then no state of it is from before; nor for a run that cannot be
    /// forked.
    pub fn suggestions(&self) -> Vec<Suggestion> {
        // A divergence has no class: it is no failure of either run.
        let Some(class) = self.class() else { return Vec::new() };
        let words = self.fork_for(class).map(|argv| {
            let is_reason = argv.iter().any(|word| word == "--reason");
            Suggestion { remark: (!is_reason).then(|| WORDS_ALONE.to_owned()), argv }
        });
        let first = words.as_ref().and_then(|_| self.change());
        first.into_iter().chain(words).collect()
    }

    /// Returns the fork that changes the run by itself.
    fn change(&self) -> Option<Suggestion> {
        let seen = self.first_seen.as_ref()?;
        let run = self.found.run.as_str();
        let fork = |tick: u64, more: &[String], remark: String| {
            let point = format!("{run}@{tick}");
            let argv = ["dendrer", "fork", &point].map(str::to_owned).into_iter().chain(more.iter().cloned());
            Some(Suggestion { argv: argv.collect(), remark: Some(remark) })
        };
        let rest = "--replay-rest".to_owned();
        match (seen.answered(), self.has_rules) {
            (Some((seen, at)), true) => {
                let (tick, tool) = self.read_answer(seen).unwrap_or_else(|| (at.tick, at.tool.clone()));
                let file = ["--tool-output".to_owned(), format!("{tick}=FILE"), rest];
                let of = tool.map_or_else(String::new, |tool| format!(" of {tool}"));
                fork(tick - 1, &file, format!("FILE has another answer{of}"))
            }
            (Some((_, at)), false) => fork(at.tick - 1, &[], BEFORE_THE_ANSWER.to_owned()),
            (None, true) => {
                // A value at the end of what was asked about changes nothing that follows.
                let has_rest = self.found.report.high.0 > seen.upto;
                let write = seen.moved.iter().find(|write| write.tick == seen.upto).filter(|_| has_rest)?;
                let (place, before) = (write.place.dotted(), write.before.as_ref()?);
                let set = ["--set".to_owned(), format!("{place}={before}"), rest];
                fork(write.tick, &set, format!("puts {place} back to its value before tick {}", write.tick))
            }
            (None, false) => None,
        }
    }

    /// Returns the answer that rules read when they wrote a value, and its tool: another answer in which the value was seen before
    /// would change nothing.
    fn read_answer(&self, seen: &SeenValue) -> Option<(u64, Option<String>)> {
        let moved = self.first_seen.iter().flat_map(|found| &found.moved);
        let write = moved.into_iter().find(|write| write.tick == seen.write && write.place == seen.place)?;
        let is_answer = write.record.header().type_name.as_ref().is_some_and(|name| *name == result_type());
        let is_read = seen.place.tokens().next().is_some_and(|top| self.from_answers.contains(&*top));
        let tool = write.record.body().value("/action/tool");
        let tool = tool.and_then(|tool| tool.as_str().map(str::to_owned));
        (is_answer && is_read).then_some((write.tick, tool))
    }

    /// Returns the command that forks the run before the onset, for a class; `None` for what no fork helps. It follows from what
    /// was found: before the data entered that the onset follows from, with what to look at.
    pub fn fork_for(&self, class: DiagnosisClass) -> Option<Vec<String>> {
        if let Some(write) = self.sources.first() {
            let type_name = write.record.header().type_name.as_ref().map_or("", |name| name.as_str());
            let words = format!("review what {type_name} writes to {}", write.path.dotted());
            let (run, before) = (write.run.as_str(), (write.tick - 1).to_string());
            let argv = ["dendrer", "fork", "--run", run, "--from", "tick", &before, "--policy", &words];
            let is_helped = self.may_fork && class != DiagnosisClass::Foundational;
            return is_helped.then(|| argv.map(str::to_owned).to_vec());
        }
        let origin = self.found.origin.as_ref().filter(|origin| origin.tick > 0 && self.may_fork)?;
        if class == DiagnosisClass::Foundational {
            return None;
        }
        let offers = self.offer.iter().flat_map(|offer| [Some(offer), offer.or.as_deref()]).flatten();
        let offer = offers.into_iter().find(|offer| offer.class == class);
        let type_of =
            |record: &Record| record.header().type_name.as_ref().map_or("", |name| name.as_str()).to_owned();
        let (onset, type_name) = (origin.tick, type_of(&origin.record));
        let entered =
            offer.and_then(|offer| offer.entered).filter(|_| class == DiagnosisClass::ContingentState);
        let source = entered.and_then(|tick| match tick == onset {
            true => Some(&origin.record),
            false => self.source.as_ref(),
        });
        let decision = offer.and_then(|offer| offer.decision);
        let (flag, words) = match (offer.and_then(|offer| offer.gap.as_deref()), source) {
            (Some(gap), _) => ("--reason", format!("something is missing at tick {onset}: {gap}")),
            (None, Some(source)) if type_of(source) == "observation.add" => {
                ("--tool-policy", "require source verification before observation.add".to_owned())
            }
            (None, Some(source)) => {
                let tool =
                    source.body().value("/action/tool").and_then(|tool| tool.as_str().map(str::to_owned));
                let call = tool.map_or_else(|| "each call".to_owned(), |tool| format!("each call of {tool}"));
                ("--tool-policy", format!("review {call} before it is made"))
            }
            (None, None) if class == DiagnosisClass::ContingentPolicy => {
                let words = match decision {
                    Some(at) if at != onset => {
                        format!("review what the decision at tick {at} allows for {type_name}")
                    }
                    _ if type_name == "policy.decision" => {
                        "review each policy.decision before it is committed".to_owned()
                    }
                    _ => format!("review what policy allows for {type_name}"),
                };
                ("--policy", words)
            }
            (None, None) => match self.place_that_broke(origin) {
                Some(place) => ("--policy", format!("review what {type_name} writes to {place}")),
                None => ("--policy", format!("review each {type_name} before it is committed")),
            },
        };
        let before = (entered.unwrap_or(onset) - 1).to_string();
        let run = self.found.run.as_str();
        let argv = ["dendrer", "fork", "--run", run, "--from", "tick", &before, flag, &words];
        Some(argv.map(str::to_owned).to_vec())
    }

    /// The first place that the onset wrote and that the predicate reads.
    fn place_that_broke(&self, origin: &BisectOrigin) -> Option<String> {
        let reads = self.found.question.predicate()?.read_set();
        // A latch of the kernel says that something broke, and not what.
        let is_kernels =
            |path: &Pointer| path.tokens().next().is_some_and(|top| KERNEL_PATHS.contains(&&*top));
        let is_read = |path: &Pointer| !is_kernels(path) && reads.iter().any(|read| read.overlaps(path));
        origin.changes.iter().map(|change| &change.path).find(|path| is_read(path)).map(Pointer::dotted)
    }
}

/// Reads what a progress contract says at both ends of the range, at each probe and at the onset; `None` for any other question.
fn evaluations(
    trace: &Trace,
    question: &BisectSubject,
    report: &BisectReport,
) -> Result<Option<Vec<(u64, Evaluation)>>, Error> {
    let Some(contract) = question.predicate().filter(|one| one.progress().is_some()) else { return Ok(None) };
    let mut ticks = vec![report.low.0, report.high.0];
    ticks.extend(report.probes.iter().map(|probe| probe.tick));
    ticks.extend(report.onset());
    ticks.sort_unstable();
    ticks.dedup();
    let said = ticks.into_iter().map(|tick| {
        let counters = match contract.reads_counters() {
            true => Some(trace.at(tick)?.served()),
            false => None,
        };
        Ok((tick, contract.evaluate(&trace.state(tick)?, counters.as_ref())))
    });
    Ok(Some(said.collect::<Result<_, Error>>()?))
}

/// What a hard predicate says of a range.
#[derive(Debug, Clone)]
pub struct HardFound {
    /// The predicate.
    pub predicate: Predicate,
    /// What was found.
    pub report: BisectReport,
    /// How many results have a status that was read from prose, if the predicate uses it.
    pub from_text: u64,
}

/// Where a score fell first, and what each hard predicate says of the same range.
#[derive(Debug, Clone)]
pub struct RegressionAnswer {
    /// Where the score fell.
    pub found: BisectFound,
    /// The hard predicates: the built-in ones, and all of the pack that is no score. There is at least one.
    pub hard: Vec<HardFound>,
    /// The transition at the onset that counts.
    pub origin: Option<BisectOrigin>,
}

impl RegressionAnswer {
    /// Asks where a metric fell first, and all hard predicates with it.
    pub fn of(
        trace: &Trace,
        pack: &Pack,
        metric: &Metric<'_>,
        range: &Range,
    ) -> Result<RegressionAnswer, Error> {
        let declared = pack.declared().map(|declared| &declared.predicate);
        let hard = BUILT_IN.iter().filter_map(|name| Predicate::built_in(name));
        // The first violation counts, whatever came after it.
        // At one tick the pack's own predicate says more than that the run is not compliant.
        let hard: Vec<Predicate> = declared.cloned().chain(hard).map(Predicate::lifted).collect();
        let score = regression(trace, pack, metric, range)?;
        let questions: Vec<BisectSubject> =
            [score].into_iter().chain(hard.iter().cloned().map(BisectSubject::Predicate)).collect();
        let mut reports = bisect_each(trace, &questions, range)?.into_iter();
        let (Some(score), Some(report)) = (questions.into_iter().next(), reports.next()) else {
            unreachable!("one report for each question")
        };
        let found = BisectFound::of(trace, score, report)?;
        let hard = hard.into_iter().zip(reports).map(|(predicate, report)| {
            let upto = violated_at(&report).unwrap_or(report.high.0);
            let from_text = results_read_from_text(trace, [&predicate], upto)?;
            Ok(HardFound { predicate, report, from_text })
        });
        let hard = hard.collect::<Result<_, Error>>()?;
        let mut answer = RegressionAnswer { found, hard, origin: None };
        let onset = answer.decisive().report.onset();
        answer.origin = onset.map(|onset| BisectOrigin::read(trace, onset)).transpose()?;
        Ok(answer)
    }

    /// The hard predicate that counts: the first one that is violated, else the first that cannot be judged, else the first.
    pub fn decisive(&self) -> &HardFound {
        let violated = self.hard.iter().filter(|hard| violated_at(&hard.report).is_some());
        let first = violated.min_by_key(|hard| violated_at(&hard.report));
        let is_unknown = |report: &BisectReport| matches!(report.outcome, BisectOutcome::Uncertain(..));
        let unknown = || self.hard.iter().find(|hard| is_unknown(&hard.report));
        first.or_else(unknown).unwrap_or_else(|| &self.hard[0])
    }

    /// Whether the score and the hard predicates name the same tick, or neither names one.
    pub fn agree(&self) -> bool {
        let (score, hard) = (&self.found.report, &self.decisive().report);
        let is_unknown = |report: &BisectReport| matches!(report.outcome, BisectOutcome::Uncertain(..));
        score.onset() == violated_at(hard) && !is_unknown(score) && !is_unknown(hard)
    }

    /// Why the answer is not known: no hard predicate is violated, and one of them, or the score, cannot be judged.
    pub fn unknown(&self) -> Option<(String, u64, &str, &[Interval])> {
        let HardFound { predicate, report: hard, .. } = self.decisive();
        if violated_at(hard).is_some() {
            return None;
        }
        let named = [(predicate.name().to_owned(), hard), (self.found.question.name(), &self.found.report)];
        named.into_iter().find_map(|(name, report)| match &report.outcome {
            BisectOutcome::Uncertain(tick, why) => Some((name, *tick, why.as_str(), &report.unjudged[..])),
            _ => None,
        })
    }
}

/// The first violated tick of a range; that of a range that begins in violation is its first.
pub fn violated_at(report: &BisectReport) -> Option<u64> {
    match report.outcome {
        BisectOutcome::Onset(tick) => Some(tick),
        BisectOutcome::Initial => Some(report.low.0),
        _ => None,
    }
}
