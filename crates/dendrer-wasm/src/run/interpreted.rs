//! `wasmi`: an interpreter.

use wasmi::{
    CompilationMode, Config, Engine, Error, Extern, Module, Store, StoreLimits, StoreLimitsBuilder, TrapCode,
};

use super::{Ended, LACKS_ALLOC, LACKS_ENTRY, LACKS_MEMORY, Unmade};
use crate::{CALLS_MAX, MEMORY_MAX, STACK_SIZE_MAX, TABLE_SIZE_MAX, TABLES_MAX};

#[derive(Clone)]
pub(super) struct Made(Module);

super::instance!(wasmi, StoreLimits, TrapCode);

/// Makes an engine: one for each module, since it keeps what was compiled for as long as it lives.
fn engine() -> Engine {
    let mut config = Config::default();
    config
        .consume_fuel(true)
        .allow_start_fn(false)
        .ignore_custom_sections(true)
        .wasm_multi_memory(false)
        .wasm_tail_call(false)
        .wasm_extended_const(false)
        // Compiled as a whole: what a call costs does not depend on the calls before it.
        .compilation_mode(CompilationMode::Eager)
        .set_max_recursion_depth(CALLS_MAX)
        .set_max_stack_height(STACK_SIZE_MAX);
    Engine::new(&config)
}

impl Made {
    pub(super) fn new(bytes: &[u8]) -> Result<Made, String> {
        Module::new(&engine(), bytes).map(Made).map_err(|error| error.to_string())
    }

    pub(super) fn instance(&self, entry: &str, fuel: u64) -> Result<Instance, Unmade> {
        let mut store = Store::new(self.0.engine(), limits());
        store.limiter(|limits| limits);
        store.set_fuel(fuel).expect("fuel is counted");
        let made =
            wasmi::Instance::new(&mut store, &self.0, &[]).map_err(|error| Unmade::Ended(ended(&error)))?;
        let Some(Extern::Memory(memory)) = made.get_export(&store, "memory") else {
            return Err(LACKS_MEMORY);
        };
        let alloc = made.get_typed_func(&store, "alloc").map_err(|_| LACKS_ALLOC)?;
        let entry = made.get_typed_func(&store, entry).map_err(|_| LACKS_ENTRY)?;
        Ok(Instance { store, memory, alloc, entry })
    }
}

fn ended(error: &Error) -> Ended {
    match error.as_trap_code() {
        Some(TrapCode::GrowthOperationLimited) => Ended::Growth,
        trap => trap.and_then(trapped).unwrap_or_else(|| Ended::Engine(error.to_string())),
    }
}

/// The limits of a call. Growing beyond fails in one way: the call ends. A module that were only told so could decide by the
/// memory that a machine happens to have.
fn limits() -> StoreLimits {
    StoreLimitsBuilder::new()
        .memory_size(MEMORY_MAX)
        .table_elements(TABLE_SIZE_MAX as usize)
        .instances(1)
        .memories(1)
        .tables(TABLES_MAX as usize)
        .trap_on_grow_failure(true)
        .build()
}
