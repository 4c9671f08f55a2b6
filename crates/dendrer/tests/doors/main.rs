//! Every door asks what `commit` asks (design, section 14.1): a generator of proposals, and the table of doors by rules that it
//! finds.
//!
//! What `commit` refuses, each door refuses with the same code, or with a code of its own that its row names; what `commit` notes,
//! each door notes. A proposal that a door cannot express is counted, with the reason.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod denied;
mod doors;
mod draw;
mod found;
mod table;
mod world;

use std::collections::{BTreeMap, BTreeSet};

use dendrer_testkit::Dice;

use doors::{Asked, DOORS, Door, KINDS, Sources};
use found::{Fact, Found};
use table::Tally;
use world::{STAGES, World};

/// Whether a fact is among others, with the same ids or more.
fn has(facts: &BTreeSet<Fact>, (name, ids): &Fact) -> bool {
    facts.iter().any(|(known, theirs)| known == name && ids.iter().all(|id| theirs.contains(id)))
}

/// What a door did differently from `commit`; `None` if it did the same.
fn difference(door: &Door, main: &Found, found: &Found) -> Option<String> {
    let own = |code: &str| door.own.iter().any(|(own, _)| *own == code);
    match (main, found) {
        (_, Found::Cannot(_)) => None,
        (_, Found::Refused((code, _))) if own(code) => None,
        (Found::Refused((one, _)), Found::Refused((two, _))) if one == two => None,
        (Found::Refused((code, _)), Found::Taken { would, .. }) if door.tells => {
            // Below stage 2 it asks the door of stage 2, where another rule may come before the change.
            let is_told = would.iter().any(|(told, _)| told == code) || code == "E0404" && !would.is_empty();
            (!is_told).then(|| format!("{code} is not told"))
        }
        (Found::Refused((code, ids)), other) => Some(format!("{code} {ids:?}, and the door: {other:?}")),
        (Found::Taken { .. }, Found::Refused((code, ids))) => {
            Some(format!("taken, and the door: {code} {ids:?}"))
        }
        (Found::Taken { notes, would }, Found::Taken { notes: theirs, would: told }) => {
            let is_about_all = !["`fork --set`", "`merge`", "`accept`"].contains(&door.name);
            // A check of the door that comes first is told in place of what commitments say.
            let is_own = told.iter().any(|(code, _)| own(code));
            let is_told = |(fact, _): &&Fact| !is_own || fact != "commitment_violated";
            let would = would.iter().filter(|fact| !is_own && !has(told, fact));
            let missing = notes.iter().filter(|fact| is_told(fact) && !has(theirs, fact)).chain(would).next();
            missing.filter(|_| is_about_all).map(|missing| format!("{missing:?} is not noted: {found:?}"))
        }
        (Found::Cannot(_), _) => unreachable!("the main door takes every line"),
    }
}

/// Design, 14.1: one judge.
#[test]
fn every_door_refuses_what_commit_refuses() {
    let deep = std::env::var_os("DENDRER_DEEP").is_some();
    let count: u64 = match std::env::var("DENDRER_PROPOSALS") {
        Ok(count) => count.parse().unwrap(),
        Err(_) => {
            if deep {
                20_000
            } else {
                2_000
            }
        }
    };
    // One line alone, to look at a failure.
    let given = std::env::var("DENDRER_LINE").ok().map(|line| draw::v(&line));
    let mut dice = Dice(14_1);
    let mut tally = Tally::default();
    let mut wrong: BTreeMap<String, (u64, String)> = BTreeMap::new();
    // A store is made again after some proposals, because each leaves runs in it.
    const OF_ONE_STORE: u64 = 200;
    let mut worlds: Vec<World> = Vec::new();
    for n in 0..count {
        if n % OF_ONE_STORE == 0 {
            worlds = KINDS.iter().map(|(kind, is_child)| World::new(*kind, *is_child)).collect();
        }
        let world = &worlds[(dice.below(5) as usize).min(4) % KINDS.len()];
        let line = match &given {
            Some(line) => line.clone(),
            None if n % 21 == 5 => doors::rare(world.kind, n / 21),
            None => draw::line(&mut dice, world.kind),
        };
        let Some(intent) = world.intent(&line) else {
            tally.no_intent += 1;
            continue;
        };
        let mains: Vec<Found> =
            STAGES.into_iter().map(|stage| doors::main_door(world, stage, &intent)).collect();
        mains.iter().for_each(|main| tally.main(main));
        let sources = Sources::new(world, &intent);
        for (at, stage) in STAGES.into_iter().enumerate() {
            for (number, door) in DOORS.iter().enumerate() {
                // A door that begins a run for each proposal is asked about every fourth one, at one stage.
                if !deep && door.begins_a_run && !(n + number as u64 + 4 * at as u64).is_multiple_of(16) {
                    continue;
                }
                let asked =
                    Asked { world, stage, line: &line, intent: &intent, main: &mains[at], sources: &sources };
                let asking = std::panic::AssertUnwindSafe(|| (door.ask)(&asked));
                let found = std::panic::catch_unwind(asking).unwrap_or_else(|_| Found::refused("PANIC"));
                let main = if door.tells { mains[at].told(&mains[at.min(1)]) } else { mains[at].clone() };
                if let Some(what) = difference(door, &main, &found) {
                    let class = format!("{}: {}", door.name, class_of(&main, &found));
                    let first = wrong
                        .entry(class)
                        .or_insert_with(|| (0, format!("stage {stage} {:?}: {line}: {what}", world.kind)));
                    first.0 += 1;
                }
                tally.door(door, &main, &found);
            }
        }
    }
    for (class, (count, first)) in &wrong {
        println!("{count:>5} {class}\n      {first}");
    }
    table::draft(&tally);
    assert!(wrong.is_empty(), "{} kinds of differences", wrong.len());
    if !deep && given.is_none() && std::env::var_os("DENDRER_PROPOSALS").is_none() {
        table::compare(&tally);
    }
}

fn class_of(main: &Found, found: &Found) -> String {
    let words = |found: &Found| match found {
        Found::Refused((code, _)) => format!("refused {code}"),
        Found::Taken { .. } => "taken".to_owned(),
        Found::Cannot(why) => (*why).to_owned(),
    };
    let mut class = format!("{} / {}", words(main), words(found));
    if let (Found::Taken { notes, would }, Found::Taken { notes: theirs, would: told }) = (main, found) {
        for (fact, _) in notes.difference(theirs) {
            class.push_str(&format!(" -{fact}"));
        }
        for (fact, _) in would.difference(told) {
            class.push_str(&format!(" -would {fact}"));
        }
    }
    class
}
