//! Transition contracts: what of the committed state a transition type needs, and what its justification binds
//! (dendrer paper 4.4).
//!
//! Layer 1 is [`Contract::check`]: required fields, looked at before a commit, by the kernel alone. Layer 2 is
//! [`Contract::context`]: a hash over the values of those fields, so that a justification cannot be carried into a state in
//! which they are others. [`check_import`] compares both for a transition that is to be imported.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use dendrer_object::digest::Messages;
use dendrer_object::number::{Number, round_half_even};
use dendrer_object::pointer::array_index;
use dendrer_object::record::Seed;
use dendrer_object::{Code, Digest, Intent, Pointer, TypeName, Value, json, marker, tag};

use crate::expr::{Budget, Env, EvalError, Expr, Truth, is_datetime};
use crate::sealed::{Met, fact, told, with_code};
use crate::unknown;

/// The member of an intent's `intent` in which a model may name further fields that it looked at.
pub const DECLARED: &str = "declared_deps";

/// The field of a transition that holds its context.
pub const CONTEXT: &str = "context";

/// The requirements of a pack on one transition type.
#[derive(Debug, Clone)]
pub struct Contract {
    /// The type.
    pub type_name: TypeName,
    /// The purpose, in words.
    pub words: Option<Arc<str>>,
    /// The fields that the state before must have, in order of names; includes the fields that seed the hash.
    pub required: Vec<Required>,
    /// The names of the fields that the hash binds in any case, and that an import compares.
    pub seeds: Vec<Arc<str>>,
    /// The names of further fields that a model may say it looked at.
    pub advisory: Vec<Arc<str>>,
    /// How an import compares a field, where that is not as for all.
    pub matches: BTreeMap<Arc<str>, Match>,
    /// The digest of what the pack says.
    pub digest: Digest,
}

/// A field that must stand in the state.
#[derive(Debug, Clone, PartialEq)]
pub struct Required {
    /// Its name: a path of the state with dots.
    pub name: Arc<str>,
    /// The kind of value.
    pub kind: ValueKind,
    /// To how many decimals a number counts.
    pub precision: Option<u8>,
    /// Whether null will do. The field must be there in any case: null is a value.
    pub nullable: bool,
    path: Pointer,
    /// The names on the way, each with its SHA-256: a state finds its members by that, and the door asks at every step.
    names: Vec<(Arc<str>, Digest)>,
}

impl Required {
    /// A field that must be there, whatever it is but null.
    pub fn new(name: &str) -> Required {
        let path = path_of(name);
        let names = path.tokens().map(|token| (Arc::from(&*token), Digest::of(token.as_bytes()))).collect();
        Required { name: name.into(), kind: ValueKind::Any, precision: None, nullable: false, path, names }
    }

    /// The value of the field in a state.
    fn find<'v>(&self, state: &'v Value) -> Option<&'v Value> {
        self.find_in_turn(state, &mut 0)
    }

    /// As [`Required::find`], for all fields of a contract one after the other: `next` is 0 at first.
    fn find_in_turn<'v>(&self, state: &'v Value, next: &mut usize) -> Option<&'v Value> {
        let ((first, digest), below) = self.names.split_first()?;
        let member = state.as_object()?.get_in_turn(first, digest, next)?;
        below.iter().try_fold(member, |value, (name, digest)| match value {
            Value::Object(object) => object.get_hashed(name, digest),
            Value::Array(array) => array.get(array_index(name)?),
            _ => None,
        })
    }

    /// The value as the contract counts it: all decimals beyond the precision are rounded away.
    fn counted<'v>(&self, value: &'v Value) -> Cow<'v, Value> {
        let number = self.precision.zip(value.as_number());
        // An integer beyond a double has no decimals to lose.
        let rounded = number
            .and_then(|(decimals, number)| Number::from_f64(round_half_even(number.as_f64()?, decimals)));
        rounded.map_or(Cow::Borrowed(value), |number| Cow::Owned(Value::Number(number)))
    }
}

