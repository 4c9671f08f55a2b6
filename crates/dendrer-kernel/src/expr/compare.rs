//! Compares two values: equal, not equal, or in an order.
//!
//! Nearly all conditions compare a field with a literal, and that has a short way of its own, without intermediate values.
//!
//! Rule: both ways give the same answer for the same price. The short way leaves what it cannot answer to the other,
//! unpaid.

use dendrer_object::number::SAFE_INTEGER_MAX;
use dendrer_object::{Value, marker};

use super::ast::{Base, Comparison, Kind, Node, Path};
use super::error::EvalError;
use super::eval::{Machine, REDACTED, blamed, compared_redacted, looked_through, named, price, wrong};
use super::met::{beside_time, no_time, path_of};
use super::number;
use super::time::may_be_moment;
use super::view::{Val, View};

impl<'a> Machine<'a, '_> {
    pub(super) fn compare(&mut self, comparison: Comparison, pair: &'a [Node; 2]) -> Result<bool, EvalError> {
        match self.compare_field(comparison, pair) {
            Some(found) => Ok(found),
            None => self.compare_any(comparison, pair),
        }
    }

    /// Compares a field with a number, a text, null or a truth of the text, as nearly all comparisons do,
    /// without a detour over values. The price is that of [`Machine::compare_any`], paid at once. `None`, with nothing paid
    /// and nothing noted, for whatever has more to it: every error, and a budget that runs out, included.
    ///
    /// Each step asks about one or two forms and no more: a jump by table costs more than all the rest.
    fn compare_field(&mut self, comparison: Comparison, pair: &'a [Node; 2]) -> Option<bool> {
        let Kind::Path(path) = &pair[0].kind else { return None };
        if pair[0].is_moment
            || self.budget.is_watched()
            || (self.is_incomplete && matches!(path.base, Base::State | Base::Counters))
        {
            return None;
        }
        let field = named(self.base_of(path)?, path)?;
        let nodes = 2 + path.steps.len() as u64;
        if comparison.is_equality()
            && let Kind::Literal(other @ (Value::Null | Value::Bool(_))) = &pair[1].kind
        {
            // A tagged value may have no equality, so objects take the slow path.
            let equal = (!matches!(field, Value::Object(_))).then_some(field == other)?;
            return self.budget.spend_at_once(nodes).then_some(equal == (comparison == Comparison::Equal));
        }
        if let Value::Number(number) = field {
            let order = number.as_f64()?.partial_cmp(&number_of(&pair[1])?)?;
            return self.budget.spend_at_once(nodes).then(|| comparison.accepts(order));
        }
        let (text, other) = (field.as_str()?, text_of(&pair[1])?);
        if self.knows_markers {
            return self.compare_texts(comparison, text, other, nodes);
        }
        if comparison.is_equality() && text.len() != other.len() {
            return self.budget.spend_at_once(nodes).then_some(comparison == Comparison::NotEqual);
        }
        if !comparison.is_equality() && may_be_moment(text) {
            return None;
        }
        let bytes = price(text.len().min(other.len()));
        self.budget.spend_at_once(nodes + bytes).then(|| comparison.accepts(text.cmp(other)))
    }

    /// As [`Machine::compare_field`], of texts in which a marker may stand.
    fn compare_texts(&mut self, comparison: Comparison, text: &str, other: &str, nodes: u64) -> Option<bool> {
        let is_equality = comparison.is_equality();
        let bytes = match is_equality {
            true => looked_through(text, other),
            false => Some(text.len().max(other.len())),
        };
        let Some(bytes) = bytes else {
            return self.budget.spend_at_once(nodes).then_some(comparison == Comparison::NotEqual);
        };
        let is_marked = || marker::has_marker(text) || marker::has_marker(other);
        if (!is_equality && may_be_moment(text)) || is_marked() {
            return None;
        }
        self.budget.spend_at_once(nodes + price(bytes)).then(|| comparison.accepts(text.cmp(other)))
    }

    /// Returns the value that a path begins at; `None` for a root and if it has to be computed.
    fn base_of(&self, path: &Path) -> Option<&'a Value> {
        match &path.base {
            Base::State => Some(self.env.state),
            Base::Counters => self.env.counters,
            Base::Commitments => self.env.commitments(),
            Base::Local(slot, _) => match &self.locals[self.frame + slot] {
                Val::Ref(value) => Some(value),
                _ => None,
            },
            Base::Root(_) | Base::Node(_) => None,
        }
    }

    #[inline(never)]
    fn compare_any(&mut self, comparison: Comparison, pair: &'a [Node; 2]) -> Result<bool, EvalError> {
        let (mut left, mut right) = match comparison.is_equality() {
            true => (self.operand(&pair[0])?, self.operand(&pair[1])?),
            false => (self.eval(&pair[0])?, self.eval(&pair[1])?),
        };
        if left.is_dated() || right.is_dated() {
            let nodes = [&pair[0], &pair[1]];
            [left, right] = self.moments([left, right], nodes, !comparison.is_equality())?;
        }
        if let (Some(a), Some(b)) = (left.as_double(), right.as_double())
            && let Some(order) = a.partial_cmp(&b)
        {
            return Ok(comparison.accepts(order));
        }
        let (left, right) = (left.view(), right.view());
        if let (View::Num(a), View::Num(b)) = (&left, &right) {
            self.pay_number(a)?;
            self.pay_number(b)?;
        }
        if comparison.is_equality() {
            let span = pair[0].span.to(pair[1].span);
            let found = self.equal(&left, &right, span);
            let found = found.map_err(|error| redacted_at([(&left, &pair[0]), (&right, &pair[1])], error))?;
            return Ok(found == (comparison == Comparison::Equal));
        }
        let order = match (&left, &right) {
            (View::Num(a), View::Num(b)) => number::compare(a, b),
            (View::Bool(a), View::Bool(b)) => a.cmp(b),
            (View::Text(a), View::Text(b)) => {
                let bytes = if self.knows_markers { a.len().max(b.len()) } else { a.len().min(b.len()) };
                self.budget.spend(price(bytes))?;
                if self.knows_markers && (marker::has_marker(a) || marker::has_marker(b)) {
                    return Err(compared_redacted(pair[0].span.to(pair[1].span)));
                }
                self.one_spelling(&mut None, [*a, *b], &[&pair[0], &pair[1]])?;
                a.cmp(b)
            }
            (View::Time(a), View::Time(b)) => match a.compare(*b) {
                Some(order) => order,
                None => return Err(wrong_order(comparison, pair, &left, &right)),
            },
            _ => return Err(wrong_order(comparison, pair, &left, &right)),
        };
        Ok(comparison.accepts(order))
    }
}

