//! `shop-team`: three agents at once. Two ask shops for prices, a third takes in what both found; on one price they contradict each
//! other, and the buyer decides (forensic debugger specification, 3.3).

use dendrer::Error;
use dendrer::store::Shared;
use dendrer_kernel::step::Start;
use dendrer_object::RunName;

use super::script::{MORNING_MS, Script, observe, plan, remember, v};

const AGENTS: [&str; 3] = ["north", "south", "buyer"];

/// Records the run.
pub(super) fn record(store: &Shared) -> Result<RunName, Error> {
    let mut start = Start::new("shop-team".parse().expect("a run id"));
    start.goal = Some("Buy a boat cover for less than 300, from whichever shop".into());
    start.state = v(r#"{"beliefs":{},"context_stack":[],"goals":["cover"],"memory":{}}"#);
    let begin_ms = MORNING_MS + 9 * 86_400_000;
    let source = "forensic debugger specification, 3.3";
    let mut s = Script::begin(store, start, "goal-boat-cover", &AGENTS, source, begin_ms)?;
    s.at(1, plan("buyer", 0.90, "north asks on the quay, south in town").set("/memory/limit", 300.0))?;
    s.at(2, observe("north", 0.85, "the quay shop asks 280").because(1).set("/memory/cover_price", 280.0))?;
    s.at(
        3,
        observe("south", 0.60, "the town shop asks 245, says its page")
            .because(1)
            .set("/memory/cover_price", 245.0),
    )?;
    s.at(4, remember("north", 0.90, "the quay shop has one in stock").set("/beliefs/quay_stock", 1.0))?;
    s.at(5, remember("south", 0.55, "the town shop may have one").set("/beliefs/town_stock", "unsure"))?;
    s.at(6, observe("south", 0.70, "delivery takes a week").set("/beliefs/town_delivery", "a week"))?;
    // Both branches are taken in; neither price is taken before a decision.
    s.at(7, plan("buyer", 0.65, "two prices, and both cannot be right").merges(4).merges(6))?;
    s.at(8, observe("north", 0.90, "the quay shop holds it until noon").set("/beliefs/quay_holds", "noon"))?;
    s.at(
        9,
        observe("south", 0.95, "the page was last year's: the town shop asks 310")
            .set("/memory/cover_price", 310.0),
    )?;
    s.at(
        10,
        plan("buyer", 0.90, "the quay shop, which is below the limit")
            .merges(8)
            .merges(9)
            .set("/memory/cover_price", 280.0)
            .set("/goals", v(r#"["pay at the quay before noon"]"#)),
    )?;
    s.end(10)
}
