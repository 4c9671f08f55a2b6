//! The transitions of a run one by one, filtered, with the refusals, links and lanes beside them.
//!
//! Rule: no list of records is kept; each [`LoggedRecord`] is handed over before the next record is read.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer_kernel::step::AgentHead;
use dendrer_object::record::{Kind, Record, Rel};
use dendrer_object::{Digest, Pointer, RunName, Value, json};

use crate::ask::provenance::{LinkedRecord, linked_record};
use crate::ask::show::ShownWrites;
use crate::ask::thread::{ThreadIndex, ThreadPlace};
use crate::error::Error;
use crate::run::closed::Closed;
use crate::run::declared;
use crate::run::trace::Trace;

pub mod question;

/// Decides whether a text is one that was searched for.
pub type TextMatch = Box<dyn Fn(&str) -> bool>;

/// The records that a log lists. A field that is empty takes every record.
#[derive(Default)]
pub struct LogFilter {
    /// Only these types.
    pub types: Vec<String>,
    /// Only these agents.
    pub agents: Vec<String>,
    /// Only records with anomalies.
    pub anomalies: bool,
    /// Only records that wrote at, above or below this place.
    pub path: Option<Pointer>,
    /// Only records with a matching type or text.
    pub text: Option<TextMatch>,
    /// Only records of this time or later, in milliseconds since 1970.
    pub since: Option<u64>,
    /// Only records of this time or earlier, in milliseconds since 1970.
    pub until: Option<u64>,
}

/// What is read beside each record.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogDetails {
    /// Whether every field of a record is shown, so every closed field is counted.
    pub whole: bool,
    /// The changes of the state.
    pub writes: bool,
    /// The records that it links to.
    pub links: bool,
}

/// What is asked about the transitions of a run, with its ticks resolved.
pub struct LogTerms {
    /// The first tick.
    pub from: u64,
    /// The last tick.
    pub to: u64,
    /// Whether the newest transition comes first.
    pub reverse: bool,
    /// How many records are handed over at most.
    pub limit: u64,
    /// Whether the limit leaves out the oldest records of the range and not the newest.
    pub newest: bool,
    /// Whether refusals are handed over after the record they were judged against.
    pub refusals: bool,
    /// The records that are listed.
    pub filter: LogFilter,
    /// What is read beside each record.
    pub details: LogDetails,
    /// The lanes of the agents, if they are drawn.
    pub lanes: Option<Lanes>,
    /// Whether the writes of tasks of a thread are counted and not listed: the checkpoint after them has their values. A filter
    /// of types, texts or anomalies lists them.
    pub folds: bool,
}

/// One record of a log.
#[derive(Debug, Clone)]
pub struct LoggedRecord {
    /// The run.
    pub run: RunName,
    /// The record.
    pub record: Record,
    /// The number of a refusal, from 1, as `RUN@refused:N` names it; `None` for a transition.
    pub refused: Option<u64>,
    /// Its writes, if they were asked for.
    pub writes: Option<ShownWrites>,
    /// The links to other records, in recorded order, if they were asked for.
    pub links: Vec<(Rel, Digest, Option<LinkedRecord>)>,
    /// The lanes at this record; `None` for a refusal.
    pub lanes: Option<Vec<LaneMark>>,
    /// Its place in the graph, for a put or a write of a thread.
    pub thread: Option<ThreadPlace>,
}

/// The counts of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogSummary {
    /// How many transitions the range has.
    pub total: u64,
    /// How many transitions the run has.
    pub of: u64,
    /// How many records were handed over.
    pub shown: u64,
    /// How many of them are refusals.
    pub refusals: u64,
    /// How many agents they are of.
    pub agents: u64,
    /// How many anomalies they have. The claims of a refused intent do not count.
    pub anomalies: u64,
    /// The closed fields of the records that were looked at, as far as they decide what is listed and shown.
    pub closed: Closed,
    /// The id of the newest transition.
    pub tip: Option<Digest>,
    /// Whether records were left out because of the limit.
    pub left_out: bool,
    /// The tick to go on from, if later records were left out because of the limit.
    pub next: Option<u64>,
    /// How many writes of tasks were counted and not listed.
    pub folded: u64,
}

impl LogTerms {
    /// Whether a record is counted and not listed.
    fn folds_away(&self, place: Option<&ThreadPlace>) -> bool {
        self.folds && self.filter.folds() && place.is_some_and(ThreadPlace::is_folded)
    }
}

