//! Modules as reducers (`wasm/1`): `reduce` is given the state and a transition, and answers with what that changes. And as pure
//! functions of graphs: `call` is given the arguments, and answers with a value.

use std::sync::Arc;

use dendrer_kernel::fold::transition;
use dendrer_kernel::pack::modules::{ModuleFunction, NAME};
use dendrer_kernel::predicate::Stopped;
use dendrer_kernel::reduce::{ReduceError, Reducer, ReducerInfo};
use dendrer_object::{Delta, Intent, Value, json};

use crate::{DELTA_SIZE_MAX, Engine, Module, ModuleRefused, NoAnswer, fuel};

/// The name of a reducer's function.
const REDUCE: &str = "reduce";

/// A module as a reducer.
#[derive(Debug)]
struct Changes(Module);

/// Compiles a module as a reducer, or returns why it is refused. Every rule is checked before anything of it is
/// compiled, and nothing of it is run.
pub fn reducer(bytes: &[u8]) -> Result<Arc<dyn Reducer + Send + Sync>, ModuleRefused> {
    reducer_in(Engine::default(), bytes)
}

/// As [`reducer`], in an engine of one's choice.
pub(crate) fn reducer_in(
    engine: Engine,
    bytes: &[u8],
) -> Result<Arc<dyn Reducer + Send + Sync>, ModuleRefused> {
    Ok(Arc::new(Changes(Module::in_engine(engine, bytes, REDUCE)?)))
}

impl Reducer for Changes {
    fn info(&self) -> ReducerInfo<'_> {
        ReducerInfo::program(NAME)
    }

    fn reduce(&self, before: &Value, intent: &Intent) -> Result<Delta, ReduceError> {
        let module = self.0.digest();
        let input = Value::record([("state", before.clone()), ("transition", transition(intent))]);
        let input = json::to_vec(&input);
        // The words of an error are recorded, so every engine uses the same ones.
        let failed = |why| ReduceError::Module { module, why };
        match self.0.call(&input, DELTA_SIZE_MAX, fuel(input.len())) {
            Ok(answer) => read(&answer).map_err(failed),
            Err(NoAnswer::Trap(why)) => Err(failed(format!("it {why}"))),
            Err(NoAnswer::Limit(limit)) => Err(Stopped { program: module, limit }.into()),
        }
    }
}

/// Reads an answer: the operations of a delta, or `{"error":WHY}`.
fn read(answer: &[u8]) -> Result<Delta, String> {
    let value = json::parse_canonical(answer)
        .map_err(|error| format!("its answer is not canonical JSON: {error}"))?;
    let error = value.as_object().filter(|members| members.len() == 1);
    if let Some(why) = error.and_then(|members| members.get("error")?.as_str()) {
        return Err(format!("it says: {why}"));
    }
    Delta::from_value(&value).map_err(|error| {
        format!("its answer is neither the operations of a delta nor {{\"error\":\"...\"}}: {error}")
    })
}

/// The name of the function.
const CALL: &str = "call";

/// A module as a function.
#[derive(Debug)]
struct Answers(Module);

/// Compiles a module as a function, or returns why it is refused. Nothing of it is run.
pub(crate) fn function_in(engine: Engine, bytes: &[u8]) -> Result<Arc<dyn ModuleFunction>, ModuleRefused> {
    Ok(Arc::new(Answers(Module::in_engine(engine, bytes, CALL)?)))
}

impl ModuleFunction for Answers {
    fn call(&self, args: &[Value]) -> Result<Value, String> {
        let input = json::to_vec(&Value::array(args.iter().cloned()));
        match self.0.call(&input, DELTA_SIZE_MAX, fuel(input.len())) {
            Ok(answer) => read_value(&answer),
            Err(NoAnswer::Trap(why)) => Err(format!("the module {why}")),
            Err(NoAnswer::Limit(limit)) => Err(format!("a limit ended the module: {limit}")),
        }
    }
}

/// Reads an answer: `{"value":V}` or `{"error":WHY}`.
fn read_value(answer: &[u8]) -> Result<Value, String> {
    let value = json::parse_canonical(answer)
        .map_err(|error| format!("the module's answer is not canonical JSON: {error}"))?;
    let members = value.as_object().map_or(0, |members| members.len());
    match (value.get("value"), value.get("error").and_then(Value::as_str)) {
        (Some(value), None) if members == 1 => Ok(value.clone()),
        (None, Some(why)) if members == 1 => Err(format!("the module says: {why}")),
        _ => Err("the module's answer is neither {\"value\":...} nor {\"error\":\"...\"}".to_owned()),
    }
}
