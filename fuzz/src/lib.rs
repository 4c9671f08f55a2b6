//! Fuzz targets: every decoder of the format and the expression parser, each as one function from bytes to nothing.
//!
//! A target panics where a promise is broken: whatever is accepted is written again byte for byte, what has a slow and
//! obvious definition agrees with it, and nothing that is read makes the program stop. With coverage: `just fuzz json 60`,
//! or `just fuzz-all 60` for each. Without: `cargo test` here.

mod derived;
mod disk;
mod modules;
mod parts;

use std::io::Cursor;

use dendrer::Trace;
use dendrer::pack::yaml::Document;
use dendrer::recorder::Fixed;
use dendrer::verify::{self, VerifyVerdict};
use dendrer_kernel::cases;
use dendrer_kernel::expr::{Budget, Env, Expr, Scope};
use dendrer_kernel::pack::{Origin, Pack};
use dendrer_kernel::step::Start;
use dendrer_object::bundle::Bundle;
use dendrer_object::json::{check_canonical, parse_canonical, parse_door, parse_tagged, to_vec};
use dendrer_object::merkle::tile::{Tile, TileKind, decode_entries, decode_hashes, encode_entries};
use dendrer_object::note::{Checkpoint, SignedNote, SigningKey, VerifierKey};
use dendrer_object::record::{Entry, Header};
use dendrer_object::{Delta, Intent, Value};
use dendrer_testkit::memory;
use dendrer_wire::format;
use dendrer_wire::import::{self, Choice, ImportError, ImportOptions, Map, OnGap, plan};

pub use derived::{snapshot, verdicts};
pub use disk::{directory, segment, whole_segment};
pub use modules::module;
pub use parts::{body, proof};

/// A target: its name and its function.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("json", json),
    ("header", header),
    ("bundle", bundle),
    ("note", note),
    ("tile", tile),
    ("delta", delta),
    ("expression", expression),
    ("module", module),
    ("import", import),
    ("map", map),
    ("pack", pack),
    ("body", body),
    ("proof", proof),
    ("segment", segment),
    ("directory", directory),
    ("snapshot", snapshot),
    ("verdicts", verdicts),
];

/// The canonical reader and both doors.
pub fn json(data: &[u8]) {
    let canonical = parse_canonical(data);
    assert_eq!(canonical.is_ok(), check_canonical(data).is_ok(), "building a value decides nothing");
    if let Ok(value) = &canonical {
        assert_eq!(to_vec(value), data, "what is canonical is written as it was read");
        // A value may be nested deeper than a document at the door, but never the other way round.
        if value.depth() <= 128 {
            assert_eq!(parse_tagged(data).as_ref(), Ok(value));
        }
    }
    for value in [parse_door(data), parse_tagged(data)].into_iter().flatten() {
        let text = to_vec(&value);
        let again = parse_canonical(&text);
        // A broken name costs two levels, so what the door takes may be too deep for a line; it is then refused.
        if value.depth() <= 136 {
            assert_eq!(again.as_ref(), Ok(&value));
        }
        assert_eq!(again.map(|again| again.digest()).unwrap_or(value.digest()), value.digest());
    }
}

/// Headers in both forms, and log entries.
pub fn header(data: &[u8]) {
    if let Ok((header, pointers)) = Header::parse_with_pointers(data) {
        assert_eq!(header.text_with_pointers(&pointers), data);
    }
    if let Ok((header, fields)) = Header::parse_with_digests(data) {
        let text = header.text_with_pointers(fields.iter().map(|(pointer, _)| pointer));
        assert!(Header::parse_with_pointers(&text).is_ok_and(|(again, _)| again == header));
    }
    if let Ok(entry) = Entry::parse(data) {
        assert_eq!(entry.text(), data);
    }
}

/// Bundles: lines, records, blobs, the log.
pub fn bundle(data: &[u8]) {
    let Ok(bundle) = Bundle::parse(data) else { return };
    let _ = bundle.root();
    for ((_, entry), sealed) in bundle.positions().zip(&bundle.records) {
        if let Ok(record) = sealed.open(entry, bundle.store) {
            assert_eq!(record.id(), entry.hash);
            let _ = record.content();
        }
    }
    let written = bundle.write(&|text| (0..text.len()).step_by(500).collect());
    let again = Bundle::parse(&written);
    assert!(again.is_ok_and(|again| again.root() == bundle.root() && again.log == bundle.log));
    // Where large values are cut is the writer's choice; all else has one spelling.
    if !data.windows(9).any(|window| window == b"\"chunked\"") {
        assert_eq!(written, data);
    }
}

