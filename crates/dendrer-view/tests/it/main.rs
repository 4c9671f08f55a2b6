//! Answers as text: a question is asked of a small run, and the whole text is compared.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod backup;
mod bisect;
mod casebook;
mod cherrypick;
mod commit;
mod conflicts;
mod contract;
mod diff;
mod doctor;
mod export;
mod fork;
mod fsck;
mod gc;
mod help;
mod log;
mod made;
mod merge;
mod pack;
mod predicate;
mod rebase;
mod reduce;
mod replay;
mod restore;
mod runs;
mod show;
mod state;
mod suite;
mod verify;
mod why;

use dendrer::kernel::step::Start;
use dendrer::recorder::Fixed;
use dendrer::store::Shared;
use dendrer::{Repo, Trace};
use dendrer_object::delta::{Delta, Op};
use dendrer_object::{Digest, Intent, Pointer, RunName, Value, json};
use dendrer_testkit::{appending, memory_with_key, record, run_name};
use dendrer_view::answer::{Answer, ItemAnswer, Page, plain};
use dendrer_view::layout::lay;
use dendrer_view::problem::{Problem, ShownProblem as _};
use dendrer_view::text::TimeForm;

/// A page as narrow as a small terminal.
const NARROW: Page = Page {
    width: Some(44),
    full: false,
    times: TimeForm::Utc,
    accessible: false,
    ascii: false,
    sources: Vec::new(),
    is_usual: true,
};

/// A page for a screen reader, without times.
const HEARD: Page = Page {
    width: None,
    full: false,
    times: TimeForm::None,
    accessible: true,
    ascii: false,
    sources: Vec::new(),
    is_usual: true,
};

fn value(text: &str) -> Value {
    json::parse_door(text.as_bytes()).unwrap()
}

fn path(text: &str) -> Pointer {
    text.parse().unwrap()
}

/// The run of most tests: a risk that rises over 0.75 at tick 3.
fn risky() -> Shared {
    store_of("risky", &[0.5, 0.6, 0.8, 0.9])
}

fn store_of(run: &str, risks: &[f64]) -> Shared {
    let store = memory_with_key(7);
    add_run(&store, run, risks);
    store
}

fn add_run(store: &Shared, run: &str, risks: &[f64]) {
    let mut start = Start::new(run_name(run));
    start.goal = Some("stay calm".into());
    start.state = value(r#"{"notes":[],"risk":0.25}"#);
    let intents = (1..).zip(risks).map(|(tick, risk)| {
        let note = Value::from(format!("note {tick}"));
        let ops = vec![Op::set(path("/risk"), Value::from(*risk)), Op::append(path("/notes"), note)];
        let said = value(&format!(r#"{{"confidence":0.9,"description":"step {tick}"}}"#));
        let agent = if tick % 2 == 0 { "reader" } else { "writer" };
        Intent::new("observation.add".parse().unwrap(), agent).with("intent", said).with_delta(Delta(ops))
    });
    record(store, &start, intents);
}

fn trace(store: &Shared, run: &str) -> Trace {
    let run: RunName = run_name(run);
    Trace::open(store, &run).unwrap()
}

/// Opens a store to write runs at fixed times.
fn repo(store: &Shared) -> Repo {
    let number = dendrer::store::ReadLog::info(store).id.0[0];
    let repo = Repo::over(Box::new(store.clone()), appending(number)).unwrap();
    repo.with_environment(|| Box::new(Fixed::new("view", 100, 1)))
}

fn text(answer: &impl Answer, page: &Page) -> String {
    plain(&lay(answer.lines(page), page))
}

/// Returns the text after every item was taken.
fn last_text(answer: &mut impl ItemAnswer, page: &Page) -> String {
    let kept = plain(&lay(answer.kept_lines(page), page));
    kept + &plain(&lay(answer.last_lines(page), page))
}

/// A root for answers about no store.
const fn root() -> Digest {
    Digest([7; 32])
}

/// Returns an error as people read it.
fn error_text(error: impl Into<Problem>) -> String {
    let problem: Problem = error.into();
    problem.text(None)
}

/// Compares a text with the expected lines, which are indented by eight blanks.
#[track_caller]
fn check(found: &str, expected: &str) {
    let lines = expected.trim_start_matches('\n').trim_end().lines();
    let expected: Vec<&str> = lines.map(|line| line.get(8..).unwrap_or_default()).collect();
    assert_eq!(found.trim_end(), expected.join("\n"), "\n{found}");
}
