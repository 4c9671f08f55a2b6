//! Bundles that somebody tampered with, made from a good one of `logistics-run-47`.
//!
//! Each attack is as good as it can be made short of the last step: counts are put right and lines are canonical, so
//! that what catches it is the chain, the log or the signature, and not the parser. `corrupt/rewritten.dnd` takes the
//! last step too: with the log's key in hand, the whole chain is made again. Nothing inside that file can show it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dendrer::Error;
use dendrer::kernel::step::STILL_VIOLATED;
use dendrer_object::bundle::{Bundle, LogItem, Sealed};
use dendrer_object::delta::{Delta, Op};
use dendrer_object::note::Checkpoint;
use dendrer_object::record::{Author, Body, Entry, Header, Record, cut};
use dendrer_object::{Digest, Value, json};

use super::key;

/// The tick whose words `tampered.dnd` changes.
pub(crate) const TAMPERED: u64 = 18;
/// The tick whose delta `corrupt/payload.dnd` changes.
pub(crate) const PAYLOAD: u64 = 22;
/// The tick that `corrupt/gap.dnd` leaves out.
pub(crate) const GAP: u64 = 30;
/// The tick that `corrupt/swap.dnd` puts behind the next.
pub(crate) const SWAP: u64 = 40;
/// The tick to which `corrupt/metadata.dnd` gives another author.
pub(crate) const METADATA: u64 = 23;
/// The tick from which `corrupt/rewritten.dnd` is made again.
pub(crate) const REWRITTEN: u64 = 22;

/// Makes the damaged bundles, as file names and bytes, from the bundle of `logistics-run-47` as it was exported.
pub(crate) fn damaged(bundle_text: &[u8]) -> Result<Vec<(&'static str, Vec<u8>)>, Error> {
    let bundle = Bundle::parse(bundle_text)?;
    let opened = dendrer::bundle::open(PathBuf::from("logistics-run-47.dnd"), bundle_text)?;
    let before = dendrer::Trace::open(&opened.store, &bundle.runs[0])?.state(REWRITTEN - 1)?;
    Ok(vec![
        ("tampered.dnd", tampered(bundle_text, &bundle)?),
        ("corrupt/payload.dnd", write(&payload(&bundle)?)),
        ("corrupt/gap.dnd", write(&gap(&bundle)?)),
        ("corrupt/swap.dnd", write(&swap(&bundle)?)),
        ("corrupt/metadata.dnd", write(&metadata(&bundle)?)),
        ("corrupt/rewritten.dnd", write(&rewritten(&bundle, before)?)),
    ])
}

fn write(bundle: &Bundle) -> Vec<u8> {
    bundle.write(&|_| Vec::new())
}

/// Finds a tick: its place among the items of the log and among the records.
fn find(bundle: &Bundle, tick: u64) -> Result<(usize, usize), Error> {
    let entries = bundle.log.iter().enumerate().filter_map(|(item, kept)| match kept {
        LogItem::Entry(entry) => Some((item, entry)),
        LogItem::Omitted { .. } => None,
    });
    let found = entries
        .enumerate()
        .find(|(_, (_, entry))| entry.tick == Some(tick) && entry.run.as_ref() == bundle.runs.first());
    match (found, bundle.runs.first()) {
        (Some((record, (item, _))), _) => Ok((item, record)),
        (None, Some(run)) => Err(Error::NoTick { run: run.clone(), tick, tip: 0 }),
        (None, None) => Err(Error::NoRun { run: "logistics-run-47".to_owned(), near: None }),
    }
}

fn entry(bundle: &Bundle, item: usize) -> &Entry {
    match &bundle.log[item] {
        LogItem::Entry(entry) => entry,
        LogItem::Omitted { .. } => unreachable!("find gives the places of entries"),
    }
}

/// Opens the record of a tick.
fn record(bundle: &Bundle, tick: u64) -> Result<Record, Error> {
    let (item, at) = find(bundle, tick)?;
    let sealed = bundle.records[at].open(entry(bundle, item), bundle.store);
    let run = bundle.runs[0].clone();
    sealed.map_err(|why| Error::DamagedRecord { run, tick, why: why.to_string() })
}

/// One value is changed in the file, and nothing else.
fn tampered(text: &[u8], bundle: &Bundle) -> Result<Vec<u8>, Error> {
    let (_, at) = find(bundle, TAMPERED)?;
    // Before the records stand the header and the log.
    let line = 1 + bundle.log.len() + at;
    let mut out = Vec::with_capacity(text.len());
    for (number, bytes) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        if number != line {
            out.extend_from_slice(bytes);
            continue;
        }
        let value =
            json::parse_canonical(&bytes[..bytes.len() - 1]).expect("the bundle was read from these lines");
        let mut object = value.as_object().cloned().unwrap_or_default();
        let mut values = object.get("values").and_then(Value::as_object).cloned().unwrap_or_default();
        values.set("/intent/description", Value::from("diesel surcharge of 14.5 % from tomorrow on"));
        object.set("values", Value::Object(values));
        json::write(&Value::Object(object), &mut out);
        out.push(b'\n');
    }
    Ok(out)
}

