//! Evaluates a checked tree over values that stay where they are.
//!
//! Never copies what it reads: a path gives a reference into the state, and a comprehension walks a list in place.
//!
//! Rule: every step is paid for before it is taken, by a price that the text and the *content* of the values fix. Memory that
//! two values share must not change the price, or a replay could run out where the recording did not.
//!
//! Values that are made here may share their parts, so that a few steps can stand for a tree of any size. So
//! whatever walks a whole value pays for every member it meets, and no value is made that is nested deeper above
//! the data than [`MADE_DEPTH_MAX`].

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_object::marker;
use dendrer_object::{Digest, Object, Pointer, Value, tag};

use super::ast::{Base, Definition, Kind, Node, Path, Step, StepKind};
use super::error::{EvalError, Span, Uncertain, shown};
use super::met::{
    beside_time, no_time, path_of, time_fault, trouble, two_spellings, uncertain, uncertain_for,
};
use super::number::{self, Num, Operator, Trouble};
use super::pattern::Pattern;
use super::time::{Spelling, Time, TimeFault, may_be_moment};
use super::view::{Val, View, dated_value, is_withheld, tag_of, with_texts};
use super::{Budget, Env, names, print};
use crate::counters;
use crate::names::COUNTERS;
use crate::sealed;
use crate::unknown;

/// Cost in steps of a new string, list or map, without its content.
pub(super) const MADE: u64 = 8;

/// Cost in steps of entering a list or a map of a value that is walked as a whole.
pub(super) const ENTERED: u64 = 8;

/// How many levels of lists and maps may be made around data.
const MADE_DEPTH_MAX: u8 = 64;

/// How deep a value may be nested that is handed out, as everywhere else (design, section 3).
const RESULT_DEPTH_MAX: usize = 128;

/// Evaluates one tree once.
pub(super) struct Machine<'a, 'b> {
    pub(super) env: Env<'a>,
    pub(super) budget: &'b mut Budget,
    /// The variables of the text, and before them those of its caller.
    pub(super) locals: Vec<Val<'a>>,
    /// Index of the first variable of the text.
    pub(super) frame: usize,
    /// Whether the state, or a state beside it, has unknown places, or a counter is unknown.
    pub(super) is_incomplete: bool,
    /// Whether redacted values are compared by their tags.
    pub(super) knows_markers: bool,
}

/// Counts the level that is made around values.
pub(super) fn one_more(levels: impl Iterator<Item = u8>, span: Span) -> Result<u8, EvalError> {
    let levels = levels.max().unwrap_or(0);
    if levels >= MADE_DEPTH_MAX {
        let message = format!("the value is nested deeper than {MADE_DEPTH_MAX} levels around data");
        return Err(uncertain_for(sealed::DEEP, span, None, message, None));
    }
    Ok(levels + 1)
}

/// The name under which a stored name is known: a doubled `$` in front is one.
pub(super) fn user_name(stored: &Arc<str>) -> Arc<str> {
    match tag::user_name(stored) {
        name if name.len() == stored.len() => Arc::clone(stored),
        name => name.into(),
    }
}

/// Returns the cost of bytes of text: one step for every 16.
pub(super) fn price(bytes: usize) -> u64 {
    bytes as u64 / 16
}

/// Returns the error for an operand that the operation does not take.
pub(super) fn wrong(node: &Node, found: &View<'_>, symbol: &str, wanted: &str) -> EvalError {
    let path = path_of(node);
    let what = path.as_deref().unwrap_or("this");
    let message = format!("{what} is {}, and `{symbol}` takes {wanted}", found.describe());
    let hint = match (found, &path) {
        (View::Null, Some(path)) => Some(format!("guard it: {path} != null && ...")),
        _ => None,
    };
    let met = if matches!(found, View::Null) { sealed::NULL } else { sealed::KIND };
    uncertain_for(met, node.span, path, message, hint)
}

/// The name of the tag of what replaces a secret.
pub(super) const REDACTED: &str = "$redacted";

/// Returns the error of a comparison that a redacted part leaves open.
pub(super) fn compared_redacted(span: Span) -> EvalError {
    let message = "a value that is compared is redacted".to_owned();
    uncertain_for(sealed::WITHHELD, span, None, message, None)
}

/// How many bytes two texts have to be looked through for to compare them; none where their ends show that they differ,
/// whatever a marker between them replaces.
pub(super) fn looked_through(a: &str, b: &str) -> Option<usize> {
    if a.len() == b.len() {
        return Some(a.len());
    }
    let differ = |a: Option<&u8>, b: Option<&u8>, open: u8| match (a, b) {
        (Some(a), Some(b)) => a != b && *a != open && *b != open,
        _ => false,
    };
    let (x, y) = (a.as_bytes(), b.as_bytes());
    let is_other = differ(x.first(), y.first(), b'<') || differ(x.last(), y.last(), b'>');
    if is_other { None } else { Some(x.len().max(y.len())) }
}

/// Refuses a value that was not recorded.
fn known(found: &Val<'_>, path: &Path, span: Span) -> Result<(), EvalError> {
    let Some(tag) = tag_at(found).filter(|tag| is_withheld(tag)) else { return Ok(()) };
    let (Val::Ref(Value::Object(object)) | Val::Made(Value::Object(object), _)) = found else {
        return Ok(());
    };
    let text = place(path, path.steps.len(), &[]);
    let message = format!("{text} is {}", View::Tagged(object, tag).describe());
    Err(uncertain_for(sealed::WITHHELD, span, Some(text), message, None))
}

