//! The content of `dendrer demo`: runs to try every question on, and bundles that somebody tampered with.
//!
//! Everything is recorded through the kernel, as any other run is, with times and seeds that follow from a name:
//! the same store id gives the same bytes on every machine. The runs are made up after the dendrer paper and say so
//! in their `meta`. A newcomer would break one rule: a step here is never changed without looking at the transcripts
//! and tests that name its tick.

use dendrer::recorder::Fixed;
use dendrer::registry::{self, RegisterError, Sample};
use dendrer::store::Shared;
use dendrer::trace::ReadHandle;
use dendrer::{Error, Trace};
use dendrer_kernel::expr::ExprError;
use dendrer_kernel::predicate::Predicate;
use dendrer_object::note::SigningKey;
use dendrer_object::{Digest, RunName, StoreId};
use dendrer_store::StoreInfo;

mod claims;
mod damage;
mod financial;
mod hostile;
mod logistics;
mod planner;
mod planning;
mod script;
mod shops;
mod sized;
mod trip;
mod trip_forks;

pub(crate) use damage::damaged;
pub(crate) use sized::fill_sized;

/// The id of the demo's store.
pub(crate) const STORE_ID: StoreId = StoreId(*b"dendrer demo 001");

/// The seed of the demo's key. It is published here, so a signature under this key proves nothing.
pub(crate) const KEY_SEED: [u8; 32] = *b"dendrer demo key: proves nothing";

/// Returns the demo's key, named as the log of the demo's store signs.
pub(crate) fn key() -> SigningKey {
    SigningKey::from_seed(&STORE_ID.origin(), KEY_SEED).expect("an origin is a name for a key")
}

/// Describes the demo's store.
pub(crate) fn store_info() -> StoreInfo {
    StoreInfo::new(STORE_ID, key().verifier_key().clone())
}

/// A run of the demo, as it stands in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DemoRun {
    /// The run's id.
    pub(crate) name: RunName,
    /// What it shows, in one line.
    pub(crate) shows: &'static str,
    /// The number of its transitions.
    pub(crate) ticks: u64,
    /// The number of refusals beside it.
    pub(crate) refusals: u64,
    /// Its tip.
    pub(crate) tip: Digest,
}

/// Records all runs of the demo into a store that has none of them.
pub(crate) fn fill(store: &Shared) -> Result<Vec<DemoRun>, Error> {
    let runs: [Story; 10] = [
        (trip::record, "six agents, a conflict, a tool failure, a hallucination, and a plan in the end"),
        (logistics::record, "a policy broken at tick 22 by one unverified observation"),
        (planner::record, "the reference run of the paper, broken at tick 14"),
        (planning::record, "a goal that no plan can meet, broken from tick 1"),
        (financial::record_a, "a trader under a contract, with a high threshold of risk"),
        (financial::record_b, "the same contract with a low one: a trade of A is refused here"),
        (financial::record_c, "the same contract with a high one: a trade of A may be imported"),
        (
            claims::record_9,
            "an insurance claim: its contract is extended, and more is paid than the policy allows",
        ),
        (claims::record_10, "another claim, under the next version of the contract"),
        (hostile::record, "markup, terminal escapes, fake verdicts, huge and deep values, all kept as data"),
    ];
    let forks: [Story; 5] = [
        (
            trip_forks::record_b,
            "a fork of trip-planner-a at tick 30: a cheaper room, and what it costs after all",
        ),
        (
            trip_forks::record_c,
            "a fork of trip-planner-a at tick 30: one question more, and a plan without the boat",
        ),
        (
            trip_forks::record_d,
            "a fork of trip-planner-a at tick 12: three days without the unverified price",
        ),
        (
            logistics::record_fix,
            "a fork of logistics-run-47 at tick 21: another answer of the feed at tick 22",
        ),
        (shops::record, "three agents at once: two prices in conflict, and who decided"),
    ];
    let mut told = tell(store, &runs)?;
    register(store)?;
    // Behind all else, so that what was in the log before there were forks keeps its place.
    told.extend(tell(store, &forks)?);
    Ok(told)
}

/// What records a run, and what it shows, in one line.
type Story = (fn(&Shared) -> Result<RunName, Error>, &'static str);

fn tell(store: &Shared, stories: &[Story]) -> Result<Vec<DemoRun>, Error> {
    let mut told = Vec::with_capacity(stories.len());
    for (record, shows) in stories {
        let name = record(store)?;
        told.push(describe(store, &name, shows)?);
    }
    Ok(told)
}

/// Puts the predicates that the paper asks for by name on record: name, version, what it says, and the run on which it was
/// tested. The oscillator recovers there: it is kept for monitoring, and bisect refuses it.
fn register(store: &Shared) -> Result<(), Error> {
    type Make = fn(&str, &str) -> Result<Predicate, ExprError>;
    const NAMED: [(&str, &str, Make, &str, &str); 4] = [
        ("acme.quality_floor", "v1", Predicate::holds, "state.quality_score >= 0.65", "logistics-run-47"),
        ("ws.risk_threshold", "v1", Predicate::holds, "state.risk_score <= 0.75", "logistics-planner-1"),
        (
            "acme.budget_compliance_v1",
            "v1",
            Predicate::holds,
            "state.plan_total <= state.budget_limit",
            "planning-run-12",
        ),
        (
            "acme.quality_oscillator",
            "v1",
            Predicate::condition,
            "state.quality_score < 0.75",
            "logistics-run-47",
        ),
    ];
    let mut surroundings = Fixed::new("dendrer demo predicates", script::MORNING_MS + 30 * 86_400_000, 1_000);
    for (name, version, make, text, run) in NAMED {
        let predicate = make(name, text).expect("the demo's own expressions are expressions");
        let predicate = predicate.named(name, version);
        let sample = {
            let trace = Trace::open(store, &run.parse().expect("a run id"))?;
            Sample::take(&trace, &predicate)?.0
        };
        registry::register(store, &predicate, vec![sample], &mut surroundings).map_err(
            |error| match error {
                RegisterError::Failed(error) => error,
                refused => unreachable!("the demo's own names are names: {refused}"),
            },
        )?;
    }
    Ok(())
}

/// Says of a recorded run what a list of runs shows.
fn describe(store: &impl ReadHandle, name: &RunName, shows: &'static str) -> Result<DemoRun, Error> {
    let trace = Trace::open(store, name)?;
    let summary = trace.summary();
    Ok(DemoRun {
        name: name.clone(),
        shows,
        ticks: trace.tip(),
        refusals: summary.refusals,
        tip: summary.head.id,
    })
}
