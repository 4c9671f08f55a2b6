//! The tree of an expression after parsing: names are resolved, chains of one kind are flat.
//!
//! Rule: no tree is built that is deeper than [`super::DEPTH_MAX`], so every recursion over one, dropping it included,
//! fits on any stack. Chains (`a + b - c`, `a && b && c`, `a ? b : c ? d : e`, `a.b.c[0]`) are one node each and may be as
//! long as the limit on nodes allows.

use std::cmp::Ordering;
use std::sync::Arc;

use dendrer_object::{Digest, Value, tag};

use super::check::{Known, Reads};
use super::error::Span;
use super::functions::{Function, Macro};
use super::number::Operator;
use super::pattern::Pattern;

#[derive(Debug)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) span: Span,
    /// 1 for a leaf.
    pub(super) depth: u8,
    /// Whether it is a path to a text that the pack declares a `datetime`. Set by the check.
    pub(super) is_moment: bool,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// `null`, `true`, `false` or a string.
    Literal(Value),
    Int(i64),
    Double(f64),
    /// A constant of the scope, with the value it had when the expression was checked.
    Constant(Arc<str>, Value),
    Path(Path),
    Has(Path),
    Not(Box<Node>),
    Negate(Box<Node>),
    /// Two or more operands.
    And(Vec<Node>),
    Or(Vec<Node>),
    Compare(Comparison, Box<[Node; 2]>),
    In(Box<[Node; 2]>),
    /// `+` and `-`, or `*`, `/` and `%`: one or more steps, taken from left to right.
    Chain(Box<Node>, Vec<(Operator, Node)>),
    /// Conditions with what they choose, then what is left.
    Choose(Vec<(Node, Node)>, Box<Node>),
    Call(Function, Vec<Node>),
    /// A text and the literal or constant that the pattern was compiled from.
    Matches(Box<[Node; 2]>, Pattern),
    /// A variable, its value, and the node in which it is known.
    Bind(Arc<str>, Box<[Node; 2]>),
    Comprehend(Box<Comprehension>),
    /// A definition of the scope with its arguments.
    Invoke(Arc<Definition>, Vec<Node>),
    /// The second field is the whole list where every part of it is a literal.
    List(Vec<Node>, Option<Value>),
    Map(Vec<(Node, Node)>, Option<Value>),
    /// Takes the place of a node with an error, so that parsing can go on. Never evaluated.
    Unknown,
}

#[derive(Debug)]
pub(super) struct Path {
    pub(super) base: Base,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug)]
pub(super) enum Base {
    State,
    /// `state.counters`, which the environment serves.
    Counters,
    /// `state.commitments`, which the environment serves beside the counters.
    Commitments,
    Root(Arc<str>),
    /// A variable of the text: how many are bound outside it in the same text, and its name.
    Local(usize, Arc<str>),
    Node(Box<Node>),
}

/// A macro over the members of a list or a map.
#[derive(Debug)]
pub(super) struct Comprehension {
    pub(super) kind: Macro,
    /// One variable, or two: the index or key, and the member.
    pub(super) variables: Vec<Arc<str>>,
    pub(super) range: Node,
    /// Which members are taken, where that can stand before the body.
    pub(super) filter: Option<Node>,
    pub(super) body: Node,
}

/// A named expression of a scope. Its parameters are the outermost variables of its tree.
#[derive(Debug)]
pub(super) struct Definition {
    pub(super) name: Arc<str>,
    pub(super) parameters: Vec<Arc<str>>,
    pub(super) tree: Node,
    pub(super) known: Known,
    pub(super) reads: Reads,
}

#[derive(Debug)]
pub(super) struct Step {
    pub(super) kind: StepKind,
    pub(super) span: Span,
}

#[derive(Debug)]
pub(super) enum StepKind {
    Key(Key),
    Index(u64),
    /// An index that is computed.
    Computed(Box<Node>),
}

