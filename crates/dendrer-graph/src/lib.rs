//! Execution graphs: every pure step a node, everything impure a recorded edge, and replay by evaluating the graph again (Mynd Labs
//! research note R-001).
//!
//! A graph is read ([`text`], [`form`]), checked before it runs ([`check`]), and evaluated over recorded edge values ([`eval`]).
//! Nothing here calls an effect: the caller of an evaluation is told what each edge asks, and brings the value.
//!
//! Pure: no clock, chance, environment or I/O; equal graphs, inputs and edge values give equal bytes.

mod branches;
pub mod check;
pub mod eval;
pub mod form;
pub mod frontier;
pub mod functions;
pub mod minimize;
pub mod reads;
pub mod text;

use dendrer_object::Value;

/// A graph as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Graph {
    /// The name of the graph, and of its run.
    pub name: String,
    /// The statements, in the order of lines.
    pub statements: Vec<Statement>,
    /// Whether it has the contract's line: a run is good only if its replay gives the same output.
    pub is_contract: bool,
}

/// One statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Its id: `n`, `e` or `r` and digits.
    pub id: String,
    /// Its body.
    pub body: StatementBody,
    /// The statement whose value it needs to be true; otherwise its value is null.
    pub condition: Option<Reference>,
    /// Its line in the text; 0 if it was not read from text.
    pub line: u32,
    /// The column of its first character, from 1.
    pub column: u32,
}

/// The body of a statement.
#[derive(Debug, Clone, PartialEq)]
pub enum StatementBody {
    /// Computes a value from its arguments alone.
    Node {
        /// The function.
        call: String,
        /// Its arguments.
        args: Vec<Argument>,
    },
    /// Takes a value from the world, which is recorded.
    Edge {
        /// The effect.
        call: String,
        /// Its arguments.
        args: Vec<Argument>,
        /// Whether it says that its value is recorded.
        is_recorded: bool,
        /// The place in the frontier that it names, as it is written.
        index: Option<String>,
        /// Whether it may be asked while others are, though it is effectful.
        at_once: bool,
    },
    /// Does its statements again, each round with the value of the round before.
    Repeat {
        /// The value before the first round.
        from: Argument,
        /// How many rounds there are at most; `None` if the text does not say.
        max: Option<u64>,
        /// The statement of a round whose value ends it when it is true.
        until: String,
        /// Whether the graph is evaluated further if no round did; else it ends there.
        or_limit: bool,
        /// The statements of one round.
        statements: Vec<Statement>,
    },
}

/// An argument.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// The value of a statement or an input, or a member of it.
    Reference(Reference),
    /// A literal.
    Literal(Value),
}

/// The value of a statement or an input, or a member of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// The id of a statement, or the name of an input.
    pub name: String,
    /// The members below it: names, and indices of lists in digits.
    pub path: Vec<String>,
}

impl Reference {
    /// Whether it names a statement: `n`, `e` or `r` and digits.
    pub fn is_statement(&self) -> bool {
        is_id(&self.name)
    }

    /// Writes it as a graph does.
    pub fn text(&self) -> String {
        let member = |name: &String| match name.bytes().all(|c| c.is_ascii_digit()) {
            true => format!("[{name}]"),
            false => format!(".{name}"),
        };
        std::iter::once(self.name.clone()).chain(self.path.iter().map(member)).collect()
    }
}

/// Whether a name is that of a statement.
pub fn is_id(name: &str) -> bool {
    let digits = name.strip_prefix(['n', 'e', 'r']);
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit()))
}

impl Statement {
    /// The call and the arguments of a node or an edge.
    pub fn call(&self) -> Option<(&str, &[Argument])> {
        match &self.body {
            StatementBody::Node { call, args } | StatementBody::Edge { call, args, .. } => Some((call, args)),
            StatementBody::Repeat { .. } => None,
        }
    }
}

impl Graph {
    /// The graph as it was understood before a repeat at its limit ended it.
    pub fn with_or_limit(mut self) -> Graph {
        fn walk(statements: &mut [Statement]) {
            for statement in statements {
                if let StatementBody::Repeat { or_limit, statements, .. } = &mut statement.body {
                    *or_limit = true;
                    walk(statements);
                }
            }
        }
        walk(&mut self.statements);
        self
    }

    /// The id of the last `n` statement, whose value is the output.
    pub fn output(&self) -> Option<&str> {
        last_node(&self.statements)
    }

    /// Walks all statements, those of repeats after the repeat.
    pub fn each(&self) -> Vec<&Statement> {
        fn walk<'g>(statements: &'g [Statement], found: &mut Vec<&'g Statement>) {
            for statement in statements {
                found.push(statement);
                if let StatementBody::Repeat { statements, .. } = &statement.body {
                    walk(statements, found);
                }
            }
        }
        let mut found = Vec::new();
        walk(&self.statements, &mut found);
        found
    }

    /// The names of its inputs, in the order of their first use.
    pub fn inputs(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let mut add = |reference: &Reference| {
            if !reference.is_statement() && !names.contains(&reference.name) {
                names.push(reference.name.clone());
            }
        };
        for statement in self.each() {
            let from = match &statement.body {
                StatementBody::Repeat { from: Argument::Reference(reference), .. } => Some(reference),
                _ => None,
            };
            let args = statement.call().map_or(&[][..], |(_, args)| args);
            let named = args.iter().filter_map(|arg| match arg {
                Argument::Reference(reference) => Some(reference),
                Argument::Literal(_) => None,
            });
            from.into_iter().chain(named).chain(&statement.condition).for_each(&mut add);
        }
        names
    }
}

/// The id of the last `n` statement of a list.
pub(crate) fn last_node(statements: &[Statement]) -> Option<&str> {
    let is_node = |statement: &&Statement| matches!(statement.body, StatementBody::Node { .. });
    statements.iter().rev().find(is_node).map(|statement| &*statement.id)
}
