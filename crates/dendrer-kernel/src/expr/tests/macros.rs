//! Comprehensions, bindings and patterns.

use super::*;

#[test]
fn macros_take_lists_and_maps_member_by_member() {
    check(&[
        ("[1, 2, 3].all(x, x > 0)", "true"),
        ("[1, 2, 3].exists(x, x > 2)", "true"),
        ("[1, 2, 3].exists_one(x, x > 1)", "false"),
        ("[1, 2, 3].existsOne(x, x > 2)", "true"),
        ("[].all(x, x > 0) && ![].exists(x, x > 0)", "true"),
        ("[1, 2, 3].map(x, x * state.n)", "[3,6,9]"),
        ("[1, 2, 3].map(x, x > 1, x * 10)", "[20,30]"),
        ("[1, 2, 3].filter(x, x != 2)", "[1,3]"),
        ("state.b.list.filter(x, x == 2.5 || x == \"x\")", "[2.5,\"x\"]"),
        ("state.b.all(k, size(k) > 0)", "true"),
        ("state.b.map(k, k)", "[\"c\",\"d\",\"list\"]"),
        ("state.b.filter(k, k < \"d\")", "[\"c\"]"),
        ("{\"$k\": 1, \"b\": 2}.map(k, k)", "[\"$k\",\"b\"]"),
        ("[5, 6].all(i, x, x == i + 5)", "true"),
        ("state.b.exists(k, v, k == \"c\" && v == \"text\")", "true"),
        ("{\"a\": 1, \"b\": 1}.existsOne(k, v, v == 1)", "false"),
        ("[5, 6].transformList(i, x, i * x)", "[0,6]"),
        ("[5, 6].transformList(i, x, i > 0, x)", "[6]"),
        ("{\"a\": 1, \"b\": 2}.transformList(k, v, k + string(v))", "[\"a1\",\"b2\"]"),
        ("{\"a\": 1, \"$b\": 2}.transformMap(k, v, v + 1)", "{\"$$b\":3,\"a\":2}"),
        ("{\"a\": 1, \"b\": 2}.transformMap(k, v, v > 1, v)", "{\"b\":2}"),
        ("[\"x\", \"y\"].transformMapEntry(i, v, {v: i})", "{\"x\":0,\"y\":1}"),
        ("{\"a\": \"x\"}.transformMapEntry(k, v, {v: k})", "{\"x\":\"a\"}"),
        ("[[1, 2], [3]].map(x, x.map(x, x + 1))", "[[2,3],[4]]"),
        ("[1, 2].all(x, [1, 2].exists(y, y == x))", "true"),
        ("[1, 2].map(x, [x, x]).map(p, p[0] + p[1])", "[2,4]"),
        ("cel.bind(x, state.n, x * x)", "9"),
        ("cel.bind(x, 1, cel.bind(x, x + 1, x + 1))", "3"),
        ("cel.bind(x, 4, x / 2) + cel.bind(y, 5.0, 1)", "3"),
        ("cel.bind(state, {\"a\": 5}, state.a)", "5"),
        ("[1, 2].map(LIMIT, LIMIT)", "[1,2]"),
        (
            "state.b.list.filter(x, has(x.k))",
            "state.b.list[0]: x is a number and has no members, where x is state.b.list[0]",
        ),
        ("[7].exists(x, cel.bind(y, x, y == 7))", "true"),
        ("[1, 2, 3, 4].map(n, n / 2)", "[0,1,1,2]"),
    ]);
}

