//! Why an export is not written, read or answered from.

use std::io;
use std::path::{Path, PathBuf};

use dendrer::Error;
use dendrer::ask::fleet::NotExported;
use dendrer::problem::Problem;
use dendrer_object::Code;

/// Why an export is not written, read or answered from.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// The directory has other files, or the export of another store.
    #[error("{} is not an export of this store: {why}", .dir.display())]
    NotOurs {
        /// The directory.
        dir: PathBuf,
        /// The other contents.
        why: String,
    },
    /// There is no manifest.
    #[error("{} has no dendrer-export.json: the export is not finished", .dir.display())]
    Unfinished {
        /// The directory.
        dir: PathBuf,
    },
    /// A file is not what the manifest names.
    #[error("{file}: {why}")]
    Damaged {
        /// The file, relative to the export.
        file: String,
        /// The fault.
        why: String,
    },
    /// The question reads what the export does not have.
    #[error(transparent)]
    NotExported(#[from] NotExported),
    /// A place is no column.
    #[error("{place} cannot be a column: {why}")]
    Column {
        /// The place as it was given.
        place: String,
        /// Why.
        why: String,
    },
    /// A file cannot be written or read.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] Error),
}

impl From<dendrer_store::StoreError> for FleetError {
    fn from(error: dendrer_store::StoreError) -> FleetError {
        FleetError::Store(error.into())
    }
}

impl FleetError {
    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> FleetError {
        let path = path.to_owned();
        move |source| FleetError::File { path, source }
    }

    pub(crate) fn damaged(file: &str, why: impl ToString) -> FleetError {
        FleetError::Damaged { file: file.to_owned(), why: why.to_string() }
    }

    /// The code of the error.
    pub fn code(&self) -> Code {
        match self {
            FleetError::NotOurs { .. } => Code::E0106,
            FleetError::Unfinished { .. } => Code::E0821,
            FleetError::Damaged { .. } => Code::E0824,
            FleetError::NotExported(NotExported::Expr(error)) => Problem::from(error.clone()).code,
            FleetError::NotExported(_) => Code::E0822,
            FleetError::Column { .. } => Code::E0106,
            FleetError::File { .. } => Code::E0801,
            FleetError::Store(error) => error.code(),
        }
    }
}

impl From<FleetError> for Problem {
    fn from(error: FleetError) -> Problem {
        let problem = Problem::new(error.code(), error.to_string());
        match error {
            FleetError::Store(error) => error.into(),
            FleetError::NotExported(NotExported::Expr(error)) => error.into(),
            FleetError::Unfinished { .. } => problem.note("run the same export again to go on"),
            FleetError::NotExported(NotExported::Counter(name)) => problem.help(&[
                "dendrer",
                "export",
                "--format",
                "parquet",
                "--dir",
                "DIR",
                "--columns",
                &format!("counters.{name}"),
            ]),
            FleetError::NotExported(_) => problem.note("dendrer bisect RUN asks it of one run, in the store"),
            FleetError::Damaged { .. } => problem.note("no answer is given from an export that is not whole"),
            FleetError::NotOurs { .. } => {
                problem.note("nothing was written; name a directory that is not there yet")
            }
            _ => problem,
        }
    }
}
