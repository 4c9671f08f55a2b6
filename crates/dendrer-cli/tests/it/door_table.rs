//! Every door of the program asks what `commit` asks (design, section 14.1): 300 drawn lines, one process for each door.
//!
//! The lines are those of `crates/dendrer/tests/doors`, which asks the doors of the library.

use std::collections::BTreeMap;

use dendrer_testkit::Dice;
use serde_json::{Value, json};

use crate::support::Place;

#[path = "../../../dendrer/tests/doors/draw.rs"]
mod draw;

use draw::PackKind;

const COUNT: usize = 300;

/// The lines that a pipe of the runtime may bring.
fn lines(kind: PackKind, takes: impl Fn(&Value) -> bool) -> Vec<String> {
    let mut dice = Dice(300);
    let mut lines = Vec::new();
    while lines.len() < COUNT {
        let line = draw::line(&mut dice, kind).to_string();
        let read: Value = serde_json::from_str(&line).unwrap();
        if !["user", "kernel"].contains(&read["author"].as_str().unwrap_or_default()) && takes(&read) {
            lines.push(line);
        }
    }
    lines
}

/// A store with the packs, and runs with the lines before.
struct Shop {
    kind: PackKind,
    place: Place,
}

impl Shop {
    fn new(kind: PackKind, without: &[&str]) -> Shop {
        let [strict, open] = packs(kind, without);
        let place = Place::with_store();
        std::fs::write(place.path().join("strict.json"), strict.to_string()).unwrap();
        std::fs::write(place.path().join("open.json"), open.to_string()).unwrap();
        Shop { kind, place }
    }

    /// Begins a run with the lines before a proposal. Returns its last tick.
    fn begin(&self, run: &str, pack: &str, stage: u64) -> u64 {
        let before = draw::before(self.kind, false);
        let (user, rest) = before.split_first().unwrap();
        let (pack, stage) = (format!("{pack}.json"), stage.to_string());
        let begin = ["commit", "--run", run, "--pack", &pack, "--stage", &stage, "--as", "user"];
        let made = self.place.run_with(&begin, user.to_string().as_bytes());
        assert_eq!(made.code, 0, "{}{}", made.stdout, made.stderr);
        let rest: Vec<String> = rest.iter().map(ToString::to_string).collect();
        let rest = self.commit(run, &rest, &[]);
        assert!(rest.iter().all(|(word, _)| word == "committed"), "{run}: {rest:?}");
        1 + rest.len() as u64
    }

    /// Commits lines. Returns what became of each, and its tick.
    fn commit(&self, run: &str, lines: &[String], more: &[&str]) -> Vec<(String, Option<u64>)> {
        let args = [&["commit", "--run", run, "--as", "runtime", "--jsonl"], more].concat();
        let ran = self.place.run_with(&args, lines.join("\n").as_bytes());
        let replies = ran.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let replies = replies.filter(|reply| reply["line"].is_u64());
        let made: Vec<_> = replies
            .map(|reply| {
                let word = reply["reason"]["code"].as_str().or(reply["what"].as_str());
                (word.unwrap().to_owned(), reply["tick"].as_u64())
            })
            .collect();
        assert_eq!(made.len(), lines.len(), "{}{}", ran.stdout, ran.stderr);
        made
    }

    fn json(&self, args: &[&str]) -> Value {
        let ran = self.place.run(&[args, &["--json"]].concat());
        serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{args:?}: {}{}", ran.stdout, ran.stderr))
    }
}

fn words(made: &[(String, Option<u64>)]) -> Vec<&str> {
    made.iter().map(|(word, _)| word.as_str()).collect()
}

fn packs(kind: PackKind, without: &[&str]) -> [Value; 2] {
    [true, false].map(|ruled| {
        let mut pack: Value = serde_json::from_str(&kind.text(ruled)).unwrap();
        without.iter().for_each(|name| drop(pack.as_object_mut().unwrap().remove(*name)));
        pack
    })
}

