//! What a contract forbids and what an institution adds to it, held against a model that is told every rule by hand
//! (dendrer paper 4.4).

use dendrer_kernel::Outcome;
use dendrer_kernel::pack::Bound;
use dendrer_kernel::reduce::DeltaReducer;
use dendrer_kernel::replay::{ReplayError, replay_start, replay_step};
use dendrer_kernel::step::{
    Approval, Extension, Inputs, Reason, RunState, Seeds, Stage, Start, begin, extend, settle, step,
};
use dendrer_object::note::{SignedNote, SigningKey};
use dendrer_object::record::Record;
use dendrer_object::{Code, Intent, StoreId, Timestamp, Value, json};

fn value(text: &str) -> Value {
    json::parse_door(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn inputs(n: u64) -> Inputs {
    Inputs { clock: Timestamp::from_ms(n), seeds: Seeds::of_secret(u128::from(n + 1).to_be_bytes()) }
}

/// A pack whose states are written by intents: `pay` needs `limit`, and `paid` must not pass it.
fn pack(more: &str) -> Value {
    value(&format!(
        r#"{{"name":"acme.pay","version":"v1","reducer":"delta/1",
            "state":{{"limit":{{"init":"s0.limit"}},"paid":{{"init":"0"}},"kyc":{{"init":"null"}}}},
            "types":{{"pay":"pays"}},
            "contracts":{{"pay":{{"required_state":{{"limit":{{"type":"number"}}}},"hash_seeds":["limit"]}}}},
            "violations":[{{"id":"over","condition":"state.paid > state.limit","bisect_predicate":"monotone_lift"}}]{more}}}"#
    ))
}

fn start(state: &str, pack: Value, stage: Stage) -> (Record, RunState) {
    let pack = Some(Bound { value: pack, text: "".into() });
    let start =
        Start { state: value(state), stage: Some(stage), pack, ..Start::new("r".parse().expect("a run id")) };
    begin(StoreId([5; 16]), &start, inputs(0)).expect("a run that may begin")
}

fn intent(text: &str) -> Intent {
    Intent::from_value(&value(text), Some("a")).expect("an intent")
}

