//! Extensions of contracts: how an institution changes what is required of a run that is under way (dendrer paper 4.4).

use dendrer_kernel::step::Extension;
use dendrer_object::record::Record;
use dendrer_object::{RunName, Value};
use dendrer_store::Shared;

use crate::error::Error;
use crate::recorder::{Recorder, Surroundings};
use crate::repo::Repo;

/// An extension that is on record, or would be.
#[derive(Debug)]
pub struct Extended {
    /// What it adds, with its name and its approver.
    pub extension: Extension,
    /// Its record.
    pub record: Record,
}

impl Repo {
    /// Extends the contract of a run.
    pub fn extend(
        &self,
        run: &RunName,
        value: &Value,
        approval: Option<&str>,
        dry: bool,
    ) -> Result<Extended, Error> {
        extend(self.writer()?, run, value, approval, self.environment(), dry)
    }
}

/// Extends the contract of a run. `approval` is the signed note of the approver, where the pack names keys; `dry` checks and
/// writes nothing. It holds from the tick that it names on, and for nothing before.
pub fn extend(
    store: &Shared,
    run: &RunName,
    value: &Value,
    approval: Option<&str>,
    surroundings: Box<dyn Surroundings>,
    dry: bool,
) -> Result<Extended, Error> {
    let mut recorder = Recorder::resume(store, run, surroundings)?;
    let extension = Extension::check(recorder.head(), value, approval)?;
    let record = recorder.extend(&extension)?;
    match dry {
        true => drop(recorder.discard()),
        false => drop(recorder.commit()?),
    }
    Ok(Extended { extension, record })
}
