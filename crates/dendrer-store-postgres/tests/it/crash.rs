//! The server is killed, or goes back to an older copy: what was waited for is there, or the loss has a name.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use dendrer_object::record::Kind;
use dendrer_store::conformance::{Scribe, name};
use dendrer_store::prelude::*;
use dendrer_store_postgres::{Postgres, PostgresOptions, ServerAddress};

use crate::server::{Server, is_deep, untagged};

const WRITERS: u64 = 8;

/// Whether a group counts once it is appended, or once it was waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Counted {
    Appended,
    Waited,
}

/// Lets writers append until the server is killed, and returns how many steps of each run were acknowledged.
fn acknowledged(server: &mut Server, address: &ServerAddress, round: u64, counted: Counted) -> Vec<u64> {
    let told: Vec<AtomicU64> = (0..WRITERS).map(|_| AtomicU64::new(0)).collect();
    let is_killed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (told, is_killed) = (&told[writer as usize], &is_killed);
            scope.spawn(move || {
                let options = PostgresOptions { deadline: Duration::from_secs(1), ..untagged() };
                let Ok(mut store) = Postgres::open(address, options) else { return };
                let (mut scribe, run) = (Scribe::default(), format!("r{round}-{writer}"));
                let mut group = vec![scribe.begin(&run), scribe.step(&run)];
                loop {
                    let appended = store.append(&group).and_then(|_| match counted {
                        Counted::Appended => Ok(()),
                        Counted::Waited => {
                            let ticket = store.submit(&[])?;
                            store.wait(ticket)
                        }
                    });
                    if appended.is_err() {
                        assert!(is_killed.load(Ordering::SeqCst), "{appended:?}");
                        return;
                    }
                    told.store(scribe.head(&run).0, Ordering::SeqCst);
                    group = vec![scribe.step(&run)];
                }
            });
        }
        std::thread::sleep(Duration::from_millis(700 + round % 7 * 40));
        is_killed.store(true, Ordering::SeqCst);
        server.kill();
    });
    server.run();
    told.into_iter().map(AtomicU64::into_inner).collect()
}

/// Returns how many acknowledged steps are not there, after checking that what is there is whole.
fn lost(address: &ServerAddress, round: u64, told: &[u64]) -> u64 {
    let store = Postgres::open(address, untagged()).unwrap();
    assert!(store.trouble().is_none(), "{:?}", store.trouble());
    let all = store.scan(0..u64::MAX, &mut |_, record| {
        assert!(matches!(record.header().kind, Kind::Run | Kind::Transition));
        std::ops::ControlFlow::Continue(())
    });
    all.unwrap();
    let lost = (0..).zip(told).map(|(writer, told): (u64, &u64)| {
        let run = store.run(&name(&format!("r{round}-{writer}"))).unwrap();
        let found = run.map_or(0, |run| run.head.tick.unwrap());
        told.saturating_sub(found)
    });
    lost.sum()
}

#[test]
fn no_group_that_was_waited_for_is_lost_when_the_server_is_killed() {
    let Some(mut server) = Server::start() else { return };
    let address = server.address();
    drop(server.create(&address));
    let rounds = if is_deep() { 100 } else { 4 };
    let mut total = 0;
    for round in 0..rounds {
        let told = acknowledged(&mut server, &address, round, Counted::Waited);
        let sum: u64 = told.iter().sum();
        assert!(sum > 0, "nothing was acknowledged in round {round}");
        total += sum;
        assert_eq!(lost(&address, round, &told), 0, "round {round}: {told:?}");
    }
    println!("{rounds} kills, {total} acknowledged groups, 0 lost");
}

/// The control: without the barrier the same kills lose groups, so that the test above can fail.
#[test]
fn groups_that_were_not_waited_for_are_lost_when_the_server_is_killed() {
    let Some(mut server) = Server::start_with(&["wal_writer_delay=10s"]) else { return };
    let address = server.address();
    drop(server.create(&address));
    for round in 0..10 {
        let told = acknowledged(&mut server, &address, round, Counted::Appended);
        let lost = lost(&address, round, &told);
        println!("round {round}: {lost} of {} appended groups lost", told.iter().sum::<u64>());
        if lost > 0 {
            return;
        }
    }
    panic!("ten kills lost nothing: the barrier is tested by nothing");
}

#[test]
fn a_handle_that_waits_after_a_crash_learns_that_its_group_is_gone() {
    let Some(mut server) = Server::start_with(&["wal_writer_delay=10s"]) else { return };
    let address = server.address();
    let mut store = server.create(&address);
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("r")]).unwrap();
    store.append(&[scribe.step("r")]).unwrap();
    let ticket = store.submit(&[]).unwrap();
    server.kill();
    server.run();
    // The new server flushes, and has no such group: its flush is worth nothing.
    let error = store.wait(ticket).expect_err("it is gone");
    assert_eq!(error.code(), "E0805");
    assert!(error.to_string().contains("lost the group that ends at size 2"), "{error}");
    assert_eq!(store.append(&[scribe.step("r")]).expect_err("it writes no more").code(), "E0805");
    assert_eq!(store.refresh().expect_err("the log is shorter").code(), "E0307");
    let again = Postgres::open(&address, untagged()).unwrap();
    assert_eq!((again.tree().size, again.trouble().is_none()), (1, true));
}

