//! Bad input is normal input: the same values with the same outcome through the program and the library.

use dendrer_object::{Intent, Value, json, tag};

use crate::support::Place;

/// Commits one value as `result.output` and returns what is on record, or the code.
fn through_the_program(place: &Place, text: &[u8], tagged: bool) -> Result<Value, (i32, String)> {
    let line = [br#"{"type":"action.result","author":"runtime","result":{"output":"#, text, b"}}"].concat();
    let args = ["commit", "--run", "r", "--json", "--tagged"];
    let ran = place.run_with(if tagged { &args } else { &args[..4] }, &line);
    let answer = crate::support::parse(&ran.stdout);
    if ran.code != 0 {
        return Err((ran.code, answer.get("code").unwrap().as_str().unwrap().to_owned()));
    }
    let shown = place.json(&["show", "r@tip"]).1;
    Ok(shown.get("content").unwrap().get("result").unwrap().get("output").unwrap().clone())
}

/// The same through the library's door.
fn through_the_library(text: &[u8], tagged: bool) -> Result<Value, String> {
    let line = [br#"{"type":"action.result","author":"runtime","result":{"output":"#, text, b"}}"].concat();
    let parsed = if tagged { json::parse_tagged(&line) } else { json::parse_door(&line) };
    let value = parsed.map_err(|error| error.code().to_string())?;
    let intent = Intent::from_value(&value, None).map_err(|error| error.code.to_string())?;
    Ok(intent.member("result").unwrap().get("output").unwrap().clone())
}

#[test]
fn odd_values_are_kept_with_their_type() {
    let place = Place::with_store();
    for (input, tagged, stored) in [
        ("NaN", false, r#"{"$float":"NaN"}"#),
        ("[Infinity,-Infinity]", false, r#"[{"$float":"Infinity"},{"$float":"-Infinity"}]"#),
        ("1208925819614629174706177", false, "1208925819614629174706177"),
        ("-9007199254740993", false, "-9007199254740993"),
        (r#""\ud800 alone""#, false, r#"{"$wtf8":"7aCAIGFsb25l"}"#),
        (r#"{"\udfff":1}"#, false, r#"{"$object":[[{"$wtf8":"7b-_"},1]]}"#),
        (r#"{"$bytes":"aGk","$":1,"$$x":2}"#, false, r#"{"$$":1,"$$$x":2,"$$bytes":"aGk"}"#),
        (r#"{"$bytes":"aGk"}"#, true, r#"{"$bytes":"aGk"}"#),
        (
            r#"{"__proto__":{"a":1},"constructor":null,"a\u0000b":"\u0000"}"#,
            false,
            r#"{"__proto__":{"a":1},"a\u0000b":"\u0000","constructor":null}"#,
        ),
        ("-0.0", false, "0"),
    ] {
        let expected = json::parse_tagged(stored.as_bytes()).unwrap();
        assert_eq!(through_the_program(&place, input.as_bytes(), tagged), Ok(expected.clone()), "{input}");
        assert_eq!(through_the_library(input.as_bytes(), tagged), Ok(expected), "{input}");
    }
    assert_eq!(tag::as_bytes(&json::parse_tagged(br#"{"$bytes":"aGk"}"#).unwrap()), Some(b"hi".to_vec()));
    assert_eq!(place.run(&["verify", "--all", "--replay"]).code, 0);
}

#[test]
fn what_is_not_accepted_has_one_code_everywhere() {
    let place = Place::with_store();
    let deep = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    for (input, tagged, code) in [
        (deep.as_bytes(), false, "E0204"),
        (b"{\"a\":1,\"a\":2}", false, "E0202"),
        (b"1e400", false, "E0207"),
        (b"\"\xff\"", false, "E0206"),
        (b"{\"$bytes\":\"?\"}", true, "E0208"),
        (b"{\"$nope\":1}", true, "E0208"),
        (b"tru", false, "E0201"),
    ] {
        let shown = String::from_utf8_lossy(&input[..input.len().min(40)]).into_owned();
        assert_eq!(through_the_program(&place, input, tagged), Err((2, code.to_owned())), "{shown}");
        assert_eq!(through_the_library(input, tagged), Err(code.to_owned()), "{shown}");
    }
}

#[test]
fn a_50_mb_string_is_kept_and_one_over_64_mib_is_refused_with_its_path() {
    let place = Place::with_store();
    let text = |size: usize| format!("\"{}\"", "0123456789abcdef".repeat(size / 16)).into_bytes();
    let kept = through_the_program(&place, &text(50_000_000), false).unwrap();
    assert_eq!(kept.as_str().map(str::len), Some(50_000_000));
    let line =
        [br#"{"type":"action.result","author":"runtime","result":{"output":"#, &text(64 << 20)[..], b"}}"]
            .concat();
    let ran = place.run_with(&["commit", "--run", "r"], &line);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("error[E0205]") && ran.stderr.contains("/result/output"), "{}", ran.stderr);
    assert_eq!(place.run(&["verify", "--all"]).code, 0);
}

#[test]
fn an_empty_store_answers_every_question() {
    let place = Place::with_store();
    assert_eq!(place.ok(&["runs"]), "0 of 0 runs\n");
    assert_eq!(place.json(&["runs"]).1.get("items").unwrap().to_string(), "[]");
    assert_eq!(place.run(&["verify", "--all"]).code, 0);
    for args in [
        &["log"][..],
        &["show", "r@1"],
        &["state", "r@1"],
        &["replay", "r"],
        &["bisect", "r", "--holds", "true"],
        &["export", "r"],
    ] {
        let ran = place.run(args);
        assert_eq!(ran.code, 3, "{args:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("error[E0101]"), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn outside_a_store_the_way_in_is_named() {
    let place = Place::new();
    for args in [&["runs"][..], &["log", "r"], &["verify", "--all"], &["commit", "--run", "r"]] {
        let ran = place.run(args);
        assert_eq!(ran.code, 3, "{args:?}");
        assert!(
            ran.stderr.contains("error[E0103]")
                && ran.stderr.contains("dendrer init")
                && ran.stderr.contains("dendrer demo")
        );
    }
}

#[test]
fn a_store_of_a_newer_format_is_named_and_not_touched() {
    let place = Place::with_store();
    place.run_with(&["commit", "--run", "r"], b"{\"type\":\"plan.update\"}");
    let path = place.path().join(".dendrer/store.json");
    let text = std::fs::read_to_string(&path).unwrap();
    let read_only = text.replace("\"format\":1", "\"format\":3").replace("\"writer\":1", "\"writer\":3");
    assert_ne!(read_only, text);
    std::fs::write(&path, &read_only).unwrap();
    assert_eq!(place.run(&["log", "r"]).code, 0, "who knows version 2 may read it");
    let ran = place.run_with(&["commit", "--run", "r"], b"{\"type\":\"plan.update\"}");
    assert_eq!(ran.code, 8, "{}", ran.stderr);
    assert!(ran.stderr.contains("error[E0803]"), "{}", ran.stderr);
    std::fs::write(&path, read_only.replace("\"reader\":1", "\"reader\":3")).unwrap();
    let ran = place.run(&["log", "r"]);
    assert_eq!(ran.code, 8, "{}", ran.stderr);
    std::fs::write(&path, &text).unwrap();
    assert_eq!(place.json(&["log", "r"]).1.get("total"), Some(&1u64.into()));
}

#[test]
fn the_key_is_outside_the_store_and_readable_by_its_owner_alone() {
    let place = Place::with_store();
    let keys = place.config().join("keys");
    let key = std::fs::read_dir(&keys).unwrap().next().unwrap().unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
    let secret = std::fs::read_to_string(key.path()).unwrap();
    // The fifth part of the note format is base64, in which '+' is a digit.
    let secret = secret.trim().splitn(5, '+').nth(4).unwrap().to_owned();
    assert!(secret.len() >= 40, "a key is 33 bytes");
    let mut stack = vec![place.path().join(".dendrer")];
    while let Some(path) = stack.pop() {
        if path.is_dir() {
            stack.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            assert!(
                !bytes.windows(secret.len()).any(|window| window == secret.as_bytes()),
                "{}",
                path.display()
            );
        }
    }
    let other = Place::new();
    let ran = other.command(&["init"]).env_remove("HOME").env_remove("APPDATA").output().unwrap();
    assert_eq!(ran.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("--key"));
    let mut command = other.command(&["init", "--key", "here.key"]);
    let ran = command.env_remove("HOME").env_remove("APPDATA").output().unwrap();
    assert_eq!(ran.status.code(), Some(0));
    assert!(other.path().join("here.key").exists());
    assert_eq!(other.run(&["init"]).code, 2, "a store is never made over another");
}
