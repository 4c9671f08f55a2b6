//! `trip-planner-b`, `-c` and `-d`: the journey of [`super::trip`], gone on with in three other ways.
//!
//! b and c fork at tick 30, where the room is looked for, and d at tick 12, before a price comes from nowhere. A marker
//! takes a tick, so that tick 31 of a is tick 32 of b. The transcript of a comparison names ticks 31 to 37 of b, and in c
//! ticks 34 to 38 are what a does from 32 to 36. b and c end with as much money left and with another itinerary, so that
//! a merge of the two has one conflict.

use dendrer::Error;
use dendrer::fork::ForkTerms;
use dendrer::store::Shared;
use dendrer_object::RunName;

use super::script::{MORNING_MS, Script, flag, observe, plan, request, v};
use super::trip::{
    GOAL_ID, KRONE, Room, ask_for_room, board, check_room, fits, hand_over, hold_room, take_offer, weather,
    write_plan,
};

/// Begins a fork of the journey, some hours after it.
fn begin(store: &Shared, run: &str, tick: u64, reason: &str, hours: u64) -> Result<Script, Error> {
    let mut terms = ForkTerms::new(run.parse().expect("a run id"));
    terms.reason = Some(reason.into());
    Script::fork(store, ("trip-planner-a", tick), &terms, GOAL_ID, MORNING_MS + hours * 3_600_000)
}

const HOSTEL: Room = Room {
    max_price_chf: 90,
    hotel: "Hostel Basel",
    price_chf_per_night: 73.5,
    rating: 2.0,
    confidence: 0.79,
    ..KRONE
};

/// Records b: a cheaper room, and what it costs after all.
pub(super) fn record_b(store: &Shared) -> Result<RunName, Error> {
    let mut s = begin(store, "trip-planner-b", 30, "look for a cheaper room", 1)?;
    ask_for_room(&mut s, 32, 30, &HOSTEL)?;
    take_offer(&mut s, 33, 32, &HOSTEL)?;
    // In the place of the decision that it fits into what is left: at this price nobody asks.
    s.at(35, observe("verifier", 0.7, "a hostel, and the beds are shared").because(33))?;
    hold_room(&mut s, 36, &HOSTEL)?;
    s.at(38, flag("skeptic", 0.62, "two stars: nobody sleeps well for CHF 73.50").because(35))?;
    s.at(
        39,
        request(
            "planner",
            0.8,
            "ask the hostel for a room of one's own",
            "http_get",
            r#"{"url":"https://hostel.example/rooms?beds=1&nights=2"}"#,
        )
        .effect("read")
        .because(38),
    )?;
    s.at(
        40,
        s.answer(39)
            .gave(r#"{"private":true,"supplement_chf":30}"#)
            .set("/hotel/private", true)
            .add("/hotel/price_chf", 30.0)
            .add("/budget_remaining", -30.0),
    )?;
    s.at(
        41,
        plan("planner", 0.85, "what is saved pays for a dinner in a grotto on day 2")
            .because(40)
            .set("/reserved/grotto", 39.0)
            .set("/itinerary/1/evening", "grotto")
            .add("/budget_remaining", -39.0),
    )?;
    write_plan(&mut s, 42, 41, 2_093)?;
    hand_over(&mut s, 45, 43, 538)?;
    s.end(45)
}

/// Records c: it asks once more, takes the same room, and leaves out the boat.
pub(super) fn record_c(store: &Shared) -> Result<RunName, Error> {
    let mut s = begin(store, "trip-planner-c", 30, "ask once more", 2)?;
    ask_for_room(&mut s, 32, 30, &KRONE)?;
    s.at(33, observe("planner", 0.5, "is that all?").because(32))?;
    take_offer(&mut s, 34, 32, &KRONE)?;
    fits(&mut s, 36)?;
    hold_room(&mut s, 37, &KRONE)?;
    check_room(&mut s, 39, 38)?;
    s.at(
        40,
        plan("planner", 0.89, "showers on day 3: the museum in place of the boat")
            .rests_on(25)
            .remove("/reserved/boat")
            .set("/itinerary/2/place", "museum in Lugano")
            .add("/budget_remaining", 20.0),
    )?;
    write_plan(&mut s, 41, 40, 1_876)?;
    hand_over(&mut s, 44, 42, 538)?;
    s.end(44)
}

const TORRE: Room = Room {
    ask: "search a room for one night",
    city: "Bellinzona",
    nights: 1,
    max_price_chf: 120,
    hotel: "Albergo Torre",
    price_chf_per_night: 96.0,
    rating: 3.0,
    confidence: 0.87,
};

/// Records d: one night in a hut and one in Bellinzona, from prices that somebody vouches for.
pub(super) fn record_d(store: &Shared) -> Result<RunName, Error> {
    let mut s = begin(store, "trip-planner-d", 12, "take prices from the tourist board alone", 3)?;
    board(&mut s, 14, 12, 0.22)?;
    weather(&mut s, 16)?;
    s.at(
        18,
        plan("planner", 0.85, "walk while it is dry: a hut on Monte Tamaro, then the castles of Bellinzona")
            .because(17)
            .set(
                "/itinerary",
                v(r#"[{"day":1,"place":"Monte Tamaro"},{"day":2,"place":"Bellinzona"},{"day":3,"place":"Bellinzona"}]"#),
            ),
    )?;
    s.at(
        19,
        request(
            "researcher",
            0.82,
            "ask the hut for a bed",
            "http_get",
            r#"{"url":"https://hut.example/tamaro/beds?night=1"}"#,
        )
        .effect("read")
        .because(18),
    )?;
    s.at(
        20,
        s.answer(19)
            .gave(r#"{"beds":6,"meals":true,"price_chf":68}"#)
            .set("/reserved", v(r#"{"hut":68}"#))
            .add("/budget_remaining", -68.0),
    )?;
    ask_for_room(&mut s, 21, 18, &TORRE)?;
    take_offer(&mut s, 22, 21, &TORRE)?;
    fits(&mut s, 24)?;
    hold_room(&mut s, 25, &TORRE)?;
    s.at(
        27,
        plan("planner", 0.88, "set aside meals CHF 80, castles CHF 28, cable car CHF 31")
            .because(20)
            .set("/reserved/cable_car", 31.0)
            .set("/reserved/castles", 28.0)
            .set("/reserved/meals", 80.0)
            .add("/budget_remaining", -139.0),
    )?;
    write_plan(&mut s, 28, 27, 1_702)?;
    hand_over(&mut s, 31, 29, 403)?;
    s.end(31)
}
