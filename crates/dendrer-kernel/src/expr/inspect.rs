//! Reads the text of an expression: its comparisons, whether it can be true, whether it includes another.
//!
//! For tools that read contracts, never for a verdict. Everything said here is sound and nothing is complete: what cannot
//! be told from the text alone is not told.

use std::cmp::Ordering;
use std::sync::Arc;

use dendrer_object::Value;
use dendrer_object::number::round_half_even;

use super::ast::{self, Base, Definition, Kind, Node, Path, StepKind};
use super::error::Span;
use super::functions::Function;
use super::{Budget, Env, Expr, print};

/// How many steps an inclusion may take; beyond, nothing is known.
const STEPS_MAX: usize = 2_000;

/// A comparison that a text makes, or a definition that it uses.
#[derive(Debug, Clone)]
pub struct NamedComparison {
    /// Its symbol, or `in`.
    pub symbol: &'static str,
    /// The places whose values are compared, as they are or in a sum.
    pub places: Vec<NamedPlace>,
    /// The values of the text they are compared with.
    pub literals: Vec<Literal>,
    /// Whether nothing else is in it, so that what is known of places and literals is all there is.
    pub is_whole: bool,
    /// Span in the text, or in that of the definition.
    pub span: Span,
    /// The definition that contains it, if one does.
    pub definition: Option<Arc<str>>,
}

/// A place that is named by names alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPlace {
    /// `state`, or another root.
    pub root: Arc<str>,
    /// The names below it.
    pub names: Vec<Arc<str>>,
}

/// A literal or a constant.
#[derive(Debug, Clone)]
pub struct Literal {
    /// The value.
    pub value: Value,
    /// How many decimals it was written with, if it is a number.
    pub decimals: Option<u8>,
    /// Span in the text.
    pub span: Span,
    /// The name of the constant, if it is one.
    pub constant: Option<Arc<str>>,
}

impl NamedPlace {
    /// Tells whether it is this one.
    pub fn is(&self, root: &str, names: &[&str]) -> bool {
        &*self.root == root
            && self.names.len() == names.len()
            && self.names.iter().zip(names).all(|(a, b)| **a == **b)
    }
}

impl Expr {
    /// Lists the comparisons of the text and of the definitions it uses, in order.
    pub fn comparisons(&self) -> Vec<NamedComparison> {
        let mut found = Vec::new();
        let mut seen = Vec::new();
        compared(&self.0.tree, Some(&self.0.text), None, &mut seen, &mut found);
        found
    }

    /// Tells whether no state and no transition can make it true, given what some places can only be.
    pub fn is_never(&self, given: &[(NamedPlace, Vec<Value>)]) -> bool {
        self.can_never_be(true, given)
    }

    /// As [`Expr::is_never`], for true or for false.
    pub fn can_never_be(&self, value: bool, given: &[(NamedPlace, Vec<Value>)]) -> bool {
        let mut fuel = STEPS_MAX;
        never(&Signed { node: &self.0.tree, negated: !value }, given, &mut fuel)
    }

    /// Tells whether it is known that whatever makes this true makes the other true. Either may be taken the other way
    /// round: what is asked then is whether it is false.
    pub fn includes(&self, negated: bool, other: &Expr, other_negated: bool) -> bool {
        let mut fuel = STEPS_MAX;
        let (a, b) =
            (Signed { node: &self.0.tree, negated }, Signed { node: &other.0.tree, negated: other_negated });
        implies(a, b, &mut fuel)
    }

    /// Writes the text in its one form, with the values of its constants and the texts of its definitions: equal texts
    /// mean the same in any pack.
    pub fn in_full(&self) -> String {
        in_full(&self.0.tree)
    }
}

