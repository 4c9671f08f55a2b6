//! Messages of a conversation as they come: each becomes what an import of the whole conversation would record.
//!
//! A [`LiveReader`] is one conversation. It holds the calls that are open, and no message.

use std::sync::LazyLock;

use dendrer_object::value::Object;
use dendrer_object::{Digest, Intent, Value};

use crate::foreign::Steps as _;
use crate::format::{Messages, items_of_response, one_item};
use crate::import::calls::Calls;
use crate::import::chat::{self, ChatReader, Turn};
use crate::import::error::ImportError;
use crate::import::found::Found;
use crate::import::items::Item;
use crate::import::note::At;
use crate::import::once::Again;
use crate::import::{repeated, whole_intent};

/// Nothing is known of items that have not come.
static NOTHING: LazyLock<Found> = LazyLock::new(Found::default);

/// One thing that came in a conversation.
#[derive(Debug, Clone, Copy)]
pub enum LiveItem<'m> {
    /// A message with a role, and the usage that is stated with it.
    Message(&'m Value, Option<&'m Value>),
    /// An item of the Responses API.
    Item(&'m Object),
    /// A response of the Responses API, with its items.
    Response(&'m Object),
}

/// Takes an intent, and returns the record that it became.
pub type RecordIntent<'r> = &'r mut dyn FnMut(Intent) -> Result<Digest, dendrer::Error>;

/// Reads the messages of one conversation.
pub struct LiveReader {
    chat: ChatReader<'static>,
    steps: Messages,
    calls: Calls,
    number: u64,
    tick: u64,
}

impl std::fmt::Debug for LiveReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveReader").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Default for LiveReader {
    fn default() -> LiveReader {
        LiveReader {
            chat: ChatReader::new(chat::MESSAGE, &NOTHING),
            steps: Messages::default(),
            calls: Calls::default(),
            number: 0,
            tick: 0,
        }
    }
}

impl LiveReader {
    /// Reads what came, and hands over the intents that it becomes. Leading messages of the system become none.
    ///
    /// # Errors
    ///
    /// An item of another kind than it was said to be, and the errors of `record`.
    pub fn take(&mut self, came: LiveItem<'_>, record: RecordIntent<'_>) -> Result<(), ImportError> {
        let number = self.number;
        self.number += 1;
        let LiveReader { chat, steps, calls, tick, .. } = self;
        let visit = &mut |item: Item<'_>| take_one(steps, calls, tick, item, record);
        match came {
            LiveItem::Message(message, usage) => {
                let item = Item::new(message.clone(), At::item("/messages", number), message.size() as usize);
                chat.take(Item { usage: usage.cloned(), ..item }, visit)
            }
            LiveItem::Item(item) => {
                let at = At::item("/input", number);
                let turns = one_item(item, at, &mut chat.account);
                turns.into_iter().try_for_each(|turn| hand_over(chat, turn, at, visit))
            }
            LiveItem::Response(response) => {
                let at = At::item("/responses", number);
                let turns = items_of_response(response, at, &mut chat.account);
                turns.into_iter().try_for_each(|turn| hand_over(chat, turn, at, visit))
            }
        }
    }
}

fn hand_over(
    chat: &mut ChatReader<'static>,
    turn: Turn,
    at: At<'_>,
    visit: &mut dyn FnMut(Item<'_>) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let size = Value::Object(turn.message.clone()).size() as usize;
    chat.turn(turn, at, size, visit)
}

fn take_one(
    steps: &mut Messages,
    calls: &mut Calls,
    tick: &mut u64,
    mut item: Item<'_>,
    record: RecordIntent<'_>,
) -> Result<(), ImportError> {
    if *tick == 0 && item.notes.is_empty() && steps.is_preamble(&item.value) {
        return Ok(());
    }
    let (at, mut notes) = (item.at, std::mem::take(&mut item.notes));
    let mut step = match item.again {
        Again::Repeated(_) => repeated(&item),
        _ => steps.step(&item, calls)?,
    };
    notes.append(&mut step.notes);
    let asked = std::mem::take(&mut step.calls);
    let id = record(whole_intent(step, &notes, item.source.as_ref()))?;
    *tick += 1;
    calls.ask(*tick, id, at, asked);
    steps.recorded(id);
    Ok(())
}
