//! Damaged bundles, made from a good one of `logistics-run-47`.
//!
//! Each attack does all but its last step: counts are put right and lines are canonical, so that the chain, the log or the
//! signature catches it, and not the parser. `corrupt/rewritten.dnd` takes the last step too: with the log's key the whole
//! chain is made again. Nothing inside that file can show it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dendrer::kernel::step::STILL_VIOLATED;
use dendrer::{Error, Trace};
use dendrer_object::bundle::{Bundle, LogItem, Sealed};
use dendrer_object::delta::{Delta, Op};
use dendrer_object::note::Checkpoint;
use dendrer_object::record::{Author, Body, Entry, Header, Record, cut};
use dendrer_object::value::Object;
use dendrer_object::{Digest, Value, json};

use super::key;

/// The tick whose words `tampered.dnd` changes.
const TAMPERED: u64 = 18;
/// The tick whose delta `corrupt/payload.dnd` changes.
const PAYLOAD: u64 = 22;
/// The tick that `corrupt/gap.dnd` leaves out.
const GAP: u64 = 30;
/// The tick that `corrupt/swap.dnd` exchanges with the next.
const SWAP: u64 = 40;
/// The tick to which `corrupt/metadata.dnd` gives another author.
const METADATA: u64 = 23;
/// The tick from which `corrupt/rewritten.dnd` is made again.
const REWRITTEN: u64 = 22;

/// Makes the damaged bundles, as file names and bytes, from the bundle of `logistics-run-47` as it was exported.
pub(crate) fn damaged(bundle_text: &[u8]) -> Result<Vec<(&'static str, Vec<u8>)>, Error> {
    let bundle = Bundle::parse(bundle_text)?;
    let opened = dendrer::bundle::open(PathBuf::from("logistics-run-47.dnd"), bundle_text)?;
    let before = Trace::open(&opened.store, &bundle.runs[0])?.state(REWRITTEN - 1)?;
    // The record agrees with itself, and not with the log.
    let payload = resealed(&bundle, PAYLOAD, |_, content| content.set("delta", calmer(content).to_value()))?;
    let metadata = resealed(&bundle, METADATA, |header, _| header.author = Author::Agent)?;
    let write = |bundle: &Bundle| bundle.write(&|_| Vec::new());
    Ok(vec![
        ("tampered.dnd", tampered(bundle_text, &bundle)),
        ("corrupt/payload.dnd", write(&with_record(&bundle, PAYLOAD, &payload))),
        ("corrupt/gap.dnd", write(&gap(&bundle))),
        ("corrupt/swap.dnd", write(&swap(&bundle))),
        ("corrupt/metadata.dnd", write(&with_record(&bundle, METADATA, &metadata))),
        ("corrupt/rewritten.dnd", write(&rewritten(&bundle, before)?)),
    ])
}

/// The entry of a tick, its place among the items of the log, and that of its record among the records.
fn find(bundle: &Bundle, tick: u64) -> (Entry, usize, usize) {
    let entries = bundle.log.iter().enumerate().filter_map(|(item, kept)| match kept {
        LogItem::Entry(entry) => Some((item, entry)),
        LogItem::Omitted { .. } => None,
    });
    let is_of_tick = |entry: &Entry| entry.tick == Some(tick) && entry.run.as_ref() == bundle.runs.first();
    let found = entries.enumerate().find(|(_, (_, entry))| is_of_tick(entry));
    let (record, (item, entry)) = found.expect("the bundle has this tick");
    (entry.clone(), item, record)
}

