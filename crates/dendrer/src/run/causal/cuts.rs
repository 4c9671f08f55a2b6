//! Cuts of the causal graph of a run and blocks of its links that a store keeps, so that a question about agents reads the
//! transitions since alone.
//!
//! Rows among the sums of tiles, removed with these when something is erased. Each is a statement under the key of the store
//! on a run, the rules of its merges, the kernel's version and the id of the record at its end, which binds the history. No
//! verification uses one.
//!
//! Rule: bytes that are no statement of this program on this history are as good as none; test
//! `a_cut_that_was_touched_is_not_believed`.

use std::collections::HashMap;

use dendrer_kernel::causal::{CausalCut, CausalLinks, CutBytes, MergeRules};
use dendrer_kernel::step::KERNEL_VERSION;
use dendrer_object::{Digest, RunName, Value, json};
use dendrer_store::{Slot, TilePlace};

use super::NodeNames;
use crate::error::Error;
use crate::run::pack;
use crate::run::trace::Trace;

/// The number of nodes at the end of a cut, for transitions that merge one of them.
pub(super) const RECENT: u64 = 512;

/// The number of transitions that a question reads before it keeps a cut.
const READ_MAX: u64 = 512;

/// The number of transitions between the cuts of a run that is read from its beginning.
const APART: u64 = 2_048;

/// The ticks of a block of links, as a power of two.
const BLOCK: u32 = 11;

/// The levels among tiles: of blocks of links, of cuts by tick, and of the list of their ticks.
const LINKS: u8 = 253;
const CUTS: u8 = 252;
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
    /// The number of its nodes and writes.
    pub(super) entries: u64,
}

/// The newest cut at or before a tick.
pub(super) fn find(trace: &Trace, upto: u64) -> Result<Option<FoundCut>, Error> {
    if !keeps(trace) {
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
    let statement = believed(trace, &About { owner, level: CUTS, number: tick, tick, rules })?;
    let (entries, rest) = statement.split_first_chunk()?;
    let (ids, cut) = split(rest)?;
    Some((ids.to_vec(), u64::from_be_bytes(*entries), cut.to_vec()))
}

/// The part of a statement that has its length in front, and the rest.
fn split(statement: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = statement.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u64::from_be_bytes(*length)).ok()?)
}

/// Whether statements are kept and believed: only under the key of the store.
fn keeps(trace: &Trace) -> bool {
    trace.store().key().is_some() && trace.uses_snapshots()
}

/// The subject of a statement, and the place where it is kept.
struct About<'a> {
    owner: &'a RunName,
    level: u8,
    number: u64,
    /// The last tick.
    tick: u64,
    rules: &'a Digest,
}

impl About<'_> {
    fn slot(&self, seen: Option<u64>) -> Slot<'_> {
        Slot::Tile { run: self.owner, place: TilePlace { level: self.level, number: self.number }, seen }
    }

    /// The signed bytes. A digest: no signed note can be taken for it.
    fn message(&self, trace: &Trace, id: Digest, version: u64, statement: &[u8]) -> Digest {
        let store = trace.store().info().id.0;
        let run = Digest::of(self.owner.as_str().as_bytes());
        let place =
            [[version, self.number, self.tick].map(u64::to_be_bytes).concat(), vec![self.level]].concat();
        Digest::of_parts(&[b"dendrer/causal/v2\n", &store, &run.0, &place, &self.rules.0, &id.0, statement])
    }
}

/// Returns a kept statement, if the key of the store signed it on this history.
fn believed(trace: &Trace, about: &About<'_>) -> Option<Vec<u8>> {
    let (_, bytes) = trace.store().kept(about.slot(None)).ok()??;
    let (signature, statement) = bytes.split_at_checked(SIGNATURE)?;
    let message = about.message(trace, trace.record(about.tick).ok()?.id(), KERNEL_VERSION, statement);
    let is_signed = trace.store().key()?.verifier_key().verifies(&message.0, signature);
    is_signed.then(|| statement.to_vec())
}

