//! The terms in force: the pack of the run, the extensions on the ledger, and the predicates that are watched
//! (dendrer paper 4.4). All of them follow from the `run` record and the state, so that a trace alone gives the
//! contract at any tick.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dendrer_object::delta::{Delta, Op};
use dendrer_object::lookalike::resembles;
use dendrer_object::record::{Author, Record};
use dendrer_object::{AT, Digest, Intent, Pointer, Timestamp, TypeName, Value, tag};

use super::outcome::Broken;
use super::{
    CANNOT_BE_JUDGED, Cause, Change, MemberFault, Reason, RunState, Stage, StartError, Transition, cause,
    latch_violated, reduce,
};
use crate::calls;
use crate::commitment;
use crate::contract::Contracts;
use crate::counters::{self, Counters};
use crate::expr::{Budget, Env, EvalError, Expr, Truth};
use crate::fold::transition;
use crate::ontology::{DECISION, REQUEST, RESULT};
use crate::pack::{self, Effect, Pack, PackEngine, extend};
use crate::predicate::{Monotone, Predicate, Verdict, Window};
use crate::reduce::Reducer;
use crate::sealed::Met;
use crate::stopped::Stopped;
use crate::unknown::{self, UnknownPlaces};

/// The member of `/policy` that lists which violations of the contract there were, and when each began.
pub(super) const VIOLATIONS: &str = "violations";

/// The word for a status that a pack gave: the place where it was read.
const OF_PACK: &str = "pack";

/// The terms in force from some tick on.
#[derive(Default)]
pub(super) struct Terms {
    /// The pack as the `run` record carries it.
    bound: Option<Value>,
    /// Its digest, which every header names.
    pub(super) digest: Option<Digest>,
    pub(super) registered: BTreeSet<TypeName>,
    pub(super) contracts: Contracts,
    watched: Vec<Watched>,
    /// The reducer of the pack with its extensions, where one of them declares fields or rules.
    reducer: Option<Box<dyn Reducer + Send + Sync>>,
    /// Who may write a field that the pack says it of.
    writers: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    /// The class of each tool that the pack declares.
    effects: BTreeMap<Arc<str>, Effect>,
    /// When a result of a tool says that its call failed, where the pack says so.
    failed: BTreeMap<Arc<str>, Expr>,
    /// At stage 3: the types and tools that the pack lets through.
    gate: Option<Gate>,
    /// Whether rules may ask for the time of a line.
    is_timed: bool,
    /// The first tick at which an extension comes into force that is not here yet.
    until: Option<u64>,
}

/// The gate of a pack that gates all transitions (dendrer paper 6, stage 3).
#[derive(Debug)]
pub(super) struct Gate {
    types: BTreeSet<TypeName>,
    tools: BTreeSet<Arc<str>>,
}

/// A violation of the contract that the door looks for.
#[derive(Debug)]
struct Watched {
    predicate: Predicate,
    /// The tick from which it is in force.
    from: u64,
}

impl Terms {
    /// Reads the terms in force for the transition with this tick from the state before it. Predicates are watched
    /// at every stage; by version 1 of the kernel's rules, from the stage on that enforces contracts. `from` is the tick at which the pack came into force.
    pub(super) fn of(
        bound: Option<&Value>,
        state: &Value,
        tick: u64,
        from: u64,
        (version, stage): (u64, Stage),
    ) -> Result<Terms, StartError> {
        let full = stage >= Stage::Full;
        let Some(bound) = bound else {
            return match full {
                true => Err(StartError::Stage("a pack, which gates all transitions".to_owned())),
                false => Ok(Terms::default()),
            };
        };
        let in_force = extend::in_force(bound, state, tick);
        let (mut watched, mut gate) = (Vec::new(), None);
        let watches =
            ["violations", "progress_contracts"].iter().any(|member| in_force.get(member).is_some());
        // By the rules of version 1, below stage 2 nothing was looked for.
        if full || watches && (stage >= Stage::Contracts || version >= 2) {
            let pack = read_pack(&in_force, version)?;
            if full {
                gate = Some(Gate::of(&pack)?);
            }
            let since = |id: &str| extend::added(bound, state, tick, id).unwrap_or(from);
            let violations = pack.predicates.into_iter().filter(|declared| declared.is_violation);
            // A progress contract is broken by a state alone, like one of `violations` (dendrer paper 3.3).
            watched.extend(violations.chain(pack.progress_contracts).map(|declared| Watched {
                from: since(declared.predicate.name()),
                predicate: declared.predicate,
            }));
        }
        let mut failed = BTreeMap::new();
        if pack::says_how_tools_fail(&in_force) {
            let tools = read_pack(&in_force, version)?.tools.into_iter();
            failed.extend(tools.filter_map(|tool| Some((tool.name, tool.failed?))));
        }
        let mut reducer = None;
        if extend::changes_reducer(bound, state, tick) {
            let pack = read_pack(&in_force, version)?;
            reducer = (pack.engine != PackEngine::Wasm).then(|| pack.reducer());
        }
        Ok(Terms {
            reducer,
            digest: Some(pack::digest(bound)),
            writers: pack::writers_of(&in_force).collect(),
            effects: pack::effects_of(&in_force).collect(),
            registered: pack::registered(bound).collect(),
            contracts: pack::contracts_of(&in_force),
            watched,
            failed,
            gate,
            is_timed: pack::is_timed(bound),
            until: extend::next(bound, state, tick),
            bound: Some(bound.clone()),
        })
    }

