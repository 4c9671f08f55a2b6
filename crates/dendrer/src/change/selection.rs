//! Which intents of a run are proposed again, and what stays behind with those that are not (design, section 4).

use std::collections::{BTreeMap, BTreeSet};

use dendrer_object::record::{Record, Rel};
use dendrer_object::{Code, Digest, TypeName, Value};

use crate::error::Error;
use crate::problem::Problem;
use crate::run::calls::{CallKey, answered, calls};
use crate::run::declared;
use crate::run::trace::Trace;

/// Which intents are taken. Without a choice, all are, up to the first that does not fit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Leaves out an intent that does not fit, and takes the next one.
    pub skip: bool,
    /// The types that are taken; `None` for all.
    pub only: Option<BTreeSet<TypeName>>,
}

impl Selection {
    /// Returns the selection that a question names.
    pub(super) fn of(skip: bool, only: &[String]) -> Result<Selection, Problem> {
        let types = only.iter().map(|text| text.parse()).collect::<Result<BTreeSet<TypeName>, _>>();
        let types = types.map_err(|error| Problem::new(Code::E0210, error.to_string()))?;
        Ok(Selection { skip, only: Some(types).filter(|types| !types.is_empty()) })
    }

    /// Whether something may be left out.
    pub(super) fn is_choice(&self) -> bool {
        self.skip || self.only.is_some()
    }

    /// Whether intents of this type are taken.
    pub(super) fn takes(&self, type_name: &TypeName) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(type_name))
    }

    /// Refuses a type that nothing declares: a slip there would leave out everything.
    pub(super) fn check(&self, trace: &Trace) -> Result<(), Error> {
        declared::types(trace, self.only.iter().flatten().map(TypeName::as_str))
    }

    /// The choice, as a marker names it.
    pub(super) fn sealed(&self) -> Value {
        let only = self
            .only
            .as_ref()
            .map_or(Value::Null, |only| Value::array(only.iter().map(|name| Value::from(name.as_str()))));
        Value::record([("only", only), ("skip", Value::from(self.skip))])
    }
}

/// The records of a run that were left out, so that their results and each record that names them are left out as well.
#[derive(Debug, Default)]
pub(super) struct LeftBehind {
    /// The ticks of what was left out, by id.
    ticks: BTreeMap<Digest, u64>,
    /// Calls that no result answered yet.
    open: Vec<(Digest, CallKey)>,
    /// The last request of an agent that has a call of this id.
    by_call_id: BTreeMap<(String, String), Digest>,
    /// The tick of a marker that was left out, if what it imported is what follows.
    imports: Option<u64>,
}

impl LeftBehind {
    /// Returns the tick of what was left out that a record names, or that asked for what it answers. Records come in the order of
    /// ticks, each once.
    pub(super) fn named_by(&mut self, tick: u64, record: &Record) -> Option<u64> {
        let header = record.header();
        if let Some(marker) = self.imports.take() {
            return Some(marker);
        }
        let named =
            header.links.iter().filter(|link| !matches!(link.rel, Rel::PickedFrom | Rel::Predecessor));
        let named = named.filter_map(|link| self.ticks.get(&link.hash).copied()).min();
        let type_name = header.type_name.as_ref().map_or("", TypeName::as_str);
        if !matches!(type_name, "action.request" | "action.result") {
            return named;
        }
        let content = record.content();
        let agent = content.get("agent_id").and_then(Value::as_str).unwrap_or_default();
        let ids = call_ids(&content).map(|id| (agent.to_owned(), id.to_owned()));
        if type_name == "action.request" {
            self.by_call_id.extend(ids.map(|id| (id, record.id())));
            self.open.extend(calls(tick, &content).into_iter().map(|key| (record.id(), key)));
            return named;
        }
        let is_linked = |request: &Digest| {
            header.links.iter().any(|link| link.rel == Rel::CausedBy && link.hash == *request)
        };
        let linked = self.open.iter().any(|(request, _)| is_linked(request));
        let by_id = ids.filter_map(|id| self.by_call_id.get(&id).copied()).next().filter(|_| !linked);
        let of = |request: &Digest| by_id.is_none_or(|id| id == *request);
        let asked: Vec<usize> = (0..self.open.len()).filter(|at| of(&self.open[*at].0)).collect();
        let candidates: Vec<_> = asked.iter().map(|at| self.open[*at].clone()).collect();
        let request = match answered(&candidates, &header.links, &content) {
            Some(at) => Some(self.open.remove(asked[at]).0),
            None => by_id,
        };
        named.or_else(|| self.ticks.get(&request?).copied())
    }

    /// Notes that a record was left out.
    pub(super) fn leave(&mut self, tick: u64, record: &Record) {
        self.ticks.insert(record.id(), tick);
        if record.header().type_name.as_ref().is_some_and(|name| name.as_str() == "run.cherrypick") {
            self.imports = Some(tick);
        }
    }
}

/// The ids of the calls that a record asks for or answers.
fn call_ids(content: &Value) -> impl Iterator<Item = &str> {
    let action = content.get("action");
    let listed = action.and_then(|action| action.get("calls")?.as_array());
    let own = action.and_then(|action| action.get("call_id")?.as_str());
    let of_calls = listed.into_iter().flat_map(|calls| calls.iter());
    own.into_iter().chain(of_calls.filter_map(|call| call.get("call_id")?.as_str()))
}
