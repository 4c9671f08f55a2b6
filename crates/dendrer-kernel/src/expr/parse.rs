//! Turns tokens into a tree and resolves every name against the scope.
//!
//! Never looks at types; [`super::check`] does. If CEL has a form that the language leaves out, the error names that form and
//! not its punctuation.

use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_object::{Object, Value};

use super::ast::{Base, Comparison, Comprehension, Definition, Key, Kind, Node, Path, Step, StepKind};
use super::error::{ExprError, LIMIT, NAME, SYNTAX, Span, TYPE, UNSUPPORTED, shown};
use super::functions::{Function, Macro};
use super::lex::{self, Kind as Lexeme, Token};
use super::number::Operator;
use super::pattern::{Pattern, PatternError};
use super::print::Level;
use super::{DEPTH_MAX, NODES_MAX, Scope, names};
use crate::counters;
use crate::names::{COMMITMENTS, STATE_FIELDS};

/// Parses a whole text in which some variables are known. The tree is returned together with errors that do not end
/// the parsing; an error of the grammar is the last one, and leaves no tree.
pub(super) fn parse(text: &str, scope: &Scope, locals: &[Arc<str>]) -> (Option<Node>, Vec<ExprError>) {
    let tokens = match lex::tokens(text) {
        Ok(tokens) => tokens,
        Err(error) => return (None, vec![error]),
    };
    let mut parser = Parser {
        tokens,
        at: 0,
        scope,
        locals: locals.to_vec(),
        nodes: 0,
        nesting: 0,
        loose_not: None,
        errors: Vec::new(),
    };
    let tree = parser.expression().and_then(|node| match parser.peek() {
        Lexeme::End => Ok(node),
        _ => Err(parser.unexpected("an operator or the end")),
    });
    let mut errors = parser.errors;
    let tree = tree.map_err(|error| errors.push(error)).ok();
    (tree, errors)
}

struct Parser<'t, 's> {
    tokens: Vec<Token<'t>>,
    at: usize,
    scope: &'s Scope,
    /// The variables that are bound here, the innermost last.
    locals: Vec<Arc<str>>,
    nodes: usize,
    nesting: usize,
    /// Span of the word `not` in front of the operand just read, if there is one.
    loose_not: Option<Span>,
    errors: Vec<ExprError>,
}

/// How many errors of one text are worth telling.
const ERRORS_MAX: usize = 20;

