//! Running a graph: every edge value goes through the door, and the run is closed good only after its replay gave the same output
//! (Mynd Labs research note R-001).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use dendrer_graph::eval::{EdgeRequest, GraphValues, evaluate};
use dendrer_graph::frontier::replay;
use dendrer_graph::{Graph, form};
use dendrer_kernel::step::{Outcome, Stage, Start};
use dendrer_object::delta::{Delta, Op};
use dendrer_object::record::{Author, Link, Record, Rel};
use dendrer_object::value::first_difference;
use dendrer_object::{Digest, EDGE, Intent, Object, Pointer, REDACTION, RunName, Value};
use dendrer_store::Shared;

use crate::error::{Error, GraphRefused};
use crate::pack::{Files, Source};
use crate::record::recorder::{Environment, Recorder};
use crate::record::redacted;
use crate::redact::{Redactor, TakenSecrets};
use crate::repo::Repo;
use crate::run::frontier::{functions_of, graph_run};
use crate::run::trace::Trace;

/// Asks an effect for the value of an edge. The error is a sentence.
pub type AskEdge<'e> = dyn Fn(&EdgeRequest) -> Result<Value, String> + Sync + 'e;

/// How a graph is run.
#[derive(Debug)]
pub struct GraphTerms<'t> {
    /// The new run's id.
    pub run: RunName,
    /// The graph.
    pub graph: &'t Graph,
    /// The graphs that it runs, by name.
    pub children: &'t BTreeMap<String, Graph>,
    /// The pack.
    pub pack: &'t Source,
    /// The inputs, by name.
    pub inputs: BTreeMap<String, Value>,
    /// The stage at which it is recorded; that which the pack asks for if not given.
    pub stage: Option<Stage>,
    /// Takes secrets out of inputs and answers. The graph is given the redacted values, so that its replay is the same.
    pub redactor: Option<Arc<Redactor>>,
}

impl GraphTerms<'_> {
    /// Notes on a record by which rules it was redacted. A value that is computed from redacted values has no secrets.
    fn noted(&self, intent: Intent, taken: &TakenSecrets) -> Intent {
        match &self.redactor {
            Some(redactor) => intent.carrying(REDACTION, redacted::sealed(redactor, taken)),
            None => intent,
        }
    }
}

/// A graph that was run.
#[derive(Debug, Clone)]
pub struct GraphOutcome {
    /// The run.
    pub run: RunName,
    /// The digest of the graph.
    pub digest: Digest,
    /// The values of its nodes.
    pub found: GraphValues,
    /// The last record.
    pub tip: Digest,
}

impl Repo {
    /// Runs a graph, and records its frontier.
    pub fn run_graph(&self, terms: &GraphTerms<'_>, executor: &AskEdge<'_>) -> Result<GraphOutcome, Error> {
        run_graph(self.writer()?, terms, executor, self.environment())
    }
}

/// Runs a graph: begins a run with it, asks each edge's effect once, records request and value, and closes the run after a replay
/// from the record. Edges that do not wait for each other are asked at once. If an effect fails, that is on record and the run
/// stays open.
pub fn run_graph(
    store: &Shared,
    terms: &GraphTerms<'_>,
    executor: &AskEdge<'_>,
    surroundings: Box<dyn Environment>,
) -> Result<GraphOutcome, Error> {
    for input in terms.graph.inputs() {
        if !terms.inputs.contains_key(&input) {
            return Err(GraphRefused::NoInput(input).into());
        }
    }
    let form = form::to_value(terms.graph, terms.children);
    let inputs = redacted_inputs(terms, &form)?;
    let functions = functions_of(terms.pack.pack.value());
    let mut start =
        with_places(terms.pack)?.bind(Start { stage: terms.stage, ..Start::new(terms.run.clone()) })?;
    start.graph = Some(form.clone());
    let given = inputs.iter().map(|(name, value)| (name.as_str(), value.clone()));
    start.meta = Some(Value::record([("inputs", Value::record(given))]));
    if let Some(redactor) = &terms.redactor {
        start = redacted::start(redactor, &start);
    }
    let mut recorder = Recorder::begin(store, &start, surroundings)?;
    recorder.commit()?;
    let mut known: BTreeMap<String, Value> = BTreeMap::new();
    let found = loop {
        let found = evaluate(terms.graph, terms.children, &functions, &inputs, &mut |asked: &EdgeRequest| {
            known.get(&asked.path).cloned()
        })
        .map_err(GraphRefused::Node)?;
        let due: Vec<&EdgeRequest> = found.due().collect();
        if due.is_empty() {
            break found;
        }
        known.extend(ask(&mut recorder, terms, &due, executor)?);
    };
    // Closed good only if the record alone gives the same.
    if let Some(path) = differing(store, &terms.run, &found)? {
        return Err(GraphRefused::Diverged { run: terms.run.clone(), path }.into());
    }
    let record = propose(&mut recorder, &completion(terms, &found), "the end of the run")?;
    recorder.end()?;
    recorder.commit()?;
    Ok(GraphOutcome { run: terms.run.clone(), digest: form::digest(&form), found, tip: record.id() })
}

