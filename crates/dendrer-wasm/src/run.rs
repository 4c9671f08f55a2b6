//! Modules that passed the door, and calls to them.

use std::fmt;
use std::sync::Arc;

use dendrer_object::Digest;
use wasmi::{
    CompilationMode, Config, Engine, Error, Extern, Instance, Store, StoreLimits, StoreLimitsBuilder,
    TrapCode, TypedFunc,
};

use crate::{
    CALLS_MAX, FUEL, INPUT_SIZE_MAX, MEMORY_MAX, NoAnswer, Refused, STACK_SIZE_MAX, TABLE_SIZE_MAX,
    TABLES_MAX, door,
};

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

/// A module that can be called.
#[derive(Clone)]
pub struct Module {
    bytes: Arc<[u8]>,
    digest: Digest,
    entry: &'static str,
    compiled: wasmi::Module,
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Module({}, {})", self.entry, self.digest.short())
    }
}

impl Module {
    /// Takes a module whose function `entry` is to be called, or says why not. Nothing of it is run.
    pub fn new(bytes: &[u8], entry: &'static str) -> Result<Module, Refused> {
        door::inspect(bytes, entry)?;
        let compiled = wasmi::Module::new(&engine(), bytes)
            .map_err(|error| Refused::new(format!("the engine does not take it: {error}")))?;
        let module = Module { bytes: bytes.into(), digest: Digest::of(bytes), entry, compiled };
        module.instance(FUEL).map_err(|why| Refused::new(why.to_string()))?;
        Ok(module)
    }

    /// The digest of its bytes.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Calls it with so much fuel, in an instance that is made for this call and thrown away after it.
    pub fn call(&self, input: &[u8], answer_max: usize, fuel: u64) -> Result<Vec<u8>, NoAnswer> {
        if input.len() > INPUT_SIZE_MAX {
            return Err(NoAnswer::Limit(format!("its input has more than {INPUT_SIZE_MAX} bytes")));
        }
        let Called { mut store, instance, alloc, entry } = self.instance(fuel)?;
        let length = u32::try_from(input.len()).expect("at most 16 MiB");
        let place = alloc.call(&mut store, length).map_err(|error| ended(&error, fuel))?;
        let memory = instance.get_memory(&store, "memory").expect("it was there a moment ago");
        if memory.write(&mut store, place as usize, input).is_err() {
            let why = format!("gave room for its input at {place}, outside of its memory");
            return Err(NoAnswer::Trap(why));
        }
        let packed = entry.call(&mut store, (place, length)).map_err(|error| ended(&error, fuel))?;
        let (place, length) = ((packed >> 32) as usize, (packed & 0xffff_ffff) as usize);
        if length > answer_max {
            return Err(NoAnswer::Trap(format!(
                "answered with {length} bytes, and {answer_max} are the most"
            )));
        }
        let mut answer = vec![0; length];
        match memory.read(&store, place, &mut answer) {
            Ok(()) => Ok(answer),
            Err(_) => Err(NoAnswer::Trap(format!("answered at {place}, outside of its memory"))),
        }
    }

    fn instance(&self, fuel: u64) -> Result<Called, NoAnswer> {
        let mut store = Store::new(self.compiled.engine(), limits());
        store.limiter(|limits| limits);
        store.set_fuel(fuel).expect("fuel is counted");
        let instance = Instance::new(&mut store, &self.compiled, &[]).map_err(|error| ended(&error, fuel))?;
        let missing = |name: &str, form: &str| NoAnswer::Trap(format!("exports no {name} {form}"));
        if !matches!(instance.get_export(&store, "memory"), Some(Extern::Memory(_))) {
            return Err(missing("memory", "that is one"));
        }
        let alloc = instance
            .get_typed_func(&store, "alloc")
            .map_err(|_| missing("alloc", "from one i32 to an i32"))?;
        let entry = instance
            .get_typed_func(&store, self.entry)
            .map_err(|_| missing(self.entry, "from two i32 to an i64"))?;
        Ok(Called { store, instance, alloc, entry })
    }
}

/// What is made for one call.
struct Called {
    store: Store<StoreLimits>,
    instance: Instance,
    alloc: TypedFunc<u32, u32>,
    entry: TypedFunc<(u32, u32), u64>,
}

/// Says how a call ended that gave no answer.
fn ended(error: &Error, fuel: u64) -> NoAnswer {
    let trap = |why: &str| NoAnswer::Trap(format!("stopped: {why}"));
    match error.as_trap_code() {
        Some(TrapCode::UnreachableCodeReached) => trap("it came to an `unreachable`"),
        Some(TrapCode::MemoryOutOfBounds) => trap("it read or wrote outside of its memory"),
        Some(TrapCode::TableOutOfBounds) => trap("it looked outside of a table"),
        Some(TrapCode::IndirectCallToNull) => trap("it called what is not there"),
        Some(TrapCode::IntegerDivisionByZero) => trap("it divided by zero"),
        Some(TrapCode::IntegerOverflow) => trap("a number is too large"),
        Some(TrapCode::BadConversionToInteger) => trap("it made an integer of a number that is none"),
        Some(TrapCode::BadSignature) => trap("it called a function as another kind of function"),
        Some(TrapCode::OutOfFuel) => NoAnswer::Limit(format!("it took more than {fuel} of fuel")),
        Some(TrapCode::StackOverflow) => {
            let why =
                format!("its calls went deeper than {CALLS_MAX}, or took more than {STACK_SIZE_MAX} bytes");
            NoAnswer::Limit(why)
        }
        Some(TrapCode::GrowthOperationLimited) => NoAnswer::Limit(format!(
            "it asked for more memory or tables than there are: {MEMORY_MAX} bytes, {TABLE_SIZE_MAX} elements"
        )),
        // Whatever else there may be is of this engine or this machine.
        _ => NoAnswer::Limit(format!("the engine ended it: {error}")),
    }
}

/// What a call may have. Growing beyond fails in one way: the call ends. A module that were only told so could decide by
/// the memory that a machine happens to have.
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
