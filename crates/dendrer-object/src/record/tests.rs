use proptest::prelude::*;

use super::*;
use crate::json::parse_door;

fn header() -> Header {
    Header {
        store: StoreId([1; 16]),
        kind: Kind::Transition,
        run: Some("r".parse().unwrap()),
        tick: Some(1),
        prev: Some(Digest::of(b"prev")),
        head: None,
        type_name: Some("observation.add".parse().unwrap()),
        author: Author::Agent,
        ts: Timestamp::from_ms(1_771_867_265_000),
        links: vec![],
        pack: None,
    }
}

fn record(content: &str) -> Record {
    let content = parse_door(content.as_bytes()).unwrap();
    let fields = cut(content.as_object().unwrap());
    Record::seal(header(), Body::commit(fields, Seed([7; 16])).unwrap()).unwrap()
}

const CONTENT: &str = r#"{"agent_id":"a","intent":{"confidence":0.9,"description":"x"},"result":{},"policy":{"decision":"allow"}}"#;

#[test]
fn content_is_cut_where_the_format_says() {
    let pointers = |content: &str| {
        let record = record(content);
        record.body().fields().iter().map(|field| field.pointer.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(pointers(CONTENT), "/agent_id /intent/confidence /intent/description /policy /result");
    assert_eq!(pointers(r#"{"result":{"ünï":1}}"#), "/result");
    assert_eq!(pointers(r#"{"result":{"":1}}"#), "/result");
    assert_eq!(pointers(r#"{"result":{"a/b":1,"a~":2}}"#), "/result/a~0 /result/a~1b");
    assert_eq!(pointers(r#"{"result":NaN}"#), "/result");
    let many: Vec<String> = (0..65).map(|n| format!("\"k{n}\":{n}")).collect();
    assert_eq!(pointers(&format!("{{\"result\":{{{}}}}}", many.join(","))), "/result");
}

#[test]
fn the_id_is_the_digest_of_the_header_and_fields_are_sd_jwt_disclosures() {
    let record = record(r#"{"agent_id":"a"}"#);
    let salt = &Digest::of(&[b"dendrer/salt/v1\n", &[7; 16][..], &[0; 4]].concat()).0[..16];
    let disclosure = format!(r#"["{}","/agent_id","a"]"#, encode_base64url(salt));
    let digest = Digest::of(encode_base64url(disclosure.as_bytes()).as_bytes()).base64url();
    let expected = format!(
        r#"{{"author":"agent","fields":{{"/agent_id":"{digest}"}},"head":null,"kind":"transition","links":[],"pack":null,"prev":"{}","run":"r","store":"01010101010101010101010101010101","tick":1,"ts":"2026-02-23T17:21:05.000Z","type":"observation.add","v":1}}"#,
        Digest::of(b"prev")
    );
    assert_eq!(String::from_utf8_lossy(record.header_text()), expected);
    assert_eq!(record.id(), Digest::of(format!("dendrer/record/v1\n{expected}").as_bytes()));
    let entry = String::from_utf8(record.entry()).unwrap();
    assert_eq!(entry, format!(r#"{{"hash":"{}","kind":"transition","run":"r","tick":1}}"#, record.id()));
    assert_eq!(Entry::parse(entry.as_bytes()).unwrap().text(), entry.as_bytes());
}

#[test]
fn withholding_a_value_changes_no_id_and_takes_the_seed() {
    let whole = record(CONTENT);
    let part = whole.without(&["/intent".parse().unwrap()]);
    assert_eq!(part.id(), whole.id());
    assert_eq!(part.body().seed(), None);
    assert_eq!(part.body().value("/intent/confidence"), None);
    assert_eq!(part.body().value("/agent_id"), Some("a".into()));
    assert_eq!(part.content().to_string(), r#"{"agent_id":"a","policy":{"decision":"allow"},"result":{}}"#);

    let body = part.body();
    let parts = body.fields().iter().enumerate().map(|(index, field)| {
        let part = match body.text(field) {
            Some(text) => Part::Open(text, body.salt(index)),
            None => Part::Closed(field.digest),
        };
        (field.pointer.clone(), part)
    });
    let again = Record::seal(header(), Body::of_parts(parts.collect(), None).unwrap()).unwrap();
    assert_eq!(again.id(), whole.id(), "a record with a closed field seals to the same id");
    assert_eq!(part.without(&[]).id(), whole.id());
}

#[test]
fn headers_read_back_from_both_forms() {
    let record = record(CONTENT);
    let (again, digests) = Header::parse_with_digests(record.header_text()).unwrap();
    assert_eq!(&again, record.header());
    assert!(digests.iter().map(|d| d.1).eq(record.body().fields().iter().map(|field| field.digest)));
    let text = record.header().text_with_pointers(record.body().fields().iter().map(|field| &field.pointer));
    let (again, pointers) = Header::parse_with_pointers(&text).unwrap();
    assert_eq!(&again, record.header());
    assert!(pointers.iter().eq(record.body().fields().iter().map(|field| &field.pointer)));
    let newer = String::from_utf8_lossy(record.header_text()).replace("\"v\":1", "\"v\":2");
    assert!(Header::parse_with_digests(newer.as_bytes()).unwrap_err().to_string().contains("v is not"));
}

#[test]
fn a_header_has_the_shape_of_its_kind() {
    let body = || Body::commit(Vec::new(), Seed([0; 16])).unwrap();
    let refuse = |change: &dyn Fn(&mut Header)| {
        let mut header = header();
        change(&mut header);
        assert!(matches!(Record::seal(header.clone(), body()), Err(SealError::Shape { .. })), "{header:?}");
    };
    refuse(&|h| h.tick = Some(0));
    refuse(&|h| h.tick = None);
    refuse(&|h| h.prev = None);
    refuse(&|h| h.head = h.prev);
    refuse(&|h| h.run = None);
    refuse(&|h| h.type_name = None);
    refuse(&|h| h.tick = Some(1 << 53));
    refuse(&|h| h.kind = Kind::Run);
    refuse(&|h| h.kind = Kind::Refusal);
    refuse(&|h| h.kind = Kind::End);
    let link = |n: u8| Link { rel: Rel::Evidence, hash: Digest([n; 32]) };
    refuse(&|h| h.links = vec![link(2), link(1)]);
    refuse(&|h| h.links = vec![link(1), link(1)]);
    refuse(&|h| {
        h.links =
            (0..257u16).map(|n| Link { rel: Rel::Evidence, hash: Digest::of(&n.to_be_bytes()) }).collect()
    });
}

#[test]
fn fields_neither_repeat_nor_lie_inside_each_other() {
    let commit = |pointers: &[&str]| {
        let content: Vec<_> = pointers.iter().map(|p| (p.parse().unwrap(), Value::Null)).collect();
        Body::commit(content, Seed([0; 16])).map(|_| ())
    };
    assert_eq!(commit(&["/a", "/b"]), Ok(()));
    assert_eq!(commit(&["/a!", "/a/b", "/a/c/d", "/ab"]), Ok(()));
    for bad in [
        &["/b", "/a"][..],
        &["/a", "/a"],
        &["/a", "/a/b"],
        &["/a", "/a!", "/a/b"],
        &["/a/b", "/a/b-", "/a/b/c/d"],
        &[""],
    ] {
        assert!(matches!(commit(bad), Err(SealError::FieldOrder(_))), "{bad:?}");
    }
}

#[test]
fn a_value_over_64_mib_is_refused_with_its_place() {
    let content = vec![("/result/output".parse().unwrap(), Value::from("x".repeat(VALUE_SIZE_MAX)))];
    let error = Body::commit(content, Seed([0; 16])).unwrap_err();
    assert_eq!(error.code(), "E0205");
    assert!(error.to_string().starts_with("the value at /result/output has 67108866 bytes"), "{error}");
}

proptest! {
    #[test]
    fn content_survives_cutting(
        content in prop::collection::btree_map(
            "[a-z/~]{0,4}|intent|result|state|action",
            prop::collection::btree_map("[a-zé\"$/~]{0,3}", any::<i32>(), 0..5),
            0..8,
        ),
    ) {
        let value = Value::record(content.into_iter().map(|(name, members)| {
            (name, Value::record(members.into_iter().map(|(k, v)| (crate::tag::stored_name(&k), Value::from(i64::from(v))))))
        }));
        let fields = cut(value.as_object().unwrap());
        let record = Record::seal(header(), Body::commit(fields, Seed([3; 16])).unwrap()).unwrap();
        prop_assert_eq!(record.content(), value);
    }
}

#[test]
fn content_is_put_together_at_every_depth() {
    let texts = ["/a/b/c", "/a/b/d", "/a/e", "/a!", "/f", "/g/~1~0/h/i", "/g/~1~0/h/j", "/g/~1~0/k"];
    let mut fields: Vec<(Pointer, Value)> =
        texts.iter().zip(0i64..).map(|(text, n)| (text.parse().unwrap(), Value::from(n))).collect();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    let record = Record::seal(header(), Body::commit(fields, Seed([3; 16])).unwrap()).unwrap();
    let expected = r#"{"a":{"b":{"c":0,"d":1},"e":2},"a!":3,"f":4,"g":{"/~":{"h":{"i":5,"j":6},"k":7}}}"#;
    assert_eq!(record.content().to_string(), expected);
}
