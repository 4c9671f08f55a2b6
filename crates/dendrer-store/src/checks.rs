//! The checks that every store makes before it writes, for stores of other crates.
//!
//! Pure but for reading the log. [`fence::check`](crate::fence::check) is the one for groups; a store that makes these and that
//! one refuses what every other store refuses, with the same error.

pub use crate::memory::{check_adopted, check_erase, prefix_start};
pub use crate::store::secrets::{check_new, check_sizes};
pub use crate::store::{check_heads, take_key};
