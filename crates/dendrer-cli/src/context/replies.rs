//! The replies to lines of intents, printed: for `commit` and for `fork --exec`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Format;
use crate::out::Out;
use crate::out::Style;
use dendrer::lines::{self, Recording, Reply, Stopped};
use dendrer_object::{RunName, Value};
use dendrer_view::{commit, count, quote};

/// Characters of a line that is no intent which a failure shows.
const TEXT_SHOWN: usize = 120;

/// The replies so far, and who else hears of them.
#[derive(Default)]
pub(crate) struct Replies {
    pub(crate) tally: lines::Tally,
    /// How many there were.
    pub(crate) printed: u64,
    /// The items of the one document, which is printed at the end.
    pub(crate) items: Vec<Value>,
    /// Counts records for the line of progress.
    pub(crate) progress: Option<Arc<AtomicU64>>,
    /// Gets each reply as a JSON line.
    pub(crate) listener: Option<Sender<String>>,
}

impl Replies {
    /// Adds to a failure how many records precede it.
    pub(crate) fn precede(&mut self, mut failure: Failure, dry_run: bool) -> Failure {
        failure.changed |= !dry_run && !self.tally.is_empty();
        let is = match (dry_run, self.tally.committed) {
            (true, _) => "would be",
            (false, 1) => "is",
            (false, _) => "are",
        };
        let before = count(self.tally.committed, "transition", "transitions");
        let dry = if dry_run { "; nothing was written (dry run)" } else { "" };
        let items = std::mem::take(&mut self.items);
        failure.items = (!items.is_empty()).then(|| Box::new(Value::array(items)));
        failure.note(format!("{before} before it {is} committed{dry}"))
    }

    /// Prints every reply of a recording, and returns why it stopped. `shows_text`: a failure shows the line that is no intent,
    /// because no other place has it.
    pub(crate) fn print(
        &mut self,
        mut recording: Recording<'_>,
        run: &RunName,
        dry_run: bool,
        shows_text: bool,
        out: &mut Out,
    ) -> Result<()> {
        for replies in recording.by_ref() {
            replies.iter().try_for_each(|reply| self.print_one(reply, dry_run, out))?;
            out.flush()?;
        }
        recording.end().map_err(|stopped| failure(stopped, run, shows_text))
    }

    /// Prints a reply.
    pub(crate) fn print_one(&mut self, reply: &Reply, dry_run: bool, out: &mut Out) -> Result<()> {
        self.tally.count(reply);
        self.printed += 1;
        if let Some(progress) = &self.progress {
            progress.fetch_add(reply.records().count() as u64, Ordering::Relaxed);
        }
        let item = (self.listener.is_some() || !out.is_text()).then(|| commit::item(reply));
        if let (Some(listener), Some(item)) = (&self.listener, &item) {
            // Ignored: a command that has ended hears nothing, and its lines count all the same.
            let _ = listener.send(json_line(item));
        }
        match (reply, item, out.format()) {
            // The failure itself is printed for people, and in the one document.
            (Reply::Failed(_), _, Format::Text | Format::Json) => Ok(()),
            (_, Some(item), Format::Json) => {
                self.items.push(item);
                Ok(())
            }
            (_, Some(item), Format::Jsonl) => out.item(&item),
            (Reply::Refused { .. }, ..) => {
                let line = out.paint(Style::Bad, &commit::line(reply, dry_run));
                out.line(line)
            }
            _ => out.line(commit::line(reply, dry_run)),
        }
    }
}

/// Returns the failure for a recording that stopped.
pub(crate) fn failure(stopped: Stopped, run: &RunName, shows_text: bool) -> Failure {
    match stopped {
        Stopped::Input(error) => {
            Failure::new("E0801", "cannot read the intents").at("cause", error.to_string())
        }
        Stopped::Line { line, error } => {
            let mut failure = Failure::new(error.code(), error.to_string());
            if let Some(byte) = error.byte() {
                failure = failure.at("byte", byte.to_string());
            }
            failure = failure.at("line", line.number.to_string());
            if shows_text {
                let text = quote::shorten(&String::from_utf8_lossy(&line.text), TEXT_SHOWN);
                failure = failure.at("text", text);
            }
            if error.path().is_empty() { failure } else { failure.at("path", error.path()) }
        }
        Stopped::Intent { line, error } => {
            let ended_by_limit = error.code() == "E0521";
            let failure = Failure::from(*error).at("line", line.to_string());
            if ended_by_limit { failure.at("run", run.as_str()) } else { failure }
        }
        Stopped::Store(error) => Failure::from(*error),
    }
}

/// Returns the failure for a thread that the system does not start.
pub(crate) fn no_thread(error: &std::io::Error) -> Failure {
    Failure::new("E0801", "no thread could be begun")
        .at("cause", error.to_string())
        .note("nothing was changed; the number of processes and threads is limited (ulimit -u)")
}

/// Returns a value as a line for a program.
pub(crate) fn json_line(value: &Value) -> String {
    format!("{}\n", quote::json(value))
}