impl<'t> Parser<'t, '_> {
    fn peek(&self) -> &Lexeme<'t> {
        &self.tokens[self.at].kind
    }

    fn span(&self) -> Span {
        self.tokens[self.at].span
    }

    fn advance(&mut self) -> Span {
        let span = self.span();
        // The last token is the end, and it is never passed.
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        span
    }

    fn is(&self, symbol: &str) -> bool {
        matches!(self.peek(), Lexeme::Symbol(found) if *found == symbol)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Lexeme::Name(found) if *found == word)
    }

    fn eat(&mut self, symbol: &str) -> bool {
        let found = self.is(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, symbol: &str) -> Result<Span, ExprError> {
        if self.is(symbol) { Ok(self.advance()) } else { Err(self.unexpected(&format!("`{symbol}`"))) }
    }

    fn unexpected(&self, wanted: &str) -> ExprError {
        let found = match self.peek() {
            Lexeme::Name(name) | Lexeme::Quoted(name) => format!("`{}`", shown(name)),
            Lexeme::Int(_) | Lexeme::Double(_) => "a number".to_owned(),
            Lexeme::Text(_) => "a string".to_owned(),
            Lexeme::Symbol(symbol) => format!("`{symbol}`"),
            Lexeme::End => "the end".to_owned(),
        };
        ExprError::new(SYNTAX, self.span(), format!("expected {wanted}, found {found}"))
    }

    fn build(&mut self, kind: Kind, span: Span) -> Result<Node, ExprError> {
        let node = Node::new(kind, span, 1);
        let mut below = 0;
        node.children(&mut |child| below = below.max(child.depth));
        let own = match &node.kind {
            Kind::Path(path) | Kind::Has(path) => 1 + path.steps.len(),
            _ => 1,
        };
        if let Kind::Invoke(definition, _) = &node.kind {
            below = below.max(definition.tree.depth);
        }
        self.count(node.kind, span, below, own)
    }

    /// Makes a node of a kind whose children are at most `below` deep and that adds `own` to the number of nodes.
    fn count(&mut self, kind: Kind, span: Span, below: u8, own: usize) -> Result<Node, ExprError> {
        self.nodes += own;
        if self.nodes > NODES_MAX {
            let message = format!("the expression has more than {NODES_MAX} nodes");
            return Err(ExprError::new(LIMIT, span, message));
        }
        if usize::from(below) >= DEPTH_MAX {
            return Err(too_deep(span));
        }
        Ok(Node::new(kind, span, below + 1))
    }

    /// Keeps an error and continues as if there was an operand.
    fn recover(&mut self, error: ExprError) -> Result<Node, ExprError> {
        let span = error.span;
        self.note(error);
        self.build(Kind::Unknown, span)
    }

    fn note(&mut self, error: ExprError) {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(error);
        }
    }

    fn expression(&mut self) -> Result<Node, ExprError> {
        self.nesting += 1;
        if self.nesting > DEPTH_MAX {
            return Err(too_deep(self.span()));
        }
        let node = self.choice()?;
        self.nesting -= 1;
        Ok(node)
    }

    fn choice(&mut self) -> Result<Node, ExprError> {
        let first = self.binary(Level::Or)?;
        if self.is("?") { self.choose(first) } else { Ok(first) }
    }

    fn choose(&mut self, mut last: Node) -> Result<Node, ExprError> {
        let mut cases = Vec::new();
        while self.eat("?") {
            let chosen = self.binary(Level::Or)?;
            self.expect(":")?;
            cases.push((last, chosen));
            last = self.binary(Level::Or)?;
        }
        let Some((first, _)) = cases.first() else { return Ok(last) };
        let span = first.span.to(last.span);
        if let Kind::Choose(inner, innermost) = last.kind {
            cases.extend(inner);
            last = *innermost;
        }
        self.build(Kind::Choose(cases, Box::new(last)), span)
    }

    // Nested parentheses pay for every function between two of them with stack. So there is one function for all
    // levels of operators, and what comes behind an operand is read in a function of its own.

    /// Reads operands joined by operators that bind at least as tightly as `level`.
    fn binary(&mut self, level: Level) -> Result<Node, ExprError> {
        let left = self.unary()?;
        self.joined(left, level)
    }

    fn joined(&mut self, mut left: Node, level: Level) -> Result<Node, ExprError> {
        while let Some(infix) = self.infix()? {
            let found = infix.level();
            if found < level {
                break;
            }
            if found >= Level::Relation {
                self.refuse_loose_not()?;
            }
            self.advance();
            let right = self.binary(found.next())?;
            left = self.join(infix, left, right)?;
        }
        Ok(left)
    }

    fn infix(&self) -> Result<Option<Infix>, ExprError> {
        Ok(Some(match self.peek() {
            Lexeme::Symbol("||") | Lexeme::Name("or") => Infix::Or,
            Lexeme::Symbol("&&") | Lexeme::Name("and") => Infix::And,
            Lexeme::Symbol("==") => Infix::Compare(Comparison::Equal),
            Lexeme::Symbol("!=") => Infix::Compare(Comparison::NotEqual),
            Lexeme::Symbol("<") => Infix::Compare(Comparison::Less),
            Lexeme::Symbol("<=") => Infix::Compare(Comparison::LessEqual),
            Lexeme::Symbol(">") => Infix::Compare(Comparison::Greater),
            Lexeme::Symbol(">=") => Infix::Compare(Comparison::GreaterEqual),
            Lexeme::Name("in") => Infix::In,
            Lexeme::Symbol("+") => Infix::Chain(Operator::Add),
            Lexeme::Symbol("-") => Infix::Chain(Operator::Subtract),
            Lexeme::Symbol("*") => Infix::Chain(Operator::Multiply),
            Lexeme::Symbol("/") => Infix::Chain(Operator::Divide),
            Lexeme::Symbol("%") => Infix::Chain(Operator::Remainder),
            Lexeme::Name("not") => {
                return Err(self.unexpected("an operator").hint("absence is written !(x in list)"));
            }
            _ => return Ok(None),
        }))
    }

    /// Makes one node of two operands. A chain on the left takes the right one in, whether it stood in parentheses
    /// or not: the order of evaluation and the outcome are the same.
    fn join(&mut self, infix: Infix, left: Node, right: Node) -> Result<Node, ExprError> {
        let span = left.span.to(right.span);
        let below = right.depth.max(left.depth - 1);
        match (infix, left.kind) {
            (Infix::And, Kind::And(mut parts)) => {
                parts.extend(parts_of(right, infix));
                self.count(Kind::And(parts), span, below, 0)
            }
            (Infix::Or, Kind::Or(mut parts)) => {
                parts.extend(parts_of(right, infix));
                self.count(Kind::Or(parts), span, below, 0)
            }
            (Infix::Chain(operator), Kind::Chain(first, mut rest)) if is_sum(&rest) == operator.is_sum() => {
                rest.push((operator, right));
                self.count(Kind::Chain(first, rest), span, below, 1)
            }
            (infix, kind) => {
                let left = Node::new(kind, left.span, left.depth);
                let kind = match infix {
                    Infix::And => Kind::And(std::iter::once(left).chain(parts_of(right, infix)).collect()),
                    Infix::Or => Kind::Or(std::iter::once(left).chain(parts_of(right, infix)).collect()),
                    Infix::Compare(comparison) => Kind::Compare(comparison, Box::new([left, right])),
                    Infix::In => Kind::In(Box::new([left, right])),
                    Infix::Chain(operator) => Kind::Chain(Box::new(left), vec![(operator, right)]),
                };
                self.build(kind, span)
            }
        }
    }

    /// `!a == b` is CEL and means `(!a) == b`; `not a == b` is what people write who mean the opposite.
    fn refuse_loose_not(&self) -> Result<(), ExprError> {
        match self.loose_not {
            None => Ok(()),
            Some(span) => Err(ExprError::new(SYNTAX, span, "`not` in front of this can be read in two ways")
                .hint("write not (a == b), or (not a) == b")),
        }
    }

    fn unary(&mut self) -> Result<Node, ExprError> {
        if self.is("!") || self.is("-") || self.is_word("not") {
            return self.signed();
        }
        let node = self.member(None)?;
        self.loose_not = None;
        Ok(node)
    }

    fn signed(&mut self) -> Result<Node, ExprError> {
        let mut signs = Vec::new();
        let mut word = None;
        loop {
            let negates = match self.peek() {
                Lexeme::Symbol("!") | Lexeme::Name("not") => false,
                Lexeme::Symbol("-") => true,
                _ => break,
            };
            if self.is_word("not") {
                word = word.or(Some(self.span()));
            }
            signs.push((negates, self.advance()));
            if signs.len() > DEPTH_MAX {
                return Err(too_deep(self.span()));
            }
        }
        let sign = match (signs.last(), self.peek()) {
            // The minus is part of the literal, as in CEL: the smallest int has no positive.
            (Some((true, span)), Lexeme::Int(_) | Lexeme::Double(_)) => Some(*span),
            _ => None,
        };
        if sign.is_some() {
            signs.pop();
        }
        let node = self.member(sign)?;
        self.loose_not = word;
        self.apply(signs, node)
    }

    fn apply(&mut self, signs: Vec<(bool, Span)>, mut node: Node) -> Result<Node, ExprError> {
        for (negates, sign) in signs.into_iter().rev() {
            let span = sign.to(node.span);
            node =
                if negates { self.negate(node, span)? } else { self.build(Kind::Not(Box::new(node)), span)? };
        }
        Ok(node)
    }

    fn negate(&mut self, node: Node, span: Span) -> Result<Node, ExprError> {
        match node.kind {
            Kind::Int(value) if value != i64::MIN => Ok(Node { kind: Kind::Int(-value), span, ..node }),
            Kind::Double(value) => Ok(Node { kind: Kind::Double(negative(value)), span, ..node }),
            kind => {
                let inner = Node::new(kind, node.span, node.depth);
                self.build(Kind::Negate(Box::new(inner)), span)
            }
        }
    }

    fn member(&mut self, sign: Option<Span>) -> Result<Node, ExprError> {
        let start = sign.unwrap_or(self.span());
        let node = self.primary(sign)?;
        self.suffixes(node, start)
    }

    /// Reads the steps and calls behind a value.
    fn suffixes(&mut self, mut node: Node, start: Span) -> Result<Node, ExprError> {
        let mut steps = Vec::new();
        loop {
            let span = self.span();
            if self.is("{") {
                return Err(ExprError::unsupported(start.to(span), "building a message"));
            } else if self.eat("[") {
                self.refuse_optional()?;
                let index = self.expression()?;
                let end = self.expect("]")?;
                steps.push(Step { kind: step(index), span: span.to(end) });
            } else if self.eat(".") {
                self.refuse_optional()?;
                let name = self.selector()?;
                let end = self.advance();
                if self.is("(") {
                    node = self.finish_path(node, std::mem::take(&mut steps), start.to(span))?;
                    node = self.method(node, &name, end, start)?;
                } else {
                    steps.push(Step { kind: StepKind::Key(Key::new(&name)), span: span.to(end) });
                }
            } else {
                let end = steps.last().map_or(node.span, |step| step.span);
                return self.finish_path(node, steps, start.to(end));
            }
        }
    }

    fn refuse_optional(&self) -> Result<(), ExprError> {
        if self.is("?") { Err(ExprError::unsupported(self.span(), "optional selection")) } else { Ok(()) }
    }

    fn selector(&self) -> Result<Arc<str>, ExprError> {
        match self.peek() {
            Lexeme::Name(name) if names::KEYWORDS.contains(name) => {
                Err(self.unexpected("a name").hint(format!("a member of that name is written [\"{name}\"]")))
            }
            Lexeme::Name(name) | Lexeme::Quoted(name) => Ok((*name).into()),
            _ => Err(self.unexpected("a name")),
        }
    }

    /// Puts steps behind what they start from.
    fn finish_path(&mut self, node: Node, mut steps: Vec<Step>, span: Span) -> Result<Node, ExprError> {
        if steps.is_empty() {
            return Ok(node);
        }
        let path = match node.kind {
            Kind::Path(mut path) => {
                path.steps.append(&mut steps);
                path
            }
            kind => Path { base: Base::Node(Box::new(Node::new(kind, node.span, node.depth))), steps },
        };
        let path = self.resolve_field(path);
        self.build(Kind::Path(path), span)
    }

    /// Sends `state.counters` to the environment and holds a first field against the declared ones.
    fn resolve_field(&mut self, mut path: Path) -> Path {
        if let (Base::Root(root), Some(Step { kind: StepKind::Key(key), span })) =
            (&path.base, path.steps.first())
            && let Some(members) = self.scope.members.get(root)
            && !members.contains(&key.name)
        {
            let known = || members.iter().map(|member| &**member);
            let hint = match names::nearest(&key.name, known()) {
                Some(near) => format!("did you mean {root}.{near}"),
                None => format!("{root} has {}", listed(known())),
            };
            let message = format!("{root} has no `{}`", shown(&key.name));
            let error = ExprError::new(NAME, *span, message).hint(hint);
            self.note(error);
            return path;
        }
        let now = matches!(path.base, Base::State);
        let base = match &path.base {
            Base::State => "state",
            Base::Root(root) if self.scope.states.contains(root) => root,
            _ => return path,
        };
        let Some(Step { kind: StepKind::Key(key), span }) = path.steps.first() else { return path };
        if now && &*key.name == "counters" {
            path.base = Base::Counters;
            path.steps.remove(0);
            return path;
        }
        let is_field = self.scope.fields.as_ref().is_some_and(|declared| declared.contains(&key.name));
        if now && &*key.name == COMMITMENTS && !is_field {
            path.base = Base::Commitments;
            path.steps.remove(0);
            return path;
        }
        let Some(declared) = &self.scope.fields else { return path };
        // Counters are told of the state as it is, and of no other.
        let built_in = || STATE_FIELDS.into_iter().filter(|name| now || *name != "counters");
        if declared.contains(&key.name) || built_in().any(|name| *name == *key.name) {
            return path;
        }
        let error =
            ExprError::new(NAME, *span, format!("no field `{}` is declared in state", shown(&key.name)));
        let known = declared.iter().map(|name| &**name).chain(built_in());
        let error = if now && counters::NAMES.contains(&&*key.name) {
            error.hint(format!("did you mean state.counters.{}", key.name))
        } else {
            match names::nearest(&key.name, known) {
                Some(near) => error.hint(format!("did you mean {base}.{near}")),
                None => error,
            }
        };
        self.note(error);
        path
    }

    fn method(&mut self, receiver: Node, name: &str, at: Span, start: Span) -> Result<Node, ExprError> {
        if let Some(kind) = Macro::named(name) {
            return self.comprehension(kind, receiver, start);
        }
        let Some(function) = Function::all().find(|f| f.is_method() && f.name() == name) else {
            let error = unknown_function(name, at, Function::is_method);
            return self.skip_call(error);
        };
        let mut arguments = vec![receiver];
        let end = self.arguments(&mut arguments)?;
        self.call(function, arguments, start.to(end))
    }

    /// Reads the arguments of a macro.
    fn comprehension(&mut self, kind: Macro, range: Node, start: Span) -> Result<Node, ExprError> {
        let open = self.expect("(")?;
        let misformed = |error: ExprError| error.hint(format!("write {}", kind.form()));
        let outside = self.locals.len();
        let mut variables = vec![self.variable(open).map_err(misformed)?];
        self.expect(",").map_err(misformed)?;
        let is_pair = matches!(
            (self.peek(), self.tokens.get(self.at + 1).map(|token| &token.kind)),
            (Lexeme::Name(_), Some(Lexeme::Symbol(",")))
        );
        if kind.is_transform() || (kind.is_test() && is_pair) {
            variables.push(self.variable(open).map_err(misformed)?);
            self.expect(",").map_err(misformed)?;
        }
        if let [one, other] = &variables[..]
            && one == other
        {
            return Err(ExprError::new(NAME, open, format!("the variable `{}` stands twice", shown(one))));
        }
        self.locals.extend(variables.iter().cloned());
        let mut body = self.expression()?;
        let mut filter = None;
        if kind.takes_filter() && self.eat(",") {
            filter = Some(body);
            body = self.expression()?;
        }
        self.locals.truncate(outside);
        let end = self.expect(")").map_err(misformed)?;
        let comprehension = Comprehension { kind, variables, range, filter, body };
        self.build(Kind::Comprehend(Box::new(comprehension)), start.to(end))
    }

    /// Reads the name of a variable.
    fn variable(&mut self, before: Span) -> Result<Arc<str>, ExprError> {
        match *self.peek() {
            Lexeme::Name(name) if names::is_name(name) && name != "cel" => {
                self.advance();
                Ok(name.into())
            }
            Lexeme::Name("cel") => Err(ExprError::unsupported(self.span(), "the library `cel`")),
            Lexeme::End => Err(ExprError::new(SYNTAX, before, "expected the name of a variable")),
            _ => Err(self.unexpected("the name of a variable")),
        }
    }

    /// Reads `.bind(x, value, body)` behind `cel`.
    fn bind(&mut self, start: Span) -> Result<Node, ExprError> {
        let misformed = |error: ExprError| error.hint("write cel.bind(x, value, expression)");
        self.expect(".")?;
        self.advance();
        let open = self.expect("(")?;
        let name = self.variable(open).map_err(misformed)?;
        self.expect(",").map_err(misformed)?;
        let value = self.expression()?;
        self.expect(",").map_err(misformed)?;
        self.locals.push(Arc::clone(&name));
        let body = self.expression()?;
        self.locals.pop();
        let end = self.expect(")").map_err(misformed)?;
        self.build(Kind::Bind(name, Box::new([value, body])), start.to(end))
    }

    fn is_bind(&self) -> bool {
        let ahead = |at: usize| self.tokens.get(self.at + at).map(|token| &token.kind);
        self.is(".")
            && matches!(ahead(1), Some(Lexeme::Name("bind")))
            && matches!(ahead(2), Some(Lexeme::Symbol("(")))
    }

    /// Compiles the pattern of `matches`.
    fn pattern(&mut self, arguments: Vec<Node>, span: Span) -> Result<Node, ExprError> {
        let pair: Box<[Node; 2]> = match <[Node; 2]>::try_from(arguments) {
            Ok(pair) => Box::new(pair),
            Err(_) => return self.build(Kind::Unknown, span),
        };
        let at = pair[1].span;
        let text = match &pair[1].kind {
            Kind::Literal(Value::String(text)) | Kind::Constant(_, Value::String(text)) => text,
            Kind::Unknown => return self.build(Kind::Unknown, span),
            _ => {
                let error = ExprError::unsupported(at, "a pattern that is not a literal or a constant");
                return self.recover(error.hint("a pattern is checked before there is a state"));
            }
        };
        match Pattern::new(text) {
            Ok(pattern) => self.build(Kind::Matches(pair, pattern), span),
            Err(PatternError::Syntax(why)) => {
                self.recover(ExprError::new(SYNTAX, at, format!("this is no pattern: {why}")))
            }
            Err(PatternError::Limit(why)) => self.recover(ExprError::new(LIMIT, at, why)),
            Err(PatternError::Unsupported(what)) => self.recover(ExprError::unsupported(at, what)),
        }
    }

    /// Reads the arguments of a function that is not there, in which nothing else is then worth telling.
    fn skip_call(&mut self, error: ExprError) -> Result<Node, ExprError> {
        if error.code == UNSUPPORTED {
            return Err(error);
        }
        let known = self.errors.len();
        self.note(error);
        let span = self.span();
        let end = self.arguments(&mut Vec::new())?;
        self.errors.truncate(known + 1);
        self.build(Kind::Unknown, span.to(end))
    }

    fn call(&mut self, function: Function, arguments: Vec<Node>, span: Span) -> Result<Node, ExprError> {
        if !function.takes_count(arguments.len()) {
            let message = format!("`{}` has another number of arguments", function.name());
            let error = ExprError::new(TYPE, span, message).hint(format!("write {}", function.form()));
            return self.recover(error);
        }
        match function {
            Function::Matches => self.pattern(arguments, span),
            _ => self.build(Kind::Call(function, arguments), span),
        }
    }

    /// Calls a definition of the scope.
    fn invoke(&mut self, definition: &Arc<Definition>, span: Span) -> Result<Node, ExprError> {
        let mut arguments = Vec::new();
        let called = self.is("(");
        let end = if called { self.arguments(&mut arguments)? } else { span };
        let parameters = &definition.parameters;
        if called == parameters.is_empty() || arguments.len() != parameters.len() {
            let message = format!("`{}` takes {} arguments", definition.name, parameters.len());
            let form = match parameters.is_empty() {
                true => definition.name.to_string(),
                false => format!("{}({})", definition.name, parameters.join(", ")),
            };
            let error = ExprError::new(TYPE, span.to(end), message).hint(format!("write {form}"));
            return self.recover(error);
        }
        self.build(Kind::Invoke(Arc::clone(definition), arguments), span.to(end))
    }

    /// Reads `( ... )`.
    fn arguments(&mut self, into: &mut Vec<Node>) -> Result<Span, ExprError> {
        self.expect("(")?;
        if self.is(")") {
            return Ok(self.advance());
        }
        loop {
            into.push(self.expression()?);
            if !self.eat(",") {
                return self.expect(")");
            }
        }
    }

    fn primary(&mut self, sign: Option<Span>) -> Result<Node, ExprError> {
        if !self.eat("(") {
            return self.value(sign);
        }
        let inner = self.expression()?;
        self.expect(")")?;
        Ok(inner)
    }

    fn value(&mut self, sign: Option<Span>) -> Result<Node, ExprError> {
        let span = self.span();
        match self.peek().clone() {
            Lexeme::Int(magnitude) => {
                let value = if sign.is_some() {
                    0i64.checked_sub_unsigned(magnitude)
                } else {
                    magnitude.try_into().ok()
                };
                self.advance();
                let value = value.ok_or_else(|| {
                    ExprError::new(SYNTAX, span, "the integer is outside the range of 64 bits")
                })?;
                self.build(Kind::Int(value), sign.unwrap_or(span).to(span))
            }
            Lexeme::Double(value) => {
                self.advance();
                let value = if sign.is_some() { negative(value) } else { value };
                self.build(Kind::Double(value), sign.unwrap_or(span).to(span))
            }
            Lexeme::Text(text) => {
                self.advance();
                self.build(Kind::Literal(Value::from(text)), span)
            }
            Lexeme::Name(name) => {
                self.advance();
                self.name(name, span)
            }
            Lexeme::Symbol("[") => self.list(span),
            Lexeme::Symbol("{") => self.map(span),
            Lexeme::Symbol(".") => Err(ExprError::unsupported(span, "a name with a leading dot")),
            Lexeme::Symbol("?") => Err(ExprError::unsupported(span, "an optional element")),
            Lexeme::Quoted(_) | Lexeme::Symbol(_) | Lexeme::End => Err(self.unexpected("a value")),
        }
    }

    fn name(&mut self, name: &'t str, span: Span) -> Result<Node, ExprError> {
        match name {
            "true" | "false" => return self.build(Kind::Literal(Value::Bool(name == "true")), span),
            "null" => return self.build(Kind::Literal(Value::Null), span),
            _ => {}
        }
        if names::RESERVED.contains(&name) || names::OPERATOR_WORDS.contains(&name) || name == "in" {
            return Err(ExprError::new(
                SYNTAX,
                span,
                format!("`{name}` is a word of the language, not a name"),
            ));
        }
        if self.is("(") {
            return match self.scope.definitions.get(name) {
                Some(definition) => self.invoke(definition, span),
                None => self.global(name, span),
            };
        }
        if name == "cel" && self.is_bind() {
            return self.bind(span);
        }
        if let Some(slot) = self.locals.iter().rposition(|local| **local == *name) {
            let base = Base::Local(slot, Arc::clone(&self.locals[slot]));
            return self.build(Kind::Path(Path { base, steps: Vec::new() }), span);
        }
        if name == "state" && self.scope.state {
            return self.build(Kind::Path(Path { base: Base::State, steps: Vec::new() }), span);
        }
        if let Some(root) = self.scope.roots.get(name) {
            return self
                .build(Kind::Path(Path { base: Base::Root(Arc::clone(root)), steps: Vec::new() }), span);
        }
        if let Some(definition) = self.scope.definitions.get(name) {
            return self.invoke(definition, span);
        }
        if let Some((name, value)) = self.scope.constants.get_key_value(name) {
            return self.build(Kind::Constant(Arc::clone(name), value.clone()), span);
        }
        if self.is("{") {
            return Err(ExprError::unsupported(span, "building a message"));
        }
        match self.unknown_name(name, span) {
            error if error.code == UNSUPPORTED => Err(error),
            error => self.recover(error),
        }
    }

    fn unknown_name(&self, name: &str, span: Span) -> ExprError {
        if let Some(what) = names::unsupported_name(name) {
            return ExprError::unsupported(span, what);
        }
        let error = ExprError::new(NAME, span, format!("there is no `{}` here", shown(name)));
        let is_field = self.scope.fields.as_ref().is_some_and(|fields| fields.contains(name));
        if self.scope.state && (is_field || STATE_FIELDS.contains(&name)) {
            return error.hint(format!("did you mean state.{name}"));
        }
        if self.scope.state && counters::NAMES.contains(&name) {
            return error.hint(format!("did you mean state.counters.{name}"));
        }
        let known = || self.locals.iter().map(|local| &**local).chain(self.scope.names());
        match names::nearest(name, known()) {
            Some(near) => error.hint(format!("did you mean {near}")),
            None => error.hint(format!("the names here are {}", listed(known()))),
        }
    }

    fn unknown_global(&self, name: &str, span: Span) -> ExprError {
        let error = unknown_function(name, span, Function::is_global);
        let defined = self.scope.definitions.values().filter(|found| !found.parameters.is_empty());
        match names::nearest(name, defined.map(|found| &*found.name)) {
            Some(near) if error.code == NAME => error.hint(format!("did you mean {near}")),
            _ => error,
        }
    }

    fn global(&mut self, name: &str, span: Span) -> Result<Node, ExprError> {
        if name == "has" {
            return self.has(span);
        }
        let Some(function) = Function::all().find(|f| f.is_global() && f.name() == name) else {
            let error = self.unknown_global(name, span);
            return self.skip_call(error);
        };
        let mut arguments = Vec::new();
        let end = self.arguments(&mut arguments)?;
        self.call(function, arguments, span.to(end))
    }

    fn has(&mut self, span: Span) -> Result<Node, ExprError> {
        let mut arguments = Vec::new();
        let end = self.arguments(&mut arguments)?;
        let span = span.to(end);
        let wrong = || {
            ExprError::new(TYPE, span, "`has` asks whether a member is there")
                .hint("write has(state.a) or has(state.a.b)")
        };
        if arguments.len() != 1 {
            return self.recover(wrong());
        }
        match arguments.remove(0).kind {
            Kind::Path(path)
                if !path.steps.is_empty() || matches!(path.base, Base::Counters | Base::Commitments) =>
            {
                self.build(Kind::Has(path), span)
            }
            Kind::Unknown => self.build(Kind::Unknown, span),
            _ => self.recover(wrong()),
        }
    }

    fn list(&mut self, start: Span) -> Result<Node, ExprError> {
        self.advance();
        let mut items = Vec::new();
        while !self.is("]") {
            items.push(self.expression()?);
            if !self.eat(",") {
                break;
            }
        }
        let end = self.expect("]")?;
        let whole: Option<Vec<Value>> = items.iter().map(literal).collect();
        self.build(Kind::List(items, whole.map(Value::array)), start.to(end))
    }

    fn map(&mut self, start: Span) -> Result<Node, ExprError> {
        self.advance();
        let mut entries = Vec::new();
        let mut seen = BTreeSet::new();
        while !self.is("}") {
            let key = self.expression()?;
            self.check_key(&key, &mut seen)?;
            self.expect(":")?;
            entries.push((key, self.expression()?));
            if !self.eat(",") {
                break;
            }
        }
        let end = self.expect("}")?;
        let pairs = entries.iter().map(|(key, value)| match &key.kind {
            Kind::Literal(Value::String(name)) => Some((Key::new(name).stored, literal(value)?)),
            _ => None,
        });
        let whole: Option<Object> = pairs.collect();
        self.build(Kind::Map(entries, whole.map(Value::Object)), start.to(end))
    }

    fn check_key(&self, key: &Node, seen: &mut BTreeSet<Arc<str>>) -> Result<(), ExprError> {
        match &key.kind {
            Kind::Literal(Value::String(name)) if !seen.insert(Arc::clone(name)) => Err(ExprError::new(
                TYPE,
                key.span,
                format!("the key {:?} stands twice in one map", shown(name)),
            )),
            Kind::Literal(Value::String(_)) => Ok(()),
            _ if literal(key).is_some() => {
                Err(ExprError::unsupported(key.span, "a map key other than a string")
                    .hint("the names of a JSON object are strings"))
            }
            _ => Ok(()),
        }
    }
}