/// Keeps a statement on a history that ends with a record. One that could not be kept costs only time.
fn keep(trace: &Trace, about: &About<'_>, id: Digest, statement: &[u8]) {
    let Some(key) = trace.store().key() else { return };
    let message = about.message(trace, id, KERNEL_VERSION, statement);
    let kept = [&key.sign(&message.0)[..], statement].concat();
    let _ = trace.store().keep(about.slot(Some(trace.size())), &kept);
}

/// The last tick of the block of links that a tick is in.
pub(super) fn end_of_block(tick: u64) -> u64 {
    (tick >> BLOCK << BLOCK) + (1 << BLOCK) - 1
}

/// The subject of a block of links: of the run that owns all of its ticks, if one does.
fn about_block(trace: &Trace, last: u64) -> Option<About<'_>> {
    let segment = trace.segment(last);
    let first = last - ((1 << BLOCK) - 1);
    let is_owned = keeps(trace) && last <= trace.tip() && trace.segment(first.max(1)) == segment;
    let owner = &trace.lineage()[segment].0;
    // Links carry no decision, so no rules.
    is_owned.then_some(About {
        owner,
        level: LINKS,
        number: last >> BLOCK,
        tick: last,
        rules: &Digest([0; ID]),
    })
}

/// Reads a kept block of links up to its last tick, with the ids and the names of its nodes. `None` if none is kept; whether it is
/// one of this program, else: if not, what was read so far is of no use.
pub(super) fn read_links(
    trace: &Trace,
    last: u64,
    order: &mut CausalLinks,
    names: &mut NodeNames,
) -> Option<bool> {
    let statement = believed(trace, &about_block(trace, last)?)?;
    let mut read = || {
        let (ids, rest) = split(&statement)?;
        let (imported, links) = split(rest)?;
        let imported = json::parse_canonical(imported).ok()?;
        order.read(links)?;
        names.ids.extend(ids.chunks_exact(ID).filter_map(|id| Some(Digest(id.try_into().ok()?))));
        for name in imported.as_array()?.iter() {
            let (tick, name) = (name.get("tick")?.as_u64()?, name.get("name")?.as_str()?);
            names.imported.insert(tick, name.into());
        }
        Some(order.tip() == last && names.ids.len() as u64 == last + 1)
    };
    Some(read() == Some(true))
}

/// Keeps the block of links that ends with the newest node.
pub(super) fn keep_links(trace: &Trace, order: &CausalLinks, names: &NodeNames) {
    let last = order.tip();
    let Some(about) = about_block(trace, last) else { return };
    let first = (last >> BLOCK << BLOCK).max(1);
    let ids: Vec<u8> = (first..=last).flat_map(|tick| names.id(tick).0).collect();
    let imported = names
        .imported
        .range(first..)
        .map(|(tick, name)| Value::record([("name", Value::from(&**name)), ("tick", Value::from(*tick))]));
    let imported = json::to_vec(&Value::array(imported));
    let length = |part: &[u8]| (part.len() as u64).to_be_bytes();
    let statement = [&length(&ids)[..], &ids, &length(&imported), &imported, &order.links(first)].concat();
    keep(trace, &about, names.id(last), &statement);
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
    /// Begins after a cut, or at the beginning of the run.
    pub(super) fn new(trace: &'t Trace, upto: u64, rules: Digest, entries: u64) -> CutKeeper<'t> {
        let owner = &trace.lineage()[trace.segment(upto)].0;
        let listed = keeps(trace).then(|| (owner, listed(trace, owner)));
        CutKeeper { trace, upto, rules, read: 0, entries, listed }
    }

    /// Takes a transition that was read. `cut` makes the cut after it, with the ids of its newest nodes.
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
        let about = About { owner, level: CUTS, number: tick, tick, rules: &self.rules };
        keep(self.trace, &about, id, &statement);
        listed.push(tick);
        listed.sort_unstable();
        let list = json::to_vec(&Value::array(listed.iter().map(|tick| Value::from(*tick))));
        let place = TilePlace { level: LIST, number: 0 };
        let slot = Slot::Tile { run: owner, place, seen: Some(self.trace.size()) };
        let _ = self.trace.store().keep(slot, &list);
    }
}

