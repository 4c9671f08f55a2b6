//! A lifted predicate over a long run: judged where something it reads was written, against judged at every tick.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dendrer::kernel::predicate::Predicate;
use dendrer::store::Shared;
use dendrer::store::embedded::{Embedded, Options};
use dendrer::store::prelude::*;
use dendrer::{Trace, timeline};
use dendrer_kernel::step::Start;
use dendrer_object::delta::{Delta, Op};
use dendrer_object::{Intent, Value};

use crate::common::{key, new_store};

const TICKS: u64 = 1_000_000;

/// How many ticks there are for one that writes what the predicate reads.
const EVERY: u64 = 100;

pub(crate) fn lift(dir: &Path) {
    println!("a lifted predicate over {TICKS} ticks, 1 of {EVERY} of which writes what it reads (limit: 20)");
    // Without the key nothing is kept, so each question is answered from the records.
    drop(new_store(dir, "lift"));
    let open = || Embedded::open(&dir.join("lift"), Options::untagged()).expect("opened");
    let store = Shared::new(Box::new(open()));
    let run = "bench".parse().expect("a name");
    let list =
        Value::array((0..50u64).map(|n| Value::record([("price", Value::from(n)), ("n", Value::from(n))])));
    let state = Value::record([("orders", list), ("limit", Value::from(1_000_000_000u64))]);
    let start = Start { state, ..Start::new(run) };
    let intents = (1..=TICKS).map(|n| {
        let (path, value) = match n % EVERY {
            0 => (format!("/orders/{}/n", n / EVERY % 50), n / EVERY),
            other => (format!("/elsewhere/{other}"), n),
        };
        let op = Op::set(path.parse().expect("a pointer"), Value::from(value));
        Intent::new("memory.write".parse().expect("a type"), "agent").with_delta(Delta(vec![op]))
    });
    let first = Delta(vec![Op::set("/elsewhere".parse().expect("a pointer"), Value::object())]);
    let first = Intent::new("memory.write".parse().expect("a type"), "agent").with_delta(first);
    dendrer_testkit::record(&store, &start, std::iter::once(first).chain(intents));
    let text = "sum(state.orders.map(o, o.price * o.n)) > state.limit";
    let predicate = Predicate::condition("over", text).expect("a predicate").lifted();
    let trace = || Trace::open(&store, &start.run).expect("a run");
    let timed = |work: &mut dyn FnMut()| {
        let begin = Instant::now();
        work();
        begin.elapsed()
    };
    let mut judged = 0;
    let reading = timed(&mut || {
        let mut records = 0u64;
        let counted = trace().for_each(1, TICKS, &mut |_, record| {
            records += u64::from(black_box(record).header().tick.is_some());
            ControlFlow::Continue(())
        });
        counted.expect("read");
        assert_eq!(records, TICKS);
    });
    let candidates = timed(&mut || {
        judged = timeline::judge(&trace(), &predicate, 0, TICKS).expect("verdicts").judged;
    });
    let everywhere = timed(&mut || {
        let lines = timeline::scan(&trace(), &[&predicate], 0, TICKS).expect("verdicts");
        assert_eq!(lines[0].judged, TICKS);
    });
    drop(store);
    let keyed = Shared::new(Box::new(open().with_key(Some(Arc::new(key())))));
    let trace = || Trace::open(&keyed, &start.run).expect("a run");
    let kept = || timeline::judge(&trace(), &predicate, 0, TICKS).expect("verdicts");
    kept();
    let again = timed(&mut || assert_eq!(kept().known_to, Some(TICKS)));
    let seconds = |time: Duration| time.as_secs_f64();
    println!(
        "  reading the records {:.1} s; with the verdicts of {judged} candidates {:.1} s; with those of every tick {:.1} s",
        seconds(reading),
        seconds(candidates),
        seconds(everywhere),
    );
    let beyond = |time: Duration| (seconds(time) - seconds(reading)).max(0.0);
    println!(
        "  evaluating, beyond reading: {:.2} s against {:.2} s, ratio {:.1}",
        beyond(candidates),
        beyond(everywhere),
        beyond(everywhere) / beyond(candidates)
    );
    println!("  the whole question: ratio {:.2}", seconds(everywhere) / seconds(candidates));
    println!(
        "  once its verdicts are kept: {:.1} ms, ratio {:.0}",
        seconds(again) * 1e3,
        seconds(everywhere) / seconds(again)
    );
    AppendLog::close(Box::new(keyed)).expect("closed");
}