    /// Whether nothing comes into force up to a tick.
    pub(super) fn is_in_force(&self, tick: u64) -> bool {
        self.until.is_none_or(|until| until > tick)
    }

    /// The predicates that the door looks for.
    pub(super) fn watched(&self) -> impl Iterator<Item = &Predicate> {
        self.watched.iter().map(|watched| &watched.predicate)
    }

    pub(super) fn bound(&self) -> Option<&Value> {
        self.bound.as_ref()
    }

    /// The tools that an action calls: one, or several under `calls`.
    fn tools(action: &Value) -> impl Iterator<Item = &str> {
        let calls = action.get("calls").and_then(Value::as_array);
        let calls = calls.into_iter().flat_map(|calls| calls.iter()).chain([action]);
        calls.filter_map(|call| call.get("tool")?.as_str())
    }

    /// The reducer in force: that of the run, unless an extension changes it.
    pub(super) fn reducer<'r>(&'r self, of_run: &'r dyn Reducer) -> &'r dyn Reducer {
        match &self.reducer {
            Some(reducer) => &**reducer,
            None => of_run,
        }
    }

    /// Finds the first place of a change that is not this intent's to write (design, section 4).
    pub(super) fn not_writable(&self, intent: &Intent, delta: &Delta) -> Option<Reason> {
        let may = |writers: &Vec<Arc<str>>| {
            let is_it =
                |word: &Arc<str>| **word == *intent.type_name.as_str() || **word == *intent.author.as_str();
            writers.iter().any(is_it)
        };
        let is_closed = |path: &&Pointer| {
            let top = path.tokens().next();
            top.and_then(|top| self.writers.get(&*top)).is_some_and(|writers| !may(writers))
        };
        let path = delta.paths().find(is_closed)?.clone();
        let writers = path.tokens().next().and_then(|top| self.writers.get(&*top)).cloned();
        Some(Reason::NotWriter {
            path,
            type_name: intent.type_name.clone(),
            author: intent.author,
            writers: writers.unwrap_or_default(),
        })
    }

    /// The agent that the pack gives a role and that another name looks like.
    pub(super) fn agent_like(&self, agent: &str) -> Option<&str> {
        let roles = self.bound.as_ref()?.get("merge")?.get("roles")?.as_object()?;
        if roles.contains_key(agent) {
            return None;
        }
        roles.iter().map(|(name, _)| &**name).find(|name| resembles(agent, name))
    }

    /// Returns a line with its time, or without one, as the pack asks; `None` if the line is as it should be. A time that the clock
    /// denied is not known, and a run of stage 0 has none: its lines may be imported.
    pub(super) fn with_time(&self, intent: &Intent, clock: Timestamp, head: &RunState) -> Option<Intent> {
        if !self.is_timed {
            // A length of a commitment that is proposed again counts from the time at which it was first on record.
            let has_time = intent.member(AT).is_some() && !commitment::has_length(intent);
            let others = || intent.members.iter().filter(|(name, _)| &**name != AT).cloned().collect();
            return has_time.then(|| Intent { members: others(), ..intent.clone() });
        }
        if intent.member(AT).is_some() || head.stage() == Stage::Observe {
            return None;
        }
        match clock < head.ts {
            false => Some(intent.clone().of_time(clock)),
            true => {
                let mut timed = intent.clone();
                timed.members.push((AT.into(), tag::gap("clock_went_back", "")));
                Some(timed)
            }
        }
    }

