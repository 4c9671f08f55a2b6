//! The faults of a store as a whole, as data.

use dendrer_object::Code;
use std::sync::Arc;

use dendrer_store::prelude::*;
use dendrer_store::{Embedded, Mark, Store, StoreError};

use super::heads;
use crate::error::{Error, LogDiffers, TrustError};
use crate::trust::Trust;

/// A fact that a reader of a store must know: what is read may not be all there was.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Warning {
    /// The log is damaged, or ends before what was signed.
    Damaged(Arc<StoreError>),
    /// The mark of a backup hides the end of the log.
    Hidden(Mark),
    /// The log is not the one that was signed here.
    AnotherLog(LogDiffers),
    /// Which log was signed here cannot be read.
    HeadUnknown(Arc<TrustError>),
    /// A backup is in the place of the store.
    IsBackup(Mark),
    /// A later backup into this directory was interrupted.
    Unfinished(Mark),
}

impl Warning {
    /// The code under which `dendrer explain` knows this fact.
    pub fn code(&self) -> Code {
        match self {
            Warning::Damaged(error) => error.code(),
            Warning::Hidden(_) | Warning::AnotherLog(_) => Code::E0307,
            Warning::HeadUnknown(error) => error.code(),
            Warning::IsBackup(_) | Warning::Unfinished(_) => Code::E0806,
        }
    }

    /// Whether a record that is not found may be in what is missing.
    pub fn is_incomplete(&self) -> bool {
        matches!(self, Warning::Damaged(_) | Warning::Hidden(_) | Warning::AnotherLog(_))
    }
}

/// Whether an error of a store is about its log.
pub fn is_of_the_log(trouble: &StoreError) -> bool {
    matches!(trouble, StoreError::Damaged(_) | StoreError::Lost(_))
}

/// Looks for everything that is wrong with a store as a whole. At most one warning says that the log is incomplete.
pub fn warnings(store: &mut Embedded, trust: &dyn Trust) -> Result<Vec<Warning>, Error> {
    let mut found = Vec::new();
    let mark = store.mark()?;
    let damage = store.trouble().filter(|trouble| is_of_the_log(trouble));
    if let Some(trouble) = damage {
        found.push(Warning::Damaged(trouble));
    } else if let Some(mark) = mark.filter(Mark::hides) {
        found.push(Warning::Hidden(mark));
    } else {
        match trust.head(store.info().id) {
            Ok(head) => found.extend(heads::differs(store, head)?.map(Warning::AnotherLog)),
            Err(error) => found.push(Warning::HeadUnknown(Arc::new(error))),
        }
    }
    if let Some(mark) = mark {
        if mark.in_store && mark.behind == 0 {
            found.push(Warning::IsBackup(mark));
        }
        // The holder of the lock is making a later backup.
        if !mark.in_store && mark.behind > 0 && store.is_lock_free().unwrap_or(true) {
            found.push(Warning::Unfinished(mark));
        }
    }
    Ok(found)
}

/// As [`warnings`], of a store that is no directory and has no mark of a backup.
pub(super) fn warnings_over(store: &mut dyn Store, trust: &dyn Trust) -> Result<Vec<Warning>, Error> {
    if let Some(trouble) = store.trouble().filter(|trouble| is_of_the_log(trouble)) {
        return Ok(vec![Warning::Damaged(trouble)]);
    }
    let head = match trust.head(store.info().id) {
        Ok(Some(head)) => head,
        Ok(None) => return Ok(Vec::new()),
        Err(error) => return Ok(vec![Warning::HeadUnknown(Arc::new(error))]),
    };
    store.refresh()?;
    Ok(heads::compare_hashes(store, head)?.map(Warning::AnotherLog).into_iter().collect())
}