dendrer_object::words! {
    /// Kinds of value, with the word of a pack.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ValueKind {
        /// Anything.
        Any = "any",
        /// Text.
        Text = "string",
        /// A number.
        Number = "number",
        /// A number without decimals.
        Integer = "integer",
        /// True or false.
        Bool = "bool",
        /// A list.
        List = "list",
        /// A map.
        Map = "map",
        /// A time with its offset, as RFC 3339 writes it.
        Datetime = "datetime",
    }
}

impl ValueKind {
    /// Reads the word of a pack; two are those of the paper.
    pub fn parse(text: &str) -> Option<ValueKind> {
        match text {
            "float" => Some(ValueKind::Number),
            "boolean" => Some(ValueKind::Bool),
            word => ValueKind::from_word(word),
        }
    }

    /// Names the kind in a sentence.
    pub fn described(self) -> &'static str {
        match self {
            ValueKind::Datetime => "a time with its offset, like 2026-02-23T17:21:05+01:00",
            kind => kind.as_str(),
        }
    }

    fn takes(self, value: &Value) -> bool {
        match self {
            ValueKind::Any => true,
            ValueKind::Text => value.as_str().is_some(),
            ValueKind::Number => value.as_number().is_some(),
            ValueKind::Integer => value.as_number().is_some_and(|n| n.is_big() || n.as_i64().is_some()),
            ValueKind::Bool => value.as_bool().is_some(),
            ValueKind::List => value.as_array().is_some(),
            ValueKind::Map => value.as_object().is_some(),
            ValueKind::Datetime => value.as_str().is_some_and(is_datetime),
        }
    }
}

/// How an import compares a field of both states.
#[derive(Debug, Clone)]
pub enum Match {
    /// The values must be equal, after quantization. A field that seeds the hash is compared this way if the contract names no
    /// way.
    Equal,
    /// The field must be there. A field that is required and seeds nothing is compared this way if the contract names no way.
    Present,
    /// An expression over `source` and `target`, the two states, must be true.
    Holds(Expr),
}

/// A required field that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// The field.
    pub name: Arc<str>,
    /// The fault.
    pub why: LackKind,
}

/// The fault of a required field.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", told(&self.sealed()))]
pub enum LackKind {
    /// Its place is unknown.
    Unknown,
    /// It is not in the state.
    Missing,
    /// It is null, and the contract does not let it be.
    Null,
    /// It is of another kind.
    Kind {
        /// Kind of the value.
        found: &'static str,
        /// Kind that the contract requires.
        wanted: String,
    },
}

impl LackKind {
    /// Returns what is put on record of it ([`crate::sealed`]).
    pub fn sealed(&self) -> Value {
        match self {
            LackKind::Unknown => fact("field_unknown", []),
            LackKind::Missing => fact("field_missing", []),
            LackKind::Null => fact("field_null", []),
            LackKind::Kind { found, wanted } => {
                fact("field_kind", [("found", Value::from(*found)), ("wanted", Value::from(&**wanted))])
            }
        }
    }
}

impl Lack {
    /// Returns what is put on record of it ([`crate::sealed`]).
    pub fn sealed(&self) -> Value {
        fact("field", [("name", Value::String(Arc::clone(&self.name))), ("why", self.why.sealed())])
    }
}

/// A justification: which values of the state an action was decided on.
#[derive(Debug, Clone, PartialEq)]
pub struct Context {
    /// The fields that are bound beside the required ones, because the model named them and the pack lets it; in order.
    pub advisory: Vec<Arc<str>>,
    /// Fields that the model named and that the pack does not let it name, or that are not there.
    pub ignored: Vec<Arc<str>>,
    /// The hash over type, action, contract and salted commitments to the values.
    pub hash: Digest,
}

/// The contracts of a pack, and which they are.
#[derive(Debug, Clone, Default)]
pub struct Contracts {
    /// The pack's name.
    pub name: Arc<str>,
    /// The pack's version.
    pub version: Arc<str>,
    /// By type.
    pub types: BTreeMap<TypeName, Contract>,
}

