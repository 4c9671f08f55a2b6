//! Contract extensions: what an institution adds to the contract of a run, on the ledger and with an approval
//! (dendrer paper 4.4). No agent and no runtime can author one.

use std::sync::Arc;

use dendrer_object::delta::{Delta, Op};
use dendrer_object::note::{NoteError, SignedNote, VerifierKey};
use dendrer_object::record::{Author, Record, SealError};
use dendrer_object::text::nearest;
use dendrer_object::{Code, Intent, Pointer, RunName, StoreId, TypeName, Value};

use super::terms::Gate;
use super::{Change, Inputs, RunState, Stage, Transition, draft_transition, seal_one};
use crate::ontology::INSTITUTION;
use crate::pack::extend::{self, EXTENSIONS};
use crate::pack::{self, Pack, PackFault};
use crate::sealed;

/// The type of an extension.
pub const EXTENSION: &str = "policy.contract_extension";

/// The members of its content: what it adds, and the signed note that approves it.
const EXTENSION_MEMBER: &str = "extension";
const APPROVAL_MEMBER: &str = "approval";

/// The members of an extension.
const MEMBERS: [&str; 11] = [
    "id",
    "words",
    "target_contract",
    "types",
    extend::ADDS_STATE,
    extend::ADDS_RULES,
    "adds_required",
    "adds_hash_seeds",
    "adds_violations",
    extend::EFFECTIVE_FROM,
    "approved_by",
];

/// The longest name of an extension or of who approved it, in bytes.
const NAME_SIZE_MAX: usize = 128;

/// An extension that was checked against the run that it is for.
#[derive(Debug, Clone)]
pub struct Extension {
    value: Value,
    approval: Approval,
}

/// How an extension was approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    /// An approver is named, and the pack asks for no signature.
    Unsigned,
    /// The named approver signed it: the text of the signed note.
    Signed(Arc<str>),
}

/// Something that is wrong with an extension.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExtensionFault {
    /// It has not the form of an extension. The place in it comes second.
    #[error("{0}")]
    Content(String, Pointer),
    /// The contract that comes out does not check. The place in the extension comes second.
    #[error("{0}")]
    Result(PackFault, Pointer),
    /// It is for another contract than the one that is in force.
    #[error("it extends {named}, and {in_force} is in force")]
    OtherContract {
        /// The contract that the extension names.
        named: String,
        /// The contract of the run.
        in_force: String,
    },
    /// It is to hold for what has happened already.
    #[error("an extension cannot take effect in the past ({run} is at tick {tick})")]
    Past {
        /// The run.
        run: RunName,
        /// Tick of the run.
        tick: u64,
    },
    /// The approver is missing.
    #[error("an extension needs an approver")]
    NoApprover,
    /// The pack says who may approve, and this one is not among them.
    #[error("{by} is no approver of this contract; it names {known}")]
    UnknownApprover {
        /// The approver that is named.
        by: String,
        /// The approvers of the contract.
        known: String,
    },
    /// The pack asks for a signature of the approver, and it is missing or of another key.
    #[error("the approval of {by} is not signed by their key: {why}")]
    Signature {
        /// The approver.
        by: String,
        /// The fault of the signature.
        why: String,
    },
}

/// Why a contract is not extended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
pub struct NotExtended {
    /// All that is wrong, in the order in which it was looked at.
    pub faults: Vec<ExtensionFault>,
    /// The text that an approver of this extension signs.
    pub text: String,
}

impl ExtensionFault {
    /// The code under which `dendrer explain` knows it.
    pub fn code(&self) -> Code {
        match self {
            ExtensionFault::Content(..) | ExtensionFault::Result(..) => Code::E0420,
            ExtensionFault::OtherContract { .. } => Code::E0414,
            ExtensionFault::Past { .. } => Code::E0421,
            ExtensionFault::NoApprover => Code::E0422,
            ExtensionFault::UnknownApprover { .. } | ExtensionFault::Signature { .. } => Code::E0423,
        }
    }
}

impl Extension {
    /// Checks an extension against the run that it is for, and returns all that is wrong. An extension without an `id` is
    /// called by its number; `approval` is the signed note of the approver.
    pub fn check(head: &RunState, value: &Value, approval: Option<&str>) -> Result<Extension, NotExtended> {
        let mut faults = Vec::new();
        let value = read(head, value, &mut faults);
        let from = extend::effective_from(&value);
        if from.is_some_and(|from| from <= head.tick()) {
            faults.push(ExtensionFault::Past { run: head.run().clone(), tick: head.tick() });
        }
        let extended = check_content(head, &value, &mut faults);
        let approvers = extended.map(|pack| pack.approvers).unwrap_or_default();
        let approval = check_approval(head, &value, &approvers, approval, &mut faults);
        match approval {
            Some(approval) if faults.is_empty() => Ok(Extension { value, approval }),
            _ => Err(NotExtended { text: approval_text(head.store(), head.run(), &value), faults }),
        }
    }

    /// Returns the extension as it is recorded.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// How it was approved.
    pub fn approval(&self) -> &Approval {
        &self.approval
    }