    /// The tool that the pack declares and that another name looks like.
    pub(super) fn tool_like(&self, tool: &str) -> Option<&str> {
        if self.effects.contains_key(tool) {
            return None;
        }
        self.effects.keys().map(|declared| &**declared).find(|declared| resembles(tool, declared))
    }

    /// The tools of an action that the pack, which declares some, does not declare.
    pub(super) fn undeclared(&self, action: &Value) -> Vec<String> {
        let is_undeclared = |tool: &&str| !self.effects.contains_key(*tool);
        let tools = calls::written(action).into_iter().filter_map(|call| call.get("tool")?.as_str());
        match self.effects.is_empty() {
            true => Vec::new(),
            false => tools.filter(is_undeclared).map(str::to_owned).collect(),
        }
    }

    /// The class of a tool that the pack declares.
    pub(super) fn effect_of(&self, tool: &str) -> Option<Effect> {
        self.effects.get(tool).copied()
    }

    /// Checks that the class that an intent claims of its tools is the one of the pack (design, section 4).
    pub(super) fn check_effect(&self, intent: &Intent) -> Result<(), MemberFault> {
        let Some(said) = intent.member("effect").filter(|_| !self.effects.is_empty()) else { return Ok(()) };
        let tools = intent.member("action").into_iter().flat_map(Terms::tools);
        for (tool, declared) in tools.filter_map(|tool| Some((tool, self.effects.get(tool)?))) {
            if said.as_str() != Some(declared.as_str()) {
                let said = said.as_str().map_or_else(|| said.to_string(), str::to_owned);
                return Err(MemberFault::Effect { tool: tool.to_owned(), declared: declared.as_str(), said });
            }
        }
        Ok(())
    }

    /// Returns the intent with the class that the pack declares of its tools, where it claims none: the record then says it
    /// without the pack. Several tools have a class together if it is the same for all.
    pub(super) fn with_effect(&self, intent: &Intent) -> Option<Intent> {
        if self.effects.is_empty() || intent.member("effect").is_some() {
            return None;
        }
        let mut classes = Terms::tools(intent.member("action")?).map(|tool| self.effect_of(tool));
        let first = classes.next()??;
        let is_same = classes.all(|class| class == Some(first));
        is_same.then(|| intent.clone().with("effect", Value::from(first.as_str())))
    }

    /// Returns the intent with the status that the pack gives a result of its tool: the record then says it without the pack. A result
    /// of which it cannot be judged keeps what it has.
    pub(super) fn with_status(&self, intent: &Intent) -> Option<Intent> {
        if self.failed.is_empty() || intent.type_name.as_str() != RESULT {
            return None;
        }
        let tool = intent.member("action").and_then(|action| action.get("tool")?.as_str());
        let failed = self.failed.get(tool?)?;
        let result = intent.member("result").and_then(Value::as_object)?;
        let (t, none) = (transition(intent), Value::object());
        let env = Env { state: &none, counters: None, others: &[("t", &t)] };
        let word = match failed.holds(&env, &mut Budget::default()) {
            Truth::True => "error",
            Truth::False => "ok",
            Truth::Uncertain(_) | Truth::Exhausted => return None,
        };
        let said = ["status", "status_from"].map(|name| result.get(name).and_then(Value::as_str));
        if said == [Some(word), Some(OF_PACK)] {
            return None;
        }
        let mut result = result.clone();
        result.set("status", Value::from(word));
        result.set("status_from", Value::from(OF_PACK));
        Some(intent.clone().with("result", Value::Object(result)))
    }

