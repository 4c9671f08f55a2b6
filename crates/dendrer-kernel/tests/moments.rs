//! Points in time held against `jiff`: whatever both read is the same nanosecond, and the order of texts is never another
//! than that of the moments.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use dendrer_kernel::expr::{Budget, Env, EvalError, Expr, Scope};
use dendrer_object::Value;
use proptest::prelude::*;

/// Evaluates a text over a state of two texts; `None` where it is uncertain.
fn run(text: &str, scope: &Scope, a: &str, b: &str) -> Option<Value> {
    let state = Value::record([("a", Value::from(a)), ("b", Value::from(b))]);
    let expr = Expr::parse(text, scope).unwrap();
    match expr.evaluate(&Env::of(&state), &mut Budget::default()) {
        Ok(value) => Some(value),
        Err(EvalError::Uncertain(_)) => None,
        Err(EvalError::Exhausted) => panic!("the budget ran out"),
    }
}

fn truth(text: &str, scope: &Scope, a: &str, b: &str) -> Option<bool> {
    run(text, scope, a, b).map(|value| value.as_bool().unwrap())
}

/// A moment as somebody may write it, now and then with a slip.
fn written() -> impl Strategy<Value = String> {
    let date = (0_u32..=9999, 0_u32..=13, 0_u32..=32)
        .prop_map(|(year, month, day)| format!("{year:04}-{month:02}-{day:02}"));
    let near = (2026_u32..=2026, 1_u32..=2, 27_u32..=29)
        .prop_map(|(year, month, day)| format!("{year:04}-{month:02}-{day:02}"));
    let time = (0_u32..=24, 0_u32..=60, 0_u32..=60).prop_map(|(h, m, s)| format!("{h:02}:{m:02}:{s:02}"));
    let fraction = prop_oneof![
        3 => Just(String::new()),
        3 => "\\.[0-9]{1,9}",
        1 => "\\.[0-9]{9,12}",
        1 => Just(".".to_owned()),
    ];
    let offset = prop_oneof![
        4 => Just("Z".to_owned()),
        1 => Just("z".to_owned()),
        4 => (-14_i32..=14, 0_u32..60).prop_map(|(h, m)| format!("{h:+03}:{m:02}")),
        1 => (-25_i32..=25, 0_u32..62).prop_map(|(h, m)| format!("{h:+03}:{m:02}")),
        1 => Just("-00:00".to_owned()),
        1 => Just(String::new()),
        1 => Just("+0100".to_owned()),
    ];
    let between = prop_oneof![6 => Just("T"), 1 => Just("t"), 1 => Just(" "), 1 => Just("x")];
    (prop_oneof![date, near], between, time, fraction, offset).prop_map(
        |(date, between, time, fraction, offset)| format!("{date}{between}{time}{fraction}{offset}"),
    )
}

/// The nanoseconds since 1970 that a text is to `jiff`, if it is one.
fn nanos(text: &str) -> Option<i128> {
    text.parse::<jiff::Timestamp>().ok().map(|at| at.as_nanosecond())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn what_both_read_is_the_same_moment(a in written(), b in written()) {
        let plain = Scope::new();
        let declared = Scope::new().datetime(&"/a".parse().unwrap()).datetime(&"/b".parse().unwrap());
        let ours = run("string(timestamp(state.a))", &plain, &a, &b);
        let ours = ours.as_ref().and_then(Value::as_str);
        if let (Some(ours), Some(theirs)) = (ours, nanos(&a)) {
            prop_assert_eq!(nanos(ours), Some(theirs), "{}", a);
            let seconds = run("int(timestamp(state.a))", &plain, &a, &b).and_then(|value| value.as_f64());
            prop_assert_eq!(seconds, Some(theirs.div_euclid(1_000_000_000) as f64), "{}", a);
            let at = jiff::Timestamp::from_nanosecond(theirs).unwrap().to_zoned(jiff::tz::TimeZone::UTC);
            let parts = "[timestamp(state.a).getFullYear(), timestamp(state.a).getMonth() + 1,
                timestamp(state.a).getDate(), timestamp(state.a).getDayOfYear() + 1, timestamp(state.a).getDayOfWeek(),
                timestamp(state.a).getHours(), timestamp(state.a).getMinutes(), timestamp(state.a).getSeconds()]";
            let expected = [
                i64::from(at.year()), i64::from(at.month()), i64::from(at.day()), i64::from(at.day_of_year()),
                i64::from(at.weekday().to_sunday_zero_offset()),
                i64::from(at.hour()), i64::from(at.minute()), i64::from(at.second()),
            ];
            prop_assert_eq!(run(parts, &plain, &a, &b), Some(Value::array(expected.map(Value::from))), "{}", a);
        }
        // Nothing else is read here: `jiff` ends before the last hours of 9999, and refuses ten fraction digits.
        if ours.is_some() && nanos(&a).is_none() {
            let digits = a.split_once('.').map_or(0, |(_, behind)| behind.bytes().take_while(u8::is_ascii_digit).count());
            prop_assert!(a.starts_with("9999-12-3") || digits > 9, "{}", a);
        }
        // `jiff` takes a leap second for the one before it.
        if [&a, &b].iter().any(|text| text.get(17..19) == Some("60")) {
            return Ok(());
        }
        let (Some(x), Some(y)) = (nanos(&a), nanos(&b)) else { return Ok(()) };
        for (symbol, expected) in [("<", x < y), ("<=", x <= y), (">", x > y), (">=", x >= y)] {
            let text = format!("state.a {symbol} state.b");
            if let Some(found) = truth(&text, &declared, &a, &b) {
                prop_assert_eq!(found, expected, "{} of {} and {}", text, a, b);
            }
            // As plain texts, they are ordered as the moments or not at all.
            if let Some(found) = truth(&text, &plain, &a, &b) {
                prop_assert_eq!(found, expected, "{} of the texts {} and {}", text, a, b);
            }
        }
        for (text, expected) in [("min(state.a, state.b)", x.min(y)), ("max(state.a, state.b)", x.max(y)),
            ("sort([state.a, state.b])[0]", x.min(y)), ("min([state.a, state.b])", x.min(y))]
        {
            for scope in [&plain, &declared] {
                let found = run(text, scope, &a, &b);
                if let Some(found) = found.as_ref().and_then(Value::as_str) {
                    prop_assert_eq!(nanos(found), Some(expected), "{} of {} and {}", text, a, b);
                }
            }
        }
        if let Some(found) = run("state.a - state.b", &declared, &a, &b) {
            let text = found.as_str().unwrap().to_owned();
            let expected = jiff::SignedDuration::from_nanos_i128(x - y);
            prop_assert_eq!(text.parse::<jiff::SignedDuration>().unwrap(), expected, "{} - {}", a, b);
            let sum = "state.b + (state.a - state.b) == timestamp(state.a)";
            prop_assert_eq!(truth(sum, &declared, &a, &b), Some(true), "{} - {}", a, b);
        }
        // What is declared is never in doubt where both are moments to both.
        let is_ours = |text: &str| run("timestamp(state.a)", &plain, text, text).is_some();
        if is_ours(&a) && is_ours(&b) {
            prop_assert!(truth("state.a < state.b", &declared, &a, &b).is_some());
        }
    }
}
