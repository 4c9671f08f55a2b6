//! Random packs, events and predicates over a few places, which meet each other often.

use dendrer_testkit::Dice;

use crate::oracle::{Act, E, Event, Op, Place, Root, Rule, Seg, Step, TSeg, Target, V};

/// The fields of every pack, with what they begin as.
pub(crate) const FIELDS: [(&str, &str); 7] =
    [("a", "0"), ("b", "1"), ("c", "2"), ("s", "'p'"), ("m", "{'p': 1}"), ("n", "{}"), ("l", "[1, 2]")];

pub(crate) const TYPES: [&str; 4] = ["memory.write", "plan.update", "observation.add", "action.result"];

/// What expressions may name.
#[derive(Clone, Copy)]
struct Within {
    /// Whether there is a transition.
    rule: bool,
    name: Option<&'static str>,
}

fn one<T: Clone>(dice: &mut Dice, of: &[T]) -> T {
    of[dice.below(of.len() as u64) as usize].clone()
}

fn names(path: &[&'static str]) -> Vec<Seg> {
    path.iter().map(|name| Seg::Name(name)).collect()
}

fn state(path: &[&'static str]) -> E {
    E::Path(Root::State, names(path))
}

fn t(path: &[&'static str]) -> E {
    E::Path(Root::T, names(path))
}

fn segs(dice: &mut Dice, within: Within) -> Vec<Seg> {
    let key = |dice: &mut Dice| match (within.rule, dice.below(3)) {
        (true, 0) => t(&["intent", "k"]),
        (_, 1) => state(&["s"]),
        _ => E::Lit(V::text("q")),
    };
    match dice.below(10) {
        0 => names(&["a"]),
        1 => names(&["b"]),
        2 => names(&["c"]),
        3 => names(&["m", "p"]),
        4 => vec![Seg::Name("m"), Seg::Key(Box::new(key(dice)))],
        5 => names(&["n", "p", "q"]),
        6 => vec![Seg::Name("n"), Seg::Key(Box::new(key(dice))), Seg::Name("q")],
        7 => vec![Seg::Name("l"), Seg::Index(dice.below(3) as usize)],
        8 => vec![Seg::Name("l"), Seg::Key(Box::new(state(&["a"])))],
        _ => names(&["m", "q"]),
    }
}

fn root(dice: &mut Dice, within: Within) -> Root {
    if within.rule && dice.below(5) == 0 { Root::Before } else { Root::State }
}

fn int(dice: &mut Dice, depth: u32, within: Within) -> E {
    let boxed = |dice: &mut Dice| Box::new(int(dice, depth - 1, within));
    match dice.below(if depth == 0 { 6 } else { 10 }) {
        0 => E::Lit(V::Int(dice.below(4) as i64)),
        2 if within.rule && dice.below(4) == 0 => t(&["result", "output"]),
        1 | 2 if within.rule => t(&["intent", "x"]),
        3 => match within.name {
            Some(name) => E::Path(Root::Name(name), Vec::new()),
            None => state(&["b"]),
        },
        6 => E::Add(boxed(dice), boxed(dice)),
        7 => {
            let (a, b) = (E::Path(root(dice, within), segs(dice, within)), state(&["c"]));
            E::Div(Box::new(a), Box::new(b))
        }
        8 => E::Size(Box::new(one(dice, &[state(&["m"]), state(&["l"]), state(&["n", "p"]), state(&["s"])]))),
        9 => E::If(Box::new(truth(dice, depth - 1, within)), boxed(dice), boxed(dice)),
        _ => E::Path(root(dice, within), segs(dice, within)),
    }
}

fn text(dice: &mut Dice, within: Within) -> E {
    match dice.below(3) {
        0 if within.rule => t(&["intent", "k"]),
        1 => state(&["s"]),
        _ => E::Lit(V::text(one(dice, &["p", "q"]))),
    }
}

fn truth(dice: &mut Dice, depth: u32, within: Within) -> E {
    let boxed = |dice: &mut Dice| Box::new(truth(dice, depth - 1, within));
    match dice.below(if depth == 0 { 5 } else { 10 }) {
        0 => E::Has(root(dice, within), segs(dice, within)),
        1 => {
            let item = Box::new(text(dice, within));
            E::In(item, Box::new(one(dice, &[state(&["m"]), state(&["n"]), state(&["l"])])))
        }
        2 => E::In(Box::new(int(dice, 0, within)), Box::new(state(&["l"]))),
        3 => E::Compare("==", Box::new(state(&["s"])), Box::new(text(dice, within))),
        5 | 6 => E::All(boxed(dice), boxed(dice)),
        7 => E::Any(boxed(dice), boxed(dice)),
        8 => E::Not(boxed(dice)),
        9 => E::If(boxed(dice), boxed(dice), boxed(dice)),
        _ => {
            // A literal on both sides would be refused as a constant.
            let left = E::Path(root(dice, within), segs(dice, within));
            let op = one(dice, &["==", "!=", "<", ">=", ">"]);
            E::Compare(op, Box::new(left), Box::new(int(dice, depth.min(1), within)))
        }
    }
}

/// A predicate over the state.
pub(crate) fn predicate(dice: &mut Dice) -> E {
    truth(dice, 2, Within { rule: false, name: None })
}

fn target(dice: &mut Dice, within: Within, list: bool) -> Target {
    let key = TSeg::Index(text(dice, within));
    let of = |field, segs| Target { field, segs };
    if list {
        return match dice.below(3) {
            0 => of("m", vec![TSeg::Name("list")]),
            _ => of("l", Vec::new()),
        };
    }
    match dice.below(12) {
        0 | 1 => of("a", Vec::new()),
        2 => of("b", Vec::new()),
        3 => of("c", Vec::new()),
        4 => of("m", vec![TSeg::Name("p")]),
        5 => of("m", vec![key]),
        6 => of("n", vec![TSeg::Name("p"), TSeg::Name("q")]),
        7 => of("n", vec![key, TSeg::Name("q")]),
        8 => of("l", vec![TSeg::Index(E::Lit(V::Int(dice.below(3) as i64)))]),
        9 => of("l", vec![TSeg::Index(state(&["a"]))]),
        10 => {
            let condition = E::Compare(
                one(dice, &["==", ">"]),
                Box::new(E::Path(Root::Name("x"), Vec::new())),
                Box::new(int(dice, 0, Within { name: Some("x"), ..within })),
            );
            of("l", vec![TSeg::First(condition)])
        }
        _ => of("m", vec![TSeg::Name("q")]),
    }
}

fn step(dice: &mut Dice, within: Within, nested: bool) -> Step {
    let when = (dice.below(5) == 0).then(|| truth(dice, 1, within));
    let optional = dice.below(6) == 0;
    let act = match dice.below(if nested { 12 } else { 14 }) {
        0 | 1 => Act::Append(target(dice, within, true), int(dice, 1, within)),
        2 | 3 => Act::Add(target(dice, within, false), int(dice, 1, within)),
        4 => {
            let gone = [
                Target { field: "m", segs: vec![TSeg::Name("p")] },
                Target { field: "m", segs: vec![TSeg::Index(text(dice, within))] },
                Target { field: "l", segs: vec![TSeg::Index(E::Lit(V::Int(0)))] },
            ];
            Act::Remove(one(dice, &gone))
        }
        5 => {
            let whole = [
                ("m", V::Map(Default::default())),
                ("m", V::map([("p", V::Int(3))])),
                ("l", V::List(vec![V::Int(1), V::Int(3)])),
                ("n", V::map([("p", V::map([("q", V::Int(1))]))])),
                ("n", V::Int(4)),
                ("l", V::Map(Default::default())),
            ];
            let (field, value) = one(dice, &whole);
            Act::Set(Target { field, segs: Vec::new() }, E::Lit(value))
        }
        6 => Act::Set(Target { field: "s", segs: Vec::new() }, text(dice, within)),
        12 | 13 => {
            let inner = Within { name: Some("item"), ..within };
            let steps = (0..=dice.below(2)).map(|_| step(dice, inner, true)).collect();
            let lists = [state(&["l"]), t(&["intent", "l"]), state(&["m", "list"])];
            return Step { when, optional: false, act: Act::Each(one(dice, &lists), steps) };
        }
        _ => Act::Set(target(dice, within, false), int(dice, 1, within)),
    };
    Step { when, optional, act }
}

fn rule(dice: &mut Dice) -> Rule {
    let types = (0..=dice.below(2)).map(|_| one(dice, &TYPES));
    let mut types: Vec<&str> = types.collect();
    types.sort_unstable();
    types.dedup();
    let within = Within { rule: true, name: None };
    let when = match dice.below(4) {
        0 => Some(truth(dice, 2, within)),
        1 => {
            let tool = E::Compare("==", Box::new(t(&["action", "tool"])), Box::new(E::Lit(V::text("pay"))));
            Some(match dice.below(2) {
                0 => tool,
                _ => E::All(Box::new(truth(dice, 1, within)), Box::new(tool)),
            })
        }
        _ => None,
    };
    let mut steps = Vec::new();
    let mut within = within;
    if dice.below(6) == 0 {
        let act = Act::Let("v", int(dice, 1, within));
        steps.push(Step { when: None, optional: false, act });
        within.name = Some("v");
    }
    steps.extend((0..=dice.below(2)).map(|_| step(dice, within, false)));
    Rule { types, when, steps }
}

/// The rules of a pack.
pub(crate) fn rules(dice: &mut Dice) -> Vec<Rule> {
    (0..2 + dice.below(4)).map(|_| rule(dice)).collect()
}

/// The text of a pack with these rules.
pub(crate) fn pack(rules: &[Rule]) -> String {
    let fields: Vec<String> = FIELDS
        .iter()
        .map(|(name, init)| format!("\"{name}\":{{\"init\":\"has(s0.{name}) ? s0.{name} : {init}\"}}"))
        .collect();
    let rules: Vec<String> = rules.iter().map(Rule::text).collect();
    let (fields, rules) = (fields.join(","), rules.join(","));
    format!("{{\"name\":\"model\",\"version\":\"v1\",\"state\":{{{fields}}},\"rules\":[{rules}]}}")
}

fn op(dice: &mut Dice) -> Op {
    let places = [
        "a", "b", "c", "s", "m", "n", "l", "m/p", "m/q", "n/p", "n/p/q", "n/q/q", "l/0", "l/1", "l/7",
        "m/list",
    ];
    let place: Place = one(dice, &places).split('/').map(str::to_owned).collect();
    let value = |dice: &mut Dice| {
        let values = [
            V::Int(0),
            V::Int(2),
            V::Int(3),
            V::text("q"),
            V::Map(Default::default()),
            V::List(vec![V::Int(2)]),
            V::map([("p", V::Int(1))]),
        ];
        one(dice, &values)
    };
    match dice.below(6) {
        0 => Op::Append(place, value(dice)),
        1 => Op::Add(place, V::Int(1)),
        2 => Op::Remove(place),
        _ => Op::Set(place, value(dice)),
    }
}

/// A value to set in a fork.
pub(crate) fn set(dice: &mut Dice) -> (Place, V) {
    loop {
        if let Op::Set(place, value) = op(dice)
            && !place.iter().any(|name| name.parse::<u64>().is_ok())
        {
            return (place, value);
        }
    }
}

/// Something that happens.
pub(crate) fn event(dice: &mut Dice, deltas: bool) -> Event {
    let mut intent = Vec::new();
    for (name, value) in [
        ("x", V::Int(dice.below(4) as i64)),
        ("k", V::text(one(dice, &["p", "q"]))),
        ("l", V::List(vec![V::Int(1), V::Int(dice.below(3) as i64)])),
    ] {
        match dice.below(20) {
            0 => {}
            1 => intent.push((name, V::text("q"))),
            _ => intent.push((name, value)),
        }
    }
    let mut t = vec![("intent", V::map(intent))];
    let action = V::map([("tool", V::text(one(dice, &["pay", "ask"])))]);
    let mut type_name = one(dice, &TYPES);
    let mut note = None;
    match dice.below(40) {
        0 | 1 => {
            (type_name, note) = ("action.request", Some("call_without_result"));
            t.push(("action", action));
        }
        2 => note = Some("message_unreadable"),
        _ if type_name == "action.result" => {
            // An ambiguous result has neither call nor answer that can be read.
            if dice.below(8) == 0 {
                note = Some("result_ambiguous");
                t.extend([("action", V::Gap), ("result", V::Gap)]);
            } else {
                let output = V::Int(dice.below(4) as i64);
                let result = V::map([("output", output), ("status", V::text("ok"))]);
                t.extend([("action", action), ("result", result)]);
            }
        }
        _ => {}
    }
    let delta = if deltas { (0..dice.below(4)).map(|_| op(dice)).collect() } else { Vec::new() };
    Event { type_name, t: V::map(t), delta, note }
}