    /// Looks whether the pack lets an intent through, where it gates all transitions.
    ///
    /// By the rules of version 2 of the kernel, lists of calls inside of calls are looked at, too.
    pub(super) fn admit(&self, intent: &Intent, version: u64) -> Result<(), Reason> {
        let Some(gate) = &self.gate else { return Ok(()) };
        if !gate.types.contains(&intent.type_name) {
            return Err(Reason::Ungoverned(intent.type_name.clone()));
        }
        let Some(action) = intent.member("action") else {
            // A request is about its action.
            return match intent.type_name.as_str() {
                "action.request" => Err(Reason::UnnamedTool),
                _ => Ok(()),
            };
        };
        // One call, or several of them under `calls`; what does not say which tool it is of is of none that is declared.
        let calls = action.get("calls").and_then(Value::as_array);
        let own = (calls.is_none() || action.get("tool").is_some()).then_some(action);
        let all: Vec<&Value> = match version {
            1 => calls.into_iter().flat_map(|calls| calls.iter()).chain(own).collect(),
            _ => calls::written(action),
        };
        let mut count = 0;
        for call in all {
            let Some(tool) = call.get("tool").and_then(Value::as_str) else {
                return Err(Reason::UnnamedTool);
            };
            if !gate.tools.contains(tool) {
                return Err(Reason::UndeclaredTool(tool.to_owned()));
            }
            count += 1;
        }
        if count == 0 { Err(Reason::UnnamedTool) } else { Ok(()) }
    }
}

/// Reads a pack that is to be in force.
pub(super) fn read_pack(value: &Value, version: u64) -> Result<Pack, StartError> {
    let first = |faults: Vec<pack::PackFault>| faults.first().map(ToString::to_string).unwrap_or_default();
    Pack::read_by(value, version).map_err(|faults| StartError::Pack(first(faults)))
}

impl Gate {
    /// Builds the gate of a pack. At this stage each predicate of the pack is known not to recover, or is lifted.
    pub(super) fn of(pack: &Pack) -> Result<Gate, StartError> {
        let is_unknown = |one: &Predicate| one.monotone() == Monotone::Unknown && !one.cannot_recover();
        let unsound = pack.predicates.iter().find(|declared| is_unknown(&declared.predicate));
        if let Some(declared) = unsound {
            let name = declared.predicate.name();
            return Err(StartError::Stage(format!(
                "that {name} cannot recover, or is asked for its first violation"
            )));
        }
        let governed = pack.governed().into_keys();
        Ok(Gate {
            types: governed.chain(pack.contracts.types.keys().cloned()).collect(),
            tools: pack.tools.iter().map(|tool| Arc::clone(&tool.name)).collect(),
        })
    }
}

impl RunState {
    /// Takes up what comes into force at the next tick.
    pub(super) fn turn_to_next(&mut self) {
        let next = self.tick + 1;
        if next == self.enforced_from || self.terms.until.is_some_and(|until| until <= next) {
            self.read_terms();
        }
    }

    /// Reads what is in force for the next tick from the state.
    pub(super) fn read_terms(&mut self) {
        let bound = self.terms.bound.clone();
        // On an error the former terms stay: a pack is checked when it is bound, and an extension before it is
        // committed.
        let from = self.pack_from.max(self.enforced_from);
        let by = (self.rules.version, self.stage());
        let terms = Terms::of(bound.as_ref(), &self.state, self.tick + 1, from, by);
        if let Ok(terms) = terms {
            self.terms = Arc::new(terms);
        }
    }

    /// The pack in force for the next transition, with what extensions add to it.
    pub fn in_force(&self) -> Option<Value> {
        let bound = self.terms.bound.as_ref()?;
        Some(extend::in_force(bound, &self.state, self.tick + 1))
    }

    /// Whether a `predicate.violation` has to come next. A fork from there owes none: its marker comes next.
    pub(crate) fn owes(&self) -> bool {
        !self.terms.watched.is_empty() && !self.is_at_fork() && !self.owed().is_empty()
    }

    /// Returns the violations of the newest transition that no record names yet.
    pub(super) fn owed(&self) -> Vec<&Value> {
        // A policy rule is latched without a pack, and no record names it.
        let is_new = |entry: &&Value| {
            entry.get("tick").and_then(Value::as_u64) == Some(self.tick) && entry.get("pack").is_some()
        };
        match self.tick {
            // The state that a run begins with is of no transition, and below stage 2 only the latch keeps violations.
            _ if self.tick == 0 || self.stage_at(self.tick) < Stage::Contracts => Vec::new(),
            _ => latched(&self.state).filter(is_new).collect(),
        }
    }
}

/// Latches the violations of the contract that a transition brings about (dendrer paper 4.4, pillar 4): each once, in the
/// state, so that everything that follows can see it. A rule that cannot be judged is no violation; bisect and `contract check`
/// report it.
pub(super) fn watch(
    head: &RunState,
    type_name: &TypeName,
    change: &mut Change,
    counters: impl Fn(&Change) -> Value,
) {
    let tick = head.tick + 1;
    let found = head.terms.find(Some(type_name), &head.state, tick, change, || counters(change));
    latch(&head.terms, found, tick, change);
}

