//! The test vectors of the format: `vectors/*.json`, read by this test and by `vectors/check.py`.
//!
//! A vector is never edited. `cargo run -p xtask -- vectors` adds what is new here to the files; where a case that is
//! already there would come out otherwise, it stops, and so does this test. Every file is one JSON object of `about`
//! and `cases`, one case a line; values of the format stand in it as text.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use std::path::{Path, PathBuf};
use std::process::Command;

use dendrer::bundle::{export, open};
use dendrer::recorder::Fixed;
use dendrer::verify::{self, VerifyTerms, VerifyVerdict};
use dendrer::{Recorder, Trace};
use dendrer_kernel::counters::Counters;
use dendrer_kernel::step::Start;
use dendrer_object::bundle::{Bundle, Sealed};
use dendrer_object::digest::hex;
use dendrer_object::json::{check_canonical, parse_canonical, parse_door, parse_tagged};
use dendrer_object::merkle::{Peaks, cover, leaf_hash};
use dendrer_object::note::SigningKey;
use dendrer_object::number::round_half_even;
use dendrer_object::record::{Author, Body, Header, Kind, Link, Record, Rel, Salt, Seed, cut, disclosure};
use dendrer_object::value::Object;
use dendrer_object::{Delta, Digest, Intent, Number, Pointer, StoreId, Timestamp, Value};
use dendrer_store::prelude::*;
use dendrer_store::{Memory, Shared, StoreInfo};

fn text(text: impl AsRef<str>) -> Value {
    Value::from(text.as_ref())
}

fn case<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::record(members)
}

