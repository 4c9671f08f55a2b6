//! Reads the items of a run out of a source whose layout is known, one at a time, and the metadata around them.
//!
//! Memory holds one item and the metadata. What is too large or too deep for a record is left out here, marked in
//! its place; everything else is for the door to judge.

use std::io::{self, Read};

use dendrer_chain::ChainRow;
use dendrer_object::json::{DEPTH_MAX, JsonError, JsonErrorKind, VALUE_SIZE_MAX, parse_door};
use dendrer_object::{Delta, Digest, Value, tag};

use super::beside::Beside;
use super::error::ImportError;
use super::found::Gathered;
use super::layout::{Layout, Top, decode, pointer};
use super::note::{At, ImportNote, NoteKind};
use super::once::{Again, Short};
use super::outcome::Outcome;
use super::scan::{Capture, Fingerprint, LeftOut, Scanner, Sizes, Stop};

/// How many members of one object are left out one by one; with more, the whole is left out.
const LEFT_OUT_MAX: usize = 64;

/// One item of a run.
#[derive(Debug)]
pub(crate) struct Item<'a> {
    /// The value of the item; null if nothing could be read.
    pub(crate) value: Value,
    /// Its place, from the top of the run.
    pub(crate) at: At<'a>,
    /// How many bytes of text it was read from.
    pub(crate) size: usize,
    /// The parts that were left out.
    pub(crate) notes: Vec<ImportNote>,
    /// Whether the whole item was.
    pub(crate) is_lost: bool,
    /// The row of a chain.
    pub(crate) row: Option<Box<ChainRow>>,
    /// A usage that is stated around it.
    pub(crate) usage: Option<Value>,
    /// Its id, and whether it was there before.
    pub(crate) id: Option<Short>,
    pub(crate) again: Again,
    /// Its place in the source, for the record of its transition.
    pub(crate) source: Option<Value>,
    /// Which of several mappings makes its transition.
    pub(crate) each: usize,
    /// Whether a program wrote it under the role of a user.
    pub(crate) is_of_program: bool,
    /// A decision on a call that it states, in place of a message.
    pub(crate) decision: Option<Value>,
    /// The ids of its calls that may begin an agent.
    pub(crate) begins: Vec<String>,
    /// The id of the call that began the agent whose first item it is.
    pub(crate) begun_by: Option<String>,
    /// Whether the call that it answers failed, as far as its format states it elsewhere.
    pub(crate) outcome: Option<Outcome>,
    /// Whether the usage of its request is stated on another item.
    pub(crate) is_counted_elsewhere: bool,
    /// The change of state that it states.
    pub(crate) delta: Option<Delta>,
}

impl<'a> Item<'a> {
    /// An item that was read from this many bytes as a whole.
    pub(crate) fn new(value: Value, at: At<'a>, size: usize) -> Item<'a> {
        Item {
            value,
            at,
            size,
            notes: Vec::new(),
            is_lost: false,
            row: None,
            usage: None,
            id: None,
            again: Again::New,
            source: None,
            each: 0,
            is_of_program: false,
            decision: None,
            begins: Vec::new(),
            begun_by: None,
            outcome: None,
            is_counted_elsewhere: false,
            delta: None,
        }
    }

    fn lost(at: At<'a>, note: ImportNote) -> Item<'a> {
        Item { notes: vec![note], is_lost: true, ..Item::new(Value::Null, at, 0) }
    }
}

/// The members around the items.
#[derive(Debug)]
pub(crate) struct Around {
    /// The run's object without the list; `None` where the list is all there is.
    pub(crate) meta: Option<Value>,
    pub(crate) notes: Vec<ImportNote>,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) sha256: Digest,
    /// The places of messages that are left out.
    pub(crate) left_out: Vec<String>,
    /// Facts of the items as messages.
    pub(crate) gathered: Gathered,
}

/// Hashes what is read through it.
struct Hashed<R> {
    input: R,
    hash: Beside,
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.hash.update(&buffer[..count]);
        Ok(count)
    }
}

