//! Cuts of the causal graph of a run that a store keeps, so that a state of an agent reads the transitions since alone.
//!
//! A cut lies beside the sums of tiles, and goes with them when something is erased. It is a statement under the key of the store
//! on a run, the rules of its merges, the kernel's version and the id of the record at its end, which binds the history. Nothing
//! that `verify` says rests on one.
//!
//! Rule: bytes that are no statement of this program on this history are as good as none; test
//! `a_cut_that_was_touched_is_not_believed`.

use std::collections::HashMap;

use dendrer_kernel::causal::{CausalCut, CutBytes, MergeRules};
use dendrer_kernel::step::KERNEL_VERSION;
use dendrer_object::{Digest, RunName, Value, json};
use dendrer_store::{Slot, TilePlace};

use crate::error::Error;
use crate::run::pack;
use crate::run::trace::Trace;

/// How many nodes at its end a cut has, for transitions that merge one of them.
pub(super) const RECENT: u64 = 512;

/// How many transitions a question reads before it keeps a cut.
const READ_MAX: u64 = 512;

/// How many transitions lie between the cuts of a run that is read from its beginning.
const APART: u64 = 2_048;

/// The level of cuts among tiles, and that of the list of their ticks.
const CUTS: u8 = 254;
const LIST: u8 = 255;

const SIGNATURE: usize = 64;
const ID: usize = 32;

/// The rules of merges of the pack in which a tick was recorded, and the digest of them.
pub(super) fn rules(trace: &Trace, tick: u64) -> Result<(MergeRules, Digest), Error> {
    let pack = pack::of_segment(trace, trace.segment(tick))?;
    let merge = pack.as_ref().and_then(|pack| pack.value().get("merge").cloned());
    Ok((MergeRules::of(merge.as_ref()), Digest::of(&json::to_vec(&merge.unwrap_or(Value::Null)))))
}

/// A cut that was found, with the ticks of the records that a later one may have as parents.
pub(super) struct FoundCut {
    pub(super) cut: CausalCut,
    pub(super) ticks: HashMap<Digest, u64>,
    /// How many nodes and writes it has.
    pub(super) entries: u64,
}

/// The newest cut at or before a tick.
pub(super) fn find(trace: &Trace, upto: u64) -> Result<Option<FoundCut>, Error> {
    if trace.store().key().is_none() || !trace.uses_snapshots() {
        return Ok(None);
    }
    let (rules, digest) = rules(trace, upto)?;
    let segments = trace.lineage()[..=trace.segment(upto)].iter().rev();
    let newest = segments.filter_map(|(owner, end)| {
        let ticks = listed(trace, owner);
        let at = ticks.partition_point(|tick| *tick <= upto.min(*end)).checked_sub(1)?;
        Some((owner, ticks[at]))
    });
    let Some((owner, tick)) = newest.into_iter().next() else { return Ok(None) };
    let initial = trace.state(0)?;
    Ok(read(trace, owner, tick, &digest).and_then(|(ids, entries, bytes)| {
        let cut = CausalCut::read(&initial, rules, &bytes).filter(|cut| cut.tip() == tick)?;
        let recent = cut.recent();
        let is_whole = recent.len() * ID == ids.len();
        let ids = ids.chunks_exact(ID).filter_map(|id| Some(Digest(id.try_into().ok()?)));
        let ticks = ids.zip(recent).chain([(trace.start().id(), 0)]).collect();
        is_whole.then_some(FoundCut { cut, ticks, entries })
    }))
}

/// The ticks of the cuts of a run, in order. A hint: each cut counts by itself.
fn listed(trace: &Trace, owner: &RunName) -> Vec<u64> {
    let place = TilePlace { level: LIST, number: 0 };
    let kept = trace.store().kept(Slot::Tile { run: owner, place, seen: None }).ok().flatten();
    let list = kept.and_then(|(_, bytes)| json::parse_canonical(&bytes).ok());
    let list = list.as_ref().and_then(Value::as_array);
    let mut ticks: Vec<u64> =
        list.into_iter().flat_map(|list| list.iter()).filter_map(Value::as_u64).collect();
    ticks.sort_unstable();
    ticks
}

