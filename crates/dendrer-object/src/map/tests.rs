use proptest::prelude::*;

use super::*;

fn entry(number: u64, kind: Kind, run: Option<u64>) -> Entry {
    let run = run.map(|run| format!("run-{run}").parse().unwrap());
    Entry { hash: Digest::of(&number.to_be_bytes()), kind, run, tick: None }
}

/// A log of a few runs in any order, each of which begins with a record of kind `run`.
fn logs() -> impl Strategy<Value = Vec<Entry>> {
    let kinds =
        [Kind::Transition, Kind::Refusal, Kind::End, Kind::Erase, Kind::Key, Kind::Register, Kind::Map];
    let record = (proptest::sample::select(kinds.to_vec()), proptest::option::weighted(0.8, 0..40u64));
    proptest::collection::vec(record, 0..200).prop_map(|records| {
        let mut begun = std::collections::BTreeSet::new();
        let kind = |(number, (kind, run)): (usize, (Kind, Option<u64>))| match run {
            Some(run) if begun.insert(run) => entry(number as u64, Kind::Run, Some(run)),
            run => entry(number as u64, kind, run),
        };
        records.into_iter().enumerate().map(kind).collect()
    })
}

/// Counts by passing over the whole log for each run.
fn slow(log: &[Entry]) -> LogMap {
    let of = |run: Option<&RunName>, kind: Kind| -> Vec<Digest> {
        let own = log.iter().filter(|entry| entry.run.as_ref() == run && entry.kind == kind);
        own.map(|entry| entry.hash).collect()
    };
    let leaf = |run: &RunName| {
        let count = |kind| Value::from(of(Some(run), kind).len() as u64);
        let begin = of(Some(run), Kind::Run)[0];
        let head = of(Some(run), Kind::Transition).last().copied().unwrap_or(begin);
        Value::record([
            ("begin", Value::from(begin)),
            ("head", Value::from(head)),
            ("transitions", count(Kind::Transition)),
            ("refusals", count(Kind::Refusal)),
            ("ends", count(Kind::End)),
            ("erasures", count(Kind::Erase)),
        ])
    };
    let begins = log.iter().filter(|entry| entry.kind == Kind::Run).filter_map(|entry| entry.run.as_ref());
    let runs = Value::record(begins.map(|run| (run.as_str(), leaf(run))));
    let apart = |kind| {
        let ids = of(None, kind);
        KindCount { count: ids.len() as u64, newest: ids.last().copied() }
    };
    let apart =
        ApartCounts { erase: apart(Kind::Erase), key: apart(Kind::Key), register: apart(Kind::Register) };
    LogMap { size: log.len() as u64 + 1, root: runs.digest(), apart }
}

proptest! {
    #[test]
    fn a_map_is_that_of_a_slow_count(log in logs(), stops in proptest::collection::vec(0..200usize, 0..4)) {
        let mut count = LogCount::default();
        for (at, entry) in log.iter().enumerate() {
            // A map that was asked for before changes nothing of a later one.
            if stops.contains(&at) {
                prop_assert_eq!(count.map(), slow(&log[..at]));
            }
            count.take(entry);
        }
        let map = count.map();
        prop_assert_eq!(map, slow(&log));
        prop_assert_eq!(LogMap::read(&map.content()), Some(map));
        let runs: Vec<RunName> = log.iter().filter_map(|entry| entry.run.clone()).collect();
        for run in &runs {
            let path = count.path(run).unwrap();
            prop_assert_eq!(path.root(run), Some(map.root));
            let line = BundleMap { map: map.root, paths: [(run.clone(), path.clone())].into() };
            prop_assert_eq!(BundleMap::read(&line.to_value()), Some(line));
            // It is a path to no other run, and of no other count.
            let other: RunName = "another".parse().unwrap();
            prop_assert_ne!(path.root(&other), Some(map.root));
            let leaf = RunCount { refusals: path.leaf.refusals + 1, ..path.leaf };
            let changed = RunPath { leaf, ..path };
            prop_assert_ne!(changed.root(run), Some(map.root));
        }
        prop_assert_eq!(count.path(&"another".parse().unwrap()), None);
    }
}

#[test]
fn a_path_of_one_run_of_many_is_at_most_twice_that_of_few() {
    let size = |runs: u64| {
        let mut count = LogCount::default();
        (0..runs).for_each(|run| count.take(&entry(run, Kind::Run, Some(run))));
        let root = count.map().root;
        let paths = [0, 1, runs / 2, runs - 1].map(|run| {
            let run: RunName = format!("run-{run}").parse().unwrap();
            let path = count.path(&run).unwrap();
            assert_eq!(path.root(&run), Some(root));
            crate::json::to_string(&BundleMap { map: root, paths: [(run, path)].into() }.to_value()).len()
        });
        (paths.iter().sum::<usize>() / paths.len(), paths.into_iter().max().unwrap())
    };
    let (few, many) = (size(1_000), size(100_000));
    println!("bytes of a path, mean and most: {few:?} of 1,000 runs, {many:?} of 100,000");
    assert!(many.1 <= 2 * few.0, "{few:?} {many:?}");
}
