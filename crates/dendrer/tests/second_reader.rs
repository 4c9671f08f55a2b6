//! Two readers, one format: every bundle is judged by this workspace and by `docs/verify.py`, which was written from
//! `docs/format.md` alone. They must come to the same verdict, on what is intact and on what is not.
//!
//! Needs `python3` with `cryptography`. Where that is missing the tests say SKIPPED and pass, unless
//! `DENDRER_PYTHON` names an interpreter: then it must work. `scripts/test.sh` sets it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]
#![expect(clippy::print_stderr, reason = "a skipped test must say so loudly")]
#![expect(clippy::print_stdout, reason = "figures with --nocapture")]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use dendrer::bundle::{export, open};
use dendrer::recorder::Fixed;
use dendrer::verify::facts::NoteCode;
use dendrer::verify::{self, VerifyReport, VerifyTerms, VerifyVerdict};
use dendrer::{Recorder, Trace};
use dendrer_kernel::step::{Anomaly, Stage, Start};
use dendrer_object::bundle::{Bundle, DRAFT, LogItem, Sealed};
use dendrer_object::json::{parse_door, parse_tagged};
use dendrer_object::keys::{recovery, rotation};
use dendrer_object::merkle::{cover, from_leaves, leaf_hash};
use dendrer_object::note::{Checkpoint, SignedNote, SigningKey};
use dendrer_object::record::{Author, Body, Entry, Header, Kind, Link, Record, Rel, Seed, cut};
use dendrer_object::{Code, Digest, Intent, Object, Pointer, RunName, StoreId, Timestamp, Value};
use dendrer_store::prelude::*;
use dendrer_store::{Memory, Shared, StoreInfo};

const STORE: StoreId = StoreId([7; 16]);

/// How many edits of one byte of a bundle are judged: `DENDRER_EDITS`, or enough to see what a change broke.
fn edits() -> u64 {
    std::env::var("DENDRER_EDITS").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000)
}

fn key() -> SigningKey {
    SigningKey::from_seed(&STORE.origin(), [3; 32]).unwrap()
}

fn memory() -> Shared {
    Shared::new(Box::new(Memory::new(StoreInfo::new(STORE, key().verifier_key().clone()))))
}

fn name(text: &str) -> RunName {
    text.parse().unwrap()
}

fn fixed(seed: &str) -> Box<Fixed> {
    Box::new(Fixed::new(seed, 1_771_867_265_000, 250))
}

/// Records a run of intents given as JSON, tagged values allowed. Refusals are part of it.
fn record(store: &Shared, run: &str, state: &str, intents: &[&str]) {
    let mut start = Start { stage: Some(Stage::Observe), ..Start::new(name(run)) };
    start.state = parse_tagged(state.as_bytes()).unwrap();
    let mut recorder = Recorder::begin(store, &start, fixed(run)).unwrap();
    for intent in intents {
        let value = parse_tagged(intent.as_bytes()).unwrap_or_else(|error| panic!("{intent}: {error}"));
        recorder.propose(&Intent::from_value(&value, Some("tester")).unwrap()).unwrap();
    }
    recorder.commit().unwrap();
}

const PLAIN: &[&str] = &[
    r#"{"type":"observation.add","intent":{"description":"look","confidence":0.83},"delta":[{"set":"/risk","value":0.71}]}"#,
    r#"{"type":"action.request","agent":"buyer","action":{"tool":"search","params":{"q":"steel"}},"metrics":{"tokens_used":12}}"#,
    r#"{"type":"action.result","agent":"buyer","author":"runtime","result":{"status":"ok","output":[1,2,3]},"delta":[{"append":"/seen","value":"a"}]}"#,
    r#"{"type":"plan.update","goal":"g-1","delta":[{"add":"/risk","value":0.12}]}"#,
];

/// Cuts large texts into pieces of 600 bytes.
fn split(text: &[u8]) -> Vec<usize> {
    (0..text.len()).step_by(600).collect()
}

fn bundle_of(store: &mut Shared, runs: &[&str]) -> Vec<u8> {
    let note = store.sign_checkpoint(&key()).unwrap();
    let runs: Vec<RunName> = runs.iter().map(|run| name(run)).collect();
    let text = export(store, &runs, &note).unwrap().to_vec().unwrap();
    Bundle::parse(&text).unwrap().write(&split)
}

/// Signs a log of these records as they stand and bundles those at `keep`, whether or not they make sense together.
fn forged(records: &[Record], keep: &[usize], runs: &[&str]) -> Bundle {
    let leaves: Vec<Digest> = records.iter().map(|record| leaf_hash(&record.entry())).collect();
    let node = from_leaves(&leaves);
    let root = dendrer_object::merkle::tree_root(leaves.len() as u64, &node).unwrap();
    let note = Checkpoint::new(&STORE.origin(), leaves.len() as u64, root).unwrap().sign(&key()).unwrap();
    let mut log = Vec::new();
    let mut at = 0;
    while at < records.len() {
        if keep.contains(&at) {
            log.push(LogItem::Entry(Entry::parse(&records[at].entry()).unwrap()));
            at += 1;
            continue;
        }
        let end = (at..records.len()).find(|next| keep.contains(next)).unwrap_or(records.len());
        let hashes = cover(at as u64..end as u64).map(|subtree| node(subtree).unwrap()).collect();
        log.push(LogItem::Omitted { count: (end - at) as u64, hashes });
        at = end;
    }
    Bundle {
        store: STORE,
        key: key().verifier_key().to_string(),
        runs: runs.iter().map(|run| name(run)).collect(),
        although: Vec::new(),
        size: records.len() as u64,
        log,
        records: keep.iter().map(|at| Sealed::of(&records[*at])).collect(),
        map: None,
        checkpoint: note.to_string(),
    }
}

