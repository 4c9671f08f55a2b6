//! An ordered log of steps with a context (witness-log paper 2.3).

use std::fmt;
use std::sync::Arc;

use dendrer_object::Digest;
use dendrer_object::time::Timestamp;

use crate::action::ActionType;
use crate::row::{RowText, RowValue};
use crate::scrub::scrub;
use crate::step::{RowStepError, StartedAt, Step, StepStamp, content_hash_of, hashed, header_hash};

/// The measurements of a probe at a step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CoherenceSnapshot {
    /// Coherence.
    pub phi: Option<f64>,
    /// Phase lock.
    pub kuramoto_r: Option<f64>,
    /// Coherence of a channel, by name.
    pub channel_coherence: Option<Vec<(String, f64)>>,
}

/// Measures coherence at a step that brings no value of its own.
pub type CoherenceProbe = Arc<dyn Fn(&Step) -> Option<CoherenceSnapshot> + Send + Sync>;

/// Receives each step before it is recorded.
pub type Forwarder = Arc<dyn Fn(&Step) + Send + Sync>;

/// An append-only chain: a step that landed is not changed, and none is removed.
///
/// Probes and forwarders belong to one chain; none is shared by a process, so that no connection sees the steps of another.
#[derive(Clone)]
pub struct InteractionChain {
    chain_id: String,
    started_at: StartedAt,
    steps: Vec<Step>,
    /// Free members that say where the chain comes from.
    pub context: RowValue,
    probe: Option<(String, CoherenceProbe)>,
    forwarder: Option<Forwarder>,
}

impl fmt::Debug for InteractionChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InteractionChain")
            .field("chain_id", &self.chain_id)
            .field("steps", &self.steps.len())
            .finish_non_exhaustive()
    }
}

impl InteractionChain {
    /// A chain without steps. An id has twelve hexadecimal digits; any text is taken here, and
    /// [`check_chain_id`](crate::check_chain_id) says whether it can name a file.
    pub fn new(chain_id: &str, started_at: Timestamp) -> InteractionChain {
        InteractionChain::begun(chain_id, StartedAt::of(started_at))
    }

    /// As [`InteractionChain::new`], begun at a moment as a row has it.
    pub fn begun(chain_id: &str, started_at: StartedAt) -> InteractionChain {
        InteractionChain {
            chain_id: chain_id.to_owned(),
            started_at,
            steps: Vec::new(),
            context: RowValue::Object(Vec::new()),
            probe: None,
            forwarder: None,
        }
    }

    /// Its id.
    pub fn chain_id(&self) -> &str {
        &self.chain_id
    }

    /// When it began.
    pub fn started_at(&self) -> &StartedAt {
        &self.started_at
    }

    /// The steps, in their order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// How many steps there are.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there is no step.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The last step.
    pub fn last(&self) -> Option<&Step> {
        self.steps.last()
    }

    /// Asks `probe`, under its name, for the coherence of steps that bring none: replies of models, tool calls, training steps,
    /// phases of evaluations and rewards.
    pub fn register_coherence_probe(&mut self, name: &str, probe: CoherenceProbe) {
        self.probe = Some((name.to_owned(), probe));
    }

    /// Asks no probe from now on.
    pub fn clear_coherence_probe(&mut self) {
        self.probe = None;
    }

    /// Passes each step that is recorded from now on to `forwarder`.
    pub fn set_forwarder(&mut self, forwarder: Option<Forwarder>) {
        self.forwarder = forwarder;
    }

    /// Appends a step; `result` replaces its output before it lands. Asks no probe and forwards nothing.
    pub fn append(&mut self, mut step: Step, result: Option<RowValue>) -> &Step {
        step.output = result.unwrap_or(step.output);
        self.steps.push(step);
        self.steps.last().expect("pushed above")
    }

    /// Appends a step with what the probe measures, and forwards it.
    pub fn record(&mut self, mut step: Step) -> &Step {
        let is_bare = step.phi.is_none() && step.kuramoto_r.is_none() && step.channel_coherence.is_none();
        if let Some((name, probe)) = self.probe.as_ref().filter(|_| is_bare && step.action.is_probed())
            && let Some(snapshot) = probe(&step)
        {
            step.probe_call = Some(probe_call(name, &step, &snapshot));
            step.phi = snapshot.phi;
            step.kuramoto_r = snapshot.kuramoto_r;
            step.channel_coherence = snapshot.channel_coherence;
        }
        if let Some(forwarder) = &self.forwarder {
            forwarder(&step);
        }
        self.append(step, None)
    }

