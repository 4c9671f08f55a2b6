//! Traces of spans: calls of models and of tools as a program measured them, each with the messages of its own, as the items of a run.
//!
//! A format makes a [`Span`] of each of its records; [`hand_over`] orders them, and leaves out each message that an earlier span
//! had, because a request to a model repeats the conversation before it. Holds all spans of a file, because any of them may
//! be the first. Rule: one call of a tool is one request and one result, whether the model's answer, the span or a message states them.

mod python;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::io::Read;
use std::sync::Arc;

use dendrer::kernel::unknown::{CALLS, FAILURES, SPEAKERS, USAGE};
use dendrer_object::value::{Array, Object};
use dendrer_object::{Delta, Value, json};

use super::account::{Account, Of};
use super::chat::{self, ChatReader, Turn, set_calls};
use super::error::ImportError;
use super::items::{self, Around, Item};
use super::layout::{Choice, Layout, NAMED_MAX, Top, pointer};
use super::note::{At, ImportNote, NoteKind};
use super::once::{Short, short};
use super::parts;
use super::scan::{Capture, Fingerprint, Scanner, Sizes, Stop};
use super::tokens;
use super::usage;
use crate::foreign::{Surveyed, Visit};

/// The kind of a span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A call of a model.
    Model,
    /// A call of a tool.
    Tool,
    /// The work of an agent, with the spans below it.
    Agent,
    /// Anything else that was measured.
    #[default]
    Other,
}

impl Kind {
    /// The kind of item in a table of members.
    pub(crate) fn of(self) -> Of {
        match self {
            Kind::Model => Of::Model,
            Kind::Tool => Of::Result,
            Kind::Agent | Kind::Other => Of::Outside,
        }
    }
}

/// A record of a trace.
#[derive(Debug, Default)]
pub(crate) struct Span {
    /// Its number in the file: its place is `/number`.
    pub(crate) number: u64,
    pub(crate) name: String,
    pub(crate) id: Option<Arc<str>>,
    pub(crate) parent: Option<Arc<str>>,
    /// Whether another program has the parent.
    pub(crate) is_parent_elsewhere: bool,
    pub(crate) trace: Arc<str>,
    /// The conversation, which may have several traces.
    pub(crate) conversation: Option<Arc<str>>,
    /// The order: a time, or a text.
    pub(crate) order: Option<(i128, Arc<str>)>,
    pub(crate) kind: Kind,
    /// The agent that it names itself.
    pub(crate) agent: Option<Arc<str>>,
    /// Messages that a model was given, and those that it made, in the shape of a chat.
    pub(crate) inputs: Vec<Object>,
    pub(crate) outputs: Vec<Object>,
    /// The identities of `inputs`, if they are known.
    pub(crate) said: Vec<Short>,
    /// Whether the reason why the model ended is a call.
    pub(crate) says_calls: bool,
    pub(crate) usage: Option<Object>,
    /// The id of the answer.
    pub(crate) answer: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) call_id: Option<String>,
    pub(crate) params: Option<Value>,
    pub(crate) output: Option<Value>,
    /// Whether the call failed, as far as that is stated, and with which words.
    pub(crate) failed: Option<bool>,
    pub(crate) error: Option<Value>,
    /// Whether it states that it has not ended: without an output or a failure its call has no result.
    pub(crate) is_unfinished: bool,
    /// All that is kept of it.
    pub(crate) rest: Object,
    pub(crate) notes: Vec<ImportNote>,
    /// The change of state that it states.
    pub(crate) delta: Option<Delta>,
    /// The digest of the record, unchanged.
    pub(crate) content: Short,
}

/// The spans of a file in its order, and the members around them.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    pub(crate) spans: Vec<Span>,
    pub(crate) meta: Object,
    /// Whether the file has an order of its own, so that no time gives one.
    pub(crate) is_ordered: bool,
    pub(crate) tree: Tree,
}

/// By number the span before each, if spans are a tree: `None` for the first, `Some(None)` if the span before it is not in the file.
pub(crate) type Tree = BTreeMap<u64, Option<Option<u64>>>;

/// Reads the records of one file.
pub(crate) trait Native {
    /// Takes a value at the top. Each record in it has the next number; false at the end.
    fn take(&mut self, value: &Object, numbers: &mut u64) -> bool;

    /// Returns the spans after the last value.
    fn end(self: Box<Self>, account: &mut Account) -> Result<Traces, ImportError>;
}

/// A value at the top that is no record.
struct Lost {
    number: u64,
    value: Value,
    notes: Vec<ImportNote>,
    is_lost: bool,
    size: usize,
}

/// Finds the values at the top of a source, and the run among them.
pub(crate) fn survey(
    source: &mut dyn Read,
    choice: &Choice,
    native: Box<dyn Native>,
) -> Result<Surveyed, ImportError> {
    if let Some(list) = choice.list.as_ref().filter(|list| !list.is_empty()) {
        return Err(ImportError::NoList(pointer(list)));
    }
    let mut bytes = Vec::new();
    source.read_to_end(&mut bytes).map_err(ImportError::Io)?;
    let mut scanner = Scanner::new(&bytes[..]).map_err(ImportError::stopped)?;
    let (mut count, mut is_array, mut is_cut) = (0, false, false);
    loop {
        let result = match scanner.next() {
            Ok(None) => break,
            Ok(Some(byte)) => {
                is_array |= count == 0 && byte == b'[';
                count += 1;
                scanner.value(&mut Capture::nothing(), 0).map(|_| ())
            }
            Err(stop) => Err(stop),
        };
        match result {
            Ok(()) => {}
            Err(Stop::Cut) => {
                is_cut = true;
                break;
            }
            Err(stop) => return Err(ImportError::stopped(stop)),
        }
    }
    if count == 0 {
        return Err(ImportError::Unknown("it holds no value"));
    }
    let top = if is_array && count == 1 { Top::Array } else { Top::Lines };
    let mut layout = Layout { is_cut, ..Layout::new(top) };
    let mut account = Account::default();
    let (traces, lost, _) = gather(&mut &bytes[..], &layout, Sizes::default(), native, &mut account)?;
    let line = Line::of(&traces.spans);
    let runs = line.runs(&traces.spans);
    layout.index = match (choice.index, runs.len() as u64) {
        (None, 0) if lost.is_empty() => return Err(ImportError::Unknown("no span is in it")),
        (None, 0 | 1) => None,
        (None, count) => {
            let runs = runs.into_iter().zip(0..).take(NAMED_MAX);
            let runs = runs.map(|((name, spans), index)| (index, name.to_string(), spans)).collect();
            return Err(ImportError::SeveralTraces { count, runs });
        }
        (Some(index), count) if index >= count => return Err(ImportError::NoRun { index, count }),
        (Some(index), _) => Some(index),
    };
    Ok((layout, Fingerprint::of(&bytes), Sizes::default()))
}

