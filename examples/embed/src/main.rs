//! The tour of the README from a program of your own: record, sign, find where it went wrong, compare, fork, verify; and what
//! happens to a store that was rolled back.
//!
//! ```text
//! cd examples/embed && cargo run
//! ```

use std::path::{Path, PathBuf};

use dendrer::ask::commitments::commitments;
use dendrer::bisect::{BisectOutcome, BisectSubject};
use dendrer::diff;
use dendrer::fork::ForkTerms;
use dendrer::object::record::Author;
use dendrer::prelude::*;
use dendrer::repo::Warning;
use dendrer::verify::{VerifyTerms, VerifyVerdict};
use dendrer::{Error, bridge};
use serde_json::json;

/// A step that sets the risk.
fn step(number: u64, risk: f64) -> Intent {
    let said = bridge::from_serde(&json!({ "description": format!("step {number}") })).expect("plain JSON");
    Intent::new("observation.add".parse().expect("a type"), "agent")
        .with("intent", said)
        .with_delta(Delta(vec![Op::set(Pointer::of(["risk"]), Value::from(risk))]))
}

/// Records a run of steps, each of which sets the risk, and signs the log.
fn record(repo: &Repo, name: &str, risks: &[f64]) -> Result<(), Error> {
    let state = bridge::from_serde(&json!({ "risk": 0.0 })).expect("plain JSON");
    let mut recorder = repo.begin(&Start { state, ..Start::new(name.parse().expect("a run name")) })?;
    for (number, risk) in (1..).zip(risks) {
        match recorder.propose(&step(number, *risk))? {
            Outcome::Committed(_) => {}
            other => println!("not committed: {other:?}"),
        }
    }
    // Durable from here on.
    recorder.commit()?;
    repo.sign()?;
    Ok(())
}

/// Binds an agent by the user's word, and lets it try what is forbidden. Returns the reason of the refusal.
fn bound(repo: &Repo, name: &str) -> Result<String, Error> {
    let line = |value: serde_json::Value| {
        let value = bridge::from_serde(&value).expect("plain JSON");
        Intent::from_value(&value, Some("agent")).expect("a line as `commit` takes it")
    };
    let mut user = line(json!({
        "type": "observation.add",
        "evidence": [{"id": "U1", "content": "Never delete anything."}],
        "commitments": [{"id": "C1", "type": "obl", "hard": true, "gloss": "Never delete.",
                         "support": ["U1"], "holds": "action.tool != 'delete'"}],
    }));
    user.author = Author::User;
    let call = line(json!({"type": "action.request", "action": {"tool": "delete", "params": {"path": "a"}}}));
    let start = Start { stage: Some(Stage::Contracts), ..Start::new(name.parse().expect("a run name")) };
    let mut recorder = repo.begin(&start)?;
    recorder.propose(&user)?;
    let outcome = recorder.propose(&call)?;
    recorder.commit()?;
    let trace = repo.run(&name.parse().expect("a run name"))?;
    let found = commitments((&trace, trace.tip()))?;
    assert_eq!(found.statuses.get("C1").map(|(status, _)| status.as_str()), Some("active"));
    match outcome {
        Outcome::Refused(refused) => Ok(refused.reason.to_string()),
        other => Ok(format!("not refused: {other:?}")),
    }
}

fn trace(repo: &Repo, address: &str) -> Result<Trace, Error> {
    Ok(repo.at(&Address::parse(address)?)?.0)
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Does the tour in a directory. `trust` keeps the key of the log and the newest signed head, outside the store.
pub fn tour(dir: &Path, trust: Arc<dyn Trust>) -> Result<(), Error> {
    let place: PathBuf = dir.join(".dendrer");
    let repo = Repo::init(&place, Arc::clone(&trust))?;
    record(&repo, "run-1", &[0.25, 0.5, 0.875, 0.9])?;
    assert_eq!(bound(&repo, "bound")?, "it violates C1");
    let older = dir.join("older");
    copy(&place, &older).expect("a copy of the store");

    // Where did it first go wrong?
    let run = trace(&repo, "run-1")?;
    let calm = Predicate::holds("calm", "state.risk <= 0.75")?.lifted();
    let answer = run.bisect(&BisectSubject::Predicate(calm))?;
    let BisectOutcome::Onset(onset) = answer.outcome else { panic!("the run goes wrong: {:?}", answer.outcome) };
    println!("first wrong at tick {onset}: {}", bridge::to_serde(&run.state(onset)?).expect("plain JSON"));

    // A fork from before it, with a reason on record.
    let mut terms = ForkTerms::new("run-2".parse().expect("a run name"));
    terms.reason = Some("try again from before it".into());
    let (mut recorder, _) = repo.fork(&run, onset - 1, &terms)?;
    recorder.propose(&step(3, 0.625))?;
    recorder.commit()?;
    drop(recorder);
    repo.sign()?;

    // How do the two differ?
    let fork = trace(&repo, "run-2")?;
    let mut pairs = 0;
    diff::diff(&run, &fork, &diff::DiffTerms::new(&run, &fork), &mut |_| {
        pairs += 1;
        std::ops::ControlFlow::Continue(())
    })?;
    assert!(pairs > 0);
    println!("run-1 and run-2 differ in {pairs} ticks after tick {}", onset - 1);

    // Is the record what was committed?
    let report = repo.verify(&VerifyTerms::default(), &mut ())?;
    assert!(report.verdict <= VerifyVerdict::Intact, "{:?}", report.findings);
    println!("verified: {} records, {:?}", report.records, report.verdict);
    repo.close()?;

    // An older copy of the store can be read. It is never written and never signed again.
    let stale = Repo::open(&older, Arc::clone(&trust), Mode::Read)?;
    assert!(matches!(stale.warnings(), [Warning::AnotherLog(_)]));
    assert_eq!(trace(&stale, "run-1")?.tip(), 4);
    assert_eq!(stale.verify(&VerifyTerms::default(), &mut ())?.verdict, VerifyVerdict::Tampered);
    let refused = Repo::open(&older, trust, Mode::Write).expect_err("a rolled back store is refused");
    println!("older copy: {refused} ({})", refused.code());
    assert_eq!(refused.code(), "E0307");
    Ok(())
}

fn main() -> Result<(), Error> {
    let dir = std::env::temp_dir().join(format!("dendrer-embed-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory for the tour");
    let done = tour(&dir, Arc::new(UserTrust::at(dir.join("trust"))));
    let _ = std::fs::remove_dir_all(&dir);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tour_holds_with_keys_in_memory() {
        let dir = std::env::temp_dir().join(format!("dendrer-embed-test-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let done = tour(&dir, Arc::new(MemoryTrust::new()));
        let _ = std::fs::remove_dir_all(&dir);
        done.unwrap();
    }
}