impl Contract {
    /// Looks whether the committed state has what the type requires (layer 1). Nothing that a model says is looked at.
    pub fn check(&self, state: &Value) -> Vec<Lack> {
        let mut next = 0;
        let is_incomplete = unknown::is_incomplete(state);
        let lack = |required: &Required| {
            let why = match required.find_in_turn(state, &mut next) {
                _ if is_incomplete && unknown::meets(state, &required.path).is_some() => LackKind::Unknown,
                None => LackKind::Missing,
                Some(Value::Null) if required.nullable => return None,
                Some(Value::Null) => LackKind::Null,
                Some(value) if required.kind.takes(value) => return None,
                Some(value) => {
                    LackKind::Kind { found: value.type_name(), wanted: required.kind.described().to_owned() }
                }
            };
            Some(Lack { name: Arc::clone(&required.name), why })
        };
        self.required.iter().filter_map(lack).collect()
    }

    /// Binds an intent to the values it was decided on (layer 2). For a state that passed [`Contract::check`].
    pub fn context(&self, of: &Contracts, intent: &Intent, state: &Value, seed: Seed) -> Context {
        let is_required = |name: &str| self.required.iter().any(|required| &*required.name == name);
        let (mut advisory, mut ignored): (Vec<Arc<str>>, Vec<Arc<str>>) = (Vec::new(), Vec::new());
        for name in declared(intent).into_iter().filter(|name| !is_required(name)) {
            match self.advisory.iter().find(|allowed| &***allowed == name && is_known(state, name)) {
                Some(name) => advisory.push(Arc::clone(name)),
                None => ignored.push(name.into()),
            }
        }
        let mut next = 0;
        let digests =
            commitments(seed, self.required.len() + advisory.len(), |at, out| match self.required.get(at) {
                Some(required) => {
                    let value = required.find_in_turn(state, &mut next).unwrap_or(&Value::Null);
                    json::write(&required.counted(value), out);
                }
                None => {
                    let value = find(state, &advisory[at - self.required.len()]);
                    value.into_iter().for_each(|value| json::write(value, out));
                }
            });
        let hash = self.hash(of, intent, &advisory, &digests);
        Context { advisory, ignored, hash }
    }

    fn hash(&self, of: &Contracts, intent: &Intent, advisory: &[Arc<str>], digests: &[Digest]) -> Digest {
        let mut bytes = Vec::with_capacity(1024 + 32 * digests.len());
        bytes.extend_from_slice(b"dendrer/context/v1\n");
        digests.iter().for_each(|digest| bytes.extend_from_slice(&digest.0));
        // An object with its members in canonical order.
        let action = intent.member("action").unwrap_or(&Value::Null);
        bytes.extend_from_slice(b"{\"action\":");
        json::write(action, &mut bytes);
        bytes.extend_from_slice(b",\"advisory\":");
        json::write(&names(advisory), &mut bytes);
        let texts = [
            (&b",\"contract\":"[..], &*self.digest.to_string()),
            (b",\"name\":", &of.name),
            (b",\"type\":", intent.type_name.as_str()),
            (b",\"version\":", &of.version),
        ];
        for (name, text) in texts {
            bytes.extend_from_slice(name);
            json::write_string(text, &mut bytes);
        }
        bytes.push(b'}');
        Digest::of(&bytes)
    }
}

/// How many names of fields a model may give; what comes behind is not looked at.
const DECLARED_MAX: usize = 256;

/// Returns the fields that a model declares it read, beyond those the contract requires; each name once, in order.
fn declared(intent: &Intent) -> BTreeSet<&str> {
    let declared = intent.member("intent").and_then(|intent| intent.get(DECLARED));
    let names =
        declared.and_then(Value::as_array).into_iter().flat_map(|list| list.iter().take(DECLARED_MAX));
    names.filter_map(Value::as_str).collect()
}

/// Returns the place of a field, `outer.inner` for one inside a map.
pub(crate) fn path_of(name: &str) -> Pointer {
    let names: Vec<Arc<str>> = name.split('.').map(tag::stored_name).collect();
    Pointer::of(names.iter().map(|name| &**name))
}

