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
use super::rules::{read_rules, read_template, read_tools};
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
use crate::predicate::{Asked, BUILT_IN, Polarity, Predicate, Window};
use dendrer_object::note::VerifierKey;
use dendrer_object::record::Author;

/// How many faults are kept; a pack with more is not better understood by more.
const FAULTS_MAX: usize = 1000;

/// The longest name, in bytes.
const NAME_SIZE_MAX: usize = 128;

/// A value in a pack, and its place.
#[derive(Debug, Clone)]
pub(crate) struct At<'a> {
    pub(crate) value: &'a Value,
    pub(crate) path: Pointer,
}

impl<'a> At<'a> {
    pub(crate) fn member(&self, name: &str) -> Option<At<'a>> {
        Some(At { value: self.value.get(name)?, path: below(&self.path, name) })
    }

    /// Walks the members of an object.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&'a str, At<'a>)> + use<'a> {
        let path = self.path.clone();
        let object = self.value.as_object();
        object
            .into_iter()
            .flat_map(|object| object.iter().map(|(name, value)| (&**name, value)).collect::<Vec<_>>())
            .map(move |(name, value)| (name, At { value, path: below(&path, name) }))
    }

    /// Walks the items of a list.
    pub(crate) fn items(&self) -> impl Iterator<Item = At<'a>> + use<'a> {
        let path = self.path.clone();
        let list = self.value.as_array();
        list.into_iter()
            .flat_map(|list| list.iter())
            .enumerate()
            .map(move |(index, value)| At { value, path: below(&path, &index.to_string()) })
    }
}

fn below(path: &Pointer, name: &str) -> Pointer {
    let tokens: Vec<_> = path.tokens().collect();
    Pointer::of(tokens.iter().map(|token| &**token).chain([name]))
}

/// Collects faults.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    faults: Vec<PackFault>,
}

impl Reader {
    pub(crate) fn finish(self) -> Vec<PackFault> {
        self.faults
    }