/// Design, 14.1.
#[test]
fn lines_of_a_causal_recording_and_of_a_fork_are_judged_as_those_of_commit() {
    for (kind, stage) in
        [0, 1, 2, 3].map(|stage| (PackKind::Delta, stage)).into_iter().chain([(PackKind::Fold, 2)])
    {
        let shop = Shop::new(kind, &[]);
        let lines = lines(kind, |_| true);
        let tip = shop.begin("r", "strict", stage);
        let main = shop.commit("r", &lines, &["-n"]);
        let refused = main.iter().filter(|(word, _)| word.starts_with('E')).count();
        assert!(refused > if stage < 2 { 3 } else { 100 }, "stage {stage}: {refused} refused");
        let causal = shop.commit("r", &lines, &["-n", "--causal"]);
        assert_eq!(words(&causal), words(&main), "{kind:?} {stage} --causal");
        shop.place.ok(&["fork", &format!("r@{tip}"), "--as", "f"]);
        let forked = shop.commit("f", &lines, &[]);
        assert_eq!(words(&forked), words(&main), "{kind:?} {stage} fork");
        shop.place.ok(&["verify", "f", "--replay"]);
    }
}

/// Design, 14.1. Contracts and violations are left out: a rebase has checks of its own for them.
#[test]
fn what_is_proposed_again_is_judged_as_by_commit() {
    let shop = Shop::new(PackKind::Delta, &["contracts", "violations"]);
    // A rebase uses no answer without an output, and a decision is one about the rules that were in force there.
    let lines = lines(PackKind::Delta, |line| {
        !["action.result", "policy.decision"].contains(&line["type"].as_str().unwrap())
    });
    for stage in [1, 2] {
        let main_run = format!("main{stage}");
        shop.begin(&main_run, "strict", stage);
        let main = shop.commit(&main_run, &lines, &["-n"]);

        // The fork of a run whose pack refuses nothing, under the pack.
        let parent = format!("open{stage}");
        let tip = shop.begin(&parent, "open", stage);
        let there = shop.commit(&parent, &lines, &[]);
        let (at, fork) = (format!("{parent}@{tip}"), format!("fork{stage}"));
        let forked =
            shop.json(&["fork", &at, "--as", &fork, "--contract", "strict.json", "--replay-rest", "--skip"]);
        let taken: Vec<u64> = forked["carried"]["ticks"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pair| pair["parent"].as_u64().unwrap())
            .collect();
        let left: BTreeMap<u64, &Value> = forked["carried"]["left_out"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (one["parent"].as_u64().unwrap(), one))
            .collect();
        for (at, (word, tick)) in there.iter().enumerate().filter(|(_, (word, _))| word == "committed") {
            let tick = tick.unwrap();
            let is_taken = taken.contains(&tick);
            let (main, line) = (&main[at].0, &lines[at]);
            assert_eq!(
                is_taken,
                main == "committed",
                "{word} fork {stage}: {line}: {main} {:?}",
                left.get(&tick)
            );
            if let Some(why) = left.get(&tick) {
                let told = why["why"].as_str().unwrap_or_default();
                assert!(why["code"] == json!(main) || why["code"].is_null(), "{line}: {main} {told}");
            }
        }

        // The rebase of a run of stage 0 onto a run of the stage that has not begun to do anything.
        let source = format!("source{stage}");
        shop.begin(&source, "strict", 0);
        let there = shop.commit(&source, &lines, &[]);
        let onto = format!("onto{stage}");
        let first = r#"{"type":"observation.add","agent":"z"}"#.to_owned();
        let stage_text = stage.to_string();
        let begun = shop.commit(&onto, &[first], &["--pack", "strict.json", "--stage", &stage_text]);
        assert_eq!(words(&begun), ["committed"]);
        let rebased = shop.json(&["rebase", &source, "--onto", &onto, "--skip", "-n"]);
        let fates: BTreeMap<u64, &Value> = rebased["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| (item["source_tick"].as_u64().unwrap(), item))
            .collect();
        for (at, (word, tick)) in there.iter().enumerate().filter(|(_, (word, _))| word == "committed") {
            let fate = fates[&tick.unwrap()];
            let is_carried = fate["fate"] == "carried";
            let main = &main[at].0;
            assert_eq!(
                is_carried,
                main == "committed",
                "{word} rebase {stage}: {}: {main} {fate}",
                lines[at]
            );
        }
    }
}
