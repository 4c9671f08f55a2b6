//! The contract of every store, as a suite:
//!
//! [`run`] takes a [`Subject`], which makes stores, and tries each part of the contract: [`reads`], [`appends`], [`keeps`],
//! [`signs`], [`erases`], [`hides`], and [`lies`] that the subject plants into its lookups. Each case is a function of its own, and panics
//! with what does not hold. Also makes the records that tests of stores need.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;

use dendrer_object::merkle::{Peaks, leaf_hash};
use dendrer_object::note::{Checkpoint, SigningKey};
use dendrer_object::record::{Author, Body, Header, Kind, Link, Rel, Seed, cut};
use dendrer_object::{Code, Digest, Pointer, Record, RunName, StoreId, Timestamp, Value};

use crate::error::StoreError;
use crate::store::{Given, Head, LogWriter, NewSecrets, Slot, Store, StoreInfo, TreeHead};

mod lies;
mod secrets;

pub use lies::{Lie, lies};
pub use secrets::hides;

/// Makes the stores that the suite tries.
pub trait Subject {
    /// Makes an empty store.
    fn create(&self, info: StoreInfo) -> Box<dyn Store>;

    /// Opens the store made last once more, beside the handle that exists; `None` if it cannot be.
    fn reopen(&self) -> Option<Box<dyn Store>>;

    /// Plants a lie into the lookups of the store made last, which no handle has open. Returns `false` if the store has no
    /// lookups apart from its log.
    fn plant(&self, _lie: Lie) -> bool {
        false
    }
}

/// The id of the stores that the suite makes.
pub const STORE: StoreId = StoreId([0x5a; 16]);

/// Returns the key of the stores that the suite makes.
pub fn key() -> SigningKey {
    SigningKey::from_seed("conformance", [7; 32]).expect("a valid name")
}

/// Returns what the stores that the suite makes say of themselves.
pub fn info() -> StoreInfo {
    StoreInfo::new(STORE, key().verifier_key().clone())
}

/// Makes records, one run after the other or several at once, each behind the one before.
#[derive(Debug, Clone)]
pub struct Scribe {
    store: StoreId,
    heads: BTreeMap<RunName, (u64, Digest)>,
    made: u64,
}

impl Default for Scribe {
    fn default() -> Scribe {
        Scribe::new(STORE)
    }
}

/// Parses a run name that is known to be one.
pub fn name(text: &str) -> RunName {
    text.parse().expect("a run name")
}

fn pointer(text: &str) -> Pointer {
    text.parse().expect("a pointer")
}

impl Scribe {
    /// Makes records of a store.
    pub fn new(store: StoreId) -> Scribe {
        Scribe { store, heads: BTreeMap::new(), made: 0 }
    }

    /// Returns the head of a run as the records made so far have it.
    pub fn head(&self, run: &str) -> (u64, Digest) {
        self.heads[&name(run)]
    }

    /// Says that the run has another head, as after a refused append.
    pub fn set_head(&mut self, run: &str, tick: u64, id: Digest) {
        self.heads.insert(name(run), (tick, id));
    }

    /// Seals a record of any kind.
    pub fn seal(&mut self, change: impl FnOnce(&mut Header), content: Value) -> Record {
        let mut header = Header {
            store: self.store,
            kind: Kind::Transition,
            run: None,
            tick: None,
            prev: None,
            head: None,
            type_name: None,
            author: Author::Agent,
            ts: Timestamp::from_ms(1_771_867_265_000 + self.made),
            links: vec![],
            pack: None,
        };
        change(&mut header);
        self.made += 1;
        let mut seed = [0; 16];
        seed[..8].copy_from_slice(&self.made.to_le_bytes());
        let content = content.as_object().expect("content is an object").clone();
        let body = Body::commit(cut(&content), Seed(seed)).expect("content that can be committed");
        Record::seal(header, body).expect("a header that fits its kind")
    }

    /// Begins a run.
    pub fn begin(&mut self, run: &str) -> Record {
        let run = name(run);
        let content = Value::record([("goal", Value::from("try")), ("stage", 1u64.into())]);
        let record = self.seal(
            |header| {
                (header.kind, header.author) = (Kind::Run, Author::Kernel);
                (header.run, header.tick) = (Some(run.clone()), Some(0));
            },
            content,
        );
        self.heads.insert(run, (0, record.id()));
        record
    }

    /// Begins a run that branches off from another.
    pub fn fork(&mut self, run: &str, tick: u64, parent: Digest) -> Record {
        let run = name(run);
        let record = self.seal(
            |header| {
                (header.kind, header.author) = (Kind::Run, Author::Kernel);
                (header.run, header.prev) = (Some(run.clone()), Some(parent));
            },
            Value::record([("parent", Value::from(tick))]),
        );
        self.heads.insert(run, (tick, record.id()));
        record
    }

    /// Makes the next transition of a run, which sets `/n` and a path of its own.
    pub fn step(&mut self, run: &str) -> Record {
        let tick = self.heads[&name(run)].0 + 1;
        let delta = [
            Value::record([("set", Value::from("/n")), ("value", tick.into())]),
            Value::record([("set", Value::from(format!("/list/{}", tick % 3))), ("value", Value::Null)]),
        ];
        let content = Value::record([
            ("agent_id", Value::from(format!("agent-{}", tick % 2))),
            ("delta", Value::array(delta)),
            ("intent", Value::record([("description", Value::from("go on"))])),
            ("result", Value::record([("ok", Value::from(true))])),
        ]);
        self.transition(run, content)
    }

