//! Records a program that dendrer has never seen, from the outside: what it asks of models, and what it is answered.
//!
//! The program gets the address of a server on loopback in place of that of an API ([`bases`]). The server passes every byte on
//! as it comes ([`proxy`]), and keeps a copy. A thread of its own makes transitions of the copies ([`tape`]): each message
//! once, of the agent whose conversation it extends ([`conversation`]).
//!
//! Servers of MCP are started by shims in `PATH` ([`shim`]), which bring a copy of what passes ([`channel`]).
//!
//! Rule: the program never waits for the record, and never notices that it is recorded.

pub mod api;
pub mod around;
pub mod bases;
mod body;
#[cfg(unix)]
pub mod channel;
pub mod conversation;
mod exact;
pub mod exchange;
pub mod forker;
mod frame;
pub mod mcp;
pub mod mcp_player;
pub mod player;
pub mod proxy;
mod read;
mod route;
#[cfg(unix)]
pub mod shim;
#[cfg(unix)]
mod shim_dir;
pub mod signals;
mod spoken;
mod sse;
pub mod tape;
pub mod volatile;

pub use around::{AroundPeer, AroundWatch};
pub use bases::{Base, BaseError};
pub use exchange::{AnsweredCall, AskedCall, Ended};
pub use forker::{ForkedCalls, Forker};
pub use mcp_player::McpPlayer;
pub use player::{PlayedCalls, Player};
pub use proxy::Proxy;
pub use tape::{Tape, TapeTally};
pub use volatile::VolatilePlace;
