//! The loop of a graph's run: which edges are asked next, and what is recorded as they answer.
//!
//! Rule: nothing is asked whose request is not on record, and nothing new once an edge has failed or a limit ends the graph; what
//! is under way then is still recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc;

use dendrer_graph::Graph;
use dendrer_graph::eval::{EdgeRequest, GraphEvaluation, GraphValues};
use dendrer_graph::frontier::replay;
use dendrer_graph::functions::Functions;
use dendrer_graph::reads::{edges_read, effect_at};
use dendrer_kernel::step::Outcome;
use dendrer_object::record::Record;
use dendrer_object::{Digest, RunName, Value};
use dendrer_store::Shared;

use crate::error::{Error, GraphRefused};
use crate::record::recorder::Recorder;
use crate::redact::TakenSecrets;
use crate::run::frontier::graph_run;
use crate::run::trace::Trace;

use super::past::Past;
use super::records::{self, RecordTerms, propose};
use super::terms::{AskEdge, EdgeEnd, EdgeFailure, EdgeNeed, GraphOutcome, GraphTerms};

/// A graph, the graphs that it runs, its functions and its inputs.
pub(super) type Parts<'g> =
    (&'g Graph, &'g BTreeMap<String, Graph>, &'g Functions, &'g BTreeMap<String, Value>);

/// The answer of an effect, without its secrets.
type Answer = Result<(Value, TakenSecrets), EdgeFailure>;

/// The edges that are due and not asked, in canonical order: by their places in the frontier.
#[derive(Debug, Default)]
struct Due {
    /// Those that may overlap with others.
    together: BTreeMap<Vec<u64>, EdgeRequest>,
    /// Effectful ones: each is asked when nothing else is under way.
    alone: BTreeMap<Vec<u64>, EdgeRequest>,
}

impl Due {
    fn add(&mut self, asked: &EdgeRequest, is_effectful: bool) {
        let key = asked.index.split('.').map(|part| part.parse().unwrap_or(u64::MAX)).collect();
        let list = if is_effectful && !asked.at_once { &mut self.alone } else { &mut self.together };
        list.insert(key, asked.clone());
    }

    /// Takes out those that are asked next, where some are under way. While an effectful one waits, none after it is begun.
    fn next(&mut self, under_way: usize, most: usize) -> Vec<EdgeRequest> {
        let first = self.alone.first_key_value().map(|(index, _)| index);
        let is_before = |index: &Vec<u64>| first.is_none_or(|first| index < first);
        let free = most.saturating_sub(under_way);
        let next: Vec<_> =
            self.together.keys().filter(|index| is_before(index)).take(free).cloned().collect();
        if next.is_empty() && under_way == 0 {
            return self.alone.pop_first().map(|(_, asked)| asked).into_iter().collect();
        }
        next.iter().filter_map(|index| self.together.remove(index)).collect()
    }
}

/// A graph on its way.
pub(super) struct Runner<'g> {
    store: &'g Shared,
    terms: &'g GraphTerms<'g>,
    writing: RecordTerms<'g>,
    functions: &'g Functions,
    digest: Digest,
    recorder: Recorder,
    evaluation: GraphEvaluation<'g>,
    due: Due,
    /// The record of a run that is resumed.
    pub(super) past: Past,
    asked: u64,
    /// Whether an answer on record is replaced, so that an edge which reads it may be asked something else.
    is_renewed: bool,
}

