//! A text that comes in parts: what is handed on is what the whole text would become, wherever it was cut.

use std::sync::Arc;

use super::part::VALUE_MAX;
use super::rules::Rules;
use super::scan;
use super::scan::PRIVATE_KEY_MAX;
use super::taken::TakenSecrets;

/// How much is held back at most. If a line is longer, the bytes before that many are handed on, and a secret that reaches over
/// that place is found only as far as its second part shows it.
const HELD_MAX: usize = 1 << 20;

/// Takes secrets out of a text that comes in parts. Text that a reader may read together with what follows is held back: the last
/// paragraph, JSON that is open, a private key up to its end.
#[derive(Debug)]
pub struct RedactedStream {
    rules: Arc<Rules>,
    held: String,
    /// How much is held before the next look for a place to cut: twice what the last look did not cut.
    next_look: usize,
    taken: TakenSecrets,
}

impl RedactedStream {
    pub(super) fn new(rules: Arc<Rules>) -> RedactedStream {
        RedactedStream { rules, held: String::new(), next_look: 0, taken: TakenSecrets::default() }
    }

    /// Takes the next part, and returns what can be handed on.
    pub fn push(&mut self, part: &str) -> String {
        self.held.push_str(part);
        if self.held.len() < self.next_look {
            return String::new();
        }
        let mut cut = safe_cut(&self.held);
        if cut == 0 && self.held.len() > HELD_MAX {
            cut = self.held.len() - VALUE_MAX;
            while !self.held.is_char_boundary(cut) {
                cut -= 1;
            }
        }
        let rest = self.held.split_off(cut);
        let ready = std::mem::replace(&mut self.held, rest);
        self.next_look = (2 * self.held.len()).min(HELD_MAX + 1);
        self.pass(&ready)
    }

    /// Returns the rest.
    pub fn finish(mut self) -> (String, TakenSecrets) {
        let rest = std::mem::take(&mut self.held);
        let rest = self.pass(&rest);
        (rest, self.taken)
    }

    fn pass(&mut self, text: &str) -> String {
        let (made, taken) = scan::text(&self.rules, text);
        self.taken.add(&taken);
        made
    }
}

/// How many paragraphs are tried as a place to cut, so that the time stays in proportion to the length.
const LOOKS_MAX: usize = 4;

/// The last place at which a text can be cut without cutting what a reader reads as one: before a paragraph that begins at the
/// begin of its line, outside of JSON, of a private key and of a manifest.
fn safe_cut(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut end = bytes.len();
    let mut looks = 0;
    while let Some(blank) = memchr::memmem::rfind(&bytes[..end], b"\n\n") {
        end = blank + 1;
        if let Some(begin) = key_around(bytes, blank) {
            end = begin;
            continue;
        }
        let is_paragraph = bytes.get(blank + 2).is_some_and(|c| !c.is_ascii_whitespace());
        looks += 1;
        if looks > LOOKS_MAX {
            return 0;
        }
        if is_paragraph && !is_within(&text[..blank + 1]) {
            return blank + 2;
        }
    }
    0
}

/// Whether JSON or a manifest may reach over the end of a text.
fn is_within(text: &str) -> bool {
    let opened = text.bytes().filter(|c| matches!(c, b'{' | b'[' | b'(')).count();
    let closed = text.bytes().filter(|c| matches!(c, b'}' | b']' | b')')).count();
    opened > closed || text.contains("kind:")
}

/// The begin of a private key that has not ended at this place.
fn key_around(bytes: &[u8], place: usize) -> Option<usize> {
    let near = place.saturating_sub(PRIVATE_KEY_MAX);
    let begin = near + memchr::memmem::rfind(&bytes[near..place], b"-----BEGIN ")?;
    let end = memchr::memmem::find(&bytes[begin..], b"-----END ").map(|end| begin + end);
    let closed = end.and_then(|end| memchr::memchr(b'\n', &bytes[end..]).map(|newline| end + newline));
    match closed {
        Some(closed) => (place < closed).then_some(begin),
        None => Some(begin),
    }
}
