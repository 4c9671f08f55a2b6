//! TaskPacks: what an institution declares about a task, as data that is checked as a whole (requirements D-198).
//!
//! A pack is a value, written as YAML or JSON and read elsewhere; its digest is over the canonical JSON, so layout and
//! comments do not matter and the order of members neither. [`Pack::read`] checks everything that can be known before
//! anything runs and returns every fault at once, each with its place. Never reads a file, never runs anything.
//!
//! Rule: an unknown member is a fault, or a misspelt rule would be dropped in silence; `At::object` refuses it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

pub use dendrer_object::intent::Effect;
use dendrer_object::note::VerifierKey;
use dendrer_object::{Code, Digest, Pointer, TypeName, Value, tag};

use crate::contract::Contracts;
use crate::expr::{Budget, Env, Expr, ExprError, Scope, Span};
use crate::fold::{self, Fold, FoldReducer, Template};
use crate::ontology;
use crate::predicate::{Polarity, Predicate};
use crate::progress::ProgressPlan;
use crate::reduce::{DeltaReducer, Quantized, Reducer};
use crate::step::KERNEL_VERSION;
use crate::unknown::UnknownPlaces;
use modules::{Made, Modules, NotRun};

pub mod cases;
mod commitments;
mod contracts;
pub mod extend;
pub mod lint;
pub mod members;
mod merging;
pub mod modules;
mod obligations;
mod progress;
mod read;
pub(crate) use read::is_timed;
mod rules;
mod scopes;
#[cfg(test)]
mod tests;
pub mod writes;

/// How many bytes the text of a pack may have.
pub const TEXT_SIZE_MAX: usize = 4 << 20;

/// How many constants, definitions, fields, types, tools, rules, predicates or tests a pack may have, of each.
pub const DECLARATIONS_MAX: usize = 1000;

/// How many steps the rules of a pack may have together.
pub const STEPS_MAX: usize = 10_000;

/// How deep `each` may stand in `each`.
pub const EACH_DEPTH_MAX: usize = 2;

/// How many decimals a field may be kept to.
pub const DECIMALS_MAX: u64 = 15;

/// The `bisect_predicate` of a predicate that bisect lifts: it finds the first violation, whatever comes after it.
pub const MONOTONE_LIFT: &str = "monotone_lift";

const DIGEST_TAG: &[u8] = b"dendrer/pack/v1\n";

/// A pack that was checked.
#[derive(Debug)]
#[non_exhaustive]
pub struct Pack {
    /// Its name, like `acme.logistics`.
    pub name: Arc<str>,
    /// Its version, like `v1`.
    pub version: Arc<str>,
    /// The purpose, in words.
    pub words: Option<Arc<str>>,
    /// The goal of a run that is begun with it and does not say another.
    pub goal: Option<Arc<str>>,
    /// The policy rules that every state of a run under it must keep.
    pub policy: Vec<Value>,
    /// The engine that changes the state.
    pub engine: PackEngine,
    /// The members of the state, by name.
    pub fields: Vec<PackField>,
    /// The transition types it adds to the ontology, with what they mean.
    pub types: BTreeMap<TypeName, Option<Arc<str>>>,
    /// The tools of the task, by name.
    pub tools: Vec<Tool>,
    /// How many effects of a graph are asked at once.
    pub concurrency: u64,
    /// The predicates, by name.
    pub predicates: Vec<Declared>,
    /// The obligations, in the order of the pack.
    pub obligations: Vec<Declared>,
    /// The progress contracts, which score a state, in the order of the pack.
    pub progress_contracts: Vec<Declared>,
    /// The plan of the composite progress signal.
    pub progress: Option<ProgressPlan>,
    /// The contracts: the needs of transition types of the state.
    pub contracts: Contracts,
    /// The approvers of an extension of the contracts, with the keys that they sign with.
    pub approvers: Vec<(Arc<str>, VerifierKey)>,
    /// Small transcripts with what must come out.
    pub cases: Vec<cases::Case>,
    /// The names that the constants and definitions give, for people: `name` or `name(a, b)`.
    pub named: Vec<String>,
    pub(crate) fold: Arc<Fold>,
    /// The module that reduces; `None` for another engine.
    module: Option<Made>,
    scope: Scope,
    value: Value,
    digest: Digest,
    /// Faults that keep a text, and no record, from being a pack.
    of_new: Vec<PackFault>,
}

