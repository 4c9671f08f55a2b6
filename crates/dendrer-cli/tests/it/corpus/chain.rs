//! How complete the causal chain is (dendrer paper, 4.8), against what people marked in failed runs.
//!
//! `docs/measures.md` says what is counted and what it means. The figures are what the program does today: they are
//! asserted as they were measured, so that a change of the chain is seen, whichever way it goes.

use std::collections::{BTreeMap, BTreeSet};

use dendrer_object::{Object, Value, json};

use super::data::{Domain, Run, at, corpus, items, text};
use super::{import, say};
use crate::support::Place;

/// Where the tick that a person marked stands in answers about onsets.
#[derive(Default)]
struct Counts {
    /// Pairs of a labelled run and a predicate with an onset on it.
    pairs: usize,
    onset: usize,
    behind: usize,
    ahead: usize,
    missed_before: usize,
    missed_after: usize,
    /// Ticks that the answers name, and ticks that the runs have, over all pairs.
    named: u64,
    ticks: u64,
    /// Thousandths of marks that as many ticks drawn by lot would have met.
    by_lot: u64,
}

/// What the program says about an onset: the ticks that it rests on, and those that rest on it.
struct Said {
    onset: u64,
    behind: BTreeSet<u64>,
    ahead: BTreeSet<u64>,
}

/// How far from the tick that a person marked answers are, summed over pairs, beside those of who does not look.
#[derive(Default)]
struct Distances {
    pairs: u64,
    /// From the onset.
    onset: u64,
    /// From the nearest contributor, where contributors were found: pairs, sum, and the onset's sum over the same pairs.
    contributors: (u64, u64, u64),
    /// From tick 1, always.
    first: u64,
    /// From a tick drawn by lot, in thousandths.
    by_lot: u64,
}

impl Distances {
    fn add(&mut self, label: u64, onset: u64, contributors: &[u64], n: u64) {
        self.pairs += 1;
        self.onset += label.abs_diff(onset);
        if let Some(nearest) = contributors.iter().map(|tick| label.abs_diff(*tick)).min() {
            let (pairs, sum, beside) = self.contributors;
            self.contributors = (pairs + 1, sum + nearest, beside + label.abs_diff(onset));
        }
        self.first += label.abs_diff(1);
        self.by_lot += (1..=n).map(|tick| label.abs_diff(tick)).sum::<u64>() * 1000 / n;
    }

    fn line(&self) -> String {
        let mean = |sum: u64, pairs: u64| format!("{:.1}", sum as f64 / pairs as f64);
        let (found, nearest, beside) = self.contributors;
        format!(
            "distance over {} pairs: onset {}, tick 1 {}, by lot {}; over the {found} with contributors: the nearest of them {}, onset {}\n",
            self.pairs,
            mean(self.onset, self.pairs),
            mean(self.first, self.pairs),
            mean(self.by_lot / 1000, self.pairs),
            mean(nearest, found),
            mean(beside, found),
        )
    }
}

impl Counts {
    fn add(&mut self, label: u64, said: &Said, n: u64) {
        let place = match () {
            () if label == said.onset => &mut self.onset,
            () if said.behind.contains(&label) => &mut self.behind,
            () if said.ahead.contains(&label) => &mut self.ahead,
            () if label < said.onset => &mut self.missed_before,
            () => &mut self.missed_after,
        };
        *place += 1;
        let named = 1 + said.behind.len() as u64 + said.ahead.len() as u64;
        self.pairs += 1;
        self.named += named;
        self.ticks += n;
        self.by_lot += 1000 * named / n;
    }

    fn line(&self, what: &str) -> String {
        format!(
            "{what:<34} {:>2} of {:>2}: onset {}, behind {}, ahead {}; missed before {}, after {}; {} of {} ticks, by lot {}.{}\n",
            self.onset + self.behind + self.ahead,
            self.pairs,
            self.onset,
            self.behind,
            self.ahead,
            self.missed_before,
            self.missed_after,
            self.named,
            self.ticks,
            self.by_lot / 1000,
            self.by_lot % 1000 / 100,
        )
    }
}

/// Of the tables that a run begins with, the rows whose id comes up in it. The others cost time and are in no answer, which the
/// onsets show: they are those of the whole tables.
fn touched(run: &Run, s0: &[u8]) -> Vec<u8> {
    let said = std::fs::read_to_string(run.path()).unwrap();
    let mut tables = json::parse_door(s0).unwrap().as_object().cloned().unwrap();
    let names: Vec<String> = tables.iter().map(|(name, _)| name.to_string()).collect();
    for name in names {
        let mut kept = Object::default();
        let rows = tables.get(&name).and_then(Value::as_object).cloned().unwrap();
        for (id, row) in rows.iter().filter(|(id, _)| said.contains(&***id)) {
            kept.set(id, row.clone());
        }
        tables.set(&name, Value::Object(kept));
    }
    json::to_vec(&Value::Object(tables))
}

