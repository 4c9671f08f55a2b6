//! The text form of a graph: one statement a line, as the note prints it.

use dendrer_object::json;

use crate::{Argument, Graph, Reference, Statement, StatementBody};

/// Why a text is no graph.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct SyntaxFault {
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// The statement as it is written.
    pub statement: String,
    /// The fault.
    pub message: String,
}

/// How many bytes a graph may have.
pub const TEXT_SIZE_MAX: usize = 8 << 20;

/// How deep repeats may be nested.
pub const DEPTH_MAX: usize = 16;

/// The last line of a graph.
const CONTRACT: &str = "replay(graph, frontier) == output";

/// One line on its way.
struct Line<'t> {
    number: u32,
    column: u32,
    text: &'t str,
}

impl Line<'_> {
    fn fault(&self, message: impl Into<String>) -> SyntaxFault {
        let (line, column, statement) = (self.number, self.column, self.text.to_owned());
        SyntaxFault { line, column, statement, message: message.into() }
    }
}

/// Reads a graph.
pub fn parse(text: &str) -> Result<Graph, SyntaxFault> {
    let whole = Line { number: 1, column: 1, text: "" };
    if text.len() > TEXT_SIZE_MAX {
        return Err(whole.fault(format!("a graph has {TEXT_SIZE_MAX} bytes at most")));
    }
    let mut lines = (1..).zip(text.lines()).filter_map(|(number, line)| {
        let line = without_comment(line).trim_end();
        let text = line.trim_start();
        let column = (line.len() - text.len()) as u32 + 1;
        (!text.is_empty()).then_some(Line { number, column, text })
    });
    let first = lines.next().ok_or_else(|| whole.fault("a graph begins with: graph NAME"))?;
    let name = first.text.strip_prefix("graph ").map(str::trim);
    let name = name.filter(|name| !name.is_empty() && !name.contains(char::is_whitespace));
    let name = name.ok_or_else(|| first.fault("a graph begins with: graph NAME"))?.to_owned();
    let mut graph = Graph { name, statements: Vec::new(), is_contract: false };
    // The repeats that are open, each with the statements of its round.
    let mut open: Vec<Statement> = Vec::new();
    for line in lines {
        if graph.is_contract {
            return Err(line.fault("the contract is the last line"));
        }
        if is_contract(line.text) {
            if let Some(repeat) = open.last() {
                return Err(line.fault(format!("{} is not ended: end {}", repeat.id, repeat.id)));
            }
            graph.is_contract = true;
            continue;
        }
        if let Some(id) = line.text.strip_prefix("end ").map(str::trim) {
            let repeat = open.pop().filter(|repeat| repeat.id == id);
            let repeat = repeat.ok_or_else(|| line.fault(format!("no repeat {id} is open here")))?;
            place(&mut graph, &mut open, repeat);
            continue;
        }
        let statement = statement(&line)?;
        match statement.body {
            StatementBody::Repeat { .. } if open.len() == DEPTH_MAX => {
                return Err(line.fault(format!("repeats are nested {DEPTH_MAX} deep at most")));
            }
            StatementBody::Repeat { .. } => open.push(statement),
            _ => place(&mut graph, &mut open, statement),
        }
    }
    if let Some(repeat) = open.last() {
        let line = Line { number: repeat.line, column: repeat.column, text: &repeat.id };
        return Err(line.fault(format!("{} is not ended: end {}", repeat.id, repeat.id)));
    }
    Ok(graph)
}

fn place(graph: &mut Graph, open: &mut [Statement], statement: Statement) {
    match open.last_mut().map(|repeat| &mut repeat.body) {
        Some(StatementBody::Repeat { statements, .. }) => statements.push(statement),
        _ => graph.statements.push(statement),
    }
}

/// The mark behind the contract is optional.
fn is_contract(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().filter(|word| *word != "\u{2713}").collect();
    let joined = words.join(" ");
    joined.strip_prefix(CONTRACT).is_some_and(|rest| matches!(rest, "" | " required"))
}

/// Cuts a comment off. A `#` in quotes is part of the text.
fn without_comment(line: &str) -> &str {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in line.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '#' if !quoted => return &line[..at],
            _ => {}
        }
    }
    line
}

fn statement(line: &Line<'_>) -> Result<Statement, SyntaxFault> {
    let (id, rest) = line.text.split_once(char::is_whitespace).unwrap_or((line.text, ""));
    if !crate::is_id(id) {
        return Err(
            line.fault(format!("a statement begins with its id (n, e or r and digits), and not with {id}"))
        );
    }
    let rest = rest.trim();
    let open = rest.find('(').ok_or_else(|| line.fault("a statement calls something: NAME(ARGUMENTS)"))?;
    let call = rest[..open].trim();
    if call.is_empty() || !call.split('.').all(is_word) {
        return Err(line.fault(format!("\"{call}\" is no name of a function or an effect")));
    }
    let close = matching(&rest[open..]).ok_or_else(|| line.fault("a parenthesis is not closed"))? + open;
    let args = arguments(&rest[open + 1..close], line)?;
    let mut tail = rest[close + 1..].trim();
    if id.starts_with('r') {
        return repeat(line, id, call, args, tail);
    }
    let condition = match tail.strip_prefix("if ") {
        None => None,
        Some(behind) => {
            let (name, behind) = behind.trim_start().split_once(char::is_whitespace).unwrap_or((behind, ""));
            tail = behind.trim();
            Some(reference(name).ok_or_else(|| line.fault(format!("\"{name}\" is no id")))?)
        }
    };
    let body = match (id.as_bytes()[0], tail) {
        (b'n', "pure") => StatementBody::Node { call: call.to_owned(), args },
        (b'n', _) => return Err(line.fault("a node is `n0 NAME(ARGUMENTS) pure`")),
        (_, tail) => edge(line, call, args, tail)?,
    };
    Ok(Statement { id: id.to_owned(), body, condition, line: line.number, column: line.column })
}

