//! Evaluates a checked tree over values that stay where they are.
//!
//! Never copies what it reads: a path gives a reference into the state, and only sums of strings and lists are
//! made anew. The invariant a newcomer would break: every step is paid for before it is taken, by a price that
//! the text and the *content* of the values fix. What two values share in memory must not change the price, or a
//! replay could run out where the recording did not.

use std::borrow::Cow;
use std::cmp::Ordering;

use dendrer_object::number::SAFE_INTEGER_MAX;
use dendrer_object::{Array, Digest, Object, Value, tag};

use super::ast::{Base, Comparison, Definition, Function, Kind, Node, Operator, Path, Step, StepKind};
use super::error::{EvalError, Span, Uncertain, shown};
use super::number::{self, Num, Trouble};
use super::{Budget, Env, names, print};
use crate::counters;

/// A value on the way.
#[derive(Clone)]
pub(super) enum Val<'a> {
    Ref(&'a Value),
    Owned(Value),
    Bool(bool),
    Num(Num),
}

/// A value as the operations see it.
enum View<'v> {
    Null,
    Bool(bool),
    Num(Num),
    Text(&'v str),
    List(&'v Array),
    Map(&'v Object),
    /// A tagged form: bytes, text that is not well-formed, a double that is not finite, what was withheld.
    Tagged(&'v Object, &'static str),
}

impl<'a> Val<'a> {
    pub(super) fn into_value(self) -> Value {
        match self {
            Val::Ref(value) => value.clone(),
            Val::Owned(value) => value,
            Val::Bool(value) => Value::Bool(value),
            Val::Num(Num::Int(value)) => Value::from(value),
            Val::Num(Num::Double(value)) => Value::from(value),
            Val::Num(Num::Data(number)) => Value::Number(number),
        }
    }

    fn view(&self) -> View<'_> {
        match self {
            Val::Ref(value) => View::of(value),
            Val::Owned(value) => View::of(value),
            Val::Bool(value) => View::Bool(*value),
            Val::Num(num) => View::Num(num.clone()),
        }
    }

    /// Returns the double that stands for a number exactly, if one does. Comparing these is comparing the numbers.
    fn as_double(&self) -> Option<f64> {
        match self {
            Val::Ref(Value::Number(number)) | Val::Num(Num::Data(number)) => number.as_f64(),
            Val::Num(Num::Double(value)) => Some(*value),
            Val::Num(Num::Int(value)) if value.unsigned_abs() <= SAFE_INTEGER_MAX => Some(*value as f64),
            _ => None,
        }
    }

    fn as_bool(&self) -> Option<bool> {
        match self {
            Val::Bool(value) | Val::Ref(Value::Bool(value)) | Val::Owned(Value::Bool(value)) => Some(*value),
            _ => None,
        }
    }
}

impl<'v> View<'v> {
    fn of(value: &'v Value) -> View<'v> {
        match value {
            Value::Null => View::Null,
            Value::Bool(value) => View::Bool(*value),
            Value::Number(number) => View::Num(Num::Data(number.clone())),
            Value::String(text) => View::Text(text),
            Value::Array(array) => View::List(array),
            Value::Object(object) => match tag_of(object) {
                None => View::Map(object),
                Some(name) => View::Tagged(object, name),
            },
        }
    }

    fn describe(&self) -> &'static str {
        match self {
            View::Null => "null",
            View::Bool(_) => "a boolean",
            View::Num(_) => "a number",
            View::Text(_) => "a string",
            View::List(_) => "a list",
            View::Map(_) => "a map",
            View::Tagged(_, "$float") => "a number that is not finite",
            View::Tagged(_, "$bytes") => "bytes",
            View::Tagged(_, "$wtf8") => "text that is not well-formed",
            View::Tagged(_, "$object") => "a map with a name that is not well-formed",
            View::Tagged(_, "$gap") => "a gap in the record",
            View::Tagged(..) => "redacted",
        }
    }
}

/// Names the tagged form an object is, if it is one.
fn tag_of(object: &Object) -> Option<&'static str> {
    if object.len() != 1 {
        return None;
    }
    let entry = object.entries().next()?;
    if !tag::is_tag_name(&entry.key) {
        return None;
    }
    let known = ["$float", "$bytes", "$wtf8", "$object", "$gap"];
    Some(known.into_iter().find(|name| **name == *entry.key).unwrap_or("$redacted"))
}

/// Tells whether the value was not recorded, so that nothing can be said of it.
fn is_withheld(tag: &str) -> bool {
    matches!(tag, "$gap" | "$redacted")
}

