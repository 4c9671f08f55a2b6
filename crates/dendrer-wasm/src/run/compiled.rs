//! `wasmtime`: a compiler.
//!
//! Everything that a processor could show through is switched off where the door has not refused it already.

use wasmtime::{Config, Engine, Error, Module, ResourceLimiter, Store, Trap};

use super::{Ended, LACKS_ALLOC, LACKS_ENTRY, LACKS_MEMORY, Unmade};
use crate::{MEMORY_MAX, STACK_SIZE_MAX, TABLE_SIZE_MAX, TABLES_MAX};

#[derive(Clone)]
pub(super) struct Made(Module);

super::instance!(wasmtime, Limits, Trap);

fn engine() -> Result<Engine, Error> {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .cranelift_nan_canonicalization(true)
        .wasm_simd(false)
        .wasm_relaxed_simd(false)
        .wasm_tail_call(false)
        .wasm_multi_memory(false)
        .wasm_memory64(false)
        .wasm_extended_const(false)
        .max_wasm_stack(STACK_SIZE_MAX);
    Engine::new(&config)
}

impl Made {
    pub(super) fn new(bytes: &[u8]) -> Result<Made, String> {
        let made = engine().and_then(|engine| Module::from_binary(&engine, bytes));
        made.map(Made).map_err(|error| format!("{error:#}"))
    }

    pub(super) fn instance(&self, entry: &str, fuel: u64) -> Result<Instance, Unmade> {
        let mut store = Store::new(self.0.engine(), Limits);
        store.limiter(|limits| limits);
        store.set_fuel(fuel).expect("fuel is counted");
        let made = wasmtime::Instance::new(&mut store, &self.0, &[])
            .map_err(|error| Unmade::Ended(ended(&error)))?;
        let memory = made.get_memory(&mut store, "memory").ok_or(LACKS_MEMORY)?;
        let alloc = made.get_typed_func(&mut store, "alloc").map_err(|_| LACKS_ALLOC)?;
        let entry = made.get_typed_func(&mut store, entry).map_err(|_| LACKS_ENTRY)?;
        Ok(Instance { store, memory, alloc, entry })
    }
}

fn ended(error: &Error) -> Ended {
    if error.is::<TooLarge>() {
        return Ended::Growth;
    }
    let trap = error.downcast_ref::<Trap>().copied();
    trap.and_then(trapped).unwrap_or_else(|| Ended::Engine(format!("{error:#}")))
}

/// The limits of a call. Growing beyond ends the call, as in the other engine; only the maximum that a module declares for
/// itself is its own affair, and beyond that it is told no.
struct Limits;

#[derive(Debug, thiserror::Error)]
#[error("there is no more")]
struct TooLarge;

fn may_grow(desired: usize, declared: Option<usize>, most: usize) -> Result<bool, Error> {
    match declared.is_some_and(|declared| desired > declared) {
        true => Ok(false),
        false if desired > most => Err(Error::new(TooLarge)),
        false => Ok(true),
    }
}

impl ResourceLimiter for Limits {
    fn memory_growing(
        &mut self,
        _now: usize,
        desired: usize,
        declared: Option<usize>,
    ) -> Result<bool, Error> {
        may_grow(desired, declared, MEMORY_MAX)
    }

    fn table_growing(&mut self, _now: usize, desired: usize, declared: Option<usize>) -> Result<bool, Error> {
        may_grow(desired, declared, TABLE_SIZE_MAX as usize)
    }

    // The machine has no more: no module may decide by that.
    fn memory_grow_failed(&mut self, error: Error) -> Result<(), Error> {
        Err(error)
    }

    fn table_grow_failed(&mut self, error: Error) -> Result<(), Error> {
        Err(error)
    }

    fn instances(&self) -> usize {
        1
    }

    fn memories(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        TABLES_MAX as usize
    }
}