    fn push(&mut self, fault: PackFault) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(fault);
        }
    }

    /// Reports a value. An empty hint is left out.
    pub(crate) fn fault(&mut self, code: Code, at: &At<'_>, message: impl Into<String>, hint: &str) {
        let hint = (!hint.is_empty()).then(|| hint.to_owned());
        let path = at.path.clone();
        self.push(PackFault { code, path, at_name: false, span: None, message: message.into(), hint });
    }

    /// Reports the name of a member.
    pub(crate) fn name_fault(
        &mut self,
        code: Code,
        at: &At<'_>,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        let path = at.path.clone();
        self.push(PackFault { code, path, at_name: true, span: None, message: message.into(), hint });
    }

    /// Reports an error in a text; `offset` is where in the text of the member the expression begins.
    pub(crate) fn expression(&mut self, at: &At<'_>, offset: usize, error: ExprError) {
        let shift = offset as u32;
        let span = Span { start: error.span.start + shift, end: error.span.end + shift };
        let path = at.path.clone();
        let (message, hint) = (error.message, error.hint);
        self.push(PackFault { code: error.code, path, at_name: false, span: Some(span), message, hint });
    }

    /// Reports the bytes of a text from a place on.
    pub(crate) fn text_fault(&mut self, at: &At<'_>, start: usize, message: &str) {
        let span = Some(Span { start: start as u32, end: start as u32 + 1 });
        let path = at.path.clone();
        let message = message.to_owned();
        self.push(PackFault { code: Code::E0902, path, at_name: false, span, message, hint: None });
    }

    /// Takes an object whose members are all among `known`.
    pub(crate) fn object<'a>(&mut self, at: &At<'a>, what: &str, known: &[&str]) -> Option<&'a Object> {
        let Some(object) = at.value.as_object() else {
            let message = format!("{what} has named members, and this is {}", kind(at.value));
            self.fault(Code::E0902, at, message, &format!("its members are {}", known.join(", ")));
            return None;
        };
        for (name, member) in at.members() {
            if !known.contains(&name) {
                let hint = match nearest(name, known.iter().copied()) {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("{what} has {}", known.join(", ")),
                };
                self.name_fault(Code::E0902, &member, format!("{what} has no member {name}"), Some(hint));
            }
        }
        Some(object)
    }

    /// Takes a map of things that the pack names.
    pub(super) fn named<'a>(&mut self, root: &At<'a>, name: &str, what: &str) -> Vec<(&'a str, At<'a>)> {
        let Some(at) = root.member(name) else { return Vec::new() };
        if at.value.as_object().is_none() {
            let message = format!("{name} is a map from names to {what}, not {}", kind(at.value));
            self.fault(Code::E0902, &at, message, "");
            return Vec::new();
        }
        let members: Vec<_> = at.members().collect();
        self.count(&at, members.len());
        members
    }

    /// Takes a list.
    pub(crate) fn list<'a>(&mut self, parent: &At<'a>, name: &str) -> Vec<At<'a>> {
        let Some(at) = parent.member(name) else { return Vec::new() };
        if at.value.as_array().is_none() {
            self.fault(
                Code::E0902,
                &at,
                format!("{name} is a list, not {}", kind(at.value)),
                "each item begins with `- `",
            );
            return Vec::new();
        }
        at.items().collect()
    }

    pub(super) fn count(&mut self, at: &At<'_>, count: usize) {
        if count > DECLARATIONS_MAX {
            self.fault(
                Code::E0904,
                at,
                format!("there are {count} of them; a pack has at most {DECLARATIONS_MAX}"),
                "",
            );
        }
    }

    /// Takes text that is not empty.
    pub(crate) fn text<'a>(&mut self, parent: &At<'a>, name: &str) -> Option<&'a str> {
        let at = parent.member(name)?;
        match at.value.as_str() {
            Some(text) if !text.trim().is_empty() => Some(text),
            Some(_) => {
                self.fault(Code::E0902, &at, format!("{name} is empty"), "");
                None
            }
            None => {
                let message = format!("{name} is text, not {}", kind(at.value));
                // The spelling of a number is lost: 1.10 and 1.1 are one number and two versions.
                let hint = match at.value {
                    Value::Number(_) => format!("put it in quotes as you wrote it: {name}: \"...\""),
                    value => format!("put it in quotes: {name}: \"{value}\""),
                };
                self.fault(Code::E0902, &at, message, &hint);
                None
            }
        }
    }

    pub(crate) fn shared(&mut self, parent: &At<'_>, name: &str) -> Option<Arc<str>> {
        self.text(parent, name).map(Arc::from)
    }

    /// Reports that a member is not there.
    pub(crate) fn missing(&mut self, at: &At<'_>, message: String, hint: &str) {
        self.fault(Code::E0902, at, message, hint);
    }

    /// Parses an expression and reports all that is wrong with it.
    pub(crate) fn parse(
        &mut self,
        at: &At<'_>,
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
            Ok(expr) => return Some(expr),
            Err(error) => error,
        };
        let mut errors = Expr::problems(text, &place.scope);
        if errors.is_empty() {
            errors.push(error);
        }
        for error in errors {
            if !place.is_known_fault(&error, text) {
                self.expression(at, offset, place.explain(error, text));
            }
        }
        None
    }

    /// Parses the condition in a member.
    pub(crate) fn condition(&mut self, parent: &At<'_>, name: &str, place: &Place) -> Option<Expr> {
        let at = parent.member(name)?;
        match at.value {
            Value::String(text) => self.parse(&at, 0, text, place, true),
            Value::Bool(truth) => self.parse(&at, 0, &truth.to_string(), place, true),
            other => {
                let message = format!("{name} is a condition, written as text, not {}", kind(other));
                self.fault(Code::E0902, &at, message, "");
                None
            }
        }
    }
}

/// Reads the policy rules. They are recorded as they are written, so they use no name that the pack defines.
fn read_policy(reader: &mut Reader, root: &At<'_>) -> Vec<Value> {
    let mut rules: Vec<Value> = Vec::new();
    for at in reader.list(root, "policy") {
        rules.push(at.value.clone());
        if let Err((_, why)) = PolicyRules::read(&rules) {
            let hint = "like `{id: within_budget, holds: state.spent <= 600}`";
            reader.fault(Code::E0902, &at, why, hint);
            rules.pop();
        }
    }
    rules
}

