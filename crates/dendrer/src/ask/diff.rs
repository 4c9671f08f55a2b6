//! Diff: how two runs differ, transition by transition and by meaning (dendrer paper 4.2).
//!
//! What both share is found by the ids of their records and skipped: an id binds everything before it, so halving finds the
//! last record that is the same in both. Behind it each transition of one run is lined up with one of the other, and the
//! two are compared without what only places, times or measures them: no tick, time, salt, id, link, metric or order of
//! members makes a difference. Markers (`run.fork`, `run.cherrypick`) are in one run alone and are passed over, but one that
//! changes the state is a difference of its own.
//!
//! Rule: what was erased or withheld is neither equal nor different. It is named, and a count of differences comes with
//! what could not be compared.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_kernel::expr::is_same_moment;
use dendrer_kernel::names::UNKNOWN;
use dendrer_kernel::replay::{self, ReplayError};
use dendrer_kernel::unknown::{self, Since};
use dendrer_object::delta::Op;
use dendrer_object::intent::line;
use dendrer_object::record::{Author, Record};
use dendrer_object::{Digest, Pointer, TypeName, Value, marker, tag};

use crate::error::Error;
use crate::run::declared;
use crate::run::pack;
use crate::run::snapshot::weight;
use crate::run::trace::Trace;
use crate::run::unfinished::Unfinished;

pub use crate::limits::CONTENT_MAX;
use align::{STEPS_MAX, TooFarApart, lcs};
use meaning::Rules;
pub use steps::{ComparedThreads, PairedSteps, ThreadFork};

mod align;
mod edges;
mod meaning;
pub mod place;
pub mod question;
mod steps;
mod thread;

/// The place of the state among the places of a transition: `/state/x` is what it wrote at `/x`, or what stands there in
/// the end. All other places are members of the transition itself, like `/action/params`.
pub const STATE: &str = "/state";

/// Whether a member of a transition is compared, besides what it wrote.
pub(crate) fn is_compared(name: &str) -> bool {
    ["agent_id", "author", "delta"].contains(&name) || line::kept_without_metrics().any(|kept| kept == name)
}

/// How many records are read ahead, as long as they are small.
const AHEAD: u64 = 256;

/// How much of them is read ahead, as long as it is more than one.
const AHEAD_SIZE: usize = 4 << 20;

/// How many transitions behind the first structural difference are looked at for a shift.
const SHIFT_LOOK: usize = 8;

/// How far they may be shifted.
const SHIFT_MAX: usize = 4;

dendrer_object::words! {
    /// What kind a difference is (dendrer paper 4.2).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum DiffKind {
        /// Another type of transition at the same place, or none.
        Structural = "structural",
        /// The same type, and another intent, action, result, policy, agent or change of state.
        Semantic = "semantic",
        /// Another confidence.
        Confidence = "confidence",
        /// Another state in the end.
        Outcome = "outcome",
    }
}

dendrer_object::words! {
    /// Alignment of the transitions of two runs.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub enum DiffAlign {
        /// The first after the shared ones with the first, and so on, markers passed over.
        #[default]
        Tick = "tick",
        /// By the longest sequence of transitions that mean the same, and between those by type.
        Content = "content",
        /// Two threads of checkpoints by the steps of their graphs.
        Step = "step",
        /// Two runs of graphs by the paths of their edges.
        Edge = "edge",
    }
}

/// A comparison with every name resolved.
#[derive(Debug, Clone)]
pub struct DiffTerms {
    /// The last ticks of both runs that count.
    pub ends: (u64, u64),
    /// The first tick of the left run that is compared; from where they begin to differ in time if `None`: 1, or 0 if
    /// they begin differently.
    pub from: Option<u64>,
    /// The last one, where the question is about a part; what the right run has behind it is then left alone.
    pub to: Option<u64>,
    /// How transitions are lined up.
    pub align: DiffAlign,
    /// Which kinds count.
    pub kinds: Vec<DiffKind>,
    /// Places that are left out.
    pub ignore: Vec<Pointer>,
    /// The place in which a difference must lie.
    pub path: Option<Pointer>,
}

impl DiffTerms {
    /// Whether the question leaves something out, so the first difference need not be where the runs diverged.
    pub fn is_part(&self, report: &DiffReport) -> bool {
        let next = report.shared.map_or(0, |shared| shared + 1);
        self.from.is_some_and(|from| from > next)
            || self.kinds.len() < DiffKind::ALL.len()
            || !self.ignore.is_empty()
            || self.path.is_some()
    }

    /// Asks for every difference of two runs.
    pub fn new(a: &Trace, b: &Trace) -> DiffTerms {
        DiffTerms {
            ends: (a.tip(), b.tip()),
            from: None,
            to: None,
            align: DiffAlign::Tick,
            kinds: DiffKind::ALL.to_vec(),
            ignore: Vec::new(),
            path: None,
        }
    }

    /// Checks that the runs have each place that is named: a place that they do not have would match nothing.
    pub fn check(&self, a: &Trace, b: &Trace) -> Result<(), Error> {
        let mut places = self.ignore.iter().chain(&self.path);
        places.try_for_each(|place| {
            let traces = [a, b];
            if let Some(state) = place.as_str().strip_prefix(STATE) {
                return state.parse().map_or(Ok(()), |state| declared::place(&traces, &state));
            }
            let mut names = place.tokens();
            let is_whole = names.next().is_none_or(|first| is_compared(&first)) && names.next().is_none();
            if is_whole { Ok(()) } else { declared::member(&traces, place) }
        })
    }

    fn asks(&self, kind: DiffKind) -> bool {
        self.kinds.contains(&kind)
    }