    /// Makes the next transition of a run.
    pub fn transition(&mut self, run: &str, content: Value) -> Record {
        let run = name(run);
        let (tick, prev) = self.heads[&run];
        let record = self.seal(
            |header| {
                (header.run, header.tick, header.prev) = (Some(run.clone()), Some(tick + 1), Some(prev));
                header.type_name = Some("plan.update".parse().expect("a type name"));
            },
            content,
        );
        self.heads.insert(run, (tick + 1, record.id()));
        record
    }

    /// Makes a record of a run off the chain.
    pub fn beside(&mut self, kind: Kind, run: &str, content: Value) -> Record {
        let run = name(run);
        let head = self.heads[&run].1;
        self.seal(
            |header| {
                (header.kind, header.author) = (kind, Author::Kernel);
                (header.run, header.head) = (Some(run), Some(head));
            },
            content,
        )
    }

    /// Makes a record of no run.
    pub fn apart(&mut self, kind: Kind, content: Value) -> Record {
        self.seal(|header| (header.kind, header.author) = (kind, Author::Institution), content)
    }
}

fn nothing() -> Value {
    Value::record::<&str>([])
}

/// Checks that what is skimmed is what the records say, as far as they can be read so.
fn check_skims(store: &dyn Store, records: &[Record]) {
    let wanted = |header: &Header, place: &str| header.kind == Kind::Transition && place != "/seq";
    let mut position = 0;
    let is_read = store.skim(0..u64::MAX, &wanted, &mut |at, skimmed| {
        assert_eq!(at, position, "skimming is in order");
        let record = &records[position as usize];
        assert_eq!((skimmed.id, skimmed.header), (record.id(), record.header()));
        let body = record.body();
        let expected = body.fields().iter().filter(|field| wanted(record.header(), field.pointer.as_str()));
        let expected: Vec<_> = expected
            .map(|field| (field.pointer.as_str(), Cow::Borrowed(body.text(field).expect("it is whole"))))
            .collect();
        assert_eq!(skimmed.fields, expected, "the fields of {at}");
        position += 1;
        ControlFlow::Continue(())
    });
    if is_read.expect("skimming works") {
        assert_eq!(position, records.len() as u64, "skimming hands over everything");
    }
}

/// Checks that a store holds exactly these records, through every way of reading.
pub fn check_holds(store: &dyn Store, records: &[Record]) {
    let mut peaks = Peaks::new();
    for record in records {
        peaks.push(leaf_hash(&record.entry()));
    }
    assert_eq!((store.tree().size, store.tree().root), (peaks.size(), peaks.root()), "the tree");
    let mut runs: BTreeMap<RunName, Vec<(u64, &Record)>> = BTreeMap::new();
    for (position, record) in (0..).zip(records) {
        let read = store.get(position).expect("a record can be read").expect("a record is there");
        assert_eq!(&read, record, "the record at {position}");
        let proven = store.proven(position).expect("a record has a path").expect("a record is there");
        assert_eq!(&proven, record, "the record at {position} with its path");
        let first = records.iter().position(|other| other.id() == record.id()).expect("it is there") as u64;
        assert_eq!(store.find(&record.id()).expect("find works"), Some(first));
        if let Some(run) = &record.header().run {
            runs.entry(run.clone()).or_default().push((position, record));
        }
    }
    let after = records.len() as u64;
    assert!(store.get(after).expect("get works").is_none(), "nothing after the end");
    assert!(store.proven(after).expect("proven works").is_none(), "nothing after the end");
    check_roots(store, records);
    let mut scanned = Vec::new();
    let scan = store.scan(0..u64::MAX, &mut |position, record| {
        assert_eq!(position, scanned.len() as u64, "a scan is in order");
        scanned.push(record);
        ControlFlow::Continue(())
    });
    scan.expect("a scan works");
    assert_eq!(scanned, records, "a scan hands over everything");
    check_skims(store, records);
    let mut entries = Vec::new();
    let scan = store.entries(0..u64::MAX, &mut |_, entry| {
        entries.push(entry.text());
        ControlFlow::Continue(())
    });
    scan.expect("entries can be read");
    assert_eq!(entries, records.iter().map(Record::entry).collect::<Vec<_>>(), "the entries");
    for (run, records) in &runs {
        check_run(store, run, records);
    }
    check_beside_runs(store);
    let listed = store.runs(0, usize::MAX >> 1).expect("runs can be listed");
    let begins = (0u64..).zip(records).filter(|(_, record)| record.header().kind == Kind::Run);
    let names: Vec<_> = begins.map(|(position, record)| (position, record.header().run.clone())).collect();
    let found: Vec<_> = listed.iter().map(|run| (run.begin, Some(run.name.clone()))).collect();
    assert_eq!(found, names, "the list of runs");
}