#[test]
fn macros_absorb_errors_as_chains_do_and_say_which_member_it_was() {
    check(&[
        ("[1, \"a\"].exists(x, x > 0)", "true"),
        ("[\"a\", 1].exists(x, x > 0)", "true"),
        ("[\"a\", 1].all(x, x > 1)", "false"),
        ("[\"a\", 1].all(x, x > 0)", "x: x is a string, and `>` takes a number beside a number"),
        ("[1, \"a\"].exists_one(x, x > 0)", "x: x is a string, and `>` takes a number beside a number"),
        ("[1, \"a\"].filter(x, x > 0)", "x: x is a string, and `>` takes a number beside a number"),
        (
            "state.b.list.all(x, x > 0)",
            "state.b.list[2]: x is a string, and `>` takes a number beside a number, where x is state.b.list[2]",
        ),
        ("state.b.all(k, v, v.x)", "state.b.c: v is a string and has no members, where v is state.b.c"),
        ("t.args.map(x, x.y)", "t.args[0]: x is a number and has no members, where x is t.args[0]"),
        ("state.a.all(x, true)", "state.a: state.a is a number, and `all` takes a list or a map"),
        ("state.secret.map(x, x)", "state.secret: state.secret is redacted"),
        (
            "state.nan.map(x, x)",
            "state.nan: state.nan is a number that is not finite, and `map` takes a list or a map",
        ),
        ("[state.n].filter(x, x)", "x: x is a number, and `filter` takes a boolean"),
        ("t.args.transformMap(i, x, x)", "t.args: the names of a map are strings, and a list has indexes"),
        ("[1, 1].transformMapEntry(i, x, {string(x): i})", "-: the key \"1\" stands twice in one map"),
        (
            "[1].transformMapEntry(i, x, state.b.list[0])",
            "state.b.list[0]: state.b.list[0] is a number, and `transformMapEntry` takes a map",
        ),
        ("cel.bind(x, state.zzz, true)", "state.zzz: state.zzz is missing"),
    ]);
    let nested = read(r#"{"orders":[{"items":[{"price":1},{"price":null}]}]}"#);
    let expr = Expr::parse("state.orders.all(o, o.items.all(i, i.price > 0))", &scope()).unwrap();
    let Truth::Uncertain(why) = expr.holds(&Env::of(&nested), &mut Budget::default()) else { panic!("null") };
    assert_eq!(why.path.as_deref(), Some("state.orders[0].items[1].price"));
    assert_eq!(
        why.message,
        "i.price is null, and `>` takes numbers, strings or booleans, where i is o.items[1], where o is state.orders[0]"
    );
    assert_eq!(why.hint.as_deref(), Some("guard it: i.price != null && ..."));
}

#[test]
fn macros_are_checked_before_there_is_a_state() {
    check(&[
        ("state.l.all(x)", "E0501: expected `,`, found `)`"),
        ("state.l.all()", "E0501: expected the name of a variable, found `)`"),
        ("state.l.all(1, true)", "E0501: expected the name of a variable, found a number"),
        ("state.l.all(x.y, true)", "E0501: expected `,`, found `.`"),
        ("state.l.map(x, x, x, 1)", "E0501: expected `)`, found `,`"),
        ("state.l.transformList(x, 1)", "E0501: expected the name of a variable, found a number"),
        ("state.l.all(x, x, true)", "E0505: the variable `x` stands twice"),
        ("state.l.all(x, 1)", "E0502: `all` does not take an int"),
        ("state.l.map(x, 1, x)", "E0502: `map` does not take an int"),
        ("1.0.all(x, true)", "E0502: `all` does not take a double"),
        ("\"abc\".all(x, true)", "E0502: `all` does not take a string"),
        ("state.l.all(x, true).all(y, true)", "E0502: `all` does not take a boolean"),
        ("state.l.map(x, x) + 1", "E0502: `+` does not take a list and an int"),
        ("state.m.all(k, true) && k", "E0505: there is no `k` here"),
        ("[1].transformMapEntry(i, x, 1)", "E0502: `transformMapEntry` does not take an int"),
        ("cel.bind(x, 1)", "E0501: expected `,`, found `)`"),
        ("cel.block([1], 2)", "E0506: the library `cel` is not supported"),
        ("state.l.alll(x, x > 1)", "E0505: there is no function `alll`"),
        ("all(state.l, 1)", "E0505: there is no function `all`"),
        ("state.n.map(x, x / 2)", "E0507: `/` on a value from data could drop the fraction or keep it"),
        ("[1.5].map(x, x / 2.0)", "E0507: `/` on a value from data could drop the fraction or keep it"),
        ("state.s.matches(\"(\")", "E0501: this is no pattern: found open group without closing ')'"),
        (
            "state.s.matches(\"(a{1000}){1000}\")",
            "E0508: the pattern repeats too much: it weighs more than 2000",
        ),
        ("matches(1, \"a\")", "E0502: `matches` does not take an int"),
    ]);
    let hint = |text: &str| Expr::parse(text, &scope()).unwrap_err().hint.unwrap_or_default();
    assert_eq!(hint("state.l.all(x)"), "write a.all(x, condition)");
    assert_eq!(hint("state.l.alll(x, x > y)"), "did you mean all");
    assert_eq!(hint("all(state.l, 1)"), "write a.all(x, condition)");
    assert_eq!(hint("state.l.filter(call, cal.ok)"), "did you mean call");
}

#[test]
fn patterns_match_anywhere_in_ascii_classes() {
    check(&[
        ("state.s.matches(\"l+o$\")", "true"),
        ("matches(state.s, r\"^\\w{5}$\")", "true"),
        ("\"\u{e9}\".matches(r\"^\\w$\")", "false"),
        ("\"\u{e9}\".matches(\"^.$\")", "true"),
        ("state.a.matches(\"a\")", "state.a: state.a is a number, and `matches` takes a string"),
        ("KINDS.exists(k, k.matches(\"[b-c]\"))", "true"),
    ]);
}

#[test]
fn read_sets_go_through_macros_bindings_and_definitions() {
    let scope = scope()
        .define("calls", &[], "state.calls.filter(c, c.ok)")
        .and_then(|scope| scope.define("big", &["x"], "x > state.limit && x > t.min"))
        .unwrap();
    let reads = |text: &str| {
        let expr = Expr::parse(text, &scope).unwrap();
        let mut all: Vec<String> = expr.read_set().iter().map(|place| place.as_str().to_owned()).collect();
        all.extend(expr.reads_counters().then(|| "counters".to_owned()));
        for root in expr.roots() {
            all.extend(expr.reads_of(root).iter().map(|place| format!("{root}{place}")));
        }
        all.join(", ")
    };
    for (text, expected) in [
        ("state.calls.all(c, c.ok && c.tick > state.min)", "/calls, /min"),
        ("calls.all(c, big(c.n))", "/calls, /limit, t/min"),
        ("cel.bind(x, state.a.b, x.c + state.d)", "/a/b, /d"),
        ("state.a.map(x, state.b, x)", "/a, /b"),
        ("t.calls[0].x.exists(x, x == source.y)", "source/y, t/calls"),
        ("state.all(k, v, v != null)", ", counters"),
        ("merge(state.a, {\"x\": state.b.c}).x.matches(\"a\")", "/a, /b/c"),
    ] {
        assert_eq!(reads(text), expected, "{text}");
    }
}

#[test]
fn macros_and_definitions_have_one_canonical_form() {
    let scope = scope().define("f", &["x", "y"], "x").and_then(|scope| scope.define("g", &[], "1")).unwrap();
    for (text, expected) in [
        ("state.l.all( x , x>1 )", "state.l.all(x, x > 1)"),
        ("state.l.existsOne(x, true)", "state.l.exists_one(x, true)"),
        ("state.l.existsOne(i, x, true)", "state.l.existsOne(i, x, true)"),
        ("(state.a + state.l).map(x, x>1, [x])[0]", "(state.a + state.l).map(x, x > 1, [x])[0]"),
        ("cel.bind( x,1,(x))", "cel.bind(x, 1, x)"),
        ("matches(state.s,'a')", "state.s.matches(\"a\")"),
        ("f( 1,g ) + g", "f(1, g) + g"),
        ("state.m.transformMap(k,v,v>1,v)", "state.m.transformMap(k, v, v > 1, v)"),
    ] {
        let expr = Expr::parse(text, &scope).unwrap();
        assert_eq!(expr.canonical(), expected, "{text}");
        assert_eq!(Expr::parse(expected, &scope).unwrap().canonical(), expected, "{expected}");
    }
}

#[test]
fn precision_is_known_through_variables() {
    let scope =
        scope().precision(&"/orders/*/price".parse().unwrap(), 2).precision(&"/rates/*".parse().unwrap(), 3);
    for (text, refused) in [
        ("state.orders.all(o, o.price > 1.255)", true),
        ("state.orders.all(o, o.price > 1.25)", false),
        ("state.orders.filter(o, o.ok).exists(i, o, o.price in [0.001])", true),
        ("values(state.orders).all(o, o.price > 1.255)", true),
        ("slice(sort(state.rates), 0, 2).all(r, r < 0.0001)", true),
        ("max(state.rates) < 0.0001", true),
        ("cel.bind(o, state.orders[0], o.price == 1.255)", true),
        ("state.orders.all(o, o.prise > 1.255)", false),
        ("state.orders.map(o, o.price)[0] > 1.255", false),
    ] {
        assert_eq!(Expr::parse(text, &scope).is_err(), refused, "{text}");
    }
}

#[test]
fn steps_of_macros_count_their_members() {
    let steps = |text: &str| {
        let mut budget = Budget::default();
        let _ = Expr::parse(text, &scope()).unwrap().holds(&Env::of(&state()), &mut budget);
        STEPS_MAX - budget.left()
    };
    for (text, expected) in [
        ("[1, 2].all(x, true)", 2 + 2 * 2),
        ("[1, 2].exists(x, true)", 2 + 2),
        ("state.b.all(k, true)", 1 + 2 + 3 + 3 * 2),
        ("cel.bind(x, 1, x)", 1 + 1 + 1),
        ("state.s.matches(\"ab\")", 1 + 2 + 6 * 3 / 8),
    ] {
        assert_eq!(steps(text), expected, "{text}");
    }
}
