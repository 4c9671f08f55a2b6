//! How two runs are compared, as `diff` and `bisect --divergence` are told.

use clap::ValueEnum;
use dendrer::diff::DiffAlign;

/// How transitions are lined up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AlignChoice {
    /// One by one behind what is shared, markers passed over.
    Tick,
    /// By the longest sequence of transitions that mean the same.
    Content,
}

impl AlignChoice {
    /// The way that is meant.
    pub(crate) fn align(self) -> DiffAlign {
        match self {
            AlignChoice::Tick => DiffAlign::Tick,
            AlignChoice::Content => DiffAlign::Content,
        }
    }
}
