//! Forks: runs that begin at an old tick of another run (dendrer paper 4.1).

use std::sync::Arc;

use dendrer_object::delta::Delta;
use dendrer_object::intent::ForkType;
use dendrer_object::record::{Author, Header, Kind, Link, Record, Rel, SealError, Seed};
use dendrer_object::value::Object;
use dendrer_object::{Digest, Intent, REDACTION, RunName, Value};

use super::finding::Finding;
use super::rules::{self, RuleSet};
use super::terms::{Terms, read_pack};
use super::{
    Change, Inputs, Reason, RunState, Seeds, Stage, StartError, Transition, check_paths, draft_transition,
    read_policy, reducer_note, seal, seal_one,
};
use crate::commitment::{self, ACCEPTED, INITIAL};
use crate::ontology::KERNEL;
use crate::pack::{self, Bound, extend};
use crate::unknown::UnknownPlaces;

/// Terms of a fork, besides the state that it begins with (dendrer paper 4.1).
#[derive(Debug, Clone)]
pub struct Fork {
    /// The new run's id.
    pub run: RunName,
    /// The members of the marker besides the parent and the tick: the reason, words for the agent, the values that
    /// were replaced. An object; nothing in it is enforced.
    pub about: Object,
    /// Whether something is set that the parent has not: another value, rule, pack or answer.
    pub fork_type: ForkType,
    /// The change of state with which it begins.
    pub set: Delta,
    /// By which rules secrets were taken out of this, and how many of each kind; `None` where nothing looked for them.
    pub redaction: Option<Value>,
    /// The rules that every state must keep from here on, where they are not the parent's.
    pub policy: Option<Vec<Value>>,
    /// The pack in force from here on, where it is not the parent's.
    pub pack: Option<Bound>,
    /// The stage from here on, where it is higher than the parent's.
    pub stage: Option<Stage>,
}

impl Fork {
    /// A fork under the terms of its parent.
    pub fn new(run: RunName) -> Fork {
        Fork {
            run,
            about: Object::default(),
            fork_type: ForkType::Natural,
            set: Delta::default(),
            redaction: None,
            policy: None,
            pack: None,
            stage: None,
        }
    }
}

/// The type of the marker with which a fork begins.
pub(super) const FORK: &str = "run.fork";

/// The member of the marker with the origin of the fork.
const FORK_MEMBER: &str = "fork";

/// The parent and the tick at which a fork branched off.
#[derive(Debug, Clone)]
pub(super) struct Forked {
    run: RunName,
    tick: u64,
    id: Digest,
}

/// Forks: begins a run at the head of another one. Returns its `run` record, the marker that is its first
/// transition, and the head behind the marker.
pub fn fork(
    parent: &RunState,
    fork: &Fork,
    inputs: Inputs,
) -> Result<(Record, Record, RunState), StartError> {
    check_paths(&fork.set).map_err(StartError::Change)?;
    fork.set.apply(&parent.state).map_err(|error| StartError::Change(Reason::Reduce(error.into())))?;
    let (begin, mut head) = begin_fork(rules::CURRENT, parent, fork, inputs)?;
    let mut marker = Intent::new(FORK.parse().expect("a type of the ontology"), KERNEL);
    marker.author = Author::Kernel;
    marker.members.push((FORK_MEMBER.into(), Value::Object(fork.about.clone())));
    marker.members.push(("fork_type".into(), Value::from(fork.fork_type.as_str())));
    marker.members.extend(fork.redaction.clone().map(|redaction| (REDACTION.into(), redaction)));
    marker.members.extend(brought_by_pack(&head, fork, inputs).map(|brought| (ACCEPTED.into(), brought)));
    marker.delta = Some(fork.set.clone());
    let marker = make_marker(&mut head, marker, inputs.behind(1))?;
    Ok((begin, marker, head))
}

