//! The runs of a store, chosen by a condition, in an order.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_kernel::expr::{Budget, Env, Expr, Scope, Truth};
use dendrer_kernel::unknown::{self, Since};
use dendrer_object::{Code, Digest, Pointer, REDACTION, RunName, Timestamp, Value};
use dendrer_store::{RunSummary, Store};

use crate::casebook;
use crate::environment::{Environment as _, World};
use crate::error::Error;
use crate::problem::Problem;
use crate::run::thread::{NAMED_BY_DIGEST, THREAD};
use crate::run::trace::Trace;
use crate::run::trace::{ReadHandle, all_runs};
use crate::run::unfinished::{self, Unfinished};
use crate::run::{declared, frontier};
use crate::trust::LogTrust;

use self::question::RunsQuestion;

mod ages;
mod dates;
pub mod question;

dendrer_object::words! {
    /// The order of a list of runs.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum RunsOrder {
        /// Newest first.
        #[default]
        Updated = "updated",
        /// Longest first.
        Ticks = "ticks",
        /// By name.
        Name = "name",
    }
}

/// The number of runs if no limit is given.
const LIMIT: u64 = 50;

/// The runs of a store.
#[derive(Debug, Clone)]
pub struct RunsAnswer {
    /// The runs that are listed.
    pub runs: Vec<ListedRun>,
    /// How many runs match.
    pub matching: usize,
    /// How many runs the store has.
    pub total: usize,
    /// How many runs were left out because they are dropped.
    pub dropped: usize,
    /// Runs that the condition cannot be judged for, with the reason.
    pub unclear: Vec<(String, String)>,
    /// Whether forks are listed after the run they were forked from.
    pub tree: bool,
    /// The last run that is listed, if runs after it were left out because of the limit.
    pub next: Option<RunName>,
    /// How much of the log is signed and verified here; `None` for a bundle.
    pub trust: Option<LogTrust>,
}

/// One run of a list.
#[derive(Debug, Clone)]
pub struct ListedRun {
    /// What the store knows of it.
    pub summary: RunSummary,
    /// The goal, as recorded.
    pub goal: Option<Value>,
    /// The stage, as recorded.
    pub stage: Option<Value>,
    /// Whether its data is synthetic, as recorded.
    pub synthetic: Option<Value>,
    /// The rules by which secrets were taken out of its beginning, by name; `None` where nothing looked for them.
    pub redaction: Option<Value>,
    /// The thread that it is of, if its own name is made of a digest.
    pub thread: Option<Value>,
    /// The thread that it is of, as recorded.
    pub of_thread: Option<Value>,
    /// The name of the graph that it is the run of, as recorded.
    pub graph: Option<Value>,
    /// The run and tick it was forked from.
    pub forked_from: Option<(String, u64)>,
    /// Whether it was found intact as it is now.
    pub verified: bool,
    /// Whether it is the casebook of the store, and no run of an agent.
    pub casebook: bool,
    /// Whether it was dropped.
    pub dropped: bool,
    /// Whether it is a fork of a graph's run with substituted values of edges.
    pub hypothetical: bool,
    /// How many forks lie between it and the first run of its line, in a tree.
    pub depth: usize,
    /// The places of its last state that are unknown, each with its cause; `None` if the state was not read.
    pub unknown: Option<Vec<(Pointer, Since)>>,
    /// The part of its source on record, if its import was stopped before its end.
    pub unfinished: Option<Unfinished>,
}

