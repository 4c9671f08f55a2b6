//! What lies in the directory of a store: frames of a segment, and files that were edited.
//!
//! Checksums keep a mutation from ever reaching what stands behind them, so [`segment`] writes them itself, and a commit
//! that fits what precedes it. [`directory`] edits files as they are, and knows what was committed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use dendrer_object::json::parse_canonical;
use dendrer_object::merkle::{Peaks, leaf_hash};
use dendrer_object::record::{Entry, Kind};
use dendrer_object::{Digest, Record, Value};
use dendrer_store::conformance::{Scribe, info, key, noise};
use dendrer_store::faulty::Faulty;
use dendrer_store::prelude::*;
use dendrer_store::{Embedded, Options, VerifyOptions};

const DIR: &str = "/store";
const SEGMENT: &str = "/store/segments/00000000.seg";

/// The files of a store, and the records in it.
type Small = (BTreeMap<PathBuf, Vec<u8>>, Vec<Record>);

fn options(disk: &Faulty, write: bool) -> Options {
    Options { disk: Arc::new(disk.clone()), index: false, segment_size: 3000, write, ..Options::untagged() }
}

/// A store with everything in it: two runs, a refusal, chunks, an erasure, a checkpoint; in one segment or in several.
fn small(segment_size: u64) -> Small {
    let disk = Faulty::new();
    let options = Options { segment_size, ..options(&disk, true) };
    let mut store = Embedded::create(Path::new(DIR), info(), options).expect("a store is made");
    let mut scribe = Scribe::default();
    let first = [scribe.begin("r"), scribe.step("r")];
    let large = Value::record([
        ("agent_id", Value::from("someone")),
        ("intent", Value::record([("text", Value::from(noise(1500, 1))), ("plain", Value::from("x"))])),
    ]);
    let groups = [
        first.to_vec(),
        vec![scribe.transition("r", large.clone())],
        vec![scribe.beside(Kind::Refusal, "r", Value::record([("why", Value::from("no"))]))],
        vec![scribe.fork("f", 1, first[1].id()), scribe.step("f")],
        vec![scribe.transition("r", large), scribe.beside(Kind::End, "r", Value::object())],
    ];
    for group in &groups {
        store.commit(group).expect("a group is committed");
    }
    let mut records = groups.concat();
    let erase = scribe.beside(Kind::Erase, "r", Value::object());
    let place = "/intent/text".parse().expect("a pointer");
    store.erase(&erase, &[(2, vec![place])]).expect("a value is erased");
    records[2] = store.get(2).expect("it is read").expect("it is there");
    records.push(erase);
    let last = scribe.step("f");
    store.commit(std::slice::from_ref(&last)).expect("a group is committed");
    records.push(last);
    store.sign_checkpoint(&key()).expect("a checkpoint is signed");
    let kept = disk.files().into_iter().filter(|(path, _)| {
        !path.starts_with("/store/log") && path.file_name().is_some_and(|name| name != "lock")
    });
    (kept.collect(), records)
}

/// What reading a store gives: everything that can differ.
#[derive(Debug, PartialEq)]
struct Seen {
    size: u64,
    root: Digest,
    trouble: Option<String>,
    records: Vec<Result<Option<Record>, String>>,
    findings: Vec<String>,
    unfinished: bool,
}

fn look(store: &Embedded) -> Seen {
    let report = store.verify(&VerifyOptions::default()).expect("a disk that does not fail can be verified");
    Seen {
        size: store.tree().size,
        root: store.tree().root,
        trouble: store.trouble().map(|trouble| trouble.to_string()),
        records: (0..store.tree().size)
            .map(|position| store.get(position).map_err(|error| error.to_string()))
            .collect(),
        findings: report.findings.iter().map(ToString::to_string).collect(),
        unfinished: report.unfinished,
    }
}

