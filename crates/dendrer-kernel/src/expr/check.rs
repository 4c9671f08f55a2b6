//! Finds what cannot fit whatever the state holds, and what an expression can look at.
//!
//! Never refuses what may be right for some state: a field has any type until it is read. A fault that the literals and
//! functions of the text alone decide is refused here, with its span.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dendrer_object::number::round_half_even;
use dendrer_object::{Pointer, Value, tag};

use super::ast::{Base, Comparison, Comprehension, Kind, Node, Path, Step, StepKind};
use super::error::{DIVISION, ExprError, Span, TYPE};
use super::functions::{Function, Macro};
use super::number::Operator;
use super::time::{self, Time, TimeFault};
use super::{Scope, print};

dendrer_object::words! {
    /// The type of a value, known before there is a state.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum Type {
        Null = "null",
        Bool = "a boolean",
        /// An int of CEL: a literal, a size, a result of `int()`.
        Int = "an int",
        /// A double of CEL: a literal, a result of `double()`.
        Double = "a double",
        /// A number that came from data on the way: which of the two it acts as is seen when it is read.
        Number = "a number",
        String = "a string",
        List = "a list",
        Map = "a map",
        Timestamp = "a timestamp",
        Duration = "a duration",
        Any = "a value",
    }
}

impl Type {
    fn is_number(self) -> bool {
        matches!(self, Type::Int | Type::Double | Type::Number)
    }

    fn is_time(self) -> bool {
        matches!(self, Type::Timestamp | Type::Duration)
    }

    fn may_be(self, wanted: &[Type]) -> bool {
        self == Type::Any || wanted.contains(&self)
    }

    /// Tells whether two values can be of one kind; numbers are one kind.
    fn may_match(self, other: Type) -> bool {
        self == Type::Any || other == Type::Any || self == other || (self.is_number() && other.is_number())
    }

    fn or(self, other: Type) -> Type {
        match (self, other) {
            (a, b) if a == b => a,
            (Type::Number, b) if b.is_number() => Type::Number,
            (a, Type::Number) if a.is_number() => Type::Number,
            _ => Type::Any,
        }
    }
}

/// The static knowledge of the value of a node, before there is a state.
#[derive(Debug, Clone)]
pub(super) struct Known {
    found: Type,
    /// Whether it depends on anything but the text.
    data: bool,
    /// Place in the state of the value, or of a number with as many decimals.
    place: Option<Vec<Token>>,
}

/// A step of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    /// A name as stored, or the digits of an index.
    Name(Arc<str>),
    /// An index or a name that is computed.
    Any,
}

impl Known {
    fn text(found: Type) -> Known {
        Known { found, data: false, place: None }
    }

    fn data(found: Type) -> Known {
        Known { found, data: true, place: None }
    }

    /// The static knowledge of a parameter: none.
    pub(super) fn anything() -> Known {
        Known::data(Type::Any)
    }

    /// Returns the static knowledge of a member of this value.
    fn member(&self, token: Token) -> Known {
        let place = self.place.as_ref().map(|place| [&place[..], &[token]].concat());
        Known { found: Type::Any, data: self.data, place }
    }
}

/// How many errors of one text are worth telling.
const ERRORS_MAX: usize = 20;

/// Checks one tree. Faults are collected, and a node with a fault may then have any type.
pub(super) struct Checker<'s> {
    scope: &'s Scope,
    locals: Vec<Known>,
    errors: Vec<ExprError>,
}

impl<'s> Checker<'s> {
    /// Knows the variables that stand outside the tree.
    pub(super) fn new(scope: &'s Scope, locals: Vec<Known>) -> Checker<'s> {
        Checker { scope, locals, errors: Vec::new() }
    }

    /// Returns what is wrong, in the order of the text.
    pub(super) fn finish(self) -> Vec<ExprError> {
        self.errors
    }

    fn fail(&mut self, error: ExprError) -> Known {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(error);
        }
        Known::data(Type::Any)
    }

    /// Checks that a tree can be a condition.
    pub(super) fn condition(&mut self, node: &mut Node) -> Known {
        let known = self.check(node);
        if known.found.may_be(&[Type::Bool]) {
            return known;
        }
        let message = format!("a condition is true or false, and this is {}", known.found);
        self.fail(ExprError::new(TYPE, node.span, message))
    }