/// Lists runs; `intact` has the newest record at which each was found intact.
pub fn runs(
    store: &impl ReadHandle,
    question: &RunsQuestion,
    intact: &BTreeMap<String, Digest>,
) -> Result<RunsAnswer, Problem> {
    let store = &store.to_handle();
    let all = all_runs(&**store)?;
    let total = all.len();
    let condition = question.r#where.as_deref().map(Condition::parse).transpose()?;
    let (mut runs, mut unclear) = (Vec::new(), Vec::new());
    let hidden = casebook::read(store)?.map(|state| casebook::dropped(&state)).unwrap_or_default();
    let mut dropped = 0;
    for summary in all {
        let is_dropped = hidden.contains_key(&summary.name);
        if is_dropped && !question.all {
            dropped += 1;
            continue;
        }
        let mut run = ListedRun::read(store, summary, intact)?;
        run.dropped = is_dropped;
        let stage = run.stage.as_ref().and_then(Value::as_u64);
        let other_stage = question.stage.is_some_and(|wanted| stage != Some(wanted));
        if other_stage || (question.unverified && run.verified) {
            continue;
        }
        let verdict = condition.as_ref().map_or(Ok(Ok(Truth::True)), |asked| asked.judge(store, &run))?;
        let name = || run.summary.name.to_string();
        match verdict {
            Ok(Truth::True) => runs.push(run),
            Ok(Truth::False) => {}
            Ok(Truth::Uncertain(why)) => unclear.push((name(), why.to_string())),
            Ok(Truth::Exhausted) => unclear.push((name(), "it takes too many steps".to_owned())),
            Err(why) => unclear.push((name(), why)),
        }
    }
    if runs.is_empty()
        && let Some(condition) = &condition
    {
        condition.check(store)?;
    }
    let matching = runs.len();
    sort(&mut runs, question.sort.unwrap_or_default());
    if question.tree {
        runs = tree(runs);
    }
    let begin = question.after.as_deref().map_or(Ok(0), |name| place_after(&runs, name))?;
    runs.drain(..begin);
    let limit = match question.limit.unwrap_or(LIMIT) {
        0 => usize::MAX,
        limit => usize::try_from(limit).unwrap_or(usize::MAX),
    };
    let has_more = runs.len() > limit;
    runs.truncate(limit);
    let next = runs.last().filter(|_| has_more).map(|run| run.summary.name.clone());
    let mut left = FOLDED_MAX;
    for run in &mut runs {
        run.unknown = unknown_of(store, &run.summary.name, &mut left);
    }
    Ok(RunsAnswer { runs, matching, total, dropped, unclear, tree: question.tree, next, trust: None })
}

/// Returns the place after a run of the list.
fn place_after(runs: &[ListedRun], name: &str) -> Result<usize, Problem> {
    let at = runs.iter().position(|run| run.summary.name.as_str() == name);
    at.map(|at| at + 1).ok_or_else(|| {
        let what = format!("no run of the list is named {name}, so it has no place after that");
        Problem::new(Code::E0104, what).note("the list begins at its first run without --after")
    })
}

fn sort(runs: &mut [ListedRun], order: RunsOrder) {
    match order {
        // By the time that is shown: the log has a run that was imported late where it was imported.
        RunsOrder::Updated => runs.sort_by(|a, b| {
            let newer = b.summary.last_ts.cmp(&a.summary.last_ts);
            newer.then_with(|| a.summary.name.cmp(&b.summary.name))
        }),
        RunsOrder::Ticks => runs.sort_by(|a, b| {
            let longer = b.summary.head.tick.cmp(&a.summary.head.tick);
            longer.then_with(|| a.summary.name.cmp(&b.summary.name))
        }),
        RunsOrder::Name => runs.sort_by(|a, b| a.summary.name.cmp(&b.summary.name)),
    }
}

/// How many transitions are folded at most to see which states have unknown places.
const FOLDED_MAX: u64 = 20_000;

/// Lists the unknown places of the last state of a run; `None` if the state cannot be read, or not with the transitions that are
/// left to be folded.
fn unknown_of(store: &Arc<dyn Store>, run: &RunName, left: &mut u64) -> Option<Vec<(Pointer, Since)>> {
    let trace = Trace::open(store, run).ok()?;
    // A snapshot is never far from the end.
    let cost = if trace.is_cheaper_by_ticks(trace.tip()) { 100 } else { trace.tip() };
    *left = left.checked_sub(cost)?;
    Some(unknown::listed(&trace.state(trace.tip()).ok()?))
}