/// Checks the roots that the log had.
fn check_roots(store: &dyn Store, records: &[Record]) {
    let (mut peaks, tree) = (Peaks::new(), store.tree());
    for record in records {
        if peaks.size() < 10 || peaks.size() + 2 > tree.size {
            let found = store.root_of(peaks.size()).expect("root_of works");
            assert!(found.is_none_or(|root| root == peaks.root()), "the root of {}", peaks.size());
            assert!(store.extends(peaks.size(), peaks.root()).expect("extends works"), "{}", peaks.size());
            let other = Digest::of(b"another root");
            assert!(!store.extends(peaks.size(), other).expect("extends works"), "{}", peaks.size());
        }
        peaks.push(leaf_hash(&record.entry()));
    }
    assert_eq!(store.root_of(tree.size).expect("root_of works"), Some(tree.root));
    assert!(store.extends(tree.size, tree.root).expect("extends works"));
    assert_eq!(store.root_of(tree.size + 1).expect("root_of works"), None);
    assert!(!store.extends(tree.size + 1, tree.root).expect("extends works"));
}

fn check_run(store: &dyn Store, run: &RunName, records: &[(u64, &Record)]) {
    let summary = store.run(run).expect("a run can be read").expect("the run is there");
    let of_kind = |kind| records.iter().filter(move |(_, record)| record.header().kind == kind);
    let (begin, first) = of_kind(Kind::Run).next().expect("a run begins");
    assert_eq!((summary.begin, summary.parent), (*begin, first.header().prev));
    assert_eq!(summary.transitions, of_kind(Kind::Transition).count() as u64, "transitions of {run}");
    assert_eq!(summary.refusals, of_kind(Kind::Refusal).count() as u64, "refusals of {run}");
    assert_eq!(summary.ended, of_kind(Kind::End).count() > 0, "whether {run} ended");
    let newest = records.iter().map(|(_, record)| record.header().ts).max();
    assert_eq!(Some(summary.last_ts), newest, "the newest time of {run}");
    let chain: Vec<(u64, u64, Digest)> = records
        .iter()
        .filter_map(|(position, record)| Some((record.header().tick?, *position, record.id())))
        .collect();
    if let Some((tick, position, id)) = chain.last() {
        assert_eq!(summary.head, Head { tick: Some(*tick), id: *id }, "the head of {run}");
        assert_eq!(summary.head_position, *position);
        assert_eq!(summary.first_own_tick, Some(chain[0].0));
    } else {
        assert_eq!((summary.head.id, summary.head_position), (first.id(), *begin), "the head of {run}");
    }
    for (tick, position, _) in &chain {
        assert_eq!(store.at(run, *tick).expect("at works"), Some(*position), "{run} at {tick}");
    }
    let after = chain.last().map_or(0, |(tick, ..)| tick + 1);
    assert_eq!(store.at(run, after).expect("at works"), None, "{run} has no tick {after}");
    if let Some(before) = chain.first().and_then(|(tick, ..)| tick.checked_sub(1)) {
        assert_eq!(store.at(run, before).expect("at works"), None, "tick {before} is the parent's");
    }
    let mut listed = Vec::new();
    while let Some((tick, position)) = store
        .positions(run, listed.last().map_or(0, |(tick, _)| tick + 1)..=u64::MAX, 3)
        .expect("positions")
        .pop()
    {
        let batch = store
            .positions(run, listed.last().map_or(0, |(tick, _): &(u64, u64)| tick + 1)..=tick, 3)
            .expect("positions");
        assert_eq!(batch.last(), Some(&(tick, position)));
        listed.extend(batch);
    }
    let expected: Vec<_> = chain.iter().map(|(tick, position, _)| (*tick, *position)).collect();
    assert_eq!(listed, expected, "the positions of {run}");
    let beside: Vec<_> = records
        .iter()
        .map(|(position, record)| (*position, record.header().kind, record.header().tick))
        .filter(|(_, kind, tick)| tick.is_none() && *kind != Kind::Run)
        .map(|(position, kind, _)| (position, kind))
        .collect();
    assert_eq!(store.beside(run, 0, usize::MAX >> 1).expect("beside works"), beside, "beside {run}");
}

fn check_beside_runs(store: &dyn Store) {
    let mut expected = Vec::new();
    let each = &mut |position, record: Record| {
        if record.header().run.is_none() {
            expected.push((position, record.header().kind));
        }
        ControlFlow::Continue(())
    };
    store.scan(0..store.tree().size, each).expect("scan works");
    assert_eq!(store.beside_runs(0, usize::MAX >> 1).expect("beside_runs works"), expected);
    let later: Vec<_> = expected.iter().copied().skip(1).take(1).collect();
    let from = expected.first().map_or(0, |(position, _)| position + 1);
    assert_eq!(store.beside_runs(from, 1).expect("beside_runs works"), later);
}

type Case = fn(&dyn Subject);

fn try_each(subject: &dyn Subject, cases: &[Case]) {
    cases.iter().for_each(|case| case(subject));
}

/// Runs the whole suite.
pub fn run(subject: &dyn Subject) {
    try_each(subject, &[reads, appends, keeps, signs, erases, hides, lies]);
}

/// Tries the part that reads.
pub fn reads(subject: &dyn Subject) {
    let cases: &[Case] = &[
        an_empty_store_has_the_empty_tree,
        records_come_back_as_they_were_appended,
        several_runs_grow_side_by_side,
        a_fork_owns_only_what_follows,
        a_fork_of_a_foreign_record_takes_its_tick_from_its_first_transition,
        large_values_come_back,
        withheld_values_stay_withheld,
        ids_are_found_by_prefix,
        another_handle_sees_what_was_committed,
        a_scan_can_begin_and_stop_anywhere,
        records_are_proven_before_and_after_they_are_signed,
    ];
    try_each(subject, cases);
}

