//! `kernel.policy_compliant` over a run: each policy rule and violation in force asked alone, and acting after a deny.
//!
//! The verdicts come from the states and requests on record, so they are the same at every stage and after every verb that
//! makes a run of others. The latch that the door keeps at `/policy` is not read: below stage 2 it lacks the violations of the
//! pack.
//!
//! Rule: a rule counts from the first tick that has its places. One that cannot be judged from there on, or whose places
//! never come, leaves the answer Uncertain until another is known to be broken; test
//! `compliance_has_the_earliest_onset_of_its_rules`.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use dendrer_kernel::expr::{STEPS_MAX, Truth};
use dendrer_kernel::names::{COUNTERS, UNKNOWN};
use dendrer_kernel::pack::{Declared, Pack, extend};
use dendrer_kernel::policy::{PolicyRules, RequestRule, asks_of};
use dendrer_kernel::predicate::{Predicate, Verdict, Window};
use dendrer_kernel::reduce::Reducer;
use dendrer_kernel::replay::{self, ReplayError};
use dendrer_kernel::step::{ACTED_AFTER_DENY, CLOCK_WENT_BACK};
use dendrer_kernel::unknown;
use dendrer_object::record::Record;
use dendrer_object::{Intent, Pointer, TypeName, Value};

use super::{Look, Watcher, fold_at, from_first_name, verdict, written};
use crate::error::Error;
use crate::run::line::Timeline;
use crate::run::pack;
use crate::run::trace::version_of;
use crate::run::trace::{Moment, Trace};

/// The member of a transition with its call.
const ACTION: &str = "action";

/// A rule, and the ticks at which it is in force.
struct Part {
    rule: Rule,
    from: u64,
    to: u64,
}

enum Rule {
    State(Predicate),
    Request(RequestRule),
}

impl Rule {
    fn name(&self) -> &str {
        match self {
            Rule::State(predicate) => predicate.name(),
            Rule::Request(rule) => &rule.id,
        }
    }

    fn read_set(&self) -> &[Pointer] {
        match self {
            Rule::State(predicate) => predicate.read_set(),
            Rule::Request(rule) => rule.read_set(),
        }
    }

    fn reads_counters(&self) -> bool {
        matches!(self, Rule::State(predicate) if predicate.reads_counters())
    }

    fn is_same(&self, other: &Rule) -> bool {
        match (self, other) {
            (Rule::State(one), Rule::State(two)) => one.name() == two.name() && one.means_the_same(two),
            (Rule::Request(one), Rule::Request(two)) => one.is_same(two),
            _ => false,
        }
    }

    /// Whether a state has every place that the rule reads. A place that is unknown was written.
    fn has_places(&self, state: &Value) -> bool {
        let is_counter = |place: &Pointer| place.tokens().next().as_deref() == Some(COUNTERS);
        let is_there = |place: &Pointer| place.get(state).is_some() || unknown::meets(state, place).is_some();
        self.read_set().iter().all(|place| is_counter(place) || is_there(place))
    }
}

/// Judges `kernel.policy_compliant` over a range of ticks.
pub(super) fn judge(
    trace: &Trace,
    predicate: &Predicate,
    from: u64,
    to: u64,
    look: Look,
) -> Result<Timeline, Error> {
    let lag = u64::from(predicate.window() == Window::Before);
    let last = to.saturating_sub(lag);
    let parts = parts(trace, last)?;
    let mut course = Course::new(trace, &parts, last)?;
    course.read(look)?;
    let later = |tick: u64| if tick == 0 { 0 } else { tick + lag };
    let mut line = Timeline { judged: course.judged(), ..Timeline::new(from, to) };
    for (tick, verdict) in course.turns() {
        match later(tick) {
            tick if tick <= from => line.turns = vec![(from, verdict)],
            tick if tick <= to => line.push(tick, verdict),
            _ => {}
        }
    }
    Ok(line)
}

/// Judges at a tick and the one before it whether a rule in force is broken there, by the states that a trace reads.
pub(super) fn around(trace: &Trace, predicate: &Predicate, tick: u64) -> Result<(Verdict, Verdict), Error> {
    let lag = u64::from(predicate.window() == Window::Before);
    let parts = parts(trace, tick.saturating_sub(lag))?;
    let at = |tick: u64| -> Result<Verdict, Error> {
        let is_broken = tick > 0 && acted_after_deny(&trace.record(tick)?)
            || broken_at(trace, &parts, tick)?.next().transpose()?.is_some();
        Ok(if is_broken { Verdict::Violation } else { Verdict::Ok })
    };
    Ok((at((tick - 1).saturating_sub(lag))?, at(tick.saturating_sub(lag))?))
}

