//! `claims-9` and `claims-10`: two claims of an insurance (dendrer paper, appendix G). The contract of the first is extended on the
//! way, and more is paid than its policy allows; the second is under another version of the contract, so nothing of the first
//! is imported into it.

use dendrer::Error;
use dendrer::pack;
use dendrer::pack::yaml::Document;
use dendrer::store::Shared;
use dendrer_kernel::step::{Extension, Stage, Start};
use dendrer_object::{RunName, Value};

use super::script::{MORNING_MS, Script, Step, decide, observe, plan, remember, v};

const PACK: &str = include_str!("../../../../examples/packs/insurance-claims.yaml");
const EXTENSION: &str = include_str!("../../../../examples/extensions/insurance-kyc.yaml");

/// Records claim 9: 6,000 are paid at tick 12 and 4,400 at tick 33, of 10,000. The contract is extended at tick 27, from 28 on.
pub(super) fn record_9(store: &Shared) -> Result<RunName, Error> {
    let state = r#"{"claim_id":"c-9","policy_limit":10000}"#;
    // o observes, p plans, m remembers, d decides, i asks for what is missing, x pays.
    let ticks = "pooiodmopdmxmopmoipmopmopmEiooopxVmopmpm";
    let mut s = begin(store, "claims-9", PACK, state)?;
    for (tick, letter) in (1..).zip(ticks.chars()) {
        match letter {
            'E' => s.extend(tick, &extension(&s))?,
            // The kernel's, right behind what brought it about.
            'V' => {}
            letter => s.at(tick, step_at(tick, letter, said_of_9(tick)))?,
        }
    }
    s.end(40)
}

/// Records claim 10, under the next version of the contract.
pub(super) fn record_10(store: &Shared) -> Result<RunName, Error> {
    let text = PACK
        .replace("version: v1", "version: v2")
        .replace("\ntypes:\n", "\n  payee_kyc_status: {words: whether it is known who is paid}\ntypes:\n")
        .replace(
            "\n  - words: what was asked for",
            "\n      - {set: payee_kyc_status, value: t.intent.payee_kyc_status, if: has(t.intent.payee_kyc_status)}\n  - words: what was asked for",
        )
        .replace(
            "\n      total_paid_to_date: {type",
            "\n      payee_kyc_status: {type: string}\n      total_paid_to_date: {type",
        );
    let state = r#"{"claim_id":"c-10","policy_limit":25000}"#;
    let ticks = "pooiodmopdmxmopmoipmpm";
    let mut s = begin(store, "claims-10", &text, state)?;
    for (tick, letter) in (1..).zip(ticks.chars()) {
        s.at(tick, step_at(tick, letter, said_of_10(tick)))?;
    }
    s.end(22)
}

fn begin(store: &Shared, run: &str, pack_text: &str, state: &str) -> Result<Script, Error> {
    let source = pack::read(pack_text.as_bytes()).expect("the demo's own pack is a pack");
    let mut start = Start::new(run.parse().expect("a run id"));
    start.goal = Some("Settle the claim".into());
    start.stage = Stage::Contracts;
    start.state = v(state);
    let start = source.bind(start)?;
    let paper = "dendrer paper, appendix G";
    Script::begin(store, start, "goal-claim", &["adjuster", "desk"], paper, MORNING_MS + 86_400_000 * 6)
}

fn extension(s: &Script) -> Extension {
    let value = Document::read(EXTENSION.as_bytes()).expect("the demo's own extension is YAML").value;
    Extension::check(s.head(), &value, None).expect("the demo's own extension is in order")
}

/// What comes in at a tick: members of the observation with their values.
fn said_of_9(tick: u64) -> Vec<(&'static str, Value)> {
    match tick {
        2 => vec![("proof_of_loss_url", "https://example.org/proof/9".into())],
        3 | 17 | 24 => vec![("missing_field_name", "deductible_confirmed_at".into())],
        5 => vec![("deductible_confirmed_at", "2026-02-26T14:30:00+01:00".into())],
        8 => vec![("payout_amount", Value::from(6000_u64))],
        29 => vec![("payee_kyc_status", "verified".into())],
        30 => vec![("payout_amount", Value::from(4400_u64))],
        _ => Vec::new(),
    }
}

fn said_of_10(tick: u64) -> Vec<(&'static str, Value)> {
    match tick {
        2 => vec![("proof_of_loss_url", "https://example.org/proof/10".into())],
        3 => vec![
            ("payee_kyc_status", "verified".into()),
            ("missing_field_name", "deductible_confirmed_at".into()),
        ],
        5 => vec![("deductible_confirmed_at", "2026-02-27T09:00:00+01:00".into())],
        8 => vec![("payout_amount", Value::from(8000_u64))],
        17 => vec![("missing_field_name", "payee_kyc_proof_url".into())],
        _ => Vec::new(),
    }
}

fn step_at(tick: u64, letter: char, said: Vec<(&'static str, Value)>) -> Step {
    match letter {
        'o' => {
            let step = observe("desk", 0.9, "what came in for the claim");
            said.into_iter().fold(step, |step, (name, value)| step.says(name, value))
        }
        'p' => plan("adjuster", 0.8, "what is to be done next"),
        'd' => {
            decide("adjuster", "allow", "approve_payout", "proof is there and the deductible is confirmed")
        }
        'i' => Step::of_intent(&v(r#"{"type":"request_info","agent":"adjuster"}"#))
            .says("description", "ask the insured for what is missing")
            .says("confidence", 0.9),
        'x' => Step::of_intent(&v(r#"{"type":"approve_payout","agent":"adjuster","effect":"effectful"}"#))
            .says("description", "pay what the state says")
            .says("confidence", 0.85),
        _ => remember("adjuster", 0.9, "what was done, and why").because(tick - 1),
    }
}
