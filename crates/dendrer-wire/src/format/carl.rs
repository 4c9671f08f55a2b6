//! Files of witness chains (`carl-core` 0.2.0): a header, which is the run's, and a row for each step.
//!
//! Reading: row n is tick n. A line that is cut, an unknown action, a wrong hash and an id that came before are gaps of their
//! tick, and the text of each line is kept. The program keeps sessions as well, which are chats; a chain or session can be named
//! by its id, and both by the directory of the program.
//!
//! Writing: rows that were imported are their own text; those without their secrets have another hash.

use std::collections::HashMap;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use dendrer::Trace;
use dendrer::kernel::unknown::has_note;
use dendrer::record::chain::{ROW, WitnessStep, intent_of_row};
use dendrer::redact::Redactor;
use dendrer_chain::{
    CONTENT_HASH, ChainFileError, ChainLines, ChainReader, ChainRow, PREV_HASH, RowFault, RowStepError,
    RowValue, StartedAt, check_chain_id, content_hash_of, hashed, header_hash,
};
use dendrer_object::json::{self, VALUE_SIZE_MAX};
use dendrer_object::{Code, Digest, Intent, Record, Value};

use super::openai_chat::OPENAI_CHAT;
use crate::foreign::{
    CfdTerms, ChainShape, ChangedRows, CheckedFile, FileFault, Format, Inner, Steps, Visit, WriteError,
    WrittenPart,
};
use crate::import::calls::Calls;
use crate::import::error::ImportError;
use crate::import::items::{Around, Item, too_large};
use crate::import::layout::{Layout, Top};
use crate::import::note::{At, ImportNote, NoteKind};
use crate::import::scan::{Fingerprint, Sizes};
use crate::import::transition::{Step, name_of};

/// The format.
pub(super) static CARL: Format = Format {
    accept: |_, _| Ok(()),
    find: Some(find),
    inner: session,
    survey: |source, _| {
        let cfd = CfdTerms::default();
        let layout = Layout { top: Top::Lines, index: None, path: Vec::new(), is_cut: false, cfd };
        Ok((layout, rows(source, &mut |_| Ok(()))?.fingerprint, Sizes::default()))
    },
    items: |source, _, _, visit| rows(source, visit),
    rows: Some(changed),
    write: Some(write),
    single: Some("a chain"),
    check: Some(check),
    check_joined: Some(check_joined),
    ..Format::new(
        "carl",
        "A chain of carl-core, a session of it, or a directory with both; the id of one is enough",
        |_| Box::new(Rows),
    )
};

/// The directory of chains in that of the program.
const CHAINS: &str = "interactions";

/// The directory of sessions in that of the program.
const SESSIONS: &str = "sessions";

/// The member of the run's metadata with the header.
const CHAIN: &str = "chain";

/// The member of the run's metadata with the text of the header.
const CHAIN_ROW: &str = "chain_row";

/// The member of the run's metadata that is false where no newline ends the file.
const CHAIN_NEWLINE: &str = "chain_newline";

/// A row beyond this size is left out: its values are recorded as well as its text.
const ROW_SIZE_MAX: usize = VALUE_SIZE_MAX / 8;

/// The files that are named: by a path, by the id of a chain or a session in the directory of the program, or all of a directory.
fn find(named: &str, home: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let home = home.join(".carl");
    let path = PathBuf::from(named);
    if path.is_dir() {
        return all(&path);
    }
    if named == "-" || path.exists() {
        return Ok(vec![path]);
    }
    // A path that is mistyped is a file that is missing; an id has no path in it.
    let is_path = path.is_absolute()
        || named.starts_with("./")
        || [".jsonl", ".json"].iter().any(|end| named.ends_with(end));
    if is_path {
        return Err(ImportError::missing(format!("there is no file {named}")));
    }
    check_chain_id(named).map_err(|error| ImportError::Unfit {
        code: Code::E0461,
        message: error.to_string(),
        note: None,
    })?;
    let places =
        [home.join(CHAINS).join(format!("{named}.jsonl")), home.join(SESSIONS).join(format!("{named}.json"))];
    places.into_iter().find(|place| place.exists()).map(|place| vec![place]).ok_or_else(|| {
        let home = home.display();
        ImportError::missing(format!(
            "there is no file {named}, and no chain or session of this id in {home}"
        ))
    })
}

