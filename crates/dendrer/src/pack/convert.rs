//! Converts a contract as the dendrer paper prints it (appendix G) to a pack, and the payload of an extension (4.4) to a file of
//! one.
//!
//! Each place that is renamed, added, moved or left out is listed with its reason. A member without a counterpart is an error with
//! its line, and nothing is converted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use dendrer_kernel::expr::{Expr, Scope};
use dendrer_kernel::ontology;
use dendrer_kernel::pack::members::Member;
use dendrer_object::{Code, Object, Pointer, TypeName, Value, tag};

use super::yaml::Document;
use super::{PackProblem, TextMark};

dendrer_object::words! {
    /// A difference between a text and what it was converted to.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ChangeKind {
        /// The place is not in the text.
        Added = "added",
        /// The place is in the text, and not in what it was converted to.
        LeftOut = "left_out",
        /// The place is elsewhere in the text.
        Moved = "moved",
        /// The place has another name, or another form.
        Renamed = "renamed",
    }
}

/// A place that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackChange {
    /// The place in the text that was read.
    pub mark: TextMark,
    /// The place in what was written; that in the text if it was left out.
    pub place: String,
    /// The difference.
    pub change: ChangeKind,
    /// The reason.
    pub reason: String,
}

/// A text that was converted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Converted {
    /// The pack or the extension, as YAML.
    pub text: String,
    /// Whether it is an extension.
    pub is_extension: bool,
    /// The differences, in the order of the text that was read.
    pub changes: Vec<PackChange>,
}

/// Converts a text.
///
/// # Errors
///
/// The places that have no counterpart (E0902), and everything that is wrong with the pack that comes out, at the places of the
/// text that was read.
pub fn convert(text: &[u8]) -> Result<Converted, Vec<PackProblem>> {
    let (text, mut changes) = without_print(&String::from_utf8_lossy(text));
    let document = Document::read(text.as_bytes())?;
    let mut reading =
        Reading { document: &document, changes: Vec::new(), problems: Vec::new(), marks: BTreeMap::new() };
    let has = |name: &str| document.value.get(name).is_some();
    let is_extension = has("payload") || has("transition_type") || has("target_contract");
    let made = if is_extension { reading.extension() } else { reading.pack() };
    let text = yaml(&made);
    if reading.problems.is_empty() && !is_extension {
        reading.check(&text);
    }
    if !reading.problems.is_empty() {
        reading.problems.sort_by_key(|problem| problem.mark);
        return Err(reading.problems);
    }
    changes.append(&mut reading.changes);
    changes.sort_by_key(|change| change.mark);
    Ok(Converted { text, is_extension, changes })
}

/// Blanks before the rest of a quoted text.
const QUOTED: usize = 40;

/// Whether a line leaves a text in double quotes open; `is_open` if the line before it did.
fn opens_quote(line: &str, is_open: bool) -> bool {
    let (mut is_open, mut escaped) = (is_open, false);
    for (at, c) in line.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if is_open => escaped = true,
            '"' => is_open = !is_open,
            '#' if !is_open && line[..at].ends_with([' ', '\t']) => return false,
            _ => {}
        }
    }
    is_open && !line.trim_start().starts_with('#')
}

/// The text without what printing did: fences of code, comments and quoted texts that were broken. Lines keep their numbers.
fn without_print(text: &str) -> (String, Vec<PackChange>) {
    let (mut kept, mut changes) = (String::new(), Vec::new());
    let (mut comments, mut is_comment, mut is_quoted) = (None, false, false);
    for (number, line) in text.lines().enumerate() {
        let (bare, mark) = (line.trim(), TextMark { line: number + 1, column: 1 });
        let mut leave_out = |reason: &str| {
            let (change, reason) = (ChangeKind::LeftOut, reason.to_owned());
            changes.push(PackChange { mark, place: String::new(), change, reason });
        };
        let is_rest =
            is_comment && !bare.is_empty() && !bare.starts_with(['#', '-', '`']) && !bare.contains(':');
        let was_quoted = is_quoted;
        is_quoted = opens_quote(line, was_quoted);
        match () {
            // The rest of a quoted text is indented further than any member.
            () if was_quoted => {
                kept.push_str(&" ".repeat(QUOTED));
                kept.push_str(bare);
            }
            () if bare.starts_with("```") => leave_out("a fence of the print"),
            () if is_rest => leave_out("the rest of a comment, which was broken in print"),
            () => kept.push_str(line),
        }
        kept.push('\n');
        is_comment = is_rest || bare.starts_with('#');
        if is_comment {
            let (_, count) = comments.get_or_insert((mark, 0));
            *count += 1;
        }
    }
    if let Some((mark, count)) = comments {
        let reason =
            format!("comments are not converted: {}", dendrer_object::text::count(count, "line", "lines"));
        changes.push(PackChange { mark, place: String::new(), change: ChangeKind::LeftOut, reason });
    }
    (kept, changes)
}

