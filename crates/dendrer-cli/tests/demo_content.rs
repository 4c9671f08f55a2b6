//! The content of `dendrer demo`: what the transcripts and the corruption suite rely on.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

#[path = "../src/demo/mod.rs"]
mod demo;

use std::ops::ControlFlow;
use std::path::PathBuf;

use dendrer::Trace;
use dendrer::bisect;
use dendrer::bisect::BisectOutcome;
use dendrer::bisect::BisectSubject;
use dendrer::bisect::Range;
use dendrer::bundle;
use dendrer::fork::origin;
use dendrer::recorder::Fixed;
use dendrer::recorder::begin_log;
use dendrer::trace::ReadHandle;
use dendrer::verify;
use dendrer::verify::VerifyTerms;
use dendrer::verify::VerifyVerdict;
use dendrer_kernel::predicate::Predicate;
use dendrer_object::RunName;
use dendrer_object::Value;
use dendrer_object::record::Author;
use dendrer_object::{Code, Digest};
use dendrer_store::Memory;
use dendrer_store::Shared;
use dendrer_store::prelude::*;
use dendrer_view::receipt as view;

fn filled() -> Shared {
    let mut store = Shared::new(Box::new(Memory::new(demo::store_info())));
    begin_log(&mut store, &mut Fixed::new("demo", 0, 1)).unwrap();
    demo::fill(&store).unwrap();
    store.sign_checkpoint(&demo::key()).unwrap();
    store
}

fn name(text: &str) -> RunName {
    text.parse().unwrap()
}

fn export(store: &Shared, runs: &[&str]) -> Vec<u8> {
    let runs: Vec<RunName> = runs.iter().map(|run| name(run)).collect();
    let bundle = bundle::export(store, &runs, &store.checkpoint().unwrap().unwrap()).unwrap();
    bundle.to_vec().unwrap()
}

fn ask(store: &impl ReadHandle, run: &str, predicate: Predicate) -> (Vec<u64>, BisectOutcome) {
    let trace = Trace::open(store, &name(run)).unwrap();
    let range = Range { scan: true, ..Range::new(0, trace.tip()) };
    let report = bisect::bisect(&trace, &BisectSubject::Predicate(predicate), &range).unwrap();
    if let BisectOutcome::Onset(tick) = report.outcome {
        assert_eq!(report.scan, Some(Some(tick)), "{run}: judging every tick agrees");
    }
    assert!(report.probes.len() as u32 <= report.probes_max);
    (report.probes.iter().map(|probe| probe.tick).collect(), report.outcome)
}

fn policy_compliant() -> Predicate {
    Predicate::built_in("kernel.policy_compliant").unwrap()
}

/// Type, author, agent and one value of the content, in one line.
fn step(store: &Shared, run: &str, tick: u64, path: &str) -> String {
    let trace = Trace::open(store, &name(run)).unwrap();
    let record = trace.record(tick).unwrap();
    let content = record.content();
    let value = path.parse::<dendrer_object::Pointer>().unwrap().get(&content).cloned();
    let (type_name, author) = (record.header().type_name.clone().unwrap(), record.header().author);
    format!("{type_name} {author} {} {}", content.get("agent_id").unwrap(), Value::from(value))
}

fn state(store: &Shared, run: &str, tick: u64, path: &str) -> String {
    let moment = Trace::open(store, &name(run)).unwrap().at(tick).unwrap();
    let value = path.parse::<dendrer_object::Pointer>().unwrap().get(&moment.state).cloned();
    Value::from(value).to_string()
}

