//! A question as a document has the answer of the verb that asks the same.

use std::path::Path;
use std::sync::Arc;

use dendrer::repo::locate;
use dendrer::source::{QuestionPlace, StoreDesk};
use dendrer::trust::{Trust, UserTrust};
use dendrer_object::{Value, json};
use dendrer_view::ask::ask;
use dendrer_view::problem::ShownProblem as _;

use crate::support::demo;

/// Asks a question as a document of the store in a directory. Returns the exit code of the command, and the answer or the
/// problem.
fn asked(dir: &Path, config: &Path, question: &str) -> (i32, Value) {
    let trust: Arc<dyn Trust> = Arc::new(UserTrust::at(config));
    let dir = locate::named(dir.to_str().unwrap()).unwrap();
    let place = QuestionPlace::open(&dir, &trust).unwrap();
    let question = json::parse_door(question.as_bytes()).unwrap();
    match ask(&question, &mut StoreDesk::new(&place, &trust)) {
        Ok(answer) => {
            let exit = answer.problem.as_ref().map_or(answer.exit, |problem| problem.exit());
            (i32::from(exit), answer.document)
        }
        Err(problem) => (i32::from(problem.exit()), problem.to_json()),
    }
}

/// Removes the path of the store, which the program shows as its user named it.
fn without_place(document: Value) -> Value {
    let mut members = document.as_object().cloned().unwrap_or_default();
    members.remove("read_from");
    Value::Object(members)
}

