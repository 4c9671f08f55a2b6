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
use crate::import::account::{ANY, CALL_TAGS, RESULT_TAGS, Use};

pub(crate) use self::openai_chat::Messages;
pub(crate) use self::openai_responses::{one_item, response as items_of_response};

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

/// The tables of all formats as a page: `docs/import-tables.md`.
pub fn tables_page() -> String {
    let mut page = String::from(TABLES_HEAD);
    for format in FORMATS {
        for (of, rows) in (format.tables)() {
            page.push_str(&format!(
                "\n## `{}`: {of}\n\n| member | in | use |\n| --- | --- | --- |\n",
                format.name
            ));
            for row in rows {
                let places: Vec<&str> = row.of.iter().map(|of| of.words()).collect();
                let places =
                    if row.of.len() == ANY.len() { "any item".to_owned() } else { places.join(", ") };
                let what = match row.what {
                    Use::Read(what) => format!("read: {what}"),
                    Use::Kept(why) => format!("kept: {why}"),
                };
                page.push_str(&format!("| `{}` | {places} | {what} |\n", row.name));
            }
        }
    }
    let tags = |tags: &mut dyn Iterator<Item = &str>| {
        tags.map(|tag| format!("`{tag}`")).collect::<Vec<_>>().join(" ")
    };
    let (calls, results) =
        (tags(&mut CALL_TAGS.iter().map(|(tag, _)| *tag)), tags(&mut RESULT_TAGS.iter().copied()));
    page.push_str(&format!(
        "\n## Tags in texts\n\nThat open a call: {calls}\n\nThat bring a result: {results}\n"
    ));
    page
}

/// The beginning of the page with the tables.
const TABLES_HEAD: &str = "# What is read of each format\n\n\
    Members that are in a table are read, or kept because they state nothing that is counted. Any other member is kept; \
    if its name or its value may state calls, usage, failures or who speaks, a note `not_read` names it \
    ([import.md](import.md#the-account-of-a-source)). This page is made from the tables of the readers.\n";
