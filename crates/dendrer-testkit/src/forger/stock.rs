//! Honest logs for a forger: two stores, with bundles of their runs, an older bundle and an older checkpoint.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dendrer::address::Address;
use dendrer::care::erase::{EraseTerms, plan as plan_erasure};
use dendrer::care::export::{ExportError, ExportTerms, WithholdTerms, plan};
use dendrer::change::fork::ForkTerms;
use dendrer::environment::Fixed;
use dendrer::kernel::predicate::Predicate;
use dendrer::record::recorder::begin_log;
use dendrer::repo::Repo;
use dendrer::trust::{MemoryTrust, Trust};
use dendrer_kernel::step::Start;
use dendrer_object::bundle::Bundle;
use dendrer_object::json::parse_door;
use dendrer_object::note::SigningKey;
use dendrer_object::{Intent, Record};
use dendrer_store::{Memory, StoreInfo};

use super::log::ForgedLog;
use crate::stores::{info, key, records_of, run_name};

/// The honest logs.
#[derive(Debug)]
pub struct Stock {
    /// The store.
    pub info: StoreInfo,
    /// Its key.
    pub key: Arc<SigningKey>,
    /// All records of its log.
    pub records: Vec<Record>,
    /// Bundles of it: of `w`, of `v`, of the fork `f` and its parent, of `e` with an erased value, of all runs, and of `w` with withheld values.
    pub bundles: Vec<Bundle>,
    /// A bundle of `w` from before the newest records.
    pub older: Bundle,
    /// The record of `e` as it was before its value was erased.
    pub unerased: Record,
    /// A bundle of `w` of another store, and the records of that store.
    pub other: (Bundle, Vec<Record>),
}

/// A repository in memory whose times and seeds are fixed.
fn repo(number: u8) -> Repo {
    let made = Arc::new(AtomicU64::new(u64::from(number) << 32));
    let mut store = Memory::new(info(number)).with_key(Some(Arc::new(key(number))));
    begin_log(&mut store, &mut Fixed::new("forger", 1_700_000_000_000, 1)).expect("a log begins");
    let trust: Arc<dyn Trust> = Arc::new(MemoryTrust::new());
    trust.keep_key(info(number).id, &Arc::new(key(number))).expect("a key is kept in memory");
    let repo = Repo::over(Box::new(store), trust).expect("a store in memory opens");
    repo.with_environment(move || {
        let n = made.fetch_add(1, Ordering::Relaxed);
        Box::new(Fixed::new(&format!("forger {n}"), 1_700_000_000_000 + (n & 0xffff) * 10_000, 10))
    })
}

fn intent(line: &str) -> Intent {
    let value = parse_door(line.as_bytes()).expect("a line");
    Intent::from_value(&value, Some("agent")).expect("an intent")
}

/// Records ticks that count up, and refusals, at the end of a run.
fn extend(repo: &Repo, run: &str, ticks: u64, refusals: u64) {
    let mut recorder = match repo.run(&run_name(run)) {
        Ok(_) => repo.recorder(&run_name(run)),
        Err(_) => repo.begin(&Start::new(run_name(run))),
    }
    .expect("a run is recorded");
    for n in 0..ticks {
        let delta = format!(
            r#"{{"type":"memory.write","intent":{{"description":"{run} counts to {n}"}},"delta":[{{"set":"/n","value":{n}}}]}}"#
        );
        recorder.propose(&intent(&delta)).expect("an intent is judged");
    }
    for _ in 0..refusals {
        recorder.propose(&intent(r#"{"type":"run.fork"}"#)).expect("an intent is judged");
    }
    recorder.commit().expect("a group is appended");
}

/// Exports runs, with values withheld.
fn exported(repo: &Repo, runs: &[&str], withheld: &[&str], although: &[&str]) -> Bundle {
    let runs: Vec<Address> = runs.iter().map(|run| Address::of(&run_name(run), None)).collect();
    let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let withheld =
        WithholdTerms { places: list(withheld), although: list(although), ..WithholdTerms::default() };
    let terms = ExportTerms { withheld, ..ExportTerms::default() };
    let mut text = Vec::new();
    let plan = plan(repo, &runs, terms, &mut ()).expect("runs are exported");
    plan.write::<ExportError>(&mut |line| {
        text.extend_from_slice(line);
        Ok(())
    })
    .expect("a bundle is written");
    Bundle::parse(&text).expect("what is written is a bundle")
}

fn all(repo: &Repo) -> Vec<Record> {
    records_of(&*repo.reader().expect("a store is read"))
}

impl Stock {
    /// Makes the logs.
    pub fn new() -> Stock {
        let repo = repo(7);
        extend(&repo, "w", 3, 1);
        extend(&repo, "v", 3, 0);
        let older = exported(&repo, &["w"], &[], &[]);
        extend(&repo, "w", 2, 1);
        let low = Predicate::holds("acme.low", "state.n < 100").expect("an expression");
        repo.register(&low, Vec::new()).expect("a predicate is registered");
        extend(&repo, "e", 2, 0);
        let begins_with = |record: &&Record| {
            record.header().run.as_ref().is_some_and(|run| run.as_str() == "e")
                && record.header().tick == Some(1)
        };
        let unerased = all(&repo).iter().find(begins_with).expect("tick 1 of e").clone();
        let erasure = EraseTerms {
            at: Address::parse("e@1").expect("an address"),
            path: "/intent/description".to_owned(),
            reason: "asked".to_owned(),
            by: "owner".to_owned(),
            also: Vec::new(),
            although: vec!["intent".to_owned(), "delta".to_owned()],
            everywhere: false,
        };
        let planned = plan_erasure(&repo, &erasure, &mut ()).expect("an erasure is planned");
        planned.carry_out(&repo).expect("a value is erased");
        let trace = repo.run(&run_name("w")).expect("w");
        let (mut fork, _) = repo.fork(&trace, 2, &ForkTerms::new(run_name("f"))).expect("a fork");
        fork.commit().expect("a group is appended");
        extend(&repo, "f", 2, 1);
        let mut recorder = repo.recorder(&run_name("w")).expect("w");
        recorder.end().expect("w ends");
        recorder.commit().expect("a group is appended");
        let runs: [&[&str]; 5] = [&["w"], &["v"], &["f", "w"], &["e"], &["w", "v", "f", "e"]];
        let mut bundles: Vec<Bundle> = runs.iter().map(|runs| exported(&repo, runs, &[], &[])).collect();
        let although = ["intent", "delta"];
        bundles.push(exported(&repo, &["w"], &["1:/intent/description"], &although));
        let other = super::stock::repo(8);
        extend(&other, "w", 4, 1);
        extend(&other, "v", 2, 0);
        let other = (exported(&other, &["w"], &[], &[]), all(&other));
        Stock {
            info: repo.info().clone(),
            key: Arc::new(key(7)),
            records: all(&repo),
            bundles,
            older,
            unerased,
            other,
        }
    }

    /// The log with a bundle of it.
    pub fn log(&self, bundle: usize) -> ForgedLog {
        ForgedLog::of(&self.info, &self.records, &self.bundles[bundle])
    }

    /// Size of the log whose last leaf is the older map.
    pub fn older_size(&self) -> usize {
        usize::try_from(self.older.size).expect("a small log")
    }
}

impl Default for Stock {
    fn default() -> Stock {
        Stock::new()
    }
}
