//! The doors: each takes a proposal to the same effect on an equal run.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use dendrer::change::delegate::AcceptReason;
use dendrer::change::graph::{GraphTerms, run_graph};
use dendrer::cherrypick::{Candidate, Imported, PickTerms, import};
use dendrer::fork::{self, ForkTerms};
use dendrer::graph::text;
use dendrer::kernel::commitment::DelegationScope;
use dendrer::kernel::step::{Outcome, Stage, Start};
use dendrer::lines::Reply;
use dendrer::merge::{MergeInput, MergeTerms, Strategy, merge};
use dendrer::rebase::{Fate, RebaseTerms, rebase};
use dendrer::recorder::{Guarded, Recorder};
use dendrer::reduce::reduce;
use dendrer::writer::LineWriter;
use dendrer_object::delta::{Action, Delta};
use dendrer_object::{Intent, Value};
use dendrer_testkit::run_name;

use crate::draw::{PackKind, v};
use crate::found::{Found, Rule};
use crate::world::World;

/// A proposal at a stage of a world.
pub(crate) struct Asked<'w> {
    pub(crate) world: &'w World,
    pub(crate) stage: Stage,
    pub(crate) line: &'w Value,
    pub(crate) intent: &'w Intent,
    /// What the main door said.
    pub(crate) main: &'w Found,
    pub(crate) sources: &'w Sources<'w>,
}

/// The runs that have the proposal, made when they are asked for.
pub(crate) struct Sources<'w> {
    world: &'w World,
    intent: &'w Intent,
    made: RefCell<BTreeMap<&'static str, Option<String>>>,
}

impl<'w> Sources<'w> {
    pub(crate) fn new(world: &'w World, intent: &'w Intent) -> Sources<'w> {
        Sources { world, intent, made: RefCell::default() }
    }

    /// A fork of a run that has the proposal; `None` if it is refused there.
    fn of(&self, parent: &'static str) -> Option<String> {
        let mut made = self.made.borrow_mut();
        made.entry(parent).or_insert_with(|| source(self.world, parent, self.intent)).clone()
    }

    /// The one to take from for a run of a stage: with other limits, of stage 0 or 2.
    fn free(&self, stage: Stage) -> Option<String> {
        self.of(if stage < Stage::Contracts { "free0" } else { "free2" })
    }
}

/// A door.
pub(crate) struct Door {
    pub(crate) name: &'static str,
    pub(crate) ask: fn(&Asked<'_>) -> Found,
    /// What the door does by itself, before or in place of what `commit` does: the code, and the reason.
    pub(crate) own: &'static [(&'static str, &'static str)],
    /// The kinds of rules that it cannot express, with the reason.
    pub(crate) cannot: &'static [(Rule, &'static str)],
    /// Whether it tells what happened and refuses nothing.
    pub(crate) tells: bool,
    /// Whether it begins a run for each proposal.
    pub(crate) begins_a_run: bool,
}

const NO_TOOL: &str = "it takes requests alone";
const FREE: &str = "the run that it takes from, with other limits, refuses it too";
const STAGE_0: &str = "the run of stage 0 that it takes from refuses it too";

/// What a state that is begun with does not have.
const OF_LINES: &[(Rule, &str)] = &[
    (Rule::Requests, "no call"),
    (Rule::Writers, "a person sets it"),
    (Rule::Contracts, "no line"),
    (Rule::Commitments, "no call"),
    (Rule::Scope, "no call"),
    (Rule::Decisions, "no call"),
    (Rule::Rounding, "nothing is added"),
    (Rule::LookAlikes, "no name"),
    (Rule::Stage, "no type, no tool"),
    (Rule::Form, "no author"),
];

/// What the state of a merge does not have: its sources break no rule by themselves.
const OF_MERGES: &[(Rule, &str)] = &[
    (Rule::Requests, "no call"),
    (Rule::Violations, "none of these packs reads two places"),
    (Rule::Writers, "its sources are judged"),
    (Rule::Contracts, "no line"),
    (Rule::Commitments, "no call"),
    (Rule::Scope, "no call"),
    (Rule::Decisions, "no call"),
    (Rule::Rounding, "nothing is added"),
    (Rule::LookAlikes, "no name"),
    (Rule::Stage, "no type, no tool"),
    (Rule::Form, "no author"),
];

