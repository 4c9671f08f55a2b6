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

/// Redacts a text and compares the whole of it.
fn check(text: &str, expected: &str) {
    let made = plain().text(text).0;
    assert_eq!(made, expected, "{text}");
    assert_eq!(plain().text(&made), (made.clone(), TakenSecrets::default()), "{text}");
}

/// A token of a bot that is put together here, so that no scanner takes this file for a leak.
fn bot_token() -> String {
    format!("712345678:{}", "AAHk3f9sLmP3vK2rTzQx8yWbN4cVdE5gH6i")
}

#[test]
fn a_shape_right_after_a_letter_is_taken_and_the_address_stays() {
    check(
        &format!("https://api.telegram.org/bot{}/sendMessage", bot_token()),
        "https://api.telegram.org/bot<redacted:telegram-bot-token>/sendMessage",
    );
    let pat = format!("ghp{}", "_16C7e42F292c6912E7710c838347Ae178B4a");
    check(&format!("token{pat} used"), "token<redacted:github-pat> used");
    for kept in
        ["monkey-abcdef0123456789abcdef0123456789", "/robot712345678:abc", "a task-abcdefghij0123456789abcd"]
    {
        check(kept, kept);
    }
}

#[test]
fn json_in_a_text_is_read_as_json() {
    check(
        r#"{"env":[{"name":"DB_PASSWORD","value":"Gr8pass99zz"}]}"#,
        r#"{"env":[{"name":"DB_PASSWORD","value":"<redacted:named>"}]}"#,
    );
    check(r#"{"balance": 412, "password": 12345678}"#, r#"{"balance": 412, "password": "<redacted:named>"}"#);
    check(
        r#"{"a":"{\"b\":\"{\\\"otp\\\": 493021}\",\"n\":1}"}"#,
        r#"{"a":"{\"b\":\"{\\\"otp\\\": \\\"<redacted:named>\\\"}\",\"n\":1}"}"#,
    );
    check(
        r#"{"refresh_token": {"sensitive": true, "value": "q7Wk2mTz9Lp4"}}"#,
        r#"{"refresh_token": {"sensitive": true, "value": "<redacted:named>"}}"#,
    );
    check(
        "{'user': 'bob', 'password': 'it\\'s-Gr8', 'n': None}",
        "{'user': 'bob', 'password': '<redacted:named>', 'n': None}",
    );
    check(
        r#"log: {"cmd": ["mysql", "-uroot", "-pGr8pass99"], "n": 3}"#,
        r#"log: {"cmd": ["mysql", "-uroot", "-p<redacted:named>"], "n": 3}"#,
    );
    for kept in [
        r#"{"tokens": 4096, "secret": "db-credentials", "type": {"password": {"type": "string"}}}"#,
        r#"{"name": "title", "value": "Gr8pass99zz"}"#,
        r#"{"thinking": "x", "signature": "EqQBCkYIBRgCKkCw7mFhZVd0kQ2pLr9sT4xYb1nG6uJc8eHqZoVi3WdKaM5tRfSg"}"#,
        r#"{"thought_signature": "CkYIBRgCKkCw7mFhZVd0kQ2pLr9sT4xYb1nG6uJc8eHqZoVi3WdKaM5tRfSgPyXvUjBlNw"}"#,
        "config[\"password\"] == other",
    ] {
        check(kept, kept);
    }
}

#[test]
fn a_text_of_json_gives_what_its_value_gives() {
    for text in [
        r#"{"env":[{"name":"DB_PASSWORD","value":"Gr8pass99zz"}]}"#,
        r#"{"element":"Password field","ref":"e12","text":"Gr8pass99uu"}"#,
        r#"{"selector":"input[name=password]","text":"Gr8pass99uu"}"#,
        r#"{"kind":"Secret","data":{"tls.key":"QUJDREVGR0g="}}"#,
        r#"{"action":"gate","name":"require:X","input":{"credential":"ANTHROPIC_API_KEY","value":"Gr8pass99uu"}}"#,
        r#"{"command":["curl","-u","bob:Gr8pass99uu","http://x"]}"#,
        r#"{"Jwt":{"Key":"q7Wk2mTz9Lp4q7Wk2mTz9Lp4"}}"#,
    ] {
        let value = dendrer_object::json::parse_door(text.as_bytes()).unwrap();
        let (made, taken) = plain().value(&value);
        assert_eq!(taken.iter().map(|(_, count)| count).sum::<u64>(), 1, "{text} -> {made}");
        let (made, taken) = plain().text(text);
        assert_eq!(taken.iter().map(|(_, count)| count).sum::<u64>(), 1, "{text} -> {made}");
        assert!(
            !made.contains("Gr8pass99") && dendrer_object::json::parse_door(made.as_bytes()).is_ok(),
            "{made}"
        );
    }
}

#[test]
fn a_gate_keeps_names_and_states() {
    let text = r#"{"action":"gate","name":"require:X","input":{"credential":"ANTHROPIC_API_KEY","source":"environment","answer":"x9!kd2"},"output":{"allowed":true}}"#;
    check(text, &text.replace("x9!kd2", "<redacted:named>"));
    let kept = r#"{"action":"gate","name":"require:ANTHROPIC_API_KEY","input":"ANTHROPIC_API_KEY"}"#;
    check(kept, kept);
}

#[test]
fn several_words_are_taken_to_the_last() {
    let words = "ripple scissors kick mammal hire column oak again sun offer wealth tomorrow";
    check(&format!("mnemonic: {words}"), "mnemonic: <redacted:recovery-phrase>");
    check(&format!("keep it: {words}\nnext line"), "keep it: <redacted:recovery-phrase>\nnext line");
    check("passphrase: correct horse battery staple", "passphrase: <redacted:named>");
    check("passphrase=\"correct horse battery staple\"", "passphrase=\"<redacted:named>\"");
    for kept in [
        "the passphrase must not be empty",
        "abandon ability able about above absent absorb abstract absurd abuse access accident",
    ] {
        check(kept, kept);
    }
}

#[test]
fn a_field_of_a_page_is_named_by_its_label() {
    check(
        "- textbox \"Password\" [active] [ref=e12]: Gr8pass99uu\n- button \"Log in\" [ref=e13]",
        "- textbox \"Password\" [active] [ref=e12]: <redacted:named>\n- button \"Log in\" [ref=e13]",
    );
    check("page.fill('#password', 'Gr8pass99uu')", "page.fill('#password', '<redacted:named>')");
    check(
        "page.getByLabel('Password').fill('Gr8pass99uu')",
        "page.getByLabel('Password').fill('<redacted:named>')",
    );
    check(
        "<input type=\"password\" name=\"pw\" value=\"Gr8pass99uu\">",
        "<input type=\"password\" name=\"pw\" value=\"<redacted:named>\">",
    );
    for kept in [
        "- textbox \"Email\" [ref=e1]: bob@example.org",
        "page.fill('#user', 'Gr8pass99uu')",
        "- link \"Forgot password\" [ref=e1]",
    ] {
        check(kept, kept);
    }
}

#[test]
fn a_value_never_ends_at_the_word_of_the_next_line() {
    let key = format!("sk-{}", "proj-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKlMnOp");
    for next in [
        "Started",
        "Failed at migration 7",
        "Traceback (most recent call last)",
        "42 files",
        "DONE",
        "user_name",
    ] {
        check(&format!("using {key}\n{next}"), &format!("using <redacted:openai-key>\n{next}"));
    }
    // Lines of one width continue a token.
    let whole = format!("{key}q7Wk2mTz9Lp4q7Wk2mTz9Lp4");
    check(&format!("{}\n{}", &whole[..64], &whole[64..]), "<redacted:openai-key>");
}

#[test]
fn each_syntax_has_its_end() {
    let secret = "q7Wk2mTz9Lp4";
    for text in [
        "-----\nDB_PASSWORD=#\nDB_HOST=x",
        "machine h.example.org login bob password # ",
        "mysqldump -u root -p# --all",
        "sshpass -p # ssh bob@h",
        "redis-cli -h h -a # ping",
        "openssl rsa -passin pass:# -in k.pem",
        "smbclient -U bob%# //h/s",
        "docker login -u bob -p # registry.example.org",
        "Cookie: theme=dark; session=#; lang=en",
        "https://x.example.org/cb?a=1&access_token=#&b=2",
        "| user | password |\n|---|---|\n| bob | # |\n",
        "user,password,role\nbob,#,admin\n",
        "NAME   TOKEN          AGE\nbob    #   3d\n",
        "Key              Value\n---              -----\npassword         #\n",
        "password: |\n  #\nuser: bob\n",
        "- name: DB_PASSWORD\n  value: #\n- name: PORT\n  value: \"80\"\n",
        "apiVersion: v1\nkind: Secret\ndata:\n  x: #\ntype: Opaque\n",
        "<password>#</password>",
        "CREATE USER bob IDENTIFIED BY '#';",
        "INSERT INTO t (name, password) VALUES ('bob', '#');",
        "use # as the password for bob",
        "the password for bob is #, thanks",
        "das Passwort lautet #.",
        "la contraseña es #",
        "le mot de passe est #",
        "2026-01-01 10:00:00 INFO | password=#\n2026-01-01 10:00:01 INFO | port=80\n",
        "password=\u{1b}[31m#\u{1b}[0m",
        "&quot;password&quot;: &quot;#&quot;",
    ] {
        check(&text.replace('#', secret), &text.replace('#', "<redacted:named>"));
    }
}

#[test]
fn programs_and_their_words_stay() {
    for kept in [
        "password = get_password(user)",
        "if password == \"hunter2\":",
        "PWD=/home/user/src",
        "--- PASS: TestLogin (0.00s)",
        "secret: db-credentials",
        "pub password: LSA_UNICODE_STRING,",
        "def login(self, password: str, token: Token) -> None:",
        "password VARCHAR(255) NOT NULL",
        "  -p, --password string   Password for the registry",
        "usage: login [--token TOKEN] [--password PASSWORD]",
        "token = self.tokens[0]",
        "routing_key: orders.created.v2",
        "partition_key=user#12345678",
        "storage_key: 3f2a9c1d4b5e6f70",
        "arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-a1B2c3",
        "What is the password policy? It is stored as a hash.",
    ] {
        check(kept, kept);
    }
}

#[test]
fn a_rule_that_is_off_takes_nothing() {
    let pack = dendrer_object::json::parse_door(br#"{"redact":{"off":["url-password"]}}"#).unwrap();
    let rules = PackRules::of_pack(&pack).unwrap();
    let redactor = Redactor::new(RedactionProfile::Default, &rules, &[], None).unwrap();
    let text = "postgres://app:Tr0ub4dor-x9@db/x and password=Tr0ub4dor-x9";
    assert_eq!(redactor.text(text).0, "postgres://app:Tr0ub4dor-x9@db/x and password=<redacted:named>");
    assert_eq!(redactor.off().len(), 1);
    assert_ne!(redactor.rules().digest, plain().rules().digest);
    let wrong = dendrer_object::json::parse_door(br#"{"redact":{"off":["url-pasword"]}}"#).unwrap();
    assert!(PackRules::of_pack(&wrong).is_err());
}

#[test]
fn what_carl_core_took_is_not_taken_again_and_metrics_are_numbers() {
    let redactor = Redactor::new(RedactionProfile::Carl1, &PackRules::default(), &[], None).unwrap();
    let value = Value::record([("api_key", Value::from("<redacted>"))]);
    assert_eq!(redactor.value(&value), (value, TakenSecrets::default()));
    let metrics = Value::record([("tokens_used", Value::from(512u64)), ("token", Value::from("x"))]);
    let (made, taken) = redactor.metrics(&metrics);
    assert_eq!(made.to_string(), r#"{"token":"<redacted>","tokens_used":512}"#);
    assert_eq!(taken.iter().collect::<Vec<_>>(), [("named", 1)]);
}

#[test]
fn cut_and_deep_texts_are_read_without_a_panic() {
    let deep = format!("{}\"password\":\"Gr8pass99\"", "{\"a\":".repeat(10_000) + "{");
    assert!(!plain().text(&deep).0.contains("Gr8pass99"));
    let texts = [
        r#"{"a":[{"name":"DB_PASSWORD","value":"Gr8pass99zz"},("x",b'\'')]}"#,
        "- name: X\n  value: |\n    ä\n<input type=password value='ö'> | password | é |\n",
        "curl -u 'a:b' \\\n -H \"Cookie: a=b\" && mysql -p'x' `echo ü`",
        "passphrase: ä ö ü=3D=\n&#x41;&quot;%C3%A4\u{1b}[0m\u{200b}x",
    ];
    for text in texts {
        for (at, _) in text.char_indices() {
            let _ = plain().text(&text[at..]);
            let _ = plain().text(&text[..at]);
        }
    }
}

#[test]
fn a_password_may_have_a_word_for_one_in_it() {
    let made = Redactor::new(RedactionProfile::Default, &PackRules::default(), &[], None);
    let redactor = made.unwrap_or_else(|error| panic!("{error}"));
    for text in ["password: Gr8-pass-7025-x", r#"{"password":"token-992-Blue"}"#, "DB_PASSWORD=password123"] {
        assert_eq!(redactor.find(text).len(), 1, "{text}");
    }
    for text in [r#"{"label":"password","value":""}"#, "password: DB_PASSWORD", r#"{"pass":"Splugen"}"#] {
        assert_eq!(redactor.find(text).len(), 0, "{text}");
    }
}

/// Texts of public reports about other tools, each with what has to be gone.
#[test]
fn what_other_tools_miss_is_taken() {
    for (text, secret) in [
        ("bot-ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5 began", "ghp_aB3d"),
        ("backup_ghp_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5", "ghp_aB3d"),
        ("set -AKIAQ7ZK3LMN4PXR5TWV", "AKIAQ7ZK"),
        ("API_KEY=Qq81-mmq99\n", "Qq81-mmq99"),
        ("DB_PASSWORD=changeme-Kz81!mmq\n", "Kz81!mmq"),
        (
            "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"d\":\"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A\"}",
            "nWGxne",
        ),
        ("{\"secrets\":{\"DB\":\"Kz96mmq99aa\"}}", "Kz96mmq99aa"),
        ("{\"password\":{\"old\":\"Wq7zLm3vXk9T\"}}", "Wq7zLm3vXk9T"),
        ("net use z: \\\\srv\\share Kz81-mmq99 /user:bo", "Kz81-mmq99"),
        ("postgres://u:Kz81#mmq9@h/x", "Kz81#mmq9"),
        ("passwords: [Zz71kk-22qA, Wq7zLm3vXk9T]", "Wq7zLm3vXk9T"),
        ("Authorization: Digest username=\"bo\", response=\"6629fae49393a05397450978507c4ef1\"", "6629fae4"),
        ("https://x.io/a?reset_token=8fK2mmzQ0pLt", "8fK2mmzQ0pLt"),
        (
            "https://s3.io/k?X-Amz-Signature=fe5f80f77d5fa3beca038a248ff027d0445342fe2855ddc963176630326f1024",
            "fe5f80f7",
        ),
        ("postgres://u:Kz81/mm?q9@h/x", "Kz81/mm"),
        (
            "PuTTY-User-Key-File-3: ssh-ed25519\nPrivate-Lines: 1\nAAAAIQDk8mQ2hWc0pLr7sVt9yB1nXz3kF5gJ6dK8aM4uE2oT0w==\nPrivate-MAC: 00\n",
            "AAAAIQDk8m",
        ),
        (
            "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\nP2/56wAAA3MAAAAmZGwtbW9kcHtzaWdue2RzYS1uaXN0LXNoYTF9\n---- END SSH2 ENCRYPTED PRIVATE KEY ----\n",
            "P2/56wAAA3",
        ),
    ] {
        let (made, taken) = plain().text(text);
        assert!(!made.contains(secret) && !taken.is_empty(), "{text}: {made}");
        let value = Value::record([("output", Value::from(text))]);
        assert!(!plain().value(&value).0.to_string().contains(secret), "{text}");
    }
}

#[test]
fn what_other_tools_destroy_stays() {
    for text in [
        "r.token=i;if(!r.token)throw Error(\"x\")",
        "e.password=n.key;for(var r in e)",
        "u.password=undefined;return u",
        "x.prototype.addToken=function(e,t,n){for(var",
        "unexpected token: identifier42a",
        "password varchar255",
        "your-api-key-123",
        "password=your-password-here",
        "SECRETS_IMAGE_TAG=v1.4.2-3fb1e2c",
        "token_model=cl100k_base",
        "Secret app-db-7f9c created",
    ] {
        assert_eq!(plain().text(text).0, text);
    }
    let cloned = "git push https://x-access-token:ghs_aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5@github.com/o/prod.git --force main";
    let made = plain().text(cloned).0;
    assert!(made.ends_with("@github.com/o/prod.git --force main") && !made.contains("ghs_"), "{made}");
    // Digits of base 16 that were a password are no part of a digest.
    let knowing = plain().knowing(&["a1b2c3d4".to_owned()]);
    let text = "id a1b2c3d4-0000-4000-8000-000000000001, sha 9fa1b2c3d4e0598a";
    assert_eq!(knowing.text(text).0, text);
    assert!(!knowing.text("typed a1b2c3d4 here").0.contains("a1b2"));
}

/// JSON stays JSON, whatever is in its texts.
#[test]
fn markup_in_json_stays_json() {
    for text in
        [r#"{"h":"<input type=password value=hunter2Blue><b>"}"#, r#"{"py":"{'password': 12345678}"}"#]
    {
        let (made, taken) = plain().text(text);
        assert!(!taken.is_empty() && dendrer_object::json::parse_door(made.as_bytes()).is_ok(), "{made}");
    }
}

/// The words of a head in a text are no key, and text between a head and a foot is no part of one.
#[test]
fn text_around_a_key_stays() {
    for (text, kept) in [
        (
            "{\"a\":\"-----BEGIN PRIVATE KEY-----\",\"keep\":{\"note\":\"between\"},\"b\":\"-----END PRIVATE KEY-----\",\"z\":3}",
            "between",
        ),
        (
            "begin with -----BEGIN PRIVATE KEY-----\nand the orders of today are 7, 8 and 9 for the shops in town\nreport: all tests passed\n-----END PRIVATE KEY-----\n",
            "and the orders of today are 7, 8 and 9 for the shops in town\nreport: all tests passed",
        ),
        (
            "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n[output truncated]\n$ make test\n12 passed\n-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n-----END PRIVATE KEY-----\n",
            "[output truncated]\n$ make test\n12 passed",
        ),
    ] {
        let made = plain().text(text).0;
        assert!(made.contains(kept) && !made.contains("MIIEvQ"), "{made}");
    }
    // Cut in the middle: both halves are taken.
    let key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n... 20 lines ...\nMSfArfcwggSjAgEAAoIBAQC7VJTUt9Us8cKjMzEfYyjiWA4R4dendrerXXYYZZ11\n-----END PRIVATE KEY-----\n";
    let made = plain().text(key).0;
    assert!(
        made.contains("... 20 lines ...") && !made.contains("MSfArfcw") && !made.contains("MIIEvQ"),
        "{made}"
    );
    // On one line, and with its newlines written out.
    for text in [
        "k = \"-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\\n-----END PRIVATE KEY-----\\n\"; rest = 1",
        "-----BEGIN PRIVATE KEY----- MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7 -----END PRIVATE KEY----- rest = 1",
    ] {
        let made = plain().text(text).0;
        assert!(made.contains("rest = 1") && !made.contains("MIIEvQ"), "{made}");
    }
}

#[test]
fn an_option_is_no_value_and_a_default_is_one() {
    for (text, secret, kept) in [
        ("gh secret set API_TOKEN --body \"q7Rk2mZx91LpW0\"", "q7Rk2mZx91LpW0", "API_TOKEN --body"),
        ("DB_PASSWORD=${DB_PASSWORD:-Plum47Kettle9}", "Plum47Kettle9", "${DB_PASSWORD:-"),
        ("TOKEN=q7Rk2mZx91LpW0\0HOST=db1\0", "q7Rk2mZx91LpW0", "\0HOST=db1"),
    ] {
        let made = plain().text(text).0;
        assert!(!made.contains(secret) && made.contains(kept), "{made:?}");
    }
    let text = "curl --password --http2-only https://x.io";
    assert_eq!(plain().text(text).0, text);
    let value = Value::array(["--password", "--user2"].map(Value::from));
    assert_eq!(plain().value(&value).0, value);
}

/// An object named for passwords has one for each of its names, as a list has for each item; other objects below a name of a secret
/// keep what is not drawn by chance.
#[test]
fn passwords_by_their_owners_are_taken() {
    let text = r#"{"passwords":{"ann":"deepsecret98","Bob Li":"tulip-Garden7","type":"plain text"}}"#;
    for made in [
        plain().text(text).0,
        plain().value(&dendrer_object::json::parse_door(text.as_bytes()).unwrap()).0.to_string(),
    ] {
        assert!(!made.contains("deepsecret98") && !made.contains("tulip-Garden7"), "{made}");
        assert!(made.contains("plain text") && made.contains("Bob Li"), "{made}");
    }
    let stays = r#"{"credentials":{"region":"frankfurt","user":"ann.miller2"},"password":{"pattern":"[a-z]+","type":"string"}}"#;
    assert_eq!(plain().text(stays).0, stays);
    let value = dendrer_object::json::parse_door(stays.as_bytes()).unwrap();
    assert_eq!(plain().value(&value).0, value);
}
