//! What a record proves: verification, and bundles that prove themselves elsewhere.

pub mod branches;
pub mod bundle;
mod file_kind;
pub mod page;
pub mod shown;
pub mod verify;