pub(super) fn read(value: &Value, modules: &dyn Modules) -> Result<Pack, Vec<PackFault>> {
    let mut reader = Reader::default();
    let mut modules = Reading::new(modules);
    let root = At { value, path: Pointer::root() };
    if reader.object(&root, "a pack", &MEMBERS.map(|member| member.name)).is_none() {
        return Err(reader.finish());
    }
    let name = read_name(&mut reader, &root);
    let version = read_version(&mut reader, &root);
    let (words, goal) = (reader.shared(&root, "words"), reader.shared(&root, "goal"));
    let policy = read_policy(&mut reader, &root);
    let (engine, module) = read_engine(&mut reader, &root, &mut modules);
    let mut taken: BTreeSet<String> = RESERVED.iter().map(|name| (*name).to_owned()).collect();
    let constants = read_constants(&mut reader, &root, &mut taken);
    let definitions = read_definitions(&mut reader, &root, &mut taken, &mut modules);
    let mut named: Vec<String> = constants.iter().map(|constant| constant.name.clone()).collect();
    named.extend(definitions.iter().map(|definition| match definition.parameters.is_empty() {
        true => definition.name.clone(),
        false => format!("{}({})", definition.name, definition.parameters.join(", ")),
    }));
    let declared = read_declared(&mut reader, &root);
    let decimals: Vec<(String, Option<u8>)> =
        declared.iter().map(|field| (field.name.to_owned(), field.decimals)).collect();
    let datetimes = super::contracts::datetimes(&root);
    let scopes = Scopes::new(&mut reader, constants, &decimals, &datetimes, definitions);
    let types = read_types(&mut reader, &root);
    let tools = read_tools(&mut reader, &root, &scopes.rules);
    let rules = read_rules(&mut reader, &root, &scopes.rules, &declared, &types, &taken);
    if engine != PackEngine::Fold && !rules.is_empty() {
        let at = root.member("rules").unwrap_or_else(|| root.clone());
        let message = format!("a pack of {} has no rules", engine.as_str());
        reader.fault(Code::E0902, &at, message, "leave out `reducer`, or the rules");
    }
    let fold = Fold {
        rules,
        decimals: decimals.iter().filter_map(|(name, d)| Some((name.as_str().into(), (*d)?))).collect(),
    };
    let mut fields: Vec<PackField> = declared
        .into_iter()
        .filter_map(|field| {
            let init = match &field.init {
                Some(init) => Some(read_template(&mut reader, init, &scopes.init)?),
                None => None,
            };
            let (name, words) = (field.name.into(), field.words);
            let writers = read_writers(&mut reader, &field.at, &types);
            let combine = read_combine(&mut reader, &field.at);
            Some(PackField {
                name,
                words,
                decimals: field.decimals,
                written_by: Vec::new(),
                writers,
                combine,
                init,
            })
        })
        .collect();
    note_writers(&mut fields, &fold);
    check_merge(&mut reader, &root);
    check_commitments(&mut reader, &root, &fields);
    let digest = digest(value);
    let known = Known { place: &scopes.state, version: version.as_deref(), pack: digest, types: &types };
    let predicates = read_predicates(&mut reader, &root, &known, &mut modules);
    let approvers = read_approvers(&mut reader, &root);
    let mut taken: Vec<&str> = root
        .member("predicates")
        .into_iter()
        .flat_map(|at| at.members())
        .map(|(name, _)| name)
        .chain(ids(&root, "violations"))
        .collect();
    let asked = obligations::Known { types: &types, place: &scopes.state, taken: &taken };
    let obligations = obligations::read(&mut reader, &root, &asked, version.as_deref(), digest);
    taken.extend(ids(&root, "obligations"));
    let asked = obligations::Known { types: &types, place: &scopes.state, taken: &taken };
    let progress_contracts = progress::read_contracts(&mut reader, &root, &asked, digest);
    let progress = progress::read_plan(&mut reader, &root, &asked);
    let known = contracts::Known { fields: &decimals, types: &types, place: &scopes.state };
    let contracted = contracts::read(&mut reader, &root, &known);
    contracts::check_pillars(&mut reader, &root, &predicates);
    // Those with a fault, too: a test of one has no fault of its own.
    let names: Vec<&str> = taken.iter().copied().chain(ids(&root, "progress_contracts")).collect();
    let cases = cases::read(&mut reader, &reader_list(&root, "tests"), &scopes.state, &names);
    if let Some(tests) = root.member("tests").filter(|tests| tests.value.as_array().is_none()) {
        reader.fault(Code::E0902, &tests, "tests is a list", "each item begins with `- `");
    }
    let faults = reader.finish();
    match (name, version) {
        (Some(name), Some(version)) if faults.is_empty() => Ok(Pack {
            contracts: Contracts {
                name: Arc::clone(&name),
                version: Arc::clone(&version),
                types: contracted,
            },
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
        _ => Err(faults),
    }
}

/// The ids in a list, those of entries with a fault among them.
fn ids<'a>(root: &At<'a>, name: &str) -> impl Iterator<Item = &'a str> {
    reader_list(root, name).into_iter().filter_map(|at| at.value.get("id")?.as_str())
}

