//! Connections that are cut: what the caller is told is what the log has.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dendrer_store::StoreError;
use dendrer_store::conformance::{Scribe, name};
use dendrer_store::prelude::*;
use dendrer_store_postgres::{Postgres, PostgresOptions};

use crate::server::{OWNER, Server, is_deep, untagged};

/// Where a connection is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// Before the request to commit reaches the server.
    Request,
    /// After the server answered that it committed, before the answer reaches the client.
    Answer,
    /// As [`Cut::Answer`], and the network is gone from then on.
    AnswerAndNetwork,
    /// Nothing goes on, and nothing is closed, as in a network without a route.
    Silence,
}

/// Passes connections on to a server, until it is told to cut one.
struct Proxy {
    port: u16,
    cut: Arc<Mutex<Option<Cut>>>,
    is_gone: Arc<AtomicBool>,
    cuts: Arc<AtomicUsize>,
}

impl Proxy {
    fn new(server: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let proxy = Proxy { port, cut: Arc::default(), is_gone: Arc::default(), cuts: Arc::default() };
        let (cut, is_gone, cuts) = (proxy.cut.clone(), proxy.is_gone.clone(), proxy.cuts.clone());
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                if is_gone.load(Ordering::SeqCst) {
                    continue;
                }
                let Ok(to) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                for (from, to, answers) in
                    [(client.try_clone().unwrap(), to.try_clone().unwrap(), false), (to, client, true)]
                {
                    let (cut, is_gone, cuts) = (cut.clone(), is_gone.clone(), cuts.clone());
                    std::thread::spawn(move || pass(from, to, answers, &cut, &is_gone, &cuts));
                }
            }
        });
        proxy
    }

    fn arm(&self, cut: Cut) {
        *self.cut.lock().unwrap() = Some(cut);
    }
}

fn pass(
    mut from: TcpStream,
    mut to: TcpStream,
    answers: bool,
    cut: &Mutex<Option<Cut>>,
    is_gone: &AtomicBool,
    cuts: &AtomicUsize,
) {
    let mut bytes = [0; 64 << 10];
    while let Ok(count) = from.read(&mut bytes) {
        let part = &bytes[..count];
        if count == 0 {
            break;
        }
        // A query of text is `Q`, its length, `commit` and a zero; the answer has the tag COMMIT.
        let sign: &[u8] = if answers { b"COMMIT\0" } else { b"commit\0" };
        let has_sign = part.windows(sign.len()).any(|window| window == sign);
        let mut armed = cut.lock().unwrap();
        let is_it =
            has_sign && armed.is_some_and(|cut| answers != (cut == Cut::Request || cut == Cut::Silence));
        if is_it {
            let cut = armed.take().unwrap();
            cuts.fetch_add(1, Ordering::SeqCst);
            if cut == Cut::AnswerAndNetwork {
                is_gone.store(true, Ordering::SeqCst);
            }
            drop(armed);
            if cut == Cut::Silence {
                std::thread::sleep(Duration::from_secs(30));
            }
            break;
        }
        drop(armed);
        if to.write_all(part).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

fn short() -> PostgresOptions {
    PostgresOptions {
        deadline: Duration::from_secs(3),
        idle_in_append: Duration::from_secs(1),
        lock_wait: Duration::from_secs(2),
        ..untagged()
    }
}

#[test]
fn an_answer_to_a_commit_that_was_lost_is_read_back() {
    let Some(server) = Server::start() else { return };
    let proxy = Proxy::new(server.port);
    let direct = server.address();
    drop(server.create(&direct));
    let address = server.address_of(OWNER, proxy.port, &direct.name);
    let mut store = Postgres::open(&address, short()).unwrap();
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("r")]).unwrap();
    let rounds = if is_deep() { 1_000 } else { 60 };
    let (mut written, mut refused) = (0, 0);
    for round in 0..rounds {
        let before = scribe.clone();
        let group = [scribe.step("r"), scribe.step("r")];
        let cut = if round % 2 == 0 { Cut::Answer } else { Cut::Request };
        proxy.arm(cut);
        match store.append(&group) {
            Ok(range) => {
                assert_eq!(cut, Cut::Answer);
                assert_eq!(range, 1 + written * 2..3 + written * 2);
                written += 1;
            }
            Err(StoreError::Unreachable { why, .. }) => {
                assert_eq!(cut, Cut::Request);
                assert!(why.ends_with("nothing was written"), "{why}");
                scribe = before;
                refused += 1;
            }
            Err(error) => panic!("{cut:?}: {error}"),
        }
    }
    assert_eq!(proxy.cuts.load(Ordering::SeqCst), rounds);
    assert!(store.trouble().is_none());
    let ticket = store.submit(&[]).unwrap();
    store.wait(ticket).unwrap();
    let fresh = Postgres::open(&direct, untagged()).unwrap();
    assert_eq!(fresh.tree(), store.tree());
    assert_eq!(fresh.tree().size, 1 + 2 * written);
    assert_eq!(fresh.run(&name("r")).unwrap().unwrap().head.tick, Some(2 * written));
    println!("{rounds} connections cut in commit: {written} groups written once, {refused} not at all");
}

