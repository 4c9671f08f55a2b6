//! Members of a line of `dendrer commit`: name, meaning and shape of each, and how it is taken.
//!
//! [`MEMBERS`] is the one list: the reader, rules, mappings, comparisons and the schema `intent` follow from it. Rule: a
//! member that is not in it is refused by name.

use super::{ID_SIZE_MAX, KEY_SIZE_MAX};
use crate::document::{DocumentMember, Either, Fraction, Shape, TextUpTo, sentence};
use crate::record::LINKS_MAX;
use crate::value::{Array, Object};
use crate::{Digest, TypeName, Value};

/// A member of a line.
#[derive(Debug)]
pub struct LineMember {
    /// The name.
    pub name: &'static str,
    /// The lines of its meaning.
    lines: &'static [&'static str],
    schema: fn() -> Value,
    pub(super) take: Take,
    /// Whether a mapping of foreign lines may give it.
    is_mapped: bool,
}

/// How a member is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Take {
    /// A part of an intent with a reader of its own.
    Part,
    /// The object `intent`, which is kept with its confidence rounded.
    Meaning,
    /// A member of the object `intent` in its other spelling.
    Inside,
    /// An object, kept as it is.
    Object,
    /// One of some words, kept as it is.
    Words(&'static [&'static str]),
    /// A list, kept as it is if it has items.
    List,
    /// A list of texts, kept as it is if it has items.
    Texts,
    /// A text of 1 to 256 bytes, kept as it is.
    Text,
    /// A list about commitments, kept as it is if it has items.
    Commitments,
}

impl Take {
    const fn is_kept(self) -> bool {
        matches!(self, Take::Meaning | Take::Object | Take::Words(_) | Take::List | Take::Texts | Take::Text)
    }
}

impl LineMember {
    /// Returns the member as one of a document.
    pub fn documented(&self) -> DocumentMember {
        let sentence = sentence(self.lines);
        DocumentMember { name: self.name, sentence, is_required: false, schema: (self.schema)() }
    }
}

/// Returns the names of the members that are committed as they are, except for the lists about commitments.
pub fn kept() -> impl Iterator<Item = &'static str> + Clone {
    MEMBERS.iter().filter(|member| member.take.is_kept()).map(|member| member.name)
}

/// Returns the names of the kept members that rules read and that are compared: `metrics` is neither.
pub fn kept_without_metrics() -> impl Iterator<Item = &'static str> + Clone {
    kept().filter(|name| *name != "metrics")
}

/// Returns the names of the members that a mapping of foreign lines may give.
pub fn mapped() -> impl Iterator<Item = &'static str> + Clone {
    MEMBERS.iter().filter(|member| member.is_mapped).map(|member| member.name)
}

/// Makes the table of the members.
macro_rules! members {
    ($($(#[doc = $doc:literal])+ $name:ident: $shape:ty = $take:expr $(, $mapped:ident)?;)*) => {
        /// The members of a line, in the order in which they are read.
        pub static MEMBERS: &[LineMember] = &[$(LineMember {
            name: stringify!($name),
            lines: &[$($doc),+],
            schema: <$shape as Shape>::schema,
            take: $take,
            is_mapped: !stringify!($($mapped)?).is_empty(),
        }),*];
    };
}

members! {
    /// The transition type. Types of the kernel (kernel.anomaly, predicate.violation, run.fork, run.cherrypick, bisect.result,
    /// diff.summary, causal.chain) and of the institution (policy.contract_extension) are refused
    type: TypeName = Take::Part, mapped;
    /// The same as type
    transition_type: TypeName = Take::Part;
    /// The agent, 1 to 256 bytes; "agent", or --agent, if it is missing. kernel and institution are reserved
    agent: TextUpTo<ID_SIZE_MAX> = Take::Part, mapped;
    /// The same as agent
    agent_id: TextUpTo<ID_SIZE_MAX> = Take::Part;
    /// The goal that the intent serves, 1 to 256 bytes
    goal: TextUpTo<ID_SIZE_MAX> = Take::Part, mapped;
    /// The same as goal
    goal_id: TextUpTo<ID_SIZE_MAX> = Take::Part;
    /// Who writes: an agent, also if it is missing, the runtime on its behalf, or a person. action.result and policy.decision
    /// need runtime
    author: LineAuthor = Take::Part;
    /// What is meant, in words; other members are kept as they are
    intent: LineMeaning = Take::Meaning, mapped;
    /// The same as confidence inside intent. From 0 to 1, rounded to 3 decimals, half to even
    confidence: Fraction = Take::Inside, mapped;
    /// The same as uncertainty_notes inside intent
    uncertainty_notes: Value = Take::Inside, mapped;
    /// The call of a tool; calls lists several, each with its own tool. Other members are kept as they are
    action: LineAction = Take::Object, mapped;
    /// What a tool answered. status is text, like ok or error
    result: LineResult = Take::Object, mapped;
    /// What was decided, and why
    policy: LinePolicy = Take::Object, mapped;
    /// Figures of the step. state.counters adds up the numbers tokens_used and cost_usd
    metrics: Object = Take::Object, mapped;
    /// The change of the state, applied in order and whole or not at all. A path is a JSON pointer below the state;
    /// kernel_anomalies, policy, progress and counters are the kernel's. Refused in a run whose pack has rules
    delta: [LineOp] = Take::Part, mapped;
    /// What the tool does to the world
    effect: Effect = Take::Words(Effect::WORDS), mapped;
    /// How an answer was obtained in a fork
    fork_type: ForkType = Take::Words(ForkType::WORDS);
    /// What the writer finds odd. Kinds that the kernel notes (clock_went_back, reducer_error) are refused
    anomalies: Array = Take::List;
    /// Earlier records that this one depends on
    links: LineLinks = Take::Part;
    /// Atoms of evidence. Mode, time and attestation follow from author and type; a line that has one of them is refused (E0454)
    evidence: Array = Take::Commitments;
    /// What the agent is bound to. See docs/commitments.md
    commitments: Array = Take::Commitments;
    /// Edges between atoms and commitments
    edges: Array = Take::Commitments;
    /// Commitments that are closed; it has an effect if the author is the owner or of a higher rank
    closes: Array = Take::Commitments;
    /// Ids of commitments that the author, a user or the institution, makes their own
    adopts: [String] = Take::Texts;
    /// The name of the user who speaks, 1 to 256 bytes; on lines of users alone
    user: TextUpTo<ID_SIZE_MAX> = Take::Text;
    /// The tick that the line was decided on: if it is not the last one, the line is not taken
    base: u64 = Take::Part;
    /// A name for the line, once in a run: the same line sent again is answered with the first one's tick
    key: TextUpTo<KEY_SIZE_MAX> = Take::Part;
    /// The places of the state that the decision depends on, beside those that delta writes; commit --causal refuses the line if
    /// another agent wrote there after base
    reads: [String] = Take::Part;
}

crate::words! {
    /// An author that a line may name.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum LineAuthor {
        /// A model, through its agent.
        Agent = "agent",
        /// The program that runs the agents.
        Runtime = "runtime",
        /// A person.
        User = "user",
    }
}

crate::words! {
    /// The effect of a tool on the world (dendrer paper 9.6), the mildest first.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Effect {
        /// Computes, as a function of the host in a graph's run: called twice and compared, and not pure by construction.
        Host = "host",
        /// Looks only.
        Read = "read",
        /// Writes, and writing twice is writing once.
        IdempotentWrite = "idempotent_write",
        /// Acts; an answer is used from the record and never asked for again.
        Effectful = "effectful",
    }
}

