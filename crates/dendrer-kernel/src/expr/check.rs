//! Finds what cannot fit whatever the state holds, and what an expression can look at.
//!
//! Never refuses what may be right for some state: a field has any type until it is read. What the literals and
//! functions of the text alone decide is refused here, with the bytes it stands at.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use dendrer_object::{Pointer, Value};

use super::ast::{Base, Comparison, Function, Kind, Node, Operator, Path, StepKind};
use super::error::{DIVISION, ExprError, Span, TYPE};

/// What is known of a value before there is a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Null,
    Bool,
    /// An int of CEL: a literal, a size, what `int()` gives.
    Int,
    /// A double of CEL: a literal, what `double()` gives.
    Double,
    /// A number that came from data on the way: which of the two it acts as is seen when it is read.
    Number,
    String,
    List,
    Map,
    Any,
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Type::Null => "null",
            Type::Bool => "a boolean",
            Type::Int => "an int",
            Type::Double => "a double",
            Type::Number => "a number",
            Type::String => "a string",
            Type::List => "a list",
            Type::Map => "a map",
            Type::Any => "a value",
        })
    }
}

impl Type {
    fn is_number(self) -> bool {
        matches!(self, Type::Int | Type::Double | Type::Number)
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

/// Checks a tree and returns the type of its value.
pub(super) fn check(node: &Node) -> Result<Type, ExprError> {
    Ok(match &node.kind {
        Kind::Literal(Value::Null) => Type::Null,
        Kind::Literal(Value::String(_)) => Type::String,
        Kind::Literal(_) => Type::Bool,
        Kind::Int(_) => Type::Int,
        Kind::Double(_) => Type::Double,
        Kind::Constant(..) => Type::Any,
        Kind::Path(path) => check_path(path)?,
        Kind::Has(path) => {
            check_path(path)?;
            Type::Bool
        }
        Kind::Not(inner) => check_bool(inner, "!")?,
        Kind::Negate(inner) => match check(inner)? {
            Type::Any => Type::Number,
            number if number.is_number() => number,
            other => return Err(mismatch(inner.span, "-", &[other])),
        },
        Kind::And(parts) => check_bools(parts, "&&")?,
        Kind::Or(parts) => check_bools(parts, "||")?,
        Kind::Compare(comparison, pair) => check_comparison(*comparison, pair, node.span)?,
        Kind::In(pair) => check_in(pair, node.span)?,
        Kind::Chain(first, rest) => check_chain(first, rest)?,
        Kind::Choose(cases, last) => check_choice(cases, last)?,
        Kind::Call(function, arguments) => check_call(*function, arguments, node.span)?,
        Kind::List(items, _) => {
            items.iter().try_for_each(|item| check(item).map(drop))?;
            Type::List
        }
        Kind::Map(entries, _) => {
            for (key, value) in entries {
                let found = check(key)?;
                if !found.may_be(&[Type::String]) {
                    let message = format!("a key of a map is a string, not {found}");
                    return Err(ExprError::new(TYPE, key.span, message));
                }
                check(value)?;
            }
            Type::Map
        }
    })
}

/// Checks that a tree can be a condition.
pub(super) fn check_condition(node: &Node) -> Result<(), ExprError> {
    match check(node)? {
        Type::Bool | Type::Any => Ok(()),
        other => {
            Err(ExprError::new(TYPE, node.span, format!("a condition is true or false, and this is {other}")))
        }
    }
}

fn mismatch(span: Span, symbol: &str, found: &[Type]) -> ExprError {
    let found: Vec<String> = found.iter().map(Type::to_string).collect();
    ExprError::new(TYPE, span, format!("`{symbol}` does not take {}", found.join(" and ")))
}

fn check_bool(node: &Node, symbol: &str) -> Result<Type, ExprError> {
    match check(node)? {
        Type::Bool | Type::Any => Ok(Type::Bool),
        other => Err(mismatch(node.span, symbol, &[other])),
    }
}

fn check_bools(parts: &[Node], symbol: &str) -> Result<Type, ExprError> {
    parts.iter().try_for_each(|part| check_bool(part, symbol).map(drop))?;
    Ok(Type::Bool)
}

fn check_path(path: &Path) -> Result<Type, ExprError> {
    let mut container = match &path.base {
        Base::Node(node) => check(node)?,
        Base::State => Type::Map,
        Base::Counters | Base::Root(_) => Type::Any,
    };
    for step in &path.steps {
        let (index, wanted) = match &step.kind {
            StepKind::Key(_) => (Type::String, Type::Map),
            StepKind::Index(_) => (Type::Int, Type::List),
            StepKind::Computed(node) => match check(node)? {
                Type::String => (Type::String, Type::Map),
                number @ (Type::Int | Type::Number) => (number, Type::List),
                Type::Any if matches!(container, Type::List | Type::Map | Type::Any) => {
                    (Type::Any, container)
                }
                other => (other, Type::Any),
            },
        };
        if !matches!(index, Type::String | Type::Int | Type::Number | Type::Any) {
            let message = format!("a list takes an int and a map takes a string, not {index}");
            return Err(ExprError::new(TYPE, step.span, message));
        }
        if !container.may_be(&[wanted]) {
            let message = match container {
                Type::List | Type::Map => format!("{container} does not take {index} as its index"),
                _ => format!("{container} has no members"),
            };
            return Err(ExprError::new(TYPE, step.span, message));
        }
        container = Type::Any;
    }
    Ok(container)
}

fn check_comparison(comparison: Comparison, pair: &[Node; 2], span: Span) -> Result<Type, ExprError> {
    let (left, right) = (check(&pair[0])?, check(&pair[1])?);
    if matches!(comparison, Comparison::Equal | Comparison::NotEqual) {
        if left.may_match(right) {
            return Ok(Type::Bool);
        }
        let always = if comparison == Comparison::Equal { "never" } else { "always" };
        let message = format!(
            "{left} and {right} are {always} {}",
            if always == "never" { "equal" } else { "unequal" }
        );
        return Err(ExprError::new(TYPE, span, message));
    }
    let ordered = |found: Type| found.is_number() || found.may_be(&[Type::String, Type::Bool]);
    if ordered(left) && ordered(right) && left.may_match(right) {
        return Ok(Type::Bool);
    }
    Err(mismatch(span, comparison.symbol(), &[left, right]))
}

fn check_in(pair: &[Node; 2], span: Span) -> Result<Type, ExprError> {
    let (item, container) = (check(&pair[0])?, check(&pair[1])?);
    match container {
        Type::List | Type::Any => Ok(Type::Bool),
        Type::Map if item.may_be(&[Type::String]) => Ok(Type::Bool),
        // Nothing is in an empty map, whatever its keys would be.
        Type::Map if matches!(&pair[1].kind, Kind::Map(entries, _) if entries.is_empty()) => Ok(Type::Bool),
        Type::Map => {
            Err(ExprError::new(TYPE, span, format!("the keys of a map are strings, and this is {item}")))
        }
        Type::String => {
            Err(mismatch(span, "in", &[item, container]).hint("a part of a string is found by a.contains(b)"))
        }
        _ => Err(mismatch(span, "in", &[item, container])),
    }
}

fn check_choice(cases: &[(Node, Node)], last: &Node) -> Result<Type, ExprError> {
    let mut found = check(last)?;
    for (condition, chosen) in cases {
        check_bool(condition, "? :")?;
        found = found.or(check(chosen)?);
    }
    Ok(found)
}

fn check_chain(first: &Node, rest: &[(Operator, Node)]) -> Result<Type, ExprError> {
    let mut left = check(first)?;
    let mut span = first.span;
    let mut has_data = reads_data(first);
    for (operator, node) in rest {
        let right = check(node)?;
        span = span.to(node.span);
        has_data |= reads_data(node);
        left = match operator {
            Operator::Divide => check_division(left, right, has_data, span)?,
            _ => combine(*operator, left, right).ok_or_else(|| no_overload(*operator, left, right, span))?,
        };
    }
    Ok(left)
}

fn combine(operator: Operator, left: Type, right: Type) -> Option<Type> {
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

fn no_overload(operator: Operator, left: Type, right: Type, span: Span) -> ExprError {
    let error = mismatch(span, operator.symbol(), &[left, right]);
    match (left, right) {
        _ if operator == Operator::Remainder => error.hint("% is for ints"),
        (Type::Int, Type::Double) | (Type::Double, Type::Int) => error.hint("write 1.0 for 1, or double(a)"),
        _ => error,
    }
}

fn check_division(left: Type, right: Type, has_data: bool, span: Span) -> Result<Type, ExprError> {
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

fn check_call(function: Function, arguments: &[Node], span: Span) -> Result<Type, ExprError> {
    let found = arguments.iter().map(check).collect::<Result<Vec<Type>, ExprError>>()?;
    let wanted: &[Type] = match function {
        Function::Size => &[Type::String, Type::List, Type::Map],
        Function::Double | Function::Int => &[Type::Int, Type::Double, Type::Number, Type::String],
        Function::Div => &[Type::Int, Type::Number],
        Function::StartsWith | Function::EndsWith | Function::Contains => &[Type::String],
    };
    if !found.iter().all(|found| found.may_be(wanted)) {
        let error = mismatch(span, function.name(), &found);
        return Err(match function {
            Function::Div if found.contains(&Type::Double) => error.hint("doubles are divided by /"),
            Function::Contains => error.hint("membership in a list is written a in b"),
            _ => error,
        });
    }
    Ok(match function {
        Function::Size | Function::Int => Type::Int,
        Function::Double => Type::Double,
        Function::Div if found == [Type::Int, Type::Int] => Type::Int,
        Function::Div => Type::Number,
        Function::StartsWith | Function::EndsWith | Function::Contains => Type::Bool,
    })
}

/// Tells whether the value depends on anything but the text.
fn reads_data(node: &Node) -> bool {
    match &node.kind {
        Kind::Constant(..) => true,
        Kind::Path(path) | Kind::Has(path) if !matches!(path.base, Base::Node(_)) => true,
        _ => {
            let mut found = false;
            node.children(&mut |child| found |= reads_data(child));
            found
        }
    }
}

/// What an expression can look at.
#[derive(Debug, Default)]
pub(super) struct Reads {
    pub(super) state: Vec<Pointer>,
    pub(super) counters: bool,
    pub(super) roots: BTreeSet<Arc<str>>,
}

/// Collects what a tree can look at.
pub(super) fn reads(node: &Node) -> Reads {
    let mut reads = Reads::default();
    let mut places = BTreeSet::new();
    collect(node, &mut reads, &mut places);
    // A place below another that is read as well says nothing new.
    for place in places {
        if !reads.state.iter().any(|above| above.contains(&place)) {
            reads.state.push(place);
        }
    }
    reads
}

fn collect(node: &Node, reads: &mut Reads, places: &mut BTreeSet<Pointer>) {
    match &node.kind {
        Kind::Path(path) | Kind::Has(path) => collect_path(path, reads, places),
        Kind::In(pair) => {
            if let (Kind::Literal(Value::String(name)), Kind::Path(Path { base: Base::State, steps })) =
                (&pair[0].kind, &pair[1].kind)
                && steps.is_empty()
            {
                match &**name {
                    "counters" => reads.counters = true,
                    name => drop(places.insert(Pointer::of([&*dendrer_object::tag::stored_name(name)]))),
                }
                return;
            }
        }
        _ => {}
    }
    node.children(&mut |child| collect(child, reads, places));
}

fn collect_path(path: &Path, reads: &mut Reads, places: &mut BTreeSet<Pointer>) {
    match &path.base {
        Base::State => {
            // A removal from a list moves what follows, so that an index reads the whole list.
            let keys = path.steps.iter().map_while(|step| match &step.kind {
                StepKind::Key(key) => Some(&*key.stored),
                _ => None,
            });
            places.insert(Pointer::of(keys));
            // `state[x]` and `state` itself may be asked for the counters.
            reads.counters |= !matches!(path.steps.first().map(|step| &step.kind), Some(StepKind::Key(_)));
        }
        Base::Counters => reads.counters = true,
        Base::Root(name) => drop(reads.roots.insert(Arc::clone(name))),
        Base::Node(_) => {}
    }
}
