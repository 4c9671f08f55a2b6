//! Modules that passed the door, and calls to them.
//!
//! The meaning of a call is defined here once, for every engine. Rule: an engine may report that a limit ended a
//! call, which is no verdict, and never give an answer that another engine would not give.

use std::fmt;
use std::sync::Arc;

use dendrer_object::Digest;

use crate::{
    CALLS_MAX, FUEL, INPUT_SIZE_MAX, MEMORY_MAX, ModuleRefused, NoAnswer, STACK_SIZE_MAX, TABLE_SIZE_MAX,
    door,
};

/// Declares the instance and the traps of an engine: engines are called alike, by types of their own.
macro_rules! instance {
    ($engine:ident, $limits:ty, $trap:ident) => {
        pub(super) struct Instance {
            store: $engine::Store<$limits>,
            memory: $engine::Memory,
            alloc: $engine::TypedFunc<u32, u32>,
            entry: $engine::TypedFunc<(u32, u32), u64>,
        }

        impl super::Instance for Instance {
            fn alloc(&mut self, length: u32) -> Result<u32, Ended> {
                self.alloc.call(&mut self.store, length).map_err(|error| ended(&error))
            }

            fn enter(&mut self, place: u32, length: u32) -> Result<u64, Ended> {
                self.entry.call(&mut self.store, (place, length)).map_err(|error| ended(&error))
            }

            fn write(&mut self, place: usize, bytes: &[u8]) -> bool {
                self.memory.write(&mut self.store, place, bytes).is_ok()
            }

            fn read(&self, place: usize, out: &mut [u8]) -> bool {
                self.memory.read(&self.store, place, out).is_ok()
            }
        }

        /// Returns the end of a call for a trap that every engine has.
        fn trapped(trap: $trap) -> Option<Ended> {
            Some(match trap {
                $trap::UnreachableCodeReached => Ended::UNREACHABLE,
                $trap::MemoryOutOfBounds => Ended::MEMORY,
                $trap::TableOutOfBounds => Ended::TABLE,
                $trap::IndirectCallToNull => Ended::NULL,
                $trap::IntegerDivisionByZero => Ended::ZERO,
                $trap::IntegerOverflow => Ended::OVERFLOW,
                $trap::BadConversionToInteger => Ended::CONVERSION,
                $trap::BadSignature => Ended::SIGNATURE,
                $trap::OutOfFuel => Ended::Fuel,
                $trap::StackOverflow => Ended::Stack,
                _ => return None,
            })
        }
    };
}
use instance;

#[cfg(feature = "wasmtime")]
mod compiled;
mod interpreted;

/// The engine that runs modules. Engines give the same answers and count fuel, stack and memory each in its own way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// `wasmi`, an interpreter: small, and quick with a module that is called a few times.
    Interpreter,
    /// `wasmtime`, which compiles a module first: for many calls. With the feature of its name.
    #[cfg(feature = "wasmtime")]
    Compiler,
}

impl Engine {
    /// All engines. The last one is the default.
    pub const ALL: &[Engine] = &[
        Engine::Interpreter,
        #[cfg(feature = "wasmtime")]
        Engine::Compiler,
    ];
}

impl Default for Engine {
    fn default() -> Engine {
        Engine::ALL[Engine::ALL.len() - 1]
    }
}

/// A module that can be called.
#[derive(Clone)]
pub struct Module {
    bytes: Arc<[u8]>,
    digest: Digest,
    entry: &'static str,
    made: Made,
}

/// A module as its engine holds it.
#[derive(Clone)]
enum Made {
    Interpreted(interpreted::Made),
    #[cfg(feature = "wasmtime")]
    Compiled(compiled::Made),
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Module({}, {})", self.entry, self.digest.short())
    }
}

impl Module {
    /// Takes a module whose function `entry` is to be called, or says why not. Nothing of it is run.
    pub fn new(bytes: &[u8], entry: &'static str) -> Result<Module, ModuleRefused> {
        Module::in_engine(Engine::default(), bytes, entry)
    }