#[cfg(test)]
mod tests {
    use dendrer_kernel::step::{Outcome, Start};
    use dendrer_object::delta::{Delta, Op};
    use dendrer_object::record::{Kind, Link, Rel};
    use dendrer_object::{Intent, Pointer};
    use dendrer_store::prelude::*;
    use dendrer_store::{Memory, Shared};
    use dendrer_testkit::{Dice, key, memory_with_key, run_name};

    use super::*;
    use crate::environment::seal_by_institution;
    use crate::fork::{ForkTerms, fork};
    use crate::recorder::{Fixed, Recorder};
    use crate::run::causal::{AgentState, Causal, CausalOrder, state_in, state_of};
    use crate::watch::Watch;

    const AGENTS: u64 = 5;

    /// Records transitions of five agents, some of which merge what another one did last, or before; with `old`, long before.
    fn go_on(recorder: &mut Recorder, ids: &mut Vec<(u64, Digest)>, count: u64, old: bool, dice: &mut Dice) {
        let end = ids.len() + count as usize;
        while ids.len() < end {
            let agent = dice.below(AGENTS);
            let place = match dice.below(8) {
                0 => Pointer::of(["goal"]),
                1 => Pointer::of(["memory", &format!("k{}", dice.below(4)), "leaf"]),
                _ => Pointer::of(["memory", &format!("k{}", dice.below(9))]),
            };
            let value = match dice.below(3) {
                0 => Value::record([
                    ("leaf", Value::from(dice.below(4))),
                    ("other", Value::from(dice.below(4))),
                ]),
                _ => Value::from(dice.below(50)),
            };
            let delta = Delta(vec![Op::set(place, value)]);
            let name = format!("agent-{agent}");
            let mut intent = Intent::new("plan.update".parse().unwrap(), &name).with_delta(delta);
            if dice.below(9) == 0 && !ids.is_empty() {
                let reach =
                    if old && dice.below(40) == 0 { ids.len() as u64 } else { (ids.len() as u64).min(60) };
                let (_, hash) = ids[ids.len() - 1 - dice.below(reach) as usize];
                intent.links.push(Link { rel: Rel::Merges, hash });
                let strategy = ["lww", "manual", "confidence"][dice.below(3) as usize];
                intent = intent.with(
                    "intent",
                    Value::record([("merge", Value::record([("strategy", Value::from(strategy))]))]),
                );
            }
            if let Outcome::Committed(made) = recorder.propose(&intent).unwrap() {
                ids.push((agent, made.id()));
            }
            if recorder.pending() >= 200 {
                recorder.commit().unwrap();
            }
        }
        recorder.commit().unwrap();
    }

    fn trace(store: &Shared, run: &str) -> Trace {
        Trace::open(store, &run_name(run)).unwrap()
    }

    fn team(count: u64, old: bool) -> (Shared, Recorder, Vec<(u64, Digest)>, Dice) {
        let store = memory_with_key(3);
        let (mut dice, mut ids) = (Dice(count), Vec::new());
        let fixed = Box::new(Fixed::new("r", 0, 1));
        let mut recorder = Recorder::begin(&store, &Start::new(run_name("r")), fixed).unwrap();
        go_on(&mut recorder, &mut ids, count, old, &mut dice);
        (store, recorder, ids, dice)
    }

    fn parts(state: AgentState) -> (u64, Value, Vec<(Pointer, Vec<u8>)>) {
        let unknown = state.unknown.into_iter().map(|(place, since)| (place, since.code.as_bytes().to_vec()));
        (state.tick, state.state, unknown.collect())
    }