/// Names the place of an operand that is redacted as a whole in the error of a comparison.
fn redacted_at(operands: [(&View<'_>, &Node); 2], error: EvalError) -> EvalError {
    let EvalError::Uncertain(mut why) = error else { return error };
    let is_redacted = |view: &View<'_>| matches!(view, View::Tagged(_, REDACTED));
    let place = operands.into_iter().find(|(view, _)| is_redacted(view)).and_then(|(_, node)| path_of(node));
    if let (Some(place), None) = (place, &why.path) {
        why.message = format!("{place} is redacted");
        why.path = Some(place);
    }
    EvalError::Uncertain(why)
}

/// Returns the double that a literal number is exactly.
fn number_of(node: &Node) -> Option<f64> {
    match &node.kind {
        Kind::Double(value) => Some(*value),
        Kind::Int(value) if value.unsigned_abs() <= SAFE_INTEGER_MAX => Some(*value as f64),
        Kind::Constant(_, value) => value.as_f64(),
        _ => None,
    }
}

/// Returns the text that a literal is.
fn text_of(node: &Node) -> Option<&str> {
    match &node.kind {
        Kind::Literal(value) | Kind::Constant(_, value) => value.as_str(),
        _ => None,
    }
}

fn wrong_order(comparison: Comparison, pair: &[Node; 2], left: &View<'_>, right: &View<'_>) -> EvalError {
    let symbol = comparison.as_str();
    let views = [left, right];
    let is_ordered =
        |view: &&View<'_>| matches!(view, View::Num(_) | View::Text(_) | View::Bool(_) | View::Time(_));
    if let Some(at) = views.iter().position(|view| !is_ordered(view)) {
        return wrong(&pair[at], views[at], symbol, "numbers, strings or booleans");
    }
    if let Some(at) = beside_time(views) {
        return no_time(&pair[at], views[at], symbol);
    }
    let at = blamed([&pair[0], &pair[1]]);
    let wanted = match views[1 - at] {
        View::Num(_) => "a number beside a number",
        View::Text(_) => "a string beside a string",
        View::Time(_) => "a timestamp beside a timestamp and a duration beside a duration",
        _ => "a boolean beside a boolean",
    };
    wrong(&pair[at], views[at], symbol, wanted)
}
