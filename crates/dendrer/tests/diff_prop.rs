//! Diff against a slow oracle that compares every pair as plain JSON, on runs that share a beginning and runs that do not.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use std::ops::ControlFlow;

use dendrer::Trace;
use dendrer::diff::{DiffAlign, DiffChange, DiffKind, DiffReport, DiffSides, DiffTerms, Pair, States, diff};
use dendrer_object::record::{Author, Body, Header, Kind as RecordKind, Link, Record, Rel, Seed, cut};
use dendrer_object::{Delta, Digest, Pointer, Timestamp, Value, json};
use dendrer_store::prelude::*;
use dendrer_store::{Memory, Shared};
use dendrer_testkit::{Dice, info, run_name, store_of};
use proptest::prelude::*;

fn parse(text: &str) -> Value {
    json::parse_door(text.as_bytes()).unwrap()
}

/// Writes records of runs and of forks, with the states that their deltas make. What only the kernel may write is
/// written too.
struct Scribe {
    records: Vec<Record>,
    dice: Dice,
}

/// The end of a run that is written.
#[derive(Clone)]
struct End {
    run: &'static str,
    tick: u64,
    id: Digest,
    state: Value,
    /// The state after each tick, the beginning first.
    states: Vec<Value>,
}

impl Scribe {
    fn new() -> Scribe {
        Scribe { records: Vec::new(), dice: Dice(7) }
    }

    fn seal(&mut self, change: impl FnOnce(&mut Header), content: &Value) -> Record {
        let mut header = Header {
            store: info(3).id,
            kind: RecordKind::Transition,
            run: None,
            tick: None,
            prev: None,
            head: None,
            type_name: None,
            author: Author::Agent,
            ts: Timestamp::from_ms(1_771_867_265_000 + self.dice.below(1 << 20)),
            links: Vec::new(),
            pack: None,
        };
        change(&mut header);
        let mut seed = [0; 16];
        seed[..8].copy_from_slice(&self.dice.next().to_le_bytes());
        let fields = cut(content.as_object().unwrap());
        let record = Record::seal(header, Body::commit(fields, Seed(seed)).unwrap()).unwrap();
        self.records.push(record.clone());
        record
    }

    fn begin(&mut self, run: &'static str, state: &str) -> End {
        let state = parse(state);
        let content = Value::record([
            ("goal", Value::from("a goal")),
            ("kernel", Value::from(1u64)),
            ("state", state.clone()),
            ("state_root", Value::from(state.digest())),
        ]);
        let change = |header: &mut Header| {
            (header.kind, header.author) = (RecordKind::Run, Author::Kernel);
            (header.run, header.tick) = (Some(run_name(run)), Some(0));
        };
        let id = self.seal(change, &content).id();
        End { run, tick: 0, id, states: vec![state.clone()], state }
    }

