//! Recording: intents, one by one or as JSON lines, and the calls of tools.

pub mod chain;
mod chain_files;
pub mod lines;
pub mod recorder;
pub mod redacted;
pub mod reread;
pub mod secrets;
pub mod tools;
pub mod writer;

pub use chain_files::ChainDirectory;
