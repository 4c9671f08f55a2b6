use dendrer::kernel::step::Start;
use dendrer::rebase::RebaseTerms;
use dendrer::rebase::question::RebaseReply;
use dendrer_testkit::{record, run_name};
use dendrer_view::answer::{Answer as _, End, Page};

use super::{add_run, check, repo, risky, text, trace, value};

#[test]
fn each_intent_has_a_line_with_its_fate() {
    let store = risky();
    add_run(&store, "calm", &[0.1, 0.2]);
    let (source, base) = (trace(&store, "risky"), trace(&store, "calm"));
    let mut terms = RebaseTerms::new(run_name("risky-rebase-1"));
    terms.reason = Some("calm first".into());
    let (mut recorder, rebased) = repo(&store).rebase(&source, &base, 1, &terms, None).unwrap();
    let tip = recorder.head().tick();
    recorder.discard();
    let written = RebaseReply {
        rebased,
        run: terms.run,
        onto: base.name().clone(),
        tick: 1,
        reason: terms.reason.as_deref().map(str::to_owned),
        tip: Some(tip),
        plan: false,
        dry_run: false,
    };
    check(
        &text(&written, &Page::WIDE),
        r#"
        replayed   calm@1 and risky from tick 1 on OK
        rebased    risky-rebase-1: risky onto calm@1   its tick 2 is run.fork
        reason     "calm first"
          tick 1  observation.add  -  as 3: a fact
          tick 2  observation.add  -  as 4: a fact
          tick 3  observation.add  -  as 5: a fact
          tick 4  observation.add  -  as 6: a fact
        result: 4 intents carry over; risky-rebase-1 ends at tick 6
        (stderr) note: no model and no tool was called; a program that can ask tools brings its own executor
        (stderr) help: dendrer verify risky-rebase-1 --replay"#,
    );
    let plan = RebaseReply { tip: None, plan: true, ..written.clone() };
    check(
        &text(&plan, &Page { width: Some(40), ..Page::WIDE }),
        r#"
          tick 1  observation.add  -  as 3: a
            fact
          tick 2  observation.add  -  as 4: a
            fact
          tick 3  observation.add  -  as 5: a
            fact
          tick 4  observation.add  -  as 6: a
            fact
        plan: 4 intents carry over; nothing was
          written
        (stderr) note: no model and no tool was called; a
        (stderr)   program that can ask tools brings its
        (stderr)   own executor"#,
    );
    assert_eq!((written.end(), plan.end()), (End::Answered, End::Answered));
}

#[test]
fn an_intent_that_does_not_fit_ends_a_rebase() {
    let store = risky();
    record(&store, &Start { state: value(r#"{"notes":"none"}"#), ..Start::new(run_name("empty")) }, []);
    let terms = RebaseTerms::new(run_name("stopped"));
    let (source, base) = (trace(&store, "risky"), trace(&store, "empty"));
    let (mut recorder, rebased) = repo(&store).rebase(&source, &base, 0, &terms, None).unwrap();
    recorder.discard();
    let answer = RebaseReply {
        rebased,
        run: terms.run,
        onto: base.name().clone(),
        tick: 0,
        reason: None,
        tip: None,
        plan: false,
        dry_run: false,
    };
    check(
        &text(&answer, &Page::WIDE),
        r#"
        replayed   empty@0 and risky from tick 1 on OK
        would make stopped: risky onto empty@0   its tick 1 is run.fork
          tick 1  observation.add  STOP  its change does not fit here: delta operation 1 at notes: append needs an array, and there is a string
        result: 0 intents carry over, 1 needs a decision, 3 behind it not looked at; nothing was written
        (stderr) note: no model and no tool was called; a program that can ask tools brings its own executor"#,
    );
    assert_eq!(answer.end(), End::No);
}