    /// Checks a tree and returns what is known of its value.
    pub(super) fn check(&mut self, node: &mut Node) -> Known {
        let span = node.span;
        match &mut node.kind {
            Kind::Literal(Value::Null) => Known::text(Type::Null),
            Kind::Literal(Value::String(_)) => Known::text(Type::String),
            Kind::Literal(_) => Known::text(Type::Bool),
            Kind::Int(_) => Known::text(Type::Int),
            Kind::Double(_) => Known::text(Type::Double),
            Kind::Constant(..) | Kind::Unknown => Known::data(Type::Any),
            Kind::Path(path) => {
                let known = self.path(path);
                node.is_moment = self.is_datetime(&known);
                known
            }
            Kind::Has(path) => Known { found: Type::Bool, place: None, ..self.path(path) },
            Kind::Not(inner) => self.bools(std::slice::from_mut(&mut **inner), "!"),
            Kind::Negate(inner) => {
                let known = self.check(inner);
                match known.found {
                    Type::Any => Known { found: Type::Number, ..known },
                    number if number.is_number() => known,
                    other => self.fail(mismatch(inner.span, "-", &[other])),
                }
            }
            Kind::And(parts) => self.bools(parts, "&&"),
            Kind::Or(parts) => self.bools(parts, "||"),
            Kind::Compare(comparison, pair) => self.comparison(*comparison, pair, span),
            Kind::In(pair) => self.membership(pair, span),
            Kind::Chain(first, rest) => self.chain(first, rest),
            Kind::Choose(cases, last) => self.choice(cases, last),
            Kind::Call(function, arguments) => self.call(*function, arguments, span),
            Kind::Matches(pair, _) => {
                let text = self.check(&mut pair[0]);
                if !text.found.may_be(&[Type::String]) {
                    return self.fail(mismatch(span, Function::Matches.name(), &[text.found]));
                }
                Known { found: Type::Bool, place: None, ..text }
            }
            Kind::Bind(_, pair) => self.bind(pair),
            Kind::Comprehend(comprehension) => self.comprehension(comprehension, span),
            Kind::Invoke(definition, arguments) => {
                for argument in arguments.iter_mut() {
                    self.check(argument);
                }
                definition.known.clone()
            }
            Kind::List(items, _) => {
                let known: Vec<Known> = items.iter_mut().map(|item| self.check(item)).collect();
                Known { found: Type::List, data: known.iter().any(|item| item.data), place: None }
            }
            Kind::Map(entries, _) => self.map(entries),
        }
    }

    fn map(&mut self, entries: &mut [(Node, Node)]) -> Known {
        let mut data = false;
        for (key, value) in entries {
            let known = self.check(key);
            if !known.found.may_be(&[Type::String]) {
                let message = format!("a key of a map is a string, not {}", known.found);
                self.fail(ExprError::new(TYPE, key.span, message));
            }
            data |= known.data | self.check(value).data;
        }
        Known { found: Type::Map, data, place: None }
    }

    fn bools(&mut self, parts: &mut [Node], symbol: &str) -> Known {
        let mut data = false;
        for part in parts {
            let known = self.check(part);
            data |= known.data;
            if !known.found.may_be(&[Type::Bool]) {
                self.fail(mismatch(part.span, symbol, &[known.found]));
            }
        }
        Known { found: Type::Bool, data, place: None }
    }

    fn path(&mut self, path: &mut Path) -> Known {
        let mut container = match &mut path.base {
            Base::Node(node) => self.check(node),
            Base::State => Known { found: Type::Map, data: true, place: Some(Vec::new()) },
            Base::Counters if path.steps.is_empty() => Known::data(Type::Any),
            Base::Counters => Known::data(Type::Map),
            Base::Commitments => Known::data(if path.steps.is_empty() { Type::Any } else { Type::Map }),
            Base::Root(name) => Known { place: self.beginning(name), ..Known::data(Type::Any) },
            Base::Local(slot, _) => self.locals[*slot].clone(),
        };
        for step in &mut path.steps {
            container = self.step(container, step);
        }
        container
    }