fn all_records(store: &Shared) -> Vec<Record> {
    (0..store.tree().size).map(|at| store.get(at).unwrap().unwrap()).collect()
}

/// A record without some values, as a bundle holds it. One that has none of them keeps its seed.
fn withheld(record: &Record, places: &[Pointer]) -> Sealed {
    let is_withheld = |field: &Pointer| places.iter().any(|place| place.contains(field));
    let has_some = record.body().fields().iter().any(|field| is_withheld(&field.pointer));
    if has_some { Sealed::of(&record.without(places)) } else { Sealed::of(record) }
}

fn seal(header: Header, content: &str) -> Record {
    let content = parse_door(content.as_bytes()).unwrap();
    let seed = Seed(Digest::of(content.to_string().as_bytes()).0[..16].try_into().unwrap());
    Record::seal(header, Body::commit(cut(content.as_object().unwrap()), seed).unwrap()).unwrap()
}

fn header(kind: Kind, run: &str) -> Header {
    Header {
        store: STORE,
        kind,
        run: Some(name(run)),
        tick: None,
        prev: None,
        head: None,
        type_name: None,
        author: Author::Kernel,
        ts: Timestamp::from_ms(1_771_867_300_000),
        links: vec![],
        pack: None,
    }
}

/// A fork of `parent`: its `run` record and the marker that follows it.
fn fork(parent: &Record, run: &str) -> [Record; 2] {
    let root = parent.body().value("/state_root").unwrap();
    let begin = seal(
        Header { prev: Some(parent.id()), ..header(Kind::Run, run) },
        &format!(r#"{{"kernel":1,"stage":1,"state_root":{root}}}"#),
    );
    let marker = Header {
        tick: Some(parent.header().tick.unwrap() + 1),
        prev: Some(begin.id()),
        type_name: Some("run.fork".parse().unwrap()),
        links: vec![Link { rel: Rel::ForkOf, hash: parent.id() }],
        ..header(Kind::Transition, run)
    };
    let marker = seal(marker, &format!(r#"{{"agent_id":"kernel","delta":[],"state_root":{root}}}"#));
    [begin, marker]
}

/// The exit code that this workspace gives a bundle.
fn rust(text: &[u8], options: &VerifyTerms) -> u8 {
    let opened = match open(PathBuf::from("bundle.dnd"), text) {
        Ok(opened) => opened,
        Err(error) => return if error.code() == "E0803" || error.code() == "E0811" { 6 } else { 4 },
    };
    match verify::bundle(&opened, options).map(|report| report.verdict) {
        Ok(VerifyVerdict::Verified | VerifyVerdict::Intact) => 0,
        Ok(VerifyVerdict::Unverifiable) => 6,
        Ok(VerifyVerdict::Diverged) => 7,
        Ok(_) | Err(_) => 4,
    }
}

/// Returns the interpreter, or says why there is none.
fn python() -> Option<String> {
    // Starting one to ask costs as much as judging a bundle with it.
    static FOUND: OnceLock<Option<String>> = OnceLock::new();
    FOUND.get_or_init(find_python).clone()
}

fn find_python() -> Option<String> {
    let named = std::env::var("DENDRER_PYTHON").ok();
    let python = named.clone().unwrap_or_else(|| "python3".to_owned());
    let works = Command::new(&python)
        .args(["-c", "import cryptography, sys; sys.exit(sys.version_info < (3, 9))"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    match (works, named) {
        (true, _) => Some(python),
        (false, Some(named)) => {
            panic!("DENDRER_PYTHON is {named}, and that is no Python 3.9 with cryptography")
        }
        (false, None) => {
            eprintln!(
                "SKIPPED: no python3 (3.9 or later) with the package cryptography; scripts/test.sh installs it"
            );
            None
        }
    }
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

/// Runs the program as an auditor would, and returns its exit code and what it printed.
fn program(python: &str, case: &str, text: &[u8], arguments: &[&str]) -> (u8, String) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("second-reader-{}-{case}.dnd", std::process::id()));
    std::fs::write(&path, text).unwrap();
    let output =
        Command::new(python).arg(docs().join("verify.py")).arg(&path).args(arguments).output().unwrap();
    std::fs::remove_file(&path).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!errors.contains("Traceback"), "{case}: {errors}");
    let code = output.status.code().expect("verify.py ends by itself");
    (u8::try_from(code).unwrap(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[track_caller]
fn check(case: &str, text: &[u8], arguments: &[&str], expected: u8) {
    let argument = |name: &str| {
        let at = arguments.iter().position(|argument| *argument == name)?;
        arguments.get(at + 1).copied()
    };
    let options = VerifyTerms {
        tips: argument("--tip").map(|tip| tip.parse().unwrap()).into_iter().collect(),
        keys: argument("--key").map(|key| key.parse().unwrap()).into_iter().collect(),
        ..VerifyTerms::default()
    };
    assert_eq!(rust(text, &options), expected, "{case}: this workspace");
    let Some(python) = python() else { return };
    let (code, printed) = program(&python, case, text, arguments);
    assert_eq!(code, expected, "{case}: verify.py says\n{printed}");
}

#[test]
fn a_change_of_the_key_is_followed_here_and_named_by_the_other_reader() {
    let signer = |seed| SigningKey::from_seed(&STORE.origin(), [seed; 32]).unwrap();
    let (old, new, thief) = (key(), signer(5), signer(6));
    let text_of = |change: &dyn Fn((u64, Digest)) -> Value| {
        let mut store = memory();
        record(&store, "r", r#"{"risk":0.5}"#, PLAIN);
        let tree = store.tree();
        let header = Header { run: None, author: Author::Institution, ..header(Kind::Key, "r") };
        store.commit(&[seal(header, &change((tree.size, tree.root)).to_string())]).unwrap();
        let tree = store.tree();
        let checkpoint = Checkpoint::new(&STORE.origin(), tree.size, tree.root).unwrap();
        export(&store, &[name("r")], &checkpoint.sign(&new).unwrap()).unwrap().to_vec().unwrap()
    };
    let given =
        |key: &SigningKey| VerifyTerms { keys: vec![key.verifier_key().clone()], ..VerifyTerms::default() };
    let rotated = text_of(&|before| rotation(STORE, before, &old, (&new, Digest([9; 32]))));
    for (terms, expected) in
        [(VerifyTerms::default(), 0), (given(&old), 0), (given(&new), 0), (given(&thief), 6)]
    {
        assert_eq!(rust(&rotated, &terms), expected);
    }
    let note = Checkpoint::new(&STORE.origin(), 1, Digest([1; 32])).unwrap().sign(&old).unwrap();
    let forged: [&dyn Fn((u64, Digest)) -> Value; 4] = [
        &|before| rotation(STORE, before, &thief, (&new, Digest([9; 32]))),
        &|before| rotation(StoreId([8; 16]), before, &old, (&new, Digest([9; 32]))),
        &|(size, _)| rotation(STORE, (size, Digest([1; 32])), &old, (&new, Digest([9; 32]))),
        // The log does not contain the checkpoint that is shown for the lost key.
        &|before| recovery(STORE, before, (old.verifier_key(), &note), (&new, Digest([9; 32])), "lost"),
    ];
    let forged = forged.map(|change| text_of(change));
    for text in &forged {
        assert_eq!(rust(text, &VerifyTerms::default()), 4);
    }
    let Some(python) = python() else { return };
    for text in [&rotated].into_iter().chain(&forged) {
        let (code, printed) = program(&python, "rotated", text, &[]);
        assert!(code == 6 && printed.contains("not checked: the change of keys at"), "{code}: {printed}");
    }
}

#[test]
fn a_plain_run_is_intact_and_its_tip_and_key_are_compared() {
    let mut store = memory();
    record(&store, "r", r#"{"risk":0.5}"#, PLAIN);
    let text = bundle_of(&mut store, &["r"]);
    let trace = Trace::open(&store, &name("r")).unwrap();
    let tip = trace.record(trace.tip()).unwrap().id().to_string();
    let other_key = SigningKey::from_seed(&STORE.origin(), [4; 32]).unwrap().verifier_key().to_string();
    check("plain", &text, &[], 0);
    check("tip", &text, &["--tip", &tip], 0);
    // The run goes on, so the log may be older than the tip.
    check("wrong-tip", &text, &["--tip", &Digest([1; 32]).to_string()], 6);
    check("key", &text, &["--key", &key().verifier_key().to_string()], 0);
    check("wrong-key", &text, &["--key", &other_key], 6);
    check("cut", &text[..text.len() - 1], &[], 4);
    check("empty", b"", &[], 4);
    let text = String::from_utf8(text).unwrap();
    let versions =
        ["2", "0", "-1", "9223372036854775808", "-100000000000000000000000000"].map(|text| (text, 6));
    for (version, code) in versions.into_iter().chain(["1.5", "true", "\"2\"", "null"].map(|text| (text, 4)))
    {
        let text = text.replacen("\"bundle\":1", &format!("\"bundle\":{version}"), 1);
        check("version", text.as_bytes(), &[], code);
    }
}

#[test]
fn other_runs_can_be_left_out() {
    let mut store = memory();
    for run in ["a", "b", "c", "d"] {
        record(&store, run, "{}", &PLAIN[1..3]);
    }
    record(&store, "empty", "{}", &[]);
    for runs in
        [&["a"][..], &["b"], &["d"], &["a", "c"], &["b", "c"], &["empty"], &["a", "b", "c", "d", "empty"]]
    {
        check(&runs.join("-"), &bundle_of(&mut store, runs), &[], 0);
    }
    check("nothing", &bundle_of(&mut store, &[]), &[], 0);
}

#[test]
fn withheld_and_erased_values_are_unverifiable_and_named() {
    let mut store = memory();
    record(&store, "r", "{}", &PLAIN[1..3]);
    let records = all_records(&store);
    let keep: Vec<usize> = (0..records.len()).collect();
    for places in [&["/result"][..], &["/agent_id"], &["/action/params", "/result/output", "/state_root"]] {
        let places: Vec<Pointer> = places.iter().map(|place| place.parse().unwrap()).collect();
        let mut bundle = forged(&records, &keep, &["r"]);
        bundle.records = records.iter().map(|record| withheld(record, &places)).collect();
        check("withheld", &bundle.write(&split), &[], 6);
    }
    let erase = seal(header(Kind::Erase, "r"), r#"{"about":{"path":"/result"},"reason":"asked"}"#);
    store.erase(&erase, &[(2, vec!["/result".parse().unwrap()])]).unwrap();
    check("erased", &bundle_of(&mut store, &["r"]), &[], 6);
}

fn report(text: &[u8]) -> VerifyReport {
    verify::bundle(&open(PathBuf::from("bundle.dnd"), text).unwrap(), &VerifyTerms::default()).unwrap()
}

#[test]
fn a_value_that_was_erased_and_is_here_is_tampered() {
    let mut store = memory();
    record(&store, "r", "{}", &PLAIN[1..3]);
    let whole = all_records(&store);
    let place: Pointer = "/result/output".parse().unwrap();
    let said =
        format!(r#"{{"erased":[{{"place":"{place}","record":"{}"}}],"reason":"asked"}}"#, whole[2].id());
    store.erase(&seal(header(Kind::Erase, "r"), &said), &[(2, vec![place.clone()])]).unwrap();
    let text = bundle_of(&mut store, &["r"]);
    check("erased", &text, &[], 6);
    let mut bundle = Bundle::parse(&text).unwrap();
    bundle.records[1] = withheld(&whole[1], &["/agent_id".parse().unwrap()]);
    let text = bundle.write(&split);
    check("erased-and-withheld", &text, &[], 6);
    let unchecked = report(&text).not_checked;
    for line in ["r@1: agent_id (withheld)", "r@2: result.output (erased)"] {
        assert!(unchecked.iter().any(|one| one == line), "{unchecked:?}");
    }
    // The value fits its digest: it was put back from a bundle that was made before.
    bundle.records[2] = Sealed::of(&whole[2]);
    let text = bundle.write(&split);
    check("put-back", &text, &[], 4);
    let found: Vec<_> = report(&text).findings.iter().map(|one| (one.code, one.tick)).collect();
    assert_eq!(found, [(Code::E0317, Some(2))]);
    // A store in which the value was never destroyed.
    let mut store = memory();
    record(&store, "r", "{}", &PLAIN[1..3]);
    let id = all_records(&store)[2].id();
    let said = format!(r#"{{"erased":[{{"place":"{place}","record":"{id}"}}],"reason":"asked"}}"#);
    store.commit(&[seal(header(Kind::Erase, "r"), &said)]).unwrap();
    let report = verify::store(&store, &VerifyTerms::default()).unwrap();
    // Its destruction may be under way.
    let noted: Vec<_> = report.notes.iter().map(|note| note.code).collect();
    assert!(noted.contains(&NoteCode::NotErased), "{noted:?}");
    assert!(report.findings.is_empty() && report.verdict < VerifyVerdict::Tampered, "{:?}", report.verdict);
}

/// A record with other content under the same header.
fn resealed(record: &Record, header: Header, change: impl Fn(&str, &Value) -> Option<Value>) -> Record {
    let content = record.content();
    let kept = content.as_object().unwrap().iter();
    let content: Object =
        kept.filter_map(|(name, value)| Some((name.clone(), change(name, value)?))).collect();
    Record::seal(header, Body::commit(cut(&content), Seed([1; 16])).unwrap()).unwrap()
}

/// The holder of the key can sign any record. Without these fields no later one would be compared.
#[test]
fn a_record_without_a_field_of_its_kind_is_malformed() {
    let store = memory();
    record(&store, "r", r#"{"risk":0.5}"#, &PLAIN[..2]);
    let records = all_records(&store);
    for (at, lost) in [(0, "state"), (0, "state_root"), (1, "delta"), (1, "state_root"), (2, "state_root")] {
        let mut forged_log: Vec<Record> = Vec::new();
        for (position, record) in records.iter().enumerate() {
            let prev = record.header().prev.and(forged_log.last().map(Record::id));
            let header = Header { prev, ..record.header().clone() };
            let change = |name: &str, value: &Value| (position != at || name != lost).then(|| value.clone());
            forged_log.push(resealed(record, header, change));
        }
        let text = forged(&forged_log, &[0, 1, 2], &["r"]).write(&split);
        check(&format!("without-{lost}-{at}"), &text, &[], 4);
        let report = report(&text);
        assert_eq!(report.verdict, VerifyVerdict::Malformed, "{lost} of {at}: {:?}", report.findings);
        assert_eq!(report.runs[0].line.last_good, (at as u64).checked_sub(1), "{lost} of {at}");
    }
}

#[test]
fn a_run_begins_with_the_state_that_it_says_and_links_lead_back() {
    let store = memory();
    record(&store, "r", r#"{"risk":0.5}"#, &PLAIN[..1]);
    record(&store, "other", "{}", &[]);
    let records = all_records(&store);
    let other = Digest([7; 32]);
    let change = |name: &str, value: &Value| match name {
        "state_root" => Some(Value::from(other)),
        _ => Some(value.clone()),
    };
    let begin = resealed(&records[0], records[0].header().clone(), change);
    let text = forged(&[begin], &[0], &["r"]).write(&split);
    check("other-root", &text, &[], 4);
    assert_eq!(report(&text).runs[0].line.last_good, None);
    // Of a transition, so that the ticks behind it rest on it.
    let marked = resealed(&records[1], records[1].header().clone(), change);
    let text = forged(&[records[0].clone(), marked], &[0, 1], &["r"]).write(&split);
    check("other-root-of-tick-1", &text, &[], 4);
    assert_eq!(report(&text).runs[0].line.last_good, Some(0));
    // A link to a record of the same log that stands later.
    let links = vec![Link { rel: Rel::Evidence, hash: records[2].id() }];
    let linked = Header { links, ..records[0].header().clone() };
    let linked = resealed(&records[0], linked, |_, value| Some(value.clone()));
    let text = forged(&[linked.clone(), records[2].clone()], &[0, 1], &["r", "other"]).write(&split);
    check("link-forward", &text, &[], 4);
    let text = forged(&[records[2].clone(), linked], &[0, 1], &["r", "other"]).write(&split);
    check("link-back", &text, &[], 0);
}

#[test]
fn large_values_stand_in_blobs() {
    let mut store = memory();
    let long = "lorem ipsum dolor ".repeat(200);
    let other = "0123456789".repeat(300);
    let intent = |text: &str| {
        format!(r#"{{"type":"observation.add","result":{{"text":"{text}","also":["{text}"]}}}}"#)
    };
    let exactly = |size: usize| intent(&"x".repeat(size - 2));
    let intents = [intent(&long), intent(&other), intent(&long), exactly(1024), exactly(1025)];
    record(&store, "r", "{}", &intents.each_ref().map(String::as_str));
    check("blobs", &bundle_of(&mut store, &["r"]), &[], 0);
}

#[test]
fn refusals_anomalies_and_a_clock_that_went_back_are_part_of_the_record() {
    let mut store = memory();
    let intents = [
        PLAIN[0],
        r#"{"type":"run.fork","intent":{"description":"forged"}}"#,
        r#"{"type":"plan.updat"}"#,
        r#"{"type":"plan.update","delta":[{"set":"/policy/x","value":1}]}"#,
        r#"{"type":"plan.update","delta":[{"remove":"/nothing"}]}"#,
        r#"{"type":"action.result","result":{"status":"ok"}}"#,
    ];
    record(&store, "r", r#"{"risk":0}"#, &intents);
    let mut recorder = Recorder::resume(&store, &name("r"), Box::new(Fixed::new("later", 5, 1))).unwrap();
    let anomaly = Anomaly { agent: Some("buyer".into()), ..Anomaly::told("tool_failure", "no answer") };
    recorder.note_anomaly(&anomaly).unwrap();
    recorder.commit().unwrap();
    let tip = Trace::open(&store, &name("r")).unwrap().record(4).unwrap();
    let end = seal(Header { head: Some(tip.id()), ..header(Kind::End, "r") }, r#"{"reason":"done"}"#);
    store.commit(&[end]).unwrap();
    check("refusals", &bundle_of(&mut store, &["r"]), &[], 0);
}

#[test]
fn numbers_names_and_tagged_values_have_one_spelling_in_both() {
    let mut store = memory();
    let state = r#"{"n":[9007199254740991,9007199254740993,-123456789012345678901234567890,1e21,1e-7,0.000001,5e-324,
        1.7976931348623157e308,-0.0,333333333.33333329,4.5,0.1,1e20,12345678.9,2.2250738585072014e-308],
        "ä":1,"😀":2,"￿":3,"":4,"a/b~c":"\u0000\u001f\u007f\"\\/é","$$mine":{"$$twice":1},"$$":0}"#;
    let tagged = r#"{"type":"observation.add","result":{"f":[{"$float":"NaN"},{"$float":"-Infinity"}],
        "b":{"$bytes":"AAEC_w"},"w":{"$wtf8":"YeCggOmtng"},"g":{"$gap":{"path":"/x","reason":"too large"}},
        "r":{"$redacted":{"kind":"key","len_class":"32"}},"名前":{"$$x":null}}}"#;
    let tagged = tagged.replace("YeCggOmtng", &dendrer_object::digest::encode_base64url(b"a\xed\xa0\x80b"));
    let broken =
        r#"{"type":"observation.add","result":{"odd":{"\ud800":1,"z":2,"a":{"\udfff x":"\ud83d"}}}}"#;
    record(&store, "r", state, &[&tagged, broken]);
    check("values", &bundle_of(&mut store, &["r"]), &[], 0);
}

#[test]
fn a_fork_needs_the_beginning_of_its_parent() {
    let mut store = memory();
    record(&store, "p", r#"{"risk":0}"#, PLAIN);
    record(&store, "x", "{}", &PLAIN[1..2]);
    let at = Trace::open(&store, &name("p")).unwrap().record(2).unwrap();
    store.commit(&fork(&at, "f")).unwrap();
    check("fork", &bundle_of(&mut store, &["f"]), &[], 0);
    check("both", &bundle_of(&mut store, &["f", "p"]), &[], 0);
    let records = all_records(&store);
    let own: Vec<usize> =
        (0..records.len()).filter(|at| records[*at].header().run == Some(name("f"))).collect();
    check("no-prefix", &forged(&records, &own, &["f"]).write(&split), &[], 6);
    check("half-a-prefix", &forged(&records, &[&[0, 1][..], &own].concat(), &["f"]).write(&split), &[], 6);
    check("not-begun", &forged(&records, &[&[1, 2][..], &own].concat(), &["f"]).write(&split), &[], 4);
}

/// Whoever holds the key can sign anything; what breaks a rule of the chain is still seen.
#[test]
fn signed_nonsense_is_not_intact() {
    let store = memory();
    record(&store, "r", r#"{"risk":0}"#, PLAIN);
    let good = all_records(&store);
    let end = seal(Header { head: Some(good[4].id()), ..header(Kind::End, "r") }, r#"{"reason":"done"}"#);
    let order = |places: &[usize]| -> Vec<Record> {
        places.iter().map(|at| if *at == 9 { end.clone() } else { good[*at].clone() }).collect()
    };
    for (case, places, expected) in [
        ("good", &[0, 1, 2, 3, 4][..], 0),
        ("closed", &[0, 1, 2, 3, 4, 9], 0),
        ("gap", &[0, 1, 3, 4], 4),
        ("swap", &[0, 2, 1, 3, 4], 4),
        ("repeat", &[0, 1, 1, 2, 3, 4], 4),
        ("twice", &[0, 1, 2, 0, 3, 4], 4),
        ("headless", &[1, 2, 3, 4], 4),
        ("after-end", &[0, 1, 2, 3, 9, 4], 4),
        ("two-ends", &[0, 1, 2, 3, 4, 9, 9], 4),
    ] {
        let records = order(places);
        let keep: Vec<usize> = (0..records.len()).collect();
        check(case, &forged(&records, &keep, &["r"]).write(&split), &[], expected);
    }
    let mut bundle = forged(&good, &[0, 1, 2, 3, 4], &["r"]);
    bundle.runs = vec![name("other")];
    check("label", &bundle.write(&split), &[], 4);
    let mut bundle = forged(&good, &[0, 1, 2, 3, 4], &["r"]);
    bundle.records.swap(1, 2);
    check("records-swapped", &bundle.write(&split), &[], 4);
}

#[test]
fn witnesses_may_sign_beside_the_log_and_another_key_alone_may_not() {
    let store = memory();
    record(&store, "r", r#"{"risk":0}"#, PLAIN);
    let records = all_records(&store);
    let mut bundle = forged(&records, &[0, 1, 2, 3, 4], &["r"]);
    let checkpoint = Checkpoint::new(&STORE.origin(), 5, store.tree().root).unwrap();
    let witness = SigningKey::from_seed("witness.example", [5; 32]).unwrap();
    let mut note = checkpoint.sign(&key()).unwrap();
    note.add_signature(&witness).unwrap();
    let notes: [(&str, SignedNote, u8); 3] = [
        ("witnessed", note, 0),
        ("witness-alone", checkpoint.sign(&witness).unwrap(), 4),
        ("smaller", Checkpoint::new(&STORE.origin(), 4, store.tree().root).unwrap().sign(&key()).unwrap(), 4),
    ];
    for (case, note, expected) in notes {
        bundle.checkpoint = note.to_string();
        check(case, &bundle.write(&split), &[], expected);
    }
}

/// Both sides draw the same edits: xorshift64* from one seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % end
    }

    /// Changes one byte, takes one out, or puts one in.
    fn edit(&mut self, text: &[u8]) -> Vec<u8> {
        let mut edited = text.to_vec();
        let (what, at, change) = (self.below(8), self.below(text.len()), 1 + self.below(255) as u8);
        match what {
            0 => drop(edited.remove(at)),
            1 => edited.insert(at, change),
            _ => edited[at] ^= change,
        }
        edited
    }
}

/// Judges as many edits of a file as it is told, in one process; prints one digit for each.
const DRIVER: &str = r#"
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import verify
text, state, out = sys.stdin.buffer.read(), int(sys.argv[2]), []
def below(end):
    global state
    state ^= state >> 12
    state ^= state << 25 & 2**64 - 1
    state ^= state >> 27
    return ((state * 0x2545F4914F6CDD1D & 2**64 - 1) >> 33) % end
for _ in range(int(sys.argv[3])):
    edited, what, at, change = bytearray(text), below(8), below(len(text)), 1 + below(255)
    if what == 0: del edited[at]
    elif what == 1: edited.insert(at, change)
    else: edited[at] ^= change
    try: out.append(str(verify.check(bytes(edited))[0]))
    except Exception: out.append("4")
print("".join(out))
"#;

fn judge_in_python(python: &str, text: &[u8], seed: u64, count: u64) -> Vec<u8> {
    let mut child = Command::new(python)
        .args(["-c", DRIVER, docs().to_str().unwrap(), &seed.to_string(), &count.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    output.stdout.trim_ascii().iter().map(|digit| digit - b'0').collect()
}

#[track_caller]
fn check_edits(text: &[u8], base: u8, count: u64) {
    let seed = 0x00DE_4DE5_u64 + text.len() as u64;
    assert_eq!(rust(text, &VerifyTerms::default()), base);
    let mut draw = Draw(seed);
    let edits: Vec<Vec<u8>> = (0..count).map(|_| draw.edit(text)).collect();
    let here: Vec<u8> = edits.iter().map(|edited| rust(edited, &VerifyTerms::default())).collect();
    let show = |at: usize| {
        let edited = &edits[at];
        let from = edited.iter().zip(text).position(|(a, b)| a != b).unwrap_or(edited.len());
        let around = from.saturating_sub(40)..(from + 40).min(edited.len());
        format!("edit {at} (seed {seed}) at byte {from}: {}", String::from_utf8_lossy(&edited[around]))
    };
    for (at, code) in here.iter().enumerate() {
        assert_ne!(*code, 0, "{}", show(at));
    }
    let Some(python) = python() else { return };
    let there = judge_in_python(&python, text, seed, count);
    assert_eq!(there.len(), here.len());
    for (at, (a, b)) in here.iter().zip(&there).enumerate() {
        assert_eq!(a, b, "this workspace and verify.py differ: {}", show(at));
    }
    println!("deep: differential {count}");
}

#[test]
fn no_byte_of_a_bundle_can_change_unseen_by_either_reader() {
    let mut store = memory();
    record(&store, "other", "{}", &PLAIN[1..2]);
    let long = format!(r#"{{"type":"observation.add","result":{{"é":"{}","n":1e21}}}}"#, "ab".repeat(520));
    record(&store, "r", r#"{"risk":9007199254740993}"#, &[&long, r#"{"type":"nonsense"}"#]);
    record(&store, "more", "{}", &[]);
    check_edits(&bundle_of(&mut store, &["r"]), 0, edits());
}

#[test]
fn no_byte_of_a_bundle_with_withheld_values_can_change_unseen_by_either_reader() {
    let store = memory();
    record(&store, "r", "{}", &PLAIN[1..3]);
    let records = all_records(&store);
    let mut bundle = forged(&records, &[0, 1, 2], &["r"]);
    let places: Vec<Pointer> = vec!["/result".parse().unwrap()];
    bundle.records = records.iter().map(|record| withheld(record, &places)).collect();
    check_edits(&bundle.write(&split), 6, edits() / 4);
}

/// Edits that keep every line canonical JSON: lines that are dropped, cut, spliced and changed, other names of runs, other
/// spellings, and whatever the holder of the key can change and sign again, of deltas, roots, authors, chains and maps
/// (`second_reader/edits.py`). What one reader takes and the other refuses is named with the edit.
#[test]
fn two_readers_agree_on_bundles_that_were_edited_and_signed_again() {
    let Some(python) = python() else { return };
    let mut store = memory();
    record(&store, "other", "{}", &PLAIN[1..2]);
    let long = format!(r#"{{"type":"observation.add","result":{{"text":"{}"}}}}"#, "word ".repeat(300));
    record(
        &store,
        "r",
        r#"{"risk":0,"l":[1]}"#,
        &[PLAIN[0], PLAIN[1], r#"{"type":"run.fork"}"#, PLAIN[3], &long],
    );
    let at = Trace::open(&store, &name("r")).unwrap().record(2).unwrap();
    store.commit(&fork(&at, "f")).unwrap();
    record(&store, "more", "{}", &PLAIN[2..3]);
    let mut texts: Vec<Vec<u8>> = [&["r"][..], &["f"], &["other", "r", "f", "more"]]
        .iter()
        .map(|runs| bundle_of(&mut store, runs))
        .collect();
    let records = all_records(&store);
    let keep: Vec<usize> = (0..records.len()).collect();
    let places: Vec<Pointer> = vec!["/result".parse().unwrap(), "/state_root".parse().unwrap()];
    let mut part = forged(&records, &keep, &["other"]);
    part.records = records.iter().map(|record| withheld(record, &places)).collect();
    texts.push(part.write(&split));
    let all = edits() * 3 / 10;
    let (mut left, mut seed, mut judged) = (all, 20_261_129_u64, [0_u64; 8]);
    while left > 0 {
        // As many as are held at a time.
        let count = left.min(1000);
        let edited = edited_in_python(&python, &texts, seed, count);
        assert_eq!(edited.len() as u64, count);
        for (at, (there, what, text)) in edited.iter().enumerate() {
            let here = rust(text, &VerifyTerms::default());
            let shown = String::from_utf8_lossy(text);
            assert_eq!(
                here, *there,
                "edit {at} of {count} (seed {seed}), {what}: this workspace and verify.py differ:\n{shown}"
            );
            judged[usize::from(here)] += 1;
        }
        (left, seed) = (left - count, seed + 1);
    }
    for code in [0, 4, 6] {
        assert!(judged[code] > all / 50, "{judged:?} of {all} edits come to {code}: they show nothing");
    }
    println!("deep: edits {all}");
}

/// Draws edits of bundles of the test's log. Each has what `verify.py` makes of it, what was done, and the bundle.
fn edited_in_python(python: &str, texts: &[Vec<u8>], seed: u64, count: u64) -> Vec<(u8, String, Vec<u8>)> {
    let directory =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("second-reader-edits-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/second_reader/edits.py")).arg(docs());
    command.args([seed.to_string(), count.to_string(), "03".repeat(32)]);
    for (at, text) in texts.iter().enumerate() {
        let path = directory.join(format!("{at}.dnd"));
        std::fs::write(&path, text).unwrap();
        command.arg(path);
    }
    let output = command.output().unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (mut rest, mut edited) = (&output.stdout[..], Vec::new());
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line = std::str::from_utf8(&rest[..end]).unwrap();
        let (code, line) = line.split_once(' ').unwrap();
        let (length, what) = line.split_once(' ').unwrap();
        let (text, others) = rest[end + 1..].split_at(length.parse().unwrap());
        edited.push((code.parse().unwrap(), what.to_owned(), text.to_vec()));
        rest = others;
    }
    edited
}

/// The line that says for which runs a bundle was made is a label: no digest covers it. Where it names another run
/// that is in the bundle too, both readers take it. What they print is then about that run, with its own tip.
#[test]
fn the_list_of_runs_is_a_label_and_not_evidence() {
    let mut store = memory();
    record(&store, "a", "{}", &PLAIN[1..2]);
    record(&store, "b", "{}", &PLAIN[2..3]);
    let text = String::from_utf8(bundle_of(&mut store, &["a", "b"])).unwrap();
    for (label, names, expected) in [
        ("label-edited", r#"["b","a"]"#, 0),
        ("label-shortened", r#"["b"]"#, 0),
        ("label-repeated", r#"["a","a"]"#, 4),
    ] {
        let edited = text.replacen(r#""runs":["a","b"]"#, &format!(r#""runs":{names}"#), 1);
        assert_ne!(edited, text);
        check(label, edited.as_bytes(), &[], expected);
    }
}

#[test]
fn what_is_no_bundle_gets_a_verdict_and_no_traceback() {
    let Some(python) = python() else { return };
    let deep = "[".repeat(100_000);
    let long = format!("{{\"bundle\":1,\"draft\":3,\"size\":{}}}\n", "9".repeat(10_000));
    for (at, text) in [
        "\n",
        "{}\n",
        "null\n",
        "\u{feff}{}\n",
        "{\"bundle\":1,\"draft\":3}\n",
        "[1]\n",
        &deep,
        &long,
        "\0\n",
    ]
    .iter()
    .enumerate()
    {
        let (code, _) = program(&python, &format!("nonsense-{at}"), text.as_bytes(), &[]);
        assert_eq!(code, 4, "{at}");
        assert_eq!(rust(text.as_bytes(), &VerifyTerms::default()), 4, "{at}");
    }
    let usage = Command::new(&python).arg(docs().join("verify.py")).output().unwrap();
    assert_eq!(usage.status.code(), Some(2));
    let missing =
        Command::new(&python).arg(docs().join("verify.py")).arg("no/such/file.dnd").output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
}

/// The promise of the design: a second reader is small enough to be read at one sitting.
#[test]
fn verify_py_stays_small() {
    let text = std::fs::read_to_string(docs().join("verify.py")).unwrap();
    assert!(text.lines().count() <= 240, "{} lines", text.lines().count());
    assert!(text.lines().all(|line| line.chars().count() <= 100));
    let imports: Vec<&str> = text.lines().filter(|line| line.contains("import ")).collect();
    assert_eq!(imports.len(), 2, "the standard library and one package: {imports:?}");
    let draft = format!("DRAFT, MISSING = {DRAFT}, object()");
    assert!(text.contains(&draft), "it reads the form that this workspace writes: {draft}");
}

/// The text of a number is its identity, so both must print every double alike, not only those of the vectors.
#[test]
fn doubles_are_spelled_alike() {
    let Some(python) = python() else { return };
    let mut draw = Draw(20_260_223);
    let mut bits =
        || (draw.below(1 << 31) as u64) << 33 ^ (draw.below(1 << 31) as u64) << 8 ^ draw.below(256) as u64;
    // Half of them anywhere, half of them near where the spelling changes.
    let near = |n: u64| {
        let double = f64::from_bits((n % (1 << 52)) | ((1023 + n % 72) << 52));
        if n.is_multiple_of(3) { double * 1e-9 } else { double }
    };
    let doubles: Vec<f64> =
        (0..20_000).map(|at| if at % 2 == 0 { f64::from_bits(bits()) } else { near(bits()) }).collect();
    let doubles: Vec<f64> = doubles.into_iter().filter(|double| double.is_finite()).collect();
    let script = "import sys, struct\nsys.dont_write_bytecode = True\nsys.path.insert(0, sys.argv[1])\nimport verify\n\
        for line in sys.stdin: print(verify.number(struct.unpack('>d', bytes.fromhex(line.strip()))[0]))";
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("doubles-{}", std::process::id()));
    let lines: String = doubles.iter().map(|double| format!("{:016x}\n", double.to_bits())).collect();
    std::fs::write(&path, lines).unwrap();
    let input = std::fs::File::open(&path).unwrap();
    let output =
        Command::new(python).args(["-c", script, docs().to_str().unwrap()]).stdin(input).output().unwrap();
    std::fs::remove_file(&path).unwrap();
    let there = String::from_utf8(output.stdout).unwrap();
    assert_eq!(there.lines().count(), doubles.len());
    for (double, there) in doubles.iter().zip(there.lines()) {
        // Zero is the one double with two spellings; the sign is dropped at the door.
        let there = if there == "-0" { "0" } else { there };
        assert_eq!(Value::from(*double).to_string(), there, "{double:e}");
    }
}
