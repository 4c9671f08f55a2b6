//! Chains as `carl-core` 0.2.0 keeps them: the lines of a run's file, and what holds of the hashes of a file.

use std::ops::ControlFlow;

use dendrer::record::chain::WitnessStep;
use dendrer::{Error, Trace};
use dendrer_chain::{
    ActionType, CONTENT_HASH, ChainReader, EXTENSION, PREV_HASH, RowFault, RowValue, StartedAt,
    content_hash_of, hashed, header_hash,
};
use dendrer_object::{Code, Record, Value};

use crate::import::chain::CHAIN_ROW;

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
    /// A row of the file was withheld or erased.
    #[error("the row of tick {tick} is withheld or erased")]
    Gone {
        /// The tick.
        tick: u64,
    },
    /// Nothing was taken out of the rows, so the exact bytes are in no vault.
    #[error(
        "{0} was not imported from a chain whose secrets were taken out; its rows are exact without --exact"
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
        if step.row.is_none() && !with_extension && !step.derived && !step.step.action.is_closed() {
            stopped = Some(CarlError::Extension { tick, action: step.step.action });
            return ControlFlow::Break(());
        }
        let line = match &step.row {
            Some(text) => {
                let is_taken = record.body().value("/redaction").as_ref().is_some_and(has_taken);
                let value = RowValue::parse(text).ok();
                let names_prev = value.as_ref().is_some_and(|row| row.get(PREV_HASH).is_some());
                match value {
                    Some(row)
                        if row.get(CONTENT_HASH).is_some() && (is_taken || (is_rehashed && names_prev)) =>
                    {
                        is_rehashed = true;
                        hashed(row, prev.as_deref().filter(|_| names_prev)).to_string()
                    }
                    _ => text.to_string(),
                }
            }
            None if imported.is_some() && step.is_partial => {
                stopped = Some(CarlError::Gone { tick });
                return ControlFlow::Break(());
            }
            None => hashed(step.step.to_row_as_is(), prev.as_deref()).to_string(),
        };
        prev = RowValue::parse(&line).ok().as_ref().and_then(content_hash_of).map(str::to_owned);
        visit(&line)
    })?;
    stopped.map_or(Ok(()), Err)
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