/// Returns a predicate of one state that is broken at the onset of `kernel.policy_compliant`: what the door put on record
/// where it did, else the first rule that is broken there, else the acting after a deny.
pub(crate) fn of_one_state(trace: &Trace, predicate: &Predicate, onset: u64) -> Result<Predicate, Error> {
    let on_record = predicate.clone().on_record();
    if on_record.verdict(&trace.state(onset)?, None) == Verdict::Violation {
        return Ok(on_record);
    }
    let parts = parts(trace, onset)?;
    for part in broken_at(trace, &parts, onset)? {
        if let Rule::State(predicate) = &part?.rule {
            return Ok(predicate.clone());
        }
    }
    Ok(Predicate::anomaly(ACTED_AFTER_DENY))
}

/// A rule that is broken at an onset.
pub(crate) struct BrokenRule {
    pub(crate) name: String,
    /// The places of the state that it reads.
    pub(crate) reads: Vec<Pointer>,
    /// The tick of the state that it was asked of.
    pub(crate) tick: u64,
}

/// Returns the first rule that is broken at the onset of `kernel.policy_compliant`; `None` if none is, as where a denied
/// request was acted on.
pub(crate) fn broken_rule(
    trace: &Trace,
    predicate: &Predicate,
    onset: u64,
) -> Result<Option<BrokenRule>, Error> {
    let tick = onset.saturating_sub(u64::from(predicate.window() == Window::Before));
    let parts = parts(trace, tick)?;
    let broken = broken_at(trace, &parts, tick)?.next().transpose()?;
    Ok(broken.map(|part| {
        let lag = match &part.rule {
            Rule::State(predicate) => u64::from(predicate.window() == Window::Before),
            Rule::Request(_) => 1,
        };
        let (name, reads) = (part.rule.name().to_owned(), part.rule.read_set().to_vec());
        BrokenRule { name, reads, tick: tick.saturating_sub(lag) }
    }))
}

/// Returns the predicates of states of which `kernel.policy_compliant` is made up to a tick.
pub(crate) fn predicates(trace: &Trace, to: u64) -> Result<Vec<Predicate>, Error> {
    let parts = parts(trace, to)?.into_iter();
    Ok(parts
        .filter_map(|part| match part.rule {
            Rule::State(predicate) => Some(predicate),
            Rule::Request(_) => None,
        })
        .collect())
}

/// Returns the verdict of each rule in force at a tick: on the request there, or on the state after it.
pub(crate) fn verdicts_at(trace: &Trace, tick: u64) -> Result<Vec<(String, Verdict)>, Error> {
    let record = if tick > 0 { Some(trace.record(tick)?) } else { None };
    let mut found = Vec::new();
    for part in parts(trace, tick)?.iter().filter(|part| (part.from..=part.to).contains(&tick)) {
        let said = verdict_at(trace, part, tick, record.as_ref())?;
        found.extend(said.map(|said| (part.rule.name().to_owned(), said)));
    }
    Ok(found)
}

/// Returns the places that the rules about requests read for a transition; none if it is no request.
pub(crate) fn read_by_request(trace: &Trace, tick: u64, record: &Record) -> Result<Vec<Pointer>, Error> {
    if !is_request(trace, record) {
        return Ok(Vec::new());
    }
    let parts = parts(trace, tick)?.into_iter();
    let in_force = parts.filter(|part| (part.from..=part.to).contains(&tick));
    let asked = in_force.filter(|part| matches!(part.rule, Rule::Request(_)));
    Ok(asked.flat_map(|part| part.rule.read_set().to_vec()).collect())
}

/// The parts that are in force and broken at a tick.
fn broken_at<'p>(
    trace: &'p Trace,
    parts: &'p [Part],
    tick: u64,
) -> Result<impl Iterator<Item = Result<&'p Part, Error>>, Error> {
    let record = if tick > 0 { Some(trace.record(tick)?) } else { None };
    let in_force = parts.iter().filter(move |part| (part.from..=part.to).contains(&tick));
    Ok(in_force.filter_map(move |part| {
        let said = verdict_at(trace, part, tick, record.as_ref());
        said.map(|said| (said == Some(Verdict::Violation)).then_some(part)).transpose()
    }))
}

