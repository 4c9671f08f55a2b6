//! The contract of a delegation: what a child run may do, and what it is bound to (CCAS paper 6.5, algorithm 2).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dendrer_object::{Code, Pointer, SCOPE, Value};

use crate::expr::{Until, until_of};

use super::authorize::is_permitted_by_tools;
use super::budget::ContractBudget;
use super::{
    Commitment, CommitmentFault, CommitmentKind, CommitmentStatus, Commitments, ScopeFault, Statuses, files,
    form,
};

/// The actions that a child run may take, and the results that it must return.
#[derive(Debug, Clone, PartialEq)]
pub struct DelegationContract {
    /// The id of the `deleg` in the parent.
    pub id: Arc<str>,
    /// Tools that it may call; `None` for all.
    pub tools: Option<Vec<Arc<str>>>,
    /// Patterns of the files that a call may name; `None` for all.
    pub files: Option<Vec<Arc<str>>>,
    /// The places of each tool where its calls name files. Other tools are searched.
    pub places: BTreeMap<Arc<str>, Vec<Arc<str>>>,
    /// How much may be used.
    pub budget: ContractBudget,
    /// Members of the output with which the child completes its goal.
    pub deliverables: Vec<Arc<str>>,
    /// As it was written.
    pub written: Value,
}

impl DelegationContract {
    /// Reads the `contract` of a `run` record.
    pub fn read(value: &Value) -> Option<DelegationContract> {
        let allowed = value.get("allowed");
        let list = |name: &str| {
            let allowed = allowed.filter(|allowed| allowed.get(name).is_some())?;
            Some(form::texts(allowed, name))
        };
        Some(DelegationContract {
            id: form::text(value, "id")?,
            tools: list("tools"),
            files: list("files"),
            places: places_of(value),
            budget: value.get("budget").map(ContractBudget::read).unwrap_or_default(),
            deliverables: form::texts(value, "deliverables"),
            written: value.clone(),
        })
    }

    /// The scope of the calls of the child; `None` if commitments of each scope are asked.
    pub fn scope(&self) -> Option<Arc<str>> {
        form::text(&self.written, SCOPE)
    }

    /// When it ends by itself, in milliseconds since 1970, given when the child began.
    pub fn ends_at(&self, begun_ms: u64) -> Option<u64> {
        match until_of(self.written.get("until")?.as_str()?)? {
            Until::At(ms) => Some(ms),
            Until::For(ms) => Some(begun_ms.saturating_add(ms)),
        }
    }

    /// Why a call is outside of its scope: the tool, a file that the call names, or no file where files are limited. `None` if it
    /// is within.
    pub fn fault(&self, call: &Value) -> Option<ScopeFault> {
        let tool: Arc<str> = call.get("tool").and_then(Value::as_str).unwrap_or_default().into();
        if self.tools.as_ref().is_some_and(|tools| !tools.contains(&tool)) {
            return Some(ScopeFault::Tool { tool });
        }
        let limit = self.files.as_ref()?;
        let found = match self.places.get(&tool) {
            // It is said that the tool names no file.
            Some(places) if places.is_empty() => return None,
            Some(places) => files::listed(call, places),
            None => files::searched(call),
        };
        if found.is_empty() {
            return Some(ScopeFault::NoFile { tool });
        }
        let is_in = |path: &Arc<str>| files::is_plain(path) && is_within(files::bare(path), limit);
        let outside = found.into_iter().find(|file| !file.path.as_ref().is_some_and(is_in))?;
        let file = outside.path.unwrap_or_default();
        Some(ScopeFault::File { tool, at: outside.at.into(), file })
    }

    /// Whether a call is in its scope by version 1 of the rules: the tool, and each file that `params.path` and `params.paths`
    /// name.
    pub fn permits(&self, action: &Value) -> bool {
        let tool = action.get("tool").and_then(Value::as_str);
        let is_tool = |tools: &Vec<Arc<str>>| tool.is_some_and(|tool| tools.iter().any(|one| &**one == tool));
        if !self.tools.as_ref().is_none_or(is_tool) {
            return false;
        }
        let Some(files) = &self.files else { return true };
        let params = action.get("params");
        let named = |name: &str| params.and_then(|params| params.get(name));
        let is_in = |value: &Value| {
            value.as_str().is_some_and(|path| files.iter().any(|pattern| is_file_in(pattern, path)))
        };
        // A path that is no text names nothing that a pattern could hold.
        [named("path"), named("paths")].into_iter().flatten().all(|value| match value {
            Value::Array(paths) => paths.iter().all(is_in),
            Value::Null => true,
            value => is_in(value),
        })
    }
}

/// The member of a pack and of a scope file with what is said of tools.
const TOOLS: &str = "tools";

