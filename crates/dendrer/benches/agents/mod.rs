//! Many agents in one run: the state of one along its causal ancestors, and a comparison of two.

use std::path::Path;
use std::time::Instant;

use dendrer::ask::compare;
use dendrer::recorder::World;
use dendrer::run::causal;
use dendrer::store::Shared;
use dendrer::{Recorder, Trace};
use dendrer_kernel::step::{Outcome, Start};
use dendrer_object::delta::{Delta, Op};
use dendrer_object::record::{Link, Rel};
use dendrer_object::{Digest, Intent, Pointer, Value};

use crate::common::{median, new_store};

const NODES: u64 = 100_000;
const ROUNDS: usize = 5;

/// Records nodes of some agents in turn; every `merge_every`th one merges what another agent did last.
fn record(store: &Shared, run: &str, agents: u64, merge_every: u64) {
    let mut recorder =
        Recorder::begin(store, &Start::new(run.parse().expect("a name")), Box::new(World::default()))
            .expect("begun");
    let mut last: Vec<Option<Digest>> = vec![None; agents as usize];
    for tick in 1..=NODES {
        let agent = (tick % agents) as usize;
        let key = format!("k{}", tick % 40);
        let delta = Delta(vec![Op::set(Pointer::of(["memory", &key]), Value::from(tick))]);
        let mut intent =
            Intent::new("plan.update".parse().expect("a type"), &format!("agent-{agent}")).with_delta(delta);
        if tick % merge_every == 0
            && let Some(hash) = last[(agent + 1) % agents as usize]
        {
            intent.links.push(Link { rel: Rel::Merges, hash });
            intent = intent.with(
                "intent",
                Value::record([("merge", Value::record([("strategy", Value::from("lww"))]))]),
            );
        }
        let Outcome::Committed(made) = recorder.propose(&intent).expect("judged") else { panic!("refused") };
        last[agent] = Some(made.id());
        if tick % 1000 == 0 {
            recorder.append().expect("appended");
        }
    }
    recorder.commit().expect("committed");
}

fn ms(work: &mut dyn FnMut()) -> f64 {
    let times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let begun = Instant::now();
            work();
            begun.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    median(times)
}

pub(crate) fn states_and_comparisons(dir: &Path) {
    let store = new_store(dir, "agents");
    record(&store, "team", 64, 10);
    record(&store, "pair", 2, u64::MAX);
    let trace = Trace::open(&store, &"team".parse().expect("a name")).expect("opened");
    let read = ms(&mut || {
        trace
            .for_each(1, trace.tip(), &mut |_, record| {
                std::hint::black_box(record.id());
                std::ops::ControlFlow::Continue(())
            })
            .expect("read");
    });
    println!("agents   reading the records {read:.1} ms");
    let graph = ms(&mut || drop(causal::Causal::of(&trace, trace.tip()).expect("a graph")));
    println!("agents   the graph {graph:.1} ms");
    // Each question opens the run anew, at another tick. The first one at an agent keeps what the others read.
    let open = || Trace::open(&store, &"team".parse().expect("a name")).expect("opened");
    let mut tick = trace.tip();
    let mut at = |f: &dyn Fn(&Trace, u64)| {
        ms(&mut || {
            tick -= 1_111;
            f(&open(), tick);
        })
    };
    let run = at(&|trace, tick| drop(trace.state(tick).expect("a state")));
    let agent = at(&|trace, tick| drop(causal::state_of(trace, "agent-1", tick).expect("a state")));
    println!(
        "agents   state of an agent at a node of 100,000 nodes and 10,000 merges {agent:.2} ms, of the run at a tick {run:.2} ms: {:.1} times (limit 20)",
        agent / run
    );
    let trace = Trace::open(&store, &"pair".parse().expect("a name")).expect("opened");
    let upto = trace.tip();
    let both = ms(&mut || {
        drop(compare::compare(&trace, [("agent-0", upto), ("agent-1", upto)], false).expect("compared"));
    });
    println!("agents   compare of heads 100,000 nodes apart {both:.1} ms (limit 200)");
    let checked = [500, 5_000].map(|upto| {
        ms(&mut || {
            drop(compare::compare(&trace, [("agent-0", upto), ("agent-1", upto)], true).expect("compared"))
        })
    });
    println!(
        "agents   compare with every node made again, 500 nodes {:.1} ms, 5,000 nodes {:.1} ms: {:.1} times (limit 12)",
        checked[0],
        checked[1],
        checked[1] / checked[0]
    );
}
