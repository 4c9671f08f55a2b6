//! Hostile texts and states: each is refused by a limit or runs out of budget, on a small stack, the same way
//! every time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use dendrer_kernel::expr::{
    Budget, DEPTH_MAX, Env, EvalError, Expr, NODES_MAX, STEPS_MAX, Scope, TEXT_SIZE_MAX, Truth,
};
use dendrer_object::{Value, json};

/// Runs on a stack that is small for a program that recurses over what it is given.
fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap();
    thread.join().expect("the stack sufficed and every check held");
}

fn code(text: &str) -> &'static str {
    match Expr::parse(text, &Scope::new()) {
        Ok(_) => "accepted",
        Err(error) => {
            assert!(error.render(text).len() < 1000, "an error of a large text is short");
            error.code.as_str()
        }
    }
}

fn nested(open: &str, inner: &str, close: &str, count: usize) -> String {
    format!("{}{inner}{}", open.repeat(count), close.repeat(count))
}

#[test]
fn nesting_is_refused_beyond_its_limit_and_accepted_up_to_it() {
    on_a_small_stack(|| {
        let state = json::parse_door(br#"{"a":{"a":false},"b":{"b":false},"c":true}"#).unwrap();
        for (open, inner, close) in [
            ("(", "1", ")"),
            ("[", "", "]"),
            ("{\"a\":", "1", "}"),
            ("!", "true", ""),
            ("-", "state.a", ""),
            ("not ", "true", ""),
            ("state.a[", "state.b", "]"),
            ("double(", "state.a", ")"),
            ("state.a[has(state.b[", "0", "]) ? 1 : 2]"),
            ("true ? (", "1", ") : 2"),
            ("state.a == (", "2", ")"),
            ("state.a && (state.b || (", "state.c", "))"),
            ("1 + (2 * (", "3", "))"),
            ("", "state.a", " == state.b"),
            ("[state.a.contains(", "\"x\"", ") ? \"y\" : \"z\"][0]"),
        ] {
            assert_eq!(code(&nested(open, inner, close, 10)), "accepted", "{open}");
            for count in [100, 1000, 2000] {
                assert_eq!(code(&nested(open, inner, close, count)), "E0508", "{open} {count}");
            }
            // The deepest that is accepted is also evaluated and printed on this stack.
            let deepest = (1..100)
                .map(|count| nested(open, inner, close, count))
                .rfind(|text| code(text) == "accepted");
            let expr = Expr::parse(&deepest.unwrap(), &Scope::new()).unwrap();
            let _ = expr.evaluate(&Env::of(&state), &mut Budget::default());
            assert_eq!(code(expr.canonical()), "accepted");
            let text = nested(open, inner, close, 100_000);
            assert_eq!(code(&text), "E0508", "{open}");
        }
        assert_eq!(code(&nested("(", "1", ")", DEPTH_MAX - 1)), "accepted");
        assert_eq!(code(&nested("(", "1", ")", DEPTH_MAX)), "E0508");
        // What has no end is refused all the same.
        for open in ["(", "[", "{\"a\":", "!", "-", "state.a[", "f(", "state.a?"] {
            assert_ne!(code(&open.repeat(60_000 / open.len())), "accepted", "{open}");
        }
    });
}

#[test]
fn chains_may_be_long_but_not_endless() {
    on_a_small_stack(|| {
        for (part, between) in [
            ("1", " + "),
            ("state.a", " && "),
            ("state.a", " or "),
            ("2", " * "),
            ("state.a ? 1", " : "),
            ("state", ".a"),
            ("state.a", "[0]"),
        ] {
            let chain = |count: usize| {
                let mut text = vec![part; count].join(between);
                if part.contains('?') {
                    text.push_str(" : 2");
                } else if between.starts_with(['.', '[']) {
                    text = format!("{part}{}", between.repeat(count));
                }
                text
            };
            assert_eq!(code(&chain(2000)), "accepted", "{part}{between}");
            assert_eq!(code(&chain(200_000)), "E0508", "{part}{between}");
            let expr = Expr::parse(&chain(2000), &Scope::new()).unwrap();
            let _ = expr.evaluate(&Env::of(&Value::object()), &mut Budget::default());
            assert_eq!(Expr::parse(expr.canonical(), &Scope::new()).unwrap().canonical(), expr.canonical());
        }
    });
}

#[test]
fn texts_and_literals_are_bounded() {
    let ten_megabytes = format!("\"{}\"", "x".repeat(10 << 20));
    assert_eq!(code(&ten_megabytes), "E0508");
    assert_eq!(code(&" ".repeat(TEXT_SIZE_MAX + 1)), "E0508");
    assert_eq!(code(&format!("\"{}\"", "x".repeat(TEXT_SIZE_MAX - 2))), "accepted");
    assert_eq!(code(&format!("[{}]", "1,".repeat(NODES_MAX - 1))), "accepted");
    assert_eq!(code(&format!("[{}]", "1,".repeat(NODES_MAX))), "E0508");
    assert_eq!(
        code(&format!("{{{}}}", (0..5000).map(|n| format!("\"{n}\":1,")).collect::<String>())),
        "E0508"
    );
    for text in ["9".repeat(60_000), format!("1e{}", "9".repeat(60_000)), format!("0x{}", "f".repeat(60_000))]
    {
        assert_eq!(code(&text), "E0501");
    }
    assert_eq!(code(&format!("0.{}1", "0".repeat(60_000))), "accepted");
    assert_eq!(code(&format!("state.{}", "a".repeat(60_000))), "accepted");
    assert_eq!(code(&"a".repeat(60_000)), "E0505");
}

#[test]
fn every_slice_of_a_text_is_answered() {
    let text = r#"state.a["k\u00e9"][0] >= -1.5e3 and not (x in [1, 'a', {"b": r"\"}]) ? size(t) : has(state.`a b`.c) // é"#;
    for start in 0..text.len() {
        for end in start..text.len() {
            if let Some(part) = text.get(start..end) {
                let _ =
                    Expr::parse(part, &Scope::new().root("x").root("t")).map_err(|error| error.render(part));
            }
        }
    }
}

#[test]
fn every_smaller_budget_runs_out_and_the_verdict_stays() {
    let state = json::parse_door(
        br#"{"a":1,"s":"some text of more than sixteen bytes","l":[1,[2,3],"x"],"m":{"k":[1,2]},"n":null}"#,
    )
    .unwrap();
    for text in [
        "state.a == 1 && state.s == \"some text of more than sixteen byteS\"",
        "state.zzz > 1 || state.s + state.s == \"\" || state.l == [1, [2, 3], \"x\"]",
        "\"x\" in state.l ? size(state.s) > 3 : false",
        "state.m == {\"k\": state.l[1]} || state.n == null",
        "state.l[state.a][0] + state.a * 2.0 >= 4 and state.s.contains(\"sixteen\")",
    ] {
        let expr = Expr::parse(text, &Scope::new()).unwrap();
        let env = Env::of(&state);
        let mut budget = Budget::default();
        let truth = expr.holds(&env, &mut budget);
        assert!(matches!(truth, Truth::True | Truth::False), "{text}: {truth:?}");
        let steps = STEPS_MAX - budget.left();
        for allowed in 0..steps {
            let mut budget = Budget::new(allowed);
            assert_eq!(expr.holds(&env, &mut budget), Truth::Exhausted, "{text} with {allowed} of {steps}");
            assert_eq!(budget.left(), 0);
        }
        let mut exact = Budget::new(steps);
        assert_eq!(expr.holds(&env, &mut exact), truth, "{text}");
        assert_eq!(exact.left(), 0);
    }
}

#[test]
fn work_that_grows_with_the_state_is_paid_for() {
    let long = Value::from("x".repeat(1 << 20));
    let many = Value::array((0..100_000u64).map(Value::from));
    let state = Value::record([("long", long), ("many", many)]);
    let env = Env::of(&state);
    for text in [
        vec!["state.long"; 1000].join(" + "),
        vec!["state.many"; 1000].join(" + "),
        vec!["state.long.contains(\"y\")"; 1000].join(" || "),
        vec!["-1 in state.many"; 1000].join(" || "),
        vec!["state.many != state.many"; 1000].join(" || "),
        vec!["state.long != state.long"; 1000].join(" || "),
        vec!["size(state.long) < 0"; 1000].join(" || "),
        vec!["state.long < state.long"; 1000].join(" || "),
        vec!["double(state.long) < 0"; 1000].join(" || "),
        vec!["has(state[state.long])"; 1000].join(" || "),
    ] {
        let expr = Expr::parse(&text, &Scope::new()).unwrap();
        assert_eq!(expr.evaluate(&env, &mut Budget::default()), Err(EvalError::Exhausted), "{}", &text[..40]);
    }
}
