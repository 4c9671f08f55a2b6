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
mod full;
mod growth;
mod index;
mod model;
mod one_sync;
mod outside;
mod proofs;
mod secrets;
mod small;
mod tags;
mod together;
mod writers;

/// Whether everything is tried, and not only what fits every push.
fn deep() -> bool {
    std::env::var_os("DENDRER_DEEP").is_some_and(|value| value == "1")
}

/// How many threads a test may use.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

/// How many cases a property gets: as many as `PROPTEST_CASES` says, or so many.
fn cases(otherwise: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}