/// The command of each row, and the question that asks the same of the demo.
const ROWS: &[(&[&str], &str)] = &[
    (
        &["assert", "logistics-run-47", "--holds", "success_rate(steps) > 0.5", "--allow-empty"],
        r#"{"schema":"dendrer.assert-question/1","run":"logistics-run-47","holds":["success_rate(steps) > 0.5"],"allow_empty":true}"#,
    ),
    (&["assert", "logistics-run-47"], r#"{"schema":"dendrer.assert-question/1","run":"logistics-run-47"}"#),
    (
        &["why", "logistics-run-47@12", "state.risk_score"],
        r#"{"schema":"dendrer.why-question/1","rev":"logistics-run-47@12","path":"state.risk_score"}"#,
    ),
    (
        &["why", "logistics-run-47@12", "state.nothing"],
        r#"{"schema":"dendrer.why-question/1","rev":"logistics-run-47@12","path":"state.nothing"}"#,
    ),
    (
        &["backtrack", "logistics-run-47", "state.risk_score", "--values"],
        r#"{"schema":"dendrer.backtrack-question/1","run":"logistics-run-47","path":"state.risk_score","values":true}"#,
    ),
    (
        &["backtrack", "logistics-run-47", "state.risk_score", "--last", "--from=-3"],
        r#"{"schema":"dendrer.backtrack-question/1","run":"logistics-run-47","path":"state.risk_score","last":true,"from":"-3"}"#,
    ),
    (
        &["bisect", "logistics-run-47", "--holds", "state.risk_score <= 0.75"],
        r#"{"schema":"dendrer.bisect-question/1","run":"logistics-run-47","holds":["state.risk_score <= 0.75"]}"#,
    ),
    (
        &["bisect", "logistics-run-47", "--holds", "state.nothing <= 0.75"],
        r#"{"schema":"dendrer.bisect-question/1","run":"logistics-run-47","holds":["state.nothing <= 0.75"]}"#,
    ),
    (
        &["contract", "check", "financial-agent-B", "--from", "5", "--contract", "financial-agent-A"],
        r#"{"schema":"dendrer.contract-check-question/1","run":"financial-agent-B","from":5,"contract":"financial-agent-A"}"#,
    ),
    (
        &["contract", "check", "financial-agent-B", "--type", "execute_transactio"],
        r#"{"schema":"dendrer.contract-check-question/1","run":"financial-agent-B","type":"execute_transactio"}"#,
    ),
    (
        &["contract", "diff", "acme.financial/v1", "financial-agent-B"],
        r#"{"schema":"dendrer.contract-diff-question/1","a":"acme.financial/v1","b":"financial-agent-B"}"#,
    ),
    (
        &["contract", "lint", "financial-agent-A"],
        r#"{"schema":"dendrer.contract-lint-question/1","contract":"financial-agent-A"}"#,
    ),
    (&["contract", "list"], r#"{"schema":"dendrer.contract-list-question/1"}"#),
    (
        &["contract", "show", "acme.financial/v1", "--type", "execute_transaction"],
        r#"{"schema":"dendrer.contract-show-question/1","contract":"acme.financial/v1","type":"execute_transaction"}"#,
    ),
    (
        &["contract", "show", "acme.financial/v9"],
        r#"{"schema":"dendrer.contract-show-question/1","contract":"acme.financial/v9"}"#,
    ),
    (
        &["contract", "suggest", "financial-agent-A", "financial-agent-B", "--tries", "50"],
        r#"{"schema":"dendrer.contract-suggest-question/1","runs":["financial-agent-A","financial-agent-B"],"tries":50}"#,
    ),
    (
        &["diff", "logistics-run-47", "logistics-planner-1", "-n", "3", "--ignore", "agent_id"],
        r#"{"schema":"dendrer.diff-question/1","run_a":"logistics-run-47","run_b":"logistics-planner-1","limit":3,"ignore":["agent_id"]}"#,
    ),
    (
        &["diff", "logistics-run-47", "logistics-planner-1", "--from", "9", "--to", "3"],
        r#"{"schema":"dendrer.diff-question/1","run_a":"logistics-run-47","run_b":"logistics-planner-1","from":9,"to":3}"#,
    ),
    (
        &[
            "diff",
            "logistics-run-47@20",
            "logistics-planner-1",
            "--stat",
            "--type",
            "structural,outcome",
            "--predicate",
            "kernel.policy_compliant",
        ],
        r#"{"schema":"dendrer.diff-question/1","run_a":"logistics-run-47@20","run_b":"logistics-planner-1","stat":true,"type":["structural","outcome"],"predicate":"kernel.policy_compliant"}"#,
    ),
    (
        &["diff", "logistics-run-47", "logistics-planner-1", "--coherence"],
        r#"{"schema":"dendrer.diff-question/1","run_a":"logistics-run-47","run_b":"logistics-planner-1","coherence":true}"#,
    ),
    (&["predicate", "list"], r#"{"schema":"dendrer.predicate-list-question/1"}"#),
    (
        &["predicate", "list", "--all", "--run", "financial-agent-A"],
        r#"{"schema":"dendrer.predicate-list-question/1","all":true,"run":"financial-agent-A"}"#,
    ),
    (
        &["predicate", "show", "kernel.policy_compliant"],
        r#"{"schema":"dendrer.predicate-show-question/1","name":"kernel.policy_compliant"}"#,
    ),
    (
        &["predicate", "show", "kernel.nothing"],
        r#"{"schema":"dendrer.predicate-show-question/1","name":"kernel.nothing"}"#,
    ),
    (
        &[
            "predicate",
            "test",
            "state.risk_score <= 0.75",
            "logistics-run-47",
            "--holds",
            "--ticks",
            "--from",
            "40",
        ],
        r#"{"schema":"dendrer.predicate-test-question/1","predicate":"state.risk_score <= 0.75","run":"logistics-run-47","holds":true,"ticks":true,"from":40}"#,
    ),
    (
        &["predicate", "test", "kernel.policy_compliant", "logistics-run-47", "--window", "before"],
        r#"{"schema":"dendrer.predicate-test-question/1","predicate":"kernel.policy_compliant","run":"logistics-run-47","window":"before"}"#,
    ),
    (
        &["replay", "logistics-run-47", "--print", "state", "--path", "state.risk_score", "--from", "44"],
        r#"{"schema":"dendrer.replay-question/1","run":"logistics-run-47","print":"state","path":"state.risk_score","from":44}"#,
    ),
    (
        &["replay", "logistics-run-47", "--record"],
        r#"{"schema":"dendrer.replay-question/1","run":"logistics-run-47","record":true}"#,
    ),
    (
        &["replay", "logistics-run-47", "--twice", "--detect", "--to=-3"],
        r#"{"schema":"dendrer.replay-question/1","run":"logistics-run-47","twice":true,"detect":true,"to":"-3"}"#,
    ),
    (&["secrets", "scan"], r#"{"schema":"dendrer.secrets-scan-question/1"}"#),
    (
        &["secrets", "scan", "logistics-run-47", "nothing"],
        r#"{"schema":"dendrer.secrets-scan-question/1","what":["logistics-run-47","nothing"]}"#,
    ),
    (
        &["secrets", "scan", "logistics-run-47@3"],
        r#"{"schema":"dendrer.secrets-scan-question/1","what":["logistics-run-47@3"]}"#,
    ),
    (&["verify"], r#"{"schema":"dendrer.verify-question/1"}"#),
    (
        &["verify", "logistics-run-47", "--replay", "--from", "20"],
        r#"{"schema":"dendrer.verify-question/1","targets":["logistics-run-47"],"replay":true,"from":20}"#,
    ),
    (
        &["verify", "logistics-run-47", "--tip", "sha256:00"],
        r#"{"schema":"dendrer.verify-question/1","targets":["logistics-run-47"],"tip":"sha256:00"}"#,
    ),
    (
        &["verify", "logistics-run-47", "--branches"],
        r#"{"schema":"dendrer.verify-question/1","targets":["logistics-run-47"],"branches":true}"#,
    ),
];

#[test]
fn a_question_and_its_verb_have_one_answer() {
    let demo = demo();
    for (argv, question) in ROWS {
        let (code, printed) = demo.json(argv);
        let (exit, answer) = asked(&demo.dir(), &demo.config(), question);
        assert_eq!((code, without_place(printed)), (exit, without_place(answer)), "{argv:?}");
    }
}
