//! Resumes an interrupted run of a graph: with the same parts, and with nothing asked twice that may have acted.
//!
//! Rule: everything is decided before anything is asked or recorded; test `a_call_that_may_have_acted_waits_for_a_decision`.

use dendrer_graph::form;
use dendrer_graph::frontier::replay;
use dendrer_object::Value;
use dendrer_store::Shared;
use dendrer_store::prelude::*;

use crate::error::{Error, GraphRefused};
use crate::record::recorder::{Environment, Recorder};
use crate::run::frontier::{GraphRun, graph_run};
use crate::run::trace::Trace;

use super::past::Past;
use super::runner::{Runner, names_of};
use super::start::{beginning, redacted_inputs};
use super::terms::{AskEdge, EdgeNeed, GraphOutcome, GraphResume, GraphTerms};

/// Resumes a run: brings the values on record, decides which edges may be asked again, and asks what is due.
pub(super) fn go_on(
    store: &Shared,
    terms: &GraphTerms<'_>,
    resume: &GraphResume,
    executor: &AskEdge<'_>,
    surroundings: Box<dyn Environment>,
) -> Result<GraphOutcome, Error> {
    let mut store = store.clone();
    store.refresh()?;
    let trace = Trace::open(&store, &terms.run)?;
    if trace.lineage().len() != 1 {
        return Err(GraphRefused::NotGraph(terms.run.clone()).into());
    }
    let recorded = graph_run(&trace)?;
    if let Some(what) = other_part(terms, &trace, &recorded)? {
        return Err(GraphRefused::Another { run: terms.run.clone(), what }.into());
    }
    let past = Past::of(&trace, &recorded, trace.tip())?;
    let is_closed = past.closed_at.is_some() && store.run(&terms.run)?.is_some_and(|run| run.ended);
    if is_closed {
        refuse_paths(terms, resume, |_| false)?;
        return Ok(outcome(&recorded, Vec::new()));
    }
    if let Some(tick) = past.of_others {
        return Err(GraphRefused::OfOthers { run: terms.run.clone(), tick }.into());
    }
    let mut recorder = Recorder::resume_if(&store, &terms.run, surroundings, |_| Ok(()))?;
    if past.closed_at.is_some() {
        // Only the mark of the end is missing.
        recorder.end()?;
        recorder.commit()?;
        return Ok(outcome(&recorded, Vec::new()));
    }
    let GraphRun { graph, children, functions, digest, frontier, .. } = &recorded;
    let parts = (graph, children, functions, &frontier.inputs);
    let mut runner =
        Runner::new(&store, terms, parts, *digest, recorder)?.with_past(past, recorded.renewed_at.is_some());
    let made = runner.evaluate_without(parts);
    runner.kept(made)?;
    // The values that are given decide which edges the run still asks.
    let (given, made) = runner.take_by_hand(&resume.set);
    if let Err(error @ GraphRefused::Diverged { .. }) = made {
        return Err(error.into());
    }
    runner.refuse_acted()?;
    let is_given = |path: &str| given.iter().any(|(asked, _)| asked.path == path);
    refuse_paths(terms, resume, |path| {
        let may_wait = resume.ask_again.contains(path) || made.is_err();
        is_given(path) || runner.is_due(path) || (may_wait && runner.is_taken_out(path))
    })?;
    let needs = runner.needs();
    if !needs.is_empty() {
        return Ok(outcome(&recorded, needs));
    }
    let unanswered = runner.unanswered(|call| resume.answered.contains(call));
    if let (Ok(()), Some(call)) = (&made, unanswered) {
        return Err(GraphRefused::NoExecutor(call.to_owned()).into());
    }
    runner.record_by_hand(given)?;
    runner.kept(made)?;
    runner.run(executor)
}

/// Refuses paths of edges that wait for no answer.
fn refuse_paths(
    terms: &GraphTerms<'_>,
    resume: &GraphResume,
    is_due: impl Fn(&str) -> bool,
) -> Result<(), GraphRefused> {
    match resume.ask_again.iter().chain(resume.set.keys()).find(|path| !is_due(path)) {
        None => Ok(()),
        Some(path) => Err(GraphRefused::NotDue { run: terms.run.clone(), path: path.clone() }),
    }
}