/// Signed notes, checkpoints and keys.
pub fn note(data: &[u8]) {
    if let Ok(note) = SignedNote::parse(data) {
        assert_eq!(note.to_string().as_bytes(), data);
        let _ = Checkpoint::parse(note.text());
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(checkpoint) = Checkpoint::parse(text) {
        assert_eq!(checkpoint.to_string(), text);
    }
    if let Ok(key) = text.parse::<VerifierKey>() {
        assert_eq!(key.to_string(), text);
    }
    if let Ok(key) = SigningKey::from_secret_text(text) {
        assert_eq!(key.secret_text(), text);
    }
}

/// Names of tiles, and tiles of entries: the first byte says how many there are.
pub fn tile(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(tile) = text.parse::<Tile>()
    {
        assert_eq!(tile.to_string(), text);
        let _ = decode_hashes(tile, data);
    }
    let Some((width, bytes)) = data.split_first() else { return };
    let Some(tile) = Tile::of_tree(TileKind::Entries, 0, u64::from(*width)) else { return };
    if let Ok(entries) = decode_entries(tile, bytes) {
        assert_eq!(encode_entries(entries).as_deref(), Ok(bytes));
    }
}

/// Deltas on a state, and intents: an array of a state and a delta, or an intent.
pub fn delta(data: &[u8]) {
    let Ok(value) = parse_tagged(data) else { return };
    let _ = Intent::from_value(&value, None);
    let Some([state, delta]) =
        value.as_array().and_then(|pair| <[&Value; 2]>::try_from(pair.iter().collect::<Vec<_>>()).ok())
    else {
        return;
    };
    let Ok(delta) = Delta::from_value(delta) else { return };
    assert_eq!(Delta::from_value(&delta.to_value()).as_ref(), Ok(&delta));
    if let Ok(after) = delta.apply(state) {
        // The digest of a changed tree is that of a fresh one, whatever changes led there.
        let fresh = parse_canonical(&to_vec(&after));
        assert!(fresh.is_ok_and(|fresh| fresh.digest() == after.digest()), "{delta:?} on {state}");
    }
}

/// Foreign traces, read as chats and by a mapping: a plan is made or an error says why, the same each time; and what was
/// planned is what is recorded.
pub fn import(data: &[u8]) {
    let mapping = Value::record([
        ("type", Value::record([("const", Value::from("action.result"))])),
        (
            "action",
            Value::record([("call_id", Value::from("/tool_call_id")), ("tool", Value::from("/name"))]),
        ),
        ("intent", Value::record([("content", Value::from("/content"))])),
    ]);
    let map = Map::from_value(&mapping).expect("the mapping is one");
    for map in [None, Some(map)] {
        import_as(map.as_ref(), data);
    }
}

/// A mapping on the first line, and what it is to read behind it.
pub fn map(data: &[u8]) {
    let Some(end) = data.iter().position(|byte| *byte == b'\n') else { return };
    let Ok(mapping) = parse_door(&data[..end]) else { return };
    let Ok(map) = Map::from_value(&mapping) else { return };
    assert_eq!(map.to_value(), &mapping);
    import_as(Some(&map), &data[end + 1..]);
}

fn import_as(map: Option<&Map>, data: &[u8]) {
    let look = |on_gap| {
        let (format, choice) = (format::detected(map.is_some()), Choice::default());
        let options = ImportOptions { format, map: map.cloned(), choice, on_gap, name: None, kept: Vec::new() };
        let start = Start::new("fuzzed".parse().expect("a run id"));
        plan(&mut Cursor::new(data), options, start)
    };
    match (look(OnGap::Mark), look(OnGap::Stop)) {
        (Ok(plan), stopped) => {
            assert_eq!(plan.bytes, data.len() as u64);
            assert_eq!(plan.tally.types.values().sum::<u64>(), plan.tally.ticks);
            assert_eq!(stopped.is_ok(), plan.tally.gaps() == 0, "what stops is what is a gap");
            record_planned(&plan, data);
        }
        (Err(error), stopped) => {
            assert!(!matches!(error, ImportError::Changed), "nothing changed: {error}");
            assert!(stopped.is_err());
        }
    }
}

/// Records what was planned, and reads it back.
fn record_planned(plan: &import::ImportPlan, data: &[u8]) {
    let mut store = memory(1);
    let surroundings = Box::new(Fixed::new("fuzzed", 0, 1));
    let mut settled = 0;
    let tip =
        import::record(&mut store, &mut Cursor::new(data), plan, surroundings, &mut |more| settled += more);
    let tip = tip.expect("a plan that holds is a recording that holds");
    assert_eq!(settled, plan.tally.ticks, "one item is one tick");
    let trace = Trace::open(&store, &plan.start.run).expect("what was recorded is there");
    assert_eq!(trace.tip(), plan.tally.ticks);
    assert_eq!(trace.record(trace.tip()).map(|record| record.id()).ok(), Some(tip));
    let report = verify::store(&store, &verify::VerifyTerms { replay: true, ..verify::VerifyTerms::default() });
    let report = report.expect("a store in memory can be verified");
    assert_eq!((report.verdict, &report.findings[..]), (VerifyVerdict::Intact, &[][..]));
}

/// Expressions: what parses prints, and what was printed parses to the same; an answer is always the same one, costs
/// the same, and is no deeper than a value may be.
pub fn expression(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let scope = Scope::new()
        .root("t")
        .constant("LIMIT", Value::from(10u64))
        .define("ok", &["x"], "x.ok && x.n <= LIMIT")
        .and_then(|scope| scope.define("total", &[], "sum(state.list)"))
        .expect("the definitions parse");
    let problems = Expr::problems(text, &scope);
    let expr = match Expr::parse(text, &scope) {
        Ok(expr) => expr,
        Err(error) => {
            assert_eq!(problems.first(), Some(&error));
            problems.iter().for_each(|problem| drop(problem.render(text)));
            return;
        }
    };
    assert!(problems.is_empty());
    let again = Expr::parse(expr.canonical(), &scope).expect("canonical text is a text");
    assert_eq!(again.canonical(), expr.canonical(), "{text}");
    let state = Value::record([
        ("list", Value::array((0..20u64).map(Value::from))),
        ("risk", Value::from(0.5)),
        ("text", Value::from("three small words")),
        ("deep", Value::record([("a", Value::record([("b", Value::Null)]))])),
        (
            "calls",
            Value::array(
                [true, false].map(|ok| Value::record([("ok", ok.into()), ("n", Value::from(7u64))])),
            ),
        ),
    ]);
    let env = Env { others: &[("t", &state)], ..Env::of(&state) };
    let run = |expr: &Expr| {
        let mut budget = Budget::new(20_000);
        (expr.evaluate(&env, &mut budget).ok(), budget.left())
    };
    let found = run(&expr);
    assert_eq!(run(&again), found, "{text}");
    assert!(found.0.is_none_or(|value| value.depth() <= 128), "{text}");
    let _ = expr.holds(&env, &mut Budget::new(1000));
}

/// Packs: YAML and JSON, the checks, initial states, tests. What was read is read again from its JSON, and a pack does
/// the same twice.
pub fn pack(data: &[u8]) {
    let Ok(document) = Document::read(data) else { return };
    let value = &document.value;
    let text = to_vec(value);
    // A name of a user that begins with `$` is stored with one more each time it comes in.
    if !text.contains(&b'$')
        && let Ok(again) = Document::read(&text)
    {
        assert_eq!(&again.value, value, "JSON is YAML");
    }
    match Pack::read(value) {
        Err(faults) => {
            assert!(!faults.is_empty(), "what is refused is refused for a reason");
            for fault in faults {
                let _ = document.mark(&fault.path, fault.at_name, fault.span);
            }
        }
        Ok(pack) => {
            let state = pack.init(&Origin::default());
            assert_eq!(state, pack.init(&Origin::default()));
            for case in &pack.cases {
                assert_eq!(cases::run(&pack, case), cases::run(&pack, case));
            }
        }
    }
}
