//! What a step is: the closed sixteen of the witness-log paper 2.1, and the further types of the published package.

use std::fmt;
use std::str::FromStr;

macro_rules! actions {
    ($($variant:ident $name:literal $doc:literal)*) => {
        /// The shape of an interaction (witness-log paper 2.1). The first sixteen are the paper's, and closed; the others are of
        /// the extension [`EXTENSION`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ActionType {
            $(#[doc = $doc] $variant,)*
        }

        impl ActionType {
            /// All types: the sixteen, then those of the extension, each in the order of its source.
            pub const ALL: &[ActionType] = &[$(ActionType::$variant,)*];

            /// The name in a row.
            pub fn name(self) -> &'static str {
                match self {
                    $(ActionType::$variant => $name,)*
                }
            }
        }
    };
}

actions! {
    UserInput "user_input" "Text typed by a user."
    ToolCall "tool_call" "An agent invokes a registered tool."
    LlmReply "llm_reply" "A model streamed a reply."
    CliCmd "cli_cmd" "A command is dispatched at the top level."
    Gate "gate" "A prompt for a credential or a permission; the input holds the name of the credential."
    GateCheck "gate_check" "A structured check that allows or denies; the output holds the verdict."
    External "external" "A request over HTTP, a file or a subprocess."
    Payment "payment" "A payment by x402 or a wallet."
    TrainingStep "training_step" "A periodic marker of a training."
    EvalPhase "eval_phase" "A phase of an evaluation begins or ends."
    Reward "reward" "A snapshot of aggregated rewards."
    Checkpoint "checkpoint" "A trainer saves a checkpoint or a model."
    MemoryRead "memory_read" "A memory is recalled."
    MemoryWrite "memory_write" "A memory is committed."
    HeartbeatCycle "heartbeat_cycle" "A cycle of sticky notes begins or ends."
    StickyNote "sticky_note" "A note is appended, dequeued or changes its status."
    SecretMint "secret_mint" "A value is stored in a vault (extension)."
    SecretResolve "secret_resolve" "A handle of a secret is resolved (extension)."
    SecretRevoke "secret_revoke" "A handle of a secret is revoked (extension)."
    ClipboardWrite "clipboard_write" "The clipboard is written (extension)."
    DataOpen "data_open" "A reference to data is registered (extension)."
    DataRead "data_read" "Bytes of a reference are served (extension)."
    DataTransform "data_transform" "A reference is derived from another (extension)."
    DataPublish "data_publish" "The content of a reference is published (extension)."
    ResourceOpen "resource_open" "A resource is registered (extension)."
    ResourceAct "resource_act" "An action is dispatched against a resource (extension)."
    ResourceClose "resource_close" "A resource is released (extension)."
}

/// How many types the paper has. Adding one is a change of the API (witness-log paper 2.1).
pub const CLOSED: usize = 16;

/// The extension that names the types of `carl-core` 0.2.0 beyond the sixteen.
pub const EXTENSION: &str = "carl-core/0.2";

/// A name that is no action type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no action type")]
pub struct UnknownAction(pub String);

impl ActionType {
    /// Whether it is one of the sixteen of the paper.
    pub fn is_closed(self) -> bool {
        (self as usize) < CLOSED
    }

    /// Whether a probe fills the coherence fields of such a step (`carl-core` 0.2.0).
    pub fn is_probed(self) -> bool {
        use ActionType as A;
        matches!(self, A::LlmReply | A::ToolCall | A::TrainingStep | A::EvalPhase | A::Reward)
    }
}

impl fmt::Display for ActionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ActionType {
    type Err = UnknownAction;

    fn from_str(name: &str) -> Result<ActionType, UnknownAction> {
        let found = ActionType::ALL.iter().find(|action| action.name() == name);
        found.copied().ok_or_else(|| UnknownAction(name.to_owned()))
    }
}
