//! Answers a shell that asks for completions.
//!
//! Verbs and flags come from the description of the command line; [`crate::offers`] knows the values of flags.

use std::ffi::OsString;

use clap_complete::env::CompleteEnv;

use crate::offers::{ASKED, shells};

/// Answers a shell, if one is asking; the exit code is of the answer.
pub(crate) fn answer(command: fn() -> clap::Command, args: &[OsString]) -> Option<u8> {
    std::env::var_os(ASKED)?;
    let here = std::env::current_dir().ok();
    let answered = CompleteEnv::with_factory(command)
        .shells(shells())
        .try_complete(args.iter().cloned(), here.as_deref());
    match answered {
        Ok(true) => Some(0),
        Ok(false) => None,
        Err(_) => Some(2),
    }
}
