//! Bisect over exported rows: judges the own ticks of a run one by one, joins them with those of the runs that it was forked
//! from, and answers as [`bisect`](crate::ask::bisect) does.
//!
//! Reads no file and no store: the caller brings rows. Rule: a row that cannot be judged is counted and makes the answer of its
//! run uncertain; test `fleet_agrees_with_bisect_on_generated_runs` of `dendrer-fleet`.

use std::collections::BTreeMap;

use dendrer_kernel::expr::{Expr, ExprError, Scope};
use dendrer_kernel::names::{COUNTERS, UNKNOWN};
use dendrer_kernel::pack::reads_status;
use dendrer_kernel::predicate::{BUILT_IN, Monotone, Polarity, Predicate, Verdict};
use dendrer_kernel::unknown;
use dendrer_object::delta::{Delta, DeltaError, Op};
use dendrer_object::{Digest, Pointer, RunName, Value};

use crate::ask::bisect::{BisectOutcome, BisectReport, of_line};
use crate::ask::named;
use crate::error::Error;
use crate::pack;
use crate::registry;
use crate::run::timeline::{Timeline, from_first_name};
use crate::run::trace::{Trace, version_of};

/// A question about every run of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetQuestion {
    /// Which truth value of the expression is the violation.
    pub polarity: Polarity,
    /// The expression.
    pub text: String,
    /// The first tick; `None` for the first at which the places that it reads are there, as `bisect` asks.
    pub from: Option<u64>,
    /// The last tick; `None` for the last of each run.
    pub to: Option<u64>,
}

/// Why a question cannot be asked of an export.
#[derive(Debug, thiserror::Error)]
pub enum NotExported {
    /// It is the name of a predicate, which only a store resolves.
    #[error("{0} is the name of a predicate, and an export has no registered names")]
    Name(String),
    /// It reads something else than the state.
    #[error("the expression reads {0}, and an export has the state and counters alone")]
    Root(String),
    /// It reads the statuses of commitments.
    #[error("the expression reads state.commitments, and an export has no commitments")]
    Commitments,
    /// It reads counters without naming one.
    #[error("the expression reads all of state.counters, and an export has single counters as columns")]
    AllCounters,
    /// It reads a counter that is no column.
    #[error("the export has no column of state.counters.{0}")]
    Counter(String),
    /// The expression does not check.
    #[error(transparent)]
    Expr(#[from] ExprError),
}

/// The name under which rules read a transition.
const TRANSITION: &str = "t";

impl FleetQuestion {
    /// Reads the question as a predicate of a run without a pack, and refuses what no export answers.
    pub fn predicate(&self) -> Result<Predicate, NotExported> {
        let text = self.text.trim();
        if self.polarity == Polarity::Condition && (BUILT_IN.contains(&text) || registry::is_name(text)) {
            return Err(NotExported::Name(text.to_owned()));
        }
        let predicate =
            named::under(None, self.polarity, &self.text).map_err(|error| self.not_exported(error))?;
        refuse(&predicate)?;
        Ok(predicate)
    }

    /// Recognizes an expression that reads a transition: it checks once there is one.
    fn not_exported(&self, error: ExprError) -> NotExported {
        match Expr::parse_condition(&self.text, &Scope::new().root(TRANSITION)) {
            Ok(_) => NotExported::Root(TRANSITION.to_owned()),
            Err(_) => NotExported::Expr(error),
        }
    }

    /// Reads the question by the rules of a run with a pack: its definitions may be used, and its fields are checked.
    pub fn under(&self, pack: Option<&(Value, u64)>) -> Result<Predicate, String> {
        let words = |error: &dyn std::fmt::Display| error.to_string();
        let read = pack.map(|(value, version)| pack::check_by(value, *version)).transpose();
        let pack = read.map_err(|faults| faults.first().map_or_else(String::new, ToString::to_string))?;
        let predicate =
            named::under(pack.as_ref(), self.polarity, &self.text).map_err(|error| words(&error))?;
        refuse(&predicate).map_err(|error| words(&error))?;
        Ok(predicate)
    }
}

/// Refuses an expression that reads what no export has.
fn refuse(predicate: &Predicate) -> Result<(), NotExported> {
    if let Some(root) = predicate.exprs().flat_map(Expr::roots).next() {
        return Err(NotExported::Root(root.to_owned()));
    }
    if predicate.exprs().any(reads_status) {
        return Err(NotExported::Commitments);
    }
    if predicate.reads_counters() && predicate.exprs().all(|expr| expr.counters_read().next().is_none()) {
        return Err(NotExported::AllCounters);
    }
    Ok(())
}

/// Applies the part of a delta that an expression can look at, and nothing else.
#[derive(Debug, Clone)]
pub struct WatchedFold {
    watched: Vec<Pointer>,
}

impl WatchedFold {
    /// Watches the places that a predicate reads, each from its first name on, and the unknown places.
    pub fn of(predicate: &Predicate) -> WatchedFold {
        let places = predicate.read_set().iter().map(from_first_name);
        WatchedFold { watched: places.chain([Pointer::of([UNKNOWN])]).collect() }
    }

