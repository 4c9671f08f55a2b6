//! Runs a command that the user gave: `fork --exec` and `replay --exec-read`. Nothing else in dendrer runs one.

use std::io::Write as _;
use std::process::{Command, Stdio};

use dendrer_object::{Value, json};
use dendrer_view::quote;

/// The command of a user, for the shell of the system.
#[cfg(not(windows))]
pub(crate) fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    shell
}

/// The command of a user, for the shell of the system.
#[cfg(windows)]
pub(crate) fn shell(command: &str) -> Command {
    use std::os::windows::process::CommandExt;
    let mut shell = Command::new("cmd");
    // `/S` takes away the outer quotes alone; ours would be escaped as no shell reads them.
    shell.raw_arg(format!("/S /C \"{command}\""));
    shell
}

/// Asks a command: JSON on its standard input, JSON on its standard output.
pub(crate) fn ask(command: &str, tool: &str, params: &Value) -> Result<Value, String> {
    let child = shell(command)
        .env("DENDRER_TOOL", tool)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("the command cannot be run: {error}"))?;
    let mut child = child;
    let stdin = child.stdin.take();
    let text = quote::json(params);
    // Written by a thread of its own: the command may answer before it has read all.
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            // Ignored: a command need not read its parameters.
            let _ = stdin.map(|mut stdin| stdin.write_all(text.as_bytes()));
        });
        child.wait_with_output()
    });
    let output = output.map_err(|error| format!("the answer of the command cannot be read: {error}"))?;
    if !output.status.success() {
        return Err(format!("the command failed: {}", output.status));
    }
    json::parse_door(&output.stdout)
        .map_err(|error| format!("the answer of the command is not JSON: {error}"))
}
