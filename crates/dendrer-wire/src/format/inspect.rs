//! Logs of Inspect AI 0.3.285: `.eval`, a ZIP archive with a file for each epoch of a sample, and `.json`, one object.
//!
//! An epoch of a sample is a run. Its events are spans: calls of models and tools, spans of agents, changes of state
//! ([`state`]). Texts and messages that events share ([`shared`]) come from the sample itself. Rule: a member that no
//! table of [`tables`] has is looked through by [`Account`]; a new member of the program is never silently a call.

mod events;
mod shared;
mod state;
mod tables;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use dendrer_object::json::parse_door;
use dendrer_object::value::Object;
use dendrer_object::{Code, Digest, Value};

use self::events::Events;
use self::shared::Shared;
use super::openai_chat::Messages;
use crate::foreign::{Format, Head, Steps, Surveyed, Visit};
use crate::import::archive::{Archive, MAGIC};
use crate::import::calls::Calls;
use crate::import::chat::{self, ChatReader};
use crate::import::error::ImportError;
use crate::import::items::{self, Around, Item};
use crate::import::layout::{Choice, Layout, NAMED_MAX, Top, decode, pointer};
use crate::import::scan::{Capture, Fingerprint, Scanner, Sizes, Stop};
use crate::import::spans;
use crate::import::transition::{Step, free_name};

/// The format.
pub(super) static INSPECT: Format = Format {
    tables: tables::all,
    sniff,
    shape: "a log of Inspect with `eval` and `samples`",
    survey,
    items,
    ..Format::new("inspect", "Logs of Inspect AI, .eval or .json", |_| Box::new(Inspected::default()))
};

/// Names of archive members with samples: what is before and after the id and the epoch.
const SAMPLES: (&str, &str) = ("samples/", ".json");

/// Archive members that repeat what the header or a sample has.
const COPIES: &[&str] = &["_journal/", "summaries.json"];

fn sniff(head: &Head<'_>) -> bool {
    if head.bytes.starts_with(MAGIC) {
        let names: [&[u8]; 3] = [b"_journal/start.json", b"header.json", b"samples/"];
        return names.iter().any(|name| head.bytes.windows(name.len()).any(|window| window == *name));
    }
    let is_log = |object: &Object| {
        let eval = object.get("eval").and_then(Value::as_object);
        object.contains_key("status")
            && eval.is_some_and(|eval| eval.contains_key("task") && eval.contains_key("created"))
    };
    // A log is longer than what is looked at, or its members are on lines of their own.
    let text = head.bytes.trim_ascii_start();
    let inside = text.strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    let is_long = || {
        inside.is_some_and(|inside| inside.starts_with(b"\"version\""))
            && ["status", "eval", "task", "created"].iter().all(|name| head.names(name))
    };
    head.any(is_log) || is_long()
}

/// Messages as steps, some of which change the state.
#[derive(Default)]
struct Inspected(Messages);

impl Steps for Inspected {
    fn step<'i>(&mut self, item: &'i Item<'_>, calls: &mut Calls) -> Result<Step<'i>, ImportError> {
        let mut step = self.0.step(item, calls)?;
        step.delta.clone_from(&item.delta);
        Ok(step)
    }

    fn recorded(&mut self, record: Digest) {
        self.0.recorded(record);
    }

    fn is_preamble(&self, value: &Value) -> bool {
        self.0.is_preamble(value)
    }
}

/// A log: the samples that it has, and all else.
struct Log<'b> {
    source: LogSource<'b>,
    /// The members around the samples.
    header: Object,
}