/// The name of the tag of a value that is a tagged form.
fn tag_at(found: &Val<'_>) -> Option<&'static str> {
    match found {
        Val::Ref(Value::Object(object)) | Val::Made(Value::Object(object), _) => tag_of(object),
        _ => None,
    }
}

impl<'a, 'b> Machine<'a, 'b> {
    pub(super) fn new(env: &Env<'a>, budget: &'b mut Budget) -> Machine<'a, 'b> {
        let states = env.others.iter().filter(|(name, _)| is_state_root(name)).map(|(_, state)| *state);
        let is_incomplete = std::iter::once(env.state).chain(states).any(unknown::is_incomplete)
            || env.counters.is_some_and(|counters| counters::unknown_since(counters, None, None).is_some());
        Machine { env: *env, budget, locals: Vec::new(), frame: 0, is_incomplete, knows_markers: true }
    }

    pub(super) fn eval(&mut self, node: &'a Node) -> Result<Val<'a>, EvalError> {
        if let Kind::Path(path) = &node.kind {
            let found = self.path(path, node.span)?;
            return Ok(if node.is_moment { self.dated(found) } else { found });
        }
        if let Some(found) = self.decide(node) {
            return found.map(Val::Bool);
        }
        self.budget.spend(1)?;
        Ok(match &node.kind {
            Kind::Literal(value) | Kind::Constant(_, value) => Val::Ref(value),
            Kind::Int(value) => Val::Num(Num::Int(*value)),
            Kind::Double(value) => Val::Num(Num::Double(*value)),
            Kind::Path(path) => self.path(path, node.span)?,
            Kind::Negate(inner) => self.negate(inner)?,
            Kind::Chain(first, rest) => self.chain(first, rest)?,
            Kind::Choose(cases, last) => return self.choose(cases, last),
            Kind::Call(function, arguments) => self.call(*function, arguments)?,
            Kind::Invoke(definition, arguments) => self.invoke(definition, arguments, node.span)?,
            Kind::List(_, Some(whole)) | Kind::Map(_, Some(whole)) => Val::Ref(whole),
            Kind::List(items, None) => {
                self.budget.spend(MADE)?;
                let items = items.iter().map(|item| self.eval(item)).collect::<Result<Vec<_>, _>>()?;
                let levels = one_more(items.iter().map(Val::levels), node.span)?;
                Val::Made(Value::array(items.into_iter().map(Val::into_value)), levels)
            }
            Kind::Matches(pair, pattern) => self.matches(pair, pattern)?,
            Kind::Bind(_, pair) => self.bind(pair)?,
            Kind::Comprehend(comprehension) => return self.comprehend(comprehension, node.span),
            Kind::Map(entries, None) => self.map(entries, node.span)?,
            Kind::Unknown => unreachable!("a text with an error is never evaluated"),
            Kind::Has(_) | Kind::Not(_) | Kind::And(_) | Kind::Or(_) | Kind::Compare(..) | Kind::In(_) => {
                unreachable!("decided just above")
            }
        })
    }

    /// Evaluates a node that can only be true or false, without a detour over values; `None` for any other.
    fn decide(&mut self, node: &'a Node) -> Option<Result<bool, EvalError>> {
        let decided = match &node.kind {
            Kind::Has(path) => self.budget.spend(1).and_then(|()| self.has(path, node.span)),
            Kind::Not(inner) => {
                self.budget.spend(1).and_then(|()| self.truth(inner, "!")).map(|found| !found)
            }
            Kind::And(parts) => self.budget.spend(1).and_then(|()| self.all_equal(parts, true)),
            Kind::Or(parts) => {
                self.budget.spend(1).and_then(|()| self.all_equal(parts, false)).map(|found| !found)
            }
            Kind::Compare(comparison, pair) => {
                self.budget.spend(1).and_then(|()| self.compare(*comparison, pair))
            }
            Kind::In(pair) => self.budget.spend(1).and_then(|()| self.contains(pair)),
            _ => return None,
        };
        Some(decided)
    }

    /// Evaluates a whole text as a condition.
    pub(super) fn condition(&mut self, node: &'a Node) -> Result<bool, EvalError> {
        if let Some(found) = self.decide(node) {
            return found;
        }
        let value = self.eval(node)?;
        value.as_bool().ok_or_else(|| {
            let path = path_of(node);
            let message = format!("the condition gives {}, not true or false", value.view().describe());
            uncertain_for(sealed::KIND, node.span, path, message, None)
        })
    }

    /// Evaluates an operand that is true or false.
    pub(super) fn truth(&mut self, node: &'a Node, symbol: &str) -> Result<bool, EvalError> {
        // Asked first and by itself, since nearly all operands compare.
        if let Kind::Compare(comparison, pair) = &node.kind {
            self.budget.spend(1)?;
            return self.compare(*comparison, pair);
        }
        self.truth_of_any(node, symbol)
    }

    #[inline(never)]
    fn truth_of_any(&mut self, node: &'a Node, symbol: &str) -> Result<bool, EvalError> {
        if let Some(found) = self.decide(node) {
            return found;
        }
        let value = self.eval(node)?;
        value.as_bool().ok_or_else(|| wrong(node, &value.view(), symbol, "a boolean"))
    }

    /// Tells whether all parts are `wanted`. One that is not settles it, whatever errors stand beside it; else
    /// the first error is the answer. A budget that ran out is nobody's to absorb.
    fn all_equal(&mut self, parts: &'a [Node], wanted: bool) -> Result<bool, EvalError> {
        let symbol = if wanted { "&&" } else { "||" };
        let mut first_error = None;
        for part in parts {
            match self.truth(part, symbol) {
                Ok(found) if found != wanted => return Ok(false),
                Ok(_) => {}
                Err(error) => self.absorb(error, &mut first_error)?,
            }
        }
        first_error.map_or(Ok(true), Err)
    }

    /// Keeps the first of several errors that may come to nothing, or the first unknown place: its value may have decided.
    /// Each is paid for, since it had to be written.
    pub(super) fn absorb(
        &mut self,
        error: EvalError,
        first: &mut Option<EvalError>,
    ) -> Result<(), EvalError> {
        let EvalError::Uncertain(why) = &error else { return Err(error) };
        let texts = [why.path.as_deref(), Some(&*why.message), why.hint.as_deref()];
        self.budget.spend(8 + texts.iter().flatten().map(|text| price(2 * text.len())).sum::<u64>())?;
        let is_known =
            |error: &EvalError| matches!(error, EvalError::Uncertain(why) if why.unknown.is_none());
        if first.as_ref().is_none_or(|first| is_known(first) && !is_known(&error)) {
            *first = Some(error);
        }
        Ok(())
    }

    fn bind(&mut self, pair: &'a [Node; 2]) -> Result<Val<'a>, EvalError> {
        let value = self.eval(&pair[0])?;
        let outside = self.locals.len();
        self.locals.push(value);
        let result = self.eval(&pair[1]);
        self.locals.truncate(outside);
        result
    }

    /// Pays for the digits of an integer beyond 2^53-1, of which there may be any number.
    pub(super) fn pay_number(&mut self, num: &Num) -> Result<(), EvalError> {
        match num {
            Num::Data(number) if number.is_big() => self.budget.spend(price(number.to_string().len())),
            _ => Ok(()),
        }
    }

    fn matches(&mut self, pair: &'a [Node; 2], pattern: &Pattern) -> Result<Val<'a>, EvalError> {
        let text = self.eval(&pair[0])?;
        match text.view() {
            View::Text(text) => {
                self.budget.spend(pattern.price(text.len()))?;
                Ok(Val::Bool(pattern.is_match(text)))
            }
            other => Err(wrong(&pair[0], &other, "matches", "a string")),
        }
    }

    /// Evaluates a whole text to a value that can be handed out. Parts made on the way are paid for once more by their size,
    /// since they may be shared here and will not be where the value goes.
    pub(super) fn result(&mut self, node: &'a Node) -> Result<Value, EvalError> {
        let value = self.inner_result(node)?;
        Ok(if self.budget.has_times { with_texts(value) } else { value })
    }

    /// As [`Machine::result`], in the form that values have inside an evaluation: times and declared moments stay what they are.
    pub(super) fn inner_result(&mut self, node: &'a Node) -> Result<Value, EvalError> {
        let found = self.eval(node)?;
        let made = found.levels() > 0;
        let value = found.into_value();
        if made {
            self.pay_whole(&value, 0, node.span)?;
        }
        Ok(value)
    }

    fn pay_whole(&mut self, value: &Value, depth: usize, span: Span) -> Result<(), EvalError> {
        match value {
            Value::Array(_) | Value::Object(_) if depth == RESULT_DEPTH_MAX => {
                let message = format!("the value is nested deeper than {RESULT_DEPTH_MAX} levels");
                Err(uncertain_for(sealed::DEEP, span, None, message, None))
            }
            Value::Array(list) => {
                self.budget.spend(ENTERED + list.len() as u64)?;
                list.iter().try_for_each(|member| self.pay_whole(member, depth + 1, span))
            }
            Value::Object(map) => {
                self.budget.spend(ENTERED + 2 * map.len() as u64)?;
                map.entries().try_for_each(|entry| {
                    self.budget.spend(price(entry.key.len()))?;
                    self.pay_whole(&entry.value, depth + 1, span)
                })
            }
            Value::String(text) => self.budget.spend(price(text.len())),
            Value::Number(number) => self.pay_number(&Num::Data(number.clone())),
            _ => Ok(()),
        }
    }

    /// Marks a text that the pack declares a `datetime`.
    fn dated(&mut self, found: Val<'a>) -> Val<'a> {
        self.budget.has_times = true;
        match found {
            Val::Ref(text @ Value::String(_)) => Val::Dated(text),
            Val::Made(text @ Value::String(_), levels) => Val::Made(dated_value(&text), levels),
            other => other,
        }
    }

    /// Takes a text for the moment that it writes; any other value stays as it is.
    pub(super) fn moment(&mut self, value: Val<'a>, node: &Node) -> Result<Val<'a>, EvalError> {
        match value.view() {
            View::Text(text) => self.read_time(text, Time::timestamp, node),
            _ => Ok(value),
        }
    }

    /// Takes two operands for moments where one of them is declared so: both, or only beside a time.
    pub(super) fn moments(
        &mut self,
        [left, right]: [Val<'a>; 2],
        nodes: [&Node; 2],
        takes_texts: bool,
    ) -> Result<[Val<'a>; 2], EvalError> {
        let takes = |this: &Val<'a>, other: &Val<'a>| {
            let beside = takes_texts || matches!(other.view(), View::Time(_));
            (this.is_dated() && beside) || (other.is_dated() && takes_texts)
        };
        let (of_left, of_right) = (takes(&left, &right), takes(&right, &left));
        Ok([
            if of_left { self.moment(left, nodes[0])? } else { left },
            if of_right { self.moment(right, nodes[1])? } else { right },
        ])
    }

    /// Reads a time from a text.
    pub(super) fn read_time(
        &mut self,
        text: &str,
        read: fn(&str) -> Result<Time, TimeFault>,
        node: &Node,
    ) -> Result<Val<'a>, EvalError> {
        self.budget.spend(1 + price(text.len()))?;
        self.budget.has_times = true;
        read(text).map(Val::Time).map_err(|fault| time_fault(fault, node))
    }

    /// Looks whether texts that are ordered against each other, and against those before, have one spelling where they are
    /// moments. Else their order would not be that of the moments.
    pub(super) fn one_spelling<'t>(
        &mut self,
        before: &mut Option<Spelling<'t>>,
        texts: impl IntoIterator<Item = &'t str>,
        nodes: &[&Node],
    ) -> Result<(), EvalError> {
        for text in texts {
            if !may_be_moment(text) {
                continue;
            }
            self.budget.spend(price(text.len()))?;
            let Some(spelling) = Spelling::of(text) else { continue };
            match before {
                Some(before) if *before != spelling => return Err(two_spellings(nodes)),
                _ => *before = Some(spelling),
            }
        }
        Ok(())
    }

    fn choose(&mut self, cases: &'a [(Node, Node)], last: &'a Node) -> Result<Val<'a>, EvalError> {
        for (condition, chosen) in cases {
            if self.truth(condition, "? :")? {
                return self.eval(chosen);
            }
        }
        self.eval(last)
    }

    fn negate(&mut self, inner: &'a Node) -> Result<Val<'a>, EvalError> {
        let value = self.eval(inner)?;
        match value.view() {
            View::Num(num) => number::negate(&num).map(Val::Num).map_err(|why| trouble(why, &[inner])),
            other => Err(wrong(inner, &other, "-", "a number")),
        }
    }

    /// Compares whole values. Different types are different; what was withheld is neither.
    pub(super) fn equal(&mut self, left: &View<'_>, right: &View<'_>, span: Span) -> Result<bool, EvalError> {
        Ok(match (left, right) {
            (View::Tagged(object, REDACTED), other) | (other, View::Tagged(object, REDACTED))
                if self.knows_markers =>
            {
                return self.equal_marker(object, other, span);
            }
            (View::Tagged(_, name), _) | (_, View::Tagged(_, name)) if is_withheld(name) => {
                let what = if *name == "$gap" { "a gap in the record" } else { "redacted" };
                let message = format!("a value that is compared is {what}");
                return Err(uncertain_for(sealed::WITHHELD, span, None, message, None));
            }
            (View::Null, View::Null) => true,
            (View::Time(a), View::Time(b)) => a == b,
            (View::Time(_), View::Text(_)) | (View::Text(_), View::Time(_)) => {
                let message = "a time is compared with a text".to_owned();
                let hint = "write timestamp(text) or duration(text) for the text, or string(a) for the time";
                return Err(uncertain_for(sealed::TIME, span, None, message, Some(hint.to_owned())));
            }
            (View::Bool(a), View::Bool(b)) => a == b,
            (View::Num(a), View::Num(b)) => {
                self.pay_number(a)?;
                self.pay_number(b)?;
                number::compare(a, b) == Ordering::Equal
            }
            (View::Text(a), View::Text(b)) if self.knows_markers => return self.equal_texts(a, b, span),
            (View::Text(a), View::Text(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                self.budget.spend(price(a.len()))?;
                a == b
            }
            (View::List(a), View::List(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                self.budget.spend(a.len() as u64)?;
                return self.all_same(a.iter().zip(b.iter()), span);
            }
            (View::Map(a), View::Map(b)) | (View::Tagged(a, _), View::Tagged(b, _)) => {
                return self.equal_members(a, b, span);
            }
            _ => false,
        })
    }

    fn equal_members(&mut self, a: &Object, b: &Object, span: Span) -> Result<bool, EvalError> {
        if a.len() != b.len() {
            return Ok(false);
        }
        self.budget.spend(a.len() as u64)?;
        if a.iter().zip(b.iter()).any(|((name, _), (other, _))| name != other) {
            if !self.knows_markers {
                return Ok(false);
            }
            let (a, b) = (Value::Object(a.clone()), Value::Object(b.clone()));
            return marker::same(&a, &b).ok_or_else(|| compared_redacted(span));
        }
        self.all_same(a.iter().zip(b.iter()).map(|((_, x), (_, y))| (x, y)), span)
    }

    /// Whether the values of all pairs are equal. By the rules of before, the first pair that is open leaves it open; now one
    /// that differs decides.
    fn all_same<'v>(
        &mut self,
        pairs: impl Iterator<Item = (&'v Value, &'v Value)>,
        span: Span,
    ) -> Result<bool, EvalError> {
        let mut first_error = None;
        for (x, y) in pairs {
            match self.equal(&View::of(x), &View::of(y), span) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) if self.knows_markers => self.absorb(error, &mut first_error)?,
                Err(error) => return Err(error),
            }
        }
        first_error.map_or(Ok(true), Err)
    }

    /// Compares what replaces a secret with another value.
    fn equal_marker(&mut self, redacted: &Object, other: &View<'_>, span: Span) -> Result<bool, EvalError> {
        let redacted = Value::Object(redacted.clone());
        let found = match other {
            View::Text(text) => {
                self.budget.spend(price(text.len()))?;
                marker::same(&redacted, &Value::from(*text))
            }
            View::Tagged(object, _) => marker::same(&redacted, &Value::Object((*object).clone())),
            View::Num(_) => None,
            View::Null | View::Bool(_) | View::List(_) | View::Map(_) | View::Time(_) => Some(false),
        };
        found.ok_or_else(|| compared_redacted(span))
    }

    /// Compares two texts, of which each may have a marker in it.
    fn equal_texts(&mut self, a: &str, b: &str, span: Span) -> Result<bool, EvalError> {
        let Some(bytes) = looked_through(a, b) else { return Ok(false) };
        self.budget.spend(price(bytes))?;
        marker::same_text(a, b).ok_or_else(|| compared_redacted(span))
    }

    fn contains(&mut self, pair: &'a [Node; 2]) -> Result<bool, EvalError> {
        let item = self.operand(&pair[0])?;
        let container = match (&pair[1].kind, item.view()) {
            // Of a map only whether this member is there is looked at, so only the member has to be known.
            (Kind::Path(path), View::Text(name)) => {
                let name = stored(name).into_owned();
                self.path_with(path, pair[1].span, Some(&name))?
            }
            _ => self.eval(&pair[1])?,
        };
        let span = pair[0].span.to(pair[1].span);
        match (item.view(), container.view()) {
            (item, View::List(list)) => {
                let mut first_error = None;
                for member in list.iter() {
                    self.budget.spend(1)?;
                    match self.equal(&item, &View::of(member), span) {
                        Ok(true) => return Ok(true),
                        Ok(false) => {}
                        Err(error) => self.absorb(error, &mut first_error)?,
                    }
                }
                first_error.map_or(Ok(false), Err)
            }
            (View::Text("counters"), View::Map(_)) if is_whole_state(&pair[1]) => {
                Ok(self.env.counters.is_some())
            }
            (View::Text(name), View::Map(map)) => {
                self.budget.spend(price(name.len()))?;
                if let Kind::Path(path) = &pair[1].kind
                    && is_of_state(path)
                {
                    // Only whether this one is there was looked at, not the map.
                    self.budget.look_below(&stored(name));
                }
                match map.contains_key(&stored(name)) {
                    false if self.knows_markers => self.lacks_name(map, name, span),
                    found => Ok(found),
                }
            }
            (View::Tagged(_, REDACTED), View::Map(map)) if !map.is_empty() => Err(compared_redacted(span)),
            (_, View::Map(_)) => Ok(false),
            (_, other) => Err(wrong(&pair[1], &other, "in", "a list or a map")),
        }
    }

    /// Whether a map lacks a name that it does not have in clear: one that was redacted may be it.
    fn lacks_name(&mut self, map: &Object, name: &str, span: Span) -> Result<bool, EvalError> {
        self.budget.spend(map.len() as u64)?;
        let is_open = |(known, _): (&Arc<str>, &Value)| marker::same_text(known, name) != Some(false);
        if map.iter().any(is_open) { Err(compared_redacted(span)) } else { Ok(false) }
    }

    fn chain(&mut self, first: &'a Node, rest: &'a [(Operator, Node)]) -> Result<Val<'a>, EvalError> {
        let mut left = self.eval(first)?;
        for (index, (operator, node)) in rest.iter().enumerate() {
            let mut right = self.eval(node)?;
            // The left side may be a sum by now; its last operand is of the same kind.
            let nodes = [index.checked_sub(1).map_or(first, |before| &rest[before].1), node];
            if left.is_dated() || right.is_dated() {
                // Text beside a text is joined, and has no difference.
                [left, right] = self.moments([left, right], nodes, *operator == Operator::Subtract)?;
            }
            left = match (left.view(), right.view()) {
                (View::Num(a), View::Num(b)) => {
                    number::combine(*operator, &a, &b).map(Val::Num).map_err(|why| {
                        let operands: Vec<&Node> = operands(first, &rest[..=index]).collect();
                        trouble(why, &operands)
                    })?
                }
                (View::Text(a), View::Text(b)) if *operator == Operator::Add => {
                    self.budget.spend(MADE + price(a.len() + b.len()))?;
                    Val::scalar([a, b].concat())
                }
                (View::List(a), View::List(b)) if *operator == Operator::Add => {
                    self.budget.spend(MADE + (a.len() + b.len()) as u64)?;
                    let levels = left.levels().max(right.levels());
                    Val::Made(Value::array(a.iter().chain(b.iter()).cloned()), levels)
                }
                (View::Time(a), View::Time(b)) => match a.combine(*operator, b) {
                    Some(sum) => Val::Time(sum.map_err(|fault| time_fault(fault, node))?),
                    None => return Err(wrong_operand(*operator, nodes, &View::Time(a), &View::Time(b))),
                },
                (a, b) => return Err(wrong_operand(*operator, nodes, &a, &b)),
            };
        }
        Ok(left)
    }

    /// Evaluates the arguments here and the definition where it sees nothing but them.
    fn invoke(
        &mut self,
        definition: &'a Definition,
        arguments: &'a [Node],
        span: Span,
    ) -> Result<Val<'a>, EvalError> {
        self.budget.spend(2)?;
        let arguments =
            arguments.iter().map(|node| self.eval(node)).collect::<Result<Vec<Val<'a>>, EvalError>>()?;
        let outer = self.frame;
        self.frame = self.locals.len();
        self.locals.extend(arguments);
        let result = self.eval(&definition.tree);
        self.locals.truncate(self.frame);
        self.frame = outer;
        result.map_err(|error| match error {
            // A span of the definition means nothing in this text.
            EvalError::Uncertain(mut why) => {
                why.span = span;
                why.message.push_str(&format!(", in `{}`", definition.name));
                EvalError::Uncertain(why)
            }
            exhausted => exhausted,
        })
    }

    fn map(&mut self, entries: &'a [(Node, Node)], span: Span) -> Result<Val<'a>, EvalError> {
        self.budget.spend(MADE)?;
        let mut pairs = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let name = self.eval(key)?;
            let View::Text(name) = name.view() else {
                return Err(wrong(key, &name.view(), "{}", "a string as a key"));
            };
            self.budget.spend(4 + price(name.len()))?;
            pairs.push((tag::stored_name(name), self.eval(value)?));
        }
        self.made_map(pairs, span)
    }

    /// Makes a map of stored names and values, in which no name is there twice.
    pub(super) fn made_map(
        &mut self,
        pairs: Vec<(Arc<str>, Val<'a>)>,
        span: Span,
    ) -> Result<Val<'a>, EvalError> {
        let levels = one_more(pairs.iter().map(|(_, value)| value.levels()), span)?;
        let mut seen = BTreeSet::new();
        if let Some((name, _)) = pairs.iter().find(|(name, _)| !seen.insert(name)) {
            let message = format!("the key {:?} stands twice in one map", shown(&user_name(name)));
            return Err(uncertain(span, None, message, None));
        }
        let object: Object = pairs.into_iter().map(|(name, value)| (name, value.into_value())).collect();
        Ok(Val::Made(Value::Object(object), levels))
    }

    fn path(&mut self, path: &'a Path, span: Span) -> Result<Val<'a>, EvalError> {
        self.path_with(path, span, None)
    }

    /// Evaluates an operand of an equality: what was redacted is compared by its tag.
    pub(super) fn operand(&mut self, node: &'a Node) -> Result<Val<'a>, EvalError> {
        let Kind::Path(path) = &node.kind else { return self.eval(node) };
        let found = self.path_any(path, node.span, None)?;
        if !(self.knows_markers && tag_at(&found) == Some(REDACTED)) {
            known(&found, path, node.span)?;
        }
        Ok(if node.is_moment { self.dated(found) } else { found })
    }

    /// As [`Machine::path`]; with a name, only the member of that name has to be known of a value of the state.
    fn path_with(&mut self, path: &'a Path, span: Span, member: Option<&str>) -> Result<Val<'a>, EvalError> {
        let found = self.path_any(path, span, member)?;
        known(&found, path, span)?;
        Ok(found)
    }

    /// As [`Machine::path_with`], of a value that may not have been recorded.
    fn path_any(&mut self, path: &'a Path, span: Span, member: Option<&str>) -> Result<Val<'a>, EvalError> {
        self.budget.spend(1 + path.steps.len() as u64)?;
        let base = match &path.base {
            Base::Node(node) => self.eval(node)?,
            Base::Local(slot, _) => self.locals[self.frame + slot].clone(),
            _ => Val::Ref(self.root(path, span)?),
        };
        let found = match &base {
            Val::Ref(value) => Val::Ref(match named(value, path) {
                Some(found) => {
                    self.look(path, &[], span, member)?;
                    found
                }
                None => self.walk(value, path, span, member)?,
            }),
            Val::Made(value, levels) => Val::Made(self.walk(value, path, span, None)?.clone(), *levels),
            Val::Bool(_) | Val::Num(_) | Val::Time(_) | Val::Dated(_) if path.steps.is_empty() => base,
            Val::Bool(_) | Val::Num(_) | Val::Time(_) | Val::Dated(_) => {
                return Err(no_members(path, 0, &base.view()));
            }
        };
        Ok(found)
    }

    fn root(&self, path: &'a Path, span: Span) -> Result<&'a Value, EvalError> {
        let found = match &path.base {
            Base::State => Some(self.env.state),
            Base::Counters => self.env.counters,
            Base::Commitments => self.env.commitments(),
            Base::Root(name) => {
                self.env.others.iter().find(|(known, _)| **known == **name).map(|(_, value)| *value)
            }
            Base::Local(..) | Base::Node(_) => unreachable!("asked of names only"),
        };
        found.ok_or_else(|| {
            let name = place(path, 0, &[]);
            let message = format!("{name} is not given here");
            uncertain(span, Some(name), message, None)
        })
    }

    fn walk<'v>(
        &mut self,
        base: &'v Value,
        path: &'a Path,
        span: Span,
        member: Option<&str>,
    ) -> Result<&'v Value, EvalError>
    where
        'a: 'v,
    {
        let mut computed = Vec::new();
        let found = self.go_down(base, path, path.steps.len(), &mut computed, span);
        self.looked(found, path, &computed, span, member)
    }

    /// Notes what a path led to, unless an index of it has no value: then the path has none, whatever is there.
    fn looked<T>(
        &mut self,
        found: Result<T, (usize, EvalError)>,
        path: &Path,
        computed: &[Val<'a>],
        span: Span,
        member: Option<&str>,
    ) -> Result<T, EvalError> {
        let is_computed = |step: &&Step| matches!(step.kind, StepKind::Computed(_));
        match found {
            Err((at, error)) if path.steps[..=at].iter().filter(is_computed).count() > computed.len() => {
                Err(error)
            }
            found => {
                self.look(path, computed, span, member)?;
                found.map_err(|(_, error)| error)
            }
        }
    }

    /// Follows the first steps of a path. An error has the index of its step.
    fn go_down<'v>(
        &mut self,
        base: &'v Value,
        path: &'a Path,
        steps: usize,
        computed: &mut Vec<Val<'a>>,
        span: Span,
    ) -> Result<&'v Value, (usize, EvalError)>
    where
        'a: 'v,
    {
        let mut value = base;
        for index in 0..steps {
            value = match self.step(value, path, index, computed).map_err(|error| (index, error))? {
                Some(value) => value,
                None => return Err((index, missing(path, index, computed, span))),
            };
        }
        Ok(value)
    }

    /// Notes what a path of the state led to, or would have. A place after an index counts as its
    /// list: whatever is taken out of a list moves what follows.
    ///
    /// A place that is unknown has no value, whatever the state has there: not even that nothing is there is known.
    fn look(
        &mut self,
        path: &Path,
        computed: &[Val<'a>],
        span: Span,
        member: Option<&str>,
    ) -> Result<(), EvalError> {
        if is_of_state(path) {
            self.budget.look(|| place_of(path, computed));
        }
        if !self.is_incomplete {
            return Ok(());
        }
        let looked_at = place_of(path, computed);
        let names: Vec<_> = looked_at.tokens().map(|token| token.into_owned()).collect();
        let mut names = names.iter().map(String::as_str).chain(member);
        let looked_at = Pointer::of(names.clone());
        let counter = match &path.base {
            Base::Counters => Some((names.next(), names.next())),
            // `state["counters"]`, which the environment serves as well.
            Base::State if !path.steps.is_empty() => {
                (names.next() == Some(COUNTERS)).then(|| (names.next(), names.next()))
            }
            _ => None,
        };
        let unknown = match (&path.base, counter) {
            (_, Some((name, member))) => {
                let counters = self.env.counters;
                let since = counters.and_then(|counters| counters::unknown_since(counters, name, member));
                since.map(|since| (looked_at, since))
            }
            (Base::State, _) => unknown::meets(self.env.state, &looked_at),
            (Base::Root(name), _) if is_state_root(name) => {
                unknown::meets(self.root(path, span)?, &looked_at)
            }
            _ => return Ok(()),
        };
        match unknown {
            None => Ok(()),
            Some((unknown, since)) => {
                let text = place(path, path.steps.len(), computed);
                let message = format!("{text} is unknown: {}", since.words());
                let unknown = Some((unknown, since));
                let (path, met) = (Some(text), sealed::UNKNOWN);
                let why = Uncertain { path, met, message, hint: None, span, unknown };
                Err(EvalError::Uncertain(Box::new(why)))
            }
        }
    }

    fn has(&mut self, path: &'a Path, span: Span) -> Result<bool, EvalError> {
        self.budget.spend(path.steps.len() as u64)?;
        let Some(last) = path.steps.len().checked_sub(1) else {
            return Ok(self.env.counters.is_some());
        };
        let base = match &path.base {
            Base::Node(node) => self.eval(node)?,
            Base::Local(slot, _) => self.locals[self.frame + slot].clone(),
            _ => Val::Ref(self.root(path, span)?),
        };
        let value = match &base {
            Val::Ref(value) => *value,
            Val::Made(value, _) => value,
            Val::Bool(_) | Val::Num(_) | Val::Time(_) | Val::Dated(_) => {
                return Err(no_members(path, 0, &base.view()));
            }
        };
        let mut computed = Vec::new();
        let found = match self.go_down(value, path, last, &mut computed, span) {
            Ok(value) => self.step(value, path, last, &mut computed).map_err(|error| (last, error)),
            Err(error) => Err(error),
        };
        self.looked(found.map(|found| found.is_some()), path, &computed, span, None)
    }

    /// Goes one step down; `None` where there is no such member.
    fn step<'v>(
        &mut self,
        container: &'v Value,
        path: &'a Path,
        index: usize,
        computed: &mut Vec<Val<'a>>,
    ) -> Result<Option<&'v Value>, EvalError>
    where
        'a: 'v,
    {
        match (&path.steps[index].kind, container) {
            (StepKind::Key(key), Value::Object(object)) => {
                member(object, &key.stored, &key.digest, path, index)
            }
            (StepKind::Index(at), Value::Array(array)) => {
                Ok(usize::try_from(*at).ok().and_then(|at| array.get(at)))
            }
            (StepKind::Computed(node), _) => {
                computed.push(self.eval(node)?);
                let at = computed[computed.len() - 1].view();
                self.computed_step(container, path, index, at, node)
            }
            _ => Err(no_members(path, index, &View::of(container))),
        }
    }

    fn computed_step<'v>(
        &mut self,
        container: &'v Value,
        path: &'a Path,
        index: usize,
        at: View<'_>,
        node: &Node,
    ) -> Result<Option<&'v Value>, EvalError>
    where
        'a: 'v,
    {
        match (container, at) {
            (Value::Object(_), View::Text("counters")) if index == 0 && matches!(path.base, Base::State) => {
                Ok(self.env.counters)
            }
            (Value::Object(object), View::Text(name)) => {
                self.budget.spend(price(name.len()))?;
                let name = stored(name);
                member(object, &name, &Digest::of(name.as_bytes()), path, index)
            }
            (Value::Array(array), View::Num(num)) => {
                let at = number::exact_index(&num).ok_or_else(|| trouble(Trouble::Fraction, &[node]))?;
                Ok(usize::try_from(at).ok().and_then(|at| array.get(at)))
            }
            (Value::Object(_), other) => Err(wrong(node, &other, "[]", "a string here")),
            (Value::Array(_), other) => Err(wrong(node, &other, "[]", "an int here")),
            (other, _) => Err(no_members(path, index, &View::of(other))),
        }
    }
}

/// Returns the place that a path of the state leads to; one after an index is that of the list.
fn place_of(path: &Path, computed: &[Val<'_>]) -> Pointer {
    let mut computed = computed.iter();
    let names = path.steps.iter().map_while(|step| match &step.kind {
        StepKind::Key(key) => Some(key.stored.to_string()),
        StepKind::Index(_) => None,
        StepKind::Computed(_) => match computed.next()?.view() {
            View::Text(name) => Some(stored(name).into_owned()),
            _ => None,
        },
    });
    let names: Vec<String> = names.collect();
    Pointer::of(names.iter().map(String::as_str))
}

/// Whether a root is a state: that before the transition, and the two sides of an import.
fn is_state_root(name: &str) -> bool {
    matches!(name, "before" | "source" | "target")
}

/// Tells whether a path begins with the state, as it is or as it was before.
fn is_of_state(path: &Path) -> bool {
    matches!(path.base, Base::State) || matches!(&path.base, Base::Root(name) if **name == *"before")
}

/// Follows a path that has names alone and misses nothing, which nearly all do.
pub(super) fn named<'v>(base: &'v Value, path: &Path) -> Option<&'v Value> {
    path.steps.iter().try_fold(base, |value, step| match (&step.kind, value) {
        (StepKind::Key(key), Value::Object(object)) => object.get_hashed(&key.stored, &key.digest),
        _ => None,
    })
}

fn member<'v>(
    object: &'v Object,
    name: &str,
    digest: &Digest,
    path: &Path,
    index: usize,
) -> Result<Option<&'v Value>, EvalError> {
    match object.get_hashed(name, digest) {
        Some(value) => Ok(Some(value)),
        None => match tag_of(object) {
            None => Ok(None),
            Some(tag) => Err(no_members(path, index, &View::Tagged(object, tag))),
        },
    }
}

/// The name under which a name is stored: a `$` in front is doubled.
pub(super) fn stored(name: &str) -> Cow<'_, str> {
    if name.starts_with('$') { Cow::Owned(tag::stored_name(name).to_string()) } else { Cow::Borrowed(name) }
}

fn is_whole_state(node: &Node) -> bool {
    matches!(&node.kind, Kind::Path(Path { base: Base::State, steps }) if steps.is_empty())
}

/// Writes the first `count` steps of a path, with the values its computed steps had.
pub(super) fn place(path: &Path, count: usize, computed: &[Val<'_>]) -> String {
    let mut text = match &path.base {
        Base::State => "state".to_owned(),
        Base::Counters => "state.counters".to_owned(),
        Base::Commitments => "state.commitments".to_owned(),
        Base::Root(name) | Base::Local(_, name) => name.to_string(),
        Base::Node(node) => print::print(node),
    };
    let mut computed = computed.iter();
    for step in &path.steps[..count] {
        match &step.kind {
            StepKind::Key(key) => print::push_name(&key.name, &mut text),
            StepKind::Index(at) => text.push_str(&format!("[{at}]")),
            StepKind::Computed(node) => match computed.next().map(Val::view) {
                Some(View::Text(name)) => print::push_name(&shown(name), &mut text),
                Some(View::Num(num)) => text.push_str(&format!("[{}]", Val::Num(num).into_value())),
                _ => text.push_str(&format!("[{}]", print::print(node))),
            },
        }
    }
    text
}

fn missing(path: &Path, index: usize, computed: &[Val<'_>], span: Span) -> EvalError {
    let text = place(path, index + 1, computed);
    let container = place(path, index, computed);
    let hint = match (&path.base, &path.steps[index]) {
        (Base::State, Step { kind: StepKind::Key(key), .. }) if counters::NAMES.contains(&&*key.name) => {
            format!("did you mean state.counters.{}", key.name)
        }
        (Base::Counters, Step { kind: StepKind::Key(key), .. }) if index == 0 => {
            match names::nearest(&key.name, counters::NAMES.iter().copied()) {
                Some(near) => format!("did you mean state.counters.{near}"),
                None => format!("guard it: has({text}) && ..."),
            }
        }
        (_, Step { kind: StepKind::Key(_), .. }) => format!("guard it: has({text}) && ..."),
        (_, Step { kind: StepKind::Index(at), .. }) => format!("guard it: size({container}) > {at} && ..."),
        (_, Step { kind: StepKind::Computed(_), .. }) => "guard it with has(...) && ...".to_owned(),
    };
    let message = format!("{text} is missing");
    uncertain_for(sealed::MISSING, span.to(path.steps[index].span), Some(text), message, Some(hint))
}

fn no_members(path: &Path, index: usize, found: &View<'_>) -> EvalError {
    let text = place(path, index, &[]);
    let step = &path.steps[index];
    let wanted = match (&step.kind, found) {
        (StepKind::Key(_), View::List(_)) => ", whose members have numbers and no names",
        (StepKind::Index(_), View::Map(_)) => ", whose members have names and no numbers",
        _ => " and has no members",
    };
    let message = format!("{text} is {}{wanted}", found.describe());
    uncertain_for(sealed::KIND, step.span, Some(text), message, None)
}

fn operands<'n>(first: &'n Node, rest: &'n [(Operator, Node)]) -> impl Iterator<Item = &'n Node> {
    std::iter::once(first).chain(rest.iter().map(|(_, node)| node))
}

/// Of two operands that do not fit each other, picks the one to name in the error: the one that is no literal.
pub(super) fn blamed(nodes: [&Node; 2]) -> usize {
    let is_path = |node: &Node| matches!(node.kind, Kind::Path(_));
    usize::from(is_path(nodes[1]) || !is_path(nodes[0]))
}

fn wrong_operand(operator: Operator, nodes: [&Node; 2], left: &View<'_>, right: &View<'_>) -> EvalError {
    let views = [left, right];
    if operator.is_sum()
        && let Some(at) = beside_time(views)
    {
        return no_time(nodes[at], views[at], operator.as_str());
    }
    let misfit = views.iter().position(|view| match view {
        View::Num(_) => false,
        View::Text(_) | View::List(_) => operator != Operator::Add,
        _ => true,
    });
    let at = misfit.unwrap_or_else(|| blamed(nodes));
    let wanted = if operator == Operator::Add { "two numbers, strings or lists" } else { "numbers" };
    wrong(nodes[at], views[at], operator.as_str(), wanted)
}
