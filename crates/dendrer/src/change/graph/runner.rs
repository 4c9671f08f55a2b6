//! The loop of a graph's run: which edges are asked next, and what is recorded as they answer.
//!
//! Rule: nothing is asked whose request is not on record, and nothing new once an edge has failed or a limit ends the graph; what
//! is under way then is still recorded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc;

use dendrer_graph::Graph;
use dendrer_graph::eval::{EdgeRequest, GraphEvaluation, GraphValues, numbers_of_index};
use dendrer_graph::frontier::replay;
use dendrer_graph::functions::Functions;
use dendrer_graph::reads::{edges_read, effect_at};
use dendrer_kernel::step::Outcome;
use dendrer_object::record::Record;
use dendrer_object::value::first_difference;
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

/// The request of an edge, and the value that the caller found out by hand, without its secrets.
type ByHand = (EdgeRequest, (Value, TakenSecrets));

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
        let key = numbers_of_index(&asked.index);
        let list = if is_effectful && !asked.at_once { &mut self.alone } else { &mut self.together };
        list.insert(key, asked.clone());
    }

    /// All of them, each with its place.
    fn all(&self) -> impl Iterator<Item = (&Vec<u64>, &EdgeRequest)> {
        self.together.iter().chain(&self.alone)
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
    /// Whether an answer on record is replaced, now or before, so that an edge which reads it may be asked something else, or not
    /// at all.
    is_renewed: bool,
    /// The edges whose answers on record are taken out, to be replaced.
    taken_out: BTreeSet<String>,
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
            taken_out: BTreeSet::new(),
        })
    }

    /// Resumes a run with what is on record. In one with a replaced answer, only a branch that is taken now is evaluated.
    pub(super) fn with_past(mut self, past: Past, is_renewed: bool) -> Runner<'g> {
        if !is_renewed {
            self.evaluation = self.evaluation.with_recorded(past.values.keys().cloned().collect());
        }
        Runner { past, is_renewed, ..self }
    }

    /// Whether the caller decides about an edge.
    fn is_named(&self, path: &str) -> bool {
        self.terms.resume.as_ref().is_some_and(|resume| resume.is_named(path))
    }

    /// Whether an edge is to be asked.
    pub(super) fn is_due(&self, path: &str) -> bool {
        self.due.all().any(|(_, asked)| asked.path == path)
    }

    /// Whether the answer on record of an edge is taken out.
    pub(super) fn is_taken_out(&self, path: &str) -> bool {
        self.taken_out.contains(path)
    }

    /// The edges with a value on record that a statement reads.
    fn read_by(&self, path: &str) -> BTreeSet<String> {
        let known = self.evaluation.answered();
        let read = edges_read(self.terms.graph, self.terms.children, path, &known);
        read.intersection(&known).cloned().collect()
    }

    /// Evaluates the record. If a node cannot be computed, the answers of named edges that it reads are taken out, and these edges
    /// are asked again once they are reached.
    pub(super) fn evaluate_without(&mut self, parts: Parts<'g>) -> Result<(), GraphRefused> {
        while let Err(error) = self.evaluate() {
            let GraphRefused::Failed { edges, .. } = &error else { return Err(error) };
            let again: Vec<String> = edges.iter().filter(|path| self.is_named(path)).cloned().collect();
            if again.is_empty() {
                return Err(error);
            }
            again.iter().for_each(|path| drop(self.past.values.remove(path)));
            self.taken_out.extend(again);
            self.past.failures.clear();
            let (graph, children, functions, inputs) = parts;
            self.evaluation = GraphEvaluation::new(graph, children, functions, inputs)?;
            (self.due, self.is_renewed) = (Due::default(), true);
        }
        Ok(())
    }

    /// Refuses to go on with a replaced answer if an effectful edge that has acted, or may have, is asked something else now, or
    /// is not reached: its branch is not taken, its round not made, or it waits for an answer that is not known yet.
    pub(super) fn refuse_acted(&self) -> Result<(), GraphRefused> {
        if !self.is_renewed {
            return Ok(());
        }
        let (graph, children) = (self.terms.graph, self.terms.children);
        let mut reached = self.evaluation.answered();
        // Nothing that is due is asked after a limit.
        let due = self.due.all().filter(|_| self.evaluation.limit().is_none());
        reached.extend(due.map(|(_, asked)| asked.path.clone()));
        let known = self.past.values.keys().chain(self.past.unknown.keys()).chain(&self.taken_out);
        let acted = known.filter(|path| !reached.contains(*path)).find(|path| {
            let call = effect_at(graph, children, path).unwrap_or_default();
            self.functions.is_effectful(call)
        });
        let Some(path) = acted.cloned() else { return Ok(()) };
        let is_reached = self.evaluation.due().any(|asked| asked.path == path);
        Err(GraphRefused::Acted { path, is_reached })
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

    /// As [`Runner::advance`], and records nothing. Statements that do not depend on a node that fails are evaluated, too: a resumed
    /// run compares all that it reaches with its record.
    fn evaluate(&mut self) -> Result<(), GraphRefused> {
        let mut other = None;
        let Runner { evaluation, past, due, functions, is_renewed, terms, .. } = self;
        let is_named = |path: &str| terms.resume.as_ref().is_some_and(|resume| resume.is_named(path));
        let faults = evaluation.advance_past_faults(&mut |asked: &EdgeRequest| {
            let is_effectful = functions.is_effectful(&asked.call);
            match past.values.get(&asked.path) {
                Some((digest, value)) if *digest == asked.asked => return Some(value.clone()),
                Some(_) if !*is_renewed => drop(other.get_or_insert_with(|| asked.path.clone())),
                // It has acted, which `refuse_acted` finds.
                Some(_) if is_effectful && !is_named(&asked.path) => {}
                _ => due.add(asked, is_effectful),
            }
            None
        });
        if let Some(fault) = faults.into_iter().next() {
            let edges = self.read_by(&fault.path).into_iter().collect();
            return Err(GraphRefused::Failed { fault, edges });
        }
        match other {
            Some(path) => Err(GraphRefused::Diverged { run: self.terms.run.clone(), path }),
            None => Ok(()),
        }
    }

    /// The first effect that may be asked yet and has no executor.
    pub(super) fn unanswered(&self, has_executor: impl Fn(&str) -> bool) -> Option<&str> {
        self.evaluation.open_calls().into_iter().find(|call| !has_executor(call))
    }

    /// The effectful edges that are due of which it is not known whether they have acted, and about which the caller has not
    /// decided, in canonical order.
    pub(super) fn needs(&self) -> Vec<EdgeNeed> {
        let mut due: Vec<_> = self.due.all().filter(|(_, asked)| !self.is_named(&asked.path)).collect();
        due.sort_unstable_by_key(|(index, _)| *index);
        due.into_iter()
            .filter(|(_, asked)| self.functions.is_effectful(&asked.call))
            .filter_map(|(_, EdgeRequest { path, call, .. })| {
                let why = *self.past.unknown.get(path)?;
                Some(EdgeNeed { path: path.clone(), call: call.clone(), why })
            })
            .collect()
    }

    /// Takes values that the caller found out by hand for edges that are due, or are due with such values; and evaluates with them.
    /// [`Runner::record_by_hand`] puts them on record.
    pub(super) fn take_by_hand(
        &mut self,
        set: &BTreeMap<String, Value>,
    ) -> (Vec<ByHand>, Result<(), GraphRefused>) {
        let (mut given, mut made) = (Vec::new(), Ok(()));
        loop {
            let due = self.due.all().filter_map(|(_, asked)| Some((asked.clone(), set.get(&asked.path)?)));
            let next: Vec<ByHand> =
                due.map(|(asked, value)| (asked, self.writing.clean(value.clone()))).collect();
            if next.is_empty() {
                return (given, made);
            }
            for (asked, (value, _)) in &next {
                self.evaluation.bring(&asked.path, value.clone());
                self.due.together.retain(|_, due| due.path != asked.path);
                self.due.alone.retain(|_, due| due.path != asked.path);
            }
            given.extend(next);
            let more = self.evaluate();
            made = made.and(more);
        }
    }

    /// Records values that the caller found out by hand, each with the request that it answers.
    pub(super) fn record_by_hand(&mut self, given: Vec<ByHand>) -> Result<(), Error> {
        for (asked, value) in given {
            let request = match self.past.request_of(&asked) {
                Some(request) => request,
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
                        let is_host = self.functions.is_host(&asked.call);
                        let work = move || {
                            let answer = answer_of(executor, &writing, &asked, is_host);
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
                (Ok(_), Err(EdgeFailure { why, ended, .. })) => {
                    let (path, call) = (asked.path, asked.call);
                    let refused = match ended {
                        EdgeEnd::NotPure => GraphRefused::NotPure { path, call, why },
                        _ => GraphRefused::Edge { path, call, why },
                    };
                    failed.get_or_insert(refused.into());
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
        let answered = found.edges.iter().filter(|(_, is_there)| *is_there);
        let answered: BTreeSet<&String> = answered.map(|(asked, _)| &asked.path).collect();
        let known = self.past.values.keys().chain(&self.taken_out).filter(|_| self.is_renewed);
        let unread: Vec<String> = known.filter(|path| !answered.contains(path)).cloned().collect();
        if let Some(path) = differing(self.store, run, &found, &unread)? {
            return Err(GraphRefused::Diverged { run: run.clone(), path }.into());
        }
        let last = match &limit {
            Some((path, max)) => records::limited(&self.writing, (&found, &unread), (path, *max)),
            None => records::completion(&self.writing, (&found, &unread)),
        };
        propose(&mut self.recorder, &last, "the end of the run")?;
        self.recorder.end()?;
        self.recorder.commit()?;
        let answered: Vec<_> =
            found.edges.iter().filter(|(_, is_there)| *is_there).map(|(one, _)| one).collect();
        let tested = answered.iter().map(|asked| &*asked.call).filter(|call| self.functions.is_host(call));
        let tested: Vec<&str> = tested.collect();
        Ok(GraphOutcome {
            run: run.clone(),
            digest: self.digest,
            nodes: found.nodes.len() as u64,
            edges: (answered.len() - tested.len()) as u64,
            tested: names_of(tested),
            output: found.output,
            limit: found.limit,
            beside_limit: found.beside_limit,
            needs: Vec::new(),
            asked: self.asked,
        })
    }
}

/// The names of host functions, each once.
pub(super) fn names_of(calls: Vec<&str>) -> Vec<String> {
    let names: BTreeSet<&str> = calls.into_iter().collect();
    names.into_iter().map(str::to_owned).collect()
}

/// Asks an effect, a host function twice. One that panics has not answered.
fn answer_of(executor: &AskEdge<'_>, terms: &RecordTerms<'_>, asked: &EdgeRequest, is_host: bool) -> Answer {
    let ask = || if is_host { tested(executor, terms, asked) } else { executor(asked) };
    let ask = std::panic::AssertUnwindSafe(|| ask().map(|value| terms.clean(value)));
    std::panic::catch_unwind(ask)
        .unwrap_or_else(|_| Err(EdgeFailure::new(EdgeEnd::Killed, "the executor panicked")))
}

/// How much of a result is in the message of two that differ.
const SHOWN_MAX: usize = 80;

/// Calls a host function twice. Returns its result if both are equal.
fn tested(
    executor: &AskEdge<'_>,
    terms: &RecordTerms<'_>,
    asked: &EdgeRequest,
) -> Result<Value, EdgeFailure> {
    const DIFFER: &str = "not pure: two runs differ";
    let first = executor(asked)?;
    let again = match executor(&EdgeRequest { again: true, ..asked.clone() }) {
        Ok(again) if again == first => return Ok(first),
        Ok(again) => again,
        Err(failure) if matches!(failure.ended, EdgeEnd::Answered | EdgeEnd::Unread) => {
            let why = format!("{DIFFER}, the second one failed: {}", failure.why);
            return Err(EdgeFailure { ended: EdgeEnd::NotPure, why, ..failure });
        }
        Err(failure) => return Err(failure),
    };
    // Secrets are taken out before a text is cut, because the half of one is not found.
    let [first, again] = [first, again].map(|value| terms.clean(value).0);
    let shown = |value: Option<Value>| {
        let text = value.map_or_else(|| "nothing".to_owned(), |value| value.to_string());
        text.chars().take(SHOWN_MAX).collect::<String>()
    };
    let why = first_difference(&first, &again).map(|found| {
        let place = found.path.dotted();
        let at = if place.is_empty() { place } else { format!(" at {place}") };
        format!("{DIFFER}{at}: {} and {}", shown(found.left), shown(found.right))
    });
    Err(EdgeFailure::new(EdgeEnd::NotPure, why.unwrap_or_else(|| DIFFER.to_owned())))
}

/// Evaluates a graph from its record alone, without answers that are not read any more. Returns the first path with another value.
fn differing(
    store: &Shared,
    run: &RunName,
    found: &GraphValues,
    unread: &[String],
) -> Result<Option<String>, Error> {
    let mut recorded = graph_run(&Trace::open(store, run)?)?;
    recorded.frontier.edges.retain(|edge| !unread.contains(&edge.path));
    let (again, divergence) =
        replay(&recorded.graph, &recorded.children, &recorded.functions, &recorded.frontier)
            .map_err(GraphRefused::Node)?;
    Ok(divergence.map(|divergence| divergence.path).or_else(|| {
        let is_same =
            again.nodes == found.nodes && again.output == found.output && again.limit == found.limit;
        (!is_same).then(|| "output".to_owned())
    }))
}
