//! A replay: the states as they were made again, and whether they are those on record.

use dendrer::ask::replay::{Replayed, ReplayedTick};
use dendrer::graph::eval::NodeFault;
use dendrer::graph::frontier::Substituted;
use dendrer::problem::Problem;
use dendrer::reread::Reread;
use dendrer::run::frontier::GraphRun;
use dendrer_object::document::{As, Either, Shape};
use dendrer_object::{Code, Digest, Object, RunName, Value, document};

use crate::answer::{Answer, End, ItemAnswer, Line, Page};
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
        program: Option<ProgramReplay>,
    ) {
        /// The run
        run: &RunName = name,
        /// The parts that were made again
        made: ["ticks" | "graph" | "program"] = match () {
            () if graph.is_some() => "graph",
            () if program.is_some() => "program",
            () => "ticks",
        },
        /// Whether everything was made again as it is on record
        ok: bool = is_same,
        /// The first difference from the record; null if it is missing
        divergence: As<Option<Object>> = As::new(difference),
        /// The unknown places of the last state, or the paths of a graph that other values leave unknown
        unknown?: As<Vec<Either<UnknownPlace, String>>> = places.map(As::new),
        ..?TickReplay = ticks,
        ..?GraphReplay = graph,
        ..?ProgramReplay = program,
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

    /// The replay of a run by its program
    pub object ProgramReplay(answer: &ProgramReplayAnswer<'_>) {
        /// Whether the program had no network but the record
        isolated: bool = answer.not_isolated.is_none(),
        /// The reason why it had; null if it had none
        not_isolated: Option<&str> = answer.not_isolated,
        /// The counts of calls
        calls: ProgramCalls = ProgramCalls::of(answer),
        /// The exit code of the program; 128 and the signal if one ended it
        program_exit: u64 = u64::from(answer.exit),
        /// Tools inside the program, which ran again
        again: &[String] = answer.again,
        /// The places at which requests differed, and which were left out
        volatile: Vec<VolatileObject> =
            answer.volatile.iter().map(|(place, requests)| VolatileObject::of(place, *requests)).collect(),
    }

    /// A place at which requests of a program differ from run to run
    object VolatileObject(name: &str, count: u64) {
        /// The place, as API:POINTER
        place: &str = name,
        /// The number of requests
        requests: u64 = count,
    }

    /// The calls of a program
    object ProgramCalls(answer: &ProgramReplayAnswer<'_>) {
        /// Calls on record
        recorded: u64 = answer.recorded,
        /// Calls that were served
        served: u64 = answer.served,
        /// Calls on record that the program did not make
        left: u64 = answer.recorded - answer.served,
    }

    /// The first place at which a program departs from its record
    pub(crate) object DepartureObject(departure: &ProgramDeparture) {
        /// The recorded call that was due; null if none was left
        call: Option<u64> = departure.call,
        /// The API
        api: &str = &departure.api,
        /// The agent whose conversation it is
        conversation: &str = &departure.agent,
        /// The way in which it departs
        kind: &str = departure.kind,
        /// The place in the request
        path: Option<&str> = departure.path.as_deref(),
        /// The recorded value at the place
        expected: Option<&Value> = departure.expected.as_ref(),
        /// The value now
        got: Option<&Value> = departure.got.as_ref(),
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
        ReplayDocument::of(
            &replayed.run,
            replayed.error.is_none(),
            divergence,
            unknown,
            Some(ticks),
            None,
            None,
        )
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

/// A replay of a run by its program.
#[derive(Debug, Clone)]
pub struct ProgramReplayAnswer<'a> {
    /// The run.
    pub run: &'a RunName,
    /// The reason why the program had a network; `None` if it had none.
    pub not_isolated: Option<&'a str>,
    /// Calls on record.
    pub recorded: u64,
    /// Calls that were served.
    pub served: u64,
    /// The exit code of the program.
    pub exit: u8,
    /// Tools inside the program, which ran again.
    pub again: &'a [String],
    /// Places at which requests differed that were served all the same, each with the number of requests.
    pub volatile: Vec<(String, u64)>,
    /// The first place at which the program departs from the record.
    pub departure: Option<ProgramDeparture>,
}

/// A place at which a program departs from its record.
#[derive(Debug, Clone)]
pub struct ProgramDeparture {
    /// The recorded call that was due.
    pub call: Option<u64>,
    /// The API.
    pub api: String,
    /// The agent.
    pub agent: String,
    /// One of `changed_request`, `missing` and `surplus`.
    pub kind: &'static str,
    /// The place in the request.
    pub path: Option<String>,
    /// The recorded value.
    pub expected: Option<Value>,
    /// The value now.
    pub got: Option<Value>,
}

impl ProgramReplayAnswer<'_> {
    /// The place at which the program departs, as a value.
    pub fn divergence(&self) -> Option<Value> {
        self.departure.as_ref().map(|departure| DepartureObject::of(departure).into())
    }

    /// The lines that are written before the program starts.
    pub fn head(run: &RunName, not_isolated: Option<&str>) -> [String; 2] {
        let isolated = match not_isolated {
            None => "isolated     network namespace".to_owned(),
            Some(why) => format!("NOT ISOLATED {}", quote::escape(why)),
        };
        [format!("made again   {run} by its program, answers from the record"), isolated]
    }
}

impl Answer for ProgramReplayAnswer<'_> {
    fn document(&self) -> Value {
        let departure = self.divergence();
        let program = Some(ProgramReplay::of(self));
        ReplayDocument::of(self.run, self.departure.is_none(), departure, None, None, None, program).into()
    }

    fn lines(&self, _: &Page) -> Vec<Line> {
        let line = self.departure.as_ref().map_or_else(
            || {
                let calls = count(self.recorded, "call", "calls");
                format!("OK           {calls} served; the program ended with exit code {}", self.exit)
            },
            ProgramDeparture::line,
        );
        let volatile = self.volatile.iter().map(|(place, requests)| {
            let requests = count(*requests, "request", "requests");
            Line::note(format!("volatile     {}  {requests}", quote::escape(place)))
        });
        volatile.chain([Line::note(line)]).collect()
    }

    fn end(&self) -> End {
        if self.departure.is_some() { End::Problem(Code::E0701) } else { End::Answered }
    }
}

impl ProgramDeparture {
    /// The line with the place at which the program departs.
    pub(crate) fn line(&self) -> String {
        let call = self.call.map_or_else(|| "a call more".to_owned(), |call| format!("call {call}"));
        let mut line = format!("DIVERGED     {call} of {}", quote::name(&self.agent));
        match &self.path {
            Some(path) => {
                let side = |value: &Option<Value>| {
                    value.as_ref().map_or_else(|| "(absent)".to_owned(), quote::value)
                };
                let (expected, got) = (side(&self.expected), side(&self.got));
                line.push_str(&format!(": {}  recorded {expected}  now {got}", quote::escape(path)));
            }
            None => line.push_str(match self.kind {
                "missing" => ": it was not made",
                "surplus" => ": no recorded call is left for it",
                _ => ": its request is another one",
            }),
        }
        line
    }
}