/// The member of a tool with the places where its calls name files.
const FILES: &str = "files";

/// The places of files that a pack, a scope file or a contract lists, by tool.
fn places_of(value: &Value) -> BTreeMap<Arc<str>, Vec<Arc<str>>> {
    let tools = value.get(TOOLS).and_then(Value::as_object).into_iter().flat_map(|tools| tools.iter());
    let tools = tools.filter(|(_, tool)| tool.get(FILES).is_some());
    tools.map(|(name, tool)| (Arc::clone(name), form::texts(tool, FILES))).collect()
}

/// Whether a text is a place of a call where files are named: `/params`, or below.
pub(crate) fn is_file_place(text: &str) -> bool {
    (text == "/params" || text.starts_with("/params/")) && text.parse::<Pointer>().is_ok()
}

fn check_places(scope: &Value) -> Result<(), CommitmentFault> {
    let fault = |path: String, message: &str| {
        Err(CommitmentFault { code: Code::E0209, path, message: message.to_owned() })
    };
    let Some(tools) = scope.get(TOOLS) else { return Ok(()) };
    let Some(tools) = tools.as_object() else {
        return fault(
            format!("/{TOOLS}"),
            "this is an object, like {\"read\": {\"files\": [\"/params/path\"]}}",
        );
    };
    for (name, tool) in tools.iter() {
        let place = format!("/{TOOLS}/{name}");
        if tool.as_object().is_none() {
            return fault(place, "this is an object");
        }
        form::members(tool, &place, &[], &[FILES])?;
        form::are_texts(tool, &place, &[FILES])?;
        let places = form::texts(tool, FILES);
        if let Some(at) = places.iter().position(|place| !is_file_place(place)) {
            return fault(format!("{place}/{FILES}/{at}"), "a place of a call begins with /params");
        }
    }
    Ok(())
}

/// The terms of a delegation: the members of a scope file.
#[derive(Debug, Clone, PartialEq)]
pub struct DelegationScope {
    /// As it was written.
    pub written: Value,
    /// The tools and files that are allowed, as a contract reads them.
    contract: DelegationContract,
    /// Watched names that the work may change; `None` where the file does not say.
    touches: Option<Vec<Arc<str>>>,
}

/// The commitments and atoms that a delegation hands over.
#[derive(Debug, Clone, Default)]
pub struct HandedOver {
    /// The hard commitments that the child is bound to.
    pub hard: Vec<Arc<str>>,
    /// The preferences that it is told.
    pub soft: Vec<Arc<str>>,
}

impl DelegationScope {
    /// Reads a scope file.
    pub fn read(value: &Value) -> Result<DelegationScope, CommitmentFault> {
        let texts = ["forbidden", "touches", "deliverables"];
        let known = ["goal", "allowed", "budget", "failure", "until", SCOPE, TOOLS];
        form::members(value, "", &["id", "gloss"], &[&texts[..], &known[..]].concat())?;
        form::are_texts(value, "", &texts)?;
        let wrong = |path: &str, message: &str| {
            Err(CommitmentFault { code: Code::E0209, path: path.to_owned(), message: message.to_owned() })
        };
        for name in ["goal", "failure", SCOPE] {
            if value.get(name).is_some_and(|value| value.as_str().is_none()) {
                return wrong(&format!("/{name}"), "this is a text");
            }
        }
        if let Some(allowed) = value.get("allowed") {
            form::members(allowed, "/allowed", &[], &["tools", "files"])?;
            form::are_texts(allowed, "/allowed", &["tools", "files"])?;
        }
        if let Some(budget) = value.get("budget") {
            ContractBudget::check(budget)?;
        }
        if value.get("until").is_some_and(|until| until.as_str().and_then(until_of).is_none()) {
            return wrong("/until", "this is a moment like 2027-01-31T12:00:00Z, or a duration like 900s");
        }
        check_places(value)?;
        let Some(contract) = DelegationContract::read(value) else { return wrong("/id", "id is a text") };
        let touches = value.get("touches").map(|_| form::texts(value, "touches"));
        Ok(DelegationScope { written: value.clone(), contract, touches })
    }

    /// Takes in the places where the tools of the parent's pack name files. Fails with the place of a tool that a pack does not
    /// declare which declares others.
    pub fn with_pack(&mut self, pack: Option<&Value>) -> Result<(), CommitmentFault> {
        let declared = pack.and_then(|pack| pack.get(TOOLS)?.as_object()).filter(|tools| !tools.is_empty());
        let Some(declared) = declared else { return Ok(()) };
        let listed =
            self.written.get("allowed").map(|allowed| form::texts(allowed, TOOLS)).unwrap_or_default();
        let listed = listed.iter().enumerate().map(|(at, tool)| (format!("/allowed/{TOOLS}/{at}"), tool));
        let named = self.contract.places.keys().map(|tool| (format!("/{TOOLS}/{tool}"), tool));
        if let Some((path, tool)) = listed.chain(named).find(|(_, tool)| declared.get(tool).is_none()) {
            let message = format!("the pack declares no tool {tool}");
            return Err(CommitmentFault { code: Code::E0209, path, message });
        }
        self.add_places(places_of(pack.unwrap_or(&Value::Null)));
        Ok(())
    }

