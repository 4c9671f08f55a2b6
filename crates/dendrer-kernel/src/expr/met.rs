//! What an expression met and could not judge, as an error with a place, a message and perhaps a hint.

use super::ast::{Kind, Node};
use super::error::{EvalError, Span, Uncertain};
use super::number::Trouble;
use super::print;
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
    uncertain_for(trouble.word(), span, path, trouble.message().to_owned(), trouble.hint().map(str::to_owned))
}