    fn step(&mut self, container: Known, step: &mut Step) -> Known {
        let (index, token) = match &mut step.kind {
            StepKind::Key(key) => (Known::text(Type::String), Token::Name(Arc::clone(&key.stored))),
            StepKind::Index(at) => (Known::text(Type::Int), Token::Name(at.to_string().into())),
            StepKind::Computed(node) => (self.check(node), Token::Any),
        };
        let wanted = match index.found {
            Type::String => Type::Map,
            Type::Int | Type::Number => Type::List,
            Type::Any => return Known { data: true, ..container.member(token) },
            index => {
                let message = format!("a list takes an int and a map takes a string, not {index}");
                return self.fail(ExprError::new(TYPE, step.span, message));
            }
        };
        if !container.found.may_be(&[wanted]) {
            let message = match container.found {
                Type::List | Type::Map => {
                    format!("{} does not take {} as its index", container.found, index.found)
                }
                found => format!("{found} has no members"),
            };
            return self.fail(ExprError::new(TYPE, step.span, message));
        }
        container.member(token)
    }

    fn comparison(&mut self, comparison: Comparison, pair: &mut [Node; 2], span: Span) -> Known {
        let (mut left, mut right) = (self.check(&mut pair[0]), self.check(&mut pair[1]));
        self.precision(&left, &pair[1]);
        self.precision(&right, &pair[0]);
        let is_ordered = !comparison.is_equality();
        let is_timed = |of: &Known| of.found == Type::Timestamp;
        if (is_ordered && (self.is_datetime(&left) || self.is_datetime(&right)))
            || (is_timed(&left) && self.is_datetime(&right))
            || (self.is_datetime(&left) && is_timed(&right))
        {
            for (known, node) in [&mut left, &mut right].into_iter().zip(pair.iter_mut()) {
                self.moment(known, node);
            }
        }
        let known = Known { found: Type::Bool, data: left.data | right.data, place: None };
        let (left, right) = (left.found, right.found);
        if matches!(comparison, Comparison::Equal | Comparison::NotEqual) {
            if left.may_match(right) {
                return known;
            }
            let always = if comparison == Comparison::Equal { "never equal" } else { "always unequal" };
            let error = ExprError::new(TYPE, span, format!("{left} and {right} are {always}"));
            return self.fail(match left.is_time() || right.is_time() {
                true => error.hint("write timestamp(text) or duration(text) for the text"),
                false => error,
            });
        }
        let ordered =
            |found: Type| found.is_number() || found.is_time() || found.may_be(&[Type::String, Type::Bool]);
        if ordered(left) && ordered(right) && left.may_match(right) {
            return known;
        }
        let error = mismatch(span, comparison.as_str(), &[left, right]);
        self.fail(match left.is_time() || right.is_time() {
            true => error.hint("write timestamp(text) or duration(text) for the text"),
            false => error,
        })
    }

    fn membership(&mut self, pair: &mut [Node; 2], span: Span) -> Known {
        let (item, container) = (self.check(&mut pair[0]), self.check(&mut pair[1]));
        match &pair[1].kind {
            Kind::List(items, _) => {
                for member in items {
                    self.precision(&item, member);
                    let place = self.place_of(member);
                    self.precision(&Known { place, ..Known::anything() }, &pair[0]);
                }
            }
            Kind::Constant(..) => self.precision(&item, &pair[1]),
            _ => {}
        }
        let known = Known { found: Type::Bool, data: item.data | container.data, place: None };
        let (item, container) = (item.found, container.found);
        match container {
            Type::List | Type::Any => known,
            Type::Map if item.may_be(&[Type::String]) => known,
            // Nothing is in an empty map, whatever its keys would be.
            Type::Map if matches!(&pair[1].kind, Kind::Map(entries, _) if entries.is_empty()) => known,
            Type::Map => {
                let message = format!("the keys of a map are strings, and this is {item}");
                self.fail(ExprError::new(TYPE, span, message))
            }
            Type::String => self.fail(
                mismatch(span, "in", &[item, container]).hint("a part of a string is found by a.contains(b)"),
            ),
            _ => self.fail(mismatch(span, "in", &[item, container])),
        }
    }

