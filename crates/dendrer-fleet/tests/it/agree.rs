//! Every answer of `fleet` is that of `bisect`, run by run.

use dendrer::Error;
use dendrer::ask::bisect::{BisectOutcome, BisectReport, BisectSubject, Range, bisect, once_there};
use dendrer::ask::fleet::{FleetOutcome, FleetQuestion, FleetReply, FleetRun};
use dendrer::ask::named::{expression, resolve};
use dendrer::trace::Trace;
use dendrer_fleet::{FleetTerms, ask};
use dendrer_kernel::predicate::{Polarity, Verdict};
use dendrer_kernel::replay::ReplayError;
use tempfile::TempDir;

use crate::made::{exported, generated, opened, small, store};

const HOLDS: [&str; 17] = [
    "state.n <= 4",
    "state.n < 2",
    "state.x <= 2.5",
    "!has(state.n) || state.n <= 5",
    "!has(state.a.b) || state.a.b < 4",
    "has(state.a.b)",
    "!has(state.a)",
    "state.s != \"it's \\\"1\\\"\"",
    "size(state.list) < 2",
    "state.n <= state.limit",
    "state[\"a b\"] != 3",
    "state[\"o'q\"] != null",
    "!has(state.list) || size(state.list) == 0 || state.list[0] != 2",
    "state.counters.tool_calls < 2",
    "state.counters.tokens_used <= 40.0",
    "state.counters.transitions < 5 || state.n < 6",
    "state.n != 9007199254740993",
];

const CONDITIONS: [&str; 3] =
    ["state.n > 3", "has(state.x) && state.x > 1", "state.counters.cost_usd > 0.25"];

/// What `bisect` says of a run; `None` if a value that it needs was erased.
fn said(trace: &Trace, question: &FleetQuestion) -> Option<BisectReport> {
    let predicate = match question.polarity {
        Polarity::Holds => expression(trace, Polarity::Holds, &question.text).expect("it checks"),
        Polarity::Condition => resolve(trace, &question.text).expect("it checks").predicate,
    };
    let subject = BisectSubject::Predicate(predicate);
    let to = question.to.unwrap_or(trace.tip()).min(trace.tip());
    let range = Range::new(question.from.unwrap_or(0), to);
    let made = bisect(trace, &subject, &range).and_then(|report| {
        let again = match question.from {
            Some(_) => None,
            None => once_there(trace, &subject, &report, &range)?,
        };
        Ok(again.map_or(report, |(_, again)| again))
    });
    match made {
        Ok(report) => Some(report),
        Err(Error::Hidden { .. } | Error::Replay(ReplayError::Erased { .. })) => None,
        Err(error) => panic!("{}: {error}", question.text),
    }
}

fn compare(run: &FleetRun, report: Option<&BisectReport>, what: &str) {
    let Some(report) = report else {
        assert_eq!(run.outcome, FleetOutcome::Uncertain, "{what}: a value was erased");
        assert_eq!(run.onset, None, "{what}");
        return;
    };
    let (outcome, unknown) = match &report.outcome {
        BisectOutcome::Onset(_) => (FleetOutcome::Onset, None),
        BisectOutcome::Never => (FleetOutcome::Never, None),
        BisectOutcome::Initial => (FleetOutcome::Initial, None),
        BisectOutcome::Recovers(_) => (FleetOutcome::Recovers, None),
        BisectOutcome::Uncertain(tick, _) => (FleetOutcome::Uncertain, Some(*tick)),
    };
    assert_eq!((run.outcome, run.onset, run.first_unknown), (outcome, report.onset(), unknown), "{what}");
    if let BisectOutcome::Recovers(turns) = &report.outcome {
        let ok = turns.iter().find(|(_, verdict)| *verdict != Verdict::Violation).map(|(tick, _)| *tick);
        assert_eq!(run.recovers_at, ok, "{what}");
    }
}

/// Compares all runs of a store; returns how many runs there are, and each outcome that there was.
fn check(seed: u64, outcomes: &mut std::collections::BTreeMap<(FleetOutcome, &'static str), u64>) -> u64 {
    let repo = generated(seed);
    let store = store(&repo);
    let dir = TempDir::new().expect("a directory");
    let terms = if seed % 2 == 0 { small() } else { FleetTerms::default() };
    exported(&repo, &dir.path().join("e"), &terms).expect("it is exported");
    let export = opened(&dir.path().join("e"));
    let runs = export.runs().expect("runs");
    let holds = HOLDS.map(|text| (Polarity::Holds, text));
    let asked = holds.into_iter().chain(CONDITIONS.map(|text| (Polarity::Condition, text)));
    for (number, (polarity, text)) in asked.enumerate() {
        let (from, to) = match (seed + number as u64) % 4 {
            0 => (Some(1), Some(5)),
            _ => (None, None),
        };
        let question = FleetQuestion { polarity, text: text.to_owned(), from, to };
        let reply: FleetReply =
            ask(&export, &question).unwrap_or_else(|error| panic!("{seed} {text}: {error}"));
        assert_eq!(reply.runs.len() as u64 + reply.outside, runs.len() as u64);
        for run in &reply.runs {
            let trace = Trace::open(&store, &run.run).expect("a run");
            let said = said(&trace, &question);
            compare(run, said.as_ref(), &format!("seed {seed}, {}, {text}", run.run));
            if said.is_none() {
                *outcomes.entry((run.outcome, "erased")).or_default() += 1;
            }
            *outcomes.entry((run.outcome, reply.path)).or_default() += 1;
        }
    }
    runs.len() as u64
}

#[test]
fn fleet_agrees_with_bisect_on_generated_runs() {
    let wanted =
        if std::env::var_os("DENDRER_DEEP").is_some_and(|value| value == "1") { 10_000 } else { 300 };
    let (mut runs, mut seed, mut outcomes) = (0, 0, std::collections::BTreeMap::new());
    while runs < wanted {
        seed += 1;
        runs += check(seed, &mut outcomes);
    }
    // A generator that makes no forks, erasures or turns would compare nothing.
    for outcome in FleetOutcome::ALL {
        let found: u64 = outcomes.iter().filter(|((one, _), _)| one == outcome).map(|(_, count)| count).sum();
        assert!(found > 20, "{outcome}: {found}");
    }
    for path in ["columns", "state", "erased"] {
        let found: u64 = outcomes.iter().filter(|((_, one), _)| *one == path).map(|(_, count)| count).sum();
        assert!(found > 50, "{path}: {found}");
    }
}
