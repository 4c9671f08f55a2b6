//! Converts a contract as the dendrer paper prints it (appendix G) to a pack, and the payload of an extension (4.4) to a file of
//! one.
//!
//! Each place that is renamed, added, moved or left out is listed with its reason. A member without a counterpart is an error with
//! its line, and nothing is converted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use dendrer_kernel::contract::ValueKind;
use dendrer_kernel::names::{KERNEL_PATHS, STATE_FIELDS};
use dendrer_kernel::ontology;
use dendrer_kernel::pack::members::Member;
use dendrer_kernel::pack::{Bound, MONOTONE_LIFT};
use dendrer_kernel::step::{EXTENSION, Extension, ExtensionFault, Inputs, Seeds, Stage, Start, begin};
use dendrer_object::{Code, Object, Pointer, StoreId, Timestamp, TypeName, Value, tag};

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
    let (document, mut changes) = read(text)?;
    let mut reading = Reading {
        document: &document,
        changes: Vec::new(),
        problems: Vec::new(),
        read: BTreeMap::new(),
        from: BTreeMap::new(),
    };
    let has = |name: &str| document.value.get(name).is_some();
    let is_extension = ["payload", "transition_type", "target_contract", "effective_from_tick"]
        .iter()
        .chain(&["adds_required", "adds_hash_seeds", "adds_violations", "adds_state", "adds_rules"])
        .any(|name| has(name));
    let made = if is_extension { reading.extension() } else { reading.pack() };
    let text = yaml(&made);
    if reading.problems.is_empty() {
        // Text is read again: the checks look at what is in the file.
        let made = Document::read(text.as_bytes())?.value;
        reading.check_read(&made);
        match is_extension {
            true => reading.check_extension(&made),
            false => reading.check(&made),
        }
    }
    if !reading.problems.is_empty() {
        reading.problems.sort_by_key(|problem| problem.mark);
        return Err(reading.problems);
    }
    changes.append(&mut reading.changes);
    changes.sort_by_key(|change| change.mark);
    Ok(Converted { text, is_extension, changes })
}

/// Reads a text as it is. Only one that is not YAML is read without what printing did to it.
fn read(text: &[u8]) -> Result<(Document, Vec<PackChange>), Vec<PackProblem>> {
    let (document, mut changes) = match (Document::read(text), std::str::from_utf8(text)) {
        (Ok(document), _) => (document, Vec::new()),
        (Err(problems), Err(_)) => return Err(problems),
        (Err(problems), Ok(text)) => {
            let (repaired, changes) = without_print(text);
            let document = Document::read(repaired.as_bytes());
            (document.map_err(|others| if changes.is_empty() { problems } else { others })?, changes)
        }
    };
    let comments = document.comments();
    if let Some(first) = comments.first() {
        let lines = comments.iter().map(|mark| mark.line).collect::<BTreeSet<_>>().len() as u64;
        let count = dendrer_object::text::count(lines, "line", "lines");
        changes.push(left_out(*first, format!("comments are not converted: {count}")));
    }
    Ok((document, changes))
}

fn left_out(mark: TextMark, reason: String) -> PackChange {
    PackChange { mark, place: String::new(), change: ChangeKind::LeftOut, reason }
}

/// Names of members without an underscore, of the paper's form and of packs.
const MEMBER_NAMES: [&str; 24] = [
    "advisory",
    "approvals",
    "condition",
    "contracts",
    "enforce",
    "enum",
    "fields",
    "id",
    "init",
    "match",
    "monotone",
    "name",
    "namespace",
    "nullable",
    "payload",
    "required",
    "scope",
    "state",
    "type",
    "types",
    "values",
    "version",
    "violations",
    "words",
];

/// Blanks before the rest of a quoted text.
const QUOTED: usize = 40;

/// The quote that a line leaves open; `open` is that of the line before it.
fn open_quote(line: &str, mut open: Option<char>) -> Option<char> {
    let (mut escaped, mut before) = (false, ' ');
    for c in line.chars() {
        match (open, c) {
            _ if escaped => escaped = false,
            (Some('"'), '\\') => escaped = true,
            (Some(quote), c) if c == quote => open = None,
            (None, '#') if before.is_whitespace() => return None,
            (None, '\'') if before == '\'' => open = Some(c),
            (None, '"' | '\'') if " \t[{,".contains(before) => open = Some(c),
            _ => {}
        }
        before = c;
    }
    open
}

