//! Decides a condition by one member of a root alone, whatever the rest of the environment is.

use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_object::Value;
use dendrer_object::marker::all;

use super::ast::{Base, Kind, Node, Path, StepKind};
use super::{Budget, Env, Expr, check, eval};

impl Expr {
    /// Evaluates a condition with one member of one root known and nothing else: `None` if something else can make a
    /// difference. `value` is the root with that member. A value that is decided here holds in every environment with this
    /// member.
    pub fn decided(&self, root: &str, member: &str, value: &Value) -> Option<bool> {
        let state = Value::object();
        let others = [(root, value)];
        let env = Env { state: &state, counters: None, others: &others };
        decide(&self.0.tree, root, member, &env)
    }
}

impl Expr {
    /// The texts that a member of a root is compared with, where it is used for nothing else; else `None`. Two values of the
    /// member that differ from all of these texts give the same result.
    pub fn texts_compared(&self, root: &str, member: &str) -> Option<BTreeSet<Arc<str>>> {
        let mut texts = BTreeSet::new();
        let mut is_only_compared = true;
        compared(&self.0.tree, root, member, &mut texts, &mut is_only_compared);
        is_only_compared.then_some(texts)
    }
}

fn compared(node: &Node, root: &str, member: &str, texts: &mut BTreeSet<Arc<str>>, only: &mut bool) {
    let is_member = |node: &Node| {
        let Kind::Path(path) = &node.kind else { return false };
        uses(path, root, member) == Some(true) && path.steps.len() == 1
    };
    let mut literals = |node: &Node| match &node.kind {
        Kind::Literal(Value::String(text)) => {
            texts.insert(Arc::clone(text));
            true
        }
        Kind::List(_, Some(Value::Array(items))) => {
            texts.extend(items.iter().filter_map(|item| item.as_str().map(Arc::from)));
            true
        }
        _ => false,
    };
    match &node.kind {
        Kind::Compare(how, pair) if how.is_equality() => {
            let [left, right] = &**pair;
            if is_member(left) && literals(right) || is_member(right) && literals(left) {
                return;
            }
        }
        Kind::In(pair) if is_member(&pair[0]) && literals(&pair[1]) => return,
        Kind::Path(path) | Kind::Has(path) if uses(path, root, member) != Some(false) => *only = false,
        Kind::Invoke(definition, _) if definition.reads.roots.contains_key(root) => *only = false,
        _ => {}
    }
    node.children(&mut |child| compared(child, root, member, texts, only));
}

/// Whether a path reads that member of the root; `None` where that is not in its text.
fn uses(path: &Path, root: &str, member: &str) -> Option<bool> {
    match (&path.base, path.steps.first().map(|step| &step.kind)) {
        (Base::Root(name), _) if **name != *root => Some(false),
        (Base::Root(_), Some(StepKind::Key(key))) => Some(*key.name == *member),
        (Base::Root(_), _) => None,
        _ => Some(false),
    }
}

fn decide(node: &Node, root: &str, member: &str, env: &Env<'_>) -> Option<bool> {
    let inner = |node: &Node| decide(node, root, member, env);
    match &node.kind {
        Kind::And(parts) => all(parts.iter().map(inner)),
        Kind::Or(parts) => all(parts.iter().map(|part| inner(part).map(|found| !found))).map(|found| !found),
        Kind::Not(part) => inner(part).map(|found| !found),
        Kind::Choose(cases, last) => {
            for (condition, then) in cases {
                match inner(condition) {
                    Some(true) => return inner(then),
                    Some(false) => {}
                    None => return None,
                }
            }
            inner(last)
        }
        _ if reads_only(node, root, member) => {
            eval::Machine::new(env, &mut Budget::default()).condition(node).ok()
        }
        _ => None,
    }
}

/// Whether a part reads that member of the root and nothing else.
fn reads_only(node: &Node, root: &str, member: &str) -> bool {
    let reads = check::reads(node);
    let place = format!("/{member}");
    reads.state.is_empty()
        && reads.counters == check::Counted::None
        && reads.roots.iter().all(|(name, places)| {
            &**name == root && !places.is_empty() && places.iter().all(|read| read.as_str() == place)
        })
}