/// What a request does not have that begins or ends a run of its own.
const OF_REQUESTS: &[(Rule, &str)] = &[
    (Rule::States, "requests alone"),
    (Rule::Violations, "requests alone"),
    (Rule::Writers, "requests alone"),
    (Rule::Contracts, "requests alone"),
    (Rule::Scope, "tried in a child as base"),
    (Rule::Decisions, "no decision before"),
    (Rule::Rounding, "requests alone"),
    (Rule::Form, "requests alone"),
];

pub(crate) const DOORS: &[Door] = &[
    Door {
        name: "`commit`, several lines",
        ask: several,
        own: &[],
        cannot: &[],
        tells: false,
        begins_a_run: false,
    },
    Door { name: "`commit --causal`", ask: causal, own: &[], cannot: &[], tells: false, begins_a_run: false },
    Door {
        name: "library (`LineWriter`)",
        ask: writer,
        own: &[],
        cannot: &[],
        tells: false,
        begins_a_run: true,
    },
    Door {
        name: "`cherrypick`",
        ask: pick,
        own: &[
            ("E0412", "the basis is another"),
            ("E0415", "the type has no contract"),
            ("E0416", "the source recorded no context for the contract"),
            ("E0419", "an import violates nothing"),
            ("E0453", "support of the source is gone"),
        ],
        cannot: &[],
        tells: false,
        begins_a_run: true,
    },
    Door {
        name: "`rebase`",
        ask: rebased,
        own: &[
            ("context", "the basis is another"),
            ("decided_on", "the basis is another"),
            ("violates", "a rebase violates nothing"),
            ("does_not_apply", "a change that cannot be made ends a rebase"),
            ("no_output", "an answer without output is not used again"),
            ("rules_differ", "the rules are others"),
        ],
        cannot: &[(Rule::Scope, "a child is not rebased onto a run under another contract")],
        tells: false,
        begins_a_run: true,
    },
    Door {
        name: "`fork --replay-rest`",
        ask: replayed,
        own: &[("decided_on", "the basis is another")],
        cannot: &[(Rule::Scope, "the parent is under the same contract")],
        tells: false,
        begins_a_run: true,
    },
    Door {
        name: "`fork --set`",
        ask: set,
        own: &[
            ("E0434", "a state that it begins with breaks no rule"),
            ("E0505", "the pack declares no such field"),
        ],
        cannot: OF_LINES,
        tells: false,
        begins_a_run: false,
    },
    Door {
        name: "`merge`",
        ask: merged,
        own: &[("E0434", "a state that it begins with breaks no rule")],
        cannot: OF_MERGES,
        tells: false,
        begins_a_run: false,
    },
    Door {
        name: "a line after `fork`",
        ask: after_fork,
        own: &[],
        cannot: &[],
        tells: false,
        begins_a_run: false,
    },
    Door {
        name: "a line after `merge`",
        ask: after_merge,
        own: &[],
        cannot: &[],
        tells: false,
        begins_a_run: false,
    },
    Door {
        name: "a line after `reduce`",
        ask: after_reduce,
        own: &[],
        cannot: &[],
        tells: false,
        begins_a_run: false,
    },
    Door { name: "`reduce`", ask: reduced, own: &[], cannot: &[], tells: true, begins_a_run: true },
    Door {
        name: "a child's run",
        ask: child,
        own: &[("E0452", "the tool is not in its scope")],
        cannot: OF_REQUESTS,
        tells: false,
        begins_a_run: false,
    },
    Door {
        name: "`accept`",
        ask: accepted,
        own: &[("E0452", "the tool is not in its scope")],
        cannot: OF_REQUESTS,
        tells: false,
        begins_a_run: true,
    },
    Door { name: "`graph run`", ask: graph, own: &[], cannot: OF_REQUESTS, tells: false, begins_a_run: true },
];

