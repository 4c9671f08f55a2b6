//! Kills and power cuts between append, sync, tag, map and signature, with several writers of one log.
//!
//! Each scenario runs once on a disk in memory that records every call. The disk is then made as a kill or a power cut at some
//! moment leaves it, and the owner goes on there: what was acknowledged is there, the log verifies, no record of a stranger is
//! signed, and the owner can always write and sign again.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]
#![expect(clippy::print_stdout, reason = "figures with --nocapture")]

use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

use dendrer::care::tags;
use dendrer::environment::Fixed;
use dendrer::kernel::step::Start;
use dendrer::object::note::{Checkpoint, SigningKey, VerifierKey};
use dendrer::object::{Intent, StoreId};
use dendrer::record::recorder::{Recorder, begin_log};
use dendrer::repo::{Repo, Signed};
use dendrer::store::faulty::{Crash, Faulty};
use dendrer::store::prelude::*;
use dendrer::store::{Embedded, LogWriter, Options, Shared, StoreInfo, TreeHead, WriterSecret};
use dendrer::trust::{MemoryTrust, SigningTurn, Trust, TrustError, VaultKey};
use dendrer::verify::facts::NoteCode;
use dendrer::verify::{self, VerifyReport, VerifyTerms, VerifyVerdict};
use dendrer_testkit::{info, key, run_name};

/// The directory of the log on the disk in memory.
const DIR: &str = "/work/log";

/// A machine: its keys, and each head that it remembered, with the moment of the disk.
#[derive(Debug)]
struct Home {
    trust: MemoryTrust,
    disk: Faulty,
    heads: Mutex<Vec<(usize, TreeHead)>>,
}

struct HomeTurn<'h> {
    home: &'h Home,
    turn: Box<dyn SigningTurn + 'h>,
}

impl SigningTurn for HomeTurn<'_> {
    fn remember(&mut self, head: TreeHead) -> Result<(), TrustError> {
        self.home.heads.lock().unwrap().push((self.home.disk.moments(), head));
        self.turn.remember(head)
    }
}

impl Trust for Home {
    fn key(&self, log: &StoreInfo) -> Result<Option<Arc<SigningKey>>, TrustError> {
        self.trust.key(log)
    }

    fn writer(&self, log: &StoreInfo) -> Result<Option<Arc<WriterSecret>>, TrustError> {
        self.trust.writer(log)
    }

    fn own_key(&self, store: StoreId) -> Result<Option<VerifierKey>, TrustError> {
        self.trust.own_key(store)
    }

    fn keep_key(&self, store: StoreId, key: &Arc<SigningKey>) -> Result<(), TrustError> {
        self.trust.keep_key(store, key)
    }

    fn drop_key(&self, store: StoreId) {
        self.trust.drop_key(store);
    }

    fn head(&self, store: StoreId) -> Result<Option<TreeHead>, TrustError> {
        self.trust.head(store)
    }

    fn vault_key(&self, store: StoreId) -> Result<Option<VaultKey>, TrustError> {
        self.trust.vault_key(store)
    }

    fn keep_vault_key(&self, store: StoreId, key: &VaultKey) -> Result<(), TrustError> {
        self.trust.keep_vault_key(store, key)
    }

    fn destroy_vault_key(&self, store: StoreId) -> Result<(), TrustError> {
        self.trust.destroy_vault_key(store)
    }

    fn turn(&self, store: StoreId) -> Result<Box<dyn SigningTurn + '_>, TrustError> {
        Ok(Box::new(HomeTurn { home: self, turn: self.trust.turn(store)? }))
    }
}

impl Home {
    /// A machine with the key of the log.
    fn owner(disk: &Faulty) -> Arc<Home> {
        let home = Home { trust: MemoryTrust::new(), disk: disk.clone(), heads: Mutex::default() };
        home.trust.keep_key(info(7).id, &Arc::new(key(7))).unwrap();
        Arc::new(home)
    }

    /// A machine with the secret of a writer.
    fn writer(disk: &Faulty) -> Arc<Home> {
        let home = Home { trust: MemoryTrust::new(), disk: disk.clone(), heads: Mutex::default() };
        home.trust.keep_writer(info(7).id, WriterSecret::of(&key(7)));
        Arc::new(home)
    }

