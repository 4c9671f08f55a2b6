//! Random parents and children beside a small evaluator: what a parent takes violated nothing that it is bound to (CCAS paper,
//! theorem 2), and from stage 2 on a child commits no call that its parent forbids at that moment.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use dendrer::kernel::commitment::{CommitmentStatus, DelegationScope};
use dendrer::kernel::step::{Outcome, Stage, Start};
use dendrer::repo::Repo;
use dendrer::store::Memory;
use dendrer_object::record::Author;
use dendrer_object::{Delta, Intent, RunName, Value, json};
use dendrer_testkit::{appending, info};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

const TOOLS: [&str; 3] = ["read", "pay", "push"];

/// A hard commitment of the user.
#[derive(Debug, Clone, Copy)]
enum Bound {
    /// The tool is forbidden.
    Never(usize),
    /// The tool takes at most what is left.
    Within(usize),
}

impl Bound {
    fn text(self, id: &str) -> String {
        let head = format!(r#""id":"{id}","type":"obl","hard":true,"gloss":"g""#);
        match self {
            Bound::Never(tool) => format!(r#"{{{head},"condition":"action.tool == '{}'"}}"#, TOOLS[tool]),
            Bound::Within(tool) => {
                let guard = format!("action.tool == '{}'", TOOLS[tool]);
                format!(r#"{{{head},"guard":"{guard}","holds":"action.params.n <= state.left"}}"#)
            }
        }
    }

    fn forbids(self, call: Call, left: u64) -> bool {
        match self {
            Bound::Never(tool) => tool == call.tool,
            Bound::Within(tool) => tool == call.tool && call.n > left,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Call {
    tool: usize,
    n: u64,
}

#[derive(Debug, Clone)]
enum Event {
    /// The child calls.
    Call(Call),
    /// The child brings a conflict with a commitment of its parent, and a hard one of its own.
    Attack,
    /// The child writes its own `left`.
    Raise(u64),
    /// The user adds a commitment to the parent.
    Bind(Bound),
    /// What is left in the parent changes.
    Left(u64),
    /// The user takes the delegation back.
    Retract,
}

fn bound() -> impl Strategy<Value = Bound> {
    prop_oneof![(0..3_usize).prop_map(Bound::Never), (0..3_usize).prop_map(Bound::Within)]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0..3_usize, 0..6_u64).prop_map(|(tool, n)| Event::Call(Call { tool, n })),
        1 => Just(Event::Attack),
        1 => (0..9_u64).prop_map(Event::Raise),
        1 => bound().prop_map(Event::Bind),
        1 => (0..6_u64).prop_map(Event::Left),
        1 => Just(Event::Retract),
    ]
}

fn value(text: &str) -> Value {
    json::parse_door(text.as_bytes()).unwrap()
}

fn intent(type_name: &str, author: Author, members: &str) -> Intent {
    let line =
        value(&format!(r#"{{"type":"{type_name}","agent":"a","intent":{{"description":"d"}}{members}}}"#));
    let mut intent = Intent::from_value(&line, None).unwrap();
    intent.author = author;
    intent
}

fn request(call: Call) -> Intent {
    let action = format!(r#","action":{{"tool":"{}","params":{{"n":{}}}}}"#, TOOLS[call.tool], call.n);
    intent("action.request", Author::Agent, &action)
}

fn set_left(left: u64, author: Author) -> Intent {
    let delta = value(&format!(r#"[{{"set":"/left","value":{left}}}]"#));
    intent("observation.add", author, "").with_delta(Delta::from_value(&delta).unwrap())
}

struct World {
    repo: Repo,
    bound: Vec<Bound>,
    left: u64,
    is_over: bool,
}

fn name(text: &str) -> RunName {
    text.parse().unwrap()
}

impl World {
    /// Whether an intent is committed to a run.
    fn commits(&self, run: &str, intent: &Intent) -> bool {
        let mut recorder = self.repo.recorder(&name(run)).unwrap();
        let outcome = recorder.propose(intent).unwrap();
        recorder.commit().unwrap();
        !matches!(outcome, Outcome::Refused(_))
    }

    fn begin(bound: &[Bound], left: u64, tools: &[&str], stage: Stage) -> World {
        let store = Memory::new(info(1));
        let repo = Repo::over(Box::new(store), appending(1)).unwrap();
        let state = value(&format!(r#"{{"left":{left}}}"#));
        let start = Start { stage: Some(Stage::Contracts), state, ..Start::new(name("lead")) };
        repo.begin(&start).unwrap().commit().unwrap();
        let world = World { repo, bound: bound.to_vec(), left, is_over: false };
        let each: Vec<String> =
            bound.iter().enumerate().map(|(at, one)| one.text(&format!("H{at}"))).collect();
        let brings = format!(r#","commitments":[{}]"#, each.join(","));
        assert!(world.commits("lead", &intent("observation.add", Author::User, &brings)));
        let tools: Vec<String> = tools.iter().map(|tool| format!("{tool:?}")).collect();
        let scope = format!(r#"{{"id":"D","gloss":"g","allowed":{{"tools":[{}]}}}}"#, tools.join(","));
        let scope = DelegationScope::read(&value(&scope)).unwrap();
        let parent = world.repo.run(&name("lead")).unwrap();
        world.repo.delegate(&parent, &scope, &name("kid"), Some(stage), false).unwrap();
        world
    }

    fn forbids(&self, call: Call, tools: &[&str]) -> bool {
        self.is_over
            || !tools.contains(&TOOLS[call.tool])
            || self.bound.iter().any(|one| one.forbids(call, self.left))
    }
}

#[test]
fn what_a_parent_takes_violated_nothing_that_it_is_bound_to() {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[11; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let (mut taken, mut refused) = (0, 0);
    for round in 0..120 {
        let drawn = (
            prop::collection::vec(bound(), 0..4),
            0..6_u64,
            prop::sample::subsequence(TOOLS.to_vec(), 1..=3),
            prop::collection::vec(event(), 0..8),
        );
        let (bound, left, tools, events) = drawn.new_tree(&mut runner).unwrap().current();
        let stage = Stage::from_number(round % 3).unwrap();
        let mut world = World::begin(&bound, left, &tools, stage);
        let mut made: Vec<Call> = Vec::new();
        for event in &events {
            match event {
                Event::Call(call) => {
                    let is_made = world.commits("kid", &request(*call));
                    if is_made && stage >= Stage::Contracts {
                        assert!(!world.forbids(*call, &tools), "{round} {call:?} {events:?}");
                    }
                    made.extend(is_made.then_some(*call));
                }
                Event::Attack => {
                    let lists = r#","commitments":[{"id":"own","type":"obl","hard":true,"gloss":"g","condition":"true"}],
                        "edges":[{"edge":"conflicts-with","from":"own","to":"H0"},{"edge":"depends-on","from":"H0","to":"own"}]"#;
                    world.commits("kid", &intent("plan.update", Author::Agent, lists));
                }
                Event::Raise(left) => {
                    world.commits("kid", &set_left(*left, Author::Agent));
                }
                Event::Bind(one) => {
                    let brings =
                        format!(r#","commitments":[{}]"#, one.text(&format!("H{}", world.bound.len())));
                    assert!(world.commits("lead", &intent("observation.add", Author::User, &brings)));
                    world.bound.push(*one);
                }
                Event::Left(left) => {
                    assert!(world.commits("lead", &set_left(*left, Author::User)));
                    world.left = *left;
                }
                Event::Retract => {
                    let closes = r#","closes":[{"id":"D","as":"retracted"}]"#;
                    world.commits("lead", &intent("observation.add", Author::User, closes));
                    world.is_over = true;
                }
            }
        }
        let accepted = world.repo.accept(&name("kid"), false).unwrap();
        if accepted.reasons.is_empty() {
            taken += 1;
            let is_bad = |call: &&Call| world.forbids(**call, &tools);
            assert!(!made.iter().any(|call| is_bad(&call)), "{round} {made:?} {events:?}");
        } else {
            refused += 1;
        }
        // Each commitment of the parent binds as it did, and no call is forbidden that was not.
        let moment = world.repo.run(&name("lead")).unwrap();
        let moment = moment.at(moment.tip()).unwrap();
        for at in 0..world.bound.len() {
            let found = moment.statuses().get(&format!("H{at}")).map(|(status, _)| *status);
            let is_live = matches!(found, Some(CommitmentStatus::Active | CommitmentStatus::Dormant));
            assert!(is_live, "{round} H{at} {found:?}");
        }
        for tool in 0..TOOLS.len() {
            for n in [0, 3, 5] {
                let call = Call { tool, n };
                let forbidden = world.bound.iter().any(|one| one.forbids(call, world.left));
                assert_eq!(world.commits("lead", &request(call)), !forbidden, "{round} {call:?}");
            }
        }
    }
    assert!(taken >= 20 && refused >= 20, "{taken} taken, {refused} refused");
}

#[test]
fn a_line_that_was_judged_before_its_parent_moved_is_judged_again() {
    let mut world = World::begin(&[], 3, &["pay"], Stage::Contracts);
    let mut kid = world.repo.recorder(&name("kid")).unwrap();
    kid.propose(&request(Call { tool: 1, n: 1 })).unwrap();
    // Between the judgement and the append the user takes the delegation back.
    let closes = r#","closes":[{"id":"D","as":"retracted"}]"#;
    assert!(world.commits("lead", &intent("observation.add", Author::User, closes)));
    world.is_over = true;
    assert_eq!(kid.commit().unwrap_err().code(), "E0407");
    assert!(matches!(kid.propose(&request(Call { tool: 1, n: 1 })).unwrap(), Outcome::Refused(_)));
    kid.commit().unwrap();
}

#[test]
fn a_line_that_was_judged_before_a_sibling_used_the_budget_is_judged_again() {
    let world = World::begin(&[], 3, &["pay"], Stage::Contracts);
    let scope = |text: &str| DelegationScope::read(&value(text)).unwrap();
    let begin = |parent: &str, scope: DelegationScope, child: &str| {
        let parent = world.repo.run(&name(parent)).unwrap();
        world.repo.delegate(&parent, &scope, &name(child), None, false).unwrap();
    };
    begin("lead", scope(r#"{"id":"M","gloss":"g","budget":{"calls":1}}"#), "mid");
    for child in ["a", "b"] {
        begin("mid", scope(&format!(r#"{{"id":"D{child}","gloss":"g"}}"#)), child);
    }
    let call = request(Call { tool: 1, n: 1 });
    let mut b = world.repo.recorder(&name("b")).unwrap();
    assert!(!matches!(b.propose(&call).unwrap(), Outcome::Refused(_)));
    assert!(world.commits("a", &call));
    assert_eq!(b.commit().unwrap_err().code(), "E0407");
    assert!(matches!(b.propose(&call).unwrap(), Outcome::Refused(_)));
    b.commit().unwrap();
}
