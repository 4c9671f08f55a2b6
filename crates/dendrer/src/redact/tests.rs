use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;

fn plain() -> Redactor {
    Redactor::new(RedactionProfile::Default, &PackRules::default(), &[], None).unwrap()
}

#[test]
fn a_secret_in_a_text_becomes_a_marker_that_keeps_nothing_of_it() {
    // Put together here, so that no scanner takes this file for a leak.
    let pat = format!("ghp{}", "_16C7e42F292c6912E7710c838347Ae178B4a");
    let (made, taken) = plain().text(&format!("token is {pat}, see"));
    assert_eq!(made, "token is <redacted:github-pat>, see");
    assert_eq!(taken.iter().collect::<Vec<_>>(), [("github-pat", 1)]);
    assert_eq!(plain().text(&made), (made.clone(), TakenSecrets::default()));
}

#[test]
fn names_and_numbers_that_are_no_secrets_stay() {
    for text in [
        "tokens_used: 1042, max_tokens=4096",
        "{\"monkey\": \"Bonzo\", \"primary_key\": \"id\", \"keyboard\": \"qwerty\"}",
        "commit 3f2a9c1d4b5e6f708192a3b4c5d6e7f801234567",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "password must be at least 8 characters",
        "export TOKEN=$GITHUB_TOKEN",
        "the key is on the table and the pass is closed",
        "0x742d35Cc6634C0532925a3b844Bc454e4438f44e",
        "trace_id: 4bf92f3577b34da6a3ce929d0e0e4736",
        "see https://user@example.org/path and https://example.org:8080/x@y",
    ] {
        assert_eq!(plain().text(text).0, text);
    }
}

#[test]
fn a_value_beside_a_name_is_taken_in_each_writing() {
    let secret = "Tr0ub4dor-x9";
    for text in [
        "DB_PASSWORD=#",
        "export DB_PASSWORD='#'",
        "password: #",
        "  \"password\": \"#\",",
        "--password #",
        "--password=#",
        "?password=#&x=1",
        "X-Api-Key: #",
        "Authorization: Bearer #",
        "postgres://app:#@db/x",
        "the password is #",
        "{\\\"client_secret\\\": \\\"#\\\"}",
        "curl -u admin:# http://x",
        "password = \"#\"",
        "clientSecret := '#'",
        "<password>#</password>",
        "api_key => '#'",
        "PASSWORD # ",
        "redirect=https%3A%2F%2Fx%2F%3Fpassword%3D#",
        "Password: #",
    ] {
        let text = text.replace('#', secret);
        let (made, _) = plain().text(&text);
        assert!(!made.contains(secret), "{text} -> {made}");
    }
}

#[test]
fn values_of_json_are_taken_whole_and_keys_stay_distinct() {
    let pat = format!("ghp{}", "_16C7e42F292c6912E7710c838347Ae178B4a");
    let other = format!("ghp{}", "_26C7e42F292c6912E7710c838347Ae178B4a");
    let value = Value::record([
        ("password".to_owned(), Value::from("hunter2!")),
        ("tokens_used".to_owned(), Value::from(12u64)),
        ("args".to_owned(), Value::array([Value::from("--token"), Value::from("abc123def456")])),
        (pat, Value::from(1u64)),
        (other, Value::from(2u64)),
    ]);
    let (made, taken) = plain().value(&value);
    assert_eq!(
        made.to_string(),
        r#"{"<redacted:github-pat>":1,"<redacted:github-pat>#2":2,"args":["--token",{"$redacted":{"kind":"named","len":"short"}}],"password":{"$redacted":{"kind":"named","len":"short"}},"tokens_used":12}"#
    );
    assert_eq!(taken.iter().map(|(_, count)| count).sum::<u64>(), 4);
    assert_eq!(plain().value(&made), (made.clone(), TakenSecrets::default()));
}

#[test]
fn known_values_are_found_in_every_writing_and_tags_tell_equal_ones() {
    let known = ["correct horse/battery+staple".to_owned()];
    let redactor =
        Redactor::new(RedactionProfile::Default, &PackRules::default(), &known, Some([7; 32])).unwrap();
    for text in [
        known[0].clone(),
        format!("x={}", STANDARD.encode(&known[0])),
        "correct%20horse%2Fbattery%2Bstaple".to_owned(),
        known[0].bytes().map(|c| format!("{c:02x}")).collect(),
    ] {
        let (made, taken) = redactor.text(&format!("before {text} after"));
        assert!(!made.contains(&text) && !taken.is_empty(), "{text} -> {made}");
        assert!(made.contains('#'), "{made}");
    }
}

#[test]
fn the_profile_of_carl_is_what_the_package_does() {
    let redactor = Redactor::new(RedactionProfile::Carl1, &PackRules::default(), &[], None).unwrap();
    let key = format!("sk{}", "-ant-abcdefghijklmnopqrstuvwx");
    let value = Value::record([
        ("note", Value::from(format!("use {key} now"))),
        ("monkey", Value::from(3u64)),
        ("short", Value::from("hf_abc")),
    ]);
    let made = redactor.value(&value).0;
    assert_eq!(
        made.to_string(),
        r#"{"monkey":"<redacted>","note":"use sk-ant<redacted> now","short":"hf_abc"}"#
    );
}

#[test]
fn a_stream_is_redacted_as_the_whole_wherever_it_is_cut() {
    let pat = format!("ghp{}", "_16C7e42F292c6912E7710c838347Ae178B4a");
    let key = format!(
        "-----BEGIN {0}-----\n{1}\n{1}\n-----END {0}-----\n",
        "PRIVATE KEY", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7"
    );
    let text = format!("first {pat}\npassword: hunter2!\n{key}tail Authorization: Bearer {pat}\nä end");
    let whole = plain().text(&text).0;
    for size in [1, 2, 3, 7, 20, 64] {
        let mut stream = plain().stream();
        let mut made = String::new();
        let chars: Vec<char> = text.chars().collect();
        for part in chars.chunks(size) {
            made.push_str(&stream.push(&part.iter().collect::<String>()));
        }
        made.push_str(&stream.finish().0);
        assert_eq!(made, whole, "{size}");
    }
}

#[test]
fn a_token_that_is_wrapped_over_lines_is_taken_whole() {
    let pat = format!(
        "github{}{}",
        "_pat_", "11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ0123456789AbCdEfGhIjKlMnOpQrStUvWxYz01234567"
    );
    let lead = "the tool printed a token that is longer than a line of a terminal: ";
    let text = format!("{lead}{}\n{}\nand nothing else", &pat[..20], &pat[20..]);
    let made = plain().text(&text).0;
    assert!(!made.contains(&pat[60..]) && made.ends_with("\nand nothing else"), "{made}");
    // Two short lines are two things.
    let text = format!("{pat}\npassword_policy");
    assert_eq!(plain().text(&text).0, "<redacted:github-fine-grained-pat>\npassword_policy");
}

#[test]
fn hostile_texts_take_linear_time() {
    for part in [
        "ey",
        "eyeyeyeyeyeyeyey.",
        "password=",
        "ghp_",
        "-----BEGIN ",
        "PRIVATE KEY",
        "://",
        "\\\"",
        "%41",
        "a\n",
        "\u{1b}[",
        "sk-",
        "key",
        "A",
    ] {
        let begin = std::time::Instant::now();
        let _ = plain().text(&part.repeat(400_000 / part.len()));
        assert!(begin.elapsed().as_secs() < 5, "{part:?}: {:?}", begin.elapsed());
    }
}
