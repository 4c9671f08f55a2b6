//! Rank of words (design, section 14.2): an adversary that writes agent lines alone beside the same run without it, and honest
//! histories beside a slow definition.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;

use dendrer_kernel::commitment::{CommitmentOwner, CommitmentStatus, Commitments, Statuses};
use dendrer_kernel::pack::Bound;
use dendrer_kernel::step::{Inputs, KERNEL_VERSION, Outcome, RunState, Seeds, Stage, Start, begin, step};
use dendrer_object::record::Author;
use dendrer_object::{Intent, StoreId, Timestamp, Value, json};
use proptest::prelude::*;

fn value(text: &str) -> Value {
    json::parse_door(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn deep(few: u32) -> ProptestConfig {
    let cases = if std::env::var_os("DENDRER_DEEP").is_some() { 100_000 } else { few };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// A line: the author, the agent or the user, the type, and the lists as text.
#[derive(Debug, Clone)]
struct Line {
    author: Author,
    name: &'static str,
    type_name: &'static str,
    lists: String,
}

impl Line {
    fn new(author: Author, name: &'static str, type_name: &'static str, lists: String) -> Line {
        Line { author, name, type_name, lists }
    }

    fn value(&self) -> Value {
        let user = if self.author == Author::User && !self.name.is_empty() { self.name } else { "" };
        let user = if user.is_empty() { String::new() } else { format!(r#","user":"{user}""#) };
        let agent = if self.author == Author::Agent { self.name } else { "host" };
        value(&format!(r#"{{"type":"{}","agent":"{agent}"{user},{}}}"#, self.type_name, self.lists))
    }

    fn intent(&self) -> Intent {
        let mut intent = Intent::from_value(&self.value(), None).unwrap();
        intent.author = self.author;
        if self.author == Author::Agent && self.type_name == "action.result" {
            intent = intent.carrying("unattested", Value::Bool(true));
        }
        intent
    }

    fn apply(&self, all: &mut Commitments, tick: u64) {
        let value = self.value();
        let mut content = value.as_object().unwrap().clone();
        content.set("agent_id", value.get("agent").unwrap().clone());
        all.apply(tick, self.author, self.type_name, &Value::Object(content), None);
    }
}

const PACK: &str = r#"[{"id":"P0","type":"obl","hard":true,"gloss":"pack","holds":"action.tool != 'wire'"},{"id":"C0","type":"pref","gloss":"pack pref"}]"#;

/// The ids that all writers use: those of pack, user and runtime, and some that none of them has.
const IDS: [&str; 14] = ["P0", "C0", "C1", "C2", "C3", "C4", "C5", "R0", "R1", "U0", "U1", "T0", "X0", "X1"];

/// Ids of agents as they would like to be read.
const ADDRESSED: [&str; 8] =
    ["C1@user", "C1@agent:dev", "P0@policy", "R0@runtime", "C1@user:ann", "\u{421}1", "c1", "X0@agent:user"];

const WATCHED: [&str; 3] = ["w0", "w1", "w2"];

fn id() -> impl Strategy<Value = &'static str> {
    prop_oneof![4 => prop::sample::select(IDS.to_vec()), 1 => prop::sample::select(ADDRESSED.to_vec())]
}

fn kind() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["obs", "hyp", "goal", "obl", "pref", "plan", "deleg"])
}

fn edge() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["supports", "depends-on", "conflicts-with", "refines", "discharges", "attests"])
}

fn how() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["discharged", "retracted", "superseded"])
}

fn watched() -> impl Strategy<Value = &'static str> {
    prop::sample::select(WATCHED.to_vec())
}

