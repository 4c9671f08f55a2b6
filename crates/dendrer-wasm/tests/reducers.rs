//! What modules answer as reducers, and what a pack does with them.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;

use dendrer_kernel::pack::{Bound, Pack, modules};
use dendrer_kernel::predicate::Verdict;
use dendrer_kernel::reduce::{Purity, ReduceError, Reducer};
use dendrer_kernel::replay::{ReplayError, replay_refusal, replay_start, replay_step};
use dendrer_kernel::sealed;
use dendrer_kernel::step::{self, Inputs, Outcome, RunState, Seeds, Stage, Start, StepError, step_with};
use dendrer_object::{Intent, StoreId, Timestamp, Value, json, tag};
use dendrer_wasm::{DELTA_SIZE_MAX, Engine, reducer};

/// A module whose `reduce` is this body, which leaves the packed place of an answer. The answers lie at 0, one behind the
/// other; its input at 8192.
fn text(answers: &str, body: &str) -> String {
    let escaped = answers.replace('\\', "\\\\").replace('"', "\\\"");
    format!(
        r#"(module (memory (export "memory") 1) (data (i32.const 0) "{escaped}")
        (func (export "alloc") (param i32) (result i32)
          (drop (memory.grow (i32.add (i32.shr_u (local.get 0) (i32.const 16)) (i32.const 1)))) (i32.const 8192))
        (func (export "reduce") (param i32 i32) (result i64) {body}))"#
    )
}

fn bytes(answers: &str, body: &str) -> Vec<u8> {
    wat::parse_str(text(answers, body)).unwrap()
}

/// A module that always gives one answer.
fn answering(answer: &str) -> Vec<u8> {
    bytes(answer, &format!("(i64.const {})", answer.len()))
}

fn made(bytes: &[u8]) -> Arc<dyn Reducer + Send + Sync> {
    reducer(bytes).unwrap()
}

fn v(text: &str) -> Value {
    json::parse_door(text.as_bytes()).unwrap()
}

fn intent(text: &str) -> Intent {
    Intent::from_value(&v(text), Some("a")).unwrap()
}