#[test]
fn of_a_lost_group_whose_run_was_moved_meanwhile_the_caller_learns_that_it_is_stale() {
    let Some(server) = Server::start() else { return };
    let proxy = Proxy::new(server.port);
    let direct = server.address();
    let mut other = server.create(&direct);
    let address = server.address_of(OWNER, proxy.port, &direct.name);
    let mut scribe = Scribe::default();
    other.commit(&[scribe.begin("r")]).unwrap();
    let mut store = Postgres::open(&address, short()).unwrap();
    let mut rival = scribe.clone();
    // Nothing goes on to the server, and it throws the writer out; the other one is first.
    proxy.arm(Cut::Silence);
    let told = std::thread::scope(|scope| {
        let late = scope.spawn(|| store.append(&[scribe.step("r"), scribe.step("r")]));
        std::thread::sleep(Duration::from_millis(300));
        other.commit(&[rival.step("r")]).expect("the order is free again");
        late.join().unwrap()
    });
    assert_eq!(told.expect_err("the other one was first").code(), "E0407");
    assert_eq!(Postgres::open(&direct, untagged()).unwrap().tree().size, 2);
}

#[test]
fn where_the_answer_cannot_be_read_back_the_handle_writes_no_more() {
    let Some(server) = Server::start() else { return };
    let proxy = Proxy::new(server.port);
    let direct = server.address();
    drop(server.create(&direct));
    let address = server.address_of(OWNER, proxy.port, &direct.name);
    let mut store = Postgres::open(&address, short()).unwrap();
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("r")]).unwrap();
    proxy.arm(Cut::AnswerAndNetwork);
    let begin = Instant::now();
    let error = store.append(&[scribe.step("r")]).expect_err("nobody knows");
    assert!(matches!(error, StoreError::SyncFailed { .. }) && error.code() == "E0805", "{error:?}");
    assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
    assert_eq!(store.append(&[scribe.step("r")]).expect_err("it writes no more").code(), "E0805");
    // The group is there, once, as the next handle sees.
    assert_eq!(Postgres::open(&direct, untagged()).unwrap().tree().size, 2);
}

#[test]
fn a_server_that_does_not_answer_is_given_up_in_bounded_time() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let address = format!("postgres://{OWNER}@127.0.0.1:{port}/postgres/none").parse().unwrap();
    let begin = Instant::now();
    let options = PostgresOptions { deadline: Duration::from_secs(1), ..untagged() };
    let error = Postgres::open(&address, options.clone()).expect_err("nobody answers");
    assert_eq!(error.code(), "E0819");
    drop(silent);
    let error = Postgres::open(&address, options).expect_err("nobody is there");
    assert_eq!(error.code(), "E0819");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
}
