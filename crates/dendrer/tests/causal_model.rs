//! Causal graphs beside a slow definition: sets of ancestors, and for each unit the writes that no other write follows.
//!
//! 2,000 random graphs of up to five agents; 100,000 with `DENDRER_DEEP=1`.

#![expect(clippy::print_stdout, reason = "the deep run adds it up")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dendrer_kernel::causal::{CausalCut, CausalGraph, CausalNode, MergeRules, SyncStrategy};
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
            version: 2 + dice.below(2),
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
}

impl Model {
    fn newest(&self, unit: &Pointer, seen: &BTreeSet<u64>) -> Vec<u64> {
        let all: Vec<u64> =
            seen.iter().copied().filter(|tick| self.writes[*tick as usize].contains_key(unit)).collect();
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
        for unit in units() {
            let newest = self.newest(&unit, &seen);
            let places = self.unknown_places(&unit, &seen, &writes, &unknown);
            if newest.len() > 1 && places.iter().any(|place| place.contains(&unit)) {
                writes.insert(unit.clone(), None);
                unknown.insert(unit, places);
                continue;
            }
            let value = |tick: &u64| self.writes[*tick as usize][&unit].clone();
            if newest.iter().all(|tick| value(tick) == value(&newest[0])) {
                continue;
            }
            let name = unit.dotted();
            let said = [&node.merge, rules].into_iter();
            let said =
                said.flat_map(|rules| [rules.keys.get(&*name).copied(), rules.strategy]).flatten().next();
            let rank = |tick: &u64| match said.unwrap_or_default() {
                SyncStrategy::Manual | SyncStrategy::Lww => 0.0,
                SyncStrategy::Confidence => self.confidence[*tick as usize],
                SyncStrategy::Policy => {
                    let agent = self.agents[*tick as usize].as_deref().unwrap_or_default();
                    rules.roles.get(agent).copied().unwrap_or(0.0)
                }
            };
            let decided = match said.unwrap_or_default() {
                SyncStrategy::Manual => {
                    let removed = || v(r#"{"__removed":true}"#);
                    let values = newest.iter().map(|tick| value(tick).unwrap_or_else(removed));
                    Some(Value::record([("__conflict", Value::from(true)), ("values", Value::array(values))]))
                }
                _ => {
                    let best = |ticks: &[u64]| {
                        let most = ticks.iter().map(rank).fold(f64::MIN, f64::max);
                        *ticks.iter().filter(|tick| rank(tick) == most).max().unwrap()
                    };
                    let are_objects =
                        newest.iter().all(|tick| value(tick).is_some_and(|value| is_map(&value)));
                    match are_objects && node.version >= 3 {
                        true => Some(self.leaves(&unit, &newest, &best)),
                        false => value(&best(&newest)),
                    }
                }
            };
            writes.insert(unit.clone(), decided);
            unknown.insert(unit, places);
        }
        for op in &node.ops {
            self.apply(op, &seen, &mut writes, &mut unknown);
        }
        self.unknown.push(unknown);
        seen.insert(tick);
        self.seen.push(seen);
        self.writes.push(writes);
        self.agents.push(Some(node.agent.clone()));
        self.confidence.push(node.confidence);
    }

    /// The objects that several writes left in a unit, leaf by leaf: all leaves are members of the unit here.
    fn leaves(&self, unit: &Pointer, newest: &[u64], best: &dyn Fn(&[u64]) -> u64) -> Value {
        let mut merged = Vec::new();
        for leaf in ["deep", "flat"] {
            let of = |tick: &u64| self.writes[*tick as usize].get(unit)?.clone()?.get(leaf).cloned();
            let place = Pointer::of(
                unit.tokens()
                    .map(|token| token.into_owned())
                    .collect::<Vec<_>>()
                    .iter()
                    .map(String::as_str)
                    .chain([leaf]),
            );
            let is_known = |tick: &u64| {
                let unknown = self.unknown[*tick as usize].get(unit);
                !unknown.is_some_and(|places| places.iter().any(|one| one.contains(&place)))
            };
            let lost = |a: &u64| {
                newest.iter().filter(|b| *b != a).any(|b| {
                    let both = self.seen[*a as usize].intersection(&self.seen[*b as usize]);
                    let common = self.newest(unit, &both.copied().collect());
                    let had = |base: &u64| is_known(base) && of(base) == of(a);
                    // Without a common write the unit began empty.
                    let is_unchanged =
                        if common.is_empty() { of(a).is_none() } else { common.iter().all(had) };
                    of(a) != of(b) && is_unchanged
                })
            };
            let mut count: Vec<u64> = newest.iter().copied().filter(|tick| !lost(tick)).collect();
            if count.is_empty() {
                count = newest.to_vec();
            }
            if let Some(value) = of(&best(&count)) {
                merged.push((leaf, value));
            }
        }
        Value::record(merged)
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
    ) {
        let tokens: Vec<String> = op.path.tokens().map(|token| token.into_owned()).collect();
        if tokens == ["memory"] {
            let members = op.value.clone().unwrap();
            for unit in units().into_iter().filter(|unit| op.path.contains(unit)) {
                let before = writes.get(&unit).cloned().unwrap_or_else(|| self.value(&unit, seen));
                let was_unknown = !self.unknown_places(&unit, seen, writes, unknown).is_empty();
                unknown.remove(&unit);
                let key = unit.tokens().nth(1).unwrap().into_owned();
                match members.get(&key) {
                    Some(value) => drop(writes.insert(unit, Some(value.clone()))),
                    None if before.is_some() || was_unknown => drop(writes.insert(unit, None)),
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
            Err(_) => before,
        };
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
        let lost = one.values.iter().filter(|side| Some(side.tick) != one.taken);
        let lost: Vec<u64> = lost.map(|side| side.tick).collect();
        format!("{} {} {:?} {lost:?}", one.path, one.strategy, one.taken)
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

/// The tick, the confidence or the role of the whole side decides what both changed; each place is a decision.
#[test]
fn the_whole_side_decides_what_both_changed() {
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

/// Divergence counts units: a member of an object once.
#[test]
fn a_member_that_only_one_has_differs_once() {
    let mut graph = CausalGraph::new(&v("{}"), MergeRules::default());
    graph.push(node("a", &[], r#"[{"set":"/beliefs/q","value":1}]"#, "{}")).unwrap();
    graph.push(node("b", &[], "[]", "{}")).unwrap();
    assert_eq!(graph.differing(&[1, 2]), 1);
}