#[test]
fn demo_runs_are_the_ones_that_are_promised() {
    let store = Shared::new(Box::new(Memory::new(demo::store_info())));
    let runs = demo::fill(&store).unwrap();
    let listed: Vec<_> = runs.iter().map(|run| (run.name.as_str(), run.ticks, run.refusals)).collect();
    let expected = [
        ("trip-planner-a", 47, 0),
        ("logistics-run-47", 64, 0),
        ("logistics-planner-1", 64, 0),
        ("planning-run-12", 48, 0),
        ("financial-agent-A", 30, 0),
        ("financial-agent-B", 18, 0),
        ("financial-agent-C", 30, 0),
        ("claims-9", 40, 0),
        ("claims-10", 22, 0),
        ("hostile-1", 20, 6),
        ("trip-planner-b", 45, 0),
        ("trip-planner-c", 44, 0),
        ("trip-planner-d", 31, 0),
        ("logistics-fix-1", 23, 0),
        ("shop-team", 10, 0),
        ("workshop-300", 300, 0),
        ("code-repair-1", 57, 1),
        ("storefront-7", 16, 0),
        ("run-84f2", 5, 0),
    ];
    assert_eq!(listed, expected);
    for run in &runs {
        let trace = Trace::open(&store, &run.name).unwrap();
        let meta = trace.start().content().get("meta").cloned().unwrap();
        if meta.get("inputs").is_none() {
            assert_eq!(meta.get("synthetic"), Some(&Value::from(true)), "{}", run.name);
            assert!(meta.get("source").is_some());
        }
        assert_eq!(trace.record(run.ticks).unwrap().id(), run.tip);
        assert!(!run.shows.is_empty());
    }
}

#[test]
fn demo_bytes_are_equal_on_every_machine() {
    let (first, second) = (filled(), filled());
    assert_eq!(first.tree(), second.tree());
    let all = ["trip-planner-a", "logistics-run-47", "logistics-planner-1", "planning-run-12"];
    assert_eq!(export(&first, &all), export(&second, &all));
    // A change here is a change of the demo, of the kernel or of the format. The last two need a vector.
    let runs = first.runs(0, 100).unwrap();
    let tips: Vec<String> = runs.iter().map(|run| format!("{} {}", run.name, run.head.id.short())).collect();
    assert_eq!(tips, TIPS);
}

const TIPS: [&str; 19] = [
    "trip-planner-a a1a8b7264d96",
    "logistics-run-47 b03fcf292567",
    "logistics-planner-1 070b2162be70",
    "planning-run-12 80c678c659e4",
    "financial-agent-A a0df7280db79",
    "financial-agent-B 6f41c94e4d8a",
    "financial-agent-C 74c3c0a9fb0c",
    "claims-9 fa4ce98ed0d4",
    "claims-10 616710cb0b91",
    "hostile-1 6defbf745448",
    "trip-planner-b 298e7da919c5",
    "trip-planner-c a4a497e2b87e",
    "trip-planner-d 69f180d0c266",
    "logistics-fix-1 886696d4dfc0",
    "shop-team 5728c6d6bad8",
    "workshop-300 a59c3e21a28c",
    "code-repair-1 11eed40c50ce",
    "storefront-7 b812b3422b11",
    "run-84f2 01c6ca75f493",
];

#[test]
fn demo_results_and_decisions_are_written_by_the_runtime() {
    let store = filled();
    for run in store.runs(0, 100).unwrap() {
        let trace = Trace::open(&store, &run.name).unwrap();
        for tick in 1..=trace.tip() {
            let record = trace.record(tick).unwrap();
            let type_name = record.header().type_name.clone().unwrap();
            let expected = match type_name.as_str() {
                "action.result" | "policy.decision" => Author::Runtime,
                "kernel.anomaly" | "predicate.violation" | "run.fork" => Author::Kernel,
                "policy.contract_extension" => Author::Institution,
                // Of a graph's run the agent asks, and the runtime writes.
                _ if run.name.as_str() == "run-84f2" && type_name.as_str() != "action.request" => {
                    Author::Runtime
                }
                // An eval of a chain is the runtime's.
                _ if run.name.as_str() == "storefront-7" && [5, 15, 16].contains(&tick) => Author::Runtime,
                // A judgement on a request is the runtime's.
                _ if record.body().value("/policy").is_some() => Author::Runtime,
                // The task is the user's; the child's contract and the end are the runtime's.
                _ if run.name.as_str() == "code-repair-1" && tick == 1 => Author::User,
                _ if run.name.as_str() == "code-repair-1" && [13, 57].contains(&tick) => Author::Runtime,
                _ => Author::Agent,
            };
            assert_eq!(record.header().author, expected, "{}@{tick}", run.name);
        }
    }
}

