//! Which conversation a request continues.
//!
//! Requests repeat their conversation: the one that repeats all of a known one continues it. One that repeats the beginning of
//! it alone is another branch of its agent, and so is one that repeats nothing and has the agent's system text and tools.
//! Any other is of a new agent.

use std::collections::HashMap;

use dendrer_object::value::Object;
use dendrer_object::{Digest, Value};
use dendrer_wire::ImportError;
use dendrer_wire::live::{LiveReader, RecordIntent};

use crate::exchange::CallNumber;
use crate::spoken::{Kept, Request};

/// The agent of the first conversation.
const MAIN: &str = "main";

/// A conversation, and how many of its items a request repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Which conversation.
    pub(crate) conversation: usize,
    /// How many items of it come before what is new.
    pub(crate) shared: usize,
}

/// All conversations of a program.
#[derive(Debug, Default)]
pub(crate) struct Conversations {
    all: Vec<Conversation>,
    agents: Vec<Agent>,
    /// By the id of an answer, the place after it.
    answers: HashMap<String, Place>,
}

#[derive(Debug)]
struct Agent {
    name: String,
    is: Digest,
    branches: u64,
}

/// One branch of what an agent and a model said.
#[derive(Debug)]
pub(crate) struct Conversation {
    agent: usize,
    /// Which branch of its agent, from 0.
    pub(crate) branch: u64,
    preamble: Vec<Kept>,
    items: Vec<Kept>,
    keys: Vec<Digest>,
    /// The records of the items, in their order; an item may have several, or none.
    records: Vec<Digest>,
    reader: LiveReader,
    /// The terms of its newest request.
    terms: Object,
    /// The newest call, if it failed.
    pub(crate) failed: Option<CallNumber>,
}

impl Conversations {
    /// How many agents there are.
    pub(crate) fn agents(&self) -> u64 {
        self.agents.len() as u64
    }

    /// The name of the agent of a conversation.
    pub(crate) fn agent(&self, place: Place) -> &str {
        &self.agents[self.all[place.conversation].agent].name
    }

    /// The conversation at a place.
    pub(crate) fn at(&mut self, place: Place) -> &mut Conversation {
        &mut self.all[place.conversation]
    }