/// The verdict of a rule at a tick; `None` where it is not asked.
fn verdict_at(
    trace: &Trace,
    part: &Part,
    tick: u64,
    record: Option<&Record>,
) -> Result<Option<Verdict>, Error> {
    let type_name = record.and_then(|record| record.header().type_name.as_ref());
    match &part.rule {
        Rule::State(predicate) if !predicate.is_for(type_name) => Ok(None),
        Rule::State(predicate) => {
            let lag = u64::from(predicate.window() == Window::Before);
            let moment = trace.folded(tick.saturating_sub(lag), predicate.reads_counters())?;
            Ok(Some(verdict(predicate, &moment)?))
        }
        Rule::Request(rule) => match record.filter(|record| is_request(trace, record)) {
            None => Ok(None),
            Some(record) => {
                let door = RequestDoor::of(trace, trace.segment(tick))?;
                Ok(Some(door.ask(trace, rule, record, &trace.state(tick - 1)?)?))
            }
        },
    }
}

/// Whether rules about requests are asked of a transition.
fn is_request(trace: &Trace, record: &Record) -> bool {
    let version = trace.rules_version(record.header().tick.unwrap_or_default());
    let is_of_action = |place: &Pointer| place.tokens().next().as_deref() == Some(ACTION);
    let has_action = || record.body().fields().iter().any(|field| is_of_action(&field.pointer));
    let asks = |name: &TypeName| asks_of(version, name.as_str(), has_action());
    record.header().type_name.as_ref().is_some_and(asks)
}

/// Whether the kernel noted in a transition that a denied request was acted on.
fn acted_after_deny(record: &Record) -> bool {
    has_note(record, ACTED_AFTER_DENY)
}

fn has_note(record: &Record, kind: &str) -> bool {
    record.body().value("/anomalies").is_some_and(|notes| unknown::has_note(&notes, kind))
}

/// The door of one run of a lineage, as far as it asks rules about requests.
struct RequestDoor {
    reducer: Box<dyn Reducer + Send + Sync>,
    /// Whether it asks for each call of a line (design, 14.1); by version 1 of the rules once for the line.
    asks_each: bool,
    /// Whether rules may ask for the time of the record.
    is_timed: bool,
}

impl RequestDoor {
    fn of(trace: &Trace, segment: usize) -> Result<RequestDoor, Error> {
        let reducer = pack::reducer_of_segment(trace, segment)?;
        let begins = &trace.begins()[..=segment];
        let stages = begins.iter().filter_map(|begin| begin.content().get("stage")?.as_u64());
        // Lines of stage 0 may be imported, and have no time of their own.
        let is_recorded = stages.max().is_some_and(|stage| stage > 0);
        let in_force = pack::of_segment(trace, segment)?;
        let clock = in_force.as_ref().and_then(|pack| pack.value().get("clock")?.as_str());
        let asks_each = trace.rules_version(trace.lineage()[segment].1) >= 2;
        Ok(RequestDoor { reducer, asks_each, is_timed: asks_each && is_recorded && clock == Some("kernel") })
    }

    /// Asks a rule about a request, over the state before it: for each call, over the state before that call.
    fn ask(
        &self,
        trace: &Trace,
        rule: &RequestRule,
        record: &Record,
        before: &Value,
    ) -> Result<Verdict, Error> {
        let mut intent = match replay::intent(record, self.reducer.takes_delta()) {
            Ok(Some(intent)) => intent,
            Ok(None) => return Ok(Verdict::Ok),
            Err(error) => return Ok(Verdict::Uncertain(error.to_string())),
        };
        if self.is_timed && !has_note(record, CLOCK_WENT_BACK) {
            intent = intent.of_time(record.header().ts);
        }
        let truth = match self.asks_each {
            false => rule.judge(&intent, before),
            true => {
                let calls = self.before_calls(trace, &intent, record)?;
                rule.judge_line(&intent, &|at| calls.get(at).unwrap_or(before).clone())
            }
        };
        Ok(match truth {
            Truth::True => Verdict::Ok,
            Truth::False => Verdict::Violation,
            Truth::Uncertain(why) => Verdict::Uncertain(why.to_string()),
            Truth::Exhausted => Verdict::Uncertain(format!("it takes more than {STEPS_MAX} steps")),
        })
    }