    /// What an owner's machine knew at a moment.
    fn at(&self, moment: usize) -> (Arc<dyn Trust>, Option<TreeHead>) {
        let trust = MemoryTrust::new();
        trust.keep_key(info(7).id, &Arc::new(key(7))).unwrap();
        let heads = self.heads.lock().unwrap();
        let head = heads.iter().filter(|(at, _)| *at <= moment).map(|(_, head)| *head).next_back();
        head.into_iter().for_each(|head| trust.turn(info(7).id).unwrap().remember(head).unwrap());
        (Arc::new(trust), head)
    }
}

fn options(disk: &Faulty) -> Options {
    Options { disk: Arc::new(disk.clone()), index: false, segment_size: 6000, ..Options::untagged() }
}

fn embedded(disk: &Faulty) -> Embedded {
    Embedded::open(Path::new(DIR), options(disk)).unwrap()
}

fn open(disk: &Faulty, trust: Arc<dyn Trust>) -> Result<Repo, dendrer::Error> {
    let store = embedded(disk);
    let key = trust.key(store.info()).unwrap();
    Repo::over(Box::new(store.with_key(key)), trust)
}

/// The points at which a scenario was stopped, and those of them with a group of a stranger.
#[derive(Debug, Default)]
struct Tried {
    points: usize,
    untagged: usize,
}

/// A log on a disk, and what was acknowledged at which moment.
struct World {
    disk: Faulty,
    acknowledged: Vec<(usize, TreeHead)>,
    /// The records of a stranger, and the moment after which they are in the log.
    strangers: Option<(usize, Range<u64>)>,
}

fn intent() -> Intent {
    Intent::new("plan.update".parse().unwrap(), "agent")
}

/// Appends to a run, and begins it if it is new.
fn append(repo: &Repo, run: &str) -> Result<(), dendrer::Error> {
    let mut recorder = match repo.run(&run_name(run)) {
        Ok(_) => repo.recorder(&run_name(run))?,
        Err(_) => repo.begin(&Start::new(run_name(run)))?,
    };
    for _ in 0..2 {
        recorder.propose(&intent()).unwrap();
    }
    recorder.commit().map(drop)
}

impl World {
    /// A log that its owner began and signed.
    fn new() -> (World, Arc<Home>) {
        let disk = Faulty::new();
        let home = Home::owner(&disk);
        let mut store = Embedded::create(Path::new(DIR), info(7), options(&disk)).unwrap();
        store.set_writer(LogWriter::of(&key(7)));
        begin_log(&mut store, &mut Fixed::new("kills", 0, 1)).unwrap();
        drop(store);
        let mut world = World { disk, acknowledged: Vec::new(), strangers: None };
        world.append(&home, "r");
        world.sign(&home);
        (world, home)
    }

    fn acknowledge(&mut self) {
        self.acknowledged.push((self.disk.moments(), embedded(&self.disk).tree()));
    }

    /// Each call opens the log, as each command does.
    fn append(&mut self, home: &Arc<Home>, run: &str) {
        append(&open(&self.disk, home.clone()).unwrap(), run).unwrap();
        self.acknowledge();
    }

    /// Signs the log, with a map.
    fn sign(&mut self, home: &Arc<Home>) {
        assert!(matches!(open(&self.disk, home.clone()).unwrap().sign_with_map(), Ok(Signed::UpTo { .. })));
        self.acknowledge();
    }

    /// Another program without the secret appends, past everything that refuses it.
    fn intrude(&mut self, run: &str) {
        let begin = embedded(&self.disk).tree().size;
        let store = Shared::new(Box::new(embedded(&self.disk)));
        let mut recorder =
            Recorder::resume(&store, &run_name(run), Box::new(Fixed::new("stranger", 9, 1))).unwrap();
        recorder.propose(&intent()).unwrap();
        recorder.commit().unwrap();
        self.strangers = Some((self.disk.moments(), begin..begin + 1));
    }

    /// Makes the disk as it was left at each of some moments, and goes on there as the owner.
    fn check(&self, owner: &Home, from: usize, count: usize) -> Tried {
        let moments = self.disk.moments();
        let step = ((moments - from) * 4).div_ceil(count).max(1);
        let mut tried = Tried::default();
        for (at, (moment, crash)) in (from..=moments)
            .flat_map(|moment| {
                let seed = moment as u64;
                let crashes = [Crash::Process, Crash::Everything, Crash::Random(seed), Crash::Random(!seed)];
                crashes.map(|crash| (moment, crash))
            })
            .enumerate()
        {
            if at % step == 0 {
                tried.points += 1;
                tried.untagged += usize::from(self.check_at(owner, moment, crash));
            }
        }
        assert!(tried.points >= count / 2, "{tried:?}");
        tried
    }

