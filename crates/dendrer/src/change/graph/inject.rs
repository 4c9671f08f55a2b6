//! Forks of a graph's run with other values of edges: each is closed, and replays.
//!
//! Rule: nothing is on record of a fork that would not replay; test `each_fork_with_other_values_replays_or_is_not_made`.

use std::collections::{BTreeMap, BTreeSet};

use dendrer_graph::frontier::{Frontier, RecordedEdge, Substituted, replay, substitute};
use dendrer_object::value::Object;
use dendrer_object::{RunName, Value};

use crate::change::fork::ForkTerms;
use crate::error::{Error, GraphRefused};
use crate::record::recorder::{Recorder, redactor_over};
use crate::redact::TakenSecrets;
use crate::repo::Repo;
use crate::run::frontier::{GraphRun, recorded};
use crate::run::trace::Trace;

use super::past::Past;
use super::records::{self, RecordTerms, gather};

/// The outcome of a fork with other values of edges.
#[derive(Debug, Clone)]
pub struct Injected {
    /// The consequences of the values, without their secrets.
    pub substituted: Substituted,
    /// Why there is no fork; `None` if it is on record.
    pub not_made: Option<String>,
}

/// Forks the run of a graph before the first record that does not follow from some other values of its edges, records the edges as
/// they are asked then, and closes the fork. An edge that is asked something else has a value only if it is among the others.
///
/// # Errors
///
/// An [`Error`] if the door refuses an edge or the store cannot be written; nothing is on record then.
pub fn inject(
    repo: &Repo,
    trace: &Trace,
    run: &GraphRun,
    name: RunName,
    others: &BTreeMap<String, Value>,
) -> Result<Injected, Error> {
    let said = Value::array(others.values().cloned());
    let redactor = redactor_over(repo.redactor(Some(&run.pack))?, trace, &said)?;
    let terms = RecordTerms { graph: &run.graph.name, redactor: Some(redactor.clone()) };
    let clean = others.iter().map(|(path, value)| (path.clone(), terms.clean(value.clone())));
    let clean: BTreeMap<String, (Value, TakenSecrets)> = clean.collect();
    let values = clean.iter().map(|(path, (value, _))| (path.clone(), value.clone())).collect();
    let made = substitute(&run.graph, &run.children, &run.functions, &run.frontier, &values);
    let substituted = made.map_err(GraphRefused::Node)?;
    if let Some(why) = open_at(&substituted) {
        return Ok(Injected { substituted, not_made: Some(why) });
    }
    let from = last_same(trace, run, &substituted, &values)?;
    let mut fork = ForkTerms::new(name);
    (fork.reason, fork.injects, fork.redactor) = (Some("other values of edges".into()), true, Some(redactor));
    let (mut recorder, _) = repo.fork(trace, from, &fork)?;
    let edges = write(&mut recorder, &terms, trace, run, (from, &substituted, &clean))?;
    let not_made = diverges(&recorder, run, edges, &substituted)?;
    if not_made.is_none() {
        recorder.end()?;
        recorder.commit()?;
    }
    Ok(Injected { substituted, not_made })
}

/// Why a fork with these values would not end.
fn open_at(made: &Substituted) -> Option<String> {
    if let Some(fault) = made.failed.first() {
        return Some(format!("{} cannot be computed", fault.path));
    }
    let is_ended = made.found.output.is_some() || made.found.limit.is_some();
    let due = made.found.due().next().filter(|_| !is_ended)?;
    Some(format!("there is no value for {0}; --set {0}=FILE gives one", due.path))
}

/// The last tick that a fork with other values shares with the run.
fn last_same(
    trace: &Trace,
    run: &GraphRun,
    made: &Substituted,
    values: &BTreeMap<String, Value>,
) -> Result<u64, Error> {
    let asked: BTreeSet<&str> = made.asked.iter().map(String::as_str).collect();
    let is_other = |path: &str| values.contains_key(path) || !asked.contains(path);
    let others = run.ticks.iter().filter(|(path, _)| is_other(path)).map(|(_, tick)| *tick);
    let closed = Past::of(trace, run, trace.tip())?.closed_at;
    let last = others.chain(closed).min().map_or(trace.tip(), |first| first - 1);
    // A fork that does not have all answers has none of those that newer ones replaced.
    let renewed_at = run.renewed_at.filter(|_| run.ticks.values().any(|tick| *tick > last));
    Ok(renewed_at.map_or(last, |first| last.min(first - 1)))
}

/// Gathers the edges that the fork does not share, and its end. Returns all edges that it then has.
fn write(
    recorder: &mut Recorder,
    terms: &RecordTerms<'_>,
    trace: &Trace,
    run: &GraphRun,
    (from, made, values): (u64, &Substituted, &BTreeMap<String, (Value, TakenSecrets)>),
) -> Result<Vec<RecordedEdge>, Error> {
    let past = Past::of(trace, run, from)?;
    let by_path: BTreeMap<&str, &RecordedEdge> =
        run.frontier.edges.iter().map(|edge| (&*edge.path, edge)).collect();
    let is_shared = |path: &str| run.ticks.get(path).is_some_and(|tick| *tick <= from);
    let mut edges: Vec<RecordedEdge> =
        run.frontier.edges.iter().filter(|edge| is_shared(&edge.path)).cloned().collect();
    let answered = made.found.edges.iter().filter(|(_, is_there)| *is_there).map(|(asked, _)| asked);
    for asked in answered.filter(|asked| !is_shared(&asked.path)) {
        let request = match past.request_of(asked) {
            Some(request) => request,
            None => gather(recorder, &records::request(terms, asked), &asked.path)?.id(),
        };
        let given = values.get(&asked.path).cloned();
        let kept = by_path.get(&*asked.path).map(|edge| (edge.value.clone(), TakenSecrets::default()));
        let Some(value) = given.clone().or(kept) else { continue };
        let mut answer = records::answer(terms, asked, request, &Ok(value));
        if given.is_some() {
            answer = answer.with("fork_type", Value::from("injection"));
        }
        edges.extend(recorded(&gather(recorder, &answer, &asked.path)?.content()));
    }
    let last = match (&made.found.limit, made.max) {
        (Some(path), Some(max)) => records::limited(terms, (&made.found, &[]), (path, max)),
        _ => records::completion(terms, (&made.found, &[])),
    };
    gather(recorder, &last, "the end of the run")?;
    Ok(edges)
}

/// The first divergence of what a fork would hold.
fn diverges(
    recorder: &Recorder,
    run: &GraphRun,
    edges: Vec<RecordedEdge>,
    made: &Substituted,
) -> Result<Option<String>, Error> {
    let state = recorder.head().state();
    let nodes = state.get("nodes").and_then(Value::as_object).into_iter().flat_map(Object::iter);
    let frontier = Frontier {
        inputs: run.frontier.inputs.clone(),
        edges,
        nodes: nodes.map(|(path, value)| (path.to_string(), value.clone())).collect(),
        output: state.get("output").cloned(),
        limit: made.found.limit.clone(),
        is_ordered: false,
    };
    let again = replay(&run.graph, &run.children, &run.functions, &frontier);
    let (_, divergence) = again.map_err(GraphRefused::Node)?;
    let words = divergence.map(|one| format!("its replay has {} at {}", one.kind.as_str(), one.path));
    Ok(words.or_else(|| frontier.is_open().then(|| "it has no output".to_owned())))
}