fn tick(node: &Value) -> u64 {
    node.get("tick").and_then(Value::as_u64).unwrap()
}

/// The ticks in a tree of `why`, which must be whole.
fn tree(node: &Value, ticks: &mut BTreeSet<u64>) {
    ticks.insert(tick(node));
    let stops = text(node, "stops");
    assert!(!["size", "depth", "other agent"].contains(&&*stops), "the tree stops: {stops}");
    for input in items(node.get("inputs")) {
        tree(input, ticks);
    }
}

/// What an onset rests on: the tree of each place that the predicate reads, as it stood after the onset; and of these the
/// nearest, the last write of each place and the inputs of the onset itself.
fn behind(place: &Place, onset: u64, reads: &[String]) -> (BTreeSet<u64>, BTreeSet<u64>) {
    let (mut all, mut near) = (BTreeSet::new(), BTreeSet::new());
    for path in reads {
        let rev = format!("run@{onset}");
        let (code, why) =
            place.json(&["why", &rev, path, "--depth", "64", "--cross-agent", "--fields", "root"]);
        assert_eq!(code, 0, "{path}: {why}");
        if let Some(root) = why.get("root").filter(|root| **root != Value::Null) {
            tree(root, &mut all);
            near.insert(tick(root));
            if tick(root) == onset {
                near.extend(items(root.get("inputs")).map(tick));
            }
        }
    }
    let before = |ticks: BTreeSet<u64>| ticks.into_iter().filter(|tick| *tick < onset).collect();
    (before(all), before(near))
}

/// What is said about the onset of a predicate, all of it and the nearest; and its contributors, where they are found.
fn ask(place: &Place, predicate: &str, reads: &[String]) -> ([Said; 2], Vec<u64>) {
    let question = ["bisect", "run", "--predicate", predicate, "--lift", "--chain-limit", "1000"];
    let (code, found) = place.json(&[&question[..], &["--contributors"]].concat());
    assert_eq!(code, 0, "{predicate}: {found}");
    let onset = found.get("onset").and_then(Value::as_u64).unwrap();
    let chain = found.get("chain").unwrap();
    assert_eq!(chain.get("more"), Some(&Value::from(false)), "the chain is whole");
    let (mut all, mut near) = (BTreeSet::new(), BTreeSet::new());
    for member in items(chain.get("items")).filter(|member| tick(member) > onset) {
        // What only comes after is no part of it: nothing says that it rests on anything.
        if member.get("temporal") == Some(&Value::from(false)) {
            all.insert(tick(member));
        }
        if items(member.get("because")).any(|because| tick(because) == onset) {
            near.insert(tick(member));
        }
    }
    let (behind, behind_near) = behind(place, onset, reads);
    let contributors = found.get("contributors").and_then(|found| found.get("items"));
    let said = [Said { onset, behind, ahead: all }, Said { onset, behind: behind_near, ahead: near }];
    (said, items(contributors).map(tick).collect())
}

/// The places that each predicate of a pack reads.
fn reads(domain: Domain) -> BTreeMap<String, Vec<String>> {
    let (code, shown) = Place::new().json(&["pack", "show", domain.pack().to_str().unwrap()]);
    assert_eq!(code, 0, "{shown}");
    let places =
        |one: &Value| items(one.get("reads")).map(|path| path.as_str().unwrap().to_owned()).collect();
    items(shown.get("predicates")).map(|one| (text(one, "name"), places(one))).collect()
}

/// The tick that a person called decisive.
fn decisive(label: &Value) -> u64 {
    let root = label.get("root").map(|roots| at(roots, 0));
    root.as_ref().unwrap_or(label).get("tick").and_then(Value::as_u64).unwrap()
}

