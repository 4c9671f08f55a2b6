//! Imports that were stopped at any byte go on by the same import, and end as one that was not stopped. Damaged lines are gaps.

use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicU64, Ordering};

use dendrer::Trace;
use dendrer::kernel::step::Start;
use dendrer::recorder::{Environment, Fixed};
use dendrer_object::{RunName, Value};
use dendrer_store::{Memory, Shared, StoreInfo};
use dendrer_wire::import::{self, ImportPlan};

use crate::chat;

/// A source that cannot be read beyond so many bytes in all.
struct Stopping {
    text: Cursor<Vec<u8>>,
    left: usize,
}

impl Read for Stopping {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(512).min(self.left);
        if most == 0 {
            return Err(io::Error::other("stopped"));
        }
        let count = self.text.read(&mut buffer[..most])?;
        self.left -= count;
        Ok(count)
    }
}

impl Seek for Stopping {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.text.seek(to)
    }
}

/// A conversation with two answers to one question, each of them long.
fn tree() -> String {
    let mut lines = vec![r#"{"id":"q","parent":null,"role":"user","content":"q"}"#.to_owned()];
    for branch in ["a", "b", "c"] {
        let mut parent = "q".to_owned();
        for n in 0..150 {
            let id = format!("{branch}{n}");
            let said = format!(r#""role":"assistant","content":"{id}","usage":{{"total_tokens":{n}}}"#);
            lines.push(format!(r#"{{"id":"{id}","parent":"{parent}",{said}}}"#));
            parent = id;
        }
    }
    lines.join("\n")
}

fn store() -> Shared {
    let key = dendrer_testkit::key(1);
    let info = StoreInfo::new(dendrer_testkit::store_id(1), key.verifier_key().clone());
    Shared::new(Box::new(Memory::new(info)))
}

fn surroundings() -> Box<dyn Environment> {
    // A clock that goes on from recorder to recorder.
    static NOW: AtomicU64 = AtomicU64::new(0);
    Box::new(Fixed::new("import", NOW.fetch_add(1_000_000, Ordering::Relaxed), 1))
}

fn plan(text: &str, run: &str) -> ImportPlan {
    import::plan(&mut Cursor::new(text), chat(), Start::new(run.parse().unwrap())).unwrap()
}

/// Records what can be read, and returns whether it was all.
fn record(store: &Shared, text: &str, plan: &ImportPlan, left: usize) -> bool {
    let mut source = Stopping { text: Cursor::new(text.into()), left };
    let run = import::record(store, &mut source, plan, surroundings(), &mut |_| {});
    run.is_ok() && import::record_branches(store, &mut source, plan, &surroundings).is_ok()
}

/// The contents of each tick of a run.
fn contents(store: &Shared, run: &str) -> Option<Vec<Value>> {
    let trace = Trace::open(store, &run.parse::<RunName>().unwrap()).ok()?;
    Some((0..=trace.tip()).map(|tick| trace.record(tick).unwrap().content()).collect())
}

#[test]
fn an_import_that_was_stopped_goes_on() {
    let text = tree();
    let plan = plan(&text, "r");
    let whole = store();
    assert!(record(&whole, &text, &plan, usize::MAX));
    let runs = ["r", "r+2", "r+3"];
    let expected = runs.map(|run| contents(&whole, run).unwrap());
    assert!(expected.iter().all(|ticks| ticks.len() > 151));
    let (mut stopped, mut unfinished) = (0, 0);
    for left in (100..text.len() * 6).step_by(1777) {
        let store = store();
        if record(&store, &text, &plan, left) {
            break;
        }
        stopped += 1;
        let trace = Trace::open(&store, &"r".parse().unwrap()).ok();
        let of = trace.and_then(|trace| trace.unfinished().unwrap().map(|found| (found.ticks, found.of)));
        unfinished += u32::from(of.is_some_and(|(ticks, of)| ticks < of && of == 151));
        // It is stopped once more, and goes on; behind the last item nothing is left to be done.
        if plan.check_new(&store, false).is_ok() {
            record(&store, &text, &plan, left / 2);
            assert!(record(&store, &text, &plan, usize::MAX), "{left}");
        }
        for (run, expected) in runs.iter().zip(&expected) {
            let made = contents(&store, run).unwrap();
            let other = made.iter().zip(expected).position(|(one, other)| one != other);
            assert_eq!((other, made.len()), (None, expected.len()), "{left} {run}");
        }
        assert_eq!(contents(&store, "r+4"), None);
        for run in runs {
            let trace = Trace::open(&store, &run.parse().unwrap()).unwrap();
            assert_eq!(trace.unfinished().unwrap(), None);
        }
        assert!(plan.check_new(&store, false).is_err(), "{left}");
    }
    assert!(stopped > 20 && unfinished > 3, "{stopped} {unfinished}");
}

#[test]
fn another_import_does_not_go_on_with_it() {
    let text = tree();
    let first = plan(&text, "r");
    let store = store();
    assert!(!record(&store, &text, &first, 30_000));
    for other in [text.replace("\"c149\"", "\"d149\""), text.replace("\"q\"}", "\"p\"}")] {
        assert_eq!(plan(&other, "r").check_new(&store, false).unwrap_err().code(), "E0111");
    }
    let goal = Start { goal: Some("g".into()), ..Start::new("r".parse().unwrap()) };
    let other = import::plan(&mut Cursor::new(&text), chat(), goal).unwrap();
    let told = import::record(&store, &mut Cursor::new(&text), &other, surroundings(), &mut |_| {});
    assert_eq!(told.unwrap_err().code(), "E0111");
}

#[test]
fn a_damaged_line_is_a_gap_with_its_number() {
    let line = |n: usize| format!(r#"{{"role":"user","content":"{n}"}}"#);
    let bad: [&[u8]; 5] = [&[0; 300], b"x", b"{\"role\":\"user\",\"con", b"\xff\xfe{}", b"}"];
    for (at, bad) in (0..5).flat_map(|at| bad.iter().map(move |bad| (at, bad))) {
        let mut lines: Vec<Vec<u8>> = (0..4).map(|n| line(n).into_bytes()).collect();
        lines.insert(at, bad.to_vec());
        let source = [lines.join(&b'\n'), b"\n\n".to_vec()].concat();
        let start = Start::new("r".parse().unwrap());
        let plan = import::plan(&mut Cursor::new(&source), chat(), start).unwrap();
        assert_eq!((plan.tally.ticks, plan.tally.gaps()), (5, 1), "{at} {bad:?}");
        let (tick, note) = &plan.tally.first_notes[0];
        assert_eq!((*tick, note.path.clone()), (at as u64 + 1, format!("/{at}")));
        assert!(note.message.starts_with(&format!("line {} cannot be read", at + 1)), "{}", note.message);
        let sha256 = dendrer_object::Digest::of(&source);
        assert_eq!((plan.sha256, plan.bytes), (sha256, source.len() as u64));
        let store = store();
        import::record(&store, &mut Cursor::new(&source), &plan, surroundings(), &mut |_| {}).unwrap();
        let said: Vec<Value> = contents(&store, "r").unwrap().split_off(1);
        let said = said.iter().map(|tick| tick.get("intent").and_then(|words| words.get("content")).cloned());
        let sound = (0..4).map(|n| Some(Value::from(n.to_string())));
        let mut expected: Vec<Option<Value>> = sound.collect();
        expected.insert(at, Some(Value::Null));
        assert_eq!(said.collect::<Vec<_>>(), expected);
    }
    // A text with a line of JSON in it is no trace.
    let text = "words\nmore words\n{\"role\":\"user\",\"content\":\"x\"}\nwords\n";
    let start = Start::new("r".parse().unwrap());
    assert!(import::plan(&mut Cursor::new(text), chat(), start).is_err());
}