/// Marks `/policy` as unknown if a rule or violation cannot be judged because it reads an unknown place: from here on it is
/// not known whether all rules were kept, until one is known to be broken (design, section 7).
pub(super) fn mark_policy(
    head: &RunState,
    type_name: &TypeName,
    change: &mut Change,
    counters: impl Fn(&Change) -> Value,
) {
    let watched = head.terms.watched.iter().map(|watched| &watched.predicate);
    let watched = watched.filter(|predicate| predicate.is_for(Some(type_name)));
    let counted = watched.clone().any(Predicate::reads_counters).then(|| counters(change));
    let is_unread =
        counted.as_ref().is_some_and(|counters| counters::unknown_since(counters, None, None).is_some());
    if !unknown::is_incomplete(&change.state) && !is_unread {
        return;
    }
    let (place, mut unknown) = (Pointer::of(["policy"]), UnknownPlaces::of(&change.state));
    let policy = change.state.get("policy");
    let is_broken =
        policy.is_some_and(|policy| policy.get("violated").is_some() || policy.get(VIOLATIONS).is_some());
    if is_broken {
        unknown.clear(&place);
        return change.mark(&unknown);
    }
    let is_open = |predicate: &Predicate, state: &Value| {
        let reads_unknown = predicate.read_set().iter().any(|read| unknown.meets(read).is_some());
        let counted = counted.as_ref().filter(|_| predicate.reads_counters());
        (reads_unknown || is_unread && counted.is_some())
            && matches!(predicate.verdict(state, counted), Verdict::Uncertain(_))
    };
    let is_after = |predicate: &&Predicate| predicate.window() == Window::After;
    let is_unknown = head.policy.states.iter().any(|rule| is_open(rule, &change.state))
        || watched.clone().filter(is_after).any(|predicate| is_open(predicate, &change.state))
        || watched.filter(|one| !is_after(one)).any(|predicate| is_open(predicate, &head.state));
    if is_unknown {
        unknown.mark(place, head.tick + 1, unknown::READS_UNKNOWN);
        change.mark(&unknown);
    }
}

/// Types of what has happened already, which no predicate refuses: the world has changed (design, section 4).
const HAPPENED: [&str; 3] = ["action.result", "observation.add", DECISION];

/// Whether an intent says what happened, and proposes nothing.
pub(super) fn has_happened(intent: &Intent) -> bool {
    intent.author == Author::User || HAPPENED.contains(&intent.type_name.as_str())
}

/// Whether a type reports the result of a call, or a decision about one.
pub(super) fn is_report(type_name: &TypeName) -> bool {
    ["action.result", DECISION].contains(&type_name.as_str())
}

