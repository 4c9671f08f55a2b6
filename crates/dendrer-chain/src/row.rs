//! JSON as Python's `json` reads and writes it. The text of a row decides its hash: `1` and `1.0` differ, members keep their order,
//! strings may hold lone surrogates, and `NaN` is a number.

use std::fmt;

use dendrer_object::json::{self, DEPTH_MAX};
use dendrer_object::{Digest, Value, tag};

/// Levels of lists and objects in a row, at most: its values are recorded below others.
const ROW_DEPTH_MAX: usize = DEPTH_MAX - 8;

/// Digits of an integer that Python reads, at most.
const DIGITS_MAX: usize = 4_300;

/// Text of a row: WTF-8, as Python's strings may hold lone surrogates. The order of its bytes is that of code points.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowText(Box<[u8]>);

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum RowValue {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// An integer, as its digits.
    Int(Box<str>),
    /// A number with a fraction or an exponent, or none that is finite.
    Float(f64),
    /// A string.
    Text(RowText),
    /// A list.
    List(Vec<RowValue>),
    /// An object; members in the order of the text, each name once.
    Object(Vec<(RowText, RowValue)>),
}

/// A text that Python does not read as JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {byte}")]
pub struct RowError {
    /// The fault.
    pub what: &'static str,
    /// Its place, counted in bytes of the row.
    pub byte: usize,
}

impl RowText {
    /// The text, if no surrogate is alone in it.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// Its code points, lone surrogates included.
    fn points(&self) -> impl Iterator<Item = u32> + '_ {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || {
            let (&first, tail) = rest.split_first()?;
            let (more, bits) = match first {
                0..0x80 => (0, u32::from(first)),
                0x80..0xe0 => (1, u32::from(first) & 0x1f),
                0xe0..0xf0 => (2, u32::from(first) & 0x0f),
                _ => (3, u32::from(first) & 0x07),
            };
            rest = &tail[more..];
            Some(tail[..more].iter().fold(bits, |bits, byte| bits << 6 | u32::from(byte & 0x3f)))
        })
    }
}

impl From<&str> for RowText {
    fn from(text: &str) -> RowText {
        RowText(text.as_bytes().into())
    }
}

impl From<&str> for RowValue {
    fn from(text: &str) -> RowValue {
        RowValue::Text(RowText::from(text))
    }
}

impl fmt::Debug for RowText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(&self.0), f)
    }
}

/// Appends a code point. A surrogate takes the three bytes that its number would have.
fn push_point(out: &mut Vec<u8>, point: u32) {
    match char::from_u32(point) {
        Some(char) => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        None => out.extend([
            0xe0 | (point >> 12) as u8,
            0x80 | (point >> 6 & 0x3f) as u8,
            0x80 | (point & 0x3f) as u8,
        ]),
    }
}

impl RowValue {
    /// Reads the text of a row.
    pub fn parse(text: &str) -> Result<RowValue, RowError> {
        let mut parser = RowParser { text, at: 0, depth: 0 };
        parser.blank();
        let value = parser.value()?;
        parser.blank();
        match parser.at == text.len() {
            true => Ok(value),
            false => Err(parser.error("text behind the value")),
        }
    }

    /// A value of the format as Python reads it: a number without a fraction is an integer.
    pub fn of(value: &Value) -> RowValue {
        match value {
            Value::Null => RowValue::Null,
            Value::Bool(is) => RowValue::Bool(*is),
            Value::Number(number) => {
                let text = number.to_string();
                match number.as_f64() {
                    Some(float) if text.contains(['.', 'e', 'E']) => RowValue::Float(float),
                    _ => RowValue::Int(text.into()),
                }
            }
            Value::String(text) => RowValue::Text(RowText::from(&**text)),
            Value::Array(items) => RowValue::List(items.iter().map(RowValue::of).collect()),
            Value::Object(members) => {
                if let Some(special) = RowValue::of_tag(value) {
                    return special;
                }
                let name = |name: &str| RowText::from(tag::user_name(name));
                RowValue::Object(
                    members.iter().map(|(key, value)| (name(key), RowValue::of(value))).collect(),
                )
            }
        }
    }

    /// A number that is not finite, or a text with a lone surrogate.
    fn of_tag(value: &Value) -> Option<RowValue> {
        if let Some(float) = dendrer_object::tag::as_float(value) {
            return Some(RowValue::Float(float));
        }
        let units = dendrer_object::tag::as_wtf8(value)?;
        let mut bytes = Vec::new();
        for unit in char::decode_utf16(units) {
            push_point(&mut bytes, unit.map_or_else(|lone| u32::from(lone.unpaired_surrogate()), u32::from));
        }
        Some(RowValue::Text(RowText(bytes.into())))
    }

    /// The value as the format keeps it. Fails for what is nested too deep.
    pub fn to_value(&self) -> Result<Value, json::JsonError> {
        json::parse_door(self.to_string().as_bytes())
    }

