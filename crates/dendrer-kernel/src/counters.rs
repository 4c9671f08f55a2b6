//! `state.counters`: what can be counted in any trace before anyone has written a pack (design, section 5).
//!
//! Derived from the transitions, outside the state root. Version `counters/1`; a change of meaning is a new
//! version, never a silent one.

mod messages;

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer_object::record::Record;
use dendrer_object::{MESSAGES, Pointer, Value, value::Object};

use crate::requests::{ForbiddenRequest, Requests};
use crate::status;
use crate::unknown::{self, CALL_CONTESTED, NO_USAGE, NOT_READ, ROWS_BEFORE_MISSING, STATUS_UNKNOWN, Since};

/// The names of the counters, for hints.
pub const NAMES: &[&str] = &[
    "transitions",
    "tool_calls",
    "tool_errors",
    "tokens_used",
    "cost_usd",
    "denied_count",
    "last_tool",
    "by_agent",
    "anomalies",
];

/// The member of the counters' value that says from which transition on they are lower bounds.
const UNREAD: &str = "unread";

/// The member of the counters' value with those that are missing: from which transition on, why, and what was counted all the same.
const MISSING: &str = "missing";

/// The one member of a counter that may be missing by itself: whether calls are without a result is not known where a result may answer
/// several.
const UNANSWERED: &str = "anomalies/call_without_result";

/// The counters of what rows of a chain say.
const OF_ROWS: [&str; 6] =
    ["cost_usd", "denied_count", "last_tool", "tokens_used", "tool_calls", "tool_errors"];

/// Returns the counters that count what a part of a source may state that was not read.
fn counters_of(meaning: &str) -> &'static [&'static str] {
    match meaning {
        unknown::CALLS => &["tool_calls", "last_tool", UNANSWERED],
        unknown::USAGE => &["tokens_used", "cost_usd"],
        unknown::FAILURES => &["tool_errors"],
        _ => &["by_agent"],
    }
}

/// Tells whether what is missing is a counter, or this member of it, or below. Without a `name`, of all counters together.
fn is_missing(missing: &str, name: Option<&str>, member: Option<&str>) -> bool {
    let (counter, part) =
        missing.split_once('/').map_or((missing, None), |(counter, part)| (counter, Some(part)));
    name.is_none_or(|name| name == counter) && member.zip(part).is_none_or(|(member, part)| member == part)
}

/// Why a counter is unknown, or a member of it; `None` if it is known. Without a `name`, of all counters together.
pub(crate) fn unknown_since(counters: &Value, name: Option<&str>, member: Option<&str>) -> Option<Since> {
    let unread = counters.get(UNREAD).and_then(Value::as_u64).and_then(|tick| since_unread(tick, name));
    let missing = counters.get(MISSING).and_then(Value::as_object).into_iter().flat_map(Object::iter);
    let missing = missing.filter(|(missing, _)| is_missing(missing, name, member));
    let missing = missing.filter_map(|(_, why)| {
        Some(Since { tick: why.get("since")?.as_u64()?, code: why.get("code")?.as_str()?.into() })
    });
    missing.chain(unread).min_by_key(|since| since.tick)
}

fn since_unread(tick: u64, name: Option<&str>) -> Option<Since> {
    let is_known = matches!(name, Some("transitions" | "version" | UNREAD | MISSING));
    (!is_known).then(|| Since { tick, code: NOT_READ.into() })
}

/// Returns the counters as what is known of them: each a lower bound of what it is. `None` if each is known.
pub(crate) fn lower_bounds(counters: &Value) -> Option<Value> {
    let mut known = counters.as_object()?.clone();
    let unread = known.remove(UNREAD);
    let missing = known.remove(MISSING);
    if unread.is_none() && missing.is_none() {
        return None;
    }
    for (name, why) in missing.iter().filter_map(Value::as_object).flat_map(Object::iter) {
        if let Some(value) = why.get("at_least") {
            known.set(name, value.clone());
        }
    }
    Some(Value::Object(known))
}