/// Witness-log paper 2.4: a chain with an x402 payment is safe to persist.
#[test]
fn demo_chain_holds_no_secret_of_its_script() {
    let script = include_str!("../src/demo/storefront-7.jsonl");
    let secrets = ["eyJhbGciOiJIUzI1NiJ9.eyJ", "sk-ant-api03-Qm7Z"];
    assert!(secrets.iter().all(|secret| script.contains(secret)));
    let store = filled();
    let bundle = String::from_utf8(export(&store, &["storefront-7"])).unwrap();
    assert!(secrets.iter().all(|secret| !bundle.contains(secret)), "{bundle}");
    assert!(bundle.contains("application/json") && bundle.contains("r-5521"), "the rest is kept");
    let step = |tick: u64| step(&store, "storefront-7", tick, "/action/params/headers/Authorization");
    assert!(
        step(7).contains("redacted") && step(7) != step(9),
        "two tokens stay two: {} {}",
        step(7),
        step(9)
    );
}

/// Research note R-001: "re-evaluating the graph against a recorded frontier must reproduce the run bit-for-bit".
#[test]
fn demo_graph_is_made_again_from_its_frontier() {
    let store = filled();
    let trace = Trace::open(&store, &name("run-84f2")).unwrap();
    let run = dendrer::run::frontier::graph_run(&trace).unwrap();
    let edges: Vec<&str> = run.edges().iter().map(|edge| edge.path.as_str()).collect();
    assert_eq!(edges, ["e1", "e2"]);
    let output = r#"{"day":"friday","first":"09:00 harbour office","meetings":3}"#;
    assert_eq!(state(&store, "run-84f2", trace.tip(), "/output"), output);
}

#[test]
fn demo_onsets_come_with_the_probe_orders_of_the_paper() {
    let store = filled();
    let onset = |tick| BisectOutcome::Onset(tick);
    assert_eq!(
        ask(&store, "logistics-run-47", policy_compliant()),
        (vec![32, 16, 24, 20, 22, 21], onset(22))
    );
    assert_eq!(
        ask(&store, "logistics-planner-1", policy_compliant()),
        (vec![32, 16, 8, 12, 14, 13], onset(14))
    );
    let budget =
        Predicate::condition("acme.budget_compliance_v1", "state.plan_total > state.budget_limit").unwrap();
    assert_eq!(ask(&store, "planning-run-12", budget), (vec![24, 12, 6, 3, 1], onset(1)));
    assert_eq!(ask(&store, "planning-run-12", policy_compliant()), (vec![24, 12, 6, 3, 1], onset(1)));
    assert_eq!(ask(&store, "trip-planner-a", policy_compliant()), (vec![], BisectOutcome::Never));
    assert_eq!(ask(&store, "trip-planner-a", Predicate::anomaly("kernel.anomaly")).1, onset(5));
    assert_eq!(ask(&store, "trip-planner-a", Predicate::anomaly("invariant_breach")).1, onset(20));
    assert_eq!(ask(&store, "logistics-run-47", Predicate::anomaly("kernel.anomaly")).1, onset(32));
    assert_eq!(ask(&store, "logistics-planner-1", Predicate::anomaly("kernel.anomaly")).1, onset(20));
    assert_eq!(ask(&store, "hostile-1", Predicate::anomaly("forged_type")).1, onset(15));
}

#[test]
fn demo_quality_recovers_and_bisect_refuses_it() {
    let store = filled();
    let quality = Predicate::condition("acme.quality_oscillator", "state.quality_score < 0.75").unwrap();
    let (probes, outcome) = ask(&store, "logistics-run-47", quality);
    let BisectOutcome::Recovers(turns) = outcome else { panic!("{outcome:?}") };
    let turns: Vec<String> = turns.iter().map(|(tick, verdict)| format!("{tick} {verdict}")).collect();
    assert_eq!((probes, turns), (vec![], vec!["14 violation".into(), "17 ok".into(), "22 violation".into()]));
}

