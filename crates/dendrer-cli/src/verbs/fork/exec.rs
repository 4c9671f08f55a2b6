//! `fork --exec`: a fork is gone on with live, by a command that proposes intents and is told what became of them.
//!
//! It speaks as it would to `dendrer commit`: what it prints are intents, a JSON
//! line each, and what it reads are the acknowledgements, after a first line with the document of the fork.
//!
//! Rule: the program never waits for the command while the command may wait for the program. So the input of the command is
//! written by a thread of its own, and is kept there until it is read.

use std::io::Write;
use std::path::Path;
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::{Sender, channel};

use dendrer::lines::{self, LineOptions, Recording};
use dendrer::recorder::Recorder;
use dendrer_object::Code;
use dendrer_object::Value;
use dendrer_view::fork::{ExecStatus, ForkAnswer};

use crate::context::program;
use crate::context::replies::{self, Heard};
use crate::context::shell::shell;
use crate::failure::Failure;
use crate::failure::Result;
use crate::out::Out;

/// Runs the command, and takes what it proposes onto the run until it has no more to say and has ended.
pub(super) fn go_on(
    command: &str,
    store: &Path,
    fork: &Value,
    recorder: &mut Recorder,
    answer: &mut ForkAnswer<'_>,
    out: &mut Out,
) -> Result<(ExecStatus, Option<Failure>)> {
    let tick = recorder.head().tick();
    let mut child = shell(command)
        .env("DENDRER_STORE", store)
        .env("DENDRER_RUN", recorder.head().run().as_str())
        .env("DENDRER_TICK", tick.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| {
            Failure::new(Code::E0808, "the command cannot be run: there is no shell")
                .at("cause", error.to_string())
        })?;
    let listener = speaker(child.stdin.take().expect("its standard input is a pipe"))?;
    // Ignored: a command that has ended at once reads nothing.
    let _ = listener.send(replies::json_line(fork));
    let lines = lines::read(child.stdout.take().expect("its standard output is a pipe"))
        .map_err(|error| replies::no_thread(&error))?;
    let run = recorder.head().run().clone();
    let heard = Heard { listener: Some(listener), ..Heard::default() };
    let recording = Recording::new(recorder, lines, LineOptions::default(), false);
    let stopped = replies::print(recording, answer, &heard, &run, true, out).err();
    // Closes both pipes: a command that waits for either reads that there is no more.
    drop(heard);
    if stopped.is_some() {
        out.say("note: nothing more is taken from the command; waiting for it to end");
    }
    let status = child.wait().map_err(|error| {
        Failure::new(Code::E0808, "how the command ended is not known").at("cause", error.to_string())
    })?;
    Ok((ExecStatus { code: status.code(), signal: program::signal(status) }, stopped))
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
    speaking.map_err(|error| replies::no_thread(&error))?;
    Ok(send)
}
