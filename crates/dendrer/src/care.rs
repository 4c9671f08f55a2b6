//! Care of a store in use.

pub mod spare;
