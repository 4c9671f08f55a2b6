//! Expressions about the calls of a line: asked once, or once for each call.
//!
//! Rule: an expression that reads `t.action`, and not the list as a whole, is asked once for each call, so no call of a list
//! passes because another one was looked at; test `each_call_of_a_line_is_judged`.

use dendrer_object::Pointer;

use crate::calls::{ACTION, LIST};
use crate::expr::Expr;

/// How often expressions are asked about a line with several calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskedOf {
    /// Once: they read the list, or nothing of an action.
    Line,
    /// Once for each call, which then is `t.action`.
    EachCall,
}

impl AskedOf {
    /// Tells from the places of `t` that expressions read.
    pub(crate) fn of<'e>(exprs: impl IntoIterator<Item = &'e Expr>) -> AskedOf {
        let mut asked = AskedOf::Line;
        for place in exprs.into_iter().flat_map(|expr| expr.reads_of("t")) {
            if reads_list(place) {
                return AskedOf::Line;
            }
            if place.overlaps(&Pointer::of([ACTION])) {
                asked = AskedOf::EachCall;
            }
        }
        asked
    }
}

/// Whether a place of `t` is in a list of calls.
fn reads_list(place: &Pointer) -> bool {
    let mut tokens = place.tokens();
    match (tokens.next().as_deref(), tokens.next().as_deref()) {
        (Some(LIST), _) => true,
        (Some(ACTION), second) => second == Some(LIST),
        _ => false,
    }
}

/// Whether an expression reads `t.calls`.
pub(crate) fn reads_calls(expr: &Expr) -> bool {
    expr.reads_of("t").iter().any(|place| place.tokens().next().as_deref() == Some(LIST))
}
