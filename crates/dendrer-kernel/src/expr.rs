//! The language of predicates, guards, match rules and reduce rules: what a text means over a state.
//!
//! A subset of the Common Expression Language (CEL) with macros and bindings, the words `and`, `or` and `not` beside
//! `&&`, `||` and `!`, and a library of total functions; `docs/expressions.md` is its definition. [`Expr::parse`] checks a text once; [`Expr::evaluate`] and [`Expr::holds`] then read states in place. Never
//! does I/O, never looks at a clock, never recurses deeper than [`DEPTH_MAX`] and never takes more steps than its
//! [`Budget`] allows.
//!
//! Rule: a text that both CEL and dendrer accept means the same in both. A text for which that cannot be had is refused, or its
//! value is [`Truth::Uncertain`]; test `expr_cel_spec`.
//!
//! # Numbers
//!
//! Literals are ints and doubles and do not mix in arithmetic: `1 / 2` is 0, `1 + 0.5` is refused. A number that
//! comes from data (a state, a constant, an element of a list) has one kind. It acts as an int where it is
//! integral and as a double where it is not, follows the literal it meets (`state.n * 1.1`, `state.n + 1`), and so does every
//! result it took part in. Integer results are exact or an error. An integer beyond 2^53-1 in the data compares
//! exactly and makes arithmetic uncertain, unless `int(...)` or `double(...)` says how to take it. A double step is
//! one IEEE operation, from left to right; NaN and infinities are errors where CEL would carry them on. Comparison is
//! by value across all kinds: exact between integers, between doubles where one side is a double of CEL. `/` takes literals and what `double(...)` gives; `div(a, b)` is the
//! int division of CEL on integers from data.
//!
//! # Steps
//!
//! A node of the text costs one step each time it is evaluated: a literal, a list or map of literals, an operator
//! with all its operands of a chain, a call, and each name of a path. Beyond that text costs one step for every 16
//! bytes that are compared, joined, searched or counted, a list or map one step for every member that is
//! compared, copied or visited, and what is made eight steps. `docs/expressions.md` lists what each function costs.
//! Changing a price changes which expressions have a verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use dendrer_object::{Pointer, Value};

mod ast;
mod check;
mod compare;
mod comprehend;
mod decided;
mod error;
mod eval;
mod functions;
mod guards;
mod inspect;
mod lex;
mod library;
mod met;
mod names;
mod number;
mod parse;
mod pattern;
mod print;
mod rises;
#[cfg(test)]
mod tests;
mod time;
mod turns;
mod view;

use crate::counters::{Counters, Hidden};
use crate::names::{COMMITMENTS, SERVED_COMMITMENTS};
use crate::step::MARKERS_VERSION;
use check::Checker;
pub use error::{EvalError, ExprError, Span, Uncertain};
pub use inspect::{Literal, NamedComparison, NamedPlace};
pub use lex::TEXT_SIZE_MAX;
pub(crate) use time::{Until, is_datetime, until_of};
pub use time::{is_same_moment, milliseconds};
pub use turns::Way;

/// How deep the tree of an expression, and the parentheses of its text, may be nested.
pub const DEPTH_MAX: usize = 64;

/// How many nodes the tree of an expression may have.
pub const NODES_MAX: usize = 10_000;

/// How many steps one evaluation may take where the caller has no other idea.
pub const STEPS_MAX: u64 = 1_000_000;

/// Walks the names of the functions and macros of the language.
pub fn vocabulary() -> impl Iterator<Item = &'static str> {
    functions::Function::all().map(functions::Function::name).chain(functions::Macro::WORDS.iter().copied())
}

/// An expression that was parsed and checked. Immutable; cloning is cheap.
#[derive(Clone)]
pub struct Expr(Arc<Inner>);

struct Inner {
    text: Box<str>,
    canonical: Box<str>,
    tree: ast::Node,
    reads: check::Reads,
    /// Whether redacted values are compared by their tags.
    knows_markers: bool,
}

impl Expr {
    /// Parses and checks a text whose value may be of any type.
    pub fn parse(text: &str, scope: &Scope) -> Result<Expr, ExprError> {
        let (tree, _) = read(text, scope, &[], false).map_err(first)?;
        Ok(Expr::new(text, tree, scope))
    }

