//! The conformance cases of cel-spec as an oracle: what the language accepts means what CEL says, and what it
//! leaves out is listed by name and reason in `cel-spec-refused.txt`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use std::collections::BTreeMap;
use std::path::Path;

use dendrer_kernel::expr::{Budget, Env, EvalError, Expr, Scope};
use dendrer_object::{Code, Number, Value};
use serde_json::Value as Json;

/// What became of a case.
enum Outcome {
    Passed,
    Refused(String),
    Failed(String),
}

#[test]
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::print_stderr,
    reason = "reads the published cases"
)]
fn accepted_cases_mean_what_cel_says_and_the_rest_is_listed() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let vectors = here.join("../../../shared/vectors/cel-spec-simple.jsonl");
    let Ok(cases) = std::fs::read_to_string(&vectors) else {
        eprintln!("SKIPPED: {} is absent, so nothing was held against CEL", vectors.display());
        return;
    };
    let (mut passed, mut refused, mut failed) = (0, String::new(), Vec::new());
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    for line in cases.lines() {
        let case: Json = serde_json::from_str(line).unwrap();
        let part = |name: &str| case[name].as_str().unwrap().to_owned();
        let name = format!("{}/{}/{}", part("file"), part("section"), part("name"));
        match run(&case) {
            Outcome::Passed => passed += 1,
            Outcome::Refused(reason) => {
                refused.push_str(&format!("{name}: {reason}\n"));
                *reasons.entry(reason).or_default() += 1;
            }
            Outcome::Failed(why) => failed.push(format!("{name}: {} -> {why}", case["expr"])),
        }
    }
    let total: usize = reasons.values().sum();
    eprintln!("cel-spec: {passed} passed, {total} refused, {} failed", failed.len());
    reasons.iter().for_each(|(reason, count)| eprintln!("{count:6} {reason}"));
    assert!(failed.is_empty(), "{} cases do not mean what CEL says:\n{}", failed.len(), failed.join("\n"));
    let listed = std::fs::read_to_string(here.join("tests/cel-spec-refused.txt")).unwrap_or_default();
    if listed != refused {
        let now = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cel-spec-refused.txt");
        std::fs::write(&now, &refused).unwrap();
        panic!("the refused cases are no longer those of the list; as they are now: {}", now.display());
    }
}

/// `dyn(x)` only tells the checker of CEL to let a mixture of types pass, which the language lets pass anyway.
#[test]
#[expect(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::print_stderr,
    reason = "reads the published cases"
)]
fn mixtures_that_cel_accepts_behind_dyn_mean_the_same_without_it() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/cel-spec-simple.jsonl");
    let Ok(cases) = std::fs::read_to_string(&vectors) else {
        eprintln!("SKIPPED: {} is absent, so nothing was held against CEL", vectors.display());
        return;
    };
    let (mut passed, mut failed) = (0, Vec::new());
    for line in cases.lines().filter(|line| line.contains("dyn(")) {
        let mut case: Json = serde_json::from_str(line).unwrap();
        case["expr"] = case["expr"].as_str().unwrap().replace("dyn(", "(").into();
        case["disable_check"] = true.into();
        match run(&case) {
            Outcome::Passed => passed += 1,
            Outcome::Refused(_) => {}
            Outcome::Failed(why) => failed.push(format!("{}: {} -> {why}", case["name"], case["expr"])),
        }
    }
    eprintln!("cel-spec behind dyn: {passed} passed, {} failed", failed.len());
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn run(case: &Json) -> Outcome {
    let mut scope = Scope::without_state();
    let mut bound = Vec::new();
    for (name, value) in case["bindings"].as_object().into_iter().flatten() {
        if name.contains('.') {
            return Outcome::Refused("a binding with a qualified name".to_owned());
        }
        let Some(value) = to_value(value) else {
            return Outcome::Refused("a binding that is not JSON".to_owned());
        };
        scope = scope.root(name);
        bound.push((name.as_str(), value));
    }
    let wants_error = !case["error"].is_null();
    let expr = match Expr::parse(case["expr"].as_str().unwrap(), &scope) {
        Ok(expr) => expr,
        Err(error) => {
            return match error.code {
                Code::E0506 => Outcome::Refused(error.message),
                Code::E0507 => Outcome::Refused("`/` on what is not known to be literal".to_owned()),
                Code::E0505 => Outcome::Refused("a name or function that is not declared".to_owned()),
                _ if wants_error => Outcome::Passed,
                Code::E0502 if case["disable_check"] == true => {
                    Outcome::Refused("the check refuses what CEL runs unchecked".to_owned())
                }
                _ => Outcome::Failed(error.to_string()),
            };
        }
    };
    if case["check_only"] == true {
        return Outcome::Passed;
    }
    let others: Vec<(&str, &Value)> = bound.iter().map(|(name, value)| (*name, value)).collect();
    let env = Env { others: &others, ..Env::of(&Value::Null) };
    match expr.evaluate(&env, &mut Budget::default()) {
        Err(EvalError::Uncertain(_)) if wants_error => Outcome::Passed,
        Err(EvalError::Uncertain(why)) => match why.message.as_str() {
            // The one place where the language has less than CEL on purpose: doubles are finite.
            "the result is not a finite number" | "division by zero" => {
                Outcome::Refused("a double that is not finite".to_owned())
            }
            other => Outcome::Failed(other.to_owned()),
        },
        Err(EvalError::Exhausted) => Outcome::Failed("the budget ran out".to_owned()),
        Ok(value) if wants_error => Outcome::Failed(format!("gave {value}, an error is wanted")),
        Ok(value) if is_same(&value, &case["value"]) => Outcome::Passed,
        Ok(value) => Outcome::Failed(format!("gave {value}, wanted {}", case["value"])),
    }
}

/// Makes a value of a tagged one; `None` for what JSON cannot hold.
fn to_value(tagged: &Json) -> Option<Value> {
    let (kind, value) = tagged.as_object()?.iter().next()?;
    Some(match kind.as_str() {
        "null" => Value::Null,
        "bool" => Value::Bool(value.as_bool()?),
        "string" => Value::from(value.as_str()?),
        "int" => Value::Number(Number::parse(value.as_str()?).ok()?),
        "double" => Value::Number(Number::from_f64(value.as_str()?.parse().ok()?)?),
        "list" => Value::array(value.as_array()?.iter().map(to_value).collect::<Option<Vec<_>>>()?),
        "map" => {
            let pair = |pair: &Json| Some((pair[0]["string"].as_str()?.to_owned(), to_value(&pair[1])?));
            Value::record(value.as_array()?.iter().map(pair).collect::<Option<Vec<_>>>()?)
        }
        _ => return None,
    })
}

fn is_same(value: &Value, wanted: &Json) -> bool {
    to_value(wanted).is_some_and(|wanted| *value == wanted)
}
