//! Runs as steps of witness chains (witness-log paper 2.3, 3 and 5.2): the steps themselves, their counts, their coherence, and how
//! chains of several runs are one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

use dendrer_chain::{ActionType, RowValue};
use dendrer_object::RunName;

use crate::error::Error;
use crate::run::trace::Trace;
use crate::run::witness::{StepDoubt, WitnessStep};

pub mod question;

/// Calls `f` with each step of a run, in the order of ticks, up to a tick.
pub fn each_step(
    (trace, upto): (&Trace, u64),
    f: &mut dyn FnMut(WitnessStep) -> ControlFlow<()>,
) -> Result<(), Error> {
    trace.for_each(1, upto, &mut |tick, record| match WitnessStep::of(&record) {
        Some(mut step) => {
            // Before version 2 an evaluation by the runtime had the agent as its author.
            let may_be_runtimes = trace.rules_version(tick) < 2;
            step.doubt = step.doubt.filter(|doubt| !may_be_runtimes || *doubt != StepDoubt::Claimed);
            f(step)
        }
        None => ControlFlow::Continue(()),
    })
}

/// The counts of the steps of a type.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ActionStats {
    /// How many there are.
    pub count: u64,
    /// How many are known to have failed.
    pub failed: u64,
    /// How many are known to have succeeded.
    pub succeeded: u64,
    /// Durations in milliseconds, sorted.
    durations: Vec<f64>,
}

impl ActionStats {
    /// The share that succeeded, of those of which it is known; `None` if it is known of none.
    pub fn success_rate(&self) -> Option<f64> {
        let known = self.failed + self.succeeded;
        (known > 0).then(|| self.succeeded as f64 / known as f64)
    }

    /// The duration that this share of the steps does not exceed, by the nearest rank; `None` if no step says its duration.
    pub fn percentile(&self, share: f64) -> Option<f64> {
        let rank = (share * self.durations.len() as f64).ceil() as usize;
        self.durations.get(rank.clamp(1, self.durations.len().max(1)) - 1).copied()
    }
}

/// Counts steps by their type.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepStats(BTreeMap<ActionType, ActionStats>);

impl StepStats {
    /// Counts one, if its type is known.
    pub fn count(&mut self, step: &WitnessStep) {
        let Some(action) = step.action() else { return };
        let stats = self.0.entry(action).or_default();
        stats.count += 1;
        stats.failed += u64::from(step.success == Some(false));
        stats.succeeded += u64::from(step.success == Some(true));
        stats.durations.extend(step.step.duration_ms.filter(|ms| ms.is_finite()));
    }

    /// The counts, in the order of the types.
    pub fn finish(mut self) -> Vec<(ActionType, ActionStats)> {
        for stats in self.0.values_mut() {
            stats.durations.sort_by(f64::total_cmp);
        }
        self.0.into_iter().collect()
    }
}

/// A mean of some values; `None` without any.
#[derive(Debug, Clone, Copy, Default)]
struct Mean(f64, u64);

impl Mean {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            *self = Mean(self.0 + value, self.1 + 1);
        }
    }

    fn value(self) -> Option<f64> {
        (self.1 > 0).then(|| self.0 / self.1 as f64)
    }
}

/// A step that says its coherence.
#[derive(Debug, Clone, PartialEq)]
pub struct CoherencePoint {
    /// The run.
    pub run: RunName,
    /// The tick.
    pub tick: u64,
    /// When it began.
    pub started_at: String,
    /// Coherence.
    pub phi: Option<f64>,
    /// Phase lock.
    pub kuramoto_r: Option<f64>,
}

/// The signals of a trace, which may span several runs (witness-log paper 1, "Cross-channel telemetry"). Means.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceSignals {
    /// The key that joins them.
    pub trace_id: String,
    /// Coherence, over training steps.
    pub phi: Option<f64>,
    /// Phase lock, over phases of evaluations.
    pub r: Option<f64>,
    /// The share of tool calls that succeeded, of those of which it is known.
    pub tool_success: Option<f64>,
    /// Duration of payments in milliseconds.
    pub facilitator_ms: Option<f64>,
}

/// The coherence of runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Coherence {
    /// Steps that say one, in the order of runs and ticks.
    pub items: Vec<CoherencePoint>,
    /// The signals by `trace_id`.
    pub traces: Vec<TraceSignals>,
}