    /// Parses and checks a text that is to be true or false. Refuses what can never be, such as `"a"`.
    pub fn parse_condition(text: &str, scope: &Scope) -> Result<Expr, ExprError> {
        let (tree, _) = read(text, scope, &[], true).map_err(first)?;
        Ok(Expr::new(text, tree, scope))
    }

    /// As [`Expr::parse_condition`], of a text in the place of another one, which is shown.
    pub(crate) fn parse_condition_as(text: &str, shown: &str, scope: &Scope) -> Result<Expr, ExprError> {
        let (tree, _) = read(text, scope, &[], true).map_err(first)?;
        Ok(Expr::new(shown, tree, scope))
    }

    /// Returns all that is wrong with a text, in the order in which it was found: undeclared names, numbers
    /// of arguments, types. Reading stops at the first error of the grammar, so that one comes last. Empty for a text
    /// that [`Expr::parse`] takes.
    pub fn problems(text: &str, scope: &Scope) -> Vec<ExprError> {
        read(text, scope, &[], false).err().unwrap_or_default()
    }

    fn new(text: &str, tree: ast::Node, scope: &Scope) -> Expr {
        let canonical = print::print(&tree).into();
        let reads = check::reads(&tree);
        let knows_markers = scope.knows_markers;
        Expr(Arc::new(Inner { text: text.into(), canonical, tree, reads, knows_markers }))
    }

    /// Returns the text as it was written.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Returns the text in its one form: symbols for words, no needless blanks and parentheses, `.name` for
    /// `["name"]`. Equal forms mean the same, given the same constants and definitions. The form that digests are made of.
    pub fn canonical(&self) -> &str {
        &self.0.canonical
    }

    /// Returns the places of the state it can look at, sorted, none below another. A write that overlaps none of
    /// them ([`Pointer::overlaps`]) changes no value of the expression. An index into a list reads the list.
    pub fn read_set(&self) -> &[Pointer] {
        &self.0.reads.state
    }

    /// Tells whether it can look at `state.counters`, which no write of the state shows.
    pub fn reads_counters(&self) -> bool {
        self.0.reads.counters != check::Counted::None
    }

    /// Lists the counters that it looks at; none if it can look at any.
    pub fn counters_read(&self) -> impl Iterator<Item = &str> {
        let names = match &self.0.reads.counters {
            check::Counted::Some(names) => Some(names),
            check::Counted::None | check::Counted::All => None,
        };
        names.into_iter().flatten().map(|name| &**name)
    }

    /// Tells whether it can look at this counter.
    pub fn reads_counter(&self, name: &str) -> bool {
        match &self.0.reads.counters {
            check::Counted::None => false,
            check::Counted::Some(names) => names.iter().any(|known| **known == *name),
            check::Counted::All => true,
        }
    }

    /// Returns what keeps the counters that it can look at from being known, if anything does.
    pub fn hidden_counter<'c>(&self, counters: &'c Counters) -> Option<&'c Hidden> {
        match &self.0.reads.counters {
            check::Counted::None => None,
            check::Counted::Some(names) => counters.hidden(Some(names.iter().map(|name| &**name))),
            check::Counted::All => counters.hidden(None::<[&str; 0]>),
        }
    }

    /// Returns the places in the text of indexes below zero, which no list has: `state.items[-1]` is always missing.
    pub(crate) fn negative_indexes(&self) -> Vec<Span> {
        let mut found = Vec::new();
        self.0.tree.negative_indexes(&mut found);
        found
    }

    /// Walks the names of the roots beside `state` that it can look at.
    pub fn roots(&self) -> impl Iterator<Item = &str> {
        self.0.reads.roots.keys().map(|name| &**name)
    }

    /// Returns the places of a root beside `state` that it can look at, as [`Expr::read_set`] does for the state.
    pub fn reads_of(&self, root: &str) -> &[Pointer] {
        self.0.reads.roots.get(root).map_or(&[], |places| places)
    }

    fn machine<'a, 'b>(&self, env: &Env<'a>, budget: &'b mut Budget) -> eval::Machine<'a, 'b> {
        eval::Machine { knows_markers: self.0.knows_markers, ..eval::Machine::new(env, budget) }
    }

    /// Returns the value over an environment.
    pub fn evaluate(&self, env: &Env<'_>, budget: &mut Budget) -> Result<Value, EvalError> {
        let mut machine = self.machine(env, budget);
        machine.result(&self.0.tree)
    }

    /// As [`Expr::evaluate`], for a value that other expressions read and nobody else: a time stays a time, and a text that is
    /// declared a `datetime` stays a moment. It must not be written anywhere.
    pub(crate) fn evaluate_for_rules(&self, env: &Env<'_>, budget: &mut Budget) -> Result<Value, EvalError> {
        self.machine(env, budget).inner_result(&self.0.tree)
    }

    /// Tells whether it is true over an environment.
    pub fn holds(&self, env: &Env<'_>, budget: &mut Budget) -> Truth {
        let mut machine = self.machine(env, budget);
        match machine.condition(&self.0.tree) {
            Ok(true) => Truth::True,
            Ok(false) => Truth::False,
            Err(EvalError::Uncertain(why)) => Truth::Uncertain(why),
            Err(EvalError::Exhausted) => Truth::Exhausted,
        }
    }
}

