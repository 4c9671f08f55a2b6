//! The JSON form of a graph, from which its digest is computed: equal graphs have equal digests, whichever form they were read from.

use std::collections::BTreeMap;

use dendrer_object::{Digest, Object, Value, json};

use crate::text::{DEPTH_MAX, SyntaxFault, reference};
use crate::{Argument, Graph, Statement, StatementBody, is_id};

/// Writes a graph, with the graphs that it runs.
pub fn to_value(graph: &Graph, children: &BTreeMap<String, Graph>) -> Value {
    let mut members = vec![
        ("graph", Value::from(graph.name.as_str())),
        ("output", Value::from(graph.output())),
        ("statements", Value::array(graph.statements.iter().map(statement))),
    ];
    if !children.is_empty() {
        let children =
            children.iter().map(|(name, child)| (name.as_str(), to_value(child, &BTreeMap::new())));
        members.push(("children", Value::record(children)));
    }
    Value::record(members)
}

/// The digest of a graph in its JSON form.
pub fn digest(form: &Value) -> Digest {
    Digest::of_parts(&[b"dendrer/graph/v1\n", &json::to_vec(form)])
}

fn argument(argument: &Argument) -> Value {
    match argument {
        Argument::Reference(reference) => Value::record([("ref", Value::from(reference.text()))]),
        Argument::Literal(value) => Value::record([("value", value.clone())]),
    }
}

fn statement(statement: &Statement) -> Value {
    let mut members = vec![("id", Value::from(statement.id.as_str()))];
    if let Some((call, args)) = statement.call() {
        members.push(("args", Value::array(args.iter().map(argument))));
        members.push(("call", Value::from(call)));
    }
    if let Some(condition) = &statement.condition {
        members.push(("if", Value::from(condition.text())));
    }
    match &statement.body {
        StatementBody::Node { .. } => members.push(("pure", Value::from(true))),
        StatementBody::Edge { is_recorded, index, at_once, .. } => {
            members.extend(is_recorded.then(|| ("rec", Value::from(index.as_deref().unwrap_or("")))));
            members.extend(at_once.then(|| ("at_once", Value::from(true))));
        }
        StatementBody::Repeat { from, max, until, or_limit, statements } => {
            let repeat = [
                ("from", argument(from)),
                ("max", Value::from(*max)),
                ("until", Value::from(until.as_str())),
            ];
            let repeat = repeat.into_iter().chain(or_limit.then(|| ("or_limit", Value::from(true))));
            members.push(("repeat", Value::record(repeat)));
            members.push(("statements", Value::array(statements.iter().map(self::statement))));
        }
    }
    Value::record(members)
}

/// A fault of a statement; this form has no lines.
fn fault(statement: &Value, message: &str) -> SyntaxFault {
    let statement = statement.get("id").and_then(Value::as_str).unwrap_or_default().to_owned();
    SyntaxFault { line: 0, column: 0, statement, message: message.to_owned() }
}

/// Reads a graph, and the graphs that it runs. This form has no line for the contract: it is always asked for.
pub fn read(value: &Value) -> Result<(Graph, BTreeMap<String, Graph>), SyntaxFault> {
    let fault = |message: &str| fault(&Value::Null, message);
    let name = value.get("graph").and_then(Value::as_str).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| fault("a graph has a text \"graph\", its name"))?;
    let statements = read_statements(value.get("statements"), 0)?;
    let graph = Graph { name: name.to_owned(), statements, is_contract: true };
    if let Some(output) = value.get("output")
        && output.as_str() != graph.output()
    {
        return Err(fault("\"output\" is the last node"));
    }
    let mut children = BTreeMap::new();
    for (name, child) in value.get("children").and_then(Value::as_object).into_iter().flat_map(Object::iter) {
        children.insert(name.to_string(), read(child)?.0);
    }
    Ok((graph, children))
}

fn text(value: &Value, name: &str) -> Option<String> {
    value.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// A member that is true or false, and false if it is not there; `None` for anything else.
fn is_true(value: &Value, name: &str) -> Option<bool> {
    value.get(name).map_or(Some(false), Value::as_bool)
}

fn read_statements(value: Option<&Value>, depth: usize) -> Result<Vec<Statement>, SyntaxFault> {
    let none = Value::Null;
    let list = value.and_then(Value::as_array);
    let list = list.ok_or_else(|| fault(&none, "a graph has a list \"statements\""))?;
    if depth > DEPTH_MAX {
        return Err(fault(&none, "repeats are nested too deep"));
    }
    let mut statements = Vec::with_capacity(list.len());
    for one in list.iter() {
        let fault = |message: &str| fault(one, message);
        let argument = |value: &Value| match (value.get("ref").and_then(Value::as_str), value.get("value")) {
            (Some(text), None) => reference(text).map(Argument::Reference),
            (None, Some(value)) => Some(Argument::Literal(value.clone())),
            _ => None,
        };
        let id = one.get("id").and_then(Value::as_str).filter(|id| is_id(id));
        let id = id.ok_or_else(|| fault("an id is n, e or r and digits"))?;
        let condition = match one.get("if") {
            None => None,
            Some(text) => {
                let found = text.as_str().and_then(reference);
                Some(found.ok_or_else(|| fault("\"if\" is an id"))?)
            }
        };
        let body = match one.get("repeat") {
            Some(repeat) => StatementBody::Repeat {
                from: repeat.get("from").and_then(argument).ok_or_else(|| fault("a repeat has \"from\""))?,
                max: repeat.get("max").and_then(Value::as_u64),
                until: text(repeat, "until").ok_or_else(|| fault("a repeat has \"until\""))?,
                or_limit: is_true(repeat, "or_limit")
                    .ok_or_else(|| fault("\"or_limit\" is true or false"))?,
                statements: read_statements(one.get("statements"), depth + 1)?,
            },
            None => {
                let call = text(one, "call").ok_or_else(|| fault("a statement has a \"call\""))?;
                let args = one.get("args").and_then(Value::as_array);
                let args = args.and_then(|args| args.iter().map(argument).collect::<Option<Vec<_>>>());
                let args = args.ok_or_else(|| fault("an argument is {\"ref\":...} or {\"value\":...}"))?;
                let rec = text(one, "rec");
                match one.get("pure").and_then(Value::as_bool) {
                    Some(true) if id.starts_with('n') => StatementBody::Node { call, args },
                    _ if id.starts_with('e') => StatementBody::Edge {
                        call,
                        args,
                        is_recorded: rec.is_some(),
                        index: rec.filter(|rec| !rec.is_empty()),
                        at_once: is_true(one, "at_once")
                            .ok_or_else(|| fault("\"at_once\" is true or false"))?,
                    },
                    _ => return Err(fault("a node has \"pure\", and an edge an id with e")),
                }
            }
        };
        statements.push(Statement { id: id.to_owned(), body, condition, line: 0, column: 0 });
    }
    Ok(statements)
}