    /// Returns the state after a recorded delta, and whether anything was written that is watched.
    pub fn apply(&self, state: &mut Value, delta: &Value) -> Result<bool, DeltaError> {
        let touches = |op: &&Op| self.watched.iter().any(|place| place.overlaps(&op.path));
        let delta = Delta::from_value(delta)?;
        let part = Delta(delta.0.iter().filter(touches).cloned().collect());
        if part.is_empty() {
            return Ok(false);
        }
        *state = part.apply(state)?;
        Ok(true)
    }
}

/// A row of an export, as a predicate judges it.
#[derive(Debug, Clone, Copy)]
pub enum FleetRow<'a> {
    /// The state, and the counters if they are read.
    Known(&'a Value, Option<&'a Value>),
    /// The same state and counters as in the row before.
    Same,
    /// A value of the row, or of one before, was erased or withheld.
    Closed,
}

/// The verdicts of a predicate along the own ticks of a run.
#[derive(Debug, Clone)]
pub struct RunCourse {
    /// The first own tick.
    pub first: u64,
    /// The last own tick.
    pub last: u64,
    turns: Vec<(u64, Verdict)>,
    /// For each place that is read: the ticks at which it came or went.
    here: Vec<Vec<(u64, bool)>>,
    /// For each place that is read: the ticks at which it became unknown or known.
    unknown: Vec<Vec<(u64, bool)>>,
    closed: Option<u64>,
}

/// Judges the rows of one run in order of tick.
#[derive(Debug)]
pub struct RowJudge<'p> {
    predicate: &'p Predicate,
    places: Vec<&'p Pointer>,
    course: RunCourse,
    next: u64,
}

/// Adds a turn where the value is another than before.
fn turn<T: PartialEq>(turns: &mut Vec<(u64, T)>, tick: u64, now: T) {
    if turns.last().is_none_or(|(_, last)| *last != now) {
        turns.push((tick, now));
    }
}

/// The value at a tick of a list of turns.
fn at<T: Copy>(turns: &[(u64, T)], tick: u64) -> Option<T> {
    let after = turns.partition_point(|(turn, _)| *turn <= tick);
    turns.get(after.checked_sub(1)?).map(|(_, value)| *value)
}

impl<'p> RowJudge<'p> {
    /// Begins with the first own tick of a run.
    pub fn new(predicate: &'p Predicate, first: u64) -> RowJudge<'p> {
        let counters = |place: &&Pointer| place.tokens().next().as_deref() == Some(COUNTERS);
        let places: Vec<&Pointer> = predicate.read_set().iter().filter(|place| !counters(place)).collect();
        let none = vec![Vec::new(); places.len()];
        let course = RunCourse {
            first,
            last: first,
            turns: Vec::new(),
            here: none.clone(),
            unknown: none,
            closed: None,
        };
        RowJudge { predicate, places, course, next: first }
    }

    /// Judges the row of the next tick.
    pub fn row(&mut self, row: FleetRow<'_>) -> Result<(), Error> {
        let tick = self.next;
        (self.course.last, self.next) = (tick, tick + 1);
        if self.course.closed.is_some() {
            return Ok(());
        }
        match row {
            FleetRow::Same => {}
            FleetRow::Closed => self.course.closed = Some(tick),
            FleetRow::Known(state, counters) => {
                let verdict = self.predicate.judge(state, counters);
                let verdict =
                    verdict.map_err(|stopped| Error::from(stopped).asked_as(self.predicate.name()))?;
                turn(&mut self.course.turns, tick, verdict);
                for (number, place) in self.places.iter().enumerate() {
                    turn(&mut self.course.here[number], tick, place.get(state).is_some());
                    turn(&mut self.course.unknown[number], tick, unknown::meets(state, place).is_some());
                }
            }
        }
        Ok(())
    }

    /// Returns the verdicts.
    pub fn finish(self) -> RunCourse {
        self.course
    }
}

/// Reasons for which the end of a run may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunCertainty {
    /// Why an answer up to the last tick may lack an end; `None` if the run is whole.
    pub at_tip: Option<String>,
    /// Why an answer up to an earlier tick may lack something.
    pub before: Option<String>,
}

