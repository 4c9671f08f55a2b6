//! A writer that is stopped inside an append: the others go on, and what it held back is not written.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use dendrer_store::StoreError;
use dendrer_store::conformance::{Scribe, key, name};
use dendrer_store::prelude::*;
use dendrer_store_postgres::{Postgres, PostgresOptions};
use rustix::process::Signal;

use crate::server::{Server, signal, untagged};

/// The address for the process that is stopped.
const ADDRESS: &str = "DENDRER_TEST_STOPPED";

fn options() -> PostgresOptions {
    let (idle_in_append, lock_wait) = (Duration::from_secs(1), Duration::from_secs(8));
    PostgresOptions { idle_in_append, lock_wait, ..untagged() }
}

/// Stops itself while it holds the order, and prints what became of its group.
fn stop_inside_an_append(address: &str) {
    let mut store = Postgres::open(&address.parse().unwrap(), options()).unwrap();
    let mut scribe = Scribe::default();
    scribe.begin("r");
    let (tick, head) = (1, store.get(1).unwrap().unwrap().id());
    scribe.set_head("r", tick, head);
    let step = scribe.step("r");
    let signed = store.sign_after(
        &key(),
        &mut |_| {
            println!("stopped");
            signal(std::process::id(), Signal::STOP);
            Ok(Some(step.clone()))
        },
        &mut |_, _| Ok(true),
    );
    match signed {
        Err(error) => println!("refused {}", error.code()),
        Ok(_) => println!("written"),
    }
}

#[test]
fn a_writer_that_is_stopped_inside_an_append_frees_the_others() {
    if let Some(address) = std::env::var_os(ADDRESS) {
        return stop_inside_an_append(address.to_str().unwrap());
    }
    let Some(server) = Server::start() else { return };
    let address = server.address();
    let mut store = Postgres::create(&address, dendrer_store::conformance::info(), options(), None).unwrap();
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("r"), scribe.step("r")]).unwrap();
    let own = "stopped::a_writer_that_is_stopped_inside_an_append_frees_the_others";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", own, "--nocapture"])
        .env(ADDRESS, address.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("stopped")), "it came to the append");
    let begin = Instant::now();
    let step = [scribe.step("r")];
    store.commit(&step).expect("the order is free again");
    let waited = begin.elapsed();
    println!("waited {waited:?}");
    assert!(waited > Duration::from_millis(300), "it did not hold the order, so that this shows nothing");
    assert!(waited < Duration::from_secs(6), "{waited:?}");
    signal(child.id(), Signal::CONT);
    let said = lines.find(|line| line.starts_with("refused") || line == "written").unwrap();
    assert!(child.wait().unwrap().success());
    // It was thrown out, and its record was for a head that has moved.
    assert!(matches!(said.as_str(), "refused E0819" | "refused E0407"), "{said}");
    let fresh = Postgres::open(&address, untagged()).unwrap();
    assert_eq!((fresh.tree().size, fresh.checkpoint().unwrap()), (3, None));
    assert_eq!(fresh.run(&name("r")).unwrap().unwrap().head.id, step[0].id());
}

#[test]
fn a_writer_that_waits_too_long_for_the_order_learns_it_and_writes_nothing() {
    let Some(server) = Server::start() else { return };
    let address = server.address();
    let lock_wait = Duration::from_millis(400);
    let options = PostgresOptions { lock_wait, ..untagged() };
    let mut store = Postgres::create(&address, dendrer_store::conformance::info(), options, None).unwrap();
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("r")]).unwrap();
    let mut holder = Postgres::open(&address, untagged()).unwrap();
    let step = [scribe.step("r")];
    let waited = holder.sign_after(
        &key(),
        &mut |_| {
            let error = store.append(&step).expect_err("another one has the order");
            assert!(matches!(error, StoreError::Locked { .. }), "{error:?}");
            Ok(None)
        },
        &mut |_, _| Ok(false),
    );
    assert_eq!(waited.unwrap(), None);
    store.commit(&step).expect("it is free again");
    assert_eq!(store.tree().size, 2);
}

#[test]
fn a_connection_that_ends_inside_an_append_writes_nothing() {
    let Some(server) = Server::start() else { return };
    let address = server.address();
    let mut store = server.create(&address);
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("r")]).unwrap();
    let before = scribe.clone();
    let step = scribe.step("r");
    let end = "select pg_terminate_backend(pid) from pg_stat_activity \
               where application_name = 'dendrer' and state = 'idle in transaction'";
    for _ in 0..3 {
        let signed = store.sign_after(
            &key(),
            &mut |_| {
                assert_eq!(server.sql("postgres", end).unwrap(), "t", "it is in a transaction");
                std::thread::sleep(Duration::from_millis(200));
                Ok(Some(step.clone()))
            },
            &mut |_, _| Ok(true),
        );
        assert_eq!(signed.expect_err("its transaction is gone").code(), "E0819");
        let rows = format!("select count(*), max(position) from {}.record", address.schema());
        assert_eq!(server.sql("postgres", &rows).unwrap(), "1|0", "nothing is written outside a transaction");
    }
    // A read inside the transaction fails as well, and is not of another state of the log.
    let signed = store.sign_after(
        &key(),
        &mut |log| {
            server.sql("postgres", end).unwrap();
            std::thread::sleep(Duration::from_millis(200));
            assert_eq!(log.get(0).expect_err("the connection is gone").code(), "E0819");
            Ok(Some(step.clone()))
        },
        &mut |_, _| Ok(true),
    );
    assert_eq!(signed.expect_err("its transaction is gone").code(), "E0819");
    assert!(store.trouble().is_none());
    store.commit(&[{ before }.step("r")]).expect("the handle goes on");
    assert_eq!(store.tree().size, 2);
}
