//! The propositions and theorems of the CCAS paper, each on random instances beside an oracle that looks at everything.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dendrer_kernel::commitment::{
    CommitmentStatus, Commitments, DelegationScope, EdgeKind, Statuses, Violated,
};
use dendrer_kernel::expr::{Budget, Env, Expr, Scope, Truth};
use dendrer_kernel::step::KERNEL_VERSION;
use dendrer_object::delta::Delta;
use dendrer_object::record::Author;
use dendrer_object::{Value, json};
use proptest::prelude::*;

fn value(text: &str) -> Value {
    json::parse_door(text.as_bytes()).unwrap()
}

fn cases(many: u32) -> ProptestConfig {
    let asked = std::env::var_os("PROPTEST_CASES").is_some();
    let config = ProptestConfig::default();
    if asked { config } else { ProptestConfig { cases: many, ..config } }
}

const TOOLS: [&str; 3] = ["read", "write", "run"];

/// A condition over the tool, one parameter and one field of the state.
fn condition() -> impl Strategy<Value = String> {
    let tool = || prop::sample::select(TOOLS.to_vec());
    let leaf = prop_oneof![
        tool().prop_map(|tool| format!("action.tool == '{tool}'")),
        tool().prop_map(|tool| format!("action.tool != '{tool}'")),
        (tool(), tool()).prop_map(|(a, b)| format!("action.tool in ['{a}', '{b}']")),
        tool().prop_map(|tool| format!("action.tool.startsWith('{}')", &tool[..1])),
        (0..3_u8).prop_map(|n| format!("action.params.n <= {n}")),
        (0..3_u8).prop_map(|n| format!("state.x > {n}")),
        Just("has(action.params.m)".to_owned()),
        Just("true".to_owned()),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|a| format!("!({a})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) && ({b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) || ({b})")),
            (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| format!("({a}) ? ({b}) : ({c})")),
        ]
    })
}