/// The value of `state.commitments` in a run that has no commitment.
static NO_COMMITMENTS: LazyLock<Value> = LazyLock::new(Value::object);

/// Parses a text in which some variables are known, and has it checked.
fn read(
    text: &str,
    scope: &Scope,
    locals: &[Arc<str>],
    condition: bool,
) -> Result<(ast::Node, check::Known), Vec<ExprError>> {
    let with_text = |errors: Vec<ExprError>| errors.into_iter().map(|error| error.of(text)).collect();
    let (tree, mut errors) = parse::parse(text, scope, locals);
    let Some(mut tree) = tree else { return Err(with_text(errors)) };
    let mut checker = Checker::new(scope, vec![check::Known::anything(); locals.len()]);
    let found = if condition { checker.condition(&mut tree) } else { checker.check(&mut tree) };
    errors.extend(checker.finish());
    if errors.is_empty() { Ok((tree, found)) } else { Err(with_text(errors)) }
}

fn first(mut errors: Vec<ExprError>) -> ExprError {
    errors.swap_remove(0)
}

impl std::fmt::Debug for Expr {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Expr({})", self.canonical())
    }
}

/// The truth of a condition, which may be unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Truth {
    /// It is true.
    True,
    /// It is false.
    False,
    /// It met something it cannot judge.
    Uncertain(Box<Uncertain>),
    /// The budget ran out, which says nothing about the state and is never a verdict.
    Exhausted,
}

/// The names a text may use.
#[derive(Debug, Clone)]
pub struct Scope {
    state: bool,
    roots: BTreeSet<Arc<str>>,
    constants: BTreeMap<Arc<str>, Value>,
    fields: Option<BTreeSet<Arc<str>>>,
    /// The members of roots that are objects of a known form.
    members: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// The roots that are the state at another time.
    states: BTreeSet<Arc<str>>,
    definitions: BTreeMap<Arc<str>, Arc<ast::Definition>>,
    precisions: Vec<check::Precision>,
    /// The places of the state whose texts are moments.
    datetimes: Vec<check::Places>,
    /// The roots with a member that is a moment, each with the token of its places.
    timed: BTreeMap<Arc<str>, Arc<str>>,
    /// Whether redacted values are compared by their tags.
    knows_markers: bool,
}

impl Default for Scope {
    fn default() -> Scope {
        Scope::new()
    }
}

impl Scope {
    /// Knows `state` and nothing else.
    pub fn new() -> Scope {
        Scope {
            state: true,
            roots: BTreeSet::new(),
            constants: BTreeMap::new(),
            fields: None,
            members: BTreeMap::new(),
            states: BTreeSet::new(),
            definitions: BTreeMap::new(),
            precisions: Vec::new(),
            datetimes: Vec::new(),
            timed: BTreeMap::new(),
            knows_markers: true,
        }
    }

    /// Knows nothing: for rules over other roots alone, such as `source` and `target`.
    pub fn without_state() -> Scope {
        Scope { state: false, ..Scope::new() }
    }