/// Reads the coherence of runs.
pub fn coherence(traces: &[(Trace, u64)]) -> Result<Coherence, Error> {
    let mut found = Coherence::default();
    let mut means: BTreeMap<String, [Mean; 4]> = BTreeMap::new();
    for (trace, upto) in traces {
        each_step((trace, *upto), &mut |recorded| {
            let step = &recorded.step;
            if recorded.action().is_none() {
                return ControlFlow::Continue(());
            }
            if step.phi.is_some() || step.kuramoto_r.is_some() {
                found.items.push(CoherencePoint {
                    run: trace.name().clone(),
                    tick: recorded.tick,
                    started_at: step.started_at.to_string(),
                    phi: step.phi,
                    kuramoto_r: step.kuramoto_r,
                });
            }
            if let Some(id) = &step.trace_id {
                let [phi, r, tool_success, facilitator_ms] = means.entry(id.clone()).or_default();
                match step.action {
                    ActionType::TrainingStep => phi.add(step.phi),
                    ActionType::EvalPhase => r.add(step.kuramoto_r),
                    ActionType::ToolCall => {
                        tool_success.add(recorded.success.map(|success| f64::from(u8::from(success))));
                    }
                    ActionType::Payment => facilitator_ms.add(step.duration_ms),
                    _ => {}
                }
            }
            ControlFlow::Continue(())
        })?;
    }
    found.traces = means
        .into_iter()
        .map(|(trace_id, [phi, r, tool_success, facilitator_ms])| TraceSignals {
            trace_id,
            phi: phi.value(),
            r: r.value(),
            tool_success: tool_success.value(),
            facilitator_ms: facilitator_ms.value(),
        })
        .collect();
    Ok(found)
}

/// The end of the trajectory of a run (witness-log paper 3.2).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CoherenceSummary {
    /// The mean of `phi` over all steps that say it.
    pub phi_mean: Option<f64>,
    /// `q_hat` of the last output that has it.
    pub q_hat: Option<f64>,
    /// `crystallization_count` of the last output that has it, or how many `crystallizations` it lists.
    pub crystallization_count: Option<f64>,
}

/// Reads the end of the trajectory of a run.
pub fn coherence_summary(trace: (&Trace, u64)) -> Result<CoherenceSummary, Error> {
    let (mut phi, mut found) = (Mean::default(), CoherenceSummary::default());
    each_step(trace, &mut |recorded| {
        let output = &recorded.step.output;
        phi.add(recorded.step.phi);
        let number = |name: &str| output.get(name).and_then(RowValue::as_f64);
        let listed = match output.get("crystallizations") {
            Some(RowValue::List(items)) => Some(items.len() as f64),
            _ => None,
        };
        found.q_hat = number("q_hat").or(found.q_hat);
        found.crystallization_count =
            number("crystallization_count").or(listed).or(found.crystallization_count);
        ControlFlow::Continue(())
    })?;
    Ok(CoherenceSummary { phi_mean: phi.value(), ..found })
}

/// A step of a run, by its place and its id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StepPlace {
    /// The run.
    pub run: RunName,
    /// The tick.
    pub tick: u64,
    /// The id of the step.
    pub step_id: String,
}

dendrer_object::words! {
    /// The member by which chains are joined.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ComposeBy {
        /// Equal `trace_id`.
        Trace = "trace",
        /// `parent_id`, the id of the step in which one is nested.
        Parent = "parent",
    }
}

/// Chains of several runs as one graph (witness-log paper 5.2).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Composition {
    /// Steps that belong together: by their `trace_id`, or by the step that all of them descend from, which is its key.
    pub groups: Vec<(String, Vec<StepPlace>)>,
    /// From a step to one that is nested in it.
    pub edges: Vec<(StepPlace, StepPlace)>,
    /// Steps that name a parent that is in none of the runs.
    pub orphans: Vec<(StepPlace, String)>,
    /// Steps that descend from themselves, each cycle once.
    pub cycles: Vec<Vec<StepPlace>>,
    /// Steps that have one id.
    pub duplicates: Vec<Vec<StepPlace>>,
}

impl Composition {
    /// Whether orphans, cycles or duplicates were found.
    pub fn is_broken(&self) -> bool {
        !(self.orphans.is_empty() && self.cycles.is_empty() && self.duplicates.is_empty())
    }
}

/// One step as composition needs it.
struct Joined {
    place: StepPlace,
    parent: Option<String>,
    trace: Option<String>,
}