/// Every call of a finite table: each tool and one that no condition names, with and without the parameters.
fn table() -> Vec<Value> {
    let tools = TOOLS.into_iter().chain(["other"]);
    let params = [r#"{"n":0}"#, r#"{"n":2,"m":1}"#, "{}"];
    let calls =
        tools.flat_map(|tool| params.map(|params| format!(r#"{{"tool":"{tool}","params":{params}}}"#)));
    calls.map(|text| value(&text)).collect()
}

fn states() -> [Value; 2] {
    [value(r#"{"x":0}"#), value(r#"{"x":2}"#)]
}

fn scope() -> Scope {
    Scope::new().root_of("action", ["tool", "params"])
}

fn truth(text: &str, action: &Value, state: &Value) -> Truth {
    let expr = Expr::parse_condition(text, &scope()).unwrap();
    expr.holds(&Env { state, counters: None, others: &[("action", action)] }, &mut Budget::default())
}

fn texts(all: &[String]) -> String {
    all.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(",")
}

/// A commitment of the user as the text of a member.
#[derive(Debug, Clone)]
struct Drawn {
    guard: Option<String>,
    holds: Option<String>,
    watch: Vec<String>,
    is_hard: bool,
}

impl Drawn {
    fn text(&self, id: usize) -> String {
        let member = |name: &str, text: &Option<String>| {
            text.as_ref().map(|text| format!(",{name:?}:{text:?}")).unwrap_or_default()
        };
        let kind = if self.is_hard { "obl" } else { "pref" };
        format!(
            r#"{{"id":"C{id}","type":"{kind}","hard":{},"gloss":"g","watch":[{}]{}{}}}"#,
            self.is_hard,
            texts(&self.watch),
            member("guard", &self.guard),
            member("holds", &self.holds)
        )
    }
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let watch = prop::collection::vec((0..3_u8).prop_map(|n| format!("w{n}")), 0..3);
    (prop::option::of(condition()), prop::option::weighted(0.9, condition()), watch, any::<bool>())
        .prop_map(|(guard, holds, watch, is_hard)| Drawn { guard, holds, watch, is_hard })
}

fn brought(author: Author, all: &[Drawn]) -> Commitments {
    let list: Vec<String> = all.iter().enumerate().map(|(id, one)| one.text(id)).collect();
    let content = value(&format!(r#"{{"commitments":[{}]}}"#, list.join(",")));
    let mut made = Commitments::none(KERNEL_VERSION);
    made.apply(1, author, "observation.add", &content, None);
    made
}

/// The ids that a call violates and those of which it cannot be told, by looking at each.
fn by_looking(all: &[Drawn], action: &Value, state: &Value) -> (Vec<String>, Vec<String>) {
    let (mut violates, mut unjudged) = (Vec::new(), Vec::new());
    for (id, one) in all.iter().enumerate().filter(|(_, one)| one.is_hard) {
        let Some(holds) = &one.holds else { continue };
        let guard = one.guard.as_ref().map_or(Truth::True, |text| truth(text, action, state));
        let holds = truth(holds, action, state);
        match (guard, holds) {
            (Truth::False, _) | (_, Truth::True) => {}
            (Truth::True, Truth::False) => violates.push(format!("C{id}")),
            _ => unjudged.push(format!("C{id}")),
        }
    }
    (violates, unjudged)
}

fn verdict(all: &Commitments, action: &Value, state: &Value) -> (Vec<String>, Vec<String>) {
    let found = all.authorize(action, &[], state, &Value::object);
    let mut violates: Vec<String> = found
        .violates
        .iter()
        .filter(|(rule, _)| *rule == Violated::Hard)
        .map(|(_, id)| id.to_string())
        .collect();
    let mut unjudged: Vec<String> = found.unjudged.iter().map(|(id, _)| id.to_string()).collect();
    violates.sort();
    unjudged.sort();
    (violates, unjudged)
}

/// One event of a history of evidence, claims and edges.
fn event() -> impl Strategy<Value = (Author, String)> {
    let id = || (0..6_u8).prop_map(|n| format!("C{n}"));
    let atom = || (0..4_u8).prop_map(|n| format!("A{n}"));
    let kind = prop::sample::select(vec!["obs", "hyp", "plan", "obl", "goal", "pref"]);
    let edge = prop::sample::select(vec!["supports", "attests", "depends-on", "conflicts-with"]);
    let watch = (0..3_u8).prop_map(|n| format!("w{n}"));
    let part = prop_oneof![
        (id(), kind, any::<bool>(), watch.clone(), id(), prop::option::of(condition())).prop_map(
            |(id, kind, hard, watch, on, holds)| {
                let holds = holds.map(|text| format!(",\"holds\":{text:?}")).unwrap_or_default();
                format!(
                    r#""commitments":[{{"id":"{id}","type":"{kind}","hard":{hard},"gloss":"g","watch":["{watch}"],"depends_on":["{on}"]{holds}}}]"#
                )
            }
        ),
        (atom(), watch).prop_map(|(id, touch)| format!(r#""evidence":[{{"id":"{id}","content":1,"touches":["{touch}"]}}]"#)),
        (edge, atom(), id(), id(), any::<bool>()).prop_map(|(edge, atom, from, to, is_atom)| {
            let from = if is_atom { atom } else { from };
            format!(r#""edges":[{{"edge":"{edge}","from":"{from}","to":"{to}"}}]"#)
        }),
        (id(), prop::sample::select(vec!["discharged", "retracted", "superseded"]))
            .prop_map(|(id, how)| format!(r#""closes":[{{"id":"{id}","as":"{how}"}}]"#)),
    ];
    let author = prop::sample::select(vec![Author::User, Author::Agent, Author::Runtime]);
    (author, part).prop_map(|(author, part)| (author, format!("{{{part}}}")))
}

fn history(events: &[(Author, String)]) -> Commitments {
    let mut all = Commitments::none(KERNEL_VERSION);
    for (tick, (author, text)) in (1..).zip(events) {
        all.apply(tick, *author, "observation.add", &value(text), None);
    }
    all
}

fn statuses(all: &Commitments, state: &Value) -> BTreeMap<Arc<str>, CommitmentStatus> {
    let found = Statuses::of(all, state, &Value::object, None);
    all.all().iter().map(|one| (Arc::clone(&one.id), found.get(&one.id).unwrap().0)).collect()
}

proptest! {
    // 100,000 of each: PROPTEST_CASES=100000.
    #![proptest_config(cases(20_000))]

    /// Definition 3: the door finds what looking at every commitment finds.
    #[test]
    fn the_admissible_set_is_that_of_the_definition(all in prop::collection::vec(drawn(), 1..5)) {
        let made = brought(Author::User, &all);
        for state in states() {
            for action in table() {
                prop_assert_eq!(verdict(&made, &action, &state), by_looking(&all, &action, &state), "{}", action);
            }
        }
    }

    /// What a tool alone decides of a condition is so whatever else there is.
    #[test]
    fn what_the_tool_decides_is_decided(text in condition()) {
        let expr = Expr::parse_condition(&text, &scope()).unwrap();
        for action in table() {
            let tool = Value::record([("tool", action.get("tool").unwrap().clone())]);
            let Some(decided) = expr.decided("action", "tool", &tool) else { continue };
            for state in states().into_iter().chain([value("{}")]) {
                let expected = if decided { Truth::True } else { Truth::False };
                prop_assert_eq!(truth(&text, &action, &state), expected, "{} {}", text, action);
            }
        }
    }

    /// Proposition 1: of two histories with the same words, one by the user and one by the agent, a state that keeps no roles is
    /// the same, and the admissible actions are not. Ours differs.
    #[test]
    fn who_said_it_makes_the_difference(tool in prop::sample::select(TOOLS.to_vec()), words in "[a-z ]{1,20}") {
        let text = format!(
            r#"{{"evidence":[{{"id":"E","content":{words:?}}}],"commitments":[{{"id":"C","type":"obl","hard":true,"gloss":{words:?},"support":["E"],"holds":"action.tool != '{tool}'"}}]}}"#
        );
        let by = |author: Author| history(&[(author, text.clone())]);
        let (user, agent) = (by(Author::User), by(Author::Agent));
        let erased = |all: &Commitments| {
            let glosses = all.all().iter().map(|one| one.written.to_string());
            glosses.chain(all.atoms().map(|atom| atom.content.to_string())).collect::<Vec<_>>()
        };
        prop_assert_eq!(erased(&user), erased(&agent));
        let call = Value::record([("tool", Value::from(tool))]);
        let admits = |all: &Commitments| all.authorize(&call, &[], &Value::object(), &Value::object).is_admissible();
        prop_assert!(!admits(&user) && admits(&agent));
        prop_assert_ne!(user, agent);
    }

    /// Theorem 1 and corollary 1: an executor that begins with the same state gives the same answers, and admits the same actions.
    /// The state goes through its bytes, once as a snapshot keeps it and once as the `run` record of a new run has it.
    #[test]
    fn equal_states_admit_equal_actions(events in prop::collection::vec(event(), 0..16)) {
        let all = history(&events);
        let through = |value: Value| json::parse_canonical(&json::to_vec(&value)).unwrap();
        let kept = Commitments::from_kept(KERNEL_VERSION, &through(all.to_kept()));
        prop_assert_eq!(&kept, &all);
        let initial = all.to_initial().map(through);
        let again = Commitments::at_start(KERNEL_VERSION, initial.as_ref(), None);
        for state in states() {
            for other in [&kept, &again] {
                prop_assert_eq!(statuses(other, &state), statuses(&all, &state));
                for action in table() {
                    prop_assert_eq!(verdict(other, &action, &state), verdict(&all, &action, &state));
                }
                for one in all.all() {
                    // Of several atoms, a run that begins with the state names the one whose edge is the first; the order in which the
                    // atoms came is not part of it.
                    prop_assert_eq!(other.grounded_by(&one.id).is_some(), all.grounded_by(&one.id).is_some());
                    prop_assert_eq!(other.binds(other.get(&one.id).unwrap()), all.binds(one));
                    prop_assert_eq!(other.closure(&one.id).len(), all.closure(&one.id).len());
                }
            }
        }
    }

    /// Theorem 2: what a child may do under a contract, its parent's hard commitments permit, handed over or not.
    #[test]
    fn a_child_keeps_what_its_parent_is_bound_to(
        all in prop::collection::vec(drawn(), 1..5),
        tools in prop::option::of(prop::sample::subsequence(TOOLS.to_vec(), 0..3)),
        touches in prop::option::of(prop::collection::vec((0..3_u8).prop_map(|n| format!("w{n}")), 0..3)),
    ) {
        let parent = brought(Author::User, &all);
        let names: Option<Vec<String>> = tools.map(|tools| tools.into_iter().map(str::to_owned).collect());
        let member = |name: &str, list: &Option<Vec<String>>| list.as_ref().map(|list| format!(",{name:?}:[{}]", texts(list))).unwrap_or_default();
        let tools = member("tools", &names).replacen(',', "", 1);
        let text = format!(r#"{{"id":"D","gloss":"g","allowed":{{{tools}}}{}}}"#, member("touches", &touches));
        let scope = DelegationScope::read(&value(&text)).unwrap();
        for state in states() {
            let found = Statuses::of(&parent, &state, &Value::object, None);
            let handed = scope.hands_over(&parent, &found);
            let ids: Vec<Arc<str>> = handed.hard.iter().chain(&handed.soft).cloned().collect();
            let initial = parent.handed(&ids);
            let child = Commitments::at_start(KERNEL_VERSION, initial.as_ref(), Some(&value(&text)));
            for action in table() {
                let allowed = child.authorize(&action, &[], &state, &Value::object);
                if allowed.is_admissible() {
                    let (violates, _) = by_looking(&all, &action, &state);
                    // One without an expression of which nothing but its watch is known cannot be violated by a call.
                    prop_assert_eq!(violates, Vec::<String>::new(), "{} {}", text, action);
                }
            }
        }
    }

    /// Proposition 2: a change looks at what watches the changed name and nothing else, and no status changes but of what watches it,
    /// depends on that, or is in conflict with it.
    #[test]
    fn a_change_touches_what_watches_it_and_what_depends_on_that(
        events in prop::collection::vec(event(), 0..16),
        name in (0..3_u8).prop_map(|n| format!("w{n}")),
    ) {
        let mut all = history(&events);
        let (before, touched) = (statuses(&all, &value("{}")), all.touched());
        let watchers = all.all().iter().filter(|one| one.watch.iter().any(|watched| **watched == name)).count();
        let content = value(&format!(r#"{{"evidence":[{{"id":"NEW","content":1,"touches":["{name}"]}}]}}"#));
        all.apply(100, Author::Runtime, "observation.add", &content, Some(&Delta::default()));
        prop_assert_eq!(all.touched() - touched, watchers as u64);
        let affected: BTreeSet<Arc<str>> = all.affected(&content, None);
        let after = statuses(&all, &value("{}"));
        for (id, status) in &after {
            prop_assert!(before.get(id) == Some(status) || affected.contains(id), "{} turned {:?}", id, status);
        }
        // Affected is what can be reached, and no more: by passing over all edges until nothing is added.
        let is_there = |id: &str| all.get(id).is_some() || all.atom(id).is_some();
        let watch = all.all().iter().filter(|one| one.watch.iter().any(|watched| **watched == name));
        let mut reached: BTreeSet<Arc<str>> = watch.map(|one| Arc::clone(&one.id)).chain(["NEW".into()]).collect();
        loop {
            let links = all.edges().flat_map(|edge| match edge.kind {
                EdgeKind::DependsOn => vec![(edge.to, edge.from)],
                EdgeKind::Supports => vec![(edge.from, edge.to)],
                EdgeKind::ConflictsWith => vec![(edge.from.clone(), edge.to.clone()), (edge.to, edge.from)],
                _ => Vec::new(),
            });
            let new: Vec<Arc<str>> = links
                .filter(|(from, to)| reached.contains(from) && is_there(from) && is_there(to) && !reached.contains(to))
                .map(|(_, to)| to)
                .collect();
            if new.is_empty() {
                break;
            }
            reached.extend(new);
        }
        reached.retain(|id| all.get(id).is_some());
        prop_assert_eq!(affected, reached);
    }
}

/// CCAS paper 13.5: how often relevance, computed from the tool alone, differs from trying each call of a finite table in each state.
#[test]
fn relevance_misses_nothing_of_a_finite_table() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::{Config, TestRng, TestRunner};
    let rng = TestRng::from_seed(proptest::test_runner::RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let (mut relevant, mut missed, mut needless, mut irrelevant) = (0, 0, 0, 0);
    for _ in 0..20_000 {
        let one = drawn().new_tree(&mut runner).unwrap().current();
        let one = Drawn { watch: vec!["elsewhere".to_owned()], is_hard: true, ..one };
        let tools = prop::sample::subsequence(TOOLS.to_vec(), 1..3).new_tree(&mut runner).unwrap().current();
        let names: Vec<String> = tools.iter().map(|tool| (*tool).to_owned()).collect();
        let text = format!(
            r#"{{"id":"D","gloss":"g","allowed":{{"tools":[{}]}},"touches":["here"]}}"#,
            texts(&names)
        );
        let scope = DelegationScope::read(&value(&text)).unwrap();
        let parent = brought(Author::User, std::slice::from_ref(&one));
        let computed = scope.is_relevant(&parent.all()[0]);
        let is_allowed = |action: &&Value| tools.contains(&action.get("tool").unwrap().as_str().unwrap());
        let can_bear = table().iter().filter(is_allowed).any(|action| {
            states().iter().any(|state| {
                let (violates, unjudged) = by_looking(std::slice::from_ref(&one), action, state);
                !violates.is_empty() || !unjudged.is_empty()
            })
        });
        relevant += u32::from(can_bear);
        irrelevant += u32::from(!can_bear);
        missed += u32::from(can_bear && !computed);
        needless += u32::from(!can_bear && computed);
    }
    // The seed is fixed: of 20,000 commitments these figures are those of the page.
    assert_eq!((relevant, missed, irrelevant, needless), (11_382, 0, 8_618, 870));
}