fn edge(line: &Line<'_>, call: &str, args: Vec<Argument>, tail: &str) -> Result<StatementBody, SyntaxFault> {
    let once = tail.strip_suffix("at once").filter(|before| before.ends_with(char::is_whitespace));
    let recorded = once.unwrap_or(tail).strip_prefix("->").map(str::trim);
    if recorded.is_none() && !tail.is_empty() {
        return Err(line.fault("an edge is `e1 NAME(ARGUMENTS) -> rec frontier[1]`"));
    }
    let place = recorded.and_then(|rest| rest.strip_prefix("rec")).map(str::trim);
    let index = place.and_then(|place| place.strip_prefix("frontier[")?.strip_suffix(']'));
    if index.is_none() && place.is_some_and(|place| !place.is_empty()) {
        return Err(line.fault("an edge is `e1 NAME(ARGUMENTS) -> rec frontier[1]`"));
    }
    let (call, index) = (call.to_owned(), index.map(str::to_owned));
    Ok(StatementBody::Edge { call, args, is_recorded: place.is_some(), index, at_once: once.is_some() })
}

fn repeat(
    line: &Line<'_>,
    id: &str,
    call: &str,
    args: Vec<Argument>,
    tail: &str,
) -> Result<Statement, SyntaxFault> {
    const FORM: &str = "a repeat is `r1 repeat(n0) max 5 until n9`, or with `or limit` behind it";
    let words: Vec<&str> = tail.split_whitespace().collect();
    let (words, or_limit) = match &words[..] {
        [words @ .., "or", "limit"] => (words, true),
        words => (words, false),
    };
    let (max, until) = match words[..] {
        ["max", max, "until", until] => (Some(max.parse().map_err(|_| line.fault(FORM))?), until),
        ["until", until] => (None, until),
        _ => return Err(line.fault(FORM)),
    };
    let mut args = args.into_iter();
    let (Some(from), None, "repeat") = (args.next(), args.next(), call) else { return Err(line.fault(FORM)) };
    let body = StatementBody::Repeat { from, max, until: until.to_owned(), or_limit, statements: Vec::new() };
    Ok(Statement { id: id.to_owned(), body, condition: None, line: line.number, column: line.column })
}

fn is_word(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

/// The characters of a text that are outside of quoted texts, each with its place, and how many brackets are open behind it.
fn outside_quotes(text: &str) -> impl Iterator<Item = (usize, char, usize)> {
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    text.char_indices().filter_map(move |(at, c)| {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' | '{' => {
                depth += 1;
                return Some((at, c, depth));
            }
            ')' | ']' | '}' => {
                depth = depth.saturating_sub(1);
                return Some((at, c, depth));
            }
            _ => return Some((at, c, depth)),
        }
        None
    })
}

/// The place where the first bracket of a text is closed.
fn matching(text: &str) -> Option<usize> {
    let mut closing = outside_quotes(text).filter(|(_, c, _)| matches!(c, ')' | ']' | '}'));
    closing.find(|(.., depth)| *depth == 0).map(|(at, ..)| at)
}

fn arguments(text: &str, line: &Line<'_>) -> Result<Vec<Argument>, SyntaxFault> {
    let mut parts: Vec<&str> = Vec::new();
    let mut begin = 0;
    for (at, ..) in outside_quotes(text).filter(|(_, c, depth)| *c == ',' && *depth == 0) {
        parts.push(&text[begin..at]);
        begin = at + 1;
    }
    if !text.trim().is_empty() {
        parts.push(&text[begin..]);
    }
    parts.into_iter().map(|part| argument(part.trim(), line)).collect()
}

fn argument(text: &str, line: &Line<'_>) -> Result<Argument, SyntaxFault> {
    let is_literal = text.starts_with(['"', '[', '{', '-'])
        || text.starts_with(|c: char| c.is_ascii_digit())
        || matches!(text, "true" | "false" | "null");
    if is_literal {
        let value = json::parse_door(text.as_bytes());
        return value.map(Argument::Literal).map_err(|error| line.fault(format!("{text}: {}", error.kind)));
    }
    let found = reference(text).map(Argument::Reference);
    found.ok_or_else(|| {
        line.fault(format!(
            "\"{text}\" is no argument: an id, a member of one, JSON, or the name of an input"
        ))
    })
}

/// Reads `e1`, `e1.kind` or `e1.items[0]`.
pub(crate) fn reference(text: &str) -> Option<Reference> {
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let name = &text[..end];
    if !is_word(name) {
        return None;
    }
    let (mut path, mut rest) = (Vec::new(), &text[end..]);
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (index, behind) = inner.split_once(']')?;
            if index.is_empty() || !index.bytes().all(|c| c.is_ascii_digit()) {
                return None;
            }
            path.push(index.to_owned());
            rest = behind;
        } else {
            let inner = rest.strip_prefix('.')?;
            let end = inner.find(['.', '[']).unwrap_or(inner.len());
            if !is_word(&inner[..end]) {
                return None;
            }
            path.push(inner[..end].to_owned());
            rest = &inner[end..];
        }
    }
    Some(Reference { name: name.to_owned(), path })
}