/// Hands over the items in order. `hints` are sizes that a survey found.
pub(crate) fn read<R: Read>(
    input: R,
    layout: &Layout,
    hints: Sizes,
    visit: &mut dyn FnMut(Item<'_>) -> Result<(), ImportError>,
) -> Result<Around, ImportError> {
    let input = Hashed { input, hash: Beside::new() };
    let mut scanner = Scanner::new(input).map_err(ImportError::stopped)?;
    scanner.hints = hints;
    let mut reader = Reader {
        layout,
        visit,
        list: pointer(&layout.path),
        count: 0,
        is_found: false,
        text: Capture::new(),
        frame: Capture::new(),
        safe: (0, 0),
        left_out: Vec::new(),
    };
    match reader.all(&mut scanner) {
        Ok(()) => {}
        Err(Stop::Cut) if layout.is_cut => reader.close_frame(),
        Err(Stop::Cut) => return Err(ImportError::Changed),
        Err(stop) => return Err(ImportError::stopped(stop)),
    }
    let (meta, notes) = reader.meta()?;
    let (fingerprint, input) = scanner.finish().map_err(ImportError::stopped)?;
    Ok(Around {
        meta,
        notes,
        fingerprint,
        sha256: input.hash.finish(),
        left_out: Vec::new(),
        gathered: Gathered::default(),
    })
}

struct Reader<'a> {
    layout: &'a Layout,
    visit: &'a mut dyn FnMut(Item<'_>) -> Result<(), ImportError>,
    list: String,
    count: u64,
    is_found: bool,
    /// The text of the current item.
    text: Capture,
    /// The text of the run without its list.
    frame: Capture,
    /// Up to where the frame is whole, and how many objects are open there.
    safe: (usize, usize),
    left_out: Vec<(Vec<String>, LeftOut)>,
}

impl Reader<'_> {
    fn all<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<(), Stop> {
        match (self.layout.top, self.layout.index) {
            (Top::Value, _) => match scanner.next()? {
                Some(_) => self.run(scanner, &mut Vec::new()),
                None => Ok(()),
            },
            (Top::Array, index) => {
                let mut number = 0;
                scanner.array(&mut |scanner| self.at_top(scanner, index, &mut number))
            }
            (Top::Lines, index) => {
                let mut number = 0;
                while scanner.next()?.is_some() {
                    self.at_top(scanner, index, &mut number)?;
                }
                Ok(())
            }
        }
    }

    /// An item at the top, or one of several runs.
    fn at_top<R: Read>(
        &mut self,
        scanner: &mut Scanner<R>,
        index: Option<u64>,
        number: &mut u64,
    ) -> Result<(), Stop> {
        let is_chosen = index == Some(*number);
        *number += 1;
        match index {
            None => self.item(scanner),
            Some(_) if is_chosen => self.run(scanner, &mut Vec::new()),
            Some(_) => scanner.value(&mut Capture::nothing(), 0).map(|_| ()),
        }
    }

    /// Follows the path to the list, and keeps the members beside it.
    fn run<R: Read>(&mut self, scanner: &mut Scanner<R>, path: &mut Vec<String>) -> Result<(), Stop> {
        let depth = path.len();
        let Some(wanted) = self.layout.path.get(depth).cloned() else {
            self.is_found = true;
            self.frame.push(b"null");
            self.safe = (self.frame.text.len(), depth);
            return scanner.array(&mut |scanner| self.item(scanner));
        };
        // The frame is lent to the scanner while it walks this object, and taken back for each member.
        let mut frame = std::mem::replace(&mut self.frame, Capture::nothing());
        let result = scanner.object(&mut frame, &mut |scanner, frame, name| {
            let name = decode(name);
            let opens = if depth + 1 == self.layout.path.len() { b'[' } else { b'{' };
            path.push(name);
            let result = if path[depth] == wanted && !self.is_found && scanner.next()? == Some(opens) {
                std::mem::swap(&mut self.frame, frame);
                let result = self.run(scanner, path);
                std::mem::swap(&mut self.frame, frame);
                result
            } else {
                scanner.value(frame, depth + 1).map(|left_out| {
                    self.left_out.extend(left_out.map(|why| (path.clone(), why)));
                })
            };
            path.pop();
            if result.is_ok() {
                self.safe = (frame.text.len(), depth + 1);
            }
            result
        });
        self.frame = frame;
        result
    }

    /// Ends the frame where it was whole for the last time.
    fn close_frame(&mut self) {
        self.frame.text.truncate(self.safe.0);
        let closing = "}".repeat(self.safe.1);
        self.frame.push(closing.as_bytes());
    }

    fn meta(&mut self) -> Result<(Option<Value>, Vec<ImportNote>), ImportError> {
        if self.layout.path.is_empty() {
            return Ok((None, Vec::new()));
        }
        let fail = |error| ImportError::Json { error, at: Some(String::new()), offset: None };
        if self.frame.is_over || self.left_out.len() > LEFT_OUT_MAX {
            return Err(fail(too_large(self.frame.text.len())));
        }
        let mut meta = parse_door(&self.frame.text).map_err(fail)?;
        remove(&mut meta, &self.layout.path);
        let mut notes = Vec::new();
        for (path, why) in self.left_out.drain(..) {
            let note = note_of(why, pointer(&path));
            set(&mut meta, &path, tag::gap(note.kind.as_str(), &note.path));
            notes.push(note);
        }
        Ok((Some(meta), notes))
    }

    /// Reads one item and hands it over.
    fn item<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<(), Stop> {
        let number = self.count;
        self.count += 1;
        self.text.clear();
        let first = scanner.next()?;
        if let Some(note) = self.layout.damage.note(number, At::item(&self.list, number)) {
            scanner.value(&mut Capture::nothing(), 0)?;
            return Ok((self.visit)(Item::lost(At::item(&self.list, number), note))?);
        }
        // Most items are read where they lie. An item that the door refuses is looked at member by member.
        if let Some(text) = scanner.whole()
            && let Ok(value) = parse_door(text)
        {
            let size = text.len();
            scanner.skip(size);
            let at = At::item(&self.list, number);
            return Ok((self.visit)(Item::new(value, at, size))?);
        }
        self.item_in_parts(scanner, first, number)
    }

    /// Reads an item that is not in the buffer as a whole, or that is not accepted as written.
    fn item_in_parts<R: Read>(
        &mut self,
        scanner: &mut Scanner<R>,
        first: Option<u8>,
        number: u64,
    ) -> Result<(), Stop> {
        let at = At::item(&self.list, number);
        let offset = scanner.offset();
        let mut left_out: Vec<(String, LeftOut)> = Vec::new();
        let mut whole = None;
        let result = match first {
            Some(b'{') => scanner.object(&mut self.text, &mut |scanner, text, name| {
                let why = scanner.value(text, 1)?;
                left_out.extend(why.map(|why| (decode(name), why)));
                // One more than is named is enough to know that the whole goes.
                left_out.truncate(LEFT_OUT_MAX + 1);
                Ok(())
            }),
            _ => scanner.value(&mut self.text, 0).map(|why| whole = why),
        };
        match result {
            Ok(()) => {}
            Err(Stop::Cut) if self.layout.is_cut => {
                let note = ImportNote::new(NoteKind::SourceCut, at, "the source ends inside this item");
                (self.visit)(Item::lost(at, note))?;
                return Err(Stop::Cut);
            }
            Err(stop) => return Err(stop),
        }
        if self.text.is_over || left_out.len() > LEFT_OUT_MAX {
            whole = Some(LeftOut::TooLarge(scanner.offset() - offset));
        }
        if let Some(why) = whole {
            return Ok((self.visit)(Item::lost(at, note_of(why, at.to_string())))?);
        }
        let mut value = match parse_door(&self.text.text) {
            Ok(value) => value,
            Err(error) => {
                let offset = left_out.is_empty().then_some(offset);
                return Err(ImportError::Json { error, at: Some(at.to_string()), offset }.into());
            }
        };
        let mut notes = Vec::new();
        for (name, why) in left_out {
            let note = note_of(why, format!("{at}{}", pointer(std::slice::from_ref(&name))));
            set(&mut value, &[name], tag::gap(note.kind.as_str(), &note.path));
            notes.push(note);
        }
        let size = self.text.text.len();
        Ok((self.visit)(Item { notes, ..Item::new(value, at, size) })?)
    }
}