enum LogSource<'b> {
    /// The archive, and the names of its samples.
    Archive(Archive<'b>, Vec<String>),
    /// The text, and the places of its samples.
    Text(&'b [u8], Vec<Range<usize>>),
}

impl<'b> Log<'b> {
    fn open(bytes: &'b [u8]) -> Result<Log<'b>, ImportError> {
        if !bytes.starts_with(MAGIC) {
            return Log::of_text(bytes);
        }
        let archive = Archive::open(bytes)?;
        let header = match archive.read("header.json")? {
            Some(header) => Some(header),
            // A log that was not finished.
            None => archive.read("_journal/start.json")?,
        };
        let Some(header) = header else {
            return Err(ImportError::Unknown("the archive has neither header.json nor _journal/start.json"));
        };
        let mut header = object(&header, "header.json")?;
        if let Some(reductions) = archive.read("reductions.json")? {
            let reductions = value(&reductions, "reductions.json")?;
            header.set(&free_name(&header, "reductions"), reductions);
        }
        let is_sample = |name: &&str| name.starts_with(SAMPLES.0) && name.ends_with(SAMPLES.1);
        let mut samples: Vec<String> = archive.names().filter(is_sample).map(str::to_owned).collect();
        samples.sort_by_cached_key(|name| order(name));
        let known = |name: &&str| {
            is_sample(name)
                || ["header.json", "reductions.json"].contains(name)
                || COPIES.iter().any(|copy| name.starts_with(copy))
        };
        let others: Vec<Value> = archive.names().filter(|name| !known(name)).map(Value::from).collect();
        if !others.is_empty() {
            header.set(&free_name(&header, "other_files"), Value::array(others));
        }
        Ok(Log { source: LogSource::Archive(archive, samples), header })
    }

    /// Finds the samples in the text of a log.
    fn of_text(bytes: &'b [u8]) -> Result<Log<'b>, ImportError> {
        let mut samples = Vec::new();
        let mut header = object_around(bytes, &mut |scanner, name| {
            if name != "samples" || scanner.next()? != Some(b'[') {
                return Ok(false);
            }
            scanner.array(&mut |scanner| {
                samples.push(range(scanner)?);
                Ok(())
            })?;
            Ok(true)
        })?;
        if !samples.is_empty() {
            header.remove("samples");
        }
        Ok(Log { source: LogSource::Text(bytes, samples), header })
    }

    /// The names of the samples.
    fn names(&self) -> Vec<String> {
        match &self.source {
            LogSource::Archive(_, names) => names.iter().map(|name| stem(name).to_owned()).collect(),
            LogSource::Text(bytes, places) => {
                let name = |place: &Range<usize>| {
                    let head = &bytes[place.clone()];
                    let mut found = ["id", "epoch"].map(|_| String::new());
                    let _ = object_around(head, &mut |scanner, name| {
                        let Some(at) = ["id", "epoch"].iter().position(|known| *known == name) else {
                            return Ok(false);
                        };
                        let mut text = Capture::new();
                        scanner.value(&mut text, 0)?;
                        found[at] = String::from_utf8_lossy(&text.text).trim_matches('"').to_owned();
                        Ok(true)
                    });
                    let [id, epoch] = found;
                    format!("{id}_epoch_{epoch}")
                };
                places.iter().take(NAMED_MAX).map(name).collect()
            }
        }
    }

    fn count(&self) -> u64 {
        match &self.source {
            LogSource::Archive(_, names) => names.len() as u64,
            LogSource::Text(_, places) => places.len() as u64,
        }
    }

    /// The text of a sample.
    fn sample(&self, index: u64) -> Result<Cow<'b, [u8]>, ImportError> {
        let missing = || ImportError::NoRun { index, count: self.count() };
        let at = usize::try_from(index).map_err(|_| missing())?;
        match &self.source {
            LogSource::Archive(archive, names) => {
                let text = archive.read(names.get(at).ok_or_else(missing)?)?.ok_or_else(missing)?;
                Ok(Cow::Owned(text))
            }
            LogSource::Text(bytes, places) => {
                Ok(Cow::Borrowed(&bytes[places.get(at).ok_or_else(missing)?.clone()]))
            }
        }
    }
}

/// The id and the epoch in the name of an archive member.
fn stem(name: &str) -> &str {
    let name = name.strip_prefix(SAMPLES.0).unwrap_or(name);
    name.strip_suffix(SAMPLES.1).unwrap_or(name)
}

/// The order of samples: by epoch, then by id, numbers by their size.
fn order(name: &str) -> (u64, bool, u128, String) {
    let (id, epoch) = stem(name).rsplit_once("_epoch_").unwrap_or((stem(name), ""));
    let number = id.parse::<u128>().ok();
    (epoch.parse().unwrap_or(u64::MAX), number.is_none(), number.unwrap_or(0), id.to_owned())
}

/// Steps over a member, given its name; false if it is to be kept.
type Walker<'a, 'b> = &'a mut dyn FnMut(&mut Scanner<&'b [u8]>, &str) -> Result<bool, Stop>;

/// Reads the members of an object but for those that `member` steps over.
fn object_around<'b>(text: &'b [u8], member: Walker<'_, 'b>) -> Result<Object, ImportError> {
    let mut scanner = Scanner::new(text).map_err(stopped)?;
    let mut frame = Capture::new();
    let mut is_left_out = false;
    if scanner.next().map_err(stopped)? != Some(b'{') {
        return Err(ImportError::Unknown("a log of Inspect is an object"));
    }
    let walked = scanner.object(&mut frame, &mut |scanner, frame, name| {
        if member(scanner, &decode(name))? {
            frame.push(b"null");
        } else {
            is_left_out |= scanner.value(frame, 1)?.is_some();
        }
        Ok(())
    });
    walked.map_err(stopped)?;
    if frame.is_over || is_left_out {
        return Err(too_large("a part of it is too large or too deep to be kept"));
    }
    object(&frame.text, "the log")
}

