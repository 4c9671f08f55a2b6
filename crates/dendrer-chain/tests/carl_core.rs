//! Rows beside `carl-core` 0.2.0, which wrote this format first.

use std::io::Write as _;
use std::process::{Command, Stdio};

use dendrer_chain::{
    ActionType, ChainFile, InteractionChain, RowText, RowValue, Step, StepStamp, hashed,
    verify_step_content_hash,
};
use dendrer_object::time::Timestamp;

/// Runs a program of Python with `carl-core`; `None`, said loudly, where it is not installed.
fn python(program: &str, input: &str) -> Option<String> {
    let python = std::env::var("DENDRER_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has = Command::new(&python).args(["-c", "import carl_core.interaction"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        assert!(std::env::var_os("DENDRER_PYTHON").is_none(), "{python} has no package carl-core");
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: {python} has no package carl-core; rows are not compared with it"
        );
        return None;
    }
    let mut child = Command::new(&python)
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python starts");
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("python ends");
    writer.join().expect("no panic").expect("python reads");
    assert!(output.status.success(), "python failed");
    Some(String::from_utf8(output.stdout).expect("ASCII"))
}

/// Prints random chains, each as one line of JSON: the text of the file, and what carl-core answers about it.
const RANDOM: &str = include_str!("random_chains.py");

#[test]
fn ten_thousand_chains_are_read_and_written_byte_for_byte() {
    let Some(printed) = python(RANDOM, "") else { return };
    let mut rows = 0;
    for line in printed.lines() {
        let said = RowValue::parse(line).expect("JSON of Python");
        let text = said.get("text").and_then(RowValue::as_str).expect("text");
        let file = ChainFile::read(text.as_bytes()).expect("a chain");
        assert_eq!(file.header.as_ref().map(ToString::to_string), file.header_text);
        let mut chain = InteractionChain::begun(file.chain_id(), file.started_at().expect("started_at"));
        for row in &file.rows {
            assert_eq!(row.faults, []);
            assert_eq!(row.is_hash_right(), Some(true), "{}", row.text);
            let step = row.step.clone().expect("a step");
            // The value, the step and the scrubbed step are the text again: what carl-core took stays taken.
            assert_eq!(row.value.as_ref().expect("a value").to_string(), row.text);
            assert_eq!(hashed(step.to_row_as_is(), None).to_string(), row.text);
            assert_eq!(hashed(step.to_row(), None).to_string(), row.text);
            chain.append(step, None);
            rows += 1;
        }
        assert_eq!(Some(chain.success_rate()), said.get("rate").and_then(RowValue::as_f64));
        assert_eq!(Some(chain.len() as f64), said.get("n").and_then(RowValue::as_f64));
        let calls = chain.by_action(ActionType::ToolCall).count();
        assert_eq!(Some(calls as f64), said.get("calls").and_then(RowValue::as_f64));
        let Some(RowValue::List(trajectory)) = said.get("trajectory") else { panic!("a list") };
        let ours = chain.coherence_trajectory().into_iter().map(|(at, phi)| {
            RowValue::List(vec![RowValue::from(at), phi.map_or(RowValue::Null, RowValue::Float)])
        });
        assert_eq!(&ours.collect::<Vec<_>>(), trajectory);
    }
    assert!(rows > 20_000, "{rows} rows");
}

/// Reads files, one to a line as a JSON string; prints for each how many steps carl-core loads, which hashes it finds right, and what
/// it writes again.
const LOADS: &str = r#"
import json, sys, tempfile
from carl_core.interaction import verify_step_content_hash
from carl_core.interaction_store import InteractionStore
with tempfile.TemporaryDirectory() as root:
    store = InteractionStore(root)
    for line in sys.stdin:
        with open(root + "/c.jsonl", "w") as f: f.write(json.loads(line))
        rows = [json.loads(row) for row in open(root + "/c.jsonl").read().split("\n")[1:] if row]
        chain = store.load("c")
        print(json.dumps([len(chain), all(map(verify_step_content_hash, rows)), chain.to_jsonl().split("\n")[1:]]))
"#;

#[test]
fn carl_core_loads_what_is_written_here_and_loses_what_the_page_says() {
    let at = Timestamp::from_ms(1_776_000_000_120);
    let mut text = String::new();
    for n in 0..200_u64 {
        let mut chain = InteractionChain::new(&format!("{n:012x}"), at);
        for (k, action) in ActionType::ALL.iter().enumerate() {
            let mut step = Step::new(*action, "é name", StepStamp::new((n << 40) | (k as u64) << 20, at));
            step.input = RowValue::Object(vec![(RowText::from("n"), RowValue::Float(n as f64 / 3.0))]);
            step.probe_call =
                Some(RowValue::Object(vec![(RowText::from("probe_name"), RowValue::from("p"))]));
            step.others = vec![(RowText::from("semantic_refs"), RowValue::List(Vec::new()))];
            chain.record(step);
        }
        text.push_str(&RowValue::from(&*(chain.to_jsonl() + "\n")).to_string());
        text.push('\n');
    }
    let Some(printed) = python(LOADS, &text) else { return };
    assert_eq!(printed.lines().count(), 200);
    for line in printed.lines() {
        let Ok(RowValue::List(said)) = RowValue::parse(line) else { panic!("a list") };
        assert_eq!(said[0].as_f64(), Some(ActionType::ALL.len() as f64));
        assert_eq!(said[1], RowValue::Bool(true));
        let RowValue::List(again) = &said[2] else { panic!("a list") };
        for row in again {
            let row = RowValue::parse(row.as_str().expect("text")).expect("JSON");
            assert_eq!(row.get("probe_call"), Some(&RowValue::Null));
            assert_eq!((row.get("semantic_refs"), row.get("prev_hash")), (None, None));
            assert!(verify_step_content_hash(&row));
        }
    }
}
