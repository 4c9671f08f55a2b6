//! Formats whose items are no messages of a chat: each item becomes messages, by one function of its format.
//!
//! Rule: memory holds the messages that a later item may still add to, and the lines that the next message keeps; both are bounded.

use std::collections::VecDeque;
use std::io::Read;

use dendrer_object::value::Object;
use dendrer_object::{Value, tag};

use super::account::Account;
use super::chat::{ChatReader, Turn};
use super::error::ImportError;
use super::items::{self, Around, Item};
use super::layout::{self, Layout};
use super::note::{At, ImportNote, NoteKind};
use super::scan::Sizes;
use crate::foreign::Visit;

/// How many bytes of lines the next message keeps; the lines after them are left out and noted.
const LINES_SIZE_MAX: usize = 16 << 20;

/// How many messages may wait for a later item, and how many bytes of source they were made of.
const WAITING: (usize, usize) = (1_000, 16 << 20);

/// Makes messages of the items of one source.
pub(crate) trait Native {
    /// Returns the messages of an item in their order; none if it is to be kept with the next one.
    fn item(&mut self, item: &Object, at: At<'_>, account: &mut Account) -> Result<Vec<Turn>, ImportError>;

    /// Adds what the newest item states to messages that wait, and returns how many of them are complete, oldest first.
    fn complete(&mut self, made: &mut VecDeque<Made>) -> usize {
        made.len()
    }

    /// Ends the reading: returns a last message for what no message states.
    fn end(&mut self, _: &mut VecDeque<Made>) -> Option<Turn> {
        None
    }
}

/// A message that is not handed over yet.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) turn: Turn,
    /// The item that it was made of.
    pub(crate) number: u64,
    size: usize,
}

/// Reads the items of a source and hands over their messages. An item without one is kept in `lines` of the next message, or in
/// `meta` of the run after the last one.
pub(crate) fn read(
    source: &mut dyn Read,
    layout: &Layout,
    hints: Sizes,
    native: &mut dyn Native,
    visit: Visit<'_>,
) -> Result<Around, ImportError> {
    let list = layout::pointer(&layout.path);
    let mut reader = ChatReader::new(&[], &layout.found);
    let mut lines = Lines::default();
    let mut made: VecDeque<Made> = VecDeque::new();
    let mut last = 0;
    let mut around = items::read(source, layout, hints, &mut |item| {
        let number = item.at.number.unwrap_or(last);
        last = number;
        let Some(object) = item.value.as_object().filter(|_| !item.is_lost) else {
            hand_over(&mut reader, &list, made.drain(..), visit)?;
            return reader.take(item, visit);
        };
        let mut turns = native.item(object, item.at, &mut reader.account)?;
        match turns.first_mut() {
            None => lines.keep(&item),
            Some(first) => lines.give(&mut first.message, &mut first.notes),
        }
        let size = item.size / turns.len().max(1);
        let mut notes = Some(item.notes);
        for mut turn in turns {
            turn.notes.extend(notes.take().into_iter().flatten());
            made.push_back(Made { turn, number, size });
        }
        let complete = native.complete(&mut made).min(made.len());
        hand_over(&mut reader, &list, made.drain(..complete), visit)?;
        if made.len() > WAITING.0 || made.iter().map(|made| made.size).sum::<usize>() > WAITING.1 {
            hand_over(&mut reader, &list, made.drain(..), visit)?;
        }
        Ok(())
    })?;
    let rest = native.end(&mut made).map(|turn| Made { turn, number: last, size: 0 });
    made.extend(rest);
    hand_over(&mut reader, &list, made.drain(..), visit)?;
    let mut meta = around.meta.take().unwrap_or_else(Value::object);
    if let Value::Object(members) = &mut meta {
        lines.give(members, &mut around.notes);
    }
    around.meta = Some(meta);
    around.gathered = reader.end(around.meta.as_ref());
    Ok(around)
}

fn hand_over(
    reader: &mut ChatReader<'_>,
    list: &str,
    made: impl Iterator<Item = Made>,
    visit: Visit<'_>,
) -> Result<(), ImportError> {
    for Made { turn, number, size } in made {
        reader.turn(turn, At::item(list, number), size, visit)?;
    }
    Ok(())
}

/// Lines that the next message keeps.
#[derive(Debug, Default)]
struct Lines {
    kept: Vec<Value>,
    size: usize,
    note: Option<ImportNote>,
}

impl Lines {
    fn keep(&mut self, item: &Item<'_>) {
        self.size += item.size;
        if self.size <= LINES_SIZE_MAX {
            self.kept.push(item.value.clone());
        } else if self.note.is_none() {
            let kind = NoteKind::ValueTooLarge;
            self.kept.push(tag::gap(kind.as_str(), &item.at.to_string()));
            let text =
                format!("the lines from here to the next message are more than {LINES_SIZE_MAX} bytes");
            self.note = Some(ImportNote::new(kind, item.at, text));
        }
    }

    /// Moves the lines to the member `lines` of a message or of the run.
    fn give(&mut self, to: &mut Object, notes: &mut Vec<ImportNote>) {
        let Lines { kept, note, .. } = std::mem::take(self);
        if !kept.is_empty() {
            to.set(&super::transition::free_name(to, "lines"), Value::array(kept));
        }
        notes.extend(note);
    }
}
