//! Formats whose items are no messages of a chat: each item becomes messages, by one function of its format.

use std::io::Read;

use dendrer_object::Value;
use dendrer_object::value::Object;

use super::account::Account;
use super::chat::{ChatReader, Turn};
use super::error::ImportError;
use super::items::{self, Around, Item};
use super::layout::Layout;
use super::note::At;
use super::scan::Sizes;
use crate::foreign::Visit;

/// Makes messages of the items of one source.
pub(crate) trait Native {
    /// Returns the messages of an item in their order; none if it is to be kept with the next one.
    fn item(&mut self, item: &Object, at: At<'_>, account: &mut Account) -> Result<Vec<Turn>, ImportError>;
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
    let mut reader = ChatReader::new(&[], &layout.found);
    let mut kept: Vec<Value> = Vec::new();
    let mut around = items::read(source, layout, hints, &mut |item| {
        let Some(object) = item.value.as_object().filter(|_| !item.is_lost) else {
            return reader.take(item, visit);
        };
        let mut turns = native.item(object, item.at, &mut reader.account)?;
        match turns.first_mut() {
            None => {
                kept.push(item.value.clone());
                return Ok(());
            }
            Some(first) if !kept.is_empty() => first.message.set("lines", Value::array(kept.drain(..))),
            Some(_) => {}
        }
        let size = item.size / turns.len().max(1);
        let Item { at, notes, .. } = item;
        let mut notes = Some(notes);
        for mut turn in turns {
            turn.notes.extend(notes.take().into_iter().flatten());
            reader.turn(turn, at, size, visit)?;
        }
        Ok(())
    })?;
    if !kept.is_empty() {
        let meta = around.meta.get_or_insert_with(Value::object);
        if let Value::Object(members) = meta {
            let name = super::transition::free_name(members, "lines");
            members.set(&name, Value::array(kept));
        }
    }
    around.gathered = reader.end(around.meta.as_ref());
    Ok(around)
}