    /// Returns whether a group of a stranger was in the log and not adopted.
    fn check_at(&self, owner: &Home, moment: usize, crash: Crash) -> bool {
        let what = format!("moment {moment}, {crash:?}");
        let image = || self.disk.image(moment, crash);
        let (trust, head) = owner.at(moment);
        let disk = image();
        let store = embedded(&disk);
        assert!(store.trouble().is_none(), "{what}: {:?}", store.trouble());
        for (_, known) in self.acknowledged.iter().filter(|(at, _)| *at <= moment) {
            assert!(store.extends(known.size, known.root).unwrap(), "{what}: {known:?} was acknowledged");
        }
        check_honest(&disk, head, &what);
        let mut owned = embedded(&disk);
        owned.set_writer(LogWriter::of(&key(7)));
        let untagged = owned.untagged().unwrap().unwrap();
        self.check_signed(&owned, &what);
        drop((store, owned));
        let repo = open(&disk, Arc::clone(&trust)).unwrap_or_else(|error| panic!("{what}: {error}"));
        if untagged.is_empty() {
            go_on(&repo, &what);
        } else {
            let strangers = self.strangers.as_ref().expect("a stranger has written");
            assert_eq!(untagged, [strangers.1.clone()], "{what}");
            assert_eq!(append(&repo, "r").unwrap_err().code(), "E0814", "{what}");
            assert_eq!(repo.sign().unwrap_err().code(), "E0814", "{what}");
            let adopted = tags::adopt(&repo, untagged[0].end, "looked at").unwrap();
            assert_eq!(adopted.untagged.records, 1, "{what}");
            go_on(&repo, &what);
            set_aside(&image(), owner.at(moment), &what);
        }
        drop(repo);
        let report = check_honest(&disk, trust.head(info(7).id).unwrap(), &what);
        assert!(report.whole.is_complete(), "{what}: {:?}", report.whole);
        let adopted = report.notes.iter().any(|note| note.code == NoteCode::Adopted);
        let intruded = self.strangers.as_ref().is_some_and(|(_, records)| records.end <= report.log.0);
        assert!(adopted || !intruded || untagged.is_empty(), "{what}: signed without a record of it");
        !untagged.is_empty()
    }

    /// No checkpoint covers a record of a stranger, unless the owner adopted it.
    fn check_signed(&self, store: &Embedded, what: &str) {
        let Some((_, strangers)) = &self.strangers else { return };
        let note = store.checkpoint().unwrap().unwrap();
        let signed = Checkpoint::parse(note.text()).unwrap().size();
        let mut adopted = false;
        store
            .scan(0..store.tree().size, &mut |position, record| {
                let purpose = record.body().value("/purpose");
                adopted |=
                    position >= strangers.end && purpose.is_some_and(|purpose| purpose == "adopt".into());
                std::ops::ControlFlow::Continue(())
            })
            .unwrap();
        assert!(
            signed <= strangers.start || adopted,
            "{what}: {signed} records are signed, a stranger's among them"
        );
    }
}

/// Appends and signs as the owner.
fn go_on(repo: &Repo, what: &str) {
    append(repo, "r").unwrap_or_else(|error| panic!("{what}: {error}"));
    let signed = repo.sign_with_map();
    assert!(matches!(signed, Ok(Signed::UpTo { .. })), "{what}: {signed:?}");
}

/// Moves the groups of a stranger out of the log, and goes on.
fn set_aside(disk: &Faulty, (trust, head): (Arc<dyn Trust>, Option<TreeHead>), what: &str) {
    let mut store = embedded(disk);
    store.set_writer(LogWriter::of(&key(7)));
    match store.set_aside(Some(Path::new("/work/aside")), head) {
        Ok(moved) => assert!(moved.is_some(), "{what}"),
        // The record of an adoption follows, which was stopped before it was signed: it is adopted again.
        Err(error) => {
            let records = store.tree().size;
            let last = store.get(records - 1).unwrap().unwrap();
            let is_adopted = last.body().value("/purpose") == Some("adopt".into());
            assert!(error.code() == "E0815" && is_adopted, "{what}: {error}");
            return;
        }
    }
    drop(store);
    go_on(&open(disk, trust).unwrap(), what);
    let report = check_honest(disk, head, what);
    assert!(report.notes.iter().all(|note| note.code != NoteCode::Adopted), "{what}");
}

