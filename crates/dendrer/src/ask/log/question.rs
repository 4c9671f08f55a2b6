//! The question of `log` as data.

use dendrer_object::{Code, question};
use regex::Regex;

use crate::address::{Address, Position, state_path};
use crate::ask::log::{LogDetails, LogFilter, LogTerms, TextMatch};
use crate::problem::Problem;
use crate::run::trace::Trace;
use crate::source::{Asked, Desk, in_order};
use crate::trust::LogTrust;

question! {
    /// Asks for the transitions of a run
    pub struct LogQuestion: "log-question" {
        /// The run, as an address, or RUN@FROM..TO; the latest if not given
        pub run: Option<String>,
        /// The first tick
        pub from: Option<Position>,
        /// The last tick
        pub to: Option<Position>,
        /// The only types that are listed
        pub r#type: Vec<String>,
        /// The only agents whose transitions are listed
        pub agent: Vec<String>,
        /// Whether only transitions with anomalies are listed
        pub anomalies: bool,
        /// The only place whose writes are listed
        pub path: Option<String>,
        /// A regular expression that the type, a text, a number or the name of a member of each transition matches
        pub grep: Option<String>,
        /// The time from which on records are listed, in milliseconds since 1970
        pub since: Option<u64>,
        /// The time up to which records are listed, in milliseconds since 1970
        pub until: Option<u64>,
        /// Whether refusals are listed as well
        pub refusals: bool,
        /// Whether the newest transition comes first
        pub reverse: bool,
        /// The number of records at most; 0 for all. The newest of the range, or the first from `from` on; the first 1000
        /// if not given
        pub limit: Option<u64>,
        /// Whether each record has its content
        pub full: bool,
        /// Whether each record has its links to other records
        pub links: bool,
    }
}

/// The number of records if no limit is given.
const LIMIT: u64 = 1000;

/// The texts of a log question, read.
pub struct LogTexts {
    /// The address of the run.
    pub address: Address,
    /// The first tick.
    pub from: Option<Position>,
    /// The last tick.
    pub to: Option<Position>,
    /// The records that are listed.
    pub filter: LogFilter,
}

/// A log whose records are to be handed over by [`log`](super::log).
pub struct OpenedLog {
    /// The run.
    pub trace: Trace,
    /// The range and the filter.
    pub terms: LogTerms,
    /// Whether a verification on this machine found the run intact as it is now.
    pub found_intact: bool,
    /// How much of the log is signed and verified here; `None` for a bundle.
    pub trust: Option<LogTrust>,
}

impl Asked for LogQuestion {
    type Reply = OpenedLog;

    fn ask(&self, desk: &mut dyn Desk) -> Result<OpenedLog, Problem> {
        self.open(self.texts()?, desk)
    }
}

impl LogQuestion {
    /// Reads the texts of the question.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if one cannot be read, or ticks are named twice.
    pub fn texts(&self) -> Result<LogTexts, Problem> {
        let run = self.run.as_deref().unwrap_or("@");
        let (run, from, to) = match Address::range(run)? {
            None => (run, self.from.clone(), self.to.clone()),
            Some(_) if self.from.is_some() || self.to.is_some() => {
                let what = format!("{run} says which ticks, and so do --from and --to");
                return Err(Problem::new(Code::E0106, what));
            }
            Some((run, from, to)) => (run, Some(from), Some(to)),
        };
        let address = Address::parse(run)?;
        let filter = LogFilter {
            types: self.r#type.clone(),
            agents: self.agent.clone(),
            anomalies: self.anomalies,
            path: self.path.as_deref().map(state_path).transpose()?,
            text: self.grep.as_deref().map(text_match).transpose()?,
            since: self.since,
            until: self.until,
        };
        Ok(LogTexts { address, from, to, filter })
    }

    /// Opens the run.
    ///
    /// # Errors
    ///
    /// A [`Problem`] if it cannot be read, or has no such ticks.
    pub fn open(&self, texts: LogTexts, desk: &mut dyn Desk) -> Result<OpenedLog, Problem> {
        let LogTexts { address, from, to, filter } = texts;
        let source = desk.look(&address)?;
        let address = address.resolve(&source.store)?;
        let trace = source.trace(&address)?;
        desk.reads_run(&trace);
        let first = from.as_ref().map_or(Ok(1), |position| position.tick(&trace))?;
        let last = to.as_ref().or(address.pos.as_ref());
        let last = last.map_or(Ok(trace.tip()), |position| position.tick(&trace))?;
        if from.is_some() {
            in_order(first, last)?;
        }
        let known = source.found_intact();
        let found_intact = known.get(trace.name().as_str()) == Some(&trace.summary().head.id);
        let terms = LogTerms {
            from: first,
            to: last,
            reverse: self.reverse,
            limit: match self.limit.unwrap_or(LIMIT) {
                0 => u64::MAX,
                limit => limit,
            },
            newest: self.limit.is_some_and(|limit| limit > 0) && from.is_none(),
            refusals: self.refusals,
            filter,
            details: LogDetails { whole: self.full, links: self.links, ..LogDetails::default() },
            lanes: None,
            folds: false,
        };
        Ok(OpenedLog { trace, terms, found_intact, trust: source.log_trust() })
    }
}

fn text_match(text: &str) -> Result<TextMatch, Problem> {
    let regex = Regex::new(text).map_err(|error| {
        // The library draws the place under the pattern; each line of that is a line here.
        Problem::new(Code::E0106, "--grep takes a regular expression").at("what", error.to_string())
    })?;
    Ok(Box::new(move |text| regex.is_match(text)))
}