/// Reads all records of a source.
fn gather(
    source: &mut dyn Read,
    layout: &Layout,
    hints: Sizes,
    mut native: Box<dyn Native>,
    account: &mut Account,
) -> Result<(Traces, Vec<Lost>, Around), ImportError> {
    let at_top = Layout { index: None, ..layout.clone() };
    let (mut numbers, mut lost) = (0, Vec::new());
    let around = items::read(source, &at_top, hints, &mut |item| {
        let is_read = item.notes.is_empty()
            && item.value.as_object().is_some_and(|object| native.take(object, &mut numbers));
        if !is_read {
            let Item { value, notes, is_lost, size, .. } = item;
            lost.push(Lost { number: numbers, value, notes, is_lost, size });
            numbers += 1;
        }
        Ok(())
    })?;
    Ok((native.end(account)?, lost, around))
}

/// Hands over the items of the run that was chosen, or of the only one.
pub(crate) fn hand_over(
    source: &mut dyn Read,
    layout: &Layout,
    hints: Sizes,
    native: Box<dyn Native>,
    visit: Visit<'_>,
) -> Result<Around, ImportError> {
    let mut reader = ChatReader::new(&[], &layout.found);
    let (Traces { mut spans, meta, is_ordered, mut tree }, lost, mut around) =
        gather(source, layout, hints, native, &mut reader.account)?;
    let line = Line::of(&spans);
    note_parents(&mut spans, &line);
    let chosen =
        layout.index.and_then(|index| line.runs(&spans).into_iter().nth(usize::try_from(index).ok()?));
    if let Some((run, _)) = chosen {
        let mut keys = line.keys.iter();
        spans.retain(|_| keys.next() == Some(&run));
    }
    if let Some(branch) = &layout.found.branch {
        spans.retain(|span| branch.items.contains(&span.number));
    }
    let mut story = Story { is_noted: is_ordered, ..Story::of(spans) };
    story.tell(&mut |mut turn, number, size| {
        if let Some(before) = tree.remove(&number) {
            let name = |number: u64| format!("span {number}");
            turn.id = Some(name(number));
            turn.parent = before.map(|before| before.map_or_else(|| "none".to_owned(), name));
        }
        reader.turn(turn, At::item("", number), size, visit)
    })?;
    for Lost { number, value, notes, is_lost, size } in lost {
        let item = Item { notes, is_lost, ..Item::new(value, At::item("", number), size) };
        reader.take(item, visit)?;
    }
    around.meta = (!meta.is_empty()).then_some(Value::Object(meta));
    around.gathered = reader.end(None);
    Ok(around)
}

/// The order of spans, and what is above each.
struct Line {
    /// The span above; `None` at the top, and where a circle was cut.
    above: Vec<Option<usize>>,
    missing: Vec<usize>,
    cycles: Vec<usize>,
    /// Spans in an order in which each comes after the one above it.
    downwards: Vec<usize>,
    /// The run of each.
    keys: Vec<Arc<str>>,
}

impl Line {
    fn of(spans: &[Span]) -> Line {
        let mut by_id: HashMap<(&str, &str), usize> = HashMap::new();
        for (at, span) in spans.iter().enumerate() {
            if let Some(id) = &span.id {
                by_id.entry((&span.trace, id)).or_insert(at);
            }
        }
        let (mut missing, mut cycles) = (Vec::new(), Vec::new());
        let mut above: Vec<Option<usize>> = Vec::with_capacity(spans.len());
        for (at, span) in spans.iter().enumerate() {
            let named = span.parent.as_ref().map(|id| by_id.get(&(&*span.trace, &**id)).copied());
            if named == Some(None) && !span.is_parent_elsewhere {
                missing.push(at);
            }
            above.push(named.flatten());
        }
        let downwards = downwards(&mut above, &mut cycles);
        let keys = keys(spans, &above, &downwards);
        Line { above, missing, cycles, downwards, keys }
    }

    /// The runs in the order in which they begin in the file, and how many spans each has.
    fn runs(&self, spans: &[Span]) -> Vec<(Arc<str>, u64)> {
        let mut found: Vec<(Arc<str>, u64)> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for key in self.keys.iter().take(spans.len()) {
            let at = *places.entry(key).or_insert_with(|| {
                found.push((Arc::clone(key), 0));
                found.len() - 1
            });
            found[at].1 += 1;
        }
        found
    }
}

