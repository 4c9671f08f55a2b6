//! The intents of a graph's run: requests and answers of edges, a node that failed, and the end.

use std::sync::Arc;

use dendrer_graph::eval::{EdgeRequest, GraphValues, NodeFault};
use dendrer_kernel::step::Outcome;
use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::record::{Author, Link, Record, Rel};
use dendrer_object::{Digest, EDGE, Intent, Pointer, REDACTION, Value};

use crate::error::{Error, GraphRefused};
use crate::record::recorder::Recorder;
use crate::record::redacted;
use crate::redact::{Redactor, TakenSecrets};
use crate::run::frontier::{LIMIT, NODE_FAILED};

use super::terms::EdgeFailure;

/// How much of the end of stderr is on record, and of the beginning of an output that cannot be read.
const STDERR_MAX: usize = 4 << 10;

/// The graph whose run is recorded, and what takes secrets out of its records.
#[derive(Debug, Clone)]
pub(super) struct RecordTerms<'t> {
    /// The name of the graph, which is its agent.
    pub(super) graph: &'t str,
    /// Takes secrets out.
    pub(super) redactor: Option<Arc<Redactor>>,
}

impl RecordTerms<'_> {
    /// Notes on a record by which rules it was redacted. A value that is computed from redacted values has no secrets.
    pub(super) fn noted(&self, intent: Intent, taken: &TakenSecrets) -> Intent {
        match &self.redactor {
            Some(redactor) => intent.carrying(REDACTION, redacted::sealed(redactor, taken)),
            None => intent,
        }
    }

    /// A value without its secrets.
    pub(super) fn clean(&self, value: Value) -> (Value, TakenSecrets) {
        match &self.redactor {
            Some(redactor) => redactor.value(&value),
            None => (value, TakenSecrets::default()),
        }
    }

    /// A text without its secrets.
    pub(super) fn clean_text(&self, text: &str) -> String {
        self.redactor.as_ref().map_or_else(|| text.to_owned(), |redactor| redactor.text(text).0)
    }
}

/// An intent about an edge.
fn about_edge(terms: &RecordTerms<'_>, asked: &EdgeRequest, type_name: &str) -> Intent {
    let action = Value::record([
        ("params", Value::array(asked.args.iter().cloned())),
        ("tool", Value::from(asked.call.as_str())),
    ]);
    let edge = Value::record([
        ("asked", Value::from(asked.asked)),
        ("index", Value::from(asked.index.as_str())),
        ("path", Value::from(asked.path.as_str())),
    ]);
    let intent = Intent::new(type_name.parse().expect("a type of the ontology"), terms.graph);
    intent.with("action", action).carrying(EDGE, edge)
}

/// The request of an edge.
pub(super) fn request(terms: &RecordTerms<'_>, asked: &EdgeRequest) -> Intent {
    terms.noted(about_edge(terms, asked, "action.request"), &TakenSecrets::default())
}

/// The answer of an edge, or the reason why it is missing.
pub(super) fn answer(
    terms: &RecordTerms<'_>,
    asked: &EdgeRequest,
    request: Digest,
    answer: &Result<(Value, TakenSecrets), EdgeFailure>,
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
        Err(failure) => {
            let result = [("error", error(terms, failure)), ("status", Value::from("error"))];
            terms.noted(intent.with("result", Value::record(result)), &TakenSecrets::default())
        }
    }
}

/// The value of an edge that the caller found out by hand.
pub(super) fn by_hand(
    terms: &RecordTerms<'_>,
    asked: &EdgeRequest,
    request: Digest,
    value: (Value, TakenSecrets),
) -> Intent {
    let words = format!("the value of {} was given by hand, with --set", asked.path);
    let description = Value::record([("description", Value::from(words))]);
    answer(terms, asked, request, &Ok(value)).with("intent", description)
}

/// A failure as it is on record. Secrets are taken out before the text is cut, because the half of one is not found.
fn error(terms: &RecordTerms<'_>, failure: &EdgeFailure) -> Value {
    let EdgeFailure { why, exit, signal, stderr, output, ended } = failure;
    let mut members = vec![
        ("ended", Value::from(ended.as_str())),
        ("message", Value::from(terms.clean_text(why).as_str())),
    ];
    let numbers = [("exit", exit), ("signal", signal)];
    members.extend(
        numbers
            .into_iter()
            .filter_map(|(name, number)| number.map(|number| (name, Value::from(i64::from(number))))),
    );
    if let Some(output) = output {
        let clean = terms.clean_text(output);
        let size = (0..=clean.len().min(STDERR_MAX)).rev().find(|at| clean.is_char_boundary(*at));
        members.push(("output", Value::from(&clean[..size.unwrap_or_default()])));
    }
    if let Some(stderr) = stderr {
        let clean = terms.clean_text(stderr);
        members.push(("stderr", Value::from(end_of(&clean))));
    }
    Value::record(members)
}