/// The inputs without secrets. The graph is the program, so one with a secret in it is refused.
fn redacted_inputs(terms: &GraphTerms<'_>, form: &Value) -> Result<BTreeMap<String, Value>, GraphRefused> {
    let mut inputs = terms.inputs.clone();
    let Some(redactor) = &terms.redactor else { return Ok(inputs) };
    if let Some(held) = first_difference(form, &redactor.value(form).0) {
        return Err(GraphRefused::HoldsSecret(held.path.dotted()));
    }
    for (name, value) in &mut inputs {
        let named = redactor.value(&Value::record([(name.as_str(), value.clone())])).0;
        *value = named.get(name).cloned().unwrap_or(Value::Null);
    }
    Ok(inputs)
}

/// Evaluates a graph from its record alone. Returns the first path with another value.
fn differing(store: &Shared, run: &RunName, found: &GraphValues) -> Result<Option<String>, Error> {
    let recorded = graph_run(&Trace::open(store, run)?)?;
    let (again, divergence) =
        replay(&recorded.graph, &recorded.children, &recorded.functions, &recorded.frontier)
            .map_err(GraphRefused::Node)?;
    Ok(divergence.map(|divergence| divergence.path).or_else(|| {
        let same = again.nodes == found.nodes && again.output == found.output;
        (!same).then(|| "output".to_owned())
    }))
}

/// The intent that ends the run: the values of all nodes, and the output.
fn completion(terms: &GraphTerms<'_>, found: &GraphValues) -> Intent {
    let mut ops: Vec<Op> = Vec::with_capacity(found.nodes.len() + 1);
    ops.extend(found.nodes.iter().map(|(path, value)| Op::set(Pointer::of(["nodes", path]), value.clone())));
    let output = found.output.clone().unwrap_or(Value::Null);
    ops.push(Op::set(Pointer::of(["output"]), output.clone()));
    let mut done = Intent::new("goal.complete".parse().expect("a type of the ontology"), &terms.graph.name);
    done.author = Author::Runtime;
    let words =
        format!("{} nodes of {}; its replay gave the same output", found.nodes.len(), terms.graph.name);
    let result = [("output", output), ("status", Value::from("ok"))];
    let done = done.with("intent", Value::record([("description", Value::from(words))]));
    terms.noted(done.with("result", Value::record(result)).with_delta(Delta(ops)), &TakenSecrets::default())
}

/// How many edges are asked at once. Each may be a process.
const AT_ONCE_MAX: usize = 64;

/// The places of the state that a graph writes.
const PLACES: [&str; 3] = ["edges", "nodes", "output"];

/// A pack under which a graph brings the changes of state itself, and which declares what it writes.
fn with_places(pack: &Source) -> Result<Source, Error> {
    let mut value = pack.pack.value().as_object().cloned().unwrap_or_default();
    let has_rules = value.get("rules").and_then(Value::as_array).is_some_and(|rules| !rules.is_empty());
    if has_rules || value.get("reducer").is_some_and(|reducer| reducer.as_str() != Some("delta/1")) {
        return Err(GraphRefused::Rules.into());
    }
    value.set("reducer", Value::from("delta/1"));
    let mut state = value.get("state").and_then(Value::as_object).cloned().unwrap_or_else(Object::default);
    for place in PLACES.into_iter().filter(|place| !state.contains_key(place)).collect::<Vec<_>>() {
        // The places that a graph computes belong to the runtime.
        state.set(place, Value::record([("writers", Value::array([Value::from("runtime")]))]));
    }
    value.set("state", Value::Object(state));
    let value = Value::Object(value);
    let text = crate::pack::text_of(&value);
    let read = crate::pack::read_with(text.as_bytes(), Files::Of(&value));
    read.map_err(|problems| {
        GraphRefused::Pack(problems.first().map(|one| one.message.clone()).unwrap_or_default()).into()
    })
}