/// Tries the part that appends.
pub fn appends(subject: &dyn Subject) {
    let cases: &[Case] = &[
        what_does_not_fit_is_refused_and_nothing_is_written,
        an_ended_run_takes_no_transition,
        a_group_is_all_or_nothing,
        groups_can_be_on_their_way_at_once,
        nothing_goes_behind_a_group_without_a_tag,
        the_holder_of_the_key_may_adopt_a_group,
    ];
    try_each(subject, cases);
}

/// Tries the part that keeps derived bytes.
pub fn keeps(subject: &dyn Subject) {
    try_each(subject, &[snapshots_may_be_kept, verdicts_may_be_kept]);
}

/// Tries the part that signs.
pub fn signs(subject: &dyn Subject) {
    try_each(subject, &[checkpoints_are_signed_and_kept]);
}

/// Tries the part that destroys values.
pub fn erases(subject: &dyn Subject) {
    try_each(subject, &[erased_values_are_gone_and_records_verify]);
}

fn records_are_proven_before_and_after_they_are_signed(subject: &dyn Subject) {
    let mut store = subject.create(info());
    let mut scribe = Scribe::default();
    let mut records = vec![scribe.begin("r")];
    store.commit(&records).expect("it fits");
    for steps in [1, 254, 1, 300, 77] {
        let group: Vec<Record> = (0..steps).map(|_| scribe.step("r")).collect();
        store.commit(&group).expect("they fit");
        records.extend(group);
        let check = |store: &dyn Store| {
            for position in [0, 1, 200, 255, 256, 511, 555, 600, records.len() - 1] {
                let found = store.proven(position as u64).expect("a record has a path");
                assert_eq!(found.as_ref(), records.get(position), "{position} of {}", records.len());
            }
            let newest = (records.len() - 1) as u64;
            let found = store.proven_at(&name("r"), newest).expect("a record has a path");
            assert_eq!(found.as_ref(), records.last());
            assert_eq!(store.proven_at(&name("r"), newest + 1).expect("no tick is no error"), None);
        };
        check(&*store);
        if steps != 1 {
            store.sign_checkpoint(&key()).expect("it signs");
        }
        check(&*store);
    }
    store.close().expect("it closes");
    if let Some(store) = subject.reopen() {
        check_holds(&*store, &records);
    }
}

fn an_empty_store_has_the_empty_tree(subject: &dyn Subject) {
    let mut store = subject.create(info());
    assert_eq!(store.info(), &info());
    assert_eq!(store.append(&[]).expect("an empty group is fine"), 0..0);
    check_holds(&*store, &[]);
    assert_eq!(store.find(&Digest::of(b"x")).expect("find works"), None);
    assert_eq!(store.run(&name("r")).expect("run works"), None);
    assert!(store.trouble().is_none());
}

fn records_come_back_as_they_were_appended(subject: &dyn Subject) {
    let mut store = subject.create(info());
    let mut scribe = Scribe::default();
    let mut records = vec![scribe.begin("r")];
    records.extend((0..20).map(|_| scribe.step("r")));
    records.push(scribe.beside(Kind::Refusal, "r", Value::record([("reason", Value::from("no"))])));
    records.push(scribe.apart(Kind::Register, Value::record([("pack", Value::from("text"))])));
    records.push(scribe.beside(Kind::Register, "r", nothing()));
    records.push(scribe.seal(
        |header| {
            (header.kind, header.run) = (Kind::Key, None);
            header.links = vec![Link { rel: Rel::Evidence, hash: records[3].id() }];
            header.pack = Some(Digest::of(b"pack"));
        },
        nothing(),
    ));
    let mut appended = 0;
    for group in records.chunks(4) {
        assert_eq!(store.commit(group).expect("it fits"), appended..appended + group.len() as u64);
        appended += group.len() as u64;
    }
    check_holds(&*store, &records);
    store.close().expect("it closes");
    if let Some(store) = subject.reopen() {
        check_holds(&*store, &records);
    }
}

fn several_runs_grow_side_by_side(subject: &dyn Subject) {
    let mut store = subject.create(info());
    let mut scribe = Scribe::default();
    let mut records = Vec::new();
    for run in ["a", "b", "c"] {
        let group = [scribe.begin(run), scribe.step(run)];
        store.append(&group).expect("it fits");
        records.extend(group);
    }
    for turn in 0..12 {
        let group = [scribe.step("a"), scribe.step("b"), scribe.step(if turn % 2 == 0 { "c" } else { "a" })];
        store.append(&group).expect("it fits");
        records.extend(group);
    }
    store.commit(&[]).expect("what was appended is made durable");
    check_holds(&*store, &records);
}

fn a_fork_owns_only_what_follows(subject: &dyn Subject) {
    let mut store = subject.create(info());
    let mut scribe = Scribe::default();
    let mut records = vec![scribe.begin("p")];
    records.extend((0..5).map(|_| scribe.step("p")));
    store.commit(&records).expect("it fits");
    let fork = scribe.fork("child", 3, records[3].id());
    store.commit(std::slice::from_ref(&fork)).expect("a fork fits");
    records.push(fork.clone());
    let summary = store.run(&name("child")).expect("run works").expect("it is there");
    assert_eq!(summary.first_own_tick, Some(4));
    assert_eq!(summary.head, Head { tick: Some(3), id: fork.id() });
    for _ in 0..3 {
        let step = scribe.step("child");
        store.commit(std::slice::from_ref(&step)).expect("it fits");
        records.push(step);
    }
    // A fork of the fork, at a tick that the fork owns, and one at the begin of everything.
    records.push(scribe.fork("grandchild", 5, records[8].id()));
    records.push(scribe.step("grandchild"));
    records.push(scribe.fork("again", 0, records[0].id()));
    records.push(scribe.step("again"));
    store.commit(&records[10..]).expect("they fit");
    check_holds(&*store, &records);
    assert_eq!(store.at(&name("child"), 3).expect("at works"), None);
    assert_eq!(store.at(&name("again"), 1).expect("at works"), Some(13));
    // A fork branches off from a record of the chain, not from one off the chain or from the begin of another fork.
    let bad = scribe.fork("bad", 3, fork.id());
    assert!(matches!(store.append(&[bad]), Err(StoreError::NoRecord(_))));
}