/// All chains and sessions of a directory, in the order of their names.
fn all(directory: &Path) -> Result<Vec<PathBuf>, ImportError> {
    let mut found = Vec::new();
    for (room, extension) in [(CHAINS, "jsonl"), (SESSIONS, "json")] {
        let Ok(entries) = std::fs::read_dir(directory.join(room)) else { continue };
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry.map_err(ImportError::Io)?.path();
            paths.extend(path.extension().is_some_and(|is| is == extension).then_some(path));
        }
        paths.sort();
        found.extend(paths);
    }
    if found.is_empty() {
        let directory = directory.display();
        return Err(ImportError::missing(format!(
            "{directory} has no chains in {CHAINS} and no sessions in {SESSIONS}"
        )));
    }
    Ok(found)
}

/// Reads a session as a chat. One of a version that is not known is refused: `schema_version` is "1", 1 or absent.
fn session(name: Option<&str>, source: &mut dyn Read) -> Result<Option<Inner>, ImportError> {
    if name.is_none_or(|name| Path::new(name).extension().is_none_or(|extension| extension != "json")) {
        return Ok(None);
    }
    let mut text = Vec::new();
    source.read_to_end(&mut text).map_err(ImportError::Io)?;
    let session = json::parse_door(&text).map_err(ImportError::Session)?;
    match session.get("schema_version") {
        Some(version)
            if !matches!(version, Value::Null)
                && version.as_str() != Some("1")
                && version.as_u64() != Some(1) =>
        {
            let message = format!("schema_version {version} is not known; 1 is");
            Err(ImportError::refused(Code::E0803, message, ""))
        }
        _ => Ok(Some(Inner { format: &OPENAI_CHAT, list: vec!["messages".to_owned()] })),
    }
}

