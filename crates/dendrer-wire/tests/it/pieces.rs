//! Properties: nothing of a message is lost, and no bytes make the importer stop.

use std::io::{self, Cursor, Read, Seek, SeekFrom};

use dendrer::kernel::step::Start;
use dendrer_object::Value;
use dendrer_object::json::parse_door;
use dendrer_wire::ImportError;
use proptest::prelude::*;

use crate::{chat, import, shown};

/// Members of messages: those that mean something, with values that fit and values that do not.
fn member() -> impl Strategy<Value = (String, String)> {
    let name = prop_oneof![
        Just("role"),
        Just("content"),
        Just("name"),
        Just("tool_calls"),
        Just("function_call"),
        Just("tool_call"),
        Just("tool_call_id"),
        Just("error"),
        Just("is_error"),
        Just("time"),
        Just("$odd"),
    ];
    let value = prop_oneof![
        Just("null"),
        Just("\"user\""),
        Just("\"tool\""),
        Just("\"assistant\""),
        Just("\"c1\""),
        Just("[]"),
        Just("[7,null]"),
        Just("true"),
        Just("5.5"),
        Just(r#"{"id":"c1","function":{"name":"t","arguments":"{}"}}"#),
        Just(
            r#"[{"id":"c1","type":"function","function":{"name":"t","arguments":"x","more":1}},{"name":"u"}]"#
        ),
        Just(r#"{"function":"t","args":{"a":[1]},"id":"c1","extra":2}"#),
    ];
    (name, value).prop_map(|(name, value)| (name.to_owned(), value.to_owned()))
}

fn message() -> impl Strategy<Value = String> {
    proptest::collection::btree_map(
        member().prop_map(|(name, _)| name),
        member().prop_map(|(_, value)| value),
        0..7,
    )
    .prop_map(|members| {
        let members: Vec<String> = members.iter().map(|(name, value)| format!("{name:?}:{value}")).collect();
        format!("{{{}}}", members.join(","))
    })
}

/// Every scalar in a value, texts that are JSON taken apart, in order of text.
fn scalars(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| scalars(item, found)),
        Value::Object(object) => object.iter().for_each(|(_, member)| scalars(member, found)),
        Value::String(text) => match parse_door(text.as_bytes()) {
            Ok(inner) if matches!(inner, Value::Object(_) | Value::Array(_)) => scalars(&inner, found),
            _ => found.push(value.to_string()),
        },
        other => found.push(other.to_string()),
    }
}

/// Hands out one byte at a time, so that nothing lies in memory as a whole.
struct Drip<'a>(Cursor<&'a [u8]>);

impl Read for Drip<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = buffer.len().min(1);
        self.0.read(&mut buffer[..size])
    }
}

impl Seek for Drip<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

/// Any JSON, and with it what is none.
fn odd() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("7".to_owned()),
        Just("tru".to_owned()),
        // A number beyond the doubles is for the door to refuse, if it ends where a number ends.
        Just("1e999".to_owned()),
        Just("1e999{}".to_owned()),
        Just("7\"x\"".to_owned()),
        Just("NaN".to_owned()),
        Just("\"\\\"]\\\\\"".to_owned()),
        Just("\"\\ud800\"".to_owned()),
        Just("\"a\nb\"".to_owned()),
        Just(" ".to_owned()),
        Just(r#"{"role":"user","content":"x"}"#.to_owned()),
        message(),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let list = proptest::collection::vec(inner, 0..4);
        (list, 0..5usize, prop_oneof![Just(","), Just(" ,\n"), Just(" ")]).prop_map(
            |(items, kind, between)| {
                let text = items.join(between);
                match kind {
                    0 => format!("[{text}]"),
                    1 => format!("{{\"role\" : {text}, \"content\":1}}"),
                    2 => format!("{{\"role\":\"user\",\"content\": [{text}]}}"),
                    3 => format!("{{\"role\":\"user\",\"content\":{text}}}"),
                    _ => format!("{{\"a\":{text}}}"),
                }
            },
        )
    })
}

/// A source that is another one the second time it is read.
struct Turning {
    sources: [Vec<u8>; 2],
    read: Cursor<Vec<u8>>,
    rewinds: usize,
}

impl Read for Turning {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.read.read(buffer)
    }
}

impl Seek for Turning {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.read = Cursor::new(self.sources[self.rewinds.min(1)].clone());
        self.rewinds += 1;
        self.read.seek(to)
    }
}