fn a_fork_of_a_foreign_record_takes_its_tick_from_its_first_transition(subject: &dyn Subject) {
    let mut store = subject.create(info());
    let mut scribe = Scribe::default();
    let foreign = Digest::of(b"a record of another store");
    let records = vec![scribe.fork("f", 7, foreign), scribe.step("f"), scribe.step("f")];
    store.commit(&records[..1]).expect("it fits");
    let summary = store.run(&name("f")).expect("run works").expect("it is there");
    assert_eq!((summary.first_own_tick, summary.head.tick), (None, None));
    store.commit(&records[1..]).expect("they fit");
    check_holds(&*store, &records);
    let mut other = scribe.clone();
    other.set_head("f", 8, records[2].id());
    assert!(matches!(store.append(&[other.step("f")]), Err(StoreError::Stale { .. })));
}

fn what_does_not_fit_is_refused_and_nothing_is_written(subject: &dyn Subject) {
    let mut store = subject.create(info());
    let mut scribe = Scribe::default();
    let mut records = vec![scribe.begin("r")];
    records.extend((0..3).map(|_| scribe.step("r")));
    store.commit(&records).expect("it fits");
    let (tick, head) = scribe.head("r");
    let mut check = |make: &dyn Fn(&mut Scribe) -> Record, code: &str| {
        let mut scribe = scribe.clone();
        let error = store.append(&[make(&mut scribe)]).expect_err("it does not fit");
        assert_eq!(error.code(), code, "{error}");
        check_holds(&*store, &records);
    };
    // Two writers decided on the same head: the second one is told which head there is.
    check(
        &|scribe| {
            scribe.set_head("r", 2, records[2].id());
            scribe.step("r")
        },
        "E0407",
    );
    check(
        &|scribe| {
            scribe.set_head("r", tick + 1, head);
            scribe.step("r")
        },
        "E0407",
    );
    check(
        &|scribe| {
            scribe.set_head("r", tick, Digest::of(b"x"));
            scribe.step("r")
        },
        "E0407",
    );
    check(&|scribe| scribe.begin("r"), "E0111");
    check(
        &|scribe| {
            scribe.set_head("nobody", 0, head);
            scribe.step("nobody")
        },
        "E0101",
    );
    check(
        &|scribe| {
            scribe.set_head("nobody", 0, head);
            scribe.beside(Kind::Refusal, "nobody", nothing())
        },
        "E0101",
    );
    check(
        &|scribe| {
            scribe.set_head("r", tick, Digest::of(b"x"));
            scribe.beside(Kind::Refusal, "r", nothing())
        },
        "E0102",
    );
    check(
        &|scribe| {
            scribe.set_head("r", 2, records[2].id());
            scribe.beside(Kind::End, "r", nothing())
        },
        "E0407",
    );
    check(
        &|scribe| {
            let link = Link { rel: Rel::CausedBy, hash: Digest::of(b"later") };
            scribe.seal(|header| (header.kind, header.links) = (Kind::Register, vec![link]), nothing())
        },
        "E0102",
    );
    check(&|_| Scribe::new(StoreId([1; 16])).apart(Kind::Register, nothing()), "E0306");
    let Err(StoreError::Stale { expected, found, .. }) = store.append(&[{
        let mut scribe = scribe.clone();
        scribe.set_head("r", 2, records[2].id());
        scribe.step("r")
    }]) else {
        panic!("a stale record is refused as stale");
    };
    assert_eq!(expected, Head { tick: Some(2), id: records[2].id() });
    assert_eq!(found, Head { tick: Some(3), id: records[3].id() });
    let next = scribe.step("r");
    store.commit(std::slice::from_ref(&next)).expect("the store goes on");
}

fn an_ended_run_takes_no_transition(subject: &dyn Subject) {
    let mut store = subject.create(info());
    let mut scribe = Scribe::default();
    let mut records = vec![scribe.begin("r"), scribe.step("r"), scribe.beside(Kind::End, "r", nothing())];
    store.commit(&records).expect("it fits");
    let code = |error: Result<_, StoreError>| error.expect_err("the run has ended").code();
    assert_eq!(code(store.append(&[scribe.clone().step("r")])), "E0406");
    assert_eq!(code(store.append(&[scribe.clone().beside(Kind::End, "r", nothing())])), "E0406");
    // A refusal is no part of the chain, and a fork is a run of its own.
    records.push(scribe.beside(Kind::Refusal, "r", nothing()));
    records.push(scribe.fork("next", 1, records[1].id()));
    records.push(scribe.step("next"));
    store.commit(&records[3..]).expect("these fit");
    check_holds(&*store, &records);
}

