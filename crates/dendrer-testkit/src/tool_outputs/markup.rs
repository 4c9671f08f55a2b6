//! Fills templates and encodes texts, and keeps the place of every secret through each encoding.
//!
//! A field is `§name§`, or `§name|filter|filter§` for a value that its syntax escapes, encodes or breaks. Rule: an
//! encoding goes through [`Marked::map`] or [`Marked::break_every`], so that no place is searched for afterwards.

use super::draw::{Worth, base64, draw};
use crate::Dice;

/// The mark of a character that was put inside a secret by a line break of its syntax.
const BREAK: char = '\u{1}';

/// How much of a text a secret is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stain {
    Plain,
    /// Part of the secret of this number.
    Secret(usize),
    /// May be redacted or not.
    Optional,
}

/// A text, and for each of its characters whether it is secret.
#[derive(Debug, Clone, Default)]
pub(super) struct Marked {
    pub(super) chars: Vec<(char, Stain)>,
    pub(super) secrets: usize,
}

impl Marked {
    /// Fills the fields of a template.
    ///
    /// # Panics
    ///
    /// If a field or a filter has no such name.
    pub(super) fn of(template: &str, dice: &mut Dice) -> Self {
        let mut marked = Self::default();
        for (at, part) in template.split('§').enumerate() {
            if at % 2 == 0 {
                marked.push(part, Stain::Plain);
                continue;
            }
            let mut names = part.split('|');
            let field = names.next().unwrap_or_default();
            let drawn = draw(field, dice).unwrap_or_else(|| panic!("no field {field:?} in {template:?}"));
            let text = names.fold(drawn.text, |text, filter| filtered(&text, filter));
            let stain = match drawn.worth {
                Worth::Plain => Stain::Plain,
                Worth::Optional => Stain::Optional,
                Worth::Secret => {
                    marked.secrets += 1;
                    Stain::Secret(marked.secrets - 1)
                }
            };
            marked.push(&text, stain);
        }
        marked
    }

    fn push(&mut self, text: &str, stain: Stain) {
        let mut inside_break = false;
        for c in text.chars() {
            match c {
                BREAK => inside_break = !inside_break,
                '\n' if stain != Stain::Plain => self.chars.push((c, Stain::Optional)),
                c if inside_break && stain != Stain::Plain => self.chars.push((c, Stain::Optional)),
                c => self.chars.push((c, stain)),
            }
        }
    }

    /// Returns the text.
    pub(super) fn text(&self) -> String {
        self.chars.iter().map(|(c, _)| *c).collect()
    }

    /// Replaces each character; the replacement has the stain of its character.
    fn map(&mut self, replace: impl Fn(char) -> Option<String>) {
        let mut out = Vec::with_capacity(self.chars.len() * 2);
        for (c, stain) in self.chars.drain(..) {
            match replace(c) {
                Some(text) => out.extend(text.chars().map(|c| (c, stain))),
                None => out.push((c, stain)),
            }
        }
        self.chars = out;
    }

    /// Puts plain texts around this one.
    fn surround(&mut self, before: &str, after: &str) {
        let rest = std::mem::take(&mut self.chars);
        self.push(before, Stain::Plain);
        self.chars.extend(rest);
        self.push(after, Stain::Plain);
    }

    /// Begins each line with the text that `prefix` returns.
    fn prefix_lines(&mut self, mut prefix: impl FnMut(usize) -> String) {
        let mut out = Vec::with_capacity(self.chars.len() * 2);
        let mut line = 0;
        out.extend(prefix(line).chars().map(|c| (c, Stain::Plain)));
        for (c, stain) in self.chars.drain(..) {
            out.push((c, stain));
            if c == '\n' {
                line += 1;
                out.extend(prefix(line).chars().map(|c| (c, Stain::Optional)));
            }
        }
        self.chars = out;
    }

    /// Breaks lines that are longer than `width` characters, with `with` for the break.
    fn break_every(&mut self, width: usize, with: &str) {
        let mut out = Vec::with_capacity(self.chars.len() + self.chars.len() / width);
        let mut column = 0;
        for (c, stain) in self.chars.drain(..) {
            if column == width && c != '\n' {
                out.extend(with.chars().map(|c| (c, Stain::Optional)));
                column = 0;
            }
            column = if c == '\n' { 0 } else { column + 1 };
            out.push((c, stain));
        }
        self.chars = out;
    }

    /// Encodes the whole text as base64. A character that encodes any bit of a secret is secret, the others are
    /// optional: a reader cannot take a part of a code.
    fn encode_base64(&mut self) {
        let (bytes, stains) = self.bytes();
        let encoded = base64(&bytes);
        let stain = |at: usize| {
            let bits = at * 6 / 8..=(at * 6 + 5) / 8;
            let mut all = bits.filter_map(|byte| stains.get(byte));
            all.find(|stain| matches!(stain, Stain::Secret(_))).copied().unwrap_or(Stain::Optional)
        };
        self.chars = encoded.chars().enumerate().map(|(at, c)| (c, stain(at))).collect();
    }