impl ListedRun {
    fn read(
        store: &Arc<dyn Store>,
        summary: RunSummary,
        known: &BTreeMap<String, Digest>,
    ) -> Result<ListedRun, Error> {
        let start = store.get(summary.begin)?.map_or(Value::object(), |record| record.content());
        let forked_from = forked_from(&**store, &summary)?;
        let unfinished = unfinished::of_run(&**store, &summary)?;
        let (mut goal, mut meta) = (start.get("goal").cloned(), start.get("meta").cloned());
        // A fork records neither goal nor `meta`: those of the first run of its line apply.
        let mut hypothetical = false;
        if forked_from.is_some()
            && let Ok(trace) = Trace::open(store, &summary.name)
        {
            hypothetical = frontier::is_hypothetical(&trace)?;
            let first = trace.start().body();
            (goal, meta) = (first.value("/goal").or(goal), first.value("/meta").or(meta));
        }
        let verified = known.get(summary.name.as_str()) == Some(&summary.head.id);
        let casebook = casebook::is_of(store, &summary.name)?;
        let stage = start.get("stage").cloned();
        let redaction = start.get(REDACTION).and_then(|one| one.get("rules")?.get("name").cloned());
        let is_of_thread = summary.name.as_str().starts_with(NAMED_BY_DIGEST);
        let of_thread = meta.as_ref().and_then(|meta| meta.get(THREAD).cloned());
        let thread = of_thread.clone().filter(|_| is_of_thread);
        let graph = start.get(frontier::GRAPH).and_then(|graph| graph.get("graph").cloned());
        let synthetic = meta.and_then(|meta| meta.get("synthetic").cloned());
        Ok(ListedRun {
            summary,
            goal,
            stage,
            synthetic,
            redaction,
            thread,
            of_thread,
            graph,
            forked_from,
            verified,
            casebook,
            dropped: false,
            hypothetical,
            depth: 0,
            unknown: None,
            unfinished,
        })
    }
}

fn forked_from(store: &dyn Store, run: &RunSummary) -> Result<Option<(String, u64)>, Error> {
    let Some(parent) = run.parent else { return Ok(None) };
    let Some(position) = store.find(&parent)? else { return Ok(None) };
    let record = store.get(position)?;
    Ok(record.and_then(|record| Some((record.header().run.as_ref()?.to_string(), record.header().tick?))))
}

/// A condition on runs.
struct Condition {
    expr: Expr,
    reads_state: bool,
}

/// The names that a condition on runs may use besides the state.
pub const ROOTS: [&str; 13] = [
    "name",
    "ticks",
    "stage",
    "goal",
    "refusals",
    "ended",
    "synthetic",
    "forked",
    "updated",
    "thread",
    "graph",
    "hypothetical",
    "verified",
];

/// Writes a time so that texts have the order of times: `2026-03-01 12:00:00`, in UTC.
fn ordered(ts: Timestamp) -> String {
    let text = ts.to_string();
    text.split(['.', 'Z']).next().unwrap_or(&text).replace('T', " ")
}

impl Condition {
    fn parse(text: &str) -> Result<Condition, Error> {
        let scope = ROOTS.iter().fold(Scope::new(), |scope, root| scope.root(root));
        let expr = Expr::parse_condition(text, &scope)?;
        // An age becomes a second, and each date then the stretch that it means.
        let aged = ages::written(text, &expr, World::default().now());
        let (text, expr) = match &aged {
            Some(aged) => (aged.as_str(), Expr::parse_condition(aged, &scope)?),
            None => (text, expr),
        };
        let expr = match dates::written(text, &expr)? {
            Some(written) => Expr::parse_condition(&written, &scope)?,
            None => expr,
        };
        let reads_state = !expr.read_set().is_empty() || expr.reads_counters();
        Ok(Condition { expr, reads_state })
    }

