//! Tools for tests of dendrer that its users do not need: stores with fixed ids and keys, and histories in them.
//!
//! Never used by the product. Rule: nothing here depends on the time, on chance or on the machine, so that a test
//! that fails once fails always.

pub mod forger;
pub mod history;
pub mod secrets;
mod stores;
pub mod tool_outputs;

pub use stores::{
    Dice, appending, info, key, memory, memory_with_key, record, recorder, records_of, run_name, store_id,
    store_of,
};