#[test]
fn demo_ticks_are_as_printed() {
    let store = filled();
    let at = |tick, path| step(&store, "logistics-run-47", tick, path);
    assert_eq!(at(22, "/intent/confidence"), r#"observation.add agent "feed-reader" 0.31"#);
    assert_eq!(at(22, "/intent/source"), r#"observation.add agent "feed-reader" "unverified_feed_3""#);
    assert_eq!(at(23, "/policy/decision"), r#"policy.decision runtime "compliance" "deny""#);
    assert_eq!(at(27, "/policy/decision"), r#"action.request runtime "dispatcher" "deny""#);
    assert_eq!(at(32, "/anomalies/0/kind"), r#"kernel.anomaly kernel "kernel" "invariant_breach""#);
    let risk = |tick| state(&store, "logistics-run-47", tick, "/risk_score");
    assert_eq!([risk(20), risk(21), risk(22)], ["0.64", "0.71", "0.83"]);
    assert_eq!(state(&store, "logistics-run-47", 64, "/policy/violated/tick"), "22");

    let at = |tick, path| step(&store, "logistics-planner-1", tick, path);
    assert_eq!(at(1, "/intent/source"), r#"observation.add agent "scout" "weather_api""#);
    assert_eq!(
        at(8, "/intent/depends_on"),
        r#"observation.add agent "scout" ["route.status","weather.condition"]"#
    );
    assert_eq!(at(13, "/intent/confidence"), r#"observation.add agent "scout" 0.31"#);
    assert_eq!(
        at(14, "/policy/notes"),
        r#"policy.decision runtime "gate" "risk_score=0.82 > threshold=0.75""#
    );
    assert_eq!(at(17, "/policy/decision"), r#"action.request runtime "planner" "deny""#);
    assert_eq!(at(20, "/anomalies/0/kind"), r#"kernel.anomaly kernel "kernel" "invariant_breach""#);

    assert_eq!(
        step(&store, "planning-run-12", 1, "/intent/confidence"),
        r#"plan.update agent "planner" 0.82"#
    );

    let at = |tick, path| step(&store, "trip-planner-a", tick, path);
    assert_eq!(at(12, "/type"), r#"observation.add agent "verifier" null"#);
    assert_eq!(at(30, "/type"), r#"plan.update agent "planner" null"#);
    assert_eq!(at(31, "/action/params/max_price_chf"), r#"action.request runtime "planner" 120"#);
    assert_eq!(at(32, "/result/output/hotel"), r#"action.result runtime "planner" "Hotel Krone""#);
    assert_eq!(at(33, "/intent/confidence"), r#"plan.update agent "planner" 0.84"#);
    assert_eq!(at(34, "/policy/decision"), r#"policy.decision runtime "budgeter" "allow""#);
    assert_eq!(state(&store, "trip-planner-a", 36, "/budget_remaining"), "42");
    assert_eq!(state(&store, "trip-planner-a", 36, "/hotel_rating"), "4");
    assert_eq!(state(&store, "trip-planner-a", 47, "/hotel/name"), r#""Hotel Krone""#);
}

#[test]
fn demo_forks_go_on_from_where_they_say() {
    let store = filled();
    let runs = ["trip-planner-b", "trip-planner-c", "trip-planner-d", "logistics-fix-1"];
    let origins: Vec<String> = runs
        .iter()
        .map(|run| {
            let origin = origin(&Trace::open(&store, &name(run)).unwrap()).unwrap().unwrap();
            format!("{}@{} {}", origin.run, origin.tick, origin.reason.unwrap())
        })
        .collect();
    assert_eq!(
        origins,
        [
            "trip-planner-a@30 look for a cheaper room",
            "trip-planner-a@30 ask once more",
            "trip-planner-a@12 take prices from the tourist board alone",
            "logistics-run-47@21 use the verified feed",
        ]
    );

    let at = |tick, path| step(&store, "trip-planner-b", tick, path);
    assert_eq!(at(31, "/fork/parent_tick"), r#"run.fork kernel "kernel" 30"#);
    assert_eq!(at(32, "/action/params/max_price_chf"), r#"action.request runtime "planner" 90"#);
    assert_eq!(at(33, "/result/output/hotel"), r#"action.result runtime "planner" "Hostel Basel""#);
    assert_eq!(at(34, "/intent/confidence"), r#"plan.update agent "planner" 0.79"#);
    assert_eq!(at(35, "/type"), r#"observation.add agent "verifier" null"#);
    assert_eq!(state(&store, "trip-planner-b", 37, "/budget_remaining"), "131");
    assert_eq!(state(&store, "trip-planner-b", 37, "/hotel_rating"), "2");

    // Each journey ends with its goal met and with money left: what it says it spent is what is gone.
    for (run, tip, left) in [("b", 45, 62), ("c", 44, 62), ("d", 31, 197)] {
        let run = format!("trip-planner-{run}");
        assert_eq!(state(&store, &run, tip, "/goals"), "[]", "{run}");
        assert_eq!(state(&store, &run, tip, "/budget_remaining"), left.to_string(), "{run}");
        let said = step(&store, &run, tip, "/intent/description");
        assert!(said.ends_with(&format!("for CHF {}\"", 600 - left)), "{run}: {said}");
        assert_eq!(ask(&store, &run, policy_compliant()).1, BisectOutcome::Never, "{run}");
    }
    // No price without a source, no risk, nothing denied: what went wrong in a comes after tick 12.
    assert_eq!(ask(&store, "trip-planner-d", Predicate::anomaly("invariant_breach")).1, BisectOutcome::Never);
    assert_eq!(state(&store, "trip-planner-d", 31, "/beliefs/hotel_price"), "null");

    assert_eq!(
        step(&store, "logistics-fix-1", 23, "/intent/output/source"),
        r#"observation.add agent "feed-reader" "port_api""#
    );
    assert_eq!(state(&store, "logistics-fix-1", 23, "/risk_score"), "0.64");
    assert_eq!(ask(&store, "logistics-fix-1", policy_compliant()).1, BisectOutcome::Never);
}

#[test]
fn demo_runs_verify_and_replay() {
    let store = filled();
    let report = verify::store(&store, &VerifyTerms { replay: true, ..VerifyTerms::default() }).unwrap();
    assert_eq!((report.verdict, report.findings.len()), (VerifyVerdict::Intact, 0), "{:?}", report.findings);
    for run in &report.runs {
        assert_eq!(run.replay, Some(Ok(run.line.tick)), "{}", run.run);
    }
}

/// The code of a finding and the tick it names.
type Found = (&'static str, Option<u64>);

/// What verification says of a file: the verdict, each finding's code and tick, and the last good tick.
fn judge(text: &[u8], tip: Option<Digest>) -> (VerifyVerdict, Vec<Found>, Option<u64>) {
    let opened = bundle::open(PathBuf::from("x.dnd"), text).unwrap();
    // The store of the demo knows the tick of the tip.
    let tip_places = tip.iter().map(|tip| (*tip, (name("logistics-run-47"), 64))).collect();
    let tips = tip.into_iter().collect();
    let terms = VerifyTerms { tips, tip_places, replay: true, ..VerifyTerms::default() };
    let report = verify::bundle(&opened, &terms).unwrap();
    let findings = report.findings.iter().map(|finding| (finding.code.as_str(), finding.tick)).collect();
    (report.verdict, findings, report.runs[0].line.last_good)
}

#[test]
fn demo_corruption_suite_is_caught_with_code_and_tick() {
    let store = filled();
    let good = export(&store, &["logistics-run-47"]);
    let tip = store.run(&name("logistics-run-47")).unwrap().unwrap().head.id;
    assert_eq!(judge(&good, None), (VerifyVerdict::Intact, vec![], Some(64)), "F-35: a valid trace");
    // The bundle leaves other runs out, so that it is not whole.
    assert_eq!(judge(&good, Some(tip)), (VerifyVerdict::Intact, vec![], Some(64)));

    let files = demo::damaged(&good).unwrap();
    let expected: [(&str, &[Found], Option<u64>); 5] = [
        ("tampered.dnd", &[("E0301", Some(18))], Some(17)),
        ("corrupt/payload.dnd", &[("E0301", Some(22))], Some(21)),
        // What stands behind the gap is no longer where the subtrees that were left out begin, so there is no root either.
        ("corrupt/gap.dnd", &[("E0302", Some(31)), ("E0303", None), ("E0303", None)], None),
        (
            "corrupt/swap.dnd",
            // The record of tick 41 stands before the one that it links to as well.
            &[
                ("E0302", Some(41)),
                ("E0302", Some(41)),
                ("E0302", Some(40)),
                ("E0302", Some(42)),
                ("E0303", None),
            ],
            // Nothing of it is sound: the root that was signed is not the root of this log.
            None,
        ),
        ("corrupt/metadata.dnd", &[("E0301", Some(23))], Some(22)),
    ];
    for ((file, text), (name, findings, last_good)) in files.iter().zip(expected) {
        assert_eq!(*file, name);
        assert_eq!(judge(text, None), (VerifyVerdict::Tampered, findings.to_vec(), last_good), "{file}");
    }

    let (file, rewritten) = files.last().unwrap();
    assert_eq!(*file, "corrupt/rewritten.dnd");
    assert_eq!(
        judge(rewritten, None),
        (VerifyVerdict::Intact, vec![], Some(64)),
        "nothing inside it can show it"
    );
    assert_eq!(judge(rewritten, Some(tip)).0, VerifyVerdict::Tampered);
    assert_eq!(judge(rewritten, Some(tip)).1, [("E0304", None)]);
    let opened = bundle::open(PathBuf::from("x.dnd"), &rewritten[..]).unwrap();
    let pinned =
        VerifyTerms { pinned: vec![(store.tree().size, store.tree().root)], ..VerifyTerms::default() };
    let report = verify::bundle(&opened, &pinned).unwrap();
    assert_eq!((report.verdict, report.findings[0].code), (VerifyVerdict::Tampered, Code::E0307));
    // It does what it was made for: the violation is gone.
    assert_eq!(ask(&opened.store, "logistics-run-47", policy_compliant()).1, BisectOutcome::Never);
    assert_ne!(
        ask(&opened.store, "logistics-run-47", Predicate::anomaly("kernel.anomaly")).1,
        BisectOutcome::Never
    );
}

#[test]
fn demo_damage_leaves_the_rest_readable() {
    let store = filled();
    let good = export(&store, &["logistics-run-47"]);
    let files = demo::damaged(&good).unwrap();
    assert_eq!(files.len(), 6);
    let opened = bundle::open(PathBuf::from("tampered.dnd"), &files[0].1[..]).unwrap();
    assert_eq!(opened.faults.len(), 1);
    let trace = Trace::open(&opened.store, &name("logistics-run-47")).unwrap();
    assert_eq!(trace.at(17).unwrap().tick, 17);
    assert_eq!(trace.at(18).unwrap_err().code(), "E0301");
    for (file, text) in &files {
        assert_ne!(text, &good, "{file}");
        assert!(text.len() > good.len() / 2, "{file}");
    }
}

#[test]
fn demo_hostile_run_holds_what_it_promises() {
    let store = filled();
    let trace = Trace::open(&store, &name("hostile-1")).unwrap();
    let line = trace.record(7).unwrap().content().get("intent").unwrap().get("line").unwrap().clone();
    assert_eq!(line.as_str().unwrap().len(), 5_000_000);
    let end = trace.at(20).unwrap();
    let get = |key: &str| end.state.get(key).unwrap_or_else(|| panic!("{key}")).to_string();
    assert_eq!(end.state.get("deep").unwrap().depth(), 100);
    assert_eq!(get("__proto__"), r#"{"polluted":true}"#);
    assert_eq!(get(""), r#""the empty name""#);
    assert_eq!(get("a/b~c"), r#""a slash and a tilde""#);
    assert_eq!(get("half"), r#"{"$object":[["whole","👍"],[{"$wtf8":"7b-_"},{"$wtf8":"7a-_"}]]}"#);
    assert_eq!(
        get("tags"),
        r#"{"$$":"three","$$$float":"two","$$bytes":"!","$$float":"one","$$gap":{"reason":"none"}}"#
    );
    assert_eq!(
        get("numbers"),
        r#"[9007199254740992,9007199254740993,-99999999999999999999,{"$float":"NaN"},1e-7,1e+21]"#
    );
    assert_eq!(end.state.get("wide").unwrap().as_object().unwrap().len(), 5_000);
    assert_eq!(end.state.get("nothing"), None);

    // Six were turned down; only the forged type takes a tick, for the anomaly that names it.
    let codes: Vec<String> = trace
        .beside()
        .unwrap()
        .iter()
        .map(|refusal| refusal.content().get("reason").unwrap().get("code").unwrap().to_string())
        .collect();
    assert_eq!(codes, [r#""E0401""#, r#""E0403""#, r#""E0402""#, r#""E0405""#, r#""E0405""#, r#""E0404""#]);
    assert_eq!(
        step(&store, "hostile-1", 15, "/anomalies/0/type"),
        r#"kernel.anomaly kernel "kernel" "kernel.anomaly""#
    );
    assert_eq!(end.state.get("kernel_anomalies").unwrap().as_array().unwrap().len(), 1);

    let text = export(&store, &["hostile-1"]);
    assert_eq!(judge(&text, None), (VerifyVerdict::Intact, vec![], Some(20)));
    assert!(
        text.iter().all(|byte| *byte == b'\n' || *byte >= b' '),
        "canonical JSON escapes what breaks lines"
    );
    let receipt = receipt(&trace);
    assert!(receipt.chars().all(|c| c == '\n' || c.is_ascii_graphic() || c == ' '), "{receipt}");
    assert!(!receipt.contains("\nVERIFIED"));
}

fn receipt(trace: &Trace) -> String {
    let receipt = dendrer::ask::receipt::receipt(trace).unwrap();
    assert!(receipt.replayed.is_ok());
    let mut lines = view::first_lines(&receipt);
    trace
        .for_each(1, trace.tip(), &mut |tick, record| {
            lines.push(view::record_line(&receipt, tick, &record));
            ControlFlow::Continue(())
        })
        .unwrap();
    lines.extend(view::last_lines(&receipt));
    dendrer_view::answer::plain(&lines)
}

#[test]
fn demo_receipt_is_the_one_of_the_paper() {
    let store = filled();
    let trace = Trace::open(&store, &name("trip-planner-a")).unwrap();
    assert_eq!(receipt(&trace), RECEIPT);
}

const RECEIPT: &str = r#"BOOT: goal="Plan 3-day Basel-Ticino trip under CHF 600"
SPAWN: 6 agents (researcher, planner, budgeter, skeptic, verifier, coordinator)

TICK 01: observation.add  | confidence=0.91  | progress=+0.08
TICK 02: plan.update      | confidence=0.84  | conflict detected -> resolved by policy
TICK 03: action.request   | confidence=0.61  | uncertainty high -> exploration spawned
TICK 04: action.result    | tool_failure     | agent restarted by supervisor
TICK 05: kernel.anomaly   | hallucination    | a fare that no answer holds; process killed, restored from tick 03
TICK 06: memory.write     | confidence=0.88  | the claimed fare is struck out; the researcher goes on from tick 3
TICK 07: action.request   | confidence=0.64  | call search tool for pricing data
TICK 08: action.result    | ok               | progress=+0.05
TICK 09: observation.add  | confidence=0.89  | outward fare CHF 48 with a half-fare card, 2 h 52 min
TICK 10: action.request   | confidence=0.86  | ask for the fare back
TICK 11: action.result    | ok               | progress=+0.05
TICK 12: observation.add  | confidence=0.90  | progress=+0.04
TICK 13: observation.add  | confidence=0.31  | retrieved hotel pricing from unverified source
TICK 14: policy.decision  | deny             | risk_score 0.82 exceeds the threshold 0.75
TICK 15: anomaly.flag     | confidence=0.93  | the cheap room has a single source, and nobody vouches for it
TICK 16: plan.update      | confidence=0.66  | keep the cheap room if any other channel offers it
TICK 17: action.request   | confidence=0.52  | denied; agent attempted workaround
TICK 18: policy.decision  | escalate         | the same hold was asked for again; a supervisor decides
TICK 19: memory.write     | confidence=0.90  | hotel_mirror_3 is not on the list of sources
TICK 20: kernel.anomaly   | invariant_breach | a denied action came back through another channel; planner restarted
TICK 21: plan.update      | confidence=0.87  | progress=+0.03
TICK 22: observation.add  | confidence=0.92  | progress=+0.05
TICK 23: policy.decision  | allow            | risk_score 0.34 is below the threshold 0.75
TICK 24: action.request   | confidence=0.79  | look up the weather in Ticino
TICK 25: action.result    | ok               | weather
TICK 26: plan.update      | confidence=0.83  | progress=+0.08
TICK 27: memory.write     | confidence=0.85  | castles on day 2 while it is dry; the boat only if day 3 clears up
TICK 28: action.request   | confidence=0.81  | ask for the price of the regional pass
TICK 29: action.result    | ok               | http_get
TICK 30: plan.update      | confidence=0.86  | progress=+0.06
TICK 31: action.request   | confidence=0.84  | search rooms for two nights
TICK 32: action.result    | ok               | hotel_search
TICK 33: plan.update      | confidence=0.84  | progress=+0.06
TICK 34: policy.decision  | allow            | the offer fits into what is left
TICK 35: action.request   | confidence=0.88  | hold the first offer until tonight
TICK 36: action.result    | ok               | progress=+0.08
TICK 37: observation.add  | confidence=0.91  | the held room is the one the tourist board lists
TICK 38: action.request   | confidence=0.83  | check the trains from Lugano to Bellinzona
TICK 39: action.result    | ok               | http_get
TICK 40: plan.update      | confidence=0.88  | progress=+0.07
TICK 41: policy.decision  | allow            | CHF 42 are left for surprises
TICK 42: action.request   | confidence=0.90  | write the plan down
TICK 43: action.result    | ok               | progress=+0.04
TICK 44: observation.add  | confidence=0.94  | every claim in plan.md rests on a recorded answer
TICK 45: anomaly.flag     | confidence=0.58  | showers on day 3 may cost the boat trip; the museum is the way out
TICK 46: memory.write     | confidence=0.92  | the hold ends at 20:00; whoever books must do it before
TICK 47: goal.complete    | confidence=0.94  | progress=+0.31 -> return condition met

DONE: artifact=plan.md | replay_trace=47_transitions | replay_verified=true
"#;

#[test]
fn demo_generated_runs_have_the_length_and_the_onset_that_is_asked_for() {
    let store = Shared::new(Box::new(Memory::new(demo::store_info())));
    let run = demo::fill_sized(&store, 2_500, &mut |_| {}).unwrap();
    assert_eq!((run.name.as_str(), run.ticks, run.refusals), ("generated-2500", 2_500, 0));
    let onset = |text: &str| {
        let predicate = Predicate::condition("size", text).unwrap();
        ask(&store, "generated-2500", predicate).1
    };
    assert_eq!(onset("state.handled >= 777"), BisectOutcome::Onset(777));
    assert_eq!(onset("state.handled > 2500"), BisectOutcome::Never);
    assert!(matches!(onset("state.errors >= 5"), BisectOutcome::Onset(_)));
    let trace = Trace::open(&store, &run.name).unwrap();
    let mut sizes = Vec::new();
    for tick in 1..=2_500 {
        sizes.push(dendrer_object::json::to_vec(&trace.record(tick).unwrap().content()).len());
    }
    let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
    assert!((200..=600).contains(least) && (200..=600).contains(most), "{least} to {most} bytes");
    assert_eq!(verify::replay(&store, &run.name).unwrap(), Ok(2_500));

    let again = Shared::new(Box::new(Memory::new(demo::store_info())));
    assert_eq!(demo::fill_sized(&again, 2_500, &mut |_| {}).unwrap().tip, run.tip);
    let empty = Shared::new(Box::new(Memory::new(demo::store_info())));
    assert_eq!(demo::fill_sized(&empty, 0, &mut |_| {}).unwrap().ticks, 0);
}