/// Whether nothing can follow the value with which a line ends, or only after a comment that fills its line.
fn ends_value(line: &str, is_full: bool) -> bool {
    let value = line.rsplit(' ').next().unwrap_or_default();
    line.is_empty()
        || line.ends_with(['}', ']', '`'])
        || matches!(value, "true" | "false")
        || (is_full && line.ends_with(['"', '\'']))
}

/// Whether a line may be a member that lost its colon: it is never taken for words.
fn is_like_member(line: &str) -> bool {
    let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
    let is_name = first.contains('_') || MEMBER_NAMES.contains(&first);
    let is_set = |sign: char| matches!(sign, ':' | '=' | '：');
    line.contains(is_set)
        || (is_name && !rest.is_empty())
        || rest.trim_start().starts_with(['[', '{', '"', '\''])
}

/// The text without what printing did: fences of code, comments and quoted texts that were broken. Lines keep their numbers.
fn without_print(text: &str) -> (String, Vec<PackChange>) {
    let length = |line: &str| line.trim_end().chars().count();
    let widest = text.lines().map(length).max().unwrap_or_default();
    let (mut kept, mut changes) = (String::new(), Vec::new());
    let (mut comment, mut value, mut quote, mut block) = (None::<&str>, "", None, None::<usize>);
    for (number, line) in text.lines().enumerate() {
        let (bare, mark) = (line.trim(), TextMark { line: number + 1, column: 1 });
        let indent = line.len() - line.trim_start().len();
        block = block.filter(|outer| bare.is_empty() || indent > *outer);
        let first = bare.split(' ').next().unwrap_or_default();
        let is_rest = comment.is_some_and(|comment| {
            let is_full = length(comment) + 1 + length(first) > widest;
            ends_value(value, is_full) && !first.starts_with(['#', '-', '`']) && !is_like_member(bare)
        });
        let was_open = quote.is_some();
        if block.is_some() || bare.is_empty() {
            kept.push_str(line);
        } else if was_open {
            // The rest of a quoted text is indented further than any member.
            kept.push_str(&" ".repeat(QUOTED));
            kept.push_str(bare);
        } else if bare.starts_with("```") {
            changes.push(left_out(mark, "a fence of the print".to_owned()));
        } else if is_rest {
            changes.push(left_out(mark, "the rest of a comment, which was broken in print".to_owned()));
        } else {
            kept.push_str(line);
        }
        kept.push('\n');
        if block.is_some() || bare.is_empty() {
            continue;
        }
        let is_comment = !was_open && (is_rest || bare.starts_with('#'));
        comment = (is_comment || bare.contains(" #")).then_some(line);
        if !is_comment {
            // A quoted text with this in it is not taken to be complete.
            value = bare.split(" #").next().unwrap_or_default().trim_end();
            quote = open_quote(line, quote);
            let head = value.trim_end_matches(|c: char| "+-".contains(c) || c.is_ascii_digit());
            block = (quote.is_none()
                && [": |", ": >", "- |", "- >"].iter().any(|indicator| head.ends_with(indicator)))
            .then_some(indent);
        }
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

/// Lists the values without members, each with its place.
fn leaves_of<'v>(value: &'v Value, at: Pointer, found: &mut Vec<(Pointer, &'v Value)>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            members.iter().for_each(|(name, value)| leaves_of(value, child(&at, name), found));
        }
        Value::Array(items) if !items.is_empty() => {
            let items = items.iter().enumerate();
            items.for_each(|(index, item)| leaves_of(item, child(&at, &index.to_string()), found));
        }
        _ => found.push((at, value)),
    }
}

