//! Witness chains: a typed, append-only log of steps that every subsystem of an agent writes in the same shape ("Interaction Chains as
//! Witness Logs", called the witness-log paper here), and the bytes of its rows as `carl-core` 0.2.0 writes them.
//!
//! Pure: no clock, no chance, no files. A host brings ids and times ([`StepStamp`]) and a place for files ([`ChainFiles`]).
//!
//! ```
//! use dendrer_chain::{ActionType, InteractionChain, RowValue, Step, StepStamp};
//! use dendrer_object::time::Timestamp;
//!
//! let at = Timestamp::from_ms(0);
//! let mut chain = InteractionChain::new("0123456789ab", at);
//! let mut step = Step::new(ActionType::ToolCall, "get", StepStamp::new(0xfeed_0000_0000_0001, at));
//! step.output = RowValue::from("ok");
//! chain.record(step);
//! assert_eq!(chain.by_action(ActionType::ToolCall).count(), 1);
//! assert_eq!(chain.success_rate(), 1.0);
//! ```

mod action;
mod chain;
mod chain_file;
mod interaction_store;
mod row;
mod scrub;
mod step;

pub use action::{ActionType, CLOSED, EXTENSION, UnknownAction};
pub use chain::{CoherenceProbe, CoherenceSnapshot, Forwarder, InteractionChain};
pub use chain_file::{
    ChainFile, ChainFileError, ChainIdError, ChainLines, ChainReader, ChainRow, RowFault, check_chain_id,
};
pub use interaction_store::{
    ChainFiles, InteractionStore, InteractionStoreError, LoadedChain, MemoryFiles, last_line,
};
pub use row::{RowError, RowText, RowValue};
pub use scrub::{PATTERNS, REDACTED, is_secret_name, scrub, scrub_text};
pub use step::{
    CONTENT_HASH, PREV_HASH, RowStepError, StartedAt, Step, StepStamp, content_hash_of, hashed, header_hash,
    verify_step_content_hash,
};
