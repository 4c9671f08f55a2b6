//! Why runs cannot be merged, or a conflict cannot be resolved.

use dendrer_object::{Code, Pointer, RunName};

use crate::limits::{PLACES_MAX, SOURCES_MAX};

/// Why runs cannot be merged, or a conflict not be resolved.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// There are too few or too many of them.
    #[error("{0} runs cannot be merged: it takes 2 to {SOURCES_MAX}")]
    Sources(usize),
    /// One of them is named twice.
    #[error("{run}@{tick} is named twice, and a merge is made of several")]
    Twice {
        /// The run.
        run: RunName,
        /// The tick.
        tick: u64,
    },
    /// A place cannot be seeded.
    #[error("{path} cannot be seeded: {why}", path = .0.dotted(), why = .1)]
    Place(Pointer, &'static str),
    /// None of the sources has anything there.
    #[error("none of the runs has anything at {}", .0.dotted())]
    Nothing(Pointer),
    /// There are too many places.
    #[error("there are more than {PLACES_MAX} places to seed; choose some of them")]
    TooMany,
    /// The runs are not under the same rules.
    #[error("{a} and {b} have different {what}, and one run has only one")]
    Terms {
        /// One run.
        a: RunName,
        /// The other.
        b: RunName,
        /// The thing that differs.
        what: &'static str,
    },
    /// Contracts that extensions added to a run would be lost.
    #[error("the contracts of {0} were extended, and a new run would begin without that")]
    Extended(RunName),
    /// A conflict that another merge left open would be taken for absent.
    #[error("{run} has an open conflict at {path}, which nobody decided", path = .path.dotted())]
    OpenSource {
        /// The run.
        run: RunName,
        /// The place.
        path: Pointer,
    },
    /// Rules alone change the state of the new run, so no value could be put in later.
    #[error("{} is in conflict, and under the rules of the pack nobody could resolve it later", .0.dotted())]
    OpenUnderRules(Pointer),
    /// The run was not seeded from others.
    #[error("{0} was not made by a merge")]
    NotMerged(RunName),
    /// The record of the merge is not one that a merge writes.
    #[error("what {0} says of its merge cannot be read")]
    Malformed(RunName),
    /// There is no such conflict.
    #[error("{run} has no conflict at {path}", path = .path.dotted())]
    NoConflict {
        /// The run.
        run: RunName,
        /// The place that was given.
        path: Pointer,
    },
    /// The conflict has no such side.
    #[error("{take} is none of {sides}")]
    NoSide {
        /// The choice that was given.
        take: String,
        /// The sides that there are.
        sides: String,
    },
    /// The choice names several values.
    #[error("{take} means several values; say {ways}")]
    Ambiguous {
        /// The choice that was given.
        take: String,
        /// The ways to name each.
        ways: String,
    },
    /// It is decided already.
    #[error("the conflict at {path} is settled: {how}", path = .path.dotted())]
    Settled {
        /// The place.
        path: Pointer,
        /// By what.
        how: String,
    },
    /// The door turned the resolution down.
    #[error("the run refuses the resolution ({code}): {reason}")]
    Refused {
        /// The code.
        code: Code,
        /// The reason.
        reason: String,
    },
}

impl MergeError {
    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self {
            MergeError::Sources(_)
            | MergeError::Twice { .. }
            | MergeError::Place(..)
            | MergeError::TooMany => Code::E0441,
            MergeError::Nothing(_) => Code::E0104,
            MergeError::Terms { .. } | MergeError::Extended(_) => Code::E0442,
            MergeError::OpenUnderRules(_) => Code::E0443,
            MergeError::OpenSource { .. } => Code::E0447,
            MergeError::NotMerged(_) | MergeError::Malformed(_) => Code::E0444,
            MergeError::NoConflict { .. } | MergeError::NoSide { .. } | MergeError::Ambiguous { .. } => {
                Code::E0445
            }
            MergeError::Settled { .. } => Code::E0446,
            MergeError::Refused { code, .. } => *code,
        }
    }
}