    /// Goes by the rules of a version of the kernel: those of the run that an expression was recorded in.
    #[must_use]
    pub fn by_rules(mut self, version: u64) -> Scope {
        self.knows_markers = version >= MARKERS_VERSION;
        self
    }

    /// Adds a root, whose value comes with the environment. Wins over a constant of the same name.
    #[must_use]
    pub fn root(mut self, name: &str) -> Scope {
        self.roots.insert(name.into());
        self
    }

    /// Whether a root is known.
    pub(crate) fn has_root(&self, name: &str) -> bool {
        self.roots.contains(name)
    }

    /// As [`Scope::root`], for an object that has these members and no others: what is there may lack some of them.
    #[must_use]
    pub fn root_of<'n>(mut self, name: &str, members: impl IntoIterator<Item = &'n str>) -> Scope {
        self.members.insert(name.into(), members.into_iter().map(Arc::from).collect());
        self.root(name)
    }

    /// Adds a member to a root of [`Scope::root_of`]: a text that is a moment, as of a field that is declared a `datetime`.
    #[must_use]
    pub fn moment_of(mut self, name: &str, member: &str) -> Scope {
        self.members.entry(name.into()).or_default().insert(member.into());
        // No place of the state begins so.
        let token = format!("\0{name}");
        let scope = self.datetime(&Pointer::of([&*token, member]));
        self = scope;
        self.timed.insert(name.into(), token.into());
        self
    }

    /// As [`Scope::root`], for the state at another time: what is declared of the state holds for it too.
    #[must_use]
    pub fn root_of_state(mut self, name: &str) -> Scope {
        self.states.insert(name.into());
        self.root(name)
    }

    /// Adds a constant. Its value becomes part of every expression that is parsed here.
    #[must_use]
    pub fn constant(mut self, name: &str, value: Value) -> Scope {
        self.constants.insert(name.into(), value);
        self
    }

    /// Declares the top-level fields of the state. From then on any other is an error, except those that the
    /// kernel itself writes (`memory`, `policy`, `counters`, ...).
    #[must_use]
    pub fn fields<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Scope {
        self.fields.get_or_insert_default().extend(names.into_iter().map(Arc::from));
        self
    }

    /// Adds a named expression, called as `name(a, b)`, or as `name` where it has no parameters. It may use its
    /// parameters and what this scope knows already, earlier definitions included, so that none can call itself.
    /// Arguments are evaluated once, before it. A span of the error is one of `text`; an error of the name or of a
    /// parameter has the span of its beginning.
    pub fn define(mut self, name: &str, parameters: &[&str], text: &str) -> Result<Scope, ExprError> {
        self.check_new_name(name, "a definition")?;
        for (index, parameter) in parameters.iter().enumerate() {
            check_variable(parameter, "a parameter")?;
            if parameters[..index].contains(parameter) {
                let message = format!("the parameter `{}` stands twice", error::shown(parameter));
                return Err(ExprError::new(error::NAME, Span::default(), message));
            }
        }
        let parameters: Vec<Arc<str>> = parameters.iter().map(|name| Arc::from(*name)).collect();
        let (tree, known) = read(text, &self, &parameters, false).map_err(first)?;
        let name: Arc<str> = name.into();
        let reads = check::reads(&tree);
        let definition = ast::Definition { name: Arc::clone(&name), parameters, tree, known, reads };
        self.definitions.insert(name, Arc::new(definition));
        Ok(self)
    }

    /// Says how many decimals the numbers at some places of the state have. `*` in the path matches any index or
    /// name. A literal that is compared with such a field must have no more decimals than it; later declarations win.
    #[must_use]
    pub fn precision(mut self, path: &Pointer, decimals: u32) -> Scope {
        self.precisions.push(check::Precision::new(path, decimals));
        self
    }

    /// Says that the texts at some places of the state are moments, as RFC 3339 writes them: they are ordered and
    /// calculated with as such, and equal as texts. `*` in the path matches any index or name.
    #[must_use]
    pub fn datetime(mut self, path: &Pointer) -> Scope {
        self.datetimes.push(check::Places::new(path));
        self
    }

    fn check_new_name(&self, name: &str, what: &str) -> Result<(), ExprError> {
        check_variable(name, what)?;
        let taken = parse::is_function(name) || self.names().any(|known| known == name);
        if taken {
            let message = format!("`{}` has a meaning already", error::shown(name));
            return Err(ExprError::new(error::NAME, Span::default(), message));
        }
        Ok(())
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let state = self.state.then_some("state");
        let declared = self.roots.iter().chain(self.constants.keys()).chain(self.definitions.keys());
        state.into_iter().chain(declared.map(|name| &**name))
    }
}