/// Hands over the rows of a file in their order.
fn rows(source: &mut dyn Read, visit: Visit<'_>) -> Result<Around, ImportError> {
    let mut bytes = Vec::new();
    source.read_to_end(&mut bytes).map_err(ImportError::Io)?;
    let reader = ChainReader::new(&bytes)
        .map_err(|error| ImportError::refused(Code::E0213, error.to_string(), "line 1"))?;
    let fail = |error| ImportError::Json { error, at: Some("line 1".to_owned()), offset: Some(0) };
    let text = reader.header_text();
    if let Some(text) = text.filter(|text| text.len() > ROW_SIZE_MAX) {
        return Err(fail(too_large(text.len())));
    }
    // A file that begins with a row has a null in place of the header.
    let header = reader.header().map_or(Ok(Value::Null), RowValue::to_value).map_err(fail)?;
    let newline = (!bytes.ends_with(b"\n")).then(|| (CHAIN_NEWLINE, Value::from(false)));
    let text = text.map(|text| (CHAIN_ROW, Value::from(text)));
    let meta = Value::record([(CHAIN, header)].into_iter().chain(text).chain(newline));
    for (number, row) in reader.enumerate() {
        let at = At { list: "", number: Some(number as u64) };
        let size = row.text.len();
        let mut item = Item::new(Value::Null, at, size);
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

/// Finds the lines that redaction changes, and whether the rows are the bytes of the file: no line is blank, too large, or no text.
fn changed(bytes: &[u8], redactor: &Redactor) -> ChangedRows {
    let Ok(reader) = ChainReader::new(bytes) else { return ChangedRows::default() };
    let is_changed = |text: &str| !redactor.text(text).1.is_empty();
    let mut texts: Vec<String> = reader.header_text().map(str::to_owned).into_iter().collect();
    let mut lines: Vec<u64> = texts.iter().filter_map(|text| is_changed(text).then_some(1)).collect();
    let mut is_whole = true;
    for row in reader {
        if row.text.len() > ROW_SIZE_MAX {
            is_whole = false;
            continue;
        }
        lines.extend(is_changed(&row.text).then_some(row.line as u64));
        texts.push(row.text);
    }
    let is_exact = is_whole && texts.join("\n").as_bytes() == bytes.strip_suffix(b"\n").unwrap_or(bytes);
    ChangedRows { lines, is_exact }
}

/// Rows as steps.
struct Rows;

impl Steps for Rows {
    fn step<'i>(&mut self, item: &'i Item<'_>, _: &mut Calls) -> Result<Step<'i>, ImportError> {
        Ok(step(item.row.as_deref().expect("a row of a chain"), item.at))
    }
}

/// The transition of a row.
fn step(row: &ChainRow, at: At<'_>) -> Step<'static> {
    let notes = row.faults.iter().map(|fault| {
        let kind = match fault {
            RowFault::Step(RowStepError::Action(_)) => NoteKind::ActionUnknown,
            RowFault::Json(_) | RowFault::Step(_) => NoteKind::RowUnreadable,
            RowFault::ContentHash | RowFault::PrevHash => NoteKind::RowHashWrong,
            RowFault::Duplicate(_) => NoteKind::StepRepeated,
            RowFault::Behind => NoteKind::RowsBeforeMissing,
            RowFault::Header(_) => NoteKind::RowOfOtherChain,
        };
        note(kind, at, row, format!("line {}: {fault}", row.line))
    });
    let mut notes: Vec<ImportNote> = notes.collect();
    if row.chain > 0 && row.step.is_some() {
        let text = format!("line {}: the row is of another chain than the first of the file", row.line);
        notes.push(note(NoteKind::RowOfOtherChain, at, row, text));
    }
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
    step
}

/// A step with the members that its row has, each of the kind that a step has.
fn step_of(step: &dendrer_chain::Step, row: &ChainRow) -> RowValue {
    let RowValue::Object(members) = step.to_row_as_is() else { unreachable!("a row is an object") };
    let says = |name: &str| row.value.as_ref().is_some_and(|value| value.get(name).is_some());
    // Members that a row lacks were filled to read it.
    let is_said = |name: &dendrer_chain::RowText| match name.as_str() {
        Some(name @ ("step_id" | "started_at" | "success")) => says(name),
        _ => true,
    };
    RowValue::Object(members.into_iter().filter(|(name, _)| is_said(name)).collect())
}

/// A row that is no step: its text alone.
fn kept(text: &str) -> Intent {
    let said = Value::record([(ROW, Value::from(text))]);
    Intent::new(name_of("observation.add"), "agent").with("intent", said)
}

fn note(kind: NoteKind, at: At<'_>, row: &ChainRow, text: String) -> ImportNote {
    ImportNote::new(kind, at, text).with("line", Value::from(row.line as u64))
}

/// Writes a run. All is looked at before a line is written: a file that ends early would be taken for the chain.
fn write(
    trace: &Trace,
    with_extension: bool,
    line: &mut dyn FnMut(WrittenPart<'_>) -> ControlFlow<()>,
) -> Result<(), WriteError> {
    lines(trace, with_extension, &mut |_| ControlFlow::Continue(()))?;
    let (mut before, mut is_stopped) = ("", false);
    lines(trace, with_extension, &mut |text| {
        let flow = line(WrittenPart::Text(&format!("{}{text}", std::mem::replace(&mut before, "\n"))));
        is_stopped = flow.is_break();
        flow
    })?;
    let meta = trace.start().body().value("/meta");
    let newline = meta.as_ref().and_then(|meta| meta.get(CHAIN_NEWLINE)).and_then(Value::as_bool);
    if !is_stopped && newline.unwrap_or(true) {
        let _ = line(WrittenPart::Text("\n"));
    }
    Ok(())
}

/// Writes a run as the file of a chain, a line at a time. Rows that were imported are their own text; those without their
/// secrets have another hash. Steps recorded here, and transitions that are read as steps, have the hash of the line before them, too.
/// `with_extension` lets steps pass that are not of the sixteen.
fn lines(
    trace: &Trace,
    with_extension: bool,
    visit: &mut dyn FnMut(&str) -> ControlFlow<()>,
) -> Result<(), WriteError> {
    let begin = trace.start();
    let meta = begin.body().value("/meta");
    let meta_of = |name: &str| meta.as_ref().and_then(|meta| meta.get(name));
    let header = match meta_of(CHAIN_ROW).and_then(Value::as_str) {
        Some(text) => Some(text.to_owned()),
        // The file began with a row.
        None if meta_of(CHAIN) == Some(&Value::Null) => None,
        None => Some(header_of(trace, begin, meta.as_ref())),
    };
    if header.as_ref().is_some_and(|header| visit(header).is_break()) {
        return Ok(());
    }
    let mut prev = header.as_deref().map(header_hash);
    let is_header_taken = begin.body().value("/redaction").as_ref().is_some_and(has_taken);
    // The hash of each imported row that was written, by the hash that it had.
    let mut written: HashMap<String, String> = HashMap::new();
    let mut stopped = None;
    trace.for_each(1, trace.tip(), &mut |tick, record| {
        let Some(step) = WitnessStep::of(&record) else { return ControlFlow::Continue(()) };
        let is_extension = step.action().is_some_and(|action| !action.is_closed());
        if step.row.is_none() && !with_extension && !step.derived && is_extension {
            stopped = Some(WriteError::Extension { tick, action: step.step.action });
            return ControlFlow::Break(());
        }
        let anomalies = record.body().value("/anomalies").unwrap_or(Value::Null);
        let is_noted = |kind: NoteKind| has_note(&anomalies, kind.as_str());
        let line = match &step.row {
            Some(text) => {
                let is_taken = record.body().value("/redaction").as_ref().is_some_and(has_taken);
                let value = RowValue::parse(text).ok();
                let named = value.as_ref().and_then(|row| row.get(PREV_HASH)).and_then(RowValue::as_str);
                // A row that names no row before it names the header, which may be another text now.
                let names_header = is_header_taken && !is_noted(NoteKind::RowsBeforeMissing);
                let now = named.map(|named| match (written.get(named), &header) {
                    (Some(now), _) => now.clone(),
                    (None, Some(header)) if names_header => header_hash(header),
                    (None, _) => named.to_owned(),
                });
                let said = value.as_ref().and_then(content_hash_of).map(str::to_owned);
                // A hash that was wrong when the row came stays wrong.
                let is_due = said.is_some()
                    && !is_noted(NoteKind::RowHashWrong)
                    && (is_taken || now.as_deref() != named);
                let line = match value.filter(|_| is_due) {
                    Some(row) => hashed(row, now.as_deref()).to_string(),
                    _ => text.to_string(),
                };
                if let (Some(said), Some(hash)) = (said, hash_of(&line)) {
                    written.entry(said).or_insert(hash);
                }
                line
            }
            None if !step.unknown.is_empty() || is_noted(NoteKind::ValueTooLarge) => {
                stopped = Some(WriteError::Gone { tick });
                return ControlFlow::Break(());
            }
            None => {
                let row = step.step.to_row_as_is();
                let row = if step.success.is_none() { without_success(row) } else { row };
                hashed(row, prev.as_deref()).to_string()
            }
        };
        prev = hash_of(&line);
        visit(&line)
    })?;
    stopped.map_or(Ok(()), Err)
}

/// The hash that a row says it has, if the line is one.
fn hash_of(line: &str) -> Option<String> {
    RowValue::parse(line).ok().as_ref().and_then(content_hash_of).map(str::to_owned)
}

/// A row of a transition whose success is unknown.
fn without_success(row: RowValue) -> RowValue {
    let RowValue::Object(mut members) = row else { return row };
    for (name, value) in &mut members {
        if name.as_str() == Some("success") {
            *value = RowValue::Null;
        }
    }
    RowValue::Object(members)
}

fn has_taken(redaction: &Value) -> bool {
    redaction.get("taken").and_then(Value::as_object).is_some_and(|taken| !taken.is_empty())
}

/// The header of a run that was recorded here: the id is of the run's first record.
fn header_of(trace: &Trace, begin: &Record, meta: Option<&Value>) -> String {
    let at = StartedAt::of(begin.header().ts);
    let mut context = vec![("run".into(), RowValue::from(trace.name().as_str()))];
    if let Some(meta) = meta {
        context.push(("meta".into(), RowValue::of(meta)));
    }
    let members = [
        ("chain_id", RowValue::from(&begin.id().hex()[..12])),
        ("started_at", RowValue::from(at.as_str())),
        ("context", RowValue::Object(context)),
    ];
    RowValue::Object(members.into_iter().map(|(name, value)| (name.into(), value)).collect()).to_string()
}

/// Checks what the rows of a file say of themselves and of the lines that they follow.
fn check(bytes: &[u8], _: &CfdTerms) -> Result<CheckedFile, FileFault> {
    ChainReader::new(bytes).map(checked).map_err(no_chain)
}

/// Checks files of which one may begin behind the end of another.
fn check_joined(files: &[&[u8]]) -> Vec<Result<CheckedFile, FileFault>> {
    let lines = ChainLines::of(files);
    let check = |(at, bytes): (usize, &&[u8])| ChainReader::joined(bytes, &lines, at).map(checked);
    files.iter().enumerate().map(check).map(|checked| checked.map_err(no_chain)).collect()
}

fn no_chain(error: ChainFileError) -> FileFault {
    FileFault { code: Code::E0209, why: error.to_string(), line: None }
}

fn checked(mut reader: ChainReader<'_>) -> CheckedFile {
    let mut rules = [("row", 0, Vec::new()), ("content_hash", 0, Vec::new()), ("prev_hash", 0, Vec::new())];
    let (mut fault, mut shape) = (None, ChainShape::default());
    let mut lines = u64::from(reader.header().is_some());
    for row in &mut reader {
        lines += 1;
        let line = row.line as u64;
        if row.faults.iter().any(|fault| matches!(fault, RowFault::Header(_))) {
            continue;
        }
        let has = |name: &str| row.value.as_ref().is_some_and(|value| value.get(name).is_some());
        let is_of = [true, has(CONTENT_HASH), has(PREV_HASH)];
        rules.iter_mut().zip(is_of).for_each(|((_, rows, _), is_of)| *rows += u64::from(is_of));
        shape.forks.extend(row.is_fork.then_some(line));
        shape.joins.extend(row.joins.map(|(file, there)| (line, file, there as u64)));
        let mut break_rule = |at: usize, why: String| {
            let (rule, _, broken) = &mut rules[at];
            broken.push(line);
            fault.get_or_insert((line, format!("{rule}: {why}")));
        };
        if row.step.is_some() && !has(CONTENT_HASH) && !row.faults.contains(&RowFault::ContentHash) {
            break_rule(1, "the row says no content_hash".to_owned());
        }
        for fault in &row.faults {
            let rule = match fault {
                RowFault::Json(_) | RowFault::Step(_) | RowFault::Duplicate(_) => 0,
                RowFault::ContentHash => 1,
                RowFault::PrevHash => 2,
                RowFault::Behind | RowFault::Header(_) => {
                    shape.behind.get_or_insert(line);
                    continue;
                }
            };
            break_rule(rule, fault.to_string());
        }
    }
    shape.chains = reader.chains() as u64;
    CheckedFile { lines, fault, branches: None, spelling: None, rules: rules.into(), chain: shape }
}