crate::words! {
    /// The origin of an answer in a fork.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ForkType {
        /// The world answered.
        Natural = "natural",
        /// A recorded answer was used.
        Observation = "observation",
        /// Another answer was put in its place.
        Injection = "injection",
    }
}

crate::words! {
    /// A decision of a policy.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum PolicyWord {
        /// The action may run.
        Allow = "allow",
        /// The action may not run.
        Deny = "deny",
        /// A person or another policy decides.
        Escalate = "escalate",
    }
}

crate::words! {
    /// A relation that a line may give to a link.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum LineRel {
        /// The linked record caused this one.
        CausedBy = "caused_by",
        /// This record depends on the linked one.
        Evidence = "evidence",
        /// This takes a concurrent branch in.
        Merges = "merges",
    }
}

crate::line! {
    /// The meaning of a line, in words
    open LineMeaning {
        /// The headline
        description: String,
        /// From 0 to 1, rounded to 3 decimals, half to even
        confidence: Fraction,
        /// Notes on what is uncertain
        uncertainty_notes: Value,
        /// Ids of commitments that an action depends on; refused (E0453) where one is stale, retracted or superseded
        relies_on: [String],
    }

    /// The call of a tool
    open LineAction {
        /// The tool
        tool: String,
        /// The parameters
        params: Value,
        /// Several calls
        calls: Array,
    }

    /// The answer of a tool
    open LineResult {
        /// The outcome, like ok or error
        status: String,
        /// The output
        output: Value,
    }

    /// The decision of a policy
    open LinePolicy {
        /// The decision
        decision: PolicyWord,
        /// The checks
        checks: Value,
        /// The version of the policy
        policy_version: Value,
        /// Notes
        notes: Value,
    }

    /// A link to an earlier record
    open LineLink {
        /// The relation
        rel: LineRel = required,
        /// The id of the record
        hash: Digest = required,
    }

    /// Puts a value at a path
    closed LineSet {
        /// The path
        set: String = required,
        /// The value
        value: Value = required,
    }

    /// Removes the value at a path
    closed LineRemove {
        /// The path
        remove: String = required,
    }

    /// Adds a value to the list at a path
    closed LineAppend {
        /// The path
        append: String = required,
        /// The value
        value: Value = required,
    }

    /// Adds a number to the one at a path
    closed LineAdd {
        /// The path
        add: String = required,
        /// The number
        value: f64 = required,
    }
}

/// An operation of a delta.
type LineOp = Either<Either<LineSet, LineRemove>, Either<LineAppend, LineAdd>>;

/// The links of a line; the kernel may add one of its own.
enum LineLinks {}

impl Shape for LineLinks {
    fn schema() -> Value {
        let mut schema = <[LineLink]>::schema().as_object().cloned().unwrap_or_default();
        schema.set("maxItems", Value::from(LINKS_MAX as u64 - 1));
        Value::Object(schema)
    }

    fn to_value(&self) -> Value {
        match *self {}
    }
}