fn reader_list<'a>(root: &At<'a>, name: &str) -> Vec<At<'a>> {
    root.member(name).into_iter().flat_map(|at| at.items()).collect()
}

fn required_text(reader: &mut Reader, root: &At<'_>, name: &str, example: &str) -> Option<Arc<str>> {
    if root.member(name).is_none() {
        reader.missing(root, format!("a pack has a {name}"), &format!("add a line like `{example}`"));
    }
    reader.shared(root, name)
}

fn read_name(reader: &mut Reader, root: &At<'_>) -> Option<Arc<str>> {
    let name = required_text(reader, root, "name", "name: acme.orders")?;
    let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
    if name.len() <= NAME_SIZE_MAX && name.bytes().all(plain) && !name.starts_with(['.', '-']) {
        return Some(name);
    }
    let at = root.member("name").unwrap_or_else(|| root.clone());
    reader.fault(
        Code::E0903,
        &at,
        "this is not a name for a pack",
        "letters, digits, `.`, `_` and `-`, at most 128",
    );
    None
}

fn read_version(reader: &mut Reader, root: &At<'_>) -> Option<Arc<str>> {
    let version = required_text(reader, root, "version", "version: v1")?;
    if (1..=NAME_SIZE_MAX).contains(&version.len()) && version.bytes().all(|c| c.is_ascii_graphic()) {
        return Some(version);
    }
    let at = root.member("version").unwrap_or_else(|| root.clone());
    let hint = "printable ASCII without spaces, at most 128, like v1 or 2.0.3";
    reader.fault(Code::E0903, &at, "this is not a version of a pack", hint);
    None
}

/// Reads which engine reduces, and the module that it runs.
fn read_engine(reader: &mut Reader, root: &At<'_>, modules: &mut Reading<'_>) -> (PackEngine, Option<Made>) {
    let at = root.member("reducer");
    let named = at.as_ref().map(|at| match at.value {
        Value::Object(_) => {
            reader.object(at, "a reducer", &["engine", "digest"]);
            (reader.text(at, "engine"), at.member("engine").unwrap_or_else(|| at.clone()))
        }
        _ => (reader.text(root, "reducer"), at.clone()),
    });
    let engine = match named.as_ref().and_then(|(engine, _)| *engine) {
        Some("fold/1") | None => PackEngine::Fold,
        Some("delta/1") => PackEngine::Delta,
        Some(modules::NAME) => PackEngine::Wasm,
        Some(other) => {
            let (_, named) = named.as_ref().expect("it has a name");
            other_engine(reader, named, other, "fold/1, delta/1 and wasm/1");
            return (PackEngine::Fold, None);
        }
    };
    let module = root.member("module");
    match (engine, &at, &module) {
        (PackEngine::Wasm, Some(at), None) => {
            let message = "wasm/1 runs a module, and the pack names none";
            reader.fault(Code::E0902, at, message, "add `module:`, like `module: tally.wasm`");
        }
        (PackEngine::Wasm, ..) => {
            let digest = at.as_ref().and_then(|at| at.member("digest"));
            return (engine, modules.reducer(reader, root, digest.as_ref()));
        }
        (PackEngine::Fold | PackEngine::Delta, _, Some(module)) => {
            let message = format!("under {} no module reduces", engine.as_str());
            let hint = "add `reducer: wasm/1`; the module of a predicate stands in the predicate".to_owned();
            reader.name_fault(Code::E0902, module, message, Some(hint));
        }
        (PackEngine::Fold | PackEngine::Delta, _, None) => {}
    }
    (engine, None)
}