/// Judges what a transition would bring about, from stage 2 on: a proposal is refused that would newly violate what is
/// enforced, and at stage 3 one that changes what a rule reads that can then not be judged. Anything else that cannot be
/// judged is noted (design, section 4). A request that breaks a policy rule which is not enforced is latched at every stage.
pub(super) fn enforce(head: &RunState, intent: &Intent, change: &mut Change) -> Result<(), Reason> {
    let happened = has_happened(intent);
    let (mut broken, mut unjudged) = (Vec::new(), Vec::new());
    let enforces = head.stage() >= Stage::Contracts;
    let mut violated = None;
    if intent.type_name.as_str() == REQUEST {
        for rule in &head.policy.requests {
            match rule.judge(intent, &head.state) {
                Truth::True => {}
                Truth::False if enforces && rule.is_enforced && !happened => {
                    broken.push(Broken { predicate: rule.id.as_str().into(), values: Vec::new() });
                }
                Truth::False => violated = violated.or(Some(&*rule.id)),
                Truth::Uncertain(why) => unjudged.push((&*rule.id, Met::from(EvalError::Uncertain(why)))),
                Truth::Exhausted => unjudged.push((&*rule.id, Met::from(EvalError::Exhausted))),
            }
        }
    }
    if enforces {
        if let Some(reason) = head.terms.not_writable(intent, &change.delta) {
            return Err(reason);
        }
        let watched = head.terms.watched.iter().map(|watched| &watched.predicate);
        for predicate in watched.chain(&head.policy.states).filter(|one| one.is_for(Some(&intent.type_name)))
        {
            let is_after = predicate.window() == Window::After;
            if is_after && !predicate.reads_counters() && !touches(predicate, &change.delta) {
                continue;
            }
            let counters = predicate.reads_counters().then(|| counters_after(head, intent, change));
            let state = if is_after { &change.state } else { &head.state };
            match predicate.verdict(state, counters.as_ref()) {
                Verdict::Ok => {}
                Verdict::Violation => {
                    let was = || predicate.verdict(&head.state, Some(&head.served()));
                    let is_new = !is_after || !predicate.scope().is_empty() || was() != Verdict::Violation;
                    if predicate.is_enforced() && !happened && is_new {
                        broken.push(Broken::of(predicate, state));
                    }
                }
                Verdict::Uncertain(_) => {
                    unjudged.push((predicate.name(), predicate.met(state, counters.as_ref())));
                }
            }
        }
    }
    if !broken.is_empty() {
        return Err(Reason::WouldViolate(broken));
    }
    if !unjudged.is_empty() && enforces {
        let unjudged = unjudged.into_iter().map(|(name, met)| (name.into(), met)).collect::<Vec<_>>();
        if head.stage() >= Stage::Full && !happened {
            return Err(Reason::CannotBeJudged(unjudged));
        }
        let listed = Reason::CannotBeJudged(unjudged).sealed();
        let mut note = listed.as_object().cloned().unwrap_or_default();
        note.set("kind", Value::from(CANNOT_BE_JUDGED));
        change.notes.push(Value::Object(note));
    }
    let is_latched = change.state.get("policy").is_some_and(|policy| policy.get("violated").is_some());
    if let Some(rule) = violated.filter(|_| !is_latched) {
        let delta = latch_violated(rule, head.tick + 1);
        change.state = delta.apply(&change.state).expect("policy is an object that only the kernel writes");
        change.delta.0.extend(delta.0);
    }
    Ok(())
}

/// The counters as they would be behind an intent.
pub(super) fn counters_after(head: &RunState, intent: &Intent, change: &Change) -> Value {
    super::counted(head, &Transition::of(intent), change)
}

/// Lists the violations that began before this transition, which changes what they read and leaves them violated.
pub(super) fn still_violated(head: &RunState, type_name: &TypeName, change: &Change) -> Option<Value> {
    let latched_by = |id: &str| {
        let is_it = |entry: &&Value| entry.get("id").and_then(Value::as_str) == Some(id);
        latched(&head.state).find(is_it)?.get("tick").cloned()
    };
    let watched = head.terms.watched.iter().map(|watched| &watched.predicate);
    let watched =
        watched.filter(|predicate| predicate.window() == Window::After && predicate.scope().is_empty());
    let watched = watched.filter_map(|predicate| Some((predicate, latched_by(predicate.name())?)));
    let rule = head.state.get("policy").and_then(|policy| policy.get("violated"));
    let broken = rule.and_then(|rule| {
        let id = rule.get("rule")?.as_str()?;
        let predicate = head.policy.states.iter().find(|predicate| predicate.name() == id)?;
        Some((predicate, rule.get("tick")?.clone()))
    });
    let is_still = |(predicate, _): &(&Predicate, Value)| {
        predicate.is_for(Some(type_name))
            && !predicate.reads_counters()
            && touches(predicate, &change.delta)
            && predicate.verdict(&change.state, None) == Verdict::Violation
    };
    let still: Vec<Value> = watched
        .chain(broken)
        .filter(is_still)
        .map(|(predicate, since)| Value::record([("id", Value::from(predicate.name())), ("since", since)]))
        .collect();
    (!still.is_empty()).then(|| Value::array(still))
}

/// As [`watch`], for the state with which a run begins.
pub(super) fn watch_start(terms: &Terms, change: &mut Change) {
    let before = change.state.clone();
    let found = terms.find(None, &before, 0, change, || Counters::default().to_value());
    latch(terms, found, 0, change);
}

