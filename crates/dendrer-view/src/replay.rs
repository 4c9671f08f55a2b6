//! A replay: the states as they were made again, and whether they are those on record.

use dendrer::ask::replay::{Replayed, ReplayedTick};
use dendrer::graph::eval::NodeFault;
use dendrer::graph::frontier::Substituted;
use dendrer::problem::Problem;
use dendrer::reread::Reread;
use dendrer::run::frontier::GraphRun;
use dendrer_object::document::{As, Either, Shape};
use dendrer_object::{Digest, Object, RunName, Value, document};

use crate::answer::{End, ItemAnswer, Line, Page};
use crate::certainty::{UnknownPlace, unknown_line, unknown_places};
use crate::problem::ShownProblem as _;
use crate::{count, problem, quote};

/// The fork that a replay made, or the reason why it made none.
type Fork<'r> = (Option<&'r RunName>, Option<&'r str>);

/// A replay, one tick after the other.
#[derive(Debug, Clone)]
pub struct ReplayAnswer {
    /// Whether a replay that ended early is reported and does not fail.
    pub detects: bool,
    /// The result of the replay, after it has ended.
    pub replayed: Option<Replayed>,
    /// The calls that were made once more; `None` if no tool was to be called.
    pub reread: Option<Vec<Reread>>,
}

impl ReplayAnswer {
    /// Begins a replay.
    pub fn new(detects: bool) -> ReplayAnswer {
        ReplayAnswer { detects, replayed: None, reread: None }
    }

    /// Returns the problem of a replay that ended early, unless it is only reported.
    pub fn failure(&self) -> Option<Problem> {
        let error = self.replayed.as_ref().and_then(|replayed| replayed.error.as_ref());
        error.filter(|_| !self.detects).map(problem::replay)
    }
}

document! {
    /// The result of a replay
    pub object ReplayDocument: "replay" reads (
        name: &RunName,
        is_same: bool,
        difference: Option<Value>,
        places: Option<Value>,
        ticks: Option<TickReplay>,
        graph: Option<GraphReplay>,
    ) {
        /// The run
        run: &RunName = name,
        /// The parts that were made again
        made: ["ticks" | "graph"] = if graph.is_some() { "graph" } else { "ticks" },
        /// Whether everything was made again as it is on record
        ok: bool = is_same,
        /// The first difference from the record; null if it is missing
        divergence: As<Option<Object>> = As::new(difference),
        /// The unknown places of the last state, or the paths of a graph that other values leave unknown
        unknown?: As<Vec<Either<UnknownPlace, String>>> = places.map(As::new),
        ..?TickReplay = ticks,
        ..?GraphReplay = graph,
        /// The states, if they were to be printed
        items?: Vec<ReplayedObject> = None,
    }

    /// The replay of the ticks of a run
    pub object TickReplay(replayed: &Replayed, calls: Option<&[Reread]>) {
        /// The last tick that was to be replayed
        to: u64 = replayed.to,
        /// The number of ticks that were replayed
        ticks: u64 = replayed.ticks,
        /// Whether each reduction was evaluated twice
        twice: bool = replayed.twice,
        /// With --exec-read: the calls that were made once more, and whether the answer is the recorded one
        reread?: Vec<RereadObject> = calls.map(|calls| calls.iter().map(RereadObject::of).collect()),
    }

    /// The replay of the graph of a run
    pub object GraphReplay(
        run: &GraphRun,
        made: u64,
        end: (Option<&Value>, Option<&str>),
        is_open: bool,
        found: Option<&Substituted>,
        fork: Fork<'_>,
    ) {
        /// The graph
        graph: &str = &run.graph.name,
        /// The digest of the graph
        digest: Digest = run.digest,
        /// The number of nodes that were made again
        nodes: u64 = made,
        /// The number of recorded values
        edges: usize = run.frontier.edges.len(),
        /// The output that was made; null if it is missing
        output: Option<&Value> = end.0,
        /// The path of the repeat that came to its limit and ended the run; null if none did
        limit: Option<&str> = end.1,
        /// Whether the run did not end
        open: bool = is_open,
        ..?SubstitutedReplay = found.map(|found| SubstitutedReplay::of(found, fork)),
    }

    /// The effect of other values on a graph
    object SubstitutedReplay(found: &Substituted, fork: Fork<'_>) {
        let first = found.first.as_ref();
        /// The first node that differs; null if none does
        first: Option<DifferentNode> =
            first.map(|(node, recorded, now)| DifferentNode::of(node, recorded, now)),
        /// The paths that the values reach
        reaches: &[String] = &found.reaches,
        /// The paths that stay the same
        same: &[String] = &found.same,
        /// The edges whose request is the recorded one
        asked: &[String] = &found.asked,
        /// The paths that cannot be computed
        failed: Vec<FailedNode> = found.failed.iter().map(FailedNode::of).collect(),
        /// The fork that was made; null without one
        fork: Option<&RunName> = fork.0,
        /// The reason for which the fork that was asked for was not made
        not_made?: &str = fork.1,
    }

    /// A path that cannot be computed
    object FailedNode(fault: &NodeFault) {
        /// The path
        path: &str = &fault.path,
        /// The reason
        error: &str = &fault.why,
    }

    /// A node whose value differs
    object DifferentNode(name: &str, before: &Value, after: &Value) {
        /// The node
        node: &str = name,
        /// The recorded value
        recorded: &Value = before,
        /// The value with the other values
        now: &Value = after,
    }

    /// A state that was made again
    object ReplayedObject(item: &ReplayedTick) {
        /// The tick
        tick: u64 = item.tick,
        /// The root of the state
        state_root: Digest = item.root,
        /// The state, or its value at the path, if states were to be printed
        state?: &Value = item.state.as_ref(),
    }

    /// A call that was made once more
    object RereadObject(made: &Reread) {
        let (recorded_at, recorded) = made.recorded.as_ref().map(|(tick, output)| (*tick, output)).unzip();
        /// The tick of the request
        tick: u64 = made.tick,
        /// The place among the calls of the request, from 0
        index: u64 = made.index,
        /// The tool
        tool: &str = &made.tool,
        /// The parameters
        params: &Value = &made.params,
        /// The tick of the recorded answer; null if it is missing
        recorded_at: Option<u64> = recorded_at,
        /// Whether the new output is the recorded one
        same: bool = made.is_same(),
        /// The recorded output
        recorded?: &Value = recorded,
        /// The new output
        now?: &Value = made.now.as_ref().ok(),
        /// The reason why the call has no output
        error?: &String = made.now.as_ref().err(),
    }
}

