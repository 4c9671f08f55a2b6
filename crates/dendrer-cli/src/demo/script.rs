//! Scripts: a run as JSON lines, recorded through the kernel.
//!
//! The first line begins the run. `run` is its id, `shows` a line about it, and `begins` the time at which its clock starts. `goal`,
//! `meta`, `policy`, `stage` and `state` are those of its first record; `pack` is one of [`FILES`], and `pack_edits` lists texts of
//! that file (`from`) and what replaces them (`to`). With `redacts`, secrets are taken out as at every door. A fork has `parent`,
//! `tick` and `reason` in place of these. With `replace`, a list of `tick`, `output` and `delta`, other outputs replace recorded
//! ones, and the parent's later intents are carried on. A graph's run has `graph` and `pack`, two of [`FILES`], and `inputs`; each
//! later line is the `value` of an `edge`.
//!
//! Any other line is an intent as `dendrer commit --as runtime` takes it, or one of a user, except that a link has the `tick` of its record and
//! no `hash`. Two lines are no intents: `{"anomaly": KIND, "about": {...}}`, with an `agent` or without, notes an anomaly of the
//! runtime, and `{"extension": FILE}` extends the contract.
//!
//! Rule: a change of a line changes the ids of all records after it; test `demo_bytes_are_equal_on_every_machine`.

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer::change::graph::{EdgeEnd, EdgeFailure, GraphTerms, run_graph};
use dendrer::fork::{self, ForkTerms, ReplacedAnswer};
use dendrer::graph::text::parse;
use dendrer::pack::{self, yaml::Document};
use dendrer::record::lines::{Authors, LineOptions, LineRead};
use dendrer::recorder::{Fixed, Recorder};
use dendrer::redact::{PackRules, RedactionProfile, Redactor};
use dendrer::store::Shared;
use dendrer::trace::ReadHandle;
use dendrer::{Error, Trace};
use dendrer_kernel::step::{Anomaly, Extension, Stage, Start};
use dendrer_object::record::{Kind, Record};
use dendrer_object::{Delta, Digest, Intent, RunName, Timestamp, Value, json};

/// 2026-02-23T08:00:00.000Z, the day of the demo's runs.
pub(super) const MORNING_MS: u64 = 1_771_833_600_000;

/// A run of the demo in a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DemoRun {
    /// The run's id.
    pub(crate) name: RunName,
    /// A line about it.
    pub(crate) shows: String,
    /// The number of its transitions.
    pub(crate) ticks: u64,
    /// The number of its refusals.
    pub(crate) refusals: u64,
    /// Its tip.
    pub(crate) tip: Digest,
}

/// Files that lines name.
const FILES: [(&str, &str); 7] = [
    ("financial.yaml", include_str!("../../../../examples/packs/financial.yaml")),
    ("insurance-claims.yaml", include_str!("../../../../examples/packs/insurance-claims.yaml")),
    ("insurance-kyc.yaml", include_str!("../../../../examples/extensions/insurance-kyc.yaml")),
    ("note.yaml", include_str!("note.yaml")),
    ("run-84f2.graph", include_str!("run-84f2.graph")),
    ("trip.yaml", include_str!("trip.yaml")),
    ("workshop.yaml", include_str!("workshop.yaml")),
];

/// Records a run that a store does not have.
pub(super) fn record(store: &Shared, script: &str) -> Result<DemoRun, Error> {
    let mut lines = script.lines().map(read);
    let first = lines.next().expect("a script has a first line");
    if first.get("graph").is_some() {
        record_graph(store, &first, lines)?;
        return describe(store, &name(&first, "run"), text(&first, "shows"));
    }
    let mut script = match first.get("parent") {
        None => Script::begin(store, &first)?,
        Some(_) => Script::fork(store, &first)?,
    };
    lines.try_for_each(|line| script.take(line))?;
    script.recorder.commit()?;
    describe(store, script.recorder.head().run(), text(&first, "shows"))
}