/// An honest log is INTACT, whatever was not finished.
fn check_honest(disk: &Faulty, head: Option<TreeHead>, what: &str) -> VerifyReport {
    let pinned = head.into_iter().map(|head| (head.size, head.root)).collect();
    let terms = VerifyTerms { pinned, keys: vec![info(7).key], ..VerifyTerms::default() };
    let report = verify::store(&Shared::new(Box::new(embedded(disk))), &terms).unwrap();
    assert_eq!(report.verdict, VerifyVerdict::Intact, "{what}: {:?}", report.findings);
    report
}

/// How many points each scenario is stopped at.
const POINTS: usize = 60;

#[test]
fn a_writer_with_the_secret_beside_the_owner_loses_nothing() {
    let (mut world, owner) = World::new();
    let writer = Home::writer(&world.disk);
    let from = world.disk.moments();
    for _ in 0..2 {
        world.append(&writer, "r");
        world.append(&owner, "s");
        world.append(&writer, "s");
        world.sign(&owner);
    }
    // What the writer cannot do: sign.
    let repo = open(&world.disk, writer.clone()).unwrap();
    assert!(matches!(repo.sign_with_map(), Ok(Signed::NoKey)));
    drop(repo);
    println!("{:?}", world.check(&owner, from, POINTS));
}

#[test]
fn a_stranger_is_never_signed_and_never_stops_the_owner() {
    let (mut world, owner) = World::new();
    world.append(&owner, "r");
    let from = world.disk.moments();
    // An honest program without key and secret is refused before it writes.
    let keyless: Arc<dyn Trust> = Arc::new(MemoryTrust::new());
    let before = world.disk.files();
    let refused = append(&open(&world.disk, keyless).unwrap(), "r").unwrap_err();
    assert_eq!(refused.code(), "E0804", "{refused}");
    assert_eq!(world.disk.files(), before);
    world.intrude("r");
    // A writer with the secret goes on behind it no more than the owner does.
    let writer = Home::writer(&world.disk);
    assert_eq!(append(&open(&world.disk, writer).unwrap(), "r").unwrap_err().code(), "E0814");
    let repo = open(&world.disk, owner.clone()).unwrap();
    let to = tags::list(&repo).unwrap().untagged.to;
    tags::adopt(&repo, to, "looked at").unwrap();
    drop(repo);
    world.acknowledge();
    world.append(&owner, "r");
    world.sign(&owner);
    let tried = world.check(&owner, from, POINTS);
    assert!(tried.untagged > POINTS / 10, "{tried:?}");
    println!("{tried:?}");
}

#[test]
fn two_machines_that_share_a_store_are_one_history() {
    let (mut world, first) = World::new();
    let second = Home::owner(&world.disk);
    let from = world.disk.moments();
    for turn in 0..4 {
        let (one, other) = if turn % 2 == 0 { (&first, &second) } else { (&second, &first) };
        world.append(one, "r");
        world.append(other, "s");
        world.sign(one);
    }
    for owner in [first, second] {
        println!("{:?}", world.check(&owner, from, POINTS));
    }
}

#[test]
fn a_copy_that_was_put_back_goes_on_where_it_was_not_signed_beyond() {
    let (mut world, owner) = World::new();
    world.append(&owner, "r");
    let copied = Faulty::with_files(world.disk.files());
    world.append(&owner, "r");
    world.sign(&owner);
    // This machine has signed more: the copy would be a second history.
    let refused = open(&copied, owner.clone()).err().map(|error| error.code());
    assert_eq!(refused.map(|code| code.to_string()).as_deref(), Some("E0307"));
    // Another machine with the key has not, and the copy goes on there.
    let there = Home::owner(&copied);
    let tree = embedded(&copied).tree();
    let mut copy = World { disk: copied, acknowledged: vec![(0, tree)], strangers: None };
    let from = copy.disk.moments();
    for _ in 0..2 {
        copy.append(&there, "r");
        copy.sign(&there);
    }
    println!("{:?}", copy.check(&there, from, POINTS));
}