/// Counts over all labelled runs of a domain; `None` where there is no corpus.
fn measure(domain: Domain, labelled: usize) -> Option<String> {
    let corpus = corpus()?;
    let lines = corpus.lines("labels.jsonl");
    let labels: BTreeMap<String, u64> =
        lines.iter().map(|line| (text(line, "file"), decisive(line))).collect();
    let runs: Vec<Run> =
        corpus.runs(domain).into_iter().filter(|run| labels.contains_key(&run.file)).collect();
    assert_eq!(runs.len(), labelled, "labelled runs of {domain:?}");
    let reads = reads(domain);
    let (mut counts, mut distances) = (BTreeMap::<String, Counts>::new(), Distances::default());
    for run in &runs {
        let place = Place::with_store();
        import(&place, domain, run, domain.s0(run).map(|s0| touched(run, &s0))).unwrap();
        for case in run.cases.iter().filter(|case| case.onset.is_some_and(|onset| onset > 0)) {
            let ([all, near], contributors) = ask(&place, &case.predicate, &reads[&case.predicate]);
            distances.add(labels[&run.file], all.onset, &contributors, run.n);
            assert_eq!(Some(all.onset), case.onset, "{}: {}", run.file, case.predicate);
            for (name, said) in
                [("* all", &all), ("* nearest", &near), (&format!("{} nearest", case.predicate), &near)]
            {
                counts.entry(name.to_owned()).or_default().add(labels[&run.file], said, run.n);
            }
        }
    }
    let table: String = counts.iter().map(|(name, counts)| counts.line(name)).collect();
    let table = table + &distances.line();
    say(&format!("{domain:?}, {} labelled runs\n{table}", runs.len()));
    Some(table)
}

#[test]
fn the_chain_is_held_against_the_steps_that_people_marked_at_the_retail_desk() {
    let Some(table) = measure(Domain::Retail, 8) else { return };
    assert_eq!(table, RETAIL);
}

#[test]
fn the_chain_is_held_against_the_steps_that_people_marked_in_logs() {
    let Some(table) = measure(Domain::Log, 28) else { return };
    assert_eq!(table, LOG);
}

const RETAIL: &str = "\
* all                              38 of 39: onset 1, behind 20, ahead 17; missed before 1, after 0; 1530 of 1601 ticks, by lot 37.2
* nearest                           5 of 39: onset 1, behind 3, ahead 1; missed before 18, after 16; 203 of 1601 ticks, by lot 5.1
at_most_one_write nearest           0 of  2: onset 0, behind 0, ahead 0; missed before 1, after 1; 14 of 82 ticks, by lot 0.3
auth_before_anything nearest        0 of  1: onset 0, behind 0, ahead 0; missed before 0, after 1; 5 of 31 ticks, by lot 0.1
call_budget_8 nearest               1 of  7: onset 0, behind 0, ahead 1; missed before 5, after 1; 46 of 285 ticks, by lot 1.1
items_changed_once nearest          0 of  2: onset 0, behind 0, ahead 0; missed before 2, after 0; 12 of 90 ticks, by lot 0.3
message_xor_call nearest            1 of  3: onset 1, behind 0, ahead 0; missed before 1, after 1; 9 of 131 ticks, by lot 0.2
net_refund_at_most_1000 nearest     1 of  3: onset 0, behind 1, ahead 0; missed before 2, after 0; 12 of 115 ticks, by lot 0.3
no_open_call nearest                0 of  8: onset 0, behind 0, ahead 0; missed before 0, after 8; 24 of 314 ticks, by lot 0.6
no_refused_call nearest             1 of  5: onset 0, behind 1, ahead 0; missed before 1, after 3; 30 of 201 ticks, by lot 0.8
no_repeated_call nearest            0 of  1: onset 0, behind 0, ahead 0; missed before 1, after 0; 7 of 41 ticks, by lot 0.1
opening_has_no_identifier nearest   0 of  1: onset 0, behind 0, ahead 0; missed before 0, after 1; 10 of 45 ticks, by lot 0.2
writes_confirmed nearest            0 of  2: onset 0, behind 0, ahead 0; missed before 2, after 0; 11 of 90 ticks, by lot 0.2
writes_on_plan nearest              1 of  4: onset 0, behind 1, ahead 0; missed before 3, after 0; 23 of 176 ticks, by lot 0.5
distance over 39 pairs: onset 14.3, tick 1 20.7, by lot 12.3; over the 14 with contributors: the nearest of them 11.9, onset 16.1
";

const LOG: &str = "\
* all                              38 of 45: onset 2, behind 15, ahead 21; missed before 7, after 0; 639 of 687 ticks, by lot 40.1
* nearest                           6 of 45: onset 2, behind 1, ahead 3; missed before 21, after 18; 121 of 687 ticks, by lot 10.2
no_agent_three_times nearest        3 of 22: onset 0, behind 0, ahead 3; missed before 8, after 11; 64 of 344 ticks, by lot 5.5
no_failed_execution nearest         1 of 12: onset 1, behind 0, ahead 0; missed before 7, after 4; 25 of 113 ticks, by lot 2.7
text_budget_20000 nearest           2 of 11: onset 1, behind 1, ahead 0; missed before 6, after 3; 32 of 230 ticks, by lot 1.9
distance over 45 pairs: onset 5.8, tick 1 8.1, by lot 5.2; over the 33 with contributors: the nearest of them 7.3, onset 7.1
";