    /// Returns the name of the extension.
    pub fn id(&self) -> &str {
        self.value.get("id").and_then(Value::as_str).unwrap_or_default()
    }
}

/// Reads the members of an extension, and gives it an id if it has none.
fn read(head: &RunState, value: &Value, faults: &mut Vec<ExtensionFault>) -> Value {
    let mut content =
        |name: &str, message: String| faults.push(ExtensionFault::Content(message, Pointer::of([name])));
    let Some(members) = value.as_object() else {
        content("", format!("an extension is a map, not {}", value.described()));
        return Value::object();
    };
    for (name, _) in members.iter().filter(|(name, _)| !MEMBERS.contains(&&***name)) {
        let near = nearest(name, MEMBERS).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        content(name, format!("an extension has no member {name:?}{near}"));
    }
    let mut members = members.clone();
    for name in ["id", "words", "target_contract", "approved_by"] {
        let Some(found) = members.get(name).filter(|found| **found != Value::Null) else { continue };
        let most = if name == "words" { pack::TEXT_SIZE_MAX } else { NAME_SIZE_MAX };
        match found.as_str() {
            Some(text) if !text.is_empty() && text.len() <= most => {}
            Some(_) => content(name, format!("{name} has 1 to {most} bytes")),
            None => content(name, format!("{name} is text, not {}", found.described())),
        }
    }
    if let Some(found) = members.get(extend::ADDS_STATE).filter(|found| found.as_object().is_none()) {
        let message = format!("{} is a map of fields, not {}", extend::ADDS_STATE, found.described());
        content(extend::ADDS_STATE, message);
    }
    for name in ["types", "adds_hash_seeds", "adds_violations", "adds_required", extend::ADDS_RULES] {
        let Some(found) = members.get(name) else { continue };
        let is_map = name == "adds_required" && found.as_object().is_some();
        let is_texts = |list: &dendrer_object::value::Array| list.iter().all(|item| item.as_str().is_some());
        match found.as_array() {
            Some(_) if name == "adds_violations" || name == extend::ADDS_RULES => {}
            Some(list) if is_texts(list) => {}
            Some(_) => content(name, format!("{name} lists names")),
            None if is_map => {}
            None => content(name, format!("{name} is a list, not {}", found.described())),
        }
    }
    if extend::effective_from(value).is_none() {
        let name = extend::EFFECTIVE_FROM;
        content(name, format!("{name} is the number of a tick, and has to be there"));
    }
    let bound = head.terms.bound();
    let known: Vec<&str> = bound
        .into_iter()
        .flat_map(|bound| extend::listed(bound, head.state()))
        .filter_map(|known| known.get("id").and_then(Value::as_str))
        .collect();
    match members.get("id").and_then(Value::as_str) {
        Some(id) if known.contains(&id) => content("id", format!("there is an extension {id} already")),
        Some(_) => {}
        None => {
            let free = (known.len() + 1..).map(|number| format!("e{number}"));
            let id = free.into_iter().find(|id| !known.contains(&&**id)).expect("numbers do not end");
            members.set("id", Value::from(id));
        }
    }
    Value::Object(members)
}

/// Checks what comes out: the contract with what is added must be one that could be written so.
fn check_content(head: &RunState, value: &Value, faults: &mut Vec<ExtensionFault>) -> Option<Pack> {
    let Some(in_force) = head.in_force() else {
        let message = "the run has no pack, and so no contract to extend".to_owned();
        faults.push(ExtensionFault::Content(message, Pointer::root()));
        return None;
    };
    let content = |message: String, name: &str| ExtensionFault::Content(message, Pointer::of([name]));
    let text = |name: &str| in_force.get(name).and_then(Value::as_str).unwrap_or_default();
    let (name, version) = (text("name"), text("version"));
    match value.get("target_contract").and_then(Value::as_str) {
        // The paper joins them by a dot.
        Some(named) if named == format!("{name}/{version}") || named == format!("{name}.{version}") => {}
        Some(named) => faults.push(ExtensionFault::OtherContract {
            named: named.to_owned(),
            in_force: format!("{name}/{version}"),
        }),
        None => {
            let message = format!("target_contract has to be there, like {name}/{version}");
            faults.push(content(message, "target_contract"));
        }
    }
    if !faults.iter().any(|fault| matches!(fault, ExtensionFault::Content(..))) {
        let extended = extend::with(&in_force, value);
        if extended == in_force {
            let message = "it adds nothing to the contract".to_owned();
            faults.push(ExtensionFault::Content(message, Pointer::root()));
        }
        if let Some(field) = extend::declared_twice(&in_force, value) {
            let message = format!("{field} is declared already, and an extension changes nothing");
            faults.push(content(message, extend::ADDS_STATE));
        }
        if let Some((field, type_name)) = extend::clash(&in_force, value) {
            let message = format!(
                "{field} is required of {type_name} already, in other words, and an extension changes nothing; \
                 adds_violations says what else must not be"
            );
            faults.push(content(message, "adds_required"));
        }
        match Pack::read_by(&extended, head.rules_version()) {
            Ok(pack) => {
                if head.stage() >= Stage::Full
                    && let Err(error) = Gate::of(&pack)
                {
                    faults.push(content(error.to_string(), "adds_violations"));
                }
                return Some(pack);
            }
            Err(wrong) => {
                faults.extend(wrong.into_iter().map(|fault| {
                    let place = extend::place_in(&in_force, value, &fault.path);
                    ExtensionFault::Result(fault, place)
                }));
            }
        }
    }
    Pack::read_by(&in_force, head.rules_version()).ok()
}