/// The place of the next value.
fn range(scanner: &mut Scanner<&[u8]>) -> Result<Range<usize>, Stop> {
    scanner.next()?;
    let start = scanner.offset();
    scanner.value(&mut Capture::nothing(), 0)?;
    let place = |offset: u64| usize::try_from(offset).expect("the text is in memory");
    Ok(place(start)..place(scanner.offset()))
}

fn value(text: &[u8], what: &str) -> Result<Value, ImportError> {
    let at = || Some(format!("/{what}"));
    parse_door(text).map_err(|error| ImportError::Json { error, at: at(), offset: None })
}

fn object(text: &[u8], what: &str) -> Result<Object, ImportError> {
    let value = value(text, what)?;
    value.as_object().cloned().ok_or(ImportError::Unknown("a part of the log is no object"))
}

fn stopped(stop: Stop) -> ImportError {
    match stop {
        Stop::Cut => {
            let message = "the log ends inside a value".to_owned();
            ImportError::Unfit { code: Code::E0201, message, note: None }
        }
        other => ImportError::stopped(other),
    }
}

fn too_large(what: &str) -> ImportError {
    ImportError::Unfit { code: Code::E0205, message: what.to_owned(), note: None }
}

fn all(source: &mut dyn Read) -> Result<Vec<u8>, ImportError> {
    let mut bytes = Vec::new();
    source.read_to_end(&mut bytes).map_err(ImportError::Io)?;
    Ok(bytes)
}

fn survey(source: &mut dyn Read, choice: &Choice) -> Result<Surveyed, ImportError> {
    if let Some(list) = choice.list.as_ref().filter(|list| !list.is_empty()) {
        return Err(ImportError::NoList(pointer(list)));
    }
    let bytes = all(source)?;
    let log = Log::open(&bytes)?;
    let count = log.count();
    let index = match choice.index {
        None if count == 0 => return Err(ImportError::Unknown("no sample is in the log")),
        None if count > 1 => {
            return Err(ImportError::SeveralSamples {
                count,
                samples: (0..).zip(log.names()).take(NAMED_MAX).collect(),
            });
        }
        Some(index) if index >= count => return Err(ImportError::NoRun { index, count }),
        index => index,
    };
    let layout = Layout { index, path: vec!["events".to_owned()], ..Layout::new(Top::Value) };
    Ok((layout, Fingerprint::of(&bytes), Sizes::default()))
}

/// A sample, taken apart.
struct Sample<'t> {
    /// The members but for those below.
    frame: Object,
    /// The text of the events.
    events: Option<&'t [u8]>,
    /// The members of `events_data`.
    shared: Shared,
    pool: BTreeMap<&'static str, Value>,
}

