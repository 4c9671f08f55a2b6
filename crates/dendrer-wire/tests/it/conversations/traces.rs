//! Conversations as traces: spans of agents, of calls of models, each with the messages before it, and of calls of tools.

use super::Written;
use super::facts::{Facts, Tokens};
use super::model::{Can, Dice, Ids, Model, Said, Text};

pub(super) const CAN: Can = Can {
    agents: 3,
    ids: &[Ids::Unique],
    names: false,
    late: true,
    twice: false,
    same: false,
    trees: false,
    again: false,
};

/// The kind of a span with what it states.
pub(super) enum Kind {
    Agent(&'static str),
    /// A model: the entries that it was given, and the one that it made.
    Model {
        given: Vec<usize>,
        made: usize,
    },
    /// A tool: the entry of the result of its call, and whether it names the call.
    Tool {
        result: usize,
        has_id: bool,
    },
}

/// A span, before any format: number from 1, number of the span above or 0, and kind. Its number is its time.
pub(super) struct Span {
    pub(super) id: u64,
    pub(super) above: u64,
    pub(super) kind: Kind,
}

/// What formats of traces state each in its way.
pub(super) struct Dialect {
    /// The word for an agent's span in a run, and whether its name is that of the agent of the spans below.
    pub(super) names_agents: bool,
    /// The text of the observation that an agent's span becomes has this agent.
    pub(super) format: &'static str,
    /// Whether the span of a tool failed, by a number: what is stated of it.
    pub(super) failed: fn(u64) -> bool,
    /// The same of a result that has no span.
    pub(super) seen: fn(u64) -> bool,
    /// Writes the spans.
    pub(super) write: fn(&mut Dice, &Model, &[Span]) -> String,
}

/// Whether the result of an entry has a span, or is seen in the next request alone.
pub(super) fn has_span(how: u64) -> bool {
    !how.is_multiple_of(4)
}

pub(super) fn write(dice: &mut Dice, model: &Model, dialect: &Dialect) -> Written {
    let mut facts = Facts::default();
    let mut spans: Vec<Span> = Vec::new();
    let mut agents: Vec<(&str, u64)> = Vec::new();
    // Entries that no model was given so far.
    let (mut given, mut new) = (Vec::new(), Vec::new());
    for (at, entry) in model.entries.iter().enumerate() {
        match &entry.said {
            Said::User(_) => new.push(at),
            Said::Result { .. } if !has_span(entry.how) => new.push(at),
            Said::Result { call, .. } => {
                let above = above(model.calls[*call].agent, dialect, &mut agents, &mut spans, &mut facts);
                let id = spans.len() as u64 + 1;
                spans.push(Span { id, above, kind: Kind::Tool { result: at, has_id: entry.how % 5 != 0 } });
                facts.answers(*call, [true, false], Some((dialect.failed)(entry.how)));
                new.push(at);
            }
            Said::Model { agent, text, calls, usage } => {
                let above = above(agent, dialect, &mut agents, &mut spans, &mut facts);
                let id = spans.len() as u64 + 1;
                for at in new.drain(..) {
                    let entry = &model.entries[at];
                    match &entry.said {
                        Said::User(_) => facts.user(words_tag(model, at)),
                        Said::Result { call, .. } if !has_span(entry.how) => {
                            facts.answers(*call, [false, false], Some((dialect.seen)(entry.how)));
                        }
                        _ => {}
                    }
                    given.push(at);
                }
                spans.push(Span { id, above, kind: Kind::Model { given: given.clone(), made: at } });
                given.push(at);
                let agent = if dialect.names_agents { *agent } else { "assistant" };
                match calls.is_empty() {
                    true => facts.says(agent, text.unwrap_or(Text::Plain), Tokens::of(*usage)),
                    false => facts.asks(model, calls.clone(), agent, Tokens::of(*usage)),
                }
            }
            Said::Again(_) => unreachable!(),
        }
    }
    let text = (dialect.write)(dice, model, &spans);
    Written { main: facts, ..Written::new(dialect.format, text) }
}

fn words_tag(model: &Model, at: usize) -> Text {
    match model.entries[at].said {
        Said::User(text) => text,
        _ => Text::Plain,
    }
}

/// The span of an agent; the first of its spans begins it.
fn above(
    agent: &'static str,
    dialect: &Dialect,
    agents: &mut Vec<(&'static str, u64)>,
    spans: &mut Vec<Span>,
    facts: &mut Facts,
) -> u64 {
    if let Some((_, id)) = agents.iter().find(|(known, _)| *known == agent) {
        return *id;
    }
    let id = spans.len() as u64 + 1;
    agents.push((agent, id));
    spans.push(Span { id, above: 0, kind: Kind::Agent(agent) });
    facts.observe(if dialect.names_agents { agent } else { "environment" });
    id
}