fn a_group_is_all_or_nothing(subject: &dyn Subject) {
    let mut store = subject.create(info());
    let mut scribe = Scribe::default();
    let begin = scribe.begin("r");
    store.commit(std::slice::from_ref(&begin)).expect("it fits");
    let group = [scribe.step("r"), scribe.step("r"), scribe.begin("other")];
    let mut bad = group.to_vec();
    bad.push(scribe.clone().begin("r"));
    assert_eq!(store.append(&bad).expect_err("the last one does not fit").code(), "E0111");
    check_holds(&*store, std::slice::from_ref(&begin));
    // Records of one group may follow and name each other.
    let mut good = group.to_vec();
    good.push(scribe.seal(
        |header| {
            header.kind = Kind::Register;
            header.links = vec![Link { rel: Rel::Evidence, hash: group[1].id() }];
        },
        nothing(),
    ));
    good.push(scribe.step("other"));
    store.commit(&good).expect("it fits now");
    check_holds(&*store, &[std::slice::from_ref(&begin), &good].concat());
}

/// Returns text that does not repeat.
pub fn noise(size: usize, seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut text = String::with_capacity(size);
    while text.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.push(char::from(b'a' + (state % 26) as u8));
    }
    text
}

fn large_values_come_back(subject: &dyn Subject) {
    let mut store = subject.create(info());
    let mut scribe = Scribe::default();
    let mut records = vec![scribe.begin("r")];
    for (seed, size) in
        [(1, 1020), (2, 1022), (3, 1023), (4, 5000), (5, 200_000), (6, 1_200_000), (6, 1_200_000)]
    {
        let text = Value::from(noise(size, seed));
        let content = Value::record([
            ("agent_id", Value::from("a")),
            ("intent", Value::record([("small", Value::from("x")), ("text", text.clone())])),
            ("result", Value::array([text, Value::from("\u{e9}\u{1F600}\n")])),
        ]);
        records.push(scribe.transition("r", content));
    }
    store.commit(&records).expect("they fit");
    check_holds(&*store, &records);
    store.close().expect("it closes");
    if let Some(store) = subject.reopen() {
        check_holds(&*store, &records);
    }
}

fn withheld_values_stay_withheld(subject: &dyn Subject) {
    let mut store = subject.create(info());
    let mut scribe = Scribe::default();
    let mut records = vec![scribe.begin("r")];
    for _ in 0..3 {
        records.push(scribe.step("r").without(&[pointer("/intent")]));
    }
    records.push(scribe.step("r").without(&[pointer("/delta")]));
    records.push(scribe.step("r"));
    store.commit(&records).expect("they fit");
    check_holds(&*store, &records);
    assert_eq!(
        store.get(1).expect("get works").expect("it is there").body().value("/intent/description"),
        None
    );
}

fn ids_are_found_by_prefix(subject: &dyn Subject) {
    let mut store = subject.create(info());
    let mut scribe = Scribe::default();
    let mut records = vec![scribe.begin("r")];
    records.extend((0..60).map(|_| scribe.step("r")));
    store.commit(&records).expect("they fit");
    let mut ids: Vec<(Digest, u64)> = records.iter().map(Record::id).zip(0..).collect();
    ids.sort_unstable();
    for length in [0, 1, 2, 12, 64] {
        let prefix = &records[7].id().hex()[..length];
        let expected: Vec<_> = ids.iter().filter(|(id, _)| id.hex().starts_with(prefix)).copied().collect();
        assert_eq!(store.find_prefix(prefix, 1000).expect("find_prefix works"), expected, "{prefix:?}");
        let some = store.find_prefix(prefix, 2).expect("find_prefix works");
        assert_eq!(some, expected[..expected.len().min(2)], "{prefix:?}");
    }
    for bad in ["xyz", "A", &"0".repeat(65)] {
        assert_eq!(store.find_prefix(bad, 10).expect("find_prefix works"), [], "{bad}");
    }
}

fn erased_values_are_gone_and_records_verify(subject: &dyn Subject) {
    let mut store = subject.create(info());
    let mut scribe = Scribe::default();
    let secret = noise(3000, 9);
    let mut records = vec![scribe.begin("r")];
    for _ in 0..3 {
        let content = Value::record([
            ("agent_id", Value::from("someone")),
            ("delta", Value::array([Value::record([("remove", Value::from("/n"))])])),
            ("intent", Value::record([("secret", Value::from(secret.clone())), ("plain", Value::from("p"))])),
        ]);
        records.push(scribe.transition("r", content));
    }
    store.commit(&records).expect("they fit");
    let head = scribe.clone();
    let not_erase = scribe.beside(Kind::Refusal, "r", nothing());
    assert!(store.erase(&not_erase, &[(1, vec![pointer("/intent")])]).is_err());
    scribe = head;
    let erase = scribe.beside(Kind::Erase, "r", Value::record([("reason", Value::from("asked to"))]));
    assert!(store.erase(&erase, &[(99, vec![pointer("/intent")])]).is_err(), "there is no such record");
    check_holds(&*store, &records);
    let at = store.erase(&erase, &[(1, vec![pointer("/intent/secret")])]).expect("it can be erased");
    assert_eq!(at, 4);
    records.push(erase);
    records[1] = records[1].without(&[pointer("/intent/secret")]);
    check_holds(&*store, &records);
    // The same again for more, of several records, and of one that was erased from before.
    let erase = scribe.beside(Kind::Erase, "r", nothing());
    let targets = [
        (2, vec![pointer("/intent")]),
        (1, vec![pointer("/agent_id"), pointer("/delta")]),
        (3, vec![pointer("/none")]),
    ];
    store.erase(&erase, &targets).expect("it can be erased");
    records.push(erase);
    for (position, places) in &targets {
        let target = &mut records[*position as usize];
        *target = target.without(places);
    }
    check_holds(&*store, &records);
    let step = scribe.step("r");
    store.commit(std::slice::from_ref(&step)).expect("the run goes on");
    records.push(step);
    check_holds(&*store, &records);
    store.close().expect("it closes");
    if let Some(store) = subject.reopen() {
        check_holds(&*store, &records);
    }
}

