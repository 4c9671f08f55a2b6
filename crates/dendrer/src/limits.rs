//! Limits that error messages name.

/// Number of transitions that an onset may have before it if its contributors are looked for.
pub const EARLIER_MAX: u64 = 100_000;

/// Number of transitions after the shared ones that are lined up by content, on each side.
pub const CONTENT_MAX: usize = 1_000_000;

/// Number of runs that one merge takes.
pub const SOURCES_MAX: usize = 16;

/// Number of places that one merge may seed or leave in conflict. The `run` record has the source of each.
pub const PLACES_MAX: usize = 10_000;
