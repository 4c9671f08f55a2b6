//! The words in which the demo's runs are written down: who does what, how sure they are, and what it changes.
//!
//! A script says the tick of every step, and [`Script::at`] holds it to that: a step that is added or dropped shows
//! at once, because transcripts and tests name ticks.

use dendrer::store::Shared;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

use dendrer::fork::{self, ForkTerms};
use dendrer::recorder::{Fixed, Recorder};
use dendrer::{Error, Trace};
use dendrer_kernel::step::{Anomaly, Extension, Outcome, Refused, RunState, Start};
use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::record::{Link, Record, Rel};
use dendrer_object::{Digest, Intent, Object, RunName, Value, json};

/// 2026-02-23T08:00:00.000Z, when the demo's runs take place.
pub(super) const MORNING_MS: u64 = 1_771_833_600_000;

/// Reads a value of the demo from JSON text.
pub(super) fn v(text: &str) -> Value {
    json::parse_door(text.as_bytes()).expect("the demo's own JSON is JSON")
}

/// A run as it is being told.
pub(super) struct Script {
    recorder: Recorder,
    goal: &'static str,
    /// The id of the record at each tick.
    ids: Vec<Digest>,
    /// What was asked for at a tick, and by whom.
    asked: BTreeMap<u64, (String, Value)>,
}

impl Script {
    /// Begins a run. `agents` and `source` go into its `meta`, with the word that it is made up.
    pub(super) fn begin(
        store: &Shared,
        mut start: Start,
        goal: &'static str,
        agents: &[&str],
        source: &str,
        begin_ms: u64,
    ) -> Result<Script, Error> {
        start.meta = Some(Value::record([
            ("agents", Value::array(agents.iter().map(|agent| Value::from(*agent)))),
            ("source", Value::from(source)),
            ("synthetic", Value::from(true)),
        ]));
        let recorder = Recorder::begin(store, &start, surroundings(&start.run, begin_ms))?;
        let ids = vec![recorder.head().id()];
        Ok(Script { recorder, goal, ids, asked: BTreeMap::new() })
    }

    /// Goes on from an old tick of another run; the marker is the tick behind it. A fork has no `meta` of its own: that of
    /// its parent holds, which says that it is made up.
    pub(super) fn fork(
        store: &Shared,
        (parent, tick): (&str, u64),
        terms: &ForkTerms,
        goal: &'static str,
        begin_ms: u64,
    ) -> Result<Script, Error> {
        let parent = Trace::open(store, &parent.parse().expect("a run id"))?;
        let mut ids = vec![parent.start().id()];
        parent.for_each(1, tick, &mut |_, record| {
            ids.push(record.id());
            ControlFlow::Continue(())
        })?;
        let (recorder, forked) = fork::fork(&parent, store, tick, terms, surroundings(&terms.run, begin_ms))?;
        ids.push(forked.marker.id());
        Ok(Script { recorder, goal, ids, asked: BTreeMap::new() })
    }

    /// Commits a step, which must come at this tick.
    pub(super) fn at(&mut self, tick: u64, step: Step) -> Result<(), Error> {
        self.check(tick);
        match self.propose(step)? {
            Outcome::Refused(refused) => panic!("tick {tick} of the demo was refused: {}", refused.reason),
            committed => committed.records().into_iter().for_each(|record| self.took(record)),
        }
        Ok(())
    }

    /// Where the run stands.
    pub(super) fn head(&self) -> &RunState {
        self.recorder.head()
    }

    /// Puts an extension of the contract on record, which must come at this tick.
    pub(super) fn extend(&mut self, tick: u64, extension: &Extension) -> Result<(), Error> {
        self.check(tick);
        let record = self.recorder.extend(extension)?;
        self.took(&record);
        Ok(())
    }

    /// Has the runtime note an anomaly, which must come at this tick.
    pub(super) fn anomaly(&mut self, tick: u64, kind: &str, agent: &str, message: &str) -> Result<(), Error> {
        self.check(tick);
        let agent = (!agent.is_empty()).then(|| agent.into());
        let anomaly = Anomaly { agent, ..Anomaly::told(kind, message) };
        let record = self.recorder.note_anomaly(&anomaly)?;
        self.took(&record);
        Ok(())
    }

    /// Proposes what must be turned down. A forged type takes a tick all the same, for the anomaly that names it.
    pub(super) fn refused(&mut self, step: Step) -> Result<Refused, Error> {
        let tick = self.recorder.head().tick();
        match self.propose(step)? {
            Outcome::Refused(refused) => {
                if let Some(anomaly) = &refused.anomaly {
                    self.took(anomaly);
                }
                Ok(refused)
            }
            Outcome::Committed(_) | Outcome::Violated { .. } => {
                panic!("what follows tick {tick} of the demo was to be refused")
            }
        }
    }

