//! The question of a timeline as data.

use dendrer_kernel::predicate::Polarity;
use dendrer_object::{Code, question};

use crate::address::{Address, Position};
use crate::ask::named::{NamedPredicate, expression, resolve};
use crate::ask::predicates::PredicateTested;
use crate::ask::timeline::{BINS, BINS_MAX, TimelineRange, TimelineReply, timeline};
use crate::problem::Problem;
use crate::source::{Asked, Desk, in_order};

question! {
    /// Asks for a run as bins of ticks
    pub struct TimelineQuestion: "timeline-question" {
        /// The run, as an address
        pub run: String,
        /// The first tick; 1 if not given
        pub from: Option<Position>,
        /// The last tick; the tip if not given
        pub to: Option<Position>,
        /// The number of bins at most, up to 2048; 512 if not given
        pub bins: Option<u64>,
        /// Registered predicates whose verdicts each bin has
        pub predicate: Vec<String>,
        /// Expressions that must be true, whose verdicts each bin has
        pub holds: Vec<String>,
    }
}

impl Asked for TimelineQuestion {
    type Reply = TimelineReply;

    fn ask(&self, desk: &mut dyn Desk) -> Result<TimelineReply, Problem> {
        let bins = self.bins.unwrap_or(BINS);
        if bins == 0 || bins > BINS_MAX {
            return Err(Problem::new(Code::E0106, format!("--bins takes 1 to {BINS_MAX}, not {bins}")));
        }
        let asked = desk.run(&Address::parse(&self.run)?, "timeline")?;
        let (address, trace) = (asked.address, asked.trace);
        let to = self.to.as_ref().or(address.pos.as_ref());
        let to = to.map_or(Ok(trace.tip()), |position| position.tick(&trace))?;
        let from = self.from.as_ref().map_or(Ok(1.min(to)), |position| position.tick(&trace))?;
        in_order(from, to)?;
        let mut tested = Vec::new();
        for text in &self.holds {
            let named = NamedPredicate::plain(expression(&trace, Polarity::Holds, text)?);
            tested.push((text.clone(), PredicateTested::of(&trace, named.predicate, from, to, None)?));
        }
        for name in &self.predicate {
            let named = resolve(&trace, name)?;
            tested.push((name.clone(), PredicateTested::of(&trace, named.predicate, from, to, None)?));
        }
        Ok(timeline(&trace, TimelineRange { from, to, bins }, &tested)?)
    }
}
