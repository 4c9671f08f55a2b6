use std::path::Path;

use dendrer::cherrypick::question::CherrypickReply;
use dendrer::cherrypick::{Candidate, Imported, PickTerms};
use dendrer::kernel::contract::ImportRefused;
use dendrer::kernel::step::{Stage, Start};
use dendrer::pack;
use dendrer::store::Shared;
use dendrer_object::Code;
use dendrer_object::Intent;
use dendrer_testkit::{memory_with_key, record, run_name};
use dendrer_view::answer::{Answer as _, End, Page};
use dendrer_view::cherrypick::CherrypickAnswer;
use dendrer_view::problem::ShownProblem as _;

use super::{check, repo, text, trace, value};

const TRADE: &str = r#"{"type":"execute_transaction","agent":"trader","intent":{"description":"buy",
    "declared_deps":["market_volatility_index"]},
    "action":{"tool":"broker.order","params":{"amount":1200,"shares":20}}}"#;

/// Two traders under one pack; the first one trades.
fn traders(threshold: f64) -> Shared {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/packs/financial.yaml");
    let pack = pack::read(&std::fs::read(file).unwrap()).unwrap();
    let store = memory_with_key(7);
    let begin = |run: &str, state: String, intents: Vec<Intent>| {
        let start =
            Start { stage: Some(Stage::Contracts), state: value(&state), ..Start::new(run_name(run)) };
        record(&store, &pack.bind(start).unwrap(), intents);
    };
    let rest = r#""cash_balance":9000,"risk_limit":0.9,"risk_score":0.3,"position_size":100"#;
    let trade = Intent::from_value(&value(TRADE), None).unwrap();
    let first = format!(r#"{{{rest},"risk_threshold":0.95,"market_volatility_index":17.2}}"#);
    begin("trader-a", first, vec![trade]);
    begin("trader-b", format!(r#"{{{rest},"risk_threshold":{threshold}}}"#), Vec::new());
    store
}

/// Imports the trade, and returns text, end and the whole problem.
fn imported(threshold: f64, dry_run: bool) -> (String, End, Option<String>) {
    let store = traders(threshold);
    let (source, into) = (trace(&store, "trader-a"), run_name("trader-b"));
    let candidate = Candidate::read(&source, 1).unwrap();
    let mut pick = candidate.check(&trace(&store, "trader-b"), 0).unwrap();
    let imported =
        repo(&store).cherrypick(&into, &mut pick, 0, PickTerms { dry: dry_run, again: false }).unwrap();
    let reply = &CherrypickReply {
        pick,
        into,
        tip: 0,
        imported,
        decided_breaks: false,
        given_breaks: false,
        dry_run,
    };
    let answer = CherrypickAnswer { reply, show_hash: false };
    let problem = answer.problem().map(|problem| problem.text(None));
    (text(&answer, &Page::WIDE), answer.end(), problem)
}

#[test]
fn an_import_names_the_required_fields_of_both_sides() {
    let (text, end, problem) = imported(0.95, false);
    check(
        &text,
        r#"
        contract   acme.financial/v1 on both sides   OK
        requires   cash_balance, position_size, risk_limit, risk_score, risk_threshold   (from the contract, not from the model)
        source     trader-a@1, state before it
        hash       sha256:c142a5c7cef4   made again from the source state, covers 5 required fields   OK
        target     trader-b@0
        OK  cash_balance    source 9000   target 9000  present
        OK  position_size   source 100   target 100    present
        OK  risk_limit      source 0.9   target 0.9    present
        OK  risk_score      source 0.3   target 0.3    present
        OK  risk_threshold  source 0.95   target 0.95  equal
        IMPORTED   as trader-b@2, behind its marker run.cherrypick at tick 1   hash a2196f1380e9
        WARN       advisory dependency market_volatility_index is absent in the target (told, and no reason to refuse)"#,
    );
    assert_eq!((end, problem), (End::Answered, None));
    let (text, ..) = imported(0.95, true);
    assert!(text.contains("MAY BE IMPORTED   nothing was written (dry run)"), "{text}");
}

#[test]
fn a_refused_import_ends_with_its_problem() {
    let (text, end, problem) = imported(0.25, false);
    check(
        &text,
        r#"
        contract   acme.financial/v1 on both sides   OK
        requires   cash_balance, position_size, risk_limit, risk_score, risk_threshold   (from the contract, not from the model)
        source     trader-a@1, state before it
        hash       sha256:c142a5c7cef4   made again from the source state, covers 5 required fields   OK
        target     trader-b@0
        OK    cash_balance    source 9000   target 9000  present
        OK    position_size   source 100   target 100    present
        OK    risk_limit      source 0.9   target 0.9    present
        OK    risk_score      source 0.3   target 0.3    present
        FAIL  risk_threshold  source 0.95   target 0.25  must match
        CONTEXT VIOLATION - IMPORT REJECTED"#,
    );
    assert_eq!(end, End::Problem(Code::E0412));
    check(
        &problem.unwrap(),
        r#"
        error[E0412]: execute_transaction was justified by risk_threshold; the target has not the same
          | risk_threshold source 0.95   target 0.25
        note: risk: SILENT_DISASTER_PREVENTED
        note: decide again on what the target has, or give the target what the source had and retry
        note: no state was modified and no transition was committed; the refusal is kept beside the run
        help: dendrer fork --run trader-a --from tick 0 --set risk_threshold=0.25
        help: dendrer fork --run trader-b --from tip --set risk_threshold=0.95 --as trader-b-retry
        help: dendrer cherrypick trader-a@1 --into trader-b-retry
              see: dendrer explain E0412"#,
    );
}

/// D-166: a context that the source state does not give is the third answer of `validate_import` (appendix E.2).
#[test]
fn a_context_of_another_state_is_refused_in_the_shape_of_the_paper() {
    let store = traders(0.95);
    let (source, into) = (trace(&store, "trader-a"), run_name("trader-b"));
    let mut pick = Candidate::read(&source, 1).unwrap().check(&trace(&store, "trader-b"), 0).unwrap();
    pick.checked.refused = Some(ImportRefused::HashUnderspecified { is_hidden: false });
    let imported = repo(&store).cherrypick(&into, &mut pick, 0, PickTerms::default()).unwrap();
    let reply = &CherrypickReply {
        pick,
        into,
        tip: 0,
        imported,
        decided_breaks: false,
        given_breaks: false,
        dry_run: false,
    };
    let answer = CherrypickAnswer { reply, show_hash: false };
    assert!(matches!(reply.imported, Imported::Refused(_)));
    assert_eq!(answer.end(), End::Problem(Code::E0413));
    assert_eq!(
        answer.document().get("validation").unwrap().to_string(),
        r#"{"error":"hash_contract_mismatch","reason":"hash_underspecified"}"#
    );
}
