//! The result of a verb.

pub(crate) use dendrer_view::problem::Problem as Failure;

/// The exit code of a verb, or the problem that ended it.
pub(crate) type Result<T = u8> = std::result::Result<T, Failure>;