fn compared(
    node: &Node,
    text: Option<&str>,
    definition: Option<&Arc<str>>,
    seen: &mut Vec<Arc<str>>,
    found: &mut Vec<NamedComparison>,
) {
    let sides: Option<(&'static str, Vec<&Node>)> = match &node.kind {
        Kind::Compare(comparison, pair) => Some((comparison.as_str(), pair.iter().collect())),
        Kind::In(pair) => Some(("in", pair.iter().collect())),
        _ => None,
    };
    if let Some((symbol, sides)) = sides {
        let definition = definition.cloned();
        let (places, literals) = (Vec::new(), Vec::new());
        let mut one =
            NamedComparison { symbol, places, literals, is_whole: true, span: node.span, definition };
        for side in sides {
            terms(side, text, &mut one);
        }
        found.push(one);
    }
    if let Kind::Invoke(called, _) = &node.kind
        && !seen.contains(&called.name)
    {
        seen.push(Arc::clone(&called.name));
        compared(&called.tree, None, Some(&called.name), seen, found);
    }
    node.children(&mut |child| compared(child, text, definition, seen, found));
}

/// Takes apart one side of a comparison: the terms of a sum.
fn terms(node: &Node, text: Option<&str>, into: &mut NamedComparison) {
    if let Some(place) = place_of(node) {
        into.places.push(place);
        return;
    }
    match &node.kind {
        Kind::Chain(first, rest) if rest.iter().all(|(operator, _)| operator.is_sum()) => {
            terms(first, text, into);
            rest.iter().for_each(|(_, term)| terms(term, text, into));
        }
        Kind::Negate(inner) => terms(inner, text, into),
        Kind::Call(Function::Abs, arguments) => arguments.iter().for_each(|term| terms(term, text, into)),
        Kind::List(items, _) => items.iter().for_each(|item| terms(item, text, into)),
        _ => match literal_of(node) {
            Some((value, constant)) => {
                let written = match (&node.kind, text) {
                    (Kind::Int(_) | Kind::Double(_), Some(text)) => written_decimals(text, node.span),
                    _ => None,
                };
                let decimals = written.or_else(|| decimals(&value));
                into.literals.push(Literal { value, decimals, span: node.span, constant });
            }
            None => into.is_whole = false,
        },
    }
}

/// How many decimals stand in the text; none where it is written with an exponent.
fn written_decimals(text: &str, span: Span) -> Option<u8> {
    let there = text.get(span.start as usize..span.end as usize)?;
    let plain = there.bytes().all(|c| c.is_ascii_digit() || c == b'.' || c == b'-');
    plain
        .then(|| there.split_once('.').map_or(0, |(_, behind)| u8::try_from(behind.len()).unwrap_or(u8::MAX)))
}

/// The fewest decimals that hold a number.
fn decimals(value: &Value) -> Option<u8> {
    let value = value.as_f64()?;
    (0..=17).find(|decimals| round_half_even(value, *decimals) == value).or(Some(u8::MAX))
}

/// The place that a node names, itself or by a definition without parameters.
fn place_of(node: &Node) -> Option<NamedPlace> {
    match &node.kind {
        Kind::Path(Path { base, steps }) => {
            let root: Arc<str> = match base {
                Base::State => "state".into(),
                Base::Root(name) => Arc::clone(name),
                _ => return None,
            };
            let names = steps.iter().map(|step| match &step.kind {
                StepKind::Key(key) => Some(Arc::clone(&key.name)),
                _ => None,
            });
            let names: Vec<Arc<str>> = names.collect::<Option<_>>()?;
            (!names.is_empty()).then_some(NamedPlace { root, names })
        }
        Kind::Invoke(definition, arguments) if arguments.is_empty() => place_of(&definition.tree),
        _ => None,
    }
}

fn literal_of(node: &Node) -> Option<(Value, Option<Arc<str>>)> {
    Some(match &node.kind {
        Kind::Literal(value) => (value.clone(), None),
        Kind::Int(value) => (Value::from(*value), None),
        Kind::Double(value) => (Value::from(*value), None),
        Kind::Constant(name, value) => (value.clone(), Some(Arc::clone(name))),
        Kind::List(_, Some(value)) => (value.clone(), None),
        _ => return None,
    })
}

/// A condition, or its opposite.
#[derive(Clone, Copy)]
struct Signed<'n> {
    node: &'n Node,
    negated: bool,
}