/// A line of an agent, with whatever it may write.
fn attack() -> impl Strategy<Value = Line> {
    let lists = prop_oneof![
        (id(), kind(), any::<bool>(), id(), id(), prop::sample::select(vec!["support", "depends_on", "conflicts", "refines"]))
            .prop_map(|(own, kind, hard, other, old, member)| format!(
                r#""commitments":[{{"id":"{own}","type":"{kind}","hard":{hard},"gloss":"the user says so","priority":9,"{member}":["{other}"],"supersedes":"{old}","watch":["w0"],"holds":"action.tool != 'read'"}}]"#
            )),
        (id(), watched()).prop_map(|(id, touch)| format!(
            r#""evidence":[{{"id":"{id}","content":"as the user","source":"user","touches":["{touch}"]}}]"#
        )),
        (edge(), id(), id()).prop_map(|(edge, from, to)| format!(
            r#""edges":[{{"edge":"{edge}","from":"{from}","to":"{to}"}}]"#
        )),
        (id(), how()).prop_map(|(id, how)| format!(r#""closes":[{{"id":"{id}","as":"{how}"}}]"#)),
        (id(), id()).prop_map(|(one, other)| format!(r#""adopts":["{one}","{other}"]"#)),
        (id(), id()).prop_map(|(one, other)| format!(
            r#""evidence":[{{"id":"{one}","content":1}}],"edges":[{{"edge":"attests","from":"{one}","to":"{other}"}},{{"edge":"supports","from":"{one}","to":"{other}"}}]"#
        )),
        (id(), id()).prop_map(|(one, other)| format!(
            r#""intent":{{"relies_on":["{one}"]}},"action":{{"calls":[{{"tool":"read","relies_on":["{other}"]}},{{"tool":"rm"}}]}}"#
        )),
        id().prop_map(|id| format!(r#""intent":{{"relies_on":["{id}"]}},"action":{{"tool":"wire"}}"#)),
    ];
    let name = prop::sample::select(vec!["dev", "ops", "user", "user:ann"]);
    let type_name = prop_oneof![
        3 => Just("plan.update"),
        2 => Just("observation.add"),
        1 => Just("action.result"),
        1 => Just("action.request")
    ];
    (name, type_name, lists).prop_map(|(name, type_name, lists)| {
        let has_action = lists.contains("\"action\"");
        Line::new(Author::Agent, name, if has_action { "action.request" } else { type_name }, lists)
    })
}

/// A line of user or runtime, which names their own items alone.
fn honest() -> impl Strategy<Value = Line> {
    let user = || prop::sample::select(vec!["", "ann"]);
    let own = || prop::sample::select(vec!["C1", "C2", "C3", "C4", "C5"]);
    let claim = || prop::sample::select(vec!["R0", "R1"]);
    prop_oneof![
        (user(), own(), kind(), any::<bool>(), watched()).prop_map(|(user, own, kind, hard, watch)| Line::new(
            Author::User,
            user,
            "observation.add",
            format!(
                r#""commitments":[{{"id":"{own}","type":"{kind}","hard":{hard},"gloss":"of the user","watch":["{watch}"],"holds":"action.tool != 'rm'"}}]"#
            )
        )),
        (user(), own(), how()).prop_map(|(user, own, how)| Line::new(
            Author::User,
            user,
            "observation.add",
            format!(r#""closes":[{{"id":"{own}@user","as":"{how}"}}]"#)
        )),
        (claim(), watched()).prop_map(|(claim, watch)| Line::new(
            Author::Runtime,
            "",
            "observation.add",
            format!(
                r#""commitments":[{{"id":"{claim}","type":"obs","gloss":"a tool saw it","watch":["{watch}"]}}]"#
            )
        )),
        (claim(), watched(), any::<bool>()).prop_map(|(claim, touch, is_touched)| {
            let touches = if is_touched { format!(r#","touches":["{touch}"]"#) } else { String::new() };
            let lists = format!(
                r#""action":{{"tool":"look"}},"evidence":[{{"id":"T0","content":1{touches}}}],"edges":[{{"edge":"attests","from":"T0@runtime","to":"{claim}@runtime"}}]"#
            );
            Line::new(Author::Runtime, "", "action.result", lists)
        }),
        (own(), own()).prop_map(|(one, other)| Line::new(
            Author::User,
            "",
            "observation.add",
            format!(
                r#""edges":[{{"edge":"conflicts-with","from":"{one}@user","to":"{other}@user"}},{{"edge":"depends-on","from":"{other}@user","to":"{one}@user"}}]"#
            )
        )),
    ]
}

fn histories() -> impl Strategy<Value = Vec<Line>> {
    prop::collection::vec(prop_oneof![3 => attack(), 1 => honest()], 0..100)
}

/// What an observer sees of the commitments of pack, user and runtime: by author and id.
type Seen = BTreeMap<(String, String), (CommitmentStatus, CommitmentOwner, bool, bool, String)>;

fn seen(all: &Commitments) -> Seen {
    let found = Statuses::of(all, &Value::object(), &Value::object, None);
    let others = all.all().iter().filter(|one| one.author != Author::Agent);
    others
        .map(|one| {
            let key = (one.writer().to_string(), one.written_id().to_owned());
            let status = found.get(&one.id).unwrap().0;
            let is_grounded = all.grounded_by(&one.id).is_some();
            (key, (status, all.owner(one), all.binds(one), is_grounded, one.written.to_string()))
        })
        .collect()
}

fn began() -> Commitments {
    let pack = value(&format!(r#"{{"commitments":{PACK}}}"#));
    let initial =
        dendrer_kernel::commitment::initial(KERNEL_VERSION, None, Some(&pack), Timestamp::from_ms(0));
    Commitments::at_start(KERNEL_VERSION, initial.as_ref(), None)
}

fn run() -> RunState {
    let pack =
        value(&format!(r#"{{"name":"acme","version":"v1","reducer":"delta/1","commitments":{PACK}}}"#));
    let pack = Some(Bound { value: pack, text: "".into() });
    let start = Start { stage: Some(Stage::Contracts), pack, ..Start::new("r".parse().unwrap()) };
    begin(StoreId([5; 16]), &start, inputs(0)).unwrap().1
}

fn inputs(n: u64) -> Inputs {
    Inputs { clock: Timestamp::from_ms(n), seeds: Seeds::of_secret(u128::from(n + 1).to_be_bytes()) }
}

proptest! {
    #![proptest_config(deep(3_000))]

    /// With and without the lines of agents, the commitments of all others are the same: status, owner, binding, ground and text.
    /// That is the definition: by rank no line of an agent lowers the word of another, and none raises it.
    #[test]
    fn no_line_of_an_agent_lowers_the_word_of_another(lines in histories()) {
        let (mut all, mut without) = (began(), began());
        for (tick, line) in (1..).zip(&lines) {
            line.apply(&mut all, tick);
            if line.author != Author::Agent {
                line.apply(&mut without, tick);
            }
        }
        prop_assert_eq!(seen(&all), seen(&without));
        for one in all.all().iter().filter(|one| one.author == Author::Agent) {
            prop_assert!(!all.binds(one) && all.owner(one) == one.writer(), "{}", one.id);
        }
        // A plain id is that of the highest rank.
        for id in IDS {
            let is_agents = |all: &Commitments| all.get(id).is_some_and(|one| one.author == Author::Agent);
            prop_assert!(!is_agents(&all) || without.get(id).is_none(), "{}", id);
        }
        // A snapshot and a run that begins with these see the same.
        let through = |value: Value| json::parse_canonical(&json::to_vec(&value)).unwrap();
        prop_assert_eq!(&Commitments::from_kept(KERNEL_VERSION, &through(all.to_kept())), &all);
        let initial = all.to_initial().map(through);
        let again = Commitments::at_start(KERNEL_VERSION, initial.as_ref(), None);
        prop_assert_eq!(seen(&again), seen(&all));
    }
}

proptest! {
    #![proptest_config(deep(60))]

    /// At the door no line of user, runtime or tool is refused that would not be refused without the agents.
    #[test]
    fn no_line_of_another_is_refused_because_of_an_agent(lines in histories()) {
        let (mut head, mut without) = (run(), run());
        for (n, line) in (1..).zip(&lines) {
            let intent = line.intent();
            let with_agent = step(&mut head, &intent, inputs(n)).unwrap();
            if line.author != Author::Agent {
                let alone = step(&mut without, &intent, inputs(n)).unwrap();
                let refused = |outcome: &Outcome| match outcome {
                    Outcome::Refused(refused) => Some(refused.reason.to_string()),
                    _ => None,
                };
                // Ticks differ, as the run without agents is shorter.
                let is_refused = [&with_agent, &alone].map(|outcome| refused(outcome).is_some());
                prop_assert_eq!(is_refused[0], is_refused[1], "{:?} {:?}", line, refused(&with_agent));
            }
        }
        prop_assert_eq!(seen(head.commitments()), seen(without.commitments()));
    }
}

/// One event of an honest history, by one of the writers.
#[derive(Debug, Clone)]
enum Event {
    Write(usize, &'static str, usize, usize),
    Touch(usize, usize),
    Attest(usize, usize, &'static str),
    Close(usize, usize, &'static str),
    Adopt(usize, usize),
}

const WRITERS: [(Author, &str); 6] = [
    (Author::Agent, "dev"),
    (Author::Agent, "ops"),
    (Author::Runtime, ""),
    (Author::User, ""),
    (Author::User, "ann"),
    (Author::Institution, ""),
];

fn event() -> impl Strategy<Value = Event> {
    let writer = || 0..WRITERS.len();
    prop_oneof![
        3 => (writer(), kind(), 0..8_usize, 0..3_usize).prop_map(|(by, kind, id, w)| Event::Write(by, kind, id, w)),
        1 => (writer(), 0..3_usize).prop_map(|(by, w)| Event::Touch(by, w)),
        1 => (writer(), 0..8_usize, prop::sample::select(vec!["attests", "supports"])).prop_map(|(by, id, edge)| Event::Attest(by, id, edge)),
        2 => (writer(), 0..8_usize, how()).prop_map(|(by, id, how)| Event::Close(by, id, how)),
        1 => (writer(), 0..8_usize).prop_map(|(by, id)| Event::Adopt(by, id)),
    ]
}

/// A commitment as the definition keeps it.
#[derive(Debug)]
struct Kept {
    kind: &'static str,
    owner: usize,
    watch: usize,
    closed: Option<&'static str>,
    /// Whether user or institution made it theirs.
    adopted: bool,
    is_grounded: bool,
    supported_at: u64,
}

/// The rank of a writer; agents and users are each their own.
fn rank(writer: usize) -> u8 {
    [0, 0, 1, 2, 2, 3][writer]
}

fn may_lower(by: usize, owner: usize) -> bool {
    by == owner || rank(by) > rank(owner)
}

fn line(event: &Event, tick: u64) -> Line {
    let (by, lists) = match *event {
        Event::Write(by, kind, id, w) => (
            by,
            format!(
                r#""commitments":[{{"id":"K{id}","type":"{kind}","hard":true,"gloss":"g","watch":["w{w}"]}}]"#
            ),
        ),
        Event::Touch(by, w) => {
            (by, format!(r#""evidence":[{{"id":"E{tick}","content":1,"touches":["w{w}"]}}]"#))
        }
        Event::Attest(by, id, edge) => (
            by,
            format!(
                r#""evidence":[{{"id":"E{tick}","content":1}}],"edges":[{{"edge":"{edge}","from":"E{tick}","to":"K{id}"}}]"#
            ),
        ),
        Event::Close(by, id, how) => (by, format!(r#""closes":[{{"id":"K{id}","as":"{how}"}}]"#)),
        Event::Adopt(by, id) => (by, format!(r#""adopts":["K{id}"]"#)),
    };
    let (author, name) = WRITERS[by];
    Line::new(author, name, "observation.add", lists)
}

/// The definition: each word by itself, over all that was said. Ids are used once here.
fn defined(events: &[Event]) -> BTreeMap<usize, (CommitmentStatus, bool)> {
    let mut all: BTreeMap<usize, Kept> = BTreeMap::new();
    let mut touched: Vec<(usize, usize, u64)> = Vec::new();
    for (tick, event) in (1..).zip(events) {
        match *event {
            Event::Write(owner, kind, id, watch) => {
                all.entry(id).or_insert(Kept {
                    kind,
                    owner,
                    watch,
                    closed: None,
                    adopted: false,
                    is_grounded: false,
                    supported_at: tick,
                });
            }
            Event::Touch(by, watch) => touched.push((by, watch, tick)),
            Event::Attest(by, id, edge) => {
                let Some(one) = all.get_mut(&id) else { continue };
                let attests = edge == "attests" && (2..=5).contains(&by);
                let is_note = by < 2;
                if (attests || may_lower(by, one.owner)) && !(is_note && one.is_grounded) {
                    one.supported_at = tick;
                }
                one.is_grounded |= attests;
            }
            Event::Close(by, id, how) => {
                let Some(one) = all.get_mut(&id) else { continue };
                if may_lower(by, one.owner) {
                    one.closed.get_or_insert(how);
                }
            }
            Event::Adopt(by, id) => {
                let Some(one) = all.get_mut(&id) else { continue };
                if by >= 3 && may_lower(by, one.owner) {
                    (one.owner, one.adopted) = (by, true);
                }
            }
        }
    }
    let found = all.into_iter().map(|(id, one)| {
        let is_claim = ["obs", "hyp", "plan"].contains(&one.kind);
        let is_touched = touched.iter().any(|(by, watch, tick)| {
            *watch == one.watch && *tick > one.supported_at && (*by > 1 || one.owner < 2)
        });
        let binds = one.owner >= 3;
        use CommitmentStatus as S;
        let status = match one.closed {
            Some("retracted") => S::Retracted,
            Some("superseded") => S::Superseded,
            Some(_) => S::Discharged,
            None if is_claim && is_touched => S::Stale,
            None if is_claim && !one.is_grounded || !binds => S::Tentative,
            None => S::Active,
        };
        (id, (status, binds))
    });
    found.collect()
}

proptest! {
    #![proptest_config(deep(3_000))]

    /// A user takes back its own, an agent closes its own, the runtime attests, a user adopts: as the definition says.
    #[test]
    fn honest_histories_come_out_as_defined(events in prop::collection::vec(event(), 0..60)) {
        // Each id once: of several writers the addresses are another test's.
        let mut used = std::collections::BTreeSet::new();
        let events: Vec<Event> = events.into_iter().filter(|event| match event {
            Event::Write(_, _, id, _) => used.insert(*id),
            _ => true,
        }).collect();
        let mut all = Commitments::none(KERNEL_VERSION);
        for (tick, event) in (1..).zip(&events) {
            line(event, tick).apply(&mut all, tick);
        }
        let found = Statuses::of(&all, &Value::object(), &Value::object, None);
        for (id, (status, binds)) in defined(&events) {
            let one = all.get(&format!("K{id}")).unwrap();
            prop_assert_eq!((found.get(&one.id).unwrap().0, all.binds(one)), (status, binds), "K{}", id);
        }
    }
}