    /// Adds places where tools name files, each place once: a tool keeps those of the contract and gets those of `more`.
    fn add_places(&mut self, more: BTreeMap<Arc<str>, Vec<Arc<str>>>) {
        if self.contract.files.is_none() || more.is_empty() {
            return;
        }
        for (tool, places) in more {
            let known = self.contract.places.entry(tool).or_default();
            known.extend(places);
            known.sort();
            known.dedup();
        }
        let each = self.contract.places.iter().map(|(tool, places)| {
            let places = Value::array(places.iter().cloned().map(Value::String));
            (Arc::clone(tool), Value::record([(FILES, places)]))
        });
        let mut written = self.written.as_object().cloned().unwrap_or_default();
        written.set(TOOLS, Value::record(each));
        self.written = Value::Object(written);
        self.contract.written = self.written.clone();
    }

    /// Narrows the scope to the contract of the run that delegates: what it does not say is taken from there. Returns what is
    /// outside of it, the first such tool or pattern of files.
    pub fn within(&mut self, contract: &DelegationContract) -> Result<(), Arc<str>> {
        let lists = [
            ("tools", &mut self.contract.tools, &contract.tools),
            ("files", &mut self.contract.files, &contract.files),
        ];
        let mut allowed = self.written.get("allowed").and_then(Value::as_object).cloned().unwrap_or_default();
        for (name, own, outer) in lists {
            let Some(outer) = outer else { continue };
            let own = own.get_or_insert_with(|| outer.clone());
            let is_in = |one: &Arc<str>| outer.contains(one) || name == "files" && is_within(one, outer);
            if let Some(outside) = own.iter().find(|one| !is_in(one)) {
                return Err(Arc::clone(outside));
            }
            allowed.set(name, Value::array(own.iter().cloned().map(Value::String)));
        }
        if !allowed.is_empty() {
            let mut written = self.written.as_object().cloned().unwrap_or_default();
            written.set("allowed", Value::Object(allowed));
            self.written = Value::Object(written);
            self.contract.written = self.written.clone();
        }
        self.add_places(contract.places.clone());
        Ok(())
    }

    /// The id of the delegation.
    pub fn id(&self) -> &Arc<str> {
        &self.contract.id
    }

    /// Whether an action in this scope could bear on a commitment: `false` only where that is proven. Its watch and what the scope
    /// touches share nothing, and what it says of an action permits each allowed tool, whatever the parameters and the state. One
    /// without such an expression is left out by its watch alone (CCAS paper, definition 9).
    pub fn is_relevant(&self, one: &Commitment) -> bool {
        let Some(touches) = &self.touches else { return true };
        let place = |name: &str| Pointer::from_place(name).and_then(Result::ok);
        let meets = |watched: &Arc<str>, touched: &Arc<str>| {
            watched == touched
                || matches!((place(watched), place(touched)), (Some(a), Some(b)) if a.overlaps(&b))
        };
        if one.watch.iter().any(|watched| touches.iter().any(|touched| meets(watched, touched))) {
            return true;
        }
        match (&one.holds, &one.condition) {
            (None, None) => one.watch.is_empty(),
            _ => !is_permitted_by_tools(one, self.contract.tools.as_deref()),
        }
    }

    /// Which commitments are handed over: those that bind and are active or dormant, and the preferences, as far as they are relevant.
    pub fn hands_over(&self, all: &Commitments, statuses: &Statuses) -> HandedOver {
        let mut made = HandedOver::default();
        for one in all.all() {
            let status = statuses.get(&one.id).map(|(status, _)| *status);
            let is_live = matches!(status, Some(CommitmentStatus::Active | CommitmentStatus::Dormant));
            if !is_live || !self.is_relevant(one) {
                continue;
            }
            if all.binds(one) && one.kind != CommitmentKind::Delegation {
                made.hard.push(Arc::clone(&one.id));
            } else if one.kind == CommitmentKind::Preference {
                made.soft.push(Arc::clone(&one.id));
            }
        }
        made
    }
}