    /// Holds a literal, or what a constant is known to be, against the declared precision of the field it is compared
    /// with.
    fn precision(&mut self, field: &Known, literal: &Node) {
        let Some(decimals) = field.place.as_deref().and_then(|place| self.decimals(place)) else { return };
        let round = |value: f64| round_half_even(value, u8::try_from(decimals).unwrap_or(u8::MAX));
        let finer = |value: &f64| round(*value) != *value;
        let error = match &literal.kind {
            Kind::Int(value) => Some(*value as f64).filter(finer),
            Kind::Double(value) => Some(*value).filter(finer),
            Kind::Constant(name, value) => {
                let Some(value) = numbers(value).into_iter().find(finer) else { return };
                let (value, hint) = (print::double(value), format!("give {name} {decimals} decimals"));
                let message = format!("the field has {decimals} decimals, and {name}, {value}, has more");
                self.fail(ExprError::new(TYPE, literal.span, message).hint(hint));
                None
            }
            _ => None,
        };
        if let Some(value) = error {
            let message = format!("the field has {decimals} decimals, and the literal has more");
            let hint = format!("write {}", print::double(round(value)));
            self.fail(ExprError::new(TYPE, literal.span, message).hint(hint));
        }
    }

    /// How many decimals the number at a place has, where that is declared.
    fn decimals(&self, place: &[Token]) -> Option<u32> {
        let declared = self.scope.precisions.iter().rfind(|precision| precision.places.cover(place));
        declared.map(|precision| precision.decimals)
    }

    /// Returns the place with the most decimals of all places that a value may come from, if each has a declared number of
    /// them. A literal finer than that is finer than any.
    fn finest(&self, places: impl IntoIterator<Item = Option<Vec<Token>>>) -> Option<Vec<Token>> {
        let mut found: Option<(u32, Vec<Token>)> = None;
        for place in places {
            let place = place?;
            let decimals = self.decimals(&place)?;
            if found.as_ref().is_none_or(|(most, _)| decimals > *most) {
                found = Some((decimals, place));
            }
        }
        found.map(|(_, place)| place)
    }

    /// The place of a root, where that is the state at another time.
    fn beginning(&self, root: &Arc<str>) -> Option<Vec<Token>> {
        let timed = self.scope.timed.get(root).map(|token| vec![Token::Name(Arc::clone(token))]);
        timed.or_else(|| self.scope.states.contains(root).then(Vec::new))
    }

    /// Returns the place in the state of a plain path.
    fn place_of(&self, node: &Node) -> Option<Vec<Token>> {
        let Kind::Path(path) = &node.kind else { return None };
        let mut place = match &path.base {
            Base::State => Vec::new(),
            Base::Root(name) => self.beginning(name)?,
            Base::Local(slot, _) => self.locals.get(*slot)?.place.clone()?,
            _ => return None,
        };
        place.extend(path.steps.iter().map(|step| match &step.kind {
            StepKind::Key(key) => Token::Name(Arc::clone(&key.stored)),
            StepKind::Index(at) => Token::Name(at.to_string().into()),
            StepKind::Computed(_) => Token::Any,
        }));
        Some(place)
    }

    fn choice(&mut self, cases: &mut [(Node, Node)], last: &mut Node) -> Known {
        let mut known = self.check(last);
        for (condition, chosen) in cases {
            let decides = self.bools(std::slice::from_mut(condition), "? :");
            let other = self.check(chosen);
            let place = match known.place == other.place {
                true => other.place,
                // Either is a moment, whichever it is.
                false if self.is_datetime(&known) && self.is_datetime(&other) => other.place,
                false => self.finest([known.place, other.place]),
            };
            let data = known.data | other.data | decides.data;
            known = Known { found: known.found.or(other.found), data, place };
        }
        known
    }

    fn chain(&mut self, first: &mut Node, rest: &mut [(Operator, Node)]) -> Known {
        let mut left = self.check(first);
        let mut span = first.span;
        // The left side, as long as it is the first operand.
        let mut before = Some(first);
        for (operator, node) in rest {
            let mut right = self.check(node);
            span = span.to(node.span);
            // Text beside a text is joined, and no moment.
            let is_timed = |of: &Known| of.found.is_time();
            let (of_left, of_right) = (self.is_datetime(&left), self.is_datetime(&right));
            if *operator == Operator::Subtract && (of_left || of_right)
                || *operator == Operator::Add && (of_left && is_timed(&right) || is_timed(&left) && of_right)
            {
                if let Some(first) = before {
                    self.moment(&mut left, first);
                }
                self.moment(&mut right, node);
            }
            before = None;
            let data = left.data | right.data;
            let found = match operator {
                Operator::Divide => division(left.found, right.found, data, span),
                _ => combine(*operator, left.found, right.found)
                    .ok_or_else(|| no_overload(*operator, left.found, right.found, span)),
            };
            left = match found {
                Ok(found) => Known { found, data, place: None },
                Err(error) => self.fail(error),
            };
        }
        Known { place: None, ..left }
    }