    /// The states before the calls of a line; empty if it is the same for all.
    fn before_calls(&self, trace: &Trace, intent: &Intent, record: &Record) -> Result<Vec<Value>, Error> {
        let is_list = intent.member("action").is_some_and(|action| action.get("calls").is_some());
        let Some(tick) = record.header().tick.filter(|tick| *tick > 0 && is_list) else {
            return Ok(Vec::new());
        };
        // Rules of the pack may read places that no rule of the policy reads, so all of the state is needed.
        let before = trace.state(tick - 1)?;
        let reduced = self.reducer.reduce_calls(&before, intent, tick);
        Ok(reduced.map(|reduced| reduced.before_calls).unwrap_or_default())
    }
}

/// Lists the rules in force up to a tick: those of the `run` record, and the violations of the pack with its extensions. A
/// fork may go on under others.
fn parts(trace: &Trace, to: u64) -> Result<Vec<Part>, Error> {
    let mut parts: Vec<Part> = Vec::new();
    let mut rules: Vec<Value> = Vec::new();
    let mut begin = 0;
    for segment in 0..=trace.segment(to) {
        let end = trace.lineage()[segment].1.min(to);
        if let Some(own) = rules_of(&trace.begins()[segment], begin)? {
            rules = own;
        }
        let fail = |why: String| Error::PackRecorded { run: trace.name().clone(), why };
        let read = PolicyRules::read_by(&rules, version_of(&trace.begins()[segment]));
        let read = read.map_err(|(index, why)| fail(format!("policy rule {index}: {why}")))?;
        let states = read.states.into_iter().map(|rule| (Rule::State(rule), begin));
        let requests = read.requests.into_iter().map(|rule| (Rule::Request(rule), begin));
        let declared = violations(trace, segment, begin, end)?.into_iter();
        let declared = declared.map(|(predicate, from)| (Rule::State(predicate), from));
        for (rule, from) in states.chain(requests).chain(declared) {
            // A rule that a fork keeps is one with its parent's.
            let known = parts.iter_mut().find(|part| part.to + 1 == begin && part.rule.is_same(&rule));
            match known.filter(|_| segment > 0) {
                Some(part) => part.to = end,
                None => parts.push(Part { rule, from, to: end }),
            }
        }
        begin = end + 1;
    }
    Ok(parts)
}

/// The policy rules that a `run` record brings; `None` if the run continues under those before it.
fn rules_of(begin: &Record, tick: u64) -> Result<Option<Vec<Value>>, Error> {
    let place = Pointer::of(["policy"]);
    let body = begin.body();
    let closed =
        body.fields().iter().find(|field| place.contains(&field.pointer) && body.text(field).is_none());
    if let Some(field) = closed {
        return Err(ReplayError::Erased { tick, pointer: Some(field.pointer.clone()) }.into());
    }
    let rules = body.value(place.as_str());
    Ok(rules.as_ref().and_then(Value::as_array).map(|rules| rules.iter().cloned().collect()))
}

/// Lists the violations of the pack of a run of the lineage up to a tick, each with the tick from which on it is in force.
fn violations(trace: &Trace, segment: usize, begin: u64, end: u64) -> Result<Vec<(Predicate, u64)>, Error> {
    let Some(pack) = pack::of_segment(trace, segment)? else {
        return match trace.begins()[segment].header().pack {
            Some(_) => Err(ReplayError::Erased { tick: begin, pointer: Some(Pointer::of(["pack"])) }.into()),
            None => Ok(Vec::new()),
        };
    };
    let (state, version) = (trace.state(end)?, version_of(&trace.begins()[segment]));
    let mut extended = None;
    if extend::listed(pack.value(), &state).next().is_some() {
        extended =
            Some(pack::read_recorded(trace.name(), &extend::in_force(pack.value(), &state, end), version)?);
    }
    let since = |predicate: &Predicate| extend::added(pack.value(), &state, end, predicate.name());
    let listed = listed(extended.as_ref().unwrap_or(&pack)).map(|predicate| {
        let from = since(predicate).unwrap_or(begin).max(begin);
        (predicate.clone(), from)
    });
    Ok(listed.filter(|(_, from)| *from <= end).collect())
}