#[test]
fn a_source_that_changes_between_the_passes_is_not_planned() {
    let before = r#"[{"role":"user","content":"x"},{"role":"user","content":"y"}]"#;
    for after in [
        // One letter.
        r#"[{"role":"user","content":"x"},{"role":"user","content":"z"}]"#,
        // Items of other sizes at the same places.
        r#"[{"role":"user","content":1}  ,{"role":"user","content":"y"}]"#,
        r#"[{"role":"user"},"content",1,77,{"role":"user","content":"y"}]"#,
        // What ends elsewhere.
        r#"[{"role":"user","content":"x"},{"role":"user","content":"y"}] "#,
        "[]",
        "",
    ] {
        let (read, rewinds) = (Cursor::default(), 0);
        let sources = [before, after].map(|text| text.as_bytes().to_vec());
        let start = Start::new("r".parse().unwrap());
        let found = dendrer_wire::import::plan(&mut Turning { sources, read, rewinds }, chat(), start);
        assert!(
            matches!(found, Err(ImportError::Changed | ImportError::Syntax { .. })),
            "{after}: {found:?}"
        );
    }
}

#[test]
fn a_call_that_a_result_repeats_is_kept_where_its_id_is_another() {
    let call = r#""tool_call":{"id":"c1","function":{"name":"t","arguments":"{}"}}"#;
    for (own, kept) in [(r#""tool_call_id":[],"#, true), (r#""tool_call_id":"c2","#, true), ("", false)] {
        let source = format!(r#"[{{"role":"user","content":"x"}},{{"role":"tool",{own}{call}}}]"#);
        let (_, records) = import(source.as_bytes(), chat()).unwrap();
        let shown = shown(&records, 2);
        assert_eq!(
            shown.get("intent").is_some_and(|words| words.to_string().contains("tool_call\":")),
            kept,
            "{shown}"
        );
        assert!(shown.to_string().contains("c1"), "{shown}");
    }
}

proptest! {
    #[test]
    fn what_lies_in_memory_is_read_as_what_comes_in_drops(
        items in proptest::collection::vec(odd(), 1..5), fine in 0..5usize, kind in 0..4usize)
    {
        let padding = vec![r#"{"role":"user","content":"x"}"#.to_owned(); fine];
        let all = [padding, items].concat();
        let source = match kind {
            0 => all.join("\n"),
            1 => format!("{{\"m\":1,\"l\":[{}],\"z\":true}}", all.join(",")),
            2 => format!("[{{\"l\":[{}]}}]", all.join(",")),
            _ => format!("[{}]", all.join(", ")),
        };
        let start = || Start::new("r".parse().unwrap());
        let whole = dendrer_wire::import::plan(&mut Cursor::new(source.as_bytes()), chat(), start());
        let drops = dendrer_wire::import::plan(&mut Drip(Cursor::new(source.as_bytes())), chat(), start());
        prop_assert_eq!(format!("{whole:?}"), format!("{drops:?}"), "{}", source);
    }

    #[test]
    fn every_scalar_of_a_message_is_in_its_transition(messages in proptest::collection::vec(message(), 1..6)) {
        // A message in front and behind, so that the list is one.
        let fine = r#"{"role":"user","content":"x"}"#;
        let padding = vec![fine.to_owned(); messages.len()];
        let source = format!("[{}]", [padding.clone(), messages.clone()].concat().join(","));
        let (_, records) = import(source.as_bytes(), chat()).unwrap();
        prop_assert_eq!(records.len(), 1 + 2 * messages.len());
        for (at, message) in messages.iter().enumerate() {
            let shown = shown(&records, 1 + messages.len() + at);
            let (mut before, mut after) = (Vec::new(), Vec::new());
            scalars(&parse_door(message.as_bytes()).unwrap(), &mut before);
            scalars(&shown, &mut after);
            // What says nothing, and the word that every call of a function has.
            before.retain(|text| text != "null" && text != "\"function\"");
            for scalar in before {
                prop_assert!(after.contains(&scalar), "{} of {} in {}", scalar, message, shown);
            }
        }
    }

    #[test]
    fn a_source_cut_anywhere_is_marked_or_refused(messages in proptest::collection::vec(message(), 1..4), at in any::<prop::sample::Index>()) {
        let fine = r#"{"role":"user","content":"x"}"#;
        let padding = vec![fine.to_owned(); messages.len()];
        let source = format!("{{\"m\":1,\"l\":[{}],\"z\":true}}", [padding, messages].concat().join(","));
        let cut = &source.as_bytes()[..at.index(source.len())];
        if let Ok((plan, records)) = import(cut, chat()) {
            prop_assert!(plan.tally.gaps() > 0, "{}", String::from_utf8_lossy(cut));
            prop_assert_eq!(records[0].content().get("inputs").and_then(|inputs| inputs.get("source")?.get("cut")).cloned(), Some(Value::from(true)));
        }
    }

    #[test]
    fn no_bytes_make_it_stop(data in proptest::collection::vec(any::<u8>(), 0..200)) {
        let start = Start::new("r".parse().unwrap());
        let _ = dendrer_wire::import::plan(&mut Cursor::new(&data[..]), chat(), start);
    }
}