    /// Tells whether a value is the text of a moment, by what is declared of its place.
    fn is_datetime(&self, known: &Known) -> bool {
        let Some(place) = &known.place else { return false };
        known.found.may_be(&[Type::String]) && self.scope.datetimes.iter().any(|places| places.cover(place))
    }

    /// Takes an operand as a moment: what gives a text gives the moment that it writes. A literal is looked at here.
    fn moment(&mut self, known: &mut Known, node: &Node) {
        if !known.found.may_be(&[Type::String]) {
            return;
        }
        self.literal_time(Function::Timestamp, node);
        known.found = Type::Timestamp;
    }

    /// Looks whether a literal is the text of a timestamp or of a duration.
    fn literal_time(&mut self, function: Function, node: &Node) {
        let (Kind::Literal(Value::String(text)) | Kind::Constant(_, Value::String(text))) = &node.kind else {
            return;
        };
        let read = if function == Function::Duration { Time::duration(text) } else { Time::timestamp(text) };
        if let Err(fault) = read {
            let error = ExprError::new(TYPE, node.span, fault.as_str());
            self.fail(match fault.hint() {
                Some(hint) => error.hint(hint),
                None => error,
            });
        }
    }

    fn call(&mut self, function: Function, arguments: &mut [Node], span: Span) -> Known {
        let mut known: Vec<Known> = arguments.iter_mut().map(|argument| self.check(argument)).collect();
        let datetime = match function {
            Function::Min | Function::Max if known.len() > 1 => {
                known.iter().find(|one| self.is_datetime(one)).and_then(|one| one.place.clone())
            }
            _ => None,
        };
        let are_texts = known.iter().all(|one| one.found != Type::Timestamp);
        if datetime.is_some() {
            for (one, node) in known.iter_mut().zip(arguments.iter_mut()) {
                self.moment(one, node);
            }
        } else if matches!(function, Function::Timestamp | Function::Duration) {
            self.literal_time(function, &arguments[0]);
        } else if let (Function::Part(_), Some(Node { kind: Kind::Literal(Value::String(text)), span, .. })) =
            (function, arguments.get(1))
            && let Err(fault) = time::offset(text)
        {
            let error = match fault {
                TimeFault::NamedZone => ExprError::unsupported(*span, "a time zone by its name"),
                _ => ExprError::new(TYPE, *span, fault.as_str()),
            };
            return self.fail(error.hint(fault.hint().unwrap_or_default()));
        }
        let data = known.iter().any(|argument| argument.data);
        let found: Vec<Type> = known.iter().map(|argument| argument.found).collect();
        let fits = |(index, found): (usize, &Type)| {
            let takes = function.takes(index);
            takes.is_empty() || found.may_be(takes)
        };
        if !found.iter().enumerate().all(fits) {
            let error = mismatch(span, function.name(), &found);
            return self.fail(match function {
                Function::Div if found.contains(&Type::Double) => error.hint("doubles are divided by /"),
                Function::Contains => error.hint("membership in a list is written a in b"),
                Function::String => error.hint("canon(a) writes any value as text"),
                Function::Part(_) if found[0] == Type::String => {
                    error.hint("write timestamp(text) for the text")
                }
                _ => error.hint(format!("write {}", function.form())),
            });
        }
        if matches!(function, Function::Min | Function::Max) {
            // Each is compared with each other.
            for field in &known {
                arguments.iter().for_each(|argument| self.precision(field, argument));
            }
        }
        let result = match function {
            // One of texts is that text.
            Function::Min | Function::Max if datetime.is_some() && are_texts => {
                return Known { found: Type::String, data, place: datetime };
            }
            Function::Div if found == [Type::Int, Type::Int] => Type::Int,
            Function::Abs | Function::Round if found[0] != Type::Any => found[0],
            Function::Slice => found[0],
            Function::Min | Function::Max => match extreme(&found) {
                Some(result) => result,
                None => return self.fail(mismatch(span, function.name(), &found)),
            },
            _ => function.gives(),
        };
        // A function that only selects members of a list keeps their place.
        let place = match function {
            Function::Values | Function::Sort | Function::Distinct | Function::Slice => {
                known[0].place.clone()
            }
            Function::Min | Function::Max if known.len() == 1 => known[0].member(Token::Any).place,
            // Each literal was just held against each field, and has no more decimals than it.
            Function::Min | Function::Max => {
                let fields = known.into_iter().zip(arguments).filter(|(_, node)| !is_number(node));
                self.finest(fields.map(|(field, _)| field.place))
            }
            Function::Abs | Function::Double => known[0].place.clone(),
            _ => None,
        };
        Known { found: result, data, place }
    }