impl Contract {
    /// How an import compares a field: `equal`, `present`, or the expression.
    pub fn rule(&self, name: &str) -> &str {
        match self.matches.get(name) {
            Some(Match::Holds(expr)) => expr.text(),
            Some(Match::Equal) => "equal",
            Some(Match::Present) => "present",
            None if self.seeds.iter().any(|seed| &**seed == name) => "equal",
            None => "present",
        }
    }

    /// Finds the first field that an intent was decided on and that has another value, as the contract counts it: what is
    /// required, and what the model named and the pack lets it name.
    pub fn differing(&self, intent: &Intent, then: &Value, now: &Value) -> Option<Pointer> {
        let required = self.required.iter().find(|required| {
            let counted = |state| required.find(state).map(|value| required.counted(value));
            counted(then) != counted(now)
        });
        required.map(|required| required.path.clone()).or_else(|| self.named_differing(intent, then, now))
    }

    /// Finds the first field that has another value of those that the model named and the pack lets it name.
    pub fn named_differing(&self, intent: &Intent, then: &Value, now: &Value) -> Option<Pointer> {
        let declared = declared(intent);
        let allowed = self.advisory.iter().filter(|name| declared.contains(&***name));
        allowed.map(|name| path_of(name)).find(|path| path.get(then) != path.get(now))
    }
}

/// The value of a field; its name is a path with dots.
fn find<'v>(state: &'v Value, name: &str) -> Option<&'v Value> {
    path_of(name).get(state)
}

/// Whether there is anything in an advisory field. Null says that nothing is known.
fn is_known(state: &Value, name: &str) -> bool {
    find(state, name).is_some_and(|value| *value != Value::Null)
}

/// Commits to each value, under a salt of its own that follows from the seed of the record: with that, it is erased. Which
/// field a value is of follows from its place, which the contract and the names of the others fix.
fn commitments(seed: Seed, count: usize, mut write: impl FnMut(usize, &mut Vec<u8>)) -> Vec<Digest> {
    let own = Digest::of_parts(&[b"dendrer/context-salt/v1\n", &seed.0]);
    let own = Seed(own.0[..16].try_into().expect("16 of 32 bytes"));
    // All in one buffer: the door does this at every step.
    let mut messages = Messages::with_capacity(count * 64, count);
    for (at, salt) in own.salts(count).iter().enumerate() {
        messages.push(|out| {
            out.extend_from_slice(b"dendrer/context-field/v1\n");
            out.extend_from_slice(&salt.0);
            write(at, out);
        });
    }
    messages.digests()
}

fn names(names: &[Arc<str>]) -> Value {
    Value::array(names.iter().map(|name| Value::String(Arc::clone(name))))
}

/// The names of what a context has, made once.
static NAMES: LazyLock<[Arc<str>; 5]> =
    LazyLock::new(|| ["advisory", "contract", "hash", "ignored", "version"].map(Arc::from));

impl Context {
    /// Writes the context as a transition holds it.
    pub fn to_value(&self, of: &Contracts) -> Value {
        let [advisory, contract, hash, ignored, version] = &*NAMES;
        let mut members = vec![
            (Arc::clone(contract), Value::String(Arc::clone(&of.name))),
            (Arc::clone(hash), Value::from(self.hash)),
            (Arc::clone(version), Value::String(Arc::clone(&of.version))),
        ];
        let lists = [(advisory, &self.advisory), (ignored, &self.ignored)];
        members.extend(
            lists
                .into_iter()
                .filter(|(_, list)| !list.is_empty())
                .map(|(name, list)| (Arc::clone(name), names(list))),
        );
        Value::record(members)
    }
}

/// One side of an import.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// The state: before the transition at the source, at the tip in the target.
    pub state: &'a Value,
    /// The contracts in force.
    pub contracts: &'a Contracts,
    /// The pack in force. Rules for imports and violations depend on all of it.
    pub pack: Option<Digest>,
    /// Whether contracts are enforced there.
    pub enforced: bool,
}

