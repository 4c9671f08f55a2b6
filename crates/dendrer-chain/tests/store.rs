//! Chains under many threads, and their files.

use std::sync::{Arc, Mutex};

use dendrer_chain::{
    ActionType, ChainFile, CoherenceSnapshot, InteractionChain, InteractionStore, MemoryFiles, RowValue,
    Step, StepStamp,
};
use dendrer_object::time::Timestamp;

fn step(action: ActionType, name: &str, n: u64) -> Step {
    Step::new(action, name, StepStamp::new((n + 1) << 20, Timestamp::from_ms(n)))
}

/// The state of a connection is its own (W-57): 64 threads with 1,000 chains, each with a probe and a forwarder.
#[test]
fn chains_of_connections_do_not_leak() {
    std::thread::scope(|scope| {
        for thread in 0..64_u64 {
            scope.spawn(move || {
                let mut chains: Vec<(InteractionChain, Arc<Mutex<Vec<String>>>)> = (0..1_000 / 64 + 1)
                    .map(|n| {
                        let name = format!("{thread}-{n}");
                        let mut chain = InteractionChain::new(&name, Timestamp::from_ms(0));
                        let seen = Arc::new(Mutex::new(Vec::new()));
                        let phi = (thread * 100 + n) as f64;
                        let probe =
                            move |_: &Step| Some(CoherenceSnapshot { phi: Some(phi), ..Default::default() });
                        chain.register_coherence_probe(&name, Arc::new(probe));
                        let hears = Arc::clone(&seen);
                        let forward =
                            move |step: &Step| hears.lock().expect("no panic").push(step.name.clone());
                        chain.set_forwarder(Some(Arc::new(forward)));
                        (chain, seen)
                    })
                    .collect();
                for round in 0..20 {
                    for (chain, _) in &mut chains {
                        let name = format!("{} {round}", chain.chain_id());
                        chain.record(step(ActionType::ToolCall, &name, round));
                    }
                }
                for (n, (chain, seen)) in chains.iter().enumerate() {
                    let wanted: Vec<String> = (0..20).map(|round| format!("{thread}-{n} {round}")).collect();
                    let names: Vec<String> = chain.steps().iter().map(|step| step.name.clone()).collect();
                    assert_eq!(names, wanted);
                    assert_eq!(*seen.lock().expect("no panic"), wanted);
                    let phi = (thread * 100 + n as u64) as f64;
                    assert!(chain.steps().iter().all(|step| step.phi == Some(phi)));
                }
            });
        }
    });
}

/// Defaults of the chain (W-24 to W-29, W-68), and that a step which landed stays (W-31).
#[test]
fn a_chain_answers_as_the_paper_says() {
    let mut chain = InteractionChain::new("c", Timestamp::from_ms(0));
    assert_eq!((chain.success_rate(), chain.len(), chain.last()), (1.0, 0, None));
    chain.append(step(ActionType::Gate, "key", 1), Some(RowValue::from("given")));
    let mut failed = step(ActionType::ToolCall, "get", 2);
    (failed.success, failed.phi) = (false, Some(0.5));
    chain.append(failed, None);
    assert_eq!(chain.success_rate(), 0.5);
    assert_eq!(chain.by_action(ActionType::Gate).count(), 1);
    assert_eq!(chain.steps()[0].output, RowValue::from("given"));
    let trajectory = chain.coherence_trajectory();
    assert_eq!(trajectory[0], ("1970-01-01T00:00:00.001000+00:00", None));
    assert_eq!(trajectory[1].1, Some(0.5));
    let again = InteractionChain::from_dict(&chain.to_dict(), |_| unreachable!("nothing is missing"))
        .expect("a chain");
    assert_eq!(again.steps(), chain.steps());
    // No newline ends the text, and each line is JSON.
    assert!(!chain.to_jsonl().ends_with('\n') && chain.to_jsonl().lines().count() == 3);
}