dendrer_object::words! {
    /// The engine that changes the state under a pack.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum PackEngine {
        /// `fold/1`: the rules of the pack.
        Fold = fold::NAME,
        /// `delta/1`: what each intent proposes.
        Delta = "delta/1",
        /// `wasm/1`: the module of the pack. It may read and write all of the state but what is the kernel's.
        Wasm = modules::NAME,
    }
}

/// A declared member of the state.
#[derive(Debug)]
pub struct PackField {
    /// Its name, as it is written.
    pub name: Arc<str>,
    /// The meaning, in words.
    pub words: Option<Arc<str>>,
    /// How many decimals its number is kept to.
    pub decimals: Option<u8>,
    /// Which rules write below it, by number from 1.
    pub written_by: Vec<usize>,
    /// The types and authors that may write it from stage 2 on; any, if none is named.
    pub writers: Vec<Arc<str>>,
    /// How a merge makes one list of two in it; without it a list is one value.
    pub combine: Option<Combine>,
    /// The initial value. Without it a field begins with what the run is given under its name, and is absent if that is
    /// nothing.
    init: Option<Template>,
}

impl PackField {
    /// Returns the name under which the state has it: a `$` in front is doubled there.
    pub fn stored(&self) -> Arc<str> {
        tag::stored_name(&self.name)
    }

    /// Whether every run begins with a value of it.
    pub fn has_init(&self) -> bool {
        self.init.is_some()
    }
}

dendrer_object::words! {
    /// How a merge makes one list of those that several sources changed (design, section 4).
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Combine {
        /// As a set: what any source added is in it, what any source removed is not.
        Set = "set",
        /// As a journal: what each source appended behind the last common record follows it.
        Append = "append",
    }
}

/// A declared tool.
#[derive(Debug)]
pub struct Tool {
    /// Its name, as calls name it.
    pub name: Arc<str>,
    /// The effect on the world; `None` of a tool that is declared for how it fails alone, which counts as effectful.
    pub effect: Option<Effect>,
    /// The purpose, in words.
    pub words: Option<Arc<str>>,
    /// When a result of it says that the call failed, over the transition as `t`.
    pub failed: Option<Expr>,
    /// The places where a call names files; empty for a tool that names none.
    pub files: Option<Vec<Arc<str>>>,
    /// How long an answer of it is waited for in the run of a graph, in milliseconds.
    pub timeout: Option<u64>,
    /// Whether its command prints JSON, so that any other text is a failure; that of a host function does.
    pub is_json: bool,
}

impl Tool {
    /// The class that it counts as.
    pub fn class(&self) -> Effect {
        self.effect.unwrap_or(Effect::Effectful)
    }
}

/// The rules of a pack for a transition type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Governed {
    /// Whether the pack registers it; otherwise it is a type of the ontology.
    pub registered: bool,
    /// The rules that are for it, by number from 1. A rule that names no type is for every type.
    pub rules: Vec<usize>,
}

/// A declared predicate.
#[derive(Debug)]
pub struct Declared {
    /// The predicate.
    pub predicate: Predicate,
    /// The meaning, for people.
    pub words: Option<Arc<str>>,
    /// Whether it is a violation of the contract, which the door looks for (dendrer paper 4.4, pillar 4).
    pub is_violation: bool,
}

/// Something wrong in a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackFault {
    /// The code under which `dendrer explain` knows it.
    pub code: Code,
    /// Place in the pack.
    pub path: Pointer,
    /// Whether it is about the name of the member there and not about its value.
    pub at_name: bool,
    /// Span in the text at `path`.
    pub span: Option<Span>,
    /// One sentence.
    pub message: String,
    /// The text to write instead.
    pub hint: Option<String>,
    /// Whether only a pack that is read from a text has this fault: a recorded pack with it stays readable.
    pub is_of_new: bool,
}

impl fmt::Display for PackFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.as_str().is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path.dotted(), self.message)
        }
    }
}

/// The initial state cannot be computed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("state.{field} cannot begin: {why}")]
pub struct InitError {
    /// The field.
    pub field: Arc<str>,
    /// The fault that `init` met.
    pub why: String,
}

/// The values that the initial state is computed from.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// The state that was given; empty if none was.
    pub s0: Option<Value>,
    /// The metadata of the run.
    pub meta: Option<Value>,
    /// The inputs of the run.
    pub inputs: Option<Value>,
}