/// An operator between two operands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Infix {
    Or,
    And,
    Compare(Comparison),
    In,
    Chain(Operator),
}

impl Infix {
    fn level(self) -> Level {
        match self {
            Infix::Or => Level::Or,
            Infix::And => Level::And,
            Infix::Compare(_) | Infix::In => Level::Relation,
            Infix::Chain(operator) if operator.is_sum() => Level::Sum,
            Infix::Chain(_) => Level::Product,
        }
    }
}

impl Level {
    /// Returns the level of the right operand: all operators group from the left.
    fn next(self) -> Level {
        match self {
            Level::Choice => Level::Or,
            Level::Or => Level::And,
            Level::And => Level::Relation,
            Level::Relation => Level::Sum,
            Level::Sum => Level::Product,
            Level::Product | Level::Unary | Level::Member => Level::Unary,
        }
    }
}

fn is_sum(steps: &[(Operator, Node)]) -> bool {
    steps.first().is_some_and(|(operator, _)| operator.is_sum())
}

/// Takes the operands out of a node of the same kind; any other is an operand itself.
fn parts_of(node: Node, infix: Infix) -> Vec<Node> {
    match (infix, node.kind) {
        (Infix::And, Kind::And(parts)) | (Infix::Or, Kind::Or(parts)) => parts,
        (_, kind) => vec![Node::new(kind, node.span, node.depth)],
    }
}

