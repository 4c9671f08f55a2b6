//! Published runs of real agents, asked through the program by somebody who wrote nothing but a pack.
//!
//! Every run of the corpus is imported, reduced under the pack of its domain (`examples/packs`), and asked every
//! question whose answer a linear scan by another program found: 87 runs, 1,066 questions. Each is asked by the name that the
//! pack gives it, among all, and in its text, with `--holds`. The states in between are held against published hashes, so
//! that an answer cannot be right by accident.

mod answers;
mod chain;
mod commitments;
mod damaged;
mod data;
mod generic;
mod shown;
mod teams;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use answers::Answer;
use data::{Case, Domain, Run, corpus};
use dendrer_object::Value;

use crate::support::Place;

/// How many questions share one that is asked alone, too. It divides no number of predicates of a pack, so that not the
/// same ones come up on every run.
const ALONE_EVERY: usize = 13;

/// What a question was answered with, by the way it was asked.
type Answers = Vec<(&'static str, Result<Answer, String>)>;

/// What came out for one domain.
#[derive(Default)]
struct Tally {
    runs: usize,
    states: usize,
    /// Equal answers by class of onset.
    equal: BTreeMap<String, usize>,
    /// Questions whose predicate recovers on the run.
    recovering: usize,
    /// Questions that were asked alone, too.
    alone: usize,
    /// Onsets that a person has judged.
    audited: usize,
    wrong: String,
}

/// Says something whether or not output is captured.
fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn check(domain: Domain, runs: usize, cases: usize) {
    let Some(corpus) = corpus() else { return };
    let found = corpus.runs(domain);
    assert_eq!(found.len(), runs, "runs of {domain:?}");
    let next = AtomicUsize::new(0);
    let tally = Mutex::new(Tally::default());
    let threads = std::thread::available_parallelism().map_or(2, usize::from).min(4);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(run) = found.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = std::panic::catch_unwind(|| check_run(domain, run));
                    let mut tally = tally.lock().unwrap();
                    match result {
                        Ok(one) => tally.add(one),
                        Err(_) => {
                            let _ = writeln!(tally.wrong, "{}: the check did not come to its end", run.file);
                        }
                    }
                }
            });
        }
    });
    let tally = tally.into_inner().unwrap();
    let equal: usize = tally.equal.values().sum();
    let classes: Vec<String> = tally.equal.iter().map(|(class, count)| format!("{class} {count}")).collect();
    say(&format!(
        "{domain:?}: {} runs; {} states equal; {equal} of {cases} answers equal by name and by text ({}); {} recover, {} asked alone too, {} audited\n",
        tally.runs,
        tally.states,
        classes.join(", "),
        tally.recovering,
        tally.alone,
        tally.audited
    ));
    assert!(tally.wrong.is_empty(), "{}", tally.wrong);
    assert_eq!((tally.runs, equal), (runs, cases), "no run and no question may be left out");
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.runs += other.runs;
        self.states += other.states;
        self.recovering += other.recovering;
        self.alone += other.alone;
        self.audited += other.audited;
        for (class, count) in other.equal {
            *self.equal.entry(class).or_default() += count;
        }
        self.wrong.push_str(&other.wrong);
    }
}

/// Imports a file, and reduces it under the pack of a domain. Returns what the program says of the reduction.
fn import_file(place: &Place, domain: Domain, file: &Path, s0: Option<Vec<u8>>) -> Result<Value, String> {
    import_as(place, domain, file, s0, ["source", "run"])
}

