//! Which call a result answers: by id, else by name and order.
//!
//! Holds the calls that are open and nothing else, so memory does not grow with a conversation that answers what
//! it asks.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use dendrer_object::{Digest, Value};

use super::note::{At, ImportNote, NoteKind};
use super::once::{Short, short};

/// A call that was asked for.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) id: Option<Arc<str>>,
    pub(crate) tool: Option<Arc<str>>,
    pub(crate) params: Option<Value>,
    /// The agent that asked.
    pub(crate) agent: Arc<str>,
    /// The place among the calls of its request.
    pub(crate) index: usize,
}

impl Call {
    /// The name of the call, for a note.
    pub(crate) fn name(&self) -> String {
        match (&self.id, &self.tool) {
            (Some(id), Some(tool)) => format!("{id:?} to {tool:?}"),
            (Some(id), None) => format!("{id:?}"),
            (None, Some(tool)) => format!("to {tool:?}"),
            (None, None) => "without id and name".to_owned(),
        }
    }
}

/// The call of a result, as the result names it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Answers<'a> {
    /// The id of the call.
    pub(crate) id: Option<&'a str>,
    /// The tool.
    pub(crate) tool: Option<&'a str>,
    /// The agent that asked.
    pub(crate) agent: Option<&'a str>,
}

/// A call that a result may answer, or another one: tick and place of its request, and which of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contested {
    pub(crate) tick: u64,
    pub(crate) index: usize,
    pub(crate) at: Arc<str>,
}

/// The call that a result answers, as far as it is known.
#[derive(Debug, Default)]
pub(crate) struct Paired {
    pub(crate) call: Option<Call>,
    /// The record of its request.
    pub(crate) cause: Option<Digest>,
    /// Whether its request asks for other calls as well.
    pub(crate) has_others: bool,
    /// The calls that it may answer, where it is not known which.
    pub(crate) contested: Vec<Contested>,
}

/// A request that has open calls.
#[derive(Debug)]
struct Request {
    record: Digest,
    /// How many calls it asks for, and how many of them are open.
    calls: usize,
    open: usize,
    /// Its place in the source.
    at: Arc<str>,
}

/// The calls that are open.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    next: u64,
    open: BTreeMap<u64, (u64, Call)>,
    by_id: BTreeMap<Arc<str>, BTreeSet<u64>>,
    by_tool: BTreeMap<Arc<str>, BTreeSet<u64>>,
    /// The record of each request that has open calls, and how many.
    requests: BTreeMap<u64, Request>,
    /// The open calls that a result without id and tool may have answered.
    contested: BTreeSet<u64>,
    /// By the id of a call: the newest result that answered it.
    answered: HashMap<Short, Answer>,
}

/// A result as far as it is remembered: its number in the source, and its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) number: Option<u64>,
    pub(crate) content: Short,
}

impl Calls {
    /// Returns the result that answered the calls of an id, if none of them is open.
    pub(crate) fn answer(&self, id: &str) -> Option<Answer> {
        self.answered.get(&short(id.as_bytes())).copied().filter(|_| !self.by_id.contains_key(id))
    }

    /// Remembers the result of a call.
    pub(crate) fn keep_answer(&mut self, id: &str, answer: Answer) {
        self.answered.insert(short(id.as_bytes()), answer);
    }

    /// Takes in the calls of a request that is on record.
    pub(crate) fn ask(&mut self, tick: u64, record: Digest, at: At<'_>, calls: Vec<Call>) {
        if calls.is_empty() {
            return;
        }
        let count = calls.len();
        self.requests.insert(tick, Request { record, calls: count, open: count, at: at.to_string().into() });
        for call in calls {
            if let Some(id) = &call.id {
                self.by_id.entry(Arc::clone(id)).or_default().insert(self.next);
            }
            if let Some(tool) = &call.tool {
                self.by_tool.entry(Arc::clone(tool)).or_default().insert(self.next);
            }
            self.open.insert(self.next, (tick, call));
            self.next += 1;
        }
    }

    /// Tells whether a call of this agent with this id is open.
    pub(crate) fn is_open(&self, id: &str, agent: &str) -> bool {
        let same = self.by_id.get(id);
        same.is_some_and(|numbers| numbers.iter().any(|number| *self.open[number].1.agent == *agent))
    }