/// Evidence for an import.
#[derive(Debug, Clone)]
pub struct Import<'a> {
    /// The intent to import.
    pub intent: &'a Intent,
    /// The context that its record holds, if any.
    pub context: Option<&'a Value>,
    /// The seed of its record.
    pub seed: Option<Seed>,
}

/// The result of checking an import, step by step. After a refusal the later steps are not run.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked {
    /// The names and versions of the contracts: of the source, and of the target.
    pub contracts: [(Arc<str>, Arc<str>); 2],
    /// The fields, in order of names.
    pub fields: Vec<FieldCheck>,
    /// The hash of the source, once it was made again.
    pub hash: Option<Digest>,
    /// Fields that the model said it looked at and that the target does not have: told, and no reason to refuse.
    pub advisory: Vec<Arc<str>>,
    /// Why it is refused; nothing where it may be imported.
    pub refused: Option<ImportRefused>,
}

/// How a field compares.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldCheck {
    /// The field.
    pub name: Arc<str>,
    /// How it is compared: `equal`, `present`, or the expression.
    pub rule: Arc<str>,
    /// Its value in the source.
    pub source: Option<Value>,
    /// Its value in the target.
    pub target: Option<Value>,
    /// The reason why the field does not fit; `None` if it fits.
    pub wrong: Option<FieldFault>,
}

/// Why a field of the target does not fit an import.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", told(&self.sealed()))]
pub enum FieldFault {
    /// The target lacks it.
    #[error("{0}")]
    Lack(LackKind),
    /// Its place is unknown in the source.
    UnknownInSource,
    /// The values differ.
    Differs,
    /// The values are redacted, without tags that can be compared.
    Redacted,
    /// The rule of the contract is false.
    RuleFalse,
    /// The rule of the contract cannot be judged.
    #[error("the rule cannot be judged: {0}")]
    RuleUnjudged(Met),
    /// The rule takes too many steps.
    RuleTooLong,
}

impl FieldFault {
    /// Returns what is put on record of it ([`crate::sealed`]).
    pub fn sealed(&self) -> Value {
        match self {
            FieldFault::Lack(lack) => lack.sealed(),
            FieldFault::UnknownInSource => fact("field_unknown_in_source", []),
            FieldFault::Differs => fact("field_differs", []),
            FieldFault::Redacted => fact("field_redacted", []),
            FieldFault::RuleFalse => fact("rule_false", []),
            FieldFault::RuleUnjudged(met) => fact("rule_unjudged", met.sealed()),
            FieldFault::RuleTooLong => fact("rule_too_long", []),
        }
    }
}

/// Why a transition is not imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", told(&self.sealed()))]
pub enum ImportRefused {
    /// One of the two sides has no contract for the type, so nothing says what it needs.
    NoContract(&'static str, TypeName),
    /// The contracts are not the same. Fields were not compared.
    ContractsDiffer {
        /// The contract of the source.
        source_contract: Box<ContractSide>,
        /// The contract of the target.
        target_contract: Box<ContractSide>,
    },
    /// The record holds no context: it was recorded at a stage that makes none.
    NoContext,
    /// The target was recorded at a stage that enforces no contract.
    NotEnforced,
    /// The import would violate a predicate of the contract, or one that cannot be judged.
    Violates(Vec<Arc<str>>),
    /// The door of the target turned it down.
    #[error("{message}")]
    AtTheDoor {
        /// The code.
        code: Code,
        /// The reason, in words.
        message: String,
        /// The reason, as it is put on record ([`crate::step::Reason::sealed`]).
        sealed: Value,
    },
    /// The hash covers a value that was erased or withheld, or is not that of the source state.
    HashUnderspecified {
        /// Whether a value that it binds is not there.
        is_hidden: bool,
    },
    /// The target does not have what the transition was decided on.
    ContextViolation {
        /// The type.
        type_name: TypeName,
        /// The fields that do not fit.
        fields: Vec<Arc<str>>,
    },
    /// The support of its commitments is not there, or is stale, retracted or superseded.
    #[error("it relies on what no longer stands in the target: {}", list(.0))]
    DeadSupport(Vec<Arc<str>>),
}

/// The contract of one side of an import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContractSide {
    /// Name and version, `NAME/VERSION`; `None` without contracts.
    pub contract: Option<String>,
    /// The pack, if the packs were compared; `Some(None)` for a side without one.
    pub pack: Option<Option<Digest>>,
}

