//! The question of a transcript as data.

use dendrer_object::question;

use crate::address::{Address, Position};
use crate::ask::log::{LogDetails, LogFilter, LogTerms, log};
use crate::ask::transcript::{TranscriptItem, items};
use crate::error::Error;
use crate::problem::Problem;
use crate::run::trace::Trace;
use crate::source::{Asked, Desk, in_order};

question! {
    /// Asks for a run as a conversation
    pub struct TranscriptQuestion: "transcript-question" {
        /// The run, as an address
        pub run: String,
        /// The first tick; 1 if not given
        pub from: Option<Position>,
        /// The last tick; the tip if not given
        pub to: Option<Position>,
        /// The number of transitions and refusals at most; 0 for all, 200 if not given
        pub limit: Option<u64>,
    }
}

/// The number of records if no limit is given.
const LIMIT: u64 = 200;

/// A part of a run as a conversation.
#[derive(Debug, Clone)]
pub struct TranscriptReply {
    /// The run.
    pub trace: Trace,
    /// The items, in order.
    pub items: Vec<TranscriptItem>,
    /// How many transitions the range has.
    pub total: u64,
    /// The tick at which the next part begins; `None` if this is the last one.
    pub next: Option<u64>,
}

impl Asked for TranscriptQuestion {
    type Reply = TranscriptReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<TranscriptReply, Problem> {
        let asked = desk.run(&Address::parse(&self.run)?, "transcript")?;
        let (address, trace) = (asked.address, asked.trace);
        let to = self.to.as_ref().or(address.pos.as_ref());
        let to = to.map_or(Ok(trace.tip()), |position| position.tick(&trace))?;
        let from = self.from.as_ref().map_or(Ok(1), |position| position.tick(&trace))?;
        if self.from.is_some() {
            in_order(from, to)?;
        }
        let limit = match self.limit.unwrap_or(LIMIT) {
            0 => u64::MAX,
            limit => limit,
        };
        // A part ends with a tick, and the refusals after it are of that part.
        let last = from.saturating_add(limit - 1).min(to);
        let terms = LogTerms {
            from,
            to: last,
            reverse: false,
            limit: u64::MAX,
            newest: false,
            refusals: true,
            filter: LogFilter::default(),
            details: LogDetails { links: true, ..LogDetails::default() },
            lanes: None,
            folds: false,
        };
        let (mut found, mut tick) = (Vec::new(), from.saturating_sub(1));
        log::<Error>(&trace, terms, &mut |record| {
            tick = record.record.header().tick.unwrap_or(tick);
            found.extend(items(&record, tick));
            Ok(())
        })?;
        let next = (last < to).then_some(last + 1);
        Ok(TranscriptReply { trace, items: found, total: (to + 1).saturating_sub(from.max(1)), next })
    }
}