    /// Checks that each place of the state that is read is declared by a pack, or was in the state of a run.
    fn check(&self, store: &Arc<dyn Store>) -> Result<(), Error> {
        let of_runs = all_runs(&**store)?.into_iter().map(|run| Trace::open(store, &run.name));
        let traces = of_runs.collect::<Result<Vec<Trace>, Error>>()?;
        let traces: Vec<&Trace> = traces.iter().collect();
        for path in self.expr.read_set() {
            let first: Vec<String> = path.tokens().take(1).map(|name| name.into_owned()).collect();
            declared::place(&traces, &Pointer::of(first.iter().map(String::as_str)))?;
        }
        Ok(())
    }

    /// Judges a run; the inner error is the reason why it cannot be judged.
    fn judge(&self, store: &Arc<dyn Store>, run: &ListedRun) -> Result<Result<Truth, String>, Error> {
        let values = ROOTS.map(|root| match root {
            "name" => Value::from(run.summary.name.as_str()),
            "ticks" => Value::from(run.summary.head.tick),
            "stage" => Value::from(run.stage.clone()),
            "goal" => Value::from(run.goal.clone()),
            "refusals" => Value::from(run.summary.refusals),
            "ended" => Value::from(run.summary.ended),
            "synthetic" => run.synthetic.clone().unwrap_or(false.into()),
            "forked" => Value::from(run.forked_from.is_some()),
            dates::UPDATED => Value::from(ordered(run.summary.last_ts)),
            "thread" => Value::from(run.of_thread.clone()),
            "graph" => Value::from(run.graph.clone()),
            "hypothetical" => Value::from(run.hypothetical),
            _ => Value::from(run.verified),
        });
        let others: Vec<(&str, &Value)> = ROOTS.iter().copied().zip(&values).collect();
        let (state, counters) = match self.reads_state {
            true => {
                let trace = Trace::open(store, &run.summary.name)?;
                let moment = trace.folded(trace.tip(), self.expr.reads_counters())?;
                if let Some(hidden) = self.expr.hidden_counter(&moment.counters) {
                    let (tick, place) = (hidden.tick, hidden.pointer.dotted());
                    return Ok(Err(format!("{place} of tick {tick} was erased or withheld")));
                }
                let served = moment.served();
                (moment.state, served)
            }
            false => (Value::object(), Value::object()),
        };
        let env = Env { state: &state, counters: Some(&counters), others: &others };
        Ok(Ok(self.expr.holds(&env, &mut Budget::default())))
    }
}

/// Puts each fork after the run it was forked from. A fork whose parent is not in the list is a root.
fn tree(runs: Vec<ListedRun>) -> Vec<ListedRun> {
    let mut waiting: Vec<Option<ListedRun>> = runs.into_iter().map(Some).collect();
    let names: Vec<String> = waiting.iter().flatten().map(|run| run.summary.name.to_string()).collect();
    let parent = |run: &ListedRun| {
        run.forked_from.as_ref().and_then(|(parent, _)| names.iter().position(|name| name == parent))
    };
    let parents: Vec<Option<usize>> = waiting.iter().map(|run| run.as_ref().and_then(parent)).collect();
    let mut placed = Vec::new();
    // A stack instead of recursion: forks of forks may be many.
    let mut next: Vec<(usize, usize)> =
        (0..names.len()).rev().filter(|at| parents[*at].is_none()).map(|at| (at, 0)).collect();
    while let Some((at, depth)) = next.pop() {
        if let Some(mut run) = waiting[at].take() {
            run.depth = depth;
            placed.push(run);
        }
        let children = (0..names.len()).rev().filter(|child| parents[*child] == Some(at));
        next.extend(children.map(|child| (child, depth + 1)));
    }
    placed
}
