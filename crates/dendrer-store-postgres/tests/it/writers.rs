//! Many writers at once: every group has one place, and one writer of a head.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Barrier;

use dendrer_object::merkle::{Peaks, leaf_hash};
use dendrer_store::conformance::{Scribe, name};
use dendrer_store::prelude::*;
use dendrer_store::{Given, StoreError};
use dendrer_store_postgres::Postgres;

use crate::server::{Server, untagged};

const WRITERS: u64 = 16;
const APPENDS: u64 = 200;

/// Appends until it got through so often: writers with even numbers on the run that they share, the others on one of their own.
fn write(store: &mut Postgres, writer: u64, start: &Barrier) -> (Vec<u64>, u64) {
    let (mut scribe, own) = (Scribe::default(), format!("own-{writer}"));
    let shares = writer.is_multiple_of(2);
    if !shares {
        store.append(&[scribe.begin(&own)]).unwrap();
    }
    start.wait();
    let (mut positions, mut stale) = (Vec::new(), 0);
    while (positions.len() as u64) < APPENDS {
        let run = if shares { "shared" } else { &own };
        if shares {
            let head = store.run(&name(run)).unwrap().unwrap().head;
            scribe.set_head(run, head.tick.unwrap(), head.id);
        }
        match store.append(&[scribe.step(run)]) {
            Ok(range) => positions.extend(range),
            Err(StoreError::Stale { .. }) if shares => stale += 1,
            Err(error) => panic!("{error}"),
        }
    }
    let ticket = store.submit(&[]).unwrap();
    store.wait(ticket).unwrap();
    (positions, stale)
}

#[test]
fn sixteen_writers_leave_no_gap_and_no_repeat() {
    let Some(server) = Server::start() else { return };
    let address = server.address();
    let mut store = server.create(&address);
    store.commit(&[Scribe::default().begin("shared")]).unwrap();
    let start = Barrier::new(WRITERS as usize);
    let told: Vec<(Vec<u64>, u64)> = std::thread::scope(|scope| {
        let write_one = |writer| {
            let (address, start) = (&address, &start);
            scope.spawn(move || {
                let mut store = Postgres::open(address, untagged()).unwrap();
                write(&mut store, writer, start)
            })
        };
        let threads: Vec<_> = (0..WRITERS).map(write_one).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let stale: u64 = told.iter().map(|(_, stale)| stale).sum();
    assert!(stale > 0, "no two writers met, so that this shows nothing");
    let places: Vec<u64> = told.into_iter().flat_map(|(positions, _)| positions).collect();
    let distinct: BTreeSet<u64> = places.iter().copied().collect();
    let begins = 1 + WRITERS / 2;
    assert_eq!(places.len() as u64, WRITERS * APPENDS);
    assert_eq!(distinct.len(), places.len(), "a position was given twice");
    // Read by a handle that has written nothing.
    let fresh = Postgres::open(&address, untagged()).unwrap();
    assert!(fresh.trouble().is_none());
    assert_eq!(fresh.tree().size, WRITERS * APPENDS + begins);
    let (mut peaks, mut ticks): (Peaks, BTreeMap<_, u64>) = (Peaks::new(), BTreeMap::new());
    fresh
        .scan(0..u64::MAX, &mut |position, record| {
            assert_eq!(position, peaks.size());
            peaks.push(leaf_hash(&record.entry()));
            let header = record.header();
            let next = ticks.entry(header.run.clone().unwrap()).or_default();
            assert_eq!(header.tick, Some(*next), "a gap or a repeat in {:?}", header.run);
            *next += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(peaks.root(), fresh.tree().root);
    assert_eq!(ticks[&name("shared")], 1 + WRITERS / 2 * APPENDS);
    println!("{stale} of {} appends on the shared run were stale first", WRITERS / 2 * APPENDS);
}

#[test]
fn of_two_hosts_that_put_under_one_name_one_succeeds() {
    let Some(server) = Server::start() else { return };
    let address = server.address();
    drop(server.create(&address));
    for round in 0..20u8 {
        let secret = dendrer_object::Digest([round; 32]);
        let start = Barrier::new(2);
        let told: Vec<bool> = std::thread::scope(|scope| {
            let put = |host: u8| {
                let (address, start) = (&address, &start);
                scope.spawn(move || {
                    let mut store = Postgres::open(address, untagged()).unwrap();
                    start.wait();
                    let given = Given { absent: &[secret], ..Given::default() };
                    store.put_secrets(&[(secret, vec![host + 1; 100])], given).unwrap()
                })
            };
            let hosts = [put(0), put(1)];
            hosts.into_iter().map(|host| host.join().unwrap()).collect()
        });
        assert_eq!(told.iter().filter(|told| **told).count(), 1, "{told:?}");
        let winner = u8::from(told[1]) + 1;
        let store = Postgres::open(&address, untagged()).unwrap();
        assert_eq!(store.get_secret(&secret).unwrap(), Some(vec![winner; 100]));
    }
}
