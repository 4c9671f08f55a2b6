//! Runs that are equal but for their stage and their rules, in which proposals are asked about.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use dendrer::Trace;
use dendrer::kernel::commitment::DelegationScope;
use dendrer::kernel::step::{Stage, Start};
use dendrer::lines::{Authors, LineOptions, LineRead};
use dendrer::pack::{self, Source};
use dendrer::recorder::{Fixed, Recorder};
use dendrer::repo::Repo;
use dendrer::store::{Memory, Shared};
use dendrer_object::{Intent, Value};
use dendrer_testkit::{appending, info, run_name};

use crate::draw::{self, PackKind, v};

pub(crate) const STAGES: [Stage; 4] = [Stage::Observe, Stage::Replay, Stage::Contracts, Stage::Full];

/// A store with runs of each stage, under the pack and under one that refuses nothing.
pub(crate) struct World {
    pub(crate) kind: PackKind,
    /// Whether its runs are children under a contract.
    pub(crate) is_child: bool,
    pub(crate) repo: Repo,
    pub(crate) pack: Source,
    pub(crate) open: Source,
    made: Cell<u64>,
    /// Recorders of runs of each stage, by the name of the run.
    kept: RefCell<BTreeMap<String, Recorder>>,
    traces: RefCell<BTreeMap<String, Rc<Trace>>>,
}

/// Times of tests are after those of the machine, whose clock the repository reads.
const BEGIN: u64 = 4_000_000_000_000;

impl World {
    pub(crate) fn new(kind: PackKind, is_child: bool) -> World {
        let read =
            |text: String| pack::read(text.as_bytes()).unwrap_or_else(|found| panic!("{found:?}: {text}"));
        let repo = Repo::over(Box::new(Memory::new(info(1))), appending(1)).unwrap();
        let world = World {
            kind,
            is_child,
            repo,
            pack: read(kind.text(true)),
            open: read(kind.text(false)),
            made: Cell::new(0),
            kept: RefCell::default(),
            traces: RefCell::default(),
        };
        for stage in STAGES {
            world.begin(&format!("base{stage}"), &world.pack, stage, false);
            if stage == Stage::Observe || stage == Stage::Contracts {
                world.begin(&format!("free{stage}"), &world.pack, stage, true);
            }
            if !is_child {
                world.begin(&format!("open{stage}"), &world.open, stage, false);
            }
        }
        world
    }

    /// Begins a run with the lines before a proposal.
    fn begin(&self, name: &str, source: &Source, stage: Stage, free: bool) {
        let start = Start { stage: Some(stage), ..Start::new(run_name(name)) };
        let mut recorder = match self.is_child {
            false => Recorder::begin(self.store(), &source.bind(start).unwrap(), self.times()).unwrap(),
            true => {
                let parent = Start {
                    stage: Some(Stage::Contracts),
                    ..Start::new(run_name(&format!("{name}-parent")))
                };
                let begun = source.bind(parent.clone()).unwrap();
                Recorder::begin(self.store(), &begun, self.times()).unwrap().commit().unwrap();
                let scope = v(r#"{"id":"D","gloss":"g","allowed":{"tools":["pay","look"]}}"#);
                let scope = DelegationScope::read(&scope).unwrap();
                let parent = self.repo.run(&parent.run).unwrap();
                self.repo.delegate(&parent, &scope, &start.run, Some(stage), false).unwrap();
                Recorder::resume(self.store(), &start.run, self.times()).unwrap()
            }
        };
        for line in draw::before(self.kind, free) {
            let outcome = recorder.propose(&self.intent(&line).unwrap()).unwrap();
            assert!(outcome.committed().is_some(), "stage {stage}: {line}: {outcome:?}");
        }
        recorder.commit().unwrap();
    }

    pub(crate) fn store(&self) -> &Shared {
        self.repo.writer().unwrap()
    }

    /// Times after all that were given so far.
    pub(crate) fn times(&self) -> Box<Fixed> {
        self.made.set(self.made.get() + 1);
        let made = self.made.get();
        Box::new(Fixed::new(&format!("w{made}"), BEGIN + made * 1000, 1))
    }

    /// A name that no run has yet.
    pub(crate) fn name(&self, word: &str) -> String {
        self.made.set(self.made.get() + 1);
        format!("{word}-{}", self.made.get())
    }

    pub(crate) fn trace(&self, name: &str) -> Trace {
        Trace::open(self.store(), &run_name(name)).unwrap()
    }

    /// The trace of a run that gets no more lines.
    pub(crate) fn fixed(&self, name: &str) -> Rc<Trace> {
        let mut traces = self.traces.borrow_mut();
        Rc::clone(traces.entry(name.to_owned()).or_insert_with(|| Rc::new(self.trace(name))))
    }

    /// Asks a recorder of a run that is kept as it is; `make` makes the run if there is none of the name yet.
    pub(crate) fn with<T>(
        &self,
        name: &str,
        make: impl FnOnce(&World),
        ask: impl FnOnce(&mut Recorder) -> T,
    ) -> T {
        if !self.kept.borrow().contains_key(name) {
            make(self);
            self.kept.borrow_mut().insert(name.to_owned(), self.resume(name));
        }
        let mut kept = self.kept.borrow_mut();
        let recorder = kept.get_mut(name).unwrap();
        let found = ask(recorder);
        recorder.discard();
        found
    }

    pub(crate) fn resume(&self, name: &str) -> Recorder {
        Recorder::resume(self.store(), &run_name(name), self.times()).unwrap()
    }

    pub(crate) fn options(line: &Value) -> LineOptions {
        let authors = match line.get("author").and_then(Value::as_str) {
            Some("user") => Authors::User,
            Some("runtime") => Authors::Runtime,
            _ => Authors::Agent,
        };
        LineOptions { authors, ..LineOptions::default() }
    }

    /// The intent of a line; `None` if it is none.
    pub(crate) fn intent(&self, line: &Value) -> Option<Intent> {
        match World::options(line).read_value(line) {
            LineRead::Intent(intent) => Some(*intent),
            LineRead::Fault(..) => None,
        }
    }
}