/// Evaluates one tree once.
pub(super) struct Machine<'a, 'b> {
    pub(super) env: Env<'a>,
    pub(super) budget: &'b mut Budget,
    /// The variables of the text, and before them those of whoever called it.
    locals: Vec<Val<'a>>,
    /// Where the variables of the text begin.
    frame: usize,
}

/// What bytes of text cost: one step for every 16.
fn price(bytes: usize) -> u64 {
    bytes as u64 / 16
}

fn uncertain(span: Span, path: Option<String>, message: String, hint: Option<String>) -> EvalError {
    EvalError::Uncertain(Box::new(Uncertain { path, message, hint, span }))
}

/// Writes the path of a node that is one.
fn path_of(node: &Node) -> Option<String> {
    matches!(node.kind, Kind::Path(_)).then(|| print::print(node))
}

/// Says that an operand is not what the operation takes.
fn wrong(node: &Node, found: &View<'_>, symbol: &str, wanted: &str) -> EvalError {
    let path = path_of(node);
    let what = path.as_deref().unwrap_or("this");
    let message = format!("{what} is {}, and `{symbol}` takes {wanted}", found.describe());
    let hint = match (found, &path) {
        (View::Null, Some(path)) => Some(format!("guard it: {path} != null && ...")),
        _ => None,
    };
    uncertain(node.span, path, message, hint)
}

fn trouble(trouble: Trouble, operands: &[&Node]) -> EvalError {
    let span = operands[0].span.to(operands[operands.len() - 1].span);
    let path = operands.iter().find_map(|node| path_of(node));
    uncertain(span, path, trouble.message().to_owned(), trouble.hint().map(str::to_owned))
}

impl<'a, 'b> Machine<'a, 'b> {
    pub(super) fn new(env: &Env<'a>, budget: &'b mut Budget) -> Machine<'a, 'b> {
        Machine { env: *env, budget, locals: Vec::new(), frame: 0 }
    }