/// Joins the steps of runs. A step that a fork shares with its parent is one step.
pub fn compose(traces: &[(Trace, u64)], by: ComposeBy) -> Result<Composition, Error> {
    let mut steps: Vec<Joined> = Vec::new();
    let mut seen = BTreeSet::new();
    for (trace, upto) in traces {
        trace.for_each(1, *upto, &mut |tick, record| {
            if seen.insert(record.id())
                && let Some(WitnessStep { step, .. }) =
                    WitnessStep::of(&record).filter(|one| one.action().is_some())
            {
                let place = StepPlace { run: trace.name().clone(), tick, step_id: step.step_id };
                steps.push(Joined { place, parent: step.parent_id, trace: step.trace_id });
            }
            ControlFlow::Continue(())
        })?;
    }
    let mut by_id: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, step) in steps.iter().enumerate() {
        by_id.entry(&step.place.step_id).or_default().push(at);
    }
    let mut made = Composition::default();
    // The parent of a step, if one step alone has its id.
    let mut parents: Vec<Option<usize>> = vec![None; steps.len()];
    for (at, step) in steps.iter().enumerate() {
        let Some(parent) = &step.parent else { continue };
        match by_id.get(&**parent).map(Vec::as_slice) {
            None | Some([]) => made.orphans.push((step.place.clone(), parent.clone())),
            Some([one]) => {
                parents[at] = Some(*one);
                made.edges.push((steps[*one].place.clone(), step.place.clone()));
            }
            // The id is that of several: which one is meant is not known, and they are listed as duplicates.
            Some(_) => {}
        }
    }
    let place = |at: &usize| steps[*at].place.clone();
    made.duplicates =
        by_id.values().filter(|same| same.len() > 1).map(|same| same.iter().map(place).collect()).collect();
    made.duplicates.sort();
    let roots = roots(&parents, &mut |cycle| {
        let mut cycle: Vec<StepPlace> = cycle.iter().map(place).collect();
        cycle.sort();
        made.cycles.push(cycle);
    });
    made.cycles.sort();
    let mut groups: BTreeMap<String, Vec<StepPlace>> = BTreeMap::new();
    for (at, step) in steps.iter().enumerate() {
        let key = match by {
            ComposeBy::Trace => step.trace.clone(),
            ComposeBy::Parent => roots[at].map(|root| steps[root].place.step_id.clone()),
        };
        if let Some(key) = key {
            groups.entry(key).or_default().push(step.place.clone());
        }
    }
    // A step by itself is no group.
    made.groups = groups.into_iter().filter(|(_, group)| by == ComposeBy::Trace || group.len() > 1).collect();
    Ok(made)
}

/// The step that each descends from at last; `None` below a cycle. `visit` is told each cycle once.
fn roots(parents: &[Option<usize>], visit: &mut dyn FnMut(&[usize])) -> Vec<Option<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        OnPath,
        Root(Option<usize>),
    }
    let mut marks = vec![Mark::New; parents.len()];
    for from in 0..parents.len() {
        let (mut path, mut at) = (Vec::new(), from);
        let root = loop {
            match marks[at] {
                Mark::Root(root) => break root,
                Mark::OnPath => {
                    let begin = path.iter().position(|on| *on == at).unwrap_or(0);
                    visit(&path[begin..]);
                    break None;
                }
                Mark::New => {}
            }
            marks[at] = Mark::OnPath;
            path.push(at);
            match parents[at] {
                None => break Some(at),
                Some(parent) => at = parent,
            }
        };
        for on in path {
            marks[on] = Mark::Root(root);
        }
    }
    let root = |mark: &Mark| match mark {
        Mark::Root(root) => *root,
        Mark::New | Mark::OnPath => None,
    };
    marks.iter().map(root).collect()
}

/// A step for training: what went in, what came out, and its reward (witness-log paper 1, "Reproducibility").
#[derive(Debug, Clone)]
pub struct TrainingDatum {
    /// The step.
    pub step: WitnessStep,
    /// The output of the reward that names the step as its parent, or else of the next one of its trace; `None` if none follows, or
    /// that one is not known to have succeeded.
    pub reward: Option<RowValue>,
}

/// The rewards of a run.
#[derive(Debug, Default)]
struct Rewards {
    /// Those that name a step, by its id: trace and value.
    named: HashMap<String, (Option<String>, Option<RowValue>)>,
    /// Those that name none, by their trace: tick and value.
    unnamed: HashMap<Option<String>, Vec<(u64, Option<RowValue>)>>,
}

impl Rewards {
    fn add(&mut self, reward: WitnessStep) {
        let is_sound = reward.success == Some(true) && reward.doubt.is_none();
        let (tick, step) = (reward.tick, reward.step);
        let value = is_sound.then_some(step.output);
        match step.parent_id {
            Some(parent) => drop(self.named.insert(parent, (step.trace_id, value))),
            None => self.unnamed.entry(step.trace_id).or_default().push((tick, value)),
        }
    }

    fn of(&self, recorded: &WitnessStep) -> Option<RowValue> {
        let step = &recorded.step;
        if let Some((trace, value)) = self.named.get(&step.step_id) {
            let is_own = trace.is_none() || *trace == step.trace_id;
            return value.clone().filter(|_| is_own);
        }
        let of_trace = self.unnamed.get(&step.trace_id)?;
        let next = of_trace.partition_point(|(tick, _)| *tick < recorded.tick);
        of_trace.get(next)?.1.clone()
    }
}

/// Calls `f` with each datum of a run: replies of models and tool calls, in the order of ticks. A reward that names a step is that
/// step's; one that names none is of the steps of its trace since the reward before it.
pub fn each_datum(
    trace: (&Trace, u64),
    f: &mut dyn FnMut(TrainingDatum) -> ControlFlow<()>,
) -> Result<(), Error> {
    let mut rewards = Rewards::default();
    each_step(trace, &mut |recorded| {
        if recorded.action() == Some(ActionType::Reward) {
            rewards.add(recorded);
        }
        ControlFlow::Continue(())
    })?;
    each_step(trace, &mut |recorded| {
        if !matches!(recorded.action(), Some(ActionType::LlmReply | ActionType::ToolCall)) {
            return ControlFlow::Continue(());
        }
        let reward = rewards.of(&recorded);
        f(TrainingDatum { step: recorded, reward })
    })
}
