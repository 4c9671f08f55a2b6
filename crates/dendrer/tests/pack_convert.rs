//! `pack convert`: a contract as the dendrer paper prints it becomes a pack that says the same, or is refused with its line.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use std::path::Path;

use dendrer::pack::convert::{Converted, convert};
use dendrer::pack::yaml::Document;
use dendrer::recorder::Fixed;
use dendrer::{Trace, pack, timeline};
use dendrer_kernel::predicate::Verdict;
use dendrer_kernel::step::{Outcome, Start};
use dendrer_object::json::parse_door;
use dendrer_object::note::SigningKey;
use dendrer_object::{Intent, RunName, StoreId, Value};
use dendrer_store::{Memory, Shared, StoreInfo};
use dendrer_testkit::Dice;

/// A contract in the form of the paper.
const LOANS: &str = r#"# Who may lend how much
id: lending_desk_v2
namespace: bank.lending
contracts:
  grant_loan:
    required_state:
      customer: {type: string}
      ceiling: {type: float, precision: 2}   # in CHF
      lent: {type: float, precision: 2}
      checked_at: {type: string, nullable: true}
    hash_seeds: [customer, ceiling]
  ask_for_papers:
    required_state:
      customer: {type: string}
    hash_seeds: [customer]
violations:
- id: over_ceiling
  name: "More lent than the ceiling"
  scope: [grant_loan]
  state: after
  condition: "state.lent > state.ceiling"
  pure: true
  monotone: true
- id: unchecked
  name: "Lent without a check"
  scope: [grant_loan]
  condition: "state.checked_at == null or state.checked_at == ''"
  pure: true
  monotone: true
"#;

fn paper() -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/sources/dendrer-paper.txt");
    let text = std::fs::read_to_string(&path).ok();
    if text.is_none() {
        eprintln!("SKIPPED: {} is not here", path.display());
    }
    text
}

/// The text between two others, with the first.
fn between<'t>(text: &'t str, from: &str, to: &str) -> &'t str {
    let begin = text.find(from).unwrap();
    &text[begin..begin + text[begin..].find(to).unwrap()]
}

/// The first tick at which each violation of a pack is the case, in a run of these lines.
fn onsets(source: &pack::Source, lines: &[String]) -> Vec<(String, Option<u64>)> {
    let id = StoreId([7; 16]);
    let key = SigningKey::from_seed(&id.origin(), [1; 32]).unwrap();
    let store = Shared::new(Box::new(Memory::new(StoreInfo::new(id, key.verifier_key().clone()))));
    let run: RunName = "r".parse().unwrap();
    let start = source.bind(Start::new(run.clone())).unwrap();
    let mut recorder =
        dendrer::Recorder::begin(&store, &start, Box::new(Fixed::new("convert", 1, 1))).unwrap();
    for line in lines {
        let intent = Intent::from_value(&parse_door(line.as_bytes()).unwrap(), None).unwrap();
        assert!(!matches!(recorder.propose(&intent).unwrap(), Outcome::Refused(_)), "{line}");
    }
    recorder.commit().unwrap();
    drop(recorder);
    let trace = Trace::open(&store, &run).unwrap();
    let predicates: Vec<_> = source.pack.predicates.iter().map(|declared| &declared.predicate).collect();
    let judged = timeline::judge_each(&trace, &predicates, 0, trace.tip()).unwrap();
    let first =
        |line: &timeline::Timeline| (0..=trace.tip()).find(|tick| *line.at(*tick) == Verdict::Violation);
    predicates.iter().zip(&judged).map(|(one, line)| (one.name().to_owned(), first(line))).collect()
}