impl Pack {
    /// Checks a pack. Returns every fault that was found, in the order of the text as far as canonical order keeps it.
    ///
    /// Modules that it names are taken as they are and not run: what asks one is stopped. Who reduces or judges with the
    /// pack brings an engine: [`Pack::read_with`].
    pub fn read(value: &Value) -> Result<Pack, Vec<PackFault>> {
        Pack::read_by(value, KERNEL_VERSION)
    }

    /// As [`Pack::read`], by the rules of a version of the kernel: those of the run that the pack is read for.
    pub fn read_by(value: &Value, version: u64) -> Result<Pack, Vec<PackFault>> {
        read::read(value, &NotRun, version)
    }

    /// As [`Pack::read`], with what runs the modules that it names. Each is made once, here.
    ///
    /// By the rules of a version of the kernel, as [`Pack::read_by`].
    pub fn read_with(value: &Value, modules: &dyn Modules, version: u64) -> Result<Pack, Vec<PackFault>> {
        read::read(value, modules, version)
    }

    /// The digest that names the pack.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The faults that a pack on record may have, and one that is read from a text may not.
    pub fn faults_of_new(&self) -> &[PackFault] {
        &self.of_new
    }

    /// The pack as a value.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The reducer that the pack binds.
    pub fn reducer(&self) -> Box<dyn Reducer + Send + Sync> {
        if self.module.is_none() && self.engine == PackEngine::Fold {
            return Box::new(FoldReducer(Arc::clone(&self.fold)));
        }
        let fields = self.fields.iter();
        let decimals = fields.filter_map(|field| Some((field.stored(), field.decimals?))).collect();
        let reducer =
            self.module.as_ref().map_or_else(|| Arc::new(DeltaReducer) as _, |module| Arc::clone(&module.0));
        Box::new(Quantized::new(reducer, decimals))
    }

    /// The digest of the module that reduces, where one does.
    pub fn module(&self) -> Option<Digest> {
        let bytes = self.value.get("module").and_then(dendrer_object::tag::as_bytes)?;
        Some(Digest::of(&bytes))
    }

    /// Everything that may be asked of a run by name: predicates, obligations, progress contracts.
    pub fn declared(&self) -> impl Iterator<Item = &Declared> {
        self.predicates.iter().chain(&self.obligations).chain(&self.progress_contracts)
    }

    /// Returns the predicate, obligation or progress contract of this name, which may stand behind the name of the pack: `acme.orders/paid`.
    pub fn predicate(&self, name: &str) -> Option<&Predicate> {
        let within = name.strip_prefix(&*self.name).and_then(|rest| rest.strip_prefix('/'));
        let named = |name: &str| {
            self.declared().map(|declared| &declared.predicate).find(|predicate| predicate.name() == name)
        };
        named(name).or_else(|| within.and_then(named))
    }

    /// The top members of the state that rules write which read the status of a result, or what such rules write.
    pub fn reads_status(&self) -> BTreeSet<Arc<str>> {
        let mut found: BTreeSet<Arc<str>> = BTreeSet::new();
        loop {
            let before = found.len();
            for rule in &self.fold.rules {
                let mut reads = false;
                rule.for_each_expr(&mut |expr| {
                    let of_state =
                        |place: &Pointer| place.tokens().next().is_none_or(|top| found.contains(&*top));
                    reads |= reads_status(expr)
                        || expr.read_set().iter().any(of_state)
                        || ["before", "state"].iter().any(|root| expr.reads_of(root).iter().any(of_state));
                });
                if reads {
                    rule.for_each_target(&mut |target| _ = found.insert(Arc::clone(&target.field)));
                }
            }
            if found.len() == before {
                return found;
            }
        }
    }

    /// Returns the declared effect of a tool; `None` for one that is not declared, which counts as effectful.
    pub fn effect_of(&self, tool: &str) -> Option<Effect> {
        self.tools.iter().find(|declared| &*declared.name == tool)?.effect
    }

    /// Reads an expression over the state of a run with this pack, in which the constants and definitions of the pack
    /// are known.
    pub fn expression(&self, polarity: Polarity, text: &str) -> Result<Predicate, ExprError> {
        let expr = Expr::parse_condition(text, &self.scope)?;
        Ok(Predicate::under(self.digest(), polarity, expr))
    }