/// The commitments that the pack of a fork declares and that the parent has not: they bind from the marker on, as they would from the
/// beginning of a run (design, 14.1).
fn brought_by_pack(head: &RunState, fork: &Fork, inputs: Inputs) -> Option<Value> {
    let pack = fork.pack.as_ref().map(|bound| &bound.value)?;
    let is_held = |one: &Value| {
        let all = head.commitments.all();
        all.iter().any(|held| held.author == Author::Institution && held.written == *one)
    };
    let declared = pack.get(INITIAL).and_then(Value::as_array)?;
    if declared.iter().all(is_held) {
        return None;
    }
    let initial = commitment::initial(head.rules.version, None, Some(pack), inputs.clock)?;
    Some(Value::record([(INITIAL, initial), ("run", Value::from(fork.run.as_str()))]))
}

/// Makes the `run` record of a fork, and the head behind it.
fn begin_fork(
    rules: &RuleSet,
    parent: &RunState,
    fork: &Fork,
    inputs: Inputs,
) -> Result<(Record, RunState), StartError> {
    let at = Value::record([
        ("run", Value::from(parent.run.as_str())),
        ("store", Value::from(parent.store.to_string())),
        ("tick", Value::from(parent.tick)),
    ]);
    let mut content: Vec<(&str, Value)> = vec![
        ("kernel", Value::from(rules.version)),
        ("parent", at),
        ("stage", Value::from(fork.stage.map_or(parent.stage, |stage| stage.max(parent.stage)) as u64)),
        ("state_root", Value::from(parent.state.digest())),
    ];
    content.extend(fork.redaction.clone().map(|redaction| (REDACTION, redaction)));
    content.extend(fork.policy.as_ref().map(|rules| ("policy", Value::array(rules.iter().cloned()))));
    if let Some(bound) = &fork.pack {
        content.push(("pack", bound.value.clone()));
        content.push(("pack_text", Value::String(Arc::clone(&bound.text))));
    }
    let header = Header {
        store: parent.store,
        kind: Kind::Run,
        run: Some(fork.run.clone()),
        tick: None,
        prev: Some(parent.id),
        head: None,
        type_name: None,
        author: Author::Kernel,
        ts: inputs.clock.max(parent.ts),
        links: Vec::new(),
        pack: fork.pack.as_ref().map(|bound| pack::digest(&bound.value)).or(parent.terms.digest),
    };
    let record = seal(header, content, inputs.seeds.nth(0))?;
    let mut head = parent.clone();
    head.go_on(&record)?;
    head.id = record.id();
    head.ts = record.header().ts;
    Ok((record, head))
}

impl RunState {
    /// Takes over the terms of the fork that a `run` record begins; where it says nothing, those before it hold on.
    pub(super) fn go_on(&mut self, begin: &Record) -> Result<(), StartError> {
        let content = begin.content();
        self.rules = rules::of(&content)?;
        self.commitments.go_by(self.rules.version);
        let missing = |what: &'static str| StartError::Fork(what);
        let header = begin.header();
        let parent = content.get("parent").ok_or(missing("where it branched off"))?;
        let run = parent.get("run").and_then(Value::as_str).and_then(|run| run.parse().ok());
        self.forked = Some(Forked {
            run: run.ok_or(missing("from which run it branched off"))?,
            tick: parent
                .get("tick")
                .and_then(Value::as_u64)
                .ok_or(missing("at which tick it branched off"))?,
            id: header.prev.ok_or(missing("from which record it branched off"))?,
        });
        self.run = header.run.clone().ok_or(missing("its name"))?;
        if let Some(rules) = content.get("policy").and_then(Value::as_array) {
            self.policy =
                Arc::new(read_policy(&rules.iter().cloned().collect::<Vec<_>>(), self.rules.version)?);
            self.is_judged = false;
        }
        let tick = self.forked.as_ref().map_or(0, |forked| forked.tick);
        let stage = content.get("stage").and_then(Value::as_u64).and_then(Stage::from_number);
        let is_raised = stage.is_some_and(|stage| stage > self.stage);
        self.stage = stage.unwrap_or(self.stage).max(self.stage);
        // Events after the fork did not happen in another run.
        self.enforced_from = self.enforced_from.min(tick + 1);
        let by = (self.rules.version, self.stage);
        if is_raised && content.get("pack").is_none() {
            let pack = self.terms.bound().cloned();
            let from = self.pack_from.max(tick + 1);
            self.terms = Arc::new(Terms::of(pack.as_ref(), &self.state, tick + 1, from, by)?);
        }
        if let Some(pack) = content.get("pack") {
            self.pack_from = tick + 1;
            let terms = Terms::of(Some(pack), &self.state, tick + 1, self.pack_from, by)?;
            self.terms = Arc::new(terms);
            // Extensions of the contract stay in force, later ones too; so they have to fit this pack.
            if extend::listed(pack, &self.state).next().is_some() {
                read_pack(&extend::in_force(pack, &self.state, u64::MAX), self.rules.version)?;
            }
        }
        Ok(())
    }