impl Terms {
    fn find(
        &self,
        type_name: Option<&TypeName>,
        before: &Value,
        tick: u64,
        change: &Change,
        counters: impl Fn() -> Value,
    ) -> Vec<&Watched> {
        if self.watched.is_empty() {
            return Vec::new();
        }
        let pack = self.digest.map(|digest| digest.to_string());
        let is_new = |watched: &&Watched| {
            let predicate = &watched.predicate;
            // The places that the predicate reads have not changed since it was judged last.
            let unmoved = predicate.scope().is_empty()
                && predicate.window() == Window::After
                && tick > watched.from
                && !predicate.reads_counters()
                && !touches(predicate, &change.delta);
            if !predicate.is_for(type_name)
                || unmoved
                || is_latched(&change.state, pack.as_deref(), predicate.name())
            {
                return false;
            }
            let state = if predicate.window() == Window::Before { before } else { &change.state };
            let counters = predicate.reads_counters().then(&counters);
            predicate.verdict(state, counters.as_ref()) == Verdict::Violation
        };
        self.watched.iter().filter(is_new).collect()
    }
}

/// Whether a change writes near anything that a predicate looks at.
pub(super) fn touches(predicate: &Predicate, delta: &Delta) -> bool {
    let read_set = predicate.read_set();
    delta.paths().any(|path| match unknown::marks(path) {
        // A mark changes whether its place is unknown.
        Some(None) => true,
        Some(Some(marked)) => read_set.iter().any(|place| is_near(place, &marked)),
        None => read_set.iter().any(|place| is_near(place, path)),
    })
}

/// Whether two places lie in the same member of the state. Writing `a.x` makes an `a`, which `has(state.a.b)` depends on.
pub(super) fn is_near(place: &Pointer, path: &Pointer) -> bool {
    match (place.tokens().next(), path.tokens().next()) {
        (Some(place), Some(path)) => place == path,
        _ => true,
    }
}

/// The violations that a state says there were, in the order in which they began.
fn latched(state: &Value) -> impl Iterator<Item = &Value> {
    let listed = state.get("policy").and_then(|policy| policy.get(VIOLATIONS)).and_then(Value::as_array);
    listed.into_iter().flat_map(|listed| listed.iter())
}

pub(super) fn is_latched(state: &Value, pack: Option<&str>, id: &str) -> bool {
    let text = |entry: &'_ Value, name: &str, wanted| entry.get(name).and_then(Value::as_str) == wanted;
    // A fork under another pack may have one of this name that says something else.
    latched(state).any(|entry| text(entry, "id", Some(id)) && text(entry, "pack", pack))
}

fn latch(terms: &Terms, found: Vec<&Watched>, tick: u64, change: &mut Change) {
    if found.is_empty() {
        return;
    }
    let path = Pointer::of(["policy", VIOLATIONS]);
    let entry = |watched: &&Watched| {
        let entry = Value::record([
            ("contract", Value::String(Arc::clone(&terms.contracts.name))),
            ("id", Value::from(watched.predicate.name())),
            ("pack", Value::from(terms.digest)),
            ("tick", Value::from(tick)),
            ("version", Value::String(Arc::clone(&terms.contracts.version))),
        ]);
        Op::append(path.clone(), entry)
    };
    let delta = Delta(found.iter().map(entry).collect());
    change.state = delta.apply(&change.state).expect("policy is an object that only the kernel writes");
    change.delta.0.extend(delta.0);
}

/// The door of the stage of a run, before that stage is enforced: asked about what happened at a lower one (design,
/// section 12). It makes no record.
#[derive(Default)]
pub struct RaisedDoor {
    terms: Option<Arc<Terms>>,
}

impl RaisedDoor {
    /// Returns why the door would refuse a recorded transition as the next one of a run; `None` if it would not, or if the
    /// kernel wrote it.
    pub fn refusal(
        &mut self,
        head: &RunState,
        record: &Record,
        reducer: &dyn Reducer,
    ) -> Result<Option<Reason>, Stopped> {
        let Some((Cause::Proposed(intent), _)) = cause(record, reducer.takes_delta()) else {
            return Ok(None);
        };
        let stage = head.stage.max(Stage::Contracts);
        let mut raised = RunState { enforced_from: 0, stage, ..head.clone() };
        raised.commitments.pass(record.header().ts);
        let is_in_force = |terms: &&Arc<Terms>| terms.is_in_force(head.tick + 1);
        match self.terms.as_ref().filter(is_in_force) {
            Some(terms) => raised.terms = Arc::clone(terms),
            None => {
                raised.read_terms();
                self.terms = Some(Arc::clone(&raised.terms));
            }
        }
        let timed = raised.terms.with_time(&intent, record.header().ts, &raised);
        Ok(reduce(&raised, timed.as_ref().unwrap_or(&intent), reducer)?.err())
    }
}
