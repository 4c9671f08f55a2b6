//! Where the list of messages is found, and what stands around it.

use dendrer_object::{Code, Value};
use dendrer_wire::import::{Choice, ImportError, ImportOptions, OnGap};

use crate::{chat, import};

const U: &str = r#"{"role":"user","content":"u"}"#;
const A: &str = r#"{"role":"assistant","content":"a"}"#;
const S: &str = r#"{"role":"system","content":"s"}"#;

/// Ticks, the run's metadata and what is said of the source but its digest; or the error with its places.
fn look(source: &str, options: ImportOptions) -> String {
    match import(source.as_bytes(), options) {
        Ok((plan, records)) => {
            let start = records[0].content();
            let source = start.get("inputs").unwrap().get("source").unwrap();
            let member =
                |name: &str| source.get(name).map(|value| format!(" {name} {value}")).unwrap_or_default();
            let meta = start.get("meta").map(|meta| format!(" meta {meta}")).unwrap_or_default();
            let notes: Vec<String> = plan
                .tally
                .first_notes
                .iter()
                .map(|(tick, note)| format!(" {}@{tick} {}", note.kind.as_str(), note.path))
                .collect();
            let ticks = plan.tally.ticks;
            format!("{ticks}{}{}{}{meta}{}", member("list"), member("index"), member("cut"), notes.concat())
        }
        Err(error) => {
            let place: Vec<String> =
                error.place().into_iter().map(|(name, value)| format!(" | {name} {value}")).collect();
            format!("{} {error}{}", error.code(), place.concat())
        }
    }
}

fn check(cases: &[(String, &str)]) {
    for (source, expected) in cases {
        assert_eq!(look(source, chat()), *expected, "{source}");
    }
}

