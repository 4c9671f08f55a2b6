//! A graph whose program or executors are killed at any moment goes on: each effect acts once, unless it is asked again, and output
//! and frontier are those of a run that was never killed.
#![cfg(unix)]
#![expect(clippy::print_stdout, reason = "the deep run adds it up")]

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use dendrer_object::{Value, json};
use dendrer_testkit::Dice;

use crate::support::Place;

const GRAPH: &str = "graph trip
n0 order(req) pure
e1 look.price(n0) -> rec frontier[1]
e2 look.stock(n0) -> rec frontier[2]
e3 bank.charge(e1) -> rec frontier[3]
e4 store.put(e2) -> rec frontier[4]
e5 mail.send(e3, e4) -> rec frontier[5]
e6 bank.note(e1) -> rec frontier[6] at once
e7 bank.note(e2) -> rec frontier[7] at once
n1 all(e3, e4, e5, e6) pure
n2 all(n1, e7, e1, e2) pure
replay(graph, frontier) == output required
";

const PACK: &str = "name: trip
version: v1
define:
  order(req): req.to
  \"all(a, b, c, d)\": \"[a, b, c, d]\"
tools:
  look.price: {effect: read}
  look.stock: {effect: read}
  store.put: {effect: idempotent_write}
  bank.charge: {effect: effectful}
  bank.note: {effect: effectful}
  mail.send: {effect: effectful}
";

/// Acts by a line in a file, and answers. The file `die` names an edge that is killed before or after it acts.
const ACT: &str = r#"read l; p=${l#*path\":\"}; p=${p%%\"*}
d=$(cat "$1.die" 2>/dev/null)
if [ "$d" = "$p before" ]; then rm "$1.die"; kill -9 $$; fi
echo "$p" >> "$1.acts"
if [ "$d" = "$p after" ]; then rm "$1.die"; kill -9 $$; fi
echo "{\"did\":\"$p\"}"
"#;

/// The edges whose effects cannot be repeated.
const EFFECTFUL: [&str; 4] = ["e3", "e5", "e6", "e7"];

const CALLS: [&str; 6] = ["look.price", "look.stock", "store.put", "bank.charge", "bank.note", "mail.send"];

fn arguments(name: &str, more: &[String]) -> Vec<String> {
    let fixed = ["graph", "run", "trip.graph", "--pack", "trip.yaml", "--input", "req=req.json", "--json"];
    let calls = CALLS.iter().map(|call| format!("--exec={call}=exec sh act.sh {name}"));
    fixed.into_iter().map(str::to_owned).chain(calls).chain(more.iter().cloned()).collect()
}

fn spawn(place: &Place, name: &str, more: &[String]) -> Child {
    let args = arguments(name, more);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut command = place.command(&args);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).spawn().unwrap()
}

/// How often each edge has acted.
fn acts(place: &Place, name: &str) -> BTreeMap<String, u64> {
    let text = std::fs::read_to_string(place.path().join(format!("{name}.acts"))).unwrap_or_default();
    let mut acts = BTreeMap::new();
    for path in text.lines() {
        *acts.entry(path.to_owned()).or_default() += 1;
    }
    acts
}

/// The frontier file of a run, without its name.
fn frontier(place: &Place, name: &str) -> String {
    let text = place.ok(&["export", name, "--format", "frontier"]);
    text.replace(&format!("\"run\":\"{name}\""), "\"run\":\"\"")
}