impl<'g> Runner<'g> {
    pub(super) fn new(
        store: &'g Shared,
        terms: &'g GraphTerms<'g>,
        (graph, children, functions, inputs): Parts<'g>,
        digest: Digest,
        recorder: Recorder,
    ) -> Result<Runner<'g>, Error> {
        let evaluation =
            GraphEvaluation::new(graph, children, functions, inputs).map_err(GraphRefused::Node)?;
        let (due, past) = (Due::default(), Past::default());
        let writing = terms.writing();
        Ok(Runner {
            store,
            terms,
            writing,
            functions,
            digest,
            recorder,
            evaluation,
            due,
            past,
            asked: 0,
            is_renewed: false,
        })
    }

    /// Resumes a run with what is on record.
    pub(super) fn with_past(mut self, past: Past) -> Runner<'g> {
        self.evaluation = self.evaluation.with_recorded(past.values.keys().cloned().collect());
        Runner { past, ..self }
    }

    /// The edges with a value on record that a statement reads.
    fn read_by(&self, path: &str) -> BTreeSet<String> {
        let known = self.evaluation.answered();
        let read = edges_read(self.terms.graph, self.terms.children, path, &known);
        read.intersection(&known).cloned().collect()
    }

    /// Evaluates the record. If a node cannot be computed, the answers of `named` edges that it reads are taken out, and these edges
    /// are due again.
    pub(super) fn evaluate_without(
        &mut self,
        parts: Parts<'g>,
        named: impl Fn(&str) -> bool,
    ) -> Result<(), GraphRefused> {
        while let Err(error) = self.evaluate() {
            let GraphRefused::Failed { edges, .. } = &error else { return Err(error) };
            let again: Vec<&String> = edges.iter().filter(|path| named(path)).collect();
            if again.is_empty() {
                return Err(error);
            }
            again.into_iter().for_each(|path| drop(self.past.values.remove(path)));
            self.past.failures.clear();
            let (graph, children, functions, inputs) = parts;
            self.evaluation = GraphEvaluation::new(graph, children, functions, inputs)?
                .with_recorded(self.past.values.keys().cloned().collect());
            (self.due, self.is_renewed) = (Due::default(), true);
        }
        // An edge that waits for a renewed answer has asked with the older one.
        let (graph, children) = (self.terms.graph, self.terms.children);
        let acted = self.past.values.keys().filter(|_| self.is_renewed).find(|path| {
            let call = effect_at(graph, children, path).unwrap_or_default();
            !self.evaluation.has_asked(path) && self.functions.is_effectful(call)
        });
        acted.map_or(Ok(()), |path| Err(GraphRefused::Acted { path: path.clone() }))
    }

    /// Evaluates as far as values are there. A node that cannot be computed is on record.
    pub(super) fn advance(&mut self) -> Result<(), Error> {
        let made = self.evaluate();
        self.kept(made)
    }

    /// Records the node that an evaluation could not compute, unless it is on record.
    pub(super) fn kept(&mut self, made: Result<(), GraphRefused>) -> Result<(), Error> {
        if let Err(GraphRefused::Failed { fault, .. }) = &made {
            let intent = records::node_failed(&self.writing, fault);
            if !self.past.has_failure(&intent) {
                propose(&mut self.recorder, &intent, &fault.path)?;
                self.recorder.commit()?;
            }
        }
        Ok(made?)
    }

    /// As [`Runner::advance`], and records nothing.
    pub(super) fn evaluate(&mut self) -> Result<(), GraphRefused> {
        let mut other = None;
        let Runner { evaluation, past, due, functions, is_renewed, .. } = self;
        let made = evaluation.advance(&mut |asked: &EdgeRequest| match past.values.get(&asked.path) {
            Some((digest, value)) if *digest == asked.asked => Some(value.clone()),
            Some(_) if *is_renewed && !functions.is_effectful(&asked.call) => {
                due.add(asked, false);
                None
            }
            Some(_) => {
                other.get_or_insert_with(|| asked.path.clone());
                None
            }
            None => {
                due.add(asked, functions.is_effectful(&asked.call));
                None
            }
        });
        made.map_err(|fault| {
            let edges = self.read_by(&fault.path).into_iter().collect();
            GraphRefused::Failed { fault, edges }
        })?;
        match other {
            Some(path) => Err(GraphRefused::Diverged { run: self.terms.run.clone(), path }),
            None => Ok(()),
        }
    }

    /// The edges that are due, in canonical order.
    pub(super) fn due(&self) -> Vec<EdgeRequest> {
        let mut due: Vec<_> = self.due.together.iter().chain(&self.due.alone).collect();
        due.sort_unstable_by_key(|(index, _)| *index);
        due.into_iter().map(|(_, asked)| asked.clone()).collect()
    }

    /// The first effect that may be asked yet and has no executor.
    pub(super) fn unanswered(&self, has_executor: impl Fn(&str) -> bool) -> Option<&str> {
        self.evaluation.open_calls().into_iter().find(|call| !has_executor(call))
    }

    /// The effectful edges of some of which it is not known whether they have acted.
    pub(super) fn needs<'a>(&self, due: impl Iterator<Item = &'a EdgeRequest>) -> Vec<EdgeNeed> {
        due.filter(|asked| self.functions.is_effectful(&asked.call))
            .filter_map(|EdgeRequest { path, call, .. }| {
                let why = *self.past.unknown.get(path)?;
                Some(EdgeNeed { path: path.clone(), call: call.clone(), why })
            })
            .collect()
    }

    /// Takes values that the caller found out by hand for edges that are due; [`Runner::record_by_hand`] puts them on record.
    pub(super) fn take_by_hand(&mut self, given: &[(EdgeRequest, (Value, TakenSecrets))]) {
        for (asked, (value, _)) in given {
            self.evaluation.bring(&asked.path, value.clone());
            self.due.together.retain(|_, due| due.path != asked.path);
            self.due.alone.retain(|_, due| due.path != asked.path);
        }
    }

    /// Records values that the caller found out by hand, each with the request that it answers.
    pub(super) fn record_by_hand(
        &mut self,
        given: Vec<(EdgeRequest, (Value, TakenSecrets))>,
    ) -> Result<(), Error> {
        for (asked, value) in given {
            let request = match self.past.requests.get(&asked.path) {
                Some(request) => *request,
                None => self.request(&asked)?.id(),
            };
            let answer = records::by_hand(&self.writing, &asked, request, value);
            propose(&mut self.recorder, &answer, &asked.path)?;
        }
        self.recorder.commit()?;
        Ok(())
    }

    /// Proposes the request of an edge. One that the door refuses is kept as a refusal, and its effect is not asked.
    fn request(&mut self, asked: &EdgeRequest) -> Result<Record, Error> {
        match self.recorder.propose(&records::request(&self.writing, asked))? {
            Outcome::Committed(record) | Outcome::Violated { record, .. } => Ok(record),
            Outcome::Refused(refused) => {
                self.recorder.commit()?;
                let (path, call) = (asked.path.clone(), asked.call.clone());
                let (code, why) = (refused.reason.code(), refused.reason.to_string());
                Err(GraphRefused::Denied { path, call, code, why }.into())
            }
        }
    }

    /// Records the requests of some edges and returns their ids.
    fn request_all(&mut self, next: &[EdgeRequest]) -> Result<Vec<Digest>, Error> {
        // Each is judged before anything is on record of the others: if the door denies one, none is asked.
        for asked in next {
            let intent = records::request(&self.writing, asked);
            if let Outcome::Refused(_) = self.recorder.propose_if(&intent, |_, _, _| false)? {
                self.request(asked)?;
            }
        }
        let mut requests = Vec::with_capacity(next.len());
        for asked in next {
            requests.push(self.request(asked)?.id());
        }
        self.recorder.commit()?;
        Ok(requests)
    }

    /// Asks what is due until nothing is, and closes the run.
    pub(super) fn run(mut self, executor: &AskEdge<'_>) -> Result<GraphOutcome, Error> {
        self.ask_all(executor)?;
        self.close()
    }

    fn ask_all(&mut self, executor: &AskEdge<'_>) -> Result<(), Error> {
        let terms = self.terms;
        let writing = self.writing.clone();
        let most = usize::try_from(terms.pack.pack.concurrency).unwrap_or(usize::MAX).max(1);
        let (sender, answers) = mpsc::channel::<(EdgeRequest, Digest, Answer)>();
        std::thread::scope(|scope| {
            let (mut under_way, mut failed) = (0, None);
            loop {
                if failed.is_none() && self.evaluation.limit().is_none() {
                    let next = self.due.next(under_way, most);
                    let requests = self.request_all(&next).unwrap_or_else(|error| {
                        failed = Some(error);
                        Vec::new()
                    });
                    for (asked, request) in next.into_iter().zip(requests) {
                        let sender = sender.clone();
                        let writing = writing.clone();
                        let work = move || {
                            let answer = answer_of(executor, &writing, &asked);
                            // Ignored: the receiver is there until every answer is.
                            let _ = sender.send((asked, request, answer));
                        };
                        // If the system has no thread left, this one asks.
                        if std::thread::Builder::new().spawn_scoped(scope, work.clone()).is_err() {
                            work();
                        }
                        under_way += 1;
                        self.asked += 1;
                    }
                }
                if under_way == 0 {
                    return failed.map_or(Ok(()), Err);
                }
                let first = answers.recv().ok();
                let came: Vec<_> = first.into_iter().chain(answers.try_iter()).collect();
                under_way -= came.len();
                if let Err(error) = self.record(came, failed.is_some()) {
                    failed.get_or_insert(error);
                }
            }
        })
    }

    /// Records some answers, and evaluates with their values. The error is that of the first which failed.
    fn record(&mut self, came: Vec<(EdgeRequest, Digest, Answer)>, has_failed: bool) -> Result<(), Error> {
        let mut failed = None;
        let mut made = Vec::with_capacity(came.len());
        for (asked, request, answer) in came {
            let recorded = records::answer(&self.writing, &asked, request, &answer);
            match (propose(&mut self.recorder, &recorded, &asked.path), answer) {
                (Err(error), _) => drop(failed.get_or_insert(error)),
                (Ok(_), Ok((value, _))) => made.push((asked.path, value)),
                (Ok(_), Err(EdgeFailure { why, .. })) => {
                    let (path, call) = (asked.path, asked.call);
                    failed.get_or_insert(GraphRefused::Edge { path, call, why }.into());
                }
            }
        }
        self.recorder.commit()?;
        for (path, value) in made {
            self.evaluation.bring(&path, value);
        }
        match failed {
            Some(error) => Err(error),
            None if has_failed => Ok(()),
            None => self.advance(),
        }
    }

    /// Closes the run, if its replay from the record gives the same.
    fn close(mut self) -> Result<GraphOutcome, Error> {
        let limit = self.evaluation.limit().map(|(path, max)| (path.to_owned(), max));
        let found = self.evaluation.values();
        let run = &self.terms.run;
        if let Some(path) = differing(self.store, run, &found)? {
            return Err(GraphRefused::Diverged { run: run.clone(), path }.into());
        }
        let last = match &limit {
            Some((path, max)) => records::limited(&self.writing, &found, (path, *max)),
            None => records::completion(&self.writing, &found),
        };
        propose(&mut self.recorder, &last, "the end of the run")?;
        self.recorder.end()?;
        self.recorder.commit()?;
        Ok(GraphOutcome {
            run: run.clone(),
            digest: self.digest,
            nodes: found.nodes.len() as u64,
            edges: found.edges.iter().filter(|(_, has_value)| *has_value).count() as u64,
            output: found.output,
            limit: found.limit,
            beside_limit: found.beside_limit,
            needs: Vec::new(),
            asked: self.asked,
        })
    }
}

/// Asks an effect. One that panics has not answered.
fn answer_of(executor: &AskEdge<'_>, terms: &RecordTerms<'_>, asked: &EdgeRequest) -> Answer {
    let ask = std::panic::AssertUnwindSafe(|| executor(asked).map(|value| terms.clean(value)));
    std::panic::catch_unwind(ask)
        .unwrap_or_else(|_| Err(EdgeFailure::new(EdgeEnd::Killed, "the executor panicked")))
}

/// Evaluates a graph from its record alone. Returns the first path with another value.
fn differing(store: &Shared, run: &RunName, found: &GraphValues) -> Result<Option<String>, Error> {
    let recorded = graph_run(&Trace::open(store, run)?)?;
    let (again, divergence) =
        replay(&recorded.graph, &recorded.children, &recorded.functions, &recorded.frontier)
            .map_err(GraphRefused::Node)?;
    Ok(divergence.map(|divergence| divergence.path).or_else(|| {
        let is_same =
            again.nodes == found.nodes && again.output == found.output && again.limit == found.limit;
        (!is_same).then(|| "output".to_owned())
    }))
}