/// D-99, D-102: the printed contract, fences and lost indentation included, is a pack without a finding, and its three conditions have the
/// onsets of their printed words on 1,000 random runs.
#[test]
fn the_printed_contract_says_what_it_prints() {
    let Some(paper) = paper() else { return };
    let printed = between(&paper, "id: claims_adjuster_v1", "### Reading this contract:");
    let converted = convert(printed.as_bytes()).unwrap();
    let source = pack::read(converted.text.as_bytes()).unwrap();
    assert!(source.pack.lint().is_empty(), "{}", converted.text);
    let contract = source.pack.value().get("contracts").unwrap();
    let members = |value: &Value| value.as_object().unwrap().len();
    assert_eq!(members(contract), 2);
    assert_eq!(members(contract.get("approve_payout").unwrap().get("required_state").unwrap()), 6);
    assert_eq!(members(contract.get("request_info").unwrap().get("required_state").unwrap()), 2);
    let mut found = [0; 3];
    for seed in 0..1_000 {
        let mut dice = Dice(seed);
        let (mut limit, mut total) = (None, None);
        let (mut proof, mut confirmed) = (None, None);
        let (mut lines, mut expected) = (Vec::new(), [None; 3]);
        for tick in 1..=1 + dice.below(12) {
            let mut ops = Vec::new();
            let mut set =
                |name: &str, value: String| ops.push(format!(r#"{{"set":"/{name}","value":{value}}}"#));
            let cents = |dice: &mut Dice| dice.below(1_000) as f64 / 100.0;
            for _ in 0..dice.below(3) {
                match dice.below(4) {
                    0 => set("policy_limit", limit.insert(cents(&mut dice)).to_string()),
                    1 => set("total_paid_to_date", total.insert(cents(&mut dice)).to_string()),
                    2 => {
                        proof = [None, Some(""), Some("https://example.org/p")][dice.below(3) as usize];
                        set("proof_of_loss_url", proof.map_or("null".into(), |proof| format!("{proof:?}")));
                    }
                    _ => {
                        confirmed = [None, Some("2026-02-26T14:30:00+01:00")][dice.below(2) as usize];
                        set(
                            "deductible_confirmed_at",
                            confirmed.map_or("null".into(), |at| format!("{at:?}")),
                        );
                    }
                }
            }
            let is_payout = dice.below(2) == 0;
            let name = if is_payout { "approve_payout" } else { "observation.add" };
            lines.push(format!(r#"{{"type":"{name}","author":"user","delta":[{}]}}"#, ops.join(",")));
            let is_over = limit.zip(total).is_some_and(|(limit, total)| total > limit);
            let is_now = [is_over, proof.is_none_or(str::is_empty), confirmed.is_none()];
            for (first, is_now) in expected.iter_mut().zip(is_now) {
                if is_payout && is_now && first.is_none() {
                    *first = Some(tick);
                }
            }
        }
        let names = ["over_limit_payout", "unverified_payout", "deductible_not_confirmed"];
        for (name, onset) in onsets(&source, &lines) {
            let at = names.iter().position(|known| *known == name).unwrap();
            assert_eq!(onset, expected[at], "{seed}: {name} {lines:?}");
            found[at] += u64::from(onset.is_some());
        }
    }
    assert!(found.iter().all(|count| *count > 100), "{found:?}");
}

/// The payload of an extension, dendrer paper 4.4.
#[test]
fn the_printed_extension_is_one() {
    let Some(paper) = paper() else { return };
    let printed = between(&paper, "transition_type: policy.contract_extension\npayload:", "```");
    let Converted { text, is_extension, changes } = convert(printed.as_bytes()).unwrap();
    assert!(is_extension);
    let value = Document::read(text.as_bytes()).unwrap().value;
    let is = |name: &str, text: &str| assert_eq!(value.get(name).unwrap().to_string(), text);
    is("target_contract", r#""acme.financial/v1""#);
    is("adds_required", r#"["counterparty_kyc_status"]"#);
    is("adds_hash_seeds", r#"["counterparty_kyc_status"]"#);
    is("effective_from_tick", "47");
    is("approved_by", r#""human_supervisor_id_or_policy_hash""#);
    assert!(text.contains("state.counterparty_kyc_status != 'verified'"), "{text}");
    assert_eq!(changes.iter().map(|change| change.mark.line).collect::<Vec<_>>(), [1, 2, 3, 4, 8, 10]);
    assert!(text.contains("has(state.counterparty_kyc_status) && ("), "{text}");
}

/// Each leaf of a value, as its place and its text.
fn leaves(value: &Value, place: &mut Vec<String>, found: &mut Vec<(Vec<String>, String)>) {
    let mut each = |name: String, value: &Value| {
        place.push(name);
        leaves(value, place, found);
        place.pop();
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| each(name.to_string(), value)),
        Value::Array(items) => items.iter().enumerate().for_each(|(at, item)| each(at.to_string(), item)),
        _ => found.push((place.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))),
    }
}

/// A text of which something was changed.
fn mutated(text: &str, dice: &mut Dice) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let at = dice.below(lines.len() as u64) as usize;
    match dice.below(6) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[at].clone()),
        2 => lines[at] = format!("  {}", lines[at]),
        3 => lines[at] = lines[at].strip_prefix("  ").unwrap_or(&lines[at]).to_owned(),
        4 => {
            let other = dice.below(lines.len() as u64) as usize;
            lines.swap(at, other);
        }
        _ => {
            let letters: Vec<char> = lines[at].chars().collect();
            let letter = dice.below(letters.len().max(1) as u64) as usize;
            let other = ['x', ':', '"', '\'', '}', ' ', '9', '#'][dice.below(8) as usize];
            let changed =
                letters.iter().enumerate().map(|(place, c)| if place == letter { other } else { *c });
            lines[at] = changed.collect();
        }
    }
    lines.join("\n") + "\n"
}

/// A changed text is converted to what it says, each leaf of it kept or listed, or refused with a line of it.
#[test]
fn a_changed_contract_is_converted_or_refused_with_its_line() {
    let (mut converted, mut refused) = (0, 0);
    for seed in 0..1_000 {
        let mut dice = Dice(seed);
        let mut text = LOANS.to_owned();
        for _ in 0..=dice.below(2) {
            text = mutated(&text, &mut dice);
        }
        let made = match convert(text.as_bytes()) {
            Ok(made) => made,
            Err(problems) => {
                let lines = text.lines().count() + 1;
                assert!(
                    problems.iter().all(|problem| (1..=lines).contains(&problem.mark.line)),
                    "{problems:?}\n{text}"
                );
                assert!(!problems.is_empty(), "{text}");
                refused += 1;
                continue;
            }
        };
        converted += 1;
        pack::read(made.text.as_bytes()).unwrap();
        // Where the reader of YAML takes the text as it is, each leaf is in the pack or among the changes.
        let Ok(document) = Document::read(text.as_bytes()) else { continue };
        let mut found = Vec::new();
        leaves(&document.value, &mut Vec::new(), &mut found);
        let output = Document::read(made.text.as_bytes()).unwrap().value;
        let mut kept = Vec::new();
        leaves(&output, &mut Vec::new(), &mut kept);
        for (place, leaf) in found {
            let pointer = dendrer_object::Pointer::of(place.iter().map(String::as_str));
            let line = document.mark(&pointer, true, None).line;
            let is_kept = kept.iter().any(|(_, text)| text.contains(&leaf));
            let is_listed = made.changes.iter().any(|change| change.mark.line == line);
            assert!(is_kept || is_listed, "{place:?} {leaf}\n{text}\n{}", made.text);
        }
    }
    assert!(converted > 100 && refused > 100, "{converted} {refused}");
}

/// The lines at which a text is refused, each with its message.
fn refused(text: &str) -> Vec<(usize, String)> {
    let problems = convert(text.as_bytes()).map(|made| panic!("{text}\n{}", made.text)).unwrap_err();
    problems.into_iter().map(|one| (one.mark.line, one.message)).collect()
}

/// The changes of a text, each with its line.
fn listed(text: &str) -> Vec<(usize, String)> {
    let made = convert(text.as_bytes()).unwrap_or_else(|problems| panic!("{problems:?}\n{text}"));
    made.changes.into_iter().map(|one| (one.mark.line, format!("{} {}", one.place, one.reason))).collect()
}

fn has(found: &[(usize, String)], line: usize, words: &str) -> bool {
    found.iter().any(|(at, message)| *at == line && message.contains(words))
}

#[test]
fn bytes_that_are_not_utf_8_are_refused_with_their_line() {
    let latin: Vec<u8> = LOANS.replace("the ceiling", "\u{fc}").chars().map(|c| c as u8).collect();
    let wide: Vec<u8> = LOANS.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let marked: Vec<u8> =
        [0xfe, 0xff].into_iter().chain(LOANS.encode_utf16().flat_map(u16::to_be_bytes)).collect();
    for (bytes, line, words) in [(latin, 18, "not UTF-8"), (wide, 1, "UTF-16"), (marked, 1, "UTF-16")] {
        let problems = convert(&bytes).unwrap_err();
        assert_eq!(problems.len(), 1);
        assert_eq!((problems[0].code.as_str(), problems[0].mark.line), ("E0206", line));
        assert!(problems[0].message.contains(words), "{problems:?}");
    }
}

/// Two members for one meaning are refused with both lines if they differ, and what is dropped is listed.
#[test]
fn nothing_is_dropped_in_silence() {
    for (from, to, line, words) in [
        ("  state: after", "  window: before\n  state: after", 21, "line 20"),
        ("  state: after", "  state: after\n  window: before", 21, "line 20"),
        ("  name: \"More", "  words: mine\n  name: \"More", 19, "line 18"),
        ("  name: \"More", "  bisect_predicate: none\n  name: \"More", 24, "line 18"),
        ("namespace: bank.lending", "name: other\nnamespace: bank.lending", 4, "line 3"),
        ("namespace: bank.lending", "version: v9\nnamespace: bank.lending", 3, "line 2"),
        (
            "violations:",
            "grant_loan:\n  required_state: {customer: {type: string}}\nviolations:",
            16,
            "line 5",
        ),
        (
            "    hash_seeds: [customer]\n",
            "    advisory: [customer]\n    advisory_allowlist: [lent]\n",
            16,
            "line 15",
        ),
    ] {
        let text = LOANS.replacen(from, to, 1);
        assert!(has(&refused(&text), line, words), "{to}: {:?}", refused(&text));
    }
    // Twice the same is no conflict.
    for (from, to) in [
        ("  state: after", "  state: after\n  window: after"),
        ("namespace: bank.lending", "name: bank.lending\nversion: v2\nnamespace: bank.lending"),
    ] {
        assert_ne!(listed(&LOANS.replacen(from, to, 1)), []);
    }
    let inner = LOANS.replace("checked_at", "check.at");
    assert!(convert(inner.as_bytes()).unwrap().text.contains("  check: {writers"));
    let mixed = LOANS.replacen("namespace:", "tests: [{name: a, then: []}, {}, x]\nnamespace:", 1);
    assert!(has(&refused(&mixed), 3, ""), "{:?}", refused(&mixed));
    let words = LOANS.replacen("namespace:", "words: mine\nnamespace:", 1);
    assert!(has(&listed(&words), 2, "id lending_desk: "), "{:?}", listed(&words));
    let empty = LOANS.replacen("violations:", "goal: []\nviolations:", 1);
    assert!(has(&refused(&empty), 16, ""), "{:?}", refused(&empty));
    let empty =
        LOANS.replacen("    hash_seeds: [customer]\n", "    hash_seeds: [customer]\n    advisory: []\n", 1);
    assert!(convert(empty.as_bytes()).unwrap().text.contains("advisory: []"));
}

/// What is YAML is read as it is, and else only what printing did is taken back.
#[test]
fn only_what_printing_did_is_taken_back() {
    let tick = "target_contract: a.b.v1\nadds_required: [kyc]\neffective_from_tick:\n  # from then on\n  47\napproved_by: j\n";
    assert!(convert(tick.as_bytes()).unwrap().text.contains("effective_from_tick: 47"));
    let fenced = format!("```\n{tick}```\n");
    assert!(convert(fenced.as_bytes()).unwrap().text.contains("effective_from_tick: 47"));
    for text in [
        LOANS.replacen(
            "  name: \"More lent than the ceiling\"",
            "  name: |\n    # more\n    ```\n    lent",
            1,
        ),
        format!(
            "```\n{}",
            LOANS.replacen(
                "  name: \"More lent than the ceiling\"",
                "  name: |\n    # more\n    ```\n    lent",
                1
            )
        ),
    ] {
        let made = convert(text.as_bytes()).unwrap().text;
        assert!(made.contains(r##""# more\n```\nlent\n""##), "{made}");
    }
    let list = LOANS.replacen(
        "hash_seeds: [customer, ceiling]",
        "hash_seeds: [\n      customer, # who\n      # what\n      ceiling\n    ]",
        1,
    );
    assert!(convert(list.as_bytes()).unwrap().text.contains("[customer, ceiling]"));
    for (from, rest) in [
        ("condition: \"state.lent > state.ceiling\"", "or true"),
        ("condition: state.lent > state.ceiling", "or true"),
    ] {
        let text = LOANS.replacen(
            "condition: \"state.lent > state.ceiling\"",
            &format!("{from}\n  # or\n  {rest}"),
            1,
        );
        assert!(refused(&text).iter().all(|(line, _)| (21..=24).contains(line)), "{:?}", refused(&text));
    }
    let broken = LOANS.replacen(
        "    hash_seeds: [customer, ceiling]",
        "    # the customer and the\nceiling\n    hash_seeds: [customer, ceiling]",
        1,
    );
    assert!(has(&listed(&broken), 12, "the rest of a comment"), "{:?}", listed(&broken));
    // A member that lost its colon is no rest of a comment.
    for member in [
        "hash_seeds [customer]",
        "hash_seeds = [customer]",
        "hash_seeds：[customer]",
        "enforce true",
        "\"seeds\" [a]",
    ] {
        let text = LOANS.replacen(
            "    hash_seeds: [customer, ceiling]",
            &format!("    # what an import must match in each of its fields, all of them\n    {member}"),
            1,
        );
        assert_eq!(refused(&text).first().map(|(line, _)| *line), Some(12), "{member}: {:?}", refused(&text));
    }
    assert!(
        has(&listed(&broken), 1, "3 lines"),
        "comments at the end of a line count: {:?}",
        listed(&broken)
    );
}

/// An extension that `contract extend` would not take is refused at its line.
#[test]
fn an_extension_is_held_to_what_extends_a_contract() {
    let good = "target_contract: acme.pay.v1\nadds_required:\n  kyc: {type: string}\nadds_hash_seeds: [kyc]\nadds_violations:\n- id: unverified\n  scope: [pay]\n  condition: \"state.kyc != 'verified' && state.paid > 0\"\neffective_from_tick: 47\napproved_by: j\n";
    let made = convert(good.as_bytes()).unwrap().text;
    assert!(made.contains("has(state.kyc) && (") && !made.contains("has(state.paid)"), "{made}");
    for (from, to, line, words) in [
        ("tick: 47", "tick: \"47\"", 9, "number of a tick"),
        ("tick: 47", "tick: soon", 9, "number of a tick"),
        ("tick: 47", "tick: -3", 9, "number of a tick"),
        ("tick: 47", "tick: 47.5", 9, "number of a tick"),
        ("tick: 47", "tick: null", 9, "number of a tick"),
        ("tick: 47", "tick: 0", 9, "at the earliest"),
        ("approved_by: j", "approved_by: [j]", 10, "approved_by is text"),
        ("approved_by: j", "approved_by:", 10, "needs an approver"),
        ("adds_required:\n  kyc: {type: string}", "adds_required: 3", 2, "adds_required is a list"),
        ("adds_required:\n  kyc: {type: string}", "adds_required: [kyc, {}]", 2, "lists names"),
        ("adds_required:\n  kyc: {type: string}", "adds_required: [kyc, kyc]", 2, "twice"),
        ("[kyc]", "[kyc, kyc]", 4, "twice"),
        ("- id: unverified\n  scope", "- scope", 6, "has an id"),
        ("{type: string}", "{type: strng}", 3, "a type is one of"),
        ("{type: string}", "{type: float, precison: 2}", 3, "precison"),
        ("target_contract: acme.pay.v1\n", "", 1, "target_contract"),
        ("state.paid > 0", "state.paid >", 8, ""),
        ("  scope", "  scpoe", 7, "scpoe"),
        ("approved_by", "aproved_by", 10, "aproved_by"),
    ] {
        let text = good.replacen(from, to, 1);
        assert_ne!(text, good);
        let found = refused(&text);
        assert!(has(&found, line, words), "{to}: {found:?}");
        assert!(found.iter().all(|(_, message)| !message.contains("byte")), "{found:?}");
    }
    let inner = good.replacen("  kyc:", "  kyc.status:", 1);
    let made = convert(inner.as_bytes()).unwrap().text;
    assert!(made.contains("adds_state:\n  kyc: {writers"), "the state has what is at its top: {made}");
    assert_ne!(refused("transition_type: policy.contract_extension\npayload: {}\n"), []);
    let form = good.replacen("{type: string}", "{type: float, precision: 2, nullable: true}", 1);
    let made = convert(form.as_bytes()).unwrap().text;
    assert!(made.contains("decimals: 2") && made.contains("has(s0.kyc) ? s0.kyc : null"), "{made}");
    assert!(made.contains("has(state.kyc) && ("), "it is not there before it is written: {made}");
}

#[test]
fn what_has_no_counterpart_is_named() {
    for (from, to, line, words) in [
        ("namespace:", "owner: desk\nnamespace:", 3, "owner has no counterpart"),
        ("  pure: true", "  pure: false", 22, "not pure"),
        ("  monotone: true", "  monotone: false", 23, "may recover"),
        ("lending_desk_v2", "lending_desk", 2, "has no version"),
        ("state.lent >", "state.lentt >", 21, "lentt"),
        ("hash_seeds: [customer, ceiling]", "hash_seeds: [customer, ceilng]", 11, "ceilng"),
        (
            "      customer: {type: string}\n    hash_seeds: [customer]\n",
            "      customer: {type: string, precision: 1}\n    hash_seeds: [customer]\n",
            14,
            "has precision",
        ),
        (
            "      customer: {type: string}\n    hash_seeds: [customer]\n",
            "      customer: {type: float, precision: 1}\n    hash_seeds: [customer]\n",
            14,
            "has type",
        ),
        ("state: after", "state: during", 20, "before or after"),
    ] {
        let text = LOANS.replacen(from, to, 1);
        assert_ne!(text, LOANS);
        let problems = convert(text.as_bytes()).unwrap_err();
        let is_named = problems.iter().any(|one| one.mark.line == line && one.message.contains(words));
        assert!(is_named, "{to}: {problems:?}");
    }
    let text =
        LOANS.replacen("ceiling: {type: float, precision: 2}", "ceiling: {type: float, precision: \"2\"}", 1);
    let found = refused(&text);
    assert!(found.len() == 1 && has(&found, 8, "precision is a number of decimals"), "{found:?}");
}