/// Returns the pack that an expression over a run may use, with the version of the rules that it is read by.
pub fn pack_in_force(trace: &Trace) -> Result<Option<(Value, u64)>, Error> {
    let version = trace.begins().last().map_or(0, version_of);
    Ok(crate::run::pack::of_run(trace)?.map(|pack| (pack.value().clone(), version)))
}

/// Returns why answers about a run may lack something.
pub fn undone(trace: &Trace) -> Result<RunCertainty, Error> {
    let words = |tick: u64| Ok::<_, Error>(trace.missing_to(tick)?.map(|found| found.words()));
    let before = trace.tip().checked_sub(1).map(words).transpose()?.flatten();
    Ok(RunCertainty { at_tip: words(trace.tip())?, before })
}

/// The answer for one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetRun {
    /// The run.
    pub run: RunName,
    /// The outcome, as `bisect` names it.
    pub outcome: FleetOutcome,
    /// The first violated tick.
    pub onset: Option<u64>,
    /// The first tick that cannot be judged.
    pub first_unknown: Option<u64>,
    /// The first tick after a violation at which the predicate holds again.
    pub recovers_at: Option<u64>,
    /// The verdict at the last tick; `None` if it cannot be read.
    pub at_tip: Option<Verdict>,
    /// The ticks at which the verdict became another, with the word for it.
    pub turns: Vec<(u64, Verdict)>,
    /// Why ticks cannot be judged.
    pub why: Option<String>,
}

dendrer_object::words! {
    /// The outcome of a question for a run, in the words of `bisect`.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum FleetOutcome {
        /// Violated from a tick on.
        Onset = "onset",
        /// Never violated.
        Never = "never",
        /// Violated at the first tick of the range.
        Initial = "initial",
        /// Violated, and ok again: there is no onset to rely on.
        Recovers = "recovers",
        /// A tick cannot be judged.
        Uncertain = "uncertain",
    }
}

/// The parts of a run, oldest first: those of the runs that it was forked from, each with the last tick that it contributes.
#[derive(Debug, Clone)]
pub struct RunLine<'c> {
    parts: Vec<(&'c RunCourse, u64)>,
}