/// The predicates of a pack that the door looks for.
fn listed(pack: &Pack) -> impl Iterator<Item = &Predicate> {
    let violations = pack.predicates.iter().filter(|declared: &&Declared| declared.is_violation);
    violations.chain(&pack.progress_contracts).map(|declared| &declared.predicate)
}

/// The way of a rule through a run.
struct Rider<'p> {
    part: &'p Part,
    /// Of a rule about states.
    watcher: Option<Watcher<'p>>,
    /// Of a rule about requests: where it was broken or could not be judged.
    turns: Vec<(u64, Verdict)>,
    /// The first tick that has every place.
    since: Option<u64>,
}

impl Rider<'_> {
    fn turns(&self) -> &[(u64, Verdict)] {
        self.watcher.as_ref().map_or(&self.turns, |watcher| &watcher.line.turns)
    }

    /// The first tick at which it is known to be broken.
    fn broken(&self) -> Option<u64> {
        self.turns().iter().find(|(_, verdict)| *verdict == Verdict::Violation).map(|(tick, _)| *tick)
    }

    /// The first tick that cannot be judged and counts, with the reason. `last` is the last tick that was read.
    fn uncertain(&self, last: u64) -> Option<(u64, &str)> {
        let opens = |(tick, found): &'_ (u64, Verdict)| match found {
            Verdict::Uncertain(_) => Some(*tick),
            Verdict::Ok | Verdict::Violation => None,
        };
        let why = |at: usize| match &self.turns()[at].1 {
            Verdict::Uncertain(why) => why.as_str(),
            Verdict::Ok | Verdict::Violation => "",
        };
        let Some(since) = self.since else {
            // A rule that went out of force before its places came was never asked.
            let first = self.turns().iter().position(|turn| opens(turn).is_some());
            return first.filter(|_| self.part.to >= last).map(|at| (self.turns()[at].0, why(at)));
        };
        let since = since + self.lag();
        // A state is judged until the next turn, and a request by itself.
        let passed = self.turns().partition_point(|(tick, _)| *tick <= since);
        if let (Some(at), Some(_)) = (passed.checked_sub(1), &self.watcher)
            && opens(&self.turns()[at]).is_some()
        {
            return Some((since, why(at)));
        }
        let is_later = |turn: &(u64, Verdict)| opens(turn).is_some_and(|tick| tick >= since);
        self.turns().iter().position(is_later).map(|at| (self.turns()[at].0, why(at)))
    }

    fn lag(&self) -> u64 {
        match &self.part.rule {
            Rule::State(predicate) => u64::from(predicate.window() == Window::Before),
            Rule::Request(_) => 0,
        }
    }
}

/// All rules on their way through a run.
struct Course<'p> {
    trace: &'p Trace,
    riders: Vec<Rider<'p>>,
    last: u64,
    /// The doors of the runs of the lineage, if rules about requests are asked.
    doors: Vec<RequestDoor>,
    /// The first tick that acted after a deny.
    denied: Option<u64>,
}