/// One run that is interrupted up to three times, until it is closed. Returns how often it was interrupted, and its output.
fn interrupted(place: &Place, name: &str, dice: &mut Dice, whole: Duration) -> (u64, Value) {
    let (mut kills, mut more) = (0, vec!["--as".to_owned(), name.to_owned()]);
    let mut again: BTreeMap<String, u64> = BTreeMap::new();
    let resume = || vec!["--resume".to_owned(), name.to_owned()];
    for attempt in 0..12 {
        let kind = if attempt < 3 { dice.below(4) } else { 3 };
        if kind == 2 {
            let path = format!("e{}", 1 + dice.below(7));
            let when = ["before", "after"][dice.below(2) as usize];
            std::fs::write(place.path().join(format!("{name}.die")), format!("{path} {when}")).unwrap();
        }
        let mut child = spawn(place, name, &more);
        if kind < 2 {
            std::thread::sleep(Duration::from_micros(dice.below(whole.as_micros() as u64 * 5 / 4)));
            let group = rustix::process::Pid::from_child(&child);
            // The program alone, or with its executors as when the machine stops.
            match kind {
                0 => drop(child.kill()),
                _ => drop(rustix::process::kill_process_group(group, rustix::process::Signal::KILL)),
            }
        }
        let output = child.wait_with_output().unwrap();
        // An error is a document too.
        let said = [output.stdout.clone(), output.stderr.clone()].concat();
        let (code, said) = (output.status.code(), String::from_utf8_lossy(&said).into_owned());
        let _ = std::fs::remove_file(place.path().join(format!("{name}.die")));
        kills += u64::from(code != Some(0));
        match code {
            Some(0) => {
                let answer = json::parse_door(&output.stdout).unwrap();
                for path in EFFECTFUL {
                    let (acted, asked) = (acts(place, name).remove(path), again.get(path).copied());
                    let (acted, asked) = (acted.unwrap_or(0), asked.unwrap_or(0));
                    assert!(
                        (1..=1 + asked).contains(&acted),
                        "{name} {path} acted {acted} times, asked again {asked}"
                    );
                }
                return (kills, answer.get("output").unwrap().clone());
            }
            // Killed before its first record: there is no run yet.
            Some(3) if said.contains("E0101") => more = vec!["--as".to_owned(), name.to_owned()],
            Some(5) => {
                let answer = json::parse_door(&output.stdout).unwrap_or_else(|_| panic!("{name}: {said}"));
                more = resume();
                // What the program left behind may still be about to act.
                std::thread::sleep(Duration::from_millis(50));
                let acted = acts(place, name);
                for need in answer.get("needs").unwrap().as_array().unwrap().iter() {
                    let path = need.get("path").unwrap().as_str().unwrap();
                    if acted.get(path).copied().unwrap_or(0) > again.get(path).copied().unwrap_or(0) {
                        let file = format!("{path}.json");
                        std::fs::write(place.path().join(&file), format!("{{\"did\":\"{path}\"}}")).unwrap();
                        more.extend(["--set".to_owned(), format!("{path}={file}")]);
                    } else {
                        *again.entry(path.to_owned()).or_default() += 1;
                        more.extend(["--ask-again".to_owned(), path.to_owned()]);
                    }
                }
                assert!(more.len() > 2, "{name}: {said}");
            }
            Some(8) | None => more = resume(),
            Some(other) => panic!("{name}: exit {other}: {said}"),
        }
    }
    panic!("{name} was not closed");
}

#[test]
fn a_graph_run_that_is_killed_goes_on_and_acts_once() {
    let place = Place::with_store();
    for (name, text) in
        [("trip.graph", GRAPH), ("trip.yaml", PACK), ("act.sh", ACT), ("req.json", r#"{"to":"kim"}"#)]
    {
        std::fs::write(place.path().join(name), text).unwrap();
    }
    let begun = Instant::now();
    let output = spawn(&place, "whole", &["--as".to_owned(), "whole".to_owned()]).wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let whole = begun.elapsed();
    let expected = json::parse_door(&output.stdout).unwrap().get("output").unwrap().clone();
    let known = frontier(&place, "whole");
    let rounds = if std::env::var_os("DENDRER_DEEP").is_some() { 1_200 } else { 40 };
    let mut kills = 0;
    for round in 0..rounds {
        let (name, mut dice) = (format!("r{round}"), Dice(0x5eed + round));
        let (times, output) = interrupted(&place, &name, &mut dice, whole);
        assert_eq!(output, expected, "{name}");
        assert_eq!(frontier(&place, &name), known, "{name}");
        kills += times;
    }
    // On a busy machine a run may be over before it is killed.
    assert!(kills > rounds / 2, "{kills}");
    let verified = place.run(&["verify", "--all", "--replay"]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    println!("deep: graph-kills {kills}");
}
