//! Tables: text in, value or complaint out.

use dendrer_object::{Value, json};

use super::*;

mod library;
mod macros;
mod markers;
mod moments;

fn scope() -> Scope {
    Scope::new()
        .root("t")
        .root("source")
        .constant("LIMIT", Value::from(100u64))
        .constant("KINDS", read(r#"["a","b"]"#))
}

fn read(text: &str) -> Value {
    json::parse_door(text.as_bytes()).unwrap()
}

/// As [`read`], where tagged forms mean what they say.
fn read_tagged(text: &str) -> Value {
    json::parse_tagged(text.as_bytes()).unwrap()
}

fn state() -> Value {
    read_tagged(
        r#"{"a":1,"b":{"c":"text","d":null,"list":[1,2.5,"x",{"k":true}]},"n":3,"f":0.5,"ok":true,"no":false,
            "s":"hello","big":9007199254740993,"huge":1208925819614629174706177,"nul":null,"empty":{},
            "$$own":7,"in":"word","x y":"quoted","nan":{"$float":"NaN"},"inf":{"$float":"Infinity"},
            "secret":{"$redacted":{"kind":"email"}},"gap":{"$gap":{"path":"","reason":"too large"}},
            "pair":[1,{"$redacted":{"kind":"email"}}],"max":9007199254740991}"#,
    )
}

fn counters() -> Value {
    read(r#"{"tool_errors":2,"by_agent":{"planner":4}}"#)
}

/// The value as canonical JSON; `path: message` for what is uncertain; `code: message` for what does not parse.
fn run(text: &str) -> String {
    let (state, counters, t) = (state(), counters(), read(r#"{"type":"action.result","args":[1,2]}"#));
    let env = Env { state: &state, counters: Some(&counters), others: &[("t", &t)] };
    match Expr::parse(text, &scope()) {
        Err(error) => format!("{}: {}", error.code, error.message),
        Ok(expr) => match expr.evaluate(&env, &mut Budget::default()) {
            Ok(value) => value.to_string(),
            Err(EvalError::Uncertain(why)) => {
                format!("{}: {}", why.path.as_deref().unwrap_or("-"), why.message)
            }
            Err(EvalError::Exhausted) => "exhausted".to_owned(),
        },
    }
}

fn check(table: &[(&str, &str)]) {
    for (text, expected) in table {
        assert_eq!(run(text), *expected, "{text}");
    }
}

#[test]
fn an_expression_can_be_shared_between_threads() {
    fn shared<T: Send + Sync + Clone>() {}
    shared::<Expr>();
    shared::<Scope>();
}

#[test]
fn paths_read_the_state_in_place() {
    check(&[
        ("state.a", "1"),
        ("state[\"a\"]", "1"),
        ("state.b.c", "\"text\""),
        ("state.b.list[0]", "1"),
        ("state.b.list[3].k", "true"),
        ("state.b.list[state.a]", "2.5"),
        ("state.b[\"li\" + \"st\"][2]", "\"x\""),
        ("state.`x y`", "\"quoted\""),
        ("state[\"x y\"]", "\"quoted\""),
        ("state[\"in\"]", "\"word\""),
        ("state[\"$own\"]", "7"),
        ("\"$own\" in state", "true"),
        (
            "\"$float\" in state.nan",
            "state.nan: state.nan is a number that is not finite, and `in` takes a list or a map",
        ),
        ("t.args[1]", "2"),
        ("LIMIT", "100"),
        ("KINDS[1]", "\"b\""),
        ("[1, [2, 3]][1][0]", "2"),
        ("{\"k\": state.b}.k.c", "\"text\""),
        ("{\"$k\": 1}[\"$k\"]", "1"),
        ("(state.ok ? state.b : state.empty).c", "\"text\""),
    ]);
}

#[test]
fn what_is_missing_or_of_another_kind_is_named_by_its_path() {
    check(&[
        ("state.risk_score > 1", "state.risk_score: state.risk_score is missing"),
        ("state.b.x.y", "state.b.x: state.b.x is missing"),
        ("state.b.list[9]", "state.b.list[9]: state.b.list[9] is missing"),
        ("state.b.list[-1]", "state.b.list[-1]: state.b.list[-1] is missing"),
        ("state.b.list[state.n].z", "state.b.list[3].z: state.b.list[3].z is missing"),
        ("state.b[state.s]", "state.b.hello: state.b.hello is missing"),
        ("state.a.b", "state.a: state.a is a number and has no members"),
        ("state.nul.b", "state.nul: state.nul is null and has no members"),
        ("state.b.list.k", "state.b.list: state.b.list is a list, whose members have numbers and no names"),
        ("state.b[0]", "state.b: state.b is a map, whose members have names and no numbers"),
        ("state.b.list[state.f]", "state.f: a number with a fraction where an integer is needed"),
        ("state.s > 1", "state.s: state.s is a string, and `>` takes a number beside a number"),
        ("1 < state.s", "state.s: state.s is a string, and `<` takes a number beside a number"),
        ("state.nul > 1", "state.nul: state.nul is null, and `>` takes numbers, strings or booleans"),
        ("state.a && true", "state.a: state.a is a number, and `&&` takes a boolean"),
        ("!state.s", "state.s: state.s is a string, and `!` takes a boolean"),
        ("state.s + 1", "state.s: state.s is a string, and `+` takes two numbers, strings or lists"),
        (
            "state.ok + state.a",
            "state.ok: state.ok is a boolean, and `+` takes two numbers, strings or lists",
        ),
        ("source.x", "source: source is not given here"),
        (
            "state.inf > 1",
            "state.inf: state.inf is a number that is not finite, and `>` takes numbers, strings or booleans",
        ),
    ]);
}

#[test]
fn has_asks_for_the_last_step_only() {
    check(&[
        ("has(state.a)", "true"),
        ("has(state.nul)", "true"),
        ("has(state.zzz)", "false"),
        ("has(state.b.c)", "true"),
        ("has(state.b.zzz)", "false"),
        ("has(state.zzz.y)", "state.zzz: state.zzz is missing"),
        ("has(state.zzz) && has(state.zzz.y)", "false"),
        ("has(state.a.b)", "state.a: state.a is a number and has no members"),
        ("has(state.b.list[1])", "true"),
        ("has(state.b.list[4])", "false"),
        ("has(state.b[\"c\"])", "true"),
        ("has({\"k\": null}.k)", "true"),
        ("has(state.secret)", "true"),
        ("has(state.counters)", "true"),
        ("has(state.counters.tool_errors)", "true"),
        ("has(state.counters.zzz)", "false"),
        ("has(state)", "E0502: `has` asks whether a member is there"),
        ("has(1)", "E0502: `has` asks whether a member is there"),
    ]);
}

#[test]
fn counters_are_served_by_the_environment() {
    check(&[
        ("state.counters.tool_errors", "2"),
        ("state[\"counters\"].tool_errors", "2"),
        ("state[\"coun\" + \"ters\"].tool_errors", "2"),
        ("state.counters.by_agent[\"planner\"]", "4"),
        ("\"counters\" in state", "true"),
        ("state.tool_errors", "state.tool_errors: state.tool_errors is missing"),
    ]);
    let hint = |text: &str| {
        let (state, counters) = (state(), counters());
        let env = Env { counters: Some(&counters), ..Env::of(&state) };
        let Truth::Uncertain(why) = Expr::parse(text, &scope()).unwrap().holds(&env, &mut Budget::default())
        else {
            panic!("{text} has an answer");
        };
        why.hint.unwrap_or_default()
    };
    assert_eq!(hint("state.tool_errors > 1"), "did you mean state.counters.tool_errors");
    assert_eq!(hint("state.counters.tool_erors > 1"), "did you mean state.counters.tool_errors");
    assert_eq!(hint("state.b.x > 1"), "guard it: has(state.b.x) && ...");
    assert_eq!(hint("state.b.list[7] > 1"), "guard it: size(state.b.list) > 7 && ...");
    let state = read("{\"counters\":{\"tool_errors\":9}}");
    let expr = Expr::parse("state.counters.tool_errors == 9", &scope()).unwrap();
    let Truth::Uncertain(why) = expr.holds(&Env::of(&state), &mut Budget::default()) else {
        panic!("a member of the state was taken for the counters");
    };
    assert_eq!(why.message, "state.counters is not given here");
}

#[test]
fn logic_absorbs_errors_and_words_are_symbols() {
    check(&[
        ("state.zzz && false", "false"),
        ("false && state.zzz", "false"),
        ("state.zzz || true", "true"),
        ("true || state.zzz", "true"),
        ("state.zzz && true", "state.zzz: state.zzz is missing"),
        ("state.zzz || false", "state.zzz: state.zzz is missing"),
        ("state.yyy && state.zzz", "state.yyy: state.yyy is missing"),
        ("state.yyy && state.zzz && false", "false"),
        ("state.nul == null or state.nul > 1", "true"),
        ("state.ok and not state.no", "true"),
        ("not (state.a == 1)", "false"),
        ("!state.ok || state.no", "false"),
        ("state.ok ? \"y\" : state.zzz", "\"y\""),
        ("state.no ? 1 : state.ok ? 2 : 3", "2"),
        ("state.zzz ? 1 : 2", "state.zzz: state.zzz is missing"),
        ("not state.a == 1", "E0501: `not` in front of this can be read in two ways"),
        ("state.a not in [1]", "E0501: expected an operator, found `not`"),
    ]);
}

#[test]
fn literals_are_typed_as_in_cel_and_data_follows_what_it_meets() {
    check(&[
        ("1 / 2", "0"),
        ("1.0 / 2.0", "0.5"),
        ("-7 / 2", "-3"),
        ("-7 % 2", "-1"),
        ("1 + 0.5", "E0502: `+` does not take an int and a double"),
        ("size(state.s) * 0.5", "E0502: `*` does not take an int and a double"),
        ("state.a * 0.5", "0.5"),
        ("state.f + 1", "1.5"),
        ("state.a + state.f", "1.5"),
        ("(state.a + state.n) * 0.25", "1"),
        ("state.n % 2", "1"),
        ("state.f % 2", "state.f: a number with a fraction where an integer is needed"),
        ("state.n / 2", "E0507: `/` on a value from data could drop the fraction or keep it"),
        ("LIMIT / 3", "E0507: `/` on a value from data could drop the fraction or keep it"),
        ("size(state.s) / 2", "E0507: `/` on a value from data could drop the fraction or keep it"),
        ("1 / 2 * size(state.s)", "0"),
        ("size(state.s) * 1 / 2", "E0507: `/` on a value from data could drop the fraction or keep it"),
        ("[3][0] / 2", "E0507: `/` on a value from data could drop the fraction or keep it"),
        ("1.0 / 2", "E0502: `/` does not take a double and an int"),
        ("double(state.n) / double(2)", "1.5"),
        ("div(state.n, 2)", "1"),
        ("div(-7, 2)", "-3"),
        ("div(7, 2) / 2", "1"),
        ("div(state.f, 2)", "state.f: a number with a fraction where an integer is needed"),
        ("div(state.n, 0)", "state.n: division by zero"),
        ("-state.n", "-3"),
        ("0.1 + 0.2", "0.30000000000000004"),
        ("state.f + 0.1 + 0.2", "0.8"),
        ("state.f + (0.1 + 0.2)", "0.8"),
        ("1e308 * 10.0", "-: the result is not a finite number"),
        ("9223372036854775807 + 1", "-: the result is beyond 64 bits"),
        ("9223372036854775807 - 1", "9223372036854775806"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("-(-9223372036854775808)", "-: the result is beyond 64 bits"),
        ("9223372036854775808", "E0501: the integer is outside the range of 64 bits"),
        ("0x10 + 010", "26"),
        ("int(2.9) + int(-2.9)", "0"),
        ("int(\"12\") + 1", "13"),
        ("double(\"1e3\") + 1.0", "1001"),
        ("double(\"nan\")", "-: the text is not that of a double"),
        ("int(1e19)", "-: the result is beyond 64 bits"),
    ]);
}

#[test]
fn integers_beyond_the_safe_range_compare_exactly_and_are_not_calculated_with() {
    check(&[
        ("state.big == 9007199254740993", "true"),
        ("state.big == 9007199254740992", "false"),
        ("state.big > 9007199254740992", "true"),
        ("state.big < 9007199254740994.0", "true"),
        ("state.big == 9007199254740992.0", "false"),
        (
            "state.huge == state.huge + []",
            "state.huge: state.huge is a number, and `+` takes two numbers, strings or lists",
        ),
        ("state.huge > 9223372036854775807", "true"),
        ("state.huge == 1208925819614629174706176.0", "false"),
        ("state.big + 1", "state.big: an integer beyond 2^53-1 can be compared but not calculated with"),
        ("-state.big", "state.big: an integer beyond 2^53-1 can be compared but not calculated with"),
        ("state.max + 1", "9007199254740992"),
        ("state.max + 2 == 9007199254740993", "true"),
        ("state.max + 2 - 2", "state.max: an integer beyond 2^53-1 can be compared but not calculated with"),
        ("state.max * state.max", "state.max: the result is beyond 64 bits"),
        ("int(state.big) + 1", "9007199254740994"),
        ("double(state.big)", "9007199254740992"),
        ("int(state.huge)", "state.huge: the result is beyond 64 bits"),
        ("9223372036854775807 < 9223372036854775808.0", "false"),
        ("9223372036854775807 == 9223372036854775807.0", "true"),
        ("-9223372036854775808 == -9223372036854775808.0", "true"),
    ]);
}

#[test]
fn equality_is_by_value_and_what_was_withheld_is_not_judged() {
    check(&[
        ("state.nul == null", "true"),
        ("state.a == null", "false"),
        ("state.a == \"1\"", "false"),
        ("state.a == 1.0", "true"),
        ("state.b.list == [1, 2.5, \"x\", {\"k\": true}]", "true"),
        ("state.b.list != [1, 2.5, \"x\", {\"k\": false}]", "true"),
        ("{\"a\": 1, \"b\": [2]} == {\"b\": [2.0], \"a\": 1.0}", "true"),
        ("1 == \"a\"", "E0502: an int and a string are never equal"),
        ("null != 1", "E0502: null and an int are always unequal"),
        ("state.nan == state.nan", "true"),
        ("state.inf == state.inf", "true"),
        ("state.inf == 1", "false"),
        ("state.secret == \"x\"", "state.secret: state.secret is redacted"),
        ("state.gap == null", "state.gap: state.gap is a gap in the record"),
        ("state.pair == [1, 2]", "-: a value that is compared is redacted"),
        ("state.pair == [2, 2]", "false"),
        ("1 in state.pair", "true"),
        ("2 in state.pair", "-: a value that is compared is redacted"),
        ("state.secret.kind", "state.secret: state.secret is redacted and has no members"),
        ("false < true", "true"),
        ("\"a\" < \"B\"", "false"),
        ("[1] < [2]", "E0502: `<` does not take a list and a list"),
    ]);
}

#[test]
fn strings_lists_and_maps() {
    check(&[
        ("size(\"h\u{e9}llo \u{1f600}\")", "7"),
        ("state.s.size()", "5"),
        ("size(state.b.list)", "4"),
        ("size(state.b)", "3"),
        ("size(state.a)", "state.a: state.a is a number, and `size` takes a string, a list or a map"),
        ("state.s.startsWith(\"he\")", "true"),
        ("state.s.endsWith(\"he\")", "false"),
        ("state.s.contains(\"ell\")", "true"),
        ("state.a.contains(\"x\")", "state.a: state.a is a number, and `contains` takes strings"),
        ("state.s + \" \" + state.b.c", "\"hello text\""),
        ("[1] + state.b.list + []", "[1,1,2.5,\"x\",{\"k\":true}]"),
        ("\"x\" in state.b.list", "true"),
        ("3 in state.b.list", "false"),
        ("\"c\" in state.b", "true"),
        ("3 in state.b", "false"),
        ("state.s in [\"hello\", \"bye\"]", "true"),
        ("state.s in {\"hello\": 1}", "true"),
        ("state.s in state.a", "state.a: state.a is a number, and `in` takes a list or a map"),
        ("\"h\" in \"hello\"", "E0502: `in` does not take a string and a string"),
        ("{state.s: 1}", "{\"hello\":1}"),
        ("{state.s: 1, \"hel\" + \"lo\": 2}", "-: the key \"hello\" stands twice in one map"),
        ("{\"a\": 1, \"a\": 2}", "E0502: the key \"a\" stands twice in one map"),
        ("[1, 2,]", "[1,2]"),
        ("{\"a\": 1,}", "{\"a\":1}"),
        (r#""\x41\u00e9\101\n" + r"\n" + '''it's'''"#, "\"A\u{e9}A\\n\\\\nit's\""),
    ]);
}

#[test]
fn the_grammar_complains_where_it_stops() {
    check(&[
        ("", "E0501: expected a value, found the end"),
        ("state.a >", "E0501: expected a value, found the end"),
        ("state.a = 1", "E0501: '=' does not belong here"),
        ("state.a & 1", "E0501: '&' does not belong here"),
        ("(state.a", "E0501: expected `)`, found the end"),
        ("state.a state.b", "E0501: expected an operator or the end, found `state`"),
        ("state.", "E0501: expected a name, found the end"),
        ("state.in", "E0501: expected a name, found `in`"),
        ("\"open", "E0501: the string has no end"),
        ("\"a\nb\"", "E0501: the string does not end on its line"),
        ("\"\\q\"", "E0501: \\q is not an escape"),
        ("\"\\ud800\"", "E0501: the escape is not a character of Unicode"),
        ("12abc", "E0501: not a number"),
        ("1e999", "E0501: the number is outside the range of a double"),
        ("\u{e9}", "E0501: the name `\u{e9}` is no identifier"),
        ("if", "E0501: `if` is a word of the language, not a name"),
        ("true ? 1", "E0501: expected `:`, found the end"),
    ]);
}

#[test]
fn what_cel_has_and_the_language_has_not_is_named() {
    check(&[
        ("1u", "E0506: an unsigned literal is not supported"),
        ("b\"x\"", "E0506: a bytes literal is not supported"),
        ("state.s.optMap(x, x)", "E0506: the macro `optMap` is not supported"),
        ("state.s.replace(\"a\", \"b\")", "E0506: the function `replace` is not supported"),
        ("state.s.matches(state.s)", "E0506: a pattern that is not a literal or a constant is not supported"),
        ("state.s.matches(\"(?x) a\")", "E0506: this flag of a pattern is not supported"),
        ("[1].transformMap(i, x, x)", "E0506: a map key other than a string is not supported"),
        (
            "timestamp(\"2020-01-01T00:00:00Z\").getHours(\"Asia/Kathmandu\")",
            "E0506: a time zone by its name is not supported",
        ),
        ("type(1)", "E0506: the function `type` is not supported"),
        ("int", "E0506: `int` as the name of a type is not supported"),
        ("math.greatest(1, 2)", "E0506: the library `math` is not supported"),
        ("state.?a", "E0506: optional selection is not supported"),
        ("state[?\"a\"]", "E0506: optional selection is not supported"),
        ("[?state.a]", "E0506: an optional element is not supported"),
        ("{1: 2}", "E0506: a map key other than a string is not supported"),
        (".state", "E0506: a name with a leading dot is not supported"),
        ("Point{x: 1}", "E0506: building a message is not supported"),
        ("state.Point{x: 1}", "E0506: building a message is not supported"),
    ]);
}

#[test]
fn types_and_numbers_of_arguments_are_checked_before_there_is_a_state() {
    check(&[
        ("!1", "E0502: `!` does not take an int"),
        ("-\"a\"", "E0502: `-` does not take a string"),
        ("1 + \"a\"", "E0502: `+` does not take an int and a string"),
        ("[1] - [1]", "E0502: `-` does not take a list and a list"),
        ("true && 1", "E0502: `&&` does not take an int"),
        ("\"a\".b", "E0502: a string has no members"),
        ("[1].b", "E0502: a list does not take a string as its index"),
        ("[1][0.5]", "E0502: a list takes an int and a map takes a string, not a double"),
        ("1 ? 2 : 3", "E0502: `? :` does not take an int"),
        ("size(1)", "E0502: `size` does not take an int"),
        ("size()", "E0502: `size` has another number of arguments"),
        ("state.s.startsWith()", "E0502: `startsWith` has another number of arguments"),
        ("int(true)", "E0502: `int` does not take a boolean"),
        ("1.5 % 2.0", "E0502: `%` does not take a double and a double"),
        ("state[0]", "E0502: a map does not take an int as its index"),
    ]);
    for (text, expected) in [
        ("\"a\"", "a condition is true or false, and this is a string"),
        ("state.a + 1", "a condition is true or false, and this is a number"),
    ] {
        assert_eq!(Expr::parse_condition(text, &scope()).unwrap_err().message, expected);
    }
    assert!(Expr::parse_condition("state.a", &scope()).is_ok());
    let expr = Expr::parse_condition("state.a", &scope()).unwrap();
    let Truth::Uncertain(why) = expr.holds(&Env::of(&state()), &mut Budget::default()) else {
        panic!("1 is not a truth value");
    };
    assert_eq!(why.message, "the condition gives a number, not true or false");
}

#[test]
fn unknown_names_come_with_the_nearest_known() {
    let hint = |text: &str, scope: &Scope| {
        let error = Expr::parse(text, scope).unwrap_err();
        assert_eq!(error.code, "E0505", "{text}");
        error.hint.unwrap_or_default()
    };
    assert_eq!(hint("stat.a", &scope()), "did you mean state");
    assert_eq!(hint("LIMT", &scope()), "did you mean LIMIT");
    assert_eq!(hint("zzzzzz", &scope()), "the names here are state, source, t, KINDS, LIMIT");
    assert_eq!(hint("tool_errors > 1", &scope()), "did you mean state.counters.tool_errors");
    assert_eq!(hint("state.s.startWith(\"a\")", &scope()), "did you mean startsWith");
    assert_eq!(hint("contains(state.s, \"a\")", &scope()), "write a.contains(b)");
    assert_eq!(hint("state.s.div(2)", &scope()), "write div(a, b)");
    let declared = scope().fields(["risk_score", "total"]);
    assert_eq!(hint("state.risk_scoer > 1", &declared), "did you mean state.risk_score");
    assert_eq!(hint("risk_score > 1", &declared), "did you mean state.risk_score");
    assert_eq!(hint("state.tool_errors > 1", &declared), "did you mean state.counters.tool_errors");
    assert_eq!(hint("has(state.polcy)", &declared), "did you mean state.policy");
    assert!(Expr::parse("state.counters.x + state.total + state.policy.x", &declared).is_ok());
    assert!(Expr::parse("state.a", &Scope::without_state()).is_err());
}

#[test]
fn the_read_set_covers_every_place_that_can_be_looked_at() {
    let reads = |text: &str| {
        let expr = Expr::parse(text, &scope()).unwrap();
        let mut all: Vec<String> = expr.read_set().iter().map(|place| place.as_str().to_owned()).collect();
        all.extend(expr.reads_counters().then(|| "counters".to_owned()));
        all.extend(expr.roots().map(|root| format!("root {root}")));
        all.join(", ")
    };
    for (text, expected) in [
        ("1 == 1", ""),
        ("state.a > state.b.c", "/a, /b/c"),
        ("state.b.c == 1 && state.b == null && state.bc", "/b, /bc"),
        ("has(state.b.x)", "/b/x"),
        ("state.list[0].price > state.list[1].price", "/list"),
        ("state.items[state.at].price > 1", "/at, /items"),
        ("state[state.key]", ", counters"),
        ("size(state)", ", counters"),
        ("\"a\" in state", "/a"),
        ("\"counters\" in state", "counters"),
        ("state.s in state", ", counters"),
        ("state.counters.tool_errors > 1", "counters"),
        ("state[\"$own\"]", "/$$own"),
        ("source.x == t.y && state.`a/b`", "/a~1b, root source, root t"),
        ("(state.ok ? state.a : state.b).c", "/a, /b, /ok"),
        ("[state.a].size() == {\"k\": state.n}.size()", "/a, /n"),
    ] {
        assert_eq!(reads(text), expected, "{text}");
    }
}

#[test]
fn definitions_are_called_with_values_and_see_what_came_before_them() {
    let scope = scope()
        .define("total", &[], "state.n + LIMIT")
        .and_then(|scope| scope.define("twice", &["x"], "x + x"))
        .and_then(|scope| scope.define("between", &["x", "low", "high"], "low <= x && x <= high"))
        .and_then(|scope| scope.define("fine", &[], "between(twice(total), state.a, t.args[0] * 1000)"))
        .unwrap();
    let (state, t) = (state(), read(r#"{"args":[1,2]}"#));
    let env = Env { others: &[("t", &t)], ..Env::of(&state) };
    let run = |text: &str| match Expr::parse(text, &scope) {
        Ok(expr) => match expr.evaluate(&env, &mut Budget::default()) {
            Ok(value) => value.to_string(),
            Err(error) => error.to_string(),
        },
        Err(error) => format!("{}: {} ({})", error.code, error.message, error.hint.unwrap_or_default()),
    };
    for (text, expected) in [
        ("total", "103"),
        ("twice(total) == 2 * total", "true"),
        ("fine and not between(0, 1, 2)", "true"),
        ("twice(state.s)", "\"hellohello\""),
        ("twice(twice(twice(1)))", "8"),
        ("twice(state.zzz)", "state.zzz is missing"),
        ("twice(state.ok)", "x is a boolean, and `+` takes two numbers, strings or lists, in `twice`"),
        ("state.zzz == twice(1) || twice(1) == 2", "true"),
        ("twice", "E0502: `twice` takes 1 arguments (write twice(x))"),
        ("twice(1, 2)", "E0502: `twice` takes 1 arguments (write twice(x))"),
        ("total()", "E0502: `total` takes 0 arguments (write total)"),
        ("twise(1)", "E0505: there is no function `twise` (did you mean twice)"),
        ("totl", "E0505: there is no `totl` here (did you mean total)"),
        ("totall", "E0505: there is no `totall` here (did you mean total)"),
    ] {
        assert_eq!(run(text), expected, "{text}");
    }
    let expr = Expr::parse(" fine  and twice( 1 ) == 2", &scope).unwrap();
    assert_eq!(expr.canonical(), "fine && twice(1) == 2");
    assert_eq!(expr.read_set(), ["/a".parse().unwrap(), "/n".parse().unwrap()]);
    assert_eq!(expr.reads_of("t"), ["/args".parse().unwrap()]);
    assert_eq!(expr.reads_of("source"), []);
    let steps = |text: &str| {
        let mut budget = Budget::default();
        Expr::parse(text, &scope).unwrap().evaluate(&env, &mut budget).unwrap();
        STEPS_MAX - budget.left()
    };
    assert_eq!(steps("twice(total)"), 3 + (3 + 4) + 3);
    let expr = Expr::parse("1 + twice(null)", &scope).unwrap();
    let Err(EvalError::Uncertain(why)) = expr.evaluate(&env, &mut Budget::default()) else {
        panic!("a value")
    };
    assert_eq!((why.span.start, why.span.end), (4, 15), "a place in the text that calls");
}

#[test]
fn a_definition_is_refused_at_its_own_place() {
    let define = |name: &str, parameters: &[&str], text: &str| {
        let error = scope().define("known", &[], "1").unwrap().define(name, parameters, text).unwrap_err();
        format!("{}: {} at {}", error.code, error.message, error.span.start)
    };
    for (name, parameters, text, expected) in [
        ("f", &["x"][..], "x + y", "E0505: there is no `y` here at 4"),
        ("f", &[], "1 + f", "E0505: there is no `f` here at 4"),
        ("f", &["x"], "f(x)", "E0505: there is no function `f` at 0"),
        ("f", &["x", "x"], "x", "E0505: the parameter `x` stands twice at 0"),
        ("f", &["in"], "1", "E0505: `in` cannot be the name of a parameter at 0"),
        ("a-b", &[], "1", "E0505: `a-b` cannot be the name of a definition at 0"),
        ("let", &[], "1", "E0505: `let` cannot be the name of a definition at 0"),
        ("size", &[], "1", "E0505: `size` has a meaning already at 0"),
        ("has", &[], "1", "E0505: `has` has a meaning already at 0"),
        ("state", &[], "1", "E0505: `state` has a meaning already at 0"),
        ("LIMIT", &[], "1", "E0505: `LIMIT` has a meaning already at 0"),
        ("known", &[], "1", "E0505: `known` has a meaning already at 0"),
        ("f", &[], "1 +", "E0501: expected a value, found the end at 3"),
        ("f", &[], "1 + \"a\"", "E0502: `+` does not take an int and a string at 0"),
    ] {
        assert_eq!(define(name, parameters, text), expected);
    }
    // Definitions in definitions are one tree for the limit on nesting.
    let mut scope = scope().define("f0", &["x"], "[x]").unwrap();
    let deep = (1..200).find(|n| {
        let text = format!("[f{}(x)]", n - 1);
        match std::mem::take(&mut scope).define(&format!("f{n}"), &["x"], &text) {
            Ok(next) => scope = next,
            Err(error) => assert_eq!(error.code, "E0508"),
        }
        scope.definitions.is_empty()
    });
    assert_eq!(deep, Some(32));
}

#[test]
fn literals_have_the_precision_of_the_field_they_are_compared_with() {
    let scope = scope()
        .precision(&"/price".parse().unwrap(), 2)
        .precision(&"/orders/*/price".parse().unwrap(), 2)
        .precision(&"/count".parse().unwrap(), 0)
        .root_of_state("before")
        .constant("EIGHTH", Value::from(0.125))
        .constant("EIGHTHS", Value::array([Value::from(1u64), Value::from(0.125)]))
        .define("price", &[], "state.price")
        .unwrap();
    let check = |text: &str| match Expr::parse(text, &scope) {
        Ok(_) => String::new(),
        Err(error) => format!("{} {}..{}", error.hint.unwrap(), error.span.start, error.span.end),
    };
    for (text, expected) in [
        ("state.price > 1.25", ""),
        ("state.price > 1.255", "write 1.25 14..19"),
        ("-1.001 <= state.price", "write -1.0 0..6"),
        ("state.count == 0.5", "write 0.0 15..18"),
        ("state.count == 3", ""),
        ("state.orders[3].price == 0.001", "write 0.0 25..30"),
        ("state.orders[state.n].price == 0.001", "write 0.0 31..36"),
        ("state.price in [1.5, 1.555]", "write 1.55 21..26"),
        ("price != 0.125", "write 0.12 9..14"),
        ("(state.ok ? price : state.price) == 0.125", "write 0.12 36..41"),
        ("(state.ok ? price : state.count) == 0.125", "write 0.12 36..41"),
        ("(state.ok ? price : state.other) == 0.125", ""),
        ("state.price <= EIGHTH", "give EIGHTH 2 decimals 15..21"),
        ("state.price in EIGHTHS", "give EIGHTHS 2 decimals 15..22"),
        ("state.price <= EIGHTH * 2", ""),
        ("[state.price].all(v, v <= 0.125)", "write 0.12 26..31"),
        ("[state.price, state.count].exists(v, v > 0.125)", "write 0.12 41..46"),
        ("[state.price, state.other].exists(v, v > 0.125)", ""),
        ("0.125 in [state.price]", "write 0.12 0..5"),
        ("max(state.price, 0.125) == 1", "write 0.12 17..22"),
        ("max(state.other, 0.125) == 1", ""),
        ("max(state.price, 1.5) == 0.125", "write 0.12 25..30"),
        ("0.125 < min(1, state.count, state.price)", "write 0.12 0..5"),
        ("max(state.price, EIGHTHS[0]) == 0.125", ""),
        ("max(state.price, LIMIT) == 0.125", "write 0.12 27..32"),
        ("max(state.price, state.other) == 0.125", ""),
        ("max(state.price, state.n + 1) == 0.125", ""),
        ("max(1, 2) < 0.125", ""),
        ("abs(max(-price, 1)) in [0.125]", "write 0.12 24..29"),
        ("abs(state.orders[0].price) == 0.125", "write 0.12 30..35"),
        ("abs(state.price - 1) == 0.125", ""),
        ("double(state.price) >= 0.125", "write 0.12 23..28"),
        ("double(state.price) / 3.0 >= 0.125", ""),
        ("-state.price == 0.125", "write 0.12 16..21"),
        ("before.price > 1.255", "write 1.25 15..20"),
        ("[before.price, state.price].all(v, v <= 0.125)", "write 0.12 40..45"),
        ("max(before.orders.o1.price, 0) > 0.125", "write 0.12 33..38"),
        ("t.price > 1.255", ""),
        ("state.price * 2 > 0.125", ""),
        ("state.orders.price > 0.125", ""),
        ("state.other > 0.125", ""),
    ] {
        assert_eq!(check(text), expected, "{text}");
    }
}

/// A budget that is watched takes the long way, so that both ways stand side by side.
#[test]
fn the_short_way_of_a_comparison_gives_and_costs_what_the_long_way_does() {
    let mut state = state();
    let long = "x".repeat(40);
    if let Value::Object(object) = &mut state {
        // A change makes it a trie; below, the slices that the parser made.
        object.set("long", Value::from(&*long));
        object.set("other", Value::from(format!("{}y", &long[1..])));
    }
    let scope = scope().constant("LONG", Value::from(&*long)).constant("BIG", read("9007199254740993"));
    let fields = [
        "a",
        "f",
        "big",
        "huge",
        "max",
        "ok",
        "nul",
        "s",
        "long",
        "other",
        "b",
        "b.c",
        "b.d",
        "b.c.d",
        "b.list[0]",
        "b.list[state.a]",
        "empty",
        "secret",
        "secret.kind",
        "gap.x",
        "nan",
        "missing",
        "counters.tool_errors",
        "counters.x",
    ];
    let texts = ["\"text\"", "\"hello\"", "\"\"", "LONG", "KINDS", "null", "true"].map(str::to_owned);
    let numbers =
        ["1", "-1", "0.5", "1e300", "9007199254740991", "9007199254740993", "LIMIT", "BIG", "1 + 1"];
    let others: Vec<String> = texts
        .into_iter()
        .chain(numbers.map(str::to_owned))
        .chain(["state.a".to_owned(), "state.s".to_owned()])
        .collect();
    let counters = counters();
    let mut short = 0;
    for field in fields {
        for (other, operator) in
            others.iter().flat_map(|other| ["==", "!=", "<", "<=", ">", ">="].map(|o| (other, o)))
        {
            for text in [
                format!("state.{field} {operator} {other}"),
                format!("state.ok && state.{field} {operator} {other}"),
                format!("[state.{field}].all(x, x {operator} {other})"),
            ] {
                let Ok(expr) = Expr::parse(&text, &scope) else { continue };
                let asked = |counters, budget: Budget| {
                    let mut budget = budget;
                    let env = Env { state: &state, counters, others: &[] };
                    (expr.holds(&env, &mut budget), budget.left())
                };
                for (counters, steps) in
                    [None, Some(&counters)].into_iter().flat_map(|c| (0..40).map(move |n| (c, n)))
                {
                    let ours = asked(counters, Budget::new(steps));
                    assert_eq!(
                        ours,
                        asked(counters, Budget::new(steps).watching()),
                        "{text} in {steps} steps"
                    );
                    short += u64::from(matches!(ours.0, Truth::True | Truth::False));
                }
            }
        }
    }
    assert!(short > 10_000, "too few comparisons were decided: {short}");
}

#[test]
fn all_errors_of_a_text_are_told_where_reading_can_go_on() {
    let problems = |text: &str| {
        let all = Expr::problems(text, &scope().fields(["total"]));
        all.iter().map(|error| format!("{} {}", error.code, error.span.start)).collect::<Vec<_>>().join(", ")
    };
    for (text, expected) in [
        ("state.total > 1", ""),
        ("state.totl > LIMT && (1 + \"a\") == foo(bar)", "E0505 5, E0505 13, E0505 34, E0502 22"),
        ("stat.a > 1 && state.b >", "E0505 0, E0505 19, E0501 23"),
        ("size() > 1 && !1", "E0502 0, E0502 15"),
        ("x + {1: 2}", "E0505 0, E0506 5"),
    ] {
        assert_eq!(problems(text), expected, "{text}");
    }
}

#[test]
fn the_canonical_text_has_one_form() {
    for (text, expected) in [
        ("state.a==1 and not(state.b) or  true", "state.a == 1 && !state.b || true"),
        ("((state[\"a\"]) + (state[\"x y\"]))", "state.a + state[\"x y\"]"),
        ("state.`x-y`", "state[\"x-y\"]"),
        ("(a and b) and (c and d)", "a && b && c && d"),
        ("(a || b) && c", "(a || b) && c"),
        ("a || (b && c)", "a || b && c"),
        ("(1 + 2) - 3", "1 + 2 - 3"),
        ("1 + (2 - 3)", "1 + (2 - 3)"),
        ("(1 * 2) + 3", "1 * 2 + 3"),
        ("1 * (2 + 3)", "1 * (2 + 3)"),
        ("-(a + b)", "-(a + b)"),
        ("- - a", "--a"),
        ("-(5)", "-5"),
        ("-(-9223372036854775808)", "-(-9223372036854775808)"),
        ("!(!a)", "!!a"),
        ("a ? b : (c ? d : e)", "a ? b : c ? d : e"),
        ("(a ? b : c) ? d : e", "(a ? b : c) ? d : e"),
        ("(a < b) == c", "a < b == c"),
        ("a < (b == c)", "a < (b == c)"),
        ("'it''s'", ""),
        ("'\"' + \"\\x01\\t\\u00e9\"", "\"\\\"\" + \"\\u0001\\t\u{e9}\""),
        ("1e2 + .5 + 1e300 + 100000000000000000000.0", "100.0 + 0.5 + 1e+300 + 100000000000000000000.0"),
        ("0x1F", "31"),
        ("a.size()", "size(a)"),
        ("(a + b).startsWith('x')", "(a + b).startsWith(\"x\")"),
        ("{ 'k' : [1,2 , ] }", "{\"k\": [1, 2]}"),
        ("has( a.b [ 'c' ] )", "has(a.b.c)"),
        ("state.and.or.not", "state.and.or.not"),
        ("state['in']", "state[\"in\"]"),
        ("a // why\n + b", "a + b"),
    ] {
        let scope = ["a", "b", "c", "d", "e"].into_iter().fold(Scope::new(), Scope::root);
        let Ok(expr) = Expr::parse(text, &scope) else {
            assert_eq!(expected, "", "{text}");
            continue;
        };
        assert_eq!(expr.canonical(), expected, "{text}");
        assert_eq!(expr.text(), text);
        assert_eq!(Expr::parse(expected, &scope).unwrap().canonical(), expected, "{expected}");
    }
}

#[test]
fn errors_are_drawn_with_a_caret() {
    let text = "state.ok &&\n  stat.b > 1";
    let error = Expr::parse(text, &Scope::new()).unwrap_err();
    assert_eq!(
        error.render(text),
        "error[E0505]: there is no `stat` here\n    stat.b > 1\n    ^^^^\nhelp: did you mean state"
    );
    let text = "\u{e9}\u{e9}";
    let error = Expr::parse(text, &Scope::new()).unwrap_err();
    assert_eq!(
        error.render(text),
        "error[E0501]: the name `\u{e9}\u{e9}` is no identifier\n  \u{e9}\u{e9}\n  ^^\nhelp: write state[\"\u{e9}\u{e9}\"]"
    );
    let text = "state.total > 1";
    let expr = Expr::parse(text, &Scope::new()).unwrap();
    let Truth::Uncertain(why) = expr.holds(&Env::of(&Value::object()), &mut Budget::default()) else {
        panic!("nothing is there");
    };
    assert_eq!(
        why.render(text),
        "uncertain: state.total is missing\n  state.total > 1\n  ^^^^^^^^^^^\nhelp: guard it: has(state.total) && ..."
    );
}

#[test]
fn steps_are_counted_by_text_and_content_alone() {
    let steps = |text: &str, state: &Value| {
        let mut budget = Budget::default();
        let before = budget.left();
        let _ = Expr::parse(text, &scope()).unwrap().evaluate(&Env::of(state), &mut budget);
        before - budget.left()
    };
    let long = format!("\"{}\" == \"{}\"", "x".repeat(320), "y".repeat(320));
    for (text, expected) in [
        ("1", 1),
        ("state.a", 2),
        ("state.b.c", 3),
        ("state.a == 1", 4),
        ("state.a > 1 && state.n > 2", 5),
        ("state.a >= 1 && state.n > 2", 9),
        ("1 + 2 + 3 + 4", 5),
        ("[1, 2, 3]", 1),
        ("[1, 2, state.a]", 5 + 8 + (8 + 3)),
        ("3 in [1, 2, 3]", 6),
        ("1 in [1, 2, 3]", 4),
        ("state.b.list == [1, 2.5]", 5),
        (&long, 3 + 20),
    ] {
        assert_eq!(steps(text, &state()), expected, "{text}");
    }
    // The same content as one slice, as a trie, and shared between both sides.
    let slice = read(r#"{"x":{"a":1,"b":[1,2]},"y":{"a":1,"b":[1,2]}}"#);
    let mut trie = slice.as_object().unwrap().clone();
    trie.set("y", trie.get("x").unwrap().clone());
    assert_eq!(steps("state.x == state.y", &slice), steps("state.x == state.y", &Value::Object(trie)));
}

#[test]
fn a_name_that_is_no_identifier_is_written_as_an_index() {
    for (text, place, hint) in [
        (
            "state.\u{30db}\u{30c6}\u{30eb} == 1",
            "\u{30db}\u{30c6}\u{30eb}",
            "state[\"\u{30db}\u{30c6}\u{30eb}\"]",
        ),
        ("state.a.caf\u{e9} == 1", "caf\u{e9}", "state.a[\"caf\u{e9}\"]"),
        ("\u{e9}tat > 1", "\u{e9}tat", "state[\"\u{e9}tat\"]"),
        ("state.3d > 1", "3d", "state[\"3d\"]"),
        ("1 < state.order-id", "id", "state[\"order-id\"]"),
    ] {
        let error = Expr::parse(text, &Scope::new()).unwrap_err();
        let span = error.span.start as usize..error.span.end as usize;
        assert_eq!((&*error.text, &text[span]), (text, place));
        assert_eq!(error.hint, Some(format!("write {hint}")), "{text}");
    }
}

#[test]
fn a_definition_may_be_called_trim() {
    let scope = Scope::new().define("trim", &["text"], "text + '!'").unwrap();
    let expr = Expr::parse("trim(' a ')", &scope).unwrap();
    let state = Value::object();
    assert_eq!(expr.evaluate(&Env::of(&state), &mut Budget::default()), Ok(Value::from(" a !")));
    assert!(Scope::new().define("lower", &["text"], "text").is_err());
}
