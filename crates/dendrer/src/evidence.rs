//! What a record proves: verification, and bundles that prove themselves elsewhere.

pub mod bundle;
pub mod verify;
