//! Reads a pack: members, kinds, names. Keeps every fault and continues.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dendrer_object::text::nearest;
use dendrer_object::value::Object;
use dendrer_object::{Code, Digest, Pointer, TypeName, Value, tag};

use super::commitments::check_commitments;
use super::members::MEMBERS;
use super::merging::{check_merge, read_combine};
use super::modules::{self, Made, Modules, Reading};
use super::rules::{read_concurrency, read_rules, read_template, read_tools};
use super::scopes::{Constant, Definition, Place, RESERVED, Scopes, is_variable};
use super::{
    DECIMALS_MAX, DECLARATIONS_MAX, Declared, MONOTONE_LIFT, Pack, PackEngine, PackFault, PackField, cases,
    contracts, digest, obligations, progress,
};
use crate::contract::Contracts;
use crate::expr::{Expr, ExprError, Span};
use crate::fold::{Fold, kind};
use crate::names::{COUNTERS, KERNEL_PATHS};
use crate::ontology;
use crate::policy::PolicyRules;
use crate::predicate::{Asking, BUILT_IN, Polarity, Predicate, Window};
use dendrer_object::note::VerifierKey;
use dendrer_object::record::Author;

/// How many faults are kept; a pack with more is not better understood by more.
const FAULTS_MAX: usize = 1000;

/// The longest name, in bytes.
const NAME_SIZE_MAX: usize = 128;

/// Faults that were found in a pack so far.
pub(crate) type Faults = Vec<PackFault>;

/// A value in a pack, and its place.
#[derive(Debug, Clone)]
pub(crate) struct At<'a> {
    pub(crate) value: &'a Value,
    pub(crate) path: Pointer,
    /// Whether it stands for the name of the member and not for its value.
    is_name: bool,
}

impl<'a> At<'a> {
    pub(crate) fn root(value: &'a Value) -> At<'a> {
        At { value, path: Pointer::root(), is_name: false }
    }

    /// The same value under another place.
    pub(crate) fn moved(&self, path: Pointer) -> At<'a> {
        At { path, ..self.clone() }
    }

    fn below(&self, name: &str, value: &'a Value) -> At<'a> {
        let tokens: Vec<_> = self.path.tokens().collect();
        let path = Pointer::of(tokens.iter().map(|token| &**token).chain([name]));
        At { value, path, is_name: false }
    }

    /// The name of the member, as the place of a fault.
    pub(crate) fn name(&self) -> At<'a> {
        At { is_name: true, ..self.clone() }
    }