#[test]
fn a_server_restored_from_an_older_copy_is_a_loss_by_name() {
    let Some(mut server) = Server::start() else { return };
    let address = server.address();
    let mut store = server.create(&address);
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("r"), scribe.step("r")]).unwrap();
    server.stop();
    let (data, older) = (server.data(), server.data().with_file_name("older"));
    server.copy_data(&data, &older);
    server.run();
    store.commit(&[scribe.step("r")]).unwrap();
    store.commit(&[scribe.step("r")]).unwrap();
    let seen = (store.epoch(), store.tree());
    server.stop();
    server.copy_data(&older, &data);
    server.run();
    // A handle that has seen more.
    let error = store.append(&[scribe.step("r")]).expect_err("the log is shorter");
    assert_eq!(error.code(), "E0307");
    assert!(
        error.to_string().contains("expected 4 records") && error.to_string().contains("found 2"),
        "{error}"
    );
    assert_eq!(store.trouble().expect("it has a name").code(), "E0307");
    assert_eq!(store.append(&[scribe.step("r")]).expect_err("it only reads").code(), "E0805");
    // A new one that was told what was seen before.
    let options = PostgresOptions { seen: Some(seen), ..untagged() };
    let mut told = Postgres::open(&address, options).unwrap();
    assert_eq!(told.trouble().expect("it has a name").code(), "E0307");
    assert!(told.append(&[scribe.step("r")]).is_err());
    // The same size with other records is a loss as well.
    let mut other = Postgres::open(&address, untagged()).unwrap();
    let mut forged = Scribe::default();
    let head = other.run(&name("r")).unwrap().unwrap().head;
    forged.begin("x");
    forged.set_head("r", head.tick.unwrap(), head.id);
    other.commit(&[forged.step("r")]).unwrap();
    other.commit(&[forged.step("r")]).unwrap();
    assert_eq!(other.tree().size, seen.1.size);
    let options = PostgresOptions { seen: Some(seen), ..untagged() };
    let told = Postgres::open(&address, options).unwrap();
    assert_eq!(told.trouble().expect("it has a name").code(), "E0307");
}

#[test]
fn a_log_shorter_than_what_was_signed_is_a_loss_by_name() {
    let Some(server) = Server::start() else { return };
    let address = server.address();
    let mut store = server.create(&address);
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("r"), scribe.step("r")]).unwrap();
    let schema = address.schema();
    let keep = format!("create table public.before as select * from {schema}.tree");
    server.sql("postgres", &keep).unwrap();
    store.commit(&[scribe.step("r")]).unwrap();
    store.sign_checkpoint(&dendrer_store::conformance::key()).unwrap();
    // Who may write to every table puts the log back, and forgets the checkpoint.
    let back = format!(
        "delete from {schema}.tree; insert into {schema}.tree select * from public.before; \
         delete from {schema}.record where position >= 2; delete from {schema}.group_end where size > 2"
    );
    server.sql("postgres", &back).unwrap();
    let mut again = Postgres::open(&address, untagged()).unwrap();
    let trouble = again.trouble().expect("it has a name");
    assert_eq!(trouble.code(), "E0307");
    assert!(trouble.to_string().contains("expected 3 records, as was signed"), "{trouble}");
    assert!(again.append(&[Scribe::default().begin("s")]).is_err());
    assert!(again.sign_checkpoint(&dendrer_store::conformance::key()).is_err());
    assert_eq!(again.get(1).unwrap().unwrap().header().tick, Some(1), "what is there can be read");
}

#[test]
fn handles_of_another_epoch_write_nothing() {
    let Some(server) = Server::start() else { return };
    let address = server.address();
    let mut old = server.create(&address);
    let mut scribe = Scribe::default();
    old.commit(&[scribe.begin("r")]).unwrap();
    let mut owner = Postgres::open(&address, untagged()).unwrap();
    assert_eq!(owner.begin_epoch("restored after a failover").unwrap(), 2);
    let step = [scribe.step("r")];
    let key = dendrer_store::conformance::key();
    let secret = [(dendrer_object::Digest([1; 32]), vec![1])];
    for refused in [
        old.append(&step).map(drop),
        old.commit(&step).map(drop),
        old.sign_checkpoint(&key).map(drop),
        old.put_secrets(&secret, dendrer_store::Given::default()).map(drop),
        old.begin_epoch("again").map(drop),
    ] {
        assert_eq!(refused.expect_err("it is of the old epoch").code(), "E0823");
    }
    assert_eq!(old.tree().size, 1);
    owner.commit(&step).unwrap();
    // A server that was left behind has the old epoch.
    let schema = address.schema();
    server.sql("postgres", &format!("update {schema}.tree set epoch = 1")).unwrap();
    assert_eq!(owner.append(&[scribe.step("r")]).expect_err("left behind").code(), "E0823");
    let seen = Some((2, owner.tree()));
    let behind = Postgres::open(&address, PostgresOptions { seen, ..untagged() });
    assert_eq!(behind.expect_err("left behind").code(), "E0823");
    let row = server.sql("postgres", &format!("select number, size, reason from {schema}.epoch")).unwrap();
    assert_eq!(row, "2|1|restored after a failover");
}
