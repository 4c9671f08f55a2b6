//! Random histories against a plain list.

use dendrer_object::record::Kind;
use dendrer_object::{Pointer, Record, Value};
use dendrer_store::conformance::{Scribe, check_holds, info, key, noise};
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, Memory, Options, VerifyOptions};
use proptest::prelude::*;

use crate::cases;

#[derive(Debug, Clone)]
enum Act {
    Begin,
    Fork(usize),
    Step(usize, usize),
    Refuse(usize),
    End(usize),
    Large(usize, u16, u8),
    Stale(usize),
    Erase(usize),
    Commit,
    Sync,
    Reopen,
    Index,
    Sign,
}

fn act() -> impl Strategy<Value = Act> {
    let run = 0usize..4;
    prop_oneof![
        2 => Just(Act::Begin),
        1 => (0usize..40).prop_map(Act::Fork),
        6 => (run.clone(), 1usize..4).prop_map(|(run, count)| Act::Step(run, count)),
        1 => run.clone().prop_map(Act::Refuse),
        1 => run.clone().prop_map(Act::End),
        2 => (run.clone(), 500u16..6000, 0u8..3).prop_map(|(run, size, seed)| Act::Large(run, size, seed)),
        1 => run.prop_map(Act::Stale),
        1 => (0usize..40).prop_map(Act::Erase),
        4 => Just(Act::Commit),
        1 => Just(Act::Sync),
        2 => Just(Act::Reopen),
        1 => Just(Act::Index),
        1 => Just(Act::Sign),
    ]
}

/// The oracle: what was committed, as a list, and which runs there are.
#[derive(Default)]
struct Model {
    records: Vec<Record>,
    pending: Vec<Record>,
    runs: Vec<(String, bool)>,
    scribe: Scribe,
}

impl Model {
    fn run(&self, number: usize) -> Option<String> {
        let open: Vec<_> = self.runs.iter().filter(|(_, ended)| !ended).collect();
        Some(open.get(number % open.len().max(1))?.0.clone())
    }

    fn act(&mut self, act: &Act) {
        let new = format!("run-{}", self.runs.len());
        match act {
            Act::Begin => {
                self.pending.push(self.scribe.begin(&new));
                self.runs.push((new, false));
            }
            Act::Fork(at) => {
                let chained = |record: &&Record| record.header().tick.is_some();
                let parents: Vec<_> = self.records.iter().filter(chained).collect();
                let Some(parent) = parents.get(at % parents.len().max(1)) else { return };
                let tick = parent.header().tick.unwrap();
                let fork = self.scribe.fork(&new, tick, parent.id());
                self.pending.push(fork);
                self.runs.push((new, false));
            }
            Act::Step(run, count) => {
                let Some(run) = self.run(*run) else { return };
                self.pending.extend((0..*count).map(|_| self.scribe.step(&run)));
            }
            Act::Refuse(run) => {
                let Some(run) = self.run(*run) else { return };
                self.pending.push(self.scribe.beside(Kind::Refusal, &run, Value::object()));
            }
            Act::End(run) => {
                let Some(run) = self.run(*run) else { return };
                self.pending.push(self.scribe.beside(Kind::End, &run, Value::object()));
                self.runs.iter_mut().find(|(name, _)| *name == run).unwrap().1 = true;
            }
            Act::Large(run, size, seed) => {
                let Some(run) = self.run(*run) else { return };
                let text = noise((*size).into(), (*seed).into());
                let content = Value::record([("intent", Value::record([("text", Value::from(text))]))]);
                self.pending.push(self.scribe.transition(&run, content));
            }
            _ => {}
        }
    }
}

fn pointer(text: &str) -> Pointer {
    text.parse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(60), ..ProptestConfig::default() })]

    #[test]
    fn a_store_is_a_list(acts in proptest::collection::vec(act(), 1..60), segment in 500u64..9000) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store");
        let options = Options { segment_size: segment, uncovered_max: 20, ..Options::untagged() };
        let mut store = Embedded::create(&path, info(), options.clone()).unwrap();
        let mut memory = Memory::new(info());
        let mut model = Model::default();
        for act in &acts {
            model.act(act);
            match act {
                Act::Stale(run) => {
                    let Some(run) = model.run(*run) else { continue };
                    let mut scribe = model.scribe.clone();
                    let (tick, id) = scribe.head(&run);
                    scribe.set_head(&run, tick + 1, id);
                    let late = [scribe.step(&run)];
                    let (disk, plain) = (store.append(&late).unwrap_err(), memory.append(&late).unwrap_err());
                    prop_assert_eq!(disk.to_string(), plain.to_string());
                }
                Act::Erase(at) if !model.records.is_empty() && model.pending.is_empty() => {
                    let at = at % model.records.len();
                    let places = vec![pointer("/intent")];
                    let erase = model.scribe.apart(Kind::Erase, Value::record([("at", Value::from(at as u64))]));
                    store.erase(&erase, &[(at as u64, places.clone())]).unwrap();
                    memory.erase(&erase, &[(at as u64, places.clone())]).unwrap();
                    model.records[at] = model.records[at].without(&places);
                    model.records.push(erase);
                }
                Act::Commit if !model.pending.is_empty() => {
                    let group = std::mem::take(&mut model.pending);
                    let begin = model.records.len() as u64;
                    let positions = store.append(&group).unwrap();
                    prop_assert_eq!(&positions, &(begin..begin + group.len() as u64));
                    prop_assert_eq!(memory.append(&group).unwrap(), positions);
                    model.records.extend(group);
                }
                Act::Sync => {
                    store.sync().unwrap();
                }
                Act::Reopen => {
                    store.close().unwrap();
                    store = Embedded::open(&path, options.clone()).unwrap();
                }
                Act::Index => store.update_index().unwrap(),
                Act::Sign => {
                    let note = store.sign_checkpoint(&key()).unwrap();
                    prop_assert_eq!(memory.sign_checkpoint(&key()).unwrap(), note);
                }
                _ => {}
            }
        }
        check_holds(&store, &model.records);
        check_holds(&memory, &model.records);
        let report = store.verify(&VerifyOptions { index: true, ..VerifyOptions::default() }).unwrap();
        prop_assert_eq!(report.findings, vec![]);
        drop(store);
        let reader = Embedded::open(&path, Options::read()).unwrap();
        prop_assert!(reader.trouble().is_none());
        check_holds(&reader, &model.records);
        println!("deep: model 1");
    }
}
