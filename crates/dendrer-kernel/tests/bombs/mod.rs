//! Texts that are short to write and long to evaluate, for the test of their verdicts and the benchmark of their
//! times.

use dendrer_kernel::expr::{Expr, Scope};
use dendrer_object::Value;

/// A text that is meant to run out of steps, and what it runs in.
pub struct Bomb {
    /// What kind it is.
    pub family: &'static str,
    /// The expression.
    pub expr: Expr,
}

/// Members that hold much: a long text, many numbers, many names, a number of many digits.
pub fn state() -> Value {
    let digits = "9".repeat(100_000);
    Value::record([
        ("text", Value::from("a".repeat(200_000))),
        ("prose", Value::from("some words, Some WORDS and 1 more of them; ".repeat(4000))),
        ("list", Value::array((0..50_000i64).map(|n| Value::from(n * 7919 % 50_000)))),
        ("texts", Value::array((0..5000).map(|n| Value::from(format!("a shared beginning, then {n}"))))),
        ("map", Value::record((0..20_000).map(|n| (format!("name {n}"), Value::from(n as f64 / 8.0))))),
        (
            "records",
            Value::array(
                (0..2000i64)
                    .map(|n| Value::record([("id", Value::from(n)), ("ok", Value::from(n % 2 == 0))])),
            ),
        ),
        ("json", Value::from(format!("[{}0]", "{\"a\":1},".repeat(20_000)))),
        ("huge", dendrer_object::json::parse_door(digits.as_bytes()).expect("digits are a number")),
        ("missing", Value::object()),
        ("n", Value::from(3u64)),
    ])
}

fn scope() -> Scope {
    let mut scope = Scope::new().define("f0", &["x"], "x + 1").expect("it parses");
    for n in 1..40 {
        let text = format!("f{0}(f{0}(x))", n - 1);
        match scope.clone().define(&format!("f{n}"), &["x"], &text) {
            Ok(next) => scope = next,
            Err(_) => break,
        }
    }
    scope
}

/// Wraps a text in bindings of `x1`, `x2`, ... each of which holds the one before it twice.
fn doubled(first: &str, twice: &str, count: usize, inner: &str) -> String {
    let mut text = inner.replace("{last}", &format!("x{count}"));
    for n in (0..count).rev() {
        text = format!("cel.bind(x{}, {}, {text})", n + 1, twice.replace('@', &format!("x{n}")));
    }
    format!("cel.bind(x0, {first}, {text})")
}

/// Puts a text into a loop of so many rounds.
fn again(rounds: u64, inner: &str) -> String {
    format!("range({rounds}).all(i, {inner})")
}