    /// The steps of a type, in their order.
    pub fn by_action(&self, action: ActionType) -> impl Iterator<Item = &Step> {
        self.steps.iter().filter(move |step| step.action == action)
    }

    /// The share of steps that succeeded; 1 without steps.
    pub fn success_rate(&self) -> f64 {
        if self.steps.is_empty() {
            return 1.0;
        }
        self.steps.iter().filter(|step| step.success).count() as f64 / self.steps.len() as f64
    }

    /// When each step began, and its coherence.
    pub fn coherence_trajectory(&self) -> Vec<(&str, Option<f64>)> {
        self.steps.iter().map(|step| (step.started_at.as_str(), step.phi)).collect()
    }

    /// The header of the file: id, beginning and context.
    pub fn header(&self) -> RowValue {
        self.object_of([("context", scrub(&self.context))])
    }

    /// The chain as one value; each step as [`Step::to_row`] with its hash.
    pub fn to_dict(&self) -> RowValue {
        let steps = self.steps.iter().map(|step| hashed(step.to_row(), None)).collect();
        self.object_of([("steps", RowValue::List(steps)), ("context", scrub(&self.context))])
    }

    fn object_of<const N: usize>(&self, members: [(&str, RowValue); N]) -> RowValue {
        let begin = [
            ("chain_id", RowValue::from(&*self.chain_id)),
            ("started_at", RowValue::from(self.started_at.as_str())),
        ];
        let members = begin.into_iter().chain(members);
        RowValue::Object(members.map(|(name, value)| (RowText::from(name), value)).collect())
    }

    /// The header and a row for each step, each with the hash of the line before it. No newline ends the text.
    pub fn to_jsonl(&self) -> String {
        let header = self.header().to_string();
        let mut prev = header_hash(&header);
        let mut lines = vec![header];
        for step in &self.steps {
            let row = hashed(step.to_row(), Some(&prev));
            prev = content_hash_of(&row).expect("hashed above").to_owned();
            lines.push(row.to_string());
        }
        lines.join("\n")
    }

    /// Reads what [`InteractionChain::to_dict`] wrote. `stamp` gives what a step lacks, by its number.
    pub fn from_dict(
        chain: &RowValue,
        mut stamp: impl FnMut(usize) -> StepStamp,
    ) -> Result<InteractionChain, RowStepError> {
        let text = |name| chain.get(name).and_then(RowValue::as_str);
        let id = text("chain_id").ok_or(RowStepError::Member("chain_id"))?;
        let at = text("started_at").and_then(StartedAt::parse).ok_or(RowStepError::Member("started_at"))?;
        let mut read = InteractionChain::begun(id, at);
        if let Some(context) = chain.get("context") {
            read.context = context.clone();
        }
        if let Some(RowValue::List(steps)) = chain.get("steps") {
            for (n, row) in steps.iter().enumerate() {
                read.append(Step::from_row(row, || stamp(n))?, None);
            }
        }
        Ok(read)
    }
}

/// How a probe is named beside the values it gave: fingerprints of what it saw and said, and which fields it filled.
fn probe_call(name: &str, step: &Step, snapshot: &CoherenceSnapshot) -> RowValue {
    let print = |text: String| RowValue::from(&Digest::of(text.as_bytes()).hex()[..12]);
    let seen = RowValue::List(vec![
        RowValue::from(step.action.as_str()),
        RowValue::from(&*step.name),
        step.input.clone(),
        step.output.clone(),
    ]);
    let filled = [
        ("phi", snapshot.phi.is_some()),
        ("kuramoto_r", snapshot.kuramoto_r.is_some()),
        ("channel_coherence", snapshot.channel_coherence.is_some()),
    ];
    let filled = filled.into_iter().filter(|(_, is)| *is).map(|(name, _)| RowValue::from(name));
    let members = [
        ("probe_name", RowValue::from(name)),
        ("inputs_sha256", print(seen.to_string())),
        ("output_sha256", print(format!("{snapshot:?}"))),
        ("populated", RowValue::List(filled.collect())),
    ];
    RowValue::Object(members.into_iter().map(|(name, value)| (RowText::from(name), value)).collect())
}
