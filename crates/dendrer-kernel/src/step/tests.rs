use proptest::prelude::*;

use super::*;
use crate::reduce::HostReducer;
use crate::replay::{Compared, ReplayError, replay_refusal, replay_start, replay_step};
use crate::sealed;
use dendrer_object::Code;
use dendrer_object::json::parse_door;

fn inputs(n: u64) -> Inputs {
    Inputs { clock: Timestamp::from_ms(1_000_000 + n), seeds: Seeds::of_secret([n as u8; 16]) }
}

fn value(text: &str) -> Value {
    parse_door(text.as_bytes()).unwrap()
}

fn intent(text: &str) -> Intent {
    Intent::from_value(&value(text), None).unwrap()
}

fn start(state: &str, policy: &str, stage: Stage) -> (Record, RunState) {
    let policy = value(policy).as_array().unwrap().iter().cloned().collect();
    let start = Start { state: value(state), policy, stage: Some(stage), ..Start::new("r".parse().unwrap()) };
    begin(StoreId([5; 16]), &start, inputs(0)).unwrap()
}

fn committed(head: &mut RunState, n: u64, text: &str) -> Record {
    match step(head, &intent(text), inputs(n)).unwrap() {
        Outcome::Committed(record) => record,
        Outcome::Violated { violations, .. } => panic!("{text} violates {violations:?}"),
        Outcome::Refused(refused) => panic!("{text} was refused: {}", refused.reason),
    }
}

fn refused(head: &mut RunState, n: u64, text: &str) -> Refused {
    match step(head, &intent(text), inputs(n)).unwrap() {
        Outcome::Refused(refused) => *Box::new(refused),
        committed => panic!("{text} was committed as {committed:?}"),
    }
}