/// A segment as frames without checksums: for each a letter, two bytes of length, and what it holds. `e` is a commit that
/// is right for what stands before it; `E` has the bytes that are given. `0` is that many zeros, and `#` bytes as they are.
pub fn segment(data: &[u8]) {
    static STORE: OnceLock<Vec<u8>> = OnceLock::new();
    let described = STORE.get_or_init(|| small(1 << 30).0[Path::new("/store/store.json")].clone());
    let disk = Faulty::with_files([
        (PathBuf::from("/store/store.json"), described.clone()),
        (PathBuf::from(SEGMENT), assemble(data)),
    ]);
    let before = disk.files();
    let reader = Embedded::open(Path::new(DIR), options(&disk, false)).expect("damage keeps no store closed");
    let seen = look(&reader);
    assert_eq!(look(&reader), seen, "the same is read twice");
    let again = Embedded::open(Path::new(DIR), options(&disk, false)).expect("it opens again");
    assert_eq!(look(&again), seen, "another handle reads the same");
    assert_eq!(disk.files(), before, "a reader changes nothing");
    let entries = entries(&reader);
    for (position, record) in seen.records.iter().enumerate() {
        if let Ok(record) = record {
            let record = record.as_ref().expect("the handle knows this position");
            assert_eq!(Some(&record.entry()), entries.get(position), "what is read is what is in the log");
        }
    }
    if seen.findings.is_empty() {
        assert!(seen.trouble.is_none(), "a walk sees what troubles a handle: {:?}", seen.trouble);
        assert!(seen.records.iter().all(Result::is_ok), "what verifies can be read");
    }
    let mut writer = Embedded::open(Path::new(DIR), options(&disk, true)).expect("it opens");
    assert_eq!(writer.tree(), reader.tree(), "a writer sees the same log");
    let mut scribe = Scribe::default();
    let more = scribe.begin("a-run-that-nobody-has");
    let appended = writer.commit(std::slice::from_ref(&more));
    if seen.trouble.is_some() {
        assert!(appended.is_err(), "nobody writes behind damage");
        assert!(shorter(&before, &disk.files()).is_none(), "damage is never cut");
    } else if appended.is_ok() {
        let again = Embedded::open(Path::new(DIR), options(&disk, false)).expect("it opens");
        assert_eq!(again.tree().size, seen.size + 1);
        assert_eq!(again.get(seen.size).expect("it is read"), Some(more));
        assert!(again.trouble().is_none(), "{:?}", again.trouble());
        let after = look(&again);
        assert_eq!(
            after.records[..seen.records.len()],
            seen.records[..],
            "an append changes nothing before it"
        );
        assert!(!after.unfinished, "what was unfinished is cut");
        if seen.findings.is_empty() {
            assert!(after.findings.is_empty(), "{:?}", after.findings);
        }
    }
}

fn entries(store: &Embedded) -> Vec<Vec<u8>> {
    let mut entries = Vec::new();
    let read = store.entries(0..store.tree().size, &mut |_, entry| {
        entries.push(entry.text());
        std::ops::ControlFlow::Continue(())
    });
    if read.is_err() {
        entries.clear();
        // Where entries cannot be read, each record still names its own.
        for position in 0..store.tree().size {
            entries.push(store.get(position).ok().flatten().map(|record| record.entry()).unwrap_or_default());
        }
    }
    entries
}

/// A file of the first that is shorter or gone in the second.
fn shorter<'f>(
    before: &'f BTreeMap<PathBuf, Vec<u8>>,
    after: &BTreeMap<PathBuf, Vec<u8>>,
) -> Option<&'f PathBuf> {
    let cut = |(path, content): &(&PathBuf, &Vec<u8>)| {
        after
            .get(*path)
            .is_none_or(|after| after.len() < content.len() || after[..content.len()] != content[..])
    };
    before.iter().find(cut).map(|(path, _)| path)
}

/// Writes the bytes of a segment.
fn assemble(data: &[u8]) -> Vec<u8> {
    static HEADER: OnceLock<Vec<u8>> = OnceLock::new();
    let mut out = HEADER.get_or_init(|| small(1 << 30).0[Path::new(SEGMENT)][..64].to_vec()).clone();
    let (mut peaks, mut count, mut group) = (Peaks::new(), 0u32, out.len());
    let mut rest = data;
    while let Some((&[kind, low, high], after)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes([low, high]));
        let taken = if kind == b'0' { 0 } else { length.min(after.len()) };
        let (payload, after) = after.split_at(taken);
        rest = after;
        match kind {
            b'0' => out.resize(out.len() + length.min(1500), 0),
            b'#' => out.extend_from_slice(payload),
            b'e' => {
                let mut commit = Vec::with_capacity(100);
                commit.extend_from_slice(&count.to_le_bytes());
                commit.extend_from_slice(&peaks.size().to_le_bytes());
                // Nothing is known to be on disk.
                commit.extend_from_slice(&0u64.to_le_bytes());
                commit.extend_from_slice(&((out.len() - group) as u64).to_le_bytes());
                commit.extend_from_slice(&peaks.root().0);
                // A tag is no matter of readers.
                commit.extend_from_slice(&[0; 32]);
                commit.extend_from_slice(b"dndrcmt1");
                frame(b'E', &commit, &mut out);
                (count, group) = (0, out.len());
            }
            kind => {
                frame(kind, payload, &mut out);
                if kind == b'R' {
                    count += 1;
                    peaks.push(leaf_hash(&entry_of(payload)));
                }
            }
        }
    }
    out
}

fn frame(kind: u8, payload: &[u8], out: &mut Vec<u8>) {
    let length = (payload.len() as u32).to_le_bytes();
    let crc = crc32c::crc32c_append(crc32c::crc32c_append(crc32c::crc32c(&length), &[kind]), payload);
    out.extend_from_slice(&length);
    out.extend_from_slice(&crc.to_le_bytes());
    out.push(kind);
    out.extend_from_slice(payload);
}