    /// The value of the member, as the place of a fault.
    pub(super) fn at_value(&self) -> At<'a> {
        At { is_name: false, ..self.clone() }
    }

    pub(crate) fn member(&self, name: &str) -> Option<At<'a>> {
        Some(self.below(name, self.value.get(name)?))
    }

    /// A member, or the value itself without it: the place of a fault of a member that may be missing.
    pub(crate) fn member_or_self(&self, name: &str) -> At<'a> {
        self.member(name).unwrap_or_else(|| self.clone())
    }

    /// Reports that a member is missing.
    pub(crate) fn needed(&self, faults: &mut Faults, name: &str, message: impl Into<String>, hint: &str) {
        if self.member(name).is_none() {
            self.fault(faults, message, hint);
        }
    }

    /// Lists the members of an object.
    pub(crate) fn members(&self) -> Vec<(&'a str, At<'a>)> {
        let members = self.value.as_object().into_iter().flat_map(|object| object.iter());
        members.map(|(name, value)| (&**name, self.below(name, value))).collect()
    }

    /// Lists the items of a list.
    pub(crate) fn items(&self) -> Vec<At<'a>> {
        let items = self.value.as_array().into_iter().flat_map(|list| list.iter()).enumerate();
        items.map(|(index, value)| self.below(&index.to_string(), value)).collect()
    }

    fn push(&self, faults: &mut Faults, code: Code, span: Option<Span>, message: String, hint: &str) {
        if faults.len() < FAULTS_MAX {
            let (path, at_name) = (self.path.clone(), self.is_name);
            let hint = (!hint.is_empty()).then(|| hint.to_owned());
            faults.push(PackFault { code, path, at_name, span, message, hint, is_of_new: false });
        }
    }

    /// Reports that the value is not of the form of a pack. An empty hint is left out.
    pub(crate) fn fault(&self, faults: &mut Faults, message: impl Into<String>, hint: &str) {
        self.fault_of(faults, Code::E0902, message, hint);
    }

    /// As [`At::fault`], for a value that cannot be read.
    pub(crate) fn refuse<T>(&self, faults: &mut Faults, message: impl Into<String>, hint: &str) -> Option<T> {
        self.fault(faults, message, hint);
        None
    }

    /// Reports the value. An empty hint is left out.
    pub(crate) fn fault_of(&self, faults: &mut Faults, code: Code, message: impl Into<String>, hint: &str) {
        self.push(faults, code, None, message.into(), hint);
    }

    /// Reports an error in the text; `offset` is where in the text the expression begins.
    pub(crate) fn expression(&self, faults: &mut Faults, offset: usize, error: ExprError) {
        let shift = offset as u32;
        let span = Span { start: error.span.start + shift, end: error.span.end + shift };
        self.push(faults, error.code, Some(span), error.message, &error.hint.unwrap_or_default());
    }

    /// Reports a byte of the text.
    pub(crate) fn text_fault(&self, faults: &mut Faults, start: usize, message: &str) {
        let span = Span { start: start as u32, end: start as u32 + 1 };
        self.push(faults, Code::E0902, Some(span), message.to_owned(), "");
    }

    /// Takes an object whose members are all among `known`.
    pub(crate) fn object(&self, faults: &mut Faults, what: &str, known: &[&str]) -> Option<&'a Object> {
        let Some(object) = self.value.as_object() else {
            let message = format!("{what} has named members, and this is {}", kind(self.value));
            return self.refuse(faults, message, &format!("its members are {}", known.join(", ")));
        };
        for (name, member) in self.members() {
            if !known.contains(&name) {
                let near = did_you_mean(nearest(name, known.iter().copied()));
                let hint = near.unwrap_or_else(|| format!("{what} has {}", known.join(", ")));
                member.name().fault(faults, format!("{what} has no member {name}"), &hint);
            }
        }
        Some(object)
    }

    /// Takes a map of things that the pack names.
    pub(super) fn named(&self, faults: &mut Faults, name: &str, what: &str) -> Vec<(&'a str, At<'a>)> {
        let Some(at) = self.member(name) else { return Vec::new() };
        if at.value.as_object().is_none() {
            at.fault(faults, format!("{name} is a map from names to {what}, not {}", kind(at.value)), "");
        }
        let members = at.members();
        at.count(faults, members.len());
        members
    }

    /// Takes a list.
    pub(crate) fn list(&self, faults: &mut Faults, name: &str) -> Vec<At<'a>> {
        let Some(at) = self.member(name) else { return Vec::new() };
        if at.value.as_array().is_none() {
            let message = format!("{name} is a list, not {}", kind(at.value));
            at.fault(faults, message, "each item begins with `- `");
        }
        at.items()
    }

    pub(super) fn count(&self, faults: &mut Faults, count: usize) {
        if count > DECLARATIONS_MAX {
            let message = format!("there are {count} of them; a pack has at most {DECLARATIONS_MAX}");
            self.fault_of(faults, Code::E0904, message, "");
        }
    }

    /// Takes text that is not empty.
    pub(crate) fn text(&self, faults: &mut Faults, name: &str) -> Option<&'a str> {
        let at = self.member(name)?;
        match at.value.as_str() {
            Some(text) if !text.trim().is_empty() => return Some(text),
            Some(_) => at.fault(faults, format!("{name} is empty"), ""),
            None => {
                // The spelling of a number is lost: 1.10 and 1.1 are one number and two versions.
                let hint = match at.value {
                    Value::Number(_) => format!("put it in quotes as you wrote it: {name}: \"...\""),
                    value => format!("put it in quotes: {name}: \"{value}\""),
                };
                at.fault(faults, format!("{name} is text, not {}", kind(at.value)), &hint);
            }
        }
        None
    }

    pub(crate) fn shared(&self, faults: &mut Faults, name: &str) -> Option<Arc<str>> {
        self.text(faults, name).map(Arc::from)
    }

    /// Takes true or false.
    pub(crate) fn truth(&self, faults: &mut Faults, message: impl Into<String>) -> Option<bool> {
        let truth = self.value.as_bool();
        if truth.is_none() {
            self.fault(faults, message, "");
        }
        truth
    }

    /// Parses an expression in the text and reports all that is wrong with it.
    pub(crate) fn parse(
        &self,
        faults: &mut Faults,
        offset: usize,
        text: &str,
        place: &Place,
        condition: bool,
    ) -> Option<Expr> {
        let parsed = match condition {
            true => Expr::parse_condition(text, &place.scope),
            false => Expr::parse(text, &place.scope),
        };
        let error = match parsed {
            Ok(expr) => {
                self.refuse_negative_indexes(faults, offset, &expr);
                return Some(expr);
            }
            Err(error) => error,
        };
        let mut errors = Expr::problems(text, &place.scope);
        if errors.is_empty() {
            errors.push(error);
        }
        for error in errors {
            if !place.is_known_fault(&error, text) {
                self.expression(faults, offset, place.explain(error, text));
            }
        }
        None
    }

    /// Reports indexes below zero. Packs on record may have them, so the fault is one of packs that are new.
    fn refuse_negative_indexes(&self, faults: &mut Faults, offset: usize, expr: &Expr) {
        for span in expr.negative_indexes() {
            let error = ExprError::new(Code::E0502, span, "an index below zero is always missing")
                .hint("count from the end with slice(list, -1)");
            let known = faults.len();
            self.expression(faults, offset, error);
            faults.iter_mut().skip(known).for_each(|fault| fault.is_of_new = true);
        }
    }

    /// Parses the condition in a member.
    pub(crate) fn condition(&self, faults: &mut Faults, name: &str, place: &Place) -> Option<Expr> {
        let at = self.member(name)?;
        match at.value {
            Value::String(text) => at.parse(faults, 0, text, place, true),
            Value::Bool(truth) => at.parse(faults, 0, &truth.to_string(), place, true),
            other => {
                at.refuse(faults, format!("{name} is a condition, written as text, not {}", kind(other)), "")
            }
        }
    }
}

