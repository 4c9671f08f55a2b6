//! Words for the mark of a backup, in a backup and in a store.

pub use dendrer::care::problem::{explain, unmark};
pub(crate) use dendrer::repo::mark::CLOSED;
pub use dendrer::repo::mark::{closes, hides, unfinished};