/// The counters after some transition.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Counters {
    transitions: u64,
    tool_calls: u64,
    tool_errors: u64,
    tokens_used: f64,
    cost_usd: f64,
    denied_count: u64,
    last_tool: Option<String>,
    by_agent: BTreeMap<String, u64>,
    anomalies: BTreeMap<String, u64>,
    /// How many calls of each tool have no result yet. No expression reads it.
    open: BTreeMap<String, u64>,
    /// The first transition whose message could not be read: it may have been anything, so from there on each counter but
    /// `transitions` is a lower bound.
    unread: Option<u64>,
    /// The counters that are lower bounds by themselves, each with the first transition that does not say what is counted, and why.
    missing: BTreeMap<&'static str, (u64, &'static str)>,
    /// The counters that are unknown, each with the first transition whose counted value cannot be read.
    hidden: BTreeMap<&'static str, Hidden>,
    /// The requests and the decisions about them. No expression reads them.
    pub(crate) requests: Requests,
    /// Whether the run began by rules that count a row of a chain although its hash is wrong or its step is repeated.
    counts_any_row: bool,
}

/// A value that a counter would have counted, and that was erased or withheld.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden {
    /// The tick of the transition.
    pub tick: u64,
    /// The value.
    pub pointer: Pointer,
}

/// Returns the places of a transition that a counter looks at.
fn places(counter: &str, type_name: &str) -> &'static [&'static str] {
    match (counter, type_name) {
        ("by_agent", _) => &["/agent_id"],
        ("tool_calls", "action.request") => &["/action/calls"],
        ("last_tool", "action.request") => &["/action/calls", "/action/tool"],
        ("tool_errors", "action.result") => &["/result/status"],
        ("denied_count", "policy.decision") => &["/policy/decision"],
        ("tokens_used", _) => &["/metrics/tokens_used"],
        ("cost_usd", _) => &["/metrics/cost_usd"],
        ("anomalies", _) => &["/anomalies"],
        _ => &[],
    }
}

impl Counters {
    /// Takes one transition in from its record. A number that cannot be read is unknown from there on, and never taken for
    /// absent.
    pub fn take(&mut self, record: &Record) {
        let type_name = record.header().type_name.as_ref().map_or("", |name| name.as_str());
        let content = record.content();
        let body = record.body();
        let closed = body.fields().iter().filter(|field| body.text(field).is_none());
        let closed: Vec<&Pointer> = closed.map(|field| &field.pointer).collect();
        if !closed.is_empty() {
            let tick = record.header().tick.unwrap_or(0);
            self.hide(tick, type_name, &content, &closed);
        }
        self.add(type_name, &content);
        let header = record.header();
        let place = (header.tick.unwrap_or(0), header.author, Some(record.id()));
        self.requests.take(place, type_name, &content, &header.links);
    }

    fn hide(&mut self, tick: u64, type_name: &str, content: &Value, closed: &[&Pointer]) {
        for counter in NAMES {
            // Whether there was an action at all shows in any of its members.
            let all: &[&str] = match *counter {
                "tool_calls" | "last_tool"
                    if type_name == "action.request" && content.get("action").is_none() =>
                {
                    &["/action"]
                }
                counter => places(counter, type_name),
            };
            let looked_at =
                all.iter().chain(messages::places(counter)).filter_map(|place| place.parse::<Pointer>().ok());
            let hidden = looked_at
                .filter_map(|place| closed.iter().find(|pointer| pointer.overlaps(&place)))
                .map(|pointer| Hidden { tick, pointer: (*pointer).clone() })
                .next();
            if let Some(hidden) = hidden {
                self.hidden.entry(counter).or_insert(hidden);
            }
        }
    }