    fn bind(&mut self, pair: &mut [Node; 2]) -> Known {
        let value = self.check(&mut pair[0]);
        self.locals.push(value);
        let known = self.check(&mut pair[1]);
        self.locals.pop();
        known
    }

    fn comprehension(&mut self, comprehension: &mut Comprehension, span: Span) -> Known {
        let Comprehension { kind, variables, range, filter, body } = comprehension;
        let over = self.check(range);
        if !over.found.may_be(&[Type::List, Type::Map]) {
            self.fail(mismatch(range.span, kind.name(variables.len()), &[over.found]));
        }
        if *kind == Macro::TransformMap && over.found == Type::List {
            let error = ExprError::unsupported(span, "a map key other than a string");
            self.fail(error.hint("write a.transformMapEntry(i, x, {key: value})"));
        }
        let outside = self.locals.len();
        let mut bound = members(&over, range, variables.len());
        if let (Kind::List(items, _), Some(member)) = (&range.kind, bound.last_mut()) {
            let places: Vec<_> = items.iter().map(|item| self.place_of(item)).collect();
            member.place = match places.split_first() {
                Some((first, rest)) if rest.iter().all(|place| place == first) => first.clone(),
                _ => self.finest(places),
            };
        }
        self.locals.extend(bound);
        let mut data = over.data;
        if let Some(filter) = filter {
            data |= self.bools(std::slice::from_mut(filter), kind.name(variables.len())).data;
        }
        let inner = if kind.is_test() || *kind == Macro::Filter {
            self.bools(std::slice::from_mut(body), kind.name(variables.len()))
        } else {
            self.check(body)
        };
        self.locals.truncate(outside);
        if *kind == Macro::TransformMapEntry && !inner.found.may_be(&[Type::Map]) {
            self.fail(
                mismatch(body.span, kind.name(2), &[inner.found]).hint(format!("write {}", kind.form())),
            );
        }
        data |= inner.data;
        match kind {
            Macro::All | Macro::Exists | Macro::ExistsOne => Known { found: Type::Bool, data, place: None },
            Macro::Filter if over.found != Type::Map => Known { found: Type::List, data, place: over.place },
            Macro::Filter | Macro::Map | Macro::TransformList => {
                Known { found: Type::List, data, place: None }
            }
            Macro::TransformMap | Macro::TransformMapEntry => Known { found: Type::Map, data, place: None },
        }
    }
}

/// Returns whether a node is a literal number, or a constant that is a number.
fn is_number(node: &Node) -> bool {
    match &node.kind {
        Kind::Int(_) | Kind::Double(_) => true,
        Kind::Constant(_, value) => value.as_number().is_some(),
        _ => false,
    }
}

/// The numbers that a constant is, or lists.
fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().filter_map(Value::as_f64).collect(),
        value => value.as_f64().into_iter().collect(),
    }
}

/// Returns the static knowledge of the variables of a comprehension.
fn members(over: &Known, range: &Node, count: usize) -> Vec<Known> {
    let mut member = over.member(Token::Any);
    let mut key = Known { found: Type::Any, data: over.data, place: None };
    match over.found {
        Type::List => key.found = Type::Int,
        Type::Map => key.found = Type::String,
        _ => {}
    }
    if let Kind::List(items, Some(_)) = &range.kind
        && items.iter().all(|item| matches!(item.kind, Kind::Int(_)))
        && !items.is_empty()
    {
        member.found = Type::Int;
    }
    match count {
        1 if over.found == Type::Map => vec![key],
        1 => vec![member],
        _ => vec![key, member],
    }
}

/// Returns the type of `min` and `max`; `None` if the values have no order.
fn extreme(found: &[Type]) -> Option<Type> {
    match found {
        [one] => one.may_be(&[Type::List]).then_some(Type::Any),
        _ => {
            let ordered =
                |found: &Type| found.is_number() || found.is_time() || found.may_be(&[Type::String]);
            let fits = found.iter().all(|a| ordered(a) && found.iter().all(|b| a.may_match(*b)));
            fits.then(|| found.iter().copied().reduce(Type::or).unwrap_or(Type::Any))
        }
    }
}