fn other_engine(reader: &mut Reader, at: &At<'_>, engine: &str, known: &str) {
    let message = format!("this program cannot run the engine {engine:?}; it runs {known}");
    reader.fault(
        Code::E0905,
        at,
        message,
        "a pack binds one engine; another program may run it, this one never guesses",
    );
}

fn take_name(reader: &mut Reader, at: &At<'_>, name: &str, taken: &mut BTreeSet<String>) {
    if !is_variable(name) {
        let hint = "letters, digits and _, not beginning with a digit, and no word of the language";
        reader.name_fault(
            Code::E0903,
            at,
            format!("`{name}` cannot be a name in expressions"),
            Some(hint.to_owned()),
        );
    } else if !taken.insert(name.to_owned()) {
        reader.name_fault(Code::E0903, at, format!("`{name}` has a meaning already"), None);
    }
}

fn read_constants(reader: &mut Reader, root: &At<'_>, taken: &mut BTreeSet<String>) -> Vec<Constant> {
    let members = reader.named(root, "constants", "values");
    members
        .into_iter()
        .map(|(name, at)| {
            take_name(reader, &at, name, taken);
            Constant { name: name.to_owned(), value: at.value.clone() }
        })
        .collect()
}

fn read_definitions<'a>(
    reader: &mut Reader,
    root: &At<'a>,
    taken: &mut BTreeSet<String>,
    modules: &mut Reading<'_>,
) -> Vec<Definition<'a>> {
    let mut definitions = Vec::new();
    for (signature, at) in reader.named(root, "define", "expressions") {
        let Some((name, parameters)) = split_signature(signature) else {
            let hint = "a definition is called `name` or `name(a, b)`".to_owned();
            reader.name_fault(Code::E0903, &at, "this is not a name with parameters", Some(hint));
            continue;
        };
        take_name(reader, &at, &name, taken);
        match at.value {
            Value::String(text) => definitions.push(Definition { name, parameters, text, at }),
            // No expression calls it: a graph does.
            Value::Object(_) => {
                if reader.object(&at, "a function", &["module", "digest"]).is_some() {
                    match at.member("module") {
                        Some(_) => drop(modules.function(reader, &at)),
                        None => reader.fault(
                            Code::E0902,
                            &at,
                            "a function has a module",
                            "like `{module: plan.wasm}`",
                        ),
                    }
                }
            }
            other => {
                let message = format!("a definition is an expression, written as text, not {}", kind(other));
                reader.fault(Code::E0902, &at, message, "fixed values belong in constants");
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

fn read_declared<'a>(reader: &mut Reader, root: &At<'a>) -> Vec<ReadField<'a>> {
    let mut fields = Vec::new();
    for (name, at) in reader.named(root, "state", "fields") {
        let name = tag::user_name(name);
        if name == COUNTERS || KERNEL_PATHS.contains(&name) {
            reader.name_fault(Code::E0903, &at, format!("`{name}` in the state is the kernel's"), None);
        }
        if reader.object(&at, "a field", &["words", "init", "decimals", "writers", "combine"]).is_none() {
            continue;
        }
        let (init, decimals) = (at.member("init"), read_decimals(reader, &at));
        fields.push(ReadField { name, words: reader.shared(&at, "words"), decimals, init, at });
    }
    fields
}

/// Who may write a field: transition types and authors.
fn read_writers(reader: &mut Reader, field: &At<'_>, types: &Types) -> Vec<Arc<str>> {
    let authors = [Author::Agent, Author::Runtime, Author::User].map(Author::as_str);
    let mut writers = Vec::new();
    for at in reader.list(field, "writers") {
        let text = at.value.as_str().unwrap_or_default();
        let is_type = text.parse::<TypeName>().is_ok_and(|name| has_type(types, &name));
        if is_type || authors.contains(&text) {
            writers.push(text.into());
            continue;
        }
        let near = near_type(types, text);
        let hint = near.map_or_else(
            || format!("a transition type, or one of {}", authors.join(", ")),
            |near| format!("did you mean {near}?"),
        );
        reader.fault(Code::E0903, &at, format!("nothing writes as {}", at.value), &hint);
    }
    if let Some(at) =
        field.member("writers").filter(|at| at.value.as_array().is_some_and(|all| all.is_empty()))
    {
        reader.fault(
            Code::E0902,
            &at,
            "the list of writers is empty",
            "name types or authors, or leave it out",
        );
    }
    writers
}

fn read_decimals(reader: &mut Reader, field: &At<'_>) -> Option<u8> {
    let at = field.member("decimals")?;
    match at.value.as_u64().filter(|decimals| *decimals <= DECIMALS_MAX) {
        Some(decimals) => u8::try_from(decimals).ok(),
        None => {
            reader.fault(
                Code::E0902,
                &at,
                format!("decimals is a number from 0 to {DECIMALS_MAX}, not {}", at.value),
                "",
            );
            None
        }
    }
}

fn read_types(reader: &mut Reader, root: &At<'_>) -> Types {
    let mut types = BTreeMap::new();
    for (name, at) in reader.named(root, "types", "what they mean") {
        let parsed = match name.parse::<TypeName>() {
            Ok(parsed) => parsed,
            Err(error) => {
                reader.name_fault(Code::E0903, &at, error.to_string(), None);
                continue;
            }
        };
        if ontology::TYPES.iter().any(|(known, _)| *known == name) {
            reader.name_fault(
                Code::E0903,
                &at,
                format!("{name} is a type already, with its own rules"),
                None,
            );
        }
        let words = match at.value {
            Value::Null => None,
            Value::String(words) => Some(Arc::clone(words)),
            other => {
                let message =
                    format!("a type is registered with what it means, as text, not with {}", kind(other));
                reader.fault(Code::E0902, &at, message, "");
                None
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

/// The members of a predicate. In a list it has an `id`, a `scope` and `enforce` besides, and no module.
const PREDICATE: [&str; 14] = [
    "id",
    "scope",
    "enforce",
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
    /// The `id` of an entry in a list; in a map the name is that of the member.
    id: Option<At<'a>>,
}

impl Entry<'_> {
    fn name_fault(&self, reader: &mut Reader, message: String, hint: &str) {
        let hint = (!hint.is_empty()).then_some(hint);
        match &self.id {
            Some(id) => reader.fault(Code::E0903, id, message, hint.unwrap_or_default()),
            None => reader.name_fault(Code::E0903, &self.at, message, hint.map(str::to_owned)),
        }
    }
}

/// Lists what must hold: `predicates` by name, and then the `violations` of a contract in their order (dendrer paper 3.3.3).
fn entries<'a>(reader: &mut Reader, root: &At<'a>) -> Vec<Entry<'a>> {
    let members = reader.named(root, "predicates", "what must hold");
    let mut entries: Vec<Entry<'a>> =
        members.into_iter().map(|(name, at)| Entry { name, at, id: None }).collect();
    let listed = reader.list(root, "violations");
    for at in listed {
        let Some((id, name)) = read_id(reader, &at, "a violation", "over_limit") else { continue };
        let entry = Entry { name, at, id: Some(id) };
        match entries.iter().any(|other| other.name == name) {
            true => entry.name_fault(reader, format!("there is another predicate named {name}"), ""),
            false => entries.push(entry),
        }
    }
    if let Some(at) = root.member("violations") {
        reader.count(&at, entries.len());
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
    reader: &mut Reader,
    root: &At<'_>,
    known: &Known<'_>,
    modules: &mut Reading<'_>,
) -> Vec<Declared> {
    let entries = entries(reader, root);
    let mut declared: Vec<Declared> = Vec::new();
    for entry in &entries {
        let scope = read_scope(reader, &entry.at, known.types);
        let read = read_predicate(reader, entry, known, modules);
        declared.extend(read.map(|read| Declared { predicate: read.predicate.scoped(scope), ..read }));
    }
    declared
}

/// The transition types that a pack registers.
pub(super) type Types = BTreeMap<TypeName, Option<Arc<str>>>;

/// Whether the ontology or the pack has a transition type.
pub(super) fn has_type(types: &Types, name: &TypeName) -> bool {
    types.contains_key(name) || ontology::TYPES.iter().any(|(known, _)| *known == name.as_str())
}

/// A transition type that may have been meant.
pub(super) fn near_type<'t>(types: &'t Types, name: &str) -> Option<&'t str> {
    let known = ontology::TYPES.iter().map(|(name, _)| *name);
    nearest(name, known.chain(types.keys().map(TypeName::as_str)))
}

/// Reads the `id` of an item of a list, with its place.
pub(super) fn read_id<'a>(
    reader: &mut Reader,
    at: &At<'a>,
    what: &str,
    example: &str,
) -> Option<(At<'a>, &'a str)> {
    let Some(id) = at.member("id") else {
        reader.missing(at, format!("{what} has an id"), &format!("add a line like `id: {example}`"));
        return None;
    };
    Some((id, reader.text(at, "id")?))
}