/// Returns an order in which each span comes after the one above it. A circle is cut at the first of its spans in the file.
fn downwards(above: &mut [Option<usize>], cycles: &mut Vec<usize>) -> Vec<usize> {
    // 0: not met, 1: on the way, 2: in the order.
    let mut state = vec![0u8; above.len()];
    let mut order = Vec::with_capacity(above.len());
    for start in 0..above.len() {
        let mut way = Vec::new();
        let mut at = Some(start);
        while let Some(one) = at.filter(|one| state[*one] == 0) {
            state[one] = 1;
            way.push(one);
            at = above[one];
        }
        if let Some(one) = at.filter(|one| state[*one] == 1) {
            let from = way.iter().position(|other| *other == one).unwrap_or(0);
            let first = way[from..].iter().copied().min().unwrap_or(one);
            above[first] = None;
            cycles.push(first);
            // Spans below the cut come after it.
            let cut = way[from..].iter().position(|other| *other == first).unwrap_or(0);
            way[from..].rotate_left(cut + 1);
        }
        way.iter().for_each(|one| state[*one] = 2);
        order.extend(way.into_iter().rev());
    }
    order
}

/// The run of each span: its conversation, that of the nearest span above it, the first of its trace, or the trace.
fn keys(spans: &[Span], above: &[Option<usize>], downwards: &[usize]) -> Vec<Arc<str>> {
    let mut own: Vec<Option<Arc<str>>> = spans.iter().map(|span| span.conversation.clone()).collect();
    for at in downwards {
        if own[*at].is_none() {
            own[*at] = above[*at].and_then(|above| own[above].clone());
        }
    }
    let mut of_trace: HashMap<&str, Arc<str>> = HashMap::new();
    for (span, key) in spans.iter().zip(&own) {
        if let Some(key) = key {
            of_trace.entry(&span.trace).or_insert_with(|| Arc::clone(key));
        }
    }
    let key = |(span, own): (&Span, &Option<Arc<str>>)| {
        own.clone().or_else(|| of_trace.get(&*span.trace).cloned()).unwrap_or_else(|| Arc::clone(&span.trace))
    };
    spans.iter().zip(&own).map(key).collect()
}

/// Takes what a span becomes: a message, the number of the span, and its size.
type Tell<'t> = &'t mut dyn FnMut(Turn, u64, usize) -> Result<(), ImportError>;

/// The spans of one run, in their order.
struct Story {
    spans: Vec<Span>,
    order: Vec<usize>,
    /// By span: the agent, the answer of a model that it is a part of, the call of a tool that it is a part of, whether a model is
    /// below it, and the last place in the order of a span below it.
    agents: Vec<Option<Arc<str>>>,
    sums: Sums,
    answers: Vec<Option<usize>>,
    around: Vec<Option<usize>>,
    has_model: Vec<bool>,
    /// By span: the tokens of the calls of models at and below it, of one within another the larger number; `None` if one states
    /// none, because what it states itself is unknown already.
    tokens: Vec<Option<u64>>,
    last: Vec<usize>,
    heard: Heard,
    calls: Asked,
    /// The words in which messages repeat the result of a call, by its id.
    results: HashMap<String, Value>,
    has_tools: bool,
    is_noted: bool,
}

impl Story {
    fn of(mut spans: Vec<Span>) -> Story {
        drop_repeated(&mut spans);
        let line = Line::of(&spans);
        let order = in_order(&mut spans);
        let mut place = vec![0; spans.len()];
        order.iter().enumerate().for_each(|(index, at)| place[*at] = index);
        let count = spans.len();
        let sums = Sums::of(&mut spans, &line);
        let (mut agents, mut answers, mut around) = (vec![None; count], vec![None; count], vec![None; count]);
        let (mut has_model, mut last) = (vec![false; count], place);
        for at in line.downwards.iter().copied() {
            let span = &spans[at];
            let above = line.above[at];
            agents[at] = span.agent.clone().or_else(|| above.and_then(|above| agents[above].clone()));
            let Some(above) = above else { continue };
            (answers[at], around[at]) = match spans[above].kind {
                Kind::Model if sums.is_sum[above] => (None, around[above]),
                Kind::Model => (answers[above].or(Some(above)), around[above]),
                Kind::Tool => (None, Some(above)),
                Kind::Agent => (None, None),
                Kind::Other => (answers[above], around[above]),
            };
        }
        let mut tokens = vec![Some(0u64); count];
        for at in line.downwards.iter().copied().rev() {
            if spans[at].kind == Kind::Model {
                has_model[at] = true;
                let own = tokens_of(&spans[at]);
                tokens[at] = own.map(|own| own.max(tokens[at].unwrap_or_default()));
            }
            if let Some(above) = line.above[at] {
                has_model[above] |= has_model[at];
                tokens[above] = tokens[above].zip(tokens[at]).map(|(one, more)| one.saturating_add(more));
                last[above] = last[above].max(last[at]);
            }
        }
        let has_tools = spans.iter().any(|span| span.kind == Kind::Tool);
        let mut calls = Asked::default();
        let tools = spans.iter().filter(|span| span.kind == Kind::Tool);
        calls.of_spans = tools.filter_map(|span| span.call_id.clone()).collect();
        let results = results(&spans, &calls.of_spans);
        Story {
            spans,
            order,
            agents,
            sums,
            answers,
            around,
            has_model,
            tokens,
            last,
            heard: Heard::default(),
            calls,
            results,
            has_tools,
            is_noted: false,
        }
    }

    /// Hands over what the spans become.
    fn tell(&mut self, tell: Tell<'_>) -> Result<(), ImportError> {
        // A result comes after the last span below its tool: the key is the place of that span in the order.
        let mut waiting: BTreeMap<usize, Vec<(Turn, u64, usize)>> = BTreeMap::new();
        for index in 0..self.order.len() {
            let at = self.order[index];
            match self.spans[at].kind {
                Kind::Model => self.model(at, tell)?,
                Kind::Tool => {
                    if let Some(result) = self.tool(at, tell)? {
                        waiting.entry(self.last[at]).or_default().push(result);
                    }
                }
                Kind::Agent | Kind::Other => self.other(at, tell)?,
            }
            // The innermost of several was asked last.
            for (turn, number, size) in waiting.remove(&index).into_iter().flatten().rev() {
                tell(turn, number, size)?;
            }
        }
        Ok(())
    }

