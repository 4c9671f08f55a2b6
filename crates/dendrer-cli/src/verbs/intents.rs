//! Intents as JSON lines, onto a run: what `commit` reads from a file or a pipe, and `fork --exec` from a command.
//!
//! Lines that are there are taken together and made durable by one sync; a line that comes alone waits for no
//! other. An acknowledgement is printed after the sync that covers it, never before.

use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, sync_channel};

use dendrer::recorder::Recorder;
use dendrer_object::record::{Author, Kind, Record};
use dendrer_object::text::behind_mark;
use dendrer_object::{Delta, Intent, Value, json};
use dendrer_view::{count, quote};

use crate::failure::Failure;
use crate::failure::Result;
use crate::global::AuthorChoice;
use crate::global::Format;
use crate::out::Out;
use crate::out::Style;

/// How many lines one group takes at most. A group is acknowledged while others are judged, so larger ones would let a line that
/// is durable wait long for its acknowledgement, and gain hardly anything.
const GROUP_LINES: usize = 100;

/// How many bytes of lines one group takes at most.
const GROUP_BYTES: usize = 8 << 20;

/// How much of a line that is no intent is shown.
const TEXT_SHOWN: usize = 120;

/// How lines are read, and what becomes of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading<'a> {
    /// The agent of lines that do not name one.
    pub(super) agent: Option<&'a str>,
    /// Who writes.
    pub(super) author: AuthorChoice,
    /// Whether names that begin with `$` are tagged forms.
    pub(super) tagged: bool,
    /// Whether lines are judged and nothing is written.
    pub(super) dry_run: bool,
    /// Whether the run begins with them.
    pub(super) is_new: bool,
    /// Whether nobody else has the lines, so that a failure says what stands in one that is none.
    pub(super) shows_text: bool,
}

/// What the reading thread hands over.
pub(super) enum Line {
    Text(u64, Vec<u8>),
    Failed(std::io::Error),
}

/// What was said so far.
#[derive(Default)]
pub(super) struct Tally {
    pub(super) committed: u64,
    pub(super) refused: u64,
    pub(super) anomalies: u64,
    pub(super) items: Vec<Value>,
    /// Counts what is on record, for whoever watches.
    pub(super) progress: Option<Arc<AtomicU64>>,
    /// Who is told, a JSON line for each record, once it is on disk.
    pub(super) told: Option<Sender<String>>,
}

impl Tally {
    /// What became of the intents, in a line for people.
    pub(super) fn words(&self) -> String {
        format!(
            "{}, {} refused, {}",
            count(self.committed, "transition", "transitions"),
            self.refused,
            count(self.anomalies, "anomaly", "anomalies")
        )
    }

    /// Says in a failure what is on record of what came before it; of a dry run nothing is.
    pub(super) fn told_in(&mut self, mut failure: Failure, dry_run: bool) -> Failure {
        failure.changed |= !dry_run && self.committed + self.refused > 0;
        let is = match (dry_run, self.committed) {
            (true, _) => "would be",
            (false, 1) => "is",
            (false, _) => "are",
        };
        let before = count(self.committed, "transition", "transitions");
        let dry = if dry_run { "; nothing was written (dry run)" } else { "" };
        let kept = format!("{before} before it {is} committed{dry}");
        let items = std::mem::take(&mut self.items);
        failure.items = (!items.is_empty()).then(|| Box::new(Value::array(items)));
        failure.note(kept)
    }
}

/// Reads lines in a thread of its own, so that the disk can work while the next line is waited for.
pub(super) fn read(input: Box<dyn Read + Send>) -> Result<Receiver<Line>> {
    let (send, receive) = sync_channel(GROUP_LINES);
    let reading = std::thread::Builder::new().spawn(move || {
        let mut input = BufReader::with_capacity(1 << 16, input);
        for number in 1.. {
            let mut text = Vec::new();
            // A line without an end must not fill the memory before it is refused.
            let limit = json::DOCUMENT_SIZE_MAX as u64 + 2;
            match Read::take(&mut input, limit).read_until(b'\n', &mut text) {
                Ok(0) => return,
                Ok(_) => {
                    if text.last() == Some(&b'\n') {
                        text.pop();
                    }
                    if send.send(Line::Text(number, text)).is_err() {
                        return;
                    }
                }
                Err(error) => {
                    let _ = send.send(Line::Failed(error));
                    return;
                }
            }
        }
    });
    reading.map_err(|error| no_thread(&error))?;
    Ok(receive)
}