/// Reads at which transition types a violation is looked for.
fn read_scope(reader: &mut Reader, entry: &At<'_>, types: &Types) -> Vec<TypeName> {
    let mut scope = Vec::new();
    for at in reader.list(entry, "scope") {
        match at.value.as_str().and_then(|name| name.parse::<TypeName>().ok()) {
            Some(name) if has_type(types, &name) => scope.push(name),
            _ => {
                let near = at.value.as_str().and_then(|name| near_type(types, name));
                let hint = near.map(|near| format!("did you mean {near}?"));
                let message = format!("there is no transition type {}", at.value);
                reader.fault(Code::E0903, &at, message, hint.as_deref().unwrap_or_default());
            }
        }
    }
    scope
}

/// Reads who may approve extensions, by which key.
fn read_approvers(reader: &mut Reader, root: &At<'_>) -> Vec<(Arc<str>, VerifierKey)> {
    let mut approvers = Vec::new();
    for (name, at) in reader.named(root, "approvers", "their keys") {
        match at.value.as_str().map(str::parse::<VerifierKey>) {
            Some(Ok(key)) => approvers.push((name.into(), key)),
            Some(Err(error)) => reader.fault(
                Code::E0902,
                &at,
                error.to_string(),
                "name+id+key, as `contract keygen` prints it",
            ),
            None => {
                let message = format!("a key is text, not {}", kind(at.value));
                reader.fault(Code::E0902, &at, message, "name+id+key, as `contract keygen` prints it");
            }
        }
    }
    approvers
}

