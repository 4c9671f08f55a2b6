//! Stores on a PostgreSQL server that the tests start themselves.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "tests, and figures with --nocapture"
)]

mod conform;
mod crash;
mod damage;
mod server;
mod writers;
