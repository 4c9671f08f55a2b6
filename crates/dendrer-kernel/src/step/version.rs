//! The version of the kernel's rules.

/// The version of the rules by which new runs and forks are made. A recorded run keeps the one that its `run` record names.
///
/// 2: every call of a line is judged, each word has its rank, results are never refused (design, 14.1 and 14.2).
/// 3: redacted values are compared by their tags, and a comparison that they leave open cannot be judged (design, 14.4);
/// a strategy decides objects of several agents leaf by leaf (design, 14.5).
pub const KERNEL_VERSION: u64 = 3;

/// The version from which on expressions compare redacted values by their tags.
pub const MARKERS_VERSION: u64 = 3;

/// The version from which on sync nodes decide objects leaf by leaf.
pub const LEAVES_VERSION: u64 = 3;

/// The first version; a `run` record without one was made by it.
pub const FIRST_VERSION: u64 = 1;
