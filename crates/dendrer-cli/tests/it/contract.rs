//! Contracts by themselves, from the command line: what they say, what another says otherwise, what is most likely not
//! meant, and what they leave out.

use std::path::Path;

use dendrer_object::Value;

use crate::support::{Place, demo};

fn packs() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/packs").canonicalize().expect("packs")
}

fn pack(name: &str) -> String {
    packs().join(name).display().to_string()
}

fn items(value: &Value) -> Vec<Value> {
    value.get("items").and_then(Value::as_array).expect("items").iter().cloned().collect()
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// D-200: an auditor reads from the contract alone what could not have happened.
#[test]
fn an_auditor_reads_what_could_not_have_happened() {
    let demo = demo();
    let ran = demo.run(&["contract", "show", "financial-agent-A", "--type", "execute_transaction"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let digest = ran.stdout.lines().find_map(|line| line.strip_prefix("digest    ")).unwrap();
    assert_eq!(
        ran.stdout.replace(digest, "<digest>"),
        "acme.financial/v1   Trades of one account, under a risk threshold.
digest    <digest>
reducer   fold/1, 3 rules
enforced  in financial-agent-A at tick 30, recorded at stage 2: what follows was asked before each commit
type      execute_transaction   written by agents, the runtime and users, registered by the pack   A trade is decided on what the account has, and on how much risk it may take.
  needs     cash_balance    number, counted to 2 decimals, seeds the hash, an import finds it there
            position_size   number, counted to 0 decimals, seeds the hash, an import finds it there
            risk_limit      number, counted to 4 decimals, an import finds it there
            risk_score      number, counted to 4 decimals, an import finds it there
            risk_threshold  number, counted to 4 decimals, seeds the hash, an import finds it equal
  may name  market_volatility_index, portfolio_exposure   (what a model says it looked at is bound as well)
  changes   cash_balance (add, rule 3), position_size (add, rule 3)
"
    );
    let whole = demo.run(&["contract", "show", "acme.financial/v1"]).stdout;
    for line in [
        "enforced  from stage 2 on: what a type needs is looked at in the state before each commit",
        "type      policy.decision   written by the runtime and users",
        "never     negative_balance   violated when has(state.cash_balance) && state.cash_balance < 0   (after each transition)",
        "          sound: its first violation counts, whatever comes after (lifted)",
        "          reads state.cash_balance (required by execute_transaction)",
        "field     state.policy_decision   begins as the run says; written by set of policy.decision (rule 2); only policy.decision may change it   what was decided last",
        "field     state.kernel_anomalies, policy, progress   written by the kernel alone",
        "tool      broker.order   effectful   buys or sells",
    ] {
        assert!(whole.lines().any(|found| found == line), "{line}\n{whole}");
    }
    let (code, json) = demo.json(&["contract", "show", &pack("insurance-claims.yaml")]);
    let kind = "\"kind\":\"a time with its offset, like 2026-02-23T17:21:05+01:00\"";
    assert!(json.to_string().contains(kind), "{json}");
    assert_eq!(code, 0);
    let never = json.get("never").and_then(Value::as_array).unwrap();
    // No rule sets the flag back, so that it needs no lift; the sum may fall where a payout is negative.
    let sound: Vec<_> = never.iter().map(|one| (text(one, "name"), text(one, "sound"))).collect();
    assert_eq!(
        sound,
        [
            ("over_limit_payout", "lifted"),
            ("unverified_payout", "by_rules"),
            ("deductible_not_confirmed", "by_rules")
        ]
    );
    for (args, code, error) in [
        (&["contract", "show", "acme.finacial/v1"][..], 3, "E0431"),
        (&["contract", "show", "hostile-1"], 3, "E0909"),
        (&["contract", "show", "acme.financial/v1", "--type", "execute_transactoin"], 5, "E0415"),
    ] {
        let ran = demo.run(args);
        assert_eq!(ran.code, code, "{args:?}: {}", ran.stderr);
        assert!(
            ran.stderr.contains(error) && ran.stderr.contains("did you mean") != (error == "E0909"),
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn the_contracts_of_a_store_are_listed() {
    let (code, json) = demo().json(&["contract", "list"]);
    let listed = items(&json);
    assert_eq!((code, listed.len(), text(&listed[0], "name")), (0, 6, "acme.financial"));
    assert_eq!(listed[0].get("runs").and_then(Value::as_array).map(|runs| runs.len()), Some(3));
    assert_eq!(json.get("without").and_then(Value::as_u64), Some(8));
    assert!(demo().run(&["contract", "list"]).stdout.ends_with("6 contracts, 8 runs without one\n"));
}

/// Fields that a type needs and a state lacks, by the contract alone.
fn lacking(contract: &Value, type_name: &str, state: &Value) -> Vec<String> {
    let types = items(contract);
    let governed = types.iter().find(|one| text(one, "type") == type_name).expect("a type of the contract");
    let needs = governed.get("needs").and_then(Value::as_array).expect("needs");
    let lacks = |need: &&Value| match state.get(text(need, "name")) {
        None => true,
        Some(Value::Null) => need.get("nullable") == Some(&Value::from(false)),
        Some(value) => match text(need, "kind") {
            "string" => value.as_str().is_none(),
            "number" => value.as_number().is_none(),
            "list" => value.as_array().is_none(),
            _ => false,
        },
    };
    // What an extension added is required from its tick on.
    let from_the_start = needs.iter().filter(|need| need.get("since") == Some(&Value::Null));
    from_the_start.filter(lacks).map(|need| text(need, "name").to_owned()).collect()
}

/// D-200: an auditor verifies the policy by the contract, without the code of the agent. As executed is as documented: each
/// governed transition on record had what the contract requires.
#[test]
fn each_governed_transition_had_what_the_contract_requires() {
    let demo = demo();
    let mut governed = 0;
    for run in ["financial-agent-A", "claims-9"] {
        let (_, contract) = demo.json(&["contract", "show", run]);
        let types: Vec<Value> = items(&contract);
        let types: Vec<&str> = types.iter().map(|one| text(one, "type")).collect();
        let (_, log) = demo.json(&["log", run, "-n", "0"]);
        for transition in items(&log) {
            let type_name = text(&transition, "type");
            if !types.contains(&type_name) {
                continue;
            }
            let tick = transition.get("tick").and_then(Value::as_u64).expect("a tick");
            let (_, before) = demo.json(&["state", &format!("{run}@{}", tick - 1)]);
            let lacks = lacking(&contract, type_name, before.get("value").expect("a state"));
            assert_eq!(lacks, Vec::<String>::new(), "{run}@{tick} {type_name}");
            governed += 1;
        }
    }
    assert!(governed > 10, "{governed}");
}

/// D-200, the other way: what the contract requires and the state lacks is what the kernel refuses for, field by field, whatever
/// the agent claims.
#[test]
fn a_refusal_names_what_the_contract_requires_and_the_state_lacks() {
    let place = Place::with_store();
    let pack = pack("insurance-claims.yaml");
    std::fs::write(
        place.path().join("s0.json"),
        r#"{"claim_id":7,"policy_limit":null,"proof_of_loss_url":5}"#,
    )
    .unwrap();
    let begin = ["commit", "--run", "r", "--stage", "2", "--pack", &pack, "--state", "s0.json", "--jsonl"];
    let claim = br#"{"type":"approve_payout","intent":{"description":"all is verified","confidence":1}}"#;
    let ran = place.run_with(&begin, claim);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    let (_, contract) = place.json(&["contract", "show", &pack]);
    let (_, state) = place.json(&["state", "r"]);
    let expected = lacking(&contract, "approve_payout", state.get("value").expect("a state"));
    let refused = crate::support::parse(ran.stdout.lines().nth(1).expect("a reply"));
    let reason = refused.get("reason").expect("a reason");
    assert_eq!(text(reason, "code"), "E0411");
    let listed = text(reason, "message").split_once("does not have: ").expect("a list").1;
    let named: Vec<&str> = listed.split("), ").map(|one| one.split(" (").next().expect("a name")).collect();
    assert_eq!(expected.len(), 4);
    assert_eq!(named, expected, "{listed}");
}

/// Two versions of the insurance contract, in a store with a run under each, and the refusal that leads to their comparison.
#[test]
fn what_another_version_asks_is_told_where_an_import_is_refused() {
    let place = Place::with_store();
    let old = std::fs::read_to_string(pack("insurance-claims.yaml")).unwrap();
    let new = old
        .replace("version: v1", "version: v2")
        .replace(
            "state.total_paid_to_date > state.policy_limit",
            "state.total_paid_to_date >= state.policy_limit",
        )
        .replace("proof_of_loss_url: {type: string, nullable: true}", "proof_of_loss_url: {type: string}")
        .replace("missing_field_name: {type: string}\n", "missing_field_name: {type: any}\n");
    std::fs::write(place.path().join("v2.yaml"), &new).unwrap();
    std::fs::write(
        place.path().join("s0.json"),
        r#"{"claim_id":"c","policy_limit":10,"payout_amount":1,"missing_field_name":"proof_of_loss_url"}"#,
    )
    .unwrap();
    for (run, file) in [("claims-9", pack("insurance-claims.yaml")), ("claims-10", "v2.yaml".to_owned())] {
        let args = ["commit", "--run", run, "--stage", "2", "--pack", &file, "--state", "s0.json"];
        let ask = br#"{"type":"request_info"}"#;
        assert_eq!(place.run_with(&args, ask).code, 0);
    }
    let refused = place.run(&["cherrypick", "--run", "claims-9", "--tick", "1", "--into", "claims-10"]);
    let help = "help: dendrer contract diff insurance.claims/v1 insurance.claims/v2\n";
    assert!(refused.code == 5 && refused.stderr.contains(help), "{}", refused.stderr);
    let diff = ["contract", "diff", "insurance.claims/v1", "insurance.claims/v2"];
    let told = place.ok(&diff);
    let lines: Vec<&str> = told.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "STRICTER  contracts.approve_payout.required_state.proof_of_loss_url   proof_of_loss_url may not be null",
            "STRICTER  violations.over_limit_payout   over_limit_payout is violated when has(state.policy_limit) && state.total_paid_to_date >= state.policy_limit, and was violated when has(state.policy_limit) && state.total_paid_to_date > state.policy_limit",
            "LOOSER    contracts.request_info.required_state.missing_field_name   missing_field_name is any, and was string",
            "OTHER     name   insurance.claims/v1 becomes insurance.claims/v2: nothing is imported from the one into the other",
            "2 stricter, 1 looser, 1 that cannot be ranked",
        ]
    );
    let (code, json) = place.json(&[&diff[..], &["--exit-code"]].concat());
    assert_eq!((code, json.get("stricter").and_then(Value::as_u64)), (1, Some(2)));
    // One name for two packs: neither is meant by it, and a run says which.
    std::fs::write(place.path().join("other.yaml"), old.replace("Money was paid without", "Paid without"))
        .unwrap();
    let args = ["commit", "--run", "claims-11", "--stage", "2", "--pack", "other.yaml", "--state", "s0.json"];
    assert_eq!(place.run_with(&args, br#"{"type":"request_info","intent":{"field":"x"}}"#).code, 0);
    let ran = place.run(&["contract", "show", "insurance.claims/v1"]);
    assert!(ran.code == 2 && ran.stderr.contains("E0432"), "{}", ran.stderr);
    assert!(
        place
            .ok(&["contract", "list"])
            .contains("WARN  insurance.claims/v1 stands for packs that say different things")
    );
    let refused = place.run(&["cherrypick", "--run", "claims-9", "--tick", "1", "--into", "claims-11"]);
    assert!(
        refused.stderr.contains("help: dendrer contract diff claims-9@0 claims-11\n"),
        "{}",
        refused.stderr
    );
    assert!(
        place
            .ok(&["contract", "diff", "claims-9@0", "claims-11"])
            .contains("0 stricter, 0 looser, 0 that cannot be ranked")
    );
}

#[test]
fn no_example_pack_has_findings() {
    let mut seen = 0;
    for entry in std::fs::read_dir(packs()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let ran = demo().run(&["contract", "lint", &path.display().to_string()]);
            assert_eq!(ran.code, 0, "{}", ran.stdout);
            seen += 1;
        }
    }
    assert!(seen >= 9, "{seen}");
    assert_eq!(demo().run(&["contract", "lint", "financial-agent-A"]).code, 0);
}

/// D-187 and D-188: the contracts as the paper prints them have the faults that ours explain away.
#[test]
fn the_faults_of_the_papers_contracts_are_found() {
    let place = Place::new();
    let financial = std::fs::read_to_string(pack("financial.yaml")).unwrap();
    let as_printed = financial.replace("      risk_score: {type: number, precision: 4}\n", "").replace(
        "has(state.risk_score) && has(state.risk_threshold) && state.risk_score > state.risk_threshold\n    bisect_predicate: monotone_lift",
        "state.risk_score > 0.8500\n    monotone: true",
    );
    let (before, after) = as_printed.split_once("progress_contracts:").expect("the contract of progress");
    let as_printed =
        before.replace("has(state.risk_score) && ", "") + &after[after.find("tests:").expect("tests")..];
    std::fs::write(place.path().join("paper.yaml"), &as_printed).unwrap();
    let ran = place.run(&["contract", "lint", "paper.yaml"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let line = as_printed.lines().position(|line| line.contains("0.8500")).unwrap() + 1;
    let found: Vec<&str> = ran.stdout.lines().filter(|line| line.starts_with("paper.yaml:")).collect();
    assert_eq!(
        found,
        [
            format!(
                "paper.yaml:{line}:16: warning[W0443]: risk_exceeded reads state.risk_score, which no contract requires"
            ),
            format!(
                "paper.yaml:{line}:16: warning[W0450]: risk_exceeded cannot be judged before risk_score is written"
            ),
            format!(
                "paper.yaml:{line}:35: warning[W0442]: 0.85 is a threshold at the last of the 4 decimals of state.risk_score"
            ),
            format!(
                "paper.yaml:{}:5: warning[W0444]: risk_exceeded is said to be monotone, and can recover",
                line + 1
            ),
            format!("paper.yaml:{}:15: error[E0907]: nothing shows that it cannot recover", line + 1),
        ]
    );
    assert!(
        ran.stdout.contains("  | why    rule 1 \"what was seen of the market\" may turn it back\n"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.ends_with("5 findings\n"));
    let (code, json) = place.json(&["contract", "lint", "paper.yaml"]);
    assert_eq!((code, items(&json).len(), json.get("complete").and_then(Value::as_bool)), (1, 5, Some(true)));
    for item in items(&json) {
        place.ok(&["explain", text(&item, "code")]);
    }
}

#[test]
fn slips_are_met_with_what_was_meant() {
    let place = Place::new();
    let financial = std::fs::read_to_string(pack("financial.yaml")).unwrap();
    let check = |from: &str, to: &str, expected: &str, next: &str| {
        assert!(financial.contains(from), "{from}");
        std::fs::write(place.path().join("p.yaml"), financial.replacen(from, to, 1)).unwrap();
        let (code, json) = place.json(&["contract", "lint", "p.yaml"]);
        let found = items(&json);
        let is_it = |item: &Value| text(item, "message") == expected && text(item, "next").contains(next);
        assert!(code == 1 && found.iter().any(is_it), "{to}: {json}");
    };
    check("hash_seeds:", "hash_seed:", "a contract has no member hash_seed", "did you mean hash_seeds?");
    check(
        "  execute_transaction:\n    words",
        "  execute_transacton:\n    words",
        "there is no transition type execute_transacton",
        "did you mean execute_transaction?",
    );
    check(
        "hash_seeds: [risk_threshold",
        "hash_seeds: [risk_treshold",
        "no field `risk_treshold` is declared in state",
        "did you mean risk_threshold?",
    );
    check(
        "    when_type: execute_transaction\n",
        "    when_type: execute_transaction\n    when: t.action.tool == 'broker.ordre'\n",
        "there is no tool \"broker.ordre\"",
        "did you mean broker.order?",
    );
    check(
        "    when_type: execute_transaction\n",
        "    when_type: execute_transaction\n    when: t.type == 'plan.update'\n",
        "this condition of rule 3 \"a trade costs what it costs\" is never true",
        "mend the condition",
    );
    // What is no text of a pack at all, and what is hostile.
    for hostile in [&b"\xff\xfe"[..], b"a: &x [*x]", b"{", b"name: \"\x1b[31m\"", &b"[".repeat(100_000)] {
        std::fs::write(place.path().join("p.yaml"), hostile).unwrap();
        let ran = place.run(&["contract", "lint", "p.yaml"]);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        assert!(!ran.stdout.contains('\x1b') && ran.stderr.contains("it is no pack yet"), "{}", ran.stdout);
    }
    assert_eq!(place.run(&["contract", "lint", "nothing.yaml"]).code, 3);
}

const SIMULATION: &str = "
name: acme.trades
version: v1
state:
  cash: {init: s0.cash, decimals: 2}
  is_simulation: {init: s0.is_simulation}
  desk: {init: s0.desk}
  lost: {init: 0, decimals: 2}
types: {trade: buys}
rules:
  - words: a real trade costs what it costs
    when_type: trade
    steps:
      - {add: lost, value: t.intent.amount, if: not state.is_simulation}
contracts:
  trade:
    required_state: {cash: {type: number}, lost: {type: number}}
    hash_seeds: [cash]
violations:
  - {id: ruined, condition: state.lost > state.cash, bisect_predicate: monotone_lift}
";

/// What was not tried has not made no difference.
#[test]
fn what_was_not_tried_is_not_said_to_make_no_difference() {
    let demo = demo();
    let args = ["contract", "suggest", "claims-9", "--tries", "0"];
    let said = demo.run(&args).stdout;
    assert!(
        said.contains(
            " that are read made no difference; 26 were not tried (no other value, or no try left)\n"
        ),
        "{said}"
    );
    assert!(said.contains("; 0 that are read") && said.contains("decided again 0 times"), "{said}");
    let (_, json) = demo.json(&args);
    assert_eq!((json.get("silent"), json.get("untried")), (Some(&0u64.into()), Some(&26u64.into())));
    let said = demo.run(&["contract", "suggest", "claims-9"]).stdout;
    assert!(!said.contains("1 fields") && !said.contains("1 field decide and"), "{said}");
}

/// D-170: the paper's own example of a field that nobody declared is found from two runs.
#[test]
fn the_field_that_nobody_required_is_found_from_runs() {
    let place = Place::with_store();
    std::fs::write(place.path().join("pack.yaml"), SIMULATION).unwrap();
    for (run, simulated) in [("practice", true), ("real", false)] {
        let s0 = format!("{{\"cash\":100,\"is_simulation\":{simulated},\"desk\":\"{run}\"}}");
        std::fs::write(place.path().join("s0.json"), s0).unwrap();
        let args = ["commit", "--run", run, "--stage", "2", "--pack", "pack.yaml", "--state", "s0.json"];
        let amount = if simulated { 500 } else { 20 };
        let trade = format!(
            "{{\"type\":\"trade\",\"intent\":{{\"amount\":{amount},\"declared_deps\":[\"desk\"]}}}}\n"
        );
        assert_eq!(place.run_with(&args, trade.repeat(2).as_bytes()).code, 0);
    }
    let suggest = ["contract", "suggest", "practice", "real"];
    assert_eq!(
        place.ok(&suggest),
        "HEURISTIC  each field was tried with the values it had elsewhere; what nothing reads and nobody names is not found
is_simulation   for trade
  decides   verdicts after 2 of 4 transitions; what is written, 4 of 4
  at        practice@1: with false (as before real@1) it brings about ruined
  at        practice@2: with false (as before real@1) it brings about ruined
  read by   rules for trade
desk   for trade
  decides   named by the model in 4 transitions
2 fields decide and are not required; 0 that are read made no difference
4 transitions looked at, decided again 8 times
"
    );
    let (code, json) = place.json(&suggest);
    assert_eq!((code, text(&items(&json)[0], "field")), (0, "is_simulation"));
    // Once it is required, it is not suggested any more, and the import that it decided is compared.
    let mended =
        SIMULATION.replace("{cash: {type: number}", "{is_simulation: {type: bool}, cash: {type: number}");
    std::fs::write(place.path().join("pack.yaml"), mended).unwrap();
    place.ok(&["reduce", "practice", "--pack", "pack.yaml", "--as", "practice.2", "--state", "s0.json"]);
    let (_, json) = place.json(&["contract", "suggest", "practice.2", "real"]);
    let fields: Vec<_> = items(&json).iter().map(|item| text(item, "field").to_owned()).collect();
    assert!(fields.contains(&"desk".to_owned()), "{json}");
    let (_, alone) = place.json(&["contract", "suggest", "practice.2"]);
    assert!(!alone.to_string().contains("is_simulation"), "{alone}");
    // What there are no tries for is counted.
    let (_, json) = place.json(&[&suggest[..], &["--tries", "3"]].concat());
    assert_eq!(json.get("tries").and_then(Value::as_u64), Some(3));
    assert!(
        json.get("left_out").and_then(|left| left.get("tries")).and_then(Value::as_u64) > Some(0),
        "{json}"
    );
    assert_eq!(place.run(&["contract", "suggest", "practice", "practice"]).code, 2);
    assert_eq!(place.run(&["contract", "suggest", "nobody"]).code, 3);
}

/// D-166 and acceptance point 29: programs that gather findings get them in their own form.
#[test]
fn a_check_speaks_sarif_github_and_junit() {
    let place = Place::with_store();
    std::fs::write(place.path().join("s0.json"), r#"{"claim_id":"c","policy_limit":10,"payout_amount":6}"#)
        .unwrap();
    let pack = pack("insurance-claims.yaml");
    let args = ["commit", "--run", "claims-9", "--stage", "1", "--pack", &pack, "--state", "s0.json"];
    let two = "{\"type\":\"approve_payout\"}\n".repeat(2);
    assert_eq!(place.run_with(&args, two.as_bytes()).code, 0);
    let check = |form: &str| {
        let ran = place.run(&["contract", "check", "claims-9", "--format", form]);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        ran.stdout
    };
    let sarif = crate::support::parse(&check("sarif"));
    assert_eq!(text(&sarif, "version"), "2.1.0");
    let runs = sarif.get("runs").and_then(Value::as_array).unwrap();
    let run = runs.get(0).unwrap();
    let rules = run.get("tool").and_then(|tool| tool.get("driver")?.get("rules")?.as_array()).unwrap();
    for result in run.get("results").and_then(Value::as_array).unwrap().iter() {
        let index = result.get("ruleIndex").and_then(Value::as_u64).unwrap() as usize;
        assert_eq!(rules.get(index).unwrap().get("id"), result.get("ruleId"), "{sarif}");
        assert_eq!((text(result, "kind"), text(result, "level")), ("fail", "error"));
        assert!(!text(result.get("message").unwrap(), "text").is_empty());
        let places = result.get("locations").and_then(Value::as_array).unwrap();
        assert!(places.get(0).unwrap().to_string().contains("claims-9@"), "{result}");
    }
    assert_eq!(
        check("github").lines().next(),
        Some(
            "::error title=insurance.claims/v1/over_limit_payout::claims-9@2: over_limit_payout from tick 2 to tick 2: violated when has(state.policy_limit) && state.total_paid_to_date > state.policy_limit"
        )
    );
    let junit = check("junit");
    assert!(junit.contains("<testsuites tests=\"4\" failures=\"3\" errors=\"0\">\n"), "{junit}");
    assert!(junit.contains("<testcase classname=\"contract\" name=\"required_state\"/>\n"), "{junit}");
    assert!(junit.contains("state.total_paid_to_date &gt; state.policy_limit</failure>"), "{junit}");
    // Another contract than the one in force may be asked.
    let v2 = std::fs::read_to_string(&pack)
        .unwrap()
        .replace("state.total_paid_to_date > state.policy_limit", "state.total_paid_to_date > 100");
    std::fs::write(place.path().join("v2.yaml"), v2).unwrap();
    let (code, json) = place.json(&["contract", "check", "claims-9", "--contract", "v2.yaml"]);
    let onset = items(&json).iter().map(|item| item.get("onset").and_then(Value::as_u64)).collect::<Vec<_>>();
    assert_eq!((code, onset), (1, vec![None, Some(1), Some(1)]));
    assert_eq!(place.run(&["contract", "check", "claims-9", "--format", "sarfi"]).code, 2);
}