fn check_approval(
    head: &RunState,
    value: &Value,
    approvers: &[(Arc<str>, VerifierKey)],
    note: Option<&str>,
    faults: &mut Vec<ExtensionFault>,
) -> Option<Approval> {
    let Some(by) = value.get("approved_by").and_then(Value::as_str).filter(|by| !by.trim().is_empty()) else {
        faults.push(ExtensionFault::NoApprover);
        return None;
    };
    let known = || approvers.iter().map(|(name, _)| &**name).collect::<Vec<_>>().join(", ");
    let signature = |why: String| ExtensionFault::Signature { by: by.to_owned(), why };
    let key = approvers.iter().find(|(name, _)| &**name == by).map(|(_, key)| key);
    let fault = match (key, note) {
        (None, None) if approvers.is_empty() => return Some(Approval::Unsigned),
        (None, Some(_)) if approvers.is_empty() => signature(
            "the contract names no approver with a key, so nothing shows whose signature it is".to_owned(),
        ),
        (None, _) => ExtensionFault::UnknownApprover { by: by.to_owned(), known: known() },
        (Some(_), None) => signature("there is no signature".to_owned()),
        (Some(key), Some(note)) => match verify(head, value, key, note) {
            Ok(()) => return Some(Approval::Signed(note.into())),
            Err(why) => signature(why),
        },
    };
    faults.push(fault);
    None
}

fn verify(head: &RunState, value: &Value, key: &VerifierKey, note: &str) -> Result<(), String> {
    let told = |error: NoteError| error.to_string();
    let note = SignedNote::parse(note.as_bytes()).map_err(told)?;
    if note.text() != approval_text(head.store(), head.run(), value) {
        return Err("another text was signed".to_owned());
    }
    note.verify(std::slice::from_ref(key)).map_err(told)?;
    Ok(())
}

/// The text that an approver signs: which extension, for which run of which store.
pub fn approval_text(store: StoreId, run: &RunName, extension: &Value) -> String {
    let digest = extend::extension_digest(extension);
    format!("dendrer contract extension\nstore {store}\nrun {run}\nextension {digest}\n")
}

/// Puts an extension on record as the next transition of the run. It holds from the tick that it names on.
pub fn extend(head: &mut RunState, extension: &Extension, inputs: Inputs) -> Result<Record, SealError> {
    let mut intent = Intent::new(EXTENSION.parse::<TypeName>().expect("a type of the ontology"), INSTITUTION);
    intent.author = Author::Institution;
    intent.members.push((EXTENSION_MEMBER.into(), extension.value.clone()));
    if let Approval::Signed(note) = &extension.approval {
        intent.members.push((APPROVAL_MEMBER.into(), Value::String(Arc::clone(note))));
    }
    make_extension(head, &intent, inputs)
}

/// Makes the record of an extension, as it is or once more. One that would not have been let in changes nothing.
pub(super) fn make_extension(
    head: &mut RunState,
    intent: &Intent,
    inputs: Inputs,
) -> Result<Record, SealError> {
    let change = extension_change(head, intent);
    let transition = Transition { agent: INSTITUTION.into(), ..Transition::of(intent) };
    let prepared = draft_transition(head, transition, change, inputs)?;
    let record = seal_one(head, prepared);
    head.read_terms();
    Ok(record)
}

/// Returns the change of an extension: the state lists it from then on.
pub(super) fn extension_change(head: &RunState, intent: &Intent) -> Change {
    let value = intent.member(EXTENSION_MEMBER).cloned().unwrap_or(Value::Null);
    let approval = intent.member(APPROVAL_MEMBER).and_then(Value::as_str);
    let checked = Extension::check(head, &value, approval);
    let (delta, notes) = match (checked, head.pack()) {
        (Ok(extension), Some(pack)) => {
            let mut entry = extension.value.as_object().cloned().unwrap_or_default();
            entry.set("pack", Value::from(pack));
            entry.set("tick", Value::from(head.tick + 1));
            let path = Pointer::of(["policy", EXTENSIONS]);
            (Delta(vec![Op::append(path, Value::Object(entry))]), Vec::new())
        }
        (Ok(_), None) => (Delta::default(), Vec::new()),
        (Err(error), _) => {
            let codes = Value::array(error.faults.iter().map(|fault| Value::from(fault.code())));
            let note =
                sealed::fact("extension_refused", [("codes", codes), ("kind", "extension_error".into())]);
            (Delta::default(), vec![note])
        }
    };
    let state = delta.apply(&head.state).expect("policy is an object that only the kernel writes");
    Change { notes, ..Change::of(state, delta) }
}
