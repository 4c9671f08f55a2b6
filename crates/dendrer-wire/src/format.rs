//! Foreign formats, one file each, and the table of them.
//!
//! A file of a format has all that the rest of the crate knows of it: see [`Format`]. Rule: a new format is a file here and
//! a row of [`FORMATS`]; flags, detection, messages and lists of names follow from the table.

mod carl;
mod cfd;
mod claude_code;
mod codex;
mod inspect;
pub(crate) mod jsonl;
mod langfuse;
mod langgraph;
mod langsmith;
mod openai_chat;
mod openai_responses;
mod otlp;
mod paper;
#[cfg(test)]
mod tests;

use std::io::{self, Read, Seek, SeekFrom};

use crate::foreign::{Format, Head};

/// All foreign formats, in the order in which they are listed and looked for.
pub static FORMATS: [&Format; 15] = [
    &claude_code::CLAUDE_CODE,
    &codex::CODEX,
    &openai_chat::OPENAI_CHAT,
    &openai_chat::ANTHROPIC,
    &openai_chat::AI_SDK,
    &openai_responses::OPENAI_RESPONSES,
    &jsonl::JSONL,
    &paper::PAPER,
    &cfd::CFD,
    &carl::CARL,
    &otlp::OTLP,
    &langsmith::LANGSMITH,
    &langfuse::LANGFUSE,
    &inspect::INSPECT,
    &langgraph::LANGGRAPH,
];

/// Returns the format with a name.
pub fn named(name: &str) -> Option<&'static Format> {
    FORMATS.into_iter().find(|format| format.name == name)
}

/// Returns the format that a source of unknown format is looked through for, given whether a mapping is given.
pub fn detected(has_map: bool) -> &'static Format {
    FORMATS.into_iter().find(|format| (format.detect)(has_map)).expect("a chat, or lines by a mapping")
}

/// How many bytes of a source are looked at.
const HEAD_SIZE: u64 = 64 << 10;

/// Returns the format that a source has by its beginning, given whether a mapping is given, and rewinds it.
///
/// # Errors
///
/// The source cannot be read.
pub fn of_source<R: Read + Seek>(source: &mut R, has_map: bool) -> io::Result<&'static Format> {
    if has_map {
        return Ok(detected(true));
    }
    let mut bytes = Vec::new();
    source.seek(SeekFrom::Start(0))?;
    source.by_ref().take(HEAD_SIZE).read_to_end(&mut bytes)?;
    source.seek(SeekFrom::Start(0))?;
    let head = Head::of(&bytes);
    Ok(FORMATS.into_iter().find(|format| (format.sniff)(&head)).unwrap_or_else(|| detected(false)))
}