    /// Finds the call that a result answers, and notes what does not fit; the call is open no more. Of several that it may answer by
    /// their id, what they have in common is returned, without a record, and none is open any more. A result that says nothing of its
    /// call leaves all of several open.
    pub(crate) fn pair(&mut self, said: Answers<'_>, at: At<'_>, notes: &mut Vec<ImportNote>) -> Paired {
        let mut note = |kind, text: String| notes.push(ImportNote::new(kind, at, text));
        if said.id.is_none() && said.tool.is_none() && self.open.len() > 1 {
            let of = |(number, (tick, call)): (&u64, &(u64, Call))| {
                let at = self.requests.get(tick).map(|request| Arc::clone(&request.at));
                let contested = Contested { tick: *tick, index: call.index, at: at.unwrap_or_default() };
                self.contested.insert(*number).then_some(contested)
            };
            let contested = self.open.iter().filter_map(of).collect();
            let text = format!("{} calls are open, and this result names none of them", self.open.len());
            note(NoteKind::ResultAmbiguous, text);
            return Paired { contested, ..Paired::default() };
        }
        let found = self.fitting(said);
        let places = found.iter().filter_map(|one| self.open.get(one));
        let contested: Vec<Contested> = places
            .map(|(tick, call)| {
                let at = self.place(*tick).unwrap_or_default();
                Contested { tick: *tick, index: call.index, at }
            })
            .collect();
        let mut closed: Vec<(Call, Digest, bool)> = found.iter().filter_map(|one| self.close(*one)).collect();
        match closed.len() {
            0 => {
                let what = match (said.id, said.tool) {
                    (Some(id), _) => format!("no open call has the id {id:?}"),
                    (None, Some(tool)) => format!("no open call is to {tool:?}"),
                    (None, None) => "no call is open".to_owned(),
                };
                note(NoteKind::ResultWithoutCall, what);
                Paired::default()
            }
            1 => {
                let (call, request, has_others) = closed.remove(0);
                if let (Some(asked), Some(named)) = (call.tool.as_deref(), said.tool)
                    && asked != named
                {
                    let text = format!("its call is to {asked:?}, and this result names {named:?}");
                    note(NoteKind::ResultNameDiffers, text);
                }
                Paired { call: Some(call), cause: Some(request), has_others, contested: Vec::new() }
            }
            count => {
                let id = said.id.unwrap_or_default();
                let text = format!(
                    "{count} open calls have the id {id:?}, and nothing else says which of them this result answers"
                );
                note(NoteKind::ResultAmbiguous, text);
                let same = |part: &dyn Fn(&Call) -> Option<Arc<str>>| {
                    let first = part(&closed[0].0)?;
                    closed.iter().all(|(call, ..)| part(call).as_ref() == Some(&first)).then_some(first)
                };
                let tool = same(&|call| call.tool.clone());
                let agent = same(&|call| Some(Arc::clone(&call.agent)));
                let call = agent.map(|agent| Call { id: None, tool, params: None, agent, index: 0 });
                Paired { call, contested, ..Paired::default() }
            }
        }
    }

    /// The open calls that a result may answer.
    ///
    /// With an id, only a call of that id. Several open calls may have it: an agent numbers its calls anew, or two agents number alike.
    /// Then the agent that the result names and its tool tell them apart, or nothing does. Without an id, the oldest of the same tool, of the
    /// agent that it names; without a tool, the only one that is open.
    fn fitting(&self, said: Answers<'_>) -> Vec<u64> {
        let narrowed = |found: Vec<u64>, fits: &dyn Fn(&Call) -> bool| {
            let fitting: Vec<u64> = found.iter().filter(|one| fits(&self.open[*one].1)).copied().collect();
            if fitting.is_empty() { found } else { fitting }
        };
        let of_agent = |call: &Call| said.agent.is_some_and(|agent| *call.agent == *agent);
        let of_tool = |call: &Call| said.tool.is_some_and(|tool| call.tool.as_deref() == Some(tool));
        let known = |numbers: Option<&BTreeSet<u64>>| numbers.into_iter().flatten().copied().collect();
        match (said.id, said.tool) {
            (Some(id), _) => narrowed(narrowed(known(self.by_id.get(id)), &of_agent), &of_tool),
            (None, Some(tool)) => {
                narrowed(known(self.by_tool.get(tool)), &of_agent).into_iter().take(1).collect()
            }
            (None, None) => self.open.keys().copied().collect(),
        }
    }

    /// Takes a call out of the open ones.
    fn close(&mut self, number: u64) -> Option<(Call, Digest, bool)> {
        let (tick, call) = self.open.remove(&number)?;
        self.contested.remove(&number);
        forget(&mut self.by_id, call.id.as_ref(), number);
        forget(&mut self.by_tool, call.tool.as_ref(), number);
        let request = self.requests.get_mut(&tick)?;
        let (record, has_others) = (request.record, request.calls > 1);
        request.open -= 1;
        if request.open == 0 {
            self.requests.remove(&tick);
        }
        Some((call, record, has_others))
    }

    /// The place in the source of a request that has open calls.
    pub(crate) fn place(&self, tick: u64) -> Option<Arc<str>> {
        Some(Arc::clone(&self.requests.get(&tick)?.at))
    }

    /// The calls that no result answers: the tick of the request and the call, oldest first.
    pub(crate) fn unanswered(&self) -> impl Iterator<Item = &(u64, Call)> {
        self.open.iter().filter(|(number, _)| !self.contested.contains(number)).map(|(_, open)| open)
    }
}