/// Records the run of a graph, whose effects have the values of its lines.
fn record_graph(store: &Shared, first: &Value, lines: impl Iterator<Item = Value>) -> Result<(), Error> {
    let graph = parse(file(text(first, "graph"))).expect("the demo's own graph is in order");
    let pack = pack::read(file(text(first, "pack")).as_bytes()).expect("the demo's own packs are packs");
    let inputs = member(first, "inputs").as_object().expect("inputs by name");
    let terms = GraphTerms {
        run: name(first, "run"),
        graph: &graph,
        children: &BTreeMap::new(),
        pack: &pack,
        inputs: inputs.iter().map(|(name, value)| (name.to_string(), value.clone())).collect(),
        stage: None,
        redactor: None,
        resume: None,
    };
    let values: Vec<Value> = lines.collect();
    let outcome = run_graph(
        store,
        &terms,
        &|edge| {
            let is_of = |line: &&Value| text(line, "edge") == edge.path;
            let line = values.iter().find(is_of);
            line.map(|line| member(line, "value").clone())
                .ok_or_else(|| EdgeFailure::new(EdgeEnd::NoStart, "the demo has no value of it"))
        },
        environment(first),
    )?;
    assert!(outcome.output.is_some(), "the demo's own graph ends well: {outcome:?}");
    Ok(())
}

/// Describes a recorded run.
pub(super) fn describe(store: &impl ReadHandle, name: &RunName, shows: &str) -> Result<DemoRun, Error> {
    let trace = Trace::open(store, name)?;
    let summary = trace.summary();
    Ok(DemoRun {
        name: name.clone(),
        shows: shows.to_owned(),
        ticks: trace.tip(),
        refusals: summary.refusals,
        tip: summary.head.id,
    })
}

/// Reads a line of the demo.
pub(super) fn read(line: &str) -> Value {
    json::parse_door(line.as_bytes()).expect("the demo's own lines are JSON")
}

/// Reads an intent of the demo.
fn intent(line: &Value) -> Intent {
    let options = LineOptions { authors: Authors::RuntimeAndUser, ..LineOptions::default() };
    match options.read_value(line) {
        LineRead::Intent(intent) => *intent,
        LineRead::Fault(_, fault) => panic!("a line of the demo is no intent: {fault:?}"),
    }
}

/// A member of a line, which must have it.
pub(super) fn member<'l>(line: &'l Value, name: &str) -> &'l Value {
    line.get(name).unwrap_or_else(|| panic!("a line of the demo has no {name}"))
}

/// The id of a run that a line names.
pub(super) fn name(line: &Value, member_name: &str) -> RunName {
    text(line, member_name).parse().expect("the demo's own names are names")
}

fn text<'l>(line: &'l Value, name: &str) -> &'l str {
    member(line, name).as_str().expect("a text")
}

/// A tick that a line names.
fn tick(line: &Value) -> u64 {
    member(line, "tick").as_u64().expect("a tick")
}

/// The items of a list; none if the line has no such list.
fn list<'l>(line: &'l Value, name: &str) -> impl Iterator<Item = &'l Value> {
    line.get(name).and_then(Value::as_array).into_iter().flat_map(|list| list.iter())
}

fn file(name: &str) -> &'static str {
    FILES.iter().find(|(known, _)| *known == name).expect("a file of the demo").1
}

/// Clock and seeds of a run.
fn environment(first: &Value) -> Box<Fixed> {
    let begins: Timestamp = text(first, "begins").parse().expect("a time");
    Box::new(Fixed::new(&format!("dendrer demo {}", text(first, "run")), begins.ms(), 1_370))
}

/// A run that is being recorded.
struct Script {
    recorder: Recorder,
    /// The id of the record at each tick.
    ids: Vec<Digest>,
}

