//! A run as a reader sees it: transitions by tick, whoever's records they are, and the state after each.
//!
//! A fork's early ticks are its parent's records; a trace follows them there. Reading is from the records themselves: a state
//! is the one that the record of its tick binds: either each record on the way is sealed, or the last one, whose root tells the
//! same.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, RangeInclusive};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dendrer_kernel::commitment::{CONTRACT, Commitments, INITIAL};
use dendrer_kernel::counters::Counters;
use dendrer_kernel::replay::{self, ReplayError};
use dendrer_kernel::step::DENIED;
use dendrer_kernel::step::{FIRST_VERSION, RunState};
use dendrer_object::delta::Delta;
use dendrer_object::record::{Header, Kind, Record};
use dendrer_object::text::nearest;
use dendrer_object::{Digest, Pointer, RunName, Value, json};
use dendrer_store::{RunSummary, Skimmed, Slot, Store, StoreError};

use crate::error::{AddressError, Error};
use crate::run::lost::Lost;
use crate::run::snapshot::{Fit, UNTAGGED, read_snapshot, weight};
use crate::run::thread::is_removal;

pub use crate::handle::ReadHandle;
pub use crate::run::moment::Moment;

/// How many records are taken from the store at a time.
const BATCH: usize = 256;

/// How many records of others a run may have between two of its own before each of its own is read by itself.
const SPARSE: u64 = 4;

/// How many states one trace remembers, so that neighbouring questions need not fold twice.
const STATES_KEPT: usize = 64;

/// A tick, and what is kept of the run there.
type Snapshot = (u64, Vec<u8>);

/// Called with a moment and the transition that led to it; `None` for tick 0.
type EachMoment<'f, E> = dyn FnMut(&Moment, Option<&Record>) -> Result<ControlFlow<()>, E> + 'f;

/// The member of a transition with its changes.
const DELTA: &str = "/delta";

/// A run in a store, as it was when the trace was opened. Clones share the states they have read.
#[derive(Debug, Clone)]
pub struct Trace {
    store: Arc<dyn Store>,
    summary: RunSummary,
    /// The runs that own the ticks, oldest first, each with the last tick it contributes.
    lineage: Vec<(RunName, u64)>,
    /// The records with which those runs begin, in the same order.
    begins: Vec<Record>,
    /// Size of the log when the trace was opened, read before the run was: what follows later is no part of this trace.
    size: u64,
    kept: Arc<Mutex<Kept>>,
    use_snapshots: bool,
    /// Whether a record that is read at a tick is shown to be in the log by its path in the tree.
    by_path: bool,
    /// The records that the bundle lacks that it is read from.
    lost: Option<Lost>,
}

/// Moments and states that were read, so that a neighbouring question need not fold again.
#[derive(Debug, Default)]
struct Kept {
    moments: BTreeMap<u64, Moment>,
    /// States that were read without the rest of their moments.
    states: BTreeMap<u64, Value>,
}

impl Trace {
    /// Opens a run.
    pub fn open(store: &impl ReadHandle, run: &RunName) -> Result<Trace, Error> {
        Trace::open_in(store.to_handle(), run)
    }

    fn open_in(handle: Arc<dyn Store>, run: &RunName) -> Result<Trace, Error> {
        let store = &*handle;
        let size = store.tree().size;
        let Some(summary) = store.run(run)? else { return Err(no_run(store, run)) };
        let (mut lineage, mut begins) = (Vec::new(), Vec::new());
        let mut owner = summary.clone();
        let mut end = summary.head.tick;
        loop {
            let begin = read(store, owner.begin)?;
            let missing = |parent: Digest| Error::MissingPrefix { run: run.clone(), parent };
            let is_begin =
                begin.header().kind == Kind::Run && begin.header().run.as_ref() == Some(&owner.name);
            let prev = begin.header().prev;
            begins.push(begin);
            let astray = || {
                let what = format!("{} is to begin at {}, and does not", owner.name, owner.begin);
                Error::IndexDiffers { what }
            };
            if !is_begin {
                return Err(astray());
            }
            let Some(parent) = prev else {
                let end = end.ok_or_else(astray)?;
                lineage.push((owner.name.clone(), end));
                lineage.reverse();
                begins.reverse();
                let (store, kept) = (handle, Arc::default());
                return Ok(Trace {
                    store,
                    summary,
                    lineage,
                    begins,
                    size,
                    kept,
                    use_snapshots: true,
                    by_path: false,
                    lost: None,
                });
            };
            let Some(position) = store.find(&parent)? else {
                return Err(if_in_log(store, &parent)?.unwrap_or_else(|| missing(parent)));
            };
            let at = read(store, position)?;
            if at.id() != parent {
                let what = format!("record {parent} is to stand at {position}, and {} does", at.id());
                return Err(Error::IndexDiffers { what });
            }
            let (Some(parent_run), Some(tick)) = (at.header().run.clone(), at.header().tick) else {
                return Err(missing(parent));
            };
            lineage.push((owner.name.clone(), end.unwrap_or(tick)));
            let unknown = || {
                let what = format!("record {parent} at {position} is of {parent_run}, which is not there");
                Error::IndexDiffers { what }
            };
            owner = store.run(&parent_run)?.ok_or_else(unknown)?;
            end = Some(tick);
        }
    }