    fn lies_in_path(&self, place: &Pointer) -> bool {
        self.path.as_ref().is_none_or(|path| path.overlaps(place))
    }
}

/// Both sides of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffSides {
    /// What stands there; `None` where nothing does, or nothing was written.
    Values(Option<Value>, Option<Value>),
    /// What was done there, where it is more than setting a value.
    Writes(Vec<Op>, Vec<Op>),
}

/// One place at which two transitions, or two states, differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffChange {
    /// The place; see [`STATE`].
    pub path: Pointer,
    /// What kind of difference it is.
    pub kind: DiffKind,
    /// Both sides.
    pub sides: DiffSides,
}

impl DiffChange {
    /// Tells whether both sides are texts of one moment.
    pub fn is_same_moment(&self) -> bool {
        match &self.sides {
            DiffSides::Values(Some(Value::String(a)), Some(Value::String(b))) => is_same_moment(a, b),
            _ => false,
        }
    }
}

/// A place that cannot be compared, because it was erased, withheld or redacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffHidden {
    /// The place.
    pub path: Pointer,
    /// Whether it is closed on the left.
    pub in_a: bool,
    /// Whether it is closed on the right.
    pub in_b: bool,
    /// Whether it is there, and redacted without tags that can be compared.
    pub redacted: bool,
}

impl DiffHidden {
    /// A place that is redacted on both sides, without tags that can be compared.
    fn redacted(path: Pointer) -> DiffHidden {
        DiffHidden { path, in_a: true, in_b: true, redacted: true }
    }
}

/// Two transitions that were lined up, or one without a counterpart.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The one on the left.
    pub a: Option<Record>,
    /// The one on the right.
    pub b: Option<Record>,
    /// How they differ, each kind once. Empty where all that can be said is that something cannot be compared.
    pub kinds: Vec<DiffKind>,
    /// Where they differ; nothing for another type, which says enough, unless a path was asked for.
    pub changes: Vec<DiffChange>,
    /// What could not be compared.
    pub hidden: Vec<DiffHidden>,
    /// The steps, if two threads are compared by them.
    pub steps: Option<PairedSteps>,
}

impl Pair {
    /// A pair of which nothing was compared yet.
    fn of(a: Option<Record>, b: Option<Record>) -> Pair {
        Pair { a, b, kinds: Vec::new(), changes: Vec::new(), hidden: Vec::new(), steps: None }
    }
}

/// A transition that says where a run branched off or was brought something, and is passed over.
#[derive(Debug, Clone)]
pub struct Marker {
    /// Its tick.
    pub tick: u64,
    /// The whole of it.
    pub record: Record,
    /// Whether it changes the state, so it is a difference of its own.
    pub changes_state: bool,
}

/// How both runs stand in the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffOutcome {
    /// The ticks after which the states were compared.
    pub ticks: (u64, u64),
    /// What came out.
    pub states: States,
}

/// Two states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum States {
    /// They are the same.
    Equal,
    /// They differ here.
    Differ(Vec<DiffChange>),
    /// One of them is not known, since this was erased or withheld.
    Unknown {
        /// Whether it is the right one.
        in_b: bool,
        /// The tick.
        tick: u64,
        /// The value, where it is one.
        pointer: Option<Pointer>,
        /// Whether it is there, and redacted without a tag that can be compared.
        redacted: bool,
    },
}

/// How many pairs of one type there are, by how they differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiffTally {
    /// All of them.
    pub pairs: u64,
    /// Without a difference, and compared in full.
    pub equal: u64,
    /// Of another type, or without a counterpart.
    pub structural: u64,
    /// As [`DiffKind::Semantic`].
    pub semantic: u64,
    /// As [`DiffKind::Confidence`].
    pub confidence: u64,
}

/// Steps that one run has and the other has not, so that what follows is shifted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shift {
    /// The ticks of the pair at which it begins.
    pub ticks: (u64, u64),
    /// How many.
    pub steps: u64,
    /// Whether the right run has them.
    pub in_b: bool,
}

/// Everything that was found, but for the pairs themselves.
#[derive(Debug, Clone)]
pub struct DiffReport {
    /// The last tick whose record is the same in both; `None` if they begin with different ones.
    pub shared: Option<u64>,
    /// The first and last ticks of the left run that were compared, and of the right one.
    pub a: Option<(u64, u64)>,
    /// As `a`.
    pub b: Option<(u64, u64)>,
    /// The markers after the shared ticks. Those that change the state are among the pairs as well.
    pub markers: (Vec<Marker>, Vec<Marker>),
    /// How many pairs there are, shared ones included.
    pub pairs: u64,
    /// How many of them differ: in a kind that was asked for, the state after the last one included.
    pub differ: u64,
    /// How many of the others cannot be called equal, because something could not be compared.
    pub unclear: u64,
    /// How many transitions have no counterpart, on either side.
    pub alone: (u64, u64),
    /// How many pairs differ by kind, in the order of [`DiffKind::ALL`]; an outcome is one.
    pub counts: [u64; 4],
    /// How many values could not be compared, the outcome included.
    pub hidden: u64,
    /// The constants of the packs in force at both ends that differ, by name; none if a part of the runs was asked for.
    pub constants: Vec<ConstantDifference>,
    /// The first pair that differs.
    pub first: Option<Pair>,
    /// The states in the end; `None` if the question left them out.
    pub outcome: Option<DiffOutcome>,
    /// The pairs behind the shared ticks by type; both types where they differ.
    pub types: BTreeMap<String, DiffTally>,
    /// What the first structural difference looks like.
    pub shift: Option<Shift>,
    /// The places that were to be left out, and whether anything that was compared stood there.
    pub ignored: Vec<(Pointer, bool)>,
    /// The places that are left out of any comparison because they only name a run or a message, say when it was, or what it cost.
    pub left_out: Vec<Pointer>,
    /// The unknown places of the left and of the right state, if a run made some behind the shared ticks. Whether they are the same is
    /// not known.
    pub unknown: [Vec<(Pointer, Since)>; 2],
    /// The threads, if they were compared by their steps: then a pair is two steps, and shared ones are not counted.
    pub threads: Option<ComparedThreads>,
    /// The parts of the left and of the right run that are missing, and may differ.
    pub missing: [Option<Unfinished>; 2],
}