    /// Begins a fork, with its marker.
    fn fork(&mut self, parent: &End, at: u64, run: &'static str, marker: &str) -> End {
        let record = self.records.iter().find(|record| {
            let header = record.header();
            header.run == Some(run_name(parent.run)) && header.tick == Some(at)
        });
        let prev = record.unwrap().id();
        let begin = |header: &mut Header| {
            (header.kind, header.author) = (RecordKind::Run, Author::Kernel);
            (header.run, header.prev) = (Some(run_name(run)), Some(prev));
        };
        let id = self.seal(begin, &parse(r#"{"kernel":1}"#)).id();
        let states = parent.states[..=at as usize].to_vec();
        let mut end = End { run, tick: at, id, state: states[at as usize].clone(), states };
        self.step(
            &mut end,
            &format!(r#"{{"type":"run.fork","author":"kernel","agent_id":"kernel",{marker}}}"#),
        );
        end
    }

    /// Adds a transition: its content as JSON, with its type, and its author where that is not the agent.
    fn step(&mut self, end: &mut End, content: &str) {
        let mut members = parse(content).as_object().unwrap().clone();
        let type_name = members.remove("type").unwrap().as_str().unwrap().parse().unwrap();
        let author = members.remove("author").map(|author| author.as_str().unwrap().parse().unwrap());
        let delta = members.get("delta").cloned().unwrap_or_else(|| Value::array([]));
        let state = Delta::from_value(&delta).unwrap().apply(&end.state).unwrap();
        members.set("delta", delta);
        members.set("seq", Value::from(end.tick + 1));
        members.set("state_root", Value::from(state.digest()));
        // A measurement, which makes no difference.
        members.set("metrics", Value::record([("ms", Value::from(self.dice.below(1000)))]));
        let (run, tick, prev) = (end.run, end.tick + 1, end.id);
        let change = |header: &mut Header| {
            (header.run, header.tick, header.prev) = (Some(run_name(run)), Some(tick), Some(prev));
            header.type_name = Some(type_name);
            header.author = author.unwrap_or(Author::Agent);
            header.links = vec![Link { rel: Rel::Evidence, hash: prev }];
        };
        end.id = self.seal(change, &Value::Object(members)).id();
        end.tick = tick;
        end.states.push(state.clone());
        end.state = state;
    }

    fn store(&self) -> Shared {
        store_of(info(3), self.records.clone())
    }
}

/// Transitions that differ from each other in one way or another.
const STEPS: [&str; 17] = [
    r#"{"type":"plan.update","agent_id":"p","intent":{"confidence":0.5,"description":"go"}}"#,
    r#"{"type":"plan.update","agent_id":"p","intent":{"confidence":0.6,"description":"go"}}"#,
    // The same after rounding.
    r#"{"type":"plan.update","agent_id":"p","intent":{"confidence":0.50004,"description":"go"}}"#,
    // Another one after rounding, by one in the last decimal.
    r#"{"type":"plan.update","agent_id":"p","intent":{"confidence":0.5006,"description":"go"}}"#,
    r#"{"type":"plan.update","agent_id":"p","intent":{"description":"go"}}"#,
    // Values of the state are compared as they are stored, and never rounded.
    r#"{"type":"memory.write","agent_id":"p","delta":[{"set":"/a","value":0.1230001}]}"#,
    r#"{"type":"memory.write","agent_id":"p","delta":[{"set":"/a","value":0.1229999}]}"#,
    r#"{"type":"plan.update","agent_id":"q","intent":{"confidence":0.5,"description":"stay"}}"#,
    r#"{"type":"action.request","agent_id":"p","action":{"params":{"max":120,"x":[1,2]},"tool":"t"},"intent":{"confidence":0.5}}"#,
    r#"{"type":"action.request","agent_id":"p","action":{"params":{"max":90,"x":[1]},"tool":"t"}}"#,
    r#"{"type":"action.request","agent_id":"p","action":{"call_id":"c1","params":{"max":90,"x":[1]},"tool":"t"},"goal_id":"g"}"#,
    r#"{"type":"memory.write","agent_id":"p","delta":[{"set":"/a","value":1},{"set":"/b","value":{"c":1}}]}"#,
    r#"{"type":"memory.write","agent_id":"p","delta":[{"set":"/b","value":{"c":1}},{"set":"/a","value":1}]}"#,
    r#"{"type":"memory.write","agent_id":"p","delta":[{"set":"/b","value":{"c":2,"d":null}},{"add":"/n","value":1}]}"#,
    r#"{"type":"memory.write","agent_id":"p","delta":[{"append":"/list","value":1}]}"#,
    r#"{"type":"kernel.anomaly","author":"kernel","agent_id":"kernel","anomalies":[{"kind":"k","message":"m"}],"delta":[{"append":"/seen","value":"k"}]}"#,
    r#"{"type":"action.result","author":"runtime","agent_id":"p","result":{"output":{"left":3},"status":"ok"}}"#,
];

const STATE: &str = r#"{"a":0,"n":0,"b":{}}"#;

/// Two runs: what they share, and what each has behind it. `None` for runs that share nothing.
#[derive(Debug, Clone)]
struct Runs {
    shared: Option<Vec<usize>>,
    a: Vec<usize>,
    b: Vec<usize>,
    /// Which values are withheld: tick and place, by number, on each side.
    closed: Vec<(bool, usize, usize)>,
}

const PLACES: [&str; 5] =
    ["/delta", "/intent/confidence", "/intent/description", "/action/params", "/agent_id"];

fn runs(closed: usize) -> impl Strategy<Value = Runs> {
    let steps = |most| prop::collection::vec(0..STEPS.len(), 0..most);
    let shared = prop_oneof![1 => Just(None), 3 => steps(6).prop_map(Some)];
    // The right one is mostly the left one with a few changes: otherwise nothing would ever line up.
    let edits = prop::collection::vec((0..3usize, 0..16usize, 0..STEPS.len()), 0..4);
    let closed = prop::collection::vec((any::<bool>(), 0..12usize, 0..PLACES.len()), 0..=closed);
    (shared, steps(12), edits, closed).prop_map(|(shared, a, edits, closed)| {
        let mut b = a.clone();
        for (how, at, step) in edits {
            match how {
                0 if at < b.len() => b[at] = step,
                1 if at <= b.len() => b.insert(at, step),
                2 if at < b.len() => drop(b.remove(at)),
                _ => {}
            }
        }
        Runs { shared, a, b, closed }
    })
}

/// Writes two runs, `a` and `b`. Where they share something, `b` is a fork.
fn write(runs: &Runs) -> (Shared, End, End) {
    let mut scribe = Scribe::new();
    let mut a = scribe.begin("a", STATE);
    runs.shared.iter().flatten().for_each(|step| scribe.step(&mut a, STEPS[*step]));
    let at = a.tick;
    runs.a.iter().for_each(|step| scribe.step(&mut a, STEPS[*step]));
    let mut b = match &runs.shared {
        Some(_) => scribe.fork(&a, at, "b", r#""fork":{"fork_reason":"another way"}"#),
        None => scribe.begin("b", STATE),
    };
    runs.b.iter().for_each(|step| scribe.step(&mut b, STEPS[*step]));
    for (in_b, tick, place) in &runs.closed {
        let run = run_name(if *in_b { "b" } else { "a" });
        for record in &mut scribe.records {
            if record.header().run.as_ref() == Some(&run)
                && record.header().tick == Some(*tick as u64)
                && *tick > 0
            {
                *record = record.without(&[PLACES[*place].parse().unwrap()]);
            }
        }
    }
    (scribe.store(), a, b)
}

fn ask(store: &Shared, a: &str, b: &str, change: impl FnOnce(&mut DiffTerms)) -> (DiffReport, Vec<Pair>) {
    ask_in((store, a), (store, b), change)
}

fn ask_in(
    a: (&Shared, &str),
    b: (&Shared, &str),
    change: impl FnOnce(&mut DiffTerms),
) -> (DiffReport, Vec<Pair>) {
    let open = |(store, name): (_, &str)| Trace::open(store, &run_name(name)).unwrap();
    let (a, b) = (open(a), open(b));
    let mut question = DiffTerms::new(&a, &b);
    change(&mut question);
    let mut pairs = Vec::new();
    let report = diff(&a, &b, &question, &mut |pair| {
        pairs.push(pair.clone());
        ControlFlow::Continue(())
    });
    (report.unwrap(), pairs)
}

fn tick(record: Option<&Record>) -> Option<u64> {
    record.map(|record| record.header().tick.unwrap())
}

fn ticks(pair: &Pair) -> (Option<u64>, Option<u64>) {
    (tick(pair.a.as_ref()), tick(pair.b.as_ref()))
}

/// What is compared of a transition, written out anew: everything but the confidence, and the confidence.
fn plain(record: &Record, closed: &[Pointer]) -> (Value, Option<String>) {
    let content = record.content();
    let mut members = content.as_object().unwrap().clone();
    for name in ["metrics", "seq", "state_root", "goal_id"] {
        members.remove(name);
    }
    members.set("author", Value::from(record.header().author.as_str()));
    if let Some(Value::Object(action)) = members.get("action").cloned() {
        let mut action = action;
        action.remove("call_id");
        members.set("action", Value::Object(action));
    }
    // None of the steps writes two places one of which lies in the other, so their order is no matter.
    let mut ops: Vec<Value> = members
        .remove("delta")
        .iter()
        .flat_map(|d| d.as_array().unwrap().iter().cloned().collect::<Vec<_>>())
        .collect();
    ops.sort_by_key(Value::to_string);
    members.set("delta", Value::array(ops));
    let mut confidence = None;
    if let Some(Value::Object(intent)) = members.get("intent").cloned() {
        let mut intent = intent;
        confidence = intent.remove("confidence").map(|value| format!("{:.3}", value.as_f64().unwrap()));
        match intent.is_empty() {
            true => drop(members.remove("intent")),
            false => members.set("intent", Value::Object(intent)),
        }
    }
    for place in closed {
        if place.as_str() == "/intent/confidence" {
            confidence = None;
        }
        let names: Vec<String> = place.tokens().map(|name| name.into_owned()).collect();
        let blank = match names.as_slice() {
            [_] => Value::Null,
            [outer, inner] => {
                let mut outer = members.get(outer).and_then(Value::as_object).cloned().unwrap_or_default();
                outer.set(inner, Value::Null);
                Value::Object(outer)
            }
            _ => unreachable!(),
        };
        members.set(&names[0], blank);
    }
    (Value::Object(members), confidence)
}

fn closed_places(a: &Record, b: &Record) -> Vec<Pointer> {
    let closed = |record: &Record| -> Vec<Pointer> {
        let body = record.body();
        let fields = body.fields().iter().filter(|field| body.text(field).is_none());
        fields.map(|field| field.pointer.clone()).collect()
    };
    let mut places = [closed(a), closed(b)].concat();
    places.sort();
    places.dedup();
    places
}

/// The kinds of a pair, and how many places cannot be compared.
fn oracle(a: &Record, b: &Record) -> (Vec<DiffKind>, usize) {
    if a.header().type_name != b.header().type_name {
        return (vec![DiffKind::Structural], 0);
    }
    let closed = closed_places(a, b);
    let (x, y) = (plain(a, &closed), plain(b, &closed));
    let mut kinds = Vec::new();
    kinds.extend((x.0 != y.0).then_some(DiffKind::Semantic));
    kinds.extend((x.1 != y.1).then_some(DiffKind::Confidence));
    (kinds, closed.len())
}

/// All transitions of a run in order, without markers, behind a tick.
fn transitions(store: &Shared, run: &str, behind: u64) -> Vec<Record> {
    let trace = Trace::open(store, &run_name(run)).unwrap();
    let all = (behind + 1..=trace.tip()).map(|tick| trace.record(tick).unwrap());
    all.filter(|record| record.header().type_name.as_ref().unwrap().as_str() != "run.fork").collect()
}

fn swapped(pair: &Pair) -> Pair {
    let changes = pair.changes.iter().cloned().map(swap_change).collect();
    let hidden = pair.hidden.iter().cloned().map(|mut hidden| {
        (hidden.in_a, hidden.in_b) = (hidden.in_b, hidden.in_a);
        hidden
    });
    Pair {
        a: pair.b.clone(),
        b: pair.a.clone(),
        kinds: pair.kinds.clone(),
        changes,
        hidden: hidden.collect(),
        steps: None,
    }
}

fn swap_change(change: DiffChange) -> DiffChange {
    let sides = match change.sides {
        DiffSides::Values(a, b) => DiffSides::Values(b, a),
        DiffSides::Writes(a, b) => DiffSides::Writes(b, a),
    };
    DiffChange { sides, ..change }
}

fn same(a: &[Pair], b: &[Pair]) {
    let key = |pair: &Pair| (ticks(pair), pair.kinds.clone(), pair.changes.clone(), pair.hidden.clone());
    assert_eq!(a.iter().map(key).collect::<Vec<_>>(), b.iter().map(key).collect::<Vec<_>>());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// D-49, D-50, D-51.
    #[test]
    fn every_pair_is_what_comparing_plain_json_says(runs in runs(2)) {
        let (store, a, b) = write(&runs);
        let (report, pairs) = ask(&store, "a", "b", |_| {});
        let shared = runs.shared.as_ref().map(|steps| steps.len() as u64);
        prop_assert_eq!(report.shared, shared);
        let behind = shared.unwrap_or(0);
        let (left, right) = (transitions(&store, "a", behind), transitions(&store, "b", behind));
        let mut expected = Vec::new();
        let (mut hidden, mut counts) = (0, [0; 4]);
        for at in 0..left.len().max(right.len()) {
            let (kinds, closed) = match (left.get(at), right.get(at)) {
                (Some(a), Some(b)) => oracle(a, b),
                _ => (vec![DiffKind::Structural], 0),
            };
            kinds.iter().for_each(|kind| counts[*kind as usize] += 1);
            hidden += closed as u64;
            if !kinds.is_empty() || closed > 0 {
                expected.push((tick(left.get(at)), tick(right.get(at)), kinds, closed));
            }
        }
        let found: Vec<_> = pairs
            .iter()
            .map(|pair| (ticks(pair).0, ticks(pair).1, pair.kinds.clone(), pair.hidden.len()))
            .collect();
        prop_assert_eq!(found, expected);
        let beginning = if shared.is_none() { 1 } else { behind };
        prop_assert_eq!(report.pairs, beginning + left.len().min(right.len()) as u64);
        // Nothing is known of a state behind a change that was withheld, but that it has another root, or the same.
        let outcome = report.outcome.clone().unwrap();
        counts[DiffKind::Outcome as usize] = u64::from(matches!(outcome.states, States::Differ(_)));
        prop_assert_eq!(report.counts, counts);
        match &outcome.states {
            States::Equal => prop_assert_eq!(&a.state, &b.state),
            States::Differ(changes) => {
                prop_assert_ne!(&a.state, &b.state);
                for change in changes {
                    let path: Pointer = change.path.as_str().strip_prefix("/state").unwrap().parse().unwrap();
                    let sides = (path.get(&a.state).cloned(), path.get(&b.state).cloned());
                    prop_assert_eq!(&change.sides, &DiffSides::Values(sides.0, sides.1));
                }
            }
            States::Unknown { .. } => {
                prop_assert!(runs.closed.iter().any(|(_, _, place)| PLACES[*place] == "/delta"));
                prop_assert_ne!(&a.state, &b.state);
                hidden += 1;
            }
        }
        prop_assert_eq!(report.hidden, hidden);
    }

    /// The same pairs with the sides swapped, whichever way they are lined up.
    #[test]
    fn swapping_the_runs_swaps_the_sides_and_nothing_else(
        runs in runs(2),
        content in any::<bool>(),
        whole in 0..3usize,
    ) {
        // Values may be withheld from one place and not from another.
        let (less, ..) = write(&runs);
        let (full, ..) = write(&Runs { closed: Vec::new(), ..runs });
        let (of_a, of_b) = [(&less, &less), (&full, &less), (&less, &full)][whole];
        let align = if content { DiffAlign::Content } else { DiffAlign::Tick };
        let change = |question: &mut DiffTerms| question.align = align;
        let (report, pairs) = ask_in((of_a, "a"), (of_b, "b"), change);
        let (mirrored, other) = ask_in((of_b, "b"), (of_a, "a"), change);
        same(&pairs, &other.iter().map(swapped).collect::<Vec<_>>());
        prop_assert_eq!(
            (report.shared, report.pairs, report.differ, report.unclear, report.counts, report.hidden),
            (mirrored.shared, mirrored.pairs, mirrored.differ, mirrored.unclear, mirrored.counts, mirrored.hidden)
        );
        prop_assert_eq!((report.alone.0, report.alone.1), (mirrored.alone.1, mirrored.alone.0));
        prop_assert_eq!((report.a, report.b), (mirrored.b, mirrored.a));
        let states = |report: &DiffReport| report.outcome.clone().unwrap().states;
        match (states(&report), states(&mirrored)) {
            (States::Differ(x), States::Differ(y)) => {
                prop_assert_eq!(x, y.into_iter().map(swap_change).collect::<Vec<_>>());
            }
            (States::Unknown { .. }, States::Unknown { .. }) => {}
            (x, y) => prop_assert_eq!(x, y),
        }
        let steps = |report: &DiffReport| report.shift.map(|shift| shift.steps);
        prop_assert_eq!(steps(&report), steps(&mirrored));
        prop_assert_eq!(report.shift.map(|s| s.in_b), mirrored.shift.map(|s| !s.in_b));
    }

    /// Each transition stands in one pair, in order, and as many as can be are paired with one that means the same.
    #[test]
    fn content_is_lined_up_by_the_longest_common_sequence(runs in runs(0)) {
        let (store, ..) = write(&runs);
        let (report, pairs) = ask(&store, "a", "b", |question| question.align = DiffAlign::Content);
        let behind = report.shared.unwrap_or(0);
        let (left, right) = (transitions(&store, "a", behind), transitions(&store, "b", behind));
        let alike = |a: &Record, b: &Record| oracle(a, b) == (Vec::new(), 0);
        let mut row = vec![0u64; right.len() + 1];
        for a in &left {
            let mut before = 0;
            for (at, b) in right.iter().enumerate() {
                let above = row[at + 1];
                row[at + 1] = if alike(a, b) { before + 1 } else { above.max(row[at]) };
                before = above;
            }
        }
        let longest = row[right.len()];
        let equal = report.types.values().map(|tally| tally.equal).sum::<u64>();
        let beginning = u64::from(report.shared.is_none());
        prop_assert_eq!(equal - beginning, longest);
        let paired = report.types.values().map(|tally| tally.pairs).sum::<u64>() - beginning;
        let both = paired - report.alone.0 - report.alone.1;
        prop_assert_eq!((both + report.alone.0, both + report.alone.1), (left.len() as u64, right.len() as u64));
        let of_a: Vec<u64> = pairs.iter().filter_map(|pair| ticks(pair).0).collect();
        let of_b: Vec<u64> = pairs.iter().filter_map(|pair| ticks(pair).1).collect();
        prop_assert!(of_a.is_sorted() && of_b.is_sorted());
        // What is paired and not equal is of one type, so that what is changed is not taken for another step.
        for pair in pairs {
            if let (Some(a), Some(b)) = (&pair.a, &pair.b) {
                prop_assert_eq!(&a.header().type_name, &b.header().type_name);
            }
        }
    }
}

/// Two runs of some steps each, and nothing shared.
fn pair_of(a: &[&str], b: &[&str]) -> Shared {
    let mut scribe = Scribe::new();
    for (name, steps) in [("a", a), ("b", b)] {
        let mut end = scribe.begin(name, STATE);
        steps.iter().for_each(|step| scribe.step(&mut end, step));
    }
    scribe.store()
}

/// The differences of the first transitions of two runs, as text.
fn first_changes(a: &str, b: &str, change: impl FnOnce(&mut DiffTerms)) -> Vec<String> {
    let (_, pairs) = ask(&pair_of(&[a], &[b]), "a", "b", change);
    let side = |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), Value::to_string);
    let shown = |change: &DiffChange| match &change.sides {
        DiffSides::Values(a, b) => {
            format!("{} {} {} {}", change.kind.as_str(), change.path, side(a), side(b))
        }
        DiffSides::Writes(a, b) => format!(
            "{} {} {} {}",
            change.kind.as_str(),
            change.path,
            Delta(a.clone()).to_value(),
            Delta(b.clone()).to_value()
        ),
    };
    pairs.first().map_or(Vec::new(), |pair| pair.changes.iter().map(shown).collect())
}

#[test]
fn differences_are_named_by_place_and_only_where_there_are_some() {
    let check = |a: &str, b: &str, expected: &[&str]| {
        let with = |inner: &str| format!(r#"{{"type":"action.request","agent_id":"p",{inner}}}"#);
        assert_eq!(first_changes(&with(a), &with(b), |_| {}), expected, "{a} {b}");
    };
    check(
        r#""action":{"params":{"max":120,"who":"x"},"tool":"t"},"intent":{"confidence":0.84}"#,
        r#""action":{"params":{"max":90},"tool":"t"},"intent":{"confidence":0.79,"why":1}"#,
        &[
            "semantic /action/params/max 120 90",
            "semantic /action/params/who \"x\" -",
            "semantic /intent - {\"why\":1}",
            "confidence /intent/confidence 0.84 0.79",
        ],
    );
    // Rounded as confidences are, and of a call its id is no matter.
    check(
        r#""action":{"call_id":"c1","calls":[{"call_id":"x","tool":"t"}]},"intent":{"confidence":0.84}"#,
        r#""action":{"call_id":"c2","calls":[{"call_id":"y","tool":"t"}]},"intent":{"confidence":0.8404}"#,
        &[],
    );
    // The clock is not compared, and notes about it are not either.
    check(
        r#""anomalies":[{"by_ms":4,"kind":"clock_went_back"}],"context":{"hash":"h1"},"goal_id":"g1""#,
        r#""context":{"hash":"h2"},"goal_id":"g2""#,
        &[],
    );
    check(
        r#""delta":[{"set":"/b","value":{"c":1,"d":2}},{"add":"/n","value":1}]"#,
        r#""delta":[{"add":"/n","value":2},{"set":"/b","value":{"c":1,"d":3}},{"set":"/a","value":5}]"#,
        &[
            "semantic /state/a - 5",
            "semantic /state/b/d 2 3",
            "semantic /state/n [{\"add\":\"/n\",\"value\":1}] [{\"add\":\"/n\",\"value\":2}]",
        ],
    );
    // In another order the same operations can come to something else.
    check(
        r#""delta":[{"set":"/b","value":{}},{"set":"/b/c","value":1}]"#,
        r#""delta":[{"set":"/b/c","value":1},{"set":"/b","value":{}}]"#,
        &[
            "semantic /state [{\"set\":\"/b\",\"value\":{}},{\"set\":\"/b/c\",\"value\":1}] [{\"set\":\"/b/c\",\"value\":1},{\"set\":\"/b\",\"value\":{}}]",
        ],
    );
}

#[test]
fn places_are_left_out_or_asked_for() {
    let a = r#"{"type":"memory.write","agent_id":"p","intent":{"confidence":0.5,"description":"x"},"delta":[{"set":"/b","value":{"c":1,"d":1}},{"set":"/a","value":1}]}"#;
    let b = r#"{"type":"memory.write","agent_id":"q","intent":{"confidence":0.6,"description":"y"},"delta":[{"set":"/b","value":{"c":2,"d":2}},{"set":"/a","value":2}]}"#;
    let places = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<Pointer>>();
    let ignoring = |texts: &[&str]| first_changes(a, b, |question| question.ignore = places(texts));
    assert_eq!(
        ignoring(&["/agent_id", "/state/b/c", "/intent"]),
        ["semantic /state/a 1 2", "semantic /state/b/d 1 2"]
    );
    assert_eq!(
        ignoring(&["/agent_id", "/intent/description", "/state"]),
        ["confidence /intent/confidence 0.5 0.6"]
    );
    assert_eq!(
        first_changes(a, b, |question| question.path = Some("/state/b".parse().unwrap())),
        ["semantic /state/b/c 1 2", "semantic /state/b/d 1 2"]
    );
    // Of another type, what lies in the place is what counts.
    let other = r#"{"type":"plan.update","agent_id":"p","delta":[{"set":"/a","value":1}]}"#;
    let (report, pairs) =
        ask(&pair_of(&[a], &[other]), "a", "b", |question| question.path = Some("/state/a".parse().unwrap()));
    assert!(!report.differs() && pairs.is_empty());
    let (report, _) =
        ask(&pair_of(&[a], &[other]), "a", "b", |question| question.path = Some("/state/b".parse().unwrap()));
    assert_eq!(report.counts, [1, 0, 0, 1]);
}

/// D-51: the same moment has another tick behind a marker, wherever the kernel wrote it down.
#[test]
fn what_the_kernel_writes_of_ticks_and_refusals_makes_no_difference_behind_a_marker() {
    let mut scribe = Scribe::new();
    let mut a = scribe.begin("a", r#"{"n":0}"#);
    scribe.step(&mut a, STEPS[0]);
    let mut b = scribe.fork(&a, 1, "b", r#""fork":{"fork_reason":"again"}"#);
    for (end, refusal) in [(&mut a, "1"), (&mut b, "2")] {
        let tick = end.tick + 1;
        let entry = format!(r#""kind":"forged_type","message":"m","refusal":"sha256:{refusal}""#);
        scribe.step(
            end,
            &format!(
                r#"{{"type":"kernel.anomaly","author":"kernel","agent_id":"kernel","anomalies":[{{{entry}}}],"delta":[{{"append":"/kernel_anomalies","value":{{{entry},"tick":{tick}}}}},{{"set":"/policy/violated","value":{{"rule":"r","tick":{tick}}}}}]}}"#
            ),
        );
    }
    let store = scribe.store();
    let (report, pairs) = ask(&store, "a", "b", |_| {});
    assert!(pairs.is_empty() && !report.differs(), "{pairs:?} {report:?}");
    assert_eq!((report.pairs, report.shared), (2, Some(1)));
    assert_eq!((report.a, report.b), (Some((1, 2)), Some((1, 3))));
    let markers: Vec<u64> = report.markers.1.iter().map(|marker| marker.tick).collect();
    assert_eq!((report.markers.0.len(), markers), (0, vec![2]));
    // At another moment it is another state.
    let mut scribe = Scribe::new();
    let violated = |tick: u64| {
        format!(
            r#"{{"type":"plan.update","agent_id":"p","delta":[{{"set":"/policy/violated","value":{{"rule":"r","tick":{tick}}}}}]}}"#
        )
    };
    let mut a = scribe.begin("a", r#"{"n":0}"#);
    scribe.step(&mut a, &violated(1));
    scribe.step(&mut a, STEPS[0]);
    let mut b = scribe.begin("b", r#"{"n":0}"#);
    scribe.step(&mut b, STEPS[0]);
    scribe.step(&mut b, &violated(2));
    let (report, _) = ask(&scribe.store(), "a", "b", |_| {});
    let States::Differ(changes) = report.outcome.unwrap().states else { panic!("they differ") };
    assert_eq!(changes[0].path.as_str(), "/state/policy/violated/tick");
    assert_eq!(changes[0].sides, DiffSides::Values(Some(1u64.into()), Some(2u64.into())));
}

#[test]
fn a_marker_that_changes_the_state_is_a_pair_of_its_own() {
    let mut scribe = Scribe::new();
    let mut a = scribe.begin("a", STATE);
    scribe.step(&mut a, STEPS[0]);
    let mut b = scribe.fork(&a, 1, "b", r#""fork":{},"delta":[{"set":"/a","value":9}]"#);
    scribe.step(&mut a, STEPS[16]);
    scribe.step(&mut b, STEPS[16]);
    let (report, pairs) = ask(&scribe.store(), "a", "b", |_| {});
    assert_eq!((pairs.len(), report.alone), (1, (0, 1)));
    assert_eq!(pairs[0].changes[0].path.as_str(), "/state/a");
    assert_eq!((report.counts, report.differ), ([1, 0, 0, 1], 1));
    assert_eq!(report.outcome.unwrap().ticks, (2, 3));
}

#[test]
fn a_part_of_the_left_run_is_compared_with_what_stands_beside_it() {
    let mut scribe = Scribe::new();
    let mut a = scribe.begin("a", STATE);
    (0..4).for_each(|_| scribe.step(&mut a, STEPS[0]));
    let mut b = scribe.fork(&a, 2, "b", r#""fork":{}"#);
    [11, 0, 1, 7].iter().for_each(|step| scribe.step(&mut a, STEPS[*step]));
    [0, 0, 11, 1, 1, 9, 10].iter().for_each(|step| scribe.step(&mut b, STEPS[*step]));
    let store = scribe.store();
    let range = |from: Option<u64>, to: Option<u64>| {
        let (report, pairs) = ask(&store, "a", "b", |question| (question.from, question.to) = (from, to));
        let listed: Vec<_> = pairs.iter().map(ticks).collect();
        (report.a, report.b, report.pairs, listed, report.outcome.unwrap().ticks)
    };
    let all = vec![(Some(6), Some(7)), (Some(8), Some(9)), (None, Some(10))];
    assert_eq!(range(None, None), (Some((1, 8)), Some((1, 10)), 8, all, (8, 10)));
    assert_eq!(range(Some(2), Some(6)), (Some((2, 6)), Some((2, 7)), 5, vec![(Some(6), Some(7))], (6, 7)));
    assert_eq!(range(Some(7), Some(7)), (Some((7, 7)), Some((8, 8)), 1, vec![], (7, 8)));
    assert_eq!(range(Some(1), Some(2)), (Some((1, 2)), Some((1, 2)), 2, vec![], (2, 2)));
    // The ends of the runs may be set apart.
    let (report, pairs) = ask(&store, "a", "b", |question| question.ends = (6, 5));
    assert_eq!((report.pairs, report.alone, pairs.len()), (4, (2, 0), 2));
    let (report, pairs) = ask(&store, "a", "a", |question| question.ends = (3, 5));
    assert_eq!((report.shared, report.pairs, report.alone, pairs.len()), (Some(3), 3, (0, 2), 2));
}

#[test]
fn a_run_has_no_ticks_behind_its_end() {
    let store = pair_of(&[STEPS[0]], &[STEPS[0], STEPS[8]]);
    let open = |name| Trace::open(&store, &run_name(name)).unwrap();
    let (a, b) = (open("a"), open("b"));
    let question = DiffTerms { ends: (1, 9), to: Some(7), ..DiffTerms::new(&a, &b) };
    let error = diff(&a, &b, &question, &mut |_| ControlFlow::Continue(())).unwrap_err();
    assert_eq!(error.to_string(), "b has ticks 1..2, there is no tick 9");
    let question = DiffTerms { to: Some(7), ..DiffTerms::new(&a, &b) };
    let report = diff(&a, &b, &question, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((report.a, report.b, report.alone), (Some((0, 1)), Some((0, 1)), (0, 0)));
}

#[test]
fn an_inserted_step_is_seen_and_content_lines_up_what_follows() {
    let same: Vec<&str> = [0, 8, 16, 11, 14, 7].iter().map(|step| STEPS[*step]).collect();
    for (inserted, shift) in [(vec![STEPS[15]], 1), (vec![STEPS[15], STEPS[10]], 2)] {
        let longer: Vec<&str> = [&same[..2], &inserted, &same[2..]].concat();
        let store = pair_of(&same, &longer);
        let (report, _) = ask(&store, "a", "b", |_| {});
        let found = report.shift.unwrap();
        assert_eq!((found.ticks, found.steps, found.in_b), ((3, 3), shift, true));
        let (report, pairs) = ask(&store, "a", "b", |question| question.align = DiffAlign::Content);
        assert_eq!((report.alone, report.counts[0]), ((0, shift), shift));
        assert_eq!(ticks(&pairs[0]), (None, Some(3)));
        let (report, _) = ask(&store, "b", "a", |_| {});
        assert!(!report.shift.unwrap().in_b);
    }
    let (report, _) = ask(&pair_of(&[STEPS[0], STEPS[8]], &[STEPS[16], STEPS[11]]), "a", "b", |_| {});
    assert_eq!(report.shift, None);
}

/// D-190, and what a diff of two long runs with a common beginning costs: of a beginning of 2,000 ticks it reads those that
/// halving looks at. The others are not even in the store.
#[test]
fn a_shared_beginning_is_not_read() {
    let mut scribe = Scribe::new();
    let mut a = scribe.begin("a", STATE);
    (0..2000).for_each(|_| scribe.step(&mut a, STEPS[0]));
    let mut b = scribe.fork(&a, 1990, "b", r#""fork":{}"#);
    scribe.step(&mut b, STEPS[7]);
    let (mut low, mut high) = (0u64, 1992);
    let mut looked_at = vec![1992];
    while high - low > 1 {
        let middle = (low + high) / 2;
        looked_at.push(middle);
        if middle <= 1990 { low = middle } else { high = middle }
    }
    assert!(looked_at.len() <= 12, "{looked_at:?}");
    let tree = scribe.store().tree();
    let parts = (0..).zip(scribe.records).filter(|(_, record)| {
        let tick = record.header().tick.unwrap_or(0);
        tick == 0 || tick > 1990 || looked_at.contains(&tick)
    });
    let store = Shared::new(Box::new(Memory::of_parts(info(3), tree, parts.collect())));
    let kinds = vec![DiffKind::Structural, DiffKind::Semantic, DiffKind::Confidence];
    let (report, pairs) = ask(&store, "a", "b", |question| question.kinds = kinds);
    assert_eq!(report.shared, Some(1990));
    assert_eq!((report.pairs, report.alone, pairs.len()), (1991, (9, 0), 10));
}