    /// Remembers what the bundle lacks that the run is read from, so that answers say it.
    #[must_use]
    pub fn with_lost(self, lost: Option<Lost>) -> Trace {
        Trace { lost, ..self }
    }

    /// Returns what the bundle lacks that the run is read from.
    pub fn lost(&self) -> Option<Lost> {
        self.lost
    }

    /// Reads on without snapshots and without verdicts that were kept: from the records alone.
    #[must_use]
    pub fn without_snapshots(self) -> Trace {
        Trace { use_snapshots: false, kept: Arc::default(), ..self }
    }

    /// Shows each record that is read by its tick to be in the log, by its path in the tree, if the store knows what it
    /// does not have ([`dendrer_store::ReadLog::covers_log`]). A single record can then be trusted without the ones around it.
    pub(crate) fn by_path(self) -> Result<Trace, Error> {
        if !self.store.covers_log() {
            return Ok(self);
        }
        let shown = Trace { by_path: true, kept: Arc::default(), ..self };
        for begin in &shown.begins {
            let position = shown.store.find(&begin.id())?;
            let found = position.map(|position| shown.store.proven(position)).transpose()?.flatten();
            if found.is_none_or(|record| record.id() != begin.id()) {
                let what =
                    format!("record {} begins a run of {}, and is not found", begin.id(), shown.name());
                return Err(Error::IndexDiffers { what });
            }
        }
        Ok(shown)
    }

    /// Whether the states of single ticks up to this one are read on from snapshots, so that a few of them cost less than
    /// all records.
    pub(crate) fn is_cheaper_by_ticks(&self, tick: u64) -> bool {
        self.newest_snapshot(tick).is_some()
    }

    /// Whether states are read on from snapshots.
    pub fn uses_snapshots(&self) -> bool {
        self.use_snapshots
    }

    /// Checks the end of the run for a reader: the record at the tip is shown to be in the log by its path, and there is no
    /// later one. The absence of a later one is taken from an index that covers the log; without one the entries after the tip are
    /// read ([`Trace::confirm_end`]).
    pub fn confirm_tip(&self) -> Result<(), Error> {
        let head = &self.summary.head;
        let Some(tick) = head.tick.filter(|tick| *tick > 0 && self.store.covers_log()) else {
            return self.confirm_end();
        };
        let is_own = self.summary.first_own_tick.is_some_and(|first| first <= tick);
        let tip = match is_own {
            true => self.store.proven_at(self.name(), tick)?,
            false => self.store.proven(self.summary.head_position)?,
        };
        match tip {
            Some(tip) if tip.id() == head.id => {}
            _ => {
                let what = format!("{} is to end with {} at tick {tick}, and does not", self.name(), head.id);
                return Err(Error::IndexDiffers { what });
            }
        }
        match self.store.at(self.name(), tick + 1)? {
            // A record that another process committed after this trace was opened is no part of it.
            Some(position) if position < self.size => Err(self.goes_on(Some(tick + 1))),
            _ => Ok(()),
        }
    }

