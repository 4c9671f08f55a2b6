//! A question as a document has the answer of the verb that asks the same.

use std::path::Path;
use std::sync::Arc;

use dendrer::repo::locate;
use dendrer::source::{QuestionPlace, StoreDesk};
use dendrer::trust::{Trust, UserTrust, write_key};
use dendrer_object::note::SigningKey;
use dendrer_object::{StoreId, Value, json};
use dendrer_view::ask::ask;
use dendrer_view::problem::ShownProblem as _;

use crate::support::{Place, copy, demo, parse};

/// Asks a question as a document of the store in a directory. Returns the exit code of the command, and the answer or the
/// problem.
fn asked(dir: &Path, config: &Path, question: &str) -> (i32, Value) {
    // The program knows the public key of the demo by itself, and takes it for no signer that this machine knows.
    let id = StoreId(*b"dendrer demo 001");
    let key = SigningKey::from_seed(&id.origin(), *b"dendrer demo key: proves nothing").unwrap();
    let (files, user) = (tempfile::tempdir().unwrap(), UserTrust::at(config));
    let file = files.path().join("demo.key");
    write_key(&key, &file).unwrap();
    let trust: Arc<dyn Trust> =
        Arc::new(user.with_key_file(Some(file).filter(|_| !question.contains("verify"))));
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
    // The program signs what it wrote when it ends; a question leaves that to the one that asks.
    members.remove("trust");
    Value::Object(members)
}