fn child(at: &Pointer, name: &str) -> Pointer {
    let tokens: Vec<_> = at.tokens().collect();
    Pointer::of(tokens.iter().map(|token| &**token).chain([name]))
}

/// Whether a text is a version as the paper writes it: `v1`.
fn is_version(text: &str) -> bool {
    text.strip_prefix('v').is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

/// The writers of a field that contracts require: none of them is an agent.
fn writers() -> Value {
    Value::array(["user".into(), "runtime".into()])
}

/// Whether a type is new: the ontology has no such name.
fn is_new_type(name: &str) -> bool {
    name.parse().is_ok_and(|name: TypeName| ontology::class(&name, &BTreeSet::new()).is_none())
}

/// A member with its place in the text.
struct Part {
    name: Arc<str>,
    value: Value,
    at: Pointer,
}

/// A contract of the text.
struct Printed {
    part: Part,
    fields: Vec<Part>,
    others: Vec<(&'static str, Value)>,
}

struct Reading<'d> {
    document: &'d Document,
    changes: Vec<PackChange>,
    problems: Vec<PackProblem>,
    /// The places of what is written in the text that was read.
    marks: BTreeMap<String, TextMark>,
}

impl Reading<'_> {
    fn fault(&mut self, at: &Pointer, message: String, hint: &str) {
        let mark = self.document.mark(at, true, None);
        let (place, line, hint) = (at.dotted(), self.document.line(mark), Some(hint.to_owned()));
        self.problems.push(PackProblem { code: Code::E0902, mark, place, message, hint, line });
    }

    fn change(&mut self, at: &Pointer, place: &str, change: ChangeKind, reason: impl Into<String>) {
        let mark = self.document.mark(at, true, None);
        self.changes.push(PackChange { mark, place: place.to_owned(), change, reason: reason.into() });
    }

    fn no_counterpart(&mut self, part: &Part, of: &str) {
        let message = format!("{} has no counterpart in {of}", tag::user_name(&part.name));
        self.fault(
            &part.at,
            message,
            "take it out, or write what it says in a member that `docs/packs.md` lists",
        );
    }

    /// The members of an object, in the order of the text.
    fn parts(&mut self, at: &Pointer, what: &str) -> Vec<Part> {
        let Some(members) = at.get(&self.document.value).and_then(Value::as_object) else {
            self.fault(at, format!("{what} is an object"), "like `name: value`, a line each");
            return Vec::new();
        };
        let part = |(name, value): (&Arc<str>, &Value)| Part {
            name: Arc::clone(name),
            value: value.clone(),
            at: child(at, name),
        };
        let mut parts: Vec<Part> = members.iter().map(part).collect();
        parts.sort_by_key(|part| self.document.mark(&part.at, true, None));
        parts
    }

    /// Notes the place in the text of a place in what is written.
    fn is_from(&mut self, place: String, at: &Pointer) {
        self.marks.insert(place, self.document.mark(at, true, None));
    }

    fn pack(&mut self) -> Object {
        let mut made = Object::default();
        let mut contracts: Vec<Printed> = Vec::new();
        let mut violations = Value::array([]);
        for part in self.parts(&Pointer::root(), "a contract file") {
            let name = Arc::clone(&part.name);
            self.is_from(name.to_string(), &part.at);
            match &*name {
                "id" => self.version(&part, &mut made),
                "namespace" => {
                    self.change(&part.at, "name", ChangeKind::Renamed, "a pack is named by its namespace");
                    self.is_from("name".to_owned(), &part.at);
                    made.set("name", part.value);
                }
                "contracts" => {
                    for part in self.parts(&part.at, "`contracts`") {
                        let printed = self.contract(part);
                        contracts.push(printed);
                    }
                }
                "violations" => violations = self.violations(&part, "violations"),
                _ if Member::find(&name).is_some() => made.set(&name, part.value),
                _ => self.lost_indentation(part, &mut contracts),
            }
        }
        self.guard(&mut violations, &contracts);
        self.declare(&mut made, &contracts);
        made.set("violations", violations);
        made
    }

    /// The name of a contract of the paper ends with its version.
    fn version(&mut self, part: &Part, made: &mut Object) {
        let text = part.value.as_str().unwrap_or_default();
        let cut = text.rfind(['_', '.', '-', '/']).map(|at| (&text[..at], &text[at + 1..]));
        let Some((name, version)) = cut.filter(|(name, version)| !name.is_empty() && is_version(version))
        else {
            return self.fault(
                &part.at,
                format!("{} has no version", part.value),
                "like `id: claims_adjuster_v1`",
            );
        };
        self.change(&part.at, "version", ChangeKind::Renamed, format!("{version} is the version of {text}"));
        self.is_from("version".to_owned(), &part.at);
        made.set("version", version.into());
        if self.document.value.get("words").is_none() {
            self.change(&part.at, "words", ChangeKind::Added, "the whole id, which a pack has no member for");
            made.set("words", text.into());
        }
        if self.document.value.get("namespace").is_none() && self.document.value.get("name").is_none() {
            self.change(&part.at, "name", ChangeKind::Renamed, "the id without its version");
            made.set("name", name.into());
        }
    }

    fn contract(&mut self, part: Part) -> Printed {
        let (mut fields, mut others) = (Vec::new(), Vec::new());
        self.is_from(format!("contracts.{}", part.name), &part.at);
        for inner in self.parts(&part.at, "a contract") {
            match &*inner.name {
                "required_state" => fields = self.parts(&inner.at, "`required_state`"),
                _ => self.of_contract(&part.name, inner, &mut others),
            }
        }
        Printed { part, fields, others }
    }

    fn of_contract(&mut self, contract: &str, part: Part, others: &mut Vec<(&'static str, Value)>) {
        let name = match &*part.name {
            "hash_seeds" => "hash_seeds",
            "advisory" => "advisory",
            "words" => "words",
            "match" => "match",
            "advisory_allowlist" => {
                let place = format!("contracts.{contract}.advisory");
                self.change(&part.at, &place, ChangeKind::Renamed, "the fields that may be named besides");
                "advisory"
            }
            _ => return self.no_counterpart(&part, "a contract"),
        };
        if others.iter().any(|(known, _)| *known == name) {
            return self.fault(
                &part.at,
                format!("the contract of {contract} has {name} twice"),
                "one of them is meant",
            );
        }
        self.is_from(format!("contracts.{contract}.{name}"), &part.at);
        others.push((name, part.value));
    }

    /// A member at the top that belongs into the contract before it: the print lost its indentation.
    fn lost_indentation(&mut self, part: Part, contracts: &mut Vec<Printed>) {
        let is_contract = part.value.get("required_state").is_some();
        let last = contracts.last_mut().filter(|_| !is_contract);
        let place = match (&*part.name, last) {
            (_, _) if is_contract => {
                let place = format!("contracts.{}", part.name);
                self.change(&part.at, &place, ChangeKind::Moved, "it is a contract: it has `required_state`");
                let printed = self.contract(part);
                return contracts.push(printed);
            }
            ("hash_seeds" | "advisory" | "advisory_allowlist", Some(last)) => {
                let place = format!("contracts.{}.{}", last.part.name, part.name);
                let (at, name) = (part.at.clone(), Arc::clone(&last.part.name));
                self.of_contract(&name, part, &mut last.others);
                (at, place)
            }
            (_, Some(last)) if part.value.get("type").is_some_and(|kind| kind.as_str().is_some()) => {
                let place = format!("contracts.{}.required_state.{}", last.part.name, part.name);
                if last.fields.iter().any(|known| known.name == part.name) {
                    let message = format!("{place} stands twice");
                    return self.fault(&part.at, message, "one of them is meant");
                }
                let at = part.at.clone();
                last.fields.push(part);
                (at, place)
            }
            _ => return self.no_counterpart(&part, "a pack"),
        };
        let (at, place) = place;
        self.change(
            &at,
            &place,
            ChangeKind::Moved,
            "the contract before it is the one that has such members",
        );
    }

    fn violations(&mut self, list: &Part, place: &str) -> Value {
        let Some(items) = list.value.as_array() else {
            self.fault(&list.at, format!("{place} is a list"), "like `- id: over_limit`");
            return Value::array([]);
        };
        let made: Vec<Value> = (0..items.len())
            .map(|index| {
                let at = child(&list.at, &index.to_string());
                self.violation(&at, &format!("{place}[{index}]"))
            })
            .collect();
        Value::array(made)
    }

    fn violation(&mut self, at: &Pointer, place: &str) -> Value {
        let mut made = Object::default();
        self.is_from(place.to_owned(), at);
        let mut lifted = None;
        for part in self.parts(at, "a violation") {
            let inner = |name: &str| format!("{place}.{name}");
            let is_true = part.value.as_bool() == Some(true);
            match &*part.name {
                "name" if made.get("words").is_none() => {
                    self.change(&part.at, &inner("words"), ChangeKind::Renamed, "words for people");
                    made.set("words", part.value);
                }
                "state" if matches!(part.value.as_str(), Some("before" | "after")) => {
                    self.change(
                        &part.at,
                        &inner("window"),
                        ChangeKind::Renamed,
                        "which state the condition sees",
                    );
                    made.set("window", part.value);
                }
                "monotone" if is_true => {
                    let reason = "the first violation counts, whatever the state is later";
                    self.change(&part.at, &inner("bisect_predicate"), ChangeKind::Renamed, reason);
                    lifted = Some(());
                }
                "monotone" => {
                    let message = "a violation that may recover has no counterpart".to_owned();
                    self.fault(&part.at, message, "write it under `predicates`, or `monotone: true`");
                }
                "pure" if !is_true => {
                    let message = "a condition that is not pure has no counterpart".to_owned();
                    self.fault(&part.at, message, "an expression is pure by construction: `pure: true`");
                }
                "id" | "scope" | "condition" | "base_predicate" | "holds" | "words" | "window" | "pure"
                | "enforce" | "bisect_predicate" => made.set(&part.name, part.value),
                _ => self.no_counterpart(&part, "a violation"),
            }
            self.is_from(inner(&part.name), &part.at);
        }
        if made.get("bisect_predicate").is_none() {
            if lifted.is_none() {
                let reason = "the first violation counts: nothing says that the condition cannot recover";
                self.change(at, &format!("{place}.bisect_predicate"), ChangeKind::Added, reason);
            }
            made.set("bisect_predicate", "monotone_lift".into());
        }
        Value::Object(made)
    }

    /// A condition over fields that its contracts require is not asked before they are written.
    fn guard(&mut self, violations: &mut Value, contracts: &[Printed]) {
        let Value::Array(items) = &*violations else { return };
        let mut made: Vec<Value> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let mut item = item.as_object().cloned().unwrap_or_default();
            let listed = item.get("scope").cloned().unwrap_or(Value::Null);
            let scope = listed.as_array().into_iter().flat_map(|scope| scope.iter());
            let scope: Vec<&str> = scope.filter_map(Value::as_str).collect();
            for name in ["condition", "base_predicate"] {
                let Some(condition) = item.get(name).and_then(Value::as_str).map(str::to_owned) else {
                    continue;
                };
                let fields = guarded(&condition, &scope, contracts);
                if fields.is_empty() {
                    continue;
                }
                let guards: Vec<String> = fields.iter().map(|field| format!("has(state.{field})")).collect();
                let place = format!("violations[{index}].{name}");
                let at = Pointer::of(["violations", &index.to_string(), name]);
                let reason = format!(
                    "{} before the condition: its contracts require them, and before they are written nothing can be judged",
                    guards.join(" && ")
                );
                self.change(&at, &place, ChangeKind::Added, reason);
                item.set(name, format!("{} && ({condition})", guards.join(" && ")).into());
            }
            made.push(Value::Object(item));
        }
        *violations = Value::array(made);
    }

    /// Declares the fields and the types that contracts name.
    fn declare(&mut self, made: &mut Object, contracts: &[Printed]) {
        let of = |made: &Object, name: &str| {
            made.get(name).and_then(Value::as_object).cloned().unwrap_or_default()
        };
        let (mut state, mut types) = (of(made, "state"), of(made, "types"));
        let (given, mut all) = (state.clone(), Object::default());
        for Printed { part, fields, others } in contracts {
            let name = &*part.name;
            if is_new_type(name) && types.get(name).is_none() {
                self.change(
                    &part.at,
                    &format!("types.{name}"),
                    ChangeKind::Added,
                    "a type is declared, with words",
                );
                types.set(name, name.replace(['_', '.'], " ").into());
            }
            let mut required = Object::default();
            for field in fields {
                self.is_from(format!("contracts.{name}.required_state.{}", field.name), &field.at);
                required.set(&field.name, field.value.clone());
                if given.get(&field.name).is_none() {
                    self.declare_field(field, &mut state);
                }
            }
            let mut contract = Object::default();
            if !required.is_empty() {
                contract.set("required_state", Value::Object(required));
            }
            others.iter().for_each(|(name, value)| contract.set(name, value.clone()));
            all.set(name, Value::Object(contract));
        }
        if made.get("reducer").is_none() && made.get("rules").is_none() {
            let reason = "the text has no rules: each line brings its change of the state";
            self.change(&Pointer::root(), "reducer", ChangeKind::Added, reason);
            made.set("reducer", "delta/1".into());
        }
        for (name, members) in [("state", state), ("types", types), ("contracts", all)] {
            if !members.is_empty() {
                made.set(name, Value::Object(members));
            }
        }
    }

    fn declare_field(&mut self, field: &Part, state: &mut Object) {
        let name = &*field.name;
        let mut declared = Object::default();
        let place = format!("state.{}", tag::user_name(name));
        if let Some(precision) = field.value.get("precision") {
            declared.set("decimals", precision.clone());
        }
        if field.value.get("nullable").and_then(Value::as_bool) == Some(true) {
            let name = tag::user_name(name);
            declared.set("init", format!("has(s0.{name}) ? s0.{name} : null").into());
        }
        declared.set("writers", writers());
        match state.get(name) {
            None => {
                let reason =
                    "a field is declared; an agent that could write it would meet its own requirement";
                self.change(&field.at, &place, ChangeKind::Added, reason);
                self.is_from(place, &field.at);
                state.set(name, Value::Object(declared));
            }
            Some(known) if *known == Value::Object(declared) => {}
            Some(_) => {
                let message = format!(
                    "another contract gives {name} another precision, or says otherwise whether it may be null"
                );
                self.fault(&field.at, message, "one field of the state has one form");
            }
        }
    }

    fn extension(&mut self) -> Object {
        let root = Pointer::root();
        let mut made = Object::default();
        let mut parts = Vec::new();
        for part in self.parts(&root, "an extension") {
            match &*part.name {
                "payload" => {
                    self.change(&part.at, "", ChangeKind::Moved, "its members are those of the extension");
                    parts.extend(self.parts(&part.at, "`payload`"));
                }
                "transition_type" if part.value.as_str() == Some("policy.contract_extension") => {
                    self.change(
                        &part.at,
                        "transition_type",
                        ChangeKind::LeftOut,
                        "an extension has no other type",
                    );
                }
                _ => parts.push(part),
            }
        }
        for part in parts {
            let name = Arc::clone(&part.name);
            match &*name {
                "target_contract" => self.target(&part, &mut made),
                "adds_violations" => {
                    let list = self.violations(&part, "adds_violations");
                    self.conditions(&list, &part.at);
                    made.set(&name, list);
                }
                "adds_required"
                | "adds_hash_seeds"
                | "adds_state"
                | "adds_rules"
                | "effective_from_tick"
                | "approved_by"
                | "types"
                | "words" => made.set(&name, part.value.clone()),
                _ => self.no_counterpart(&part, "an extension"),
            }
            if &*name == "adds_required" && self.document.value.get("adds_state").is_none() {
                self.adds_state(&part, &mut made);
            }
        }
        made
    }

    /// The paper writes `acme.financial.v1` for the name and the version of a contract.
    fn target(&mut self, part: &Part, made: &mut Object) {
        let text = part.value.as_str().unwrap_or_default();
        let cut = text.rsplit_once('.').filter(|(_, version)| !text.contains('/') && is_version(version));
        match cut {
            Some((name, version)) => {
                let target = format!("{name}/{version}");
                self.change(
                    &part.at,
                    "target_contract",
                    ChangeKind::Renamed,
                    "name and version have a slash between them",
                );
                made.set("target_contract", target.into());
            }
            None if text.contains('/') => made.set("target_contract", part.value.clone()),
            None => {
                self.fault(&part.at, format!("{} has no version", part.value), "like `acme.financial.v1`")
            }
        }
    }

    /// The fields that are required are declared.
    fn adds_state(&mut self, part: &Part, made: &mut Object) {
        if made.get("adds_state").is_some() {
            return;
        }
        let names: Vec<Arc<str>> = match &part.value {
            Value::Array(names) => names.iter().filter_map(Value::as_str).map(tag::stored_name).collect(),
            Value::Object(members) => members.iter().map(|(name, _)| Arc::clone(name)).collect(),
            _ => return self.fault(&part.at, "adds_required lists fields".to_owned(), "like `[kyc_status]`"),
        };
        let writers = Value::record([("writers", writers())]);
        for name in &names {
            let place = format!("adds_state.{}", tag::user_name(name));
            let reason = "a field is declared; take it out if the contract declares it already";
            self.change(&part.at, &place, ChangeKind::Added, reason);
        }
        let state = names.iter().map(|name| (Arc::clone(name), writers.clone()));
        made.set("adds_state", Value::Object(state.collect()));
    }

    /// The conditions of an extension are expressions.
    fn conditions(&mut self, list: &Value, at: &Pointer) {
        for (index, item) in list.as_array().into_iter().flat_map(|list| list.iter()).enumerate() {
            for name in ["condition", "base_predicate", "holds"] {
                let Some(text) = item.get(name).and_then(Value::as_str) else { continue };
                if let Err(error) = Expr::parse_condition(text, &Scope::default()) {
                    let at = child(&child(at, &index.to_string()), name);
                    self.fault(&at, error.to_string(), "a condition is an expression (docs/expressions.md)");
                }
            }
        }
    }

    /// Reports what is wrong with the pack that was written, at its places in the text.
    fn check(&mut self, text: &str) {
        let Err(problems) = super::read(text.as_bytes()) else { return };
        for problem in problems {
            let mut place = &*problem.place;
            let mark = loop {
                match (self.marks.get(place), place.rfind(['.', '['])) {
                    (Some(mark), _) => break *mark,
                    (None, Some(at)) => place = &place[..at],
                    (None, None) => break TextMark { line: 1, column: 1 },
                }
            };
            self.problems.push(PackProblem { mark, line: self.document.line(mark), ..problem });
        }
    }
}

