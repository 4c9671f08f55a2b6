//! Counts the runs of a store in a map, signs its log, then hands over a bundle of some of its runs.
//!
//! A bundle whose end no signature covers would verify as tampered, and an honest record with it: it is refused before a line of
//! it is handed over. So is one of a store that lost records, if it would not verify.
//!
//! Rule: every bundle that leaves here verifies; test `an_export_verifies_or_is_refused`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use dendrer_object::note::{Checkpoint, SignedNote};
use dendrer_object::{Code, RunName};
use dendrer_store::{Store, StoreError};

use super::erase::withhold::find;
pub use super::erase::withhold::{Withheld, WithholdError, WithholdTerms};
use super::{CareNote, Follow};
use crate::address::Address;
use crate::error::Error;
use crate::evidence::bundle::{self, Export};
use crate::evidence::verify;
use crate::handle::ReadHandle;
use crate::repo::{Repo, Signed, Warning};

/// What is left out of a bundle, and what is known of the store.
#[derive(Debug, Default)]
pub struct ExportTerms {
    /// The values that are withheld, with their copies and the digests over them.
    pub withheld: WithholdTerms,
    /// Why the store could not be opened for writing. It is still exported as far as it was signed before.
    pub unwritable: Option<Error>,
}

/// Why a bundle was not made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// An address names a bundle.
    #[error("a bundle is made of a store, and this is one already")]
    OfBundle,
    /// Another process signed records that this handle has not read.
    #[error("more was signed while the log was read")]
    SignedMeanwhile,
    /// Nothing was signed, and the key of the log is not here.
    #[error("the key of the log is not here, and nothing was signed yet")]
    NothingSigned,
    /// The newest records are not signed, and the key of the log is not here.
    #[error("the last {0} records are not signed, and the key of the log is not here")]
    LastNotSigned(u64),
    /// It is not known what to withhold.
    #[error(transparent)]
    Withhold(#[from] WithholdError),
    /// The bundle would not verify.
    #[error("the bundle would be TAMPERED: {message}")]
    Unsound {
        /// Code of the first finding.
        code: Code,
        /// What was found.
        message: String,
    },
    /// The store cannot be read, or not be signed although its key is here.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl ExportError {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            ExportError::OfBundle => Code::E0601,
            ExportError::SignedMeanwhile => Code::E0802,
            ExportError::NothingSigned | ExportError::LastNotSigned(_) => Code::E0804,
            ExportError::Withhold(error) => error.code(),
            ExportError::Unsound { code, .. } => *code,
            ExportError::Failed(error) => error.code(),
        }
    }
}

/// A bundle that can be written.
#[derive(Debug)]
pub struct ExportPlan {
    export: Export,
    /// Whether the store lost records, so that the bundle is verified before a line of it is handed over.
    is_incomplete: bool,
}

impl ExportPlan {
    /// Hands over the bundle, a line at a time.
    pub fn write<E: From<Error> + From<ExportError>>(
        &self,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.is_incomplete {
            return self.export.write(sink);
        }
        let text = self.export.to_vec()?;
        refuse_unsound(&text)?;
        sink(&text)
    }
}

/// Signs the log of a store, and plans the bundle of some runs. Without the key of the log a bundle is made if all of the log was
/// signed before.
pub fn plan(
    repo: &Repo,
    runs: &[Address],
    terms: ExportTerms,
    follow: &mut dyn Follow,
) -> Result<ExportPlan, ExportError> {
    if runs.iter().any(|run| run.bundle.is_some()) {
        return Err(ExportError::OfBundle);
    }
    let is_incomplete = repo.warnings().iter().any(Warning::is_incomplete);
    let mut store = repo.reader()?;
    let names = names_of(&store, runs)?;
    let (note, unsigned) = note_of(repo, terms.unwritable, follow, Repo::sign_with_map)?;
    let checkpoint = signed_here(&*store, &note)?;
    let signed = checkpoint.size();
    if signed > store.tree().size {
        // The handle has not read yet what was signed since.
        store = repo.reader()?;
    }
    let size = store.tree().size;
    if signed > size && !is_incomplete {
        return Err(ExportError::SignedMeanwhile);
    }
    if signed < size {
        return Err(unsigned.map_or(ExportError::LastNotSigned(size - signed), ExportError::Failed));
    }
    let mut total = 0;
    for name in &names {
        // Each record is read once to find it and once to seal it.
        let run = store.run(name).map_err(Error::from)?;
        total += run.map_or(0, |run| 2 * run.head.tick.unwrap_or(0) + run.refusals);
    }
    let counted = follow.stage("records", Some(total)).over(&store);
    let export = bundle::export(&counted, &names, &note)?;
    if !export.is_counted() {
        follow.note(&CareNote::NotCounted);
    }
    let withheld = search(&store, &export.positions(), &terms.withheld, follow)?;
    let although = withheld.listed(export.runs());
    Ok(ExportPlan { export: export.without_fields(withheld.by_position(), although), is_incomplete })
}

