//! What modules may be, what they answer, and that nothing stays from one call to the next.

#![allow(clippy::unwrap_used, reason = "tests")]

use dendrer_kernel::pack::modules::Modules;
use dendrer_kernel::predicate::{Predicate, Verdict};
use dendrer_object::{Value, json};
use dendrer_wasm::{Engine, FUEL, FUEL_PER_BYTE, ModuleRefused, predicate};

/// A module whose `evaluate` is this body, which leaves the packed place of an answer. Answers that it may give lie at
/// 0 (`"ok"`, 4 bytes), 16 (`"violation"`, 11 bytes) and 32 (`{"uncertain":"?"}`, 17 bytes); its input at 1024.
fn text(body: &str, more: &str) -> String {
    format!(
        r#"(module
  (memory (export "memory") 2)
  (data (i32.const 0) "\"ok\"")
  (data (i32.const 16) "\"violation\"")
  (data (i32.const 32) "{{\"uncertain\":\"?\"}}")
  (func (export "alloc") (param i32) (result i32) (i32.const 1024))
  (func $answer (param i32) (result i64)
    (select (i64.const 0x100000000b) (i64.const 0x4) (local.get 0)))
  {more}
  (func (export "evaluate") (param i32 i32) (result i64) {body}))"#
    )
}

fn made(wat: &str) -> Result<Predicate, ModuleRefused> {
    predicate("p", &wat::parse_str(wat).unwrap())
}

