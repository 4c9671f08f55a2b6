//! The types of a step: the closed sixteen of the witness-log paper 2.1, and the further types of the published package.

dendrer_object::words! {
    /// The shape of an interaction (witness-log paper 2.1). The first sixteen are the paper's, and closed; the others are of
    /// the extension [`EXTENSION`]. The word is the name in a row.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum ActionType {
        /// Text typed by a user.
        UserInput = "user_input",
        /// An agent invokes a registered tool.
        ToolCall = "tool_call",
        /// A model streamed a reply.
        LlmReply = "llm_reply",
        /// A command is dispatched at the top level.
        CliCmd = "cli_cmd",
        /// A prompt for a credential or a permission; the input holds the name of the credential.
        Gate = "gate",
        /// A structured check that allows or denies; the output holds the verdict.
        GateCheck = "gate_check",
        /// A request over HTTP, a file or a subprocess.
        External = "external",
        /// A payment by x402 or a wallet.
        Payment = "payment",
        /// A periodic marker of a training.
        TrainingStep = "training_step",
        /// A phase of an evaluation begins or ends.
        EvalPhase = "eval_phase",
        /// A snapshot of aggregated rewards.
        Reward = "reward",
        /// A trainer saves a checkpoint or a model.
        Checkpoint = "checkpoint",
        /// A memory is recalled.
        MemoryRead = "memory_read",
        /// A memory is committed.
        MemoryWrite = "memory_write",
        /// A cycle of sticky notes begins or ends.
        HeartbeatCycle = "heartbeat_cycle",
        /// A note is appended, dequeued or changes its status.
        StickyNote = "sticky_note",
        /// A value is stored in a vault (extension).
        SecretMint = "secret_mint",
        /// A handle of a secret is resolved (extension).
        SecretResolve = "secret_resolve",
        /// A handle of a secret is revoked (extension).
        SecretRevoke = "secret_revoke",
        /// The clipboard is written (extension).
        ClipboardWrite = "clipboard_write",
        /// A reference to data is registered (extension).
        DataOpen = "data_open",
        /// Bytes of a reference are served (extension).
        DataRead = "data_read",
        /// A reference is derived from another (extension).
        DataTransform = "data_transform",
        /// The content of a reference is published (extension).
        DataPublish = "data_publish",
        /// A resource is registered (extension).
        ResourceOpen = "resource_open",
        /// An action is dispatched against a resource (extension).
        ResourceAct = "resource_act",
        /// A resource is released (extension).
        ResourceClose = "resource_close",
    }
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
    /// Reads the name in a row.
    pub fn read(name: &str) -> Result<ActionType, UnknownAction> {
        ActionType::from_word(name).ok_or_else(|| UnknownAction(name.to_owned()))
    }

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
