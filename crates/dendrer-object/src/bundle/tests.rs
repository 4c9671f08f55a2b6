use super::*;
use crate::Code;
use crate::json::parse_door;
use crate::merkle::{cover, from_leaves, leaf_hash};
use crate::name::TypeName;
use crate::note::SigningKey;
use crate::record::{Author, Body, Kind, cut};
use crate::time::Timestamp;

const STORE: StoreId = StoreId([9; 16]);

fn key() -> SigningKey {
    SigningKey::from_seed(&STORE.origin(), [3; 32]).unwrap()
}

fn record(tick: u64, prev: Option<Digest>, content: &str) -> Record {
    let content = parse_door(content.as_bytes()).unwrap();
    let header = Header {
        store: STORE,
        kind: if tick == 0 { Kind::Run } else { Kind::Transition },
        run: Some("r".parse().unwrap()),
        tick: Some(tick),
        prev,
        head: None,
        type_name: (tick > 0).then(|| "plan.update".parse::<TypeName>().unwrap()),
        author: Author::Agent,
        ts: Timestamp::from_ms(tick),
        links: vec![],
        pack: None,
    };
    let fields = cut(content.as_object().unwrap());
    Record::seal(header, Body::commit(fields, Seed([tick as u8; 16])).unwrap()).unwrap()
}