#[test]
fn a_transition_says_who_what_and_which_state_follows() {
    let (_, mut head) = start(r#"{"n":1}"#, "[]", Stage::Replay);
    let before = head.id();
    let record = committed(
        &mut head,
        1,
        r#"{"type":"observation.add","agent":"a","goal":"g","intent":{"description":"d","confidence":0.91},"delta":[{"add":"/n","value":2}],"metrics":{"tokens_used":7}}"#,
    );
    let root = value(r#"{"n":3}"#).digest();
    assert_eq!(
        record.content().to_string(),
        format!(
            r#"{{"agent_id":"a","delta":[{{"add":"/n","value":2}}],"goal_id":"g","intent":{{"confidence":0.91,"description":"d"}},"metrics":{{"tokens_used":7}},"seq":1,"state_root":"{root}"}}"#
        )
    );
    assert_eq!((record.header().tick, record.header().prev), (Some(1), Some(before)));
    assert_eq!((head.tick(), head.id(), head.state().to_string()), (1, record.id(), r#"{"n":3}"#.into()));
    assert_eq!(head.counters().to_value().get("tokens_used"), Some(&Value::from(7u64)));
}

#[test]
fn each_agent_has_its_own_branch_inside_the_run() {
    let (_, mut head) = start("{}", "[]", Stage::Replay);
    let text = |agent: &str| format!(r#"{{"type":"plan.update","agent":"{agent}"}}"#);
    let a1 = committed(&mut head, 1, &text("a"));
    let a2 = committed(&mut head, 2, &text("a"));
    let b1 = committed(&mut head, 3, &text("b"));
    let a3 = committed(&mut head, 4, &text("a"));
    let seq = |record: &Record| record.body().value("/seq").unwrap().as_u64().unwrap();
    assert_eq!([&a1, &a2, &b1, &a3].map(seq), [1, 2, 1, 3]);
    assert_eq!(a2.header().links, [], "prev is the predecessor already");
    assert_eq!(a3.header().links, [Link { rel: Rel::Predecessor, hash: a2.id() }]);
}

#[test]
fn a_forged_type_is_refused_and_put_on_record() {
    let (_, mut head) = start("{}", "[]", Stage::Replay);
    committed(&mut head, 1, r#"{"type":"plan.update","agent":"a"}"#);
    let judged_against = head.id();
    for (n, name) in
        ["kernel.anomaly", "run.fork", "bisect.result", "policy.contract_extension"].iter().enumerate()
    {
        let refused = refused(
            &mut head,
            10 + n as u64,
            &format!(r#"{{"type":"{name}","agent":"mallory","intent":{{"description":"x"}}}}"#),
        );
        assert_eq!(refused.reason.code(), "E0401");
        if n == 0 {
            assert_eq!(refused.refusal.header().head, Some(judged_against));
        }
        assert_eq!(refused.refusal.body().value("/intent/description"), Some("x".into()));
        let anomaly = refused.anomaly.unwrap();
        assert_eq!(anomaly.header().author, Author::Kernel);
        assert_eq!(anomaly.header().tick, Some(2 + n as u64));
        assert_eq!(head.id(), anomaly.id());
        let last = head.state().get("kernel_anomalies").unwrap().as_array().unwrap().get(n).unwrap().clone();
        assert_eq!(last.get("type"), Some(&Value::from(*name)));
        assert_eq!(last.get("agent_id"), Some(&Value::from("mallory")));
        assert_ne!(refused.refusal.body().seed(), anomaly.body().seed());
    }
}

/// The claim is kept with the refusal; the header has the author that is known.
#[test]
fn a_forged_author_is_refused_and_the_claim_is_kept() {
    for (type_name, claimed, code, is_anomaly) in [
        ("run.fork", "kernel", Code::E0401, true),
        ("kernel.anomaly", "institution", Code::E0401, true),
        ("policy.contract_extension", "institution", Code::E0401, true),
        ("plan.update", "kernel", Code::E0408, false),
        ("action.result", "institution", Code::E0408, false),
        ("no.such.type", "kernel", Code::E0402, false),
    ] {
        let (_, mut head) = start("{}", "[]", Stage::Replay);
        let judged = head.clone();
        let refused = refused(&mut head, 1, &format!(r#"{{"type":"{type_name}","author":"{claimed}"}}"#));
        assert_eq!((refused.reason.code(), refused.anomaly.is_some()), (code, is_anomaly), "{type_name}");
        assert_eq!(refused.refusal.header().author, Author::Agent);
        let reason = refused.refusal.body().value("/reason").unwrap();
        assert_eq!(reason.get("claimed_author"), Some(&Value::from(claimed)));
        assert_eq!(replay_refusal(&judged, &refused.refusal, &DeltaReducer), Ok(()), "{type_name}");
    }
}

#[test]
fn every_other_refusal_is_a_refusal_alone_and_moves_nothing() {
    for (text, code) in [
        (r#"{"type":"no.such.type"}"#, Code::E0402),
        (r#"{"type":"policy.decision","policy":{"decision":"allow"}}"#, Code::E0403),
        (r#"{"type":"action.result","result":{"status":"ok"}}"#, Code::E0403),
        (r#"{"type":"plan.update","delta":[{"set":"/policy/violated","value":null}]}"#, Code::E0405),
        (r#"{"type":"plan.update","delta":[{"remove":"/kernel_anomalies"}]}"#, Code::E0405),
        (r#"{"type":"plan.update","delta":[{"set":"/progress","value":1}]}"#, Code::E0405),
        (r#"{"type":"plan.update","delta":[{"set":"/counters/x","value":1}]}"#, Code::E0405),
        (
            r#"{"type":"plan.update","author":"runtime","anomalies":[{"kind":"clock_went_back","by_ms":5}]}"#,
            Code::E0405,
        ),
        (r#"{"type":"plan.update","author":"runtime","result":{"status":"ok"}}"#, Code::E0427),
        (r#"{"type":"plan.update","metrics":{"tokens_used":-800}}"#, Code::E0427),
        (r#"{"type":"plan.update","metrics":{"tokens_used":"many"}}"#, Code::E0427),
        (r#"{"type":"policy.decision","author":"runtime","policy":{"reason":"none"}}"#, Code::E0427),
        (r#"{"type":"plan.update","delta":[{"add":"/missing","value":1}]}"#, Code::E0404),
    ] {
        let (_, mut head) = start("{}", "[]", Stage::Contracts);
        let before = head.id();
        let refused = refused(&mut head, 1, text);
        assert_eq!(refused.reason.code(), code, "{text}");
        assert!(refused.anomaly.is_none());
        assert_eq!((head.id(), head.tick()), (before, 0));
        assert_eq!(refused.refusal.body().value("/reason").unwrap().get("code"), Some(&Value::from(code)));
        assert_eq!(replay_refusal(&head, &refused.refusal, &DeltaReducer), Ok(()), "{text}");
    }
}

#[test]
fn the_runtime_writes_results_and_decisions_on_the_agents_behalf() {
    let (_, mut head) = start("{}", "[]", Stage::Replay);
    let record = committed(
        &mut head,
        1,
        r#"{"type":"policy.decision","author":"runtime","agent":"a","policy":{"decision":"deny"}}"#,
    );
    assert_eq!(record.header().author, Author::Runtime);
    assert_eq!(record.body().value("/agent_id"), Some("a".into()));
}

#[test]
fn a_change_that_does_not_fit_is_noted_at_stage_0_and_refused_above() {
    for stage in [Stage::Replay, Stage::Contracts] {
        let (_, mut head) = start(r#"{"n":"text"}"#, "[]", stage);
        let text = r#"{"type":"plan.update","delta":[{"add":"/n","value":1}]}"#;
        assert_eq!(refused(&mut head, 1, text).reason.code(), Code::E0404, "{stage}");
    }
    let (_, mut head) = start(r#"{"n":"text"}"#, "[]", Stage::Observe);
    let record = committed(
        &mut head,
        1,
        r#"{"type":"plan.update","author":"runtime","anomalies":["mine"],"delta":[{"add":"/n","value":1}]}"#,
    );
    let unknown = r#"{"kernel_unknown":{"/n":{"code":"delta_failed","tick":1}},"n":"text"}"#;
    assert_eq!(head.state(), &value(unknown));
    let anomalies = record.body().value("/anomalies").unwrap().to_string();
    assert_eq!(
        anomalies,
        r#"["mine",{"cause":"delta_no_number","delta":[{"add":"/n","value":1}],"found":"string","kind":"reducer_error","operation":0,"path":"/n"}]"#
    );
    let note = &record.body().value("/anomalies").unwrap();
    assert_eq!(
        sealed::words(note.as_array().unwrap().get(1).unwrap()).unwrap(),
        "delta operation 0 at n: add needs two numbers within 2^53-1, and there is a string"
    );
}

#[test]
fn time_never_runs_backwards_and_says_so() {
    let (_, mut head) = start("{}", "[]", Stage::Replay);
    let first = committed(&mut head, 50, r#"{"type":"plan.update"}"#);
    let second = committed(&mut head, 20, r#"{"type":"plan.update"}"#);
    assert_eq!(second.header().ts, first.header().ts);
    assert_eq!(
        second.body().value("/anomalies").unwrap().to_string(),
        r#"[{"by_ms":30,"kind":"clock_went_back"}]"#
    );
}

#[test]
fn each_broken_policy_rule_is_latched_once() {
    let policy = r#"[{"id":"risk","holds":"state.risk <= 0.75"},{"id":"late","holds":"state.risk < 0.85"}]"#;
    let (_, mut head) = start(r#"{"risk":0.1}"#, policy, Stage::Replay);
    let set =
        |risk: f64| format!(r#"{{"type":"observation.add","delta":[{{"set":"/risk","value":{risk}}}]}}"#);
    for (n, risk) in [0.7, 0.8, 0.2, 0.9].into_iter().enumerate() {
        committed(&mut head, n as u64 + 1, &set(risk));
    }
    assert_eq!(
        head.state().get("policy").unwrap().to_string(),
        r#"{"violated":{"rule":"risk","tick":2},"violations":[{"id":"late","tick":4}]}"#
    );
    let compliant = Predicate::built_in("kernel.policy_compliant").unwrap();
    assert_eq!(compliant.verdict(head.state(), None), Verdict::Violation);
}

#[test]
fn a_policy_rule_that_cannot_be_judged_is_not_latched_and_is_judged_again() {
    let (_, mut head) = start("{}", r#"[{"id":"spend","holds":"state.spent < 100"}]"#, Stage::Observe);
    committed(&mut head, 1, r#"{"type":"plan.update"}"#);
    assert_eq!(head.state().get("policy"), None);
    // A delta that fails leaves its place unknown, and what is unknown breaks no rule.
    committed(&mut head, 2, r#"{"type":"plan.update","delta":[{"add":"/spent","value":500}]}"#);
    assert_eq!(head.state().get("policy"), None);
    committed(&mut head, 3, r#"{"type":"plan.update","delta":[{"set":"/spent","value":500}]}"#);
    let latched = r#"{"policy":{"violated":{"rule":"spend","tick":3}},"spent":500}"#;
    assert_eq!(head.state(), &value(latched));
}

#[test]
fn a_run_cannot_begin_with_what_only_the_kernel_writes() {
    let begin = |state: &str, policy: &str| {
        let policy = value(policy).as_array().unwrap().iter().cloned().collect();
        let start = Start { state: value(state), policy, ..Start::new("r".parse().unwrap()) };
        begin(StoreId([5; 16]), &start, inputs(0)).map(|_| ()).unwrap_err()
    };
    assert_eq!(begin(r#"{"policy":{}}"#, "[]").code(), "E0405");
    let error = begin(r#"{"counters":{"x":1}}"#, "[]");
    assert_eq!(error.code(), "E0405");
    assert!(error.to_string().ends_with("stands beside the state; choose another name"), "{error}");
    assert_eq!(begin("[]", "[]").code(), "E0209");
    assert_eq!(begin("{}", r#"[{"id":"x"}]"#).code(), "E0501");
    let counters = r#"[{"id":"x","holds":"state.counters.tool_errors == 0"}]"#;
    assert!(begin("{}", counters).to_string().contains("state.counters is beside the state"));
    assert!(begin("{}", r#"[{"id":"x","holds":"state.a >"}]"#).to_string().starts_with("policy rule 0: "));
    assert_eq!(
        begin("{}", r#"[{"id":"x","holds":"true","when":"never"}]"#).to_string(),
        "policy rule 0: a rule has `id`, `holds` and perhaps `enforce` and `repairs`, and no \"when\""
    );
    assert_eq!(
        begin("{}", r#"[{"id":"x","holds":"true"},{"id":"y","holds":"true"},{"id":"x","holds":"false"}]"#)
            .to_string(),
        "policy rule 2: rule 0 has the id \"x\" already"
    );
}

/// The first agent is not to blame for the state that the run began with.
#[test]
fn a_run_that_begins_in_violation_is_violated_at_tick_0() {
    let rule = r#"[{"id":"risk","holds":"state.risk < 5"}]"#;
    let (record, mut head) = start(r#"{"risk":9}"#, rule, Stage::Replay);
    let latched = r#"{"policy":{"violated":{"rule":"risk","tick":0}},"risk":9}"#;
    assert_eq!(record.content().get("state").unwrap().to_string(), latched);
    assert_eq!(record.body().value("/state_root"), Some(Value::from(value(latched).digest())));
    let next = committed(&mut head, 1, r#"{"type":"plan.update","delta":[{"set":"/other","value":1}]}"#);
    assert_eq!(next.body().value("/delta").unwrap().to_string(), r#"[{"set":"/other","value":1}]"#);
    assert_eq!(head.state().get("policy").unwrap().to_string(), r#"{"violated":{"rule":"risk","tick":0}}"#);
    let mut again = replay_start(&record, &DeltaReducer).unwrap();
    replay_step(&mut again, &next, &DeltaReducer, true).unwrap();
    assert_eq!(again.id(), head.id());
    assert_eq!(given_state(&record.content()).to_string(), r#"{"risk":9}"#);
}

/// A run cannot begin with a latch of its own, nor without the one that is due.
#[test]
fn a_latch_that_the_initial_state_does_not_earn_diverges() {
    let rule = r#"[{"id":"risk","holds":"state.risk < 5"}]"#;
    for (earned, sealed) in [
        (r#"{"risk":1}"#, r#"{"policy":{"violated":{"rule":"risk","tick":0}},"risk":1}"#),
        (r#"{"risk":9}"#, r#"{"risk":9}"#),
    ] {
        let (record, _) = start(earned, rule, Stage::Replay);
        let mut content = record.content().as_object().cloned().unwrap();
        content.set("state", value(sealed));
        content.set("state_root", Value::from(value(sealed).digest()));
        let forged = seal_value(record.header().clone(), &Value::Object(content), Seed([1; 16])).unwrap();
        let error = replay_start(&forged, &DeltaReducer).map(|_| ()).unwrap_err();
        assert_eq!(error.code(), "E0701", "{sealed}: {error}");
    }
}

/// A run with everything in it that a step can do.
fn eventful() -> (Record, Vec<Record>, Vec<(u64, Record)>, RunState) {
    let (first, mut head) =
        start(r#"{"n":1,"list":[]}"#, r#"[{"id":"small","holds":"state.n < 5"}]"#, Stage::Replay);
    let (mut chain, mut beside) = (Vec::new(), Vec::new());
    for (n, text) in [
        r#"{"type":"observation.add","agent":"a","confidence":0.12345,"delta":[{"add":"/n","value":3}]}"#,
        r#"{"type":"run.fork","agent":"b","delta":[{"set":"/x","value":1}]}"#,
        r#"{"type":"action.request","agent":"a","action":{"tool":"t","params":{"deep":[{"x":NaN}]}},"effect":"read"}"#,
        r#"{"type":"action.result","author":"runtime","agent":"a","result":{"status":"error","output":{"$k":"\ud800"}},"delta":[{"append":"/list","value":{"$float":1}}]}"#,
        r#"{"type":"nope"}"#,
        r#"{"type":"plan.update","agent":"b","delta":[{"remove":"/missing"}]}"#,
        r#"{"type":"memory.write","agent":"b","delta":[{"add":"/n","value":30},{"set":"/m","value":"12345678901234567890123"}]}"#,
        r#"{"type":"plan.update","agent":"a","delta":[]}"#,
        r#"{"type":"goal.complete","agent":"a"}"#,
    ]
    .iter()
    .enumerate()
    {
        // The clock goes back once on the way.
        let when = if n == 6 { 2 } else { 10 + n as u64 };
        match step(&mut head, &intent(text), inputs(when)).unwrap() {
            Outcome::Committed(record) => chain.push(record),
            Outcome::Violated { violations, .. } => panic!("{violations:?}"),
            Outcome::Refused(refused) => {
                beside.push((head.tick() - u64::from(refused.anomaly.is_some()), refused.refusal));
                chain.extend(refused.anomaly);
            }
        }
    }
    let seen = Anomaly { agent: Some("a".into()), ..Anomaly::told("tool_failure", "timeout") };
    chain.push(note_anomaly(&mut head, &seen, inputs(3)).unwrap());
    (first, chain, beside, head)
}

#[test]
fn replay_makes_every_record_again() {
    let (first, chain, beside, end) = eventful();
    let mut head = RunState::at_start(&first).unwrap();
    for (tick, record) in (1..).zip(&chain) {
        for (_, refusal) in beside.iter().filter(|(judged_at, _)| *judged_at == tick - 1) {
            assert_eq!(replay_refusal(&head, refusal, &DeltaReducer), Ok(()));
        }
        replay_step(&mut head, record, &DeltaReducer, true).unwrap();
        assert_eq!(head.tick(), tick);
    }
    assert_eq!((head.id(), head.state(), head.counters()), (end.id(), end.state(), end.counters()));
    assert_eq!(beside.len(), 3);
}

/// D-23 of the requirements: an impure reducer makes onsets meaningless, and is caught.
#[test]
fn a_reducer_that_is_not_a_function_is_caught() {
    let calls = std::cell::Cell::new(0u64);
    let moody = HostReducer::new("host/moody", |_: &Value, _: &Intent| {
        calls.set(calls.get() + 1);
        Ok(Delta(vec![Op::set("/n".parse().unwrap(), Value::from(calls.get()))]))
    });
    let (_, mut head) = start(r#"{"n":0}"#, "[]", Stage::Replay);
    let outcome = step_with(&mut head, &intent(r#"{"type":"plan.update"}"#), inputs(1), &moody).unwrap();
    let Outcome::Committed(record) = outcome else { panic!("stage 1 flags and keeps") };
    let anomalies = record.body().value("/anomalies").unwrap();
    let words = sealed::words(anomalies.as_array().unwrap().get(0).unwrap()).unwrap();
    assert!(words.contains("two different changes for the same state"), "{words}");

    let (first, chain, ..) = eventful();
    let mut head = RunState::at_start(&first).unwrap();
    let error = replay_step(&mut head, &chain[0], &moody, true).unwrap_err();
    let ReplayError::Divergence(divergence) = error else { panic!("{error}") };
    assert_eq!(divergence.what, Compared::Evaluations);
    assert_eq!(head.tick(), 0, "a head does not move past what could not be replayed");
}

#[test]
fn a_divergence_says_where_and_holds_both_sides() {
    let (first, chain, ..) = eventful();
    let other = HostReducer::new("host/off-by-one", |_: &Value, intent: &Intent| {
        let mut delta = intent.delta.clone().unwrap_or_default();
        for op in &mut delta.0 {
            if let Some(number) = op.value.as_ref().and_then(Value::as_f64) {
                op.value = Some(Value::from(number + 1.0));
            }
        }
        Ok(delta)
    });
    let mut head = RunState::at_start(&first).unwrap();
    let error = replay_step(&mut head, &chain[0], &other, false).unwrap_err();
    assert_eq!(error.code(), "E0701");
    assert_eq!(error.to_string(), "at tick 1 the state differs in n: recorded 4, host/off-by-one computed 5");
    let ReplayError::Divergence(divergence) = error else { panic!("not a divergence") };
    assert!(divergence.usual_causes().starts_with("a clock, chance"));
}

#[test]
fn what_was_erased_cannot_be_replayed_and_is_named() {
    let (first, chain, ..) = eventful();
    let mut head = RunState::at_start(&first).unwrap();
    let withheld = chain[0].without(&["/intent/confidence".parse().unwrap()]);
    let error = replay_step(&mut head, &withheld, &DeltaReducer, false).unwrap_err();
    assert_eq!(error.to_string(), "tick 1 cannot be replayed: its intent.confidence was erased or withheld");
}

#[test]
fn a_record_that_does_not_agree_with_itself_diverges_on_its_root() {
    let (first, chain, ..) = eventful();
    let record = &chain[0];
    let mut content = record.content().as_object().unwrap().clone();
    content.set("state_root", Value::from(Digest::of(b"another state")));
    let lying = seal_value(record.header().clone(), &Value::Object(content), Seed([1; 16])).unwrap();
    let error =
        replay_step(&mut RunState::at_start(&first).unwrap(), &lying, &DeltaReducer, false).unwrap_err();
    let ReplayError::Divergence(divergence) = error else { panic!("{error}") };
    assert_eq!(divergence.what, Compared::StateRoot);
}

/// The record that a run begins with is made again like any other.
#[test]
fn replay_begins_with_the_run_record() {
    let (record, _) = start(r#"{"n":1}"#, "[]", Stage::Replay);
    assert_eq!(replay_start(&record, &DeltaReducer).unwrap().id(), record.id());
    let forged = |name: &str, with: Value| {
        let mut content = record.content().as_object().cloned().unwrap();
        content.set(name, with);
        let body = Body::commit(record::cut(&content), record.body().seed().unwrap()).unwrap();
        replay_start(&Record::seal(record.header().clone(), body).unwrap(), &DeltaReducer)
            .map(|_| ())
            .unwrap_err()
    };
    for (name, with, unverifiable) in [
        (
            "state_root",
            value(r#""sha256:0000000000000000000000000000000000000000000000000000000000000000""#),
            false,
        ),
        ("stage", value("9"), false),
        ("extra", value("1"), false),
        ("state", value("[]"), false),
        ("policy", value(r#"[{"id":"x"}]"#), false),
        ("kernel", value("999"), true),
        ("reducer", value(r#""magic/9""#), true),
    ] {
        let error = forged(name, with);
        assert_eq!(error.is_unverifiable(), unverifiable, "{name}: {error}");
    }
    let ReplayError::Divergence(divergence) = forged("stage", value("9")) else { panic!() };
    assert_eq!((divergence.tick, divergence.path.as_str()), (0, "/stage"));
}

/// `state.counters` in an expression means the derived counters, so no state can have a member of that name.
#[test]
fn no_reducer_writes_what_is_the_kernels() {
    for path in ["/counters/x", "/policy/violated", "/kernel_anomalies"] {
        let host = HostReducer::new("host/bold", |_: &Value, _: &Intent| {
            Ok(Delta(vec![Op::set(path.parse().unwrap(), Value::from(1u64))]))
        });
        let (_, mut head) = start("{}", "[]", Stage::Contracts);
        let outcome = step_with(&mut head, &intent(r#"{"type":"plan.update"}"#), inputs(1), &host).unwrap();
        let Outcome::Refused(refused) = outcome else { panic!("{path} was written") };
        assert!(refused.reason.to_string().contains("cannot be written by a reducer"), "{}", refused.reason);
    }
}

/// A transition of an older kernel is not called a divergence: it followed the rules of its time.
#[test]
fn a_record_that_wrote_counters_is_recorded_by_other_rules() {
    let (first, mut head) = start("{}", "[]", Stage::Replay);
    let record = committed(&mut head, 1, r#"{"type":"plan.update","delta":[{"set":"/x","value":1}]}"#);
    let mut content = record.content().as_object().cloned().unwrap();
    content.set("delta", value(r#"[{"set":"/counters","value":1}]"#));
    content.set("state_root", Value::from(value(r#"{"counters":1}"#).digest()));
    let old = seal_value(record.header().clone(), &Value::Object(content), Seed([1; 16])).unwrap();
    let error =
        replay_step(&mut RunState::at_start(&first).unwrap(), &old, &DeltaReducer, false).unwrap_err();
    assert!(error.is_unverifiable(), "{error}");
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        (
            Code::E0602,
            "tick 1 cannot be replayed: it wrote counters, and this kernel keeps state.counters beside the state"
        )
    );
    let mut content = first.content().as_object().cloned().unwrap();
    content.set("state", value(r#"{"counters":1}"#));
    let old = seal_value(first.header().clone(), &Value::Object(content), Seed([1; 16])).unwrap();
    assert!(replay_start(&old, &DeltaReducer).map(|_| ()).unwrap_err().is_unverifiable());
}

proptest! {
    /// A rule whose places were not written is not asked again; asking every rule every time makes the same records.
    #[test]
    fn rules_that_nothing_touched_need_no_second_look(
        rules in prop::sample::subsequence(
            vec![
                "state.a < 3", "state.b == null || state.b < 4", "has(state.c.x)", "!has(state.c.y) || state.a < 2",
                "size(string(state.b)) < 9", "state.a + state.b < 5", "state.d == null || state.d != state.a", "true",
            ],
            1..5,
        ),
        writes in prop::collection::vec(
            (prop::sample::select(vec!["/a", "/b", "/c", "/c/x", "/c/y", "/d"]), 0u64..5, 0u8..4), 1..12,
        ),
    ) {
        let policy = Value::array(rules.iter().enumerate().map(|(n, holds)| {
            Value::record([("id", Value::from(format!("r{n}"))), ("holds", Value::from(*holds))])
        }));
        let (_, mut head) = start(r#"{"a":1,"c":{"x":1}}"#, &policy.to_string(), Stage::Observe);
        let mut asked = head.clone();
        for (n, (path, number, what)) in (1..).zip(&writes) {
            let op = match what {
                0 => format!(r#"{{"remove":"{path}"}}"#),
                1 => format!(r#"{{"set":"{path}","value":{{"x":{number}}}}}"#),
                _ => format!(r#"{{"set":"{path}","value":{number}}}"#),
            };
            let text = format!(r#"{{"type":"plan.update","agent":"a","delta":[{op}]}}"#);
            asked.is_judged = false;
            prop_assert_eq!(committed(&mut head, n, &text).id(), committed(&mut asked, n, &text).id());
        }
    }
}

/// Who has the seed of one record of a step cannot derive that of another.
#[test]
fn no_seed_follows_from_one_on_record() {
    let (_, mut head) = start("{}", "[]", Stage::Observe);
    let outcome = step(&mut head, &intent(r#"{"type":"run.fork"}"#), inputs(7)).unwrap();
    let Outcome::Refused(refused) = outcome else { panic!("it is forged") };
    let anomaly = refused.anomaly.unwrap();
    let (first, second) = (refused.refusal.body().seed().unwrap(), anomaly.body().seed().unwrap());
    let derived = |seed: Seed, i: u64| Seeds::of_secret(seed.0).nth(i);
    for i in 0..4 {
        assert_ne!(derived(first, i), second);
        assert_ne!(derived(second, i), first);
    }
    // Both follow from the secret, which is neither.
    let secret = inputs(7).seeds;
    assert_eq!((secret.nth(0), secret.nth(1)), (first, second));
    assert!(![first.0, second.0].contains(&[7; 16]));
}

/// Two recordings of the same lines have the same states, whatever the chance that salts them.
#[test]
fn a_forged_type_leaves_nothing_by_chance_in_the_state() {
    let record = |n: u64| {
        let (_, mut head) = start("{}", "[]", Stage::Replay);
        step(&mut head, &intent(r#"{"type":"run.fork"}"#), inputs(n)).unwrap();
        head.state().clone()
    };
    assert_eq!(record(7), record(8));
    assert!(record(7).get("kernel_anomalies").is_some());
}