fn snapshots_may_be_kept(subject: &dyn Subject) {
    let mut store = subject.create(info());
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("r"), scribe.step("r")]).expect("they fit");
    let run = name("r");
    assert_eq!(store.kept(Slot::Snapshot(&run, 9)).expect("snapshot works"), None);
    store.keep(Slot::Snapshot(&run, 4), b"four").expect("put works");
    store.keep(Slot::Snapshot(&run, 8), b"eight").expect("put works");
    // A store may forget, but never give another one.
    for (tick, expected) in [(3, None), (4, Some((4, b"four".to_vec()))), (7, Some((4, b"four".to_vec())))] {
        let found = store.kept(Slot::Snapshot(&run, tick)).expect("snapshot works");
        assert!(found.is_none() || found == expected, "{tick}: {found:?}");
    }
}

fn verdicts_may_be_kept(subject: &dyn Subject) {
    let mut store = subject.create(info());
    let mut scribe = Scribe::default();
    store.commit(&[scribe.begin("r"), scribe.step("r")]).expect("they fit");
    let (run, question, other) = (name("r"), Digest([1; 32]), Digest([2; 32]));
    assert_eq!(store.kept(Slot::Verdicts(&run, &question)).expect("verdicts works"), None);
    for text in [&b"first"[..], b"second"] {
        store.keep(Slot::Verdicts(&run, &question), text).expect("put works");
        // A store may forget, but never give another one, or one of something else.
        let found = store.kept(Slot::Verdicts(&run, &question)).expect("verdicts works");
        assert!(found.is_none() || found == Some((0, text.to_vec())), "{found:?}");
        assert_eq!(store.kept(Slot::Verdicts(&run, &other)).expect("verdicts works"), None);
        assert_eq!(store.kept(Slot::Verdicts(&name("s"), &question)).expect("verdicts works"), None);
    }
}

fn checkpoints_are_signed_and_kept(subject: &dyn Subject) {
    let mut store = subject.create(info());
    let mut scribe = Scribe::default();
    assert_eq!(store.checkpoint().expect("checkpoint works"), None);
    let key = key();
    let mut last = None;
    for steps in [0, 1, 300, 3] {
        if store.tree().size == 0 && steps > 0 {
            store.append(&[scribe.begin("r")]).expect("it fits");
        }
        let steps: Vec<Record> = (0..steps).map(|_| scribe.step("r")).collect();
        store.append(&steps).expect("they fit");
        let note = store.sign_checkpoint(&key).expect("it signs");
        let opened = Checkpoint::open(&note, &STORE.origin(), key.verifier_key()).expect("it verifies");
        assert_eq!((opened.size(), opened.root()), (store.tree().size, store.tree().root));
        assert_eq!(store.sign_checkpoint(&key).expect("it signs the same again"), note);
        last = Some(note);
    }
    assert_eq!(store.checkpoint().expect("checkpoint works"), last);
    store.close().expect("it closes");
    if let Some(store) = subject.reopen() {
        assert_eq!(store.checkpoint().expect("checkpoint works"), last);
        assert!(store.trouble().is_none());
    }
}

fn groups_can_be_on_their_way_at_once(subject: &dyn Subject) {
    let mut store = subject.create(info());
    let mut scribe = Scribe::default();
    let mut records = vec![scribe.begin("r")];
    store.append(&records).expect("it fits");
    let ticket = store.submit(&[]).expect("what was appended is to be made durable");
    store.wait(ticket).expect("it is durable");
    let mut tickets = VecDeque::new();
    for _ in 0..5 {
        let group = [scribe.step("r"), scribe.step("r")];
        tickets.push_back(store.submit(&group).expect("they fit while the sync runs"));
        records.extend(group);
        if tickets.len() > 2 {
            store.wait(tickets.pop_front().expect("there is one")).expect("they are durable");
        }
    }
    for ticket in tickets {
        store.wait(ticket).expect("they are durable");
    }
    store.commit(&[]).expect("what is durable stays so");
    check_holds(&*store, &records);
}

/// A store in which an owner has signed three records, and a writer without the secret appended one.
fn met(subject: &dyn Subject) -> (Box<dyn Store>, Scribe) {
    let (mut store, mut scribe) = (subject.create(info()), Scribe::default());
    store.set_writer(LogWriter::of(&key()));
    store.commit(&[scribe.begin("r"), scribe.step("r")]).expect("it fits");
    store.commit(&[scribe.step("r")]).expect("it fits");
    assert_eq!(store.untagged().expect("it looks"), Some(vec![]), "groups of the owner have tags");
    store.sign_checkpoint(&key()).expect("it signs");
    store.set_writer(LogWriter::Unchecked);
    assert_eq!(store.untagged().expect("it looks"), None, "without a secret no tag is checked");
    store.commit(&[scribe.step("r")]).expect("a program with the files can append");
    (store, scribe)
}

