//! Text from a trace as quoted matter: nothing in it can move a cursor, hide, or pass for dendrer's own words.

use dendrer::kernel::status::is_failure;
use dendrer_object::text::{acts, is_mark_alone, is_of_emoji, is_of_the_one_before, look_alikes};
pub use dendrer_object::text::{escape, escape_drawn};
use dendrer_object::{Pointer, Value, json as json_text, tag};

/// Writes text in quotes, escaped.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", escape_drawn(text).replace('"', "\\\""))
}

/// The words that dendrer prints where it prints names of a trace: verdicts, authors, parts of a thread, members of an intent.
const WORDS: [&str; 16] = [
    "allow",
    "deny",
    "escalate",
    "ok",
    "FAIL",
    "refused",
    "INTERRUPT",
    "RESUME",
    "ERROR",
    "UNKNOWN",
    "user",
    "runtime",
    "institution",
    "confidence",
    "uncertainty",
    "-",
];

/// Returns whether a name of a trace is a word of dendrer, or begins with one.
pub fn passes_for_a_word(name: &str) -> bool {
    let is_of_word = |c: char| c.is_alphanumeric() || "_-./".contains(c);
    let first = name.split(|c| !is_of_word(c)).next().unwrap_or_default();
    WORDS.contains(&first)
}

/// Writes a name of a trace (an agent, a tool, a member, a node) as one word: a name that has a blank, passes for a word
/// of dendrer or begins with a bracket is written in quotes.
pub fn name(name: &str) -> String {
    let parts = |c: char| c.is_whitespace() || c.is_control() || c == '"';
    match name.is_empty() || name.starts_with('(') || name.contains(parts) || passes_for_a_word(name) {
        true => format!("\"{}\"", escape(name).replace('"', "\\\"")),
        false => escape(name),
    }
}

/// Writes a value on one line: a text that holds JSON as that JSON, other texts in quotes, everything else as JSON.
pub fn value(value: &Value) -> String {
    match value {
        Value::String(text) => held_json(text).unwrap_or_else(|| quoted(text)),
        other => json(other),
    }
}

/// As [`value`], but every text in quotes, so that a text that holds JSON and the JSON differ.
pub fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        other => json(other),
    }
}

/// As [`as_text`], with the Unicode form of each text: marks that make one character with the one before are escapes.
pub fn in_its_form(value: &Value) -> String {
    match value {
        Value::String(text) => format!("\"{}\"", escape(text).replace('"', "\\\"")),
        other => escaped_json(&with_user_names(other), true),
    }
}

/// Returns the object or list of JSON that a text holds, as it was written: on one line, and what [`acts`] escaped as
/// JSON has it. `None` for any other text.
pub fn held_json(text: &str) -> Option<String> {
    let inner = text.trim_matches([' ', '\n', '\r', '\t']);
    let is_closed =
        inner.starts_with('{') && inner.ends_with('}') || inner.starts_with('[') && inner.ends_with(']');
    let is_json = is_closed && json_text::parse_door(inner.as_bytes()).is_ok();
    // Line breaks of JSON are between its tokens: inside of a text they are escapes.
    let on_one_line = || inner.split(['\n', '\r', '\t']).map(str::trim).collect::<Vec<_>>().join(" ");
    is_json.then(|| {
        escape_json(&if inner.contains(['\n', '\r', '\t']) { on_one_line() } else { inner.to_owned() })
    })
}

/// Writes a value as JSON with the names that its user wrote.
fn with_user_names(value: &Value) -> String {
    match value.to_string() {
        // A `$` in front of a name is rare.
        text if text.contains("\"$$") => tag::with_user_names(value).to_string(),
        text => text,
    }
}

/// JSON has its own escapes for what lies below 0x20; the rest that acts is escaped in the same way.
fn escape_json(json: &str) -> String {
    escaped_json(json, false)
}