impl<'t> Sample<'t> {
    fn of(text: &'t [u8]) -> Result<Sample<'t>, ImportError> {
        let (mut events, mut attachments) = (None, BTreeMap::new());
        let mut lists: BTreeMap<&'static str, Vec<Value>> = BTreeMap::new();
        let frame = object_around(text, &mut |scanner, name| match (name, scanner.next()?) {
            ("events", Some(b'[')) if events.is_none() => {
                events = Some(range(scanner)?);
                Ok(true)
            }
            ("attachments", Some(b'{')) => {
                scanner.object(&mut Capture::nothing(), &mut |scanner, _, name| {
                    if let Value::String(text) = captured(scanner)? {
                        attachments.insert(decode(name), text);
                    }
                    Ok(())
                })?;
                Ok(true)
            }
            ("events_data", Some(b'{')) => {
                scanner.object(&mut Capture::nothing(), &mut |scanner, _, name| {
                    let name = decode(name);
                    let name = ["messages", "calls"].into_iter().find(|known| *known == name);
                    match (name, scanner.next()?) {
                        (Some(name), Some(b'[')) => scanner.array(&mut |scanner| {
                            lists.entry(name).or_default().push(captured(scanner)?);
                            Ok(())
                        }),
                        _ => scanner.value(&mut Capture::nothing(), 0).map(drop),
                    }
                })?;
                Ok(true)
            }
            _ => Ok(false),
        })?;
        let messages = lists.get("messages").map_or(&[][..], Vec::as_slice);
        let shared = Shared::new(text.len(), attachments, messages);
        let pool = lists.into_iter().map(|(name, list)| (name, Value::array(list))).collect();
        Ok(Sample { frame, events: events.map(|place| &text[place]), shared, pool })
    }
}

/// Reads the next value.
fn captured(scanner: &mut Scanner<&[u8]>) -> Result<Value, Stop> {
    scanner.next()?;
    let mut text = Capture::new();
    let left_out = scanner.value(&mut text, 0)?;
    if left_out.is_some() || text.is_over {
        return Err(Stop::Failed(too_large("a part of it is too large or too deep to be kept")));
    }
    value(&text.text, "shared").map_err(Stop::Failed)
}

fn items(
    source: &mut dyn Read,
    layout: &Layout,
    hints: Sizes,
    visit: Visit<'_>,
) -> Result<Around, ImportError> {
    let bytes = all(source)?;
    let log = Log::open(&bytes)?;
    let text = log.sample(layout.index.unwrap_or(0))?;
    let sample = Sample::of(&text)?;
    let has_events = sample.events.is_some_and(|events| events.contains(&b'{'));
    let mut around = match sample.events.filter(|_| has_events) {
        Some(mut events) => {
            let inner =
                Layout { index: None, ..Layout { found: layout.found.clone(), ..Layout::new(Top::Array) } };
            let native = Events::new(sample.frame, sample.shared, sample.pool, text.len());
            spans::hand_over(&mut events, &inner, hints, Box::new(native), visit)?
        }
        None => words(&text, sample, layout, visit)?,
    };
    let mut meta = around.meta.take().and_then(|meta| meta.as_object().cloned()).unwrap_or_default();
    meta.set(&free_name(&meta, "log"), Value::Object(log.header));
    around.meta = Some(Value::Object(meta));
    (around.fingerprint, around.sha256) = (Fingerprint::of(&bytes), Digest::of(&bytes));
    Ok(around)
}

/// Hands over the messages of a sample that has no events.
fn words(text: &[u8], sample: Sample<'_>, layout: &Layout, visit: Visit<'_>) -> Result<Around, ImportError> {
    let path = vec!["messages".to_owned()];
    let inner = Layout { path, found: layout.found.clone(), ..Layout::new(Top::Value) };
    let mut reader = ChatReader::new(chat::MESSAGE, &layout.found);
    let shared = &sample.shared;
    let mut around = items::read(text, &inner, Sizes::default(), &mut |mut item| {
        if let Value::Object(object) = &item.value {
            item.value = Value::Object(message(&shared.members(object, &[])));
            shared.note_missing(&item.at.to_string(), &mut item.notes);
        }
        reader.take(item, visit)
    })?;
    let mut meta = shared.members(&sample.frame, &[]);
    meta.remove("messages");
    shared.check()?;
    around.meta = Some(Value::Object(meta));
    around.gathered = reader.end(None);
    Ok(around)
}

/// A message with the names of a chat: the tool of a result, and calls that a server answered as a call and its result.
fn message(object: &Object) -> Object {
    let mut made = object.clone();
    if object.get("role").and_then(Value::as_str) == Some("tool")
        && let Some(name) = object.get("function").filter(|name| name.as_str().is_some())
        && !object.contains_key("name")
    {
        made.remove("function");
        made.set("name", name.clone());
    }
    if let Some(parts) = object.get("content").and_then(Value::as_array)
        && parts.iter().any(is_served)
    {
        made.set("content", Value::array(parts.iter().flat_map(served).collect::<Vec<_>>()));
    }
    made
}

fn is_served(part: &Value) -> bool {
    part.get("type").and_then(Value::as_str) == Some("tool_use") && part.get("tool_type").is_some()
}

/// The parts that a part is: a call that a server answered is a call and its result.
fn served(part: &Value) -> Vec<Value> {
    let Some(object) = part.as_object().filter(|_| is_served(part)) else { return vec![part.clone()] };
    let mut call = object.clone();
    let mut result = Object::default();
    result.set("type", Value::from("tool_result"));
    for (name, to) in [("result", "content"), ("error", "error")] {
        if let Some(value) = call.remove(name) {
            result.set(to, value);
        }
    }
    for (name, to) in [("id", "tool_use_id"), ("name", "name")] {
        if let Some(value) = object.get(name) {
            result.set(to, value.clone());
        }
    }
    result.set("is_error", Value::from(object.get("error").is_some_and(|error| *error != Value::Null)));
    if let Some(arguments) = call.remove("arguments") {
        call.set("input", spans::plain(&arguments));
    }
    vec![Value::Object(call), Value::Object(result)]
}

/// A text, shared.
type Name = Arc<str>;
