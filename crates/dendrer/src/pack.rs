//! Packs in files: reading one, testing it, binding it to a run that is to begin.
//!
//! A run carries its pack: the value that decides, bound by the digest in every header, and the text that people
//! wrote. A module that a pack names is a file next to its text, and bytes in its value.
//!
//! Never reads a record: the pack of a run that has begun is read by [`run::pack`](crate::run::pack), from the record alone.

use std::collections::BTreeSet;
use std::sync::Arc;

use dendrer_kernel::cases::Failed;
use dendrer_kernel::pack::cases::Case;
use dendrer_kernel::pack::{Bound, Origin, Pack, PackFault};
use dendrer_kernel::step::Start;
use dendrer_object::text::count;
use dendrer_object::{Code, Pointer, Value};

use crate::error::Error;
use crate::problem::{MarkedText, Problem};
use crate::redact::PackRules;
use dendrer_kernel::step::KERNEL_VERSION;

pub mod convert;
mod files;
pub mod yaml;

pub use files::{Files, text_of};
pub use yaml::{PackProblem, TextMark};

/// A pack as it was read from a text.
#[derive(Debug)]
pub struct Source {
    /// The pack.
    pub pack: Pack,
    /// The text, as it was written.
    pub text: Arc<str>,
    document: yaml::Document,
}

/// Reads a pack from YAML or JSON and checks it as a whole. Problems come in the order of the text. A text that names
/// files is read with [`read_with`].
pub fn read(text: &[u8]) -> Result<Source, Vec<PackProblem>> {
    read_with(text, Files::Nowhere)
}

/// As [`read`], with the files that the text names.
pub fn read_with(text: &[u8], files: Files<'_>) -> Result<Source, Vec<PackProblem>> {
    let document = yaml::Document::read(text)?;
    let (document, mut missing) = files.fill(document);
    match check(&document.value).and_then(as_new) {
        Ok(pack) if missing.is_empty() => {
            let text = String::from_utf8_lossy(text).into();
            Ok(Source { pack, text, document })
        }
        Ok(_) => Err(missing),
        Err(faults) => {
            // A file that could not be read is reported once.
            let is_told = |fault: &PackFault| missing.iter().any(|told| told.place == fault.path.dotted());
            let faults = faults.into_iter().filter(|fault| !is_told(fault)).collect();
            missing.extend(problems(&document, faults));
            missing.sort_by_key(|problem| problem.mark);
            Err(missing)
        }
    }
}

/// Writes a place in the text of a pack: `FILE:LINE:COLUMN`.
pub fn place_words(path: &str, mark: TextMark) -> String {
    format!("{path}:{}:{}", mark.line, mark.column)
}

/// Returns the problem of a text that is no sound pack; `name` is its name for messages.
pub fn unsound(name: &str, problems: &[PackProblem]) -> Problem {
    let many = count(problems.len() as u64, "problem", "problems");
    let mut found = Problem::new(Code::E0900, format!("{name} has {many}")).note("nothing was changed");
    for problem in problems.iter().take(5) {
        found = found.at("problem", format!("{} {}", place_words(name, problem.mark), problem.message));
    }
    let first = problems.first().and_then(|problem| MarkedText::at(&problem.line, problem.mark.column));
    found.marked(first).help(&["dendrer", "pack", "check", name])
}

/// Reads the value of a text with the files that it names, without asking whether it is a sound pack: a graph uses a part of one.
pub fn read_value(text: &[u8], files: Files<'_>) -> Result<Value, Vec<PackProblem>> {
    let (document, missing) = files.fill(yaml::Document::read(text)?);
    if missing.is_empty() { Ok(document.value) } else { Err(missing) }
}

/// Checks a pack, with the engine that runs the modules that it names. Whatever reduces or judges with a pack reads it here.
pub(crate) fn check(value: &Value) -> Result<Pack, Vec<PackFault>> {
    check_by(value, KERNEL_VERSION)
}

/// As [`check`], by the rules of a version of the kernel: those of the run that the pack is read for.
pub(crate) fn check_by(value: &Value, version: u64) -> Result<Pack, Vec<PackFault>> {
    let pack = Pack::read_with(value, &dendrer_wasm::Engine::default(), version)?;
    match PackRules::of_pack(value) {
        Ok(_) => Ok(pack),
        Err(error) => Err(vec![PackFault {
            code: Code::E0902,
            path: Pointer::of(["redact"]),
            at_name: false,
            span: None,
            message: error.to_string(),
            is_of_new: false,
            hint: Some("like `redact: {names: [badge], shapes: {ticket: \"TCK-[0-9]{6}\"}}`".to_owned()),
        }]),
    }
}