fn set(path: &str, to: &str) -> Intent {
    intent(&format!(r#"{{"type":"memory.write","delta":[{{"set":"/{path}","value":{to}}}]}}"#))
}

fn pay(paid: u64) -> Intent {
    intent(&format!(r#"{{"type":"pay","delta":[{{"set":"/paid","value":{paid}}}]}}"#))
}

/// Makes the whole record again, as whoever verifies it does.
fn replay(first: &Record, chain: &[Record]) -> Result<RunState, ReplayError> {
    let mut head = replay_start(first, &DeltaReducer)?;
    chain.iter().try_for_each(|record| replay_step(&mut head, record, &DeltaReducer, true))?;
    Ok(head)
}

fn kyc(from: u64) -> Value {
    value(&format!(
        r#"{{"target_contract":"acme.pay.v1","adds_required":["kyc"],"adds_hash_seeds":["kyc"],
            "adds_violations":[{{"id":"unknown_payee","condition":"state.kyc == 'unknown'","pure":true,
                "bisect_predicate":"monotone_lift","scope":["pay"]}}],
            "effective_from_tick":{from},"approved_by":"j.doe"}}"#
    ))
}

/// What the state says of a violation.
fn found(id: &str, tick: u64) -> Value {
    let pack = dendrer_kernel::pack::digest(&pack(""));
    value(&format!(r#"{{"contract":"acme.pay","id":"{id}","pack":"{pack}","tick":{tick},"version":"v1"}}"#))
}

fn codes(error: &dendrer_kernel::step::NotExtended) -> Vec<&'static str> {
    error.faults.iter().map(|fault| fault.code().as_str()).collect()
}

#[test]
fn what_the_contract_forbids_is_named_right_behind_what_brought_it_about() {
    let (first, mut head) = start(r#"{"limit":100,"paid":0}"#, pack(""), Stage::Contracts);
    let mut chain = Vec::new();
    let outcome = step(&mut head, &pay(60), inputs(1)).unwrap();
    assert!(matches!(outcome, Outcome::Committed(_)), "{outcome:?}");
    chain.extend(outcome.records().into_iter().cloned());
    let outcome = step(&mut head, &pay(130), inputs(2)).unwrap();
    let Outcome::Violated { record, violations } = &outcome else { panic!("{outcome:?}") };
    assert_eq!(record.header().tick, Some(2));
    let [violation] = &violations[..] else { panic!("{violations:?}") };
    let header = violation.header();
    assert_eq!((header.tick, header.type_name.as_ref().unwrap().as_str()), (Some(3), "predicate.violation"));
    assert_eq!(header.author.as_str(), "kernel");
    assert_eq!(header.links[0].hash, record.id());
    let entry = found("over", 2);
    assert_eq!(violation.body().value("/violations"), Some(Value::array([entry.clone()])));
    assert_eq!(head.state().get("policy").unwrap().get("violations"), Some(&Value::array([entry])));
    chain.extend(outcome.records().into_iter().cloned());
    // Once is enough: what recovers and breaks again is the same violation.
    for (n, paid) in [(3, 10), (4, 500)] {
        let outcome = step(&mut head, &pay(paid), inputs(n)).unwrap();
        assert!(matches!(outcome, Outcome::Committed(_)), "{outcome:?}");
        chain.extend(outcome.records().into_iter().cloned());
    }
    assert_eq!(replay(&first, &chain).unwrap().state(), head.state());
    // A record that leaves it out, or brings it where nothing was broken, is not what replay makes.
    let without: Vec<Record> = [&chain[..2], &chain[3..]].concat();
    assert_eq!(replay(&first, &without).map(|_| ()).unwrap_err().code(), "E0701");
    let twice: Vec<Record> = [&chain[..3], &chain[2..]].concat();
    assert!(replay(&first, &twice).is_err());
}

#[test]
fn below_stage_2_a_violation_is_latched_and_no_record_names_it() {
    let (_, mut head) = start(r#"{"limit":100,"paid":0}"#, pack(""), Stage::Replay);
    assert!(matches!(step(&mut head, &pay(130), inputs(1)).unwrap(), Outcome::Committed(_)));
    let listed = head.state().get("policy").and_then(|policy| policy.get("violations")).unwrap();
    let ids = listed.as_array().unwrap().iter().map(|entry| entry.get("id").cloned().unwrap());
    assert_eq!(ids.collect::<Vec<_>>(), [Value::from("over")]);
    assert_eq!(head.tick(), 1);
}

#[test]
fn a_run_that_begins_in_violation_says_so_once_and_goes_on() {
    let (first, mut head) = start(r#"{"limit":1,"paid":5}"#, pack(""), Stage::Contracts);
    let outcome = step(&mut head, &pay(6), inputs(1)).unwrap();
    let Outcome::Committed(record) = outcome else { panic!("{outcome:?}") };
    let listed = head.state().get("policy").unwrap().get("violations").unwrap().clone();
    assert_eq!(listed, Value::array([found("over", 0)]));
    replay(&first, &[record]).unwrap();
}

#[test]
fn an_extension_holds_from_its_tick_on_and_for_nothing_before() {
    let (first, mut head) = start(r#"{"limit":100,"paid":0}"#, pack(""), Stage::Contracts);
    let mut chain = Vec::new();
    let mut take = |head: &mut RunState, n: u64, intent: &Intent| {
        let outcome = step(head, intent, inputs(n)).unwrap();
        if outcome.committed().is_some() {
            chain.extend(outcome.records().into_iter().cloned());
        }
        outcome
    };
    take(&mut head, 1, &pay(10));
    let extension = Extension::check(&head, &kyc(4), None).unwrap();
    assert_eq!((extension.id(), extension.approval()), ("e1", &Approval::Unsigned));
    let record = extend(&mut head, &extension, inputs(2)).unwrap();
    assert_eq!(settle(&mut head, inputs(2)).unwrap().len(), 0);
    assert_eq!(record.header().author.as_str(), "institution");
    assert_eq!((head.tick(), record.header().tick), (2, Some(2)));
    let paid = take(&mut head, 3, &pay(20));
    assert!(matches!(paid, Outcome::Committed(_)), "tick 3 is before it: {paid:?}");
    let refused = take(&mut head, 4, &pay(30));
    let Outcome::Refused(refused) = refused else { panic!("{refused:?}") };
    let Reason::Contract { lacks, .. } = &refused.reason else { panic!("{:?}", refused.reason) };
    assert_eq!(lacks.iter().map(|lack| &*lack.name).collect::<Vec<_>>(), ["kyc"]);
    assert!(
        matches!(take(&mut head, 5, &set("kyc", "\"unknown\"")), Outcome::Committed(_)),
        "the scope is pay"
    );
    let violated = take(&mut head, 6, &pay(30));
    assert!(matches!(violated, Outcome::Violated { .. }), "{violated:?}");
    chain.insert(1, record);
    assert_eq!(replay(&first, &chain).unwrap().state(), head.state());
    // Whoever takes the run up later knows the same contract.
    let again = RunState::at_moment(
        &[&first],
        head.tick(),
        head.id(),
        head.ts(),
        head.state().clone(),
        (head.counters().clone(), head.commitments().clone()),
        head.agents().clone(),
    );
    assert_eq!(again.unwrap().in_force(), head.in_force());
    assert_ne!(head.in_force(), Some(pack("")));
}

#[test]
fn an_extension_that_is_not_in_order_is_refused_with_all_that_is_wrong() {
    let (_, mut head) = start(r#"{"limit":100,"paid":0}"#, pack(""), Stage::Contracts);
    step(&mut head, &pay(10), inputs(1)).unwrap();
    let check = |text: &str| Extension::check(&head, &value(text), None).map(|_| ()).map_err(|e| codes(&e));
    let good = r#""target_contract":"acme.pay/v1","adds_required":["kyc"]"#;
    assert_eq!(check(&format!(r#"{{{good},"effective_from_tick":2,"approved_by":"j"}}"#)), Ok(()));
    for (text, expected) in [
        (format!(r#"{{{good},"effective_from_tick":1}}"#), vec!["E0421", "E0422"]),
        (format!(r#"{{{good},"effective_from_tick":0,"approved_by":"j"}}"#), vec!["E0421"]),
        (format!(r#"{{{good},"effective_from_tick":9,"approved_by":" "}}"#), vec!["E0422"]),
        (format!(r#"{{{good},"approved_by":"j"}}"#), vec!["E0420"]),
        (format!(r#"{{{good},"effective_from_tick":2.5,"approved_by":"j"}}"#), vec!["E0420"]),
        (format!(r#"{{{good},"adds_requierd":[],"effective_from_tick":9,"approved_by":"j"}}"#), vec!["E0420"]),
        (r#"{"target_contract":"acme.pay/v2","adds_required":["kyc"],"effective_from_tick":9,"approved_by":"j"}"#.into(), vec!["E0414"]),
        (r#"{"target_contract":"acme.pay/v1","effective_from_tick":9,"approved_by":"j"}"#.into(), vec!["E0420"]),
        (r#"{"target_contract":"acme.pay/v1","adds_hash_seeds":["limit"],"effective_from_tick":9,"approved_by":"j"}"#.into(), vec!["E0420"]),
        (r#"{"target_contract":"acme.pay/v1","types":["gone"],"adds_required":["kyc"],"effective_from_tick":9,"approved_by":"j"}"#.into(), vec!["E0420"]),
        (r#"{"target_contract":"acme.pay/v1","adds_violations":[{"id":"x","condition":"state.paid > 3","monotone":true}],"effective_from_tick":9,"approved_by":"j"}"#.into(), vec!["E0420"]),
        (r#"{"target_contract":"acme.pay/v1","adds_violations":[{"id":"x","condition":"state.paid > now()","bisect_predicate":"monotone_lift"}],"effective_from_tick":9,"approved_by":"j"}"#.into(), vec!["E0420"]),
        ("[]".into(), vec!["E0420"]),
    ] {
        let found = check(&text).expect_err(&text);
        assert!(expected.iter().all(|code| found.contains(code)), "{text}: {found:?}");
    }
    let (_, bare) = begin(StoreId([5; 16]), &Start::new("r".parse().unwrap()), inputs(0)).unwrap();
    assert!(codes(&Extension::check(&bare, &kyc(1), None).unwrap_err()).contains(&"E0420"));
}

#[test]
fn where_the_contract_names_keys_an_approval_is_signed_by_one_of_them() {
    let (ours, other) =
        (SigningKey::from_seed("j.doe", [1; 32]).unwrap(), SigningKey::from_seed("j.doe", [2; 32]).unwrap());
    let pack = pack(&format!(r#","approvers":{{"j.doe":"{}"}}"#, ours.verifier_key()));
    let (first, mut head) = start(r#"{"limit":100,"paid":0}"#, pack, Stage::Contracts);
    let unsigned = Extension::check(&head, &kyc(1), None).unwrap_err();
    assert_eq!(codes(&unsigned), ["E0423"]);
    let by = |key: &SigningKey, text: &str| SignedNote::sign(text, key).unwrap().to_string();
    let check = |head: &RunState, extension: &Value, note: &str| {
        Extension::check(head, extension, Some(note)).map_err(|e| codes(&e))
    };
    assert_eq!(check(&head, &kyc(1), &by(&other, &unsigned.text)).unwrap_err(), ["E0423"]);
    assert_eq!(check(&head, &kyc(1), &by(&ours, "something else\n")).unwrap_err(), ["E0423"]);
    assert_eq!(
        check(&head, &kyc(2), &by(&ours, &unsigned.text)).unwrap_err(),
        ["E0423"],
        "it was signed for tick 1"
    );
    let mut stranger = kyc(1).as_object().unwrap().clone();
    stranger.set("approved_by", Value::from("m.roe"));
    assert_eq!(check(&head, &Value::Object(stranger), &by(&ours, &unsigned.text)).unwrap_err(), ["E0423"]);
    let extension = check(&head, &kyc(1), &by(&ours, &unsigned.text)).unwrap();
    let record = extend(&mut head, &extension, inputs(1)).unwrap();
    assert_eq!(replay(&first, std::slice::from_ref(&record)).unwrap().state(), head.state());
    // The same approval does not serve twice.
    assert!(check(&head, &kyc(9), &by(&ours, &unsigned.text)).is_err());
}

#[test]
fn no_agent_and_no_runtime_extends_a_contract() {
    let (_, mut head) = start(r#"{"limit":100,"paid":0}"#, pack(""), Stage::Contracts);
    for author in ["agent", "runtime", "institution", "kernel"] {
        let text = format!(
            r#"{{"type":"policy.contract_extension","author":"{author}","intent":{{"extension":{}}}}}"#,
            json::to_string(&kyc(1))
        );
        let outcome = step(&mut head, &intent(&text), inputs(1)).unwrap();
        let Outcome::Refused(refused) = outcome else { panic!("{author}: {outcome:?}") };
        assert_eq!(refused.reason.code(), "E0401");
        assert!(refused.anomaly.is_some());
    }
    let outcome = step(
        &mut head,
        &intent(r#"{"type":"memory.write","delta":[{"set":"/policy/extensions","value":[]}]}"#),
        inputs(9),
    );
    assert!(matches!(outcome.unwrap(), Outcome::Refused(_)), "what is in force is the kernel's to write");
}

#[test]
fn at_stage_3_the_pack_gates_every_transition_and_every_tool() {
    let bare = Start { stage: Some(Stage::Full), ..Start::new("r".parse().unwrap()) };
    let refused = begin(StoreId([5; 16]), &bare, inputs(0)).map(|_| ()).unwrap_err();
    assert_eq!(refused.code(), "E0604", "{refused}");
    let unsound = pack(r#","predicates":{"few":{"condition":"state.paid > 3"}}"#);
    let unsound = Start {
        state: value(r#"{"limit":9,"paid":0}"#),
        pack: Some(Bound { value: unsound, text: "".into() }),
        ..bare
    };
    assert_eq!(begin(StoreId([5; 16]), &unsound, inputs(0)).map(|_| ()).unwrap_err().code(), Code::E0604);
    let tools = r#","tools":{"bank.pay":{"effect":"effectful"}}"#;
    let (first, mut head) = start(r#"{"limit":100,"paid":0}"#, pack(tools), Stage::Full);
    let code = |head: &mut RunState, text: &str| match step(head, &intent(text), inputs(1)).unwrap() {
        Outcome::Refused(refused) => refused.reason.code().as_str(),
        _ => "",
    };
    assert_eq!(code(&mut head, r#"{"type":"plan.update"}"#), "E0425");
    assert_eq!(code(&mut head, r#"{"type":"pay","action":{"tool":"bank.steal"}}"#), "E0426");
    assert_eq!(
        code(&mut head, r#"{"type":"pay","action":{"calls":[{"tool":"bank.pay"},{"tool":"x"}]}}"#),
        "E0426"
    );
    assert_eq!(head.tick(), 0);
    let paid = step(&mut head, &intent(r#"{"type":"pay","action":{"tool":"bank.pay"}}"#), inputs(2)).unwrap();
    replay(&first, &paid.records().into_iter().cloned().collect::<Vec<_>>()).unwrap();
    // One stage below, the same is let through.
    let (_, mut below) = start(r#"{"limit":100,"paid":0}"#, pack(tools), Stage::Contracts);
    assert_eq!(code(&mut below, r#"{"type":"plan.update"}"#), "");
}

/// Numbers that look like chance and are the same everywhere.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Property: which fields are required at which tick, and at which tick each violation began, is what a list of the rules
/// with their ticks says, whatever the order of steps and extensions.
#[test]
fn contracts_change_exactly_at_their_ticks() {
    for case in 0..300 {
        let mut dice = Dice(case);
        let (first, mut head) = start(r#"{"limit":50,"paid":0}"#, pack(""), Stage::Contracts);
        let mut chain: Vec<Record> = Vec::new();
        // What the model knows: each required field and each violation with the tick from which on it counts.
        let mut required: Vec<(String, u64)> = vec![("limit".into(), 0)];
        let mut forbidden: Vec<(String, String, u64)> = vec![("over".into(), "limit".into(), 0)];
        let mut begun: Vec<(String, u64)> = Vec::new();
        let mut fields: std::collections::BTreeMap<String, u64> =
            [("limit".to_owned(), 50), ("paid".to_owned(), 0)].into();
        for n in 0..30 {
            let tick = head.tick() + 1;
            match dice.below(6) {
                0 => {
                    let (from, number) = (tick + dice.below(6), required.len());
                    let text = format!(
                        r#"{{"target_contract":"acme.pay/v1","adds_required":["f{number}"],"approved_by":"j",
                            "adds_violations":[{{"id":"v{number}","condition":"has(state.f{number}) && state.paid > state.f{number}","bisect_predicate":"monotone_lift"}}],
                            "effective_from_tick":{from}}}"#
                    );
                    let extension = Extension::check(&head, &value(&text), None).unwrap();
                    chain.push(extend(&mut head, &extension, inputs(n)).unwrap());
                    chain.extend(settle(&mut head, inputs(n)).unwrap());
                    let from = from.max(tick + 1);
                    required.push((format!("f{number}"), from));
                    forbidden.push((format!("v{number}"), format!("f{number}"), from));
                    // The extension is a transition, too: what came into force before it is looked at there.
                }
                1 | 2 => {
                    let name = format!("f{}", 1 + dice.below(4));
                    let to = dice.below(80);
                    let outcome = step(&mut head, &set(&name, &to.to_string()), inputs(n)).unwrap();
                    chain.extend(outcome.records().into_iter().cloned());
                    fields.insert(name, to);
                }
                _ => {
                    let paid = dice.below(90);
                    let outcome = step(&mut head, &pay(paid), inputs(n)).unwrap();
                    let lacking: Vec<&String> = required
                        .iter()
                        .filter(|(name, from)| *from <= tick && !fields.contains_key(name))
                        .map(|(name, _)| name)
                        .collect();
                    match &outcome {
                        Outcome::Refused(refused) => {
                            let Reason::Contract { lacks, .. } = &refused.reason else { panic!() };
                            let found: Vec<&str> = lacks.iter().map(|lack| &*lack.name).collect();
                            let mut lacking: Vec<&str> = lacking.iter().map(|name| &***name).collect();
                            lacking.sort_unstable();
                            assert_eq!(found, lacking, "case {case} tick {tick}");
                            continue;
                        }
                        _ => assert!(lacking.is_empty(), "case {case} tick {tick}: {lacking:?}"),
                    }
                    chain.extend(outcome.records().into_iter().cloned());
                    fields.insert("paid".into(), paid);
                }
            }
            // Whatever was just committed has this tick; a predicate.violation behind it changes nothing.
            for (id, field, from) in &forbidden {
                let broken = fields.get(field).is_some_and(|limit| fields["paid"] > *limit);
                if *from <= tick && broken && !begun.iter().any(|(known, _)| known == id) {
                    begun.push((id.clone(), tick));
                }
            }
            // What comes into force at the tick of a predicate.violation is looked for there.
            for at in tick + 1..=head.tick() {
                for (id, field, from) in &forbidden {
                    let broken = fields.get(field).is_some_and(|limit| fields["paid"] > *limit);
                    if *from <= at && broken && !begun.iter().any(|(known, _)| known == id) {
                        begun.push((id.clone(), at));
                    }
                }
            }
            let listed = head.state().get("policy").and_then(|policy| policy.get("violations")).cloned();
            let found: Vec<(String, u64)> = listed
                .iter()
                .filter_map(Value::as_array)
                .flat_map(|listed| listed.iter())
                .map(|entry| {
                    let id = entry.get("id").and_then(Value::as_str).unwrap().to_owned();
                    (id, entry.get("tick").and_then(Value::as_u64).unwrap())
                })
                .collect();
            let sorted = |mut list: Vec<(String, u64)>| {
                list.sort();
                list
            };
            assert_eq!(sorted(found), sorted(begun.clone()), "case {case} at {}", head.tick());
        }
        let replayed = replay(&first, &chain).unwrap_or_else(|error| panic!("case {case}: {error}"));
        assert_eq!((replayed.id(), replayed.state()), (head.id(), head.state()));
    }
}
