//! The vectors and examples of the dendrer paper, asked through the program: 3.3.3 (what oscillates), 4.8 (the reference
//! run) and its appendix on insurance claims (obligations over null, text and running totals).

use std::fmt::Write as _;

use dendrer_object::Value;

use crate::support::{Place, demo, ran};

/// A place with a run that sets a number at every tick.
fn recorded(field: &str, first: f64, values: &[f64]) -> Place {
    let place = Place::with_store();
    std::fs::write(place.path().join("s0.json"), format!("{{\"{field}\":{first}}}")).unwrap();
    let mut intents = String::new();
    for value in values {
        let op = format!(r#"{{"set":"/{field}","value":{value}}}"#);
        let _ = writeln!(intents, r#"{{"type":"observation.add","agent":"meter","delta":[{op}]}}"#);
    }
    let ran = place.run_with(&["commit", "--run", "r", "--state", "s0.json"], intents.as_bytes());
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    place
}

/// Runs what prints no hash, and compares all of it.
fn check(place: &Place, args: &[&str], code: i32, stdout: &str, stderr: &str) {
    let ran = place.run(args);
    assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (code, stdout, stderr), "{args:?}");
}

/// The onset of a question, or the outcome where there is none.
fn onset(place: &Place, question: &[&str]) -> String {
    let args = [&["bisect", "claim", "--no-chain"], question].concat();
    let (_, answer) = place.json(&args);
    match answer.get("onset").and_then(Value::as_u64) {
        Some(tick) => tick.to_string(),
        None => {
            answer.get("outcome").and_then(Value::as_str).unwrap_or_else(|| panic!("{answer}")).to_owned()
        }
    }
}

/// D-34.
#[test]
fn the_first_vector_is_found_with_the_probes_that_are_printed() {
    let place = recorded("risk_score", 0.5, &[0.61, 0.68, 0.71, 0.79, 0.83, 0.87, 0.91, 0.94]);
    let (code, found) = place.json(&["bisect", "r", "--predicate", "state.risk_score > 0.75"]);
    let probes = found.get("items").and_then(Value::as_array).unwrap();
    let probes: Vec<u64> =
        probes.iter().map(|probe| probe.get("tick").and_then(Value::as_u64).unwrap()).collect();
    assert_eq!((code, found.get("onset"), &probes[..]), (0, Some(&Value::from(4_u64)), &[4, 2, 3][..]));
}

/// D-15, D-30, D-31, D-35: what oscillates is refused with every tick at which it turned, is looked at all the same, and
/// lifted it has one onset.
#[test]
fn the_second_vector_is_refused_and_lifted_it_begins_at_tick_2() {
    let place = recorded("quality", 0.95, &[0.9, 0.7, 0.8, 0.6, 0.9, 0.7, 0.8, 0.6]);
    let poor = "state.quality < 0.75";
    check(
        &place,
        &["bisect", "r", "--predicate", poor],
        6,
        r"  tick 2  violation  FAIL
  tick 3  ok         OK     <- recovered: binary search could return a wrong tick
  tick 4  violation  FAIL
  tick 5  ok         OK     <- recovered: binary search could return a wrong tick
  tick 6  violation  FAIL
  tick 7  ok         OK     <- recovered: binary search could return a wrong tick
  tick 8  violation  FAIL
SEARCH  violated when state.quality < 0.75, in ticks 0..8 of r, .dendrer
  pure by construction; it recovers on this run (8 candidate ticks checked); digest 6a2b9162ddc6
  ends tick 0 OK, tick 8 FAIL
",
        "error[E0504]: refusing to bisect with a predicate that can recover
  | turns    tick 2 violation, tick 3 ok, tick 4 violation, tick 5 ok, tick 6 violation, tick 7 ok, tick 8 violation
note: a wrong tick would look exactly like a right one
help: dendrer bisect r --predicate 'state.quality < 0.75' --lift
help: dendrer predicate test 'state.quality < 0.75' r
      see: dendrer explain E0504
",
    );
    check(
        &place,
        &["predicate", "test", poor, "r"],
        0,
        r"run        r, ticks 0..8, read from .dendrer
predicate  expression v1   pure: by construction   monotone: seen below   window: after
           violated when state.quality < 0.75   digest 6a2b9162ddc6
  0..1  ok         OK
  2     violation  FAIL
  3     ok         OK     <- recovered
  4     violation  FAIL
  5     ok         OK     <- recovered
  6     violation  FAIL
  7     ok         OK     <- recovered
  8     violation  FAIL
first violated at tick 2   (9 candidate ticks of 9 ticks judged)
",
        "",
    );
    let lifted = place.run(&["bisect", "r", "--predicate", poor, "--lift", "--no-chain"]);
    assert_eq!(lifted.code, 0);
    let before_origin: Vec<&str> =
        lifted.stdout.lines().skip_while(|line| !line.starts_with("SEARCH")).collect();
    assert_eq!(
        before_origin.join("\n"),
        r"SEARCH  violated when state.quality < 0.75, in ticks 0..8 of r, .dendrer
  pure by construction; lifted to the first violation; digest b0a476e25993
  ends tick 0 OK, tick 8 FAIL; at most 3 probes
  it recovers: not violated at 3, 5, 7
  1/3  tick 4  violation  FAIL    left 1..4
  2/3  tick 2  violation  FAIL    left 1..2
  3/3  tick 1  compliant  OK      left 2"
    );
    assert!(lifted.stdout.contains("ONSET (exact)  tick 2  observation.add  by meter"), "{}", lifted.stdout);
}

/// D-32: the entry of a contract is taken as it is printed, by registration, in a file of several, and in a pack.
#[test]
fn the_entry_of_a_contract_asks_for_the_lift() {
    let place = recorded("quality_score", 0.95, &[0.9, 0.7, 0.8]);
    let entry = r#"{"id":"quality_degradation","base_predicate":"state.quality_score < 0.75","bisect_predicate":"monotone_lift","pure":true}"#;
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
    write("several.json", &format!(r#"{{"predicates":[{entry}]}}"#));
    let several = place.ok(&["bisect", "r", "--all-of", "several.json"]);
    assert!(
        several.contains("quality_degradation ") && several.contains("(lifted: it recovers)"),
        "{several}"
    );
    write("entry.json", entry);
    place.ok(&["predicate", "register", "acme.quality", "--file", "entry.json"]);
    let (code, found) = place.json(&["bisect", "r", "--predicate", "acme.quality"]);
    assert_eq!((code, found.get("onset")), (0, Some(&Value::from(2_u64))));
    write(
        "pack.yaml",
        "name: acme.quality\nversion: v1\nreducer: delta/1\nstate: {quality_score: {init: s0.quality_score}}
predicates:
  quality_degradation:
    base_predicate: state.quality_score < 0.75
    bisect_predicate: monotone_lift
    pure: true
",
    );
    place.ok(&["reduce", "r", "--pack", "pack.yaml", "--as", "packed", "--state", "s0.json"]);
    let (code, found) = place.json(&["bisect", "packed", "--predicate", "quality_degradation"]);
    assert_eq!((code, found.get("onset")), (0, Some(&Value::from(2_u64))));
    write(
        "listed.yaml",
        "name: acme.quality\nversion: v2\nreducer: delta/1\nstate: {quality_score: {init: s0.quality_score}}
violations:
  - id: quality_degradation
    base_predicate: \"state.quality_score < 0.75\"
    bisect_predicate: monotone_lift # kernel applies it
    pure: true
",
    );
    assert_eq!(place.run(&["pack", "check", "listed.yaml"]).code, 0);
    place.ok(&["reduce", "r", "--pack", "listed.yaml", "--as", "listed", "--state", "s0.json"]);
    let (code, found) = place.json(&["bisect", "listed", "--predicate", "quality_degradation"]);
    assert_eq!((code, found.get("onset")), (0, Some(&Value::from(2_u64))));
    let listed = std::fs::read_to_string(place.path().join("listed.yaml")).unwrap();
    for (from, to, said) in [
        (
            "pure: true",
            "pure: false",
            "listed.yaml:9:11: error[E0902]: pure is true: no expression is anything else\n  | pure: false\n  |       ^^^^^\n  | at     violations[0].pure\n",
        ),
        ("id: ", "name: ", "listed.yaml:6:5: error[E0902]: a violation has an id\n"),
    ] {
        write("wrong-listed.yaml", &listed.replace(from, to));
        let ran = place.run(&["pack", "check", "wrong-listed.yaml"]);
        assert!(ran.code == 1 && ran.stdout.contains(said), "{to}: {}", ran.stdout);
    }
    for (from, to, part) in [
        ("monotone_lift", "median", "a bisect_predicate is monotone_lift"),
        ("pure\":true", "pure\":false", "pure is true"),
        ("pure: true", "pure: false", "pure is true"),
    ] {
        write("wrong.json", &format!(r#"{{"predicates":[{}]}}"#, entry.replace(from, to)));
        let pack = std::fs::read_to_string(place.path().join("pack.yaml")).unwrap();
        write("wrong.yaml", &pack.replace(from, to));
        let (file, pack) = (
            place.run(&["bisect", "r", "--all-of", "wrong.json"]),
            place.run(&["pack", "check", "wrong.yaml"]),
        );
        let said = format!("{}{}", file.stderr, pack.stdout);
        assert!((file.code == 2 || pack.code == 1) && said.contains(part), "{to}: {said}");
    }
}

/// D-124 and acceptance: rejected with the ticks where it flips, kept for monitoring, refused by bisect, found with a lift.
#[test]
fn the_quality_oscillator_is_rejected_as_printed() {
    let place = Place::new();
    place.ok(&["demo", "--no-tour"]);
    let name = "acme.quality_oscillator";
    let dir = place.path().join("dendrer-demo");
    let store = |args: &[&str]| ran(place.command(args).current_dir(&dir).output().unwrap());
    let rejected = store(&[
        "predicate",
        "register",
        name,
        "--condition",
        "state.quality_score < 0.75",
        "--verify-monotone",
        "--sample-trace",
        "logistics-run-47",
    ]);
    assert_eq!(rejected.code, 1);
    let (answer, record) = rejected.stdout.rsplit_once("   record ").unwrap();
    assert_eq!(record.trim_end().len(), 12);
    assert_eq!(
        answer,
        "testing acme.quality_oscillator on logistics-run-47 (64 ticks, 4 candidate ticks)
  tick 14  violation  FAIL
  tick 17  ok         OK     <- recovered: binary search could return a wrong tick
  tick 22  violation  FAIL
REJECTED for bisect   (kept for monitoring and diff)"
    );
    assert_eq!(
        rejected.stderr,
        "error[E0503]: acme.quality_oscillator is not prefix-monotone
note: bisect refuses it on every run where it recovers; predicate test and monitoring take it as it is
help: dendrer predicate register acme.quality_oscillator --lift monotone
help: dendrer bisect logistics-run-47 --predicate kernel.anomaly_free
      see: dendrer explain E0503
"
    );
    let monitored = store(&["predicate", "test", name, "logistics-run-47"]);
    assert!(
        monitored.code == 0 && monitored.stdout.contains("  14..16  violation  FAIL\n"),
        "{}",
        monitored.stdout
    );
    let refused = store(&["bisect", "logistics-run-47", "--predicate", name]);
    assert_eq!((refused.code, refused.stdout.matches("<- recovered").count()), (6, 1));
    let lifted = store(&["bisect", "logistics-run-47", "--predicate", name, "--lift"]);
    assert!(lifted.code == 0 && lifted.stdout.contains("ONSET (exact)  tick 14  "), "{}", lifted.stdout);
}

/// The same without a word of what the name means: the demo has it on record, so every command works as it is printed.
#[test]
fn the_quality_oscillator_of_the_demo_is_asked_by_its_name() {
    let place = Place::new();
    place.ok(&["demo", "--no-tour"]);
    let name = "acme.quality_oscillator";
    let dir = place.path().join("dendrer-demo");
    let store = |args: &[&str]| ran(place.command(args).current_dir(&dir).output().unwrap());
    let refused = store(&["bisect", "logistics-run-47", "--predicate", name]);
    assert_eq!(refused.code, 6, "{}", refused.stdout);
    assert!(
        refused.stderr.contains("error[E0504]")
            && refused.stderr.contains(
                "help: dendrer bisect logistics-run-47 --predicate acme.quality_oscillator --lift\n"
            ),
        "{}",
        refused.stderr
    );
    let lifted = store(&["bisect", "logistics-run-47", "--predicate", name, "--lift"]);
    assert!(lifted.code == 0 && lifted.stdout.contains("ONSET (exact)  tick 14  "), "{}", lifted.stdout);
    let sample = ["--verify-monotone", "--sample-trace", "logistics-run-47"];
    let rejected = store(&[&["predicate", "register", name][..], &sample].concat());
    assert_eq!(rejected.code, 1);
    assert!(
        rejected.stderr.starts_with("error[E0503]: acme.quality_oscillator is not prefix-monotone\n")
            && rejected
                .stdout
                .contains("\n  tick 14  violation  FAIL\n  tick 17  ok         OK     <- recovered")
            && rejected.stdout.contains("\n  tick 22  violation  FAIL\nREJECTED for bisect"),
        "{}{}",
        rejected.stdout,
        rejected.stderr
    );
    let again = store(&["predicate", "register", name, "--lift", "monotone"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    let found = store(&["bisect", "logistics-run-47", "--predicate", name]);
    assert!(found.code == 0 && found.stdout.contains("ONSET (exact)  tick 14  "), "{}", found.stdout);
}

/// D-69, D-70: the reference run, with the columns of its table.
#[test]
fn the_reference_run_is_a_table_of_ticks() {
    let demo = demo();
    let args = ["predicate", "test", "kernel.policy_compliant", "logistics-planner-1", "--ticks"];
    let ran = demo.run(&args);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let row = |tick: u64| lines[4 + usize::try_from(tick).unwrap()];
    let wanted: Vec<&str> = [1, 8, 13, 14, 17, 20].map(row).to_vec();
    assert_eq!(
        lines[3].split_whitespace().collect::<Vec<_>>(),
        ["tick", "transition_type", "predicate", "notes"]
    );
    assert_eq!(wanted.join("\n"), TABLE);
    assert_eq!(lines.len(), 3 + 1 + 65 + 1, "three lines of head, the names of columns, every tick, a count");
    let (_, json) = demo.json(&args);
    let items = json.get("items").and_then(Value::as_array).unwrap();
    assert_eq!(items.len(), 65);
    assert_eq!(items.get(14).unwrap().get("predicate"), Some(&Value::from("violation")));
    let found =
        demo.run(&["bisect", "logistics-planner-1", "--predicate", "kernel.policy_compliant", "--no-chain"]);
    assert!(found.stdout.contains("ONSET (exact)  tick 14  policy.decision"), "{}", found.stdout);
}

const TABLE: &str = r#"   1  observation.add  ok         OK    "severe storm recorded"
   8  observation.add  ok         OK    "the route depends on the pass and the weather"
  13  observation.add  ok         OK    "alt_source introduced: a webcam forum says the pass is free"
  14  policy.decision  violation  FAIL  deny "risk_score=0.82 > threshold=0.75"
  17  action.request   violation  FAIL  deny dispatch {"kind":"test drive","to":"Splugen","truck":"T2"} "send T2 as a test drive"
  20  kernel.anomaly   violation  FAIL  invariant_breach "T2 is on the road without a dispatch""#;

/// The claims of the paper's appendix, as a pack: types that the ontology does not have, fields that may be null, a running
/// total that is rounded to cents.
const CLAIMS: &str = "name: insurance.claims
version: v1

state:
  claim_id: {init: s0.claim_id}
  status: {init: \"'open'\"}
  policy_limit: {init: s0.policy_limit, decimals: 2}
  total_paid_to_date: {init: 0, decimals: 2}
  proof_of_loss_url: {init: null}
  deductible_confirmed_at: {init: null}
  approvals: {init: 0}

types:
  approve_payout: money is promised
  request_info: something is missing
  confirm_deductible: the deductible was looked at

rules:
  - words: a document comes in
    when_type: observation.add
    steps:
      - set: proof_of_loss_url
        value: t.intent.url
  - words: the deductible is confirmed
    when_type: confirm_deductible
    steps:
      - set: deductible_confirmed_at
        value: t.intent.at
  - words: a payout is approved
    when_type: approve_payout
    steps:
      - add: approvals
        value: 1
      - add: total_paid_to_date
        value: t.intent.payout_amount
  - words: a claim is closed
    when_type: goal.complete
    steps:
      - set: status
        value: \"'closed'\"

predicates:
  over_limit_payout:
    condition: state.total_paid_to_date > state.policy_limit
  unverified_payout:
    condition: state.approvals > 0 and (state.proof_of_loss_url == null or state.proof_of_loss_url == '')
    bisect_predicate: monotone_lift
  deductible_not_confirmed:
    condition: state.approvals > 0 and state.deductible_confirmed_at == null
    bisect_predicate: monotone_lift
  closed_when_paid:
    holds: state.approvals == 0 or state.status != 'open'
";

const CLAIM: &str = r#"{"type":"request_info","intent":{"missing_field_name":"proof_of_loss_url"}}
{"type":"observation.add","intent":{"url":""}}
{"type":"approve_payout","intent":{"payout_amount":600.25}}
{"type":"observation.add","intent":{"url":"https://example.org/loss.pdf"}}
{"type":"confirm_deductible","intent":{"at":"2026-02-26T14:30:00+01:00"}}
{"type":"approve_payout","intent":{"payout_amount":399.75}}
{"type":"approve_payout","intent":{"payout_amount":0.01}}
{"type":"goal.complete","intent":{}}
"#;

fn claim() -> Place {
    let place = Place::with_store();
    std::fs::write(place.path().join("claims.yaml"), CLAIMS).unwrap();
    std::fs::write(place.path().join("s0.json"), r#"{"claim_id":"CLM-1","policy_limit":1000}"#).unwrap();
    let ran = place.run_with(
        &["commit", "--run", "claim", "--pack", "claims.yaml", "--state", "s0.json"],
        CLAIM.as_bytes(),
    );
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    place
}

/// D-56, D-104, D-156: obligations of the appendix, by name and as the condition is printed.
#[test]
fn obligations_of_the_appendix_are_found_where_they_were_not_met() {
    let place = claim();
    let named = |name: &str| onset(&place, &["--predicate", name]);
    // Exactly at the limit is within it; one cent more is not.
    assert_eq!(named("over_limit_payout"), "7");
    // A document without an address is none, though the field is not null.
    assert_eq!(named("unverified_payout"), "3");
    assert_eq!(named("deductible_not_confirmed"), "3");
    assert_eq!(named("closed_when_paid"), "recovers", "paid at tick 3, closed at tick 8");
    assert_eq!(onset(&place, &["--predicate", "closed_when_paid", "--lift"]), "3");

    let condition = |text: &str| onset(&place, &["--predicate", text]);
    assert_eq!(condition("state.total_paid_to_date > state.policy_limit"), "7");
    // Without its scope the condition is met from the beginning, and then no more.
    let unscoped = "state.proof_of_loss_url == null or state.proof_of_loss_url == ''";
    assert_eq!(condition(unscoped), "recovers");
    assert_eq!(onset(&place, &["--predicate", unscoped, "--lift"]), "0");
    for (holds, expected) in [
        ("state.claim_id == 'CLM-1'", "never"),
        ("state.claim_id != 'CLM-2' and state.policy_limit == 1000.0", "never"),
        ("state.status == \"open\"", "8"),
        ("state.status != 'closed'", "8"),
        ("state.deductible_confirmed_at == null", "5"),
        ("state.deductible_confirmed_at == null or state.deductible_confirmed_at >= '2026-02-26'", "never"),
        ("not (state.total_paid_to_date >= 1000 and state.approvals <= 2)", "recovers"),
        ("state.approvals < 2 or state.proof_of_loss_url != null", "never"),
        ("state.total_paid_to_date != 1000", "recovers"),
        ("state.deductible_confirmed_at > 5", "uncertain"),
    ] {
        assert_eq!(onset(&place, &["--holds", holds]), expected, "{holds}");
    }
}

/// D-29: a running total that is looked at before the transition misses what the transition adds.
#[test]
fn the_window_of_a_running_total_decides() {
    let place = claim();
    let over = "state.total_paid_to_date > state.policy_limit";
    assert_eq!(onset(&place, &["--predicate", over]), "7");
    assert_eq!(onset(&place, &["--predicate", over, "--window", "before"]), "8");
    let pack = CLAIMS.replace(
        "condition: state.total_paid_to_date > state.policy_limit\n",
        "condition: state.total_paid_to_date > state.policy_limit\n    window: before\n",
    );
    std::fs::write(place.path().join("before.yaml"), pack).unwrap();
    place.ok(&["reduce", "claim", "--pack", "before.yaml", "--as", "again", "--state", "s0.json", "-q"]);
    let (_, declared) = place.json(&["bisect", "again", "--predicate", "over_limit_payout"]);
    assert_eq!(declared.get("onset"), Some(&Value::from(8_u64)));
}

/// D-107: a threshold has no more decimals than the field; a guard band is the author's to choose.
#[test]
fn a_threshold_is_as_fine_as_its_field() {
    let place = Place::new();
    let check = |threshold: &str| {
        let pack = CLAIMS
            .replace("total_paid_to_date > state.policy_limit", &format!("total_paid_to_date > {threshold}"));
        std::fs::write(place.path().join("claims.yaml"), pack).unwrap();
        place.run(&["pack", "check", "claims.yaml"])
    };
    assert_eq!((check("999.99").code, check("1000").code), (0, 0));
    let finer = check("999.995");
    assert_eq!(finer.code, 1);
    assert!(
        finer.stdout.contains("error[E0502]: the field has 2 decimals, and the literal has more"),
        "{}",
        finer.stdout
    );
    assert!(finer.stdout.contains("hint   write "), "{}", finer.stdout);
}

/// D-55: a bare name in an expression is a constant of the run's pack; without a pack it is nothing.
#[test]
fn a_bare_name_is_a_constant_of_the_pack() {
    let place = recorded("risk_score", 0.5, &[0.61, 0.79, 0.83]);
    let pack = "name: acme.risk\nversion: v1\nreducer: delta/1
constants: {threshold: 0.75}
state: {risk_score: {init: s0.risk_score}}
";
    std::fs::write(place.path().join("pack.yaml"), pack).unwrap();
    place.ok(&["reduce", "r", "--pack", "pack.yaml", "--as", "packed", "--state", "s0.json"]);
    let ask = |run: &str| place.json(&["bisect", run, "--predicate", "state.risk_score > threshold"]);
    let (code, found) = ask("packed");
    assert_eq!((code, found.get("onset")), (0, Some(&Value::from(2_u64))), "{found}");
    let (code, error) = ask("r");
    assert_eq!((code, error.get("code")), (2, Some(&Value::from("E0505"))), "{error}");
}

/// D-56, D-63: predicates under the names that the paper gives its own, and what is printed of a version.
#[test]
fn names_of_the_paper_are_names() {
    let place = Place::new();
    place.ok(&["demo", "--no-tour"]);
    let dir = place.path().join("dendrer-demo");
    let store = |args: &[&str]| ran(place.command(args).current_dir(&dir).output().unwrap());
    for (name, version, run, holds, onset) in [
        ("acme.quality_floor", "v1", "logistics-run-47", "state.quality_score >= 0.65", 22),
        ("ws.risk_threshold", "v1", "logistics-planner-1", "state.risk_score <= 0.75", 14),
        ("acme.budget_compliance_v1", "v1", "planning-run-12", "state.plan_total <= state.budget_limit", 1),
    ] {
        // The demo has registered it, after it was tested on that run.
        let made = store(&[
            "predicate",
            "register",
            name,
            "--holds",
            holds,
            "--version",
            version,
            "--verify-monotone",
            "--sample-trace",
            run,
        ]);
        assert_eq!(made.code, 0, "{}", made.stderr);
        assert!(made.stdout.contains("was registered already: "), "{}", made.stdout);
        let found = store(&["bisect", run, "--predicate", name]);
        assert_eq!(found.code, 0, "{name}: {}{}", found.stdout, found.stderr);
        let (head, origin) =
            (format!("\nSEARCH  {name} {version}, "), format!("ONSET (exact)  tick {onset}  "));
        assert!(found.stdout.contains(&head) && found.stdout.starts_with(&origin), "{}", found.stdout);
    }
    // A store that has none of them: a name means nothing until it is registered, and then what it was registered with.
    let own = Place::with_store();
    let lines = r#"{"type":"memory.write","agent":"a","delta":[{"set":"/quality","value":0.9}]}
{"type":"memory.write","agent":"a","delta":[{"set":"/quality","value":0.4}]}
"#;
    own.run_with(&["commit", "--run", "r"], lines.as_bytes());
    let name = "acme.tax_compliance_v2";
    assert_eq!(own.run(&["bisect", "r", "--predicate", name]).code, 3);
    let holds = ["--holds", "!has(state.quality) || state.quality > 0.5", "--version", "v2.1.3"];
    own.ok(&[&["predicate", "register", name][..], &holds, &["--verify-monotone", "--sample-trace", "r"]]
        .concat());
    let found = own.ok(&["bisect", "r", "--predicate", name]);
    assert!(found.contains("\nSEARCH  acme.tax_compliance_v2 v2.1.3, "), "{found}");
    assert!(found.starts_with("ONSET (exact)  tick 2  memory.write"), "{found}");
    let near = own.run(&["bisect", "r", "--predicate", "acme.tax_complience_v2"]);
    assert!(near.code == 3 && near.stderr.contains(name), "{}", near.stderr);
    for (name, onset) in [("kernel.anomaly_free", 32), ("kernel.policy_compliant", 22)] {
        let found = store(&["bisect", "logistics-run-47", "--predicate", name]);
        assert!(found.stdout.starts_with(&format!("ONSET (exact)  tick {onset}  ")), "{}", found.stdout);
    }
}

/// D-59: what the paper calls hard signals, each as a question.
#[test]
fn every_hard_signal_can_be_asked_for() {
    let demo = demo();
    for (question, onset) in [
        (["--anomaly", "kernel.anomaly"], 32_u64),
        (["--anomaly", "invariant_breach"], 32),
        (["--policy-flip", "action.request"], 23),
        (["--predicate", "state.risk_score > state.risk_threshold"], 22),
    ] {
        let (code, found) = demo.json(&["bisect", "logistics-run-47", question[0], question[1]]);
        assert_eq!((code, found.get("onset")), (0, Some(&Value::from(onset))), "{question:?}");
    }
    // The same signals where nobody wrote them down: the kernel finds each of them in what is proposed.
    let place = Place::with_store();
    let lines = r#"{"type":"policy.decision","author":"runtime","policy":{"decision":"allow","transition_type":"action.request"}}
{"type":"plan.update","delta":[{"set":"/risk","value":0.9}]}
{"type":"policy.decision","author":"runtime","policy":{"decision":"deny","transition_type":"action.request"}}
{"type":"kernel.anomaly"}
{"type":"plan.update","delta":[{"add":"/nothing","value":1}]}
"#;
    place.run_with(&["commit", "--run", "own", "--as", "runtime", "--stage", "0"], lines.as_bytes());
    for (question, onset) in [
        (["--anomaly", "kernel.anomaly"], 4_u64),
        (["--anomaly", "forged_type"], 4),
        (["--anomaly", "reducer_error"], 5),
        (["--policy-flip", "action.request"], 3),
        (["--predicate", "has(state.risk) && state.risk > 0.75"], 2),
        (["--predicate", "kernel.anomaly_free"], 4),
    ] {
        let (code, found) = place.json(&["bisect", "own", question[0], question[1]]);
        assert_eq!((code, found.get("onset")), (0, Some(&Value::from(onset))), "{question:?}: {found}");
    }
    let never = demo.run(&["bisect", "logistics-run-47", "--predicate", "state.budget_eur < 0"]);
    assert!(never.code == 1 && never.stdout.contains("no violation: "), "{}", never.stdout);
}

/// D-156: types of the paper that the ontology lacks are refused until a pack registers them.
#[test]
fn types_of_the_paper_are_registered_by_a_pack() {
    let place = Place::with_store();
    let types = ["execute_transaction", "approve_payout", "request_info", "artifact.write"];
    let lines: String = types.iter().map(|name| format!("{{\"type\":\"{name}\"}}\n")).collect();
    let refused = place.run_with(&["commit", "--run", "plain"], lines.as_bytes());
    assert_eq!(refused.code, 5, "{}{}", refused.stdout, refused.stderr);
    let declared: String = types.iter().map(|name| format!("  {name}: a type of the paper\n")).collect();
    let pack = format!("name: acme.types\nversion: v1\nreducer: delta/1\nstate: {{}}\ntypes:\n{declared}");
    std::fs::write(place.path().join("types.yaml"), pack).unwrap();
    let taken = place.run_with(&["commit", "--run", "typed", "--pack", "types.yaml"], lines.as_bytes());
    assert_eq!(taken.code, 0, "{}{}", taken.stdout, taken.stderr);
    let log = place.ok(&["log", "typed", "--oneline"]);
    assert!(types.iter().all(|name| log.contains(name)), "{log}");
}
