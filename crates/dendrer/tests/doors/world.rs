//! Runs that are equal but for their stage and their rules, in which proposals are asked about.

use std::cell::Cell;
use std::sync::Arc;

use dendrer::kernel::commitment::DelegationScope;
use dendrer::kernel::step::{Stage, Start};
use dendrer::lines::{Authors, LineOptions, LineRead};
use dendrer::pack::{self, Source};
use dendrer::recorder::{Fixed, Recorder};
use dendrer::repo::Repo;
use dendrer::store::{Memory, Shared};
use dendrer::trust::MemoryTrust;
use dendrer::Trace;
use dendrer_object::{Intent, Value};
use dendrer_testkit::{info, run_name};

use crate::draw::{self, PackKind, v};

pub const STAGES: [Stage; 4] = [Stage::Observe, Stage::Replay, Stage::Contracts, Stage::Full];

/// A store with runs of each stage, under the pack and under one that refuses nothing.
pub struct World {
    pub kind: PackKind,
    /// Whether its runs are children under a contract.
    pub is_child: bool,
    pub repo: Repo,
    pub pack: Source,
    pub open: Source,
    made: Cell<u64>,
}

/// Times of tests are after those of the machine, whose clock the repository reads.
const BEGIN: u64 = 4_000_000_000_000;

impl World {
    pub fn new(kind: PackKind, is_child: bool) -> World {
        let read = |text: String| {
            pack::read(text.as_bytes()).unwrap_or_else(|found| panic!("{found:?}: {text}"))
        };
        let repo = Repo::over(Box::new(Memory::new(info(1))), Arc::new(MemoryTrust::new())).unwrap();
        let world = World {
            kind,
            is_child,
            repo,
            pack: read(kind.text(true)),
            open: read(kind.text(false)),
            made: Cell::new(0),
        };
        for stage in STAGES {
            world.begin(&format!("base{stage}"), &world.pack, stage);
            if !is_child {
                world.begin(&format!("open{stage}"), &world.open, stage);
            }
        }
        world
    }

    /// Begins a run with the lines before a proposal.
    fn begin(&self, name: &str, source: &Source, stage: Stage) {
        let start = Start { stage: Some(stage), ..Start::new(run_name(name)) };
        let mut recorder = match self.is_child {
            false => Recorder::begin(self.store(), &source.bind(start).unwrap(), self.times()).unwrap(),
            true => {
                let parent = Start { stage: Some(Stage::Contracts), ..Start::new(run_name(&format!("{name}-parent"))) };
                let begun = source.bind(parent.clone()).unwrap();
                Recorder::begin(self.store(), &begun, self.times()).unwrap().commit().unwrap();
                let scope = v(r#"{"id":"D","gloss":"g","allowed":{"tools":["pay","look"]}}"#);
                let scope = DelegationScope::read(&scope).unwrap();
                let parent = self.repo.run(&parent.run).unwrap();
                self.repo.delegate(&parent, &scope, &start.run, Some(stage), false).unwrap();
                Recorder::resume(self.store(), &start.run, self.times()).unwrap()
            }
        };
        for line in draw::before(self.kind) {
            let outcome = recorder.propose(&self.intent(&line).unwrap()).unwrap();
            assert!(outcome.committed().is_some(), "stage {stage}: {line}: {outcome:?}");
        }
        recorder.commit().unwrap();
    }

    pub fn store(&self) -> &Shared {
        self.repo.writer().unwrap()
    }

    /// Times after all that were given so far.
    pub fn times(&self) -> Box<Fixed> {
        self.made.set(self.made.get() + 1);
        let made = self.made.get();
        Box::new(Fixed::new(&format!("w{made}"), BEGIN + made * 1000, 1))
    }

    /// A name that no run has yet.
    pub fn name(&self, word: &str) -> String {
        self.made.set(self.made.get() + 1);
        format!("{word}-{}", self.made.get())
    }

    pub fn trace(&self, name: &str) -> Trace {
        Trace::open(self.store(), &run_name(name)).unwrap()
    }

    pub fn resume(&self, name: &str) -> Recorder {
        Recorder::resume(self.store(), &run_name(name), self.times()).unwrap()
    }

    pub fn options(line: &Value) -> LineOptions {
        let authors = match line.get("author").and_then(Value::as_str) {
            Some("user") => Authors::User,
            Some("runtime") => Authors::Runtime,
            _ => Authors::Agent,
        };
        LineOptions { authors, ..LineOptions::default() }
    }

    /// The intent of a line; `None` if it is none.
    pub fn intent(&self, line: &Value) -> Option<Intent> {
        match World::options(line).read_value(line) {
            LineRead::Intent(intent) => Some(*intent),
            LineRead::Fault(..) => None,
        }
    }
}