impl LogFilter {
    /// Whether writes of tasks may be folded: a record that was asked for by its type or its text is listed itself.
    pub fn folds(&self) -> bool {
        self.types.is_empty() && self.text.is_none() && !self.anomalies
    }

    /// Whether it takes every record.
    pub fn is_empty(&self) -> bool {
        let has_names = !self.types.is_empty() || !self.agents.is_empty();
        let has_times = self.since.is_some() || self.until.is_some();
        !(has_names || has_times || self.anomalies || self.path.is_some() || self.text.is_some())
    }

    /// Checks that each name of the filter is declared: a name that is not would match nothing.
    pub fn check(&self, trace: &Trace) -> Result<(), Error> {
        declared::types(trace, self.types.iter().map(String::as_str))?;
        let thread = ThreadIndex::of(trace).filter(|_| !self.agents.is_empty());
        let nodes = thread.map(|mut thread| thread.all_nodes()).transpose()?.unwrap_or_default();
        declared::agents_or(trace, self.agents.iter().map(String::as_str), nodes)?;
        self.path.iter().try_for_each(|path| declared::place(&[trace], path))
    }

    /// Whether a log lists a record. A node of a thread is an agent.
    pub fn takes(&self, record: &Record, place: Option<&ThreadPlace>) -> bool {
        let type_name = record.header().type_name.as_ref().map(|name| name.as_str());
        let agent = || record.body().value("/agent_id");
        let ms = record.header().ts.ms();
        self.since.is_none_or(|since| ms >= since)
            && self.until.is_none_or(|until| ms <= until)
            && (self.types.is_empty() || self.types.iter().any(|wanted| Some(wanted.as_str()) == type_name))
            && (self.agents.is_empty()
                || agent()
                    .and_then(|a| a.as_str().map(str::to_owned))
                    .is_some_and(|a| self.agents.contains(&a))
                || place.is_some_and(|place| place.nodes.iter().any(|node| self.agents.contains(node))))
            && (!self.anomalies || record.body().value("/anomalies").is_some())
            && self.path.as_ref().is_none_or(|path| writes(record, path))
            && self.text.as_ref().is_none_or(|matches| {
                type_name.is_some_and(matches) || has_text(&record.content(), matches, 0)
            })
    }
}

/// Members of a record that have a name of their own in every record of their kind: these names are not searched.
const OWN_NAMES: [&str; 12] = [
    "agent",
    "call_id",
    "calls",
    "confidence",
    "content",
    "decision",
    "description",
    "messages",
    "output",
    "params",
    "status",
    "tool",
];

/// Whether a text, a number or the name of a member matches, as `show` prints it. `depth` is 0 for the content of a record, whose
/// own names do not count.
fn has_text(value: &Value, matches: &TextMatch, depth: usize) -> bool {
    match value {
        Value::String(text) => matches(text) || held(text).is_some_and(|held| has_text(&held, matches, 2)),
        Value::Number(number) => matches(&number.to_string()),
        Value::Array(list) => list.iter().any(|item| has_text(item, matches, depth)),
        Value::Object(object) => object.iter().any(|(name, member)| {
            let is_own = depth == 0 || depth == 1 && OWN_NAMES.contains(&&**name);
            // The members of each call and message are those of a record as well.
            let inner = if depth == 1 && matches!(&**name, "calls" | "messages") { 1 } else { depth + 1 };
            !is_own && matches(name) || has_text(member, matches, inner)
        }),
        _ => false,
    }
}

/// Returns the object or list that a text holds as JSON: it is shown as that.
fn held(text: &str) -> Option<Value> {
    let begins = text.trim_start().starts_with(['{', '[']);
    begins.then(|| json::parse_door(text.as_bytes()).ok()).flatten()
}

fn writes(record: &Record, place: &Pointer) -> bool {
    let delta = record.delta();
    delta.is_some_and(|delta| delta.paths().any(|path| path.overlaps(place)))
}

impl LoggedRecord {
    /// Reads a record of a run with its details.
    pub fn of(
        trace: &Trace,
        (record, refused): (Record, Option<u64>),
        details: LogDetails,
        lanes: Option<Vec<LaneMark>>,
        thread: Option<ThreadPlace>,
    ) -> Result<LoggedRecord, Error> {
        let tick = record.header().tick.unwrap_or(0);
        let writes = details.writes.then(|| ShownWrites::of(trace, tick, &record)).transpose()?;
        let links = record.header().links.iter().filter(|_| details.links);
        let links = links.map(|link| Ok((link.rel, link.hash, linked_record(&**trace.store(), &link.hash)?)));
        let links = links.collect::<Result<_, Error>>()?;
        Ok(LoggedRecord { run: trace.name().clone(), record, refused, writes, links, lanes, thread })
    }
}