/// A log of eight records, of which the bundle leaves some out.
fn bundle(keep: &[u64], withhold: &[&str]) -> Bundle {
    let mut records: Vec<Record> = Vec::new();
    for tick in 0..8 {
        let long = "lorem ipsum ".repeat(200 * usize::from(tick >= 6));
        let content = format!(r#"{{"result":{{"n":{tick},"text":"{long}"}},"agent_id":"a"}}"#);
        let prev = records.last().map(Record::id);
        records.push(record(tick, prev, &content));
    }
    let leaves: Vec<Digest> = records.iter().map(|record| leaf_hash(&record.entry())).collect();
    let node = from_leaves(&leaves);
    let mut log = Vec::new();
    let mut at = 0u64;
    while at < 8 {
        if keep.contains(&at) {
            log.push(LogItem::Entry(Entry::parse(&records[at as usize].entry()).unwrap()));
            at += 1;
            continue;
        }
        let end = (at..8).find(|next| keep.contains(next)).unwrap_or(8);
        let hashes = cover(at..end).map(|subtree| node(subtree).unwrap()).collect();
        log.push(LogItem::Omitted { count: end - at, hashes });
        at = end;
    }
    let withheld: Vec<Pointer> = withhold.iter().map(|pointer| pointer.parse().unwrap()).collect();
    let sealed = keep.iter().map(|at| &records[*at as usize]).map(|record| {
        if withheld.is_empty() { Sealed::of(record) } else { Sealed::of(&record.without(&withheld)) }
    });
    let root = crate::merkle::tree_root(8, &node).unwrap();
    let note = Checkpoint::new(&STORE.origin(), 8, root).unwrap().sign(&key()).unwrap();
    Bundle {
        store: STORE,
        key: key().verifier_key().to_string(),
        runs: vec!["r".parse().unwrap()],
        although: Vec::new(),
        size: 8,
        log,
        records: sealed.collect(),
        map: None,
        checkpoint: note.to_string(),
    }
}

fn split(text: &[u8]) -> Vec<usize> {
    (0..text.len()).step_by(600).collect()
}

fn root_of_all() -> Digest {
    bundle(&[0, 1, 2, 3, 4, 5, 6, 7], &[]).root().unwrap()
}

#[test]
fn a_bundle_reads_back_and_its_records_open() {
    for keep in [&[0, 1, 2, 3, 4, 5, 6, 7][..], &[0, 1, 6, 7], &[3], &[]] {
        for withhold in [&[][..], &["/result/n"], &["/result"]] {
            let text = bundle(keep, withhold).write(&split);
            let read = Bundle::parse(&text).unwrap();
            assert_eq!(read.write(&split), text);
            assert_eq!(read.root(), Some(root_of_all()), "left out entries are bound by their subtrees");
            for ((position, entry), sealed) in read.positions().zip(&read.records) {
                let opened = sealed.open(entry, STORE).unwrap();
                assert_eq!(opened.header().tick, Some(position));
                let withheld = withhold.contains(&"/result/n") || withhold.contains(&"/result");
                assert_eq!(opened.body().value("/result/n").is_none(), withheld);
            }
        }
    }
}

#[test]
fn equal_pieces_are_written_once() {
    let text = String::from_utf8(bundle(&[6, 7], &[]).write(&split)).unwrap();
    assert!(text.len() < 2 * 2400, "two records share their long text: {}", text.len());
}

/// Every change of one byte is refused by the reader, or shown by a record, an entry or the root.
#[test]
fn no_byte_can_change_unseen() {
    let good = bundle(&[0, 1, 6, 7], &[]);
    let text = good.write(&split);
    let checkpoint = text.windows(14).position(|window| window == b"{\"checkpoint\":").unwrap();
    for at in 0..checkpoint {
        for change in [1u8, 0x10, 0x20, 0x80] {
            let mut edited = text.clone();
            edited[at] ^= change;
            let Ok(read) = Bundle::parse(&edited) else { continue };
            let same_head =
                (read.store, &read.key, &read.runs, read.size) == (good.store, &good.key, &good.runs, 8);
            let opens = read
                .positions()
                .zip(&read.records)
                .all(|((_, entry), sealed)| sealed.open(entry, STORE).is_ok());
            assert!(
                !same_head || !opens || read.root() != Some(root_of_all()),
                "byte {at} changed unseen: {}",
                String::from_utf8_lossy(&edited[at.saturating_sub(30)..(at + 30).min(edited.len())])
            );
        }
    }
}

/// A record whose values are all here has its seed. Its salts, which give the same digests, would be a second spelling.
#[test]
fn salts_in_place_of_a_seed_are_a_second_spelling() {
    let mut two = bundle(&[0, 7], &[]);
    let whole = Bundle::parse(&two.write(&split)).unwrap();
    for record in &mut two.records {
        let salts = record.seed.take().unwrap().salts(record.fields.len());
        record.fields.iter_mut().zip(salts).for_each(|(field, salt)| field.salt = Some(salt));
    }
    for ((_, entry), (seed, salts)) in whole.positions().zip(whole.records.iter().zip(&two.records)) {
        let opened = [seed, salts].map(|sealed| sealed.open(entry, STORE).unwrap().id());
        assert_eq!(opened[0], opened[1], "both are the record");
    }
    let error = Bundle::parse(&two.write(&split)).unwrap_err();
    assert_eq!((error.line, error.code()), (5, Code::E0306), "{error}");
    assert!(error.why.contains("the seed is due"), "{error}");
    // Of a record without one value, the salts of the others are the one spelling.
    for record in &mut two.records {
        let field = &mut record.fields[0];
        (field.salt, field.text) = (None, None);
    }
    let text = two.write(&split);
    assert_eq!(Bundle::parse(&text).unwrap().write(&split), text);
}

/// The form of a line is judged before any signature is.
#[test]
fn a_checkpoint_that_is_none_is_no_bundle() {
    let good = bundle(&[0, 7], &[]);
    let text = String::from_utf8(good.write(&split)).unwrap();
    let size = good.checkpoint.replacen("\n8\n", "\n08\n", 1);
    let unsigned = good.checkpoint.split_once("\n\n").unwrap().0.to_owned() + "\n\n";
    for note in ["", "note\n", "{}", &size, &unsigned] {
        let edited = Bundle { checkpoint: note.to_owned(), ..good.clone() };
        let error = Bundle::parse(&edited.write(&split)).unwrap_err();
        assert_eq!((error.line, error.code()), (text.lines().count(), Code::E0306), "{error}");
        assert!(error.why.starts_with("not a checkpoint: "), "{error}");
    }
    let edited = Bundle { key: "key".to_owned(), ..good };
    assert_eq!(Bundle::parse(&edited.write(&split)).unwrap_err().code(), Code::E0306);
}

#[test]
fn cut_and_extended_files_are_refused() {
    let text = bundle(&[0, 7], &[]).write(&split);
    for length in 0..text.len() {
        assert!(Bundle::parse(&text[..length]).is_err(), "cut at {length}");
    }
    assert!(Bundle::parse(&[&text[..], b"\n"].concat()).is_err());
    assert!(Bundle::parse(&[&text[..], b"{}\n"].concat()).is_err());
}

#[test]
fn a_newer_bundle_is_named_as_such() {
    let text = String::from_utf8(bundle(&[0], &[]).write(&split)).unwrap();
    let error = Bundle::parse(text.replacen("\"bundle\":1", "\"bundle\":2", 1).as_bytes()).unwrap_err();
    assert_eq!(error.code(), "E0803");
}

/// No digest covers which runs a bundle names, so any number of names could stand there.
#[test]
fn the_runs_of_a_header_are_few_and_each_stands_there_once() {
    let text = String::from_utf8(bundle(&[0, 7], &[]).write(&split)).unwrap();
    let named = |names: &str| {
        let edited = text.replacen(r#""runs":["r"]"#, &format!(r#""runs":[{names}]"#), 1);
        Bundle::parse(edited.as_bytes()).map(|bundle| bundle.runs.len()).map_err(|error| error.code())
    };
    assert_eq!(named(r#""r""#), Ok(1));
    assert_eq!(named(r#""q","r""#), Ok(2));
    assert_eq!(named(r#""r","r""#), Err(Code::E0306));
    assert_eq!(named(r#""p","q","r""#), Err(Code::E0306));
}

#[test]
fn faults_name_what_does_not_fit() {
    let text = String::from_utf8(bundle(&[0, 1], &[]).write(&split)).unwrap();
    let fault = |from: &str, to: &str| {
        let edited = text.replacen(from, to, 1);
        assert_ne!(edited, text);
        let read = Bundle::parse(edited.as_bytes()).unwrap();
        let mut faults =
            read.positions().zip(&read.records).filter_map(|((_, e), sealed)| sealed.open(e, STORE).err());
        faults.next().unwrap()
    };
    assert!(matches!(fault("\"/result/n\":1", "\"/result/n\":2"), RecordFault::Value { .. }));
    assert!(matches!(fault("\"author\":\"agent\"", "\"author\":\"runtime\""), RecordFault::Header { .. }));
    assert!(matches!(
        fault("\"kind\":\"run\",\"run\":\"r\",\"tick\":0", "\"kind\":\"run\",\"run\":\"x\",\"tick\":0"),
        RecordFault::Entry
    ));
}

/// Whatever a name leads to, no more is asked for than a line may have.
#[test]
fn a_line_without_an_end_is_refused() {
    let mut asked = 0;
    let read = Bundle::read(&mut |line, most| {
        asked += 1;
        line.resize(most + 1, b' ');
        Ok::<_, BundleError>(())
    });
    assert_eq!((read.unwrap_err().line, asked), (1, 1));
}

/// A value may name the same piece many times over: what it would be is known before it is made.
#[test]
fn a_short_line_does_not_ask_for_much() {
    let text = String::from_utf8(bundle(&[6], &[]).write(&|_| Vec::new())).unwrap();
    let large = r#""/result/text":[0]"#;
    assert!(text.contains(large), "{text}");
    let many = format!(r#""/result/text":[{}0]"#, "0,".repeat((64 << 20) / 2000));
    let error = Bundle::parse(text.replace(large, &many).as_bytes()).unwrap_err();
    assert!(error.why.contains("has more than 67108864 bytes"), "{error}");
}

/// So may many values of one record, each of which is as large as a value may be.
#[test]
fn the_values_of_one_record_do_not_ask_for_much_together() {
    let text = String::from_utf8(bundle(&[6], &[]).write(&|_| Vec::new())).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.contains(r#""chunked""#)).unwrap();
    let size: usize = (200 * "lorem ipsum ".len()) + 2;
    let each = format!("[{}0]", "0,".repeat((60 << 20) / size));
    // A value of so many pieces is no JSON, which would be found in the first of them.
    let parsed = |count: usize| {
        let digest = lines[at].split_once(r#""/result/text":""#).unwrap().1.split_once('"').unwrap().0;
        let names = || (0..count).map(|n| format!("/result/text/{n:02}"));
        let fields: Vec<String> = names().map(|name| format!(r#""{name}":"{digest}""#)).collect();
        let chunked: Vec<String> = names().map(|name| format!(r#""{name}":{each}"#)).collect();
        let line = lines[at]
            .replace(&format!(r#""/result/text":"{digest}""#), &fields.join(","))
            .replace(r#""/result/text":[0]"#, &chunked.join(","));
        let mut lines = lines.clone();
        lines[at] = &line;
        Bundle::parse((lines.join("\n") + "\n").as_bytes()).unwrap_err()
    };
    let error = parsed(9);
    assert_eq!((error.line, error.code()), (at + 1, Code::E0306), "{error}");
    assert!(
        error.why.contains("the values of the record have more than 536870912 bytes together"),
        "{error}"
    );
    let error = parsed(8);
    assert!(error.why.starts_with("/result/text/00: "), "{error}");
}