/// Finds what a bundle of some runs would be made without. Signs nothing.
pub fn withheld(
    repo: &Repo,
    runs: &[Address],
    terms: &WithholdTerms,
    follow: &mut dyn Follow,
) -> Result<Withheld, ExportError> {
    if runs.iter().any(|run| run.bundle.is_some()) {
        return Err(ExportError::OfBundle);
    }
    let store = repo.reader()?;
    let names = names_of(&store, runs)?;
    let positions = bundle::positions(&store, &names)?;
    search(&store, &positions, terms, follow)
}

fn search(
    store: &impl ReadHandle,
    positions: &BTreeSet<u64>,
    terms: &WithholdTerms,
    follow: &mut dyn Follow,
) -> Result<Withheld, ExportError> {
    if terms.places.is_empty() {
        return Ok(Withheld::default());
    }
    let store = store.to_handle();
    let counted = follow.stage("records searched", Some(store.tree().size)).over(&store);
    let withheld = find(&*counted, positions, terms)?;
    for place in &withheld.anyway {
        follow.note(&CareNote::GoesAnyway(place.clone()));
    }
    Ok(withheld)
}

fn names_of(store: &impl ReadHandle, runs: &[Address]) -> Result<Vec<RunName>, Error> {
    let mut names: Vec<RunName> = Vec::new();
    for run in runs {
        let name = run.run_in(store, &[])?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Signs the log of a store, and returns its newest checkpoint; without the key the one that was signed before, and why the log was
/// not signed.
///
/// # Errors
///
/// [`ExportError::NothingSigned`] if nothing was ever signed.
pub fn newest_note(
    repo: &Repo,
    unwritable: Option<Error>,
    follow: &mut dyn Follow,
) -> Result<(SignedNote, Option<Error>), ExportError> {
    note_of(repo, unwritable, follow, Repo::sign)
}

fn note_of(
    repo: &Repo,
    unwritable: Option<Error>,
    follow: &mut dyn Follow,
    sign: fn(&Repo) -> Result<Signed, Error>,
) -> Result<(SignedNote, Option<Error>), ExportError> {
    let unwritable = match unwritable {
        // Nothing leaves here in the name of a key that took the place of a known one.
        Some(error @ Error::KeyChanged { .. }) => return Err(error.into()),
        other => other,
    };
    repo.signing_key()?;
    let unsigned = match unwritable.map_or_else(|| sign(repo).and_then(|done| signed(done, follow)), Err) {
        Ok(Some(note)) => return Ok((note, None)),
        Ok(None) => None,
        // Nothing leaves here as if nothing had been appended.
        Err(error @ Error::Store(StoreError::Untagged { .. })) => return Err(error.into()),
        Err(error) => Some(error),
    };
    match repo.reader()?.checkpoint().map_err(Error::from)? {
        Some(note) => Ok((note, unsigned)),
        None => Err(unsigned.map_or(ExportError::NothingSigned, ExportError::Failed)),
    }
}

/// Opens a checkpoint, and compares it with the log as far as that reaches.
fn signed_here(store: &dyn Store, note: &SignedNote) -> Result<Checkpoint, ExportError> {
    let checkpoint = store.keys().map_err(Error::from)?.open(note).map_err(|error| ExportError::Unsound {
        code: Code::E0308,
        message: format!("the checkpoint: {error}"),
    })?;
    let size = checkpoint.size();
    let root = if size <= store.tree().size { store.root_of(size).map_err(Error::from)? } else { None };
    match root {
        Some(root) if root != checkpoint.root() => {
            let message = "the log is not the one that was signed".to_owned();
            Err(ExportError::Unsound { code: Code::E0303, message })
        }
        _ => Ok(checkpoint),
    }
}

fn signed(signed: Signed, follow: &mut dyn Follow) -> Result<Option<SignedNote>, Error> {
    let Signed::UpTo { note, not_remembered } = signed else { return Ok(None) };
    if let Some(error) = not_remembered {
        follow.note(&CareNote::NotRemembered(error));
    }
    Ok(Some(note))
}

/// Refuses a bundle that would not verify.
fn refuse_unsound(text: &[u8]) -> Result<(), ExportError> {
    let opened = bundle::open(PathBuf::new(), text)?;
    let report = verify::bundle(&opened, &verify::VerifyTerms::default())?;
    match report.findings.into_iter().next() {
        None => Ok(()),
        Some(finding) => Err(ExportError::Unsound { code: finding.code, message: finding.message }),
    }
}