    /// As [`Module::new`], in an engine of one's choice.
    pub fn in_engine(engine: Engine, bytes: &[u8], entry: &'static str) -> Result<Module, ModuleRefused> {
        door::inspect(bytes, entry)?;
        let not_taken = |why: String| ModuleRefused::new(format!("the engine does not take it: {why}"));
        let made = match engine {
            Engine::Interpreter => Made::Interpreted(interpreted::Made::new(bytes).map_err(not_taken)?),
            #[cfg(feature = "wasmtime")]
            Engine::Compiler => Made::Compiled(compiled::Made::new(bytes).map_err(not_taken)?),
        };
        let module = Module { bytes: bytes.into(), digest: Digest::of(bytes), entry, made };
        module.instance(FUEL).map_err(|why| ModuleRefused::new(why.to_string()))?;
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
        let mut instance = self.instance(fuel)?;
        let length = u32::try_from(input.len()).expect("at most 16 MiB");
        let place = instance.alloc(length).map_err(|ended| ended.told(fuel))?;
        if !instance.write(place as usize, input) {
            let why = format!("gave room for its input at {place}, outside of its memory");
            return Err(NoAnswer::Trap(why));
        }
        let packed = instance.enter(place, length).map_err(|ended| ended.told(fuel))?;
        let (place, length) = ((packed >> 32) as usize, (packed & 0xffff_ffff) as usize);
        if length > answer_max {
            return Err(NoAnswer::Trap(format!(
                "answered with {length} bytes, and {answer_max} are the most"
            )));
        }
        let mut answer = vec![0; length];
        match instance.read(place, &mut answer) {
            true => Ok(answer),
            false => Err(NoAnswer::Trap(format!("answered at {place}, outside of its memory"))),
        }
    }

    fn instance(&self, fuel: u64) -> Result<Box<dyn Instance>, NoAnswer> {
        let made: Result<Box<dyn Instance>, Unmade> = match &self.made {
            Made::Interpreted(made) => made.instance(self.entry, fuel).map(|made| Box::new(made) as _),
            #[cfg(feature = "wasmtime")]
            Made::Compiled(made) => made.instance(self.entry, fuel).map(|made| Box::new(made) as _),
        };
        made.map_err(|unmade| match unmade {
            Unmade::Ended(ended) => ended.told(fuel),
            Unmade::Lacks(what) => NoAnswer::Trap(format!("exports no {what}")),
        })
    }
}

/// The instance for one call.
trait Instance {
    /// Asks for room.
    fn alloc(&mut self, length: u32) -> Result<u32, Ended>;

    /// Calls the function that the module is for.
    fn enter(&mut self, place: u32, length: u32) -> Result<u64, Ended>;

    /// Writes to the memory, and tells whether there is such a place.
    fn write(&mut self, place: usize, bytes: &[u8]) -> bool;

    /// Reads from the memory, and tells whether there is such a place.
    fn read(&self, place: usize, out: &mut [u8]) -> bool;
}

/// Why there is no instance.
enum Unmade {
    Ended(Ended),
    /// It does not have this.
    Lacks(&'static str),
}

const LACKS_MEMORY: Unmade = Unmade::Lacks("memory that is one");
const LACKS_ALLOC: Unmade = Unmade::Lacks("alloc from one i32 to an i32");
const LACKS_ENTRY: Unmade = Unmade::Lacks("function to call from two i32 to an i64");

/// How a call ended that gave no answer.
enum Ended {
    /// The sentence that every engine has for it.
    Trap(&'static str),
    Fuel,
    Stack,
    Growth,
    /// Whatever else there may be is of one engine or of this machine.
    Engine(String),
}

impl Ended {
    const UNREACHABLE: Ended = Ended::Trap("it came to an `unreachable`");
    const MEMORY: Ended = Ended::Trap("it read or wrote outside of its memory");
    const TABLE: Ended = Ended::Trap("it looked outside of a table");
    const NULL: Ended = Ended::Trap("it called what is not there");
    const ZERO: Ended = Ended::Trap("it divided by zero");
    const OVERFLOW: Ended = Ended::Trap("a number is too large");
    const CONVERSION: Ended = Ended::Trap("it made an integer of a number that is none");
    const SIGNATURE: Ended = Ended::Trap("it called a function as another kind of function");

    fn told(self, fuel: u64) -> NoAnswer {
        NoAnswer::Limit(match self {
            Ended::Trap(why) => return NoAnswer::Trap(format!("stopped: {why}")),
            Ended::Fuel => format!("it took more than {fuel} of fuel"),
            Ended::Stack => {
                format!("its calls went deeper than {CALLS_MAX}, or took more than {STACK_SIZE_MAX} bytes")
            }
            Ended::Growth => format!(
                "it asked for more memory or tables than there are: {MEMORY_MAX} bytes, {TABLE_SIZE_MAX} elements"
            ),
            Ended::Engine(why) => format!("the engine ended it: {why}"),
        })
    }
}