/// The fields without null that a condition reads and every contract of its scope requires.
fn guarded(condition: &str, scope: &[&str], contracts: &[Printed]) -> BTreeSet<String> {
    let required = |contract: &Printed| -> BTreeSet<String> {
        let is_null = |field: &&Part| field.value.get("nullable").and_then(Value::as_bool) == Some(true);
        contract.fields.iter().filter(|field| !is_null(field)).map(|field| field.name.to_string()).collect()
    };
    let mut of_scope = scope.iter().map(|name| {
        contracts.iter().find(|contract| &*contract.part.name == *name).map(&required).unwrap_or_default()
    });
    let Some(first) = of_scope.next() else { return BTreeSet::new() };
    let all = of_scope.fold(first, |all, next| all.intersection(&next).cloned().collect());
    let reads = |field: &String| {
        condition.match_indices(&format!("state.{field}")).any(|(at, found)| {
            let next = condition[at + found.len()..].chars().next();
            let before = condition[..at].chars().next_back();
            let is_name = |c: char| c.is_alphanumeric() || c == '_';
            !next.is_some_and(is_name) && !before.is_some_and(|c| is_name(c) || c == '.')
        })
    };
    all.into_iter().filter(reads).collect()
}

/// Members in the order in which people read them; others follow.
const ORDER: [&str; 31] = [
    "id",
    "name",
    "version",
    "target_contract",
    "words",
    "goal",
    "reducer",
    "constants",
    "define",
    "types",
    "adds_state",
    "state",
    "tools",
    "rules",
    "contracts",
    "required_state",
    "adds_required",
    "hash_seeds",
    "adds_hash_seeds",
    "advisory",
    "match",
    "type",
    "precision",
    "nullable",
    "init",
    "decimals",
    "scope",
    "window",
    "condition",
    "pure",
    "bisect_predicate",
];

