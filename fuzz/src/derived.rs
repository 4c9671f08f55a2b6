//! What is kept beside the log and may be wrong: snapshots and verdicts. Whatever they hold, answers are those of the
//! records.

use std::cell::RefCell;

use dendrer::Trace;
use dendrer::timeline::{self, Timeline};
use dendrer::trace::Moment;
use dendrer_kernel::predicate::Predicate;
use dendrer_kernel::step::{KERNEL_VERSION, Start};
use dendrer_object::delta::{Delta, Op};
use dendrer_object::{Digest, Intent, RunName, Value};
use dendrer_store::prelude::*;
use dendrer_store::{Shared, Slot};
use dendrer_testkit::{key, memory_with_key, run_name};

const TICKS: u64 = 24;

fn run() -> RunName {
    run_name("r")
}

/// A run whose state has a list, a map and a number.
fn recorded() -> Shared {
    let store = memory_with_key(3);
    let intents = (1..=TICKS).map(|n| {
        let op = match n % 3 {
            0 => Op::set(format!("/map/k{}", n % 5).parse().expect("a pointer"), Value::from(n)),
            1 => Op::set("/x".parse().expect("a pointer"), Value::from(n)),
            _ => {
                Op::set(format!("/text{}", n % 4).parse().expect("a pointer"), Value::from("word ".repeat(4)))
            }
        };
        let delta = Delta(vec![op]);
        Intent::new("memory.write".parse().expect("a type"), if n % 2 == 0 { "a" } else { "b" })
            .with_delta(delta)
    });
    let start = Start { state: Value::record([("map", Value::object())]), ..Start::new(run()) };
    dendrer_testkit::record(&store, &start, intents);
    store
}

struct Base {
    store: Shared,
    moments: Vec<Moment>,
}

thread_local! {
    static BASE: RefCell<Base> = RefCell::new({
        let store = recorded();
        let trace = Trace::open(&store, &run()).expect("it opens").without_snapshots();
        let moments = (0..=TICKS).map(|tick| trace.at(tick).expect("it is read")).collect();
        drop(trace);
        Base { store, moments }
    });
}

/// Applies changes of three bytes to a text: where (two bytes), and what is XORed there, or 0 to cut it.
fn change(bytes: &mut Vec<u8>, changes: &[u8]) {
    for change in changes.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % (bytes.len() + 1);
        match change[2] {
            0 => bytes.truncate(at),
            bits if at < bytes.len() => bytes[at] ^= bits,
            byte => bytes.push(byte),
        }
    }
}

/// A snapshot: its tick, and its bytes, changes of the right ones, or changes of what nobody signed.
pub fn snapshot(data: &[u8]) {
    let Some((&[tick, how], rest)) = data.split_first_chunk() else { return };
    let tick = 1 + u64::from(tick) % TICKS;
    BASE.with_borrow(|base| {
        let moment = &base.moments[tick as usize];
        let bytes = match how % 3 {
            0 => rest.to_vec(),
            signed => {
                let mut bytes = moment.to_snapshot(Some(&key(3)).filter(|_| signed == 1));
                change(&mut bytes, rest);
                bytes
            }
        };
        base.store.keep(Slot::Snapshot(&run(), tick), &bytes).expect("it is kept");
        let trace = Trace::open(&base.store, &run()).expect("it opens");
        for asked in [tick, (tick + 1).min(TICKS), TICKS, tick - 1] {
            let (found, expected) = (trace.at(asked).expect("it is read"), &base.moments[asked as usize]);
            assert_eq!(found.state, expected.state, "the state at {asked}");
            assert_eq!((found.tick, found.id), (expected.tick, expected.id));
            assert_eq!(
                (&found.counters, &found.agents),
                (&expected.counters, &expected.agents),
                "at {asked}"
            );
            let trace = Trace::open(&base.store, &run()).expect("it opens");
            assert_eq!(trace.state(asked).expect("it is read"), expected.state, "the state alone at {asked}");
        }
        // The next input meets none.
        base.store.keep(Slot::Snapshot(&run(), tick), b"").expect("it is kept");
    });
}

const ASKED: &str = "state.x > 11 && has(state.map.k4)";

fn question(predicate: &Predicate) -> Digest {
    let kernel = KERNEL_VERSION.to_be_bytes();
    Digest::of_parts(&[b"dendrer/question/v1\n", &kernel, b"unknown\n", &predicate.digest().0])
}

/// A statement of verdicts: changes of the right one, other bytes, or other bytes under the key of the store.
pub fn verdicts(data: &[u8]) {
    let Some((how, rest)) = data.split_first() else { return };
    let key = key(3);
    let predicate = Predicate::condition("p", ASKED).expect("it parses");
    let digest = question(&predicate);
    BASE.with_borrow(|base| {
        let judge = || -> Timeline {
            let trace = Trace::open(&base.store, &run()).expect("it opens");
            timeline::judge(&trace, &predicate, 0, trace.tip()).expect("it is judged")
        };
        base.store.keep(Slot::Verdicts(&run(), &digest), b"").expect("it is kept");
        let honest = judge();
        assert_eq!(honest.known_to, None, "nothing was known");
        let kept = base.store.kept(Slot::Verdicts(&run(), &digest)).expect("it is read");
        let (_, kept) = kept.expect("it was kept");
        assert!(kept.len() > 64, "the question is the one that was asked");
        let bytes = match how % 3 {
            0 => {
                let mut bytes = kept.clone();
                change(&mut bytes, rest);
                bytes
            }
            1 => rest.to_vec(),
            _ => {
                let run = Digest::of(run().as_str().as_bytes());
                let store = base.store.info().id.0;
                let message = Digest::of_parts(&[b"dendrer/verdicts/v1\n", &store, &run.0, &digest.0, rest]);
                [&key.sign(&message.0)[..], rest].concat()
            }
        };
        base.store.keep(Slot::Verdicts(&run(), &digest), &bytes).expect("it is kept");
        if how % 3 == 2 {
            // The holder of the key may state what is not so; that much is believed, and nothing stops.
            let trace = Trace::open(&base.store, &run()).expect("it opens");
            let _ = timeline::judge(&trace, &predicate, 0, trace.tip());
            return;
        }
        let found = judge();
        assert_eq!((&found.turns, found.from, found.to), (&honest.turns, honest.from, honest.to));
        let is_honest = bytes == kept;
        assert_eq!(found.known_to.is_some(), is_honest, "a statement that was touched is not believed");
    });
}