impl ContractSide {
    /// Returns what is put on record of it ([`crate::sealed`]).
    pub fn sealed(&self) -> Value {
        let contract = self.contract.as_deref().map(|contract| ("contract", Value::from(contract)));
        let pack = self.pack.map(|pack| ("pack", Value::from(pack)));
        Value::record(contract.into_iter().chain(pack))
    }
}

fn list(names: &[Arc<str>]) -> String {
    names.iter().map(|name| &**name).collect::<Vec<_>>().join(", ")
}

impl ImportRefused {
    /// Returns what is put on record of it ([`crate::sealed`]).
    pub fn sealed(&self) -> Value {
        let texts =
            |names: &[Arc<str>]| Value::array(names.iter().map(|name| Value::String(Arc::clone(name))));
        let sealed = match self {
            ImportRefused::NoContract(side, name) => {
                fact("no_contract", [("side", Value::from(*side)), ("type", Value::from(name.as_str()))])
            }
            ImportRefused::ContractsDiffer { source_contract, target_contract } => {
                let sides = [("source", source_contract.sealed()), ("target", target_contract.sealed())];
                fact("contracts_differ", sides)
            }
            ImportRefused::NoContext => fact("no_context", []),
            ImportRefused::NotEnforced => fact("not_enforced", []),
            ImportRefused::DeadSupport(ids) => fact("commitment_support", [("commitments", texts(ids))]),
            ImportRefused::Violates(names) => fact("would_violate", [("predicates", texts(names))]),
            ImportRefused::AtTheDoor { sealed, .. } => return sealed.clone(),
            ImportRefused::HashUnderspecified { is_hidden: true } => fact("context_hidden", []),
            ImportRefused::HashUnderspecified { is_hidden: false } => fact("context_differs", []),
            ImportRefused::ContextViolation { type_name, fields } => fact(
                "context_violation",
                [("type", Value::from(type_name.as_str())), ("fields", texts(fields))],
            ),
        };
        with_code(sealed, self.code())
    }

    /// The code under which `dendrer explain` knows it.
    pub fn code(&self) -> Code {
        match self {
            ImportRefused::ContextViolation { .. } => Code::E0412,
            ImportRefused::HashUnderspecified { .. } => Code::E0413,
            ImportRefused::ContractsDiffer { .. } => Code::E0414,
            ImportRefused::NoContract(..) => Code::E0415,
            ImportRefused::NoContext | ImportRefused::NotEnforced => Code::E0416,
            ImportRefused::Violates(_) => Code::E0419,
            ImportRefused::DeadSupport(_) => Code::E0453,
            ImportRefused::AtTheDoor { code, .. } => *code,
        }
    }
}

/// Checks whether a transition may be imported: contract, hash, fields, in this order (design, section 4).
pub fn check_import(import: &Import<'_>, source: Side<'_>, target: Side<'_>) -> Checked {
    let name = |side: &Side<'_>| (Arc::clone(&side.contracts.name), Arc::clone(&side.contracts.version));
    let mut checked = Checked {
        contracts: [name(&source), name(&target)],
        fields: Vec::new(),
        hash: None,
        advisory: Vec::new(),
        refused: None,
    };
    checked.refused = check_steps(import, source, target, &mut checked).err();
    checked
}