fn propose(recorder: &mut Recorder, intent: &Intent, path: &str) -> Result<Record, Error> {
    match recorder.propose(intent)? {
        Outcome::Committed(record) | Outcome::Violated { record, .. } => Ok(record),
        Outcome::Refused(refused) => {
            recorder.commit()?;
            let (code, why) = (refused.reason.code(), refused.reason.to_string());
            Err(GraphRefused::Turned { path: path.to_owned(), code, why }.into())
        }
    }
}

/// Proposes the request of an edge. One that the door refuses is kept as a refusal, and its effect is not asked.
fn deny(recorder: &mut Recorder, request: &Intent, asked: &EdgeRequest) -> Result<Record, Error> {
    match recorder.propose(request)? {
        Outcome::Committed(record) | Outcome::Violated { record, .. } => Ok(record),
        Outcome::Refused(refused) => {
            recorder.commit()?;
            let (path, call) = (asked.path.clone(), asked.call.clone());
            let (code, why) = (refused.reason.code(), refused.reason.to_string());
            Err(GraphRefused::Denied { path, call, code, why }.into())
        }
    }
}

/// An intent about an edge.
fn about_edge(terms: &GraphTerms<'_>, asked: &EdgeRequest, type_name: &str) -> Intent {
    let action = Value::record([
        ("params", Value::array(asked.args.iter().cloned())),
        ("tool", Value::from(asked.call.as_str())),
    ]);
    let edge = Value::record([
        ("asked", Value::from(asked.asked)),
        ("index", Value::from(asked.index.as_str())),
        ("path", Value::from(asked.path.as_str())),
    ]);
    let intent = Intent::new(type_name.parse().expect("a type of the ontology"), &terms.graph.name);
    intent.with("action", action).carrying(EDGE, edge)
}

/// The intent with the answer of an edge, or with the sentence why it is missing.
fn answer_of_edge(
    terms: &GraphTerms<'_>,
    asked: &EdgeRequest,
    request: Digest,
    answer: &Result<(Value, TakenSecrets), String>,
) -> Intent {
    let mut intent = about_edge(terms, asked, "action.result");
    intent.author = Author::Runtime;
    intent.links.push(Link { rel: Rel::CausedBy, hash: request });
    match answer {
        Ok((value, taken)) => {
            let result = [("output", value.clone()), ("status", Value::from("ok"))];
            let set = Op::set(Pointer::of(["edges", &asked.path]), value.clone());
            terms.noted(intent.with("result", Value::record(result)).with_delta(Delta(vec![set])), taken)
        }
        Err(why) => {
            let why = terms.redactor.as_ref().map_or_else(|| why.clone(), |redactor| redactor.text(why).0);
            let error = Value::record([("message", Value::from(why.as_str()))]);
            let result = Value::record([("error", error), ("status", Value::from("error"))]);
            terms.noted(intent.with("result", result), &TakenSecrets::default())
        }
    }
}

/// Records the requests of some edges and returns their ids.
fn request_all(
    recorder: &mut Recorder,
    terms: &GraphTerms<'_>,
    due: &[&EdgeRequest],
) -> Result<Vec<Digest>, Error> {
    let request = |asked: &EdgeRequest| {
        terms.noted(about_edge(terms, asked, "action.request"), &TakenSecrets::default())
    };
    // Each is judged before anything is on record of the others: if the door denies one, none is asked.
    for asked in due {
        let intent = request(asked);
        if let Outcome::Refused(_) = recorder.propose_if(&intent, |_, _, _| false)? {
            deny(recorder, &intent, asked)?;
        }
    }
    let mut requests = Vec::with_capacity(due.len());
    for asked in due {
        requests.push(deny(recorder, &request(asked), asked)?.id());
    }
    recorder.commit()?;
    Ok(requests)
}