/// Refuses a pack that only records may have.
pub(crate) fn as_new(pack: Pack) -> Result<Pack, Vec<PackFault>> {
    let faults = pack.faults_of_new();
    if faults.is_empty() { Ok(pack) } else { Err(faults.to_vec()) }
}

fn problems(document: &yaml::Document, faults: Vec<PackFault>) -> Vec<PackProblem> {
    let mut problems: Vec<PackProblem> = faults
        .into_iter()
        .map(|fault| {
            let mark = document.mark(&fault.path, fault.at_name, fault.span);
            PackProblem {
                code: fault.code,
                mark,
                place: fault.path.dotted(),
                message: fault.message,
                hint: fault.hint,
                line: document.line(mark),
            }
        })
        .collect();
    problems.sort_by_key(|problem| problem.mark);
    problems
}

/// The result of one test of a pack.
#[derive(Debug)]
pub struct Tested {
    /// The test.
    pub name: Arc<str>,
    /// Its place in the text.
    pub mark: TextMark,
    /// The expectations that failed, each with its place; empty if all is well.
    pub failed: Vec<(TextMark, String)>,
    /// The rules that wrote to the state in it, by number from 1.
    pub rules: BTreeSet<usize>,
    /// The place at which a limit ended a module, and its input: then it is not known whether the test has failed.
    pub stopped: Option<(TextMark, Error)>,
}

impl Source {
    /// Runs the tests that the pack carries.
    pub fn test(&self) -> Vec<Tested> {
        self.run(&self.pack.cases, &self.document)
    }

    /// Runs the tests of another file.
    pub fn test_with(&self, cases: &[u8]) -> Result<Vec<Tested>, Vec<PackProblem>> {
        let document = yaml::Document::read(cases)?;
        let cases = self.pack.read_cases(&document.value).map_err(|faults| problems(&document, faults))?;
        Ok(self.run(&cases, &document))
    }

    fn run(&self, cases: &[Case], document: &yaml::Document) -> Vec<Tested> {
        let place = |failed: Failed| (document.mark(&failed.path, false, None), failed.message);
        let run = |case: &Case| {
            let ran = dendrer_kernel::cases::run(&self.pack, case);
            let stopped = ran.stopped.map(|(path, predicate, stopped)| {
                let error = predicate.iter().fold(Error::from(stopped), |error, name| error.asked_as(name));
                (document.mark(&path, false, None), error)
            });
            Tested {
                stopped,
                name: Arc::clone(&case.name),
                mark: document.mark(&case.path, false, None),
                failed: ran.failed.into_iter().map(place).collect(),
                rules: ran.rules,
            }
        };
        cases.iter().map(run).collect()
    }

    /// Binds the pack to a run that is to begin. The state of `start` is `s0`; the pack has the state with which the run
    /// begins. A given s0 is recorded by its digest, among the inputs.
    pub fn bind(&self, start: Start) -> Result<Start, Error> {
        let s0 = start.state;
        let given = s0.as_object().is_none_or(|members| !members.is_empty()).then(|| s0.digest());
        let origin = Origin { s0: Some(s0), meta: start.meta.clone(), inputs: start.inputs.clone() };
        let state = self.pack.init(&origin)?;
        let inputs = match given {
            None => start.inputs,
            Some(digest) => Some(with_member(start.inputs, "s0", Value::from(digest))),
        };
        // A run that is made again has the rules of its pack already.
        let given_rules = start.policy.into_iter().filter(|rule| !self.pack.policy.contains(rule));
        let policy = self.pack.policy.iter().cloned().chain(given_rules).collect();
        Ok(Start {
            state,
            inputs,
            policy,
            unknown: self.pack.begins_unknown(&start.unknown),
            goal: start.goal.or_else(|| self.pack.goal.clone()),
            reducer: self.pack.engine.as_str().into(),
            pack: Some(Bound { value: self.pack.value().clone(), text: Arc::clone(&self.text) }),
            ..start
        })
    }
}

pub(crate) fn with_member(value: Option<Value>, name: &str, member: Value) -> Value {
    let mut members = value.as_ref().and_then(Value::as_object).cloned().unwrap_or_default();
    members.set(name, member);
    Value::Object(members)
}
