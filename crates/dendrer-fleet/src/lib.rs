//! Exports of runs as Parquet files, and questions of `bisect` over such an export.
//!
//! [`export`] writes typed columns, changes and states at row groups, and a manifest last. [`FleetReader`] reads one back, by the
//! names in its manifest and never by a glob. [`ask`] answers for every run as [`dendrer::bisect`] does. Never writes into a
//! store. `docs/fleet.md` has the columns.
//!
//! Rule: a row that cannot be judged, and a file that is not what the manifest names, is an error or is counted, never taken for ok; tests
//! `fleet_agrees_with_bisect_on_generated_runs` and `damaged_files_are_named_and_never_answered_from`.

mod check;
mod columns;
mod error;
mod local;
mod manifest;
mod read;
mod rows;
mod write;

pub use check::{CheckedExportFile, ExportCheck, check};
pub use columns::{Column, ColumnKind};
pub use error::FleetError;
pub use local::ask;
pub use manifest::{ExportedFile, MANIFEST, Manifest};
pub use read::{ExportedRun, FleetReader};
pub use write::{ExportReport, FleetTerms, export};
