//! Finds which way a value can move in the course of a run, given which way the fields of the state can.
//!
//! [`super::rises`] knows only what the kernel alone writes. A pack of `fold/1` is the only writer of its fields, so more
//! can be known of them: a list that every rule appends to, a flag that every rule sets to true. A result holds
//! between two ticks that rules made; a field that a fork sets begins anew.

use super::Expr;
use super::ast::{Base, Comparison, Comprehension, Kind, Node, Path, StepKind};
use super::functions::{Function, Macro};

/// Which way something can move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Not at all.
    Fixed,
    /// From false to true, to greater numbers, to longer lists that begin the same.
    Up,
    /// The other way.
    Down,
    /// Any way.
    Any,
}

impl Way {
    /// Returns the way of a value that moves with both.
    #[must_use]
    pub fn and(self, other: Way) -> Way {
        match (self, other) {
            (Way::Fixed, way) | (way, Way::Fixed) => way,
            (a, b) if a == b => a,
            _ => Way::Any,
        }
    }

    /// The other way.
    #[must_use]
    pub fn turned(self) -> Way {
        match self {
            Way::Up => Way::Down,
            Way::Down => Way::Up,
            way => way,
        }
    }
}

impl Expr {
    /// Returns which way the value can move, given which way the top-level fields of the state can.
    pub fn way(&self, of_field: &dyn Fn(&str) -> Way) -> Way {
        way(&self.0.tree, of_field)
    }

    /// Tells whether the value is a number that is never below zero, or a text, list or flag.
    pub fn is_never_negative(&self) -> bool {
        match &self.0.tree.kind {
            Kind::Int(value) => *value >= 0,
            Kind::Double(value) => *value >= 0.0,
            Kind::Constant(_, value) => value.as_f64().is_some_and(|value| value >= 0.0),
            Kind::Call(Function::Size | Function::Abs, _) => true,
            _ => false,
        }
    }
}

type Fields<'f> = &'f dyn Fn(&str) -> Way;

fn way(node: &Node, fields: Fields<'_>) -> Way {
    let all = |nodes: &[Node]| nodes.iter().map(|node| way(node, fields)).fold(Way::Fixed, Way::and);
    let only_if_fixed = || {
        let mut found = Way::Fixed;
        node.children(&mut |child| found = found.and(way(child, fields)));
        if found == Way::Fixed { Way::Fixed } else { Way::Any }
    };
    match &node.kind {
        Kind::Literal(_) | Kind::Int(_) | Kind::Double(_) | Kind::Constant(..) => Way::Fixed,
        Kind::Path(path) => of_path(path, fields),
        Kind::Has(path) => match of_path(path, fields) {
            Way::Fixed => Way::Fixed,
            _ => Way::Any,
        },
        Kind::Not(inner) | Kind::Negate(inner) => way(inner, fields).turned(),
        Kind::And(parts) | Kind::Or(parts) => all(parts),
        Kind::Compare(comparison, pair) => {
            let (left, right) = (way(&pair[0], fields), way(&pair[1], fields));
            match comparison {
                Comparison::Greater | Comparison::GreaterEqual => left.and(right.turned()),
                Comparison::Less | Comparison::LessEqual => left.turned().and(right),
                Comparison::Equal | Comparison::NotEqual => match left.and(right) {
                    Way::Fixed => Way::Fixed,
                    _ => Way::Any,
                },
            }
        }
        Kind::In(pair) => match (way(&pair[0], fields), way(&pair[1], fields)) {
            (Way::Fixed, list @ (Way::Fixed | Way::Up)) => list,
            _ => Way::Any,
        },
        Kind::Chain(first, rest) if rest.iter().all(|(operator, _)| operator.is_sum()) => {
            let step = |so_far: Way, (operator, node): &(super::number::Operator, Node)| {
                let next = way(node, fields);
                so_far.and(if operator.as_str() == "-" { next.turned() } else { next })
            };
            rest.iter().fold(way(first, fields), step)
        }
        Kind::Call(Function::Size | Function::Distinct, arguments) => match all(arguments) {
            // A list that becomes shorter need not begin the same.
            Way::Down => Way::Any,
            way => way,
        },
        Kind::Call(Function::Min | Function::Max, arguments) if arguments.len() > 1 => all(arguments),
        Kind::Bind(_, pair) if way(&pair[0], fields) == Way::Fixed => way(&pair[1], fields),
        Kind::Invoke(definition, arguments) if all(arguments) == Way::Fixed => way(&definition.tree, fields),
        Kind::Comprehend(comprehension) => of_comprehension(comprehension, fields),
        Kind::Unknown => Way::Any,
        _ => only_if_fixed(),
    }
}