    /// Returns what keeps any of these counters from being known; `None` asks for all of them.
    pub fn hidden<'a>(&self, names: Option<impl IntoIterator<Item = &'a str>>) -> Option<&Hidden> {
        let wanted: Option<Vec<&str>> = names.map(|names| names.into_iter().collect());
        let hidden = self.hidden.iter();
        let hidden = hidden.filter(|(name, _)| wanted.as_ref().is_none_or(|wanted| wanted.contains(name)));
        hidden.map(|(_, hidden)| hidden).min_by_key(|hidden| hidden.tick)
    }

    /// Why a counter is unknown, if a message that could not be read may have changed it; `None` asks for all of them.
    pub fn unknown_since(&self, name: Option<&str>, member: Option<&str>) -> Option<Since> {
        let unread = self.unread.and_then(|tick| since_unread(tick, name));
        let missing = self.missing.iter().filter(|(missing, _)| is_missing(missing, name, member));
        let missing = missing.map(|(_, (tick, code))| Since { tick: *tick, code: (*code).into() });
        missing.chain(unread).min_by_key(|since| since.tick)
    }

    /// Since when all of them are lower bounds. A counter that is missing by itself is named in `missing` of their value.
    pub fn unread_since(&self) -> Option<Since> {
        since_unread(self.unread?, None)
    }

    /// From the newest transition on, a counter is a lower bound.
    fn miss(&mut self, counter: &'static str, code: &'static str) {
        self.missing.entry(counter).or_insert((self.transitions, code));
    }

    /// The counters with which a run begins, given the requests that are forbidden in the runs that it continues, as its record has
    /// them. Nothing is counted.
    pub fn at_start(denied: Option<&Value>) -> Counters {
        Counters { requests: Requests::at_start(denied), ..Counters::default() }
    }

    /// The requests that are forbidden: what a run begins with that continues this one.
    pub fn forbidden(&self) -> Vec<ForbiddenRequest> {
        self.requests.forbidden()
    }

    /// Whether a call of an action was denied, and not allowed since.
    pub fn is_denied(&self, action: &Value) -> bool {
        self.requests.denied_at(action).is_some()
    }

    /// Counts by the rules of the version by which the run began.
    #[must_use]
    pub fn by_rules(self, version: u64) -> Counters {
        Counters { counts_any_row: version < 2, ..self }
    }

    /// From a row on that is not sound, each counter of `OF_ROWS` is a lower bound, and the row counts for nothing. So it is if
    /// rows before it are missing, but then it counts.
    fn is_unsound(&mut self, content: &Value) -> bool {
        let Some(anomalies) = content.get("anomalies").filter(|_| !self.counts_any_row) else { return false };
        let unsound = unknown::UNSOUND_ROWS.into_iter().find(|kind| unknown::has_note(anomalies, kind));
        let before = Some(ROWS_BEFORE_MISSING).filter(|kind| unknown::has_note(anomalies, kind));
        if let Some(code) = unsound.or(before) {
            OF_ROWS.iter().for_each(|counter| self.miss(counter, code));
        }
        unsound.is_some()
    }

    /// Takes one transition in, given its type and content.
    pub fn add(&mut self, type_name: &str, content: &Value) {
        self.transitions += 1;
        let is_unsound = self.is_unsound(content);
        if let Some(anomalies) = content.get("anomalies") {
            if self.unread.is_none() && unknown::has_unread(anomalies) {
                self.unread = Some(self.transitions);
            }
            if unknown::has_note(anomalies, STATUS_UNKNOWN) {
                self.miss("tool_errors", STATUS_UNKNOWN);
            }
            if unknown::has_note(anomalies, CALL_CONTESTED) {
                self.miss(UNANSWERED, CALL_CONTESTED);
            }
            let noted = anomalies.as_array().into_iter().flat_map(|noted| noted.iter());
            for counter in unknown::unread_meanings(noted).flat_map(counters_of) {
                self.miss(counter, NOT_READ);
            }
        }
        // Once through what it has: most of it is nothing that is counted.
        for (name, value) in content.as_object().into_iter().flat_map(|members| members.iter()) {
            match (&**name, type_name) {
                // A node that writes is counted by its messages, each of which names it.
                ("agent_id", _) if messages::name_agent(content, value) => {}
                ("agent_id", _) => self.add_agent(value),
                ("anomalies", _) => self.add_anomalies(value),
                _ if is_unsound => {}
                ("action", "action.request") => self.add_request(value),
                (MESSAGES, _) => self.add_messages(value),
                ("result", "action.result") => {
                    self.close(content.get("action"));
                    match value.get("status").and_then(Value::as_str).map(status::is_failure) {
                        Some(Some(failed)) => self.tool_errors += u64::from(failed),
                        Some(None) => self.miss("tool_errors", STATUS_UNKNOWN),
                        None => {}
                    }
                }
                ("policy", "policy.decision") => {
                    let decision = value.get("decision").and_then(Value::as_str);
                    self.denied_count += u64::from(decision == Some("deny"));
                }
                ("metrics", _) => {
                    for (counter, sum) in
                        [("tokens_used", &mut self.tokens_used), ("cost_usd", &mut self.cost_usd)]
                    {
                        match value.get(counter) {
                            Some(Value::Null) => {
                                _ = self.missing.entry(counter).or_insert((self.transitions, NO_USAGE))
                            }
                            metric => *sum += metric.and_then(Value::as_f64).unwrap_or(0.0),
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn add_agent(&mut self, agent: &Value) {
        let Some(agent) = agent.as_str() else { return };
        match self.by_agent.get_mut(agent) {
            Some(count) => *count += 1,
            None => {
                self.by_agent.insert(agent.to_owned(), 1);
            }
        }
    }

    /// Whether a call of a tool has no result yet; `None` if it is not known.
    pub fn is_open(&self, tool: &str) -> Option<bool> {
        let is_known = self.unread.is_none()
            && !self.missing.contains_key("last_tool")
            && self.hidden(Some(["tool_calls", "last_tool"])).is_none();
        is_known.then(|| self.open.contains_key(tool))
    }

    fn open(&mut self, call: &Value) {
        if let Some(tool) = call.get("tool").and_then(Value::as_str) {
            *self.open.entry(tool.to_owned()).or_default() += 1;
        }
    }

    fn close(&mut self, action: Option<&Value>) {
        let Some(tool) = action.and_then(|action| action.get("tool")?.as_str()) else { return };
        if let Some(count) = self.open.get_mut(tool) {
            *count -= 1;
            if *count == 0 {
                self.open.remove(tool);
            }
        }
    }

    fn add_anomalies(&mut self, anomalies: &Value) {
        for anomaly in anomalies.as_array().into_iter().flat_map(|list| list.iter()) {
            let kind = anomaly.get("kind").unwrap_or(anomaly).as_str().unwrap_or("unnamed");
            *self.anomalies.entry(kind.to_owned()).or_default() += 1;
        }
    }

    fn add_request(&mut self, action: &Value) {
        let calls = action.get("calls").and_then(Value::as_array);
        let tool = |value: &Value| value.get("tool").and_then(Value::as_str).map(str::to_owned);
        match calls {
            Some(calls) => {
                self.tool_calls += calls.len() as u64;
                calls.iter().for_each(|call| self.open(call));
                let last = calls.len().checked_sub(1).and_then(|last| calls.get(last));
                self.last_tool = last.and_then(tool).or(self.last_tool.take());
            }
            None => {
                self.tool_calls += 1;
                self.open(action);
                self.last_tool = tool(action).or(self.last_tool.take());
            }
        }
    }

    /// Returns the counters as the value that expressions see. One that is not known is left out; of one that is a lower bound,
    /// `missing` says so.
    pub fn to_value(&self) -> Value {
        let unread = self.unread.map(|tick| (UNREAD, Value::from(tick)));
        let (mut missing, mut members) = (Vec::new(), Vec::new());
        for (name, value) in self.counted() {
            match self.missing.get(name) {
                _ if self.hidden.contains_key(name) => {}
                None => members.push((name, value)),
                Some((tick, code)) => {
                    let why =
                        [("at_least", value), ("code", Value::from(*code)), ("since", Value::from(*tick))];
                    missing.push((name, Value::record(why)));
                }
            }
        }
        if let Some((tick, code)) = self.missing.get(UNANSWERED) {
            let why = [("code", Value::from(*code)), ("since", Value::from(*tick))];
            missing.push((UNANSWERED, Value::record(why)));
        }
        let missing = (!missing.is_empty()).then(|| (MISSING, Value::record(missing)));
        Value::record(members.into_iter().chain(unread).chain(missing))
    }

    /// The counters, by name.
    fn counted(&self) -> [(&'static str, Value); 10] {
        let counts = |map: &BTreeMap<String, u64>| {
            let counts = map.iter().map(|(name, count)| (name.as_str().into(), Value::from(*count)));
            Value::Object(counts.collect::<Object>())
        };
        [
            ("anomalies", counts(&self.anomalies)),
            ("by_agent", counts(&self.by_agent)),
            ("cost_usd", Value::from(self.cost_usd)),
            ("denied_count", Value::from(self.denied_count)),
            ("last_tool", Value::from(self.last_tool.clone())),
            ("tokens_used", Value::from(self.tokens_used)),
            ("tool_calls", Value::from(self.tool_calls)),
            ("tool_errors", Value::from(self.tool_errors)),
            ("transitions", Value::from(self.transitions)),
            ("version", Value::from("counters/1")),
        ]
    }

    /// Returns all that is to be known to go on counting. Snapshots hold counters this way.
    pub fn to_kept(&self) -> Value {
        let hidden = self.hidden.iter().map(|(name, Hidden { tick, pointer })| {
            (Arc::from(*name), Value::array([Value::from(*tick), Value::from(pointer.as_str())]))
        });
        let open = self.open.iter().map(|(tool, count)| (Arc::from(tool.as_str()), Value::from(*count)));
        let open = Value::Object(open.collect());
        Value::record([
            ("hidden", Value::Object(hidden.collect())),
            ("known", self.to_value()),
            ("open", open),
            ("requests", self.requests.to_kept()),
        ])
    }

    /// Reads what [`Counters::to_kept`] writes; `None` for anything else.
    pub fn from_kept(value: &Value) -> Option<Counters> {
        let known = value.get("known")?;
        let hidden = value.get("hidden")?.as_object()?.iter().map(|(name, hidden)| {
            let name = NAMES.iter().find(|known| ***known == **name)?;
            let hidden = hidden.as_array()?;
            let (tick, pointer) = (hidden.get(0)?.as_u64()?, hidden.get(1)?.as_str()?.parse().ok()?);
            Some((*name, Hidden { tick, pointer }))
        });
        let hidden: BTreeMap<&'static str, Hidden> = hidden.collect::<Option<_>>()?;
        let lower = known.get(MISSING).and_then(Value::as_object);
        let missing = lower.into_iter().flat_map(Object::iter).map(|(name, why)| {
            let name = NAMES.iter().find(|known| ***known == **name)?;
            let code = [NO_USAGE, NOT_READ, STATUS_UNKNOWN, ROWS_BEFORE_MISSING]
                .into_iter()
                .chain(unknown::UNSOUND_ROWS)
                .find(|code| why.get("code").and_then(Value::as_str) == Some(code));
            Some((*name, (why.get("since")?.as_u64()?, code?)))
        });
        let missing: BTreeMap<&'static str, _> = missing.collect::<Option<_>>()?;
        // A hidden counter is never read, so its value is of no importance here.
        let nothing = Counters { hidden, missing, ..Counters::default() };
        let get = |name: &str| match nothing.hidden.contains_key(name) {
            true => Counters::default().to_value().get(name).cloned(),
            false => known.get(name).or_else(|| lower?.get(name)?.get("at_least")).cloned(),
        };
        let count = |name: &str| get(name)?.as_u64();
        let counts = |name: &str| -> Option<BTreeMap<String, u64>> {
            let counts = get(name)?;
            counts.as_object()?.iter().map(|(key, count)| Some((key.to_string(), count.as_u64()?))).collect()
        };
        let open = value.get("open")?.as_object()?.iter();
        let open = open.map(|(tool, count)| Some((tool.to_string(), count.as_u64()?)));
        let counters = Counters {
            open: open.collect::<Option<_>>()?,
            transitions: count("transitions")?,
            tool_calls: count("tool_calls")?,
            tool_errors: count("tool_errors")?,
            tokens_used: get("tokens_used")?.as_f64()?,
            cost_usd: get("cost_usd")?.as_f64()?,
            denied_count: count("denied_count")?,
            last_tool: get("last_tool")?.as_str().map(str::to_owned),
            by_agent: counts("by_agent")?,
            anomalies: counts("anomalies")?,
            unread: known.get(UNREAD).and_then(Value::as_u64),
            requests: Requests::from_kept(value.get("requests")?)?,
            ..nothing
        };
        (counters.to_kept() == *value).then_some(counters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dendrer_object::json::parse_door;

    #[test]
    fn counters_count_what_their_names_say() {
        let mut counters = Counters::default();
        for (type_name, content) in [
            (
                "action.request",
                r#"{"agent_id":"a","action":{"tool":"search"},"metrics":{"tokens_used":10,"cost_usd":0.5}}"#,
            ),
            ("action.result", r#"{"agent_id":"a","result":{"status":"error"}}"#),
            ("action.request", r#"{"agent_id":"b","action":{"calls":[{"tool":"x"},{"tool":"y"}]}}"#),
            ("action.result", r#"{"agent_id":"b","result":{"status":"ok"}}"#),
            (
                "policy.decision",
                r#"{"agent_id":"b","policy":{"decision":"deny"},"anomalies":[{"kind":"late"},"odd"]}"#,
            ),
        ] {
            counters.add(type_name, &parse_door(content.as_bytes()).unwrap());
        }
        assert_eq!(
            counters.to_value().to_string(),
            r#"{"anomalies":{"late":1,"odd":1},"by_agent":{"a":2,"b":3},"cost_usd":0.5,"denied_count":1,"last_tool":"y","tokens_used":10,"tool_calls":3,"tool_errors":1,"transitions":5,"version":"counters/1"}"#
        );
        assert_eq!(Counters::from_kept(&counters.to_kept()), Some(counters));
    }

    #[test]
    fn a_counter_is_missing_where_nothing_says_what_it_counts() {
        let mut counters = Counters::default();
        for (type_name, content) in [
            ("plan.update", r#"{"agent_id":"a","metrics":{"tokens_used":10}}"#),
            ("plan.update", r#"{"agent_id":"a","metrics":{"tokens_used":null,"cost_usd":2}}"#),
            ("action.result", r#"{"agent_id":"a","result":{"status":"Success"}}"#),
            ("action.result", r#"{"agent_id":"a","result":{"status":"failed"}}"#),
            ("action.result", r#"{"agent_id":"a","result":{"status":"on hold"}}"#),
            ("plan.update", r#"{"agent_id":"a","metrics":{"tokens_used":5}}"#),
        ] {
            counters.add(type_name, &parse_door(content.as_bytes()).unwrap());
        }
        let value = counters.to_value();
        assert_eq!((value.get("tokens_used"), value.get("tool_errors")), (None, None));
        for (name, tick, code, least) in
            [("tokens_used", 2, NO_USAGE, 15u64), ("tool_errors", 5, STATUS_UNKNOWN, 1)]
        {
            let since = Some(Since { tick, code: code.into() });
            assert_eq!(unknown_since(&value, Some(name), None), since);
            assert_eq!(counters.unknown_since(Some(name), None), since);
            assert_eq!(lower_bounds(&value).unwrap().get(name), Some(&Value::from(least)));
        }
        assert_eq!(unknown_since(&value, Some("cost_usd"), None), None);
        assert_eq!(unknown_since(&value, None, None).map(|since| since.tick), Some(2));
        assert_eq!(Counters::from_kept(&counters.to_kept()), Some(counters));
    }

    #[test]
    fn counters_are_lower_bounds_behind_an_unread_message() {
        let mut counters = Counters::default();
        counters.add("observation.add", &parse_door(br#"{"agent_id":"a"}"#).unwrap());
        assert_eq!(counters.unknown_since(None, None), None);
        let gap = br#"{"agent_id":"a","anomalies":[{"gap":true,"kind":"source_cut"}]}"#;
        counters.add("observation.add", &parse_door(gap).unwrap());
        counters.add("observation.add", &parse_door(gap).unwrap());
        let value = counters.to_value();
        assert_eq!(unknown_since(&value, Some("tool_calls"), None).map(|since| since.tick), Some(2));
        assert_eq!(unknown_since(&value, Some("transitions"), None), None);
        let bounds = lower_bounds(&value).unwrap();
        assert_eq!(unknown_since(&bounds, None, None), None);
        assert_eq!(bounds.get("transitions"), Some(&Value::from(3u64)));
        assert_eq!(Counters::from_kept(&counters.to_kept()), Some(counters));
    }
}