    /// Returns the main turn of a span, with its kept members and its notes.
    fn main(&mut self, at: usize, mut message: Object) -> (Turn, u64, usize) {
        let span = &mut self.spans[at];
        let mut notes = std::mem::take(&mut span.notes);
        if !std::mem::replace(&mut self.is_noted, true) {
            let text = "spans have no order of their own: that of their times is taken";
            notes.push(ImportNote::new(NoteKind::OrderedByTime, At::item("", span.number), text));
        }
        message.set("span", Value::Object(std::mem::take(&mut span.rest)));
        let size = usize::try_from(message.size()).unwrap_or(usize::MAX);
        let delta = span.delta.take();
        (Turn { message, notes, delta, ..Turn::default() }, span.number, size)
    }

    /// The new messages of a call of a model, and its answer.
    fn model(&mut self, at: usize, tell: Tell<'_>) -> Result<(), ImportError> {
        let number = self.spans[at].number;
        let (inputs, outputs) =
            (std::mem::take(&mut self.spans[at].inputs), std::mem::take(&mut self.spans[at].outputs));
        let agent = self.agents[at].clone();
        let said = match std::mem::take(&mut self.spans[at].said) {
            said if said.len() == inputs.len() => said,
            _ => inputs.iter().map(identity).collect(),
        };
        let is_new = self.heard.hear(&said);
        for (message, _) in inputs.into_iter().zip(is_new).filter(|(_, is_new)| *is_new) {
            let mut notes = account(&message, number);
            for message in self.calls.given(message) {
                let message = named(message, agent.as_deref());
                let size = usize::try_from(message.size()).unwrap_or(usize::MAX);
                let notes = std::mem::take(&mut notes);
                let turn = Turn { message, notes, is_counted_elsewhere: true, ..Turn::default() };
                tell(turn, number, size)?;
            }
        }
        for message in &outputs {
            self.spans[at].notes.append(&mut account(message, number));
        }
        let made: Vec<Short> = outputs.iter().map(identity).collect();
        let wrapper = self.answers[at];
        let above = std::iter::successors(self.sums.above[at], |above| self.sums.above[*above]);
        let is_repeated = above.into_iter().any(|above| self.heard.has_made(above, &made));
        self.heard.keep(at, &said, &made);
        let answer = self.answer_of(wrapper.unwrap_or(at));
        let asks = outputs.iter().any(|message| message.contains_key("tool_calls") || has_parts(message));
        self.note_calls(at, asks);
        let mut messages: Vec<Object> =
            outputs.into_iter().flat_map(|message| self.calls.made(message, is_repeated)).collect();
        if messages.is_empty() {
            messages.push(of_role("assistant", Some(Value::Null)));
        }
        let usage = self.spans[at].usage.take();
        let first = messages.iter().position(|message| chat::kind_of(message) == Of::Model).unwrap_or(0);
        let mut usage = usage.map(Value::Object);
        for (index, message) in messages.into_iter().enumerate() {
            let mut message = named(message, agent.as_deref());
            if index != first {
                let size = usize::try_from(message.size()).unwrap_or(usize::MAX);
                let is_counted_elsewhere = chat::kind_of(&message) != Of::Model || index < first;
                let answer = (!is_counted_elsewhere).then(|| answer.clone());
                tell(Turn { message, answer, is_counted_elsewhere, ..Turn::default() }, number, size)?;
                continue;
            }
            if let Some(usage) = usage.take() {
                message.set("usage", usage);
            }
            let (turn, number, size) = self.main(at, message);
            let is_counted_elsewhere = self.sums.is_elsewhere[at];
            tell(Turn { answer: Some(answer.clone()), is_counted_elsewhere, ..turn }, number, size)?;
        }
        Ok(())
    }

    /// Notes a call of a model that nothing has.
    fn note_calls(&mut self, at: usize, asks: bool) {
        if self.spans[at].says_calls && !asks && !self.has_tools {
            let text = "the model asked for a call, and neither its answer nor a span has it";
            let place = At::item("", self.spans[at].number);
            let note = ImportNote::not_read(place, &[CALLS, FAILURES], text);
            self.spans[at].notes.push(note);
        }
    }

    /// The id of the answer of a span: the one that it states, else its own.
    fn answer_of(&self, at: usize) -> String {
        let span = &self.spans[at];
        let own = || format!("span {} {}", span.trace, span.number);
        span.answer.as_ref().map_or_else(own, |id| format!("answer {id}"))
    }

