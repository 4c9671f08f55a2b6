//! Files of witness chains (`carl-core` 0.2.0): a header, which is the run's, and a row for each step.
//!
//! Reading: row n is tick n. A line that is cut, an unknown action, a wrong hash and an id that came before are gaps of their
//! tick, and the text of each line is kept. The program keeps sessions as well, which are chats; a chain or session can be named
//! by its id, and both by the directory of the program.
//!
//! Writing: rows that were imported are their own text; those without their secrets have another hash.

use std::collections::{BTreeSet, HashMap};
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dendrer::Trace;
use dendrer::kernel::ontology::{self, Class};
use dendrer::kernel::step::{COUNTERS, KERNEL_PATHS, Start};
use dendrer::kernel::unknown::has_note;
use dendrer::record::chain::{ROW, TRANSITION, WitnessStep, intent_of_row};
use dendrer::redact::{RedactionProfile, Redactor};
use dendrer_chain::{
    ActionType, CONTENT_HASH, ChainFileError, ChainLines, ChainReader, ChainRow, PREV_HASH, RowFault,
    RowStepError, RowText, RowValue, StartedAt, check_chain_id, content_hash_of, hashed, header_hash, scrub,
};
use dendrer_object::delta::{Delta, Op};
use dendrer_object::intent::line;
use dendrer_object::json::{self, VALUE_SIZE_MAX};
use dendrer_object::record::Author;
use dendrer_object::{Code, Digest, Intent, Object, Pointer, Record, TypeName, Value};

use super::openai_chat::OPENAI_CHAT;
use super::paper::brought;
use crate::foreign::{
    CfdTerms, ChainShape, ChangedRows, CheckedFile, FileFault, Format, Inner, Steps, Visit, WriteError,
    WrittenPart,
};
use crate::import::calls::Calls;
use crate::import::error::ImportError;
use crate::import::found::Gathered;
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
    begin,
    survey: |source, _| {
        let layout = Layout::new(Top::Lines);
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

/// The member of the run's metadata with the context of a chain, and that of a header.
const CONTEXT: &str = "context";

/// The state and the goal of the run in the context of a header.
const STATE: &str = "state";
const GOAL: &str = "goal";

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
    named(reader.header().and_then(|header| header.get("chain_id")?.as_str()), "line 1")?;
    let newline = (!bytes.ends_with(b"\n")).then(|| (CHAIN_NEWLINE, Value::from(false)));
    let text = text.map(|text| (CHAIN_ROW, Value::from(text)));
    let meta = Value::record([(CHAIN, header)].into_iter().chain(text).chain(newline));
    for (number, row) in reader.enumerate() {
        let at = At::item("", number as u64);
        let header = row.faults.iter().find_map(|fault| match fault {
            RowFault::Header(id) => Some(&**id),
            _ => None,
        });
        named(header, format!("line {}", row.line))?;
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
    Ok(Around {
        meta: Some(meta),
        notes: Vec::new(),
        fingerprint,
        sha256,
        left_out: Vec::new(),
        gathered: Gathered::default(),
    })
}

/// Refuses the id of a header that can name no file.
fn named(id: Option<&str>, at: impl std::fmt::Display) -> Result<(), ImportError> {
    let check = id.map_or(Ok(()), check_chain_id);
    check.map_err(|error| ImportError::refused(Code::E0461, error.to_string(), at))
}

/// Begins a run with the state and the goal that the header of a chain of transitions has.
fn begin(source: &mut dyn Read, _: &Layout, start: &mut Start) -> Result<Option<ImportNote>, ImportError> {
    let mut bytes = Vec::new();
    source.read_to_end(&mut bytes).map_err(ImportError::Io)?;
    let Ok(reader) = ChainReader::new(&bytes) else { return Ok(None) };
    let begun = reader.header().and_then(|header| header.get("context")?.get(TRANSITION));
    let Some(begun) = begun.and_then(|begun| begun.to_value().ok()) else { return Ok(None) };
    if let Some(state) = begun.get(STATE).filter(|state| state.as_object().is_some())
        && start.state == Value::object()
    {
        start.state = state.clone();
    }
    let goal = begun.get(GOAL).and_then(Value::as_str).map(Into::into);
    start.goal = start.goal.take().or(goal);
    Ok(None)
}

/// Finds the lines that redaction changes, and whether the rows are the bytes of the file: no line is blank, too large, or no text.
fn changed(bytes: &[u8], redactor: &Redactor) -> ChangedRows {
    let Ok(reader) = ChainReader::new(bytes) else { return ChangedRows::default() };
    // The profile of the package takes values by their names, which only a row that is read has.
    let is_carl = &*redactor.rules().name == RedactionProfile::Carl1.as_str();
    // Compared as they are written: no NaN is equal to itself.
    let is_scrubbed =
        |text: &str| RowValue::parse(text).is_ok_and(|row| scrub(&row).to_string() != row.to_string());
    let is_changed = |text: &str| !redactor.text(text).1.is_empty() || (is_carl && is_scrubbed(text));
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
    let made_of = row.step.as_ref().and_then(|_| transition_of_row(row));
    let (intent, refused) = match value {
        _ if made_of.is_some() => (made_of.expect("asked above"), None),
        Some(Ok(value)) => match intent_of_row(&value, &row.text, said_author(row)) {
            Ok(intent) => (with_said(intent, row), None),
            Err(error) => (kept(&row.text), Some(error.to_string())),
        },
        Some(Err(error)) => (kept(&row.text), Some(error.to_string())),
        None => (kept(&row.text), None),
    };
    let refused =
        refused.map(|why| note(NoteKind::RowUnreadable, at, row, format!("line {}: {why}", row.line)));
    let is_result = intent.member("result").is_some_and(|result| result.get("status").is_none());
    if is_result {
        let text = format!("line {}: success is null, so it is not known", row.line);
        notes.push(note(NoteKind::StatusUnknown, at, row, text));
    }
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
        Some(TRANSITION) => false,
        Some(name @ ("step_id" | "started_at" | "success")) => says(name),
        _ => true,
    };
    let is_unknown = row.value.as_ref().and_then(|value| value.get("success")) == Some(&RowValue::Null);
    let as_said = |(name, value): (RowText, RowValue)| match name.as_str() {
        Some("success") if is_unknown => (name, RowValue::Null),
        _ => (name, value),
    };
    RowValue::Object(members.into_iter().filter(|(name, _)| is_said(name)).map(as_said).collect())
}

