//! Canonical JSON out (RFC 8785), and two ways in: the canonical reader and the door.
//!
//! The canonical reader accepts exactly the bytes the writer gives; whatever else is JSON is an error there.
//! The door takes JSON as people and libraries write it, including what Python and JavaScript let slip (NaN,
//! infinities, lone surrogates), and turns it into values of the format without losing anything.
//!
//! Rule: for every value, reading what was written gives the value back, and for every accepted canonical text, writing
//! what was read gives the text back.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::Code;
use crate::number::{Number, NumberError};
use crate::tag;
use crate::value::{Array, Object, ObjectEntry, Value, compare_names};

/// How deep arrays and objects may be nested in one document at the door.
pub const DEPTH_MAX: usize = 128;

/// How many bytes one value may have in canonical form: 64 MiB.
pub const VALUE_SIZE_MAX: usize = 64 << 20;

/// How many bytes the values of one record may have together. A value that shares its pieces takes little of a log or a bundle
/// and all of this in memory.
pub const RECORD_SIZE_MAX: usize = 512 << 20;

/// How many bytes one document at the door may have before it is parsed. Above [`VALUE_SIZE_MAX`] because
/// white space, escapes and several large values in one document are not yet too much.
pub const DOCUMENT_SIZE_MAX: usize = 256 << 20;

/// Bundle lines and disclosures wrap values that were already as deep as the door allows.
const CANONICAL_DEPTH_MAX: usize = DEPTH_MAX + 8;

/// Why a text was not accepted, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonError {
    /// The fault.
    pub kind: JsonErrorKind,
    /// The byte offset in the text.
    pub offset: usize,
    /// The JSON pointer of the value that was being read (RFC 6901), empty at the top.
    pub path: String,
}

/// A fault of a JSON text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonErrorKind {
    /// The grammar of RFC 8259 does not allow this byte.
    #[error("not JSON: expected {0}")]
    Syntax(&'static str),
    /// The bytes are not UTF-8.
    #[error("not UTF-8 (bytes belong in {{\"$bytes\":\"<base64url>\"}} and --tagged)")]
    NotUtf8,
    /// Two members of one object have the same name.
    #[error("the name {0:?} stands twice in one object")]
    DuplicateName(String),
    /// Arrays and objects are nested beyond [`DEPTH_MAX`].
    #[error("nested deeper than {DEPTH_MAX} levels")]
    TooDeep,
    /// The document is longer than [`DOCUMENT_SIZE_MAX`], or a value than [`VALUE_SIZE_MAX`].
    #[error("{size} bytes are more than the {max} that are accepted")]
    TooLarge {
        /// How many bytes there are.
        size: usize,
        /// How many there may be.
        max: usize,
    },
    /// A number with a fraction or an exponent lies beyond the doubles.
    #[error("the number is outside the range of a double")]
    NumberRange,
    /// A lone surrogate where the text must be well-formed.
    #[error("a lone surrogate is not text")]
    LoneSurrogate,
    /// A tagged value is not one of the forms of the format.
    #[error("not a tagged value of the format: {0}")]
    Tag(&'static str),
    /// JSON, but not the one spelling the format has for it.
    #[error("not canonical: {0}")]
    NotCanonical(&'static str),
}

impl JsonError {
    fn new(kind: JsonErrorKind, offset: usize) -> JsonError {
        JsonError { kind, offset, path: String::new() }
    }

    fn within(mut self, step: impl fmt::Display) -> JsonError {
        // Deep paths would grow with the square of the depth; the innermost steps are the ones that help.
        if self.path.len() < 4096 {
            self.path = format!("/{step}{}", self.path);
        }
        self
    }

    /// The code under which `dendrer explain` knows this error.
    pub fn code(&self) -> Code {
        match self.kind {
            JsonErrorKind::Syntax(_) => Code::E0201,
            JsonErrorKind::DuplicateName(_) => Code::E0202,
            JsonErrorKind::TooDeep => Code::E0204,
            JsonErrorKind::TooLarge { .. } => Code::E0205,
            JsonErrorKind::NotUtf8 | JsonErrorKind::LoneSurrogate => Code::E0206,
            JsonErrorKind::NumberRange => Code::E0207,
            JsonErrorKind::Tag(_) => Code::E0208,
            JsonErrorKind::NotCanonical(_) => Code::E0306,
        }
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.kind, self.offset)?;
        if self.path.is_empty() { Ok(()) } else { write!(f, ", in {}", self.path) }
    }
}

impl std::error::Error for JsonError {}

/// Writes the canonical text of a value.
pub fn to_vec(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write(value, &mut out);
    out
}

/// Writes the canonical text of a value as a string.
pub fn to_string(value: &Value) -> String {
    String::from_utf8(to_vec(value)).expect("canonical text is UTF-8")
}

/// Appends the canonical text of a value.
pub fn write(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => number.write(out),
        Value::String(text) => write_string(text, out),
        Value::Array(array) => {
            out.push(b'[');
            for (index, item) in array.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write(item, out);
            }
            out.push(b']');
        }
        Value::Object(object) => {
            out.push(b'{');
            for (index, (key, member)) in object.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write_string(key, out);
                out.push(b':');
                write(member, out);
            }
            out.push(b'}');
        }
    }
}

