//! Reads the ticks of a run in order, and finds the first that has each of some values.
//!
//! Fields are read as they are in the store; a run with erased values is read by its records. Each transition that is found is
//! read once more, sealed, before it is shown.

use std::borrow::Cow;
use std::ops::{ControlFlow, RangeInclusive};

use dendrer_object::record::Record;
use dendrer_object::{Pointer, Value, json};

use super::SeenAt;
use super::wanted::{Hit, Wanted, below};
use crate::run::thread::THREAD;
use crate::run::trace::Trace;

/// The fields of a transition that were asked for.
pub(super) struct ReadTick<'f> {
    pub(super) tick: u64,
    pub(super) fields: Vec<(&'f str, Cow<'f, [u8]>)>,
    /// Whether one of them was erased or withheld.
    pub(super) is_closed: bool,
}

/// Hands over the wanted fields of the transitions of a range in order. From one on that is damaged, all are handed over as closed:
/// the answer that this is part of does not fail by it.
pub(super) fn each_tick(
    trace: &Trace,
    ticks: RangeInclusive<u64>,
    wanted: &dyn Fn(&str) -> bool,
    f: &mut dyn FnMut(ReadTick<'_>),
) {
    let mut next = *ticks.start();
    if next > *ticks.end() {
        return;
    }
    let skimmed = trace.skim_fields(ticks.clone(), wanted, &mut |skimmed| {
        f(ReadTick { tick: next, fields: skimmed.fields, is_closed: false });
        next += 1;
        Some(())
    });
    if skimmed.is_some() {
        return;
    }
    let read = trace.for_each(next, *ticks.end(), &mut |tick, record| {
        let body = record.body();
        let fields = || body.fields().iter().filter(|field| wanted(field.pointer.as_str()));
        let is_closed = fields().any(|field| body.text(field).is_none());
        let texts =
            fields().filter_map(|field| Some((field.pointer.as_str(), Cow::Borrowed(body.text(field)?))));
        f(ReadTick { tick, fields: texts.collect(), is_closed });
        next = tick + 1;
        ControlFlow::Continue(())
    });
    if read.is_err() {
        (next..=*ticks.end()).for_each(|tick| f(ReadTick { tick, fields: Vec::new(), is_closed: true }));
    }
}

/// A value with the write that it is looked for.
pub(super) struct Asked {
    pub(super) wanted: Wanted,
    /// Whether a confidence does not count: it did not come in as a value.
    pub(super) is_datum: bool,
    /// The tick of the write: the last that is looked at.
    pub(super) upto: u64,
}

/// The first transition that has a value, and what else was met on the way.
#[derive(Default)]
pub(super) struct FoundAt {
    pub(super) at: Option<SeenAt>,
    /// The value that was found.
    pub(super) value: Option<Value>,
    /// How many transitions before it, or before the write, could not be read whole.
    pub(super) unread: u64,
}

/// Looks for values from a tick on; tick 0 is the state with which the run begins.
pub(super) fn search(trace: &Trace, asked: &[Asked], from: u64) -> Vec<FoundAt> {
    let mut found: Vec<FoundAt> = asked.iter().map(|_| FoundAt::default()).collect();
    let last = asked.iter().map(|one| one.upto).max().unwrap_or(0);
    if from == 0 {
        let begin = trace.genesis().ok().map(|begin| begin.state);
        for (one, found) in asked.iter().zip(&mut found) {
            found.unread += u64::from(begin.is_none());
            let hit = begin.as_ref().and_then(|begin| one.wanted.find(begin));
            found.take(hit.map(|hit| seen(0, below(&Pointer::of(["state"]), &hit.path), hit)));
        }
    }
    let is_thread = is_of_thread(trace);
    let wanted = |field: &str| is_noted(field) || is_place(field, is_thread);
    each_tick(trace, from.max(1)..=last, &wanted, &mut |read| {
        let is_unread = read.is_closed || read.fields.iter().any(|(field, text)| is_partial(field, text));
        let mut hits = hits_in(&read, asked).into_iter();
        for (one, found) in asked.iter().zip(&mut found) {
            let hit = hits.next().flatten().map(|(place, hit)| seen(read.tick, place, hit));
            let is_open = found.at.is_none() && hit.is_none() && read.tick <= one.upto;
            found.take(hit);
            found.unread += u64::from(is_unread && is_open);
        }
    });
    for found in &mut found {
        let Some(at) = found.at.as_mut().filter(|at| at.tick > 0) else { continue };
        match trace.record(at.tick) {
            Ok(record) => at.describe(record),
            // What was read is not what was committed.
            Err(_) => *found = FoundAt { at: None, value: None, unread: found.unread + 1 },
        }
    }
    found
}

/// Finds each value in a transition; a field is parsed at most once.
fn hits_in(read: &ReadTick<'_>, asked: &[Asked]) -> Vec<Option<(Pointer, Hit)>> {
    let mut hits: Vec<Option<(Pointer, Hit)>> = asked.iter().map(|_| None).collect();
    for (field, text) in read.fields.iter().filter(|(field, _)| !is_noted(field)) {
        let may_be = |(at, one): &(usize, &Asked)| {
            // What the write itself left is no earlier trace of it.
            let is_own = *field == DELTA && read.tick == one.upto;
            read.tick <= one.upto && !is_own && hits[*at].is_none() && one.wanted.may_be_in(text)
        };
        let open: Vec<(usize, &Asked)> = asked.iter().enumerate().filter(may_be).collect();
        let value = if open.is_empty() { None } else { json::parse_canonical(text).ok() };
        let Some(value) = value else { continue };
        for (at, one) in open {
            let hit = hit_in(field, &value, &one.wanted);
            hits[at] = hit.filter(|(place, _)| !(one.is_datum && place.as_str() == CONFIDENCE));
        }
    }
    hits
}

impl FoundAt {
    /// Takes in a transition: the first that has the value, or one more.
    fn take(&mut self, found: Option<(SeenAt, Value)>) {
        match (&mut self.at, found) {
            (Some(at), Some(_)) => at.others += 1,
            (at @ None, Some((seen, value))) => {
                *at = Some(seen);
                self.value = Some(value);
            }
            (_, None) => {}
        }
    }
}

fn seen(tick: u64, path: Pointer, hit: Hit) -> (SeenAt, Value) {
    let at = SeenAt { tick, path, within: hit.within, others: 0, record: None, tool: None };
    (at, hit.value)
}

impl SeenAt {
    /// Names the tool of the call that the place is part of.
    fn describe(&mut self, record: Record) {
        let tokens: Vec<_> = self.path.tokens().collect();
        let tokens: Vec<&str> = tokens.iter().map(|token| &**token).collect();
        let body = record.body();
        let named = match tokens[..] {
            ["action", "calls", at, ..] => Some(Pointer::of(["action", "calls", at, "tool"])),
            ["messages", at, "calls", call, ..] => Some(Pointer::of(["messages", at, "calls", call, "tool"])),
            ["messages", at, ..] => Some(Pointer::of(["messages", at, "result", "tool"])),
            ["action" | "result", ..] => Some(Pointer::of(["action", "tool"])),
            _ => None,
        };
        let content = named.as_ref().map(|_| record.content());
        let tool = named.zip(content).and_then(|(place, content)| place.get(&content).cloned());
        let of_result = || body.value("/result/tool").filter(|_| tokens.first() == Some(&"result"));
        let tool = tool.or_else(of_result).and_then(|tool| tool.as_str().map(str::to_owned));
        self.tool = tool;
        self.record = Some(record);
    }
}

const DELTA: &str = "/delta";

/// The confidence of an intent.
const CONFIDENCE: &str = "/intent/confidence";

/// The member with what redaction took out of a record.
const REDACTION: &str = "/redaction";

fn is_noted(field: &str) -> bool {
    field == REDACTION
}

/// Whether a field has values that are looked at. In a thread, what a checkpoint wrote came in with it; its own names, versions
/// and sizes are no values.
fn is_place(field: &str, is_thread: bool) -> bool {
    let own = ["/intent/checkpoint", "/intent/writes", "/intent/metadata"];
    match field {
        "/intent" | "/action" | "/action/params" | "/action/calls" | "/result" | "/result/output" => true,
        "/messages" => true,
        DELTA => is_thread,
        _ => field.starts_with("/intent/") && !(is_thread && own.contains(&field)),
    }
}

/// Whether a field lacks a value: redaction took something out of its record, or the recorder kept none.
fn is_partial(field: &str, text: &[u8]) -> bool {
    let has = |part: &[u8]| memchr::memmem::find(text, part).is_some();
    match field {
        REDACTION => has(br#""taken":{""#),
        _ if !has(br#"{"$"#) => false,
        _ => has(br#"{"$redacted":"#) || has(br#"{"$vault":"#) || has(br#"{"$gap":"#),
    }
}

/// Finds a value in a field, with its place in the content of the record; in a delta, its place in the state.
fn hit_in(field: &str, value: &Value, wanted: &Wanted) -> Option<(Pointer, Hit)> {
    let place: Pointer = field.parse().ok()?;
    let at = |below_it: &[&str], value: Option<&Value>| {
        let hit = wanted.find(value?)?;
        let names: Vec<String> = below_it.iter().map(|name| (*name).to_owned()).collect();
        Some((below(&below(&place, &names), &hit.path), hit))
    };
    let items = |value: Option<&Value>| -> Vec<Value> {
        value.and_then(Value::as_array).map_or_else(Vec::new, |list| list.iter().cloned().collect())
    };
    let in_calls = |names: &[&str], calls: Option<&Value>| {
        items(calls).iter().enumerate().find_map(|(index, call)| {
            let index = index.to_string();
            at(&[names, &[&index, "params"]].concat(), call.get("params"))
        })
    };
    match field {
        "/action" => {
            at(&["params"], value.get("params")).or_else(|| in_calls(&["calls"], value.get("calls")))
        }
        "/action/calls" => in_calls(&[], Some(value)),
        "/result" => at(&["output"], value.get("output")),
        "/messages" => items(Some(value)).iter().enumerate().find_map(|(index, message)| {
            let index = index.to_string();
            at(&[&index, "content"], message.get("content"))
                .or_else(|| in_calls(&[&index, "calls"], message.get("calls")))
        }),
        DELTA => items(Some(value)).iter().find_map(|op| {
            let place: Pointer = op.get("set").or_else(|| op.get("append"))?.as_str()?.parse().ok()?;
            let hit = wanted.find(op.get("value")?)?;
            let state = Pointer::of(["state"]);
            let names: Vec<String> = place.tokens().map(Cow::into_owned).collect();
            Some((below(&below(&state, &names), &hit.path), hit))
        }),
        _ => at(&[], Some(value)),
    }
}

/// Whether a run is a thread of checkpoints.
fn is_of_thread(trace: &Trace) -> bool {
    let meta = |begin: &Record| begin.body().value("/meta").is_some_and(|meta| meta.get(THREAD).is_some());
    trace.begins().iter().any(meta)
}
