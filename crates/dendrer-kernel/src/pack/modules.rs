//! Modules that a pack names: bytes in the pack, and the engine that runs them.
//!
//! The kernel knows no engine; the caller that reads a pack brings one.
//!
//! Rule: a module that is not run gives no answer. It is never a reducer that changes nothing, or a predicate that is ok.

use std::fmt;
use std::sync::Arc;

use dendrer_object::delta::{Delta, Op};
use dendrer_object::{Code, Digest, Intent, Pointer, Value, tag};

use super::read::{At, Faults};
use crate::fold::kind;
use crate::predicate::{Program, Verdict};
use crate::reduce::{ReduceError, Reducer, ReducerInfo};
use crate::stopped::Stopped;

/// The name of the reducer that is a module, and of the engine of a predicate that is one.
pub const NAME: &str = "wasm/1";

/// The member that has a module: in a pack, and in a predicate of it.
const MEMBER: &str = "module";

/// How many bytes the modules of a pack may have together.
pub const MODULES_SIZE_MAX: usize = 4 << 20;

/// An engine for modules. Each refusal has its reason, as a sentence.
pub trait Modules {
    /// Makes a reducer of a module.
    fn reducer(&self, bytes: &[u8]) -> Result<Arc<dyn Reducer + Send + Sync>, String>;

    /// Makes of a module what judges a state.
    fn program(&self, bytes: &[u8]) -> Result<Arc<dyn Program>, String>;

    /// Makes of a module a pure function, for the nodes of graphs.
    fn function(&self, bytes: &[u8]) -> Result<Arc<dyn ModuleFunction>, String>;
}

/// A module as a pure function: equal arguments give equal values, on every machine.
pub trait ModuleFunction: fmt::Debug + Send + Sync {
    /// Calls it. The error is a sentence: what it says itself, that it trapped, or the limit that ended it.
    fn call(&self, args: &[Value]) -> Result<Value, String>;
}

/// Takes every module and runs none: for reading a pack without running it. Asking such a module gives [`Stopped`].
#[derive(Debug, Clone, Copy)]
pub struct NotRun;

impl Modules for NotRun {
    fn reducer(&self, bytes: &[u8]) -> Result<Arc<dyn Reducer + Send + Sync>, String> {
        Ok(Arc::new(Idle { bytes: bytes.into() }))
    }

    fn program(&self, bytes: &[u8]) -> Result<Arc<dyn Program>, String> {
        Ok(Arc::new(Idle { bytes: bytes.into() }))
    }

    fn function(&self, bytes: &[u8]) -> Result<Arc<dyn ModuleFunction>, String> {
        Ok(Arc::new(Idle { bytes: bytes.into() }))
    }
}

/// A module that is never run.
#[derive(Debug)]
struct Idle {
    bytes: Box<[u8]>,
}

impl Idle {
    fn stopped(&self) -> Stopped {
        let limit = "the pack was read where no engine runs modules".to_owned();
        Stopped { program: Digest::of(&self.bytes), limit }
    }
}

impl Reducer for Idle {
    fn info(&self) -> ReducerInfo<'_> {
        ReducerInfo::program(NAME)
    }

    fn reduce(&self, _before: &Value, _intent: &Intent) -> Result<Delta, ReduceError> {
        Err(self.stopped().into())
    }
}

impl ModuleFunction for Idle {
    fn call(&self, _args: &[Value]) -> Result<Value, String> {
        Err(self.stopped().to_string())
    }
}

impl Program for Idle {
    fn digest(&self) -> Digest {
        Digest::of(&self.bytes)
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn judge(&self, _state: &Value) -> Result<Verdict, Stopped> {
        Err(self.stopped())
    }
}

/// The reducer of a pack of `wasm/1`, made once for all who reduce.
pub(super) struct Made(pub(super) Arc<dyn Reducer + Send + Sync>);

impl fmt::Debug for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Made({})", self.0.name())
    }
}

/// Lists the places at which a pack names modules, with the value at each: bytes in a pack, the name of a file in the text
/// of one.
pub fn places(pack: &Value) -> Vec<(Pointer, &Value)> {
    let own = pack.get(MEMBER).map(|module| (Pointer::of([MEMBER]), module));
    let below = |member: &'static str| {
        let members =
            pack.get(member).and_then(Value::as_object).into_iter().flat_map(|members| members.iter());
        // A value that is no sound pack may have a tag here, which is one value without members.
        let members = members.filter(|(name, _)| !tag::is_tag_name(name));
        members.filter_map(move |(name, of)| Some((Pointer::of([member, name, MEMBER]), of.get(MEMBER)?)))
    };
    own.into_iter().chain(below("define")).chain(below("predicates")).collect()
}