    /// Begins a recorded fork again at the head of its parent. Returns the record that this makes, and the head after it.
    pub(crate) fn made_at_fork(&self, record: &Record) -> Result<(Record, RunState), StartError> {
        let content = record.content();
        let text = |name: &str| content.get(name).and_then(Value::as_str).map(Arc::<str>::from);
        let fork = Fork {
            redaction: content.get(REDACTION).cloned(),
            stage: content.get("stage").and_then(Value::as_u64).and_then(Stage::from_number),
            policy: content
                .get("policy")
                .and_then(Value::as_array)
                .map(|rules| rules.iter().cloned().collect()),
            pack: content
                .get("pack")
                .map(|value| Bound { value: value.clone(), text: text("pack_text").unwrap_or_default() }),
            ..Fork::new(record.header().run.clone().ok_or(StartError::Fork("its name"))?)
        };
        let seed = record.body().seed().unwrap_or(Seed([0; 16]));
        begin_fork(
            rules::of(&content)?,
            self,
            &fork,
            Inputs { clock: record.header().ts, seeds: Seeds::recorded(seed) },
        )
    }

    /// Whether the next record is the marker of a fork.
    pub(super) fn is_at_fork(&self) -> bool {
        self.forked.as_ref().is_some_and(|forked| forked.tick == self.tick)
    }
}

/// Makes a marker of the kernel, like the one with which a fork begins. At the beginning of a fork
/// the marker says where the fork branched off, whatever the intent says.
pub(super) fn make_marker(
    head: &mut RunState,
    mut marker: Intent,
    inputs: Inputs,
) -> Result<Record, SealError> {
    if let Some(forked) = head.forked.as_ref().filter(|_| head.is_at_fork()) {
        marker.links = vec![Link { rel: Rel::ForkOf, hash: forked.id }];
        for (name, value) in &mut marker.members {
            if &**name == FORK_MEMBER
                && let Value::Object(about) = value
            {
                about.set("parent_run_id", Value::from(forked.run.as_str()));
                about.set("parent_tick", Value::from(forked.tick));
            }
        }
    }
    let change = marker_change(head, &marker);
    let prepared = draft_transition(head, Transition::of(&marker), change, inputs)?;
    Ok(seal_one(head, prepared))
}

/// Puts a finding on record.
pub fn note_finding(head: &mut RunState, finding: &Finding, inputs: Inputs) -> Result<Record, SealError> {
    let type_name = finding.kind.type_name().parse().expect("a type of the ontology");
    let mut intent = Intent::new(type_name, "kernel");
    intent.author = Author::Kernel;
    intent.members.push((finding.kind.member().into(), finding.content.clone()));
    intent.links.clone_from(&finding.links);
    intent.delta = Some(finding.delta.clone());
    make_marker(head, intent, inputs)
}

/// Returns the change that a marker makes. A place that it sets is known from here on.
pub(super) fn marker_change(head: &RunState, marker: &Intent) -> Change {
    let delta = marker.delta.clone().unwrap_or_default();
    match delta.apply(&head.state) {
        Ok(state) => {
            let mut unknown = UnknownPlaces::of(&state);
            unknown.clear_set(&delta);
            let mut change = Change::of(state, delta);
            change.mark(&unknown);
            change
        }
        Err(error) => Change::none(&head.state, Some(reducer_note(head, &error.into(), marker))),
    }
}
