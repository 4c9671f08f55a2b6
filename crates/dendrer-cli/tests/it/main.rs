//! The program as a user runs it: real processes, real stores, real exit codes.

mod commit;
mod crash;
mod flips;
mod output;
mod support;
mod tour;
mod values;
