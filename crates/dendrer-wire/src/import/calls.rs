//! Which call a result answers: by id, else by name and order.
//!
//! Holds the calls that are open and nothing else, so memory does not grow with a conversation that answers what
//! it asks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dendrer_object::{Digest, Value};

/// A call that was asked for.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) id: Option<Arc<str>>,
    pub(super) tool: Option<Arc<str>>,
    pub(super) params: Option<Value>,
    /// The agent that asked.
    pub(super) agent: Arc<str>,
    /// The place among the calls of its request.
    pub(super) index: usize,
}

impl Call {
    /// Says which call it is, for a note.
    pub(super) fn name(&self) -> String {
        match (&self.id, &self.tool) {
            (Some(id), Some(tool)) => format!("{id:?} to {tool:?}"),
            (Some(id), None) => format!("{id:?}"),
            (None, Some(tool)) => format!("to {tool:?}"),
            (None, None) => "without id and name".to_owned(),
        }
    }
}

/// The fate of a result.
#[derive(Debug)]
pub(super) enum Answer {
    /// It answers this call, whose request is this record.
    Found(Call, Digest),
    /// No open call fits.
    None,
    /// It says nothing of its call, and so many are open.
    Several(usize),
}

/// The calls that are open.
#[derive(Debug, Default)]
pub(super) struct Calls {
    next: u64,
    open: BTreeMap<u64, (u64, Call)>,
    by_id: BTreeMap<Arc<str>, BTreeSet<u64>>,
    by_tool: BTreeMap<Arc<str>, BTreeSet<u64>>,
    /// The record of each request that has open calls, and how many.
    requests: BTreeMap<u64, (Digest, usize)>,
}

impl Calls {
    /// Takes in the calls of a request that is on record.
    pub(super) fn ask(&mut self, tick: u64, request: Digest, calls: Vec<Call>) {
        if calls.is_empty() {
            return;
        }
        self.requests.insert(tick, (request, calls.len()));
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

    /// Tells whether a call with this id is open.
    pub(super) fn is_open(&self, id: &str) -> bool {
        self.by_id.contains_key(id)
    }

    /// Finds the call that a result answers, and the record of its request; the call is open no more.
    ///
    /// With an id, only a call of that id; among several the one of the same name, else the oldest. Without, the
    /// oldest of the same name; without a name, the only one that is open. Where several are, nothing is guessed.
    pub(super) fn answer(&mut self, id: Option<&str>, tool: Option<&str>) -> Answer {
        if id.is_none() && tool.is_none() && self.open.len() > 1 {
            return Answer::Several(self.open.len());
        }
        match self.take(id, tool) {
            Some((call, request)) => Answer::Found(call, request),
            None => Answer::None,
        }
    }

    fn take(&mut self, id: Option<&str>, tool: Option<&str>) -> Option<(Call, Digest)> {
        let of_tool = tool.and_then(|tool| self.by_tool.get(tool));
        let number = match (id, tool) {
            (Some(id), _) => {
                let same = self.by_id.get(id)?;
                let named = of_tool.and_then(|numbers| same.iter().find(|number| numbers.contains(number)));
                *named.or_else(|| same.first())?
            }
            (None, Some(_)) => *of_tool?.first()?,
            (None, None) => *self.open.first_key_value()?.0,
        };
        let (tick, call) = self.open.remove(&number)?;
        forget(&mut self.by_id, call.id.as_ref(), number);
        forget(&mut self.by_tool, call.tool.as_ref(), number);
        let (request, left) = self.requests.get_mut(&tick)?;
        let request = *request;
        *left -= 1;
        if *left == 0 {
            self.requests.remove(&tick);
        }
        Some((call, request))
    }

    /// The calls that are open: the tick of the request and the call, oldest first.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = &(u64, Call)> {
        self.open.values()
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

    fn call(id: Option<&str>, tool: Option<&str>) -> Call {
        Call { id: id.map(Arc::from), tool: tool.map(Arc::from), params: None, agent: "a".into(), index: 0 }
    }

    /// The same rule, by looking at every open call.
    fn slow(open: &mut Vec<(u64, Call)>, id: Option<&str>, tool: Option<&str>) -> Option<u64> {
        let fits = |call: &Call| match id {
            Some(id) => call.id.as_deref() == Some(id),
            None => tool.is_none() || call.tool.as_deref() == tool,
        };
        if id.is_none() && tool.is_none() && open.len() > 1 {
            return None;
        }
        let named =
            open.iter().position(|(_, call)| fits(call) && tool.is_some() && call.tool.as_deref() == tool);
        let at = named.or_else(|| open.iter().position(|(_, call)| fits(call)))?;
        Some(open.remove(at).0)
    }

    proptest! {
        #[test]
        fn a_result_answers_what_looking_at_every_call_would_give(
            moves in proptest::collection::vec((any::<bool>(), 0..4usize, 0..4usize), 0..60))
        {
            let names = [None, Some("x"), Some("y"), Some("z")];
            let (mut calls, mut open) = (Calls::default(), Vec::new());
            for (tick, (asks, id, tool)) in moves.into_iter().enumerate() {
                let (id, tool, tick) = (names[id], names[tool], tick as u64);
                if asks {
                    calls.ask(tick, Digest::of(&tick.to_be_bytes()), vec![call(id, tool)]);
                    open.push((tick, call(id, tool)));
                } else {
                    let found = match calls.answer(id, tool) {
                        Answer::Found(_, request) => Some(request),
                        Answer::None => None,
                        Answer::Several(count) => {
                            prop_assert!(id.is_none() && tool.is_none() && count == open.len());
                            None
                        }
                    };
                    let expected = slow(&mut open, id, tool).map(|tick| Digest::of(&tick.to_be_bytes()));
                    prop_assert_eq!(found, expected);
                }
                prop_assert_eq!(calls.unanswered().count(), open.len());
                prop_assert_eq!(calls.requests.len(), open.len());
            }
        }
    }
}