fn object(value: Option<&Value>) -> Object {
    value.and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Changes one value in the file, and nothing else.
fn tampered(text: &[u8], bundle: &Bundle) -> Vec<u8> {
    let (_, _, record) = find(bundle, TAMPERED);
    let mut lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    // The header and the log precede the records.
    let number = 1 + bundle.log.len() + record;
    let line = json::parse_canonical(lines[number].trim_ascii_end());
    let mut line = object(line.ok().as_ref());
    let mut values = object(line.get("values"));
    values.set("/intent/description", Value::from("diesel surcharge of 14.5 % from tomorrow on"));
    line.set("values", Value::Object(values));
    let changed = json::to_string(&Value::Object(line)) + "\n";
    lines[number] = changed.as_bytes();
    lines.concat()
}

/// The record of a tick, changed and sealed again.
fn resealed(
    bundle: &Bundle,
    tick: u64,
    change: impl FnOnce(&mut Header, &mut Object),
) -> Result<Record, Error> {
    let (entry, _, record) = find(bundle, tick);
    let old = bundle.records[record].open(&entry, bundle.store).expect("the record is as it was exported");
    let (mut header, mut content) = (old.header().clone(), object(Some(&old.content())));
    change(&mut header, &mut content);
    let seed = old.body().seed().expect("nothing of the demo was erased");
    Ok(Record::seal(header, Body::commit(cut(&content), seed)?)?)
}

/// Puts a record in the place of that of a tick. The log keeps its entry.
fn with_record(bundle: &Bundle, tick: u64, record: &Record) -> Bundle {
    let (_, _, at) = find(bundle, tick);
    let mut bundle = bundle.clone();
    bundle.records[at] = Sealed::of(record);
    bundle
}

/// Takes a tick out of log and records, and puts the counts right.
fn gap(bundle: &Bundle) -> Bundle {
    let (_, item, record) = find(bundle, GAP);
    let mut bundle = bundle.clone();
    bundle.log.remove(item);
    bundle.records.remove(record);
    bundle.size -= 1;
    bundle
}

/// Exchanges two neighbours.
fn swap(bundle: &Bundle) -> Bundle {
    let ((_, item, record), (_, next_item, next)) = (find(bundle, SWAP), find(bundle, SWAP + 1));
    let mut bundle = bundle.clone();
    bundle.log.swap(item, next_item);
    bundle.records.swap(record, next);
    bundle
}

/// Makes every record from a tick on again, with new roots, ids and links, and signs the log again. `state` is the one before
/// that tick.
fn rewritten(bundle: &Bundle, mut state: Value) -> Result<Bundle, Error> {
    let mut bundle = bundle.clone();
    let mut renamed: BTreeMap<Digest, Digest> = BTreeMap::new();
    let ticks = bundle.positions().filter(|(_, entry)| entry.run.as_ref() == bundle.runs.first());
    let tip = ticks.filter_map(|(_, entry)| entry.tick).max().unwrap_or(0);
    for tick in REWRITTEN..=tip {
        let new = resealed(&bundle, tick, |header, content| {
            let delta = calmer(content);
            state = delta.apply(&state).expect("a delta without its kernel part fits its state");
            content.set("delta", delta.to_value());
            content.remove(STILL_VIOLATED);
            content.set("state_root", Value::from(state.digest()));
            if tick == REWRITTEN {
                let mut says = object(content.get("intent"));
                says.set("confidence", Value::from(0.91));
                says.set("source", Value::from("port_api"));
                content.set("intent", Value::Object(says));
            }
            let hashes = header.prev.iter_mut().chain(header.links.iter_mut().map(|link| &mut link.hash));
            hashes.for_each(|hash| *hash = renamed.get(hash).copied().unwrap_or(*hash));
            header.links.sort_unstable();
        })?;
        let (entry, item, record) = find(&bundle, tick);
        renamed.insert(entry.hash, new.id());
        bundle.log[item] = LogItem::Entry(Entry { hash: new.id(), ..entry });
        bundle.records[record] = Sealed::of(&new);
    }
    let root = bundle.root().expect("no entry came or went");
    let checkpoint = Checkpoint::new(&bundle.store.origin(), bundle.size, root)?;
    bundle.checkpoint = checkpoint.sign(&key())?.to_string();
    Ok(bundle)
}

/// The delta of a record without the policy's part, and with every risk below the threshold.
fn calmer(content: &Object) -> Delta {
    let delta = content.get("delta").cloned().unwrap_or_else(|| Value::array([]));
    let delta = Delta::from_value(&delta).expect("the kernel wrote a delta");
    let ops = delta.0.into_iter().filter(|op| !op.path.as_str().starts_with("/policy")).map(|op| {
        let is_high = op.path.as_str() == "/risk_score"
            && op.value.as_ref().and_then(Value::as_f64).is_some_and(|risk| risk > 0.75);
        if is_high { Op { value: Some(Value::from(0.72)), ..op } } else { op }
    });
    Delta(ops.collect())
}