/// The main door: a line by itself, as `commit` takes it.
pub(crate) fn main_door(world: &World, stage: Stage, intent: &Intent) -> Found {
    world.with(&format!("base{stage}"), |_| {}, |recorder| Found::of(&recorder.propose(intent).unwrap()))
}

fn several(asked: &Asked<'_>) -> Found {
    let first = asked.world.intent(&v(r#"{"type":"observation.add","agent":"z"}"#)).unwrap();
    let lines = [first.clone(), asked.intent.clone(), first];
    let ask = |recorder: &mut Recorder| Found::of(&recorder.propose_each(&lines).unwrap()[1]);
    asked.world.with(&format!("base{}", asked.stage), |_| {}, ask)
}

fn causal(asked: &Asked<'_>) -> Found {
    let ask = |recorder: &mut Recorder| {
        let base = recorder.head().tick() - 1;
        match recorder.propose_guarded(asked.intent, true, Some(base)).unwrap() {
            Guarded::Proposed(outcome) => Found::of(&outcome),
            other => panic!("{other:?}"),
        }
    };
    asked.world.with(&format!("base{}", asked.stage), |_| {}, ask)
}

fn writer(asked: &Asked<'_>) -> Found {
    let recorder = asked.world.resume(&format!("base{}", asked.stage));
    let mut writer = LineWriter::new(recorder, World::options(asked.line), 1000).unwrap();
    match writer.take(asked.line).unwrap() {
        Reply::Committed { record, noted, .. } => {
            Found::of_records(&[&record].into_iter().chain(&noted).collect::<Vec<_>>())
        }
        Reply::Refused { refusal, .. } => Found::of_records(&[&refusal]),
        other => panic!("{other:?}"),
    }
}

/// Begins a fork at the tip of a run that has the proposal. `None` if it is refused there.
pub(crate) fn source(world: &World, parent: &str, intent: &Intent) -> Option<String> {
    let name = world.name("source");
    let parent = world.fixed(parent);
    let terms = ForkTerms::new(run_name(&name));
    let (mut recorder, _) = fork::fork(&parent, world.store(), parent.tip(), &terms, world.times()).unwrap();
    let is_taken = recorder.propose(intent).unwrap().committed().is_some();
    if is_taken {
        recorder.commit().unwrap();
    }
    is_taken.then_some(name)
}

fn pick(asked: &Asked<'_>) -> Found {
    let Some(source) = asked.sources.free(asked.stage) else { return Found::Cannot(FREE) };
    let world = asked.world;
    let (source, target) = (world.trace(&source), world.fixed(&format!("base{}", asked.stage)));
    let tick = (1..=source.tip())
        .rev()
        .find(|tick| source.record(*tick).unwrap().header().author != dendrer_object::record::Author::Kernel);
    let candidate = Candidate::read(&source, tick.unwrap()).unwrap();
    let mut pick = candidate.check(&target, target.tip()).unwrap();
    let how = PickTerms { dry: true, again: false };
    match import(world.store(), target.name(), &mut pick, target.tip(), world.times(), how).unwrap() {
        Imported::Done { record, .. } => Found::of_records(&[&record]),
        Imported::Refused(refusal) => Found::of_records(&[&refusal]),
        Imported::Already(_) => panic!("it is new"),
    }
}

/// The outcome of what was proposed again at a tick, or of where that ended.
fn stopped(why: &fork::ReapplyStopped) -> Found {
    match why {
        fork::ReapplyStopped::Refused(code, _) => Found::refused(code.as_str()),
        other => Found::refused(other.kind()),
    }
}

fn rebased(asked: &Asked<'_>) -> Found {
    let Some(source) = asked.sources.free(asked.stage) else { return Found::Cannot(FREE) };
    let world = asked.world;
    let (source, onto) = (world.trace(&source), world.fixed(&format!("base{}", asked.stage)));
    let mut terms = RebaseTerms::new(run_name(&world.name("rebased")));
    terms.keep = false;
    let made = rebase(&source, &onto, onto.tip(), world.store(), &terms, None, world.times());
    let (mut recorder, rebased) = match made {
        Err(error) if error.to_string().contains("contracts of a delegation") => {
            return Found::Cannot("a child is not rebased onto a run under another contract");
        }
        made => made.unwrap(),
    };
    let made = recorder.discard();
    let step = rebased.steps.iter().find(|step| !matches!(step.fate, Fate::Left)).expect("the proposal");
    match &step.fate {
        Fate::Stopped(why) => stopped(why),
        Fate::Carried { tick, .. } => {
            let behind = made.iter().skip_while(|record| record.header().tick != Some(*tick));
            Found::of_records(&behind.collect::<Vec<_>>())
        }
        other => panic!("{other:?}"),
    }
}

/// The pack refuses nothing where the proposal is recorded first, and is in force in the fork.
fn replayed(asked: &Asked<'_>) -> Found {
    let world = asked.world;
    if world.is_child {
        return Found::Cannot("the run that it takes from is under the same contract");
    }
    let parent = world.fixed(&format!("open{}", asked.stage));
    let name = world.name("parent");
    let terms = ForkTerms::new(run_name(&name));
    let (mut recorder, _) = fork::fork(&parent, world.store(), parent.tip(), &terms, world.times()).unwrap();
    if recorder.propose(asked.intent).unwrap().committed().is_none() {
        return Found::Cannot("the run that it takes from refuses it too");
    }
    recorder.commit().unwrap();
    let (tick, parent) = (parent.tip() + 1, world.trace(&name));
    let mut terms = ForkTerms::new(run_name(&world.name("forked")));
    terms.pack = world.pack.bind(Start::new(run_name("any"))).unwrap().pack;
    let (mut recorder, forked) = fork::fork(&parent, world.store(), tick, &terms, world.times()).unwrap();
    let carried = fork::carry_on(&mut recorder, &parent, &forked, &terms, false).unwrap();
    if let Some((_, why)) = &carried.stopped {
        return stopped(why);
    }
    let (_, tick) = carried.ticks[0];
    let made = recorder.discard();
    let behind = made.iter().skip_while(|record| record.header().tick != Some(tick));
    Found::of_records(&behind.collect::<Vec<_>>())
}

/// A state that is begun with has no line, so rules about states alone are asked.
fn seeded(violations: &[dendrer::kernel::step::Broken]) -> Found {
    let ids: Vec<String> = violations.iter().map(|broken| broken.predicate.to_string()).collect();
    let notes = (!ids.is_empty()).then(|| ("violated".to_owned(), ids));
    Found::Taken { notes: notes.into_iter().collect(), would: BTreeSet::new() }
}

fn begun(error: &dendrer::Error) -> Found {
    match error {
        dendrer::Error::BeginsViolated { violations, .. } => {
            let ids = violations.iter().map(|broken| broken.predicate.to_string()).collect();
            Found::Refused(("E0434".to_owned(), ids))
        }
        other => Found::refused(other.code().as_str()),
    }
}

/// The values that a line of an agent sets, if it does nothing else.
fn sets<'i>(asked: &'i Asked<'_>) -> Option<&'i Delta> {
    let delta = asked.intent.delta.as_ref()?;
    let is_set = delta.0.iter().all(|op| op.action == Action::Set);
    let is_state = asked.main.rules().iter().all(|rule| matches!(rule, Rule::States | Rule::Violations));
    (is_set && is_state && asked.intent.type_name.as_str() == "plan.update").then_some(delta)
}

fn set(asked: &Asked<'_>) -> Found {
    let Some(delta) = sets(asked) else {
        return Found::Cannot("it sets values, and rules about states alone are asked");
    };
    let world = asked.world;
    let parent = world.fixed(&format!("base{}", asked.stage));
    let mut terms = ForkTerms::new(run_name(&world.name("set")));
    terms.set = delta.0.iter().map(|op| (op.path.clone(), op.value.clone().unwrap())).collect();
    match fork::fork(&parent, world.store(), parent.tip(), &terms, world.times()) {
        Ok((_, forked)) => seeded(&forked.violations),
        Err(error) => begun(&error),
    }
}

/// Each of two forks sets one of the places of a proposal.
fn merged(asked: &Asked<'_>) -> Found {
    const WHY: &str = "each of two sources sets one place, and neither breaks a rule by itself";
    let Some(delta) = sets(asked).filter(|delta| delta.0.len() == 2 && delta.0[0].path != delta.0[1].path)
    else {
        return Found::Cannot(WHY);
    };
    let world = asked.world;
    let parent = world.fixed(&format!("base{}", asked.stage));
    let mut names = Vec::new();
    for op in &delta.0 {
        let name = world.name("side");
        let terms = ForkTerms::new(run_name(&name));
        let (mut recorder, _) =
            fork::fork(&parent, world.store(), parent.tip(), &terms, world.times()).unwrap();
        let part = Intent { delta: Some(Delta(vec![op.clone()])), ..asked.intent.clone() };
        match recorder.propose(&part).unwrap() {
            Outcome::Committed(_) => drop(recorder.commit().unwrap()),
            _ => return Found::Cannot(WHY),
        }
        names.push(name);
    }
    let sides: Vec<_> = names.iter().map(|name| world.trace(name)).collect();
    let inputs: Vec<_> = sides.iter().map(|trace| MergeInput { trace, tick: trace.tip() }).collect();
    match merge(&inputs, world.store(), &terms_of_merge(&world.name("merged")), world.times()) {
        Ok((_, merged)) => seeded(&merged.violations),
        Err(error) => begun(&error),
    }
}

fn terms_of_merge(name: &str) -> MergeTerms {
    MergeTerms {
        run: run_name(name),
        artifacts: Vec::new(),
        strategy: Strategy::Manual,
        seed_only: false,
        although: None,
    }
}

/// Begins a run that goes on from the lines before the proposal at a stage.
fn go_on(world: &World, stage: Stage, name: &str) {
    let parent = world.fixed(&format!("base{stage}"));
    let terms = ForkTerms::new(run_name(name));
    let (mut recorder, _) = fork::fork(&parent, world.store(), parent.tip(), &terms, world.times()).unwrap();
    recorder.commit().unwrap();
}

fn propose(asked: &Asked<'_>) -> impl FnOnce(&mut Recorder) -> Found {
    let intent = asked.intent;
    move |recorder| Found::of(&recorder.propose(intent).unwrap())
}

fn after_fork(asked: &Asked<'_>) -> Found {
    let name = format!("after-fork-{}", asked.stage);
    asked.world.with(&name, |world| go_on(world, asked.stage, &name), propose(asked))
}

fn after_merge(asked: &Asked<'_>) -> Found {
    let (name, stage) = (format!("after-merge-{}", asked.stage), asked.stage);
    asked.world.with(&name, |world| merge_with_twin(world, stage, &name), propose(asked))
}

/// Merges the run of a stage with a fork that is equal to it.
pub(crate) fn merge_with_twin(world: &World, stage: Stage, name: &str) {
    let twin = world.name("twin");
    go_on(world, stage, &twin);
    let (parent, twin) = (world.fixed(&format!("base{stage}")), world.trace(&twin));
    let inputs = [&*parent, &twin].map(|trace| MergeInput { trace, tick: trace.tip() });
    let (mut recorder, _) = merge(&inputs, world.store(), &terms_of_merge(name), world.times()).unwrap();
    recorder.commit().unwrap();
}

fn after_reduce(asked: &Asked<'_>) -> Found {
    let (name, stage) = (format!("after-reduce-{}", asked.stage), Some(asked.stage));
    let make = |world: &World| {
        let base = world.fixed("base0");
        reduce(&base, world.store(), &world.pack, run_name(&name), None, stage, world.times()).unwrap();
    };
    asked.world.with(&name, make, propose(asked))
}

fn reduced(asked: &Asked<'_>) -> Found {
    let Some(source) = asked.sources.of("base0") else { return Found::Cannot(STAGE_0) };
    let world = asked.world;
    let (source, name) = (world.trace(&source), world.name("reduced"));
    let tick = source.tip();
    let stage = Some(asked.stage);
    let reduced =
        reduce(&source, world.store(), &world.pack, run_name(&name), None, stage, world.times()).unwrap();
    let made = world.trace(&name);
    let tick = tick.min(made.tip());
    let record = (1..=tick).rev().map(|tick| made.record(tick).unwrap());
    let record =
        record.into_iter().find(|record| record.header().author != dendrer_object::record::Author::Kernel);
    let mut found = Found::of_records(&[&record.unwrap()]);
    if let Found::Taken { would, .. } = &mut found {
        let told = reduced.refused.iter().filter(|refused| refused.tick + 1 >= tick);
        would.extend(told.map(|refused| {
            (refused.code.to_string(), refused.ids.iter().map(ToString::to_string).collect())
        }));
    }
    found
}

const SCOPE: &str = r#"{"id":"D","gloss":"g","allowed":{"tools":["pay","refund","look","wipe"]}}"#;

/// Delegates from a run that goes on from the lines before the proposal.
fn delegate(world: &World, stage: Stage, child: &str, at: Stage) {
    let lead = world.name("lead");
    go_on(world, stage, &lead);
    let scope = DelegationScope::read(&v(SCOPE)).unwrap();
    world.repo.delegate(&world.trace(&lead), &scope, &run_name(child), Some(at), false).unwrap();
}

fn child(asked: &Asked<'_>) -> Found {
    if asked.intent.type_name.as_str() != "action.request" {
        return Found::Cannot(NO_TOOL);
    }
    if asked.world.is_child {
        return Found::Cannot("its own child has the same scope");
    }
    let (name, stage) = (format!("child-{}", asked.stage), asked.stage);
    asked.world.with(&name, |world| delegate(world, stage, &name, stage), propose(asked))
}

fn accepted(asked: &Asked<'_>) -> Found {
    if asked.intent.type_name.as_str() != "action.request" {
        return Found::Cannot(NO_TOOL);
    }
    if asked.world.is_child || asked.stage < Stage::Contracts {
        return Found::Cannot("a run of stage 2 or 3 takes from one of stage 0");
    }
    if asked.main.code().is_some_and(|code| ["E0425", "E0426", "E0438"].contains(&code)) {
        return Found::Cannot("what stage 3 alone refuses is for the child's own stage");
    }
    let world = asked.world;
    let name = world.name("child");
    delegate(world, asked.stage, &name, Stage::Observe);
    let mut recorder = world.resume(&name);
    if recorder.propose(asked.intent).unwrap().committed().is_none() {
        return Found::Cannot(STAGE_0);
    }
    recorder.commit().unwrap();
    let accepted = world.repo.accept(&run_name(&name), true).unwrap();
    let told = |reason: &AcceptReason| {
        (reason.code.to_string(), reason.commitments.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    // Each reason is told.
    let same = accepted.reasons.iter().find(|reason| asked.main.code() == Some(reason.code.as_str()));
    match same.or(accepted.reasons.first()) {
        Some(reason) => Found::Refused(told(reason)),
        None => Found::Taken { notes: BTreeSet::new(), would: BTreeSet::new() },
    }
}

const GRAPH: &str = "graph asks
n0 same(request) pure
e1 TOOL(n0) -> rec frontier[1]
n1 pair(n0, e1) pure
replay(graph, frontier) == output required
";

/// The rules of the other packs of which a graph has the places.
fn graph_pack() -> String {
    PackKind::Delta
        .text(true)
        .replace("t.action.params.n", "t.action.params[0].n")
        .replace("action.params.n", "action.params[0].n")
        .replace(
            r#""action.result":{"#,
            r#""goal.complete":{"required_state":{"limit":{"type":"number"}}},"action.result":{"#,
        )
        .replace(r#""types":"#, r#""define":{"same(a)":"a","pair(a, b)":"[a, b]"},"types":"#)
}

/// A graph asks by a request of one tool, of a run of its own; the main door is asked of an equal one.
fn graph(asked: &Asked<'_>) -> Found {
    let action = asked.intent.member("action");
    let tool = action.and_then(|action| action.get("tool")?.as_str());
    let is_one = asked.intent.type_name.as_str() == "action.request"
        && action.is_some_and(|action| action.get("calls").is_none());
    let is_word = |tool: &&str| tool.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let (Some(tool), true, false) = (tool.filter(is_word), is_one, asked.world.is_child) else {
        return Found::Cannot("it asks one tool of a run of its own");
    };
    let Ok(graph) = text::parse(&GRAPH.replace("TOOL", tool)) else {
        return Found::Cannot("it asks one tool of a run of its own");
    };
    let world = asked.world;
    let pack = dendrer::pack::read(graph_pack().as_bytes()).unwrap_or_else(|found| panic!("{found:?}"));
    let params = action.and_then(|action| action.get("params")).cloned().unwrap_or(Value::Null);
    let terms = GraphTerms {
        run: run_name(&world.name("graph")),
        graph: &graph,
        children: &BTreeMap::new(),
        pack: &pack,
        stage: Some(asked.stage),
        inputs: BTreeMap::from([("request".to_owned(), params.clone())]),
        redactor: None,
        resume: None,
    };
    let answer = |_: &dendrer::graph::eval::EdgeRequest| Ok(Value::from(1u64));
    let made = run_graph(world.store(), &terms, &answer, world.times());
    let start = Start { stage: Some(asked.stage), ..Start::new(run_name(&world.name("asks"))) };
    let mut recorder = Recorder::begin(world.store(), &pack.bind(start).unwrap(), world.times()).unwrap();
    let request = Value::record([
        ("action", Value::record([("params", Value::array([params])), ("tool", Value::from(tool))])),
        ("agent", Value::from("asks")),
        ("type", Value::from("action.request")),
    ]);
    let main = Found::of(&recorder.propose(&world.intent(&request).unwrap()).unwrap());
    let found = match made {
        Ok(outcome) => {
            let trace = world.trace(outcome.run.as_str());
            let record = (1..=trace.tip()).map(|tick| trace.record(tick).unwrap());
            let mut record = record.into_iter().filter(|record| {
                record.header().type_name.as_ref().is_some_and(|name| name.as_str() == "action.request")
            });
            Found::of_records(&[&record.next().unwrap()])
        }
        Err(error) => Found::refused(error.code().as_str()),
    };
    let is_same = match (&main, &found) {
        (Found::Refused((one, _)), Found::Refused((two, _))) => one == two,
        (one, two) => one == two,
    };
    assert!(is_same, "graph run: {} at stage {}: {main:?} {found:?}", asked.line, asked.stage);
    // What it did is that of its own main door.
    match (asked.main, &main) {
        (Found::Refused((one, _)), Found::Refused((two, _))) if one == two => found,
        (Found::Taken { .. }, Found::Taken { .. }) if *asked.main == main => found,
        _ => Found::Cannot("its run begins without the lines before"),
    }
}

/// Lines that are rare among drawn ones: a number that is finer than its field is added, and others write a place with writers.
pub(crate) fn rare(kind: PackKind, number: u64) -> Value {
    v(match (kind, number % 3) {
        (PackKind::Delta, 0) => {
            r#"{"type":"plan.update","agent":"a","delta":[{"add":"/paid","value":0.004}]}"#
        }
        (PackKind::Delta, 1) => r#"{"type":"settle","agent":"a","delta":[{"set":"/owner","value":"bob"}]}"#,
        (PackKind::Delta, _) => {
            r#"{"type":"action.result","author":"runtime","agent":"b","action":{"tool":"look","call_id":"k2"},"result":{"output":1,"status":"ok"},"delta":[{"set":"/owner","value":"bob"}]}"#
        }
        (PackKind::Fold, 0) => r#"{"type":"plan.update","agent":"a","intent":{"n":0.004}}"#,
        (PackKind::Fold, _) => r#"{"type":"settle","agent":"a","intent":{"owner":"bob"}}"#,
    })
}

/// The pack kinds of the worlds.
pub(crate) const KINDS: [(PackKind, bool); 3] =
    [(PackKind::Delta, false), (PackKind::Fold, false), (PackKind::Delta, true)];
