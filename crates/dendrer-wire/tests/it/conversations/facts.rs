//! What a written conversation is to become, and the comparison with what was imported.

use std::collections::{BTreeMap, BTreeSet};

use dendrer::kernel::counters::Counters;
use dendrer_object::{Record, Value};

use super::model::{Model, Said, Text};
use crate::shown;

/// Tokens of a tick.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) enum Tokens {
    /// No metric: the tick is none of a model, or another tick states the usage of its request.
    #[default]
    None,
    /// The message states none.
    Unstated,
    Is(u64),
}

impl Tokens {
    pub(crate) fn of(usage: Option<[u64; 2]>) -> Tokens {
        usage.map_or(Tokens::Unstated, |[given, made]| Tokens::Is(given + made))
    }
}

/// What a tick is to be.
#[derive(Default, Debug)]
pub(crate) struct Fact {
    pub(crate) kind: &'static str,
    pub(crate) agent: Option<String>,
    /// The calls that it asks for, by their places in `asked`.
    asks: Vec<usize>,
    /// The call that it answers: `Err` if it is to be marked with this kind.
    answers: Option<Result<usize, &'static str>>,
    /// Whether the result states that the call failed; `None` inside if its status is not known.
    failed: Option<Option<bool>>,
    tokens: Tokens,
    /// Notes that it has, besides those of calls and results.
    pub(crate) notes: Vec<&'static str>,
}

/// A call as it is written.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) id: Option<String>,
    pub(crate) tool: String,
    pub(crate) params: Option<Value>,
    pub(crate) agent: String,
    tick: usize,
    is_done: bool,
    /// Whether a result came that may be that of it or of another one.
    is_contested: bool,
}

/// The facts of one branch, in the order of its ticks.
#[derive(Default, Debug)]
pub(crate) struct Facts {
    pub(crate) list: Vec<Fact>,
    asked: Vec<Asked>,
    /// The place in `asked` of each call of the model.
    places: BTreeMap<usize, usize>,
    /// By entry, the tick after its last one.
    ends: BTreeMap<usize, usize>,
}

/// What a text with a tag may state.
fn tagged(text: Text) -> Vec<&'static str> {
    if text == Text::Tag { vec!["not_read"] } else { Vec::new() }
}

impl Facts {
    pub(crate) fn observe(&mut self, agent: &str) -> &mut Fact {
        self.push(Fact { kind: "observation.add", agent: Some(agent.to_owned()), ..Fact::default() })
    }

    pub(crate) fn user(&mut self, text: Text) {
        self.observe("user").notes = tagged(text);
    }

    pub(crate) fn says(&mut self, agent: &str, text: Text, tokens: Tokens) {
        let agent = Some(agent.to_owned());
        self.push(Fact { kind: "plan.update", agent, tokens, notes: tagged(text), ..Fact::default() });
    }

    pub(crate) fn again(&mut self, agent: Option<&str>) {
        let agent = agent.map(str::to_owned);
        self.push(Fact { kind: "observation.add", agent, notes: vec!["repeated"], ..Fact::default() });
    }

    /// Notes that an entry has no more ticks.
    pub(crate) fn ends(&mut self, entry: usize) {
        self.ends.insert(entry, self.list.len());
    }

    /// How many ticks an entry has.
    pub(crate) fn ticks_of(&self, entry: usize) -> usize {
        let before = entry.checked_sub(1).map_or(0, |before| self.ends[&before]);
        self.ends[&entry] - before
    }

    /// Notes which call of the model one in another spelling is.
    pub(crate) fn place(&mut self, call: usize, place: usize) {
        self.places.insert(call, place);
    }

    fn push(&mut self, fact: Fact) -> &mut Fact {
        self.list.push(fact);
        let last = self.list.len() - 1;
        &mut self.list[last]
    }

    /// A request for calls of the model.
    pub(crate) fn asks(
        &mut self,
        model: &Model,
        calls: impl Iterator<Item = usize>,
        agent: &str,
        tokens: Tokens,
    ) {
        let mut asks = Vec::new();
        for at in calls {
            let call = &model.calls[at];
            let params = Value::record([("n", Value::from(call.params))]);
            let one = Asked::new(call.id.as_deref(), call.tool, Some(params), agent);
            self.places.insert(at, self.asked.len() + asks.len());
            asks.push(one);
        }
        self.asks_for(asks, tokens);
    }

    /// A request for calls that no model has. Returns the place of the first.
    pub(crate) fn asks_for(&mut self, calls: Vec<Asked>, tokens: Tokens) -> usize {
        let (from, tick) = (self.asked.len(), self.list.len() + 1);
        let agent = calls.first().map(|call| call.agent.clone());
        self.asked.extend(calls.into_iter().map(|call| Asked { tick, ..call }));
        let asks = (from..self.asked.len()).collect();
        self.push(Fact { kind: "action.request", agent, asks, tokens, ..Fact::default() });
        from
    }