/// As [`import_file`], with the names of the run as it is imported and as it is reduced.
fn import_as(
    place: &Place,
    domain: Domain,
    file: &Path,
    s0: Option<Vec<u8>>,
    [source, run]: [&str; 2],
) -> Result<Value, String> {
    let mut args = vec!["import", file.to_str().unwrap(), "--run", source, "-q"];
    // A password is what these runs are about, and a rule of their pack reads it.
    if std::fs::read(file).unwrap().windows(15).any(|part| part == b"update_password") {
        args.extend(["--redact", "none"]);
    }
    let ran = place.run(&args);
    if ran.code != 0 {
        return Err(format!("import with exit code {}: {}", ran.code, ran.stderr));
    }
    let pack = domain.pack();
    let mut args = vec!["reduce", source, "--pack", pack.to_str().unwrap(), "--as", run];
    if let Some(s0) = s0 {
        std::fs::write(place.path().join("s0.json"), s0).unwrap();
        args.extend(["--state", "s0.json"]);
    }
    let (code, reduced) = place.json(&args);
    if code == 0 { Ok(reduced) } else { Err(format!("reduced with exit code {code}: {reduced}")) }
}

/// Imports a run, and reduces it under the pack of its domain.
fn import(place: &Place, domain: Domain, run: &Run, s0: Option<Vec<u8>>) -> Result<(), String> {
    let reduced =
        import_file(place, domain, &run.path(), s0).map_err(|why| format!("{}: {why}", run.file))?;
    let errors = reduced.get("errors").map(ToString::to_string);
    let whole =
        errors.as_deref() == Some("[]") && reduced.get("ticks").and_then(|n| n.as_u64()) == Some(run.n);
    if whole { Ok(()) } else { Err(format!("{}: {reduced}", run.file)) }
}

/// Imports a run, reduces it under the pack of its domain, and compares every state and every answer.
fn check_run(domain: Domain, run: &Run) -> Tally {
    let place = Place::with_store();
    let mut tally = Tally { runs: 1, ..Tally::default() };
    if let Err(why) = import(&place, domain, run, domain.s0(run)) {
        let _ = writeln!(tally.wrong, "{why}");
        return tally;
    }
    let pack = domain.pack();
    check_states(&place, run, &mut tally);
    let mut named = answers::ask_all(&place, pack.to_str().unwrap(), run.n);
    let texts: Vec<String> = run.cases.iter().map(|case| domain.holds(&case.predicate)).collect();
    let by_text = answers::ask_texts(&place, &texts, run.n);
    for ((case, text), by_text) in run.cases.iter().zip(&texts).zip(by_text) {
        let named = named.remove(&case.predicate).unwrap_or_else(|| Err("not among the answers".to_owned()));
        let mut answers = vec![("by name", named), ("by text", by_text)];
        if case.at.is_multiple_of(ALONE_EVERY) {
            answers.push(("alone", answers::ask(&place, text, run.n)));
            tally.alone += 1;
        }
        check_case(run, case, answers, &mut tally);
        if case.audited {
            check_audited(&place, run, case, text, &mut tally);
        }
    }
    if !named.is_empty() {
        let _ = writeln!(tally.wrong, "{}: nobody expects {:?}", run.file, named.keys());
    }
    tally
}

/// The environment at every tick has the published hash: it has it where it changed, and no other tick wrote to it.
fn check_states(place: &Place, run: &Run, tally: &mut Tally) {
    let written = answers::ticks_that_wrote(place, "env");
    let expected: Vec<u64> = run.env_changes.iter().map(|(tick, _)| *tick).collect();
    if written != expected {
        let _ = writeln!(tally.wrong, "{}: env was written at {written:?}, expected {expected:?}", run.file);
    }
    let first = run.env_s0.iter().map(|hash| (0, hash.clone()));
    for (tick, hash) in first.chain(run.env_changes.iter().cloned()) {
        let found = answers::hash_of(place, tick, "env");
        if found == hash {
            tally.states += 1;
        } else {
            let _ = writeln!(tally.wrong, "{}: env at tick {tick} has {found}, expected {hash}", run.file);
        }
    }
}