/// Files: a header first, a row for each step, each naming the line before (W-65, W-72, W-73).
#[test]
fn files_of_chains() {
    let mut store = InteractionStore::new(MemoryFiles::default());
    for n in 0..3 {
        store.append("c1", &step(ActionType::ToolCall, "get", n), None).expect("memory");
    }
    let loaded = store.load("c1").expect("memory");
    assert_eq!((loaded.chain.len(), loaded.skipped.len()), (3, 0));
    assert_eq!(store.load("none").expect("memory").chain.len(), 0);
    let mut whole = InteractionChain::new("c2", Timestamp::from_ms(0));
    whole.append(step(ActionType::Reward, "r", 0), None);
    store.append_chain(&whole).expect("memory");
    store.append("c2", &step(ActionType::Reward, "r", 1), None).expect("memory");
    assert_eq!(store.list_chains().expect("memory"), ["c1", "c2"]);
    assert!(store.delete("c1").expect("memory") && !store.delete("c1").expect("memory"));
    for id in ["", "a/b", "a\\b", "..", "a\0"] {
        assert!(store.load(id).is_err(), "{id:?}");
    }
}

/// Each change of a byte of a row, and each row that is removed or moved, is found.
#[test]
fn every_change_of_a_file_is_found() {
    let mut chain = InteractionChain::new("c", Timestamp::from_ms(0));
    for n in 0..4 {
        let mut step = step(ActionType::ToolCall, "get", n);
        step.output = RowValue::from("value");
        chain.append(step, None);
    }
    let text = chain.to_jsonl();
    let faults = |text: &str| match ChainFile::read(text.as_bytes()) {
        Ok(file) => file.rows.iter().map(|row| row.faults.len()).sum::<usize>(),
        Err(_) => 1,
    };
    assert_eq!(faults(&text), 0);
    for at in 0..text.len() {
        let mut bytes = text.clone().into_bytes();
        bytes[at] = if bytes[at] == b'7' { b'8' } else { b'7' };
        let changed = String::from_utf8(bytes).expect("ASCII");
        // A changed space changes no value; the header is what the first row names.
        let is_blank = text.as_bytes()[at] == b' ' || text.as_bytes()[at] == b'\n';
        assert!(faults(&changed) > 0 || is_blank, "byte {at}: {changed}");
    }
    let lines: Vec<&str> = text.lines().collect();
    for gone in 1..4 {
        let rest: Vec<&str> =
            lines.iter().enumerate().filter(|(n, _)| *n != gone).map(|(_, line)| *line).collect();
        assert!(faults(&rest.join("\n")) > 0, "without line {gone}");
    }
}

/// Values whose texts Python would write otherwise if they were not kept apart.
#[test]
fn numbers_and_texts_are_written_as_python_does() {
    for text in [
        "1",
        "1.0",
        "-0.0",
        "1e+16",
        "1e-05",
        "0.0001",
        "1.2345678901234568e+17",
        "5e-324",
        "1.7976931348623157e+308",
        "NaN",
        "Infinity",
        "-Infinity",
        "100000000000000000000000",
        "\"\\ud800\"",
        "\"\\ud83d\\ude00\"",
        "\"\\u00e9\\u2028\\u007f\"",
        "{\"b\": 1, \"a\": [1, 2.5, null, true]}",
        "[]",
        "{}",
    ] {
        assert_eq!(RowValue::parse(text).expect(text).to_string(), text);
    }
    for (text, written) in [
        ("1e16", "1e+16"),
        ("-0", "0"),
        ("1.50", "1.5"),
        ("{\"a\":1,\"a\":2}", "{\"a\": 2}"),
        ("1e400", "Infinity"),
    ] {
        assert_eq!(RowValue::parse(text).expect(text).to_string(), written);
    }
    for text in ["", "01", "+1", ".5", "1.", "nan", "{a:1}", "[1,]", "\"\u{1}\"", "\"\\x\"", "1 2", "\"abc"] {
        assert!(RowValue::parse(text).is_err(), "{text}");
    }
}
