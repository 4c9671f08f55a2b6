//! Why an action was taken: its calls with the commitments asked of each, the rules, the decision, and what it relied on and read.
//!
//! Everything is judged over the state before the transition, as the door did.
//!
//! Rule: a tick without a call is answered with no calls, and is no error; test `why_of_an_action_names_what_was_asked`.

use std::sync::Arc;

use dendrer_kernel::commitment::{Authorized, CommitmentOwner, CommitmentStatus, Statuses, calls};
use dendrer_kernel::predicate::Verdict;
use dendrer_object::record::{Author, Record};
use dendrer_object::{Pointer, RunName, Value};

use super::{Index, Trace};
use crate::ask::provenance::decided;
use crate::error::Error;
use crate::run::timeline::policy;
use crate::run::trace::Moment;

/// Why an action was taken.
#[derive(Debug, Clone)]
pub struct ActionWhy {
    /// The run.
    pub run: RunName,
    /// The tick.
    pub tick: u64,
    /// The author of the transition.
    pub author: Author,
    /// The agent.
    pub agent: Option<String>,
    /// The calls; none for a transition without an action.
    pub calls: Vec<CallWhy>,
    /// The policy rules and violations in force, each with its verdict on the request or the state after it.
    pub rules: Vec<(String, Verdict)>,
    /// The decision about the transition.
    pub decision: Option<DecisionWhy>,
    /// The ids that the intent states it relies on.
    pub relies_on: Vec<String>,
    /// The places that rules read for the transition, each with the tick that wrote it last; `None` if the run began with it.
    pub reads: Vec<(Pointer, Option<u64>)>,
}

/// A call, and what was asked of it.
#[derive(Debug, Clone)]
pub struct CallWhy {
    /// The tool.
    pub tool: Option<String>,
    /// The parameters.
    pub params: Option<Value>,
    /// The id of the call.
    pub call_id: Option<String>,
    /// The hard commitments that were active for the call, and what else decided about it.
    pub commitments: Vec<AskedCommitment>,
}

/// A commitment that was asked of a call.
#[derive(Debug, Clone)]
pub struct AskedCommitment {
    /// The id.
    pub id: Arc<str>,
    /// The owner; `None` for what is no commitment of the run, such as the contract of a child.
    pub owner: Option<CommitmentOwner>,
    /// The verdict on the call.
    pub verdict: Verdict,
}

/// A decision about an action.
#[derive(Debug, Clone)]
pub struct DecisionWhy {
    /// The tick of the decision.
    pub tick: u64,
    /// Its author.
    pub author: Author,
    /// `allow`, `deny` or `escalate`.
    pub decision: String,
}

/// Lists the hard commitments that are active for a call over a moment, and whatever else decided about it.
pub(crate) fn asked_of(moment: &Moment, call: &Value, found: &Authorized) -> Vec<AskedCommitment> {
    let counters = || moment.counters.to_value();
    let all = &moment.commitments;
    let statuses = Statuses::of(all, &moment.state, &counters, Some(call));
    let verdict = |id: &str| match found.unjudged.iter().find(|(open, _)| **open == *id) {
        _ if found.violates.iter().any(|(_, broken)| **broken == *id) => Verdict::Violation,
        Some((_, met)) => Verdict::Uncertain(met.message.clone()),
        None => Verdict::Ok,
    };
    let is_active =
        |id: &str| statuses.get(id).is_some_and(|(status, _)| *status == CommitmentStatus::Active);
    let active = all.all().iter().filter(|one| one.is_hard && all.binds(one) && is_active(&one.id));
    let mut asked: Vec<AskedCommitment> = active
        .map(|one| AskedCommitment {
            id: Arc::clone(&one.id),
            owner: Some(all.owner(one)),
            verdict: verdict(&one.id),
        })
        .collect();
    for id in found.ids() {
        if !asked.iter().any(|one| one.id == id) {
            let owner = all.get(&id).map(|one| all.owner(one));
            asked.push(AskedCommitment { owner, verdict: verdict(&id), id });
        }
    }
    asked
}

/// Answers why the action at a tick was taken.
pub fn action(trace: &Trace, tick: u64) -> Result<ActionWhy, Error> {
    let record = trace.record(tick)?;
    let content = record.content();
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let relies_on = content.get("intent").and_then(|said| said.get("relies_on")).and_then(Value::as_array);
    let relies_on: Vec<String> =
        relies_on.into_iter().flat_map(|ids| ids.iter()).filter_map(|id| text(Some(id))).collect();
    let asked = content.get("action").filter(|_| tick > 0);
    let calls = match asked {
        Some(asked) => calls_of(&trace.at(tick - 1)?, asked, &relies_on),
        None => Vec::new(),
    };
    let decision = decided(trace, tick, &record)?.filter(|_| tick > 0);
    let decision = decision.map(|found| {
        let author = trace.record(found.tick).map(|record| record.header().author);
        author.map(|author| DecisionWhy { tick: found.tick, author, decision: found.decision })
    });
    Ok(ActionWhy {
        run: trace.name().clone(),
        tick,
        author: record.header().author,
        agent: text(content.get("agent_id")),
        rules: if calls.is_empty() { Vec::new() } else { policy::verdicts_at(trace, tick)? },
        calls,
        decision: decision.transpose()?,
        relies_on,
        reads: reads(trace, tick, &record)?,
    })
}

fn calls_of(before: &Moment, action: &Value, relies_on: &[String]) -> Vec<CallWhy> {
    let counters = || before.counters.to_value();
    let relies_on: Vec<Arc<str>> = relies_on.iter().map(|id| Arc::from(id.as_str())).collect();
    let listed = action.get("calls").and_then(Value::as_array);
    let mut whole: Vec<&Value> = listed.into_iter().flat_map(|calls| calls.iter()).collect();
    if action.get("tool").is_some() || whole.is_empty() {
        whole.insert(0, action);
    }
    let why = |(call, whole): (Value, &Value)| {
        let found = before.commitments.authorize(&call, &relies_on, &before.state, &counters);
        CallWhy {
            tool: call.get("tool").and_then(Value::as_str).map(str::to_owned),
            params: call.get("params").cloned(),
            call_id: whole.get("call_id").and_then(Value::as_str).map(str::to_owned),
            commitments: asked_of(before, &call, &found),
        }
    };
    calls(action).into_iter().zip(whole).map(why).collect()
}

/// The places that the rules of the pack and those about requests read for a transition, each with its last write.
fn reads(trace: &Trace, tick: u64, record: &Record) -> Result<Vec<(Pointer, Option<u64>)>, Error> {
    let Some(before) = tick.checked_sub(1) else { return Ok(Vec::new()) };
    let mut places = policy::read_by_request(trace, tick, record)?;
    if let Some(pack) = crate::run::pack::of_run(trace)? {
        places.extend(pack.reads_at(&trace.state(before)?, record, None).unwrap_or_default());
    }
    places.sort();
    places.dedup();
    let index = Index::new(trace, before)?;
    Ok(places
        .into_iter()
        .map(|place| (index.last(&place, before), place))
        .map(|(at, place)| (place, at))
        .collect())
}