/// Appends a string with quotes and the escapes of RFC 8785 3.2.2.2.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let (plain, tail) = rest.split_at(plain_prefix(rest));
        out.extend_from_slice(plain);
        let Some((&byte, after)) = tail.split_first() else { break };
        rest = after;
        let short = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            0x08 => b'b',
            0x09 => b't',
            0x0a => b'n',
            0x0c => b'f',
            0x0d => b'r',
            _ => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(crate::digest::hex(&[byte]).as_bytes());
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', short]);
    }
    out.push(b'"');
}

/// Returns how many bytes in front may stand in a string as they are: up to the first quote, backslash or byte below
/// 0x20.
#[inline]
pub fn plain_prefix(bytes: &[u8]) -> usize {
    let special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    let Some(last) = bytes.last_chunk::<8>() else {
        return bytes.iter().position(special).unwrap_or(bytes.len());
    };
    // Long texts by blocks without a branch in them, which compilers make vector instructions of.
    let is_plain = |block: &&[u8; 64]| !block.iter().fold(false, |found, byte| found | special(byte));
    let plain = bytes.as_chunks::<64>().0.iter().take_while(is_plain).count() * 64;
    // Eight at a time, the last eight overlapping those before.
    for (index, chunk) in bytes[plain..].as_chunks::<8>().0.iter().enumerate() {
        if let Some(at) = first_special(*chunk) {
            return plain + index * 8 + at;
        }
    }
    first_special(*last).map_or(bytes.len(), |at| bytes.len() - 8 + at)
}