/// The hint that names what was probably meant.
pub(super) fn did_you_mean(near: Option<&str>) -> Option<String> {
    near.map(|near| format!("did you mean {near}?"))
}

/// Whether rules may ask for the time of a line: the time of its record, which the kernel writes.
fn read_clock(faults: &mut Faults, root: &At<'_>) -> bool {
    let Some(at) = root.member("clock") else { return false };
    let is_kernel = is_timed(root.value);
    if !is_kernel {
        at.fault(
            faults,
            format!("a clock is kernel, not {}", at.value),
            "leave it out if no rule asks for t.at",
        );
    }
    is_kernel
}

/// Whether a pack has the clock of the kernel.
pub(crate) fn is_timed(pack: &Value) -> bool {
    pack.get("clock").and_then(Value::as_str) == Some("kernel")
}

/// Reads the policy rules. They are recorded as they are written, so they use no name that the pack defines.
fn read_policy(faults: &mut Faults, root: &At<'_>, is_timed: bool) -> Vec<Value> {
    let mut rules: Vec<Value> = Vec::new();
    for at in root.list(faults, "policy") {
        rules.push(at.value.clone());
        match PolicyRules::read(&rules) {
            Err((_, why)) => {
                at.fault(faults, why, "like `{id: within_budget, holds: state.spent <= 600}`");
                rules.pop();
            }
            Ok(read) if !is_timed && read.timed().next().is_some() => {
                at.fault(faults, "a rule asks for t.at, and the pack has no clock", "add `clock: kernel`");
            }
            Ok(_) => {}
        }
    }
    rules
}

pub(super) fn read(value: &Value, modules: &dyn Modules, by: u64) -> Result<Pack, Vec<PackFault>> {
    let mut faults = Faults::default();
    let mut modules = Reading::new(modules);
    let root = At::root(value);
    if root.object(&mut faults, "a pack", &MEMBERS.map(|member| member.name)).is_none() {
        return Err(faults);
    }
    let name = read_name(&mut faults, &root);
    let version = read_version(&mut faults, &root);
    let (words, goal) = (root.shared(&mut faults, "words"), root.shared(&mut faults, "goal"));
    let is_timed = read_clock(&mut faults, &root);
    let policy = read_policy(&mut faults, &root, is_timed);
    let (engine, module) = read_engine(&mut faults, &root, &mut modules);
    let mut taken: BTreeSet<String> = RESERVED.iter().map(|name| (*name).to_owned()).collect();
    let constants = read_constants(&mut faults, &root, &mut taken);
    let definitions = read_definitions(&mut faults, &root, &mut taken, &mut modules);
    let mut named: Vec<String> = constants.iter().map(|constant| constant.name.clone()).collect();
    named.extend(definitions.iter().map(|definition| match definition.parameters.is_empty() {
        true => definition.name.clone(),
        false => format!("{}({})", definition.name, definition.parameters.join(", ")),
    }));
    let declared = read_declared(&mut faults, &root);
    let decimals: Vec<(String, Option<u8>)> =
        declared.iter().map(|field| (field.name.to_owned(), field.decimals)).collect();
    let datetimes = super::contracts::datetimes(&root);
    let scopes = Scopes::new(&mut faults, constants, &decimals, (&datetimes, is_timed, by), definitions);
    let types = read_types(&mut faults, &root);
    let tools = read_tools(&mut faults, &root, &scopes.rules);
    let concurrency = read_concurrency(&mut faults, &root);
    let rules = read_rules(&mut faults, &root, &scopes.rules, &declared, &types, &taken);
    if engine != PackEngine::Fold && !rules.is_empty() {
        let at = root.member_or_self("rules");
        let message = format!("a pack of {} has no rules", engine.as_str());
        at.fault(&mut faults, message, "leave out `reducer`, or the rules");
    }
    let fold = Fold {
        rules,
        decimals: decimals.iter().filter_map(|(name, d)| Some((name.as_str().into(), (*d)?))).collect(),
    };
    let mut fields: Vec<PackField> = declared
        .into_iter()
        .filter_map(|field| {
            let init = match &field.init {
                Some(init) => Some(read_template(&mut faults, init, &scopes.init)?),
                None => None,
            };
            let (name, words) = (field.name.into(), field.words);
            let writers = read_writers(&mut faults, &field.at, &types);
            let combine = read_combine(&mut faults, &field.at);
            let (decimals, written_by) = (field.decimals, Vec::new());
            Some(PackField { name, words, decimals, written_by, writers, combine, init })
        })
        .collect();
    note_writers(&mut fields, &fold);
    check_merge(&mut faults, &root);
    check_commitments(&mut faults, &root, &fields);
    let digest = digest(value);
    let known = Known { place: &scopes.state, version: version.as_deref(), pack: digest, types: &types };
    let predicates = read_predicates(&mut faults, &root, &known, &mut modules);
    let approvers = read_approvers(&mut faults, &root);
    let mapped = root.member("predicates").map(|at| at.members()).unwrap_or_default();
    let mut taken: Vec<&str> =
        mapped.into_iter().map(|(name, _)| name).chain(ids(&root, "violations")).collect();
    let asked = obligations::Known { types: &types, place: &scopes.state, taken: &taken };
    let obligations = obligations::read(&mut faults, &root, &asked, version.as_deref(), digest);
    taken.extend(ids(&root, "obligations"));
    let asked = obligations::Known { types: &types, place: &scopes.state, taken: &taken };
    let progress_contracts = progress::read_contracts(&mut faults, &root, &asked, digest);
    let progress = progress::read_plan(&mut faults, &root, &asked);
    let known = contracts::Known { fields: &decimals, types: &types, place: &scopes.state };
    let contracted = contracts::read(&mut faults, &root, &known);
    contracts::check_pillars(&mut faults, &root, &predicates);
    // Those with a fault, too: a test of one has no fault of its own.
    let names: Vec<&str> = taken.iter().copied().chain(ids(&root, "progress_contracts")).collect();
    let tests = root.member("tests");
    let cases =
        cases::read(&mut faults, &tests.as_ref().map(At::items).unwrap_or_default(), &scopes.state, &names);
    if let Some(tests) = tests.filter(|tests| tests.value.as_array().is_none()) {
        tests.fault(&mut faults, "tests is a list", "each item begins with `- `");
    }
    let (of_new, mut faults): (Faults, Faults) = faults.into_iter().partition(|fault| fault.is_of_new);
    match (name, version) {
        (Some(name), Some(version)) if faults.is_empty() => Ok(Pack {
            of_new,
            contracts: Contracts { name: name.clone(), version: version.clone(), types: contracted },
            name,
            version,
            words,
            goal,
            policy,
            engine,
            module,
            fields,
            types,
            tools,
            concurrency,
            approvers,
            predicates,
            obligations,
            progress_contracts,
            progress,
            cases,
            named,
            fold: Arc::new(fold),
            scope: scopes.state.scope,
            value: value.clone(),
            digest,
        }),
        _ => {
            faults.extend(of_new);
            Err(faults)
        }
    }
}