/// All of them, about 200.
pub fn bombs() -> Vec<Bomb> {
    let mut all: Vec<(&'static str, String)> = Vec::new();
    for (name, end) in [
        ("all", "true"),
        ("exists", "false"),
        ("exists_one", "false"),
        ("filter", "true"),
        ("map", "a"),
        ("map", "[a, a]"),
        ("map", "string(a)"),
        ("map", "{\"a\": a}"),
    ] {
        for variables in
            [&["a", "b"][..], &["a", "b", "c"], &["a", "b", "c", "d"], &["a", "b", "c", "d", "e"]]
        {
            let rounds = 10u64.pow(12 / variables.len() as u32).min(1_000_000);
            let mut text = end.to_owned();
            for variable in variables.iter().rev() {
                let body = if name == "filter" && text != end { format!("size({text}) >= 0") } else { text };
                text = format!("range({rounds}).{name}({variable}, {body})");
            }
            all.push(("nested macros", text));
        }
    }
    for count in [20, 30, 40, 55] {
        for inner in [
            "size({last}) > 0",
            "{last}.contains(\"b\")",
            "{last} == {last} + \"\"",
            "canon({last})",
            "words({last})",
            "{last}.matches(\"(a|b)*c\")",
        ] {
            all.push(("text doubled", doubled("\"ab ab ab \"", "@ + @", count, inner)));
        }
        for inner in ["size({last}) > 0", "{last}.all(y, y > 0)", "sort({last})", "sum({last})"] {
            all.push(("list doubled", doubled("[1, 2, 3]", "@ + @", count, inner)));
        }
        for inner in ["{last}", "canon({last})", "distinct([{last}])", "{last} == [{last}][0]"] {
            all.push(("tree doubled", doubled("[1]", "[@, @]", count, inner)));
        }
        for inner in ["{last}", "canon({last})", "intersects([{last}], [{last}])"] {
            all.push(("map doubled", doubled("{\"k\": 1}", "{\"a\": @, \"b\": @}", count, inner)));
        }
        all.push((
            "map doubled",
            doubled("{\"k\": 1}", "merge(@, {\"a\": @, \"b\": @})", count, "canon({last})"),
        ));
    }
    for (family, inner) in [
        ("loop over text", "state.text.contains(\"b\")"),
        ("loop over text", "size(state.text) < 0"),
        ("loop over text", "state.text == state.text + \"\""),
        ("loop over text", "state.text < state.text"),
        ("loop over text", "lower(state.text) == \"\""),
        ("loop over text", "strip_prefix(state.text, \"a\") == \"\""),
        ("loop over text", "slice(state.text, 1, 2) == \"\""),
        ("loop over text", "words(state.prose) == []"),
        ("loop over text", "size(words(state.text)) == 0"),
        ("loop over text", "canon(state.prose) == \"\""),
        ("loop over text", "string(i) + state.text == \"\""),
        ("loop over text", "double(string(i)) < 0.0"),
        ("loop over json", "parse_json(state.json) == []"),
        ("loop over json", "parse_json(canon(state.records)) == []"),
        ("loop over list", "sum(state.list) < 0"),
        ("loop over list", "max(state.list) < 0"),
        ("loop over list", "sort(state.list) == []"),
        ("loop over list", "sort(state.texts) == []"),
        ("loop over list", "distinct(state.list) == []"),
        ("loop over list", "distinct(state.texts) == []"),
        ("loop over list", "intersects(state.list, state.texts)"),
        ("loop over list", "-1 in state.list"),
        ("loop over list", "\"\" in state.texts"),
        ("loop over list", "state.list == slice(state.list, 0)"),
        ("loop over list", "state.list + state.list == []"),
        ("loop over list", "slice(state.list, 1) == []"),
        ("loop over list", "indices(state.list) == []"),
        ("loop over list", "canon(state.list) == \"\""),
        ("loop over list", "state.list[i] == state.list[0 - i]"),
        ("loop over list", "state.records.exists(r, r.id == i)"),
        ("loop over list", "state.records.map(r, merge(r, {\"i\": i})) == []"),
        ("loop over list", "state.records.filter(r, pick(r, [\"ok\", \"id\"]) == {}) == []"),
        ("loop over map", "keys(state.map) == []"),
        ("loop over map", "values(state.map) == []"),
        ("loop over map", "merge(state.map, {\"a\": i}) == {}"),
        ("loop over map", "without(state.map, [\"name 1\"]) == {}"),
        ("loop over map", "state.map.exists(k, k == \"\")"),
        ("loop over map", "state.map.exists(k, v, v < 0)"),
        ("loop over map", "state.map.transformMap(k, v, v) == {}"),
        ("loop over map", "state.map.transformMapEntry(k, v, {k + \"x\": v}) == {}"),
        ("loop over map", "canon(state.map) == \"\""),
        ("loop over map", "state.map == merge(state.map, {})"),
        ("loop over map", "(\"name \" + string(i)) in state.map"),
        ("loop over map", "has(state.map[\"name \" + string(i)])"),
        ("loop over map", "state.map[\"name \" + string(i)] < 0"),
        ("digits", "state.huge < state.huge"),
        ("digits", "state.huge == state.huge - 0 || state.huge != state.huge"),
        ("digits", "double(state.huge) < 0.0"),
        ("digits", "string(state.huge) == \"\""),
        ("digits", "max(state.huge, 1) < 0"),
        ("digits", "round(state.huge, 2) < 0"),
        ("digits", "state.huge in [1, 2, 3]"),
        ("errors", "state.missing.a > i || i < 0"),
        ("errors", "state.list.all(x, x.a)"),
        ("errors", "state.records.exists(r, r.name > i)"),
        ("errors", "state.texts.exists(t, t > i)"),
        ("errors", "[state.text + state.text, \"b\"].exists(t, t > i)"),
        ("errors", "state[\"a\" + string(i)].b || i < 0"),
        ("errors", "parse_json(\"[1,\") || i < 0"),
        ("errors", "div(i, 0) > 1 || parse_json(string(i) + \"]\") || i < 0"),
        ("pattern", "state.text.matches(\"b\")"),
        ("pattern", "state.text.matches(\"(a|b|ab)*c\")"),
        ("pattern", "state.text.matches(\"^(a?){50}a{50}c\")"),
        ("pattern", "state.text.matches(\"(.*)(.*)(.*)(.*)(.*)[^a]\")"),
        ("pattern", "state.text.matches(\"(a{10}){20}b\")"),
        ("pattern", "state.prose.matches(\"(?i)WORDS and 2\")"),
        ("pattern", "state.prose.matches(\"[a-z]+ [a-z]+ [a-z]+ [a-z]+ [a-z]+x\")"),
        ("pattern", "string(i).matches(\"^(x|y|z|[0-9]|a{20})*$\") == false"),
        ("pattern", "slice(state.text, 0, 10).matches(\"((((a*)*)*)*)*b\")"),
        ("numbers", "round(i * 1.1, 100) < 0.0"),
        ("numbers", "abs(i) + div(i, 3) + i % 7 < 0"),
        ("numbers", "max(i, 1, 2, 3) < min(i, 0, 1)"),
    ] {
        let inner = format!("({inner}) || i > -1");
        all.push((family, again(1_000_000, &inner)));
    }
    for text in [
        "range(9223372036854775807)",
        "range(-9223372036854775808, 9223372036854775807)",
        "range(1000000)",
        "range(2000000).map(i, range(i))",
        "sum(range(1000000))",
        "sort(range(200000))",
        "distinct(range(500000))",
        "range(400000).map(i, string(i)).map(t, t + t).map(t, t + t)",
        "range(500000).map(i, [i])",
        "range(500000).map(i, {\"a\": i})",
        "range(500000).transformMapEntry(i, v, {string(v): v})",
        "range(300000).map(i, state)",
        "range(1000).map(i, state.list)",
        "canon(range(100000).map(i, [i, i, i]))",
        "range(1000).map(i, range(1000).map(j, range(10)))",
        "parse_json(\"[\" + canon(range(300000)) + \"]\")",
    ] {
        all.push(("ranges", text.to_owned()));
    }
    for n in [18, 20, 22, 23, 24] {
        all.push(("definitions", format!("f{n}(1)")));
        all.push(("definitions", format!("range(100000).all(i, f{}(i) > i)", n / 2)));
    }
    for depth in [14, 20, 30] {
        let mut text = "1".to_owned();
        for level in 0..depth {
            text = format!("range(3).map(x{level}, {text})");
        }
        all.push(("deep", text));
        all.push((
            "deep",
            again(1_000_000, &format!("{}i < 0{} == false", "(".repeat(depth), ")".repeat(depth))),
        ));
        all.push((
            "deep",
            again(1_000_000, &format!("[{}] == []", vec!["i"; depth * 10].join(", ")))
                .replace("== []", "!= []"),
        ));
    }
    let scope = scope();
    all.into_iter()
        .map(|(family, text)| match Expr::parse(&text, &scope) {
            Ok(expr) => Bomb { family, expr },
            Err(error) => panic!("{}", error.render(&text)),
        })
        .collect()
}