    /// The request of a tool, unless the model's answer is that, and its result.
    fn tool(&mut self, at: usize, tell: Tell<'_>) -> Result<Option<(Turn, u64, usize)>, ImportError> {
        let span = &mut self.spans[at];
        let name = span.tool.take().unwrap_or_else(|| span.name.clone());
        let (params, number, own) = (span.params.take(), span.number, span.call_id.take());
        let output = span.output.take();
        if let Some(outer) = self.around[at]
            && self.calls.is_same(outer, &name, own.as_deref(), params.as_ref())
        {
            // Another layer of the program measured the same call.
            self.spans[at].tool = Some(name);
            self.spans[at].params = params;
            self.spans[at].output = output;
            self.other(at, tell)?;
            return Ok(None);
        }
        let known = self.calls.find(own.as_deref(), &name, params.as_ref());
        let id = match (&known, own) {
            (Some(id), _) => id.clone(),
            (None, Some(own)) => Some(own),
            (None, None) => {
                let span = &self.spans[at];
                Some(span.id.as_ref().map_or_else(|| format!("span {number}"), |id| id.to_string()))
            }
        };
        self.calls.ran(at, &name, id.as_deref(), params.as_ref(), known.is_none());
        let agent = self.agents[at].clone();
        if known.is_none() {
            let mut call = vec![("name", Value::from(&*name))];
            call.extend(id.as_deref().map(|id| ("id", Value::from(id))));
            call.extend(params.map(|params| ("arguments", params)));
            let mut message = of_role("assistant", Some(Value::Null));
            message.set("tool_calls", Value::array([Value::record(call)]));
            let message = named(message, agent.as_deref());
            let size = usize::try_from(message.size()).unwrap_or(usize::MAX);
            tell(Turn { message, is_counted_elsewhere: true, ..Turn::default() }, number, size)?;
        }
        let said = || id.as_ref().and_then(|id| self.results.get(id).cloned());
        let output = output.or_else(said);
        let span = &self.spans[at];
        if span.is_unfinished && output.is_none() && span.failed.is_none() && span.error.is_none() {
            if let Some(id) = &id {
                self.calls.answered.remove(id);
            }
            self.other(at, tell)?;
            return Ok(None);
        }
        let mut message = of_role("tool", output);
        message.set("name", Value::from(name));
        if let Some(id) = id {
            message.set("tool_call_id", Value::from(id));
        }
        let span = &mut self.spans[at];
        if let Some(failed) = span.failed {
            message.set("is_error", Value::from(failed));
        }
        if let Some(error) = span.error.take() {
            message.set("error", error);
        }
        let (turn, number, size) = self.main(at, message);
        Ok(Some((Turn { is_output: true, ..turn }, number, size)))
    }

    /// A span that is neither: an observation.
    fn other(&mut self, at: usize, tell: Tell<'_>) -> Result<(), ImportError> {
        let agent = self.agents[at].clone();
        let span = &mut self.spans[at];
        let asks =
            span.outputs.iter().any(|message| message.contains_key("tool_calls") || has_parts(message));
        let may: &'static [&'static str] = match (asks, span.usage.is_some()) {
            _ if self.has_model[at] => &[],
            (true, true) => &[CALLS, FAILURES, USAGE],
            (true, false) => &[CALLS, FAILURES],
            (false, true) => &[USAGE],
            (false, false) => &[],
        };
        if !may.is_empty() {
            let text =
                "this span is no call of a model, and none is below it: what it states of one is not read";
            span.notes.push(ImportNote::not_read(At::item("", span.number), may, text));
        } else if let (Some(sum), Some(below)) = (tokens_of(span), self.tokens[at])
            && sum > below
        {
            let text = "the tokens of this span are more than those of the calls of models below it";
            span.notes.push(ImportNote::not_read(At::item("", span.number), &[USAGE], text));
        }
        let message = of_role("environment", Some(Value::from(&*span.name)));
        let (turn, number, size) = self.main(at, named(message, agent.as_deref()));
        tell(turn, number, size)
    }
}

/// The tokens that a span states.
pub(crate) fn tokens_of(span: &Span) -> Option<u64> {
    let tokens = tokens::of(span.usage.as_ref()?, false).ok()??;
    tokens.as_u64()
}

/// Spans of models with several below them, which sum them: each of these counts, and the one above does not. A single one below
/// measures the same answer.
struct Sums {
    /// The nearest model above a span, unless a tool or an agent is between them.
    above: Vec<Option<usize>>,
    is_sum: Vec<bool>,
    /// Whether the usage of a span is stated on others.
    is_elsewhere: Vec<bool>,
}

impl Sums {
    /// Finds the sums, and takes their usage away.
    fn of(spans: &mut [Span], line: &Line) -> Sums {
        let mut above: Vec<Option<usize>> = vec![None; spans.len()];
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); spans.len()];
        for at in line.downwards.iter().copied() {
            above[at] = line.above[at].and_then(|outer| match spans[outer].kind {
                Kind::Model => Some(outer),
                Kind::Other => above[outer],
                Kind::Tool | Kind::Agent => None,
            });
            if let Some(outer) = above[at].filter(|_| spans[at].kind == Kind::Model) {
                below[outer].push(at);
            }
        }
        let stated: Vec<[Option<f64>; 2]> =
            spans.iter().map(|span| span.usage.as_ref().map(usage::numbers).unwrap_or_default()).collect();
        let mut is_sum = vec![false; spans.len()];
        let mut is_elsewhere = vec![false; spans.len()];
        for at in line.downwards.iter().copied().rev() {
            let inner: Vec<[Option<f64>; 2]> = below[at].iter().map(|inner| stated[*inner]).collect();
            let has_usage = inner.iter().any(|one| *one != [None, None]);
            is_sum[at] = (inner.len() > 1 && has_usage) || below[at].iter().any(|inner| is_sum[*inner]);
            if !is_sum[at] {
                continue;
            }
            is_elsewhere[at] = true;
            if !(0..2).all(|metric| is_of_those_below(stated[at], &inner, metric)) {
                let text =
                    "the usage of this span is neither the sum of those below it nor that of one of them";
                let note = ImportNote::not_read(At::item("", spans[at].number), &[USAGE], text);
                spans[at].notes.push(note);
            }
            if stated[at][0].is_some_and(|own| is_sum_of(own, &inner, 0)) {
                below[at].iter().for_each(|inner| is_elsewhere[*inner] |= stated[*inner] == [None, None]);
            }
            spans[at].usage = None;
        }
        Sums { above, is_sum, is_elsewhere }
    }
}

/// Whether a metric of a span is the sum of the spans below it.
fn is_sum_of(own: f64, inner: &[[Option<f64>; 2]], metric: usize) -> bool {
    let stated: Vec<f64> = inner.iter().filter_map(|one| one[metric]).collect();
    !stated.is_empty() && is_same_number(own, stated.iter().sum())
}