impl<'p> Course<'p> {
    fn new(trace: &'p Trace, parts: &'p [Part], last: u64) -> Result<Course<'p>, Error> {
        let rider = |part: &'p Part| {
            let watcher = match &part.rule {
                Rule::State(predicate) => {
                    Some(Watcher::new(predicate, Timeline::new(part.from, part.to), part.to))
                }
                Rule::Request(_) => None,
            };
            Rider { part, watcher, turns: Vec::new(), since: None }
        };
        let riders: Vec<Rider<'p>> = parts.iter().map(rider).collect();
        let mut doors = Vec::new();
        if parts.iter().any(|part| matches!(part.rule, Rule::Request(_))) {
            for segment in 0..=trace.segment(last) {
                doors.push(RequestDoor::of(trace, segment)?);
            }
        }
        Ok(Course { trace, riders, last, doors, denied: None })
    }

    /// Reads the run from its beginning, up to where nothing can change the answer any more.
    fn read(&mut self, look: Look) -> Result<(), Error> {
        let trace = self.trace;
        let counted = self.riders.iter().any(|rider| rider.part.rule.reads_counters());
        let fresh = Trace::open(trace.store(), trace.name())?;
        let is_bare = counted || look == Look::Everywhere || !trace.uses_snapshots();
        let fresh = if is_bare { fresh.without_snapshots() } else { fresh };
        if look == Look::Everywhere {
            let mut before = Value::object();
            return fresh.moments(0, self.last, &mut |moment, record| {
                let places = record.map_or_else(Vec::new, written);
                let flow = self.pass(&before, moment, record, &places, look)?;
                before = moment.state.clone();
                Ok(flow)
            });
        }
        let read_sets = self.riders.iter().flat_map(|rider| rider.part.rule.read_set());
        let watched = read_sets.map(from_first_name).chain([Pointer::of([UNKNOWN])]).collect::<Vec<_>>();
        fold_at(&fresh, &watched, 0, self.last, counted, &mut |step| {
            self.pass(step.before, step.moment, step.record, step.written, look)
        })
    }

    /// Takes every rule through a tick.
    fn pass(
        &mut self,
        before: &Value,
        moment: &Moment,
        record: Option<&Record>,
        written: &[Pointer],
        look: Look,
    ) -> Result<ControlFlow<()>, Error> {
        let tick = moment.tick;
        let type_name: Option<&TypeName> = record.and_then(|record| record.header().type_name.as_ref());
        let door = self.doors.get(self.trace.segment(tick));
        let request = record.filter(|record| is_request(self.trace, record)).zip(door);
        for rider in &mut self.riders {
            let part = rider.part;
            let is_in_force = (part.from..=part.to).contains(&tick);
            if is_in_force && rider.since.is_none() && (tick == part.from || !written.is_empty()) {
                let state =
                    if matches!(part.rule, Rule::Request(_)) && tick > 0 { before } else { &moment.state };
                rider.since = part.rule.has_places(state).then_some(tick);
            }
            match (&part.rule, &mut rider.watcher, request) {
                (Rule::State(predicate), Some(watcher), _) => {
                    let passed = match predicate.scope().is_empty() {
                        true => watcher.pass(moment, written, look),
                        false => watcher.pass_scoped(moment, type_name),
                    };
                    passed.map_err(|error| error.stopped_at(self.trace.name(), tick))?;
                }
                (Rule::Request(rule), _, Some((record, door))) if is_in_force => {
                    // The state before may have got its places since it was looked at last.
                    if rider.since.is_none() && part.rule.has_places(before) {
                        rider.since = Some(tick);
                    }
                    match door.ask(self.trace, rule, record, before)? {
                        Verdict::Ok => {}
                        found => rider.turns.push((tick, found)),
                    }
                }
                _ => {}
            }
        }
        if self.denied.is_none() && record.is_some_and(acted_after_deny) {
            self.denied = Some(tick);
        }
        Ok(if self.is_settled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// The first tick that is known to be broken.
    fn broken(&self) -> Option<u64> {
        self.riders.iter().filter_map(Rider::broken).chain(self.denied).min()
    }

    /// Whether something is broken, and no rule waits for its places whose earlier ticks could not be judged.
    fn is_settled(&self) -> bool {
        let waits = |rider: &Rider<'_>| {
            let is_open = |(_, verdict): &(u64, Verdict)| matches!(verdict, Verdict::Uncertain(_));
            rider.since.is_none() && rider.turns().iter().any(is_open)
        };
        self.broken().is_some() && !self.riders.iter().any(waits)
    }

    fn judged(&self) -> u64 {
        let of_states = self.riders.iter().filter_map(|rider| Some(rider.watcher.as_ref()?.line.judged));
        let of_requests = self.riders.iter().map(|rider| rider.turns.len() as u64);
        of_states.chain(of_requests).sum()
    }

    /// The verdicts: ok, from the first tick that cannot be judged on uncertain, and violated from the first violation on.
    fn turns(&self) -> Vec<(u64, Verdict)> {
        let broken = self.broken();
        let mut open: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for rider in &self.riders {
            let found = rider.uncertain(self.last);
            if let Some((tick, why)) = found.filter(|(tick, _)| broken.is_none_or(|broken| *tick < broken)) {
                open.entry(tick).or_default().push(format!("{}: {why}", rider.part.rule.name()));
            }
        }
        let mut turns = Vec::new();
        if broken != Some(0) && !open.contains_key(&0) {
            turns.push((0, Verdict::Ok));
        }
        let mut reasons: Vec<String> = Vec::new();
        for (tick, more) in open {
            reasons.extend(more);
            turns.push((tick, Verdict::Uncertain(reasons.join("; "))));
        }
        turns.extend(broken.map(|tick| (tick, Verdict::Violation)));
        turns
    }
}
