//! A value that an expression met and could not judge, as an error with a place, a message and perhaps a hint.

use super::ast::{Kind, Node};
use super::error::{EvalError, Span, Uncertain};
use super::number::Trouble;
use super::print;
use super::time::TimeFault;
use super::view::View;
use crate::sealed;

pub(super) fn uncertain(
    span: Span,
    path: Option<String>,
    message: String,
    hint: Option<String>,
) -> EvalError {
    uncertain_for(sealed::VALUE, span, path, message, hint)
}

/// As [`uncertain`], with the word for what was met.
pub(super) fn uncertain_for(
    met: &'static str,
    span: Span,
    path: Option<String>,
    message: String,
    hint: Option<String>,
) -> EvalError {
    EvalError::Uncertain(Box::new(Uncertain { path, met, message, hint, span, unknown: None }))
}

/// Writes the path of a node that is one.
pub(super) fn path_of(node: &Node) -> Option<String> {
    matches!(node.kind, Kind::Path(_)).then(|| print::print(node))
}

pub(super) fn trouble(trouble: Trouble, operands: &[&Node]) -> EvalError {
    let span = operands[0].span.to(operands[operands.len() - 1].span);
    let path = operands.iter().find_map(|node| path_of(node));
    uncertain_for(trouble.word(), span, path, trouble.to_string(), trouble.hint().map(str::to_owned))
}

/// Says that a text, or a number, is no time.
pub(super) fn time_fault(fault: TimeFault, node: &Node) -> EvalError {
    let path = path_of(node);
    let message = match &path {
        Some(path) => format!("{path}: {fault}"),
        None => fault.to_string(),
    };
    uncertain_for(sealed::TIME, node.span, path, message, fault.hint().map(str::to_owned))
}

/// Says that two texts are moments in two spellings, so that the order of the texts is not that of the moments.
pub(super) fn two_spellings(nodes: &[&Node]) -> EvalError {
    let span = nodes[0].span.to(nodes[nodes.len() - 1].span);
    let path = nodes.iter().find_map(|node| path_of(node));
    let written = match nodes {
        [a, b] => format!("compare timestamp({}) with timestamp({})", print::print(a), print::print(b)),
        _ => "take timestamp(text) of each".to_owned(),
    };
    let message = format!(
        "times that differ in the offset or in the number of fraction digits are not ordered as texts: {written}"
    );
    uncertain_for(sealed::TIME, span, path, message, None)
}

/// Finds the operand beside a time that is another value.
pub(super) fn beside_time(views: [&View<'_>; 2]) -> Option<usize> {
    match views {
        [View::Time(_), View::Time(_)] => None,
        [View::Time(_), _] => Some(1),
        [_, View::Time(_)] => Some(0),
        _ => None,
    }
}

/// Returns the error for an operation that needs a time and got something else.
pub(super) fn no_time(node: &Node, found: &View<'_>, symbol: &str) -> EvalError {
    let path = path_of(node);
    let what = path.as_deref().unwrap_or("this");
    let message = format!("{what} is {}, and `{symbol}` takes a time beside a time", found.describe());
    let hint = format!("write timestamp({0}) or duration({0})", print::print(node));
    uncertain_for(sealed::TIME, node.span, path, message, Some(hint))
}