/// The refusals of a run with their numbers, by the record that each was judged against.
type Refusals = BTreeMap<Digest, Vec<(u64, Record)>>;

/// Hands over the records of a run in order until `f` breaks.
pub fn log<E: From<Error>>(
    trace: &Trace,
    terms: LogTerms,
    f: &mut dyn FnMut(LoggedRecord) -> Result<(), E>,
) -> Result<LogSummary, E> {
    terms.filter.check(trace)?;
    let LogTerms { from, to, reverse, .. } = terms;
    let mut refusals = Refusals::new();
    for (number, record) in if terms.refusals { trace.numbered_refusals()? } else { Vec::new() } {
        if let Some(head) = record.header().head {
            refusals.entry(head).or_default().push((number, record));
        }
    }
    let at_start = refusals.remove(&trace.start().id()).unwrap_or_default();
    let summary = LogSummary {
        total: (to + 1).saturating_sub(from.max(1)),
        of: trace.tip(),
        tip: Some(trace.summary().head.id),
        ..LogSummary::default()
    };
    let mut thread = ThreadIndex::of(trace);
    let begin =
        (terms.newest && !reverse).then(|| newest(trace, &terms, &refusals, &mut thread)).transpose()?;
    let skip = begin.map_or(0, |begin| begin.skip);
    let mut walk = Walk { trace, terms, refusals, thread, summary, skip, agents: BTreeSet::new(), f };
    let from = begin.map_or(from, |begin| begin.from);
    walk.summary.left_out = begin.is_some_and(|begin| begin.left_out);
    if from <= 1 {
        for (number, record) in at_start {
            walk.see(&record);
            walk.hand_over((record, Some(number)), None, None)?;
        }
    }
    if reverse {
        for tick in (from.max(1)..=to).rev() {
            if walk.visit(trace.record(tick).map_err(E::from)?)?.is_break() {
                break;
            }
        }
    } else {
        trace.try_each(from, to, &mut |_, record| walk.visit(record))?;
    }
    walk.summary.agents = walk.agents.len() as u64;
    Ok(walk.summary)
}

/// The place at which the newest records of a range begin.
#[derive(Debug, Clone, Copy)]
struct NewestRecords {
    from: u64,
    /// How many records at that tick are older.
    skip: u64,
    left_out: bool,
}

/// Looks back from the end of the range for the place from which on as many records are listed as the limit has.
fn newest(
    trace: &Trace,
    terms: &LogTerms,
    refusals: &Refusals,
    thread: &mut Option<ThreadIndex<'_>>,
) -> Result<NewestRecords, Error> {
    let mut listed = 0;
    for tick in (terms.from.max(1)..=terms.to).rev() {
        let record = trace.record(tick)?;
        let place = thread.as_mut().map(|thread| thread.place(&record)).transpose()?.flatten();
        let is_listed = terms.filter.takes(&record, place.as_ref()) && !terms.folds_away(place.as_ref());
        let here = u64::from(is_listed) + refusals.get(&record.id()).map_or(0, Vec::len) as u64;
        listed += here;
        if listed > terms.limit {
            return Ok(NewestRecords { from: tick, skip: listed - terms.limit, left_out: true });
        }
    }
    Ok(NewestRecords { from: terms.from, skip: 0, left_out: false })
}

/// A log as far as it was walked.
struct Walk<'w, E> {
    trace: &'w Trace,
    terms: LogTerms,
    refusals: Refusals,
    /// The index of a thread.
    thread: Option<ThreadIndex<'w>>,
    summary: LogSummary,
    /// How many records are passed over before the first that is handed over.
    skip: u64,
    agents: BTreeSet<String>,
    f: &'w mut dyn FnMut(LoggedRecord) -> Result<(), E>,
}