/// A constant that two packs have with different values.
#[derive(Debug, Clone, PartialEq)]
pub struct ConstantDifference {
    /// The name.
    pub name: Arc<str>,
    /// The value in the left run; `None` if its pack has no such constant.
    pub a: Option<Value>,
    /// As `a`, in the right run.
    pub b: Option<Value>,
}

impl DiffReport {
    /// Whether there is any difference of a kind that was asked for, or another constant decided in one of the runs.
    pub fn differs(&self) -> bool {
        self.counts.iter().any(|count| *count > 0) || !self.constants.is_empty()
    }

    /// Whether a part of a run is missing, and may differ.
    pub fn is_partial(&self) -> bool {
        self.missing.iter().any(Option::is_some)
    }

    /// Whether a compared state has unknown places.
    pub fn has_unknown(&self) -> bool {
        self.unknown.iter().any(|marks| !marks.is_empty())
    }

    /// Whether a place of a difference, below `/state`, is unknown in one of the states. Which places are unknown is known.
    pub fn is_at_unknown(&self, place: &Pointer) -> bool {
        let is_of_marks = place.tokens().nth(1).is_some_and(|name| name == UNKNOWN);
        let mut marks = self.unknown.iter().flatten();
        !is_of_marks && marks.any(|(mark, _)| meaning::in_state(mark).overlaps(place))
    }

    /// How many pairs differ in a kind.
    pub fn count(&self, kind: DiffKind) -> u64 {
        self.counts[kind as usize]
    }
}

/// Compares two runs. `f` is given every pair that differs or cannot be compared in full, in order; where it breaks, the
/// report is of what was found so far, and has no outcome.
pub fn diff(
    a: &Trace,
    b: &Trace,
    question: &DiffTerms,
    f: &mut dyn FnMut(&Pair) -> ControlFlow<()>,
) -> Result<DiffReport, Error> {
    for (trace, end) in [(a, question.ends.0), (b, question.ends.1)] {
        match end.cmp(&trace.tip()) {
            Ordering::Less => {}
            Ordering::Equal => trace.confirm_tip()?,
            Ordering::Greater => {
                return Err(Error::NoTick { run: trace.name().clone(), tick: end, tip: trace.tip() });
            }
        }
    }
    let packs = [pack::of_run(a)?, pack::of_run(b)?];
    // A value that rules write from the time of a record differs in each recording.
    let timed = packs.iter().flatten().flat_map(|pack| pack.timed_fields());
    let timed = timed.map(|field| Pointer::of(["state", &*tag::stored_name(&field)]));
    let mut ignore = question.ignore.clone();
    // An import enforces nothing, so its stage is not that of a recording.
    let is_import = |trace: &Trace| {
        trace.start().body().value("/inputs").is_some_and(|inputs| inputs.get("source").is_some())
    };
    let stage = (is_import(a) != is_import(b)).then(|| Pointer::of(["stage"]));
    for place in timed.chain(stage) {
        if !ignore.iter().any(|known| known.contains(&place)) {
            ignore.push(place);
        }
    }
    let rules = Rules::new(packs.iter().flatten(), &ignore, question.path.as_ref());
    let shared = shared(a, b, question.ends.0.min(question.ends.1))?;
    let mut walk = Walk {
        a,
        b,
        question,
        rules,
        f,
        report: DiffReport::new(shared),
        last: None,
        shifting: None,
        is_touched: false,
    };
    walk.report.missing = [a.missing_to(question.ends.0)?, b.missing_to(question.ends.1)?];
    let flow = walk.beginning()?;
    let flow = match (flow, question.align) {
        (ControlFlow::Break(()), _) => flow,
        (_, DiffAlign::Tick) => walk.by_tick()?,
        (_, DiffAlign::Content) => walk.by_content()?,
        (_, DiffAlign::Step) => walk.by_step()?,
        (_, DiffAlign::Edge) => walk.by_edge()?,
    };
    if flow.is_continue() {
        walk.find_shift();
        walk.end()?;
    }
    // A question about one place is not about the constants that decided.
    if question.path.is_none() {
        walk.report.constants = constants(a, b, question.ends)?;
    }
    walk.report.ignored = walk.rules.ignored();
    walk.report.left_out = walk.rules.left_out();
    Ok(walk.report)
}

/// Compares the constants of the packs in force at two ticks. A run without a pack has no other one.
fn constants(a: &Trace, b: &Trace, ends: (u64, u64)) -> Result<Vec<ConstantDifference>, Error> {
    let of_end = |trace: &Trace, end| pack::of_segment(trace, trace.segment(end));
    let (Some(a), Some(b)) = (of_end(a, ends.0)?, of_end(b, ends.1)?) else { return Ok(Vec::new()) };
    let of = |pack: &dendrer_kernel::pack::Pack| -> BTreeMap<Arc<str>, Value> {
        let members = pack.value().get("constants").and_then(Value::as_object);
        let members = members.into_iter().flat_map(|members| members.iter());
        members.map(|(name, value)| (Arc::clone(name), value.clone())).collect()
    };
    let (a, b) = (of(&a), of(&b));
    let names: BTreeSet<&Arc<str>> = a.keys().chain(b.keys()).collect();
    let differs = |name: &&Arc<str>| a.get(*name) != b.get(*name);
    let named = names.into_iter().filter(differs).map(|name| ConstantDifference {
        name: Arc::clone(name),
        a: a.get(name).cloned(),
        b: b.get(name).cloned(),
    });
    Ok(named.collect())
}

