//! `trip-planner-a`: six agents plan a journey (dendrer paper 7, and the policy flip of 4.3 on the way).
//!
//! Ticks 1 to 5 and the end are those of the paper's receipt, ticks 13 to 20 those of its policy flip. Ticks 12 and
//! 30 to 36 are where the transcripts branch off and compare, so they keep their tools, outputs and confidences.
//! Steps that its forks take too ([`super::trip_forks`]) are functions of their tick and of what they rest on.

use dendrer::store::Shared;
use dendrer::{Error, pack};
use dendrer_kernel::step::Start;
use dendrer_object::RunName;

use super::script::{MORNING_MS, Script, complete, decide, flag, observe, plan, remember, request, v};

const GOAL: &str = "Plan 3-day Basel-Ticino trip under CHF 600";

/// The pack of the journey, by which its progress is computed.
const PACK: &str = include_str!("trip.yaml");

/// The goal, as intents name it.
pub(super) const GOAL_ID: &str = "goal-basel-ticino";

const AGENTS: [&str; 6] = ["researcher", "planner", "budgeter", "skeptic", "verifier", "coordinator"];

const STATE: &str = r#"{
    "agents": {
        "budgeter":"running","coordinator":"running","planner":"running",
        "researcher":"running","skeptic":"running","verifier":"running"
    },
    "beliefs": {},
    "budget_remaining": 600,
    "budget_total": 600,
    "fares": {},
    "goals": ["Plan 3-day Basel-Ticino trip under CHF 600"],
    "hotel": null,
    "hotel_rating": null,
    "itinerary": [],
    "memory": {},
    "risk_score": 0.22,
    "risk_threshold": 0.75
}"#;

