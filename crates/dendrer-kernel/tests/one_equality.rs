//! One equality (design, section 6): equal values have equal canonical bytes, so `==`, `in`, `distinct`, `intersects`, lists and maps of
//! them, digests and bytes agree on every pair. 1,000,000 pairs: PROPTEST_CASES=1000000.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use dendrer_kernel::expr::{Budget, Env, Expr, Scope};
use dendrer_object::{Number, Value, json, tag};
use proptest::prelude::*;

/// Numbers near each other in every way in which they are written.
fn number() -> impl Strategy<Value = String> {
    let exponent = -8i32..25;
    prop_oneof![
        prop::sample::select(vec![
            "0",
            "-0",
            "-0.0",
            "0.0",
            "1",
            "1.0",
            "1e0",
            "10e-1",
            "9007199254740992",
            "9007199254740993",
            "9007199254740992.0",
            "1e20",
            "100000000000000000000",
            "1e21",
            "1000000000000000000000",
            "1e22",
            "10000000000000000000000",
            "1e23",
            "100000000000000000000000",
            "99999999999999991611392",
            "1180591620717411303424",
            "1180591620717411303425",
            "1.1805916207174113e21",
            "-1e21",
            "-1000000000000000000000",
            "0.1",
            "0.10",
            "1e-1",
            "0.1000000000000000055511151231257827",
        ])
        .prop_map(str::to_owned),
        (any::<i64>(), exponent.clone()).prop_map(|(n, e)| format!("{n}e{e}")),
        (1..1000u32, 0..24usize).prop_map(|(n, zeros)| format!("{n}{}", "0".repeat(zeros))),
        (0..1000u32, exponent).prop_map(|(n, e)| format!("{n}e{e}")),
        any::<f64>().prop_filter("finite", |x| x.is_finite()).prop_map(|x| format!("{x:e}")),
        (1..(1u128 << 90)).prop_map(|n| n.to_string()),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        6 => number().prop_map(|text| json::parse_door(text.as_bytes()).unwrap()),
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        2 => prop::sample::select(vec!["", "1", "true", "Zo\u{e9}", "Zoe\u{301}", "a"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::array),
            prop::collection::vec(
                (prop::sample::select(vec!["a", "b", "Zo\u{e9}", "Zoe\u{301}"]), inner),
                0..3
            )
            .prop_map(Value::record),
        ]
    })
}

/// The slow definition: of numbers, exact decimal arithmetic on what each is; of anything else, part by part.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => exact(a) == exact(b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| is_same(a, b)))
        }
        (a, b) => {
            std::mem::discriminant(a) == std::mem::discriminant(b) && json::to_vec(a) == json::to_vec(b)
        }
    }
}

/// Every digit of a number: of a double those of the fraction of powers of two that it is.
fn exact(number: &Number) -> String {
    let text = match number.as_f64() {
        Some(double) => format!("{double:.1100}"),
        None => format!("{number}."),
    };
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

fn all_agree(a: &Value, b: &Value, expr: &Expr) -> Result<(), TestCaseError> {
    let same = is_same(a, b);
    let state = Value::record([("a", a.clone()), ("b", b.clone())]);
    let found = expr.evaluate(&Env::of(&state), &mut Budget::default()).unwrap();
    for (at, one) in found.as_array().unwrap().iter().enumerate() {
        prop_assert_eq!(one, &Value::from(same), "operation {}: {} and {}", at, a, b);
    }
    prop_assert_eq!(a == b, same, "{} and {}", a, b);
    prop_assert_eq!(json::to_vec(a) == json::to_vec(b), same, "{} and {}", a, b);
    prop_assert_eq!(a.digest() == b.digest(), same, "{} and {}", a, b);
    prop_assert_eq!(dendrer_object::value::differences(a, b).is_empty(), same, "{} and {}", a, b);
    // What is written is read as what it was.
    prop_assert_eq!(&json::parse_canonical(&json::to_vec(a)).unwrap(), a);
    Ok(())
}

const OPERATIONS: &str = "[state.a == state.b, !(state.a != state.b), state.a in [state.b], size(distinct([state.a, state.b])) == 1, intersects([state.a], [state.b]), [state.a] == [state.b], {'k': state.a} == {'k': state.b}]";

/// What is no number of JSON is one value of its kind; lists of such values are no business of `distinct`.
#[test]
fn what_is_not_finite_is_itself() {
    let expr = Expr::parse("[state.a == state.b, state.a in [state.b]]", &Scope::new()).unwrap();
    let all = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY].map(tag::float);
    for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
        let state = Value::record([("a", a.clone()), ("b", b.clone())]);
        let found = expr.evaluate(&Env::of(&state), &mut Budget::default()).unwrap();
        assert_eq!(found, Value::array([Value::from(a == b), Value::from(a == b)]), "{a} {b}");
    }
}

proptest! {
    #![proptest_config(match std::env::var_os("PROPTEST_CASES") {
        Some(_) => ProptestConfig::default(),
        None => ProptestConfig { cases: 20_000, ..ProptestConfig::default() },
    })]

    #[test]
    fn equal_values_are_equal_everywhere(a in value(), b in value(), is_one in any::<bool>()) {
        let expr = Expr::parse(OPERATIONS, &Scope::new()).unwrap();
        let b = if is_one { a.clone() } else { b };
        all_agree(&a, &b, &expr)?;
    }

    #[test]
    fn equal_numbers_are_equal_everywhere(a in number(), b in number()) {
        let expr = Expr::parse(OPERATIONS, &Scope::new()).unwrap();
        let [a, b] = [a, b].map(|text| json::parse_door(text.as_bytes()).unwrap());
        all_agree(&a, &b, &expr)?;
    }
}