fn reduced(bytes: &[u8]) -> Result<String, String> {
    let reduced = made(bytes).reduce(&v(r#"{"n":1}"#), &intent(r#"{"type":"plan.update"}"#));
    reduced.map(|delta| delta.to_value().to_string()).map_err(|error| match error {
        ReduceError::Module { why, .. } => why,
        other => panic!("{other:?}"),
    })
}

#[test]
fn a_reducer_answers_with_a_delta_or_with_an_error() {
    let delta = r#"[{"set":"/a/b","value":{"$bytes":"AA"}},{"add":"/n","value":0.1},{"remove":"/c"}]"#;
    assert_eq!(reduced(&answering(delta)).as_deref(), Ok(delta));
    assert_eq!(reduced(&answering("[]")).as_deref(), Ok("[]"));
    assert_eq!(reduced(&answering(r#"{"error":"why not"}"#)).unwrap_err(), "it says: why not");
    let made = made(&answering("[]"));
    assert_eq!(
        (made.name(), made.info().purity, made.takes_delta()),
        ("wasm/1", Purity::ByConstruction, false)
    );
}

#[test]
fn what_is_no_delta_is_an_error_of_the_module() {
    for (answer, why) in [
        ("", "not canonical JSON"),
        ("[", "not canonical JSON"),
        ("[ ]", "not canonical JSON"),
        (r#"[{"value":1,"set":"/a"}]"#, "not canonical JSON"),
        (r#"[{"set":"/a","value":1.0}]"#, "not canonical JSON"),
        ("null", "neither the operations of a delta"),
        (r#""ok""#, "neither the operations of a delta"),
        ("{}", "neither the operations of a delta"),
        (r#"{"error":1}"#, "neither the operations of a delta"),
        (r#"{"error":"x","more":1}"#, "neither the operations of a delta"),
        (r#"[{"set":"/a"}]"#, "delta operation 0"),
        (r#"[{"set":"","value":1}]"#, "delta operation 0"),
        (r#"[{"add":"/a","value":1},{"set":"a","value":1}]"#, "delta operation 1"),
        (r#"[{"multiply":"/a","value":1}]"#, "delta operation 0"),
    ] {
        let said = reduced(&answering(answer)).unwrap_err();
        assert!(said.contains(why), "{answer}: {said}");
    }
    for (body, why) in [
        ("unreachable", "it stopped: it came to an `unreachable`"),
        ("(i64.const -1)", "bytes"),
        ("(i64.const 0x7fffffff00000004)", "outside of its memory"),
        ("(drop (i32.div_u (i32.const 1) (i32.const 0))) (i64.const 2)", "divided by zero"),
    ] {
        let said = reduced(&bytes("[]", body)).unwrap_err();
        assert!(said.contains(why), "{body}: {said}");
    }
    let long = format!("(drop (memory.grow (i32.const 32))) (i64.const {})", DELTA_SIZE_MAX + 1);
    assert!(reduced(&bytes("[]", &long)).unwrap_err().contains("are the most"));
    let fits = format!("(drop (memory.grow (i32.const 32))) (i64.const {DELTA_SIZE_MAX})");
    assert!(reduced(&bytes("[]", &fits)).unwrap_err().contains("not canonical JSON"));
}

/// The module is given what the rules of `fold/1` see, and no more: it gives its own input back as an error would.
#[test]
fn a_reducer_is_given_the_state_and_what_rules_see_of_a_transition() {
    // {"error":INPUT} is made of the input by writing before and behind it; that it is not a text is what is told.
    let body = r#"(i64.or (i64.shl (i64.extend_i32_u (local.get 0)) (i64.const 32)) (i64.extend_i32_u (local.get 1)))"#;
    let echo = dendrer_wasm::Module::new(&bytes("", body), "reduce").unwrap();
    let intent = intent(
        r#"{"type":"action.result","result":{"status":"ok"},"metrics":{"cost":1},"links":[],"action":{"tool":"x"}}"#,
    );
    let input = Value::record([
        ("state", v(r#"{"b":2,"a":[1]}"#)),
        ("transition", dendrer_kernel::fold::transition(&intent)),
    ]);
    let input = json::to_vec(&input);
    let said = echo.call(&input, 1 << 20, 10_000_000).unwrap();
    assert_eq!(
        String::from_utf8(said).unwrap(),
        r#"{"state":{"a":[1],"b":2},"transition":{"action":{"tool":"x"},"agent":"a","author":"agent","result":{"status":"ok"},"type":"action.result"}}"#
    );
}

const LOOP: &str = "(loop $l (br $l)) (i64.const 2)";

#[test]
fn what_a_limit_ends_while_reducing_is_no_delta_and_no_error_of_the_module() {
    for body in [LOOP, "(drop (memory.grow (i32.const 5000))) (i64.const 2)"] {
        let reducer = made(&bytes("[]", body));
        let reduced = reducer.reduce(&Value::object(), &intent(r#"{"type":"plan.update"}"#));
        assert!(matches!(reduced, Err(ReduceError::Stopped(_))), "{reduced:?}");
    }
    let large = Value::record([("text", Value::from("x".repeat(16 << 20)))]);
    let reduced = made(&answering("[]")).reduce(&large, &intent(r#"{"type":"plan.update"}"#));
    assert!(
        matches!(&reduced, Err(ReduceError::Stopped(stopped)) if stopped.limit.contains("input")),
        "{reduced:?}"
    );
}

/// A pack of `wasm/1`.
fn value(module: &[u8], more: &str) -> Value {
    let mut pack =
        v(&format!(r#"{{"name":"p","version":"v1","reducer":"wasm/1","state":{{"n":{{"init":0}}}}{more}}}"#))
            .as_object()
            .unwrap()
            .clone();
    pack.set("module", tag::bytes(module));
    Value::Object(pack)
}

fn inputs(n: u64) -> Inputs {
    Inputs { clock: Timestamp::from_ms(n), seeds: Seeds::of_secret([n as u8; 16]) }
}

fn begin(pack: &Value, stage: Stage) -> (dendrer_object::record::Record, RunState) {
    let start = Start {
        stage: Some(stage),
        reducer: "wasm/1".into(),
        state: v(r#"{"n":0}"#),
        pack: Some(Bound { value: pack.clone(), text: "".into() }),
        ..Start::new("r".parse().unwrap())
    };
    step::begin(StoreId([1; 16]), &start, inputs(0)).unwrap()
}

/// A limit is never on record: no transition, no refusal, and the head stands where it stood; what came before stays.
#[test]
fn a_step_that_a_limit_ends_leaves_nothing() {
    // Adds one, and never ends on a transition of more than 400 bytes.
    let body =
        format!("(if (i32.gt_u (local.get 1) (i32.const 400)) (then {}))(i64.const 24)", "(loop $l (br $l))");
    let pack = value(&bytes(r#"[{"add":"/n","value":1}]"#, &body), "");
    let read = Pack::read_with(&pack, &Engine::default(), dendrer_kernel::step::KERNEL_VERSION).unwrap();
    let reducer = read.reducer();
    for stage in [Stage::Observe, Stage::Replay, Stage::Contracts] {
        let (_, mut head) = begin(&pack, stage);
        let small = intent(r#"{"type":"plan.update"}"#);
        let large = intent(&format!(r#"{{"type":"plan.update","intent":{{"x":"{}"}}}}"#, "x".repeat(500)));
        let mut outcomes = Vec::new();
        let all = [(&small, inputs(1)), (&large, inputs(2)), (&small, inputs(3))];
        let error = step::step_each(&mut head, &all, &*reducer, &mut outcomes).unwrap_err();
        assert!(matches!(error, StepError::Stopped(_)), "{error}");
        assert_eq!((outcomes.len(), head.tick()), (1, 1));
        assert_eq!(head.state().get("n"), Some(&Value::from(1u64)));
        assert!(matches!(step_with(&mut head, &small, inputs(4), &*reducer).unwrap(), Outcome::Committed(_)));
        assert_eq!(head.tick(), 2);
    }
}

#[test]
fn an_error_of_the_module_is_refused_from_stage_2_on_and_noted_below() {
    for (module, why) in [
        (answering(r#"{"error":"never"}"#), "it says: never"),
        (bytes("[]", "unreachable"), "unreachable"),
        (answering(r#"[{"add":"/m","value":1}]"#), "there is nothing at this path"),
        (answering(r#"[{"set":"/policy/violated","value":1}]"#), "cannot be written by a reducer"),
        (answering(r#"[{"set":"/kernel_anomalies","value":[]}]"#), "cannot be written by a reducer"),
        (answering(r#"[{"set":"/counters/errors","value":1}]"#), "cannot be written by a reducer"),
    ] {
        let pack = value(&module, "");
        let reducer = Pack::read_with(&pack, &Engine::default(), dendrer_kernel::step::KERNEL_VERSION)
            .unwrap()
            .reducer();
        for stage in [Stage::Replay, Stage::Contracts] {
            let (first, mut head) = begin(&pack, stage);
            let before = head.clone();
            let made =
                step_with(&mut head, &intent(r#"{"type":"plan.update"}"#), inputs(1), &*reducer).unwrap();
            let said = match &made {
                Outcome::Refused(refused) if stage == Stage::Contracts => {
                    replay_refusal(&before, &refused.refusal, &*reducer).unwrap();
                    refused.reason.to_string()
                }
                Outcome::Committed(record) if stage == Stage::Replay => {
                    let mut again = replay_start(&first, &*reducer).unwrap();
                    replay_step(&mut again, record, &*reducer, true).unwrap();
                    // The state is what it was, and from here on not known.
                    let marks = r#"{"kernel_unknown":{"":{"code":"reducer_failed","tick":1}},"n":0}"#;
                    assert_eq!((before.state(), head.state()), (&v(r#"{"n":0}"#), &v(marks)));
                    {
                        let noted = record.content();
                        let notes = noted.get("anomalies").unwrap().as_array().unwrap();
                        sealed::words(notes.get(0).unwrap()).unwrap()
                    }
                }
                other => panic!("{other:?}"),
            };
            assert!(said.contains(why), "{said}");
        }
    }
}

#[test]
fn an_intent_brings_no_delta_under_a_module() {
    let pack = value(&answering("[]"), "");
    let reducer =
        Pack::read_with(&pack, &Engine::default(), dendrer_kernel::step::KERNEL_VERSION).unwrap().reducer();
    let (_, mut head) = begin(&pack, Stage::Contracts);
    let bringing = intent(r#"{"type":"plan.update","delta":[{"set":"/n","value":9}]}"#);
    let Outcome::Refused(refused) = step_with(&mut head, &bringing, inputs(1), &*reducer).unwrap() else {
        panic!()
    };
    assert!(refused.reason.to_string().contains("cannot bring a delta"), "{}", refused.reason);
}

/// Replay on an engine that ends the module says that nothing is known, and not that the record is wrong.
#[test]
fn a_replay_that_a_limit_ends_is_unverifiable_and_no_divergence() {
    let pack = value(&answering(r#"[{"add":"/n","value":1}]"#), "");
    let reducer =
        Pack::read_with(&pack, &Engine::default(), dendrer_kernel::step::KERNEL_VERSION).unwrap().reducer();
    let (first, mut head) = begin(&pack, Stage::Contracts);
    let before = head.clone();
    let small = intent(r#"{"type":"plan.update"}"#);
    let Outcome::Committed(record) = step_with(&mut head, &small, inputs(1), &*reducer).unwrap() else {
        panic!()
    };
    let bringing = intent(r#"{"type":"plan.update","delta":[{"set":"/n","value":9}]}"#);
    let Outcome::Refused(refused) = step_with(&mut head, &bringing, inputs(2), &*reducer).unwrap() else {
        panic!()
    };
    let stopping = made(&bytes("[]", LOOP));
    // Who reads a pack without an engine is stopped in the same way.
    let idle = Pack::read(&pack).unwrap().reducer();
    for other in [&*stopping as &dyn Reducer, &*idle] {
        for twice in [false, true] {
            let mut again = replay_start(&first, other).unwrap();
            let error = replay_step(&mut again, &record, other, twice).unwrap_err();
            assert!(matches!(error, ReplayError::Stopped { tick: 1, .. }), "{error}");
            assert!(error.is_unverifiable() && error.code() == "E0521");
            assert_eq!(again.tick(), 0);
        }
    }
    assert_eq!(replay_step(&mut before.clone(), &record, &*reducer, true), Ok(()));
    // It was turned down before anything was asked.
    assert_eq!(replay_refusal(&head, &refused.refusal, &*stopping), Ok(()));
}

#[test]
fn a_pack_names_modules_where_they_reduce_or_judge() {
    let evaluate = wat::parse_str(
        r#"(module (memory (export "memory") 1) (data (i32.const 0) "\22violation\22")
        (func (export "alloc") (param i32) (result i32) (i32.const 1024))
        (func (export "evaluate") (param i32 i32) (result i64) (i64.const 11)))"#,
    )
    .unwrap();
    let reduce = answering("[]");
    let module = |bytes: &[u8]| tag::bytes(bytes).to_string();
    let digest = |bytes: &[u8]| dendrer_object::Digest::of(bytes).to_string();
    let predicate = |members: &str| format!(r#","predicates":{{"p":{{{members}}}}}"#);
    let good = predicate(&format!(
        r#""module":{},"engine":"wasm/1","digest":"{}""#,
        module(&evaluate),
        digest(&evaluate)
    ));
    // The bytes of a module are tagged, as a record has them.
    let tagged = |text: &str| json::parse_tagged(text.as_bytes()).unwrap();
    let of = |members: &str| tagged(&format!(r#"{{"name":"p","version":"v1"{members}}}"#));
    let read =
        |value: &Value| Pack::read_with(value, &Engine::default(), dendrer_kernel::step::KERNEL_VERSION);
    let whole = of(&format!(
        r#","reducer":{{"engine":"wasm/1","digest":"{}"}},"module":{}{good}"#,
        digest(&reduce),
        module(&reduce)
    ));
    let pack = read(&whole).unwrap_or_else(|faults| panic!("{faults:#?}"));
    assert_eq!(pack.reducer().name(), "wasm/1");
    assert_eq!(pack.module().unwrap().to_string(), digest(&reduce));
    let asked = pack.predicate("p").unwrap();
    assert_eq!(asked.judge(&Value::object(), None).unwrap(), Verdict::Violation);
    assert_eq!(asked.read_set(), [dendrer_object::Pointer::root()]);
    // The digest of what a pack declares is that of the pack and its name, so another module is another predicate.
    let named = modules::named(&whole);
    assert_eq!(
        named.iter().map(|module| module.place.as_str()).collect::<Vec<_>>(),
        ["/module", "/predicates/p/module"]
    );
    assert!(!modules::without_bytes(&whole).to_string().contains("$bytes"));
    let idle = Pack::read(&whole).unwrap();
    assert!(idle.predicate("p").unwrap().judge(&Value::object(), None).is_err());
    assert_eq!(idle.digest(), pack.digest());

    let faults = |members: &str| {
        let faults = read(&of(members)).unwrap_err();
        faults.iter().map(|fault| format!("{} {fault}", fault.code)).collect::<Vec<_>>().join("; ")
    };
    let own = format!(r#","reducer":"wasm/1","module":{}"#, module(&reduce));
    for (members, expected) in [
        (r#","reducer":"wasm/1""#.to_owned(), "E0902 reducer: wasm/1 runs a module, and the pack names none"),
        (format!(r#","module":{}"#, module(&reduce)), "E0902 module: under fold/1 no module reduces"),
        (
            format!(r#","reducer":"delta/1","module":{}"#, module(&reduce)),
            "E0902 module: under delta/1 no module reduces",
        ),
        (format!(r#"{own},"rules":[{{"steps":[]}}]"#), "E0902 rules: a pack of wasm/1 has no rules"),
        (
            r#","reducer":"wasm/1","module":"a.wasm""#.to_owned(),
            "E0902 module: this names a file, and where the text of the pack lies is not known here",
        ),
        (
            r#","reducer":"wasm/1","module":7"#.to_owned(),
            "E0902 module: a module is named by its file, not by a number",
        ),
        (
            format!(r#","reducer":"wasm/1","module":{}"#, module(&evaluate)),
            "E0520 module: this is not a module that is run here: it does not export \"reduce\"",
        ),
        (
            format!(r#","reducer":"wasm/1","module":{}"#, module(b"\0asm")),
            "E0520 module: this is not a module that is run here: at byte 4",
        ),
        (
            format!(
                r#","reducer":{{"engine":"wasm/1","digest":"{}"}},"module":{}"#,
                digest(&evaluate),
                module(&reduce)
            ),
            "E0902 reducer.digest: the module has the digest",
        ),
        (
            predicate(&format!(r#""module":{}"#, module(&reduce))),
            "E0520 predicates.p.module: this is not a module that is run here: it does not export \"evaluate\"",
        ),
        (
            predicate(&format!(r#""module":{},"holds":"true""#, module(&evaluate))),
            "E0902 predicates.p: a predicate has exactly one of holds, condition and module",
        ),
        (
            predicate(r#""engine":"wasm/1","holds":"true""#),
            "E0902 predicates.p.engine: wasm/1 runs a module, and the predicate names none",
        ),
        (
            predicate(&format!(r#""module":{},"monotone":true"#, module(&evaluate))),
            "E0907 predicates.p.monotone: nothing shows that it cannot recover",
        ),
        (
            format!(r#","violations":[{{"id":"x","module":{}}}]"#, module(&evaluate)),
            "E0902 violations[0].module: a violation is an expression",
        ),
        (
            predicate(&format!(r#""module":{}"#, module(&vec![0; 5 << 20]))),
            "E0904 predicates.p.module: the modules of a pack have at most 4194304 bytes together",
        ),
    ] {
        let said = faults(&members);
        assert!(said.contains(expected), "{said}\nexpected {expected}");
    }
}

/// Tests of a pack go through its module; a limit is no error that a test could expect.
#[test]
fn tests_of_a_pack_run_through_its_module() {
    let tests = |expect: &str| {
        format!(r#","tests":[{{"name":"t","then":[{{"t":{{"type":"plan.update"}},{expect}}}]}}]"#)
    };
    let ran = |module: &[u8], expect: &str, read: &dyn Fn(&Value) -> Pack| {
        let pack = read(&value(module, &tests(expect)));
        dendrer_kernel::cases::run(&pack, &pack.cases[0])
    };
    let run = |module: &[u8], expect: &str, read: &dyn Fn(&Value) -> Pack| ran(module, expect, read).failed;
    let engine = |value: &Value| {
        Pack::read_with(value, &Engine::default(), dendrer_kernel::step::KERNEL_VERSION).unwrap()
    };
    let idle = |value: &Value| Pack::read(value).unwrap();
    let adds = answering(r#"[{"add":"/n","value":2}]"#);
    assert_eq!(run(&adds, r#""state":{"n":2}"#, &engine), []);
    assert_eq!(run(&adds, r#""state":{"n":3}"#, &engine).len(), 1);
    assert_eq!(run(&answering(r#"{"error":"no"}"#), r#""error":"it says: no""#, &engine), []);
    let endless = bytes("[]", LOOP);
    for (module, read) in [(&endless, &engine as &dyn Fn(&Value) -> Pack), (&adds, &idle)] {
        // Whether it would have failed is not known, whatever it expects.
        let ran = ran(module, r#""error":"stopped""#, read);
        assert!(ran.failed.is_empty() && ran.stopped.is_some(), "{ran:?}");
    }
}

/// What stands in a record as a pack need not be one: whoever only shows it goes by it all the same.
#[test]
fn what_is_no_pack_has_no_modules() {
    for text in [
        r#"{"predicates":{"$gap":{"module":{"$bytes":"AA"},"reason":"x"}}}"#,
        r#"{"$gap":{"module":{"$bytes":"AA"},"reason":"x"}}"#,
        r#"{"module":[{"$bytes":"AA"}],"predicates":[{"module":{"$bytes":"AA"}}]}"#,
        r#"{"module":{"$float":"NaN"},"predicates":{"p":{"$bytes":"AA"},"q":{"module":"a.wasm"}}}"#,
        "null",
    ] {
        let value = json::parse_tagged(text.as_bytes()).unwrap();
        assert_eq!(modules::named(&value), [], "{text}");
        assert_eq!(modules::without_bytes(&value), value, "{text}");
    }
}