/// The ids in a list, those of entries with a fault among them.
fn ids<'a>(root: &At<'a>, name: &str) -> impl Iterator<Item = &'a str> {
    let items = root.member(name).map(|at| at.items()).unwrap_or_default();
    items.into_iter().filter_map(|at| at.value.get("id")?.as_str())
}

fn read_name(faults: &mut Faults, root: &At<'_>) -> Option<Arc<str>> {
    root.needed(faults, "name", "a pack has a name", "add a line like `name: acme.orders`");
    let name = root.shared(faults, "name")?;
    let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
    if name.len() <= NAME_SIZE_MAX && name.bytes().all(plain) && !name.starts_with(['.', '-']) {
        return Some(name);
    }
    let at = root.member_or_self("name");
    let hint = "letters, digits, `.`, `_` and `-`, at most 128";
    at.fault_of(faults, Code::E0903, "this is not a name for a pack", hint);
    None
}

fn read_version(faults: &mut Faults, root: &At<'_>) -> Option<Arc<str>> {
    root.needed(faults, "version", "a pack has a version", "add a line like `version: v1`");
    let version = root.shared(faults, "version")?;
    if (1..=NAME_SIZE_MAX).contains(&version.len()) && version.bytes().all(|c| c.is_ascii_graphic()) {
        return Some(version);
    }
    let at = root.member_or_self("version");
    let hint = "printable ASCII without spaces, at most 128, like v1 or 2.0.3";
    at.fault_of(faults, Code::E0903, "this is not a version of a pack", hint);
    None
}