#[test]
fn the_list_is_found_by_its_shape_wherever_it_stands() {
    check(&[
        (format!("[{U},{A}]"), "2"),
        (format!("\u{feff}[{U}]"), "1"),
        (format!("{U}\n{A}\n"), "2"),
        (U.to_owned(), "1"),
        (format!(r#"{{"x":1,"anything":[{U}],"y":[1,2]}}"#), r#"1 list "/anything" meta {"x":1,"y":[1,2]}"#),
        (format!(r#"{{"a/b":{{"c":[{U}],"d":2}},"e":3}}"#), r#"1 list "/a~1b/c" meta {"a/b":{"d":2},"e":3}"#),
        // The nearer one counts; what is deeper stays metadata, and is named as left out.
        (
            format!(r#"{{"deep":{{"l":[{A}]}},"l":[{U},{U}]}}"#),
            r#"2 list "/l" meta {"deep":{"l":[{"content":"a","role":"assistant"}]}} message_outside@2 /deep/l"#,
        ),
        (format!(r#"[{{"l":[{U},{A}],"id":7}},{{"no":"list"}}]"#), r#"2 list "/l" index 0 meta {"id":7}"#),
        (format!(r#"{{"$l":[{U}],"$m":1}}"#), r#"1 list "/$l" meta {"$$m":1}"#),
        (format!("[{U},null,5,{A}]"), "4 message_unreadable@2 /1 message_unreadable@3 /2"),
    ]);
}

#[test]
fn nothing_is_guessed() {
    check(&[
        (
            format!(r#"{{"a":[{U}],"b":[{U},{A},5]}}"#),
            "E0212 2 lists of messages are in it | list /a  1 of 1 items are messages\n/b  2 of 3 items are messages",
        ),
        (
            format!(r#"[{{"l":[{U}]}},{{"l":[{U},{A}]}}]"#),
            "E0212 2 runs are in it | run 0  1 messages\n1  2 messages",
        ),
        (
            format!("{{\"l\":[{U}]}}\n{{\"l\":[{A}]}}"),
            "E0212 2 runs are in it | run 0  1 messages\n1  1 messages",
        ),
        (format!("[{U}]\n[{A},{A}]"), "E0212 2 runs are in it | run 0  1 messages\n1  2 messages"),
        ("".to_owned(), "E0203 cannot tell what kind of trace this is: it holds no value"),
        ("[]".to_owned(), "E0203 cannot tell what kind of trace this is: no list of messages is in it"),
        (
            "{\"a\":[1,2]}".to_owned(),
            "E0203 cannot tell what kind of trace this is: no list of messages is in it",
        ),
        ("Dear all,".to_owned(), "E0203 cannot tell what kind of trace this is: it is not JSON"),
        (
            "[{\"role\":5,\"content\":\"x\"}]".to_owned(),
            "E0203 cannot tell what kind of trace this is: no list of messages is in it",
        ),
    ]);
}

#[test]
fn the_user_chooses() {
    let of = |index: Option<u64>, list: Option<&[&str]>| ImportOptions {
        choice: Choice {
            index,
            list: list.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
            ..Choice::default()
        },
        ..chat()
    };
    let two = format!(r#"{{"a":[{U}],"b":[{U},{A},5],"c":[]}}"#);
    assert!(look(&two, of(None, Some(&["b"]))).starts_with(r#"3 list "/b" meta {"a":"#));
    assert!(look(&two, of(None, Some(&["c"]))).starts_with(r#"0 list "/c" meta"#));
    assert_eq!(look(&two, of(None, Some(&["d"]))), "E0212 there is no list at /d");
    let runs = format!(r#"[{{"l":[{U}]}},{{"l":[{U},{A}],"m":1}}]"#);
    assert_eq!(look(&runs, of(Some(1), None)), r#"2 list "/l" index 1 meta {"m":1}"#);
    assert_eq!(
        look(&runs, of(Some(2), None)),
        "E0212 there is no run 2 in it; it holds 2 items, counted from 0"
    );
    assert_eq!(look(&format!("[{U}]\n[{A},{A}]"), of(Some(1), None)), "2 index 1");
}

#[test]
fn messages_of_the_system_in_front_belong_to_the_run() {
    check(&[
        (format!("[{S},{U},{S}]"), r#"2 meta {"system_messages":[{"content":"s","role":"system"}]}"#),
        (
            format!(r#"{{"l":[{S},{U}],"system_messages":0}}"#),
            r#"1 list "/l" meta {"system_messages":0,"system_messages_":[{"content":"s","role":"system"}]}"#,
        ),
        (format!("[{S}]"), r#"0 meta {"system_messages":[{"content":"s","role":"system"}]}"#),
    ]);
}

#[test]
fn what_is_cut_is_marked_where_it_ends() {
    check(&[
        (
            format!(r#"{{"m":1,"l":[{U},{{"role":"us"#),
            r#"2 list "/l" cut true meta {"m":1} source_cut@2 /l/1"#,
        ),
        (format!(r#"{{"m":1,"l":[{U},"#), r#"1 list "/l" cut true meta {"m":1} source_cut@1 /l"#),
        (format!(r#"{{"l":[{U}],"z":1,"y":"a"#), r#"1 list "/l" cut true meta {"z":1} source_cut@1 /l"#),
        (format!("{U}\n{A}\n{{\"role\""), "3 cut true source_cut@3 /2"),
        (format!("[{U},{A},tr"), "3 cut true source_cut@3 /2"),
        // Cut and written on: the line is damaged.
        (format!("{U}\n{{\"role\":\"us\n{A}\n"), "3 message_unreadable@2 /1"),
        (format!("[{U}] and so on"), "E0201 not JSON: expected a value | byte 32"),
        (format!("[{U},]"), "E0201 not JSON: expected a value | byte 31"),
    ]);
    let stop = ImportOptions { on_gap: OnGap::Stop, ..chat() };
    assert_eq!(look(&format!("[{U},"), stop.clone()), "E0201 the source ends inside a value | path ");
    assert_eq!(look(&format!("[{U},{{"), stop), "E0201 the source ends inside this item | path /1");
}

#[test]
fn the_door_is_that_of_any_other_intent() {
    check(&[
        (
            r#"[{"role":"user","content":1,"role":"x"}]"#.into(),
            "E0202 the name \"role\" stands twice in one object | byte 39 | path /0",
        ),
        (
            r#"[{"role":"user","content":{"a":1,"a":2}}]"#.into(),
            "E0202 the name \"a\" stands twice in one object | byte 39 | path /0/content",
        ),
        (
            r#"[{"role":"user","content":1e999}]"#.into(),
            "E0207 the number is outside the range of a double | byte 26 | path /0/content",
        ),
        (
            r#"[{"role":"user","content":[1e999]}]"#.into(),
            "E0207 the number is outside the range of a double | byte 27 | path /0/content/0",
        ),
        (format!(r#"{{"l":[{U}],"a":1,"a":2}}"#), "E0202 the name \"a\" stands twice in one object | path "),
    ]);
    let error = import(b"[{\"role\":\"user\",\"content\":\"\xff\"}]", chat()).unwrap_err();
    assert_eq!((error.code(), error.place()[0].clone()), (Code::E0206, ("byte", "27".to_owned())));
    let kept = |text: &str| {
        let (_, records) =
            import(format!(r#"[{{"role":"user","content":{text}}}]"#).as_bytes(), chat()).unwrap();
        records[1].content().get("intent").unwrap().get("content").unwrap().to_string()
    };
    assert_eq!(kept("[NaN,-Infinity]"), r#"[{"$float":"NaN"},{"$float":"-Infinity"}]"#);
    assert_eq!(kept("1208925819614629174706177"), "1208925819614629174706177");
    assert_eq!(kept(r#""\ud800""#), r#"{"$wtf8":"7aCA"}"#);
    assert_eq!(kept(r#"{"$a":1}"#), r#"{"$$a":1}"#);
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(kept(&deep(127)), deep(127), "128 with the message itself");
    assert_eq!(kept(&deep(128)), r#"{"$gap":{"path":"/0/content","reason":"value_too_deep"}}"#);
    assert_eq!(kept(&deep(100_000)), kept(&deep(128)));
}

#[test]
fn a_gap_stops_where_that_was_asked() {
    for (source, code) in [
        (format!("[{U},null]"), "E0213"),
        (r#"[{"role":"tool","tool_call_id":"x","content":""}]"#.to_owned(), "E0213"),
        (r#"[{"role":"assistant","tool_calls":[{"id":"x","function":{"name":"t"}}]}]"#.to_owned(), "E0213"),
        (format!(r#"[{{"role":"user","content":{}}}]"#, "[".repeat(200) + &"]".repeat(200)), "E0204"),
    ] {
        let error = import(source.as_bytes(), ImportOptions { on_gap: OnGap::Stop, ..chat() }).unwrap_err();
        assert!(matches!(error, ImportError::Gap(_)), "{error}");
        assert_eq!(error.code(), code, "{source}");
        assert!(import(source.as_bytes(), chat()).is_ok());
    }
    // What is only odd stops nothing.
    let odd = r#"[{"role":"assistant","tool_calls":[{"id":"x","function":{"name":"t","arguments":"no"}}]},{"role":"tool","tool_call_id":"x","content":""}]"#;
    let (plan, _) = import(odd.as_bytes(), ImportOptions { on_gap: OnGap::Stop, ..chat() }).unwrap();
    assert_eq!(plan.tally.gaps(), 0);
    assert_eq!(plan.tally.notes.len(), 1);
}

#[test]
fn the_digest_is_that_of_the_bytes() {
    let (plan, records) = import(b"[{\"role\":\"user\",\"content\":\"u\"}]", chat()).unwrap();
    let inputs = records[0].content().get("inputs").unwrap().clone();
    let source = inputs.get("source").unwrap();
    // As sha256sum prints it.
    let expected = dendrer_object::Digest::of(b"[{\"role\":\"user\",\"content\":\"u\"}]");
    assert_eq!(source.get("sha256"), Some(&Value::from(expected)));
    assert_eq!((plan.bytes, source.get("bytes")), (31, Some(&Value::from(31u64))));
    assert_eq!(records[0].content().get("stage"), Some(&Value::from(0u64)));
}

#[test]
fn many_candidates_are_counted_and_the_first_are_named() {
    let member = |n: usize| format!(r#""l{n}":[{U}]"#);
    let lists: Vec<String> = (0..14).map(member).collect();
    let said = look(&format!("{{{}}}", lists.join(",")), chat());
    assert!(said.starts_with("E0212 14 lists of messages are in it | list /l0  1 of 1"), "{said}");
    assert!(said.ends_with("/l9  1 of 1 items are messages\nand 4 more"), "{said}");
    let runs: Vec<String> = (0..30).map(|n| format!("{{{}}}", member(n))).collect();
    let said = look(&runs.join("\n"), chat());
    assert!(said.starts_with("E0212 30 runs are in it | run 0  1 messages\n1  1"), "{said}");
    assert!(said.ends_with("\n9  1 messages\nand 20 more"), "{said}");
}