    /// Holds states and orders of a run against those without anything kept.
    fn check(store: &Shared, run: &str, dice: &mut Dice) {
        let kept = trace(store, run);
        let bare = kept.clone().without_snapshots();
        for upto in [kept.tip(), 200 + dice.below(kept.tip() - 200)] {
            let slow = Causal::of(&bare, upto).unwrap();
            let own = CausalOrder::of(&kept, upto).unwrap();
            let heads = [0, 1].map(|agent| slow.head(&kept, &format!("agent-{agent}"), upto).unwrap());
            assert_eq!(own.head(&kept, "agent-0", upto).unwrap(), heads[0]);
            assert_eq!(own.links.extension(heads[0], heads[1]), slow.graph.extension(heads[0], heads[1]));
            assert_eq!(
                own.links.lowest_common(heads[0], heads[1]),
                slow.graph.lowest_common(heads[0], heads[1])
            );
            assert!((0..=upto).all(|tick| own.name(tick) == slow.name(tick)));
            let mut slow = CausalCut::from(slow.graph);
            for agent in (0..AGENTS).map(|agent| format!("agent-{agent}")) {
                let own = state_of(&kept, &agent, upto).unwrap();
                let expected = state_in(&mut slow, &bare, &agent, upto).unwrap();
                assert_eq!(parts(own), parts(expected), "{run} {agent} {upto}");
            }
        }
    }

    /// How many records a state of an agent at the end of a run reads.
    fn reads(store: &Shared, run: &str) -> u64 {
        let watch = Watch::new();
        let trace = Trace::open(&watch.over(store), &run_name(run)).unwrap();
        state_of(&trace, "agent-1", trace.tip()).unwrap();
        watch.done()
    }

    #[test]
    fn what_is_kept_gives_what_the_records_give() {
        let (store, mut recorder, mut ids, mut dice) = team(2_300, false);
        let [first, again] = [reads(&store, "r"), reads(&store, "r")];
        assert!(first > 2_250 && again < 700, "{first} {again}");
        check(&store, "r", &mut dice);
        go_on(&mut recorder, &mut ids, 900, false, &mut dice);
        let [first, again] = [reads(&store, "r"), reads(&store, "r")];
        assert!((900..1_700).contains(&first) && again < 700, "{first} {again}");
        check(&store, "r", &mut dice);
        // A fork reads what is kept of its parent, and its marker is of every agent.
        let mut terms = ForkTerms::new(run_name("f"));
        terms.set.push((Pointer::of(["goal"]), Value::from("another")));
        let fixed = Box::new(Fixed::new("f", 0, 1));
        let (mut forked, _) = fork(&trace(&store, "r"), &store, 3_150, &terms, fixed).unwrap();
        go_on(&mut forked, &mut ids[..3_150].to_vec(), 100, false, &mut dice);
        let of_fork = reads(&store, "f");
        assert!(of_fork < 1_700, "{of_fork}");
        check(&store, "f", &mut dice);
        // An erasure empties what is kept, and what is kept afterwards is of the run without the value.
        let mut fixed = Fixed::new("e", 0, 1);
        let erased = seal_by_institution(
            store.info().id,
            Kind::Erase,
            Some(run_name("r")),
            &Value::record([("reason", Value::from("asked to"))]),
            &mut fixed,
        );
        let at = store.find(&ids[3_140].1).unwrap().unwrap();
        store.clone().erase(&erased.unwrap(), &[(at, vec![Pointer::of(["delta"])])]).unwrap();
        let first = reads(&store, "r");
        assert!(first > 3_200, "{first}");
        check(&store, "r", &mut dice);
    }

    #[test]
    fn a_merge_of_an_old_node_is_read_from_the_records() {
        let (store, _, _, mut dice) = team(2_300, true);
        check(&store, "r", &mut dice);
    }