/// Reads which engine reduces, and the module that it runs.
fn read_engine(faults: &mut Faults, root: &At<'_>, modules: &mut Reading<'_>) -> (PackEngine, Option<Made>) {
    let at = root.member("reducer");
    let named = at.as_ref().map(|at| match at.value {
        Value::Object(_) => {
            at.object(faults, "a reducer", &["engine", "digest"]);
            (at.text(faults, "engine"), at.member_or_self("engine"))
        }
        _ => (root.text(faults, "reducer"), at.clone()),
    });
    let engine = match named.as_ref().and_then(|(engine, _)| *engine) {
        Some("fold/1") | None => PackEngine::Fold,
        Some("delta/1") => PackEngine::Delta,
        Some(modules::NAME) => PackEngine::Wasm,
        Some(other) => {
            let (_, named) = named.as_ref().expect("it has a name");
            other_engine(faults, named, other, "fold/1, delta/1 and wasm/1");
            return (PackEngine::Fold, None);
        }
    };
    let module = root.member("module");
    match (engine, &at, &module) {
        (PackEngine::Wasm, Some(at), None) => {
            let message = "wasm/1 runs a module, and the pack names none";
            at.fault(faults, message, "add `module:`, like `module: tally.wasm`");
        }
        (PackEngine::Wasm, ..) => {
            let digest = at.as_ref().and_then(|at| at.member("digest"));
            return (engine, modules.reducer(faults, root, digest.as_ref()));
        }
        (PackEngine::Fold | PackEngine::Delta, _, Some(module)) => {
            let message = format!("under {} no module reduces", engine.as_str());
            let hint = "add `reducer: wasm/1`; the module of a predicate stands in the predicate";
            module.name().fault(faults, message, hint);
        }
        (PackEngine::Fold | PackEngine::Delta, _, None) => {}
    }
    (engine, None)
}

fn other_engine(faults: &mut Faults, at: &At<'_>, engine: &str, known: &str) {
    let message = format!("this program cannot run the engine {engine:?}; it runs {known}");
    let hint = "a pack binds one engine; another program may run it, this one never guesses";
    at.fault_of(faults, Code::E0905, message, hint);
}

fn take_name(faults: &mut Faults, at: &At<'_>, name: &str, taken: &mut BTreeSet<String>) {
    if !is_variable(name) {
        let hint = "letters, digits and _, not beginning with a digit, and no word of the language";
        at.name().fault_of(faults, Code::E0903, format!("`{name}` cannot be a name in expressions"), hint);
    } else if !taken.insert(name.to_owned()) {
        at.name().fault_of(faults, Code::E0903, format!("`{name}` has a meaning already"), "");
    }
}

fn read_constants(faults: &mut Faults, root: &At<'_>, taken: &mut BTreeSet<String>) -> Vec<Constant> {
    let members = root.named(faults, "constants", "values");
    members
        .into_iter()
        .map(|(name, at)| {
            take_name(faults, &at, name, taken);
            Constant { name: name.to_owned(), value: at.value.clone() }
        })
        .collect()
}

fn read_definitions<'a>(
    faults: &mut Faults,
    root: &At<'a>,
    taken: &mut BTreeSet<String>,
    modules: &mut Reading<'_>,
) -> Vec<Definition<'a>> {
    let mut definitions = Vec::new();
    for (signature, at) in root.named(faults, "define", "expressions") {
        let Some((name, parameters)) = split_signature(signature) else {
            let hint = "a definition is called `name` or `name(a, b)`";
            at.name().fault_of(faults, Code::E0903, "this is not a name with parameters", hint);
            continue;
        };
        take_name(faults, &at, &name, taken);
        match at.value {
            Value::String(text) => definitions.push(Definition { name, parameters, text, at }),
            // No expression calls it: a graph does.
            Value::Object(_) => {
                if at.object(faults, "a function", &["module", "digest"]).is_some() {
                    match at.member("module") {
                        Some(_) => drop(modules.function(faults, &at)),
                        None => at.fault(faults, "a function has a module", "like `{module: plan.wasm}`"),
                    }
                }
            }
            other => {
                let message = format!("a definition is an expression, written as text, not {}", kind(other));
                at.fault(faults, message, "fixed values belong in constants");
            }
        }
    }
    definitions
}

fn split_signature(signature: &str) -> Option<(String, Vec<String>)> {
    let Some((name, rest)) = signature.split_once('(') else {
        return Some((signature.trim().to_owned(), Vec::new()));
    };
    let inside = rest.trim_end().strip_suffix(')')?;
    let parameters: Vec<String> = inside.split(',').map(|name| name.trim().to_owned()).collect();
    parameters.iter().all(|name| !name.is_empty()).then(|| (name.trim().to_owned(), parameters))
}

/// A field before its initial value is understood.
pub(super) struct ReadField<'a> {
    pub(super) name: &'a str,
    words: Option<Arc<str>>,
    decimals: Option<u8>,
    pub(super) init: Option<At<'a>>,
    at: At<'a>,
}

fn read_declared<'a>(faults: &mut Faults, root: &At<'a>) -> Vec<ReadField<'a>> {
    let mut fields = Vec::new();
    for (name, at) in root.named(faults, "state", "fields") {
        let name = tag::user_name(name);
        if name == COUNTERS || KERNEL_PATHS.contains(&name) {
            at.name().fault_of(faults, Code::E0903, format!("`{name}` in the state is the kernel's"), "");
        }
        if at.object(faults, "a field", &["words", "init", "decimals", "writers", "combine"]).is_none() {
            continue;
        }
        let (init, decimals) = (at.member("init"), read_decimals(faults, &at));
        fields.push(ReadField { name, words: at.shared(faults, "words"), decimals, init, at });
    }
    fields
}

