//! Modules as pure functions of graphs: `call` is given the arguments, and answers with a value.

use std::sync::Arc;

use dendrer_kernel::pack::modules::ModuleFunction;
use dendrer_object::{Value, json};

use crate::{DELTA_SIZE_MAX, Engine, Module, ModuleRefused, NoAnswer, fuel};

/// What the function is called.
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
            Ok(answer) => read(&answer),
            Err(NoAnswer::Trap(why)) => Err(format!("the module {why}")),
            Err(NoAnswer::Limit(limit)) => Err(format!("a limit ended the module: {limit}")),
        }
    }
}

/// Reads an answer: `{"value":V}` or `{"error":WHY}`.
fn read(answer: &[u8]) -> Result<Value, String> {
    let value = json::parse_canonical(answer)
        .map_err(|error| format!("the module's answer is not canonical JSON: {error}"))?;
    let members = value.as_object().map_or(0, |members| members.len());
    match (value.get("value"), value.get("error").and_then(Value::as_str)) {
        (Some(value), None) if members == 1 => Ok(value.clone()),
        (None, Some(why)) if members == 1 => Err(format!("the module says: {why}")),
        _ => Err("the module's answer is neither {\"value\":...} nor {\"error\":\"...\"}".to_owned()),
    }
}
