//! The way of a group from the thread that submits it to the disk.

pub mod shared;
pub(crate) mod syncs;