/// The entry of the log that a record frame stands for, read without the reader that is tested.
fn entry_of(payload: &[u8]) -> Vec<u8> {
    let read = || {
        let (id, rest) = payload.split_first_chunk::<32>()?;
        let (flags, rest) = rest.split_first()?;
        let header = parse_canonical(rest.get(32 * (flags & 7).count_ones() as usize..)?).ok()?;
        let text = |name: &str| header.get(name).and_then(Value::as_str);
        let entry = Entry {
            hash: Digest(*id),
            kind: text("kind")?.parse().ok()?,
            run: text("run").and_then(|run| run.parse().ok()),
            tick: header.get("tick").and_then(Value::as_u64),
        };
        Some(entry.text())
    };
    read().unwrap_or_default()
}

/// Takes a segment apart as [`segment`] puts it together.
pub fn frames_of(segment: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 64;
    while let Some(head) = segment.get(at..at + 9) {
        let length = u32::from_le_bytes(head[..4].try_into().expect("four bytes")) as usize;
        let payload = &segment[at + 9..at + 9 + length];
        match head[8] {
            b'E' => out.extend_from_slice(b"e\0\0"),
            kind => {
                out.push(kind);
                out.extend_from_slice(&u16::try_from(length).expect("a short frame").to_le_bytes());
                out.extend_from_slice(payload);
            }
        }
        at += 9 + length;
    }
    out
}

/// The seed of [`segment`]: a segment with everything in it.
pub fn whole_segment() -> Vec<u8> {
    frames_of(&small(1 << 30).0[Path::new(SEGMENT)])
}

/// Edits of files of a store, six bytes each: which file, what is done, where, and how much. Nothing that is read is wrong,
/// nothing that is missing is passed over in silence, and a reader changes nothing.
pub fn directory(data: &[u8]) {
    static SMALL: OnceLock<Small> = OnceLock::new();
    let (files, records) = SMALL.get_or_init(|| small(3000));
    let mut edited = files.clone();
    for edit in data.chunks_exact(6).take(8) {
        apply(&mut edited, edit);
    }
    let path = Path::new("/store/checkpoint");
    let remembers = edited.get(path) == files.get(path);
    let disk = Faulty::with_files(edited.clone());
    // Directories stay where their last file went.
    dendrer_store::disk::Disk::create_dir(&disk, Path::new("/store/segments")).expect("it is made");
    let Ok(store) = Embedded::open(Path::new(DIR), options(&disk, false)) else { return };
    let seen = look(&store);
    assert!(seen.size <= records.len() as u64, "nothing is invented");
    for (read, record) in seen.records.iter().zip(records) {
        if let Ok(read) = read {
            // Without the frame that says what was erased, a record is as it was.
            let is_it = read.as_ref().is_some_and(|read| read.id() == record.id());
            assert!(is_it, "another record is handed out");
        }
    }
    assert_eq!(disk.files(), edited, "a reader changes nothing");
    let is_silent = seen.findings.is_empty() && seen.trouble.is_none();
    if is_silent && remembers {
        assert_eq!(seen.size, records.len() as u64, "records are missing and nobody says so");
        assert!(seen.records.iter().all(Result::is_ok), "what verifies can be read");
    }
    assert!(seen.trouble.is_none() || !seen.findings.is_empty(), "a walk sees what troubles a handle");
    // Whoever may write cuts nothing where there is damage.
    let Ok(writer) = Embedded::open(Path::new(DIR), options(&disk, true)) else { return };
    if writer.trouble().is_some() {
        let now: BTreeMap<_, _> =
            disk.files().into_iter().filter(|(path, _)| !path.ends_with("lock")).collect();
        let cut = shorter(&edited, &now);
        let is_void = |path: &&PathBuf| now.get(*path).is_some_and(|now| now.len() == edited[*path].len());
        assert!(cut.is_none_or(|path| is_void(&path)), "{cut:?} was cut, and there is damage");
    }
}

fn apply(files: &mut BTreeMap<PathBuf, Vec<u8>>, edit: &[u8]) {
    let names: Vec<PathBuf> = files.keys().cloned().collect();
    let Some(name) = names.get(usize::from(edit[0]) % names.len().max(1)) else { return };
    let content = files.get_mut(name).expect("it is one of them");
    let at = usize::from(u16::from_le_bytes([edit[2], edit[3]])) % (content.len() + 1);
    let (low, high) = (edit[4], edit[5]);
    let length = usize::from(u16::from_le_bytes([low, high])) % 2048;
    let end = (at + length).min(content.len());
    match edit[1] % 8 {
        0 if at < content.len() => content[at] ^= low.max(1),
        1 => content.truncate(at),
        2 => drop(content.drain(at..end)),
        3 => drop(content.splice(at..at, std::iter::repeat_n(0, length))),
        4 => content[at..end].fill(0),
        5 => {
            // A sector of another file, or of another place in this one.
            let from = at / 512 * 512;
            let piece: Vec<u8> = content[from.min(end)..end].to_vec();
            let to = usize::from(high) * 16 % (content.len() + 1);
            content.splice(to..to, piece);
        }
        6 => content[at..end].reverse(),
        7 if low == 0xff => drop(files.remove(name)),
        _ => {}
    }
}
