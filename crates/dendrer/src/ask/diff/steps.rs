//! Two threads compared step by step: channels, interrupts, answers and failures of the steps of each namespace.
//!
//! The steps of a namespace are lined up by their nodes; the call of a subgraph belongs to the step that made it, and is lined up
//! with a call of the same step of the other thread. Ids, versions and places of the vault are not compared: a framework makes
//! each of them anew.
//!
//! Rule: the answer depends on the graph and not on the order of ticks, which a framework leaves open inside of a step; test
//! `steps_of_two_threads_are_lined_up_by_nodes`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_object::record::Record;
use dendrer_object::value::Difference;
use dendrer_object::{Pointer, Value, marker, tag};

use super::align::{TooFarApart, lcs};
use super::{
    Ahead, CONTENT_MAX, DiffChange, DiffHidden, DiffKind, DiffSides, Pair, STEPS_MAX, Walk, is_marker,
    meaning, numbers, thread, tick_of,
};
use crate::ask::show::ShownWrites;
use crate::ask::thread::{ThreadIndex, ThreadPart, ThreadPlace, channel_of};
use crate::error::Error;
use crate::run::thread::{is_of_thread, place_of, plain_namespace};
use crate::run::trace::Trace;

/// How deep calls of subgraphs are followed; deeper ones are lined up by themselves.
const DEPTH_MAX: usize = 64;

/// Two steps that were lined up, or one without a counterpart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairedSteps {
    /// The step of the left thread; `None` if it is missing, or if its number is not on record.
    pub a: Option<i64>,
    /// As `a`, of the right thread.
    pub b: Option<i64>,
    /// The nodes, after those around them.
    pub node: String,
    /// The namespace without the ids of its tasks.
    pub namespace: String,
    /// Whether the state was changed from outside of the graph.
    pub by_hand: bool,
}

/// Two threads that are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedThreads {
    /// The name of the left thread and of the right one.
    pub names: [Arc<str>; 2],
    /// The fork by which one began in the other.
    pub fork: Option<ThreadFork>,
}

/// A fork of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadFork {
    /// Whether the right thread is the fork.
    pub in_b: bool,
    /// The last tick that both have.
    pub tick: u64,
    /// The step of the checkpoint there, if it is on record.
    pub step: Option<i64>,
}

/// A namespace and the id of a checkpoint.
type CheckpointPlace = (Arc<str>, Arc<str>);

/// A step of a thread.
#[derive(Debug)]
struct Step {
    /// The tick of its checkpoint, or of its last event without one.
    tick: u64,
    place: ThreadPlace,
    is_ended: bool,
    parent: Option<Arc<str>>,
    /// The checkpoint of the namespace around it that called it.
    around: Option<CheckpointPlace>,
    /// Interrupts, answers and failures, by the name of their place.
    events: BTreeMap<&'static str, Vec<Value>>,
}

impl Step {
    /// The key by which two steps are lined up.
    fn key(&self) -> String {
        self.place.node()
    }
}

/// The steps of one thread that are compared.
#[derive(Debug, Default)]
struct Steps {
    all: Vec<Step>,
    /// The steps of each call of a namespace, in order.
    calls: BTreeMap<CallKey, Vec<usize>>,
    /// The calls in the order in which they begin.
    order: Vec<CallKey>,
    /// Other records than puts and writes, and markers that change the state.
    others: Vec<Record>,
}

/// The checkpoint that calls, and the namespace that is called.
type CallKey = (Option<CheckpointPlace>, Arc<str>);