    pub(super) fn eval(&mut self, node: &'a Node) -> Result<Val<'a>, EvalError> {
        if let Kind::Path(path) = &node.kind {
            return self.path(path, node.span);
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
            Kind::Invoke(definition, arguments) => self.invoke(definition, arguments)?,
            Kind::List(_, Some(whole)) | Kind::Map(_, Some(whole)) => Val::Ref(whole),
            Kind::List(items, None) => {
                let items: Result<Vec<Value>, EvalError> =
                    items.iter().map(|item| self.eval(item).map(Val::into_value)).collect();
                Val::Owned(Value::array(items?))
            }
            Kind::Map(entries, None) => self.map(entries)?,
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
        let value = self.eval(node)?;
        value.as_bool().ok_or_else(|| {
            let path = path_of(node);
            let message = format!("the condition gives {}, not true or false", value.view().describe());
            uncertain(node.span, path, message, None)
        })
    }

    /// Evaluates an operand that is true or false.
    fn truth(&mut self, node: &'a Node, symbol: &str) -> Result<bool, EvalError> {
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
                Err(EvalError::Exhausted) => return Err(EvalError::Exhausted),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        first_error.map_or(Ok(true), Err)
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

    fn compare(&mut self, comparison: Comparison, pair: &'a [Node; 2]) -> Result<bool, EvalError> {
        let (left, right) = (self.eval(&pair[0])?, self.eval(&pair[1])?);
        if let (Some(a), Some(b)) = (left.as_double(), right.as_double())
            && let Some(order) = a.partial_cmp(&b)
        {
            return Ok(comparison.accepts(order));
        }
        let (left, right) = (left.view(), right.view());
        if matches!(comparison, Comparison::Equal | Comparison::NotEqual) {
            let span = pair[0].span.to(pair[1].span);
            return Ok(self.equal(&left, &right, span)? == (comparison == Comparison::Equal));
        }
        let order = match (&left, &right) {
            (View::Num(a), View::Num(b)) => number::compare(a, b),
            (View::Bool(a), View::Bool(b)) => a.cmp(b),
            (View::Text(a), View::Text(b)) => {
                self.budget.spend(price(a.len().min(b.len())))?;
                a.cmp(b)
            }
            _ => return Err(wrong_order(comparison, pair, &left, &right)),
        };
        Ok(comparison.accepts(order))
    }

    /// Compares whole values. Different types are different; what was withheld is neither.
    fn equal(&mut self, left: &View<'_>, right: &View<'_>, span: Span) -> Result<bool, EvalError> {
        Ok(match (left, right) {
            (View::Tagged(_, name), _) | (_, View::Tagged(_, name)) if is_withheld(name) => {
                let what = if *name == "$gap" { "a gap in the record" } else { "redacted" };
                return Err(uncertain(span, None, format!("a value that is compared is {what}"), None));
            }
            (View::Null, View::Null) => true,
            (View::Bool(a), View::Bool(b)) => a == b,
            (View::Num(a), View::Num(b)) => number::compare(a, b) == Ordering::Equal,
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
                for (x, y) in a.iter().zip(b.iter()) {
                    if !self.equal(&View::of(x), &View::of(y), span)? {
                        return Ok(false);
                    }
                }
                true
            }
            (View::Tagged(a, "$float"), View::Tagged(b, "$float")) => {
                a == b && a.get("$float").and_then(Value::as_str) != Some("NaN")
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
        for ((name, x), (other, y)) in a.iter().zip(b.iter()) {
            if name != other || !self.equal(&View::of(x), &View::of(y), span)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn contains(&mut self, pair: &'a [Node; 2]) -> Result<bool, EvalError> {
        let (item, container) = (self.eval(&pair[0])?, self.eval(&pair[1])?);
        let span = pair[0].span.to(pair[1].span);
        match (item.view(), container.view()) {
            (item, View::List(list)) => {
                let mut first_error = None;
                for member in list.iter() {
                    self.budget.spend(1)?;
                    match self.equal(&item, &View::of(member), span) {
                        Ok(true) => return Ok(true),
                        Ok(false) => {}
                        Err(EvalError::Exhausted) => return Err(EvalError::Exhausted),
                        Err(error) => first_error = first_error.or(Some(error)),
                    }
                }
                first_error.map_or(Ok(false), Err)
            }
            (View::Text("counters"), View::Map(_)) if is_whole_state(&pair[1]) => {
                Ok(self.env.counters.is_some())
            }
            (View::Text(name), View::Map(map)) => {
                self.budget.spend(price(name.len()))?;
                Ok(map.contains_key(&stored(name)))
            }
            (_, View::Map(_)) => Ok(false),
            (_, other) => Err(wrong(&pair[1], &other, "in", "a list or a map")),
        }
    }

    fn chain(&mut self, first: &'a Node, rest: &'a [(Operator, Node)]) -> Result<Val<'a>, EvalError> {
        let mut left = self.eval(first)?;
        for (index, (operator, node)) in rest.iter().enumerate() {
            let right = self.eval(node)?;
            left = match (left.view(), right.view()) {
                (View::Num(a), View::Num(b)) => {
                    number::combine(*operator, &a, &b).map(Val::Num).map_err(|why| {
                        let operands: Vec<&Node> = operands(first, &rest[..=index]).collect();
                        trouble(why, &operands)
                    })?
                }
                (View::Text(a), View::Text(b)) if *operator == Operator::Add => {
                    self.budget.spend(price(a.len() + b.len()))?;
                    Val::Owned(Value::from([a, b].concat()))
                }
                (View::List(a), View::List(b)) if *operator == Operator::Add => {
                    self.budget.spend((a.len() + b.len()) as u64)?;
                    Val::Owned(Value::array(a.iter().chain(b.iter()).cloned()))
                }
                (a, b) => {
                    // What stands left may be a sum by now; its last operand is of the same kind.
                    let last = operands(first, &rest[..index]).last().unwrap_or(first);
                    return Err(wrong_operand(*operator, [last, node], &a, &b));
                }
            };
        }
        Ok(left)
    }

    /// Evaluates the arguments here and the definition where it sees nothing but them.
    fn invoke(&mut self, definition: &'a Definition, arguments: &'a [Node]) -> Result<Val<'a>, EvalError> {
        let arguments =
            arguments.iter().map(|node| self.eval(node)).collect::<Result<Vec<Val<'a>>, EvalError>>()?;
        let outer = self.frame;
        self.frame = self.locals.len();
        self.locals.extend(arguments);
        let result = self.eval(&definition.tree);
        self.locals.truncate(self.frame);
        self.frame = outer;
        result
    }

    fn call(&mut self, function: Function, arguments: &'a [Node]) -> Result<Val<'a>, EvalError> {
        let first = self.eval(&arguments[0])?;
        let second = arguments.get(1).map(|node| self.eval(node)).transpose()?;
        let view = first.view();
        match (function, &second) {
            (Function::Size, _) => {
                let size = match view {
                    View::Text(text) => {
                        self.budget.spend(price(text.len()))?;
                        text.chars().count()
                    }
                    View::List(list) => list.len(),
                    View::Map(map) => map.len(),
                    other => return Err(wrong(&arguments[0], &other, "size", "a string, a list or a map")),
                };
                Ok(Val::Num(Num::Int(size as i64)))
            }
            (Function::Double | Function::Int, _) => self.convert(function, view, &arguments[0]),
            (Function::Div, Some(second)) => match (view, second.view()) {
                (View::Num(a), View::Num(b)) => number::div(&a, &b)
                    .map(Val::Num)
                    .map_err(|why| trouble(why, &[&arguments[0], &arguments[1]])),
                (View::Num(_), other) => Err(wrong(&arguments[1], &other, "div", "numbers")),
                (other, _) => Err(wrong(&arguments[0], &other, "div", "numbers")),
            },
            (_, Some(second)) => match (view, second.view()) {
                (View::Text(text), View::Text(part)) => {
                    self.budget.spend(price(text.len() + part.len()))?;
                    Ok(Val::Bool(match function {
                        Function::StartsWith => text.starts_with(part),
                        Function::EndsWith => text.ends_with(part),
                        _ => text.contains(part),
                    }))
                }
                (View::Text(_), other) => Err(wrong(&arguments[1], &other, function.name(), "strings")),
                (other, _) => Err(wrong(&arguments[0], &other, function.name(), "strings")),
            },
            (_, None) => unreachable!("the parser counts arguments"),
        }
    }

    fn convert(&mut self, function: Function, view: View<'_>, node: &Node) -> Result<Val<'a>, EvalError> {
        let result = match view {
            View::Num(num) if function == Function::Double => number::to_double(&num).map(Num::Double),
            View::Num(num) => number::to_int(&num).map(Num::Int),
            View::Text(text) => {
                self.budget.spend(price(text.len()))?;
                let num = match function {
                    Function::Double => number::text_to_double(text).map(Num::Double),
                    _ => text.parse().ok().map(Num::Int),
                };
                return num.map(Val::Num).ok_or_else(|| {
                    let message = format!(
                        "the text is not that of {}",
                        if function == Function::Double { "a double" } else { "an int" }
                    );
                    uncertain(node.span, path_of(node), message, None)
                });
            }
            other => return Err(wrong(node, &other, function.name(), "a number or a string")),
        };
        result.map(Val::Num).map_err(|why| trouble(why, &[node]))
    }

    fn map(&mut self, entries: &'a [(Node, Node)]) -> Result<Val<'a>, EvalError> {
        let mut object = Object::default();
        for (key, value) in entries {
            let name = self.eval(key)?;
            let View::Text(name) = name.view() else {
                return Err(wrong(key, &name.view(), "{}", "a string as a key"));
            };
            let stored = stored(name);
            if object.contains_key(&stored) {
                let message = format!("the key {:?} stands twice in one map", shown(name));
                return Err(uncertain(key.span, None, message, None));
            }
            object.set(&stored, self.eval(value)?.into_value());
        }
        Ok(Val::Owned(Value::Object(object)))
    }

    fn path(&mut self, path: &'a Path, span: Span) -> Result<Val<'a>, EvalError> {
        self.budget.spend(1 + path.steps.len() as u64)?;
        let base = match &path.base {
            Base::Node(node) => self.eval(node)?,
            Base::Local(slot, _) => self.locals[self.frame + slot].clone(),
            _ => Val::Ref(self.root(path, span)?),
        };
        let found = match &base {
            Val::Ref(value) => Val::Ref(match named(value, path) {
                Some(found) => found,
                None => self.walk(value, path, span)?,
            }),
            Val::Owned(value) => Val::Owned(self.walk(value, path, span)?.clone()),
            Val::Bool(_) | Val::Num(_) if path.steps.is_empty() => base,
            Val::Bool(_) | Val::Num(_) => return Err(no_members(path, 0, &base.view())),
        };
        if let Val::Ref(Value::Object(object)) | Val::Owned(Value::Object(object)) = &found
            && let Some(tag) = tag_of(object)
            && is_withheld(tag)
        {
            let text = place(path, path.steps.len(), &[]);
            let message = format!("{text} is {}", View::Tagged(object, tag).describe());
            return Err(uncertain(span, Some(text), message, None));
        }
        Ok(found)
    }

    fn root(&self, path: &'a Path, span: Span) -> Result<&'a Value, EvalError> {
        let found = match &path.base {
            Base::State => Some(self.env.state),
            Base::Counters => self.env.counters,
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

    fn walk<'v>(&mut self, base: &'v Value, path: &'a Path, span: Span) -> Result<&'v Value, EvalError>
    where
        'a: 'v,
    {
        let mut value = base;
        let mut computed = Vec::new();
        for index in 0..path.steps.len() {
            value = match self.step(value, path, index, &mut computed)? {
                Some(value) => value,
                None => return Err(missing(path, index, &computed, span)),
            };
        }
        Ok(value)
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
        let mut value = match &base {
            Val::Ref(value) => *value,
            Val::Owned(value) => value,
            Val::Bool(_) | Val::Num(_) => return Err(no_members(path, 0, &base.view())),
        };
        let mut computed = Vec::new();
        for index in 0..last {
            value = match self.step(value, path, index, &mut computed)? {
                Some(value) => value,
                None => return Err(missing(path, index, &computed, span)),
            };
        }
        Ok(self.step(value, path, last, &mut computed)?.is_some())
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
                let at = exact_index(&num).ok_or_else(|| trouble(Trouble::Fraction, &[node]))?;
                Ok(usize::try_from(at).ok().and_then(|at| array.get(at)))
            }
            (Value::Object(_), other) => Err(wrong(node, &other, "[]", "a string here")),
            (Value::Array(_), other) => Err(wrong(node, &other, "[]", "an int here")),
            (other, _) => Err(no_members(path, index, &View::of(other))),
        }
    }
}

/// Follows a path that has names alone and misses nothing, which nearly all do.
fn named<'v>(base: &'v Value, path: &Path) -> Option<&'v Value> {
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

/// Returns the integer that an index is, if it is one.
fn exact_index(num: &Num) -> Option<i64> {
    match num {
        Num::Int(value) => Some(*value),
        Num::Double(value) => (value.fract() == 0.0).then(|| number::to_int(num).unwrap_or(-1)),
        Num::Data(number) if number.is_big() => Some(-1),
        Num::Data(number) => number.as_i64(),
    }
}

/// The name under which a name is stored: a `$` in front is doubled.
fn stored(name: &str) -> Cow<'_, str> {
    if name.starts_with('$') { Cow::Owned(tag::stored_name(name).to_string()) } else { Cow::Borrowed(name) }
}

fn is_whole_state(node: &Node) -> bool {
    matches!(&node.kind, Kind::Path(Path { base: Base::State, steps }) if steps.is_empty())
}

/// Writes the first `count` steps of a path, with the values its computed steps had.
fn place(path: &Path, count: usize, computed: &[Val<'_>]) -> String {
    let mut text = match &path.base {
        Base::State => "state".to_owned(),
        Base::Counters => "state.counters".to_owned(),
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
    uncertain(span.to(path.steps[index].span), Some(text), message, Some(hint))
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
    uncertain(step.span, Some(text), message, None)
}

fn operands<'n>(first: &'n Node, rest: &'n [(Operator, Node)]) -> impl Iterator<Item = &'n Node> {
    std::iter::once(first).chain(rest.iter().map(|(_, node)| node))
}

/// Of two operands that do not fit each other, picks the one to name: nobody needs to be told what a literal is.
fn blamed(nodes: [&Node; 2]) -> usize {
    let is_path = |node: &Node| matches!(node.kind, Kind::Path(_));
    usize::from(is_path(nodes[1]) || !is_path(nodes[0]))
}

fn wrong_order(comparison: Comparison, pair: &[Node; 2], left: &View<'_>, right: &View<'_>) -> EvalError {
    let symbol = comparison.symbol();
    let views = [left, right];
    let unordered =
        views.iter().position(|view| !matches!(view, View::Num(_) | View::Text(_) | View::Bool(_)));
    if let Some(at) = unordered {
        return wrong(&pair[at], views[at], symbol, "numbers, strings or booleans");
    }
    let at = blamed([&pair[0], &pair[1]]);
    let wanted = match views[1 - at] {
        View::Num(_) => "a number beside a number",
        View::Text(_) => "a string beside a string",
        _ => "a boolean beside a boolean",
    };
    wrong(&pair[at], views[at], symbol, wanted)
}

fn wrong_operand(operator: Operator, nodes: [&Node; 2], left: &View<'_>, right: &View<'_>) -> EvalError {
    let views = [left, right];
    let misfit = views.iter().position(|view| match view {
        View::Num(_) => false,
        View::Text(_) | View::List(_) => operator != Operator::Add,
        _ => true,
    });
    let at = misfit.unwrap_or_else(|| blamed(nodes));
    let wanted = if operator == Operator::Add { "two numbers, strings or lists" } else { "numbers" };
    wrong(nodes[at], views[at], operator.symbol(), wanted)
}