pub(crate) fn too_large(size: usize) -> JsonError {
    let kind = JsonErrorKind::TooLarge { size, max: VALUE_SIZE_MAX };
    JsonError { kind, offset: 0, path: String::new() }
}

fn note_of(why: LeftOut, at: String) -> ImportNote {
    match why {
        LeftOut::TooLarge(size) => ImportNote::new(
            NoteKind::ValueTooLarge,
            at,
            format!("{size} bytes are more than the {VALUE_SIZE_MAX} that are accepted (E0205)"),
        ),
        LeftOut::TooDeep => ImportNote::new(
            NoteKind::ValueTooDeep,
            at,
            format!("nested deeper than {DEPTH_MAX} levels (E0204)"),
        ),
    }
}

/// Sets the value at a path of object members, where the way there exists.
fn set(value: &mut Value, path: &[String], new: Value) {
    let (Value::Object(object), Some((name, rest))) = (value, path.split_first()) else { return };
    let name = tag::stored_name(name);
    match (rest.is_empty(), object.get(&name).cloned()) {
        (true, Some(_)) => object.set(&name, new),
        (false, Some(mut inner)) => {
            set(&mut inner, rest, new);
            object.set(&name, inner);
        }
        (_, None) => {}
    }
}

/// Removes the value at a path of object members.
fn remove(value: &mut Value, path: &[String]) {
    let (Value::Object(object), Some((name, rest))) = (value, path.split_first()) else { return };
    let name = tag::stored_name(name);
    if rest.is_empty() {
        object.remove(&name);
    } else if let Some(mut inner) = object.get(&name).cloned() {
        remove(&mut inner, rest);
        object.set(&name, inner);
    }
}
