//! Witness chains: a typed, append-only log of steps that every subsystem of an agent writes in the same shape ("Interaction Chains as
//! Witness Logs", called the witness-log paper here), and the bytes of its rows as `carl-core` 0.2.0 writes them.
//!
//! Pure: no clock, no chance, no files. A host brings ids and times ([`StepStamp`]) and a place for files ([`ChainFiles`]).
#![doc = include_str!("../README.md")]

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
