//! The version of the kernel's rules.

/// The version of the rules by which new runs are made.
pub const KERNEL_VERSION: u64 = 1;