/// There is one zero: a value keeps no sign of it.
fn negative(value: f64) -> f64 {
    -value + 0.0
}

fn step(index: Node) -> StepKind {
    match &index.kind {
        Kind::Literal(Value::String(name)) => StepKind::Key(Key::new(name)),
        Kind::Int(at) if *at >= 0 => StepKind::Index(at.unsigned_abs()),
        _ => StepKind::Computed(Box::new(index)),
    }
}

/// Returns the value of a literal, of a list or map of literals included.
fn literal(node: &Node) -> Option<Value> {
    match &node.kind {
        Kind::Literal(value) => Some(value.clone()),
        Kind::Int(value) => Some(Value::from(*value)),
        Kind::Double(value) => Some(Value::from(*value)),
        Kind::List(_, whole) | Kind::Map(_, whole) => whole.clone(),
        _ => None,
    }
}

fn too_deep(span: Span) -> ExprError {
    ExprError::new(LIMIT, span, format!("nested deeper than {DEPTH_MAX} levels"))
}

/// Tells whether a name is called like a function of the language.
pub(super) fn is_function(name: &str) -> bool {
    let is_named =
        |function: Function| function.is_global() && !function.gives_way() && function.name() == name;
    name == "has" || Function::all().any(is_named)
}

fn unknown_function(name: &str, span: Span, fits: fn(Function) -> bool) -> ExprError {
    if let Some(what) = names::unsupported_call(name) {
        let error = ExprError::unsupported(span, what);
        let other = Function::all().find(|f| f.name() == name);
        return other.iter().fold(error, |error, function| error.hint(format!("write {}", function.form())));
    }
    let error = ExprError::new(NAME, span, format!("there is no function `{}`", shown(name)));
    if let Some(function) = Function::all().find(|f| f.name() == name) {
        return error.hint(format!("write {}", function.form()));
    }
    if let Some(found) = Macro::named(name) {
        return error.hint(format!("write {}", found.form()));
    }
    let known = Function::all().filter(|f| fits(*f)).map(Function::name);
    let others: Vec<&str> = if fits(Function::Div) { vec!["has"] } else { Macro::WORDS.to_vec() };
    match names::nearest(name, known.chain(others)) {
        Some(near) => error.hint(format!("did you mean {near}")),
        None => error,
    }
}

/// Lists some names, for a hint.
fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let mut names: Vec<_> = names.map(shown).collect();
    let rest = names.len().saturating_sub(8);
    names.truncate(8);
    let mut text = names.join(", ");
    if rest > 0 {
        text.push_str(&format!(" and {rest} more"));
    }
    text
}
