//! Texts that cost a redactor the most.

use super::draw::shaped;
use crate::Dice;

/// A kind of text, each of one sign or shape without an end.
#[derive(Debug, Clone, Copy)]
pub struct HostileKind {
    /// Name of the kind.
    pub name: &'static str,
    /// The part that is repeated; drawn anew each time where it has a shape in braces.
    unit: &'static str,
}

/// Every kind of hostile text.
pub const HOSTILE_KINDS: [HostileKind; 34] = [
    HostileKind { name: "double quotes", unit: "\"" },
    HostileKind { name: "single quotes", unit: "'" },
    HostileKind { name: "password: ", unit: "password: " },
    HostileKind { name: "password=", unit: "password=" },
    HostileKind { name: "equals", unit: "=" },
    HostileKind { name: "less than", unit: "<" },
    HostileKind { name: "base64 run", unit: "{b997}" },
    HostileKind { name: "hex run", unit: "{h997}" },
    HostileKind { name: "one-letter lines", unit: "a\n" },
    HostileKind { name: "json brackets", unit: "[" },
    HostileKind { name: "json braces", unit: "{\"a\":" },
    HostileKind { name: "sk-", unit: "sk-" },
    HostileKind { name: "ey.", unit: "ey." },
    HostileKind { name: "eyJ.", unit: "eyJhbGciOi." },
    HostileKind { name: "backslashes", unit: "\\" },
    HostileKind { name: "escaped quotes", unit: "\\\\\\\"" },
    HostileKind { name: "percent codes", unit: "%70" },
    HostileKind { name: "nested percent codes", unit: "%25" },
    HostileKind { name: "csv commas", unit: "," },
    HostileKind { name: "csv of passwords", unit: "password," },
    HostileKind { name: "entities", unit: "&amp;" },
    HostileKind { name: "numeric entities", unit: "&#112;" },
    HostileKind { name: "addresses", unit: "a://b:c@" },
    HostileKind { name: "key headers", unit: "-----BEGIN PRIVATE KEY-----\n" },
    HostileKind { name: "key headers in a line", unit: "-----BEGIN PRIVATE KEY-----" },
    HostileKind { name: "base64 lines", unit: "{b76}\n" },
    HostileKind { name: "base64 lines, escaped", unit: "{b76}\\n" },
    HostileKind { name: "markdown cells", unit: "| password " },
    HostileKind { name: "markers", unit: "<redacted:" },
    HostileKind { name: "terminal codes", unit: "\u{1b}[0m" },
    HostileKind { name: "words", unit: "abandon ability " },
    HostileKind { name: "xml of passwords", unit: "<password>" },
    HostileKind { name: "curl in a line", unit: "curl -u a " },
    HostileKind {
        name: "every encoding",
        unit: "a%20b&amp;c \\\"d\\\" \\u0041 e=3D\u{1b}[0m {b24}== {h32} x://y:z@w\\n <redacted:a>\n",
    },
];

impl HostileKind {
    /// Returns a text of the kind with at least `size` bytes, cut to it at a character.
    pub fn text(&self, size: usize) -> String {
        let mut dice = Dice(5);
        let mut out = String::with_capacity(size + self.unit.len());
        while out.len() < size {
            out += &shaped(self.unit, &mut dice);
        }
        out.truncate(size);
        out
    }
}