/// Whether a metric of a span is the sum of the spans below it, or that of one of them, or not stated.
fn is_of_those_below(own: [Option<f64>; 2], inner: &[[Option<f64>; 2]], metric: usize) -> bool {
    let is_one = |own: f64| inner.iter().filter_map(|one| one[metric]).any(|one| is_same_number(one, own));
    own[metric].is_none_or(|own| is_sum_of(own, inner, metric) || is_one(own))
}

/// Costs are sums of fractions.
fn is_same_number(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

/// Notes spans whose parent is missing, or whose parents make a circle.
fn note_parents(spans: &mut [Span], line: &Line) {
    for (kind, places, text) in [
        (NoteKind::ParentMissing, &line.missing, "the span above this one is not in the file"),
        (NoteKind::ParentCycle, &line.cycles, "the spans above this one make a circle"),
    ] {
        for at in places {
            let note = ImportNote::new(kind, At::item("", spans[*at].number), text);
            spans[*at].notes.push(note);
        }
    }
}

/// Leaves out each span that is there already as it is. Another one of the same id is kept, and states nothing.
fn drop_repeated(spans: &mut Vec<Span>) {
    let mut firsts: HashMap<(Arc<str>, Arc<str>), (usize, Short)> = HashMap::new();
    let mut repeated: Vec<(usize, u64)> = Vec::new();
    let mut kept: Vec<Span> = Vec::with_capacity(spans.len());
    for mut span in spans.drain(..) {
        let key = span.id.as_ref().map(|id| (Arc::clone(&span.trace), Arc::clone(id)));
        let first = key.as_ref().and_then(|key| firsts.get(key)).copied();
        match first {
            Some((first, content)) if content == span.content => {
                repeated.push((first, span.number));
                continue;
            }
            Some((first, _)) => {
                let may = &[CALLS, USAGE, FAILURES, SPEAKERS];
                let text =
                    format!("/{} has the id of this span, and says something else", kept[first].number);
                span.notes.push(ImportNote::not_read(At::item("", span.number), may, text));
                (span.kind, span.agent, span.usage) = (Kind::Other, None, None);
                (span.inputs, span.outputs, span.id) = (Vec::new(), Vec::new(), None);
            }
            None => {
                if let Some(key) = key {
                    firsts.insert(key, (kept.len(), span.content));
                }
            }
        }
        kept.push(span);
    }
    for (first, number) in repeated {
        let at = At::item("", number);
        let text = format!("/{} has this id and content", kept[first].number);
        let note = ImportNote::new(NoteKind::Repeated, at, text);
        let first = &mut kept[first];
        first.notes.push(note.with("first", Value::from(format!("/{}", first.number))));
    }
    *spans = kept;
}

/// The places of spans in the order of their times. One without a time comes after the one before it in the file.
fn in_order(spans: &mut [Span]) -> Vec<usize> {
    let mut keys: Vec<(i128, Arc<str>)> = Vec::with_capacity(spans.len());
    for span in spans.iter_mut() {
        let key = match &span.order {
            Some(order) => order.clone(),
            None => {
                let text = "this span has no time: it comes after the one before it in the file";
                span.notes.push(ImportNote::new(NoteKind::NoOrder, At::item("", span.number), text));
                keys.last().cloned().unwrap_or_else(|| (i128::MIN, Arc::from("")))
            }
        };
        keys.push(key);
    }
    let mut order: Vec<usize> = (0..spans.len()).collect();
    order.sort_by(|one, other| keys[*one].cmp(&keys[*other]));
    order
}

/// The words of results among the messages that models were given, of these calls.
fn results(spans: &[Span], of: &BTreeSet<String>) -> HashMap<String, Value> {
    let (mut found, mut seen) = (HashMap::new(), HashSet::new());
    for span in spans.iter().filter(|span| span.kind == Kind::Model) {
        for (index, message) in span.inputs.iter().enumerate() {
            if span.said.get(index).is_some_and(|said| !seen.insert(*said)) {
                continue;
            }
            for piece in pieces(message.clone()) {
                if let Some(id) = answered(&piece).filter(|id| of.contains(*id))
                    && let Some(content) = piece.get("content")
                {
                    found.entry(id.to_owned()).or_insert_with(|| content.clone());
                }
            }
        }
    }
    found
}

/// The call that a message answers.
fn answered(message: &Object) -> Option<&str> {
    (chat::kind_of(message) == Of::Result).then(|| message.get("tool_call_id")?.as_str())?
}

/// A message without its results, and each of these.
fn pieces(message: Object) -> Vec<Object> {
    match parts::split(&message, chat::kind_of(&message)) {
        None => vec![message],
        Some(pieces) => pieces.into_iter().filter_map(|piece| piece.value.as_object().cloned()).collect(),
    }
}

/// Notes the members of a message of a model that are in no table and show.
fn account(message: &Object, number: u64) -> Vec<ImportNote> {
    let mut notes = Vec::new();
    Account::default().item(
        &chat::OF_LIBRARIES,
        chat::kind_of(message),
        message,
        &At::item("", number),
        &mut notes,
    );
    notes
}

fn has_parts(message: &Object) -> bool {
    parts::split(message, Of::Model).is_some()
}

pub(crate) fn of_role(role: &str, content: Option<Value>) -> Object {
    let members = [("role", Some(Value::from(role))), ("content", content)];
    members.into_iter().filter_map(|(name, value)| Some((Arc::from(name), value?))).collect()
}

/// A message of a model with the agent that speaks, unless it names one itself.
fn named(mut message: Object, agent: Option<&str>) -> Object {
    let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
    let is_own = role == "environment" || chat::kind_of(&message) == Of::Model;
    let has_name = message.get("name").and_then(Value::as_str).is_some_and(|name| !name.trim().is_empty());
    if let Some(agent) = agent.filter(|_| is_own && !has_name) {
        message.set("name", Value::from(agent));
    }
    message
}

/// Returns the identity of a message, however it is written: role, texts, calls and results. Thoughts are left out,
/// because programs do not send them back.
pub(crate) fn identity(message: &Object) -> Short {
    let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
    let mut said = match role {
        "human" => "user".to_owned(),
        "ai" | "model" => "assistant".to_owned(),
        "developer" => "system".to_owned(),
        "function" => "tool".to_owned(),
        role => role.to_lowercase(),
    };
    for piece in pieces(message.clone()) {
        let mut add = |kind: char, value: &Value| {
            said.push('\n');
            said.push(kind);
            said.push_str(&json::to_string(value));
        };
        for list in parts::LISTS {
            match piece.get(list) {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) if text.is_empty() => {}
                Some(Value::Array(parts)) => parts.iter().for_each(|part| match part.get("text") {
                    Some(text) if part.get("type").is_none_or(|kind| kind.as_str() != Some("reasoning")) => {
                        add('t', text)
                    }
                    _ if is_thought(part) => {}
                    _ => add('p', part),
                }),
                Some(text) => add('t', text),
            }
        }
        if let Some(id) = piece.get("tool_call_id") {
            add('r', id);
        }
        let listed =
            piece.get("tool_calls").and_then(Value::as_array).cloned().unwrap_or_else(Array::default);
        for call in listed.iter().chain(piece.get("function_call")) {
            let held = call.get("function").filter(|held| held.as_object().is_some()).unwrap_or(call);
            let params = held.get("arguments").or_else(|| held.get("args")).map(plain);
            let id = call.get("id").cloned().unwrap_or(Value::Null);
            let name = held.get("name").cloned().unwrap_or(Value::Null);
            add('c', &Value::array([id, name, params.unwrap_or(Value::Null)]));
        }
    }
    short(said.as_bytes())
}