/// Says that the system lets no thread begin.
pub(super) fn no_thread(error: &std::io::Error) -> Failure {
    Failure::new("E0801", "no thread could be begun")
        .at("cause", error.to_string())
        .note("nothing was changed; the number of processes and threads is limited (ulimit -u)")
}

/// Takes lines onto a run until there are no more, or one is none.
pub(super) fn take(
    reading: &Reading<'_>,
    lines: &Receiver<Line>,
    recorder: &mut Recorder,
    tally: &mut Tally,
    out: &mut Out,
) -> Result<()> {
    let mut failure = None;
    loop {
        // With a group on its way to the disk there is something to do meanwhile; without, wait for a line.
        let first = match recorder.is_under_way() {
            true => lines.try_recv(),
            false => lines.recv().map_err(|_| TryRecvError::Disconnected),
        };
        let mut bytes = 0;
        let mut next = first;
        let mut numbers = Vec::new();
        let mut intents = Vec::new();
        let mut closed = loop {
            let line = match next {
                Ok(line) => line,
                Err(TryRecvError::Empty) => break false,
                Err(TryRecvError::Disconnected) => break true,
            };
            match read_intent(reading, line) {
                Ok(None) => {}
                Ok(Some((number, size, intent))) => {
                    bytes += size;
                    numbers.push(number);
                    intents.push(intent);
                }
                Err(error) => {
                    failure = Some(error);
                    break true;
                }
            }
            if intents.len() == GROUP_LINES || bytes > GROUP_BYTES {
                break false;
            }
            next = lines.try_recv();
        };
        if let Err((at, error)) = recorder.propose_each(&intents) {
            // Lines are taken in order: what stands before a bad line counts, what stands behind it does not.
            let is_stopped = error.code() == "E0521";
            let told = Failure::from(error).at("line", numbers[at].to_string());
            failure = Some(match is_stopped {
                true => told.at("run", recorder.head().run().as_str()),
                false => told,
            });
            closed = true;
        }
        if failure.is_some()
            && reading.is_new
            && tally.committed + tally.refused == 0
            && recorder.pending() == 1
            && !recorder.is_under_way()
        {
            // Nothing but the beginning of the run: a run that holds nothing is not left behind.
            recorder.discard();
        }
        // A dry run gathers everything, so that each line is judged on what the lines before it made.
        let submits = recorder.pending() > 0 && !reading.dry_run;
        let mut settled = if submits { recorder.submit() } else { recorder.settle() };
        let mut turned_down = None;
        loop {
            match settled {
                Ok(records) => acknowledge(records.unwrap_or_default(), false, tally, out)?,
                // What stands behind it may be on record all the same; the first error is the one to tell.
                Err(error) => drop(turned_down.get_or_insert(error)),
            }
            let waits = closed || turned_down.is_some();
            if !waits || !recorder.is_under_way() {
                break;
            }
            settled = recorder.settle();
        }
        if let Some(error) = turned_down {
            return Err(error.into());
        }
        if closed {
            if reading.dry_run {
                acknowledge(recorder.discard(), true, tally, out)?;
            }
            return failure.map_or(Ok(()), Err);
        }
    }
}

