//! Redaction of texts that were cut, nested or made to be slow: no panic, spans in order, time in proportion to length.
//!
//! `DENDRER_DEEP=1` takes lines of 64 MiB instead of 4 MiB.

#![expect(clippy::print_stdout, reason = "times of the texts that are measured")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use dendrer::redact::{PackRules, RedactionProfile, Redactor};
use dendrer_testkit::tool_outputs::{TextClass, secret_cases};

/// Least share of secrets that are redacted after their text was cut, in thousandths. It only rises.
const CUT_RECALL: u64 = 650;

/// Syntaxes of which nothing is found today. A row only goes.
const UNFOUND: &[&str] = &["multipart"];

/// One text of each syntax, each with a secret.
const SYNTAXES: &[(&str, &str)] = &[
    ("json", r#"{"user":"bob","password":"hunTer2-Blue77","list":[{"api_key":"hunTer2-Blue77"},null,1e3]}"#),
    (
        "json in json",
        r#"{"a":"{\"password\":\"hunTer2-Blue77\",\"b\":\"{\\\"token\\\":\\\"hunTer2-Blue77\\\"}\"}"}"#,
    ),
    ("json unicode", r#"{"pass\u0077ord":"\u0068unTer2-Blue77","x":"\ud83d\ude00"}"#),
    (
        "yaml",
        "db:\n  user: bob\n  password: \"hunTer2-Blue77\"\n  token: >-\n    hunTer2-\n    Blue77\n  l: [a, b]\n",
    ),
    ("toml", "[db]\npassword = \"hunTer2-Blue77\"\ntoken = '''\nhunTer2-Blue77'''\n"),
    ("ini", "[db]\n; note\npassword=hunTer2-Blue77\npass : hunTer2-Blue77\n"),
    (
        "env",
        "export DB_PASSWORD='hunTer2-Blue77'\nAPI_KEY=\"hunTer2-Blue77\" # note\nset TOKEN=hunTer2-Blue77\r\n",
    ),
    (
        "shell",
        "mysql -u root -phunTer2-Blue77 app; curl -u 'bob:hunTer2-Blue77' https://x/ --token=hunTer2-Blue77 \\\n  -v",
    ),
    ("heredoc", "cat <<'EOF' > .env\nPASSWORD=hunTer2-Blue77\nEOF\n"),
    ("xml", "<a><password enc=\"x\">hunTer2-Blue77</password><![CDATA[<token>hunTer2-Blue77</token>]]></a>"),
    (
        "html",
        "<input type=\"password\" name='password' value=\"hunTer2&amp;Blue77\"><td>Password</td><td>hunTer2-Blue77</td>",
    ),
    ("csv", "user,password\nbob,\"hunTer2-\"\"Blue77\"\neve,hunTer2-Blue77\n"),
    ("tabs", "user\tpassword\nbob\thunTer2-Blue77\n"),
    (
        "markdown",
        "| user | password |\n| --- | --- |\n| bob | `hunTer2-Blue77` |\n**Password:** hunTer2-Blue77\n",
    ),
    (
        "box",
        "┌──────┬────────────────┐\n│ user │ password       │\n├──────┼────────────────┤\n│ bob  │ hunTer2-Blue77 │\n└──────┴────────────────┘",
    ),
    ("address", "postgres://bob:hunTer2-Blue77@db:5432/app?sslmode=require&password=hunTer2%2DBlue77#x"),
    (
        "headers",
        "> Authorization: Basic Ym9iOmh1blRlcjItQmx1ZTc3\r\n> X-Api-Key: hunTer2-Blue77\r\n> Cookie: session=hunTer2-Blue77; a=b\r\n\r\n",
    ),
    (
        "multipart",
        "--b\r\nContent-Disposition: form-data; name=\"password\"\r\n\r\nhunTer2-Blue77\r\n--b--\r\n",
    ),
    (
        "private key",
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEowIBAAKCAQEAx7mQ\nabcd\n-----END RSA PRIVATE KEY-----\n",
    ),
    (
        "web token",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    ),
    ("base64", "REJfUEFTU1dPUkQ9aHVuVGVyMi1CbHVlNzcKUE9SVD04MApMT0dfTEVWRUw9aW5mbwo="),
    ("hex", "70617373776f72643d68756e546572322d426c756537370a"),
    ("percent", "payload=%7B%22password%22%3A%22hunTer2-Blue77%22%7D&x=%zz%"),
    ("quoted-printable", "password=3DhunTer2-=\nBlue77=C3=A4=\n"),
    ("entities", "{&quot;password&quot;:&quot;hunTer2-Blue77&quot;} &#112;&#x70; &unknown; &"),
    ("python", "{'user': 'bob', 'password': 'hunTer2-Blue77', b'token': b'hunTer2-Blue77', \"n\": None}"),
    ("ruby", "{:password=>\"hunTer2-Blue77\", token: \"hunTer2-Blue77\"}"),
    ("go", "&{User:bob Password:hunTer2-Blue77 Debug:false}"),
    ("connection", "Server=db;User Id=bob;Password=hunTer2-Blue77;Encrypt=True"),
    ("netrc", "machine db login bob password hunTer2-Blue77\n"),
    (
        "sql",
        "ALTER USER bob WITH PASSWORD 'hunTer2-''Blue77'; INSERT INTO t VALUES ('{\"token\":\"hunTer2-Blue77\"}');",
    ),
    ("browser", "- textbox \"Password\" [ref=e9]: hunTer2-Blue77\n- button \"Sign in\"\n"),
    (
        "prose",
        "the password is \"hunTer2-Blue77\" – das Passwort lautet hunTer2-Blue77, 密码是 hunTer2-Blue77 🙂",
    ),
    (
        "vendor",
        "token ghp_16C7e42F292c6912E7710c838347Ae178B4a sk-ant-api03-abc xoxb-1-2-3 AKIAIOSFODNN7EXAMPLE",
    ),
    ("terminal", "\u{1b}[32mpassword\u{1b}[0m: \u{1b}[1mhunTer2\u{200b}-Blue77\u{1b}[0m\u{8}\u{8}"),
    (
        "log",
        "2026-03-02 | INFO | password=hunTer2-Blue77\n2026-03-02 | INFO | -----BEGIN PRIVATE KEY-----\n2026-03-02 | INFO | MIIE\n",
    ),
    (
        "phrase",
        "seed phrase: abandon ability able about above absent absorb abstract absurd abuse access accident",
    ),
];

fn redactor() -> Redactor {
    Redactor::new(RedactionProfile::Default, &PackRules::default(), &[], None).unwrap()
}

/// Asserts what holds for every text: spans at characters, in order, apart, and a text that is made of them.
fn check(redactor: &Redactor, text: &str) -> usize {
    let found = redactor.find(text);
    let mut upto = 0;
    for span in &found {
        assert!(
            upto <= span.start && span.start < span.end && span.end <= text.len(),
            "{span:?} in {text:?}"
        );
        assert!(text.is_char_boundary(span.start) && text.is_char_boundary(span.end), "{span:?} in {text:?}");
        upto = span.end;
    }
    let (made, taken) = redactor.text(text);
    assert_eq!(taken.iter().map(|(_, count)| count).sum::<u64>(), found.len() as u64, "{text:?}");
    let kept = text.len() - found.iter().map(|span| span.end - span.start).sum::<usize>();
    assert!(made.len() >= kept, "{text:?}");
    found.len()
}

#[test]
fn a_cut_at_any_byte_does_no_harm() {
    let redactor = redactor();
    let mut unfound = Vec::new();
    for (name, text) in SYNTAXES {
        if check(&redactor, text) == 0 {
            unfound.push(*name);
        }
        for at in 0..=text.len() {
            // A cut inside a character leaves what a reader of bytes makes of it.
            check(&redactor, &String::from_utf8_lossy(&text.as_bytes()[..at]));
            check(&redactor, &String::from_utf8_lossy(&text.as_bytes()[at..]));
        }
    }
    assert_eq!(unfound, UNFOUND, "syntaxes without a hit");
}

#[test]
fn halves_of_two_syntaxes_do_no_harm() {
    let redactor = redactor();
    for (_, first) in SYNTAXES {
        for (_, second) in SYNTAXES {
            for part in 1..8 {
                let (a, b) = (first.len() * part / 8, second.len() * (8 - part) / 8);
                let both = [&first.as_bytes()[..a], &second.as_bytes()[b..]].concat();
                check(&redactor, &String::from_utf8_lossy(&both));
            }
        }
    }
}

/// An output that was cut at its limit still has the beginning of its secret.
#[test]
fn the_beginning_of_a_secret_is_taken_where_its_text_was_cut() {
    let redactor = redactor();
    let (mut all, mut taken) = (0_u64, 0_u64);
    let classes = [TextClass::Vendor, TextClass::Named];
    for case in secret_cases(11, 3_000).iter().filter(|case| classes.contains(&case.class)) {
        let secret = case.secrets[0][0].clone();
        // Half of the secret, and no less than twelve bytes of it: less shows no shape.
        let cut = secret.end.min(secret.start + secret.len().div_ceil(2).max(12));
        for end in [cut, secret.end] {
            let Some(text) = case.text.get(..end) else { continue };
            let found = redactor.find(text);
            let rest = (secret.start..end)
                .filter(|at| !found.iter().any(|span| (span.start..span.end).contains(at)));
            all += 1;
            if rest.count() < 4 {
                taken += 1;
            } else if std::env::var_os("DENDRER_SHOW").is_some() {
                println!("{}: ...{}", case.name, &text[text.floor_char_boundary(end.saturating_sub(120))..]);
            }
        }
    }
    let share = taken * 1000 / all;
    println!("cut texts: {taken} of {all} secrets taken");
    assert!(share >= CUT_RECALL, "{share} of 1000 secrets of cut texts are taken");
}

/// A part that is handed on must be what the whole text gives.
#[test]
fn a_stream_gives_what_the_whole_text_gives_wherever_it_is_cut() {
    let redactor = redactor();
    for (name, text) in SYNTAXES {
        let (whole, taken) = redactor.text(text);
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            let mut stream = redactor.stream();
            let mut made = stream.push(&text[..at]);
            made += &stream.push(&text[at..]);
            let (rest, streamed) = stream.finish();
            assert_eq!((made + &rest, streamed), (whole.clone(), taken.clone()), "{name} cut at {at}");
        }
        let mut stream = redactor.stream();
        let mut made: String = text.chars().map(|c| stream.push(&c.to_string())).collect();
        let (rest, streamed) = stream.finish();
        made += &rest;
        assert_eq!((made, streamed), (whole, taken), "{name} by characters");
    }
}

/// Texts that are nested 10,000 deep, with a password at the bottom.
fn nested(depth: usize) -> Vec<(&'static str, String)> {
    let inside = r#"{"password":"hunTer2-Blue77"}"#;
    let around = |open: &str, close: &str| format!("{}{inside}{}", open.repeat(depth), close.repeat(depth));
    let lines = |line: &dyn Fn(usize) -> String| (0..1000).map(line).collect::<String>();
    let mut escaped = inside.to_owned();
    for _ in 0..12 {
        escaped = format!("\"{}\"", escaped.replace('\\', "\\\\").replace('"', "\\\""));
    }
    vec![
        ("brackets", around("[", "]")),
        ("brackets without an end", around("[", "")),
        ("objects", around("{\"a\":", "}")),
        ("objects without an end", around("{\"a\":", "")),
        ("ends alone", around("", "}")),
        ("tags", around("<a>", "</a>")),
        ("attributes", around("<a b=\"", "\">")),
        ("parentheses", around("(", ")")),
        ("addresses", around("a://b:c@", "")),
        ("quotes", around("\"'", "'\"")),
        ("names", around("password=", "")),
        ("quoted names", around("\"password\":", "")),
        ("percent codes of percent codes", format!("password%{}3DhunTer2-Blue77", "25".repeat(depth))),
        ("entities of entities", format!("password&{}quot;=hunTer2-Blue77", "amp;".repeat(depth))),
        ("mail quotes", format!("{}password: hunTer2-Blue77", "> ".repeat(depth))),
        (
            "yaml",
            lines(&|at| format!("{}a:\n", " ".repeat(at))) + &" ".repeat(1000) + "password: hunTer2-Blue77\n",
        ),
        ("yaml lists", format!("{}password: hunTer2-Blue77", "- ".repeat(depth))),
        ("json in json", escaped),
        ("substitutions", around("$(echo ", ")")),
        ("templates", around("${a:-", "}")),
    ]
}

#[test]
fn a_nested_text_does_no_harm_and_is_redacted_at_the_bottom() {
    let redactor = redactor();
    for (name, text) in nested(10_000) {
        check(&redactor, &text);
        if ["brackets", "objects", "brackets without an end", "ends alone", "tags", "parentheses"]
            .contains(&name)
        {
            let made = redactor.text(&text).0;
            assert!(!made.contains("hunTer2-Blue77"), "{name}: the password at the bottom is left");
        }
    }
}

/// Times of this module are CPU times of the thread: other work on the machine does not count.
#[cfg(unix)]
mod time {
    use dendrer_testkit::tool_outputs::{HOSTILE_KINDS, typical_texts};

    use super::*;

    /// Longest text that is measured.
    fn size_max() -> usize {
        if std::env::var_os("DENDRER_DEEP").is_some_and(|value| value == "1") { 64 << 20 } else { 1 << 20 }
    }

    /// Times that four times the length may take: a quadratic pass takes sixteen.
    const RATIO_MAX: f64 = 8.0;

    /// Shorter times are noise of the machine.
    const SECONDS_MIN: f64 = 0.05;

    /// Texts whose time is not in proportion to their length today. A row only goes.
    const SLOW: &[&str] = &[];

    fn seconds(work: &dyn Fn(&str), text: &str) -> f64 {
        let now = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let before = now();
        work(text);
        let after = now();
        (after.tv_sec - before.tv_sec) as f64 + (after.tv_nsec - before.tv_nsec) as f64 / 1e9
    }

    /// Returns why a text is slow: four times the length takes more than [`RATIO_MAX`] times as long, in the best of five.
    fn slow(work: &dyn Fn(&str), quarter: &str, whole: &str) -> Option<String> {
        let (mut short, mut long) = (f64::MAX, f64::MAX);
        for _ in 0..5 {
            short = short.min(seconds(work, quarter));
            long = long.min(seconds(work, whole));
            if long <= RATIO_MAX * short.max(SECONDS_MIN) {
                println!("{long:.3} s for {} bytes, {short:.3} s for {}", whole.len(), quarter.len());
                return None;
            }
        }
        Some(format!("{long:.3} s for {} bytes, {short:.3} s for {}", whole.len(), quarter.len()))
    }

    /// Collects the texts that are slow, and compares them with the known ones.
    #[derive(Default)]
    struct SlowTexts(Vec<String>);

    impl SlowTexts {
        /// Measures a short text first, so that a quadratic one ends soon, then longer ones up to `size`.
        fn measure(&mut self, name: &str, work: &dyn Fn(&str), size: usize, make: &dyn Fn(usize) -> String) {
            println!("{name}");
            let sizes = [64 << 10, 256 << 10, size];
            let why = sizes.iter().find_map(|size| slow(work, &make(size / 4), &make(*size)));
            match why {
                Some(why) if SLOW.contains(&name) => println!("{name} is slow: {why}"),
                Some(why) => self.0.push(format!("{name}: {why}")),
                None if SLOW.contains(&name) => println!("{name} is no longer slow: take it from SLOW"),
                None => (),
            }
        }

        fn assert_none(self) {
            assert!(self.0.is_empty(), "not in proportion to its length:\n{}", self.0.join("\n"));
        }
    }

    fn repeated(unit: &str, size: usize) -> String {
        unit.repeat(size / unit.len() + 1)
    }

    #[test]
    fn a_line_of_each_syntax_is_redacted_in_linear_time() {
        let redactor = redactor();
        let mut slow = SlowTexts::default();
        for (name, text) in SYNTAXES {
            let line = text.replace(['\n', '\r'], " ") + " ";
            let work = |text: &str| drop(redactor.text(text));
            slow.measure(&format!("line of {name}"), &work, size_max(), &|size| repeated(&line, size));
        }
        slow.assert_none();
    }

    #[test]
    fn a_text_of_each_syntax_is_redacted_in_linear_time() {
        let redactor = redactor();
        let mut slow = SlowTexts::default();
        let work = |text: &str| drop(redactor.text(text));
        for (name, text) in SYNTAXES {
            let text = format!("{text}\n");
            slow.measure(&format!("text of {name}"), &work, size_max() / 4, &|size| repeated(&text, size));
        }
        // Repeated, so that each length has the same kinds of texts in it.
        let outputs = typical_texts(1, 128 << 10).concat();
        slow.measure("typical text", &work, size_max(), &|size| repeated(&outputs, size));
        slow.assert_none();
    }

    #[test]
    fn a_hostile_text_is_redacted_in_linear_time() {
        let redactor = redactor();
        let mut slow = SlowTexts::default();
        let work = |text: &str| drop(redactor.text(text));
        for kind in HOSTILE_KINDS {
            slow.measure(kind.name, &work, size_max() / 4, &|size| kind.text(size));
        }
        slow.assert_none();
    }

    /// A program prints a long line in small parts: they are not looked at again with each part.
    #[test]
    fn a_stream_in_small_parts_is_redacted_in_linear_time() {
        let redactor = redactor();
        let mut slow = SlowTexts::default();
        let work = |text: &str| {
            let mut stream = redactor.stream();
            for part in text.as_bytes().chunks(256) {
                stream.push(&String::from_utf8_lossy(part));
            }
            stream.finish();
        };
        let units = [
            ("lines", "password=hunTer2-Blue77\n"),
            ("a line", "word password=hunTer2-Blue77 "),
            ("a token", "a1B2"),
        ];
        for (name, unit) in units {
            slow.measure(&format!("stream of {name}"), &work, 1 << 20, &|size| repeated(unit, size));
        }
        slow.assert_none();
    }
}
