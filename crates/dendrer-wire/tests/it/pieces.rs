//! Properties: nothing of a message is lost, and no bytes make the importer stop.

use std::io::Cursor;

use dendrer::kernel::step::Start;
use dendrer_object::Value;
use dendrer_object::json::parse_door;
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

proptest! {
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
