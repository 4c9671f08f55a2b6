//! The locked ontology: which transition types there are and who may author them (dendrer paper, appendix A).

use std::collections::BTreeSet;

use dendrer_object::record::Author;
use dendrer_object::text::nearest;
use dendrer_object::{Code, TypeName, Value};

use crate::sealed::{self, fact, told};

/// The class of a type, which decides who may author it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Proposed by agents, judged by the kernel.
    Agent,
    /// Written by the runtime on an agent's behalf: what a tool answered, what the policy decided. The paper
    /// lists these as agent types; an agent that decided its own policy would defeat the design.
    Runtime,
    /// Written by the kernel alone.
    System,
    /// Written by the institution, with an approval.
    Governance,
}

/// The type with which an agent asks for a call.
pub const REQUEST: &str = "action.request";

/// The type with which the runtime reports the answer of a tool.
pub const RESULT: &str = "action.result";

/// The type with which an agent states a plan, and the kernel that a parent delegates.
pub(crate) const DELEGATE: &str = "plan.update";

/// The type with which a policy or a person allows and denies.
pub(crate) const DECISION: &str = "policy.decision";

/// The types of the ontology, version 0.
pub const TYPES: &[(&str, Class)] = &[
    ("observation.add", Class::Agent),
    ("plan.update", Class::Agent),
    ("action.request", Class::Agent),
    ("action.result", Class::Runtime),
    ("memory.write", Class::Agent),
    ("policy.decision", Class::Runtime),
    ("anomaly.flag", Class::Agent),
    ("goal.complete", Class::Agent),
    ("kernel.anomaly", Class::System),
    ("predicate.violation", Class::System),
    ("run.fork", Class::System),
    ("run.cherrypick", Class::System),
    ("bisect.result", Class::System),
    ("diff.summary", Class::System),
    ("causal.chain", Class::System),
    ("policy.contract_extension", Class::Governance),
];

/// Lists the kinds of anomaly that the kernel and the importers note, and that of a broken invariant, which a runtime notes
/// (dendrer paper 3.2). A runtime may note other kinds; they are declared by the record that has them.
pub fn anomalies() -> impl Iterator<Item = &'static str> {
    let others = ["invariant_breach", "kernel.anomaly", "result_without_request"];
    KERNEL_KINDS
        .into_iter()
        .chain(SECOND_KINDS)
        .chain(sealed::NOTES.iter().map(|(kind, _)| *kind))
        .chain(others)
}

/// Kinds of anomaly that the kernel alone notes: no intent brings one (design, section 4).
const KERNEL_KINDS: [&str; 10] = [
    "cannot_be_judged",
    "clock_went_back",
    "commitment_violated",
    "extension_error",
    "forged_author",
    "forged_member",
    "forged_type",
    "reducer_error",
    "result_without_output",
    "schema_mismatch",
];

/// Kinds that the kernel alone notes from version 2 of its rules on.
pub(crate) const SECOND_KINDS: [&str; 11] = [
    "acted_after_deny",
    "decision_without_request",
    "denied_before",
    "finer_than_declared",
    "look_alike",
    "outside_terms",
    "result_of_another_call",
    "tool_beside_calls",
    "undeclared_tool",
    "unknown_scope",
    "unnamed_tool",
];

/// Returns the kind of an anomaly if the kernel alone notes it.
pub fn kernel_kind(anomaly: &Value) -> Option<&str> {
    let is_known = |kind: &&str| KERNEL_KINDS.contains(kind) || SECOND_KINDS.contains(kind);
    anomaly.get("kind").and_then(Value::as_str).filter(is_known)
}

