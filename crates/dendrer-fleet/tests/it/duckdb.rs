//! DuckDB as a second reader: its SQL over the files finds the onsets that the evaluator finds.
//!
//! Runs where `DENDRER_PYTHON` has the package `duckdb`; `DENDRER_DUCKDB=must` fails where it does not.

use std::collections::BTreeMap;
use std::process::Command;

use dendrer::ask::fleet::FleetQuestion;
use dendrer_fleet::{FleetTerms, ask};
use dendrer_kernel::predicate::{Polarity, Verdict};
use tempfile::TempDir;

use crate::made::{exported, generated, opened};

const SCRIPT: &str = r#"
import json, sys, duckdb
dir = sys.argv[1]
files = [f"{dir}/{one['file']}" for one in json.load(open(f"{dir}/dendrer-export.json"))["files"] if one["file"].startswith("ticks/")]
rows = duckdb.sql('select run, min(tick) from read_parquet($files) where "c_counters.tool_calls" >= 2 group by run', params={"files": files}).fetchall()
print(json.dumps(dict(rows), sort_keys=True))
"#;

#[test]
fn duckdb_finds_the_onsets_that_the_evaluator_finds() {
    let python = std::env::var("DENDRER_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has = Command::new(&python).args(["-c", "import duckdb"]).output();
    if !has.is_ok_and(|out| out.status.success()) {
        assert!(std::env::var_os("DENDRER_DUCKDB").is_none(), "{python} has no duckdb");
        println!("SKIPPED: {python} has no package duckdb");
        return;
    }
    let mut compared = 0;
    for seed in 1..12 {
        let (repo, dir) = (generated(seed), TempDir::new().unwrap());
        exported(&repo, &dir.path().join("e"), &FleetTerms::default()).unwrap();
        let text = "state.counters.tool_calls < 2".to_owned();
        let question = FleetQuestion { polarity: Polarity::Holds, text, from: None, to: None };
        let export = opened(&dir.path().join("e"));
        let runs = export.runs().unwrap();
        let reply = ask(&export, &question).unwrap();
        // SQL sees the own ticks of a run, and null where nothing is known.
        let own = |name: &str| runs.iter().find(|run| run.name.as_str() == name).map(|run| run.first);
        let mut expected = BTreeMap::new();
        for run in &reply.runs {
            let first =
                run.turns.iter().find(|(_, verdict)| *verdict == Verdict::Violation).map(|(tick, _)| *tick);
            let (Some(first), Some(begin)) = (first, own(run.run.as_str())) else { continue };
            let one = runs.iter().find(|one| one.name == run.run).unwrap();
            if one.ticks > 0 && (run.first_unknown.is_none() || first.max(begin) < run.first_unknown.unwrap())
            {
                expected.insert(run.run.to_string(), first.max(begin));
            }
        }
        let out = Command::new(&python).args(["-c", SCRIPT]).arg(dir.path().join("e")).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let words: Vec<String> = expected.iter().map(|(run, tick)| format!("\"{run}\": {tick}")).collect();
        assert_eq!(
            String::from_utf8_lossy(&out.stdout).trim(),
            format!("{{{}}}", words.join(", ")),
            "seed {seed}"
        );
        compared += expected.len();
    }
    assert!(compared > 10, "{compared}");
}
