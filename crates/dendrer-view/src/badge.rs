//! The state of the verification of a run in a server, as a document.

use dendrer_object::document::As;
use dendrer_object::{Object, Timestamp, Value, document};

use crate::answer::{Answer, Line, Page};
use crate::quote;

dendrer_object::words! {
    /// How far a server has verified a run.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum BadgeState {
        /// No verification has begun.
        NotChecked = "not_checked",
        /// One is under way.
        Checking = "checking",
        /// One has ended.
        Checked = "checked",
    }
}

/// The verification of a run in a server.
#[derive(Debug, Clone)]
pub struct BadgeAnswer {
    /// The run.
    pub run: String,
    /// How far it was verified.
    pub state: BadgeState,
    /// How many records were read by the verification that is under way.
    pub done: u64,
    /// How many records the log has.
    pub of: u64,
    /// The document of the last verification that ended.
    pub verify: Option<Value>,
    /// The exit code of that.
    pub exit: u8,
    /// The last tick of the run.
    pub tip: u64,
    /// How many records the log had when that verification began.
    pub log_size: Option<u64>,
    /// When that verification ended.
    pub at: Option<Timestamp>,
    /// Whether the log grew since.
    pub is_stale: bool,
}

document! {
    /// The verification of a run in a server
    pub object BadgeDocument: "badge" (answer: &BadgeAnswer) {
        /// The run
        run: &str = &answer.run,
        /// How far the server has verified it
        state: BadgeState = answer.state,
        /// The number of records that the verification has read
        done: u64 = answer.done,
        /// The number of records of the log
        of: u64 = answer.of,
        /// The document of the last verification that ended; null if none has
        verify: Option<As<Object>> = answer.verify.clone().map(As::new),
        /// The last tick
        tip: u64 = answer.tip,
        /// The number of records of the log when that verification began; null if none has ended
        log_size: Option<u64> = answer.log_size,
        /// The time at which that verification ended; null if none has
        at: Option<Timestamp> = answer.at,
        /// Whether the log grew since
        stale: bool = answer.is_stale,
    }
}

impl Answer for BadgeAnswer {
    fn document(&self) -> Value {
        BadgeDocument::of(self).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        vec![format!("{} {}", quote::escape(&self.run), self.state.as_str()).into()]
    }
}