/// Finds the last tick up to `last` whose record is the same in both runs. An id binds all before it, so each record that
/// is looked at decides about half of what is left.
fn shared(a: &Trace, b: &Trace, last: u64) -> Result<Option<u64>, Error> {
    let same = |tick: u64| Ok::<_, Error>(a.record(tick)?.id() == b.record(tick)?.id());
    if a.start().id() != b.start().id() {
        return Ok(None);
    }
    if same(last)? {
        return Ok(Some(last));
    }
    let (mut low, mut high) = (0, last);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if same(middle)? { low = middle } else { high = middle }
    }
    Ok(Some(low))
}

/// Returns whether a transition is a marker of the kernel.
pub fn is_marker(record: &Record) -> bool {
    let header = record.header();
    let name = header.type_name.as_ref().map(|name| name.as_str());
    header.author == Author::Kernel && matches!(name, Some("run.fork" | "run.cherrypick"))
}

/// Whether the state after a marker differs from the state before it. If a root cannot be read, the marker counts as a change.
fn changes_state(trace: &Trace, marker: &Record) -> Result<bool, Error> {
    let delta = Pointer::of(["delta"]);
    if !marker.body().fields().iter().any(|field| delta.contains(&field.pointer)) {
        return Ok(false);
    }
    let before = replay::state_root(&trace.record(tick_of(marker).saturating_sub(1))?);
    Ok(before.is_none() || before != replay::state_root(marker))
}

fn tick_of(record: &Record) -> u64 {
    record.header().tick.unwrap_or(0)
}

fn type_of(record: &Record) -> String {
    let header = record.header();
    header.type_name.as_ref().map_or_else(|| header.kind.to_string(), |name| name.to_string())
}

impl DiffReport {
    fn new(shared: Option<u64>) -> DiffReport {
        DiffReport {
            missing: [None; 2],
            shared,
            a: None,
            b: None,
            markers: (Vec::new(), Vec::new()),
            pairs: 0,
            differ: 0,
            unclear: 0,
            alone: (0, 0),
            counts: [0; 4],
            hidden: 0,
            constants: Vec::new(),
            first: None,
            outcome: None,
            types: BTreeMap::new(),
            shift: None,
            ignored: Vec::new(),
            left_out: Vec::new(),
            unknown: Default::default(),
            threads: None,
        }
    }
}

fn widen(range: &mut Option<(u64, u64)>, tick: u64) {
    *range = Some(range.map_or((tick, tick), |(from, to)| (from.min(tick), to.max(tick))));
}

/// The transitions of one run in order, without markers, some read ahead.
struct Ahead<'t> {
    trace: &'t Trace,
    next: u64,
    end: u64,
    waiting: VecDeque<Record>,
    /// The ticks that are read, for a thread: as its checkpoints follow one another.
    ordered: Option<VecDeque<u64>>,
    /// Whether a transition changed which places are unknown.
    is_touched: bool,
}

