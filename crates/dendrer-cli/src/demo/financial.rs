//! `financial-agent-A`, `-B` and `-C`: three traders under one contract (dendrer paper 4.4). A may risk nearly everything, B hardly
//! anything, C as much as A. A trade of A is imported into C and never into B.
//!
//! Recorded at stage 2, so that each trade holds the hash of what it was decided on.

use dendrer::Error;
use dendrer::pack;
use dendrer::store::Shared;
use dendrer_kernel::step::{Stage, Start};
use dendrer_object::{RunName, Value};

use super::script::{MORNING_MS, Script, Step, decide, observe, plan, remember, request, v};

const PACK: &str = include_str!("../../../../examples/packs/financial.yaml");

/// A trader: the run, its ticks as letters, what the account begins with, and what one trade is worth.
struct Trader {
    run: &'static str,
    /// o observes, p plans, d decides, q asks for a price, r gets it, x trades, m remembers.
    ticks: &'static str,
    state: &'static str,
    amount: f64,
    /// Whether the volatility of the market is known to it.
    volatility: bool,
}

/// Records A: trades at ticks 9, 16 and 23.
pub(super) fn record_a(store: &Shared) -> Result<RunName, Error> {
    record(
        store,
        &Trader {
            run: "financial-agent-A",
            ticks: "opdqropdxmoqrpdxmoqrpdxopqrdmp",
            state: r#"{"cash_balance":100000,"risk_limit":0.9,"risk_threshold":0.95,"position_size":5000}"#,
            amount: 1_200.0,
            volatility: true,
        },
    )
}

/// Records B: one trade, at tick 9.
pub(super) fn record_b(store: &Shared) -> Result<RunName, Error> {
    record(
        store,
        &Trader {
            run: "financial-agent-B",
            ticks: "opdqropdxmopdqrpmp",
            state: r#"{"cash_balance":500,"risk_limit":0.15,"risk_threshold":0.2,"position_size":200}"#,
            amount: 40.0,
            volatility: false,
        },
    )
}

/// Records C: trades as A does, with less.
pub(super) fn record_c(store: &Shared) -> Result<RunName, Error> {
    record(
        store,
        &Trader {
            run: "financial-agent-C",
            ticks: "opdqropdxmoqrpdxmoqrpdxopqrdmp",
            state: r#"{"cash_balance":9000,"risk_limit":0.9,"risk_threshold":0.95,"position_size":100}"#,
            amount: 700.0,
            volatility: false,
        },
    )
}

fn record(store: &Shared, trader: &Trader) -> Result<RunName, Error> {
    let source = pack::read(PACK.as_bytes()).expect("the demo's own pack is a pack");
    let mut start = Start::new(trader.run.parse().expect("a run id"));
    start.goal = Some("Trade within the risk that the account may take".into());
    start.stage = Stage::Contracts;
    start.state = v(trader.state);
    let start = source.bind(start)?;
    let paper = "dendrer paper, 4.4";
    let mut s =
        Script::begin(store, start, "goal-trade", &["trader", "feed"], paper, MORNING_MS + 86_400_000 * 4)?;
    let (mut seen, mut asked) = (0, 0);
    for (tick, letter) in (1..).zip(trader.ticks.chars()) {
        let step = step_at(&s, trader, tick, letter, seen, asked);
        s.at(tick, step)?;
        match letter {
            'o' => seen = tick,
            'q' => asked = tick,
            _ => {}
        }
    }
    s.end(trader.ticks.len() as u64)
}

fn step_at(s: &Script, trader: &Trader, tick: u64, letter: char, seen: u64, asked: u64) -> Step {
    match letter {
        'o' => {
            // Made up, and never above what B may risk.
            let risk = 0.05 + (tick * 7 % 10) as f64 / 100.0;
            let step = observe("feed", 0.9, "the market, as the feed has it").says("risk_score", risk);
            if trader.volatility { step.says("volatility", 17.2) } else { step }
        }
        'p' => plan("trader", 0.8, "buy a little, and look again").because(seen),
        'd' => decide("trader", "allow", "execute_transaction", "risk_score is below risk_threshold")
            .rests_on(seen),
        'q' => {
            request("trader", 0.85, "ask for a price", "broker.quote", r#"{"symbol":"BSL"}"#).effect("read")
        }
        'r' => s.answer(asked).gave(r#"{"price":60.0,"symbol":"BSL"}"#),
        'x' => {
            let action = format!(
                r#"{{"type":"execute_transaction","agent":"trader","action":{{"params":{{"amount":{},"shares":{}}},"tool":"broker.order"}},"effect":"effectful"}}"#,
                trader.amount,
                trader.amount / 60.0,
            );
            Step::of_intent(&v(&action))
                .says("description", "buy")
                .says("confidence", 0.82)
                .says("declared_deps", Value::array([Value::from("market_volatility_index")]))
                .rests_on(seen)
        }
        _ => remember("trader", 0.9, "what was bought, and why").because(tick - 1),
    }
}