/// The entry of a place, or of the nearest that it lies in, with the rest of its names.
fn ancestor<'m, T>(map: &'m BTreeMap<Pointer, T>, at: &Pointer) -> (Option<&'m T>, Vec<String>) {
    let tokens: Vec<String> = at.tokens().map(Into::into).collect();
    let found = (0..=tokens.len()).rev().find_map(|count| {
        Some((map.get(&Pointer::of(tokens[..count].iter().map(String::as_str)))?, tokens[count..].to_vec()))
    });
    found.map_or((None, Vec::new()), |(entry, rest)| (Some(entry), rest))
}

fn below_of(at: &Pointer, names: &[String]) -> Pointer {
    names.iter().fold(at.clone(), |at, name| child(&at, name))
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

/// A contract, with the fields that are asked for before a condition reads them.
type Guarded = (Arc<str>, BTreeSet<String>);

fn guarded_of(name: &Arc<str>, fields: &[Part]) -> Guarded {
    let is_null = |field: &&Part| field.value.get("nullable").and_then(Value::as_bool) == Some(true);
    let names = fields.iter().filter(|field| !is_null(field));
    (Arc::clone(name), names.map(|field| tag::user_name(&field.name).to_owned()).collect())
}

struct Reading<'d> {
    document: &'d Document,
    changes: Vec<PackChange>,
    problems: Vec<PackProblem>,
    /// The places that were read, each with its place in what is written; `None` for one whose change is listed.
    read: BTreeMap<Pointer, Option<Pointer>>,
    /// The places in the text of what is written.
    from: BTreeMap<Pointer, Pointer>,
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
    fn is_from(&mut self, place: &[&str], at: &Pointer) {
        let place = Pointer::of(place.iter().copied());
        self.read.insert(at.clone(), Some(place.clone()));
        self.from.entry(place).or_insert_with(|| at.clone());
    }

    /// Notes that a place was read, and that its change is listed.
    fn is_listed(&mut self, at: &Pointer) {
        self.read.insert(at.clone(), None);
    }

    /// Writes a member of the object at a place. Another member for the same place is an error.
    fn put(&mut self, made: &mut Object, place: &[&str], value: Value, at: &Pointer) {
        let name = place.last().copied().unwrap_or_default();
        if made.get(name).is_some_and(|known| *known != value) {
            return self.twice(place, at);
        }
        made.set(name, value);
        self.is_from(place, at);
    }

    /// Refuses a second member for one place.
    fn twice(&mut self, place: &[&str], at: &Pointer) {
        let place = Pointer::of(place.iter().copied());
        let other = self.from.get(&place).cloned().unwrap_or_else(Pointer::root);
        let line = self.document.mark(&other, true, None).line;
        let (here, there, place) = (at.dotted(), other.dotted(), place.dotted());
        let message = format!("{here} and {there} (line {line}) both are {place}");
        self.fault(at, message, "leave one of them out");
    }

    /// Reports each leaf of the text that is neither in what was written nor among the changes.
    fn check_read(&mut self, made: &Value) {
        let mut leaves = Vec::new();
        leaves_of(&self.document.value, Pointer::root(), &mut leaves);
        for (at, value) in leaves {
            let (read, below) = ancestor(&self.read, &at);
            let is_there = match read {
                Some(None) => true,
                Some(Some(place)) => below_of(place, &below).get(made) == Some(value),
                None => false,
            };
            let is_empty = value.as_object().is_some() || value.as_array().is_some();
            match is_there {
                true => {}
                false if is_empty => self.change(&at, "", ChangeKind::LeftOut, "it is empty"),
                false => {
                    let message = format!("{} is not in what is written", at.dotted());
                    self.fault(&at, message, "take it out, or write it as `docs/packs.md` does");
                }
            }
        }
    }

    fn pack(&mut self) -> Object {
        let mut made = Object::default();
        let mut contracts: Vec<Printed> = Vec::new();
        let mut violations = Value::array([]);
        for part in self.parts(&Pointer::root(), "a contract file") {
            let name = Arc::clone(&part.name);
            match &*name {
                "id" => self.version(&part, &mut made),
                "namespace" => {
                    self.change(&part.at, "name", ChangeKind::Renamed, "a pack is named by its namespace");
                    self.put(&mut made, &["name"], part.value, &part.at);
                }
                "contracts" => {
                    for part in self.parts(&part.at, "`contracts`") {
                        self.contract(part, &mut contracts);
                    }
                }
                "violations" => violations = self.violations(&part, "violations"),
                _ if Member::find(&name).is_some() => self.put(&mut made, &[&name], part.value, &part.at),
                _ => self.lost_indentation(part, &mut contracts),
            }
        }
        let required: Vec<Guarded> =
            contracts.iter().map(|one| guarded_of(&one.part.name, &one.fields)).collect();
        self.guard(&mut violations, "violations", &Pointer::of(["violations"]), &required);
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
        self.put(made, &["version"], version.into(), &part.at);
        let others = [("words", text), ("namespace", name), ("name", name)];
        let given = |name: &str| self.document.value.get(name);
        let has_words = given("words").is_some();
        let has_name = given("namespace").is_some() || given("name").is_some();
        let is_said = others.iter().any(|(name, said)| given(name).and_then(Value::as_str) == Some(said));
        if !has_words {
            self.change(&part.at, "words", ChangeKind::Added, "the whole id, which a pack has no member for");
            self.put(made, &["words"], text.into(), &part.at);
        }
        if !has_name {
            self.change(&part.at, "name", ChangeKind::Renamed, "the id without its version");
            self.put(made, &["name"], name.into(), &part.at);
        }
        if has_words && has_name && !is_said {
            let reason = format!("{name}: the name and the words of the pack stand in other members");
            self.change(&part.at, "id", ChangeKind::LeftOut, reason);
        }
        self.is_listed(&part.at);
    }

    fn contract(&mut self, part: Part, contracts: &mut Vec<Printed>) {
        if contracts.iter().any(|known| known.part.name == part.name) {
            return self.twice(&["contracts", &part.name], &part.at);
        }
        let (mut fields, mut others) = (Vec::new(), Vec::new());
        self.is_from(&["contracts", &part.name], &part.at);
        for inner in self.parts(&part.at, "a contract") {
            match &*inner.name {
                "required_state" => {
                    fields = self.parts(&inner.at, "`required_state`");
                    self.is_from(&["contracts", &part.name, "required_state"], &inner.at);
                }
                _ => self.of_contract(&part.name, inner, &mut others),
            }
        }
        contracts.push(Printed { part, fields, others });
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
            return self.twice(&["contracts", contract, name], &part.at);
        }
        self.is_from(&["contracts", contract, name], &part.at);
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
                return self.contract(part, contracts);
            }
            ("hash_seeds" | "advisory" | "advisory_allowlist", Some(last)) => {
                let place = format!("contracts.{}.{}", last.part.name, part.name);
                let (at, name) = (part.at.clone(), Arc::clone(&last.part.name));
                self.of_contract(&name, part, &mut last.others);
                (at, place)
            }
            (_, Some(last)) if part.value.get("type").is_some_and(|kind| kind.as_str().is_some()) => {
                let place = format!("contracts.{}.required_state.{}", last.part.name, part.name);
                let (at, path) =
                    (part.at.clone(), ["contracts", &last.part.name, "required_state", &part.name]);
                if let Some(known) = last.fields.iter().find(|known| known.name == part.name) {
                    self.is_from(&path, &known.at);
                    return self.twice(&path, &at);
                }
                self.is_from(&path, &at);
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

    fn violations(&mut self, list: &Part, name: &str) -> Value {
        let Some(items) = list.value.as_array() else {
            self.fault(&list.at, format!("{name} is a list"), "like `- id: over_limit`");
            return Value::array([]);
        };
        self.is_from(&[name], &list.at);
        let made = (0..items.len()).map(|index| {
            let index = index.to_string();
            self.violation(&child(&list.at, &index), &[name, &index])
        });
        Value::array(made.collect::<Vec<_>>())
    }

    fn violation(&mut self, at: &Pointer, place: &[&str; 2]) -> Value {
        let mut made = Object::default();
        self.is_from(place, at);
        let [list, index] = *place;
        for part in self.parts(at, "a violation") {
            let inner = |name: &str| format!("{list}[{index}].{name}");
            let is_true = part.value.as_bool() == Some(true);
            match &*part.name {
                "name" => {
                    self.change(&part.at, &inner("words"), ChangeKind::Renamed, "words for people");
                    self.put(&mut made, &[list, index, "words"], part.value, &part.at);
                }
                "state" if matches!(part.value.as_str(), Some("before" | "after")) => {
                    let reason = "which state the condition sees";
                    self.change(&part.at, &inner("window"), ChangeKind::Renamed, reason);
                    self.put(&mut made, &[list, index, "window"], part.value, &part.at);
                }
                "state" => {
                    let message = format!("state is before or after, not {}", part.value);
                    self.fault(&part.at, message, "it says which state the condition sees");
                }
                "monotone" if is_true => {
                    let reason = "the first violation counts, whatever the state is later";
                    self.change(&part.at, &inner("bisect_predicate"), ChangeKind::Renamed, reason);
                    self.put(&mut made, &[list, index, "bisect_predicate"], MONOTONE_LIFT.into(), &part.at);
                    self.is_listed(&part.at);
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
                | "enforce" | "bisect_predicate" => {
                    self.put(&mut made, &[list, index, &part.name], part.value, &part.at);
                }
                _ => self.no_counterpart(&part, "a violation"),
            }
        }
        if made.get("bisect_predicate").is_none() {
            let reason = "the first violation counts: nothing says that the condition cannot recover";
            self.change(at, &format!("{list}[{index}].bisect_predicate"), ChangeKind::Added, reason);
            made.set("bisect_predicate", MONOTONE_LIFT.into());
        }
        Value::Object(made)
    }

    /// A condition over fields that its contracts require is not asked before they are written.
    fn guard(&mut self, violations: &mut Value, list: &str, list_at: &Pointer, contracts: &[Guarded]) {
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
                let place = format!("{list}[{index}].{name}");
                let at = child(&child(list_at, &index.to_string()), name);
                self.is_listed(&at);
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
        let mut known: Vec<&Part> = Vec::new();
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
                self.is_from(&["contracts", name, "required_state", &field.name], &field.at);
                required.set(&field.name, field.value.clone());
                match known.iter().find(|other| other.name == field.name) {
                    _ if given.get(&field.name).is_some() => {}
                    Some(other) => self.same_form(field, other),
                    None => {
                        known.push(field);
                        self.declare_field(field, "state", &mut state);
                    }
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

    fn declare_field(&mut self, field: &Part, member: &str, state: &mut Object) {
        // Fields are declared at the top of the state.
        let whole = tag::user_name(&field.name);
        let name = whole.split('.').next().unwrap_or_default();
        let (stored, mut declared) = (tag::stored_name(name), Object::default());
        if state.get(&stored).is_some() {
            return;
        }
        let place = format!("{member}.{name}");
        // Precision that is no number has its fault where it is written.
        let precision = field.value.get("precision").filter(|precision| precision.as_u64().is_some());
        if let Some(precision) = precision.filter(|_| name == whole) {
            declared.set("decimals", precision.clone());
        }
        if name == whole && field.value.get("nullable").and_then(Value::as_bool) == Some(true) {
            declared.set("init", format!("has(s0.{name}) ? s0.{name} : null").into());
        }
        declared.set("writers", writers());
        let reason = match member {
            "state" => "a field is declared; an agent that could write it would meet its own requirement",
            _ => "a field is declared; take it out if the contract declares it already",
        };
        self.change(&field.at, &place, ChangeKind::Added, reason);
        self.from.insert(Pointer::of([member, &stored]), field.at.clone());
        state.set(&stored, Value::Object(declared));
    }

    /// Refuses a field that two contracts require in different forms.
    fn same_form(&mut self, field: &Part, other: &Part) {
        let line = self.document.mark(&other.at, true, None).line;
        let kind = |part: &Part| {
            let kind = part.value.get("type").and_then(Value::as_str).and_then(ValueKind::parse);
            kind.filter(|kind| *kind != ValueKind::Any)
        };
        let is_number = |kind: ValueKind| matches!(kind, ValueKind::Number | ValueKind::Integer);
        let (here, there) = (kind(field), kind(other));
        let pair = here.zip(there).filter(|(here, there)| here != there);
        let member = match pair.filter(|(here, there)| !(is_number(*here) && is_number(*there))) {
            Some(_) => "type",
            None if field.value.get("precision") != other.value.get("precision") => "precision",
            None if field.value.get("nullable") != other.value.get("nullable") => "nullable",
            None => return,
        };
        let said = |part: &Part| part.value.get(member).map_or("none".to_owned(), ToString::to_string);
        let message = format!(
            "{} has {member} {} here and {} in line {line}",
            tag::user_name(&field.name),
            said(field),
            said(other)
        );
        self.fault(&field.at, message, "one field of the state has one form");
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
                "transition_type" if part.value.as_str() == Some(EXTENSION) => {
                    let reason = "an extension has no other type";
                    self.change(&part.at, "transition_type", ChangeKind::LeftOut, reason);
                    self.is_listed(&part.at);
                }
                _ => parts.push(part),
            }
        }
        let mut violations = None;
        for part in &parts {
            match &*part.name {
                "target_contract" => self.target(part, &mut made),
                "adds_violations" => {
                    let list = self.violations(part, "adds_violations");
                    match violations {
                        None => violations = Some((list, part.at.clone())),
                        Some(_) => {
                            self.fault(&part.at, "adds_violations stands twice".to_owned(), "join them")
                        }
                    }
                }
                "adds_required"
                | "adds_hash_seeds"
                | "adds_state"
                | "adds_rules"
                | "effective_from_tick"
                | "approved_by"
                | "types"
                | "words"
                | "id" => {
                    self.put(&mut made, &[&part.name], part.value.clone(), &part.at);
                }
                _ => self.no_counterpart(part, "an extension"),
            }
        }
        let required = parts.iter().find(|part| &*part.name == "adds_required");
        let fields = required.map(|part| self.required(part)).unwrap_or_default();
        self.adds_state(&fields, &mut made);
        if let Some((mut list, at)) = violations {
            let contracts = governed(&made, &list, &fields);
            self.guard(&mut list, "adds_violations", &at, &contracts);
            made.set("adds_violations", list);
        }
        made
    }

    /// The paper writes `acme.financial.v1` for the name and the version of a contract.
    fn target(&mut self, part: &Part, made: &mut Object) {
        let text = part.value.as_str().unwrap_or_default();
        let cut = text.rsplit_once('.').filter(|(_, version)| !text.contains('/') && is_version(version));
        let target = match cut {
            Some((name, version)) => {
                let reason = "name and version have a slash between them";
                self.change(&part.at, "target_contract", ChangeKind::Renamed, reason);
                Value::from(format!("{name}/{version}"))
            }
            None if text.contains('/') => part.value.clone(),
            None => {
                let message = format!("{} has no version", part.value);
                return self.fault(&part.at, message, "like `acme.financial.v1`");
            }
        };
        self.put(made, &["target_contract"], target, &part.at);
        if cut.is_some() {
            self.is_listed(&part.at);
        }
    }

    /// The fields that an extension requires.
    fn required(&mut self, part: &Part) -> Vec<Part> {
        let Some(names) = part.value.as_array() else {
            return if part.value.as_object().is_some() {
                self.parts(&part.at, "adds_required")
            } else {
                Vec::new()
            };
        };
        let mut fields: Vec<Part> = Vec::new();
        for (index, name) in names.iter().enumerate() {
            let at = child(&part.at, &index.to_string());
            let Some(name) = name.as_str().map(tag::stored_name) else { continue };
            match fields.iter().find(|known| known.name == name) {
                None => fields.push(Part { name, value: Value::Null, at }),
                Some(_) => self.fault(&at, format!("{name} stands twice"), "once is enough"),
            }
        }
        fields
    }

    /// The fields that are required are declared.
    fn adds_state(&mut self, fields: &[Part], made: &mut Object) {
        let given = made.get("adds_state").cloned().unwrap_or_else(Value::object);
        let Value::Object(mut state) = given else { return };
        for field in fields {
            if state.get(&field.name).is_none() {
                self.declare_field(field, "adds_state", &mut state);
            }
        }
        if !state.is_empty() {
            made.set("adds_state", Value::Object(state));
        }
    }

    /// Asks what `contract extend` would ask. The contract that is extended is not here, so whatever the extension names besides is
    /// taken to be there.
    fn check_extension(&mut self, made: &Value) {
        let pack = extended_pack(made);
        let start = Start {
            stage: Some(Stage::Contracts),
            reducer: pack.get("reducer").and_then(Value::as_str).unwrap_or_default().into(),
            pack: Some(Bound { value: pack, text: "".into() }),
            ..Start::new("r".parse().expect("a name of a run"))
        };
        let inputs = Inputs { clock: Timestamp::from_ms(0), seeds: Seeds::of_secret([0; 16]) };
        let target = self.from.get(&Pointer::of(["target_contract"])).cloned().unwrap_or_else(Pointer::root);
        let checked = match begin(StoreId([0; 16]), &start, inputs) {
            Ok((_, head)) => Extension::check(&head, made, None),
            Err(_) => {
                let message = "target_contract is not the name and the version of a contract".to_owned();
                return self.fault(&target, message, "like `acme.financial.v1`");
            }
        };
        for fault in checked.err().into_iter().flat_map(|not| not.faults) {
            let code = fault.code();
            let (place, message, hint) = match fault {
                ExtensionFault::Content(message, place) => (place, message, None),
                // Rules may name other parts of the contract.
                ExtensionFault::Result(fault, place)
                    if [Code::E0505, Code::E0903].contains(&fault.code)
                        && place.as_str().starts_with("/adds_rules") =>
                {
                    continue;
                }
                ExtensionFault::Result(fault, place) => (place, fault.message, fault.hint),
                ExtensionFault::Past { .. } => {
                    let message = "an extension holds from tick 1 on at the earliest".to_owned();
                    (Pointer::of(["effective_from_tick"]), message, None)
                }
                other => (Pointer::of(["approved_by"]), other.to_string(), None),
            };
            self.told(made, &place, code, message, hint);
        }
    }

    /// Reports what is wrong with the pack that was written, at its places in the text.
    fn check(&mut self, made: &Value) {
        let Err(faults) = super::check(made).and_then(super::as_new) else { return };
        faults
            .into_iter()
            .for_each(|fault| self.told(made, &fault.path, fault.code, fault.message, fault.hint));
    }

    /// Reports a fault of what was written, once, at its place in the text.
    fn told(&mut self, made: &Value, place: &Pointer, code: Code, message: String, hint: Option<String>) {
        let (from, below) = ancestor(&self.from, place);
        let at = below_of(from.unwrap_or(&Pointer::root()), &below);
        // The name is the place of a member that is there in another form.
        let at_name = at.get(&self.document.value) != place.get(made);
        let mark = self.document.mark(&at, at_name, None);
        let line = self.document.line(mark);
        let problem = PackProblem { code, mark, place: at.dotted(), message, hint, line };
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

/// The contracts that an extension adds to, as far as it names them: those of `types`, or every one.
fn governed(made: &Object, violations: &Value, fields: &[Part]) -> Vec<Guarded> {
    let texts = |value: Option<&Value>| -> Vec<Arc<str>> {
        let items = value.and_then(Value::as_array).into_iter().flat_map(|items| items.iter());
        items.filter_map(Value::as_str).map(Arc::from).collect()
    };
    let mut names = texts(made.get("types"));
    if made.get("types").is_none() {
        let items = violations.as_array().into_iter().flat_map(|items| items.iter());
        names = items.flat_map(|item| texts(item.get("scope"))).collect();
        names.push("".into());
    }
    // No field that an extension declares is there before it is written, one that may be null neither.
    let all: BTreeSet<String> = fields.iter().map(|field| tag::user_name(&field.name).to_owned()).collect();
    names.into_iter().map(|name| (name, all.clone())).collect()
}

/// A contract that has what an extension names and does not bring.
fn extended_pack(extension: &Value) -> Value {
    let target = extension.get("target_contract").and_then(Value::as_str).unwrap_or("a/v1");
    let (name, version) = target.rsplit_once('/').unwrap_or((target, "v1"));
    let mut leaves = Vec::new();
    leaves_of(extension, Pointer::root(), &mut leaves);
    let (mut fields, mut types) = (BTreeSet::new(), BTreeSet::new());
    for (at, leaf) in leaves {
        let Some(text) = leaf.as_str() else { continue };
        let place: Vec<_> = at.tokens().collect();
        let place: Vec<&str> = place.iter().map(|token| &**token).collect();
        match &*place {
            ["types", _] | ["adds_violations", _, "scope", _] if is_new_type(text) => {
                types.extend([text.to_owned()]);
            }
            ["adds_hash_seeds" | "adds_required", _] => fields.extend([text.to_owned()]),
            ["adds_violations", ..] => fields.extend(
                text.split("state.")
                    .skip(1)
                    .map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()),
            ),
            _ => {}
        }
    }
    let required = extension.get("adds_required").and_then(Value::as_object);
    fields.extend(
        required
            .into_iter()
            .flat_map(|fields| fields.iter().map(|(name, _)| tag::user_name(name).to_owned())),
    );
    let adds = |name: &str| extension.get(name).is_some();
    // An extension that names no type adds to every contract, and this one has a contract.
    let field = Value::record([("dendrer_none", Value::Null)]);
    let contract = ("action.request", Value::record([("required_state", field)]));
    let contracts = (!adds("types")).then_some(contract);
    fields.insert("dendrer_none".to_owned());
    let added = extension.get("adds_state");
    let is_kernels =
        |name: &str| name.is_empty() || STATE_FIELDS.contains(&name) || KERNEL_PATHS.contains(&name);
    let state = fields.iter().filter_map(|field| field.split('.').next()).filter(|field| !is_kernels(field));
    let state = state.filter(|field| added.and_then(|added| added.get(field)).is_none());
    let violation = [("id", "dendrer.none"), ("condition", "false"), ("bisect_predicate", MONOTONE_LIFT)];
    let violation = Value::record(violation.map(|(name, text)| (name, Value::from(text))));
    Value::record([
        ("name", Value::from(name)),
        ("version", version.into()),
        ("reducer", if adds("adds_rules") { "fold/1" } else { "delta/1" }.into()),
        ("state", Value::record(state.map(|field| (tag::stored_name(field), Value::object())))),
        ("types", Value::record(types.into_iter().map(|name| (name, Value::from("a type"))))),
        ("contracts", Value::record(contracts)),
        ("violations", Value::array([violation])),
    ])
}

/// The fields that a condition reads and does not ask for itself, of those that every contract of its scope requires, or every
/// contract if it has no scope.
fn guarded(condition: &str, scope: &[&str], contracts: &[Guarded]) -> BTreeSet<String> {
    let names = contracts.iter().map(|(name, _)| &**name);
    let scope: Vec<&str> = if scope.is_empty() { names.collect() } else { scope.to_vec() };
    let required = |name: &&str| -> BTreeSet<String> {
        let contract = contracts.iter().find(|(known, _)| **known == **name);
        contract.map(|(_, fields)| fields.clone()).unwrap_or_default()
    };
    let all = scope.iter().map(required).reduce(|all, next| all.intersection(&next).cloned().collect());
    let reads = |field: &String| {
        condition.match_indices(&format!("state.{field}")).any(|(at, found)| {
            let next = condition[at + found.len()..].chars().next();
            let before = condition[..at].chars().next_back();
            let is_name = |c: char| c.is_alphanumeric() || c == '_';
            !next.is_some_and(is_name) && !before.is_some_and(|c| is_name(c) || c == '.')
        })
    };
    let asks = |field: &String| condition.contains(&format!("has(state.{field})"));
    all.unwrap_or_default().into_iter().filter(|field| reads(field) && !asks(field)).collect()
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
    let is_record = |value: &Value| value.as_object().is_some_and(|members| !members.is_empty());
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
        Value::Array(items) if !is_small(value) && depth < 2 && items.iter().all(is_record) => {
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