fn said(body: &str, more: &str) -> Verdict {
    let state = json::parse_door(br#"{"n":7}"#).unwrap();
    made(&text(body, more)).unwrap().judge(&state, None).unwrap()
}

fn uncertain(body: &str, more: &str) -> String {
    match said(body, more) {
        Verdict::Uncertain(why) => why,
        other => panic!("{other}"),
    }
}

/// A pure function of a graph is given its arguments and answers with a value or an error; anything else is an error.
#[test]
fn a_module_is_a_function_of_its_arguments() {
    let of = |answer: &str| {
        let text = format!(
            r#"(module (memory (export "memory") 1) (data (i32.const 0) "{}")
  (func (export "alloc") (param i32) (result i32) (i32.const 1024))
  (func (export "call") (param i32 i32) (result i64) (i64.const {})))"#,
            answer.replace('"', "\\\""),
            answer.len()
        );
        Engine::default().function(&wat::parse_str(text).unwrap()).unwrap().call(&[Value::Null])
    };
    assert_eq!(of(r#"{"value":7}"#), Ok(Value::from(7u64)));
    assert_eq!(
        of(r#"{"value":{"error":"its own"}}"#),
        Ok(Value::record([("error", Value::from("its own"))]))
    );
    assert_eq!(of(r#"{"error":"no day"}"#), Err("the module says: no day".to_owned()));
    for other in ["7", r#"{"error":7}"#, r#"{"error":"x","value":7}"#, "{ }", ""] {
        assert!(of(other).is_err(), "{other}");
    }
    let same = wat::parse_str(include_str!("../../../examples/modules/value_of.wat")).unwrap();
    for engine in Engine::ALL {
        let function = engine.function(&same).unwrap();
        for value in [Value::Null, Value::from("x".repeat(100_000)), Value::record([("a", Value::from(0.5))])]
        {
            assert_eq!(function.call(std::slice::from_ref(&value)), Ok(value));
        }
    }
    assert!(Engine::default().function(b"no module").is_err());
}

#[test]
fn a_module_says_ok_violation_or_uncertain_of_a_state() {
    assert_eq!(said("(i64.const 0x4)", ""), Verdict::Ok);
    assert_eq!(said("(i64.const 0x100000000b)", ""), Verdict::Violation);
    assert_eq!(uncertain("(i64.const 0x2000000011)", ""), "the module says: ?");
    // The input is the state as canonical JSON: {"n":7}, so the sixth byte is the digit.
    let seven = "(call $answer (i32.eq (i32.load8_u offset=5 (local.get 0)) (i32.const 55)))";
    assert_eq!(said(seven, ""), Verdict::Violation);
    let length = "(call $answer (i32.eq (local.get 1) (i32.const 7)))";
    assert_eq!(said(length, ""), Verdict::Violation);
}

#[test]
fn what_is_no_verdict_is_uncertain() {
    assert!(uncertain("(i64.const 0)", "").contains("not canonical JSON"));
    assert!(uncertain("(i64.const 0x3)", "").contains("not canonical JSON"));
    assert!(uncertain("(i64.const 0x100000003)", "").contains("not canonical JSON"));
    assert!(uncertain("(i64.const -1)", "").contains("bytes"), "too long");
    assert!(uncertain("(i64.const 0x7fffffff00000004)", "").contains("outside of its memory"));
    assert!(uncertain("(i64.const 0x40000000001)", "").contains("not canonical JSON"), "a part of the input");
    assert!(uncertain("(i64.const 0x40000000007)", "").contains("is not \"ok\""), "the state is no verdict");
    for (body, why) in [
        ("unreachable", "unreachable"),
        ("(drop (i32.load (i32.const -1))) (i64.const 4)", "outside of its memory"),
        ("(drop (i32.div_u (i32.const 1) (i32.const 0))) (i64.const 4)", "divided by zero"),
        ("(drop (i32.div_s (i32.const 0x80000000) (i32.const -1))) (i64.const 4)", "too large"),
        ("(drop (i32.trunc_f64_s (f64.const nan))) (i64.const 4)", "a number that is none"),
        ("(drop (i64.trunc_f64_s (f64.const inf))) (i64.const 4)", "too large"),
    ] {
        let said = uncertain(body, "");
        assert!(said.contains(why), "{body}: {said}");
    }
    let null = ("(call_indirect (result i64) (i32.const 0))", "(table 1 funcref)");
    assert!(uncertain(null.0, null.1).contains("not there"));
    let other = ("(call_indirect (result i64) (i32.const 0))", "(table funcref (elem $answer))");
    assert!(uncertain(other.0, other.1).contains("another kind"));
    let out = ("(call_indirect (result i64) (i32.const 9))", "(table 1 funcref)");
    assert!(uncertain(out.0, out.1).contains("outside of a table"));
}

#[test]
fn nothing_stays_from_one_call_to_the_next() {
    let counter = "(global $n (mut i32) (i32.const 0))";
    let body = "(global.set $n (i32.add (global.get $n) (i32.const 1)))
        (i32.store8 (i32.const 2000) (i32.add (i32.load8_u (i32.const 2000)) (i32.const 1)))
        (call $answer (i32.gt_u (i32.add (global.get $n) (i32.load8_u (i32.const 2000))) (i32.const 2)))";
    let predicate = made(&text(body, counter)).unwrap();
    for _ in 0..3 {
        assert_eq!(predicate.judge(&Value::Null, None).unwrap(), Verdict::Ok);
    }
    // A memory that grew is small again.
    let body = "(drop (memory.grow (i32.const 8))) (call $answer (i32.ne (memory.size) (i32.const 10)))";
    let predicate = made(&text(body, "")).unwrap();
    for _ in 0..3 {
        assert_eq!(predicate.judge(&Value::Null, None).unwrap(), Verdict::Ok);
    }
}

#[test]
fn what_a_limit_ends_is_an_error_and_no_verdict() {
    let stopped = |body: &str, more: &str| {
        let predicate = made(&text(body, more)).unwrap();
        let first = predicate.judge(&Value::Null, None).unwrap_err();
        assert_eq!(first, predicate.judge(&Value::Null, None).unwrap_err());
        first.to_string()
    };
    let fuel = (FUEL + 4 * FUEL_PER_BYTE).to_string();
    assert!(stopped("(loop $l (br $l)) (i64.const 4)", "").contains(&fuel));
    let filled =
        "(loop $l (memory.fill (i32.const 0) (i32.const 0) (i32.const 65536)) (br $l)) (i64.const 4)";
    assert!(stopped(filled, "").contains(&fuel));
    let deep = "(func $deep (result i64) (i64.add (i64.const 1) (call $deep)))";
    assert!(stopped("(call $deep)", deep).contains("deeper"));
    assert!(stopped("(drop (memory.grow (i32.const 5000))) (i64.const 4)", "").contains("more memory"));
    let table = "(table $t 1 funcref)";
    let grown = "(drop (table.grow $t (ref.null func) (i32.const 20000))) (i64.const 4)";
    assert!(stopped(grown, table).contains("more memory or tables"));
    // Its own maximum is its own affair: there it is told no, as on every machine.
    let own = text("(call $answer (i32.ne (memory.grow (i32.const 5000)) (i32.const -1)))", "")
        .replace("\"memory\") 2)", "\"memory\") 2 4)");
    assert_eq!(made(&own).unwrap().judge(&Value::Null, None).unwrap(), Verdict::Ok);
}

#[test]
fn a_nan_has_one_form_on_every_processor() {
    // Whatever makes a NaN, of whatever NaN with its sign and payload set.
    let odd = "(f64.reinterpret_i64 (i64.const 0xfff0000000000abc))";
    let odd32 = "(f32.reinterpret_i32 (i32.const 0xff800abc))";
    let canonical = "i64.const 0x7ff8000000000000";
    let canonical32 = "i32.const 0x7fc00000";
    let two = ["add", "sub", "mul", "div", "min", "max"].map(|op| (op, true));
    let one = ["sqrt", "ceil", "floor", "trunc", "nearest"].map(|op| (op, false));
    for (op, both) in two.into_iter().chain(one) {
        for (kind, bits, value, expected) in
            [("f64", "i64", odd, canonical), ("f32", "i32", odd32, canonical32)]
        {
            let values = if both {
                vec![format!("{value} ({kind}.const 1)"), format!("({kind}.const 1) {value}")]
            } else {
                vec![value.to_owned()]
            };
            for values in values {
                let body = format!(
                    "(call $answer ({bits}.ne ({bits}.reinterpret_{kind} ({kind}.{op} {values})) ({expected})))"
                );
                assert_eq!(said(&body, ""), Verdict::Ok, "{body}");
            }
        }
    }
    for (made, bits, expected) in [
        ("(f64.div (f64.const 0) (f64.const 0))", "i64.reinterpret_f64", canonical),
        ("(f64.sqrt (f64.const -1))", "i64.reinterpret_f64", canonical),
        ("(f64.sub (f64.const inf) (f64.const inf))", "i64.reinterpret_f64", canonical),
        ("(f64.mul (f64.const inf) (f64.const 0))", "i64.reinterpret_f64", canonical),
        (&format!("(f64.promote_f32 {odd32})"), "i64.reinterpret_f64", canonical),
        (&format!("(f32.demote_f64 {odd})"), "i32.reinterpret_f32", canonical32),
    ] {
        let kind = &bits[..3];
        let body = format!("(call $answer ({kind}.ne ({bits} {made}) ({expected})))");
        assert_eq!(said(&body, ""), Verdict::Ok, "{body}");
    }
}

#[test]
fn the_same_bytes_are_the_same_predicate() {
    let (a, b) = (text("(i64.const 0x4)", ""), text("(i64.const 0x100000000b)", ""));
    let (a, again, b) = (made(&a).unwrap(), made(&a).unwrap(), made(&b).unwrap());
    assert_eq!(a.digest(), again.digest());
    assert_ne!(a.digest(), b.digest());
    assert_ne!(a.digest(), a.clone().lifted().digest());
    assert!(a.words().starts_with("violated when module "));
    assert_eq!(a.read_set(), [dendrer_object::Pointer::root()]);
}