fn is_thought(part: &Value) -> bool {
    matches!(part.get("type").and_then(Value::as_str), Some("reasoning" | "thinking" | "redacted_thinking"))
}

/// A value, or what a text is as JSON.
pub(crate) fn plain(value: &Value) -> Value {
    match value.as_str().map(str::trim_ascii).filter(|text| text.starts_with(['{', '['])) {
        Some(text) => json::parse_door(text.as_bytes()).unwrap_or_else(|_| value.clone()),
        None => value.clone(),
    }
}

/// The messages that spans had.
#[derive(Debug, Default)]
struct Heard {
    /// The last span that had a message: its place in `spans`.
    last: HashMap<Short, usize>,
    /// The messages of each span with their numbers, sorted: a lookup must not walk over a long span.
    spans: Vec<Vec<(Short, usize)>>,
    /// Messages that each span made, by its place in the file.
    made: HashMap<usize, Vec<Short>>,
}

impl Heard {
    /// Says which messages are new. They are compared in order with those of the span that most of them were in: a message that
    /// is there once and here twice is new the second time. Any other is new if no span had it.
    fn hear(&self, said: &[Short]) -> Vec<bool> {
        let mut votes: BTreeMap<usize, usize> = BTreeMap::new();
        for place in said.iter().filter_map(|one| self.last.get(one)) {
            *votes.entry(*place).or_default() += 1;
        }
        let before = votes.into_iter().max_by_key(|(place, count)| (*count, *place));
        let places = before.map(|(place, _)| &self.spans[place][..]).unwrap_or_default();
        let mut from = 0;
        let is_new = |one: &Short| {
            let next = places.partition_point(|known| *known < (*one, from));
            match places.get(next) {
                Some((known, index)) if known == one => {
                    from = index + 1;
                    false
                }
                // It is there, and a message before this one is the same.
                _ if next > 0 && places[next - 1].0 == *one => true,
                _ => !self.last.contains_key(one),
            }
        };
        said.iter().map(is_new).collect()
    }

    fn keep(&mut self, at: usize, said: &[Short], made: &[Short]) {
        let place = self.spans.len();
        let all = said.iter().chain(made).copied();
        let mut all: Vec<(Short, usize)> = all.zip(0..).collect();
        self.last.extend(all.iter().map(|(one, _)| (*one, place)));
        all.sort_unstable();
        self.spans.push(all);
        self.made.insert(at, made.to_vec());
    }

    /// Whether a span made the same messages.
    fn has_made(&self, at: usize, made: &[Short]) -> bool {
        !made.is_empty() && self.made.get(&at).is_some_and(|other| other == made)
    }
}

/// A call of a model that no span ran and no message answered so far.
#[derive(Debug)]
struct Open {
    id: Option<String>,
    is_closed: bool,
}

/// The calls that were asked for.
#[derive(Debug, Default)]
struct Asked {
    /// Ids of calls that have a span.
    of_spans: BTreeSet<String>,
    /// Ids of calls that a span asked for itself, and no model so far.
    by_span: BTreeSet<String>,
    asked: BTreeSet<String>,
    answered: BTreeSet<String>,
    all: Vec<Open>,
    /// Places in `all`, oldest first: by id, and of those that may have a span without their id by tool and by tool and arguments.
    by_id: HashMap<String, VecDeque<usize>>,
    by_tool: HashMap<String, VecDeque<usize>>,
    by_params: HashMap<(String, Option<Short>), VecDeque<usize>>,
    /// Calls by span: tool, id and arguments.
    of: HashMap<usize, (String, Option<String>, Option<Value>)>,
}

