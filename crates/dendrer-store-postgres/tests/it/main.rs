//! Stores on a PostgreSQL server that the tests start themselves.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests, and figures with --nocapture"
)]

mod answers;
mod conform;
mod crash;
mod damage;
mod processes;
mod roles;
mod server;
mod stopped;
mod values;
mod writers;
