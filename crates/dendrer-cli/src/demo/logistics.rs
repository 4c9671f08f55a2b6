//! `logistics-run-47`: six consignments, one unverified feed (dendrer paper, appendix C).
//!
//! `kernel.policy_compliant` is broken at tick 22 and not before. The quality score falls below 0.75 at tick 14,
//! recovers at 17 and falls again at 22: the oscillator that no bisect may be asked about. What was asked for at
//! tick 20 comes back only at tick 26.

use dendrer::fork::{self, ForkTerms, ReplacedAnswer};
use dendrer::store::Shared;
use dendrer::{Error, Trace};
use dendrer_kernel::step::Start;
use dendrer_object::{Delta, RunName};

use super::script::{
    MORNING_MS, Script, Step, decide, flag, observe, plan, remember, request, surroundings, v,
};

const AGENTS: [&str; 6] = ["dispatcher", "feed-reader", "router", "pricing", "compliance", "coordinator"];

const STATE: &str = r#"{
    "beliefs": {"lock_iffezheim":"open","weather":"unknown"},
    "budget_eur": 48000,
    "delivered": 0,
    "goals": ["deliver six consignments to Basel by Thursday"],
    "memory": {},
    "quality_score": 0.91,
    "risk_score": 0.52,
    "risk_threshold": 0.75,
    "shipments": {
        "S-101": {"from":"Rotterdam","pallets":24,"status":"waiting"},
        "S-102": {"from":"Rotterdam","pallets":18,"status":"waiting"},
        "S-103": {"from":"Antwerp","pallets":30,"status":"waiting"},
        "S-104": {"from":"Rotterdam","pallets":12,"status":"waiting"},
        "S-105": {"from":"Antwerp","pallets":8,"status":"waiting"},
        "S-106": {"from":"Duisburg","pallets":40,"status":"waiting"}
    },
    "sources": ["port_api","weather_api"]
}"#;

/// Records the run.
pub(super) fn record(store: &Shared) -> Result<RunName, Error> {
    let mut start = Start::new("logistics-run-47".parse().expect("a run id"));
    start.goal = Some("Deliver six consignments to Basel by Thursday".into());
    start.state = v(STATE);
    start.policy = vec![v(
        r#"{"id":"logistics.risk_within_threshold","holds":"state.risk_score <= state.risk_threshold"}"#,
    )];
    let begin_ms = MORNING_MS + 86_400_000;
    let source = "dendrer paper, appendix C";
    let mut s = Script::begin(store, start, "goal-six-consignments", &AGENTS, source, begin_ms)?;
    morning(&mut s)?;
    doubt(&mut s)?;
    breach(&mut s)?;
    aftermath(&mut s)?;
    deliveries(&mut s)?;
    s.end(64)
}

