//! The functions: what each gives, and what it says of what it cannot take.

use super::*;

#[test]
fn functions_on_text() {
    check(&[
        (r#"parse_json("{\"a\":[1,2.50],\"$b\":null}")"#, r#"{"$$b":null,"a":[1,2.5]}"#),
        (r#"parse_json("{\"a\":1}").a"#, "1"),
        ("parse_json(state.a)", "state.a: state.a is a number, and `parse_json` takes a string"),
        ("canon({\"b\": 1.0, \"a\": [null, true, \"x\"]})", r#""{\"a\":[null,true,\"x\"],\"b\":1}""#),
        ("canon({\"$k\": state.big})", r#""{\"$k\":9007199254740993}""#),
        ("parse_json(canon(state.b)) == state.b", "true"),
        ("canon(state.secret)", "state.secret: state.secret is redacted"),
        ("canon(state.pair)", "state.pair: a value given to `canon` is redacted"),
        ("canon(state.nan)", "state.nan: a value given to `canon` is a number that is not finite"),
        ("words(\"Yes, go-ahead: YES 2x!\")", r#"["yes","go","ahead","2x"]"#),
        ("words(\"\u{212a}elvin caf\u{e9}\")", r#"["elvin","caf"]"#),
        ("words(state.nul)", "state.nul: state.nul is null, and `words` takes a string"),
        ("lower(\"ABC\u{c9}\")", "\"abc\u{c9}\""),
        ("strip_prefix(\"https://x\", \"https://\")", "\"x\""),
        ("strip_prefix(\"x\", \"https://\")", "\"x\""),
        ("strip_prefix(\"x\", state.n)", "state.n: state.n is a number, and `strip_prefix` takes a string"),
        ("string(1.0) + string(state.f) + string(true) + string(\"x\") + string(1e21)", "\"10.5truex1e+21\""),
        (
            "string(state.nul)",
            "state.nul: state.nul is null, and `string` takes a number, a boolean or a string",
        ),
        ("string([1])", "E0502: `string` does not take a list"),
        ("bool(\"t\") && !bool(\"False\") && bool(state.ok)", "true"),
        ("bool(state.s)", "state.s: the text is not that of a boolean"),
        ("slice(\"h\u{e9}llo\", 1, 3)", "\"\u{e9}l\""),
        ("slice(state.s, -2)", "\"lo\""),
    ]);
    assert!(run("parse_json(state.s)").starts_with("state.s: state.s is not JSON: "));
    assert!(run("parse_json(\"{\")").starts_with("-: the text is not JSON: "));
}

#[test]
fn functions_on_numbers() {
    check(&[
        ("abs(-3)", "3"),
        ("abs(state.f - 2)", "1.5"),
        ("abs(-9223372036854775808)", "-: the result is beyond 64 bits"),
        ("abs(state.s)", "state.s: state.s is a string, and `abs` takes a number"),
        ("round(2.675, 2)", "2.67"),
        ("round(0.5) + round(1.5) + round(2.5)", "4"),
        ("round(state.f)", "0"),
        ("round(state.n, 2)", "3"),
        ("round(state.huge, 2) == state.huge", "true"),
        ("round(1.005, -1)", "-: `round` keeps 0 to 100 decimals"),
        ("round(1.005, state.f)", "state.f: a number with a fraction where an integer is needed"),
        ("sum([0.1, 0.2, 0.3])", "0.6000000000000001"),
        ("sum([])", "0"),
        ("sum(state.b.list)", "state.b.list[2]: state.b.list[2] is a string, and `sum` takes numbers"),
        ("sum([state.big])", "-: an integer beyond 2^53-1 can be compared but not calculated with"),
        ("min([3, 1.5, 2])", "1.5"),
        ("max(3, state.n, 2)", "3"),
        ("max(0, state.n - 5)", "0"),
        ("min(\"b\", state.s)", "\"b\""),
        ("max([\"a\", \"b\"])", "\"b\""),
        ("max(state.big, state.huge) == state.huge", "true"),
        ("min([])", "-: an empty list has no min"),
        (
            "min(state.a, state.s)",
            "state.s: state.s is a string, and `min` takes numbers or strings, all of one kind",
        ),
        (
            "max(state.b.list)",
            "state.b.list[2]: state.b.list[2] is a string, and `max` takes numbers or strings, all of one kind",
        ),
        (
            "max(state.ok, state.ok)",
            "state.ok: state.ok is a boolean, and `max` takes numbers or strings, all of one kind",
        ),
        ("max(1, \"a\")", "E0502: `max` does not take an int and a string"),
        ("max(1)", "E0502: `max` does not take an int"),
        ("range(3)", "[0,1,2]"),
        ("range(-3)", "[]"),
        ("range(2, 4)", "[2,3]"),
        ("range(state.f)", "state.f: a number with a fraction where an integer is needed"),
        ("range(state.huge)", "exhausted"),
        ("range(9223372036854775807)", "exhausted"),
        ("range(-9223372036854775808, 9223372036854775807)", "exhausted"),
    ]);
}

#[test]
fn functions_on_lists() {
    check(&[
        ("distinct([1, \"1\", 1.0, [1], [1.0], null])", "[1,\"1\",[1],null]"),
        ("size(distinct(state.b.list)) == size(state.b.list)", "true"),
        ("distinct(state.pair)", "-: a value that is compared is redacted"),
        ("intersects([1, 2], [\"2\", 2.0])", "true"),
        ("intersects(KINDS, [])", "false"),
        ("intersects([1], state.s)", "state.s: state.s is a string, and `intersects` takes a list"),
        ("indices([5, 6])", "[0,1]"),
        ("slice([1, 2, 3], 1)", "[2,3]"),
        ("slice([1, 2, 3], -2, 9)", "[2,3]"),
        ("slice([1, 2, 3], 2, 1)", "[]"),
        ("slice([1, 2, 3], -9, -1)", "[1,2]"),
        ("slice(state.b, 1)", "state.b: state.b is a map, and `slice` takes a string or a list"),
        ("sort([3, 1, 2.5])", "[1,2.5,3]"),
        ("sort([\"b\", \"a\", \"B\"])", "[\"B\",\"a\",\"b\"]"),
        ("sort([true, false])", "[false,true]"),
        ("sort([state.huge, state.big, 1])", "[1,9007199254740993,1208925819614629174706177]"),
        (
            "sort(state.b.list)",
            "state.b.list[2]: state.b.list[2] is a string, and `sort` takes numbers, strings or booleans, all of one kind",
        ),
        (
            "sort([[1]])",
            "-: member 0 is a list, and `sort` takes numbers, strings or booleans, all of one kind",
        ),
    ]);
}

#[test]
fn functions_on_maps() {
    check(&[
        ("merge({\"a\": 1, \"b\": 2}, {\"b\": 3, \"$c\": 4}, {})", r#"{"$$c":4,"a":1,"b":3}"#),
        ("merge(state.b, state.nul)", "state.nul: state.nul is null, and `merge` takes a map"),
        ("pick(state.b, [\"c\", \"zzz\", \"d\"])", r#"{"c":"text","d":null}"#),
        ("pick(state, [\"$own\"])", r#"{"$$own":7}"#),
        ("pick(state.b, [1])", "-: member 0 is a number, and `pick` takes names"),
        ("without(state.b, [\"list\", \"zzz\"])", r#"{"c":"text","d":null}"#),
        ("keys({\"b\": 1, \"a\": 2, \"$c\": 3})", r#"["$c","a","b"]"#),
        ("values({\"b\": 1, \"a\": 2})", "[2,1]"),
        ("keys(state.secret)", "state.secret: state.secret is redacted"),
        ("keys(state.inf)", "state.inf: state.inf is a number that is not finite, and `keys` takes a map"),
        ("keys([1])", "E0502: `keys` does not take a list"),
        ("merge({})", "E0502: `merge` has another number of arguments"),
    ]);
}

#[test]
fn what_is_made_is_bounded_in_depth_and_size() {
    // Each binding holds the one before it twice: a few steps stand for a tree of 2^60 members.
    let doubled = |inner: &str, count: usize| {
        let mut text = inner.to_owned();
        for n in (0..count).rev() {
            text = format!("cel.bind(x{}, [x{n}, x{n}], {text})", n + 1);
        }
        format!("cel.bind(x0, [1], {text})")
    };
    assert_eq!(run(&doubled("size(x40)", 40)), "2");
    for inner in ["x40", "canon(x40)", "x40 == [x39, x39]", "distinct(x40)", "[x40, x40]"] {
        assert_eq!(run(&doubled(inner, 40)), "exhausted", "{inner}");
    }
    let scope = (1..40).fold(scope().define("f0", &["x"], "[[[x]]]").unwrap(), |scope, n| {
        let text = format!("cel.bind(y, f{}(x), [[[y]]])", n - 1);
        scope.clone().define(&format!("f{n}"), &["x"], &text).unwrap_or(scope)
    });
    let deep =
        Expr::parse("cel.bind(a, f5([1]), [1].map(b, f5(a)).map(c, f5(c)).map(d, f5(d)))", &scope).unwrap();
    let error = deep.evaluate(&Env::of(&state()), &mut Budget::default()).unwrap_err();
    assert!(
        error.to_string().starts_with("the value is nested deeper than 64 levels around data, in `f"),
        "{error}"
    );
}
