//! `spent(EXPR)`: a running sum over the committed calls that a commitment judged (design, section 14.2).

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use dendrer_kernel::commitment::Commitments;
use dendrer_kernel::reduce::DeltaReducer;
use dendrer_kernel::replay::{replay_start, replay_step};
use dendrer_kernel::step::{Inputs, KERNEL_VERSION, Outcome, RunState, Seeds, Stage, Start, begin, step};
use dendrer_object::record::Record;
use dendrer_object::{Intent, StoreId, Timestamp, Value, json};

fn inputs(n: u64) -> Inputs {
    Inputs { clock: Timestamp::from_ms(n), seeds: Seeds::of_secret(u128::from(n + 1).to_be_bytes()) }
}

struct Run {
    head: RunState,
    first: Record,
    chain: Vec<Record>,
}

impl Run {
    fn new(stage: Stage, holds: &str) -> Run {
        let start = Start { stage: Some(stage), ..Start::new("r".parse().unwrap()) };
        let (first, head) = begin(StoreId([5; 16]), &start, inputs(0)).unwrap();
        let mut run = Run { head, first, chain: Vec::new() };
        let user = format!(
            r#"{{"type":"observation.add","commitments":[{{"id":"B","type":"obl","hard":true,"gloss":"at most 100","guard":"action.tool == 'pay'","holds":{holds:?}}}]}}"#
        );
        assert!(run.line(&user, true));
        run
    }

    /// Whether a line is committed.
    fn line(&mut self, text: &str, by_user: bool) -> bool {
        let intent = Intent::from_value(&json::parse_door(text.as_bytes()).unwrap(), Some("a")).unwrap();
        let intent = if by_user { intent.by_user() } else { intent };
        match step(&mut self.head, &intent, inputs(self.chain.len() as u64 + 1)).unwrap() {
            Outcome::Committed(record) => {
                self.chain.push(record);
                true
            }
            Outcome::Refused(_) => false,
            Outcome::Violated { .. } => panic!("no predicate"),
        }
    }

    fn pay(&mut self, amounts: &[&str]) -> bool {
        let call = |amount: &&str| format!(r#"{{"tool":"pay","params":{{"amount":{amount}}}}}"#);
        let calls: Vec<String> = amounts.iter().map(call).collect();
        self.line(
            &format!(r#"{{"type":"action.request","action":{{"calls":[{}]}}}}"#, calls.join(",")),
            false,
        )
    }

    /// Replay makes the same records, and reading them finds the same commitments.
    fn check(&self) {
        let mut head = replay_start(&self.first, &DeltaReducer).unwrap();
        let mut read = Commitments::none(KERNEL_VERSION);
        for record in &self.chain {
            replay_step(&mut head, record, &DeltaReducer, true).unwrap();
            read.take(record);
        }
        assert_eq!(head.commitments(), self.head.commitments());
        assert_eq!(&read, self.head.commitments());
        let kept = Commitments::from_kept(KERNEL_VERSION, &read.to_kept());
        assert_eq!(&kept, self.head.commitments());
    }
}

#[test]
fn spent_is_a_running_sum() {
    let mut run = Run::new(
        Stage::Full.min(Stage::Contracts),
        "spent(action.params.amount) + action.params.amount <= 100",
    );
    assert!(run.pay(&["60"]));
    assert!(!run.pay(&["50"]), "60 and 50 are more than 100");
    assert!(run.pay(&["30"]), "what was refused is not spent");
    // The calls of a line before count: 90 and 6 and 6.
    assert!(!run.pay(&["6", "6"]));
    assert!(run.pay(&["6", "4"]));
    assert!(!run.pay(&["1"]));
    // Another tool spends nothing.
    assert!(run.line(r#"{"type":"action.request","action":{"tool":"quote","params":{"amount":7}}}"#, false));
    assert!(run.pay(&["0"]));
    run.check();
}

#[test]
fn amounts_with_fractions_are_summed_as_doubles() {
    let mut run = Run::new(
        Stage::Contracts,
        "spent(double(action.params.amount)) + double(action.params.amount) <= 10.0",
    );
    assert!(run.pay(&["7.5"]) && run.pay(&["2.5"]) && !run.pay(&["0.25"]));
    run.check();
}

/// Below stage 2 nothing is refused; an amount that cannot be told makes the sum unknown from there on.
#[test]
fn an_amount_that_cannot_be_told_makes_the_sum_unknown() {
    let mut run = Run::new(Stage::Replay, "spent(action.params.amount) + action.params.amount <= 100");
    assert!(run.pay(&["60"]) && run.pay(&["70"]));
    assert!(run.pay(&["\"ten\""]));
    assert!(run.pay(&["1"]));
    let last = run.chain.last().unwrap().content();
    assert!(last.get("anomalies").unwrap().to_string().contains("cannot_be_judged"), "{last}");
    run.check();
}

#[test]
fn a_discharge_has_no_sum() {
    let line =
        r#"{"commitments":[{"id":"B","type":"goal","gloss":"g","discharge":"spent(action.params.n) > 3"}]}"#;
    let value: Value = json::parse_door(line.as_bytes()).unwrap();
    assert_eq!(dendrer_kernel::commitment::check(&value).unwrap_err().path, "/commitments/0/discharge");
}