/// A part of a field moves any way its field does, and not as the field: what a list holds may be anything.
fn of_path(path: &Path, fields: Fields<'_>) -> Way {
    let mut found = match &path.base {
        Base::State => match path.steps.split_first() {
            Some((first, rest)) => match (&first.kind, rest.is_empty()) {
                (StepKind::Key(key), true) => fields(&key.name),
                (StepKind::Key(key), false) if fields(&key.name) == Way::Fixed => Way::Fixed,
                _ => Way::Any,
            },
            None => Way::Any,
        },
        // The counters that no transition lowers are known to `rises`; here they only lose precision.
        Base::Counters | Base::Commitments | Base::Root(_) => Way::Any,
        // A binder binds a name to a value that does not move, or that is not analysed.
        Base::Local(..) => Way::Fixed,
        Base::Node(node) if path.steps.is_empty() => way(node, fields),
        Base::Node(node) => match way(node, fields) {
            Way::Fixed => Way::Fixed,
            _ => Way::Any,
        },
    };
    for step in &path.steps {
        if let StepKind::Computed(node) = &step.kind
            && way(node, fields) != Way::Fixed
        {
            found = Way::Any;
        }
    }
    found
}

fn of_comprehension(comprehension: &Comprehension, fields: Fields<'_>) -> Way {
    let Comprehension { kind, range, filter, body, .. } = comprehension;
    let (range, body) = (way(range, fields), way(body, fields));
    if filter.as_ref().is_some_and(|filter| way(filter, fields) != Way::Fixed) {
        return Way::Any;
    }
    match (kind, range) {
        (_, Way::Down | Way::Any) => Way::Any,
        (Macro::Exists, range) => range.and(body),
        (Macro::All, range) => range.turned().and(body),
        (Macro::Filter | Macro::Map | Macro::TransformList, range) if body == Way::Fixed => range,
        (_, Way::Fixed) if body == Way::Fixed => Way::Fixed,
        _ => Way::Any,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scope;
    use super::*;

    fn check(text: &str, expected: Way) {
        let expr = Expr::parse(text, &Scope::new()).unwrap();
        let fields = |name: &str| match name {
            "up" | "flag" | "list" => Way::Up,
            "down" => Way::Down,
            "fixed" => Way::Fixed,
            _ => Way::Any,
        };
        assert_eq!(expr.way(&fields), expected, "{text}");
    }

    #[test]
    fn what_moves_one_way_is_told_from_what_moves_any_way() {
        check("state.flag", Way::Up);
        check("!state.flag", Way::Down);
        check("state.up > state.fixed", Way::Up);
        check("state.up - state.down > 3", Way::Up);
        check("state.fixed.limit >= state.up", Way::Down);
        check("size(state.list) > 3 || state.flag", Way::Up);
        check("'x' in state.list", Way::Up);
        check("state.list.exists(x, x.cost > 3)", Way::Up);
        check("state.list.all(x, x.cost > 3)", Way::Down);
        check("size(state.list.filter(x, x.ok)) <= 2", Way::Down);
        check("size(distinct(state.list)) > 2", Way::Up);
        check("state.fixed == 3", Way::Fixed);
        check("3 > 2", Way::Fixed);
        for text in [
            "state.other > 3",
            "state.up == 3",
            "state.up + state.down > 3",
            "state.list[0] == 3",
            "state.list.exists(x, x > state.other)",
            "has(state.list)",
            "state.flag ? state.up > 3 : false",
            "state[state.fixed] > 3",
            "state.up * -1 > 3",
            "state.counters.tokens_used > 3",
        ] {
            check(text, Way::Any);
        }
    }
}
