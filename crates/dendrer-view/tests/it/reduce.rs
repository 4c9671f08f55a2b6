use dendrer::pack;
use dendrer::reduce::question::ReduceReply;
use dendrer_testkit::run_name;
use dendrer_view::answer::{Answer as _, Page};

use super::{check, repo, risky, text, trace};

const STEPS: &str = "
name: steps
version: v2
goal: count
state:
  steps: {init: 0}
rules:
  - when_type: observation.add
    steps:
      - {add: steps, value: \"t.intent.description == 'step 2' ? t.intent.size : 1\"}
";

#[test]
fn a_run_under_another_pack_names_the_ticks_at_which_a_rule_failed() {
    let store = risky();
    let (source, run) = (trace(&store, "risky"), run_name("again"));
    let pack = pack::read(STEPS.as_bytes()).unwrap();
    let reduced = repo(&store).reduce(&source, &pack, run.clone(), None, None).unwrap();
    let answer = ReduceReply { run, source: source.name().clone(), pack: pack.pack, reduced };
    check(
        &text(&answer, &Page::WIDE),
        r#"
        reduced    4 ticks of risky again under steps v2, as again; 2 wrote to the state
        tip        sha256:f24ef1a79951eb5ff818b7d61d51302782c62cc402d3e71e457230fc290bc408
        WARN       tick 2: rule 1, step 1: t.intent.size is missing
        (stderr) note: at 1 tick a rule met an error; the state does not change there, and the transition notes it
        UNKNOWN    steps (a rule failed at tick 2)
        (stderr) help: dendrer verify again --replay"#,
    );
    let errors = r#"[{"message":"rule 1, step 1: t.intent.size is missing","tick":2}]"#;
    assert_eq!(answer.document().get("errors").map(ToString::to_string).as_deref(), Some(errors));
}