    /// Encodes the whole text as hexadecimal digits.
    fn encode_hex(&mut self) {
        let (bytes, stains) = self.bytes();
        self.chars.clear();
        for (byte, stain) in bytes.iter().zip(stains) {
            let stain = if stain == Stain::Plain { Stain::Optional } else { stain };
            self.chars.extend(format!("{byte:02x}").chars().map(|c| (c, stain)));
        }
    }

    /// Encodes the whole text as quoted-printable of RFC 2045: lines of at most 76 characters, no code divided.
    fn encode_quoted_printable(&mut self) {
        let mut out = Vec::with_capacity(self.chars.len() * 2);
        let mut column = 0;
        for (c, stain) in self.chars.drain(..) {
            let code = if c == '=' || !c.is_ascii() { quoted_printable(c) } else { c.to_string() };
            if column + code.len() > 75 && c != '\n' {
                out.extend("=\n".chars().map(|c| (c, Stain::Optional)));
                column = 0;
            }
            column = if c == '\n' { 0 } else { column + code.len() };
            out.extend(code.chars().map(|c| (c, stain)));
        }
        self.chars = out;
    }

    fn bytes(&self) -> (Vec<u8>, Vec<Stain>) {
        let mut bytes = Vec::new();
        let mut stains = Vec::new();
        for (c, stain) in &self.chars {
            let mut buffer = [0; 4];
            let encoded = c.encode_utf8(&mut buffer).as_bytes();
            bytes.extend_from_slice(encoded);
            stains.extend(encoded.iter().map(|_| *stain));
        }
        (bytes, stains)
    }

    /// Applies a layer, an encoding or a frame of the whole text.
    ///
    /// # Panics
    ///
    /// If no layer has this name.
    pub(super) fn layer(&mut self, name: &str, dice: &mut Dice) {
        match name {
            "json" => self.map(json_escape),
            "go_json" => self.map(|c| match c {
                '<' | '>' | '&' | '=' => Some(format!("\\u{:04x}", u32::from(c))),
                c => json_escape(c),
            }),
            "html" => self.map(xml_escape),
            "percent" => self.map(percent_escape),
            "qp" => self.encode_quoted_printable(),
            "base64" => self.encode_base64(),
            "base64_lines" => {
                self.encode_base64();
                self.break_every(76, "\n");
            }
            "hex" => self.encode_hex(),
            "wrap64" => self.break_every(64, "\n"),
            "wrap76" => self.break_every(76, "\n"),
            "wrap80" => self.break_every(80, "\n"),
            "wrap72_indent" => self.break_every(72, "\n    "),
            "backslash" => self.break_every(72, "\\\n"),
            "crlf" => self.map(|c| (c == '\n').then(|| "\r\n".to_owned())),
            other => self.frame(other, dice),
        }
    }