/// Seals a record with other content or another header, and puts it where the old one was. The log keeps its entry.
fn replace(
    bundle: &Bundle,
    tick: u64,
    header: Header,
    content: &Value,
    old: &Record,
) -> Result<Bundle, Error> {
    let (_, at) = find(bundle, tick)?;
    let mut bundle = bundle.clone();
    bundle.records[at] = Sealed::of(&seal(header, content, old)?);
    Ok(bundle)
}

fn seal(header: Header, content: &Value, old: &Record) -> Result<Record, Error> {
    let object = content.as_object().cloned().unwrap_or_default();
    let seed = old.body().seed().expect("nothing of the demo was erased");
    Ok(Record::seal(header, Body::commit(cut(&object), seed)?)?)
}

/// A value is changed and committed to again: the record agrees with itself, not with the log.
fn payload(bundle: &Bundle) -> Result<Bundle, Error> {
    let old = record(bundle, PAYLOAD)?;
    let content = with(&old.content(), "delta", calmer(&old.content()));
    replace(bundle, PAYLOAD, old.header().clone(), &content, &old)
}

/// Another author is named, and the header sealed again.
fn metadata(bundle: &Bundle) -> Result<Bundle, Error> {
    let old = record(bundle, METADATA)?;
    let header = Header { author: Author::Agent, ..old.header().clone() };
    replace(bundle, METADATA, header, &old.content(), &old)
}

/// A tick is taken out of log and records, and the counts are put right.
fn gap(bundle: &Bundle) -> Result<Bundle, Error> {
    let (item, at) = find(bundle, GAP)?;
    let mut bundle = bundle.clone();
    bundle.log.remove(item);
    bundle.records.remove(at);
    bundle.size -= 1;
    Ok(bundle)
}

/// Two neighbours change places.
fn swap(bundle: &Bundle) -> Result<Bundle, Error> {
    let ((item, at), (next_item, next)) = (find(bundle, SWAP)?, find(bundle, SWAP + 1)?);
    let mut bundle = bundle.clone();
    bundle.log.swap(item, next_item);
    bundle.records.swap(at, next);
    Ok(bundle)
}

/// From some tick on, before which the state is given, every record is made again, with new roots, ids and links, and the log is signed again.
fn rewritten(bundle: &Bundle, mut state: Value) -> Result<Bundle, Error> {
    let mut bundle = bundle.clone();
    let mut renamed: BTreeMap<Digest, Digest> = BTreeMap::new();
    let rename = |renamed: &BTreeMap<Digest, Digest>, id: Digest| renamed.get(&id).copied().unwrap_or(id);
    for tick in REWRITTEN..=tip(&bundle) {
        let (item, at) = find(&bundle, tick)?;
        let old = record(&bundle, tick)?;
        let mut content = old.content();
        let delta = calmer(&content);
        state = Delta::from_value(&delta)
            .and_then(|delta| delta.apply(&state))
            .expect("a delta without its kernel part fits the state it was made for");
        content = with(&content, "delta", delta);
        content = without(&content, STILL_VIOLATED);
        content = with(&content, "state_root", Value::from(state.digest()));
        if tick == REWRITTEN {
            let mut says = content.get("intent").and_then(Value::as_object).cloned().unwrap_or_default();
            says.set("confidence", Value::from(0.91));
            says.set("source", Value::from("port_api"));
            content = with(&content, "intent", Value::Object(says));
        }
        let mut header = old.header().clone();
        header.prev = header.prev.map(|id| rename(&renamed, id));
        for link in &mut header.links {
            link.hash = rename(&renamed, link.hash);
        }
        header.links.sort_unstable();
        let new = seal(header, &content, &old)?;
        renamed.insert(old.id(), new.id());
        bundle.log[item] = LogItem::Entry(Entry { hash: new.id(), ..entry(&bundle, item).clone() });
        bundle.records[at] = Sealed::of(&new);
    }
    let root = bundle.root().expect("no entry came or went");
    let checkpoint = Checkpoint::new(&bundle.store.origin(), bundle.size, root)?;
    bundle.checkpoint = checkpoint.sign(&key())?.to_string();
    Ok(bundle)
}

fn tip(bundle: &Bundle) -> u64 {
    let ticks = bundle.positions().filter(|(_, entry)| entry.run.as_ref() == bundle.runs.first());
    ticks.filter_map(|(_, entry)| entry.tick).max().unwrap_or(0)
}

/// The delta of a record without what the policy wrote, and with every risk kept below the threshold.
fn calmer(content: &Value) -> Value {
    let empty = Value::array([]);
    let delta =
        Delta::from_value(content.get("delta").unwrap_or(&empty)).expect("what the kernel wrote is a delta");
    let ops = delta.0.into_iter().filter(|op| !op.path.as_str().starts_with("/policy")).map(|op| {
        let is_high = op.path.as_str() == "/risk_score"
            && op.value.as_ref().and_then(Value::as_f64).is_some_and(|risk| risk > 0.75);
        if is_high { Op { value: Some(Value::from(0.72)), ..op } } else { op }
    });
    Delta(ops.collect()).to_value()
}

fn without(content: &Value, name: &str) -> Value {
    let mut object = content.as_object().cloned().unwrap_or_default();
    object.remove(name);
    Value::Object(object)
}

fn with(content: &Value, name: &str, value: Value) -> Value {
    let mut object = content.as_object().cloned().unwrap_or_default();
    object.set(name, value);
    Value::Object(object)
}
