use dendrer_object::json::parse_door;

use super::*;
use crate::pack::Pack;

fn v(text: &str) -> Value {
    parse_door(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn contracts(types: &str) -> Contracts {
    let text = format!(
        r#"{{"name":"p","version":"v1","reducer":"delta/1",
            "state":{{"n":{{"init":0,"decimals":2}},"s":{{"init":"'x'"}},"at":{{"init":null}},"m":{{"init":{{}}}}}},
            "types":{{"act":null}},"contracts":{types},
            "violations":[{{"id":"never","condition":"state.n > 5","bisect_predicate":"monotone_lift"}}]}}"#
    );
    match Pack::read(&v(&text)) {
        Ok(pack) => pack.contracts,
        Err(faults) => panic!("{faults:#?}"),
    }
}

fn faults(types: &str, violations: &str) -> Vec<String> {
    let text = format!(
        r#"{{"name":"p","version":"v1","reducer":"delta/1","state":{{"n":{{"init":0,"decimals":2}},"note":{{"init":null}}}},
            "types":{{"act":null}},"contracts":{types}{violations}}}"#
    );
    match Pack::read(&v(&text)) {
        Ok(_) => Vec::new(),
        Err(faults) => faults
            .iter()
            .map(|fault| {
                let hint = fault.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
                format!("{} {fault}{hint}", fault.code)
            })
            .collect(),
    }
}