/// Why an author may not write a type. The codes are those of `dendrer explain`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", told(&self.sealed()))]
pub enum AuthorshipError {
    /// The type is neither in the ontology nor registered by the pack.
    Unknown {
        /// The type.
        type_name: TypeName,
        /// A known type that may have been meant.
        near: Option<String>,
    },
    /// An agent or a user tried to write what only the runtime may.
    RuntimeOnly(TypeName, Author),
    /// Someone tried to write what only the kernel or the institution may.
    Forged(TypeName, &'static str),
    /// Someone goes by the name under which the kernel or the institution writes.
    ForgedName(&'static str),
    /// Someone claimed to be the kernel or the institution, for a type that neither writes.
    ForgedAuthor(TypeName, Author),
}

/// Names an author in a sentence.
pub(crate) fn by(author: &Author) -> String {
    match author {
        Author::Agent => "an agent".to_owned(),
        Author::User => "a user".to_owned(),
        other => format!("the {}", other.as_str()),
    }
}

impl AuthorshipError {
    /// The code under which `dendrer explain` knows this refusal.
    pub fn code(&self) -> Code {
        match self {
            AuthorshipError::Forged(..) => Code::E0401,
            AuthorshipError::Unknown { .. } => Code::E0402,
            AuthorshipError::RuntimeOnly(..) => Code::E0403,
            AuthorshipError::ForgedAuthor(..) | AuthorshipError::ForgedName(_) => Code::E0408,
        }
    }
}

impl AuthorshipError {
    /// Returns what is put on record of it ([`crate::sealed`]).
    pub(crate) fn sealed(&self) -> Value {
        let type_of = |name: &TypeName| ("type", Value::from(name.as_str()));
        match self {
            AuthorshipError::Unknown { type_name, near } => {
                let near = near.as_deref().map(|near| ("near", Value::from(near)));
                fact("unknown_type", [type_of(type_name)].into_iter().chain(near))
            }
            AuthorshipError::RuntimeOnly(name, author) => {
                fact("runtime_only", [("author", Value::from(author.as_str())), type_of(name)])
            }
            AuthorshipError::Forged(name, writer) => {
                let writer = ("writer", Value::from(*writer));
                fact("forged_type", [type_of(name), writer])
            }
            AuthorshipError::ForgedName(name) => fact("reserved_name", [("name", Value::from(*name))]),
            AuthorshipError::ForgedAuthor(name, author) => {
                fact("forged_author", [type_of(name), ("author", Value::from(author.as_str()))])
            }
        }
    }
}

/// Returns the class that the ontology gives a type.
pub(crate) fn class_of(type_name: &str) -> Option<Class> {
    TYPES.iter().find(|(name, _)| *name == type_name).map(|(_, class)| *class)
}

/// Returns the class of a type: the ontology's, or [`Class::Agent`] for what a pack registered.
pub fn class(type_name: &TypeName, registered: &BTreeSet<TypeName>) -> Option<Class> {
    class_of(type_name.as_str()).or_else(|| registered.contains(type_name).then_some(Class::Agent))
}

/// Tells whether rules are asked about transitions of a type: not about what the kernel and the institution write.
pub fn asks_rules(type_name: &TypeName) -> bool {
    !matches!(class(type_name, &BTreeSet::new()), Some(Class::System | Class::Governance))
}

/// Returns whether no proposal can have this author.
pub fn is_claimed(author: Author) -> bool {
    matches!(author, Author::Kernel | Author::Institution)
}

/// The names under which the kernel and the institution write. An agent with one of them would pass for the writer.
const RESERVED: [&str; 2] = [KERNEL, INSTITUTION];

/// Whose transition is one that the kernel makes by itself.
pub const KERNEL: &str = "kernel";

/// Whose transition an extension of the contract is.
pub const INSTITUTION: &str = "institution";

/// Checks that an agent does not use a reserved name.
pub fn check_name(agent: &str) -> Result<(), AuthorshipError> {
    match RESERVED.into_iter().find(|name| *name == agent) {
        Some(name) => Err(AuthorshipError::ForgedName(name)),
        None => Ok(()),
    }
}

/// Checks that `author` may propose a transition of this type.
pub fn check_authorship(
    type_name: &TypeName,
    author: Author,
    registered: &BTreeSet<TypeName>,
) -> Result<(), AuthorshipError> {
    match class(type_name, registered) {
        None => {
            let known = TYPES.iter().map(|(name, _)| *name);
            let near = nearest(type_name.as_str(), known.chain(registered.iter().map(TypeName::as_str)));
            Err(AuthorshipError::Unknown { type_name: type_name.clone(), near: near.map(str::to_owned) })
        }
        Some(Class::System) => Err(AuthorshipError::Forged(type_name.clone(), KERNEL)),
        Some(Class::Governance) => Err(AuthorshipError::Forged(type_name.clone(), INSTITUTION)),
        _ if is_claimed(author) => Err(AuthorshipError::ForgedAuthor(type_name.clone(), author)),
        Some(Class::Agent) => Ok(()),
        // A person may allow and deny; what a tool answered is seen by the runtime alone.
        Some(Class::Runtime)
            if author == Author::Runtime || author == Author::User && type_name.as_str() == DECISION =>
        {
            Ok(())
        }
        Some(Class::Runtime) => Err(AuthorshipError::RuntimeOnly(type_name.clone(), author)),
    }
}

/// Checks the author of a transition on record, and the name of its agent if that can be read. Types that a pack registers, and
/// markers of later versions, are not known here and are an agent's or the kernel's.
///
/// # Errors
///
/// The [`AuthorshipError`] for which no door commits such a transition.
pub fn check_recorded(
    type_name: &TypeName,
    author: Author,
    agent: Option<&str>,
) -> Result<(), AuthorshipError> {
    match (class_of(type_name.as_str()), author) {
        // The kernel marks with it that a parent delegates.
        (_, Author::Kernel) if type_name.as_str() == DELEGATE => return Ok(()),
        (Some(Class::System) | None, Author::Kernel) | (Some(Class::Governance), Author::Institution) => {
            return Ok(());
        }
        (None, Author::Institution) => return Err(AuthorshipError::ForgedAuthor(type_name.clone(), author)),
        (None, _) => {}
        (Some(_), _) => check_authorship(type_name, author, &BTreeSet::new())?,
    }
    agent.map_or(Ok(()), check_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_authors_are_those_that_a_door_lets_through() {
        let check = |name: &str, author, agent| {
            let found = check_recorded(&name.parse().unwrap(), author, agent);
            found.err().map(|error| error.code())
        };
        assert_eq!(check("kernel.anomaly", Author::Kernel, Some(KERNEL)), None);
        assert_eq!(check("kernel.anomaly", Author::Agent, Some("a")), Some(Code::E0401));
        assert_eq!(check("policy.contract_extension", Author::Institution, Some(INSTITUTION)), None);
        assert_eq!(check("policy.contract_extension", Author::Kernel, None), Some(Code::E0401));
        assert_eq!(check("plan.update", Author::Institution, None), Some(Code::E0408));
        assert_eq!(check(DELEGATE, Author::Kernel, Some(KERNEL)), None);
        assert_eq!(check("memory.write", Author::Kernel, Some(KERNEL)), Some(Code::E0408));
        assert_eq!(check("action.result", Author::Agent, Some("a")), Some(Code::E0403));
        assert_eq!(check("of_a_pack", Author::Agent, Some(KERNEL)), Some(Code::E0408));
        assert_eq!(check("of_a_pack", Author::Institution, None), Some(Code::E0408));
        assert_eq!(check("of_a_pack", Author::Agent, None), None);
    }

    #[test]
    fn the_whole_table_of_authorship() {
        let registered = BTreeSet::from(["execute_transaction".parse().unwrap()]);
        let names = TYPES.iter().map(|(name, class)| (*name, Some(*class)));
        let names = names.chain([("execute_transaction", Some(Class::Agent)), ("plan.updte", None)]);
        for (name, class) in names {
            for author in [Author::Agent, Author::Runtime, Author::User, Author::Kernel, Author::Institution]
            {
                let found = check_authorship(&name.parse().unwrap(), author, &registered);
                let code = found.as_ref().err().map(AuthorshipError::code);
                let expected = match (class, author) {
                    (None, _) => Some(Code::E0402),
                    (Some(Class::System | Class::Governance), _) => Some(Code::E0401),
                    (_, Author::Kernel | Author::Institution) => Some(Code::E0408),
                    (Some(Class::Agent), _) | (Some(Class::Runtime), Author::Runtime) => None,
                    (Some(Class::Runtime), Author::User) if name == "policy.decision" => None,
                    (Some(Class::Runtime), _) => Some(Code::E0403),
                };
                assert_eq!(code, expected, "{name} by {author}");
            }
        }
        let error = check_authorship(&"plan.updte".parse().unwrap(), Author::Agent, &registered).unwrap_err();
        assert_eq!(error.to_string(), "there is no transition type plan.updte; did you mean plan.update?");
    }

    #[test]
    fn the_ontology_has_eight_seven_and_one() {
        let count = |wanted: &[Class]| TYPES.iter().filter(|(_, class)| wanted.contains(class)).count();
        assert_eq!(count(&[Class::Agent, Class::Runtime]), 8);
        assert_eq!(count(&[Class::System]), 7);
        assert_eq!(count(&[Class::Governance]), 1);
    }
}