/// Records the run.
pub(super) fn record(store: &Shared) -> Result<RunName, Error> {
    let mut start = Start::new("trip-planner-a".parse().expect("a run id"));
    start.goal = Some(GOAL.into());
    start.state = v(STATE);
    start.policy = vec![v(r#"{"id":"trip.within_budget","holds":"state.budget_remaining >= 0"}"#)];
    let pack = pack::read(PACK.as_bytes()).expect("the demo's own pack is a pack");
    let start = pack.bind(start)?;
    let mut s = Script::begin(store, start, GOAL_ID, &AGENTS, "dendrer paper 7", MORNING_MS)?;
    search(&mut s)?;
    flip(&mut s)?;
    settle(&mut s)?;
    write_up(&mut s)?;
    s.end(47)
}

/// Ticks 1 to 12: the goal, a conflict, a tool that fails, a claim without a source, and the trains.
fn search(s: &mut Script) -> Result<(), Error> {
    s.at(
        1,
        observe(
            "researcher",
            0.91,
            "goal received: three days, one traveller, from Basel to Ticino, at most CHF 600",
        )
        .set("/beliefs/days", 3.0)
        .set("/beliefs/travellers", 1.0),
    )?;
    s.at(
        2,
        plan("planner", 0.84, "two nights in Lugano, the castles of Bellinzona on day 2, the lake on day 3")
            .outcome("conflict detected -> resolved by policy")
            .says("conflict", v(r#"{"between":["planner","budgeter"],"over":"a third night costs CHF 118 more","resolved_by":"trip.within_budget"}"#))
            .because(1)
            .set("/itinerary", v(r#"[{"day":1,"place":"Lugano"},{"day":2,"place":"Bellinzona"},{"day":3,"place":"Lake Lugano"}]"#)),
    )?;
    s.at(
        3,
        request(
            "researcher",
            0.61,
            "find the fare and a bed for each night",
            "http_get",
            r#"{"url":"https://travel.example/search?from=basel&to=lugano"}"#,
        )
        .effect("read")
        .unsure("source reliability unknown")
        .outcome("uncertainty high -> exploration spawned")
        .because(2)
        .set("/beliefs/explorations", 1.0),
    )?;
    s.at(
        4,
        s.answer(3)
            .failed("tool_failure", "no answer from travel.example within 10 s")
            .outcome("agent restarted by supervisor")
            .metric("latency_ms", 10_000.0)
            .set("/agents/researcher", "restarted"),
    )?;
    s.anomaly(
        5,
        "hallucination",
        "researcher",
        "a fare that no answer holds; process killed, restored from tick 03",
    )?;
    s.at(
        6,
        remember("coordinator", 0.88, "the claimed fare is struck out; the researcher goes on from tick 3")
            .because(5)
            .set("/agents/researcher", "running")
            .append("/memory/retracted", "fare Basel-Lugano CHF 39"),
    )?;
    s.at(
        7,
        request(
            "researcher",
            0.64,
            "call search tool for pricing data",
            "http_get",
            r#"{"url":"https://rail.example/fares?from=basel&to=lugano"}"#,
        )
        .effect("read")
        .unsure("source reliability unknown")
        .because(6),
    )?;
    s.at(
        8,
        s.answer(7)
            .gave(r#"{"class":2,"duration_min":172,"price_chf":48}"#)
            .metric("latency_ms", 380.0)
            .set("/fares/outward", 48.0)
            .add("/budget_remaining", -48.0),
    )?;
    s.at(
        9,
        observe("researcher", 0.89, "outward fare CHF 48 with a half-fare card, 2 h 52 min")
            .rests_on(8)
            .set("/beliefs/half_fare_card", true),
    )?;
    s.at(
        10,
        request(
            "researcher",
            0.86,
            "ask for the fare back",
            "http_get",
            r#"{"url":"https://rail.example/fares?from=lugano&to=basel"}"#,
        )
        .effect("read")
        .because(9),
    )?;
    s.at(
        11,
        s.answer(10)
            .gave(r#"{"class":2,"duration_min":178,"price_chf":52}"#)
            .set("/fares/back", 52.0)
            .add("/budget_remaining", -52.0),
    )?;
    s.at(
        12,
        observe("verifier", 0.9, "both fares agree with the operator's tariff of this year")
            .rests_on(8)
            .rests_on(11)
            .set("/fares/verified", true),
    )
}

/// Ticks 13 to 23: a price from nowhere turns the policy, and the agents find their way back.
fn flip(s: &mut Script) -> Result<(), Error> {
    s.at(
        13,
        observe("researcher", 0.31, "retrieved hotel pricing from unverified source")
            .says("source", "hotel_mirror_3")
            .unsure("source reliability unknown")
            .set(
                "/beliefs/hotel_price",
                v(r#"{"chf_per_night":61,"source":"hotel_mirror_3","verified":false}"#),
            )
            .set("/risk_score", 0.82),
    )?;
    s.at(
        14,
        decide("skeptic", "deny", "action.request", "risk_score 0.82 exceeds the threshold 0.75")
            .says("rule", "risk_score <= risk_threshold")
            .because(13)
            .set("/beliefs/booking_allowed", false),
    )?;
    s.at(
        15,
        flag("skeptic", 0.93, "the cheap room has a single source, and nobody vouches for it")
            .because(13)
            .rests_on(14),
    )?;
    s.at(
        16,
        plan("planner", 0.66, "keep the cheap room if any other channel offers it")
            .because(14)
            .set("/beliefs/fallback", "another channel"),
    )?;
    s.at(
        17,
        request(
            "planner",
            0.52,
            "hold the room through another channel",
            "hotel_hold",
            r#"{"channel":"mirror","nights":2,"offer":3}"#,
        )
        .effect("effectful")
        .denied("risk_score 0.82 exceeds the threshold 0.75")
        .outcome("denied; agent attempted workaround")
        .because(16),
    )?;
    s.at(
        18,
        decide(
            "skeptic",
            "escalate",
            "action.request",
            "the same hold was asked for again; a supervisor decides",
        )
        .because(17),
    )?;
    s.at(
        19,
        remember("verifier", 0.9, "hotel_mirror_3 is not on the list of sources")
            .rests_on(13)
            .append("/memory/distrusted", "hotel_mirror_3"),
    )?;
    s.anomaly(
        20,
        "invariant_breach",
        "planner",
        "a denied action came back through another channel; planner restarted",
    )?;
    s.at(
        21,
        plan("coordinator", 0.87, "drop the unverified room and start the hotel search over")
            .because(20)
            .remove("/beliefs/hotel_price")
            .remove("/beliefs/fallback")
            .set("/risk_score", 0.41),
    )?;
    board(s, 22, 21, 0.34)
}

/// A list of hotels that somebody vouches for, and the policy that lets a room be booked.
pub(super) fn board(s: &mut Script, tick: u64, because: u64, risk: f64) -> Result<(), Error> {
    s.at(
        tick,
        observe("verifier", 0.92, "the tourist board lists eleven hotels with prices of this week")
            .says("source", "tourist_board")
            .because(because)
            .set("/beliefs/hotel_source", "tourist_board")
            .set("/risk_score", risk),
    )?;
    let why = format!("risk_score {risk} is below the threshold 0.75");
    s.at(
        tick + 1,
        decide("skeptic", "allow", "action.request", &why)
            .says("rule", "risk_score <= risk_threshold")
            .because(tick)
            .set("/beliefs/booking_allowed", true),
    )
}

/// Ticks 24 to 36: weather, passes, a hotel, and what is left of the budget.
fn settle(s: &mut Script) -> Result<(), Error> {
    weather(s, 24)?;
    s.at(
        26,
        plan("planner", 0.83, "set aside meals CHF 110, castles CHF 28, boat CHF 20")
            .because(25)
            .set("/reserved", v(r#"{"boat":20,"castles":28,"meals":110}"#))
            .add("/budget_remaining", -158.0),
    )?;
    s.at(
        27,
        remember("planner", 0.85, "castles on day 2 while it is dry; the boat only if day 3 clears up")
            .rests_on(25)
            .set("/memory/weather_rule", "castles first"),
    )?;
    s.at(
        28,
        request(
            "budgeter",
            0.81,
            "ask for the price of the regional pass",
            "http_get",
            r#"{"url":"https://pass.example/ticino?days=3"}"#,
        )
        .effect("read"),
    )?;
    s.at(29, s.answer(28).gave(r#"{"days":3,"pass":"Ticino","price_chf":64}"#).set("/fares/pass", 64.0))?;
    s.at(
        30,
        plan("planner", 0.86, "take the pass; look for a room in the centre of Lugano")
            .because(29)
            .set("/reserved/pass", 64.0)
            .add("/budget_remaining", -64.0),
    )?;
    ask_for_room(s, 31, 30, &KRONE)?;
    take_offer(s, 32, 31, &KRONE)?;
    fits(s, 34)?;
    hold_room(s, 35, &KRONE)
}

/// The weather of the three days, asked for and answered.
pub(super) fn weather(s: &mut Script, tick: u64) -> Result<(), Error> {
    s.at(
        tick,
        request(
            "researcher",
            0.79,
            "look up the weather in Ticino",
            "weather",
            r#"{"days":3,"place":"Lugano"}"#,
        )
        .effect("read"),
    )?;
    s.at(
        tick + 1,
        s.answer(tick)
            .gave(r#"{"day_1":"sun","day_2":"sun","day_3":"showers"}"#)
            .set("/beliefs/weather", v(r#"["sun","sun","showers"]"#)),
    )
}

/// A room: what is asked for, and what is offered.
pub(super) struct Room {
    /// What is asked for, in words.
    pub(super) ask: &'static str,
    pub(super) city: &'static str,
    pub(super) nights: u32,
    pub(super) max_price_chf: u32,
    pub(super) hotel: &'static str,
    pub(super) price_chf_per_night: f64,
    pub(super) rating: f64,
    /// How sure the planner is to take it.
    pub(super) confidence: f64,
}

/// What the journey finds if it asks for at most CHF 120 a night.
pub(super) const KRONE: Room = Room {
    ask: "search rooms for two nights",
    city: "Lugano",
    nights: 2,
    max_price_chf: 120,
    hotel: "Hotel Krone",
    price_chf_per_night: 118.0,
    rating: 4.0,
    confidence: 0.84,
};

/// One step: the search for a room.
pub(super) fn ask_for_room(s: &mut Script, tick: u64, because: u64, room: &Room) -> Result<(), Error> {
    let Room { city, nights, max_price_chf, .. } = room;
    let params = format!(r#"{{"city":"{city}","max_price_chf":{max_price_chf},"nights":{nights}}}"#);
    s.at(tick, request("planner", 0.84, room.ask, "hotel_search", &params).effect("read").because(because))
}

/// Two steps: the offer, and the plan to take it.
pub(super) fn take_offer(s: &mut Script, tick: u64, asked: u64, room: &Room) -> Result<(), Error> {
    let Room { hotel, price_chf_per_night, rating, .. } = room;
    s.at(
        tick,
        s.answer(asked).gave(&format!(
            r#"{{"hotel":"{hotel}","offer":1,"price_chf_per_night":{price_chf_per_night},"rating":{rating}}}"#
        )),
    )?;
    s.at(
        tick + 1,
        plan("planner", room.confidence, "take the first offer, if it can be held")
            .because(tick)
            .set("/beliefs/offer", 1.0),
    )
}

/// One step: what was planned just before may be paid.
pub(super) fn fits(s: &mut Script, tick: u64) -> Result<(), Error> {
    let what = "the offer fits into what is left";
    s.at(tick, decide("budgeter", "allow", "action.request", what).because(tick - 1))
}

/// Two steps: the offer is held, for the reason given just before, and is paid out of the budget.
pub(super) fn hold_room(s: &mut Script, tick: u64, room: &Room) -> Result<(), Error> {
    let Room { hotel, city, nights, .. } = room;
    let price = room.price_chf_per_night * f64::from(*nights);
    s.at(
        tick,
        request(
            "planner",
            0.88,
            "hold the first offer until tonight",
            "hotel_hold",
            &format!(r#"{{"nights":{nights},"offer":1}}"#),
        )
        .effect("effectful")
        .because(tick - 1),
    )?;
    s.at(
        tick + 1,
        s.answer(tick)
            .gave(r#"{"held":true,"until":"2026-02-23T20:00:00Z"}"#)
            .set(
                "/hotel",
                v(&format!(
                    r#"{{"city":"{city}","name":"{hotel}","nights":{nights},"price_chf":{price},"refundable":true}}"#
                )),
            )
            .set("/hotel_rating", room.rating)
            .add("/budget_remaining", -price),
    )
}

/// Ticks 37 to 47: the plan is checked, written, and handed over.
fn write_up(s: &mut Script) -> Result<(), Error> {
    check_room(s, 37, 36)?;
    s.at(
        38,
        request(
            "researcher",
            0.83,
            "check the trains from Lugano to Bellinzona",
            "http_get",
            r#"{"url":"https://rail.example/times?from=lugano&to=bellinzona"}"#,
        )
        .effect("read"),
    )?;
    s.at(39, s.answer(38).gave(r#"{"every_min":30,"first":"05:32","last":"00:16","ride_min":24}"#))?;
    s.at(
        40,
        plan("planner", 0.88, "each day has its trains, its sights and a way out of the rain")
            .rests_on(36)
            .rests_on(39)
            .set("/itinerary/0/trains", v(r#"["08:03 Basel SBB","10:55 Lugano"]"#))
            .set("/itinerary/1/trains", v(r#"["09:02 Lugano","17:32 Bellinzona"]"#))
            .set("/itinerary/2/trains", v(r#"["15:02 Lugano","18:00 Basel SBB"]"#)),
    )?;
    s.at(41, decide("budgeter", "allow", "action.request", "CHF 42 are left for surprises").because(40))?;
    write_plan(s, 42, 40, 2148)?;
    s.at(
        45,
        flag("skeptic", 0.58, "showers on day 3 may cost the boat trip; the museum is the way out")
            .rests_on(25),
    )?;
    s.at(
        46,
        remember("coordinator", 0.92, "the hold ends at 20:00; whoever books must do it before")
            .rests_on(36)
            .set("/memory/deadline", "2026-02-23T20:00:00Z"),
    )?;
    hand_over(s, 47, 43, 558)
}

/// One step: the room that was held is one of those that somebody vouches for.
pub(super) fn check_room(s: &mut Script, tick: u64, held: u64) -> Result<(), Error> {
    s.at(
        tick,
        observe("verifier", 0.91, "the held room is the one the tourist board lists")
            .rests_on(22)
            .rests_on(held)
            .set("/hotel/verified", true),
    )
}

/// Three steps: the plan is written down, and checked.
pub(super) fn write_plan(s: &mut Script, tick: u64, because: u64, bytes: u32) -> Result<(), Error> {
    let artifact = format!(r#"{{"bytes":{bytes},"path":"plan.md"}}"#);
    s.at(
        tick,
        request("planner", 0.9, "write the plan down", "write_file", r#"{"path":"plan.md"}"#)
            .effect("idempotent_write")
            .because(because),
    )?;
    s.at(tick + 1, s.answer(tick).gave(&artifact).set("/artifact", v(&artifact)))?;
    s.at(
        tick + 2,
        observe("verifier", 0.94, "every claim in plan.md rests on a recorded answer").rests_on(tick + 1),
    )
}

/// One step: the goal is met, with the plan that was written at a tick and checked at the next.
pub(super) fn hand_over(s: &mut Script, tick: u64, written: u64, spent: u32) -> Result<(), Error> {
    s.at(
        tick,
        complete("coordinator", 0.94, &format!("three days planned for CHF {spent}"))
            .outcome("return condition met")
            .says("artifact", "plan.md")
            .rests_on(written)
            .rests_on(written + 1)
            .set("/goals", v("[]")),
    )
}
