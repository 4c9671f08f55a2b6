//! Generated stores: runs with several kinds of values, forks of forks, merges with open conflicts, and erasures.

use std::path::Path;
use std::sync::Arc;

use dendrer::address::Address;
use dendrer::care::erase::{EraseTerms, plan};
use dendrer::fork::ForkTerms;
use dendrer::merge::{MergeInput, MergeTerms, Strategy};
use dendrer::redact::RedactionProfile;
use dendrer::{Recorder, Repo, Trace};
use dendrer_fleet::{ExportReport, FleetError, FleetReader, FleetTerms, export};
use dendrer_kernel::pack::Bound;
use dendrer_kernel::step::Start;
use dendrer_object::json::parse_door;
use dendrer_object::{Intent, RunName, Value};
use dendrer_store::Store;
use dendrer_testkit::{Dice, run_name};

pub(crate) fn v(text: &str) -> Value {
    parse_door(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

const NAMES: [&str; 7] = ["n", "x", "s", "a", "list", "a b", "o'q"];

fn path(dice: &mut Dice) -> String {
    match dice.below(12) {
        0 => "/a/b".to_owned(),
        1 => "/a/c".to_owned(),
        2 => "/list/0".to_owned(),
        _ => format!("/{}", NAMES[dice.below(7) as usize]),
    }
}

fn value(dice: &mut Dice) -> String {
    match dice.below(12) {
        0 => "null".to_owned(),
        1 => "true".to_owned(),
        2 => format!("\"it's \\\"{}\\\"\"", dice.below(4)),
        3 => format!("{}.5", dice.below(6)),
        4 => "9007199254740993".to_owned(),
        5 => format!("{{\"b\":{}}}", dice.below(6)),
        6 => format!("[{}]", dice.below(6)),
        7 => "\"$t\"".to_owned(),
        _ => dice.below(8).to_string(),
    }
}

fn line(dice: &mut Dice) -> String {
    let op = match dice.below(8) {
        0 => format!("{{\"remove\":\"{}\"}}", path(dice)),
        1 => format!("{{\"add\":\"/n\",\"value\":{}}}", dice.below(3)),
        2 => format!("{{\"append\":\"/list\",\"value\":{}}}", value(dice)),
        3 | 4 => format!("{{\"set\":\"/n\",\"value\":{}}}", dice.below(8)),
        _ => format!("{{\"set\":\"{}\",\"value\":{}}}", path(dice), value(dice)),
    };
    match dice.below(6) {
        0 => format!(
            "{{\"type\":\"action.request\",\"action\":{{\"call_id\":\"c{0}\",\"tool\":\"t\",\"params\":{{}}}},\"delta\":[{op}]}}",
            dice.below(99)
        ),
        1 => format!(
            "{{\"type\":\"plan.update\",\"metrics\":{{\"tokens_used\":{},\"cost_usd\":0.25}},\"delta\":[{op}]}}",
            dice.below(50)
        ),
        2 => "{\"type\":\"plan.update\",\"intent\":{\"description\":\"think\"}}".to_owned(),
        _ => format!("{{\"type\":\"observation.add\",\"delta\":[{op}]}}"),
    }
}

fn go_on(recorder: &mut Recorder, dice: &mut Dice, ticks: u64) {
    for _ in 0..ticks {
        let text = line(dice);
        let intent =
            Intent::from_value(&v(&text), Some("a")).unwrap_or_else(|error| panic!("{error}: {text}"));
        // A line that cannot be reduced is a refusal, and no tick.
        drop(recorder.propose(&intent));
    }
    recorder.commit().expect("a group is appended");
}

const PACK: &str = r#"{"taskpack":"demo","version":"1","constants":{"top":5}}"#;

/// Makes a store of a seed; returns how many runs it has.
pub(crate) fn generated(seed: u64) -> Repo {
    let repo = Repo::in_memory(RedactionProfile::None).expect("a store");
    let mut dice = Dice(seed);
    let mut names: Vec<RunName> = Vec::new();
    for number in 0..3 {
        let name = run_name(&format!("r{number}"));
        let mut start = Start::new(name.clone());
        start.state = match dice.below(3) {
            0 => Value::object(),
            1 => v(r#"{"n":1,"a":{"b":0}}"#),
            _ => v(r#"{"n":0,"x":0.5,"s":"t","list":[],"a":{"b":1},"limit":6}"#),
        };
        if number == 2
            && dice.below(2) == 0
            && let Ok(source) = dendrer::pack::read(PACK.as_bytes())
        {
            start.pack = Some(Bound { value: source.pack.value().clone(), text: String::new().into() });
        }
        let mut recorder = repo.begin(&start).expect("a run begins");
        let ticks = dice.below(14);
        go_on(&mut recorder, &mut dice, ticks);
        if dice.below(3) == 0 {
            recorder.end().expect("it ends");
            recorder.commit().expect("committed");
        }
        names.push(name);
    }
    for number in 0..dice.below(4) {
        let parent = names[dice.below(names.len() as u64) as usize].clone();
        let trace = repo.run(&parent).expect("a run");
        let (tick, name) = (dice.below(trace.tip() + 1), run_name(&format!("f{number}")));
        let Ok((mut recorder, _)) = repo.fork(&trace, tick, &ForkTerms::new(name.clone())) else { continue };
        let ticks = dice.below(8);
        go_on(&mut recorder, &mut dice, ticks);
        names.push(name);
    }
    if dice.below(2) == 0 {
        merge(&repo, &mut dice, &mut names);
    }
    if dice.below(3) == 0 {
        let at = &names[dice.below(names.len() as u64) as usize];
        let tip = repo.run(at).expect("a run").tip();
        // A tick without a change has nothing to erase.
        drop(erase(&repo, &format!("{at}@{}", dice.below(tip + 1)), "delta"));
    }
    repo
}

fn merge(repo: &Repo, dice: &mut Dice, names: &mut Vec<RunName>) {
    let traces: Vec<Trace> = names.iter().take(2).map(|name| repo.run(name).expect("a run")).collect();
    let sources: Vec<MergeInput<'_>> =
        traces.iter().map(|trace| MergeInput { trace, tick: trace.tip() }).collect();
    let strategy = if dice.below(2) == 0 { Strategy::Manual } else { Strategy::Lww };
    let (run, artifacts) = (run_name("m"), Vec::new());
    let terms = MergeTerms { run: run.clone(), artifacts, strategy, seed_only: true, although: None };
    if let Ok((mut recorder, _)) = repo.merge(&sources, &terms) {
        let ticks = dice.below(6);
        go_on(&mut recorder, dice, ticks);
        names.push(run);
    }
}

/// Erases a place with all its copies; what may follow from it stays. An open place must be named, and no other.
pub(crate) fn erase(repo: &Repo, at: &str, path: &str) -> Result<(), String> {
    let open: [&[&str]; 4] = [&[], &["delta"], &["action"], &["delta", "action"]];
    let mut last = String::new();
    for although in open {
        let terms = EraseTerms {
            at: Address::parse(at).expect("an address"),
            path: path.to_owned(),
            reason: "asked".to_owned(),
            by: "ann".to_owned(),
            also: Vec::new(),
            although: although.iter().map(|place| (*place).to_owned()).collect(),
            everywhere: true,
        };
        match plan(repo, &terms, &mut ()).and_then(|plan| plan.carry_out(repo)) {
            Ok(_) => return Ok(()),
            Err(error) => last = error.to_string(),
        }
    }
    Err(last)
}

pub(crate) fn store(repo: &Repo) -> Arc<dyn Store> {
    repo.reader().expect("a handle")
}

/// Terms with groups and files so small that a run is cut by both.
pub(crate) fn small() -> FleetTerms {
    FleetTerms { group_rows: 4, file_rows: 9, ..FleetTerms::default() }
}

pub(crate) fn exported(repo: &Repo, dir: &Path, terms: &FleetTerms) -> Result<ExportReport, FleetError> {
    export(&store(repo), &[], dir, terms, &mut |_| Ok(()))
}

pub(crate) fn opened(dir: &Path) -> FleetReader {
    FleetReader::open(dir).expect("an export")
}