/// As [`escape_json`]; with `shows_forms`, marks that make one character with the one before are escaped as well.
fn escaped_json(json: &str, shows_forms: bool) -> String {
    let mut out = String::with_capacity(json.len());
    let mut before = ' ';
    let look_alikes = look_alikes(json);
    for (at, c) in json.char_indices() {
        let is_marked = acts(c) && !is_of_emoji(json, at)
            || is_mark_alone(json, at)
            || shows_forms && is_of_the_one_before(before, c)
            || look_alikes.contains(&at);
        before = c;
        if is_marked {
            let mut units = [0u16; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    out
}

/// Writes a document for a machine, still safe to look at: valid JSON with the same value, in the names of the user.
pub fn json(value: &Value) -> String {
    escape_json(&with_user_names(value))
}

/// As [`json`], for a value that has the names of the user already.
pub fn json_as_it_is(value: &Value) -> String {
    escape_json(&value.to_string())
}

/// Spells out what is not ASCII as JSON does, in text that was escaped already: JSON in it stays JSON.
pub fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let mut units = [0u16; 2];
        match c.is_ascii() {
            true => out.push(c),
            false => {
                c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")))
            }
        }
    }
    out
}

/// As [`json`], in ASCII alone.
pub fn json_ascii(value: &Value) -> String {
    ascii(&json(value))
}

/// Writes a path as people do, so that it reads back as the place: names that are no words are JSON texts, in which what [`acts`] is escaped
/// as JSON has it.
pub fn path(pointer: &Pointer) -> String {
    escaped_json(&pointer.dotted(), true)
}

/// Puts every line of a text behind a gutter, escaped.
pub fn gutter(text: &str) -> Vec<String> {
    text.split('\n').map(|line| format!("  | {}", escape(line))).collect()
}

/// Writes a command so that bash reads the same arguments back. A character that [`acts`] is written in the form
/// `$'..'`, which shows it and still means it.
pub fn shell(argv: &[String]) -> String {
    shell_words(argv, false)
}

/// As [`shell`]; in ASCII alone, other characters are escapes of bash.
pub fn shell_words(argv: &[String], is_ascii: bool) -> String {
    let word = |word: &String| {
        let plain = |c: u8| c.is_ascii_alphanumeric() || b"-_./@:#=,+%".contains(&c);
        let shown = escape(word).replace("\\\\", "\\");
        match () {
            () if !word.is_empty() && word.bytes().all(plain) => word.clone(),
            () if shown == *word && (word.is_ascii() || !is_ascii) => {
                format!("'{}'", word.replace('\'', "'\\''"))
            }
            () => format!("$'{}'", acting(word, is_ascii)),
        }
    };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Writes a word for a place between `$'` and `'`.
fn acting(word: &str, is_ascii: bool) -> String {
    let escape = |c: char| match c {
        '\\' => "\\\\".to_owned(),
        '\'' => "\\'".to_owned(),
        c if (c.is_ascii() || !is_ascii) && escape(&c.to_string()) == c.to_string() => c.to_string(),
        c if u32::from(c) < 0x80 => format!("\\x{:02x}", u32::from(c)),
        c => format!("\\U{:08x}", u32::from(c)),
    };
    word.chars().map(escape).collect()
}

/// The status of a result in words. One that is in no list is no failure, and is named.
pub(crate) fn status(word: &str) -> String {
    match is_failure(word) {
        Some(true) => format!("FAIL {}", name(word)),
        Some(false) => word.to_lowercase(),
        None => format!("status {}", name(word)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_acts_gets_through() {
        assert_eq!(
            escape("a\x1b[31mb\u{202e}c\nd\u{9b}e\u{200b}"),
            "a\\x1b[31mb\\u{202e}c\\nd\\x9be\\u{200b}"
        );
        assert_eq!(quoted("say \"hi\"\\"), "\"say \\\"hi\\\"\\\\\"");
        for code in 0..=0x10ffffu32 {
            let Some(c) = char::from_u32(code) else { continue };
            let shown = escape(&c.to_string());
            assert!(!shown.chars().any(|c| c.is_control()), "{code:x}");
            let shown = json(&Value::from(c.to_string()));
            assert!(!shown.chars().any(acts), "{code:x}");
        }
    }

    #[test]
    fn an_emoji_is_shown_and_a_joiner_elsewhere_is_not() {
        for emoji in [
            "👨\u{200d}👩\u{200d}👧",
            "❤\u{fe0f}",
            "1\u{fe0f}\u{20e3}",
            "👩🏽\u{200d}🚒",
            "🏳\u{fe0f}\u{200d}🌈",
        ] {
            assert_eq!(escape(emoji), emoji);
            assert_eq!(json(&Value::from(emoji)), format!("\"{emoji}\""));
        }
        assert_eq!(escape("a\u{200d}b👧\u{200d} x\u{fe0f}"), "a\\u{200d}b👧\\u{200d} x\\u{fe0f}");
    }

    #[test]
    fn a_text_of_json_is_shown_as_that_json() {
        let shown = |text: &str| value(&Value::from(text));
        assert_eq!(shown(r#"{"price": 310.0}"#), r#"{"price": 310.0}"#);
        assert_eq!(shown(" [1,\n  2]\n"), "[1, 2]");
        assert_eq!(shown("{no}"), "\"{no}\"");
        assert_eq!(shown("5"), "\"5\"");
        assert_eq!(shown("{\"a\":\"\u{202e}\"}"), "{\"a\":\"\\u202e\"}");
    }

    #[test]
    fn documents_stay_the_same_value() {
        let value = Value::from("a\u{202e}\u{e0041}\u{7f}");
        let text = json(&value);
        assert_eq!(text, "\"a\\u202e\\udb40\\udc41\\u007f\"");
        assert_eq!(dendrer_object::json::parse_door(text.as_bytes()).unwrap(), value);
        let value = Value::from("Zürich \u{1f682}");
        assert_eq!(json_ascii(&value), r#""Z\u00fcrich \ud83d\ude82""#);
        assert_eq!(dendrer_object::json::parse_door(json_ascii(&value).as_bytes()).unwrap(), value);
        assert_eq!(ascii("Zürich"), "Z\\u00fcrich");
        assert_eq!(shell_words(&["Zürich".to_owned()], true), "$'Z\\U000000fcrich'");
    }

    #[test]
    fn a_name_that_passes_for_a_word_of_dendrer_is_quoted() {
        for plain in ["router", "allow_list", "quoter/check", "ok-1", "田中", "user2", "search(x)"] {
            assert_eq!(name(plain), plain);
        }
        for (named, shown) in [
            ("allow pay", "\"allow pay\""),
            ("allow", "\"allow\""),
            ("FAIL:x", "\"FAIL:x\""),
            ("user", "\"user\""),
            ("INTERRUPT", "\"INTERRUPT\""),
            ("(answer)", "\"(answer)\""),
            ("confidence  0.990", "\"confidence  0.990\""),
            ("a\u{a0}b", "\"a\\u{a0}b\""),
            ("\"x\"", "\"\\\"x\\\"\""),
            ("", "\"\""),
        ] {
            assert_eq!(name(named), shown);
        }
    }

    #[test]
    fn a_gutter_holds_every_line() {
        assert_eq!(gutter("VERIFIED\nexit 0"), ["  | VERIFIED", "  | exit 0"]);
    }

    #[test]
    #[cfg(unix)]
    fn bash_reads_the_arguments_of_a_help_line_back() {
        let words = [
            "plain-1_2./a@b:#c=d,e+%",
            "",
            "a b.dnd",
            "$(touch pwned).dnd",
            "it's",
            "back\\slash",
            "\\n",
            "ä\u{202e}b",
            "\u{e0041}",
            "line\nnext\ttab\x1b[31m'\"`$x\\",
            "~/a*?",
        ];
        let argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let line = shell(&argv);
        assert!(!line.contains(|c: char| c.is_control() || c == '\u{202e}'), "{line:?}");
        let script = format!("printf '%s\\0' {line}");
        let output =
            std::process::Command::new("bash").env("LC_ALL", "C.UTF-8").arg("-c").arg(&script).output();
        let output = output.expect("bash is installed, as for the completions");
        let back: Vec<&str> =
            std::str::from_utf8(&output.stdout).expect("UTF-8").split_terminator('\0').collect();
        assert_eq!(back, words, "{script}");
    }
}