/// The part of the terms that differs from the record of the run: `graph`, `pack`, `input NAME` or `stage`.
fn other_part(terms: &GraphTerms<'_>, trace: &Trace, recorded: &GraphRun) -> Result<Option<String>, Error> {
    let form = form::to_value(terms.graph, terms.children);
    if form::digest(&form) != recorded.digest {
        return Ok(Some("graph".to_owned()));
    }
    let start = beginning(terms, &form, &redacted_inputs(terms, &form)?)?;
    let pack = start.pack.as_ref().map(|bound| bound.value.digest());
    if pack != Some(recorded.pack.digest()) {
        return Ok(Some("pack".to_owned()));
    }
    let inputs = start.meta.as_ref().and_then(|meta| meta.get("inputs")?.as_object().cloned());
    let other = inputs.iter().flat_map(|inputs| inputs.iter()).find(|(name, value)| {
        recorded.frontier.inputs.get(&***name).is_none_or(|own| own.digest() != value.digest())
    });
    if let Some((name, _)) = other {
        return Ok(Some(format!("input {name}")));
    }
    let stage = trace.start().content().get("stage").and_then(Value::as_u64);
    let is_other = terms.stage.is_some_and(|given| stage != Some(given as u64));
    Ok(is_other.then(|| "stage".to_owned()))
}

/// The answer about a run from its record alone.
fn outcome(recorded: &GraphRun, needs: Vec<EdgeNeed>) -> GraphOutcome {
    let frontier = &recorded.frontier;
    let replayed = replay(&recorded.graph, &recorded.children, &recorded.functions, frontier);
    let beside_limit = replayed.map_or_else(|_| Vec::new(), |(found, _)| found.beside_limit);
    let tested = recorded.tested();
    GraphOutcome {
        run: recorded.run.clone(),
        digest: recorded.digest,
        nodes: frontier.nodes.len() as u64,
        edges: (frontier.edges.len() - tested.len()) as u64,
        tested: names_of(tested),
        output: frontier.output.clone(),
        limit: frontier.limit.clone(),
        beside_limit,
        needs,
        asked: 0,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::atomic::{AtomicU64, Ordering};

    use dendrer_graph::eval::EdgeRequest;
    use dendrer_graph::text;
    use dendrer_object::{Code, Intent, Value};
    use dendrer_testkit::{memory_with_key, run_name};

    use super::*;
    use crate::change::graph::{EdgeEnd, EdgeFailure, run_graph};
    use crate::record::recorder::Fixed;

    const GRAPH: &str = "graph one\ne1 look.at(1) -> rec frontier[1]\nn1 same(e1) pure\nreplay(graph, frontier) == output required\n";
    const PACK: &str =
        "name: one\nversion: v1\ndefine: {same(a): a}\ntools:\n  look.at: {effect: effectful}\n";

    /// A line that no graph wrote ends the going on; nothing is asked.
    #[test]
    fn a_run_with_lines_of_others_does_not_go_on() {
        let (graph, pack) = (text::parse(GRAPH).unwrap(), crate::pack::read(PACK.as_bytes()).unwrap());
        for is_of_others in [false, true] {
            let (store, run, children) = (memory_with_key(1), run_name("one"), BTreeMap::new());
            let world = || Box::new(Fixed::new("one", 0, 1));
            let mut terms = GraphTerms {
                run: run.clone(),
                graph: &graph,
                children: &children,
                pack: &pack,
                inputs: BTreeMap::new(),
                stage: None,
                redactor: None,
                resume: None,
            };
            let asked = AtomicU64::new(0);
            let executor = |_: &EdgeRequest| match asked.fetch_add(1, Ordering::Relaxed) {
                0 => Err(EdgeFailure::new(EdgeEnd::Answered, "not yet")),
                _ => Ok(Value::from(7u64)),
            };
            let failed = run_graph(&store, &terms, &executor, world()).unwrap_err();
            assert_eq!(failed.code(), Code::E0936);
            if is_of_others {
                let mut recorder = Recorder::resume_if(&store, &run, world(), |_| Ok(())).unwrap();
                recorder.propose(&Intent::new("observation.add".parse().unwrap(), "other")).unwrap();
                recorder.commit().unwrap();
            }
            let answered = BTreeSet::from(["look.at".to_owned()]);
            terms.resume = Some(GraphResume { answered, ..GraphResume::default() });
            let made = run_graph(&store, &terms, &executor, world());
            match made {
                Ok(outcome) => {
                    assert_eq!((is_of_others, outcome.closed(), outcome.asked), (false, Some("good"), 1))
                }
                Err(error) => assert_eq!((is_of_others, error.code()), (true, Code::E0941)),
            }
            assert_eq!(asked.into_inner(), if is_of_others { 1 } else { 2 });
        }
    }
}
