//! Causal graphs beside a slow definition: sets of ancestors, and for each unit the writes that no other write follows.
//!
//! 2,000 random graphs of up to five agents; 100,000 with `DENDRER_DEEP=1`.

#![expect(clippy::print_stdout, reason = "the deep run adds it up")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dendrer_kernel::causal::{
    CausalCut, CausalGraph, CausalNode, MergeRules, SyncConflict, SyncSide, SyncStrategy,
};
use dendrer_kernel::step::LEAVES_VERSION;
use dendrer_object::delta::{Action, Delta, Op};
use dendrer_object::json::parse_door;
use dendrer_object::{Pointer, Value};
use dendrer_testkit::Dice;

const KEYS: [&str; 3] = ["x", "y", "z"];

fn v(text: &str) -> Value {
    parse_door(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn units() -> Vec<Pointer> {
    let keys = KEYS.iter().map(|key| Pointer::of(["memory", key]));
    keys.chain([Pointer::of(["goals"])]).collect()
}

struct Drawn {
    agent: String,
    parents: Vec<u64>,
    ops: Vec<Op>,
    confidence: f64,
    merge: MergeRules,
    version: u64,
}

/// Whether a value is an object that is no kept conflict.
fn is_map(value: &Value) -> bool {
    value.as_object().is_some() && value.get("__conflict").is_none()
}

fn strategy(dice: &mut Dice) -> SyncStrategy {
    let all = [SyncStrategy::Manual, SyncStrategy::Lww, SyncStrategy::Confidence, SyncStrategy::Policy];
    all[dice.below(4) as usize]
}

fn rules(dice: &mut Dice) -> MergeRules {
    let mut rules = MergeRules::default();
    if dice.below(2) == 0 {
        rules.strategy = Some(strategy(dice));
    }
    if dice.below(3) == 0 {
        rules.keys.insert("memory.x".into(), strategy(dice));
    }
    rules
}

fn draw(dice: &mut Dice) -> Vec<Drawn> {
    let agents = 1 + dice.below(5);
    let count = 1 + dice.below(24);
    // A run keeps its version of the rules; a fork of it may have a newer one.
    let newer = if dice.below(2) == 0 { 0 } else { dice.below(count) };
    let mut branches: BTreeMap<String, u64> = BTreeMap::new();
    let mut drawn = Vec::new();
    for tick in 1..=count {
        let agent = format!("agent-{}", dice.below(agents));
        let own = branches.get(&agent).copied();
        let mut parents = BTreeSet::new();
        if tick > 1 && (own.is_none() || dice.below(3) == 0) {
            for _ in 0..=dice.below(4) {
                parents.insert(1 + dice.below(tick - 1));
            }
        }
        let mut ops = Vec::new();
        for _ in 0..dice.below(3) {
            let key = KEYS[dice.below(3) as usize];
            let value = Value::from(dice.below(4));
            let at = Pointer::of(["memory", key]);
            ops.push(match dice.below(9) {
                7 => Op::set(Pointer::of(["memory", key, "flat"]), value),
                8 => {
                    let flat = Value::from(dice.below(4));
                    Op::set(at, Value::record([("deep", value), ("flat", flat)]))
                }
                0..=2 => Op::set(at, value),
                3 => Op { action: Action::Remove, path: at, value: None },
                4 => Op::set(Pointer::of(["memory", key, "deep"]), value),
                5 => Op::append(Pointer::of(["goals"]), value),
                _ => Op::set(Pointer::of(["memory"]), Value::record([(key, value)])),
            });
        }
        branches.insert(agent.clone(), tick);
        let confidence = dice.below(4) as f64 / 4.0;
        drawn.push(Drawn {
            agent,
            parents: parents.into_iter().collect(),
            ops,
            confidence,
            merge: rules(dice),
            version: if tick > newer { 3 } else { 2 },
        });
    }
    drawn
}

type Unknown = BTreeMap<Pointer, BTreeSet<Pointer>>;

/// The slow definition.
struct Model {
    /// The ancestors of each node, itself included.
    seen: Vec<BTreeSet<u64>>,
    writes: Vec<BTreeMap<Pointer, Option<Value>>>,
    /// The places at or below units that are unknown behind a write: they were changed, and what was there did not fit.
    unknown: Vec<Unknown>,
    agents: Vec<Option<String>>,
    confidence: Vec<f64>,
    /// The leaves that a node wrote or decided, each with the writes that its value is from.
    leaves: Vec<Leaves>,
    /// The units that a sync node put together, each with the strategy, whether all was kept, and the nodes whose writes they were.
    met: Vec<BTreeMap<Pointer, (SyncStrategy, bool, BTreeSet<u64>)>>,
}

/// The unit itself, and the two members that are drawn below one.
const LEAVES: [&str; 3] = ["", "deep", "flat"];

type Leaves = BTreeMap<(Pointer, &'static str), Vec<From>>;

/// The tick of a write, and whether it added to what was there.
type From = (u64, bool);

/// A write of a leaf: the node that wrote or decided it, and the write that its value is from.
type Stamps = BTreeSet<(u64, From)>;

/// A side of a place: its value, and its writes there.
type Side = (Option<Value>, Stamps);

/// The outcome at a place: its value, and the place as decided by a node.
struct Placed {
    value: Option<Value>,
    leaves: Leaves,
    /// Whether a decision is listed.
    is_decided: bool,
    /// The values that differ, in the order of ticks.
    kept: Vec<Option<Value>>,
}

/// The question at a sync node.
struct Asked<'a> {
    unit: &'a Pointer,
    newest: &'a [u64],
    is_whole: bool,
    rank: &'a dyn Fn(u64) -> f64,
}

fn all_of(unit: &Pointer, tick: u64) -> Leaves {
    LEAVES.iter().map(|leaf| ((unit.clone(), *leaf), vec![(tick, false)])).collect()
}

impl Model {
    /// The writes of a leaf among ancestors that no other one follows.
    fn stamps(&self, unit: &Pointer, leaf: &'static str, seen: &BTreeSet<u64>) -> Stamps {
        let place = (unit.clone(), leaf);
        let of =
            |by: u64| self.leaves[by as usize].get(&place).into_iter().flatten().map(move |from| (by, *from));
        self.unfollowed(seen.iter().copied().flat_map(of).collect())
    }

    fn unfollowed(&self, stamps: Stamps) -> Stamps {
        let is_followed = |by: u64| {
            stamps.iter().any(|(other, _)| *other != by && self.seen[*other as usize].contains(&by))
        };
        stamps.iter().copied().filter(|(by, _)| !is_followed(*by)).collect()
    }

    /// The sides that count at a place, each by its number.
    fn counted(&self, sides: &[Side]) -> Vec<usize> {
        let newest = self.unfollowed(sides.iter().flat_map(|side| side.1.clone()).collect());
        (0..sides.len()).filter(|at| sides[*at].1.intersection(&newest).next().is_some()).collect()
    }

    /// Merges the sides of a unit, by the rules of version 3.
    fn placed(&self, asked: &Asked<'_>) -> Placed {
        let stamps_of = |leaf: &'static str| {
            let of = move |tick: &u64| self.stamps(asked.unit, leaf, &self.seen[*tick as usize]);
            asked.newest.iter().map(of).collect::<Vec<Stamps>>()
        };
        let values: Vec<_> =
            asked.newest.iter().map(|tick| self.writes[*tick as usize][asked.unit].clone()).collect();
        let by_leaf = LEAVES.map(stamps_of);
        let whole = |side: usize| by_leaf.iter().flat_map(|stamps| stamps[side].clone()).collect::<Stamps>();
        let are_maps = |sides: &[usize]| {
            !asked.is_whole && sides.iter().all(|side| values[*side].as_ref().is_some_and(is_map))
        };
        let mut sides: Vec<usize> = (0..values.len()).collect();
        if !are_maps(&sides) {
            let all: Vec<Side> = sides.iter().map(|side| (values[*side].clone(), whole(*side))).collect();
            sides = self.counted(&all);
            let whole = self.chosen(asked, &all, &by_leaf, "");
            let is_agreed = whole.leaves.is_empty();
            if is_agreed || !are_maps(&sides) {
                return whole;
            }
        }
        let mut placed = Placed { value: None, leaves: Leaves::new(), is_decided: false, kept: Vec::new() };
        let mut members = Vec::new();
        for (leaf, stamps) in LEAVES.iter().zip(&by_leaf).skip(1) {
            let member = |side: &usize| values[*side].as_ref().and_then(|value| value.get(leaf).cloned());
            let all: Vec<Side> = (0..values.len())
                .map(|side| match sides.contains(&side) {
                    true => (member(&side), stamps[side].clone()),
                    false => (None, Stamps::new()),
                })
                .collect();
            let chosen = self.chosen(asked, &all, &by_leaf, leaf);
            members.extend(chosen.value.map(|value| (*leaf, value)));
            placed.leaves.extend(chosen.leaves);
            placed.is_decided |= chosen.is_decided;
        }
        Placed { value: Some(Value::record(members)), ..placed }
    }

    /// Takes a side of a place, which is the unit or a member of it.
    fn chosen(
        &self,
        asked: &Asked<'_>,
        sides: &[Side],
        by_leaf: &[Vec<Stamps>; 3],
        leaf: &'static str,
    ) -> Placed {
        let newest = self.unfollowed(sides.iter().flat_map(|side| side.1.clone()).collect());
        let mut counted: Vec<(usize, BTreeSet<From>)> = Vec::new();
        for side in self.counted(sides) {
            let froms: BTreeSet<From> = sides[side].1.intersection(&newest).map(|(_, from)| *from).collect();
            if !counted.iter().any(|(other, known)| sides[*other].0 == sides[side].0 && *known == froms) {
                counted.push((side, froms));
            }
        }
        let value = |side: usize| sides[side].0.clone();
        let two = |(_, a): &(usize, BTreeSet<From>), (_, b): &(usize, BTreeSet<From>)| {
            let only: Vec<&From> = a.symmetric_difference(b).collect();
            a.difference(b).next().is_some()
                && b.difference(a).next().is_some()
                && only.iter().any(|from| from.1)
        };
        let is_twofold = counted.iter().any(|a| counted.iter().any(|b| two(a, b)));
        let first = counted[0].0;
        if !is_twofold && counted.iter().all(|(side, _)| value(*side) == value(first)) {
            return Placed {
                value: value(first),
                leaves: Leaves::new(),
                is_decided: false,
                kept: Vec::new(),
            };
        }
        let best = |froms: &BTreeSet<From>| {
            froms
                .iter()
                .map(|(tick, _)| ((asked.rank)(*tick), *tick))
                .fold((f64::MIN, 0), |a, b| if a > b { a } else { b })
        };
        let mut taken = 0;
        for at in 1..counted.len() {
            if best(&counted[at].1) >= best(&counted[taken].1) {
                taken = at;
            }
        }
        let taken = counted[taken].0;
        let tokens: Vec<String> = asked.unit.tokens().map(|token| token.into_owned()).collect();
        let steps = tokens.iter().map(String::as_str).chain((!leaf.is_empty()).then_some(leaf));
        let path = Pointer::of(steps.collect::<Vec<_>>());
        let is_unknown = |side: usize| {
            let unknown = self.unknown[asked.newest[side] as usize].get(asked.unit);
            unknown.is_some_and(|places| places.iter().any(|one| one.contains(&path)))
        };
        let is_decided = !counted.iter().any(|(side, _)| is_unknown(*side));
        let places = LEAVES.iter().zip(by_leaf).filter(|(name, _)| leaf.is_empty() || **name == leaf);
        let kept = |(name, stamps): (&&'static str, &Vec<Stamps>)| {
            ((asked.unit.clone(), *name), stamps[taken].iter().map(|(_, from)| *from).collect())
        };
        let leaves = places.map(kept).collect();
        let named = |(side, froms): &(usize, BTreeSet<From>)| {
            let newest = froms.last().unwrap().0;
            let is_ones =
                froms.iter().all(|(tick, _)| self.agents[*tick as usize] == self.agents[newest as usize]);
            (if is_ones { newest } else { asked.newest[*side] }, value(*side))
        };
        let mut kept: Vec<(u64, Option<Value>)> = counted.iter().map(named).collect();
        kept.sort_by_key(|(tick, _)| *tick);
        let kept = kept.into_iter().map(|(_, value)| value).collect();
        Placed { value: value(taken), leaves, is_decided, kept }
    }

    fn newest(&self, unit: &Pointer, seen: &BTreeSet<u64>) -> Vec<u64> {
        let all: Vec<u64> =
            seen.iter().copied().filter(|tick| self.writes[*tick as usize].contains_key(unit)).collect();
        let is_followed =
            |tick: &u64| all.iter().any(|other| other != tick && self.seen[*other as usize].contains(tick));
        all.iter().copied().filter(|tick| !is_followed(tick)).collect()
    }

    /// The newest writes, each outcome of a sync node replaced by what it was made of if that was kept, or put together by a strategy.
    fn apart(&self, unit: &Pointer, seen: &BTreeSet<u64>, strategy: SyncStrategy) -> Vec<u64> {
        let mut all: BTreeSet<u64> = self.newest(unit, seen).into_iter().collect();
        let made_of = |tick: &u64| {
            let (by, is_open, ticks) = self.met[*tick as usize].get(unit)?;
            (*is_open || *by == strategy).then(|| (*tick, ticks.clone()))
        };
        while let Some((tick, ticks)) = all.iter().find_map(made_of) {
            all.remove(&tick);
            all.extend(ticks);
        }
        let is_followed =
            |tick: &u64| all.iter().any(|other| other != tick && self.seen[*other as usize].contains(tick));
        all.iter().copied().filter(|tick| !is_followed(tick)).collect()
    }

    fn value(&self, unit: &Pointer, seen: &BTreeSet<u64>) -> Option<Value> {
        let newest = self.newest(unit, seen);
        newest.first().and_then(|tick| self.writes[*tick as usize][unit].clone())
    }

    fn push(&mut self, node: &Drawn, own: Option<u64>, rules: &MergeRules) {
        let tick = self.seen.len() as u64;
        let mut parents = node.parents.clone();
        parents.extend(own);
        let mut seen: BTreeSet<u64> = BTreeSet::from([0]);
        parents.iter().for_each(|parent| seen.extend(&self.seen[*parent as usize]));
        let mut writes = BTreeMap::new();
        let mut unknown = Unknown::new();
        let mut leaves = Leaves::new();
        let mut met = BTreeMap::new();
        for unit in units() {
            let mut newest = self.newest(&unit, &seen);
            let places = self.unknown_places(&unit, &seen, &writes, &unknown);
            if newest.len() > 1 && places.iter().any(|place| place.contains(&unit)) {
                leaves.extend(all_of(&unit, tick));
                writes.insert(unit.clone(), None);
                unknown.insert(unit, places);
                continue;
            }
            let value = |tick: &u64| self.writes[*tick as usize][&unit].clone();
            let is_equal = newest.iter().all(|tick| value(tick) == value(&newest[0]));
            let name = unit.dotted();
            let said = [&node.merge, rules].into_iter();
            let said =
                said.flat_map(|rules| [rules.keys.get(&*name).copied(), rules.strategy]).flatten().next();
            let strategy = said.unwrap_or_default();
            let rank = |tick: u64| match strategy {
                SyncStrategy::Manual | SyncStrategy::Lww => 0.0,
                SyncStrategy::Confidence => self.confidence[tick as usize],
                SyncStrategy::Policy => {
                    let agent = self.agents[tick as usize].as_deref().unwrap_or_default();
                    rules.roles.get(agent).copied().unwrap_or(0.0)
                }
            };
            if newest.len() < 2 || is_equal && node.version < 3 {
                continue;
            }
            let is_whole = strategy == SyncStrategy::Manual;
            if node.version >= 3 {
                let of = |tick: &u64| self.met[*tick as usize].get(&unit);
                let first = of(&newest[0]).filter(|(_, is_open, _)| !is_open || is_whole);
                if first.is_some() && newest.iter().all(|tick| of(tick) == first) {
                    continue;
                }
                newest = self.apart(&unit, &seen, strategy);
            }
            let mut placed = match node.version {
                3.. => self.placed(&Asked { unit: &unit, newest: &newest, is_whole, rank: &rank }),
                _ => {
                    let best = *newest
                        .iter()
                        .max_by(|a, b| (rank(**a), **a).partial_cmp(&(rank(**b), **b)).unwrap())
                        .unwrap();
                    let kept = |leaf: &'static str| {
                        let stamps = self.stamps(&unit, leaf, &self.seen[best as usize]);
                        ((unit.clone(), leaf), stamps.into_iter().map(|(_, from)| from).collect())
                    };
                    let leaves = LEAVES.map(kept).into();
                    let kept = newest.iter().map(value).collect();
                    Placed { value: value(&best), leaves, is_decided: true, kept }
                }
            };
            if is_equal && !placed.is_decided {
                continue;
            }
            if is_whole && placed.is_decided {
                let removed = || v(r#"{"__removed":true}"#);
                let values = placed.kept.into_iter().map(|value| value.unwrap_or_else(removed));
                let kept = [("__conflict", Value::from(true)), ("values", Value::array(values))];
                placed.value = Some(Value::record(kept));
                placed.leaves = all_of(&unit, tick);
            }
            if node.version >= 3 {
                let is_open = is_whole && placed.is_decided;
                met.insert(unit.clone(), (strategy, is_open, newest.iter().copied().collect()));
            }
            leaves.extend(placed.leaves);
            writes.insert(unit.clone(), placed.value);
            unknown.insert(unit, places);
        }
        for op in &node.ops {
            self.apply(op, &seen, &mut writes, &mut unknown, (tick, node.version >= 3, &mut leaves));
            met.retain(|unit, _| !op.path.overlaps(unit));
        }
        self.leaves.push(leaves);
        self.met.push(met);
        self.unknown.push(unknown);
        seen.insert(tick);
        self.seen.push(seen);
        self.writes.push(writes);
        self.agents.push(Some(node.agent.clone()));
        self.confidence.push(node.confidence);
    }

    /// The unknown places at or below a unit, behind what a node has done so far.
    fn unknown_places(
        &self,
        unit: &Pointer,
        seen: &BTreeSet<u64>,
        writes: &BTreeMap<Pointer, Option<Value>>,
        unknown: &Unknown,
    ) -> BTreeSet<Pointer> {
        if writes.contains_key(unit) {
            return unknown.get(unit).cloned().unwrap_or_default();
        }
        let newest = self.newest(unit, seen).into_iter();
        newest.filter_map(|tick| self.unknown[tick as usize].get(unit)).flatten().cloned().collect()
    }

    fn apply(
        &self,
        op: &Op,
        seen: &BTreeSet<u64>,
        writes: &mut BTreeMap<Pointer, Option<Value>>,
        unknown: &mut Unknown,
        (tick, is_counted, leaves): (u64, bool, &mut Leaves),
    ) {
        let mut replaced = |unit: &Pointer, from: From, steps: &[String], sides: [Option<&Value>; 2]| {
            let are_maps = sides.iter().all(|side| side.is_some_and(is_map));
            for leaf in LEAVES {
                let differs = || sides.map(|side| side.and_then(|side| side.get(leaf)));
                let is_written = match steps {
                    [step] if sides.iter().flatten().all(|side| is_map(side)) => step == leaf,
                    _ if are_maps => differs()[0] != differs()[1],
                    _ => true,
                };
                if is_written {
                    leaves.insert((unit.clone(), leaf), vec![from]);
                }
            }
        };
        let tokens: Vec<String> = op.path.tokens().map(|token| token.into_owned()).collect();
        if tokens == ["memory"] {
            let members = op.value.clone().unwrap();
            for unit in units().into_iter().filter(|unit| op.path.contains(unit)) {
                let before = writes.get(&unit).cloned().unwrap_or_else(|| self.value(&unit, seen));
                let was_unknown = !self.unknown_places(&unit, seen, writes, unknown).is_empty();
                unknown.remove(&unit);
                let key = unit.tokens().nth(1).unwrap().into_owned();
                match members.get(&key) {
                    Some(value) => {
                        replaced(&unit, (tick, false), &[], [before.as_ref(), Some(value)]);
                        writes.insert(unit, Some(value.clone()));
                    }
                    None if before.is_some() || was_unknown => {
                        replaced(&unit, (tick, false), &[], [None; 2]);
                        writes.insert(unit, None);
                    }
                    None => {}
                }
            }
            return;
        }
        let unit = units().into_iter().find(|unit| unit.contains(&op.path)).unwrap();
        let before = writes.get(&unit).cloned().unwrap_or_else(|| self.value(&unit, seen));
        let state = match before.clone() {
            Some(value) => Delta(vec![Op::set(unit.clone(), value)]).apply(&Value::object()).unwrap(),
            None => Value::object(),
        };
        let mut places = self.unknown_places(&unit, seen, writes, unknown);
        let applied = Delta(vec![op.clone()]).apply(&state);
        match (&applied, op.action) {
            (Err(_), action) if action != Action::Remove => drop(places.insert(op.path.clone())),
            (Ok(_), Action::Set) => places.retain(|place| !op.path.contains(place)),
            _ => {}
        }
        unknown.insert(unit.clone(), places);
        let after = match applied {
            Ok(after) => unit.get(&after).cloned(),
            Err(_) => before.clone(),
        };
        let is_more = is_counted && matches!(op.action, Action::Add | Action::Append);
        let steps = &tokens[unit.tokens().count()..];
        replaced(&unit, (tick, is_more), steps, [before.as_ref(), after.as_ref()]);
        writes.insert(unit, after);
    }

    fn state(&self, tick: u64) -> Value {
        let mut memory = Vec::new();
        let mut state = Vec::new();
        for unit in units() {
            let Some(value) = self.value(&unit, &self.seen[tick as usize]) else { continue };
            match unit.tokens().nth(1) {
                Some(key) => memory.push((Arc::<str>::from(&*key), value)),
                None => state.push((Arc::<str>::from("goals"), value)),
            }
        }
        state.push((Arc::from("memory"), Value::record(memory)));
        Value::record(state)
    }

    fn lowest_common(&self, a: u64, b: u64) -> Vec<u64> {
        let common: Vec<u64> = self.seen[a as usize].intersection(&self.seen[b as usize]).copied().collect();
        let is_followed = |tick: &u64| {
            common.iter().any(|other| other != tick && self.seen[*other as usize].contains(tick))
        };
        common.iter().copied().filter(|tick| !is_followed(tick)).collect()
    }
}

#[test]
fn each_state_and_ancestor_is_that_of_the_slow_definition() {
    let count = if std::env::var_os("DENDRER_DEEP").is_some() { 100_000 } else { 2_000 };
    let mut conflicts = 0;
    for number in 0..count {
        let mut dice = Dice(number);
        let mut of_pack = rules(&mut dice);
        for agent in 0..dice.below(4) {
            of_pack.roles.insert(format!("agent-{agent}").into(), dice.below(3) as f64);
        }
        let initial = v(r#"{"goals":[0],"memory":{"x":0,"y":0}}"#);
        let mut graph = CausalGraph::new(&initial, of_pack.clone());
        let first = units().into_iter().map(|unit| (unit.clone(), unit.get(&initial).cloned()));
        let first = first.filter(|(_, value)| value.is_some()).collect();
        let mut model = Model {
            seen: vec![BTreeSet::from([0])],
            writes: vec![first],
            unknown: vec![Unknown::new()],
            agents: vec![None],
            confidence: vec![0.0],
            leaves: vec![units().iter().flat_map(|unit| all_of(unit, 0)).collect()],
            met: vec![BTreeMap::new()],
        };
        let mut own: BTreeMap<String, u64> = BTreeMap::new();
        let drawn = draw(&mut dice);
        for (tick, node) in (1..).zip(&drawn) {
            let added = CausalNode {
                agent: node.agent.as_str().into(),
                parents: node.parents.clone(),
                delta: Delta(node.ops.clone()),
                unknown: Vec::new(),
                confidence: node.confidence,
                merge: node.merge.clone(),
                version: node.version,
                is_marker: false,
            };
            graph.push(added).unwrap();
            model.push(node, own.insert(node.agent.clone(), tick), &of_pack);
        }
        conflicts += graph.conflicts().len();
        let tip = drawn.len() as u64;
        for tick in 0..=tip {
            assert_eq!(graph.state(tick), model.state(tick), "graph {number}, tick {tick}");
            let found: BTreeSet<Pointer> = graph.unknown(tick).into_iter().map(|(place, _)| place).collect();
            let (none, seen) = (BTreeMap::new(), &model.seen[tick as usize]);
            let expected = units()
                .into_iter()
                .flat_map(|unit| model.unknown_places(&unit, seen, &none, &Unknown::new()));
            assert_eq!(found, expected.collect(), "graph {number}, tick {tick}");
            let ancestors: BTreeSet<u64> = graph.ancestors(tick).into_iter().chain([0]).collect();
            assert_eq!(ancestors, model.seen[tick as usize], "graph {number}, tick {tick}");
        }
        for _ in 0..5 {
            let (a, b) = (1 + dice.below(tip), 1 + dice.below(tip));
            assert_eq!(graph.lowest_common(a, b), model.lowest_common(a, b), "graph {number}: {a} {b}");
        }
    }
    assert!(conflicts > count as usize / 2, "{conflicts}");
    println!("deep: causal {count}");
}

/// The nodes of a drawn graph; some are markers of forks.
fn nodes(dice: &mut Dice) -> Vec<CausalNode> {
    let drawn = draw(dice).into_iter().map(|node| CausalNode {
        agent: node.agent.as_str().into(),
        parents: node.parents,
        delta: Delta(node.ops),
        unknown: Vec::new(),
        confidence: node.confidence,
        merge: node.merge,
        version: node.version,
        is_marker: false,
    });
    let mut marked = |node: CausalNode| match dice.below(12) {
        0 => CausalNode { agent: "kernel".into(), parents: Vec::new(), is_marker: true, ..node },
        _ => node,
    };
    drawn.map(&mut marked).collect()
}

/// A graph that is cut at any node, read from the bytes and cut again, leads to the states of the whole graph. A flipped byte is
/// refused or read as another cut, and stops nothing.
#[test]
fn a_cut_leads_to_the_same_states() {
    let count = if std::env::var_os("DENDRER_DEEP").is_some() { 100_000 } else { 1_000 };
    let initial = v(r#"{"goals":[0],"memory":{"x":0,"y":0}}"#);
    let (mut compared, mut left) = (0_u64, 0_u64);
    for number in 0..count {
        let mut dice = Dice(number);
        let of_pack = rules(&mut dice);
        let nodes = nodes(&mut dice);
        let mut graph = CausalGraph::new(&initial, of_pack.clone());
        let read = |bytes: &[u8]| CausalCut::read(&initial, of_pack.clone(), bytes);
        let mut cut: Option<CausalCut> = None;
        for (tick, node) in (1..).zip(nodes) {
            graph.push(node.clone()).unwrap();
            if let Some(own) = &mut cut {
                let recent = own.recent();
                if node.parents.iter().all(|parent| recent.binary_search(parent).is_ok()) {
                    own.push(node).unwrap();
                } else {
                    cut = None;
                    left += 1;
                }
            }
            let recent = dice.below(7);
            cut = match cut {
                Some(own) if dice.below(3) == 0 => Some(read(&own.cut(recent).bytes).unwrap()),
                None => Some(read(&graph.cut(recent).bytes).unwrap()),
                own => own,
            };
            let own = cut.as_ref().unwrap();
            assert_eq!(own.tip(), tick);
            for agent in graph.agents() {
                let newest = *graph.branch(agent).last().unwrap();
                assert_eq!(own.newest_of(agent), Some(newest), "graph {number}, tick {tick}");
                assert_eq!(own.state(newest), graph.state(newest), "graph {number}, tick {tick}, {agent}");
                assert_eq!(
                    own.unknown(newest),
                    graph.unknown(newest),
                    "graph {number}, tick {tick}, {agent}"
                );
                compared += 1;
            }
            if dice.below(20) == 0 {
                let mut bytes = own.cut(recent).bytes;
                let at = dice.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << dice.below(8);
                if let Some(read) = read(&bytes) {
                    graph
                        .agents()
                        .filter_map(|agent| read.newest_of(agent))
                        .for_each(|tick| drop(read.state(tick)));
                }
                assert!(CausalCut::read(&initial, of_pack.clone(), &bytes[..at]).is_none());
            }
        }
    }
    assert!(compared > 20 * count && left > count, "{compared} {left}");
    println!("deep: cuts {count}");
}

fn node(agent: &str, parents: &[u64], delta: &str, merge: &str) -> CausalNode {
    CausalNode {
        agent: agent.into(),
        parents: parents.to_vec(),
        delta: Delta::from_value(&v(delta)).unwrap(),
        unknown: Vec::new(),
        confidence: 0.0,
        merge: MergeRules::of(Some(&v(merge))),
        version: LEAVES_VERSION,
        is_marker: false,
    }
}

/// Two agents change an object that both know; `rules` are those of the pack. Returns the state and the decisions of the sync
/// node, each as place, winner and losers.
fn synced(sides: [&str; 2], merge: &str, rules: &str, version: u64) -> (Value, Vec<String>) {
    let mut graph = CausalGraph::new(&v("{}"), MergeRules::of(Some(&v(rules))));
    let base = r#"[{"set":"/memory/b","value":{"hotel":"none","trip":{"flight":"none","seat":1}}}]"#;
    graph.push(node("lead", &[], base, "{}")).unwrap();
    graph.push(CausalNode { confidence: 0.9, ..node("ann", &[1], sides[0], "{}") }).unwrap();
    graph.push(CausalNode { confidence: 0.2, ..node("bob", &[1], sides[1], "{}") }).unwrap();
    graph.push(CausalNode { version, ..node("ann", &[3], "[]", merge) }).unwrap();
    let decided = graph.conflicts().iter().map(|one| {
        let taken = one.winner().map(|side| side.tick);
        let lost = one.values.iter().map(|side| side.tick).filter(|tick| Some(*tick) != taken);
        let lost: Vec<u64> = lost.collect();
        format!("{} {} {taken:?} {lost:?}", one.path, one.strategy)
    });
    (graph.state(4).get("memory").unwrap().get("b").cloned().unwrap(), decided.collect())
}

const HOTEL: &str = r#"[{"set":"/memory/b/hotel","value":"Rose"}]"#;
const FLIGHT: &str = r#"[{"set":"/memory/b/trip/flight","value":"X1"}]"#;

/// Each strategy keeps what one side alone changed since the last common ancestor, deep down too; `manual` keeps both whole.
#[test]
fn what_one_side_alone_changed_stays() {
    for strategy in ["lww", "confidence", "policy"] {
        let merge = format!(r#"{{"strategy":"{strategy}"}}"#);
        let (state, decided) = synced([HOTEL, FLIGHT], &merge, "{}", LEAVES_VERSION);
        assert_eq!(state, v(r#"{"hotel":"Rose","trip":{"flight":"X1","seat":1}}"#), "{strategy}");
        assert_eq!(decided, [""; 0], "{strategy}");
        let removed = r#"[{"remove":"/memory/b/trip/seat"},{"set":"/memory/b/hotel","value":"Rose"}]"#;
        let (state, decided) = synced([removed, FLIGHT], &merge, "{}", LEAVES_VERSION);
        assert_eq!(state, v(r#"{"hotel":"Rose","trip":{"flight":"X1"}}"#), "{strategy}");
        assert_eq!(decided, [""; 0], "{strategy}");
    }
    let (state, decided) = synced([HOTEL, FLIGHT], "{}", "{}", LEAVES_VERSION);
    assert_eq!(state.get("values").unwrap().as_array().unwrap().len(), 2);
    assert_eq!(decided, ["/memory/b manual None [2, 3]"]);
}

/// The tick, the confidence or the role of the newest write decides what both changed; each place is a decision.
#[test]
fn the_write_decides_what_both_changed() {
    let ann = r#"[{"set":"/memory/b/hotel","value":"Rose"},{"set":"/memory/b/trip/seat","value":2}]"#;
    let bob = r#"[{"set":"/memory/b/hotel","value":"Ritz"},{"set":"/memory/b/trip/flight","value":"X1"}]"#;
    for (strategy, rules, hotel, taken) in [
        ("lww", "{}", "Ritz", "Some(3) [2]"),
        ("confidence", "{}", "Rose", "Some(2) [3]"),
        ("policy", r#"{"roles":{"ann":2,"bob":1}}"#, "Rose", "Some(2) [3]"),
        ("policy", r#"{"roles":{"bob":1}}"#, "Ritz", "Some(3) [2]"),
    ] {
        let merge = format!(r#"{{"strategy":"{strategy}"}}"#);
        let (state, decided) = synced([ann, bob], &merge, rules, LEAVES_VERSION);
        let expected = format!(r#"{{"hotel":"{hotel}","trip":{{"flight":"X1","seat":2}}}}"#);
        assert_eq!(state, v(&expected), "{strategy} {rules}");
        assert_eq!(decided, [format!("/memory/b/hotel {strategy} {taken}")]);
    }
}

/// An object that one side removed and the other changed below is one decision at the object.
#[test]
fn a_removed_object_is_decided_at_the_object() {
    let removed = r#"[{"remove":"/memory/b/trip"}]"#;
    let (state, decided) = synced([removed, FLIGHT], r#"{"strategy":"lww"}"#, "{}", LEAVES_VERSION);
    assert_eq!(state, v(r#"{"hotel":"none","trip":{"flight":"X1","seat":1}}"#));
    assert_eq!(decided, ["/memory/b/trip lww Some(3) [2]"]);
}

/// A record of an earlier version of the rules is read as it was made: a strategy took the whole unit.
#[test]
fn an_earlier_record_is_decided_as_a_whole() {
    let (state, decided) = synced([HOTEL, FLIGHT], r#"{"strategy":"lww"}"#, "{}", LEAVES_VERSION - 1);
    assert_eq!(state, v(r#"{"hotel":"none","trip":{"flight":"X1","seat":1}}"#));
    assert_eq!(decided, ["/memory/b lww Some(3) [2]"]);
}

/// A change that does not fit removes nothing: behind the sync node its place is unknown, and there is no conflict to decide.
#[test]
fn a_change_that_does_not_fit_is_no_removal() {
    for merge in ["{}", r#"{"strategy":"lww"}"#] {
        let mut graph = CausalGraph::new(&v("{}"), MergeRules::default());
        graph.push(node("a", &[], r#"[{"set":"/n","value":10}]"#, "{}")).unwrap();
        graph.push(node("b", &[], r#"[{"add":"/n","value":1}]"#, "{}")).unwrap();
        graph.push(node("b", &[1], "[]", merge)).unwrap();
        assert_eq!(graph.state(3), v("{}"));
        assert_eq!(graph.conflicts(), []);
        let unknown: Vec<String> = graph.unknown(3).iter().map(|(place, _)| place.to_string()).collect();
        assert_eq!(unknown, ["/n"]);
        assert_eq!(graph.writes(2).count(), 0, "an export has no removal for it");
    }
}

/// A member of the state that is an object for one agent and a list for another is in conflict as a whole.
#[test]
fn an_object_beside_a_list_is_decided_as_a_whole() {
    let state = |merge: &str| {
        let mut graph = CausalGraph::new(&v("{}"), MergeRules::default());
        graph.push(node("b", &[], r#"[{"set":"/goals","value":{"x":1}}]"#, "{}")).unwrap();
        graph.push(node("a", &[], r#"[{"set":"/goals","value":["buy"]}]"#, "{}")).unwrap();
        graph.push(node("a", &[1], "[]", merge)).unwrap();
        assert_eq!(graph.conflicts().len(), 1);
        graph.state(3)
    };
    assert_eq!(state(r#"{"strategy":"lww"}"#), v(r#"{"goals":["buy"]}"#));
    assert_eq!(state("{}"), v(r#"{"goals":{"__conflict":true,"values":[{"x":1},["buy"]]}}"#));
    assert_eq!(state(r#"{"keys":{"goals":"lww"}}"#), v(r#"{"goals":["buy"]}"#));
}

/// Pushes nodes, each as agent, confidence, parents and change. All merge by a strategy.
fn pushed(strategy: &str, nodes: &[(&str, f64, &[u64], &str)]) -> CausalGraph {
    let rules = format!(r#"{{"strategy":"{strategy}","roles":{{"b":9,"c":3}}}}"#);
    let mut graph = CausalGraph::new(&v("{}"), MergeRules::of(Some(&v(&rules))));
    for (agent, confidence, parents, delta) in nodes {
        let node = node(agent, parents, delta, "{}");
        graph.push(CausalNode { confidence: *confidence, ..node }).unwrap();
    }
    graph
}

/// The decisions of a graph: the place, the winner and all sides as agent, value and tick.
fn decided(graph: &CausalGraph) -> Vec<String> {
    let side = |side: &SyncSide| {
        let value = side.value.as_ref().map_or("-".to_owned(), Value::to_string);
        format!("{} {value} @{}", side.agent.as_deref().unwrap_or_default(), side.tick)
    };
    let one = |one: &SyncConflict| {
        let sides: Vec<String> = one.values.iter().map(side).collect();
        format!("{}: {} of {}", one.path, one.winner().map_or("-".to_owned(), side), sides.join(", "))
    };
    graph.conflicts().iter().map(one).collect()
}

/// After mutual merges each place has its newest write: a value that its one writer wrote over does not come back.
#[test]
fn what_was_written_over_does_not_come_back() {
    for strategy in ["lww", "confidence", "policy"] {
        let graph = pushed(
            strategy,
            &[
                ("lead", 0.0, &[], r#"[{"set":"/memory/o","value":{"p":0,"q":0}}]"#),
                ("a", 0.0, &[1], r#"[{"set":"/memory/o/p","value":1}]"#),
                ("b", 0.0, &[1], r#"[{"set":"/memory/o/q","value":2}]"#),
                ("a", 0.0, &[3], r#"[{"set":"/memory/o/p","value":11}]"#),
                ("b", 0.0, &[2], "[]"),
                ("a", 0.0, &[5], "[]"),
                ("b", 0.0, &[4], "[]"),
            ],
        );
        let expected = v(r#"{"memory":{"o":{"p":11,"q":2}}}"#);
        assert_eq!([graph.state(6), graph.state(7)], [expected.clone(), expected], "{strategy}");
        assert_eq!(decided(&graph), [""; 0], "{strategy}");
    }
}

/// A decided value counts with the confidence, the role and the tick of its own write, so the order of merges changes nothing.
#[test]
fn a_decided_value_keeps_the_number_of_its_write() {
    let set = |value: u64| format!(r#"[{{"set":"/memory/k","value":{value}}}]"#);
    for (strategy, taken) in [("confidence", "b 6 @2"), ("policy", "b 6 @2"), ("lww", "c 7 @3")] {
        let sides = [("a", 0.3, set(5)), ("b", 0.5, set(6)), ("c", 0.4, set(7))];
        let begin: Vec<(&str, f64, &[u64], &str)> =
            sides.iter().map(|(agent, sure, set)| (*agent, *sure, &[][..], set.as_str())).collect();
        let steps =
            pushed(strategy, &[&begin[..], &[("a", 0.0, &[2], "[]"), ("c", 0.0, &[4], "[]")]].concat());
        let at_once = pushed(strategy, &[&begin[..], &[("c", 0.0, &[1, 2], "[]")]].concat());
        assert_eq!(steps.state(5), at_once.state(4), "{strategy}");
        assert_eq!(decided(&steps)[1], format!("/memory/k: {taken} of a 5 @1, b 6 @2, c 7 @3"), "{strategy}");
    }
}

/// A leaf is decided by the tick of its own write. By that of the newest write of the whole side, what a third agent wrote
/// elsewhere in the object would decide it, and so the order of merges (`docs/design/leaves.md`).
#[test]
fn the_order_of_merges_decides_no_leaf() {
    let begin: [(&str, f64, &[u64], &str); 4] = [
        ("lead", 0.0, &[], r#"[{"set":"/memory/o","value":{"x":0,"y":0}}]"#),
        ("a", 0.0, &[1], r#"[{"set":"/memory/o/x","value":1}]"#),
        ("b", 0.0, &[1], r#"[{"set":"/memory/o/x","value":2}]"#),
        ("c", 0.0, &[1], r#"[{"set":"/memory/o/y","value":5}]"#),
    ];
    for parents in [[4, 3], [3, 4]] {
        let merges: [(&str, f64, &[u64], &str); 2] =
            [("a", 0.0, &parents[..1], "[]"), ("a", 0.0, &parents[1..], "[]")];
        let graph = pushed("lww", &[&begin[..], &merges[..]].concat());
        assert_eq!(graph.state(6), v(r#"{"memory":{"o":{"x":2,"y":5}}}"#), "{parents:?}");
    }
}

/// What several agents left is put together alike in whatever order they are merged, removals and kept conflicts included.
#[test]
fn the_order_of_merges_changes_nothing() {
    let mut dice = Dice(12);
    let count = if std::env::var_os("DENDRER_DEEP").is_some() { 50_000 } else { 2_000 };
    for number in 0..count {
        let strategy = ["manual", "lww", "confidence", "policy"][dice.below(4) as usize];
        let base = r#"[{"set":"/memory/o","value":{"p":{"q":0},"r":0}}]"#;
        let mut begin: Vec<(String, f64, Vec<u64>, String)> = vec![("lead".into(), 0.0, vec![], base.into())];
        let agents = 2 + dice.below(4);
        let mut last = Vec::new();
        for agent in 0..agents {
            for step in 0..=dice.below(2) {
                let place = ["o", "o/p", "o/p/q", "o/r", "o/s"][dice.below(5) as usize];
                let delta = match (dice.below(4), place) {
                    (0, "o" | "o/p" | "o/r") if step == 0 => format!(r#"[{{"remove":"/memory/{place}"}}]"#),
                    (_, "o") => format!(r#"[{{"set":"/memory/o","value":{{"r":{}}}}}]"#, dice.below(5)),
                    (_, "o/p") => format!(r#"[{{"set":"/memory/o/p","value":{{"q":{}}}}}]"#, dice.below(5)),
                    _ => format!(r#"[{{"set":"/memory/{place}","value":{}}}]"#, dice.below(5)),
                };
                let parents = if step == 0 { vec![1] } else { vec![] };
                let name = if agent == 1 { "b".into() } else { format!("c{agent}") };
                begin.push((name, dice.below(4) as f64 / 4.0, parents, delta));
            }
            last.push(begin.len() as u64);
        }
        let at_once = [("end".to_owned(), 0.0, last.clone(), "[]".to_owned())];
        let (mut merges, mut left) = (Vec::new(), last);
        while left.len() > 1 {
            let a = left.swap_remove(dice.below(left.len() as u64) as usize);
            let b = left.swap_remove(dice.below(left.len() as u64) as usize);
            merges.push((format!("m{}", merges.len()), 0.0, vec![a, b], "[]".to_owned()));
            left.push((begin.len() + merges.len()) as u64);
        }
        let state = |merges: &[(String, f64, Vec<u64>, String)]| {
            let all: Vec<(&str, f64, &[u64], &str)> = begin
                .iter()
                .chain(merges)
                .map(|(agent, sure, parents, delta)| (agent.as_str(), *sure, &parents[..], delta.as_str()))
                .collect();
            pushed(strategy, &all).state(all.len() as u64)
        };
        assert_eq!(state(&merges), state(&at_once), "{number}: {strategy} {begin:?} {merges:?}");
    }
}

/// Two additions are two changes, also if the outcome is equal; two equal assignments are one value.
#[test]
fn equal_additions_are_in_conflict() {
    for (change, kept) in [("add", true), ("set", false)] {
        let delta = format!(r#"[{{"{change}":"/memory/k","value":1}}]"#);
        let zero = r#"[{"set":"/memory/k","value":0}]"#;
        let nodes: [(&str, f64, &[u64], &str); 4] = [
            ("lead", 0.0, &[], zero),
            ("a", 0.0, &[1], &delta),
            ("b", 0.0, &[1], &delta),
            ("a", 0.0, &[3], "[]"),
        ];
        let graph = pushed("manual", &nodes);
        let value = if kept { r#"{"__conflict":true,"values":[1,1]}"# } else { "1" };
        assert_eq!(graph.state(4), v(&format!(r#"{{"memory":{{"k":{value}}}}}"#)));
        assert_eq!(decided(&pushed("lww", &nodes)).len(), usize::from(kept));
    }
}

/// An object with a confidence is one value under `confidence`, and a confidence beyond 0 to 1 is marked and counts as 0.
#[test]
fn a_value_that_says_how_sure_it_is_stays_whole() {
    let graph = pushed(
        "confidence",
        &[
            ("lead", 0.0, &[], r#"[{"set":"/memory/o","value":{"v":0,"confidence":0.1}}]"#),
            ("a", 0.0, &[1], r#"[{"set":"/memory/o","value":{"v":1,"confidence":0.99}}]"#),
            ("b", 0.0, &[1], r#"[{"set":"/memory/o","value":{"v":99,"confidence":0.2}}]"#),
            ("c", 0.0, &[1], r#"[{"set":"/memory/o","value":{"v":7,"confidence":7}}]"#),
            ("d", 0.0, &[2, 3, 4], "[]"),
        ],
    );
    assert_eq!(graph.state(5), v(r#"{"memory":{"o":{"v":1,"confidence":0.99}}}"#));
    let misread: Vec<bool> = graph.conflicts()[0].values.iter().map(|side| side.is_misread).collect();
    assert_eq!(misread, [false, false, true]);
}

/// Divergence counts units: a member of an object once.
#[test]
fn a_member_that_only_one_has_differs_once() {
    let mut graph = CausalGraph::new(&v("{}"), MergeRules::default());
    graph.push(node("a", &[], r#"[{"set":"/beliefs/q","value":1}]"#, "{}")).unwrap();
    graph.push(node("b", &[], "[]", "{}")).unwrap();
    assert_eq!(graph.differing(&[1, 2]), 1);
}
