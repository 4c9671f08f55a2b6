//! Recorded data: values, states, intents and records, with canonical bytes, digests and proofs.
//!
//! Pure: no clock, randomness, I/O or hash order. Everything here is a function of its arguments.

pub mod bundle;
pub mod code;
pub mod delta;
pub mod digest;
pub mod document;
pub mod intent;
pub mod json;
pub mod keys;
pub mod lookalike;
pub mod map;
pub mod marker;
pub mod merkle;
pub mod name;
pub mod note;
pub mod number;
pub mod pointer;
pub mod question;
pub mod record;
pub mod tag;
pub mod text;
pub mod time;
pub mod value;
pub mod words;

pub use code::Code;
pub use delta::Delta;
pub use digest::Digest;
pub use intent::{
    ACTION_TYPE, AT, BASE, COMMITMENT_LISTS, EDGE, Intent, KEY, MESSAGES, OBSERVED_AT, ORIGIN, READS,
    REDACTION, SCOPE, UNATTESTED,
};
pub use name::{RunName, StoreId, TypeName};
pub use number::Number;
pub use pointer::Pointer;
pub use record::Record;
pub use time::Timestamp;
pub use value::{Array, Object, Value};
