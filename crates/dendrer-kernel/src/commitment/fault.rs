//! Faults of commitments and contracts that a line or a file brings.

use dendrer_object::Code;

/// A list that a line brings and that is not one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitmentFault {
    /// The code under which `dendrer explain` knows it.
    pub code: Code,
    /// The member, as a JSON pointer.
    pub path: String,
    /// The sentence.
    pub message: String,
}
