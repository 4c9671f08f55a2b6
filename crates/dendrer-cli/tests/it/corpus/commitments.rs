//! Commitments that were written from the tools and the policy of a task alone (`examples/commitments`), on published runs: which
//! calls the door would have refused. `docs/commitments.md` says what is counted and what it means; the figures are asserted as
//! they were measured.

use std::path::Path;

use serde_json::Value;

use super::data::{Domain, corpus};
use super::say;
use crate::support::Place;

/// Imports the runs of a domain under a pack. Returns the calls, and how many of them the pack would refuse, with the number of runs
/// that have one.
fn refused(domain: Domain, pack: &str) -> Option<(usize, usize, usize)> {
    let corpus = corpus()?;
    let pack = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/commitments").join(pack);
    let (mut calls, mut flagged, mut runs) = (0, 0, 0);
    for run in corpus.runs(domain) {
        let place = Place::with_store();
        let (file, pack) = (run.path(), pack.to_str().unwrap());
        place.ok(&["import", file.to_str().unwrap(), "--kind", "openai-chat", "--run", "r", "--pack", pack]);
        let bundle = place.ok(&["export", "r", "--format", "jsonl"]);
        let lines = bundle.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let requests: Vec<Value> = lines.filter(|line| line["transition_type"] == "action.request").collect();
        let is_flagged = |line: &&Value| {
            let notes = line["anomalies"].as_array();
            notes.is_some_and(|notes| notes.iter().any(|note| note["kind"] == "commitment_violated"))
        };
        let found = requests.iter().filter(is_flagged).count();
        calls += requests.len();
        flagged += found;
        runs += usize::from(found > 0);
    }
    say(&format!("{domain:?}: {flagged} of {calls} requests would be refused, in {runs} runs\n"));
    Some((calls, flagged, runs))
}

#[test]
fn what_the_door_would_have_refused_is_what_the_page_says() {
    let mut wrong = Vec::new();
    for (domain, pack, expected) in [
        (Domain::Banking, "agentdojo-banking.yaml", (48, 9, 7)),
        (Domain::Slack, "agentdojo-slack.yaml", (80, 25, 11)),
        (Domain::Workspace, "agentdojo-workspace.yaml", (26, 4, 4)),
        (Domain::Retail, "tau-retail.yaml", (156, 24, 10)),
    ] {
        let Some(found) = refused(domain, pack) else { return };
        wrong.extend((found != expected).then(|| format!("{pack}: {found:?}")));
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