/// Checks that a name can be that of a variable.
fn check_variable(name: &str, what: &str) -> Result<(), ExprError> {
    if names::is_name(name) {
        return Ok(());
    }
    let message = format!("`{}` cannot be the name of {what}", error::shown(name));
    Err(ExprError::new(error::NAME, Span::default(), message).hint(
        "a name has letters, digits and _, does not begin with a digit, and is no word of the language",
    ))
}

/// The values that an expression is evaluated over.
#[derive(Debug, Clone, Copy)]
pub struct Env<'a> {
    /// The state.
    pub state: &'a Value,
    /// The value of `state.counters`. A member of that name in the state itself is never read.
    pub counters: Option<&'a Value>,
    /// The values of the other roots of the scope.
    pub others: &'a [(&'a str, &'a Value)],
}

impl<'a> Env<'a> {
    /// A state alone.
    pub fn of(state: &'a Value) -> Env<'a> {
        Env { state, counters: None, others: &[] }
    }

    /// The value of `state.commitments`: what is served with the counters, or a field of the state where a run has no commitments.
    fn commitments(&self) -> Option<&'a Value> {
        let served = self.counters.and_then(|counters| counters.get(SERVED_COMMITMENTS));
        served.or_else(|| self.state.get(COMMITMENTS)).or_else(|| self.counters.map(|_| &*NO_COMMITMENTS))
    }
}

/// Steps that evaluations may still take, and the places that they looked at, if the caller asked for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    left: u64,
    seen: Option<Vec<Pointer>>,
    /// In how many macros a member is visited now.
    depth: u32,
    is_vacuous: bool,
    /// Whether a time was made, which may be part of a result from there on.
    has_times: bool,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget::new(STEPS_MAX)
    }
}

impl Budget {
    /// Allows so many steps.
    pub fn new(steps: u64) -> Budget {
        Budget { left: steps, seen: None, depth: 0, is_vacuous: false, has_times: false }
    }

    /// Whether `all`, `exists` or `exists_one` was asked of a list or map without members, outside of any other macro.
    pub fn is_vacuous(&self) -> bool {
        self.is_vacuous
    }

    /// Notes the places of the state that are looked at, and those of a root named `before`.
    #[must_use]
    pub(crate) fn watching(self) -> Budget {
        Budget { seen: Some(Vec::new()), ..self }
    }

    /// Notes a place, if the caller asked for places.
    pub(crate) fn look(&mut self, place: impl FnOnce() -> Pointer) {
        if let Some(seen) = &mut self.seen {
            seen.push(place());
        }
    }

    /// Says that of the place that was noted last only this member was looked at.
    pub(crate) fn look_below(&mut self, name: &str) {
        if let Some(last) = self.seen.as_mut().and_then(|seen| seen.last_mut()) {
            let above: Vec<_> = last.tokens().map(|token| token.into_owned()).collect();
            *last = Pointer::of(above.iter().map(String::as_str).chain([name]));
        }
    }

    /// Returns what was looked at since the last time this was asked.
    pub(crate) fn take_seen(&mut self) -> Vec<Pointer> {
        self.seen.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Returns how many steps are left.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Returns whether the caller asked for the places looked at.
    fn is_watched(&self) -> bool {
        self.seen.is_some()
    }

    /// Pays for several steps that only together make sense, or for none, and tells which.
    fn spend_at_once(&mut self, steps: u64) -> bool {
        let left = self.left.checked_sub(steps);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }

    /// Pays before a step is taken. A step that cannot be paid uses the budget up, so nothing cheaper slips in after it.
    fn spend(&mut self, steps: u64) -> Result<(), EvalError> {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = 0;
                Err(EvalError::Exhausted)
            }
        }
    }
}