/// Tells what is wrong with the name of a predicate, and what to write instead.
pub(super) fn check_name(name: &str) -> Result<(), (String, &'static str)> {
    let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-');
    if name.is_empty() || name.len() > NAME_SIZE_MAX || !name.bytes().all(plain) {
        let message = "this is not a name for a predicate".to_owned();
        Err((message, "letters, digits, `.`, `_` and `-`, at most 128"))
    } else if name.starts_with("kernel.") || BUILT_IN.contains(&name) {
        Err((format!("{name} is the kernel's"), ""))
    } else {
        Ok(())
    }
}

fn read_predicate(
    reader: &mut Reader,
    entry: &Entry<'_>,
    pack: &Known<'_>,
    modules: &mut Reading<'_>,
) -> Option<Declared> {
    let (name, at) = (entry.name, &entry.at);
    if let Err((message, hint)) = check_name(name) {
        entry.name_fault(reader, message, hint);
    }
    let module = at.member("module");
    if let (Some(module), Some(_)) = (&module, &entry.id) {
        let message = "a violation is an expression: the door looks for it behind every transition";
        let hint = "name the module under `predicates`".to_owned();
        reader.name_fault(Code::E0902, module, message, Some(hint));
        return None;
    }
    let (what, known) = match entry.id {
        Some(_) => ("a violation", &PREDICATE[..PREDICATE.len() - 1]),
        None => ("a predicate", &PREDICATE[3..]),
    };
    reader.object(at, what, known)?;
    let words = reader.shared(at, "words");
    if let Some(engine) = reader.text(at, "engine") {
        let named = at.member("engine").unwrap_or_else(|| at.clone());
        match (engine, &module) {
            (modules::NAME, Some(_)) => {}
            (modules::NAME, None) => {
                let message = "wasm/1 runs a module, and the predicate names none";
                reader.fault(Code::E0902, &named, message, "add `module:`, like `module: risk.wasm`");
                return None;
            }
            _ => {
                other_engine(reader, &named, engine, "expressions and wasm/1 in predicates");
                return None;
            }
        }
    }
    let window = read_window(reader, at);
    let lifts = read_lift(reader, at);
    let forms = [
        ("holds", Polarity::Holds),
        ("condition", Polarity::Condition),
        ("base_predicate", Polarity::Condition),
    ];
    let mut given = forms.into_iter().filter(|(form, _)| at.member(form).is_some());
    let (asked, polarity) = match (given.next(), given.next(), module) {
        (Some((form, polarity)), None, None) => {
            (Asked::Expr(reader.condition(at, form, pack.place)?), polarity)
        }
        // A module says itself what the violation is.
        (None, _, Some(_)) => (Asked::Program(modules.program(reader, at)?), Polarity::Condition),
        _ => {
            let hint = "`holds` is what must be true, `condition` is the violation";
            let choice =
                if entry.id.is_some() { "holds and condition" } else { "holds, condition and module" };
            reader.fault(Code::E0902, at, format!("{what} has exactly one of {choice}"), hint);
            return None;
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
        reader.fault(Code::E0907, &at, message, hint);
    } else if let Some(at) = claims {
        // Registration finds out and does not believe (requirement D-188).
        let message = "nothing shows that it cannot recover";
        reader.fault(Code::E0907, &at, message, hint);
    }
    let claimed = at.member("monotone").is_some();
    let predicate = if claimed { predicate.monotone_by_text() } else { predicate };
    let predicate = predicate.enforced(read_enforce(reader, at));
    Some(Declared { predicate, words, is_violation: entry.id.is_some() })
}

/// Whether bisect is to look for the first violation, whatever comes after it (dendrer paper 3.3.3).
pub(super) fn read_lift(reader: &mut Reader, predicate: &At<'_>) -> bool {
    if let Some(pure) = predicate.member("pure").filter(|pure| *pure.value != Value::from(true)) {
        reader.fault(
            Code::E0902,
            &pure,
            "pure is true: no expression is anything else",
            "leave it out, or write `true`",
        );
    }
    if let Some(monotone) = predicate.member("monotone").filter(|at| *at.value != Value::from(true)) {
        let hint = "leave it out: a predicate that may recover says `bisect_predicate: monotone_lift`";
        reader.fault(Code::E0902, &monotone, "monotone is true, or not said", hint);
    }
    let Some(at) = predicate.member("bisect_predicate") else { return false };
    let is_lift = at.value.as_str() == Some(MONOTONE_LIFT);
    if !is_lift {
        let message = format!("a bisect_predicate is {MONOTONE_LIFT}, not {}", at.value);
        reader.fault(Code::E0902, &at, message, "without it, bisect refuses a predicate that recovers");
    }
    is_lift
}

/// Whether the door refuses what would newly violate it.
fn read_enforce(reader: &mut Reader, predicate: &At<'_>) -> bool {
    let Some(at) = predicate.member("enforce") else { return false };
    at.value.as_bool().unwrap_or_else(|| {
        reader.fault(Code::E0902, &at, format!("enforce is true or false, not {}", at.value), "");
        false
    })
}

fn read_window(reader: &mut Reader, predicate: &At<'_>) -> Window {
    let Some(at) = predicate.member("window") else { return Window::After };
    at.value.as_str().and_then(Window::from_word).unwrap_or_else(|| {
        reader.fault(Code::E0902, &at, format!("a window is after or before, not {}", at.value), "");
        Window::After
    })
}
