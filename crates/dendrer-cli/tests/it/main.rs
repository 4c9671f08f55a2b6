//! The program as a user runs it: real processes, real stores, real exit codes.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
#![expect(clippy::print_stderr, reason = "a test that cannot run here says so")]

mod about;
mod agents;
mod answers;
mod attack;
mod causes;
mod cherrypick;
mod commit;
mod contract;
mod corpus;
mod crash;
mod diff;
mod door;
mod draft;
mod exec;
mod extended;
mod find;
mod flags;
mod flips;
mod fork;
mod forms;
mod full;
mod governance;
mod graphs;
mod heads;
mod help;
mod honest;
mod import;
mod keep;
mod key;
mod lies;
mod module_packs;
mod modules;
mod museum;
mod obligations;
mod output;
mod packs;
mod paper;
mod pillars;
mod reasons;
mod rebase;
mod recording;
mod regression;
mod restore;
mod secrets;
mod support;
mod terminal;
mod tour;
mod tutorial;
mod twice;
mod unknown;
mod unread;
mod values;
mod whole;
