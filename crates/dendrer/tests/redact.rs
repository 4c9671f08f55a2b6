//! Redaction on a corpus of labelled secrets and look-alikes (witness-log paper 2.4).

#![expect(clippy::print_stdout, reason = "the figures of docs/redaction.md")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::collections::BTreeMap;

use dendrer::redact::{PackRules, RedactionProfile, Redactor, TakenSecrets};
use dendrer_object::{Value, json};
use dendrer_testkit::Dice;
use dendrer_testkit::secrets::{SecretClass, corpus};

fn redactor() -> Redactor {
    Redactor::new(RedactionProfile::Default, &PackRules::default(), &[], None).unwrap()
}

/// Writes the corpus for other programs, if `scripts/bench-secrets.sh` asks for it.
fn write_corpus() {
    let Some(directory) = std::env::var_os("DENDRER_CORPUS_TO").map(std::path::PathBuf::from) else { return };
    let mut labels = String::new();
    for (number, case) in corpus(1, 4_000).iter().enumerate() {
        let file = format!("{number:05}.txt");
        std::fs::write(directory.join(&file), format!("{}\n", case.text)).unwrap();
        let class = case.secret.as_ref().map(|(class, _)| Value::from(format!("{class:?}")));
        let label = Value::record([("class", class.unwrap_or(Value::Null)), ("file", Value::from(file))]);
        labels.push_str(&format!("{}\n", json::to_string(&label)));
    }
    std::fs::write(directory.join("labels.jsonl"), labels).unwrap();
}

/// W-34 to W-38, W-77, W-78.
#[test]
fn secrets_are_taken_and_look_alikes_stay() {
    let redactor = redactor();
    let (mut found, mut all): (BTreeMap<SecretClass, u64>, BTreeMap<SecretClass, u64>) = Default::default();
    let (mut damaged, mut kept, mut wrong) = (0, 0, 0);
    let mut missed = Vec::new();
    write_corpus();
    for case in corpus(1, 4_000) {
        let (made, taken) = redactor.text(&case.text);
        assert_eq!(redactor.text(&made), (made.clone(), TakenSecrets::default()), "{}", case.text);
        match &case.secret {
            Some((class, secret)) => {
                *all.entry(*class).or_default() += 1;
                // A rest of four characters and more would help to find it.
                match !made.contains(&secret[..secret.len().min(8)])
                    && !made.contains(&secret[secret.len() - 8..])
                {
                    true => *found.entry(*class).or_default() += 1,
                    false => missed.push((*class, case.text.clone(), made)),
                }
            }
            None => {
                kept += 1;
                if made != case.kept {
                    damaged += 1;
                    wrong += taken.iter().map(|(_, count)| count).sum::<u64>();
                    missed.push((SecretClass::Shape, case.text.clone(), made));
                }
            }
        }
    }
    let share = |class: SecretClass| found.get(&class).copied().unwrap_or(0) as f64 / all[&class] as f64;
    let right: u64 = found.values().sum();
    let recall = right as f64 / all.values().sum::<u64>() as f64;
    let precision = right as f64 / (right + wrong) as f64;
    let damage = f64::from(damaged) / f64::from(kept);
    let [shape, named, prose, disguised] =
        [SecretClass::Shape, SecretClass::Named, SecretClass::Prose, SecretClass::Disguised].map(share);
    println!("redaction: shape {shape:.3} named {named:.3} prose {prose:.3} disguised {disguised:.3}");
    println!("redaction: recall {recall:.3} precision {precision:.3} damaged {damage:.4}");
    for (class, text, made) in missed.iter().step_by(1 + missed.len() / 40) {
        println!("{class:?}: {text:?} -> {made:?}");
    }
    assert!(shape >= 0.99 && named >= 0.95 && prose >= 0.4 && disguised >= 0.6, "see above");
    assert!(recall >= 0.9 && precision >= 0.97 && damage <= 0.01, "see above");
}

/// Our own ids, digests and counters are never damaged (X-1).
#[test]
fn what_dendrer_itself_writes_stays() {
    let mut dice = Dice(3);
    for _ in 0..500 {
        let hex = dendrer_testkit::secrets::drawn(&mut dice, b"0123456789abcdef", 64);
        let text = format!(
            r#"{{"id":"sha256:{hex}","prev":"sha256:{hex}","metrics":{{"tokens_used":{}}},"short":"{}","intent_context_hash":"sha256:{hex}","key":"step-{}"}}"#,
            dice.below(100_000),
            &hex[..12],
            dice.below(100),
        );
        let value = json::parse_door(text.as_bytes()).unwrap();
        assert_eq!(redactor().value(&value), (value, TakenSecrets::default()), "{text}");
        assert_eq!(redactor().text(&text).0, text);
    }
}

/// W-35, W-36, W-69, W-70: the named profile, also where it destroys innocent data.
#[test]
fn the_profile_of_the_package_is_kept_to_the_letter() {
    let carl = Redactor::new(RedactionProfile::Carl1, &PackRules::default(), &[], None).unwrap();
    let value = json::parse_door(br#"{"monkey":1,"a":{"max_tokens":5},"list":["x"],"Bearer":null}"#).unwrap();
    let made = carl.value(&value).0.to_string();
    assert_eq!(
        made,
        r#"{"Bearer":"<redacted>","a":{"max_tokens":"<redacted>"},"list":["x"],"monkey":"<redacted>"}"#
    );
}

/// What a pack adds, and what it keeps.
#[test]
fn a_pack_adds_names_and_shapes_and_keeps_others() {
    let pack = br#"{"redact":{"names":["badge"],"shapes":{"ticket":"TCK-[0-9]{6}"},"keep":["TCK-000000"]}}"#;
    let rules = PackRules::of_pack(&json::parse_door(pack).unwrap()).unwrap();
    let redactor = Redactor::new(RedactionProfile::Default, &rules, &[], None).unwrap();
    let made = redactor.text("badge=abcd and TCK-123456 and TCK-000000").0;
    assert_eq!(made, "badge=<redacted:named> and <redacted:ticket> and TCK-000000");
    assert_ne!(redactor.rules().digest, self::redactor().rules().digest);
    for wrong in [
        r#"{"redact":1}"#,
        r#"{"redact":{"shapes":{"x":"("}}}"#,
        r#"{"redact":{"shape":{}}}"#,
        r#"{"redact":{"names":"x"}}"#,
    ] {
        assert!(PackRules::of_pack(&json::parse_door(wrong.as_bytes()).unwrap()).is_err(), "{wrong}");
    }
    let none = Redactor::new(RedactionProfile::None, &rules, &[], None).unwrap();
    let value = Value::from("badge=abcd");
    assert_eq!(none.value(&value), (value, TakenSecrets::default()));
}
