//! Modules from outside: predicates and reducers as WebAssembly, pure by construction.
//!
//! A module has no imports, no start function and no shared memory, so it can look at nothing but what it is given;
//! every call gets an instance of its own, so nothing stays from one to the next; and a NaN has one form, so that no
//! processor shows through ([`docs/wasm.md`] has the interface). Rule: fuel, stack and memory are counted by this
//! engine, since another one counts otherwise. A limit ends a call with an error, and never with a verdict.
//!
//! [`docs/wasm.md`]: https://github.com/dendrer/dendrer/blob/main/docs/wasm.md

mod door;
mod reduce;
mod run;

use std::fmt;
use std::sync::Arc;

use dendrer_kernel::pack::modules::{ModuleFunction, Modules};
use dendrer_kernel::predicate::{Predicate, Program, Stopped, Verdict};
use dendrer_kernel::reduce::Reducer;
use dendrer_object::{Code, Digest, Value, json};

pub use reduce::reducer;
pub use run::{Engine, Module};

/// The longest module, in bytes.
pub const MODULE_SIZE_MAX: usize = 1 << 20;

/// The most instructions of a module, targets of jump tables included.
pub const NODES_MAX: usize = 250_000;

/// The deepest nesting of blocks in a function.
pub const NESTING_MAX: usize = 1_000;

/// The most types, functions, globals, exports, and segments of elements or of data: so many of each.
pub const ITEMS_MAX: u32 = 10_000;

/// The most parameters, and the most results, of a function or a block.
pub const ARITY_MAX: usize = 64;

/// The most local variables of all functions together.
pub const LOCALS_MAX: u64 = 100_000;

/// The most tables.
pub const TABLES_MAX: u32 = 8;

/// The most elements of a table.
pub const TABLE_SIZE_MAX: u64 = 10_000;

/// The largest memory that a module begins with, in bytes.
pub const MEMORY_BEGIN_MAX: u64 = 16 << 20;

/// The largest memory that it grows to, in bytes.
pub const MEMORY_MAX: usize = 64 << 20;

/// The longest input, in bytes of canonical JSON.
pub const INPUT_SIZE_MAX: usize = 16 << 20;

/// The longest answer of a predicate, in bytes.
pub const ANSWER_SIZE_MAX: usize = 64 << 10;

/// The longest answer of a reducer, in bytes.
pub const DELTA_SIZE_MAX: usize = 1 << 20;

/// The fuel of a call: an instruction takes about one.
pub const FUEL: u64 = 10_000_000;

/// The fuel that each byte of the input adds.
pub const FUEL_PER_BYTE: u64 = 1_000;

/// Returns the fuel of a call with so long an input.
pub fn fuel(input: usize) -> u64 {
    FUEL + FUEL_PER_BYTE * input as u64
}

/// How deep calls may go.
pub const CALLS_MAX: usize = 1_000;

/// The largest stack of values, in bytes.
pub const STACK_SIZE_MAX: usize = 512 << 10;

/// Why a module is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{why}", at(.offset))]
pub struct ModuleRefused {
    /// The byte of the module, where one can be named.
    pub offset: Option<usize>,
    /// The part that it must not have, or lacks.
    pub why: String,
}

fn at(offset: &Option<usize>) -> String {
    offset.map(|offset| format!("at byte {offset}: ")).unwrap_or_default()
}

impl ModuleRefused {
    /// The code under which `dendrer explain` knows it.
    pub const CODE: Code = Code::E0520;

    fn at(offset: usize, why: impl Into<String>) -> ModuleRefused {
        ModuleRefused { offset: Some(offset), why: why.into() }
    }

    fn new(why: impl Into<String>) -> ModuleRefused {
        ModuleRefused { offset: None, why: why.into() }
    }
}

/// Why a call gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoAnswer {
    /// A limit of this engine ended it: nothing is known.
    Limit(String),
    /// It trapped, or answered out of bounds. Every engine says the same.
    Trap(String),
}

impl fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (NoAnswer::Limit(why) | NoAnswer::Trap(why)) = self;
        f.write_str(why)
    }
}

/// The name of a predicate's function.
const EVALUATE: &str = "evaluate";

/// A module as a predicate: `evaluate` is given the state and answers with a verdict.
#[derive(Debug)]
struct Judge(Module);

/// Compiles a module as a predicate, or returns why it is refused. Every rule is checked before anything of it is
/// compiled, and nothing of it is run.
pub fn predicate(name: &str, bytes: &[u8]) -> Result<Predicate, ModuleRefused> {
    Ok(Predicate::program(name, Arc::new(Judge(Module::new(bytes, EVALUATE)?))))
}

impl Modules for Engine {
    fn reducer(&self, bytes: &[u8]) -> Result<Arc<dyn Reducer + Send + Sync>, String> {
        reduce::reducer_in(*self, bytes).map_err(|refused| refused.to_string())
    }

    fn program(&self, bytes: &[u8]) -> Result<Arc<dyn Program>, String> {
        let module = Module::in_engine(*self, bytes, EVALUATE).map_err(|refused| refused.to_string())?;
        Ok(Arc::new(Judge(module)))
    }

    fn function(&self, bytes: &[u8]) -> Result<Arc<dyn ModuleFunction>, String> {
        reduce::function_in(*self, bytes).map_err(|refused| refused.to_string())
    }
}

impl Program for Judge {
    fn digest(&self) -> Digest {
        self.0.digest()
    }

    fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }

    fn judge(&self, state: &Value) -> Result<Verdict, Stopped> {
        let stopped = |limit| Stopped { program: self.digest(), limit };
        let input = json::to_vec(state);
        match self.0.call(&input, ANSWER_SIZE_MAX, fuel(input.len())) {
            Ok(answer) => Ok(verdict(&answer)),
            Err(NoAnswer::Trap(why)) => Ok(Verdict::Uncertain(format!("the module {why}"))),
            Err(NoAnswer::Limit(limit)) => Err(stopped(limit)),
        }
    }
}

/// Reads an answer: `"ok"`, `"violation"` or `{"uncertain":WHY}`.
fn verdict(answer: &[u8]) -> Verdict {
    let read = json::parse_canonical(answer);
    let value = match &read {
        Ok(value) => value,
        Err(error) => {
            return Verdict::Uncertain(format!("the module's answer is not canonical JSON: {error}"));
        }
    };
    let members = value.as_object().map_or(0, |members| members.iter().count());
    match (value.as_str(), value.get("uncertain").and_then(Value::as_str)) {
        (Some("ok"), _) => Verdict::Ok,
        (Some("violation"), _) => Verdict::Violation,
        (None, Some(why)) if members == 1 => Verdict::Uncertain(format!("the module says: {why}")),
        _ => Verdict::Uncertain(
            "the module's answer is not \"ok\", \"violation\" or {\"uncertain\":\"...\"}".to_owned(),
        ),
    }
}