    /// A result of a call of the model, with what it states of the call next to its id.
    pub(crate) fn answers(&mut self, call: usize, names: [bool; 2], failed: Option<bool>) {
        match self.places.get(&call).copied() {
            Some(place) => self.answers_place(place, names, failed),
            None => self.stray(failed),
        }
    }

    fn stray(&mut self, failed: Option<bool>) {
        let (answers, failed) = (Some(Err("result_without_call")), Some(failed));
        self.push(Fact { kind: "action.result", answers, failed, ..Fact::default() });
    }

    pub(crate) fn answers_place(
        &mut self,
        place: usize,
        [names_tool, names_agent]: [bool; 2],
        failed: Option<bool>,
    ) {
        let call = self.asked[place].clone();
        // The open calls that it may answer, by what it states.
        let fits = |other: &Asked| {
            !other.is_done
                && !other.is_contested
                && other.id == call.id
                && (!names_agent || other.agent == call.agent)
                && (!names_tool || other.tool == call.tool)
        };
        let candidates: Vec<usize> = (0..self.asked.len()).filter(|at| fits(&self.asked[*at])).collect();
        let answers = match candidates.len() {
            0 => Err("result_without_call"),
            // Without ids the order decides.
            count if count == 1 || call.id.is_none() => Ok(place),
            _ => Err("result_ambiguous"),
        };
        let agent = answers.is_ok().then(|| call.agent.clone());
        match answers {
            Ok(place) => self.asked[place].is_done = true,
            Err(_) => candidates.iter().for_each(|other| self.asked[*other].is_contested = true),
        }
        let (answers, failed) = (Some(answers), Some(failed));
        self.push(Fact { kind: "action.result", agent, answers, failed, ..Fact::default() });
    }

    /// A decision that a call does not happen.
    pub(crate) fn denied(&mut self, call: usize) {
        let place = self.places[&call];
        self.asked[place].is_done = true;
        let tick = self.asked[place].tick;
        // A decision about one of several calls is linked to none of them.
        let is_only = self.asked.iter().filter(|call| call.tick == tick).count() == 1;
        let (agent, answers) = (Some("policy".to_owned()), is_only.then_some(Ok(place)));
        self.push(Fact { kind: "policy.decision", agent, answers, ..Fact::default() });
    }

    /// The entries of a branch in the usual way: one tick each.
    pub(crate) fn entry(&mut self, model: &Model, at: usize, failed: impl Fn(u64) -> Option<bool>) {
        let entry = &model.entries[at];
        match &entry.said {
            Said::User(text) => self.user(*text),
            Said::Model { agent, text, calls, usage } if calls.is_empty() => {
                self.says(agent, text.unwrap_or(Text::Plain), Tokens::of(*usage));
            }
            Said::Model { agent, calls, usage, .. } => {
                self.asks(model, calls.clone(), agent, Tokens::of(*usage));
            }
            Said::Result { call, names_tool, names_agent, .. } => {
                self.answers(*call, [*names_tool, *names_agent], failed(entry.how));
            }
            Said::Again(_) => self.again(None),
        }
    }

    /// Compares the facts with what was imported.
    pub(crate) fn check(&self, records: &[Record], met: &mut BTreeSet<String>) {
        let found: Vec<String> = (1..records.len()).map(|tick| shown(records, tick).to_string()).collect();
        let found = found.join("\n");
        let expected: String = self.list.iter().map(|fact| format!("{fact:?}\n")).collect();
        assert_eq!(records.len() - 1, self.list.len(), "as many ticks\n{expected}{found}");
        let mut lacks = false;
        for (tick, fact) in (1..).zip(&self.list) {
            self.check_tick(&shown(records, tick), tick, fact, &mut lacks, met);
        }
        self.check_counters(records);
    }

