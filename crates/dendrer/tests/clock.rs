//! A clock that jumps: times on record never go back, what the clock said otherwise is noted, and what was recorded
//! verifies and replays (integrity: a clock that went back is clamped).
//!
//! `DENDRER_CLOCK_JUMPS` says how often the clock jumps.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]
#![expect(clippy::print_stdout, reason = "figures with --nocapture")]

use dendrer::recorder::Environment;
use dendrer::verify::{self, VerifyTerms, VerifyVerdict};
use dendrer::{Recorder, Trace};
use dendrer_kernel::step::{Outcome, Start};
use dendrer_object::record::Seed;
use dendrer_object::{Digest, Intent, Timestamp};
use dendrer_store::prelude::*;
use dendrer_testkit::{Dice, memory, run_name};

/// The last millisecond that can be written down: the end of the year 9999.
const LAST: u64 = 253_402_300_799_999;

/// Moments at which programs have broken before.
const EDGES: [u64; 12] = [
    0,
    1,
    86_400_000,
    // A leap second, as clocks that repeat it or smear it show it.
    1_483_228_799_999,
    1_483_228_800_000,
    // Signed and unsigned seconds in 32 bits run out.
    2_147_483_647_999,
    2_147_483_648_000,
    4_294_967_295_999,
    4_294_967_296_000,
    // The 29th of February of a year that has one by exception.
    951_782_400_000,
    LAST,
    u64::MAX,
];

/// A clock that says what it is told to, moment by moment.
struct Jumpy {
    moments: std::vec::IntoIter<u64>,
    seeds: u64,
}

impl Environment for Jumpy {
    fn now(&mut self) -> Timestamp {
        Timestamp::from_ms(self.moments.next().unwrap())
    }

    fn seed(&mut self) -> Seed {
        self.seeds += 1;
        Seed(Digest::of(&self.seeds.to_be_bytes()).0[..16].try_into().unwrap())
    }
}

fn moments(dice: &mut Dice) -> Vec<u64> {
    let mut now = 1_771_867_265_000u64;
    let mut next = || {
        now = match dice.below(6) {
            0 => EDGES[dice.below(EDGES.len() as u64) as usize],
            1 => now.saturating_sub(dice.below(100_000_000_000)),
            2 => now.saturating_add(dice.below(100_000_000_000)),
            3 => now.saturating_sub(1),
            4 => dice.below(LAST),
            _ => now.saturating_add(1),
        };
        now
    };
    (0..16).map(|_| next()).collect()
}

#[test]
fn times_on_record_never_go_back_whatever_the_clock_does() {
    let asked = std::env::var("DENDRER_CLOCK_JUMPS").ok().and_then(|text| text.parse().ok()).unwrap_or(1000);
    let mut dice = Dice(2038);
    let (mut jumps, mut clamped) = (0, 0);
    while jumps < asked {
        let said = moments(&mut dice);
        let store = memory(1);
        let run = run_name("r");
        let clock = Jumpy { moments: said.clone().into_iter(), seeds: 0 };
        let mut recorder = Recorder::begin(&store, &Start::new(run.clone()), Box::new(clock)).unwrap();
        for _ in 1..said.len() {
            let intent = Intent::new("plan.update".parse().unwrap(), "a");
            assert!(matches!(recorder.propose(&intent).unwrap(), Outcome::Committed(_)));
        }
        recorder.commit().unwrap();
        let trace = Trace::open(&store, &run).unwrap();
        let mut before = 0;
        for (tick, said) in (0..).zip(&said) {
            let record = trace.record(tick).unwrap();
            // What lies behind the year 9999 is its last millisecond.
            let said = (*said).min(LAST);
            assert_eq!(record.header().ts.ms(), said.max(before), "at {tick}");
            let notes = record.body().value("/anomalies");
            let is_noted = notes.is_some_and(|notes| notes.to_string().contains("clock_went_back"));
            assert_eq!(is_noted, said < before, "at {tick}: {said} after {before}");
            clamped += u64::from(is_noted);
            let text = record.header().ts.to_string();
            assert_eq!(text.parse(), Ok(record.header().ts), "{text} is read as it was written");
            before = record.header().ts.ms();
            jumps += 1;
        }
        let report = verify::store(&store, &VerifyTerms { replay: true, ..VerifyTerms::default() }).unwrap();
        assert_eq!((report.verdict, &report.findings[..]), (VerifyVerdict::Intact, &[][..]));
        assert_eq!(store.tree().size, said.len() as u64);
    }
    assert!(clamped > jumps / 8, "the clock did go back: {clamped} of {jumps}");
    println!("deep: clock {jumps}");
}