/// The ids of the newest nodes of a cut, its size and its bytes.
fn read(trace: &Trace, owner: &RunName, tick: u64, rules: &Digest) -> Option<(Vec<u8>, u64, Vec<u8>)> {
    let place = TilePlace { level: CUTS, number: tick };
    let (_, bytes) = trace.store().kept(Slot::Tile { run: owner, place, seen: None }).ok()??;
    let (signature, statement) = bytes.split_at_checked(SIGNATURE)?;
    let id = trace.record(tick).ok()?.id();
    let message = message(trace, owner, (tick, id), rules, statement);
    trace.store().key()?.verifier_key().verifies(&message.0, signature).then_some(())?;
    let (entries, rest) = statement.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (ids, cut) = rest.split_at_checked(usize::try_from(u64::from_be_bytes(*length)).ok()?)?;
    Some((ids.to_vec(), u64::from_be_bytes(*entries), cut.to_vec()))
}

/// The signed bytes. A digest: no signed note can be taken for it.
fn message(
    trace: &Trace,
    owner: &RunName,
    (tick, id): (u64, Digest),
    rules: &Digest,
    statement: &[u8],
) -> Digest {
    let store = trace.store().info().id.0;
    let run = Digest::of(owner.as_str().as_bytes());
    let (version, tick) = (KERNEL_VERSION.to_be_bytes(), tick.to_be_bytes());
    let parts = [b"dendrer/causal/v1\n", &store[..], &run.0, &version, &rules.0, &tick, &id.0, statement];
    Digest::of_parts(&parts)
}

/// Keeps cuts of a run while its transitions are read in order.
pub(super) struct CutKeeper<'t> {
    trace: &'t Trace,
    upto: u64,
    rules: Digest,
    /// How many transitions were read since the last cut, and how many entries that has.
    read: u64,
    entries: u64,
    /// The run that owns the last tick, and the ticks of its cuts. `None` if none are kept.
    listed: Option<(&'t RunName, Vec<u64>)>,
}

impl<'t> CutKeeper<'t> {
    /// Begins behind a cut, or at the beginning of the run.
    pub(super) fn new(trace: &'t Trace, upto: u64, rules: Digest, entries: u64) -> CutKeeper<'t> {
        let keeps = trace.store().key().is_some() && trace.uses_snapshots();
        let owner = &trace.lineage()[trace.segment(upto)].0;
        let listed = keeps.then(|| (owner, listed(trace, owner)));
        CutKeeper { trace, upto, rules, read: 0, entries, listed }
    }

    /// Takes a transition that was read. `cut` makes the cut behind it, with the ids of its newest nodes.
    pub(super) fn take(&mut self, tick: u64, id: Digest, cut: &dyn Fn() -> (CutBytes, Vec<Digest>)) {
        let Some((owner, listed)) = &mut self.listed else { return };
        self.read += 1;
        let apart = match tick == self.upto {
            true => READ_MAX.max(self.entries / 4),
            false => APART.max(self.entries),
        };
        // Ticks of another run of the lineage may have been recorded in another pack.
        if self.read < apart || self.trace.segment(tick) != self.trace.segment(self.upto) {
            return;
        }
        self.read = 0;
        let near = listed.partition_point(|kept| *kept <= tick).checked_sub(1).map(|at| listed[at]);
        if near.is_some_and(|near| near + apart > tick) {
            return;
        }
        let (CutBytes { bytes, entries }, ids) = cut();
        self.entries = entries;
        let ids: Vec<u8> = ids.iter().flat_map(|id| id.0).collect();
        let lengths = [entries.to_be_bytes(), (ids.len() as u64).to_be_bytes()].concat();
        let statement = [&lengths[..], &ids, &bytes].concat();
        let message = message(self.trace, owner, (tick, id), &self.rules, &statement);
        let Some(key) = self.trace.store().key() else { return };
        let kept = [&key.sign(&message.0)[..], &statement].concat();
        listed.push(tick);
        listed.sort_unstable();
        let list = json::to_vec(&Value::array(listed.iter().map(|tick| Value::from(*tick))));
        // A cut that could not be kept costs only time.
        for (level, number, bytes) in [(CUTS, tick, &kept), (LIST, 0, &list)] {
            let place = TilePlace { level, number };
            let _ = self
                .trace
                .store()
                .keep(Slot::Tile { run: owner, place, seen: Some(self.trace.size()) }, bytes);
        }
    }
}