impl Script {
    fn begin(store: &Shared, first: &Value) -> Result<Script, Error> {
        let mut start = Start::new(name(first, "run"));
        start.goal = Some(text(first, "goal").into());
        start.state = member(first, "state").clone();
        start.policy = list(first, "policy").cloned().collect();
        if let Some(stage) = first.get("stage").and_then(Value::as_u64) {
            start.stage = Stage::from_number(stage);
        }
        if let Some(pack) = first.get("pack").and_then(Value::as_str) {
            let mut source = file(pack).to_owned();
            for edit in list(first, "pack_edits") {
                source = source.replace(text(edit, "from"), text(edit, "to"));
            }
            start = pack::read(source.as_bytes()).expect("the demo's own packs are packs").bind(start)?;
        }
        start.meta = first.get("meta").cloned();
        let mut recorder = Recorder::begin(store, &start, environment(first))?;
        if first.get("redacts").is_some() {
            let (rules, tags) = (PackRules::default(), Digest::of(b"dendrer demo tags").0);
            let redactor = Redactor::new(RedactionProfile::Default, &rules, &[], Some(tags));
            recorder = recorder.redacting(Some(Arc::new(redactor.expect("no pack, so no rule that fails"))));
        }
        Ok(Script { ids: vec![recorder.head().id()], recorder })
    }

    fn fork(store: &Shared, first: &Value) -> Result<Script, Error> {
        let (parent, tick) = (Trace::open(store, &name(first, "parent"))?, tick(first));
        let mut terms = ForkTerms::new(name(first, "run"));
        terms.reason = Some(text(first, "reason").into());
        for answer in list(first, "replace") {
            let delta = Delta::from_value(member(answer, "delta")).expect("a delta");
            let replaced = ReplacedAnswer { output: member(answer, "output").clone(), delta: Some(delta) };
            terms.replace.insert(self::tick(answer), replaced);
        }
        let mut ids = (0..=tick).map(|at| Ok(parent.record(at)?.id())).collect::<Result<Vec<_>, Error>>()?;
        let (mut recorder, forked) = fork::fork(&parent, store, tick, &terms, environment(first))?;
        ids.push(forked.marker.id());
        if !terms.replace.is_empty() {
            fork::carry_on(&mut recorder, &parent, &forked, &terms, false)?;
        }
        Ok(Script { recorder, ids })
    }

    /// Takes a line onto the run.
    fn take(&mut self, line: Value) -> Result<(), Error> {
        let records = if let Some(kind) = line.get("anomaly").and_then(Value::as_str) {
            let agent = line.get("agent").and_then(Value::as_str).map(Into::into);
            let anomaly = Anomaly { kind: kind.into(), about: member(&line, "about").clone(), agent };
            vec![self.recorder.note_anomaly(&anomaly)?]
        } else if let Some(extension) = line.get("extension").and_then(Value::as_str) {
            let value =
                Document::read(file(extension).as_bytes()).expect("the demo's own files are YAML").value;
            let extension = Extension::check(self.recorder.head(), &value, None);
            vec![self.recorder.extend(&extension.expect("the demo's own extension is in order"))?]
        } else {
            let outcome = self.recorder.propose(&intent(&self.linked(line)))?;
            outcome.records().into_iter().cloned().collect()
        };
        let transitions = records.iter().filter(|record| record.header().kind == Kind::Transition);
        self.ids.extend(transitions.map(Record::id));
        Ok(())
    }

    /// Puts the ids of records into links that have their ticks.
    fn linked(&self, mut line: Value) -> Value {
        let hash = |link: &Value| self.ids[usize::try_from(tick(link)).expect("a tick of the run")];
        let links: Vec<Value> = list(&line, "links")
            .map(|link| {
                Value::record([("rel", member(link, "rel").clone()), ("hash", Value::from(hash(link)))])
            })
            .collect();
        if let (Value::Object(line), false) = (&mut line, links.is_empty()) {
            line.set("links", Value::array(links));
        }
        line
    }
}
