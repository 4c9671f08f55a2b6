use dendrer_object::Code;
use dendrer_object::json::parse_door;

use super::*;
use crate::cases;
use crate::predicate::Verdict;

fn json(text: &str) -> Value {
    parse_door(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A whole pack, of which each test changes a part.
const WHOLE: &str = r#"{
    "name": "test.orders", "version": "v1", "words": "Orders.", "goal": "ship it",
    "constants": {"limit": 100, "open": "open"},
    "define": {
        "over(order)": "total(order) > limit",
        "total(order)": "order.items[0].price + order.items[1].price",
        "paying": "t.type == 'execute_payment'",
        "region": "has(meta.region) ? meta.region : 'EU'"
    },
    "state": {
        "orders": {"init": "s0.orders", "words": "by id"},
        "spent": {"init": 0, "decimals": 2},
        "region": {"init": "region"}
    },
    "types": {"execute_payment": "money moves"},
    "tools": {"pay": {"effect": "effectful"}, "look": {"effect": "read", "words": "looks"}},
    "rules": [{"words": "a payment", "when_type": "execute_payment", "when": "paying", "steps": [
        {"set": "orders[t.action.params.id].status", "value": "'paid'"},
        {"add": "spent", "value": "total(state.orders[t.action.params.id])"}]}],
    "predicates": {
        "within_limit": {"words": "never over", "holds": "state.spent <= 100.25"},
        "orders.big": {"condition": "over(state.orders.o1)", "window": "before"}
    },
    "tests": [{"name": "a payment", "s0": {"orders": {"o1": {"status": "open", "items": [{"price": 3.5}, {"price": 1}]}}}, "then": [
        {"state": {"spent": 0, "region": "EU"}, "predicates": {"within_limit": "ok"}},
        {"t": {"type": "execute_payment", "action": {"params": {"id": "o1"}}},
         "state": {"spent": 4.5, "orders": {"o1": {"status": "paid"}}}, "holds": ["size(state.orders) == 1"]},
        {"t": {"type": "execute_payment", "action": {"params": {}}}, "error": "params.id is missing", "state": {"spent": 4.5}}]}]
}"#;

fn whole() -> Pack {
    Pack::read(&json(WHOLE)).unwrap_or_else(|faults| panic!("{faults:#?}"))
}

/// Puts a member in place of another and returns the faults.
fn faults(place: &str, value: &str) -> Vec<String> {
    let path: Pointer = place.parse().unwrap();
    let op = dendrer_object::delta::Op::set(path, json(value));
    let changed = dendrer_object::Delta(vec![op]).apply(&json(WHOLE)).unwrap();
    match Pack::read(&changed) {
        Ok(_) => Vec::new(),
        Err(faults) => faults
            .iter()
            .map(|fault| {
                let hint = fault.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
                let span = fault.span.map(|span| format!(" @{}", span.start)).unwrap_or_default();
                format!("{} {fault}{span}{hint}", fault.code)
            })
            .collect(),
    }
}

fn check(place: &str, value: &str, expected: &str) {
    assert_eq!(faults(place, value).join("\n"), expected, "{place} = {value}");
}

#[test]
fn a_whole_pack_is_read() {
    let pack = whole();
    assert_eq!(
        (&*pack.name, &*pack.version, pack.engine, pack.rules()),
        ("test.orders", "v1", PackEngine::Fold, 1)
    );
    assert_eq!(pack.named, ["limit", "open", "over(order)", "paying", "region", "total(order)"]);
    assert_eq!(
        pack.fields.iter().map(|field| (&*field.name, &field.written_by[..])).collect::<Vec<_>>(),
        [("orders", &[1][..]), ("region", &[]), ("spent", &[1]),]
    );
    assert_eq!(pack.rules_read().iter().map(Pointer::as_str).collect::<Vec<_>>(), ["/orders"]);
    assert_eq!(
        pack.predicates.iter().map(|d| d.predicate.name()).collect::<Vec<_>>(),
        ["orders.big", "within_limit"]
    );
    assert_eq!(pack.reducer().name(), "fold/1");
    assert_eq!((pack.words.as_deref(), pack.goal.as_deref()), (Some("Orders."), Some("ship it")));
    let types: Vec<_> = pack.types.iter().map(|(name, words)| (name.as_str(), words.as_deref())).collect();
    assert_eq!(types, [("execute_payment", Some("money moves"))]);
    let tools: Vec<_> =
        pack.tools.iter().map(|tool| (&*tool.name, tool.class(), tool.words.as_deref())).collect();
    assert_eq!(tools, [("look", Effect::Read, Some("looks")), ("pay", Effect::Effectful, None)]);
    let fields: Vec<_> =
        pack.fields.iter().map(|field| (&*field.name, field.decimals, field.words.as_deref())).collect();
    assert_eq!(fields, [("orders", None, Some("by id")), ("region", None, None), ("spent", Some(2), None)]);
    let predicates: Vec<_> =
        pack.predicates.iter().map(|one| (one.predicate.words(), one.predicate.window())).collect();
    assert_eq!(
        predicates,
        [
            ("violated when over(state.orders.o1)".to_owned(), crate::predicate::Window::Before),
            ("must hold state.spent <= 100.25".to_owned(), crate::predicate::Window::After)
        ]
    );
    assert_eq!((pack.cases.len(), pack.contracts.types.len()), (1, 0));
    let contracts = r#"{"execute_payment": {"words": "pays", "required_state": {"spent": {"type": "number", "precision": 2}, "region": {"type": "string", "nullable": true}}, "hash_seeds": ["spent"], "advisory": ["region"]}}"#;
    let mut members = json(WHOLE).as_object().cloned().unwrap();
    members.set("contracts", json(contracts));
    members.set(
        "violations",
        json(r#"[{"id": "over", "condition": "state.spent > 100.25", "bisect_predicate": "monotone_lift"}]"#),
    );
    let pack = Pack::read(&Value::Object(members)).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let contract = &pack.contracts.types["execute_payment"];
    let state = |text: &str| contract.check(&json(text)).len();
    assert_eq!(state(r#"{"spent":1,"region":null}"#), 0);
    assert_eq!(state(r#"{"spent":"x"}"#), 2, "one of another kind, and one that is not there");
    assert_eq!((&*pack.contracts.name, &*pack.contracts.version), ("test.orders", "v1"));
    assert!(pack.predicates.iter().any(|one| one.is_violation && one.predicate.name() == "over"));
}

#[test]
fn the_digest_follows_the_meaning_and_not_the_layout() {
    let pack = whole();
    assert_eq!(pack.digest(), digest(&json(WHOLE)));
    assert_eq!(digest(&json(r#"{"b": 1, "a": [2]}"#)), digest(&json(r#"{"a":[2],"b":1}"#)));
    assert_ne!(digest(&json(r#"{"a":[2],"b":1}"#)), digest(&json(r#"{"a":[2],"b":2}"#)));
    // The meaning of a predicate depends on the whole pack, so its digest does.
    let other = Pack::read(&json(&WHOLE.replace("\"limit\": 100", "\"limit\": 99"))).unwrap();
    assert_ne!(
        pack.predicate("orders.big").unwrap().digest(),
        other.predicate("orders.big").unwrap().digest()
    );
}

#[test]
fn the_initial_state_comes_from_what_was_given() {
    let pack = whole();
    let init = |s0: &str, meta: Option<&str>| {
        let origin = Origin { s0: Some(json(s0)), meta: meta.map(json), inputs: None };
        pack.init(&origin).map_or_else(|error| error.to_string(), |state| state.to_string())
    };
    assert_eq!(init(r#"{"orders":{},"other":1}"#, None), r#"{"orders":{},"region":"EU","spent":0}"#);
    assert_eq!(
        init(r#"{"orders":{}}"#, Some(r#"{"region":"US"}"#)),
        r#"{"orders":{},"region":"US","spent":0}"#
    );
    assert_eq!(init("{}", None), "state.orders cannot begin: s0.orders is missing");
}

#[test]
fn tests_of_a_pack_say_what_came_out_otherwise() {
    let pack = whole();
    assert_eq!(cases::run(&pack, &pack.cases[0]).failed, []);
    let changed = WHOLE
        .replace(r#""spent": 4.5, "orders""#, r#""spent": 5, "nope": 1, "orders""#)
        .replace("size(state.orders) == 1", "size(state.orders) == 2")
        .replace(r#""within_limit": "ok""#, r#""within_limit": "violation""#)
        .replace("params.id is missing", "something else");
    let pack = Pack::read(&json(&changed)).unwrap();
    let found: Vec<String> = cases::run(&pack, &pack.cases[0])
        .failed
        .iter()
        .map(|failed| format!("{} {}", failed.path, failed.message))
        .collect();
    assert_eq!(
        found,
        [
            "/tests/0/then/0/predicates/within_limit within_limit: expected violation, found ok",
            "/tests/0/then/1 state.nope is not there, expected 1",
            "/tests/0/then/1 state.spent is 4.5, expected 5",
            "/tests/0/then/1/holds/0 does not hold: size(state.orders) == 2",
            "/tests/0/then/2 expected an error with \"something else\", found: rule 1 \"a payment\", step 1: t.action.params.id is missing",
        ]
    );
}

#[test]
fn a_version_is_a_plain_word() {
    let read = |version: &str| {
        Pack::read(&Value::record([("name", Value::from("a")), ("version", Value::from(version))]))
    };
    for good in ["v1", "1.10", "2026-11-22", "~^+!"] {
        assert_eq!(&*read(good).unwrap().version, good);
    }
    for bad in ["v 1", "v1\n", "1\u{1b}[31m", "v\u{202e}1", "ä", &"x".repeat(129)] {
        assert_eq!(read(bad).unwrap_err()[0].code, "E0903", "{bad:?}");
    }
}

#[test]
fn all_faults_are_found_at_once() {
    let text = r#"{
        "name": "bad name", "verison": "v1", "constants": {"state": 1, "a b": 2},
        "define": {"f(x": "1", "g": "h", "h": "g", "i": "j.k", "limit": 3},
        "state": {"counters": {"init": 0}, "x": {}, "y": {"init": "state.x", "decimals": 20}},
        "types": {"Bad": null, "plan.update": "mine"},
        "tools": {"pay": {}, "look": {"effect": "maybe"}},
        "rules": [
            {"when_typ": "x", "steps": [{"sett": "x", "value": 1}, {"set": "z.q", "value": "nope"}, {"set": "x", "add": "x"}]},
            {"when_type": ["plan.updat"], "when": "1 + 1", "steps": [{"remove": "y"}, {"append": "y"}, 5]},
            {"steps": [{"each": {"as": "t"}, "steps": [{"each": {"as": "b", "in": "[1]"}, "steps": [{"each": {"as": "c", "in": "[1]"}, "steps": []}]}]}]}],
        "predicates": {"p": {"holds": "t.x", "condition": "true"}, "q": {"holds": "t.x"}, "kernel.z": {"holds": "true", "window": "during"}},
        "tests": [{"then": [{"t": {"tpye": 1}, "predicates": {"r": "good"}}]}]
    }"#;
    let found = Pack::read(&json(text)).unwrap_err();
    let lines: Vec<String> = found.iter().map(|fault| format!("{} {}", fault.code, fault)).collect();
    let expected = r###"E0902 verison: a pack has no member verison
E0903 name: this is not a name for a pack
E0902 a pack has a version
E0903 constants["a b"]: `a b` cannot be a name in expressions
E0903 constants.state: `state` has a meaning already
E0903 define["f(x"]: this is not a name with parameters
E0902 define.limit: a definition is an expression, written as text, not a number
E0903 state.counters: `counters` in the state is the kernel's
E0902 state.y.decimals: decimals is a number from 0 to 15, not 20
E0903 define.g: `g` needs itself, by way of `h`
E0903 define.h: `h` needs itself, by way of `g`
E0505 define.i: there is no `j` here
E0903 types.Bad: "Bad" is not a transition type: lower-case words of letters, digits and `_`, joined by dots, at most 128 characters
E0903 types["plan.update"]: plan.update is a type already, with its own rules
E0902 tools.look.effect: an effect is one of host, read, idempotent_write, effectful, not "maybe"
E0902 tools.pay: pay does not say what it does to the world
E0902 rules[0].when_typ: a rule has no member when_typ
E0902 rules[0].steps[0]: a step is exactly one of let, each, set, remove, append, add
E0505 rules[0].steps[1].value: there is no `nope` here
E0903 rules[0].steps[1].set: the pack declares no field z
E0902 rules[0].steps[2]: a step is exactly one of let, each, set, remove, append, add
E0903 rules[1].when_type[0]: there is no transition type plan.updat
E0502 rules[1].when: a condition is true or false, and this is an int
E0902 rules[1].steps[0].remove: a field with an `init` is always there
E0902 rules[1].steps[1]: a step with `append` has a value
E0902 rules[1].steps[2]: a step has named members, and this is a number
E0903 rules[2].steps[0].each.as: `t` has a meaning already
E0902 rules[2].steps[0].each: each does not say which list it goes through
E0904 rules[2].steps[0].steps[0].steps[0].each: each stands at most 2 deep
E0903 predicates["kernel.z"]: kernel.z is the kernel's
E0902 predicates["kernel.z"].window: a window is after or before, not "during"
E0902 predicates.p: a predicate has exactly one of holds, condition and module
E0505 predicates.q.holds: there is no `t` here
E0902 tests[0]: a test has a name
E0209 tests[0].then[0].t.tpye: an intent has no such member; did you mean "type"?
E0903 tests[0].then[0].predicates.r: the pack has no predicate r
E0902 tests[0].then[0].predicates.r: a verdict is one of ok, violation, uncertain, not "good""###;
    assert_eq!(lines.join("\n"), expected);
}

#[test]
fn faults_come_with_what_to_write_instead() {
    let cases = [
        ("/goals", "1"),
        ("/version", "1.10"),
        ("/reducer", "\"wasm/2\""),
        ("/reducer", r#"{"engine":"wasm/2","digest":"sha256:00"}"#),
        ("/predicates/within_limit/engine", "\"wasm/2\""),
        ("/predicates/within_limit/holds", "\"state.spent <= 100.255\""),
        ("/predicates/within_limit/holds", "\"paying\""),
        ("/predicates/within_limit/holds", "\"before.spent < 1\""),
        ("/rules/0/when", "\"meta.x == 1\""),
        ("/rules/0/when", "\"state.counters.errors > 0\""),
        ("/rules/0/steps/0/set", "\"state.orders\""),
        ("/rules/0/steps/0/set", "\"orders[t.action.params.nope +].status\""),
        ("/rules/0/steps/0/set", "\"order.x\""),
        ("/rules/0/steps/0/set", "\"orders[\""),
        ("/rules/0/steps/0/value", "{\"a\": [\"totl(1)\"]}"),
        ("/define/over(order)", "\"over(order)\""),
        ("/define/total(order)", "\"over(order)\""),
        ("/state/orders/init", "\"state.x\""),
        ("/tests/0/then/1/t/type", "\"Execute\""),
    ];
    let found: Vec<String> = cases.iter().map(|(place, value)| faults(place, value).join("\n")).collect();
    let expected = r###"E0902 goals: a pack has no member goals (did you mean goal?)
E0902 version: version is text, not a number (put it in quotes as you wrote it: version: "...")
E0905 reducer: this program cannot run the engine "wasm/2"; it runs fold/1, delta/1 and wasm/1 (a pack binds one engine; another program may run it, this one never guesses)
E0905 reducer.engine: this program cannot run the engine "wasm/2"; it runs fold/1, delta/1 and wasm/1 (a pack binds one engine; another program may run it, this one never guesses)
E0905 predicates.within_limit.engine: this program cannot run the engine "wasm/2"; it runs expressions and wasm/1 in predicates (a pack binds one engine; another program may run it, this one never guesses)
E0502 predicates.within_limit.holds: the field has 2 decimals, and the literal has more @15 (write 100.25)
E0505 predicates.within_limit.holds: there is no `paying` here @0 (paying reads what is not known here: here an expression sees the state alone; what it needs is kept in the state)
E0505 predicates.within_limit.holds: there is no `before` here @0 (here an expression sees the state alone; what it needs is kept in the state)
E0505 rules[0].when: there is no `meta` here @0 (a rule sees t, before and state; what it needs of meta, s0 or inputs is kept in a field of the state)
E0902 rules[0].when: a rule cannot read state.counters (count in a field of the state with `add`)
E0903 rules[0].steps[0].set: the pack declares no field state (a path begins below the state: leave out `state.`)
E0501 rules[0].steps[0].set: expected a value, found the end @29
E0903 rules[0].steps[0].set: the pack declares no field order (did you mean orders?)
E0902 rules[0].steps[0].set: this bracket is not closed @6
E0505 rules[0].steps[0].value.a[0]: there is no function `totl` @0 (did you mean total)
E0903 define["over(order)"]: `over` needs itself, by way of `over` (a definition uses only what does not need it)
E0903 define["over(order)"]: `over` needs itself, by way of `total` (a definition uses only what does not need it)
E0903 define["total(order)"]: `total` needs itself, by way of `over` (a definition uses only what does not need it)
E0505 state.orders.init: there is no `state` here @0 (init sees s0, meta and inputs; there is no state before it)
E0210 tests[0].then[1].t.type: "Execute" is not a transition type: lower-case words of letters, digits and `_`, joined by dots, at most 128 characters"###;
    assert_eq!(found.join("\n"), expected);
}

/// A rule that asks for what no transition has would never apply, in silence.
#[test]
fn a_rule_knows_what_a_transition_has() {
    let when = |text: &str| faults("/rules/0/when", &Value::from(text).to_string()).join("\n");
    assert_eq!(when("t.type == 'x' && has(t.goal) && t.result.status == 'ok'"), "");
    let near = when("t.resutl.status == 'ok'");
    assert!(near.contains("E0505 rules[0].when: t has no `resutl` @1 (did you mean t.result)"), "{near}");
    for hidden in ["t.tick == 1", "t.ts > 1", "has(t.metrics)", "t['id'] == 'x'"] {
        assert!(when(hidden).starts_with("E0505 rules[0].when: t has no `"), "{hidden}: {}", when(hidden));
    }
}

/// Declarations of the state hold for the state before, which has the same fields.
#[test]
fn a_rule_knows_the_fields_of_the_state_before() {
    let cases = [
        ("before.spent < state.spent && has(before.policy) && size(before.orders) > 0", ""),
        ("before['spent'] < 1 && before[t.action.params.field] == 1 && before != null", ""),
        (
            "before.spnt < 1",
            "E0505 rules[0].when: no field `spnt` is declared in state @6 (did you mean before.spent)",
        ),
        (
            "has(before.order)",
            "E0505 rules[0].when: no field `order` is declared in state @10 (did you mean before.orders)",
        ),
        ("before.counters.errors > 0", "E0505 rules[0].when: no field `counters` is declared in state @6"),
        ("before.tool_errors > 0", "E0505 rules[0].when: no field `tool_errors` is declared in state @6"),
        (
            "before.spent < 1.255",
            "E0502 rules[0].when: the field has 2 decimals, and the literal has more @15 (write 1.25)",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(faults("/rules/0/when", &Value::from(text).to_string()).join("\n"), expected, "{text}");
    }
}

#[test]
fn a_pack_of_delta_1_has_no_rules() {
    check(
        "/reducer",
        "\"delta/1\"",
        "E0902 rules: a pack of delta/1 has no rules (leave out `reducer`, or the rules)",
    );
    let text =
        r#"{"name":"d","version":"v1","reducer":"delta/1","predicates":{"p":{"holds":"has(policy.x)"}}}"#;
    let text = text.replace("policy.x", "state.policy.x");
    let pack = Pack::read(&json(&text)).unwrap();
    assert_eq!(pack.reducer().name(), "delta/1");
}

#[test]
fn an_expression_that_is_asked_of_a_run_uses_what_the_pack_defines() {
    let state = json(r#"{"orders":{"o1":{"items":[{"price":99},{"price":2}]}},"spent":1,"region":"EU"}"#);
    let pack = whole();
    let asked = pack.expression(Polarity::Condition, "over(state.orders.o1)").unwrap();
    assert_eq!(asked.verdict(&state, None), Verdict::Violation);
    let other = pack.expression(Polarity::Holds, "over(state.orders.o1)").unwrap();
    assert_eq!(other.verdict(&state, None), Verdict::Ok);
    // The same text under another pack may mean something else, so it is another predicate.
    let changed = Pack::read(&json(&WHOLE.replace("> limit", "> 2 * limit"))).unwrap();
    let elsewhere = changed.expression(Polarity::Condition, "over(state.orders.o1)").unwrap();
    assert_eq!(elsewhere.verdict(&state, None), Verdict::Ok);
    let digests = [&asked, &other, &elsewhere, pack.predicate("orders.big").unwrap()].map(Predicate::digest);
    let distinct: std::collections::BTreeSet<_> = digests.iter().collect();
    assert_eq!(distinct.len(), digests.len());
    let error = pack.expression(Polarity::Holds, "state.order == null").unwrap_err();
    assert_eq!((error.code, error.hint.as_deref()), (Code::E0505, Some("did you mean state.orders")));
}

/// The rules of the pack for each type that it governs, one a line.
fn governed(pack: &Pack) -> String {
    let said = pack.governed();
    assert!(said.keys().all(|name| pack.governs(name)), "the map and the question agree");
    let line = |(name, said): (&TypeName, &Governed)| {
        let registered = if said.registered { " registered" } else { "" };
        format!("{name}{registered} {:?}", said.rules)
    };
    said.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_pack_governs_the_types_it_registers_and_those_its_rules_are_for() {
    let of = |rules: &str| {
        let types = r#""types":{"desk.note":"a note","desk.idle":null}"#;
        let pack = format!(
            r#"{{"name":"t","version":"v1","state":{{"n":{{"init":0}}}},{types},"rules":[{rules}]}}"#
        );
        Pack::read(&json(&pack)).unwrap_or_else(|faults| panic!("{faults:#?}"))
    };
    let typed =
        of(r#"{"when_type":["action.result","desk.note"],"steps":[]},{"when_type":"desk.note","steps":[]}"#);
    assert_eq!(governed(&typed), "action.result [1]\ndesk.idle registered []\ndesk.note registered [1, 2]");
    for (name, expected) in
        [("desk.idle", true), ("action.result", true), ("action.request", false), ("desk.nota", false)]
    {
        assert_eq!(typed.governs(&name.parse().unwrap()), expected, "{name}");
    }
    assert!(typed.rules_for_all().is_empty());

    let all = of(r#"{"steps":[]},{"when_type":"plan.update","steps":[]}"#);
    assert_eq!(all.rules_for_all(), [1]);
    let said = governed(&all);
    // Of what the kernel and the institution write, no rule is asked.
    let asked = |(name, _): &&(&str, ontology::Class)| ontology::asks_rules(&name.parse().unwrap());
    assert_eq!(said.lines().count(), ontology::TYPES.iter().filter(asked).count() + 2, "{said}");
    assert!(!said.contains("run.fork") && !said.contains("policy.contract_extension"), "{said}");
    for line in ["plan.update [1, 2]", "policy.decision [1]", "desk.idle registered [1]"] {
        assert!(said.lines().any(|one| one == line), "{said}");
    }
    assert!(!all.governs(&"desk.nota".parse().unwrap()), "there is no such type, whatever the rules are for");
}

#[test]
fn violations_are_predicates_with_an_id() {
    let pack = {
        let op = dendrer_object::delta::Op::set(
            "/violations".parse().unwrap(),
            json(
                r#"[{"id":"overspent","base_predicate":"state.spent > limit","bisect_predicate":"monotone_lift","pure":true},
                     {"id":"a_first","words":"first by name, last in the list","holds":"state.spent >= 0"}]"#,
            ),
        );
        Pack::read(&dendrer_object::Delta(vec![op]).apply(&json(WHOLE)).unwrap()).unwrap()
    };
    let names: Vec<&str> = pack.predicates.iter().map(|declared| declared.predicate.name()).collect();
    assert_eq!(names, ["orders.big", "within_limit", "overspent", "a_first"]);
    let overspent = pack.predicate("overspent").unwrap();
    assert_eq!(overspent.monotone(), crate::predicate::Monotone::Lifted);
    assert_eq!(
        overspent.verdict(&json(r#"{"orders":{},"spent":100.01,"region":"EU"}"#), None),
        Verdict::Violation
    );
    // A test of the pack may name it, too.
    check(
        "/violations",
        r#"[{"id":"x","condition":"state.spend > 1"}]"#,
        "E0505 violations[0].condition: no field `spend` is declared in state @5 (did you mean state.spent)",
    );
    check(
        "/violations",
        r#"{"x":{"condition":"true"}}"#,
        "E0902 violations: violations is a list, not a map (each item begins with `- `)",
    );
    check(
        "/violations",
        r#"[{"condition":"true"}]"#,
        "E0902 violations[0]: a violation has an id (add a line like `id: over_limit`)",
    );
    check(
        "/violations",
        r#"[{"id":7,"condition":"true"}]"#,
        r#"E0902 violations[0].id: id is text, not a number (put it in quotes as you wrote it: id: "...")"#,
    );
    check(
        "/violations",
        r#"[{"id":"kernel.x","condition":"true"}]"#,
        "E0903 violations[0].id: kernel.x is the kernel's",
    );
    check(
        "/violations",
        r#"[{"id":"x y","condition":"true"}]"#,
        "E0903 violations[0].id: this is not a name for a predicate (letters, digits, `.`, `_` and `-`, at most 128)",
    );
    check(
        "/violations",
        r#"[{"id":"x","condition":"true"},{"id":"x","condition":"false"}]"#,
        "E0903 violations[1].id: there is another predicate named x",
    );
    check(
        "/violations",
        r#"[{"id":"within_limit","condition":"true"}]"#,
        "E0903 violations[0].id: there is another predicate named within_limit",
    );
    check(
        "/violations",
        r#"[{"id":"x","condition":"true","pure":false}]"#,
        "E0902 violations[0].pure: pure is true: no expression is anything else (leave it out, or write `true`)",
    );
    check(
        "/violations",
        r#"[{"id":"x","condition":"true","bisect_predicate":"median"}]"#,
        r#"E0902 violations[0].bisect_predicate: a bisect_predicate is monotone_lift, not "median" (without it, bisect refuses a predicate that recovers)"#,
    );
    check(
        "/violations",
        r#"[{"id":"x"}]"#,
        "E0902 violations[0]: a violation has exactly one of holds and condition (`holds` is what must be true, `condition` is the violation)",
    );
    check(
        "/violations",
        r#"[{"id":"x","condition":"true","sql":"select"}]"#,
        "E0902 violations[0].sql: a violation has no member sql (a violation has id, scope, enforce, repairs, monotone, words, holds, condition, base_predicate, bisect_predicate, pure, window, engine, digest)",
    );
    // In a map the name is that of the member.
    check(
        "/predicates/within_limit/id",
        r#""y""#,
        "E0902 predicates.within_limit.id: a predicate has no member id (a predicate has monotone, words, holds, condition, base_predicate, bisect_predicate, pure, window, engine, digest, module)",
    );
}

#[test]
fn what_is_declared_monotone_is_verified_and_not_believed() {
    // The predicates of the insurance case: a field that is null now may be filled later.
    check(
        "/violations",
        r#"[{"id":"unverified_payout","condition":"state.region == null","pure":true,"monotone":true}]"#,
        "E0907 violations[0].monotone: nothing shows that it cannot recover (add `bisect_predicate: monotone_lift`: \
         what counts is the first time)",
    );
    let op = dendrer_object::delta::Op::set(
        "/violations".parse().unwrap(),
        json(
            r#"[{"id":"lifted","condition":"state.spent > limit","bisect_predicate":"monotone_lift","monotone":true},
                {"id":"counted","condition":"state.counters.transitions > 6","monotone":true},
                {"id":"open","condition":"state.spent > limit"}]"#,
        ),
    );
    let pack = Pack::read(&dendrer_object::Delta(vec![op]).apply(&json(WHOLE)).unwrap()).unwrap();
    let known = |name: &str| pack.predicate(name).unwrap().monotone();
    use crate::predicate::Monotone::{ByConstruction, Lifted, Unknown};
    assert_eq!([known("lifted"), known("counted"), known("open")], [Lifted, ByConstruction, Unknown]);
}

#[test]
fn obligations_say_what_must_hold_and_by_when() {
    let of = |text: &str| {
        let op = dendrer_object::delta::Op::set("/obligations".parse().unwrap(), json(text));
        Pack::read(&dendrer_object::Delta(vec![op]).apply(&json(WHOLE)).unwrap())
    };
    let pack = of(r#"[
        {"id":"spent","words":"w","holds":"state.spent > limit","by":"goal.complete"},
        {"id":"soon","holds":"state.spent > 1","by":{"tick":40},"lost":"state.region == 'none'"},
        {"id":"after","holds":"state.spent > 1","within":{"ticks":1,"of":"action.request"}},
        {"id":"there","holds":"state.spent > 1","within":{"ticks":0,"of":"state.spent > 0"}}]"#)
    .unwrap();
    let words: Vec<String> = pack.obligations.iter().map(|owed| owed.predicate.words()).collect();
    assert_eq!(
        words,
        [
            "must hold by goal.complete: state.spent > limit",
            "must hold by tick 40, lost with state.region == 'none': state.spent > 1",
            "must hold within 1 tick of action.request: state.spent > 1",
            "must hold whenever it comes to state.spent > 0: state.spent > 1",
        ]
    );
    let named = |name: &str| pack.predicate(name).map(|predicate| predicate.name().to_owned());
    assert_eq!(named(&format!("{}/spent", pack.name)), Some("spent".to_owned()));
    assert_eq!(named("other.pack/spent"), None);
    let soon = pack.predicate("soon").unwrap();
    assert_eq!(soon.monotone(), crate::predicate::Monotone::ByConstruction);
    assert_eq!(soon.read_set().iter().map(Pointer::as_str).collect::<Vec<_>>(), ["/region", "/spent"]);
    // One state says nothing about what is owed, and nothing is never ok.
    let verdict = soon.verdict(&json(r#"{"orders":{},"spent":100,"region":"EU"}"#), None);
    assert!(matches!(verdict, Verdict::Uncertain(_)));
    for (text, expected) in [
        (
            r#"[{"id":"x","holds":"true","by":"goal.completed"}]"#,
            "E0903 obligations[0].by: there is no transition type goal.completed (did you mean goal.complete?)",
        ),
        (
            r#"[{"id":"x","holds":"true"}]"#,
            "E0902 obligations[0]: an obligation has exactly one of by and within (like `by: goal.complete`, \
             `by: {tick: 40}` or `within: {ticks: 5, of: action.request}`)",
        ),
        (
            r#"[{"id":"x","holds":"true","by":{"tick":-1}}]"#,
            "E0902 obligations[0].by.tick: tick is a number from 0 on, not a number",
        ),
        (
            r#"[{"id":"x","holds":"true","within":{"ticks":2}}]"#,
            "E0902 obligations[0].within: within does not say of what (a transition type, or a condition on the state)",
        ),
        (
            r#"[{"id":"within_limit","holds":"true","by":{"tick":1}}]"#,
            "E0903 obligations[0].id: there is another predicate named within_limit",
        ),
        (
            r#"[{"id":"x","by":{"tick":1}}]"#,
            "E0902 obligations[0]: x does not say what must hold (add a line like `holds: state.confirmed`)",
        ),
        (
            r#"[{"id":"x","holds":"state.spend > 1","by":{"tick":1}}]"#,
            "E0505 obligations[0].holds: no field `spend` is declared in state @5 (did you mean state.spent)",
        ),
        (
            r#"[{"id":"x","holds":"true","by":{"tick":1},"condition":"true"}]"#,
            "E0902 obligations[0].condition: an obligation has no member condition (an obligation has id, words, holds, \
             by, within, lost)",
        ),
    ] {
        check("/obligations", text, expected);
    }
}

#[test]
fn a_test_of_a_pack_follows_its_obligations() {
    let pack = Pack::read(&json(
        r#"{"name":"p","version":"v1","state":{"x":{"init":0}},
            "rules":[{"when_type":"memory.write","steps":[{"set":"x","value":"t.intent.x"}]}],
            "obligations":[{"id":"two","holds":"state.x == 2","within":{"ticks":1,"of":"state.x == 1"}}],
            "tests":[{"name":"a","then":[
                {"predicates":{"two":"ok"}},
                {"t":{"type":"memory.write","intent":{"x":1}},"predicates":{"two":"ok"}},
                {"t":{"type":"memory.write","intent":{"x":2}},"predicates":{"two":"ok"}},
                {"t":{"type":"memory.write","intent":{"x":1}}},
                {"t":{"type":"memory.write","intent":{"x":0}},"predicates":{"two":"violation"}},
                {"t":{"type":"memory.write","intent":{"x":2}},"predicates":{"two":"ok"}}]}]}"#,
    ))
    .unwrap();
    let ran = cases::run(&pack, &pack.cases[0]);
    assert_eq!(ran.failed.len(), 1, "{:?}", ran.failed);
    assert_eq!(ran.failed[0].message, "two: expected ok, found violation", "once missed, missed for good");
}

#[test]
fn an_index_below_zero_is_a_fault_of_a_new_pack_alone() {
    let path: Pointer = "/predicates/within_limit/holds".parse().unwrap();
    let op = dendrer_object::delta::Op::set(path, json(r#""state.orders.o1.items[-1].price < 3""#));
    let changed = dendrer_object::Delta(vec![op]).apply(&json(WHOLE)).unwrap();
    // A record with such a pack stays readable.
    let pack = Pack::read(&changed).unwrap();
    let faults: Vec<String> = pack.faults_of_new().iter().map(ToString::to_string).collect();
    assert_eq!(faults, ["predicates.within_limit.holds: an index below zero is always missing"]);
    assert!(whole().faults_of_new().is_empty());
}

#[test]
fn a_tool_has_a_timeout_and_an_output() {
    let look = |tool: &str, concurrency: &str| {
        let text = WHOLE
            .replace(r#""words": "looks""#, tool)
            .replace(r#""goal""#, &format!("{concurrency} \"goal\""));
        let pack = Pack::read(&json(&text)).unwrap_or_else(|faults| panic!("{faults:#?}"));
        let tool = pack.tools.iter().find(|tool| &*tool.name == "look").unwrap();
        (tool.timeout, tool.is_json, pack.concurrency)
    };
    assert_eq!(look(r#""words": "looks""#, ""), (None, false, 64));
    let declared = r#""timeout": "1m30.5s", "output": "json""#;
    assert_eq!(look(declared, r#""concurrency": 8,"#), (Some(90_500), true, 8));
    let timeout = "E0902 tools.look.timeout: a timeout is a duration above zero (like `timeout: 30s`)";
    for text in ["30", "0", "\"0s\"", "\"-1s\"", "\"soon\"", "null"] {
        check("/tools/look/timeout", text, timeout);
    }
    for text in ["\"text\"", "true", "null"] {
        check(
            "/tools/look/output",
            text,
            "E0902 tools.look.output: an output is declared as json, or not at all (like `output: json`)",
        );
    }
    for text in ["0", "1025", "\"8\"", "1.5", "null"] {
        check(
            "/concurrency",
            text,
            "E0902 concurrency: concurrency is a number from 1 to 1024 (like `concurrency: 8`)",
        );
    }
}
