//! Chains as `carl-core` 0.2.0 keeps them: the lines of a run's file, and what holds of the hashes of a file.

use std::ops::ControlFlow;

use dendrer::record::chain::WitnessStep;
use dendrer::{Error, Trace};
use dendrer_chain::{
    ActionType, CONTENT_HASH, ChainReader, EXTENSION, PREV_HASH, RowFault, RowValue, StartedAt,
    content_hash_of, hashed, header_hash,
};
use dendrer_object::{Code, Record, Value};

use crate::import::NoteKind;
use crate::import::chain::{CHAIN_NEWLINE, CHAIN_ROW};

/// The name of the profile.
pub const CARL: &str = "carl";

/// Why a run is not written as a chain.
#[derive(Debug, thiserror::Error)]
pub enum CarlError {
    /// A step that was recorded here is of no type that readers of the form must know.
    #[error("tick {tick} is a {action} step, which is not of the sixteen but of {EXTENSION}")]
    Extension {
        /// The tick.
        tick: u64,
        /// The type.
        action: ActionType,
    },
    /// A row of the file was withheld or erased, or was too large for a record.
    #[error("the row of tick {tick} is not on record: it was withheld or erased, or too large")]
    Gone {
        /// The tick.
        tick: u64,
    },
    /// Nothing was taken out of the rows, so the exact bytes are in no vault.
    #[error(
        "the vault has no exact file of {0}: it was not imported from a chain, or its rows are exact without --exact"
    )]
    NotExact(String),
    /// The run cannot be read.
    #[error(transparent)]
    Run(#[from] Error),
}

impl CarlError {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            CarlError::Extension { .. } => Code::E0463,
            CarlError::Gone { .. } => Code::E0311,
            CarlError::NotExact(_) => Code::E0106,
            CarlError::Run(error) => error.code(),
        }
    }
}

/// Whether a newline ends the file of a run.
pub fn ends_with_newline(trace: &Trace) -> bool {
    let meta = trace.start().body().value("/meta");
    meta.as_ref().and_then(|meta| meta.get(CHAIN_NEWLINE)).and_then(Value::as_bool).unwrap_or(true)
}

/// Writes a run as the file of a chain, a line at a time. Rows that were imported are their own text; out of which secrets were taken
/// have another hash. Steps recorded here, and transitions that are read as steps, have the hash of the line before them, too.
/// `with_extension` lets steps pass that are not of the sixteen.
pub fn lines(
    trace: &Trace,
    with_extension: bool,
    visit: &mut dyn FnMut(&str) -> ControlFlow<()>,
) -> Result<(), CarlError> {
    let begin = trace.start();
    let meta = begin.body().value("/meta");
    let imported = meta.as_ref().and_then(|meta| meta.get(CHAIN_ROW)).and_then(Value::as_str);
    let header = imported.map_or_else(|| header_of(trace, begin, meta.as_ref()), str::to_owned);
    if visit(&header).is_break() {
        return Ok(());
    }
    let mut prev = Some(header_hash(&header));
    // Whether a line before has another hash than the one that its successor names.
    let mut is_rehashed = begin.body().value("/redaction").as_ref().is_some_and(has_taken);
    let mut stopped = None;
    trace.for_each(1, trace.tip(), &mut |tick, record| {
        let Some(step) = WitnessStep::of(&record) else { return ControlFlow::Continue(()) };
        let is_extension = step.action().is_some_and(|action| !action.is_closed());
        if step.row.is_none() && !with_extension && !step.derived && is_extension {
            stopped = Some(CarlError::Extension { tick, action: step.step.action });
            return ControlFlow::Break(());
        }
        let line = match &step.row {
            Some(text) => {
                let is_taken = record.body().value("/redaction").as_ref().is_some_and(has_taken);
                let value = RowValue::parse(text).ok();
                let names_prev = value.as_ref().is_some_and(|row| row.get(PREV_HASH).is_some());
                // A hash that was wrong when the row came stays wrong.
                let was_wrong = record.body().value("/anomalies").is_some_and(|list| {
                    let mut kinds = list.as_array().into_iter().flat_map(|list| list.iter());
                    let wrong = NoteKind::RowHashWrong.as_str();
                    kinds.any(|one| one.get("kind").and_then(Value::as_str) == Some(wrong))
                });
                let is_hashed = value.as_ref().is_some_and(|row| row.get(CONTENT_HASH).is_some());
                let is_due = is_hashed && !was_wrong && (is_taken || (is_rehashed && names_prev));
                match value.filter(|_| is_due) {
                    Some(row) => {
                        is_rehashed = true;
                        hashed(row, prev.as_deref().filter(|_| names_prev)).to_string()
                    }
                    _ => text.to_string(),
                }
            }
            None if !step.unknown.is_empty() || imported.is_some() => {
                stopped = Some(CarlError::Gone { tick });
                return ControlFlow::Break(());
            }
            None => {
                let row = step.step.to_row_as_is();
                let row = if step.success.is_none() { without_success(row) } else { row };
                hashed(row, prev.as_deref()).to_string()
            }
        };
        prev = RowValue::parse(&line).ok().as_ref().and_then(content_hash_of).map(str::to_owned);
        visit(&line)
    })?;
    stopped.map_or(Ok(()), Err)
}

/// A row of a transition of which nothing says whether it succeeded.
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

/// A row of a file for which a rule of the profile does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrokenRow {
    /// The line of the file.
    pub line: usize,
    /// The rule: `content_hash`, `prev_hash` or `row`.
    pub rule: &'static str,
    /// What is wrong.
    pub why: String,
}

/// What holds of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckedChain {
    /// Rows behind the header.
    pub rows: u64,
    /// Rows that say their hash.
    pub content_hashes: u64,
    /// Rows that name the line before.
    pub prev_hashes: u64,
    /// Rows that break a rule.
    pub broken: Vec<BrokenRow>,
}

/// Checks the bytes of a file. Fails if it has no header.
pub fn check(bytes: &[u8]) -> Result<CheckedChain, dendrer_chain::ChainFileError> {
    let mut checked = CheckedChain::default();
    for row in ChainReader::new(bytes)? {
        checked.rows += 1;
        let has = |name: &str| row.value.as_ref().is_some_and(|value| value.get(name).is_some());
        checked.content_hashes += u64::from(has(CONTENT_HASH));
        checked.prev_hashes += u64::from(has(PREV_HASH));
        if row.step.is_some() && !has(CONTENT_HASH) && !row.faults.contains(&RowFault::ContentHash) {
            let why = "the row says no content_hash".to_owned();
            checked.broken.push(BrokenRow { line: row.line, rule: "content_hash", why });
        }
        for fault in &row.faults {
            let rule = match fault {
                RowFault::ContentHash => "content_hash",
                RowFault::PrevHash => "prev_hash",
                RowFault::Json(_) | RowFault::Step(_) | RowFault::Duplicate(_) => "row",
            };
            checked.broken.push(BrokenRow { line: row.line, rule, why: fault.to_string() });
        }
    }
    Ok(checked)
}