/// Records `logistics-fix-1`: the run from tick 21 on with another answer of the feed at tick 22. What follows goes
/// through the door again, up to tick 23, which was decided on a risk that is another here.
pub(super) fn record_fix(store: &Shared) -> Result<RunName, Error> {
    let mut terms = ForkTerms::new("logistics-fix-1".parse().expect("a run id"));
    terms.reason = Some("use the verified feed".into());
    let feed = ReplacedAnswer {
        output: v(r#"{"barges":2,"source":"port_api"}"#),
        delta: Some(Delta::from_value(&v(r#"[{"set":"/risk_score","value":0.64}]"#)).expect("a delta")),
    };
    terms.replace.insert(22, feed);
    let parent = Trace::open(store, &"logistics-run-47".parse().expect("a run id"))?;
    let surroundings = surroundings(&terms.run, MORNING_MS + 2 * 86_400_000);
    let (mut recorder, forked) = fork::fork(&parent, store, 21, &terms, surroundings)?;
    fork::carry_on(&mut recorder, &parent, &forked, &terms, false)?;
    assert_eq!(recorder.head().tick(), 23, "the last tick of {}", terms.run);
    recorder.commit()?;
    Ok(terms.run)
}

/// Ticks 1 to 13: the orders, the weather, the first booking.
fn morning(s: &mut Script) -> Result<(), Error> {
    s.at(
        1,
        observe("feed-reader", 0.94, "order book read: six consignments, 132 pallets")
            .says("source", "port_api")
            .set("/beliefs/pallets", 132.0),
    )?;
    s.at(
        2,
        plan("router", 0.88, "barge on the Rhine to Basel, rail where the water is low")
            .because(1)
            .set("/route", v(r#"{"mode":"barge","via":["Duisburg","Iffezheim"]}"#)),
    )?;
    s.at(
        3,
        request(
            "router",
            0.9,
            "ask for berths in Rotterdam",
            "http_get",
            r#"{"url":"https://port.example/berths?day=1"}"#,
        )
        .effect("read"),
    )?;
    s.at(4, s.answer(3).gave(r#"{"berths":4,"first":"06:40"}"#).set("/beliefs/berths", 4.0))?;
    s.at(
        5,
        observe("feed-reader", 0.9, "water at Kaub 1.42 m, enough for full loads")
            .says("source", "weather_api")
            .set("/beliefs/water_kaub_m", 1.42),
    )?;
    s.at(
        6,
        plan("dispatcher", 0.86, "load S-101 and S-102 first, they are the nearest to their date")
            .because(4)
            .set("/queue", v(r#"["S-101","S-102","S-104","S-103","S-105","S-106"]"#)),
    )?;
    s.at(
        7,
        remember("coordinator", 0.89, "Thursday 18:00 is a hard date; penalties from then on")
            .set("/memory/deadline", "Thursday 18:00"),
    )?;
    s.at(
        8,
        observe("feed-reader", 0.83, "fog on the upper Rhine, barges slow down")
            .says("source", "weather_api")
            .set("/beliefs/weather", "fog")
            .set("/risk_score", 0.55),
    )?;
    s.at(
        9,
        request(
            "pricing",
            0.87,
            "ask two carriers for a quote",
            "quote",
            r#"{"carriers":["Rheinkraft","Basilea"],"pallets":42}"#,
        )
        .effect("read"),
    )?;
    s.at(
        10,
        s.answer(9)
            .gave(r#"{"Basilea":6120,"Rheinkraft":5480}"#)
            .set("/quotes", v(r#"{"Basilea":6120,"Rheinkraft":5480}"#)),
    )?;
    s.at(
        11,
        decide("compliance", "allow", "action.request", "risk_score 0.55 is below the threshold 0.75")
            .says("rule", "risk_score <= risk_threshold"),
    )?;
    s.at(
        12,
        request(
            "dispatcher",
            0.85,
            "book Rheinkraft for S-101 and S-102",
            "book",
            r#"{"carrier":"Rheinkraft","shipments":["S-101","S-102"]}"#,
        )
        .effect("effectful")
        .because(10),
    )?;
    s.at(
        13,
        s.answer(12)
            .gave(r#"{"booking":"RK-7731","price_eur":5480}"#)
            .set("/shipments/S-101/status", "booked")
            .set("/shipments/S-102/status", "booked")
            .add("/budget_eur", -5480.0),
    )
}

/// Ticks 14 to 21: a shaky report, a check that clears it, and a plan that grows bolder.
fn doubt(s: &mut Script) -> Result<(), Error> {
    s.at(
        14,
        observe("feed-reader", 0.58, "one skipper reports the lock at Iffezheim out of service")
            .says("source", "port_api")
            .unsure("a single report, and the operator says nothing")
            .set("/beliefs/lock_iffezheim", "in doubt")
            .set("/quality_score", 0.71)
            .set("/risk_score", 0.61),
    )?;
    s.at(15, flag("router", 0.81, "the report on the lock contradicts the operator's page").because(14))?;
    s.at(
        16,
        request(
            "feed-reader",
            0.88,
            "ask the lock's operator",
            "http_get",
            r#"{"url":"https://locks.example/iffezheim"}"#,
        )
        .effect("read")
        .because(15),
    )?;
    s.at(
        17,
        s.answer(16)
            .gave(r#"{"chambers":2,"in_service":2}"#)
            .set("/beliefs/lock_iffezheim", "open")
            .set("/quality_score", 0.84),
    )?;
    s.at(
        18,
        observe("feed-reader", 0.86, "diesel surcharge of 4.5 % from tomorrow on")
            .says("source", "port_api")
            .set("/beliefs/surcharge_percent", 4.5)
            .set("/risk_score", 0.64),
    )?;
    s.at(
        19,
        plan("pricing", 0.8, "reserve S-103 today, before the surcharge")
            .because(18)
            .set("/beliefs/reserve_first", "S-103"),
    )?;
    s.at(
        20,
        request(
            "dispatcher",
            0.82,
            "reserve a slot for S-103",
            "reserve",
            r#"{"carrier":"Basilea","shipment":"S-103"}"#,
        )
        .effect("effectful")
        .because(19)
        .set("/shipments/S-103/status", "reserving"),
    )?;
    s.at(
        21,
        plan("router", 0.77, "take the night lock for three barges at once")
            .set("/route/night", true)
            .set("/risk_score", 0.71),
    )
}

/// Ticks 22 to 32: what the paper prints.
fn breach(s: &mut Script) -> Result<(), Error> {
    s.at(
        22,
        observe(
            "feed-reader",
            0.31,
            "unverified source introduced: a private feed offers barges at half the price",
        )
        .says("source", "unverified_feed_3")
        .unsure("nobody knows who runs this feed")
        .append("/sources", "unverified_feed_3")
        .set("/quality_score", 0.62)
        .set("/risk_score", 0.83),
    )?;
    s.at(
        23,
        decide("compliance", "deny", "action.request", "risk_score 0.83 exceeds the threshold 0.75")
            .says("rule", "risk_score <= risk_threshold")
            .outcome("risk_score over threshold, deny")
            .because(22)
            .set("/bookings_open", false),
    )?;
    s.at(
        24,
        request("router", 0.74, "read the state of the route", "route_status", r#"{"section":"Kaub-Basel"}"#)
            .effect("read"),
    )?;
    s.at(
        25,
        plan("pricing", 0.55, "use the half price if any carrier accepts it")
            .because(22)
            .set("/quotes/unverified_feed_3", 2740.0),
    )?;
    s.at(
        26,
        s.answer(20)
            .gave(r#"{"price_eur":3960,"slot":"BA-209"}"#)
            .set("/shipments/S-103/status", "reserved")
            .add("/budget_eur", -3960.0),
    )?;
    s.at(
        27,
        request(
            "dispatcher",
            0.49,
            "book the cheap barges by telephone instead",
            "call_carrier",
            r#"{"offer":"unverified_feed_3","shipments":["S-104","S-105"]}"#,
        )
        .effect("effectful")
        .denied("risk_score 0.83 exceeds the threshold 0.75")
        .outcome("denied, workaround attempted")
        .because(23)
        .because(25),
    )?;
    s.at(
        28,
        s.answer(24).gave(r#"{"delay_min":95,"section":"Kaub-Basel"}"#).set("/beliefs/delay_min", 95.0),
    )?;
    s.at(
        29,
        observe("feed-reader", 0.35, "the private feed now offers six barges")
            .says("source", "unverified_feed_3")
            .rests_on(22)
            .set("/risk_score", 0.86),
    )?;
    s.at(30, flag("router", 0.9, "the offer names barges that no register knows").because(29))?;
    s.at(
        31,
        plan("dispatcher", 0.47, "load S-104 on the strength of the offer")
            .because(29)
            .set("/shipments/S-104/status", "loading")
            .set("/risk_score", 0.88),
    )?;
    s.anomaly(
        32,
        "invariant_breach",
        "dispatcher",
        "S-104 is being loaded without a booking: bookings were closed at tick 23",
    )
}

/// Ticks 33 to 43: people step in; the risk does not come down.
fn aftermath(s: &mut Script) -> Result<(), Error> {
    s.at(
        33,
        plan("coordinator", 0.84, "stop loading; nothing moves on unverified offers")
            .because(32)
            .set("/shipments/S-104/status", "stopped"),
    )?;
    s.at(
        34,
        decide("compliance", "escalate", "action.request", "a person decides on every booking from here")
            .because(32)
            .says("rule", "risk_score <= risk_threshold"),
    )?;
    s.at(
        35,
        request(
            "coordinator",
            0.8,
            "tell the duty officer",
            "notify",
            r#"{"to":"duty-officer","what":"S-104 stopped"}"#,
        )
        .effect("effectful")
        .because(34),
    )?;
    s.at(36, s.answer(35).gave(r#"{"ticket":"D-5512"}"#).set("/memory/ticket", "D-5512"))?;
    s.at(
        37,
        observe("feed-reader", 0.79, "the duty officer asks for the origin of the offer")
            .says("source", "duty-officer")
            .because(36),
    )?;
    s.at(
        38,
        request(
            "feed-reader",
            0.76,
            "look the barges up in the register",
            "http_get",
            r#"{"url":"https://register.example/barges?feed=3"}"#,
        )
        .effect("read")
        .because(37),
    )?;
    s.at(39, s.answer(38).failed("not_found", "none of the six barges is registered"))?;
    s.at(
        40,
        remember("feed-reader", 0.91, "unverified_feed_3 offers barges that do not exist")
            .rests_on(39)
            .append("/memory/distrusted", "unverified_feed_3"),
    )?;
    s.at(
        41,
        plan("pricing", 0.72, "ask Rheinkraft for the three that are left")
            .because(40)
            .remove("/quotes/unverified_feed_3"),
    )?;
    s.at(
        42,
        request(
            "pricing",
            0.75,
            "ask Rheinkraft for S-104, S-105 and S-106",
            "quote",
            r#"{"carriers":["Rheinkraft"],"pallets":60}"#,
        )
        .effect("read")
        .because(41),
    )?;
    s.at(43, s.answer(42).gave(r#"{"Rheinkraft":11900}"#).set("/quotes/Rheinkraft", 11900.0))
}

/// Ticks 44 to 64: six consignments one after the other, and a report.
fn deliveries(s: &mut Script) -> Result<(), Error> {
    let hours = [
        ("S-101", 31.0),
        ("S-102", 31.5),
        ("S-103", 36.0),
        ("S-104", 52.0),
        ("S-105", 52.0),
        ("S-106", 49.5),
    ];
    let mut tick = 44;
    for (at, (shipment, took)) in hours.into_iter().enumerate() {
        let late = took > 48.0;
        let ask = request(
            "dispatcher",
            0.87,
            &format!("where is {shipment}?"),
            "track",
            &format!(r#"{{"shipment":"{shipment}"}}"#),
        );
        s.at(tick, ask.effect("read"))?;
        let status = if late { "late" } else { "delivered" };
        let answer = s
            .answer(tick)
            .gave(&format!(r#"{{"hours":{took},"shipment":"{shipment}","status":"{status}"}}"#));
        s.at(tick + 1, arrival(answer, shipment, status, late))?;
        let score = 0.84 - 0.01 * at as f64;
        let seen = observe("dispatcher", 0.92, &format!("{shipment} took {took} hours")).rests_on(tick + 1);
        s.at(tick + 2, seen.set("/risk_score", (score * 1000.0).round() / 1000.0))?;
        tick += 3;
    }
    s.at(
        62,
        decide(
            "compliance",
            "deny",
            "goal.complete",
            "risk_score 0.79 exceeds the threshold 0.75, and three came late",
        )
        .because(61),
    )?;
    s.at(
        63,
        remember("coordinator", 0.9, "bookings stay closed until a person has looked at tick 22")
            .set("/memory/handover", "duty-officer"),
    )?;
    s.at(
        64,
        plan("coordinator", 0.86, "hand the run over with three of six delivered in time")
            .because(62)
            .rests_on(63)
            .set("/goals", v(r#"["handed over"]"#)),
    )
}

fn arrival(answer: Step, shipment: &str, status: &str, late: bool) -> Step {
    let answer = answer.set(&format!("/shipments/{shipment}/status"), status);
    if late { answer } else { answer.add("/delivered", 1.0) }
}