/// Who may write a field: transition types and authors.
fn read_writers(faults: &mut Faults, field: &At<'_>, types: &Types) -> Vec<Arc<str>> {
    let authors = [Author::Agent, Author::Runtime, Author::User].map(Author::as_str);
    let mut writers = Vec::new();
    for at in field.list(faults, "writers") {
        let text = at.value.as_str().unwrap_or_default();
        let is_type = text.parse::<TypeName>().is_ok_and(|name| has_type(types, &name));
        if is_type || authors.contains(&text) {
            writers.push(text.into());
            continue;
        }
        let other = || format!("a transition type, or one of {}", authors.join(", "));
        let hint = near_type(types, text).unwrap_or_else(other);
        at.fault_of(faults, Code::E0903, format!("nothing writes as {}", at.value), &hint);
    }
    let is_empty = |at: &At<'_>| at.value.as_array().is_some_and(|all| all.is_empty());
    if let Some(at) = field.member("writers").filter(is_empty) {
        at.fault(faults, "the list of writers is empty", "name types or authors, or leave it out");
    }
    writers
}

fn read_decimals(faults: &mut Faults, field: &At<'_>) -> Option<u8> {
    let at = field.member("decimals")?;
    match at.value.as_u64().filter(|decimals| *decimals <= DECIMALS_MAX) {
        Some(decimals) => u8::try_from(decimals).ok(),
        None => {
            at.refuse(faults, format!("decimals is a number from 0 to {DECIMALS_MAX}, not {}", at.value), "")
        }
    }
}

fn read_types(faults: &mut Faults, root: &At<'_>) -> Types {
    let mut types = BTreeMap::new();
    for (name, at) in root.named(faults, "types", "what they mean") {
        let Some(parsed) = named_type(faults, &at, name) else { continue };
        if ontology::class_of(name).is_some() {
            let message = format!("{name} is a type already, with its own rules");
            at.name().fault_of(faults, Code::E0903, message, "");
        }
        let words = match at.value {
            Value::Null => None,
            Value::String(words) => Some(Arc::clone(words)),
            other => {
                let message =
                    format!("a type is registered with what it means, as text, not with {}", kind(other));
                at.refuse(faults, message, "")
            }
        };
        types.insert(parsed, words);
    }
    types
}

fn note_writers(fields: &mut [PackField], fold: &Fold) {
    for (index, rule) in fold.rules.iter().enumerate() {
        let mut written = BTreeSet::new();
        rule.for_each_target(&mut |target| {
            written.insert(Arc::clone(&target.field));
        });
        for field in fields.iter_mut().filter(|field| written.contains(&field.name)) {
            field.written_by.push(index + 1);
        }
    }
}

/// The members of a predicate. In a list it has an `id`, a `scope`, `enforce` and `repairs` besides, and no module.
const PREDICATE: [&str; 15] = [
    "id",
    "scope",
    "enforce",
    "repairs",
    "monotone",
    "words",
    "holds",
    "condition",
    "base_predicate",
    "bisect_predicate",
    "pure",
    "window",
    "engine",
    "digest",
    "module",
];

/// A predicate before it is parsed, and the place of its name.
struct Entry<'a> {
    name: &'a str,
    at: At<'a>,
    /// The place of its name: the `id` of an entry in a list, the name of the member in a map.
    named: At<'a>,
    is_violation: bool,
}

/// Lists what must hold: `predicates` by name, and then the `violations` of a contract in their order (dendrer paper 3.3.3).
fn entries<'a>(faults: &mut Faults, root: &At<'a>) -> Vec<Entry<'a>> {
    let members = root.named(faults, "predicates", "what must hold").into_iter();
    let mut entries: Vec<Entry<'a>> =
        members.map(|(name, at)| Entry { name, named: at.name(), at, is_violation: false }).collect();
    for at in root.list(faults, "violations") {
        let Some((named, name)) = read_id(faults, &at, "a violation", "over_limit") else { continue };
        match entries.iter().any(|other| other.name == name) {
            true => {
                named.fault_of(faults, Code::E0903, format!("there is another predicate named {name}"), "")
            }
            false => entries.push(Entry { name, at, named, is_violation: true }),
        }
    }
    if let Some(at) = root.member("violations") {
        at.count(faults, entries.len());
    }
    entries
}

/// The parts of a pack that predicates refer to.
struct Known<'a> {
    place: &'a Place,
    version: Option<&'a str>,
    pack: Digest,
    types: &'a Types,
}

fn read_predicates(
    faults: &mut Faults,
    root: &At<'_>,
    known: &Known<'_>,
    modules: &mut Reading<'_>,
) -> Vec<Declared> {
    let entries = entries(faults, root);
    let mut declared: Vec<Declared> = Vec::new();
    for entry in &entries {
        let scope = read_scope(faults, &entry.at, known.types);
        let read = read_predicate(faults, entry, known, modules);
        declared.extend(read.map(|read| Declared { predicate: read.predicate.scoped(scope), ..read }));
    }
    declared
}

