//! Trace nodes of the forensic debugger specification as transitions: one node is one tick ([`crate::cfd`]).
//!
//! The whole node is kept in `intent.cfd`, so that `export --format cfd` gives it back. Its `state_delta` becomes a delta; a parent of
//! another agent becomes a link. A file that does not verify is not imported.

use std::collections::HashMap;

use dendrer::kernel::ontology::{self, Class};
use dendrer::kernel::step::{COUNTERS, KERNEL_PATHS};
use dendrer::run::causal::CFD;
use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::record::{Link, Rel};
use dendrer_object::{Code, Digest, Intent, Object, Pointer, TypeName, Value, tag};

use super::error::ImportError;
use super::note::{At, ImportNote, NoteKind};
use super::transition::Step;
use crate::cfd::{CfdFile, CfdNode, CfdTerms, REMOVE};

/// Members of a state that are replaced as a whole (3.2).
const WHOLE: [&str; 2] = ["goals", "context_stack"];

/// Checks the nodes of a file, and returns the places of the nodes in the order in which they are recorded.
pub(crate) fn order(values: &[Value], list: &str) -> Result<Vec<usize>, ImportError> {
    let file = read(values, list)?;
    let reports = file.verify(&CfdTerms::default());
    let first = reports.iter().flat_map(|report| &report.faults).min_by_key(|fault| fault.tick);
    match first {
        None => Ok(file.order()),
        Some(fault) => Err(ImportError::Branch {
            why: format!(
                "{}: {}: expected {}, got {}",
                fault.node,
                fault.rule.as_str(),
                fault.expected,
                fault.got
            ),
            at: At { list, number: Some(fault.tick - 1) }.to_string(),
        }),
    }
}

fn read(values: &[Value], list: &str) -> Result<CfdFile, ImportError> {
    CfdFile::read(values).map_err(|error| ImportError::Refused {
        code: Code::E0209,
        message: error.why,
        at: At { list, number: Some(error.line as u64 - 1) }.to_string(),
    })
}

/// The nodes that were recorded.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    /// Id and agent of each, by `node_id`.
    nodes: HashMap<String, (Digest, String)>,
    /// The node that is being recorded.
    current: Option<(String, String)>,
}

impl Recorded {
    /// Notes the id of the node that was read last.
    pub(crate) fn note(&mut self, id: Digest) {
        if let Some((node, agent)) = self.current.take() {
            self.nodes.insert(node, (id, agent));
        }
    }

    /// Makes the intent of a node.
    pub(crate) fn step(&mut self, value: &Value, at: At<'_>) -> Result<Step<'static>, ImportError> {
        let file = read(std::slice::from_ref(value), "")?;
        let [node] = &file.nodes[..] else { unreachable!("one value is one node") };
        let fail = |code, message| ImportError::Refused { code, message, at: at.to_string() };
        if let Err(error) = ontology::check_name(&node.agent) {
            return Err(ImportError::authorship(&error, at.to_string()));
        }
        let event = value.get("event").cloned().unwrap_or_else(Value::object);
        let named = event.get("transition_type").and_then(Value::as_str);
        let own: Option<TypeName> = named.and_then(|name| name.parse().ok());
        let own = own.filter(|name| ontology::class(name, &Default::default()) == Some(Class::Agent));
        let type_name = own.unwrap_or_else(|| "observation.add".parse().expect("a type of the ontology"));
        let mut intent = Intent::new(type_name, &node.agent);
        let description =
            event.get("description").or(event.get("action")).filter(|text| text.as_str().is_some());
        let confidence = event.get("confidence");
        let confidence =
            confidence.filter(|value| value.as_f64().is_some_and(|value| (0.0..=1.0).contains(&value)));
        let members = [
            (CFD, Some(value)),
            ("confidence", confidence),
            ("description", description),
            ("merge", event.get("merge")),
        ];
        let members = members.into_iter().filter_map(|(name, value)| Some((name, value?.clone())));
        intent = intent.with("intent", Value::record(members));
        if let Some(kind) = value.get("fork_type").filter(|kind| kind.as_str().is_some()) {
            intent = intent.with("fork_type", kind.clone());
        }
        intent = intent.with_delta(delta(value).map_err(|why| fail(Code::E0209, why))?);
        intent.links = self.links(node);
        self.current = Some((node.node_id.clone(), node.agent.clone()));
        let mut step = Step::new(intent);
        let holds = |name: &str| event.get(name).is_some_and(|part| part.as_object().is_some());
        if holds("action") || holds("result") {
            let text = "what this node says of a call is kept and not read";
            step.notes.push(ImportNote::new(NoteKind::PartsNotRead, format!("{at}/event"), text));
        }
        Ok(step)
    }

    /// Parents of other agents: `merges` if there are several parents, else `caused_by`.
    fn links(&self, node: &CfdNode) -> Vec<Link> {
        let rel = if node.parents.len() > 1 { Rel::Merges } else { Rel::CausedBy };
        let parents = node.parents.iter().filter_map(|id| self.nodes.get(id));
        let mut links: Vec<Link> = parents
            .filter(|(_, agent)| *agent != node.agent)
            .map(|(hash, _)| Link { rel, hash: *hash })
            .collect();
        links.sort_unstable();
        links.dedup();
        links
    }
}

/// A `state_delta` as a delta: one `set` for each key of an object, one for a list or another value. What is removed is set first,
/// so that it is gone whether or not it was there.
fn delta(node: &Value) -> Result<Delta, String> {
    let mut ops = Vec::new();
    let gone = |ops: &mut Vec<Op>, path: Pointer| {
        ops.push(Op::set(path.clone(), Value::Null));
        ops.push(Op { action: Action::Remove, path, value: None });
    };
    let members = node.get("state_delta").and_then(Value::as_object);
    for (top, value) in members.into_iter().flat_map(Object::iter) {
        if KERNEL_PATHS.contains(&&**top) || &**top == COUNTERS {
            return Err(format!("{top} in the state is the kernel's"));
        }
        if &**top == REMOVE {
            names(value)?
                .into_iter()
                .for_each(|name| gone(&mut ops, Pointer::of([&*tag::stored_name(name)])));
            continue;
        }
        let path = Pointer::of([&**top]);
        let value = tag::from_user_names(value);
        let is_tagged = |members: &&Object| members.iter().any(|(name, _)| tag::is_tag_name(name));
        match value.as_object().filter(|_| !WHOLE.contains(&&**top)).filter(|members| !is_tagged(members)) {
            Some(members) => {
                if members.is_empty() {
                    continue;
                }
                for (key, value) in members.iter() {
                    if &**key == REMOVE {
                        names(value)?
                            .into_iter()
                            .for_each(|name| gone(&mut ops, Pointer::of([&**top, &tag::stored_name(name)])));
                    } else {
                        ops.push(Op::set(Pointer::of([&**top, key]), value.clone()));
                    }
                }
            }
            None if matches!(&**top, "memory" | "beliefs") => {
                return Err(format!("state_delta.{top} is an object, not {}", value.described()));
            }
            None => ops.push(Op::set(path, value)),
        }
    }
    Ok(Delta(ops))
}

fn names(list: &Value) -> Result<Vec<&str>, String> {
    let names = list.as_array().and_then(|list| list.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
    names.ok_or_else(|| format!("{REMOVE} is a list of keys, not {list}"))
}
