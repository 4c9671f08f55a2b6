use proptest::prelude::*;

use super::*;
use crate::Code;

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<u64>().prop_map(|bits| Value::from(f64::from_bits(bits))),
        ".{0,12}".prop_map(Value::from),
        prop::collection::vec(any::<u16>(), 0..4).prop_map(|units| tag::wtf8(&units)),
        prop::collection::vec(any::<u8>(), 0..9).prop_map(|bytes| tag::bytes(&bytes)),
    ];
    leaf.prop_recursive(5, 60, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::array),
            prop::collection::btree_map("[^$].{0,5}|", inner, 0..6).prop_map(Value::record),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_written_reads_back(value in any_value()) {
        let text = to_vec(&value);
        prop_assert_eq!(&parse_canonical(&text).unwrap(), &value);
        prop_assert_eq!(check_canonical(&text), Ok(()));
        prop_assert_eq!(to_vec(&parse_tagged(&text).unwrap()), text);
    }

    #[test]
    fn what_reads_as_canonical_is_what_would_be_written(
        value in any_value(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..3),
    ) {
        let mut text = to_vec(&value);
        for (at, byte) in edits {
            let at = at.index(text.len());
            text[at] = byte;
        }
        let read = parse_canonical(&text);
        prop_assert_eq!(check_canonical(&text), read.as_ref().map(|_| ()).map_err(Clone::clone));
        if let Ok(value) = read {
            prop_assert_eq!(to_vec(&value), text);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(text in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = parse_door(&text);
        let _ = parse_tagged(&text);
        if let Ok(value) = parse_canonical(&text) {
            prop_assert_eq!(to_vec(&value), text);
        }
    }

    #[test]
    fn what_the_door_accepts_is_canonical_once_written(text in "[\\[\\]{}\",:0-9eE.+\\-$a-fntu\\\\ DC]{0,40}") {
        if let Ok(value) = parse_door(text.as_bytes()) {
            let canonical = to_vec(&value);
            prop_assert_eq!(parse_canonical(&canonical).map(|v| to_vec(&v)), Ok(canonical));
        }
    }
}

fn door(text: &str) -> String {
    match parse_door(text.as_bytes()) {
        Ok(value) => to_string(&value),
        Err(error) => format!("{} {error}", error.code()),
    }
}

#[test]
fn the_door_keeps_what_json_cannot_hold() {
    for (input, expected) in [
        ("NaN", r#"{"$float":"NaN"}"#),
        ("[Infinity,-Infinity]", r#"[{"$float":"Infinity"},{"$float":"-Infinity"}]"#),
        (r#""\ud800""#, r#"{"$wtf8":"7aCA"}"#),
        (r#""a\udfffb""#, r#"{"$wtf8":"Ye2_v2I"}"#),
        (r#""\ud83d\ude02""#, "\"\u{1f602}\""),
        (r#"{"\ud800":1,"a":2}"#, r#"{"$object":[["a",2],[{"$wtf8":"7aCA"},1]]}"#),
        (r#"{"$bytes":"x","$":1,"$$a":2}"#, r#"{"$$":1,"$$$a":2,"$$bytes":"x"}"#),
        ("1208925819614629174706177", "1208925819614629174706177"),
        (" { \"b\" : 1.0 , \"a\" : [ ] } ", r#"{"a":[],"b":1}"#),
    ] {
        assert_eq!(door(input), expected, "{input}");
    }
}

#[test]
fn the_door_says_what_is_wrong_and_where() {
    for (input, expected) in [
        ("", "E0201 not JSON: expected a value at byte 0"),
        ("{\"a\":[1,tru]}", "E0201 not JSON: expected a value at byte 8, in /a/1"),
        ("[1,]", "E0201 not JSON: expected a value at byte 3, in /1"),
        ("{\"a\":1,\"a\":2}", "E0202 the name \"a\" stands twice in one object at byte 13"),
        (
            "{\"x/y\":{\"a\":1e999}}",
            "E0207 the number is outside the range of a double at byte 12, in /x~1y/a",
        ),
        ("1 2", "E0201 not JSON: expected the end of the text at byte 2"),
        ("\"a\nb\"", "E0201 not JSON: expected the end of the string at byte 2"),
        ("[01]", "E0201 not JSON: expected a number at byte 1, in /0"),
    ] {
        assert_eq!(door(input), expected, "{input}");
    }
    assert_eq!(parse_door(b"\"\xff\"").unwrap_err().code(), "E0206");
}

#[test]
fn nesting_ends_at_128_levels() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(parse_door(nested(128).as_bytes()).is_ok());
    let error = parse_door(nested(129).as_bytes()).unwrap_err();
    assert_eq!((error.code(), error.offset), (Code::E0204, 128));
    assert_eq!(parse_door(nested(5000).as_bytes()).unwrap_err().code(), "E0204");
    assert_eq!(parse_door("{\"a\":".repeat(5000).as_bytes()).unwrap_err().code(), "E0204");
}

#[test]
fn only_tags_of_the_format_are_tags() {
    for good in
        [r#"{"$float":"NaN"}"#, r#"{"$bytes":""}"#, r#"{"$$anything":1,"a":2}"#, r#"{"$gap":{"reason":"x"}}"#]
    {
        assert_eq!(parse_canonical(good.as_bytes()).map(|v| to_string(&v)), Ok(good.to_owned()));
    }
    for bad in [
        r#"{"$float":"nan"}"#,
        r#"{"$bytes":"YR"}"#,
        r#"{"$bytes":"YQ=="}"#,
        r#"{"$wtf8":"YQ"}"#,
        r#"{"$float":"NaN","a":1}"#,
        r##"{"#":1,"$float":"NaN"}"##,
        r#"{"$other":1}"#,
        r#"{"$":1}"#,
        r#"{"$object":[]}"#,
        r#"{"$object":[["a",1]]}"#,
        r#"{"$object":[[{"$wtf8":"7aCA"},1],["a",1]]}"#,
    ] {
        assert_eq!(parse_canonical(bad.as_bytes()).unwrap_err().code(), "E0208", "{bad}");
        assert_eq!(check_canonical(bad.as_bytes()).unwrap_err().code(), "E0208", "{bad}");
        assert_eq!(parse_tagged(bad.as_bytes()).unwrap_err().code(), "E0208", "{bad}");
    }
}

#[test]
fn other_spellings_are_not_canonical() {
    for text in [
        "1.0",
        "-0",
        "1e2",
        "1E400",
        "01",
        " 1",
        "1 ",
        "\"\\/\"",
        "\"\\u0041\"",
        "\"\\u000A\"",
        "\"\\u001F\"",
        "{\"b\":1,\"a\":2}",
        "[1, 2]",
        "\"\\ud800\"",
        "NaN",
    ] {
        assert!(parse_canonical(text.as_bytes()).is_err(), "{text}");
        assert!(check_canonical(text.as_bytes()).is_err(), "{text}");
    }
    assert_eq!(parse_canonical(b"{\"a\":1,\"a\":2}").unwrap_err().code(), "E0202");
}

#[test]
fn a_special_byte_is_found_wherever_it_stands() {
    let special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    for length in (0..40).chain([63, 64, 65, 71, 72, 130]) {
        for at in 0..length {
            for byte in 0..=255 {
                for filling in [b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xff] {
                    let mut bytes = vec![filling; length];
                    bytes[at] = byte;
                    let expected = bytes.iter().position(special).unwrap_or(length);
                    assert_eq!(super::plain_prefix(&bytes), expected, "{byte:#x} at {at} of {length}");
                    // Bytes after it change nothing.
                    bytes[at + 1..].iter_mut().zip([0, b'"', 0x80, b'\\', 0x1f]).for_each(|(b, n)| *b = n);
                    let expected = bytes.iter().position(special).unwrap_or(length);
                    assert_eq!(super::plain_prefix(&bytes), expected, "{byte:#x} at {at} of {length}");
                }
            }
        }
    }
}
