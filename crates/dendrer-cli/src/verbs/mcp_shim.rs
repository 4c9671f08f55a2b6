//! `dendrer mcp-shim`: a server of MCP is run, and a recorder gets a copy of what passes.

use clap::{Args, ValueHint};

use crate::failure::Result;
use crate::global::Global;
use crate::out::Out;

/// `mcp-shim`
#[derive(Debug, Args)]
pub(crate) struct McpShim {
    /// The server, and its arguments
    #[arg(last = true, required = true, value_name = "CMD", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<String>,
    /// The name of the server on the record; that of what CMD runs if not given
    #[arg(long, value_name = "SERVER")]
    pub(crate) name: Option<String>,
}

#[cfg(unix)]
pub(crate) fn run(_: &Global, args: &McpShim, out: &mut Out) -> Result {
    use dendrer_capture::shim::{Shim, ShimEnd};
    let shim = Shim { name: args.name.clone(), command: args.command.clone() };
    let end = shim.run(&mut |why| out.say(format!("dendrer mcp-shim: {why}")));
    if let ShimEnd::Not(error, _) = &end {
        out.say(format!("dendrer mcp-shim: {} was not started: {error}", args.command[0]));
    }
    Ok(end.end())
}

#[cfg(not(unix))]
pub(crate) fn run(_: &Global, args: &McpShim, out: &mut Out) -> Result {
    use crate::context::program;
    out.say(
        "dendrer mcp-shim: no recorder on this system; all is passed on, and nothing is recorded".to_owned(),
    );
    Ok(program::run(program::command(&args.command), |_| {}).exit().code)
}