    /// Puts the text into the frame of a tool that shows it: a log, a chat message, numbered lines.
    fn frame(&mut self, name: &str, dice: &mut Dice) {
        let start = dice.below(80) as usize + 1;
        let second = dice.below(60);
        match name {
            "log" => self.prefix_lines(|line| format!("2026-03-14 09:12:{second:02}.{:03} | INFO     | ", line % 1000)),
            "log_iso" => self.prefix_lines(|_| format!("2026-03-14T09:12:{second:02}Z INFO [worker-3] ")),
            "log_actions" => self.prefix_lines(|line| format!("2026-03-14T09:12:{second:02}.{line:07}Z ")),
            "compose_log" => self.prefix_lines(|_| "web-1  | ".to_owned()),
            "cat_n" => self.prefix_lines(|line| format!("{:6}\t", start + line)),
            "arrow_n" => self.prefix_lines(|line| format!("{:5}→", start + line)),
            "grep_n" => self.prefix_lines(|line| format!("config/app.conf:{}:", start + line)),
            "quote" => self.prefix_lines(|_| "> ".to_owned()),
            "diff" => self.prefix_lines(|_| "+".to_owned()),
            "comment" => self.prefix_lines(|_| "# ".to_owned()),
            "indent" => self.prefix_lines(|_| "        ".to_owned()),
            "fence" => self.surround("Here is the output:\n\n```\n", "\n```\n"),
            "ansi" => self.surround("\u{1b}[2m$\u{1b}[0m \u{1b}[32m", "\u{1b}[0m\n"),
            "tool_message" => self.surround(r#"{"role":"tool","tool_call_id":"call_8Yt","content":""#, r#""}"#),
            "openai_call" => self.surround(
                r#"{"id":"call_8Yt","type":"function","function":{"name":"run_shell","arguments":"{\"command\":\""#,
                r#"\"}"}}"#,
            ),
            "anthropic_call" => self.surround(
                r#"{"type":"tool_use","id":"toolu_01A","name":"Write","input":{"file_path":"/app/x","content":""#,
                r#""}}"#,
            ),
            "event" => self.surround(r#"{"event":"tool_result","payload":"{\"stdout\":\""#, r#"\",\"exit\":0}"}"#),
            "deep_event" => self.surround(r#"{"log":"{\"msg\":\"{\\\"out\\\":\\\""#, r#"\\\"}\"}"}"#),
            "form" => self.surround("POST /submit HTTP/1.1\nContent-Length: 311\n\nbody=", "&submit=1"),
            "pre" => self.surround("<html><body><pre>", "</pre></body></html>"),
            "mail" => self.surround(
                "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n",
                "\n\n--\nSent from the office\n",
            ),
            "mail_base64" => self.surround(
                "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n",
                "\n",
            ),
            "echo_base64" => self.surround("$ base64 -w0 .env\n", "\n"),
            "echo_hex" => self.surround("$ xxd -p -c0 .env\n", "\n"),
            "data_uri" => self.surround("data:text/plain;base64,", "\n"),
            other => panic!("no layer {other:?}"),
        }
    }
}

/// Escapes, encodes or breaks one value as its syntax needs.
///
/// # Panics
///
/// If no filter has this name.
fn filtered(value: &str, filter: &str) -> String {
    let each = |escape: fn(char) -> Option<String>| -> String {
        value.chars().map(|c| escape(c).unwrap_or_else(|| c.to_string())).collect()
    };
    let before = |signs: &str, with: &str| -> String {
        value.chars().map(|c| if signs.contains(c) { format!("{with}{c}") } else { c.to_string() }).collect()
    };
    match filter {
        "json" => each(json_escape),
        "xml" => each(xml_escape),
        "url" => each(percent_escape),
        "form" => each(percent_escape).replace("%20", "+"),
        "numeric" => value.chars().map(|c| format!("&#{};", u32::from(c))).collect(),
        "unicode" => value.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect(),
        "hex_escape" => value.chars().map(|c| format!("\\x{:02x}", u32::from(c))).collect(),
        "sql" | "yaml1" => value.replace('\'', "''"),
        "csv" | "ps" => value.replace('"', "\"\""),
        "sh1" => value.replace('\'', "'\\''"),
        "sh2" => before("\"\\$`", "\\"),
        "sh0" => before("\"'\\$`!&*()[]{}<>?;|# ~", "\\"),
        "py1" => before("'\\", "\\"),
        "props" => before("\\", "\\"),
        "pgpass" => before(":\\", "\\"),
        "b64" => base64(value.as_bytes()),
        "b64user" => base64(format!("deploy:{value}").as_bytes()),
        "b64url" => base64(value.as_bytes()).replace('+', "-").replace('/', "_").replace('=', ""),
        "hex" => value.bytes().map(|byte| format!("{byte:02x}")).collect(),
        "wrap40" => broken(value, 40, "\n"),
        "wrap80" => broken(value, 80, "\n"),
        "wrap64" => broken(value, 64, "\n"),
        "wrap76" => broken(value, 76, "\n"),
        "fold" => broken(value, 40, "\n    "),
        "indent2" => value.replace('\n', &format!("{BREAK}\n  {BREAK}")),
        "bs" => broken(value, 40, "\\\n"),
        "soft" => broken(value, 48, "=\n"),
        "cat_py" => broken(value, 24, "\"\n    \""),
        "cat_java" => broken(value, 24, "\" +\n        \""),
        "pad10" => padded(value, 10),
        "pad36" => padded(value, 36),
        other => panic!("no filter {other:?}"),
    }
}

/// Breaks a value every `width` characters, and marks the break as no part of the secret.
fn broken(value: &str, width: usize, with: &str) -> String {
    let mut out = String::new();
    for (at, c) in value.chars().enumerate() {
        if at > 0 && at % width == 0 {
            out.push(BREAK);
            out += with;
            out.push(BREAK);
        }
        out.push(c);
    }
    out
}

/// Fills a column of a table with blanks, which are no part of the value.
fn padded(value: &str, width: usize) -> String {
    format!("{value}{BREAK}{}{BREAK}", " ".repeat(width.saturating_sub(value.chars().count())))
}

fn json_escape(c: char) -> Option<String> {
    Some(match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        c if u32::from(c) < 0x20 => format!("\\u{:04x}", u32::from(c)),
        _ => return None,
    })
}

fn xml_escape(c: char) -> Option<String> {
    Some(match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        '\'' => "&#39;".to_owned(),
        _ => return None,
    })
}

fn percent_escape(c: char) -> Option<String> {
    if c.is_ascii_alphanumeric() || "-._~".contains(c) {
        return None;
    }
    let mut buffer = [0; 4];
    Some(c.encode_utf8(&mut buffer).bytes().map(|byte| format!("%{byte:02X}")).collect())
}

fn quoted_printable(c: char) -> String {
    let mut buffer = [0; 4];
    c.encode_utf8(&mut buffer).bytes().map(|byte| format!("={byte:02X}")).collect()
}