    /// The answer to what was asked for at a tick, written by the runtime.
    pub(super) fn answer(&self, asked: u64) -> Step {
        let (agent, action) = self.asked.get(&asked).expect("an answer names the tick of its request");
        let mut step = Step::new("action.result", agent).because(asked);
        step.intent = step.intent.by_runtime().with("action", action.clone());
        step
    }

    /// Makes the run durable and returns its name.
    pub(super) fn end(mut self, ticks: u64) -> Result<RunName, Error> {
        assert_eq!(self.recorder.head().tick(), ticks, "the last tick of {}", self.recorder.head().run());
        let run = self.recorder.head().run().clone();
        self.recorder.commit()?;
        Ok(run)
    }

    fn check(&self, tick: u64) {
        assert_eq!(self.recorder.head().tick() + 1, tick, "the next tick of {}", self.recorder.head().run());
    }

    fn took(&mut self, record: &Record) {
        self.ids.push(record.id());
    }

    fn propose(&mut self, step: Step) -> Result<Outcome, Error> {
        let tick = self.recorder.head().tick() + 1;
        let intent = step.finish(tick, self.goal, &self.ids);
        if let ("action.request", Some(action)) = (intent.type_name.as_str(), intent.member("action")) {
            let call: Vec<_> = ["tool", "params", "calls"]
                .iter()
                .filter_map(|name| Some((*name, action.get(name)?.clone())))
                .collect();
            self.asked.insert(tick, (intent.agent.to_string(), Value::record(call)));
        }
        self.recorder.propose(&intent)
    }
}

/// The time and the chance of a run, which follow from its name.
pub(super) fn surroundings(run: &RunName, begin_ms: u64) -> Box<Fixed> {
    Box::new(Fixed::new(&format!("dendrer demo {run}"), begin_ms, 1_370))
}

/// One step of a run: an intent in the making.
pub(super) struct Step {
    intent: Intent,
    says: Object,
    ops: Vec<Op>,
    metrics: Object,
    links: Vec<(Rel, u64)>,
}

/// An agent records what it saw.
pub(super) fn observe(agent: &str, confidence: f64, what: &str) -> Step {
    Step::new("observation.add", agent).says("description", what).says("confidence", confidence)
}

/// An agent changes its plan.
pub(super) fn plan(agent: &str, confidence: f64, what: &str) -> Step {
    Step::new("plan.update", agent).says("description", what).says("confidence", confidence)
}

/// An agent writes to its memory.
pub(super) fn remember(agent: &str, confidence: f64, what: &str) -> Step {
    Step::new("memory.write", agent).says("description", what).says("confidence", confidence)
}

/// An agent points at something odd.
pub(super) fn flag(agent: &str, confidence: f64, what: &str) -> Step {
    Step::new("anomaly.flag", agent).says("description", what).says("confidence", confidence)
}

/// An agent says that the goal is met.
pub(super) fn complete(agent: &str, confidence: f64, what: &str) -> Step {
    Step::new("goal.complete", agent).says("description", what).says("confidence", confidence)
}

