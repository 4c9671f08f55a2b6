//! Shims in front of `PATH`, through which a program starts its servers of MCP.

use std::ffi::OsString;
use std::io;

#[cfg(unix)]
use dendrer_capture::channel::{self, Channel};
use dendrer_capture::proxy::Tap;
use dendrer_capture::{McpPlayer, PlayedCalls, Tape};

use super::program;

/// Shims, until they are ended.
pub(crate) struct Shims {
    #[cfg(unix)]
    channel: Channel,
}

/// The names of shims; the error is one that cannot be one.
pub(crate) fn names(given: &[String]) -> Result<Vec<String>, String> {
    let mut names: Vec<String> = given.iter().filter(|name| !name.is_empty()).cloned().collect();
    names.sort();
    names.dedup();
    #[cfg(unix)]
    if let Some(bad) = names.iter().find(|name| !channel::is_shim_name(name)) {
        return Err(format!("--mcp takes names of programs, not {bad:?}"));
    }
    Ok(names)
}

#[cfg(unix)]
impl Shims {
    /// Shims that bring copies.
    pub(crate) fn record(names: &[String], tap: Tap) -> io::Result<Shims> {
        Ok(Shims { channel: Channel::record(names, &program::this()?, tap)? })
    }

    /// Shims that answer from a record.
    pub(crate) fn play(names: &[String], player: McpPlayer) -> io::Result<Shims> {
        Ok(Shims { channel: Channel::play(names, &program::this()?, player)? })
    }

    /// Lets a tape wait for what shims copied, where the order matters.
    pub(crate) fn order(&self, tape: &mut Tape) {
        tape.with_shims(self.channel.syncer());
    }

    /// The variables that a program gets.
    pub(crate) fn variables(&self) -> Vec<(String, OsString)> {
        self.channel.variables(std::env::var_os("PATH"))
    }

    /// Ends them, and returns the counts of a replay.
    pub(crate) fn end(self) -> PlayedCalls {
        self.channel.end()
    }
}

/// This system has no shims.
#[cfg(not(unix))]
impl Shims {
    pub(crate) fn record(_: &[String], _: Tap) -> io::Result<Shims> {
        Ok(Shims {})
    }

    pub(crate) fn play(_: &[String], _: McpPlayer) -> io::Result<Shims> {
        Ok(Shims {})
    }

    pub(crate) fn order(&self, _: &mut Tape) {}

    pub(crate) fn variables(&self) -> Vec<(String, OsString)> {
        Vec::new()
    }

    pub(crate) fn end(self) -> PlayedCalls {
        PlayedCalls::default()
    }
}