impl<'t> Ahead<'t> {
    fn new(trace: &'t Trace, next: u64, end: u64) -> Result<Ahead<'t>, Error> {
        let end = end.min(trace.tip());
        let ordered = if next <= end { thread::order(trace, next, end)? } else { None };
        Ok(Ahead {
            trace,
            next,
            end,
            waiting: VecDeque::new(),
            ordered: ordered.map(VecDeque::from),
            is_touched: false,
        })
    }

    /// Returns the next transition. A marker is returned if it changes the state.
    fn take(&mut self, markers: &mut Vec<Marker>) -> Result<Option<Record>, Error> {
        loop {
            match self.waiting.pop_front() {
                Some(record) if is_marker(&record) => {
                    let changes_state = changes_state(self.trace, &record)?;
                    markers.push(Marker { tick: tick_of(&record), record: record.clone(), changes_state });
                    if changes_state {
                        return Ok(Some(record));
                    }
                }
                Some(record) => return Ok(Some(record)),
                None if self.next > self.end => return Ok(None),
                None => self.read()?,
            }
        }
    }

    fn read(&mut self) -> Result<(), Error> {
        if let Some(ticks) = &mut self.ordered {
            match ticks.pop_front() {
                Some(tick) => {
                    let record = self.trace.record(tick)?;
                    self.is_touched |= unknown::is_touched_by(&record);
                    self.waiting.push_back(record);
                }
                None => self.next = self.end + 1,
            }
            return Ok(());
        }
        let (mut size, last) = (0, self.end.min(self.next + AHEAD - 1));
        let (waiting, next, is_touched) = (&mut self.waiting, &mut self.next, &mut self.is_touched);
        self.trace.for_each(*next, last, &mut |tick, record| {
            *next = tick + 1;
            *is_touched |= unknown::is_touched_by(&record);
            size += weight(&record);
            waiting.push_back(record);
            if size < AHEAD_SIZE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
    }
}

/// A comparison under way.
struct Walk<'q, 't> {
    a: &'t Trace,
    b: &'t Trace,
    question: &'q DiffTerms,
    rules: Rules,
    f: &'q mut dyn FnMut(&Pair) -> ControlFlow<()>,
    report: DiffReport,
    /// The ticks of the last pair, and whether it differs.
    last: Option<(u64, u64, bool)>,
    /// From the first structural difference on, the meanings of both sides.
    shifting: Option<Shifting>,
    /// Whether a transition that was read changed which places are unknown.
    is_touched: bool,
}

struct Shifting {
    ticks: (u64, u64),
    a: Vec<Option<Digest>>,
    b: Vec<Option<Digest>>,
}

impl Walk<'_, '_> {
    fn first_tick(&self) -> u64 {
        let earliest = u64::from(self.report.shared.is_some());
        self.question.from.unwrap_or(earliest).max(earliest)
    }

    fn last_tick(&self) -> u64 {
        self.question.to.unwrap_or(u64::MAX).min(self.question.ends.0)
    }

    /// Counts the pairs that need not be looked at, or compares how the runs begin.
    fn beginning(&mut self) -> Result<ControlFlow<()>, Error> {
        let (from, to) = (self.first_tick(), self.last_tick());
        match self.report.shared {
            Some(shared) if from <= shared.min(to) => {
                let range = (from, shared.min(to));
                (self.report.a, self.report.b) = (Some(range), Some(range));
                self.report.pairs = range.1 - range.0 + 1;
                self.last = Some((range.1, range.1, false));
            }
            None if from == 0 => {
                let (a, b) = (self.a.start().clone(), self.b.start().clone());
                return Ok(self.pair(Some(a), Some(b)));
            }
            _ => {}
        }
        Ok(ControlFlow::Continue(()))
    }

    fn by_tick(&mut self) -> Result<ControlFlow<()>, Error> {
        let behind = self.report.shared.unwrap_or(0) + 1;
        let (from, to) = (self.first_tick(), self.last_tick());
        let mut a = Ahead::new(self.a, behind, to)?;
        let mut b = Ahead::new(self.b, behind, self.question.ends.1)?;
        let mut left = a.take(&mut self.report.markers.0)?;
        let mut right = b.take(&mut self.report.markers.1)?;
        loop {
            self.is_touched |= a.is_touched || b.is_touched;
            if left.is_none() && (right.is_none() || self.question.to.is_some()) {
                return Ok(ControlFlow::Continue(()));
            }
            let is_before = left.as_ref().is_some_and(|left| tick_of(left) < from);
            // A marker of one side has nothing beside it; what follows is lined up as if it were not there.
            let marks = |side: &Option<Record>| side.as_ref().is_some_and(is_marker);
            let (of_a, of_b) = match (marks(&left), marks(&right)) {
                (true, false) => (left.take(), None),
                (false, true) => (None, right.take()),
                _ => (left.take(), right.take()),
            };
            if of_a.is_some() || left.is_none() {
                left = a.take(&mut self.report.markers.0)?;
            }
            if of_b.is_some() || right.is_none() {
                right = b.take(&mut self.report.markers.1)?;
            }
            if !is_before && self.pair(of_a, of_b).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }

    /// Lines both up by content digests, and what stands between two that are equal by type.
    fn by_content(&mut self) -> Result<ControlFlow<()>, Error> {
        let behind = self.report.shared.unwrap_or(0) + 1;
        let ((a_end, b_end), rules) = (self.question.ends, &self.rules);
        let a = Sequence::read(self.a, behind, a_end, &mut self.report.markers.0, rules)?;
        let b = Sequence::read(self.b, behind, b_end, &mut self.report.markers.1, rules)?;
        self.is_touched |= a.is_touched || b.is_touched;
        let (left, right) = (self.a.name().clone(), self.b.name().clone());
        let pairs = line_up(&a, &b).map_err(|TooFarApart| Error::TooFarApart { a: left, b: right })?;
        let (from, to, open) = (self.first_tick(), self.last_tick(), self.question.to.is_none());
        for (at, (x, y)) in pairs.iter().enumerate() {
            // One without a counterpart in the left run stands before the next that the left run has.
            let here = x.map(|x| a.ticks[x]);
            let next = here.or_else(|| pairs[at..].iter().find_map(|(x, _)| x.map(|x| a.ticks[x])));
            let inside = match (here, next) {
                (Some(tick), _) => (from..=to).contains(&tick),
                (None, Some(next)) => from <= next && next <= to,
                (None, None) => open,
            };
            if !inside {
                continue;
            }
            if let (Some(x), Some(y)) = (x, y)
                && a.contents[*x].is_some()
                && a.contents[*x] == b.contents[*y]
            {
                self.same(a.ticks[*x], b.ticks[*y], a.types[*x].as_str());
                continue;
            }
            let left = x.map(|x| self.a.record(a.ticks[x])).transpose()?;
            let right = y.map(|y| self.b.record(b.ticks[y])).transpose()?;
            if self.pair(left, right).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Takes in a pair that is known to be equal.
    fn same(&mut self, a: u64, b: u64, type_name: &str) {
        let report = &mut self.report;
        widen(&mut report.a, a);
        widen(&mut report.b, b);
        report.pairs += 1;
        self.last = Some((a, b, false));
        let tally = report.types.entry(type_name.to_owned()).or_default();
        (tally.pairs, tally.equal) = (tally.pairs + 1, tally.equal + 1);
    }

    /// Compares two transitions, or takes in one without a counterpart.
    fn pair(&mut self, a: Option<Record>, b: Option<Record>) -> ControlFlow<()> {
        let marks = [&a, &b].into_iter().flatten().all(is_marker);
        let pair = match marks {
            true => self.compare_markers(a, b),
            false => {
                self.look_for_shift(a.as_ref(), b.as_ref());
                self.compare(a, b)
            }
        };
        // A marker whose changes were all left out is passed over like any other.
        if marks && pair.kinds.is_empty() && pair.hidden.is_empty() && (pair.a.is_none() || pair.b.is_none())
        {
            return ControlFlow::Continue(());
        }
        self.take(pair)
    }

    /// Counts a pair, and hands it over if it differs or cannot be compared in full.
    fn take(&mut self, pair: Pair) -> ControlFlow<()> {
        self.count(&pair);
        if pair.kinds.is_empty() && pair.hidden.is_empty() {
            return ControlFlow::Continue(());
        }
        if !pair.kinds.is_empty() && self.report.first.is_none() {
            self.report.first = Some(pair.clone());
        }
        (self.f)(&pair)
    }

    fn compare(&self, a: Option<Record>, b: Option<Record>) -> Pair {
        let question = self.question;
        let mut pair = Pair::of(a, b);
        let (Some(a), Some(b)) = (&pair.a, &pair.b) else {
            pair.kinds.extend(question.asks(DiffKind::Structural).then_some(DiffKind::Structural));
            return pair;
        };
        let other_type = a.header().type_name != b.header().type_name;
        if other_type && (!question.asks(DiffKind::Structural) || question.path.is_none()) {
            pair.kinds.extend(question.asks(DiffKind::Structural).then_some(DiffKind::Structural));
            return pair;
        }
        let found = meaning::compare(a, b, &self.rules);
        let kind_of = |kind| if other_type { DiffKind::Structural } else { kind };
        let in_path = found.changes.into_iter().filter(|change| question.lies_in_path(&change.path));
        pair.changes = in_path.filter(|change| question.asks(kind_of(change.kind))).collect();
        let is_confidence = |hidden: &DiffHidden| hidden.path.as_str() == "/intent/confidence";
        pair.hidden = found.hidden;
        pair.hidden.retain(|hidden| {
            let kind = if is_confidence(hidden) { DiffKind::Confidence } else { DiffKind::Semantic };
            // What a transition wrote is told by its delta, whatever place was asked for.
            let wrote = hidden.path.as_str() == "/delta"
                && question.path.as_ref().is_some_and(|path| path.as_str().starts_with(STATE));
            question.asks(kind_of(kind)) && (wrote || question.lies_in_path(&hidden.path))
        });
        let kinds: Vec<DiffKind> = pair.changes.iter().map(|change| kind_of(change.kind)).collect();
        pair.kinds.extend(DiffKind::ALL.iter().copied().filter(|kind| kinds.contains(kind)));
        pair
    }

    /// Compares what markers did to the state, and nothing else: why a run was forked is no difference.
    fn compare_markers(&self, a: Option<Record>, b: Option<Record>) -> Pair {
        let question = self.question;
        let kind = if a.is_some() && b.is_some() { DiffKind::Semantic } else { DiffKind::Structural };
        let mut pair = Pair::of(a, b);
        if !question.asks(kind) {
            return pair;
        }
        let [writes_a, writes_b] =
            [&pair.a, &pair.b].map(|side| side.as_ref().map(|record| meaning::writes(record, &self.rules)));
        let is_hidden = |side: &Option<Option<Vec<Op>>>| matches!(side, Some(None));
        let (in_a, in_b) = (is_hidden(&writes_a), is_hidden(&writes_b));
        if in_a || in_b {
            pair.hidden.push(DiffHidden { path: Pointer::of(["delta"]), in_a, in_b, redacted: false });
            return pair;
        }
        let [of_a, of_b] = [writes_a, writes_b].map(|writes| writes.flatten().unwrap_or_default());
        let places: BTreeSet<&Pointer> = of_a.iter().chain(&of_b).map(|op| &op.path).collect();
        for place in places {
            let at = |ops: &[Op]| ops.iter().filter(|op| op.path == *place).cloned().collect::<Vec<Op>>();
            let (path, ops) = (meaning::in_state(place), (at(&of_a), at(&of_b)));
            if ops.0 != ops.1 && question.lies_in_path(&path) {
                pair.changes.push(DiffChange { path, kind, sides: DiffSides::Writes(ops.0, ops.1) });
            }
        }
        pair.kinds.extend((!pair.changes.is_empty()).then_some(kind));
        pair
    }

    fn count(&mut self, pair: &Pair) {
        let report = &mut self.report;
        for (range, side) in [(&mut report.a, &pair.a), (&mut report.b, &pair.b)] {
            side.iter().for_each(|record| widen(range, tick_of(record)));
        }
        pair.kinds.iter().for_each(|kind| report.counts[*kind as usize] += 1);
        report.hidden += pair.hidden.len() as u64;
        let differs = !pair.kinds.is_empty();
        let name = match (&pair.a, &pair.b) {
            (Some(a), Some(b)) => {
                report.pairs += 1;
                report.differ += u64::from(differs);
                report.unclear += u64::from(!differs && !pair.hidden.is_empty());
                self.last = Some((tick_of(a), tick_of(b), differs));
                match (type_of(a), type_of(b)) {
                    (a, b) if a == b => a,
                    (a, b) => format!("{a} | {b}"),
                }
            }
            (Some(a), None) => {
                report.alone.0 += 1;
                format!("{} | (none)", type_of(a))
            }
            (None, Some(b)) => {
                report.alone.1 += 1;
                format!("(none) | {}", type_of(b))
            }
            (None, None) => return,
        };
        let tally = report.types.entry(name).or_default();
        tally.pairs += 1;
        tally.equal += u64::from(!differs && pair.hidden.is_empty());
        let has = |kind| u64::from(pair.kinds.contains(&kind));
        tally.structural += has(DiffKind::Structural);
        tally.semantic += has(DiffKind::Semantic);
        tally.confidence += has(DiffKind::Confidence);
    }

    /// Keeps the meanings of some transitions from the first structural difference on.
    fn look_for_shift(&mut self, a: Option<&Record>, b: Option<&Record>) {
        if self.question.align != DiffAlign::Tick {
            return;
        }
        if self.shifting.is_none()
            && let (Some(a), Some(b)) = (a, b)
            && a.header().type_name != b.header().type_name
        {
            let ticks = (tick_of(a), tick_of(b));
            self.shifting = Some(Shifting { ticks, a: Vec::new(), b: Vec::new() });
        }
        let Some(shifting) = &mut self.shifting else { return };
        for (kept, record) in [(&mut shifting.a, a), (&mut shifting.b, b)] {
            if let (true, Some(record)) = (kept.len() < SHIFT_LOOK, record) {
                kept.push(meaning::content_digest(record, &self.rules));
            }
        }
    }

    /// Looks whether one side, some steps on, means what the other does.
    fn find_shift(&mut self) {
        let Some(Shifting { ticks, a, b }) = &self.shifting else { return };
        let fits = |short: &[Option<Digest>], long: &[Option<Digest>], by: usize| {
            let compared = short.iter().zip(long.iter().skip(by)).take(SHIFT_LOOK - SHIFT_MAX);
            let mut count = 0;
            let all = compared.inspect(|_| count += 1).all(|(x, y)| x.is_some() && x == y);
            all && count > 0
        };
        let found = (1..=SHIFT_MAX).find_map(|by| match (fits(a, b, by), fits(b, a, by)) {
            (true, false) => Some((by, true)),
            (false, true) => Some((by, false)),
            _ => None,
        });
        self.report.shift = found.map(|(steps, in_b)| Shift { ticks: *ticks, steps: steps as u64, in_b });
    }

    /// Compares the states in the end.
    fn end(&mut self) -> Result<(), Error> {
        if !self.question.asks(DiffKind::Outcome) {
            return Ok(());
        }
        let (a_end, b_end) = self.question.ends;
        let ticks = match self.question.to {
            None => (a_end, b_end),
            // Where the left run was cut, the right one is looked at where it had come to.
            Some(_) => {
                let to = self.last_tick();
                let b = self.report.b.map(|(_, to)| to);
                (to, b.unwrap_or_else(|| self.report.shared.unwrap_or(0).min(to)))
            }
        };
        let states = self.states(ticks)?;
        if self.is_touched && !matches!(states, States::Unknown { .. }) {
            let marks = |trace: &Trace, tick| -> Result<Vec<_>, Error> {
                let mut marks = unknown::listed(&trace.state(tick)?);
                marks.retain(|(place, _)| {
                    let place = meaning::in_state(place);
                    let is_left_out = self.question.ignore.iter().any(|ignored| ignored.contains(&place));
                    self.question.lies_in_path(&place) && !is_left_out
                });
                Ok(marks)
            };
            self.report.unknown = [marks(self.a, ticks.0)?, marks(self.b, ticks.1)?];
        }
        // Values at an unknown place do not show whether the states differ there.
        let is_certain = |change: &DiffChange| !self.report.is_at_unknown(&change.path);
        if matches!(&states, States::Differ(changes) if changes.iter().any(is_certain)) {
            self.report.counts[DiffKind::Outcome as usize] = 1;
            // The state after the last pair is part of how it came out.
            let of_pair = self.last.filter(|(a, b, differs)| (*a, *b) == ticks && !differs);
            self.report.differ += u64::from(of_pair.is_some());
        }
        // A difference that was found is one, whatever else is unknown.
        let is_unknown = self.report.has_unknown() && !self.report.differs();
        self.report.hidden += u64::from(is_unknown || matches!(states, States::Unknown { .. }));
        self.report.outcome = Some(DiffOutcome { ticks, states });
        Ok(())
    }

    fn states(&self, (a_tick, b_tick): (u64, u64)) -> Result<States, Error> {
        let shared = self.report.shared;
        if a_tick == b_tick && shared.is_some_and(|shared| a_tick <= shared) {
            return Ok(States::Equal);
        }
        let root = |trace: &Trace, tick| Ok::<_, Error>(replay::state_root(&trace.record(tick)?));
        let roots = (root(self.a, a_tick)?, root(self.b, b_tick)?);
        if roots.0.is_some() && roots.0 == roots.1 {
            return Ok(States::Equal);
        }
        if let Some(common) = shared {
            // Folded once, for both, by whichever can read it. Where neither can, the reason is met again below.
            let common = common.min(a_tick).min(b_tick);
            if let Ok(state) = self.a.state(common).or_else(|_| self.b.state(common)) {
                self.a.keep_state(common, &state);
                self.b.keep_state(common, &state);
            }
        }
        let (a, b) = match (known(self.a, a_tick)?, known(self.b, b_tick)?) {
            (Ok(a), Ok(b)) => (a, b),
            (Err((tick, pointer)), _) => {
                return Ok(States::Unknown { in_b: false, tick, pointer, redacted: false });
            }
            (_, Err((tick, pointer))) => {
                return Ok(States::Unknown { in_b: true, tick, pointer, redacted: false });
            }
        };
        let numbers = |markers: &[Marker]| -> Vec<u64> { markers.iter().map(|marker| marker.tick).collect() };
        let (of_a, of_b) = (numbers(&self.report.markers.0), numbers(&self.report.markers.1));
        let number =
            |markers: &[u64], tick: u64| tick - markers.partition_point(|marker| *marker <= tick) as u64;
        let left = self.rules.state(&a, &|tick| number(&of_a, tick));
        let right = self.rules.state(&b, &|tick| number(&of_b, tick));
        let compared = marker::compare(&left, &right);
        let open = compared.open.iter().map(meaning::in_state);
        let open = open.filter(|place| self.question.lies_in_path(place)).min();
        let found = compared.differences.into_iter().filter_map(|found| {
            // Numbers are shown as they stand there, and not as they are rounded or counted to be compared.
            let shown = |compared: Option<Value>, state: &Value| match compared {
                Some(Value::Number(number)) => {
                    Some(found.path.get(state).cloned().unwrap_or(Value::Number(number)))
                }
                other => other,
            };
            let path = meaning::in_state(&found.path);
            let sides = DiffSides::Values(shown(found.left, &a), shown(found.right, &b));
            self.question.lies_in_path(&path).then_some(DiffChange { path, kind: DiffKind::Outcome, sides })
        });
        let found: Vec<DiffChange> = found.collect();
        Ok(match (found.is_empty(), open) {
            (true, None) => States::Equal,
            (true, pointer) => States::Unknown { in_b: false, tick: a_tick, pointer, redacted: true },
            (false, _) => States::Differ(found),
        })
    }
}

/// Why a state is not known: a tick, and the value that is not there any more.
type Gone = (u64, Option<Pointer>);

fn known(trace: &Trace, tick: u64) -> Result<Result<Value, Gone>, Error> {
    match trace.state(tick) {
        Ok(state) => Ok(Ok(state)),
        Err(Error::Replay(ReplayError::Erased { tick, pointer })) => Ok(Err((tick, pointer))),
        Err(error) => Err(error),
    }
}

/// The transitions of one run behind the shared ones.
#[derive(Default)]
struct Sequence {
    ticks: Vec<u64>,
    /// What each means; `None` for what is equal to nothing, since it cannot be read.
    contents: Vec<Option<Digest>>,
    types: Vec<TypeName>,
    /// Whether a transition changed which places are unknown.
    is_touched: bool,
}

impl Sequence {
    fn read(
        trace: &Trace,
        from: u64,
        to: u64,
        markers: &mut Vec<Marker>,
        rules: &Rules,
    ) -> Result<Sequence, Error> {
        let mut sequence = Sequence::default();
        let mut ahead = Ahead::new(trace, from, to)?;
        while let Some(record) = ahead.take(markers)? {
            let Some(type_name) = &record.header().type_name else { continue };
            if sequence.ticks.len() == CONTENT_MAX {
                return Err(Error::TooLongToLineUp { run: trace.name().clone() });
            }
            sequence.ticks.push(tick_of(&record));
            sequence.contents.push(meaning::content_digest(&record, rules));
            sequence.types.push(type_name.clone());
        }
        sequence.is_touched = ahead.is_touched;
        Ok(sequence)
    }
}

/// Gives items numbers that are equal where they are, whichever side they are on. What is equal to nothing gets one that
/// nothing on the other side has.
fn numbers<T: Ord + Clone>(a: &[Option<T>], b: &[Option<T>]) -> (Vec<u32>, Vec<u32>) {
    let mut known: Vec<T> = a.iter().chain(b).flatten().cloned().collect();
    known.sort_unstable();
    known.dedup();
    let number = |item: &Option<T>, other: u32| {
        let found = item.as_ref().and_then(|item| known.binary_search(item).ok());
        found.map_or(other, |found| found as u32)
    };
    let of = |items: &[Option<T>], other| items.iter().map(|item| number(item, other)).collect();
    (of(a, u32::MAX), of(b, u32::MAX - 1))
}

/// Places in two sequences that were lined up; `None` where one has nothing.
type Placed = (Option<usize>, Option<usize>);

/// Lines up two sequences; in order, each item once. Between two pairs that are equal, those of one type are paired.
fn line_up(a: &Sequence, b: &Sequence) -> Result<Vec<Placed>, TooFarApart> {
    let mut steps = STEPS_MAX;
    let (items_a, items_b) = numbers(&a.contents, &b.contents);
    let wrapped = |types: &[TypeName]| types.iter().cloned().map(Some).collect::<Vec<_>>();
    let (types_a, types_b) = numbers(&wrapped(&a.types), &wrapped(&b.types));
    let mut equal = lcs(&items_a, &items_b, &mut steps)?;
    equal.push((a.ticks.len(), b.ticks.len()));
    let (mut found, mut x0, mut y0) = (Vec::with_capacity(a.ticks.len() + b.ticks.len()), 0, 0);
    for (x1, y1) in equal {
        let mut alike = lcs(&types_a[x0..x1], &types_b[y0..y1], &mut steps)?;
        alike.iter_mut().for_each(|(x, y)| (*x, *y) = (x0 + *x, y0 + *y));
        alike.push((x1, y1));
        for (x, y) in alike {
            // What is left between two pairs has no type on both sides, so which comes first does not depend on the side.
            let a_first = y0 == y || (x0 < x && types_a[x0] < types_b[y0]);
            let (of_a, of_b) = ((x0..x).map(|x| (Some(x), None)), (y0..y).map(|y| (None, Some(y))));
            match a_first {
                true => found.extend(of_a.chain(of_b)),
                false => found.extend(of_b.chain(of_a)),
            }
            if x < a.ticks.len() && y < b.ticks.len() {
                found.push((Some(x), Some(y)));
            }
            (x0, y0) = (x + 1, y + 1);
        }
    }
    Ok(found)
}