/// Returns which of eight bytes is the first that needs an escape or ends a string. The high bit of each byte of a
/// difference says whether it is below a limit. A byte that is borrowed from may be marked wrongly; it comes after one
/// that is marked rightly.
#[inline]
fn first_special(bytes: [u8; 8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let word = u64::from_le_bytes(bytes);
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word;
    // With their bit of two turned over, a quote is 0x20, a blank lies above, and what is below 0x20 stays there.
    let marks = (below(word ^ (ONES * 2), 0x21) | below(word ^ (ONES * u64::from(b'\\')), 1)) & HIGH;
    (marks != 0).then(|| marks.trailing_zeros() as usize / 8)
}

/// Reads canonical text: exactly what [`write`] gives, tagged values included.
pub fn parse_canonical(text: &[u8]) -> Result<Value, JsonError> {
    Parser::new(text, Mode::Canonical)?.document::<true>()
}

/// Checks that the text is canonical without building the value.
pub fn check_canonical(text: &[u8]) -> Result<(), JsonError> {
    Parser::new(text, Mode::Canonical)?.document::<false>().map(|_| ())
}

/// Reads JSON as users write it. `NaN`, `Infinity`, `-Infinity` and lone surrogates take their tagged form, and
/// a name that begins with `$` gets a second one, so that it cannot be mistaken for a tag.
pub fn parse_door(text: &[u8]) -> Result<Value, JsonError> {
    check_size(text)?;
    Parser::new(text, Mode::Door)?.document::<true>()
}

/// As [`parse_door`], but names that begin with `$` are taken as the tagged forms they must then be: the
/// way in for what dendrer itself printed.
pub fn parse_tagged(text: &[u8]) -> Result<Value, JsonError> {
    check_size(text)?;
    Parser::new(text, Mode::Tagged)?.document::<true>()
}

fn check_size(text: &[u8]) -> Result<(), JsonError> {
    if text.len() > DOCUMENT_SIZE_MAX {
        let kind = JsonErrorKind::TooLarge { size: text.len(), max: DOCUMENT_SIZE_MAX };
        return Err(JsonError::new(kind, DOCUMENT_SIZE_MAX));
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Canonical,
    Door,
    Tagged,
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    mode: Mode,
    depth: usize,
}

/// A string as read: text, or UTF-16 with a lone surrogate somewhere.
enum Text<'a> {
    Plain(Cow<'a, str>),
    Broken(Vec<u16>),
}

impl<'a> Parser<'a> {
    fn new(bytes: &'a [u8], mode: Mode) -> Result<Parser<'a>, JsonError> {
        let text = std::str::from_utf8(bytes)
            .map_err(|error| JsonError::new(JsonErrorKind::NotUtf8, error.valid_up_to()))?;
        Ok(Parser { text, bytes, at: 0, mode, depth: 0 })
    }

    fn document<const BUILD: bool>(mut self) -> Result<Value, JsonError> {
        self.blank();
        let value = self.value::<BUILD>()?;
        self.blank();
        if self.at < self.bytes.len() {
            return Err(self.error(JsonErrorKind::Syntax("the end of the text")));
        }
        Ok(value)
    }

    fn error(&self, kind: JsonErrorKind) -> JsonError {
        JsonError::new(kind, self.at)
    }

    fn blank(&mut self) {
        // Canonical text has no white space, so there anything blank fails where a token is expected.
        if self.mode != Mode::Canonical {
            while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.bytes.get(self.at) {
                self.at += 1;
            }
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), JsonError> {
        if self.peek() != Some(byte) {
            return Err(self.error(JsonErrorKind::Syntax(expected)));
        }
        self.at += 1;
        Ok(())
    }

    fn value<const BUILD: bool>(&mut self) -> Result<Value, JsonError> {
        match self.peek() {
            Some(b'{') => self.nested(Self::object_value::<BUILD>),
            Some(b'[') => self.nested(Self::array_value::<BUILD>),
            Some(b'"') => self.string_value::<BUILD>(),
            Some(b'-' | b'0'..=b'9') => self.number::<BUILD>(),
            _ => self.word(),
        }
    }

    fn nested(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Value, JsonError>,
    ) -> Result<Value, JsonError> {
        let max = if self.mode == Mode::Canonical { CANONICAL_DEPTH_MAX } else { DEPTH_MAX };
        if self.depth == max {
            return Err(self.error(JsonErrorKind::TooDeep));
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn word(&mut self) -> Result<Value, JsonError> {
        let rest = &self.bytes[self.at..];
        let lenient = self.mode != Mode::Canonical;
        let (length, value) = if rest.starts_with(b"null") {
            (4, Value::Null)
        } else if rest.starts_with(b"true") {
            (4, Value::Bool(true))
        } else if rest.starts_with(b"false") {
            (5, Value::Bool(false))
        } else if lenient && rest.starts_with(b"NaN") {
            (3, tag::float(f64::NAN))
        } else if lenient && rest.starts_with(b"Infinity") {
            (8, tag::float(f64::INFINITY))
        } else {
            return Err(self.error(JsonErrorKind::Syntax("a value")));
        };
        self.at += length;
        Ok(value)
    }

    fn number<const BUILD: bool>(&mut self) -> Result<Value, JsonError> {
        let start = self.at;
        if self.mode != Mode::Canonical && self.bytes[start..].starts_with(b"-Infinity") {
            self.at += 9;
            return Ok(tag::float(f64::NEG_INFINITY));
        }
        while let Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        let token = &self.text[start..self.at];
        let fail = |kind| Err(JsonError::new(kind, start));
        // Small integers are most numbers, and their canonical form is themselves.
        let plain = token.len() < 16
            && token.bytes().all(|c| c.is_ascii_digit())
            && (token.len() == 1 || !token.starts_with('0'));
        if plain && !BUILD {
            return Ok(Value::Null);
        }
        let number = match Number::parse(token) {
            Ok(number) => number,
            Err(NumberError::Syntax) => return fail(JsonErrorKind::Syntax("a number")),
            Err(NumberError::Range) => return fail(JsonErrorKind::NumberRange),
        };
        if self.mode == Mode::Canonical && !plain {
            let mut canonical = Vec::with_capacity(token.len());
            number.write(&mut canonical);
            if canonical != token.as_bytes() {
                return fail(JsonErrorKind::NotCanonical("a number in another spelling"));
            }
        }
        Ok(Value::Number(number))
    }

    fn string_value<const BUILD: bool>(&mut self) -> Result<Value, JsonError> {
        match self.string()? {
            Text::Plain(_) if !BUILD => Ok(Value::Null),
            Text::Plain(text) => Ok(Value::String(Arc::from(text))),
            Text::Broken(units) => Ok(tag::wtf8(&units)),
        }
    }

    fn array_value<const BUILD: bool>(&mut self) -> Result<Value, JsonError> {
        let mut items = Vec::new();
        self.blank();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(Array::default()));
        }
        let mut index = 0usize;
        loop {
            self.blank();
            let item = self.value::<BUILD>().map_err(|error| error.within(index))?;
            if BUILD {
                items.push(item);
            }
            index += 1;
            self.blank();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.error(JsonErrorKind::Syntax("`,` or `]`"))),
            }
        }
        self.at += 1;
        Ok(Value::Array(items.into()))
    }

    fn object_value<const BUILD: bool>(&mut self) -> Result<Value, JsonError> {
        let mut members = Members::default();
        self.blank();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::object());
        }
        let mut last: Option<Cow<'a, str>> = None;
        loop {
            self.blank();
            let key_at = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.error(JsonErrorKind::Syntax("a name in quotes")));
            }
            let key = self.string()?;
            self.blank();
            self.expect(b':', "`:`")?;
            self.blank();
            let key = match key {
                Text::Plain(key) => key,
                Text::Broken(units) => {
                    let value = self.value::<BUILD>().map_err(|error| error.within("?"))?;
                    members.broken.push((units, value));
                    match self.member_end()? {
                        true => break,
                        false => continue,
                    }
                }
            };
            if self.mode == Mode::Canonical {
                match last.as_deref().map(|last| compare_names(last, &key)) {
                    None | Some(std::cmp::Ordering::Less) => {}
                    Some(std::cmp::Ordering::Equal) => {
                        let kind = JsonErrorKind::DuplicateName(key.into_owned());
                        return Err(JsonError::new(kind, key_at));
                    }
                    Some(std::cmp::Ordering::Greater) => {
                        let kind = JsonErrorKind::NotCanonical("names out of order");
                        return Err(JsonError::new(kind, key_at));
                    }
                }
            }
            if self.mode != Mode::Door && tag::is_tag_name(&key) {
                // A tag is the only member of its object, so the whole object can be checked here.
                if last.is_some() {
                    return Err(JsonError::new(JsonErrorKind::Tag("a tag stands alone"), key_at));
                }
                let value = self.value::<true>().map_err(|error| error.within(escape(&key)))?;
                tag::check(&key, &value).map_err(|why| JsonError::new(JsonErrorKind::Tag(why), key_at))?;
                if !self.member_end()? {
                    return Err(self.error(JsonErrorKind::Tag("a tag stands alone")));
                }
                return Ok(Value::record([(Arc::from(key), value)]));
            }
            let value = self.value::<BUILD>().map_err(|error| error.within(escape(&key)))?;
            if BUILD {
                let key: Arc<str> = match self.mode {
                    Mode::Door if key.starts_with('$') => format!("${key}").into(),
                    _ => Arc::from(key.as_ref()),
                };
                members.plain.push(ObjectEntry { key, value, salt: None });
            }
            last = Some(key);
            if self.member_end()? {
                break;
            }
        }
        members.finish(self.mode).map_err(|name| self.error(JsonErrorKind::DuplicateName(name)))
    }

    /// Steps over what follows a member and tells whether the object ended there.
    fn member_end(&mut self) -> Result<bool, JsonError> {
        self.blank();
        let byte = self.peek();
        self.at += 1;
        match byte {
            Some(b',') => Ok(false),
            Some(b'}') => Ok(true),
            _ => {
                self.at -= 1;
                Err(self.error(JsonErrorKind::Syntax("`,` or `}`")))
            }
        }
    }

    fn string(&mut self) -> Result<Text<'a>, JsonError> {
        self.at += 1;
        let start = self.at;
        self.at = start + plain_prefix(&self.bytes[start..]);
        if self.peek() == Some(b'"') {
            let text = &self.text[start..self.at];
            self.at += 1;
            return Ok(Text::Plain(Cow::Borrowed(text)));
        }
        self.string_with_escapes(start)
    }

    fn string_with_escapes(&mut self, start: usize) -> Result<Text<'a>, JsonError> {
        let mut text = String::from(&self.text[start..self.at]);
        // Set once a lone surrogate has been seen; from then on it is the whole string so far.
        let mut broken: Option<Vec<u16>> = None;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(match broken {
                        None => Text::Plain(Cow::Owned(text)),
                        Some(mut units) => {
                            units.extend(text.encode_utf16());
                            Text::Broken(units)
                        }
                    });
                }
                Some(b'\\') => {
                    let unit = self.escape()?;
                    match unit {
                        Unit::Char(c) => text.push(c),
                        Unit::Lone(unit) => {
                            let units = broken.get_or_insert_default();
                            units.extend(text.encode_utf16());
                            units.push(unit);
                            text.clear();
                        }
                    }
                }
                Some(0x20..) => {
                    let from = self.at;
                    self.at = from + plain_prefix(&self.bytes[from..]);
                    text.push_str(&self.text[from..self.at]);
                }
                _ => return Err(self.error(JsonErrorKind::Syntax("the end of the string"))),
            }
        }
    }

    fn escape(&mut self) -> Result<Unit, JsonError> {
        let start = self.at;
        self.at += 1;
        let byte = self.peek();
        self.at += 1;
        let c = match byte {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b't') => '\t',
            Some(b'n') => '\n',
            Some(b'f') => '\u{c}',
            Some(b'r') => '\r',
            Some(b'u') => return self.unicode_escape(start),
            _ => return Err(JsonError::new(JsonErrorKind::Syntax("an escape"), start)),
        };
        if c == '/' && self.mode == Mode::Canonical {
            return Err(JsonError::new(JsonErrorKind::NotCanonical("an escape that is not needed"), start));
        }
        Ok(Unit::Char(c))
    }

    fn unicode_escape(&mut self, start: usize) -> Result<Unit, JsonError> {
        let first = self.hex4(start)?;
        if self.mode == Mode::Canonical {
            let short = matches!(first, 0x08 | 0x09 | 0x0a | 0x0c | 0x0d);
            let lower = self.bytes[start + 2..self.at].iter().all(|c| !c.is_ascii_uppercase());
            if first >= 0x20 || short || !lower {
                return Err(JsonError::new(
                    JsonErrorKind::NotCanonical("an escape in another spelling"),
                    start,
                ));
            }
        }
        if !(0xd800..0xe000).contains(&first) {
            return Ok(Unit::Char(char::from_u32(u32::from(first)).expect("not a surrogate")));
        }
        if first < 0xdc00 && self.bytes[self.at..].starts_with(b"\\u") {
            let pair_at = self.at;
            self.at += 2;
            let second = self.hex4(pair_at)?;
            if (0xdc00..0xe000).contains(&second) {
                let scalar = 0x10000 + ((u32::from(first) - 0xd800) << 10) + (u32::from(second) - 0xdc00);
                return Ok(Unit::Char(char::from_u32(scalar).expect("a surrogate pair is a scalar value")));
            }
            self.at = pair_at;
        }
        Ok(Unit::Lone(first))
    }

    fn hex4(&mut self, start: usize) -> Result<u16, JsonError> {
        let digits = self.bytes.get(self.at..self.at + 4).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
        let Some(digits) = digits else {
            return Err(JsonError::new(JsonErrorKind::Syntax("four hex digits"), start));
        };
        self.at += 4;
        let digit = |c: u8| u16::from((c as char).to_digit(16).map_or(0, |d| d as u8));
        Ok(digits.iter().fold(0u16, |n, &c| n << 4 | digit(c)))
    }
}

enum Unit {
    Char(char),
    Lone(u16),
}

#[derive(Default)]
struct Members {
    plain: Vec<ObjectEntry>,
    broken: Vec<(Vec<u16>, Value)>,
}

impl Members {
    /// Makes the object, or returns the name of a repeated member.
    fn finish(mut self, mode: Mode) -> Result<Value, String> {
        if mode != Mode::Canonical {
            self.plain.sort_by(|a, b| compare_names(&a.key, &b.key));
            if let Some(pair) = self.plain.windows(2).find(|pair| pair[0].key == pair[1].key) {
                return Err(pair[0].key.to_string());
            }
        }
        if self.broken.is_empty() {
            return Ok(Value::Object(Object::from_sorted(self.plain)));
        }
        tag::broken_object(self.plain, self.broken)
    }
}

/// Escapes a name for a JSON pointer (RFC 6901 3).
pub(crate) fn escape(name: &str) -> Cow<'_, str> {
    if name.contains(['~', '/']) {
        Cow::Owned(name.replace('~', "~0").replace('/', "~1"))
    } else {
        Cow::Borrowed(name)
    }
}

#[cfg(test)]
mod tests;