/// An agent asks for a tool call that its policy allows.
pub(super) fn request(agent: &str, confidence: f64, what: &str, tool: &str, params: &str) -> Step {
    let mut step =
        Step::new("action.request", agent).says("description", what).says("confidence", confidence);
    let action = Value::record([("params", v(params)), ("tool", Value::from(tool))]);
    step.intent = step.intent.with("action", action);
    step.policy(r#"{"checks":["scope","allowlist","budget"],"decision":"allow","notes":null,"policy_version":"v0.1"}"#)
}

/// The runtime's policy decides on a type of transition.
pub(super) fn decide(agent: &str, decision: &str, on: &str, why: &str) -> Step {
    let mut step = Step::new("policy.decision", agent).says("description", why);
    step.intent = step.intent.by_runtime().with(
        "policy",
        Value::record([
            ("decision", Value::from(decision)),
            ("notes", Value::from(why)),
            ("policy_version", Value::from("v0.1")),
            ("transition_type", Value::from(on)),
        ]),
    );
    step
}

impl Step {
    /// A step of some type, with nothing in it yet.
    pub(super) fn new(type_name: &str, agent: &str) -> Step {
        let intent = Intent::new(type_name.parse().expect("a type of the demo"), agent);
        Step {
            intent,
            says: Object::default(),
            ops: Vec::new(),
            metrics: Object::default(),
            links: Vec::new(),
        }
    }

    /// A step given whole, in the words of an intent.
    pub(super) fn of_intent(intent: &Value) -> Step {
        let intent = Intent::from_value(intent, None).expect("the demo's own intents are intents");
        let says = intent.member("intent").and_then(Value::as_object).cloned().unwrap_or_default();
        let metrics = intent.member("metrics").and_then(Value::as_object).cloned().unwrap_or_default();
        let ops = intent.delta.clone().unwrap_or_default().0;
        Step { intent, says, ops, metrics, links: Vec::new() }
    }

    /// Adds a member of the intent: what the agent says of its step.
    pub(super) fn says(mut self, name: &str, value: impl Into<Value>) -> Step {
        self.says.set(name, value.into());
        self
    }

    /// Says what the agent is unsure of.
    pub(super) fn unsure(self, of: &str) -> Step {
        self.says("uncertainty_notes", of)
    }

    /// Says in a few words what came of it; receipts print that.
    pub(super) fn outcome(self, words: &str) -> Step {
        self.says("outcome", words)
    }

    /// Puts the policy's judgement in place of the usual one. The runtime judges, so it writes the record, in the agent's name.
    pub(super) fn policy(mut self, policy: &str) -> Step {
        self.intent = self.intent.by_runtime().with("policy", v(policy));
        self
    }

    /// Says that the policy denied it.
    pub(super) fn denied(self, why: &str) -> Step {
        let why = Value::from(why);
        self.policy(&format!(
            r#"{{"checks":["scope","allowlist","risk"],"decision":"deny","notes":{why},"policy_version":"v0.1"}}"#
        ))
    }

    /// Says what the call does to the world: `read`, `idempotent_write` or `effectful`.
    pub(super) fn effect(mut self, class: &str) -> Step {
        self.intent = self.intent.with("effect", Value::from(class));
        self
    }

    /// The tool answered.
    pub(super) fn gave(mut self, output: &str) -> Step {
        let result = Value::record([("output", v(output)), ("status", Value::from("ok"))]);
        self.intent = self.intent.with("result", result);
        self
    }

    /// The tool failed.
    pub(super) fn failed(mut self, kind: &str, message: &str) -> Step {
        let error = Value::record([("kind", Value::from(kind)), ("message", Value::from(message))]);
        let result =
            Value::record([("error", error), ("output", Value::Null), ("status", Value::from("error"))]);
        self.intent = self.intent.with("result", result);
        self
    }

    /// Adds a measurement.
    pub(super) fn metric(mut self, name: &str, value: f64) -> Step {
        self.metrics.set(name, Value::from(value));
        self
    }

    /// Puts a value into the state.
    pub(super) fn set(self, path: &str, value: impl Into<Value>) -> Step {
        self.op(Action::Set, path, Some(value.into()))
    }

    /// Adds to a number in the state.
    pub(super) fn add(self, path: &str, by: f64) -> Step {
        self.op(Action::Add, path, Some(Value::from(by)))
    }

    /// Appends to a list in the state.
    pub(super) fn append(self, path: &str, value: impl Into<Value>) -> Step {
        self.op(Action::Append, path, Some(value.into()))
    }

    /// Takes something out of the state.
    pub(super) fn remove(self, path: &str) -> Step {
        self.op(Action::Remove, path, None)
    }

    fn op(mut self, action: Action, path: &str, value: Option<Value>) -> Step {
        let path = path.parse().expect("a path of the demo");
        self.ops.push(Op { action, path, value });
        self
    }

    /// Links to the tick that brought this about.
    pub(super) fn because(mut self, tick: u64) -> Step {
        self.links.push((Rel::CausedBy, tick));
        self
    }

    /// Takes in what another agent did up to a tick.
    pub(super) fn merges(mut self, tick: u64) -> Step {
        self.links.push((Rel::Merges, tick));
        self
    }

    /// Links to the tick that this rests on.
    pub(super) fn rests_on(mut self, tick: u64) -> Step {
        self.links.push((Rel::Evidence, tick));
        self
    }

    fn finish(mut self, tick: u64, goal: &str, ids: &[Digest]) -> Intent {
        self.measure(tick);
        let mut intent = self.intent;
        if !self.says.is_empty() {
            intent = intent.with("intent", Value::Object(self.says));
        }
        if !self.metrics.is_empty() {
            intent = intent.with("metrics", Value::Object(self.metrics));
        }
        intent.goal.get_or_insert_with(|| goal.into());
        intent.delta = (!self.ops.is_empty()).then_some(Delta(self.ops));
        let link = |(rel, tick): (Rel, u64)| {
            let hash = ids[usize::try_from(tick).expect("a tick of the demo")];
            Link { rel, hash }
        };
        intent.links.extend(self.links.into_iter().map(link));
        intent
    }

    /// Adds the measurements that every step has: made up, but the same everywhere.
    fn measure(&mut self, tick: u64) {
        if !self.metrics.contains_key("latency_ms") {
            self.metrics.set("latency_ms", Value::from(180 + tick * 7_919 % 1_640));
        }
        if self.says.contains_key("confidence") && !self.metrics.contains_key("tokens_used") {
            let tokens = 210 + tick * 104_729 % 670;
            self.metrics.set("tokens_used", Value::from(tokens));
            self.metrics.set("cost_usd", Value::from((tokens * 6) as f64 / 1e6));
        }
    }
}
