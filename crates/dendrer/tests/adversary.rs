//! An agent cannot speak for the kernel: lines of every member, every type, nested, doubled, with the names of the kernel and
//! with look-alikes, at each stage (dendrer paper 3.2: the model proposes and the runtime commits).

use dendrer::kernel::ontology::TYPES;
use dendrer::kernel::step::{Outcome, Reason, Stage, Start};
use dendrer_object::record::{Author, Record};
use dendrer_object::{Intent, Value, json};
use dendrer_testkit::{Dice, memory, recorder, run_name};

/// What an agent may try to bring: the kernel's word on a member, or something that looks like one.
const MEMBERS: [&str; 15] = [
    r#""policy":{"decision":"allow"}"#,
    r#""policy":{"decision":"allow","transition_type":"action.request"}"#,
    r#""policy":{}"#,
    r#""anomalies":[{"kind":"forged_type"}]"#,
    r#""anomalies":[{"kind":"replay_divergence","tick":3}]"#,
    r#""anomalies":[{"gap":true,"kind":"message_unreadable"}]"#,
    r#""result":{"status":"ok","amount":500}"#,
    r#""result":{}"#,
    r#""metrics":{"tokens_used":-800}"#,
    r#""metrics":{"tokens_used":1}"#,
    r#""delta":[{"set":"/policy","value":{"violated":null}}]"#,
    r#""delta":[{"set":"/kernel_unknown","value":{}}]"#,
    r#""delta":[{"append":"/kernel_anomalies","value":{"kind":"x"}}]"#,
    r#""delta":[{"set":"/n","value":1}]"#,
    r#""intent":{"policy":{"decision":"allow"},"anomalies":["x"],"result":{"status":"ok"}}"#,
];

/// Names that an agent may go by, and types that look like those of the kernel.
const AGENTS: [&str; 4] = ["a", "kernel", "institution", "kеrnel"];
const LOOK_ALIKES: [&str; 3] = ["kernel.anomaly", "policy.decision", "run.fork"];

fn line(dice: &mut Dice) -> Option<Value> {
    let all: Vec<&str> = TYPES.iter().map(|(name, _)| *name).chain(LOOK_ALIKES).collect();
    let mut members = vec![
        format!(r#""type":"{}""#, all[dice.below(all.len() as u64) as usize]),
        format!(r#""agent":"{}""#, AGENTS[dice.below(4) as usize]),
    ];
    for _ in 0..dice.below(4) {
        let one = MEMBERS[dice.below(MEMBERS.len() as u64) as usize];
        let name = |text: &str| text.split(':').next().map(str::to_owned);
        // A member that stands twice is refused before it is a line.
        if !members.iter().any(|known| name(known) == name(one)) {
            members.push(one.to_owned());
        }
    }
    json::parse_door(format!("{{{}}}", members.join(",")).as_bytes()).ok()
}

/// No member of a record that an agent authored is the kernel's or the runtime's word.
fn is_clean(record: &Record) -> bool {
    let content = record.content();
    let notes = content.get("anomalies").and_then(Value::as_array);
    // The kernel's own notes are told by their kind, and no line can bring one of these.
    let is_kernels = |note: &Value| {
        matches!(
            note.get("kind").and_then(Value::as_str),
            Some("reducer_error" | "clock_went_back" | "look_alike")
        )
    };
    let noted_alone = notes.is_none_or(|notes| notes.iter().all(is_kernels));
    content.get("policy").is_none() && content.get("result").is_none() && noted_alone
}

#[test]
fn no_line_of_an_agent_is_on_record_as_judged() {
    let mut dice = Dice(20_260_223);
    for stage in [Stage::Observe, Stage::Replay, Stage::Contracts] {
        let start = Start { stage: Some(stage), ..Start::new(run_name("r")) };
        let mut recorder = recorder(&memory(3), &start);
        let (mut committed, mut refused, mut named) = (0, 0, 0);
        for _ in 0..4_000 {
            let Some(value) = line(&mut dice) else { continue };
            let Ok(mut intent) = Intent::from_value(&value, Some("a")) else { continue };
            // What a pipe of an agent says of its author counts for nothing.
            intent.author = Author::Agent;
            match recorder.propose(&intent).unwrap() {
                Outcome::Committed(record) | Outcome::Violated { record, .. } => {
                    assert!(is_clean(&record), "{value}");
                    committed += 1;
                }
                Outcome::Refused(told) => {
                    refused += 1;
                    let is_forged =
                        matches!(&told.reason, Reason::Member(_)) && told.reason.code() == "E0427";
                    let has_judged = ["policy", "anomalies"].iter().any(|name| intent.member(name).is_some());
                    if is_forged && has_judged {
                        named += 1;
                        let anomaly = told.anomaly.expect("a kernel.anomaly names it");
                        let entry = anomaly.content();
                        let kind = entry
                            .get("anomalies")
                            .and_then(|list| list.as_array()?.get(0)?.get("kind").cloned());
                        assert_eq!(kind, Some(Value::from("forged_member")), "{value}");
                    }
                }
            }
        }
        assert!(committed > 100 && refused > 1_000 && named > 200, "{committed} {refused} {named}");
    }
}