impl<'c> RunLine<'c> {
    /// Joins the parts of a run.
    pub fn new(parts: Vec<(&'c RunCourse, u64)>) -> RunLine<'c> {
        RunLine { parts }
    }

    fn tip(&self) -> u64 {
        self.parts.last().map_or(0, |(course, end)| course.last.min(*end))
    }

    fn joined<T: Clone + PartialEq>(&self, of: impl Fn(&RunCourse) -> &Vec<(u64, T)>) -> Vec<(u64, T)> {
        let mut joined = Vec::new();
        for (course, end) in &self.parts {
            let own = of(course).iter().filter(|(tick, _)| tick <= end);
            own.for_each(|(tick, value)| turn(&mut joined, *tick, value.clone()));
        }
        joined
    }

    fn closed(&self, to: u64) -> Option<u64> {
        let closed = self.parts.iter().filter_map(|(course, end)| course.closed.filter(|tick| tick <= end));
        closed.filter(|tick| *tick <= to).min()
    }

    /// Answers a question for the run, as `bisect` does; `None` if the run ends before the range.
    pub fn answer(
        &self,
        run: &RunName,
        predicate: &Predicate,
        question: &FleetQuestion,
        certainty: &RunCertainty,
    ) -> Option<FleetRun> {
        let tip = self.tip();
        let to = question.to.unwrap_or(tip).min(tip);
        let from = question.from.unwrap_or(0);
        if from > to {
            return None;
        }
        let all = self.joined(|course| &course.turns);
        let unfinished = if to >= tip { &certainty.at_tip } else { &certainty.before };
        if let Some(closed) = self.closed(to) {
            let turns = all.into_iter().filter(|(tick, _)| *tick < closed).collect();
            let why = "a value was erased or withheld".to_owned();
            return Some(FleetRun::unjudged(run, closed, why, turns));
        }
        let line = Timeline::of_turns(from, to, &all)?;
        let report = within(of_line(&line, predicate.monotone() == Monotone::Lifted), to, unfinished);
        let again = match question.from {
            Some(_) => None,
            None => self.once_there(&all, &report, to, unfinished, predicate),
        };
        Some(FleetRun::of(run, again.unwrap_or(report), &line))
    }

    /// As [`crate::ask::bisect::once_there`]: asks again from the tick at which every place is there.
    fn once_there(
        &self,
        all: &[(u64, Verdict)],
        report: &BisectReport,
        to: u64,
        unfinished: &Option<String>,
        predicate: &Predicate,
    ) -> Option<BisectReport> {
        if !matches!(report.outcome, BisectOutcome::Uncertain(..)) {
            return None;
        }
        let mut since = None;
        for number in 0..self.parts.first()?.0.here.len() {
            let here = self.joined(|course| &course.here[number]);
            if at(&here, 0) == Some(true) {
                continue;
            }
            let first = here.iter().find(|(tick, is_here)| *is_here && *tick <= to).map(|(tick, _)| *tick)?;
            let unknown = self.joined(|course| &course.unknown[number]);
            if at(&unknown, first.checked_sub(1)?) != Some(false) {
                return None;
            }
            since = since.max(Some(first));
        }
        let since = since?;
        let line = Timeline::of_turns(since, to, all)?;
        let before = Timeline::of_turns(since - 1, to, all)?;
        let begin = if *before.at(since - 1) == Verdict::Ok { since - 1 } else { since };
        let line = line.reaching_back_to(begin);
        let again = within(of_line(&line, predicate.monotone() == Monotone::Lifted), to, unfinished);
        (again.low.1 == Verdict::Ok).then_some(again)
    }
}

/// A report of no violation is not known beyond the end of what is on record.
fn within(report: BisectReport, to: u64, unfinished: &Option<String>) -> BisectReport {
    match (&report.outcome, unfinished) {
        (BisectOutcome::Never, Some(why)) => {
            BisectReport { outcome: BisectOutcome::Uncertain(to + 1, why.clone()), ..report }
        }
        _ => report,
    }
}

impl FleetRun {
    /// A run of which a tick cannot be judged.
    pub fn unjudged(run: &RunName, tick: u64, why: String, turns: Vec<(u64, Verdict)>) -> FleetRun {
        FleetRun {
            run: run.clone(),
            outcome: FleetOutcome::Uncertain,
            onset: None,
            first_unknown: Some(tick),
            recovers_at: None,
            at_tip: None,
            turns,
            why: Some(why),
        }
    }

    fn of(run: &RunName, report: BisectReport, line: &Timeline) -> FleetRun {
        let onset = report.onset();
        let (outcome, first_unknown, why, recovers_at) = match &report.outcome {
            BisectOutcome::Onset(_) => (FleetOutcome::Onset, None, None, None),
            BisectOutcome::Never => (FleetOutcome::Never, None, None, None),
            BisectOutcome::Initial => (FleetOutcome::Initial, None, None, None),
            BisectOutcome::Recovers(turns) => {
                let ok = turns.iter().find(|(_, verdict)| *verdict != Verdict::Violation);
                (FleetOutcome::Recovers, None, None, ok.map(|(tick, _)| *tick))
            }
            BisectOutcome::Uncertain(tick, why) => {
                (FleetOutcome::Uncertain, Some(*tick), Some(why.clone()), None)
            }
        };
        let at_tip = Some(line.at(line.to).clone());
        let (run, turns) = (run.clone(), line.turns.clone());
        FleetRun { run, outcome, onset, first_unknown, recovers_at, at_tip, turns, why }
    }
}

/// How the rows of an export were judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetExport {
    /// The id of the store.
    pub store: String,
    /// The size of the log when it was exported.
    pub size: u64,
    /// The digest of the manifest.
    pub manifest: Digest,
}

/// The answer for all runs of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetReply {
    /// `columns` or `state`.
    pub path: &'static str,
    /// The export.
    pub export: FleetExport,
    /// The rows that were read.
    pub rows: u64,
    /// The runs that end before the range.
    pub outside: u64,
    /// The runs, in order of name.
    pub runs: Vec<FleetRun>,
}

impl FleetReply {
    /// Number of runs of which a tick cannot be judged.
    pub fn unjudged(&self) -> u64 {
        self.runs.iter().filter(|run| run.outcome == FleetOutcome::Uncertain).count() as u64
    }

    /// Number of runs with an onset at each tick.
    pub fn spread(&self) -> BTreeMap<u64, u64> {
        let mut spread = BTreeMap::new();
        for onset in self.runs.iter().filter_map(|run| run.onset) {
            *spread.entry(onset).or_default() += 1;
        }
        spread
    }
}