impl ItemAnswer for ReplayAnswer {
    type Item = ReplayedTick;

    fn item(&mut self, item: &ReplayedTick) -> Option<Value> {
        Some(ReplayedObject::of(item).into())
    }

    fn item_lines(&mut self, item: &ReplayedTick, _: &Page) -> Vec<Line> {
        let state = match &item.state {
            Some(Value::String(text)) => format!("  {}", quote::escape(text)),
            Some(other) => format!("  {}", quote::value(other)),
            None => String::new(),
        };
        vec![format!("{:>6}  {}{state}", item.tick, item.root).into()]
    }

    fn summary(&self) -> Value {
        let Some(replayed) = &self.replayed else { return Value::Null };
        let ticks = TickReplay::of(replayed, self.reread.as_deref());
        let divergence = replayed.error.as_ref().map(|error| problem::replay(error).to_json());
        let unknown = unknown_places(&replayed.unknown).map(|places| places.to_value());
        ReplayDocument::of(&replayed.run, replayed.error.is_none(), divergence, unknown, Some(ticks), None)
            .into()
    }

    fn kept_lines(&mut self, _: &Page) -> Vec<Line> {
        Vec::new()
    }

    /// A replay that fails has no last line: the problem is reported as an error.
    fn last_lines(&mut self, page: &Page) -> Vec<Line> {
        let Some(replayed) = &self.replayed else { return Vec::new() };
        let line = match &replayed.error {
            None => {
                let Replayed { run, tip, ticks, reducer, .. } = replayed;
                let twice = if replayed.twice { ", two evaluations each" } else { "" };
                let ticks = count(*ticks, "tick", "ticks");
                let called = match &self.reread {
                    None => "no model and no tool was called",
                    Some(_) => "no model was called, and no tool but those below",
                };
                format!(
                    "replayed   OK    {ticks} of {tip} of {run}, by {reducer}{twice}; {called}{}",
                    page.of_run(run)
                )
            }
            Some(error) if self.detects => {
                format!("replayed   WARN  {}", quote::escape(&error.to_string()))
            }
            Some(_) => return Vec::new(),
        };
        let made = self.reread.iter().flatten().map(|made| reread_line(made).into());
        [line.into()].into_iter().chain(unknown_line(&replayed.unknown)).chain(made).collect()
    }

    fn end(&self) -> End {
        match self.replayed.as_ref().and_then(|replayed| replayed.error.as_ref()) {
            Some(error) if !self.detects => End::Problem(error.code()),
            _ if self.reread.iter().flatten().any(|made| !made.is_same()) => End::No,
            _ => End::Answered,
        }
    }
}

fn reread_line(made: &Reread) -> String {
    let call = format!("tick {}  {} {}", made.tick, quote::name(&made.tool), quote::value(&made.params));
    let recorded = match &made.recorded {
        None => "no answer recorded".to_owned(),
        Some((tick, output)) => format!("recorded at tick {tick} {}", quote::value(output)),
    };
    match &made.now {
        Ok(_) if made.is_same() => format!("read again  same     {call}  {recorded}"),
        Ok(now) => format!("read again  DIFFERS  {call}  {recorded}, now {}", quote::value(now)),
        Err(why) => format!("read again  FAILED   {call}  {recorded}; {}", quote::escape(why)),
    }
}