impl Asked {
    /// The messages that one becomes which a model was given: without calls that were asked for, and results that are known.
    fn given(&mut self, message: Object) -> Vec<Object> {
        let kept = pieces(message).into_iter().filter_map(|mut piece| {
            if let Some(id) = answered(&piece).map(str::to_owned) {
                if self.of_spans.contains(&id) {
                    return None;
                }
                let is_open = self.close_id(&id);
                return (self.answered.insert(id) || is_open).then_some(piece);
            }
            let had = piece.contains_key("tool_calls");
            self.take_calls(&mut piece, &|asked, id| asked.asked.contains(id));
            let is_known = had && !piece.contains_key("tool_calls");
            (!is_known).then_some(piece)
        });
        kept.collect()
    }

    /// The messages that one becomes which a model made. `is_repeated`: an outer span made the same.
    fn made(&mut self, message: Object, is_repeated: bool) -> Vec<Object> {
        let mut all = pieces(message);
        for piece in &mut all {
            match is_repeated {
                true => set_aside(piece),
                false => self.take_calls(piece, &|asked, id| asked.by_span.contains(id)),
            }
        }
        all
    }

    /// Takes in the calls of a message, and moves those that are known aside.
    fn take_calls(&mut self, message: &mut Object, is_known: &dyn Fn(&Asked, &str) -> bool) {
        let Some(listed) = message.get("tool_calls").and_then(Value::as_array).cloned() else { return };
        let (mut new, mut old) = (Vec::new(), Vec::new());
        for call in listed.iter() {
            let id = call.get("id").and_then(Value::as_str).filter(|id| !id.is_empty());
            if id.is_some_and(|id| is_known(self, id)) {
                self.by_span.remove(id.unwrap_or_default());
                old.push(call.clone());
                continue;
            }
            let held = call.get("function").filter(|held| held.as_object().is_some()).unwrap_or(call);
            let name = held.get("name").or_else(|| call.get("function")).and_then(Value::as_str);
            let params = held.get("arguments").or_else(|| held.get("args"));
            self.ask(id, name.unwrap_or_default(), params);
            new.push(call.clone());
        }
        set_calls(message, new, old);
    }

    fn ask(&mut self, id: Option<&str>, tool: &str, params: Option<&Value>) {
        let place = self.all.len();
        self.all.push(Open { id: id.map(str::to_owned), is_closed: false });
        if let Some(id) = id {
            self.asked.insert(id.to_owned());
            self.by_id.entry(id.to_owned()).or_default().push_back(place);
        }
        if id.is_none_or(|id| !self.of_spans.contains(id)) {
            self.by_tool.entry(tool.to_owned()).or_default().push_back(place);
            self.by_params.entry((tool.to_owned(), arguments(params))).or_default().push_back(place);
        }
    }

    /// Closes the oldest open call of an id; false if no call of the id is open.
    fn close_id(&mut self, id: &str) -> bool {
        close(&mut self.all, self.by_id.get_mut(id)).is_some()
    }

    /// Finds the call that a span runs: by its id, else the oldest of that tool with its arguments. Arguments that are no object are
    /// written in another way than the model's. The id inside is missing for a call without one.
    #[expect(clippy::option_option, reason = "a call may be known and have no id")]
    fn find(&mut self, id: Option<&str>, tool: &str, params: Option<&Value>) -> Option<Option<String>> {
        if let Some(id) = id {
            return self.close_id(id).then(|| Some(id.to_owned()));
        }
        let key = |params| (tool.to_owned(), params);
        let place = match arguments(params) {
            None => close(&mut self.all, self.by_tool.get_mut(tool)),
            params => close(&mut self.all, self.by_params.get_mut(&key(params)))
                .or_else(|| close(&mut self.all, self.by_params.get_mut(&key(None)))),
        }?;
        Some(self.all[place].id.clone())
    }

    /// Takes in a call that a span ran; `is_own`: no model asked for it so far.
    fn ran(&mut self, at: usize, tool: &str, id: Option<&str>, params: Option<&Value>, is_own: bool) {
        if let Some(id) = id {
            self.by_span.extend(is_own.then(|| id.to_owned()));
            self.asked.insert(id.to_owned());
            self.answered.insert(id.to_owned());
        }
        self.of.insert(at, (tool.to_owned(), id.map(str::to_owned), params.map(plain)));
    }

    /// Whether a span below the one of a call is the same call.
    fn is_same(&self, outer: usize, tool: &str, id: Option<&str>, params: Option<&Value>) -> bool {
        self.of.get(&outer).is_some_and(|(other, other_id, other_params)| match (id, other_id) {
            (Some(id), Some(other_id)) if id == other_id => true,
            (Some(_), _) => false,
            (None, _) => other == tool && *other_params == params.map(plain),
        })
    }
}

/// Closes the oldest open call of a queue, and returns its place.
fn close(all: &mut [Open], queue: Option<&mut VecDeque<usize>>) -> Option<usize> {
    let queue = queue?;
    while let Some(place) = queue.pop_front() {
        if !std::mem::replace(&mut all[place].is_closed, true) {
            return Some(place);
        }
    }
    None
}

/// The identity of arguments that are an object, or that are one as Python shows it.
fn arguments(params: Option<&Value>) -> Option<Short> {
    let mut params = plain(params?);
    if let Some(text) = params.as_str() {
        params = json::parse_door(python::to_json(text)?.as_bytes()).ok()?;
    }
    params.as_object().map(|_| short(json::to_string(&params).as_bytes()))
}

/// Moves all calls of a message aside.
fn set_aside(message: &mut Object) {
    if let Some(calls) = message.remove("tool_calls") {
        message.set("repeated_calls", calls);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_of_parents_are_cut_at_their_first_span() {
        let mut above = vec![Some(2), Some(0), Some(1), Some(2), None];
        let mut cycles = Vec::new();
        let order = downwards(&mut above, &mut cycles);
        assert_eq!((order, cycles, above[0]), (vec![0, 1, 2, 3, 4], vec![0], None));
    }
}
