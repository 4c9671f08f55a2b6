//! Killed at any moment, a recording keeps every line that it acknowledged, and invents none.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::support::Place;

/// What stands in the line of an acknowledgement.
const COMMITTED: &str = "\"what\":\"committed\"";

/// How many times a recording is killed.
const KILLS: u64 = 200;

#[test]
fn sigkill_at_two_hundred_points_loses_nothing_that_was_acknowledged() {
    let place = Place::with_store();
    let mut acknowledged: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut killed_while_busy = 0;
    for round in 0..KILLS {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // Taking a run up again costs what the run is long, so each of them is killed twenty times and no more.
        let run = format!("r{}", round / 20);
        let mut child = place
            .command(&["commit", "--run", &run, "--jsonl"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let feeder = std::thread::spawn(move || {
            for n in 0..3000u64 {
                let line = format!(
                    "{{\"type\":\"plan.update\",\"delta\":[{{\"set\":\"/n\",\"value\":{}}}],\"intent\":{{\"description\":\"{}\"}}}}\n",
                    round * 10_000 + n,
                    "x".repeat((n % 700) as usize)
                );
                if stdin.write_all(line.as_bytes()).is_err() {
                    return;
                }
            }
        });
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        let reader = std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).for_each(|line| send.send(line).unwrap());
        });
        // Every other round is killed while it acknowledges, the others at any moment, start-up included.
        let mut seen = Vec::new();
        if round % 2 == 0 {
            for line in &lines {
                let is_first = line.contains(COMMITTED);
                seen.push(line);
                if is_first {
                    break;
                }
            }
        }
        std::thread::sleep(Duration::from_micros(500 + (state >> 33) % 40_000));
        child.kill().unwrap();
        let status = child.wait().unwrap();
        killed_while_busy += u64::from(!status.success());
        feeder.join().unwrap();
        reader.join().unwrap();
        // The last line may be cut by the kill; a line is an acknowledgement when it is whole.
        let whole = |line: &String| line.contains(COMMITTED) && line.ends_with('}');
        acknowledged.entry(run).or_default().extend(seen.into_iter().chain(lines).filter(whole));
    }
    assert!(killed_while_busy > KILLS / 2, "{killed_while_busy}");
    assert!(acknowledged.values().all(|lines| !lines.is_empty()));
    for (run, lines) in &acknowledged {
        let log = place.ok(&["log", run, "-n", "0", "--jsonl"]);
        let ids: BTreeMap<u64, String> = log
            .lines()
            .filter_map(|line| {
                let item = dendrer_object::json::parse_tagged(line.as_bytes()).unwrap();
                Some((item.get("tick")?.as_u64()?, item.get("id")?.as_str()?.to_owned()))
            })
            .collect();
        for line in lines {
            let item = dendrer_object::json::parse_tagged(line.as_bytes()).unwrap();
            let tick = item.get("tick").unwrap().as_u64().unwrap();
            let id = item.get("id").unwrap().as_str();
            assert_eq!(ids.get(&tick).map(String::as_str), id, "{run}@{tick} was acknowledged");
        }
        assert_eq!(ids.len() as u64, *ids.keys().last().unwrap(), "the ticks of {run} have no gaps");
    }
    let verified = place.run(&["verify", "--all", "--replay"]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
}

#[test]
fn a_demo_that_is_killed_is_in_nobodys_way() {
    let place = Place::new();
    let mut child =
        place.command(&["demo", "big", "--size", "1_000_000"]).stdout(Stdio::null()).spawn().unwrap();
    let begun =
        || std::fs::read_dir(place.path().join("big")).is_ok_and(|mut entries| entries.next().is_some());
    while !begun() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it began");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!place.path().join("big/.dendrer").exists());
    place.ok(&["demo", "big", "--size", "10"]);
    place.ok(&["verify", "--all", "--store", "big"]);
}