    fn slot(run: &RunName, level: u8, number: u64) -> Slot<'_> {
        Slot::Tile { run, place: TilePlace { level, number }, seen: Some(u64::MAX) }
    }

    #[test]
    fn a_cut_that_was_touched_is_not_believed() {
        let (store, _, _, _) = team(2_100, false);
        let (trace, run) = (trace(&store, "r"), run_name("r"));
        let honest = parts(state_of(&trace, "agent-1", 2_100).unwrap());
        CausalOrder::of(&trace, 2_100).unwrap();
        let tick = *listed(&trace, &run).last().unwrap();
        for (level, number) in [(CUTS, tick), (LINKS, 0)] {
            let (_, bytes) = store.kept(slot(&run, level, number)).unwrap().unwrap();
            for step in 0..8 {
                let at = step * (bytes.len() - 1) / 7;
                let mut forged = bytes.clone();
                forged[at] ^= 1;
                for forged in [forged, bytes[..at].to_vec()] {
                    store.keep(slot(&run, level, number), &forged).unwrap();
                    match level {
                        CUTS => assert!(find(&trace, 2_100).unwrap().is_none(), "byte {at}"),
                        _ => {
                            let (mut order, mut names) =
                                (CausalLinks::default(), NodeNames::beginning(&trace));
                            assert_eq!(read_links(&trace, end_of_block(1), &mut order, &mut names), None);
                        }
                    }
                }
            }
            store.keep(slot(&run, level, number), &bytes).unwrap();
        }
        assert!(find(&trace, 2_100).unwrap().is_some());
        // The list is a hint: with any other one the answer is the same.
        for list in ["[7,99999]", "{"] {
            store.keep(slot(&run, LIST, 0), list.as_bytes()).unwrap();
            assert_eq!(parts(state_of(&trace, "agent-1", 2_100).unwrap()), honest, "{list}");
        }
    }

    #[test]
    fn a_cut_of_another_version_or_history_is_not_believed() {
        let (store, _, _, _) = team(2_100, false);
        let (trace, run) = (trace(&store, "r"), run_name("r"));
        state_of(&trace, "agent-1", 2_100).unwrap();
        let tick = *listed(&trace, &run).last().unwrap();
        let rules = rules(&trace, tick).unwrap().1;
        let about = About { owner: &run, level: CUTS, number: tick, tick, rules: &rules };
        let (_, bytes) = store.kept(about.slot(None)).unwrap().unwrap();
        let statement = &bytes[SIGNATURE..];
        let id = trace.record(tick).unwrap().id();
        let other = Digest([7; 32]);
        let signed = |number: u8, id, version, about: &About<'_>| {
            [&key(number).sign(&about.message(&trace, id, version, statement).0)[..], statement].concat()
        };
        let cases = [
            (signed(3, id, KERNEL_VERSION, &about), true),
            (signed(3, id, KERNEL_VERSION + 1, &about), false),
            (signed(3, other, KERNEL_VERSION, &about), false),
            (signed(4, id, KERNEL_VERSION, &about), false),
            (signed(3, id, KERNEL_VERSION, &About { rules: &other, ..about }), false),
            (signed(3, id, KERNEL_VERSION, &About { owner: &run_name("s"), ..about }), false),
            (signed(3, id, KERNEL_VERSION, &About { number: tick + 1, ..about }), false),
        ];
        for (number, (bytes, is_believed)) in cases.iter().enumerate() {
            store.keep(about.slot(Some(u64::MAX)), bytes).unwrap();
            assert_eq!(find(&trace, 2_100).unwrap().is_some(), *is_believed, "case {number}");
        }
        // Without the key of the store no signature counts.
        let records = (0..).zip(dendrer_testkit::records_of(&store)).collect();
        let copy = Shared::new(Box::new(Memory::of_parts(store.info().clone(), store.tree(), records)));
        for (level, number, bytes) in
            [(CUTS, tick, &cases[0].0), (LIST, 0, &format!("[{tick}]").into_bytes())]
        {
            copy.keep(slot(&run, level, number), bytes).unwrap();
        }
        assert!(find(&Trace::open(&copy, &run).unwrap(), 2_100).unwrap().is_none());
    }
}
