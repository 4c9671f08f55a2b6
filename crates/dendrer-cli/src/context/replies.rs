//! Replies to lines of intents, printed one by one: for `commit` and for `fork --exec`.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

use dendrer::lines::{LinesStopped, LinesTally, NoIntent, Recording, Reply};
use dendrer_object::Code;
use dendrer_object::{RunName, Value};
use dendrer_view::answer::ItemAnswer;
use dendrer_view::{commit, count, layout, quote};

use crate::failure::Failure;
use crate::failure::Result;
use crate::global::Format;
use crate::out::Out;

/// Characters of a line that is no intent which a failure shows.
const TEXT_SHOWN: usize = 120;

/// Where replies go beside the answer.
#[derive(Default)]
pub(crate) struct Heard {
    /// Counts records for the line of progress.
    pub(crate) progress: Option<Arc<AtomicU64>>,
    /// Gets each reply as a JSON line.
    pub(crate) listener: Option<Sender<String>>,
}

/// Prints every reply of a recording, and returns why it stopped. `shows_text`: a failure shows the line that is no intent,
/// because no other place has it.
pub(crate) fn print<A: ItemAnswer<Item = Reply>>(
    mut recording: Recording<'_>,
    answer: &mut A,
    heard: &Heard,
    run: &RunName,
    shows_text: bool,
    out: &mut Out,
) -> Result<()> {
    for replies in recording.by_ref() {
        replies.iter().try_for_each(|reply| print_one(reply, answer, heard, out))?;
        out.flush()?;
    }
    recording.end().map_err(|stopped| failure(stopped, run, shows_text))
}

/// Prints a reply.
pub(crate) fn print_one<A: ItemAnswer<Item = Reply>>(
    reply: &Reply,
    answer: &mut A,
    heard: &Heard,
    out: &mut Out,
) -> Result<()> {
    if let Some(progress) = &heard.progress {
        progress.fetch_add(reply.records().count() as u64, Ordering::Relaxed);
    }
    if let Some(listener) = &heard.listener {
        // Ignored: a command that has ended hears nothing, and its lines count all the same.
        let _ = listener.send(json_line(&commit::item(reply)));
    }
    // The failure itself is printed for people, and in the one document.
    match (reply, out.format()) {
        (Reply::Failed(_), Format::Text | Format::Json) => Ok(()),
        _ => out.take(answer, reply),
    }
}

/// Adds to a failure the items that precede it, and how many transitions.
pub(crate) fn precede(mut failure: Failure, tally: &LinesTally, dry_run: bool, out: &mut Out) -> Failure {
    failure.changed |= !dry_run && !tally.is_empty();
    let is = match (dry_run, tally.committed) {
        (true, _) => "would be",
        (false, 1) => "is",
        (false, _) => "are",
    };
    let before = count(tally.committed, "transition", "transitions");
    let dry = if dry_run { "; nothing was written (dry run)" } else { "" };
    let items = out.kept();
    failure.items = (!items.is_empty()).then(|| Box::new(Value::array(items)));
    failure.note(format!("{before} before it {is} committed{dry}"))
}

/// Returns the failure for a recording that stopped.
fn failure(stopped: LinesStopped, run: &RunName, shows_text: bool) -> Failure {
    match stopped {
        LinesStopped::Input(error) => {
            Failure::new(Code::E0801, "cannot read the intents").at("cause", error.to_string())
        }
        LinesStopped::Line { line, error } => {
            let mut failure = Failure::new(error.code(), error.kind.to_string());
            failure = failure.at("byte", error.offset.to_string()).at("line", line.number.to_string());
            if shows_text {
                let text = layout::cut(&String::from_utf8_lossy(&line.text), TEXT_SHOWN);
                failure = failure.at("text", text);
            }
            if error.path.is_empty() { failure } else { failure.at("path", error.path) }
        }
        LinesStopped::NoIntent { line, why } => {
            let failure = Failure::new(Code::E0209, why.to_string())
                .at("line", line.to_string())
                .at("member", "type")
                .note(format!("nothing was recorded, and {run} was not begun"));
            match why {
                NoIntent::Chat => failure.help(&["dendrer", "import", "FILE"]),
                NoIntent::Object | NoIntent::Other(_) => failure.help(&["dendrer", "schema", "intent"]),
            }
        }
        LinesStopped::Intent { line, error } => {
            let ended_by_limit = error.code() == Code::E0521;
            let failure = Failure::from(*error).at("line", line.to_string());
            if ended_by_limit { failure.at("run", run.as_str()) } else { failure }
        }
        LinesStopped::Store(error) => Failure::from(*error),
    }
}

/// Returns the failure for a thread that the system does not start.
pub(crate) fn no_thread(error: &std::io::Error) -> Failure {
    Failure::new(Code::E0801, "no thread could be begun")
        .at("cause", error.to_string())
        .note("nothing was changed; the number of processes and threads is limited (ulimit -u)")
}

/// Notes on a terminal, where nothing seems to happen, which lines are awaited and how to end them.
pub(crate) fn expect_on_terminal(file: &str, out: &mut Out) {
    if file != "-" || !std::io::stdin().is_terminal() {
        return;
    }
    out.say("note: commit reads intents, one JSON object a line, like");
    out.say(r#"  {"type":"observation.add","agent":"ann","intent":{"description":"hello"}}"#);
    out.say("note: Ctrl-D on an empty line ends");
}

/// Returns a value as a line for a program.
pub(crate) fn json_line(value: &Value) -> String {
    format!("{}\n", quote::json(value))
}