/// An onset that a person has judged as well: the state before it is ok, and the state after it is not.
fn check_audited(place: &Place, run: &Run, case: &Case, text: &str, tally: &mut Tally) {
    let onset = case.onset.expect("an onset is what was judged");
    let (before, after) = (answers::holds_at(place, text, onset - 1), answers::holds_at(place, text, onset));
    if !before || after {
        let (file, name) = (&run.file, &case.predicate);
        let _ = writeln!(tally.wrong, "{file}: {name}: holds before tick {onset}: {before}, after: {after}");
    }
    tally.audited += 1;
}

/// Compares the answers to a question with the one that is expected.
fn check_case(run: &Run, case: &Case, answers: Answers, tally: &mut Tally) {
    let expected = Answer { onset: case.onset, recovers: !case.monotone, intervals: case.intervals.clone() };
    let mut equal = true;
    for (form, answer) in answers {
        let right = answer
            .as_ref()
            .is_ok_and(|answer| *answer == expected && class_of(answer.onset, run.n) == case.class);
        if !right {
            let (file, name) = (&run.file, &case.predicate);
            let _ = writeln!(tally.wrong, "{file}: {name} {form}: {answer:?}; expected {expected:?}");
        }
        equal &= right;
    }
    tally.recovering += usize::from(equal && !case.monotone);
    *tally.equal.entry(case.class.clone()).or_default() += usize::from(equal);
}

/// Where in a run an onset lies.
fn class_of(onset: Option<u64>, n: u64) -> &'static str {
    match onset {
        None => "never",
        Some(0) => "initial",
        Some(1) => "tick-1",
        Some(onset) if onset == n => "last",
        Some(onset) if 3 * onset <= n => "early",
        Some(onset) if 3 * onset <= 2 * n => "mid",
        Some(_) => "late",
    }
}

#[test]
fn runs_of_the_airline_desk_are_rebuilt_and_every_question_is_answered() {
    check(Domain::Airline, 15, 330);
}

#[test]
fn runs_of_the_retail_desk_are_rebuilt_and_every_question_is_answered() {
    check(Domain::Retail, 14, 294);
}

#[test]
fn runs_of_the_bank_under_injection_are_rebuilt_and_every_question_is_answered() {
    check(Domain::Banking, 12, 132);
}

#[test]
fn runs_of_the_chat_under_injection_are_rebuilt_and_every_question_is_answered() {
    check(Domain::Slack, 12, 144);
}

#[test]
fn runs_of_the_office_under_injection_are_answered() {
    check(Domain::Workspace, 6, 54);
}

#[test]
fn logs_of_teams_that_failed_are_answered() {
    check(Domain::Log, 28, 112);
}

/// The six domains are the corpus: no line of it belongs to none, and the packs ask its questions in its order and words.
#[test]
fn no_run_and_no_question_of_the_corpus_is_left_out() {
    let Some(corpus) = corpus() else { return };
    let runs: usize = Domain::ALL.into_iter().map(|domain| corpus.runs(domain).len()).sum();
    let cases: usize =
        Domain::ALL.into_iter().flat_map(|domain| corpus.runs(domain)).map(|run| run.cases.len()).sum();
    assert_eq!((runs, cases), (87, 1066));
    assert_eq!((corpus.lines("runs.jsonl").len(), corpus.lines("expected.jsonl").len()), (87, 1066));
    let all: Vec<Run> = Domain::ALL.into_iter().flat_map(|domain| corpus.runs(domain)).collect();
    let audited = all.iter().flat_map(|run| &run.cases).filter(|case| case.audited);
    assert_eq!(audited.count(), corpus.lines("audited.jsonl").len(), "each audited onset is among them");
    for domain in Domain::ALL {
        let declared = domain.predicates();
        for run in corpus.runs(domain) {
            let asked: Vec<(String, String)> =
                run.cases.iter().map(|case| (case.predicate.clone(), case.words.clone())).collect();
            assert_eq!(declared, asked, "{domain:?}: names and words of the predicates, in order");
        }
    }
}
