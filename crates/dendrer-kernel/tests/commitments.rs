//! Commitments beside a firewall that is easy to see through: nothing self-authored grounds or binds.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use dendrer_kernel::commitment::{
    CommitmentStatus, Commitments, EvidenceMode, SpentTogether, Statuses, check, merged,
};
use dendrer_kernel::step::KERNEL_VERSION;
use dendrer_object::delta::Delta;
use dendrer_object::record::Author;
use dendrer_object::{Value, json};
use proptest::prelude::*;

fn value(text: &str) -> Value {
    json::parse_door(text.as_bytes()).unwrap()
}

fn apply(all: &mut Commitments, tick: u64, author: Author, type_name: &str, text: &str) {
    let content = value(text);
    let delta = content.get("delta").map(|delta| Delta::from_value(delta).unwrap());
    all.apply(tick, author, type_name, &content, delta.as_ref());
}

fn status(all: &Commitments, state: &str, id: &str) -> CommitmentStatus {
    Statuses::of(all, &value(state), &Value::object, None).get(id).unwrap().0
}

/// Mode and attestation follow from author and type (CCAS paper, evidence modes).
#[test]
fn modes_are_derived() {
    use EvidenceMode as M;
    for (author, type_name, mode) in [
        (Author::User, "observation.add", M::UserAuthored),
        (Author::Runtime, "action.result", M::ToolAttested),
        (Author::Runtime, "observation.add", M::ExternallyObserved),
        (Author::Institution, "policy.decision", M::ExternallyObserved),
        (Author::Agent, "action.result", M::ExternallyObserved),
        (Author::Agent, "memory.write", M::SelfAuthored),
    ] {
        assert_eq!(EvidenceMode::of(author, type_name), mode);
    }
}

