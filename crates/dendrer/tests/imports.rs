//! Imports against an independent, slow statement of the rules: what is imported silently, and what is refused falsely.

#![expect(clippy::print_stdout, reason = "figures with --nocapture")]

use std::collections::BTreeMap;
use std::sync::Arc;

use dendrer::cherrypick::{Candidate, Imported, PickTerms, import};
use dendrer::recorder::{Fixed, Recorder};
use dendrer::store::Shared;
use dendrer::store::embedded::{Embedded, Options};
use dendrer::store::prelude::*;
use dendrer::{Error, Trace, pack, verify};
use dendrer_kernel::contract::{Import, ImportRefused, Side, check_import};
use dendrer_kernel::step::{Outcome, Stage, Start};
use dendrer_object::json::parse_door;
use dendrer_object::record::Seed;
use dendrer_object::{Intent, Value};
use dendrer_testkit::{Dice, info, run_name};
use tempfile::TempDir;

fn v(text: &str) -> Value {
    parse_door(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn surroundings(name: &str) -> Box<Fixed> {
    Box::new(Fixed::new(name, 1_790_000_000_000, 1_000))
}

/// How a field of a generated contract is compared.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Rule {
    Unsaid,
    Equal,
    Present,
    /// `source.f <= target.f`, for numbers.
    NotLess,
}

#[derive(Debug, Clone)]
struct Field {
    name: String,
    kind: &'static str,
    precision: Option<u32>,
    nullable: bool,
    seed: bool,
    rule: Rule,
}

const KINDS: [&str; 5] = ["number", "string", "bool", "list", "any"];

fn fields(dice: &mut Dice) -> Vec<Field> {
    let count = 1 + dice.below(4);
    (0..count)
        .map(|n| {
            let kind = KINDS[dice.below(5) as usize];
            let number = kind == "number";
            let rule = match dice.below(5) {
                0 => Rule::Equal,
                1 => Rule::Present,
                2 if number => Rule::NotLess,
                _ => Rule::Unsaid,
            };
            Field {
                name: format!("f{n}"),
                kind,
                precision: (number && dice.below(2) == 0).then(|| dice.below(3) as u32),
                nullable: dice.below(4) == 0,
                seed: dice.below(2) == 0,
                rule,
            }
        })
        .collect()
}

fn value_of(kind: &str, dice: &mut Dice) -> Value {
    match kind {
        "number" => Value::from([0.0, 1.0, 1.004, 1.006, 2.5, 1e6][dice.below(6) as usize]),
        "string" => Value::from(["", "MAX", "MIN"][dice.below(3) as usize]),
        "bool" => Value::from(dice.below(2) == 0),
        "list" => Value::array((0..dice.below(2)).map(|n| Value::from(n as f64))),
        _ => value_of(KINDS[dice.below(4) as usize], dice),
    }
}

/// A state in which most fields are as they must be.
fn state(fields: &[Field], dice: &mut Dice, sound: bool) -> Value {
    let mut members: Vec<(String, Value)> = Vec::new();
    for field in fields {
        let odd = !sound && dice.below(5) == 0;
        let value = match () {
            () if odd && dice.below(2) == 0 => continue,
            () if odd => value_of(KINDS[dice.below(4) as usize], dice),
            () if field.nullable && dice.below(3) == 0 => Value::Null,
            () if !sound && dice.below(12) == 0 => Value::Null,
            () => value_of(field.kind, dice),
        };
        members.push((field.name.clone(), value));
    }
    Value::record(members)
}

fn pack_of(fields: &[Field], version: &str) -> String {
    let mut required = String::new();
    let mut rules = String::new();
    let mut declared = String::from("  broken: {init: null}\n");
    for field in fields {
        declared += &format!("  {0}: {{init: \"has(s0.{0}) ? s0.{0} : null\"}}\n", field.name);
        let precision = field.precision.map(|p| format!(", precision: {p}")).unwrap_or_default();
        required += &format!(
            "      {}: {{type: {}, nullable: {}{precision}}}\n",
            field.name, field.kind, field.nullable
        );
        let name = &field.name;
        rules += &match field.rule {
            Rule::Unsaid => continue,
            Rule::Equal => format!("      {name}: equal\n"),
            Rule::Present => format!("      {name}: present\n"),
            Rule::NotLess => format!("      {name}: source.{name} <= target.{name}\n"),
        };
    }
    let seeds: Vec<&str> = fields.iter().filter(|field| field.seed).map(|field| &*field.name).collect();
    let rules = if rules.is_empty() { String::new() } else { format!("    match:\n{rules}") };
    format!(
        "name: generated\nversion: {version}\nreducer: delta/1\nstate:\n{declared}types: {{act: acts}}\ncontracts:\n  act:\n    required_state:\n{required}    hash_seeds: [{}]\n{rules}violations:\n  - {{id: never, condition: 'state.broken != null', bisect_predicate: monotone_lift}}\n",
        seeds.join(", ")
    )
}

/// The rules, said once more and slowly: which required fields of a state are not as they must be.
fn lacking(fields: &[Field], state: &Value) -> Vec<String> {
    let is_kind = |kind: &str, value: &Value| match kind {
        "number" => matches!(value, Value::Number(_)),
        "string" => matches!(value, Value::String(_)),
        "bool" => matches!(value, Value::Bool(_)),
        "list" => matches!(value, Value::Array(_)),
        _ => true,
    };
    let wrong = |field: &&Field| match state.get(&field.name) {
        None => true,
        Some(Value::Null) => !field.nullable,
        Some(value) => !is_kind(field.kind, value),
    };
    fields.iter().filter(wrong).map(|field| field.name.clone()).collect()
}

fn rounded(field: &Field, value: Option<&Value>) -> String {
    match (field.precision, value.and_then(Value::as_f64)) {
        (Some(precision), Some(number)) => {
            let text = format!("{number:.*}", precision as usize);
            text.parse::<f64>().map_or(text, |number| number.to_string())
        }
        (None, Some(number)) => number.to_string(),
        _ => format!("{value:?}"),
    }
}

fn violated(fields: &[Field], source: &Value, target: &Value) -> Vec<String> {
    let lacks = lacking(fields, target);
    let wrong = |field: &&Field| {
        let (theirs, ours) = (source.get(&field.name), target.get(&field.name));
        let equal = || rounded(field, theirs) == rounded(field, ours);
        lacks.contains(&field.name)
            || match field.rule {
                Rule::Present => false,
                Rule::Unsaid => field.seed && !equal(),
                Rule::Equal => !equal(),
                Rule::NotLess => match (theirs.and_then(Value::as_f64), ours.and_then(Value::as_f64)) {
                    (Some(theirs), Some(ours)) => theirs > ours,
                    // Null cannot be compared, and what cannot be judged does not hold.
                    _ => true,
                },
            }
    };
    fields.iter().filter(wrong).map(|field| field.name.clone()).collect()
}

/// Begins a run and brings it to a state, in one tick: a pack declares its fields, so what is not to be there is removed.
fn begin(
    store: &Shared,
    name: &str,
    source: &pack::Source,
    fields: &[Field],
    state: &Value,
) -> Result<Recorder, Error> {
    let start = Start { stage: Some(Stage::Contracts), state: state.clone(), ..Start::new(run_name(name)) };
    let mut recorder = Recorder::begin(store, &source.bind(start)?, surroundings(name))?;
    let absent = fields.iter().filter(|field| state.get(&field.name).is_none());
    let remove: Vec<String> = absent.map(|field| format!(r#"{{"remove":"/{}"}}"#, field.name)).collect();
    let text = format!(r#"{{"type":"plan.update","delta":[{}]}}"#, remove.join(","));
    recorder.propose(&Intent::from_value(&v(&text), Some("a")).expect("an intent"))?;
    Ok(recorder)
}

fn act(n: u64) -> Intent {
    let text = format!(r#"{{"type":"act","action":{{"tool":"t","params":{{"n":{n}}}}}}}"#);
    Intent::from_value(&v(&text), Some("a")).expect("an intent")
}

/// How often each answer came, so that no case is left out.
#[derive(Debug, Default)]
struct Tally(BTreeMap<String, u32>);

impl Tally {
    fn count(&mut self, what: &str) {
        *self.0.entry(what.to_owned()).or_default() += 1;
    }
}

#[test]
fn imports_are_what_the_rules_say_and_nothing_slips_through() -> Result<(), Error> {
    let cases: u64 = std::env::var("DENDRER_DEEP").map_or(400, |_| 10_000);
    let mut dice = Dice(73);
    let mut tally = Tally::default();
    let mut done = 0;
    while done < cases {
        let dir = TempDir::new().expect("a directory");
        let path = dir.path().join("s");
        let writer = Embedded::create(&path, info(1), Options::untagged()).expect("a store");
        let writer = Shared::new(Box::new(writer));
        // One store for several cases, so that making stores is not what takes the time.
        for _ in 0..20 {
            done += 1;
            one_case(&mut dice, &writer, &path, done, &mut tally)?;
        }
        let report =
            verify::store(&writer, &verify::VerifyTerms { replay: true, ..verify::VerifyTerms::default() })?;
        assert_eq!(report.verdict, verify::VerifyVerdict::Intact);
    }
    println!("deep: imports {done} {:?}", tally.0);
    for what in ["imported", "E0412", "E0414", "E0411"] {
        assert!(tally.0.get(what).is_some_and(|count| *count >= 10), "{what} hardly came: {:?}", tally.0);
    }
    Ok(())
}

fn one_case(
    dice: &mut Dice,
    writer: &Shared,
    path: &std::path::Path,
    n: u64,
    tally: &mut Tally,
) -> Result<(), Error> {
    let fields = fields(dice);
    let text = pack_of(&fields, "v1");
    let ours = pack::read(text.as_bytes()).unwrap_or_else(|problems| panic!("{problems:#?}\n{text}"));
    let theirs = match dice.below(8) {
        0 => pack::read(pack_of(&fields, "v2").as_bytes()).expect("a pack"),
        _ => pack::read(text.as_bytes()).expect("a pack"),
    };
    let differ = theirs.pack.version != ours.pack.version;
    let sound = dice.below(8) != 0;
    let source = state(&fields, dice, sound);
    let target = match dice.below(3) {
        0 => source.clone(),
        _ => state(&fields, dice, false),
    };
    let (from, into) = (format!("from-{n}"), format!("into-{n}"));
    let mut recorder = begin(writer, &from, &theirs, &fields, &source)?;
    let outcome = recorder.propose(&act(n))?;
    recorder.commit()?;
    // Layer 1 is the kernel's, and asked of nobody.
    let expected = lacking(&fields, &source);
    match outcome {
        // What the source breaks by itself is the source's.
        Outcome::Committed(_) | Outcome::Violated { .. } => {
            assert_eq!(expected, Vec::<String>::new(), "{text}\n{source}")
        }
        Outcome::Refused(refused) => {
            assert_eq!(refused.reason.code(), "E0411");
            assert!(
                !expected.is_empty() && expected.iter().all(|name| refused.reason.to_string().contains(name))
            );
            tally.count("E0411");
            return Ok(());
        }
    }
    begin(writer, &into, &ours, &fields, &target)?.commit()?;
    let reader = Arc::new(Embedded::open(path, Options::read())?);
    let candidate = Candidate::read(&Trace::open(&reader, &run_name(&from))?, 2)?;
    let mut pick = candidate.check(&Trace::open(&reader, &run_name(&into))?, 1)?;
    let before = writer.tree().size;
    let imported =
        import(writer, &run_name(&into), &mut pick, 1, surroundings("import"), PickTerms::default())?;
    let tip = |writer: &Shared| writer.run(&run_name(&into)).map(|run| run.expect("a run").head.tick);
    let violated = violated(&fields, &source, &target);
    match (&pick.checked.refused, imported) {
        (None, Imported::Done { marker, record }) => {
            assert!(!differ && violated.is_empty(), "imported silently: {text}\n{source}\n{target}");
            assert_eq!(
                (marker.header().tick, record.header().tick, tip(writer)?),
                (Some(2), Some(3), Some(3))
            );
            assert_eq!(writer.tree().size, before + 2);
            tally.count("imported");
        }
        (Some(refused), Imported::Refused(refusal)) => {
            assert!(differ || !violated.is_empty(), "refused falsely: {refused} {text}\n{source}\n{target}");
            match refused {
                ImportRefused::ContractsDiffer { .. } => assert!(differ && pick.checked.fields.is_empty()),
                ImportRefused::ContextViolation { fields, .. } => {
                    let named: Vec<String> = fields.iter().map(|name| name.to_string()).collect();
                    assert_eq!(named, violated, "{text}\n{source}\n{target}");
                }
                other => panic!("{other}"),
            }
            // Nothing moved; what decided is on record.
            assert_eq!((tip(writer)?, writer.tree().size), (Some(1), before + 1));
            let why = refusal.body().value("/reason").expect("a reason");
            assert_eq!(why.get("code").and_then(Value::as_str), Some(refused.code().as_str()));
            tally.count(refused.code().as_str());
        }
        (refused, imported) => panic!("{refused:?} {imported:?}"),
    }
    Ok(())
}

/// Of the imports that the whole contract refuses: how many are let in by one that leaves some of its fields out
/// (dendrer paper 9.1 and 11.2). Without a contract, all of them are.
#[test]
fn what_a_contract_leaves_out_slips_through() {
    let cases: u64 = std::env::var("DENDRER_DEEP").map_or(2_000, |_| 20_000);
    let mut dice = Dice(91);
    // By how many fields are left out: of how many imports that the whole contract refuses, and how many come in.
    let mut tally = [(0_u32, 0_u32); 4];
    let mut all = 0;
    for n in 0..cases {
        let fields: Vec<Field> =
            std::iter::repeat_with(|| fields(&mut dice)).find(|fields| fields.len() == 4).expect("no end");
        let source = state(&fields, &mut dice, true);
        let target = if dice.below(3) == 0 { source.clone() } else { state(&fields, &mut dice, false) };
        if !lacking(&fields, &source).is_empty() {
            continue;
        }
        all += 1;
        if violated(&fields, &source, &target).is_empty() {
            assert!(let_in(&fields, &source, &target, n), "refused falsely: {source} {target}");
            continue;
        }
        for (left_out, (refused, silent)) in tally.iter_mut().enumerate() {
            *refused += 1;
            let rest = &fields[left_out..];
            let lets = let_in(rest, &source, &target, n);
            assert_eq!(lets, violated(rest, &source, &target).is_empty(), "{source} {target}");
            *silent += u32::from(lets);
        }
    }
    let (refused, _) = tally[0];
    println!(
        "avc: {all} imports, of which the whole contract of 4 fields refuses {refused}; without layer 1 all {refused} come in"
    );
    for (left_out, (refused, silent)) in tally.iter().enumerate() {
        let percent = f64::from(*silent) * 100.0 / f64::from(*refused);
        println!(
            "avc: {left_out} of 4 fields left out: {silent} of {refused} come in silently ({percent:.1} %)"
        );
    }
    assert_eq!(tally[0].1, 0, "nothing comes in under the whole contract");
    assert!(tally.windows(2).all(|pair| pair[0].1 < pair[1].1), "what is left out is not guarded: {tally:?}");
}

/// Whether a contract over these fields lets the transition in.
fn let_in(fields: &[Field], source: &Value, target: &Value, n: u64) -> bool {
    let text = pack_of(fields, "v1");
    let pack = pack::read(text.as_bytes()).unwrap_or_else(|problems| panic!("{problems:#?}\n{text}")).pack;
    let (intent, seed) = (act(n), Seed([7; 16]));
    let contract = pack.contracts.types.get(&intent.type_name).expect("a contract");
    let context = contract.context(&pack.contracts, &intent, source, seed).to_value(&pack.contracts);
    let side = |state| Side { state, contracts: &pack.contracts, pack: Some(pack.digest()), enforced: true };
    let import = Import { intent: &intent, context: Some(&context), seed: Some(seed) };
    check_import(&import, side(source), side(target)).refused.is_none()
}