fn value_of(text: &str) -> Value {
    parse_tagged(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// What the door makes of JSON as people write it.
fn json() -> Vec<Value> {
    let accepted = [
        "null",
        " true ",
        "[ ]",
        "{ }",
        "[1, 2 ,3]\n",
        r#"{"b":1,"a":2}"#,
        r#"{"a":{"y":[],"x":{}}}"#,
        r#""\u0041\/\u00e9\u20ac""#,
        r#""\u0000\u0008\u0009\u000a\u000b\u000c\u000d\u001F\u007f""#,
        "\"\\\"\\\\\"",
        r#""\ud83d\ude00""#,
        "\"😀é\"",
        r#"{"\ud83d\ude00":1,"\uffff":2,"é":3,"z":4,"":5}"#,
        r#"{"€":1,"\r":2,"דּ":3,"1":4,"😀":5,"\u0080":6,"ö":7}"#,
        "[-0,0.0,1.0,4.50,2e-3,1E30,1e21,1e20,0.000001,1e-7]",
        "[9007199254740991,9007199254740992,-9007199254740993,123456789012345678901234567890]",
        "[NaN,Infinity,-Infinity]",
        r#"{"$bytes":"AA","$":1,"$$x":2}"#,
        r#""\ud800""#,
        r#"["a\udfffb"]"#,
        r#"{"\ud800":1,"z":2}"#,
        r#"{"__proto__":1,"constructor":{"a.b/c~d":0}}"#,
    ];
    let refused = [
        "",
        "nul",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "'a'",
        "\"\u{1}\"",
        "01",
        "+1",
        ".5",
        "1.",
        "1 2",
        "\u{feff}1",
        "1e400",
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"\u0061":2}"#,
        r#"{"\ud800":1,"\ud800":2}"#,
        r#""\x""#,
        "[[]",
    ];
    let canonical = |input: &&str| {
        case([("door", text(input)), ("canonical", text(parse_door(input.as_bytes()).unwrap().to_string()))])
    };
    let error = |input: &[u8]| text(parse_door(input).unwrap_err().code().as_str());
    let deep = "[".repeat(129) + &"]".repeat(129);
    let mut cases: Vec<Value> = accepted.iter().map(canonical).collect();
    cases.extend(
        refused.iter().map(|input| case([("door", text(input)), ("error", error(input.as_bytes()))])),
    );
    cases.push(case([("door", text(&deep)), ("error", error(deep.as_bytes()))]));
    for bytes in [&b"\"\xff\""[..], b"\"\xc0\x80\"", b"\"\xed\xa0\x80\""] {
        cases.push(case([("door_hex", text(hex(bytes))), ("error", error(bytes))]));
    }
    cases
}

/// Texts that are the one spelling of a value, and texts that are not.
fn canonical() -> Vec<Value> {
    let deepest = "[".repeat(136) + &"]".repeat(136);
    let too_deep = "[".repeat(137) + &"]".repeat(137);
    [
        "null",
        "[]",
        "{}",
        r#"{"a":1,"b":2}"#,
        "0",
        "-1",
        "1e+21",
        "1e-7",
        "0.000001",
        "5e-324",
        "9007199254740993",
        r#""\u000b\b""#,
        "\"\u{7f}é😀\"",
        "{\"😀\":1,\"\u{ffff}\":2}",
        r#"{"$float":"NaN"}"#,
        r#"{"$bytes":""}"#,
        r#"{"$bytes":"_-8"}"#,
        r#"{"$wtf8":"7aCA"}"#,
        r#"{"$gap":{"path":"/a","reason":"too large"}}"#,
        r#"{"$redacted":{"kind":"key"}}"#,
        r#"{"$object":[["a",1],[{"$wtf8":"7aCA"},2]]}"#,
        &format!(r#"{{"$vault":{{"bytes":7,"commitment":"sha256:{}"}}}}"#, "0a".repeat(32)),
        r#"{"$$":1,"$$a":2}"#,
        &deepest,
        " 1",
        "1 ",
        "1.0",
        "-0",
        "1e21",
        "1E5",
        "100000000000000000000000.5",
        "1e400",
        "NaN",
        r#"{"b":1,"a":2}"#,
        r#"{"a":1,"a":1}"#,
        r#""\u0041""#,
        r#""\/""#,
        r#""\u001F""#,
        r#""\u0008""#,
        r#""\ud83d\ude00""#,
        r#""\ud800""#,
        "{\"\u{ffff}\":2,\"😀\":1}",
        r#"{"$x":1}"#,
        r#"{"$float":"NaN","a":1}"#,
        r#"{"a":1,"$float":"NaN"}"#,
        r#"{"$float":"1"}"#,
        r#"{"$float":1}"#,
        r#"{"$bytes":"AB"}"#,
        r#"{"$bytes":"AA=="}"#,
        r#"{"$wtf8":"YQ"}"#,
        r#"{"$wtf8":"7aC97aCA"}"#,
        r#"{"$object":[["a",1]]}"#,
        r#"{"$object":[["b",1],[{"$wtf8":"7aCA"},2],["a",1]]}"#,
        r#"{"$gap":{}}"#,
        r#"{"$redacted":1}"#,
        &format!(r#"{{"$vault":{{"bytes":-1,"commitment":"sha256:{}"}}}}"#, "0a".repeat(32)),
        &format!(r#"{{"$vault":{{"a":1,"bytes":7,"commitment":"sha256:{}"}}}}"#, "0a".repeat(32)),
        r#"{"$vault":{"bytes":7,"commitment":"7"}}"#,
        &too_deep,
    ]
    .iter()
    .map(|input| {
        case([("text", text(input)), ("canonical", Value::from(check_canonical(input.as_bytes()).is_ok()))])
    })
    .collect()
}

fn numbers() -> Vec<Value> {
    let bits: [u64; 24] = [
        0x0000000000000000,
        0x8000000000000000,
        0x0000000000000001,
        0x8000000000000001,
        0x7fefffffffffffff,
        0xffefffffffffffff,
        0x4340000000000000,
        0xc340000000000000,
        0x4430000000000000,
        0x44b52d02c7e14af5,
        0x44b52d02c7e14af6,
        0x44b52d02c7e14af7,
        0x444b1ae4d6e2ef4e,
        0x444b1ae4d6e2ef4f,
        0x444b1ae4d6e2ef50,
        0x3eb0c6f7a0b5ed8c,
        0x3eb0c6f7a0b5ed8d,
        0x41b3de4355555553,
        0x41b3de4355555554,
        0x41b3de4355555555,
        0x41b3de4355555556,
        0x41b3de4355555557,
        0xbecbf647612f3696,
        0x43143ff3c1cb0959,
    ];
    let mut cases: Vec<Value> = bits
        .iter()
        .map(|bits| {
            let number = Number::from_f64(f64::from_bits(*bits)).unwrap();
            case([("bits", text(format!("{bits:016x}"))), ("text", text(number.to_string()))])
        })
        .collect();
    for (value, decimals) in [
        (2.675, 2),
        (0.5, 0),
        (1.5, 0),
        (2.5, 0),
        (0.8305, 3),
        (-0.0004, 3),
        (0.30000000000000004, 3),
        (1e22, 2),
        (0.0005, 3),
    ] {
        let rounded = Value::from(round_half_even(value, decimals)).to_string();
        let value = Value::from(value).to_string();
        cases.push(case([
            ("value", text(value)),
            ("decimals", Value::from(u64::from(decimals))),
            ("rounded", text(rounded)),
        ]));
    }
    cases
}

fn state_roots() -> Vec<Value> {
    let array = |length: usize| Value::array((0..length).map(|index| Value::from(index as u64))).to_string();
    let object = |length: usize| {
        let members = (0..length).map(|index| (format!("name-{index}"), Value::from(index as u64)));
        Value::record(members).to_string()
    };
    let mut texts: Vec<String> = [
        "null",
        "true",
        "false",
        "0",
        "-1.5",
        "1e+21",
        "9007199254740993",
        r#""""#,
        r#""é😀""#,
        "[]",
        "[null]",
        "{}",
        r#"{"":0}"#,
        r#"{"a":1}"#,
        r#"{"a":1,"b":2}"#,
        r#"{"a":{"b":{"c":[{}]}}}"#,
        r#"{"$float":"NaN"}"#,
    ]
    .map(str::to_owned)
    .to_vec();
    texts.extend([1, 15, 16, 17, 255, 256, 257, 273].map(array));
    texts.extend([16, 17, 40].map(object));
    let mut cases: Vec<Value> = texts
        .iter()
        .map(|value| case([("value", text(value)), ("digest", Value::from(value_of(value).digest()))]))
        .collect();
    for salted in [&["a"][..], &["b"], &["a", "b"]] {
        let mut object = Object::default();
        let mut salts = Vec::new();
        for (at, name) in ["a", "b"].into_iter().enumerate() {
            if salted.contains(&name) {
                let salt = [at as u8 + 1; 16];
                object.set_salted(name, Value::from(at as u64), salt);
                salts.push((name, text(hex(&salt))));
            } else {
                object.set(name, Value::from(at as u64));
            }
        }
        let digest = object.digest();
        cases.push(case([
            ("value", text(Value::Object(object).to_string())),
            ("salts", Value::record(salts)),
            ("digest", Value::from(digest)),
        ]));
    }
    cases
}

fn salts() -> Vec<Value> {
    [([0; 16], 0), ([0; 16], 1), ([0; 16], 2), (*b"sixteen bytes ok", 5)]
        .into_iter()
        .map(|(seed, count)| {
            let salts = Seed(seed).salts(count);
            case([
                ("seed", text(Seed(seed).base64url())),
                ("salts", Value::array(salts.iter().map(|salt| text(salt.base64url())))),
            ])
        })
        .collect()
}

fn disclosures() -> Vec<Value> {
    [
        ("/agent_id", r#""buyer""#),
        ("/result/output", r#"{"a":[1,2.5,null]}"#),
        ("/a~1b~0c/\"é", "9007199254740993"),
    ]
    .into_iter()
    .enumerate()
    .map(|(at, (pointer, value))| {
        let salt = Salt([at as u8; 16]);
        let disclosure = disclosure(&salt, &pointer.parse::<Pointer>().unwrap(), value.as_bytes());
        case([
            ("salt", text(salt.base64url())),
            ("pointer", text(pointer)),
            ("value", text(value)),
            ("digest", text(Digest::of(disclosure.as_bytes()).base64url())),
            ("disclosure", text(disclosure)),
        ])
    })
    .collect()
}

const STORE: StoreId = StoreId([0x5e; 16]);

fn records() -> Vec<Value> {
    let id = |n: u8| Digest([n; 32]);
    let base = |kind, tick, prev| Header {
        store: STORE,
        kind,
        run: Some("run-1".parse().unwrap()),
        tick,
        prev,
        head: None,
        type_name: None,
        author: Author::Kernel,
        ts: Timestamp::from_ms(1_771_867_265_000),
        links: vec![],
        pack: None,
    };
    let transition = |tick| Header {
        type_name: Some("action.result".parse().unwrap()),
        ..base(Kind::Transition, Some(tick), Some(id(1)))
    };
    let links = vec![Link { rel: Rel::CausedBy, hash: id(3) }, Link { rel: Rel::Evidence, hash: id(2) }];
    let refused = Some("run.fork".parse().unwrap());
    let content = [
        (
            base(Kind::Run, Some(0), None),
            r#"{"kernel":1,"reducer":"delta/1","stage":1,"state":{"a":{"deep":1},"b":2},"state_root":"sha256:00"}"#,
        ),
        (base(Kind::Run, None, Some(id(9))), "{}"),
        (
            transition(1),
            r#"{"agent_id":"buyer","result":{"output":{"ok":true},"status":"ok"},"delta":[],"seq":1}"#,
        ),
        (
            Header { author: Author::Runtime, links, pack: Some(id(4)), ..transition(9_007_199_254_740_991) },
            r#"{"intent":{},"action":{"tool":"x","params":{"q":[1]}},"result":{"a b":1},"metrics":{"tokens_used":3}}"#,
        ),
        (
            transition(2),
            r#"{"state":{"~":1,"/":2,"!":3},"action":"text","intent":{"é":1},"anomalies":[{"kind":"late"}]}"#,
        ),
        (
            Header {
                head: Some(id(7)),
                type_name: refused,
                author: Author::Agent,
                ..base(Kind::Refusal, None, None)
            },
            r#"{"reason":{"code":"E0401","message":"no"}}"#,
        ),
        (Header { head: Some(id(7)), ..base(Kind::End, None, None) }, r#"{"reason":"done"}"#),
        (
            Header { run: None, author: Author::Institution, ..base(Kind::Erase, None, None) },
            r#"{"about":{"hash":"sha256:00","path":"/result"},"reason":"asked"}"#,
        ),
    ];
    content
        .into_iter()
        .enumerate()
        .map(|(at, (header, content))| {
            let value = value_of(content);
            let seed = Seed([at as u8; 16]);
            let record =
                Record::seal(header, Body::commit(cut(value.as_object().unwrap()), seed).unwrap()).unwrap();
            case([
                ("content", text(value.to_string())),
                ("seed", text(seed.base64url())),
                ("header", text(String::from_utf8(record.header_text().to_vec()).unwrap())),
                ("id", Value::from(record.id())),
                ("entry", text(String::from_utf8(record.entry()).unwrap())),
                ("leaf", text(leaf_hash(&record.entry()).hex())),
            ])
        })
        .collect()
}

fn logs() -> Vec<Value> {
    let mut cases = Vec::new();
    let mut peaks = Peaks::new();
    for size in 0..=17u64 {
        cases.push(case([("entries", Value::from(size)), ("root", text(peaks.root().hex()))]));
        peaks.push(leaf_hash(format!("entry {size}").as_bytes()));
    }
    for (begin, end) in
        [(0, 0), (0, 1), (0, 7), (1, 8), (3, 11), (5, 6), (6, 100), (0, 1 << 40), (1, (1 << 53) - 1)]
    {
        let levels = cover(begin..end).map(|node| Value::from(u64::from(node.level)));
        cases.push(case([
            ("begin", Value::from(begin)),
            ("end", Value::from(end)),
            ("levels", Value::array(levels)),
        ]));
    }
    cases
}

fn deltas() -> Vec<Value> {
    [
        ("{}", r#"[{"set":"/a/b","value":1}]"#),
        (r#"{"a":1}"#, r#"[{"set":"/a","value":null}]"#),
        (r#"{"a":1,"b":2}"#, r#"[{"remove":"/a"}]"#),
        ("{}", r#"[{"append":"/x/list","value":1},{"append":"/x/list","value":2}]"#),
        (r#"{"n":0.1}"#, r#"[{"add":"/n","value":0.2}]"#),
        (r#"{"l":[1,2,3]}"#, r#"[{"set":"/l/1","value":9},{"remove":"/l/0"}]"#),
        (r#"{"l":[{"a":1}]}"#, r#"[{"add":"/l/0/a","value":-1}]"#),
        (r#"{"0":1}"#, r#"[{"set":"/0","value":2}]"#),
        (r#"{"a~b":{"c/d":1}}"#, r#"[{"remove":"/a~0b/c~1d"}]"#),
        (r#"{"n":9007199254740991}"#, r#"[{"add":"/n","value":1}]"#),
        (r#"{"a":1}"#, "[]"),
        ("{}", r#"[{"remove":"/a"}]"#),
        ("{}", r#"[{"add":"/a","value":1}]"#),
        (r#"{"a":1}"#, r#"[{"set":"/a/b","value":1}]"#),
        (r#"{"a":1}"#, r#"[{"append":"/a","value":1}]"#),
        (r#"{"a":"x"}"#, r#"[{"add":"/a","value":1}]"#),
        (r#"{"a":9007199254740993}"#, r#"[{"add":"/a","value":1}]"#),
        (r#"{"a":1e+308}"#, r#"[{"add":"/a","value":1e+308}]"#),
        (r#"{"l":[]}"#, r#"[{"set":"/l/0","value":1}]"#),
        (r#"{"l":[1]}"#, r#"[{"set":"/l/00","value":1}]"#),
        ("{}", "{}"),
        ("{}", r#"[{"set":"/a"}]"#),
        ("{}", r#"[{"remove":"/a","value":1}]"#),
        ("{}", r#"[{"set":"","value":1}]"#),
        ("{}", r#"[{"set":"/a","add":"/a","value":1}]"#),
        (r#"{"a":1}"#, r#"[{"set":"/b","value":1},{"remove":"/c"}]"#),
    ]
    .into_iter()
    .map(|(state, delta)| {
        let found = Delta::from_value(&value_of(delta)).and_then(|delta| delta.apply(&value_of(state)));
        let after = match found {
            Ok(after) => ("after", text(after.to_string())),
            Err(error) => ("error", text(error.code().as_str())),
        };
        case([
            ("state", text(value_of(state).to_string())),
            ("delta", text(value_of(delta).to_string())),
            after,
        ])
    })
    .collect()
}

fn counters() -> Vec<Value> {
    let mut counters = Counters::default();
    [
        (
            "action.request",
            r#"{"agent_id":"a","action":{"tool":"search"},"metrics":{"tokens_used":10,"cost_usd":0.5}}"#,
        ),
        ("action.result", r#"{"agent_id":"a","result":{"status":"error"}}"#),
        ("action.request", r#"{"agent_id":"b","action":{"calls":[{"tool":"x"},{"tool":"y"}]}}"#),
        ("action.result", r#"{"agent_id":"b","result":{"status":"ok"}}"#),
        ("action.result", r#"{"agent_id":"b","result":{}}"#),
        (
            "policy.decision",
            r#"{"agent_id":"b","policy":{"decision":"deny"},"anomalies":[{"kind":"late"},"odd",3]}"#,
        ),
        ("action.request", r#"{"action":{}}"#),
        ("plan.update", r#"{"agent_id":"a","metrics":{"tokens_used":9007199254740993}}"#),
    ]
    .into_iter()
    .map(|(type_name, content)| {
        let content = value_of(content);
        counters.add(type_name, &content);
        let after = text(counters.to_value().to_string());
        case([("type", text(type_name)), ("content", text(content.to_string())), ("counters_after", after)])
    })
    .collect()
}

fn key() -> SigningKey {
    SigningKey::from_seed(&STORE.origin(), [0x4b; 32]).unwrap()
}

fn run(store: &Shared, name: &str, intents: &[&str]) {
    let mut start = Start::new(name.parse().unwrap());
    start.goal = Some("show the format".into());
    start.state = value_of(r#"{"risk":0.25}"#);
    let mut recorder =
        Recorder::begin(store, &start, Box::new(Fixed::new(name, 1_771_867_265_000, 250))).unwrap();
    for intent in intents {
        recorder.propose(&Intent::from_value(&value_of(intent), Some("reader")).unwrap()).unwrap();
    }
    recorder.commit().unwrap();
}

/// Small bundles: the one of the worked example in `docs/format.md`, and three shapes besides.
fn bundles() -> Vec<Value> {
    let mut store = Shared::new(Box::new(Memory::new(StoreInfo::new(STORE, key().verifier_key().clone()))));
    run(&store, "elsewhere", &[r#"{"type":"plan.update"}"#]);
    let intents = [
        r#"{"type":"observation.add","intent":{"description":"feed 3 says 0.5","confidence":0.31},"delta":[{"add":"/risk","value":0.5}]}"#,
        r#"{"type":"run.fork"}"#,
    ];
    run(&store, "example", &intents);
    let long = format!(
        r#"{{"type":"observation.add","intent":{{"text":"{0}","again":"{0}"}}}}"#,
        "word ".repeat(240)
    );
    run(&store, "large", &[&long]);
    let note = store.sign_checkpoint(&key()).unwrap();
    let split = |text: &[u8]| (0..text.len()).step_by(500).collect::<Vec<_>>();
    let bundle = |run: &str| {
        let export = export(&store, &[run.parse().unwrap()], &note).unwrap();
        Bundle::parse(&export.to_vec().unwrap()).unwrap()
    };
    let tip = |run: &str| {
        let trace = Trace::open(&store, &run.parse().unwrap()).unwrap();
        Value::from(trace.record(trace.tip()).unwrap().id())
    };
    let mut withheld = bundle("example");
    let places: [Pointer; 1] = ["/intent".parse().unwrap()];
    withheld.records = (0..store.tree().size)
        .filter_map(|at| store.get(at).unwrap())
        .filter(|record| record.header().run.as_ref().is_some_and(|run| run.as_str() == "example"))
        .map(|record| {
            let has_it = record.body().fields().iter().any(|field| places[0].contains(&field.pointer));
            // A record that is whole has its seed.
            if has_it { Sealed::of(&record.without(&places)) } else { Sealed::of(&record) }
        })
        .collect();
    let edited = String::from_utf8(bundle("example").write(&split)).unwrap().replacen("feed 3", "feed 4", 1);
    [
        ("example", "example", bundle("example").write(&split), 0),
        ("large values", "large", bundle("large").write(&split), 0),
        ("withheld", "example", withheld.write(&split), 6),
        ("edited", "example", edited.into_bytes(), 4),
    ]
    .into_iter()
    .map(|(name, run, bytes, exit)| {
        case([
            ("name", text(name)),
            ("key", text(key().verifier_key().to_string())),
            ("tip", tip(run)),
            ("exit", Value::from(exit as u64)),
            ("text", text(String::from_utf8(bytes).unwrap())),
        ])
    })
    .collect()
}

type File = (&'static str, &'static str, fn() -> Vec<Value>);

const FILES: &[File] = &[
    (
        "json",
        "What the door makes of JSON as people write it: its canonical text, or the code of the refusal.",
        json,
    ),
    ("canonical", "Texts, and whether each is the one canonical spelling of a value.", canonical),
    (
        "numbers",
        "Doubles as 64 bits and their canonical text; and rounding, ties to even on the binary value.",
        numbers,
    ),
    (
        "state-roots",
        "Values and the digest that binds them; salts are those of personal members.",
        state_roots,
    ),
    ("salts", "Seeds and the salts derived from them, in order.", salts),
    (
        "disclosures",
        "Salt, pointer and canonical value; the disclosure; and the digest that stands in the header.",
        disclosures,
    ),
    (
        "records",
        "Content and seed; the header they give; its id; the log entry; the leaf of the tree.",
        records,
    ),
    (
        "logs",
        "Roots of the logs of `entry 0`, `entry 1` and so on; and the levels of the subtrees that cover a range.",
        logs,
    ),
    ("deltas", "A state and a delta; the state after it, or the code of the refusal.", deltas),
    ("counters", "Transitions of one run in order, and the counters after each.", counters),
    (
        "bundles",
        "Bundles as text, with the key of the log, the tip of the run, and the exit code of a verifier.",
        bundles,
    ),
];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors")
}

fn lines(about: &str, cases: &[Value]) -> String {
    let lines: Vec<String> = cases.iter().map(Value::to_string).collect();
    format!("{{\"about\":{},\n\"cases\":[\n{}\n]}}\n", text(about), lines.join(",\n"))
}

/// The cases on file. They are plain JSON without names of ours, so the canonical reader takes each line.
fn on_file(path: &Path) -> Vec<Value> {
    let Ok(file) = std::fs::read_to_string(path) else { return Vec::new() };
    let cases = file.lines().skip(2).take_while(|line| *line != "]}");
    cases.map(|line| parse_canonical(line.trim_end_matches(',').as_bytes()).unwrap()).collect()
}

/// Whether a bundle on file gets the exit code on file.
fn verifies(case: &Value) -> bool {
    let member = |name: &str| case.get(name).and_then(Value::as_str).unwrap();
    let options = VerifyTerms { keys: vec![member("key").parse().unwrap()], ..VerifyTerms::default() };
    let Ok(opened) = open(PathBuf::from("bundle.dnd"), member("text").as_bytes()) else { return false };
    let exit: u64 = match verify::bundle(&opened, &options).map(|report| report.verdict) {
        Ok(VerifyVerdict::Verified | VerifyVerdict::Intact) => 0,
        Ok(VerifyVerdict::Unverifiable) => 6,
        Ok(VerifyVerdict::Diverged) => 7,
        Ok(_) | Err(_) => 4,
    };
    case.get("exit") == Some(&Value::from(exit))
}

#[test]
fn every_vector_holds_and_none_was_edited() {
    let write = std::env::var_os("DENDRER_WRITE_VECTORS").is_some();
    for (name, about, make) in FILES {
        let path = directory().join(format!("{name}.json"));
        let (old, new) = (on_file(&path), make());
        for case in &old {
            // The rules of the kernel have versions: what an older kernel wrote is not made again, and verifies as it did.
            let holds = new.contains(case) || (*name == "bundles" && verifies(case));
            assert!(holds, "{name}.json has a case that does not come out any more: {case}");
        }
        if write {
            let added = new.iter().filter(|case| !old.contains(case)).cloned();
            let all: Vec<Value> = old.iter().cloned().chain(added).collect();
            std::fs::write(&path, lines(about, &all)).unwrap();
            continue;
        }
        for case in &new {
            assert!(
                old.contains(case),
                "{name}.json lacks a case; run `cargo run -p xtask -- vectors`: {case}"
            );
        }
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            lines(about, &old),
            "{name}.json is not as it is written"
        );
    }
}

/// The worked example of `docs/format.md` is the first bundle; what is printed there must be what it holds.
#[test]
fn the_worked_example_is_the_bundle_of_the_vectors() {
    let page = std::fs::read_to_string(directory().join("../docs/format.md")).unwrap();
    let example = page.split("## Worked example").nth(1).expect("the page has a worked example");
    let bundles = on_file(&directory().join("bundles.json"));
    let bundle = bundles[0].get("text").and_then(Value::as_str).unwrap();
    let shown: Vec<&str> = example.lines().filter(|line| line.starts_with("{\"")).collect();
    assert!(shown.len() > 5, "the example shows the lines of the bundle");
    for line in shown {
        assert!(
            bundle.lines().any(|known| known == line),
            "the example has a line that the bundle has not: {line}"
        );
    }
}

/// The same vectors in Python, with `docs/verify.py` and what it leaves out.
#[test]
fn python_agrees_on_every_vector() {
    let python = std::env::var("DENDRER_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has_what_it_needs = Command::new(&python).args(["-c", "import cryptography"]).output();
    if !has_what_it_needs.is_ok_and(|output| output.status.success()) {
        assert!(std::env::var_os("DENDRER_PYTHON").is_none(), "{python} has no package cryptography");
        return;
    }
    let output = Command::new(python).arg(directory().join("check.py")).output().unwrap();
    let printed =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
}
