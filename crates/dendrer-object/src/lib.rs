//! What is written down: values, states, intents, records; canonical bytes, digests and proofs.
//!
//! Pure: no clock, randomness, I/O or hash order. Everything here is a function of its arguments.

pub mod digest;
pub mod json;
pub mod number;
pub mod tag;
pub mod value;

pub use digest::Digest;
pub use number::Number;
pub use value::{Array, Object, Value};
