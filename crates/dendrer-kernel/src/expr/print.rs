//! Writes a tree as text in the one form that digests are made of.
//!
//! Rule: parsing the text gives a tree that prints the same text. Changing a blank here changes the digest of every
//! registered predicate.

use dendrer_object::{Number, Value};

use super::ast::{Base, Comprehension, Kind, Node, Path, StepKind};
use super::functions::Function;
use super::names;
use super::number::Operator;

/// How tightly a node binds; it is printed in parentheses if the context binds tighter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Choice,
    Or,
    And,
    Relation,
    Sum,
    Product,
    Unary,
    Member,
}

/// Writes the whole tree.
pub(super) fn print(node: &Node) -> String {
    let mut out = String::new();
    write(node, Level::Choice, &mut out);
    out
}

/// Writes a name as the step of a path: `.name`, or `["any text"]`.
pub(super) fn push_name(name: &str, out: &mut String) {
    if names::is_selector(name) {
        out.push('.');
        out.push_str(name);
    } else {
        out.push('[');
        push_string(name, out);
        out.push(']');
    }
}

fn level(node: &Node) -> Level {
    match &node.kind {
        Kind::Choose(..) => Level::Choice,
        Kind::Or(_) => Level::Or,
        Kind::And(_) => Level::And,
        Kind::Compare(..) | Kind::In(_) => Level::Relation,
        Kind::Chain(_, rest) => match rest.first() {
            Some((operator, _)) if operator.is_sum() => Level::Sum,
            _ => Level::Product,
        },
        Kind::Not(_) | Kind::Negate(_) => Level::Unary,
        Kind::Int(value) if *value < 0 => Level::Unary,
        Kind::Double(value) if *value < 0.0 => Level::Unary,
        _ => Level::Member,
    }
}

fn write(node: &Node, wanted: Level, out: &mut String) {
    if level(node) < wanted {
        out.push('(');
        write(node, Level::Choice, out);
        out.push(')');
        return;
    }
    match &node.kind {
        Kind::Literal(Value::String(text)) => push_string(text, out),
        Kind::Literal(value) => out.push_str(&value.to_string()),
        Kind::Int(value) => out.push_str(&value.to_string()),
        Kind::Double(value) => push_double(*value, out),
        Kind::Constant(name, _) => out.push_str(name),
        Kind::Path(path) => push_path(path, out),
        Kind::Has(path) => {
            out.push_str("has(");
            push_path(path, out);
            out.push(')');
        }
        Kind::Not(inner) => {
            out.push('!');
            write(inner, Level::Unary, out);
        }
        Kind::Negate(inner) => {
            out.push('-');
            // A literal would take the minus in, and the smallest int could not be read back.
            let wanted = if matches!(inner.kind, Kind::Int(_) | Kind::Double(_)) {
                Level::Member
            } else {
                Level::Unary
            };
            write(inner, wanted, out);
        }
        Kind::And(parts) => push_joined(parts, " && ", Level::Relation, out),
        Kind::Or(parts) => push_joined(parts, " || ", Level::And, out),
        Kind::Compare(comparison, pair) => push_pair(pair, comparison.as_str(), out),
        Kind::In(pair) => push_pair(pair, "in", out),
        Kind::Chain(first, rest) => push_chain(node, first, rest, out),
        Kind::Choose(cases, last) => {
            for (condition, chosen) in cases {
                write(condition, Level::Or, out);
                out.push_str(" ? ");
                write(chosen, Level::Or, out);
                out.push_str(" : ");
            }
            write(last, Level::Or, out);
        }
        Kind::Call(function, arguments) => push_call(*function, arguments, out),
        Kind::Matches(pair, _) => {
            write(&pair[0], Level::Member, out);
            out.push_str(".matches(");
            write(&pair[1], Level::Choice, out);
            out.push(')');
        }
        Kind::Bind(name, pair) => {
            out.push_str("cel.bind(");
            out.push_str(name);
            for part in pair.iter() {
                out.push_str(", ");
                write(part, Level::Choice, out);
            }
            out.push(')');
        }
        Kind::Comprehend(comprehension) => push_comprehension(comprehension, out),
        Kind::Invoke(definition, arguments) => {
            out.push_str(&definition.name);
            if !definition.parameters.is_empty() {
                out.push('(');
                push_joined(arguments, ", ", Level::Choice, out);
                out.push(')');
            }
        }
        Kind::List(items, _) => {
            out.push('[');
            push_joined(items, ", ", Level::Choice, out);
            out.push(']');
        }
        Kind::Map(entries, _) => {
            out.push('{');
            for (index, (key, value)) in entries.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                write(key, Level::Choice, out);
                out.push_str(": ");
                write(value, Level::Choice, out);
            }
            out.push('}');
        }
        Kind::Unknown => out.push('?'),
    }
}

