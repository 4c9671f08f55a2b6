use dendrer::change::extend::{Extended, extend};
use dendrer::contract::compare::compare;
use dendrer::contract::find::{FoundContract, list};
use dendrer::contract::lint::lint;
use dendrer::contract::suggest::{SuggestQuestion, suggest};
use dendrer::contract::{CheckedContract, check as check_run};
use dendrer::kernel::step::Start;
use dendrer::pack::{self, Files};
use dendrer::recorder::Fixed;
use dendrer::store::Shared;
use dendrer_object::Intent;
use dendrer_testkit::{memory, record, run_name};
use dendrer_view::answer::{Answer as _, End, Page};
use dendrer_view::contract::check::ContractCheckAnswer;
use dendrer_view::contract::extend::KeygenAnswer;
use dendrer_view::contract::found::{ContractAnswer, ContractDiffAnswer};
use dendrer_view::contract::lint::LintAnswer;
use dendrer_view::contract::suggest::SuggestAnswer;
use dendrer_view::forms::{FindingsAnswer, FindingsForm};

use super::{check, text, trace, value};

const PACK: &str = "name: acme.risk
version: v1
words: A risk under a limit.
state:
  limit: {init: \"has(s0.limit) ? s0.limit : null\"}
  risk: {init: s0.risk, decimals: 2}
rules:
  - words: a risk is observed
    when_type: observation.add
    steps:
      - {set: risk, value: t.intent.risk}
contracts:
  observation.add:
    required_state: {limit: {type: number}}
violations:
  - {id: too_risky, condition: state.risk > 0.75, bisect_predicate: monotone_lift}
";

fn under_pack(store: &Shared, run: &str, pack: &str, s0: &str, risks: &[f64]) {
    let start = Start { state: value(s0), ..Start::new(run_name(run)) };
    let start = pack::read(pack.as_bytes()).unwrap().bind(start).unwrap();
    let intents = risks.iter().map(|risk| {
        let said = value(&format!(r#"{{"description":"observed","risk":{risk}}}"#));
        Intent::new("observation.add".parse().unwrap(), "agent").with("intent", said)
    });
    record(store, &start, intents);
}

fn observed() -> Shared {
    let store = memory(7);
    under_pack(&store, "observed", PACK, r#"{"risk":0.25}"#, &[0.5, 0.8, 0.9]);
    store
}

fn checked() -> CheckedContract {
    let trace = trace(&observed(), "observed");
    check_run(&trace, None, 0, trace.tip(), None).unwrap()
}

fn found(pack: &str) -> FoundContract {
    FoundContract::of_source(pack::read(pack.as_bytes()).unwrap())
}

#[test]
fn check_lists_lacking_fields_and_violations() {
    let checked = checked();
    let answer = ContractCheckAnswer { checked: &checked, all_violations: true };
    check(
        &text(&answer, &Page::WIDE),
        r#"
        contract  acme.risk/v1 (in force for ticks 0..3)
        required  FAIL  3 of 3 transitions lacked what they require   not enforced when it was recorded, at stage 1
          tick 1  observation.add  limit: it is null
          tick 2  observation.add  limit: it is null
          tick 3  observation.add  limit: it is null
          FAIL  too_risky  from tick 2   violated when state.risk > 0.75  (after)
                ticks 2..3
        1 of 1 violated
        (stderr) help: dendrer bisect observed --predicate too_risky"#,
    );
    assert_eq!(answer.end(), End::No);
}

#[test]
fn check_under_a_given_contract_says_so() {
    let store = observed();
    let trace = trace(&store, "observed");
    let given = found(&PACK.replace("0.75", "0.95").replace("limit: {type: number}", "risk: {type: number}"));
    let checked = check_run(&trace, Some(&given.terms.pack), 2, trace.tip(), None).unwrap();
    let answer = ContractCheckAnswer { checked: &checked, all_violations: false };
    check(
        &text(&answer, &Page::WIDE),
        r#"
        contract  acme.risk/v1 (asked of ticks 2..3)
        required  OK    0 of 2 transitions lacked what they require   another contract than the one in force may be asked
          OK    too_risky
        0 of 1 violated"#,
    );
    assert_eq!(answer.end(), End::Answered);
}

#[test]
fn findings_have_three_forms() {
    let checked = checked();
    let answer = ContractCheckAnswer { checked: &checked, all_violations: false };
    let form = |form| FindingsAnswer { form, answer };
    check(
        &text(&form(FindingsForm::Github), &Page::WIDE),
        r#"
        ::error title=required_state::observed@1: observation.add lacks what it requires: limit: it is null
        ::error title=required_state::observed@2: observation.add lacks what it requires: limit: it is null
        ::error title=required_state::observed@3: observation.add lacks what it requires: limit: it is null
        ::error title=acme.risk/v1/too_risky::observed@2: too_risky from tick 2 to tick 3: violated when state.risk > 0.75"#,
    );
    check(
        &text(&form(FindingsForm::Junit), &Page::WIDE),
        r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites tests="2" failures="2" errors="0">
          <testsuite name="contract check observed" tests="2" failures="2" errors="0">
            <testcase classname="contract" name="required_state">
              <failure message="observation.add lacks what it requires: limit: it is null">observation.add lacks what it requires: limit: it is null
        observation.add lacks what it requires: limit: it is null
        observation.add lacks what it requires: limit: it is null</failure>
            </testcase>
            <testcase classname="acme.risk/v1" name="too_risky">
              <failure message="too_risky from tick 2 to tick 3: violated when state.risk &gt; 0.75">too_risky from tick 2 to tick 3: violated when state.risk &gt; 0.75</failure>
            </testcase>
          </testsuite>
        </testsuites>"#,
    );
    let version = |version: &str| format!(r#""version":"{version}"}}}}}}],"#);
    let sarif = text(&form(FindingsForm::Sarif), &Page::WIDE);
    check(
        &sarif.replace(&version(env!("CARGO_PKG_VERSION")), &version("VERSION")),
        r#"
        {"runs":[{"automationDetails":{"id":"dendrer/contract-check/observed"},"results":[{"kind":"fail","level":"error","locations":[{"logicalLocations":[{"fullyQualifiedName":"observed@1","kind":"member"}]}],"message":{"text":"observation.add lacks what it requires: limit: it is null"},"ruleId":"required_state","ruleIndex":0},{"kind":"fail","level":"error","locations":[{"logicalLocations":[{"fullyQualifiedName":"observed@2","kind":"member"}]}],"message":{"text":"observation.add lacks what it requires: limit: it is null"},"ruleId":"required_state","ruleIndex":0},{"kind":"fail","level":"error","locations":[{"logicalLocations":[{"fullyQualifiedName":"observed@3","kind":"member"}]}],"message":{"text":"observation.add lacks what it requires: limit: it is null"},"ruleId":"required_state","ruleIndex":0},{"kind":"fail","level":"error","locations":[{"logicalLocations":[{"fullyQualifiedName":"observed@2","kind":"member"}]}],"message":{"text":"too_risky from tick 2 to tick 3: violated when state.risk > 0.75"},"ruleId":"acme.risk/v1/too_risky","ruleIndex":1}],"tool":{"driver":{"name":"dendrer","rules":[{"id":"required_state","shortDescription":{"text":"a transition is committed where the state has what its contract requires"}},{"id":"acme.risk/v1/too_risky","shortDescription":{"text":"violated when state.risk > 0.75"}}],"version":"VERSION"}}}],"version":"2.1.0"}"#,
    );
}

#[test]
fn list_warns_of_one_name_for_two_packs() {
    let store = observed();
    under_pack(&store, "looser", &PACK.replace("0.75", "0.95"), r#"{"limit":1,"risk":0.25}"#, &[0.5]);
    super::add_run(&store, "free", &[0.5]);
    check(
        &text(&list(&store).unwrap(), &Page::WIDE),
        r#"
        contract      runs  types  violations  digest        newest run
        acme.risk/v1     1      1           1  2d3ca764a7f0  observed
        acme.risk/v1     1      1           1  4861fee1bda1  looser
        WARN  acme.risk/v1 stands for packs that say different things; a run says which it means
        2 contracts, 1 run without one"#,
    );
}

#[test]
fn contract_in_a_run_names_the_place_and_the_stage() {
    let trace = trace(&observed(), "observed");
    let found = FoundContract::in_run(&trace, 2, true).unwrap().unwrap();
    check(
        &text(&ContractAnswer { found: &found, only: None }, &Page::WIDE),
        r#"
        acme.risk/v1   A risk under a limit.
        digest    sha256:2d3ca764a7f0a085cff319883b10fe55ddd5985293ff253e7e9524322a80edb9
        reducer   fold/1, 1 rule
        enforced  not in observed (tick 2), recorded at stage 1: contracts are enforced from stage 2 on
        type      observation.add   written by agents, the runtime and users
          needs     limit  number, an import finds it there
          changes   risk (set, rule 1)
        never     too_risky   violated when state.risk > 0.75   (after each transition)
                  sound: its first violation counts, whatever comes after (lifted)
                  reads state.risk
        field     state.limit   begins as "has(s0.limit) ? s0.limit : null" gives; no rule writes it
        field     state.risk   begins as "s0.risk" gives, 2 decimals; written by set of observation.add (rule 1)
        field     state.kernel_anomalies, policy, progress   written by the kernel alone"#,
    );
}

#[test]
fn contract_by_itself_shows_one_type() {
    let only = "observation.add".parse().unwrap();
    let answer = ContractAnswer { found: &found(PACK), only: Some(&only) };
    check(
        &text(&answer, &Page::WIDE),
        r#"
        acme.risk/v1   A risk under a limit.
        digest    sha256:2d3ca764a7f0a085cff319883b10fe55ddd5985293ff253e7e9524322a80edb9
        reducer   fold/1, 1 rule
        enforced  from stage 2 on: what a type needs is looked at in the state before each commit
        type      observation.add   written by agents, the runtime and users
          needs     limit  number, an import finds it there
          changes   risk (set, rule 1)"#,
    );
}

#[test]
fn diff_ranks_the_second_against_the_first() {
    let old = found(PACK);
    let new =
        found(&PACK.replace("{limit: {type: number}}", "{limit: {type: number}, risk: {type: number}}"));
    let changes = &compare(&old.terms.pack, &new.terms.pack);
    let answer = ContractDiffAnswer { old: &old, new: &new, changes, fails: true };
    check(
        &text(&answer, &Page::WIDE),
        r#"
        acme.risk/v1 (2d3ca764a7f0) -> acme.risk/v1 (4b4ca5581f81)
        STRICTER  contracts.observation.add.required_state.risk   observation.add needs risk (number)
        1 stricter, 0 looser, 0 that cannot be ranked
        (stderr) note: the second is ranked against the first; words and tests are not compared"#,
    );
    assert_eq!(answer.end(), End::No);
}

#[test]
fn lint_prints_the_place_of_each_finding() {
    let bad = PACK.replace("t.intent.risk}", "t.intent.risk, iff: 1}");
    let linted = lint(bad.as_bytes(), Files::Nowhere);
    check(
        &text(&LintAnswer { file: "risk.yaml", linted: &linted }, &Page::WIDE),
        r#"
        risk.yaml:11:43: error[E0902]: a step with `set` has no member iff
          | at     rules[0].steps[0].iff
          | next   did you mean if?
        1 finding
        (stderr) note: it is no pack yet; nothing but its faults was looked at"#,
    );
    let linted = lint(PACK.as_bytes(), Files::Nowhere);
    check(
        &text(&LintAnswer { file: "risk.yaml", linted: &linted }, &Page::WIDE),
        r#"
        risk.yaml:16:32: warning[W0443]: too_risky reads state.risk, which no contract requires
          | at     violations[0].condition
          | why    a transition is committed where it is missing and imported where it is another, and then the predicate says something else or nothing
          | next   add state.risk to required_state of the types that it judges
        risk.yaml:16:45: warning[W0442]: 0.75 is a threshold at the last of the 2 decimals of state.risk
          | at     violations[0].condition
          | why    rounding alone may put a value on it or beyond: what differs in nothing that matters is judged differently
          | next   put the threshold a step further than what is meant and write it with at most 1 decimal (0.86 and not 0.850), or keep the field to one decimal more
        2 findings"#,
    );
}

#[test]
fn suggest_prints_fields_that_decide() {
    let pack = PACK.replace("value: t.intent.risk", "value: t.intent.risk * state.limit");
    let pack =
        pack.replace("required_state: {limit: {type: number}}", "required_state: {risk: {type: number}}");
    let store = memory(7);
    under_pack(&store, "observed", &pack, r#"{"limit":1,"risk":0.25}"#, &[0.5, 0.8, 0.9]);
    under_pack(&store, "calm", &pack, r#"{"limit":0.5,"risk":0.25}"#, &[0.25, 0.5]);
    let traces = [trace(&store, "observed"), trace(&store, "calm")];
    let found = suggest(&traces, SuggestQuestion { only: None, tries: 100 }).unwrap();
    let runs = ["observed".to_owned(), "calm".to_owned()];
    check(
        &text(&SuggestAnswer { runs: &runs, found: &found }, &Page::WIDE),
        r#"
        HEURISTIC  each field was tried with the values it had elsewhere; what nothing reads and nobody names is not found
        limit   for observation.add
          decides   verdicts after 1 of 5 transitions; what is written, 5 of 5
          at        observed@2: with 0.5 (as before calm@1) it does not bring about too_risky
          read by   rules for observation.add
        1 field decides and is not required; 0 that are read made no difference
        5 transitions looked at, decided again 5 times"#,
    );
}

fn extended(dry: bool) -> Extended {
    let extension = value(
        r#"{"adds_required":{"risk":{"type":"number"}},"approved_by":"j.doe","effective_from_tick":5,
            "id":"risk-known","target_contract":"acme.risk/v1","types":["observation.add"]}"#,
    );
    let world = Box::new(Fixed::new("extend", 0, 1));
    extend(&observed(), &run_name("observed"), &extension, None, world, dry).unwrap()
}

#[test]
fn extension_prints_what_it_adds_and_who_approved() {
    check(
        &text(&extended(false), &Page::WIDE),
        r#"
        extended  acme.risk/v1 with risk-known, from tick 5 on
        for       observation.add
        requires  risk
        approved  by j.doe   not signed: the contract names no approver with a key
        tick 4  sha256:f06992d062c46aaa0a0d7f8913bb380c4503a3e2acc89652c051c4e5e3461387  of observed
        (stderr) note: contracts are enforced from stage 2 on; in this run `contract check` says what would have been refused"#,
    );
    check(
        &text(&extended(true), &Page::WIDE),
        r#"
        would extend  acme.risk/v1 with risk-known, from tick 5 on
        for       observation.add
        requires  risk
        approved  by j.doe   not signed: the contract names no approver with a key
        (stderr) note: nothing was written
        (stderr) note: contracts are enforced from stage 2 on; in this run `contract check` says what would have been refused"#,
    );
}

#[test]
fn keygen_prints_the_line_for_the_pack() {
    let answer = KeygenAnswer { name: "j.doe", file: "j.key", verifier: "j.doe+00000000+AA==" };
    check(
        &text(&answer, &Page::WIDE),
        r#"
        wrote j.key; keep it, nobody else may read it
        approvers:
          j.doe: j.doe+00000000+AA=="#,
    );
}