impl<E: From<Error>> Walk<'_, E> {
    fn visit(&mut self, record: Record) -> Result<ControlFlow<()>, E> {
        self.see(&record);
        let lanes = self.terms.lanes.as_mut().map(|lanes| lanes.step(&record));
        let refused = self.refusals.remove(&record.id()).unwrap_or_default();
        refused.iter().for_each(|(_, record)| self.see(record));
        let place = self.thread.as_mut().map(|thread| thread.place(&record)).transpose().map_err(E::from)?;
        let place = place.flatten();
        let tick = record.header().tick.unwrap_or(0);
        let is_taken = self.terms.filter.takes(&record, place.as_ref());
        let is_folded = self.terms.folds_away(place.as_ref());
        // A fold is counted with the records around it that are listed.
        self.summary.folded +=
            u64::from(is_taken && is_folded && self.skip == 0 && self.summary.shown < self.terms.limit);
        let record = (is_taken && !is_folded).then_some(((record, None), place));
        let is_listed = record.is_some() || !refused.is_empty();
        // A page ends between two ticks: what was refused after the last transition is listed with it.
        if is_listed && self.skip == 0 && self.summary.shown >= self.terms.limit {
            self.summary.left_out = true;
            self.summary.next = Some(tick).filter(|_| !self.terms.reverse);
            return Ok(ControlFlow::Break(()));
        }
        let refused = refused.into_iter().map(|(number, record)| ((record, Some(number)), None));
        for (record, place) in record.into_iter().chain(refused) {
            if self.skip > 0 {
                self.skip -= 1;
                continue;
            }
            self.hand_over(record, lanes.clone(), place)?;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Counts the closed fields of a record that decide whether it is listed, or are shown.
    fn see(&mut self, record: &Record) {
        let all = self.terms.details.whole || self.terms.filter.text.is_some();
        let path = self.terms.filter.path.is_some();
        self.summary.closed.add(record, |pointer| {
            let field = pointer.tokens().next();
            all || match field.as_deref() {
                Some(
                    "agent_id" | "intent" | "action" | "line" | "result" | "messages" | "policy"
                    | "anomalies" | "reason",
                ) => true,
                field => path && field == Some("delta"),
            }
        });
    }

    fn hand_over(
        &mut self,
        (record, refused): (Record, Option<u64>),
        lanes: Option<Vec<LaneMark>>,
        place: Option<ThreadPlace>,
    ) -> Result<(), E> {
        let body = record.body();
        let agent = body.value("/agent_id").and_then(|agent| agent.as_str().map(str::to_owned));
        self.agents.insert(agent.unwrap_or_default());
        self.summary.shown += 1;
        match record.header().kind {
            Kind::Refusal => self.summary.refusals += 1,
            _ => {
                let anomalies = body.value("/anomalies");
                let anomalies = anomalies.as_ref().and_then(Value::as_array).map_or(0, |list| list.len());
                self.summary.anomalies += anomalies as u64;
            }
        }
        (self.f)(LoggedRecord::of(self.trace, (record, refused), self.terms.details, lanes, place)?)
    }
}

/// The lanes of the agents of a run, as far as they were walked.
#[derive(Debug, Clone)]
pub struct Lanes(Vec<Lane>);

#[derive(Debug, Clone)]
struct Lane {
    agent: Arc<str>,
    /// The last record of the branch.
    end: Digest,
    open: bool,
}

/// The mark of one lane at a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneMark {
    /// The branch has not begun, or has ended.
    Empty,
    /// The branch goes on.
    Open,
    /// The record is one of this agent.
    Here,
}

impl Lanes {
    /// One lane for each agent, by name; each ends with the newest record of the agent.
    pub fn new(agents: &BTreeMap<Arc<str>, AgentHead>) -> Lanes {
        let lane = |(agent, head): (&Arc<str>, &AgentHead)| Lane {
            agent: Arc::clone(agent),
            end: head.id,
            open: false,
        };
        Lanes(agents.iter().map(lane).collect())
    }

    /// The agents, from left to right.
    pub fn agents(&self) -> Vec<Arc<str>> {
        self.0.iter().map(|lane| Arc::clone(&lane.agent)).collect()
    }

    /// Returns the marks at the next record.
    fn step(&mut self, record: &Record) -> Vec<LaneMark> {
        let agent = record.body().value("/agent_id");
        let agent = agent.as_ref().and_then(Value::as_str);
        let mark = |lane: &mut Lane| {
            let is_here = agent == Some(&*lane.agent);
            let mark = match (is_here, lane.open) {
                (true, _) => LaneMark::Here,
                (false, true) => LaneMark::Open,
                (false, false) => LaneMark::Empty,
            };
            if is_here {
                lane.open = record.id() != lane.end;
            }
            mark
        };
        self.0.iter_mut().map(mark).collect()
    }
}
