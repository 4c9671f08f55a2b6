//! The program as a user runs it: real processes, real stores, real exit codes.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod commit;
mod crash;
mod find;
mod flips;
mod output;
mod packs;
mod support;
mod tour;
mod values;
