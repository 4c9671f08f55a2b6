//! How far long work has come, as a line of JSON on stderr.

use dendrer_object::document;

document! {
    /// The progress of long work
    pub object ProgressDocument: "progress" (
        work: &str,
        counted: &str,
        sofar: u64,
        whole: Option<u64>,
        per_second: u64,
        left_s: Option<u64>,
    ) {
        /// The work
        what: &str = work,
        /// The unit that is counted
        unit: &str = counted,
        /// The number of units so far
        done: u64 = sofar,
        /// The number of all units; null if it is not known
        total: Option<u64> = whole,
        /// The number of units a second
        rate: u64 = per_second,
        /// The seconds that are left at that rate; null if they are not known
        remaining_s: Option<u64> = left_s,
    }
}
