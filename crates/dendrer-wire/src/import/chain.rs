//! Files of witness chains (`carl-core` 0.2.0): a header, which is the run's, and a row for each transition.
//!
//! Row n is tick n. A line that is cut, an unknown action, a wrong hash and an id that came before are gaps of their tick, and the text
//! of each line is kept.

use std::io::Read;

use dendrer::record::chain::{ROW, intent_of_row};
use dendrer_chain::{ChainReader, ChainRow, RowFault, RowStepError, RowValue};
use dendrer_object::json::VALUE_SIZE_MAX;
use dendrer_object::{Digest, Intent, Value};

use super::error::ImportError;
use super::items::{Around, Item, too_large};
use super::note::{At, ImportNote, NoteKind};
use super::scan::Fingerprint;
use super::transition::{Step, name_of};

/// The member of the run's metadata with the header.
pub(crate) const CHAIN: &str = "chain";

/// The member of the run's metadata with the text of the header.
pub(crate) const CHAIN_ROW: &str = "chain_row";

/// The member of the run's metadata that is false where no newline ends the file.
pub(crate) const CHAIN_NEWLINE: &str = "chain_newline";

/// The member of the run's metadata with the exact bytes of a file out of which secrets were taken; they are in the vault.
pub(crate) const EXACT: &str = "exact";

/// A row beyond this size is left out: its values are recorded beside its text.
const ROW_SIZE_MAX: usize = VALUE_SIZE_MAX / 8;

/// Hands over the rows of a file in their order.
pub(crate) fn items<R: Read>(
    mut source: R,
    visit: &mut dyn FnMut(Item<'_>) -> Result<(), ImportError>,
) -> Result<Around, ImportError> {
    let mut bytes = Vec::new();
    source.read_to_end(&mut bytes).map_err(ImportError::Io)?;
    let reader = ChainReader::new(&bytes)
        .map_err(|error| ImportError::Chain { why: error.to_string(), at: "line 1".to_owned() })?;
    let (text, header) = (reader.header_text().to_owned(), reader.header());
    if text.len() > ROW_SIZE_MAX {
        let error = too_large(text.len());
        return Err(ImportError::Json { error, at: Some("line 1".to_owned()), offset: Some(0) });
    }
    let fail = |error| ImportError::Json { error, at: Some("line 1".to_owned()), offset: Some(0) };
    let header = header.to_value().map_err(fail)?;
    let newline = (!bytes.ends_with(b"\n")).then(|| (CHAIN_NEWLINE, Value::from(false)));
    let meta = [(CHAIN, header), (CHAIN_ROW, Value::from(text))].into_iter().chain(newline);
    let meta = Value::record(meta);
    for (number, row) in reader.enumerate() {
        let at = At { list: "", number: Some(number as u64) };
        let size = row.text.len();
        let mut item =
            Item { value: Value::Null, at, size, notes: Vec::new(), is_lost: false, row: None, usage: None };
        if size > ROW_SIZE_MAX {
            let text = format!("line {}: {size} bytes are more than a row may have (E0205)", row.line);
            item.notes.push(note(NoteKind::ValueTooLarge, at, &row, text));
            item.is_lost = true;
        } else {
            item.row = Some(Box::new(row));
        }
        visit(item)?;
    }
    let (fingerprint, sha256) = (Fingerprint::of(&bytes), Digest::of(&bytes));
    Ok(Around { meta: Some(meta), notes: Vec::new(), fingerprint, sha256, left_out: Vec::new() })
}

/// The transition of a row.
pub(crate) fn step(row: &ChainRow, at: At<'_>) -> Result<Step<'static>, ImportError> {
    let notes = row.faults.iter().map(|fault| {
        let kind = match fault {
            RowFault::Step(RowStepError::Action(_)) => NoteKind::ActionUnknown,
            RowFault::Json(_) | RowFault::Step(_) => NoteKind::RowUnreadable,
            RowFault::ContentHash | RowFault::PrevHash => NoteKind::RowHashWrong,
            RowFault::Duplicate(_) => NoteKind::StepRepeated,
        };
        note(kind, at, row, format!("line {}: {fault}", row.line))
    });
    let notes: Vec<ImportNote> = notes.collect();
    let value = row.step.as_ref().map(|step| step_of(step, row).to_value());
    let (intent, refused) = match value {
        Some(Ok(value)) => match intent_of_row(&value, &row.text) {
            Ok(intent) => (intent, None),
            Err(error) => (kept(&row.text), Some(error.to_string())),
        },
        Some(Err(error)) => (kept(&row.text), Some(error.to_string())),
        None => (kept(&row.text), None),
    };
    let refused =
        refused.map(|why| note(NoteKind::RowUnreadable, at, row, format!("line {}: {why}", row.line)));
    let mut step = Step::new(intent);
    step.notes = notes.into_iter().chain(refused).collect();
    Ok(step)
}

/// A step with the members that its row says, each of the kind that a step has.
fn step_of(step: &dendrer_chain::Step, row: &ChainRow) -> RowValue {
    let RowValue::Object(members) = step.to_row_as_is() else { unreachable!("a row is an object") };
    let says = |name: &str| row.value.as_ref().is_some_and(|value| value.get(name).is_some());
    // What a row lacks was filled to read it.
    let is_said = |name: &dendrer_chain::RowText| match name.as_str() {
        Some(name @ ("step_id" | "started_at" | "success")) => says(name),
        _ => true,
    };
    RowValue::Object(members.into_iter().filter(|(name, _)| is_said(name)).collect())
}

/// Whether the rows of a file, each on a line, are its bytes: no line is blank, too large, or no text.
pub(crate) fn is_exact(bytes: &[u8]) -> bool {
    let Ok(reader) = ChainReader::new(bytes) else { return false };
    let mut text = reader.header_text().to_owned();
    for row in reader {
        if row.text.len() > ROW_SIZE_MAX {
            return false;
        }
        text.push('\n');
        text.push_str(&row.text);
    }
    text.as_bytes() == bytes.strip_suffix(b"\n").unwrap_or(bytes)
}

/// A row that is no step: its text alone.
fn kept(text: &str) -> Intent {
    let said = Value::record([(ROW, Value::from(text))]);
    Intent::new(name_of("observation.add"), "agent").with("intent", said)
}

fn note(kind: NoteKind, at: At<'_>, row: &ChainRow, text: String) -> ImportNote {
    ImportNote::new(kind, at, text).with("line", Value::from(row.line as u64))
}
