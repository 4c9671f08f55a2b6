//! `dendrer commit`: intents as JSON lines, through the kernel, onto a run.
//!
//! Lines that are there are taken together and made durable by one sync; a line that comes alone waits for no
//! other. An acknowledgement is printed after the sync that covers it, never before.

use std::io::{BufRead, BufReader, IsTerminal, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use dendrer::kernel::step::{Stage, Start};
use dendrer::recorder::{Recorder, Submitted, World};
use dendrer::store::Store;
use dendrer_object::record::{Author, Kind, Record};
use dendrer_object::{Delta, Intent, RunName, Value, json};
use dendrer_view::{count, document, quote};

use crate::args::{AuthorChoice, Commit, Global};
use crate::failure::{Failure, Result};
use crate::out::{Format, Out, Style};
use crate::progress::Progress;
use crate::{keys, open};

/// How many lines one group takes at most. A group is acknowledged while the next one is judged, so a larger one
/// would let a line that is durable wait long for its acknowledgement, and gain hardly anything.
const GROUP_LINES: usize = 100;

/// How many bytes of lines one group takes at most.
const GROUP_BYTES: usize = 8 << 20;

/// What the reading thread hands over.
enum Line {
    Text(u64, Vec<u8>),
    Failed(std::io::Error),
}

/// What was said so far.
#[derive(Default)]
struct Tally {
    committed: u64,
    refused: u64,
    anomalies: u64,
    items: Vec<Value>,
    /// Counts what is on record, for whoever watches.
    progress: Option<Arc<AtomicU64>>,
}

pub(crate) fn run(global: &Global, args: &Commit, out: &mut Out) -> Result {
    if args.author == AuthorChoice::System {
        return Err(Failure::new("E0408", "system transitions are made by the kernel alone")
            .note("nothing was committed"));
    }
    let name: RunName = args
        .run
        .parse()
        .map_err(|error: dendrer_object::name::NameError| Failure::new(error.code(), error.to_string()))?;
    let lines = read_lines(&args.file)?;
    let mut store = open::write_store(global)?;
    open::refuse_trouble(&mut store)?;
    let exists = store.run(&name)?.is_some();
    if !exists {
        refuse_unreachable(&name)?;
    }
    if exists && args.new {
        return Err(Failure::new("E0111", format!("{name} exists already")).note("nothing was changed"));
    }
    let for_new = [&args.goal, &args.state, &args.policy, &args.pack];
    if exists && for_new.iter().any(|given| given.is_some()) {
        return Err(Failure::new(
            "E0106",
            format!("{name} exists already; --goal, --state, --policy and --pack are for a new run"),
        ));
    }
    let key = keys::find(global.key.as_deref(), store.info())?;
    if key.is_none() {
        out.say(
            "note: the key of the log is not here; records are written, and no checkpoint is signed (E0804)",
        );
    }
    let mut recorder = match exists {
        true => Recorder::resume(&mut store, &name, Box::new(World::default()))?,
        false => Recorder::begin(&mut store, &start(args, name)?, Box::new(World::default()))?,
    };
    let mut tally = Tally::default();
    // Acknowledgements on the same terminal say the same, and better.
    let progress = (!std::io::stdout().is_terminal() || global.output.is_some())
        .then(|| Progress::start(global, "commit", "intents", None));
    tally.progress = progress.as_ref().map(Progress::counter);
    let result = take_lines(args, !exists, &lines, &mut recorder, &mut tally, out);
    drop(recorder);
    drop(progress);
    if !args.dry_run {
        keys::sign(&mut store, key.as_ref())?;
        Store::close(Box::new(store))?;
    }
    result.map_err(|mut failure| {
        failure.changed = tally.committed + tally.refused > 0;
        let kept = format!(
            "{} before it {} committed",
            count(tally.committed, "transition", "transitions"),
            if tally.committed == 1 { "is" } else { "are" }
        );
        let items = std::mem::take(&mut tally.items);
        failure.items = (!items.is_empty()).then(|| Box::new(Value::array(items)));
        failure.note(kept)
    })?;
    let members = [
        ("run", Value::from(args.run.as_str())),
        ("committed", Value::from(tally.committed)),
        ("refused", Value::from(tally.refused)),
        ("dry_run", Value::from(args.dry_run)),
    ];
    match out.format() {
        Format::Json => {
            let items = ("items", Value::array(std::mem::take(&mut tally.items)));
            out.document(&document("commit", members.into_iter().chain([items])))?;
        }
        Format::Jsonl => out.summary("commit", members)?,
        Format::Text => {
            let dry = if args.dry_run { "nothing was written (dry run): " } else { "" };
            out.say(format!(
                "{dry}{}, {} refused, {}",
                count(tally.committed, "transition", "transitions"),
                tally.refused,
                count(tally.anomalies, "anomaly", "anomalies")
            ));
        }
    }
    Ok(if tally.refused > 0 { 5 } else { 0 })
}

/// Refuses a name that no address reaches: it reads as a file, or as the beginning of a hash.
pub(super) fn refuse_unreachable(name: &RunName) -> Result<()> {
    let text = name.as_str();
    let is_hash = text.len() >= 12 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if text.ends_with(".dnd") || is_hash {
        let what = if is_hash { "the beginning of a hash" } else { "a bundle" };
        return Err(Failure::new("E0106", format!("the run could not be addressed: {name} reads as {what}"))
            .note("nothing was committed"));
    }
    Ok(())
}

fn start(args: &Commit, name: RunName) -> Result<Start> {
    let file = |path: &str| -> Result<Value> {
        let text = std::fs::read(path).map_err(|error| {
            Failure::new("E0108", format!("cannot read {path}")).at("cause", error.to_string())
        })?;
        json::parse_door(super::behind_mark(&text))
            .map_err(|error| Failure::new(error.code(), error.to_string()).at("file", path))
    };
    let policy = match &args.policy {
        None => Vec::new(),
        Some(path) => match file(path)? {
            Value::Array(rules) => rules.iter().cloned().collect(),
            other => {
                return Err(Failure::new(
                    "E0209",
                    format!("a policy is a list of rules, not {}", other.described()),
                )
                .at("file", path.as_str()));
            }
        },
    };
    let start = Start {
        goal: args.goal.as_deref().map(Into::into),
        stage: Stage::from_number(args.stage).unwrap_or(Stage::Replay),
        state: args.state.as_deref().map(file).transpose()?.unwrap_or_else(Value::object),
        policy,
        ..Start::new(name)
    };
    match &args.pack {
        Some(path) => Ok(super::pack::load(path)?.bind(start)?),
        None => Ok(start),
    }
}

/// Reads lines in a thread of its own, so that the disk can work while the next line is waited for.
fn read_lines(path: &str) -> Result<Receiver<Line>> {
    let input: Box<dyn Read + Send> = match path {
        "-" => Box::new(std::io::stdin()),
        path => {
            let file = std::fs::File::open(path);
            Box::new(file.map_err(|error| {
                Failure::new("E0108", format!("cannot read {path}")).at("cause", error.to_string())
            })?)
        }
    };
    let (send, receive) = sync_channel(GROUP_LINES);
    std::thread::spawn(move || {
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
    Ok(receive)
}

fn take_lines(
    args: &Commit,
    is_new: bool,
    lines: &Receiver<Line>,
    recorder: &mut Recorder<'_>,
    tally: &mut Tally,
    out: &mut Out,
) -> Result<()> {
    let mut under_way: Option<Submitted> = None;
    let mut failure = None;
    loop {
        // With a group on its way to the disk there is something to do meanwhile; without, wait for a line.
        let first = match under_way {
            Some(_) => lines.try_recv(),
            None => lines.recv().map_err(|_| TryRecvError::Disconnected),
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
            match read_intent(args, line) {
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
            failure = Some(Failure::from(error).at("line", numbers[at].to_string()));
            closed = true;
        }
        if failure.is_some()
            && is_new
            && tally.committed + tally.refused == 0
            && recorder.pending() == 1
            && under_way.is_none()
        {
            // Nothing but the beginning of the run: a run that holds nothing is not left behind.
            recorder.discard();
        }
        let submitted = match recorder.pending() {
            0 => None,
            // A dry run gathers everything, so that each line is judged on what the lines before it made.
            _ if args.dry_run => None,
            _ => Some(recorder.submit()),
        };
        if let Some(group) = under_way.take() {
            acknowledge(recorder.settle(group)?, tally, out)?;
        }
        under_way = submitted.transpose()?;
        if closed {
            if let Some(group) = under_way.take() {
                acknowledge(recorder.settle(group)?, tally, out)?;
            }
            if args.dry_run {
                acknowledge(recorder.discard(), tally, out)?;
            }
            return failure.map_or(Ok(()), Err);
        }
    }
}

/// Reads one line: its number, its size and the intent on it, unless it is blank.
fn read_intent(args: &Commit, line: Line) -> Result<Option<(u64, usize, Intent)>> {
    let (number, text) = match line {
        Line::Text(number, text) => (number, text),
        Line::Failed(error) => {
            return Err(Failure::new("E0801", "cannot read the intents").at("cause", error.to_string()));
        }
    };
    let text = if number == 1 { super::behind_mark(&text) } else { &text };
    if text.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let place = |failure: Failure| failure.at("line", number.to_string());
    let parsed = if args.tagged { json::parse_tagged(text) } else { json::parse_door(text) };
    let value = parsed.map_err(|error| {
        let failure =
            place(Failure::new(error.code(), error.kind.to_string()).at("byte", error.offset.to_string()));
        if error.path.is_empty() { failure } else { failure.at("path", error.path.clone()) }
    })?;
    let mut intent = Intent::from_value(&value, args.agent.as_deref()).map_err(|error| {
        let failure = place(Failure::new(error.code, error.message.clone()));
        if error.path.is_empty() { failure } else { failure.at("path", error.path.clone()) }
    })?;
    if !args.tagged {
        intent.delta = intent.delta.map(Delta::through_the_door);
    }
    if args.author == AuthorChoice::Agent && intent.author == Author::Runtime {
        return Err(place(Failure::new("E0408", "with --as agent no line speaks for the runtime")));
    }
    Ok(Some((number, text.len(), intent)))
}

/// Prints what is on record now.
fn acknowledge(records: Vec<Record>, tally: &mut Tally, out: &mut Out) -> Result<()> {
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
        match out.format() {
            Format::Json => tally.items.push(item),
            Format::Jsonl => out.item(&item)?,
            Format::Text => text(&record, out)?,
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

fn text(record: &Record, out: &mut Out) -> Result<()> {
    let header = record.header();
    let name = header.type_name.as_ref().map(|name| name.to_string()).unwrap_or_default();
    match (header.kind, header.tick) {
        (Kind::Transition, Some(tick)) => {
            let noted =
                |place| record.body().value(place).map(|list| format!("   WARN {}", quote::value(&list)));
            let noted: String = ["/anomalies", "/violations"].into_iter().filter_map(noted).collect();
            out.line(format!("tick {tick}  {}  {name}{noted}", record.id()))
        }
        (Kind::Refusal, _) => {
            let reason = record.body().value("/reason").unwrap_or(Value::Null);
            let part =
                |name: &str| reason.get(name).and_then(Value::as_str).map(quote::escape).unwrap_or_default();
            let line = format!("refused  {}  {name}  {} {}", record.id(), part("code"), part("message"));
            let line = out.paint(Style::Bad, &line);
            out.line(line)
        }
        _ => out.line(format!("begun  {}", record.id())),
    }
}