    /// Holds an expression that makes sense without a pack against what this one declares: the fields of the state, and
    /// how many decimals they have. A pack of `delta/1` or `wasm/1` declares only some of the fields that are written.
    pub fn check_expression(&self, text: &str) -> Result<(), ExprError> {
        match Expr::parse_condition(text, &self.scope) {
            Err(error) if error.code != Code::E0505 || self.engine == PackEngine::Fold => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the names for expressions over the state: the constants, definitions and fields of the pack.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Tells whether the pack governs a transition type: it registers it, or has a rule for it (dendrer paper 4.4).
    pub fn governs(&self, type_name: &TypeName) -> bool {
        let is_known = ontology::class_of(type_name.as_str()).is_some();
        self.types.contains_key(type_name) || is_known && !self.rules_for(type_name).is_empty()
    }

    /// Lists every transition type that the pack governs, with what it says about it.
    pub fn governed(&self) -> BTreeMap<TypeName, Governed> {
        let known = ontology::TYPES.iter().filter_map(|(name, _)| name.parse().ok());
        let types = known.chain(self.types.keys().cloned()).filter(|type_name| self.governs(type_name));
        let says = |type_name: TypeName| {
            let registered = self.types.contains_key(&type_name);
            let rules = self.rules_for(&type_name);
            (type_name, Governed { registered, rules })
        };
        types.map(says).collect()
    }

    /// The rules that name no transition type and so are for every one, by number from 1.
    pub fn rules_for_all(&self) -> Vec<usize> {
        self.rules_that(|types| types.is_none())
    }

    fn rules_for(&self, type_name: &TypeName) -> Vec<usize> {
        if !ontology::asks_rules(type_name) {
            return Vec::new();
        }
        self.rules_that(|types| types.is_none_or(|types| types.contains(type_name)))
    }

    fn rules_that(&self, fits: impl Fn(Option<&BTreeSet<TypeName>>) -> bool) -> Vec<usize> {
        (1..)
            .zip(&self.fold.rules)
            .filter(|(_, rule)| fits(rule.types.as_ref()))
            .map(|(number, _)| number)
            .collect()
    }

    /// The top members of the state that rules for a type write which read the output of its result.
    pub fn written_from_output(&self, type_name: &TypeName) -> BTreeSet<Arc<str>> {
        let output = Pointer::of(["result", "output"]);
        let mut found = BTreeSet::new();
        let is_for = |types: Option<&BTreeSet<TypeName>>| types.is_none_or(|types| types.contains(type_name));
        for rule in self.fold.rules.iter().filter(|rule| is_for(rule.types.as_ref())) {
            let mut reads = false;
            rule.for_each_expr(&mut |expr| {
                reads |= expr.reads_of("t").iter().any(|place| place.overlaps(&output));
            });
            if reads {
                rule.for_each_target(&mut |target| _ = found.insert(Arc::clone(&target.field)));
            }
        }
        found
    }

    /// How many rules there are.
    pub fn rules(&self) -> usize {
        self.fold.rules.len()
    }

    /// Returns the name of each rule in messages, in order: `rule 2 "a booking"`.
    pub fn rule_names(&self) -> impl Iterator<Item = &str> {
        self.fold.rules.iter().map(|rule| rule.place.as_str())
    }

    /// The places of the state that the rules can look at, sorted, none below another.
    pub fn rules_read(&self) -> Vec<Pointer> {
        let mut places = Vec::new();
        self.fold.for_each_expr(&mut |expr| {
            places.extend(expr.read_set().iter().chain(expr.reads_of("before")).cloned());
        });
        // Looking for the first item of a list reads the list.
        for rule in &self.fold.rules {
            rule.for_each_target(&mut |target| {
                if target.searches() {
                    places.push(Pointer::of([&*target.field]));
                }
            });
        }
        Pointer::outermost(places)
    }

    /// Computes the state with which a run begins.
    pub fn init(&self, origin: &Origin) -> Result<Value, InitError> {
        let empty = Value::object();
        let given = |value: &Option<Value>| value.clone().unwrap_or_else(|| empty.clone());
        let (s0, meta, inputs) = (given(&origin.s0), given(&origin.meta), given(&origin.inputs));
        let others = [("s0", &s0), ("meta", &meta), ("inputs", &inputs)];
        let env = Env { others: &others, ..Env::of(&empty) };
        let mut budget = Budget::new(fold::EVALUATION_STEPS_MAX);
        let mut members = Vec::with_capacity(self.fields.len());
        let mut size = 0u64;
        for field in &self.fields {
            let fail = |why: String| InitError { field: Arc::clone(&field.name), why };
            let mut value = match &field.init {
                Some(init) => {
                    fold::compute(init, &env, &mut budget).map_err(|error| fail(fold::say(error).message))?
                }
                None => match s0.get(&field.stored()) {
                    Some(given) => given.clone(),
                    None => continue,
                },
            };
            if let Some(decimals) = field.decimals {
                value = fold::quantize(value, decimals).map_err(fail)?;
            }
            size = size.saturating_add(value.size());
            if size > fold::STATE_SIZE_MAX {
                let most = fold::STATE_SIZE_MAX;
                return Err(fail(format!("the state would have more than {most} bytes")));
            }
            members.push((field.stored(), value));
        }
        Ok(Value::record(members))
    }

    /// Returns the fields that begin unknown because their `init` may read an unknown place of s0.
    pub fn begins_unknown(&self, s0: &UnknownPlaces) -> UnknownPlaces {
        let mut unknown = UnknownPlaces::default();
        for field in self.fields.iter().filter(|_| !s0.is_empty()) {
            let place = Pointer::of([&*field.stored()]);
            let Some(init) = &field.init else {
                if let Some((_, since)) = s0.meets(&place) {
                    unknown.mark(place, 0, &since.code);
                }
                continue;
            };
            init.for_each_expr(&mut |expr| {
                for (_, since) in expr.reads_of("s0").iter().filter_map(|read| s0.meets(read)) {
                    unknown.mark(place.clone(), 0, &since.code);
                }
            });
        }
        unknown
    }
}

/// Returns the digest of a pack as a value.
pub fn digest(value: &Value) -> Digest {
    Digest::of_parts(&[DIGEST_TAG, &dendrer_object::json::to_vec(value)])
}

/// Returns the contracts of a recorded pack, without checking the rest of it.
pub(crate) fn contracts_of(value: &Value) -> Contracts {
    contracts::of_checked(value)
}

/// Whether an expression can look at the status of a result.
pub fn reads_status(expr: &Expr) -> bool {
    let status = Pointer::of(["result", "status"]);
    expr.reads_of("t").iter().any(|place| place.overlaps(&status))
}

/// Returns who may write each field that a recorded pack says it of, without checking the rest of it.
pub(crate) fn writers_of(value: &Value) -> impl Iterator<Item = (Arc<str>, Vec<Arc<str>>)> {
    let fields = value.get("state").and_then(Value::as_object);
    fields.into_iter().flat_map(|fields| fields.iter()).filter_map(|(name, field)| {
        let writers = field.get("writers")?.as_array()?.iter().filter_map(Value::as_str).map(Arc::from);
        Some((Arc::clone(name), writers.collect()))
    })
}

/// Returns the class of each tool that a recorded pack declares, without checking the rest of it.
pub(crate) fn effects_of(value: &Value) -> impl Iterator<Item = (Arc<str>, Effect)> {
    let tools = value.get("tools").and_then(Value::as_object);
    tools.into_iter().flat_map(|tools| tools.iter()).filter_map(|(name, tool)| {
        Some((Arc::clone(name), Effect::from_word(tool.get("effect")?.as_str()?)?))
    })
}

/// Whether a recorded pack says of a tool how it fails.
pub(crate) fn says_how_tools_fail(value: &Value) -> bool {
    let tools = value.get("tools").and_then(Value::as_object);
    tools.into_iter().flat_map(|tools| tools.iter()).any(|(_, tool)| tool.get("failed").is_some())
}

/// Returns the transition types that a recorded pack registers, without checking the rest of it.
pub(crate) fn registered(value: &Value) -> impl Iterator<Item = TypeName> {
    let types = value.get("types").and_then(Value::as_object);
    types.into_iter().flat_map(|types| types.iter()).filter_map(|(name, _)| name.parse().ok())
}

/// A pack as a run binds it: the value that decides, and the text that people wrote.
#[derive(Debug, Clone)]
pub struct Bound {
    /// The pack as a value.
    pub value: Value,
    /// The text it was read from.
    pub text: Arc<str>,
}