/// The transition types that a pack registers.
pub(super) type Types = BTreeMap<TypeName, Option<Arc<str>>>;

/// Whether the ontology or the pack has a transition type.
pub(super) fn has_type(types: &Types, name: &TypeName) -> bool {
    types.contains_key(name) || ontology::class_of(name.as_str()).is_some()
}

/// The hint that names a transition type that was probably meant.
pub(super) fn near_type(types: &Types, name: &str) -> Option<String> {
    let known = ontology::TYPES.iter().map(|(name, _)| *name);
    did_you_mean(nearest(name, known.chain(types.keys().map(TypeName::as_str))))
}

/// Takes a transition type that the ontology or the pack has; `otherwise` is the hint if no other is near.
pub(super) fn known_type(
    faults: &mut Faults,
    at: &At<'_>,
    types: &Types,
    name: &str,
    otherwise: &str,
) -> Option<TypeName> {
    let known = name.parse().ok().filter(|name| has_type(types, name));
    if known.is_none() {
        let hint = near_type(types, name).unwrap_or_else(|| otherwise.to_owned());
        at.fault_of(faults, Code::E0903, format!("there is no transition type {name}"), &hint);
    }
    known
}

/// Takes the name of a member as a transition type.
pub(super) fn named_type(faults: &mut Faults, at: &At<'_>, name: &str) -> Option<TypeName> {
    let parsed = name.parse::<TypeName>();
    parsed.map_err(|error| at.name().fault_of(faults, Code::E0903, error.to_string(), "")).ok()
}

/// Reads the `id` of an item of a list, with its place.
fn read_id<'a>(faults: &mut Faults, at: &At<'a>, what: &str, example: &str) -> Option<(At<'a>, &'a str)> {
    let Some(id) = at.member("id") else {
        return at.refuse(faults, format!("{what} has an id"), &format!("add a line like `id: {example}`"));
    };
    Some((id, at.text(faults, "id")?))
}

/// Takes an entry of a list, with its `id`.
pub(super) fn read_entry<'a>(
    faults: &mut Faults,
    at: &At<'a>,
    what: &str,
    known: &[&str],
    example: &str,
) -> Option<(At<'a>, &'a str)> {
    at.object(faults, what, known)?;
    read_id(faults, at, what, example)
}

/// Takes a list of what a pack declares.
pub(super) fn read_listed<'a>(faults: &mut Faults, root: &At<'a>, name: &str) -> Vec<At<'a>> {
    let listed = root.list(faults, name);
    if let Some(at) = root.member(name) {
        at.count(faults, listed.len());
    }
    listed
}

/// Reads at which transition types a violation is looked for.
fn read_scope(faults: &mut Faults, entry: &At<'_>, types: &Types) -> Vec<TypeName> {
    let mut scope = Vec::new();
    for at in entry.list(faults, "scope") {
        match at.value.as_str().and_then(|name| name.parse::<TypeName>().ok()) {
            Some(name) if has_type(types, &name) => scope.push(name),
            _ => {
                let hint = at.value.as_str().and_then(|name| near_type(types, name)).unwrap_or_default();
                at.fault_of(faults, Code::E0903, format!("there is no transition type {}", at.value), &hint);
            }
        }
    }
    scope
}

/// Reads who may approve extensions, by which key.
fn read_approvers(faults: &mut Faults, root: &At<'_>) -> Vec<(Arc<str>, VerifierKey)> {
    let mut approvers = Vec::new();
    for (name, at) in root.named(faults, "approvers", "their keys") {
        let message = match at.value.as_str().map(str::parse::<VerifierKey>) {
            Some(Ok(key)) => {
                approvers.push((name.into(), key));
                continue;
            }
            Some(Err(error)) => error.to_string(),
            None => format!("a key is text, not {}", kind(at.value)),
        };
        at.fault(faults, message, "name+id+key, as `contract keygen` prints it");
    }
    approvers
}

/// Checks the name of a predicate, and returns whether it can be one.
pub(super) fn check_name(faults: &mut Faults, at: &At<'_>, name: &str) -> bool {
    let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
    if name.is_empty() || name.len() > NAME_SIZE_MAX || !name.bytes().all(plain) {
        let hint = "letters, digits, `.`, `_` and `-`, at most 128";
        at.fault_of(faults, Code::E0903, "this is not a name for a predicate", hint);
    } else if name.starts_with("kernel.") || BUILT_IN.contains(&name) {
        at.fault_of(faults, Code::E0903, format!("{name} is the kernel's"), "");
    } else {
        return true;
    }
    false
}