/// The end of a text, from a whole character on.
fn end_of(text: &str) -> &str {
    let from = text.len().saturating_sub(STDERR_MAX);
    let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    &text[from..]
}

/// An observation of the runtime.
fn observation(terms: &RecordTerms<'_>, words: String, name: &str, value: Value) -> Intent {
    let type_name = "observation.add".parse().expect("a type of the ontology");
    let mut intent = Intent::new(type_name, terms.graph);
    intent.author = Author::Runtime;
    intent.with("intent", Value::record([("description", Value::from(words)), (name, value)]))
}

/// A node that cannot be computed.
pub(super) fn node_failed(terms: &RecordTerms<'_>, fault: &NodeFault) -> Intent {
    let NodeFault { path, why } = fault;
    let why = terms.clean_text(why);
    let about = [("error", Value::from(why.as_str())), ("path", Value::from(path.as_str()))];
    let words = format!("{path} cannot be computed: {why}");
    let intent = observation(terms, words, NODE_FAILED, Value::record(about));
    terms.noted(intent, &TakenSecrets::default())
}

/// The values at the end of a run, and the edges whose answers on record it does not read.
pub(super) type Ended<'f> = (&'f GraphValues, &'f [String]);

/// The changes of state at the end: the value of each node, and no answer that is not read.
fn ops_of((found, unread): Ended<'_>) -> Vec<Op> {
    let remove = |path| Op { action: Action::Remove, path: Pointer::of(["edges", path]), value: None };
    let unread = unread.iter().map(|path| remove(&**path));
    let nodes = found.nodes.iter();
    unread.chain(nodes.map(|(path, value)| Op::set(Pointer::of(["nodes", path]), value.clone()))).collect()
}

/// The end of a run that came to a limit.
pub(super) fn limited(terms: &RecordTerms<'_>, ended: Ended<'_>, (path, max): (&str, u64)) -> Intent {
    let about = [("max", Value::from(max)), ("path", Value::from(path))];
    let words = format!("{path} came to its limit of {max}, and that ends the run");
    let intent = observation(terms, words, LIMIT, Value::record(about)).with_delta(Delta(ops_of(ended)));
    terms.noted(intent, &TakenSecrets::default())
}

/// The end of a run that is good: the values of all nodes, and the output.
pub(super) fn completion(terms: &RecordTerms<'_>, ended: Ended<'_>) -> Intent {
    let (found, mut ops) = (ended.0, ops_of(ended));
    let output = found.output.clone().unwrap_or(Value::Null);
    ops.push(Op::set(Pointer::of(["output"]), output.clone()));
    let mut done = Intent::new("goal.complete".parse().expect("a type of the ontology"), terms.graph);
    done.author = Author::Runtime;
    let words = format!("{} nodes of {}; its replay gave the same output", found.nodes.len(), terms.graph);
    let result = [("output", output), ("status", Value::from("ok"))];
    let done = done.with("intent", Value::record([("description", Value::from(words))]));
    terms.noted(done.with("result", Value::record(result)).with_delta(Delta(ops)), &TakenSecrets::default())
}

/// Proposes what the runtime writes; one that the door refuses is an error, and on record.
pub(super) fn propose(recorder: &mut Recorder, intent: &Intent, path: &str) -> Result<Record, Error> {
    let made = gather(recorder, intent, path);
    if let Err(Error::Graph(GraphRefused::Turned { .. })) = &made {
        recorder.commit()?;
    }
    made
}

/// As [`propose`], and commits nothing.
pub(super) fn gather(recorder: &mut Recorder, intent: &Intent, path: &str) -> Result<Record, Error> {
    match recorder.propose(intent)? {
        Outcome::Committed(record) | Outcome::Violated { record, .. } => Ok(record),
        Outcome::Refused(refused) => {
            let (code, why) = (refused.reason.code(), refused.reason.to_string());
            Err(GraphRefused::Turned { path: path.to_owned(), code, why }.into())
        }
    }
}