/// A module that a pack names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedModule {
    /// Place in the pack.
    pub place: Pointer,
    /// The digest of its bytes, as `sha256sum` prints it.
    pub digest: Digest,
    /// How many bytes it has.
    pub size: usize,
}

/// Lists the modules of a pack.
pub fn named(pack: &Value) -> Vec<NamedModule> {
    let named = |(place, module): (Pointer, &Value)| {
        let bytes = tag::as_bytes(module)?;
        Some(NamedModule { place, digest: Digest::of(&bytes), size: bytes.len() })
    };
    places(pack).into_iter().filter_map(named).collect()
}

/// Returns a pack with the digest of each module in its place, for display.
pub fn without_bytes(pack: &Value) -> Value {
    let digest = |named: NamedModule| Op::set(named.place, Value::from(named.digest));
    let ops = named(pack).into_iter().map(digest).collect();
    Delta(ops).apply(pack).expect("something stands at each of these places")
}

/// Reads the modules of a pack, each at its place.
pub(super) struct Reading<'m> {
    modules: &'m dyn Modules,
    /// How many bytes they have together.
    size: usize,
}

impl<'m> Reading<'m> {
    pub(super) fn new(modules: &'m dyn Modules) -> Reading<'m> {
        Reading { modules, size: 0 }
    }

    /// Reads the module that reduces. `digest` is what the pack says of its digest.
    pub(super) fn reducer(
        &mut self,
        faults: &mut Faults,
        root: &At<'_>,
        digest: Option<&At<'_>>,
    ) -> Option<Made> {
        let modules = self.modules;
        self.make(faults, root, digest, |bytes| modules.reducer(bytes)).map(Made)
    }

    /// Reads the module of a predicate.
    pub(super) fn program(&mut self, faults: &mut Faults, predicate: &At<'_>) -> Option<Arc<dyn Program>> {
        let modules = self.modules;
        let digest = predicate.member("digest");
        self.make(faults, predicate, digest.as_ref(), |bytes| modules.program(bytes))
    }

    /// Reads the module of a function.
    pub(super) fn function(
        &mut self,
        faults: &mut Faults,
        definition: &At<'_>,
    ) -> Option<Arc<dyn ModuleFunction>> {
        let modules = self.modules;
        let digest = definition.member("digest");
        self.make(faults, definition, digest.as_ref(), |bytes| modules.function(bytes))
    }

    fn make<T>(
        &mut self,
        faults: &mut Faults,
        parent: &At<'_>,
        digest: Option<&At<'_>>,
        make: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Option<T> {
        let at = parent.member(MEMBER)?;
        let Some(bytes) = tag::as_bytes(at.value) else {
            let (message, hint) = match at.value.as_str() {
                Some(_) => (
                    "this names a file, and where the text of the pack lies is not known here".to_owned(),
                    "a module is read from beside the file of the pack",
                ),
                None => {
                    let message = format!("a module is named by its file, not by {}", kind(at.value));
                    (message, "like `module: tally.wasm`, from where the pack lies")
                }
            };
            return at.refuse(faults, message, hint);
        };
        self.size = self.size.saturating_add(bytes.len());
        if self.size > MODULES_SIZE_MAX {
            let message = format!("the modules of a pack have at most {MODULES_SIZE_MAX} bytes together");
            at.fault_of(faults, Code::E0904, message, "");
            return None;
        }
        if let Some(said) = digest {
            let found = Digest::of(&bytes);
            if said.value.as_str().and_then(|text| text.parse::<Digest>().ok()) != Some(found) {
                let message = format!("the module has the digest {found}, and not {}", said.value);
                return said.refuse(faults, message, "leave it out: the pack binds every byte of the module");
            }
        }
        match make(&bytes) {
            Ok(made) => Some(made),
            Err(why) => {
                at.fault_of(faults, Code::E0520, format!("this is not a module that is run here: {why}"), "");
                None
            }
        }
    }
}