fn ordered(members: &Object) -> Vec<(&Arc<str>, &Value)> {
    let place = |name: &str| ORDER.iter().position(|known| *known == name).unwrap_or(ORDER.len());
    let mut parts: Vec<(&Arc<str>, &Value)> = members.iter().collect();
    parts.sort_by_key(|(name, _)| place(name));
    parts
}

/// Writes a value as YAML: three levels in blocks, the rest in one line.
fn yaml(members: &Object) -> String {
    let mut text = String::new();
    for (name, value) in ordered(members) {
        block(&mut text, 0, &format!("{}:", plain(tag::user_name(name))), value);
    }
    text
}

fn block(text: &mut String, depth: usize, head: &str, value: &Value) {
    let pad = "  ".repeat(depth);
    let is_small = |value: &Value| match value {
        Value::Object(members) => members.iter().all(|(_, value)| {
            value.as_object().is_none() && value.as_array().is_none_or(|list| list.len() < 3)
        }),
        Value::Array(items) => items.iter().all(|item| item.as_object().is_none()),
        _ => true,
    };
    match value {
        Value::Object(members) if !members.is_empty() && depth < 3 && (depth == 0 || !is_small(value)) => {
            let _ = writeln!(text, "{pad}{head}");
            for (name, value) in ordered(members) {
                block(text, depth + 1, &format!("{}:", plain(tag::user_name(name))), value);
            }
        }
        Value::Array(items) if !is_small(value) && depth < 2 => {
            let _ = writeln!(text, "{pad}{head}");
            for item in items.iter() {
                let mut dash = "- ";
                for (name, value) in item.as_object().into_iter().flat_map(ordered) {
                    let _ = writeln!(text, "{pad}  {dash}{}: {}", plain(tag::user_name(name)), flow(value));
                    dash = "  ";
                }
            }
        }
        _ => drop(writeln!(text, "{pad}{head} {}", flow(value))),
    }
}

fn flow(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let one = |(name, value): (&Arc<str>, &Value)| {
                format!("{}: {}", plain(tag::user_name(name)), flow(value))
            };
            format!("{{{}}}", ordered(members).into_iter().map(one).collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        _ => value.as_str().map_or_else(|| value.to_string(), plain),
    }
}

/// A text without quotes where every reader of YAML takes it for one.
fn plain(text: &str) -> String {
    let is_word = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"._/".contains(&c));
    let is_other = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    if is_word && !is_other.contains(&&*text.to_ascii_lowercase()) {
        return text.to_owned();
    }
    Value::from(text).to_string()
}