/// Replaces ids and times, which are new for each record.
fn without_ids(value: &Value) -> Value {
    match value {
        Value::String(text) if text.starts_with("sha256:") => Value::from("id"),
        Value::String(text) if text.len() == 24 && text.ends_with('Z') => Value::from("time"),
        // The tag of a marker is made with the key of the store.
        Value::String(text) if text.contains("<redacted:") => {
            Value::from(text.split(['#', '>']).next().unwrap_or_default())
        }
        Value::Array(items) => Value::array(items.iter().map(without_ids)),
        Value::Object(members) => {
            Value::record(members.iter().map(|(name, value)| (name.to_string(), without_ids(value))))
        }
        value => value.clone(),
    }
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
        &["coherence", "logistics-run-47@20"],
        r#"{"schema":"dendrer.coherence-question/1","runs":["logistics-run-47@20"]}"#,
    ),
    (&["coherence", "nothing"], r#"{"schema":"dendrer.coherence-question/1","runs":["nothing"]}"#),
    (
        &["commitments", "logistics-run-47", "--kind=goal", "--status=active"],
        r#"{"schema":"dendrer.commitments-question/1","run":"logistics-run-47","kind":"goal","status":"active"}"#,
    ),
    (
        &["commitments", "logistics-run-47@12", "--at=3"],
        r#"{"schema":"dendrer.commitments-question/1","run":"logistics-run-47@12","at":3}"#,
    ),
    (
        &["compare", "logistics-run-47:router", "logistics-run-47:dispatcher@40", "--check"],
        r#"{"schema":"dendrer.compare-question/1","a":"logistics-run-47:router","b":"logistics-run-47:dispatcher@40","check":true}"#,
    ),
    (
        &["compare", "logistics-run-47:router", "logistics-planner-1:router"],
        r#"{"schema":"dendrer.compare-question/1","a":"logistics-run-47:router","b":"logistics-planner-1:router"}"#,
    ),
    (
        &["compare", "logistics-run-47", "logistics-run-47"],
        r#"{"schema":"dendrer.compare-question/1","a":"logistics-run-47","b":"logistics-run-47"}"#,
    ),
    (
        &["conflicts", "list", "logistics-run-47"],
        r#"{"schema":"dendrer.conflicts-list-question/1","run":"logistics-run-47"}"#,
    ),
    (
        &["conflicts", "list", "logistics-run-47@3"],
        r#"{"schema":"dendrer.conflicts-list-question/1","run":"logistics-run-47@3"}"#,
    ),
    (
        &["conflicts", "show", "logistics-run-47", "risk_score"],
        r#"{"schema":"dendrer.conflicts-show-question/1","run":"logistics-run-47","path":"risk_score"}"#,
    ),
    (
        &["heatmap", "logistics-run-47", "trip-planner-a", "--metric=confidence", "-n3"],
        r#"{"schema":"dendrer.heatmap-question/1","runs":["logistics-run-47","trip-planner-a"],"metric":"confidence","limit":3}"#,
    ),
    (
        &["heatmap", "logistics-run-47@x:"],
        r#"{"schema":"dendrer.heatmap-question/1","runs":["logistics-run-47@x:"]}"#,
    ),
    (
        &["log", "logistics-run-47@20..24", "--refusals", "--full"],
        r#"{"schema":"dendrer.log-question/1","run":"logistics-run-47@20..24","refusals":true,"full":true}"#,
    ),
    (
        &["log", "logistics-run-47", "--type=action.request", "--grep=risk", "--reverse", "-n0"],
        r#"{"schema":"dendrer.log-question/1","run":"logistics-run-47","type":["action.request"],"grep":"risk","reverse":true,"limit":0}"#,
    ),
    (
        &["log", "logistics-run-47", "--grep=("],
        r#"{"schema":"dendrer.log-question/1","run":"logistics-run-47","grep":"("}"#,
    ),
    (
        &["log", "logistics-run-47@20..24", "--to=30"],
        r#"{"schema":"dendrer.log-question/1","run":"logistics-run-47@20..24","to":30}"#,
    ),
    (
        &["runs", "--where", "ticks > 5", "--tree", "--all", "--sort=ticks"],
        r#"{"schema":"dendrer.runs-question/1","where":"ticks > 5","tree":true,"all":true,"sort":"ticks"}"#,
    ),
    (
        &["runs", "--where", "state.nothing > 5"],
        r#"{"schema":"dendrer.runs-question/1","where":"state.nothing > 5"}"#,
    ),
    (&["runs", "--unverified", "-n1"], r#"{"schema":"dendrer.runs-question/1","unverified":true,"limit":1}"#),
    (
        &["show", "logistics-run-47@12", "--state=before", "--path", "state.risk_score", "--provenance"],
        r#"{"schema":"dendrer.show-question/1","rev":"logistics-run-47@12","state":"before","path":"state.risk_score","provenance":true}"#,
    ),
    (
        &["show", "logistics-run-47@12", "--path", "state.nothing"],
        r#"{"schema":"dendrer.show-question/1","rev":"logistics-run-47@12","path":"state.nothing"}"#,
    ),
    (
        &["show", "logistics-run-47@-1", "--raw-json"],
        r#"{"schema":"dendrer.show-question/1","rev":"logistics-run-47@-1","raw_json":true}"#,
    ),
    (
        &["state", "logistics-run-47@12", "--path", "counters"],
        r#"{"schema":"dendrer.state-question/1","rev":"logistics-run-47@12","path":"counters"}"#,
    ),
    (
        &["state", "logistics-run-47@12", "--base", "logistics-run-47@10", "--window=before"],
        r#"{"schema":"dendrer.state-question/1","rev":"logistics-run-47@12","base":"logistics-run-47@10","window":"before"}"#,
    ),
    (
        &["state", "logistics-run-47@12", "--path", "state.nothing"],
        r#"{"schema":"dendrer.state-question/1","rev":"logistics-run-47@12","path":"state.nothing"}"#,
    ),
    (
        &["steps", "logistics-run-47", "--by=tool_call", "--full"],
        r#"{"schema":"dendrer.steps-question/1","runs":["logistics-run-47"],"by":"tool_call","full":true}"#,
    ),
    (
        &["steps", "logistics-run-47@20", "trip-planner-a", "--stats"],
        r#"{"schema":"dendrer.steps-question/1","runs":["logistics-run-47@20","trip-planner-a"],"stats":true}"#,
    ),
    (
        &["steps", "logistics-run-47", "--compose=parent"],
        r#"{"schema":"dendrer.steps-question/1","runs":["logistics-run-47"],"compose":"parent"}"#,
    ),
    (
        &["steps", "logistics-run-47", "--by=walk"],
        r#"{"schema":"dendrer.steps-question/1","runs":["logistics-run-47"],"by":"walk"}"#,
    ),
    (
        &["rebase", "logistics-fix-1", "--onto", "logistics-run-47@30", "--plan", "--stop-on", "context"],
        r#"{"schema":"dendrer.rebase-question/1","run":"logistics-fix-1","onto":"logistics-run-47@30","plan":true,"stop_on":["context"]}"#,
    ),
    (
        &["rebase", "logistics-fix-1@3", "--onto", "logistics-run-47"],
        r#"{"schema":"dendrer.rebase-question/1","run":"logistics-fix-1@3","onto":"logistics-run-47"}"#,
    ),
    (
        &[
            "merge",
            "--as",
            "both",
            "--from",
            "logistics-run-47",
            "--from",
            "logistics-fix-1",
            "--plan",
            "--strategy",
            "lww",
        ],
        r#"{"schema":"dendrer.merge-question/1","as":"both","from":["logistics-run-47","logistics-fix-1"],"plan":true,"strategy":"lww"}"#,
    ),
    (
        &["merge", "--as", "both", "--from", "logistics-run-47", "--from", "logistics-fix-1", "-n"],
        r#"{"schema":"dendrer.merge-question/1","as":"both","from":["logistics-run-47","logistics-fix-1"],"dry_run":true}"#,
    ),
    (
        &["cherrypick", "financial-agent-A@3", "--tick", "3", "--into", "financial-agent-B"],
        r#"{"schema":"dendrer.cherrypick-question/1","run":"financial-agent-A@3","tick":3,"into":"financial-agent-B"}"#,
    ),
    (
        &["reduce", "logistics-run-47@3", "--pack", "/dev/null", "--as", "again"],
        r#"{"schema":"dendrer.reduce-question/1","run":"logistics-run-47@3","pack":"","as":"again"}"#,
    ),
    (&["label"], r#"{"schema":"dendrer.label-question/1"}"#),
    (&["label", "best"], r#"{"schema":"dendrer.label-question/1","name":"best"}"#),
    (&["note", "logistics-run-47@3"], r#"{"schema":"dendrer.note-question/1","rev":"logistics-run-47@3"}"#),
    (
        &["note", "logistics-run-47", ""],
        r#"{"schema":"dendrer.note-question/1","rev":"logistics-run-47","text":""}"#,
    ),
    (
        &["commitments", "accept", "logistics-run-47", "-n"],
        r#"{"schema":"dendrer.commitments-accept-question/1","child":"logistics-run-47","dry_run":true}"#,
    ),
    (
        &["conflicts", "resolve", "logistics-run-47@3", "risk_score", "--take", "b", "--reason", "r"],
        r#"{"schema":"dendrer.conflicts-resolve-question/1","run":"logistics-run-47@3","path":"risk_score","take":"b","reason":"r"}"#,
    ),
    (
        &["erase", "logistics-run-47@3", "intent.description", "--reason", "r", "--everywhere", "-n"],
        r#"{"schema":"dendrer.erase-question/1","rev":"logistics-run-47@3","path":"intent.description","reason":"r","everywhere":true,"dry_run":true}"#,
    ),
    (
        &["erase", "logistics-run-47", "intent", "--reason", "r"],
        r#"{"schema":"dendrer.erase-question/1","rev":"logistics-run-47","path":"intent","reason":"r"}"#,
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
        r#"{"schema":"dendrer.verify-question/1","targets":["logistics-run-47"],"tip":["sha256:00"]}"#,
    ),
    (
        &["verify", "logistics-run-47", "--branches"],
        r#"{"schema":"dendrer.verify-question/1","targets":["logistics-run-47"],"branches":true}"#,
    ),
];

/// The pack of the row of `reduce`.
const STEPS: &str = r#"{"name":"steps","version":"v2","goal":"count","state":{"steps":{"init":0}},"rules":[{"when_type":"observation.add","steps":[{"add":"steps","value":"1"}]}]}"#;

/// The commitment that the row of `commitments delegate` hands over.
const GOAL: &[u8] = br#"{"type":"plan.update","agent":"a","evidence":[{"id":"U1","content":"keep watch"}],"commitments":[{"id":"watch","type":"goal","gloss":"keep watch","support":["U1"]}]}"#;

/// The extension of the rows of `contract extend`.
const KYC: &str = r#"{"target_contract":"insurance.claims/v1","id":"kyc","types":["approve_payout"],"adds_hash_seeds":["deductible_confirmed_at"]}"#;

/// The command of each row, and the question that asks the same of another copy of the store. Rows build on those before.
const WRITES: &[(&[&str], &str)] = &[
    (
        &["fork", "logistics-run-47@21", "--set", "risk_score=0.1", "--policy", "ask first", "--as", "calm"],
        r#"{"schema":"dendrer.fork-question/1","run":"logistics-run-47@21","set":{"risk_score":0.1},"policy":["ask first"],"as":"calm"}"#,
    ),
    (
        &["fork", "logistics-run-47", "--from", "21", "--policy", "risk_threshold=0.65", "--replay-rest"],
        r#"{"schema":"dendrer.fork-question/1","run":"logistics-run-47","from":21,"policy":{"risk_threshold":0.65},"replay_rest":true}"#,
    ),
    (
        &["fork", "logistics-run-47@21", "--as", "calm"],
        r#"{"schema":"dendrer.fork-question/1","run":"logistics-run-47@21","as":"calm"}"#,
    ),
    (
        &["fork", "logistics-run-47@21", "--set", "risk_score=1", "--only", "observation.add", "-n"],
        r#"{"schema":"dendrer.fork-question/1","run":"logistics-run-47@21","set":["risk_score=1"],"only":["observation.add"],"dry_run":true}"#,
    ),
    (
        &["rebase", "trip-planner-b", "--onto", "trip-planner-a@3", "--skip", "--reason", "again"],
        r#"{"schema":"dendrer.rebase-question/1","run":"trip-planner-b","onto":"trip-planner-a@3","skip":true,"reason":"again"}"#,
    ),
    (
        &["cherrypick", "financial-agent-A@2", "--into", "financial-agent-C", "--reason", "same view"],
        r#"{"schema":"dendrer.cherrypick-question/1","run":"financial-agent-A@2","into":"financial-agent-C","reason":"same view"}"#,
    ),
    (
        &["cherrypick", "financial-agent-A", "--tick", "2", "--into", "financial-agent-B"],
        r#"{"schema":"dendrer.cherrypick-question/1","run":"financial-agent-A","tick":2,"into":"financial-agent-B"}"#,
    ),
    (
        &["merge", "--as", "both", "--from", "logistics-run-47", "--from", "trip-planner-a", "--seed-only"],
        r#"{"schema":"dendrer.merge-question/1","as":"both","from":["logistics-run-47","trip-planner-a"],"seed_only":true}"#,
    ),
    (
        &["reduce", "trip-planner-a", "--pack", "steps.yaml", "--as", "counted"],
        r#"{"schema":"dendrer.reduce-question/1","run":"trip-planner-a","pack":"{\"name\":\"steps\",\"version\":\"v2\",\"goal\":\"count\",\"state\":{\"steps\":{\"init\":0}},\"rules\":[{\"when_type\":\"observation.add\",\"steps\":[{\"add\":\"steps\",\"value\":\"1\"}]}]}","as":"counted"}"#,
    ),
    (
        &["label", "best", "logistics-run-47@3", "--by", "ann"],
        r#"{"schema":"dendrer.label-question/1","name":"best","rev":"logistics-run-47@3","by":"ann"}"#,
    ),
    (
        &["label", "best", "logistics-run-47@4"],
        r#"{"schema":"dendrer.label-question/1","name":"best","rev":"logistics-run-47@4"}"#,
    ),
    (
        &["label", "best", "logistics-run-47@4", "--move"],
        r#"{"schema":"dendrer.label-question/1","name":"best","rev":"logistics-run-47@4","move":true}"#,
    ),
    (&["label", "best", "--remove"], r#"{"schema":"dendrer.label-question/1","name":"best","remove":true}"#),
    (
        &["note", "logistics-run-47@3", "token=ghp_0123456789abcdefghijABCDEFGHIJ012345"],
        r#"{"schema":"dendrer.note-question/1","rev":"logistics-run-47@3","text":"token=ghp_0123456789abcdefghijABCDEFGHIJ012345"}"#,
    ),
    (
        &["conflicts", "resolve", "both", "memory.deadline", "--take", "b", "--reason", "it was measured"],
        r#"{"schema":"dendrer.conflicts-resolve-question/1","run":"both","path":"memory.deadline","take":"b","reason":"it was measured"}"#,
    ),
    (
        &["commitments", "delegate", "goals", "--scope", "scope.json", "--as", "child", "--stage", "1"],
        r#"{"schema":"dendrer.commitments-delegate-question/1","run":"goals","scope":{"id":"D3","gloss":"read only","goal":"watch"},"as":"child","stage":1}"#,
    ),
    (
        &["commitments", "accept", "child"],
        r#"{"schema":"dendrer.commitments-accept-question/1","child":"child"}"#,
    ),
    (
        &[
            "contract",
            "extend",
            "claims-9",
            "--file",
            "kyc.yaml",
            "--approved-by",
            "ann",
            "--effective-from",
            "41",
            "-n",
        ],
        r#"{"schema":"dendrer.contract-extend-question/1","run":"claims-9","file":"{\"target_contract\":\"insurance.claims/v1\",\"id\":\"kyc\",\"types\":[\"approve_payout\"],\"adds_hash_seeds\":[\"deductible_confirmed_at\"]}","approved_by":"ann","effective_from":41,"dry_run":true}"#,
    ),
    (
        &[
            "contract",
            "extend",
            "claims-9",
            "--file",
            "kyc.yaml",
            "--approved-by",
            "ann",
            "--effective-from",
            "41",
        ],
        r#"{"schema":"dendrer.contract-extend-question/1","run":"claims-9","file":"{\"target_contract\":\"insurance.claims/v1\",\"id\":\"kyc\",\"types\":[\"approve_payout\"],\"adds_hash_seeds\":[\"deductible_confirmed_at\"]}","approved_by":"ann","effective_from":41}"#,
    ),
    (
        &[
            "erase",
            "logistics-run-47@tip",
            "intent.description",
            "--reason",
            "private",
            "--although",
            "delta",
        ],
        r#"{"schema":"dendrer.erase-question/1","rev":"logistics-run-47@tip","path":"intent.description","reason":"private","although":["delta"]}"#,
    ),
];

#[test]
fn a_question_writes_as_its_verb_does() {
    let (place, other) = (Place::with_demo(), Place::new());
    std::fs::write(place.path().join("steps.yaml"), STEPS).unwrap();
    assert_eq!(place.run_with(&["commit", "--run", "goals", "--as", "user"], GOAL).code, 0);
    std::fs::write(place.path().join("scope.json"), r#"{"id":"D3","gloss":"read only","goal":"watch"}"#)
        .unwrap();
    std::fs::write(place.path().join("kyc.yaml"), KYC).unwrap();
    copy(place.path(), other.path());
    for (argv, question) in WRITES {
        let (code, printed) = place.json(argv);
        let (exit, answer) = asked(other.path(), &other.config(), question);
        let (printed, answer) = (without_ids(&without_place(printed)), without_ids(&without_place(answer)));
        assert_eq!((code, printed), (exit, answer), "{argv:?}");
    }
    let runs = |place: &Place| without_ids(&without_place(place.json(&["runs"]).1));
    assert_eq!(runs(&place), runs(&other));
}

#[test]
fn a_question_and_its_verb_have_one_answer() {
    let demo = demo();
    for (argv, question) in ROWS {
        let (code, printed) = demo.json(argv);
        let (exit, answer) = asked(&demo.dir(), &demo.config(), question);
        assert_eq!((code, without_place(printed)), (exit, without_place(answer)), "{argv:?}");
    }
}

#[test]
fn calls_are_a_list_in_a_question_and_lines_of_a_file_for_the_program() {
    let (demo, dir) = (demo(), tempfile::tempdir().unwrap());
    let file = dir.path().join("calls.jsonl");
    let check = |lines: &str, calls: &str| {
        std::fs::write(&file, lines).unwrap();
        let printed =
            demo.json(&["commitments", "logistics-run-47", "--admissible", file.to_str().unwrap()]).1;
        let question = format!(
            r#"{{"schema":"dendrer.commitments-question/1","run":"logistics-run-47","admissible":{calls}}}"#
        );
        let answer = asked(&demo.dir(), &demo.config(), &question).1;
        assert_eq!(without_place(printed), without_place(answer), "{calls}");
    };
    check("", "[]");
    check(
        "{\"tool\":\"a\"}\n\n{\"tool\":\"b\",\"params\":{\"n\":1}}\n",
        r#"[{"tool":"a"},{"tool":"b","params":{"n":1}}]"#,
    );
    let question = r#"{"schema":"dendrer.commitments-question/1","run":"logistics-run-47","admissible":[{"tool":"a"},{}]}"#;
    let (exit, answer) = asked(&demo.dir(), &demo.config(), question);
    let message = answer.get("message").and_then(Value::as_str);
    assert_eq!((exit, message), (2, Some("admissible, call 2: a call names its tool")));
}

#[test]
fn members_that_exclude_each_other_are_refused() {
    let demo = demo();
    for (members, flags) in [
        (
            r#""show-question/1","rev":"logistics-run-47@3","raw_json":true,"path":"a""#,
            "--raw-json cannot be used with --path",
        ),
        (
            r#""commitments-question/1","run":"logistics-run-47","admissible":[],"stale":true"#,
            "--admissible cannot be used with --stale",
        ),
        (
            r#""steps-question/1","runs":["logistics-run-47"],"compose":"trace","stats":true"#,
            "--compose cannot be used with --stats",
        ),
    ] {
        let question = format!(r#"{{"schema":"dendrer.{}}}"#, members.trim_start_matches('"'));
        let (exit, problem) = asked(&demo.dir(), &demo.config(), &question);
        let message = problem.get("message").and_then(Value::as_str);
        assert_eq!((exit, message), (2, Some(flags)), "{question}");
    }
}

#[test]
fn questions_of_the_page_have_answers() {
    let demo = demo();
    let page = include_str!("../../../../docs/questions.md");
    let questions: Vec<&str> = page.lines().filter(|line| line.starts_with("{\"schema\"")).collect();
    assert_eq!(questions.len(), 7);
    for question in questions {
        let (exit, answer) = asked(&demo.dir(), &demo.config(), question);
        assert_eq!(exit, 0, "{question}: {answer}");
    }
}

#[test]
fn an_answer_has_no_secret_that_the_record_does_not_have() {
    let place = Place::with_demo();
    let key = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let why = format!("a key {key}");
    let set = format!("note=\"{why}\"");
    let forked = [
        "fork",
        "logistics-run-47@3",
        "--as",
        "f",
        "--reason",
        &why,
        "--note",
        &why,
        "--policy",
        &why,
        "--set",
        &set,
    ];
    let rebased =
        ["rebase", "logistics-fix-1", "--onto", "logistics-run-47@30", "--as", "g", "--reason", &why];
    let erased = ["erase", "logistics-run-47@3", "intent.description", "--reason", &why, "--everywhere"];
    for argv in [&forked[..], &rebased[..], &erased[..]] {
        for json in [&[][..], &["--json"][..]] {
            let ran = place.run(&[argv, json, &["-n"][..]].concat());
            assert!(!ran.stdout.contains(key), "{argv:?}: {}", ran.stdout);
        }
    }
}

#[test]
fn a_range_that_ends_before_it_begins_is_refused() {
    let (code, problem) = demo().json(&["replay", "logistics-run-47", "--from", "30", "--to", "20"]);
    assert_eq!((code, problem.get("code").and_then(Value::as_str)), (2, Some("E0106")), "{problem}");
}

#[test]
fn a_first_line_that_is_no_intent_is_no_change() {
    let place = Place::with_store();
    let ran = place.run_with(&["commit", "--run", "z", "--new", "--json"], b"oops\n");
    let problem = parse(&ran.stdout);
    assert_eq!((ran.code, problem.get("changed")), (2, Some(&Value::Bool(false))), "{problem}");
    let ran = place.run_with(&["commit", "--run", "y", "--new", "--json", "-n"], b"oops\n");
    assert_eq!(parse(&ran.stdout).get("changed"), Some(&Value::Bool(false)));
}

#[test]
fn each_schema_has_one_name_and_each_document_may_be_tampered() {
    let ran = demo().run(&["schema", "--json"]);
    let listed = parse(&ran.stdout);
    let names: Vec<&str> =
        listed.get("items").and_then(Value::as_array).unwrap().iter().filter_map(Value::as_str).collect();
    let mut once = names.clone();
    once.dedup();
    assert_eq!(names, once);
    for name in ["pack", "fork", "heatmap", "contract-lint", "record"] {
        let (_, schema) = demo().json(&["schema", name]);
        assert!(schema.get("properties").and_then(|members| members.get("tampered")).is_some(), "{name}");
    }
}
