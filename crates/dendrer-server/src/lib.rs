//! `dendrer serve`: the answers of the program over HTTP, on this machine, for a browser and for programs.
//!
//! A request becomes a question of the library, and its answer is the document that the program prints for the same flags.
//! Nothing that a request has names a file, a store or a command. Dendrer's rules are all elsewhere: this crate has routes,
//! checks where a request comes from, and stops a question when its connection closes.

mod answer;
mod api;
mod badge;
mod events;
mod guard;
mod page;
mod path;
mod progress;
mod reading;
mod route;
mod served;
mod server;
mod table;
mod work;
mod writing;

pub use guard::{Guard, Token};
pub use served::Served;
pub use server::{Got, Server, ServerOptions, ending_signal, interrupted};