fn nothing_goes_behind_a_group_without_a_tag(subject: &dyn Subject) {
    let (mut store, mut scribe) = met(subject);
    let (tree, signed) = (store.tree(), store.checkpoint().expect("checkpoint works"));
    let step = [scribe.step("r")];
    let erase = scribe.beside(Kind::Erase, "r", nothing());
    let other = SigningKey::from_seed("conformance", [8; 32]).expect("a valid name");
    for (writer, code) in [
        (LogWriter::of(&key()), Code::E0814),
        (LogWriter::Missing, Code::E0804),
        (LogWriter::of(&other), Code::E0804),
    ] {
        store.set_writer(writer);
        let refused = [
            store.append(&step).map(drop),
            store.append_after(&step, &[]).map(drop),
            store.commit(&step).map(drop),
            store.append_with(&step, &[], &NewSecrets::default()).map(drop),
            store.erase(&erase, &[(1, vec![pointer("/intent")])]).map(drop),
            store.sign_checkpoint(&key()).map(drop),
            store.put_secrets(&[(Digest([3; 32]), vec![1])], Given::default()).map(drop),
            store.remove_secrets(&[Digest([3; 32])], Given::default()).map(drop),
        ];
        for refused in refused {
            assert_eq!(refused.expect_err("it is refused").code(), code);
        }
        assert_eq!(store.tree(), tree, "nothing is written");
        assert_eq!(store.checkpoint().expect("checkpoint works"), signed, "nothing is signed");
    }
    store.set_writer(LogWriter::of(&key()));
    assert_eq!(store.untagged().expect("it looks"), Some(vec![3..4]));
    store.close().expect("it closes");
    if let Some(mut again) = subject.reopen() {
        again.set_writer(LogWriter::of(&key()));
        assert_eq!(again.untagged().expect("it looks"), Some(vec![3..4]));
        assert_eq!(again.commit(&step).expect_err("it is refused").code(), Code::E0814);
    }
}

fn the_holder_of_the_key_may_adopt_a_group(subject: &dyn Subject) {
    let (mut store, mut scribe) = met(subject);
    store.set_writer(LogWriter::of(&key()));
    let tree = store.tree();
    let other = TreeHead { root: Digest([9; 32]), ..tree };
    assert!(store.adopt(other).is_err(), "another log than the one that was looked at");
    store.adopt(tree).expect("it is the log");
    assert_eq!(store.untagged().expect("it looks"), Some(vec![]));
    // A later group was not seen.
    store.set_writer(LogWriter::Unchecked);
    store.commit(&[scribe.step("r")]).expect("a program with the files can append");
    store.set_writer(LogWriter::of(&key()));
    assert_eq!(store.untagged().expect("it looks"), Some(vec![4..5]));
    store.adopt(store.tree()).expect("it is the log");
    store.commit(&[scribe.step("r")]).expect("it goes on");
    store.sign_checkpoint(&key()).expect("it signs");
    store.close().expect("it closes");
    if let Some(mut again) = subject.reopen() {
        again.set_writer(LogWriter::of(&key()));
        assert_eq!(again.untagged().expect("it looks"), Some(vec![]), "a checkpoint covers them");
        again.commit(&[scribe.step("r")]).expect("it goes on");
    }
}

fn another_handle_sees_what_was_committed(subject: &dyn Subject) {
    let mut store = subject.create(info());
    let Some(mut other) = subject.reopen() else { return };
    let mut scribe = Scribe::default();
    let mut records = vec![scribe.begin("r")];
    store.commit(&records).expect("it fits");
    assert_eq!(other.refresh().expect("it refreshes"), 1);
    check_holds(&*other, &records);
    for turn in 0..6 {
        let step = scribe.step("r");
        let (first, second) = if turn % 2 == 0 { (&mut store, &mut other) } else { (&mut other, &mut store) };
        first.commit(std::slice::from_ref(&step)).expect("they take turns");
        let stale = { scribe.clone() }.transition("r", nothing());
        let mut late = Scribe::default();
        late.set_head("r", turn, records.last().expect("there is one").id());
        let error = second.append(&[late.transition("r", nothing())]).expect_err("the other one was first");
        assert_eq!(error.code(), "E0407");
        drop(stale);
        records.push(step);
        second.refresh().expect("it refreshes");
        check_holds(&**second, &records);
    }
}

fn a_scan_can_begin_and_stop_anywhere(subject: &dyn Subject) {
    let mut store = subject.create(info());
    let mut scribe = Scribe::default();
    let mut records = vec![scribe.begin("r")];
    records.extend((0..30).map(|_| scribe.step("r")));
    for group in records.chunks(7) {
        store.append(group).expect("they fit");
    }
    for (begin, end, stop) in [(0, 31, 31), (5, 9, 31), (30, 99, 31), (31, 99, 31), (9, 5, 31), (0, 31, 12)] {
        let mut seen = Vec::new();
        let scan = store.scan(begin..end, &mut |position, record| {
            assert_eq!(record, records[position as usize]);
            seen.push(position);
            if position + 1 >= stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        scan.expect("a scan works");
        assert_eq!(seen, (begin..end.min(31).min(stop)).collect::<Vec<_>>(), "{begin}..{end} up to {stop}");
    }
}