fn mismatch(span: Span, symbol: &str, found: &[Type]) -> ExprError {
    let found: Vec<String> = found.iter().map(Type::to_string).collect();
    ExprError::new(TYPE, span, format!("`{symbol}` does not take {}", found.join(" and ")))
}

fn combine(operator: Operator, left: Type, right: Type) -> Option<Type> {
    if left.is_time() || right.is_time() {
        return times(operator, left, right);
    }
    let sum = match (left, right) {
        (Type::Int, Type::Int) => Type::Int,
        (Type::Double, Type::Double) => Type::Double,
        (Type::Int, Type::Double) | (Type::Double, Type::Int) => return None,
        (a, b) if a.is_number() && b.is_number() => Type::Number,
        (Type::Any, b) if b.is_number() => Type::Number,
        (a, Type::Any) if a.is_number() => Type::Number,
        (Type::Any, Type::Any) if operator == Operator::Add => Type::Any,
        (Type::Any, Type::Any) => Type::Number,
        (a, b) if operator == Operator::Add && a.may_match(b) => {
            let known = if a == Type::Any { b } else { a };
            return matches!(known, Type::String | Type::List).then_some(known);
        }
        _ => return None,
    };
    (operator != Operator::Remainder || (left != Type::Double && right != Type::Double)).then_some(sum)
}

/// The type of a sum or a difference of points and lengths of time.
fn times(operator: Operator, left: Type, right: Type) -> Option<Type> {
    use Type::{Any, Duration, Timestamp};
    match (left, operator, right) {
        (Timestamp, Operator::Subtract, Timestamp)
        | (Duration, Operator::Add | Operator::Subtract, Duration) => Some(Duration),
        (Timestamp, Operator::Add | Operator::Subtract, Duration) | (Duration, Operator::Add, Timestamp) => {
            Some(Timestamp)
        }
        (Timestamp, Operator::Add, Any) | (Any, Operator::Add, Timestamp) => Some(Timestamp),
        (Any, Operator::Subtract, Timestamp) => Some(Duration),
        (Any, Operator::Add | Operator::Subtract, _) | (_, Operator::Add | Operator::Subtract, Any) => {
            Some(Any)
        }
        _ => None,
    }
}

fn no_overload(operator: Operator, left: Type, right: Type, span: Span) -> ExprError {
    let error = mismatch(span, operator.as_str(), &[left, right]);
    match (left, right) {
        _ if operator == Operator::Remainder => error.hint("% is for ints"),
        (Type::Int, Type::Double) | (Type::Double, Type::Int) => error.hint("write 1.0 for 1, or double(a)"),
        (Type::String, other) | (other, Type::String) if other.is_time() => {
            error.hint("write timestamp(text) or duration(text) for the text, or string(a) for the time")
        }
        _ => error,
    }
}

fn division(left: Type, right: Type, has_data: bool, span: Span) -> Result<Type, ExprError> {
    match (left, right) {
        (Type::Double, Type::Double) => Ok(Type::Double),
        (Type::Int, Type::Int) if !has_data => Ok(Type::Int),
        (Type::Int, Type::Double) | (Type::Double, Type::Int) => {
            Err(no_overload(Operator::Divide, left, right, span))
        }
        (a, b) if a.may_match(Type::Number) && b.may_match(Type::Number) => {
            let message = "`/` on a value from data could drop the fraction or keep it";
            Err(ExprError::new(DIVISION, span, message)
                .hint("write div(a, b) for the whole part, double(a) / double(b) for the fraction"))
        }
        _ => Err(mismatch(span, "/", &[left, right])),
    }
}

/// Places of the state, with `*` for any index or name.
#[derive(Debug, Clone)]
pub(super) struct Places(Vec<Token>);

impl Places {
    pub(super) fn new(path: &Pointer) -> Places {
        let token =
            |token: Cow<'_, str>| if token == "*" { Token::Any } else { Token::Name((*token).into()) };
        Places(path.tokens().map(token).collect())
    }

