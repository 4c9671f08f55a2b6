//! Verdicts that were worked out before: kept in the store as statements under its key, so that the same question
//! need not read the whole run again.
//!
//! A statement says what one question gives from tick 0 of a run up to a record, named by its id, which binds
//! everything before it. It stays true whatever is recorded later. A newcomer would break one rule: where a statement
//! lies proves nothing. It counts only under the key of the store, which must be at hand; without the key nothing is
//! believed and nothing kept, and every verdict comes from the records.

use dendrer_kernel::predicate::{Monotone, Predicate, Verdict};
use dendrer_kernel::step::KERNEL_VERSION;
use dendrer_object::{Digest, Value, json};
use dendrer_store::Slot;

use crate::run::line::Timeline;
use crate::run::trace::Trace;

/// The longest statement that is kept, in bytes. A predicate that turns so often is refused in any case.
const STATEMENT_MAX: usize = 64 << 10;

/// How many bytes of signature stand before a statement.
const SIGNATURE: usize = 64;

/// How the ticks were chosen that were judged. A statement counts for one way only, because it reports how many there were.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// Every tick that wrote what the predicate reads.
    Candidates,
    /// Both ends and the probes between them.
    Probes,
}

/// Returns what is known of a question from tick 0 up to some tick that is at most `to`. Whatever is not exactly what
/// this program keeps is as good as nothing.
pub(crate) fn find(trace: &Trace, predicate: &Predicate, way: Way, to: u64) -> Option<Timeline> {
    let key = trace.store().key().filter(|_| trace.uses_snapshots())?;
    let (_, bytes) = trace.store().kept(Slot::Verdicts(trace.name(), &question(predicate, way))).ok()??;
    let (signature, statement) = bytes.split_at_checked(SIGNATURE)?;
    if !key.verifier_key().verifies(&message(trace, predicate, way, statement).0, signature) {
        return None;
    }
    let statement = json::parse_canonical(statement).ok()?;
    let tick = statement.get("tick")?.as_u64().filter(|tick| *tick <= to)?;
    // The id says that this is the history the statement was made for.
    if statement.get("id")?.as_str()? != trace.record(tick).ok()?.id().to_string() {
        return None;
    }
    let turns: Option<Vec<(u64, Verdict)>> = statement.get("turns")?.as_array()?.iter().map(turn).collect();
    let turns = turns.filter(|turns| turns.first().is_some_and(|(first, _)| *first == 0))?;
    let judged = statement.get("judged")?.as_u64()?;
    Some(Timeline { from: 0, to: tick, turns, judged, known_to: Some(tick), standing: None })
}

/// Keeps what was worked out from the records. Failing to costs only time.
pub(crate) fn keep(trace: &Trace, predicate: &Predicate, way: Way, line: &Timeline) {
    let (Some(key), 0) = (trace.store().key(), line.from) else { return };
    let Ok(record) = trace.record(line.to) else { return };
    let statement = Value::record([
        ("id", Value::from(record.id())),
        ("judged", Value::from(line.judged)),
        ("tick", Value::from(line.to)),
        ("turns", Value::array(line.turns.iter().map(turn_value))),
    ]);
    let statement = json::to_vec(&statement);
    if statement.len() <= STATEMENT_MAX {
        let signature = key.sign(&message(trace, predicate, way, &statement).0);
        let kept = [&signature[..], &statement].concat();
        let _ = trace.store().keep(Slot::Verdicts(trace.name(), &question(predicate, way)), &kept);
    }
}

/// The signed bytes: the statement, and the question that it answers. A digest: a note could not hold it as a text.
fn message(trace: &Trace, predicate: &Predicate, way: Way, statement: &[u8]) -> Digest {
    let store = trace.store().info().id.0;
    let run = Digest::of(trace.name().as_str().as_bytes());
    Digest::of_parts(&[b"dendrer/verdicts/v1\n", &store, &run.0, &question(predicate, way).0, statement])
}

/// The digest of what is asked. The same expression is judged at fewer ticks where it is known not to recover, and
/// another version of the kernel's rules may judge otherwise.
fn question(predicate: &Predicate, way: Way) -> Digest {
    let monotone: &[u8] = match predicate.monotone() {
        Monotone::ByConstruction if way == Way::Probes => b"by construction, probed\n",
        Monotone::ByConstruction => b"by construction\n",
        Monotone::Lifted => b"lifted\n",
        Monotone::Unknown => b"unknown\n",
    };
    let kernel = KERNEL_VERSION.to_be_bytes();
    Digest::of_parts(&[b"dendrer/question/v1\n", &kernel, monotone, &predicate.digest().0])
}

fn turn_value((tick, verdict): &(u64, Verdict)) -> Value {
    let (word, why) = match verdict {
        Verdict::Ok => ("ok", None),
        Verdict::Violation => ("violation", None),
        Verdict::Uncertain(why) => ("uncertain", Some(Value::from(why.as_str()))),
    };
    Value::array([Value::from(*tick), Value::from(word)].into_iter().chain(why))
}