fn check_steps(
    import: &Import<'_>,
    source: Side<'_>,
    target: Side<'_>,
    checked: &mut Checked,
) -> Result<(), ImportRefused> {
    let type_name = &import.intent.type_name;
    let contract_of = |side: Side<'_>, what| {
        let contract = side.contracts.types.get(type_name).cloned();
        contract.ok_or_else(|| ImportRefused::NoContract(what, type_name.clone()))
    };
    // The version comes first: fields of another contract say nothing.
    let differ = |packs: [Option<Option<Digest>>; 2]| {
        let side = |at: usize| {
            let (name, version) = &checked.contracts[at];
            let contract = (!name.is_empty()).then(|| format!("{name}/{version}"));
            Box::new(ContractSide { contract, pack: packs[at] })
        };
        ImportRefused::ContractsDiffer { source_contract: side(0), target_contract: side(1) }
    };
    if checked.contracts[0] != checked.contracts[1] {
        return Err(differ([None, None]));
    }
    let (ours, _) = (contract_of(target, "target")?, contract_of(source, "source")?);
    if source.pack != target.pack {
        return Err(differ([Some(source.pack), Some(target.pack)]));
    }
    if !target.enforced {
        return Err(ImportRefused::NotEnforced);
    }
    checked.hash = Some(check_hash(import, source, &ours)?);
    checked.fields = ours.required.iter().map(|required| compare(&ours, required, source, target)).collect();
    for name in declared(import.intent) {
        let is_advisory = ours.advisory.iter().any(|allowed| &**allowed == name);
        if is_advisory && !is_known(target.state, name) {
            checked.advisory.push(name.into());
        }
    }
    let wrong = checked.fields.iter().filter(|field| field.wrong.is_some());
    let fields: Vec<Arc<str>> = wrong.map(|field| Arc::clone(&field.name)).collect();
    match fields.is_empty() {
        true => Ok(()),
        false => Err(ImportRefused::ContextViolation { type_name: type_name.clone(), fields }),
    }
}

/// Makes the hash of the source again from the source state, values included.
fn check_hash(import: &Import<'_>, source: Side<'_>, contract: &Contract) -> Result<Digest, ImportRefused> {
    let context = import.context.ok_or(ImportRefused::NoContext)?;
    let seed = import.seed.ok_or(ImportRefused::HashUnderspecified { is_hidden: true })?;
    let made = contract.context(source.contracts, import.intent, source.state, seed);
    match context.get("hash").and_then(Value::as_str) == Some(&made.hash.to_string()) {
        true => Ok(made.hash),
        false => Err(ImportRefused::HashUnderspecified { is_hidden: false }),
    }
}

fn compare(contract: &Contract, required: &Required, source: Side<'_>, target: Side<'_>) -> FieldCheck {
    let name = &required.name;
    let default = if contract.seeds.contains(name) { Match::Equal } else { Match::Present };
    let rule = contract.matches.get(name).unwrap_or(&default);
    let (theirs, ours) = (required.path.get(source.state), required.path.get(target.state));
    let lack = contract.check(target.state).into_iter().find(|lack| lack.name == *name);
    let wrong = lack.map(|lack| FieldFault::Lack(lack.why)).or_else(|| match rule {
        Match::Present => None,
        Match::Equal => {
            if unknown::meets(source.state, &required.path).is_some() {
                return Some(FieldFault::UnknownInSource);
            }
            let same = match (theirs, ours) {
                (Some(theirs), Some(ours)) => {
                    marker::same(&required.counted(theirs), &required.counted(ours))
                }
                (theirs, ours) => Some(theirs.is_none() && ours.is_none()),
            };
            match same {
                Some(true) => None,
                Some(false) => Some(FieldFault::Differs),
                None => Some(FieldFault::Redacted),
            }
        }
        Match::Holds(expr) => {
            let others = [("source", source.state), ("target", target.state)];
            let env = Env { state: target.state, counters: None, others: &others };
            match expr.holds(&env, &mut Budget::default()) {
                Truth::True => None,
                Truth::False => Some(FieldFault::RuleFalse),
                Truth::Uncertain(why) => Some(FieldFault::RuleUnjudged(EvalError::Uncertain(why).into())),
                Truth::Exhausted => Some(FieldFault::RuleTooLong),
            }
        }
    });
    let rule = contract.rule(name).into();
    FieldCheck { name: Arc::clone(name), rule, source: theirs.cloned(), target: ours.cloned(), wrong }
}

#[cfg(test)]
mod tests;
