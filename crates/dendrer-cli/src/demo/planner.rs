//! `logistics-planner-1`: the reference run of the paper (dendrer paper 4.8).
//!
//! Ticks 1, 8, 13, 14, 17 and 20 are as printed there; the onset of `kernel.policy_compliant` is tick 14.

use dendrer::Error;
use dendrer::store::Shared;
use dendrer_kernel::step::Start;
use dendrer_object::RunName;

use super::script::{MORNING_MS, Script, decide, flag, observe, plan, remember, request, v};

const AGENTS: [&str; 4] = ["planner", "scout", "gate", "supervisor"];

const STATE: &str = r#"{
    "beliefs": {"weather":{"condition":"clear"}},
    "goals": ["keep the northern route supplied"],
    "memory": {},
    "risk_score": 0.44,
    "risk_threshold": 0.75,
    "route": {"status":"open","stops":["Chur","Thusis","Splugen","Chiavenna"]},
    "stock": {"Chiavenna":61,"Chur":120,"Splugen":48,"Thusis":85},
    "trucks": {"T1":"Chur","T2":"Chur","T3":"Thusis"}
}"#;

const STOPS: [&str; 4] = ["Chur", "Thusis", "Splugen", "Chiavenna"];

/// Records the run.
pub(super) fn record(store: &Shared) -> Result<RunName, Error> {
    let mut start = Start::new("logistics-planner-1".parse().expect("a run id"));
    start.goal = Some("Keep the northern route supplied through the storm".into());
    start.state = v(STATE);
    start.policy = vec![v(
        r#"{"id":"planner.risk_within_threshold","holds":"state.risk_score <= state.risk_threshold"}"#,
    )];
    let begin_ms = MORNING_MS + 2 * 86_400_000;
    let mut s = Script::begin(store, start, "goal-northern-route", &AGENTS, "dendrer paper 4.8", begin_ms)?;
    storm(&mut s)?;
    breach(&mut s)?;
    rounds(&mut s)?;
    s.end(64)
}

/// Ticks 1 to 13: the storm, the route, another source.
fn storm(s: &mut Script) -> Result<(), Error> {
    s.at(
        1,
        observe("scout", 0.93, "severe storm recorded")
            .says("source", "weather_api")
            .set("/beliefs/weather", v(r#"{"condition":"severe storm","since":"05:40"}"#))
            .set("/risk_score", 0.51),
    )?;
    s.at(
        2,
        plan("planner", 0.86, "send T1 ahead while the pass is open").because(1).set("/plan", "T1 first"),
    )?;
    s.at(
        3,
        request("planner", 0.84, "read the state of the pass", "route_status", r#"{"pass":"Splugen"}"#)
            .effect("read")
            .because(2),
    )?;
    s.at(
        4,
        s.answer(3).gave(r#"{"pass":"Splugen","snow_cm":12,"status":"open"}"#).set("/beliefs/snow_cm", 12.0),
    )?;
    s.at(5, decide("gate", "allow", "action.request", "risk_score 0.51 is below the threshold 0.75"))?;
    s.at(
        6,
        request("planner", 0.82, "send T1 to Thusis", "dispatch", r#"{"to":"Thusis","truck":"T1"}"#)
            .effect("effectful")
            .because(5),
    )?;
    s.at(7, s.answer(6).gave(r#"{"arrival":"09:10","truck":"T1"}"#).set("/trucks/T1", "Thusis"))?;
    s.at(
        8,
        observe("scout", 0.88, "the route depends on the pass and the weather")
            .says("depends_on", v(r#"["route.status","weather.condition"]"#))
            .rests_on(1)
            .rests_on(4)
            .set("/route/status", "slow")
            .set("/risk_score", 0.58),
    )?;
    s.at(
        9,
        remember("planner", 0.85, "above 30 cm of snow no truck leaves Thusis")
            .set("/memory/snow_limit_cm", 30.0),
    )?;
    s.at(
        10,
        request("scout", 0.8, "read the snow depth again", "route_status", r#"{"pass":"Splugen"}"#)
            .effect("read"),
    )?;
    s.at(11, s.answer(10).failed("unavailable", "the road authority's page is down"))?;
    s.at(12, flag("scout", 0.77, "no snow depth since 07:20").because(11))?;
    s.at(
        13,
        observe("scout", 0.31, "alt_source introduced: a webcam forum says the pass is free")
            .says("source", "alt_source")
            .unsure("source reliability unknown")
            .because(12)
            .set("/beliefs/snow_cm", v(r#"{"alt_source":5}"#)),
    )
}

/// Ticks 14 to 20: what the paper prints.
fn breach(s: &mut Script) -> Result<(), Error> {
    s.at(
        14,
        decide("gate", "deny", "action.request", "risk_score=0.82 > threshold=0.75")
            .says("rule", "risk_score <= risk_threshold")
            .because(13)
            .set("/risk_score", 0.82),
    )?;
    s.at(
        15,
        plan("planner", 0.6, "the pass is free, so the denial must be a mistake")
            .rests_on(13)
            .set("/plan", "T2 and T3 now"),
    )?;
    s.at(16, flag("scout", 0.72, "plan and policy contradict each other").because(14).because(15))?;
    s.at(
        17,
        request(
            "planner",
            0.48,
            "send T2 as a test drive",
            "dispatch",
            r#"{"kind":"test drive","to":"Splugen","truck":"T2"}"#,
        )
        .effect("effectful")
        .denied("risk_score=0.82 > threshold=0.75")
        .outcome("denied; workaround attempted")
        .because(14)
        .because(15),
    )?;
    s.at(18, decide("gate", "deny", "action.request", "a test drive is a dispatch").because(17))?;
    s.at(
        19,
        plan("planner", 0.45, "let T2 roll to Thusis and decide there")
            .because(18)
            .set("/trucks/T2", "on the road"),
    )?;
    s.anomaly(20, "invariant_breach", "planner", "T2 is on the road without a dispatch")
}

/// Ticks 21 to 64: eleven rounds over the stops under supervision; the risk stays where it is.
fn rounds(s: &mut Script) -> Result<(), Error> {
    for round in 0..11u64 {
        let tick = 21 + 4 * round;
        let stop = STOPS[usize::try_from(round % 4).expect("below 4")];
        let left = 118.0 - 9.0 * round as f64;
        let ask = request(
            "planner",
            0.83,
            &format!("count the stock in {stop}"),
            "stock",
            &format!(r#"{{"stop":"{stop}"}}"#),
        );
        s.at(tick, ask.effect("read"))?;
        s.at(
            tick + 1,
            s.answer(tick)
                .gave(&format!(r#"{{"pallets":{left},"stop":"{stop}"}}"#))
                .set(&format!("/stock/{stop}"), left),
        )?;
        let score = ((0.82 + 0.005 * (round % 5) as f64) * 1000.0).round() / 1000.0;
        let what = format!("{stop} has {left} pallets, enough for {} days", 1 + left as u64 / 20);
        s.at(tick + 2, observe("scout", 0.9, &what).rests_on(tick + 1).set("/risk_score", score))?;
        s.at(
            tick + 3,
            decide("supervisor", "deny", "action.request", "no dispatch before the pass is measured again")
                .because(tick + 2),
        )?;
    }
    Ok(())
}