/// A name as written, as stored, and hashed for the lookup.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) name: Arc<str>,
    pub(super) stored: Arc<str>,
    pub(super) digest: Digest,
}

impl Key {
    pub(super) fn new(name: &str) -> Key {
        let stored = tag::stored_name(name);
        Key { name: name.into(), digest: Digest::of(stored.as_bytes()), stored }
    }
}

dendrer_object::words! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(super) enum Comparison {
        Equal = "==",
        NotEqual = "!=",
        Less = "<",
        LessEqual = "<=",
        Greater = ">",
        GreaterEqual = ">=",
    }
}

impl Comparison {
    /// Tells whether it asks for the same or not the same, and for no order.
    pub(super) fn is_equality(self) -> bool {
        matches!(self, Comparison::Equal | Comparison::NotEqual)
    }

    /// Tells whether two values in this order compare so.
    pub(super) fn accepts(self, order: Ordering) -> bool {
        // A bit each for less, equal and greater, so that nothing jumps.
        let accepted = match self {
            Comparison::Equal => 0b010,
            Comparison::NotEqual => 0b101,
            Comparison::Less => 0b001,
            Comparison::LessEqual => 0b011,
            Comparison::Greater => 0b100,
            Comparison::GreaterEqual => 0b110,
        };
        (accepted >> (order as i8 + 1)) & 1 == 1
    }
}

impl Node {
    pub(super) fn new(kind: Kind, span: Span, depth: u8) -> Node {
        Node { kind, span, depth, is_moment: false }
    }

    /// Adds the places of indexes below zero.
    pub(super) fn negative_indexes(&self, found: &mut Vec<Span>) {
        if let Kind::Path(path) | Kind::Has(path) = &self.kind {
            let below_zero = path.steps.iter().filter(|step| match &step.kind {
                StepKind::Computed(node) => matches!(node.kind, Kind::Int(at) if at < 0),
                _ => false,
            });
            found.extend(below_zero.map(|step| step.span));
        }
        self.children(&mut |child| child.negative_indexes(found));
    }

    /// Calls `visit` with each child.
    pub(super) fn children<'n>(&'n self, visit: &mut dyn FnMut(&'n Node)) {
        match &self.kind {
            Kind::Literal(_) | Kind::Int(_) | Kind::Double(_) | Kind::Constant(..) | Kind::Unknown => {}
            Kind::Path(path) | Kind::Has(path) => path.children(visit),
            Kind::Not(inner) | Kind::Negate(inner) => visit(inner),
            Kind::And(parts) | Kind::Or(parts) | Kind::List(parts, _) => {
                parts.iter().for_each(visit);
            }
            Kind::Call(_, arguments) | Kind::Invoke(_, arguments) => arguments.iter().for_each(visit),
            Kind::Compare(_, pair) | Kind::In(pair) | Kind::Matches(pair, _) | Kind::Bind(_, pair) => {
                pair.iter().for_each(visit);
            }
            Kind::Comprehend(comprehension) => {
                visit(&comprehension.range);
                comprehension.filter.iter().for_each(&mut *visit);
                visit(&comprehension.body);
            }
            Kind::Chain(first, rest) => {
                visit(first);
                rest.iter().for_each(|(_, node)| visit(node));
            }
            Kind::Choose(cases, last) => {
                cases.iter().for_each(|(condition, chosen)| {
                    visit(condition);
                    visit(chosen);
                });
                visit(last);
            }
            Kind::Map(entries, _) => entries.iter().for_each(|(key, value)| {
                visit(key);
                visit(value);
            }),
        }
    }
}

impl Path {
    fn children<'n>(&'n self, visit: &mut dyn FnMut(&'n Node)) {
        if let Base::Node(node) = &self.base {
            visit(node);
        }
        for step in &self.steps {
            if let StepKind::Computed(node) = &step.kind {
                visit(node);
            }
        }
    }
}