    /// The member of an object.
    pub fn get(&self, name: &str) -> Option<&RowValue> {
        let RowValue::Object(members) = self else { return None };
        members.iter().find(|(key, _)| &*key.0 == name.as_bytes()).map(|(_, value)| value)
    }

    /// The text, if it is one and well-formed.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            RowValue::Text(text) => text.as_str(),
            _ => None,
        }
    }

    /// The number, if it is one.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            RowValue::Float(float) => Some(*float),
            RowValue::Int(digits) => digits.parse().ok(),
            _ => None,
        }
    }

    /// Whether Python takes the value for true.
    pub fn is_truthy(&self) -> bool {
        match self {
            RowValue::Null => false,
            RowValue::Bool(is) => *is,
            RowValue::Int(digits) => &**digits != "0",
            RowValue::Float(float) => *float != 0.0,
            RowValue::Text(text) => !text.0.is_empty(),
            RowValue::List(items) => !items.is_empty(),
            RowValue::Object(members) => !members.is_empty(),
        }
    }

    /// SHA-256 of the value with its names sorted, in hexadecimal.
    pub fn content_hash(&self) -> String {
        let mut text = String::new();
        self.write(true, &mut text);
        hash_text(&text)
    }

    /// Writes as `json.dumps` does, with sorted names if asked.
    fn write(&self, sorted: bool, out: &mut String) {
        match self {
            RowValue::Null => out.push_str("null"),
            RowValue::Bool(is) => out.push_str(if *is { "true" } else { "false" }),
            RowValue::Int(digits) => out.push_str(digits),
            RowValue::Float(float) => write_float(*float, out),
            RowValue::Text(text) => write_text(text, out),
            RowValue::List(items) => {
                out.push('[');
                for (n, item) in items.iter().enumerate() {
                    out.push_str(if n > 0 { ", " } else { "" });
                    item.write(sorted, out);
                }
                out.push(']');
            }
            RowValue::Object(members) => {
                let mut order: Vec<&(RowText, RowValue)> = members.iter().collect();
                if sorted {
                    order.sort_by(|a, b| a.0.cmp(&b.0));
                }
                out.push('{');
                for (n, (name, value)) in order.into_iter().enumerate() {
                    out.push_str(if n > 0 { ", " } else { "" });
                    write_text(name, out);
                    out.push_str(": ");
                    value.write(sorted, out);
                }
                out.push('}');
            }
        }
    }
}

/// As `json.dumps`: members in their order, `, ` and `: ` between them, all that is not ASCII escaped.
impl fmt::Display for RowValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write(false, &mut text);
        f.write_str(&text)
    }
}

/// SHA-256 of a text, in hexadecimal.
pub(crate) fn hash_text(text: &str) -> String {
    Digest::of(text.as_bytes()).hex()
}

fn write_text(text: &RowText, out: &mut String) {
    out.push('"');
    for point in text.points() {
        match point {
            0x22 => out.push_str("\\\""),
            0x5c => out.push_str("\\\\"),
            0x0a => out.push_str("\\n"),
            0x0d => out.push_str("\\r"),
            0x09 => out.push_str("\\t"),
            0x0c => out.push_str("\\f"),
            0x08 => out.push_str("\\b"),
            0x20..0x7f => out.push(point as u8 as char),
            0..0x1_0000 => out.push_str(&format!("\\u{point:04x}")),
            _ => {
                let rest = point - 0x1_0000;
                let (high, low) = (0xd800 + (rest >> 10), 0xdc00 + (rest & 0x3ff));
                out.push_str(&format!("\\u{high:04x}\\u{low:04x}"));
            }
        }
    }
    out.push('"');
}

