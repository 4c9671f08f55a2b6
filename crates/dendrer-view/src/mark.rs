//! Words for the mark of a backup, in a backup and in a store.

pub(crate) use dendrer::care::mark::CLOSED;
pub use dendrer::care::mark::{closes, hides, unfinished};
pub use dendrer::care::problem::{explain, unmark};
