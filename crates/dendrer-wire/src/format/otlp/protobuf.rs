//! Requests of OTLP in protobuf, as the JSON that the same request is (opentelemetry-proto 1.x, `trace.proto`).
//!
//! A file is one request, or several, each after its length in four bytes, as the file exporter of the collector writes them. Ids
//! become hexadecimal text. Rule: a field that no table here has is counted in the span that it is in
//! ([`UNKNOWN`]); test `unknown_fields_are_counted_and_named`.

use dendrer_object::{Code, Value, json};

use crate::import::error::ImportError;

/// The member of a span with the number of its fields that are in no table.
pub(super) const UNKNOWN: &str = "unknownFields";

/// How deep messages may be in each other.
const DEPTH: usize = 60;

/// The tag of the first field of a request: the list of resources.
const FIRST: u8 = 0x0a;

/// The encoding of a field.
enum Kind {
    Text,
    /// Bytes as hexadecimal text, and as base64.
    Hex,
    Base64,
    Bool,
    /// A number as such, and as text.
    Number,
    Signed,
    Fixed64,
    Fixed32,
    Double,
    /// A field that states nothing.
    Passed,
    One(&'static Message),
    List(&'static Message),
}

/// A field: its number, its name in JSON, and its kind.
type Field = (u64, &'static str, Kind);

/// The fields of a message.
struct Message {
    fields: &'static [Field],
    /// Whether fields that are in no table are counted here and not further up.
    counts: bool,
}

const fn of(fields: &'static [Field]) -> Message {
    Message { fields, counts: false }
}

static REQUEST: Message =
    Message { fields: &[(1, "resourceSpans", Kind::List(&RESOURCE_SPANS))], counts: true };

static RESOURCE_SPANS: Message = Message {
    fields: &[
        (1, "resource", Kind::One(&RESOURCE)),
        (2, "scopeSpans", Kind::List(&SCOPE_SPANS)),
        (3, "schemaUrl", Kind::Text),
        // Before 1.0: the name of a library is that of a scope.
        (1000, "instrumentationLibrarySpans", Kind::List(&SCOPE_SPANS)),
    ],
    counts: true,
};

static RESOURCE: Message = of(&[
    (1, "attributes", Kind::List(&KEY_VALUE)),
    (2, "droppedAttributesCount", Kind::Number),
    (3, "entityRefs", Kind::Passed),
]);

static SCOPE_SPANS: Message = Message {
    fields: &[(1, "scope", Kind::One(&SCOPE)), (2, "spans", Kind::List(&SPAN)), (3, "schemaUrl", Kind::Text)],
    counts: true,
};

static SCOPE: Message = of(&[
    (1, "name", Kind::Text),
    (2, "version", Kind::Text),
    (3, "attributes", Kind::List(&KEY_VALUE)),
    (4, "droppedAttributesCount", Kind::Number),
]);

static SPAN: Message = Message {
    fields: &[
        (1, "traceId", Kind::Hex),
        (2, "spanId", Kind::Hex),
        (3, "traceState", Kind::Text),
        (4, "parentSpanId", Kind::Hex),
        (5, "name", Kind::Text),
        (6, "kind", Kind::Number),
        (7, "startTimeUnixNano", Kind::Fixed64),
        (8, "endTimeUnixNano", Kind::Fixed64),
        (9, "attributes", Kind::List(&KEY_VALUE)),
        (10, "droppedAttributesCount", Kind::Number),
        (11, "events", Kind::List(&EVENT)),
        (12, "droppedEventsCount", Kind::Number),
        (13, "links", Kind::List(&LINK)),
        (14, "droppedLinksCount", Kind::Number),
        (15, "status", Kind::One(&STATUS)),
        (16, "flags", Kind::Fixed32),
    ],
    counts: true,
};

static EVENT: Message = of(&[
    (1, "timeUnixNano", Kind::Fixed64),
    (2, "name", Kind::Text),
    (3, "attributes", Kind::List(&KEY_VALUE)),
    (4, "droppedAttributesCount", Kind::Number),
]);

static LINK: Message = of(&[
    (1, "traceId", Kind::Hex),
    (2, "spanId", Kind::Hex),
    (3, "traceState", Kind::Text),
    (4, "attributes", Kind::List(&KEY_VALUE)),
    (5, "droppedAttributesCount", Kind::Number),
    (6, "flags", Kind::Fixed32),
]);

static STATUS: Message = of(&[(2, "message", Kind::Text), (3, "code", Kind::Number)]);

static KEY_VALUE: Message = of(&[(1, "key", Kind::Text), (2, "value", Kind::One(&ANY_VALUE))]);

static ANY_VALUE: Message = of(&[
    (1, "stringValue", Kind::Text),
    (2, "boolValue", Kind::Bool),
    (3, "intValue", Kind::Signed),
    (4, "doubleValue", Kind::Double),
    (5, "arrayValue", Kind::One(&ARRAY)),
    (6, "kvlistValue", Kind::One(&PAIRS)),
    (7, "bytesValue", Kind::Base64),
]);

static ARRAY: Message = of(&[(1, "values", Kind::List(&ANY_VALUE))]);

static PAIRS: Message = of(&[(1, "values", Kind::List(&KEY_VALUE))]);

/// Whether a file that is no text begins as a request, or as the length of one.
pub(super) fn begins(bytes: &[u8]) -> bool {
    let is_request = |bytes: &[u8]| {
        let mut reader = Reader { bytes, at: 1, base: 0 };
        let first = bytes.first() == Some(&FIRST) && reader.varint().is_ok();
        let inner = bytes.get(reader.at).copied();
        first && inner.is_none_or(|inner| matches!(inner, 0x0a | 0x12 | 0x1a))
    };
    is_request(bytes) || bytes.get(4..).is_some_and(|rest| !rest.is_empty() && is_request(rest))
}

/// The requests of a file as JSON, one a line.
pub(super) fn to_json(bytes: &[u8]) -> Result<String, ImportError> {
    let mut text = String::new();
    // The length of a request in front of it begins with this byte only beyond 160 MiB.
    if bytes.first() == Some(&FIRST) {
        let mut reader = Reader { bytes, at: 0, base: 0 };
        reader.message(&REQUEST, &mut text, 0)?;
        return Ok(text);
    }
    let mut at = 0;
    while at < bytes.len() {
        let cut = || damaged(at, "the length of a request is beyond the end of the file");
        let size: [u8; 4] = bytes.get(at..at + 4).and_then(|size| size.try_into().ok()).ok_or_else(cut)?;
        let size = u32::from_be_bytes(size) as usize;
        let request = bytes.get(at + 4..).and_then(|rest| rest.get(..size)).ok_or_else(cut)?;
        // An empty request states nothing.
        if !request.is_empty() {
            let mut reader = Reader { bytes: request, at: 0, base: at + 4 };
            reader.message(&REQUEST, &mut text, 0)?;
            text.push('\n');
        }
        at += 4 + size;
    }
    Ok(text)
}

fn damaged(at: usize, what: &str) -> ImportError {
    ImportError::Unfit {
        code: Code::E0201,
        message: format!("no protobuf of OTLP: {what} (byte {at})"),
        note: None,
    }
}

/// Reads a message.
struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
    /// The place of the message in the file.
    base: usize,
}

impl<'b> Reader<'b> {
    fn fail(&self, what: &str) -> ImportError {
        damaged(self.base + self.at, what)
    }

    fn varint(&mut self) -> Result<u64, ImportError> {
        let mut value = 0u64;
        for shift in (0..70).step_by(7) {
            let byte = *self.bytes.get(self.at).ok_or_else(|| self.fail("it ends inside a number"))?;
            self.at += 1;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.fail("a number is too long"))
    }

    fn take(&mut self, size: u64) -> Result<&'b [u8], ImportError> {
        let found = usize::try_from(size).ok().and_then(|size| self.bytes.get(self.at..)?.get(..size));
        let found = found.ok_or_else(|| self.fail("a length is beyond the end"))?;
        self.at += found.len();
        Ok(found)
    }

    /// Reads the fields of a message as members of an object, and returns how many of them are in no table.
    fn message(&mut self, message: &Message, text: &mut String, depth: usize) -> Result<u64, ImportError> {
        if depth > DEPTH {
            let message = format!("messages are in each other more than {DEPTH} times");
            return Err(ImportError::Unfit { code: Code::E0204, message, note: None });
        }
        // Each list is written when all of its items are known: they need not follow each other.
        let mut members: Vec<String> = message.fields.iter().map(|_| String::new()).collect();
        let mut unknown = 0;
        while self.at < self.bytes.len() {
            let tag = self.varint()?;
            let found = message.fields.iter().position(|(number, ..)| *number == tag >> 3);
            let Some(index) = found else {
                self.pass(tag & 7)?;
                unknown += 1;
                continue;
            };
            unknown += self.field(&message.fields[index], tag & 7, &mut members[index], depth)?;
        }
        // Logs and metrics have the same shape around other messages.
        let is_span = std::ptr::eq(message, &raw const SPAN);
        if is_span && members.iter().take(2).any(String::is_empty) {
            return Err(
                self.fail("a span has no id of its trace or none of its own: this is no request of traces")
            );
        }
        let mut named: Vec<String> = Vec::new();
        for ((_, name, kind), value) in
            message.fields.iter().zip(members).filter(|(_, value)| !value.is_empty())
        {
            named.push(match kind {
                Kind::List(_) => format!("\"{name}\":[{value}]"),
                _ => format!("\"{name}\":{value}"),
            });
        }
        if message.counts && unknown > 0 {
            named.push(format!("\"{UNKNOWN}\":{unknown}"));
            unknown = 0;
        }
        text.push('{');
        text.push_str(&named.join(","));
        text.push('}');
        Ok(unknown)
    }

    /// Steps over a field.
    fn pass(&mut self, wire: u64) -> Result<(), ImportError> {
        match wire {
            0 => self.varint().map(drop),
            1 => self.take(8).map(drop),
            2 => {
                let size = self.varint()?;
                self.take(size).map(drop)
            }
            5 => self.take(4).map(drop),
            _ => Err(self.fail("a field has no type that is known")),
        }
    }

    /// Reads a field into the text of its member. Of several values of one field that is no list, the last counts.
    fn field(
        &mut self,
        (_, name, kind): &Field,
        wire: u64,
        text: &mut String,
        depth: usize,
    ) -> Result<u64, ImportError> {
        let wanted = match kind {
            Kind::Bool | Kind::Number | Kind::Signed => 0,
            Kind::Fixed64 | Kind::Double => 1,
            Kind::Fixed32 => 5,
            _ => 2,
        };
        if matches!(kind, Kind::Passed) {
            return self.pass(wire).map(|()| 0);
        }
        if wire != wanted {
            return Err(
                self.fail(&format!("the field {name} has another type: this is no request of traces"))
            );
        }
        if !matches!(kind, Kind::List(_)) {
            text.clear();
        }
        match kind {
            Kind::Bool => text.push_str(if self.varint()? == 0 { "false" } else { "true" }),
            Kind::Number => text.push_str(&self.varint()?.to_string()),
            Kind::Signed => *text = format!("\"{}\"", self.varint()?.cast_signed()),
            Kind::Fixed64 => *text = format!("\"{}\"", u64::from_le_bytes(self.array()?)),
            Kind::Fixed32 => *text = u32::from_le_bytes(self.array()?).to_string(),
            Kind::Double => *text = double(f64::from_le_bytes(self.array()?)),
            _ => return self.bytes(name, kind, text, depth),
        }
        Ok(0)
    }

    /// Reads a field that has a length.
    fn bytes(
        &mut self,
        name: &str,
        kind: &Kind,
        text: &mut String,
        depth: usize,
    ) -> Result<u64, ImportError> {
        let size = self.varint()?;
        let bytes = self.take(size)?;
        let base = self.base + self.at - bytes.len();
        let mut inner = Reader { bytes, at: 0, base };
        match kind {
            Kind::One(message) => return inner.message(message, text, depth + 1),
            Kind::List(message) => {
                if !text.is_empty() {
                    text.push(',');
                }
                return inner.message(message, text, depth + 1);
            }
            Kind::Hex => {
                let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                *text = format!("\"{digits}\"");
            }
            Kind::Base64 => *text = format!("\"{}\"", base64(bytes)),
            _ => {
                let words = std::str::from_utf8(bytes).map_err(|_| ImportError::Unfit {
                    code: Code::E0206,
                    message: format!("the field {name} is no UTF-8 (byte {base})"),
                    note: None,
                })?;
                text.push_str(&json::to_string(&Value::from(words)));
            }
        }
        Ok(0)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ImportError> {
        let bytes = self.take(N as u64)?;
        bytes.try_into().map_err(|_| self.fail("a length is beyond the end"))
    }
}

/// A double as JSON of protobuf has it: a text, if it is no number.
fn double(value: f64) -> String {
    match value {
        value if value.is_finite() => format!("{value:?}"),
        value if value.is_nan() => "\"NaN\"".to_owned(),
        value if value > 0.0 => "\"Infinity\"".to_owned(),
        _ => "\"-Infinity\"".to_owned(),
    }
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let all =
            three.iter().fold(0u32, |all, byte| (all << 8) | u32::from(*byte)) << (8 * (3 - three.len()));
        for digit in 0..4 {
            let at = (all >> (18 - 6 * digit)) & 63;
            text.push(if digit <= three.len() { char::from(DIGITS[at as usize]) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_base64() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
    }
}
