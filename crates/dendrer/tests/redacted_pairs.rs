//! Pairs of runs that differ in secrets alone: their difference is found or named as open, whatever tags they have, and no import
//! passes over it (design, 14.4). `DENDRER_PAIRS=10000` takes more.

use std::ops::ControlFlow;
use std::sync::Arc;

use dendrer::Trace;
use dendrer::cherrypick::{Candidate, Imported, PickTerms, import};
use dendrer::diff::{DiffAlign, DiffTerms, diff};
use dendrer::pack::{self, Source};
use dendrer::recorder::{Fixed, Recorder};
use dendrer::redact::{PackRules, RedactionProfile, Redactor};
use dendrer::store::Shared;
use dendrer_kernel::contract::{FieldFault, ImportRefused};
use dendrer_kernel::step::{Outcome, Stage, Start};
use dendrer_object::{Intent, Value, json};
use dendrer_testkit::{Dice, memory, run_name};

const PACK: &str = "name: keys\nversion: v1\nreducer: delta/1\nstate:\n  token: {init: null}\n  note: {init: null}\n\
    types: {act: acts}\ncontracts:\n  act:\n    required_state:\n      token: {type: any, nullable: true}\n\
    \x20     note: {type: any, nullable: true}\n    hash_seeds: [token, note]\nviolations:\n  - {id: never, condition: 'state.note == 7', bisect_predicate: monotone_lift}\n";

fn value(text: &str) -> Value {
    json::parse_door(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// A secret by its number, and whether it has a tag: 8 characters or more, and not digits alone.
fn secret(dice: &mut Dice) -> (fn(u64) -> String, bool) {
    match dice.below(4) {
        0 => (|n| format!("Gr8-pass-{n:04}-x"), true),
        1 => (|n| format!("k{n:04}Q"), false),
        2 => (|n| format!("{}", 83_105_000 + n), false),
        _ => (|n| format!("ghp_8fK2mQ9sLw3vNx71bTgHpZ4cVdE5gH{n:04}"), true),
    }
}

/// The places at which a secret stands in a line, each of which some rule takes.
const PLACES: [&str; 6] = [
    r#"{"type":"act","action":{"tool":"login","params":{"user":"bob","password":"SECRET"}},"delta":[]}"#,
    r#"{"type":"act","intent":{"description":"set DB_PASSWORD=SECRET and start"},"delta":[]}"#,
    r#"{"type":"act","delta":[{"set":"/note","value":{"password":"SECRET"}}]}"#,
    r#"{"type":"act","delta":[{"set":"/note","value":"DB_PASSWORD=SECRET"}]}"#,
    r#"{"type":"act","action":{"tool":"run","params":{"env":[{"name":"DB_PASSWORD","value":"SECRET"}]}},"delta":[]}"#,
    r#"{"type":"act","intent":{"description":"log in"},"action":{"tool":"t","params":{"argv":["--password","SECRET"]}},"delta":[]}"#,
];

struct Bench {
    store: Shared,
    pack: Source,
    tagged: Arc<Redactor>,
    bare: Arc<Redactor>,
}

impl Bench {
    fn new() -> Bench {
        let of = |key| Redactor::new(RedactionProfile::Default, &PackRules::default(), &[], key);
        let of = |key| Arc::new(of(key).unwrap_or_else(|error| panic!("{error}")));
        let pack = pack::read(PACK.as_bytes()).unwrap_or_else(|problems| panic!("{problems:?}"));
        Bench { store: memory(9), pack, tagged: of(Some([7; 32])), bare: of(None) }
    }

    /// Records a run that holds a secret in its state, and in one line at a place.
    fn record(&self, run: &str, secret: &str, place: &str, redactor: &Arc<Redactor>) -> Trace {
        let start = Start { stage: Some(Stage::Contracts), ..Start::new(run_name(run)) };
        let start = self.pack.bind(start).unwrap_or_else(|error| panic!("{error}"));
        let mut recorder =
            Recorder::begin(&self.store, &start, Box::new(Fixed::new(run, 1_790_000_000_000, 1_000)))
                .unwrap_or_else(|error| panic!("{error}"))
                .redacting(Some(Arc::clone(redactor)));
        let set =
            format!(r#"[{{"set":"/token","value":{{"passphrase":"{secret}","password":"{secret}"}}}}]"#);
        let first = format!(r#"{{"type":"plan.update","delta":{set}}}"#);
        for line in [first, place.replace("SECRET", secret)] {
            let intent =
                Intent::from_value(&value(&line), Some("a")).unwrap_or_else(|error| panic!("{error:?}"));
            let outcome = recorder.propose(&intent).unwrap_or_else(|error| panic!("{error}"));
            assert!(matches!(outcome, Outcome::Committed(_)), "{outcome:?}");
        }
        recorder.commit().unwrap_or_else(|error| panic!("{error}"));
        Trace::open(&self.reader(), &run_name(run)).unwrap_or_else(|error| panic!("{error}"))
    }

    fn reader(&self) -> Arc<dyn dendrer_store::Store> {
        Arc::new(self.store.clone())
    }
}

#[test]
fn runs_that_differ_in_secrets_alone_are_never_equal() {
    let pairs: u64 = std::env::var("DENDRER_PAIRS").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    let mut dice = Dice(51);
    let bench = Bench::new();
    for n in 0..pairs {
        let (spell, has_tag) = secret(&mut dice);
        let place = PLACES[dice.below(PLACES.len() as u64) as usize];
        let (x, is_same) = (dice.below(9_000), dice.below(3) == 0);
        let y = if is_same { x } else { x + 1 + dice.below(900) };
        let redactor = if dice.below(4) == 0 { &bench.bare } else { &bench.tagged };
        let is_tagged = has_tag && Arc::ptr_eq(redactor, &bench.tagged);
        let a = bench.record(&format!("a-{n}"), &spell(x), place, redactor);
        let b = bench.record(&format!("b-{n}"), &spell(y), place, redactor);
        let what = format!("{place} {} {} tagged {is_tagged}", spell(x), spell(y));
        for align in [DiffAlign::Tick, DiffAlign::Content] {
            let terms = DiffTerms { align, ..DiffTerms::new(&a, &b) };
            let report = diff(&a, &b, &terms, &mut |_| ControlFlow::Continue(()));
            let report = report.unwrap_or_else(|error| panic!("{error}"));
            match (is_tagged, is_same) {
                (true, true) => assert!(!report.differs() && report.hidden == 0, "{what}"),
                (true, false) => assert!(report.differs(), "{what}"),
                (false, _) => assert!(!report.differs() && report.hidden > 0, "{what}"),
            }
        }
        let candidate = Candidate::read(&a, 2).unwrap_or_else(|error| panic!("{error}"));
        let mut pick = candidate.check(&b, 1).unwrap_or_else(|error| panic!("{error}"));
        let at = Box::new(Fixed::new("import", 1_790_000_000_000, 1_000));
        let into = run_name(&format!("b-{n}"));
        let imported = import(&bench.store, &into, &mut pick, 2, at, PickTerms::default());
        let is_in = matches!(imported.unwrap_or_else(|error| panic!("{error}")), Imported::Done { .. });
        assert_eq!(is_in, is_tagged && is_same, "{what}");
        if let Some(refused) = &pick.checked.refused {
            assert!(matches!(refused, ImportRefused::ContextViolation { .. }), "{refused}");
            let wrong = pick.checked.fields.iter().find_map(|field| field.wrong.clone());
            assert_eq!(
                wrong,
                Some(if is_tagged { FieldFault::Differs } else { FieldFault::Redacted }),
                "{what}"
            );
        }
    }
}