fn read_predicate(
    faults: &mut Faults,
    entry: &Entry<'_>,
    pack: &Known<'_>,
    modules: &mut Reading<'_>,
) -> Option<Declared> {
    let (name, at) = (entry.name, &entry.at);
    check_name(faults, &entry.named, name);
    let module = at.member("module");
    if let (Some(module), true) = (&module, entry.is_violation) {
        let message = "a violation is an expression: the door looks for it behind every transition";
        module.name().fault(faults, message, "name the module under `predicates`");
        return None;
    }
    let (what, known) = match entry.is_violation {
        true => ("a violation", &PREDICATE[..PREDICATE.len() - 1]),
        false => ("a predicate", &PREDICATE[4..]),
    };
    at.object(faults, what, known)?;
    let words = at.shared(faults, "words");
    if let Some(engine) = at.text(faults, "engine") {
        let named = at.member_or_self("engine");
        match (engine, &module) {
            (modules::NAME, Some(_)) => {}
            (modules::NAME, None) => {
                let message = "wasm/1 runs a module, and the predicate names none";
                return named.refuse(faults, message, "add `module:`, like `module: risk.wasm`");
            }
            _ => {
                other_engine(faults, &named, engine, "expressions and wasm/1 in predicates");
                return None;
            }
        }
    }
    let window = read_window(faults, at);
    let lifts = read_lift(faults, at);
    let forms = [
        ("holds", Polarity::Holds),
        ("condition", Polarity::Condition),
        ("base_predicate", Polarity::Condition),
    ];
    let mut given = forms.into_iter().filter(|(form, _)| at.member(form).is_some());
    let (asked, polarity) = match (given.next(), given.next(), module) {
        (Some((form, polarity)), None, None) => {
            (Asking::Expr(at.condition(faults, form, pack.place)?), polarity)
        }
        // A module says itself what the violation is.
        (None, _, Some(_)) => (Asking::Program(modules.program(faults, at)?), Polarity::Condition),
        _ => {
            let hint = "`holds` is what must be true, `condition` is the violation";
            let choice =
                if entry.is_violation { "holds and condition" } else { "holds, condition and module" };
            return at.refuse(faults, format!("{what} has exactly one of {choice}"), hint);
        }
    };
    let version = pack.version.unwrap_or_default();
    let predicate = Predicate::registered(name, version, polarity, window, asked, pack.pack);
    let predicate = if lifts { predicate.lifted() } else { predicate };
    let scoped = at.member("scope").filter(|_| !lifts);
    let claims = at.member("monotone").filter(|_| !lifts && !predicate.cannot_recover());
    let hint = "add `bisect_predicate: monotone_lift`: what counts is the first time";
    if let Some(at) = scoped {
        let message = "what is looked for at some types only is not seen at the others, so it may recover";
        at.fault_of(faults, Code::E0907, message, hint);
    } else if let Some(at) = claims {
        // Registration finds out and does not believe (requirement D-188).
        at.fault_of(faults, Code::E0907, "nothing shows that it cannot recover", hint);
    }
    let claimed = at.member("monotone").is_some();
    let predicate = if claimed { predicate.monotone_by_text() } else { predicate };
    let predicate = predicate.enforced(read_enforce(faults, at)).repaired_by(read_repairs(faults, at));
    Some(Declared { predicate, words, is_violation: entry.is_violation })
}

/// Whether bisect is to look for the first violation, whatever comes after it (dendrer paper 3.3.3).
pub(super) fn read_lift(faults: &mut Faults, predicate: &At<'_>) -> bool {
    if let Some(pure) = predicate.member("pure").filter(|pure| *pure.value != Value::from(true)) {
        pure.fault(faults, "pure is true: no expression is anything else", "leave it out, or write `true`");
    }
    if let Some(monotone) = predicate.member("monotone").filter(|at| *at.value != Value::from(true)) {
        let hint = "leave it out: a predicate that may recover says `bisect_predicate: monotone_lift`";
        monotone.fault(faults, "monotone is true, or not said", hint);
    }
    let Some(at) = predicate.member("bisect_predicate") else { return false };
    let is_lift = at.value.as_str() == Some(MONOTONE_LIFT);
    if !is_lift {
        let message = format!("a bisect_predicate is {MONOTONE_LIFT}, not {}", at.value);
        at.fault(faults, message, "without it, bisect refuses a predicate that recovers");
    }
    is_lift
}

/// Whether the door refuses what would newly violate it.
fn read_enforce(faults: &mut Faults, predicate: &At<'_>) -> bool {
    let Some(at) = predicate.member("enforce") else { return false };
    at.truth(faults, format!("enforce is true or false, not {}", at.value)).unwrap_or(false)
}

/// The types and tools that may write while a violation lasts.
fn read_repairs(faults: &mut Faults, predicate: &At<'_>) -> Vec<Arc<str>> {
    let mut repairs = Vec::new();
    for at in predicate.list(faults, "repairs") {
        match at.value.as_str() {
            Some(word) => repairs.push(word.into()),
            None => at.fault(faults, format!("a repair is a type or a tool, not {}", at.value), ""),
        }
    }
    repairs
}

fn read_window(faults: &mut Faults, predicate: &At<'_>) -> Window {
    let Some(at) = predicate.member("window") else { return Window::After };
    at.value.as_str().and_then(Window::from_word).unwrap_or_else(|| {
        at.fault(faults, format!("a window is after or before, not {}", at.value), "");
        Window::After
    })
}