/// As Python's `float.__repr__`: the shortest digits, with an exponent below 1e-4 and from 1e16 on.
fn write_float(float: f64, out: &mut String) {
    if !float.is_finite() {
        let name = if float.is_nan() { "NaN" } else { "Infinity" };
        out.push_str(if float < 0.0 { "-" } else { "" });
        return out.push_str(name);
    }
    let text = format!("{float:e}");
    let (digits, exponent) = text.split_once('e').expect("a number in scientific notation has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent of a double");
    if (-4..16).contains(&exponent) {
        let plain = float.to_string();
        out.push_str(&plain);
        out.push_str(if plain.contains('.') { "" } else { ".0" });
        return;
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    out.push_str(&format!("{digits}e{sign}{:02}", exponent.unsigned_abs()));
}

struct RowParser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl RowParser<'_> {
    fn error(&self, what: &'static str) -> RowError {
        RowError { what, byte: self.at }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blank(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn takes(&mut self, word: &str) -> bool {
        let is = self.text[self.at..].starts_with(word);
        self.at += if is { word.len() } else { 0 };
        is
    }

    fn value(&mut self) -> Result<RowValue, RowError> {
        const WORDS: [(&str, RowValue); 6] = [
            ("null", RowValue::Null),
            ("true", RowValue::Bool(true)),
            ("false", RowValue::Bool(false)),
            ("NaN", RowValue::Float(f64::NAN)),
            ("Infinity", RowValue::Float(f64::INFINITY)),
            ("-Infinity", RowValue::Float(f64::NEG_INFINITY)),
        ];
        match self.peek() {
            None => Err(self.error("the row ends early")),
            Some(b'"') => Ok(RowValue::Text(self.string()?)),
            Some(b'{') => self.nested(RowParser::object),
            Some(b'[') => self.nested(RowParser::list),
            _ => match WORDS.into_iter().find(|(word, _)| self.takes(word)) {
                Some((_, value)) => Ok(value),
                None => self.number(),
            },
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<RowValue, RowError>) -> Result<RowValue, RowError> {
        if self.depth == ROW_DEPTH_MAX {
            return Err(self.error("nested too deep"));
        }
        self.depth += 1;
        self.at += 1;
        self.blank();
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn list(&mut self) -> Result<RowValue, RowError> {
        let mut items = Vec::new();
        if self.takes("]") {
            return Ok(RowValue::List(items));
        }
        loop {
            items.push(self.value()?);
            self.blank();
            if self.takes("]") {
                return Ok(RowValue::List(items));
            }
            if !self.takes(",") {
                return Err(self.error("a comma or the end of the list is missing"));
            }
            self.blank();
        }
    }

    fn object(&mut self) -> Result<RowValue, RowError> {
        let mut members: Vec<(RowText, RowValue)> = Vec::new();
        let mut places = std::collections::HashMap::new();
        if self.takes("}") {
            return Ok(RowValue::Object(members));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.error("a name is missing"));
            }
            let name = self.string()?;
            self.blank();
            if !self.takes(":") {
                return Err(self.error("a colon is missing"));
            }
            self.blank();
            let value = self.value()?;
            // Of equal names Python keeps the place of the first and the value of the last.
            let place = *places.entry(name.clone()).or_insert(members.len());
            match members.get_mut(place) {
                Some(member) => member.1 = value,
                None => members.push((name, value)),
            }
            self.blank();
            if self.takes("}") {
                return Ok(RowValue::Object(members));
            }
            if !self.takes(",") {
                return Err(self.error("a comma or the end of the object is missing"));
            }
            self.blank();
        }
    }

    fn string(&mut self) -> Result<RowText, RowError> {
        self.at += 1;
        let mut out = Vec::new();
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            let plain = rest.iter().take_while(|c| !matches!(c, b'"' | b'\\' | 0..0x20)).count();
            out.extend_from_slice(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                None => return Err(self.error("the row ends in a string")),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(RowText(out.into()));
                }
                Some(b'\\') => self.escape(&mut out)?,
                Some(_) => return Err(self.error("a control character in a string")),
            }
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<(), RowError> {
        let letter = self.text.as_bytes().get(self.at + 1).copied();
        let plain = match letter {
            Some(c @ (b'"' | b'\\' | b'/')) => c,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'u') => {
                let first = self.unit(self.at)?;
                self.at += 6;
                // A high surrogate before a low one is one code point.
                if (0xd800..0xdc00).contains(&first)
                    && let Ok(second @ 0xdc00..0xe000) = self.unit(self.at)
                {
                    self.at += 6;
                    push_point(out, 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00));
                } else {
                    push_point(out, first);
                }
                return Ok(());
            }
            _ => return Err(self.error("no escape of JSON")),
        };
        out.push(plain);
        self.at += 2;
        Ok(())
    }

    /// The unit of the escape `\uXXXX` at a byte.
    fn unit(&self, at: usize) -> Result<u32, RowError> {
        let text = self.text.as_bytes().get(at..at + 6).unwrap_or_default();
        let digits = text.strip_prefix(b"\\u").filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        digits
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or(RowError { what: "four hexadecimal digits are missing", byte: at })
    }

    fn number(&mut self) -> Result<RowValue, RowError> {
        let rest = &self.text[self.at..];
        let bytes = rest.as_bytes();
        let digits = |from: usize| bytes[from..].iter().take_while(|c| c.is_ascii_digit()).count();
        let sign = usize::from(bytes.first() == Some(&b'-'));
        let whole = digits(sign);
        if whole == 0 || (whole > 1 && bytes[sign] == b'0') {
            return Err(self.error("no value of JSON"));
        }
        let mut end = sign + whole;
        let mut is_float = false;
        if bytes.get(end) == Some(&b'.') && digits(end + 1) > 0 {
            end += 1 + digits(end + 1);
            is_float = true;
        }
        if let Some(b'e' | b'E') = bytes.get(end) {
            let signed = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let count = digits((end + 1 + signed).min(bytes.len()));
            if count > 0 {
                end += 1 + signed + count;
                is_float = true;
            }
        }
        let text = &rest[..end];
        if !is_float && whole > DIGITS_MAX {
            return Err(self.error("an integer of more than 4300 digits"));
        }
        self.at += end;
        Ok(match is_float {
            true => RowValue::Float(text.parse().expect("digits with a fraction or an exponent")),
            false if text == "-0" => RowValue::Int("0".into()),
            false => RowValue::Int(text.into()),
        })
    }
}
