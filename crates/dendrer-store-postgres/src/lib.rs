//! The contract of a store on PostgreSQL 15 or later.
//!
//! Records, ids and roots are those of every other store. The server gives the order of groups and keeps what was written; it
//! is not trusted for more: who can write to it is the attacker with the disk, and each record, root, tag and signature is checked
//! by the handle that reads it.
//!
//! A [`ServerAddress`] names a store, [`Postgres`] is a handle of it. The driver runs on a thread of its own ([`PostgresOptions`] has its
//! limits); every call is synchronous, and ends.
//!
//! Rule: nothing is acknowledged as durable before a barrier: a transaction after the group whose write-ahead log was flushed. Test
//! `no_group_that_was_waited_for_is_lost_when_the_server_is_killed`.

mod address;
mod append;
mod barrier;
mod derive;
mod erase;
mod local;
mod options;
mod read;
mod rows;
mod schema;
mod sign;
mod store;
mod tree;
mod vault;
mod wire;

pub use address::{ServerAddress, ServerHost, TlsMode};
pub use options::PostgresOptions;
pub use schema::{TABLE_NAMES, tables_sql};
pub use store::Postgres;
pub use wire::ServerFacts;