/// The eight statuses, each from what makes it.
#[test]
fn each_status_has_its_cause() {
    let mut all = Commitments::none(KERNEL_VERSION);
    let user = r#"{"evidence":[{"id":"u","content":"c"}],"commitments":[
        {"id":"hard","type":"obl","hard":true,"gloss":"g","support":["u"],"priority":1},
        {"id":"blocked","type":"pref","gloss":"g","conflicts":["hard"]},
        {"id":"dormant","type":"goal","gloss":"g","guard":"state.x > 1"},
        {"id":"asks","type":"obl","gloss":"g","guard":"action.tool == 'rm'"},
        {"id":"done","type":"goal","gloss":"g","discharge":"state.x == 1"},
        {"id":"claim","type":"obs","gloss":"g","watch":["/file"]},
        {"id":"below","type":"plan","gloss":"g","depends_on":["claim"]},
        {"id":"old","type":"pref","gloss":"g"},{"id":"new","type":"pref","gloss":"g","supersedes":"old"},
        {"id":"back","type":"pref","gloss":"g"}],"closes":[{"id":"back","as":"retracted"}]}"#;
    apply(&mut all, 1, Author::User, "observation.add", user);
    apply(
        &mut all,
        2,
        Author::Agent,
        "plan.update",
        r#"{"commitments":[{"id":"self","type":"obl","hard":true,"gloss":"g"}]}"#,
    );
    apply(
        &mut all,
        3,
        Author::Runtime,
        "action.result",
        r#"{"evidence":[{"id":"t","content":1}],"edges":[{"edge":"attests","from":"t","to":"claim"}]}"#,
    );
    use CommitmentStatus as S;
    let expected = [
        ("hard", S::Active),
        ("blocked", S::Blocked),
        ("dormant", S::Dormant),
        ("asks", S::Dormant),
        ("done", S::Discharged),
        ("claim", S::Active),
        ("below", S::Tentative),
        ("old", S::Superseded),
        ("new", S::Active),
        ("back", S::Retracted),
        ("self", S::Tentative),
    ];
    for (id, wanted) in expected {
        assert_eq!(status(&all, r#"{"x":1}"#, id), wanted, "{id}");
    }
    // A write of what it watches makes a claim stale, and what depends on it; new support makes it stand again.
    apply(&mut all, 4, Author::Agent, "memory.write", r#"{"delta":[{"set":"/file/a","value":1}]}"#);
    assert_eq!((status(&all, "{}", "claim"), status(&all, "{}", "below")), (S::Stale, S::Stale));
    apply(
        &mut all,
        5,
        Author::Runtime,
        "action.result",
        r#"{"evidence":[{"id":"t2","content":1}],"edges":[{"edge":"attests","from":"t2","to":"claim"}]}"#,
    );
    assert_eq!((status(&all, "{}", "claim"), status(&all, "{}", "below")), (S::Active, S::Tentative));
    // An agent closes nothing of the user, and an id of the user is not the agent's (design, section 14.2).
    apply(
        &mut all,
        6,
        Author::Agent,
        "plan.update",
        r#"{"closes":[{"id":"hard","as":"retracted"}],"commitments":[{"id":"new","type":"obl","gloss":"g"},{"id":"c2","type":"pref","gloss":"g","supersedes":"hard"}]}"#,
    );
    assert_eq!(status(&all, "{}", "hard"), S::Active);
    assert_eq!(all.ignored().map(|one| one.why.to_string()).collect::<Vec<_>>(), ["rank", "rank"]);
    assert_eq!(status(&all, "{}", "new"), S::Active);
    assert_eq!(status(&all, "{}", "new@agent"), S::Active);
}

/// What a line may not bring.
#[test]
fn lists_are_checked() {
    for (line, path) in [
        (r#"{"evidence":[{"id":"a","content":1,"mode":"user-authored"}]}"#, "/evidence/0/mode"),
        (r#"{"evidence":[{"id":"a","content":1,"attestation":"runtime"}]}"#, "/evidence/0/attestation"),
        (r#"{"evidence":[{"content":1}]}"#, "/evidence/0/id"),
        (r#"{"evidence":[{"id":"a"}]}"#, "/evidence/0/content"),
        (r#"{"commitments":[{"id":"a","type":"law","gloss":"g"}]}"#, "/commitments/0/type"),
        (
            r#"{"commitments":[{"id":"a","type":"obl","gloss":"g","holds":"state.x >"}]}"#,
            "/commitments/0/holds",
        ),
        (
            r#"{"commitments":[{"id":"a","type":"obl","gloss":"g","holds":"true","condition":"false"}]}"#,
            "/commitments/0/condition",
        ),
        (r#"{"commitments":[{"id":"a","type":"obl","gloss":"g","suport":[]}]}"#, "/commitments/0/suport"),
        (r#"{"edges":[{"edge":"grounds","from":"a","to":"b"}]}"#, "/edges/0/edge"),
        (r#"{"closes":[{"id":"a","as":"done"}]}"#, "/closes/0/as"),
        (r#"{"edges":{}}"#, "/edges"),
    ] {
        assert_eq!(check(&value(line)).unwrap_err().path, path, "{line}");
    }
    assert_eq!(check(&value(r#"{"evidence":[{"id":"a","content":null}]}"#)), Ok(()));
}

/// One event of a history: who writes it, of which type, and what it brings about a few ids.
fn event() -> impl Strategy<Value = (Author, &'static str, String)> {
    let author = prop_oneof![5 => Just(Author::Agent), 1 => Just(Author::Runtime), 1 => Just(Author::User)];
    let type_name = prop_oneof![
        Just("plan.update"),
        Just("memory.write"),
        Just("action.result"),
        Just("observation.add")
    ];
    let id = || (0..8_u8).prop_map(|n| format!("i{n}"));
    let edge = prop_oneof![Just("attests"), Just("supports"), Just("discharges")];
    let part = prop_oneof![
        id().prop_map(|id| format!(r#""evidence":[{{"id":"{id}","content":"the user says so"}}]"#)),
        (id(), id(), any::<bool>()).prop_map(|(id, support, hard)| format!(
            r#""commitments":[{{"id":"{id}","type":"hyp","hard":{hard},"gloss":"g","support":["{support}"]}}]"#
        )),
        (edge, id(), id()).prop_map(|(edge, from, to)| format!(r#""edges":[{{"edge":"{edge}","from":"{from}","to":"{to}"}}]"#)),
    ];
    (author, type_name, part).prop_map(|(author, type_name, part)| (author, type_name, format!("{{{part}}}")))
}

/// What happens to a run: a line, a merge with what it was before, or a delegate that writes and is accepted.
#[derive(Debug, Clone)]
enum Event {
    Line(Author, &'static str, String),
    Merge,
    Delegate(Vec<String>),
}

fn happens() -> impl Strategy<Value = Event> {
    let line = || event().prop_map(|(author, type_name, text)| Event::Line(author, type_name, text));
    let quoted = prop::collection::vec(event().prop_map(|(_, _, text)| text), 1..4);
    prop_oneof![20 => line(), 1 => Just(Event::Merge), 1 => quoted.prop_map(Event::Delegate)]
}

fn happen(all: &mut Commitments, tick: u64, event: &Event, author: impl Fn(Author) -> Author) {
    match event {
        Event::Line(by, type_name, text) => apply(all, tick, author(*by), type_name, text),
        Event::Merge => {
            let earlier = all.clone();
            let merged = merged(&[("a", all), ("b", &earlier)], &SpentTogether::default());
            *all = Commitments::at_start(KERNEL_VERSION, merged.as_ref(), None);
        }
        Event::Delegate(lines) => {
            let ids: Vec<_> = all.all().iter().map(|one| one.id.clone()).collect();
            let mut child = Commitments::at_start(KERNEL_VERSION, all.handed(&ids).as_ref(), None);
            for line in lines {
                apply(&mut child, 1, Author::Agent, "plan.update", line);
            }
            let brought =
                child.to_brought().map(|brought| format!(r#","commitments":{brought}"#)).unwrap_or_default();
            let accepted = format!(r#"{{"accepted":{{"child":"c","delegation":"none"{brought}}}}}"#);
            apply(all, tick, Author::Kernel, "run.cherrypick", &accepted);
        }
    }
}

fn check_firewall(all: &Commitments) -> Result<(), TestCaseError> {
    for one in all.all() {
        if all.grounded_by(&one.id).is_some() {
            let is_right = all.edges().any(|edge| {
                edge.kind.as_str() == "attests"
                    && edge.to == one.id
                    && matches!(edge.author, Author::User | Author::Runtime | Author::Institution)
                    && all.atom(&edge.from).is_some_and(|atom| atom.mode != EvidenceMode::SelfAuthored)
            });
            prop_assert!(is_right, "{}", one.id);
        }
        // Since version 2 of the rules an atom of the user in its support is not enough (design, section 14.2).
        if all.binds(one) {
            prop_assert!(one.author == Author::User || one.is_imported, "{}", one.id);
        }
    }
    Ok(())
}

proptest! {
    // 100,000 histories: PROPTEST_CASES=100000.
    #![proptest_config(match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig { cases: 2_000, ..ProptestConfig::default() },
    })]

    /// However notes are passed on, what is grounded has an attestation by user, runtime or institution from an atom that is not the
    /// agent's own word, and what binds has the user behind it. Without user and runtime, nothing is grounded and nothing binds.
    #[test]
    fn nothing_self_authored_grounds_or_binds(events in prop::collection::vec(happens(), 0..200)) {
        let (mut all, mut own) = (Commitments::none(KERNEL_VERSION), Commitments::none(KERNEL_VERSION));
        for (tick, event) in (1..).zip(&events) {
            happen(&mut all, tick, event, |by| by);
            if let Event::Line(_, "action.result", _) = event {
                continue;
            }
            happen(&mut own, tick, event, |_| Author::Agent);
        }
        check_firewall(&all)?;
        prop_assert!(own.all().iter().all(|one| own.grounded_by(&one.id).is_none() && !own.binds(one)));
    }

    /// An agent's results over a pipe are evidence without an attestation: they ground nothing by themselves.
    #[test]
    fn forged_results_ground_nothing(events in prop::collection::vec(happens(), 0..100)) {
        let mut own = Commitments::none(KERNEL_VERSION);
        for (tick, event) in (1..).zip(&events) {
            happen(&mut own, tick, event, |_| Author::Agent);
        }
        prop_assert!(own.all().iter().all(|one| own.grounded_by(&one.id).is_none() && !own.binds(one)));
    }
}
