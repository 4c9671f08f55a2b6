//! Members of a line have authors, as types do (design, section 4): what is on record as judged was judged.

use dendrer_object::record::Author;
use dendrer_object::{Intent, MESSAGES, Value};

use crate::ontology::{DECISION, RESULT};
use crate::pack::Effect;
use crate::sealed::{fact, told};
use crate::status;

/// Why a member of a line may not be as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", told(&self.sealed()))]
pub enum MemberFault {
    /// Its author may not write it: kernel and runtime do.
    NotYours {
        /// The member.
        name: &'static str,
        /// The author.
        author: Author,
    },
    /// The name of a user on a line that no user writes.
    NotByUser(Author),
    /// A result on a type that is not a result.
    NoResultHere,
    /// A metric that is neither a number of 0 or more nor null.
    #[error("{0} among the metrics is a number of 0 or more, or null where it is not known")]
    Metric(String),
    /// A decision that decides nothing.
    NoDecision,
    /// A class of a tool that is not the one of the pack.
    Effect {
        /// The tool.
        tool: String,
        /// The class that the pack declares.
        declared: &'static str,
        /// The class that the line claims.
        said: String,
    },
}

impl MemberFault {
    /// Whether an author tried to speak for another one, which a `kernel.anomaly` names.
    pub(super) fn is_forged(&self) -> bool {
        matches!(self, MemberFault::NotYours { .. })
    }

    /// Returns what is put on record of it ([`crate::sealed`]).
    pub(super) fn sealed(&self) -> Value {
        match self {
            MemberFault::NotYours { name, author } => fact(
                "member_not_yours",
                [("author", Value::from(author.as_str())), ("member", Value::from(*name))],
            ),
            MemberFault::NotByUser(author) => {
                fact("user_not_given", [("author", Value::from(author.as_str()))])
            }
            MemberFault::NoResultHere => fact("no_result_here", []),
            MemberFault::Metric(name) => fact("metric", [("metric", Value::from(&**name))]),
            MemberFault::NoDecision => fact("no_decision", []),
            MemberFault::Effect { tool, declared, said } => fact(
                "effect",
                [
                    ("declared", Value::from(*declared)),
                    ("said", Value::from(&**said)),
                    ("tool", Value::from(&**tool)),
                ],
            ),
        }
    }
}

/// The anomaly of a result of a tool that acts, without an output: what the world has become is not on record.
pub(super) const NO_OUTPUT: &str = "result_without_output";

/// The anomaly of a result of a tool that acts, which no open call asked for.
const NO_REQUEST: &str = "result_without_request";

/// Notes what is odd about the result of a tool that acts. It is committed all the same: the world has changed (design,
/// section 4). The caller says which class the pack declares for a tool, and whether a call of it is open.
///
/// By the rules of version 2 of the kernel also of other tools, as `looks` selects.
pub(super) fn notes_of_result(
    intent: &Intent,
    looks: Looks,
    declared: impl FnOnce(&str) -> Option<Effect>,
    is_open: impl FnOnce(&str) -> Option<bool>,
) -> Vec<Value> {
    let tool = intent.member("action").and_then(|action| action.get("tool")?.as_str());
    let Some(tool) = tool.filter(|_| intent.type_name.as_str() == RESULT) else { return Vec::new() };
    let said = intent.member("effect").and_then(|effect| Effect::from_word(effect.as_str()?));
    let of_pack = declared(tool);
    let class = said.or(of_pack);
    let acts = class == Some(Effect::Effectful);
    if !acts && !looks.of_read && !looks.of_any {
        return Vec::new();
    }
    // First the note that a runtime may have made by itself: it comes in front of the kernel's.
    let note = |kind: &str| Value::record([("kind", Value::from(kind)), ("tool", Value::from(tool))]);
    let has_output = intent.member("result").is_some_and(|result| result.get("output").is_some());
    let is_noted =
        intent.noted.iter().any(|note| note.get("kind").and_then(Value::as_str) == Some(NO_REQUEST));
    // A class that the result alone claims frees it of nothing.
    let is_looked_at = acts || of_pack.is_none() && looks.of_any;
    let is_asked = is_noted || !is_looked_at || is_open(tool) != Some(false);
    let has_output = has_output || !acts && (!looks.of_read || has_failed(intent));
    [(is_asked, NO_REQUEST), (has_output, NO_OUTPUT)]
        .into_iter()
        .filter(|(is_there, _)| !is_there)
        .map(|(_, kind)| note(kind))
        .collect()
}

/// Which results are looked at besides those of tools that act.
#[derive(Clone, Copy)]
pub(super) struct Looks {
    /// Results of tools that only read, for an output.
    pub(super) of_read: bool,
    /// Results of tools whose class the pack does not declare, for a request.
    pub(super) of_any: bool,
}

/// Whether a result reports that its call failed: it needs no output.
fn has_failed(intent: &Intent) -> bool {
    let status = intent.member("result").and_then(|result| result.get("status")?.as_str());
    status.is_some_and(status::is_failed)
        || intent.member("result").is_some_and(|result| result.get("error").is_some())
}

/// The type with which a goal is completed.
const COMPLETE: &str = "goal.complete";

/// Members that the kernel and the runtime write.
const JUDGED: [&str; 2] = ["policy", "anomalies"];

/// Checks that each member of an intent is its author's to write, and that it is what its name says.
pub(super) fn check(intent: &Intent) -> Result<(), MemberFault> {
    let has = |name: &str| intent.member(name).is_some();
    let type_name = intent.type_name.as_str();
    let is_judged = |name: &&str| match intent.author {
        Author::Agent => has(name),
        // A person decides in a decision.
        Author::User => has(name) && !(*name == "policy" && type_name == DECISION),
        _ => false,
    };
    if let Some(name) = JUDGED.into_iter().find(is_judged) {
        return Err(MemberFault::NotYours { name, author: intent.author });
    }
    // They state calls, results and failures, which the runtime reports.
    if has(MESSAGES) && matches!(intent.author, Author::Agent | Author::User) {
        return Err(MemberFault::NotYours { name: MESSAGES, author: intent.author });
    }
    if has("user") && intent.author != Author::User {
        return Err(MemberFault::NotByUser(intent.author));
    }
    // The runtime reports with what a goal was completed: the output of a graph.
    let is_output = intent.author == Author::Runtime && type_name == COMPLETE;
    if has("result") && type_name != RESULT && !is_output {
        return Err(match intent.author {
            Author::Agent | Author::User => MemberFault::NotYours { name: "result", author: intent.author },
            _ => MemberFault::NoResultHere,
        });
    }
    if type_name == DECISION {
        let decision = intent.member("policy").and_then(|policy| policy.get("decision"));
        if decision.and_then(Value::as_str).is_none() {
            return Err(MemberFault::NoDecision);
        }
    }
    let metrics = intent.member("metrics").and_then(Value::as_object);
    let wrong = metrics.into_iter().flat_map(|metrics| metrics.iter()).find(|(_, value)| {
        let number = value.as_number().and_then(|number| number.as_f64());
        **value != Value::Null && number.is_none_or(|number| number < 0.0)
    });
    wrong.map_or(Ok(()), |(name, _)| Err(MemberFault::Metric(name.to_string())))
}