/// The transition that a row was made of by [`write`], with the text of the row; `None` for any other row. A type of the kernel or of a
/// pack becomes an observation; the row keeps all of it.
fn transition_of_row(row: &ChainRow) -> Option<Intent> {
    let said = said(row)?;
    let text = |name: &str| said.get(name).and_then(Value::as_str);
    let own: TypeName = text("type")?.parse().ok()?;
    let class = ontology::class(&own, &BTreeSet::new());
    let type_name = match class {
        Some(Class::Agent | Class::Runtime) => own,
        _ => name_of("observation.add"),
    };
    let author = match text("author").and_then(|author| author.parse::<Author>().ok()) {
        _ if class == Some(Class::Runtime) => Author::Runtime,
        Some(author) if !ontology::is_claimed(author) => author,
        _ => Author::Agent,
    };
    let agent = text("agent").filter(|agent| !agent.is_empty() && ontology::check_name(agent).is_ok());
    let members = line::kept()
        .filter_map(|name| Some((name, brought(name, &said, &type_name, author)?)))
        .chain(["goal_id", "key"].into_iter().filter_map(|name| Some((name, said.get(name)?.clone()))));
    let own = [("type", Value::from(type_name.as_str()))];
    let mut intent = Intent::from_value(&Value::record(members.chain(own)), agent).ok()?;
    intent.author = author;
    intent.delta = Some(delta_of(&said));
    let mut meaning = intent.member("intent").and_then(Value::as_object).cloned().unwrap_or_default();
    meaning.set(ROW, Value::from(&*row.text));
    Some(intent.with("intent", Value::Object(meaning)))
}

/// The member of a row with the transition of its step.
fn said(row: &ChainRow) -> Option<Value> {
    row.value.as_ref()?.get(TRANSITION)?.to_value().ok()
}

fn said_author(row: &ChainRow) -> Option<Author> {
    said(row)?.get("author")?.as_str()?.parse().ok().filter(|author| !ontology::is_claimed(*author))
}

/// The intent of a step with the agent, the goal, the key and the delta of its row.
fn with_said(mut intent: Intent, row: &ChainRow) -> Intent {
    let Some(said) = said(row) else { return intent };
    let text = |name: &str| said.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some(agent) = text("agent").filter(|agent| ontology::check_name(agent).is_ok()) {
        intent.agent = agent.into();
    }
    intent.goal = text("goal_id").map(Into::into);
    intent.delta = Some(delta_of(&said));
    match text("key") {
        Some(key) => intent.carrying("key", Value::from(key)),
        None => intent,
    }
}