enum Shape<'n> {
    And(Vec<Signed<'n>>),
    Or(Vec<Signed<'n>>),
    Leaf(Signed<'n>),
}

impl<'n> Signed<'n> {
    /// Takes a condition apart, with every opposite moved inwards.
    fn shape(self) -> Shape<'n> {
        let Signed { node, negated } = self;
        let parts = |parts: &'n [Node]| parts.iter().map(|node| Signed { node, negated }).collect();
        match &node.kind {
            Kind::Not(inner) => Signed { node: inner, negated: !negated }.shape(),
            Kind::And(list) if !negated => Shape::And(parts(list)),
            Kind::Or(list) if negated => Shape::And(parts(list)),
            Kind::And(list) | Kind::Or(list) => Shape::Or(parts(list)),
            Kind::Invoke(definition, arguments) if arguments.is_empty() => {
                Signed { node: &definition.tree, negated }.shape()
            }
            _ => Shape::Leaf(self),
        }
    }

    /// Returns the values that a comparison with a value of the text allows, and for which operand.
    fn region(self) -> Option<(String, Region)> {
        let Signed { node, negated } = self;
        match &node.kind {
            Kind::Compare(comparison, pair) => {
                let (side, value, flipped) = match (literal_of(&pair[0]), literal_of(&pair[1])) {
                    (None, Some((value, _))) => (&pair[0], value, false),
                    (Some((value, _)), None) => (&pair[1], value, true),
                    (None, None) => return order(*comparison, pair, negated),
                    (Some(_), Some(_)) => return None,
                };
                Some((in_full(side), Region::of(*comparison, value, flipped, negated)?))
            }
            Kind::In(pair) => {
                let (values, _) = literal_of(&pair[1])?;
                let values: Vec<Value> = values.as_array()?.iter().cloned().collect();
                let region = if negated { Region::Without(values) } else { Region::Among(values) };
                Some((in_full(&pair[0]), region))
            }
            // A flag by itself.
            Kind::Path(_) => Some((in_full(node), Region::Among(vec![Value::from(!negated)]))),
            _ => None,
        }
    }
}

/// Which of two things that are compared can be the greater one: the sides in the order of their texts, and the signs of
/// their difference.
fn order(comparison: ast::Comparison, pair: &[Node; 2], negated: bool) -> Option<(String, Region)> {
    // Values without an order can be equal, so equality says nothing about order.
    if comparison.is_equality() {
        return None;
    }
    let (left, right) = (in_full(&pair[0]), in_full(&pair[1]));
    let (left, right, flipped) = if left <= right { (left, right, false) } else { (right, left, true) };
    let signs = [Ordering::Less, Ordering::Equal, Ordering::Greater].into_iter().filter(|found| {
        let found = if flipped { found.reverse() } else { *found };
        comparison.accepts(found) != negated
    });
    let signs = signs.map(|sign| Value::from(sign as i64)).collect();
    Some((format!("{left}\n<=>\n{right}"), Region::Among(signs)))
}

/// Which values something can have.
#[derive(Debug, Clone)]
enum Region {
    Among(Vec<Value>),
    Without(Vec<Value>),
    /// Numbers from one bound to another, each with whether it is among them.
    Between((f64, bool), (f64, bool)),
}

impl Region {
    fn of(comparison: ast::Comparison, value: Value, flipped: bool, negated: bool) -> Option<Region> {
        use ast::Comparison::*;
        match (comparison, negated) {
            (Equal, false) | (NotEqual, true) => return Some(Region::Among(vec![value])),
            (NotEqual, false) | (Equal, true) => return Some(Region::Without(vec![value])),
            _ => {}
        }
        let bound = value.as_f64()?;
        let above = matches!(comparison, Greater | GreaterEqual) != flipped;
        let with = matches!(comparison, LessEqual | GreaterEqual);
        let (above, with) = if negated { (!above, !with) } else { (above, with) };
        Some(match above {
            true => Region::Between((bound, with), (f64::INFINITY, false)),
            false => Region::Between((f64::NEG_INFINITY, false), (bound, with)),
        })
    }

    fn has(&self, value: &Value) -> bool {
        match self {
            Region::Among(values) => values.contains(value),
            Region::Without(values) => !values.contains(value),
            Region::Between((low, with_low), (high, with_high)) => value.as_f64().is_some_and(|value| {
                (value > *low || *with_low && value == *low)
                    && (value < *high || *with_high && value == *high)
            }),
        }
    }

    fn is_within(&self, other: &Region) -> bool {
        match (self, other) {
            (Region::Among(values), other) => values.iter().all(|value| other.has(value)),
            (Region::Without(out), Region::Without(more)) => more.iter().all(|value| out.contains(value)),
            (Region::Between(..), Region::Without(out)) => !out.iter().any(|value| self.has(value)),
            (Region::Between(low, high), Region::Between(other_low, other_high)) => {
                starts_later(*low, *other_low) && starts_later(turned(*high), turned(*other_high))
            }
            _ => false,
        }
    }

    /// Whether nothing is in both.
    fn is_apart(&self, other: &Region) -> bool {
        match (self, other) {
            (Region::Among(values), other) | (other, Region::Among(values)) => {
                !values.iter().any(|value| other.has(value))
            }
            (Region::Between(low, high), Region::Between(other_low, other_high)) => {
                ends_before(*high, *other_low) || ends_before(*other_high, *low)
            }
            _ => false,
        }
    }
}

fn turned((bound, with): (f64, bool)) -> (f64, bool) {
    (-bound, with)
}

fn starts_later((low, with): (f64, bool), (other, other_with): (f64, bool)) -> bool {
    match low.partial_cmp(&other) {
        Some(Ordering::Greater) => true,
        Some(Ordering::Equal) => !with || other_with,
        _ => false,
    }
}

fn ends_before((high, with): (f64, bool), (low, low_with): (f64, bool)) -> bool {
    match high.partial_cmp(&low) {
        Some(Ordering::Less) => true,
        Some(Ordering::Equal) => !(with && low_with),
        _ => false,
    }
}

fn spend(fuel: &mut usize) -> bool {
    *fuel = fuel.saturating_sub(1);
    *fuel > 0
}

fn implies(a: Signed<'_>, b: Signed<'_>, fuel: &mut usize) -> bool {
    if !spend(fuel) {
        return false;
    }
    match (a.shape(), b.shape()) {
        (Shape::Or(parts), _) => parts.into_iter().all(|part| implies(part, b, fuel)),
        (_, Shape::And(parts)) => parts.into_iter().all(|part| implies(a, part, fuel)),
        (Shape::And(parts), Shape::Or(others)) => {
            parts.iter().any(|part| implies(*part, b, fuel))
                || others.iter().any(|other| implies(a, *other, fuel))
        }
        (Shape::And(parts), Shape::Leaf(_)) => parts.into_iter().any(|part| implies(part, b, fuel)),
        (Shape::Leaf(_), Shape::Or(others)) => others.into_iter().any(|other| implies(a, other, fuel)),
        (Shape::Leaf(a), Shape::Leaf(b)) => leaf_implies(a, b),
    }
}

fn leaf_implies(a: Signed<'_>, b: Signed<'_>) -> bool {
    if a.negated == b.negated && in_full(a.node) == in_full(b.node) {
        return true;
    }
    if truth(a) == Some(false) || truth(b) == Some(true) {
        return true;
    }
    match (a.region(), b.region()) {
        (Some((what, region)), Some((other, wider))) => what == other && region.is_within(&wider),
        _ => false,
    }
}

/// The truth of what looks at nothing.
fn truth(condition: Signed<'_>) -> Option<bool> {
    let reads = super::check::reads(condition.node);
    if !reads.state.is_empty() || !reads.roots.is_empty() || reads.counters != super::check::Counted::None {
        return None;
    }
    // A variable has its value from outside of this node.
    if has_local(condition.node) {
        return None;
    }
    let nothing = Value::object();
    let (env, mut budget) = (Env::of(&nothing), Budget::new(10_000));
    let mut machine = super::eval::Machine::new(&env, &mut budget);
    machine.condition(condition.node).ok().map(|truth| truth != condition.negated)
}

fn has_local(node: &Node) -> bool {
    if let Kind::Path(path) | Kind::Has(path) = &node.kind
        && matches!(path.base, Base::Local(..))
    {
        return true;
    }
    let mut found = matches!(node.kind, Kind::Unknown);
    node.children(&mut |child| found |= has_local(child));
    found
}

fn never(condition: &Signed<'_>, given: &[(NamedPlace, Vec<Value>)], fuel: &mut usize) -> bool {
    if !spend(fuel) {
        return false;
    }
    match condition.shape() {
        Shape::Or(parts) => parts.iter().all(|part| never(part, given, fuel)),
        Shape::Leaf(leaf) => leaf_is_never(leaf, given),
        Shape::And(parts) => {
            if parts.iter().any(|part| never(part, given, fuel)) {
                return true;
            }
            let regions: Vec<_> = parts.iter().filter_map(|part| leaf_region(*part)).collect();
            regions.iter().enumerate().any(|(index, (what, region))| {
                let mut others = regions[..index].iter();
                spend(fuel) && others.any(|(other, wider)| what == other && region.is_apart(wider))
            })
        }
    }
}

fn leaf_region(part: Signed<'_>) -> Option<(String, Region)> {
    match part.shape() {
        Shape::Leaf(leaf) => leaf.region(),
        _ => None,
    }
}

fn leaf_is_never(leaf: Signed<'_>, given: &[(NamedPlace, Vec<Value>)]) -> bool {
    if truth(leaf) == Some(false) {
        return true;
    }
    let side = match &leaf.node.kind {
        Kind::Compare(_, pair) if literal_of(&pair[0]).is_some() => &pair[1],
        Kind::Compare(_, pair) | Kind::In(pair) => &pair[0],
        _ => return false,
    };
    let (Some(place), Some((_, region))) = (place_of(side), leaf.region()) else { return false };
    let can_be = given.iter().find(|(known, _)| *known == place).map(|(_, values)| values);
    can_be.is_some_and(|values| !values.iter().any(|value| region.has(value)))
}

fn in_full(node: &Node) -> String {
    let mut out = print::print(node);
    let mut seen = Vec::new();
    explain(node, true, &mut seen, &mut out);
    out
}

/// Adds what the text does not say: the values of constants, the texts of definitions, and which paths are taken as moments. `calculates`
/// tells whether what is around the node does more with a text than compare it for equality.
fn explain(node: &Node, calculates: bool, seen: &mut Vec<Arc<str>>, out: &mut String) {
    match &node.kind {
        Kind::Constant(name, value) if !seen.contains(name) => {
            seen.push(Arc::clone(name));
            out.push_str(&format!("\n{name} = {value}"));
        }
        Kind::Invoke(definition, _) if !seen.contains(&definition.name) => {
            seen.push(Arc::clone(&definition.name));
            let Definition { name, parameters, tree, .. } = &**definition;
            out.push_str(&format!("\n{name}({}) = {}", parameters.join(", "), print::print(tree)));
            explain(tree, true, seen, out);
        }
        _ => {}
    }
    if node.is_moment && calculates {
        out.push_str(&format!("\n{} is a moment", print::print(node)));
    }
    let is_plain = |node: &Node| matches!(node.kind, Kind::Path(_) | Kind::Literal(_));
    let calculates = match &node.kind {
        Kind::Compare(comparison, pair) => !comparison.is_equality() || !pair.iter().all(is_plain),
        Kind::In(_) => false,
        _ => true,
    };
    node.children(&mut |child| explain(child, calculates, seen, out));
}

#[cfg(test)]
mod tests {
    use super::super::{Scope, Truth};
    use super::*;

    /// Judges a condition on a state: true, false, or `None` for neither.
    fn judged(expr: &Expr, state: &Value) -> Option<bool> {
        match expr.holds(&Env::of(state), &mut Budget::default()) {
            Truth::True => Some(true),
            Truth::False => Some(false),
            _ => None,
        }
    }

    fn read(text: &str) -> Expr {
        let scope =
            Scope::new().constant("limit", Value::from(100_u64)).define("high", &[], "state.x > 5").unwrap();
        Expr::parse_condition(text, &scope).unwrap()
    }

    #[test]
    fn comparisons_name_places_and_what_they_are_compared_with() {
        let found = read("state.a - state.b.c >= 0.850 && high && state.kind in ['x', 'y']").comparisons();
        let texts: Vec<String> = found
            .iter()
            .map(|one| {
                let places: Vec<String> = one.places.iter().map(|place| place.names.join(".")).collect();
                let literals: Vec<String> =
                    one.literals.iter().map(|one| format!("{}~{:?}", one.value, one.decimals)).collect();
                format!("{} {} {}", places.join("+"), one.symbol, literals.join("+"))
            })
            .collect();
        assert_eq!(texts, ["a+b.c >= 0.85~Some(3)", "x > 5~Some(0)", "kind in \"x\"~None+\"y\"~None"]);
        assert!(found[0].is_whole && found[1].definition.as_deref() == Some("high"));
        assert!(!read("size(state.a) > 3").comparisons()[0].is_whole);
    }

    #[test]
    fn what_contradicts_itself_is_never_true() {
        for text in [
            "false",
            "1 > 2 && state.x > 3",
            "state.x > 5 && state.x < 3",
            "state.x > 5 && state.x <= 5",
            "state.kind == 'a' && state.kind == 'b'",
            "state.kind == 'a' && state.kind in ['b', 'c']",
            "high && state.x < 2",
            "(state.x == 1 && state.x == 2) || false",
            "state.kind == 'z'",
            "state.flag && !state.flag",
            "state.x > state.z && state.z >= state.x",
        ] {
            let place = NamedPlace { root: "state".into(), names: vec!["kind".into()] };
            let values = ["a", "b", "c"].map(Value::from).to_vec();
            assert!(read(text).is_never(&[(place, values)]), "{text}");
        }
        for text in [
            "state.x > 5",
            "state.x >= 5 && state.x <= 5",
            "state.kind != 'z'",
            "true",
            "state.x > 5 || state.x < 3",
        ] {
            assert!(!read(text).is_never(&[]), "{text}");
        }
    }

    /// Against the slow definition: no state out of many may satisfy one condition and not the other where it is said
    /// that the one includes the other.
    #[test]
    fn inclusion_is_sound_on_every_state_that_is_tried() {
        let conditions = [
            "state.x > 5",
            "state.x >= 5",
            "state.x < 5",
            "state.x <= 5",
            "state.x == 5",
            "state.x != 5",
            "5 < state.x",
            "!(state.x > 5)",
            "state.x > 6",
            "state.x in [5, 6]",
            "state.x in [6]",
            "state.x > 5 && state.y",
            "high",
            "state.x > 5 || state.y",
            "!(state.x > 5 || state.y)",
            "state.y",
            "!state.y",
            "true",
            "false",
            "state.x > 3 && state.x < 6",
            "state.x > limit",
            "state.x > 5 && (state.y || state.x > 100)",
            "state.x > state.z",
            "state.z <= state.x",
            "!(state.z < state.x)",
            "state.x == state.z",
        ];
        let states: Vec<Value> = [-1.0, 0.0, 4.5, 5.0, 5.5, 6.0, 7.0, 100.0, 101.0]
            .iter()
            .flat_map(|x| {
                [true, false].map(|y| {
                    Value::record([("x", Value::from(*x)), ("y", Value::from(y)), ("z", Value::from(5.5))])
                })
            })
            .collect();
        let mut known = 0;
        for (a, b) in conditions.iter().flat_map(|a| conditions.iter().map(move |b| (read(a), read(b)))) {
            for (negated, other_negated) in [(false, false), (true, false), (false, true), (true, true)] {
                let holds = states.iter().all(|state| {
                    judged(&a, state) != Some(!negated) || judged(&b, state) == Some(!other_negated)
                });
                let said = a.includes(negated, &b, other_negated);
                known += usize::from(said);
                assert!(!said || holds, "{:?} {negated} {:?} {other_negated}", a, b);
            }
        }
        assert!(known > 400, "{known}");
        assert!(read("state.x > 6").includes(false, &read("state.x > 5"), false));
        assert!(!read("state.x > 5").includes(false, &read("state.x > 6"), false));
    }

    #[test]
    fn a_definition_that_says_something_else_is_something_else() {
        let other = Scope::new().define("high", &[], "state.x > 7").unwrap();
        let other = Expr::parse_condition("high", &other).unwrap();
        assert_ne!(read("high").in_full(), other.in_full());
        assert!(other.includes(false, &read("high"), false) && !read("high").includes(false, &other, false));
    }
}