    fn check_tick(
        &self,
        shown: &Value,
        tick: usize,
        fact: &Fact,
        lacks: &mut bool,
        met: &mut BTreeSet<String>,
    ) {
        let get = |name: &str| shown.get(name);
        let context = format!("tick {tick}: {shown}\n{fact:?}");
        assert_eq!(get("type").unwrap().as_str(), Some(fact.kind), "{context}");
        if let Some(agent) = &fact.agent {
            assert_eq!(get("agent_id").unwrap().as_str(), Some(&**agent), "{context}");
        }
        if fact.kind == "action.request" {
            let action = get("action").unwrap();
            let listed = action.get("calls").and_then(Value::as_array);
            let calls: Vec<&Value> = listed.map_or(vec![action], |calls| calls.iter().collect());
            assert_eq!(calls.len(), fact.asks.len(), "{context}");
            calls.iter().zip(&fact.asks).for_each(|(call, place)| self.asked[*place].check(call, &context));
        }
        match fact.answers {
            Some(Ok(place)) => {
                let call = &self.asked[place];
                assert_eq!(get("caused_by").and_then(Value::as_u64), Some(call.tick as u64), "{context}");
                if fact.kind == "action.result" {
                    call.check(get("action").unwrap(), &context);
                }
            }
            Some(Err(_)) => {
                assert_eq!(get("caused_by"), None, "{context}");
                assert_eq!(get("action").and_then(|action| action.get("params")), None, "{context}");
            }
            None => {}
        }
        if let Some(failed) = fact.failed {
            let status = get("result").unwrap().get("status").and_then(Value::as_str);
            assert_eq!(status, failed.map(|failed| if failed { "error" } else { "ok" }), "{context}");
        }
        let found = get("metrics").and_then(|metrics| metrics.get("tokens_used"));
        match fact.tokens {
            Tokens::Is(tokens) => assert_eq!(found.and_then(Value::as_u64), Some(tokens), "{context}"),
            Tokens::Unstated => assert_eq!(found, (!*lacks).then_some(&Value::Null), "{context}"),
            Tokens::None => assert_eq!(found, None, "{context}"),
        }
        *lacks |= fact.tokens == Tokens::Unstated;
        let found = kinds(shown);
        met.extend(found.iter().map(|kind| (*kind).to_owned()));
        let is_looked_at = |kind: &&str| {
            !matches!(
                *kind,
                "call_id_repeated"
                    | "denied_before"
                    | "ordered_by_time"
                    | "arguments_not_json"
                    | "clock_went_back"
            )
        };
        let mut found: Vec<&str> = found.into_iter().filter(is_looked_at).collect();
        let mut expected = self.notes_of(fact);
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{context}");
    }

    fn notes_of(&self, fact: &Fact) -> Vec<&'static str> {
        let mut notes = fact.notes.clone();
        notes.extend(fact.answers.and_then(Result::err));
        notes.extend((fact.failed == Some(None)).then_some("status_unknown"));
        for call in fact.asks.iter().map(|place| &self.asked[*place]) {
            notes.extend(call.is_contested.then_some("call_contested"));
            notes.extend((!call.is_done && !call.is_contested).then_some("call_without_result"));
        }
        notes
    }

    /// Compares the sums: each is that of the facts, or unknown where a fact makes it so.
    fn check_counters(&self, records: &[Record]) {
        let found = counters(records);
        let is_unread = self.list.iter().any(|fact| fact.notes.contains(&"not_read"));
        let calls: usize = self.list.iter().map(|fact| fact.asks.len()).sum();
        let failed = self.list.iter().filter(|fact| fact.failed == Some(Some(true))).count();
        let is_unclear = self.list.iter().any(|fact| fact.failed == Some(None));
        let tokens = self.list.iter().try_fold(0, |sum, fact| match fact.tokens {
            Tokens::None => Some(sum),
            Tokens::Unstated => None,
            Tokens::Is(tokens) => Some(sum + tokens),
        });
        let known = |is_known: bool, value: u64| is_known.then_some(value);
        let expected = [
            ("tool_calls", known(!is_unread, calls as u64)),
            ("tool_errors", known(!is_unread && !is_unclear, failed as u64)),
            ("tokens_used", tokens),
        ];
        for (name, value) in expected {
            let found = found.get(name).and_then(|found| found.as_f64());
            assert_eq!(found, value.map(|value| value as f64), "{name}");
        }
        let mut agents: BTreeMap<&str, u64> = BTreeMap::new();
        for agent in self.list.iter().map(|fact| fact.agent.as_deref()) {
            let Some(agent) = agent else { return };
            *agents.entry(agent).or_default() += 1;
        }
        let by_agent = found.get("by_agent").unwrap().as_object().unwrap();
        let by_agent: BTreeMap<&str, u64> =
            by_agent.iter().map(|(name, count)| (&**name, count.as_u64().unwrap())).collect();
        assert_eq!(by_agent, agents);
    }
}

impl Asked {
    pub(crate) fn new(id: Option<&str>, tool: &str, params: Option<Value>, agent: &str) -> Asked {
        let (id, tool, agent) = (id.map(str::to_owned), tool.to_owned(), agent.to_owned());
        Asked { id, tool, params, agent, tick: 0, is_done: false, is_contested: false }
    }

    fn check(&self, action: &Value, context: &str) {
        assert_eq!(action.get("tool").and_then(Value::as_str), Some(&*self.tool), "{context}");
        assert_eq!(action.get("params"), self.params.as_ref(), "{context}");
    }
}

/// The kinds of notes of a tick.
pub(crate) fn kinds(shown: &Value) -> Vec<&str> {
    let notes = shown.get("anomalies").and_then(Value::as_array);
    notes.into_iter().flat_map(|notes| notes.iter()).filter_map(|note| note.get("kind")?.as_str()).collect()
}

/// The counters after the last tick; one that is not known is left out.
pub(crate) fn counters(records: &[Record]) -> Value {
    let mut counters = Counters::default();
    records[1..].iter().for_each(|record| counters.take(record));
    counters.to_value()
}
