use dendrer::Trace;
use dendrer::change::conflicts::{AskedConflicts, conflicts, decide};
use dendrer::merge::{MergeInput, MergeTerms, Resolution, Strategy, Take, merge};
use dendrer::recorder::Fixed;
use dendrer::store::Shared;
use dendrer_testkit::run_name;
use dendrer_view::answer::{Answer as _, Page};

use super::{add_run, check, path, risky, text, trace};

/// Two runs that end at different risks, merged with both values kept.
fn merged() -> (Shared, Trace) {
    let store = risky();
    add_run(&store, "calm", &[0.3]);
    let (a, b) = (trace(&store, "risky"), trace(&store, "calm"));
    let sources = [MergeInput { trace: &a, tick: a.tip() }, MergeInput { trace: &b, tick: b.tip() }];
    let artifacts = vec![path("/risk")];
    let terms = MergeTerms {
        run: run_name("both"),
        artifacts,
        strategy: Strategy::Manual,
        seed_only: true,
        although: None,
    };
    let (mut recorder, _) = merge(&sources, &store, &terms, Box::new(Fixed::new("both", 0, 1))).unwrap();
    recorder.commit().unwrap();
    let trace = trace(&store, "both");
    (store, trace)
}

fn take(side: &str) -> Resolution {
    let take = Take::Side(side.to_owned());
    Resolution { path: path("/risk"), take, reason: "it was measured later".into(), agent: "operator".into() }
}

#[test]
fn open_conflict_lists_every_value() {
    let (_, trace) = merged();
    let answer = conflicts(&trace, AskedConflicts::Kept).unwrap();
    check(
        &text(&answer, &Page::WIDE),
        r#"
        risk   open: all are kept, and nothing stands there
          a risky@4   0.9   written at tick 4, record 0a0ad59cc944
          b calm@1   0.3   written at tick 1, record e0e1d1f41bc6
        1 of 1 conflict, 1 open"#,
    );
    assert_eq!(answer.document().get("open").and_then(|open| open.as_u64()), Some(1));
}

#[test]
fn decided_conflict_names_the_side_and_the_reason() {
    let (store, _) = merged();
    let world = || Box::new(Fixed::new("resolve", 0, 1));
    let dry = decide(&store, &run_name("both"), &take("b"), world(), true).unwrap();
    check(
        &text(&dry, &Page::WIDE),
        r#"
        would set  risk = 0.3   b taken
        (stderr) nothing was written (dry run)"#,
    );
    let done = decide(&store, &run_name("both"), &take("calm"), world(), false).unwrap();
    check(
        &text(&done, &Page::WIDE),
        r#"
        resolved   risk = 0.3   b taken, as both@1   hash 00f6ed2acb57"#,
    );
    let answer = conflicts(&trace(&store, "both"), AskedConflicts::At(&path("/risk"))).unwrap();
    check(
        &text(&answer, &Page::WIDE),
        r#"
        risk   b taken at tick 1: "it was measured later"
          a risky@4   0.9   written at tick 4, record 0a0ad59cc944
          b calm@1   0.3   written at tick 1, record e0e1d1f41bc6
        1 of 1 conflict, 0 open"#,
    );
}
