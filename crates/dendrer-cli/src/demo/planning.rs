//! `planning-run-12`: the goal asks for more than the budget allows, so the first plan breaks the rule already
//! (dendrer paper, appendix C). The onset is tick 1; no state of the run is from before the problem.

use dendrer::Error;
use dendrer::store::Shared;
use dendrer_kernel::step::Start;
use dendrer_object::RunName;

use super::script::{MORNING_MS, Script, decide, flag, observe, plan, remember, request, v};

const AGENTS: [&str; 3] = ["planner", "buyer", "controller"];

const STATE: &str = r#"{
    "beliefs": {},
    "budget_limit": 20000,
    "currency": "EUR",
    "goals": ["move the office to Liestal by June, 40 desks, no weekend work, at most EUR 20000"],
    "items": {},
    "memory": {},
    "plan_total": 0
}"#;

/// What is planned: item, price of the first plan, price after haggling.
const ITEMS: [(&str, f64, f64); 10] = [
    ("movers", 8200.0, 7900.0),
    ("desks", 6400.0, 6150.0),
    ("network", 3900.0, 3900.0),
    ("lifts", 1450.0, 1300.0),
    ("cleaning", 1800.0, 1650.0),
    ("signs", 620.0, 540.0),
    ("insurance", 980.0, 980.0),
    ("storage", 1250.0, 1100.0),
    ("locks", 760.0, 730.0),
    ("plants", 440.0, 0.0),
];

/// Records the run.
pub(super) fn record(store: &Shared) -> Result<RunName, Error> {
    let mut start = Start::new("planning-run-12".parse().expect("a run id"));
    start.goal =
        Some("Move the office to Liestal by June, 40 desks, no weekend work, at most EUR 20000".into());
    start.state = v(STATE);
    start.policy =
        vec![v(r#"{"id":"acme.budget_compliance_v1","holds":"state.plan_total <= state.budget_limit"}"#)];
    let begin_ms = MORNING_MS + 3 * 86_400_000;
    let source = "dendrer paper, appendix C";
    let mut s = Script::begin(store, start, "goal-office-move", &AGENTS, source, begin_ms)?;
    let mut total: f64 = ITEMS.iter().map(|(_, first, _)| first).sum();
    s.at(
        1,
        plan("planner", 0.82, "everything the goal names, at list prices")
            .says("assumes", v(r#"["40 desks","no weekend work","June"]"#))
            .set("/plan_total", total),
    )?;
    s.at(
        2,
        observe("controller", 0.95, "the plan asks for EUR 25800, the goal allows 20000")
            .because(1)
            .set("/beliefs/over_by", total - 20_000.0),
    )?;
    s.at(
        3,
        decide(
            "controller",
            "escalate",
            "plan.update",
            "over the limit by EUR 5800: haggle, or change the goal",
        )
        .because(2),
    )?;
    let mut tick = 4;
    for (item, first, last) in ITEMS {
        let ask = request(
            "buyer",
            0.8,
            &format!("ask for a better price for {item}"),
            "quote",
            &format!(r#"{{"item":"{item}","list_eur":{first}}}"#),
        );
        s.at(tick, ask.effect("read").because(3))?;
        s.at(
            tick + 1,
            s.answer(tick)
                .gave(&format!(r#"{{"item":"{item}","price_eur":{last}}}"#))
                .set(&format!("/items/{item}"), last),
        )?;
        total += last - first;
        let what = format!("{item} for EUR {last}; the plan comes to EUR {total}");
        s.at(tick + 2, plan("planner", 0.79, &what).because(tick + 1).set("/plan_total", total))?;
        s.at(
            tick + 3,
            decide("controller", "deny", "goal.complete", "still over the limit").because(tick + 2),
        )?;
        tick += 4;
    }
    s.at(
        44,
        flag(
            "controller",
            0.9,
            "every price is at its lowest and the plan still asks for more than the goal allows",
        ),
    )?;
    s.at(
        45,
        remember("planner", 0.88, "without weekend work the movers alone take two fifths")
            .set("/memory/lesson", "the goal contradicts itself"),
    )?;
    s.at(
        46,
        plan("planner", 0.62, "ask for weekend work or for EUR 4250 more")
            .because(44)
            .set("/beliefs/options", v(r#"["weekend work","EUR 4250 more"]"#)),
    )?;
    s.at(47, decide("controller", "deny", "plan.update", "the goal rules out weekend work").because(46))?;
    s.at(48, flag("planner", 0.93, "no plan meets this goal; it has to be written again").because(47))?;
    s.end(48)
}
