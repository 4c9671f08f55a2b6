//! The content of `dendrer demo`: runs to try every question on, and damaged bundles.
//!
//! The runs are scripts, files of JSON lines ([`script`] has their form). Everything is recorded through the kernel, as any
//! other run is, with clocks and seeds that follow from a name: the same store id gives the same bytes on every machine. The runs
//! are made up after the five documents, and their `meta` says so; that of a graph's run has its inputs.
//!
//! Rule: a line of a script changes only together with the transcripts and tests that name its tick; test
//! `demo_bytes_are_equal_on_every_machine`.

use dendrer::recorder::Fixed;
use dendrer::registry::{self, RegisterError, Sample};
use dendrer::store::Shared;
use dendrer::{Error, Trace};
use dendrer_object::StoreId;
use dendrer_object::note::SigningKey;
use dendrer_store::StoreInfo;

mod damage;
pub(crate) mod making;
mod script;
mod sized;

pub(crate) use damage::damaged;
pub(crate) use script::DemoRun;
pub(crate) use sized::fill_sized;

/// The id of the demo's store.
pub(crate) const STORE_ID: StoreId = StoreId(*b"dendrer demo 001");

/// The seed of the demo's key. It is public, so a signature under this key proves nothing.
pub(crate) const KEY_SEED: [u8; 32] = *b"dendrer demo key: proves nothing";

/// Returns the demo's key, named as the log of the demo's store signs.
pub(crate) fn key() -> SigningKey {
    SigningKey::from_seed(&STORE_ID.origin(), KEY_SEED).expect("an origin is a name for a key")
}

/// Describes the demo's store.
pub(crate) fn store_info() -> StoreInfo {
    StoreInfo::new(STORE_ID, key().verifier_key().clone())
}

/// Scripts in the order of the log; `hostile-1` follows them.
const RUNS: [&str; 9] = [
    // Dendrer paper 7. Ticks 1 to 5 and the end are those of its receipt, ticks 13 to 20 those of its policy flip (4.3).
    include_str!("trip-planner-a.jsonl"),
    // Dendrer paper, appendix C. The quality score recovers at tick 17, so bisect refuses a predicate on it. The request at tick 20
    // is answered at tick 26.
    include_str!("logistics-run-47.jsonl"),
    // Dendrer paper 4.8. Ticks 1, 8, 13, 14, 17 and 20 are as printed there.
    include_str!("logistics-planner-1.jsonl"),
    // Dendrer paper, appendix C. The goal asks for more than the budget allows: no state precedes the violation.
    include_str!("planning-run-12.jsonl"),
    // Dendrer paper 4.4. At stage 2, so that each trade has the hash of the state that it was decided on.
    include_str!("financial-agent-A.jsonl"),
    include_str!("financial-agent-B.jsonl"),
    include_str!("financial-agent-C.jsonl"),
    // Dendrer paper, appendix G: 6,000 are paid at tick 12 and 4,400 at tick 33, of 10,000.
    include_str!("claims-9.jsonl"),
    // Under another version of the contract: nothing of `claims-9` is imported into it.
    include_str!("claims-10.jsonl"),
];

/// Scripts that follow the predicates, so that the log of the runs before them is as it was without them.
const FORKS: [&str; 9] = [
    // The marker of a fork takes a tick: tick 31 of a is tick 32 of b. Ticks 34 to 38 of c are ticks 32 to 36 of a. b and c end
    // with as much money left and with another itinerary, so that a merge of the two has one conflict.
    include_str!("trip-planner-b.jsonl"),
    include_str!("trip-planner-c.jsonl"),
    include_str!("trip-planner-d.jsonl"),
    // The parent is carried on up to tick 23, which was decided on a risk that is another here.
    include_str!("logistics-fix-1.jsonl"),
    // Forensic debugger specification, 3.3.
    include_str!("shop-team.jsonl"),
    // Rules make the sum: a price in EUR is added at tick 184, the limit is passed at tick 290, and the mail of tick 296 is not sent.
    include_str!("workshop-300.jsonl"),
    // CCAS paper, appendix C, and the debugger's specification, 3: `beliefs.failing_test` is written at ticks 12, 31 and 44, a
    // conflict is kept at tick 34 and decided at 35, and C1 refuses the call after tick 36.
    include_str!("code-repair-1.jsonl"),
    // Witness-log paper 2.4 and 4.3: a chain of a chat, tool calls, an x402 payment and an eval; the token and the key of the payer
    // are taken out, and the first payment fails.
    include_str!("storefront-7.jsonl"),
    // Research note R-001: its listing, compiled. The frontier is a model's answer and a calendar.
    include_str!("run-84f2.jsonl"),
];

/// Records all runs of the demo into a store that has none of them.
pub(crate) fn fill(store: &Shared) -> Result<Vec<DemoRun>, Error> {
    let mut runs = Vec::new();
    for script in RUNS.into_iter().chain([hostile().as_str()]) {
        runs.push(script::record(store, script)?);
    }
    register(store)?;
    for script in FORKS {
        runs.push(script::record(store, script)?);
    }
    Ok(runs)
}

/// The script of `hostile-1`: all that a viewer must show as data. The kernel refuses what is refused in it for its author, or
/// because it does not fit the state, never for its text. Three values are too large for the file: a line of 5 MB, a list of
/// 2,000 texts and an object of 5,000 members.
fn hostile() -> String {
    let list = |count, item: &dyn Fn(u64) -> String| (0..count).map(item).collect::<Vec<_>>().join(",");
    include_str!("hostile-1.jsonl")
        .replace("LONG_LINE", &"no line break here, ".repeat(249_999))
        .replace("\"LONG_LIST\"", &list(2_000, &|n| format!("\"</li><li>{n}\"")))
        .replace("\"LONG_OBJECT\":0", &list(5_000, &|n| format!("\"member <{n}>\":{n}")))
}

/// The time of what follows the runs of the demo, in milliseconds.
pub(crate) const LAST_MS: u64 = script::MORNING_MS + 30 * 86_400_000;

/// Registers the predicates that the paper names, each with the run that it was judged on. The oscillator recovers there: it is
/// for monitoring, and bisect refuses it.
fn register(store: &Shared) -> Result<(), Error> {
    let mut environment = Fixed::new("dendrer demo predicates", LAST_MS, 1_000);
    for line in include_str!("predicates.jsonl").lines().map(script::read) {
        let predicate = registry::from_value(script::member(&line, "predicate"), "", "");
        let predicate = predicate.expect("the demo's own predicates are predicates");
        let sample = Sample::take(&Trace::open(store, &script::name(&line, "run"))?, &predicate)?.0;
        registry::register(store, &predicate, vec![sample], &mut environment).map_err(
            |error| match error {
                RegisterError::Failed(error) => error,
                refused => unreachable!("the demo's own names are names: {refused}"),
            },
        )?;
    }
    Ok(())
}