/// The changes of state in a row, without those of the kernel.
fn delta_of(said: &Value) -> Delta {
    let is_own = |op: &Op| {
        op.path.tokens().next().is_some_and(|top| top != COUNTERS && !KERNEL_PATHS.contains(&&*top))
    };
    let delta = said.get("delta").and_then(|delta| Delta::from_value(delta).ok()).unwrap_or_default();
    Delta(delta.0.into_iter().filter(is_own).collect())
}

/// Members of the transition of a step that the step does not have.
const BESIDE_STEP: [&str; 3] = ["delta", "goal_id", "key"];

/// A row with the members of its transition that the step does not have, if any; `None` if they were erased or withheld.
fn with_beside(row: RowValue, step: &WitnessStep, record: &Record) -> Option<RowValue> {
    let is_beside = |first: &str| first == "agent_id" || BESIDE_STEP.contains(&first);
    let fields = record.body().fields();
    let is_gone = |pointer: &Pointer| pointer.tokens().next().is_some_and(|first| is_beside(&first));
    if fields.iter().any(|field| record.body().text(field).is_none() && is_gone(&field.pointer)) {
        return None;
    }
    let content = record.content();
    let is_empty = |value: &Value| value.as_array().is_some_and(|list| list.is_empty());
    let members = BESIDE_STEP.iter().filter_map(|name| Some((*name, content.get(name)?.clone())));
    let mut said: Object =
        members.filter(|(_, value)| !is_empty(value)).map(|(name, value)| (Arc::from(name), value)).collect();
    if let Some(agent) = step.agent.as_deref().filter(|agent| *agent != "agent") {
        said.set("agent", Value::from(agent));
    }
    // A check or an evaluation counts at a gate by its author.
    if step.author == Some(Author::Agent)
        && matches!(step.step.action, ActionType::GateCheck | ActionType::EvalPhase)
    {
        said.set("author", Value::from(Author::Agent.as_str()));
    }
    let RowValue::Object(mut members) = row else { unreachable!("a row is an object") };
    if !said.is_empty() {
        members.push((TRANSITION.into(), RowValue::of(&Value::Object(said))));
    }
    Some(RowValue::Object(members))
}

/// Members of a record that no row has: the kernel makes them again, or they are of the store.
const NOT_IN_ROWS: [&str; 8] =
    ["context", "contract", "extension", "redaction", "seq", "state_root", "agent_id", "intent_context_hash"];

/// A row with the transition that it is made of; `None` if a part of the transition was erased or withheld.
fn with_transition(row: RowValue, record: &Record) -> Option<RowValue> {
    let is_of_row = |name: &str| !NOT_IN_ROWS.contains(&name);
    let is_gone = |pointer: &Pointer| pointer.tokens().next().is_some_and(|first| is_of_row(&first));
    let fields = record.body().fields();
    if fields.iter().any(|field| record.body().text(field).is_none() && is_gone(&field.pointer)) {
        return None;
    }
    let (header, content) = (record.header(), record.content());
    let text = |name: &str, text: &str| (Arc::from(name), Value::from(text));
    let agent = content.get("agent_id").and_then(Value::as_str).map(|agent| text("agent", agent));
    let type_name = header.type_name.as_ref().map_or("", TypeName::as_str);
    let own = [text("type", type_name), text("author", header.author.as_str())].into_iter().chain(agent);
    let is_empty = |value: &Value| value.as_array().is_some_and(|list| list.is_empty());
    let members = content.as_object().into_iter().flat_map(Object::iter);
    let members = members.filter(|(name, value)| is_of_row(name) && !is_empty(value));
    let members = members.map(|(name, value)| (Arc::clone(name), value.clone()));
    let made = Value::record(own.chain(members).collect::<Vec<_>>());
    let RowValue::Object(mut row) = row else { unreachable!("a row is an object") };
    row.push((TRANSITION.into(), RowValue::of(&made)));
    Some(RowValue::Object(row))
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
        None => Some(header_of(trace, begin, meta.as_ref())?),
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
                let is_kept = is_noted(NoteKind::RowsBeforeMissing) || !is_header_taken;
                let header = header.as_deref().filter(|_| !is_kept).map(header_hash);
                let is_wrong = is_noted(NoteKind::RowHashWrong);
                let is_taken = record.body().value("/redaction").as_ref().is_some_and(has_taken);
                imported_line(text, (is_taken, is_wrong), header, &mut written)
            }
            None if !step.unknown.is_empty() || is_noted(NoteKind::ValueTooLarge) => {
                stopped = Some(WriteError::Gone { tick });
                return ControlFlow::Break(());
            }
            None => {
                let row = step.step.to_row_as_is();
                let row = if step.success.is_none() { without_success(row) } else { row };
                let row = match step.derived {
                    true => with_transition(row, &record),
                    false => with_beside(row, &step, &record),
                };
                let Some(row) = row else {
                    stopped = Some(WriteError::Gone { tick });
                    return ControlFlow::Break(());
                };
                hashed(row, prev.as_deref()).to_string()
            }
        };
        prev = hash_of(&line);
        visit(&line)
    })?;
    stopped.map_or(Ok(()), Err)
}