    fn cover(&self, place: &[Token]) -> bool {
        let fits = |(pattern, token): (&Token, &Token)| *pattern == Token::Any || pattern == token;
        self.0.len() == place.len() && self.0.iter().zip(place).all(fits)
    }
}

/// How many decimals the numbers at some places have.
#[derive(Debug, Clone)]
pub(super) struct Precision {
    places: Places,
    decimals: u32,
}

impl Precision {
    pub(super) fn new(path: &Pointer, decimals: u32) -> Precision {
        Precision { places: Places::new(path), decimals }
    }
}

/// The places that an expression can read.
#[derive(Debug, Default, Clone)]
pub(super) struct Reads {
    pub(super) state: Vec<Pointer>,
    pub(super) counters: Counted,
    pub(super) roots: BTreeMap<Arc<str>, Vec<Pointer>>,
}

/// Which counters an expression can look at.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) enum Counted {
    #[default]
    None,
    /// These.
    Some(BTreeSet<Arc<str>>),
    /// Any of them.
    All,
}

impl Counted {
    fn add(&mut self, other: &Counted) {
        match (&mut *self, other) {
            (Counted::All, _) | (_, Counted::None) => {}
            (Counted::Some(names), Counted::Some(more)) => names.extend(more.iter().cloned()),
            (_, other) => *self = other.clone(),
        }
    }
}

/// Collects what a tree can look at.
pub(super) fn reads(node: &Node) -> Reads {
    let mut seen = Seen::default();
    seen.node(node);
    Reads {
        state: topmost(seen.state),
        counters: seen.counters,
        roots: seen.roots.into_iter().map(|(name, places)| (name, topmost(places))).collect(),
    }
}

/// Leaves out places below another, which say nothing new.
fn topmost(places: BTreeSet<Pointer>) -> Vec<Pointer> {
    let mut found: Vec<Pointer> = Vec::new();
    for place in places {
        if !found.iter().any(|above| above.contains(&place)) {
            found.push(place);
        }
    }
    found
}

#[derive(Default)]
struct Seen {
    state: BTreeSet<Pointer>,
    counters: Counted,
    roots: BTreeMap<Arc<str>, BTreeSet<Pointer>>,
}

impl Seen {
    fn node(&mut self, node: &Node) {
        match &node.kind {
            Kind::Path(path) | Kind::Has(path) => self.path(path),
            Kind::In(pair) => {
                if let (Kind::Literal(Value::String(name)), Kind::Path(Path { base: Base::State, steps })) =
                    (&pair[0].kind, &pair[1].kind)
                    && steps.is_empty()
                {
                    match &**name {
                        "counters" => self.counters.add(&Counted::Some(BTreeSet::new())),
                        name => drop(self.state.insert(Pointer::of([&*tag::stored_name(name)]))),
                    }
                    return;
                }
            }
            Kind::Invoke(definition, _) => self.definition(&definition.reads),
            _ => {}
        }
        node.children(&mut |child| self.node(child));
    }

    fn definition(&mut self, reads: &Reads) {
        self.state.extend(reads.state.iter().cloned());
        self.counters.add(&reads.counters);
        for (name, places) in &reads.roots {
            self.roots.entry(Arc::clone(name)).or_default().extend(places.iter().cloned());
        }
    }

    fn path(&mut self, path: &Path) {
        // A removal from a list moves what follows, so that an index reads the whole list.
        let keys = path.steps.iter().map_while(|step| match &step.kind {
            StepKind::Key(key) => Some(&*key.stored),
            _ => None,
        });
        match &path.base {
            Base::State => {
                self.state.insert(Pointer::of(keys));
                // `state[x]` and `state` itself may be asked for the counters.
                if !matches!(path.steps.first().map(|step| &step.kind), Some(StepKind::Key(_))) {
                    self.counters = Counted::All;
                }
            }
            Base::Counters => self.counters.add(&match path.steps.first().map(|step| &step.kind) {
                Some(StepKind::Key(key)) => Counted::Some([Arc::from(&*key.name)].into()),
                _ => Counted::All,
            }),
            // Served with the counters, and no counter.
            Base::Commitments => self.counters.add(&Counted::Some(BTreeSet::new())),
            Base::Root(name) => {
                self.roots.entry(Arc::clone(name)).or_default().insert(Pointer::of(keys));
            }
            // The value of a variable is read where it is bound.
            Base::Local(..) | Base::Node(_) => {}
        }
    }
}
