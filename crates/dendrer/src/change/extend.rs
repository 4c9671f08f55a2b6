//! Extensions of contracts: how an institution changes what is required of a run that is under way (dendrer paper 4.4).

use dendrer_kernel::pack::extend::{all, governs_behind};
use dendrer_kernel::step::{Extension, Stage};
use dendrer_object::record::Record;
use dendrer_object::{Code, RunName, Value};
use dendrer_store::Shared;

use crate::error::Error;
use crate::record::recorder::{Environment, Recorder};
use crate::run::trace::{ReadHandle, Trace};

pub mod question;

/// An extension that is on record, or would be.
#[derive(Debug)]
pub struct Extended {
    /// The run.
    pub run: RunName,
    /// The change, with its name and its approver.
    pub extension: Extension,
    /// Its record; of a dry run, the one that would be written.
    pub record: Record,
    /// Whether the run enforces contracts.
    pub is_enforced: bool,
    /// Whether nothing was written.
    pub dry_run: bool,
}

impl Extended {
    /// Returns the first tick that the extension governs, which is never its own.
    pub fn holds_from(&self) -> u64 {
        let own = self.record.header().tick.unwrap_or_default();
        governs_behind(self.extension.value(), own).unwrap_or_default()
    }
}

/// Extends the contract of a run. `approval` is the signed note of the approver, where the pack names keys; `dry` checks and
/// writes nothing. It holds from the tick that it names on, and for nothing before.
pub fn extend(
    store: &Shared,
    run: &RunName,
    value: &Value,
    approval: Option<&str>,
    surroundings: Box<dyn Environment>,
    dry: bool,
) -> Result<Extended, Error> {
    let mut recorder = Recorder::resume(store, run, surroundings)?;
    let extension = Extension::check(recorder.head(), value, approval)?;
    let record = recorder.extend(&extension)?;
    match dry {
        true => drop(recorder.discard()),
        false => drop(recorder.commit()?),
    }
    let stage = Trace::open(store, run)?.start().body().value("/stage").and_then(|stage| stage.as_u64());
    let is_enforced = stage.and_then(Stage::from_number).is_some_and(|stage| stage >= Stage::Contracts);
    Ok(Extended { run: run.clone(), extension, record, is_enforced, dry_run: dry })
}

/// Returns the text that an approver signs, once the signature alone is missing; `None` if the contract names no approver
/// with a key.
pub fn text_to_sign(
    store: &Shared,
    run: &RunName,
    value: &Value,
    surroundings: Box<dyn Environment>,
) -> Result<Option<String>, Error> {
    match extend(store, run, value, None, surroundings, true) {
        Err(Error::Extension(unsigned))
            if unsigned.faults.iter().all(|fault| fault.code() == Code::E0423) =>
        {
            Ok(Some(unsigned.text.clone()))
        }
        Err(error) => Err(error),
        Ok(_) => Ok(None),
    }
}

/// Returns the approver of the newest extension of a run, if there is one.
pub fn last_approver(store: &impl ReadHandle, run: &RunName) -> Option<String> {
    let trace = Trace::open(store, run).ok()?;
    let state = trace.state(trace.tip()).ok()?;
    all(&state).last()?.get("approved_by")?.as_str().map(str::to_owned)
}