fn forget(map: &mut BTreeMap<Arc<str>, BTreeSet<u64>>, name: Option<&Arc<str>>, number: u64) {
    let Some(name) = name else { return };
    if let Some(numbers) = map.get_mut(name) {
        numbers.remove(&number);
        if numbers.is_empty() {
            map.remove(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn call(id: Option<&str>, tool: Option<&str>, agent: &str) -> Call {
        Call { id: id.map(Arc::from), tool: tool.map(Arc::from), params: None, agent: agent.into(), index: 0 }
    }

    /// The same rule, by looking at every open call: which calls it may answer.
    fn slow(open: &[(u64, Call)], said: Answers<'_>) -> Vec<u64> {
        let is = |call: &Call, id: bool, agent: bool, tool: bool| {
            (!id || call.id.as_deref() == said.id)
                && (!agent || said.agent == Some(&*call.agent))
                && (!tool || (said.tool.is_some() && call.tool.as_deref() == said.tool))
        };
        let by = |id, agent, tool| -> Vec<u64> {
            open.iter().filter(|(_, call)| is(call, id, agent, tool)).map(|(tick, _)| *tick).collect()
        };
        match (said.id, said.tool) {
            (Some(_), _) => {
                let tries = [(true, true), (true, false), (false, true), (false, false)];
                let tries = tries.map(|(agent, tool)| by(true, agent, tool));
                tries.into_iter().find(|found| !found.is_empty()).unwrap_or_default()
            }
            (None, Some(_)) => {
                let tries = [true, false].map(|agent| by(false, agent, true));
                let found = tries.into_iter().find(|found| !found.is_empty()).unwrap_or_default();
                found.into_iter().take(1).collect()
            }
            (None, None) => by(false, false, false),
        }
    }

    proptest! {
        #[test]
        fn a_result_answers_what_looking_at_every_call_would_give(
            moves in proptest::collection::vec((any::<bool>(), 0..4usize, 0..4usize, 0..3usize), 0..60))
        {
            let names = [None, Some("x"), Some("y"), Some("z")];
            let agents = [None, Some("ann"), Some("bob")];
            let (mut calls, mut open) = (Calls::default(), Vec::new());
            let mut contested = BTreeSet::new();
            for (tick, (asks, id, tool, agent)) in moves.into_iter().enumerate() {
                let (said, tick) = (Answers { id: names[id], tool: names[tool], agent: agents[agent] }, tick as u64);
                if asks {
                    let call = call(said.id, said.tool, said.agent.unwrap_or("ann"));
                    calls.ask(tick, Digest::of(&tick.to_be_bytes()), At::item("", tick), vec![call.clone()]);
                    open.push((tick, call));
                    continue;
                }
                let expected = slow(&open, said);
                let mut notes = Vec::new();
                let at = At { list: "", number: None, within: "", part: None };
                let paired = calls.pair(said, at, &mut notes);
                let kinds: Vec<NoteKind> = notes.iter().map(|note| note.kind).collect();
                if said.id.is_none() && said.tool.is_none() && open.len() > 1 {
                    prop_assert_eq!(kinds, [NoteKind::ResultAmbiguous]);
                    prop_assert_eq!(calls.unanswered().count(), 0);
                    contested.extend(open.iter().map(|(tick, _)| *tick));
                    continue;
                }
                match expected.len() {
                    0 => prop_assert_eq!(kinds, [NoteKind::ResultWithoutCall]),
                    1 => prop_assert_eq!(paired.cause, Some(Digest::of(&expected[0].to_be_bytes()))),
                    _ => {
                        let found: Vec<u64> = paired.contested.iter().map(|one| one.tick).collect();
                        prop_assert!(said.id.is_some() && paired.cause.is_none());
                        prop_assert_eq!((kinds, &found), (vec![NoteKind::ResultAmbiguous], &expected));
                        let of = |part: &dyn Fn(&Call) -> Option<Arc<str>>| -> BTreeSet<Option<Arc<str>>> {
                            open.iter().filter(|(tick, _)| expected.contains(tick)).map(|(_, call)| part(call)).collect()
                        };
                        let (tools, agents) = (of(&|call| call.tool.clone()), of(&|call| Some(Arc::clone(&call.agent))));
                        let only = |found: BTreeSet<Option<Arc<str>>>| {
                            if found.len() == 1 { found.into_iter().next().flatten() } else { None }
                        };
                        let agent = only(agents);
                        // Without an agent that is that of each, nothing of the calls is told.
                        let tool = only(tools).filter(|_| agent.is_some());
                        prop_assert_eq!(paired.call.as_ref().and_then(|call| call.tool.clone()), tool);
                        prop_assert_eq!(paired.call.map(|call| call.agent), agent);
                    }
                }
                open.retain(|(tick, _)| !expected.contains(tick));
                let sure = open.iter().filter(|(tick, _)| !contested.contains(tick)).count();
                prop_assert_eq!(calls.unanswered().count(), sure);
                prop_assert_eq!(calls.requests.len(), open.len());
            }
        }
    }
}