/// Records what some edges ask, asks their effects at once, and records each value as it comes.
fn ask(
    recorder: &mut Recorder,
    terms: &GraphTerms<'_>,
    due: &[&EdgeRequest],
    executor: &AskEdge<'_>,
) -> Result<Vec<(String, Value)>, Error> {
    let requests = request_all(recorder, terms, due)?;
    let (sender, answers) = mpsc::channel();
    let mut made: Vec<(String, Value)> = Vec::with_capacity(due.len());
    let mut failed: Option<Error> = None;
    let clean = |value: Value| match &terms.redactor {
        Some(redactor) => redactor.value(&value),
        None => (value, TakenSecrets::default()),
    };
    let next = AtomicUsize::new(0);
    let take = || {
        let at = next.fetch_add(1, Ordering::Relaxed);
        due.get(at).map(|asked| (at, *asked))
    };
    std::thread::scope(|scope| {
        for _ in 0..due.len().min(AT_ONCE_MAX) {
            let sender = sender.clone();
            let work = move || {
                while let Some((at, asked)) = take() {
                    let answer = executor(asked).map(clean);
                    if sender.send((at, answer)).is_err() {
                        return;
                    }
                }
            };
            // If the system has no thread left, those that are there ask the rest, or else this one does.
            if std::thread::Builder::new().spawn_scoped(scope, work.clone()).is_err() {
                work();
                break;
            }
        }
        drop(sender);
        for (at, answer) in answers {
            let asked = due[at];
            let recorded = answer_of_edge(terms, asked, requests[at], &answer);
            let kept = propose(recorder, &recorded, &asked.path).and_then(|_| recorder.commit());
            match (kept, answer) {
                (Err(error), _) => drop(failed.get_or_insert(error)),
                (Ok(_), Ok((value, _))) => made.push((asked.path.clone(), value)),
                (Ok(_), Err(why)) => {
                    let (path, call) = (asked.path.clone(), asked.call.clone());
                    failed.get_or_insert(GraphRefused::Edge { path, call, why }.into());
                }
            }
        }
    });
    failed.map_or(Ok(made), Err)
}

/// Forks the run of a graph before the first of some edges, with another value of each: an injection.
pub fn inject(
    repo: &Repo,
    trace: &Trace,
    name: RunName,
    others: &BTreeMap<String, Value>,
) -> Result<Record, Error> {
    let recorded = graph_run(trace)?;
    let mut ticks = Vec::with_capacity(others.len());
    for path in others.keys() {
        let tick = recorded.ticks.get(path).copied();
        ticks.push(
            tick.ok_or_else(|| GraphRefused::NoEdge { run: trace.name().clone(), path: path.clone() })?,
        );
    }
    ticks.sort_unstable();
    let first = ticks.first().copied().unwrap_or(trace.tip());
    let mut terms = crate::change::fork::ForkTerms::new(name);
    terms.reason = Some("other values of edges".into());
    let (mut recorder, _) = repo.fork(trace, first - 1, &terms)?;
    let mut last = None;
    for tick in ticks {
        let content = trace.record(tick)?.content();
        let path = content
            .get(EDGE)
            .and_then(|edge| edge.get("path")?.as_str().map(str::to_owned))
            .unwrap_or_default();
        let value = others.get(&path).cloned().unwrap_or(Value::Null);
        let agent = content.get("agent_id").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut intent = Intent::new("action.result".parse().expect("a type of the ontology"), &agent);
        intent.author = Author::Runtime;
        let member = |name: &str| content.get(name).cloned().unwrap_or(Value::Null);
        let set = Op::set(Pointer::of(["edges", &path]), value.clone());
        let intent = intent
            .with("action", member("action"))
            .carrying(EDGE, member(EDGE))
            .with("fork_type", Value::from("injection"))
            .with("result", Value::record([("output", value), ("status", Value::from("ok"))]))
            .with_delta(Delta(vec![set]));
        last = Some(propose(&mut recorder, &intent, &path)?);
    }
    recorder.commit()?;
    last.ok_or_else(|| GraphRefused::NoEdge { run: trace.name().clone(), path: String::new() }.into())
}