/// Reads one line: its number, its size and the intent on it, unless it is blank.
fn read_intent(reading: &Reading<'_>, line: Line) -> Result<Option<(u64, usize, Intent)>> {
    let (number, text) = match line {
        Line::Text(number, text) => (number, text),
        Line::Failed(error) => {
            return Err(Failure::new("E0801", "cannot read the intents").at("cause", error.to_string()));
        }
    };
    let text = if number == 1 { behind_mark(&text) } else { &text };
    if text.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let place = |failure: Failure| {
        let failure = failure.at("line", number.to_string());
        match reading.shows_text {
            true => failure.at("text", quote::shorten(&String::from_utf8_lossy(text), TEXT_SHOWN)),
            false => failure,
        }
    };
    let parsed = if reading.tagged { json::parse_tagged(text) } else { json::parse_door(text) };
    let value = parsed.map_err(|error| {
        let failure =
            place(Failure::new(error.code(), error.kind.to_string()).at("byte", error.offset.to_string()));
        if error.path.is_empty() { failure } else { failure.at("path", error.path.clone()) }
    })?;
    let mut intent = Intent::from_value(&value, reading.agent).map_err(|error| {
        let failure = place(Failure::new(error.code, error.message.clone()));
        if error.path.is_empty() { failure } else { failure.at("path", error.path.clone()) }
    })?;
    if !reading.tagged {
        intent.delta = intent.delta.map(Delta::through_the_door);
    }
    if reading.author == AuthorChoice::Agent && intent.author == Author::Runtime {
        return Err(place(Failure::new("E0408", "with --as agent no line speaks for the runtime")));
    }
    Ok(Some((number, text.len(), intent)))
}

/// Writes a value as a line for a program.
pub(super) fn json_line(value: &Value) -> String {
    format!("{}\n", quote::json(value))
}

/// Prints what is on record now, or would be.
fn acknowledge(records: Vec<Record>, dry_run: bool, tally: &mut Tally, out: &mut Out) -> Result<()> {
    for record in records {
        let header = record.header();
        if let Some(progress) = &tally.progress {
            progress.fetch_add(1, Ordering::Relaxed);
        }
        let item = match header.kind {
            Kind::Transition => {
                tally.committed += 1;
                item(&record, "committed")
            }
            Kind::Refusal => {
                tally.refused += 1;
                item(&record, "refused")
            }
            _ => item(&record, "begun"),
        };
        tally.anomalies += record
            .body()
            .value("/anomalies")
            .and_then(|list| list.as_array().map(|list| list.len() as u64))
            .unwrap_or(0);
        if let Some(told) = &tally.told {
            // Whoever listens no more is told no more; what was proposed counts all the same.
            let _ = told.send(json_line(&item));
        }
        match out.format() {
            Format::Json => tally.items.push(item),
            Format::Jsonl => out.item(&item)?,
            Format::Text => text(&record, dry_run, out)?,
        }
    }
    out.flush()
}

fn item(record: &Record, what: &str) -> Value {
    let header = record.header();
    let reason = record.body().value("/reason");
    let mut members = vec![
        ("what", Value::from(what)),
        ("tick", Value::from(header.tick)),
        ("id", Value::from(record.id())),
        ("type", Value::from(header.type_name.as_ref().map(|name| name.to_string()))),
    ];
    members.extend(reason.map(|reason| ("reason", reason)));
    for name in ["anomalies", "violations"] {
        members.extend(record.body().value(&format!("/{name}")).map(|listed| (name, listed)));
    }
    Value::record(members)
}

fn text(record: &Record, dry_run: bool, out: &mut Out) -> Result<()> {
    let header = record.header();
    let name = header.type_name.as_ref().map(|name| name.to_string()).unwrap_or_default();
    // Whoever waits for lines that begin with `tick` waits for what is on disk.
    let would_be = if dry_run { "would be " } else { "" };
    match (header.kind, header.tick) {
        (Kind::Transition, Some(tick)) => {
            let noted =
                |place| record.body().value(place).map(|list| format!("   WARN {}", quote::value(&list)));
            let noted: String = ["/anomalies", "/violations"].into_iter().filter_map(noted).collect();
            out.line(format!("{would_be}tick {tick}  {}  {name}{noted}", record.id()))
        }
        (Kind::Refusal, _) => {
            let reason = record.body().value("/reason").unwrap_or(Value::Null);
            let part =
                |name: &str| reason.get(name).and_then(Value::as_str).map(quote::escape).unwrap_or_default();
            let line =
                format!("{would_be}refused  {}  {name}  {} {}", record.id(), part("code"), part("message"));
            let line = out.paint(Style::Bad, &line);
            out.line(line)
        }
        _ => out.line(format!("{would_be}begun  {}", record.id())),
    }
}