fn push_joined(parts: &[Node], between: &str, wanted: Level, out: &mut String) {
    for (index, part) in parts.iter().enumerate() {
        out.push_str(if index > 0 { between } else { "" });
        write(part, wanted, out);
    }
}

fn push_pair(pair: &[Node; 2], symbol: &str, out: &mut String) {
    write(&pair[0], Level::Relation, out);
    out.push(' ');
    out.push_str(symbol);
    out.push(' ');
    write(&pair[1], Level::Sum, out);
}

fn push_chain(node: &Node, first: &Node, rest: &[(Operator, Node)], out: &mut String) {
    let own = level(node);
    let tighter = if own == Level::Sum { Level::Product } else { Level::Unary };
    write(first, own, out);
    for (operator, operand) in rest {
        out.push(' ');
        out.push_str(operator.as_str());
        out.push(' ');
        write(operand, tighter, out);
    }
}

fn push_comprehension(comprehension: &Comprehension, out: &mut String) {
    let Comprehension { kind, variables, range, filter, body } = comprehension;
    write(range, Level::Member, out);
    out.push('.');
    out.push_str(kind.name(variables.len()));
    out.push('(');
    for variable in variables {
        out.push_str(variable);
        out.push_str(", ");
    }
    if let Some(filter) = filter {
        write(filter, Level::Choice, out);
        out.push_str(", ");
    }
    write(body, Level::Choice, out);
    out.push(')');
}

fn push_call(function: Function, arguments: &[Node], out: &mut String) {
    let mut arguments = arguments;
    if function.prints_as_method() {
        write(&arguments[0], Level::Member, out);
        out.push('.');
        arguments = &arguments[1..];
    }
    out.push_str(function.name());
    out.push('(');
    push_joined(arguments, ", ", Level::Choice, out);
    out.push(')');
}

fn push_path(path: &Path, out: &mut String) {
    match &path.base {
        Base::State => out.push_str("state"),
        Base::Counters => out.push_str("state.counters"),
        Base::Commitments => out.push_str("state.commitments"),
        Base::Root(name) | Base::Local(_, name) => out.push_str(name),
        Base::Node(node) => write(node, Level::Member, out),
    }
    for step in &path.steps {
        match &step.kind {
            StepKind::Key(key) => push_name(&key.name, out),
            StepKind::Index(at) => {
                out.push('[');
                out.push_str(&at.to_string());
                out.push(']');
            }
            StepKind::Computed(node) => {
                out.push('[');
                write(node, Level::Choice, out);
                out.push(']');
            }
        }
    }
}

/// Writes a double as a literal.
pub(super) fn double(value: f64) -> String {
    let mut text = String::new();
    push_double(value, &mut text);
    text
}

fn push_double(value: f64, out: &mut String) {
    let text = Number::from_f64(value).map(|number| number.to_string()).unwrap_or_default();
    out.push_str(&text);
    if !text.contains(['.', 'e']) {
        out.push_str(".0");
    }
}

/// Writes a string with the escapes that both CEL and JSON know.
fn push_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' || c == '\x7f' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}