/// The line of an imported row: its own text, or with new hashes if a secret was taken out of it or of a line before it. `header` is the
/// hash of a header that a secret was taken out of. A hash that was wrong when the row came stays wrong.
fn imported_line(
    text: &str,
    (is_taken, is_wrong): (bool, bool),
    header: Option<String>,
    written: &mut HashMap<String, String>,
) -> String {
    let value = RowValue::parse(text).ok();
    let named = value.as_ref().and_then(|row| row.get(PREV_HASH)).and_then(RowValue::as_str);
    let now = named.map(|named| written.get(named).cloned().or(header).unwrap_or_else(|| named.to_owned()));
    let said = value.as_ref().and_then(content_hash_of).map(str::to_owned);
    let is_due = said.is_some() && !is_wrong && (is_taken || now.as_deref() != named);
    let line = match value.filter(|_| is_due) {
        Some(row) => hashed(row, now.as_deref()).to_string(),
        None => text.to_owned(),
    };
    if let (Some(said), Some(hash)) = (said, hash_of(&line)) {
        written.entry(said).or_insert(hash);
    }
    line
}

/// The hash that a row states, if the line is one.
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

/// The header of a run that was recorded here: the id is of the run's first record. Its context is the one that the run was given,
/// with the name of the run and how it began.
fn header_of(trace: &Trace, begin: &Record, meta: Option<&Value>) -> Result<String, WriteError> {
    let at = StartedAt::of(begin.header().ts);
    let own = meta.and_then(|meta| meta.get(CONTEXT)).and_then(Value::as_object);
    let mut context = match own.map(|own| RowValue::of(&Value::Object(own.clone()))) {
        Some(RowValue::Object(own)) => own,
        _ => Vec::new(),
    };
    let mut add = |name: &str, value: RowValue| {
        if !context.iter().any(|(known, _)| known.as_str() == Some(name)) {
            context.push((name.into(), value));
        }
    };
    add("run", RowValue::from(trace.name().as_str()));
    let others = meta.and_then(Value::as_object).cloned().map(|mut meta| {
        meta.remove(CONTEXT);
        meta
    });
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        add("meta", RowValue::of(&Value::Object(others)));
    }
    let state = trace.state(0)?;
    let state = state.as_object().into_iter().flat_map(Object::iter);
    let state: Object = state
        .filter(|(name, _)| ***name != *COUNTERS && !KERNEL_PATHS.contains(&&***name))
        .map(|(name, value)| (Arc::clone(name), value.clone()))
        .collect();
    let goal = begin.body().value("/goal").filter(|goal| goal.as_str().is_some());
    let state = (!state.is_empty()).then(|| (STATE, Value::Object(state)));
    let begun = Value::record(state.into_iter().chain(goal.map(|goal| (GOAL, goal))));
    if begun != Value::object() {
        add(TRANSITION, RowValue::of(&begun));
    }
    let members = [
        ("chain_id", RowValue::from(&begin.id().hex()[..12])),
        ("started_at", RowValue::from(at.as_str())),
        ("context", RowValue::Object(context)),
    ];
    let header = members.into_iter().map(|(name, value)| (name.into(), value)).collect();
    Ok(RowValue::Object(header).to_string())
}

/// Checks what the rows of a file say of themselves and of the lines that they follow.
fn check(bytes: &[u8], _: &CfdTerms) -> Result<CheckedFile, FileFault> {
    ChainReader::new(bytes).map(checked).map_err(no_chain)
}

/// Checks files of which one may follow another.
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
