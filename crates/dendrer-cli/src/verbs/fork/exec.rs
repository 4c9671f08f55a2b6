//! `fork --exec`: a fork is gone on with live, by a command that proposes intents and is told what became of them.
//!
//! Nothing else in dendrer runs a command. It speaks as it would to `dendrer commit`: what it prints are intents, a JSON
//! line each, and what it reads are the acknowledgements, after a first line that says what the fork is. A newcomer would
//! break one rule: the command is never waited for while it may be waiting for us, so what it reads is written by a thread
//! of its own, and what it does not read waits there.

use std::io::Write;
use std::path::Path;
use std::process::{ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Sender, channel};

use dendrer::lines::{self, Reading, Recording};
use dendrer::recorder::Recorder;
use dendrer_object::Value;

use crate::context::replies as intents;
use crate::context::replies::Replies;
use crate::failure::Failure;
use crate::failure::Result;
use crate::out::Out;

/// A shell adds this to the number of the signal that ended what it ran.
const SHELL_SIGNALLED: i32 = 128;

/// What came of the command.
#[derive(Default)]
pub(super) struct Ran {
    /// The replies to its intents.
    pub(super) replies: Replies,
    /// The last tick of the run.
    pub(super) tip: u64,
    /// How it ended, once it has.
    pub(super) status: Option<ExitStatus>,
    /// What stopped the taking of its intents before they ended.
    pub(super) stopped: Option<Failure>,
}

/// Runs the command, and takes what it proposes onto the run until it has no more to say and has ended.
pub(super) fn go_on(
    command: &str,
    store: &Path,
    fork: &Value,
    recorder: &mut Recorder,
    out: &mut Out,
) -> Result<Ran> {
    let tick = recorder.head().tick();
    let mut child = shell(command)
        .env("DENDRER_STORE", store)
        .env("DENDRER_RUN", recorder.head().run().as_str())
        .env("DENDRER_TICK", tick.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| {
            Failure::new("E0808", "the command cannot be run: there is no shell")
                .at("cause", error.to_string())
        })?;
    let listener = speaker(child.stdin.take().expect("its standard input is a pipe"))?;
    // Ignored: a command that has ended at once reads nothing.
    let _ = listener.send(intents::json_line(fork));
    let lines = lines::read(child.stdout.take().expect("its standard output is a pipe"))
        .map_err(|error| intents::no_thread(&error))?;
    let run = recorder.head().run().clone();
    let mut replies = Replies { listener: Some(listener), ..Replies::default() };
    let recording = Recording::new(recorder, lines, Reading::default(), false);
    let stopped = replies.print(recording, &run, false, true, out).err();
    // Closes both pipes: a command that waits for either reads that there is no more.
    replies.listener = None;
    if stopped.is_some() {
        out.say("note: nothing more is taken from the command; waiting for it to end");
    }
    let status = child.wait().map_err(|error| {
        Failure::new("E0808", "how the command ended is not known").at("cause", error.to_string())
    })?;
    Ok(Ran { replies, tip: recorder.head().tick(), status: Some(status), stopped })
}

#[cfg(not(windows))]
fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    shell
}

#[cfg(windows)]
fn shell(command: &str) -> Command {
    use std::os::windows::process::CommandExt;
    let mut shell = Command::new("cmd");
    // `/S` takes away the outer quotes alone; ours would be escaped as no shell reads them.
    shell.raw_arg(format!("/S /C \"{command}\""));
    shell
}

/// Writes to the command from a thread of its own, in order, until it is to be told no more or reads no more.
fn speaker(mut stdin: ChildStdin) -> Result<Sender<String>> {
    let (send, receive) = channel::<String>();
    let speaking = std::thread::Builder::new().spawn(move || {
        for line in receive {
            if stdin.write_all(line.as_bytes()).is_err() {
                return;
            }
        }
    });
    speaking.map_err(|error| intents::no_thread(&error))?;
    Ok(send)
}

impl Ran {
    /// Says how the command ended; `None` where all is well, or where it was not run.
    pub(super) fn complaint(&self) -> Option<String> {
        let status = self.status.filter(|status| !status.success())?;
        Some(match (signal(status), status.code()) {
            (Some(signal), _) => format!("by signal {signal}"),
            (None, Some(code)) if code > SHELL_SIGNALLED => {
                let signal = code - SHELL_SIGNALLED;
                format!("with code {code}, which a shell says where signal {signal} ended what it ran")
            }
            (None, Some(code)) => format!("with code {code}"),
            (None, None) => "in a way that the system has no word for".to_owned(),
        })
    }

    /// What came of the command, as a member of the document.
    pub(super) fn to_value(&self, command: &str, items: Value) -> Value {
        Value::record([
            ("command", Value::from(command)),
            ("ran", Value::from(self.status.is_some())),
            ("code", Value::from(self.status.and_then(|status| status.code()).map(i64::from))),
            ("signal", Value::from(self.status.and_then(signal).map(i64::from))),
            ("committed", Value::from(self.replies.tally.committed)),
            ("refused", Value::from(self.replies.tally.refused)),
            ("tip", Value::from(self.tip)),
            ("items", items),
        ])
    }
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal(_: ExitStatus) -> Option<i32> {
    None
}