fn turn(value: &Value) -> Option<(u64, Verdict)> {
    let parts = value.as_array()?;
    let verdict = match parts.get(1)?.as_str()? {
        "ok" => Verdict::Ok,
        "violation" => Verdict::Violation,
        "uncertain" => Verdict::Uncertain(parts.get(2)?.as_str()?.to_owned()),
        _ => return None,
    };
    Some((parts.get(0)?.as_u64()?, verdict))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dendrer_kernel::step::Start;
    use dendrer_object::delta::{Delta, Op};
    use dendrer_object::{Intent, RunName};
    use dendrer_store::prelude::*;
    use dendrer_store::{Memory, Shared, StoreInfo};
    use dendrer_testkit::{info, key, memory_with_key, run_name};

    use super::*;
    use crate::run::timeline;

    fn run() -> RunName {
        run_name("r")
    }

    /// A run in which `x` counts to 40 from a number, in a store that is under the key of another number.
    fn recorded_under(number: u8, from: i64) -> Shared {
        let info = StoreInfo { key: key(number).verifier_key().clone(), ..info(3) };
        let store = Shared::new(Box::new(Memory::new(info).with_key(Some(Arc::new(key(number))))));
        let intents = (1..=40).map(|n| {
            let delta = Delta(vec![Op::set("/x".parse().unwrap(), Value::from(from + n))]);
            Intent::new("memory.write".parse().unwrap(), "a").with_delta(delta)
        });
        dendrer_testkit::record(&store, &Start::new(run()), intents);
        store
    }

    fn recorded(from: i64) -> Shared {
        recorded_under(3, from)
    }

    /// Copies a store with its statement about [`ONE`], under the key of a number or under none.
    fn copied(store: &Shared, number: Option<u8>) -> Shared {
        let records = (0..).zip(dendrer_testkit::records_of(store)).collect();
        let copy = Memory::of_parts(store.info().clone(), store.tree(), records);
        let copy = Shared::new(Box::new(copy.with_key(number.map(|number| Arc::new(key(number))))));
        put(&copy, ONE, &kept(store, ONE));
        copy
    }

    fn predicate(text: &str) -> Predicate {
        Predicate::condition("p", text).unwrap()
    }

    fn judge(store: &Shared, text: &str) -> Timeline {
        let trace = Trace::open(store, &run()).unwrap();
        timeline::judge(&trace, &predicate(text), 0, trace.tip()).unwrap()
    }

    fn kept(store: &Shared, text: &str) -> Vec<u8> {
        store.kept(Slot::Verdicts(&run(), &question(&predicate(text), Way::Candidates))).unwrap().unwrap().1
    }

    fn put(store: &Shared, text: &str, bytes: &[u8]) {
        store.keep(Slot::Verdicts(&run(), &question(&predicate(text), Way::Candidates)), bytes).unwrap();
    }

    const ONE: &str = "has(state.x) && state.x > 20";
    const TWO: &str = "has(state.x) && state.x > 30";

    #[test]
    fn an_answer_is_read_back_under_the_key_it_was_kept_under() {
        let store = recorded(0);
        let first = judge(&store, ONE);
        assert_eq!((first.known_to, first.onset()), (None, Some(21)));
        let again = judge(&store, ONE);
        assert_eq!(again, Timeline { known_to: Some(40), ..first });
        let other = recorded_under(4, 0);
        put(&other, ONE, &kept(&store, ONE));
        assert_eq!(judge(&other, ONE).known_to, None, "signed by another key");
        let keyless = copied(&store, None);
        assert_eq!(judge(&keyless, ONE).known_to, None, "nobody can tell who signed it");
        let wrong = copied(&store, Some(4));
        assert_eq!(judge(&wrong, ONE).known_to, None, "not the key of the store");
        let right = copied(&store, Some(3));
        assert_eq!(judge(&right, ONE).known_to, Some(40), "the key of the store");
    }

    #[test]
    fn a_statement_that_was_touched_is_not_believed() {
        let store = recorded(0);
        let honest = judge(&store, ONE);
        let statement = kept(&store, ONE);
        let cut = [0, 1, SIGNATURE - 1, SIGNATURE, statement.len() - 1];
        let forged = (0..statement.len()).map(|at| {
            let mut forged = statement.clone();
            forged[at] ^= 1;
            forged
        });
        for forged in forged.chain(cut.map(|at| statement[..at].to_vec())) {
            put(&store, ONE, &forged);
            assert_eq!(judge(&store, ONE), honest);
        }
    }

    #[test]
    fn a_statement_about_something_else_is_not_believed() {
        let store = recorded(0);
        judge(&store, ONE);
        let other = judge(&store, TWO);
        put(&store, TWO, &kept(&store, ONE));
        assert_eq!(judge(&store, TWO), other);
        // Another history of the same name in a store of the same id.
        let elsewhere = recorded(7);
        put(&elsewhere, ONE, &kept(&store, ONE));
        let line = judge(&elsewhere, ONE);
        assert_eq!((line.known_to, line.onset()), (None, Some(14)));
        // Verdicts of a longer run do not hold for a shorter one.
        let trace = Trace::open(&store, &run()).unwrap();
        assert_eq!(timeline::judge(&trace, &predicate(ONE), 0, 39).unwrap().known_to, None);
        // The same text, known not to recover, is judged at fewer ticks.
        assert_ne!(
            question(&predicate(ONE), Way::Candidates),
            question(&predicate(ONE).lifted(), Way::Candidates)
        );
    }

    #[test]
    fn what_turns_too_often_is_not_kept() {
        let store = memory_with_key(3);
        let intents = (0..8000i64).map(|n| {
            let delta = Delta(vec![Op::set("/x".parse().unwrap(), Value::from(n % 2))]);
            Intent::new("memory.write".parse().unwrap(), "a").with_delta(delta)
        });
        dendrer_testkit::record(&store, &Start::new(run()), intents);
        let text = "has(state.x) && state.x == 1";
        let line = judge(&store, text);
        assert!(line.turns.len() > 7000);
        assert_eq!(
            store.kept(Slot::Verdicts(&run(), &question(&predicate(text), Way::Candidates))).unwrap(),
            None
        );
        assert_eq!(judge(&store, text), line);
    }
}