impl Walk<'_, '_> {
    /// Lines up the steps of two threads, and compares their channels.
    pub(super) fn by_step(&mut self) -> Result<ControlFlow<()>, Error> {
        let (Some(mut of_a), Some(mut of_b)) = (ThreadIndex::of(self.a), ThreadIndex::of(self.b)) else {
            return self.by_tick();
        };
        self.rules.takes_threads();
        self.report.pairs = self.report.differ;
        let (left, right) = (self.steps(&mut of_a, false)?, self.steps(&mut of_b, true)?);
        self.report.threads = Some(ComparedThreads {
            names: [Arc::clone(of_a.name()), Arc::clone(of_b.name())],
            fork: fork(&mut of_a, &mut of_b)?,
        });
        for at in 0..left.others.len().max(right.others.len()) {
            let (a, b) = (left.others.get(at).cloned(), right.others.get(at).cloned());
            if self.pair(a, b).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        let mut lining =
            Lining { a: &left, b: &right, seen: Default::default(), steps: STEPS_MAX, found: Vec::new() };
        let (a, b) = (self.a.name().clone(), self.b.name().clone());
        lining.all().map_err(|TooFarApart| Error::TooFarApart { a, b })?;
        let found = lining.found;
        let (from, to, open) = (self.first_tick(), self.last_tick(), self.question.to.is_none());
        for (at, (x, y)) in found.iter().enumerate() {
            let here = x.map(|x| left.all[x].tick);
            let next = here.or_else(|| found[at..].iter().find_map(|(x, _)| x.map(|x| left.all[x].tick)));
            let is_inside = next.map_or(open, |tick| (from..=to).contains(&tick));
            if !is_inside {
                continue;
            }
            let (x, y) = (x.map(|x| &left.all[x]), y.map(|y| &right.all[y]));
            let pair = self.pair_of_steps((&of_a, x), (&of_b, y))?;
            if self.take(pair).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Reads the steps of a thread after the shared ticks, in the order of its checkpoints.
    fn steps(&mut self, index: &mut ThreadIndex<'_>, in_b: bool) -> Result<Steps, Error> {
        let behind = self.report.shared.unwrap_or(0) + 1;
        let (trace, end) = match in_b {
            false => (self.a, self.question.ends.0),
            true => (self.b, self.question.ends.1),
        };
        let mut ahead = Ahead::new(trace, behind, end)?;
        let mut steps = Steps::default();
        let mut events: Vec<(CheckpointPlace, u64, ThreadPlace)> = Vec::new();
        let markers = if in_b { &mut self.report.markers.1 } else { &mut self.report.markers.0 };
        while let Some(record) = ahead.take(markers)? {
            let Some(place) = index.place(&record)? else {
                if is_marker(&record) || !is_of_thread(&record) {
                    steps.others.push(record);
                }
                continue;
            };
            if steps.all.len() == CONTENT_MAX {
                return Err(Error::TooLongToLineUp { run: trace.name().clone() });
            }
            let about = |name: &str, member: &str| {
                record.body().value(&format!("/intent/{name}"))?.get(member)?.as_str().map(Arc::<str>::from)
            };
            match place.part {
                ThreadPart::Writes(_) => {}
                ThreadPart::Checkpoint => {
                    let parent = about("checkpoint", "parent");
                    let id = about("checkpoint", "id").unwrap_or_default();
                    let around = around(index, &(Arc::clone(&place.namespace), id));
                    if let Some(caller) = &around {
                        index.reach(tick_of(&record), caller)?;
                    }
                    steps.all.push(Step {
                        tick: tick_of(&record),
                        place,
                        is_ended: true,
                        parent,
                        around,
                        events: BTreeMap::new(),
                    });
                }
                _ => {
                    let checkpoint = about("writes", "checkpoint").unwrap_or_default();
                    events.push(((Arc::clone(&place.namespace), checkpoint), tick_of(&record), place));
                }
            }
        }
        self.is_touched |= ahead.is_touched;
        steps.add_events(index, events);
        steps.group();
        Ok(steps)
    }

    /// Compares two steps, or takes in one without a counterpart.
    fn pair_of_steps(
        &self,
        (of_a, x): (&ThreadIndex<'_>, Option<&Step>),
        (of_b, y): (&ThreadIndex<'_>, Option<&Step>),
    ) -> Result<Pair, Error> {
        let record =
            |trace: &Trace, step: Option<&Step>| step.map(|step| trace.record(step.tick)).transpose();
        let (a, b) = (record(self.a, x)?, record(self.b, y)?);
        let asked = self.rules.asked_in_state();
        let of = |trace: &Trace, index: &ThreadIndex<'_>, step: Option<&Step>, record: &Option<Record>| {
            let both = step.zip(record.as_ref());
            both.map(|(step, record)| written(trace, index, step, record, asked.as_ref())).transpose()
        };
        let (left, right) = (of(self.a, of_a, x, &a)?, of(self.b, of_b, y, &b)?);
        let is_pair = x.is_some() && y.is_some();
        let kind = if is_pair { DiffKind::Semantic } else { DiffKind::Structural };
        let mut pair = Pair::of(a, b);
        pair.steps = x.or(y).map(|one| PairedSteps {
            a: x.and_then(|step| step.place.step),
            b: y.and_then(|step| step.place.step),
            node: one.place.node(),
            namespace: plain_namespace(&one.place.namespace),
            by_hand: one.place.source.as_deref() == Some("update"),
        });
        let (in_a, in_b) = (matches!(left, Some(None)), matches!(right, Some(None)));
        if in_a || in_b {
            pair.hidden.push(DiffHidden { path: Pointer::of(["delta"]), in_a, in_b, redacted: false });
        }
        if (!in_a && !in_b) || !is_pair {
            pair.changes = match (left.flatten(), right.flatten()) {
                (Some(left), Some(right)) => {
                    let mut open = Vec::new();
                    let found = compare(&left, &right, &mut open);
                    pair.hidden.extend(open.into_iter().map(DiffHidden::redacted));
                    found
                }
                (Some(left), None) => all_alone(&left, true),
                (None, Some(right)) => all_alone(&right, false),
                (None, None) => Vec::new(),
            };
        }
        pair.changes.iter_mut().for_each(|change| change.kind = kind);
        pair.changes.retain(|change| {
            self.question.asks(kind)
                && self.question.lies_in_path(&change.path)
                && !self.rules.ignores(&change.path)
        });
        let is_asked = self.question.asks(kind) && (!is_pair || !pair.changes.is_empty());
        let is_in_path = self.question.path.is_none() || !pair.changes.is_empty();
        pair.kinds.extend((is_asked && is_in_path).then_some(kind));
        Ok(pair)
    }
}

/// The innermost checkpoint around another one.
fn around(index: &ThreadIndex<'_>, place: &CheckpointPlace) -> Option<CheckpointPlace> {
    index.checkpoints().get(place)?.around.last().cloned()
}

/// Returns the fork by which one of two threads began in the other.
fn fork(a: &mut ThreadIndex<'_>, b: &mut ThreadIndex<'_>) -> Result<Option<ThreadFork>, Error> {
    let last_of = |run: &Trace, fork: &Trace| {
        let (_, before) = fork.lineage().split_last()?;
        before.iter().find(|(name, _)| name == run.name()).map(|(_, last)| *last)
    };
    let found = [(last_of(a.trace(), b.trace()), true), (last_of(b.trace(), a.trace()), false)];
    let Some((tick, in_b)) = found.into_iter().find_map(|(last, in_b)| Some((last?, in_b))) else {
        return Ok(None);
    };
    let record = a.trace().record(tick)?;
    let step = a.place(&record)?.and_then(|place| place.step);
    Ok(Some(ThreadFork { in_b, tick, step }))
}

impl Steps {
    /// Adds interrupts, answers and failures to the steps that they are of; a step that did not end has its own.
    fn add_events(&mut self, index: &ThreadIndex<'_>, events: Vec<(CheckpointPlace, u64, ThreadPlace)>) {
        let mut ends: BTreeMap<CheckpointPlace, usize> = BTreeMap::new();
        for (at, step) in self.all.iter().enumerate() {
            if let Some(parent) = &step.parent {
                ends.insert((Arc::clone(&step.place.namespace), Arc::clone(parent)), at);
            }
        }
        for (checkpoint, tick, place) in events {
            let (name, values) = match &place.part {
                ThreadPart::Interrupt(asked) => ("interrupt", asked.clone()),
                ThreadPart::Answer(answer) => ("answer", vec![answer.clone()]),
                ThreadPart::Error(error) => ("error", vec![error.clone()]),
                _ => continue,
            };
            let at = *ends.entry(checkpoint.clone()).or_insert_with(|| {
                self.all.push(Step {
                    tick,
                    place,
                    is_ended: false,
                    parent: Some(Arc::clone(&checkpoint.1)),
                    around: around(index, &checkpoint),
                    events: BTreeMap::new(),
                });
                self.all.len() - 1
            });
            let step = &mut self.all[at];
            if !step.is_ended {
                step.tick = tick;
            }
            step.events.entry(name).or_default().extend(values);
        }
    }

    /// Groups the steps by the call of their namespace.
    fn group(&mut self) {
        for (at, step) in self.all.iter().enumerate() {
            let key = (step.around.clone(), Arc::clone(&step.place.namespace));
            let call = self.calls.entry(key.clone()).or_default();
            if call.is_empty() {
                self.order.push(key);
            }
            call.push(at);
        }
    }

    /// Lists the calls that a step made, each with its namespace without ids.
    fn calls_of(&self, step: usize) -> Vec<(String, &CallKey)> {
        let step = &self.all[step];
        let made_by =
            step.parent.as_ref().map(|parent| (Arc::clone(&step.place.namespace), Arc::clone(parent)));
        let Some(made_by) = made_by else { return Vec::new() };
        let range = (Some(made_by.clone()), Arc::from(""))..;
        let own = self.calls.range(range).take_while(|((around, _), _)| around.as_ref() == Some(&made_by));
        let mut own: Vec<(String, &CallKey)> = own.map(|(key, _)| (plain_namespace(&key.1), key)).collect();
        own.sort_by_key(|(name, key)| (name.clone(), self.calls[*key][0]));
        own
    }
}

/// Steps of two threads, lined up as far as it has come.
struct Lining<'s> {
    a: &'s Steps,
    b: &'s Steps,
    /// The calls of each side that were lined up.
    seen: [BTreeSet<&'s CallKey>; 2],
    /// The work that is left for the search.
    steps: u64,
    found: Vec<(Option<usize>, Option<usize>)>,
}

impl<'s> Lining<'s> {
    /// Lines up the outermost steps, the calls that they made, and what no step made.
    fn all(&mut self) -> Result<(), TooFarApart> {
        let (a, b) = (self.a, self.b);
        let is_outer = |key: &&CallKey| key.0.is_none();
        self.calls(named(a.order.iter().filter(is_outer)), named(b.order.iter().filter(is_outer)), 0)?;
        loop {
            let [seen_a, seen_b] = &self.seen;
            let left = a.order.iter().filter(|key| !seen_a.contains(key)).collect::<Vec<_>>();
            let right = b.order.iter().filter(|key| !seen_b.contains(key)).collect::<Vec<_>>();
            if left.is_empty() && right.is_empty() {
                return Ok(());
            }
            self.calls(named(left.into_iter()), named(right.into_iter()), 0)?;
        }
    }

    /// Lines up calls of one name in their order, and their steps.
    fn calls(
        &mut self,
        left: Vec<(String, &'s CallKey)>,
        right: Vec<(String, &'s CallKey)>,
        depth: usize,
    ) -> Result<(), TooFarApart> {
        let mut names: BTreeMap<String, [Vec<&'s CallKey>; 2]> = BTreeMap::new();
        for (side, calls) in [left, right].into_iter().enumerate() {
            for (name, key) in calls {
                names.entry(name).or_default()[side].push(key);
            }
        }
        for [left, right] in names.values() {
            for at in 0..left.len().max(right.len()) {
                self.call(left.get(at).copied(), right.get(at).copied(), depth)?;
            }
        }
        Ok(())
    }

    fn call(
        &mut self,
        left: Option<&'s CallKey>,
        right: Option<&'s CallKey>,
        depth: usize,
    ) -> Result<(), TooFarApart> {
        let (a, b) = (self.a, self.b);
        let mut steps_of = |side: usize, steps: &'s Steps, key: Option<&'s CallKey>| {
            let is_new = key.is_some_and(|key| self.seen[side].insert(key));
            key.filter(|_| is_new).map_or(&[][..], |key| &steps.calls[key][..])
        };
        let (left, right) = (steps_of(0, a, left), steps_of(1, b, right));
        let keys = |steps: &Steps, list: &[usize]| -> Vec<Option<String>> {
            list.iter().map(|at| Some(steps.all[*at].key())).collect()
        };
        let (of_a, of_b) = numbers(&keys(a, left), &keys(b, right));
        let mut pairs = lcs(&of_a, &of_b, &mut self.steps)?;
        pairs.push((left.len(), right.len()));
        let (mut x0, mut y0) = (0, 0);
        for (x, y) in pairs {
            left[x0..x].iter().try_for_each(|at| self.step(Some(*at), None, depth))?;
            right[y0..y].iter().try_for_each(|at| self.step(None, Some(*at), depth))?;
            if let (Some(x), Some(y)) = (left.get(x), right.get(y)) {
                self.step(Some(*x), Some(*y), depth)?;
            }
            (x0, y0) = (x + 1, y + 1);
        }
        Ok(())
    }

    /// Lines up the calls that two steps made, then takes in the steps.
    fn step(&mut self, x: Option<usize>, y: Option<usize>, depth: usize) -> Result<(), TooFarApart> {
        let (a, b) = (self.a, self.b);
        if depth < DEPTH_MAX {
            let left = x.map(|x| a.calls_of(x)).unwrap_or_default();
            let right = y.map(|y| b.calls_of(y)).unwrap_or_default();
            if !left.is_empty() || !right.is_empty() {
                self.calls(left, right, depth + 1)?;
            }
        }
        self.found.push((x, y));
        Ok(())
    }
}

/// Calls with their namespaces without ids.
fn named<'s>(keys: impl Iterator<Item = &'s CallKey>) -> Vec<(String, &'s CallKey)> {
    keys.map(|key| (plain_namespace(&key.1), key)).collect()
}

/// A channel that a step wrote.
struct Written {
    before: Option<Value>,
    after: Option<Value>,
    /// The value of the channel around it, for a step that hands on what a subgraph was given.
    given: Option<Option<Value>>,
}

impl Written {
    fn is_changed(&self) -> bool {
        self.before != self.after
    }

    /// The items that a list gained, and the number of those before; `None` for any other change.
    fn gained(&self) -> Option<(usize, Vec<&Value>)> {
        let (before, after) = (self.before.as_ref()?.as_array()?, self.after.as_ref()?.as_array()?);
        let is_longer = after.len() > before.len() && before.iter().zip(after.iter()).all(|(x, y)| x == y);
        is_longer.then(|| (before.len(), after.iter().skip(before.len()).collect()))
    }

    /// Whether it only hands on what a subgraph was given.
    fn is_given(&self) -> bool {
        self.given.as_ref().is_some_and(|given| *given == self.after)
    }
}

/// The channels and events of a step, by place.
type WrittenPlaces = BTreeMap<Pointer, Written>;

/// Reads what a step wrote; `None` if it was erased or withheld.
fn written(
    trace: &Trace,
    index: &ThreadIndex<'_>,
    step: &Step,
    record: &Record,
    asked: Option<&Pointer>,
) -> Result<Option<WrittenPlaces>, Error> {
    let bare = |value: Option<Value>| value.map(|value| thread::bare(&value, asked));
    let mut places: WrittenPlaces = BTreeMap::new();
    for (name, values) in &step.events {
        let after = match values.as_slice() {
            [one] => one.clone(),
            many => Value::array(many.iter().cloned()),
        };
        places.insert(Pointer::of([*name]), Written { before: None, after: bare(Some(after)), given: None });
    }
    if !step.is_ended {
        return Ok(Some(places));
    }
    let ShownWrites::Known(changes) = ShownWrites::of(trace, step.tick, record)? else { return Ok(None) };
    // The values that a subgraph is given are those of the channels around it, and are compared there.
    let is_start = step.place.nodes.iter().all(|node| node.ends_with("/(start)"));
    let caller = step.around.as_ref().filter(|_| is_start && !step.place.nodes.is_empty());
    let caller = caller.and_then(|place| Some((&place.0, index.checkpoints().get(place)?.tick)));
    let around =
        caller.map(|(namespace, tick)| Ok::<_, Error>((namespace, trace.state(tick)?))).transpose()?;
    for change in changes {
        let Some((namespace, channel)) = channel_of(&change.path) else { continue };
        let given = around.as_ref().map(|(outer, state)| place_of(outer, &channel).get(state).cloned());
        let plain = plain_namespace(&namespace);
        let place = match plain.as_str() {
            "" => Pointer::of(["values", &*tag::stored_name(&channel)]),
            _ => Pointer::of(["subgraphs", &*tag::stored_name(&plain), &*tag::stored_name(&channel)]),
        };
        let written =
            Written { before: bare(change.before), after: bare(change.after), given: given.map(bare) };
        places.insert(meaning::in_state(&place), written);
    }
    Ok(Some(places))
}

/// Returns a difference of two steps; its kind is set by the caller.
fn change(path: Pointer, a: Option<Value>, b: Option<Value>) -> DiffChange {
    DiffChange { path, kind: DiffKind::Semantic, sides: DiffSides::Values(a, b) }
}

/// A place below another one.
fn below(place: &Pointer, path: &Pointer) -> Pointer {
    let text = format!("{}{}", place.as_str(), path.as_str());
    text.parse().expect("a pointer after a pointer is one")
}

/// Lists where two steps wrote differently: values first, items of lists after them. Adds the places that redacted parts
/// leave open.
fn compare(a: &WrittenPlaces, b: &WrittenPlaces, open: &mut Vec<Pointer>) -> Vec<DiffChange> {
    let places: BTreeSet<&Pointer> = a.keys().chain(b.keys()).collect();
    let (mut values, mut items) = (Vec::new(), Vec::new());
    for place in places {
        match (a.get(place), b.get(place)) {
            (Some(x), Some(y)) if x.is_given() && y.is_given() => {}
            (Some(x), Some(y)) => match (x.gained(), y.gained()) {
                (Some(x), Some(y)) => items.extend(compare_items(place, x, y, open)),
                _ => values.extend(compare_values(place, x.after.as_ref(), y.after.as_ref(), open)),
            },
            (Some(x), None) => values.extend(alone(place, x, true)),
            (None, Some(y)) => values.extend(alone(place, y, false)),
            (None, None) => {}
        }
    }
    values.extend(items);
    values
}

fn compare_values(
    place: &Pointer,
    x: Option<&Value>,
    y: Option<&Value>,
    open: &mut Vec<Pointer>,
) -> Vec<DiffChange> {
    let (Some(x), Some(y)) = (x, y) else {
        return (x != y).then(|| change(place.clone(), x.cloned(), y.cloned())).into_iter().collect();
    };
    let one = |found: Difference| change(below(place, &found.path), found.left, found.right);
    let compared = marker::compare(x, y);
    open.extend(compared.open.iter().map(|path| below(place, path)));
    compared.differences.into_iter().map(one).collect()
}

/// Lists where the items differ that two lists gained.
fn compare_items(
    place: &Pointer,
    (from_a, x): (usize, Vec<&Value>),
    (from_b, y): (usize, Vec<&Value>),
    open: &mut Vec<Pointer>,
) -> Vec<DiffChange> {
    let item = |at: usize| {
        let from = if at < x.len() { from_a } else { from_b };
        let path = below(place, &Pointer::of([(from + at).to_string().as_str()]));
        compare_values(&path, x.get(at).copied(), y.get(at).copied(), open)
    };
    (0..x.len().max(y.len())).flat_map(item).collect()
}

/// Lists what one side alone wrote at a place: the items that a list gained, or the value; nothing if it was the same before.
fn alone(place: &Pointer, written: &Written, in_a: bool) -> Vec<DiffChange> {
    let one = |place: Pointer, value: Option<Value>| match in_a {
        true => change(place, value, None),
        false => change(place, None, value),
    };
    match written.gained() {
        _ if !written.is_changed() => Vec::new(),
        Some((from, items)) => {
            let place = |at: usize| below(place, &Pointer::of([(from + at).to_string().as_str()]));
            items.into_iter().enumerate().map(|(at, item)| one(place(at), Some(item.clone()))).collect()
        }
        None => vec![one(place.clone(), written.after.clone())],
    }
}

/// Lists what a step without a counterpart wrote.
fn all_alone(written: &WrittenPlaces, in_a: bool) -> Vec<DiffChange> {
    written.iter().flat_map(|(place, one)| alone(place, one, in_a)).collect()
}
