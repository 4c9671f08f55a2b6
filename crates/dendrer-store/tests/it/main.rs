//! The stores through their public face.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests, and figures with --nocapture"
)]

mod conform;
mod copy;
mod crash;
mod damage;
mod growth;
mod index;
mod model;
mod together;