    /// Checks the end of the run for a writer: reads the entries after the tip. An index that hides a later record would
    /// lead to a second history.
    pub fn confirm_end(&self) -> Result<(), Error> {
        let (name, mut later) = (self.name(), None);
        self.store.entries(self.summary.head_position + 1..self.size, &mut |_, entry| {
            let on_chain = matches!(entry.kind, Kind::Transition | Kind::Run);
            if on_chain && entry.run.as_ref() == Some(name) {
                later = Some(entry.tick);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        later.map_or(Ok(()), |tick| Err(self.goes_on(tick)))
    }

    /// Makes the error of a run that has a record after its tip; `None` is another beginning.
    fn goes_on(&self, tick: Option<u64>) -> Error {
        let tick = tick.map_or_else(|| "another beginning".to_owned(), |tick| format!("tick {tick}"));
        let what = format!("{} is to end at tick {}, and {tick} of it follows", self.name(), self.tip());
        Error::IndexDiffers { what }
    }

    /// The run's name.
    pub fn name(&self) -> &RunName {
        &self.summary.name
    }

    /// The store's summary of the run.
    pub fn summary(&self) -> &RunSummary {
        &self.summary
    }

    /// The runs that own the ticks, oldest first, each with the last tick it contributes.
    pub fn lineage(&self) -> &[(RunName, u64)] {
        &self.lineage
    }

    /// The size of the log when the trace was opened.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// The store it was read from.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The last tick; 0 for a run without transitions.
    pub fn tip(&self) -> u64 {
        self.lineage.last().map_or(0, |(_, end)| *end)
    }

    /// The record with which the lineage begins: goal, stage, reducer and initial state.
    pub fn start(&self) -> &Record {
        &self.begins[0]
    }

    /// The records with which the runs of the lineage begin, in its order: the first run, then forks.
    pub fn begins(&self) -> &[Record] {
        &self.begins
    }

    /// The number of the run of the lineage that owns a tick.
    pub(crate) fn segment(&self, tick: u64) -> usize {
        self.lineage.iter().position(|(_, end)| tick <= *end).unwrap_or(self.lineage.len() - 1)
    }

    /// Returns the transition at a tick; for tick 0 the record with which the run begins.
    pub fn record(&self, tick: u64) -> Result<Record, Error> {
        if tick == 0 {
            return Ok(self.start().clone());
        }
        let owner = self.owner(tick)?;
        if self.by_path {
            return self.store.proven_at(owner, tick)?.ok_or_else(|| self.damaged(tick));
        }
        match self.store.at(owner, tick)? {
            Some(position) => self.read_at(owner, tick, position),
            None => Err(self.damaged(tick)),
        }
    }

    /// Reads the transition that an index says stands at a position, and looks whether it is the one.
    fn read_at(&self, owner: &RunName, tick: u64, position: u64) -> Result<Record, Error> {
        let record = read(&*self.store, position)?;
        is_own(record.header(), owner, tick, position)?;
        Ok(record)
    }

    fn owner(&self, tick: u64) -> Result<&RunName, Error> {
        let owner = self.lineage.iter().find(|(_, end)| tick <= *end).map(|(run, _)| run);
        owner.ok_or_else(|| Error::NoTick { run: self.name().clone(), tick, tip: self.tip() })
    }

    fn damaged(&self, tick: u64) -> Error {
        Error::DamagedRecord { run: self.name().clone(), tick, why: "its record did not open".to_owned() }
    }

    /// Hands over the transitions of a range of ticks in order, until `f` breaks.
    pub fn for_each(
        &self,
        from: u64,
        to: u64,
        f: &mut dyn FnMut(u64, Record) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let mut next = from.max(1);
        while next <= to.min(self.tip()) {
            let owner = self.owner(next)?;
            let end = self.lineage.iter().find(|(run, _)| run == owner).map_or(0, |(_, end)| *end).min(to);
            let batch = self.store.positions(owner, next..=end, BATCH)?;
            // Transitions before a missing tick are handed over all the same.
            let whole = batch.iter().zip(next..).take_while(|((tick, _), wanted)| tick == wanted).count();
            let batch = &batch[..whole];
            if batch.is_empty() {
                return Err(self.damaged(next));
            }
            // Records that are next to each other in the log are sealed together, which is much faster than one by one.
            let beside = batch.iter().zip(batch[0].1..).take_while(|((_, here), at)| here == at).count();
            let flow = match beside {
                1 => f(next, self.read_at(owner, next, batch[0].1)?),
                _ => self.scan_own(owner, &batch[..beside], f)?,
            };
            if flow.is_break() {
                return Ok(());
            }
            next += beside as u64;
        }
        Ok(())
    }

    /// Hands over transitions that an index says stand side by side.
    fn scan_own(
        &self,
        owner: &RunName,
        ticks: &[(u64, u64)],
        f: &mut dyn FnMut(u64, Record) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, Error> {
        let mut waiting = ticks.iter();
        let (mut failed, mut broken) = (None, false);
        let range = ticks[0].1..ticks[0].1 + ticks.len() as u64;
        self.store.scan(range, &mut |position, record| {
            let Some((tick, at)) = waiting.next() else { return ControlFlow::Break(()) };
            debug_assert_eq!(position, *at, "a scan goes in order");
            if let Err(error) = is_own(record.header(), owner, *tick, position) {
                failed = Some(error);
                return ControlFlow::Break(());
            }
            broken = f(*tick, record).is_break();
            if broken { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        match (failed, waiting.next()) {
            (Some(error), _) => Err(error),
            (None, _) if broken => Ok(ControlFlow::Break(())),
            (None, Some((tick, _))) => Err(self.damaged(*tick)),
            (None, None) => Ok(ControlFlow::Continue(())),
        }
    }

    /// Returns the run before its first transition.
    pub fn genesis(&self) -> Result<Moment, Error> {
        let body = self.start().body();
        let place = Pointer::of(["state"]);
        let closed =
            body.fields().iter().find(|field| place.contains(&field.pointer) && body.text(field).is_none());
        if let Some(field) = closed {
            return Err(ReplayError::Erased { tick: 0, pointer: Some(field.pointer.clone()) }.into());
        }
        let content = self.start().content();
        let state = content.get("state").cloned().unwrap_or_else(Value::object);
        let header = self.start().header();
        Ok(Moment {
            tick: 0,
            id: self.start().id(),
            ts: header.ts,
            state,
            counters: Counters::at_start(content.get(DENIED)).by_rules(self.rules_version(0)),
            commitments: self.commitments_at_start(&content),
            agents: BTreeMap::new(),
        })
    }

    /// The commitments with which the run begins, and the versions of the kernel's rules by which its forks go.
    fn commitments_at_start(&self, content: &Value) -> Commitments {
        let with = (content.get("pack"), self.start().header().ts);
        let (initial, contract) = (content.get(INITIAL), content.get(CONTRACT));
        let mut made = Commitments::at_start_with(self.rules_version(0), initial, contract, with);
        made.go_by_later(self.rules_after(0));
        made
    }

    /// The version of the kernel's rules by which a tick was recorded.
    pub fn rules_version(&self, tick: u64) -> u64 {
        version_of(&self.begins[self.segment(tick)])
    }

    /// The ticks after a tick from which on other forks' versions of the rules apply.
    fn rules_after(&self, tick: u64) -> Vec<(u64, u64)> {
        let firsts = self.lineage.iter().map(|(_, last)| last + 1);
        let forks = firsts.zip(self.begins.iter().skip(1));
        forks.filter(|(from, _)| *from > tick).map(|(from, begin)| (from, version_of(begin))).collect()
    }

    /// Returns the run right after a tick, by the recorded deltas. Needs no reducer and no pack.
    ///
    /// The state is the one that the record of the tick binds. Counters and agents are bound by none: they rest on a snapshot
    /// only where the key of the store signed it and is [at hand](Store::key), and on the records behind it, each of them
    /// sealed; else on all records from the beginning. A caller that needs neither asks for [the state](Trace::state) alone.
    pub fn at(&self, tick: u64) -> Result<Moment, Error> {
        Ok(self.fold(tick)?.0)
    }

    /// Returns the state right after a tick, by the recorded deltas: the one that the record of the tick binds, whoever kept the
    /// snapshot that leads there.
    pub fn state(&self, tick: u64) -> Result<Value, Error> {
        self.check_tick(tick)?;
        let known = self.known_state(tick);
        let snapshot =
            self.newest_snapshot(tick).filter(|(at, _)| known.as_ref().is_none_or(|known| known.0 < *at));
        if let Some(state) = snapshot.as_ref().and_then(|(at, bytes)| self.skimmed(tick, *at, bytes)) {
            self.keep_state(tick, &state);
            return Ok(state);
        }
        // Reading the records says what is wrong, if anything is.
        let own = snapshot.and_then(|(at, bytes)| Some((at, self.skimmed(at, at, &bytes)?)));
        let (at, mut state) = match own.or(known) {
            Some(known) => known,
            None => (0, self.genesis()?.state),
        };
        self.each_record(at + 1, tick, &mut |record| {
            state = replay::recorded_state(&state, &record)?;
            Ok(())
        })?;
        self.keep_state(tick, &state);
        Ok(state)
    }

    /// As [`Trace::at`] where counters are needed; else only the state of what is returned is known.
    pub(crate) fn folded(&self, tick: u64, counted: bool) -> Result<Moment, Error> {
        match counted {
            true => self.at(tick),
            false => {
                let (begin, state) = (self.start(), self.state(tick)?);
                let (counters, agents) = (Counters::default(), BTreeMap::new());
                let commitments = Commitments::none(self.rules_version(tick));
                let (id, ts) = (begin.id(), begin.header().ts);
                Ok(Moment { tick, id, ts, state, counters, commitments, agents })
            }
        }
    }

    /// Folds the state alone from a snapshot to a tick, and seals the record of that tick alone: one root binds all of the
    /// state, whatever led there. `None` where anything is not as it should be. A state that uses nothing derived keeps doing
    /// so: without a snapshot, each record is sealed.
    fn skimmed(&self, tick: u64, at: u64, bytes: &[u8]) -> Option<Value> {
        let mut state = read_snapshot(bytes)?.1.get("state")?.clone();
        let record = self.record(tick).ok()?;
        if at == tick {
            return (Some(state.digest()) == replay::state_root(&record)).then_some(state);
        }
        self.skim(at + 1..=tick - 1, &mut |skimmed| {
            let (_, delta) = skimmed.fields.iter().find(|(place, _)| *place == DELTA)?;
            let delta = Delta::from_value(&json::parse_canonical(delta).ok()?).ok()?;
            delta.apply_to(&mut state).ok()
        })?;
        replay::recorded_state(&state, &record).ok()
    }

    /// Hands over the deltas of transitions in order, as [`Trace::skim_fields`] does.
    fn skim(&self, ticks: RangeInclusive<u64>, f: &mut dyn FnMut(Skimmed<'_>) -> Option<()>) -> Option<()> {
        self.skim_fields(ticks, &|field| field == DELTA, f)
    }

    /// Hands over the wanted fields of transitions in order, compared with no digest; `None` if one cannot be read so, or is not
    /// the one that an index names. The transitions before that one were handed over.
    pub(crate) fn skim_fields(
        &self,
        ticks: RangeInclusive<u64>,
        wanted: &dyn Fn(&str) -> bool,
        f: &mut dyn FnMut(Skimmed<'_>) -> Option<()>,
    ) -> Option<()> {
        let wanted = |_: &Header, field: &str| wanted(field);
        let mut next = *ticks.start();
        while next <= *ticks.end() {
            let segment = self.segment(next);
            let (owner, end) = &self.lineage[segment];
            let batch = self.store.positions(owner, next..=*ticks.end().min(end), BATCH).ok()?;
            let (first, last) = (batch.first()?.1, batch.last()?.1);
            // Records of others in between are cheaper to skip than to step around, as long as they are few.
            let is_dense = last - first < SPARSE * batch.len() as u64;
            let ranges = if is_dense { vec![&batch[..]] } else { batch.chunks(1).collect() };
            for group in ranges {
                let mut waiting = group.iter().peekable();
                let mut is_fine = true;
                let range = group.first()?.1..group.last()?.1 + 1;
                let is_read = self.store.skim(range, &wanted, &mut |position, skimmed| {
                    if let Some((tick, _)) = waiting.next_if(|(_, at)| *at == position) {
                        is_fine = *tick == next
                            && is_own(skimmed.header, owner, next, position).is_ok()
                            && f(skimmed).is_some();
                        next += 1;
                    }
                    if is_fine { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                });
                if !is_fine || !is_read.ok()? || waiting.next().is_some() {
                    return None;
                }
            }
        }
        Some(())
    }

    /// Returns where a writer or a replay goes on right after a tick, by the recorded deltas.
    pub fn head(&self, tick: u64) -> Result<RunState, Error> {
        Ok(self.fold_head(tick)?.0)
    }

    /// As [`Trace::head`], with the weight of those of the records read that no snapshot holds.
    pub(crate) fn fold_head(&self, tick: u64) -> Result<(RunState, usize), Error> {
        let (moment, unheld) = self.fold(tick)?;
        let begins: Vec<&Record> = self.begins[..=self.segment(tick)].iter().collect();
        let Moment { tick, id, ts, state, counters, commitments, agents } = moment;
        let derived = (counters, commitments);
        Ok((RunState::at_moment(&begins, tick, id, ts, state, derived, agents)?, unheld))
    }

    /// As [`Trace::at`], with the weight of those of the records read that no snapshot holds, whoever kept it.
    fn fold(&self, tick: u64) -> Result<(Moment, usize), Error> {
        self.check_tick(tick)?;
        let known = self.kept().moments.range(..=tick).next_back().map(|(_, moment)| moment.clone());
        let signed = self.newest_signed(tick, known.as_ref().map(|known| known.tick))?;
        let mut moment = match signed.or(known) {
            Some(moment) => moment,
            None => self.genesis()?,
        };
        let held = self.newest_snapshot(tick).map_or(0, |(at, _)| at);
        let mut unheld = 0;
        self.each_record(moment.tick + 1, tick, &mut |record| {
            moment.advance(&record)?;
            unheld += if moment.tick > held { weight(&record) } else { 0 };
            Ok(())
        })?;
        self.remember(&moment);
        Ok((moment, unheld))
    }

    /// As [`Trace::for_each`]. An error of `f` ends it as well.
    pub(crate) fn try_each<E: From<Error>>(
        &self,
        from: u64,
        to: u64,
        f: &mut dyn FnMut(u64, Record) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let mut result = Ok(());
        self.for_each(from, to, &mut |tick, record| {
            f(tick, record).unwrap_or_else(|error| {
                result = Err(error);
                ControlFlow::Break(())
            })
        })?;
        result
    }

    /// As [`Trace::try_each`], for all of the range.
    pub(crate) fn each_record(
        &self,
        from: u64,
        to: u64,
        f: &mut dyn FnMut(Record) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.try_each(from, to, &mut |_, record| f(record).map(ControlFlow::Continue))
    }

    /// Hands over the moments of a range of ticks in order, tick `from` first, until `f` breaks.
    pub fn moments<E: From<Error>>(&self, from: u64, to: u64, f: &mut EachMoment<'_, E>) -> Result<(), E> {
        let mut moment = self.at(from)?;
        let first = if from == 0 { None } else { Some(self.record(from)?) };
        if f(&moment, first.as_ref())?.is_break() {
            return Ok(());
        }
        self.try_each(from + 1, to, &mut |_, record| {
            moment.advance(&record)?;
            f(&moment, Some(&record))
        })
    }

    /// Fails for a range of ticks that is reversed or ends behind the run.
    pub(crate) fn check_range(&self, from: u64, to: u64) -> Result<(), Error> {
        self.check_tick(to)?;
        if from <= to { Ok(()) } else { Err(Error::Reversed { from, to }) }
    }

    fn check_tick(&self, tick: u64) -> Result<(), Error> {
        match tick > self.tip() {
            true => Err(Error::NoTick { run: self.name().clone(), tick, tip: self.tip() }),
            false => Ok(()),
        }
    }

    /// The newest state at or before a tick that this trace remembers.
    fn known_state(&self, tick: u64) -> Option<(u64, Value)> {
        let kept = self.kept();
        let moment = kept.moments.range(..=tick).next_back().map(|(at, moment)| (*at, &moment.state));
        let state = kept.states.range(..=tick).next_back().map(|(at, state)| (*at, state));
        let newest = moment.into_iter().chain(state).max_by_key(|(at, _)| *at);
        newest.map(|(at, state)| (at, state.clone()))
    }

    /// The runs that own the ticks up to one, newest first, each with the last of those. Of a fork that has no snapshot of its
    /// own yet, those of its parent will do.
    fn owners_up_to(&self, tick: u64) -> impl Iterator<Item = (&RunName, u64)> {
        let owners = self.lineage[..=self.segment(tick)].iter().rev().filter(|_| self.use_snapshots);
        owners.map(move |(owner, end)| (owner, tick.min(*end)))
    }

    /// The newest snapshot at or before a tick. A snapshot is derived: one that cannot be read is as good as none.
    fn newest_snapshot(&self, tick: u64) -> Option<Snapshot> {
        self.owners_up_to(tick)
            .find_map(|(owner, end)| self.store.kept(Slot::Snapshot(owner, end)).ok().flatten())
    }

    /// The newest moment at or before a tick, and behind what is known, that the key of the store signed.
    fn newest_signed(&self, tick: u64, known: Option<u64>) -> Result<Option<Moment>, Error> {
        if self.store.key().is_none() {
            return Ok(None);
        }
        for (owner, end) in self.owners_up_to(tick) {
            let mut end = Some(end);
            while let Some((at, bytes)) =
                end.and_then(|end| self.store.kept(Slot::Snapshot(owner, end)).ok().flatten())
            {
                if known.is_some_and(|known| at <= known) {
                    return Ok(None);
                }
                // A row that a writer without the key left does not hide the row that was signed before.
                if let Some(moment) = self.signed(at, &bytes)? {
                    return Ok(Some(moment));
                }
                end = at.checked_sub(1);
            }
        }
        Ok(None)
    }

    /// Reads a snapshot of a tick if the key of the store signed what no record binds of it, and the rest is on record.
    fn signed(&self, tick: u64, bytes: &[u8]) -> Result<Option<Moment>, Error> {
        let Some((key, (tag, value))) = self.store.key().zip(read_snapshot(bytes)) else {
            return Ok(None);
        };
        if *tag == UNTAGGED {
            return Ok(None);
        }
        let record = self.record(tick)?;
        let (version, later) = (self.rules_version(tick), self.rules_after(tick));
        let mut moment = Moment::from_snapshot(version, &value, tick, record.id(), record.header().ts);
        if let Some(moment) = &mut moment {
            moment.commitments.go_by_later(later);
            moment.commitments.know(self.start().body().value("/pack").as_ref());
            moment.counters = std::mem::take(&mut moment.counters).by_rules(self.rules_version(0));
        }
        Ok(moment.filter(|moment| {
            moment.is_tagged(key, tag) && Some(moment.state.digest()) == replay::state_root(&record)
        }))
    }

    /// The tick of the newest snapshot before a tick from which a writer may go on; 0 without one.
    pub(crate) fn snapshot_before(&self, tick: u64) -> Result<u64, Error> {
        let Some(before) = tick.checked_sub(1) else { return Ok(0) };
        Ok(self.newest_signed(before, None)?.map_or(0, |moment| moment.tick))
    }

    /// Tells what a snapshot of a tick is good for.
    pub(crate) fn judge_snapshot(&self, tick: u64, bytes: &[u8]) -> Result<Fit, Error> {
        let root = replay::state_root(&self.record(tick)?);
        let Some((tag, value)) = read_snapshot(bytes) else { return Ok(Fit::Nothing) };
        if value.get("state").is_none_or(|state| Some(state.digest()) != root) {
            return Ok(Fit::Nothing);
        }
        let is_told = *tag != UNTAGGED && self.store.key().is_some();
        Ok(if is_told && self.signed(tick, bytes)?.is_none() { Fit::StateAlone } else { Fit::Whole })
    }

    /// Takes over the moments that another trace of the same run read, so that they need not be folded again.
    pub(crate) fn learn_from(&self, other: Trace) {
        assert_eq!(self.name(), other.name(), "states of one run say nothing of another");
        let other = std::mem::take(&mut *other.kept());
        other.moments.values().for_each(|moment| self.remember(moment));
        other.states.iter().for_each(|(tick, state)| self.keep_state(*tick, state));
    }

    // A panic of another thread cannot leave half an entry.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a moment of this run, so that it need not be folded again.
    pub(crate) fn remember(&self, moment: &Moment) {
        keep(&mut self.kept().moments, moment.tick, moment);
    }

    /// Keeps a state of this run, so that it need not be folded again.
    pub(crate) fn keep_state(&self, tick: u64, state: &Value) {
        keep(&mut self.kept().states, tick, state);
    }

    /// Returns the refusals beside the chain, by the id of the record they were judged against, in order of commit.
    pub fn refusals(&self) -> Result<BTreeMap<Digest, Vec<Record>>, Error> {
        let mut found: BTreeMap<Digest, Vec<Record>> = BTreeMap::new();
        for record in self.beside()? {
            if let (Kind::Refusal, Some(head)) = (record.header().kind, record.header().head) {
                found.entry(head).or_default().push(record);
            }
        }
        Ok(found)
    }

    /// Fails for a run of a thread whose checkpoints were deleted: a line that follows was decided before that.
    ///
    /// # Errors
    ///
    /// [`Error::Removed`].
    pub fn refuse_removed(&self) -> Result<(), Error> {
        match is_removal(&self.record(self.tip())?) {
            true => Err(Error::Removed { run: self.name().clone() }),
            false => Ok(()),
        }
    }

    /// Lists the refusals of the run with their numbers: from 1, in order of commit, as `RUN@refused:N` names them.
    pub fn numbered_refusals(&self) -> Result<Vec<(u64, Record)>, Error> {
        let mut refusals = self.beside()?;
        refusals.retain(|record| record.header().kind == Kind::Refusal);
        Ok((1..).zip(refusals).collect())
    }

    /// Returns the refusal with a number.
    ///
    /// # Errors
    ///
    /// [`AddressError::NoRefusal`] if the run has fewer, or the number is 0.
    pub fn refusal(&self, number: u64) -> Result<Record, Error> {
        let refusals = self.numbered_refusals()?;
        let of = refusals.len() as u64;
        let found = refusals.into_iter().find(|(each, _)| *each == number).map(|(_, record)| record);
        found.ok_or_else(|| AddressError::NoRefusal { run: self.name().clone(), number, of }.into())
    }

    /// Lists the refusals and other records beside the chain, in order of commit.
    pub fn beside(&self) -> Result<Vec<Record>, Error> {
        let mut found = Vec::new();
        let mut from = 0;
        loop {
            let batch = self.store.beside(self.name(), from, BATCH)?;
            let Some((last, _)) = batch.last() else { return Ok(found) };
            from = last + 1;
            for (position, _) in batch {
                found.push(read(&*self.store, position)?);
            }
        }
    }
}

/// Keeps something of a tick, and not too much.
fn keep<T: Clone>(kept: &mut BTreeMap<u64, T>, tick: u64, value: &T) {
    kept.entry(tick).or_insert_with(|| value.clone());
    if kept.len() > STATES_KEPT {
        kept.pop_first();
    }
}

/// Says of a record that was not found where it stands in the log, if it does: then what it is found by is wrong.
fn if_in_log(store: &dyn Store, id: &Digest) -> Result<Option<Error>, Error> {
    let mut found = None;
    store.entries(0..store.tree().size, &mut |position, entry| {
        found = (entry.hash == *id).then_some(position);
        if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(found.map(|position| {
        let what = format!("record {id} is to be nowhere, and stands at {position}");
        Error::IndexDiffers { what }
    }))
}

/// Looks whether a record is the transition that an index says it is.
fn is_own(header: &Header, owner: &RunName, tick: u64, position: u64) -> Result<(), Error> {
    if (header.kind, header.run.as_ref(), header.tick) == (Kind::Transition, Some(owner), Some(tick)) {
        return Ok(());
    }
    let found = match (&header.run, header.tick) {
        (Some(run), Some(tick)) => format!("tick {tick} of {run}"),
        _ => format!("a {} record", header.kind),
    };
    let what = format!("tick {tick} of {owner} is to stand at {position}, and {found} does");
    Err(Error::IndexDiffers { what })
}

/// The version of the kernel's rules that a `run` record names.
pub(crate) fn version_of(begin: &Record) -> u64 {
    begin.body().value("/kernel").and_then(|version| version.as_u64()).unwrap_or(FIRST_VERSION)
}

/// Reads the record at a position that the store itself named.
pub(crate) fn read(store: &dyn Store, position: u64) -> Result<Record, Error> {
    Ok(store.get(position)?.ok_or(StoreError::NoPosition(position))?)
}

/// Reads the list of runs, whole.
pub fn all_runs(store: &dyn Store) -> Result<Vec<RunSummary>, Error> {
    let mut runs = Vec::new();
    let mut from = 0;
    loop {
        let batch = store.runs(from, 1024)?;
        let Some(last) = batch.last() else { return Ok(runs) };
        from = last.begin + 1;
        runs.extend(batch);
    }
}

/// Returns the error that there is no such run, and which one may have been meant.
pub(crate) fn no_run(store: &dyn Store, run: &RunName) -> Error {
    let runs = match store.runs(0, 10_000) {
        Ok(runs) => runs,
        // If the list of runs cannot be read, return that error, not "no such run".
        Err(error) => return error.into(),
    };
    let names = || runs.iter().map(|run| run.name.as_str());
    // A tick after another mark than `@`: the run is there.
    let of_tick = run.as_str().rsplit_once(['/', ':', '#', '.']).map(|(name, _)| name);
    let near = of_tick.filter(|name| names().any(|known| known == *name));
    let near = near.or_else(|| nearest(run.as_str(), names()));
    Error::NoRun { run: run.to_string(), near: near.and_then(|near| near.parse().ok()) }
}