    /// Finds the conversation that a request continues, or begins one. Returns it with the items that are new.
    pub(crate) fn find<'r>(&mut self, request: &'r Request) -> Result<(Place, &'r [Kept]), ImportError> {
        let before = request.after.as_ref().and_then(|id| self.answers.get(id)).copied();
        if let Some(place) = before {
            let place = self.branch_at(place)?;
            return Ok((place, &request.items));
        }
        let keys: Vec<Digest> = request.items.iter().map(Kept::key).collect();
        let is = request.agent();
        let places = self.all.iter().enumerate().map(|(conversation, one)| {
            let (shared, repeated) = one.repeated(&request.items, &keys);
            let is_same = self.agents[one.agent].is == is;
            // A request without a new message may be one of another agent that was asked the same.
            let goes_on = shared > 0 && shared == one.keys.len() && (repeated < keys.len() || is_same);
            (goes_on, is_same, Place { conversation, shared }, repeated)
        });
        // The one that repeats most; of several, one of the same agent, and that it continues.
        let fitting = places.filter(|(goes_on, is_same, ..)| *goes_on || *is_same);
        let best =
            fitting.max_by_key(|(goes_on, is_same, place, _)| (place.shared, *goes_on && *is_same, *is_same));
        let (place, repeated) = match best {
            Some((true, _, place, repeated)) => (place, repeated),
            Some((false, _, place, repeated)) => (self.branch_at(place)?, repeated),
            None => (self.begin(request, is)?, 0),
        };
        Ok((place, &request.items[repeated..]))
    }

    /// Begins the conversation of a new agent.
    fn begin(&mut self, request: &Request, is: Digest) -> Result<Place, ImportError> {
        let name = match self.agents.len() {
            0 => MAIN.to_owned(),
            count => format!("sub-{count}"),
        };
        self.agents.push(Agent { name, is, branches: 0 });
        let one = self.new_branch(self.agents.len() - 1, &request.preamble)?;
        self.all.push(one);
        Ok(Place { conversation: self.all.len() - 1, shared: 0 })
    }

    fn new_branch(&mut self, agent: usize, preamble: &[Kept]) -> Result<Conversation, ImportError> {
        let branch = self.agents[agent].branches;
        self.agents[agent].branches += 1;
        let mut reader = LiveReader::default();
        // Words of the system become no record, and have their places.
        for kept in preamble {
            reader.take(kept.came(), &mut |_| Ok(Digest([0; 32])))?;
        }
        Ok(Conversation {
            agent,
            branch,
            preamble: preamble.to_vec(),
            items: Vec::new(),
            keys: Vec::new(),
            records: Vec::new(),
            reader,
            terms: Object::default(),
            failed: None,
        })
    }

    /// The conversation that continues from a place: the one itself at its end, else a new branch with the same beginning.
    pub(crate) fn branch_at(&mut self, place: Place) -> Result<Place, ImportError> {
        let Place { conversation, shared } = place;
        if self.all[conversation].keys.len() == shared {
            return Ok(place);
        }
        let preamble = self.all[conversation].preamble.clone();
        let mut one = self.new_branch(self.all[conversation].agent, &preamble)?;
        let parent = &self.all[conversation];
        (one.items, one.keys) = (parent.items[..shared].to_vec(), parent.keys[..shared].to_vec());
        one.terms = parent.terms.clone();
        let mut known = parent.records.iter();
        for kept in &one.items {
            let records = &mut one.records;
            one.reader.take(kept.came(), &mut |_| {
                let id = known.next().copied().unwrap_or(Digest([0; 32]));
                records.push(id);
                Ok(id)
            })?;
        }
        self.all.push(one);
        Ok(Place { conversation: self.all.len() - 1, shared })
    }

    /// Whether an answer of this id has come.
    pub(crate) fn has_answered(&self, id: &str) -> bool {
        self.answers.contains_key(id)
    }

    /// Whether items repeat a conversation up to a place, and bring more.
    pub(crate) fn is_begun_by(&self, place: Place, keys: &[Digest]) -> bool {
        let known = &self.all[place.conversation].keys;
        place.shared > 0 && keys.len() > place.shared && known.get(..place.shared) == keys.get(..place.shared)
    }

    /// Remembers an answer by its id.
    pub(crate) fn answered(&mut self, place: Place, id: String) {
        let shared = self.all[place.conversation].keys.len();
        self.answers.insert(id, Place { shared, ..place });
    }
}

impl Conversation {
    /// How many items of it a request repeats, and by how many of its own. Thoughts that one of both leaves out do not count.
    fn repeated(&self, items: &[Kept], keys: &[Digest]) -> (usize, usize) {
        let (mut own, mut other) = (0, 0);
        loop {
            match (self.keys.get(own), keys.get(other)) {
                (Some(one), Some(another)) if one == another => (own, other) = (own + 1, other + 1),
                (Some(_), _) if self.items[own].is_thought() => own += 1,
                (Some(_), Some(_)) if items[other].is_thought() => other += 1,
                _ => return (own, other),
            }
        }
    }

    /// How many items it has.
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Adds an item, and hands over the intents that it becomes. `repeated` are the items by which later requests repeat it.
    pub(crate) fn add(
        &mut self,
        item: &Kept,
        repeated: &[Kept],
        record: RecordIntent<'_>,
    ) -> Result<(), ImportError> {
        let records = &mut self.records;
        self.reader.take(item.came(), &mut |intent| {
            let id = record(intent)?;
            records.push(id);
            Ok(id)
        })?;
        self.keys.extend(repeated.iter().map(Kept::key));
        self.items.extend_from_slice(repeated);
        Ok(())
    }

    /// The terms of a request that are not those of the one before it; null for one that is gone. `None` if none changed.
    pub(crate) fn changed(&mut self, terms: &Object) -> Option<Value> {
        let new = terms.iter().filter(|(name, value)| self.terms.get(name) != Some(value));
        let mut changed: Object = new.map(|(name, value)| (name.clone(), value.clone())).collect();
        for (name, _) in self.terms.iter().filter(|(name, _)| !terms.contains_key(name)) {
            changed.set(name, Value::Null);
        }
        self.terms = terms.clone();
        (!changed.is_empty()).then_some(Value::Object(changed))
    }
}