fn lacks(kind: &str, state: &str) -> String {
    let types = format!(r#"{{"act":{{"required_state":{{"n":{kind}}}}}}}"#);
    let contracts = contracts(&types);
    let lacks = contracts.types["act"].check(&v(state));
    lacks.iter().map(|lack| lack.why.to_string()).collect()
}

#[test]
fn required_fields_are_there_of_their_kind_and_null_only_where_it_may_be() {
    for (kind, state, why) in [
        (r#"{"type":"number"}"#, r#"{"n":1}"#, ""),
        (r#"{"type":"number"}"#, "{}", "it is not there"),
        (r#"{"type":"number","nullable":true}"#, "{}", "it is not there"),
        (r#"{"type":"number"}"#, r#"{"n":null}"#, "it is null"),
        (r#"{"type":"number","nullable":true}"#, r#"{"n":null}"#, ""),
        (r#"{"type":"float"}"#, r#"{"n":"1"}"#, "it is a text, and must be number"),
        (r#"{"type":"integer"}"#, r#"{"n":1.5}"#, "it is a number, and must be integer"),
        (r#"{"type":"integer"}"#, r#"{"n":12345678901234567890}"#, ""),
        (r#"{"type":"boolean"}"#, r#"{"n":false}"#, ""),
        (r#"{"type":"map"}"#, r#"{"n":[]}"#, "it is an array, and must be map"),
        (r#"{"type":"string"}"#, r#"{"n":""}"#, ""),
        ("null", r#"{"n":[1]}"#, ""),
    ] {
        let found = lacks(kind, state);
        assert_eq!(found.is_empty(), why.is_empty(), "{kind} {state}: {found}");
        assert!(
            found.starts_with(why.split(',').next().unwrap_or_default().split(" a").next().unwrap()),
            "{found}"
        );
    }
}

#[test]
fn a_time_says_its_offset() {
    for (text, is) in [
        ("2026-02-23T17:21:05Z", true),
        ("2026-02-23t17:21:05.250+01:00", true),
        ("2024-02-29 00:00:60-23:59", true),
        ("2026-02-23T17:21:05", false),
        ("2026-02-29T17:21:05Z", false),
        ("2026-13-01T17:21:05Z", false),
        ("2026-02-23T24:00:00Z", false),
        ("2026-02-23T17:21:05+24:00", false),
        ("2026-02-23T17:21:05+0100", false),
        ("2026-02-23T17:21:05.Z", false),
        ("2026-02-23", false),
        ("", false),
        ("äöüäöüäöüäöü", false),
    ] {
        assert_eq!(is_datetime(text), is, "{text}");
    }
}

fn intent(text: &str) -> Intent {
    Intent::from_value(&v(text), Some("a")).expect("an intent")
}

const ACT: &str = r#"{"act":{"required_state":{"n":{"type":"number","precision":2}},"hash_seeds":["s"],"advisory":["at"]}}"#;

#[test]
fn a_context_binds_values_and_no_model_can_weaken_it() {
    let of = contracts(ACT);
    let contract = &of.types["act"];
    let seed = Seed([7; 16]);
    let state = v(r#"{"n":1.004,"s":"x","at":"now"}"#);
    let plain = intent(r#"{"type":"act","action":{"tool":"t"}}"#);
    let context = contract.context(&of, &plain, &state, seed);
    assert_eq!((&context.advisory[..], &context.ignored[..]), (&[][..], &[][..]));
    let other = |intent: &Intent, state: &str, seed| contract.context(&of, intent, &v(state), seed).hash;
    // The value as the contract counts it, and every part of what it binds.
    assert_eq!(other(&plain, r#"{"n":1.001,"s":"x"}"#, seed), context.hash);
    assert_ne!(other(&plain, r#"{"n":1.006,"s":"x"}"#, seed), context.hash);
    assert_ne!(other(&plain, r#"{"n":1.004,"s":"y"}"#, seed), context.hash);
    assert_ne!(other(&plain, r#"{"n":1.004,"s":"x"}"#, Seed([8; 16])), context.hash);
    assert_ne!(
        other(&intent(r#"{"type":"act","action":{"tool":"u"}}"#), r#"{"n":1,"s":"x"}"#, seed),
        context.hash
    );
    // A declaration of a model adds the fields that the pack lets it add, and removes none.
    let declared =
        intent(r#"{"type":"act","action":{"tool":"t"},"intent":{"declared_deps":["at","m","n","moon"]}}"#);
    let more = contract.context(&of, &declared, &state, seed);
    assert_eq!(more.advisory.iter().map(|name| &**name).collect::<Vec<_>>(), ["at"]);
    assert_ne!(more.hash, context.hash);
    assert_eq!(more.ignored.iter().map(|name| &**name).collect::<Vec<_>>(), ["m", "moon"]);
    let none = intent(r#"{"type":"act","action":{"tool":"t"},"intent":{"declared_deps":[]}}"#);
    assert_eq!(contract.context(&of, &none, &state, seed).hash, context.hash);
}

#[test]
fn the_hash_of_the_source_is_made_again_from_its_state() {
    let of = contracts(ACT);
    let contract = &of.types["act"];
    let seed = Seed([7; 16]);
    let state = v(r#"{"n":1,"s":"x"}"#);
    let intent = intent(r#"{"type":"act"}"#);
    let context = contract.context(&of, &intent, &state, seed).to_value(&of);
    let check = |context: Option<&Value>, seed, source: &str, target: &str| {
        let import = Import { intent: &intent, context, seed };
        let (source, target) = (v(source), v(target));
        let side = |state| Side { state, contracts: &of, pack: None, enforced: true };
        check_import(&import, side(&source), side(&target)).refused.map(|refused| refused.to_string())
    };
    let same = r#"{"n":1,"s":"x"}"#;
    assert_eq!(check(Some(&context), Some(seed), same, same), None);
    assert_eq!(check(Some(&context), Some(seed), same, r#"{"n":9,"s":"x"}"#), None, "n seeds nothing");
    let wrong = check(Some(&context), Some(seed), r#"{"n":2,"s":"x"}"#, same).unwrap();
    assert_eq!(wrong, "the context hash of the source does not hold: it is not that of the source state");
    assert!(check(Some(&context), None, same, same).unwrap().contains("erased or withheld"));
    assert!(check(None, Some(seed), same, same).unwrap().contains("no context hash"));
    // A context that says it was made under another contract, or of fewer fields, is another hash.
    let mut other = of.clone();
    let fewer = other.types.get_mut("act").unwrap();
    fewer.required.pop();
    let less = fewer.clone().context(&other, &intent, &v(same), seed).to_value(&other);
    let less = check(Some(&less), Some(seed), same, same).unwrap();
    assert_eq!(less, "the context hash of the source does not hold: it is not that of the source state");
}

#[test]
fn what_a_contract_gets_wrong_is_told_where_it_stands() {
    const NEVER: &str =
        r#","violations":[{"id":"never","condition":"state.n > 5","bisect_predicate":"monotone_lift"}]"#;
    for (types, violations, expected) in [
        (
            r#"{"act":{"required_state":{"m":{}}}}"#,
            NEVER,
            "E0505 contracts.act.required_state.m: no field `m` is declared in state",
        ),
        (
            r#"{"act":{"hash_seeds":["nite"]}}"#,
            NEVER,
            "E0505 contracts.act.hash_seeds[0]: no field `nite` is declared in state (did you mean note?)",
        ),
        (
            r#"{"act":{"required_state":{"n":{"type":"nmber"}}}}"#,
            NEVER,
            "E0902 contracts.act.required_state.n.type: a type is one of any, string, number,",
        ),
        (
            r#"{"act":{"required_state":{"n":{"precision":3}}}}"#,
            NEVER,
            "E0902 contracts.act.required_state.n.precision: state.n is kept to 2 decimals, and this counts 3",
        ),
        (
            r#"{"act":{"required_state":{"note":{"type":"string","precision":3}}}}"#,
            NEVER,
            "only a number has a precision",
        ),
        (
            r#"{"act":{"required_state":{"n":{}},"match":{"note":"equal"}}}"#,
            NEVER,
            "note is not required, so nothing is compared",
        ),
        (
            r#"{"act":{"required_state":{"n":{}},"match":{"n":"source.n <= target.m"}}}"#,
            NEVER,
            "no field `m`",
        ),
        (r#"{"act":{}}"#, NEVER, "a contract names what it needs"),
        (r#"{"act":{"required":{"n":{}}}}"#, NEVER, "a contract has no member required"),
        (r#"{"atc":{"required_state":{"n":{}}}}"#, NEVER, "there is no transition type atc"),
        (r#"{"run.fork":{"required_state":{"n":{}}}}"#, NEVER, "run.fork is not proposed by anybody"),
        (
            r#"{"act":{"required_state":{"n":{}}}}"#,
            "",
            "E0907 contracts: a pack with contracts has a violation predicate, and this has none",
        ),
        (
            r#"{"act":{"required_state":{"n":{}}}}"#,
            r#","violations":[{"id":"over","condition":"state.n > 5"}]"#,
            "E0907 contracts: a pack with contracts has a violation predicate that cannot recover, and all of these may",
        ),
    ] {
        let found = faults(types, violations);
        assert!(found.iter().any(|fault| fault.contains(expected)), "{types}\n{found:#?}");
    }
    assert_eq!(
        faults(r#"{"act":{"required_state":{"n":{}},"match":{"n":"source.n <= target.n"}}}"#, NEVER),
        Vec::<String>::new()
    );
}

/// The kernel reads the contracts of a recorded pack by themselves: they must be the same.
#[test]
fn a_recorded_pack_has_the_contracts_it_was_checked_with() {
    let text = format!(
        r#"{{"name":"p","version":"v1","state":{{"n":{{"init":0}},"s":{{"init":0}},"at":{{"init":0}}}},"types":{{"act":null}},
            "contracts":{{"plan.update":{{"hash_seeds":["n"],"match":{{"n":"present"}}}},{}}},
            "violations":[{{"id":"never","condition":"state.n > 5","bisect_predicate":"monotone_lift"}}]}}"#,
        &ACT[1..ACT.len() - 1]
    );
    let pack = Pack::read(&v(&text)).unwrap_or_else(|faults| panic!("{faults:#?}"));
    let again = crate::pack::contracts_of(pack.value());
    assert_eq!((&pack.contracts.name, &pack.contracts.version), (&again.name, &again.version));
    assert_eq!(pack.contracts.types.len(), 2);
    for (name, contract) in &pack.contracts.types {
        let other = &again.types[name];
        assert_eq!((&contract.required, &contract.seeds), (&other.required, &other.seeds));
        assert_eq!((&contract.advisory, contract.digest), (&other.advisory, other.digest));
    }
}