impl Commitments {
    /// The commitments with some ids and all that supports them, for the `run` record of a child: each is imported there.
    pub fn handed(&self, ids: &[Arc<str>]) -> Option<Value> {
        let mut held: BTreeSet<Arc<str>> = ids.iter().cloned().collect();
        for id in ids {
            held.extend(self.closure(id).into_iter().map(|edge| edge.from));
            held.extend(self.grounded_by(id).cloned());
        }
        self.to_initial_of(&|id| held.contains(id), &|id| ids.iter().any(|one| **one == *id))
    }

    /// The places of the state that expressions and watches of some commitments read.
    pub fn places_read(&self, ids: &[Arc<str>]) -> Vec<Pointer> {
        let all = ids.iter().filter_map(|id| self.get(id));
        let places = all.flat_map(|one| {
            let read = one.exprs().flat_map(|expr| expr.read_set().iter().cloned());
            let watched = one.watch.iter().filter_map(|name| Pointer::from_place(name).and_then(Result::ok));
            read.chain(watched).collect::<Vec<_>>()
        });
        Pointer::outermost(places.collect())
    }
}

/// Whether a pattern holds a path. `*` is any part of one name, `**` any number of names. A path with `..` is held by none: where it
/// leads is not in its text.
fn is_file_in(pattern: &str, path: &str) -> bool {
    fn names(text: &str) -> Vec<&str> {
        text.split('/')
            .enumerate()
            .filter(|(at, name)| *name != "." && (*at == 0 || !name.is_empty()))
            .map(|(_, name)| name)
            .collect()
    }
    fn is_held(pattern: &[&str], path: &[&str]) -> bool {
        match (pattern.split_first(), path.split_first()) {
            (None, None) => true,
            (Some((&"**", rest)), _) => {
                is_held(rest, path) || path.split_first().is_some_and(|(_, below)| is_held(pattern, below))
            }
            (Some((first, pattern)), Some((name, path))) => is_name(first, name) && is_held(pattern, path),
            _ => false,
        }
    }
    let (pattern, path) = (names(pattern), names(path));
    !path.contains(&"..") && !path.iter().any(|name| name.contains('\\')) && is_held(&pattern, &path)
}

/// Whether some patterns hold all that another one holds.
fn is_within(pattern: &str, outer: &[Arc<str>]) -> bool {
    // `**` holds names of any depth, which no single `*` does.
    let holds_any_depth = |outer: &str| outer.split('/').any(|name| name == "**");
    let is_deep = holds_any_depth(pattern);
    outer.iter().any(|outer| (!is_deep || holds_any_depth(outer)) && is_file_in(outer, pattern))
}

/// Whether a pattern with `*` holds a name.
fn is_name(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let Some(last) = pattern.contains('*').then(|| parts.next_back()).flatten() else {
        return rest.is_empty();
    };
    let Some(mut rest) = rest.strip_suffix(last) else { return false };
    parts.all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

#[cfg(test)]
mod tests {
    use dendrer_object::json;

    use super::*;

    #[test]
    fn patterns_hold_files_below_and_no_others() {
        for (pattern, path, is_in) in [
            ("src/serializer/*", "src/serializer/a.py", true),
            ("src/serializer/*", "./src//serializer/a.py", true),
            ("src/serializer/*", "src/serializer/deep/a.py", false),
            ("src/serializer/*", "src/serializer/../auth/a.py", false),
            ("src/serializer/*", "src/auth/a.py", false),
            ("src/serializer/*", "/src/serializer/a.py", false),
            ("src/**", "src/a/b/c", true),
            ("src/**", "src", true),
            ("**", "a/../b", false),
            ("*.py", "a.py", true),
            ("*.py", "a.pyc", false),
            ("a*b*c", "a1b2c", true),
            ("a*a", "a", false),
            ("*", "a\\b", false),
            ("a", "a", true),
            ("a", "b", false),
        ] {
            assert_eq!(is_file_in(pattern, path), is_in, "{pattern} {path}");
        }
    }

    #[test]
    fn a_call_is_in_scope_by_tool_and_files() {
        let value = |text: &str| json::parse_door(text.as_bytes()).unwrap();
        let contract = r#"{"id":"D","allowed":{"tools":["read","patch"],"files":["src/*"]}}"#;
        let contract = DelegationContract::read(&value(contract)).unwrap();
        for (action, is_in) in [
            (r#"{"tool":"read","params":{"path":"src/a"}}"#, true),
            (r#"{"tool":"read"}"#, true),
            (r#"{"tool":"rm","params":{"path":"src/a"}}"#, false),
            (r#"{"tool":"patch","params":{"paths":["src/a","auth/b"]}}"#, false),
            (r#"{"tool":"patch","params":{"path":7}}"#, false),
            (r#"{"params":{"path":"src/a"}}"#, false),
        ] {
            assert_eq!(contract.permits(&value(action)), is_in, "{action}");
        }
    }
}
